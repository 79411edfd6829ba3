"""The frame of the workbench: navigation, title, what every page has in common."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from masis.ui.frame import page_icon

HERE = Path(__file__).resolve().parent

st.set_page_config(page_title="MASIS Workbench", page_icon=page_icon(), layout="wide")

page = st.navigation(
    [
        st.Page(HERE / "pages" / "cases.py", title="Cases", icon=":material/checklist:", default=True),
        st.Page(HERE / "pages" / "database.py", title="Database", icon=":material/database:", url_path="database"),
    ],
    position="top",
)
page.run()
