"""How fast a corpus of 100,000 abstracts is imported and searched.

    python benchmarks/corpus.py [--abstracts 100000] --data FOLDER [--keep FOLDER]

The corpus is put together at run time from sentences, titles and keywords of the public abstracts,
drawn with a fixed seed; nothing of it is kept. Searched with the questions of
``benchmarks/questions.txt``, 20 and then 50 abstracts each. Prints the median and the worst of the
questions by the clock, and this process's own time, which on a busy machine is the better figure.
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
from masis.store import Store

QUESTIONS = Path(__file__).with_name("questions.txt")
TARGET_MS = 100.0
SEED = 5

Result = TypeVar("Result")


class Timed(NamedTuple):
    """Milliseconds of one call: by the clock, and this process's own."""

    clock: float
    own: float


class Material(NamedTuple):
    """What abstracts are put together from."""

    titles: tuple[str, ...]
    keywords: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...]
    lengths: tuple[int, ...]


def material(data: Path) -> Material:
    """Titles, keywords, sentences of the public abstracts, and how many sentences each has."""
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


def abstracts(count: int, drawn_from: Material) -> Iterator[Abstract]:
    """Abstracts whose sentences, titles and keywords come from different ones."""
    draw = random.Random(SEED)
    for number in range(count):
        yield Abstract(
            id=f"made-{number:06}",
            title=draw.choice(drawn_from.titles),
            text=" ".join(draw.choices(drawn_from.sentences, k=draw.choice(drawn_from.lengths))),
            keywords=draw.choice(drawn_from.keywords),
            # two with the same title and another year are not the same study
            year=1980 + number % 45,
            pmid=str(number + 1),
            source="made",
        )


def questions() -> tuple[str, ...]:
    """The committed questions."""
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def timed(call: Callable[[], Result]) -> tuple[Result, Timed]:
    """The result of a call and its milliseconds."""
    clock, own = time.perf_counter(), time.process_time()
    result = call()
    return result, Timed((time.perf_counter() - clock) * 1000, (time.process_time() - own) * 1000)


def searched(store: Store, asked: Sequence[str], limit: int) -> list[Timed]:
    """Milliseconds of each question, as a reader meets them: from the question to the abstracts,
    first time asked.
    """
    return [
        timed(functools.partial(store.corpora.search, "made", question, limit))[1]
        for question in asked
    ]


def shown(name: str, times: Sequence[Timed]) -> bool:
    """Print a line of figures; whether the median meets the target."""
    clock, own = [each.clock for each in times], [each.own for each in times]
    median = statistics.median(clock)
    met = "met" if median < TARGET_MS else "MISSED"
    print(
        f"{name:<34} {median:8.1f} {max(clock):8.1f} {statistics.median(own):8.1f} {max(own):8.1f} "
        f"  < {TARGET_MS:.0f} median: {met}"
    )
    return median < TARGET_MS


def main() -> int:
    """Build and search."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--abstracts", type=int, default=100_000)
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    parser.add_argument(
        "--keep",
        type=Path,
        help="a folder to keep the database in, and to take it from when it is there",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = (options.keep or Path(folder)) / f"corpus-{options.abstracts}.db"
        with Store.open(database) as store:
            build(store, options.abstracts, options.data)
            asked = questions()
            print(
                f"{len(asked)} questions, ms              clock: median    worst   own: median   "
                " worst"
            )
            met = [
                shown(f"first {limit} abstracts", searched(store, asked, limit))
                for limit in (20, 50)
            ]
    return 0 if all(met) else 1


def build(store: Store, count: int, data: Path) -> None:
    """Import the made abstracts, unless they are there."""
    if any(each.name == "made" for each in store.corpora.list_all()):
        return
    drawn_from = material(data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done, spent = timed(
        lambda: store.corpora.add_many("made", abstracts(count, drawn_from), source="made")
    )
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"imported {done.added:,} of {done.identified:,} abstracts in {spent.own / 1000:.1f} s own"
        f" ({spent.clock / 1000:.1f} s by the clock), {store.path.stat().st_size / 1e6:.0f} MB on"
        f" disk, memory grew by {(after - before) / 1024:.0f} MB"
    )


if __name__ == "__main__":
    sys.exit(main())
