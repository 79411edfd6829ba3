"""The records that the prompts request from models, one for each prompt.

A model writes the fields in this order, so reasons come before the verdicts that rest on them. Each
field has a kind (``Number``, ``ChunkName``, ``VerdictWord``), and ``tolerances.py`` lists its
accepted spellings. Scores are kept as they are (0.85, 85, "high", NaN), because the rules for
scores read them later (``masis/audit/measures/scores.py``); one that isn't a number is unscored.
Any other wrong type makes the reply malformed, and unknown fields are ignored.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema

from masis.audit.measures.scores import normalize_score
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
"""A model's score, of any type."""
Count = Annotated[
    Any,
    BeforeValidator(_storable),
    BeforeValidator(tolerant("row")),
    WithJsonSchema({"type": "integer"}),
]
"""The model's number of a row, of any type."""
Text = Annotated[str, BeforeValidator(_storable)]
"""Text without NUL and lone surrogates, which databases and files can't store."""
TextOrEmpty = Annotated[
    str, BeforeValidator(lambda value: "" if value is None else _storable(value))
]
"""Text that may be empty; null means the same."""
ChunkName = Annotated[Text, BeforeValidator(tolerant("chunk"))]
"""The name that a model uses for a chunk of evidence."""
ChunkNameOrEmpty = Annotated[TextOrEmpty, BeforeValidator(tolerant("chunk"))]
Flag = Annotated[bool, BeforeValidator(tolerant("flag"))]
"""Yes or no, without a default, because a reply without the field hasn't said either."""
ListOrEmpty = Annotated[list[Item], BeforeValidator(tolerant("list"))]
"""A list that may be empty, null or missing. The main list of a reply is a plain ``list``, which is
required.
"""

Stance = Literal["supports", "supports_together", "contradicts", "leaves_open"]
"""The stance of one chunk on a claim: it supports all of it, supports a part together with others,
contradicts it, or says nothing.
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
"""A word outside the set makes only its own claim unscored."""


class RoleReply(BaseModel):
    """A model's reply to one prompt.

    The versioned prompt explains the fields, so the schema has no descriptions.
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


SATISFIED_FROM = 0.8
"""A critic's scores from this value on mean that nothing important is wrong; the lower anchors of
its scales describe faults.
"""


class CritiqueReply(RoleReply):
    """A critique, from which all fields of both critic specs follow (``roles/critic.py``).

    ``hallucination_detected`` and ``needs_retry`` follow from the issues in code, so they aren't
    asked for, but are read if a reply has them.
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
    def _check_issues_are_listed(self) -> Self:
        """Accept a reply without a list of issues only if the rest of it says that there are none,
        since some models omit empty lists.
        """
        if "issues" in self.model_fields_set:
            return self
        scores = [
            normalize_score("score", value).value
            for value in (self.confidence, self.overall_quality_score)
        ]
        is_satisfied = all(score is not None and score >= SATISFIED_FROM for score in scores)
        if self.hallucination_detected or self.needs_retry or not is_satisfied:
            raise ValueError("no issues are given, and a flag or a score says that there are some")
        return self


class RaisedHouseIssue(RaisedIssue):
    """One fault, and the id of the house rule that it's about; empty if it's about none."""

    house_rule: TextOrEmpty = ""


class HouseCritiqueReply(CritiqueReply):
    """A critique by house rules. The default critique stays as it is, with its recorded replies."""

    # mypy fears that someone appends a plain issue, but replies are frozen and only read.
    issues: ListOrEmpty[RaisedHouseIssue] = []  # type: ignore[assignment]


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
    """One assertion: a sentence of the answer by its number, or ``words`` of it. ``meaning`` can be
    understood alone.
    """

    sentence: Count
    words: TextOrEmpty = ""
    meaning: TextOrEmpty = ""


class ClaimsReply(RoleReply):
    """The assertions of an answer."""

    claims: list[ListedClaim]


class QuotedPassage(RoleReply):
    """The stance of one chunk on a claim, with a quote; ``claim_words`` are the words of the claim
    that it denies.
    """

    evidence_id: ChunkName
    stance: StanceWord
    quote: TextOrEmpty = ""
    claim_words: TextOrEmpty = ""


class Verdict(RoleReply):
    """The verdict on a claim; ``calculation`` derives a figure from the quoted ones."""

    evidence: ListOrEmpty[QuotedPassage] = []
    calculation: TextOrEmpty = ""
    reasoning: TextOrEmpty = ""
    verdict: VerdictWord
    confidence: Number


class JudgedClaim(Verdict, ListedClaim):
    """A claim and its verdict in one record, so that they can't be mixed up."""


class _NumberedReply(RoleReply):
    number: Count  # listed last in the bases below, so that the schema has it first


class NumberedVerdict(Verdict, _NumberedReply):
    """The verdict on one of the claims in the prompt, by its number."""


class VerdictsReply(RoleReply):
    """A verdict for each claim of a batch."""

    verdicts: list[NumberedVerdict]


class LeftOut(RoleReply):
    """Something that the question asks for, a chunk says and the answer omits."""

    description: Text
    evidence_id: ChunkNameOrEmpty = ""
    quote: TextOrEmpty = ""
    importance: Number


class CompletenessReply(RoleReply):
    """The points that an answer leaves out; empty if it's complete."""

    missing: list[LeftOut]


class CheckedClaimsReply(RoleReply):
    """The claims of an answer with their verdicts, and the points that it leaves out."""

    claims: list[JudgedClaim]
    missing: ListOrEmpty[LeftOut] = []


class RejectedIssues(RoleReply):
    """Issues that the reviser doesn't resolve, and the reason."""

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
    """A better answer and its changes (CRITIC-LOOP-REVISER-OUTPUT); code derives which sentences
    were preserved and which issues addressed.
    """

    rejected: ListOrEmpty[RejectedIssues] = []
    changes: ListOrEmpty[ChangeMade] = []
    revised_answer: Text
    updated_confidence: Number


class DraftReply(RoleReply):
    """An answer written from the evidence."""

    reasoning_steps: ListOrEmpty[Text] = []
    answer: Text
