"""An adjudication by keys: focus goes where the key says, one press records once, and the result
stays in view.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from playwright.sync_api import Page, expect

from masis.schema.team import QueuePolicy
from masis.services import Workbench, demo_cases
from tests.browser.conftest import Tab, bottom, serving, top, until
from tests.browser.mounting import Mounted
from tests.cases import with_copied_figure
from tests.reviewing import ADA, decide

DIFFERING = ("history-02-altered", "docs-01-clean")


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
        form = page.locator(".st-key-final-form")
        # for a moment the form before stands there as well: what is expected is waited for
        reason, corrected = (
            form.get_by_label("Reason").first,
            form.get_by_label("Corrected answer").first,
        )
        heading = page.get_by_role("heading", name="Evidence (")
        change = page.get_by_text("Indeed.").first  # what a correction changes, without a scroll
        for part in (heading, page.get_by_role("button", name="Take Ben's decision"), change):
            expect(part).to_be_in_viewport(ratio=1)
        expect(reason).to_have_count(0)  # whether one is needed depends on the verdict
        expect(page.locator(".st-key-adjudicated-answer .answer .chosen").first).to_be_in_viewport()
        question = page.locator(".st-key-adjudicated-question")
        # it would stay so on every case
        assert question.evaluate("each => (each.scrollTop = 40, each.scrollTop)") == 0
        page.keyboard.press("h")
        sheet = page.locator("dialog.sheet[open]")
        right = (
            "(all, edge) => Math.max(...all.map(each => each.getBoundingClientRect().right)) - edge"
        )
        edge = sheet.evaluate("each => each.getBoundingClientRect().right")
        terms = sheet.locator("dd")
        until(
            lambda: terms.evaluate_all(right, edge) > -60, page, "no column of the sheet is empty"
        )
        page.keyboard.press("h")
        page.mouse.click(20, 500)
        page.keyboard.press("ArrowDown")
        frame = "getComputedStyle(document.activeElement, '::before').boxShadow"
        until(
            lambda: page.evaluate(f"[document.activeElement.tagName, {frame}]") == ["MAIN", "none"],
            page,
            "no frame",
        )
        why = page.locator(".st-key-adjudicated-answer .why-panel")
        page.keyboard.press("f")
        expect(why).to_contain_text("Issue 1,")
        page.keyboard.press("f")
        expect(why).to_contain_text("Issue 2,")
        page.keyboard.press("Shift+F")
        expect(why).to_contain_text("Issue 1,")
        buttons = page.locator(".st-key-final-verdicts")
        # an arrow key scrolls gradually: what goes on scrolling would end elsewhere than at the top
        tab.settle()
        page.get_by_test_id("stMain").evaluate("each => each.scrollTo(0, 0)")
        before = top(buttons)
        page.keyboard.press("t")  # leads nowhere yet, and keeps no key back
        # at once: the field is not there yet, and what follows the key is text
        page.keyboard.type("xmob be 2")
        expect(reason).to_have_value("mob be 2")
        reason.fill("")
        page.keyboard.press("Escape")
        tab.settle()
        page.keyboard.press("o")
        expect(corrected).to_be_focused()
        expected = corrected.input_value()
        assert expected
        assert not expected.endswith("Indeed.")
        page.keyboard.press("Escape")
        page.keyboard.press("b")  # the answer is there: what comes next is Ada's
        expect(corrected).to_have_value(f"{expected} Indeed.")
        corrected.focus()
        page.keyboard.press("End")
        page.keyboard.type(" So.")
        changes = page.locator(".st-key-final-changes ins")
        expect(changes).to_contain_text("So.")  # while it is typed
        page.add_style_tag(content=".st-key-final-changes { --text-height: 1.5rem !important; }")
        page.keyboard.type(" It is so, as the evidence says where it is cited [chunk_9].")
        expect(changes).to_contain_text("cited")
        # what the correction leaves is said before it is recorded
        left = page.locator(".st-key-final-act")
        expect(left.get_by_text("You haven't changed the words of 2 of 2 issues:")).to_be_visible()
        expect(left.get_by_text("chunk_9", exact=True)).to_be_visible()
        made = page.locator(".st-key-final-changes .text")
        until(
            lambda: made.evaluate("each => each.scrollTop > 0"),
            page,
            "the newest change is in view",
        )
        expect(corrected).to_be_focused()
        page.keyboard.press("Control+Enter")
        expect(reason).to_be_focused()  # it is what is missing
        foot, note = page.locator(".st-key-final-act"), form.get_by_label("Note").first
        expect(foot.get_by_text("Nothing was recorded: a reason is missing")).to_be_in_viewport()
        expect(foot.get_by_role("button", name="A reason is needed")).to_be_in_viewport(ratio=1)
        # the usual reasons lie over the correction, and push neither its changes nor the note under
        # the foot
        expect(page.locator(".st-key-final-usual li").last).to_be_in_viewport()
        until(
            lambda: bottom(changes.first) < top(note),
            page,
            "the note is below what the correction changes",
        )
        until(lambda: bottom(note) <= top(foot), page, "the note is above what records the verdict")
        tab.settle()
        page.keyboard.press("Escape")
        page.keyboard.press("Shift+T")
        expect(form.get_by_label("Note").first).to_be_focused()
        page.keyboard.press("Escape")
        page.keyboard.press("x")
        expect(page.locator(".st-key-final-usual li").first).to_be_visible()
        acts = """each => [getComputedStyle(each, '::placeholder').color,
          getComputedStyle(document.querySelector('[class*=st-key-take-] kbd')).opacity]"""
        in_field = "([hint, dimmed]) => hint !== 'rgba(0, 0, 0, 0)' && dimmed < 1"
        until(
            lambda: reason.evaluate(f"each => ({in_field})(({acts})(each))"),
            page,
            "in the field numbers are reasons",
        )
        page.keyboard.press("Escape")
        beside = ["rgba(0, 0, 0, 0)", "1"]
        until(
            lambda: reason.evaluate(acts) == beside,
            page,
            "beside the field numbers take a decision",
        )
        page.keyboard.press("x")
        # what follows the key at once is typed, and is no key
        page.keyboard.type("x, even so 1", delay=20)
        expect(reason).to_have_value("x, even so 1")
        expect(page.get_by_role("button", name="Reject the answer").first).to_be_enabled()
        page.mouse.move(400, 150)
        page.mouse.wheel(0, 15)
        page.keyboard.press("Control+Enter")
        done = page.get_by_text(f"{DIFFERING[0]}: rejected as final verdict, “")
        expect(done).to_be_in_viewport()
        expect(page.get_by_text("1 left for you, 1 decided now")).to_be_visible()
        tab.settle()
        main = page.get_by_test_id("stMain")
        until(
            lambda: main.evaluate("each => each.scrollTop === 0"),
            page,
            "the next case opens at its top",
        )
        until(
            lambda: abs(top(buttons) - before) < 12,
            page,
            "what was recorded takes no line above the buttons",
        )
        with closing(Workbench.open(tmp_path / "team.db")) as workbench:
            kinds = [
                entry.decision and entry.decision.kind
                for entry in workbench.store.decisions.iterate()
            ]
            assert kinds.count("adjudication") == 1
        page.keyboard.press("u")
        # meant for the case that is leaving: it does nothing to the one that comes back
        page.keyboard.press("2")
        expect(page.get_by_text("2 left for you")).to_be_visible()
        expect(page).to_have_url(re.compile(DIFFERING[0]))
        expect(
            page.get_by_text(f"Undone: {DIFFERING[0]} waits for you again, “")
        ).to_be_in_viewport()
        expect(reason).to_have_value("x, even so 1")
        tab.settle()  # the case that comes back has a form of its own
        page.keyboard.press("o")
        expect(corrected).to_be_focused()
        tab.settle()
        expect(corrected).to_be_focused()
        page.keyboard.press("Escape")
        main.evaluate("each => each.scrollTo(0, 400)")
        page.keyboard.press("n")
        expect(page).to_have_url(re.compile(DIFFERING[1]))
        expect(page.get_by_text("2 left for you")).to_be_in_viewport()
        until(lambda: main.evaluate("each => each.scrollTop === 0"), page, "it opens at its top")
        page.locator(".st-key-adjudicated-answer .mark.active").first.click()
        expect(page.locator(".why-panel .reason").first).to_be_visible()
        # no decision form is there
        expect(page.get_by_text("Label this", exact=False)).to_have_count(0)
        tab.settle()
        page.keyboard.press("p")
        expect(reason).to_have_value("x, even so 1")
        tab.settle()
        page.keyboard.press("t")
        reason.fill("")
        usual = page.locator(".st-key-final-usual li")
        page.keyboard.press("3")
        expect(reason).to_have_value(usual.nth(2).inner_text())
        page.keyboard.press("3")  # there is one now: a digit is a digit
        expect(reason).to_have_value(usual.nth(2).inner_text() + "3")
        reason.fill("")
        usual.nth(1).click()
        expect(reason).to_have_value(usual.nth(1).inner_text())
        reason.fill("x, even so 1")
        page.keyboard.press("Escape")
        tab.settle()
        # they switch, and type nothing
        for key, whose in (("2", "Ben’s"), ("1", "Ada’s"), ("2", "Ben’s")):
            page.keyboard.press(key)
            expect(form.get_by_label(f"Reason ({whose}").first).to_have_value("read")
            expect(reason).not_to_be_focused()
            tab.settle()
            # a side with a correction: what it changes and its note are in view as well
            if key == "1":
                until(
                    lambda: max(map(bottom, (changes.first, note))) <= top(foot) < 880,
                    page,
                    "they are above the foot",
                )
                page.set_viewport_size({"width": 900, "height": 900})
                fits_a_narrow_window(page)
                page.set_viewport_size({"width": 1440, "height": 900})
        page.keyboard.press("t")
        expect(reason).to_be_focused()
        expect(reason).to_have_value("read")
        page.keyboard.press("Escape")
        page.keyboard.press("e")
        expect(reason).to_be_focused()
        page.keyboard.type("Mine.")  # in place of what was taken, not behind it
        expect(form.get_by_label("Reason (changed from").first).to_have_value("Mine.")
        page.keyboard.type(" Still.")  # the label changes while it is typed
        expect(reason).to_have_value("Mine. Still.")
        page.keyboard.press("Escape")
        page.keyboard.press("1")
        expect(form.get_by_label("Reason (Ada’s").first).to_have_value("read")
        tab.settle()
        page.keyboard.press("o")
        expect(corrected).to_be_focused()
        page.keyboard.press("End")
        page.keyboard.type(" So.")
        page.keyboard.press("Escape")
        for key in "121212":  # at once and again: what was typed last is kept whole
            page.keyboard.press(key)
            tab.settle()
        expect(reason).to_have_value("read")
        page.keyboard.press("3")
        expect(corrected).to_have_value(f"{expected} Indeed. So.")
        expect(reason).to_have_value("read")
        tab.settle()
        page.reload()
        expect(corrected).to_have_value(f"{expected} Indeed. So.")
        tab.settle()
        page.keyboard.press("4")
        expect(reason).to_have_value("Mine. Still.")
        tab.settle()
        # at once: B waits until the decision is there whose correction it begins again
        for key in "1b":
            page.keyboard.press(key)
        expect(corrected).to_have_value(expected)
        tab.settle()
        page.keyboard.press("b")
        # in one breath: it is recorded once the correction has been begun again
        page.keyboard.press("Control+Enter")
        recorded = page.get_by_text(f"{DIFFERING[0]}: overridden as final verdict, “")
        expect(recorded).to_be_in_viewport()
        tab.settle()
        page.keyboard.press("u")
        # meant for the case that comes back: its correction has the focus then
        page.keyboard.press("o")
        expect(corrected).to_be_focused()
        tab.settle()
        expect(corrected).to_be_focused()
        page.keyboard.press("Control+Enter")
        expect(recorded).to_be_in_viewport()
        tab.settle()
        page.goto(f"{base}/team?case={DIFFERING[0]}")
        expect(page.get_by_text("Final verdict (settled)")).to_be_visible()
        expect(page.locator(".st-key-adjudication-recorded ins")).to_contain_text("Indeed.")
        expect(form).to_have_count(0)  # its keys do nothing until it is asked for
        tab.settle()
        page.keyboard.press("m")
        expect(form.get_by_label("Reason").first).to_be_visible()
        # once it is drawn: for a moment the tabs before stand beside those that come
        tab.open("/team")
        # it opens there, not at the page's top
        page.get_by_role("link", name="Trust: agreement in detail").click()
        expect(page.locator(".st-key-trust-view")).to_be_in_viewport()
        page.wait_for_function("document.querySelector('[data-testid=stMain]').scrollTop > 0")


def fits_a_narrow_window(page: Page) -> None:
    """Wait until bar, note and button of the form stand where they belong at 900 x 900."""
    bar, said, case, note, record = (
        page.locator(f".st-key-{name}").first
        for name in (
            "adjudication-bar",
            "adjudication-said",
            "adjudication",
            "final-note",
            "final-submit",
        )
    )
    until(lambda: bottom(note) <= top(record), page, "the note is above the button")
    until(lambda: bottom(record) < 900, page, "the button is in view")
    until(lambda: bottom(record) - top(record) < 45, page, "the words of the button take one line")
    until(lambda: top(said) - top(bar) < 60, page, "no blank line parts the bar from what it says")
    until(lambda: top(case) - bottom(bar) < 30, page, "the case begins below the bar")


def test_an_open_issue_is_selected_in_the_correction(mount: Callable[..., Mounted]) -> None:
    mounted = mount("correction_left", "key_sheet", "correction_check")
    mounted.page.evaluate("""() => {
          document.body.insertAdjacentHTML("beforeend", "<div class=st-key-final-corrected><textarea></textarea></div>")
          document.querySelector("textarea").value = "Now A is red. B is red. C."
          const left = [{ number: 1, text: "contradicted" }, { number: 2, text: "missing point" }]
          window.addEventListener("masis-untouched", ({ detail }) => Object.assign(detail, { count: 2, left }))
          const faulty = { 1: { start: 15, end: 18, answer: "A is red. B is red." }, 2: { after: "A is red." } }
          window.addEventListener("masis-correct", ({ detail }) => Object.assign(detail, faulty[detail.number]))
        }""")
    root = mounted.draw(
        {"corrected": "", "check": {"fabricated": [], "uncited": [], "uncited_count": 0}}
    )
    selected = "(box => [box === document.activeElement, box.selectionStart, box.selectionEnd])"
    for name, place in (
        ("issue 1 (contradicted)", [19, 22]),
        ("issue 2 (missing point)", [13, 13]),
    ):
        root.get_by_role("button", name=name).click()
        assert mounted.page.evaluate(f"{selected}(document.querySelector('textarea'))") == [
            True,
            *place,
        ]
