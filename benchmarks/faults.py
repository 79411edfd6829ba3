"""A thousand cases through a model's server that fails now and then, killed in the middle and taken
up again.

python benchmarks/faults.py                              # 1,000 cases, 5% faults, killed once
python benchmarks/faults.py --number 200 --share 0.2

Checked: every case ends in a documented state with one run, none is audited twice, the database is
whole; told: what the faults came to, the memory of the process as it went, the time.
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

from benchmarks.batch import hundred
from masis.services import Workbench

MODELS = "verifier", "critic", "reviser", "evaluator", "drafter"


def audit(cases: Path, database: Path, config: Path, concurrency: int) -> subprocess.Popen[str]:
    """``masis audit`` on the cases."""
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
    """Memory of a process in MB; 0 where it is gone."""
    try:
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0.0
    return int(found.group(1)) / 1000 if found else 0.0


def finished(database: Path) -> int:
    """Cases with a finished run, as the database has it now."""
    if not database.exists():
        return 0
    states = Workbench.open(database).store.cases.states()
    return sum(
        count for state, count in states.items() if state not in ("new", "running", "interrupted")
    )


def watched(process: subprocess.Popen[str], database: Path, until: int | None) -> list[float]:
    """The memory as the job went, to its end or until so many cases are finished."""
    memory = []
    while process.poll() is None:
        time.sleep(1)
        memory.append(resident_mb(process.pid))
        if until is not None and finished(database) >= until:
            break
    return [each for each in memory if each]


def checked(database: Path, ids: list[str]) -> None:
    """Every case has one finished run; says what they came to. Raises AssertionError."""
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
    """Run it."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--number", type=int, default=1000)
    options.add_argument("--share", type=float, default=0.05)
    options.add_argument("--concurrency", type=int, default=16)
    options.add_argument("--latency-ms", type=float, default=20.0)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases, database, config = (
            folder / "cases.jsonl",
            folder / "faults.db",
            folder / "masis.toml",
        )
        all_cases = hundred(None, given.number)
        cases.write_text(
            "".join(json.dumps(case.model_dump(mode="json")) + "\n" for case in all_cases)
        )
        serve = [
            "-m",
            "tests.serving_models",
            "--latency-ms",
            str(given.latency_ms),
            "--fault-share",
            str(given.share),
        ]
        server = subprocess.Popen(
            [sys.executable, *serve], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found
            config.write_text(
                f'[providers.here]\nkind = "openai"\naddress = "{found.group()}"\nkey_env ='
                ' "SCRIPTED_KEY"\n'
            )
            began = time.perf_counter()
            first = audit(cases, database, config, given.concurrency)
            watched(first, database, given.number // 2)
            first.send_signal(signal.SIGKILL)
            first.communicate()
            kept = finished(database)
            print(f"killed with {kept} cases finished; taken up again", flush=True)
            second = audit(cases, database, config, given.concurrency)
            memory = watched(second, database, None)
            _, said = second.communicate()
        finally:
            server.terminate()
            server.wait(10)
        print(said.strip().splitlines()[0])
        third = len(memory) // 3 or 1
        early, late = max(memory[:third]), max(memory[-third:])
        print(f"memory: at most {early:.0f} MB in the first third, {late:.0f} MB in the last")
        print(f"{time.perf_counter() - began:.0f} s in all, load {os.getloadavg()[0]:.1f}")
        checked(database, [case.id for case in all_cases])


if __name__ == "__main__":
    main()
