"""Open coding: search what people and the audit wrote, and apply codes to rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import NamedTuple, get_args

import streamlit as st

from masis.schema.causes import CAUSES
from masis.schema.codebook import (
    OBSERVATION_KINDS,
    CaseObservation,
    Codebook,
    FailureMode,
    ObservationKind,
    code_from_name,
)
from masis.schema.wording import count_noun, count_noun_or_more
from masis.services import Workbench
from masis.services.modes.service import MOST_APPLIED, CodedBatch, SimilarText
from masis.services.records import ObservationFilter
from masis.ui.modes.outcome import choose_mode, ensure_mode, run_action
from masis.ui.shell import address
from masis.ui.shell.permissions import button_state
from masis.ui.shell.reviewer import actor
from masis.views.markdown import escape_markdown
from masis.views.numbers import moment

ROWS = 20
LONGEST_SHOWN = 400
_SIMILAR, _MODE, _CHOSEN = "modes-similar-texts", "modes-code", "modes-chosen"
_SWITCHES = {"faults": "Faults only", "uncoded": "Without a code"}
_DAYS = {"since": "From", "until": "To"}
_FILTERS = ("q", "kind", "author", "system", "mode", "cause", *_DAYS, *_SWITCHES)


class RankedTexts(NamedTuple):
    """The code of a mode, and the texts that may have it, nearest first."""

    code: str
    texts: tuple[SimilarText, ...]


def show_coding(workbench: Workbench) -> None:
    """Draw the search, the choice of a code, and the rows."""
    book = workbench.modes.codebook(actor())
    _draw_row_filters(workbench, book)
    page = workbench.modes.search(actor(), observation_filter(book))
    if not page.rows and (filters := _filters_in_force(book)):
        st.markdown(f"**No rows match these filters:** {escape_markdown('; '.join(filters))}.")
        st.button(
            "Clear filters",
            key="modes-clear-filters",
            icon=":material/filter_alt_off:",
            on_click=address.clear,
            args=((*_FILTERS, "page"),),
        )
        return
    if not page.rows:
        st.markdown(
            "**No rows so far.** Issues come from audits, and reasons, notes and labels from"
            " decisions. Audit and decide some cases."
        )
        st.page_link("pages/queue.py", label="Queue", icon=":material/checklist:")
        return
    _draw_actions(workbench, book, page.rows)
    st.caption(f"{count_noun_or_more(page.total, page.more, 'row')}, newest first")
    for row in page.rows:
        draw_row(row, book, tick=Tick(row.id in read_choice(), _choose_row))
    address.show_pages(page.total, ROWS, key="modes-page")


def observation_filter(book: Codebook) -> ObservationFilter:
    """Return the filter of rows that the address describes."""
    since, until = address.day("since"), address.day("until")
    codes = [code for name in address.words("mode") for code in book.codes_of(name)]
    return ObservationFilter(
        text=address.value("q")[: address.LONGEST_QUERY],
        kinds=tuple(address.several("kind", get_args(ObservationKind))),
        authors=tuple(address.words("author")),
        systems=tuple(address.words("system")),
        causes=tuple(address.several("cause", CAUSES)),
        codes=tuple(codes),
        since=since.isoformat() if since else None,
        # The address names the last day, and the filter the moment after it.
        until=(until + timedelta(days=1)).isoformat() if until and until < date.max else None,
        faults_only=address.value("faults") == "yes",
        uncoded=address.value("uncoded") == "yes",
        page=address.number("page"),
        size=ROWS,
    )


class Tick(NamedTuple):
    """Whether a row is ticked, and what is called with its id and the new state."""

    ticked: bool
    on_change: Callable[[str, bool], None]


def draw_row(row: CaseObservation, book: Codebook, *, tick: Tick) -> None:
    """Draw one observation with a checkbox and a link to its case."""
    words = _shown_words(row)
    # the key lets J and K find the row (page_keys.js)
    with st.container(border=True, key=f"list-row-{row.id}"):
        key = f"modes-row-{row.id}"
        # Streamlit forgets the checkboxes that it doesn't draw, such as those of another page.
        st.session_state[key] = tick.ticked
        st.checkbox(
            escape_markdown(words),
            key=key,
            on_change=lambda: tick.on_change(row.id, st.session_state[key]),
        )
        names = [mode.name for code in row.codes if (mode := book.find(code))]
        facts = [
            OBSERVATION_KINDS[row.kind].one,
            row.author or "audit",
            moment(row.at),
            *([f"about “{row.quote[:120]}”"] if row.quote else []),
        ]
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(escape_markdown(" · ".join(facts)))
            if names:
                st.caption(f"**{escape_markdown(', '.join(names))}**", width="content")
            _link_case(row)


def _shown_words(row: CaseObservation) -> str:
    words = " ".join(row.text.split()) or row.type.replace("_", " ")
    return words if len(words) <= LONGEST_SHOWN else f"{words[:LONGEST_SHOWN]}…"


def _link_case(row: CaseObservation) -> None:
    st.page_link(
        "pages/review.py",
        label=escape_markdown(row.case_id),
        query_params={"case": row.case_id},
        width="content",
    )


def read_choice() -> list[str]:
    """Return the ids of the chosen rows."""
    chosen: list[str] = st.session_state.setdefault(_CHOSEN, [])
    return chosen


def _choose_row(row_id: str, chosen: bool) -> None:
    st.session_state.pop(_SIMILAR, None)  # they are near to the row that was chosen before
    others = [other for other in read_choice() if other != row_id]
    st.session_state[_CHOSEN] = [*others, row_id] if chosen else others


def forget_choice() -> None:
    """Choose no row, and drop the list of similar ones."""
    st.session_state[_CHOSEN] = []
    st.session_state.pop(_SIMILAR, None)


def _draw_row_filters(workbench: Workbench, book: Codebook) -> None:
    systems = [system.name for system in workbench.systems.all(actor())]
    names = {mode.code: mode.name for mode in book.in_use}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Search",
            placeholder="Words in the text or the quoted answer, or a case",
            max_chars=address.LONGEST_QUERY,
            **address.bind_query_param("q", "", shows=address.value("q"), key="modes-q"),
        )
        st.multiselect(
            "Kind",
            list(OBSERVATION_KINDS),
            format_func=lambda kind: OBSERVATION_KINDS[kind].many,
            placeholder="Any",
            **address.bind_query_param(
                "kind",
                [],
                shows=address.several("kind", get_args(ObservationKind)),
                key="modes-kind",
            ),
        )
        authors = address.words("author")
        st.multiselect(
            "Author",
            authors,
            accept_new_options=True,
            placeholder="Any; type a name",
            **address.bind_query_param("author", [], shows=authors, key="modes-author"),
        )
        chosen = [name for name in address.words("system") if name in systems]
        if chosen or len(systems) > 1:
            st.multiselect(
                "System",
                systems,
                placeholder="Any",
                **address.bind_query_param("system", [], shows=chosen, key="modes-system"),
            )
        shown = [code for code in address.words("mode") if code in names]
        st.multiselect(
            "Mode",
            list(names),
            format_func=names.__getitem__,
            placeholder="Any",
            disabled=not names,
            **address.bind_query_param("mode", [], shows=shown, key="modes-mode"),
        )
        st.multiselect(
            "Cause",
            list(CAUSES),
            format_func=lambda cause: CAUSES[cause].name,
            placeholder="Any",
            **address.bind_query_param(
                "cause", [], shows=address.several("cause", CAUSES), key="modes-cause"
            ),
        )
        for name, label in _DAYS.items():
            st.date_input(
                label,
                format="YYYY-MM-DD",
                width=130,
                **address.bind_query_param(name, shows=address.day(name), key=f"modes-{name}"),
            )
        for name, label in _SWITCHES.items():
            st.toggle(
                label,
                **address.bind_query_param(
                    name, False, shows=address.value(name) == "yes", key=f"modes-{name}"
                ),
            )


def _filters_in_force(book: Codebook) -> list[str]:
    """Return the filters that the address sets, each with its values."""
    modes = [mode.name for code in address.words("mode") if (mode := book.find(code))]
    kinds = [OBSERVATION_KINDS[kind].many for kind in address.several("kind", OBSERVATION_KINDS)]
    text = address.value("q")[: address.LONGEST_QUERY].strip()
    values = {
        "Search": [f"“{text}”"] if text else [],
        "Kind": kinds,
        "Author": address.words("author"),
        "System": address.words("system"),
        "Mode": modes,
        "Cause": [CAUSES[cause].name for cause in address.several("cause", CAUSES)],
        **{
            label: [day.isoformat()]
            for name, label in _DAYS.items()
            if (day := address.day(name)) is not None
        },
    }
    switches = [label for name, label in _SWITCHES.items() if address.value(name) == "yes"]
    return [f"{name}: {', '.join(chosen)}" for name, chosen in values.items() if chosen] + switches


def _draw_actions(workbench: Workbench, book: Codebook, rows: tuple[CaseObservation, ...]) -> None:
    marked = read_choice()
    elsewhere = len(set(marked) - {row.id for row in rows})

    def clear() -> None:
        forget_choice()
        st.session_state[_MODE] = None

    def apply() -> None:
        def act() -> CodedBatch:
            code = ensure_mode(workbench, mode or "")
            return workbench.modes.apply(actor(), [code], marked)

        if run_action(act):
            clear()

    def find_similar() -> None:
        def act() -> None:
            code = ensure_mode(workbench, st.session_state[_MODE])
            ranked = workbench.modes.rank_similar(actor(), marked[0], [code], without=marked)
            st.session_state[_SIMILAR] = RankedTexts(code, ranked)

        run_action(act)

    def move() -> None:
        def act() -> str:
            assert source is not None  # the button is drawn only then
            old, new = source.code, mode or ""
            if book.find(new) is None:
                made = FailureMode(
                    code=code_from_name(new, [known.code for known in book.modes]),
                    name=new,
                    parent=source.parent,
                )
                batch = workbench.modes.split(actor(), old, made, marked)
            else:
                batch = workbench.modes.move_rows(actor(), old, new, marked)
            moved = count_noun(batch.entries, "row")
            return f"Moved {moved} from “{source.name}”. Codes that others applied stay."

        if run_action(act):
            clear()

    def remove() -> None:
        def act() -> str:
            assert source is not None  # the button is drawn only then
            removed = workbench.modes.remove_from_rows(actor(), source.code, marked)
            others = len(marked) - removed
            kept = f" {count_noun(others, 'row')} had no code of yours." if others else ""
            return f"Removed “{source.name}” from {count_noun(removed, 'row')}.{kept}"

        if run_action(act):
            clear()

    named = address.words("mode")
    source = book.find(named[0]) if len(named) == 1 else None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        mode = choose_mode(book, "Code", _MODE)
        st.button(
            f"Apply to {count_noun(len(marked), 'chosen row')}",
            key="modes-apply",
            type="primary",
            on_click=apply,
            **button_state(
                "decide",
                disabled=not marked or not mode,
                help="Choose rows by their checkboxes, and a code.",
            ),
        )
        st.button(
            "Show similar rows",
            key="modes-similar",
            on_click=find_similar,
            **button_state(
                "decide",
                disabled=len(marked) != 1 or not mode,
                help="Choose one row and a code. The nearest other rows are listed for you to"
                " tick. A new name is added to the codebook.",
            ),
        )
        if source is not None:
            name = escape_markdown(source.name)
            is_new = bool(mode) and book.find(mode or "") is None
            st.button(
                f"Move {count_noun(len(marked), 'row')}",
                key="modes-move",
                on_click=move,
                **button_state(
                    "oversee" if is_new else "decide",
                    disabled=not marked or not mode or mode == source.code,
                    help=f"Choose rows of “{name}”, and another mode or the name of a new one as"
                    " code. Codes that others applied stay.",
                ),
            )
            st.button(
                f"Remove from {count_noun(len(marked), 'row')}",
                key="modes-remove",
                on_click=remove,
                **button_state(
                    "decide",
                    disabled=not marked,
                    help=f"Removes the codes “{name}” that you applied to the chosen rows.",
                ),
            )
        if marked:
            st.button("Clear choice", key="modes-clear-choice", on_click=forget_choice)
    if elsewhere:
        st.caption(f"{elsewhere:,} of {count_noun(len(marked), 'chosen row')} not on this page")
    ranked: RankedTexts | None = st.session_state.get(_SIMILAR)
    if ranked is not None:
        _draw_similar(workbench, book, ranked)


def _draw_similar(workbench: Workbench, book: Codebook, ranked: RankedTexts) -> None:
    """Draw the nearest texts, nearest first, and the button that codes the ticked ones."""
    mode = book.find(ranked.code)
    name = escape_markdown(mode.name if mode else ranked.code)
    chosen = read_choice()
    with st.container(border=True, key="modes-similar-box"):
        if not ranked.texts:
            st.markdown(f"**No other row is without “{name}”.**")
        else:
            st.markdown(
                f"**Nearest rows without “{name}”, nearest first.** Tick those that have it."
            )
        ticked = [
            row_id
            for number, text in enumerate(ranked.texts)
            if _draw_similar_text(text, f"modes-similar-{chosen[0]}-{number}")
            for row_id in text.ids
        ]
        ids = [*chosen, *ticked][:MOST_APPLIED]

        def apply() -> None:
            if run_action(lambda: workbench.modes.apply(actor(), [ranked.code], ids)):
                forget_choice()
                st.session_state[_MODE] = None

        with st.container(horizontal=True):
            if ranked.texts:
                st.button(
                    f"Apply to {count_noun(len(ids), 'row')}",
                    key="modes-apply-similar",
                    on_click=apply,
                    **button_state(
                        "decide", disabled=not ticked, help="The chosen row and the ticked ones."
                    ),
                )
            st.button(
                "Cancel",
                key="modes-cancel",
                on_click=lambda: st.session_state.pop(_SIMILAR, None),
            )


def _draw_similar_text(text: SimilarText, key: str) -> bool:
    """Draw a text with its checkbox and return whether it's ticked."""
    with st.container(horizontal=True, vertical_alignment="center"):
        ticked = st.checkbox(escape_markdown(_shown_words(text.row)), key=key)
        if len(text.ids) > 1:
            st.caption(
                f"{count_noun(len(text.ids), 'row')} that differ only in numbers, quotations and"
                " citation markers",
                width="content",
            )
        _link_case(text.row)
    return ticked
