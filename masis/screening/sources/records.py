"""Builds an abstract from the fields of any database: blanks collapsed, identifiers normalised, an id derived.

The id is the PubMed id where there is one, else the DOI, else a digest of title and year, so that the same record read
twice has the same id wherever it came from.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from masis.errors import InputError
from masis.schema.screening import Abstract
from masis.screening.sources.duplicates import normal_doi, normal_pmid

_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")
_DIGEST_DIGITS = 12


def abstract_of(
    *,
    title: str = "",
    text: str = "",
    year: str = "",
    journal: str = "",
    authors: Iterable[str] = (),
    doi: str = "",
    pmid: str = "",
    url: str = "",
    keywords: Iterable[str] = (),
    publication_types: Iterable[str] = (),
    notice_about: Iterable[str] = (),
    source: str | None = None,
    record: dict[str, Any] | None = None,
) -> Abstract:
    """Return the abstract these fields make; other fields of the record are stored under ``record``.

    Raises InputError (without a place) where there is neither a title nor an abstract, or text that can't be stored.
    """
    title, text = collapse_blanks(title), collapse_lines(text)
    if not (title or text):
        raise InputError("has neither a title nor an abstract", cure="Add one of them, or remove the record.")
    known_doi, known_pmid = normal_doi(doi), normal_pmid(pmid)
    fields: dict[str, Any] = {
        "id": _id(known_pmid, known_doi, f"{title}\n{year_of(year)}\n{'' if title else text}"),
        "title": title,
        "text": text,
        "year": year_of(year),
        "journal": collapse_blanks(journal) or None,
        "authors": tuple(_each_once(authors)),
        "doi": known_doi,
        "pmid": known_pmid,
        "url": url.strip() or None,
        "keywords": tuple(_each_once(keywords)),
        "publication_types": tuple(_each_once(publication_types)),
        "notice_about": tuple(_each_once(notice_about)),
        "source": source,
    }
    return validate_abstract(fields | ({"record": record} if record else {}))


def validate_abstract(fields: dict[str, Any]) -> Abstract:
    """Return the fields as an abstract. Raises InputError naming the first that can't be stored."""
    try:
        return Abstract.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or None
        problem = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
        raise InputError(problem, cure="Correct it, or remove the record.", field=place) from error


def collapse_blanks(text: str) -> str:
    """Return the text with every run of blanks and line breaks as one blank."""
    return " ".join(text.split())


def collapse_lines(text: str) -> str:
    """Return the same line by line, without blank lines: sections of an abstract stay apart."""
    return "\n".join(filter(None, map(collapse_blanks, text.splitlines())))


def year_of(text: str) -> int | None:
    """Return the first year in a date, however it is written: ``2019 Jan-Feb``, ``2019/01/05/``."""
    found = _YEAR.search(text[:200])
    return int(found.group()) if found else None


def _each_once(texts: Iterable[str]) -> Iterable[str]:
    return dict.fromkeys(filter(None, map(collapse_blanks, texts)))


def _id(pmid: str | None, doi: str | None, content: str) -> str:
    if pmid is not None:
        return f"pmid-{pmid}"
    if doi is not None and len(doi) <= 200:
        return f"doi-{doi}"
    return f"record-{hashlib.sha256(content.encode(errors='replace')).hexdigest()[:_DIGEST_DIGITS]}"
