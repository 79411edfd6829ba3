"""``masis demo`` and ``masis serve`` (which database they open, what a reset deletes), and ``masis
person``.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from masis.services import Workbench, demo_case_files, demo_cases
from masis.settings import demo_database_path
from masis.settings.sign_in import SignIn
from masis.store import Store
from masis.ui.shell.reach import ONLY_HERE, Reach
from tests.cases import case_of
from tests.cli.running import Masis
from tests.reviewing import decide


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments that the server would have been started with."""
    calls: list[dict[str, Any]] = []

    def launch(
        db: Path,
        port: int | None = None,
        reach: Reach = ONLY_HERE,
        open_browser: bool = False,
        sources: object = None,
    ) -> int:
        calls.append({"db": db, "port": port, "reach": reach, "open_browser": open_browser})
        return 0

    monkeypatch.setattr("masis.ui.shell.serve.launch", launch)
    return calls


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo cases of one field only, because auditing all of them takes seconds."""
    one = demo_case_files()[:1]
    monkeypatch.setattr("masis.services.demo_database.demo_case_files", lambda: one)


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_the_demo_opens_its_own_database_with_every_demo_case_audited(
    masis: Masis, home: Path, launched: list[dict[str, Any]]
) -> None:
    database = home / "masis" / "demo.db"
    result = masis("demo", "--port", "9000", "--no-browser")
    assert result.exit_code == 0, result.output
    assert launched == [{"db": database, "port": 9000, "reach": ONLY_HERE, "open_browser": False}]
    states = Workbench.open(database).store.cases.states()
    # includes the cases made from screenings
    assert sum(states.values()) > len(list(demo_cases()))
    assert not states.get("new")
    assert not (home / "masis" / "masis.db").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_the_demo_keeps_decisions_until_it_is_reset(
    masis: Masis, home: Path, launched: list[dict[str, Any]]
) -> None:
    masis("demo", "--no-browser")
    database = home / "masis" / "demo.db"
    workbench = Workbench.open(database)
    first = next(iter(demo_cases())).id
    decide(workbench, first, "escalate")
    workbench.store.close()
    masis("demo", "--no-browser")
    assert Workbench.open(database).store.decisions.verify().length >= 1
    masis("demo", "--no-browser", "--reset")
    after = Workbench.open(database)
    assert not any(
        entry.decision and entry.decision.reviewer == "Ada"
        for entry in after.store.decisions.iterate()
    )
    assert after.store.cases.count() > len(list(demo_cases()))


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_a_reset_never_changes_a_named_database(
    masis: Masis, tmp_path: Path, launched: list[dict[str, Any]]
) -> None:
    mine = tmp_path / "mine.db"
    masis("demo", "--db", mine)
    before = mine.stat().st_size
    result = masis("demo", "--reset", "--db", mine)
    assert result.exit_code == 2
    assert "deletes only the demo's own database" in result.stderr
    assert mine.stat().st_size == before


def test_a_demo_of_a_development_version_says_how_to_start_over(masis: Masis) -> None:
    database = demo_database_path()
    with Store.open(database) as store:
        store.cases.add(case_of("Ten metres [a].", {"a": "It is ten metres long."}))
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE store_info SET value = 'another' WHERE key = 'schema'")
    result = masis("demo", "--no-browser")
    assert result.exit_code == 1
    assert "Start over with `masis demo --reset`" in result.stderr


@pytest.mark.slow
def test_serve_listens_on_localhost_by_default(
    masis: Masis, tmp_path: Path, launched: list[dict[str, Any]]
) -> None:
    assert masis("serve", "--db", tmp_path / "mine.db").exit_code == 0
    assert launched == [
        {"db": tmp_path / "mine.db", "port": None, "reach": ONLY_HERE, "open_browser": False}
    ]
    assert masis("serve", "--port", "0").exit_code == 2


@pytest.mark.slow
def test_a_server_is_exposed_only_by_explicit_options(
    masis: Masis, tmp_path: Path, launched: list[dict[str, Any]]
) -> None:
    wide = ("--address", "0.0.0.0", "--allow-host", "audits.example.org", "--insecure")
    assert masis("serve", "--db", tmp_path / "mine.db", *wide).exit_code == 0
    (call,) = launched
    assert call["reach"] == Reach("0.0.0.0", ("audits.example.org",), insecure=True)
    assert call["reach"].is_exposed


def test_person_entries_make_a_sign_in_file_and_the_secret_is_shown_once(
    masis: Masis, tmp_path: Path
) -> None:
    file, secrets = tmp_path / "people.toml", {}
    for name, role in (('Ada "the countess" Lovelace', "lead"), ("Bo", "viewer")):
        result = masis("person", name, "--role", role)
        assert result.exit_code == 0, result.output
        secrets[name] = result.stderr.rpartition(" ")[2].strip()
        assert secrets[name] not in result.stdout
        with file.open("a", encoding="utf-8") as people:
            people.write(result.stdout)
    sign_in = SignIn(file)
    for name, secret in secrets.items():
        assert sign_in.is_secret_of(name, secret)
        assert sign_in.actor(sign_in.claims_of(name)) is not None


def test_with_an_identity_provider_the_entry_has_only_the_role(masis: Masis) -> None:
    result = masis("person", "ada@example.org", "--role", "lead", "--no-secret")
    assert result.stdout == '[people."ada@example.org"]\nrole = "lead"\n\n'
    assert not result.stderr
