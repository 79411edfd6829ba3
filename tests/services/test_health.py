"""Health: what is wrong is found, named and told what to do about; what is only absent
is no fault.
"""

from __future__ import annotations

import importlib.util
import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from masis.api import roles as api_roles
from masis.cli import main
from masis.extensions import Library
from masis.llm.provider_apis import ProviderApi, provider_api
from masis.schema.providers import OWN_PROVIDERS
from masis.services import HealthItem, Workbench, demo_cases
from masis.services.maintenance import health
from masis.settings import ROLES, Settings
from masis.store.core import connections
from masis.ui.admin.health_reports import check_database
from tests.reviewing import ADA
from tests.rooms import HAS_SCREENING
from tests.serving_models import ModelServer


def find_item(bench: Workbench, name: str) -> HealthItem:
    return next(item for item in bench.health().items if item.name == name)


@pytest.mark.spec("REQ-CRITIC-OBS-005")
def test_every_module_is_checked(bench: Workbench) -> None:
    found = {item.name: item for item in bench.health().items}
    assert set(ROLES) | {"auditor"} | ({"evidence critic"} if HAS_SCREENING else set()) <= set(
        found
    )
    assert all(found[role].message == "starts: offline" for role in ROLES)


@pytest.mark.spec("REQ-CRITIC-OBS-005")
@pytest.mark.parametrize("role", ["critic", "verifier"])
def test_a_role_that_cant_start_is_named_with_a_reason(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a file of it is missing")

    monkeypatch.setattr(api_roles, f"Offline{role.capitalize()}", broken)
    found = {check.name: check for check in health.check_roles(Settings())}
    # an offline part that is broken breaks its role wherever it is used
    assert "RuntimeError: a file of it is missing" in found[role].message
    assert found[role].hint


@pytest.mark.spec("REQ-CRITIC-OBS-005")
def test_an_unusable_model_fails_only_its_role() -> None:
    found = {check.name: check for check in health.check_roles(Settings(critic="nobody:x"))}
    assert [name for name, check in found.items() if not check.ok] == ["critic"]
    assert "nobody" in found["critic"].message


def test_an_error_shared_by_several_models_is_reported_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HERE_KEY", "wrong")
    with ModelServer(keys=["right"]) as server:
        table = {"here": {"kind": "openai", "address": server.address, "key_env": "HERE_KEY"}}
        models = {
            "drafter": "here:a",
            "verifier": "here:b",
            "critic": "here:c",
            "reviser": "here:a",
        }
        found = health.probe_models(
            Settings.model_validate({"providers": table, "max_retries": 0, **models})
        )
    failed = [item for item in found if not item.ok]
    assert len(failed) == 3
    assert sum("the key was not accepted (401)" in item.message for item in failed) == 1
    assert [item.message for item in failed[1:]] == [
        "here:b fails like here:a. (verifier)",
        "here:c fails like here:a. (critic)",
    ]


def test_a_missing_output_validator_is_reported_once(
    tmp_path: Path,
) -> None:
    settings = Settings(output_validator="nobodys")
    found = [
        item
        for item in Workbench.open(tmp_path / "masis.db", settings).health(settings).items
        if not item.ok
    ]
    assert [item.name for item in found] == ["output validator"]
    assert "there is no 'nobodys'" in found[0].message
    assert "output_validator = pydantic" in found[0].hint


def test_enabled_but_missing_telemetry_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    absent = (Library("OpenTelemetry", "otel", "nothing_of_this_name", "x", "telemetry"),)
    monkeypatch.setattr(health, "libraries", lambda: absent)
    (found,) = health.check_integrations(Settings(telemetry="otlp"), try_them=False)
    assert not found.ok
    assert "telemetry = otlp needs it" in found.message
    assert "pip install '.[otel]'" in found.hint


@pytest.fixture
def doors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], health.HealthItem]:
    """Tries a door whose library is a file with this text."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def try_library(text: str) -> health.HealthItem:
        (tmp_path / "a_library.py").write_text(text)
        importlib.invalidate_caches()
        door = Library("Door", "extra", "a_library", "a_library")
        monkeypatch.setattr(health, "libraries", lambda: (door,))
        return next(iter(health.check_integrations(Settings(), try_them=True)))

    return try_library


def test_an_installed_integration_is_imported_in_its_own_process(
    doors: Callable[[str], health.HealthItem],
) -> None:
    assert doors("x = 1") == health.HealthItem("Door", True, "installed, and can be imported")
    assert "a_library" not in sys.modules
    found = doors("import nothing_of_this_name")
    assert not found.ok
    assert "No module named 'nothing_of_this_name'" in found.message
    assert "pip install '.[extra]'" in found.hint


def test_a_hanging_integration_check_times_out(
    doors: Callable[[str], health.HealthItem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "IMPORT_WITHIN_S", 0.5)
    assert "takes longer than 0.5 s" in doors("import time; time.sleep(60)").message


def test_a_missing_optional_library_isnt_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = (Library("Door", "extra", "nothing_of_this_name.at_all", "x"),)
    monkeypatch.setattr(health, "libraries", lambda: absent)
    found = list(health.check_integrations(Settings(), try_them=True))
    assert [(check.ok, check.absent, "not installed" in check.message) for check in found] == [
        (True, True, True)
    ]


def test_every_integration_names_an_existing_extra_and_module() -> None:
    import tomllib

    root = Path(health.__file__).resolve().parents[3]
    extras = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    apis = [provider_api(point.name) for point in OWN_PROVIDERS]
    assert {api.extra for api in apis} <= {"", *extras}
    assert any(api.extra for api in apis)
    for door in health.libraries():
        assert door.extra in extras
        file = root.joinpath(*door.imports.split("."))
        assert file.with_suffix(".py").is_file() or (file / "__init__.py").is_file(), door


def test_health_and_its_docs_list_every_integration_and_api(bench: Workbench) -> None:
    names = [item.name for item in bench.health().items]
    page = Path(health.__file__).resolve().parents[3] / "docs" / "running.md"
    for door in health.libraries():
        assert door.name in names
        assert f"`{door.name}`" in page.read_text(encoding="utf-8")
    for point in OWN_PROVIDERS:
        assert provider_api(point.name).title in names


def test_an_api_without_a_library_needs_no_package_and_a_broken_one_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def load(kind: str) -> ProviderApi:
        if kind == "broken":
            raise ImportError("no module of this name")
        return ProviderApi("The API of example.org", lambda endpoint: pytest.fail("not made"))

    monkeypatch.setattr(health, "provider_entry_points", lambda: ("example", "broken"))
    monkeypatch.setattr(health, "provider_api", load)
    sound, broken = health.check_apis(try_them=True)
    assert sound == HealthItem("The API of example.org", True, "needs no package")
    assert (broken.name, broken.ok) == ("broken", False)
    assert "ImportError: no module of this name" in broken.message


def test_an_unwritable_database_is_reported(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = connections.connect

    def read_only(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.execute("PRAGMA query_only = ON")
        return connection

    assert find_item(bench, "writing") == HealthItem("writing", True, "a write was made")
    with monkeypatch.context() as patched:
        patched.setattr(connections, "connect", read_only)
        found = health.check_writing(bench.store)
    assert not found.ok
    assert "readonly" in found.message
    assert "free space on the disk" in found.hint


def test_an_active_writer_isnt_a_failure(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("masis.store.core.health.WRITE_WITHIN_MS", 50)
    other = connections.connect(bench.database)
    other.execute("BEGIN IMMEDIATE")
    found = health.check_writing(bench.store)
    other.close()
    assert found == HealthItem("writing", True, "another program writes to it just now")


def test_low_disk_space_is_reported(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "LEAST_FREE_BYTES", 10**18)
    found = find_item(bench, "disk")
    assert not found.ok
    assert str(bench.database.parent) in found.hint


@pytest.mark.parametrize("guard", ["executions_no_delete", "purges_no_update", "purged_no_replace"])
def test_missing_log_triggers_are_reported(bench: Workbench, guard: str) -> None:
    assert not bench.store.check().problems
    bench.store.database.execute(f"DROP TRIGGER {guard}")
    assert f"logs have lost their triggers: {guard}" in bench.store.check().problems


@pytest.mark.spec("REQ-CRITIC-COMP-001")
def test_a_run_missing_from_the_execution_log_is_reported(bench: Workbench) -> None:
    bench.cases.add(ADA, demo_cases())
    bench.audits.audit(ADA, next(iter(bench.store.cases.iterate())))
    assert bench.store.check().ok
    bench.store.database.execute("DROP TRIGGER executions_no_delete")
    bench.store.database.execute("DELETE FROM executions")
    assert "1 runs are not in the log of executions" in bench.store.check().problems


def test_the_json_report_has_the_documented_fields_and_no_api_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-0123456789")
    bench = Workbench.open(tmp_path / "masis.db", Settings(critic="openai:gpt-4o"))
    report = bench.health().to_json()
    assert set(report) == {"ok", "version", "items"}
    assert all(set(item) == {"name", "ok", "message", "hint", "absent"} for item in report["items"])
    assert "very-secret" not in json.dumps(report)


@pytest.mark.parametrize("share", [0.05, 0.6])
def test_a_damaged_file_is_reported_without_a_crash(tmp_path: Path, share: float) -> None:
    path = tmp_path / "damaged.db"
    with_cases = Workbench.open(path)
    with_cases.cases.add(ADA, demo_cases())
    with_cases.audits.audit(ADA, next(iter(with_cases.store.cases.iterate())))
    with_cases.store.settle()
    with_cases.store.close()
    with path.open("r+b") as file:
        file.seek(int(path.stat().st_size * share))
        file.write(b"\xaa" * 9000)
    report = check_database(path)
    assert not report.ok
    assert next(item.name for item in report.items if not item.ok) == "database"
    told = CliRunner().invoke(main, ["health", "--no-ask", "--json", "--db", str(path)])
    assert told.exit_code == 1
    assert json.loads(told.stdout)["ok"] is False
    assert "Unexpected" not in told.output
