"""What a model is asked to answer: one record a prompt.

Fields stand in the order in which they are to be written: reasons before the verdicts that rest on
them. Each has a kind (``Number``, ``ChunkName``, ``VerdictWord``), and ``tolerances.py`` says what
may be written for it. Scores are let through as they come (0.85, 85, "high", NaN): the rules in
code read them (``masis/audit/measures/scores.py``), and what is no number is unscored. Anything
else of a wrong type makes the reply malformed; unknown fields are ignored.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema

from masis.audit.measures.scores import normalise_score
from masis.llm.roles.tolerances import tolerant
from masis.schema.audit import ChangeKind
from masis.schema.case import Severity
from masis.schema.rules import IssueType

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

Item = TypeVar("Item")


def _storable(value: Any) -> Any:
    return _UNSTORABLE.sub("\ufffd", value) if isinstance(value, str) else value


def _drop_description(schema: dict[str, Any]) -> None:
    schema.pop("description", None)


def _one_of(*words: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": list(words)})


Number = Annotated[
    Any,
    BeforeValidator(_storable),
    BeforeValidator(tolerant("score")),
    WithJsonSchema({"type": "number"}),
]
"""A score as the model gave it; nothing is promised."""
Count = Annotated[
    Any,
    BeforeValidator(_storable),
    BeforeValidator(tolerant("row")),
    WithJsonSchema({"type": "integer"}),
]
"""The number of a row, as the model gave it."""
Text = Annotated[str, BeforeValidator(_storable)]
"""Text that a database and a file can keep."""
TextOrEmpty = Annotated[
    str, BeforeValidator(lambda value: "" if value is None else _storable(value))
]
"""Text that may be empty; null means the same."""
ChunkName = Annotated[Text, BeforeValidator(tolerant("chunk"))]
"""What a model calls a chunk of evidence."""
ChunkNameOrEmpty = Annotated[TextOrEmpty, BeforeValidator(tolerant("chunk"))]
Flag = Annotated[bool, BeforeValidator(tolerant("flag"))]
"""Yes or no. There is no default: a reply that leaves it open hasn't said it."""
ListOrEmpty = Annotated[list[Item], BeforeValidator(tolerant("list"))]
"""A list that may be empty; null and no field mean the same. One that a reply is asked for is a
plain list.
"""

Stance = Literal["supports", "supports_together", "contradicts", "leaves_open"]
"""What one chunk says on a claim: all of it, a part of it together with others, that it is wrong,
or nothing.
"""
StanceWord = Annotated[
    Any,
    BeforeValidator(_storable),
    BeforeValidator(tolerant("word", "stance")),
    _one_of(*get_args(Stance)),
]
VerdictWord = Annotated[
    Any,
    BeforeValidator(_storable),
    BeforeValidator(tolerant("word", "verdict")),
    _one_of("supported", "partial", "contradicted", "unsupported", "either_way", "unverifiable"),
]
"""A word outside the set costs its own claim the verdict, not the other claims theirs."""


class RoleReply(BaseModel):
    """A model's answer to one prompt.

    What the fields mean is said in the prompt, which is versioned; so the schema carries no words
    of its own.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", json_schema_extra=_drop_description)


class RaisedIssue(RoleReply):
    """One fault; ``location`` quotes the answer."""

    type: Annotated[IssueType, BeforeValidator(tolerant("word", "issue type"))]
    severity: Annotated[Severity, BeforeValidator(tolerant("word", "severity"))]
    description: Text
    reasoning: TextOrEmpty = ""
    location: TextOrEmpty = ""
    suggestion: TextOrEmpty = ""
    evidence_ids: ListOrEmpty[ChunkName] = []


CONTENT_FROM = 0.8
"""A critic's scores that say that nothing is wrong which matters: the anchors of its scales below
are for faults.
"""


class CritiqueReply(RoleReply):
    """What the critic is asked for; the rest of both critic specs' fields follows from it
    (``roles/critic.py``).

    ``hallucination_detected`` and ``needs_retry`` follow from the issues in code and aren't asked
    for; in a reply that has them all the same, they are read.
    """

    critique_reasoning: TextOrEmpty
    issues: ListOrEmpty[RaisedIssue] = []
    conflicting_evidence: ListOrEmpty[Text] = []
    hallucination_detected: SkipJsonSchema[Flag] = False
    needs_retry: SkipJsonSchema[Flag] = False
    confidence: Number
    overall_quality_score: Number
    critique_confidence: Number

    @model_validator(mode="after")
    def _has_the_issues_it_speaks_of(self) -> Self:
        """No list of issues means that there is none only where the rest of the reply says so: some
        models leave out lists that are empty.
        """
        if "issues" in self.model_fields_set:
            return self
        scores = [
            normalise_score("score", value).value
            for value in (self.confidence, self.overall_quality_score)
        ]
        content = all(score is not None and score >= CONTENT_FROM for score in scores)
        if self.hallucination_detected or self.needs_retry or not content:
            raise ValueError("no issues are given, and a flag or a score says that there are some")
        return self


class EvaluationReply(RoleReply):
    """Four scores with their reasons (MASIS-EVAL-FIELDS); the overall score is computed in code."""

    faithfulness_reason: TextOrEmpty
    faithfulness: Number
    relevance_reason: TextOrEmpty
    relevance: Number
    completeness_reason: TextOrEmpty
    completeness: Number
    reasoning_quality_reason: TextOrEmpty
    reasoning_quality: Number
    improvement_suggestions: ListOrEmpty[Text] = []


class ListedClaim(RoleReply):
    """One assertion: a sentence of the answer by its number, or ``words`` of it; ``meaning`` stands
    alone.
    """

    sentence: Count
    words: TextOrEmpty = ""
    meaning: TextOrEmpty = ""


class ClaimsReply(RoleReply):
    """What an answer asserts."""

    claims: list[ListedClaim]


class QuotedPassage(RoleReply):
    """What one chunk says on a claim, with its words; ``claim_words`` are those of the claim that
    it denies.
    """

    evidence_id: ChunkName
    stance: StanceWord
    quote: TextOrEmpty = ""
    claim_words: TextOrEmpty = ""


class Verdict(RoleReply):
    """What the evidence says of a claim; ``calculation`` is how a figure follows from those that
    are quoted.
    """

    evidence: ListOrEmpty[QuotedPassage] = []
    calculation: TextOrEmpty = ""
    reasoning: TextOrEmpty = ""
    verdict: VerdictWord
    confidence: Number


class JudgedClaim(Verdict, ListedClaim):
    """A claim and the verdict on it, in one: there is no number by which the two could
    be mixed up.
    """


class _NumberedReply(RoleReply):
    number: Count


class NumberedVerdict(Verdict, _NumberedReply):
    """The verdict on the claim of this number, where the claims were given."""


class VerdictsReply(RoleReply):
    """A verdict for each claim of a batch."""

    verdicts: list[NumberedVerdict]


class LeftOut(RoleReply):
    """Something the question asks for and a chunk says."""

    description: Text
    evidence_id: ChunkNameOrEmpty = ""
    quote: TextOrEmpty = ""
    importance: Number


class CompletenessReply(RoleReply):
    """What an answer leaves out; empty where it is comprehensive."""

    missing: list[LeftOut]


class CheckedClaimsReply(RoleReply):
    """What an answer asserts, each claim with its verdict, and what the answer leaves out."""

    claims: list[JudgedClaim]
    missing: ListOrEmpty[LeftOut] = []


class RejectedIssues(RoleReply):
    """Issues that the reviser leaves as they are, and why."""

    issue_ids: ListOrEmpty[ChunkName] = []
    reason: TextOrEmpty = ""


class ChangeMade(RoleReply):
    """One edit, as the reviser describes it."""

    issue_ids: ListOrEmpty[ChunkName] = []
    kind: Annotated[ChangeKind, BeforeValidator(tolerant("word", "kind of change"))]
    before: TextOrEmpty
    after: TextOrEmpty
    why: TextOrEmpty = ""


class RevisionReply(RoleReply):
    """A better answer and what was changed (CRITIC-LOOP-REVISER-OUTPUT); code derives what was kept
    and addressed.
    """

    rejected: ListOrEmpty[RejectedIssues] = []
    changes: ListOrEmpty[ChangeMade] = []
    revised_answer: Text
    updated_confidence: Number


class DraftReply(RoleReply):
    """An answer written from the evidence."""

    reasoning_steps: ListOrEmpty[Text] = []
    answer: Text
