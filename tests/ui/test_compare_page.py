"""The page Compare says which system is better, and shows every regression with both answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from masis.schema.systems import UNNAMED, System
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.services.preferences import NewPreference
from masis.ui.compare.page import chosen_systems
from tests.reviewing import ADA, decide, undone
from tests.services.test_comparison import add_answer, add_pairs
from tests.ui.conftest import Serve, open_page, press, texts


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


def test_answers_and_systems_are_hidden_until_the_preference_if_the_policy_says_so(
    served: Workbench,
) -> None:
    add_pairs(served, worse=1)
    named = open_page("review", case="worse-0:v2")
    assert "worse-0:v2" in head_of(named)
    served.team.put_in_force(ADA, QueuePolicy(systems="after"))
    app = open_page("compare", NAMED, pair="worse-0")
    assert "hides which system wrote which answer" in app.info[0].value
    assert "worse-0:v2" not in drawn_data(app)
    hidden = open_page("review", NAMED, case="worse-0:v2")
    assert "worse-0" in head_of(hidden)
    assert "v2" not in head_of(hidden)
    assert "Answer of v1" not in drawn_data(hidden)
    task = served.preferences.next(ADA)
    assert task is not None
    served.preferences.decide(ADA, NewPreference(pair=task.pair, verdict="left"))
    assert "worse-0:v2" in drawn_data(open_page("compare", NAMED, pair="worse-0"))
    assert "worse-0:v2" in head_of(open_page("review", NAMED, case="worse-0:v2"))


NAMED = {"reviewer-name": ADA.name}


def head_of(app: AppTest) -> str:
    """Return the data of the head of a case."""
    [head] = [
        str(part.proto)
        for part in app.main
        if hasattr(part, "proto")
        and '"question"' in str(part.proto).replace("\\", "")
        and '"technical"' in str(part.proto).replace("\\", "")
    ]
    return head


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


def test_a_chosen_question_says_who_decided_it_and_why(served: Workbench) -> None:
    add_pairs(served, same=1)
    decide(served, "same-0:v2", "reject", reviewer="Kim", reason="It names no date.")
    drawn = drawn_data(open_page("compare", first="v1", second="v2", pair="same-0"))
    for part in ("Rejected by Kim on", "It names no date.", "the decision above counts instead"):
        assert part in drawn


def test_questions_wrong_and_right_in_both_are_listed(served: Workbench) -> None:
    add_pairs(served, same=2)
    for system in ("v1", "v2"):
        decide(served, f"same-0:{system}", "reject")
    wrong = drawn_data(open_page("compare", list="both_wrong"))
    right = drawn_data(open_page("compare", list="both_right"))
    assert ("What is same-0?" in wrong, "What is same-1?" in wrong) == (True, False)
    assert ("What is same-0?" in right, "What is same-1?" in right) == (False, True)


def test_measures_are_grouped_by_what_they_rest_on(served: Workbench) -> None:
    add_pairs(served, worse=1, same=1)
    for question in ("worse-0", "same-0"):
        for system in ("v1", "v2"):
            decide(served, f"{question}:{system}", "reject" if system == "v2" else "approve")
    app = open_page("compare")
    titles = [element.value for element in app.subheader]
    assert titles == ["Judged by people", "Flagged by the audit", "Cost and length"]
    assert "it flagged 1 of the 2 answers that people rejected or corrected" in texts(app)


def test_swapping_keeps_the_open_question_in_the_list_where_it_is_now(served: Workbench) -> None:
    add_pairs(served, worse=2)
    app = open_page("compare", first="v1", second="v2", pair="worse-1")
    press(app, "Swap")
    assert dict(app.query_params) == {
        "first": "v2",
        "second": "v1",
        "list": "better",
        "pair": "worse-1",
    }
    assert "worse-1:v1" in drawn_data(app)


def test_the_system_of_the_other_side_makes_both_change_places(served: Workbench) -> None:
    add_pairs(served, worse=1)
    app = open_page("compare", first="v1", second="v2")
    next(box for box in app.selectbox if box.label == "Before").set_value("v2").run()
    assert (app.query_params["first"], app.query_params["second"]) == ("v2", "v1")


def test_the_menu_opens_the_systems_compared_last_in_their_order(served: Workbench) -> None:
    add_pairs(served, worse=1)
    add_answer(served, "worse-0", "v3")
    app = open_page("compare", first="v2", second="v1")
    app.query_params.clear()
    app.run()
    assert [box.value for box in app.selectbox] == ["v2", "v1"]


def test_the_release_check_names_both_systems_its_limit_and_the_test(served: Workbench) -> None:
    add_pairs(served, worse=2)
    served.store.database.execute("UPDATE cases SET system = 'v 2' WHERE system = 'v2'")
    served.store.database.execute("UPDATE systems SET name = 'v 2' WHERE name = 'v2'")
    app = open_page("compare", first="v1", second="v 2")
    command, test = (code.value for code in app.code)
    assert command == "masis compare v1 'v 2' --gate --most-regressions 2"
    assert "assert_not_worse('v1', 'v 2', most_regressions=2)" in test
    assert "exit code 1" in texts(app)


def test_parts_are_listed_only_if_they_differ_or_on_demand(served: Workbench) -> None:
    add_pairs(served, worse=1, same=6)
    app = open_page("compare")
    assert "No difference is shown in any group (1 field)." in texts(app)
    assert "Field: Engineering" not in drawn_data(app)
    assert "No answer has a failure mode." in texts(app).replace("\\", "")
    assert "Field: Engineering" in drawn_data(open_page("compare", parts="yes"))
    add_more = [f"worse-more-{number}" for number in range(9)]
    for question in add_more:
        add_answer(served, question, "v1")
        add_answer(served, question, "v2", flagged=True)
    assert "Field: Engineering" in drawn_data(open_page("compare"))


def test_a_blind_case_doesnt_link_to_answers_whose_audit_is_shown(served: Workbench) -> None:
    add_pairs(served, worse=2)
    one, other = "worse-0:v2", "worse-0:v1"

    def links() -> list[bool]:
        drawn = drawn_data(open_page("review", NAMED, case=one))
        return [words in drawn for words in ("Answer of v1", "nearly the same answer")]

    decide(served, other, "reject", ADA.name)
    assert links() == [True, True]
    served.team.put_in_force(ADA, QueuePolicy(machine="after"))
    assert links() == [False, False]
    undone(served, other, ADA.name)
    assert links() == [served.team.machine_hidden(ADA, other), False]


def test_a_case_opened_from_a_pair_has_a_way_back_and_the_other_systems_answer(
    served: Workbench,
) -> None:
    add_pairs(served, worse=1)
    app = open_page(case="worse-0:v2", first="v1", second="v2", pair="worse-0")
    assert "Compare" in [button.label for button in app.button]
    assert "Answer of v1 to this question" in drawn_data(app)
    assert "system v2" in drawn_data(app)
    plain = open_page(case="worse-0:v2")
    assert "Compare" not in [button.label for button in plain.button]


def drawn_data(app: AppTest) -> str:
    """Return everything that components of the page draw, as text."""
    return "\n".join(str(element.proto) for element in app.main if hasattr(element, "proto"))
