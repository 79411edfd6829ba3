"""The evidence critic by itself, on abstracts written for it: ``python -m masis.screening.demo [ID
...]``.

No network, no key, no database: the shipped abstracts are searched in memory and graded without a
model. Every question is screened round by round, and what the critic concludes is printed beside
what was expected and why.
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
    """What the critic should conclude: the outcome, and after how many rounds (``least`` to
    ``most``).
    """

    outcome: Outcome
    least: int
    most: int


class DemoQuestion(Record):
    """A question on the demo abstracts. ``retrieve`` is how many abstracts a search
    should bring.
    """

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
    """Return the questions on them."""
    found = json.loads((demo_folder() / "questions.json").read_text(encoding="utf-8"))
    return tuple(DemoQuestion.model_validate(each) for each in found)


def simulate(question: DemoQuestion, abstracts: Iterable[Abstract], grader: Grader) -> Screening:
    """Screen one demo question on abstracts in memory, with the default thresholds."""
    work = round_loop.screen(
        question.question,
        (InMemoryRetriever(abstracts, name="demo abstracts"),),
        grader,
        Settings(screening_retrieve=question.retrieve),
        screening_id=f"demo-{question.id}",
    )
    return run_to_completion(work, start=ScreeningStart())


def as_expected(question: DemoQuestion, screening: Screening) -> bool:
    """Return whether the critic concluded what was expected of it."""
    expected = question.expected
    return (
        screening.outcome == expected.outcome
        and expected.least <= len(screening.rounds) <= expected.most
    )


def main(ids: Sequence[str] = ()) -> int:
    """Screen these demo questions, or all, and print what came of each; 1 where one did not go as
    expected.
    """
    abstracts, grader = tuple(demo_abstracts()), offline_grader()
    sys.stdout.write(
        f"{len(abstracts)} abstracts written for the demo; no study in them took place.\n\n"
    )
    asked = [each for each in demo_questions() if not ids or each.id in ids]
    found = [(question, simulate(question, abstracts, grader)) for question in asked]
    for question, screening in found:
        how = "As expected" if as_expected(question, screening) else "NOT as expected"
        sys.stdout.write(
            f"{question.id} ({question.kind}): {question.question}\n "
            f" {screening.outcome.replace('_', ' ').capitalize()} after"
            f" {count_noun(len(screening.rounds), 'round')}, {len(screening.kept)} kept. {how}:"
            f" {question.why}\n"
        )
    return int(not all(as_expected(*each) for each in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
