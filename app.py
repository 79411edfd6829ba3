"""The frame of the workbench: navigation, the reviewer, and everything that all pages share."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

import masis
from masis.extensions import extensions
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
from masis.ui.shell.served_database import hidden_pages
from masis.ui.shell.streamlit_internals import break_long_marks, let_clicks_finish
from masis.ui.team.leases import release_claim

PAGES = Path(__file__).resolve().parent / "pages"
PACKAGE = Path(masis.__file__).resolve().parent

let_clicks_finish()
break_long_marks()

st.set_page_config(page_title="MASIS Workbench", page_icon=PAGE_ICON, layout="wide")
add_styles()

# What people use all day is one click away. Everything else is in two menus. A page is listed by
# its address, which is the name of its file too. Extensions add pages at the end of a menu.
MENUS = {
    "": (
        ("overview", "Overview", "home"),
        ("queue", "Queue", "checklist"),
        ("review", "Review", "rate_review"),
        ("new", "New audit", "add_circle"),
        ("import", "Import", "upload_file"),
    ),
    "Understand": (
        ("compare", "Compare", "compare"),
        ("preference", "Preference", "thumbs_up_down"),
        ("decisions", "Decisions", "gavel"),
        ("metrics", "Metrics", "monitoring"),
        ("modes", "Failure modes", "category"),
        ("trust", "Trust", "verified"),
        ("judge", "Judge", "balance"),
    ),
    "Set up": (
        ("team", "Team", "group"),
        ("datasets", "Dataset versions", "dataset"),
        ("settings", "Settings", "tune"),
        ("health", "Health", "health_and_safety"),
        ("retention", "Retention", "auto_delete"),
    ),
}
added_pages = [page for extension in extensions() for page in extension.pages]
page = st.navigation(
    {
        menu: [
            st.Page(
                file,
                title=title,
                icon=f":material/{icon}:",
                url_path=address,
                default=address == "overview",
            )
            for address, title, icon, file in (
                *((*entry, PAGES / f"{entry[0]}.py") for entry in entries),
                *(
                    (page.address, page.title, page.icon, PACKAGE / page.file)
                    for page in added_pages
                    if page.menu == menu
                ),
            )
            if address not in hidden_pages()
        ]
        for menu, entries in MENUS.items()
    },
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
