"""Reads decisions from files: one per row, our own exports, and those of Label Studio and Argilla.

Each row has ``case``, ``verdict`` and the other arguments of ``Desk.decide_all``. It isn't known
what a tool showed to its annotators, so ``machine_shown`` is only set if the file has it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from masis.datasets.exports.origin import refuse_export
from masis.datasets.readers.strict_json import parse_object
from masis.datasets.rows import read_rows
from masis.errors import InputError
from masis.schema.literals import parse_value
from masis.schema.reading import id_text
from masis.schema.review import Verdict

_VERDICTS: Mapping[str, Verdict] = {
    **{verdict: verdict for verdict in get_args(Verdict)},
    **dict.fromkeys(("approved", "accept", "accepted"), "approve"),
    **dict.fromkeys(("overridden", "corrected"), "override"),
    **dict.fromkeys(("rejected",), "reject"),
    **dict.fromkeys(("escalated",), "escalate"),
}
"""The words of other tools for our verdicts."""
_CASE_KEYS = ("case_id", "case", "external_id", "id")
"""Keys that may name the case, the most specific first."""
_WHOLE_ANSWER = "answer"
"""The question of our labelling interface for Label Studio about issues of the whole answer."""
_TEXT_FIELDS = ("corrected_answer", "reason", "note")
_NESTED_CELLS = ("labels", "machine_shown")
"""Columns whose cells are JSON."""


def read_decisions(
    path: Path, *, name: str | None = None, sheet: str | None = None
) -> Iterator[dict[str, Any] | InputError]:
    """Yield the decisions of a file, each with its ``line``, and an error for an unreadable row.

    Raises:
        InputError: The file can't be read.

    """
    source_name = name or str(path)
    digest, is_first = "", True
    try:
        for row in read_rows(path, name=source_name, sheet=sheet):
            if isinstance(row.value, InputError):
                yield row.value.at(file=source_name, line=row.number)
                continue
            if is_first and not _is_exported(row.value):
                refuse_export(row.value, "decisions")
            is_first = False
            if _is_exported(row.value):
                digest = digest or _export_digest(path)
                yield _exported_decisions(row.value, row.number, digest, source_name)
                continue
            for decision in _row_decisions(row.value, table=row.table):
                yield {"line": row.number, **decision}
    except InputError as error:
        raise error.at(file=source_name) from error


_EXPORTED_FIELDS = ("case", "judged_answer", "decision", "decisions")
_EXPORTED_COLUMNS = {"case_id", "digest", "decision", "entry_id", "original_answer"}
"""The columns of an export of decided cases as a table."""


def _is_exported(row: dict[str, Any]) -> bool:
    """Return whether a row is from our own export of decided cases."""
    return set(row) >= _EXPORTED_COLUMNS or (
        isinstance(row.get("case"), dict) and {"judged_answer", "decisions"} <= set(row)
    )


def _exported_decisions(
    row: dict[str, Any], line: int, digest: str, source_name: str
) -> dict[str, Any] | InputError:
    """Return an exported row with only what decisions need, or why they can't come back in."""
    if set(row) >= _EXPORTED_COLUMNS:
        record = row.get("record")
        if not isinstance(record, str):
            return InputError(
                "is a row of decided cases as CSV, which has no labels, no evidence and only one"
                " decision per case",
                hint="Export the cases as jsonl or parquet to import their decisions.",
                file=source_name,
                line=line,
            )
        try:
            row = parse_object(record.encode())
        except InputError as error:
            return error.at(file=source_name, line=line)
    exported = {name: row.get(name) for name in _EXPORTED_FIELDS}
    return {"line": line, "exported": exported, "file": digest}


def _export_digest(path: Path) -> str:
    """Return the SHA-256 digest of a file, or "" for a folder."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _row_decisions(row: dict[str, Any], *, table: bool) -> Iterator[dict[str, Any]]:
    if isinstance(row.get("annotations"), list) and isinstance(row.get("data"), dict):
        for annotation in row["annotations"]:
            if isinstance(annotation, dict) and not annotation.get("was_cancelled"):
                yield _from_label_studio(row["data"], annotation)
    elif "responses" in row and isinstance(row.get("fields"), dict):
        yield from _from_argilla(row)
    elif table:
        cells = {key: cell for key, cell in row.items() if cell not in ("", None)}
        numbers = {
            key: int(cells[key])
            for key in ("iteration", "version")
            if cells.get(key, "").isdecimal()
        }
        yield (
            cells
            | {key: parse_value(cells[key]) for key in _NESTED_CELLS if key in cells}
            | numbers
        )
    else:
        yield row


def _case_reference(*places: Any) -> dict[str, Any]:
    values = (
        place[key]
        for key in _CASE_KEYS
        for place in places
        if isinstance(place, dict) and place.get(key) is not None
    )
    case = next(values, None)
    return {} if case is None else {"case": str(id_text(case))}


def _from_label_studio(data: dict[str, Any], annotation: dict[str, Any]) -> dict[str, Any]:
    """Return the decision of an annotation.

    The verdict is a choice, labelled words are regions, and reason and corrected answer are text
    areas. A label with a severity, which our export writes into the region's meta, reports an
    issue.
    """
    decision: dict[str, Any] = _case_reference(data)
    labels: list[dict[str, Any]] = []
    for result in annotation.get("result") or ():
        value = result.get("value") if isinstance(result, dict) else None
        if not isinstance(value, dict):
            continue
        question = str(result.get("from_name", ""))
        details = _region_details(result)
        for choice in value.get("choices") or ():
            if question == _WHOLE_ANSWER:
                labels.append({"target": "answer", "label": str(choice), **details})
            else:
                _apply_choice(decision, question, str(choice))
        if isinstance(value.get("text"), list) and (field := _text_field(question)):
            decision[field] = "\n".join(map(str, value["text"]))
        for label in value.get("labels") or value.get("hypertextlabels") or ():
            if isinstance(value.get("text"), str):
                offset = {"start": value["start"]} if isinstance(value.get("start"), int) else {}
                region = {"text": value["text"], **offset, "label": str(label)}
                labels.append(region | details)
    annotator = annotation.get("completed_by")
    reviewer = (
        annotator.get("email")
        if isinstance(annotator, dict)
        else None
        if annotator is None
        else f"Label Studio user {annotator}"
    )
    return (
        decision
        | ({"labels": labels} if labels else {})
        | ({"reviewer": str(reviewer)} if reviewer else {})
    )


def _region_details(result: dict[str, Any]) -> dict[str, str]:
    """Return the severity and the note of a region, as our export writes them into its meta."""
    meta = result.get("meta")
    lines = meta.get("text") if isinstance(meta, dict) else None
    details = (
        line.partition(": ")
        for line in (lines if isinstance(lines, list) else [lines])
        if isinstance(line, str)
    )
    return {name: text for name, _, text in details if name in ("severity", "note")}


def _from_argilla(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield one decision per person, with the labelled spans.

    It is read from the responses to ``verdict``, ``reason`` and ``corrected_answer``.
    """
    by_person: dict[str, dict[str, Any]] = {}
    for person, question, value in _submitted_responses(row["responses"]):
        by_person.setdefault(person, {})[question] = value
    for person, values in by_person.items():
        decision: dict[str, Any] = _case_reference(row.get("metadata"), row)
        labels: list[dict[str, Any]] = []
        for question, value in values.items():
            if isinstance(value, list):
                labels += [
                    span for item in value if (span := _span_label(item, row["fields"])) is not None
                ]
            elif isinstance(value, str):
                _apply_choice(decision, question, value)
                if field := _text_field(question):
                    decision[field] = value
        reviewer = {"reviewer": f"Argilla user {person}"} if person else {}
        yield decision | ({"labels": labels} if labels else {}) | reviewer


def _submitted_responses(responses: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield person, question and value of each response.

    Argilla 2 groups responses by question, Argilla 1 by person.
    """
    by_question = responses if isinstance(responses, dict) else {"": responses}
    for question, answers in by_question.items():
        for answer in answers if isinstance(answers, list) else ():
            if isinstance(answer, dict) and answer.get("status", "submitted") == "submitted":
                values = {question: answer} if question else answer.get("values")
                for name, response in values.items() if isinstance(values, dict) else ():
                    yield (
                        str(answer.get("user_id") or ""),
                        name,
                        response.get("value") if isinstance(response, dict) else None,
                    )


def _span_label(span: Any, fields: dict[str, Any]) -> dict[str, Any] | None:
    """Return the label of a span of the answer, located by its offsets."""
    if (
        not isinstance(span, dict)
        or not isinstance(span.get("start"), int)
        or not isinstance(span.get("end"), int)
    ):
        return None
    texts = (
        fields[name] for name in ("answer", "response", "text") if isinstance(fields.get(name), str)
    )
    text = next(texts, "")[span["start"] : span["end"]]
    return {"text": text, "start": span["start"], "label": str(span.get("label"))} if text else None


def _apply_choice(decision: dict[str, Any], question: str, choice: str) -> None:
    """Use a choice as the verdict if it is one, or as the reason if the question asks for it."""
    verdict = _VERDICTS.get(choice.strip().lower())
    if verdict is not None and "verdict" not in decision:
        decision["verdict"] = verdict
    elif "reason" in question.lower():
        decision.setdefault("reason", choice)


def _text_field(question: str) -> str | None:
    plain = question.lower().replace("-", "_").replace(" ", "_")
    return next(
        (field for field in _TEXT_FIELDS if field in plain or plain in field.split("_")), None
    )
