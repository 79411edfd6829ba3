"""Evidence of which only the address is known: a person pastes its text, and the case is audited as
a new version.
"""

from __future__ import annotations

from functools import partial

import streamlit as st

from masis.errors import MasisError
from masis.schema.case import Case, Evidence
from masis.schema.wording import count_noun
from masis.services import CaseView, Workbench
from masis.services.arrivals.versions import LONGEST_TEXT, CaseVersions, fillable
from masis.services.drafts import evidence_subject
from masis.ui.live import served_jobs
from masis.ui.shell import address
from masis.ui.shell.inputs import store_typed, typing_area
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import served_workbench

FIELDS = 20
"""Chunks whose text can be pasted at once; a further version takes the next."""

OPEN_TO_VERSIONS = ("new", "interrupted", "needs_review", "accepted", "escalated")
_REFUSED = "missing-evidence-refused"


def show_versions(view: CaseView, versions: CaseVersions) -> None:
    """Say that a case has an earlier or a newer version, with a way there."""
    earlier = view.case.earlier_version
    if versions.newer is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.info(
                "A newer version of this case, with more evidence, took its place.",
                icon=":material/history:",
            )
            st.button(
                "Open the newer version",
                key="newer-version",
                on_click=_open_case,
                args=(versions.newer,),
            )
    if earlier is not None:
        chunks = count_noun(len(earlier.filled), "chunk of evidence", "chunks of evidence")
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"Version {earlier.number} of this case: the text of {chunks} was pasted.")
            if versions.earlier is not None:
                st.button(
                    "Earlier version",
                    key="earlier-version",
                    type="tertiary",
                    on_click=_open_case,
                    args=(versions.earlier,),
                )


def missing_evidence(
    workbench: Workbench, view: CaseView, versions: CaseVersions, *, busy: bool
) -> None:
    """Draw the form that gives evidence its text; nothing where all of it has one, or the case is
    settled.
    """
    case = view.case
    refused, at_version = st.session_state.get(_REFUSED, {}).get(case.id, ("", 0))
    if refused and at_version == view.summary.version:  # until something happens to the case
        st.warning("The audit with the pasted text was not started.", icon=":material/error:")
        st.text(refused)
    fields = fields_of(case) if workbench.access.allows(actor(), "audit") else ()
    if (
        not fields
        or versions.newer is not None
        or view.machine_hidden
        or view.state not in OPEN_TO_VERSIONS
    ):
        return
    lacking = len(case.without_text)
    title = _title(lacking, len(case.evidence))
    nothing = lacking == len(case.evidence)
    draft = workbench.drafts.get(actor(), evidence_subject(case.id))
    with st.expander(
        title, icon=":material/content_paste:", expanded=nothing or bool(draft.values)
    ):
        st.caption(
            "What stands at an address is not loaded: open it, and paste the part that the answer"
            " rests on. The case is audited again as a new version; this one, its audits and its"
            " decisions stay as they are."
        )
        for chunk in fields[:FIELDS]:
            _draw_chunk_field(chunk, case, str(draft.values.get(chunk.id, chunk.text)))
        if (more := len(fields) - FIELDS) > 0:
            st.caption(f"{count_noun(more, 'further chunk')} can be filled in the next version.")
        st.button(
            "Audit with this text",
            key="audit-with-text",
            type="primary" if nothing else "secondary",
            icon=":material/fact_check:",
            on_click=_audit_with_text,
            args=(case.id, view.summary.version),
            disabled=busy,
        )


def fields_of(case: Case) -> tuple[Evidence, ...]:
    """Return the evidence that gets a field: what has no text first, then what was
    pasted before.
    """
    able = fillable(case)
    chunks = [chunk for chunk in case.evidence if chunk.id in able]
    return tuple(sorted(chunks, key=lambda chunk: bool(chunk.text.strip())))


def _title(lacking: int, of: int) -> str:
    if not lacking:
        return "Change the text that was pasted"
    if lacking == of:
        return "No evidence has text, so nothing can be checked: paste what stands at the addresses"
    has = "has" if lacking == 1 else "have"
    return (
        f"{lacking} of {count_noun(of, 'chunk of evidence', 'chunks of evidence')} {has} no text:"
        " paste it"
    )


def _draw_chunk_field(chunk: Evidence, case: Case, text: str) -> None:
    with st.container(gap="xxsmall"):
        if chunk.source:
            if chunk.source.startswith(("https://", "http://")):
                st.link_button(
                    chunk.source[:120], chunk.source, icon=":material/open_in_new:", type="tertiary"
                )
            else:
                st.text(chunk.source[:300])
        typing_area(
            f"Text of {chunk.id[:80]}",
            key=f"evidence-text-{case.id}-{chunk.id}",
            text=text,
            version=f"{case.id}/{actor().name}",  # a name that becomes known brings its own draft
            most=LONGEST_TEXT,
            rows=4,
            placeholder="Paste the text here",
            on_text=partial(_keep_chunk_text, case.id, chunk.id),
        )


def _keep_chunk_text(case_id: str, chunk_id: str, text: str) -> None:
    served_workbench().drafts.save(actor(), evidence_subject(case_id), {chunk_id: text})


def _open_case(case_id: str) -> None:
    address.set_param("case", case_id)
    for name in ("run", "iteration", "against"):
        address.set_param(name, "")


def _audit_with_text(case_id: str, seen_version: int) -> None:
    """Store the new version and start its audit; what was pasted stays where either is refused."""
    store_typed()
    workbench = served_workbench()
    values = workbench.drafts.get(actor(), evidence_subject(case_id)).values
    texts = {name: text for name, text in values.items() if isinstance(text, str)}
    refused: dict[str, tuple[str, int]] = st.session_state.setdefault(_REFUSED, {})
    refused.pop(case_id, None)

    def refuse(which: str, why: str) -> None:
        refused[which] = why, workbench.cases.summary(which).version

    try:
        newer = workbench.versions.fill_evidence(actor(), case_id, texts, seen_version=seen_version)
    except MasisError as error:
        refuse(case_id, str(error))
        return
    workbench.drafts.clear(actor(), evidence_subject(case_id))
    _open_case(newer.id)
    try:
        served_jobs().audit(actor(), newer.id, workbench.settings)
    except MasisError as error:
        refuse(newer.id, f"The new version is stored, and its audit could not be started: {error}")
