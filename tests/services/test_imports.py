"""Files on their way in: looked at without a trace, stored batch by batch, stopped with what is stored so far."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

from masis.errors import InputError
from masis.services import Workbench
from masis.services.imports import LOOKED_AT
from tests.reviewing import ADA


def rows(tmp_path: Path, count: int, *, broken: int = -1) -> Path:
    file = tmp_path / "rows.jsonl"
    made = (json.dumps({"query": f"Why {n}?", "evidence": [f"So {n}."], "answer": "So."}) for n in range(count))
    file.write_text("".join(f"{'{' if n == broken else line}\n" for n, line in enumerate(made)))
    return file


def test_a_look_stores_nothing_and_says_whether_it_has_seen_all(bench: Workbench, tmp_path: Path) -> None:
    look = bench.imports.look(ADA, rows(tmp_path, 3, broken=1), name="rows.jsonl")
    assert (look.rows, len(look.cases), look.refused, look.whole) == (3, 2, 1, True)
    assert [problem.line for problem in look.problems] == [2]
    assert bench.imports.look(ADA, rows(tmp_path, LOOKED_AT + 1), name="rows.jsonl").whole is False
    assert bench.cases.overview().cases == 0


def test_an_import_that_nobody_asks_on_stops_and_keeps_what_it_stored(bench: Workbench, tmp_path: Path) -> None:
    steps = bench.imports.add_file(ADA, rows(tmp_path, 1_700), name="rows.jsonl")
    first, second = islice(steps, 2)
    assert (first.added, second.added) == (500, 1_000)
    assert bench.cases.overview().cases == 1_000


def test_rows_that_are_refused_are_counted_and_named_once(bench: Workbench, tmp_path: Path) -> None:
    bench.cases.add(ADA, bench.imports.look(ADA, rows(tmp_path, 1), name="a").cases)
    *_, last = steps = list(bench.imports.add_file(ADA, rows(tmp_path, 700, broken=650), name="rows.jsonl"))
    assert (last.rows, last.added, last.unchanged, last.refused) == (700, 698, 1, 1)
    assert [problem.line for step in steps for problem in step.problems if isinstance(problem, InputError)] == [651]


def test_another_case_under_the_same_id_is_a_problem_and_not_stored(bench: Workbench, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    for text in ("So.", "Or so."):
        file.write_text(json.dumps({"id": "a", "query": "Why?", "evidence": [text]}) + "\n")
        *_, last = bench.imports.add_file(ADA, file, name="rows.jsonl")
    assert (last.added, last.refused) == (0, 1)
    assert "'a'" in str(last.problems[0])
    assert bench.store.cases.get("a").evidence[0].text == "So."
