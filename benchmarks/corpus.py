"""Time the import and search of a corpus of 100,000 abstracts.

    python benchmarks/corpus.py [--abstracts 100000] --data FOLDER [--keep FOLDER]

The corpus is generated at run time from sentences, titles and keywords of the public abstracts,
with a fixed seed, and deleted at the end unless --keep names a folder. The queries are the
questions in ``benchmarks/questions.txt``, for 20 and then 50 abstracts each. Prints the median and
maximum over the questions, as wall time and as CPU time; compare CPU times if the machine is busy.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import re
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from masis.schema.screening import Abstract
from masis.screening.store import ScreeningStore
from masis.store import Store

QUESTIONS = Path(__file__).with_name("questions.txt")
TARGET_MS = 100.0
SEED = 5

Result = TypeVar("Result")


class Timed(NamedTuple):
    """The duration of one call in milliseconds: wall time, and CPU time of this process."""

    clock: float
    cpu: float


class Material(NamedTuple):
    """The parts from which abstracts are generated."""

    titles: tuple[str, ...]
    keywords: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...]
    lengths: tuple[int, ...]


def read_material(data: Path) -> Material:
    """Read the public abstracts' titles, keywords, sentences and numbers of sentences."""
    texts, titles, keywords = list[str](), list[str](), list[tuple[str, ...]]()
    for name in ("study_types_train.jsonl", "study_types_val.jsonl"):
        for line in (data / name).open(encoding="utf-8"):
            record = json.loads(line)
            titles.append(record["title"])
            texts.append(record["abstract"])
            keywords.append(
                tuple(word.strip() for word in record["keywords"].split("|") if word.strip())
            )
    for line in (data / "pubmedqa_cases.jsonl").open(encoding="utf-8"):
        record = json.loads(line)
        titles.append(record["query"])
        texts.append(" ".join(chunk["text"] for chunk in record["evidence"]))
    split = [tuple(filter(None, re.split(r"(?<=[.!?]) +", text))) for text in texts]
    return Material(
        tuple(titles),
        tuple(keywords),
        tuple(sentence for sentences in split for sentence in sentences),
        tuple(max(1, len(sentences)) for sentences in split),
    )


def generate_abstracts(count: int, material: Material) -> Iterator[Abstract]:
    """Yield abstracts whose sentences, title and keywords come from different public ones."""
    draw = random.Random(SEED)
    for number in range(count):
        yield Abstract(
            id=f"made-{number:06}",
            title=draw.choice(material.titles),
            text=" ".join(draw.choices(material.sentences, k=draw.choice(material.lengths))),
            keywords=draw.choice(material.keywords),
            # abstracts with equal titles but different years aren't deduplicated
            year=1980 + number % 45,
            pmid=str(number + 1),
            source="made",
        )


def read_questions() -> tuple[str, ...]:
    """Return the questions in ``benchmarks/questions.txt``."""
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def time_call(call: Callable[[], Result]) -> tuple[Result, Timed]:
    """Return the result of a call and how long it took."""
    clock, cpu = time.perf_counter(), time.process_time()
    result = call()
    return result, Timed((time.perf_counter() - clock) * 1000, (time.process_time() - cpu) * 1000)


def time_searches(store: Store, questions: Sequence[str], limit: int) -> list[Timed]:
    """Return how long each question takes the first time it is asked, up to its abstracts."""
    return [
        time_call(functools.partial(ScreeningStore(store).corpora.search, "made", question, limit))[
            1
        ]
        for question in questions
    ]


def print_times(name: str, times: Sequence[Timed]) -> bool:
    """Print a line of figures and return whether the median meets the target."""
    clock, cpu = [duration.clock for duration in times], [duration.cpu for duration in times]
    median = statistics.median(clock)
    met = "met" if median < TARGET_MS else "MISSED"
    print(
        f"{name:<34} {median:8.1f} {max(clock):8.1f} {statistics.median(cpu):8.1f} {max(cpu):8.1f} "
        f"  < {TARGET_MS:.0f} median: {met}"
    )
    return median < TARGET_MS


def main() -> int:
    """Import the corpus and search it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--abstracts", type=int, default=100_000)
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    parser.add_argument(
        "--keep",
        type=Path,
        help="keep the database in this folder, and reuse it if it is there",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = (options.keep or Path(folder)) / f"corpus-{options.generate_abstracts}.db"
        with Store.open(database) as store:
            import_corpus(store, options.abstracts, options.data)
            questions = read_questions()
            print(
                f"{len(questions)} questions, ms               wall: median      max   CPU: median   "
                "   max"
            )
            met = [
                print_times(f"first {limit} abstracts", time_searches(store, questions, limit))
                for limit in (20, 50)
            ]
    return 0 if all(met) else 1


def import_corpus(store: Store, count: int, data: Path) -> None:
    """Import the generated abstracts, unless the database already has them."""
    if any(corpus.name == "made" for corpus in ScreeningStore(store).corpora.list_all()):
        return
    material = read_material(data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result, times = time_call(
        lambda: ScreeningStore(store).corpora.add_many(
            "made", generate_abstracts(count, material), source="made"
        )
    )
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"imported {result.added:,} of {result.identified:,} abstracts in {times.cpu / 1000:.1f} s CPU"
        f" ({times.clock / 1000:.1f} s wall time), {store.path.stat().st_size / 1e6:.0f} MB on"
        f" disk, memory grew by {(after - before) / 1024:.0f} MB"
    )


if __name__ == "__main__":
    sys.exit(main())
