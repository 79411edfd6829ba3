"""An adjudication by keys: focus goes where the key says, one press records once, and the result
stays in view.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from playwright.sync_api import expect

from masis.schema.team import QueuePolicy
from masis.services import Workbench, demo_cases
from tests.browser.conftest import Tab, serving, until
from tests.browser.test_dialog_keys import BURST_OVER
from tests.cases import with_copied_figure
from tests.reviewing import ADA, decide

DIFFERING = ("history-02", "docs-01")


def test_a_lead_adjudicates_with_the_keyboard_and_sees_the_recorded_verdict(
    open_tab: Callable[..., Tab], tmp_path: Path
) -> None:
    with closing(Workbench.open(tmp_path / "team.db")) as workbench:
        workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
        for case in map(with_copied_figure, demo_cases()):
            if case.id in DIFFERING:
                workbench.cases.add(ADA, [case])
                workbench.audits.audit(ADA, case)
                decide(
                    workbench,
                    case.id,
                    "override",
                    "Ada",
                    corrected_answer=f"{case.answer} Indeed.",
                    iteration=1,
                )
                decide(workbench, case.id, "reject", "Ben")
    with serving("serve", "--db", str(tmp_path / "team.db"), folder=tmp_path) as base:
        tab = open_tab(base, height=900)
        page = tab.open(f"/team?case={DIFFERING[0]}")
        page.get_by_label("Reviewer's name").fill("Cleo")
        page.keyboard.press("Enter")
        tab.settle()
        panel = page.get_by_role("region", name="Decision")
        reason, note = panel.locator("textarea.own-words"), panel.locator("#note")
        corrected, status = panel.locator("#corrected"), panel.locator(".message[role=status]")
        submit, sides = panel.locator(".primary").first, page.locator(".side")
        expect(panel).to_have_attribute("data-ready", "true")
        heading = page.get_by_role("heading", name="Evidence (")
        change = page.get_by_text("Indeed.").first  # what a correction changes, without a scroll
        for part in (heading, page.get_by_role("button", name="Take Ben's decision"), change):
            expect(part).to_be_in_viewport(ratio=1)
        expect(reason).to_be_hidden()  # whether one is needed depends on the verdict
        expect(page.locator(".answer .chosen").first).to_be_in_viewport()
        question = page.locator(".st-key-adjudicated-question")
        # it would stay so on every case
        assert question.evaluate("each => (each.scrollTop = 40, each.scrollTop)") == 0
        page.keyboard.press("h")
        sheet = panel.get_by_role("dialog", name="Keys")
        expect(sheet).to_contain_text("Start from a reviewer's decision")
        page.keyboard.press("h")
        expect(sheet).to_be_hidden()
        page.wait_for_function(BURST_OVER)
        why = page.locator(".why-panel")
        for key, issue in (("f", 1), ("f", 2), ("Shift+F", 1)):
            page.keyboard.press(key)
            expect(why).to_contain_text(f"Issue {issue},")
        expect(page.get_by_role("button", name="Label this")).to_have_count(1)
        page.keyboard.press("Shift+T")  # leads nowhere yet
        page.keyboard.press("o")
        expect(corrected).to_be_focused()
        expected = corrected.input_value()
        assert expected
        assert not expected.endswith("Indeed.")
        page.keyboard.press("Escape")
        page.keyboard.press("b")  # the answer is there: what comes next is Ada's
        expect(corrected).to_have_value(f"{expected} Indeed.")
        corrected.focus()
        page.keyboard.press("Control+End")
        page.keyboard.type(" It is so, as the evidence says where it is cited [chunk_9].")
        changes = panel.locator(".changed ins")
        expect(changes).to_contain_text("cited")  # while it is typed
        # what the correction leaves is said before it is recorded
        expect(panel.get_by_text("The words of 2 of 2 issues are unchanged:")).to_be_visible()
        expect(panel.get_by_text("chunk_9", exact=True)).to_be_visible()
        expect(corrected).to_be_focused()
        page.keyboard.press("Control+Enter")
        expect(reason).to_be_focused()  # it is what is missing
        expect(status).to_contain_text("Nothing was recorded: a reason is missing")
        expect(submit).to_contain_text("A reason is needed")
        expect(submit).to_be_in_viewport(ratio=1)
        usual = panel.locator(".usual li")
        expect(usual.last).to_be_in_viewport()
        page.keyboard.press("Escape")
        page.keyboard.press("t")
        expect(note).to_be_focused()
        page.keyboard.press("Escape")
        page.keyboard.press("x")
        expect(usual.first).to_be_visible()
        # what follows the key at once is typed, and is no key
        page.keyboard.type("x, even so 1", delay=5)
        expect(reason).to_have_value("x, even so 1")
        expect(submit).to_contain_text("Reject the answer")
        for _ in range(3):
            page.keyboard.press("Control+Enter")
        expect(page).to_have_url(re.compile(DIFFERING[1]))
        expect(status).to_contain_text(f"{DIFFERING[0]}, “")
        expect(panel.get_by_text("1 left for you, 1 decided now")).to_be_visible()
        main = page.get_by_test_id("stMain")
        assert main.evaluate("each => each.scrollTop === 0"), "the next case opens at its top"
        with closing(Workbench.open(tmp_path / "team.db")) as workbench:
            kinds = [
                entry.decision and entry.decision.kind
                for entry in workbench.store.decisions.iterate()
            ]
            assert kinds.count("adjudication") == 1
        expect(panel).to_have_attribute("data-ready", "true")
        page.keyboard.press("u")
        expect(page).to_have_url(re.compile(DIFFERING[0]))
        expect(status).to_contain_text(f"Undone: {DIFFERING[0]} waits for you again, “")
        expect(panel.get_by_text("2 left for you")).to_be_visible()
        expect(reason).to_have_value("x, even so 1")
        tab.settle()
        page.keyboard.press("o")
        expect(corrected).to_be_focused()
        page.keyboard.press("Escape")
        page.keyboard.press("x")
        page.keyboard.press("Escape")
        main.evaluate("each => each.scrollTo(0, 400)")
        page.keyboard.press("n")
        expect(page).to_have_url(re.compile(DIFFERING[1]))
        until(lambda: main.evaluate("each => each.scrollTop === 0"), page, "it opens at its top")
        expect(panel).to_have_attribute("data-ready", "true")
        page.keyboard.press("p")
        expect(page).to_have_url(re.compile(DIFFERING[0]))
        expect(reason).to_have_value("x, even so 1")
        tab.settle()
        page.keyboard.press("Shift+T")
        reason.fill("")
        page.keyboard.press("3")
        expect(reason).to_have_value(usual.nth(2).inner_text())
        page.keyboard.press("3")  # there is one now: a digit is a digit
        expect(reason).to_have_value(usual.nth(2).inner_text() + "3")
        reason.fill("")
        usual.nth(1).click()
        expect(reason).to_have_value(usual.nth(1).inner_text())
        reason.fill("x, even so 1")
        page.keyboard.press("Escape")
        # they switch, and type nothing
        title = panel.get_by_text(re.compile("^Reason"))
        for key, whose in (("2", "Ben’s"), ("1", "Ada’s"), ("2", "Ben’s")):
            page.keyboard.press(key)
            expect(title).to_have_text(f"Reason ({whose}, unchanged)")
            expect(reason).to_have_value("read")
            expect(reason).not_to_be_focused()
        page.keyboard.press("Shift+T")
        page.keyboard.type("Mine.")  # in place of what was taken, not behind it
        expect(title).to_have_text("Reason (changed from Ben’s)")
        expect(reason).to_have_value("Mine.")
        page.keyboard.press("Escape")
        page.keyboard.press("1")
        expect(title).to_have_text("Reason (Ada’s, unchanged)")
        expect(sides).to_have_count(4)
        page.keyboard.press("o")
        page.keyboard.press("Control+End")
        page.keyboard.type(" So.")
        page.keyboard.press("Escape")
        for key in "121212":  # at once and again: what was typed last is kept whole
            page.keyboard.press(key)
        expect(reason).to_have_value("read")
        page.keyboard.press("3")
        expect(corrected).to_have_value(f"{expected} Indeed. So.")
        expect(panel.locator(".saved")).to_have_text("Draft saved")
        page.reload()
        expect(corrected).to_have_value(f"{expected} Indeed. So.")
        expect(panel).to_have_attribute("data-ready", "true")
        page.keyboard.press("4")
        expect(reason).to_have_value("Mine.")
        # at once: B begins the correction of the decision again that was taken just now
        for key in "1b":
            page.keyboard.press(key)
        expect(corrected).to_have_value(expected)
        page.keyboard.press("b")
        # in one breath: it is recorded once the correction has been begun again
        page.keyboard.press("Control+Enter")
        expect(status).to_contain_text(f"{DIFFERING[0]}, “")
        page.set_viewport_size({"width": 900, "height": 900})
        page.goto(f"{base}/team?case={DIFFERING[0]}")
        expect(panel.get_by_text("Final verdict (settled)")).to_be_visible()
        expect(panel.locator(".standing ins")).to_contain_text("Indeed.")
        expect(reason).to_be_hidden()  # its keys do nothing until it is asked for
        # it's there once the page knows the name that this browser remembers
        expect(panel.get_by_role("button", name="Change it")).to_be_visible()
        expect(panel).to_have_attribute("data-ready", "true")
        page.keyboard.press("m")
        expect(panel.get_by_role("button", name="Keep it")).to_be_visible()
        expect(reason).to_be_visible()
        expect(submit).to_be_in_viewport(ratio=1)
        expect(submit).to_contain_text("A reason is needed")
        page.keyboard.press("m")
        expect(reason).to_be_hidden()
        page.set_viewport_size({"width": 1440, "height": 900})
        # once it is drawn: for a moment the tabs before stand beside those that come
        tab.open("/team")
        # it opens there, not at the page's top
        page.get_by_role("link", name="Trust: agreement in detail").click()
        expect(page.locator(".st-key-trust-view")).to_be_in_viewport()
        page.wait_for_function("document.querySelector('[data-testid=stMain]').scrollTop > 0")
