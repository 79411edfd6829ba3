"""The page that says where the data lies and whether it is sound."""

from __future__ import annotations

import streamlit as st

from masis.ui.words import STATE, STATES, spoken
from masis.workbench import Workbench


def show_database(bench: Workbench) -> None:
    """Place, contents and health of the database."""
    st.title("Database")
    st.caption("Everything lies in this one file:")
    st.text(str(bench.database))
    counts = bench.store.cases.facets().states
    st.subheader(spoken(sum(counts.values()), "case"))
    with st.container(horizontal=True):
        for state in STATES:
            if counts.get(state):
                st.metric(STATE[state].text, f"{counts[state]:,}", help=STATE[state].meaning)
    st.subheader("Health")
    for item in bench.health().items:
        st.text(f"{'✓' if item.ok else '✗'}  {item.name}: {item.message}")
