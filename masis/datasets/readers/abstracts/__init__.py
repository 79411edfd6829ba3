"""Files of abstracts: JSON Lines, RIS, BibTeX, PubMed XML, MEDLINE text, tables (CSV); the first lines show which.

Records come one at a time, so memory stays flat whatever the size of the file; one that can't be read is an error that
names file, line, record and cure, and the others come all the same. Repeated records are yielded each time: whoever
stores them recognises duplicates (``masis/screening/sources/records.py``) and counts them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast, get_args

from masis.datasets.readers.abstracts.bibtex import read_bibtex
from masis.datasets.readers.abstracts.medline import read_medline
from masis.datasets.readers.abstracts.ris import read_ris
from masis.datasets.readers.lines import open_lines, refuse_other_formats
from masis.datasets.rows import read_rows
from masis.errors import InputError
from masis.schema.explain import kind_of
from masis.schema.screening import Abstract
from masis.screening.sources.publication import RETRACTED_TYPE
from masis.screening.sources.pubmed_xml import read_articles
from masis.screening.sources.records import abstract_of, validate_abstract, year_of

# Abstracts as JSON or rows of a table: ``{"id", "title", "text", "year"?, "journal"?, "authors"?, "doi"?, ...}``.
#
# What other tools call the fields is understood (``abstract``, ``pub_year``); keys that are no field are kept. A record
# without an id gets one from its PubMed id, its DOI or its title.

_ALSO_CALLED = {
    "text": ("abstract", "abstract_text", "summary"),
    "title": ("article_title", "name", "primary_title"),
    "year": ("pub_year", "publication_year", "published_year", "pub_date", "date"),
    "journal": ("journal_title", "venue", "source_title", "journal_book"),
    "authors": ("author",),
    "pmid": ("pubmed_id",),
    "url": ("link", "urls"),
    "keywords": ("keyword", "author_keywords", "mesh_terms"),
    "publication_types": ("publication_type", "pub_types", "pubtype", "document_type", "article_type", "type_of_work"),
}
_TEXTS = frozenset({"id", "title", "text", "journal", "doi", "pmid", "url"})
_BETWEEN = {"authors": re.compile(r";|\|"), "keywords": re.compile(r"[;|]"), "publication_types": re.compile(r"[;|]")}


def read_fields(data: dict[str, Any], source: str) -> Abstract:
    """Return the fields of a record as an abstract, whatever they are called. Raises InputError naming one."""
    fields = _named(data)
    for name in _TEXTS & fields.keys():
        fields[name] = _text(fields[name], name)
    for name, between in _BETWEEN.items():
        if name in fields:
            fields[name] = _list(fields[name], name, between)
    if (given := fields.get("year")) is not None:
        if not isinstance(given, str | int) or isinstance(given, bool):
            raise InputError(f"is {kind_of(given)}, must be a year", cure='Write it as "year": 2019.', field="year")
        fields["year"] = year_of(str(given))
        if fields["year"] is None and given:  # "in press": the record is kept all the same
            fields["year_as_given"] = given
    title, text, doi, pmid, year = (str(fields.get(name) or "") for name in ("title", "text", "doi", "pmid", "year"))
    derived = abstract_of(title=title, text=text, doi=doi, pmid=pmid, year=year)
    stated = {key: value for key, value in fields.items() if value not in (None, "")}
    return validate_abstract({"id": derived.id, "source": source} | stated)


def _named(data: dict[str, Any]) -> dict[str, Any]:
    """Return the record with our names for its fields."""
    named = dict(data)
    for name, others in _ALSO_CALLED.items():
        found = next((other for other in others if other in named), None)
        if name not in named and found is not None:
            named[name] = named.pop(found)
    kind = named.get("type")  # of any program: kept under its name too
    if "publication_types" not in named and isinstance(kind, str):
        named["publication_types"] = kind
    if named.get("is_retracted") in (True, "true", "True"):
        named["publication_types"] = [RETRACTED_TYPE]
    return named


def _text(value: Any, name: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and name in ("id", "pmid"):
        return str(value)
    raise InputError(f"is {kind_of(value)}, must be text", cure="Put it in quotes.", field=name)


def _list(value: Any, name: str, between: re.Pattern[str]) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return [part.strip() for part in between.split(value) if part.strip()]
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return [item.strip() for item in value if item.strip()]
    raise InputError(f"is {kind_of(value)}, must be a list of texts", cure='Write it as ["...", "..."].', field=name)


AbstractFormat = Literal["jsonl", "ris", "bibtex", "pubmed_xml", "medline", "csv"]
FORMATS: tuple[AbstractFormat, ...] = get_args(AbstractFormat)

_LOOKED_AT = 8192
_A_TITLE = re.compile(rb"[^\n]{0,4000}?(?<![a-z0-9])(?:title|article title)\"?[ \t]{0,10}(?=[,;\t\r\n])", re.IGNORECASE)
"""A first line with a column that is called title."""
_NO_NAME = re.compile(r"[^a-z0-9]+")
_SIGNS: tuple[tuple[AbstractFormat, re.Pattern[bytes]], ...] = (
    ("jsonl", re.compile(rb"\s{0,1000}[\[{]")),
    ("pubmed_xml", re.compile(rb"\s{0,1000}<(?:\?xml|!|Pubmed)")),
    ("medline", re.compile(rb"(?:\A|.*?\n)PMID- ?\d", re.DOTALL)),
    ("ris", re.compile(rb"(?:\A|.*?\n)[ \t]{0,100}TY  -", re.DOTALL)),
    ("csv", _A_TITLE),
    ("bibtex", re.compile(rb"(?:\A|.*?\n)[ \t]{0,100}@[ \t]{0,10}[a-zA-Z]{1,40}[ \t]{0,10}[{(]", re.DOTALL)),
)
_CURE = "Give JSON Lines, RIS, BibTeX, PubMed XML, MEDLINE text or CSV, or name the format."


def read_abstracts(
    source: Path | BinaryIO, *, name: str | None = None, form: AbstractFormat | None = None
) -> Iterator[Abstract | InputError]:
    """Return an iterator over the abstracts of a file, with an InputError for every record that can't be read.

    Args:
        source: A path, or a stream of bytes.
        name: How errors and the records' ``source`` name it.
        form: The format; recognised by the first lines where None.

    Raises:
        InputError: The file can't be opened (at once), is in none of the formats or holds no abstract (on reading).

    """
    if isinstance(source, Path):
        return _read(open_lines(source), name or str(source), form, close=True)
    return _read(source, name or "stdin", form)


def _read(
    stream: BinaryIO, name: str, form: AbstractFormat | None, *, close: bool = False
) -> Iterator[Abstract | InputError]:
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", stream))
    found = False
    try:
        for each in _records(buffered, form or detect(buffered.peek(_LOOKED_AT)[:_LOOKED_AT]), Path(name).name):
            found = True
            yield each.at(file=name) if isinstance(each, InputError) else each
    except InputError as error:
        raise error.at(file=name) from error
    except OSError as error:
        raise InputError(f"can't be read ({error.strerror})", cure="Check the file.", file=name) from error
    finally:
        if buffered is not stream:
            buffered.detach()  # else it would close the caller's stream with itself
        if close:
            stream.close()
    if not found:
        raise InputError("holds no abstract", cure=_CURE, file=name)


def _records(stream: BinaryIO, form: AbstractFormat, source: str) -> Iterator[Abstract | InputError]:
    match form:
        case "pubmed_xml":
            yield from (article.found for article in read_articles(stream, source=source))
        case "ris":
            yield from read_ris(stream, source=source)
        case "bibtex":
            yield from read_bibtex(stream, source=source)
        case "medline":
            yield from read_medline(stream, source=source)
        case _:
            for row in read_rows(stream, name=f"abstracts.{form}"):
                try:
                    if isinstance(row.value, InputError):
                        raise row.value
                    yield read_fields(_cells(row.value) if row.table else row.value, source)
                except InputError as error:
                    yield error.at(line=row.number)


def _cells(row: dict[str, Any]) -> dict[str, Any]:
    """Return the cells of a table that hold anything, under the plain form of their columns' names."""
    return {_NO_NAME.sub("_", name.lower()).strip("_"): cell.strip() for name, cell in row.items() if cell.strip()}


def detect(beginning: bytes) -> AbstractFormat:
    """Return the format whose sign the first lines show. Raises InputError where there is none."""
    refuse_other_formats(beginning)
    shown = beginning.removeprefix(b"\xef\xbb\xbf")
    for form, sign in _SIGNS:
        if sign.match(shown):
            return form
    raise InputError("is in no format of abstracts that is known here", cure=_CURE)
