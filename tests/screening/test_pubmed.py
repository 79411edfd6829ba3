"""PubMed over real HTTP on loopback: requests, rate limits, and every kind of failure."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from pydantic import SecretStr

from masis.errors import RetrievalFailed, SettingsError
from masis.screening.sources import pubmed as pubmed_source
from masis.screening.sources.pubmed import Pace, PubMed, pubmed_of
from masis.settings import Settings
from tests.screening.entrez_server import Reply, Server, articles, hits, serving

KEY = "k3y-of-nobody"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server()) as running:
        yield running


class RecordedWaits(list[float]):
    """Records the waits instead of sleeping."""


def pubmed(
    server: Server, waits_so_far: RecordedWaits | None = None, *, key: str | None = None
) -> PubMed:
    pause_waits = RecordedWaits() if waits_so_far is None else waits_so_far
    secret = SecretStr(key) if key else None
    return PubMed(
        "reviewer@example.org", server.address, secret, pause=pause_waits.append, pace=Pace(1000)
    )


def test_a_search_returns_records_in_order_of_relevance(
    server: Server,
) -> None:
    server.pmids = [30, 10, 20, *range(1000, 1100)]
    abstracts = pubmed(server).search("Does low-dose aspirin prevent stroke?", 3)
    assert [abstract.id for abstract in abstracts] == ["pmid-30", "pmid-10", "pmid-20"]
    assert (abstracts[0].title, abstracts[0].text, abstracts[0].source) == (
        "Study 30",
        "Text 30.",
        "pubmed",
    )
    search, fetch = server.requests
    assert search.path == "/esearch.fcgi"
    assert search.parameters["term"] == "low-dose AND aspirin AND prevent AND stroke"
    assert search.parameters["sort"] == "relevance"
    assert fetch.parameters["id"] == "30,10,20"


def test_every_request_identifies_the_client_and_sends_the_key_if_set(server: Server) -> None:
    pubmed(server).search("aspirin", 1)
    pubmed(server, key=KEY).search("aspirin", 1)
    for request in server.requests:
        assert request.parameters["tool"] == "masis-workbench"
        assert request.parameters["email"] == "reviewer@example.org"
        assert request.user_agent.startswith("masis-workbench/")
        assert KEY not in request.path
    with_key = ["api_key" in request.parameters for request in server.requests]
    assert with_key == [False, False, True, True]


def test_a_search_with_few_hits_for_all_words_falls_back_to_any_word(server: Server) -> None:
    server.hits_for_all_words = 3
    abstracts = pubmed(server).search("rare disease children", 10, offset=5)
    assert [request.parameters.get("term") for request in server.requests[:2]] == [
        "rare AND disease AND children",
        "rare OR disease OR children",
    ]
    assert [abstract.pmid for abstract in abstracts] == [str(pmid) for pmid in range(106, 116)]


def test_a_long_page_is_fetched_in_batches_and_pages_are_consecutive(server: Server) -> None:
    source = pubmed(server)
    ids = [abstract.id for abstract in source.search("aspirin", 450)]
    assert ids == [f"pmid-{pmid}" for pmid in range(101, 551)]
    sizes = [len(request.parameters["id"].split(",")) for request in server.requests[1:]]
    assert sizes == [200, 200, 50]
    assert [abstract.id for abstract in source.search("aspirin", 5, offset=3)] == ids[3:8]


def test_records_found_but_not_returned_are_a_failure(server: Server) -> None:
    missing = (
        b"<?xml version='1.0'?><eFetchResult><ERROR>Unable to obtain the"
        b" records</ERROR></eFetchResult>"
    )
    server.faults = [Reply(body=hits(50, [7, 8])), Reply(body=missing)]
    with pytest.raises(RetrievalFailed, match="couldn't return them"):
        pubmed(server).search("aspirin", 2)


def test_an_empty_result_sends_no_further_request(server: Server) -> None:
    server.pmids = []
    assert pubmed(server).search("aspirin", 5) == ()
    assert len(server.requests) == 1
    assert pubmed(server).search("?!", 5) == ()
    assert pubmed(server).search("aspirin", 0) == ()
    assert pubmed(server).search("aspirin", 5, offset=10_000) == ()
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_temporary_error_is_retried_with_growing_waits(server: Server, status: int) -> None:
    waits_so_far = RecordedWaits()
    server.faults = [Reply(status=status)] * 3
    assert len(pubmed(server, waits_so_far).search("aspirin", 2)) == 2
    assert [
        longest / 2 <= wait <= longest
        for wait, longest in zip(waits_so_far, (2, 4, 8), strict=True)
    ] == [True] * 3


def test_the_retry_after_header_is_respected(server: Server) -> None:
    waits_so_far = RecordedWaits()
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    server.faults = [
        Reply(429, headers=(("Retry-After", "7"),)),
        Reply(503, headers=(("Retry-After", date),)),
        Reply(503, headers=(("Retry-After", "soon"),)),
    ]
    assert len(pubmed(server, waits_so_far).search("aspirin", 2)) == 2
    assert waits_so_far[0] == 7
    assert 25 < waits_so_far[1] <= 30
    assert 4 <= waits_so_far[2] <= 8
    server.faults = [Reply(429, headers=(("Retry-After", "3600"),))]
    with pytest.raises(RetrievalFailed, match=r"429.*asks you to wait 3600 s"):
        pubmed(server, waits_so_far).search("aspirin", 2)


@pytest.mark.parametrize(
    ("status", "key", "message"),
    [
        (429, None, r"answered 429\..*set NCBI_API_KEY"),
        (503, None, r"answered 503\..*Try again later, or search a local corpus"),
        (400, KEY, r"answered 400\. Check NCBI_API_KEY"),
        (404, None, r"answered 404\. Check screening_pubmed_address"),
        (302, KEY, r"answered 302"),
    ],
)
def test_a_permanent_error_is_reported_with_a_hint_and_without_the_key(
    server: Server, status: int, key: str | None, message: str
) -> None:
    body = b'{"error":"API key invalid","api-key":"' + KEY.encode() + b'"}'
    server.faults = [Reply(status, body, (("Location", "http://127.0.0.1:9/elsewhere"),))] * 4
    with pytest.raises(RetrievalFailed, match=message) as raised:
        pubmed(server, key=key).search("aspirin", 2)
    assert KEY not in str(raised.value) + repr(raised.value.__cause__) + repr(
        pubmed(server, key=key)
    )
    assert len(server.requests) == (1 if status in (302, 400, 404) else 4)


@pytest.mark.parametrize(
    "broken",
    [
        Reply(body=articles([101, 102])[:-30]),
        Reply(body=articles([101, 102])[:-30], cut=30),
        Reply(body=b""),
        Reply(body=b"<html><body>Under maintenance</body></html>"),
        Reply(body=b"<!DOCTYPE a [<!ENTITY b 'c'>]><PubmedArticleSet>&b;</PubmedArticleSet>"),
    ],
    ids=["truncated", "cut off", "empty", "html", "entities"],
)
def test_a_truncated_or_garbled_reply_is_retried_and_never_accepted(
    server: Server, broken: Reply
) -> None:
    search_reply = Reply(body=hits(50, [101, 102]))
    server.faults = [search_reply, broken]
    assert [abstract.pmid for abstract in pubmed(server).search("aspirin", 2)] == ["101", "102"]
    server.faults = [search_reply, *[broken] * 4]
    with pytest.raises(RetrievalFailed, match="can't be read"):
        pubmed(server).search("aspirin", 2)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (
            b"<eSearchResult><ERROR>Search Backend failed</ERROR></eSearchResult>",
            "Search Backend failed",
        ),
        (b"<eSearchResult><Count>many</Count></eSearchResult>", "no count"),
        (b"<other/>", "not <eSearchResult>"),
        (b"not xml", "not XML"),
    ],
)
def test_an_invalid_search_reply_is_a_failure_not_an_empty_result(
    server: Server, reply: bytes, message: str
) -> None:
    server.faults = [Reply(body=reply)] * 4
    with pytest.raises(RetrievalFailed, match=message):
        pubmed(server).search("aspirin", 2)


def test_an_unreadable_record_is_skipped(server: Server) -> None:
    server.fetches = lambda pmids: (
        articles(pmids).replace(b"Study 102", b"").replace(b"Text 102.", b"")
    )
    assert [abstract.pmid for abstract in pubmed(server).search("aspirin", 3)] == ["101", "103"]


def test_an_unreachable_server_is_reported_after_retries() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}"
    waits_so_far = RecordedWaits()
    with pytest.raises(RetrievalFailed, match=r"can't be reached.*local corpus"):
        pubmed(Server(address=address), waits_so_far).search("aspirin", 2)
    assert len(waits_so_far) == 3


def test_a_cancelled_search_doesnt_wait(server: Server) -> None:
    server.faults = [Reply(status=503)]
    cancelled = PubMed("a@b.c", server.address, pause=lambda seconds: False, pace=Pace(1000))
    with pytest.raises(RetrievalFailed, match="cancelled while it waited"):
        cancelled.search("aspirin", 2)
    assert len(server.requests) == 1


def test_an_endless_reply_is_abandoned(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pubmed_source, "MAX_BYTES", 1000)
    server.faults = [Reply(body=b"x" * 5000)] * 4
    with pytest.raises(RetrievalFailed, match="MiB came"):
        pubmed(server).search("aspirin", 2)


def test_the_request_rate_is_limited_across_threads() -> None:
    now = 100.0
    waits_so_far: list[float] = []
    pace = Pace(3, seconds=lambda: now, sleep=waits_so_far.append)
    threads = [threading.Thread(target=pace.wait) for _ in range(7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(waits_so_far) == pytest.approx([number / 3 for number in range(1, 7)])
    assert pubmed_source.pace_for("https://one", with_key=False) is (
        pubmed_source.pace_for("https://one", with_key=False)
    )
    assert pubmed_source.pace_for("https://one", with_key=False)._interval == pytest.approx(1 / 3)
    assert pubmed_source.pace_for("https://one", with_key=True)._interval == pytest.approx(1 / 10)


def test_search_operators_in_a_query_are_plain_words(server: Server) -> None:
    pubmed(server).search('aspirin[mesh] OR ("stroke"[tiab]) NOT 1:9999[uid] #1', 1)
    assert (
        server.requests[0].parameters["term"]
        == "aspirin AND mesh AND stroke AND tiab AND 1 AND 9999 AND uid"
    )


def test_an_email_is_required_and_the_key_is_sent_to_ncbi_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NCBI_API_KEY", KEY)
    with pytest.raises(SettingsError, match="MASIS_SCREENING_PUBMED_EMAIL"):
        pubmed_of(Settings())
    for wrong in ("nobody", "a @b.c"):
        with pytest.raises(SettingsError, match="requires an e-mail address"):
            pubmed_of(Settings(screening_pubmed_email=wrong))
    ncbi = pubmed_of(Settings(screening_pubmed_email="a@b.c"))
    assert ncbi.key is not None
    assert KEY not in repr(ncbi)
    mirror = Settings(
        screening_pubmed_email="a@b.c",
        screening_pubmed_address="https://mirror.example.org/eutils/",
    )
    assert pubmed_of(mirror).key is None
    assert pubmed_of(mirror).address == "https://mirror.example.org/eutils"
    for wrong in (
        "http://example.org",
        "ftp://example.org",
        "file:///etc",
        "https://u:p@h/",
        "https://",
    ):
        with pytest.raises(SettingsError, match="screening_pubmed_address"):
            pubmed_of(Settings(screening_pubmed_email="a@b.c", screening_pubmed_address=wrong))
