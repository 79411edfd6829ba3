"""What a person types and chooses reaches the database, once and as it was, while the server is busy.

Every round types into a field or chooses a model or a setting, as people do: pausing or not, leaving the field or not,
scrolling, reloading, while notices come and go. Then the draft in the database has to hold exactly that. Nothing is
typed or chosen twice.
"""

from __future__ import annotations

import json
import logging
import random
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Tab, serving
from tests.browser.test_new_audit import pick

log = logging.getLogger(__name__)
OpenTab = Callable[..., Tab]
ARRIVES_S = 60
BURNERS = 3
TEXTS = {"question": "Question", "evidence": "Evidence", "answer": "Answer"}
SETTINGS = {
    "strictness": ("Strictness", {"Lenient": "lenient", "Moderate": "moderate", "Strict": "strict"}),
    "max_iterations": ("Most iterations", {str(number): number for number in range(1, 6)}),
    "citation_mode": ("Citations", {"Standard": "standard", "Literal": "literal"}),
}
CASE = "docs-02-altered"
ROLES = ("drafter", "verifier", "critic", "reviser", "evaluator")
UNLESS_CHOSEN = {"strictness": "moderate", "max_iterations": 3, "citation_mode": "standard"} | dict.fromkeys(
    ROLES, "offline"
)
"""What a setting is that nobody has chosen: choosing just that stores nothing."""


@contextmanager
def busy_machine() -> Iterator[None]:
    """Processes that compute without a pause, beside the server."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BURNERS)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


class Person:
    """Types and chooses on the page of a new audit, and remembers what the database must hold."""

    def __init__(self, tab: Tab, database: Path, seed: int) -> None:
        self.tab = tab
        self.page: Page = tab.page
        self.database = database
        self.random = random.Random(seed)
        self.expected: dict[str, Any] = {}
        self.settings: dict[str, Any] = {}
        self.note = ""
        self.slowest = 0.0

    def open(self) -> None:
        """Open the page with its settings unfolded."""
        self.tab.open("/new")
        self.page.locator("[data-testid=stExpander]").get_by_text("Settings", exact=True).click(delay=40)

    def round(self, number: int) -> str:
        """One input; returns what was done."""
        acts = [*[self.type] * 3, self.choose_setting, self.choose_model, self.name_model, self.leave, self.decide]
        did = self.random.choice(acts)(number)
        if self.random.random() < 0.2:
            self.page.mouse.wheel(0, self.random.choice([-900, 600, 1500]))
        if self.random.random() < 0.15:
            did += ", then reload"
            self.page.reload()
            self.tab.settle()
            self.page.locator("[data-testid=stExpander]").get_by_text("Settings", exact=True).click(delay=40)
        return did

    def type(self, number: int) -> str:
        """Type into one of the long fields, in place of or after what is there."""
        name = self.random.choice(list(TEXTS))
        field = self.page.get_by_label(TEXTS[name], exact=name == "evidence")
        text = f"[{number}] Round {number} of the {name} says {self.random.random():.6f}."
        self._enter(field, name, text)
        return f"type into {name}"

    def _enter(self, field: Any, name: str, text: str) -> None:
        field.click(delay=20)
        if self.expected.get(name) and self.random.random() < 0.5:
            field.press("ControlOrMeta+End")
            text = self.expected[name] + "\n" + text
            self.page.keyboard.type("\n" + text.rpartition("\n")[2], delay=self.random.choice([0, 5, 25]))
        else:
            field.press("ControlOrMeta+a")
            half = len(text) // 2
            self.page.keyboard.type(text[:half], delay=self.random.choice([0, 5, 25]))
            if self.random.random() < 0.5:
                self.page.wait_for_timeout(self.random.choice([300, 900, 1500]))
            self.page.keyboard.type(text[half:], delay=self.random.choice([0, 5, 25]))
        if self.random.random() < 0.5:
            field.blur()
        self.expected[name] = text

    def choose_setting(self, number: int) -> str:
        """Choose another value of a setting."""
        name = self.random.choice(list(SETTINGS))
        label, values = SETTINGS[name]
        shown, value = self.random.choice([each for each in values.items() if each[1] != self.settings.get(name)])
        pick(self.page, label, shown)
        self.settings[name] = value
        return f"choose {name}"

    def choose_model(self, number: int) -> str:
        """Choose the offline model of a role, or leave it for another one that is yet to be named."""
        role = self.random.choice(ROLES)
        if self.settings.get(role, "offline") == "offline":
            return self.name_model(number)
        pick(self.page, role.capitalize(), "offline")
        self.settings[role] = "offline"
        self.settings.pop(f"{role}_named", None)
        return f"choose the {role}"

    def name_model(self, number: int) -> str:
        """Name another model of a role."""
        role = self.random.choice(ROLES)
        if self.settings.get(role, "offline") == "offline":
            pick(self.page, role.capitalize(), "Another model")
        field = self.page.get_by_label(f"Model of the {role}")
        model = f"ollama:round-{number}"
        field.click(delay=20)
        field.press("ControlOrMeta+a")
        self.page.keyboard.type(model, delay=self.random.choice([0, 10]))
        if self.random.random() < 0.3:
            field.press("Enter")
        self.settings |= {role: model, f"{role}_named": True}
        return f"name the {role}"

    def leave(self, number: int) -> str:
        """Type, go to another page at once, by a link or an address, and come back."""
        did = self.type(number)
        if self.random.random() < 0.5:
            self.page.get_by_role("link", name="Queue").first.click(delay=40)
            expect(self.page).to_have_url(re.compile("/queue"))
            self.page.get_by_role("link", name="New audit").first.click(delay=40)
            expect(self.page).to_have_url(re.compile("/new"))
            self.tab.settle()
            self.page.locator("[data-testid=stExpander]").get_by_text("Settings", exact=True).click(delay=40)
        else:
            self.page.goto(self.tab.base + "/queue")
            self.open()
        return f"{did}, then leave"

    def decide(self, number: int) -> str:
        """Type a note and choose a verdict on a case, leave it at once or not, and come back to the new audit."""
        self.tab.open(f"/review?case={CASE}")
        self.page.locator("label.verdict", has_text="Escalate").click(delay=40)
        note = self.page.get_by_label("Note")
        note.click(delay=20)
        note.press("ControlOrMeta+a")
        self.note = f"Note {number}: {self.random.random():.6f}"
        self.page.keyboard.type(self.note, delay=self.random.choice([0, 10]))
        if self.random.random() < 0.5:
            self.tab.open("/queue")
            self.tab.open(f"/review?case={CASE}")
            expect(note).to_have_value(self.note)
        expect(self.page.get_by_text("Draft saved", exact=True)).to_be_visible(timeout=ARRIVES_S * 1000)
        self.open()
        return "note on a case"

    def stored(self, subject: str = "new-audit") -> dict[str, Any]:
        """The draft in the database."""
        with sqlite3.connect(self.database, timeout=30) as connection:
            rows = connection.execute("SELECT field, value FROM drafts WHERE subject = ?", [subject]).fetchall()
        held = {field: json.loads(value) for field, value in rows if field != "version"}
        return held | {"settings": UNLESS_CHOSEN | held.get("settings", {})} if subject == "new-audit" else held

    def missing(self) -> str:
        """What the database still lacks after a while, empty where it has everything."""
        begun = time.monotonic()
        wanted = {**self.expected, "settings": UNLESS_CHOSEN | self.settings}
        while (held := self.stored()) != wanted or (self.note and self.stored(f"case:{CASE}").get("note") != self.note):
            if time.monotonic() - begun > ARRIVES_S:
                return f"the database holds {held} instead of {wanted}"
            time.sleep(0.05)
        self.slowest = max(self.slowest, time.monotonic() - begun)
        return ""


@pytest.mark.soak(full=200)
def test_what_is_typed_and_chosen_on_a_busy_server_is_stored(
    open_tab: OpenTab, browser: object, tmp_path: Path, rounds: int
) -> None:
    database = tmp_path / "soak.db"
    with serving("demo", "--db", str(database), folder=tmp_path) as base:
        auditing = open_tab(base)
        auditing.open("/")
        person = Person(open_tab(base), database, seed=11)
        person.open()
        with busy_machine():
            lost = []
            for number in range(1, rounds + 1):
                if number % 40 == 1:  # audits run beside the pages
                    with suppress(Exception):
                        auditing.page.get_by_role("button", name="Audit").first.click(delay=40, timeout=3000)
                did = person.round(number)
                if wrong := person.missing():
                    lost.append(f"round {number}, {did}: {wrong}")
                    break
            log.info("%d of %d rounds stored; the slowest took %.1f s", rounds - len(lost), rounds, person.slowest)
    assert not lost, "\n".join(lost)


def test_a_field_keeps_what_is_typed_while_a_notice_above_it_comes_and_goes(demo: str, open_tab: OpenTab) -> None:
    tab = open_tab(demo)
    page = tab.open("/new")
    question = page.get_by_label("Question")
    question.fill("A draft")
    question.blur()
    expect(page.get_by_role("region", name="What was understood").get_by_text("A draft")).to_be_visible()
    page.reload()
    tab.settle()
    expect(page.get_by_text("Your draft of")).to_be_visible()
    question.evaluate("area => { area.dataset.drawnOnce = 'yes' }")
    page.get_by_label("Answer").fill("An answer")
    page.get_by_label("Answer").blur()
    question.press("End")
    question.press_sequentially(" that goes on", delay=30)
    expect(page.get_by_text("Your draft of")).to_be_hidden()
    expect(question).to_have_value("A draft that goes on")
    assert question.get_attribute("data-drawn-once") == "yes", "the field was rebuilt"


def test_text_that_no_server_confirmed_is_there_after_a_reload(demo: str, open_tab: OpenTab) -> None:
    tab = open_tab(demo)
    page = tab.open("/new")
    question = page.get_by_label("Question")
    tab.page.context.set_offline(True)
    question.fill("Typed without a connection")
    tab.page.context.set_offline(False)
    page.reload()
    tab.settle()
    expect(question).to_have_value("Typed without a connection")
    understood = page.get_by_role("region", name="What was understood")
    expect(understood.get_by_text("Typed without a connection")).to_be_visible()
