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
from masis.datasets.readers.abstracts.fields import read_fields
from masis.datasets.readers.abstracts.medline import read_medline
from masis.datasets.readers.abstracts.ris import read_ris
from masis.datasets.readers.lines import open_lines, refuse_other_formats
from masis.datasets.rows import read_rows
from masis.errors import InputError
from masis.schema.screening import Abstract
from masis.screening.sources.pubmed_xml import read_articles

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
