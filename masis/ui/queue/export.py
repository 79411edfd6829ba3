"""The queue's export: the cases that the list shows, as a data set with its manifest, in one zip file."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path

import streamlit as st

from masis.datasets.exports import ENCODINGS, FORMATS, Selection
from masis.schema.actor import Actor
from masis.schema.wording import counted
from masis.services import Workbench
from masis.services.records import CaseFilter, CasePage
from masis.ui.shell import address
from masis.ui.shell.downloads import prepared_download
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import command_markdown

MOST_CASES = 20_000
"""More are exported on the command line, which writes as it reads; a page holds the file until it is downloaded."""


def show_export(workbench: Workbench, wanted: CaseFilter, page: CasePage) -> None:
    """Draw the popover; it says so where the person may not export, or where the list is too long for a page."""
    who = actor()
    with st.popover("Export", icon=":material/download:"):
        if not workbench.access.allows(who, "export"):
            st.caption("Exports take the role lead.")
            return
        if page.total > MOST_CASES:
            st.caption(f"Too many cases for a page: {command_markdown('masis export --format FORMAT --out FILE')}")
            return
        form = st.selectbox("Format", list(FORMATS), key="export-format", persist_state="session")
        chosen = FORMATS[form]
        encoding = "jsonl"
        if chosen.flat:
            encoding = st.selectbox("File", ENCODINGS, key="export-encoding", persist_state="session")
        st.caption(f"{chosen.summary[0].upper()}{chosen.summary[1:]}. The zip file holds the data and a manifest.")
        prepared_download(
            f"{counted(page.total, 'case')}: {form}",
            lambda: zipped(workbench, who, form, wanted, encoding),
            file_name=f"masis-{form}.zip",
            key="export-prepare",
            help_="The cases that match search and filters, on all pages of the list.",
        )
        st.page_link(
            "pages/datasets.py",
            label="Freeze these cases",
            icon=":material/ac_unit:",
            query_params=address.list_parameters(),
            help="As a dataset version: under a name, to be compared with others and written again byte for byte.",
        )


def zipped(workbench: Workbench, who: Actor, form: str, wanted: CaseFilter, encoding: str) -> io.BytesIO:
    """Return an export and its manifest as a zip file. Raises NotAllowed, and RecordDamaged naming case and run."""
    chosen, out = FORMATS[form], io.BytesIO()
    suffix = chosen.suffix if encoding == "jsonl" else f".{encoding}"
    with tempfile.TemporaryDirectory() as folder:
        workbench.exports.write_file(who, Path(folder) / f"{form}{suffix}", form, Selection(wanted), encoding=encoding)
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(Path(folder).rglob("*")):
                archive.write(file, file.relative_to(folder))
    out.seek(0)
    return out
