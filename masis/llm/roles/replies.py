"""What a model is asked to answer: one record a prompt.

Fields stand in the order in which they are to be written: reasons before the verdicts that rest on them. Scores are let
through as they come (0.85, 85, "high", NaN): the rules in code read them (``masis/audit/measures/scores.py``), and what
is no number is unscored. Anything else of a wrong type makes the reply malformed; unknown fields are ignored.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from masis.schema.audit import ChangeKind, IssueType
from masis.schema.case import Severity

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_BETWEEN_WORDS = re.compile(r"[\s_\-]+")


def _storable(value: Any) -> Any:
    return _UNSTORABLE.sub("\ufffd", value) if isinstance(value, str) else value


def _word(value: Any) -> Any:
    """``Missing info`` as ``missing_info``: a word of a closed set counts however it is written."""
    return _BETWEEN_WORDS.sub("_", _storable(value).strip()).lower() if isinstance(value, str) else value


def _without_words(schema: dict[str, Any]) -> None:
    schema.pop("description", None)


def _one_of(*words: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": list(words)})


Number = Annotated[Any, BeforeValidator(_storable), WithJsonSchema({"type": "number"})]
"""A score as the model gave it; nothing is promised."""
Count = Annotated[Any, BeforeValidator(_storable), WithJsonSchema({"type": "integer"})]
"""The number of a row, as the model gave it."""
Text = Annotated[str, BeforeValidator(_storable)]
"""Text that a database and a file can keep."""
TextOrEmpty = Annotated[str, BeforeValidator(lambda value: "" if value is None else _storable(value))]
"""Text that may be empty; null means the same."""

Stance = Literal["supports", "partly", "contradicts", "silent"]
"""What one chunk says on a claim."""
StanceWord = Annotated[Any, BeforeValidator(_word), _one_of("supports", "partly", "contradicts", "silent")]
VerdictWord = Annotated[
    Any, BeforeValidator(_word), _one_of("supported", "partial", "contradicted", "unsupported", "unverifiable")
]
"""A word outside the set costs its own claim the verdict, not the other claims theirs."""


class Reply(BaseModel):
    """A model's answer to one prompt.

    What the fields mean is said in the prompt, which is versioned; so the schema carries no words of its own.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", json_schema_extra=_without_words)


class RaisedIssue(Reply):
    """One fault; ``location`` quotes the answer."""

    type: Annotated[IssueType, BeforeValidator(_word)]
    severity: Annotated[Severity, BeforeValidator(_word)]
    description: Text
    reasoning: Text
    location: TextOrEmpty
    suggestion: Text
    evidence_ids: list[Text]


class CritiqueReply(Reply):
    """What the critic is asked for; the rest of both critic specs' fields follows from it (``roles/critic.py``)."""

    critique_reasoning: Text
    issues: list[RaisedIssue]
    conflicting_evidence: list[Text]
    hallucination_detected: bool
    needs_retry: bool
    confidence: Number
    overall_quality_score: Number
    critique_confidence: Number


class EvaluationReply(Reply):
    """Four scores with their reasons (MASIS-EVAL-FIELDS); the overall score is computed in code."""

    faithfulness_reason: Text
    faithfulness: Number
    relevance_reason: Text
    relevance: Number
    completeness_reason: Text
    completeness: Number
    reasoning_quality_reason: Text
    reasoning_quality: Number
    improvement_suggestions: list[Text]


class ListedClaim(Reply):
    """One assertion: a sentence of the answer by its number, or ``words`` of it; ``meaning`` stands alone."""

    number: Count
    sentence: Count
    words: TextOrEmpty
    meaning: TextOrEmpty


class ClaimsReply(Reply):
    """What an answer asserts."""

    claims: list[ListedClaim]


class Passage(Reply):
    """What one chunk says on a claim, with its words; ``claim_words`` are those of the claim that it denies."""

    evidence_id: Text
    stance: StanceWord
    quote: TextOrEmpty
    claim_words: TextOrEmpty


class Verdict(Reply):
    """The verdict on the claim of this number."""

    number: Count
    evidence: list[Passage]
    reasoning: TextOrEmpty
    verdict: VerdictWord
    support: Number
    confidence: Number


class VerdictsReply(Reply):
    """A verdict for each claim of a batch."""

    verdicts: list[Verdict]


class LeftOut(Reply):
    """Something the question asks for and a chunk says."""

    description: Text
    evidence_id: TextOrEmpty
    quote: TextOrEmpty
    importance: Number


class CompletenessReply(Reply):
    """What an answer leaves out; empty where it is comprehensive."""

    missing: list[LeftOut]


class CheckedClaimsReply(Reply):
    """What an answer asserts, a verdict on each claim, and what it leaves out: listed first, judged second."""

    claims: list[ListedClaim]
    verdicts: list[Verdict]
    missing: list[LeftOut]


class Rejected(Reply):
    """Issues that the reviser leaves as they are, and why."""

    issue_ids: list[Text]
    reason: Text


class ChangeMade(Reply):
    """One edit, as the reviser describes it."""

    issue_ids: list[Text]
    kind: Annotated[ChangeKind, BeforeValidator(_word)]
    before: Text
    after: Text
    why: Text


class RevisionReply(Reply):
    """A better answer and what was changed (CRITIC-LOOP-REVISER-OUTPUT); code derives what was kept and addressed."""

    rejected: list[Rejected]
    changes: list[ChangeMade]
    revised_answer: Text
    updated_confidence: Number


class DraftReply(Reply):
    """An answer written from the evidence."""

    reasoning_steps: list[Text]
    answer: Text
