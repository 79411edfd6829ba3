"""The Import page: a file is recognised or mapped, shown as it would be read, imported beside the
page, and audited.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl

import openpyxl
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from masis.services import Workbench
from masis.services.arrivals.imports import ImportService, ImportStep
from masis.ui.imports.page import COLUMNS, IMPORTS, ONE_CHUNK, FileImport
from tests.cases import case_of
from tests.reviewing import ADA
from tests.ui.conftest import Serve, open_page, texts

RAGAS = {
    "user_input": "How long is it?",
    "retrieved_contexts": ["It is 120 m long."],
    "response": "It is 120 m [1].",
}
OWN = {
    "frage": "How long is it?",
    "quellen": [{"nr": 1, "inhalt": "It is 120 m long."}],
    "antwort": "120 m [1].",
}
HOSTILE = (
    "<img src=http://example.org/x onerror=alert(1)> ![](http://example.org/y)"
    " [c](javascript:1) $x$"
)


@pytest.fixture
def workbench(tmp_path: Path, serve: Serve) -> Workbench:
    return serve(tmp_path / "imports.db")


def lines(*rows: object) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def upload(app: AppTest, name: str, content: bytes) -> AppTest:
    app.file_uploader[0].upload(name, content, "application/octet-stream").run()
    app.run()
    assert not app.exception
    return app


def running_import(app: AppTest) -> FileImport:
    value = app.query_params["import"]
    found = IMPORTS.get(value if isinstance(value, str) else value[0])
    assert found is not None
    return found


def start(app: AppTest) -> AppTest:
    app.button(key="start-import").click().run()
    running_import(app).wait(30)
    app.run()
    assert not app.exception
    return app


def box(app: AppTest, label: str):  # type: ignore[no-untyped-def]  # streamlit exports no name for it
    return next(select for select in app.selectbox if select.label == label)


def test_a_file_of_another_tool_is_recognized_imported_and_offered_for_audit(
    workbench: Workbench,
) -> None:
    app = upload(
        open_page("import"), "ragas.jsonl", lines(RAGAS, {**RAGAS, "retrieved_contexts": 5})
    )
    assert box(app, "Format").value == "ragas"
    assert "Of 2 rows, 1 case can be imported, 1 row can't." in texts(app)
    start(app)
    assert "1 case imported" in texts(app)
    assert "1 row couldn't be imported." in texts(app)
    assert workbench.store.cases.count() == 1
    assert app.button(key="audit-all").label == "Audit this case"
    assert app.button(key="audit-all").proto.type == "primary"
    assert app.button(key="back-to-file")
    [link] = [
        element.proto for element in app.get("page_link") if "imported case" in element.proto.label
    ]
    [(name, imported)] = parse_qsl(link.query_string)
    assert name == "imported"
    workbench.cases.add(ADA, [case_of("It came later.", {"c1": "It came."})])
    queue = open_page("queue", imported=imported)
    assert "1 case" in texts(queue)


def test_a_fully_imported_file_leaves_the_form_and_a_partial_one_stays(
    workbench: Workbench,
) -> None:
    app = start(upload(open_page("import"), "ragas.jsonl", lines(RAGAS)))
    app.button(key="import-another").click().run()
    assert app.file_uploader
    app = start(
        upload(
            app, "ragas.jsonl", lines({**RAGAS, "user_input": "And?"}, {**RAGAS, "user_input": {}})
        )
    )
    app.button(key="back-to-file").click().run()
    assert "ragas.jsonl" in texts(app)
    assert not app.file_uploader


def test_unknown_columns_get_a_proposed_map_that_is_remembered(
    workbench: Workbench,
) -> None:
    app = upload(open_page("import"), "own.jsonl", lines(OWN))
    assert box(app, "Format").value == COLUMNS
    assert box(app, "Question").value == "frage"
    assert next(select for select in app.multiselect if select.label == "Evidence").value == [
        "quellen"
    ]
    assert box(app, "Text of a chunk").value == "inhalt"
    assert box(app, "Answer (optional)").value == "antwort"
    box(app, "Id of a chunk").select("nr").run()
    assert not app.button(key="start-import").disabled
    start(app)
    (case,) = workbench.store.cases.iterate()
    assert (case.query, case.answer, case.evidence[0].id) == ("How long is it?", "120 m [1].", "1")
    # another session, another file, the columns in another order
    again = dict(reversed({**OWN, "frage": "And how wide?"}.items()))
    fresh = upload(open_page("import"), "more.jsonl", lines(again))
    assert box(fresh, "Answer (optional)").value == "antwort"
    assert not fresh.button(key="start-import").disabled


def test_a_workbook_with_several_sheets_asks_which_one(workbench: Workbench) -> None:
    book = openpyxl.Workbook()
    book.active.append(["note"])
    sheet = book.create_sheet("Answers of May")
    sheet.append(["question", "contexts", "answer"])
    sheet.append(["How long is it?", "['It is 120 m long.' 'It is red.']", "120 m [1]."])
    content = io.BytesIO()
    book.save(content)
    app = upload(open_page("import"), "answers.xlsx", content.getvalue())
    assert box(app, "Sheet").value is None
    assert "Choose the sheet to see its rows here as they would be read." in texts(app)
    box(app, "Sheet").select("Answers of May").run()
    assert box(app, "Format").value == "hf-rag"
    start(app)
    (case,) = workbench.store.cases.iterate()
    assert [chunk.text for chunk in case.evidence] == ["It is 120 m long.", "It is red."]


def test_the_chunk_separator_can_be_chosen_when_ambiguous(
    workbench: Workbench,
) -> None:
    table = b"question,contexts,answer\nHow long?,It is 120 m long;it is quite red,120 m [2].\n"
    app = upload(open_page("import"), "answers.csv", table)
    assert "Of 1 row, 0 cases can be imported, 1 row can't." in texts(app)
    choice = box(app, "Several chunks in one text")
    assert choice.value == ""
    choice.select(ONE_CHUNK).run()
    assert "Of 1 row, 1 case can be imported, 0 rows can't." in texts(app)
    box(app, "Several chunks in one text").select(";").run()
    start(app)
    (case,) = workbench.store.cases.iterate()
    assert [chunk.text for chunk in case.evidence] == ["It is 120 m long", "it is quite red"]
    fresh = upload(open_page("import"), "own.jsonl", lines(OWN))
    assert not [
        select
        for select in fresh.selectbox
        if select.label in ("Sheet", "Several chunks in one text")
    ]


def test_two_matching_formats_ask_for_a_choice(workbench: Workbench) -> None:
    row = {**RAGAS, "question": "Why?", "contexts": ["So."], "answer": "So."}
    app = upload(open_page("import"), "two.jsonl", lines(row))
    assert box(app, "Format").value is None
    assert "fits 2 formats. Choose one" in texts(app)
    assert app.button(key="start-import").disabled
    box(app, "Format").select("hf-rag").run()
    assert not app.button(key="start-import").disabled


def test_pasted_tables_are_kept_across_sessions(
    workbench: Workbench,
) -> None:
    text = 'question\tcontexts\tanswer\nHow long?\t"It is 120 m long."\t120 m\n'
    workbench.drafts.save(ADA.model_copy(update={"name": ""}), "import", {"text": text})
    app = open_page("import")
    assert box(app, "Format").value == "hf-rag"
    assert "1 case can be imported" in texts(app)


def test_an_uploaded_file_survives_the_session_and_its_loss_after_a_restart_is_reported(
    workbench: Workbench,
) -> None:
    upload(open_page("import"), "ragas.jsonl", lines(RAGAS))
    app = open_page("import")
    assert "ragas.jsonl" in texts(app)
    assert box(app, "Format").value == "ragas"
    st.cache_resource.clear()
    app = open_page("import")
    assert "The file is no longer on the server" in texts(app)


def test_a_stopped_import_reports_what_was_stored(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go_on = threading.Event(), threading.Event()
    whole = ImportService.add_file

    def stall(*arguments: object, **named: object) -> Iterator[ImportStep]:
        for step in whole(*arguments, **named):  # type: ignore[arg-type]
            yield step
            reached.set()
            assert go_on.wait(30)

    monkeypatch.setattr(ImportService, "add_file", stall)
    rows = [{**RAGAS, "user_input": f"How long is {number}?"} for number in range(1_200)]
    app = upload(open_page("import"), "ragas.jsonl", lines(*rows))
    app.button(key="start-import").click().run()
    assert reached.wait(30)
    app.run()
    app.button(key="stop-import").click().run()
    go_on.set()
    begun = running_import(app)
    begun.wait(30)
    app.run()
    assert begun.stopped
    assert workbench.store.cases.count() == begun.step.added < 1_200
    assert "The import was stopped before the end of the file" in texts(app)


def test_an_unknown_import_is_reported(
    workbench: Workbench,
) -> None:
    app = open_page("import", **{"import": "nonsense"})
    assert "no longer known" in texts(app)


def test_text_from_files_is_never_rendered_as_markdown(workbench: Workbench) -> None:
    row = {HOSTILE: HOSTILE, "question": HOSTILE, "passages": [HOSTILE], "answer": 5}
    app = upload(open_page("import"), f"{HOSTILE}.jsonl", lines(row, [HOSTILE]))
    start(app)
    rendered = [*app.markdown, *app.caption, *app.header, *app.error, *app.warning]
    assert not any("example.org" in str(element.value) for element in rendered)
    assert not any(
        "example.org" in widget.label for widget in (*app.button, *app.selectbox, *app.multiselect)
    )


def test_a_column_of_systems_is_proposed_shown_and_stored(workbench: Workbench) -> None:
    rows = [{**OWN, "id": "q1", "system": name, "topic": "bridges"} for name in ("birch", "alder")]
    app = upload(open_page("import"), "own.jsonl", lines(*rows))
    assert box(app, "System that answered (optional)").value == "system"
    assert "Not used: topic. They're stored with the case." in texts(app)
    start(app)
    assert {case.id for case in workbench.store.cases.iterate()} == {"q1:birch", "q1:alder"}
