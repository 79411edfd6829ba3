"""Runs the evidence critic on demo abstracts: ``python -m masis.screening.demo [ID ...]``.

It needs no network, key or database. The shipped abstracts are searched in memory and graded
without a model. Each question is screened round by round, and the critic's conclusion is printed
next to the expected one, with the reason.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from masis.observers.observation import ScreeningStart, run_to_completion
from masis.schema.base import Record
from masis.schema.screening import Abstract, Outcome, Screening
from masis.schema.wording import count_noun
from masis.screening.grading.grader import Grader
from masis.screening.grading.offline_grader import offline_grader
from masis.screening.rounds import round_loop
from masis.screening.sources.retrievers import InMemoryRetriever
from masis.settings import Settings
from masis.version import app_root

CORPUS = "demo"
"""The name of the corpus of demo abstracts."""


class ExpectedOutcome(Record):
    """The conclusion that the critic should reach, after ``least`` to ``most`` rounds."""

    outcome: Outcome
    least: int
    most: int


class DemoQuestion(Record):
    """A question on the demo abstracts. A search retrieves ``retrieve`` of them per round."""

    id: str
    question: str
    kind: Literal["strong", "borderline", "mixed", "weak", "insufficient"]
    retrieve: int
    expected: ExpectedOutcome
    why: str


def demo_folder() -> Path:
    """Return the folder of the demo abstracts."""
    return app_root() / "data" / "screening"


def demo_abstracts() -> Iterator[Abstract]:
    """Yield the abstracts written for the demo."""
    with (demo_folder() / "abstracts.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            yield Abstract.model_validate_json(line)


def demo_questions() -> tuple[DemoQuestion, ...]:
    """Return the questions on the demo abstracts."""
    rows = json.loads((demo_folder() / "questions.json").read_text(encoding="utf-8"))
    return tuple(DemoQuestion.model_validate(row) for row in rows)


def simulate(question: DemoQuestion, abstracts: Iterable[Abstract], grader: Grader) -> Screening:
    """Screen one demo question on abstracts in memory, with the default thresholds."""
    steps = round_loop.screen(
        question.question,
        (InMemoryRetriever(abstracts, name="demo abstracts"),),
        grader,
        Settings(screening_retrieve=question.retrieve),
        screening_id=f"demo-{question.id}",
    )
    return run_to_completion(steps, start=ScreeningStart())


def as_expected(question: DemoQuestion, screening: Screening) -> bool:
    """Return whether the critic reached the expected conclusion in the expected rounds."""
    expected = question.expected
    return (
        screening.outcome == expected.outcome
        and expected.least <= len(screening.rounds) <= expected.most
    )


def main(ids: Sequence[str] = ()) -> int:
    """Screen these demo questions, or all, and print the results.

    Returns the exit status: 1 if a conclusion isn't the expected one, else 0.
    """
    abstracts, grader = tuple(demo_abstracts()), offline_grader()
    sys.stdout.write(
        f"{len(abstracts)} abstracts written for the demo. The studies in them are invented.\n\n"
    )
    questions = [question for question in demo_questions() if not ids or question.id in ids]
    results = [(question, simulate(question, abstracts, grader)) for question in questions]
    for question, screening in results:
        verdict = "As expected" if as_expected(question, screening) else "NOT as expected"
        sys.stdout.write(
            f"{question.id} ({question.kind}): {question.question}\n "
            f" {screening.outcome.replace('_', ' ').capitalize()} after"
            f" {count_noun(len(screening.rounds), 'round')}, {len(screening.kept)} kept. {verdict}:"
            f" {question.why}\n"
        )
    return int(not all(as_expected(*result) for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
