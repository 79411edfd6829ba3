"""A database file that can't be written: the page that was to change it says so in words, with what
to do.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from masis.services import Workbench
from masis.store.core import connections
from tests.ui.conftest import AUDITED, open_page, texts
from tests.ui.test_redaction import press


def test_a_read_only_database_is_named_with_a_hint(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = connections.connect

    def read_only(path: Path, **options: Any) -> sqlite3.Connection:
        connection = connect(path, **options)
        # as a file on a read-only disk: SQLITE_READONLY
        connection.execute("PRAGMA query_only = ON")
        return connection

    monkeypatch.setattr(connections, "connect", read_only)
    st.cache_resource.clear()
    app = press(open_page("review", case=AUDITED[0]), "Redact this case", word="redact")
    page = texts(app)
    assert "The database can't be used" in page
    assert "pages.db: can't be written" in page
    assert "Make file and folder writable, or name another file with --db or MASIS_DB" in page
    assert audited_workbench.cases.summary(AUDITED[0]).state != "redacted"
