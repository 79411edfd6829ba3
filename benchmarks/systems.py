"""Measure the comparison of two systems with 10,000 questions that both answered.

    python benchmarks/systems.py [--questions 10000] [--db FILE]

Every answer is audited: its run is a copy of an offline audit of a right or of a wrong answer. The
second system gets a tenth of the questions wrong, the first a twentieth. The database is stored
through the normal API unless FILE has it already, which takes some minutes. The page is drawn as
Streamlit's test runner draws it, without a browser. The targets are under 1 s the first time and
200 ms after that.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.filler import fill_store
from benchmarks.store import FIELDS
from masis import run_audit
from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.services import Workbench
from masis.store import Store
from masis.ui.shell.serve import import_slow_modules

READER = Actor(name="Ada")
WRONG_EVERY = {"v1": 20, "v2": 10}


def generate_answers(questions: int) -> Iterator[tuple[Case, bool]]:
    """Yield the answers of both systems, and whether they are wrong."""
    for number in range(questions):
        for system, every in WRONG_EVERY.items():
            is_wrong = number % every == every - 1
            length = "300" if is_wrong else "120"
            case = Case.model_validate(
                {
                    "id": f"q{number:06}",
                    "system": system,
                    "query": f"How long is bridge {number}?",
                    "answer": f"The bridge is {length} metres long [{9 if is_wrong else 1}].",
                    "evidence": [{"id": "1", "text": "The bridge is 120 metres long."}],
                    "metadata": {"field": FIELDS[number % len(FIELDS)], "cost_usd": 0.01},
                }
            )
            yield case, is_wrong


def fill(store: Store, questions: int) -> None:
    """Store the answers with their audits."""
    answers = list(generate_answers(questions))
    store.cases.add_many(case for case, _ in answers)
    examples = {is_wrong: case for case, is_wrong in reversed(answers)}
    audits = {is_wrong: run_audit(case) for is_wrong, case in examples.items()}

    def finish(numbered: tuple[int, tuple[Case, bool]]) -> None:
        number, (case, is_wrong) = numbered
        own = {"id": f"run-{number}", "case_id": case.id, "case_digest": case.digest()}
        store.runs.finish(audits[is_wrong].model_copy(update=own))

    fill_store(store, enumerate(answers), finish, "audited answers")


def time_ms(action: Callable[[], object]) -> float:
    """Return how many milliseconds an action takes."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


def main() -> None:
    """Measure and print the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--db", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = chosen.db or Path(folder) / "systems.db"
        is_new = not path.exists()
        workbench = Workbench.open(path)
        if is_new:
            fill(workbench.store, chosen.questions)
        import_slow_modules()
        workbench.close()
        workbench = Workbench.open(path)

        def compare() -> None:
            [comparison] = workbench.comparison.compare(READER, ["v1", "v2"])
            assert comparison.measure("flagged").questions == chosen.questions

        print(f"comparison, first:  {time_ms(compare):7.0f} ms")
        again = sorted(time_ms(compare) for _ in range(9))
        print(f"comparison, again:  {again[4]:7.0f} ms (median of 9)")
        workbench.close()


if __name__ == "__main__":
    main()
