"""Files of abstracts on their way into a corpus: on a thread of their own, so that no click cuts an import short."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Sequence
from typing import BinaryIO, NamedTuple

import streamlit as st

from masis.datasets.readers.abstracts import read_abstracts
from masis.errors import InputError, MasisError
from masis.schema.wording import counted
from masis.services import Actor, Workbench
from masis.services.background import BackgroundTask
from masis.services.records import CorpusImport
from masis.ui.shell.reviewer import actor

log = logging.getLogger(__name__)
SOON_S = 0.4
"""So long the click waits for the import: most are done by then, and nothing has to be drawn in between."""

LONGEST_NAME = 120
_UNDER_WAY = "screening-import-under-way"


class NamedFile(NamedTuple):
    """A file by the name it was uploaded with."""

    name: str
    stream: BinaryIO


class CorpusUpload(BackgroundTask):
    """One import: what it has come to so far, readable while it goes on.

    ``errors`` are of single records, ``refused`` of files that could not be imported, or not to their end.
    """

    def __init__(self, workbench: Workbench, actor: Actor, corpus: str, files: Sequence[NamedFile]) -> None:
        super().__init__()
        self._actor = actor
        self._workbench, self.corpus, self._files = workbench, corpus.strip(), tuple(files)
        self.done: list[CorpusImport] = []
        self.errors: list[InputError] = []
        self.refused: list[InputError] = []
        self._records, self._at = 0, 0
        self._sizes = [_size(file.stream) for file in self._files]

    def says(self) -> str:
        """Say how far the import has come: ``Importing b.ris (file 2 of 3): 1,500 records so far.``"""
        of_files = f" (file {self._at + 1} of {len(self._files)})" if len(self._files) > 1 else ""
        name = self._files[self._at].name[:LONGEST_NAME]
        return f"Importing {name}{of_files}: {counted(self._records, 'record')} so far."

    def share(self) -> float:
        """Return how much of all files has been read, 0 to 1, by their bytes."""
        if self.over:
            return 1.0
        whole = sum(self._sizes)
        before = sum(self._sizes[: self._at])
        stream = self._files[self._at].stream
        here = 0 if stream.closed else stream.tell()
        return min(1.0, (before + here) / whole) if whole else 0.0

    def work(self) -> None:
        """Import file by file; a stop ends it after the record that is being read."""
        for at, file in enumerate(self._files):
            if self.stopping:
                return
            self._at = at
            self._take(file.name[:LONGEST_NAME], file.stream)

    def _take(self, name: str, stream: BinaryIO) -> None:
        try:
            found = itertools.takewhile(lambda _: not self.stopping, read_abstracts(stream, name=name))
            kept = self._workbench.corpora.add(
                self._actor, self.corpus, found, source=name, on_batch=self._dealt_with, on_error=self.errors.append
            )
            self.done.append(kept)
        except InputError as error:
            self.refused.append(error)
        except MasisError as error:
            self.refused.append(InputError(str(error), cure="The files before it are stored."))
        except Exception as error:
            log.exception("A file of abstracts could not be imported")
            why = f"{name} could not be imported ({type(error).__name__})"
            self.refused.append(InputError(why, cure="The server's log has the details."))

    def _dealt_with(self, records: int) -> None:
        self._records += records


def _size(stream: BinaryIO) -> int:
    """Return the bytes of a stream, which is left at its beginning."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    return size


def begin_import(workbench: Workbench, corpus: str, files: Sequence[NamedFile]) -> None:
    """Begin to add the abstracts of uploaded files to a corpus; small ones are there when this returns."""
    upload = CorpusUpload(workbench, actor(), corpus, files)
    upload.start()
    st.session_state[_UNDER_WAY] = upload
    upload.wait(SOON_S)


def importing() -> bool:
    """Return whether files of this session are on their way."""
    return _UNDER_WAY in st.session_state


def finished_import() -> CorpusUpload | None:
    """Return the import of this session that is over, once; None where there is none, or it is under way."""
    upload: CorpusUpload | None = st.session_state.get(_UNDER_WAY)
    if upload is None or not upload.over:
        return None
    del st.session_state[_UNDER_WAY]
    return upload


def draw_import() -> bool:
    """Draw how far the import has come; returns whether it is under way."""
    upload: CorpusUpload | None = st.session_state.get(_UNDER_WAY)
    if upload is None or upload.over:
        return False
    st.info(upload.says(), icon=":material/upload_file:")
    st.progress(upload.share())
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("You can go on with the form or leave the page: the import goes on.", width="stretch")
        st.button(
            "Stopping …" if upload.stopping else "Stop the import",
            key="screening-import-stop",
            icon=":material/stop_circle:",
            type="tertiary",
            disabled=upload.stopping,
            on_click=upload.stop,
            help="What has been read so far is stored. The same files again add the rest.",
        )
    return True
