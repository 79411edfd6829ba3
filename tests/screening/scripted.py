"""Scripted graders and sources that count their calls, and tables of test cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from masis.errors import RetrievalFailed
from masis.schema.audit import JudgedBy
from masis.schema.base import Unscored
from masis.schema.calls import Usage
from masis.schema.screening import Abstract, Design, Grade
from masis.screening.grading import rubric
from masis.screening.grading.recommendation import quality_of, recommend, with_prior_floor

TABLES = Path(__file__).parent / "tables"


def table(name: str) -> list[tuple[str, ...]]:
    """Parse a table of cases: one row per line, fields separated by bars."""
    lines = (TABLES / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [tuple(line.split(" | ")) for line in lines if not line.startswith("#")]


class ScriptedOpinion(NamedTuple):
    """A scripted opinion: relevance, raw methodology, design, and whether the sample is large
    enough.
    """

    relevance: float | None = 0.9
    methodology: float | None = 0.8
    design: Design = "randomised_trial"
    adequate: bool | None = True


STRONG = ScriptedOpinion()
WEAK = ScriptedOpinion(0.9, 0.1, "case_report", None)
SERIES = ScriptedOpinion(0.95, 0.35, "case_series", None)
BORDERLINE = ScriptedOpinion(0.4, 0.6, "cohort_study", True)
OFF_TOPIC = ScriptedOpinion(0.05, 0.9, "randomised_trial", True)
UNREADABLE = ScriptedOpinion(None, None)


def grade_of(abstract_id: str, opinion: ScriptedOpinion, model: str = "scripted") -> Grade:
    """Return the grade that the rules derive from an opinion."""
    methodology = with_prior_floor(opinion.methodology, opinion.design)
    decision = recommend(opinion.relevance, methodology, opinion.design, opinion.adequate)
    return Grade(
        abstract_id=abstract_id,
        relevance_score=opinion.relevance,
        methodology_score=methodology,
        methodology_raw=opinion.methodology,
        prior=rubric.HIERARCHY[opinion.design].prior,
        quality=quality_of(opinion.relevance, methodology),
        sample_size_adequate=opinion.adequate,
        study_type=None,
        study_type_confidence=None,
        design=opinion.design,
        recommendation=decision.recommendation,
        rule=decision.rule,
        judged_by=JudgedBy(model=model, version="1"),
        unscored=Unscored(reason="unreadable") if decision.rule == "unscored" else None,
    )


class ScriptedGrader:
    """Grades abstracts by id and records the ids in order."""

    def __init__(
        self,
        opinions: Mapping[str, ScriptedOpinion],
        default: ScriptedOpinion = STRONG,
        model: str = "scripted",
    ) -> None:
        self.opinions, self.default = opinions, default
        self.judged_by = JudgedBy(model=model, version="1")
        self.usage = Usage()
        self.graded_ids: list[str] = []

    def grade(self, question: str, abstracts: Sequence[Abstract]) -> tuple[Grade, ...]:
        """Return the scripted grade of each abstract."""
        self.graded_ids.extend(abstract.id for abstract in abstracts)
        return tuple(
            grade_of(
                abstract.id,
                self.opinions.get(abstract.id, self.default),
                self.judged_by.model,
            )
            for abstract in abstracts
        )


class ScriptedSource:
    """Answers the n-th query with the n-th list, and with nothing after the last list."""

    def __init__(self, *answers: Sequence[Abstract], name: str = "scripted") -> None:
        self.name, self.answers = name, list(answers)
        self.queries: list[str] = []

    def search(self, query: str, limit: int, offset: int = 0) -> tuple[Abstract, ...]:
        """Return the next list of the script."""
        self.queries.append(query)
        return tuple(self.answers.pop(0))[:limit] if self.answers else ()


class BrokenSource:
    """A source whose searches always fail."""

    name = "broken"

    def search(self, query: str, limit: int, offset: int = 0) -> tuple[Abstract, ...]:
        """Always fails."""
        raise RetrievalFailed("it did not answer. Try again later.")


def abstracts(*ids: str) -> tuple[Abstract, ...]:
    """Return abstracts with these ids that differ in every field."""
    return tuple(
        Abstract(
            id=abstract_id,
            title=f"Study {abstract_id} of aspirin for headache",
            text=f"Aspirin against headache, report {abstract_id}.",
        )
        for abstract_id in ids
    )


def cancelled_from(limit: int) -> Callable[[], bool]:
    """Return a ``cancelled`` callback that returns True from the ``limit``-th call on."""
    calls = iter(range(10_000))
    return lambda: next(calls) >= limit
