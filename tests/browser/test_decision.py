"""Deciding in a real browser: what is typed is never lost, what is decide is decide once."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.review import Decision
from masis.services import Workbench
from masis.services.drafts import case_subject
from masis.store.records import DecisionFilter
from tests.browser.conftest import Tab, until
from tests.cases import case_of
from tests.reviewing import ADA, decide
from tools.browser import IDLE, give_name, settle
from tools.serving import free_port, serving

OpenTab = Callable[..., Tab]
NOTE = "The plan is from the 2023 report; the sum is not."
DRAWN = """() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"""
"""Waits until the browser has drawn what an answer that has just arrived changes."""
IN_BROWSER = "text => Object.values(localStorage).some(value => value.includes(text))"
"""Whether the browser itself has stored a text, so that it outlives the page."""


def cases(count: int) -> list[Case]:
    """Cases that each make something up."""
    return [
        case_of(
            f"Bridge {number} is {100 + number} metres long [chunk_1]. It was opened in 1950"
            " [chunk_9].",
            {
                "chunk_1": f"Bridge {number} is {100 + number} metres long.",
                "chunk_2": f"Bridge {number} was opened in 1931.",
            },
            case_id=f"bridge-{number:02}",
            query=f"How long is bridge {number}, and when was it opened?",
        )
        for number in range(count)
    ]


class ReviewServer:
    """A server on a database of its own that can be killed and started again on the same port."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.db, self.port = folder, folder / "decide.db", free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.workbench = Workbench.open(self.db)
        self.running = contextlib.ExitStack()

    def fill(self, count: int) -> None:
        for case in cases(count):
            self.workbench.cases.add(ADA, [case])
            self.workbench.audits.audit(ADA, case)

    def start(self) -> None:
        served = serving("serve", "--db", str(self.db), folder=self.folder, port=self.port)
        self.pid = self.running.enter_context(served).pid

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.running.close()

    def decisions(self, case_id: str) -> list[Decision]:
        entries = self.workbench.store.decisions.entries(
            DecisionFilter(case_id=case_id, newest_first=False)
        ).rows
        return [entry.decision for entry in entries if entry.decision is not None]

    def read_draft(self, case_id: str, field: str) -> Any:
        # a draft without a name belongs to its browser
        unnamed = self.workbench.store.database.execute(
            "SELECT DISTINCT reviewer FROM drafts WHERE reviewer LIKE 'browser %'"
        )
        for name in ("Ada", *(owner for (owner,) in unnamed)):
            found = self.workbench.store.drafts.get(name, f"case:{case_id}").values
            if field in found:
                return found[field]
        return None


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewServer]:
    served = ReviewServer(tmp_path_factory.mktemp("decide"))
    served.fill(14)
    served.start()
    yield served
    served.kill()


def panel(page: Page) -> Locator:
    return page.get_by_role("region", name="Decision")


def open_case(tab: Tab, case_id: str, **parameters: str) -> Locator:
    query = "&".join(
        f"{name}={value}"
        for name, value in {"case": case_id, "iteration": "1", **parameters}.items()
    )
    tab.page.add_init_script("localStorage.setItem('masis-advance', 'off')")
    tab.open(f"/review?{query}")
    found = panel(tab.page)
    expect(found.get_by_role("navigation")).to_be_visible()
    return found


def type_name(found: Locator, *, heard: bool = True) -> None:
    """Type the reviewer's name. Once the server has ``heard`` it, the page no longer asks for it,
    and moves up.
    """
    name = found.get_by_label("Your name")
    if name.is_visible():
        name.fill("Ada")
        if heard:
            name.blur()
            expect(name).to_be_hidden()
            # what the page draws for this person moves what a click would aim at
            settle(found.page)


def ask(found: Locator) -> None:
    """Submit an approval of an answer with serious issues open: it is asked once, and what is drawn
    can be read.
    """
    found.get_by_role("button", name="Submit").click(delay=40)
    expect(found.get_by_role("alert")).to_contain_text("Approve anyway?")
    expect(found).to_have_attribute("data-ready", "true")


def test_nothing_moves_a_button_while_it_is_pressed(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    """The draft's check and the name that was typed arrive between press and release."""
    case_id = "bridge-12"
    tab = open_tab(server.base)
    found = open_case(tab, case_id)
    page = tab.page
    found.get_by_text("Override", exact=True).click(delay=40)
    correction = found.get_by_label("Corrected answer")
    bare = "It is red. It is old. It is high. It is long."
    correction.fill(f"Bridge 12 is 112 metres long [chunk_1]. {bare}")
    expect(found.get_by_text("No citation")).to_have_count(4)
    reasons = found.get_by_role("group", name="Reasons")
    reasons.get_by_text("The evidence contradicts it").click(delay=40)
    found.get_by_label("Note").fill("Measured.")
    found.get_by_label("Your name").fill("Ada")
    held: list[Route] = []
    draft = "**/api/v1/desk/draft"
    page.route(draft, lambda route: route.continue_() if held else held.append(route))
    correction.fill("Bridge 12 is 112 metres long [chunk_1].")
    until(lambda: held, page, "the draft is sent")
    found.get_by_label("Your name").focus()
    button = found.get_by_role("button", name="Submit")
    place = button.bounding_box()
    assert place
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.mouse.down()
    with page.expect_response(draft) as answered:
        held[0].continue_()
    answered.value.finished()
    page.evaluate(DRAWN)
    assert button.bounding_box() == place
    assert page.locator(IDLE).count(), "the page runs for the name while the button is pressed"
    page.mouse.up()
    expect(found.get_by_role("status").first).to_contain_text("Overrode the original answer")
    page.unroute(draft)
    [decision] = server.decisions(case_id)
    assert (decision.reviewer, decision.note) == ("Ada", "Measured.")


def test_notices_dont_move_the_verdict_buttons_and_the_browser_remembers_the_name(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    tab = open_tab(server.base)
    found = open_case(tab, "bridge-10")
    tab.settle()
    approve = found.locator("label.verdict").first
    place = approve.bounding_box()
    found.get_by_role("button", name="Submit").click(delay=40)
    expect(found.get_by_role("status").first).to_contain_text("Choose a verdict first")
    tab.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTo(0, 0)")
    until(lambda: approve.bounding_box() == place, tab.page, "the verdicts are in their place")
    found.get_by_label("Your name").fill("Grace")
    found.get_by_label("Your name").press("Enter")
    expect(found.get_by_label("Your name")).to_be_hidden()
    expect(tab.page.get_by_role("button", name="Grace")).to_be_visible()
    expect(found.get_by_role("status").first).to_contain_text("Decisions are recorded as Grace")
    tab.settle()
    tab.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTo(0, 0)")
    until(lambda: approve.bounding_box() == place, tab.page, "the verdicts are in their place")
    tab.page.reload()
    tab.settle()
    expect(found.get_by_label("Your name")).to_be_hidden()
    found.get_by_label("Note").fill(NOTE)
    until(lambda: drafted_note(server, "Grace") == NOTE, tab.page, "the note is drafted")
    tab.page.get_by_role("button", name="Grace").click(delay=40)
    field = tab.page.locator(".st-key-reviewer-field input")
    expect(field).to_be_focused()
    tab.page.keyboard.press("Control+A")
    tab.page.keyboard.type("Grace H")
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_text("Saved. Your decisions are recorded as Grace H.")).to_be_visible()
    expect(field).to_be_hidden()
    tab.settle()
    expect(found.get_by_label("Note")).to_have_value(NOTE)
    assert (drafted_note(server, "Grace"), drafted_note(server, "Grace H")) == (None, NOTE)
    leases = server.workbench.store.team.leases()
    assert [lease.reviewer for lease in leases if lease.case_id == "bridge-10"] == ["Grace H"]


def test_a_text_typed_just_before_a_reload_comes_back_to_its_writer_alone(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    """After a reload, the page is drawn before it knows the name that the browser has stored."""
    writer = open_tab(server.base)
    give_name(writer.page, server.base, "Cara")
    found = open_case(writer, "bridge-13")
    writer.page.route("**/api/v1/desk/draft", lambda route: route.abort())
    found.get_by_label("Note").fill("Cara's own.")
    writer.page.reload()
    writer.page.unroute("**/api/v1/desk/draft")
    expect(found.get_by_label("Note")).to_have_value("Cara's own.")
    until(lambda: drafted_note(server, "Cara", "bridge-13"), writer.page, "the note is drafted")
    other = open_tab(server.base)
    seen = open_case(other, "bridge-13")
    for name in ("", "Ben"):
        if name:
            give_name(other.page, server.base, name)
            seen = open_case(other, "bridge-13")
        expect(seen).to_have_attribute("data-ready", "true")
        other.settle()
        expect(seen.get_by_label("Note")).to_have_value("")
    assert drafted_note(server, "Ben", "bridge-13") is None


def drafted_note(server: ReviewServer, name: str, case_id: str = "bridge-10") -> Any:
    """Return the note that a person has drafted on a case."""
    return server.workbench.drafts.get(Actor(name=name), case_subject(case_id)).values.get("note")


def test_three_fast_clicks_on_submit_record_one_decision_with_reference_labels(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    tab = open_tab(server.base)
    found = open_case(tab, "bridge-01")
    found.get_by_text("Label single claims and references").click(delay=40)
    found.get_by_label(re.compile(r"^Reference \[chunk_9\]")).select_option(
        label="Agree: fabricated"
    )
    found.get_by_text("Approve", exact=True).click(delay=40)
    type_name(found)
    ask(found)
    found.get_by_role("button", name="Submit").evaluate(
        "button => { button.click(); button.disabled = false; button.click(); setTimeout(() =>"
        " button.click(), 60) }"
    )
    for _ in range(3):
        tab.page.keyboard.press("Control+Enter")
    expect(found.get_by_role("status").first).to_contain_text("Approved the original answer.")
    tab.settle()
    (decision,) = server.decisions("bridge-01")
    (label,) = decision.labels
    assert (label.target, label.text, label.label) == ("reference", "chunk_9", "fabricated")


def test_a_concurrent_decision_is_shown_and_typed_text_is_preserved(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    tab = open_tab(server.base)
    found = open_case(tab, "bridge-03")
    type_name(found)
    found.get_by_label("Note").fill(NOTE)
    found.get_by_text("Approve", exact=True).click(delay=40)
    until(
        lambda: server.read_draft("bridge-03", "verdict") == "approve",
        tab.page,
        "the form is drafted",
    )
    expect(found.locator(".saved")).to_have_text("Draft saved")
    server.workbench.team.release(ADA, "bridge-03")  # as if the lease had run out
    decide(server.workbench, "bridge-03", "escalate", "Bo")
    ask(found)
    found.get_by_role("button", name="Submit").click(delay=40)
    expect(found.get_by_role("status").first).to_contain_text("has changed since you opened it")
    expect(found.locator(".standing")).to_contain_text("by Bo")
    expect(found.get_by_label("Note")).to_have_value(NOTE)
    found.get_by_role("button", name="Submit").click(delay=40)
    expect(found.get_by_role("status").first).to_contain_text("Approved the original answer.")
    assert [decision.verdict for decision in server.decisions("bridge-03")] == [
        "escalate",
        "approve",
    ]


def test_submitting_right_after_typing_validates_the_typed_text(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    tab = open_tab(server.base)
    found = open_case(tab, "bridge-09")
    type_name(found)
    tab.page.keyboard.press("o")
    expect(found.get_by_role("group", name="Citations")).to_contain_text(
        "1 fabricated"
    )  # the draft so far has been posted
    answer = found.get_by_label("Corrected answer")
    answer.fill("Bridge 9 is 109 metres long [chunk_1].")
    tab.page.keyboard.press("Control+Enter")
    expect(found.get_by_role("status").first).to_contain_text("A reason is missing")
    expect(found.get_by_role("group", name="Citations")).to_contain_text("0 fabricated")
    expect(found.locator(".saved")).to_have_text("Draft saved")


def test_a_killed_server_loses_no_saved_correction_or_comment(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    case, words = "bridge-04", "Who measured this?"
    tab = open_tab(server.base)
    found = open_case(tab, case)
    type_name(found)
    tab.page.get_by_text("Comments, assignment, tags").click(delay=40)
    tab.page.get_by_label("Comment", exact=True).press_sequentially(words, delay=5)
    stored = server.workbench.store.drafts
    until(
        lambda: stored.get("Ada", f"comment:{case}").values.get("text") == words,
        tab.page,
        "the comment is drafted",
    )
    found.get_by_text("Override", exact=True).click(delay=40)
    answer = found.get_by_label("Corrected answer")
    answer.press("Control+End")
    answer.press_sequentially(" It spans the Tay", delay=5)
    # The field is never left: what rests in it for a moment is sent by itself.
    until(
        lambda: "It spans the Tay" in (server.read_draft(case, "corrected") or ""),
        tab.page,
        "what was typed is stored",
    )
    server.kill()
    # a page that outlives its server hands over what it holds, whenever it is back
    tab.page.close()
    server.start()
    tab = open_tab(server.base)
    again = open_case(tab, case)
    type_name(again)
    expect(again.get_by_label("Corrected answer")).to_have_value(re.compile("It spans the Tay$"))
    expect(again.get_by_role("radio", name="Override")).to_be_checked()
    again.get_by_role("button", name="Discard draft").click(delay=40)
    expect(again.get_by_role("status").first).to_contain_text("discarded")
    until(lambda: server.read_draft(case, "corrected") is None, tab.page, "the draft is discarded")
    field = tab.page.get_by_label("Comment", exact=True)
    expect(field).to_have_value(words)
    tab.page.get_by_role("button", name="Add comment").click(delay=40)
    expect(tab.page.get_by_text("Team: 1 comment")).to_be_visible()
    expect(field).to_have_value("")
    assert [comment.note for _, comment in server.workbench.team.comments(ADA, case)] == [words]
    assert not stored.get("Ada", f"comment:{case}").values


def test_text_typed_while_the_server_was_down_is_sent_after_its_restart(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    case = "bridge-05"
    tab = open_tab(server.base)
    found = open_case(tab, case)
    server.kill()
    found.get_by_label("Note").fill(NOTE)
    tab.page.wait_for_function(IN_BROWSER, arg=NOTE)
    server.start()
    until(
        lambda: server.read_draft(case, "note") == NOTE,
        tab.page,
        "the page reconnected and its draft was kept",
        60,
    )
    expect(found.get_by_label("Note")).to_have_value(NOTE)
    # while Streamlit's own connection is lost for long, its dialog covers the page
    expect(tab.page.locator("[data-test-connection-state=CONNECTED]")).to_be_attached(
        timeout=60_000
    )
    server.kill()
    found.get_by_text("Approve", exact=True).click(delay=40)
    type_name(found, heard=False)
    ask(found)
    server.start()
    until(
        lambda: server.read_draft(case, "verdict") == "approve",
        tab.page,
        "the page reconnected once more",
        60,
    )
    expect(found.locator(".saved")).to_have_text("Draft saved")
    expect(found.get_by_role("alert")).to_contain_text("Approve anyway?")
    expect(found).to_have_attribute("data-ready", "true")
    found.get_by_role("button", name="Submit").click(delay=40)
    expect(found.get_by_role("status").first).to_contain_text(
        "Approved the original answer.", timeout=60_000
    )
    (decision,) = server.decisions(case)
    assert decision.note == NOTE


class Cable:
    """A connection between browser and server that can be pulled out."""

    def __init__(self, to: int) -> None:
        self.to, self.in_use = to, True
        self.ends: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                if not self.in_use:
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self.to))
                self.ends += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError), source, sink:
            while data := source.recv(65_536):
                sink.sendall(data)

    def pull(self) -> None:
        self.in_use = False
        for end in self.ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self.ends.clear()

    def plug(self) -> None:
        self.in_use = True


def test_a_dropped_connection_loses_nothing_even_if_the_page_is_closed(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    case = "bridge-07"
    cable = Cable(server.port)
    tab = open_tab(f"http://127.0.0.1:{cable.port}")
    found = open_case(tab, case)
    cable.pull()
    found.get_by_label("Note").fill(NOTE)
    tab.page.wait_for_function(IN_BROWSER, arg=NOTE)
    cable.plug()
    page = tab.page.context.new_page()
    tab.page.close()
    page.goto(f"{tab.base}/review?case={case}")
    expect(panel(page).get_by_label("Note")).to_have_value(NOTE)
    until(lambda: server.read_draft(case, "note") == NOTE, page, "the draft reached the store")
    tab.page = page


def add_newer_cases(server: ReviewServer) -> None:
    marked = f"newer-{uuid4().hex}"
    server.workbench.cases.add(
        ADA, [case.model_copy(update={"id": f"{marked}-{case.id}"}) for case in cases(3)]
    )


def test_a_queue_redrawn_during_a_click_opens_the_clicked_case(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    tab = open_tab(server.base)
    page = tab.open("/queue?order=newest")
    link = page.locator("table.list tbody a").first
    shown = str(link.get_attribute("data-open"))
    total = page.get_by_text(re.compile(r"\d+ undecided cases")).first
    before = total.inner_text()
    add_newer_cases(server)
    link.hover()
    page.mouse.down()
    page.evaluate("window.dispatchEvent(new Event('masis-wake'))")
    expect(total).not_to_have_text(before)  # the page has been run again, with other cases
    tab.settle()
    expect(link).to_have_attribute("data-open", shown)
    page.mouse.up()
    expect(page).to_have_url(re.compile(f"/review.*case={shown}"))


@pytest.mark.parametrize("reaches_server", [True, False])
def test_a_decision_without_an_answer_is_sent_again_and_recorded_once(
    server: ReviewServer, open_tab: OpenTab, reaches_server: bool
) -> None:
    case, lost = f"bridge-{8 if reaches_server else 11:02}", []
    tab = open_tab(server.base)

    def lose_first(route: Route) -> None:
        if lost:
            route.continue_()
            return
        lost.append(route.request.post_data_json)
        if reaches_server:  # and only its answer is lost
            route.fetch()
        route.abort("connectionreset")

    tab.page.route("**/desk/decisions", lose_first)
    found = open_case(tab, case)
    type_name(found)
    found.get_by_text("Escalate", exact=True).click(delay=40)
    found.get_by_text("Needs more evidence").click(delay=40)
    found.get_by_role("button", name="Submit").click(delay=40)
    expect(found.get_by_role("status").first).to_contain_text("The server doesn't answer")
    tab.page.keyboard.press("n")  # while a decision is being recorded, keys do nothing
    expect(found.get_by_role("status").first).to_contain_text("Escalated")
    tab.settle()
    expect(tab.page).to_have_url(re.compile(case))
    (decision,) = server.decisions(case)
    assert (decision.verdict, decision.token) == ("escalate", lost[0]["token"])


def test_a_slow_answer_never_replaces_a_newer_case(server: ReviewServer, open_tab: OpenTab) -> None:
    tab = open_tab(server.base)
    slow: list[Route] = []
    found = open_case(tab, "bridge-00", order="oldest")
    type_name(found)
    tab.page.route("**/desk/open", lambda route: slow.append(route))
    tab.page.keyboard.press("j")
    until(lambda: bool(slow), tab.page, "the next case is asked for")
    tab.page.keyboard.press("x")
    says = expect(found.get_by_role("status").first)
    says.to_contain_text("The page is still loading. Press again in a moment.")
    expect(found.get_by_role("radio", name="Reject")).not_to_be_checked()
    slow.pop().continue_()
    tab.page.unroute("**/desk/open")
    expect(tab.page).not_to_have_url(re.compile("case=bridge-00"))
    number = int(tab.page.url[-2:])
    shown, words = tab.page.locator(".answer .text"), "Bridge {} is {} metres long"
    expect(shown).to_contain_text(words.format(number, 100 + number))
    expect(found).to_have_attribute("data-ready", "true")
    tab.page.keyboard.press("k")
    expect(tab.page).to_have_url(re.compile("case=bridge-00"))
    for step, at in (("go_back", number), ("go_forward", 0), ("reload", 0)):
        getattr(tab.page, step)()
        expect(shown).to_contain_text(words.format(at, 100 + at))
        expect(tab.page.get_by_text(f"How long is bridge {at},").first).to_be_visible()


def test_two_tabs_on_a_case_record_one_decision_and_show_it_in_both(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    first, second = open_tab(server.base), open_tab(server.base)
    panels = [open_case(tab, "bridge-06") for tab in (first, second)]
    for found in panels:
        type_name(found)
    for tab, found in zip((first, second), panels, strict=True):
        tab.page.keyboard.press("Escape")
        expect(found).to_have_attribute("data-ready", "true")
        tab.page.keyboard.press("e")
        tab.page.keyboard.press("1")
    first.page.keyboard.press("Control+Enter")
    expect(panels[0].get_by_role("status").first).to_contain_text("Escalated")
    second.page.keyboard.press("Control+Enter")
    expect(panels[1].get_by_role("status").first).to_contain_text("has changed since you opened it")
    expect(panels[1].locator(".standing")).to_contain_text("by Ada")
    assert len(server.decisions("bridge-06")) == 1
