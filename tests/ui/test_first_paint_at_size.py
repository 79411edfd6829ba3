"""What pages read of the database does not grow with the cases, and what SQLite counts for them
grows little.

Counted in rows handed to Python and in SQLite's own steps, never in time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from benchmarks import large_database
from masis.store.core import connections
from masis.ui.admin import retention_page
from masis.ui.metrics import page as metrics_page
from masis.ui.metrics import sections
from masis.ui.shell import served_database
from tests.ui.conftest import open_page

SMALL, LARGE = 600, 6_000
EVERY = 20
"""Steps of SQLite's machine between two calls of the counter."""

PASSES = 150
"""Steps that a page may take for each case: to count a value in an index takes some seven, to add
up the figures of a run for the metrics page some 125."""
PICTURES = 120
"""Further steps of the metrics page for each case, which count the cases for its pictures."""

_steps, _rows = [0], [0]


class CountingCursor(sqlite3.Cursor):
    """A cursor that counts the rows it hands out."""

    def __next__(self) -> Any:
        row = super().__next__()
        _rows[0] += 1
        return row

    def fetchone(self) -> Any:
        return self._count_rows([super().fetchone()])[0]

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        return self._count_rows(super().fetchmany(size))

    def fetchall(self) -> list[Any]:
        return self._count_rows(super().fetchall())

    @staticmethod
    def _count_rows(rows: list[Any]) -> list[Any]:
        _rows[0] += len(rows)
        return rows


class Counting(connections.Connection):
    """A connection that counts the steps of its statements and the rows they give."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.set_progress_handler(self._step, EVERY)

    def cursor(self, factory: Any = CountingCursor) -> Any:
        return super().cursor(factory)

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        return self.cursor().execute(*arguments)

    @staticmethod
    def _step() -> int:
        _steps[0] += EVERY
        return 0


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Two databases of the same make, one ten times as large."""
    folder = tmp_path_factory.mktemp("sizes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_database, "BASE", 200)
        patch.setattr(large_database, "DEMO", 1)
        made = {count: folder / f"{count}.db" for count in (SMALL, LARGE)}
        for count, path in made.items():
            large_database.make(path, count)
    return made


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(connections, "Connection", Counting)
    monkeypatch.setattr(retention_page, "MOST_PLANNED_UNASKED", 100)
    monkeypatch.setattr(metrics_page, "SPREAD_OVER", 100)
    monkeypatch.setattr(sections, "READ_AT_ONCE", 200)
    yield
    st.cache_resource.clear()
    st.cache_data.clear()


def a_case(path: Path) -> str:
    with sqlite3.connect(path) as connection:
        return str(
            connection.execute(
                "SELECT id FROM cases WHERE state = 'needs_review' AND iterations > 1 ORDER BY seq"
                " LIMIT 1"
            ).fetchone()[0]
        )


def asked_by(
    path: Path, monkeypatch: pytest.MonkeyPatch, page: str, **address: str
) -> tuple[int, int]:
    """The steps that the first paint of a page takes, and the rows that it reads."""
    monkeypatch.setattr(served_database, "_served", [path])
    st.cache_resource.clear()
    st.cache_data.clear()
    open_page("import")  # opens the database, which is not what is counted
    _steps[0] = _rows[0] = 0
    open_page(page, **address)
    return _steps[0], _rows[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "address"),
    [
        ("overview", {}),
        ("queue", {"state": "needs_review"}),
        *(
            pytest.param("queue", address, marks=pytest.mark.soak)
            for address in (
                {"order": "newest"},
                {"order": "random", "seed": "3"},
                {"q": "case-000150"},
            )
        ),
        ("review", {}),
        ("decisions", {}),
        ("metrics", {}),
        ("retention", {}),
        *(
            pytest.param(page, {}, marks=pytest.mark.soak)
            for page in ("team", "datasets", "settings")
        ),
    ],
)
def test_first_paint_reads_the_same_amount_with_ten_times_the_cases(
    databases: dict[int, Path],
    monkeypatch: pytest.MonkeyPatch,
    page: str,
    address: dict[str, str],
) -> None:
    if page == "review":
        address = {"case": a_case(databases[SMALL]), "state": "needs_review"}
    small, large = (asked_by(path, monkeypatch, page, **address) for path in databases.values())
    # rows: some more for values that occur among many cases only; ten times as many where a page
    # read every case
    assert large[1] < small[1] + 300
    steps = PASSES + (PICTURES if page == "metrics" else 0)
    assert large[0] < small[0] + steps * (LARGE - SMALL)


def test_the_copied_database_passes_its_checks(databases: dict[int, Path]) -> None:
    with large_database.Store.open(databases[SMALL]) as store:
        assert store.check().ok
        assert not store.decisions.check_subjects().broken
        assert store.cases.count() == SMALL
        decided = store.database.value("SELECT count(*) FROM decision_log WHERE kind = 'decision'")
        assert decided > SMALL / 10
