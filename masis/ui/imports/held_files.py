"""Files that were uploaded or pasted, on the server's disk until they are imported, replaced or removed.

They lie in a temporary folder that only the server's user can read, and are gone when the server ends.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
from pathlib import Path
from uuid import uuid4

import streamlit as st

from masis.ui.shell.served_database import served_database

MOST_HELD = 50
"""Files held at a time; the oldest gives way."""


class HeldFiles:
    """The files of one server, by tokens that nobody can guess."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="masis-imports-")
        self._lock = threading.Lock()
        self._held: dict[str, Path] = {}

    def put(self, content: bytes) -> str:
        """Hold an uploaded file; returns its token."""
        token = uuid4().hex
        self._write(token, content)
        return token

    def put_text(self, text: str) -> str:
        """Hold what was pasted; the same text has the same token."""
        content = text.encode("utf-8", "replace")
        token = f"pasted-{hashlib.sha256(content).hexdigest()}"
        if self.path(token) is None:
            self._write(token, content)
        return token

    def path(self, token: str) -> Path | None:
        """Return where a file lies; None where it is no longer held."""
        with self._lock:
            path = self._held.get(token)
        return path if path is not None and path.exists() else None

    def drop(self, token: str) -> None:
        """Remove a file."""
        with self._lock:
            path = self._held.pop(token, None)
        if path is not None:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove all of them."""
        self._folder.cleanup()

    def _write(self, token: str, content: bytes) -> None:
        path = Path(self._folder.name) / token
        path.write_bytes(content)
        with self._lock:
            self._held[token] = path
            oldest = list(self._held)[:-MOST_HELD]
        for each in oldest:
            self.drop(each)


@st.cache_resource(show_spinner=False, on_release=lambda files: files.close())
def _held_for(_database: str) -> HeldFiles:
    return HeldFiles()


def held_files() -> HeldFiles:
    """Return the files of this server on the served database."""
    return _held_for(str(served_database()))
