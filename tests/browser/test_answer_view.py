"""Marks, reasons, legend, evidence, by the component alone; changes, issues followed and scores on
the case page.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from masis import run_audit
from masis.services import demo_cases
from masis.views.answer import answer_view, for_browser
from tests.browser.conftest import Scheme, Tab, bottom, top, until
from tests.browser.mounting import Mounted
from tests.browser.test_demo import FABRICATED, audited
from tests.cases import case_of

OpenTab = Callable[..., Tab]


def audited_answer(case_id: str) -> Any:
    """What the page of a demo case hands to the component, the case audited and its first iteration
    shown.
    """
    case = next(case for case in demo_cases() if case.id == case_id)
    return for_browser(answer_view(case, run_audit(case), 0))


@pytest.fixture(scope="module")
def fabricated() -> Any:
    """An answer with a fabricated reference, a figure that the evidence lacks, and one whose digits
    are swapped.

    The swapped one is in the words of the evidence: of the answer's own words it could be a figure
    of something else.
    """
    case = next(case for case in demo_cases() if case.id == FABRICATED)
    own = "Service and retrofit revenue grew by 41.2% to NOK 2,184 million in 2023"
    assert own in (case.answer or "")
    copied = "Service and retrofit revenue was NOK 2,184 million, an increase of 41.2%"
    case = case.model_copy(update={"answer": (case.answer or "").replace(own, copied)})
    return for_browser(answer_view(case, run_audit(case), 0))


@pytest.fixture
def answer_page(mount: Callable[..., Mounted], fabricated: Any) -> Page:
    """The component alone."""
    mounted = mount("answer_view")
    mounted.draw(fabricated)
    return mounted.page


@pytest.mark.parametrize("width", [900, 1440])
def test_the_review_reasons_fit_the_window_and_technical_details_are_collapsed(
    mount: Callable[..., Mounted], width: int
) -> None:
    mounted = mount("case_head")
    mounted.page.set_viewport_size({"width": width, "height": 800})
    headline = {
        "text": "The answer contradicts what it cites. " * 4,
        "tone": "bad",
        "others": "1 missing point",
    }
    reasons = ["A claim is contradicted. " * 12, "The audit ended with an error."]
    technical = "replay:/data/replies.jsonl holds no reply to this request. " * 4
    state = {"text": "Something is wrong", "tone": "bad", "meaning": ""}
    data = {"question": "Why?", "state": state, "facts": ["c1"], "headline": headline}
    data["reasons_title"] = "Why it needs review"
    root = mounted.draw(data | {"reasons": reasons, "technical": technical})
    root.get_by_text("Why it needs review").click()
    panel = root.locator(".reasons")
    expect(panel.get_by_text("replay:")).to_be_hidden()
    panel.get_by_text("Technical details").click()
    expect(panel.get_by_text("replay:")).to_be_visible()
    left, right, inner, shown = panel.evaluate(
        "box => [box.getBoundingClientRect().left, box.getBoundingClientRect().right,"
        " box.scrollWidth, box.clientWidth]"
    )
    assert (left >= 0, right <= width, inner <= shown) == (True, True, True)
    for go_on in (
        lambda: mounted.page.mouse.click(10, 790),
        lambda: mounted.page.keyboard.press("n"),
    ):
        expect(panel).to_be_visible()
        go_on()
        expect(panel).to_be_hidden()
        root.get_by_text("Why it needs review").click()


def test_every_mark_explains_itself_next_to_the_evidence_without_hovering(
    answer_page: Page,
) -> None:
    references = answer_page.locator(".text .ref")
    for place in range(references.count()):
        references.nth(place).click(delay=40)
        expect(answer_page.locator(".why-panel .reason-line").first).to_be_visible()
        assert answer_page.locator(".why-panel").inner_text().strip()
    answer_page.locator(".text .sentence-exempt").first.click(delay=40)
    expect(answer_page.locator(".why-panel")).to_contain_text("exempt")


def test_clicking_a_mark_scrolls_to_the_deciding_sentence_and_announces_it(
    answer_page: Page,
) -> None:
    answer_page.locator(".text .ref", has_text="chunk_4").click(delay=40)
    # the claim is not confirmed: nothing is green
    lit = answer_page.locator(".evidence .lit-near").first
    expect(lit).to_contain_text("Sørlige")
    expect(lit).to_be_in_viewport()
    panel = answer_page.locator(".why-panel")
    expect(panel).to_have_attribute("aria-live", "polite")
    expect(panel).to_contain_text("The most similar words are in")
    expect(panel.get_by_role("button", name="chunk_4")).to_be_visible()


def test_marks_and_evidence_can_be_used_with_the_keyboard(answer_page: Page) -> None:
    answer_page.locator(".text .ref-fabricated").focus()
    answer_page.keyboard.press("Enter")
    expect(answer_page.locator(".why-panel")).to_contain_text("No chunk has this id")
    answer_page.locator(".evidence .card[data-id=chunk_4] .card-head").focus()
    answer_page.keyboard.press("Space")
    expect(answer_page.locator(".text .mark.chosen").first).to_contain_text(
        "The main risk is timing"
    )
    expect(answer_page.locator(".why-panel")).to_contain_text(
        "Highlighted in the answer: 1 sentence that relies on chunk_4."
    )


def test_a_correction_starts_at_the_worst_issue_with_its_evidence_highlighted(
    answer_page: Page, fabricated: Any
) -> None:
    chosen = answer_page.evaluate(
        "() => { const { start, end } = view.showFaulty(); return [start, end] }"
    )
    words = "".join(
        piece["text"] for piece in fabricated["pieces"] if 1 in piece.get("issues", ())
    ).strip()
    assert "".join(piece["text"] for piece in fabricated["pieces"])[slice(*chosen)] == words
    expect(answer_page.locator(".why-panel")).to_contain_text("Issue 1")


def test_a_recorded_correction_is_shown_first_and_one_key_shows_the_marked_answer(
    mount: Callable[..., Mounted], fabricated: Any
) -> None:
    mounted = mount("answer_view")
    page = mounted.page
    mounted.draw({**fabricated, "corrected": [["same", "It is "], ["out", "1950"], ["in", "1931"]]})
    corrected, marked = page.locator(".text.corrected"), page.locator(".text:not(.corrected)")
    expect(corrected.locator("ins")).to_have_text("1931")
    expect(marked).to_be_hidden()
    expect(page.locator(".legend")).to_be_hidden()
    page.get_by_role("button", name="Original answer").click()
    expect(marked).to_be_visible()
    expect(corrected).to_be_hidden()
    assert page.evaluate("view.switchVersion()")
    expect(corrected).to_be_visible()
    page.evaluate("view.stepIssue(1)")  # its words are in the original
    expect(marked).to_be_visible()


def test_an_adjudication_opens_at_the_worst_issue_without_scrolling_the_page(
    mount: Callable[..., Mounted],
) -> None:
    mounted = mount("answer_view")
    mounted.page.set_viewport_size({"width": 1440, "height": 500})
    mounted.page.evaluate("""() => {
            const host = document.getElementById("host")
            host.className = "st-key-adjudication"
            host.setAttribute("style", "--pane: 240px; --pane-scroll: auto")
        }""")
    mounted.draw(audited_answer("history-02"))
    for passage in (".evidence .lit-against", ".answer .chosen"):
        expect(mounted.page.locator(passage).first).to_be_in_viewport()
    assert mounted.page.evaluate("window.scrollY") == 0
    legend, left = (
        mounted.page.locator(selector).bounding_box() for selector in (".legend", ".left")
    )
    assert legend
    assert left
    assert legend["y"] >= left["y"] or legend["y"] + legend["height"] <= left["y"], (
        "a sliver of it is seen"
    )
    # the page says it in words above
    expect(mounted.page.locator(".why-panel .reason")).to_have_count(0)


@pytest.mark.parametrize("pane", [215, 240, 275, 310, 345, 900])
def test_an_adjudication_cuts_no_line_of_the_answer_in_half(
    mount: Callable[..., Mounted], pane: int
) -> None:
    mounted = mount("answer_view")
    page = mounted.page
    mounted.page.set_viewport_size({"width": 1000, "height": 1000})
    page.evaluate(
        """pane => {
            const host = document.getElementById("host")
            host.className = "st-key-adjudication"
            host.setAttribute("style", `--pane: ${pane}px; --pane-scroll: auto`)
        }""",
        pane,
    )
    mounted.draw(audited_answer("history-02"))
    left = page.locator(".left")
    cut = """left => {
        const edge = left.getBoundingClientRect().top
        const range = document.createRange()
        range.selectNodeContents(left.querySelector(".text"))
        const lines = [...range.getClientRects()].filter(line => line.height < 60)
        return lines.filter(line => line.top < edge - 4 && line.bottom > edge + 4).length
    }"""
    assert left.evaluate(cut) == 0
    expect(page.locator(".answer .chosen").first).to_be_in_viewport()
    if pane == 900:  # all of it fits
        assert left.evaluate("left => left.scrollTop") == 0


def test_unused_evidence_is_labelled_as_unused(answer_page: Page) -> None:
    answer_page.locator(".evidence .card[data-id=chunk_5] .card-head").click(delay=40)
    expect(answer_page.locator(".why-panel")).to_contain_text(
        "No sentence of the answer relies on chunk_5."
    )


def test_the_legend_toggles_one_kind_of_mark_in_one_case(
    answer_page: Page, fabricated: Any
) -> None:
    mark = answer_page.locator(".text .ref-fabricated")
    key = answer_page.locator(".legend .key", has_text="fabricated")

    def is_struck_through() -> bool:
        return "line-through" in str(
            mark.evaluate("element => getComputedStyle(element).textDecorationLine")
        )

    assert is_struck_through()
    key.click(delay=40)
    expect(key).to_have_attribute("aria-pressed", "false")
    assert not is_struck_through()
    answer_page.get_by_role("button", name="Show all", exact=True).click(delay=40)
    expect(key).to_have_attribute("aria-pressed", "true")
    assert is_struck_through()
    key.click(delay=40)
    for version, shown in ((f"{fabricated['version']}/again", "false"), ("another/0", "true")):
        answer_page.evaluate("data => window.draw(data)", {**fabricated, "version": version})
        expect(key).to_have_attribute("aria-pressed", shown)


def test_figures_missing_from_the_evidence_have_their_own_legend_entry(
    answer_page: Page,
) -> None:
    page = answer_page
    # Streamlit's colors, which the component alone lacks: a frame of no color isn't drawn
    page.add_style_tag(content=":root { --st-gray-color: gray; --st-red-color: red }")
    figure, wrong = page.locator(".text .fact-figure"), page.locator(".text .fact-conflict")
    style = "element => getComputedStyle(element).outlineStyle"
    keys = page.locator(".legend .key")
    key = keys.filter(has_text="not in the evidence")
    expect(key.locator(".key-count")).to_have_text("1")
    assert key.locator(".sample").evaluate(style) == "dashed"
    hidden = ((key, "none", "solid"), (keys.filter(has_text="contradicted"), "dashed", "none"))
    for pressed, of_figure, of_wrong in hidden:
        pressed.click(delay=40)
        expect(figure).to_have_css("outline-style", of_figure)
        expect(wrong).to_have_css("outline-style", of_wrong)
        pressed.click(delay=40)


def test_marks_differ_in_shape_as_well_as_color(answer_page: Page) -> None:
    shapes = answer_page.locator(".text .ref").evaluate_all("""marks => marks.map(mark => {
          const style = getComputedStyle(mark), glyph = getComputedStyle(mark, "::before").content
          return [mark.className.match(/ref-[a-z]+/)[0], style.borderStyle, style.textDecorationLine, glyph].join(" ")
        })""")
    kinds = {shape.split(" ")[0]: shape.split(" ", 1)[1] for shape in shapes}
    assert len(kinds) >= 3
    assert len(set(kinds.values())) == len(kinds)


def test_a_contradicted_claim_highlights_the_contradicting_evidence(answer_page: Page) -> None:
    answer_page.set_viewport_size({"width": 1440, "height": 620})
    answer_page.locator(".text .mark", has_text="41.2%").first.click(delay=40)
    lit, reasons = (
        answer_page.locator(".evidence .lit-against", has_text="14.2%"),
        answer_page.locator(".why-panel"),
    )
    expect(lit).to_be_in_viewport(ratio=1)
    expect(reasons).to_contain_text("contradicted")
    # its card is shown whole, right below the reasons
    card = answer_page.locator(".card[data-id=chunk_2]")
    expect(card).to_be_in_viewport(ratio=1)
    assert 0 <= top(card) - bottom(reasons) < 40
    answer_page.set_viewport_size({"width": 1440, "height": 900})


def test_a_wide_page_steps_through_issues_explains_scores_and_keeps_the_decision_visible(
    demo: str, open_tab: OpenTab
) -> None:
    tab = open_tab(demo)
    audited(tab, FABRICATED)
    page, form = tab.page, tab.page.get_by_role("region", name="Decision")
    followed = page.get_by_role("table", name="Issues across iterations")
    expect(followed.locator("tr", has_text="names no evidence")).to_contain_text("fixed")
    expect(page.get_by_text("it has the highest quality")).to_be_visible()
    page.get_by_text("Calculation of the scores of iteration 1").click(delay=40)
    origin = page.get_by_role("table", name="Calculation of the scores").locator(
        "tr", has_text="Confidence"
    )
    expect(origin).to_contain_text("× 0.5 for 1 fabricated reference")
    expect(page.get_by_role("table", name="Measurements behind the scores")).to_be_visible()
    page.get_by_role("table", name="Scores by iteration").scroll_into_view_if_needed()
    expect(form.get_by_role("button", name=re.compile("Submit"))).to_be_in_viewport()
    # a mark leads to the label of its claim or reference, by click and by key
    page.locator(".text .ref-fabricated").click(delay=40)
    page.locator(".why-panel").get_by_role("button", name="Label this reference").first.click(
        delay=40
    )
    shown = page.get_by_role("region", name=re.compile("^Label: reference"))
    expect(shown).to_be_focused()
    expect(shown).to_contain_text("fabricated")
    page.keyboard.press("Escape")
    page.locator(".text .ref", has_text="chunk_4").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("l")
    expect(shown).to_contain_text("“[chunk_4]”")
    # the list of all labels is in the form
    form.get_by_text("Label single claims and references").click(delay=40)
    expect(form.get_by_label(re.compile(r"^Reference \[chunk_4\]"))).to_be_visible()


def test_in_a_narrow_window_evidence_is_a_tab_and_keys_reach_issues_and_the_form(
    demo: str, open_tab: OpenTab
) -> None:
    tab = open_tab(demo, width=900)
    audited(tab, FABRICATED)
    page = tab.page
    decision, evidence = (
        page.get_by_role("region", name="Decision"),
        page.locator(".evidence .card").first,
    )
    expect(decision.get_by_role("button", name="Submit")).to_be_in_viewport()
    expect(evidence).to_be_hidden()
    page.get_by_role("tab", name="Evidence").click(delay=40)
    expect(evidence).to_be_in_viewport()
    expect(decision).to_be_in_viewport()
    tags = page.locator(".text .tag")
    page.keyboard.press("f")  # the gravest first, which the headline names
    gravest, reasons = tags.filter(has_text="fabricated"), page.locator(".why-panel")
    expect(gravest).to_be_focused()
    expect(reasons).to_contain_text("Issue 1")
    page.keyboard.press("f")
    expect(tags.and_(page.locator(":focus"))).to_have_count(1)
    expect(gravest).not_to_be_focused()
    page.keyboard.press("Shift+F")
    expect(gravest).to_be_focused()
    page.keyboard.press("Escape")
    expect(reasons).to_be_hidden()
    page.keyboard.press("f")
    reasons.get_by_role("button", name="Close the reasons").click(delay=40)
    expect(reasons).to_be_hidden()
    # a marker leads to its evidence, and a key back to the marker
    marker, card = (
        page.locator(".text .ref", has_text="chunk_4"),
        page.locator(".evidence .card[data-id=chunk_4]"),
    )
    for back in (
        lambda: page.keyboard.press("g"),
        page.get_by_role("button", name="Back to the answer").click,
    ):
        marker.click(delay=40)
        expect(card.locator(".card-head")).to_be_focused()
        expect(card.locator(".card-head")).to_be_in_viewport(ratio=1)
        back()
        expect(marker).to_be_focused()
        expect(marker).to_be_in_viewport(ratio=1)
    page.keyboard.press("g")
    expect(evidence).to_be_visible()
    expect(page.get_by_role("tab", name="Evidence")).to_be_in_viewport(ratio=1)
    page.keyboard.press("o")  # the correction is beside the evidence that it is written from
    expect(page.locator("#corrected")).to_be_in_viewport(ratio=1)
    expect(page.locator(".evidence .lit-against")).to_be_in_viewport()
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    page.keyboard.press("g")
    expect(marker).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_editor_of_a_correction_hides_neither_the_answer_nor_the_evidence(
    demo: str, open_tab: OpenTab, scheme: Scheme
) -> None:
    tab = open_tab(demo, scheme=scheme)
    audited(tab, FABRICATED)
    page = tab.page
    answer, evidence = page.locator(".answer .text"), page.locator(".evidence")
    expect(page.locator(".panel[data-ready=true]")).to_have_count(1)
    for width in (900, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        before = box_of(answer)
        page.keyboard.press("o")
        for part in (".verdict.chosen", "#corrected", ".foot .check", ".primary"):
            expect(page.locator(f".panel {part}")).to_be_in_viewport(ratio=1)
        keeps_its_place(answer, before)
        editor = box_of(page.locator(".editor"))
        assert editor["height"] > 150
        if width == 900:  # answer and evidence are tabs, and the editor is beside them
            assert editor["x"] >= before["x"] + before["width"]
        else:  # they are side by side, and the editor below both has their width
            assert editor["width"] >= before["width"]
            assert max(before["y"], 0) + 150 < editor["y"]
            until(
                lambda top=editor["y"]: bottom(evidence) <= top, page, "the evidence ends above it"
            )
        page.keyboard.press("Escape")
    # the form is as wide as its panel again, and not as the answer below which it was
    page.set_viewport_size({"width": 900, "height": 900})
    page.keyboard.press("o")
    panel = box_of(page.locator(".panel"))
    for part in (".editor", "#corrected"):
        until(
            lambda part=part: box_of(page.locator(part))["width"] <= panel["width"],
            page,
            f"{part} fits the panel",
        )
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 1440, "height": 900})
    last = page.locator(".evidence .card").last
    last.scroll_into_view_if_needed()
    expect(last).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Discard draft").click(delay=40)
    expect(page.get_by_label("Corrected answer")).to_be_hidden()


def box_of(part: Locator) -> FloatRect:
    """Return the place of a part that the page shows."""
    box = part.bounding_box()
    assert box
    return box


def keeps_its_place(part: Locator, place: FloatRect | None) -> None:
    """Wait until a part of the page is where it was."""
    until(lambda: part.bounding_box() == place, part.page, "it keeps its place")


def test_a_card_shows_the_number_by_which_the_answer_cites_it(
    mount: Callable[..., Mounted],
) -> None:
    case = case_of(
        "Ice is cold [2]. It floats on water [2].", {"a": "Ice is old.", "b": "Ice is cold."}
    )
    mounted = mount("answer_view")
    mounted.draw(for_browser(answer_view(case, run_audit(case), 0)))
    cards = mounted.page.locator(".card")
    expect(cards.nth(1).locator(".cited-as")).to_have_text("[2]")
    expect(cards.nth(1)).to_contain_text("cited by 2 sentences")
    expect(cards.nth(0).locator(".cited-as")).to_have_count(0)


def test_a_long_id_breaks_only_after_separators(mount: Callable[..., Mounted]) -> None:
    name = (
        "retrieval-evaluation_2026-11-quarterly-benchmark_regulated-medicines_subset-B_case-000417"
    )
    cell = {"text": "How long is it?", "href": "review", "open": name, "below": [f"Law  ·  {name}"]}
    column = {"title": "Question", "kind": "main", "hide": ""}
    mounted = mount("linked_table", "row_keys")
    mounted.page.set_viewport_size({"width": 320, "height": 600})
    row = {"cells": [cell], "open": name, "marked": False}
    below = mounted.draw({"columns": [column], "rows": [row], "description": "Cases"}).locator(
        ".below"
    )
    assert below.text_content() == f"Law  ·  {name}"
    lines = below.evaluate("""box => { const lines = {}, range = document.createRange()
          for (const text of box.childNodes) for (let at = 0; at < (text.data ?? "").length; at += 1) {
            range.setStart(text, at); range.setEnd(text, at + 1)
            const line = Math.round(range.getBoundingClientRect().top)
            lines[line] = (lines[line] ?? "") + text.data[at]
          }
          return Object.keys(lines).map(Number).sort((a, b) => a - b).map(line => lines[line]) }""")
    assert len(lines) > 1
    assert all(line.rstrip()[-1] in "-_·" for line in lines[:-1])


def test_the_queue_continues_at_the_next_row_when_a_case_has_left_it(
    mount: Callable[..., Mounted],
) -> None:
    columns = [{"title": "Question", "kind": "main", "hide": ""}]
    cells = [
        {"text": name, "href": f"review?case={name}", "open": name} for name in ("a", "b", "c")
    ]
    rows = [{"cells": [cell], "open": cell["open"], "marked": False} for cell in cells]
    mounted = mount("linked_table", "row_keys")
    mounted.draw({"columns": columns, "rows": rows, "description": "Cases", "sticky_header": True})
    mounted.page.evaluate("window.masisLeft = 'b'")
    table = mounted.draw(
        {
            "columns": columns,
            "rows": [rows[0], rows[2]],
            "description": "Cases",
            "sticky_header": True,
        }
    )
    expect(table.get_by_role("link", name="c")).to_be_focused()


def test_the_row_that_j_goes_on_from_is_outlined_although_the_mouse_was_used_last(
    mount: Callable[..., Mounted],
) -> None:
    columns = [{"title": "Question", "kind": "main", "hide": ""}]
    cells = [{"text": name, "href": f"review?case={name}", "open": name} for name in ("a", "b")]
    rows = [{"cells": [cell], "open": cell["open"], "marked": False} for cell in cells]
    data = {"columns": columns, "rows": rows, "description": "Cases", "sticky_header": True}
    mounted = mount("linked_table", "row_keys")
    page = mounted.page
    page.evaluate("document.body.style.setProperty('--st-primary-color', 'teal')")
    page.mouse.click(5, 5)
    page.evaluate("window.masisLeft = 'b'")
    link = mounted.draw(data).get_by_role("link", name="b")
    expect(link).to_be_focused()
    outline = "each => getComputedStyle(each).outlineStyle"
    assert link.evaluate(outline) == "solid"
    # a row that couldn't get the focus doesn't get it when the list changes later
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<input id=other>')")
    page.locator("#other").focus()
    page.evaluate("window.masisLeft = 'a'")
    mounted.draw({**data, "description": "Others"})
    page.wait_for_function("window.masisLeft === ''")
    expect(page.locator("#other")).to_be_focused()


def test_counts_in_tables_have_thousands_separators(mount: Callable[..., Mounted]) -> None:
    columns = [{"title": title, "kind": "figure", "hide": ""} for title in ("Approved", "Rejected")]
    row = {
        "cells": [1520, None, {"text": "Ana", "href": "queue?assignee=Ana"}],
        "open": None,
        "marked": False,
    }
    mounted = mount("linked_table", "row_keys")
    columns.append({"title": "Reviewer", "kind": "", "hide": ""})
    table = mounted.draw({"columns": columns, "rows": [row], "description": "Reviewers"})
    assert table.locator("td").all_text_contents() == ["1,520", "–", "Ana"]
    table.get_by_role("link").click()
    assert mounted.messages_sent() == [("trigger", "open", "queue?assignee=Ana")], (
        "a link that opens no row leads where it says"
    )


def test_f_continues_from_the_clicked_issue_and_scrolls_to_its_start(
    answer_page: Page,
) -> None:
    page, panel = answer_page, answer_page.locator(".why-panel")
    page.locator(".issue-head").nth(1).click(delay=40)
    expect(panel).to_contain_text("Issue 2,")
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": 750, "height": 260})
    page.evaluate("document.body.style.paddingBottom = '2000px'")
    page.evaluate(
        "scrollTo(0, document.querySelector('#host').getBoundingClientRect().bottom + scrollY)"
    )
    page.evaluate("view.stepIssue(-1)")
    expect(panel).to_contain_text("Issue 1,")
    box = page.locator(".text .mark.chosen").first.bounding_box()
    assert box
    assert box["y"] >= 64, "the head of the page lies over it"


def test_a_critic_issue_about_an_already_listed_fault_appears_only_on_its_card(
    mount: Callable[..., Mounted], fabricated: Any
) -> None:
    first = fabricated["issues"][0]
    also = [
        {**first, "reason": f"Said by {who}.", "restates": who == "critic"}
        for who in ("critic", "a check")
    ]
    mounted = mount("answer_view")
    root = mounted.draw({**fabricated, "issues": [{**first, "also": also}]})
    mounted.page.evaluate("view.stepIssue(1)")
    expect(root.locator(".why-panel")).to_contain_text("Said by a check.")
    expect(root.locator(".why-panel")).not_to_contain_text("Said by critic.")
    expect(root.locator(".issue")).to_contain_text("Said by critic.")


def test_a_missing_point_is_shown_with_its_passage_and_can_be_inserted(
    mount: Callable[..., Mounted], fabricated: Any
) -> None:
    point = {
        "number": 9,
        "claim": -9,
        "placed": False,
        "evidence": ["chunk_4"],
        "insert": {"text": "Ice [chunk_4].", "says": "Ice", "after": "It is."},
    }
    missing = {
        **fabricated["issues"][0],
        **point,
        "description": "Ice",
        "reason": "Asked for.",
        "also": [],
    }
    cards = [
        {**chunk, "pieces": [{"text": "It speaks of ice.", "claims": [-9]}]}
        for chunk in fabricated["evidence"]
    ]
    mounted = mount("answer_view")
    mounted.draw({**fabricated, "issues": [*fabricated["issues"], missing], "evidence": cards})
    page, panel = mounted.page, mounted.page.locator(".why-panel")
    for _ in range(len(fabricated["issues"]) + 1):  # claims that aren't confirmed come after issues
        page.evaluate("view.stepIssue(1)")
    expect(page.locator(".issue").last).to_be_in_viewport(ratio=1)
    expect(panel).to_contain_text("Ice")
    expect(panel).to_contain_text("Asked for.")
    expect(page.locator(".evidence .lit-near").first).to_have_text("It speaks of ice.")
    insert = panel.get_by_role("button", name="Insert into the correction")
    insert.click(delay=40)
    assert page.evaluate("window.inserted") == {
        "text": "Ice [chunk_4].",
        "says": "Ice",
        "after": "It is.",
    }
    for correction, offered in (("It is. Ice [chunk_4].", False), ("It is.", True)):
        page.evaluate("text => { window.correction = text; view.onCorrection() }", correction)
        expect(insert).to_be_visible(visible=offered)


def test_a_correction_lists_the_issues_it_leaves_unchanged(
    mount: Callable[..., Mounted],
) -> None:
    case = case_of(
        "The bridge is 210 metres long [c1]. It was opened in 1950 [c9]. It was painted in 1960"
        " [c8].",
        {"c1": "The bridge is 120 metres long. It was opened in 1931."},
    )
    mounted = mount("answer_view")
    data = answer_view(case, run_audit(case), 0)
    mounted.draw(data)
    number = {issue["label"]["text"]: issue["number"] for issue in data["issues"]}
    assert [issue["label"]["text"] for issue in data["issues"]].count("fabricated") == 2

    def numbers_left(corrected: str) -> list[int]:
        asked = """corrected => {
            const { count, left } = view.untouched(corrected)
            return [count, ...left.map(element => element.number)]
        }"""
        count, *numbers = mounted.page.evaluate(asked, corrected)
        assert count == len(data["issues"])
        return sorted(numbers)

    answer = case.answer or ""
    everything = sorted(issue["number"] for issue in data["issues"])
    assert numbers_left(answer) == everything
    assert number["contradicted"] not in numbers_left(answer.replace("210", "120"))
    assert len(numbers_left(answer.replace("1960 [c8]", "1960"))) == len(everything) - 1


def test_a_missing_point_is_said_only_by_what_a_correction_adds(
    mount: Callable[..., Mounted], fabricated: Any
) -> None:
    listed = """Changes:
- a scan for unknown certificates, due on 15 March [c4]
- an external alert 21 days before a certificate expires [c4]"""
    says = "The external alert is due on 15 March"
    point = {"claim": -1, "placed": False, "also": [], "number": 1, "evidence": []}
    insert = {"text": f"{says} [c4].", "says": says, "after": ""}
    issue = {**fabricated["issues"][0], **point, "description": f"{says}.", "insert": insert}
    mounted = mount("answer_view")
    page, button = mounted.page, mounted.page.get_by_role("button", name="Insert into")
    # in a list, and in one sentence that has all words of the point about other things
    for answer in (listed, " ".join(listed.replace("]\n-", "];").split())):
        pieces = [{"text": answer, "sentence": 0}]
        version = {**fabricated, "version": answer, "pieces": pieces, "blocks": []}
        mounted.draw({**version, "issues": [issue]})
        page.evaluate("view.stepIssue(1)")
        for old, new, is_said in (
            ("", "", False),
            ("before a", "before, a", False),
            ("a scan", "the scan", False),
            ("unknown certificates", "certificates", False),
            ("an external", "a second external", False),
            ("expires", "expires, due on 15 March", True),
            ("an external alert", "External alerting, from 15 March on,", True),
            ("expires [c4]", "expires [c4]. The external alert is due on 15 March [c4].", True),
            ("expires [c4]", "expires [c4]. The external alert is due on 16 March [c4].", False),
        ):
            assert old in answer
            corrected = answer.replace(old, new, 1)
            left = page.evaluate(
                """text => {
                    window.correction = text
                    view.onCorrection()
                    return view.untouched(text).left.length
                }""",
                corrected,
            )
            assert (left == 0) == is_said, corrected
            if not is_said:  # what it lacks can be inserted
                expect(button).to_be_visible()


def test_an_issue_marks_the_claim_even_if_the_critic_quotes_the_sentence(
    mount: Callable[..., Mounted], fabricated: Any
) -> None:
    pieces = [
        {"text": "A has two", "sentence": 0, "issues": [1], "claims": [0], "ends": [1]},
        {"text": ", and B has three.", "sentence": 0, "issues": [1, 2], "claims": [1], "ends": [2]},
    ]
    issues = [
        {**fabricated["issues"][0], "number": number, "claim": number - 1} for number in (1, 2)
    ]
    mounted = mount("answer_view")
    mounted.draw({**fabricated, "pieces": pieces, "blocks": [], "issues": issues})
    asked = """corrected => {
        const [correct, untouched] = [view.showFaulty(), view.untouched(corrected)]
        return [correct.start, correct.end, correct.answer, ...untouched.left.map(element => element.number)]
    }"""
    expected = [0, len("A has two"), "A has two, and B has three.", 2]
    assert mounted.page.evaluate(asked, "A has one, and B has three.") == expected


@pytest.mark.parametrize(
    ("about", "finding", "chosen"),
    [
        ({"claims": [0]}, "", "two lanes"),
        ({"claims": [0], "fact": ""}, "", "A has two lanes"),
        # the critic, of the sentence: without the citation that holds
        ({"fact": ""}, "", "A has two lanes"),
        ({"fact": "", "reference": "misattributed"}, "misattributed", "[c1]"),
        # about its words, not its citation
        ({"fact": "", "reference": "misattributed"}, "", "A has two lanes [c1]"),
        ({"fact": "", "reference": "fabricated"}, "", "A has two lanes [c1]"),
    ],
)
def test_a_correction_selects_the_wrong_words_and_keeps_the_valid_citation(
    mount: Callable[..., Mounted], fabricated: Any, about: dict[str, Any], finding: str, chosen: str
) -> None:
    cited = {"reference": about.pop("reference", "valid"), "citation": 0, "evidence": "chunk_1"}
    marks = {"sentence": 0, "issues": [1]}
    fact = {"fact": about.pop("fact", "conflict")}
    pieces = [
        {"text": "A has ", **marks, **about},
        {"text": "two lanes", **marks, **about, **(fact if fact["fact"] else {})},
        {"text": " ", **marks},
        {"text": "[c1]", **marks, **cited},
        {"text": ".", **marks, "ends": [1]},
    ]
    label = {**fabricated["issues"][0]["label"], "text": "however it is worded"}
    issue = {**fabricated["issues"][0], "number": 1, "label": label}
    issue.pop("claim", None)
    if finding:
        issue["reference"] = finding
    mounted = mount("answer_view")
    mounted.draw(
        {
            **fabricated,
            "pieces": pieces,
            "blocks": [],
            "issues": [issue | ({"claim": 0} if "claims" in about else {})],
        }
    )
    asked = "() => { const { start, end } = view.showFaulty(); return [start, end] }"
    assert "A has two lanes [c1]."[slice(*mounted.page.evaluate(asked))] == chosen


def test_the_card_of_an_uncited_sentence_quotes_it_and_names_matching_evidence(
    mount: Callable[..., Mounted],
) -> None:
    page = mount("answer_view")
    card = page.draw(audited_answer("policy-02")).locator(
        ".issue", has_text="This sentence asserts something and cites nothing"
    )
    expect(card.first).to_contain_text("“Milk is exempt.”")
    card.first.locator(".issue-head").click(delay=40)
    expect(page.page.locator(".why-panel")).to_contain_text(
        "Not confirmed. The most similar words are in chunk_1"
    )
