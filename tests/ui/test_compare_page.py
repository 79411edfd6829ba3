"""The page Compare says which system is better, and shows every regression with both answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from masis.schema.systems import UNNAMED, System
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.ui.compare.page import chosen_systems
from tests.reviewing import ADA
from tests.services.test_comparison import add_pairs
from tests.ui.conftest import Serve, open_page, texts


@pytest.fixture
def served(tmp_path: Path, serve: Serve) -> Workbench:
    return serve(tmp_path / "systems.db")


def test_without_a_second_system_the_page_says_how_to_add_one(served: Workbench) -> None:
    app = open_page("compare")
    assert [code.value for code in app.code] == ["masis import answers.jsonl --system v2"]


def test_the_verdict_comes_first_and_all_ten_regressions_are_listed(
    served: Workbench,
) -> None:
    add_pairs(served, worse=10, better=1, same=5)
    app = open_page("compare")
    drawn = drawn_data(app)
    page = texts(app).replace("\\", "")
    assert "v2 is worse than v1." in page
    assert "Of 16 questions, v2 got 10 wrong that v1 got right" in page
    assert "so v1 has 0 + 1 = 1 wrong answers, and v2 0 + 10 = 10." in page
    assert "0 of 16 questions decided by people; 16 count by the audit alone." in page
    assert "10 questions: right before, wrong now." in page
    assert all(f"What is worse-{number}?" in drawn for number in range(10))
    assert "What is better-0?" not in drawn


def test_a_chosen_question_shows_both_answers_with_marks_and_evidence(
    served: Workbench,
) -> None:
    add_pairs(served, worse=2)
    drawn = drawn_data(open_page("compare", pair="worse-1"))
    for part in ("worse-1:v1", "worse-1:v2", "The bridge opened on 19 March 1932."):
        assert part in drawn


def test_a_blind_reviewer_sees_no_regression_before_deciding(served: Workbench) -> None:
    add_pairs(served, worse=3)
    served.team.put_in_force(ADA, QueuePolicy(machine="after"))
    app = open_page("compare", pair="worse-1")
    page = texts(app).replace("\\", "")
    assert "No question that was right before is wrong now." in page
    assert "3 questions whose results your team's policy hides" in page
    assert "worse-1:v2" not in drawn_data(app)


def test_the_two_newest_systems_are_compared_unless_the_address_names_others() -> None:
    systems = [System(name=name, added_at="t") for name in (UNNAMED, "v1", "v2", "v3")]

    def names(first: str = "", second: str = "") -> tuple[str, str]:
        one, two = chosen_systems(systems, first, second)
        return one.name, two.name

    assert names() == ("v2", "v3")
    assert names("v1") == ("v1", "v3")
    assert names("v3") == ("v3", "v2")
    assert names(UNNAMED, "v1") == (UNNAMED, "v1")
    assert names("nowhere", "nowhere") == ("v2", "v3")


def drawn_data(app: AppTest) -> str:
    """Return everything that components of the page draw, as text."""
    return "\n".join(str(element.proto) for element in app.main if hasattr(element, "proto"))
