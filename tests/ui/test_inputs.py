"""Typed text and choices are saved in any callback order, and shown as saved only afterward."""

from __future__ import annotations

from typing import Any

import pytest
import streamlit as st

from masis.errors import StoreError
from masis.ui.shell import inputs
from masis.ui.shell.inputs import show_value, store_typed, typing_area


class Page:
    """A page with one field: what the browser posts, what the page draws, what is stored."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state: dict[str, Any] = {}
        self.drawn: dict[str, Any] = {}
        self.stored: list[str] = []
        self.broken = False
        monkeypatch.setattr(st, "session_state", self.state)
        monkeypatch.setattr(inputs, "_TYPING", self._draw)

    def _draw(self, *, data: dict[str, Any], key: str, on_typed_change: Any) -> None:
        self.drawn, self.callback = data, on_typed_change

    def _store(self, text: str) -> None:
        if self.broken:
            raise StoreError("the disk is full")
        self.stored.append(text)

    def run(self) -> None:
        typing_area("Note", key="note", text="", version="", most=5, rows=2, on_text=self._store)

    def post(self, text: str, edit: int) -> None:
        self.state["note"] = {"typed": {"text": text, "mount": "m", "edit": edit, "tries": 0}}


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Page:
    page = Page(monkeypatch)
    page.run()
    return page


def test_text_is_shown_as_saved_only_after_it_was_stored(page: Page) -> None:
    page.broken = True
    page.post("first", 1)
    page.callback()
    page.run()
    assert page.drawn["stored"] is None
    page.broken = False
    page.run()
    assert page.stored == ["first"]
    assert page.drawn["stored"] == {"mount": "m", "edit": 1}


def test_text_of_a_lost_callback_is_stored_once_by_the_next_run(page: Page) -> None:
    page.post("a text that is too long", 1)
    page.run()
    page.run()
    page.callback()
    assert page.stored == ["a tex"]


def test_a_button_can_use_text_before_its_callback_has_run(page: Page) -> None:
    page.post("first", 1)
    store_typed()
    assert page.stored == ["first"]
    page.callback()
    assert page.stored == ["first"], (
        "the field's own callback comes too late to undo what the button did"
    )


@pytest.mark.parametrize("junk", [None, "text", {"text": 1}, {"text": None, "mount": "m"}, ["x"]])
def test_invalid_posts_are_ignored(page: Page, junk: object) -> None:
    page.state["note"] = {"typed": junk}
    page.run()
    assert page.stored == []


def test_a_widget_is_updated_only_when_its_value_changed(page: Page) -> None:
    show_value("size", 10)
    assert page.state["size"] == 10
    page.state["size"] = 20  # a person has chosen, and the page is still drawn with the old value
    show_value("size", 10)
    assert page.state["size"] == 20
    show_value("size", 30)
    assert page.state["size"] == 30


def test_a_choice_with_a_lost_callback_still_takes_effect(page: Page) -> None:
    taken: list[int] = []
    show_value("size", 10, lambda: taken.append(page.state["size"]))
    page.state["size"] = 20
    show_value("size", 10, lambda: taken.append(page.state["size"]))
    assert taken == [20]
