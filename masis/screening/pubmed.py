"""PubMed as a source: ``esearch`` finds the records, ``efetch`` brings them as XML.

The words of a query are put together with AND and left to PubMed's own mapping to subject headings, ranked by
relevance; where fewer than ``FEWEST`` records hold all of them, any of them will do. Which of the two it is depends on
the query alone, so pages of one search follow each other.
"""

from __future__ import annotations

import io
import urllib.parse
import xml.etree.ElementTree as ElementTree
from typing import NamedTuple

from defusedxml import DefusedXmlException  # type: ignore[import-untyped]
from defusedxml import ElementTree as SafeElementTree

from masis.errors import InputError, RetrievalFailed, SettingsError
from masis.schema.screening import Abstract
from masis.screening.entrez import ADDRESS, Eutils, Unreadable
from masis.screening.pubmed_xml import read_articles
from masis.screening.records import squeezed
from masis.screening.terms import search_terms
from masis.settings import Settings, secret

FEWEST = 20
"""Records that must hold every word of a query; with fewer, records that hold any word are searched."""

FETCHED_AT_ONCE = 200
MOST_REACHABLE = 9_999
"""How far down a result list esearch reaches for PubMed."""

_LOCAL = ("127.0.0.1", "localhost", "::1")


class _Hits(NamedTuple):
    """What esearch found: how many in all, the ids of one page, and where the server keeps the list."""

    total: int
    ids: tuple[str, ...]
    web_env: str
    query_key: str


class PubMed:
    """Searches PubMed; needs the network."""

    def __init__(self, eutils: Eutils) -> None:
        self._eutils = eutils

    @property
    def name(self) -> str:
        """``pubmed``."""
        return "pubmed"

    def search(self, query: str, limit: int, offset: int = 0) -> tuple[Abstract, ...]:
        """At most ``limit`` abstracts from ``offset`` on, best first by PubMed's relevance. Raises RetrievalFailed."""
        terms = search_terms(query)
        limit = min(limit, MOST_REACHABLE - offset)
        if not terms or limit < 1:
            return ()
        hits = self._find(" AND ".join(terms), limit, offset)
        if hits.total < FEWEST and len(terms) > 1:
            hits = self._find(" OR ".join(terms), limit, offset)
        found: dict[str, Abstract] = {}
        for start in range(0, len(hits.ids), FETCHED_AT_ONCE):
            found |= self._fetch(hits, start, offset)
        return tuple(found[pmid] for pmid in hits.ids if pmid in found)

    def _find(self, term: str, limit: int, offset: int) -> _Hits:
        parameters = {
            "db": "pubmed",
            "term": term,
            "retstart": str(offset),
            "retmax": str(limit),
            "sort": "relevance",
            "usehistory": "y",
        }
        return self._eutils.ask("esearch", parameters, _read_hits)

    def _fetch(self, hits: _Hits, start: int, offset: int) -> dict[str, Abstract]:
        """One batch by PubMed id: from the list that the server keeps, or by their ids where it keeps none."""
        ids = hits.ids[start : start + FETCHED_AT_ONCE]
        common = {"db": "pubmed", "retmode": "xml", "rettype": "abstract"}
        if hits.web_env and hits.query_key:
            kept = {
                "WebEnv": hits.web_env,
                "query_key": hits.query_key,
                "retstart": str(offset + start),
                "retmax": str(len(ids)),
            }
            if (found := self._eutils.ask("efetch", common | kept, _read_articles)) is not None:
                return found
        found = self._eutils.ask("efetch", common | {"id": ",".join(ids)}, _read_articles)
        if found is None:
            raise RetrievalFailed("PubMed found records and then could not bring them. Try again later.")
        return found


def pubmed_of(settings: Settings) -> PubMed:
    """PubMed as the settings say. The key ``NCBI_API_KEY`` goes to NCBI's own address only. Raises SettingsError."""
    email = settings.screening_pubmed_email.strip()
    if "@" not in email or len(email.split()) != 1:
        raise SettingsError(
            "PubMed asks who is asking: set screening_pubmed_email (MASIS_SCREENING_PUBMED_EMAIL) to your address."
        )
    address = checked_address(settings.screening_pubmed_address)
    key = secret("NCBI_API_KEY") if address == ADDRESS else None
    return PubMed(Eutils(email=email, address=address, key=key))


def checked_address(address: str) -> str:
    """The address without a slash at its end. Raises SettingsError where it is neither https nor this machine."""
    parts = urllib.parse.urlsplit(address.strip())
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOCAL):
        raise SettingsError(f"screening_pubmed_address is {address[:100]!r}, must begin with https://.")
    if not parts.hostname or parts.query or parts.fragment or parts.username:
        raise SettingsError(f"screening_pubmed_address is {address[:100]!r}, must be an address such as {ADDRESS}.")
    return address.strip().rstrip("/")


def _read_hits(reply: bytes) -> _Hits:
    root = _parsed(reply)
    if root.tag != "eSearchResult":
        raise Unreadable(f"it is <{str(root.tag)[:60]}>, not <eSearchResult>")
    if (said := root.findtext("ERROR")) is not None:
        raise RetrievalFailed(
            f"PubMed could not search: {squeezed(said)[:200]}. Ask in other words, or try again later."
        )
    count = (root.findtext("Count") or "").strip()
    if not (count.isascii() and count.isdigit()):
        raise Unreadable("it holds no count")
    ids = dict.fromkeys(pmid for each in root.iterfind("IdList/Id") if (pmid := (each.text or "").strip()).isdigit())
    return _Hits(int(count), tuple(ids), root.findtext("WebEnv") or "", root.findtext("QueryKey") or "")


def _read_articles(reply: bytes) -> dict[str, Abstract] | None:
    """The abstracts by PubMed id; None where the server no longer has the list. Records it can't give are left out."""
    if b"<PubmedArticleSet" not in reply[:10_000] and b"<ERROR>" in reply[:10_000]:
        return None
    found: dict[str, Abstract] = {}
    try:
        for article in read_articles(io.BytesIO(reply), source="pubmed"):
            if isinstance(article.found, Abstract):
                found[article.found.pmid or ""] = article.found
            elif article.found.line is not None:  # the XML breaks off
                raise Unreadable(article.found.problem)
    except InputError as error:
        raise Unreadable(error.problem) from error
    return found


def _parsed(reply: bytes) -> ElementTree.Element:
    try:
        root: ElementTree.Element = SafeElementTree.fromstring(reply, forbid_dtd=False)
    except ElementTree.ParseError as error:
        raise Unreadable("it is broken off or no XML") from error
    except DefusedXmlException as error:
        raise Unreadable("it declares entities of its own, which is refused") from error
    return root
