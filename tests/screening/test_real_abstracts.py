"""Real abstracts graded without a model: every grade keeps the promises of its record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from masis.schema.screening import Abstract
from masis.screening.grading import rubric
from masis.screening.grading.offline_grader import offline_grader
from masis.screening.grading.recommendation import quality_of, recommend

QUESTIONS = (
    "Does cognitive behavioural therapy reduce symptoms of depression in adolescents?",
    "Do triptans relieve migraine better than placebo?",
    "Does exercise protect the hippocampus in rats?",
)


def abstracts(public_data: Path) -> list[Abstract]:
    rows = (public_data / "study_types_val.jsonl").read_text(encoding="utf-8").splitlines()
    return [Abstract(id=row["pmid"], title=row["title"], text=row["abstract"]) for row in map(json.loads, rows[::3])]


@pytest.mark.parametrize("question", QUESTIONS)
def test_words_stand_where_they_are_said_to_and_the_rules_hold(public_data: Path, question: str) -> None:
    found = abstracts(public_data)
    grades = offline_grader().grade(question, found)
    assert len(grades) == len(found) > 150
    for abstract, grade in zip(found, grades, strict=True):
        assert grade.abstract_id == abstract.id
        for reason in grade.reasons.values():
            assert reason.text
            for words in reason.words:
                source = abstract.title if words.place == "title" else abstract.text
                assert source[words.start : words.end] == words.text
        if grade.design is not None and grade.methodology_raw is not None:
            assert grade.methodology_score == max(grade.methodology_raw, rubric.HIERARCHY[grade.design].prior)
        assert grade.quality == quality_of(grade.relevance_score, grade.methodology_score)
        if grade.recommendation == "keep":
            assert grade.quality is not None
            assert grade.quality >= rubric.KEEP_QUALITY
            assert grade.design is not None
            assert rubric.HIERARCHY[grade.design].concludes or "rats" in question
            advice = recommend(grade.relevance_score, grade.methodology_score, grade.design, None)
            assert advice.recommendation == "keep" or "rats" in question


def test_the_same_abstract_gets_the_same_grade_in_any_company(public_data: Path) -> None:
    found = abstracts(public_data)[:60]
    grader = offline_grader()
    together = grader.grade(QUESTIONS[0], found)
    alone = [grader.grade(QUESTIONS[0], [abstract])[0] for abstract in reversed(found)]
    assert list(together) == alone[::-1]
