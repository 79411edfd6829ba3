"""What a case page takes beside a verdict: issues that the audit missed, a graph's draft, text of
bare evidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from masis.api import stepwise
from masis.schema.case import Case
from masis.schema.labels import TargetLabel
from masis.settings import Settings
from tests.browser.conftest import Tab, until
from tests.browser.test_accessibility import AXE, grave
from tests.browser.test_decision import ReviewServer, open_case, panel
from tests.cases import case_of
from tests.reviewing import ADA
from tools.browser import settle

OpenTab = Callable[..., Tab]
ANSWER = (
    "# The 🌉 bridge\n\nIt is **120 metres** long [chunk_1]. It is painted *grey* [chunk_1].\n\n-"
    " It cost nothing."
)


BETTER = (
    "The Halden bridge is 120 metres long [chunk_1]. It was opened to traffic in 1931 [chunk_2]."
)
OF_A_GRAPH = case_of(
    "The Halden bridge is 90 metres long [chunk_1]. It cost 4 million crowns [chunk_9].",
    {
        "chunk_1": "The Halden bridge is 120 metres long. It is made of steel.",
        "chunk_2": "It was opened to traffic in 1931 by the mayor.",
    },
    case_id="ferry-1",
    query="How long is the Halden bridge, and when was it opened?",
    metadata={"made_by": "langgraph", "thread_id": "ferry"},
)
TEXT = "The Sonder bridge was opened in 1931. It is 120 metres long."
BARE = [
    Case(
        id=case_id,
        query="When was the Sonder bridge opened?",
        answer="The Sonder bridge was opened in 1931 [1]. It carries two lanes [2].",
        evidence=[
            {"id": "1", "source": "https://example.org/bridge"},
            {
                "id": "2",
                "source": "javascript:alert(1)//<img src=x onerror=\"document.title='owned'\">",
            },
        ],
    )
    for case_id in ("bridge", "bridge of another")
]
"""Cases of whose evidence only the addresses are known."""


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewServer]:
    served = ReviewServer(tmp_path_factory.mktemp("reported"))
    for number in range(4):
        content = {
            "id": f"case-{number}",
            "query": f"How long is bridge {number}?",
            "answer": ANSWER,
            "evidence": [
                {"id": "chunk_1", "text": "The bridge is 120 metres long. It is painted grey."}
            ],
        }
        case = Case.model_validate(content)
        served.workbench.cases.add(ADA, [case])
        if number:  # the first one is not audited
            served.workbench.audits.audit(ADA, case)
    for case in BARE:
        served.workbench.cases.add(ADA, [case])
        served.workbench.audits.audit(ADA, case)
    first = stepwise.audit_once(OF_A_GRAPH, Settings())
    graph = stepwise.audit_once(OF_A_GRAPH, Settings(), before=first, answer=BETTER)
    served.workbench.cases.add(ADA, [OF_A_GRAPH])
    served.workbench.audits.store_run(ADA, stepwise.evaluate_once(OF_A_GRAPH, graph, Settings()))
    served.start()
    yield served
    served.kill()


def open_answer(tab: Tab, case_id: str) -> Locator:
    tab.page.add_init_script("localStorage.setItem('masis-reviewer', 'Ada')")
    found = open_case(tab, case_id)
    expect(found).to_have_attribute("data-ready", "true")
    if (name := found.get_by_label("Your name")).is_visible():
        name.fill("Ada")
        name.press("Enter")
        expect(name).to_be_hidden()
        expect(found).to_have_attribute("data-ready", "true")
    return found


def select(page: Page, first: str, last: str) -> None:
    """Select with the mouse from before the words ``first`` to behind the words ``last`` of the
    answer.
    """
    places = page.evaluate(
        """([first, last]) => {
            const found = [...document.querySelectorAll("*")].flatMap(element => element.shadowRoot ?? [])
                .map(element => element.querySelector(".answer .text")).find(Boolean)
            const texts = document.createTreeWalker(found, NodeFilter.SHOW_TEXT)
            const at = {}
            while (texts.nextNode()) {
                const node = texts.currentNode
                for (const words of [first, last]) {
                    const place = node.data.indexOf(words)
                    if (place < 0) continue
                    const range = document.createRange()
                    range.setStart(node, place)
                    range.setEnd(node, place + words.length)
                    at[words] = range.getBoundingClientRect()
                }
            }
            const middle = box => box.top + box.height / 2
            return [at[first].left, middle(at[first]), at[last].right, middle(at[last])]
        }""",
        [first, last],
    )
    page.mouse.move(places[0], places[1])
    page.mouse.down()
    page.mouse.move((places[0] + places[2]) / 2, (places[1] + places[3]) / 2)
    page.mouse.move(places[2], places[3])
    page.mouse.up()


def labels_of(server: ReviewServer, case_id: str) -> list[TargetLabel]:
    made = [decision for decision in server.decisions(case_id) if decision.verdict is not None]
    return list(made[-1].reported)


def whole(text: str) -> dict[str, int | str]:
    """The place and the words that a label on this text of the answer has."""
    return {"start": (at := ANSWER.index(text)), "end": at + len(text), "text": text}


def test_words_selected_with_the_mouse_are_labelled_edited_and_recorded(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    case_id = "case-1"
    tab = open_tab(server.base)
    found = open_answer(tab, case_id)
    page = tab.page
    select(page, "120 metres", "long")
    page.get_by_role("button", name="Report an issue here").click(delay=40)
    form = page.get_by_role("dialog", name="Report an issue in these words")
    expect(form.locator("blockquote")).to_have_text("120 metres** long")
    form.get_by_role("button", name="Report this issue").click(delay=40)
    expect(form.get_by_role("alert")).to_have_text("Choose a type.")
    form.get_by_text("unsupported", exact=True).click(delay=40)
    form.get_by_text("high", exact=True).click(delay=40)
    form.get_by_role("textbox").fill("The survey says 12.")
    form.get_by_role("button", name="Report this issue").click(delay=40)
    expect(form).to_be_hidden()
    mine = found.get_by_role("region", name="Issues you report")
    expect(mine).to_contain_text("“120 metres** long”")
    expect(page.locator(".reported")).to_have_text(["120 metres", " long"])
    mark = page.get_by_role("button", name="Reported issue: unsupported, high. Edit")
    expect(mark).to_be_visible()
    expect(page.get_by_role("button", name="Report an issue here")).to_be_hidden()
    # a label within a label, by a mark that is drawn: offsets don't shift
    select(page, "etre", "etre")  # half a word: the whole one is meant
    page.get_by_role("button", name="Report an issue here").click(delay=40)
    form.get_by_text("other", exact=True).click(delay=40)
    form.get_by_text("low", exact=True).click(delay=40)
    form.get_by_role("button", name="Report this issue").click(delay=40)
    expect(mine.get_by_role("listitem")).to_have_count(2)
    mark.click(delay=40)
    edit = page.get_by_role("dialog", name="Edit the reported issue")
    edit.get_by_text("critical", exact=True).click(delay=40)
    edit.get_by_role("button", name="Save changes").click(delay=40)
    expect(mine).to_contain_text("critical")
    # the draft outlasts the page
    until(
        lambda: len(next(iter((server.read_draft(case_id, "reported") or {"": ()}).values()))) == 2,
        page,
        "the draft",
    )
    tab.open(page.url.removeprefix(server.base))
    found = panel(page)
    mine = found.get_by_role("region", name="Issues you report")
    expect(mine.get_by_role("listitem")).to_have_count(2)
    expect(
        page.get_by_role("button", name="Reported issue: unsupported, critical. Edit")
    ).to_be_visible()
    tab.settle()
    mine.get_by_role("button", name="Remove: other").click(delay=40)
    expect(mine.get_by_role("listitem")).to_have_count(1)
    expect(found).to_have_attribute("data-ready", "true")
    found.get_by_text("Reject", exact=True).click(delay=40)
    found.get_by_text("Says more than the evidence").click(delay=40)
    found.get_by_role("button", name="Submit: reject").click(delay=40)
    expect(found.get_by_role("status").first).to_contain_text("Rejected")
    text = {"note": "The survey says 12.", "severity": "critical", "label": "unsupported"}
    assert [label.model_dump(exclude_defaults=True) for label in labels_of(server, case_id)] == [
        {"target": "span", **whole("120 metres** long"), **text}
    ]
    # what stands is listed and marked, and an undo brings it back into the form
    expect(found.locator(".standing")).to_contain_text("“120 metres** long”")
    expect(page.get_by_role("img", name="Reported issue: unsupported, critical")).to_be_visible()
    found.get_by_text("History of this case").click(delay=40)
    expect(found.locator(".history")).to_contain_text("The survey says 12.")
    tab.settle()
    found.locator(".standing").get_by_role("button", name="Undo").click(delay=40)
    expect(found.get_by_role("status").first).to_contain_text("Your entries are back in the form.")
    expect(mine.get_by_role("listitem")).to_have_count(1)
    tab.assert_clean()


def test_issues_can_be_reported_with_the_keyboard_alone(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    tab = open_tab(server.base, width=900, scheme="dark")
    found = open_answer(tab, "case-0")
    page, press = tab.page, tab.page.keyboard.press
    # nothing is selected: a sentence is chosen
    press("m")
    form = page.get_by_role("dialog", name="Report an issue in a sentence")
    expect(form.get_by_label("Sentence")).to_be_focused()
    for _ in range(3):
        press("ArrowDown")
    expect(form.locator("blockquote")).to_have_text("It cost nothing.")
    page.evaluate(AXE)
    assert not grave(page)
    press("Tab")
    press("a")  # no key of the page acts while the form is open
    press("3")
    expect(form.get_by_role("radio", name="contradicted")).to_be_checked()
    expect(form.get_by_role("radio", name="medium")).to_be_checked()
    press("ArrowUp")
    press("Tab")
    page.keyboard.type("a: it cost 2 m")
    press("Control+Enter")
    mine = found.get_by_role("region", name="Issues you report")
    expect(mine).to_contain_text("a: it cost 2 m")
    expect(
        page.get_by_role("button", name="Reported issue: contradicted, high. Edit")
    ).to_be_visible()
    assert not grave(page)
    # the whole answer
    press("Shift+M")
    form = page.get_by_role("dialog", name="Report an issue with the whole answer")
    expect(form.locator("blockquote")).to_be_hidden()
    press("4")
    press("Enter")
    expect(mine).to_contain_text("the whole answer")
    # words selected by keyboard
    settle(page)  # a redraw would drop the selection
    page.evaluate("""() => {
            const found = [...document.querySelectorAll("*")].flatMap(element => element.shadowRoot ?? [])
                .map(element => element.querySelector(".answer .text")).find(Boolean)
            const texts = document.createTreeWalker(found, NodeFilter.SHOW_TEXT)
            while (texts.nextNode()) if (texts.currentNode.data.includes("painted")) break
            const node = texts.currentNode
            const place = node.data.indexOf("painted")
            window.getSelection().setBaseAndExtent(node, place - 1, node, place + "painted".length)
        }""")
    press("m")
    form = page.get_by_role("dialog", name="Report an issue in these words")
    expect(form.locator("blockquote")).to_have_text("painted")
    press("Escape")
    expect(form).to_be_hidden()
    expect(mine.get_by_role("listitem")).to_have_count(2)
    expect(found).to_have_attribute("data-ready", "true")
    press("e")
    press("1")
    press("Control+Enter")
    expect(found.get_by_role("status").first).to_contain_text("Escalated")
    one, other = labels_of(server, "case-0")
    assert one.model_dump(exclude_defaults=True) == {
        "target": "span",
        **whole("It cost nothing."),
        "label": "contradicted",
        "severity": "high",
        "note": "a: it cost 2 m",
    }
    assert (other.target, other.label, other.severity) == ("answer", "incomplete", "medium")
    press("h")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text(
        "Report an issue with the whole answer"
    )
    tab.assert_clean()


def test_an_unfinished_report_survives_a_reload(server: ReviewServer, open_tab: OpenTab) -> None:
    tab = open_tab(server.base)
    open_answer(tab, "case-3")
    page = tab.page
    tab.settle()  # a page that is still being drawn may draw its form anew, without what was typed
    page.keyboard.press("Shift+M")
    form = page.get_by_role("dialog", name="Report an issue with the whole answer")
    form.get_by_role("textbox").fill("It has no answer.")
    until(
        lambda: (server.read_draft("case-3", "reporting") or {}).get("note") == "It has no answer.",
        page,
        "the draft",
    )
    tab.open(page.url.removeprefix(server.base))
    expect(form.get_by_role("textbox")).to_have_value("It has no answer.")
    page.keyboard.press("Escape")
    expect(form).to_be_hidden()
    until(lambda: server.read_draft("case-3", "reporting") is None, page, "the end of the draft")
    tab.assert_clean()


def test_a_graphs_second_draft_is_approved_on_the_page_and_the_graph_resumes(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    assert server.workbench.reviews.outcome(OF_A_GRAPH.id) is None
    tab = open_tab(server.base)
    tab.page.add_init_script("localStorage.setItem('masis-advance', 'off')")
    tab.open(f"/review?case={OF_A_GRAPH.id}&iteration=2")
    found = panel(tab.page)
    expect(found).to_have_attribute("data-ready", "true")
    found.get_by_text("Approve", exact=True).click(delay=40)
    found.get_by_label("Your name").fill("Ada")
    found.get_by_role("button", name="Submit").click(delay=40)
    expect(found.get_by_role("status").first).to_contain_text("Approved revision 2.")
    decided = server.workbench.reviews.outcome(OF_A_GRAPH.id)
    assert (decided.decision.reviewer, decided.decision.iteration, decided.answer) == (
        "Ada",
        2,
        BETTER,
    )


def open_as_ada(tab: Tab, case_id: str) -> None:
    """Open a case under the name of Ada."""
    tab.open(f"/review?case={case_id}")
    name = panel(tab.page).get_by_label("Your name")
    name.fill("Ada")
    name.press("Enter")
    expect(name).to_be_hidden()


def test_pasted_text_is_audited_as_a_new_version(server: ReviewServer, open_tab: OpenTab) -> None:
    tab = open_tab(server.base)
    page = tab.page
    open_as_ada(tab, "bridge")
    expect(page.get_by_text("Nothing can be checked, because no evidence has text")).to_be_visible()
    links = page.get_by_role("link", name="https://example.org/bridge")
    expect(links).to_have_attribute("href", "https://example.org/bridge")
    assert page.locator("a[href^=javascript]").count() == 0
    page.get_by_label("Text of 1").fill(TEXT)
    page.get_by_label("Text of 1").blur()
    tab.settle()  # a press on what the page is just drawing has no effect
    page.get_by_role("button", name="Audit with this text").click(delay=40)
    expect(page).to_have_url(re.compile(r"case=bridge%402|case=bridge@2"), timeout=20_000)
    expect(
        page.get_by_text("This is version 2 of the case, with pasted text for 1 chunk of evidence.")
    ).to_be_visible()
    expect(page.get_by_text("1 of 2 chunks of evidence has no text")).to_be_visible()
    expect(page.get_by_text("Scores", exact=True)).to_be_visible(timeout=60_000)
    tab.settle()
    page.get_by_role("button", name="Open the earlier version").click(delay=40)
    expect(page.get_by_text("A newer version with more evidence")).to_be_visible(timeout=20_000)
    expect(page.get_by_text("Superseded", exact=True).first).to_be_visible()
    expect(page.get_by_text("Decide that one instead")).to_be_visible()
    expect(page.get_by_role("button", name="Audit with this text")).to_have_count(0)
    tab.settle()
    page.get_by_role("button", name="Open the newer version").click(delay=40)
    expect(page.get_by_text("This is version 2 of the case")).to_be_visible(timeout=20_000)
    tab.assert_clean()
    assert server.workbench.store.cases.get("bridge@2").evidence[0].text == TEXT
    assert server.workbench.drafts.get(ADA, "evidence:bridge").values == {}


def test_pasted_text_survives_a_reload_and_a_rejection(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    tab = open_tab(server.base)
    page = tab.page
    open_as_ada(tab, "bridge%20of%20another")
    page.get_by_label("Text of 2").fill(TEXT)
    page.get_by_label("Text of 2").blur()
    expect(page.get_by_label("Text of 2")).to_have_value(TEXT)
    page.reload()
    tab.settle()
    expect(page.get_by_label("Text of 2")).to_have_value(TEXT)
    assert server.workbench.drafts.get(ADA, "evidence:bridge of another").values == {"2": TEXT}
    newer = server.workbench.versions.fill_evidence(
        ADA, "bridge of another", {"1": "Somebody else was faster."}
    )
    page.get_by_role("button", name="Audit with this text").click(delay=40)
    expect(page.get_by_text("The audit with the pasted text wasn't started.")).to_be_visible(
        timeout=20_000
    )
    expect(page.get_by_text("already has a newer version")).to_be_visible()
    assert server.workbench.drafts.get(ADA, "evidence:bridge of another").values == {"2": TEXT}
    assert newer.id == "bridge of another@2"
    tab.assert_clean()
