"""Whatever is killed in the middle of an edit, what had rested in a field for two seconds is there
afterwards.

Each round opens a page of its own, types into one field, lets it rest, goes on typing, and in the
middle of that kills the server or the browser or cuts the connection. A new browser, which
remembers nothing, then has to show what had rested: only the database can have kept it.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import random
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Error, Locator, Page, expect

from tests.browser.conftest import FLAGS
from tests.browser.test_decision import Cable, ReviewServer, panel, type_name
from tools.browser import installed_browser, settle

log = logging.getLogger(__name__)
RESTS_MS = 2_000
"""What the product promises: text that rested so long survives."""


def note(page: Page) -> Locator:
    return panel(page).get_by_label("Note")


def correction_field(page: Page) -> Locator:
    field = panel(page).get_by_label("Corrected answer")
    if not field.is_visible():
        panel(page).get_by_text("Override", exact=True).click(delay=40)
    return field


def comment(page: Page) -> Locator:
    field = page.get_by_label("Comment", exact=True)
    if not field.is_visible():  # folded away until a comment has been begun
        page.get_by_text("Comments, assignment, tags").click(delay=40)
    return field


def issue_note_field(page: Page) -> Locator:
    form = page.get_by_role("dialog", name="Report an issue with the whole answer")
    if not form.is_visible():
        page.keyboard.press("Shift+M")
    return form.get_by_role("textbox")


def field_labelled(label: str) -> Callable[[Page], Locator]:
    return lambda page: page.get_by_label(label, exact=True)


class Place(NamedTuple):
    """A field in which people type, and the page it is on."""

    name: str
    of_a_case: bool
    field: Callable[[Page], Locator]


PLACES = (
    Place("note", True, note),
    Place("corrected answer", True, correction_field),
    Place("comment", True, comment),
    Place("reported issue", True, issue_note_field),
    Place("question of a new audit", False, field_labelled("Question")),
    Place("evidence of a new audit", False, field_labelled("Evidence")),
    Place("answer of a new audit", False, lambda page: page.get_by_label("Answer")),
)
WAYS = ("server", "browser", "connection")


@contextlib.contextmanager
def someone(browser: Browser, base: str, place: Place, case: str) -> Iterator[Page]:
    """A person in a browser that remembers nothing, before the page of the field."""
    other = browser.browser_type.launch(executable_path=installed_browser(), args=FLAGS)
    try:
        page = other.new_context().new_page()
        page.goto(f"{base}/review?case={case}" if place.of_a_case else f"{base}/new")
        settle(page)
        if place.of_a_case:
            expect(panel(page).get_by_role("navigation")).to_be_visible()
            type_name(panel(page))
            settle(page)
        yield page
    finally:
        with contextlib.suppress(Error):  # a round may have killed it
            other.close()


def kill_browser(page: Page) -> None:
    """End the browser at once, as a crash does."""
    processes = page.context.browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")[
        "processInfo"
    ]
    os.kill(
        next(process["id"] for process in processes if process["type"] == "browser"), signal.SIGKILL
    )


def edit_and_kill(
    page: Page, server: ReviewServer, cable: Cable, place: Place, way: str, text: str
) -> None:
    """Type, rest, go on typing, and kill in the middle of it."""
    field = place.field(page)
    field.press("ControlOrMeta+End")
    field.press_sequentially(text, delay=5)
    page.wait_for_timeout(RESTS_MS)
    field.press_sequentially(" and then", delay=5)
    if way == "server":
        server.kill()
    elif way == "connection":
        cable.pull()
        field.press_sequentially(" nothing more", delay=5)
    else:
        kill_browser(page)


@pytest.mark.timeout(1200)
@pytest.mark.soak(full=21)
def test_saved_text_survives_a_kill_of_the_server_browser_or_connection(
    browser: Browser, tmp_path: Path, rounds: int
) -> None:
    server = ReviewServer(tmp_path)
    # a case a round: a form for a report that was left open lies above everything else
    server.fill(rounds)
    server.start()
    kills = list(itertools.product(WAYS, PLACES))
    random.Random(4).shuffle(kills)
    try:
        for number, (way, place) in enumerate(itertools.islice(itertools.cycle(kills), rounds), 1):
            cable = Cable(server.port)
            base, case = f"http://127.0.0.1:{cable.port}", f"bridge-{number - 1:02}"
            text = f" Round {number}: {random.Random(number).random():.6f}"
            with someone(browser, base, place, case) as page:
                edit_and_kill(page, server, cable, place, way, text)
            if way == "server":
                server.start()
            cable.plug()
            with someone(browser, base, place, case) as page:
                expect(place.field(page)).to_have_value(re.compile(re.escape(text)))
            log.info("round %d: %s, %s killed", number, place.name, way)
    finally:
        server.kill()
