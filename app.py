"""The frame of the workbench: navigation, the reviewer, and everything that all pages share."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from masis.ui.admin.health_page import health_notice
from masis.ui.shell.address import value
from masis.ui.shell.frame import (
    PAGE_ICON,
    add_styles,
    crash_page,
    database_errors,
    demo_notice,
    tab_title,
)
from masis.ui.shell.keys import page_keys
from masis.ui.shell.reach import reach_notice
from masis.ui.shell.reviewer import reviewer_badge, signed_in_or_stop
from masis.ui.shell.streamlit_internals import break_long_marks, let_callbacks_finish
from masis.ui.team.leases import release_claim

PAGES = Path(__file__).resolve().parent / "pages"

let_callbacks_finish()
break_long_marks()

st.set_page_config(page_title="MASIS Workbench", page_icon=PAGE_ICON, layout="wide")
add_styles()

page = st.navigation(
    [
        st.Page(PAGES / "overview.py", title="Overview", icon=":material/home:", default=True),
        st.Page(PAGES / "queue.py", title="Queue", icon=":material/checklist:", url_path="queue"),
        st.Page(
            PAGES / "review.py", title="Review", icon=":material/rate_review:", url_path="review"
        ),
        st.Page(PAGES / "new.py", title="New audit", icon=":material/add_circle:", url_path="new"),
        st.Page(
            PAGES / "imports.py", title="Import", icon=":material/upload_file:", url_path="import"
        ),
        st.Page(
            PAGES / "screening.py",
            title="Screening",
            icon=":material/biotech:",
            url_path="screening",
        ),
        st.Page(
            PAGES / "compare.py", title="Compare", icon=":material/compare:", url_path="compare"
        ),
        st.Page(
            PAGES / "decisions.py", title="Decisions", icon=":material/gavel:", url_path="decisions"
        ),
        st.Page(PAGES / "team.py", title="Team", icon=":material/group:", url_path="team"),
        st.Page(
            PAGES / "metrics.py", title="Metrics", icon=":material/monitoring:", url_path="metrics"
        ),
        st.Page(PAGES / "trust.py", title="Trust", icon=":material/verified:", url_path="trust"),
        st.Page(
            PAGES / "settings.py", title="Settings", icon=":material/tune:", url_path="settings"
        ),
        st.Page(PAGES / "health.py", title="Health", url_path="health", visibility="hidden"),
        st.Page(
            PAGES / "datasets.py",
            title="Dataset versions",
            url_path="datasets",
            visibility="hidden",
        ),
        st.Page(
            PAGES / "retention.py", title="Retention", url_path="retention", visibility="hidden"
        ),
    ],
    position="top",
)
st.set_page_config(page_title=tab_title(page.title))
reach_notice()
signed_in_or_stop()
with database_errors() as workbench:
    reviewer_badge(workbench)
    health_notice(workbench)
    if page.url_path != "review":
        release_claim(workbench)
        demo_notice(workbench)
with crash_page():
    page.run()
if page.url_path not in ("review", "team") or not value("case"):
    page_keys(page.url_path)
