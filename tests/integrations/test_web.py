"""The HTTP door: what is acknowledged is stored, who may send and how much, which cases enter the
queue.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from masis.errors import (
    HTTP_STATUS,
    DatabaseBusy,
    DatabaseFull,
    MasisError,
    SettingsError,
    StepError,
)
from masis.schema.team import QueuePolicy
from masis.server import ingestion as web
from masis.services import Workbench
from masis.services.arrivals.ingestion import (
    IngestionService,
    ProgramSource,
    Rule,
    is_in_sample,
    new_token,
    read_sources,
)
from tests.cli.running import case, lines, start
from tests.reviewing import ADA, decide
from tests.store.factories import a_case
from tests.waiting import until
from tools.serving import free_port

TOKEN, DIGEST = new_token()
SEND = {"authorization": f"Bearer {TOKEN}"}
NDJSON = SEND | {"content-type": "application/x-ndjson"}
DOCUMENT = SEND | {"content-type": "application/json"}


def client(bench: Workbench, **limits: Any) -> TestClient:
    source = ProgramSource(
        name="chatbot",
        token_sha256=DIGEST,
        **({"requests_per_minute": 60_000, "burst": 1000} | limits),
    )
    other = ProgramSource(name="other", token_sha256="0" * 64)
    served = web.application(bench.ingestion, {"chatbot": source, "other": other})
    return TestClient(served, base_url="http://127.0.0.1:8700")


def done(opened: TestClient, address: str) -> dict[str, Any]:
    until(
        lambda: opened.get(address, headers=SEND).json()["state"] == "done", "the request is read"
    )
    result: dict[str, Any] = opened.get(address, headers=SEND).json()["result"]
    return result


def result(opened: TestClient, body: Any) -> dict[str, Any]:
    """What comes of a body that is taken, once it is read: lines as bytes, or one document."""
    sent = (
        {"content": body, "headers": NDJSON}
        if isinstance(body, bytes)
        else {"json": body, "headers": SEND}
    )
    answer = opened.post("/v1/cases", **sent)
    assert answer.status_code == 202
    return done(opened, answer.json()["status"])


def stored(bench: Workbench) -> list[str]:
    return [each.id for each in bench.store.cases.iterate()]


def test_single_cases_lists_and_json_lines_are_stored_and_can_be_polled(bench: Workbench) -> None:
    with client(bench) as opened:
        one = opened.post("/v1/cases", json=case("one"), headers=SEND)
        assert one.status_code == 202
        assert one.headers["location"] == one.json()["status"]
        assert done(opened, one.json()["status"])["stored"] == 1
        assert result(opened, {"cases": [case("two"), case("three")]})["stored"] == 2
        found = result(opened, lines(case("four"), case("one")))
        assert (found["received"], found["stored"], found["unchanged"], found["errors"]) == (
            2,
            1,
            1,
            0,
        )
    assert set(stored(bench)) == {"one", "two", "three", "four"}
    assert bench.store.database.value("SELECT max(length(body)) FROM inbox") == 0


def test_invalid_cases_are_reported_and_others_stored(bench: Workbench) -> None:
    with client(bench) as opened:
        body = (
            lines(case("a"), case("b", evidence=...))
            + b"{nonsense\n"
            + lines(case("a", query="Other?"))
        )
        found = result(opened, body)
        assert (found["stored"], found["errors"]) == (1, 3)
        assert any("body, line 2, evidence" in error for error in found["first_errors"])
        found = result(opened, {"cases": [case("c"), {"id": "d"}, 5]})
        assert (found["stored"], found["errors"]) == (1, 2)
        # half a surrogate pair, which isn't text
        half = json.dumps(case("half", query="a\ud800b")).encode()
        sent = opened.post("/v1/cases", content=half, headers=DOCUMENT).json()
        assert done(opened, sent["status"])["errors"] == 1
        assert result(opened, case("last"))["stored"] == 1


def test_a_source_with_a_profile_sends_its_tools_format(bench: Workbench) -> None:
    rows = [
        {
            "id": str(n),
            "user_input": "How long?",
            "response": "120 m.",
            "retrieved_contexts": ["120 m."],
            "bad": n == 1,
        }
        for n in range(4)
    ]
    flagged = Rule(field="metadata.source_row.bad")
    with client(bench, profile="ragas", max_cases=3, rules=(flagged,)) as opened:
        sent = opened.post(
            "/v1/cases", content=lines(*rows[:3]) + lines({"user_input": 5}), headers=NDJSON
        )
        assert sent.status_code == 413, "what is too much is refused at once where it can be seen"
        found = result(opened, lines(*rows[:3]))
        assert (found["received"], found["stored"], found["passed_over"], found["errors"]) == (
            3,
            1,
            2,
            0,
        )
        assert "more than 3 cases" in result(opened, rows)["first_errors"][0]
        assert result(opened, lines({"user_input": 5}))["errors"] >= 1
        assert "isn't JSON" in result(opened, gzip.compress(lines(rows[0])))["first_errors"][0]
    assert stored(bench) == ["1"]


def test_cases_are_counted_rather_than_evidence_keys(bench: Workbench) -> None:
    claims = [{"text": "It is long.", "verdict": "supported", "evidence": ["chunk_1"]}] * 5
    with client(bench, max_cases=2) as opened:
        labelled = {"cases": [case(str(n), labels={"claims": claims}) for n in range(2)]}
        assert result(opened, labelled)["stored"] == 2
        too_long = case("long", answer="So. " * 50_000, labels={"claims": claims})
        sent = opened.post("/v1/cases", json=too_long, headers=DOCUMENT)
        assert (sent.status_code, "answer_characters" in sent.text) == (422, True)
        body = json.dumps({"cases": [case(str(n)) for n in range(4)]}).replace(
            '"evidence"', '"\\u0065vidence"'
        )
        assert opened.post("/v1/cases", content=body, headers=DOCUMENT).status_code == 413


def test_a_body_of_line_breaks_needs_little_memory(bench: Workbench) -> None:
    peaks = []
    source = ProgramSource(name="chatbot", token_sha256="0" * 64)
    for size in (1_000_000, 4_000_000):
        body = b"\n" * size
        tracemalloc.start()
        assert IngestionService(bench.store).inspect_body("ndjson", body, source).cases == 0
        peaks.append(tracemalloc.get_traced_memory()[1] / size)
        tracemalloc.stop()
    assert max(peaks) < 3, "bytes for each byte that was sent"


def test_an_idempotency_key_makes_resends_one_request(bench: Workbench) -> None:
    keyed = SEND | {"idempotency-key": "order-1"}
    with client(bench) as opened:
        answers = [opened.post("/v1/cases", json=case("a"), headers=keyed).json() for _ in range(3)]
        assert len({answer["id"] for answer in answers}) == 1
        assert [answer["repeated"] for answer in answers] == [False, True, True]
        other = opened.post("/v1/cases", json=case("b"), headers=keyed)
        assert other.status_code == 422
        done(opened, answers[0]["status"])
        assert (
            opened.post("/v1/cases", json=case("a"), headers=keyed).json()["id"] == answers[0]["id"]
        )
    assert stored(bench) == ["a"]
    assert bench.store.database.value("SELECT count(*) FROM inbox") == 1


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"headers": {}}, 401),
        ({"headers": {"authorization": "Bearer wrong"}}, 401),
        ({"headers": {"authorization": f"Basic {TOKEN}"}}, 401),
        ({"headers": SEND | {"host": "evil.example"}}, 421),
        ({"headers": SEND | {"origin": "https://evil.example"}}, 403),
        ({"headers": SEND | {"content-type": "text/plain"}}, 415),
        ({"headers": DOCUMENT | {"idempotency-key": "k" * 201}}, 400),
        ({"content": b"  "}, 400),
        ({"content": b"x" * 2_001}, 413),
        ({"content": lines(*(case(str(number)) for number in range(4))), "headers": NDJSON}, 413),
    ],
)
def test_a_rejected_request_stores_nothing(
    bench: Workbench, change: dict[str, Any], status: int
) -> None:
    sent = {"content": json.dumps(case("a")), "headers": DOCUMENT} | change
    with client(bench, max_body_bytes=2_000, max_cases=3) as opened:
        answer = opened.post("/v1/cases", **sent)
        assert answer.status_code == status
        assert answer.json()["error"]["hint"]
    assert not bench.store.inbox.waiting(1)
    assert bench.store.database.value("SELECT count(*) FROM inbox") == 0


def test_a_source_is_rate_limited(bench: Workbench) -> None:
    with client(bench, requests_per_minute=0.6, burst=2) as opened:
        statuses = [opened.post("/v1/cases", json=case(str(n)), headers=SEND) for n in range(3)]
        assert [answer.status_code for answer in statuses] == [202, 202, 429]
        assert int(statuses[2].headers["retry-after"]) >= 1


def test_a_source_sees_only_its_own_batches(bench: Workbench) -> None:
    with client(bench) as opened:
        assert opened.get("/v1/batches/unknown", headers=SEND).status_code == 404
    first = bench.ingestion.receive(
        [web.ReceivedRequest("theirs", "other", None, "d", "json", b"{}")]
    )
    assert first[0].new
    with client(bench) as opened:
        assert opened.get("/v1/batches/theirs", headers=SEND).status_code == 404


def test_rules_say_which_cases_enter_the_queue(bench: Workbench) -> None:
    rules = ({"flagged": True}, {"field": "metadata.language", "is_one_of": ["de"]}, {"share": 0.1})
    with client(bench, rules=rules) as opened:
        drawn_one = next(str(n) for n in range(100) if is_in_sample(str(n), 0.1))
        undrawn = [
            name for name in (f"case-{n}" for n in range(100)) if not is_in_sample(name, 0.1)
        ][:4]
        sent = [
            case(drawn_one),
            case(undrawn[0]),
            case(undrawn[1], metadata={"flagged": True}),
            case(undrawn[2], metadata={"language": "de"}),
            case(undrawn[3], metadata={"language": "fr", "flagged": "yes"}),
        ]
        found = result(opened, {"cases": sent})
        assert (found["stored"], found["passed_over"]) == (3, 2)
    assert stored(bench) == [drawn_one, undrawn[1], undrawn[2]]
    assert Rule(field="metadata.language", flagged=True).is_met(
        a_case(metadata={"flagged": True, "language": "de"})
    ), "conditions of one rule add up"
    assert 800 < sum(is_in_sample(str(n), 0.1) for n in range(10_000)) < 1_200


@pytest.mark.spec("CRITIC-ERR-HTTP")
@pytest.mark.parametrize(
    ("error", "status"),
    [
        *((kind, HTTP_STATUS[kind.code]) for kind in StepError.__subclasses__()),
        (DatabaseBusy, 503),
        (DatabaseFull, 507),
    ],
)
def test_an_error_has_its_status_and_acknowledges_nothing(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, error: type[MasisError], status: int
) -> None:
    def fails(requests: object) -> None:
        made = error.__new__(error)  # errors of a step take more than a message
        made.args = ("not now",)
        raise made

    monkeypatch.setattr(bench.ingestion, "receive", fails)
    with client(bench) as opened:
        answer = opened.post("/v1/cases", json=case("a"), headers=SEND)
    assert answer.status_code == status
    assert answer.json()["error"]["http_status"] == status
    assert "not now" not in answer.text


def test_the_openapi_document_names_every_route(bench: Workbench) -> None:
    with client(bench) as opened:
        document = opened.get("/v1/openapi.json").json()
        assert set(document["paths"]) == {
            "/v1/cases",
            "/v1/cases/{id}",
            "/v1/traces",
            "/v1/batches/{id}",
        }
        assert document["components"]["schemas"]["Case"]["required"] == ["id", "query", "evidence"]
        assert opened.get("/healthz").json() == {"ok": True}


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"a": 1},
        {"a": {"token_sha256": "short"}},
        {"a": {"token_sha256": DIGEST}, "b": {"token_sha256": DIGEST}},
        {"a": {"token_sha256": DIGEST, "rules": [{"shares": 1}]}},
        {"a": {"token_sha256": DIGEST, "profile": "langfuze"}},
    ],
)
def test_an_invalid_sources_file_is_named(table: dict[str, Any]) -> None:
    told = r"sources\.a\.profile.*langfuse-traces" if "profile" in str(table) else "file of sources"
    with pytest.raises(SettingsError, match=told):
        read_sources({"sources": table})


class Ingesting(httpx2.Client):
    """A client that holds the token of a source, and the server that it talks to."""

    process: subprocess.Popen[str]
    log: Path

    def logged(self) -> str:
        """What the server has written so far."""
        return self.log.read_text(encoding="utf-8")


@contextmanager
def ingesting(folder: Path, port: int, **environment: str) -> Iterator[Ingesting]:
    """``masis ingest`` on the database of a folder, killed at the end."""
    sources = folder / "sources.toml"
    sources.write_text(
        f'[sources.chatbot]\ntoken_sha256 = "{DIGEST}"\nrequests_per_minute = 60000\nburst = 1000\n'
    )
    arguments = ("ingest", "--port", port, "--sources", sources, "--db", folder / "masis.db")
    with Ingesting(base_url=f"http://127.0.0.1:{port}", headers=SEND) as opened:
        opened.log = folder / "ingest.log"
        with (
            opened.log.open("a") as stream,
            start(*arguments, environment=environment, output=stream) as opened.process,
        ):
            try:
                until(lambda: _answers(port), "the server answers")
                yield opened
            finally:
                opened.process.kill()


def audited(opened: httpx2.Client, case_id: str) -> dict[str, Any]:
    until(lambda: opened.get(f"/v1/cases/{case_id}").json().get("audited"), "the case is audited")
    found: dict[str, Any] = opened.get(f"/v1/cases/{case_id}").json()
    return found


@pytest.mark.slow
def test_received_cases_are_audited_even_after_a_kill(
    tmp_path: Path,
) -> None:
    names = ["a", "b/c"]
    with ingesting(tmp_path, free_port()) as opened:
        assert (
            opened.post("/v1/cases", json={"cases": [case(name) for name in names]}).status_code
            == 202
        )
    with ingesting(tmp_path, free_port(), MASIS_INGEST_DEPTH="quick") as opened:
        for name in names:
            found = audited(opened, name)
            assert (found["id"], found["standing"], found["needs_review"], found["decided"]) == (
                *(name, "wrong", True),
                False,
            )
            assert found["headline"]
    with Workbench.open(tmp_path / "masis.db").store as store:
        assert {store.runs.for_case(name)[0].asked_by for name in names} == {"ingestion"}
        assert store.runs.get(store.runs.for_case("a")[0].id).settings["depth"] == "quick"


def test_only_the_source_learns_its_cases_status(bench: Workbench) -> None:
    with client(bench) as opened:
        assert result(opened, case("a"))["stored"] == 1
        bench.cases.add_one(ADA, a_case("typed"))

        def status(case_id: str = "a") -> Any:
            return opened.get(f"/v1/cases/{case_id}", headers=SEND).json()

        assert opened.get("/v1/cases/typed", headers=SEND).status_code == 404
        assert result(opened, case("typed"))["errors"] == 1
        assert opened.get("/v1/cases/typed", headers=SEND).status_code == 404, (
            "an id alone says nothing"
        )
        assert (status()["standing"], status()["audited"], status()["needs_review"]) == (
            "not_audited",
            False,
            False,
        )
        bench.audits.audit(ADA, bench.store.cases.get("a"))
        assert (status()["standing"], status()["needs_review"], status()["verdict"]) == (
            "wrong",
            True,
            None,
        )
        decide(bench, "a", "reject")
        assert (status()["standing"], status()["decided"], status()["verdict"]) == (
            "decided",
            True,
            "reject",
        )


def test_a_disputed_cases_status_is_hidden_until_settled(
    bench: Workbench,
) -> None:
    bench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    with client(bench) as opened:
        result(opened, case("a"))
        bench.audits.audit(ADA, bench.store.cases.get("a"))

        def status() -> Any:
            return opened.get("/v1/cases/a", headers=SEND).json()

        before = status()
        decide(bench, "a", "approve", "Ada")
        assert status() == before
        decide(bench, "a", "reject", "Bo")
        assert bench.cases.summary("a").state == "needs_adjudication"
        assert status() == before


def _answers(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/healthz").is_success
    except httpx2.HTTPError:
        return False
