"""What one look at one answer finds: citations, claims, issues, critique, revision, evaluation.

Offsets are character positions in the text named, start included, end excluded: ``answer[start:end]
== text``. Scores run from 0 to 1; ``None`` means unscored, never zero.
"""

from __future__ import annotations

from typing import Literal

from masis.schema.base import Record, Share, Unscored
from masis.schema.calls import ModelCall
from masis.schema.case import ClaimVerdict, Severity
from masis.schema.display import OneLine
from masis.schema.wording import count_noun, shorten

ResolvedBy = Literal["exact", "normalised", "suffix", "position", "source", "given"]
"""How a reference found its evidence: the id to the letter; ignoring case and blanks; a bare number
to the one id ending in it; by position from 1 where ids are opaque; a link or name by the
evidence's source; given beside the answer."""

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

    ``start`` to ``end`` span the reference itself (``99``; the whole ``1-3`` for each member of a
    range); ``marker_start`` to ``marker_end`` span the marker it stands in (``[1, 99]``). A
    citation given beside the answer has no marker: both are its ``end``, and ``start`` to ``end``
    is what it covers of one sentence.
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
    """One sentence of the answer. ``why`` says in plain words why it counts as cited, uncited or
    exempt.
    """

    start: int
    end: int
    text: str
    citation_ids: tuple[str, ...]
    status: SentenceStatus
    why: str


class QuoteCheck(Record):
    """Whether the quote of a citation given beside the answer stands in the evidence that it names.

    ``start`` and ``end`` are offsets in the answer; ``evidence_start`` and ``evidence_end`` where
    the quote stands, in the evidence named or in ``found_in``.
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
    """What the markers of an answer point at, and which sentences carry none (MASIS-CRITIC-P3,
    MASIS-CRITIC-P4).

    ``invalid_citations`` holds references that name no evidence, as written, in order of
    appearance; ``carried_references`` those of an earlier answer whose sentences still stand
    unconfirmed, without their markers. ``penalty_factor`` is what the critic's confidence is
    multiplied by.
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
        """Return the counts on one line; of a long answer the records would fill pages."""
        invalid, uncited = ", ".join(self.invalid_citations[:10]), len(self.uncited_claims)
        counts = f"{count_noun(len(self.citations), 'reference')}, invalid: {invalid or 'none'}"
        return f"<CitationAudit: {counts}, {count_noun(uncited, 'sentence')} without a citation>"


class Quote(Record):
    """A passage of evidence that supports (or contradicts) a claim: ``evidence.text[start:end] ==
    text``.
    """

    evidence_id: str
    start: int
    end: int
    text: str
    score: Share


class Contradiction(Record):
    """A fact of the claim that differs from the same fact in the evidence.

    ``claim_start`` and ``claim_end`` are offsets in the claim's text; ``evidence_text`` is the
    value the evidence has. ``kind`` is what differs (a number, a date, ...), ``stated`` where a
    model says so, ``source`` where what differs stands in the line that names the chunk's source:
    then ``evidence_text`` is that line, without a place in the text.
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
    """A figure of a claim that the evidence doesn't have. It may be calculated, so that nothing is
    said to be wrong.

    ``claim_start`` and ``claim_end`` are offsets in the claim's text; ``kind`` is ``number`` or
    ``date``.
    """

    kind: Literal["number", "date"]
    claim_start: int
    claim_end: int
    claim_text: str


class MarkedWords(Record):
    """Words of a claim that a tagger holds unsupported by the evidence. That is a reason to look,
    not a verdict.

    ``claim_start`` and ``claim_end`` are offsets in the claim's text.
    """

    claim_start: int
    claim_end: int
    claim_text: str


class Claim(Record):
    """Something the answer asserts.

    ``start`` and ``end`` are offsets in the answer, None for a claim given alone; ``markers`` are
    the stretches of ``text`` that are citation markers and assert nothing; ``cited`` the evidence
    ids they resolve to. ``statement`` is the same in words that can be understood alone, where
    somebody put it so.
    """

    text: str
    statement: str = ""
    markers: tuple[tuple[int, int], ...] = ()
    start: int | None = None
    end: int | None = None
    sentence: int | None = None
    cited: tuple[str, ...] = ()


class ReferenceCheck(Record):
    """Whether one cited chunk supports the sentence that cites it; ``better`` names the chunk that
    does, if another.
    """

    evidence_id: str
    finding: ReferenceFinding
    support: Share | None
    better: str | None = None
    reason: str = ""


class ClaimCheck(OneLine, Record):
    """The verdict on one claim.

    ``support`` is how far the evidence supports it (None where there is nothing to check against),
    ``confidence`` how sure the verifier is of the verdict, ``sources`` the evidence ids that
    support or contradict it, ``uncovered`` the parts of the claim's text that no evidence covers.
    ``abstained`` says why a verdict was withheld, where that was not the verifier's own doing:
    claim or evidence is in a language it does not support, instructs its reader, or exceeds a
    limit; or why it can't count: what the verifier quotes is not in the evidence (``quotation``),
    or claim or evidence can be read either way (``either_way``). ``figures`` are those of the claim
    that the evidence lacks, ``marked`` the words that a tagger holds unsupported. ``steps`` says
    how a claim follows where no passage says it outright: the calculation, for instance.
    ``sources_disagree`` says that one chunk supports the claim and another denies it.
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
    """Something the evidence says and the question asks for that the answer leaves out."""

    description: str
    evidence_id: str | None = None
    start: int | None = None
    end: int | None = None
    weight: Share = 0.5


class Escalation(Record):
    """What two verifiers in a row did with the claims of an answer: ``first`` judged all,
    ``second`` what was left.

    ``settled`` and ``escalated`` count claims. ``calls`` to a language model were made for the
    escalated ones; ``calls_saved`` are those that the second alone would have made beyond them, and
    ``cost_saved_usd`` is an estimate of what they would have cost, None where no price is known.
    """

    first: str
    second: str
    settled: int
    escalated: int
    calls: int = 0
    calls_saved: int = 0
    cost_saved_usd: float | None = None

    def plus(self, other: Escalation) -> Escalation:
        """Return both together."""
        counts = ("settled", "escalated", "calls", "calls_saved")
        both = {name: getattr(self, name) + getattr(other, name) for name in counts}
        costs = [cost for cost in (self.cost_saved_usd, other.cost_saved_usd) if cost is not None]
        return self.model_copy(update={**both, "cost_saved_usd": sum(costs) if costs else None})


class ClaimReport(Record):
    """All claims of one answer in figures.

    ``confidence`` = (mean support + share verified) / 2 (DRAFT-CRITIQUE-CONFIDENCE); None where the
    claims could not be found (``unscored``). ``completeness_unscored`` says why nobody could say
    what is missing. ``escalation`` is set where two verifiers judged in a row. ``unchecked`` says
    in words what lay beyond the limits of the settings.
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
IssueSource = Literal["citations", "claims", "critic", "instructions"]


class Issue(Record):
    """One objection, whoever raised it.

    ``id`` names it within its iteration; ``key`` stays the same while the same words keep the same
    fault, so that a finding can be followed from one iteration to the next. ``rule`` names what
    found it (``fabricated_reference``). ``start`` and ``end`` are offsets in the answer; an issue
    with a stretch of evidence has ``evidence_start`` and ``evidence_end``, offsets in the text of
    its one chunk. ``carried_from`` is the iteration that raised an issue which a revision left
    open: what it accused still stands unconfirmed, though nothing raised it again. ``point`` is
    what the answer leaves out, as the check that found it says (rule ``missing_information``); ""
    for all other issues.
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
        """Whether the loop must not stop on it (CRITIC-LOOP-CRITIC-OUTPUT)."""
        return self.severity in ("critical", "high")


class FiredRule(Record):
    """A rule of the specs that changed a score."""

    rule: str
    before: float | None
    after: float | None
    why: str


class Measurement(Record):
    """One measured quantity that went into a score."""

    name: str
    value: float
    meaning: str


class Score(Record):
    """A score with where it came from: as given, as kept, and every rule between.

    Where a judge was asked several times, ``samples`` holds what each gave (None: nothing that is a
    number), ``raw`` their mean and ``spread`` the highest less the lowest.
    """

    name: str
    raw: float | None
    value: Share | None
    rules: tuple[FiredRule, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    samples: tuple[float | None, ...] = ()
    spread: float | None = None


class JudgedBy(Record):
    """Who filled a role: ``model`` as in the settings, the version of its prompt or rules."""

    model: str
    version: str


class Critique(Record):
    """The critic's verdict after the rules in code (MASIS-CRITIC-P2, CRITIC-LOOP-CRITIC-OUTPUT).

    ``confidence`` is confidence in the answer, lowered by the citations; ``critique_confidence`` in
    the critique itself; ``overall_quality_score`` is the critic's own, before the penalty factor.
    Where the critic was asked several times, ``hallucination_votes`` says how many of how many
    found a hallucination.
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
    """An issue that a reviser left as it is, since the evidence shows it to be wrong or allows no
    change.
    """

    issue_id: str
    reason: str


class Revision(Record):
    """A better answer and what was changed to get it (CRITIC-LOOP-REVISER-OUTPUT)."""

    revised_answer: str
    changes_explanation: str
    updated_confidence: Share | None
    issues_addressed: tuple[str, ...] = ()
    preserved_content: tuple[str, ...] = ()
    changes: tuple[AnswerChange, ...] = ()
    rejected: tuple[RejectedIssue, ...] = ()
    judged_by: JudgedBy


class Evaluation(Record):
    """Four scores and their weighted mean, clamped by what the citations prove (MASIS-EVAL-FIELDS,
    MASIS-EVAL-P5).
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
    """An answer written from the evidence where a case came without one."""

    answer: str
    reasoning_steps: tuple[str, ...] = ()
    judged_by: JudgedBy
    calls: tuple[ModelCall, ...] = ()
