"""Declare what an audit can find wrong, once for all layers.

``RULES`` is the list of rules. A row says how its issues are named, how severe they are, under
which kind the headline counts them, which flag they set and which reason for review they give. The
tables that a row refers to follow it: ``ISSUE_TYPES``, ``KINDS``, ``FLAGS`` and ``REVIEW_CODES``.
Words, filters, the acceptance rule, headlines and docs/audits.md are made from these tables.

Four vocabularies are separate concepts and are declared elsewhere, each as one table: the statuses
and states of a case (``STANDING`` and ``STATE`` in ``masis/views/words.py``), the reasons that a
reviewer gives (``REASONS`` in ``masis/services/decision_rules.py``), the labels that a reviewer
sets (``masis/schema/review.py``) and the severities (``SEVERITY`` in ``masis/views/words.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from masis.schema.case import Severity

Tone = Literal["grave", "bad", "warn", "good", "calm", "busy"]
"""The tone of a label.

The style sheets map each tone to a light and a dark colour; ``grave`` is full red.
"""

IssueType = Literal[
    # CRITIC-LOOP-ISSUE
    "logical",
    "factual",
    "safety",
    "ambiguity",
    "missing_info",
    "incomplete_reasoning",
    # DRAFT-CRITIQUE-ISSUE
    "hallucination",
    "unsupported",
    "incomplete",
    "contradiction",
    "outdated",
]
ReviewCode = Literal[
    "hallucination",
    "invalid_reference",
    "contradicted_claim",
    "unsupported_claim",
    "partial_claim",
    "serious_issue",
    "safety",
    "instruction",
    "insufficient_evidence",
    "conflicting_evidence",
    "screening_draft",
    "answer_refused",
    "answer_failed",
    "unconfirmed_claim",
    "figure_not_in_evidence",
    "words_marked",
    "revised",
    "low_confidence",
    "low_quality",
    "disagreement",
    "judges_disagree",
    "unscored",
    "critic_not_run",
    "model_not_examined",
    "nothing_checked",
    "language",
    "not_all_checked",
    "error",
    "limit",
    "cancelled",
]
"""The codes of ``REVIEW_CODES``. A test checks that the two match."""
ReviewTier = Literal["must_look", "not_certified"]
ReviewStatus: TypeAlias = Literal["wrong", "not_confirmed", "no_answer"]


@dataclass(frozen=True, slots=True)
class TypeRow:
    """A type of issue.

    Attributes:
        critic_loop: The name of the type in CRITIC-LOOP-ISSUE.
        draft_critique: The name of the type in DRAFT-CRITIQUE-ISSUE.
        groundless: Whether the type says that the evidence doesn't support some words. All these
            types are one fault under several names.
        omission: Whether the type says that the answer leaves something out.
        is_about_statement: Whether the critic's issues of this type flag a statement, so that they
            stay open while the next answer still makes it. The next audit determines the status of
            issues of other types.

    """

    critic_loop: str
    draft_critique: str
    groundless: bool = False
    omission: bool = False
    is_about_statement: bool = True


ISSUE_TYPES: dict[IssueType, TypeRow] = {
    "logical": TypeRow("logical", "contradiction"),
    "factual": TypeRow("factual", "unsupported", groundless=True),
    "safety": TypeRow("safety", "unsupported"),
    "ambiguity": TypeRow("ambiguity", "incomplete", is_about_statement=False),
    "missing_info": TypeRow("missing_info", "incomplete", omission=True, is_about_statement=False),
    "incomplete_reasoning": TypeRow(
        "incomplete_reasoning", "incomplete", omission=True, is_about_statement=False
    ),
    "hallucination": TypeRow("factual", "hallucination", groundless=True),
    "unsupported": TypeRow("factual", "unsupported", groundless=True),
    "incomplete": TypeRow("missing_info", "incomplete", omission=True, is_about_statement=False),
    "contradiction": TypeRow("factual", "contradiction", groundless=True),
    "outdated": TypeRow("factual", "outdated", groundless=True),
}
"""The types of both specs, with their names in each of them."""

CRITIC_LOOP_TYPE = {name: row.critic_loop for name, row in ISSUE_TYPES.items()}
DRAFT_CRITIQUE_TYPE = {name: row.draft_critique for name, row in ISSUE_TYPES.items()}
GROUNDLESS = frozenset(name for name, row in ISSUE_TYPES.items() if row.groundless)
OMISSIONS = frozenset(name for name, row in ISSUE_TYPES.items() if row.omission)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of issue, as headlines name and count it.

    Attributes:
        one: The name of one such issue.
        many: The name of several.
        tone: The tone of the headline.
        prefix: The words that introduce the headline.
        counted_in_line: Whether the headline's sentence already contains the count.
        minor: Whether the case keeps the status "Nothing found" in spite of such an issue.
        per_claim: Whether the kind concerns the words of one claim rather than its sentence.
        absorbs: Whether the list of issues shows all issues about the same words under this one.
        is_issue: Whether the kind counts as an issue of the answer.

    """

    one: str
    many: str
    tone: Tone
    prefix: str = ""
    counted_in_line: bool = False
    minor: bool = False
    per_claim: bool = False
    absorbs: bool = False
    is_issue: bool = True


KINDS: dict[str, Kind] = {
    "failed": Kind("failed audit", "failed audits", "warn", is_issue=False),
    "no_answer": Kind("case without an answer", "cases without an answer", "warn", is_issue=False),
    "safety": Kind("safety issue", "safety issues", "bad"),
    "instruction": Kind("instruction to the reader", "instructions to the reader", "bad"),
    "fabricated": Kind(
        "fabricated citation", "fabricated citations", "bad", counted_in_line=True, absorbs=True
    ),
    "misquoted": Kind("false quotation", "false quotations", "bad", absorbs=True),
    "contradicted": Kind("contradicted claim", "contradicted claims", "bad", per_claim=True),
    "unsupported": Kind("unsupported claim", "unsupported claims", "bad", per_claim=True),
    "misattributed": Kind("misattributed citation", "misattributed citations", "bad"),
    "partial": Kind("partly supported claim", "partly supported claims", "bad", per_claim=True),
    "serious": Kind("serious issue by the critic", "serious issues by the critic", "bad"),
    "check": Kind("serious issue by an added check", "serious issues by added checks", "bad"),
    "reason": Kind("reason for review", "reasons for review", "bad", is_issue=False),
    "figure": Kind(
        "figure not in the evidence", "figures not in the evidence", "calm", counted_in_line=True
    ),
    "marked": Kind(
        "passage marked by the tagger",
        "passages marked by the tagger",
        "calm",
        counted_in_line=True,
    ),
    "missing": Kind("missing point", "missing points", "warn", prefix="Missing: ", minor=True),
    "uncited": Kind(
        "sentence without a citation",
        "sentences without a citation",
        "warn",
        counted_in_line=True,
        minor=True,
    ),
    "minor": Kind(
        "less serious issue by the critic", "less serious issues by the critic", "warn", minor=True
    ),
    "minor_check": Kind(
        "less serious issue by an added check",
        "less serious issues by added checks",
        "warn",
        minor=True,
    ),
    "conflict": Kind(
        "conflict between sources",
        "conflicts between sources",
        "warn",
        prefix="Sources disagree: ",
        minor=True,
    ),
    "unscored": Kind(
        "step without a result", "steps without a result", "calm", counted_in_line=True
    ),
    "unconfirmed": Kind(
        "claim not confirmed", "claims not confirmed", "calm", counted_in_line=True
    ),
    "uncertified": Kind("reason not to certify", "reasons not to certify", "calm", is_issue=False),
    "redundant": Kind("remark: redundant citation", "remarks: redundant citations", "calm"),
    "nothing": Kind("", "", "calm"),
}
"""The kinds of issues, most serious first.

The first kind that occurs becomes the headline, except for redundant citations.
"""


@dataclass(frozen=True, slots=True)
class IssueRule:
    """A rule of the audit. Its code is stored with each issue that it raises.

    Attributes:
        label: The short name of its issues.
        tone: The tone of the label.
        meaning: A sentence that explains the label.
        kind: The kind in ``KINDS`` under which headlines count its issues.
        type: The type of its issues.
        severity: The severity of its issues, or None if it depends on the case.
        flag: The flag in ``FLAGS`` that such an issue sets.
        review_code: The reason for review that such an issue gives.
        has_own_line: Whether the headline words the result of the check (its figures, quotations
            and references) instead of the issue's description.
        carried_with: How much of a statement the next answer must repeat for the issue to stay open
            in it (``masis/audit/carried.py``). ``words``: the flagged words with their figures.
            ``sentence``: most words of the sentence, because the sentence has no source and another
            figure doesn't give it one. None: only the next audit decides.
        is_fixed_by_citing: Whether another citation fixes it, so that the statement can stay.
        is_undecided: Whether it only says that nothing was confirmed, so that it causes no
            revision.
        gold_label: The gold label of a citation issue in labelled cases (``masis bench``).

    """

    label: str
    tone: Tone
    meaning: str
    kind: str
    type: IssueType
    severity: Severity | None = None
    flag: str = ""
    review_code: ReviewCode | None = None
    has_own_line: bool = False
    carried_with: Literal["words", "sentence"] | None = None
    is_fixed_by_citing: bool = False
    is_undecided: bool = False
    gold_label: str = ""


RULES: dict[str, IssueRule] = {
    "fabricated_reference": IssueRule(
        "fabricated",
        "bad",
        "Names evidence that doesn't exist",
        "fabricated",
        "hallucination",
        "critical",
        "invalid_reference",
        "invalid_reference",
        has_own_line=True,
        carried_with="sentence",
        is_fixed_by_citing=True,
        gold_label="fabricated_citation",
    ),
    "fabricated_quote": IssueRule(
        "fabricated quote",
        "bad",
        "A citation quotes words that aren't in the evidence",
        "misquoted",
        "hallucination",
        "critical",
        "misquoted",
        "hallucination",
        has_own_line=True,
        carried_with="sentence",
    ),
    "spliced_quote": IssueRule(
        "spliced quote",
        "bad",
        "A citation quotes words put together from several places",
        "misquoted",
        "factual",
        "high",
        "misquoted",
        "serious_issue",
        has_own_line=True,
        carried_with="sentence",
    ),
    "quote_from_another_document": IssueRule(
        "quoted elsewhere",
        "bad",
        "The quote is from a different chunk than the one cited",
        "misquoted",
        "factual",
        "high",
        "misquoted",
        "serious_issue",
        has_own_line=True,
        carried_with="sentence",
    ),
    "misattributed_reference": IssueRule(
        "misattributed",
        "warn",
        "Another chunk of evidence supports it",
        "misattributed",
        "factual",
        "high",
        "misattributed",
        "serious_issue",
        has_own_line=True,
        is_fixed_by_citing=True,
        gold_label="misattributed",
    ),
    "redundant_reference": IssueRule(
        "redundant",
        "calm",
        "A remark, not an issue: the other citations support the sentence without it",
        "redundant",
        "ambiguity",
        "low",
        "redundant",
        has_own_line=True,
        is_fixed_by_citing=True,
        gold_label="redundant",
    ),
    "uncited_sentence": IssueRule(
        "uncited",
        "warn",
        "Asserts something and cites nothing",
        "uncited",
        "unsupported",
        "medium",
        "uncited",
        has_own_line=True,
        is_fixed_by_citing=True,
        gold_label="uncited",
    ),
    "contradicted_claim": IssueRule(
        "contradicted",
        "bad",
        "The evidence contradicts it",
        "contradicted",
        "contradiction",
        flag="contradicted",
        review_code="contradicted_claim",
        has_own_line=True,
        carried_with="words",
    ),
    "unsupported_claim": IssueRule(
        "unsupported",
        "warn",
        "No evidence supports it",
        "unsupported",
        "unsupported",
        flag="unsupported",
        review_code="unsupported_claim",
        has_own_line=True,
        carried_with="words",
    ),
    "partly_supported_claim": IssueRule(
        "partly supported",
        "warn",
        "The evidence supports only part of it",
        "partial",
        "unsupported",
        flag="partial",
        review_code="partial_claim",
        has_own_line=True,
        carried_with="words",
    ),
    "unverifiable_claim": IssueRule(
        "not confirmed",
        "calm",
        "The checks couldn't decide it; that doesn't mean it's wrong",
        "unconfirmed",
        "missing_info",
        review_code="unconfirmed_claim",
        has_own_line=True,
        is_undecided=True,
    ),
    "unscored_claim": IssueRule(
        "unscored",
        "calm",
        "No verdict could be reached",
        "unscored",
        "missing_info",
        flag="unscored",
        review_code="unscored",
        has_own_line=True,
        is_undecided=True,
    ),
    "instruction_in_answer": IssueRule(
        "instruction",
        "bad",
        "Instructs a reader, a model or a tool",
        "instruction",
        "safety",
        "high",
        review_code="instruction",
    ),
    # Medium, because revising the answer can't fix the evidence, so the loop doesn't try. The
    # answer isn't accepted anyway.
    "instruction_in_evidence": IssueRule(
        "instruction in evidence",
        "bad",
        "Evidence instructs a reader, a model or a tool",
        "instruction",
        "safety",
        "medium",
        review_code="instruction",
    ),
    "missing_information": IssueRule(
        "missing point",
        "warn",
        "In the evidence, but not in the answer",
        "missing",
        "incomplete",
        "medium",
        "missing",
    ),
    "dropped_content": IssueRule(
        "dropped content",
        "warn",
        "An earlier version contained it, and the evidence supports it",
        "missing",
        "missing_info",
        "medium",
        "missing",
    ),
    "source_conflict": IssueRule(
        "source conflict",
        "warn",
        "Raised by the critic",
        "conflict",
        "contradiction",
        flag="conflicting_evidence",
    ),
}
"""The rules of the checks.

The critic's other rules are named by their type (``critic_`` and the type), which determines with
their severity how they are handled.
"""

_UNDECLARED = IssueRule("", "warn", "", "serious", "logical")


def rule_of(code: str) -> IssueRule:
    """Return the row of a rule; for the critic's rules and added checks, one with the defaults."""
    return RULES.get(code, _UNDECLARED)


@dataclass(frozen=True, slots=True)
class CaseFlag:
    """A sign that lists show and filter by.

    Attributes:
        label: Its name; empty if the label of its rule is used.
        tone: The tone of the label.
        meaning: A sentence that explains the label.
        about_run: Whether it says how the audit went, and nothing about the answer.
        says_wrong: Whether it says that the original answer is wrong.

    """

    label: str = ""
    tone: Tone | None = None
    meaning: str = ""
    about_run: bool = False
    says_wrong: bool = False


FLAGS: dict[str, CaseFlag] = {
    "invalid_reference": CaseFlag("fabricated citation", says_wrong=True),
    "contradicted": CaseFlag(says_wrong=True),
    "unsupported": CaseFlag(says_wrong=True),
    "misquoted": CaseFlag(
        "misquoted",
        "bad",
        "A citation quotes words that aren't in its evidence, or not in one place",
    ),
    "misattributed": CaseFlag(),
    "uncited": CaseFlag(),
    "conflicting_evidence": CaseFlag(
        "sources conflict", "warn", "Sources of the evidence contradict each other"
    ),
    "partial": CaseFlag(says_wrong=True),
    "missing": CaseFlag("missing point", "warn", "The evidence says it, but the answer doesn't"),
    "unscored": CaseFlag(tone="warn"),
    "error": CaseFlag("error", "bad", "A step of the audit failed", about_run=True),
    "cancelled": CaseFlag("cancelled", "calm", about_run=True),
    "no_answer": CaseFlag(
        "no answer",
        "warn",
        "The system refused or its call failed, so there was nothing to audit",
        about_run=True,
    ),
    "redundant": CaseFlag(),
    "drafted": CaseFlag("answer drafted by MASIS", "calm", about_run=True),
    "spot_check": CaseFlag("spot check", "calm", about_run=True),
}
"""The flags by weight; lists show the first few.

A flag of a rule that has no row here follows these, with the words of its rule. ``hallucination``
is missing because the flags here name its causes.
"""


@dataclass(frozen=True, slots=True)
class ReviewCodeRow:
    """A reason why a person should review an answer.

    Attributes:
        label: Its short name.
        tone: The tone of the label.
        status: The status of a case with this reason, whose name introduces the meaning.
        meaning: The explanation shown after the status.
        waivable: Whether a guarantee may waive it. Only doubts that a finished audit has about the
            original answer can be waived.
        about_answer: Whether it is specific to this answer, so that the headline may state it. A
            low score or an unread revision is true of most answers.

    """

    label: str
    tone: Tone
    status: ReviewStatus
    meaning: str
    waivable: bool = False
    about_answer: bool = False

    @property
    def tier(self) -> ReviewTier:
        """``must_look`` if something is wrong or unsafe, else ``not_certified``."""
        return "must_look" if self.status == "wrong" else "not_certified"


REVIEW_CODES: dict[ReviewCode, ReviewCodeRow] = {
    "invalid_reference": ReviewCodeRow(
        "fabricated citation", "bad", "wrong", "a reference doesn't match any evidence"
    ),
    "hallucination": ReviewCodeRow(
        "hallucination",
        "bad",
        "wrong",
        "the critic or the citation check reports a hallucination",
    ),
    "contradicted_claim": ReviewCodeRow(
        "contradicted", "bad", "wrong", "the evidence contradicts a claim"
    ),
    "unsupported_claim": ReviewCodeRow(
        "unsupported", "bad", "wrong", "the evidence does not support a claim"
    ),
    "partial_claim": ReviewCodeRow(
        "partly supported", "bad", "wrong", "the evidence supports a claim only in part"
    ),
    "serious_issue": ReviewCodeRow(
        "other serious issue",
        "bad",
        "wrong",
        "an issue of severity high or critical that no other reason explains",
    ),
    "safety": ReviewCodeRow("safety", "bad", "wrong", "a safety issue is open"),
    "instruction": ReviewCodeRow(
        "instruction", "bad", "wrong", "the answer or the evidence contains instructions"
    ),
    "insufficient_evidence": ReviewCodeRow(
        "too little evidence", "bad", "wrong", "the screening found too little"
    ),
    "conflicting_evidence": ReviewCodeRow(
        "sources conflict",
        "calm",
        "not_confirmed",
        "sources of the evidence conflict",
        about_answer=True,
    ),
    "not_all_checked": ReviewCodeRow(
        "not all checked",
        "calm",
        "not_confirmed",
        "a part exceeds the limits of the settings",
        about_answer=True,
    ),
    "screening_draft": ReviewCodeRow(
        "drafted from a screening",
        "calm",
        "not_confirmed",
        "no model has read the studies",
        about_answer=True,
    ),
    "answer_refused": ReviewCodeRow(
        "no answer: refused",
        "warn",
        "no_answer",
        "the system or a filter declined the question",
        about_answer=True,
    ),
    "answer_failed": ReviewCodeRow(
        "no answer: failed",
        "warn",
        "no_answer",
        "the call of the system failed or was cut off",
        about_answer=True,
    ),
    "language": ReviewCodeRow(
        "language",
        "calm",
        "not_confirmed",
        "the verifier does not support the language",
        waivable=True,
        about_answer=True,
    ),
    "unconfirmed_claim": ReviewCodeRow(
        "not confirmed",
        "calm",
        "not_confirmed",
        "the checks could not decide a claim",
        waivable=True,
    ),
    "figure_not_in_evidence": ReviewCodeRow(
        "figure to check",
        "calm",
        "not_confirmed",
        "a figure isn't in the evidence; it may be calculated",
    ),
    "words_marked": ReviewCodeRow(
        "marked words",
        "calm",
        "not_confirmed",
        "a tagger finds no support for words of the answer",
    ),
    "revised": ReviewCodeRow(
        "revised",
        "calm",
        "not_confirmed",
        "nobody has read the revision that the audit suggests",
    ),
    "low_confidence": ReviewCodeRow(
        "low confidence",
        "calm",
        "not_confirmed",
        "confidence is below the threshold",
        waivable=True,
    ),
    "low_quality": ReviewCodeRow(
        "low quality", "calm", "not_confirmed", "quality is below the threshold", waivable=True
    ),
    "disagreement": ReviewCodeRow(
        "disagreement", "calm", "not_confirmed", "its judges disagree", waivable=True
    ),
    "model_not_examined": ReviewCodeRow(
        "no exam",
        "calm",
        "not_confirmed",
        "a judging model hasn't passed the exam (masis models exam)",
    ),
    "critic_not_run": ReviewCodeRow(
        "critic not run",
        "calm",
        "not_confirmed",
        "the audit was quick, without a critic",
        about_answer=True,
    ),
    "judges_disagree": ReviewCodeRow(
        "samples differ",
        "calm",
        "not_confirmed",
        "the judge's samples disagree",
        waivable=True,
        about_answer=True,
    ),
    "unscored": ReviewCodeRow("unscored", "calm", "not_confirmed", "a requested step has no score"),
    "nothing_checked": ReviewCodeRow(
        "not checked",
        "calm",
        "not_confirmed",
        "there was nothing to check, or no citation",
        waivable=True,
        about_answer=True,
    ),
    "error": ReviewCodeRow(
        "audit failed",
        "calm",
        "not_confirmed",
        "the audit ended with an error",
        about_answer=True,
    ),
    "limit": ReviewCodeRow(
        "limit reached",
        "calm",
        "not_confirmed",
        "serious issues remained when the iteration limit was reached",
    ),
    "cancelled": ReviewCodeRow(
        "audit cancelled",
        "calm",
        "not_confirmed",
        "the audit was cancelled",
        about_answer=True,
    ),
}
"""The reasons why a run needs review, most urgent first."""

MUST_LOOK: frozenset[ReviewCode] = frozenset(
    code for code, row in REVIEW_CODES.items() if row.tier == "must_look"
)
"""Reasons that say something is wrong or unsafe.

The other reasons say that the answer couldn't be certified.
"""


CHECKS: dict[str, str] = {
    "answered": "Answer of the system",
    "references": "References",
    "hallucination": "Hallucination",
    "claims": "Claims",
    "serious_issues": "Serious issues",
    "safety": "Safety",
    "instructions": "Instructions in texts",
    "screening": "Screening",
    "original": "Answer chosen",
    "confidence": "Confidence",
    "quality": "Quality",
    "disagreement": "Disagreement",
    "scored": "Scores",
    "checkable": "What was checked",
    "limits": "Limits",
    "examined": "Exam",
    "cites": "Citations",
    "ending": "End of the loop",
}
"""The checks of the acceptance rule in their order, with their titles."""


def rules_with_flag(flag: str) -> tuple[str, ...]:
    """Return the codes of the rules whose issues set a flag."""
    return tuple(code for code, rule in RULES.items() if rule.flag == flag)


def flag_names() -> tuple[str, ...]:
    """Return the flags by weight: those of ``FLAGS``, then the others that rules set."""
    return tuple(dict.fromkeys([*FLAGS, *(rule.flag for rule in RULES.values() if rule.flag)]))
