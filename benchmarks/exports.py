"""Time each export of many decided cases and check whether its memory grows with their number.

    python benchmarks/exports.py [--cases 50000]

Every case is a copy of a demo case under a new id, with a real offline audit and a person's
decision that has two labels. Prints wall time, CPU time, megabytes written and peak memory, for a
tenth of the cases and for all of them.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from masis.datasets.exports.export import Selection, write_file
from masis.datasets.exports.formats import export_formats
from masis.schema.case import Case
from masis.schema.labels import TargetLabel
from masis.schema.review import Decision
from masis.services import ANONYMOUS, Workbench, demo_cases
from masis.store import Store
from masis.store.records import CaseFilter

TARGET_S = 15
ENCODINGS = {True: ("jsonl", "csv", "parquet"), False: ("jsonl",)}


def fill(path: Path, count: int) -> None:
    """Fill a database with cases, each audited and decided."""
    bench = Workbench.open(path)
    audited = []
    for case in list(demo_cases())[:10]:
        bench.cases.add_one(ANONYMOUS, case)
        audited.append((case, bench.audits.audit(ANONYMOUS, case)))
    store = bench.store
    for first in range(0, count, 1000):
        with store.transaction():
            for number in range(first, min(first + 1000, count)):
                case, run = audited[number % len(audited)]
                copy = Case.model_validate(
                    case.to_json_dict()
                    | {
                        "id": f"copy-{number}",
                        "query": f"{case.query} In year {number}?",
                    }
                )
                store.cases.add(copy)
                copied_run = run.model_copy(
                    update={"id": f"run-{number}", "case_id": copy.id, "case_digest": copy.digest()}
                )
                store.runs.finish(copied_run)
                iteration = copied_run.iterations[copied_run.best or 0]
                labels = [
                    TargetLabel(
                        target="claim",
                        start=c.start,
                        end=c.end,
                        text=iteration.answer[c.start : c.end],
                        label="partial",
                    )
                    for check in iteration.claims[:2]
                    if (c := check.claim).start is not None and c.end is not None
                ]
                store.decisions.append(
                    Decision(
                        reviewer="Ada",
                        case_id=copy.id,
                        run_id=copied_run.id,
                        iteration=iteration.iteration_number,
                        verdict="approve",
                        labels=tuple(labels),
                    )
                )
    bench.close()


def measure(database: Path, form: str, encoding: str, dataset_size: int) -> None:
    """Write one export and print its figures.

    Runs in its own process so that peak memory belongs to this export alone.
    """
    with tempfile.TemporaryDirectory() as folder, Store.open(database) as store:
        clock, cpu = time.perf_counter(), time.process_time()
        written = write_file(
            store,
            Path(folder) / "out",
            form,
            Selection(CaseFilter(reviewers=("Ada",))),
            encoding=encoding,
        )
        clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
        size = sum(file["bytes"] for file in written.manifest["files"]) / 1e6
    # After a fork, getrusage reports the parent's peak, so read VmHWM instead.
    status = Path("/proc/self/status").read_text()
    peak = int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024
    warning = (
        ""
        if clock <= TARGET_S or dataset_size != 50_000 or not export_formats()[form].tabular
        else f"  over {TARGET_S} s"
    )
    print(
        f"{form:16} {encoding:8} {dataset_size:>9,} cases {written.rows:>9,} rows {clock:7.1f} s"
        f" ({cpu:5.1f} s CPU) {size:8.1f} MB  peak {peak:6.0f} MB{warning}",
        flush=True,
    )


def main() -> None:
    """Measure every export of two databases, with a tenth of the cases and with all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=50_000)
    parser.add_argument("--formats", default=",".join(export_formats()))
    parser.add_argument(
        "--one",
        nargs=4,
        metavar=("DATABASE", "FORMAT", "ENCODING", "CASES"),
        help=argparse.SUPPRESS,
    )
    args = parser.parse_args()
    if args.one:
        measure(Path(args.one[0]), args.one[1], args.one[2], int(args.one[3]))
        return
    with tempfile.TemporaryDirectory() as folder:
        for count in (args.cases // 10, args.cases):
            database = Path(folder) / f"{count}.db"
            fill(database, count)
            for form in args.formats.split(","):
                for encoding in ENCODINGS[export_formats()[form].tabular]:
                    command = [
                        sys.executable,
                        __file__,
                        "--one",
                        str(database),
                        form,
                        encoding,
                        str(count),
                    ]
                    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
