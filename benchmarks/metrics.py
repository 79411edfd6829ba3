"""Time the metrics page with many runs.

    python benchmarks/metrics.py [--runs 100000]

Prints the median wall time and CPU time, in milliseconds, of the page's queries over all runs and
over the last thirty days, and the target for the wall time. On a busy machine, compare CPU times.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from masis.services.records import MeasureFilter, Pick
from masis.store import Store

MODELS = ("offline", "openai:gpt-4o", "anthropic:claude-sonnet-4", "ollama:llama3.3")
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAYS = 365
REPEATS = 5
SENTENCES = 8


def fill(path: Path, runs: int) -> None:
    """Insert generated measures of runs over one year directly into the tables, without texts."""
    draw = random.Random(11)
    with sqlite3.connect(path) as connection:
        for number in range(1, runs + 1):
            at = (
                (NOW - timedelta(days=draw.random() * DAYS))
                .isoformat(timespec="milliseconds")
                .replace("+00:00", "Z")
            )
            iterations = draw.choice((1, 2, 2, 3))
            model = draw.choice(MODELS)
            connection.execute(
                """INSERT INTO run_measures (seq, run_id, finished_at, dataset, drafter, verifier, critic, reviser,
                       evaluator, loop_ms, iterations, converged, termination, needs_review,
                       improvement_percentage, quality, confidence, overall, calls, tries,
                       input_tokens, cached_tokens, output_tokens, cost_usd, hallucination,
                       revision, claim_confidence, claims)
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
                [
                    *(
                        number,
                        f"{draw.getrandbits(128):032x}",
                        at,
                        f"set-{number % 4}",
                        *[model] * 5,
                    ),
                    *(
                        draw.lognormvariate(9, 1),
                        iterations,
                        draw.random() < 0.4,
                        "convergence",
                        draw.random() < 0.6,
                    ),
                    *(draw.gauss(10, 20), draw.random(), draw.random(), draw.random(), 8, 8),
                    *(draw.randrange(20_000), 0, draw.randrange(2_000), draw.random() / 10),
                    *(draw.random() < 0.3, draw.random() < 0.5, draw.random(), draw.randrange(12)),
                ],
            )
            connection.executemany(
                """INSERT INTO iteration_measures (measures_seq, number, critic_ms, reviser_ms, evaluator_ms,
                       iteration_ms, quality, improvement_delta, issues, major_issues, confidence,
                       conflicts, invalid_citations, uncited_claims, overall, faithfulness,
                       relevance, completeness, reasoning)
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, 0, 0, 1, 0.5, 0.5, 0.5, 0.5, 0.5)""",
                (
                    [
                        *(
                            number,
                            iteration,
                            draw.lognormvariate(8, 0.7),
                            draw.lognormvariate(8, 0.7),
                            900.0,
                        ),
                        *(
                            draw.lognormvariate(9, 0.6),
                            draw.random(),
                            draw.gauss(0.1, 0.1),
                            draw.randrange(9),
                            0.5,
                        ),
                    ]
                    for iteration in range(1, iterations + 1)
                ),
            )
    connection.close()


def time_query(name: str, work: Callable[[], object], target_ms: float | None = None) -> bool:
    """Print how long the query takes and return whether it meets the target."""
    walls, cpus = [], []
    for _ in range(REPEATS):
        started, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append((time.perf_counter() - started) * 1000)
        cpus.append((time.process_time() - cpu) * 1000)
    wall, cpu_ms = statistics.median(walls), statistics.median(cpus)
    met = target_ms is None or wall <= target_ms
    against = "" if target_ms is None else f"  target {target_ms:g}{'' if met else '  MISSED'}"
    print(f"{name:<46} {wall:>9.1f} {cpu_ms:>9.1f}{against}")
    return met


def main() -> int:
    """Run the benchmark; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Store.open(folder / "metrics.db") as store:
            fill(folder / "metrics.db", args.runs)
            all_runs, month = (
                MeasureFilter(),
                MeasureFilter(since=(NOW - timedelta(days=30)).date().isoformat()),
            )
            print(f"{args.runs:,} runs{'':<36} {'wall ms':>9} {'CPU ms':>9}")
            met = [
                time_query(
                    "the report, all runs, by week",
                    lambda: store.measures.report(all_runs, "week"),
                    2500,
                ),
                time_query(
                    "the report, all runs, by day",
                    lambda: store.measures.report(all_runs, "day"),
                    2500,
                ),
                time_query(
                    "the report, the last thirty days",
                    lambda: store.measures.report(month, "day"),
                    500,
                ),
                time_query(
                    "one distribution of a run",
                    lambda: store.measures.distributions(all_runs, ("loop_ms",)),
                ),
                time_query(
                    "one distribution of an iteration",
                    lambda: store.measures.distributions(all_runs, ("critic_ms",)),
                ),
                time_query(
                    "a list of runs",
                    lambda: store.measures.find_runs(all_runs, Pick(metric="hallucination")),
                    200,
                ),
                time_query(
                    "a list of runs with a slow iteration",
                    lambda: store.measures.find_runs(
                        all_runs, Pick(metric="critic_ms", above=15_000.0)
                    ),
                    800,
                ),
                time_query(
                    "the names of models", lambda: store.measures.count_names("critic"), 100
                ),
            ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
