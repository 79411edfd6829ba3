"""Cases from JSON Lines, one at a time: each line is a case or an error that names file, line, field and cure.

Memory stays flat whatever the size of the file: one line at a time, and 20 bytes for each id met, so that a repeated
id can be named with both its lines. What is not done here: nothing is stored, and nothing is dropped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from pydantic import ValidationError

from masis.datasets.readers.lines import MAX_LINE_BYTES, Line, open_lines, read_lines
from masis.datasets.readers.seen import SeenIds
from masis.datasets.readers.strict_json import parse_object
from masis.errors import InputError
from masis.schema.case import ANSWERING_ROLES, ASKING_ROLES, Case, Message
from masis.schema.explain import explain, name_elsewhere


class CaseLine(NamedTuple):
    """What one line holds. ``end`` is the number of bytes read so far, for progress."""

    number: int
    end: int
    found: Case | InputError


def read_cases(source: Path | BinaryIO, *, name: str | None = None) -> Iterator[Case | InputError]:
    """Yield every case of a file, and an InputError for every line that holds none; see ``read_case_lines``."""
    return (line.found for line in read_case_lines(source, name=name))


def read_case_lines(
    source: Path | BinaryIO, *, name: str | None = None, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[CaseLine]:
    """Return an iterator over the cases of a file, each with its line.

    A line that repeats an earlier one word for word is skipped; the same id with other content is an error that names
    both lines. A file without any case yields an error too.

    Args:
        source: A path, or a stream of bytes.
        name: How errors name the source.
        max_line_bytes: A longer line is an error.

    Raises:
        InputError: The file can't be opened (at once) or is of another format than text (on reading).

    """
    if not isinstance(source, Path):
        return _read(source, name or "stdin", max_line_bytes)
    stream = open_lines(source)
    return _read(stream, name or str(source), max_line_bytes, close=True)


def likely_misnamed(case: Case) -> str | None:
    """Return the key that probably holds the answer of a case without one, or None: an answer lost to its name is
    silent.
    """
    if case.answer is not None or not case.model_extra:
        return None
    return name_elsewhere("answer", case.model_extra)


def _read(stream: BinaryIO, name: str, max_line_bytes: int, *, close: bool = False) -> Iterator[CaseLine]:
    seen = SeenIds()
    lines = 0
    try:
        for line in read_lines(stream, max_bytes=max_line_bytes):
            lines += 1
            if line.number == 1:
                _refuse_other_shapes(line)
            found = _case_of(line, seen, max_line_bytes)
            if found is not None:
                placed = found.at(file=name, line=line.number) if isinstance(found, InputError) else found
                yield CaseLine(line.number, line.end, placed)
    except InputError as error:
        raise error.at(file=name) from error
    except OSError as error:
        raise InputError(f"can't be read ({error.strerror})", cure="Check the file.", file=name) from error
    finally:
        if close:
            stream.close()
    if not lines:
        cure = 'Put one case on each line: {"id": ..., "query": ..., "answer": ..., "evidence": [...]}.'
        yield CaseLine(1, 0, InputError("holds no case", cure=cure, file=name))


def _case_of(line: Line, seen: SeenIds, max_line_bytes: int) -> Case | InputError | None:
    if line.content is None:
        return InputError(
            f"is longer than {max_line_bytes // 2**20} MiB",
            cure="Put each case on a line of its own, or split the case.",
        )
    try:
        case = _validated(line.content)
    except InputError as error:
        return error
    digest = hashlib.blake2b(line.content, digest_size=8).hexdigest()
    first = seen.first(case.id, line.number, digest)
    if first.number == line.number:
        return case
    if first.digest == int(digest, 16):
        return None
    shown = case.id if len(case.id) <= 80 else case.id[:77] + "..."
    return InputError(
        f"is {shown!r}, as in line {first.number}, with other content",
        cure="Give each case an id of its own, or remove one of the two.",
        field="id",
    )


def _validated(content: bytes) -> Case:
    data = completed(parse_object(content))
    try:
        case = Case.model_validate(data)
    except ValidationError as error:
        raise explain(error, data) from error
    if not case.query.strip():
        raise InputError("is blank", cure='Add the question as "query": "...".', field="query")
    for given in case.given_citations:
        if not 0 <= given.start <= given.end <= len(case.answer or ""):
            raise InputError(
                f"covers characters {given.start} to {given.end} of an answer of {len(case.answer or '')}",
                cure="Count characters of the answer from 0; the end is not included.",
                field="citations",
            )
    return case


def content_id(data: Mapping[str, Any]) -> str:
    """Return an id for a case without one: a digest of its question, answer and evidence."""
    held = [data.get("query"), data.get("answer"), data.get("evidence")]
    content = json.dumps(held, ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.sha256(content.encode(errors="surrogatepass")).hexdigest()[:20]


def completed(data: dict[str, Any]) -> dict[str, Any]:
    """Give plain texts of the evidence the ids 1 to n, and a case without an id one from its content.

    Of a conversation (``messages``) the last question and the answer to it are audited, where the case names no others.
    """
    data = _from_messages(data)
    evidence = data.get("evidence")
    if isinstance(evidence, list) and any(isinstance(item, str) for item in evidence):
        chunks = [{"id": str(n), "text": item} if isinstance(item, str) else item for n, item in enumerate(evidence, 1)]
        data = {**data, "evidence": chunks}
    return data if "id" in data or "query" not in data else {"id": content_id(data), **data}


def _from_messages(data: dict[str, Any]) -> dict[str, Any]:
    given = data.get("messages")
    if not isinstance(given, list) or ("query" in data and "answer" in data):
        return data
    try:
        turns = [Message.model_validate(each) for each in given]
    except ValidationError:
        return data
    found = dict(data)
    if "answer" not in data and turns and turns[-1].role in ANSWERING_ROLES and turns[-1].text.strip():
        found["answer"] = turns[-1].text
    asked = next((turn.text for turn in reversed(turns) if turn.role in ASKING_ROLES and turn.text.strip()), None)
    if "query" not in data and asked is not None:
        found["query"] = asked
    return found


def _refuse_other_shapes(line: Line) -> None:
    """Raises InputError where the first line opens a document spread over lines: it would fail line by line."""
    if line.content is None:
        return
    if line.content.startswith(b"["):
        raise InputError(
            "holds one JSON list, must be JSON Lines: one case on each line",
            cure="Convert it, for example with: jq -c '.[]' FILE > NEW.",
        )
    if line.content == b"{":
        raise InputError(
            "spreads one JSON object over several lines, must be JSON Lines: one case on each line",
            cure="Convert it, for example with: jq -c . FILE > NEW.",
        )
