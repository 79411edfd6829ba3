"""PubMed over real HTTP on loopback: what is asked, how it is paced, and every way in which it can
go wrong.
"""

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


class Slept(list[float]):
    """What was waited, in place of waiting."""


def pubmed(server: Server, slept: Slept | None = None, *, key: str | None = None) -> PubMed:
    waits = Slept() if slept is None else slept
    secret = SecretStr(key) if key else None
    return PubMed(
        "reviewer@example.org", server.address, secret, pause=waits.append, pace=Pace(1000)
    )


def test_a_search_finds_by_words_and_brings_the_records_in_order_of_relevance(
    server: Server,
) -> None:
    server.pmids = [30, 10, 20, *range(1000, 1100)]
    found = pubmed(server).search("Does low-dose aspirin prevent stroke?", 3)
    assert [abstract.id for abstract in found] == ["pmid-30", "pmid-10", "pmid-20"]
    assert (found[0].title, found[0].text, found[0].source) == ("Study 30", "Text 30.", "pubmed")
    search, fetch = server.asked
    assert search.path == "/esearch.fcgi"
    assert search.parameters["term"] == "low-dose AND aspirin AND prevent AND stroke"
    assert search.parameters["sort"] == "relevance"
    assert fetch.parameters["id"] == "30,10,20"


def test_every_request_says_who_asks_and_carries_the_key_where_there_is_one(server: Server) -> None:
    pubmed(server).search("aspirin", 1)
    pubmed(server, key=KEY).search("aspirin", 1)
    for asked in server.asked:
        assert asked.parameters["tool"] == "masis-workbench"
        assert asked.parameters["email"] == "reviewer@example.org"
        assert asked.user_agent.startswith("masis-workbench/")
        assert KEY not in asked.path
    assert ["api_key" in asked.parameters for asked in server.asked] == [False, False, True, True]


def test_where_few_records_hold_all_words_any_of_them_will_do(server: Server) -> None:
    server.holding_all = 3
    found = pubmed(server).search("rare disease children", 10, offset=5)
    assert [asked.parameters.get("term") for asked in server.asked[:2]] == [
        "rare AND disease AND children",
        "rare OR disease OR children",
    ]
    assert [abstract.pmid for abstract in found] == [str(pmid) for pmid in range(106, 116)]


def test_a_long_page_is_fetched_in_batches_and_pages_follow_each_other(server: Server) -> None:
    asked = pubmed(server)
    whole = [abstract.id for abstract in asked.search("aspirin", 450)]
    assert whole == [f"pmid-{pmid}" for pmid in range(101, 551)]
    assert [len(each.parameters["id"].split(",")) for each in server.asked[1:]] == [200, 200, 50]
    assert [abstract.id for abstract in asked.search("aspirin", 5, offset=3)] == whole[3:8]


def test_records_that_the_server_found_and_can_not_bring_are_a_failure(server: Server) -> None:
    gone = (
        b"<?xml version='1.0'?><eFetchResult><ERROR>Unable to obtain the"
        b" records</ERROR></eFetchResult>"
    )
    server.faults = [Reply(body=hits(50, [7, 8])), Reply(body=gone)]
    with pytest.raises(RetrievalFailed, match="could not bring them"):
        pubmed(server).search("aspirin", 2)


def test_nothing_found_is_nothing_and_asks_for_nothing_more(server: Server) -> None:
    server.pmids = []
    assert pubmed(server).search("aspirin", 5) == ()
    assert len(server.asked) == 1
    assert pubmed(server).search("?!", 5) == ()
    assert pubmed(server).search("aspirin", 0) == ()
    assert pubmed(server).search("aspirin", 5, offset=10_000) == ()
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_passing_fault_is_tried_again_with_longer_and_longer_waits(
    server: Server, status: int
) -> None:
    slept = Slept()
    server.faults = [Reply(status=status)] * 3
    assert len(pubmed(server, slept).search("aspirin", 2)) == 2
    assert [
        longest / 2 <= wait <= longest for wait, longest in zip(slept, (2, 4, 8), strict=True)
    ] == [True] * 3


def test_the_wait_that_the_server_asks_for_is_kept(server: Server) -> None:
    slept = Slept()
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    server.faults = [
        Reply(429, headers=(("Retry-After", "7"),)),
        Reply(503, headers=(("Retry-After", soon),)),
        Reply(503, headers=(("Retry-After", "soon"),)),
    ]
    assert len(pubmed(server, slept).search("aspirin", 2)) == 2
    assert slept[0] == 7
    assert 25 < slept[1] <= 30
    assert 4 <= slept[2] <= 8
    server.faults = [Reply(429, headers=(("Retry-After", "3600"),))]
    with pytest.raises(RetrievalFailed, match=r"429.*left alone for 3600 s"):
        pubmed(server, slept).search("aspirin", 2)


@pytest.mark.parametrize(
    ("status", "key", "told"),
    [
        (429, None, r"answered 429\..*set NCBI_API_KEY"),
        (503, None, r"answered 503\..*try again later, or search a local corpus"),
        (400, KEY, r"answered 400\. Check NCBI_API_KEY"),
        (404, None, r"answered 404\. Check screening_pubmed_address"),
        (302, KEY, r"answered 302"),
    ],
)
def test_a_fault_that_stays_says_what_and_the_hint_and_never_the_key(
    server: Server, status: int, key: str | None, told: str
) -> None:
    body = b'{"error":"API key invalid","api-key":"' + KEY.encode() + b'"}'
    server.faults = [Reply(status, body, (("Location", "http://127.0.0.1:9/elsewhere"),))] * 4
    with pytest.raises(RetrievalFailed, match=told) as raised:
        pubmed(server, key=key).search("aspirin", 2)
    assert KEY not in str(raised.value) + repr(raised.value.__cause__) + repr(
        pubmed(server, key=key)
    )
    assert len(server.asked) == (1 if status in (302, 400, 404) else 4)


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
def test_a_reply_that_is_cut_off_or_garbled_is_asked_again_and_never_taken_for_less(
    server: Server, broken: Reply
) -> None:
    found = Reply(body=hits(50, [101, 102]))
    server.faults = [found, broken]
    assert [abstract.pmid for abstract in pubmed(server).search("aspirin", 2)] == ["101", "102"]
    server.faults = [found, *[broken] * 4]
    with pytest.raises(RetrievalFailed, match="can't be read"):
        pubmed(server).search("aspirin", 2)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (
            b"<eSearchResult><ERROR>Search Backend failed</ERROR></eSearchResult>",
            "Search Backend failed",
        ),
        (b"<eSearchResult><Count>many</Count></eSearchResult>", "no count"),
        (b"<other/>", "not <eSearchResult>"),
        (b"not xml", "no XML"),
    ],
)
def test_a_search_that_is_no_result_is_a_failure_not_an_empty_result(
    server: Server, reply: bytes, told: str
) -> None:
    server.faults = [Reply(body=reply)] * 4
    with pytest.raises(RetrievalFailed, match=told):
        pubmed(server).search("aspirin", 2)


def test_a_record_that_can_not_be_read_is_left_out_and_the_others_come(server: Server) -> None:
    server.fetches = lambda pmids: (
        articles(pmids).replace(b"Study 102", b"").replace(b"Text 102.", b"")
    )
    assert [abstract.pmid for abstract in pubmed(server).search("aspirin", 3)] == ["101", "103"]


def test_a_server_that_is_not_there_says_so_after_some_tries() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    slept = Slept()
    with pytest.raises(RetrievalFailed, match=r"can't be reached.*local corpus"):
        pubmed(Server(address=address), slept).search("aspirin", 2)
    assert len(slept) == 3


def test_a_search_that_is_stopped_does_not_sit_out_its_wait(server: Server) -> None:
    server.faults = [Reply(status=503)]
    stopped = PubMed("a@b.c", server.address, pause=lambda seconds: False, pace=Pace(1000))
    with pytest.raises(RetrievalFailed, match="stopped while it waited"):
        stopped.search("aspirin", 2)
    assert len(server.asked) == 1


def test_an_endless_reply_is_abandoned(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pubmed_source, "MOST_BYTES", 1000)
    server.faults = [Reply(body=b"x" * 5000)] * 4
    with pytest.raises(RetrievalFailed, match="MiB came"):
        pubmed(server).search("aspirin", 2)


def test_no_more_requests_a_second_than_the_rate_however_many_threads_ask() -> None:
    now = 100.0
    slept: list[float] = []
    pace = Pace(3, seconds=lambda: now, sleep=slept.append)
    threads = [threading.Thread(target=pace.wait) for _ in range(7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(slept) == pytest.approx([number / 3 for number in range(1, 7)])
    assert pubmed_source.pace_for("https://one", with_key=False) is (
        pubmed_source.pace_for("https://one", with_key=False)
    )
    assert pubmed_source.pace_for("https://one", with_key=False)._interval == pytest.approx(1 / 3)
    assert pubmed_source.pace_for("https://one", with_key=True)._interval == pytest.approx(1 / 10)


def test_queries_that_look_like_a_search_language_are_words(server: Server) -> None:
    pubmed(server).search('aspirin[mesh] OR ("stroke"[tiab]) NOT 1:9999[uid] #1', 1)
    assert (
        server.asked[0].parameters["term"]
        == "aspirin AND mesh AND stroke AND tiab AND 1 AND 9999 AND uid"
    )


def test_the_settings_name_who_asks_and_the_key_goes_to_ncbi_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NCBI_API_KEY", KEY)
    with pytest.raises(SettingsError, match="MASIS_SCREENING_PUBMED_EMAIL"):
        pubmed_of(Settings())
    for wrong in ("nobody", "a @b.c"):
        with pytest.raises(SettingsError, match="who is asking"):
            pubmed_of(Settings(screening_pubmed_email=wrong))
    own = pubmed_of(Settings(screening_pubmed_email="a@b.c"))
    assert own.key is not None
    assert KEY not in repr(own)
    other = Settings(
        screening_pubmed_email="a@b.c",
        screening_pubmed_address="https://mirror.example.org/eutils/",
    )
    assert pubmed_of(other).key is None
    assert pubmed_of(other).address == "https://mirror.example.org/eutils"
    for wrong in (
        "http://example.org",
        "ftp://example.org",
        "file:///etc",
        "https://u:p@h/",
        "https://",
    ):
        with pytest.raises(SettingsError, match="screening_pubmed_address"):
            pubmed_of(Settings(screening_pubmed_email="a@b.c", screening_pubmed_address=wrong))
