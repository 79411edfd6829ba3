"""Time the offline grader and its steps on 10,000 abstracts.

    PYTHONPATH=. python benchmarks/screening_grading.py [--abstracts 10000] [--data FOLDER]

Each abstract is one from the labeled files (without --data, from the demo corpus) with its
sentences shuffled by a fixed seed, so that no two texts are equal and caches can't help. Prints the
CPU time and wall time in seconds. Exits 1 if the CPU time is over a minute. Uses one process and
one core.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from masis.schema.screening import Abstract
from masis.screening.grading import designs, sample_size
from masis.screening.grading.offline_grader import offline_grader

DEMO = Path(__file__).resolve().parent.parent / "data" / "screening" / "abstracts.jsonl"
FILES = ("study_types_train.jsonl", "study_types_val.jsonl")
QUESTION = "Does exercise reduce depressive symptoms in older adults with dementia?"
TARGET = 60.0
SEED = 11
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def read_texts(data: Path | None) -> list[tuple[str, str]]:
    """Return the titles and texts from which abstracts are made."""
    if data is None:
        rows = [json.loads(line) for line in DEMO.read_text(encoding="utf-8").splitlines()]
        return [(row["title"], row["text"]) for row in rows]
    lines = [
        line for name in FILES for line in (data / name).read_text(encoding="utf-8").splitlines()
    ]
    rows = [json.loads(line) for line in lines]
    return [(row["title"], row["abstract"]) for row in rows]


def shuffled_abstracts(originals: Sequence[tuple[str, str]], count: int) -> Iterator[Abstract]:
    """Yield ``count`` abstracts, each with its sentences shuffled."""
    draw = random.Random(SEED)
    for number in range(count):
        title, text = originals[number % len(originals)]
        sentences = _SENTENCE_END.split(text)
        draw.shuffle(sentences)
        yield Abstract(id=str(number), title=title, text=f"{' '.join(sentences)} No. {number}.")


def time_call(work: Callable[[], object]) -> tuple[float, float]:
    """Return the CPU time and the wall time of a call, in seconds."""
    cpu, clock = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - clock


def main() -> int:
    """Run the benchmark; return 1 if it misses the target."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--abstracts", type=int, default=10_000)
    parser.add_argument("--data", type=Path, help="folder with the labeled abstracts")
    options = parser.parse_args()
    sample = list(shuffled_abstracts(read_texts(options.data), options.abstracts))
    grader = offline_grader()
    grader.grade(QUESTION, sample[:20])
    steps = {
        "study type": lambda: [designs.recognise(abstract) for abstract in sample],
        "sample sizes": lambda: [sample_size.sample_sizes(abstract.text) for abstract in sample],
    }
    for name, work in steps.items():
        cpu, clock = time_call(work)
        print(
            f"{name}: {1000 * cpu / len(sample):.2f} ms per abstract ({cpu:.1f} s CPU,"
            f" {clock:.1f} s wall time)"
        )
    votes: Counter[str] = Counter()
    cpu, clock = time_call(
        lambda: votes.update(grade.recommendation for grade in grader.grade(QUESTION, sample))
    )
    print(
        f"all grading: {1000 * cpu / len(sample):.2f} ms per abstract ({cpu:.1f} s CPU,"
        f" {clock:.1f} s wall time)"
    )
    length = sum(len(abstract.text) for abstract in sample) / len(sample)
    print(f"{len(sample):,} abstracts of {length:.0f} characters: {dict(votes)}")
    print(f"target {TARGET:.0f} s: {'met' if cpu < TARGET else 'MISSED'}")
    return 0 if cpu < TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
