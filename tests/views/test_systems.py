"""The words of a comparison: signs, what a verdict leaves open, and how to check a release."""

from __future__ import annotations

import pytest

from masis.schema.comparison import (
    MEASURES,
    MeasuredDifference,
    PairedDifference,
    QuestionsNeeded,
    SystemComparison,
)
from masis.schema.systems import System
from masis.views.systems import (
    difference_text,
    gate_command,
    gate_test,
    needed_text,
    open_text,
    verdict_head,
)


def comparison(**flagged: object) -> SystemComparison:
    row = MeasuredDifference.model_validate(
        {"measure": "flagged", "questions": 60, "only_first": 10, "only_second": 10, **flagged}
    )
    return SystemComparison(
        first=System(name="v1", added_at="t"),
        second=System(name="v2", added_at="t"),
        shared=60,
        only_first=0,
        only_second=0,
        unjudged=0,
        hidden=0,
        measures=(row,),
        regression_count=10,
        needed=(
            QuestionsNeeded(points=5, questions=1045),
            QuestionsNeeded(points=10, questions=260),
        ),
    )


@pytest.mark.parametrize(
    ("difference", "text"),
    [
        (0.0, "0.0 points"),
        (-0.0001, "0.0 points"),
        (0.0167, "+1.7 points"),
        (-0.033, "-3.3 points"),
    ],
)
def test_a_difference_of_zero_has_no_sign(difference: float, text: str) -> None:
    row = PairedDifference(questions=60, difference=difference)
    assert difference_text(MEASURES["flagged"], row) == text


def test_a_verdict_without_a_difference_says_how_large_it_may_be() -> None:
    result = comparison(conclusion="no_difference", low=-0.148, high=0.148)
    assert open_text(result).endswith(
        "v2 could still be up to 14.8 points worse or 14.8 points better."
    )
    assert "not that the systems are equal" in open_text(result)


def test_too_few_to_tell_says_why_and_only_the_direction_that_is_open() -> None:
    result = comparison(conclusion="too_few", low=0.0, high=0.06, only_first=0, only_second=3)
    assert "fewer than 6 questions differ" in open_text(result)
    assert open_text(result).endswith("v2 could still be up to 6.0 points worse.")
    assert verdict_head(result) == "Too few to tell whether v2 is better or worse than v1."


def test_the_questions_needed_are_said_with_the_share_that_differs() -> None:
    assert needed_text(comparison()) == (
        "If as many answers differ as here (20 of 60), you'd need about 1,045 questions to show"
        " 5 points and 260 for 10 points (with a power of 80%)."
    )


def test_a_release_check_quotes_names_for_the_shell_and_for_python() -> None:
    result = comparison().model_copy(update={"second": System(name="it's v2", added_at="t")})
    assert gate_command(result) == ("masis compare v1 'it'\"'\"'s v2' --gate --most-regressions 10")
    names: dict[str, object] = {}
    exec(gate_test(result), names)
    calls: list[tuple[object, ...]] = []
    names["test_the_new_version_is_not_worse"](  # type: ignore[operator]
        lambda *given, most_regressions: calls.append((*given, most_regressions))
    )
    assert calls == [("v1", "it's v2", 10)]
