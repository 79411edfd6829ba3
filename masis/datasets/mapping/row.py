"""Reads one row as a case by a profile, and reports every problem of the row at once.

Values that the profile doesn't name are kept under ``metadata.source_row``, so nothing is lost.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from masis.datasets.mapping.offsets import (
    LabelSpan,
    find_quoted_place,
    is_within,
    to_character_spans,
)
from masis.datasets.mapping.profile import Profile
from masis.datasets.mapping.replies import read_reply
from masis.datasets.paths import text_of, value_at
from masis.datasets.rows import DataRow
from masis.errors import InputError
from masis.schema import limits
from masis.schema.answers import cut_off_reason, no_answer_in
from masis.schema.case import Case, case_of
from masis.schema.columns import cited_by_place
from masis.schema.explain import kind_of, name_elsewhere
from masis.schema.literals import parse_value
from masis.schema.reading import (
    FIELDS,
    SPLIT,
    FieldMap,
    apply_field_map,
    content_id,
    id_text,
    refuse_unread,
    split_evidence,
)
from masis.schema.systems import names_system
from masis.schema.wording import shorten

LEAST_PRUNED = 12
"""The shortest text to leave out of ``metadata.source_row`` because the case has it elsewhere."""

SUGGEST_HINT = (
    "Run masis import FILE --suggest for a proposal, or name its path in a TOML file for --map"
    " (docs/files.md)."
)
"""The hint for a row that doesn't fit its profile."""

_NESTED_FIELDS = ("evidence", "reasoning_steps", "metadata", "labels", "citations", "messages")
"""Fields that a table cell holds as JSON, or as pandas prints a list."""


class MappedRow(NamedTuple):
    """The result of reading one row: a case, or the problems that prevent one.

    Attributes:
        number: The row's number from 1.
        end: The bytes of the file read so far.
        notes: Warnings about a readable row that may not be what its author meant.

    """

    number: int
    end: int
    case: Case | None
    problems: tuple[InputError, ...] = ()
    notes: tuple[InputError, ...] = ()

    def with_place(self, file: str) -> MappedRow:
        """Return the same with file and line in each problem and note."""
        if not self.problems and not self.notes:
            return self
        problems, notes = (
            tuple(message.at(file=file, line=self.number) for message in messages)
            for messages in self[3:]
        )
        return self._replace(problems=problems, notes=notes)


def read_row(row: DataRow, profile: Profile, names: FieldMap) -> MappedRow:
    """Return the case in a row, or the problems with it."""
    notes: list[InputError] = []
    try:
        if isinstance(row.value, InputError):
            raise row.value
        value = row.value
        if profile.is_own and row.table:
            value = _cell_values(value, names)
        elif not profile.is_own and names:
            value = apply_field_map(
                value,
                {
                    key: mapped_key
                    for key, mapped_key in names.items()
                    if mapped_key or key == SPLIT
                },
            )
        # Our own format is read most often, and JMESPath takes longer to return a whole row than
        # validating it does.
        own = value if profile.is_own else value_at(value, profile.whole) if profile.whole else None
        if isinstance(own, dict):
            case = _own_case(own, names if profile.is_own else {})
        else:
            reading = _RowReader(value, profile, names)
            with contextlib.suppress(_TooManyProblems):
                data = reading.case()
            if reading.problems:
                return MappedRow(row.number, row.end, None, tuple(reading.problems))
            absent = {
                "answer": None,
                **{field: None for field, key in names.items() if key is None},
            }
            case = case_of(data, "", absent)
            notes += reading.notes
        if row.table:
            _refuse_errors_of_cells(case)
    except InputError as error:
        return MappedRow(row.number, row.end, None, (error,))
    except RecursionError:
        return MappedRow(
            row.number, row.end, None, (InputError("is nested too deeply", hint="Flatten it."),)
        )
    if profile.left_out and row.number == 1:
        notes.append(InputError(profile.left_out, hint=profile.left_out_hint))
    if isinstance(own, dict) and case.messages and not isinstance(case.messages, tuple):
        problem = "isn't a conversation. It's kept unchanged, but pages don't show it"
        hint = 'Write it as "messages": [{"role": "user", "content": "..."}, ...].'
        notes.append(InputError(problem, hint=hint, field="messages"))
    if cited_by_place(case.answer or "", (chunk.id for chunk in case.evidence)):
        first = shorten(case.evidence[0].id, 40)
        problem = (
            f"cites no chunk by its id, such as {first!r}, but its numbers fit the chunks'"
            " positions"
        )
        hint = (
            "If [1] means the first chunk: --map evidence.id=, in Python map={...,"
            ' "evidence.id": None}.'
        )
        notes.append(InputError(problem, hint=hint, field="answer"))
    return MappedRow(row.number, row.end, case, (), tuple(notes))


_CELL_ERRORS = frozenset(
    ("#N/A", "#NAME?", "#REF!", "#VALUE!", "#DIV/0!", "#NUM!", "#NULL!", "#SPILL!", "#CALC!")
)
"""Errors that a spreadsheet shows for a failed formula.

An answer that begins with - or = is treated as a formula.
"""


def _refuse_errors_of_cells(case: Case) -> None:
    """Raise InputError if the question, the answer or a chunk is a spreadsheet error."""
    places = [("query", case.query), ("answer", case.answer or "")]
    places += [
        (f"evidence[{number}].text", chunk.text) for number, chunk in enumerate(case.evidence)
    ]
    for field, text in places:
        if text[:1] == "#" and text.strip() in _CELL_ERRORS:
            hint = "Correct the cell. A text that begins with - or = needs a leading apostrophe."
            raise InputError(f"is {text.strip()}, a spreadsheet error", hint=hint, field=field)


def _own_case(value: dict[str, Any], names: FieldMap) -> Case:
    """Return a row in the workbench's own format as a case.

    Raises:
        InputError: The row isn't a valid case.

    """
    try:
        return case_of(value, "", names)
    except InputError as error:
        if (
            "--map" in error.hint
            or error.field not in ("query", "evidence")
            or error.problem != "is missing"
        ):
            raise
        hint = (
            f"{error.hint} The row has {_key_list(value)}. Run masis import FILE --suggest for a"
            " proposal."
        )
        raise InputError(error.problem, hint=hint, field=error.field) from error


def _cell_values(row: dict[str, Any], names: FieldMap) -> dict[str, Any]:
    """Return the cells of a table as values.

    Empty cells are left out, and a single chunk of evidence becomes a list.
    """
    nested = {
        *_NESTED_FIELDS,
        *(mapped_key for key, mapped_key in names.items() if key in _NESTED_FIELDS),
    }
    read = {
        key: parse_value(cell) if key in nested else cell
        for key, cell in row.items()
        if cell not in ("", None)
    }
    if isinstance(read.get("evidence"), dict):
        read["evidence"] = [read["evidence"]]
    return read


def _key_list(value: dict[str, Any]) -> str:
    return ", ".join(repr(shorten(str(key), 40)) for key in list(value)[:8]) or "nothing"


MOST_PROBLEMS = 20
"""Maximum number of problems per row that are collected. Each takes 1.4 KB of memory."""


class _TooManyProblems(Exception):
    """Ends the reading of a row whose problems are enough to refuse it."""


class _RowReader:
    """Reads one row; each method fills one part of the case and collects its problems."""

    def __init__(self, row: dict[str, Any], profile: Profile, names: FieldMap) -> None:
        self._row, self._profile, self._names = row, profile, names
        self.problems: list[InputError] = []
        self._no_answer: dict[str, str] | None = None
        self._reasoning = ""
        self.notes: list[InputError] = []

    def case(self) -> dict[str, Any]:
        """Return the fields of the case."""
        metadata: dict[str, Any] = {"profile": self._profile.name}
        answer, evidence, citations = self._answer(metadata)
        data: dict[str, Any] = {
            "query": self._text(self._field_value("query"), "query", required=True)
        }
        if self._no_answer is not None:
            data["no_answer"] = self._no_answer
        elif answer is not None:
            data["answer"] = self._text(answer, "answer")
            self._note_if_cut_off(metadata)
        if self._reasoning:
            data["reasoning"] = self._reasoning
        data["evidence"] = self._evidence(evidence, answer)
        text = data.get("answer") or ""
        citations = self._citations_inside(citations, text, metadata)
        parts = {
            "citations": citations,
            "labels": self._labels(text),
            "messages": self._field_value("messages"),
        }
        data |= {name: part for name, part in parts.items() if part not in (None, [], {})}
        if (reference := self._field_value("reference")) is not None:
            metadata["reference_answer"] = (
                text_of(reference) if isinstance(reference, str | list) else reference
            )
        for name, paths in self._profile.external.items():
            if (value := self._follow(self._row, paths, f"external.{name}")) is not None:
                metadata.setdefault("external", {})[name] = value
        system = id_text(self._field_value("system"))
        if "system" in self._names or names_system(system):
            data["system"] = system
        if rest := _unused_values(self._row, _texts_in([data, metadata.get("reference_answer")])):
            metadata["source_row"] = rest
            self._refuse_unread(rest, data)
        data["metadata"] = metadata
        identifier = self._field_value("id")
        if identifier is not None and not isinstance(identifier, str | int | float):
            self._add_problem(f"is {kind_of(identifier)}, must be text", "id")
        return {"id": content_id(data) if identifier is None else str(id_text(identifier)), **data}

    def _note_if_cut_off(self, metadata: dict[str, Any]) -> None:
        """Note a cut-off reply, since its missing end isn't a fault of the answer."""
        if self._profile.converter is not None and (why := cut_off_reason(self._row)) is not None:
            metadata["cut_off"] = why
            problem = f"was cut off ({why}); only this part is audited"
            self.notes.append(
                InputError(problem, hint="Ask again with more tokens.", field="answer")
            )

    def _refuse_unread(self, rest: dict[str, Any], data: dict[str, Any]) -> None:
        """Add a problem if a missing part of the case may be under a key that isn't read.

        This is only checked if the row has no other problem.
        """
        absent = self._profile.drafted or self._no_answer is not None
        drafted: FieldMap = {"answer": None} if absent else self._names
        try:
            if not self.problems:
                refuse_unread({**rest, **data}, (key for key in rest if key not in FIELDS), drafted)
        except InputError as error:
            self.problems.append(error)

    def _add_problem(self, problem: str, field: str, hint: str = SUGGEST_HINT) -> None:
        self.problems.append(InputError(problem, hint=hint, field=field))
        if len(self.problems) >= MOST_PROBLEMS:
            raise _TooManyProblems

    def _field_value(self, field: str) -> Any:
        return self._follow(self._row, getattr(self._profile, field), field)

    def _follow(self, value: Any, paths: tuple[str, ...], field: str) -> Any:
        try:
            return value_at(value, paths)
        except InputError as error:
            self._add_problem(error.problem, field, error.hint)
            return None

    def _text(self, value: Any, field: str, *, required: bool = False) -> str | None:
        if isinstance(value, str):
            if required and not value.strip():
                self._add_problem("is blank", field, "Fill it in.")
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        if value is not None:
            inside = f" of {_key_list(value)}" if isinstance(value, dict) else ""
            self._add_problem(f"is {kind_of(value)}{inside}, must be text", field)
        elif required:
            self._add_problem(f"is missing (the row holds {_key_list(self._row)})", field)
        return None

    def _answer(self, metadata: dict[str, Any]) -> tuple[Any, Any, list[dict[str, Any]]]:
        profile = self._profile
        answer, evidence = self._field_value("answer"), self._field_value("evidence")
        if profile.converter is None:
            self._no_answer = no_answer_in(self._row, answer)
            self._reasoning = text_of(self._field_value("reasoning")) or ""
            return answer, evidence, self._citations(answer)
        reply = read_reply(
            profile.converter, self._field_value("reply") if profile.reply else self._row, self._row
        )
        self._no_answer = no_answer_in(self._row, (reply.answer if reply else None) or answer)
        if reply is None and self._no_answer is not None:
            return None, evidence, []
        if reply is None:
            self._add_problem(f"has no reply of {profile.converter}", "reply", "Check the profile.")
            return answer, evidence, []
        # The row may have the texts of sources of which the reply has only the address.
        beside = _evidence_items(evidence) if evidence else []
        texts = {
            str(item.get("id", item.get("url"))): item for item in beside if isinstance(item, dict)
        }
        evidence_items = [
            texts.pop(item["id"], item) if not item["text"] else item for item in reply.evidence
        ]
        used_ids = [id(item) for item in evidence_items]
        evidence_items += [item for item in beside if id(item) not in used_ids]
        if evidence_items and not any(
            item.get("text") for item in evidence_items if isinstance(item, dict)
        ):
            self._add_problem(
                "has only the addresses of its sources; their texts aren't in the file",
                "evidence",
                'Fetch them, and put them beside the reply: "documents": [{"id": ADDRESS, "text":'
                " ...}].",
            )
        if reply.quoted_only:
            metadata["evidence_from"] = "citations"
        self._reasoning = reply.reasoning
        return reply.answer or answer, evidence_items, reply.citations

    def _citations_inside(
        self, citations: list[dict[str, Any]], answer: str, metadata: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Return the citations inside the answer; note the others and keep them in the metadata."""
        outside = [
            citation
            for citation in citations
            if not is_within(answer, citation["start"], citation["end"])
        ]
        if outside:
            metadata["citations_outside_answer"] = outside
            first = outside[0]
            self.notes.append(
                InputError(
                    f"{len(outside)} of {len(citations)} cover no characters of the answer, such as"
                    f" {first['start']} to {first['end']} of {len(answer)}; they are left out and"
                    " kept in the metadata",
                    hint="Export the answer again with its citations, or check it by hand.",
                    field="citations",
                )
            )
        return [
            citation
            for citation in citations
            if is_within(answer, citation["start"], citation["end"])
        ]

    def _citations(self, answer: Any) -> list[dict[str, Any]]:
        citations = list[dict[str, Any]]()
        for number, item in enumerate(self._field_value("citations") or ()):
            value = item if isinstance(item, dict) else {}
            fields = {
                name: value[name]
                for name in ("start", "end", "evidence_id", "quote")
                if value.get(name) is not None
            }
            if not {"start", "end", "evidence_id"} <= set(fields):
                self._add_problem("needs start, end and evidence_id", f"citations[{number}]")
            elif any(type(fields[name]) is not int for name in ("start", "end")):
                self._add_problem("needs whole numbers for start and end", f"citations[{number}]")
            else:
                citations.append(fields | {"evidence_id": str(id_text(fields["evidence_id"]))})
        spans = [LabelSpan(citation["start"], citation["end"]) for citation in citations]
        converted = to_character_spans(answer, spans) if isinstance(answer, str) else spans
        return [
            citation | {"start": span.start, "end": span.end}
            for citation, span in zip(citations, converted, strict=True)
        ]

    def _evidence(self, value: Any, answer: Any) -> list[dict[str, Any]]:
        if value is None:
            if (key := name_elsewhere("evidence", self._row)) is not None:
                hint = "Add the retrieved chunks, or remove the row."
                self._add_problem(f"is empty: {key!r} has no content", "evidence", hint)
            else:
                self._add_problem(
                    f"is missing or empty (the row holds {_key_list(self._row)})", "evidence"
                )
            return []
        chunks: dict[str, dict[str, Any]] = {}
        items = _evidence_items(split_evidence(value, answer, self._names))
        if len(items) > limits.CHUNKS:
            raise limits.limit_error("evidence_chunks", f"holds {len(items):,} chunks", "evidence")
        parallel = {
            "id": parse_value(self._field_value("evidence_ids")),
            "source": parse_value(self._field_value("evidence_sources")),
        }
        aligned = {
            name: values
            for name, values in parallel.items()
            if isinstance(values, list) and len(values) == len(items)
        }
        for number, item in enumerate(items, 1):
            known = {
                name: str(id_text(values[number - 1]))
                for name, values in aligned.items()
                if values[number - 1] not in (None, "")
            }
            chunk = self._chunk(
                {**known, "text": item} if known and isinstance(item, str) else item, number
            )
            if chunk is None:
                continue
            name = chunk["id"]
            if name in chunks:
                if chunks[name].get("text") == chunk.get("text"):
                    continue
                count = 2
                while f"{name}#{count}" in chunks:
                    count += 1
                chunk["id"] = f"{name}#{count}"
            chunks[chunk["id"]] = chunk
        return list(chunks.values())

    def _chunk(self, item: Any, number: int) -> dict[str, Any] | None:
        field = f"evidence[{number - 1}]"
        if isinstance(item, str):
            return {"id": f"chunk_{number}", "text": item}
        if not isinstance(item, dict):
            self._add_problem(f"is {kind_of(item)}, must be text or an object", field)
            return None
        paths = self._profile.chunk
        identifier, text, source = (
            self._follow(item, getattr(paths, name), f"{field}.{name}")
            for name in ("id", "text", "source")
        )
        source = item.get("source") if source is None else source
        if text is None and not isinstance(item.get("text"), str) and not isinstance(source, str):
            self._add_problem(f"has no text (it holds {_key_list(item)})", field)
            return None
        unnamed = identifier is None or isinstance(identifier, dict | list)
        chunk_id = f"chunk_{number}" if unnamed else str(id_text(identifier))
        chunk: dict[str, Any] = {"id": chunk_id, "text": text_of(text) or ""}
        if isinstance(source, str):
            chunk["source"] = source
        rest = {key: value for key, value in item.items() if key not in ("id", "text", "source")}
        metadata = _unused_values(rest, set(chunk.values()))
        return chunk | ({"metadata": metadata} if metadata else {})

    def _labels(self, answer: str) -> dict[str, Any]:
        claims, items = [], self._field_value("labels")
        for number, item in enumerate(items if isinstance(items, list) else ()):
            label = (
                {key: value for key, value in item.items() if value is not None}
                if isinstance(item, dict)
                else {}
            )
            if not isinstance(label.get("text"), str):
                self._add_problem("has no text", f"labels[{number}]")
                continue
            claim = {key: label[key] for key in ("text", "label_type") if key in label}
            start, end = (
                label[name] if type(label.get(name)) is int else None for name in ("start", "end")
            )
            if (start is not None or end is not None) and (
                at := find_quoted_place(answer, label["text"], start, end)
            ):
                claim |= {"text": answer[at[0] : at[1]], "start": at[0], "end": at[1]}
            if "verdict" in label:
                meaning = self._profile.words.get(str(label["verdict"]))
                claim |= (
                    {"as_labelled": label["verdict"]} if meaning is None else {"verdict": meaning}
                )
            claims.append(claim | ({"note": str(label["note"])} if "note" in label else {}))
        return {"claims": claims} if claims else {}


def _evidence_items(evidence: Any) -> list[Any]:
    """Return the items of an evidence.

    It is a list, a list written as text, one text, or an object of ids and texts.
    """
    read = parse_value(evidence)
    if isinstance(read, list):
        return [item for part in read for item in (part if isinstance(part, list) else [part])]
    if isinstance(read, dict) and read and all(isinstance(text, str) for text in read.values()):
        known = {"id", "text", "source", "title", "content", "page_content"} & set(read)
        return [read] if known else [{"id": key, "text": text} for key, text in read.items()]
    return [read]


def _texts_in(value: Any) -> set[str]:
    if isinstance(value, str):
        return {value} if len(value) >= LEAST_PRUNED else set()
    if isinstance(value, dict | list):
        return set().union(*map(_texts_in, value.values() if isinstance(value, dict) else value))
    return set()


def _unused_values(value: Any, used: set[str]) -> Any:
    """Return the parts of a row that the case doesn't have elsewhere, or None."""
    if isinstance(value, str):
        return None if value in used and len(value) >= LEAST_PRUNED else value
    if isinstance(value, dict):
        return {
            key: rest
            for key, item in value.items()
            if (rest := _unused_values(item, used)) is not None
        } or None
    if isinstance(value, list):
        return [rest for item in value if (rest := _unused_values(item, used)) is not None] or None
    return value
