"""Measure how rare the words of medical abstracts are: ``masis/screening/grading/rarity.json``.

    PYTHONPATH=. python tools/fit_term_rarity.py --data FOLDER

Counts in how many abstracts each word stem occurs, over ``study_types_train.jsonl`` and every
second case of ``pubmedqa_cases.jsonl`` (``benchmarks/screening_relevance.py`` measures on the other
half). Keeps the stems that occur in at least 1% of them. Their rarity is log(n / occurrences) /
log(n): 0 if the stem occurs in every abstract, 1 if it occurs in one. A stem that isn't in the list
is rare.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from masis.offline.text.tokens import tokens

HERE = Path(__file__).resolve().parents[1] / "masis" / "screening" / "rarity.json"
LEAST_SHARE = 0.01


def texts(data: Path) -> Iterator[str]:
    """Return the abstracts to count, including their titles."""
    with (data / "study_types_train.jsonl").open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            yield f"{row['title']}. {row['abstract']}"
    with (data / "pubmedqa_cases.jsonl").open(encoding="utf-8") as lines:
        for number, row in enumerate(map(json.loads, lines)):
            if number % 2 == 0:
                yield " ".join([row["query"], *(chunk["text"] for chunk in row["evidence"])])


def fit(data: Path) -> dict[str, float]:
    """Return the rarity of each stem that isn't rare."""
    counts: Counter[str] = Counter()
    count = 0
    for text in texts(data):
        count += 1
        counts.update(
            {token.stem for token in tokens(text) if token.weight and not token.stem[0].isdigit()}
        )
    return {
        stem: round(math.log(count / times) / math.log(count), 3)
        for stem, times in sorted(counts.items())
        if times >= LEAST_SHARE * count
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    rarity = fit(parser.parse_args().data)
    HERE.write_text(
        json.dumps(rarity, ensure_ascii=False, indent=0, sort_keys=True) + "\n", encoding="utf-8"
    )
    print(f"{len(rarity)} stems, {HERE.stat().st_size / 1000:.0f} kB")
