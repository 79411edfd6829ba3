"""The overview with waiting work and first steps; old addresses of a case redirect."""

from __future__ import annotations

import streamlit as st

from masis.ui.queue.overview import show_overview
from masis.ui.shell.address import value
from masis.ui.shell.frame import database_errors

if value("case"):
    st.switch_page("pages/review.py", query_params=dict(st.query_params))
with database_errors() as workbench:
    show_overview(workbench)
