"""The JSON API: its table of endpoints, rights, errors and the document that describes it."""

from __future__ import annotations

import json
import sqlite3
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from masis.schema.actor import PERMISSIONS, ROLES, Actor
from masis.schema.codebook import FailureMode
from masis.schema.judge import JudgeContent, SeverityRule
from masis.schema.review import Decision
from masis.schema.team import QueuePolicy
from masis.server import api, endpoints
from masis.server.app import in_matching_order
from masis.server.endpoints import ENDPOINTS, ApiEndpoint
from masis.server.openapi import document
from masis.services import Workbench, access
from masis.services.access import ACTS
from masis.services.batch_actions import BatchRequest
from masis.services.records import CaseFilter
from tests.server.conftest import Serve, Served
from tests.store.factories import a_case, an_audited_case

LEAD = Actor(name="lead", roles=("lead",), authenticated=True)
FIRST = Actor(name="first", roles=("reviewer",), authenticated=True)
SECOND = Actor(name="second", roles=("reviewer",), authenticated=True)


def prepare(served: Served) -> dict[str, str]:
    """Make what the paths of all endpoints name, and return it by the name in the path."""
    workbench = served.workbench
    run = workbench.cases.open("case-1").run
    assert run is not None

    def decision(who: Actor, verdict: str) -> Decision:
        content = {"case_id": "case-2", "verdict": verdict, "reason": "read", "reviewer": who.name}
        run = workbench.cases.open("case-2").run
        return Decision.model_validate({**content, "run_id": run.id if run else None})

    workbench.team.put_in_force(LEAD, QueuePolicy(share=1.0, reviewers=2, rule="agree", agree=2))
    workbench.reviews.submit(FIRST, decision(FIRST, "reject"))
    workbench.reviews.submit(SECOND, decision(SECOND, "escalate"))
    workbench.team.put_in_force(LEAD, QueuePolicy())
    workbench.drafts.save(Actor(name="reviewer", roles=("reviewer",), authenticated=True), "d", {})
    entry = workbench.reviews.submit(
        Actor(name="reviewer", roles=("reviewer",), authenticated=True),
        Decision.model_validate(
            {
                "case_id": "case-3",
                "verdict": "reject",
                "reason": "read",
                "reviewer": "reviewer",
                "run_id": workbench.cases.open("case-3").run.id,  # type: ignore[union-attr]
            }
        ),
    )
    for code, name in (("wrong-date", "Wrong date"), ("wrong-figure", "Wrong figure")):
        workbench.modes.add_mode(LEAD, FailureMode(code=code, name=name))
    reviewer = Actor(name="reviewer", roles=("reviewer",), authenticated=True)
    workbench.modes.apply_to_cases(reviewer, ["wrong-date"], ["case-1"])
    # a second decided question, so that decided cases can be split by question
    an_audited_case(workbench.store, a_case("height", query="How high is it?"), "run-height")
    workbench.reviews.submit(
        FIRST,
        Decision.model_validate(
            {
                "case_id": "height",
                "verdict": "reject",
                "reason": "read",
                "reviewer": "first",
                "run_id": "run-height",
            }
        ),
    )
    severities = (SeverityRule(type="outdated", severity="low"),)
    version = workbench.judge.draft(LEAD, "draft", JudgeContent(severities=severities))
    for system in ("v1", "v2"):
        workbench.cases.add_one(LEAD, a_case("q1", system=system))
    pair = workbench.preferences.next(reviewer)
    assert pair is not None
    return {
        "pair": pair.pair,
        "case": "case-1",
        "version": version.id,
        "entry": entry.id,
        "run": run.id,
        "subject": "case:case-1",
        "form": "decided",
        "name": "pilot",
        "system": "unnamed",
        "token": "unknown",
        "queue": workbench.queues.create(LEAD, "Law", CaseFilter(fields=("Law",))).id,
        "batch": a_batch(workbench),
    }


def a_batch(workbench: Workbench) -> str:
    """Return the id of a batch of the reviewer, which is being undone."""
    reviewer = Actor(name="reviewer", roles=("reviewer",), authenticated=True)
    request = BatchRequest(action="tag", cases=("case-0", "case-1"), names=("old",))
    batch = workbench.batches.start(reviewer, request)
    workbench.batches.run(reviewer, batch.id)
    return workbench.batches.start_undo(reviewer, batch.id).id


OTHER_CASE = {"adjudicate_case": "case-2", "add_labels": "case-3", "label_sentence": "case-3"}
"""Endpoints whose example needs a case in another state."""


def send(client: httpx2.Client, endpoint: ApiEndpoint, known: dict[str, str]) -> httpx2.Response:
    """Send the example of an endpoint."""
    path = endpoint.path.replace(":path}", "}").format(
        **known | {"case": OTHER_CASE.get(endpoint.handler.__name__, known["case"])}
    )
    example = dict(endpoint.example or {})
    body = {"json": example} if endpoint.body is not None else {}
    query = {"params": example} if endpoint.query is not None else {}
    return client.request(endpoint.method, path, **body, **query)


@pytest.mark.parametrize("who", ["", *ROLES])
def test_every_endpoint_asks_for_the_role_of_the_table_of_rights(team: Served, who: str) -> None:
    known = prepare(team)
    refused: dict[str, bool] = {}
    with team.client(who) as client:
        for endpoint in ENDPOINTS:
            answer = send(client, endpoint, known)
            assert answer.status_code < 500, (endpoint.name, answer.text)
            assert answer.headers["cache-control"] == "no-store"
            refused[endpoint.name] = answer.status_code in (401, 403)
            if not who:
                assert answer.status_code == 401
    expected = {
        endpoint.name: not who or ROLES.index(who) < ROLES.index(PERMISSIONS[endpoint.requires])  # type: ignore[arg-type, index]
        for endpoint in ENDPOINTS
    }
    assert refused == expected


def test_the_examples_of_the_document_are_accepted(team: Served) -> None:
    known = prepare(team)
    described = document()
    succeeded = []
    with team.client("reviewer") as reviewer, team.client("lead") as lead:
        for endpoint in ENDPOINTS:
            path = endpoints.PREFIX + endpoint.path.replace(":path}", "}")
            operation = described["paths"][path][endpoint.method.lower()]
            assert operation["summary"]
            if endpoint.example is None:
                continue
            if endpoint.body is not None:
                content = operation["requestBody"]["content"]["application/json"]
                assert content["example"] == endpoint.example
            needs_lead = endpoint.requires in ("oversee", "export")
            answer = send(lead if needs_lead else reviewer, endpoint, known)
            assert answer.status_code == 200, (endpoint.name, answer.text)
            succeeded.append(endpoint.name)
    with_body = {
        endpoint.name
        for endpoint in ENDPOINTS
        # the pages have endpoints of their own beside these
        if endpoint.body is not None and endpoint.handler.__module__ == api.__name__
    }
    assert with_body <= set(succeeded), "every endpoint with a body has an example"


def test_the_document_names_every_schema_it_refers_to(served: Served) -> None:
    with served.client() as client:
        described = client.get("/openapi.json").json()
    text = json.dumps(described)
    named = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert named <= set(described["components"]["schemas"])
    assert str(served.workbench.database) not in text
    assert "masis/" not in text, "the document names no files of the server"
    parameters = {
        parameter["name"]
        for path in described["paths"].values()
        for operation in path.values()
        for parameter in operation["parameters"]
    }
    assert "order" in parameters
    assert not parameters & {"viewer", "open_to", "undecided_by"}


def test_a_new_endpoint_is_served_described_and_in_the_table_of_rights(
    serve_api: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "ENDPOINTS", added := [*ENDPOINTS])
    monkeypatch.setattr("masis.server.app.ENDPOINTS", added)
    monkeypatch.setattr("masis.server.openapi.ENDPOINTS", added)
    monkeypatch.setattr(endpoints, "ACTS", acts := [*ACTS])

    @endpoints.endpoint("GET", "/moons/{moon}", "oversee", "look at moons")
    def show_moon(call: endpoints.ApiCall) -> dict[str, str]:
        """Return a moon."""
        call.workbench.access.require(call.actor, "oversee", "look at moons")
        return {"moon": call.path["moon"]}

    served = serve_api(signed_in=True)
    with served.client("lead") as lead, served.client("reviewer") as reviewer:
        assert lead.get("/moons/io").json() == {"moon": "io"}
        assert reviewer.get("/moons/io").status_code == 403
    assert access.Act("oversee", "look at moons", "API", ("GET /api/v1/moons/{moon}",)) in acts
    document.cache_clear()
    assert "/api/v1/moons/{moon}" in document()["paths"]
    document.cache_clear()


def test_more_specific_paths_come_first() -> None:
    paths = [endpoint.path for endpoint in in_matching_order(ENDPOINTS)]
    assert paths.index("/cases/{case:path}/lease") < paths.index("/cases/{case:path}")


@pytest.mark.parametrize("case_id", ["a/b", "a/decisions", "50% [x] ü", "..", "a?b#c", " a "])
def test_a_case_is_found_whatever_its_id(served: Served, case_id: str) -> None:
    with served.client("Ada") as client:
        added = client.post("/cases", json={"cases": [a_case(case_id).to_json_dict()]})
        assert added.json() == {"added": 1, "unchanged": 0, "conflicts": []}
        quoted = quote(case_id, safe="").replace(".", "%2E")
        shown = client.get(f"/cases/{quoted}")
        assert shown.status_code == 200, shown.text
        assert shown.json()["case"]["id"] == case_id
        decided = client.post(
            f"/cases/{quoted}/decisions", json={"verdict": "reject", "reason": "uncited"}
        )
        assert decided.status_code == 200, decided.text


WRONG: list[tuple[str, str, dict[str, Any], int, str]] = [
    ("GET", "/cases/nothing", {}, 404, "there is no case 'nothing'"),
    ("GET", "/cases/case-11", {}, 404, "Did you mean"),
    ("GET", "/cases?size=9999", {}, 400, "size"),
    ("GET", "/cases?sise=9", {}, 400, "sise"),
    ("GET", "/cases?order=nothing", {}, 400, "order"),
    ("POST", "/cases", {"json": {"cases": []}}, 400, "cases"),
    ("POST", "/cases", {"json": {"cases": [{"id": "x"}]}}, 400, "cases[0]"),
    ("POST", "/cases/case-1/decisions", {"json": {"verdict": "perhaps"}}, 400, "verdict"),
    ("POST", "/cases/case-1/decisions", {"json": {"verdict": "reject"}}, 400, "reason"),
    ("POST", "/cases/case-1/decisions", {"json": {"verdict": "reject", "reson": ""}}, 400, "reson"),
    (
        "POST",
        "/cases/case-1/decisions",
        {"json": {"verdict": "escalate", "labels": [{"text": "x", "lable": "partial"}]}},
        400,
        "Did you mean 'label'?",
    ),
    (
        "POST",
        "/cases/case-1/labels",
        {"json": {"labels": [{"text": "x", "label": "partial", "severty": "low"}]}},
        400,
        "labels[0].severty",
    ),
    (
        "POST",
        "/cases/case-1/decisions",
        {"json": {"verdict": "override", "reason": "unclear", "corrected_answer": "So [99]."}},
        400,
        "match any evidence",
    ),
    ("POST", "/cases/case-1/decisions", {"content": b"{", "headers": {}}, 415, "JSON"),
    (
        "POST",
        "/cases/case-1/decisions",
        {"content": b"{", "headers": {"content-type": "application/json"}},
        400,
        "JSON",
    ),
    (
        "POST",
        "/cases/case-1/decisions",
        {"json": {"verdict": "reject", "reason": "uncited", "version": 99}},
        409,
        "changed",
    ),
    ("POST", "/decisions/nothing/undo", {}, 404, "nothing"),
    ("GET", "/exports/nothing", {}, 400, "There are"),
    ("GET", "/exports/claims?archive=../x", {}, 400, "archive"),
    ("GET", "/runs/nothing", {}, 404, "nothing"),
    ("GET", "/audits/nothing", {}, 404, "nothing"),
    ("POST", "/audits", {"json": {"cases": ["case-1", "nothing"]}}, 404, "nothing"),
    ("GET", "/nothing", {}, 404, "openapi.json"),
    ("PATCH", "/me", {}, 405, "Method Not Allowed"),
]


@pytest.mark.parametrize(("method", "path", "sent", "status", "names"), WRONG)
def test_a_wrong_request_gets_an_error_object_that_says_what_to_fix(
    served: Served, method: str, path: str, sent: dict[str, Any], status: int, names: str
) -> None:
    before = served.workbench.store.decisions.head()
    with served.client("Ada") as client:
        answer = client.request(method, path, **sent)
    error = answer.json()["error"]
    assert (answer.status_code, error["status"]) == (status, status), answer.text
    assert names in json.dumps(error), answer.text
    assert served.workbench.store.decisions.head() == before


def test_a_decision_sent_twice_with_its_token_is_recorded_once(served: Served) -> None:
    body = {"verdict": "reject", "reason": "uncited", "token": "t1"}
    with served.client("Ada") as client:
        first, again = (client.post("/cases/case-1/decisions", json=body) for _ in range(2))
        assert first.json() == again.json()
        other = client.post(
            "/cases/case-1/decisions", json={**body, "verdict": "escalate", "reason": ""}
        )
        assert (other.status_code, other.json()["error"]["field"]) == (400, "token")
        kinds = [entry["decision"]["kind"] for entry in client.get("/decisions").json()]
    assert kinds.count("decision") == 1


def test_a_queue_is_renamed_over_http_by_its_id(served: Served) -> None:
    with served.client("Ada") as client:
        client.post("/queues", json={"name": "Law"})
        renamed = client.put("/queues/law", json={"name": "Old law"})
        assert (renamed.status_code, renamed.json()["name"]) == (200, "Old law"), renamed.text
        assert client.get("/queues").json()[0]["queue"]["name"] == "Old law"


def test_unknown_citations_are_kept_if_they_are_acknowledged(served: Served) -> None:
    body = {"verdict": "override", "reason": "unclear", "corrected_answer": "So [99]."}
    with served.client("Ada") as client:
        answer = client.post(
            "/cases/case-1/decisions", json={**body, "acknowledge_citations": True}
        )
    assert answer.json()["decision"]["extra"]["citations_kept"] == ["99"]


def test_a_draft_is_saved_by_field_and_is_its_owner_s_alone(served: Served) -> None:
    with served.client("Ada") as ada, served.client("Ben") as ben:
        ada.put("/drafts/case:case-1", json={"values": {"note": "a", "reason": "b"}})
        ada.put("/drafts/case:case-1", json={"values": {"note": "c"}})
        assert ada.get("/drafts/case:case-1").json()["values"] == {"note": "c", "reason": "b"}
        assert ben.get("/drafts/case:case-1").json() == {"values": {}, "saved_at": None}
        assert ada.delete("/drafts/case:case-1").json() == {"done": True}
        assert ada.get("/drafts/case:case-1").json()["values"] == {}


def test_an_audit_runs_as_a_job_and_its_run_can_be_read(served: Served) -> None:
    from tests.waiting import until

    with served.client("Ada") as client:
        (job,) = client.post("/audits", json={"cases": ["case-5"]}).json()
        assert job["case"] == "case-5"

        def state() -> str:
            return str(client.get(f"/audits/{job['run']}").json()["state"])

        until(lambda: state() == "finished", "the audit finishes")
        assert client.get(f"/runs/{job['run']}").json()["case_id"] == "case-5"
        (again,) = client.post("/audits", json={"cases": ["case-5"]}).json()
        assert (again["run"], again["state"]) == (job["run"], "finished")


def test_a_failure_is_an_error_object_without_texts(
    serve_api: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    served, answer = serve_api(), " ".join(("a", "secret", "answer"))

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(answer)

    def raise_locked(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database is locked")

    with served.client("Ada") as client:
        monkeypatch.setattr(served.workbench.team, "comment", fail)
        failed = client.post("/cases/case-1/comments", json={"text": "x"})
        assert (failed.status_code, failed.json()["error"]["status"]) == (500, 500)
        assert answer not in failed.text + caplog.text
        assert "RuntimeError" in caplog.text
        monkeypatch.setattr(served.workbench.team, "comment", raise_locked)
        busy = client.post("/cases/case-1/comments", json={"text": "x"})
        assert busy.status_code >= 500
        assert "kind" in busy.json()["error"]


def test_a_judge_version_is_written_adopted_and_retired_over_http(team: Served) -> None:
    prepare(team)
    rule = {"id": "unit", "sentence": "Units", "force": "must", "severity": "low"}
    with team.client("reviewer") as reviewer, team.client("lead") as lead:
        written = {"name": "units 1", "content": {"rules": [rule]}}
        assert reviewer.post("/judge/versions", json=written).status_code == 403
        version = lead.post("/judge/versions", json=written).json()
        assert (version["state"], version["author"]) == ("draft", "lead")
        wrong = {"name": "units 2", "content": {"rules": [rule | {"force": "should"}]}}
        assert lead.post("/judge/versions", json=wrong).status_code == 400
        place = f"/judge/versions/{version['id']}"
        assert lead.put(place, json={"note": "n"}).json()["note"] == "n"
        assert lead.post(f"{place}/adopt").json()["state"] == "adopted"
        assert lead.put(place, json={"note": "m"}).status_code == 409
        assert reviewer.get(place).json()["digest"] == version["digest"]
        assert reviewer.get("/judge/versions/nothing").status_code == 404
        assert lead.post(f"{place}/retire").json()["state"] == "retired"


def test_a_pair_is_decided_over_http_without_names_and_seen_by_others_after_their_own_verdict(
    team: Served,
) -> None:
    for system in ("v1-secret", "v2-secret"):
        team.workbench.cases.add_one(LEAD, a_case("q1", system=system, query="Which is it?"))
    with team.client("reviewer") as reviewer, team.client("lead") as lead:
        shown = reviewer.get("/preferences/next")
        assert "secret" not in shown.text
        pair, verdict = shown.json()["task"]["pair"], {"verdict": "left"}
        recorded = reviewer.post(f"/preferences/pairs/{pair}", json=verdict)
        assert recorded.json()["progress"] == {"decided": 1, "total": 1}
        assert "secret" not in recorded.text
        assert reviewer.post(f"/preferences/pairs/{pair}", json=verdict).status_code == 409
        assert reviewer.get("/preferences/results").json()["verdicts"] == 1
        assert reviewer.get("/preferences").json()["rows"][0]["reviewer"]
        assert lead.get("/preferences").json() == {"rows": [], "total": 0}
        assert lead.get("/preferences/results").json()["verdicts"] == 0
        assert lead.get("/preferences", params={"everyone": True}).json()["total"] == 1
        assert reviewer.get("/preferences", params={"everyone": True}).status_code == 403
        undone = reviewer.post("/preferences/undo")
        assert undone.json()["pair"] == pair, undone.text


def test_failure_modes_are_coded_and_counted_over_http_but_not_seen_by_blind_colleagues(
    team: Served,
) -> None:
    prepare(team)
    team.workbench.team.put_in_force(LEAD, QueuePolicy(reviewers=2, rule="adjudicated"))
    with team.client("reviewer") as reviewer, team.client("lead") as lead:
        comment = {"text": "The dose is wrong."}
        assert reviewer.post("/cases/case-4/comments", json=comment).status_code == 200
        found = reviewer.get("/observations", params={"text": "dose", "kinds": "comment"}).json()
        [row] = found["rows"]
        assert (row["text"], row["author"]) == ("The dose is wrong.", "reviewer")
        code = {"codes": ["wrong-figure"], "observation": row["id"]}
        assert reviewer.post("/cases/case-4/codes", json=code).status_code == 200

        def cases_with(client: httpx2.Client, mode: str) -> int:
            counts = client.get("/modes", params={"facet": "mode"}).json()
            return sum(count["cases"] for count in counts if count["mode"] == mode)

        assert cases_with(reviewer, "wrong-figure") == 1
        assert cases_with(lead, "wrong-figure") == 0
        assert lead.get("/observations", params={"text": "dose"}).json()["total"] == 0
        listed = {"modes": "wrong-figure"}
        assert reviewer.get("/cases", params=listed).json()["total"] == 1
        assert lead.get("/cases", params=listed).json()["total"] == 0
        forged = lead.get("/observations", params={"viewer": "reviewer"})
        assert (forged.status_code, forged.json()["error"]["field"]) == (400, "viewer")
        refused = lead.post("/codes", json={"codes": ["wrong-figure"]})
        assert (refused.status_code, refused.json()["error"]["field"]) == (400, "observations")
        merged = {"codes": ["wrong-date"], "into": "wrong-figure"}
        book = lead.post("/codebook/merge", json=merged).json()
        assert {mode["code"]: mode["merged_into"] for mode in book["modes"]} == {
            "wrong-date": "wrong-figure",
            "wrong-figure": None,
        }
