"""Attacks on the JSON API, each of which must be refused."""

from __future__ import annotations

import io
import logging
import zipfile
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from masis.errors import ServerUnreachable
from masis.schema.actor import Actor
from masis.schema.base import add_time
from masis.schema.team import QueuePolicy
from masis.server import app
from masis.server.app import CSRF_HEADER
from masis.services import remote_desk
from tests.loopback import Quiet, loopback
from tests.server.conftest import Serve, Served, write_people

REJECT = {"verdict": "reject", "reason": "uncited"}
DECISIONS = "/cases/case-1/decisions"


def bearer(team: Served, token: str) -> httpx2.Client:
    return httpx2.Client(
        base_url=f"{team.url}/api/v1", headers={"authorization": f"Bearer {token}"}, timeout=30
    )


def new_token(team: Served, who: str, **values: object) -> str:
    with team.client(who) as client:
        answer = client.post("/tokens", json={"label": "test", **values})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["text"])


def statuses(client: httpx2.Client) -> tuple[int, int]:
    """The statuses of a read and of a decision."""
    return client.get("/me").status_code, client.post(DECISIONS, json=REJECT).status_code


@pytest.mark.parametrize("origin", [None, "http://127.0.0.1:1", "http://evil.example", "null"])
def test_a_page_of_another_site_can_t_decide_with_a_person_s_cookie(
    team: Served, origin: str | None
) -> None:
    headers = {"cookie": "who=reviewer", "content-type": "application/json"}
    if origin is not None:
        headers["origin"] = origin
    with httpx2.Client(base_url=f"{team.url}/api/v1", headers=headers) as client:
        assert client.post(DECISIONS, json=REJECT).status_code == 403
        # A form of another site can send text/plain without asking first.
        plain = {"content-type": "text/plain", CSRF_HEADER: "1"}
        refused = client.post(DECISIONS, content=b'{"verdict": "reject"}', headers=plain)
        assert refused.status_code in (403, 415)
        asks = {"access-control-request-method": "POST", "origin": "http://evil.example"}
        preflight = client.request("OPTIONS", DECISIONS, headers=asks)
        assert "access-control-allow-origin" not in preflight.headers
        assert preflight.status_code >= 400


def test_another_host_s_name_isn_t_answered(team: Served) -> None:
    with team.client("reviewer", host="evil.example") as client:
        assert client.get("/me").status_code == 421


def test_a_token_ends_with_its_owner_s_access(team: Served) -> None:
    assert team.people is not None
    with bearer(team, new_token(team, "lead")) as client:
        assert statuses(client) == (200, 200)
        assert client.get("/exports/decided").status_code == 200
        write_people(team.people, lead="viewer", admin="admin")  # a lower role in mid-flight
        assert statuses(client) == (200, 403)
        assert client.get("/exports/decided").status_code == 403
        write_people(team.people, admin="admin")
        assert statuses(client) == (401, 401)


def test_a_token_has_no_more_than_its_own_role_even_if_its_owner_rises(team: Served) -> None:
    assert team.people is not None
    with bearer(team, new_token(team, "lead", role="viewer")) as client:
        assert statuses(client) == (200, 403)
        write_people(team.people, lead="admin")
        assert statuses(client) == (200, 403)
    with team.client("reviewer") as client:
        answer = client.post("/tokens", json={"label": "higher", "role": "lead"})
    assert answer.status_code in (401, 403)


def test_a_revoked_or_expired_token_is_refused_at_the_next_request(
    team: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = new_token(team, "reviewer", days=2)
    with bearer(team, text) as client, team.client("reviewer") as owner:
        (known,) = owner.get("/tokens").json()
        assert text not in str(known)
        assert statuses(client)[0] == 200
        assert owner.get("/tokens").json()[0]["used_at"] is not None
        assert owner.delete(f"/tokens/{known['id']}").json()["revoked_by"] == "reviewer"
        assert statuses(client) == (401, 401)
    with bearer(team, new_token(team, "reviewer", days=2)) as client:
        assert statuses(client)[0] == 200
        database = team.workbench.store.database
        later = add_time(database.now(), timedelta(days=3))
        monkeypatch.setattr(database, "now", lambda: later)
        assert statuses(client) == (401, 401)


def test_a_leaked_token_can_t_create_one_that_outlives_it(team: Served) -> None:
    with bearer(team, new_token(team, "admin", days=1)) as stolen, team.client("admin") as owner:
        refused = stolen.post("/tokens", json={"label": "another", "days": 366})
        assert refused.status_code == 403
        assert "with a token" in refused.text
        assert len(owner.get("/tokens").json()) == 1


def test_tokens_of_others_are_an_admin_s_business(team: Served) -> None:
    new_token(team, "lead")
    with team.client("lead") as lead, team.client("reviewer") as reviewer:
        (token,) = lead.get("/tokens").json()
        assert reviewer.get("/tokens").json() == []
        assert reviewer.delete(f"/tokens/{token['id']}").status_code == 403
    with team.client("admin") as admin:
        assert admin.delete(f"/tokens/{token['id']}").status_code == 200


def test_guessing_tokens_is_slowed_down_and_no_token_is_logged(
    team: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    good = new_token(team, "reviewer")
    found = set()
    for number in range(app.WRONG_TOKENS + 5):
        with bearer(team, f"masis_{number}") as client:
            found.add(client.get("/me").status_code)
    assert found == {401, 429}
    with bearer(team, good) as client:
        assert client.get("/me").status_code == 200  # a right token is never slowed down
    assert good not in caplog.text
    assert "masis_" not in caplog.text


def test_a_replayed_token_of_a_decision_gives_another_person_nothing(served: Served) -> None:
    body = {**REJECT, "note": "a secret of Ada", "token": "seen-on-the-wire"}
    with served.client("Ada") as ada, served.client("Ben") as ben:
        assert ada.post(DECISIONS, json=body).status_code == 200
        replayed = ben.post(DECISIONS, json={**REJECT, "token": "seen-on-the-wire"})
        assert replayed.status_code == 400
        assert "a secret of Ada" not in replayed.text


def test_a_body_that_is_too_large_isn_t_read(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "LONGEST_BODY", 1000)
    with served.client("Ada") as client:
        answer = client.post("/cases/case-1/comments", json={"text": "x" * 2000})
        assert answer.status_code == 413
        chunks = iter([b'{"text": "', b"x" * 600, b"x" * 600, b'"}'])
        headers = {"content-type": "application/json"}
        answer = client.post("/cases/case-1/comments", content=chunks, headers=headers)
        assert answer.status_code == 413


def test_a_body_of_many_unknown_fields_is_refused_before_each_becomes_an_error(
    served: Served,
) -> None:
    fields = ",".join(f'"{number}" :1' for number in range(app.MOST_FIELDS + 1))
    headers = {"content-type": "application/json"}
    with served.client("Ada") as client:
        answer = client.post("/cases/case-1/comments", content=f"{{{fields}}}", headers=headers)
        assert answer.status_code == 400
        assert "more than 100,000 fields" in answer.text
        assert len(answer.content) < 10_000


def test_a_number_that_no_column_holds_is_an_error_and_no_failure(served: Served) -> None:
    with served.client("Ada") as client:
        for number in (2**63, 10**30):
            paged = client.get("/cases", params={"page": number})
            decided = client.post(DECISIONS, json={**REJECT, "iteration": number})
            listed = client.get("/decisions", params={"limit": number})
            for answer in (paged, decided, listed):
                assert 400 <= answer.status_code < 500, answer.text


def test_deep_json_and_odd_numbers_are_errors_and_no_failures(served: Served) -> None:
    headers = {"content-type": "application/json"}
    bodies = (
        b"[" * 100_000,
        b'{"values": ' + b'{"a": ' * 5_000 + b"1" + b"}" * 5_000 + b"}",
        b'{"values": {"a": 1e999}}',
        b'{"values": {"a": "\xff"}}',
        b'{"values": {"a": "\\ud800"}}',
        b'{"values": null}',
        b"\x00",
    )
    with served.client("Ada") as client:
        for body in bodies:
            answer = client.put("/drafts/case:case-1", content=body, headers=headers)
            assert answer.status_code < 500, (body[:40], answer.text)


def test_a_person_sends_no_more_than_the_limit(
    served: Served, monkeypatch: pytest.MonkeyPatch, serve_api: Serve
) -> None:
    monkeypatch.setattr(app, "REQUEST_BURST", 3)
    monkeypatch.setattr(app, "REQUESTS_PER_SECOND", 0.01)
    limited = serve_api()
    with limited.client("Ada") as ada, limited.client("Ben") as ben:
        assert [ada.get("/me").status_code for _ in range(4)] == [200, 200, 200, 429]
        assert int(ada.get("/me").headers["retry-after"]) > 1
        assert ben.get("/me").status_code == 200


def test_a_blind_reviewer_learns_nothing_of_the_audit_or_of_others(team: Served) -> None:
    workbench = team.workbench
    lead = Actor(name="lead", roles=("lead",), authenticated=True)
    run = workbench.cases.open("case-1").run
    assert run is not None
    blind = QueuePolicy(machine="after", share=1.0, reviewers=2, rule="adjudicated")
    workbench.team.put_in_force(lead, blind)
    with team.client("lead") as other, team.client("reviewer") as reviewer:
        paths = (
            "/cases/case-1",
            "/cases",
            "/cases?waiting=true",
            "/decisions",
            "/audits/" + run.id,
        )
        before = [reviewer.get(path).json() for path in paths]
        decided = other.post(DECISIONS, json={**REJECT, "note": "an opinion"})
        assert decided.status_code == 200
        after = [reviewer.get(path).json() for path in paths]
        # The version counts entries, so that a decision on a stale view is refused.
        assert _without_version(after) == _without_version(before)
        assert reviewer.get(f"/runs/{run.id}").status_code == 403
        for query in ("viewer=lead", "open_to=lead", "undecided_by=lead"):
            assert reviewer.get(f"/cases?{query}").status_code == 400, query
        for query in ("flags=hallucination", "quality_from=0.9", "reasons=low_quality"):
            assert reviewer.get(f"/cases?{query}").json()["total"] == before[1]["total"], query
        rows = reviewer.get("/cases?order=risk").json()["rows"]
        assert all(row["quality"] is None and row["headline"] is None for row in rows)


def _without_version(value: object) -> object:
    if isinstance(value, dict):
        skipped = ("version", "updated_at")
        return {key: _without_version(item) for key, item in value.items() if key not in skipped}
    return [_without_version(item) for item in value] if isinstance(value, list) else value


def test_a_program_s_name_can_t_be_borrowed(served: Served) -> None:
    for name in ("acceptance policy", "x" * 81, "%00", "a%0Ab%00"):
        with served.client() as client:
            answer = client.post(DECISIONS, json=REJECT, headers={"x-masis-reviewer": name})
            assert answer.status_code == 400, name


def test_a_client_writes_only_what_it_asked_for(tmp_path: Path) -> None:
    def archive(name: str) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as made:
            made.writestr("out.jsonl", "{}")
            made.writestr(name, "stolen")
        return out.getvalue()

    for name in ("../evil", "/etc/evil", "other.txt", "out.jsonl/../../evil", "out.jsonl\\..\\e"):
        content = archive(name)

        class Handler(Quiet):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(content)  # noqa: B023 (used within this round)

        with (
            loopback(Handler) as url,
            remote_desk.RemoteDesk(url) as desk,
            pytest.raises(ServerUnreachable, match="may not"),
        ):
            desk.export("claims", f"{tmp_path}/out.jsonl")
    assert not any(path.is_file() for path in tmp_path.rglob("*"))
