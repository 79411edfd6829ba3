"""Health, on its page, in the frame and over HTTP; and the page of settings, with where each value
comes from.
"""

from __future__ import annotations

import json
import shutil
import threading
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from masis.errors import SettingsError
from masis.server.ingestion import IngestionServer
from masis.services import HealthItem, HealthReport, Workbench
from masis.services.maintenance.health import check_store
from masis.settings import LoadedSettings, load
from masis.settings.hosts import AllowedHosts
from masis.store import Store
from masis.ui.admin import health_page, health_reports
from masis.ui.admin.health_reports import HealthReports, TimedReport, check_database
from masis.ui.admin.settings_page import settings_frame
from masis.ui.shell.serve import health_routes
from masis.views.markdown import escape_markdown
from tests.services.test_reassessment import WRONG, judged_before
from tests.ui.conftest import open_page, press, texts
from tests.waiting import PATIENCE_S, join_all, until

SOUND = HealthReport((HealthItem("database", True, "m.db"),))
BROKEN = HealthReport(
    (HealthItem("decision log", False, "entry 3 was altered", "See `masis verify-log`."),)
)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No report of another test."""
    monkeypatch.setattr(health_reports.REPORTS, "_last", None)


def test_health_lists_checks_and_calls_models_only_on_request(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page("health")
    assert "no model was called" in texts(app)
    assert "every model answered" in texts(press(app, "Test the models"))
    monkeypatch.setattr(
        Workbench, "check_models", lambda self: (HealthItem("models", False, "no answer from m-1"),)
    )
    assert "not every model can be used" in texts(press(app, "Test the models"))
    before = health_reports.REPORTS.latest()
    press(app, "Check again")
    assert health_reports.REPORTS.latest() is not before


def test_runs_of_an_older_acceptance_rule_are_reassessed_after_a_preview(
    audited_workbench: Workbench,
) -> None:
    assert "judged every audit" in texts(open_page("health"))
    judged_before(audited_workbench, "old", WRONG, accepted=True)
    app = open_page("health")
    assert "An earlier acceptance rule judged 1 audit." in texts(app)
    assert not [button for button in app.button if button.key == "reassess-do"]
    app.button(key="reassess-look").click().run()
    assert "1 auto-accepted answer would now need review." in texts(app).replace("\\", "")
    assert "fabricated citation 1" in texts(app)
    assert audited_workbench.cases.summary("old").state == "accepted"
    assert app.button(key="reassess-do").disabled  # nobody has said who they are
    app.session_state["reviewer-name"] = "Ada"
    app.run()
    app.button(key="reassess-do").click().run()
    assert not app.exception
    assert audited_workbench.cases.summary("old").state == "needs_review"
    assert "1 auto-accepted answer now need review." in texts(app).replace("\\", "")


def test_failed_checks_are_listed_first_with_hints() -> None:
    found = [
        HealthItem("database", True, "m.db"),
        *BROKEN.items,
        HealthItem("a new thing", True, ""),
    ]
    drawn = health_page.health_frame(found)
    assert list(drawn["Check"]) == ["Decision log", "Database", "A new thing"]
    assert list(drawn["Area"]) == ["Storage", "", "Other"]
    assert list(drawn["Result"]) == [":red[✗ failed]", ":green[✓ passed]", ":green[✓ passed]"]
    assert escape_markdown("See `masis verify-log`.") in drawn["Details"][0]


def test_missing_optional_packages_are_neutral() -> None:
    found = [
        HealthItem("MCP", True, "not installed", absent=True),
        HealthItem("DSPy", True, "installed"),
    ]
    drawn = health_page.health_frame(found)
    assert list(drawn["Result"]) == [":gray[– not installed]", ":green[✓ passed]"]
    assert list(drawn["Check"]) == ["MCP", "DSPy"]


def test_every_page_shows_failed_checks_with_a_link(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Health checks failed" not in texts(open_page())
    monkeypatch.setattr(
        health_reports.REPORTS, "latest", lambda: health_reports.TimedReport(BROKEN, "2026-01-01")
    )
    app = open_page()
    assert ":red[:material/error: **Health checks failed:** decision log.]" in texts(app)
    assert "health" in {link.proto.page for link in app.get("page_link")}


def test_a_full_disk_is_reported_at_once(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("masis.services.maintenance.health.LEAST_FREE_BYTES", 10**18)
    assert "**Health checks failed:** disk." in texts(open_page())


# over HTTP


class Looks:
    """Reports made by looking, counted; one takes ``seconds`` by a clock of its own."""

    def __init__(self, report: HealthReport, seconds: float = 0.0) -> None:
        self.report, self.seconds = report, seconds
        self.count, self.now = 0, 0.0

    def look(self, database: Path) -> HealthReport:
        self.count += 1
        self.now += self.seconds
        return self.report

    def reports(self) -> HealthReports:
        return HealthReports(self.look, lambda: Path("m.db"), lambda: self.now)


def client_of(reports: HealthReports) -> TestClient:
    return TestClient(Starlette(routes=health_routes(reports)))


@pytest.mark.spec("REQ-CRITIC-OBS-005")
def test_the_health_route_returns_only_200_or_503_to_anonymous_clients() -> None:
    sound, broken = (
        client_of(Looks(SOUND).reports()).get("/health.json"),
        client_of(Looks(BROKEN).reports()),
    )
    assert (sound.status_code, sound.json()) == (200, {"ok": True})
    assert sound.headers["cache-control"] == "no-store"
    answer = broken.get("/health.json")
    assert (answer.status_code, answer.json()) == (503, {"ok": False})
    assert broken.get("/healthz").status_code == 200
    assert broken.get("/healthz").text == "ok"


def test_a_database_moved_while_served_fails_a_check(
    copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kept in ("REUSED_AT_LEAST_S", "REUSE_FACTOR"):  # no report is young enough
        monkeypatch.setattr(health_reports, kept, 0)
    asked = TestClient(
        Starlette(routes=health_routes(HealthReports(check_database, lambda: copied)))
    )
    assert asked.get("/health.json").status_code == 200
    copied.rename(tmp_path / "elsewhere.db")
    answer = asked.get("/health.json")
    assert (answer.status_code, answer.json()) == (503, {"ok": False})
    assert not copied.exists()  # looking made no new one
    assert "was moved or removed" in str(check_database(copied).items[0].message)


def test_the_report_fails_if_received_cases_are_not_read() -> None:
    receiving = IngestionServer(cast("Any", None), {}, AllowedHosts(), None)  # nothing reads
    routes = health_routes(Looks(SOUND).reports(), receiving)
    answer = TestClient(Starlette(routes=routes)).get("/health.json")
    assert (answer.status_code, answer.json()) == (503, {"ok": False})


def test_liveness_runs_no_checks() -> None:
    looks = Looks(BROKEN)
    client_of(looks.reports()).get("/healthz")
    assert looks.count == 0


def test_polling_runs_checks_at_most_every_five_seconds_and_5_percent_of_the_time() -> None:
    quick, slow = Looks(SOUND), Looks(SOUND, seconds=3)
    asked = quick.reports()
    for _ in range(10):
        asked.current()
    assert quick.count == 1
    quick.now = 5
    asked.current()
    assert quick.count == 2
    asked = slow.reports()
    asked.current()
    slow.now = 3 + 59
    asked.current()
    assert slow.count == 1
    slow.now = 3 + 60
    asked.current()
    assert slow.count == 2


def test_concurrent_requests_share_one_report() -> None:
    let_go, counted = threading.Event(), []

    def look(database: Path) -> HealthReport:
        counted.append(1)
        assert let_go.wait(PATIENCE_S)
        return SOUND

    reports = HealthReports(look, lambda: Path("m.db"))
    threads = [threading.Thread(target=reports.current) for _ in range(5)]
    for thread in threads:
        thread.start()
    until(lambda: counted, "one of them looks")
    let_go.set()
    join_all(threads)
    assert len(counted) == 1


@pytest.fixture
def copied(audited_database: Path, tmp_path: Path) -> Path:
    path = tmp_path / "copied.db"
    shutil.copy(audited_database, path)
    return path


def test_a_database_that_cant_be_opened_is_a_failed_check(
    copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check_database(copied).ok
    assert check_database(tmp_path / "none.db").ok
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "other.db").write_text("not a database, " * 100)
    other = check_database(tmp_path / "other.db")
    assert [item.name for item in other.items if not item.ok] == ["database"]
    with Store.open(copied) as store:
        store.database.execute("DROP TRIGGER decision_log_no_delete")
    unguarded = check_database(copied)
    assert "decision log" in [item.name for item in unguarded.items if not item.ok]
    monkeypatch.setenv("MASIS_MAX_ITERATIONS", "many")
    assert [item.name for item in check_database(copied).items] == ["settings"]


def test_checks_never_call_a_model(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-0123456789")
    monkeypatch.setenv("MASIS_CRITIC", "openai:gpt-4o")
    report = check_database(copied)  # the tests let nothing through to another host
    assert report.ok
    assert "very-secret" not in str(report)
    assert not [item for item in report.items if item.name == "models"]


def settings_shown(loaded: LoadedSettings) -> dict[str, tuple[str, str]]:
    """Value and origin of every setting, by its name."""
    frame = settings_frame(loaded)
    return {row["Setting"].strip("`"): (row["Value"], row["Set by"]) for _, row in frame.iterrows()}


def test_a_setting_shows_its_source(tmp_path: Path) -> None:
    file = tmp_path / "masis.toml"
    file.write_text("strictness = 'strict'\n", encoding="utf-8")
    shown = settings_shown(load(environment={"MASIS_MAX_ITERATIONS": "2"}, file=file))
    assert shown["max_iterations"] == (
        "**:blue[2]** (default 3)",
        f":blue-badge[environment] {escape_markdown('MASIS_MAX_ITERATIONS')}",
    )
    value, origin = shown["strictness"]
    assert value == "**:blue[strict]** (default moderate)"
    assert escape_markdown(str(file)) in origin
    assert shown["critic"] == ("offline", "default")


def test_nested_settings_are_shown_with_their_source_and_without_secrets(tmp_path: Path) -> None:
    file = tmp_path / "masis.toml"
    file.write_text("[providers.vllm]\naddress = 'http://me:pass@host:1/v1'\n", encoding="utf-8")
    shown = settings_shown(load(environment={"MASIS_PROVIDERS__VLLM__CONCURRENCY": "4"}, file=file))
    value, origin = shown["providers.vllm.address"]
    assert escape_markdown("http://host:1/v1") in value
    assert escape_markdown(str(file)) in origin
    value, origin = shown["providers.vllm.concurrency"]
    assert value == "**:blue[4]**"
    assert origin.startswith(":blue-badge[environment]")


def test_settings_names_the_database_and_links_to_health_and_retention(
    audited_workbench: Workbench,
) -> None:
    app = open_page("settings")
    assert str(audited_workbench.database) in texts(app)
    assert {link.proto.page for link in app.get("page_link")} >= {"health", "retention"}


def test_settings_changed_since_the_start_are_reported(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page("settings")
    assert "has changed since" not in texts(app)
    monkeypatch.setenv("MASIS_MAX_ITERATIONS", "2")
    app.run()
    assert "has changed since" in texts(app)


def test_an_invalid_setting_is_named_on_the_page(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASIS_MAX_ITERATIONS", "many")
    said = texts(open_page("queue"))
    assert "A setting can't be used" in said
    assert "MASIS_MAX_ITERATIONS" in said
    with pytest.raises(SettingsError):
        load()


def test_health_doesnt_count_decisions_on_unsettled_cases(
    tmp_path: Path,
) -> None:
    path = tmp_path / "team (old).db"
    with closing(Store.open(path)) as store:
        found = tuple(check_store(store))
    broken = found[0]._replace(ok=False)
    shown = TimedReport(HealthReport((*found, broken)), "").without_counts().report
    messages = {item.name: item.message for item in shown.items if item.ok}
    assert (messages["database"], messages["decision log"]) == (str(path), "intact")
    assert shown.items[-1].message == broken.message
    assert "uncounted" not in json.dumps(shown.to_json())
