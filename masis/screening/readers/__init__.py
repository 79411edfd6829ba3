"""Reads files of abstracts: JSON Lines, RIS, BibTeX, PubMed and EndNote XML, MEDLINE text, tables.

The first lines show the format. Records are read one at a time, so memory doesn't grow with the
file. An unreadable record is an error that names file, line, record and hint; the others are still
read. Repeated records are yielded each time. The code that stores them detects and counts
duplicates (``masis/screening/sources/records.py``).
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast, get_args

from masis.datasets.readers.lines import open_lines, refuse_other_formats
from masis.datasets.rows import read_rows
from masis.errors import InputError
from masis.schema.explain import kind_of
from masis.schema.screening import Abstract
from masis.screening.readers.bibliographic import read_bibtex, read_medline, read_ris
from masis.screening.readers.decisions import ASREVIEW_LABEL
from masis.screening.readers.endnote_xml import read_endnote
from masis.screening.sources.publication import RETRACTED_TYPE
from masis.screening.sources.pubmed_xml import read_articles
from masis.screening.sources.records import (
    abstract_of,
    validate_abstract,
    without_placeholder,
    year_of,
)

_OTHER_FIELD_NAMES = {
    "text": ("abstract", "abstracts", "abstract_text", "abstract_note", "summary", "ab"),
    "title": ("article_title", "titles", "name", "primary_title", "document_title", "ti"),
    "year": ("pub_year", "publication_year", "published_year", "pub_date", "date", "years", "py"),
    "journal": (
        "journal_title",
        "venue",
        "source_title",
        "journal_book",
        "publication_title",
        "journals",
        "secondary_title",
        "so",
    ),
    "authors": ("author", "author_s", "authors_list", "author_names", "author_full_names", "au"),
    "pmid": ("pubmed_id", "pubmedid", "pubmed", "pm_id", "pubmed_pmid", "medline_id", "pm"),
    "doi": ("doi_link", "dois", "di"),
    "url": ("link", "urls"),
    "keywords": ("keyword", "author_keywords", "mesh_terms", "mesh", "de"),
    "publication_types": (
        "publication_type",
        "pub_types",
        "pubtype",
        "document_type",
        "article_type",
        "type_of_work",
    ),
}
"""Other programs' names for our fields, in lower case, with underscores for other signs.

The two-letter names are tags of Web of Science.
"""
_NON_WORD = re.compile(r"[^a-z0-9]+")
"""Characters that become underscores in column names."""
_TEXTS = frozenset({"id", "title", "text", "journal", "doi", "pmid", "url"})
_LISTS = frozenset({"authors", "keywords", "publication_types"})
_READ_NAMES = (
    frozenset(name for names in _OTHER_FIELD_NAMES.values() for name in names)
    | _TEXTS
    | _LISTS
    | {"year"}
)


def read_fields(data: dict[str, Any], source: str) -> Abstract:
    """Return a JSON record or a table row as an abstract, with any known field names.

    Unknown fields are kept. A missing id is derived from the PubMed id, the DOI or the title.

    Raises:
        InputError: A field has the wrong type; the error names it.

    """
    fields = {
        plain if (plain := _plain_name(name)) in _READ_NAMES - data.keys() else name: value
        for name, value in data.items()
    }
    for name, aliases in _OTHER_FIELD_NAMES.items():
        alias = next((alias for alias in aliases if alias in fields), None)
        if name not in fields and alias is not None:
            fields[name] = fields.pop(alias)
    # "type" is ambiguous, so it's also kept unchanged.
    if "publication_types" not in fields and isinstance(fields.get("type"), str):
        fields["publication_types"] = fields["type"]
    if fields.get("is_retracted") in (True, "true", "True"):
        fields["publication_types"] = [RETRACTED_TYPE]
    for name in _TEXTS & fields.keys():
        fields[name] = _text_or_none_field(fields[name], name)
    if isinstance(text := fields.get("text"), str):
        fields["text"] = without_placeholder(text)
    for name in _LISTS & fields.keys():
        fields[name] = _list_field(fields[name], name)
    if (given := fields.get("year")) is not None:
        if not isinstance(given, str | int) or isinstance(given, bool):
            raise InputError(
                f"is {kind_of(given)}, must be a year",
                hint='Write it as "year": 2019.',
                field="year",
            )
        fields["year"] = year_of(str(given))
        if fields["year"] is None and given:  # such as "in press"; the record is kept anyway
            fields["year_as_given"] = given
    known: dict[str, Any] = {
        name: str(fields.get(name) or "") for name in ("title", "text", "doi", "pmid", "year")
    }
    stated = {
        key: value
        for key, value in fields.items()
        if value not in (None, "") or key == ASREVIEW_LABEL
    }
    return validate_abstract({"id": abstract_of(**known).id, "source": source} | stated)


def _plain_name(name: str) -> str:
    """Return a name in lower case with underscores: ``Abstract Note`` as ``abstract_note``."""
    return _NON_WORD.sub("_", name.lower()).strip("_")


def _text_or_none_field(value: Any, name: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and name in ("id", "pmid"):
        return str(value)
    raise InputError(f"is {kind_of(value)}, must be text", hint="Put it in quotes.", field=name)


def _list_field(value: Any, name: str) -> list[str]:
    items = [] if value is None else re.split(r"[;|]", value) if isinstance(value, str) else value
    if isinstance(items, list) and all(isinstance(item, str) for item in items):
        return [item.strip() for item in items if item.strip()]
    raise InputError(
        f"is {kind_of(value)}, must be a list of texts",
        hint='Write it as ["...", "..."].',
        field=name,
    )


AbstractFormat = Literal["jsonl", "ris", "bibtex", "pubmed_xml", "endnote_xml", "medline", "csv"]
FORMATS: tuple[AbstractFormat, ...] = get_args(AbstractFormat)

_LOOKED_AT = 8192
_TITLE_COLUMN = re.compile(
    rb"[^\n]{0,4000}?(?<![a-z0-9])(?:titles?|ti)\"?[ \t]{0,10}(?=[,;\t\r\n])",
    re.IGNORECASE,
)
"""A first line with a column named title."""
_SIGNS: tuple[tuple[AbstractFormat, re.Pattern[bytes]], ...] = (
    ("jsonl", re.compile(rb"\s{0,1000}[\[{]")),
    # A declaration, a document type and comments can stand before the first element.
    (
        "endnote_xml",
        re.compile(rb"\s{0,1000}(?:<[?!][^>]{0,200}>\s{0,1000}){0,4}<(?:xml|records)\b"),
    ),
    ("pubmed_xml", re.compile(rb"\s{0,1000}<(?:\?xml|!|Pubmed)")),
    ("medline", re.compile(rb"(?:\A|.*?\n)PMID- ?\d", re.DOTALL)),
    ("ris", re.compile(rb"(?:\A|.*?\n)[ \t]{0,100}TY  -", re.DOTALL)),
    ("csv", _TITLE_COLUMN),
    (
        "bibtex",
        re.compile(
            rb"(?:\A|.*?\n)[ \t]{0,100}@[ \t]{0,10}[a-zA-Z]{1,40}[ \t]{0,10}[{(]", re.DOTALL
        ),
    ),
)
"""The pattern that recognizes each format, in the order of trial."""
_FORMAT_HINT = (
    "Give JSON Lines, RIS, BibTeX, PubMed or EndNote XML, MEDLINE text or CSV, or name the format."
)


def read_abstracts(
    source: Path | BinaryIO, *, name: str | None = None, form: AbstractFormat | None = None
) -> Iterator[Abstract | InputError]:
    """Return an iterator over the abstracts of a file.

    An unreadable record becomes an InputError in the iterator.

    Args:
        source: A path or a stream of bytes.
        name: The source's name in errors and in the records' ``source``.
        form: The format; by default it is recognized by the first lines.

    Raises:
        InputError: The file can't be opened. While iterating: it has an unknown format or no
            abstracts.

    """
    if isinstance(source, Path):
        return _read_stream(open_lines(source), name or str(source), form, close=True)
    return _read_stream(source, name or "stdin", form)


def _read_stream(
    stream: BinaryIO, name: str, form: AbstractFormat | None, *, close: bool = False
) -> Iterator[Abstract | InputError]:
    buffered = (
        stream
        if isinstance(stream, io.BufferedReader)
        else io.BufferedReader(cast("io.RawIOBase", stream))
    )
    any_found = False
    try:
        for record in _format_records(
            buffered, form or detect_format(buffered.peek(_LOOKED_AT)[:_LOOKED_AT]), Path(name).name
        ):
            any_found = True
            yield record.at(file=name) if isinstance(record, InputError) else record
    except InputError as error:
        raise error.at(file=name) from error
    except OSError as error:
        raise InputError(
            f"can't be read ({error.strerror})", hint="Check the file.", file=name
        ) from error
    finally:
        if buffered is not stream:
            buffered.detach()  # otherwise it would close the caller's stream
        if close:
            stream.close()
    if not any_found:
        raise InputError("holds no abstract", hint=_FORMAT_HINT, file=name)


def _format_records(
    stream: BinaryIO, form: AbstractFormat, source: str
) -> Iterator[Abstract | InputError]:
    if form in _READERS:
        yield from _READERS[form](stream, source=source)
        return
    for row in read_rows(stream, name=f"abstracts.{form}"):
        try:
            if isinstance(row.value, InputError):
                raise row.value
            fields = row.value
            if row.table:  # drop empty cells and normalize column names
                cells = {name: cell.strip() for name, cell in fields.items()}
                fields = {
                    plain: cell
                    for name, cell in cells.items()
                    if (plain := _plain_name(name)) == ASREVIEW_LABEL or cell
                }
            yield read_fields(fields, source)
        except InputError as error:
            yield error.at(line=row.number)


_READERS: dict[str, Callable[..., Iterator[Abstract | InputError]]] = {
    "pubmed_xml": lambda stream, source: (
        article.found for article in read_articles(stream, source=source)
    ),
    "endnote_xml": read_endnote,
    "ris": read_ris,
    "bibtex": read_bibtex,
    "medline": read_medline,
}


def detect_format(beginning: bytes) -> AbstractFormat:
    """Return the format that the first lines show.

    Raises:
        InputError: The format is unknown.

    """
    refuse_other_formats(beginning)
    shown = beginning.removeprefix(b"\xef\xbb\xbf")
    for form, sign in _SIGNS:
        if sign.match(shown):
            return form
    raise InputError("isn't in a known format of abstracts", hint=_FORMAT_HINT)
