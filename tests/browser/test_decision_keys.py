"""The keys of the decision form, which stands alone on a page: what each does, when none does, and
what is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from masis import run_audit
from masis.schema.actor import Actor
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.services.decision_rules import label_key
from masis.services.records import CaseFilter
from masis.ui.components import sources
from masis.ui.review import decision_form as forms
from masis.ui.review.decision import DESK_PARTS
from masis.ui.review.desk import OpenDesk, Place
from masis.ui.shell.keys import adjudication_keys, key_map
from masis.ui.team.final_desk import FinalDesk
from masis.views.words import DECIDE
from tests.browser.conftest import until
from tests.browser.mounting import Mounted
from tests.cases import case_of
from tests.reviewing import ADA, decide

CASE = case_of(
    "Bridge 1 is 101 metres long [chunk_1]. It was opened in 1950 [chunk_9].",
    {"chunk_1": "Bridge 1 is 101 metres long.", "chunk_2": "Bridge 1 was opened in 1931."},
)

STANDING: dict[str, Any] = {
    "id": "e1",
    "what": "Approved",
    "tone": "good",
    "who": "Ada",
    "when": "1 Jan 2026 10:00 UTC",
    "why": "",
    "note": "",
    "reported": [],
}
"""A decision as the desk shows it."""


REVISED = "Bridge 1 has a length of 101 metres [chunk_1]. It was opened in 1950."
TAKEN = forms.FormFields(verdict="override", corrected=REVISED, reason="unsupported").model_dump(
    mode="json"
)
AUDITED = {"name": "revision 2", "issues": [], "serious": []}


class Drawn:
    """The desk on a page of its own. A call draws it; ``more`` replaces parts of its data.

    ``requests`` are the paths and bodies that it has sent; ``answers`` are the responses by path.
    A path without one is never answered.
    """

    def __init__(self, mounted: Mounted, data: dict[str, Any]) -> None:
        self.mounted, self.page, self.data = mounted, mounted.page, data
        self.requests: list[tuple[str, Any]] = []
        self.waiting: list[Route] = []
        saved = {"saved_at": "2026-01-01T10:00:00.000Z", "check": None, "message": None}
        nothing = {"desk": None, "message": None}
        self.answers: dict[str, Any] = {"draft": saved, "open": nothing, "revision": nothing}
        self.page.route("**/api/v1/desk/*", self._answer)

    def __call__(self, *, read: bool = True, **more: Any) -> Page:
        self.mounted.draw(self.data | more)
        if read:
            expect(self.page.locator(".panel")).to_have_attribute("data-ready", "true")
        self.requests.clear()
        return self.page

    def _answer(self, route: Route) -> None:
        path = route.request.url.rpartition("/")[2]
        self.requests.append((path, route.request.post_data_json))
        if path in self.answers:
            answer = self.answers[path]
            status, answer = answer if isinstance(answer, tuple) else (200, answer)
            route.fulfill(status=status, json=answer)
        else:
            self.waiting.append(route)

    def bodies_sent(self, path: str) -> list[Any]:
        """The bodies sent to a path."""
        self.page.wait_for_timeout(50)
        return [body for name, body in self.requests if name == path]

    def after_a_decision(self) -> Page:
        """Draw a case, decide it, and draw the next one."""
        page = self(place={**self.data["place"], "case": "c0"})
        self.answers["decisions"] = {
            "desk": self.data,
            "message": None,
            "entry": "e0",
            "done": "Rejected the original answer of c0",
        }
        for key in ("x", "3", "Control+Enter"):
            page.keyboard.press(key)
        expect(page.get_by_role("radio", name="Reject")).not_to_be_checked()
        expect(page.locator(".panel")).to_have_attribute("data-ready", "true")
        self.requests.clear()
        return page

    def with_words(self, *words: str, **more: Any) -> dict[str, Any]:
        """The answer with one issue about each of these words, and further fields of all issues."""
        view, text, pieces, at = self.data["view"], CASE.answer or "", [], 0
        for number, word in enumerate(words, start=1):
            start = text.index(word, at)
            pieces += [{"text": text[at:start]}, {"text": word, "issues": [number]}]
            at = start + len(word)
        pieces = [{"sentence": 0, **piece} for piece in (*pieces, {"text": text[at:]})]
        issue = {**view["issues"][0], "also": [], "reference": None, "placed": True}
        for name in ("claim", "insert"):
            issue.pop(name, None)
        issues = [{**issue, "number": number, **more} for number in range(1, len(words) + 1)]
        parts = {"pieces": pieces, "blocks": [], "issues": issues, "issues_total": len(issues)}
        return {**view, "version": f"{words}{more}", **parts}

    def acts(self) -> list[str]:
        """What was asked for, besides drafts."""
        self.page.wait_for_timeout(50)
        return [body.get("to", path) for path, body in self.requests if path != "draft"]


@pytest.fixture(scope="module")
def desk_data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The data of the desk for the case, with its audit."""
    workbench = Workbench.open(tmp_path_factory.mktemp("keys") / "keys.db")
    workbench.cases.add(ADA, [CASE])
    workbench.audits.audit(ADA, CASE)
    place = Place(case=CASE.id)
    desk = OpenDesk.open(workbench, ADA, place, CaseFilter(), lambda _: None)
    made = {**desk.data(), "history": [], "serious": [], "revision": "revision 2"}
    made |= {"go": {"waiting": True, "says": "3 left to review"}}
    workbench.close()
    return made | {"suggested_name": "", "keys": key_map()}


@pytest.fixture(scope="module")
def final_data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The data of an adjudication of the case, which Cleo has open."""
    workbench = Workbench.open(tmp_path_factory.mktemp("final") / "final.db")
    workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    workbench.cases.add(ADA, [CASE])
    decide(workbench, CASE.id, "reject", "Ada")
    decide(workbench, CASE.id, "escalate", "Ben")
    place = Place(case=CASE.id, adjudication=True)
    cleo = Actor(name="Cleo")
    desk = FinalDesk.open(workbench, cleo, place, CaseFilter(), lambda _: None)
    made = {**desk.data(), "history": [], "suggested_name": "", "keys": adjudication_keys()}
    workbench.close()
    return made


@pytest.fixture
def draw(mount: Callable[..., Mounted], desk_data: dict[str, Any]) -> Drawn:
    """The desk with a link, a button and a field of the page above it."""
    parts = DESK_PARTS
    mounted = mount("desk", *parts)
    others = "<a href='#'>elsewhere</a><button>other</button><input>"
    mounted.page.evaluate("html => document.body.insertAdjacentHTML('afterbegin', html)", others)
    return Drawn(mounted, desk_data)


def expect_status(page: Page) -> Any:
    return expect(page.locator(".panel [role=status]").first)


def test_a_fast_key_sequence_is_sent_in_full_and_enter_decides_nothing(draw: Drawn) -> None:
    page = draw()
    for key in ("x", "3", "Enter"):
        page.keyboard.press(key)
    assert not draw.bodies_sent("decisions")
    page.keyboard.press("l")
    page.keyboard.press("1")
    expect_status(page).to_contain_text("Labeled: supported")
    page.keyboard.press("Control+Enter")
    (sent,) = draw.bodies_sent("decisions")
    assert (sent["fields"]["verdict"], bool(sent["fields"]["reason"])) == ("reject", True)
    assert list(sent["fields"]["labels"].values()) != [{}]


def test_a_field_focused_by_a_key_is_visible_above_the_form_footer(draw: Drawn) -> None:
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
    page.locator(".labels summary").click()
    page.locator(".label-row select").first.focus()
    assert stands_above()
    page.locator("select:focus").select_option(index=2)  # what confirms it makes the foot higher
    expect_status(page).to_contain_text("Labeled")
    assert stands_above()


def test_a_submitted_correction_isnt_shown_on_the_next_case(draw: Drawn) -> None:
    page = draw()
    page.keyboard.press("o")
    page.keyboard.type("Bridge 1. ")
    editor = page.locator(".editor")
    page.keyboard.press("Control+Enter")
    assert draw.bodies_sent("decisions")
    expect(editor).to_be_visible()
    for key in ("n", "u", "s"):  # while the decision is being recorded, none of them does anything
        page.keyboard.press("Escape")
        page.keyboard.press(key)
    expect_status(page).to_contain_text("still being recorded")
    assert draw.acts() == ["decisions"]
    place = {**draw.data["place"], "case": "next"}
    answer = {"desk": {**draw.data, "place": place}, "message": None, "entry": "e", "done": "Done"}
    draw.waiting.pop().fulfill(json=answer)
    expect(editor).to_be_hidden()
    expect_status(page).to_contain_text("Done.")


def test_a_key_held_down_decides_nothing(draw: Drawn) -> None:
    page = draw()
    page.evaluate(
        """() => { for (const pressed of [{ key: "a" }, { key: "Enter", ctrlKey: true }])
            document.dispatchEvent(new KeyboardEvent("keydown", { ...pressed, repeat: true, bubbles: true })) }"""
    )
    assert not draw.requests
    expect(page.get_by_role("radio", name="Approve")).not_to_be_checked()


@pytest.mark.parametrize("elsewhere", ["a", "button", "input"])
def test_keys_are_off_while_another_control_has_the_focus_until_esc(
    draw: Drawn, elsewhere: str
) -> None:
    page = draw()
    page.locator(f"body > {elsewhere}").focus()
    page.keyboard.press("d")  # the page has a button for it, which acts whatever has the focus
    expect(page.locator(".message").first).to_be_hidden()
    for key in ("a", "x", "Control+Enter", "n"):
        page.keyboard.press(key)
    assert not draw.requests
    expect(page.get_by_role("radio", name="Reject")).not_to_be_checked()
    if elsewhere != "input":  # there they are letters
        expect_status(page).to_contain_text(
            "Keys are off while another control has the focus. Press Esc"
        )
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    assert [request["fields"]["verdict"] for request in draw.bodies_sent("decisions")] == [
        "approve"
    ]


def test_o_focuses_the_correction_and_typing_there_triggers_no_shortcut(draw: Drawn) -> None:
    page = draw()
    page.keyboard.press("o")
    field = page.get_by_label("Corrected answer")
    expect(field).to_be_focused()
    page.keyboard.press("Control+End")
    page.keyboard.type(" an axe, u n s")
    expect(field).to_have_value(f"{CASE.answer} an axe, u n s")
    assert not draw.acts()


def test_the_correction_field_fits_its_text_and_selects_the_issue(
    draw: Drawn,
) -> None:
    draw.page.evaluate("""() => {
          const columns = ["", ""].map(() => Object.assign(document.createElement("div"), { style: "flex: 1" }))
          for (const column of columns) column.dataset.testid = "stColumn"
          const row = document.createElement("div")
          Object.assign(row, { className: "st-key-review", style: "display: flex" })
          document.getElementById("host").before(row)
          row.append(...columns)
          columns[0].append("The answer")
          columns[1].append(document.getElementById("host"))
        }""")
    answer = CASE.answer or ""
    page = draw(view=draw.with_words("It"))
    page.keyboard.press("o")
    editor, field = page.locator(".editor"), page.get_by_label("Corrected answer")
    expect(editor).to_have_class("block editor docked")
    short = editor.evaluate("box => box.offsetHeight")
    assert short < 150
    page.keyboard.type("Later it")
    expect(field).to_have_value(f"{answer[:39]}Later it{answer[41:]}")
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
    draw(view=draw.with_words("ge 1 i"))
    field.fill(f"At last: {answer}")
    page.keyboard.press("Escape")
    page.keyboard.press("o")
    chosen = "box => box.value.slice(box.selectionStart, box.selectionEnd)"
    until(lambda: field.evaluate(chosen) == "ge 1 i", page, "its words are selected")
    field.fill("Nothing of it is left.")
    page.keyboard.press("Escape")
    page.keyboard.press("o")
    expect_status(page).to_have_text("You've already changed the words of this issue.")
    # of several places the nearest to where they stood, and for a missing point the place where it
    # would be inserted
    cites, other = answer.split(" It was")
    grey = {"text": "It is grey.", "says": "It is grey.", "after": cites}
    missing = {"insert": grey, "description": "It is grey.", "claim": -1}
    for view, text, start in (
        (draw.with_words("[chunk_1]"), f"[chunk_1]{cites[6:]} It was{other}", 28 + 3),
        (draw.with_words("It", **missing), f"Now {answer}", len(cites) + 4),
    ):
        draw(view=view)
        field.fill(text)
        page.keyboard.press("Escape")
        page.keyboard.press("o")
        assert field.evaluate("box => box.selectionStart") == start


def test_a_correction_links_to_each_issue_it_leaves_open(draw: Drawn) -> None:
    view = draw.with_words("Bridge 1", "[chunk_1]", "1950")
    view["issues_total"] += 1
    draft = forms.FormFields(
        verdict="override", corrected=f"At last: {CASE.answer}".replace(" [chunk_1]", "")
    ).model_dump(mode="json")
    check = forms.check(draft["corrected"], CASE, shown=CASE.answer)
    page = draw(draft=draft, check=check, view=view)
    expect(page.get_by_text("The words of 2 of 3 issues are unchanged:")).to_contain_text(
        "1 more is about the answer as a whole"
    )
    expect(page.locator(".changed")).to_contain_text("Drops [chunk_1].")
    page.get_by_role("button", name="issue 3 (").click()
    chosen = page.get_by_label("Corrected answer").evaluate(
        "box => box.value.slice(box.selectionStart, box.selectionEnd)"
    )
    assert chosen == "1950"


def test_an_unavailable_shortcut_explains_why(draw: Drawn) -> None:
    page = draw(read=False)
    page.keyboard.press("a")
    expect_status(page).to_contain_text("this answer has only just appeared")
    page.keyboard.press("u")
    expect_status(page).to_contain_text("There is nothing to undo")
    assert not draw.bodies_sent("decisions")
    page = draw(notice={"text": "Decided by Bo and Cy.", "tone": "calm", "closed": True})
    expect(page.locator(".notice")).to_have_text("Decided by Bo and Cy.")
    expect(page.get_by_role("radiogroup", name="Verdict")).to_be_hidden()
    expect(page.get_by_role("button", name="Submit")).to_be_hidden()
    page.keyboard.press("a")
    expect_status(page).to_have_text("Nothing was recorded. Decided by Bo and Cy.")
    expect(page.locator(".notice")).to_be_visible()
    assert not draw.bodies_sent("decisions")


def test_u_doesnt_undo_an_older_decision_if_the_last_one_is_final(draw: Drawn) -> None:
    page = draw.after_a_decision()
    done = "Rejected the original answer of c1"
    following = {**draw.data, "place": {**draw.data["place"], "case": "c2"}}
    draw.answers["decisions"] = {"desk": following, "message": None, "entry": "", "done": done}
    for key in ("x", "3", "Control+Enter"):
        page.keyboard.press(key)
    expect(page.get_by_role("radio", name="Reject")).not_to_be_checked()
    for _ in range(2):
        page.keyboard.press("u")
        expect_status(page).to_have_text(f"{done}. This decision can't be undone.")
    assert "undo" not in draw.acts()


def test_v_shows_a_recorded_correction_before_a_revision(draw: Drawn) -> None:
    page = draw()
    page.keyboard.press("v")
    assert [body["place"]["iteration"] for body in draw.bodies_sent("open")] == ["2"]
    draw(view={**draw.data["view"], "version": "corrected", "corrected": [["in", "Words."]]})
    expect(page.get_by_text("Words.")).to_be_visible()
    page.keyboard.press("v")
    expect(page.get_by_text("Words.")).to_have_count(1)
    assert not draw.acts()


def test_a_suggested_name_must_be_confirmed_before_it_is_recorded(draw: Drawn) -> None:
    page = draw(reviewer="", suggested_name="ada")
    page.keyboard.press("a")
    expect_status(page).to_contain_text("You're deciding as ada. Press Enter to confirm")
    expect(page.get_by_label("Your name")).to_be_focused()
    assert not draw.bodies_sent("decisions")
    page.keyboard.press("Enter")
    expect_status(page).to_contain_text("Decisions are recorded as ada")
    assert [value["name"] for _, _, value in draw.mounted.messages_sent()] == ["ada"]
    with page.expect_request("**/desk/decisions") as made:
        page.keyboard.press("Control+Enter")
    assert made.value.headers["x-masis-reviewer"] == "ada"


def test_the_field_for_a_name_that_the_browser_has_stored_doesnt_flash_up(draw: Drawn) -> None:
    draw.page.evaluate("localStorage.setItem('masis-reviewer', 'Ada')")
    field = draw.page.get_by_label("Your name")
    page = draw(reviewer="")
    expect(page.locator(".panel")).to_be_visible()
    assert not field.is_visible()
    # the server may ask for it all the same
    asked = {"message": "Type your name.", "field": "reviewer", "confirms": ""}
    draw.answers["decisions"] = (422, {"error": asked})
    for key in ("x", "3", "Control+Enter"):
        page.keyboard.press(key)
    expect(field).to_be_focused()


def test_a_report_leaves_the_answer_free_in_a_narrow_window(draw: Drawn) -> None:
    page = draw()
    page.set_viewport_size({"width": 900, "height": 900})
    host = page.locator("#host")
    host.evaluate("element => (element.style.marginLeft = '547px')")
    offer = page.get_by_role("button", name="Report an issue here")
    page.locator(".answer .text").evaluate("box => getSelection().selectAllChildren(box)")
    expect(offer).to_be_visible()
    page.keyboard.press("m")
    form = page.get_by_role("dialog", name="Report an issue in these words").bounding_box()
    assert form
    assert form["x"] >= 547
    expect(offer).to_be_hidden()


def test_an_action_is_confirmed_with_a_message_and_can_be_undone(draw: Drawn) -> None:
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
    expect_status(page).to_contain_text("Undone: the reported issue.")
    page.keyboard.press("Shift+M")
    page.keyboard.press("1")
    page.keyboard.press("Control+Enter")
    expect_status(page).to_contain_text("medium, the whole answer.")
    reported = page.get_by_role("region", name="Issues you report").get_by_role("listitem")
    expect(reported).to_have_count(1)
    page.keyboard.press("u")
    expect_status(page).to_contain_text("Undone: the reported issue.")
    expect(reported).to_have_count(0)
    page.keyboard.press("t")
    page.keyboard.type("a note")
    page.get_by_role("button", name="Discard draft").click()
    expect_status(page).to_contain_text("The draft was discarded.")
    page.keyboard.press("u")
    expect(page.get_by_label("Note")).to_have_value("a note")


def test_a_missing_point_is_inserted_after_the_sentence_citing_its_evidence(
    draw: Drawn,
) -> None:
    page = draw()
    page.keyboard.press("i")
    expect_status(page).to_contain_text("Nothing to insert")
    cites, other = f"{CASE.answer}".split(" It was")

    def insert(text: str, says: str, after: str) -> None:
        point = {"text": text, "says": says, "after": after}
        point = {"insert": point, "description": says, "claim": -1, "placed": False}
        draw(view=draw.with_words("It", **point), draft=draw.data["blank"])
        page.locator(".issue-head").click()
        page.keyboard.press("i")

    says_lanes = "Two lanes of traffic are carried by the river"
    lanes = {"text": f"{says_lanes} [chunk_1].", "says": says_lanes, "after": cites}
    insert(**lanes)
    field = page.get_by_label("Corrected answer")
    expect(field).to_have_value(f"{cites} {lanes['text']} It was{other}")
    expect_status(page).to_contain_text(f"Inserted after “{cites}”: Two lanes")
    for again in (says_lanes, "By the river, two lanes of traffic are carried"):
        insert(f"{again} [chunk_2].", again, cites)
        expect(page.get_by_role("button", name="Insert into the correction")).to_be_hidden()
    insert("It is grey [chunk_2].", "It is grey", "")
    expect(field).to_have_value(f"{cites} {lanes['text']} It was{other} It is grey [chunk_2].")
    expect_status(page).to_contain_text("Inserted at the end of the correction")
    page.keyboard.press("u")  # the last of them
    expect(field).to_have_value(f"{cites} {lanes['text']} It was{other}")
    expect_status(page).to_contain_text("Undone: the insertion.")
    # a caret that somebody has put is where a point without a place goes
    field.press("Control+Home")
    insert("It is grey [chunk_2].", "It is grey", "")
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
        expect_status(page).to_contain_text("Press “Discard draft” to remove it")
    expect(field).to_have_value(typed.replace(f" {lanes['text']}", ""))
    page.get_by_role("button", name="Discard draft").click()
    expect(field).to_be_hidden()
    page.keyboard.press("u")
    expect(field).to_have_value(typed.replace(f" {lanes['text']}", ""))


def test_i_inserts_the_sentence_that_contradicts_a_claim_or_says_that_there_is_none(
    draw: Drawn,
) -> None:
    first = "Bridge 1 is 101 metres long [chunk_1]."
    source = {
        "text": "Bridge 1 is 101 metres high [chunk_1].",  # one word of the answer's is another
        "says": "Bridge 1 is 101 metres high",
        "after": first,
    }
    page = draw(view=draw.with_words("101 metres", insert=source))
    page.keyboard.press("f")
    page.keyboard.press("i")
    field = page.get_by_label("Corrected answer")
    corrected = f"{CASE.answer}".replace(first, f"{first} {source['text']}")
    expect(field).to_have_value(corrected)
    page.keyboard.press("i")
    expect_status(page).to_have_text("The correction already says this.")
    expect(field).to_have_value(corrected)
    draw(view=draw.with_words("1950"), draft=draw.data["blank"])
    page.keyboard.press("f")
    page.keyboard.press("i")
    expect_status(page).to_have_text(
        "There is nothing to insert for issue 1. Press O to correct its words."
    )
    expect(field).to_have_value(corrected)


def test_points_of_one_sentence_are_inserted_in_order_even_after_it_was_changed(
    draw: Drawn,
) -> None:
    first, second = f"{CASE.answer}".split(" It was")
    second = f"It was{second}"
    says = ("Two lanes of traffic are carried by the river", "Nobody paints the railing")
    bullets = f"Known:\n- {first[:-1]}\n- {second[:-1]}"
    bullet = f"- {first[:-1]}"
    for answer, after, corrected, expected in (
        (f"{first} {second}", first, "", f"{first} {{0}} {{1}} {second}"),
        # changed, removed, or an item of a list without a full stop
        (f"{first} {second}", first, f"{first[:-13]} high. {second}", ""),
        (
            f"{first} {second}",
            second,
            f"{first} Nobody knows.",
            f"{first} {{0}} {{1}} Nobody knows.",
        ),
        (bullets, bullet, "", f"Known:\n{bullet}\n- {{0}} {{1}}\n- {second[:-1]}"),
    ):
        texts = [f"{sentence} [chunk_2]." for sentence in says]
        view = draw.with_words("It", claim=-1, placed=False)
        view["issues"] = [
            {
                **view["issues"][0],
                "number": number,
                "claim": -number,
                "description": point,
                "insert": {"text": text, "says": point, "after": after},
            }
            for number, (point, text) in enumerate(zip(says, texts, strict=True), 1)
        ]
        view |= {"pieces": [{"text": answer, "sentence": 0}], "version": f"{answer}{corrected}"}
        draft = forms.FormFields(verdict="override", corrected=corrected) if corrected else None
        blank = draw.data["blank"]
        place = {**draw.data["place"], "case": view["version"]}
        fields = draft.model_dump(mode="json") if draft else blank
        page = draw(view=view, answer=answer, draft=fields, place=place)
        for head in page.locator(".issue-head").all():
            head.click()
            page.keyboard.press("i")
        expected = expected or f"{corrected[: -len(second) - 1]} {{0}} {{1}} {second}"
        expect(page.get_by_label("Corrected answer")).to_have_value(expected.format(*texts))


def test_i_cites_what_supports_an_uncited_sentence(draw: Drawn, desk_data: dict[str, Any]) -> None:
    answer = (
        "It is red and old. It is 101 metres long [chunk_1]. It is red. He says “no.” It is old"
    )
    pieces = [{"text": text, "sentence": 0} for text in (answer[:52], "It is red.", answer[62:])]
    pieces[1] |= {"issues": [1], "sentence": 1}
    assert "".join(piece["text"] for piece in pieces) == answer
    page, field = draw.page, draw.page.get_by_label("Corrected answer")
    for words in ("It is red", "He says “no.”", "It is old"):
        cites = {"text": "[chunk_2]", "says": f"{words} [chunk_2]", "after": words, "cites": True}
        issue = {**draw.with_words("1950", insert=cites)["issues"][0], "number": 1}
        shown = {"pieces": pieces, "blocks": [], "issues": [issue], "version": words}
        view = {**desk_data["view"], **shown}
        draw(view=view, answer=answer, draft=desk_data["blank"])
        page.keyboard.press("f")
        page.get_by_role("button", name="Insert the citation").click(delay=40)
        before, _, after = answer.rpartition(words)
        expect(field).to_have_value(f"{before}{words} [chunk_2]{after}")
        expect_status(page).to_contain_text("Inserted a citation: [chunk_2]")
        expect(page.get_by_role("button", name="Insert the citation")).to_be_hidden()
        field.fill(answer.replace(words, words[:-4]))
        page.keyboard.press("Escape")
        page.keyboard.press("i")
        expect_status(page).to_have_text("You've already changed the words of this issue.")
        page.get_by_role("button", name="Discard draft").click()


SERIOUS = [
    {
        "ids": ["i"],
        "number": 1,
        "labels": [
            {"text": "wrong", "tone": "bad", "meaning": ""},
            {"text": "safety", "tone": "bad", "meaning": ""},
        ],
        "severity": "high",
        "text": "It is.",
    }
]


@pytest.mark.parametrize("key", ["u", "Escape"])
def test_undo_discards_the_current_draft_before_it_undoes_another_decision(
    draw: Drawn, key: str
) -> None:
    draw.data = {**draw.data, "serious": SERIOUS}
    page = draw.after_a_decision()
    page.keyboard.press("a")
    expect(page.get_by_role("alert")).to_contain_text("One serious issue is open")
    page.keyboard.press(key)
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.get_by_role("radio", name="Approve")).not_to_be_checked()
    expect_status(page).to_contain_text("Not approved")
    page.keyboard.press("u")  # what it would undo is named first
    expect_status(page).to_contain_text("Rejected the original answer of c0.")
    assert draw.acts() == []
    page.keyboard.press("u")
    assert [body["entry"] for body in draw.bodies_sent("undo")] == ["e0"]


def test_a_button_and_a_key_take_the_revision_as_the_correction(draw: Drawn) -> None:
    page = draw()
    page.get_by_role("button", name="Take revision 2 as correction").click()
    expect(page.locator(".panel")).to_have_attribute("data-ready", "true")
    page.keyboard.press("Shift+W")
    assert draw.acts() == ["revision"] * 2
    page = draw(revision="")
    for key in ("Shift+W", "v", "d", "]"):
        page.evaluate(
            "document.querySelector('#host').shadowRoot.querySelector('.message').replaceChildren()"
        )
        page.keyboard.press(key)
        expect_status(page).to_have_text("This answer has no revision.")
    assert not draw.requests


def test_a_missing_reason_focuses_the_suggested_one(draw: Drawn) -> None:
    offered = [
        {"code": code, "text": code, "suggested": code == "second", "labels": []}
        for code in ("first", "second")
    ]
    page = draw(
        reasons=dict.fromkeys(DECIDE, offered),
        draft=forms.FormFields(verdict="reject").model_dump(mode="json"),
    )
    refused = {"message": "Choose a reason.", "field": "reason", "confirms": ""}
    draw.answers["decisions"] = (422, {"error": refused})
    page.keyboard.press("Control+Enter")
    expect_status(page).to_have_text("Choose a reason.")
    expect(page.get_by_role("checkbox", name="second")).to_be_focused()


def test_a_draft_is_shown_as_saved_after_typing_and_other_explains_how_to_leave(
    draw: Drawn,
) -> None:
    page = draw()
    page.keyboard.press("x")
    expect(page.locator(".saved")).to_be_empty()
    page.keyboard.press("0")
    expect(page.get_by_label("Reason in your own words")).to_be_focused()
    expect_status(page).to_contain_text("then press Esc")
    page.keyboard.type("Sum")
    expect(page.locator(".saved")).to_contain_text("raft")


def test_several_reasons_are_chosen_by_digits_which_are_text_while_typing(
    draw: Drawn,
) -> None:
    page = draw.after_a_decision()
    expect_status(page).to_contain_text("Rejected the original answer of c0.")
    page.keyboard.press("x")
    expect_status(page).to_be_hidden()  # another act was made
    expect(page.get_by_text("Reasons", exact=True)).to_be_visible()
    for key in ("4", "1", "2", "1"):  # pressed again, it takes the reason back
        page.keyboard.press(key)
    chosen = page.get_by_role("group", name="Reasons").get_by_role("checkbox", checked=True)
    expect(chosen).to_have_count(2)
    page.keyboard.press("0")  # the tenth one asks for words
    expect(page.get_by_label("Reason in your own words")).to_be_focused()
    page.keyboard.type("Unkind.")
    page.keyboard.press("Escape")
    draw.answers["decisions"] = (422, {"error": {"message": "No.", "confirms": ""}})
    page.keyboard.press("Control+Enter")
    expect_status(page).to_have_text("No.")
    (sent,) = draw.bodies_sent("decisions")
    assert sent["fields"]["reason"] == "unsupported"
    assert sent["fields"]["also"] == ["wrong_citation", "other"]
    hint = page.get_by_text("Esc, then a number")
    expect(hint).to_be_hidden()
    page.keyboard.press("t")
    expect(hint).to_be_visible()
    page.keyboard.press("Escape")
    expect(hint).to_be_hidden()


def test_after_the_last_search_result_n_continues_with_the_full_queue(draw: Drawn) -> None:
    message = {"text": "No other case.", "tone": "calm", "where": "", "narrowed": True}
    draw.answers["open"] = {"desk": None, "message": message}
    page = draw(go={"waiting": False, "says": "0 left in this search"})
    page.keyboard.press("n")
    expect_status(page).to_contain_text("No other case.")
    page.keyboard.press("n")
    expect(page.locator(".panel")).to_have_attribute("data-ready", "true")
    page.get_by_role("button", name="Continue with the whole queue").click()
    assert draw.acts() == ["forward", "whole_queue", "whole_queue"]


def test_a_verdict_pressed_too_early_is_ignored_with_a_message(
    draw: Drawn,
) -> None:
    page = draw(read=False)
    page.keyboard.press("x")
    page.keyboard.press("t")
    page.keyboard.type("a note")
    expect_status(page).to_contain_text("this answer has only just appeared")
    expect(page.locator(".panel")).to_have_attribute("data-ready", "true")
    page.keyboard.press("Escape")
    page.keyboard.press("x")
    expect_status(page).to_be_hidden()


def test_u_undoes_one_step_at_a_time(draw: Drawn) -> None:
    page = draw()
    for key in ("x", "3", "2"):
        page.keyboard.press(key)
    reasons = page.get_by_role("group", name="Reasons").get_by_role("checkbox", checked=True)
    for left, undone in ((1, "the further reason"), (0, "the reason")):
        page.keyboard.press("u")
        expect_status(page).to_have_text(f"Undone: {undone}.")
        expect(reasons).to_have_count(left)
    expect(page.get_by_role("radio", name="Reject")).to_be_checked()
    page.keyboard.press("u")
    expect(page.get_by_role("radio", name="Reject")).not_to_be_checked()
    page.keyboard.press("u")
    expect_status(page).to_have_text("There is nothing to undo.")


def test_deleting_a_sentence_leaves_one_space(draw: Drawn) -> None:
    page = draw()
    page.keyboard.press("o")
    field = page.get_by_label("Corrected answer")
    field.fill("One [chunk_1].  Three [chunk_1].")
    page.keyboard.press("Escape")
    expect(field).to_have_value("One [chunk_1]. Three [chunk_1].")


def test_labelling_a_decided_case_offers_undo_for_the_newest_action_only(draw: Drawn) -> None:
    settled = {
        "text": "Decided by Ada and Bo: an adjudication decides.",
        "tone": "calm",
        "closed": True,
    }
    standing = {**STANDING, "undoable": True}
    page = draw(standing=standing)
    page.keyboard.press("Shift+M")
    page.keyboard.press("1")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("button", name="Undo")).to_have_count(1)
    expect_status(page).to_contain_text("the whole answer.")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("u")
    expect_status(page).to_contain_text("Undone: the reported issue.")
    page = draw(standing={**standing, "undoable": False}, notice=settled)
    page.keyboard.press("u")
    expect_status(page).to_contain_text(settled["text"])
    assert not draw.acts()


def test_a_server_in_trouble_is_shown_and_the_text_is_sent_once_it_answers(draw: Drawn) -> None:
    saved = draw.answers["draft"]
    draw.answers["draft"] = (500, {})
    page = draw()
    page.keyboard.press("t")
    page.keyboard.type("a note")
    expect_status(page).to_contain_text(
        "The server doesn't answer. Your draft is stored in this browser."
    )
    expect(page.locator(".saved")).to_have_text("Not saved yet")
    draw.answers["draft"] = saved
    expect(page.locator(".saved")).to_have_text("Draft saved")
    assert draw.bodies_sent("draft")[-1]["fields"]["note"] == "a note"
    expect(page.locator(".panel [role=status]").first).to_be_hidden()


def test_a_newer_answer_is_never_replaced_by_an_older_run_of_the_page(draw: Drawn) -> None:
    page = draw.after_a_decision()
    title = page.get_by_text("3 left to review")
    expect(title).to_be_visible()
    # a run that began before Streamlit knew of the next case, and one of an older state of it
    draw(place={**draw.data["place"], "case": "c0"}, go={"waiting": True, "says": "stale"})
    draw(seen=draw.data["seen"] - 1, go={"waiting": True, "says": "stale"})
    expect(title).to_be_visible()
    draw(go={"waiting": True, "says": "2 left to review"})
    expect(page.get_by_text("2 left to review")).to_be_visible()


def next_case(draw: Drawn, **more: Any) -> dict[str, Any]:
    """The response to a decision, which opens another case."""
    desk = {**draw.data, "place": {**draw.data["place"], "case": "next"}, **more}
    return {"desk": desk, "message": None, "entry": "e0", "done": "Rejected the answer of c0"}


COMPLETE = {
    "draft": forms.FormFields(verdict="escalate", note="Wait.").model_dump(mode="json"),
    "saved_at": "2026-01-01T10:00:00.000Z",
    "restored": "1 Jan 2026 10:00 UTC",
}


def let_page_time_pass(page: Page, milliseconds: int) -> None:
    """Wait until the page's own clock, which its rules about time use, has moved on."""
    end = page.evaluate("performance.now()") + milliseconds
    page.wait_for_function("end => performance.now() > end", arg=end)


@pytest.mark.parametrize("opener", ["decision", "skip"])
def test_a_repeated_ctrl_enter_doesnt_record_the_next_cases_draft(draw: Drawn, opener: str) -> None:
    page = draw()
    draw.answers["open"] = draw.answers["decisions"] = next_case(draw, **COMPLETE)
    for key in ("x", "3", "Control+Enter") if opener == "decision" else ("s",):
        page.keyboard.press(key)
    expect(page.get_by_text("Draft of 1 Jan 2026 10:00 UTC restored.")).to_be_visible()
    draw.requests.clear()
    for _ in range(4):  # also more than two seconds after the case has opened
        let_page_time_pass(page, 600)
        page.keyboard.press("Control+Enter")
    expect_status(page).to_contain_text("has only just opened with an earlier draft")
    assert not draw.bodies_sent("decisions")
    let_page_time_pass(page, 2100)
    page.keyboard.press("Control+Enter")
    assert [body["fields"]["note"] for body in draw.bodies_sent("decisions")] == ["Wait."]


def test_a_changed_draft_of_the_next_case_is_recorded_at_once(draw: Drawn) -> None:
    page = draw()
    draw.answers["open"] = draw.answers["decisions"] = next_case(draw, **COMPLETE)
    page.keyboard.press("s")
    expect(page.get_by_text("Draft of 1 Jan 2026 10:00 UTC restored.")).to_be_visible()
    expect(page.locator(".panel")).to_have_attribute("data-ready", "true")
    page.keyboard.press("x")
    page.keyboard.press("3")
    with page.expect_request("**/desk/decisions"):
        page.keyboard.press("Control+Enter")
    assert [body["fields"]["verdict"] for body in draw.bodies_sent("decisions")] == ["reject"]


def test_a_recorded_decision_can_be_undone_from_a_case_with_a_draft(draw: Drawn) -> None:
    page = draw()
    draw.answers["decisions"] = next_case(draw, **COMPLETE)
    for key in ("x", "3", "Control+Enter"):
        page.keyboard.press(key)
    expect_status(page).to_contain_text("Rejected the answer of c0.")
    expect(page.get_by_role("button", name="Undo it there")).to_be_visible()
    expect(page.get_by_text("Draft of 1 Jan 2026 10:00 UTC restored.")).to_be_visible()
    page.keyboard.press("u")
    assert [body["entry"] for body in draw.bodies_sent("undo")] == ["e0"]


def test_a_correction_that_leaves_a_serious_issue_is_asked_about_once(draw: Drawn) -> None:
    view = draw.with_words("1950")
    draw.data = {**draw.data, "serious": SERIOUS, "view": view, "revision": ""}
    page = draw()
    page.keyboard.press("o")
    field = page.get_by_label("Corrected answer")
    text = field.input_value()
    field.fill(f"{text} More.")
    question = "Nothing was recorded. Check the correction: it has a slip. Press Ctrl Enter again."
    error = {"message": question, "field": "corrected", "confirms": "correction 1"}
    draw.answers["decisions"] = (422, {"error": error})
    page.keyboard.press("Control+Enter")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("One serious issue is left in your correction.")
    expect(alert).to_contain_text("1 wrong safety")  # as numbered, with each of its words
    expect_status(page).to_have_text(question)  # one question is about both
    (asked,) = draw.bodies_sent("decisions")
    assert (asked["left"], asked["confirmed"]) == (["i"], [])
    draw.requests.clear()
    del draw.answers["decisions"]
    page.keyboard.press("u")  # the key that the question names, although the field had the focus
    expect(alert).to_be_hidden()
    expect(field).to_have_value(f"{text} More.")  # the correction is kept
    page.keyboard.press("Control+Enter")
    (sent,) = draw.bodies_sent("decisions")
    assert sent["fields"]["corrected"] == f"{text} More."
    assert (sent["left"], sent["confirmed"]) == ([], ["correction 1"])


def test_the_issues_left_in_a_revision_are_those_of_its_audit(draw: Drawn) -> None:
    revised = "Bridge 1 has a length of 101 metres [chunk_1]. It was opened in 1950."
    point = {"description": "It carries two lanes of traffic", "claim": -1, "placed": False}
    view = draw.with_words("1950", **point)  # the revision says it in other words
    draft = forms.FormFields(
        verdict="override", corrected=revised, reason="unsupported"
    ).model_dump(mode="json")
    checked = forms.check(revised, CASE, shown=CASE.answer)
    audited = {"name": "revision 2", "iteration": 1, "issues": [], "serious": []}
    more = {"draft": draft, "view": view, "serious": SERIOUS}
    page = draw(check={**checked, "audited": audited}, **more)
    expect(page.locator(".untouched")).to_have_text(
        "According to its audit, revision 2 has no issues."
    )
    page.get_by_label("Corrected answer").press("End")
    page.keyboard.type(" So.")  # another text, which has no audit
    expect(page.locator(".untouched")).to_contain_text("missing point isn't in the correction")
    page.keyboard.press("Escape")
    left = {**audited, "issues": ["safety", "uncited"], "serious": SERIOUS}
    place = {**draw.data["place"], "case": "other"}
    page = draw(check={**checked, "audited": left}, place=place, **more)
    expect(page.locator(".untouched")).to_have_text(
        "According to its audit, revision 2 still has 2 issues: safety · uncited. Show revision 2"
    )
    page.get_by_role("button", name="Show revision 2").click()
    (opened,) = draw.bodies_sent("open")
    assert (opened["to"], opened["place"]["iteration"]) == ("here", "2")
    error = {"message": "Read them.", "field": "corrected", "confirms": "correction 1"}
    draw.answers["decisions"] = (422, {"error": error})
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("One serious issue is left")
    draw.requests.clear()
    expect(page.locator(".panel")).to_have_attribute("data-ready", "true")
    page.keyboard.press("Control+Enter")
    (sent,) = draw.bodies_sent("decisions")
    assert sent["acknowledged"] == ["i"]


def test_another_iteration_says_that_the_decision_is_now_about_it(draw: Drawn) -> None:
    page = draw()
    page.keyboard.press("x")
    about = {**draw.data["about"], "name": "revision 2"}
    shown = {**draw.data["shown"], "digest": "other"}
    page = draw(about=about, shown=shown, seen=draw.data["seen"] + 1)
    expect_status(page).to_have_text(
        "Your decision is now about revision 2. Check its reasons, or go back."
    )
    page = draw(seen=draw.data["seen"] + 2)
    expect_status(page).to_contain_text(f"now about {draw.data['about']['name']}")


def test_a_question_of_the_server_is_answered_only_once_it_could_be_read(draw: Drawn) -> None:
    page = draw()
    page.keyboard.press("x")
    page.keyboard.press("3")
    question = "Nothing was recorded. [chunk_9] names no evidence. Press Ctrl Enter again."
    error = {"message": question, "field": "", "confirms": "citations 1"}
    draw.answers["decisions"] = (422, {"error": error})
    page.keyboard.press("Control+Enter")
    expect_status(page).to_have_text(question)
    page.keyboard.press("Control+Enter")
    expect_status(page).to_contain_text(f"Read this, then press again. {question}")
    assert len(draw.bodies_sent("decisions")) == 1
    draw.requests.clear()
    expect(page.locator(".panel")).to_have_attribute("data-ready", "true")
    page.keyboard.press("Control+Enter")
    (sent,) = draw.bodies_sent("decisions")
    assert sent["confirmed"] == ["citations 1"]


def test_a_note_on_a_revision_doesnt_check_its_text_again(draw: Drawn) -> None:
    checked = {**forms.check(REVISED, CASE, shown=CASE.answer), "audited": AUDITED}
    more = {"draft": TAKEN, "view": draw.with_words("1950"), "serious": SERIOUS}
    page = draw(check=checked, **more)
    page.keyboard.press("t")
    page.keyboard.type("As the audit suggests.")
    expect(page.get_by_text("checking…")).to_have_count(0)
    expect(page.locator(".untouched")).to_have_text(
        "According to its audit, revision 2 has no issues."
    )
    page.keyboard.press("Control+Enter")
    (sent,) = draw.bodies_sent("decisions")
    assert sent["left"] == []
    assert sent["fields"]["note"] == "As the audit suggests."


def test_a_question_about_a_correction_is_about_its_text_once_it_is_checked(draw: Drawn) -> None:
    view = draw.with_words("1950")
    page = draw(view=view, serious=SERIOUS, revision="")
    page.keyboard.press("o")
    page.get_by_label("Corrected answer").fill(REVISED)
    check = {**forms.check(REVISED, CASE, shown=CASE.answer), "audited": AUDITED}
    draw.answers["draft"] = {**draw.answers["draft"], "check": check}
    question = "Nothing was recorded. Check the correction: it has a slip. Press Ctrl Enter again."
    error = {"message": question, "field": "corrected", "confirms": "correction 1"}
    draw.answers["decisions"] = (422, {"error": error})
    page.keyboard.press("Control+Enter")
    expect_status(page).to_have_text(question)
    expect(page.locator(".untouched")).to_have_text(
        "According to its audit, revision 2 has no issues."
    )
    expect(page.get_by_role("alert")).to_be_hidden()


def test_the_keys_of_a_question_work_although_a_field_had_the_focus(draw: Drawn) -> None:
    page = draw(serious=SERIOUS)
    page.get_by_role("radio", name="Approve").check()
    page.keyboard.press("t")
    page.keyboard.type("Fine.")
    page.keyboard.press("Control+Enter")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Press A again, or submit.")
    page.keyboard.press("u")
    expect(alert).to_be_hidden()
    expect(page.get_by_label("Note")).to_have_value("Fine.")
    assert draw.bodies_sent("decisions") == []


def test_the_typed_line_stays_in_view_when_the_check_takes_room(draw: Drawn) -> None:
    page = draw()
    page.keyboard.press("o")
    field = page.get_by_label("Corrected answer")
    field.fill("A line of the answer.\n" * 60)

    def resize(height: int) -> None:
        field.evaluate(
            """(box, height) => {
              Object.assign(box.style, { fieldSizing: "fixed", minHeight: 0, height: `${height}px` })
              return new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))
            }""",
            height,
        )

    for key, share in (("Control+End", 1), ("Control+Home", 0)):
        resize(300)
        field.press(key)
        field.evaluate("(box, share) => { box.scrollTop = share * box.scrollHeight }", share)
        resize(200)
        left = field.evaluate("box => box.scrollHeight - box.clientHeight - box.scrollTop")
        assert (left < 2) == bool(share)
        assert (field.evaluate("box => box.scrollTop") == 0) != bool(share)


def test_an_approval_against_own_findings_is_asked_about(draw: Drawn) -> None:
    page = draw(serious=[])
    rows = draw.data["labels"]["rows"]
    claim = next(row for row in rows if row["kind"] == "claim")
    page.keyboard.press("Shift+M")
    form = page.get_by_role("dialog", name="Report an issue with the whole answer")
    form.get_by_role("radio", name="unsafe").check()
    form.get_by_role("radio", name="critical").check()
    page.keyboard.press("Control+Enter")
    page.locator(".labels summary").click()
    page.locator(f"[data-key='{claim['key']}']").select_option("contradicted")
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("2 serious issues are open in the original answer")
    expect(alert).to_contain_text("critical, reported by you")
    assert draw.bodies_sent("decisions") == []
    expect(page.locator(".panel")).to_have_attribute("data-ready", "true")
    page.keyboard.press("a")
    (sent,) = draw.bodies_sent("decisions")
    given = forms.labels_in(
        forms.FormFields.model_validate(sent["fields"]),
        draw.data["labels"]["base"],
        run_audit(CASE).iterations[0],
        draw.data["shown"]["digest"],
    )
    assert sorted(label_key(label) for label in given) == sorted(sent["acknowledged"])


def test_labels_on_chunks_are_counted_with_the_others(draw: Drawn) -> None:
    page = draw()
    title = page.locator(".labels > summary")
    expect(title).to_contain_text("Label single claims and references")
    page.locator(".card[data-id=chunk_1]").get_by_role("button", name="irrelevant").click(delay=40)
    expect(title).to_contain_text("Labels given: 1 on chunks")
    page.keyboard.press("f")
    for key in ("l", "1", "Enter", "Shift+L"):
        page.keyboard.press(key)
    expect(title).to_contain_text("1 on claims and references, 1 on chunks, 1 on the evidence")


def test_an_approval_of_an_answer_without_a_confirmed_claim_is_asked_about(draw: Drawn) -> None:
    claim = next(row for row in draw.data["labels"]["rows"] if row["kind"] == "claim")
    row = {"ids": [], "number": "", "severity": "", "text": claim["text"]}
    row["labels"] = [{"text": "not confirmed", "tone": "calm", "title": ""}]
    rows = [{**row, "key": claim["key"]}, {**row, "key": ""}]
    page = draw(unconfirmed=rows)
    alert = page.get_by_role("alert")
    page.keyboard.press("a")
    expect(alert).to_contain_text("None of the 2 claims of the original answer is confirmed.")
    expect(alert.locator("li")).to_have_count(2)
    page.keyboard.press("u")
    expect_status(page).to_contain_text("Not approved. Nothing was recorded.")
    assert draw.bodies_sent("decisions") == []
    page = draw(unconfirmed=rows[:1])
    page.keyboard.press("a")
    expect(alert).to_contain_text("The only claim of the original answer is not confirmed.")
    expect(page.locator(".panel")).to_have_attribute("data-ready", "true")
    page.keyboard.press("a")
    assert [body["acknowledged"] for body in draw.bodies_sent("decisions")] == [[]]


def test_a_claim_that_the_reviewer_labelled_as_supported_is_confirmed(draw: Drawn) -> None:
    claim = next(row for row in draw.data["labels"]["rows"] if row["kind"] == "claim")
    row = {"ids": [], "number": "", "severity": "", "text": claim["text"], "labels": []}
    page = draw(unconfirmed=[{**row, "key": claim["key"]}])
    page.locator(".labels summary").click()
    page.locator(f"[data-key='{claim['key']}']").select_option("supported")
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    assert len(draw.bodies_sent("decisions")) == 1


def test_a_label_is_shown_in_the_answer_until_it_is_removed(draw: Drawn) -> None:
    page = draw()
    page.keyboard.press("l")
    chip = page.locator(".answer .labelled-chip")
    expect(chip).to_have_count(0)
    page.keyboard.press("2")
    expect(chip).to_have_attribute("aria-label", re.compile("^Your label: "))
    expect(chip).to_have_attribute("data-names", "you: partly supported")
    page.keyboard.press("0")
    expect(chip).to_have_count(0)


def test_l_labels_what_the_reasons_are_about_and_was_chosen_last(draw: Drawn) -> None:
    page = draw()
    bar, panel = page.locator(".label-bar .bar-head"), page.locator(".why-panel")
    marked = panel.locator(".label-this:has(kbd)")
    fabricated = page.locator(".text .ref-fabricated")

    def labels(name: str) -> None:
        page.keyboard.press("l")
        expect(bar).to_contain_text(name)
        page.keyboard.press("Enter")
        expect(bar).to_have_count(0)

    page.keyboard.press("f")
    first = page.locator(".tag").first
    expect(first).to_be_focused()
    page.keyboard.press("l")
    words = bar.locator(".bar-words")
    opened = words.inner_text()
    page.keyboard.press("Enter")
    expect(first).to_be_focused()  # nothing else was chosen
    page.keyboard.press("l")
    while words.inner_text() != "“[chunk_1]”":
        page.keyboard.press("j")
        assert words.inner_text() != opened
    # after another part was chosen in the bar, that part has the focus and the key
    page.keyboard.press("Enter")
    expect(page.locator(".text .ref-valid")).to_be_focused()
    expect(marked).to_have_text("Label this referenceL")
    labels("Reference“[chunk_1]”")
    # a marker is what was chosen, although the first reason is about the claim before it
    fabricated.click(delay=40)
    expect(panel.locator(".label-this").first).to_have_text(re.compile("claim|reference"))
    expect(marked).to_have_text("Label this referenceL")
    expect(panel.get_by_role("button", name="Label this reference")).to_have_count(1)
    labels("Reference“[chunk_9]”")
    # words of a chunk can't get the focus
    page.locator(".card[data-id=chunk_2] .card-text").click(delay=40)
    expect(marked).to_have_text("Label this chunkL")
    labels("Chunkchunk_2")
    page.keyboard.press("l")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator(".card[data-id=chunk_1] .card-head")).to_be_focused()
    labels("Chunkchunk_1")
    fabricated.focus()  # the focus is newer than what was chosen
    labels("Reference“[chunk_9]”")
    # a new report takes the key until something else is chosen
    page.keyboard.press("f")
    page.keyboard.press("Shift+M")
    page.get_by_role("radio", name="unsafe").check()
    page.keyboard.press("Control+Enter")
    expect(marked).to_have_count(0)
    labels("Reported issue")
    page.keyboard.press("Shift+F")
    expect(marked).to_have_count(1)
    labels(opened)


def test_every_control_of_the_label_bar_is_in_view_without_the_reasons(draw: Drawn) -> None:
    page = draw()
    page.set_viewport_size({"width": 1000, "height": 800})
    add = "(root, css) => root.prepend(Object.assign(document.createElement('style'), { textContent: css }))"
    page.locator(".root .root").first.evaluate(add, sources("answer", "labels")[0])
    page.keyboard.press("f")
    reasons = page.locator(".why-panel > :is(.reason, .lit-note)")
    expect(reasons.first).to_be_visible()
    page.keyboard.press("l")
    words = page.locator(".bar-words")
    while words.inner_text() != "“[chunk_9]”":
        page.keyboard.press("j")
    # the bar is highest on a reference with its right one, a passage and its kinds
    for key in ("2", "2", "ArrowDown", "ArrowDown", "s", "a"):
        page.keyboard.press(key)
    expect(page.get_by_role("list", name="Your passages")).to_contain_text("Right reference")
    expect(page.locator(".bar-status")).to_contain_text("The label bar is open")
    for shown in (*page.locator(".label-bar button").all(), page.locator(".bar-status")):
        expect(shown).to_be_in_viewport(ratio=1)
    assert not any(reason.is_visible() for reason in reasons.all())
    # the form shows only keys that it has meanwhile
    keys = page.locator(".panel kbd")
    shown_keys = {key.inner_text() for key in keys.all() if key.is_visible()}
    assert shown_keys == {"U", "H", "Ctrl ↵"}
    page.keyboard.press("Enter")
    expect(reasons.first).to_be_visible()


def test_a_report_leads_to_its_passages_and_leaves_the_answer_in_view(draw: Drawn) -> None:
    page = draw()
    page.set_viewport_size({"width": 1200, "height": 800})
    page.keyboard.press("Shift+M")
    form = page.get_by_role("dialog", name="Report an issue with the whole answer")
    box = form.bounding_box()
    assert box
    assert box["x"] > 700
    form.get_by_role("radio", name="incomplete").check()
    form.get_by_role("button", name="Report and add passages").click()
    expect(page.locator(".label-bar")).to_contain_text("Reported issue")
    expect_status(page).to_contain_text("Reported: incomplete, medium, the whole answer.")


def test_the_passages_of_a_report_say_what_they_are_about(draw: Drawn) -> None:
    page = draw()
    bar = page.locator(".label-bar")
    status = bar.get_by_role("status")

    def report(key: str, name: str) -> None:
        page.keyboard.press(key)
        page.get_by_role("radio", name=name).check()
        page.get_by_role("button", name="Report and add passages").click()

    report("m", "misattributed")
    expect(bar.get_by_role("button", name="Contradicts the words")).to_be_visible()
    page.keyboard.press("Enter")
    report("Shift+M", "contradicted")
    expect(bar.get_by_role("button", name="Supports the answer")).to_be_visible()
    page.keyboard.press("Enter")
    # what is missing has no words in the answer that a passage could contradict
    report("Shift+M", "incomplete")
    expect(bar.get_by_role("button", name="Contradicts")).to_have_count(0)
    page.keyboard.press("ArrowDown")
    expect(status).to_contain_text("chunk_1, sentence 1")
    # words selected meanwhile take its place
    page.locator(".card[data-id=chunk_2] .card-text").evaluate(
        "box => getSelection().selectAllChildren(box)"
    )
    expect(status).to_have_text("Selected in chunk_2: “Bridge 1 was opened in 1931.”")
    page.keyboard.press("c")
    expect(status).to_contain_text("S names the passage")
    page.keyboard.press("s")
    expect(bar.get_by_role("list", name="Your passages")).to_contain_text(
        "chunk_2 says what is missing “Bridge 1 was opened in 1931.”"
    )
    expect(bar.get_by_role("button", name="quotation")).to_have_count(0)


def test_missing_points_and_changed_words_are_counted_apart(draw: Drawn) -> None:
    view = draw.with_words("Bridge 1", "[chunk_1]", "1950")
    view["issues"][1] |= {"claim": -1, "placed": False, "description": "It carries two lanes"}
    corrected = (CASE.answer or "").replace("1950", "1931")
    draft = forms.FormFields(verdict="override", corrected=corrected).model_dump(mode="json")
    page = draw(draft=draft, check=forms.check(corrected, CASE, shown=CASE.answer), view=view)
    expect(page.locator(".untouched")).to_contain_text("The words of 1 of 2 issues are unchanged")
    expect(page.locator(".untouched")).to_contain_text(
        "The missing point isn't in the correction yet: issue 2"
    )


def test_taking_a_revision_says_that_it_corrects_the_original(draw: Drawn) -> None:
    page = draw()
    expect(page.get_by_role("button", name="Take revision 2 as correction")).to_be_visible()
    shown = {**draw.data["iterations"], "at": 1}
    page = draw(iterations=shown, place={**draw.data["place"], "case": "other"})
    expect(page.get_by_role("button", name="Correct the original with revision 2")).to_be_visible()
    expect(page.get_by_text("Approve judges only revision 2.")).to_be_visible()
    # it says that it replaces a text of the reviewer's own
    taken = {**draw.data, "draft": TAKEN, "saved_at": "2027-01-01T10:00:00.000Z"}
    message = {"text": "Revision 2 is the correction now.", "tone": "calm"}
    draw.answers["revision"] = {"desk": taken, "message": message}
    for own, says_more in (("Mine.", True), (None, False)):
        draft = {**draw.data["blank"], "verdict": "override", "corrected": own}
        draw(draft=draft, place={**draw.data["place"], "case": f"own {own}"})
        taken["place"] = {**draw.data["place"], "case": f"own {own}"}
        page.keyboard.press("Escape")
        page.keyboard.press("Shift+W")
        expect_status(page).to_contain_text("Revision 2 is the correction now.")
        own_replaced = expect_status(page)
        (own_replaced.to_contain_text if says_more else own_replaced.not_to_contain_text)(
            "It has replaced your own correction, which U brings back."
        )


def test_own_labels_and_reports_suggest_reasons(draw: Drawn, desk_data: dict[str, Any]) -> None:
    report = {"type": "incomplete", "severity": "low", "start": None, "end": None, "text": ""}
    labels, digest = desk_data["labels"], desk_data["shown"]["digest"]
    key = next(row["key"] for row in labels["rows"] if row["kind"] == "reference")
    given = {
        "labels": {labels["base"]: {key: {"label": "misattributed"}}},
        "reported": {digest: [report]},
        "verdict": "reject",
    }
    reasons = forms.reasons(None)  # the audit suggests none
    page = draw(reasons=reasons, draft={**desk_data["blank"], **given})
    suggested = page.get_by_role("group", name="Reasons").locator(".suggested")
    expect(suggested).to_have_count(2)
    expect(suggested.nth(0)).to_contain_text("Cites the wrong evidence")
    expect(suggested.nth(1)).to_contain_text("A point that matters is missing")


def test_a_correction_that_changes_the_serious_issues_isnt_asked_about(draw: Drawn) -> None:
    view = draw.with_words("1950")
    draw.data = {**draw.data, "serious": SERIOUS, "view": view, "revision": ""}
    page = draw()
    page.keyboard.press("o")
    field = page.get_by_label("Corrected answer")
    field.fill(field.input_value().replace("1950", "1931"))
    page.keyboard.press("Control+Enter")
    (sent,) = draw.bodies_sent("decisions")
    assert sent["acknowledged"] == []


def test_u_after_a_skip_brings_the_skipped_case_back(draw: Drawn) -> None:
    page = draw()
    draw.answers["open"] = next_case(draw) | {"entry": "s0", "done": "Skipped c0. It comes back"}
    page.keyboard.press("s")
    expect_status(page).to_contain_text("Skipped c0. It comes back.")
    expect(page.get_by_role("button", name="Undo it there")).to_be_visible()
    page.keyboard.press("u")
    assert [body["entry"] for body in draw.bodies_sent("undo")] == ["s0"]


def test_u_names_a_skip_first_if_its_case_stayed_on_the_page(draw: Drawn) -> None:
    page = draw()
    stays = {"desk": draw.data, "message": None, "entry": "s0", "done": "Skipped c0"}
    draw.answers["open"] = stays
    page.keyboard.press("s")
    until(lambda: bool(draw.bodies_sent("open")), page, "the next case is asked for")
    expect(page.locator(".panel")).to_have_attribute("data-ready", "true")
    page.keyboard.press("u")
    expect_status(page).to_contain_text("Skipped c0.")
    assert not draw.bodies_sent("undo")
    page.keyboard.press("u")
    until(lambda: bool(draw.bodies_sent("undo")), page, "the undo is sent")
    assert [body["entry"] for body in draw.bodies_sent("undo")] == ["s0"]


def test_the_link_that_led_to_a_case_doesnt_keep_its_keys(draw: Drawn) -> None:
    page = draw()
    page.evaluate(
        """() => {
          const link = Object.assign(document.createElement("a"), { href: "#here" })
          link.textContent = "Open the first of 3 waiting cases"
          document.body.append(link)
          link.focus()
        }"""
    )
    draw.data = next_case(draw)["desk"]
    draw()  # the page follows to the case, while the link is still on it
    page.keyboard.press("x")
    expect(page.get_by_role("radio", name="Reject")).to_be_checked()


def test_a_field_takes_no_text_while_its_decision_is_recorded(draw: Drawn) -> None:
    page = draw()
    page.keyboard.press("x")
    page.keyboard.press("3")
    page.keyboard.press("t")
    note = page.get_by_label("Note")
    page.keyboard.type("a note")
    page.keyboard.press("Control+Enter")  # it's never answered
    page.keyboard.type(" and more")
    expect_status(page).to_contain_text("Your last decision is still being recorded.")
    expect(note).to_have_value("a note")
    assert [body["fields"]["note"] for body in draw.bodies_sent("decisions")] == ["a note"]


def test_no_field_keeps_the_focus_of_the_case_before(draw: Drawn) -> None:
    page = draw()
    draw.answers["decisions"] = next_case(draw)
    page.keyboard.press("x")
    page.keyboard.press("3")
    page.keyboard.press("t")
    page.keyboard.type("a note")
    page.keyboard.press("Control+Enter")
    expect_status(page).to_contain_text("Rejected the answer of c0.")
    page.keyboard.type("xyz")
    page.keyboard.press("t")
    expect(page.get_by_label("Note")).to_have_value("")


def adjudicated_data(data: dict[str, Any]) -> dict[str, Any]:
    """The data of an adjudication with Cleo's final verdict."""
    row = {"id": "f1", "what": "Rejected", "tone": "bad", "who": "Cleo", "when": "", "why": "Why."}
    row |= {"note": "", "reported": [], "changes": [], "undoable": True, "settled": True}
    standing = {**data["final"]["sides"][0], "other": "Theirs.", "note": "Theirs."}
    final = {**data["final"], "open": False, "standing": standing}
    return {**data, "seen": data["seen"] + 1, "standing": row, "final": final}


def test_next_is_the_main_button_only_while_a_case_is_left(
    draw: Drawn, final_data: dict[str, Any]
) -> None:
    draw.data = adjudicated_data(final_data)
    seen = draw.data["seen"]
    page = draw(go={"waiting": True, "says": ""}, seen=seen + 1)
    following = page.locator(".go").get_by_role("button", name="Next")
    expect(following).to_have_class(re.compile("primary"))
    draw(go={"waiting": False, "says": ""}, seen=seen + 2)
    expect(following).not_to_have_class(re.compile("primary"))
    expect(page.locator(".go").get_by_role("button", name="Previous")).to_have_text("PreviousK")


def test_entries_for_a_case_settled_elsewhere_are_shown_by_m(
    draw: Drawn, final_data: dict[str, Any]
) -> None:
    draw.data = final_data
    page = draw()
    reason = page.get_by_role("textbox", name="Reason")
    page.keyboard.press("x")
    page.keyboard.type("Mine.")
    changed = {"message": "This case has changed.", "field": "", "confirms": ""}
    draw.answers["decisions"] = (409, {"error": changed})
    draw.answers["open"] = {"desk": adjudicated_data(final_data), "message": None}
    page.keyboard.press("Control+Enter")
    expect_status(page).to_have_text("This case has changed.")
    expect(page.get_by_text("Final verdict (settled)")).to_be_visible()
    expect(reason).to_be_hidden()
    page.keyboard.press("m")
    expect(page.get_by_role("radio", name="Reject")).to_be_checked()
    expect(reason).to_have_value("Mine.")
    page.keyboard.press("m")
    expect(reason).to_be_hidden()
    page.keyboard.press("u")  # "Keep it" was a step
    expect(reason).to_have_value("Mine.")


def test_a_final_verdict_is_undone_by_a_second_press(
    draw: Drawn, final_data: dict[str, Any]
) -> None:
    draw.data = adjudicated_data(final_data)
    page = draw()
    page.keyboard.press("u")
    expect_status(page).to_have_text("This undoes the final verdict. Press U again to confirm.")
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    assert not draw.bodies_sent("undo")
    page.keyboard.press("u")
    assert [body["entry"] for body in draw.bodies_sent("undo")] == ["f1"]


def test_a_key_pressed_while_a_revision_is_taken_is_refused_and_loses_nothing(draw: Drawn) -> None:
    page = draw()
    del draw.answers["revision"]
    for key in ("x", "Shift+W", "3", "m", "u"):
        page.keyboard.press(key)
        if key not in ("x", "Shift+W"):
            expect_status(page).to_have_text("The page is still loading. Press again in a moment.")
            page.keyboard.press("Escape")
    page.get_by_role("radio", name="Approve").dispatch_event("click")
    expect_status(page).to_have_text("The page is still loading. Press again in a moment.")
    expect(page.get_by_role("radio", name="Reject")).to_be_checked()
    draft = forms.FormFields(verdict="override", corrected="Revised.").model_dump(mode="json")
    desk = {**draw.data, "draft": draft, "saved_at": "2026-01-02T10:00:00.000Z"}
    message = {"text": "Choose a reason.", "tone": "calm", "where": "reason", "narrowed": False}
    draw.waiting.pop().fulfill(json={"desk": desk, "message": message})
    expect(page.get_by_label("Corrected answer")).to_have_value("Revised.")
    expect_status(page).to_contain_text(
        "Choose a reason. A key that you pressed in the meantime had no effect."
    )


def test_typed_text_that_a_revision_replaces_comes_back_by_undo(draw: Drawn) -> None:
    page = draw()
    page.keyboard.press("o")
    page.get_by_label("Corrected answer").fill("Mine.")
    page.keyboard.press("Escape")
    draft = forms.FormFields(verdict="override", corrected="Revised.").model_dump(mode="json")
    desk = {**draw.data, "draft": draft, "saved_at": "2030-01-02T10:00:00.000Z"}
    message = {"text": "Choose a reason.", "tone": "calm", "where": "reason", "narrowed": False}
    draw.answers["revision"] = {"desk": desk, "message": message}
    page.keyboard.press("Shift+W")
    expect(page.get_by_label("Corrected answer")).to_have_value("Revised.")
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    expect(page.get_by_label("Corrected answer")).to_have_value("Mine.")


def test_keys_pressed_while_the_next_case_loads_change_neither_draft(draw: Drawn) -> None:
    page = draw()
    page.keyboard.press("x")
    page.keyboard.press("1")
    page.keyboard.press("t")
    page.keyboard.type("My note")
    page.keyboard.press("Escape")
    expect(page.get_by_text("Draft saved")).to_be_visible()
    del draw.answers["open"]
    draw.requests.clear()
    for key in ("n", "x", "3"):
        page.keyboard.press(key)
    expect_status(page).to_have_text("The page is still loading. Press again in a moment.")
    draw.waiting.pop().fulfill(json=next_case(draw, draft=draw.data["blank"]) | {"entry": ""})
    expect_status(page).to_have_text(
        "A key that you pressed while this case was loading had no effect."
    )
    expect(page.get_by_role("radio", name="Reject")).not_to_be_checked()
    assert not draw.bodies_sent("draft")


def test_a_draft_is_saved_only_for_its_own_case(draw: Drawn) -> None:
    page = draw()
    page.keyboard.press("x")
    page.keyboard.press("t")
    page.keyboard.type("My note")  # the focus stays in the field, and nothing is saved yet
    draw(**next_case(draw, draft=draw.data["blank"])["desk"], read=False)
    expect(page.get_by_label("Note")).to_have_value("")
    cases = {body["place"]["case"] for body in draw.bodies_sent("draft") if body["fields"]["note"]}
    assert cases <= {draw.data["place"]["case"]}


def test_the_reason_of_a_decision_goes_with_its_verdict(
    draw: Drawn, final_data: dict[str, Any]
) -> None:
    draw.data = final_data
    page = draw()
    side = final_data["final"]["sides"][0]
    page.keyboard.press("1")
    reason = page.locator("textarea.own-words")
    expect(reason).to_have_value(side["other"])
    page.keyboard.press("Escape")
    page.keyboard.press("e")
    expect(reason).to_have_value("")
    page.keyboard.press("Escape")
    page.keyboard.press({"reject": "x", "approve": "a", "override": "o"}[side["verdict"]])
    expect(reason).to_have_value(side["other"])


def test_digits_choose_the_type_while_the_list_of_sentences_has_the_focus(draw: Drawn) -> None:
    page = draw()
    page.keyboard.press("m")
    sentence = page.get_by_role("combobox", name="Sentence")
    expect(sentence).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("3")
    expect(page.get_by_role("radiogroup", name="Type").get_by_role("radio").nth(2)).to_be_checked()
    expect(sentence).to_have_value("1")


def test_a_gap_in_the_guideline_offers_a_sentence_for_the_rubric(
    draw: Drawn, final_data: dict[str, Any]
) -> None:
    draw.data = final_data
    page = draw()
    cause, sentence = page.get_by_label("Why they differ"), page.get_by_label("Sentence for the")
    expect(cause).to_be_hidden()
    page.keyboard.press("x")
    cause.select_option("slip")
    expect(sentence).to_be_hidden()
    cause.select_option("gap")
    sentence.fill("Round to whole metres.")
    page.locator("textarea.own-words").fill("It isn't supported.")
    page.keyboard.press("Control+Enter")
    until(lambda: bool(draw.bodies_sent("decisions")), page, "the verdict is sent")
    fields = draw.bodies_sent("decisions")[-1]["fields"]
    assert (fields["cause"], fields["sentence"]) == ("gap", "Round to whole metres.")


def test_a_digit_without_a_verdict_says_so_and_the_main_reason_is_marked(draw: Drawn) -> None:
    page = draw.after_a_decision()
    page.keyboard.press("9")
    expect_status(page).to_contain_text("Choose a verdict first.")
    page.keyboard.press("u")  # names what the next press undoes
    expect_status(page).to_contain_text("Press U again to undo it")
    for key in ("x", "2", "1"):
        page.keyboard.press(key)
    marked = page.locator(".reason", has=page.locator(".main-reason:visible"))
    expect(marked).to_have_count(1)
    expect(marked.locator("kbd")).to_have_text("2")


def test_a_digit_beyond_the_reasons_of_a_verdict_says_how_many_it_has(draw: Drawn) -> None:
    reasons = {**draw.data["reasons"], "reject": draw.data["reasons"]["reject"][:3]}
    page = draw(reasons=reasons)
    for key in ("x", "4"):
        page.keyboard.press(key)
    expect_status(page).to_contain_text("There's no reason 4. This verdict has 3 reasons.")


def test_a_missing_point_is_added_if_new_sentences_have_most_of_its_words(draw: Drawn) -> None:
    point = "Two lanes of traffic cross the river since 1931"
    view = draw.with_words("It", description=point, claim=-1, placed=False)

    def draw_correction(added: str) -> Any:
        draft = forms.FormFields(verdict="override", corrected=f"{CASE.answer} {added}")
        check = forms.check(draft.corrected or "", CASE, shown=CASE.answer)
        place = {**draw.data["place"], "case": added}
        page = draw(view=view, check=check, place=place, draft=draft.model_dump(mode="json"))
        return expect(page.locator(".untouched"))

    draw_correction("Traffic has two lanes. They cross it since 1931.").to_contain_text("is in the")
    draw_correction("Traffic has two lanes. They cross it since 1950.").to_contain_text("isn't in")
    draw_correction("It is a bridge.").to_contain_text("isn't in")


def test_f_says_why_it_goes_nowhere(draw: Drawn) -> None:
    view = {**draw.data["view"], "issues": [], "issues_total": 0}
    page = draw(view={**view, "version": "none", "claims": []})
    page.keyboard.press("f")
    expect_status(page).to_have_text(
        "There is no issue and no unconfirmed claim to go to in this answer."
    )
    page = draw(view=draw.with_words("101"))
    page.keyboard.press("f")
    page.keyboard.press("f")
    expect_status(page).to_have_text("This is the only issue of the answer.")


def test_f_goes_on_to_claims_that_arent_confirmed_and_l_starts_at_the_first_doubtful_part(
    draw: Drawn,
) -> None:
    view, labels = draw.data["view"], draw.data["labels"]
    unconfirmed = {"text": "not confirmed", "tone": "calm"}
    claims = [{**claim, "label": unconfirmed} for claim in view["claims"]]
    bare = {**view, "claims": claims, "issues": [], "issues_total": 0}
    bar = draw.page.locator(".label-bar .bar-words")
    page = draw(view={**bare, "version": "bare"})
    chosen = page.locator(".text .chosen")
    for key, number, words in (
        ("f", 1, "101"),
        ("f", 2, "1950"),
        ("f", 1, "101"),
        ("Shift+F", 2, "1950"),
    ):
        page.keyboard.press(key)
        expect_status(page).to_have_text(f"Not confirmed: claim {number} of 2.")
        assert any(words in text for text in chosen.all_inner_texts())
        page.keyboard.press("l")
        expect(bar).to_contain_text(words)
        page.keyboard.press("Enter")
    # issues come first, and their claims aren't visited again
    issue = {**view["issues"][0], "claim": 1, "number": 1}
    page = draw(view={**bare, "version": "one", "issues": [issue], "issues_total": 1})
    for _ in range(2):
        page.keyboard.press("f")
        expect(page.locator(".why-panel")).to_contain_text("Issue 1,")
        page.keyboard.press("f")
        expect_status(page).to_have_text("Not confirmed: claim 1 of 1.")
    # L begins at the first part in doubt that has no label yet
    page = draw(view={**view, "version": "plain"})
    doubtful = [row["text"] for row in labels["rows"] if row["doubtful"]]
    assert doubtful[0] != labels["rows"][0]["text"]
    for words in doubtful[:2]:
        page.keyboard.press("l")
        expect(bar).to_have_text(f"“{words}”")
        page.keyboard.press("1")
        page.keyboard.press("Escape")
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")  # closes the reasons, so that nothing is chosen


def test_a_decision_can_be_undone_after_its_new_draft_was_discarded(draw: Drawn) -> None:
    standing = {**STANDING, "undoable": True}
    page = draw(standing=standing)
    page.keyboard.press("x")
    page.get_by_role("button", name="Discard draft").click(delay=40)
    expect_status(page).to_contain_text("The draft was discarded.")
    page.get_by_role("button", name="Undo the decision").click(delay=40)
    until(lambda: "undo" in draw.acts(), page, "the decision is undone")
    assert draw.bodies_sent("undo")[0]["entry"] == standing["id"]


def test_an_approval_isnt_started_again_by_the_same_key(draw: Drawn) -> None:
    page = draw(
        standing={
            **STANDING,
            "undoable": True,
            "entries": {**draw.data["blank"], "verdict": "approve"},
        }
    )
    for _ in range(2):
        page.keyboard.press("a")
        expect_status(page).to_contain_text("You have approved this answer. U undoes it")
    assert not draw.bodies_sent("draft")
    # another answer of the case, or another person's decision
    page = draw(standing={**STANDING, "undoable": True, "entries": None})
    page.keyboard.press("a")
    expect(page.get_by_role("radio", name="Approve")).to_be_checked()


def test_an_undo_waits_for_the_name_that_the_browser_has_stored(draw: Drawn) -> None:
    draw.page.evaluate("localStorage.setItem('masis-reviewer', 'Ada')")
    standing = {**STANDING, "undoable": True}
    page = draw(reviewer="", standing=standing)
    page.keyboard.press("u")
    expect_status(page).to_contain_text("The page is still loading.")
    page = draw(reviewer="Ada", standing=standing)
    page.keyboard.press("u")
    until(lambda: "undo" in draw.acts(), page, "the decision is undone")


def test_deciding_again_starts_with_the_entries_of_the_decision(
    draw: Drawn, desk_data: dict[str, Any]
) -> None:
    labels = {desk_data["labels"]["base"]: {desk_data["labels"]["rows"][0]["key"]: {"label": "x"}}}
    given = {"verdict": "reject", "reason": "unsupported", "note": "Noted.", "labels": labels}
    entries = {**desk_data["blank"], **given}
    for key, verdict, reason in (
        ("a", "approve", ""),
        ("x", "reject", "unsupported"),
        ("t", "reject", "unsupported"),
    ):
        draft = draw.data["blank"]
        place = {**draw.data["place"], "case": key}
        page = draw(standing={**STANDING, "entries": entries}, draft=draft, place=place)
        expect(page.get_by_label("Note")).to_be_hidden()
        page.keyboard.press(key)
        expect(page.get_by_label("Note")).to_have_value("Noted.")
        expect(page.get_by_text("The form has the entries of your decision.")).to_be_visible()
        page.get_by_label("Note").fill("Noted again.")
        page.keyboard.press("Escape")
        until(lambda: draw.bodies_sent("draft"), page, "the draft is saved")
        saved = draw.bodies_sent("draft")[-1]["fields"]
        assert [saved["verdict"], saved["reason"], saved["labels"]] == [verdict, reason, labels]
        page.get_by_role("button", name="Discard draft").click(delay=40)
        expect(page.get_by_label("Note")).to_be_hidden()


def test_two_tabs_of_a_case_have_the_same_entries(draw: Drawn) -> None:
    page = draw()
    page.evaluate(
        """fields => {
            const kept = { at: 1, reviewer: "Ada", token: "other", fields }
            const [key, newValue] = ["masis-draft:bridge", JSON.stringify(kept)]
            window.dispatchEvent(new StorageEvent("storage", { key, newValue }))
        }""",
        {**draw.data["blank"], "note": "From the other tab", "verdict": "reject"},
    )
    expect_status(page).to_contain_text("This case is open in another tab, too.")
    field = page.get_by_label("Note")
    expect(field).to_have_value("From the other tab")
    field.press("End")
    field.press_sequentially(", and this one")
    page.keyboard.press("Escape")
    until(lambda: draw.bodies_sent("draft"), page, "the draft is saved")
    saved = draw.bodies_sent("draft")[-1]["fields"]
    assert (saved["note"], saved["verdict"]) == ("From the other tab, and this one", "reject")


def test_the_card_of_the_chunk_that_is_labelled_is_outlined(draw: Drawn) -> None:
    page = draw()
    page.locator(".card-head").nth(1).focus()
    page.keyboard.press("l")
    expect(page.locator(".card.labelling .card-id")).to_have_text("chunk_2")
    page.keyboard.press("Enter")
    expect(page.locator(".card.labelling")).to_have_count(0)
