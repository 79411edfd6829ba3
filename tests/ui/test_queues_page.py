"""Named queues on the pages of the queue, the case and the team."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from masis.schema.actor import Actor
from masis.schema.team import QueuePolicy, Rubric
from masis.services import Workbench
from masis.services.queue_rules import member_filter
from masis.services.records import CaseFilter, ReviewQueue
from masis.ui.queue.filling import NEW_QUEUE
from masis.ui.shell import address
from tests.reviewing import decide
from tests.services.test_queues import EVERY_FILTER
from tests.ui.conftest import AUDITED, open_page, press, texts

ADA = Actor(name="Ada Lind")
CASE = "medicine-01"
HOSTILE = "<script>alert(1)</script> ![x](http://example.org/x.png) **bold**"


def open_as(name: str, **address: str) -> AppTest:
    return open_page(name, {"reviewer-name": ADA.name}, **address)


def page_text(app: AppTest) -> str:
    """Return the texts and notices of a page, without the escapes of Markdown."""
    notices = [notice.value for notice in app.info]
    return "\n".join([texts(app), *notices]).replace("\\", "")


def add_medical_queue(workbench: Workbench, **changes: object) -> ReviewQueue:
    queue = workbench.queues.create(ADA, "Medical", CaseFilter(fields=("Medicine",)))
    if changes:
        queue = workbench.queues.change(ADA, queue.model_copy(update=changes))
    return queue


def test_the_queue_page_lists_the_cases_that_wait_in_the_chosen_queue(
    audited_workbench: Workbench,
) -> None:
    add_medical_queue(audited_workbench)
    app = open_as("queue", queue="medical")
    [choice] = [box for box in app.selectbox if box.label == "Queue"]
    assert (choice.value, choice.options) == ("medical", ["All cases", "Medical"])
    assert "1 of 1 left. 1 reviewer per case, the audit is shown at once." in page_text(app)
    assert "**1 case** waiting in this queue" in page_text(app)


def test_a_queue_with_more_cases_than_the_list_says_so(audited_workbench: Workbench) -> None:
    decide(audited_workbench, AUDITED[0], "reject", ADA.name)
    session = {"reviewer-name": ADA.name, "queue-views": True}
    app = open_page("queue", session, standing="decided")
    [warning] = app.warning
    assert "The list shows 1 case, but the queue will have" in warning.value
    assert "can't filter by status" in warning.value


def test_a_queue_is_made_of_the_listed_cases(audited_workbench: Workbench) -> None:
    session = {"reviewer-name": ADA.name, "queue-views": True}
    assert "whole words of the case" in page_text(open_page("queue", session, q="bridge"))
    app = open_page("queue", session, field="Medicine", standing="wrong")
    assert "whole words of the case" not in page_text(app)
    assert "1 case matches this filter." in page_text(app)
    assert "The list shows 0 cases, but the queue will have 1" in page_text(app)
    [name] = [field for field in app.text_input if field.placeholder == "Queue name"]
    name.set_value("Medical")
    press(app, "Create queue")
    [queue] = audited_workbench.queues.all(ADA)
    assert (queue.name, queue.cases) == ("Medical", CaseFilter(fields=("Medicine",)))


def test_an_unknown_queue_in_an_address_is_explained_and_lists_all_cases(
    audited_workbench: Workbench,
) -> None:
    app = open_as("queue", queue="nope")
    assert "That queue doesn't exist in this database, so all cases are shown." in page_text(app)
    assert "**7 undecided cases**" in page_text(app)
    assert "This queue doesn't exist." in page_text(open_as("review", queue="nope", case=CASE))


def test_the_page_explains_why_a_queue_has_no_cases_for_you(audited_workbench: Workbench) -> None:
    queue = add_medical_queue(audited_workbench, people=("Ben",))
    assert "You aren't a member of this queue. A lead can add you" in page_text(
        open_as("queue", queue="medical")
    )
    notice = page_text(open_as("review", queue="medical", case=CASE))
    assert "1 of 1 left, none for you now" in notice
    audited_workbench.queues.archive(ADA, queue.id)
    assert "This queue is archived." in page_text(open_as("queue", queue="medical"))
    audited_workbench.queues.create(ADA, "Law", CaseFilter(fields=("none",)))
    assert "No cases match this queue's filter: field none" in page_text(
        open_as("queue", queue="law")
    )


def test_instructions_are_shown_as_typed_above_the_desk(audited_workbench: Workbench) -> None:
    add_medical_queue(
        audited_workbench, instructions=HOSTILE, rubric=Rubric(guidelines="Own guidelines")
    )
    app = open_as("review", queue="medical", case=CASE)
    assert HOSTILE in [text.value for text in app.text]
    assert "Own guidelines" in [text.value for text in app.text]
    labels = [block.label for block in app.expander]
    assert "Queue: Medical. 1 of 1 left. Instructions" in labels
    assert "Own guidelines" not in page_text(open_as("review", case=CASE))


def test_a_queue_is_configured_on_the_team_page(audited_workbench: Workbench) -> None:
    add_medical_queue(audited_workbench)
    app = open_as("team", view="queues")
    [name] = [field for field in app.text_input if field.value == "Medical"]
    [people] = [field for field in app.text_input if field.label.startswith("People")]
    # The second one is the team's, on the next tab.
    reviewers, _ = [field for field in app.number_input if field.label == "Reviewers per case"]
    name.set_value("Medicine")
    people.set_value("Ada Lind, Ben , ")
    reviewers.set_value(2)
    press(app, "Set up this queue")
    [queue] = audited_workbench.queues.all(ADA)
    assert (queue.name, queue.people, queue.policy.reviewers, queue.version) == (
        "Medicine",
        ("Ada Lind", "Ben"),
        2,
        2,
    )
    press(app, "Archive this queue")
    assert audited_workbench.queues.all(ADA) == ()
    assert queue.policy == QueuePolicy(reviewers=2)


def test_the_filter_of_a_queue_is_changed_in_the_list_that_it_holds(
    audited_workbench: Workbench,
) -> None:
    queue = add_medical_queue(audited_workbench, people=("Ada Lind",), instructions=HOSTILE)
    shown = address.filter_parameters(queue.cases)
    assert shown == {"field": "Medicine"}
    app = open_as("queue", fill=queue.id, **shown)
    assert "It is filled by field Medicine now." in page_text(app)
    assert "1 case matches this filter." in page_text(app)
    app = open_as("queue", fill=queue.id, q="bridge", tag="new", standing="wrong", order="oldest")
    press(app, "Use this filter")
    [changed] = audited_workbench.queues.all(ADA)
    assert changed.cases == CaseFilter(text="bridge", tags=("new",), order="oldest")
    assert (changed.people, changed.instructions, changed.version) == (
        queue.people,
        HOSTILE,
        queue.version + 1,
    )


def test_a_queue_is_created_from_the_team_page_with_the_filter_of_the_list(
    audited_workbench: Workbench,
) -> None:
    assert "There is only “All cases”." in page_text(open_as("team", view="queues"))
    app = open_as("queue", fill=NEW_QUEUE, field="Medicine")
    [name] = [field for field in app.text_input if field.placeholder == "Queue name"]
    name.set_value(HOSTILE[:60])
    press(app, "Create queue")
    [queue] = audited_workbench.queues.all(ADA)
    assert (queue.name, queue.cases) == (HOSTILE[:60], CaseFilter(fields=("Medicine",)))
    shown = page_text(open_as("queue", fill=queue.id, field="Medicine"))
    assert HOSTILE[:60] in shown.replace("\u200b", "")  # which keeps an address from being a link


def test_a_queues_filter_form_lists_the_filters_it_cant_use(audited_workbench: Workbench) -> None:
    assert "can't be changed" in page_text(open_as("queue", fill="nope"))
    tiered = audited_workbench.queues.create(ADA, "Urgent", CaseFilter(tiers=("must_look",)))
    assert "no filter by review priority, so the queue would lose it" in page_text(
        open_as("queue", fill=tiered.id)
    )
    assert "Choose “All cases” above." in page_text(
        open_as("queue", fill=tiered.id, queue=tiered.id)
    )


def test_every_filter_of_a_queue_is_one_of_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    case_filter = EVERY_FILTER.model_copy(
        update={"order": "random", "seed": 7, "quality_from": None, "fields": ("a,b%2C", "<b>")}
    )
    shown = address.filter_parameters(case_filter)
    monkeypatch.setattr(address, "value", lambda name: shown.get(name, ""))
    lost = address.filters_without_parameter(case_filter)
    assert set(lost) <= {"tiers"}
    kept = case_filter.model_copy(update=dict.fromkeys(lost, ()))
    assert member_filter(address.case_filter()) == kept


def test_saving_an_unchanged_queue_says_that_nothing_changed(audited_workbench: Workbench) -> None:
    add_medical_queue(audited_workbench)
    app = open_as("team", view="queues")
    press(app, "Set up this queue")
    assert "Nothing has changed. Version 1 is still in force." in page_text(app)
