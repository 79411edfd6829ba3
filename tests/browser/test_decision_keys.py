"""The keys of the decision form, which stands alone on a page: what each does, when none does, and
what is said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from masis import Run, run_audit
from masis.schema.team import LabelTypes
from masis.services.decision_rules import NEEDS_REASON
from masis.ui.review import decision_form as forms
from masis.ui.shell.keys import key_map
from masis.views.answer import shown_answer
from masis.views.words import DECIDE
from tests.browser.conftest import until
from tests.browser.mounting import Mounted
from tests.cases import case_of

Draw = Callable[..., Page]
CASE = case_of(
    "Bridge 1 is 101 metres long [chunk_1]. It was opened in 1950 [chunk_9].",
    {"chunk_1": "Bridge 1 is 101 metres long.", "chunk_2": "Bridge 1 was opened in 1931."},
)


@pytest.fixture(scope="module")
def run() -> Run:
    return run_audit(CASE)


@pytest.fixture
def draw(mount: Callable[..., Mounted], run: Run) -> Draw:
    """Draws the form over a link and a field of the page; ``more`` replaces what the
    server says.
    """
    mounted = mount("decision", "key_sheet", "report_issue", "correction_check")
    others = "<a href='#'>elsewhere</a><button>other</button><input>"
    mounted.page.evaluate("html => document.body.insertAdjacentHTML('afterbegin', html)", others)

    def drawn(**more: Any) -> Page:
        data: dict[str, Any] = {
            "case": CASE.id,
            "form": "token",
            "reviewer": "Ada",
            "done": [],
            "seen": 1,
            "draft": forms.FormFields().model_dump(mode="json"),
            "blank": forms.FormFields().model_dump(mode="json"),
            "answer": CASE.answer,
            "shown": shown_answer(CASE, run, 0),
            "about": {"name": "the original answer", "note": ""},
            "serious": [],
            "previous": "",
            "suggested_name": "",
            "revision": "revision 2",
            "longest": 1_000,
            "verdicts": [
                {"code": code, **word._asdict(), "needs_reason": code in NEEDS_REASON}
                for code, word in DECIDE.items()
            ],
            "reasons": forms.reasons(run.iterations[0]),
            "labels": {
                "base": forms.label_base(run, 0),
                "rows": forms.label_rows(run.iterations[0]),
                "choices": forms.choices(),
            },
            "reporting": forms.reporting(CASE.answer or "", LabelTypes(), None),
            "history": [],
            "go": {"waiting": True, "says": "3 left to review"},
            "keys": key_map(),
        }
        page = mounted.page
        page.evaluate("shown => { window.masisShown = { ...shown, at: -1000 } }", data["shown"])
        mounted.draw(data | more)
        expect(page.locator(".panel")).to_have_attribute("data-ready", "true")
        mounted.page.evaluate("window.sent.length = 0")
        return page

    drawn.sent = mounted.sent  # type: ignore[attr-defined]
    drawn.page = mounted.page  # type: ignore[attr-defined]
    return drawn


def posted(draw: Draw) -> list[Any]:
    """What was submitted."""
    return [value for kind, name, value in draw.sent() if (kind, name) == ("trigger", "submit")]  # type: ignore[attr-defined]


def says(page: Page) -> Any:
    return expect(page.get_by_role("status").first)


def test_a_fast_key_sequence_is_sent_in_full_and_enter_decides_nothing(draw: Draw) -> None:
    page = draw()
    for key in ("x", "3", "Enter"):
        page.keyboard.press(key)
    assert not posted(draw)
    page.keyboard.press("l")
    page.keyboard.press("ArrowDown")  # the label that agrees with the audit
    says(page).to_contain_text("Labelled: agree")
    page.keyboard.press("Control+Enter")
    (sent,) = posted(draw)
    assert (sent["fields"]["verdict"], bool(sent["fields"]["reason"])) == ("reject", True)
    assert list(sent["fields"]["labels"].values()) != [{}]


def test_a_field_focused_by_a_key_is_visible_above_the_form_footer(draw: Draw) -> None:
    page = draw()
    page.set_viewport_size({"width": 420, "height": 420})

    def stands_above() -> bool:
        field, foot = (
            page.locator(":is(select, textarea):focus").bounding_box(),
            page.locator(".foot").bounding_box(),
        )
        return bool(field and foot and field["y"] + field["height"] <= foot["y"])

    for key in ("x", "3"):
        page.keyboard.press(key)
    for height in range(420, 720, 20):  # also where it is partly above the foot before
        page.set_viewport_size({"width": 420, "height": height})
        page.evaluate("scrollTo(0, 0)")
        page.keyboard.press("t")
        assert stands_above(), height
        page.keyboard.press("Escape")
    page.set_viewport_size({"width": 420, "height": 420})
    page.keyboard.press("t")
    page.keyboard.type("A note that grows.\n" * 4)
    assert stands_above()
    page.keyboard.press("Escape")
    page.keyboard.press("l")
    assert stands_above()
    page.locator("select:focus").select_option(index=2)  # what confirms it makes the foot higher
    says(page).to_contain_text("Labelled")
    assert stands_above()


def test_a_submitted_correction_isnt_shown_on_the_next_case(draw: Draw) -> None:
    page = draw()
    page.keyboard.press("o")
    page.keyboard.type("Bridge 1. ")
    another = (
        "window.masisShown = { ...window.masisShown, place: 'next' }; window.dispatchEvent(new"
        " Event('masis-shown'))"
    )
    shown, editor = page.evaluate("window.masisShown"), page.locator(".editor")
    page.evaluate(another)
    # who types, where an audit that ends changes the place of the answer
    expect(editor).to_be_visible()
    page.evaluate("shown => { window.masisShown = shown }", shown)
    page.keyboard.press("Control+Enter")
    assert posted(draw)
    expect(editor).to_be_visible()
    page.evaluate(another)
    expect(editor).to_be_hidden()


def test_a_key_held_down_decides_nothing(draw: Draw) -> None:
    page = draw()
    page.evaluate(
        """() => { for (const pressed of [{ key: "a" }, { key: "Enter", ctrlKey: true }])
            document.dispatchEvent(new KeyboardEvent("keydown", { ...pressed, repeat: true, bubbles: true })) }"""
    )
    assert not draw.sent()  # type: ignore[attr-defined]
    expect(page.get_by_role("radio", name="Approve")).not_to_be_checked()


@pytest.mark.parametrize("elsewhere", ["a", "button", "input"])
def test_keys_are_off_while_another_control_has_the_focus_until_esc(
    draw: Draw, elsewhere: str
) -> None:
    page = draw()
    page.locator(f"body > {elsewhere}").focus()
    page.keyboard.press("d")  # the page has a button for it, which acts whatever has the focus
    expect(page.locator(".message").first).to_be_hidden()
    for key in ("a", "x", "Control+Enter", "n"):
        page.keyboard.press(key)
    assert not draw.sent()  # type: ignore[attr-defined]
    expect(page.get_by_role("radio", name="Reject")).not_to_be_checked()
    if elsewhere != "input":  # there they are letters
        says(page).to_contain_text("Keys are off while another control has the focus. Press Esc")
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    assert [each["fields"]["verdict"] for each in posted(draw)] == ["approve"]


def test_o_focuses_the_correction_and_typing_there_triggers_no_shortcut(draw: Draw) -> None:
    page = draw()
    page.keyboard.press("o")
    field = page.get_by_label("Corrected answer")
    expect(field).to_be_focused()
    page.keyboard.press("Control+End")
    page.keyboard.type(" an axe, u n s")
    expect(field).to_have_value(f"{CASE.answer} an axe, u n s")
    assert not [each for each in draw.sent() if each[1] == "act"]  # type: ignore[attr-defined]


def test_the_correction_field_fits_its_text_and_selects_the_issue(
    draw: Draw,
) -> None:
    draw.page.evaluate("""() => {
          const columns = ["", ""].map(() => Object.assign(document.createElement("div"), { style: "flex: 1" }))
          for (const each of columns) each.dataset.testid = "stColumn"
          const row = document.createElement("div")
          Object.assign(row, { className: "st-key-review", style: "display: flex" })
          document.getElementById("host").before(row)
          row.append(...columns)
          columns[0].append("The answer")
          columns[1].append(document.getElementById("host"))
          window.addEventListener("masis-correct", ({ detail }) => {
            Object.assign(detail, window.faulty ?? { start: 39, end: 41 })
          })
        }""")  # type: ignore[attr-defined]
    page = draw()
    page.keyboard.press("o")
    editor, field = page.locator(".editor"), page.get_by_label("Corrected answer")
    expect(editor).to_have_class("block editor docked")
    short = editor.evaluate("box => box.offsetHeight")
    assert short < 150
    page.keyboard.type("Later it")
    expect(field).to_have_value(f"{(CASE.answer or '')[:39]}Later it{(CASE.answer or '')[41:]}")
    field.fill("Another line.\n" * 60)
    most = 0.4 * page.evaluate("innerHeight") + 1
    until(
        lambda: short < editor.evaluate("box => box.offsetHeight") <= most,
        page,
        "it grows, as far as it may",
    )
    until(
        lambda: editor.evaluate("box => parseFloat(getComputedStyle(box).bottom) === 0"),
        page,
        "it is docked",
    )
    until(
        lambda: field.evaluate("box => box.scrollHeight > box.clientHeight"),
        page,
        "the text scrolls",
    )
    # once the correction has changed they are looked for in it
    page.evaluate("window.faulty = { start: 4, end: 10 }")
    field.fill(f"At last: {CASE.answer}")
    page.keyboard.press("Escape")
    page.keyboard.press("o")
    chosen = "box => box.value.slice(box.selectionStart, box.selectionEnd)"
    until(lambda: field.evaluate(chosen) == f"{CASE.answer}"[4:10], page, "its words are selected")
    field.fill("Nothing of it is left.")
    page.keyboard.press("Escape")
    page.keyboard.press("o")
    says(page).to_have_text("You've already changed the words of this issue.")
    # of several places the nearest to where they stood, and for a missing point the place where it
    # would be inserted
    cites, other = f"{CASE.answer}".split(" It was")
    for faulty, start in (("start: 28, end: 37", 28 + 3), (f"after: {cites!r}", len(cites) + 4)):
        page.evaluate(f"window.faulty = {{ {faulty} }}")
        field.fill(
            f"[chunk_1]{cites[6:]} It was{other}" if "start" in faulty else f"Now {CASE.answer}"
        )
        page.keyboard.press("Escape")
        page.keyboard.press("o")
        assert field.evaluate("box => box.selectionStart") == start


def test_a_correction_links_to_each_issue_it_leaves_open(draw: Draw) -> None:
    draw.page.evaluate("""() => {
          const left = [{ number: 1, text: "fabricated" }, { number: 3, text: "uncited" }]
          const untouched = { count: 3, left, others: 1 }
          window.addEventListener("masis-untouched", ({ detail }) => Object.assign(detail, untouched))
          window.addEventListener("masis-correct", ({ detail }) => Object.assign(detail, { start: 4, end: 10 }))
        }""")  # type: ignore[attr-defined]
    draft = forms.FormFields(
        verdict="override", corrected=f"At last: {CASE.answer}".replace(" [chunk_1]", "")
    ).model_dump(mode="json")
    page = draw(draft=draft, check=forms.check(draft["corrected"], CASE, shown=CASE.answer))
    expect(page.get_by_text("You haven't changed the words of 2 of 3 issues:")).to_contain_text(
        "1 more is about the answer as a whole"
    )
    expect(page.locator(".changed")).to_contain_text("Drops [chunk_1].")
    page.get_by_role("button", name="issue 3 (uncited)").click()
    chosen = page.get_by_label("Corrected answer").evaluate(
        "box => box.value.slice(box.selectionStart, box.selectionEnd)"
    )
    assert chosen == f"{CASE.answer}"[4:10]


def test_an_unavailable_shortcut_explains_why(draw: Draw) -> None:
    page = draw()
    page.evaluate("window.masisShown.at = performance.now()")
    page.keyboard.press("a")
    says(page).to_contain_text("this answer has only just appeared")
    page.keyboard.press("u")
    says(page).to_contain_text("There is nothing to undo")
    # another answer stands on the page: neither a key nor a person's own click decides about this
    # one
    page.evaluate("window.masisShown = { ...window.masisShown, at: -1000, digest: 'another' }")
    page.keyboard.press("a")
    says(page).to_contain_text("The answer on the page is changing")
    page.get_by_text("Approve", exact=True).click()
    page.get_by_role("button", name="Submit").click()
    says(page).to_contain_text("The answer on the page is changing")
    assert not posted(draw)
    page = draw(notice={"text": "Decided by Bo and Cy.", "tone": "calm", "closed": True})
    expect(page.locator(".notice")).to_have_text("Decided by Bo and Cy.")
    expect(page.get_by_role("radiogroup", name="Verdict")).to_be_hidden()
    expect(page.get_by_role("button", name="Submit")).to_be_hidden()
    page.keyboard.press("a")
    says(page).to_contain_text("Decided by Bo and Cy.")
    assert not posted(draw)


def test_v_shows_a_recorded_correction_before_a_revision(draw: Draw) -> None:
    page = draw()
    page.keyboard.press("v")
    # as the answer does
    page.evaluate("window.addEventListener('masis-version', event => event.preventDefault())")
    page.keyboard.press("v")
    assert [value["kind"] for _, name, value in draw.sent() if name == "act"] == ["switch"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("base", "title"), [("run/1", "that the audit missed"), ("", "that you found")]
)
def test_a_reported_issue_isnt_called_missed_if_the_audit_is_hidden_or_absent(
    draw: Draw, base: str, title: str
) -> None:
    page = draw(labels={"base": base, "rows": [], "choices": {}})
    expect(page.get_by_text("Issues that")).to_have_text(f"Issues {title}")


def test_a_suggested_name_must_be_confirmed_before_it_is_recorded(draw: Draw) -> None:
    page = draw(reviewer="", suggested_name="ada")
    page.keyboard.press("a")
    says(page).to_contain_text("You decide as ada. Press Enter to confirm")
    expect(page.get_by_label("Your name")).to_be_focused()
    assert not posted(draw)
    page.keyboard.press("Enter")
    says(page).to_contain_text("Decisions are recorded as ada")
    acts = [value for _, name, value in draw.sent() if name == "act"]  # type: ignore[attr-defined]
    assert [(each["kind"], each["reviewer"]) for each in acts] == [("name", "ada")]
    page.keyboard.press("Control+Enter")
    assert [each["reviewer"] for each in posted(draw)] == ["ada"]


def test_an_action_is_confirmed_with_a_message_and_can_be_undone(draw: Draw) -> None:
    page = draw()
    page.keyboard.press("Shift+M")
    page.keyboard.press("1")
    # the severity has a default; the next key may come before the page is drawn without the dialog
    page.evaluate(
        """() => { const { shadowRoot } = document.getElementById("host")
            for (const pressed of [{ key: "Enter", ctrlKey: true }, { key: "u" }])
              (shadowRoot.activeElement ?? document.body).dispatchEvent(
                new KeyboardEvent("keydown", { ...pressed, bubbles: true, composed: true, cancelable: true })) }"""
    )
    says(page).to_contain_text("Undone: the reported issue.")
    page.keyboard.press("Shift+M")
    page.keyboard.press("1")
    page.keyboard.press("Control+Enter")
    says(page).to_contain_text("medium, the whole answer.")
    reported = page.get_by_role("region", name="Issues you report").get_by_role("listitem")
    expect(reported).to_have_count(1)
    page.keyboard.press("u")
    says(page).to_contain_text("Undone: the reported issue.")
    expect(reported).to_have_count(0)
    page.keyboard.press("t")
    page.keyboard.type("a note")
    page.get_by_role("button", name="Discard draft").click()
    says(page).to_contain_text("The draft was discarded.")
    page.keyboard.press("u")
    expect(page.get_by_label("Note")).to_have_value("a note")


def test_a_missing_point_is_inserted_after_the_sentence_citing_its_evidence(
    draw: Draw,
) -> None:
    page = draw()
    page.keyboard.press("i")
    says(page).to_contain_text("Nothing to insert")
    insert = "detail => window.dispatchEvent(new CustomEvent('masis-insert', { detail }))"
    cites, other = f"{CASE.answer}".split(" It was")
    says_lanes = "Two lanes of traffic are carried by the river"
    lanes = {"text": f"{says_lanes} [chunk_1].", "says": says_lanes, "after": cites}
    page.evaluate(insert, lanes)
    field = page.get_by_label("Corrected answer")
    expect(field).to_have_value(f"{cites} {lanes['text']} It was{other}")
    says(page).to_contain_text(f"Inserted after “{cites}”: Two lanes")
    for again in (says_lanes, "By the river, two lanes of traffic are carried"):
        page.evaluate(insert, {"text": f"{again} [chunk_2].", "says": again, "after": cites})
        says(page).to_contain_text("already says this")
    page.evaluate(insert, {"text": "It is grey [chunk_2].", "says": "It is grey", "after": ""})
    expect(field).to_have_value(f"{cites} {lanes['text']} It was{other} It is grey [chunk_2].")
    says(page).to_contain_text("Inserted at the end of the correction")
    page.keyboard.press("u")  # the last of them
    expect(field).to_have_value(f"{cites} {lanes['text']} It was{other}")
    says(page).to_contain_text("Undone: the insertion.")
    # a caret that somebody has put is where a point without a place goes
    field.press("Control+Home")
    page.evaluate(insert, {"text": "It is grey [chunk_2].", "says": "It is grey", "after": ""})
    expect(field).to_have_value(f"{cites} It is grey [chunk_2]. {lanes['text']} It was{other}")
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    expect(field).to_have_value(f"{cites} {lanes['text']} It was{other}")
    page.keyboard.press("Escape")  # what was said is gone; what was done can be taken back still
    field.press("End")
    field.press_sequentially(" Typed.")
    typed = field.input_value()
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    expect(field).to_have_value(typed.replace(f" {lanes['text']}", ""))
    for _ in range(2):  # what was typed is no step
        page.keyboard.press("u")
        says(page).to_contain_text("Press “Discard draft” to remove it")
    expect(field).to_have_value(typed.replace(f" {lanes['text']}", ""))
    page.get_by_role("button", name="Discard draft").click()
    expect(field).to_be_hidden()
    page.keyboard.press("u")
    expect(field).to_have_value(typed.replace(f" {lanes['text']}", ""))


SERIOUS = [
    {
        "ids": ["i"],
        "label": {"text": "wrong", "tone": "bad", "meaning": ""},
        "severity": "high",
        "text": "It is.",
    }
]


@pytest.mark.parametrize("key", ["u", "Escape"])
def test_undo_discards_the_current_draft_before_it_undoes_another_decision(
    draw: Draw, key: str
) -> None:
    page = draw(serious=SERIOUS, previous="Rejected the original answer of c0")
    page.keyboard.press("a")
    expect(page.get_by_role("alert")).to_contain_text("One serious issue is open")
    page.keyboard.press(key)
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.get_by_role("radio", name="Approve")).not_to_be_checked()
    says(page).to_contain_text("Not approved")
    page.keyboard.press("u")  # what it would undo is named first
    says(page).to_contain_text("Rejected the original answer of c0.")
    acts = [value["kind"] for _, name, value in draw.sent() if name == "act"]  # type: ignore[attr-defined]
    assert acts == []
    page.keyboard.press("u")
    acts = [value["kind"] for _, name, value in draw.sent() if name == "act"]  # type: ignore[attr-defined]
    assert acts == ["undo_previous"]


def test_a_button_and_a_key_take_the_revision_as_the_correction(draw: Draw) -> None:
    page = draw()
    page.get_by_role("button", name="Take revision 2 as correction").click()
    page.keyboard.press("Shift+W")
    acts = [value["kind"] for _, name, value in draw.sent() if name == "act"]  # type: ignore[attr-defined]
    assert acts == ["take_revision"] * 2
    page = draw(revision="")
    for key in ("Shift+W", "v", "d", "]"):
        page.evaluate(
            "document.querySelector('#host').shadowRoot.querySelector('.message').replaceChildren()"
        )
        page.keyboard.press(key)
        says(page).to_have_text("This answer has no revision.")
    assert not draw.sent()  # type: ignore[attr-defined]


def test_a_missing_reason_focuses_the_suggested_one(draw: Draw) -> None:
    offered = [
        {"code": each, "text": each, "suggested": each == "second"} for each in ("first", "second")
    ]
    page = draw(
        reasons=dict.fromkeys(DECIDE, offered),
        draft=forms.FormFields(verdict="reject").model_dump(mode="json"),
        message={"id": "m", "text": "Choose a reason.", "tone": "warn", "where": "reason"},
    )
    expect(page.get_by_role("radio", name="second")).to_be_focused()


def test_a_draft_is_shown_as_saved_after_typing_and_other_explains_how_to_leave(
    draw: Draw,
) -> None:
    page = draw()
    page.keyboard.press("x")
    expect(page.locator(".saved")).to_be_empty()
    page.keyboard.press("9")
    expect(page.get_by_label("Reason in your own words")).to_be_focused()
    says(page).to_contain_text("then press Esc")
    page.keyboard.type("Sum")
    expect(page.locator(".saved")).to_contain_text("raft")


def test_a_second_reason_replaces_the_first_and_digits_are_text_while_typing(
    draw: Draw,
) -> None:
    page = draw(previous="Approved the original answer of c0")
    says(page).to_contain_text("Approved the original answer of c0.")
    page.keyboard.press("x")
    says(page).to_be_hidden()  # another act was made
    expect(page.get_by_text("One reason", exact=True)).to_be_visible()
    page.keyboard.press("1")
    page.keyboard.press("2")
    first, second = (page.locator(".reason span:not(.hint)").nth(at).inner_text() for at in (0, 1))
    says(page).to_contain_text(f"Reason: “{second}” in place of “{first}”.")
    expect(page.get_by_role("button", name="Undo")).to_have_count(1)
    hint = page.get_by_text("Esc, then a number")
    expect(hint).to_be_hidden()
    page.keyboard.press("t")
    expect(hint).to_be_visible()
    page.keyboard.press("Escape")
    expect(hint).to_be_hidden()


def test_after_the_last_search_result_n_continues_with_the_full_queue(draw: Draw) -> None:
    message = {"id": "m", "text": "No other case.", "tone": "calm", "where": "", "narrowed": True}
    page = draw(go={"waiting": False, "says": "0 left in this search"}, message=message)
    page.keyboard.press("n")
    page.get_by_role("button", name="Continue with the whole queue").click()
    acts = [value["kind"] for _, name, value in draw.sent() if name == "act"]  # type: ignore[attr-defined]
    assert acts == ["whole_queue"] * 2


def test_a_verdict_pressed_too_early_is_ignored_with_a_message(
    draw: Draw,
) -> None:
    page = draw()
    page.evaluate("window.masisShown.at = performance.now() + 500")
    page.keyboard.press("x")
    page.keyboard.press("t")
    page.keyboard.type("a note")
    says(page).to_contain_text("this answer has only just appeared")
    page.evaluate("window.masisShown.at = -1000")
    page.keyboard.press("Escape")
    page.keyboard.press("x")
    says(page).to_be_hidden()


def test_u_undoes_one_step_at_a_time(draw: Draw) -> None:
    page = draw()
    for key in ("x", "3", "2"):
        page.keyboard.press(key)
    reasons = page.get_by_role("radiogroup", name="Reason").get_by_role("radio", checked=True)
    for left in (1, 0):
        page.keyboard.press("u")
        says(page).to_have_text("Undone: the reason.")
        expect(reasons).to_have_count(left)
    expect(page.get_by_role("radio", name="Reject")).to_be_checked()
    page.keyboard.press("u")
    expect(page.get_by_role("radio", name="Reject")).not_to_be_checked()
    page.keyboard.press("u")
    says(page).to_have_text("There is nothing to undo.")


def test_deleting_a_sentence_leaves_one_space(draw: Draw) -> None:
    page = draw()
    page.keyboard.press("o")
    field = page.get_by_label("Corrected answer")
    field.fill("One [chunk_1].  Three [chunk_1].")
    page.keyboard.press("Escape")
    expect(field).to_have_value("One [chunk_1]. Three [chunk_1].")


def test_labelling_a_decided_case_offers_undo_for_the_newest_action_only(draw: Draw) -> None:
    entry = {
        "id": "e1",
        "what": "Approved",
        "tone": "good",
        "who": "Ada",
        "when": "1 Jan 2026 10:00 UTC",
        "why": "",
    }
    settled = {
        "text": "Decided by Ada and Bo: an adjudication decides.",
        "tone": "calm",
        "closed": True,
    }
    standing: dict[str, Any] = {**entry, "note": "", "reported": [], "undoable": True}
    page = draw(standing=standing)
    page.keyboard.press("Shift+M")
    page.keyboard.press("1")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("button", name="Undo")).to_have_count(1)
    says(page).to_contain_text("the whole answer.")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("u")
    says(page).to_contain_text("Undone: the reported issue.")
    page = draw(standing={**standing, "undoable": False}, notice=settled)
    page.keyboard.press("u")
    says(page).to_contain_text(settled["text"])
    assert not [each for each in draw.sent() if each[1] == "act"]  # type: ignore[attr-defined]
