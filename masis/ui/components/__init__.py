"""The page's own elements, written with ``textContent``: text from outside can't become markup.

Each is a pair of files beside this one; what they share is in ``base.js`` and ``base.css``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

from masis.ui.review.answer_view import AnswerViewData
from masis.ui.shell.streamlit_internals import script as streamlit_names

HERE = Path(__file__).parent


def registered(name: str, *parts: str) -> Callable[..., Any]:
    """A component from ``name.js`` and ``name.css``; to be registered once, at import. ``parts`` are more scripts."""

    def source(file: str) -> str:
        return (HERE / file).read_text(encoding="utf-8")

    return st.components.v2.component(
        f"masis_{name}",
        html='<div class="root"></div>',
        css=f"{source('base.css')}\n{source(f'{name}.css')}",
        js="\n".join((streamlit_names(), *(source(f"{script}.js") for script in ("base", *parts, name)))),
    )


_ANSWER_VIEW = registered("answer_view")
_CASE_LIST = registered("case_list")
_CASE_HEAD = registered("case_head")
_SCORES = registered("scores")
_FOLLOW = registered("follow")
_STORY = registered("story")


def show_answer_view(data: AnswerViewData, *, key: str) -> int | None:
    """The answer with its marks, its issues, what changed, and the evidence beside it.

    Returns how many chunks of evidence are drawn where more were just asked for.
    """
    more = _ANSWER_VIEW(data=data, key=key, on_more_change=_nothing).more
    return more if isinstance(more, int) else None


def case_list(data: Mapping[str, Any], *, key: str) -> str | None:
    """A page of cases; returns the id of the case just opened, if one was."""
    opened = _CASE_LIST(data=data, key=key, on_open_change=_nothing).open
    return opened if isinstance(opened, str) else None


def case_head(data: Mapping[str, Any], *, key: str) -> None:
    """The question of a case, where it stands and why."""
    _CASE_HEAD(data=data, key=key)


def score_table(data: Mapping[str, Any], *, key: str) -> None:
    """Scores by iteration, with what changed from one to the next and how those of the shown one came about."""
    _SCORES(data=data, key=key)


def follow_list(data: Mapping[str, Any], *, key: str) -> None:
    """The issues of a run, followed from iteration to iteration."""
    _FOLLOW(data=data, key=key)


def loop_story(data: Mapping[str, Any], *, key: str) -> None:
    """Which iteration was chosen and why, why the loop stopped, and what a reader must know besides."""
    _STORY(data=data, key=key)


def _nothing() -> None:
    """A trigger is delivered only where a callback is named for it."""


# The elements of the overview, the decision log, the comparison and the settings.

_LOG = registered("decision_log")
_HEAD = registered("overview_head")
_HISTORY = registered("run_history")
_COMPARISON = registered("run_comparison")
_SETTINGS = registered("settings_table")
_HEALTH = registered("health")


class LogClick(NamedTuple):
    """What was clicked in the log: a case to open, an entry to unfold ("" folds it up), an address to go to."""

    case: str | None
    entry: str | None
    href: str | None


def decision_log(data: Mapping[str, Any], *, key: str) -> LogClick:
    """Entries of the decision log, whole or brief; returns what was just clicked."""
    found = _LOG(data=data, key=key, on_open_change=_nothing, on_entry_change=_nothing)
    opened = found.open if isinstance(found.open, Mapping) else {}
    return LogClick(_text(opened.get("case")), _text(found.entry), _text(opened.get("href")))


def overview_head(data: Mapping[str, Any], *, key: str) -> str | None:
    """What the store holds, by state; returns the state just clicked, if one was."""
    return _text(_HEAD(data=data, key=key, on_open_change=_nothing).open)


def run_history(data: Mapping[str, Any], *, key: str) -> str | None:
    """The runs of a case; returns the id of the run just opened, if one was."""
    return _text(_HISTORY(data=data, key=key, on_open_change=_nothing).open)


def run_comparison(data: Mapping[str, Any], *, key: str) -> None:
    """Two runs side by side."""
    _COMPARISON(data=data, key=key)


def settings_table(data: Mapping[str, Any], *, key: str) -> None:
    """Every setting with its value, what it does and who said so."""
    _SETTINGS(data=data, key=key)


def health_list(data: Mapping[str, Any], *, key: str) -> None:
    """What was looked at, and whether it is in order."""
    _HEALTH(data=data, key=key)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
