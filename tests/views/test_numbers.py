"""Numbers, amounts, sizes and times as people read them."""

from __future__ import annotations

from masis.schema.wording import shortened
from masis.views.numbers import (
    cost_text,
    day,
    dollars,
    duration,
    file_size,
    in_unit,
    moment,
    number,
    percent,
    score_text,
)


def test_figures_have_as_many_digits_as_they_deserve() -> None:
    assert [percent(each) for each in (None, 0.0, 0.034, 0.31, 1.0)] == ["–", "0%", "3.4%", "31%", "100%"]
    assert [number(each) for each in (None, 0.0, 0.0312, 0.5, 12.34, 1234.5, 3.0)] == [
        "–",
        "0",
        "0.031",
        "0.50",
        "12.3",
        "1,234",
        "3",
    ]
    assert [duration(each) for each in (None, 0.5, 12.0, 999.0, 1500.0, 61_234.0)] == [
        "–",
        "0.50 ms",
        "12 ms",
        "999 ms",
        "1.5 s",
        "61.2 s",
    ]
    assert [duration(each) for each in (90_000.0, 105_000.0, 5_400_000.0, 9_000_000.0)] == [
        "90 s",
        "1.75 min",
        "90 min",
        "2.5 h",
    ]


def test_a_score_that_is_missing_is_unscored_and_a_count_has_no_decimals() -> None:
    assert [score_text(each) for each in (None, 0.0, 0.456, 1.0, 7.0, 85.5)] == [
        "unscored",
        "0.00",
        "0.46",
        "1.00",
        "7",
        "85.50",
    ]


def test_money_is_reported_as_exactly_as_it_matters() -> None:
    assert [dollars(amount) for amount in (None, 0.0, 0.000042, 0.00421, 0.5, 1234.5)] == [
        "–",
        "$0.00",
        "$0.000042",
        "$0.0042",
        "$0.50",
        "$1,234.50",
    ]
    assert [cost_text(None), cost_text(0.5)] == ["cost unknown", "$0.50"]


def test_a_value_is_written_in_its_unit() -> None:
    assert [in_unit(unit)(12.0) for unit in ("ms", "USD", "%", "")] == ["12 ms", "$12.00", "12%", "12"]
    assert {in_unit(unit)(None) for unit in ("ms", "USD", "%", "")} == {"–"}


def test_sizes_days_and_times_read_as_people_write_them() -> None:
    assert [file_size(size) for size in (0, 12_345, 3_400_000)] == ["0 kB", "12 kB", "3.4 MB"]
    assert day("2025-11-02") == "2 Nov 2025"
    assert moment("2025-11-12T14:02:33.120Z") == "12 Nov 2025 14:02"


def test_a_text_is_cut_to_the_length_asked_for_with_a_sign() -> None:
    assert shortened("twelve chars", 12) == "twelve chars"
    assert shortened("thirteen char", 12) == "thirteen ch…"
    assert shortened("nine 4567 and more", 11) == "nine 4567…"
