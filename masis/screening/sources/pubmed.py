"""Searches PubMed: ``esearch`` finds the records, ``efetch`` returns them as XML.

The words of a query are joined with AND, and PubMed maps them to subject headings and ranks the
records by relevance. If fewer than ``MIN_HITS`` records contain all the words, the words are joined
with OR. The choice depends on the query alone, so that the pages of one search are consistent.

Requests follow NCBI's rules (https://www.ncbi.nlm.nih.gov/books/NBK25497/). Each request names a
tool and an e-mail address. At most 3 are sent per second, 10 with a key, and the client waits when
the server asks it to. Requests are POSTs, so that a key doesn't end up in URLs and their logs.
Redirects aren't followed, so that a key is sent to the configured address only.
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
from masis.llm.client.retry import NoTimeToRetry, Retry, RetryCancelled, RetryPolicy, retry_after
from masis.schema.screening import Abstract, Design
from masis.screening.sources.pubmed_xml import read_articles
from masis.screening.sources.records import collapse_whitespace
from masis.screening.sources.retrievers import search_terms
from masis.settings import Settings, secret

ADDRESS = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"
TOOL = "masis-workbench"
REQUESTS_PER_SECOND, REQUESTS_PER_SECOND_WITH_KEY = 3, 10
RETRY = RetryPolicy(retries=3, base_s=2.0, cap_s=8.0)
LONGEST_WAIT_S = 60.0
"""If the server asks for a longer wait, the search fails, and the message says how long to wait."""
TIMEOUT_S, DEADLINE_S = 30.0, 120.0
"""Seconds without a byte, and seconds for a whole reply."""
MAX_BYTES = 64 * 1024 * 1024
MIN_HITS = 20
"""If fewer records contain every word of a query, records with any of the words are searched."""
FETCH_BATCH = 200
"""Ids per efetch request."""
MAX_OFFSET = 9_999
"""The records that esearch can return for one query (limit of its manual, NBK25499)."""
# Timeouts, rate limits and server errors. Other statuses would be the same on the next try.
_RETRYABLE_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_LOCAL = ("127.0.0.1", "localhost", "::1")

Read = TypeVar("Read")


class UnreadablePubMedReply(Exception):
    """A reply that is cut off or garbled, so that a retry may help. The message says why."""


class Pace:
    """Limits the rate of requests, across all threads of a process."""

    def __init__(
        self,
        per_second: float,
        *,
        seconds: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._interval = 1.0 / per_second
        self._seconds, self._sleep = seconds, sleep
        self._lock = threading.Lock()
        self._next = float("-inf")

    def wait(self) -> None:
        """Block until the next request may be sent."""
        # A thread reserves its time under the lock and sleeps outside it, so that others can
        # reserve theirs meanwhile.
        with self._lock:
            now = self._seconds()
            start = max(now, self._next)
            self._next = start + self._interval
        if start > now:
            self._sleep(start - now)


_PACES: dict[tuple[str, int], Pace] = {}


def pace_for(address: str, *, with_key: bool) -> Pace:
    """Return the pace that all requests of this process to an address share."""
    per_second = REQUESTS_PER_SECOND_WITH_KEY if with_key else REQUESTS_PER_SECOND
    # ``setdefault`` is atomic, so that two threads get the same pace.
    return _PACES.setdefault((address, per_second), Pace(per_second))


class _Filter(NamedTuple):
    """PubMed's search term for a design, and the words of a query that the term makes redundant."""

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
    """Return a client that doesn't follow redirects and doesn't keep connections open."""
    # A search sends a few requests per second at most, so an open connection would save little.
    return httpx2.Client(follow_redirects=False, limits=httpx2.Limits(max_keepalive_connections=0))


@dataclass(frozen=True)
class PubMed:
    """Searches PubMed over the network on behalf of the person with this e-mail address.

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
        """Return at most ``limit`` abstracts from ``offset`` on, ordered by PubMed's relevance.

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
        """Search records of one design (by publication type or MeSH), published in or after a year.

        Raises RetrievalFailed.
        """
        terms = search_terms(query)
        design_filter = DESIGN_FILTERS.get(design) if design else None
        if design_filter is not None:  # The filter's field covers these words already.
            terms = tuple(term for term in terms if term not in design_filter.words) or terms
        limit = min(limit, MAX_OFFSET - offset)
        if not terms or limit < 1:
            return ()
        ids: Sequence[str] = ()
        for words in dict.fromkeys((" AND ".join(terms), " OR ".join(terms))):
            parameters = {
                "db": "pubmed",
                "term": words,
                "sort": "relevance",
                "retstart": str(offset),
                "retmax": str(limit),
            }
            if design_filter is not None:
                parameters["term"] = f"({words}) AND ({design_filter.term})"
            if since is not None:  # esearch requires mindate and maxdate together.
                parameters |= {"datetype": "pdat", "mindate": str(since), "maxdate": "3000"}
            total, ids = self._ask("esearch", parameters, _read_hits)
            if total >= MIN_HITS:
                break
        abstracts: dict[str, Abstract] = {}
        for start in range(0, len(ids), FETCH_BATCH):
            batch = ",".join(ids[start : start + FETCH_BATCH])
            parameters = {"db": "pubmed", "retmode": "xml", "rettype": "abstract", "id": batch}
            abstracts |= self._ask("efetch", parameters, _read_articles)
        return tuple(abstracts[pmid] for pmid in ids if pmid in abstracts)

    def _ask(
        self, utility: str, parameters: Mapping[str, str], read: Callable[[bytes], Read]
    ) -> Read:
        """Send a request to a utility, with retries, and return the reply as parsed by ``read``.

        Raises RetrievalFailed, which names the request, the error and a remedy.
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
            wait = f"It asks you to wait {stop.wait_s:.0f} s."
            raise RetrievalFailed(f"{self._failure(utility, stop.__cause__)} {wait}") from None
        except RetryCancelled:
            raise RetrievalFailed(
                "The search of PubMed was cancelled while it waited to retry."
            ) from None
        except (UnreadablePubMedReply, httpx2.HTTPError, OSError) as error:
            raise RetrievalFailed(self._failure(utility, error)) from error

    def _post(self, utility: str, parameters: Mapping[str, str]) -> bytes:
        """Return the whole reply, or raise UnreadablePubMedReply if it is too large or too slow."""
        form = {**parameters, "tool": TOOL, "email": self.email}
        if self.key is not None:
            form["api_key"] = self.key.get_secret_value()
        # Ask for an uncompressed reply: a small compressed one could unpack to more than the limit.
        headers = {
            "User-Agent": f"{TOOL}/{version.APP}",
            "Accept": "application/xml",
            "Accept-Encoding": "identity",
        }
        url = f"{self.address.rstrip('/')}/{utility}.fcgi"
        started, received = time.monotonic(), bytearray()
        with self._client.stream(
            "POST", url, data=form, headers=headers, timeout=TIMEOUT_S
        ) as reply:
            reply.raise_for_status()
            try:
                for part in reply.iter_bytes():
                    received += part
                    if len(received) > MAX_BYTES:
                        raise UnreadablePubMedReply(f"more than {MAX_BYTES // 2**20} MiB came")
                    # The client's timeout counts from the last byte, so a slow reply never times
                    # out.
                    if time.monotonic() - started > DEADLINE_S:
                        raise UnreadablePubMedReply(f"it was not complete after {DEADLINE_S:g} s")
            except httpx2.RemoteProtocolError as error:
                raise UnreadablePubMedReply("it broke off before its end") from error
        return bytes(received)

    def _failure(self, utility: str, error: BaseException | None) -> str:
        """Return a message that says why a request failed and what to do."""
        # The body of the reply isn't shown, since it may repeat the key.
        service = f"PubMed ({self.address}, {utility})"
        if isinstance(error, UnreadablePubMedReply):
            return f"{service} sent a reply that can't be read: {error}."
        if not isinstance(error, httpx2.HTTPStatusError):
            reason = f"{type(error).__name__}: {error}"[:200]
            return (
                f"{service} can't be reached ({reason}). Check the network, or search a local"
                " corpus."
            )
        status, hint = error.response.status_code, "Check screening_pubmed_address."
        if status == 429:
            advice = "." if self.key else ", or set NCBI_API_KEY, which allows ten a second."
            hint = f"Too many requests came from your address. Wait a minute{advice}"
        elif status in (400, 401, 403) and self.key is not None:
            hint = "Check NCBI_API_KEY, which may be wrong or revoked."
        elif status >= 500:
            hint = "The service has a problem. Try again later, or search a local corpus."
        return f"{service} answered {status}. {hint}"


def _retry_advice(error: BaseException) -> Retry | None:
    """Return when to retry after an error, or None if a retry can't help."""
    if isinstance(error, httpx2.HTTPStatusError):
        wait = retry_after(error.response.headers)
        return Retry(wait) if error.response.status_code in _RETRYABLE_STATUSES else None
    return (
        Retry() if isinstance(error, UnreadablePubMedReply | httpx2.HTTPError | OSError) else None
    )


def pubmed_of(settings: Settings, cancellation: CancelToken | None = None) -> PubMed:
    """Return a PubMed source with the address and e-mail of the settings.

    ``cancellation`` ends its waits. The key ``NCBI_API_KEY`` is sent to NCBI's own address only.
    Raises SettingsError.
    """
    email = settings.screening_pubmed_email.strip()
    if "@" not in email or len(email.split()) != 1:
        raise SettingsError(
            "PubMed requires an e-mail address. Set screening_pubmed_email"
            " (MASIS_SCREENING_PUBMED_EMAIL) to yours."
        )
    configured = settings.screening_pubmed_address.strip()
    address, parts = configured.rstrip("/"), urlsplit(configured)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOCAL):
        raise SettingsError(
            f"screening_pubmed_address is {configured[:100]!r}, but must begin with https://."
        )
    if not parts.hostname or parts.query or parts.fragment or parts.username:
        raise SettingsError(
            f"screening_pubmed_address is {configured[:100]!r}, but must be a URL such as"
            f" {ADDRESS}."
        )
    key = secret("NCBI_API_KEY") if address == ADDRESS else None
    return PubMed(email, address, key, pause=(cancellation or CancelToken()).pause)


def _read_hits(reply: bytes) -> tuple[int, Sequence[str]]:
    """Return how many records esearch found in all, and the ids of one page."""
    # NCBI's replies name a DTD, so it can't be forbidden; defusedxml still refuses entities.
    try:
        root: ElementTree.Element = SafeElementTree.fromstring(reply, forbid_dtd=False)
    except ElementTree.ParseError as error:
        raise UnreadablePubMedReply("it is incomplete or not XML") from error
    except DefusedXmlException as error:
        raise UnreadablePubMedReply("it declares entities, which aren't allowed") from error
    if root.tag != "eSearchResult":
        raise UnreadablePubMedReply(f"it is <{str(root.tag)[:60]}>, not <eSearchResult>")
    if (message := root.findtext("ERROR")) is not None:
        raise RetrievalFailed(
            f"PubMed couldn't search: {collapse_whitespace(message)[:200]}. Rephrase the question,"
            " or try again later."
        )
    count = (root.findtext("Count") or "").strip()
    if not (count.isascii() and count.isdigit()):
        raise UnreadablePubMedReply("it has no count")
    ids = dict.fromkeys(
        pmid
        for element in root.iterfind("IdList/Id")
        if (pmid := (element.text or "").strip()).isdigit()
    )
    return int(count), tuple(ids)


def _read_articles(reply: bytes) -> dict[str, Abstract]:
    """Return the abstracts by PubMed id. Records that the server didn't return are missing."""
    if b"<PubmedArticleSet" not in reply[:10_000] and b"<ERROR>" in reply[:10_000]:
        raise RetrievalFailed("PubMed found records but couldn't return them. Try again later.")
    abstracts: dict[str, Abstract] = {}
    try:
        for article in read_articles(io.BytesIO(reply), source="pubmed"):
            if isinstance(article.found, Abstract):
                abstracts[article.found.pmid or ""] = article.found
            elif article.found.line is not None:  # Only an error in the XML itself has a line.
                raise UnreadablePubMedReply(article.found.problem)
    except InputError as error:
        raise UnreadablePubMedReply(error.problem) from error
    return abstracts
