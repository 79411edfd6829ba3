"""Time the citation engine on 100,000 answers the size of ExpertQA's, on one core.

    python benchmarks/citations.py [--answers N] [--data FOLDER]

Cycles through the answers of ExpertQA (``expertqa_cases.jsonl`` in the folder) or, without --data,
those of the demo cases. Prints answers per second, the time for 100,000 answers, and how much
memory grew after the first tenth.
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


def answer_files(data: Path | None) -> list[Path]:
    """Return the files to read answers from."""
    return (
        [data / "expertqa_cases.jsonl"]
        if data
        else sorted((ROOT / "data" / "cases").glob("*.jsonl"))
    )


def read_answers(files: Iterable[Path]) -> list[tuple[str, tuple[Evidence, ...]]]:
    """Return the answers in the files, each with its evidence."""
    cases = []
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row.get("answer"):
                cases.append((row["answer"], tuple(Evidence(**chunk) for chunk in row["evidence"])))
    return cases


def peak_mib() -> float:
    """Return the peak memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    """Run the benchmark; return 1 if it is slower than the limit or if memory grew."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the public data sets")
    parser.add_argument("--answers", type=int, default=100_000)
    options = parser.parse_args()
    files = answer_files(options.data)
    cases = read_answers(files)
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
        f"{seconds:.1f} s of CPU ({elapsed:.1f} s wall time),"
        f" {options.answers / seconds:.0f} answers per second"
    )
    print(f"100,000 answers: {per_100_000:.1f} s (limit {LIMIT_S:.0f} s)")
    print(f"peak memory: {peak_mib():.1f} MiB, {grown:.1f} MiB more than after the first tenth")
    return int(per_100_000 > LIMIT_S or grown > FLAT_MIB)


if __name__ == "__main__":
    raise SystemExit(main())
