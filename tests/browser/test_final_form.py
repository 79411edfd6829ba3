"""The form of a final verdict, mounted without a server: what its keys and lists show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from masis.schema.actor import Actor
from masis.schema.labels import TargetLabel
from masis.schema.team import QueuePolicy
from masis.services import Workbench, demo_cases
from masis.services.records import CaseFilter
from masis.ui.review.decision import DESK_PARTS
from masis.ui.review.desk import Place
from masis.ui.shell.keys import adjudication_keys
from masis.ui.team.final_desk import FinalDesk
from tests.browser.mounting import Mounted
from tests.cases import with_copied_figure
from tests.reviewing import ADA, decide

Mount = Callable[..., Mounted]
CASE = "strategy-01"


@pytest.fixture
def workbench(tmp_path: Path) -> Iterator[Workbench]:
    """Two people decide each case, and one is audited with a revision."""
    (case,) = (with_copied_figure(case) for case in demo_cases() if case.id == CASE)
    with closing(Workbench.open(tmp_path / "team.db")) as opened:
        opened.team.put_in_force(ADA, QueuePolicy(reviewers=2))
        opened.cases.add(ADA, [case])
        opened.audits.audit(ADA, case)
        yield opened


def mounted_form(mount: Mount, workbench: Workbench) -> Locator:
    """Mount the adjudication of the case as Cleo opens it, and return its form."""
    place = Place(case=CASE, adjudication=True)
    cleo, everything = Actor(name="Cleo"), CaseFilter()
    desk = FinalDesk.open(workbench, cleo, place, everything, lambda _: None)
    data: dict[str, Any] = {**desk.data(), "suggested_name": "", "keys": adjudication_keys()}
    component = mount("desk", *DESK_PARTS, "answer", "labels")
    component.page.route("**/api/v1/desk/draft", lambda route: route.fulfill(json={"saved_at": ""}))
    component.draw(data)
    form = component.page.get_by_role("region", name="Decision")
    expect(form).to_have_attribute("data-ready", "true")
    return form


def test_a_taken_decision_shows_its_label_on_a_chunk_and_l_labels_the_answer(
    mount: Mount, workbench: Workbench
) -> None:
    chunk = workbench.cases.open(CASE).case.evidence[1].id
    label = TargetLabel(target="evidence", evidence_id=chunk, label="irrelevant")
    decide(workbench, CASE, "reject", ADA.name, iteration=1, labels=(label,))
    decide(workbench, CASE, "approve", "Ben", iteration=1)
    form = mounted_form(mount, workbench)
    form.page.keyboard.press("m")
    expect(form.locator(".message[role=status]")).to_contain_text("no final verdict to change")
    form.page.keyboard.press("1")
    given = form.get_by_role("list", name="Labels on chunks")
    expect(given.get_by_role("listitem")).to_have_text([f"{chunk}: irrelevant"])
    expect(form.get_by_text("Labels given: 1 on chunks")).to_be_visible()
    card = form.page.get_by_role("group", name=f"Label {chunk}")
    expect(card.get_by_role("button", name="irrelevant")).to_have_attribute("aria-pressed", "true")
    expect(form.locator(".label-row").first).to_be_visible()
    for row in form.locator(".label-row .label-words").all():
        assert row.inner_text().strip(), "each row says what it labels"
    form.page.keyboard.press("l")
    expect(form.page.locator(".label-bar")).to_be_visible()


def test_a_decision_on_a_revision_leaves_the_label_bar_closed_and_says_why(
    mount: Mount, workbench: Workbench
) -> None:
    report = TargetLabel(target="answer", label="other", severity="low")
    decide(workbench, CASE, "reject", ADA.name, iteration=2, labels=(report,))
    decide(workbench, CASE, "approve", "Ben", iteration=1)
    form = mounted_form(mount, workbench)
    form.page.keyboard.press("1")
    message = form.locator(".message[role=status]")
    form.page.keyboard.press("l")
    expect(message).to_contain_text("The form is about another answer.")
    form.get_by_role("button", name="Add passages").click()
    expect(message).to_contain_text("The form is about another answer")
    expect(form.page.locator(".label-bar")).to_have_count(0)


def test_l_says_that_the_policy_hides_what_it_would_label(
    mount: Mount, workbench: Workbench
) -> None:
    workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2, machine="never"))
    decide(workbench, CASE, "reject", ADA.name, iteration=1)
    decide(workbench, CASE, "approve", "Ben", iteration=1)
    form = mounted_form(mount, workbench)
    form.page.keyboard.press("1")
    form.page.keyboard.press("l")
    expect(form.locator(".message[role=status]")).to_contain_text("The policy hides the audit")


def test_a_taken_correction_keeps_what_another_reviewer_reported(
    mount: Mount, workbench: Workbench
) -> None:
    chunks = [chunk.id for chunk in workbench.cases.open(CASE).case.evidence[:2]]
    report = TargetLabel(target="answer", label="other", severity="low", note="Too short.")
    of_ada = (TargetLabel(target="evidence", evidence_id=chunks[0], label="irrelevant"), report)
    of_ben = (TargetLabel(target="evidence", evidence_id=chunks[1], label="relevant"),)
    decide(workbench, CASE, "reject", ADA.name, iteration=1, labels=of_ada)
    corrected = {"corrected_answer": "Shorter.", "labels": of_ben}
    decide(workbench, CASE, "override", "Ben", iteration=1, **corrected)
    form = mounted_form(mount, workbench)
    page = form.page
    add = page.get_by_role("button", name="issues and labels")
    expect(add).to_have_count(0)  # a verdict says which answer they are about
    page.keyboard.press("2")
    expect(add).to_have_text("Add Ada’s issues and labels")
    add.click()
    expect(form.get_by_role("list", name="Labels on chunks").get_by_role("listitem")).to_have_text(
        [f"{chunks[1]}: relevant", f"{chunks[0]}: irrelevant"]
    )
    reported = form.get_by_role("region", name="Issues you report")
    expect(reported.get_by_text("Too short.")).to_be_visible()
    expect(add).to_have_count(0)
    page.keyboard.press("u")
    expect(reported).to_be_hidden()
