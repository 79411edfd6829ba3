"""RIS, as reference managers and databases export it; a record is read by rispy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from rispy import RisParser  # type: ignore[import-untyped]

from masis.datasets.readers.abstracts.text_lines import Block, read_blocks
from masis.errors import InputError
from masis.schema.screening import Abstract
from masis.screening.sources.records import abstract_of

_BEGINS, _ENDS = re.compile(r"[ \t]{0,100}TY  -"), re.compile(r"[ \t]{0,100}ER  -")
_STRAY_CURE = "Begin each record with a line `TY  - JOUR` and end it with `ER  - `."

_TITLE = ("title", "primary_title", "translated_title", "short_title")
_TEXT = ("abstract", "notes_abstract")
_YEAR = ("year", "publication_year", "date")
_JOURNAL = ("secondary_title", "alternate_title3", "journal_name", "alternate_title2", "alternate_title1")
_AUTHORS = ("authors", "first_authors")
_PUBMED = re.compile(r"pubmed|medline|nlm", re.IGNORECASE)


def read_ris(stream: BinaryIO, *, source: str) -> Iterator[Abstract | InputError]:
    """Yield every record, and an error where one lacks its end or can't be read."""
    for block in read_blocks(stream, _BEGINS, _ENDS, _STRAY_CURE):
        yield block if isinstance(block, InputError) else block.read(_record, source)


def _record(block: Block, source: str) -> Abstract:
    if not block.ended:
        raise InputError("has no end", cure="Add a line `ER  - ` behind it; it may have been cut off.")
    parser = RisParser(delimiter_tags_mapping={})  # an address may hold a semicolon
    fields: dict[str, Any] = parser.parse_lines(line for text in block.texts if (line := text.lstrip()))[0]
    return abstract_of(
        title=_first(fields, _TITLE),
        text=_first(fields, _TEXT),
        year=_first(fields, _YEAR),
        journal=_first(fields, _JOURNAL),
        authors=[name for key in _AUTHORS for name in fields.get(key, ())],
        doi=_first(fields, ("doi",)),
        pmid=_pmid(fields),
        url=next(iter(fields.get("urls", ())), ""),
        keywords=fields.get("keywords", ()),
        publication_types=_types(fields),
        source=source,
        record=_rest(fields),
    )


def _first(fields: dict[str, Any], keys: tuple[str, ...]) -> str:
    return next((value for key in keys if isinstance(value := fields.get(key), str) and value.strip()), "")


def _pmid(fields: dict[str, Any]) -> str:
    """Return the accession number, where the database that gave it is PubMed's."""
    number = _first(fields, ("accession_number",))
    where = _first(fields, ("name_of_database",)) + _first(fields, ("database_provider",))
    return number if number.isdigit() and _PUBMED.search(where[:200]) else ""


def _types(fields: dict[str, Any]) -> list[str]:
    """Return what ``M3`` (type of work) and ``TY`` say, each type by itself."""
    listed = [fields.get("type_of_work"), fields.get("type_of_reference")]
    return [part for each in listed if isinstance(each, str) for part in re.split(r"[;|]", each)]


def _rest(fields: dict[str, Any]) -> dict[str, Any]:
    used = {*_TITLE[:2], *_TEXT, *_AUTHORS, "doi", "keywords", "urls"}
    return {key: dict(value) if key == "unknown_tag" else value for key, value in fields.items() if key not in used}
