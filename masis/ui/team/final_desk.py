"""The desk of an adjudication: a case with its reviewers' decisions, and its final verdict.

Its form is the desk's (``components/desk.js``). It can start from a reviewer's decision.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field

from masis.errors import InputError, Removed, UnknownRecord
from masis.schema.labels import TargetLabel
from masis.schema.review import (
    LONGEST_SENTENCE,
    AdjudicationCause,
    Decision,
    Verdict,
    answer_digest,
    decided_about,
    decision_outcome,
)
from masis.schema.run import Iteration
from masis.services import ANONYMOUS, Workbench
from masis.services.decision_rules import (
    CAUSES,
    NEEDS_REASON,
    OTHER,
    DecidedAnswer,
    reasons_for,
    seen_issues,
)
from masis.services.drafts import adjudication_subject, clean
from masis.ui.review import decision_form as forms
from masis.ui.review.decision_form import Data, FormFields, LabelEntries
from masis.ui.review.desk import OpenDesk, chosen_run
from masis.ui.review.form_texts import Answer, Name, Note
from masis.ui.review.label_form import keep_recorded, recorded_rows
from masis.views.labels import chunk_name, flat_lines, label_lines
from masis.views.log_entries import adopted_decision_text
from masis.views.markup import without_markup
from masis.views.words import DECIDE, DECIDED, label

LONGEST_REASON = 2_000
LONGEST_NAMED = 60
"""The characters shown of labelled words that name a difference."""
MOST_ASIDE = 2


def _reason(value: object) -> str:
    return clean(value, LONGEST_REASON)


def _read_sentence(value: object) -> str:
    return clean(value, LONGEST_SENTENCE)


def _known_cause(value: object) -> object:
    return value if value in tuple(CAUSES) else None


class Version(LabelEntries):
    """A verdict with its texts and labels: a reviewer's decision, or the adjudicator's own words.

    Attributes:
        taken: The reviewer whose decision was taken, whether or not it was changed since, or "".
        wrote: The reviewer whose reason and note the page filled in, whichever verdict was chosen
            since, or "".
        given: The texts that the page filled in, by field name.

    """

    verdict: Verdict | None = None
    other: Annotated[str, BeforeValidator(_reason)] = ""
    note: Note = ""
    corrected: Answer | None = None
    taken: Name = ""
    wrote: Name = ""
    given: dict[str, str] = Field(default_factory=dict)

    @classmethod
    def of(cls, decision: Decision, digest: str) -> Version:
        """Return a decision on the answer with this digest as a version of the form."""
        given = {
            "other": decision.reason,
            "note": decision.note,
            "corrected": decision.corrected_answer or "",
        }
        fields = {**given, "corrected": decision.corrected_answer}
        fields |= forms.fields_of_labels(decision, digest)
        name = decision.reviewer
        return cls(verdict=decision.verdict, taken=name, wrote=name, given=given, **fields)


class FinalFields(Version, FormFields):
    """The entries of the form of a final verdict.

    Attributes:
        about: The reviewer who approved the answer to approve, if they approved several.
        cause: Why the reviewers differed.
        sentence: The sentence that is proposed for the rubric.
        aside: Typed entries that were replaced by taking a decision, newest first.
        changing: Whether the recorded verdict is being changed.

    """

    about: Name = ""
    cause: Annotated[AdjudicationCause | None, BeforeValidator(_known_cause)] = None
    sentence: Annotated[str, BeforeValidator(_read_sentence)] = ""
    aside: tuple[Version, ...] = Field(default=(), max_length=MOST_ASIDE)
    changing: bool = False


class FinalDesk(OpenDesk):
    """An adjudication that a person has open."""

    fields_type = FinalFields
    reports_title = "Issues that reviewers reported"

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """The current decisions of the case's reviewers, without redacted ones.

        Raises:
            InputError: Some reviewers haven't decided yet, or the case has only one reviewer.

        """
        work = self.workbench.team.work(self.actor, self.case_id)
        if work.pending or work.policy is None or not work.decided_by:
            raise InputError(
                "this case isn't waiting for an adjudication",
                hint="Some of its reviewers haven't decided yet, or it has only one reviewer.",
            )
        return decisions_on(self.workbench, self.case_id)

    @property
    def subject(self) -> str:
        """The subject of the draft."""
        return adjudication_subject(self.case_id)

    @property
    def can_approve(self) -> bool:
        """Whether there is an answer to approve: a decision may have written one."""
        return True

    @cached_property
    def waiting(self) -> int:
        """The number of cases that this person can adjudicate."""
        return self.workbench.team.adjudications(self.actor, size=1).total

    @property
    def can_adjudicate(self) -> bool:
        """Whether this person can adjudicate the case."""
        access = self.workbench.access
        decided_by = {decision.reviewer for decision in self.decisions}
        named = bool(self.actor.name) and self.actor.name not in decided_by
        return named and access.allows(self.actor, "oversee")

    @property
    def final(self) -> Decision | None:
        """The final verdict in force, if there is one."""
        entry = self.view.decision if self.view.state != "needs_adjudication" else None
        decision = entry.decision if entry else None
        return decision if decision is not None and decision.verdict is not None else None

    def explain_change(self, shown_place: str) -> str:
        """Say who gave a final verdict, and when; "" if there is none."""
        entry = self.view.decision
        if self.final is None or self.final.verdict is None or entry is None:
            return ""
        names = " and ".join(self.workbench.reviews.settled_by(self.case_id))
        word = DECIDED[self.final.verdict].text.lower()
        return f" {names} gave the final verdict at {entry.at[11:16]} UTC: {word}."

    def answer_before(self, decision: Decision) -> str | None:
        """Return the answer that a decision is about, or None if it was removed."""
        try:
            return self.workbench.reviews.answer_of(decision)
        except Removed:
            return None

    def version_of(self, decision: Decision) -> Version:
        """Return a decision as a version of the form."""
        return Version.of(decision, answer_digest(self.answer_before(decision) or ""))

    def _iteration_of(self, decision: Decision) -> Iteration | None:
        """Return the audited answer of a decision, as far as this person may see it."""
        if self.view.machine_hidden or not decision.run_id:
            return None
        run = chosen_run(self.workbench, self.view, decision.run_id)
        is_its_run = run is not None and run.id == decision.run_id
        return run.iterations[(decision.iteration or 1) - 1] if run and is_its_run else None

    def side(self, fields: Version, about: str = "") -> Decision:
        """Return the decision whose answer a verdict is about.

        That's the one taken, or the one chosen, or the first with the same verdict, or the first.
        """
        by_name = {decision.reviewer: decision for decision in self.decisions}
        same = [decision for decision in self.decisions if decision.verdict == fields.verdict]
        return (
            by_name.get(fields.taken) or by_name.get(about) or next(iter(same), self.decisions[0])
        )

    def decision_of(self, fields: FinalFields) -> tuple[Decision, DecidedAnswer]:
        """Return the final verdict of the form, and the answer that it's about.

        A taken decision brings its scores. The form has its labels, too, which may have been
        changed. The serious issues that an approval leaves
        open are part of it, since the form shows their number.
        """
        side = self.side(fields, fields.about)
        taken = side if side.reviewer == fields.taken else None
        recorded = (self._author(fields) or side).labels
        labels = forms.labels_in(
            fields,
            _label_base(side),
            self._iteration_of(side),
            answer_digest(self.answer_before(side) or ""),
            recorded,
        )
        decision = Decision(
            kind="adjudication",
            reviewer=self.actor.name,
            case_id=self.case_id,
            run_id=side.run_id,
            iteration=side.iteration,
            verdict=fields.verdict,
            reason=fields.other,
            note=fields.note,
            corrected_answer=fields.corrected if fields.verdict == "override" else None,
            cause=fields.cause,
            rubric_sentence=self._proposed_sentence(fields),
            machine_shown=() if self.view.machine_hidden else ("scores", "verdicts"),
            labels=keep_recorded(labels, recorded),
            rubric_scores=taken.rubric_scores if taken else {},
            versions=taken.versions if taken else {},
        )
        answer = self.workbench.reviews.decided_answer(self.actor, decision)
        extra: dict[str, Any] = {
            "individual": [entry.id for entry in self.workbench.reviews.individual(self.case_id)]
        }
        if taken is not None:
            extra["taken_from"] = taken.reviewer
        if fields.verdict == "approve":
            extra |= seen_issues(answer.serious)
        return decision.model_copy(update={"extra": extra}), answer

    def _author(self, fields: Version) -> Decision | None:
        """Return the decision that filled in the form, or None."""
        known = (*self.decisions, *([self.final] if self.final else []))
        return next((made for made in known if made.reviewer == fields.wrote), None)

    def kept_labels(self, fields: Version, final: Decision) -> int:
        """Return how many labels of a final verdict repeat those of a decision."""
        author = self._author(fields)
        return sum(label in author.labels for label in final.labels) if author else 0

    @staticmethod
    def _proposed_sentence(fields: FinalFields) -> str:
        """Return the sentence for the rubric, or "" if the cause doesn't propose one."""
        proposes = fields.cause is not None and CAUSES[fields.cause].proposes
        return " ".join(fields.sentence.split()) if proposes else ""

    def check(self, fields: FormFields) -> Data | None:
        """Return the check of the corrected or approved answer, or None if there is none."""
        verdict = fields.verdict
        # the issues left in an approved answer come from the audit, which may be hidden
        if verdict == "approve" and self.view.machine_hidden:
            return None
        before = self.answer_before(self.side(cast("FinalFields", fields)))
        text = {
            "approve": before,
            "override": before if fields.corrected is None else fields.corrected,
        }.get(verdict or "")
        settings = self.workbench.settings
        if not text:
            return None
        blind = self.view.machine_hidden
        check = forms.check(text, self.view.case, settings, before, blind=blind)
        return {**check, "audited": forms.audited_issues(None if blind else self.run, text)}

    def neighbor(self, *, forward: bool = True) -> str | None:
        """Return the previous or next case that waits; the first one comes after the last."""
        waiting = self.workbench.team.to_adjudicate(self.actor)
        try:
            neighbor = self.workbench.cases.neighbor(self.case_id, waiting, forward=forward)
        except UnknownRecord:  # an address may name any case
            neighbor = None
        if neighbor or not forward:
            return neighbor
        first = self.workbench.cases.find(waiting.model_copy(update={"size": 2})).rows
        return next((row.id for row in first if row.id != self.case_id), None)

    def data(self) -> Data:
        """Return the data that ``desk.js`` draws."""
        differ = self.view.state == "needs_adjudication"
        left = f"{self.waiting:,} left for you" if self.waiting else "None left for you"
        return {
            **super().data(),
            "about": {"name": "", "note": ""},
            "notice": None if self.can_adjudicate else self._notice(),
            "revision": "",
            "serious": [],
            "unconfirmed": [],  # the reviewers have read the answer
            "standing": self._final_row(),
            "go": {"waiting": self.waiting > 0, "says": left},
            "final": {
                "open": differ,
                "can": self.can_adjudicate,
                "sides": [self._side_data(decision) for decision in self.decisions],
                "standing": self.version_of(self.final).model_dump(mode="json")
                if self.final
                else None,
                "reasons": {
                    verdict: [
                        reason.text
                        for reason in reasons_for(verdict, sees_issues=self.run is not None)
                        if reason.code != OTHER
                    ]
                    for verdict in DECIDE
                },
                "causes": [{"code": code, **cause._asdict()} for code, cause in CAUSES.items()],
                "longest_sentence": LONGEST_SENTENCE,
                "optional": [
                    verdict
                    for verdict in DECIDE
                    if not self.workbench.reviews.explain_needed_reason(self.case_id, verdict)
                ],
            },
        }

    def _notice(self) -> Data:
        is_open = self.workbench.access.allows(ANONYMOUS, "oversee")
        names = " and ".join(decision.reviewer for decision in self.decisions)
        others = "Anybody else" if is_open else "Any other lead"
        text = f"Decided by {names}. {others} can adjudicate."
        named = bool(self.actor.name) or not is_open
        return {"text": text, "tone": "calm", "closed": named, "adjudicate": False}

    def _side_data(self, decision: Decision) -> Data:
        """Return a reviewer's decision, with the changes of its correction to the answer."""
        lines = [f"Reason: {decision.reason}" if decision.reason else "No reason given"]
        lines += [f"Note: {decision.note}"] if decision.note else []
        lines += [f"{name}: {value}" for name, value in decision.rubric_scores.items()]
        labels = label_lines(decision, self.view.case, self.run, with_causes=False)
        lines += flat_lines(labels)
        before = self.answer_before(decision)
        verdict = decision.verdict
        corrected = decision.corrected_answer
        first = next((side for side in self.decisions if side.corrected_answer), decision)
        others = first.corrected_answer if first.corrected_answer != corrected else None
        return {
            **self.version_of(decision).model_dump(mode="json"),
            "name": decision.reviewer,
            "label": label(DECIDED[verdict]) if verdict else None,
            "decided": decided_about(decision) if verdict == "approve" else "",
            "lines": lines,
            "before": before,
            "digest": answer_digest(before or ""),
            "labelled": {
                "base": _label_base(decision),
                "rows": recorded_rows(decision, self._iteration_of(decision), self.view.case),
            },
            "changes": forms.shortened_changes(before, corrected),
            "first": first.reviewer if corrected and others else "",
            "first_changes": forms.shortened_changes(others, corrected),
            "serious": len(self.workbench.reviews.decided_answer(self.actor, decision).serious),
        }

    def _final_row(self) -> Data | None:
        """Return the final verdict in force as the desk shows a decision."""
        final, entry = self.final, self.view.decision
        if final is None or final.verdict is None or entry is None:
            return None
        agreed = final.kind != "adjudication"
        took = "" if agreed else adopted_decision_text(final, self.decisions)
        names = " and ".join(self.workbench.reviews.settled_by(self.case_id))
        waits = "it waits for more evidence or another reviewer"
        word = DECIDED[final.verdict]
        texts = {
            name: self._with_author(name, getattr(final, name), final, agreed=agreed)
            for name in ("reason", "note")
        }
        return {
            "id": entry.id,
            "what": word.text,
            "tone": word.tone,
            "who": f"{names} ({took})" if took else names,
            "outcome": decision_outcome(final),
            "when": waits if final.verdict == "escalate" else "",
            "why": texts["reason"] or "No reason given",
            "cause": f"Cause: {CAUSES[final.cause].text.lower()}" if final.cause else "",
            "note": texts["note"],
            "labels": [],
            "reported": [],
            "changes": forms.shortened_changes(self.answer_before(final), final.corrected_answer),
            "undoable": not agreed and final.reviewer == self.actor.name,
            "settled": final.verdict != "escalate",
        }

    def _with_author(self, name: str, text: str, final: Decision, *, agreed: bool) -> str:
        """Return a text with the reviewer who wrote it, if their decision was taken with it.

        That another reviewer wrote the same words is a coincidence.
        """
        if not text.strip():
            return ""
        taken = "" if agreed else final.extra.get("taken_from", "")
        is_taken = any(
            decision.reviewer == taken and getattr(decision, name) == text
            for decision in self.decisions
        )
        return f"{f'{taken}’s {name}' if is_taken else name.capitalize()}: {text}"


def _label_base(decision: Decision) -> str:
    return f"{decision.run_id}/{decision.iteration}"


def decisions_on(workbench: Workbench, case_id: str) -> tuple[Decision, ...]:
    """Return the current decisions of a case's reviewers, without redacted ones."""
    individual = workbench.reviews.individual(case_id)
    return tuple(entry.decision for entry in individual if entry.decision is not None)


def differences(decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Return the names of the parts in which decisions on one case differ, the verdict first.

    The parts are verdict, approved answer, correction, reason, scores and labels. A note isn't a
    judgment, and only overrides have a correction. Between different verdicts, reasons are compared
    only if both verdicts need one.
    """
    is_shared = len({decision.verdict for decision in decisions}) == 1
    parts: dict[str, list[object]] = {
        "verdict": [decision.verdict for decision in decisions],
        "approved answer": [
            decided_about(decision) for decision in decisions if decision.verdict == "approve"
        ],
        "correction": [
            decision.corrected_answer for decision in decisions if decision.verdict == "override"
        ],
        "reason": [
            decision.reason
            for decision in decisions
            if is_shared or decision.verdict in NEEDS_REASON
        ],
    }
    for name in dict.fromkeys(name for decision in decisions for name in decision.rubric_scores):
        parts[f"score {name}"] = [decision.rubric_scores.get(name) for decision in decisions]
    groups: dict[tuple[object, ...], tuple[str, list[list[str]]]] = {}
    for number, decision in enumerate(decisions):
        for target in decision.labels:
            # A reported issue is compared with other reports on the same words, and never with a
            # label that corrects the audit.
            key = (target.target, target.start, target.end, target.evidence_id, target.reports)
            _, given = groups.setdefault(key, (_label_group_text(target), [[] for _ in decisions]))
            given[number].append(target.model_dump_json(exclude={"note"}))
    parts |= {
        name: [sorted(labels_of_one) for labels_of_one in by_decision]
        for name, by_decision in groups.values()
    }
    return tuple(
        name for name, values in parts.items() if any(value != values[0] for value in values[1:])
    )


def _label_group_text(target: TargetLabel) -> str:
    """Name the part that a label is about, among the parts in which decisions differ."""
    if target.target == "answer":
        return "issues reported in the whole answer"
    if target.target == "case":
        return "missing passage"
    if target.target == "evidence":
        return f"label of {chunk_name(target.evidence_id)}"
    words = f"“{textwrap.shorten(without_markup(target.text), LONGEST_NAMED, placeholder='…')}”"
    return f"issues reported in {words}" if target.reports else f"{target.target} {words}"
