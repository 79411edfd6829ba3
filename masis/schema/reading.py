"""How a record is read as a case, the same by every way in: ``Case``, files, programs, commands,
pages, HTTP and MCP.

A record is a mapping with the fields of ``Case``. A field map says which of its keys holds a field
where the names differ: ``{"answer": "response"}``. Nothing that may be the question, the answer or
the evidence is passed over in silence: where one of them is absent or empty and a key that nothing
reads may hold it, reading stops and names the map.
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
"""Which key of a record holds a field: ``{"answer": "response", "query": "inputs.question"}``.

``None`` (or nothing, on the command line) says that the field is absent on purpose: the answer is
to be drafted, the id to be made of the content. ``evidence.id`` absent on purpose names each chunk
by its place, as ``[1]`` may mean it. ``evidence.id``, ``evidence.text`` and ``evidence.source``
name keys inside an item of the evidence. Where several columns hold a chunk each, ``evidence``
names them all: ``{"evidence": "context_1 + context_2"}``. ``evidence.split`` is what stands between
the chunks of an evidence that is one text, ``"\\n\\n"`` for instance; None where it is one chunk.
"""

FIELDS = (
    *("id", "query", "answer", "evidence", "reasoning_steps", "metadata", "labels"),
    *("citations", "messages", "screening", "supersedes", "reasoning", "no_answer"),
)
CHUNK_FIELDS = ("evidence.id", "evidence.text", "evidence.source")
SPLIT = "evidence.split"
MAPPED = (*FIELDS, *CHUNK_FIELDS, SPLIT)
ANSWERING_ROLES = frozenset({"assistant", "ai", "model", "bot"})
ASKING_ROLES = frozenset({"user", "human"})

_REQUIRED_FIELDS = ("query", "answer", "evidence")
_MOST_LOOKED_AT = 200
_PART = re.compile(r"([^.\[\]]+)|\[(\d{1,6})\]")


def to_case_fields(record: Mapping[str, Any], names: FieldMap | None = None) -> dict[str, Any]:
    """Return a record under the names of a case, its question and answer taken from the
    conversation where need be.

    Raises:
        InputError: ``names`` is no field map, or names a key for a field that the record holds
            already; or the record lacks its question, answer or evidence while a key that nothing
            reads may hold it.

    """
    names = names or {}
    data = fill_from_conversation(apply_field_map(record, names) if names else dict(record))
    if "id" in data:
        data["id"] = id_text(data["id"])
    if isinstance(text := data.get("evidence"), str):
        data["evidence"] = evidence_list(text, data.get("answer"), names)
    # that is why it is absent
    if "no_answer" in data or (is_empty(data.get("answer")) and no_answer_in(data)):
        names = {**names, "answer": None}
    refuse_unread(data, (key for key in data if key not in FIELDS), names)
    return data


def check_field_map(names: FieldMap) -> dict[str, str | None]:
    """Return a field map with empty texts as None. Raises InputError where it is none, or names no
    field of a case.
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
                f"{shorten(str(field), 40)!r} is no field of a case",
                hint=f"Map one of: {', '.join((*FIELDS[:4], *CHUNK_FIELDS, SPLIT))}.{near or ''}",
                field="map",
            )
        if key is not None and not isinstance(key, str):
            raise InputError(
                f"names {kind_of(key)} for {field}", hint="Name a key of the record.", field="map"
            )
    return {field: key or None for field, key in names.items()}


def apply_field_map(record: Mapping[str, Any], names: FieldMap) -> dict[str, Any]:
    """Return the record with its values under the fields that ``names`` says; the keys that were
    moved are gone.
    """
    data, names = dict(record), check_field_map(names)
    for field, key in names.items():
        if field == "id" and key is None:
            data.pop("id", None)
        value = None if key is None or "." in field else _mapped_value(record, field, key)
        if value is None or key is None or key == field:
            continue
        if not is_empty(data.get(field)) and data[field] != value:
            hint = f"Take {field} out of the map, or out of the record."
            raise InputError(f"is there, and the map names {key!r} for it", hint=hint, field=field)
        data[field] = _shape_value(field, value)
    kept = {key for key in names if "." not in key}
    keys = (key for field, key in names.items() if key and field != SPLIT)
    for moved in {part for key in keys for part in columns_in(record, key)} - kept:
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
    """Return what a field is read from; several columns are a list, whose texts are named by their
    columns' places.
    """
    parts = columns_in(record, key)
    if len(parts) == 1 or field != "evidence":
        return value_of(record, key)
    found = [
        (number, value)
        for number, part in enumerate(parts, 1)
        if not is_empty(value := value_of(record, part))
    ]
    return [
        {"id": f"chunk_{number}", "text": value} if isinstance(value, str) else value
        for number, value in found
    ]


def value_of(record: Mapping[str, Any], key: str) -> Any:
    """Return what a key of a record holds, or a path such as ``inputs.question`` or
    ``choices[0].text``; else None.
    """
    if key in record:
        return record[key]
    value: Any = record
    for name, number in _PART.findall(key):
        if isinstance(value, str):  # an object or a list that a tool wrote as JSON
            value = parse_value(value)
        if name and isinstance(value, Mapping):
            value = value.get(name)
        elif number and isinstance(value, list | tuple) and int(number) < len(value):
            value = value[int(number)]
        else:
            return None
    return value


def is_empty(value: Any) -> bool:
    """Return whether a field holds nothing: null, blank text, an empty list or object."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    return isinstance(value, list | tuple | Mapping) and not value


def id_text(value: Any) -> Any:
    """Return an id as text where it is a number, ``7`` of 7 and of 7.0; any other value as it is.

    pandas makes floats of a column of whole numbers in which one is missing.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return str(int(value)) if isinstance(value, int) or value.is_integer() else repr(value)


def _shape_value(field: str, value: Any) -> Any:
    """Return a mapped value in the form of its field: one object is a list of evidence."""
    return [value] if field == "evidence" and isinstance(value, Mapping) else value


def evidence_list(text: str, answer: Any, names: FieldMap) -> list[Any]:
    """Return an evidence that is one text as a list of chunks. Raises InputError as ``evidence_in``
    does.
    """
    read = [] if is_empty(text) else split_evidence(text, answer, names)
    return read if isinstance(read, list) else [read]


def split_evidence(value: Any, answer: Any, names: FieldMap) -> Any:
    """Return the chunks of an evidence that is one text, by ``evidence.split`` or where it is
    certain.

    Raises InputError where it isn't: the text may hold several chunks, or it is a list that can't
    be read.
    """
    read, separator = parse_value(value), names.get(SPLIT, "")
    # an array of several dimensions: its innermost items
    if isinstance(read, list) and isinstance(value, str):
        return [item for part in read for item in (part if isinstance(part, list) else [part])]
    if not isinstance(read, str) or separator is None:
        return read
    if separator:
        return parts_of(read, separator.replace("\\n", "\n").replace("\\t", "\t"))
    if (why := why_unreadable(read)) is not None:
        raise InputError(
            f"looks like a list that a program wrote, but {why}",
            hint=(
                'Write it as JSON, ["...", "..."]. Where it is one chunk: --map evidence.split=, in'
                ' Python map={"evidence.split": None}.'
            ),
            field="evidence",
        )
    text = answer if isinstance(answer, str) else ""
    found, highest = chunks_in(read, text), max(numbers_cited(text), default=0)
    if not isinstance(found, str):
        return found
    between, count = next(separators_in(read, highest), ("", 0))
    if not count:
        return found
    written = json.dumps(between, ensure_ascii=False)
    cited = (
        f", and the answer cites [{highest}]"
        if highest >= 2
        else ", which may be chunks of their own"
    )
    raise InputError(
        f"is one text of {count} parts{cited}",
        hint=f"Say what separates the chunks: --map 'evidence.split={written[1:-1]}', in Python "
        f'map={{..., "evidence.split": {written}}}. Where it is one chunk: --map evidence.split=,'
        " in Python None.",
        field="evidence",
    )


def _map_chunk(chunk: Any, names: Mapping[str, str | None], number: int) -> Any:
    if not isinstance(chunk, Mapping):
        return chunk
    found = {
        field: value
        for field, key in names.items()
        if key and (value := value_of(chunk, key)) is not None
    }
    if "id" in found:
        found["id"] = str(id_text(found["id"]))
    left = {key: value for key, value in chunk.items() if key not in names.values()}
    if names.get("id", "") is None:  # named by its place; what named it is kept
        given = next((left.pop(key) for key in ID_KEYS if not is_empty(left.get(key))), None)
        found |= {"id": f"chunk_{number}"} | ({} if given is None else {"given_id": given})
    return left | found


def fill_from_conversation(data: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the last question of its ``messages`` and the answer to it, where it
    names no others.
    """
    turns = data.get("messages")
    if not isinstance(turns, list | tuple) or ("query" in data and "answer" in data):
        return data
    if not all(
        isinstance(turn, Mapping) and isinstance(turn.get("role"), str) and turn["role"]
        for turn in turns
    ):
        return data
    said = [(turn["role"], words_of(turn.get("content"))) for turn in turns]
    if not said or any(text is None for _, text in said):
        return data
    found = dict(data)
    role, text = said[-1]
    if "answer" not in data and role in ANSWERING_ROLES and text:
        found["answer"] = text
    asked = next((text for role, text in reversed(said) if role in ASKING_ROLES and text), None)
    if "query" not in data and asked is not None:
        found["query"] = asked
    return found


def words_of(content: Any) -> str | None:
    """Return the text of a message's content, a text or a list of parts; None where it
    is neither.
    """
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
    held = [data.get("query"), data.get("answer"), data.get("evidence")]
    content = json.dumps(held, ensure_ascii=False, sort_keys=True, default=_dump_or_str)
    return hashlib.sha256(content.encode(errors="surrogatepass")).hexdigest()[:20]


def _dump_or_str(value: Any) -> Any:
    return value.model_dump(exclude_unset=True) if hasattr(value, "model_dump") else str(value)


# What may be lost: a part of the case that is absent, and a key that nothing reads which may hold
# it.


def refuse_unread(data: Mapping[str, Any], unread: Iterable[str], names: FieldMap) -> None:
    """Raise InputError where question, answer or evidence is absent or empty and an unread key may
    hold it.
    """
    missing = [
        field
        for field in _REQUIRED_FIELDS
        if is_empty(data.get(field)) and names.get(field, "") is not None
    ]
    held = {key: data[key] for key in islice(unread, _MOST_LOOKED_AT)} if missing else {}
    if held and (
        found := _propose_map(missing, held, id_too="id" not in data and "id" not in names)
    ):
        # None: only an id was found
        first = next((field for field in _REQUIRED_FIELDS if field in found), None)
        if first is not None:
            raise _unread_field(first, found, data, names)
    for number, chunk in enumerate(
        data["evidence"] if isinstance(data.get("evidence"), list | tuple) else ()
    ):
        if isinstance(chunk, dict) and isinstance(text := chunk.get("text"), str) and text.strip():
            continue  # nearly all
        if isinstance(chunk, Mapping) and (key := _unread_text(chunk)) is not None:
            raise _unread_field(f"evidence[{number}].text", {"evidence.text": key}, chunk, names)


def _unread_field(
    field: str, found: Mapping[str, str], data: Mapping[str, Any], names: FieldMap
) -> InputError:
    key = found.get(field, found.get("evidence.text", ""))
    whole = {name: path for name, path in names.items() if path} | dict(found)
    options = " ".join(
        f"--map {shlex.quote(f'{name}={shorten(path, 200)}')}" for name, path in whole.items()
    )
    drafted = ""
    if "answer" in found:
        drafted = (
            ' Where the answer is to be drafted: --map answer=, in Python map={"answer": None}.'
        )
    state = "is missing" if data.get(field.rpartition(".")[2]) is None else "is empty"
    return InputError(
        f"{state}, and {json.dumps(shorten(key, 60), ensure_ascii=False)} may hold it",
        hint=(
            f"Map it: {options}, in Python map={json.dumps(whole, ensure_ascii=False)}; or rename"
            f" it.{drafted}"
        ),
        field=field,
    )


def _propose_map(missing: list[str], unread: Mapping[str, Any], *, id_too: bool) -> dict[str, str]:
    """Return a field map to what may hold the missing fields; nothing where neither names nor
    content say so.
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
    chosen.pop("reference", None)  # known, so that it is taken for no answer; nothing misses it
    found, taken = likely_map(chosen, columns), {column.shown for column in chosen.values()}
    # a text inside of a list, or deeper than columns are looked for
    for field in ("evidence", "answer", "query"):
        if field in missing and field not in chosen:
            paths = (
                path
                for path in chain(() if first is None else (first,), long)
                if not _is_inside(path, taken)
            )
            if (path := next(paths, None)) is not None:
                found[field] = path.partition("[")[0] if field == "evidence" else path
                taken.add(found[field])
    return found


def _is_inside(path: str, taken: Iterable[str]) -> bool:
    ends = (".", "[")
    return any(
        path == each
        or path.startswith(tuple(each + end for end in ends))
        or each.startswith(f"{path}.")
        for each in taken
    )


def _has_known_name(field: str, unread: Mapping[str, Any]) -> bool:
    """Return whether a key, or one inside of an object, is a known other name of a field and holds
    what it could.
    """
    levels = [
        unread,
        *(inner for value in unread.values() if (inner := object_in(value)) is not None),
    ]
    fits = (
        [
            str(name)
            for name, held in islice(each.items(), _MOST_LOOKED_AT)
            if _could_hold(field, held)
        ]
        for each in levels
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
    if not is_empty(chunk.get("text")):  # of another type: validation says so
        return None
    unread = [str(key) for key in chunk if key not in ("id", "text", "source", "metadata")]
    texts = [key for key in unread if isinstance(chunk.get(key), str) and chunk[key].strip()]
    long = (key for key in texts if len(chunk[key].strip()) >= LONG_TEXT)
    return name_elsewhere("text", texts) or next(long, None)
