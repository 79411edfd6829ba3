"""Builds abstracts from the fields of any database, and finds records of the same study.

The id is the PubMed id if there is one, else the DOI, else a digest of title and year. So the same
record has the same id, no matter which file or database it comes from.

Databases write the same record differently, so DOIs are compared without resolver and case,
and titles without case, accents and punctuation. Two records with different PubMed ids, DOIs or
years are different even if their titles are the same (an erratum and a reprint have their own
ids). A short title ("Editorial") isn't compared, because many records share it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import ValidationError

from masis.errors import InputError
from masis.schema.screening import Abstract

# A year from 1500 to 2099 that isn't part of a longer number: "2019 Mar-Apr", "(1998)".
_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")
_DIGEST_DIGITS = 12
# The words of databases and tables for a missing abstract: "[No abstract available]" (Scopus),
# "Abstract not available" (Embase), "N/A", "null", "-".
_LONGEST_PLACEHOLDER = 80
_PLACEHOLDER = re.compile(
    r"[\s\[(<*]*(?:(?:there is |sorry,? )?no (?:abstract|summary)(?: is| was)?"
    r"(?: available| provided| found| given| supplied)?(?: for this (?:article|record|paper))?"
    r"|(?:the )?abstract (?:is |was )?(?:not|un)[ -]?(?:available|provided|found|supplied)"
    r"|n\.?\s?/?\s?a\.?|not (?:available|applicable|provided|found)|none|null|nan|nil|undefined"
    r"|missing|unknown|empty|abstract|[-–—.?_]+)[\s\])>*.!:]*",
    re.I,
)


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
    """Return an abstract with these fields, normalized; ``record`` holds all other fields.

    Raises InputError, which names no file or line, if there is neither a title nor an abstract, or
    if a text can't be stored.
    """
    title, text = collapse_whitespace(title), without_placeholder(collapse_lines(text))
    if not (title or text):
        raise InputError(
            "has neither a title nor an abstract", hint="Add one of them, or remove the record."
        )
    doi_, pmid_ = normal_doi(doi), normal_pmid(pmid)
    fields: dict[str, Any] = {
        "id": _record_id(pmid_, doi_, f"{title}\n{year_of(year)}\n{'' if title else text}"),
        "title": title,
        "text": text,
        "year": year_of(year),
        "journal": collapse_whitespace(journal) or None,
        "authors": tuple(_unique_nonempty(authors)),
        "doi": doi_,
        "pmid": pmid_,
        "url": url.strip() or None,
        "keywords": tuple(_unique_nonempty(keywords)),
        "publication_types": tuple(_unique_nonempty(publication_types)),
        "notice_about": tuple(_unique_nonempty(notice_about)),
        "source": source,
    }
    return validate_abstract(fields | ({"record": record} if record else {}))


def validate_abstract(fields: dict[str, Any]) -> Abstract:
    """Return the fields as an abstract. Raises InputError for the first invalid field."""
    try:
        return Abstract.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or None
        problem = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
        raise InputError(problem, hint="Correct it, or remove the record.", field=field) from error


def collapse_whitespace(text: str) -> str:
    """Return the text with every run of whitespace as one space."""
    return " ".join(text.split())


def collapse_lines(text: str) -> str:
    """Return the text with each line collapsed and without empty lines, so that sections remain."""
    return "\n".join(filter(None, map(collapse_whitespace, text.splitlines())))


def without_placeholder(text: str) -> str:
    """Return the text of an abstract, or nothing if it only says that there is none."""
    return "" if len(text) < _LONGEST_PLACEHOLDER and _PLACEHOLDER.fullmatch(text) else text


def year_of(text: str) -> int | None:
    """Return the first year in a date of any format: ``2019 Jan-Feb``, ``2019/01/05/``."""
    match = _YEAR.search(text[:200])
    return int(match.group()) if match else None


def _unique_nonempty(texts: Iterable[str]) -> Iterable[str]:
    return dict.fromkeys(filter(None, map(collapse_whitespace, texts)))


def _record_id(pmid: str | None, doi: str | None, content: str) -> str:
    if pmid is not None:
        return f"pmid-{pmid}"
    if doi is not None and len(doi) <= 200:
        return f"doi-{doi}"
    return f"record-{hashlib.sha256(content.encode(errors='replace')).hexdigest()[:_DIGEST_DIGITS]}"


# Finding records of the same study.

SHORTEST_DISTINCTIVE_TITLE = 24
"""Letters and digits that a title needs before it can identify a record."""

# "10.", the registrant's code and a suffix without whitespace: "10.1136/bmj.n71".
_DOI = re.compile(r"10\.\d{4,9}/\S+")
_DIGITS = re.compile(r"\d{1,12}")


class RecordKeys(NamedTuple):
    """The normalized identifiers of a record; None for a missing one and for a short title."""

    doi: str | None
    pmid: str | None
    title: str | None
    year: int | None


def record_keys(abstract: Abstract) -> RecordKeys:
    """Return the identifiers of an abstract."""
    return RecordKeys(
        normal_doi(abstract.doi or ""),
        normal_pmid(abstract.pmid or ""),
        title_key(abstract.title),
        abstract.year,
    )


def same_record(first: RecordKeys, second: RecordKeys) -> bool:
    """Return whether two records are the same, by DOI, by PubMed id or by title."""
    if any(
        left is not None and left == right
        for left, right in ((first.doi, second.doi), (first.pmid, second.pmid))
    ):
        return True
    are_different = (
        _differ(first.doi, second.doi)
        or _differ(first.pmid, second.pmid)
        or _differ(first.year, second.year)
    )
    return first.title is not None and first.title == second.title and not are_different


def _differ(first: str | int | None, second: str | int | None) -> bool:
    return first is not None and second is not None and first != second


def normal_doi(text: str) -> str | None:
    """Return ``https://doi.org/10.1000/ABC.`` as ``10.1000/abc``; None without a DOI."""
    # The pattern allows any suffix, so it also matches the punctuation that follows a DOI.
    match = _DOI.search(text[:2000])
    return match.group().rstrip(".,;)]}>\"'").casefold() if match else None


def normal_pmid(text: str) -> str | None:
    """Return ``PMID: 0123`` as ``123``; None without a number."""
    match = _DIGITS.search(text[:200])
    return (match.group().lstrip("0") or None) if match else None


def title_key(title: str) -> str | None:
    """Return a title without case, accents, whitespace and punctuation; None for a short title."""
    # NFKD separates a letter from its accent, which ``isalnum`` then drops.
    plain = unicodedata.normalize("NFKD", title[:2000]).casefold()
    key = "".join(filter(str.isalnum, plain))
    return key if len(key) >= SHORTEST_DISTINCTIVE_TITLE else None
