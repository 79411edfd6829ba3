"""The button that hands out a case's printable report, made when it is asked for."""

from __future__ import annotations

import streamlit as st

from masis.schema.run import Run
from masis.services import CaseView
from masis.ui.review.report import case_report, report_name
from masis.ui.shell.served_database import served_workbench


def report_button(view: CaseView, run: Run | None = None, *, label: str = "Report") -> None:
    """A download of the report of a case; of its newest finished run unless another one is given."""
    head = served_workbench().reviews.head

    def report() -> bytes:
        return case_report(view, head(), run).encode()

    st.download_button(
        label,
        report,
        file_name=report_name(view.case.id),
        mime="text/html",
        icon=":material/print:",
        on_click="ignore",
        key="report",
        help="The audit of this case as one page of HTML that needs nothing else: to print, to keep, to hand on.",
    )
