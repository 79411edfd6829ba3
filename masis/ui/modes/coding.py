"""Open coding: search what people and the audit wrote, and apply codes to rows."""

from __future__ import annotations

from datetime import date, timedelta
from typing import get_args

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
from masis.services.modes.service import MOST_APPLIED, CodedBatch, CodingPreview
from masis.services.records import ObservationFilter
from masis.ui.modes.outcome import choose_mode, ensure_mode, run_action
from masis.ui.shell import address
from masis.ui.shell.permissions import button_state
from masis.ui.shell.reviewer import actor
from masis.views.markdown import escape_markdown
from masis.views.numbers import moment

ROWS = 20
LONGEST_SHOWN = 400
_PREVIEW, _MODE, _CHOSEN = "modes-preview", "modes-code", "modes-chosen"
_SWITCHES = {"faults": "Faults only", "uncoded": "Without a code"}
_DAYS = {"since": "From", "until": "To"}
_FILTERS = ("q", "kind", "author", "system", "mode", "cause", *_DAYS, *_SWITCHES)


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
        draw_row(row, book, chosen=True)
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


def draw_row(row: CaseObservation, book: Codebook, *, chosen: bool = False) -> None:
    """Draw one observation with a link to its case; with ``chosen`` it has a checkbox."""
    words = " ".join(row.text.split()) or row.type.replace("_", " ")
    words = words if len(words) <= LONGEST_SHOWN else f"{words[:LONGEST_SHOWN]}…"
    # the key lets J and K find the row (page_keys.js)
    with st.container(border=True, key=f"list-row-{row.id}"):
        if chosen:
            st.session_state[_checkbox(row.id)] = row.id in read_choice()
            st.checkbox(
                escape_markdown(words),
                key=_checkbox(row.id),
                on_change=_choose_row,
                args=(row.id,),
            )
        else:
            st.text(words)
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
            st.page_link(
                "pages/review.py",
                label=escape_markdown(row.case_id),
                query_params={"case": row.case_id},
                width="content",
            )


def _checkbox(row_id: str) -> str:
    return f"modes-row-{row_id}"


def read_choice() -> list[str]:
    """Return the ids of the chosen rows.

    Streamlit forgets the checkboxes that it doesn't draw, such as those of another page of the
    list.
    """
    chosen: list[str] = st.session_state.setdefault(_CHOSEN, [])
    return chosen


def _choose_row(row_id: str) -> None:
    others = [chosen for chosen in read_choice() if chosen != row_id]
    st.session_state[_CHOSEN] = [*others, row_id] if st.session_state[_checkbox(row_id)] else others


def forget_choice() -> None:
    """Choose no row, and drop the preview of similar ones."""
    st.session_state[_CHOSEN] = []
    st.session_state.pop(_PREVIEW, None)


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
        def act() -> str:
            code = ensure_mode(workbench, st.session_state[_MODE])
            similar = workbench.modes.similar(actor(), marked[0])
            preview = workbench.modes.preview(actor(), [code], similar, without=marked)
            st.session_state[_PREVIEW] = preview if preview.ids else None
            if not preview.ids:
                return "No other similar row without this code."
            return f"{count_noun(len(preview.ids), 'other similar row')} without this code."

        run_action(act)

    def split() -> None:
        def act() -> CodedBatch:
            name = mode or ""
            new = FailureMode(
                code=code_from_name(name, [known.code for known in book.modes]),
                name=name,
                parent=source.parent if source else None,
            )
            return workbench.modes.split(actor(), source.code if source else "", new, marked)

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
                help="Choose one row and a code. A new name is added to the codebook.",
            ),
        )
        if source is not None:
            st.button(
                f"Split off {count_noun(len(marked), 'row')}",
                key="modes-split",
                on_click=split,
                **button_state(
                    "oversee",
                    disabled=not marked or not mode or book.find(mode) is not None,
                    help=f"Choose rows of “{escape_markdown(source.name)}” and type the name of the"
                    " new mode. Codes that others applied are kept.",
                ),
            )
        if marked:
            st.button("Clear choice", key="modes-clear-choice", on_click=forget_choice)
    if elsewhere:
        st.caption(f"{elsewhere:,} of {count_noun(len(marked), 'chosen row')} not on this page")
    preview: CodingPreview | None = st.session_state.get(_PREVIEW)
    if preview is not None:
        _draw_preview(workbench, book, preview)


def _draw_preview(workbench: Workbench, book: Codebook, preview: CodingPreview) -> None:
    mode = book.find(preview.codes[0])
    name = mode.name if mode else preview.codes[0]
    chosen = read_choice()

    def apply() -> None:
        ids = [*chosen, *preview.ids][:MOST_APPLIED]
        if run_action(lambda: workbench.modes.apply(actor(), preview.codes, ids)):
            forget_choice()
            st.session_state[_MODE] = None

    with st.container(border=True, key="modes-preview-box"):
        st.markdown(
            f"**Apply “{escape_markdown(name)}” to {count_noun(len(chosen), 'chosen row')} and"
            f" {count_noun(len(preview.ids), 'similar row')}"
            f" in {count_noun(preview.cases, 'case')}?**"
            f" {preview.left_out:,} others have it already."
        )
        for row in preview.sample:
            st.text(f"{row.case_id}: {' '.join(row.text.split())[:LONGEST_SHOWN]}")
        if len(preview.ids) > len(preview.sample):
            st.caption(f"and {len(preview.ids) - len(preview.sample):,} more")
        with st.container(horizontal=True):
            st.button(
                "Apply to all of them",
                key="modes-apply-similar",
                on_click=apply,
                **button_state("decide"),
            )
            st.button(
                "Cancel",
                key="modes-cancel",
                on_click=lambda: st.session_state.pop(_PREVIEW, None),
            )
