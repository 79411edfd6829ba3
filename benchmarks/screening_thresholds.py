"""How often the acceptance memory and the falling requirement decide a screening.

    PYTHONPATH=. python benchmarks/screening_thresholds.py --data FOLDER

Every second question of ``pubmedqa_cases.jsonl`` is screened on all its abstracts (authors'
conclusions and titles left out), and each demo question on the demo abstracts, four times: with the
required averages of the settings, with those moved by the bound of memory either way, and with the
first one required in every round. Counted is what ends otherwise. Without the data only the demo
questions are screened.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from masis.observers.observation import run_to_completion
from masis.schema.screening import Abstract, Grade, Screening, Thresholds
from masis.screening.demo import demo_abstracts, demo_questions
from masis.screening.grading.grader import CachingGrader
from masis.screening.grading.offline_grader import offline_grader
from masis.screening.rounds.round_loop import screen
from masis.screening.rounds.ruling import thresholds_of
from masis.screening.sources.retrievers import InMemoryRetriever
from masis.settings import Settings

SETTINGS = Settings()
OWN = thresholds_of(SETTINGS)
BOUND = SETTINGS.screening_memory_bound


class GradesByKey:
    """Grades that were given before, in memory."""

    def __init__(self) -> None:
        self._grades: dict[str, Grade] = {}

    def get(self, key: str) -> Grade | None:
        """Return the grade under a key."""
        return self._grades.get(key)

    def store(self, key: str, grade: Grade) -> None:
        """Keep a grade under a key."""
        self._grades[key] = grade


def moved(by: float) -> Thresholds:
    """Return the thresholds as memory moves them."""
    least = SETTINGS.screening_required_least
    averages = tuple(max(least, round(each + by, 6)) for each in OWN.required_average)
    return OWN.model_copy(
        update={"required_average": averages, "own_average": OWN.required_average, "adapted_by": by}
    )


WAYS = {
    f"memory asks {BOUND:.2f} less": moved(-BOUND),
    f"memory asks {BOUND:.2f} more": moved(BOUND),
    "no falling requirement": OWN.model_copy(update={"required_average": OWN.required_average[:1]}),
}


def measure(name: str, questions: Iterable[str], abstracts: Sequence[Abstract]) -> None:
    """Print what ends otherwise with other requirements."""
    source, grader = (
        InMemoryRetriever(abstracts, name=name),
        CachingGrader(offline_grader(), GradesByKey()),
    )

    def one(question: str, thresholds: Thresholds) -> Screening:
        steps = screen(
            question, (source,), grader, SETTINGS, screening_id="b", thresholds=thresholds
        )
        return run_to_completion(steps)

    asked = tuple(questions)
    usual = {question: one(question, OWN) for question in asked}
    ends = Counter(each.outcome for each in usual.values())
    print(f"{name}: {len(asked)} questions on {len(abstracts)} abstracts; {dict(ends)}")
    for way, thresholds in WAYS.items():
        other = {question: one(question, thresholds) for question in asked}
        decision = [q for q in asked if other[q].decision != usual[q].decision]
        rounds = [q for q in asked if len(other[q].rounds) != len(usual[q].rounds)]
        print(
            f"  {way}: {len(decision)} end with another decision, {len(rounds)} after another"
            " number of rounds"
        )
        for question in decision[:3]:
            print(f"    {question}: {usual[question].outcome} -> {other[question].outcome}")


def main(data: Path) -> None:
    """Print the figures."""
    measure("demo", (each.question for each in demo_questions()), tuple(demo_abstracts()))
    path = data / "pubmedqa_cases.jsonl"
    if not path.exists():
        raise SystemExit(
            f"no pubmedqa_cases.jsonl in {data}: only the demo questions were screened"
        )
    cases = [json.loads(line) for line in path.open(encoding="utf-8")]
    texts = tuple(
        Abstract(id=case["id"], text=" ".join(each["text"] for each in case["evidence"]))
        for case in cases
    )
    measure("PubMedQA", (case["query"] for case in cases[::2]), texts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    main(parser.parse_args().data)
