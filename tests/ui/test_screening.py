"""The page of the evidence critic as Streamlit runs it: form, background work, what came of it, a
person's word.
"""

from __future__ import annotations

import functools
import json
import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from masis.schema.screening import ScreeningEntry
from masis.screening.demo import CORPUS, demo_abstracts, demo_questions
from masis.services import ANONYMOUS, Workbench
from masis.services.records import ScreeningLogFilter
from masis.ui.live import served_jobs
from masis.ui.screening import result
from masis.ui.screening.form import ScreeningForm
from tests.reviewing import ADA
from tests.ui.conftest import Serve, open_page, press, texts
from tests.waiting import until

ASKED = {each.id: each for each in demo_questions()}
SOURCE = f"corpus:{CORPUS}"


@pytest.fixture(scope="module")
def screened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the demo abstracts and three screenings: sufficient at once, after two
    rounds, and never.
    """
    path = tmp_path_factory.mktemp("screened") / "screened.db"
    workbench = Workbench.open(path)
    workbench.store.corpora.add_many(CORPUS, demo_abstracts(), source="demo")
    for name in ("htn", "b12", "ery"):
        settings = workbench.settings.model_copy(
            update={"screening_retrieve": ASKED[name].retrieve}
        )
        workbench.screenings.screen(
            ADA, ASKED[name].question, (SOURCE,), settings=settings, screening_id=name
        )
    workbench.close()
    return path


@pytest.fixture
def workbench(screened: Path, tmp_path: Path, serve: Serve) -> Workbench:
    return serve(shutil.copy(screened, tmp_path / "pages.db"))


@pytest.fixture
def empty_bench(tmp_path: Path, serve: Serve) -> Workbench:
    return serve(tmp_path / "empty.db")


page = functools.partial(open_page, "screening")


def shown(app: AppTest, name: str) -> str:
    found = app.query_params.get(name, "")
    return found if isinstance(found, str) else str(found[0])


def stands(workbench: Workbench, screening_id: str) -> str:
    return workbench.screenings.open(screening_id).screening.outcome


def entries(workbench: Workbench, screening_id: str) -> tuple[ScreeningEntry, ...]:
    return workbench.store.screening_log.entries(ScreeningLogFilter(screening_id=screening_id)).rows


def test_without_abstracts_the_page_explains_how_to_get_some(empty_bench: Workbench) -> None:
    app = page()
    assert "There are no abstracts yet" in texts(app)
    assert "start-screening" not in [button.key for button in app.button]
    press(app, "load-demo-abstracts")
    assert empty_bench.store.corpora.summary(CORPUS).abstracts == sum(1 for _ in demo_abstracts())
    assert "start-screening" in [button.key for button in app.button]


def test_a_demo_question_fills_the_form_and_survives_a_reload(workbench: Workbench) -> None:
    app = page()
    app.selectbox(key="screening-demo-question").select(ASKED["del"].question).run()
    assert not app.exception
    again = page()
    assert next(each for each in again.multiselect if each.label == "Sources").value == [SOURCE]
    assert (
        next(each for each in again.number_input if each.label == "Abstracts per round").value
        == ASKED["del"].retrieve
    )


def test_a_start_without_a_question_asks_for_one_and_starts_nothing(workbench: Workbench) -> None:
    app = page()
    press(app, "start-screening")
    assert not shown(app, "screening")
    assert len(workbench.store.screenings.newest()) == 3


def test_a_failed_screening_shows_its_error(
    workbench: Workbench,
) -> None:
    page()
    jobs = served_jobs()
    screening_id = jobs.screen(ADA, "Does it help?", ("corpus:gone",))
    until(lambda: jobs.get(screening_id) is None, "the screening ended")
    app = page(screening=screening_id)
    assert "failed" in texts(app)
    assert "corpus" in texts(app)
    assert "Traceback" not in texts(app)


def test_an_interrupted_screening_shows_its_rounds_and_can_be_resumed(workbench: Workbench) -> None:
    workbench.store.screenings.start(
        "cut",
        question=ASKED["htn"].question,
        sources=(SOURCE,),
        settings=workbench.settings.model_dump(mode="json"),
    )
    workbench.store.screenings.abandon("cut", "The process ended.")
    app = page(screening="cut")
    press(app, "Resume the screening")
    until(
        lambda: workbench.store.screenings.summary("cut").state == "finished", "the screening ended"
    )
    assert stands(workbench, "cut") in ("sufficient", "evidence_insufficient")


def test_an_unknown_screening_is_reported(workbench: Workbench) -> None:
    assert "There is no such screening" in texts(page(screening="nowhere"))
    app = page(screening="htn", abstract="nowhere", show="keep,<b>", order="x", page="99")
    assert not app.exception


def test_the_table_of_abstracts_has_pages_and_shows_the_last_one_past_the_end(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result, "PAGE_SIZE", 4)
    ids = [
        each.abstract_id
        for each in result.select_grades(workbench.screenings.open("b12").screening, (), "quality")
    ]
    for number, expected in (("2", ids[4:8]), ("99", ids[(len(ids) - 1) // 4 * 4 :])):
        app = page(screening="b12", page=number)
        (table,) = [
            each for each in app.get("bidi_component") if "screening-table" in each.proto.id
        ]
        assert [row["open"] for row in json.loads(table.proto.json)["rows"]] == expected


def test_the_reading_order_lists_the_undecided_abstracts_with_its_proposal(
    workbench: Workbench,
) -> None:
    graded = [grade.abstract_id for grade in workbench.screenings.open("b12").screening.grades]
    workbench.screenings.override(
        ADA, "b12", graded[0], "recommendation", "discard", reason="Read in full."
    )
    app = page(screening="b12", order="next")
    assert f"0 included and 1 excluded of {len(graded)} abstracts" in texts(app)
    assert "Decide on at least 10 abstracts" in texts(app)
    (table,) = [each for each in app.get("bidi_component") if "screening-table" in each.proto.id]
    shown = [row["open"] for row in json.loads(table.proto.json)["rows"]]
    assert shown
    assert graded[0] not in shown
    assert not page(screening="b12", order="next", abstract=graded[0]).exception


def test_a_grade_is_confirmed_with_one_button_and_can_be_undone(
    workbench: Workbench,
) -> None:
    kept = workbench.screenings.open("b12").screening.kept
    app = page(screening="b12", abstract=kept[0])
    press(app, "agree")
    assert "Type your name first" in "\n".join(warning.value for warning in app.warning)
    app.text_input(key="override-name").set_value("Ada Lind")
    press(app, "agree")
    assert [each.abstract_id for each in workbench.screenings.open("b12").agreements] == [kept[0]]
    assert "Ada Lind agrees" in texts(app)
    press(app, "agree-undo")
    assert not workbench.screenings.open("b12").agreements
    workbench.screenings.override(
        ADA, "b12", kept[0], "recommendation", "discard", reason="Read in full."
    )
    app = page(screening="b12", abstract=kept[0])
    assert next(button for button in app.button if button.key == "agree").disabled


def test_an_override_without_a_name_or_a_reason_is_refused(workbench: Workbench) -> None:
    kept = workbench.screenings.open("b12").screening.kept
    app = page(screening="b12", abstract=kept[0])
    press(app, "override-record")
    assert "Type your name first" in "\n".join(warning.value for warning in app.warning)
    app.text_input(key="override-name").set_value("Ada Lind")
    press(app, "override-record")
    assert "Enter a reason first" in "\n".join(warning.value for warning in app.warning)
    assert not entries(workbench, "b12")


@pytest.mark.spec("AESOP-MEMORY")
def test_memory_is_off_by_default_shows_its_effect_and_can_be_reset(
    workbench: Workbench,
) -> None:
    app = page()
    app = page(memory="yes")
    assert "this is **off**" in texts(app)
    assert workbench.store.acceptances.entries()
    app.text_input(key="memory-name").set_value("Ada Lind")
    app.text_input(key="memory-reason").set_value("A new season.")
    press(app, "memory-reset")
    assert not workbench.store.acceptances.entries()
    assert workbench.store.acceptances.history()


def test_an_unusable_grader_is_reported_before_the_start(
    workbench: Workbench,
) -> None:
    app = page()
    app.selectbox(key="screening-demo-question").select(ASKED["htn"].question).run()
    next(each for each in app.multiselect if each.label == "Graders").set_value(
        ["offline", "nobody:model-x"]
    ).run()
    assert not app.exception
    assert "can't be called" in "\n".join(warning.value for warning in app.warning)
    press(app, "start-screening")
    assert not shown(app, "screening")
    assert len(workbench.store.screenings.newest()) == 3


def test_a_finished_screening_can_be_extended(workbench: Workbench) -> None:
    app = page(screening="ery")
    press(app, "search-further")
    further = shown(app, "screening")
    assert further not in ("", "ery")
    until(
        lambda: workbench.store.screenings.summary(further).state == "finished",
        "the screening ended",
    )
    first, found = (workbench.screenings.open(each).machine for each in ("ery", further))
    assert found.rounds[: len(first.rounds)] == first.rounds


def test_a_result_shows_its_concepts_and_can_be_repeated_with_others(workbench: Workbench) -> None:
    app = page(screening="b12")
    assert "proton pump inhibitors develop vitamin B12 deficiency" in texts(app)
    assert "set by a person" not in texts(app)
    app.text_input(key="again-b12-population").set_value("adults")
    app.text_input(key="again-b12-intervention").set_value("proton pump inhibitors = omeprazole")
    app.text_input(key="again-b12-outcome").set_value("vitamin B12 deficiency")
    press(app, "screen-again")
    again = shown(app, "screening")
    assert again not in ("", "b12")
    until(lambda: served_jobs().get(again) is None, "the screening ended")
    until(
        lambda: workbench.store.screenings.summary(again).state == "finished", "the screening ended"
    )
    first, found = (workbench.screenings.open(each).machine for each in ("b12", again))
    assert found.question == first.question
    assert (
        found.rounds[0].queries[0].text == "proton pump inhibitors vitamin B12 deficiency in adults"
    )
    assert found.settings["screening_retrieve"] == first.settings["screening_retrieve"]
    assert "set by a person" in texts(page(screening=again))


def test_the_form_keeps_concepts_until_reset_or_another_question(
    workbench: Workbench,
) -> None:
    settings = {"screening_concepts": "population: adults"}
    workbench.store.drafts.save(
        ANONYMOUS.draft_owner,
        ScreeningForm.SUBJECT,
        {"question": ASKED["b12"].question, "settings": settings},
    )
    app = page()
    press(app, "screening-concepts-reset")
    assert (
        workbench.store.drafts.get(ANONYMOUS.draft_owner, ScreeningForm.SUBJECT).values["settings"][
            "screening_concepts"
        ]
        == ""
    )
    assert not [button for button in app.button if button.key == "screening-concepts-reset"]
    workbench.store.drafts.save(
        ANONYMOUS.draft_owner,
        ScreeningForm.SUBJECT,
        {"question": ASKED["b12"].question, "settings": settings},
    )
    app = page()
    app.selectbox(key="screening-demo-question").set_value(ASKED["htn"].question).run()
    assert (
        workbench.store.drafts.get(ANONYMOUS.draft_owner, ScreeningForm.SUBJECT).values["settings"][
            "screening_concepts"
        ]
        == ""
    )


@pytest.mark.spec("AESOP-OVERRIDE")
def test_an_appraisal_item_shows_its_sentence_and_can_be_corrected_and_undone(
    workbench: Workbench,
) -> None:
    machine = workbench.screenings.open("b12").machine
    first = next(
        grade
        for grade in machine.grades
        if grade.recommendation == "keep" and grade.methodology_raw
    )
    app = page(screening="b12", abstract=first.abstract_id)
    assert "blue-background[" in texts(app)
    press(app, "correct-model")
    app.text_input(key="correction-name").set_value("Ada Lind")
    press(app, "correction-cancel")
    assert not entries(workbench, "b12")
    press(app, "correct-registration")
    app.text_input(key="correction-name").set_value("Ada Lind")
    app.button_group(key=f"correction-{first.abstract_id}-registration").set_value("stated")
    app.text_input(key="correction-reason").set_value("NCT number in the <b>full</b> text")
    press(app, "correction-record")
    grade = workbench.screenings.open("b12").screening.grade(first.abstract_id)
    assert grade.corrections == {"registration": "stated"}
    assert (grade.methodology_raw or 0) > (first.methodology_raw or 0)
    assert "Set by Ada Lind" in texts(app)
    assert "Read as not stated" in texts(app)
    press(app, "undo-registration")
    assert workbench.screenings.open("b12").screening == machine
    assert len(entries(workbench, "b12")) == 2


def test_a_correction_without_a_name_a_value_or_a_reason_is_refused(workbench: Workbench) -> None:
    kept = workbench.screenings.open("b12").screening.kept
    app = page(screening="b12", abstract=kept[0])
    press(app, "correct-model")
    for says in ("Type your name first", "Choose a value first", "Enter a reason first"):
        press(app, "correction-record")
        assert says in "\n".join(warning.value for warning in app.warning)
        (
            app.text_input(key="correction-name").set_value("Ada Lind")
            if "name" in says
            else app.button_group(key=f"correction-{kept[0]}-model").set_value("denied")
        )
    assert not entries(workbench, "b12")


def test_a_discarded_abstract_has_an_appraisal_but_no_finding(
    workbench: Workbench,
) -> None:
    grades = workbench.screenings.open("b12").screening.grades
    left_out = next(grade for grade in grades if grade.recommendation == "discard")
    app = page(screening="b12", abstract=left_out.abstract_id)
    keys = [button.key for button in app.button]
    assert "correct-outcome" in keys
    assert "correct-direction" not in keys
