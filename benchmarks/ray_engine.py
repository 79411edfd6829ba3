"""Audits on Ray against the same through ``--concurrency``, at equal cores: wall time, processor
time, memory.

python benchmarks/ray_engine.py                                  # 200 answers of the demo, 2 workers, one round
python benchmarks/ray_engine.py --cases FILE --number 2000 --rounds 3

Needs the extra ``ray``. Each command runs as a person would run it, in a session of its own whose
processes are added up twice a second: processor time of all of them, and memory, shared pages in
shares (PSS). The start (interpreter, Ray, workers) is what the same command takes for two answers;
the rest is what the others take. The two take turns, since the machine may have other work; then
only processor time is to be compared.
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
    """Seconds of wall and of processor; megabytes in the second and the last quarter of
    the time.
    """

    wall: float
    cpu: float
    early_mb: float
    late_mb: float


def cases(file: Path | None, number: int, to: Path) -> None:
    """Write that many answers: of a file, over and over, else of the demo; each a case
    of its own.
    """
    found = [row.case for row in read_any(file)] if file else demo_cases()
    answered = [case for case in found if isinstance(case, Case) and case.answer]
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
    """The processes of a session: processor seconds, and megabytes of their own."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                rollup = (process / "smaps_rollup").read_text()
                pss = next(
                    int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")
                )
                found[int(process.name)] = ((int(fields[11]) + int(fields[12])) / TICKS, pss / 1024)
    return found


def measured(command: list[str]) -> Measured:
    """Run a command to its end."""
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True)
    cpu: dict[int, float] = {}
    memory: list[float] = []
    while process.poll() is None:
        now = processes(process.pid)
        cpu |= {pid: seconds for pid, (seconds, _) in now.items()}
        memory.append(sum(megabytes for _, megabytes in now.values()))
        time.sleep(0.5)
    assert process.returncode == 0, f"exit code {process.returncode}: {' '.join(command)}"
    wall, quarter = time.monotonic() - began, max(1, len(memory) // 4)
    early, late = memory[quarter : 2 * quarter] or memory, memory[-quarter:-2] or memory[-quarter:]
    return Measured(wall, sum(cpu.values()), sum(early) / len(early), sum(late) / len(late))


def main() -> None:
    """Run both, round by round, and print a line for each."""
    parser = argparse.ArgumentParser(description="Ray against --concurrency.")
    parser.add_argument("--cases", type=Path, help="a file of cases; default: the demo's")
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        file, two = Path(folder) / "cases.jsonl", Path(folder) / "two.jsonl"
        cases(chosen.cases, chosen.number, file)
        cases(chosen.cases, 2, two)
        size = file.stat().st_size / chosen.number / 1024
        print(f"{chosen.number} answers, {size:.1f} kB each, {chosen.workers} workers")
        start = {
            engine: audited(engine, two, chosen.workers, Path(folder) / f"two-{engine}")
            for engine in ENGINES
        }
        found: dict[str, list[Measured]] = {engine: [] for engine in ENGINES}
        for number in range(chosen.rounds):
            for engine in ENGINES:
                out = Path(folder) / f"{number}-{engine}"
                found[engine].append(audited(engine, file, chosen.workers, out))
                show(engine, found[engine][-1], start[engine])
            assert open_lake(str(out)).count_rows() == chosen.number
    for what in ("wall", "cpu"):
        local, ray = (min(getattr(each, what) for each in found[engine]) for engine in ENGINES)
        local_start, ray_start = (getattr(start[engine], what) for engine in ENGINES)
        without = (ray - ray_start) / (local - local_start)
        print(
            f"{what}: Ray takes {100 * (ray / local - 1):+.1f} %, without the start"
            f" {100 * (without - 1):+.1f} %"
        )


ENGINES = ("local", "ray")


def audited(engine: str, file: Path, workers: int, out: Path) -> Measured:
    """Audit a file."""
    to = ["--engine", "ray", "--out", str(out)] if engine == "ray" else ["--db", f"{out}.db"]
    return measured(
        [sys.executable, "-m", "masis.cli", "audit", str(file), "--concurrency", str(workers), *to]
    )


def show(engine: str, found: Measured, start: Measured) -> None:
    """Print one run."""
    print(
        f"{engine:6} wall {found.wall:7.1f} s (start {start.wall:.1f})  processor {found.cpu:7.1f}"
        f" s (start {start.cpu:.1f})  memory {found.early_mb:.0f} -> {found.late_mb:.0f} MB",
        flush=True,
    )


if __name__ == "__main__":
    main()
