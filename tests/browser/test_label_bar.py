"""Labels with evidence on the page of a case: by keys alone, with the mouse, and what becomes of
them in a draft, a decision, an undo and an adjudication.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from masis.schema.case import Case
from masis.schema.labels import TargetLabel
from masis.schema.review import Decision
from masis.schema.team import QueuePolicy
from tests.browser.conftest import Tab, until
from tests.browser.test_accessibility import AXE, grave
from tests.browser.test_decision import ReviewServer, open_case
from tests.reviewing import ADA, decide

OpenTab = Callable[..., Tab]
ANSWER = "The 🌉 bridge opened in 1950 [c1]. It is 120 metres long [c3]. It is grey [c9]."
LONG = "🌉 The bridge is painted. " * 80 + "It is grey, says the 🌉 survey. It is old."
EVIDENCE = [
    {"id": "c1", "text": "🌉 The bridge is **old**. The 🌉 bridge opened in 1931. Ada built it."},
    {"id": "c2", "text": "The bridge is 120 metres long. It is narrow."},
    {"id": "c3", "text": "The bridge is in Halden."},
    {"id": "c4", "text": LONG},
]
"""Emoji before the passages, markup, and a chunk that the page folds."""


def bridge(case_id: str) -> Case:
    answer = f"Look. {ANSWER}" if case_id == "place" else ANSWER
    return Case.model_validate(
        {"id": case_id, "query": f"About {case_id}?", "answer": answer, "evidence": EVIDENCE}
    )


CASES = ("keys", "mouse", "report", "place")


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewServer]:
    served = ReviewServer(tmp_path_factory.mktemp("labels"))
    for case_id in CASES:
        served.workbench.cases.add(ADA, [bridge(case_id)])
        served.workbench.audits.audit(ADA, bridge(case_id))
    served.start()
    yield served
    served.kill()


def opened(tab: Tab, case_id: str, name: str = "Ada") -> Locator:
    tab.page.add_init_script(f"localStorage.setItem('masis-reviewer', '{name}')")
    found = open_case(tab, case_id)
    expect(found).to_have_attribute("data-ready", "true")
    if (field := found.get_by_label("Your name")).is_visible():
        field.fill(name)
        field.press("Enter")
        expect(field).to_be_hidden()
    tab.settle()
    expect(found).to_have_attribute("data-ready", "true")
    return found


def bar(page: Page) -> Locator:
    return page.get_by_role("region", name=re.compile("^Label: "))


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def labels_of(server: ReviewServer, case_id: str) -> list[TargetLabel]:
    made = [each for each in server.decisions(case_id) if each.verdict is not None]
    return list(made[-1].labels)


def by_words(labels: list[TargetLabel], words: str) -> TargetLabel:
    return next(each for each in labels if each.text.startswith(words))


def quoted(label: TargetLabel) -> list[tuple[str, str, str]]:
    """Chunk, words and stance of each passage, with the words read from the stored chunk."""
    texts = {each["id"]: each["text"] for each in EVIDENCE}
    return [
        (each.evidence_id, texts[each.evidence_id][each.start : each.end], each.stance)
        for each in label.evidence
    ]


def go_to(page: Page, words: str) -> None:
    """Press J until the bar is about these words."""
    for _ in range(12):
        if words in bar(page).locator(".bar-words").inner_text():
            return
        press(page, "j")
    pytest.fail(f"no part has the words {words}")


def test_claims_references_and_chunks_are_labelled_by_keys_alone(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    tab = open_tab(server.base)
    found = opened(tab, "keys")
    page = tab.page
    press(page, "l")
    shown = bar(page)
    expect(shown).to_be_focused()
    expect(shown).to_contain_text("bridge opened in 1950")
    # one key confirms what the audit says, with its passage
    expect(shown.get_by_role("group", name="The audit's passage")).to_contain_text(
        "The 🌉 bridge opened in 1931."
    )
    press(page, "y")
    expect(shown.get_by_role("list", name="Passages named")).to_contain_text("c1 contradicts")
    expect(shown.get_by_role("button", name="contradicted")).to_have_attribute(
        "aria-pressed", "true"
    )
    page.evaluate(AXE)
    assert not grave(page)
    # a passage alone gives the label as well; the cursor goes through the sentences
    go_to(page, "It is 120 metres long")
    press(page, "0")
    for _ in range(8):
        press(page, "ArrowDown")
        if "sentence 1 of 2: “The bridge is 120" in shown.get_by_role("status").inner_text():
            break
    press(page, "s", "p")
    expect(shown.get_by_role("button", name="supported", exact=True).first).to_have_attribute(
        "aria-pressed", "true"
    )
    # a wrong reference is given its right one by the number of a chunk
    go_to(page, "“[c3]”")
    press(page, "3")
    expect(shown.get_by_role("group", name="Right reference")).to_be_visible()
    press(page, "2")
    expect(shown).to_contain_text("Right reference: c2")
    press(page, "a")  # no verdict meanwhile
    expect(shown.get_by_role("status")).to_contain_text("The label bar is open")
    press(page, "Enter")
    expect(shown).to_be_hidden()
    # a chunk, whose card has the focus, contradicts another one
    page.locator(".card[data-id=c4] .card-head").focus()
    press(page, "l", "3", "1", "Escape")
    expect(page.locator(".card[data-id=c4]").get_by_role("button", pressed=True)).to_have_text(
        "contradicts c1"
    )
    page.locator(".card[data-id=c3] .card-head").focus()
    press(page, "l", "2", "Enter")
    press(page, "Shift+L")
    page.keyboard.type("its colour")
    press(page, "Escape")
    until(lambda: server.drafted("keys", "missing") == "its colour", page, "the draft")
    # a reload in the middle loses nothing
    tab.open(page.url.removeprefix(server.base))
    tab.settle()
    expect(page.get_by_label("What the missing passage would say")).to_have_value("its colour")
    found.get_by_text(
        "Labels given: 3 on claims and references, 2 on chunks, 1 on the evidence"
    ).click(delay=40)
    expect(found.locator(".label-rows")).to_contain_text(
        "c1 contradicts: “The 🌉 bridge opened in 1931.”"
    )
    expect(found).to_have_attribute("data-ready", "true")
    press(page, "x", "1", "Control+Enter")
    expect(found.get_by_role("status").first).to_contain_text("Rejected")
    labels = labels_of(server, "keys")
    claim = by_words(labels, "The 🌉 bridge")
    assert claim.label == "contradicted"
    assert quoted(claim) == [("c1", "The 🌉 bridge opened in 1931.", "contradicts")]
    length = by_words(labels, "It is 120")
    assert (length.label, length.kind) == ("supported", "paraphrase")
    assert quoted(length) == [("c2", "The bridge is 120 metres long.", "supports")]
    reference = by_words(labels, "c3")
    assert (reference.label, reference.right_reference) == ("misattributed", "c2")
    assert {
        (each.target, each.evidence_id, each.label, each.conflicts_with, each.note)
        for each in labels
        if each.target in ("evidence", "case")
    } == {
        ("evidence", "c4", "conflicting", "c1", ""),
        ("evidence", "c3", "irrelevant", None, ""),
        ("case", None, "passage_missing", None, "its colour"),
    }
    # what stands names the passages and the cause, and an undo brings everything back
    standing = found.locator(".standing")
    expect(standing).to_contain_text("c1 contradicts: “The 🌉 bridge opened in 1931.”")
    expect(standing).to_contain_text("cause: generation")
    expect(standing).to_contain_text("cause: citation")
    tab.settle()
    standing.get_by_role("button", name="Undo").click(delay=40)
    expect(found.get_by_role("status").first).to_contain_text("Your entries are back in the form.")
    expect(
        found.get_by_text(
            "Labels given: 3 on claims and references, 2 on chunks, 1 on the evidence"
        )
    ).to_be_visible()
    expect(page.locator(".card[data-id=c4]").get_by_role("button", pressed=True)).to_have_text(
        "contradicts c1"
    )
    tab.assert_clean()


def select_in(page: Page, chunk: str, words: str) -> None:
    """Select words of a chunk; with the mouse they could be on two lines."""
    page.locator(f".card[data-id={chunk}] .card-text").evaluate(
        """(box, words) => {
            const texts = document.createTreeWalker(box, NodeFilter.SHOW_TEXT)
            while (texts.nextNode()) {
                const node = texts.currentNode
                const at = node.data.indexOf(words)
                if (at < 0) continue
                getSelection().setBaseAndExtent(node, at, node, at + words.length)
                return
            }
        }""",
        words,
    )


def test_words_of_a_folded_chunk_are_named_with_the_mouse_and_taken_back(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    tab = open_tab(server.base)
    found = opened(tab, "mouse")
    page = tab.page
    page.locator(".text .ref-fabricated").click(delay=40)
    page.locator(".why-panel").get_by_role("button", name="Label this reference").first.click(
        delay=40
    )
    shown = bar(page)
    shown.get_by_role("button", name="fabricated").click(delay=40)
    page.locator(".card[data-id=c4] .card-head").click(delay=40)
    expect(shown).to_contain_text("Right reference: c4")
    # what the audit compared is in a folded chunk, which opens with it
    expect(page.locator(".card-text.folded")).to_have_count(0)
    select_in(page, "c4", "grey, says the 🌉 survey")
    shown.get_by_role("button", name="Supports").click(delay=40)
    shown.get_by_role("button", name="inference").click(delay=40)
    passages = shown.get_by_role("list", name="Passages named")
    expect(passages).to_contain_text("c4 supports “grey, says the 🌉 survey”")
    # each step can be undone alone, and Remove takes the passage away
    press(page, "u")
    expect(shown.get_by_role("button", name="inference")).to_have_attribute("aria-pressed", "false")
    press(page, "i")
    card = page.locator(".card[data-id=c2]")
    card.get_by_role("button", name="relevant", exact=True).click(delay=40)
    expect(card.get_by_role("button", pressed=True)).to_have_text("relevant")
    expect(found).to_have_attribute("data-ready", "true")
    found.get_by_text("Reject", exact=True).click(delay=40)
    found.get_by_text("Says more than the evidence").click(delay=40)
    found.get_by_role("button", name="Submit: reject").click(delay=40)
    expect(found.get_by_role("status").first).to_contain_text("Rejected")
    reference, chunk = labels_of(server, "mouse")
    assert (reference.label, reference.right_reference, reference.kind) == (
        "fabricated",
        "c4",
        "inference",
    )
    assert quoted(reference) == [("c4", "grey, says the 🌉 survey", "supports")]
    assert (chunk.evidence_id, chunk.label) == ("c2", "relevant")
    tab.assert_clean()


def test_a_reported_issue_names_passages_in_a_narrow_dark_window(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    tab = open_tab(server.base, width=900, scheme="dark")
    found = opened(tab, "report")
    page = tab.page
    press(page, "m", "ArrowDown", "Tab", "3", "Control+Enter")
    expect(found.get_by_role("region", name=re.compile("^Issues"))).to_contain_text("120 metres")
    press(page, "l")
    shown = bar(page)
    expect(shown).to_contain_text("Reported issue")
    press(page, "ArrowDown")  # it starts at the chunk that the reported sentence cites
    expect(shown.get_by_role("status")).to_contain_text("c3, sentence 1 of 1")
    press(page, "ArrowUp", "ArrowUp")
    expect(shown.get_by_role("status")).to_contain_text("c2, sentence 1 of 2")
    expect(page.locator(".card[data-id=c2]")).to_be_in_viewport()
    press(page, "Shift+ArrowDown", "c")
    expect(shown).to_contain_text(
        "c2 contradicts the words “The bridge is 120 metres long. It is narrow.”"
    )
    page.evaluate(AXE)
    assert not grave(page)
    press(page, "Enter")
    expect(shown).to_be_hidden()
    expect(found).to_have_attribute("data-ready", "true")
    press(page, "x", "1", "Control+Enter")
    expect(found.get_by_role("status").first).to_contain_text("Rejected")
    (label,) = labels_of(server, "report")
    assert label.reports
    assert quoted(label) == [("c2", "The bridge is 120 metres long. It is narrow.", "contradicts")]
    expect(found.locator(".standing")).to_contain_text("c2 contradicts: “The bridge is 120")
    tab.assert_clean()


def test_a_lead_takes_over_a_reviewers_labels_with_their_passages(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    server.workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2, machine="after"))
    try:
        case = bridge("shared")
        server.workbench.cases.add(ADA, [case])
        server.workbench.audits.audit(ADA, case)
        tab = open_tab(server.base)
        found = opened(tab, "shared")
        page = tab.page
        # the audit's results are hidden: it offers no passage and no part of the answer
        press(page, "l")
        expect(found.get_by_role("status").first).to_contain_text("no claim or reference")
        expect(page.get_by_text("Confirm the audit's passage")).to_have_count(0)
        press(page, "m", "Tab", "3", "Control+Enter", "l")
        for _ in range(3):
            press(page, "ArrowDown")
        press(page, "ArrowUp", "c", "Enter", "x", "1", "Control+Enter")
        expect(found.get_by_role("status").first).to_contain_text("Rejected")
        decide(server.workbench, case.id, "approve", "Ben")
        page.evaluate("localStorage.setItem('masis-reviewer', 'Cleo')")
        lead = open_tab(server.base)
        lead.open("/team?case=shared")
        lead.page.get_by_label("Reviewer's name").fill("Cleo")
        lead.page.keyboard.press("Enter")
        lead.settle()
        decided = lead.page.get_by_role("region", name="Decision")
        expect(decided).to_have_attribute("data-ready", "true")
        side = lead.page.locator(".side", has_text="Ada")
        expect(side).to_contain_text("c1 contradicts: “The 🌉 bridge opened in 1931.”")
        press(lead.page, "1", "Control+Enter")

        def verdicts() -> list[Decision]:
            decisions = server.decisions("shared")
            return [made for made in decisions if made.kind == "adjudication"]

        until(lambda: len(verdicts()) == 1, lead.page, "the final verdict")
        (label,) = labels_of(server, "shared")
        assert quoted(label) == [("c1", "The 🌉 bridge opened in 1931.", "contradicts")]
        # what was taken over can be edited: another passage, and a label on a part of the answer
        expect(decided).to_have_attribute("data-ready", "true")
        press(lead.page, "m", "1")
        decided.get_by_role("button", name="Passages:").click(delay=40)
        expect(bar(lead.page)).to_contain_text("c1 contradicts")
        press(lead.page, "Backspace", "ArrowDown", "s", "Enter")
        press(lead.page, "f", "l", "1", "Enter")
        expect(decided).to_contain_text("Labels given: 1 on claims and references")
        decided.locator("textarea.own-words").fill("Read again.")
        press(lead.page, "Control+Enter")
        until(lambda: len(verdicts()) == 2, lead.page, "the changed verdict")
        report, part = labels_of(server, "shared")
        if not report.reports:
            report, part = part, report
        assert [stance for *_, stance in quoted(report)] == ["supports"]
        assert part.target in ("claim", "reference", "sentence")
        # and removed
        expect(decided).to_have_attribute("data-ready", "true")
        press(lead.page, "m")
        decided.get_by_role("button", name="Remove:").click(delay=40)
        decided.locator(".labels summary").click()
        decided.locator(".label-row select.given").select_option("")
        decided.locator("textarea.own-words").fill("They were right.")
        press(lead.page, "Control+Enter")
        until(lambda: len(verdicts()) == 3, lead.page, "the verdict without labels")
        assert not labels_of(server, "shared")
    finally:
        server.workbench.team.put_in_force(ADA, QueuePolicy())


def test_l_and_m_open_at_the_part_with_the_focus_also_in_the_next_case(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    tab = open_tab(server.base)
    opened(tab, "place")
    page = tab.page
    page.get_by_role("button", name="[c3] ").focus()
    press(page, "l")
    expect(bar(page)).to_have_attribute("aria-label", re.compile("^Label: reference.*c3"))
    press(page, "1", "Escape")
    if bar(page).is_visible():  # a wrong reference asks for the right one first
        press(page, "Escape")
    expect(bar(page)).to_be_hidden()
    page.get_by_role("button", name="[c9] ").focus()
    press(page, "m")
    sentences = page.get_by_label("Sentence", exact=True)
    expect(sentences.locator("option:checked")).to_contain_text("It is grey")
    press(page, "Escape", "f", "m")
    issue = page.locator(".why-panel .reason-about").first.inner_text()
    tag = page.locator(f".tag[aria-label*='{issue.split(',')[0].lower()}.']")
    words = tag.evaluate("tag => tag.parentElement.textContent")
    assert sentences.locator("option:checked").inner_text().split("[")[0].strip() in words
    press(page, "Escape", "l")
    expect(bar(page)).to_be_visible()
    press(page, "Enter", "j")
    expect(page.locator(".answer .text")).not_to_contain_text("Look.")
    expect(page.locator(".panel[data-ready=true]")).to_have_count(1)
    press(page, "l")
    expect(bar(page)).to_be_visible()
