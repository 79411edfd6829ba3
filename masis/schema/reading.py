"""Reads a record as a case, in the same way for Python, files, commands, pages, HTTP and MCP.

A record is a mapping with the fields of ``Case``. If its keys differ, a field map says which key
holds which field: ``{"answer": "response"}``. Reading never ignores a possible question, answer or
evidence: if one of them is missing or empty and an unread key may hold it, reading stops with an
error that proposes the map.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from masis.errors import InputError
from masis.schema import limits
from masis.schema.answers import is_thought, no_answer_in
from masis.schema.columns import (
    COLUMN_JOINER,
    LONG_TEXT,
    chunks_in,
    columns_of,
    likely_columns,
    likely_map,
    numbers_cited,
    object_in,
    parts_of,
    separators_in,
)
from masis.schema.documents import ID_KEYS, TEXT_KEYS
from masis.schema.explain import kind_of, name_elsewhere
from masis.schema.literals import parse_value, why_unreadable
from masis.schema.wording import shorten

FieldMap = Mapping[str, str | None]
r"""The key of a record for each field: ``{"answer": "response", "query": "inputs.question"}``.

None (or nothing, on the command line) says that the field is absent on purpose: the answer is to be
drafted, the id derived from the content. If ``evidence.id`` is absent on purpose, each chunk is
named by its position, which ``[1]`` may refer to. ``evidence.id``, ``evidence.text`` and
``evidence.source`` name keys inside an item of the evidence. ``{"evidence": "context_1 +
context_2"}`` names several columns that hold a chunk each. ``evidence.split`` is the separator of
chunks in an evidence that is one text, such as ``"\n\n"``; None says that the text is one chunk.
"""

FIELDS = (
    *("id", "query", "answer", "evidence", "reasoning_steps", "metadata", "labels"),
    *("citations", "messages", "screening", "supersedes", "reasoning", "no_answer"),
    *("question_id", "system"),
)
CHUNK_FIELDS = ("evidence.id", "evidence.text", "evidence.source")
SPLIT = "evidence.split"
MAPPED = (*FIELDS, *CHUNK_FIELDS, SPLIT)
ANSWERING_ROLES = frozenset({"assistant", "ai", "model", "bot"})
ASKING_ROLES = frozenset({"user", "human"})

_REQUIRED_FIELDS = ("query", "answer", "evidence")
"""Fields that must not be lost because they are under an unread key."""
_MOST_LOOKED_AT = 200
_PART = re.compile(r"([^.\[\]]+)|\[(\d{1,6})\]")
"""A part of a path: a name, or an index in brackets."""


def to_case_fields(
    record: Mapping[str, Any], names: FieldMap | None = None, most_chunks: int | None = None
) -> dict[str, Any]:
    """Return a record under the field names of a case.

    The question and answer are taken from the conversation if necessary.

    Raises:
        InputError: ``names`` isn't a field map, or names a key for a field that the record already
            has; or the record lacks its question, answer or evidence, and an unread key may hold
            it; or it has more than ``most_chunks`` chunks.

    """
    names = names or {}
    data = fill_from_conversation(apply_field_map(record, names) if names else dict(record))
    if "id" in data:
        data["id"] = id_text(data["id"])
    if isinstance(text := data.get("evidence"), str):
        data["evidence"] = evidence_list(text, data.get("answer"), names)
    chunks = data.get("evidence")
    # Counted before each is looked at and becomes a record, which takes 800 bytes. In a file it may
    # take two.
    if most_chunks is not None and isinstance(chunks, list | tuple) and len(chunks) > most_chunks:
        raise limits.limit_error("evidence_chunks", f"holds {len(chunks):,} chunks", "evidence")
    # A refusal or failure explains the missing answer, so don't look for one under other keys.
    if "no_answer" in data or (is_empty(data.get("answer")) and no_answer_in(data)):
        names = {**names, "answer": None}
    refuse_unread(data, (key for key in data if key not in FIELDS), names)
    return data


def check_field_map(names: FieldMap) -> dict[str, str | None]:
    """Return a field map with None for empty texts.

    Raises:
        InputError: It isn't a mapping, or names an unknown field.

    """
    if not isinstance(names, Mapping):
        raise InputError(
            f"is {kind_of(names)}, not a field map",
            hint='Write it as {"answer": "response"}.',
            field="map",
        )
    for field, key in names.items():
        if field not in MAPPED:
            near = name_elsewhere("answer", [str(field)]) and ' Did you mean {"answer": ...}?'
            raise InputError(
                f"{shorten(str(field), 40)!r} isn't a field of a case",
                hint=f"Map one of: {', '.join((*FIELDS[:4], *CHUNK_FIELDS, SPLIT))}.{near or ''}",
                field="map",
            )
        if key is not None and not isinstance(key, str):
            raise InputError(
                f"names {kind_of(key)} for {field}", hint="Name a key of the record.", field="map"
            )
    return {field: key or None for field, key in names.items()}


def apply_field_map(record: Mapping[str, Any], names: FieldMap) -> dict[str, Any]:
    """Return the record with its values moved to the fields that ``names`` says."""
    data, names = dict(record), check_field_map(names)
    for field, key in names.items():
        if field == "id" and key is None:
            data.pop("id", None)
        value = None if key is None or "." in field else _mapped_value(record, field, key)
        if value is None or key is None or key == field:
            continue
        if not is_empty(data.get(field)) and data[field] != value:
            hint = f"Remove {field} from the map or from the record."
            raise InputError(
                f"is in the record, but the map names {key!r} for it", hint=hint, field=field
            )
        # A single object is an evidence of one chunk.
        data[field] = [value] if field == "evidence" and isinstance(value, Mapping) else value
    fields = {key for key in names if "." not in key}
    keys = (key for field, key in names.items() if key and field != SPLIT)
    # Removed after all fields are read, because two fields may use one key.
    for moved in {part for key in keys for part in columns_in(record, key)} - fields:
        data.pop(moved, None)
    if isinstance(text := data.get("evidence"), str) and any(
        field.startswith("evidence") for field in names
    ):
        data["evidence"] = evidence_list(text, data.get("answer"), names)
    inside = {field.partition(".")[2]: key for field, key in names.items() if field in CHUNK_FIELDS}
    if inside and isinstance(data.get("evidence"), list | tuple):
        data["evidence"] = [
            _map_chunk(chunk, inside, number) for number, chunk in enumerate(data["evidence"], 1)
        ]
    return data


def columns_in(columns: Collection[str] | Mapping[str, Any], key: str) -> list[str]:
    """Return the columns that a key of a field map names: one, or several joined by a plus."""
    return [key] if key in columns else key.split(COLUMN_JOINER)


def _mapped_value(record: Mapping[str, Any], field: str, key: str) -> Any:
    """Return the value of a field; several columns become a list of chunks, numbered by column."""
    parts = columns_in(record, key)
    if len(parts) == 1 or field != "evidence":
        return value_of(record, key)
    chunks = [
        (number, value)
        for number, part in enumerate(parts, 1)
        if not is_empty(value := value_of(record, part))
    ]
    return [
        {"id": f"chunk_{number}", "text": value} if isinstance(value, str) else value
        for number, value in chunks
    ]


def value_of(record: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key, or of a path such as ``inputs.question`` or ``choices[0].text``.

    Returns None if there is no such value.
    """
    # A key may itself contain dots, as in files that flatten objects.
    if key in record:
        return record[key]
    value: Any = record
    for name, number in _PART.findall(key):
        if isinstance(value, str):  # an object or list that a tool wrote as JSON text
            value = parse_value(value)
        if name and isinstance(value, Mapping):
            value = value.get(name)
        elif number and isinstance(value, list | tuple) and int(number) < len(value):
            value = value[int(number)]
        else:
            return None
    return value


def is_empty(value: Any) -> bool:
    """Return whether a field is null, blank text, or an empty list or object."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    return isinstance(value, list | tuple | Mapping) and not value


def id_text(value: Any) -> Any:
    """Return a numeric id as text, ``7`` for 7 and 7.0; any other value unchanged.

    pandas turns a column of whole numbers into floats if one of them is missing.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return str(int(value)) if isinstance(value, int) or value.is_integer() else repr(value)


def evidence_list(text: str, answer: Any, names: FieldMap) -> list[Any]:
    """Return an evidence that is one text as a list of chunks.

    Raises:
        InputError: See ``split_evidence``.

    """
    read = [] if is_empty(text) else split_evidence(text, answer, names)
    return read if isinstance(read, list) else [read]


def split_evidence(value: Any, answer: Any, names: FieldMap) -> Any:
    """Return the chunks of an evidence that is one text.

    They are split at ``evidence.split``, or if the form is certain.

    Raises:
        InputError: The text may hold several chunks, or looks like a list but can't be read.

    """
    read, separator = parse_value(value), names.get(SPLIT, "")
    # The items of a two-dimensional array are those of its rows.
    if isinstance(read, list) and isinstance(value, str):
        return [item for part in read for item in (part if isinstance(part, list) else [part])]
    if not isinstance(read, str) or separator is None:
        return read
    if separator:
        # A shell passes "\n" as two characters.
        return parts_of(read, separator.replace("\\n", "\n").replace("\\t", "\t"))
    if (why := why_unreadable(read)) is not None:
        raise InputError(
            f"looks like a list that a program wrote, but {why}",
            hint=(
                'Write it as JSON, ["...", "..."]. For a single chunk: --map evidence.split=, in'
                ' Python map={"evidence.split": None}.'
            ),
            field="evidence",
        )
    text = answer if isinstance(answer, str) else ""
    chunks, highest = chunks_in(read, text), max(numbers_cited(text), default=0)
    if not isinstance(chunks, str):
        return chunks
    separator, count = next(separators_in(read, highest), ("", 0))
    if not count:
        return chunks
    written = json.dumps(separator, ensure_ascii=False)
    cited = (
        f", and the answer cites [{highest}]" if highest >= 2 else ", which may be separate chunks"
    )
    raise InputError(
        f"is one text of {count} parts{cited}",
        hint=f"Name the separator of the chunks: --map 'evidence.split={written[1:-1]}', in Python "
        f'map={{..., "evidence.split": {written}}}. For a single chunk: --map evidence.split=,'
        " in Python None.",
        field="evidence",
    )


def _map_chunk(chunk: Any, names: Mapping[str, str | None], number: int) -> Any:
    if not isinstance(chunk, Mapping):
        return chunk
    mapped = {
        field: value
        for field, key in names.items()
        if key and (value := value_of(chunk, key)) is not None
    }
    if "id" in mapped:
        mapped["id"] = str(id_text(mapped["id"]))
    rest = {key: value for key, value in chunk.items() if key not in names.values()}
    if names.get("id", "") is None:  # named by its position; its own id is kept as given_id
        original_id = next((rest.pop(key) for key in ID_KEYS if not is_empty(rest.get(key))), None)
        mapped |= {"id": f"chunk_{number}"} | (
            {} if original_id is None else {"given_id": original_id}
        )
    return rest | mapped


def fill_from_conversation(data: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the last question and its answer from ``messages``.

    The record's own ``query`` and ``answer`` come first.
    """
    turns = data.get("messages")
    if not isinstance(turns, list | tuple) or ("query" in data and "answer" in data):
        return data
    if not all(
        isinstance(turn, Mapping) and isinstance(turn.get("role"), str) and turn["role"]
        for turn in turns
    ):
        return data
    texts = [(turn["role"], words_of(turn.get("content"))) for turn in turns]
    if not texts or any(text is None for _, text in texts):
        return data
    filled = dict(data)
    role, text = texts[-1]
    if "answer" not in data and role in ANSWERING_ROLES and text:
        filled["answer"] = text
    asked = next((text for role, text in reversed(texts) if role in ASKING_ROLES and text), None)
    if "query" not in data and asked is not None:
        filled["query"] = asked
    return filled


def words_of(content: Any) -> str | None:
    """Return the text of a message's content, which is a text or a list of parts, or None."""
    if content is None or isinstance(content, str):
        return (content or "").strip()
    if not isinstance(content, list | tuple):
        return None
    return "\n".join(_part_text(part) for part in content if not is_thought(part)).strip()


def _part_text(part: Any) -> str:
    if isinstance(part, Mapping):
        text = part.get("text", part.get("content"))
        return text if isinstance(text, str) else f"[{part.get('type', 'part')}]"
    return part if isinstance(part, str) else f"[{kind_of(part)}]"


def content_id(data: Mapping[str, Any]) -> str:
    """Return an id for a case without one: a digest of its question, answer and evidence."""
    parts = [data.get("query"), data.get("answer"), data.get("evidence")]

    def dump(value: Any) -> Any:
        return value.model_dump(exclude_unset=True) if hasattr(value, "model_dump") else str(value)

    content = json.dumps(parts, ensure_ascii=False, sort_keys=True, default=dump)
    # A lone surrogate is only refused later, with an error that names its field.
    return hashlib.sha256(content.encode(errors="surrogatepass")).hexdigest()[:20]


# Detecting loss: a part of the case is missing, and an unread key may hold it.


def refuse_unread(data: Mapping[str, Any], unread: Iterable[str], names: FieldMap) -> None:
    """Raise InputError if a required field is missing or empty and an unread key may hold it.

    The required fields are question, answer and evidence.
    """
    missing = [
        field
        for field in _REQUIRED_FIELDS
        if is_empty(data.get(field)) and names.get(field, "") is not None
    ]
    unread_values = {key: data[key] for key in islice(unread, _MOST_LOOKED_AT)} if missing else {}
    if unread_values and (
        proposed := _propose_map(
            missing, unread_values, id_too="id" not in data and "id" not in names
        )
    ):
        # No field: only an id was found.
        field = next((field for field in _REQUIRED_FIELDS if field in proposed), None)
        if field is not None:
            raise _unread_field(field, proposed, data, names)
    for number, chunk in enumerate(
        data["evidence"] if isinstance(data.get("evidence"), list | tuple) else ()
    ):
        if isinstance(chunk, dict) and isinstance(text := chunk.get("text"), str) and text.strip():
            continue  # the usual case, tested first because it's cheap
        if isinstance(chunk, Mapping) and (key := _unread_text(chunk)) is not None:
            raise _unread_field(f"evidence[{number}].text", {"evidence.text": key}, chunk, names)


def _unread_field(
    field: str, proposed: Mapping[str, str], data: Mapping[str, Any], names: FieldMap
) -> InputError:
    key = proposed.get(field, proposed.get("evidence.text", ""))
    field_map = {name: path for name, path in names.items() if path} | dict(proposed)
    options = " ".join(
        f"--map {shlex.quote(f'{name}={shorten(path, 200)}')}" for name, path in field_map.items()
    )
    drafted = ""
    if "answer" in proposed:
        drafted = ' If the answer is to be drafted: --map answer=, in Python map={"answer": None}.'
    state = "is missing" if data.get(field.rpartition(".")[2]) is None else "is empty"
    return InputError(
        f"{state}, and {json.dumps(shorten(key, 60), ensure_ascii=False)} may hold it",
        hint=(
            f"Map it: {options}, in Python map={json.dumps(field_map, ensure_ascii=False)};"
            f" or rename it.{drafted}"
        ),
        field=field,
    )


def _propose_map(missing: list[str], unread: Mapping[str, Any], *, id_too: bool) -> dict[str, str]:
    """Return a field map to the keys that may hold the missing fields.

    Returns an empty map if neither names nor content indicate any.
    """
    asked = [*missing, "id"] if id_too else missing
    long = (path for key, value in unread.items() for path in _long_texts(value, key, 3))
    first = next(long, None)
    hinted = first is not None or any(_has_known_name(field, unread) for field in missing)
    if not hinted and not {"query", "evidence"} <= set(missing):
        return {}
    columns = columns_of(unread)
    chosen = likely_columns(columns, (*asked, "reference"))
    if not hinted and not {"query", "evidence"} <= set(chosen):
        return {}
    # A reference was asked for only so that it isn't mistaken for the answer.
    chosen.pop("reference", None)
    proposed, taken = likely_map(chosen, columns), {column.shown for column in chosen.values()}
    # Also consider texts inside lists, and deeper than MOST_LEVELS.
    for field in ("evidence", "answer", "query"):
        if field in missing and field not in chosen:
            paths = (
                path
                for path in chain(() if first is None else (first,), long)
                if not _is_inside(path, taken)
            )
            if (path := next(paths, None)) is not None:
                proposed[field] = path.partition("[")[0] if field == "evidence" else path
                taken.add(proposed[field])
    return proposed


def _is_inside(path: str, taken: Iterable[str]) -> bool:
    ends = (".", "[")
    return any(
        path == known
        or path.startswith(tuple(known + end for end in ends))
        or known.startswith(f"{path}.")
        for known in taken
    )


def _has_known_name(field: str, unread: Mapping[str, Any]) -> bool:
    """Return whether a key, possibly inside an object, is another tool's name for the field.

    Its value must also be of a possible type.
    """
    levels = [
        unread,
        *(inner for value in unread.values() if (inner := object_in(value)) is not None),
    ]
    fits = (
        [
            str(name)
            for name, value in islice(level.items(), _MOST_LOOKED_AT)
            if _could_hold(field, value)
        ]
        for level in levels
    )
    return any(name_elsewhere(field, keys) for keys in fits)


def _could_hold(field: str, value: Any) -> bool:
    if is_empty(value):
        return False
    if field == "evidence":
        return isinstance(value, str | list | tuple)
    return isinstance(value, str)


def _long_texts(value: Any, path: str, levels: int) -> Iterator[str]:
    if isinstance(value, str) and (inner := object_in(value)) is not None and levels:
        yield from _long_texts(inner, path, levels)
    elif isinstance(value, str):
        if len(value.strip()) >= LONG_TEXT:
            yield path
    elif isinstance(value, Mapping) and levels:
        for key, item in islice(value.items(), _MOST_LOOKED_AT):
            yield from _long_texts(item, f"{path}.{key}", levels - 1)
    elif isinstance(value, list | tuple) and levels:
        for number, item in enumerate(value[:20]):
            yield from _long_texts(item, f"{path}[{number}]", levels - 1)


def _unread_text(chunk: Mapping[Any, Any]) -> str | None:
    """Return the key that may hold the text of a chunk without one."""
    if any(isinstance(chunk.get(key), str) and chunk[key].strip() for key in TEXT_KEYS):
        return None
    if not is_empty(chunk.get("text")):  # a value of another type, which validation reports
        return None
    unread = [str(key) for key in chunk if key not in ("id", "text", "source", "metadata")]
    texts = [key for key in unread if isinstance(chunk.get(key), str) and chunk[key].strip()]
    long = (key for key in texts if len(chunk[key].strip()) >= LONG_TEXT)
    return name_elsewhere("text", texts) or next(long, None)
