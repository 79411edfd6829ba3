"""PubMed as a source: ``esearch`` finds the records, ``efetch`` brings them as XML.

The words of a query are put together with AND and left to PubMed's own mapping to subject headings, ranked by
relevance; where fewer than ``FEWEST`` records hold all of them, any of them will do. Which of the two it is depends on
the query alone, so pages of one search follow each other.
"""

from __future__ import annotations

import http.client
import io
import random
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, TypeVar

from defusedxml import DefusedXmlException  # type: ignore[import-untyped]
from defusedxml import ElementTree as SafeElementTree
from pydantic import SecretStr

from masis import version
from masis.errors import InputError, RetrievalFailed, SettingsError
from masis.schema.screening import Abstract
from masis.screening.sources.pubmed_xml import read_articles
from masis.screening.sources.records import collapse_blanks
from masis.screening.sources.search_terms import search_terms
from masis.settings import Settings, secret

# Asking NCBI's E-utilities over HTTP as its rules want it: identified, paced, patient.
#
# The rules (https://www.ncbi.nlm.nih.gov/books/NBK25497/): every request names a tool and an e-mail address; at most 3
# requests a second, 10 with a key; who is told to wait waits. Requests are POSTs, so that a key stands in no address
# and no log of one; redirects are not followed, since a key goes to the configured address only.

ADDRESS = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"
TOOL = "masis-workbench"

REQUESTS_A_SECOND, REQUESTS_A_SECOND_WITH_KEY = 3, 10

TRIES = 4
"""How often a request is sent before it counts as failed; each further one waits twice as long as the one before."""

FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
"""A server that asks for a longer wait is told to the person, who can come back later."""

TIMEOUT_S, DEADLINE_S = 30.0, 120.0
"""Seconds without a byte, and seconds for a whole reply."""

MOST_BYTES = 64 * 1024 * 1024

_WORTH_TRYING_AGAIN = frozenset({408, 429, 500, 502, 503, 504})

Read = TypeVar("Read")


class Unreadable(Exception):
    """A reply that is cut off or garbled: asking again may help. The message says what is wrong with it."""


class Pace:
    """Lets requests through one by one, no sooner than the rate allows; shared by the threads of a process."""

    def __init__(
        self,
        a_second: float,
        *,
        seconds: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._interval = 1.0 / a_second
        self._seconds, self._sleep = seconds, sleep
        self._lock = threading.Lock()
        self._next = float("-inf")

    def wait(self) -> None:
        """Return when the next request may be sent."""
        with self._lock:
            now = self._seconds()
            begins = max(now, self._next)
            self._next = begins + self._interval
        if begins > now:
            self._sleep(begins - now)


_PACES: dict[tuple[str, int], Pace] = {}
_PACES_LOCK = threading.Lock()


def pace_for(address: str, *, with_key: bool) -> Pace:
    """The pace that all requests of this process to an address share."""
    a_second = REQUESTS_A_SECOND_WITH_KEY if with_key else REQUESTS_A_SECOND
    with _PACES_LOCK:
        return _PACES.setdefault((address, a_second), Pace(a_second))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **named: Any) -> None:
        """Follow none: the reply itself becomes the error."""


@dataclass(frozen=True)
class Eutils:
    """E-utilities at an address, asked by one tool for one person."""

    email: str
    tool: str = TOOL
    address: str = ADDRESS
    key: SecretStr | None = None
    timeout_s: float = TIMEOUT_S
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random
    pace: Pace | None = None
    _opener: urllib.request.OpenerDirector = field(
        default_factory=lambda: urllib.request.build_opener(_NoRedirect), repr=False
    )

    def ask(self, utility: str, parameters: Mapping[str, str], read: Callable[[bytes], Read]) -> Read:
        """What ``read`` makes of the reply of a utility such as ``esearch``.

        Tried again where that can help; ``read`` raises Unreadable for a reply worth asking again. Raises
        RetrievalFailed saying what was asked, what came of it and what to do.
        """
        pace = self.pace or pace_for(self.address, with_key=self.key is not None)
        failure: RetrievalFailed | None = None
        for number in range(1, TRIES + 1):
            pace.wait()
            try:
                return read(self._post(utility, parameters))
            except urllib.error.HTTPError as error:
                with error:
                    failure = self._refused(utility, error)
                    if error.code not in _WORTH_TRYING_AGAIN:
                        raise failure from None
                    asked_for = _asked_for(error.headers.get("Retry-After"))
            except (Unreadable, http.client.HTTPException, OSError) as error:
                failure, asked_for = self._unreached(utility, error), None
            if number < TRIES:
                self._wait(number, asked_for, failure)
        raise failure or RetrievalFailed("PubMed was not asked.")

    def _post(self, utility: str, parameters: Mapping[str, str]) -> bytes:
        identified = {**parameters, "tool": self.tool, "email": self.email}
        if self.key is not None:
            identified["api_key"] = self.key.get_secret_value()
        request = urllib.request.Request(  # noqa: S310 (the scheme was looked at: checked_address)
            f"{self.address.rstrip('/')}/{utility}.fcgi",
            data=urllib.parse.urlencode(identified).encode(),
            headers={"User-Agent": f"{self.tool}/{version.APP}", "Accept": "application/xml"},
        )
        begun = time.monotonic()
        received = bytearray()
        with self._opener.open(request, timeout=self.timeout_s) as reply:
            while part := reply.read(65536):
                received += part
                if len(received) > MOST_BYTES:
                    raise Unreadable(f"more than {MOST_BYTES // 2**20} MiB came")
                if time.monotonic() - begun > DEADLINE_S:
                    raise Unreadable(f"it was not complete after {DEADLINE_S:g} s")
            if reply.length:
                raise Unreadable(f"it broke off with {reply.length} bytes to come")
        return bytes(received)

    def _wait(self, number: int, asked_for: float | None, failure: RetrievalFailed) -> None:
        if asked_for is not None and asked_for > LONGEST_WAIT_S:
            raise RetrievalFailed(f"{failure} It asks to be left alone for {asked_for:.0f} s.") from failure
        backoff = FIRST_WAIT_S * 2 ** (number - 1) * (1 + self.jitter() / 2)
        self.sleep(backoff if asked_for is None else max(asked_for, 0.0))

    def _refused(self, utility: str, error: urllib.error.HTTPError) -> RetrievalFailed:
        """What a status means. The body is not shown: it may repeat the key."""
        if error.code == 429:
            cure = "Too many requests came from here: wait a minute" + (
                "." if self.key else ", or set NCBI_API_KEY, which allows ten a second."
            )
        elif error.code in (400, 401, 403) and self.key is not None:
            cure = "Check NCBI_API_KEY: it may be wrong or withdrawn."
        elif error.code >= 500:
            cure = "The service is in trouble: try again later, or search a local corpus."
        else:
            cure = "Check screening_pubmed_address."
        return RetrievalFailed(f"PubMed ({self.address}, {utility}) answered {error.code}. {cure}")

    def _unreached(self, utility: str, error: Exception) -> RetrievalFailed:
        if isinstance(error, Unreadable):
            return RetrievalFailed(f"PubMed ({self.address}, {utility}) sent a reply that can't be read: {error}.")
        reason = getattr(error, "reason", None) or error
        said = f"{type(reason).__name__}: {reason}" if isinstance(reason, BaseException) else str(reason)
        cure = "Check the network, or search a local corpus."
        return RetrievalFailed(f"PubMed ({self.address}, {utility}) can't be reached ({said[:200]}). {cure}")


def _asked_for(retry_after: str | None) -> float | None:
    """Seconds to wait as a ``Retry-After`` header asks, in seconds or as a date; None where it says neither."""
    if retry_after is None:
        return None
    said = retry_after.strip()[:40]
    if said.isascii() and said.isdigit():
        return float(said)
    try:
        until = parsedate_to_datetime(said)
    except ValueError:
        return None
    return (until.astimezone(UTC) - datetime.now(UTC)).total_seconds()


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
            f"PubMed could not search: {collapse_blanks(said)[:200]}. Ask in other words, or try again later."
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
