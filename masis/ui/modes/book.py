"""The codebook: its tree, the mode that is open, starting codebooks, and versions."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from masis.schema.codebook import Codebook, FailureMode, NestedMode, code_from_name
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.modes.codebooks import starting_codebooks
from masis.services.modes.service import ModeCount
from masis.ui.components.linked_table import LinkedRow, column, linked_table, row
from masis.ui.modes.coding import forget_choice
from masis.ui.modes.outcome import MergedMode, run_action, unmerge
from masis.ui.shell import address
from masis.ui.shell.permissions import button_state
from masis.ui.shell.reviewer import actor
from masis.views.markdown import escape_markdown
from masis.views.numbers import moment

NAMED_CHANGES = 5
"""How many modes with the same change a version names."""
LARGEST_FILE_BYTES = 5_000_000


def show_book(workbench: Workbench) -> None:
    """Draw the tree of modes, the one in the address, and what changes the whole codebook."""
    book = workbench.modes.codebook(actor())
    mode = book.find(address.value("code"))
    counts = {count.mode: count for count in workbench.modes.count_modes(actor())}
    if book.in_use:
        rows = [_mode_row(nested, counts.get(nested.mode.code)) for nested in book.in_tree_order()]
        opened = linked_table(
            [
                column("Mode", "main"),
                column("Cases", "figure"),
                column("Rows", "figure"),
                column("Definition", "text"),
            ],
            rows,
            description="Codebook",
            key="modes-book",
        )
        if opened and book.find(opened):
            address.set_param("code", opened)
            st.rerun()
    else:
        st.markdown(
            "**The codebook is empty.** Confirm a group, code a row with a new name, or start"
            " from one of these."
        )
    _draw_new(workbench, book)
    if mode is not None:
        _draw_mode(workbench, book, mode, counts.get(mode.code))
    _draw_merged(workbench, book)
    _draw_starting(workbench, is_empty=not book.in_use)
    _draw_versions(workbench)


def _draw_new(workbench: Workbench, book: Codebook) -> None:
    """Draw the form that adds a mode, such as a parent for others, before any row has it."""
    parents = {mode.code: mode.name for mode in book.in_use}
    prefix = f"modes-new-{book.version}"

    def add() -> None:
        def act() -> str:
            name: str = st.session_state[f"{prefix}-name"]
            mode = FailureMode(
                code=code_from_name(name, [known.code for known in book.modes]),
                name=name,
                definition=st.session_state[f"{prefix}-definition"],
                parent=st.session_state[f"{prefix}-parent"],
            )
            workbench.modes.add_mode(actor(), mode)
            return f"Added “{mode.name}”."

        run_action(act)

    with st.expander("Add a mode"), st.form(f"{prefix}-form"):
        st.text_input("Name", max_chars=100, key=f"{prefix}-name")
        st.text_area("Definition", max_chars=2000, key=f"{prefix}-definition", height=80)
        st.selectbox(
            "Parent mode",
            list(parents),
            index=None,
            format_func=parents.__getitem__,
            placeholder="None",
            key=f"{prefix}-parent",
        )
        st.form_submit_button("Add mode", on_click=add, **button_state("decide"))


def _mode_row(nested: NestedMode, count: ModeCount | None) -> LinkedRow:
    mode = nested.mode
    link = address.link("modes", view="book", code=mode.code)
    return row(
        {"text": nested.indented_name, "href": link, "open": mode.code},
        *_figures(count),
        {"quote": mode.definition},
        open=mode.code,
        marked=address.value("code") == mode.code,
    )


def _figures(count: ModeCount | None) -> tuple[str, str]:
    """Return how many cases and rows have a mode, including those under it."""
    return ("0", "0") if count is None else (f"{count.cases:,}", f"{count.observations:,}")


def _draw_mode(
    workbench: Workbench, book: Codebook, mode: FailureMode, count: ModeCount | None
) -> None:
    others = {
        other.code: other.name
        for other in book.in_use
        if other.code != mode.code and mode.code not in book.ancestors(other.code)
    }
    prefix = f"modes-edit-{mode.code}-{book.version}"

    def save() -> None:
        def act() -> str:
            content = {
                name: st.session_state[f"{prefix}-{name}"]
                for name in ("name", "definition", "example", "counter_example", "parent")
            }
            changed = FailureMode.model_validate({**mode.model_dump(), **content})
            workbench.modes.change_mode(actor(), changed)
            return f"Saved “{changed.name}”."

        run_action(act)

    def merge() -> None:
        into: str = st.session_state[f"{prefix}-into"]

        def act() -> MergedMode:
            workbench.modes.merge(actor(), [mode.code], into)
            return MergedMode(mode.code, f"Merged “{mode.name}” into “{others[into]}”.")

        if run_action(act):
            address.set_param("code", into)

    st.header(escape_markdown(mode.name), anchor=False)
    with st.form(f"{prefix}-form"):
        st.text_input("Name", mode.name, max_chars=100, key=f"{prefix}-name")
        for field, label in (
            ("definition", "Definition"),
            ("example", "Example"),
            ("counter_example", "Counter-example"),
        ):
            text = getattr(mode, field)
            st.text_area(label, text, max_chars=2000, key=f"{prefix}-{field}", height=80)
        st.selectbox(
            "Parent mode",
            list(others),
            index=list(others).index(mode.parent) if mode.parent in others else None,
            format_func=others.__getitem__,
            placeholder="None",
            key=f"{prefix}-parent",
        )
        st.form_submit_button("Save mode", on_click=save, **button_state("oversee"))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        into = st.selectbox(
            "Merge into",
            list(others),
            index=None,
            format_func=others.__getitem__,
            key=f"{prefix}-into",
            placeholder="Choose a mode",
        )
        st.button(
            "Merge modes",
            key="modes-merge",
            on_click=merge,
            **button_state("oversee", disabled=into is None),
        )
        st.button(
            "View coded rows",
            key="modes-read-rows",
            icon=":material/list:",
            type="tertiary",
            on_click=_open_rows,
            args=(mode.code,),
            help="Rows with this mode, to read, move or take out.",
        )
    if into is not None:
        st.caption(_merge_effect(count, others[into]))


def _merge_effect(count: ModeCount | None, into: str) -> str:
    """Say how much counts for another mode after a merge, before the person merges."""
    cases, rows = (count.cases, count.observations) if count else (0, 0)
    return (
        f"{count_noun(cases, 'case')} and {count_noun(rows, 'row')} will count for"
        f" “{escape_markdown(into)}”. You can undo the merge."
    )


def _open_rows(code: str) -> None:
    """Show the rows of a mode. A link to the page that is open would not change its address."""
    forget_choice()
    address.replace({"mode": code})


def _draw_merged(workbench: Workbench, book: Codebook) -> None:
    """List the modes that were merged into others, each with a button to unmerge it."""
    merged = [mode for mode in book.modes if mode.merged_into is not None]
    if not merged:
        return
    with st.expander(f"Merged modes ({len(merged):,})"):
        for mode in merged:
            into = book.find(mode.code)
            with st.container(horizontal=True, vertical_alignment="center"):
                st.text(f"{mode.name}, merged into {into.name if into else mode.merged_into}")
                st.button(
                    "Unmerge",
                    key=f"modes-unmerge-{mode.code}",
                    on_click=unmerge,
                    args=(workbench, mode.code),
                    **button_state("oversee", help="The mode gets its own entries back."),
                )


def _draw_starting(workbench: Workbench, *, is_empty: bool) -> None:
    with st.expander("Start, download or upload a codebook", expanded=is_empty):
        for name, start in starting_codebooks().items():
            st.markdown(f"**{escape_markdown(start.title)}.** {escape_markdown(start.summary)}")
            st.button(
                f"Add its {count_noun(len(start.codebook.modes), 'mode')}",
                key=f"modes-start-{name}",
                on_click=_offer_start,
                args=(workbench, name),
                **button_state("oversee"),
            )
        st.download_button(
            "Download codebook",
            workbench.modes.export_codebook(actor()),
            "codebook.json",
            "application/json",
            key="modes-download",
        )
        file = st.file_uploader("Codebook as JSON", type="json", key="modes-file")

        def add_modes() -> str:
            if file is None or file.size > LARGEST_FILE_BYTES:
                return "Choose a JSON file of at most 5 MB."
            text = file.getvalue().decode("utf-8", errors="replace")
            added = workbench.modes.import_codebook(actor(), text)
            return f"The codebook has {count_noun(len(added.in_use), 'mode')} now."

        def upload() -> None:
            run_action(add_modes)

        st.button(
            "Upload codebook",
            key="modes-upload",
            on_click=upload,
            **button_state("oversee", disabled=file is None),
        )


def _offer_start(workbench: Workbench, name: str) -> None:
    def act() -> str:
        book = workbench.modes.start_codebook(actor(), name)
        return f"The codebook has {count_noun(len(book.in_use), 'mode')} now."

    run_action(act)


def _draw_versions(workbench: Workbench) -> None:
    versions = workbench.modes.history(actor())
    if not versions:
        return
    with st.expander(f"Versions ({len(versions):,})"):
        earlier = (Codebook(), *(version.codebook for version in versions))
        changes = list(zip(earlier, versions, strict=False))
        for before, version in reversed(changes[-50:]):
            st.text(
                f"{moment(version.at)} UTC, {version.by}:"
                f" {describe_change(before, version.codebook)}"
            )


def describe_change(before: Codebook, after: Codebook) -> str:
    """Return what one version of the codebook changed, such as “added “Wrong date””."""
    old = {mode.code: mode for mode in before.modes}
    new = {mode.code: mode for mode in after.modes}
    names = {code: mode.name for code, mode in (old | new).items()}
    by_change: dict[str, list[str]] = {}
    for code, mode in new.items():
        for change in _changes_of_mode(old.get(code), mode, names):
            by_change.setdefault(change, []).append(mode.name)
    if removed := [names[code] for code in old if code not in new]:
        by_change["removed"] = removed
    parts = [
        f"{change} {', '.join(f'“{name}”' for name in named[:NAMED_CHANGES])}"
        + (f" and {len(named) - NAMED_CHANGES:,} more" if len(named) > NAMED_CHANGES else "")
        for change, named in by_change.items()
    ]
    total = count_noun(len(after.in_use), "mode")
    return f"{'; '.join(parts) or 'changed the sources'} ({total})"


def _changes_of_mode(
    old: FailureMode | None, new: FailureMode, names: Mapping[str, str]
) -> list[str]:
    """Return what changed in a mode, each as words that its name can follow."""
    if old is None:
        return ["added"]
    changes: list[str] = []
    if new.merged_into != old.merged_into:
        into = new.merged_into
        return [f"merged into “{names.get(into, into)}”:" if into else "unmerged"]
    if new.name != old.name:
        changes.append(f"renamed “{old.name}” to")
    texts = {"definition": "definition", "example": "example", "counter_example": "counter-example"}
    changed = [
        label for field, label in texts.items() if getattr(new, field) != getattr(old, field)
    ]
    if changed:
        changes.append(f"changed the {' and '.join(changed)} of")
    if new.parent != old.parent:
        parent = new.parent
        changes.append(
            f"nested under “{names.get(parent, parent)}”:" if parent else "moved to the top:"
        )
    return changes
