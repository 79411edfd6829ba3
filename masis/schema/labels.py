"""Labels that people give to parts of an answer, to chunks of its evidence, and to a case."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from masis.schema.base import Record
from masis.schema.case import Severity

LabelTarget = Literal["sentence", "reference", "claim", "span", "answer", "evidence", "case"]
"""The part that a label is about.

``sentence``, ``reference``, ``claim`` and ``span`` are words of the answer. ``answer`` is the whole
answer, ``evidence`` is a chunk, and ``case`` is the question with its evidence.
"""

WORDS_OF_ANSWER: frozenset[LabelTarget] = frozenset({"sentence", "reference", "claim", "span"})
"""The targets with a start and an end in the answer."""

LABEL_CHOICES: dict[str, tuple[str, ...]] = {
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
    "evidence": ("relevant", "irrelevant", "conflicting"),
    "case": ("passage_missing",),
}
"""The labels by which a reviewer corrects or confirms the audit, or labels evidence, by target.

``conflicting`` says that the chunk contradicts another one. ``passage_missing`` says that the
evidence lacks a passage that the answer needs. The types of issues that reviewers report are the
team's own (``LabelTypes``).
"""

Stance = Literal["supports", "contradicts"]
SupportKind = Literal["quotation", "paraphrase", "inference"]
"""How an answer follows from a passage: word for word, in other words, or by reasoning."""

MOST_PASSAGES = 20
"""Maximum number of passages per label."""


class LabelPassage(Record):
    """Words of a chunk that support or contradict the labelled words.

    ``text`` is the chunk's ``text[start:end]``, which is checked when the label is recorded.
    """

    evidence_id: str = Field(min_length=1)
    start: int = Field(ge=0)
    end: int
    text: str = Field(min_length=1)
    stance: Stance = "supports"

    @model_validator(mode="after")
    def _check_length(self) -> LabelPassage:
        if self.end - self.start != len(self.text):
            raise ValueError(
                f"the passage has {len(self.text)} characters, but start and end give"
                f" {self.end - self.start}"
            )
        return self


class TargetLabel(Record):
    """A person's label on a part of the audited answer, on the whole answer or on its evidence.

    For words of the answer, ``text`` is ``answer[start:end]``. A label with a ``severity`` reports
    an issue: its ``label`` is then one of the team's label types, in the version
    ``Decision.versions["label_types"]``. Any other label is one of ``LABEL_CHOICES``; it corrects
    or confirms the audit.

    Attributes:
        target: The part that the label is about.
        start: The offset of the words in the answer, in characters.
        end: The end of the words.
        text: The words.
        label: The label.
        note: The reviewer's explanation.
        severity: The severity of a reported issue.
        evidence: The passages that support or contradict the labelled words.
        right_reference: The id of the evidence that should have been cited instead.
        kind: How the labelled words follow from the supporting passages.
        evidence_id: The labelled chunk, if the target is ``evidence``.
        conflicts_with: The chunk that a conflicting chunk contradicts.

    """

    target: LabelTarget
    start: int | None = None
    end: int | None = None
    text: str = ""
    label: str
    note: str = ""
    severity: Severity | None = None
    evidence: tuple[LabelPassage, ...] = Field(default=(), max_length=MOST_PASSAGES)
    right_reference: str | None = None
    kind: SupportKind | None = None
    evidence_id: str | None = None
    conflicts_with: str | None = None

    @model_validator(mode="after")
    def _check_target(self) -> TargetLabel:
        if self.target in WORDS_OF_ANSWER:
            if self.start is None or self.end is None:
                raise ValueError(f"a label on a {self.target} needs start and end")
        elif self.start is not None or self.end is not None or self.text:
            name = {"answer": "the whole answer", "evidence": "a chunk", "case": "a case"}
            raise ValueError(
                f"a label on {name[self.target]} quotes no words of the answer and has no place in"
                " it"
            )
        if self.target == "answer" and self.severity is None:
            raise ValueError("a label on the whole answer reports an issue: it needs a severity")
        if self.severity is not None and self.target not in ("span", "answer"):
            raise ValueError("an issue is reported on a span or on the whole answer")
        return self

    @model_validator(mode="after")
    def _check_evidence(self) -> TargetLabel:
        if (self.target == "evidence") != (self.evidence_id is not None):
            raise ValueError(
                "a label on a chunk needs its evidence_id"
                if self.target == "evidence"
                else "only a label on a chunk has an evidence_id"
            )
        if (self.label == "conflicting" and self.target == "evidence") != (
            self.conflicts_with is not None
        ):
            raise ValueError(
                "a conflicting chunk needs the chunk that it conflicts with, and no other label has"
                " one"
            )
        if self.conflicts_with is not None and self.conflicts_with == self.evidence_id:
            raise ValueError("a chunk can't conflict with itself")
        if self.evidence and self.target in ("evidence", "case"):
            raise ValueError("only a label on the answer names passages")
        if self.right_reference is not None and self.target in ("evidence", "case"):
            raise ValueError("only a label on the answer names the right reference")
        if self.kind is not None and not any(
            passage.stance == "supports" for passage in self.evidence
        ):
            raise ValueError("the kind of support needs a passage that supports the words")
        return self

    @property
    def reports(self) -> bool:
        """Whether this label reports an issue that the audit missed."""
        return self.severity is not None

    def passages(self, stance: Stance) -> tuple[LabelPassage, ...]:
        """Return the passages that support, or those that contradict, the labelled words."""
        return tuple(passage for passage in self.evidence if passage.stance == stance)


FAULTS: dict[str, frozenset[str]] = {
    "claim": frozenset({"partial", "contradicted", "unsupported"}),
    "reference": frozenset({"fabricated", "misattributed", "unsupported", "contradicts"}),
    "sentence": frozenset({"uncited"}),
}
"""The labels that name a fault, by target. A reported issue is one, too."""


SERIOUS_FAULTS: dict[str, frozenset[str]] = {
    "claim": frozenset({"contradicted"}),
    "reference": frozenset({"fabricated", "contradicts"}),
}
"""The labels, by target, that name what the audit itself always considers serious."""


SERIOUS_SEVERITIES = ("critical", "high")
"""The severities of a serious issue."""


def is_serious_fault(label: TargetLabel) -> bool:
    """Return whether a label says that something is seriously wrong with the answer."""
    if label.reports:
        return label.severity in SERIOUS_SEVERITIES
    return label.label in SERIOUS_FAULTS.get(label.target, ())


def is_fault(label: TargetLabel) -> bool:
    """Return whether a label says that something is wrong with the answer."""
    return label.reports or label.label in FAULTS.get(label.target, ())
