"""A new audit in a real browser: typed, started, watched, left, found again, stopped."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.conftest import Tab
from tests.browser.mounting import Mounted

OpenTab = Callable[..., Tab]
EVIDENCE = (
    "[1] The Sonder bridge is 120 metres long.\n\n[2] It was opened in 1931.\n\n[3] It carries two"
    " lanes."
)
ANSWER = (
    "The Sonder bridge is 210 metres long [1]. It was opened in 1931 [9]. It carries two lanes [3]."
)


def long_audit() -> tuple[str, str]:
    """Evidence and an answer that take the auditor a minute or more."""
    evidence = "\n".join(
        f"[{n}] Station {n} was opened in {1800 + n % 200} with {n} platforms."
        for n in range(1, 900)
    )
    told = (
        f"Station {n} was opened in {1801 + n % 200} with {n + 1} platforms [{n}]."
        for n in range(1, 899)
    )
    return evidence, " ".join(told)


def type_case(page: Page, question: str, evidence: str, answer: str = "") -> None:
    page.get_by_label("Question").fill(question)
    page.get_by_label("Evidence", exact=True).fill(evidence)
    page.get_by_label("Answer").fill(answer)
    page.get_by_label("Answer").blur()


def pick(page: Page, label: str, option: str) -> None:
    """Choose an option from a list, once it lies still: a list closes when the page scrolls."""
    field = page.get_by_role("combobox", name=label, exact=True)
    field.scroll_into_view_if_needed()
    expect(field).to_be_visible()
    before: object = None
    while (place := field.bounding_box()) != before:
        before = place
        page.wait_for_timeout(100)
    field.click(delay=40)
    page.get_by_role("option", name=option, exact=True).click(delay=40)


def start(page: Page) -> None:
    page.get_by_role("button", name="Start the audit").click(delay=40)
    expect(page).to_have_url(re.compile(r"job=\w+"), timeout=20_000)


def test_the_preview_never_replaces_an_id_that_is_being_typed(
    mount: Callable[..., Mounted],
) -> None:
    preview = mount("understood")

    def preview_of(*ids: str) -> dict[str, object]:
        chunks = [{"id": case_id, "text": "It is long."} for case_id in ids]
        said = {"title": "Understood", "question": "", "lines": [], "notes": [], "errors": []}
        return {**said, "chunks": chunks, "chunks_label": "Chunks", "more": "", "editable": True}

    shown = preview.draw(preview_of("1", "2"))
    field = shown.get_by_label("Id of chunk 1")
    field.fill("survey")
    preview.draw(preview_of("1", "plan"))
    expect(field).to_have_value("survey")
    field.press("Enter")
    [[_, name, edit]] = preview.page.evaluate("window.sent")
    assert (name, edit["index"], edit["id"], edit["name"]) == ("edit", 0, "1", "survey")
    preview.draw(preview_of("survey", "plan"))
    expect(shown.get_by_label("Id of chunk 2")).to_have_value("plan")
    shown.get_by_label("Id of chunk 2").fill("map")
    preview.draw(preview_of("survey", "plan", "3"))
    expect(shown.get_by_label(re.compile("Id of"))).to_have_count(2)
    shown.get_by_label("Id of chunk 2").blur()
    expect(shown.get_by_label(re.compile("Id of"))).to_have_count(3)


def test_the_preview_can_join_paragraphs_and_change_an_id(demo: str, open_tab: OpenTab) -> None:
    page = open_tab(demo).open("/new")
    type_case(
        page,
        "How long is it?",
        "The bridge is long.\n\nIt is 120 metres long.\n\nIt was opened in 1931.",
    )
    expect(page.get_by_label("Id of chunk 3")).to_have_value("3")
    expect(
        page.locator("label", has_text="Id").filter(has=page.get_by_label("Id of chunk 3"))
    ).to_be_visible()
    page.get_by_role("button", name="Join chunk 2 to the one above").click(delay=40)
    evidence = page.get_by_label("Evidence", exact=True)
    expect(evidence).to_have_value(
        "[1] The bridge is long.\n\nIt is 120 metres long.\n\n[3] It was opened in 1931."
    )
    expect(page.get_by_label("Id of chunk 2")).to_have_value("3")
    page.get_by_label("Id of chunk 2").fill("survey")
    page.get_by_label("Id of chunk 2").press("Enter")
    expect(evidence).to_have_value(re.compile(r"\[survey\] It was opened in 1931\.$"))
    page.get_by_label("Id of chunk 1").fill("survey")
    page.get_by_label("Id of chunk 1").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("would have the id survey of another chunk")


def test_text_retyped_after_the_field_was_filled_by_the_page_is_kept(
    demo: str, open_tab: OpenTab
) -> None:
    page = open_tab(demo).open("/new")
    question, understood = (
        page.get_by_label("Question"),
        page.get_by_role("region", name="Preview"),
    )
    expect(understood).to_be_visible(timeout=20_000)
    # what is posted first is lost on its way, and posted again
    question.evaluate(
        "area => { const root = area.closest('.root'), send = root.send; root.send = () => {"
        " root.send = send } }"
    )
    for _ in range(2):
        question.fill("Is it so?")
        question.blur()
        expect(understood.get_by_text("Is it so?")).to_be_visible(timeout=20_000)
        page.get_by_role("button", name="Fill in an example").click(delay=40)
        expect(understood.get_by_text("Is it so?")).to_be_hidden(timeout=20_000)


def test_a_long_audit_survives_reload_and_a_second_tab_and_can_be_stopped(
    demo: str, open_tab: OpenTab
) -> None:
    tab = open_tab(demo)
    page = tab.open("/new")
    type_case(page, "When were the stations opened?", *long_audit())
    expect(page.get_by_text("899 chunks:")).to_be_visible(timeout=30_000)
    start(page)
    stop = page.get_by_role("button", name="Stop", exact=True)
    expect(page.locator(".step.is-now")).to_be_visible(timeout=60_000)
    page.reload()
    expect(stop).to_be_visible(timeout=30_000)
    other = open_tab(demo)
    other.page.goto(page.url)
    expect(other.page.get_by_role("button", name="Stop", exact=True)).to_be_visible(timeout=30_000)
    other.page.get_by_role("button", name="Stop", exact=True).click(delay=40)
    expect(page.get_by_text("Audit stopped")).to_be_visible(timeout=120_000)
    expect(other.page.get_by_text("Audit stopped")).to_be_visible(timeout=30_000)


def test_saved_and_unconfirmed_text_survives_a_reload(demo: str, open_tab: OpenTab) -> None:
    tab = open_tab(demo)
    page = tab.open("/new")
    question = page.get_by_label("Question")
    question.fill("")
    question.press_sequentially("Half a quest")
    understood = page.get_by_role("region", name="Preview")
    # the server has it, and the field was never left
    expect(understood.get_by_text("Half a quest")).to_be_visible()
    tab.settle()
    page.context.set_offline(True)
    question.fill("Half a question")
    page.context.set_offline(False)
    page.reload()
    tab.settle()
    expect(question).to_have_value("Half a question")
    expect(understood.get_by_text("Half a question")).to_be_visible()
    page.reload()
    tab.settle()
    expect(page.get_by_text("This is your draft from")).to_be_visible()
    question.evaluate("area => { area.dataset.drawnOnce = 'yes' }")
    page.get_by_label("Answer").fill("An answer")
    page.get_by_label("Answer").blur()
    question.press("End")
    question.press_sequentially(" that goes on", delay=30)
    expect(page.get_by_text("This is your draft from")).to_be_hidden()
    expect(question).to_have_value("Half a question that goes on")
    assert question.get_attribute("data-drawn-once") == "yes", "the field was rebuilt"


def test_a_stored_case_can_be_picked_while_the_list_is_redrawn(
    demo: str, open_tab: OpenTab
) -> None:
    page = open_tab(demo, width=900, scheme="dark").open("/new")
    page.get_by_text("Pick a stored case").click(delay=40)
    search, choice = page.get_by_label("Search"), page.locator("button.pick").first
    expect(choice).to_be_visible()
    picked = str(choice.get_attribute("data-id"))
    search.fill("Halvorsen")
    choice.hover()
    # leaves the search field, which posts its words: the list that comes back is another one
    page.mouse.down()
    expect(page.get_by_text("Search to find them")).to_be_hidden()
    page.mouse.up()
    expect(page).to_have_url(re.compile(f"case={picked}"))
    expect(page.get_by_role("heading", name="The case")).to_be_visible()
    overflow = page.locator("[data-testid=stMain]").evaluate(
        "main => main.scrollWidth - main.clientWidth"
    )
    assert overflow <= 0
