"""All keyboard shortcuts of the workbench. Buttons, pages and the key map use these definitions.

``C`` and ``R`` are Streamlit's own shortcuts (clear cache, rerun). Plain keys have no effect while
the user is typing.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypedDict

import streamlit as st

from masis.schema.preference import VERDICT_CHOICES
from masis.ui.components import register_component
from masis.ui.shell import address

_KEYS = register_component("page_keys", "key_sheet")
_OPEN_AT = "page-open-at"


class Key(NamedTuple):
    """One key: its name for buttons (``shortcut=``), its name for people, and its effect."""

    shortcut: str
    shown: str
    does: str


class KeyGroup(TypedDict):
    """Keys that belong together in the key map."""

    title: str
    keys: list[tuple[str, str]]


APPROVE = Key("A", "A", "Approve the answer shown, and open the next case")
OVERRIDE = Key("O", "O or W", "Override: write in the corrected answer")
REJECT = Key("X", "X", "Reject the answer")
ESCALATE = Key("E", "E", "Escalate")
REASON = Key("1", "1–9, 0", "Choose a reason by its number, or several")
TAKE = Key("Shift+W", "Shift W", "Take the revision as correction")
NOTE = Key("T", "T", "Write a note")
LABELS = Key(
    "L", "L", "Label the claim, reference or chunk that you chose last, or that has the focus"
)
MISSING = Key("Shift+L", "Shift L", "Say that a needed passage is missing from the evidence")
LABEL_WORDS = Key("M", "M", "Report an issue in the words selected in the answer, or in a sentence")
INSERT = Key("I", "I", "Insert the evidence's sentence on the issue of F, or the citation it lacks")
REPORT = Key("Shift+M", "Shift M", "Report an issue with the whole answer")
CODE = Key("Y", "Y", "Add a failure mode to the case, or remove one")
WITHOUT_PASSAGES = Key(
    "Z", "Z", "Verify claims without the passages that decide them, to see if they're the reason"
)
SUBMIT = Key("Ctrl+Enter", "Ctrl Enter", "Submit and open the next case, also while typing")
LEAVE = Key("Esc", "Esc", "Leave a field")
UNDO = Key(
    "U", "U", "Undo the last step here, or the decision on this case, or the previous one or skip"
)
NEXT = Key("N", "N", "Next case to review, or the next case in the list")
SKIP = Key("S", "S", "Skip the case without deciding it")
FORWARD = Key("J", "J", "Next case in the list")
BACK = Key("K", "K", "Previous case in the list")
ITERATION_BACK = Key("[", "[", "Previous iteration")
ITERATION_FORWARD = Key("]", "]", "Next iteration")
NEXT_ISSUE = Key(
    "F", "F", "Next issue by number; 1 is the most serious. Then the claims that aren't confirmed"
)
PREVIOUS_ISSUE = Key("Shift+F", "Shift F", "Previous issue or unconfirmed claim")
TURN = Key("G", "G", "Switch between the answer and the evidence")
DIFF = Key("D", "D", "Show what changed between iterations")
SWITCH = Key("V", "V", "Switch between the original and its correction, or the best revision")
HELP = Key("H", "H or ?", "Show or hide these keys")
NEXT_ROW = Key("J", "J", "Row after the outlined one, or the first; then ↓ works as well")
PREVIOUS_ROW = Key("K", "K", "Row before the outlined one, or the last; then ↑ works as well")
ENDS = Key("Home", "Home End", "First and last row, once a row has the focus")
OPEN = Key(
    "Enter",
    "Enter",
    "Open the row, with Ctrl in a new tab; in the queue without a focused row, the first case",
)
SELECT_ROW = Key("X", "X", "In the queue: select the row with the focus, or deselect it")
SELECT_RANGE = Key("Shift+X", "Shift X", "Select all rows from the last selected one to this one")
ROW_ACTIONS = Key("B", "B", "Focus the actions for the selected rows; Esc deselects them")
ADJUDICATE = Key(
    "Enter",
    "Enter",
    "On a case whose reviewers disagree, open its adjudication; H shows its keys there",
)
TAKE_SIDE = Key(
    "1",
    "1 2 …",
    "Start from a reviewer's decision; the number after the last one brings back your own text",
)
TYPE_REASON = Key(
    "Shift+T",
    "Shift T",
    "Type the reason, or choose a usual one by its number while the field is empty",
)
TYPE_NOTE = Key("T", "T", "Write a note")
BEGIN_AGAIN = Key("B", "B", "Restart the correction from the answer or another correction")
NEXT_TO_ADJUDICATE = Key("N", "N or J", "Next case that needs your adjudication")
PREVIOUS = Key("K", "K or P", "Previous case that needs your adjudication")
CHOOSE = Key("A", "A X E", "Choose approve, reject or escalate, and type the reason")
CHANGE = Key("M", "M", "Change the verdict of a settled case, or cancel the change")
UNDO_FINAL = Key(
    "U", "U", "Undo the last step here, or your final verdict shown, or the one recorded last"
)
RECORD = Key(
    "Ctrl+Enter", "Ctrl Enter", "Record the final verdict and open the next case, also while typing"
)
NEXT_PAIR = Key("N", "N", "Next question with both answers, or the first one")
PREVIOUS_PAIR = Key("P", "P", "Previous question with both answers")
UNDO_PREFERENCE = Key("U", "U", "Undo your newest verdict")
AGREE = Key("A", "A", "Agree with the grade of the opened abstract")
SEARCH = Key("/", "/", "Search the queue; Enter focuses the first row found")

_DECIDE = (
    APPROVE,
    OVERRIDE,
    REJECT,
    ESCALATE,
    REASON,
    TAKE,
    INSERT,
    NOTE,
    LABELS,
    MISSING,
    LABEL_WORDS,
    REPORT,
    CODE,
    WITHOUT_PASSAGES,
)
GROUPS: tuple[tuple[str, tuple[Key, ...]], ...] = (
    ("Decide", (*_DECIDE, SUBMIT, LEAVE, UNDO)),
    ("Navigate", (NEXT, SKIP, FORWARD, BACK, SEARCH)),
    (
        "View",
        (NEXT_ISSUE, PREVIOUS_ISSUE, TURN, SWITCH, ITERATION_BACK, ITERATION_FORWARD, DIFF, HELP),
    ),
)

LABEL_BAR: tuple[Key, ...] = (
    Key("1", "1–6", "Choose the label"),
    Key("0", "0", "Remove the label"),
    Key("Y", "Y", "Confirm the audit's passage, with its verdict unless you chose a label"),
    Key("ArrowDown", "↓ ↑", "Step through the sentences of the evidence; Shift adds the next one"),
    Key("S", "S", "The selected words or the sentence support it; S again removes them"),
    Key("C", "C", "The selected words or the sentence contradict it"),
    Key("R", "R", "Give the right reference, by its number or its card"),
    Key("Q", "Q P I", "Kind of support: quotation, paraphrase, inference"),
    Key("Backspace", "Backspace", "Remove a passage"),
    Key("J", "J K", "Next or previous part"),
    Key("Enter", "Enter", "Close the bar; everything is in your draft"),
)
"""The keys while a label is given (``components/label_bar.js``). The bar has all letters then."""

_LABELLING = "While you label (L)"
_CHOOSE = (TAKE_SIDE, TYPE_REASON, TYPE_NOTE, CHOOSE, OVERRIDE._replace(shown="O"), BEGIN_AGAIN)
_ADJUDICATION = (*_CHOOSE, LABELS, MISSING, RECORD, LEAVE, UNDO_FINAL, CHANGE)
_BESIDE = (NEXT_TO_ADJUDICATE, PREVIOUS, NEXT_ISSUE, PREVIOUS_ISSUE, TURN, HELP)
_ROWS = (NEXT_ROW, PREVIOUS_ROW, ENDS, OPEN)
_SELECTION = (SELECT_ROW, SELECT_RANGE, ROW_ACTIONS)
_PAGE_KEYS: dict[str, tuple[Key, ...]] = {
    "screening": (AGREE,),
    "compare": (NEXT_PAIR, PREVIOUS_PAIR),
    "preference": (
        *(Key(choice.key, choice.key, choice.title) for choice in VERDICT_CHOICES.values()),
        Key("T", "T", "Type the reason; Esc leaves the field"),
        UNDO_PREFERENCE,
    ),
}
"""The keys that only one page has."""
_WITHOUT_LISTS = frozenset({"new", "settings", "health"})
"""Pages without a table whose rows can be opened."""


def key_map() -> list[KeyGroup]:
    """Return all keys of the case page in groups."""
    groups = [_key_group(title, keys) for title, keys in GROUPS]
    return [*groups, _key_group(_LABELLING, LABEL_BAR)]


def adjudication_keys() -> list[KeyGroup]:
    """Return all keys of an adjudication in groups."""
    return [
        _key_group("Adjudicate", _ADJUDICATION),
        _key_group("View and navigate", _BESIDE),
        _key_group(_LABELLING, LABEL_BAR),
    ]


def page_key_map(page: str) -> dict[str, Any]:
    """Return the keys of a page without a decision form as data for its component.

    The data holds the key sheet, whether rows can be walked, and the name of the search field.

    Args:
        page: The last part of its address, empty for the overview.

    """
    rows = page not in _WITHOUT_LISTS
    search = "search" if page == "queue" else None
    groups = [
        *(
            [
                _key_group(
                    "Lists",
                    (
                        *_ROWS,
                        *(_SELECTION if page == "queue" else ()),
                        *([ADJUDICATE] if page in ("queue", "team") else []),
                    ),
                )
            ]
            if rows
            else []
        ),
        _key_group(
            "This page",
            (*([SEARCH] if search else []), *_PAGE_KEYS.get(page, ()), HELP),
        ),
        *(_key_group(f"On a case: {title.lower()}", keys) for title, keys in GROUPS),
    ]
    return {"keys": groups, "rows": rows, "search": search}


def _key_group(title: str, keys: tuple[Key, ...]) -> KeyGroup:
    return {"title": title, "keys": [(key.shown, key.does) for key in keys]}


def open_at(container: str) -> None:
    """Scroll the page to one of its containers, which a link from another page named."""
    st.session_state[_OPEN_AT] = container


def page_keys(page: str) -> None:
    """Listen for the keys of a page and show them on H or ?. Call it after the page is drawn."""
    about = {
        "page": address.value("page"),
        "name": page,
        "at": st.session_state.pop(_OPEN_AT, ""),
    }
    # Clicking the menu's link to the open page clears its address, so that it starts over.
    _KEYS(
        data={**page_key_map(page), **about},
        key="page-keys",
        on_begin_change=lambda: address.clear(list(st.query_params)),
    )
