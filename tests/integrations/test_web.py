"""The HTTP door: what is acknowledged is stored, who may send and how much, which cases enter the queue."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from masis.datasets.mapping import builtin, read_any
from masis.errors import HTTP_STATUS, DatabaseBusy, DatabaseFull, MasisError, SettingsError, StepError
from masis.integrations.web import app as web
from masis.schema import limits
from masis.services import Workbench
from masis.services.ingestion import Rule, Source, drawn, new_token, read_cases, read_sources
from masis.services.records import Form
from masis.settings import Settings
from tests.cli.running import case, lines
from tests.store.factories import a_case
from tests.waiting import until
from tools.serving import free_port

TOKEN, DIGEST = new_token()
SEND = {"authorization": f"Bearer {TOKEN}"}
NDJSON = SEND | {"content-type": "application/x-ndjson"}


@pytest.fixture
def workbench(tmp_path: Path) -> Iterator[Workbench]:
    opened = Workbench.open(tmp_path / "inbox.db", Settings())
    yield opened
    opened.close()


def client(workbench: Workbench, **limits: Any) -> TestClient:
    source = Source(name="chatbot", token_sha256=DIGEST, **({"requests_per_second": 1000, "burst": 1000} | limits))
    other = Source(name="other", token_sha256="0" * 64)
    served = web.application(workbench.ingestion, {"chatbot": source, "other": other})
    return TestClient(served, base_url="http://127.0.0.1:8700")


def done(opened: TestClient, address: str) -> dict[str, Any]:
    until(lambda: opened.get(address, headers=SEND).json()["state"] == "done", "the request is read")
    result: dict[str, Any] = opened.get(address, headers=SEND).json()["result"]
    return result


def test_one_case_several_and_lines_are_stored_and_can_be_polled(workbench: Workbench) -> None:
    with client(workbench) as opened:
        one = opened.post("/v1/cases", json=case("one"), headers=SEND)
        assert one.status_code == 202
        assert one.headers["location"] == one.json()["status"]
        several = opened.post("/v1/cases", json={"cases": [case("two"), case("three")]}, headers=SEND)
        streamed = opened.post("/v1/cases", content=lines(case("four"), case("one")), headers=NDJSON)
        assert done(opened, one.json()["status"])["stored"] == 1
        assert done(opened, several.json()["status"])["stored"] == 2
        found = done(opened, streamed.json()["status"])
        assert (found["received"], found["stored"], found["unchanged"], found["errors"]) == (2, 1, 1, 0)
    assert {each.id for each in workbench.store.cases.iterate()} == {"one", "two", "three", "four"}
    assert workbench.store.database.value("SELECT max(length(body)) FROM inbox") == 0


def test_what_is_no_case_is_named_and_the_others_are_stored(workbench: Workbench) -> None:
    with client(workbench) as opened:
        body = lines(case("a"), case("b", evidence=...)) + b"{nonsense\n" + lines(case("a", query="Other?"))
        sent = opened.post("/v1/cases", content=body, headers=NDJSON).json()
        found = done(opened, sent["status"])
        assert (found["stored"], found["errors"]) == (1, 3)
        assert any("body, line 2, evidence" in error for error in found["first_errors"])
        sent = opened.post("/v1/cases", json={"cases": [case("c"), {"id": "d"}, 5]}, headers=SEND).json()
        found = done(opened, sent["status"])
        assert (found["stored"], found["errors"]) == (1, 2)
        half = json.dumps(case("half", query="a\ud800b")).encode()  # half a surrogate pair, which is no text
        sent = opened.post("/v1/cases", content=half, headers=SEND | {"content-type": "application/json"}).json()
        assert done(opened, sent["status"])["errors"] == 1
        assert done(opened, opened.post("/v1/cases", json=case("last"), headers=SEND).json()["status"])["stored"] == 1


JSON_FILES = [
    file
    for file in sorted((Path(__file__).parents[1] / "datasets/mapping/files").glob("*.json*"))
    if file.stem.startswith(tuple(builtin())) and not file.stem.startswith(("ragtruth", "openai-batch"))
]


@pytest.mark.parametrize("file", JSON_FILES, ids=lambda file: file.stem)
def test_a_body_of_another_tool_holds_the_cases_that_import_finds_in_its_file(file: Path) -> None:
    profile = max((name for name in builtin() if file.stem.startswith(name)), key=len)
    form: Form = "json" if file.suffix == ".json" else "ndjson"
    wanted = [row.case for row in read_any(file, builtin()[profile])]
    assert wanted
    assert list(read_cases(form, file.read_bytes(), profile)) == wanted


def test_a_source_with_a_profile_sends_what_its_tool_writes(workbench: Workbench) -> None:
    rows = [
        {"id": str(n), "user_input": "How long?", "response": "120 m.", "retrieved_contexts": ["120 m."], "bad": n == 1}
        for n in range(4)
    ]
    flagged = Rule(field="metadata.source_row.bad")
    with client(workbench, profile="ragas", max_cases=3, rules=(flagged,)) as opened:
        sent = opened.post("/v1/cases", content=lines(*rows[:3]) + lines({"user_input": 5}), headers=NDJSON)
        assert sent.status_code == 413, "what is too much is refused at once where it can be seen"
        found = done(opened, opened.post("/v1/cases", content=lines(*rows[:3]), headers=NDJSON).json()["status"])
        assert (found["received"], found["stored"], found["passed_over"], found["errors"]) == (3, 1, 2, 0)
        document = opened.post("/v1/cases", json=rows, headers=SEND).json()
        found = done(opened, document["status"])
        assert "more than 3 cases" in found["first_errors"][0]
        broken = opened.post("/v1/cases", content=lines({"user_input": 5}), headers=NDJSON).json()
        assert done(opened, broken["status"])["errors"] >= 1
        packed = opened.post("/v1/cases", content=gzip.compress(lines(rows[0])), headers=NDJSON).json()
        assert "holds no JSON" in done(opened, packed["status"])["first_errors"][0]
    assert [each.id for each in workbench.store.cases.iterate()] == ["1"]


def test_what_a_body_holds_is_counted_again_when_it_is_read(workbench: Workbench) -> None:
    with client(workbench, max_cases=2) as opened:
        body = json.dumps({"cases": [case(str(n)) for n in range(4)]}).replace('"evidence"', '"\\u0065vidence"')
        sent = opened.post("/v1/cases", content=body, headers=SEND | {"content-type": "application/json"})
        assert sent.status_code == 202, "a key that is written with escapes can't be seen at the door"
        found = done(opened, sent.json()["status"])
        assert (found["stored"], found["errors"]) == (2, 1)
        assert "more than 2 cases (max_cases)" in found["first_errors"][0]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"query": "q" * (limits.QUESTION + 1)}, "query: holds 20,001 characters, at most 20,000"),
        ({"evidence": [{"id": str(n)} for n in range(limits.CHUNKS + 1)]}, "evidence: holds 1,001 chunks"),
        ({"metadata": json.loads("[" * 70 + "]" * 70)}, "64"),
    ],
)
def test_a_case_that_passes_a_limit_is_named_with_it_and_the_others_are_stored(
    workbench: Workbench, change: dict[str, Any], told: str
) -> None:
    with client(workbench) as opened:
        sent = opened.post("/v1/cases", content=lines(case("a", **change), case("b")), headers=NDJSON).json()
        found = done(opened, sent["status"])
    assert (found["stored"], found["errors"]) == (1, 1)
    assert told in found["first_errors"][0]


def test_a_body_of_line_breaks_is_looked_at_in_little_memory() -> None:
    peaks = []
    for size in (1_000_000, 4_000_000):
        body = b"\n" * size
        tracemalloc.start()
        assert web._looked_at("ndjson", body, 1_000)[0] == 0
        peaks.append(tracemalloc.get_traced_memory()[1] / size)
        tracemalloc.stop()
    assert max(peaks) < 3, "bytes for each byte that was sent"


def test_a_profile_that_is_none_is_refused_with_those_there_are() -> None:
    with pytest.raises(SettingsError, match=r"sources\.bot\.profile.*langfuse-traces"):
        read_sources({"sources": {"bot": {"token_sha256": DIGEST, "profile": "langfuze"}}})


def test_the_same_key_is_one_request_however_often_it_is_sent(workbench: Workbench) -> None:
    keyed = SEND | {"idempotency-key": "order-1"}
    with client(workbench) as opened:
        answers = [opened.post("/v1/cases", json=case("a"), headers=keyed).json() for _ in range(3)]
        assert len({answer["id"] for answer in answers}) == 1
        assert [answer["repeated"] for answer in answers] == [False, True, True]
        other = opened.post("/v1/cases", json=case("b"), headers=keyed)
        assert other.status_code == 422
        done(opened, answers[0]["status"])
        assert opened.post("/v1/cases", json=case("a"), headers=keyed).json()["id"] == answers[0]["id"]
    assert [each.id for each in workbench.store.cases.iterate()] == ["a"]
    assert workbench.store.database.value("SELECT count(*) FROM inbox") == 1


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"headers": {}}, 401),
        ({"headers": {"authorization": "Bearer wrong"}}, 401),
        ({"headers": {"authorization": f"Basic {TOKEN}"}}, 401),
        ({"headers": SEND | {"host": "evil.example"}}, 421),
        ({"headers": SEND | {"origin": "https://evil.example"}}, 403),
        ({"headers": SEND | {"content-type": "text/plain"}}, 415),
        ({"headers": SEND | {"content-type": "application/json", "idempotency-key": "k" * 201}}, 400),
        ({"content": b"  "}, 400),
        ({"content": b"x" * 2_001}, 413),
        ({"content": lines(*(case(str(number)) for number in range(4))), "headers": NDJSON}, 413),
    ],
)
def test_a_request_that_may_not_be_stores_nothing(workbench: Workbench, change: dict[str, Any], status: int) -> None:
    sent = {"content": json.dumps(case("a")), "headers": SEND | {"content-type": "application/json"}} | change
    with client(workbench, max_body_bytes=2_000, max_cases=3) as opened:
        answer = opened.post("/v1/cases", **sent)
        assert answer.status_code == status
        assert answer.json()["error"]["cure"]
    assert workbench.store.inbox.count_waiting() == 0
    assert workbench.store.database.value("SELECT count(*) FROM inbox") == 0


def test_a_source_sends_so_fast_and_no_faster(workbench: Workbench) -> None:
    with client(workbench, requests_per_second=0.01, burst=2) as opened:
        statuses = [opened.post("/v1/cases", json=case(str(n)), headers=SEND) for n in range(3)]
        assert [answer.status_code for answer in statuses] == [202, 202, 429]
        assert int(statuses[2].headers["retry-after"]) >= 1


def test_a_source_sees_its_own_batches_alone(workbench: Workbench) -> None:
    with client(workbench) as opened:
        assert opened.get("/v1/batches/unknown", headers=SEND).status_code == 404
    first = workbench.ingestion.receive([web.Received("theirs", "other", None, "d", "json", b"{}")])
    assert first[0].new
    with client(workbench) as opened:
        assert opened.get("/v1/batches/theirs", headers=SEND).status_code == 404


def test_rules_say_which_cases_enter_the_queue(workbench: Workbench) -> None:
    rules = ({"flagged": True}, {"field": "metadata.language", "is_one_of": ["de"]}, {"share": 0.1})
    with client(workbench, rules=rules) as opened:
        drawn_one = next(str(n) for n in range(100) if drawn(str(n), 0.1))
        undrawn = [name for name in (f"case-{n}" for n in range(100)) if not drawn(name, 0.1)][:4]
        sent = [
            case(drawn_one),
            case(undrawn[0]),
            case(undrawn[1], metadata={"flagged": True}),
            case(undrawn[2], metadata={"language": "de"}),
            case(undrawn[3], metadata={"language": "fr", "flagged": "yes"}),
        ]
        answer = opened.post("/v1/cases", json={"cases": sent}, headers=SEND).json()
        found = done(opened, answer["status"])
        assert (found["stored"], found["passed_over"]) == (3, 2)
    assert [each.id for each in workbench.store.cases.iterate()] == [drawn_one, undrawn[1], undrawn[2]]
    assert Rule(field="metadata.language", flagged=True).takes(a_case(metadata={"flagged": True, "language": "de"})), (
        "conditions of one rule add up"
    )
    assert 800 < sum(drawn(str(n), 0.1) for n in range(10_000)) < 1_200


@pytest.mark.spec("CRITIC-ERR-HTTP")
@pytest.mark.parametrize(
    ("error", "status"),
    [
        *((kind, HTTP_STATUS[kind.code]) for kind in StepError.__subclasses__()),
        (DatabaseBusy, 503),
        (DatabaseFull, 507),
    ],
)
def test_an_error_is_answered_with_its_status_and_nothing_is_acknowledged(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch, error: type[MasisError], status: int
) -> None:
    def fails(requests: object) -> None:
        raise error("not now") if not issubclass(error, StepError) else _made(error)

    monkeypatch.setattr(workbench.ingestion, "receive", fails)
    with client(workbench) as opened:
        answer = opened.post("/v1/cases", json=case("a"), headers=SEND)
    assert answer.status_code == status
    assert answer.json()["error"]["http_status"] == status
    assert "not now" not in answer.text


def _made(error: type[StepError]) -> StepError:
    made = error.__new__(error)
    made.args = ("not now",)
    return made


def test_the_openapi_document_names_every_route(workbench: Workbench) -> None:
    with client(workbench) as opened:
        document = opened.get("/v1/openapi.json").json()
        assert set(document["paths"]) == {"/v1/cases", "/v1/batches/{id}"}
        assert document["components"]["schemas"]["Case"]["required"] == ["id", "query", "evidence"]
        assert opened.get("/healthz").json() == {"ok": True}


def test_a_file_of_sources_that_can_not_be_used_is_named(tmp_path: Path) -> None:
    for written in (
        {},
        {"sources": {}},
        {"sources": {"a": {"token_sha256": "short"}}},
        {"sources": {"a": {"token_sha256": DIGEST}, "b": {"token_sha256": DIGEST}}},
        {"sources": {"a": {"token_sha256": DIGEST, "rules": [{"shares": 1}]}}},
        {"sources": {"a": 1}},
    ):
        with pytest.raises(SettingsError, match="file of sources"):
            read_sources(written)


@pytest.mark.slow
def test_what_was_acknowledged_is_stored_although_the_server_was_killed(tmp_path: Path) -> None:
    sources, database, port = tmp_path / "sources.toml", tmp_path / "killed.db", free_port()
    sources.write_text(f'[sources.chatbot]\ntoken_sha256 = "{DIGEST}"\nrequests_per_second = 1000\nburst = 1000\n')
    command = [sys.executable, "-m", "masis.cli", "ingest", "--port", str(port), "--sources", str(sources)]
    process = subprocess.Popen([*command, "--db", str(database)], stderr=subprocess.DEVNULL)
    acknowledged = []
    try:
        until(lambda: _answers(port), "the server answers")
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=SEND) as opened:
            for number in range(30):
                sent = {"cases": [case(f"{number}-{each}") for each in range(20)]}
                if opened.post("/v1/cases", json=sent).status_code == 202:
                    acknowledged.append(number)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert len(acknowledged) == 30
    opened_again = Workbench.open(database)
    while opened_again.ingestion.read_waiting({}):
        pass
    stored = {each.id for each in opened_again.store.cases.iterate()}
    assert stored == {f"{number}-{each}" for number in acknowledged for each in range(20)}


def _answers(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/healthz").is_success
    except httpx2.HTTPError:
        return False
