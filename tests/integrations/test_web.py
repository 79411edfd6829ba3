"""The ingestion server: acknowledged cases are stored, sources are limited, and rules select the
cases for the queue.
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
from masis.services import Workbench, background
from masis.services.arrivals import ingestion
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
    app = web.application(bench.ingestion, {"chatbot": source, "other": other})
    return TestClient(app, base_url="http://127.0.0.1:8700")


def wait_until_done(http_client: TestClient, address: str) -> dict[str, Any]:
    until(
        lambda: http_client.get(address, headers=SEND).json()["state"] == "done",
        "the request is read",
    )
    result: dict[str, Any] = http_client.get(address, headers=SEND).json()["result"]
    return result


def result(http_client: TestClient, body: Any) -> dict[str, Any]:
    """Send a body (JSON Lines as bytes, or one document) and return the result once it's read."""
    request = (
        {"content": body, "headers": NDJSON}
        if isinstance(body, bytes)
        else {"json": body, "headers": SEND}
    )
    response = http_client.post("/v1/cases", **request)
    assert response.status_code == 202
    return wait_until_done(http_client, response.json()["status"])


def stored_ids(bench: Workbench) -> list[str]:
    return [case.id for case in bench.store.cases.iterate()]


def test_single_cases_lists_and_json_lines_are_stored_and_can_be_polled(bench: Workbench) -> None:
    with client(bench) as http_client:
        response = http_client.post("/v1/cases", json=case("one"), headers=SEND)
        assert response.status_code == 202
        assert response.headers["location"] == response.json()["status"]
        assert wait_until_done(http_client, response.json()["status"])["stored"] == 1
        assert result(http_client, {"cases": [case("two"), case("three")]})["stored"] == 2
        batch = result(http_client, lines(case("four"), case("one")))
        assert (batch["received"], batch["stored"], batch["unchanged"], batch["errors"]) == (
            2,
            1,
            1,
            0,
        )
    assert set(stored_ids(bench)) == {"one", "two", "three", "four"}
    assert bench.store.database.value("SELECT max(length(body)) FROM inbox") == 0


def test_invalid_cases_are_reported_and_others_stored(bench: Workbench) -> None:
    with client(bench) as http_client:
        body = (
            lines(case("a"), case("b", evidence=...))
            + b"{nonsense\n"
            + lines(case("a", query="Other?"))
        )
        batch = result(http_client, body)
        assert (batch["stored"], batch["errors"]) == (1, 3)
        assert any("body, line 2, evidence" in error for error in batch["first_errors"])
        batch = result(http_client, {"cases": [case("c"), {"id": "d"}, 5]})
        assert (batch["stored"], batch["errors"]) == (1, 2)
        # A lone surrogate isn't valid text.
        lone_surrogate = json.dumps(case("half", query="a\ud800b")).encode()
        sent = http_client.post("/v1/cases", content=lone_surrogate, headers=DOCUMENT).json()
        assert wait_until_done(http_client, sent["status"])["errors"] == 1
        assert result(http_client, case("last"))["stored"] == 1


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
    with client(bench, profile="ragas", max_cases=3, rules=(flagged,)) as http_client:
        response = http_client.post(
            "/v1/cases", content=lines(*rows[:3]) + lines({"user_input": 5}), headers=NDJSON
        )
        assert response.status_code == 413, (
            "too many cases are rejected at once if they can be counted"
        )
        batch = result(http_client, lines(*rows[:3]))
        assert (batch["received"], batch["stored"], batch["passed_over"], batch["errors"]) == (
            3,
            1,
            2,
            0,
        )
        assert "more than 3 cases" in result(http_client, rows)["first_errors"][0]
        assert result(http_client, lines({"user_input": 5}))["errors"] >= 1
        assert "isn't JSON" in result(http_client, gzip.compress(lines(rows[0])))["first_errors"][0]
    assert stored_ids(bench) == ["1"]


def test_cases_are_counted_rather_than_evidence_keys(bench: Workbench) -> None:
    claims = [{"text": "It is long.", "verdict": "supported", "evidence": ["chunk_1"]}] * 5
    with client(bench, max_cases=2) as http_client:
        labelled = {"cases": [case(str(n), labels={"claims": claims}) for n in range(2)]}
        assert result(http_client, labelled)["stored"] == 2
        too_long = case("long", answer="So. " * 50_000, labels={"claims": claims})
        sent = http_client.post("/v1/cases", json=too_long, headers=DOCUMENT)
        assert (sent.status_code, "answer_characters" in sent.text) == (422, True)
        body = json.dumps({"cases": [case(str(n)) for n in range(4)]}).replace(
            '"evidence"', '"\\u0065vidence"'
        )
        assert http_client.post("/v1/cases", content=body, headers=DOCUMENT).status_code == 413


def test_a_body_of_line_breaks_needs_little_memory(bench: Workbench) -> None:
    peaks = []
    source = ProgramSource(name="chatbot", token_sha256="0" * 64)
    for size in (1_000_000, 4_000_000):
        body = b"\n" * size
        tracemalloc.start()
        assert IngestionService(bench.store).inspect_body("ndjson", body, source).cases == 0
        peaks.append(tracemalloc.get_traced_memory()[1] / size)
        tracemalloc.stop()
    assert max(peaks) < 3, "bytes of memory per byte sent"


def test_an_idempotency_key_makes_resends_one_request(bench: Workbench) -> None:
    keyed = SEND | {"idempotency-key": "order-1"}
    with client(bench) as http_client:
        answers = [
            http_client.post("/v1/cases", json=case("a"), headers=keyed).json() for _ in range(3)
        ]
        assert len({answer["id"] for answer in answers}) == 1
        assert [answer["repeated"] for answer in answers] == [False, True, True]
        other = http_client.post("/v1/cases", json=case("b"), headers=keyed)
        assert other.status_code == 422
        wait_until_done(http_client, answers[0]["status"])
        assert (
            http_client.post("/v1/cases", json=case("a"), headers=keyed).json()["id"]
            == answers[0]["id"]
        )
    assert stored_ids(bench) == ["a"]
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
    request = {"content": json.dumps(case("a")), "headers": DOCUMENT} | change
    with client(bench, max_body_bytes=2_000, max_cases=3) as http_client:
        response = http_client.post("/v1/cases", **request)
        assert response.status_code == status
        assert response.json()["error"]["hint"]
    assert not bench.store.inbox.waiting(1)
    assert bench.store.database.value("SELECT count(*) FROM inbox") == 0


def test_a_source_is_rate_limited(bench: Workbench) -> None:
    with client(bench, requests_per_minute=0.6, burst=2) as http_client:
        responses = [
            http_client.post("/v1/cases", json=case(str(n)), headers=SEND) for n in range(3)
        ]
        assert [response.status_code for response in responses] == [202, 202, 429]
        assert int(responses[2].headers["retry-after"]) >= 1


def test_a_source_sees_only_its_own_batches(bench: Workbench) -> None:
    with client(bench) as http_client:
        assert http_client.get("/v1/batches/unknown", headers=SEND).status_code == 404
    first = bench.ingestion.receive(
        [web.ReceivedRequest("theirs", "other", None, "d", "json", b"{}")]
    )
    assert first[0].new
    with client(bench) as http_client:
        assert http_client.get("/v1/batches/theirs", headers=SEND).status_code == 404


def test_rules_say_which_cases_enter_the_queue(bench: Workbench) -> None:
    rules = ({"flagged": True}, {"field": "metadata.language", "is_one_of": ["de"]}, {"share": 0.1})
    with client(bench, rules=rules) as http_client:
        sampled = next(str(n) for n in range(100) if is_in_sample(str(n), 0.1))
        unsampled = [
            name for name in (f"case-{n}" for n in range(100)) if not is_in_sample(name, 0.1)
        ][:4]
        cases = [
            case(sampled),
            case(unsampled[0]),
            case(unsampled[1], metadata={"flagged": True}),
            case(unsampled[2], metadata={"language": "de"}),
            case(unsampled[3], metadata={"language": "fr", "flagged": "yes"}),
        ]
        batch = result(http_client, {"cases": cases})
        assert (batch["stored"], batch["passed_over"]) == (3, 2)
    assert stored_ids(bench) == [sampled, unsampled[1], unsampled[2]]
    assert Rule(field="metadata.language", flagged=True).is_met(
        a_case(metadata={"flagged": True, "language": "de"})
    ), "all conditions of a rule must be met"
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
    def fail(requests: object) -> None:
        exception = error.__new__(error)  # Step errors need more arguments than a message.
        exception.args = ("not now",)
        raise exception

    monkeypatch.setattr(bench.ingestion, "receive", fail)
    with client(bench) as http_client:
        response = http_client.post("/v1/cases", json=case("a"), headers=SEND)
    assert response.status_code == status
    assert response.json()["error"]["http_status"] == status
    assert "not now" not in response.text


def test_an_unforeseen_error_in_one_request_is_its_result_and_the_next_one_is_read(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read = ingestion.read_cases

    def breaking(form: Any, body: bytes, profile: str) -> Any:
        if b"broken" in body:
            raise RuntimeError("unforeseen")
        return read(form, body, profile)

    monkeypatch.setattr(ingestion, "read_cases", breaking)
    with client(bench) as http_client:
        refused = result(http_client, case("broken"))
        assert refused["first_errors"] == [
            "body: couldn't be read (RuntimeError). The server's log has the details."
        ]
        assert result(http_client, case("whole"))["stored"] == 1
        assert http_client.get("/healthz").json() == {"ok": True}
    assert "A request of chatbot couldn't be read" in caplog.text


def test_health_says_that_reading_fails_until_it_works_again(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [True]
    waiting = bench.store.inbox.waiting

    def failing(limit: int) -> Any:
        if broken[0]:
            raise RuntimeError("unforeseen")
        return waiting(limit)

    monkeypatch.setattr(bench.store.inbox, "waiting", failing)
    monkeypatch.setattr(background, "AFTER_FAILURE_S", 0.01)
    with client(bench) as http_client:
        until(lambda: http_client.get("/healthz").status_code == 503, "the failure is noticed")
        address = http_client.post("/v1/cases", json=case("a"), headers=SEND).json()["status"]
        broken[0] = False
        assert wait_until_done(http_client, address)["stored"] == 1
        until(lambda: http_client.get("/healthz").status_code == 200, "it works again")


def test_the_openapi_document_names_every_route(bench: Workbench) -> None:
    with client(bench) as http_client:
        document = http_client.get("/v1/openapi.json").json()
        assert set(document["paths"]) == {
            "/v1/cases",
            "/v1/cases/{id}",
            "/v1/traces",
            "/v1/batches/{id}",
        }
        assert document["components"]["schemas"]["Case"]["required"] == ["id", "query", "evidence"]
        assert http_client.get("/healthz").json() == {"ok": True}


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
    message = (
        r"sources\.a\.profile.*langfuse-traces" if "profile" in str(table) else "file of sources"
    )
    with pytest.raises(SettingsError, match=message):
        read_sources({"sources": table})


class IngestionClient(httpx2.Client):
    """A client with the token of a source, and its server process."""

    process: subprocess.Popen[str]
    log: Path

    def read_log(self) -> str:
        """Return the server's log so far."""
        return self.log.read_text(encoding="utf-8")


@contextmanager
def ingesting(folder: Path, port: int, **environment: str) -> Iterator[IngestionClient]:
    """Run ``masis ingest`` on the database of a folder, and kill it at the end."""
    sources = folder / "sources.toml"
    sources.write_text(
        f'[sources.chatbot]\ntoken_sha256 = "{DIGEST}"\nrequests_per_minute = 60000\nburst = 1000\n'
    )
    arguments = ("ingest", "--port", port, "--sources", sources, "--db", folder / "masis.db")
    with IngestionClient(base_url=f"http://127.0.0.1:{port}", headers=SEND) as http_client:
        http_client.log = folder / "ingest.log"
        with (
            http_client.log.open("a") as stream,
            start(*arguments, environment=environment, output=stream) as http_client.process,
        ):
            try:
                until(lambda: _answers(port), "the server answers")
                yield http_client
            finally:
                http_client.process.kill()


def audited(http_client: httpx2.Client, case_id: str) -> dict[str, Any]:
    until(
        lambda: http_client.get(f"/v1/cases/{case_id}").json().get("audited"), "the case is audited"
    )
    status: dict[str, Any] = http_client.get(f"/v1/cases/{case_id}").json()
    return status


@pytest.mark.slow
def test_received_cases_are_audited_even_after_a_kill(
    tmp_path: Path,
) -> None:
    names = ["a", "b/c"]
    with ingesting(tmp_path, free_port()) as http_client:
        assert (
            http_client.post(
                "/v1/cases", json={"cases": [case(name) for name in names]}
            ).status_code
            == 202
        )
    with ingesting(tmp_path, free_port(), MASIS_INGEST_DEPTH="quick") as http_client:
        for name in names:
            status = audited(http_client, name)
            assert (
                status["id"],
                status["standing"],
                status["needs_review"],
                status["decided"],
            ) == (
                *(name, "wrong", True),
                False,
            )
            assert status["headline"]
    with Workbench.open(tmp_path / "masis.db").store as store:
        assert {store.runs.for_case(name)[0].asked_by for name in names} == {"ingestion"}
        assert store.runs.get(store.runs.for_case("a")[0].id).settings["depth"] == "quick"


def test_only_the_source_learns_its_cases_status(bench: Workbench) -> None:
    with client(bench) as http_client:
        assert result(http_client, case("a"))["stored"] == 1
        bench.cases.add_one(ADA, a_case("typed"))

        def status(case_id: str = "a") -> Any:
            return http_client.get(f"/v1/cases/{case_id}", headers=SEND).json()

        assert http_client.get("/v1/cases/typed", headers=SEND).status_code == 404
        assert result(http_client, case("typed"))["errors"] == 1
        assert http_client.get("/v1/cases/typed", headers=SEND).status_code == 404, (
            "knowing the id isn't enough"
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
    with client(bench) as http_client:
        result(http_client, case("a"))
        bench.audits.audit(ADA, bench.store.cases.get("a"))

        def status() -> Any:
            return http_client.get("/v1/cases/a", headers=SEND).json()

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
