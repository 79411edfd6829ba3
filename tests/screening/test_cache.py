"""Nothing graded twice: a grade is remembered by question, text, grader and rubric."""

from __future__ import annotations

import pytest

from masis.schema.audit import JudgedBy
from masis.schema.screening import Abstract, Grade
from masis.screening.grading import rubric
from masis.screening.grading.cache import CachingGrader, key_of
from tests.screening.scripted import STRONG, UNREADABLE, ScriptedGrader, abstracts

JUDGE = JudgedBy(model="m", version="1")


class GradesInMemory(dict[str, Grade]):
    """A cache that ends with the test."""

    put = dict.__setitem__


@pytest.mark.spec("AESOP-GRADING")
def test_what_was_graded_is_not_asked_for_again() -> None:
    grader = ScriptedGrader({})
    caching = CachingGrader(grader, GradesInMemory())
    first = caching.grade("aspirin", abstracts("a", "b"))
    second = caching.grade("aspirin", abstracts("b", "c", "a"))
    assert grader.asked == ["a", "b", "c"]
    assert [grade.abstract_id for grade in second] == ["b", "c", "a"]
    assert second[0] == first[1]


def test_what_could_not_be_graded_is_tried_again() -> None:
    grader = ScriptedGrader({"a": UNREADABLE})
    caching = CachingGrader(grader, GradesInMemory())
    caching.grade("aspirin", abstracts("a"))
    grader.says = {"a": STRONG}
    assert caching.grade("aspirin", abstracts("a"))[0].recommendation == "keep"
    assert grader.asked == ["a", "a"]


def test_a_grade_is_of_one_question_one_text_one_grader_and_one_rubric(monkeypatch: pytest.MonkeyPatch) -> None:
    abstract = Abstract(id="a", title="T", text="X")
    keys = {
        key_of("q", abstract, JUDGE),
        key_of("r", abstract, JUDGE),
        key_of("q", abstract.model_copy(update={"text": "Y"}), JUDGE),
        key_of("q", abstract.model_copy(update={"title": "TX", "text": ""}), JUDGE),
        key_of("q", abstract, JudgedBy(model="m", version="2")),
        key_of("q", abstract, JudgedBy(model="n", version="1")),
    }
    monkeypatch.setattr(rubric, "VERSION", "another")
    assert len({*keys, key_of("q", abstract, JUDGE)}) == 7


def test_what_no_grader_reads_does_not_matter() -> None:
    abstract = Abstract(id="a", title="T", text="X", year=2001)
    assert key_of("q", abstract, JUDGE) == key_of("q", abstract.model_copy(update={"year": 2002}), JUDGE)
