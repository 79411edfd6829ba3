"""A desk on a server gives the results and errors of a desk on a file."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

import masis
from masis.errors import (
    InputError,
    MasisError,
    NotAllowed,
    ResultsHidden,
    ServerUnreachable,
    SettingsError,
    UnknownRecord,
)
from masis.schema.actor import Actor
from masis.schema.team import QueuePolicy
from masis.services import remote_desk
from masis.services.desk import Desk
from masis.services.remote_desk import RemoteDesk
from tests.loopback import Quiet, loopback
from tests.server.conftest import Serve, Served
from tests.store.factories import a_case

Step = Callable[[Desk, Path], Any]

STEPS: dict[str, Step] = {
    "queue": lambda desk, _: [row.id for row in desk.queue(limit=3)],
    "queue with a filter": lambda desk, _: [row.id for row in desk.queue(text="bridge", limit=2)],
    "queue with a wrong filter": lambda desk, _: desk.queue(sise="x"),
    "queue with a wrong order": lambda desk, _: desk.queue(order="nothing"),
    "show": lambda desk, _: desk.show("case-1"),
    "show an unknown case": lambda desk, _: desk.show("case-11"),
    "decide": lambda desk, _: desk.decide("case-1", "reject", reason="uncited", note="n"),
    "decide without a reason": lambda desk, _: desk.decide("case-2", "override"),
    "decide wrongly": lambda desk, _: desk.decide("case-2", "perhaps"),  # type: ignore[arg-type]
    "approve with serious issues": lambda desk, _: desk.decide("case-0", "approve"),
    "decide an older version": lambda desk, _: desk.decide(
        "case-2", "reject", reason="uncited", version=77
    ),
    "label": lambda desk, _: desk.label(
        "case-1", [{"text": "It was opened in 1932", "label": "supported"}]
    ),
    "label without words": lambda desk, _: desk.label("case-1", []),
    "label what isn't there": lambda desk, _: desk.label(
        "case-1", [{"text": "nothing", "label": "supported"}]
    ),
    "log": lambda desk, _: desk.log("case-1"),
    "undo": lambda desk, _: desk.undo(desk.log("case-1")[0].id),
    "undo twice": lambda desk, _: desk.undo(desk.log("case-1")[1].id),
    "undo nothing": lambda desk, _: desk.undo("nothing"),
    "adjudicate": lambda desk, _: desk.adjudicate("case-1", "reject", reason="uncited"),
    "override citing nothing": lambda desk, _: desk.decide(
        "case-2", "override", reason="unclear", corrected_answer="So [99]."
    ),
    "a label that doesn't exist": lambda desk, _: desk.decide(
        "case-2", "escalate", labels={"text": "It was opened in 1932", "label": "suported"}
    ),
    "adjudicate with a cause": lambda desk, _: desk.adjudicate(
        "case-1", "reject", reason="uncited", cause="gap", rubric_sentence="Cite each claim."
    ),
    "decide a file": lambda desk, _: [
        result._replace(entry=None)
        for result in desk.decide_all(
            [
                {"case": "case-2", "verdict": "reject", "reason": "uncited"},
                {"case": "nothing", "verdict": "reject", "reason": "uncited"},
                {"case": "case-3", "verdict": "perhaps"},
                "no object",
            ],
            dry_run=True,
        )
    ],
    "preview a queue": lambda desk, _: desk.preview_queue(fields=["Engineering"], states=["new"]),
    "create a queue": lambda desk, _: desk.create_queue("The bridge", text="bridge"),
    "create a queue twice": lambda desk, _: desk.create_queue("The bridge"),
    "fill a queue by nothing": lambda desk, _: desk.create_queue("Other", feilds=["x"]),
    "change a queue": lambda desk, _: desk.change_queue(
        "The bridge", instructions="Read.", policy={"lease_minutes": 20}
    ),
    "rename a queue": lambda desk, _: desk.change_queue("The bridge", name="The old bridge"),
    "name a queue as before": lambda desk, _: desk.change_queue(
        "The old bridge", name="The bridge"
    ),
    "change no queue": lambda desk, _: desk.change_queue("nothing", instructions="Read."),
    "change a queue wrongly": lambda desk, _: desk.change_queue("the-bridge", policy={"x": 1}),
    "list queues": lambda desk, _: desk.queues(),
    "list a queue": lambda desk, _: [row.id for row in desk.queue(queue="The bridge", limit=2)],
    "list no queue": lambda desk, _: desk.queue(queue="nothing"),
    "decide in a queue": lambda desk, _: desk.decide(
        "case-4", "reject", reason="uncited", queue="The bridge"
    ),
    "decide in no queue": lambda desk, _: desk.decide(
        "case-4", "reject", reason="uncited", queue="nothing"
    ),
    "archive a queue": lambda desk, _: desk.change_queue("the-bridge", archived=True),
    "decide in an archived queue": lambda desk, _: desk.decide(
        "case-4", "reject", reason="uncited", queue="the-bridge"
    ),
    "comment": lambda desk, _: desk.comment("case-2", "Look at the date."),
    "comment nothing": lambda desk, _: desk.comment("case-2", " "),
    "assign": lambda desk, _: desk.assign(["case-2"], ["Ben"]),
    "unassign": lambda desk, _: desk.assign(["case-2"], ["Ben"], remove=True),
    "tag": lambda desk, _: desk.tag(["case-2"], ["dates"]),
    "preview a batch": lambda desk, _: desk.preview_batch("tag", names=["many"], fields=["none"]),
    "preview an approval": lambda desk, _: desk.preview_batch("approve", ["case-0", "case-1"]),
    "apply a batch": lambda desk, _: desk.apply_batch("tag", names=["many"], text="bridge"),
    "undo a batch": lambda desk, _: desk.undo_batch(desk.list_batches()[0].id),
    "undo no batch": lambda desk, _: desk.undo_batch("nothing"),
    "apply a batch without a reason": lambda desk, _: desk.apply_batch("reject", ["case-2"]),
    "apply an unknown action": lambda desk, _: desk.apply_batch("explode", ["case-2"]),
    "apply a batch to unknown cases": lambda desk, _: desk.apply_batch(
        "tag", ["nothing"], names=["many"]
    ),
    "apply a batch to nothing": lambda desk, _: desk.apply_batch(
        "reject", ["case-1"], reason="unsupported"
    ),
    "apply a batch by a wrong filter": lambda desk, _: desk.apply_batch(
        "tag", names=["many"], feilds=["x"]
    ),
    "label a sentence": lambda desk, _: desk.label_sentence(
        "case-1", "opened in 1932", "supported"
    ),
    "label a sentence that isn't there": lambda desk, _: desk.label_sentence(
        "case-1", "nothing", "supported"
    ),
    "label with a passage": lambda desk, _: desk.decide(
        "case-3",
        "escalate",
        labels=[
            {
                "text": "It was opened in 1932",
                "label": "supported",
                "evidence": [{"evidence_id": "1", "text": "opened on 19 March 1932"}],
            }
        ],
    ),
    "verify without passages": lambda desk, _: desk.verify_without_passages("case-3", claim=1),
    "verify no claim": lambda desk, _: desk.verify_without_passages("case-3", claim=77),
    "minimal evidence": lambda desk, _: desk.minimal_evidence("case-3"),
    "minimal evidence of nothing": lambda desk, _: desk.minimal_evidence("nothing"),
    "export": lambda desk, folder: desk.export("decided", folder / "decided.jsonl"),
    "export a table": lambda desk, folder: desk.export(
        "claims", folder / "claims.csv", encoding="csv", states=("needs_review",)
    ),
    "export a folder": lambda desk, folder: desk.export("hf", folder / "hf"),
    "export nothing": lambda desk, folder: desk.export("nothing", folder / "nothing"),
    "audit": lambda desk, _: [
        (run.case_id, run.final_answer, run.needs_review)
        for run in desk.audit([a_case("case-5"), a_case("new-1")], progress=False)
    ],
    "audit a conflict": lambda desk, _: desk.audit(
        [a_case("case-5", query="Another question?")], progress=False
    ),
}

VOLATILE = (
    "at",
    "id",
    "digest",
    "previous",
    "payload_digest",
    "run_id",
    "token",
    "undoes",
    "entry_id",
)


def plain(value: Any) -> Any:
    """A result without what differs between two runs: times, ids and digests."""
    if isinstance(value, MasisError):
        return (type(value).__name__, str(value))
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        skipped = (*VOLATILE, "updated_at", "imported_at", "started_at", "ended_at", "about")
        return {key: plain(item) for key, item in value.items() if key not in skipped}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.name if isinstance(value, Path) else value


def outcome(step: Step, desk: Desk, folder: Path) -> Any:
    try:
        return plain(step(desk, folder))
    except MasisError as error:
        return plain(error)


def test_every_step_has_the_same_result_on_a_file_and_on_a_server(
    serve_api: Serve, api_database: Path, tmp_path: Path
) -> None:
    served = serve_api()
    folders = [tmp_path / name for name in ("file", "server")]
    for folder in folders:
        folder.mkdir()
    file = Path(shutil.copy(api_database, tmp_path / "local.db"))
    with (
        masis.Desk(file, reviewer="Ada") as local,
        masis.Desk(served.url, reviewer="Ada") as remote,
    ):
        assert isinstance(remote, RemoteDesk)
        assert not isinstance(local, RemoteDesk)
        differ: dict[str, Any] = {}
        for name, step in STEPS.items():
            on_file, on_server = outcome(step, local, folders[0]), outcome(step, remote, folders[1])
            if on_server != on_file:
                differ[name] = (on_file, on_server)
    assert differ == {}
    made = [
        sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        for folder in folders
    ]
    assert made[0] == made[1]
    assert "decided.jsonl.manifest.json" in made[0]


def test_a_desk_with_a_token_acts_for_its_owner(team: Served, tmp_path: Path) -> None:
    with team.client("reviewer") as client:
        token = client.post("/tokens", json={"label": "desk"}).json()["text"]
    with masis.Desk(team.url, token=token) as desk:
        assert desk.me().name == "reviewer"
        desk.show("case-1")
        entry = desk.decide("case-1", "reject", reason="uncited")
        assert entry.decision is not None
        assert entry.decision.reviewer == "reviewer"
        assert entry.decision.extra["signed_in_by"] == "token"
        assert entry.decision.machine_shown == ("answer", "verdicts", "scores", "issues")
        with pytest.raises(NotAllowed, match="lead role"):
            desk.export("decided", tmp_path / "never.jsonl")
    with masis.Desk(team.url) as desk, pytest.raises(NotAllowed, match="Nobody has signed in"):
        desk.queue()
    with (
        masis.Desk(team.url, token="masis_x") as desk,
        pytest.raises(NotAllowed, match="token is unknown, revoked or expired"),
    ):
        desk.queue()


def test_a_blind_decision_over_a_server_is_recorded_as_blind(team: Served) -> None:
    lead = Actor(name="lead", roles=("lead",), authenticated=True)
    team.workbench.team.put_in_force(lead, QueuePolicy(machine="after"))
    with team.client("reviewer") as client:
        token = client.post("/tokens", json={"label": "desk"}).json()["text"]
    with masis.Desk(team.url, token=token) as desk:
        view = desk.show("case-1")
        assert view.machine_hidden
        assert view.run is None
        entry = desk.decide("case-1", "reject", reason="uncited")
        assert entry.decision is not None
        assert entry.decision.machine_shown == ()


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("http://audits.example.org", "over http"),
        ("http://10.0.0.7:8501", "over http"),
        ("https://", "isn't an address"),
        ("https://user:pw@host", "isn't an address"),
        ("https://host?x=1", "isn't an address"),
    ],
)
def test_an_address_over_plain_http_or_without_a_host_is_refused(url: str, names: str) -> None:
    with pytest.raises(SettingsError, match=names):
        masis.Desk(url, token="t")


def test_plain_http_can_be_allowed_and_a_desk_on_a_file_takes_no_token(tmp_path: Path) -> None:
    masis.Desk("http://audits.example.org", token="t", insecure=True).close()
    with pytest.raises(InputError, match="only for a server"):
        masis.Desk(tmp_path / "a.db", token="t")


def failing(statuses: list[int], headers: dict[str, str] | None = None) -> type[Quiet]:
    """A server that fails with these statuses in turn, then says who asks."""

    class Handler(Quiet):
        def do_GET(self) -> None:
            status = statuses.pop(0) if statuses else 200
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(
                b'{"name": "Ada", "roles": [], "permissions": [], "sign_in": false,'
                b' "machine_shown": "first", "app_version": "0.2.0"}'
            )

    return Handler


def test_an_overloaded_server_is_asked_again_and_another_one_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("masis.services.remote_desk.time.sleep", waits.append)
    with loopback(failing([503, 429])) as url, masis.Desk(url) as desk:
        assert desk.me().name == "Ada"
    assert len(waits) == 2
    for handler, asks, names in (
        (failing([503] * 9), RemoteDesk.me, "overloaded"),
        (failing([302], {"location": "http://evil.example/"}), RemoteDesk.me, "not as a MASIS"),
        (failing([]), RemoteDesk.queue, "isn't one of this version"),
    ):
        with (
            loopback(handler) as url,
            RemoteDesk(url) as desk,
            pytest.raises(ServerUnreachable, match=names),
        ):
            asks(desk)
    with (
        RemoteDesk("http://127.0.0.1:9") as desk,
        pytest.raises(ServerUnreachable, match="can't be reached"),
    ):
        desk.me()


def test_a_comment_whose_answer_was_lost_is_not_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[str] = []

    def lose(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.method)
        raise httpx2.ReadTimeout("lost", request=request)

    monkeypatch.setattr("masis.services.remote_desk.time.sleep", lambda _: None)
    client = httpx2.Client(transport=httpx2.MockTransport(lose))
    with RemoteDesk("http://127.0.0.1:9", client=client) as desk:
        with pytest.raises(ServerUnreachable, match="isn't known whether"):
            desk.comment("case-1", "text")
        assert len(sent) == 1
        with pytest.raises(ServerUnreachable, match="can't be reached"):
            desk.decide("case-1", "reject", reason="uncited")
        assert len(sent) == 5


@pytest.mark.parametrize(("status", "tries"), [(502, 1), (504, 1), (503, 4), (429, 4)])
def test_a_comment_is_sent_again_only_if_the_server_has_not_taken_it(
    monkeypatch: pytest.MonkeyPatch, status: int, tries: int
) -> None:
    sent: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.method)
        return httpx2.Response(status)

    monkeypatch.setattr("masis.services.remote_desk.time.sleep", lambda _: None)
    client = httpx2.Client(transport=httpx2.MockTransport(answer))
    with (
        RemoteDesk("http://127.0.0.1:9", client=client) as desk,
        pytest.raises(ServerUnreachable, match="isn't known whether" if tries == 1 else "again"),
    ):
        desk.comment("case-1", "text")
    assert len(sent) == tries


def test_an_export_has_the_decided_cases_unless_other_states_are_asked_for(
    served: Served, tmp_path: Path
) -> None:
    with masis.Desk(served.url, reviewer="Ada") as desk:
        desk.decide("case-1", "reject", reason="uncited")

        def export_ids(**filters: Any) -> set[str]:
            out = desk.export("decided", tmp_path / "out.csv", **filters)
            lines = out.read_text(encoding="utf-8").splitlines()[1:]
            return {line.partition(",")[0] for line in lines}

        assert export_ids() == {"case-1"}
        assert export_ids(fields=["Engineering"]) == {"case-1"}
        assert export_ids(text="bridge", datasets=["made for tests"]) == {"case-1"}
        assert export_ids(fields=["Law"]) == set()
        assert desk.export("claims", tmp_path / "a.jsonl", any_state=True).stat().st_size > 0
        with pytest.raises(InputError, match=r"Did you mean 'fields'\?"):
            export_ids(feilds=["Law"])
        with pytest.raises(InputError, match=r"split.*train"):
            export_ids(split="trian")
        for out in ("-", "", tmp_path / "none" / "a.jsonl"):
            with pytest.raises(InputError, match="existing folder"):
                desk.export("decided", out)


def test_a_misspelled_field_of_a_label_or_a_request_names_the_right_one(
    served: Served, tmp_path: Path
) -> None:
    with masis.Desk(served.url, reviewer="Ada") as desk:
        with pytest.raises(InputError, match=r"reson.*Did you mean 'reason'\?"):
            desk.decide("case-1", "reject", reson="uncited")  # type: ignore[call-arg]
        desk.decide("case-1", "reject", reason="uncited")
        with pytest.raises(InputError, match="txt"):
            desk.label("case-1", {"txt": "It was", "label": "supported"})
        one = desk.label("case-1", {"text": "It was opened in 1932", "label": "supported"})
        assert one.decision is not None
        assert [label.label for label in one.decision.labels] == ["supported"]
        for values in (("case-1", ["a"]), (["case-1"], "a")):
            with pytest.raises(InputError, match="list of strings"):
                desk.tag(*values)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"limit.*1,000"):
            desk.queue(limit=5000)
        with pytest.raises(UnknownRecord):
            desk.log("nope")


def test_a_token_is_cleaned_and_excludes_another_name(team: Served) -> None:
    with team.client("reviewer") as client:
        token = client.post("/tokens", json={"label": "desk"}).json()["text"]
    with masis.Desk(team.url, token=f"{token}\n") as desk:
        assert desk.me().name == "reviewer"
        (refused,) = desk.decide_all(
            [{"case": "case-1", "verdict": "reject", "reason": "uncited", "reviewer": "lead"}]
        )
        assert "under their own name" in str(refused.error)
    with pytest.raises(SettingsError, match="acts for its owner"):
        masis.Desk(team.url, token=token, reviewer="lead")
    with pytest.raises(SettingsError, match="isn't one"):
        masis.Desk(team.url, token="masis_ä")
    with pytest.raises(InputError, match="with its scheme"):
        masis.Desk("localhost:8599")


def test_results_that_the_policy_hides_are_counted_once_all_cases_are_audited(
    team: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead = Actor(name="lead", roles=("lead",), authenticated=True)
    team.workbench.team.put_in_force(lead, QueuePolicy(machine="after"))
    with team.client("reviewer") as client:
        token = client.post("/tokens", json={"label": "desk"}).json()["text"]
    with masis.Desk(team.url, token=token) as desk:
        with pytest.raises(ResultsHidden, match=r"2 cases audited.*results of 2 of them"):
            desk.audit([a_case("blind-1"), a_case("blind-2")], progress=False)
        for case_id in ("blind-1", "blind-2"):
            assert team.workbench.cases.open(case_id).run is not None
        for name in ("concurrency", "max_cost"):
            with pytest.raises(InputError, match=rf"{name}: isn't possible"):
                desk.audit([a_case("x")], **{name: 1})


def test_cases_are_added_in_requests_of_a_limited_size_and_audited_together(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_desk, "BATCH_BYTES", 1_000)
    sent: list[tuple[str, str]] = []
    with masis.Desk(served.url, reviewer="Ada") as desk:
        assert isinstance(desk, RemoteDesk)
        send = desk._send

        def count(method: str, path: str, *values: Any, **named: Any) -> Any:
            sent.append((method, path))
            return send(method, path, *values, **named)

        monkeypatch.setattr(desk, "_send", count)
        cases = [a_case(f"many-{number}") for number in range(7)]
        runs = desk.audit(cases, progress=False)
    assert [run.case_id for run in runs] == [case.id for case in cases]
    assert 1 < sent.count(("POST", "/cases")) < 7
    assert sent.count(("POST", "/audits")) == 1


def test_a_subclass_of_a_desk_stays_on_its_file(api_database: Path, tmp_path: Path) -> None:
    class OwnDesk(Desk):
        pass

    file = Path(shutil.copy(api_database, tmp_path / "own.db"))
    with OwnDesk(file, reviewer="Ada") as own:
        assert type(own) is OwnDesk
    with masis.Desk("http://127.0.0.1:9") as remote:
        assert type(remote) is RemoteDesk
