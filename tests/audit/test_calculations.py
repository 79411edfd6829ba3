"""Calculations that a model gives for a figure are right, wrong or unreadable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.audit.calculations import LONGEST, check_calculation, unknown_operands

RIGHT = (
    "180 / 240 = 75%",
    "180 ÷ 240 = 0.75",
    "12 of 48 = 25%",
    "12 of 48 is 25%",
    "25% of 48 = 12",
    "3.2 - 2.8 = 0.4",
    "3,2 - 2,8 = 0,4",
    "1,500 + 500 = 2,000",
    "1 500 + 500 = 2 000",
    "1.2 million + 0.3 million = 1.5 million",
    "1.2 million + 300,000 = 1.5 million",
    "4 × 25 = 100",
    "4 x 25 = 100",
    "4 * (20 + 5) = 100",
    "100 = 4 * 25",
    "1 / 3 = 0.33",
    "1 / 3 ≈ 33%",
    "2 / 3 = 67%",
    "2 / 3 = 66.7%",
    "(52 - 40) / 40 = 30%",
    "2023 - 1998 = 25",
    "2 + 3 + 4 = 9; 9 / 3 = 3",
    "60 × 24 = 1,440 minutes",
    "$120 + $30 = $150",
    "120 EUR + 30 EUR = 150 EUR",
    "-3 + 5 = 2",
    "10 plus 5 = 15",
    "10 minus 5 equals 5",
    "2 + 2 = 4\n4 + 4 = 8",
)
WRONG = (
    "180 / 240 = 70%",
    "12 of 48 = 30%",
    "3.2 - 2.8 = 0.5",
    "1,500 + 500 = 2,500",
    "4 × 25 = 90",
    "1 / 3 = 0.35",
    "(52 - 40) / 40 = 25%",
    "2023 - 1998 = 24",
    "2 + 3 = 5; 5 * 2 = 11",
    "1.2 million + 0.3 million = 1.6 million",
    "10 - 20 = 10",
    "12 + 12 = 24 = 25",
)
UNREADABLE = (
    "",
    " ",
    "from the table",
    "75%",
    "= 75%",
    "75 = 75",
    "180 / 240",
    "180 / 0 = 4",
    "the sum of all values is 240",
    "2 ** 3 = 8",
    "sqrt(16) = 4",
    "x + 2 = 4",
    "(1 + 2 = 3",
    "1 + 2) = 3",
    "()()()",
    "1 + = 2",
    "__import__('os') = 3",
    "9" * 500 + " + 1 = 2",
    "(" * 300 + "1" + ")" * 300 + " = 1",
    "1" + " / 0.1" * 60 + " = 3",
)


@pytest.mark.parametrize("text", RIGHT)
def test_a_correct_calculation_is_confirmed(text: str) -> None:
    assert check_calculation(text).right is True


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_calculation_is_flagged(text: str) -> None:
    assert check_calculation(text).right is False


@pytest.mark.parametrize("text", UNREADABLE)
def test_anything_but_plain_arithmetic_is_undecided(text: str) -> None:
    assert check_calculation(text).right is not True


@pytest.mark.parametrize("text", UNREADABLE[:12])
def test_an_unreadable_calculation_isnt_flagged(text: str) -> None:
    assert check_calculation(text).right is None


def test_operands_are_the_inputs_of_a_calculation() -> None:
    assert check_calculation("180 / 240 = 75%").operands == (180, 240)
    assert check_calculation("2 + 3 = 5; 5 * 7 = 35").operands == (2, 3, 7)
    assert check_calculation("35").operands == ()


@pytest.mark.parametrize(
    ("text", "evidence", "unknown"),
    [
        ("180 / 240 = 75%", "240 adults took it; pain fell in 180.", ()),
        ("180 / 250 = 72%", "240 adults took it; pain fell in 180.", (250,)),
        ("36 * 100 / 48 = 75", "Of 48 sites 36 opened.", ()),
        ("24 * 60 = 1440", "It runs all day.", ()),
        ("1.2 million - 200,000 = 1 million", "It fell from 1,200,000 by 200 thousand.", ()),
        ("1.2 + 0.3 = 1.5", "1,2 und 0,3 Millionen", ()),
        ("117 + 3 = 120", "", (117,)),
        ("117 + 113 = 230", "No figure at all.", (117, 113)),
        ("as it says", "", ()),
    ],
)
def test_a_calculation_must_use_figures_of_the_evidence(
    text: str, evidence: str, unknown: tuple[float]
) -> None:
    assert unknown_operands(check_calculation(text), [evidence]) == unknown


def test_a_difference_within_rounding_isnt_a_fault() -> None:
    assert check_calculation("1,912 * 1.142 = 2,184").right
    assert check_calculation("2 / 7 = 28.6%").right
    assert check_calculation("2 / 7 = 29%").right
    assert not check_calculation("2 / 7 = 30%").right


calculation_text = st.text(max_size=LONGEST) | st.lists(
    st.sampled_from(
        [*"0123456789+-*/()=.,%;:\n ", "of ", "million ", "1,500", " is ", "x", "²", "٣", "−", "½"]
    )
).map("".join)


@given(calculation_text, calculation_text)
def test_no_model_text_raises_an_error(text: str, evidence: str) -> None:
    calculation = check_calculation(text)
    assert calculation.right in (True, False, None)
    assert set(unknown_operands(calculation, [evidence])) <= set(calculation.operands)
