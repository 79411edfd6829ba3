"""Rows as cases by a profile: every problem of a row at once, and nothing of it lost silently.

What a profile does not name is kept under ``metadata.source_row``. Memory holds one row at a time, but for a joined
file and for rows that are grouped, which are limited.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from masis.datasets.mapping.profile import Profile, builtin
from masis.datasets.mapping.replies import read_reply
from masis.datasets.paths import parsed, text_of, value_at
from masis.datasets.readers.seen import SeenIds
from masis.datasets.rows import MOST_DOCUMENT_BYTES, Row, read_rows
from masis.errors import InputError
from masis.schema.case import Case, case_of
from masis.schema.explain import kind_of, name_elsewhere
from masis.schema.reading import FIELDS, FieldMap, checked_names, content_id, is_empty, mapped, refuse_unread, value_of
from masis.schema.wording import shortened

PRUNED_LEAST = 12
"""Characters of a text that is left out of ``metadata.source_row`` since the case holds it elsewhere."""

MOST_GROUPED_ROWS = 200_000
"""Rows (spans) held while they are grouped."""

HOPELESS_ROWS = 10_000
"""Rows without a single case after which a file is given up: it may have millions of them."""

OWN_FORMAT = "cases"
"""The name of the workbench's own format: rows with query, answer and evidence."""

_SHOWN = "See what fits: masis import FILE --suggest. Or name its path in a TOML file for --map (docs/importing.md)."


class MappedRow(NamedTuple):
    """What one row gives: a case, or the problems in the way of one; ``notes`` say what a person may have meant.

    ``number`` and ``end`` are the row's, from 1, and the bytes of the file read so far.
    """

    number: int
    end: int
    case: Case | None
    problems: tuple[InputError, ...] = ()
    notes: tuple[InputError, ...] = ()


def read_any(
    source: Path | BinaryIO | Iterable[Mapping[str, Any]],
    profile: Profile | str | None = None,
    names: FieldMap | None = None,
    *,
    name: str | None = None,
) -> Iterator[MappedRow]:
    """Yield the cases of a file, a stream or rows: in the workbench's own format, or by a profile.

    A row whose case was read before, word for word, is skipped; another case under the same id is a problem.

    Args:
        source: A path; a stream of bytes; or rows, each a mapping.
        profile: By which to read, or ``OWN_FORMAT``. Default: the own format where the first row has its names or fits
            no profile, else the profile that it fits.
        names: Which key of a row holds a field; a key that no row has is an error at the end.
        name: How errors name the source.

    Raises:
        InputError: The source can't be read, or its first row fits several profiles.

    """
    called = name or (str(source) if isinstance(source, Path) else "stdin")
    names = checked_names(names or {})
    seen, unmatched = SeenIds(), {key for key in names.values() if key is not None}
    count, any_case = 0, False
    try:
        rows, chosen = _opened(source, profile, names, called)
        own = chosen is not None and chosen.name not in builtin()
        unused = {field for field in ("query", "answer", "evidence") if own and getattr(chosen, field)}
        for count, row in enumerate(rows, 1):
            if count > HOPELESS_ROWS and not any_case:
                cure = "Correct what is named above; nothing more was read."
                raise InputError(f"holds no case in its first {HOPELESS_ROWS:,} rows", cure=cure)
            if isinstance(row.value, dict):
                unmatched -= {key for key in unmatched if _matches(row.value, key, names)}
                unused -= {field for field in unused if _gives(row.value, getattr(chosen, field))}
            read = _placed(_read(row, chosen, names), f"{called}/{row.member}" if row.member else called)
            any_case = any_case or read.case is not None
            if (case := read.case) is not None:
                digest = _digest(row.value)
                first = seen.first(case.id, row.number, digest)
                if first.number != row.number:
                    if first.digest == int(digest, 16):
                        continue
                    if chosen is None:
                        read = read._replace(case=None, problems=(_taken(case, first.number, called, row.number),))
                    else:  # tools give answers to one question, or spans of one trace, the same id
                        read = read._replace(case=_with_own_id(case))
            yield read
    except InputError as error:
        raise error.at(file=called) from error
    except OSError as error:
        raise InputError(f"can't be read ({error.strerror})", cure="Check the file.", file=called) from error
    if not count:
        cure = 'Put one case on each line: {"id": ..., "query": ..., "answer": ..., "evidence": [...]}.'
        yield MappedRow(1, 0, None, (InputError("holds no case", cure=cure, file=called),))
    elif unmatched or unused:
        paths = (path for field in unused for path in getattr(chosen, field))
        keys = ", ".join(map(repr, sorted({*unmatched, *paths})))
        cure = "Check the name: masis import FILE --suggest shows the keys of the first row."
        yield MappedRow(0, 0, None, (InputError(f"no row has {keys}", cure=cure, file=called, field="map"),))


def _taken(case: Case, before: int, name: str, number: int) -> InputError:
    shown = case.id if len(case.id) <= 80 else case.id[:77] + "..."
    return InputError(
        f"is {shown!r}, as in line {before}, with other content",
        cure="Give each case an id of its own, or remove one of the two.",
        field="id",
        file=name,
        line=number,
    )


def _digest(row: Any) -> str:
    """Return 64 bits of a row's content: of the row and not of its case, which takes four times as long."""
    return hashlib.blake2b(json.dumps(row, default=str).encode(), digest_size=8).hexdigest()


def _with_own_id(case: Case) -> Case:
    return case.model_copy(update={"id": f"{case.id[:480]}#{case.digest()[:12]}"})


def _gives(row: dict[str, Any], paths: tuple[str, ...]) -> bool:
    try:
        return value_at(row, paths) is not None
    except InputError:  # named with the row
        return True


def _matches(row: dict[str, Any], key: str, names: FieldMap) -> bool:
    if value_of(row, key) is not None:
        return True
    inside = any(name.startswith("evidence.") and held == key for name, held in names.items())
    return (
        inside
        and isinstance(chunks := value_of(row, names.get("evidence") or "evidence"), list)
        and any(isinstance(chunk, Mapping) and value_of(chunk, key) is not None for chunk in chunks)
    )


def _opened(
    source: Path | BinaryIO | Iterable[Mapping[str, Any]], profile: Profile | str | None, names: FieldMap, name: str
) -> tuple[Iterator[Row], Profile | None]:
    """Return the rows of a source, and the profile to read them by; None for the workbench's own format."""
    if isinstance(profile, str):
        chosen = None if profile == OWN_FORMAT else builtin()[profile]
        return _prepared(source, chosen, name), chosen
    if profile is not None:
        return _prepared(source, profile, name), profile
    rows = _source_rows(source, (), name)
    before: list[Row] = []  # a first row that can't be read says nothing about the format
    for row in rows:
        before.append(row)
        if isinstance(row.value, dict):
            fits = formats_of_row(mapped(row.value, names) if names else row.value)
            chosen = _one_of(fits) if fits else None
            if chosen is None or not (chosen.rows or chosen.group or chosen.join):
                every = chain(before, rows)
                return (_each_answer(every) if chosen is None else every), chosen
            return _prepared(source, chosen, name), chosen
        if len(before) == _TRIED:
            break
    return _each_answer(chain(before, rows)), None


_SEVERAL = ("responses", "completions", "generations", "outputs", "candidates", "model_responses")
"""Keys under which one row holds several answers to its question: each is a case."""


def _each_answer(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows, one that holds several answers as a row for each, whose id ends in its number."""
    for row in rows:
        value = row.value
        key = next((key for key in _SEVERAL if isinstance(value, dict) and isinstance(value.get(key), list)), None)
        if not isinstance(value, dict) or key is None or not is_empty(value.get("answer")) or "evidence" not in value:
            yield row
            continue
        rest = {name: held for name, held in value.items() if name != key}
        for number, given in enumerate(value[key], 1):
            named = name_elsewhere("answer", given) if isinstance(given, dict) else None
            answer = given.get(named) if isinstance(given, dict) and named else text_of(given)
            about = {name: held for name, held in given.items() if name != named} if isinstance(given, dict) else {}
            own = {"id": f"{value['id']}-{number}"} if isinstance(value.get("id"), str) else {}
            more = {"metadata": {**_mapping(rest.get("metadata")), "answer_of": about}} if about else {}
            yield row._replace(value={**rest, **own, **more, "answer": answer})


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


_TRIED = 20
"""Rows that can't be read after which a file is taken for one of our own format."""


def fitting(row: Any) -> tuple[Profile, ...]:
    """Return the built-in profiles that a row fits."""
    return tuple(profile for profile in builtin().values() if profile.required and _fits(profile, row))


def _one_of(found: tuple[Profile, ...]) -> Profile:
    """Return the one profile that a row fits. Raises InputError where there are several."""
    if len(found) == 1:
        return found[0]
    names = " and ".join(profile.name for profile in found)
    raise InputError(f"fits {names}", cure=f"Say which: --as {found[0].name}, for example.")


def _fits(profile: Profile, row: Any) -> bool:
    try:
        found = (value_at(row, (path,)) for path in profile.required)
        return all(value is not None and value is not False for value in found) and not any(
            value_at(row, (path,)) is not None for path in profile.absent
        )
    except InputError:
        return False


def formats_of_row(row: dict[str, Any]) -> tuple[Profile, ...]:
    """Return the built-in profiles that a row fits; none for a row with the names of the workbench's own format."""
    return () if _is_own(row) else fitting(row)


def _is_own(row: dict[str, Any]) -> bool:
    return isinstance(row.get("query"), str) and "evidence" in row


def _source_rows(
    source: Path | BinaryIO | Iterable[Mapping[str, Any]], at: tuple[str, ...], name: str
) -> Iterator[Row]:
    if isinstance(source, Path) or hasattr(source, "read"):
        return read_rows(source, at, name=name)  # type: ignore[arg-type]
    return (_given_row(number, value) for number, value in enumerate(source, 1))


def _given_row(number: int, value: Any) -> Row:
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return Row(number, number, dict(value))
    return Row(number, number, InputError(f"is {kind_of(value)}, must be an object", cure="Make each row an object."))


def _prepared(source: Any, profile: Profile | None, name: str) -> Iterator[Row]:
    if profile is None:
        return _source_rows(source, (), name)
    rows = _source_rows(source, profile.rows, name)
    if profile.join is not None:
        if not isinstance(source, Path):
            raise InputError(f"needs {profile.join.file} beside it", cure="Name the file, not a stream.")
        rows = _joined(rows, source, profile)
    return rows if profile.group is None else _grouped(rows, profile)


class Fitting(NamedTuple):
    """What a file may be: the names of the formats that its first readable row fits, and that row."""

    formats: tuple[str, ...]
    row: dict[str, Any]


def formats_of(path: Path, *, name: str | None = None) -> Fitting:
    """Return which formats a file fits; none, where a person has to say which column holds what.

    Raises InputError where it can't be read, or holds no row that can be.
    """
    for row in read_rows(path, name=name or path.name):
        if not isinstance(row.value, InputError):
            fits = tuple(each.name for each in formats_of_row(row.value))
            return Fitting((OWN_FORMAT,) if _is_own(row.value) else fits, row.value)
    raise InputError("holds no row that can be read", cure="Check the file.")


def _placed(mapped: MappedRow, name: str) -> MappedRow:
    return mapped._replace(
        problems=tuple(problem.at(file=name, line=mapped.number) for problem in mapped.problems),
        notes=tuple(note.at(file=name, line=mapped.number) for note in mapped.notes),
    )


# rows, joined and grouped


def _joined(rows: Iterator[Row], path: Path, profile: Profile) -> Iterator[Row]:
    join = profile.join
    assert join is not None
    beside = path.parent / join.file
    others: dict[Any, dict[str, Any]] = {}
    for row in rows:
        if isinstance(row.value, InputError):
            yield row
            continue
        if row.member and Path(row.member).name == join.file:
            continue
        if not others:
            others = _by_key(path, profile, zipped=bool(row.member), beside=beside)
        other = others.get(str(row.value.get(join.key)))
        if other is None:
            problem = InputError(f"names nothing in {join.file}", cure=f"Add its row to {join.file}.", field=join.key)
            yield row._replace(value=problem)
        else:
            yield row._replace(value={**row.value, join.name: other})


def _by_key(path: Path, profile: Profile, *, zipped: bool, beside: Path) -> dict[Any, dict[str, Any]]:
    join = profile.join
    assert join is not None
    source = path if zipped else beside
    if not source.exists():
        raise InputError(
            f"needs {join.file} beside it, which holds the rows that {join.key} names",
            cure=f"Put {join.file} into the same folder, or both into one zip.",
        )
    if not zipped and source.stat().st_size > MOST_DOCUMENT_BYTES:
        raise InputError(f"needs {join.file}, which is too large to join", cure="Split both.")
    return {
        str(row.value[join.key]): row.value
        for row in read_rows(source)
        if isinstance(row.value, dict) and join.key in row.value and (not zipped or Path(row.member).name == join.file)
    }


def _grouped(rows: Iterator[Row], profile: Profile) -> Iterator[Row]:
    group = profile.group
    assert group is not None
    groups: dict[str, list[dict[str, Any]]] = {}
    first: dict[str, Row] = {}
    count = end = 0
    for row in rows:
        end = row.end
        if isinstance(row.value, InputError):
            yield row
            continue
        key = value_at(row.value, group.by)
        if key is None:
            cure = f"It says which rows belong together. {_SHOWN}"
            yield row._replace(value=InputError("is missing", cure=cure, field=group.by[0]))
            continue
        count += 1
        if count > MOST_GROUPED_ROWS:
            raise InputError(f"holds more than {MOST_GROUPED_ROWS:,} rows to group", cure="Split it by trace.")
        groups.setdefault(str(key), []).append(row.value)
        first.setdefault(str(key), row)
    for key, values in groups.items():
        yield first[key]._replace(end=end, value={group.name: values})


# one row


class _Problems(list[InputError]):
    def add(self, problem: str, cure: str, field: str) -> None:
        self.append(InputError(problem, cure=cure, field=field))


def _read(row: Row, profile: Profile | None, names: FieldMap) -> MappedRow:
    if isinstance(row.value, InputError):
        return MappedRow(row.number, row.end, None, (row.value,))
    try:
        if profile is None:
            return _own(row, _cells(row.value, names) if row.table else row.value, names)
        value = mapped(row.value, {key: held for key, held in names.items() if held}) if names else row.value
        whole = value_at(value, profile.whole) if profile.whole else None
        if isinstance(whole, dict):
            return _own(row, whole, {})
        return _by_profile(row._replace(value=value), value, profile, names)
    except InputError as error:
        return MappedRow(row.number, row.end, None, (error,))


def _own(row: Row, value: dict[str, Any], names: FieldMap) -> MappedRow:
    try:
        case = case_of(value, "", names)
    except InputError as error:
        if "--map" in error.cure or error.field not in ("query", "evidence") or error.problem != "is missing":
            raise
        keys = ", ".join(repr(shortened(key, 40)) for key in list(value)[:8])
        cure = f"{error.cure} The row holds {keys or 'nothing'}: masis import FILE --suggest proposes what they are."
        raise InputError(error.problem, cure=cure, field=error.field) from error
    notes: tuple[InputError, ...] = ()
    if case.messages and not isinstance(case.messages, tuple):
        problem = "is no conversation: it is kept as it is, and no page shows it"
        cure = 'Write it as "messages": [{"role": "user", "content": "..."}, ...].'
        notes = (InputError(problem, cure=cure, field="messages"),)
    return MappedRow(row.number, row.end, case, (), notes)


_IN_A_CELL = ("evidence", "reasoning_steps", "metadata", "labels", "citations", "messages")
"""Fields that a cell of a table holds as JSON, or as pandas writes a list."""


def _cells(row: dict[str, Any], names: FieldMap) -> dict[str, Any]:
    """Return the cells of a table as values: empty ones are absent, and one text of evidence is a list."""
    moved = {held for key, held in names.items() if held and key in _IN_A_CELL}
    read = {
        key: parsed(cell) if key in _IN_A_CELL or key in moved else cell
        for key, cell in row.items()
        if cell not in ("", None)
    }
    if isinstance(read.get("evidence"), str | dict):
        read["evidence"] = [read["evidence"]]
    return read


def _by_profile(row: Row, value: dict[str, Any], profile: Profile, names: FieldMap) -> MappedRow:
    problems = _Problems()
    data = _case_data(value, profile, problems, names)
    case = None
    if not problems:
        try:
            case = case_of(data, "", {"answer": None})
        except InputError as error:
            problems.append(error)
        except RecursionError:
            problems.add("is nested too deeply", "Flatten it.", "row")
    return MappedRow(row.number, row.end, None if problems else case, tuple(problems))


def _case_data(row: dict[str, Any], profile: Profile, problems: _Problems, names: FieldMap) -> dict[str, Any]:
    def at(field: str) -> Any:
        return _followed(row, getattr(profile, field), field, problems)

    data: dict[str, Any] = {}
    metadata: dict[str, Any] = {"profile": profile.name}
    evidence, citations = at("evidence"), list[dict[str, Any]]()
    answer = at("answer")
    if profile.converter is not None:
        reply = read_reply(profile.converter, at("reply") if profile.reply else row, row)
        if reply is None:
            problems.add(f"holds no reply of {profile.converter}", "Check the profile.", "reply")
        else:
            answer, citations = reply.answer or answer, reply.citations
            evidence = _with_texts(reply.evidence, _items(evidence) if evidence else [])
            if evidence and not any(each.get("text") for each in evidence if isinstance(each, dict)):
                problems.add(
                    "names its sources by address only: their texts are not in the file",
                    'Fetch them, and put them beside the reply: "documents": [{"id": ADDRESS, "text": ...}].',
                    "evidence",
                )
            if reply.quoted_only:
                metadata["evidence_from"] = "citations"
    data["query"] = _text(at("query"), "query", problems, row, required=True)
    if answer is not None:
        data["answer"] = _text(answer, "answer", problems, row)
    data["evidence"] = _evidence(evidence, at("evidence_ids"), at("evidence_sources"), profile, problems, row)
    if profile.citations is not None:
        citations = _citations(row, profile, problems)
    if citations:
        data["citations"] = citations
    if labels := _labels(row, profile, problems):
        data["labels"] = labels
    if (messages := at("messages")) is not None:
        data["messages"] = messages
    if (reference := at("reference")) is not None:
        metadata["reference_answer"] = text_of(reference) if isinstance(reference, str | list) else reference
    for name, paths in profile.external.items():
        if (value := _followed(row, paths, f"external.{name}", problems)) is not None:
            metadata.setdefault("external", {})[name] = value
    if (rest := _rest(row, _texts_in([data, metadata.get("reference_answer")]))) not in (None, {}, []):
        metadata["source_row"] = rest
    if isinstance(rest, dict) and not problems:
        try:
            refuse_unread(
                {**rest, **data},
                (key for key in rest if key not in FIELDS),
                {"answer": None} if profile.drafted else names,
            )
        except InputError as error:
            problems.append(error)
    data["metadata"] = metadata
    identifier = at("id")
    if identifier is not None and not isinstance(identifier, str | int | float):
        problems.add(f"is {kind_of(identifier)}, must be text", _SHOWN, "id")
    data["id"] = content_id(data) if identifier is None else str(identifier)
    return {"id": data.pop("id"), **data}


def _with_texts(sources: list[dict[str, Any]], beside: list[Any]) -> list[Any]:
    """Return the sources of a reply, those known by address only with the texts beside it, and what else is there."""
    texts = {str(item.get("id", item.get("url"))): item for item in beside if isinstance(item, dict)}
    found = [texts.pop(each["id"], each) if not each["text"] else each for each in sources]
    taken = [id(each) for each in found]
    return [*found, *(item for item in beside if id(item) not in taken)]


def _followed(row: Any, paths: tuple[str, ...], field: str, problems: _Problems) -> Any:
    try:
        return value_at(row, paths)
    except InputError as error:
        problems.append(InputError(error.problem, cure=error.cure, field=field))
        return None


def _text(value: Any, field: str, problems: _Problems, row: dict[str, Any], *, required: bool = False) -> str | None:
    if isinstance(value, str):
        if required and not value.strip():
            problems.add("is blank", "Fill it in.", field)
        return value
    if value is None:
        if required:
            keys = ", ".join(repr(str(key)[:40]) for key in list(row)[:8])
            problems.add(f"is missing (the row holds {keys})", _SHOWN, field)
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    inside = ", ".join(repr(str(key)[:40]) for key in list(value)[:8]) if isinstance(value, dict) else ""
    problems.add(f"is {kind_of(value)}{f' of {inside}' if inside else ''}, must be text", _SHOWN, field)
    return None


def _items(evidence: Any) -> list[Any]:
    """Return the items of an evidence: a list, a list written as text, one text, or an object of id and text."""
    read = parsed(evidence)
    if isinstance(read, list):
        return [item for part in read for item in (part if isinstance(part, list) else [part])]
    if isinstance(read, dict) and read and all(isinstance(text, str) for text in read.values()):
        known = {"id", "text", "source", "title", "content", "page_content"} & set(read)
        return [read] if known else [{"id": key, "text": text} for key, text in read.items()]
    return [read]


def _evidence(
    given: Any, ids: Any, sources: Any, profile: Profile, problems: _Problems, row: dict[str, Any]
) -> list[dict[str, Any]]:
    if given is None:
        keys = ", ".join(repr(str(key)[:40]) for key in list(row)[:8])
        problems.add(f"is missing or empty (the row holds {keys})", _SHOWN, "evidence")
        return []
    chunks, taken = list[dict[str, Any]](), set[str]()
    items = _items(given)
    beside = zip(items, _beside(ids, len(items)), _beside(sources, len(items)), strict=True)
    items = [_described(*each) for each in beside]
    for number, item in enumerate(items, 1):
        chunk = _chunk(item, number, profile, problems)
        if chunk is None:
            continue
        if chunk["id"] in taken:
            same = next(other for other in chunks if other["id"] == chunk["id"])
            if same.get("text") == chunk.get("text"):
                continue
            chunk["id"] = next(
                name for count in range(2, len(chunks) + 3) if (name := f"{chunk['id']}#{count}") not in taken
            )
        taken.add(chunk["id"])
        chunks.append(chunk)
    return chunks


def _beside(values: Any, count: int) -> list[str | None]:
    """Return the ids or sources that stand beside an evidence of plain texts, None for each that is empty."""
    read = parsed(values)
    if not isinstance(read, list) or len(read) != count:
        return [None] * count
    return [None if each in (None, "") else str(each) for each in read]


def _described(item: Any, identifier: str | None, source: str | None) -> Any:
    """Return an item of the evidence with the id and source beside it, where it is plain text and there are any."""
    beside = {name: value for name, value in (("id", identifier), ("source", source)) if value is not None}
    return {**beside, "text": item} if beside and isinstance(item, str) else item


def _chunk(item: Any, number: int, profile: Profile, problems: _Problems) -> dict[str, Any] | None:
    field = f"evidence[{number - 1}]"
    if isinstance(item, str):
        return {"id": f"chunk_{number}", "text": item}
    if not isinstance(item, dict):
        problems.add(f"is {kind_of(item)}, must be text or an object", _SHOWN, field)
        return None
    paths = profile.chunk
    identifier = _followed(item, paths.id, f"{field}.id", problems)
    text = _followed(item, paths.text, f"{field}.text", problems)
    source = _followed(item, paths.source, f"{field}.source", problems)
    if source is None and isinstance(item.get("source"), str):
        source = item["source"]
    if text is None and not isinstance(item.get("text"), str) and source is None:
        keys = ", ".join(repr(str(key)[:40]) for key in list(item)[:8])
        problems.add(f"has no text (it holds {keys})", _SHOWN, field)
        return None
    named = f"chunk_{number}" if identifier is None or isinstance(identifier, dict | list) else str(identifier)
    chunk: dict[str, Any] = {"id": named, "text": text_of(text) or ""}
    if isinstance(source, str):
        chunk["source"] = source
    rest = {key: value for key, value in item.items() if key not in ("id", "text", "source")}
    kept = _rest(rest, {chunk["text"], chunk["id"], chunk.get("source", "")})
    if kept:
        chunk["metadata"] = kept
    return chunk


def _citations(row: dict[str, Any], profile: Profile, problems: _Problems) -> list[dict[str, Any]]:
    paths = profile.citations
    assert paths is not None
    found = []
    for number, item in enumerate(_followed(row, paths.items, "citations", problems) or ()):
        field = f"citations[{number}]"
        read = {
            name: _followed(item, getattr(paths, name), f"{field}.{name}", problems)
            for name in ("start", "end", "evidence_id", "quote")
        }
        given = {name: value for name, value in read.items() if value is not None}
        if "evidence_id" in given:
            given["evidence_id"] = str(given["evidence_id"])
        if {"start", "end", "evidence_id"} <= set(given):
            found.append(given)
        else:
            problems.add("needs start, end and evidence_id", _SHOWN, field)
    return found


def _labels(row: dict[str, Any], profile: Profile, problems: _Problems) -> dict[str, Any]:
    paths = profile.labels
    items = _followed(row, paths.items, "labels", problems) if paths else None
    if paths is None or not isinstance(items, list):
        return {}
    claims = []
    for number, item in enumerate(items):
        text = _followed(item, paths.text, f"labels[{number}].text", problems)
        if not isinstance(text, str):
            problems.add("has no text", _SHOWN, f"labels[{number}]")
            continue
        written = _followed(item, paths.verdict, f"labels[{number}].verdict", problems)
        note = _followed(item, paths.note, f"labels[{number}].note", problems)
        claim: dict[str, Any] = {"text": text}
        if str(written) in paths.words:
            claim["verdict"] = paths.words[str(written)]
        elif written is not None:
            claim["as_labelled"] = written
        if note is not None:
            claim["note"] = str(note)
        if isinstance(item, dict):
            claim |= {key: value for key, value in item.items() if key in ("start", "end", "label_type")}
        claims.append(claim)
    return {"claims": claims} if claims else {}


def _texts_in(value: Any) -> set[str]:
    if isinstance(value, str):
        return {value} if len(value) >= PRUNED_LEAST else set()
    if isinstance(value, dict):
        return set().union(*map(_texts_in, value.values()))
    return set().union(*map(_texts_in, value)) if isinstance(value, list) else set()


def _rest(value: Any, used: set[str]) -> Any:
    """Return what of a row the case does not hold elsewhere; None where that is nothing."""
    if isinstance(value, str):
        return None if value in used and len(value) >= PRUNED_LEAST else value
    if isinstance(value, dict):
        kept = {key: rest for key, item in value.items() if (rest := _rest(item, used)) is not None}
        return kept or None
    if isinstance(value, list):
        return [rest for item in value if (rest := _rest(item, used)) is not None] or None
    return value
