"""The labels of the decision form: what a browser posts of them, and the labels that follow.

Without Streamlit, like ``decision_form.py``. ``components/label_bar.js`` gives the labels. A
browser counts offsets itself, so each passage is posted with its words, and the service that
records the decision checks that they are at their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, model_validator

from masis.audit.sentences import split_sentences
from masis.schema.audit import ClaimCheck
from masis.schema.base import Record
from masis.schema.case import Case, Evidence
from masis.schema.labels import (
    FAULTS,
    LABEL_CHOICES,
    MOST_PASSAGES,
    SERIOUS_FAULTS,
    LabelPassage,
    Stance,
    SupportKind,
    TargetLabel,
)
from masis.schema.review import Decision
from masis.schema.run import Iteration
from masis.schema.wording import shorten
from masis.services.drafts import read_if_valid, sanitize_text
from masis.ui.review.form_texts import LONGEST_ID, Answer, ChunkId, Name, Place
from masis.views.marks import reference_marks, written_references
from masis.views.verdicts import target_key
from masis.views.words import (
    CHUNK_LABEL,
    NOT_JUDGED,
    PART_LABELS,
    PASSAGE_MISSING,
    REPORT_STANCE,
    STANCE,
    SUPPORT_KIND,
    label,
)

ROWS_LABELLED = 120
EXCERPT = 220
MOST_BASES = 20
MOST_CHUNKS = 1_000

Data = dict[str, Any]
AnswerPart = Literal["claim", "reference", "sentence"]


IMPLIED_LABELS: dict[AnswerPart, dict[Stance, str]] = {
    "claim": {"supports": "supported", "contradicts": "contradicted"},
    "reference": {"supports": "valid", "contradicts": "contradicts"},
    "sentence": {"supports": "uncited", "contradicts": "uncited"},
}
"""The label that a part without one gets with its first passage, so that one key gives both."""

_WRONG_REFERENCES = ("fabricated", "misattributed", "unsupported", "contradicts")
"""The labels of a reference after which the form asks for the right one."""


class PassageFields(LabelPassage):
    """A passage as a browser posts it."""

    evidence_id: ChunkId
    start: Place
    end: Place
    text: Annotated[Answer, Field(min_length=1)]


def _valid_passages(posted: object) -> tuple[PassageFields, ...]:
    read = (
        read_if_valid(PassageFields, passage)
        for passage in (posted[:MOST_PASSAGES] if isinstance(posted, list | tuple) else ())
    )
    return tuple(passage for passage in read if passage is not None)


class NamedEvidence(Record):
    """The evidence that a label names: passages, the right reference and the kind of support."""

    evidence: Annotated[tuple[PassageFields, ...], BeforeValidator(_valid_passages)] = ()
    right_reference: ChunkId | None = None
    kind: SupportKind | None = None

    def to_label_fields(self) -> Data:
        """Return the fields of ``TargetLabel``. A kind without a supporting passage is left out."""
        supports = any(passage.stance == "supports" for passage in self.evidence)
        return {
            "evidence": self.evidence,
            "right_reference": self.right_reference,
            "kind": self.kind if supports else None,
        }


class LabelFields(NamedEvidence):
    """The label on a claim, a reference or a sentence. It may be incomplete."""

    label: Name


class ChunkFields(Record):
    """The label on a chunk of the evidence."""

    label: Literal["relevant", "irrelevant", "conflicting"]
    conflicts_with: ChunkId | None = None

    @model_validator(mode="after")
    def _names_the_other(self) -> Self:
        if (self.label == "conflicting") != (self.conflicts_with is not None):
            raise ValueError("set conflicts_with if, and only if, the label is 'conflicting'")
        return self


def _valid_label(key: str, posted: object) -> LabelFields | None:
    """Return a posted label if it's one that its target can have."""
    fields = read_if_valid(LabelFields, posted)
    kind = key.partition(":")[0]
    is_known = kind in PART_LABELS and fields is not None and fields.label in LABEL_CHOICES[kind]
    return fields if is_known else None


def _valid_labels(posted: object) -> dict[str, dict[str, LabelFields]]:
    read = {
        sanitize_text(base, 200): {
            sanitize_text(key, 60): fields
            for key, chosen in labels.items()
            if (fields := _valid_label(str(key), chosen))
        }
        for base, labels in (list(posted.items())[:MOST_BASES] if isinstance(posted, dict) else ())
        if isinstance(labels, dict)
    }
    return {base: labels for base, labels in read.items() if labels}


def _valid_chunks(posted: object) -> dict[str, ChunkFields]:
    items = list(posted.items())[:MOST_CHUNKS] if isinstance(posted, dict) else ()
    return {
        name: fields
        for chunk_id, chosen in items
        if (name := sanitize_text(chunk_id, LONGEST_ID))
        and (fields := read_if_valid(ChunkFields, chosen))
        and fields.conflicts_with != name
    }


Labels = Annotated[dict[str, dict[str, LabelFields]], BeforeValidator(_valid_labels)]
"""Labels by iteration (``label_base``) and target (``target_key``)."""

Chunks = Annotated[dict[str, ChunkFields], BeforeValidator(_valid_chunks)]
"""Labels on chunks, by the id of the chunk."""


class _Target(NamedTuple):
    key: str
    kind: AnswerPart
    start: int
    end: int
    verdict: str
    sentence: int | None


def _targets(iteration: Iteration) -> list[_Target]:
    """Return the claims, references and uncited sentences with a place in the answer, in order."""
    targets: dict[str, _Target] = {}

    def add(
        kind: AnswerPart, start: int | None, end: int | None, verdict: str, sentence: int | None
    ) -> None:
        if start is not None and end is not None and start < end:
            key = target_key(kind, start, end)
            targets.setdefault(key, _Target(key, kind, start, end, verdict, sentence))

    for judged in iteration.claims:
        claim = judged.claim
        add("claim", claim.start, claim.end, judged.verdict, claim.sentence)
    marks = reference_marks(iteration)
    for number, citation in enumerate(iteration.citation_audit.citations):
        add("reference", citation.start, citation.end, marks[number], citation.sentence)
    for place, sentence in enumerate(iteration.citation_audit.sentences):
        if sentence.status == "uncited":
            add("sentence", sentence.start, sentence.end, sentence.status, place)
    return sorted(targets.values(), key=lambda target: (target.start, target.end))


def label_rows(iteration: Iteration, case: Case) -> list[Data]:
    """Return the parts of an iteration that can be labelled, each with the machine's verdict.

    ``offered`` holds the audit's own passages (``_offered_passages``), and ``right`` the chunk
    that it considers the right one to cite, or None. ``doubtful`` says that the audit found a fault
    in the part or couldn't confirm it.
    """
    chunks = {chunk.id: chunk for chunk in case.evidence}
    citations = iteration.citation_audit.citations
    written = {
        target_key("reference", citation.start, citation.end): text
        for citation, text in zip(citations, written_references(iteration), strict=True)
    }
    rows: list[Data] = []
    for target in _targets(iteration)[:ROWS_LABELLED]:
        checks = list(_checks_of(target, iteration))
        offered = list(_offered_passages(checks, chunks))
        rows.append(
            {
                "key": target.key,
                "kind": target.kind,
                "text": shorten(
                    written.get(target.key) or iteration.answer[target.start : target.end], EXCERPT
                ),
                "where": _words_before_reference(iteration.answer, target.start)
                if target.kind == "reference"
                else "",
                "machine": label(PART_LABELS[target.kind][target.verdict]),
                "verdict": target.verdict,
                "doubtful": target.verdict in FAULTS[target.kind]
                or (target.kind == "claim" and target.verdict != "supported"),
                "offered": [passage.model_dump() for passage in offered],
                "right": _right_reference(target, checks, offered, iteration),
            }
        )
    return rows


def _checks_of(target: _Target, iteration: Iteration) -> Iterator[ClaimCheck]:
    """Yield the claim of a target, or the claims of its sentence."""
    for check in iteration.claims:
        if target.kind == "claim":
            if (check.claim.start, check.claim.end) == (target.start, target.end):
                yield check
        elif target.sentence is not None and check.claim.sentence == target.sentence:
            yield check


def _offered_passages(
    checks: Iterable[ClaimCheck], chunks: dict[str, Evidence]
) -> Iterator[LabelPassage]:
    """Yield the passages that settle claims according to the audit, each once.

    A contradiction is often a single figure, so the sentence that holds it is offered, without the
    other passages that the audit compared. The passages of an unconfirmed claim only resemble it
    and aren't offered.
    """
    seen: set[tuple[str, int, int]] = set()
    for check in checks:
        spans: list[tuple[str, int, int, Stance]] = []
        for contradiction in check.contradictions:
            if contradiction.kind != "source" and contradiction.evidence_id in chunks:
                text = chunks[contradiction.evidence_id].text
                place = _sentence_around(
                    text, contradiction.evidence_start, contradiction.evidence_end
                )
                spans.append((contradiction.evidence_id, *place, "contradicts"))
        if check.verdict in ("supported", "partial") or (
            check.verdict == "contradicted" and not spans
        ):
            stance: Stance = "contradicts" if check.verdict == "contradicted" else "supports"
            spans += [(quote.evidence_id, quote.start, quote.end, stance) for quote in check.quotes]
        for evidence_id, start, end, stance in spans:
            known = evidence_id in chunks and 0 <= start < end <= len(chunks[evidence_id].text)
            if known and (evidence_id, start, end) not in seen and len(seen) < MOST_PASSAGES:
                seen.add((evidence_id, start, end))
                yield LabelPassage(
                    evidence_id=evidence_id,
                    start=start,
                    end=end,
                    text=chunks[evidence_id].text[start:end],
                    stance=stance,
                )


def _sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the place of the sentence that holds a range, or the range if there is none."""
    for sentence in split_sentences(text):
        if sentence.start <= start and end <= sentence.end:
            return sentence.start, sentence.end
    return start, end


def _right_reference(
    target: _Target,
    checks: Iterable[ClaimCheck],
    offered: Iterable[LabelPassage],
    iteration: Iteration,
) -> str | None:
    """Return the chunk that the audit considers the right one to cite, or None."""
    if target.kind == "claim":
        return None
    cited = {
        citation.evidence_id
        for citation in iteration.citation_audit.citations
        if (citation.start, citation.end) == (target.start, target.end)
    }
    for check in checks:
        for reference in check.references:
            if reference.evidence_id in cited and reference.better:
                return reference.better
    supporting = (passage for passage in offered if passage.stance == "supports")
    return next(
        (passage.evidence_id for passage in supporting if passage.evidence_id not in cited), None
    )


def _words_before_reference(answer: str, start: int) -> str:
    """Return the last words before a reference, to tell one ``[1]`` from another."""
    words = answer[max(0, start - 60) : start].rstrip("[( ").replace("\n", " ")
    return words if start <= 60 else "…" + words.partition(" ")[2]


def label_words() -> Data:
    """Return the labels that a reviewer can choose, with their words, for ``label_bar.js``.

    ``choices`` lists code, word and meaning by the kind of target, as ``kinds`` does. ``serious``
    holds the codes that an approval asks about.
    ``stances`` holds the words of a passage's stances, and ``report_stances`` those of a reported
    issue, by what its passages are about.
    """
    tables = {**PART_LABELS, "evidence": CHUNK_LABEL}
    return {
        "choices": {
            kind: [(code, words[code].text, words[code].meaning) for code in LABEL_CHOICES[kind]]
            for kind, words in tables.items()
        },
        "implied": IMPLIED_LABELS,
        "wrong_references": _WRONG_REFERENCES,
        "serious": {kind: sorted(codes) for kind, codes in SERIOUS_FAULTS.items()},
        "stances": {stance: label(word) for stance, word in STANCE.items()},
        "report_stances": REPORT_STANCE,
        "kinds": [(kind, word.text, word.meaning) for kind, word in SUPPORT_KIND.items()],
        "missing": label(PASSAGE_MISSING),
        "most_passages": MOST_PASSAGES,
    }


def target_labels(
    iteration: Iteration | None,
    chosen: Mapping[str, LabelFields],
    recorded: Iterable[TargetLabel] = (),
) -> Iterator[TargetLabel]:
    """Yield the chosen labels. Their words are taken from the answer, not from the browser.

    ``recorded`` are the labels of a decision that the form started from. A program may have put
    some of them on other words than the parts of the iteration.
    """
    targets = _targets(iteration) if iteration else []
    for target in targets:
        if iteration and (fields := chosen.get(target.key)) is not None:
            yield TargetLabel(
                target=target.kind,
                start=target.start,
                end=target.end,
                text=iteration.answer[target.start : target.end],
                label=fields.label,
                **fields.to_label_fields(),
            )
    known = {target.key for target in targets}
    for label_ in recorded:
        key = _key_of(label_)
        if key not in known and (fields := chosen.get(key)) is not None:
            changes = {"label": fields.label, **fields.to_label_fields()}
            yield TargetLabel.model_validate(label_.model_dump() | changes)


def keep_recorded(
    labels: Iterable[TargetLabel], recorded: Sequence[TargetLabel]
) -> tuple[TargetLabel, ...]:
    """Return labels with those that are as recorded first, in their order and with their notes."""

    def identity(label_: TargetLabel) -> str:
        # the form has no field for the note of a label on a part or a chunk
        has_own_note = label_.reports or label_.target == "case"
        return label_.model_dump_json(exclude=set() if has_own_note else {"note"})

    given = {identity(label_): label_ for label_ in labels}
    kept = [label_ for label_ in recorded if given.pop(identity(label_), None)]
    return (*kept, *given.values())


def recorded_rows(decision: Decision, iteration: Iteration | None, case: Case) -> list[Data]:
    """Return the parts of a decided answer that can be labelled.

    A part without a verdict of the audit is one that the decision has labelled. Chunks are labelled
    on their cards.
    """
    rows = label_rows(iteration, case) if iteration else []
    known = {row["key"] for row in rows}
    return rows + [
        {
            "key": _key_of(label_),
            "kind": label_.target,
            "text": shorten(label_.text, EXCERPT),
            "where": "",
            "machine": label(NOT_JUDGED),
            "verdict": "",
            "doubtful": False,
            "offered": [],
            "right": None,
        }
        for label_ in decision.labels
        if label_.target in PART_LABELS and not label_.reports and _key_of(label_) not in known
    ]


def _key_of(label_: TargetLabel) -> str:
    return f"{label_.target}:{label_.start}-{label_.end}"


def evidence_labels(chunks: dict[str, ChunkFields], missing: str | None) -> Iterator[TargetLabel]:
    """Yield the labels on chunks, and the one on the case if it lacks a passage.

    Args:
        chunks: The labels by chunk.
        missing: The note about the missing passage, or None if none is missing.

    """
    for chunk_id, fields in chunks.items():
        yield TargetLabel(
            target="evidence",
            evidence_id=chunk_id,
            label=fields.label,
            conflicts_with=fields.conflicts_with,
        )
    if missing is not None:
        yield TargetLabel(target="case", label="passage_missing", note=missing.strip())


def labels_of(decision: Decision) -> Data:
    """Return the labels of a decision as fields of the form, without reported issues."""
    base = f"{decision.run_id}/{decision.iteration}"
    on_parts: dict[str, Data] = {}
    chunks: dict[str, Data] = {}
    missing = None
    for target in decision.labels:
        if target.target == "evidence":
            chunks[target.evidence_id or ""] = {
                "label": target.label,
                "conflicts_with": target.conflicts_with,
            }
        elif target.target == "case":
            missing = target.note
        elif not target.reports:
            on_parts[_key_of(target)] = {"label": target.label, **named_evidence(target)}
    return {"labels": {base: on_parts} if on_parts else {}, "chunks": chunks, "missing": missing}


def named_evidence(target: TargetLabel) -> Data:
    """Return the evidence that a label names, as fields of the form."""
    return {
        "evidence": [passage.model_dump() for passage in target.evidence],
        "right_reference": target.right_reference,
        "kind": target.kind,
    }
