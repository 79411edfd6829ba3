"""The rules for valid decisions, and the reasons that a reviewer can give. All functions are pure.

``problems`` is the only place with the rules. The page, the desk, an adjudication and the commands
call it before they record a decision, and ``ReviewService`` calls it again when recording.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from masis.api.audits import audit_citations, citations_kept
from masis.errors import InputError
from masis.schema.audit import Issue
from masis.schema.case import Case
from masis.schema.labels import TargetLabel, is_serious_fault
from masis.schema.review import AdjudicationCause, Decision, Verdict
from masis.schema.wording import count_noun, shorten
from masis.settings import Settings
from masis.trust.machine import FORM_ONLY

# The reasons that a reviewer can choose with one key, so that decisions can be counted by reason.
#
# The list follows the issues that the audit can raise (fabricated, misattributed, contradicted) and
# adds reasons that only a person can see. ``other`` asks for the reviewer's own words.

OTHER = "other"

REASON_CODE = "reason_code"
"""Key in an entry's ``extra``: the code of its reason.

Figures count by the code, because the words are for people and may change.
"""

REASON_CODES = "reason_codes"
"""Key in an entry's ``extra``: the codes of all its reasons, if it has several."""


class ReviewReasonChoice(NamedTuple):
    """One reason.

    ``rules`` are the audit rules whose issues suggest it. ``labels`` are the reviewer's own labels
    on parts of the answer and the types of reported issues that suggest it. ``about_issues`` says
    that it judges the issues of the audit, so that only people who see an audit are offered it.
    """

    code: str
    text: str
    verdicts: tuple[Verdict, ...]
    rules: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    about_issues: bool = False


_FAULT: tuple[Verdict, ...] = ("override", "reject")

REASONS: dict[str, ReviewReasonChoice] = {
    reason.code: reason
    for reason in (
        ReviewReasonChoice(
            "fabricated_citation",
            "Cites evidence that does not exist",
            _FAULT,
            ("fabricated_reference",),
            ("fabricated", "fabricated citation"),
        ),
        ReviewReasonChoice(
            "wrong_citation",
            "Cites the wrong evidence",
            _FAULT,
            ("misattributed_reference", "redundant_reference"),
            ("misattributed", "redundant"),
        ),
        ReviewReasonChoice(
            "contradicted",
            "The evidence contradicts it",
            _FAULT,
            ("contradicted_claim",),
            ("contradicted", "contradicts"),
        ),
        ReviewReasonChoice(
            "unsupported",
            "Says more than the evidence",
            _FAULT,
            ("unsupported_claim", "partly_supported_claim"),
            ("unsupported", "partial"),
        ),
        ReviewReasonChoice(
            "uncited", "Claims without a citation", _FAULT, ("uncited_sentence",), ("uncited",)
        ),
        ReviewReasonChoice(
            "incomplete",
            "A point that matters is missing",
            _FAULT,
            ("missing_information", "dropped_content"),
            ("incomplete",),
        ),
        ReviewReasonChoice("misses_the_question", "Does not answer the question", _FAULT),
        ReviewReasonChoice("unclear", "Unclear or badly argued", _FAULT),
        ReviewReasonChoice(
            "unsafe", "Could harm somebody", _FAULT, ("critic_safety",), ("unsafe",)
        ),
        ReviewReasonChoice(
            "findings_wrong", "The issues raised are wrong", ("approve",), about_issues=True
        ),
        ReviewReasonChoice(
            "findings_harmless", "The issues raised are harmless", ("approve",), about_issues=True
        ),
        ReviewReasonChoice("checked", "Checked against the evidence", ("approve",)),
        ReviewReasonChoice("needs_evidence", "Needs more evidence", ("escalate",)),
        ReviewReasonChoice("needs_specialist", "Needs someone who knows the field", ("escalate",)),
        ReviewReasonChoice("at_risk", "Legal or safety risk", ("escalate",), ("critic_safety",)),
        ReviewReasonChoice("sources_conflict", "The sources conflict", ("escalate",)),
        ReviewReasonChoice("question_unclear", "The question is unclear", ("escalate",)),
        ReviewReasonChoice(OTHER, "Other", ("approve", *_FAULT, "escalate")),
    )
}
"""The reasons by code. Forms, the command line, hints and recorded codes all follow this table."""


class DisagreementCause(NamedTuple):
    """Why reviewers differed, as an adjudicator says it.

    ``proposes`` says that the adjudicator can propose a sentence for the rubric.
    """

    text: str
    meaning: str
    proposes: bool = False


CAUSES: dict[AdjudicationCause, DisagreementCause] = {
    "slip": DisagreementCause("A slip", "a reviewer overlooked or mistook something"),
    "ambiguous": DisagreementCause("Ambiguous text", "the text can be read in two ways"),
    "gap": DisagreementCause(
        "A gap in the guideline", "the rubric doesn't say how to decide this", proposes=True
    ),
}
"""The causes by code. The form, the Team page and the counts follow this table."""


def reasons_for(verdict: Verdict, *, sees_issues: bool = True) -> tuple[ReviewReasonChoice, ...]:
    """Return the reasons that can be given with a verdict; ``other`` is the last one.

    ``sees_issues`` says whether the reviewer sees the issues of an audit.
    """
    offered = [
        reason
        for reason in REASONS.values()
        if verdict in reason.verdicts and (sees_issues or not reason.about_issues)
    ]
    # sorted is stable, so only "other" changes its place.
    return tuple(sorted(offered, key=lambda reason: reason.code == OTHER))


def suggest_reasons(verdict: Verdict, rules: Collection[str]) -> tuple[str, ...]:
    """Return the codes of the reasons that issues of these rules suggest."""
    return tuple(
        reason.code
        for reason in reasons_for(verdict)
        if any(rule in rules for rule in reason.rules)
    )


def reason_text(code: str, own_words: str = "") -> str:
    """Return the words of a reason for the log.

    They are the reviewer's own words for ``other``, and "" for an unknown code.
    """
    if code == OTHER:
        return own_words.strip()
    known = REASONS.get(code)
    return known.text if known else ""


def reasons_given(codes: Sequence[str], own_words: str = "") -> tuple[str, dict[str, Any]]:
    """Return the words of several reasons for the log, and the ``extra`` of an entry for them.

    The first reason counts in figures. One that concerns the facts comes before one that doesn't,
    because the answer counts as right otherwise.
    """
    ordered = sorted(codes, key=lambda code: code in FORM_ONLY)
    text = "; ".join(filter(None, (reason_text(code, own_words) for code in ordered)))
    if not ordered or (not text and OTHER not in ordered):
        return "", {}
    several = {REASON_CODES: ordered} if len(ordered) > 1 else {}
    return text, {REASON_CODE: ordered[0], **several}


def own_words(text: str, codes: Sequence[str]) -> str:
    """Return the reviewer's own words among the words of these reasons (``reasons_given``)."""
    if OTHER not in codes:
        return ""
    before, after = codes[: codes.index(OTHER)], codes[codes.index(OTHER) + 1 :]
    text = text.removeprefix("".join(f"{reason_text(code)}; " for code in before))
    return text.removesuffix("".join(f"; {reason_text(code)}" for code in after))


def code_of(verdict: Verdict, words: str) -> str:
    """Return the code of a reason that is given by its code or its words.

    Returns:
        A code of ``reasons_for(verdict)``; ``other`` for the reviewer's own words, "" for none.

    """
    words = words.strip()
    if not words:
        return ""
    matches = (reason for reason in reasons_for(verdict) if words in (reason.code, reason.text))
    return next((reason.code for reason in matches if reason.code != OTHER), OTHER)


def reason_codes(verdict: Verdict) -> str:
    """Return the codes of the reasons for a verdict, as a message lists them."""
    return ", ".join(reason.code for reason in reasons_for(verdict) if reason.code != OTHER)


def reason_and_code(verdict: Verdict, reason: str) -> tuple[str, str]:
    """Return the words of a reason and its code.

    Args:
        verdict: The verdict.
        reason: A fixed reason's code or words, or the reviewer's own words.

    Raises:
        InputError: The reason is a single word that isn't a code.

    """
    if (code := code_of(verdict, reason)) not in ("", OTHER):
        return reason_text(code), code
    word, _, own = reason.strip().partition(":")
    if word.lower() == OTHER and own.strip():
        return own.strip(), OTHER
    # A single word is probably a misspelled code, so it isn't recorded as the reviewer's own words.
    if re.fullmatch(r"[A-Za-z_-]+", reason.strip()):
        raise InputError(
            f"is {reason[:40]!r}, which isn't a reason to {verdict}",
            hint=f"Use one of {reason_codes(verdict)}, or your own words as 'other: ...'.",
            field="reason",
        )
    return reason.strip(), OTHER if reason.strip() else ""


def with_reason_code(decision: Decision) -> Decision:
    """Return the decision with the code of its reason.

    A lead types the reason of a final verdict, and a program may pass words only, so the code is
    derived from the words when a decision is recorded.
    """
    if decision.verdict is None or REASON_CODE in decision.extra:
        return decision
    code = code_of(decision.verdict, decision.reason)
    if not code:
        return decision
    return decision.model_copy(update={"extra": decision.extra | {REASON_CODE: code}})


# The rules for a valid decision.

ProblemCode = Literal[
    "answer_missing",
    "correction_missing",
    "correction_changes_nothing",
    "correction_unused",
    "citations_unknown",
    "own_words_missing",
    "reason_missing",
    "serious_issues_open",
]

REASON_NEEDED: dict[Verdict, str] = {
    "override": "a correction needs one",
    "reject": "a rejection needs one",
}
"""Why a reason is needed, by verdict. Other verdicts need none."""

NEEDS_REASON: frozenset[Verdict] = frozenset(REASON_NEEDED)
"""The verdicts that need a reason."""

ISSUES_SEEN = "issues_seen"
"""Key in an entry's ``extra``: the serious issues that were open and shown when the answer was
approved.
"""

LABELS_SEEN = "own_labels_seen"
"""Key in an entry's ``extra``: the reviewer's own serious labels (``label_key``) that were listed
when they approved the answer.
"""

CITATIONS_KEPT = "citations_kept"
"""Key in an entry's ``extra``: the references of the corrected answer that don't name evidence,
which the reviewer was shown and kept.
"""

REFERENCES_NAMED = 5
"""The number of references that a problem repeats."""

ISSUES_NAMED = 3
"""The number of serious issues whose descriptions a problem repeats."""


@dataclass(frozen=True)
class DecisionProblem:
    """A reason why a decision isn't valid, with the field of the decision and a hint."""

    code: ProblemCode
    field: Literal["corrected_answer", "reason", "verdict"]
    message: str
    hint: str

    @property
    def sentence(self) -> str:
        """The message and the hint, as a page shows them."""
        return f"{self.message[:1].upper()}{self.message[1:]}. {self.hint}"

    def as_error(self, hint: str = "") -> InputError:
        """Return the problem as an error; a command passes a ``hint`` that names its options."""
        return InputError(self.message, hint=hint or self.hint, field=self.field)


@dataclass(frozen=True)
class DecidedAnswer:
    """The parts of the judged answer that the rules need.

    ``text`` is None if retention has removed it. ``serious`` has the open issues of severity high
    or critical; it is empty if the reviewer may not see them. ``final_needs_reason`` says why a
    final verdict needs a reason, or is "". ``unknown_citations`` are the references of the
    decision's corrected answer that don't name evidence (``unknown_citations``).
    """

    text: str | None
    serious: tuple[Issue, ...] = ()
    final_needs_reason: str = ""
    unknown_citations: tuple[str, ...] = ()


def why_final_needs_reason(
    verdict: Verdict | None, of_reviewers: Collection[Verdict | None], *, reviewers_differ: bool
) -> str:
    """Return why a final verdict needs a reason, or "" if it doesn't.

    It doesn't if reviewers differ and the verdict approves the answer as one of them did.
    """
    if verdict not in (None, "approve"):
        return "every verdict except an approval needs one"
    if not reviewers_differ:
        return "it replaces a verdict in force"
    return "" if verdict in (None, *of_reviewers) else "no reviewer approved the answer"


def is_unchanged(corrected: str, answer: str) -> bool:
    """Return whether a corrected answer equals the answer, apart from whitespace."""
    # A text area may change line breaks and blanks at the ends of lines.
    return corrected.split() == answer.split()


def seen_issues(issues: Iterable[Issue]) -> dict[str, Any]:
    """Return the ``extra`` of an entry for serious issues that the reviewer was shown."""
    named = {"id", "rule", "severity", "description"}
    seen = [issue.model_dump(mode="json", include=named) for issue in issues]
    return {ISSUES_SEEN: seen} if seen else {}


def label_key(label: TargetLabel) -> str:
    """Return the name of a label on the answer, such as ``claim:0-12:contradicted``.

    ``components/desk.js`` builds the same one.
    """
    place = "" if label.start is None else f"{label.start}-{label.end}"
    return f"{label.target}:{place}:{label.label}"


def seen_labels(labels: Iterable[TargetLabel]) -> dict[str, Any]:
    """Return the ``extra`` of an entry for own serious labels that the reviewer was shown."""
    seen = [label_key(label) for label in labels if is_serious_fault(label)]
    return {LABELS_SEEN: seen} if seen else {}


def unknown_citations(
    corrected: str, case: Case, settings: Settings | None = None
) -> tuple[str, ...]:
    """Return the references of a corrected answer that don't name evidence of its case.

    Only the answer's text and the evidence are read, and no audit.
    """
    audited = audit_citations(
        corrected, case.evidence, settings, citations=citations_kept(case, corrected)
    )
    return tuple(dict.fromkeys(audited.invalid_citations))


def kept_citations(references: Collection[str]) -> dict[str, Any]:
    """Return the ``extra`` of an entry for unknown references that the reviewer keeps."""
    return {CITATIONS_KEPT: list(references)} if references else {}


def problems(decision: Decision, answer: DecidedAnswer) -> list[DecisionProblem]:
    """Return why a decision or an adjudication isn't valid, in the order of the form."""
    return [
        *_problems_of_correction(decision, answer),
        *_problems_of_reason(decision, answer),
        *_problems_of_approval(decision, answer),
        *_unknown_citations(decision, answer),
    ]


def _problems_of_correction(decision: Decision, answer: DecidedAnswer) -> list[DecisionProblem]:
    corrected = decision.corrected_answer
    if decision.verdict != "override":
        if corrected is None:
            return []
        unused = "a corrected answer needs the verdict override"
        return [
            DecisionProblem(
                "correction_unused", "corrected_answer", unused, "Leave it out, or override."
            )
        ]
    if corrected is None or not corrected.strip():
        hint = "Correct the answer, or approve it as it is."
        return [
            DecisionProblem(
                "correction_missing", "corrected_answer", "the corrected answer is missing", hint
            )
        ]
    if answer.text is not None and is_unchanged(corrected, answer.text):
        nothing = "the corrected answer changes nothing in the answer"
        hint = "Change it, or approve the answer."
        return [DecisionProblem("correction_changes_nothing", "corrected_answer", nothing, hint)]
    return []


def _unknown_citations(decision: Decision, answer: DecidedAnswer) -> list[DecisionProblem]:
    """Return a question if the correction cites what doesn't exist. It comes after the defects."""
    if decision.verdict != "override" or _problems_of_correction(decision, answer):
        return []
    kept = decision.extra.get(CITATIONS_KEPT, ())
    unknown = [reference for reference in answer.unknown_citations if reference not in kept]
    if unknown:
        cites = f"the corrected answer cites {_references_text(unknown)}"
        hint = "Correct the citation, or acknowledge it to keep it as it is."
        return [DecisionProblem("citations_unknown", "corrected_answer", cites, hint)]
    return []


def _references_text(references: Sequence[str]) -> str:
    named = [f"“{shorten(reference, 60)}”" for reference in references[:REFERENCES_NAMED]]
    more = len(references) - len(named)
    listed = ", ".join(named) + (f" and {more:,} more" if more else "")
    verb = "doesn't" if len(references) == 1 else "don't"
    return f"{listed}, which {verb} match any evidence"


def _problems_of_reason(decision: Decision, answer: DecidedAnswer) -> list[DecisionProblem]:
    # A note is in the reviewer's own words, too. An adjudication has none.
    if decision.reason.strip() or decision.note.strip():
        return []
    if decision.extra.get(REASON_CODE) == OTHER:
        hint = "Write it in your own words, or choose another."
        return [DecisionProblem("own_words_missing", "reason", "the reason has no words", hint)]
    if decision.kind == "adjudication":
        why = answer.final_needs_reason
    else:
        why = REASON_NEEDED.get(decision.verdict, "") if decision.verdict else ""
    if not why:
        return []
    hint = "Choose one, or write a note."
    return [DecisionProblem("reason_missing", "reason", f"a reason is missing: {why}", hint)]


def _problems_of_approval(decision: Decision, answer: DecidedAnswer) -> list[DecisionProblem]:
    """Return a problem if there is no answer to approve, or serious issues would stay open unseen.

    An approval lists each serious issue that it leaves open, which shows that the reviewer was
    shown the issues. The reviewer's own serious labels are such issues, too. A final verdict has
    the labels of other people.
    """
    if decision.verdict != "approve":
        return []
    if answer.text is not None and not answer.text.strip():
        hint = "Write one (override), reject the case, or escalate it."
        return [DecisionProblem("answer_missing", "verdict", "there is no answer to approve", hint)]
    seen = {issue.get("id") for issue in decision.extra.get(ISSUES_SEEN, ())}
    unseen = [issue for issue in answer.serious if issue.id not in seen]
    listed = decision.extra.get(LABELS_SEEN, ())
    own = [
        label
        for label in decision.labels
        if decision.kind == "decision"
        and is_serious_fault(label)
        and label_key(label) not in listed
    ]
    if not unseen and not own:
        return []
    described = [issue.description.rstrip(".") for issue in unseen]
    described += [
        f"{label.label}, by your own label"
        + (f": “{shorten(label.text, 60)}”" if label.text else "")
        for label in own
    ]
    named = "; ".join(described[:ISSUES_NAMED])
    count = count_noun(len(described), "serious issue")
    would = f"would approve an answer with {count} open: {named}"
    return [
        DecisionProblem(
            "serious_issues_open", "verdict", would, "Read them, then acknowledge them."
        )
    ]
