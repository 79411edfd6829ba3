"""The evidence critic by itself, on abstracts written for it: ``python -m masis.screening.demo [QUESTION ...]``.

No network, no key, no database: the shipped abstracts are searched in memory and graded without a model. Every question
is screened round by round, and what the critic concludes is printed beside what was expected and why.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from masis.observers.observation import ScreeningStart, run_to_completion
from masis.schema.base import Record
from masis.schema.screening import Abstract, Outcome, Round, Screening
from masis.schema.wording import counted
from masis.screening.grading.grader import Grader
from masis.screening.grading.offline_grader import offline_grader
from masis.screening.rounds import round_loop
from masis.screening.sources.retrievers import InMemoryRetriever
from masis.settings import Settings
from masis.version import app_root

CORPUS = "demo"
"""The name of the corpus of demo abstracts."""


class Expected(Record):
    """What the critic should conclude: the outcome, and after how many rounds (``least`` to ``most``)."""

    outcome: Outcome
    least: int
    most: int


class DemoQuestion(Record):
    """A question on the demo abstracts. ``retrieve`` is how many abstracts a search should bring."""

    id: str
    question: str
    kind: Literal["strong", "borderline", "mixed", "weak", "insufficient"]
    retrieve: int
    expected: Expected
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
    return screening.outcome == expected.outcome and expected.least <= len(screening.rounds) <= expected.most


_HEAD = "round  found  new  keep  more  discard  average  required  consensus      decision"


def lines(question: DemoQuestion, screening: Screening) -> Iterator[str]:
    """Yield a question's rounds as lines of plain text."""
    yield f"{question.id} ({question.kind}): {question.question}"
    yield ""
    yield f"  {_HEAD}"
    for each in screening.rounds:
        yield f"  {_row(each)}"
    yield ""
    for each in screening.rounds[1:]:
        for query in each.queries:
            yield from _wrapped(f"round {each.number}: “{query.text}”.", query.why)
    yield f"  {_concluded(screening.outcome, len(screening.rounds))}, {len(screening.kept)} kept."
    met = "As expected" if as_expected(question, screening) else f"NOT as expected ({_wanted(question.expected)})"
    yield from _wrapped(f"{met}:", question.why)


def _row(each: Round) -> str:
    ruling = each.ruling
    average = "-" if ruling.average is None else f"{ruling.average:.3f}"
    words = {"sufficient": "sufficient", "retrieve_more": "retrieve more"}
    return (
        f"{each.number:>5}  {len(each.retrieved):>5}  {len(each.new):>3}  {ruling.tally.keep:>4}  "
        f"{ruling.tally.needs_more:>4}  {ruling.tally.discard:>7}  {average:>7}  {ruling.required_average:>8.2f}  "
        f"{words[ruling.consensus]:<13}  {words[ruling.decision]}"
    )


def _concluded(outcome: Outcome, count: int) -> str:
    return f"{outcome.replace('_', ' ').capitalize()} after {counted(count, 'round')}"


def _wanted(expected: Expected) -> str:
    span = f"{expected.least}" if expected.least == expected.most else f"{expected.least} to {expected.most}"
    return f"{expected.outcome.replace('_', ' ')}, rounds: {span}"


def _wrapped(head: str, text: str) -> Iterator[str]:
    yield from textwrap.wrap(f"{head} {text}", width=110, initial_indent="  ", subsequent_indent="    ")


def main(arguments: Sequence[str] | None = None) -> int:
    """Screen the demo questions named, or all; 0 if each went as expected, 1 if one did not, 2 on wrong use."""
    questions = {each.id: each for each in demo_questions()}
    parser = argparse.ArgumentParser(prog="python -m masis.screening.demo", description=(__doc__ or "").split("\n")[2])
    parser.add_argument("question", nargs="*", help=f"one or more of {', '.join(questions)}; all unless given")
    chosen = parser.parse_args(arguments).question or list(questions)
    if unknown := [each for each in chosen if each not in questions]:
        parser.error(f"no such question: {', '.join(unknown)}; there are {', '.join(questions)}")
    abstracts, grader = tuple(demo_abstracts()), offline_grader()
    met = True
    sys.stdout.write(f"{len(abstracts)} abstracts written for the demo; no study in them took place.\n\n")
    for name in chosen:
        screening = simulate(questions[name], abstracts, grader)
        sys.stdout.write("\n".join(lines(questions[name], screening)) + "\n\n")
        met = met and as_expected(questions[name], screening)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
