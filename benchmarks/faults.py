"""Audit a thousand cases with a faulty model server, kill the audit halfway and resume it.

python benchmarks/faults.py                              # 1,000 cases, 5% faults, killed once
python benchmarks/faults.py --number 200 --share 0.2

Checks that every case has exactly one finished run and that the database is intact. Prints how the
runs ended, the memory of the process over time, and the duration.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.batch import load_cases
from masis.services import Workbench

MODELS = "verifier", "critic", "reviser", "evaluator", "drafter"


def start_audit(
    cases: Path, database: Path, config: Path, concurrency: int
) -> subprocess.Popen[str]:
    """Start ``masis audit`` on the cases."""
    command = [sys.executable, "-m", "masis.cli", "audit", cases, "--db", database, "--no-ask"]
    return subprocess.Popen(
        [*map(str, command), "--model", "here:m", "--concurrency", str(concurrency)],
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "MASIS_CONFIG": str(config),
            "SCRIPTED_KEY": "k",
        },
    )


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process in MB, or 0 if it has ended."""
    try:
        match = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0.0
    return int(match.group(1)) / 1000 if match else 0.0


def count_finished(database: Path) -> int:
    """Return how many cases in the database have a finished run."""
    if not database.exists():
        return 0
    states = Workbench.open(database).store.cases.states()
    return sum(
        count for state, count in states.items() if state not in ("new", "running", "interrupted")
    )


def watch_memory(process: subprocess.Popen[str], database: Path, until: int | None) -> list[float]:
    """Sample the memory of the process until it ends or ``until`` cases are finished."""
    memory = []
    while process.poll() is None:
        time.sleep(1)
        memory.append(resident_mb(process.pid))
        if until is not None and count_finished(database) >= until:
            break
    return [sample for sample in memory if sample]


def check_database(database: Path, ids: list[str]) -> None:
    """Check that every case has one finished run, and print how the runs ended.

    Raises:
        AssertionError: A case has no run or several, or the database has a problem.

    """
    bench = Workbench.open(database)
    ends: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    tries = calls = 0
    for case_id in ids:
        runs = bench.store.runs.for_case(case_id)
        assert [run.state for run in runs] == ["finished"], (case_id, [run.state for run in runs])
        run = bench.store.runs.get(runs[0].id)
        ends[run.termination_reason] += 1
        codes.update({str(warning.code) for warning in run.warnings})
        calls, tries = calls + run.usage.calls, tries + run.usage.tries
        for iteration in run.iterations:
            scored = iteration.critique.unscored is None
            assert scored or iteration.quality_score is None
            assert all(
                check.verdict != "unscored" or check.support is None for check in iteration.claims
            )
    check = bench.store.check()
    assert check.problems == ()
    assert check.log.intact
    print(
        f"{len(ids)} cases, one finished run each: {dict(ends)}; runs with {dict(codes)}; {calls}"
        f" calls, {tries} tries"
    )


def main() -> None:
    """Run the benchmark."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--number", type=int, default=1000)
    options.add_argument("--share", type=float, default=0.05)
    options.add_argument("--concurrency", type=int, default=16)
    options.add_argument("--latency-ms", type=float, default=20.0)
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases, database, config = (
            folder / "cases.jsonl",
            folder / "faults.db",
            folder / "masis.toml",
        )
        all_cases = load_cases(None, args.number)
        cases.write_text(
            "".join(json.dumps(case.model_dump(mode="json")) + "\n" for case in all_cases)
        )
        serve = [
            "-m",
            "tests.serving_models",
            "--latency-ms",
            str(args.latency_ms),
            "--fault-share",
            str(args.share),
        ]
        server = subprocess.Popen(
            [sys.executable, *serve], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            match = re.search(r"http://\S+", server.stdout.readline())
            assert match
            config.write_text(
                f'[providers.here]\nkind = "openai"\naddress = "{match.group()}"\nkey_env ='
                ' "SCRIPTED_KEY"\n'
            )
            started = time.perf_counter()
            first = start_audit(cases, database, config, args.concurrency)
            watch_memory(first, database, args.number // 2)
            first.send_signal(signal.SIGKILL)
            first.communicate()
            finished = count_finished(database)
            print(f"killed with {finished} cases finished; resuming", flush=True)
            second = start_audit(cases, database, config, args.concurrency)
            memory = watch_memory(second, database, None)
            _, stderr = second.communicate()
        finally:
            server.terminate()
            server.wait(10)
        print(stderr.strip().splitlines()[0])
        third = len(memory) // 3 or 1
        early, late = max(memory[:third]), max(memory[-third:])
        print(f"peak memory: {early:.0f} MB in the first third, {late:.0f} MB in the last")
        print(f"{time.perf_counter() - started:.0f} s in total, load {os.getloadavg()[0]:.1f}")
        check_database(database, [case.id for case in all_cases])


if __name__ == "__main__":
    main()
