"""The results of auditing one answer: citations, claims, issues, critique, revision, evaluation.

Offsets are character positions in the text named; the start is included and the end excluded, so
``answer[start:end] == text``. Scores run from 0 to 1. None means unscored, which is never the same
as zero.
"""

from __future__ import annotations

from typing import Literal

from masis.schema.base import Record, Share, Unscored
from masis.schema.calls import ModelCall
from masis.schema.case import ClaimVerdict, Severity
from masis.schema.display import OneLine
from masis.schema.judge import HouseRuling
from masis.schema.rules import IssueType
from masis.schema.wording import count_noun, shorten

ResolvedBy = Literal["exact", "normalised", "suffix", "position", "source", "given"]
"""How a reference was matched to its evidence.

``exact`` matches the id literally; ``normalised`` ignores case and blanks; ``suffix`` matches a
bare number to the only id that ends in it; ``position`` counts chunks from 1 if ids are opaque;
``source`` matches a link or name to the evidence's source; ``given`` came with the answer.
"""

SentenceStatus = Literal["cited", "uncited", "exempt"]
ReferenceFinding = Literal[
    "supports",
    "partly_supports",
    "misattributed",
    "redundant",
    "unsupported",
    "contradicts",
    "unchecked",
]


class Citation(Record):
    """One reference inside a marker: ``[1, 99]`` is one marker and two citations.

    ``start`` to ``end`` span the reference itself: ``99``, or the whole ``1-3`` for each member of
    a range. ``marker_start`` to ``marker_end`` span its marker, ``[1, 99]``. A citation that came
    with the answer has no marker: both offsets equal its ``end``, and ``start`` to ``end`` is the
    part of one sentence that it covers.
    """

    start: int
    end: int
    text: str
    reference: str
    marker_start: int
    marker_end: int
    evidence_id: str | None
    status: Literal["valid", "invalid"]
    resolved_by: ResolvedBy | None
    sentence: int | None = None


class Sentence(Record):
    """One sentence of the answer; ``why`` explains its status in plain words."""

    start: int
    end: int
    text: str
    citation_ids: tuple[str, ...]
    status: SentenceStatus
    why: str


class QuoteCheck(Record):
    """Whether the quote of a citation that came with the answer is in the evidence it names.

    ``start`` and ``end`` are offsets in the answer. ``evidence_start`` and ``evidence_end`` locate
    the quote in the evidence named, or in ``found_in``.
    """

    start: int
    end: int
    evidence_id: str
    quote: str
    finding: Literal["verbatim", "fabricated", "spliced", "other_document"]
    found_in: str | None = None
    evidence_start: int | None = None
    evidence_end: int | None = None


class CitationAudit(OneLine, Record):
    """The citations of an answer and its uncited sentences (MASIS-CRITIC-P3, MASIS-CRITIC-P4).

    Attributes:
        invalid_citations: References that don't name evidence, as written, in order of appearance.
        carried_references: Invalid references of an earlier answer whose sentences are still
            unconfirmed although their markers were removed.
        penalty_factor: The factor by which the critic's confidence is multiplied.

    """

    mode: Literal["standard", "literal"]
    citations: tuple[Citation, ...]
    sentences: tuple[Sentence, ...]
    invalid_citations: tuple[str, ...]
    uncited_claims: tuple[str, ...]
    hallucination_detected: bool
    needs_retry: bool
    penalty_factor: Share
    quotes: tuple[QuoteCheck, ...] = ()
    carried_references: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return the counts on one line; the records of a long answer would fill pages."""
        invalid, uncited = ", ".join(self.invalid_citations[:10]), len(self.uncited_claims)
        counts = f"{count_noun(len(self.citations), 'reference')}, invalid: {invalid or 'none'}"
        return f"<CitationAudit: {counts}, {count_noun(uncited, 'sentence')} without a citation>"


class Quote(Record):
    """A passage of evidence that supports or contradicts a claim.

    ``evidence.text[start:end] == text``.
    """

    evidence_id: str
    start: int
    end: int
    text: str
    score: Share


class Contradiction(Record):
    """A fact of the claim that differs from the same fact in the evidence.

    ``claim_start`` and ``claim_end`` are offsets in the claim's text, and ``evidence_text`` is the
    evidence's value. ``kind`` is the kind of fact (a number, a date, ...). It is ``stated`` if a
    model reported the contradiction, and ``source`` if the claim differs from the line that names
    the chunk's source. In that case, ``evidence_text`` is that line, which isn't part of the
    chunk's text.
    """

    kind: str
    claim_start: int
    claim_end: int
    claim_text: str
    evidence_id: str
    evidence_start: int
    evidence_end: int
    evidence_text: str
    reason: str
    strength: Share = 1.0


class AbsentFigure(Record):
    """A figure of a claim that isn't in the evidence.

    It may be calculated, so it isn't reported as wrong. ``claim_start`` and ``claim_end`` are
    offsets in the claim's text.
    """

    kind: Literal["number", "date"]
    claim_start: int
    claim_end: int
    claim_text: str


class MarkedWords(Record):
    """Words of a claim that a tagger considers unsupported: a reason to look, not a verdict.

    ``claim_start`` and ``claim_end`` are offsets in the claim's text.
    """

    claim_start: int
    claim_end: int
    claim_text: str


class Claim(Record):
    """Something that the answer asserts.

    Attributes:
        text: The words of the answer.
        statement: The claim reworded so that it can be understood alone; empty if it wasn't
            reworded.
        markers: Spans of ``text`` that are citation markers and assert nothing.
        start: Offset in the answer; None for a claim without an answer.
        end: Offset in the answer; None for a claim without an answer.
        cited: The evidence ids that the markers resolve to.

    """

    text: str
    statement: str = ""
    markers: tuple[tuple[int, int], ...] = ()
    start: int | None = None
    end: int | None = None
    sentence: int | None = None
    cited: tuple[str, ...] = ()


class ReferenceCheck(Record):
    """Whether a cited chunk supports the sentence that cites it.

    ``better`` names another chunk that does, if there is one.
    """

    evidence_id: str
    finding: ReferenceFinding
    support: Share | None
    better: str | None = None
    reason: str = ""


class ClaimCheck(OneLine, Record):
    """The verdict on one claim.

    Attributes:
        support: How far the evidence supports the claim; None if there is nothing to check against.
        confidence: How sure the verifier is of the verdict.
        sources: Ids of the evidence that supports or contradicts the claim.
        uncovered: The spans of the claim's text that no evidence covers.
        figures: Figures of the claim that aren't in the evidence.
        marked: Words that a tagger considers unsupported.
        steps: How the claim follows if no passage says it outright, for example the calculation.
        abstained: Why a verdict was withheld, if the verifier didn't do so itself. Claim or
            evidence is in an unsupported language (``language``), instructs its reader
            (``instruction``) or exceeds a limit (``limits``); the verifier's quotation isn't in the
            evidence (``quotation``); or claim or evidence can be read either way (``either_way``).
        sources_disagree: Whether one chunk supports the claim and another denies it.

    """

    claim: Claim
    verdict: ClaimVerdict
    support: Share | None
    confidence: Share | None
    sources: tuple[str, ...] = ()
    quotes: tuple[Quote, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    figures: tuple[AbsentFigure, ...] = ()
    marked: tuple[MarkedWords, ...] = ()
    references: tuple[ReferenceCheck, ...] = ()
    uncovered: tuple[tuple[int, int], ...] = ()
    issue: str | None = None
    steps: str = ""
    judged_by: str = "offline"
    unscored: Unscored | None = None
    abstained: Literal["language", "instruction", "limits", "quotation", "either_way"] | None = None
    sources_disagree: bool = False

    def __repr__(self) -> str:
        of = f" by {', '.join(self.sources[:5])}" if self.sources else ""
        return f"<ClaimCheck: {self.verdict}{of}: {shorten(self.claim.text, 80)!r}>"

    @property
    def verified(self) -> bool:
        """Return whether the evidence supports the whole claim."""
        return self.verdict == "supported"


class MissingPoint(Record):
    """Something the question asks for and the evidence says, but the answer leaves out."""

    description: str
    evidence_id: str | None = None
    start: int | None = None
    end: int | None = None
    weight: Share = 0.5


class Escalation(Record):
    """The results of two verifiers in a row: ``first`` judged all claims, ``second`` the rest.

    ``settled`` and ``escalated`` count claims. ``calls`` counts the language model calls for
    escalated claims, and ``calls_saved`` the further calls that the second verifier alone would
    have made. ``cost_saved_usd`` estimates their cost; None if no price is known.
    """

    first: str
    second: str
    settled: int
    escalated: int
    calls: int = 0
    calls_saved: int = 0
    cost_saved_usd: float | None = None

    def plus(self, other: Escalation) -> Escalation:
        """Return the sum of both."""
        counts = ("settled", "escalated", "calls", "calls_saved")
        both = {name: getattr(self, name) + getattr(other, name) for name in counts}
        costs = [cost for cost in (self.cost_saved_usd, other.cost_saved_usd) if cost is not None]
        return self.model_copy(update={**both, "cost_saved_usd": sum(costs) if costs else None})


class ClaimReport(Record):
    """All claims of one answer in figures.

    Attributes:
        confidence: (mean support + share verified) / 2 (DRAFT-CRITIQUE-CONFIDENCE); None if claims
            couldn't be extracted (``unscored``).
        completeness_unscored: Why missing points couldn't be determined.
        escalation: Set if two verifiers judged in a row.
        unchecked: The parts beyond the limits of the settings, in words.

    """

    missing: tuple[MissingPoint, ...] = ()
    confidence: Share | None
    facts_checked: int
    facts_verified: int
    sources_used: tuple[str, ...] = ()
    unscored: Unscored | None = None
    completeness_unscored: Unscored | None = None
    escalation: Escalation | None = None
    unchecked: tuple[str, ...] = ()


IssueSource = Literal["citations", "claims", "critic", "instructions", "checks"]
"""``checks`` are those that other packages add (``masis.audit.checks``)."""


class Issue(Record):
    """One problem found in the answer, from any source.

    Attributes:
        id: Unique within its iteration.
        key: Stays the same while the same words have the same problem, so that an issue can be
            followed across iterations.
        rule: The rule that raised it, such as ``fabricated_reference``.
        start: Offset in the answer.
        end: Offset in the answer.
        evidence_start: Offset in the text of its only chunk, if it concerns a part of the evidence.
        evidence_end: Offset in the same text.
        carried_from: The iteration that raised the issue, if a revision left it open: its words are
            still unconfirmed although no check raised it again.
        point: The missing point as the completeness check describes it (rule
            ``missing_information``); "" for all other issues.

    """

    id: str
    key: str
    source: IssueSource
    type: IssueType
    rule: str
    severity: Severity
    description: str
    reason: str
    suggestion: str
    start: int | None = None
    end: int | None = None
    quote: str | None = None
    evidence_ids: tuple[str, ...] = ()
    evidence_start: int | None = None
    evidence_end: int | None = None
    carried_from: int | None = None
    point: str = ""

    @property
    def major(self) -> bool:
        """Whether the issue keeps the loop going while it is open (CRITIC-LOOP-CRITIC-OUTPUT)."""
        return self.severity in ("critical", "high")


class FiredRule(Record):
    """A rule of the specs that changed a score."""

    rule: str
    before: float | None
    after: float | None
    why: str


class Measurement(Record):
    """One measured quantity that contributed to a score."""

    name: str
    value: float
    meaning: str


class Score(Record):
    """A score with its derivation: the raw value, the final value and the rules between them.

    If a judge was asked several times, ``samples`` holds each reply's score (None if it wasn't a
    number), ``raw`` is their mean and ``spread`` the highest minus the lowest.
    """

    name: str
    raw: float | None
    value: Share | None
    rules: tuple[FiredRule, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    samples: tuple[float | None, ...] = ()
    spread: float | None = None


class JudgedBy(Record):
    """The model that filled a role, as in the settings, and the version of its prompt or rules."""

    model: str
    version: str


class Critique(Record):
    """The critic's verdict after the rules in code (MASIS-CRITIC-P2, CRITIC-LOOP-CRITIC-OUTPUT).

    Attributes:
        confidence: Confidence in the answer, lowered for its citations.
        critique_confidence: Confidence in the critique itself.
        overall_quality_score: The critic's own score, before the penalty factor.
        hallucination_votes: (votes for a hallucination, votes), if the critic was asked several
            times.
        rulings: The issues of the critic that house rules dropped, lowered or raised.

    """

    confidence: Share | None
    hallucination_detected: bool
    unsupported_claims: tuple[str, ...] = ()
    logical_gaps: tuple[str, ...] = ()
    conflicting_evidence: tuple[str, ...] = ()
    needs_retry: bool
    overall_quality_score: Share | None
    critique_confidence: Share | None
    critique_reasoning: str
    has_major_issues: bool
    notes: tuple[str, ...] = ()
    scores: tuple[Score, ...] = ()
    hallucination_votes: tuple[int, int] | None = None
    rulings: tuple[HouseRuling, ...] = ()
    judged_by: JudgedBy
    unscored: Unscored | None = None


ChangeKind = Literal[
    "reattributed",
    "corrected",
    "hedged",
    "dropped",
    "added",
    "cited",
    "uncited_marker_removed",
    "rewritten",
]


class AnswerChange(Record):
    """One edit of a revision: ``before`` is empty for an addition, ``after`` for a removal."""

    kind: ChangeKind
    before: str
    after: str
    why: str
    issue_ids: tuple[str, ...] = ()


class RejectedIssue(Record):
    """An issue that a reviser left open because the evidence refutes it or allows no change."""

    issue_id: str
    reason: str


class Revision(Record):
    """A better answer and the changes that led to it (CRITIC-LOOP-REVISER-OUTPUT)."""

    revised_answer: str
    changes_explanation: str
    updated_confidence: Share | None
    issues_addressed: tuple[str, ...] = ()
    preserved_content: tuple[str, ...] = ()
    changes: tuple[AnswerChange, ...] = ()
    rejected: tuple[RejectedIssue, ...] = ()
    judged_by: JudgedBy


class Evaluation(Record):
    """Four scores and their weighted mean (MASIS-EVAL-FIELDS, MASIS-EVAL-P5).

    Rules in code limit them by the results of the citation audit.
    """

    faithfulness: Share | None
    relevance: Share | None
    completeness: Share | None
    reasoning_quality: Share | None
    overall_score: Share | None
    improvement_suggestions: tuple[str, ...] = ()
    scores: tuple[Score, ...] = ()
    notes: tuple[str, ...] = ()
    judged_by: JudgedBy
    unscored: Unscored | None = None


class Draft(Record):
    """An answer written from the evidence for a case that came without one."""

    answer: str
    reasoning_steps: tuple[str, ...] = ()
    judged_by: JudgedBy
    calls: tuple[ModelCall, ...] = ()
