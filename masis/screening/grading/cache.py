"""A grader that caches its grades by question, abstract, grader and rubric version, so that nothing is graded twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from masis.schema.audit import JudgedBy
from masis.schema.calls import Usage
from masis.schema.screening import Abstract, Grade
from masis.screening.grading import rubric
from masis.screening.grading.grader import Grader


class GradeCache(Protocol):
    """Stored grades by key."""

    def get(self, key: str) -> Grade | None:
        """Return the grade under a key; None where there is none."""
        ...

    def put(self, key: str, grade: Grade) -> None:
        """Store a grade under a key."""
        ...


@dataclass(frozen=True)
class CachingGrader:
    """Asks ``grader`` only for grades that ``cache`` lacks. Unscored grades are not cached but tried again."""

    grader: Grader
    cache: GradeCache

    @property
    def judged_by(self) -> JudgedBy:
        """The grader behind the cache."""
        return self.grader.judged_by

    @property
    def usage(self) -> Usage:
        """What the grader has spent; a cached grade costs nothing."""
        return self.grader.usage

    def grade(self, question: str, abstracts: Sequence[Abstract]) -> tuple[Grade, ...]:
        """Return one grade for each abstract, in the same order."""
        keys = [key_of(question, abstract, self.judged_by) for abstract in abstracts]
        grades = {key: grade for key in keys if (grade := self.cache.get(key)) is not None}
        missing = [(key, abstract) for key, abstract in zip(keys, abstracts, strict=True) if key not in grades]
        if missing:
            new_grades = {g.abstract_id: g for g in self.grader.grade(question, [abstract for _, abstract in missing])}
            for key, abstract in missing:
                grade = new_grades.get(abstract.id)
                if grade is not None:
                    grades[key] = grade
                    if grade.unscored is None:
                        self.cache.put(key, grade)
        return tuple(grades[key] for key in keys if key in grades)


def key_of(question: str, abstract: Abstract, judged_by: JudgedBy) -> str:
    """Return what a grade depends on: the question, what the grader reads of the abstract, the grader and the
    rubric.
    """
    content = [question, abstract.id, abstract.title, abstract.text, judged_by.model, judged_by.version, rubric.VERSION]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()
