"""Measure how often the extracted direction of a study's conclusion is right.

    PYTHONPATH=. python benchmarks/screening_directions.py [--data FOLDER]

``screening_directions.txt`` has 152 sentences written for this project before the rules, in the
style of abstracts: a question (``?``), then sentences with their directions (E effect, N no clear
effect, O opposite, C comparable to another treatment, U not about the outcome). By question, two
thirds were used to develop the rules, so report the last third.

With ``--data``, PubMedQA's conclusions are read, too. For each question it has the answer that the
authors' conclusion gives: yes, no or maybe. The direction "effect" counts as yes; "no clear effect"
and "opposite" count as no. The odd rows were used to develop the rules, so report the even ones.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from masis.schema.screening import Abstract, Direction
from masis.screening.grading.directions import finding

SENTENCES = Path(__file__).with_suffix(".txt")
LABELS: dict[str, Direction] = {
    "E": "effect",
    "N": "no_clear_effect",
    "O": "opposite",
    "C": "comparable",
    "U": "unclear",
}
ANSWERS: dict[Direction, str] = {"effect": "yes", "no_clear_effect": "no", "opposite": "no"}
PARTS = ("fit", "choose", "report")


class LabeledSentence(NamedTuple):
    """A sentence of a conclusion, the question it may answer, its direction and its part."""

    question: str
    text: str
    direction: Direction
    part: str


def read_sentences() -> list[LabeledSentence]:
    """Return the labeled sentences; the questions are divided among the parts in turn."""
    sentences: list[LabeledSentence] = []
    question, number = "", -1
    for line in SENTENCES.read_text(encoding="utf-8").splitlines():
        label, _, text = line.partition(" ")
        if label == "?":
            question, number = text, number + 1
        else:
            part = PARTS[number % len(PARTS)]
            sentences.append(LabeledSentence(question, text, LABELS[label], part))
    return sentences


def print_sentences() -> None:
    """Print how many directions are read and right, and how many are reversed, by part."""
    sentences = read_sentences()
    for part in PARTS:
        pairs = [
            (
                row.direction,
                finding(row.question, Abstract(id="a", text=f"CONCLUSIONS: {row.text}")).direction,
            )
            for row in sentences
            if row.part == part
        ]
        read = [pair for pair in pairs if pair[1] != "unclear"]
        right = sum(label == direction for label, direction in read)
        reversed_ = sum({*pair} == {"effect", "opposite"} for pair in read)
        null_as_effect = read.count(("no_clear_effect", "effect"))
        stated = sum(label != "unclear" for label, _ in pairs)
        print(
            f"own sentences, {part}: {len(pairs)}, {stated} with a direction; read {len(read)},"
            f" right {right} ({right / len(read):.1%}), reversed {reversed_},"
            f" no clear effect read as effect {null_as_effect}"
        )


def print_pubmedqa(data: Path) -> None:
    """Print how often the direction is the authors' answer, on the development half and the rest."""
    path = data / "pubmedqa_cases.jsonl"
    if not path.exists():
        raise SystemExit(f"skipped: no pubmedqa_cases.jsonl in {data}")
    cases = [json.loads(line) for line in path.open(encoding="utf-8")]
    for name, half in (("development", cases[1::2]), ("held out", cases[0::2])):
        table: Counter[tuple[str, str]] = Counter()
        for case in half:
            text = "\n".join(f"{chunk['section']}: {chunk['text']}" for chunk in case["evidence"])
            abstract = Abstract(id=case["id"], text=f"{text}\nCONCLUSIONS: {case['answer']}")
            direction = finding(case["query"], abstract).direction
            table[case["labels"]["final_decision"], ANSWERS.get(direction, "maybe")] += 1
        stated = sum(count for (_, read), count in table.items() if read != "maybe")
        right = sum(count for (label, read), count in table.items() if label == read != "maybe")
        share = f"correct in {right} ({right / stated:.1%})"
        print(f"{name}: {len(half)} conclusions, a direction in {stated}, {share}")
        for label in ("yes", "no", "maybe"):
            print(
                f"  {label:6}"
                + "".join(
                    f"  read as {read} {table[label, read]}" for read in ("yes", "no", "maybe")
                )
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the public data sets")
    options = parser.parse_args()
    print_sentences()
    if options.data is not None:
        print_pubmedqa(options.data)
