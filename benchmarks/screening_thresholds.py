"""Measure how often the acceptance memory and the decreasing requirement change a screening.

    PYTHONPATH=. python benchmarks/screening_thresholds.py --data FOLDER

Screens every second question of ``pubmedqa_cases.jsonl`` on all its abstracts (without the authors'
conclusions and titles) and each demo question on the demo abstracts. Each is screened four times:
with the required averages of the settings, with those raised and lowered as far as memory may move
them, and with the first average required in every round. Prints how many results differ. Without
the data, screens only the demo questions.
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
UNCHANGED = thresholds_of(SETTINGS)
BOUND = SETTINGS.screening_memory_bound


class GradesByKey:
    """A cache of grades in memory."""

    def __init__(self) -> None:
        self._grades: dict[str, Grade] = {}

    def get(self, key: str) -> Grade | None:
        """Return the grade under a key."""
        return self._grades.get(key)

    def store(self, key: str, grade: Grade) -> None:
        """Store a grade under a key."""
        self._grades[key] = grade


def shift_thresholds(by: float) -> Thresholds:
    """Return the thresholds with the required averages shifted as memory would shift them."""
    minimum = SETTINGS.screening_required_least
    averages = tuple(max(minimum, round(average + by, 6)) for average in UNCHANGED.required_average)
    return UNCHANGED.model_copy(
        update={
            "required_average": averages,
            "own_average": UNCHANGED.required_average,
            "adapted_by": by,
        }
    )


VARIANTS = {
    f"memory requires {BOUND:.2f} less": shift_thresholds(-BOUND),
    f"memory requires {BOUND:.2f} more": shift_thresholds(BOUND),
    "constant requirement": UNCHANGED.model_copy(
        update={"required_average": UNCHANGED.required_average[:1]}
    ),
}


def measure(name: str, questions: Iterable[str], abstracts: Sequence[Abstract]) -> None:
    """Print which screenings end differently with other requirements."""
    source, grader = (
        InMemoryRetriever(abstracts, name=name),
        CachingGrader(offline_grader(), GradesByKey()),
    )

    def one(question: str, thresholds: Thresholds) -> Screening:
        steps = screen(
            question, (source,), grader, SETTINGS, screening_id="b", thresholds=thresholds
        )
        return run_to_completion(steps)

    all_questions = tuple(questions)
    baseline = {question: one(question, UNCHANGED) for question in all_questions}
    ends = Counter(screening.outcome for screening in baseline.values())
    print(f"{name}: {len(all_questions)} questions on {len(abstracts)} abstracts; {dict(ends)}")
    for variant, thresholds in VARIANTS.items():
        other = {question: one(question, thresholds) for question in all_questions}
        decision = [q for q in all_questions if other[q].decision != baseline[q].decision]
        rounds = [q for q in all_questions if len(other[q].rounds) != len(baseline[q].rounds)]
        print(
            f"  {variant}: {len(decision)} end with a different decision, {len(rounds)} after a"
            " different number of rounds"
        )
        for question in decision[:3]:
            print(f"    {question}: {baseline[question].outcome} -> {other[question].outcome}")


def main(data: Path) -> None:
    """Print the figures."""
    measure("demo", (demo.question for demo in demo_questions()), tuple(demo_abstracts()))
    path = data / "pubmedqa_cases.jsonl"
    if not path.exists():
        raise SystemExit(
            f"{data} has no pubmedqa_cases.jsonl, so only the demo questions were screened"
        )
    cases = [json.loads(line) for line in path.open(encoding="utf-8")]
    texts = tuple(
        Abstract(id=case["id"], text=" ".join(chunk["text"] for chunk in case["evidence"]))
        for case in cases
    )
    measure("PubMedQA", (case["query"] for case in cases[::2]), texts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    main(parser.parse_args().data)
