"""PubMed as a source: ``esearch`` finds the records, ``efetch`` brings them as XML.

The words of a query are put together with AND and left to PubMed's own mapping to subject headings,
ranked by relevance; where fewer than ``FEWEST`` records hold all of them, any of them will do.
Which of the two it is depends on the query alone, so pages of one search follow each other.

NCBI is asked as its rules want it (https://www.ncbi.nlm.nih.gov/books/NBK25497/): every request
names a tool and an e-mail address; at most 3 requests a second, 10 with a key; a client that is
asked to wait waits. Requests are POSTs, so that a key stands in no address and no log of one;
redirects are not followed, since a key goes to the configured address only.
"""

from __future__ import annotations

import io
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

import httpx2
from defusedxml import DefusedXmlException  # type: ignore[import-untyped]
from defusedxml import ElementTree as SafeElementTree
from pydantic import SecretStr

from masis import version
from masis.audit.control.run_control import CancelToken
from masis.errors import InputError, RetrievalFailed, SettingsError
from masis.llm.client.retry import Again, NoTimeToRetry, RetryCancelled, RetryPolicy, retry_after
from masis.schema.screening import Abstract, Design
from masis.screening.sources.pubmed_xml import read_articles
from masis.screening.sources.records import collapse_blanks
from masis.screening.sources.retrievers import search_terms
from masis.settings import Settings, secret

ADDRESS = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"
TOOL = "masis-workbench"
REQUESTS_A_SECOND, REQUESTS_A_SECOND_WITH_KEY = 3, 10
RETRY = RetryPolicy(retries=3, base_s=2.0, cap_s=8.0)
LONGEST_WAIT_S = 60.0
"""A longer wait that the server asks for is reported to the person, who can come back later."""
TIMEOUT_S, DEADLINE_S = 30.0, 120.0
"""Seconds without a byte, and seconds for a whole reply."""
MOST_BYTES = 64 * 1024 * 1024
FEWEST = 20
"""Records that must hold every word of a query; with fewer, records that hold any word are
searched.
"""
FETCHED_AT_ONCE = 200
MOST_REACHABLE = 9_999
"""How far down a result list esearch reaches for PubMed."""
_WORTH_TRYING_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_LOCAL = ("127.0.0.1", "localhost", "::1")

Read = TypeVar("Read")


class UnreadablePubMedReply(Exception):
    """A reply that is cut off or garbled: asking again may help. The message says what is wrong
    with it.
    """


class Pace:
    """Lets requests through one by one, no sooner than the rate allows; shared by the threads of a
    process.
    """

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


def pace_for(address: str, *, with_key: bool) -> Pace:
    """Return the pace that all requests of this process to an address share."""
    a_second = REQUESTS_A_SECOND_WITH_KEY if with_key else REQUESTS_A_SECOND
    return _PACES.setdefault((address, a_second), Pace(a_second))


class _Filter(NamedTuple):
    """How PubMed is asked for a design: a term of ours with its fields, and the words of a query
    that it replaces.
    """

    term: str
    words: frozenset[str]


DESIGN_FILTERS: dict[Design, _Filter] = {
    "randomised_trial": _Filter(
        "randomized controlled trial[pt]",
        frozenset({"randomised", "randomized", "controlled", "trial"}),
    ),
    "systematic_review": _Filter(
        "systematic review[pt] OR meta-analysis[pt]",
        frozenset({"systematic", "review", "meta-analysis"}),
    ),
    "cohort_study": _Filter("cohort studies[mh]", frozenset({"prospective", "cohort", "study"})),
}
"""Publication types and MeSH headings of PubMed."""


def _http_client() -> httpx2.Client:
    """Return a client that follows no redirect and keeps no connection: a search asks a few times a
    second at most.
    """
    return httpx2.Client(follow_redirects=False, limits=httpx2.Limits(max_keepalive_connections=0))


@dataclass(frozen=True)
class PubMed:
    """Searches PubMed at an address, for one person; needs the network.

    ``pause`` waits between two tries, and returns False if the search was cancelled meanwhile.
    """

    email: str
    address: str = ADDRESS
    key: SecretStr | None = None
    pause: Callable[[float], object] = time.sleep
    pace: Pace | None = None
    name: str = "pubmed"
    _client: httpx2.Client = field(default_factory=_http_client, repr=False)

    def search(self, query: str, limit: int, offset: int = 0) -> tuple[Abstract, ...]:
        """Return at most ``limit`` abstracts from ``offset`` on, best first by PubMed's relevance.

        Raises RetrievalFailed.
        """
        return self.search_filtered(query, limit, offset)

    def search_filtered(
        self,
        query: str,
        limit: int,
        offset: int = 0,
        *,
        design: Design | None = None,
        since: int | None = None,
    ) -> tuple[Abstract, ...]:
        """Return the same among records of a design (by publication type or MeSH), from a year on.

        Raises RetrievalFailed.
        """
        terms = search_terms(query)
        filtered = DESIGN_FILTERS.get(design) if design else None
        if filtered is not None:  # what the field asks for need not stand in the words
            terms = tuple(term for term in terms if term not in filtered.words) or terms
        limit = min(limit, MOST_REACHABLE - offset)
        if not terms or limit < 1:
            return ()
        ids: Sequence[str] = ()
        for words in dict.fromkeys((" AND ".join(terms), " OR ".join(terms))):
            asked = {
                "db": "pubmed",
                "term": words,
                "sort": "relevance",
                "retstart": str(offset),
                "retmax": str(limit),
            }
            if filtered is not None:
                asked["term"] = f"({words}) AND ({filtered.term})"
            if since is not None:  # esearch takes both ends or none
                asked |= {"datetype": "pdat", "mindate": str(since), "maxdate": "3000"}
            total, ids = self._ask("esearch", asked, _read_hits)
            if total >= FEWEST:
                break
        found: dict[str, Abstract] = {}
        for start in range(0, len(ids), FETCHED_AT_ONCE):
            batch = ",".join(ids[start : start + FETCHED_AT_ONCE])
            asked = {"db": "pubmed", "retmode": "xml", "rettype": "abstract", "id": batch}
            found |= self._ask("efetch", asked, _read_articles)
        return tuple(found[pmid] for pmid in ids if pmid in found)

    def _ask(
        self, utility: str, parameters: Mapping[str, str], read: Callable[[bytes], Read]
    ) -> Read:
        """Return what ``read`` makes of the reply of a utility, tried again where that can help.

        Raises RetrievalFailed saying what was asked, what came of it and what to do.
        """
        pace = self.pace or pace_for(self.address, with_key=self.key is not None)

        def attempt() -> Read:
            pace.wait()
            return read(self._post(utility, parameters))

        try:
            return RETRY.run(
                attempt, _retry_advice, left_s=lambda: LONGEST_WAIT_S, pause=self.pause
            )
        except NoTimeToRetry as stop:
            waits = f"It asks to be left alone for {stop.wait_s:.0f} s."
            raise RetrievalFailed(f"{self._failure(utility, stop.__cause__)} {waits}") from None
        except RetryCancelled:
            raise RetrievalFailed(
                "The search of PubMed was stopped while it waited to try again."
            ) from None
        except (UnreadablePubMedReply, httpx2.HTTPError, OSError) as error:
            raise RetrievalFailed(self._failure(utility, error)) from error

    def _post(self, utility: str, parameters: Mapping[str, str]) -> bytes:
        """Return the whole reply, within its size and its time. Raises Unreadable."""
        identified = {**parameters, "tool": TOOL, "email": self.email}
        if self.key is not None:
            identified["api_key"] = self.key.get_secret_value()
        # Not compressed, so that the limit of size holds for what is read and for what is unpacked
        # alike.
        headers = {
            "User-Agent": f"{TOOL}/{version.APP}",
            "Accept": "application/xml",
            "Accept-Encoding": "identity",
        }
        url = f"{self.address.rstrip('/')}/{utility}.fcgi"
        started, received = time.monotonic(), bytearray()
        with self._client.stream(
            "POST", url, data=identified, headers=headers, timeout=TIMEOUT_S
        ) as reply:
            reply.raise_for_status()
            try:
                for part in reply.iter_bytes():
                    received += part
                    if len(received) > MOST_BYTES:
                        raise UnreadablePubMedReply(f"more than {MOST_BYTES // 2**20} MiB came")
                    if time.monotonic() - started > DEADLINE_S:
                        raise UnreadablePubMedReply(f"it was not complete after {DEADLINE_S:g} s")
            except httpx2.RemoteProtocolError as error:
                raise UnreadablePubMedReply("it broke off before its end") from error
        return bytes(received)

    def _failure(self, utility: str, error: BaseException | None) -> str:
        """Return what came of a request and what to do. A reply's body is not shown: it may repeat
        the key.
        """
        asked = f"PubMed ({self.address}, {utility})"
        if isinstance(error, UnreadablePubMedReply):
            return f"{asked} sent a reply that can't be read: {error}."
        if not isinstance(error, httpx2.HTTPStatusError):
            reason = f"{type(error).__name__}: {error}"[:200]
            return (
                f"{asked} can't be reached ({reason}). Check the network, or search a local corpus."
            )
        status, hint = error.response.status_code, "Check screening_pubmed_address."
        if status == 429:
            more = "." if self.key else ", or set NCBI_API_KEY, which allows ten a second."
            hint = f"Too many requests came from here: wait a minute{more}"
        elif status in (400, 401, 403) and self.key is not None:
            hint = "Check NCBI_API_KEY: it may be wrong or withdrawn."
        elif status >= 500:
            hint = "The service is in trouble: try again later, or search a local corpus."
        return f"{asked} answered {status}. {hint}"


def _retry_advice(error: BaseException) -> Again | None:
    """Return whether asking once more may help."""
    if isinstance(error, httpx2.HTTPStatusError):
        wait = retry_after(error.response.headers)
        return Again(wait) if error.response.status_code in _WORTH_TRYING_AGAIN else None
    return (
        Again() if isinstance(error, UnreadablePubMedReply | httpx2.HTTPError | OSError) else None
    )


def pubmed_of(settings: Settings, cancellation: CancelToken | None = None) -> PubMed:
    """PubMed as the settings say; ``cancellation`` ends its waits.

    The key ``NCBI_API_KEY`` goes to NCBI's own address only. Raises SettingsError.
    """
    email = settings.screening_pubmed_email.strip()
    if "@" not in email or len(email.split()) != 1:
        raise SettingsError(
            "PubMed asks who is asking: set screening_pubmed_email (MASIS_SCREENING_PUBMED_EMAIL)"
            " to your address."
        )
    given = settings.screening_pubmed_address.strip()
    address, parts = given.rstrip("/"), urlsplit(given)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOCAL):
        raise SettingsError(
            f"screening_pubmed_address is {given[:100]!r}, must begin with https://."
        )
    if not parts.hostname or parts.query or parts.fragment or parts.username:
        raise SettingsError(
            f"screening_pubmed_address is {given[:100]!r}, must be an address such as {ADDRESS}."
        )
    key = secret("NCBI_API_KEY") if address == ADDRESS else None
    return PubMed(email, address, key, pause=(cancellation or CancelToken()).pause)


def _read_hits(reply: bytes) -> tuple[int, Sequence[str]]:
    """Return how many records esearch found in all, and the ids of one page."""
    try:
        root: ElementTree.Element = SafeElementTree.fromstring(reply, forbid_dtd=False)
    except ElementTree.ParseError as error:
        raise UnreadablePubMedReply("it is broken off or no XML") from error
    except DefusedXmlException as error:
        raise UnreadablePubMedReply("it declares entities of its own, which is refused") from error
    if root.tag != "eSearchResult":
        raise UnreadablePubMedReply(f"it is <{str(root.tag)[:60]}>, not <eSearchResult>")
    if (said := root.findtext("ERROR")) is not None:
        raise RetrievalFailed(
            f"PubMed could not search: {collapse_blanks(said)[:200]}. Ask in other words, or try"
            " again later."
        )
    count = (root.findtext("Count") or "").strip()
    if not (count.isascii() and count.isdigit()):
        raise UnreadablePubMedReply("it holds no count")
    ids = dict.fromkeys(
        pmid for each in root.iterfind("IdList/Id") if (pmid := (each.text or "").strip()).isdigit()
    )
    return int(count), tuple(ids)


def _read_articles(reply: bytes) -> dict[str, Abstract]:
    """Return the abstracts by PubMed id; records that the server can't give are left out."""
    if b"<PubmedArticleSet" not in reply[:10_000] and b"<ERROR>" in reply[:10_000]:
        raise RetrievalFailed(
            "PubMed found records and then could not bring them. Try again later."
        )
    found: dict[str, Abstract] = {}
    try:
        for article in read_articles(io.BytesIO(reply), source="pubmed"):
            if isinstance(article.found, Abstract):
                found[article.found.pmid or ""] = article.found
            elif article.found.line is not None:  # the XML breaks off
                raise UnreadablePubMedReply(article.found.problem)
    except InputError as error:
        raise UnreadablePubMedReply(error.problem) from error
    return found
