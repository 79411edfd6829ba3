"""Whether a million cases go in and come out again in memory that doesn't grow with their number.

    python benchmarks/million.py [--cases 1000000] [--folder FOLDER]

Small cases are made as JSON Lines while ``masis import`` reads them into a scratch database; then
``masis export --format cases`` writes them, each command in a process of its own. Prints seconds by
the clock, seconds of CPU, and the most memory of that process in the first tenth of the cases, in
the last tenth, and at all. Exits 1 where a case is missing or other bytes come out than went in. A
million take 3 GB in FOLDER (default: where temporary files go).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

MASIS = [sys.executable, "-m", "masis.cli"]
MOST_SAMPLES = 20_000
"""Memory is asked for so often in a million cases: after every 50th of them."""

_WORDS = ("bridge", "harbour", "library", "observatory", "reservoir", "station", "theatre", "tower")


def lines(count: int) -> Iterator[bytes]:
    """Small cases, no two the same, as ``masis export --format cases`` writes them."""
    for number in range(count):
        place = f"{_WORDS[number % len(_WORDS)]} {number}"
        length, year = 40 + number % 900, 1700 + number % 300
        case = {
            "id": f"case-{number}",
            "query": f"How long is the {place}, and when was it opened?",
            "answer": f"The {place} is {length} metres long [1]. It was opened in {year} [2].",
            "evidence": [
                {
                    "id": "1",
                    "text": (
                        f"The {place} is {length} metres long and carries {number % 7 + 1} lanes."
                    ),
                },
                {
                    "id": "2",
                    "text": (
                        f"The {place} was opened in {year} after {number % 9 + 2} years of work."
                    ),
                },
            ],
            "metadata": {"dataset": "million", "field": _WORDS[number % len(_WORDS)]},
        }
        yield json.dumps(case, ensure_ascii=False).encode() + b"\n"


class Measured(NamedTuple):
    """What a command took: seconds, and megabytes of memory."""

    wall_s: float
    cpu_s: float
    first_tenth: float
    last_tenth: float
    peak: float


class Memory:
    """The memory of a process by how far it has come: the most in the first tenth of its work, and
    in the last.
    """

    def __init__(self, pid: int, count: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self._count, self.first, self.last, self.peak = count, 0.0, 0.0, 0.0

    def ask(self, done: int) -> None:
        """Note what the process holds now that so many cases are done; nothing where it
        has ended.
        """
        try:
            status = self._status.read_text()
        except (FileNotFoundError, ProcessLookupError):
            return
        held = dict(re.findall(r"(VmRSS|VmHWM):\s+(\d+)", status))
        if len(held) < 2:
            return  # it has ended, and nobody has waited for it yet
        now, self.peak = int(held["VmRSS"]) / 1024, int(held["VmHWM"]) / 1024
        if done <= self._count / 10 or not self.first:
            self.first = max(self.first, now)
        if done >= self._count * 9 / 10:
            self.last = max(self.last, now)


def measured(
    arguments: list[str], count: int, follow: Callable[[subprocess.Popen[bytes], Memory], None]
) -> Measured:
    """Run a command in a process of its own, which must succeed; ``follow`` feeds or reads it and
    asks for memory.
    """
    began = time.perf_counter()
    process = subprocess.Popen(
        [*MASIS, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    said: list[bytes] = []
    listening = threading.Thread(
        target=lambda stream=process.stderr: said.extend(stream), daemon=True
    )
    listening.start()
    memory = Memory(process.pid, count)
    follow(process, memory)
    _pid, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - began
    listening.join()
    if process.returncode:
        raise SystemExit(f"masis {' '.join(arguments)} failed: {b''.join(said).decode()[-2000:]}")
    return Measured(wall, used.ru_utime + used.ru_stime, memory.first, memory.last, memory.peak)


def imported(database: Path, count: int) -> tuple[Measured, str]:
    """Import the cases as they are made; returns what it took, and the digest of their bytes."""
    digest = hashlib.sha256()

    def follow(process: subprocess.Popen[bytes], memory: Memory) -> None:
        assert process.stdin is not None
        for line in lines(count):
            process.stdin.write(line)
            digest.update(line)
        process.stdin.close()
        while _state(process.pid) not in ("Z", None):
            memory.ask(_stored(database))
            time.sleep(min(0.2, count / 100_000))

    return measured(["import", "-", "--db", str(database)], count, follow), digest.hexdigest()


def _state(pid: int) -> str | None:
    """How a process is, as the system has it: ``Z`` once it has ended; None where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except (FileNotFoundError, ProcessLookupError):
        return None


def _stored(database: Path) -> int:
    """How many cases the database holds so far."""
    if not database.exists():
        return 0
    connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)
    try:
        return int(connection.execute("SELECT max(seq) FROM cases").fetchone()[0] or 0)
    except sqlite3.OperationalError:  # its tables are being made
        return 0
    finally:
        connection.close()


def exported(database: Path, count: int) -> tuple[Measured, str, int]:
    """Export; returns what it took, the digest of the bytes written, and how many lines
    they are.
    """
    digest, written = hashlib.sha256(), 0

    def follow(process: subprocess.Popen[bytes], memory: Memory) -> None:
        nonlocal written
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        every = max(1, count // MOST_SAMPLES)
        for line in process.stdout:
            digest.update(line)
            written += 1
            if written % every == 0:
                memory.ask(written)

    took = measured(["export", "--format", "cases", "--db", str(database)], count, follow)
    return took, digest.hexdigest(), written


def show(name: str, count: int, took: Measured) -> None:
    """Print a line of the table."""
    print(
        f"{name:14} {count:>9,} cases {took.wall_s:8.1f} s {took.cpu_s:8.1f} s CPU   memory: first"
        f" tenth {took.first_tenth:5.0f} MB, last {took.last_tenth:5.0f} MB, peak"
        f" {took.peak:5.0f} MB",
        flush=True,
    )


def main() -> None:
    """Import, export, and print what each took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        database = Path(folder) / "scratch.db"
        took, came = imported(database, chosen.cases)
        show("import", chosen.cases, took)
        print(f"{'database':14} {database.stat().st_size / 1e6:,.0f} MB", flush=True)
        took, went, written = exported(database, chosen.cases)
        show("export cases", written, took)
        if (written, went) != (chosen.cases, came):
            raise SystemExit("What came out is not what went in.")
        print("What came out is what went in, byte for byte.")


if __name__ == "__main__":
    main()
