"""Compare audits on Ray with ``--concurrency`` on the same cores: wall time, CPU time and memory.

python benchmarks/ray_engine.py                                  # 200 demo answers, 2 workers, one round
python benchmarks/ray_engine.py --cases FILE --number 2000 --rounds 3

Needs the extra ``ray``. Each command runs in its own process session. Twice a second the CPU time
and memory of all its processes are added up, with shared pages counted proportionally (PSS). The
startup time (interpreter, Ray, workers) is the time that the same command takes for two answers.
The engines alternate, in case the machine is busy; on a busy machine, compare CPU time only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from masis.datasets.lake import open_lake
from masis.datasets.mapping.reader import read_any
from masis.schema.case import Case
from masis.services import demo_cases

TICKS = os.sysconf("SC_CLK_TCK")


class Measured(NamedTuple):
    """Wall and CPU time in seconds, and memory in MB in the second and the last quarter."""

    wall: float
    cpu: float
    early_mb: float
    late_mb: float


def write_cases(file: Path | None, number: int, to: Path) -> None:
    """Write ``number`` cases with answers, repeated from the file or the demo under new ids."""
    sources = [row.case for row in read_any(file)] if file else demo_cases()
    answered = [case for case in sources if isinstance(case, Case) and case.answer]
    with to.open("w", encoding="utf-8") as out:
        for index in range(number):
            case = answered[index % len(answered)].to_json_dict()
            out.write(
                json.dumps(
                    case | {"id": f"{case['id']}-{index}", "query": f"{case['query']} ({index})"}
                )
                + "\n"
            )


def processes(session: int) -> dict[int, tuple[float, float]]:
    """Return the CPU seconds and the memory (PSS, in MB) of each process of a session."""
    results = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                rollup = (process / "smaps_rollup").read_text()
                pss = next(
                    int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")
                )
                results[int(process.name)] = (
                    (int(fields[11]) + int(fields[12])) / TICKS,
                    pss / 1024,
                )
    return results


def run_measured(command: list[str]) -> Measured:
    """Run a command and measure it."""
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True)
    cpu: dict[int, float] = {}
    memory: list[float] = []
    while process.poll() is None:
        now = processes(process.pid)
        cpu |= {pid: seconds for pid, (seconds, _) in now.items()}
        memory.append(sum(megabytes for _, megabytes in now.values()))
        time.sleep(0.5)
    assert process.returncode == 0, f"exit code {process.returncode}: {' '.join(command)}"
    wall, quarter = time.monotonic() - started, max(1, len(memory) // 4)
    early, late = memory[quarter : 2 * quarter] or memory, memory[-quarter:-2] or memory[-quarter:]
    return Measured(wall, sum(cpu.values()), sum(early) / len(early), sum(late) / len(late))


def main() -> None:
    """Run both engines in each round and print a line for each run."""
    parser = argparse.ArgumentParser(description="Compare Ray with --concurrency.")
    parser.add_argument("--cases", type=Path, help="a file of cases; default: the demo cases")
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        file, two = Path(folder) / "cases.jsonl", Path(folder) / "two.jsonl"
        write_cases(options.cases, options.number, file)
        write_cases(options.cases, 2, two)
        size = file.stat().st_size / options.number / 1024
        print(f"{options.number} answers, {size:.1f} kB each, {options.workers} workers")
        start = {
            engine: audit_file(engine, two, options.workers, Path(folder) / f"two-{engine}")
            for engine in ENGINES
        }
        results: dict[str, list[Measured]] = {engine: [] for engine in ENGINES}
        for number in range(options.rounds):
            for engine in ENGINES:
                out = Path(folder) / f"{number}-{engine}"
                results[engine].append(audit_file(engine, file, options.workers, out))
                show(engine, results[engine][-1], start[engine])
            assert open_lake(str(out)).count_rows() == options.number
    for quantity in ("wall", "cpu"):
        local, ray = (min(getattr(run, quantity) for run in results[engine]) for engine in ENGINES)
        local_start, ray_start = (getattr(start[engine], quantity) for engine in ENGINES)
        without = (ray - ray_start) / (local - local_start)
        print(
            f"{quantity}: Ray {100 * (ray / local - 1):+.1f}%, without startup"
            f" {100 * (without - 1):+.1f}%"
        )


ENGINES = ("local", "ray")


def audit_file(engine: str, file: Path, workers: int, out: Path) -> Measured:
    """Audit a file with an engine."""
    to = ["--engine", "ray", "--out", str(out)] if engine == "ray" else ["--db", f"{out}.db"]
    return run_measured(
        [sys.executable, "-m", "masis.cli", "audit", str(file), "--concurrency", str(workers), *to]
    )


def show(engine: str, run: Measured, start: Measured) -> None:
    """Print one run."""
    print(
        f"{engine:6} wall {run.wall:7.1f} s (startup {start.wall:.1f})  CPU {run.cpu:7.1f}"
        f" s (startup {start.cpu:.1f})  memory {run.early_mb:.0f} -> {run.late_mb:.0f} MB",
        flush=True,
    )


if __name__ == "__main__":
    main()
