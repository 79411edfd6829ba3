"""Reads labels that a program gives, and checks that they quote the answer and its evidence."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from masis.errors import InputError
from masis.schema.case import Evidence
from masis.schema.explain import explain, kind_of
from masis.schema.labels import LABEL_CHOICES, WORDS_OF_ANSWER, LabelTarget, TargetLabel
from masis.services.label_names import target_of

LabelRecord = Mapping[str, Any]
"""A label on words of the answer: ``{"text": "...", "label": "unsupported"}``.

It needs ``start`` if the words occur more than once. With ``severity`` it reports an issue of one
of the team's types, which is about the whole answer if there is no ``text``. ``evidence`` lists
passages such as ``{"evidence_id": "c2", "text": "...", "stance": "contradicts"}``. With
``evidence_id`` the label is about that chunk: ``{"evidence_id": "c2", "label": "irrelevant"}``.
"""

LABEL_FIELDS = (
    "text",
    "label",
    "start",
    "severity",
    "note",
    "target",
    "evidence",
    "right_reference",
    "kind",
    "evidence_id",
    "conflicts_with",
)
"""The fields of a label."""

PASSAGE_FIELDS = ("evidence_id", "text", "start", "stance")
"""The fields of a passage. ``end`` follows from ``start`` and ``text``."""

_COPIED = ("severity", "note", "right_reference", "kind", "evidence_id", "conflicts_with")


def as_labels(labels: Iterable[LabelRecord] | LabelRecord) -> tuple[LabelRecord, ...]:
    """Return labels as a tuple; a single one may be given without a list."""
    return (labels,) if isinstance(labels, Mapping) else tuple(labels)


def read_labels(
    labels: Iterable[LabelRecord] | LabelRecord, answer: str, evidence: Sequence[Evidence]
) -> tuple[TargetLabel, ...]:
    """Return labels as records, with the offsets of the words that they quote.

    Args:
        labels: The labels; a single one may be given without a list.
        answer: The answer that is labelled.
        evidence: The evidence of the case.

    Raises:
        InputError: See ``read_label``.

    """
    return tuple(
        read_label(label, answer, evidence, number)
        for number, label in enumerate(as_labels(labels))
    )


def read_label(
    record: LabelRecord, answer: str, evidence: Sequence[Evidence], number: int
) -> TargetLabel:
    """Return a label as a record, with the offsets of the words that it quotes.

    Args:
        record: The label, with the fields ``LABEL_FIELDS``.
        answer: The answer that is labelled.
        evidence: The evidence of the case.
        number: The label's position in its list, from 0, which errors name.

    Raises:
        InputError: A field is unknown or has a wrong value, the words aren't in the answer or in
            the chunk, or they occur there more than once and ``start`` is missing.

    Example:
        >>> read_label({"text": "opened", "label": "partial"}, "It opened.", (), 0).start
        3

    """
    field = f"labels[{number}]"
    _check_fields(record, LABEL_FIELDS, "a label", '{"text": "...", "label": "..."}', field)
    target = record.get("target") or _default_target(record)
    span: dict[str, Any] = {}
    if (text := record.get("text")) and target in WORDS_OF_ANSWER:
        start = _find_words(text, answer, record.get("start"), "the answer", field)
        span = {"text": text, "start": start, "end": start + len(text)}
    elif text:
        span = {"text": text}
    passages = record.get("evidence") or ()
    if isinstance(passages, Mapping):
        passages = (passages,)
    if not isinstance(passages, Sequence) or isinstance(passages, str):
        raise InputError(
            f"is {kind_of(passages)}",
            hint='Write [{"evidence_id": "...", "text": "..."}].',
            field=f"{field}.evidence",
        )
    rest = {key: record[key] for key in _COPIED if record.get(key) is not None}
    located = [
        _read_passage(passage, evidence, f"{field}.evidence[{index}]")
        for index, passage in enumerate(passages)
    ]
    values = {"target": target, "label": record.get("label"), "evidence": located, **span, **rest}
    try:
        return TargetLabel.model_validate(values)
    except ValidationError as error:
        explained = explain(error)
        raise InputError(
            explained.problem, hint=explained.hint, field=f"{field}.{explained.field or 'label'}"
        ) from error


def _default_target(record: LabelRecord) -> LabelTarget:
    if record.get("evidence_id") is not None:
        return "evidence"
    if record.get("severity"):
        return "span" if record.get("text") else "answer"
    if record.get("label") in LABEL_CHOICES["case"]:
        return "case"
    return target_of(record.get("label"))


def _read_passage(passage: Any, evidence: Sequence[Evidence], field: str) -> dict[str, Any]:
    example = '{"evidence_id": "...", "text": "..."}'
    _check_fields(passage, (*PASSAGE_FIELDS, "end"), "a passage", example, field)
    chunk = find_evidence(passage.get("evidence_id"), evidence, f"{field}.evidence_id")
    text = passage.get("text")
    if not isinstance(text, str) or not text:
        raise InputError("is missing", hint=f"Write {example}.", field=f"{field}.text")
    start = _find_words(text, chunk.text, passage.get("start"), f"evidence {chunk.id!r}", field)
    located = {"evidence_id": chunk.id, "text": text, "start": start, "end": start + len(text)}
    stance = passage.get("stance")
    return located if stance is None else located | {"stance": stance}


def _check_fields(record: Any, known: Sequence[str], name: str, example: str, field: str) -> None:
    """Raise InputError unless a value is a mapping with known fields only."""
    if not isinstance(record, Mapping):
        raise InputError(f"is {kind_of(record)}", hint=f"Write {example}.", field=field)
    for key in record:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Fields: {', '.join(known)}."
            raise InputError(f"isn't a field of {name}", hint=hint, field=f"{field}.{key}")


def _find_words(text: Any, within: str, start: Any, name: str, field: str) -> int:
    """Return the offset of words in a text; they must occur once unless ``start`` is given."""
    if not isinstance(text, str):
        raise InputError(f"is {kind_of(text)}", hint="Copy the words.", field=f"{field}.text")
    if start is None:
        start = within.find(text)
        if start < 0 or within.find(text, start + 1) >= 0:
            problem = f"isn't in {name}" if start < 0 else f"occurs in {name} more than once"
            raise InputError(
                problem, hint=f"Copy the words from {name}, or set start.", field=f"{field}.text"
            )
    if not isinstance(start, int) or isinstance(start, bool) or start < 0:
        raise InputError(
            f"is {json.dumps(start)}" if isinstance(start, int) else f"is {kind_of(start)}",
            hint="Use the offset of the words, a whole number from 0.",
            field=f"{field}.start",
        )
    if within[start : start + len(text)] != text:
        raise InputError(
            "isn't at start", hint="Correct start, or leave it out.", field=f"{field}.text"
        )
    return start


def find_evidence(evidence_id: Any, evidence: Sequence[Evidence], field: str) -> Evidence:
    """Return the chunk with an id.

    Raises:
        InputError: There is no such chunk.

    """
    for chunk in evidence:
        if chunk.id == evidence_id:
            return chunk
    ids = [chunk.id for chunk in evidence]
    near = difflib.get_close_matches(str(evidence_id)[:200], ids, n=1)
    if near:
        hint = f"Did you mean {near[0]!r}?"
    else:
        hint = f"Use one of {', '.join(ids[:10])}." if ids else "The case has no evidence."
    raise InputError(
        f"is {str(evidence_id)[:80]!r}, which isn't evidence of this case", hint=hint, field=field
    )


def check_quotations(
    labels: Sequence[TargetLabel], answer: str, evidence: Sequence[Evidence], *, kept: int = 0
) -> None:
    """Check that labels quote the answer and the evidence, and name chunks of the case.

    Args:
        labels: The labels of a decision.
        answer: The answer that it is about.
        evidence: The evidence of the case.
        kept: How many labels, from the first, repeat an earlier decision. They aren't checked
            again, and errors count from the first label after them.

    Raises:
        InputError: Words aren't at their place, or a chunk isn't one of the case.

    """
    for number, label in enumerate(labels[kept:]):
        field = f"labels[{number}]"
        if label.start is not None and label.end is not None:
            _check_quotation(label.text, label.start, label.end, answer, "the answer", field)
        for name in ("evidence_id", "conflicts_with", "right_reference"):
            if (chunk_id := getattr(label, name)) is not None:
                find_evidence(chunk_id, evidence, f"{field}.{name}")
        for index, passage in enumerate(label.evidence):
            place = f"{field}.evidence[{index}]"
            chunk = find_evidence(passage.evidence_id, evidence, f"{place}.evidence_id")
            name = f"evidence {chunk.id!r}"
            _check_quotation(passage.text, passage.start, passage.end, chunk.text, name, place)


def _check_quotation(text: str, start: int, end: int, within: str, name: str, field: str) -> None:
    """Raise InputError unless words are at their place in a text."""
    range_ = f"characters {start} to {end}"
    if not 0 <= start < end <= len(within):
        raise InputError(
            f"{range_} aren't a range of {name}, which has {len(within):,} characters",
            hint=f"Count start and end in characters of {name}; start must be before end.",
            field=field,
        )
    if within[start:end] != text:
        raise InputError(
            f"at {range_} {name} has {within[start:end][:80]!r}, not {text[:80]!r}",
            hint="Select the words again.",
            field=field,
        )
