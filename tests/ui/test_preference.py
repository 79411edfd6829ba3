"""The page Preference: a pair without names, and results once a question is decided."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from masis.schema.actor import Actor
from masis.services import Workbench
from masis.services.preferences import NewPreference
from masis.ui.components import sources
from masis.ui.preference.page import list_sources
from tests.services.test_preferences import NAMES, SECRET, add_answers, answer_of, prefer
from tests.ui.conftest import Serve, open_page, texts

ANA, BEN = Actor(name="Ana"), Actor(name="Ben")
AS_ANA = {"reviewer-name": "Ana"}


@pytest.fixture
def served(tmp_path: Path, serve: Serve) -> Workbench:
    return serve(tmp_path / "preference.db")


def drawn_data(app: AppTest) -> str:
    """Return everything that the page sends to the browser, as text."""
    return "\n".join(str(element.proto) for element in app.main if hasattr(element, "proto"))


def test_without_a_second_system_the_page_says_how_to_add_one(served: Workbench) -> None:
    add_answers(served, NAMES[:1], 2)
    app = open_page("preference", AS_ANA)
    assert [code.value for code in app.code] == ["masis import answers.jsonl --system v2"]


def test_a_person_without_a_name_is_asked_for_it_before_a_pair_is_shown(
    served: Workbench,
) -> None:
    add_answers(served, NAMES[:2], 1)
    app = open_page("preference")
    assert [field.label for field in app.text_input if field.key == "preference-name"]
    assert "What is 0?" not in drawn_data(app)


def test_a_pair_is_shown_without_a_name_in_the_page_or_its_address(served: Workbench) -> None:
    add_answers(served, NAMES, 2)
    prefer(served, ANA, "x")
    app = open_page("preference", AS_ANA)
    drawn = drawn_data(app)
    assert "What is 0?" in drawn
    assert "Answer x to 0 [1]." in drawn or "Answer y to 0 [1]." in drawn
    assert not any(name in drawn + texts(app) for name in NAMES)
    assert "q0:" not in drawn
    assert not app.query_params


def test_an_answer_with_markup_reaches_the_browser_as_text(served: Workbench) -> None:
    for system in NAMES[:2]:
        served.cases.add_one(ANA, answer_of(system, 0, answer="<img src=x onerror=alert(1)>"))
    app = open_page("preference", AS_ANA)
    assert "<img src=x" not in texts(app)
    _, script = sources("preference_pair", "key_sheet")
    assert "innerHTML" not in script
    assert "insertAdjacentHTML" not in script


def test_results_hide_others_verdicts_until_the_question_is_decided(served: Workbench) -> None:
    add_answers(served, NAMES[:2], 1)
    prefer(served, BEN, "x", reason="seen-by-ben")
    app = open_page("preference", AS_ANA, view="results")
    assert SECRET not in drawn_data(app)
    assert "You have decided 0 of " in "".join(info.value for info in app.info)
    prefer(served, ANA, "y")
    drawn = drawn_data(open_page("preference", AS_ANA, view="results"))
    for part in (SECRET, "seen-by-ben", "too few to tell"):
        assert part in drawn


def test_a_row_of_the_win_rates_opens_its_verdicts(served: Workbench) -> None:
    add_answers(served, NAMES, 1)
    for _ in range(3):
        prefer(served, ANA, "x")
    pair = f'["{SECRET}", "{NAMES[1]}"]'
    app = open_page("preference", AS_ANA, view="results", pair=pair)
    assert f"{SECRET} against {NAMES[1]}" in drawn_data(app)
    forged = open_page("preference", AS_ANA, view="results", pair='[":red[x]", "[y](//evil)"]')
    assert r"\\:red\\[x\\] against \\[y\\]" in drawn_data(forged)
    wrong = open_page("preference", AS_ANA, view="results", pair='{"a": 1}')
    assert not wrong.exception


def test_the_audits_marks_arent_shown_and_the_page_says_so(served: Workbench) -> None:
    for system in NAMES[:2]:
        case = answer_of(system, 0, answer="It was opened in 1931 [9].")
        served.cases.add_one(ANA, case)
        served.audits.audit(ANA, case)
    run = served.cases.open(case.id).run
    assert run is not None
    # The longest words without a quote, which the data escapes.
    described = max(re.findall(r"[a-z ]+", run.iterations[0].issues[0].description), key=len)
    app = open_page("preference", AS_ANA)
    assert described not in drawn_data(app)
    assert "The audit's marks aren't shown here" in texts(app)


def test_the_sources_of_both_answers_are_one_list(served: Workbench) -> None:
    more = [{"id": "1", "text": "Shared."}, {"id": "2", "text": "Alone."}]
    served.cases.add_one(ANA, answer_of(NAMES[0], 0, evidence=more[:1]))
    served.cases.add_one(ANA, answer_of(NAMES[1], 0, evidence=more))
    task = served.preferences.next(ANA)
    assert task is not None
    side = "Left only" if len(task.left.evidence) == 2 else "Right only"
    assert list_sources(task) == [
        {"id": "1", "text": "Shared.", "of": ""},
        {"id": "2", "text": "Alone.", "of": side},
    ]
    assert drawn_data(open_page("preference", AS_ANA)).count("Shared.") == 1


def test_results_name_the_preferred_and_the_other_answer_and_link_to_the_comparison(
    served: Workbench,
) -> None:
    add_answers(served, NAMES[:2], 1)
    prefer(served, ANA, "x")
    app = open_page("preference", AS_ANA, view="results")
    drawn = drawn_data(app)
    assert all(title in drawn for title in ("Preferred", "Other"))
    assert f"Compare {SECRET} and {NAMES[1]} by decisions" in drawn.replace("\\", "")


def test_the_end_offers_to_undo(served: Workbench) -> None:
    add_answers(served, NAMES[:2], 1)
    task = served.preferences.next(ANA)
    assert task is not None
    served.preferences.decide(ANA, NewPreference(pair=task.pair, verdict="equal"))
    app = open_page("preference", AS_ANA)
    assert "You have decided 1 pair" in app.success[0].value
    next(button for button in app.button if button.key == "preference-undo").click().run()
    assert "You took back “Equally good”" in "".join(info.value for info in app.info)
    assert served.preferences.next(ANA) == task
