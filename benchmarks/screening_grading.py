"""How long the offline grader takes for 10,000 abstracts, and for which of its steps.

    PYTHONPATH=. python benchmarks/screening_grading.py [--abstracts 10000] [--data FOLDER]

Each abstract is one of the labelled files (without --data of the demo corpus), its sentences in an
order drawn with a fixed seed, so that no two are the same text and nothing remembered helps. Prints
seconds of this process's own time and by the clock, and exits with 1 where the own time is over a
minute. One process, one core.
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


def material(data: Path | None) -> list[tuple[str, str]]:
    """Titles and texts to make abstracts of."""
    if data is None:
        rows = [json.loads(line) for line in DEMO.read_text(encoding="utf-8").splitlines()]
        return [(row["title"], row["text"]) for row in rows]
    lines = [
        line for name in FILES for line in (data / name).read_text(encoding="utf-8").splitlines()
    ]
    rows = [json.loads(line) for line in lines]
    return [(row["title"], row["abstract"]) for row in rows]


def abstracts(known: Sequence[tuple[str, str]], count: int) -> Iterator[Abstract]:
    """So many abstracts, each with its sentences in an order of its own."""
    draw = random.Random(SEED)
    for number in range(count):
        title, text = known[number % len(known)]
        sentences = _SENTENCE_END.split(text)
        draw.shuffle(sentences)
        yield Abstract(id=str(number), title=title, text=f"{' '.join(sentences)} No. {number}.")


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds a piece of work takes: this process's own, and by the clock."""
    own, clock = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - own, time.perf_counter() - clock


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--abstracts", type=int, default=10_000)
    parser.add_argument("--data", type=Path, help="folder with the labelled abstracts")
    chosen = parser.parse_args()
    sample = list(abstracts(material(chosen.data), chosen.abstracts))
    grader = offline_grader()
    grader.grade(QUESTION, sample[:20])
    steps = {
        "study type": lambda: [designs.recognise(each) for each in sample],
        "sample sizes": lambda: [sample_size.sample_sizes(each.text) for each in sample],
    }
    for name, work in steps.items():
        own, clock = spent(work)
        print(
            f"{name}: {1000 * own / len(sample):.2f} ms an abstract ({own:.1f} s own, {clock:.1f} s"
            " by the clock)"
        )
    votes: Counter[str] = Counter()
    own, clock = spent(
        lambda: votes.update(grade.recommendation for grade in grader.grade(QUESTION, sample))
    )
    print(
        f"grading whole: {1000 * own / len(sample):.2f} ms an abstract ({own:.1f} s own,"
        f" {clock:.1f} s by the clock)"
    )
    length = sum(len(each.text) for each in sample) / len(sample)
    print(f"{len(sample):,} abstracts of {length:.0f} characters: {dict(votes)}")
    print(f"target {TARGET:.0f} s: {'met' if own < TARGET else 'MISSED'}")
    return 0 if own < TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
