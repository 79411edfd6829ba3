"""Import and export a million cases and check that memory doesn't grow with their number.

    python benchmarks/million.py [--cases 1000000] [--folder FOLDER]

Generates small cases as JSON Lines while ``masis import`` reads them into a scratch database, then
runs ``masis export --format cases``. Prints the wall time and CPU time of each command, and its
peak memory in the first tenth of the cases, in the last tenth and overall. Exits 1 if a case is
missing or if the exported bytes differ from the imported ones. A million cases take 3 GB in FOLDER
(default: the system's temporary folder).
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
MAX_SAMPLES = 20_000
"""Maximum number of memory samples per command: one for every 50 of a million cases."""

_WORDS = ("bridge", "harbour", "library", "observatory", "reservoir", "station", "theatre", "tower")


def lines(count: int) -> Iterator[bytes]:
    """Yield small, distinct cases in the form that ``masis export --format cases`` writes."""
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
    """The time of a command in seconds, and its peak memory in megabytes."""

    wall_s: float
    cpu_s: float
    first_tenth: float
    last_tenth: float
    peak: float


class Memory:
    """Tracks the peak memory of a process in the first and in the last tenth of its work."""

    def __init__(self, pid: int, count: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self._count, self.first, self.last, self.peak = count, 0.0, 0.0, 0.0

    def sample(self, finished: int) -> None:
        """Sample the memory after ``finished`` cases; do nothing if the process has ended."""
        try:
            status = self._status.read_text()
        except (FileNotFoundError, ProcessLookupError):
            return
        memory = dict(re.findall(r"(VmRSS|VmHWM):\s+(\d+)", status))
        if len(memory) < 2:
            return  # a zombie: the process has ended but hasn't been waited for
        now, self.peak = int(memory["VmRSS"]) / 1024, int(memory["VmHWM"]) / 1024
        if finished <= self._count / 10 or not self.first:
            self.first = max(self.first, now)
        if finished >= self._count * 9 / 10:
            self.last = max(self.last, now)


def measure(
    arguments: list[str], count: int, follow: Callable[[subprocess.Popen[bytes], Memory], None]
) -> Measured:
    """Run a command in its own process and measure it.

    Args:
        arguments: Arguments of ``masis``.
        count: The number of cases.
        follow: Writes the command's input or reads its output, and samples its memory.

    Raises:
        SystemExit: The command failed.

    """
    started = time.perf_counter()
    process = subprocess.Popen(
        [*MASIS, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    stderr: list[bytes] = []
    reader = threading.Thread(
        target=lambda stream=process.stderr: stderr.extend(stream), daemon=True
    )
    reader.start()
    memory = Memory(process.pid, count)
    follow(process, memory)
    _pid, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - started
    reader.join()
    if process.returncode:
        raise SystemExit(f"masis {' '.join(arguments)} failed: {b''.join(stderr).decode()[-2000:]}")
    return Measured(wall, used.ru_utime + used.ru_stime, memory.first, memory.last, memory.peak)


def import_cases(database: Path, count: int) -> tuple[Measured, str]:
    """Import cases while they are generated; return the figures and the digest of their bytes."""
    digest = hashlib.sha256()

    def follow(process: subprocess.Popen[bytes], memory: Memory) -> None:
        assert process.stdin is not None
        for line in lines(count):
            process.stdin.write(line)
            digest.update(line)
        process.stdin.close()
        while _state(process.pid) not in ("Z", None):
            memory.sample(_count_stored(database))
            time.sleep(min(0.2, count / 100_000))

    return measure(["import", "-", "--db", str(database)], count, follow), digest.hexdigest()


def _state(pid: int) -> str | None:
    """Return the state of a process from /proc: ``Z`` once it has ended, None if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except (FileNotFoundError, ProcessLookupError):
        return None


def _count_stored(database: Path) -> int:
    """Return how many cases the database has so far."""
    if not database.exists():
        return 0
    connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)
    try:
        return int(connection.execute("SELECT max(seq) FROM cases").fetchone()[0] or 0)
    except sqlite3.OperationalError:  # the tables don't exist yet
        return 0
    finally:
        connection.close()


def export_cases(database: Path, count: int) -> tuple[Measured, str, int]:
    """Export the cases; return the figures, the digest of the output and its number of lines."""
    digest, written = hashlib.sha256(), 0

    def follow(process: subprocess.Popen[bytes], memory: Memory) -> None:
        nonlocal written
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        every = max(1, count // MAX_SAMPLES)
        for line in process.stdout:
            digest.update(line)
            written += 1
            if written % every == 0:
                memory.sample(written)

    figures = measure(["export", "--format", "cases", "--db", str(database)], count, follow)
    return figures, digest.hexdigest(), written


def show(name: str, count: int, figures: Measured) -> None:
    """Print a line of the table."""
    print(
        f"{name:14} {count:>9,} cases {figures.wall_s:8.1f} s {figures.cpu_s:8.1f} s CPU  "
        f" memory: first tenth {figures.first_tenth:5.0f} MB,"
        f" last {figures.last_tenth:5.0f} MB, peak {figures.peak:5.0f} MB",
        flush=True,
    )


def main() -> None:
    """Import, export, and print the figures of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        database = Path(folder) / "scratch.db"
        figures, imported_digest = import_cases(database, options.cases)
        show("import", options.cases, figures)
        print(f"{'database':14} {database.stat().st_size / 1e6:,.0f} MB", flush=True)
        figures, exported_digest, written = export_cases(database, options.cases)
        show("export cases", written, figures)
        if (written, exported_digest) != (options.cases, imported_digest):
            raise SystemExit("The exported bytes differ from the imported ones.")
        print("The exported bytes equal the imported ones.")


if __name__ == "__main__":
    main()
