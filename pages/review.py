"""The review desk: the case named in the address, or the way to one."""

from __future__ import annotations

import streamlit as st

from masis.ui.address import value
from masis.ui.case import show_case
from masis.ui.frame import guarded

with guarded() as bench:
    if case_id := value("case"):
        show_case(bench, case_id)
    else:
        st.title("No case is open")
        st.markdown("Open one from the queue.")
        st.page_link("pages/queue.py", label="To the queue", icon=":material/checklist:")
