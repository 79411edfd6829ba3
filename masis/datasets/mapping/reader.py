"""Rows as cases by a profile: every problem of a row at once, and nothing of it lost silently.

What a profile does not name is kept under ``metadata.source_row``. Memory holds one row at a time, but for a joined
file and for rows that are grouped, which are limited.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from masis.datasets.mapping.containers import MOST_DOCUMENT_BYTES, Row, read_rows
from masis.datasets.mapping.detection import fitting, profile_for
from masis.datasets.mapping.paths import parsed, text_of, value_at
from masis.datasets.mapping.profile import Profile
from masis.datasets.mapping.replies import read_reply
from masis.datasets.readers.cases import completed, content_id, likely_misnamed, read_case_lines
from masis.datasets.readers.lines import open_lines
from masis.datasets.readers.seen import SeenIds
from masis.errors import InputError
from masis.schema.case import Case
from masis.schema.explain import explain_all, kind_of, name_elsewhere

PRUNED_LEAST = 12
"""Characters of a text that is left out of ``metadata.source_row`` since the case holds it elsewhere."""

MOST_GROUPED_ROWS = 200_000
"""Rows (spans) held while they are grouped."""

_OWN_FILE = "Choose its column on the Import page, or name its path in a TOML file for --map (docs/importing.md)."


class MappedRow(NamedTuple):
    """What one row gives: a case, or the problems in the way of one; ``notes`` say what a person may have meant."""

    number: int
    end: int
    case: Case | None
    problems: tuple[InputError, ...] = ()
    notes: tuple[InputError, ...] = ()


def read_mapped(path: Path, profile: Profile | None = None, *, name: str | None = None) -> Iterator[MappedRow]:
    """Yield the cases of a file by a profile, by default the one that its first row fits.

    A row whose case was read before, word for word, is skipped; another case under the same id is a problem.
    ``name`` is the file's name where the path is another.

    Raises InputError where the file can't be read, or its profile can't be detected.
    """
    called = name or path.name
    seen = SeenIds()
    try:
        if profile is None:
            profile = detected(path, name=called)
        found = False
        for row in _rows(path, profile, called):
            found = True
            mapped = _placed(_mapped(row, profile), f"{called}/{row.member}" if row.member else called)
            case = mapped.case
            if case is not None:
                digest = case.digest()
                number, first = seen.first(case.id, row.number, digest)
                if number != row.number:
                    if first == int(digest[:16], 16):
                        continue
                    problem = InputError(
                        f"is {case.id[:80]!r}, as in row {number}, with other content",
                        cure="Give each case an id of its own, or remove one of the two.",
                        field="id",
                        file=called,
                        line=row.number,
                    )
                    mapped = mapped._replace(case=None, problems=(problem,))
            yield mapped
        if not found:
            raise InputError("holds no row", cure="Check the file.")
    except InputError as error:
        raise error.at(file=called) from error


def read_any(path: Path, profile: Profile | None = None, *, name: str | None = None) -> Iterator[MappedRow]:
    """Yield the cases of a file in the workbench's own format, or by a profile: the one given, else the one it fits.

    A file of JSON Lines that fits no profile is read in the workbench's own format, whose errors say what is missing.

    Raises InputError where the file can't be read, or its profile can't be detected.
    """
    if profile is None and _own_format(path, name or path.name):
        return _own_rows(path, name or str(path))
    return read_mapped(path, profile, name=name)


OWN_FORMAT = "cases"
"""The name of the workbench's own format: JSON Lines of id, query, answer and evidence."""


def _own_format(path: Path, name: str) -> bool:
    """Return whether a file is JSON Lines of our own cases, or of nothing that is known."""
    with open_lines(path) as stream:
        start = stream.read(1 << 16).removeprefix(b"\xef\xbb\xbf").lstrip()
    if name.lower().endswith((".csv", ".tsv", ".parquet", ".gz", ".zip")) or start[:1] == b"[":
        return False
    if start[:1] not in (b"{", b"") and start[:4] in (b"PK\x03\x04", b"PAR1"):
        return False
    if start.startswith(b"\x1f\x8b"):
        return False
    if start[:1] != b"{":
        return True
    try:
        first = next(iter(read_rows(path, name=name)), None)
    except InputError:
        return True
    if first is None or isinstance(first.value, InputError):
        return not first or first.number == 1
    if isinstance(first.value.get("query"), str) and isinstance(first.value.get("evidence"), list):
        return True
    return not fitting(first.value)


def _own_rows(path: Path, name: str) -> Iterator[MappedRow]:
    for line in read_case_lines(path, name=name):
        if isinstance(line.found, InputError):
            yield MappedRow(line.number, line.end, None, (line.found,))
            continue
        notes: tuple[InputError, ...] = ()
        if key := likely_misnamed(line.found):
            problem = "may be the answer; without one, an audit drafts its own"
            notes = (InputError(problem, cure=f'Rename "{key}" to "answer".', field=key, file=name, line=line.number),)
        if line.found.messages and not isinstance(line.found.messages, tuple):
            problem = "is no conversation: it is kept as it is, and no page shows it"
            cure = 'Write it as "messages": [{"role": "user", "content": "..."}, ...].'
            notes += (InputError(problem, cure=cure, field="messages", file=name, line=line.number),)
        yield MappedRow(line.number, line.end, line.found, (), notes)


class Fitting(NamedTuple):
    """What a file may be: the names of the formats that its first readable row fits, and that row."""

    formats: tuple[str, ...]
    row: dict[str, Any]


def formats_of(path: Path, *, name: str | None = None) -> Fitting:
    """Return which formats a file fits; none, where a person has to say which column holds what.

    Raises InputError where it can't be read, or holds no row that can be.
    """
    first = _first_row(path, name or path.name)
    own = isinstance(first.get("query"), str) and isinstance(first.get("evidence"), list)
    if own and _own_format(path, name or path.name):
        return Fitting((OWN_FORMAT,), first)
    return Fitting(tuple(profile.name for profile in fitting(first)), first)


def _first_row(path: Path, name: str) -> dict[str, Any]:
    for row in read_rows(path, name=name):
        if not isinstance(row.value, InputError):
            return row.value
    raise InputError("holds no row that can be read", cure="Check the file.")


def detected(path: Path, *, name: str | None = None) -> Profile:
    """Return the profile that the first row of a file fits. Raises InputError where none does, or several."""
    return profile_for(_first_row(path, name or path.name))


def _placed(mapped: MappedRow, name: str) -> MappedRow:
    return mapped._replace(
        problems=tuple(problem.at(file=name, line=mapped.number) for problem in mapped.problems),
        notes=tuple(note.at(file=name, line=mapped.number) for note in mapped.notes),
    )


# rows, joined and grouped


def _rows(path: Path, profile: Profile, name: str) -> Iterator[Row]:
    rows = read_rows(path, profile.rows, name=name)
    if profile.join is not None:
        rows = _joined(rows, path, profile)
    return rows if profile.group is None else _grouped(rows, profile)


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
            cure = f"It says which rows belong together. {_OWN_FILE}"
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


def _mapped(row: Row, profile: Profile) -> MappedRow:
    if isinstance(row.value, InputError):
        return MappedRow(row.number, row.end, None, (row.value,))
    problems, notes = _Problems(), _Problems()
    whole = value_at(row.value, profile.whole) if profile.whole else row.value
    if (profile.whole or profile.name == "simple") and (own := _own_case(row, whole)) is not None:
        return own
    data = _case_data(row.value, profile, problems, notes)
    case = None
    if not problems:
        try:
            case = Case.model_validate(data)
        except ValidationError as error:
            problems += explain_all(error, data)
        except RecursionError:
            problems.add("is nested too deeply", "Flatten it.", "row")
    if case is not None:
        problems += citation_problems(case)
    return MappedRow(row.number, row.end, None if problems else case, tuple(problems), tuple(notes))


def _own_case(row: Row, whole: Any) -> MappedRow | None:
    """Return a row whose case is of our own format as it is; None where it needs mapping."""
    if not isinstance(whole, dict):
        return None
    try:
        case = Case.model_validate(completed(whole))
    except ValidationError:
        return None
    return MappedRow(row.number, row.end, None if (wrong := citation_problems(case)) else case, tuple(wrong))


def citation_problems(case: Case) -> list[InputError]:
    """Return what is wrong with the places that structured citations name."""
    length = len(case.answer or "")
    return [
        InputError(
            f"covers characters {given.start} to {given.end} of an answer of {length}",
            cure="Count characters of the answer from 0; the end is not included.",
            field=f"citations[{number}]",
        )
        for number, given in enumerate(case.given_citations)
        if not 0 <= given.start <= given.end <= length
    ]


def _case_data(row: dict[str, Any], profile: Profile, problems: _Problems, notes: _Problems) -> dict[str, Any]:
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
            evidence = [*reply.evidence, *(_items(evidence) if evidence else ())]
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
    if data.get("answer") is None and (key := name_elsewhere("answer", row)):
        notes.add(
            f"may be the answer, which {profile.name} does not read from there; without one, an audit drafts its own",
            f'Rename "{key}", or name its path in a TOML file: answer = "{key}".',
            key,
        )
    if (rest := _rest(row, _texts_in([data, metadata.get("reference_answer")]))) not in (None, {}, []):
        metadata["source_row"] = rest
    data["metadata"] = metadata
    identifier = at("id")
    if identifier is not None and not isinstance(identifier, str | int | float):
        problems.add(f"is {kind_of(identifier)}, must be text", _OWN_FILE, "id")
    data["id"] = content_id(data) if identifier is None else str(identifier)
    return {"id": data.pop("id"), **data}


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
            problems.add(f"is missing (the row holds {keys})", _OWN_FILE, field)
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    inside = ", ".join(repr(str(key)[:40]) for key in list(value)[:8]) if isinstance(value, dict) else ""
    problems.add(f"is {kind_of(value)}{f' of {inside}' if inside else ''}, must be text", _OWN_FILE, field)
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
        problems.add(f"is missing or empty (the row holds {keys})", _OWN_FILE, "evidence")
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
        return {"id": str(number), "text": item}
    if not isinstance(item, dict):
        problems.add(f"is {kind_of(item)}, must be text or an object", _OWN_FILE, field)
        return None
    paths = profile.chunk
    identifier = _followed(item, paths.id, f"{field}.id", problems)
    text = _followed(item, paths.text, f"{field}.text", problems)
    source = _followed(item, paths.source, f"{field}.source", problems)
    if source is None and isinstance(item.get("source"), str):
        source = item["source"]
    if text is None and not isinstance(item.get("text"), str) and source is None:
        keys = ", ".join(repr(str(key)[:40]) for key in list(item)[:8])
        problems.add(f"has no text (it holds {keys})", _OWN_FILE, field)
        return None
    named = str(number) if identifier is None or isinstance(identifier, dict | list) else str(identifier)
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
            problems.add("needs start, end and evidence_id", _OWN_FILE, field)
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
            problems.add("has no text", _OWN_FILE, f"labels[{number}]")
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
