"""The desk on a page: the component that shows an answer, its evidence and its decision.

The component talks to the desk's API (``desk_api.py``). Streamlit tells it which answer the address
names, and the component tells Streamlit which answer it has opened since.
"""

from __future__ import annotations

import streamlit as st

from masis.errors import CaseHeld
from masis.services import CaseView, Workbench
from masis.services.records import CaseFilter
from masis.ui.components import register_component
from masis.ui.review.desk import OpenDesk, Place
from masis.ui.shell import address, keys
from masis.ui.shell.reviewer import (
    TAKEN_CASE_KEY,
    actor,
    name_reviewer,
    reviewer,
    suggested_name,
)
from masis.ui.shell.served_database import served_workbench
from masis.ui.team.final_desk import FinalDesk
from masis.ui.team.leases import claim_or_renew, release_claim

DESK_PARTS = (
    "key_sheet",
    "passages",
    "answer_view",
    "report_issue",
    "label_bar",
    "correction_check",
    "final_verdict",
)
"""The scripts that the desk's component needs beside its own."""

_DESK = register_component("desk", *DESK_PARTS)
_PLACE = register_component("answer_place", "answer", "labels")
_KEY, _EVIDENCE, _FOLLOWED = "desk", "evidence-shown", "desk-followed"
_PLACE_PARAMETERS = {"case", "run", "iteration", "against"}


def open_desk(workbench: Workbench, view: CaseView) -> OpenDesk:
    """Open the answer that the address names, and claim its case for this session."""
    case_id = view.case.id
    if st.session_state.get(TAKEN_CASE_KEY) != case_id:
        release_claim(workbench)

    queue = address.case_filter()

    def claim(case_id: str) -> None:
        try:
            claim_or_renew(workbench, case_id, queue.queue)
        except CaseHeld:
            st.session_state.pop(TAKEN_CASE_KEY, None)
            raise

    named = {name: address.value(name) for name in _PLACE_PARAMETERS} | {"case": case_id}
    place = Place(**named)
    return OpenDesk.open(workbench, actor(), _with_evidence(place), queue, claim, view)


def _with_evidence(place: Place) -> Place:
    """Return the place with the number of chunks that the reader has asked for."""
    shown_case, evidence = st.session_state.get(_EVIDENCE, ("", 0))
    return place.model_copy(update={"evidence": evidence}) if shown_case == place.case else place


def open_final_desk(workbench: Workbench, view: CaseView) -> FinalDesk:
    """Open the adjudication that the address names. Nobody takes a case to adjudicate it."""
    place = _with_evidence(Place(case=view.case.id, adjudication=True))
    queue = CaseFilter()
    return FinalDesk.open(workbench, actor(), place, queue, lambda _: None, view)


def answer_place() -> None:
    """Draw the place for the answer and its evidence, which the desk fills."""
    _PLACE(key="answer-place")


def draw_desk(desk: OpenDesk) -> None:
    """Draw the desk, and follow it to the answer that it opens."""
    map_of = keys.adjudication_keys if desk.place.adjudication else keys.key_map
    groups = map_of(sees_audit=not desk.view.machine_hidden)
    data = {**desk.data(), "suggested_name": suggested_name(), "keys": groups}
    opened = _DESK(data=data, key=_KEY, on_open_change=_follow).open
    if opened and opened.get("search"):
        address.leave_case()


def _follow() -> None:
    """Change the address to the answer that the desk has opened, and learn the reviewer's name."""
    # the state is gone if the message arrives while another page opens
    opened = st.session_state.get(_KEY, {}).get("open") or {}
    # Streamlit delivers a message again if another run interrupts the one that it started. The
    # reader may have pressed Back in the meantime, and what the desk opened before isn't meant
    # then.
    if "at" not in opened or opened["at"] == st.session_state.get(_FOLLOWED):
        return
    st.session_state[_FOLLOWED] = opened["at"]
    if reviewer() is None and opened.get("name"):
        name_reviewer(served_workbench(), opened["name"])
    if "place" in opened:
        place = Place(**opened["place"])
        st.session_state[_EVIDENCE] = (place.case, place.evidence)
        left_out = address.FILTERS if opened.get("whole_queue") else ()
        parameters = address.list_parameters() | place.model_dump(include=_PLACE_PARAMETERS)
        address.replace(
            {name: text for name, text in parameters.items() if text and name not in left_out}
        )
