"""Which records are the same study reported twice: by DOI, by PubMed id, by title.

Databases spell the same record differently, so a DOI is compared without resolver and case, a title without case,
accents and punctuation. Two records with different PubMed ids, DOIs or years are not the same however alike their
titles (an erratum and a reprint have ids of their own), and a short title ("Editorial") says nothing.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, NamedTuple

from masis.schema.screening import Abstract

SHORTEST_DISTINCTIVE_TITLE = 24
"""Letters and digits a title needs for its likeness to count."""

_DOI = re.compile(r"10\.\d{4,9}/\S+")
_DIGITS = re.compile(r"\d{1,12}")

MatchedBy = Literal["doi", "pmid", "title"]


class RecordKeys(NamedTuple):
    """The identifiers of a record, normalised; None for one that is missing or too short to identify it."""

    doi: str | None
    pmid: str | None
    title: str | None
    year: int | None


def record_keys(abstract: Abstract) -> RecordKeys:
    """Return the identifiers of an abstract."""
    return RecordKeys(
        normal_doi(abstract.doi or ""), normal_pmid(abstract.pmid or ""), title_key(abstract.title), abstract.year
    )


def matched_by(one: RecordKeys, other: RecordKeys) -> MatchedBy | None:
    """Return the identifier by which two records are the same; None where they aren't."""
    if one.doi is not None and one.doi == other.doi:
        return "doi"
    if one.pmid is not None and one.pmid == other.pmid:
        return "pmid"
    if one.title is None or one.title != other.title:
        return None
    apart = (_differ(one.doi, other.doi), _differ(one.pmid, other.pmid), _differ(one.year, other.year))
    return None if any(apart) else "title"


def _differ(one: str | int | None, other: str | int | None) -> bool:
    return one is not None and other is not None and one != other


def normal_doi(text: str) -> str | None:
    """``https://doi.org/10.1000/ABC.`` as ``10.1000/abc``; None where there is no DOI in it."""
    found = _DOI.search(text[:2000])
    return found.group().rstrip(".,;)]}>\"'").casefold() if found else None


def normal_pmid(text: str) -> str | None:
    """``PMID: 0123`` as ``123``; None where there is no number in it."""
    found = _DIGITS.search(text[:200])
    return (found.group().lstrip("0") or None) if found else None


def title_key(title: str) -> str | None:
    """Return a title without case, accents, blanks and punctuation; None where it is too short to identify the
    record.
    """
    plain = unicodedata.normalize("NFKD", title[:2000]).casefold()
    key = "".join(filter(str.isalnum, plain))
    return key if len(key) >= SHORTEST_DISTINCTIVE_TITLE else None
