"""What a row says of a case: the answers by their part (original, judged, standing), evidence, labels with offsets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from masis.audit.citations.given import placed
from masis.schema.audit import Citation, Claim, ClaimCheck, Sentence
from masis.schema.case import GivenCitation
from masis.schema.review import Decision
from masis.store import CaseOutcome, Judgement

Row = dict[str, Any]

_GIVEN = TypeAdapter(tuple[GivenCitation, ...])

OF_PERSONS = ("decision", "adjudication")
"""Kinds of entries by which a person decides."""


class Place(NamedTuple):
    """Where words stand in a text: ``text[start:end]`` equals them."""

    start: int
    end: int


def place_of(text: str | None, words: str, start: Any, end: Any) -> Place | None:
    """Return where words stand in a text: at the offsets given if they do, else at their only occurrence, else None.

    A decision that came from a program may carry offsets that don't fit: they are never handed on.
    """
    if text is None or not words:
        return None
    if isinstance(start, int) and isinstance(end, int) and 0 <= start < end and text[start:end] == words:
        return Place(start, end)
    first = text.find(words)
    if first < 0 or text.find(words, first + 1) >= 0:
        return None
    return Place(first, first + len(words))


@dataclass(frozen=True)
class Judged:
    """One judgement on one answer of a case, as formats need it."""

    case: dict[str, Any]
    state: str
    judgement: Judgement
    split: str

    @classmethod
    def of(cls, outcome: CaseOutcome, judgement: Judgement, split: str) -> Judged:
        """Return a judgement of a case."""
        return cls(outcome.case, outcome.state, judgement, split)

    @property
    def decision(self) -> Decision | None:
        """The person's decision, or the acceptance policy's; None where only the machine judged."""
        entry = self.judgement.entry
        return entry.decision if entry else None

    @property
    def reviewer(self) -> str | None:
        """The person who decided; None where nobody did."""
        return self.decision.reviewer if self.decision and self.decision.kind in OF_PERSONS else None

    @cached_property
    def answer(self) -> str | None:
        """The answer that was judged; None where the run that wrote it was removed."""
        found = self.judgement.iteration
        if found is not None:
            return found.answer
        return self.original if self.judgement.entry is None or self.judgement.number == 1 else None

    @property
    def original(self) -> str | None:
        """The answer that came with the case."""
        answer = self.case.get("answer")
        return answer if isinstance(answer, str) else None

    @property
    def standing(self) -> str | None:
        """The answer that the decision lets stand: the corrected one, else the one judged; None where none stands."""
        decision = self.decision
        if decision is None or decision.kind not in (*OF_PERSONS, "policy_accept"):
            return None
        if decision.verdict in ("reject", "escalate"):
            return None
        return self.answer if decision.corrected_answer is None else decision.corrected_answer

    @property
    def standing_citations(self) -> list[Row]:
        """The citations given beside the original answer that the standing one keeps, with their places in it.

        It keeps those whose sentences are unchanged.
        """
        given, standing = self.case.get("citations"), self.standing
        if not given or standing is None or self.original is None:
            return []
        try:
            citations = _GIVEN.validate_python(given)
        except ValidationError:  # the key held something else before it meant citations, and holds it still
            return []
        kept = placed(citations, self.original, standing)
        return [each.model_dump(mode="json", exclude_unset=True) for each in kept]

    @property
    def evidence(self) -> list[Row]:
        """The chunks: id, text, and the source where there is one."""
        return [
            {"id": chunk["id"], "text": chunk.get("text", "")}
            | ({"source": chunk["source"]} if chunk.get("source") is not None else {})
            for chunk in self.case["evidence"]
        ]

    @cached_property
    def claims(self) -> list[Row]:
        """The machine's claims on the judged answer, with offsets into it."""
        machine = self.judgement.iteration
        return [_claim(check, self.answer) for check in machine.claims] if machine else []

    @cached_property
    def sentences(self) -> list[Row]:
        """The sentences of the judged answer, as the citation engine cut them."""
        machine = self.judgement.iteration
        return [_row(each, self.answer, _OF_SENTENCE) for each in machine.citation_audit.sentences] if machine else []

    @cached_property
    def citations(self) -> list[Row]:
        """The references of the judged answer, each with its place."""
        machine = self.judgement.iteration
        return [_row(each, self.answer, _OF_CITATION) for each in machine.citation_audit.citations] if machine else []

    @cached_property
    def issues(self) -> list[Row]:
        """What the audit found wrong with the judged answer; offsets are None for what has no place in it."""
        machine = self.judgement.iteration
        return [
            each.model_dump(mode="json", include=_OF_ISSUE) | {"text": _cut(self.answer, each.start, each.end)}
            for each in (machine.issues if machine else ())
        ]

    @cached_property
    def labels(self) -> list[Row]:
        """The person's labels on the judged answer; offsets are None where the words don't stand in it once.

        Those with a severity report an issue that the audit missed; one on the whole answer (``target`` "answer") has
        no place and no words.
        """
        decision = self.decision
        return [
            {
                "target": each.target,
                "label": each.label,
                "severity": each.severity,
                "note": each.note,
                "text": each.text,
            }
            | _offsets(place_of(self.answer, each.text, each.start, each.end))
            for each in (decision.labels if decision else ())
        ]

    def label_at(self, target: str, row: Row) -> Row | None:
        """The person's label on exactly the words of a row; the last one where there are several."""
        if row["start"] is None:
            return None
        place = (target, row["start"], row["end"])
        found = [each for each in self.labels if (each["target"], each["start"], each["end"]) == place]
        return found[-1] if found else None

    def machine_verdict(self, label: Row) -> str | None:
        """What the machine said of the words that a label is about; None where it judged no such words."""
        match label["target"]:
            case "claim":
                rows, name = self.claims, "verdict"
            case "sentence":
                rows, name = self.sentences, "status"
            case "reference":
                rows, name = self.citations, "status"
            case _:
                return None
        place = (label["start"], label["end"])
        return next((row[name] for row in rows if place != (None, None) and (row["start"], row["end"]) == place), None)


_OF_SENTENCE = {"text", "status", "why", "citation_ids"}
_OF_CITATION = {"text", "reference", "evidence_id", "status", "resolved_by"}
_OF_ISSUE = {
    *("id", "source", "type", "severity", "description", "reason", "suggestion", "evidence_ids", "rule"),
    *("start", "end"),
}
"""Fields of the audit that rows have, as they are stored."""


def _row(found: Sentence | Citation, answer: str | None, fields: set[str]) -> Row:
    """Return a row of the audit as it is stored, with its offsets into the answer at the end."""
    return found.model_dump(mode="json", include=fields) | _placed(answer, found)


def _claim(check: ClaimCheck, answer: str | None) -> Row:
    claim = check.claim
    return {
        "text": claim.text,
        "statement": claim.statement or claim.text,
        **_placed(answer, claim),
        **check.model_dump(mode="json", include={"verdict", "support", "confidence", "sources"}),
        "cited": list(claim.cited),
        "judged_by": check.judged_by,
    }


def _placed(answer: str | None, found: Sentence | Citation | Claim) -> Row:
    """The offsets of a row of the audit: a sentence or a claim may occur twice, so its own offsets come first."""
    text, start, end = found.text, found.start, found.end
    if answer is not None and start is not None and end is not None and 0 <= start < end and answer[start:end] == text:
        return {"start": start, "end": end}
    return _offsets(place_of(answer, text, start, end))


def _offsets(place: Place | None) -> Row:
    return {"start": None, "end": None} if place is None else {"start": place.start, "end": place.end}


def _cut(answer: str | None, start: int | None, end: int | None) -> str | None:
    return None if answer is None or start is None or end is None else answer[start:end]
