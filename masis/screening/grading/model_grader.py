"""Grades abstracts with a language model, one call per abstract.

The model judges and quotes. The code locates the quotes, validates the scores, applies the prior as
a floor and decides by the same written rules as without a model. If the model would have decided
differently, the reason says so. Sample sizes come from the extractor, not from the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, WithJsonSchema

from masis.audit.control.concurrency import run_concurrently
from masis.audit.measures.scores import normalize_score
from masis.audit.text.quotes import locate_quote
from masis.errors import BadReply, StepError
from masis.llm.roles.prompting import Asker, RolePrompt, Section, compose, load, question
from masis.llm.roles.replies import Number, RoleReply, Text
from masis.schema.audit import JudgedBy
from masis.schema.base import Unscored
from masis.schema.calls import Usage
from masis.schema.screening import (
    DESIGNS,
    STUDY_TYPES,
    Abstract,
    AbstractWords,
    Design,
    Grade,
    GradeReason,
    Recommendation,
    StudyType,
)
from masis.screening.grading import rubric
from masis.screening.grading.grader import grade_of, unscored_grade
from masis.screening.grading.hierarchy import designs_asked_about, sure_design

PROMPT = "grader"
MAX_TOKENS = 1_800
LONGEST_TEXT = 20_000
"""The most characters of an abstract that are sent. A longer text isn't an abstract."""
_MAX_QUOTES = 8


def _slug(value: Any) -> Any:
    # Models write "Randomised Trial" or "needs-more" where the schema has underscores.
    return (
        value.strip().lower().replace("-", "_").replace(" ", "_")
        if isinstance(value, str)
        else value
    )


def _word_choice(allowed: Iterable[str]) -> Any:
    return WithJsonSchema({"type": "string", "enum": list(allowed)})


class GradeReply(RoleReply):
    """The model's reply about one abstract. Reasons are before the scores that depend on them."""

    relevance_reason: Text
    relevance_quotes: list[Text]
    relevance_score: Number
    design_reason: Text
    design_quotes: list[Text]
    study_type: Annotated[Any, BeforeValidator(_slug), _word_choice(STUDY_TYPES)]
    design: Annotated[Any, BeforeValidator(_slug), _word_choice(DESIGNS)]
    sample_size_quote: Text | None
    sample_size_reason: Text
    sample_size_adequate: Annotated[
        Any, BeforeValidator(_slug), _word_choice(("yes", "no", "unclear"))
    ]
    methodology_reason: Text
    methodology_quotes: list[Text]
    methodology_score: Number
    recommendation: Annotated[Any, BeforeValidator(_slug), _word_choice(get_args(Recommendation))]


@dataclass(frozen=True)
class ModelGrader:
    """Grades abstracts by asking a model; sample sizes are read by rules."""

    asker: Asker
    temperature: float = 0.0

    @property
    def judged_by(self) -> JudgedBy:
        """The model, and the version of the prompt."""
        return JudgedBy(model=self.asker.name, version=load(PROMPT).version)

    @property
    def usage(self) -> Usage:
        """The usage of its calls."""
        calls = self.asker.control.calls.since()
        return Usage.of(
            call for call in calls if call.role == "grader" and call.model == self.asker.name
        )

    def grade(self, question: str, abstracts: Sequence[Abstract]) -> tuple[Grade, ...]:
        """Return one grade for each abstract, in the same order.

        The calls run concurrently within the provider's limit. If a call fails, the abstract is
        unscored.
        """
        question_designs = designs_asked_about(question)
        results = run_concurrently(
            [partial(self._ask, question, abstract, question_designs) for abstract in abstracts]
        )
        return tuple(
            (
                unscored_grade(
                    abstract,
                    self.judged_by,
                    Unscored(
                        reason=str(result),
                        code=result.code,
                        raw=result.raw if isinstance(result, BadReply) else None,
                    ),
                )
                if isinstance(result, StepError)
                else result
            )
            for abstract, result in zip(abstracts, results, strict=True)
        )

    def _ask(self, question_text: str, abstract: Abstract, about: frozenset[Design]) -> Grade:
        if not (abstract.title.strip() or abstract.text.strip()):
            return unscored_grade(
                abstract, self.judged_by, Unscored(reason="there is nothing to read")
            )
        role_prompt = prompt(question_text, abstract, self.asker.control.fence)
        reply = self.asker.ask(
            role_prompt, GradeReply, max_tokens=MAX_TOKENS, temperature=self.temperature
        )
        # The rules decide; the model's own recommendation is only mentioned if it differs.
        grade = self._grade(reply, abstract, about)
        if reply.recommendation in (grade.recommendation, None):
            return grade
        why = grade.reasons["recommendation"].text
        note = (
            f"{why} The model recommended {str(reply.recommendation)[:20]}, but the rules decide."
        )
        return grade.model_copy(
            update={"reasons": {**grade.reasons, "recommendation": GradeReason(text=note)}}
        )

    def _grade(self, reply: GradeReply, abstract: Abstract, about: frozenset[Design]) -> Grade:
        study_type: StudyType | None = reply.study_type if reply.study_type in STUDY_TYPES else None
        design: Design | None = reply.design if reply.design in DESIGNS else None
        # A model may give a valid type but an unknown design, which then follows from the type.
        if design is None and study_type is not None:
            design = rubric.DESIGN_OF[study_type]
        type_reason = design_reason = _quoted_reason(
            reply.design_reason, reply.design_quotes, abstract
        )
        if (sure := sure_design(abstract)) is not None:
            design, design_reason = sure.design, GradeReason(text=sure.why, words=sure.words)
        relevance = normalize_score("relevance", reply.relevance_score).value
        method = normalize_score("methodology", reply.methodology_score).value
        return grade_of(
            abstract,
            self.judged_by,
            about,
            relevance=relevance,
            methodology=method,
            design=design,
            reasons={
                "relevance_score": _score_reason(
                    relevance, reply.relevance_reason, reply.relevance_quotes, abstract
                ),
                "methodology_score": _score_reason(
                    method, reply.methodology_reason, reply.methodology_quotes, abstract
                ),
                "study_type": type_reason,
                "design": design_reason,
            },
            study_type=study_type,
        )


def prompt(question_text: str, abstract: Abstract, mark: str) -> RolePrompt:
    """Return the prompt for one abstract."""
    # The question comes first because all abstracts share it, so providers can cache the beginning.
    text = f"{abstract.title}\n\n{abstract.text[:LONGEST_TEXT]}"
    return compose(PROMPT, mark, [question(question_text)], [Section("ABSTRACT", text)])


def _score_reason(
    score: float | None, text: str, quotes: Sequence[str], abstract: Abstract
) -> GradeReason:
    """Return the model's reason for a score, introduced by a note if it gave no valid score."""
    if score is not None:
        return _quoted_reason(text, quotes, abstract)
    reply_note = f" It wrote: {text.strip()}" if text.strip() else ""
    return _quoted_reason(f"The model gave no score from 0 to 1.{reply_note}", quotes, abstract)


def _quoted_reason(text: str, quotes: Sequence[str], abstract: Abstract) -> GradeReason:
    """Return the model's reason, with those of its quotes that are in the abstract."""
    located = [
        words
        for quote in quotes[:_MAX_QUOTES]
        if (words := _locate_in_abstract(quote, abstract)) is not None
    ]
    return GradeReason(
        text=text.strip() or "No reason was given.", words=tuple(dict.fromkeys(located))
    )


def _locate_in_abstract(quote: str, abstract: Abstract) -> AbstractWords | None:
    sources: tuple[tuple[Literal["text", "title"], str], ...] = (
        ("text", abstract.text),
        ("title", abstract.title),
    )
    for name, source in sources:
        if position := locate_quote(quote, source):
            return AbstractWords(
                start=position.start,
                end=position.end,
                text=source[position.start : position.end],
                place=name,
            )
    return None
