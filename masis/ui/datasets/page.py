"""The page of dataset versions: the list, one version, a comparison of two, and freezing."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from masis.datasets.exports.export import DECIDED, ENCODINGS, Selection
from masis.datasets.exports.formats import export_formats
from masis.datasets.exports.versions import VersionChange
from masis.errors import MasisError, NotAllowed, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.datasets import DatasetComparison
from masis.services.records import CaseFilter, DatasetVersion
from masis.services.relabelling import GuaranteeState, guarantee_text, offer_text
from masis.ui.components.linked_table import LinkedRow, TableCell, column, linked_table, row
from masis.ui.queue.case_list import MOST_EXPORTED, only_decided
from masis.ui.shell import address
from masis.ui.shell.downloads import prepared_download
from masis.ui.shell.inputs import show_value
from masis.ui.shell.permissions import button_state
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import command_markdown
from masis.views.markdown import escape_markdown
from masis.views.numbers import moment
from masis.views.words import DECIDED as VERDICT_GIVEN
from masis.views.words import MACHINE_HIDDEN, STATE

COMPARED = 50
"""Differing cases that the page lists; `masis dataset compare` lists all."""

_FROZEN = "dataset-frozen"
_GUARANTEE_ERROR = "dataset-guarantee-error"

KINDS = {
    "added": "added",
    "removed": "removed",
    "relabelled": "relabeled",
    "moved": "moved to another split",
    "reaudited": "about another audit or answer",
}


def show_datasets(workbench: Workbench) -> None:
    """Draw the page."""
    st.title("Dataset versions")
    st.markdown(
        "A version records the cases, decisions and audits of a data set. It can be written again"
        " byte for byte, no matter what is decided later, and compared with another version."
    )
    if name := st.session_state.pop(_FROZEN, None):
        st.success(f"{escape_markdown(name)} is frozen.", icon=":material/check_circle:")
    versions = workbench.store.datasets.list_all()
    if versions:
        rows = [
            version_row(version, marked=version.name == address.value("version"))
            for version in versions
        ]
        if name := linked_table(
            VERSIONS, rows, description="Dataset versions", key="dataset-versions"
        ):
            address.set_param("against", "")
            address.set_param("version", name)
            st.rerun()
    else:
        st.info(
            "There is no version yet. Freeze the decided cases below, or filter the queue and"
            " choose “Freeze these cases” under Export.",
            icon=":material/info:",
        )
    if opened := address.value("version"):
        _draw_version(workbench, opened, versions)
    _draw_freeze_form(workbench)


VERSIONS = [
    column("Version", "main"),
    column("Format"),
    column("Rows", "figure"),
    column("Cases", "figure", hide="hide-narrow"),
    column("Frozen (UTC)", "figure"),
    column("By", hide="hide-medium"),
]


def version_row(version: DatasetVersion, *, marked: bool = False) -> LinkedRow:
    """Return a row of the list for one version."""
    about = " ".join(version.description.split())[:200]
    name: TableCell = {
        "text": version.name,
        "href": address.link("datasets", version=version.name),
        "open": version.name,
    }
    form = version.form if version.encoding == "jsonl" else f"{version.form}, {version.encoding}"
    return row(
        {**name, "below": [about] if about else []},
        form,
        version.rows,
        version.cases,
        moment(version.at),
        version.by,
        open=version.name,
        marked=marked,
    )


def _draw_version(workbench: Workbench, name: str, versions: tuple[DatasetVersion, ...]) -> None:
    version = next((other for other in versions if other.name == name), None)
    if version is None:
        st.warning("There is no version with this name.", icon=":material/warning:")
        return
    st.header(escape_markdown(name))
    # Labels and samples are people's, so they're shown under a policy that hides the audit too.
    _draw_guarantee(workbench, name)
    if workbench.cases.hides_machine_from(actor()):
        st.caption(
            f"{MACHINE_HIDDEN} A frozen version may contain results for cases that you haven't"
            " decided."
        )
        return
    if version.description:
        st.text(version.description)
    st.caption(figures(version))
    lost = workbench.store.datasets.count_lost(name)
    user = actor()
    with st.container(horizontal=True, vertical_alignment="center", key="dataset-actions"):
        if any(lost):
            st.markdown(f":red[**{str(lost).capitalize()}.**] It can still be compared.")
        elif not workbench.access.allows(user, "export"):
            st.caption("You need the lead role to download.")
        elif version.cases > MOST_EXPORTED:
            st.caption(
                f"More than {MOST_EXPORTED:,} cases:"
                f" {command_markdown(f'masis dataset export {name} --out FILE')}"
            )
        else:
            prepared_download(
                name,
                lambda: workbench.datasets.zip(user, name),
                file_name=f"{name}.zip",
                key="dataset-prepare",
                help_=(
                    "The same bytes as when it was frozen, checked by their digest, and the"
                    " manifest, in a zip file."
                ),
                width="content",
            )
        if workbench.access.allows(user, "oversee"):
            with st.popover("Remove", icon=":material/delete:"):
                st.markdown(
                    "Cases and decisions are kept; this version can't be rebuilt afterward."
                )
                st.button(
                    f"Remove {name}",
                    key="dataset-remove",
                    on_click=_remove_version,
                    args=(workbench, name),
                )
    with st.expander("Manifest"):
        st.json(workbench.relabelling.manifest(user, name))
    _draw_version_comparison(
        workbench, name, [other.name for other in versions if other.name != name]
    )


DIFFERING = [
    column("Case", "main"),
    column("Label"),
    column("Labeled again"),
]


def _draw_guarantee(workbench: Workbench, name: str) -> None:
    """Draw the sample of a version's labels: what it needs, its progress and its result."""
    user = actor()
    with st.expander("Guarantee", icon=":material/verified:", expanded=True):
        state = workbench.relabelling.state(user, name)
        if state is not None:
            _draw_guarantee_state(workbench, name, state)
        if state is None or state.status != "open":
            _draw_label_sample_form(workbench, name)
        if message := st.session_state.pop(_GUARANTEE_ERROR, ""):
            st.error("Nothing was changed.", icon=":material/error:")
            st.text(message)


def _draw_guarantee_state(workbench: Workbench, name: str, state: GuaranteeState) -> None:
    plan = state.plan
    st.markdown(f"**{guarantee_text(state)}**")
    people = ", ".join(
        f"{escape_markdown(person)} {done:,} of {total:,}"
        for person, (done, total) in state.by_person.items()
    )
    drawn = f"Drawn by {escape_markdown(plan.by)} on {plan.at[:10]}, seed {plan.seed}."
    st.caption(f"{drawn} Labeled again: {people or 'nothing'}.")
    if state.status == "open":
        total = len(plan.case_ids)
        st.progress((total - state.remaining) / total)
        st.caption(
            "The result is shown when all are labeled, so that nobody can stop at a convenient"
            " moment. The cases are in these people's queues, under separate ids."
        )
        st.button(
            "Withdraw the sample",
            key="guarantee-withdraw",
            on_click=_run_guarantee_action,
            args=(workbench.relabelling.withdraw, name),
            **button_state("oversee"),
        )
    if state.differing:
        rows = [
            row(
                {"text": label.case_id, "href": address.link("review", case=label.case_id)},
                *(
                    VERDICT_GIVEN[verdict].text if verdict else "Redacted"
                    for verdict in (label.verdict, label.again)
                ),
            )
            for label in state.differing[:COMPARED]
        ]
        linked_table(DIFFERING, rows, description="Labels that differ", key="guarantee-differing")
        if (more := len(state.differing) - len(rows)) > 0:
            st.caption(f"and {more:,} more")


def _draw_label_sample_form(workbench: Workbench, name: str) -> None:
    """Draw the form of a new sample. It says how many labels are needed before work begins."""
    st.markdown(
        "Guarantee that at most a stated share of the labels is wrong. Other people relabel a"
        " random sample without seeing the labels. A label is wrong if the class of the verdict"
        " differs (approved, corrected or rejected, escalated), or if both people labeled the same"
        " words differently."
    )
    left, middle, right = st.columns(3)
    rate = left.number_input("Wrong at most (%)", 0.1, 50.0, 3.0, 0.5, key="guarantee-rate") / 100
    level = middle.number_input(
        "Confidence level (%)", 50.0, 99.9, 95.0, 0.5, key="guarantee-level"
    )
    rate, level = round(rate, 6), round(level / 100, 6)
    offer = workbench.relabelling.offer(actor(), name, rate=rate, level=level)
    st.text(offer_text(offer, rate, level))
    least = offer.needed[0] if offer.needed else None
    if least is None:
        return
    # The key has the minimum, so that a new minimum makes a new field that starts with it.
    size = right.number_input("Labels", least, offer.labels, least, key=f"guarantee-size-{least}")
    names = st.text_input(
        "People who label the sample",
        key="guarantee-people",
        max_chars=1_000,
        help="Names, separated by commas. Nobody gets a case that they decided themselves.",
    )
    st.button(
        f"Draw {count_noun(int(size), 'label')}",
        type="primary",
        key="guarantee-draw",
        on_click=_draw_label_sample,
        args=(workbench, name, names.split(","), rate, level, int(size)),
        **button_state("oversee", disabled=not names.strip(" ,")),
    )


def _draw_label_sample(
    workbench: Workbench, name: str, people: list[str], rate: float, level: float, size: int
) -> None:
    def draw(user: Actor, dataset: str) -> None:
        workbench.relabelling.draw(user, dataset, people, rate=rate, level=level, n=size)

    _run_guarantee_action(draw, name)


def _run_guarantee_action(action: Callable[[Actor, str], object], name: str) -> None:
    try:
        action(actor(), name)
    except MasisError as error:
        st.session_state[_GUARANTEE_ERROR] = str(error)


def figures(version: DatasetVersion) -> str:
    """Describe a version in Markdown: rows by side, class balance, licences, omitted cases."""
    manifest, counts = version.manifest, version.manifest["counts"]
    parts = [f"{count_noun(version.rows, 'row')} of {count_noun(version.cases, 'case')}"]
    for title, counts_by_name in (
        ("sides", counts["rows_by_split"]),
        *manifest["class_balance"].items(),
        ("licences", manifest["licences"]),
        ("left out", counts["left_out"]),
    ):
        if counts_by_name:
            words = ", ".join(
                f"{escape_markdown(key)} {number:,}" for key, number in counts_by_name.items()
            )
            parts.append(f"{title.replace('_', ' ')}: {words}")
    return "  ·  ".join(parts)


def _remove_version(workbench: Workbench, name: str) -> None:
    try:
        workbench.datasets.remove(actor(), name)
    except (NotAllowed, UnknownRecord) as error:
        st.toast(escape_markdown(str(error)))
        return
    address.set_param("version", "")


def _draw_version_comparison(workbench: Workbench, name: str, others: list[str]) -> None:
    if not others:
        return
    chosen = address.one_of("against", others, "")
    show_value("dataset-against", chosen)
    # An option "Choose ..." instead of an empty box, whose clear button is too small to hit safely.
    st.selectbox(
        "Compare with",
        ("", *others),
        format_func=lambda other: other or "Choose an earlier or later version",
        **address.bind_query_param("against", "", key="dataset-against", drops=()),
    )
    if not chosen:
        return
    comparison = workbench.datasets.compare(chosen, name, COMPARED)
    st.markdown(comparison_text(comparison, chosen, name))
    if not comparison.total:
        return
    rows = [change_row(change) for change in comparison.cases]
    linked_table(CHANGES, rows, description="Cases that differ", key="dataset-changes")
    if (more := comparison.total - len(comparison.cases)) > 0:
        st.caption(
            f"and {more:,} more: {command_markdown(f'masis dataset compare {chosen} {name}')}"
        )


def comparison_text(comparison: DatasetComparison, first: str, second: str) -> str:
    """Say how the second version differs from the first, in Markdown."""
    parts = [f"{count:,} {KINDS[kind]}" for kind, count in comparison.counts.items() if count]
    differs = f"**{', '.join(parts)}**" if parts else "the same cases, labels and audits"
    return f"From {escape_markdown(first)} to {escape_markdown(second)}: {differs}."


CHANGES = [
    column("Case", "main"),
    column("How it differs"),
    column("Before", hide="hide-narrow"),
    column("After"),
]


def change_row(change: VersionChange) -> LinkedRow:
    """Return a row for one differing case, which links to its page."""
    shown = [
        f"{STATE[part[0]].text}, {part[1]}" if part else None for part in (change.was, change.now)
    ]
    case: TableCell = {"text": change.case_id, "href": address.link("review", case=change.case_id)}
    return row(case, ", ".join(KINDS[kind] for kind in change.kinds), *shown)


def _draw_freeze_form(workbench: Workbench) -> None:
    """Draw the form that freezes the cases of the address's filter, or else all decided cases."""
    st.header("Freeze a version")
    if not workbench.access.allows(actor(), "export"):
        st.caption("You need the lead role to freeze a version.")
        return
    filtered = bool(address.list_parameters())
    case_filter = address.case_filter() if filtered else CaseFilter(states=DECIDED)
    undecided = filtered and not only_decided(case_filter)
    if undecided and workbench.cases.hides_machine_from(actor()):
        st.caption(
            f"{MACHINE_HIDDEN} A version of undecided cases would contain their audit results."
            " Filter the queue to decided cases."
        )
        return
    total = workbench.exports.count(case_filter)
    selection = "that match the queue's filter" if filtered else "that people have decided"
    st.markdown(f"{count_noun(total, 'case')} {selection}.")
    if filtered:
        st.page_link(
            "pages/queue.py",
            label="Change the filter in the queue",
            query_params=address.list_parameters(),
        )
    if total > MOST_EXPORTED:
        st.caption(
            f"More than {MOST_EXPORTED:,} cases:"
            f" {command_markdown('masis dataset freeze NAME --format FORMAT')}"
        )
        return
    if not total:
        st.caption("There is nothing to freeze yet.")
        return
    left, right = st.columns(2)
    form = left.selectbox(
        "Format",
        list(export_formats()),
        key="dataset-format",
        format_func=lambda name: f"{name}: {export_formats()[name].summary}",
    )
    encodings = ENCODINGS if export_formats()[form].tabular else ENCODINGS[:1]
    # The key depends on the options: Streamlit would keep a choice that another format doesn't
    # offer.
    encoding = right.selectbox("File", encodings, key=f"dataset-encoding-{len(encodings)}")
    with st.form("dataset-freeze", border=True):
        name = st.text_input("Name", max_chars=100, help="Letters, digits, '.', '-' and '_'.")
        description = st.text_area(
            "Description (optional)", max_chars=2_000, help="What it is for."
        )
        pressed = st.form_submit_button(
            f"Freeze {count_noun(total, 'case')}", type="primary", icon=":material/ac_unit:"
        )
    if not pressed:
        return
    try:
        with st.spinner("Freezing"):
            chosen = Selection(case_filter)
            workbench.datasets.freeze(
                actor(),
                name.strip(),
                form,
                chosen,
                description=description.strip(),
                encoding=encoding,
            )
    except MasisError as error:
        st.error("Nothing was frozen.", icon=":material/error:")
        st.text(str(error))
        return
    # The message is shown by the next run, which also lists the new version.
    st.session_state[_FROZEN] = name.strip()
    address.set_param("version", name.strip())
    st.rerun()
