"""The form for evidence that has only an address.

A person pastes its text, and the case is audited again as a new version.
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
from masis.views.markdown import escape_markdown

FIELDS = 20
"""The number of chunks that can be filled at once. The next version offers the others."""

OPEN_TO_VERSIONS = ("new", "interrupted", "needs_review", "accepted", "escalated")
_REFUSED = "missing-evidence-refused"


def show_versions(view: CaseView, versions: CaseVersions) -> None:
    """Link to the earlier and the newer version of a case, if there are any."""
    earlier = view.case.earlier_version
    if versions.newer is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.info(
                "A newer version with more evidence has replaced this case.",
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
            st.caption(
                f"This is version {earlier.number} of the case, with pasted text for {chunks}."
            )
            if versions.earlier is not None:
                st.button(
                    "Open the earlier version",
                    key="earlier-version",
                    type="tertiary",
                    on_click=_open_case,
                    args=(versions.earlier,),
                )


def missing_evidence(
    workbench: Workbench, view: CaseView, versions: CaseVersions, *, busy: bool
) -> None:
    """Draw the form for the missing text, unless all evidence has text or the case is settled."""
    case = view.case
    refusal, at_version = st.session_state.get(_REFUSED, {}).get(case.id, ("", 0))
    if refusal and at_version == view.summary.version:  # until the case changes
        st.warning("The audit with the pasted text wasn't started.", icon=":material/error:")
        st.text(refusal)
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
    has_no_text = lacking == len(case.evidence)
    draft = workbench.drafts.get(actor(), evidence_subject(case.id))
    with st.expander(
        title, icon=":material/content_paste:", expanded=has_no_text or bool(draft.values)
    ):
        st.caption(
            "MASIS doesn't load web addresses. Open the address, and paste the part that the answer"
            " is based on. The case is then audited again as a new version. This version keeps its"
            " audits and decisions."
        )
        for chunk in fields[:FIELDS]:
            _draw_chunk_field(chunk, case, str(draft.values.get(chunk.id, chunk.text)))
        if (more := len(fields) - FIELDS) > 0:
            st.caption(f"You can fill {count_noun(more, 'more chunk')} in the next version.")
        st.button(
            "Audit with this text",
            key="audit-with-text",
            type="primary" if has_no_text else "secondary",
            icon=":material/fact_check:",
            on_click=_audit_with_text,
            args=(case.id, view.summary.version),
            disabled=busy,
        )


def fields_of(case: Case) -> tuple[Evidence, ...]:
    """Return the chunks that get a field, those without text before those pasted earlier."""
    fillable_ids = fillable(case)
    chunks = [chunk for chunk in case.evidence if chunk.id in fillable_ids]
    return tuple(sorted(chunks, key=lambda chunk: bool(chunk.text.strip())))


def _title(lacking: int, total: int) -> str:
    if not lacking:
        return "Change the pasted text"
    if lacking == total:
        return "Nothing can be checked, because no evidence has text. Paste the text here"
    has = "has" if lacking == 1 else "have"
    chunks = count_noun(total, "chunk of evidence", "chunks of evidence")
    return f"{lacking} of {chunks} {has} no text. Paste it here"


def _draw_chunk_field(chunk: Evidence, case: Case, text: str) -> None:
    with st.container(gap="xxsmall"):
        if chunk.source:
            # A source comes from a file: other schemes, such as javascript:, must not become links.
            if chunk.source.startswith(("https://", "http://")):
                st.link_button(
                    escape_markdown(chunk.source[:120]),
                    chunk.source,
                    icon=":material/open_in_new:",
                    type="tertiary",
                )
            else:
                st.text(chunk.source[:300])
        typing_area(
            f"Text of {chunk.id[:80]}",
            key=f"evidence-text-{case.id}-{chunk.id}",
            text=text,
            version=f"{case.id}/{actor().name}",  # a new name has a draft of its own
            most=LONGEST_TEXT,
            rows=4,
            placeholder="Paste the text here",
            on_text=partial(_save_chunk_text, case.id, chunk.id),
        )


def _save_chunk_text(case_id: str, chunk_id: str, text: str) -> None:
    served_workbench().drafts.save(actor(), evidence_subject(case_id), {chunk_id: text})


def _open_case(case_id: str) -> None:
    address.set_param("case", case_id)
    for name in ("run", "iteration", "against"):
        address.set_param(name, "")


def _audit_with_text(case_id: str, seen_version: int) -> None:
    """Store the new version and start its audit. If either is refused, the draft stays."""
    store_typed()
    workbench = served_workbench()
    values = workbench.drafts.get(actor(), evidence_subject(case_id)).values
    texts = {name: text for name, text in values.items() if isinstance(text, str)}
    refusals: dict[str, tuple[str, int]] = st.session_state.setdefault(_REFUSED, {})
    refusals.pop(case_id, None)

    def refuse(refused_id: str, reason: str) -> None:
        refusals[refused_id] = reason, workbench.cases.summary(refused_id).version

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
        refuse(newer.id, f"The new version is stored, but its audit couldn't be started: {error}")
