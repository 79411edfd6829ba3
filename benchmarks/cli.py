"""Time the command line: --help, audits per second with one and two workers, import and reading.

    python benchmarks/cli.py [--cases FILE] [--count N]

Without FILE, repeats the demo cases under new ids until there are N.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

from masis.datasets.loading import read_cases
from masis.services import demo_case_files

MASIS = [sys.executable, "-m", "masis.cli"]


def time_call(work: Callable[[], object]) -> float:
    """Return the wall time of one call, in seconds."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def run(*arguments: str | Path) -> None:
    """Run ``masis`` in its own process; raise if it fails."""
    subprocess.run([*MASIS, *map(str, arguments)], check=True, capture_output=True)


def help_seconds(rounds: int = 11) -> float:
    """Return the median time of ``masis --help``, in seconds."""
    return statistics.median(time_call(lambda: run("--help")) for _ in range(rounds))


def write_cases(sources: list[Path], count: int, out: Path) -> None:
    """Write ``count`` cases from the sources, repeating them under new ids if there are fewer."""
    cases = [case for source in sources for case in read_cases(source)]
    with out.open("w", encoding="utf-8") as file:
        for number, case in enumerate(islice(cycle(cases), count)):
            file.write(
                json.dumps({**case.to_json_dict(), "id": f"{case.id}-{number}"}, ensure_ascii=False)
                + "\n"
            )


def main() -> None:
    """Run the benchmark and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--cases", type=Path, action="append", help="a file of cases; may be repeated"
    )
    parser.add_argument("--count", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cases.jsonl"
        write_cases(options.cases or demo_case_files(), options.count, file)
        megabytes = file.stat().st_size / 1e6
        print(f"masis --help            {help_seconds():8.3f} s, median of 11")
        for workers in (1, 2):
            database = Path(folder) / f"{workers}.db"
            seconds = time_call(
                lambda w=workers, d=database: run(  # type: ignore[misc]
                    "audit", file, "--db", d, "--concurrency", w
                )
            )
            print(
                f"masis audit, {workers} worker(s)  {options.count / seconds:8.1f} cases/s"
                f" including startup ({seconds:.1f} s)"
            )
        seconds = time_call(lambda: run("audit", file, "--db", Path(folder) / "1.db"))
        print(f"masis audit, all done   {options.count / seconds:8.1f} cases/s skipped")
        seconds = time_call(lambda: run("import", file, "--db", Path(folder) / "import.db"))
        print(
            f"masis import            {options.count / seconds:8.1f} cases/s including startup"
            f" ({seconds:.1f} s)"
        )
        seconds = time_call(lambda: sum(1 for _ in read_cases(file)))
        print(
            f"reading only            {megabytes / seconds:8.1f} MB/s,"
            f" {options.count / seconds:.0f} cases/s"
        )
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"peak memory of a process {peak:7.0f} MiB, for {megabytes:.1f} MB of cases")


if __name__ == "__main__":
    main()
