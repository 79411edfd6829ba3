"""Files of abstracts imported beside the page: progress while it goes on, and an end that nothing
cuts short.
"""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from masis.errors import InputError
from masis.schema.actor import Actor
from masis.schema.screening import Abstract
from masis.screening.readers import read_abstracts
from masis.screening.store import ScreeningStore
from masis.screening.ui import form
from masis.screening.ui.form import UNDER_WAY, CorpusUpload
from masis.services import Workbench
from tests.reviewing import ADA
from tests.ui.conftest import Serve, open_page, texts


class Stalled:
    """The reader of abstracts, which comes to a stop before the last record of a large file until
    it is let go.
    """

    def __init__(self) -> None:
        self.stopped, self.let_go = threading.Event(), threading.Event()

    def __call__(self, stream: BinaryIO, *, name: str) -> Iterator[Abstract | InputError]:
        found = list(read_abstracts(stream, name=name))
        yield from found[:-1]
        if len(found) > 100:
            self.stopped.set()
            assert self.let_go.wait(30)
        yield from found[-1:]


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stalled]:
    stalled = Stalled()
    monkeypatch.setattr(form, "read_abstracts", stalled)
    yield stalled
    stalled.let_go.set()


def _begin_upload(
    workbench: Workbench, who: Actor, corpus: str, files: list[tuple[str, io.BytesIO]]
) -> CorpusUpload:
    upload = CorpusUpload(workbench, who, corpus, files)
    upload.start()
    return upload


def lines(records: int) -> bytes:
    texts_ = (
        f"Trial {number} randomised {number + 10} adults to one of two arms."
        for number in range(records)
    )
    made = (
        {"id": f"s-{number}", "title": f"Trial {number}", "text": text}
        for number, text in enumerate(texts_)
    )
    return "".join(f"{json.dumps(record)}\n" for record in made).encode()


@pytest.fixture
def workbench(tmp_path: Path, serve: Serve) -> Workbench:
    return serve(tmp_path / "import.db")


def test_an_import_shows_its_progress(workbench: Workbench, reader: Stalled) -> None:
    files = [("a.jsonl", io.BytesIO(lines(3))), ("b.jsonl", io.BytesIO(lines(4_000)))]
    upload = _begin_upload(workbench, ADA, " mine ", files)
    assert reader.stopped.wait(30)
    assert not upload.over
    assert re.fullmatch(
        r"Importing b\.jsonl \(file 2 of 2\): [1-3],\d{3} records so far\.", upload.progress_text
    )
    assert 0 < upload.share <= 1
    reader.let_go.set()
    upload.wait(30)
    assert upload.over
    assert upload.share == 1
    assert [(file.source, file.identified) for file in upload.done] == [
        ("a.jsonl", 3),
        ("b.jsonl", 4_000),
    ]
    assert ScreeningStore(workbench.store).corpora.summary("mine").abstracts == 4_000


def test_an_unexpected_error_in_one_file_is_reported_and_others_are_kept(
    workbench: Workbench,
) -> None:
    class Broken(io.BytesIO):
        def __getattribute__(self, name: str) -> Any:
            if name in ("read", "readline", "__next__", "read1", "readinto"):
                raise RuntimeError("the disk is on fire")
            return super().__getattribute__(name)

    upload = _begin_upload(
        workbench, ADA, "mine", [("bad.ris", Broken()), ("b.jsonl", io.BytesIO(lines(2)))]
    )
    upload.wait(30)
    assert [file.source for file in upload.done] == ["b.jsonl"]
    assert "bad.ris couldn't be imported (RuntimeError)" in str(upload.refused[0])
    assert not upload.errors


def test_a_rejected_file_counts_as_a_file_not_a_record(
    workbench: Workbench,
) -> None:
    upload = _begin_upload(
        workbench,
        ADA,
        "mine",
        [
            ("none.bib", io.BytesIO(b"@comment{nothing}")),
            ("photo.png", io.BytesIO(b"\x89PNG\r\n\x1a\n" + bytes(64))),
            ("b.jsonl", io.BytesIO(lines(1) + b"{broken\n")),
        ],
    )
    upload.wait(30)
    app = open_page("screening", {UNDER_WAY: upload})
    app.run()
    assert [warning.value for warning in app.warning] == [
        "2 files couldn't be imported.",
        "1 record couldn't be imported.",
    ]
    assert "b.jsonl: 2 records, 1 added, 0 duplicates, 1 unreadable" in texts(app)
    assert "none.bib:" not in texts(app).replace("none.bib: holds no abstract", "")


def test_the_page_shows_a_running_import_and_uses_its_records(
    workbench: Workbench, reader: Stalled
) -> None:
    upload = _begin_upload(workbench, ADA, "mine", [("b.jsonl", io.BytesIO(lines(4_000)))])
    app = open_page("screening", {UNDER_WAY: upload})
    assert any("Importing b" in bar.proto.text for bar in app.get("progress"))
    assert app.button(key="screening-import").disabled
    reader.let_go.set()
    upload.wait(30)
    app.run()
    assert not app.get("progress")
    assert "b.jsonl: 4,000 records, 4,000 added" in texts(app)
    assert not app.button(key="screening-import").disabled


def test_a_stopped_import_keeps_the_records_read_so_far(
    workbench: Workbench, reader: Stalled
) -> None:
    files = [("b.jsonl", io.BytesIO(lines(4_000))), ("c.jsonl", io.BytesIO(lines(3)))]
    upload = _begin_upload(workbench, ADA, "mine", files)
    assert reader.stopped.wait(30)
    app = open_page("screening", {UNDER_WAY: upload})
    app.button(key="screening-import-stop").click().run()
    assert upload.stopping
    assert app.button(key="screening-import-stop").disabled
    reader.let_go.set()
    upload.wait(30)
    app.run()
    assert "The import was stopped. Records read so far are stored" in texts(app)
    assert "b.jsonl: 3,999 records, 3,999 added" in texts(app)
    assert "c.jsonl" not in texts(app)
    assert ScreeningStore(workbench.store).corpora.summary("mine").abstracts == 3_999
