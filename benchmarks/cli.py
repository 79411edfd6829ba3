"""How fast the command line is: time to --help, audits a second with one and two workers, reading
and its memory.

    python benchmarks/cli.py [--cases FILE] [--count N]

Without FILE the demo cases are used, again and again under ids of their own until there are N.
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


def seconds(work: Callable[[], object]) -> float:
    """How long the work takes, once, on the wall clock."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def run(*arguments: str | Path) -> None:
    """``masis`` as a process of its own; it must succeed."""
    subprocess.run([*MASIS, *map(str, arguments)], check=True, capture_output=True)


def help_seconds(rounds: int = 11) -> float:
    """The median time of ``masis --help``."""
    return statistics.median(seconds(lambda: run("--help")) for _ in range(rounds))


def write_cases(sources: list[Path], count: int, out: Path) -> None:
    """``count`` cases of the sources, repeated under new ids where there are fewer."""
    found = [case for source in sources for case in read_cases(source)]
    with out.open("w", encoding="utf-8") as file:
        for number, case in enumerate(islice(cycle(found), count)):
            file.write(
                json.dumps({**case.to_json_dict(), "id": f"{case.id}-{number}"}, ensure_ascii=False)
                + "\n"
            )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--cases", type=Path, action="append", help="a file of cases; may be repeated"
    )
    parser.add_argument("--count", type=int, default=500)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cases.jsonl"
        write_cases(chosen.cases or demo_case_files(), chosen.count, file)
        megabytes = file.stat().st_size / 1e6
        print(f"masis --help            {help_seconds():8.3f} s, median of 11")
        for workers in (1, 2):
            database = Path(folder) / f"{workers}.db"
            took = seconds(
                lambda w=workers, d=database: run(  # type: ignore[misc]
                    "audit", file, "--db", d, "--concurrency", w
                )
            )
            print(
                f"masis audit, {workers} worker(s)  {chosen.count / took:8.1f} cases/s, start"
                f" included ({took:.1f} s)"
            )
        again = seconds(lambda: run("audit", file, "--db", Path(folder) / "1.db"))
        print(f"masis audit, all done   {chosen.count / again:8.1f} cases/s skipped")
        took = seconds(lambda: run("import", file, "--db", Path(folder) / "import.db"))
        print(
            f"masis import            {chosen.count / took:8.1f} cases/s, start included"
            f" ({took:.1f} s)"
        )
        took = seconds(lambda: sum(1 for _ in read_cases(file)))
        print(
            f"reading alone           {megabytes / took:8.1f} MB/s, {chosen.count / took:.0f}"
            " cases/s"
        )
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"most memory of a process {peak:7.0f} MiB, for {megabytes:.1f} MB of cases")


if __name__ == "__main__":
    main()
