"""How fast the citation engine is: 100,000 answers of ExpertQA's size through it, on one core.

    python benchmarks/citations.py [--answers N] [--data FOLDER]

Cycles through the answers of ExpertQA (``expertqa_cases.jsonl`` in the folder), without --data
through those of the demo cases. Prints answers a second, the time for 100,000, and how far memory
grew after the first tenth.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import resource
import statistics
import time
from collections.abc import Iterable
from pathlib import Path

from masis.audit.citations import audit_citations
from masis.schema.case import Evidence

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 60.0
FLAT_MIB = 10.0


def sources(data: Path | None) -> list[Path]:
    """The files to read answers from."""
    return (
        [data / "expertqa_cases.jsonl"]
        if data
        else sorted((ROOT / "data" / "cases").glob("*.jsonl"))
    )


def read(files: Iterable[Path]) -> list[tuple[str, tuple[Evidence, ...]]]:
    """Answers with their evidence."""
    cases = []
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row.get("answer"):
                cases.append((row["answer"], tuple(Evidence(**chunk) for chunk in row["evidence"])))
    return cases


def peak_mib() -> float:
    """The most memory this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    """Run and print; 1 if slower than the limit or if memory grew."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the public data sets")
    parser.add_argument("--answers", type=int, default=100_000)
    options = parser.parse_args()
    files = sources(options.data)
    cases = read(files)
    print(f"{len(cases)} answers from {', '.join(file.name for file in files)}, ", end="")
    print(f"{statistics.mean(len(answer) for answer, _ in cases):.0f} characters on average")
    citations = sentences = 0
    after_first_tenth = 0.0
    gc.collect()
    start, wall = time.process_time(), time.perf_counter()
    for number, (answer, evidence) in enumerate(
        itertools.islice(itertools.cycle(cases), options.answers)
    ):
        audit = audit_citations(answer, evidence)
        citations += len(audit.citations)
        sentences += len(audit.sentences)
        if number == options.answers // 10:
            after_first_tenth = peak_mib()
    seconds, elapsed = time.process_time() - start, time.perf_counter() - wall
    grown = peak_mib() - after_first_tenth
    per_100_000 = seconds / options.answers * 100_000
    print(f"{options.answers} answers, {sentences} sentences, {citations} citations")
    print(
        f"{seconds:.1f} s of one core ({elapsed:.1f} s by the clock),"
        f" {options.answers / seconds:.0f} answers a second"
    )
    print(f"100,000 answers: {per_100_000:.1f} s (limit {LIMIT_S:.0f} s)")
    print(
        f"memory: {peak_mib():.1f} MiB at its highest, {grown:.1f} MiB more than after the first"
        " tenth"
    )
    return int(per_100_000 > LIMIT_S or grown > FLAT_MIB)


if __name__ == "__main__":
    raise SystemExit(main())
