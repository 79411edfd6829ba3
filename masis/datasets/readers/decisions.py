"""Decisions from files: one a row as ``masis decide --file`` takes them, or what Label Studio and
Argilla export.

Each gives rows with ``case``, ``verdict`` and what else ``Desk.decide_all`` takes. What a tool
showed to its annotators is not known, so that a row says nothing of it unless the file does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

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
_CASE_KEYS = ("case_id", "case", "external_id", "id")
_TEXT_FIELDS = ("corrected_answer", "reason", "note")
_NESTED_CELLS = ("labels", "machine_shown")


def read_decisions(
    path: Path, *, name: str | None = None, sheet: str | None = None
) -> Iterator[dict[str, Any] | InputError]:
    """Yield the decisions of a file, each with its ``line``, and an error for a row that can't be
    read.

    Raises InputError where the file can't be read.
    """
    called = name or str(path)
    try:
        for row in read_rows(path, name=called, sheet=sheet):
            if isinstance(row.value, InputError):
                yield row.value.at(file=called, line=row.number)
                continue
            for found in _row_decisions(row.value, table=row.table):
                yield {"line": row.number, **found}
    except InputError as error:
        raise error.at(file=called) from error


def _row_decisions(row: dict[str, Any], *, table: bool) -> Iterator[dict[str, Any]]:
    if isinstance(row.get("annotations"), list) and isinstance(row.get("data"), dict):
        for annotation in row["annotations"]:
            if isinstance(annotation, dict) and not annotation.get("was_cancelled"):
                yield _from_label_studio(row["data"], annotation)
    elif "responses" in row and isinstance(row.get("fields"), dict):
        yield from _from_argilla(row)
    elif table:
        cells = {key: cell for key, cell in row.items() if cell not in ("", None)}
        whole = {
            key: int(cells[key])
            for key in ("iteration", "version")
            if cells.get(key, "").isdecimal()
        }
        yield (
            cells | {key: parse_value(cells[key]) for key in _NESTED_CELLS if key in cells} | whole
        )
    else:
        yield row


def _case_reference(*places: Any) -> dict[str, Any]:
    found = (
        place[key]
        for key in _CASE_KEYS
        for place in places
        if isinstance(place, dict) and place.get(key) is not None
    )
    case = next(found, None)
    return {} if case is None else {"case": str(id_text(case))}


def _from_label_studio(data: dict[str, Any], annotation: dict[str, Any]) -> dict[str, Any]:
    """An annotation: the verdict is a choice, words are regions, reason and corrected answer are
    text areas.
    """
    found: dict[str, Any] = _case_reference(data)
    labels: list[dict[str, Any]] = []
    for result in annotation.get("result") or ():
        value = result.get("value") if isinstance(result, dict) else None
        if not isinstance(value, dict):
            continue
        named = str(result.get("from_name", ""))
        for choice in value.get("choices") or ():
            _apply_choice(found, named, str(choice))
        if isinstance(value.get("text"), list) and (field := _text_field(named)):
            found[field] = "\n".join(map(str, value["text"]))
        for label in value.get("labels") or value.get("hypertextlabels") or ():
            if isinstance(value.get("text"), str):
                placed = {"start": value["start"]} if isinstance(value.get("start"), int) else {}
                labels.append({"text": value["text"], **placed, "label": str(label)})
    by = annotation.get("completed_by")
    who = (
        by.get("email")
        if isinstance(by, dict)
        else None
        if by is None
        else f"Label Studio user {by}"
    )
    return found | ({"labels": labels} if labels else {}) | ({"reviewer": str(who)} if who else {})


def _from_argilla(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Each person's responses to the questions ``verdict``, ``reason`` and ``corrected_answer``,
    and spans.
    """
    by_person: dict[str, dict[str, Any]] = {}
    for person, question, value in _submitted_responses(row["responses"]):
        by_person.setdefault(person, {})[question] = value
    for person, values in by_person.items():
        found: dict[str, Any] = _case_reference(row.get("metadata"), row)
        labels: list[dict[str, Any]] = []
        for question, value in values.items():
            if isinstance(value, list):
                labels += [
                    span for each in value if (span := _span_label(each, row["fields"])) is not None
                ]
            elif isinstance(value, str):
                _apply_choice(found, question, value)
                if field := _text_field(question):
                    found[field] = value
        who = {"reviewer": f"Argilla user {person}"} if person else {}
        yield found | ({"labels": labels} if labels else {}) | who


def _submitted_responses(responses: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield person, question and value of each response; Argilla 2 writes them by question, Argilla
    1 by person.
    """
    by_question = responses if isinstance(responses, dict) else {"": responses}
    for question, answers in by_question.items():
        for answer in answers if isinstance(answers, list) else ():
            if isinstance(answer, dict) and answer.get("status", "submitted") == "submitted":
                values = {question: answer} if question else answer.get("values")
                for name, each in values.items() if isinstance(values, dict) else ():
                    yield (
                        str(answer.get("user_id") or ""),
                        name,
                        each.get("value") if isinstance(each, dict) else None,
                    )


def _span_label(given: Any, fields: dict[str, Any]) -> dict[str, Any] | None:
    """A span of the answer, the one field that has words at its place, by the label's offsets."""
    if (
        not isinstance(given, dict)
        or not isinstance(given.get("start"), int)
        or not isinstance(given.get("end"), int)
    ):
        return None
    texts = (
        fields[name] for name in ("answer", "response", "text") if isinstance(fields.get(name), str)
    )
    text = next(texts, "")[given["start"] : given["end"]]
    return (
        {"text": text, "start": given["start"], "label": str(given.get("label"))} if text else None
    )


def _apply_choice(found: dict[str, Any], named: str, choice: str) -> None:
    """Take a choice as the verdict where it is one, else as the reason where its question asks for
    it.
    """
    verdict = _VERDICTS.get(choice.strip().lower())
    if verdict is not None and "verdict" not in found:
        found["verdict"] = verdict
    elif "reason" in named.lower():
        found.setdefault("reason", choice)


def _text_field(named: str) -> str | None:
    plain = named.lower().replace("-", "_").replace(" ", "_")
    return next(
        (field for field in _TEXT_FIELDS if field in plain or plain in field.split("_")), None
    )
