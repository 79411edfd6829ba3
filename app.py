"""The frame of the workbench: navigation, title, what every page has in common."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from masis.ui.frame import page_icon

PAGES = Path(__file__).resolve().parent / "pages"

st.set_page_config(page_title="MASIS Workbench", page_icon=page_icon(), layout="wide")

known = [
    ("overview.py", "Overview", ":material/home:", ""),
    ("queue.py", "Queue", ":material/checklist:", "queue"),
    ("review.py", "Review", ":material/rate_review:", "review"),
    ("new.py", "New audit", ":material/add_circle:", "new"),
    ("compare.py", "Compare", ":material/compare:", "compare"),
    ("decisions.py", "Decisions", ":material/gavel:", "decisions"),
    ("settings.py", "Settings", ":material/tune:", "settings"),
]
pages = [
    st.Page(PAGES / file, title=title, icon=icon, url_path=path, default=not path)
    for file, title, icon, path in known
    if (PAGES / file).is_file()
]
st.navigation(pages, position="top").run()
