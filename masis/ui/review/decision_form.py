"""The decision form as plain data: what the component is shown, and what it posts read back. Pure.

What a browser posts is from outside: it is read field by field, and what makes no sense in it is
dropped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache, partial
from typing import Annotated, Any, Literal, NamedTuple, Self, cast, get_args

from pydantic import BeforeValidator, Field, Strict, model_validator

from masis.api.audits import audit_citations, citations_kept
from masis.audit.issues import about_same_words
from masis.audit.markers import evidence_index, half_bracketed_ids, without_markers
from masis.audit.sentences import split_sentences
from masis.schema.audit import CitationAudit, Issue
from masis.schema.base import Record
from masis.schema.case import Case, Severity
from masis.schema.review import Decision, LogEntry, TargetLabel, Verdict, answer_name
from masis.schema.run import Iteration, Run
from masis.schema.team import LabelTypes
from masis.schema.wording import count_noun, shorten
from masis.services import decision_rules
from masis.services.decision_rules import (
    OTHER,
    REASON_CODE,
    is_unchanged,
    reason_text,
    reasons_for,
    seen_issues,
    suggest_reasons,
)
from masis.services.drafts import clean, read_if_valid
from masis.services.records import RunSummary
from masis.settings import Settings
from masis.views.diff import word_changes
from masis.views.log_entries import entry_texts
from masis.views.marks import reference_marks
from masis.views.numbers import moment_utc
from masis.views.verdicts import target_key
from masis.views.words import DECIDE, REFERENCE, SENTENCE, VERDICT, Word, label, rule_word

LONGEST_NAME = 80
LONGEST_NOTE = 4_000
LONGEST_ANSWER = 150_000
"""Characters; a text area gets slow past 200,000."""

ROWS_LABELLED = 120
EXCERPT = 220
OFFENDERS_NAMED = 5
NEIGHBOURS = 3
"""Words shown on either side of those that a correction changes."""

CHOICES = {
    "claim": ("supported", "partial", "contradicted", "unsupported", "unverifiable"),
    "reference": (
        "valid",
        "fabricated",
        "misattributed",
        "redundant",
        "unsupported",
        "contradicts",
    ),
    "sentence": ("uncited", "exempt"),
}
"""The labels that can be given, by what they are given to."""
_WORDS = {"claim": VERDICT, "reference": REFERENCE, "sentence": SENTENCE}

MOST_REPORTED = 100
"""Issues that one decision reports."""

SEVERITIES: tuple[Severity, ...] = get_args(Severity)

_BLOCK_MARKER = re.compile(r"(?:[ \t]*(?:#{1,6}|[-+*>]|\d{1,3}[.)])[ \t]+)+")
Place = Annotated[int, Strict(), Field(ge=0, le=100_000_000)]


def _checked_text(value: object, longest: int) -> str:
    if not isinstance(value, str):
        raise ValueError("it is no text")
    return clean(value, longest)


Name = Annotated[str, BeforeValidator(partial(_checked_text, longest=64))]
OwnWords = Annotated[str, BeforeValidator(partial(_checked_text, longest=300))]
Note = Annotated[str, BeforeValidator(partial(_checked_text, longest=LONGEST_NOTE))]
Answer = Annotated[str, BeforeValidator(partial(_checked_text, longest=LONGEST_ANSWER))]


class ReportFields(Record):
    """An issue that a reviewer reports, as far as it is filled in; without a place it is about the
    whole answer.
    """

    start: Place | None = None
    end: Place | None = None
    text: Answer = ""
    type: Name = ""
    severity: Severity | Literal[""] = ""
    note: Note = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.start is None) != (self.end is None) or (self.start is None) == bool(self.text):
            raise ValueError("it has half a place, or no words at one")
        return self


class OpenReport(ReportFields):
    """The issue that is being written: in which answer, and in place of which one that was reported
    there.
    """

    answer: Name = ""
    place: Place | None = None

    @model_validator(mode="after")
    def _of_an_answer(self) -> Self:
        if not self.answer:
            raise ValueError("it is of no answer")
        return self


def _known_labels(posted: object) -> dict[str, dict[str, str]]:
    known = set().union(*CHOICES.values())
    read = {
        clean(base, 200): {
            clean(key, 60): chosen for key, chosen in labels.items() if chosen in known
        }
        for base, labels in (list(posted.items())[:20] if isinstance(posted, dict) else ())
        if isinstance(labels, dict)
    }
    return {base: labels for base, labels in read.items() if labels}


def _valid_reports(posted: object) -> dict[str, tuple[ReportFields, ...]]:
    read = {
        clean(answer, 64): tuple(
            found for each in issues[:MOST_REPORTED] if (found := read_if_valid(ReportFields, each))
        )
        for answer, issues in (list(posted.items())[:20] if isinstance(posted, dict) else ())
        if isinstance(issues, list | tuple)
    }
    return {answer: issues for answer, issues in read.items() if issues}


class FormFields(Record):
    """What the form holds. ``corrected`` is None while the answer is untouched; ``labels`` by
    iteration.

    ``reported`` issues are kept by the digest of the answer that they are about, so that they
    outlast another audit of the same answer; ``reporting`` is the one being written.
    """

    verdict: Verdict | None = None
    reason: Name = ""
    other: OwnWords = ""
    note: Note = ""
    corrected: Answer | None = None
    labels: Annotated[dict[str, dict[str, str]], BeforeValidator(_known_labels)] = Field(
        default_factory=dict
    )
    reported: Annotated[dict[str, tuple[ReportFields, ...]], BeforeValidator(_valid_reports)] = (
        Field(default_factory=dict)
    )
    reporting: Annotated[OpenReport | None, BeforeValidator(partial(read_if_valid, OpenReport))] = (
        None
    )

    @property
    def empty(self) -> bool:
        """Whether nothing has been entered."""
        return self == FormFields()


class FormProblem(NamedTuple):
    """Why a form can't be submitted yet, and the field that wants attention."""

    field: str
    message: str


Data = dict[str, Any]
"""What the component draws, as JSON: ``decision.js`` reads it, and nothing else does."""


def find_problem(fields: FormFields, reviewer: str) -> FormProblem | None:
    """Return what the form lacks to make a decision of any kind; None where ``decision_of`` can
    make one.
    """
    if fields.verdict is None:
        return FormProblem(
            "verdict", "Choose a verdict first: approve, override, reject or escalate."
        )
    if any(
        not issue.type or not issue.severity
        for issues in fields.reported.values()
        for issue in issues
    ):
        return FormProblem(
            "reported", "A reported issue lacks its type or severity: edit or remove it."
        )
    if not reviewer.strip():
        return FormProblem("reviewer", "Type your name: it is recorded with every decision.")
    return None


def to_mend(problems: Iterable[decision_rules.DecisionProblem]) -> FormProblem | None:
    """Return the first problem of a decision as the form says it, with the field that mends it;
    None without one.
    """
    for found in problems:
        field = "corrected" if found.field == "corrected_answer" else found.field
        return FormProblem("other" if found.code == "own_words_missing" else field, found.sentence)
    return None


def is_unexplained_escalation(fields: FormFields) -> bool:
    """Return whether a case is escalated without a word that says what for: the form asks for one
    once.
    """
    return fields.verdict == "escalate" and not _chosen_reason(fields) and not fields.note.strip()


def _chosen_reason(fields: FormFields) -> str:
    known = {reason.code for reason in reasons_for(fields.verdict)} if fields.verdict else set()
    return reason_text(fields.reason, fields.other) if fields.reason in known else ""


def decision_of(
    fields: FormFields,
    *,
    case_id: str,
    run: Run | None,
    index: int,
    reviewer: str,
    token: str,
    machine_shown: tuple[str, ...],
    shown: str = "",
    acknowledged: object = None,
) -> Decision:
    """Return the decision that a form makes of which ``unfinished`` found nothing.

    ``shown`` is the digest of its answer, ``acknowledged`` what the browser posted as the ids of
    the serious issues that were listed to the person.
    """
    base = label_base(run, index)
    reason = _chosen_reason(fields)
    extra: dict[str, Any] = {"answer": shown_name(run, index)}
    if reason or fields.reason == OTHER:
        extra[REASON_CODE] = fields.reason
    if fields.verdict == "approve":
        listed = (
            {each for each in acknowledged if isinstance(each, str)}
            if isinstance(acknowledged, list)
            else set()
        )
        extra |= seen_issues(issue for issue in serious_issues(run, index) if issue.id in listed)
    return Decision(
        reviewer=reviewer.strip(),
        case_id=case_id,
        run_id=run.id if run else None,
        iteration=index + 1 if run else None,
        verdict=fields.verdict,
        reason=reason,
        note=fields.note.strip(),
        corrected_answer=fields.corrected if fields.verdict == "override" else None,
        labels=(
            *(target_labels(run.iterations[index], fields.labels.get(base, {})) if run else ()),
            *map(_reported_label, fields.reported.get(shown, ())),
        ),
        machine_shown=machine_shown if run else (),
        token=token,
        extra=extra,
    )


def _reported_label(issue: ReportFields) -> TargetLabel:
    return TargetLabel(
        target="answer" if issue.start is None else "span",
        start=issue.start,
        end=issue.end,
        text=issue.text,
        label=issue.type,
        severity=cast("Severity", issue.severity),
        note=issue.note.strip(),
    )


def labels_of(decision: Decision, answer: str) -> dict[str, Any]:
    """Return the labels of a decision as fields of the form; ``answer`` is the digest of the answer
    it is about.
    """
    base = f"{decision.run_id}/{decision.iteration}"
    given = {
        f"{each.target}:{each.start}-{each.end}": each.label
        for each in decision.labels
        if not each.reports
    }
    reported = tuple(ReportFields.model_validate(each) for each in _reported_rows(decision))
    return {
        "labels": {base: given} if given else {},
        "reported": {answer: reported} if reported else {},
    }


@lru_cache(maxsize=16)  # asked for at every rest of typing, about the same answer
def sentence_places(answer: str) -> tuple[tuple[int, int], ...]:
    """Return where the sentences of an answer stand, without the markers of headings and lists
    before them.
    """
    places = []
    for each in split_sentences(answer):
        marker = _BLOCK_MARKER.match(answer, each.start, each.end)
        places.append(
            (marker.end() if marker and marker.end() < each.end else each.start, each.end)
        )
    return tuple(places)


def reporting(answer: str, types: LabelTypes, standing: Decision | None) -> Data:
    """Return what the form needs to report issues; ``standing`` is the decision that stands on the
    answer shown.
    """
    fits = [
        each
        for each in (_reported_rows(standing) if standing else [])
        if each["start"] is None or answer[each["start"] : each["end"]] == each["text"]
    ]
    return {
        "types": [{"name": each.name, "guidance": each.guidance} for each in types.types],
        "severities": SEVERITIES,
        "sentences": list(sentence_places(answer)),
        "standing": fits,
    }


def _reported_rows(decision: Decision) -> list[Data]:
    return [
        {name: getattr(each, name) for name in ("start", "end", "text", "note")}
        | {"type": each.label, "severity": each.severity or ""}
        for each in decision.reported
    ]


def shown_name(run: Run | None, index: int) -> str:
    """Name the answer of iteration ``index`` (from 0) of a run; without one, the case's own."""
    return answer_name(index + 1 if run else None, drafted=bool(run and run.draft))


def serious_issues(run: Run | None, index: int) -> tuple[Issue, ...]:
    """Return the issues of severity critical or high that an answer has open, the most severe
    first.
    """
    found = [issue for issue in run.iterations[index].issues if issue.major] if run else []
    return tuple(sorted(found, key=lambda issue: issue.severity != "critical"))


def serious_rows(run: Run | None, index: int) -> list[Data]:
    """Return these issues as the question before an approval lists them: those about the same words
    as one.

    The answer numbers them so, too; ``ids`` are all that a row stands for.
    """
    rows: list[Data] = [
        {
            "ids": [each.id for each in alike],
            "label": label(rule_word(alike[0].rule)),
            "severity": (
                "critical" if any(each.severity == "critical" for each in alike) else "high"
            ),
            "text": shorten(alike[0].description, EXCERPT),
        }
        for alike in about_same_words(serious_issues(run, index))
    ]
    return sorted(rows, key=lambda row: row["severity"] != "critical")


def label_base(run: Run | None, index: int) -> str:
    """Return the name under which labels of one iteration are drafted: they are about its words
    only.
    """
    return f"{run.id}/{index + 1}" if run else ""


def _audit_correction(answer: str, case: Case, settings: Settings | None) -> CitationAudit:
    return audit_citations(answer, case.evidence, settings, citations=citations_kept(case, answer))


def doubts(
    corrected: str, shown: str, case: Case, original: str, settings: Settings | None = None
) -> Iterator[str]:
    """Yield what speaks against recording a correction of the answer shown as it is: a slip, most
    likely.
    """
    before, after = (
        _audit_correction(shown, case, settings),
        _audit_correction(corrected, case, settings),
    )
    if is_unchanged(corrected, original):
        yield "it equals the original answer"
    wrong = [*dict.fromkeys(after.invalid_citations), *_outside_brackets(corrected, case, after)][
        :OFFENDERS_NAMED
    ]
    if wrong:
        yield (
            f"it cites {', '.join(f'“{shorten(each, 60)}”' for each in wrong)}, which names no"
            " evidence"
        )
    index = evidence_index(case.evidence)
    status = {
        without_markers(sentence.text, index): sentence.status for sentence in before.sentences
    }
    for sentence in after.uncited_claims:
        if (was := get_close_matches(sentence, status, 1, cutoff=0.5)) and status[
            was[0]
        ] == "cited":
            yield f"“{shorten(sentence, 80)}” has lost its citation"
            return


def _outside_brackets(answer: str, case: Case, audit: CitationAudit) -> list[str]:
    """Return the evidence ids beside half a pair of brackets, as in ``[c1]c2]``."""
    return [
        words
        for at, words in half_bracketed_ids(answer, [chunk.id for chunk in case.evidence])
        if not any(citation.start <= at < citation.end for citation in audit.citations)
    ]


def check(
    answer: str, case: Case, settings: Settings | None = None, shown: str | None = None
) -> Data:
    """Return what the citation engine says about a corrected answer, and what it changes in the one
    ``shown``.
    """
    audit = _audit_correction(answer, case, settings)
    fabricated = list(dict.fromkeys(audit.invalid_citations))
    before = () if shown is None else _audit_correction(shown, case, settings).citations
    held, kept = (
        Counter(
            each.evidence_id
            for each in cited
            if each.evidence_id and each.marker_start < each.marker_end
        )
        for cited in (before, audit.citations)
    )
    return {
        "references": len(audit.citations),
        "beside": _kept_citations_text(
            len(citations_kept(case, answer)), len(case.given_citations)
        ),
        "changed": list(_changed_words(shown, answer)) if shown is not None else [],
        "dropped": list(held - kept),
        "fabricated": [shorten(each, 60) for each in fabricated[:OFFENDERS_NAMED]],
        "fabricated_count": len(audit.invalid_citations),
        "uncited": [shorten(each, 160) for each in audit.uncited_claims[:OFFENDERS_NAMED]],
        "uncited_count": len(audit.uncited_claims),
    }


def _changed_words(shown: str, corrected: str) -> Iterator[tuple[str, str]]:
    """Yield all words that a correction changes among their neighbours, so that a slip of the hand
    is seen.
    """
    changes = word_changes(shown, corrected)
    if all(each.kind == "same" or not each.text.strip() for each in changes):
        return
    for place, each in enumerate(changes):
        words = re.findall(r"\s*\S+\s*", each.text)
        if each.kind == "same" and len(words) > 2 * NEIGHBOURS:
            before = "".join(words[:NEIGHBOURS]) if place else ""
            after = "".join(words[-NEIGHBOURS:]) if place < len(changes) - 1 else ""
            yield each.kind, f"{before.rstrip()} … {after.lstrip()}" if before else f"…{after}"
        else:
            yield each.kind, each.text


def correction(decision: Decision, run: Run | None, case: Case) -> list[tuple[str, str]]:
    """Return the corrected answer of a decision in pieces against the answer it is about; nothing
    where it has none.

    Each piece is its kind ("same", "out", "in") and its words.
    """
    if decision.corrected_answer is None:
        return []
    same_run = run is not None and run.id == decision.run_id
    answer = (
        run.iterations[(decision.iteration or 1) - 1].answer
        if run and same_run
        else case.answer or ""
    )
    return [(each.kind, each.text) for each in word_changes(answer, decision.corrected_answer)]


def _kept_citations_text(kept: int, all_: int) -> str:
    """Say how many of the citations that came beside the original answer a corrected one keeps."""
    if not all_:
        return ""
    of = (
        f"{kept:,} of {count_noun(all_, 'citation')} beside the original answer"
        f" {'is' if kept == 1 else 'are'} kept"
    )
    return f"{of}: those of unchanged sentences." if kept < all_ else f"{of}."


def reasons(iteration: Iteration | None) -> dict[str, list[Data]]:
    """Return the reasons for each verdict, with those that the issues of an iteration suggest."""
    rules = {issue.rule for issue in iteration.issues} if iteration else set()
    return {
        verdict: [
            {
                "code": reason.code,
                "text": reason.text,
                "suggested": reason.code in suggest_reasons(verdict, rules),
            }
            for reason in reasons_for(verdict)
        ]
        for verdict in DECIDE
    }


class _Target(NamedTuple):
    key: str
    kind: Literal["claim", "reference", "sentence"]
    start: int
    end: int
    verdict: str


def _targets(iteration: Iteration) -> list[_Target]:
    """Claims, references and uncited sentences that have a place in the answer, in its order, each
    place once.
    """
    found: dict[str, _Target] = {}

    def add(
        kind: Literal["claim", "reference", "sentence"],
        start: int | None,
        end: int | None,
        verdict: str,
    ) -> None:
        if start is not None and end is not None and start < end:
            key = target_key(kind, start, end)
            found.setdefault(key, _Target(key, kind, start, end, verdict))

    for each in iteration.claims:
        add("claim", each.claim.start, each.claim.end, each.verdict)
    marks = reference_marks(iteration)
    for number, citation in enumerate(iteration.citation_audit.citations):
        add("reference", citation.start, citation.end, marks[number])
    for sentence in iteration.citation_audit.sentences:
        if sentence.status == "uncited":
            add("sentence", sentence.start, sentence.end, sentence.status)
    return sorted(found.values(), key=lambda target: (target.start, target.end))


def label_rows(iteration: Iteration) -> list[Data]:
    """Return what of an iteration can be labelled, with the machine's verdict on each."""
    return [
        {
            "key": target.key,
            "kind": target.kind,
            "text": shorten(iteration.answer[target.start : target.end], EXCERPT),
            "where": _words_before_reference(iteration.answer, target.start)
            if target.kind == "reference"
            else "",
            "machine": label(_WORDS[target.kind][target.verdict]),
            "verdict": target.verdict,
        }
        for target in _targets(iteration)[:ROWS_LABELLED]
    ]


def target_labels(iteration: Iteration, chosen: dict[str, str]) -> Iterable[TargetLabel]:
    """Return the labels given, each with the words it is about taken from the answer itself."""
    for target in _targets(iteration):
        if (given := chosen.get(target.key)) is not None:
            yield TargetLabel(
                target=target.kind,
                start=target.start,
                end=target.end,
                text=iteration.answer[target.start : target.end],
                label=given,
                note=(
                    "agrees with the audit"
                    if given == target.verdict
                    else f"the audit says {target.verdict}"
                ),
            )


def _words_before_reference(answer: str, start: int) -> str:
    """Return the last words before a reference, which distinguish one ``[1]`` from another."""
    words = answer[max(0, start - 60) : start].rstrip("[( ").replace("\n", " ")
    return words if start <= 60 else "…" + words.partition(" ")[2]


def choices() -> dict[str, list[tuple[str, str]]]:
    """Return the labels that can be given with their words, by what they are given to."""
    return {
        kind: [(code, _WORDS[kind][code].text) for code in codes] for kind, codes in CHOICES.items()
    }


def history(entries: Sequence[LogEntry]) -> list[Data]:
    """Return the log of a case in words, in the order given."""
    undone = {
        entry.decision.undoes for entry in entries if entry.decision and entry.decision.undoes
    }
    words = entry_texts(entries)
    return [_history_row(entry, words[entry.id], entry.id in undone) for entry in entries]


def with_audits(rows: list[Data], runs: Sequence[RunSummary]) -> list[Data]:
    """Return the history of a case with its finished audits among the entries of the log, the
    newest first.
    """
    finished = [run for run in runs if run.ended_at and run.state == "finished"]
    audits = [
        {
            **_history_row(
                None, Word("Audited" if run is finished[-1] else "Audited again", "calm"), False
            ),
            "id": run.id,
            "at": run.ended_at,
            "when": moment_utc(run.ended_at or ""),
            "who": run.asked_by,
        }
        for run in finished
    ]
    return sorted([*rows, *audits], key=lambda each: str(each["at"]), reverse=True)


def _history_row(entry: LogEntry | None, what: Word, undone: bool) -> Data:
    decision = entry.decision if entry else None
    return {
        "id": entry.id if entry else "",
        "at": entry.at if entry else "",
        "when": moment_utc(entry.at) if entry else "",
        "who": decision.reviewer if decision else "",
        "what": what.text,
        "tone": what.tone,
        "why": (
            (decision.reason or ", ".join((*decision.assignees, *decision.tags)))
            if decision
            else ""
        ),
        "note": decision.note if decision else "",
        "undone": undone,
        "corrected": bool(decision and decision.corrected_answer),
        "labels": len(decision.labels) - len(decision.reported) if decision else 0,
        "reported": _reported_rows(decision) if decision else [],
    }
