"""Tables as written by spreadsheets and other programs, as CSV and as Excel workbooks."""

from __future__ import annotations

import datetime
import io
import re
import shlex
import time
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from click.testing import CliRunner

import masis
from masis.cli import main
from masis.datasets.mapping.reader import read_any
from masis.datasets.readers import workbooks
from masis.datasets.readers.workbooks import format_number
from masis.errors import InputError
from masis.services import Workbench
from tests.reviewing import ADA

ROW = ["Why?", '["So.", "Thus."]', "So [1]."]
QUOTED = 'Why?,"[""So."", ""Thus.""]",So [1].'
READ = ("Why?", "So [1].", ["So.", "Thus."])


def read_one(path: Path, **given: Any) -> tuple[str, str | None, list[str]]:
    (case,) = masis.read_cases(path, **given)
    return case.query, case.answer, [chunk.text for chunk in case.evidence]


def csv_file(folder: Path, content: str, name: str = "f.csv") -> Path:
    path = folder / name
    path.write_text(content, newline="")
    return path


@pytest.mark.parametrize(
    "content",
    [
        f"question,contexts,answer\n{QUOTED}\n",
        f"question,contexts,answer,,,\n{QUOTED},,,\n",  # columns that are no longer used
        f"question,contexts,answer,\n{QUOTED}\n",
        f"question,contexts,answer\n{QUOTED},,\n",
        f",question,contexts,answer\n0,{QUOTED}\n",  # a pandas index
        f",question,contexts,answer,\n0,{QUOTED},\n",
        f"sep=,\nquestion,contexts,answer\n{QUOTED}\n",
        f"\ufeffsep=,\r\nquestion,contexts,answer\r\n{QUOTED}\r\n",
        f"\n\nquestion,contexts,answer\n{QUOTED}\n",
        'sep=;\nquestion;contexts;answer\nWhy?;"[""So."", ""Thus.""]";So [1].\n',
        '"sep=;"\nquestion;contexts;answer\nWhy?;"[""So."", ""Thus.""]";So [1].\n',
        'question|contexts|answer\nWhy?|"[""So."", ""Thus.""]"|So [1].\n',
        'question;contexts;answer;"a, b, c, d, e"\nWhy?;"[""So."", ""Thus.""]";So [1].;\n',
        'question\tcontexts\tanswer\nWhy?\t"[""So."", ""Thus.""]"\tSo [1].\n',
        f"question,contexts,answer\r{QUOTED}\r",
    ],
)
def test_a_table_of_any_dialect_is_read(content: str, tmp_path: Path) -> None:
    assert read_one(csv_file(tmp_path, content)) == READ


@pytest.mark.parametrize(
    "header",
    ['"question\n(original)";contexts;answer', '"question\r\n(original), translated";contexts;answer',
     '"a; b; c; d";contexts;answer', '"say ""a;b""";contexts;answer'],
)  # fmt: skip
def test_a_header_with_line_breaks_works_in_the_suggested_command(
    header: str, tmp_path: Path
) -> None:
    path = csv_file(tmp_path, f'{header}\nWhy?;"[""So."", ""Thus.""]";So [1].\n', "my table.csv")
    name = header.partition(";contexts")[0][1:-1].replace('""', '"').replace("\r\n", "\n")
    assert read_one(path, map={"query": name, "evidence": "contexts", "answer": "answer"}) == READ
    suggested = CliRunner().invoke(main, ["import", str(path), "--suggest"])
    command = re.search(r"Import it: masis (.*)\Z", suggested.output, re.DOTALL)
    assert command, suggested.output
    arguments = [*shlex.split(command[1]), "--db", str(tmp_path / "m.db")]
    assert "1 case imported" in CliRunner().invoke(main, arguments).output
    line = CliRunner().invoke(main, ["import", str(path), "--as", "cases", "--dry-run"]).output
    assert "line" in line


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            f"question,contexts,answer,,\n{QUOTED},,late\n",
            "line 2: has 'late' in column 5, which has no name. Name the",
        ),
        (
            f"question,contexts,answer\n{QUOTED},,late\n",
            "line 2: has 5 columns, the first line names 3",
        ),
        (f"question,contexts,question\n{QUOTED}\n", "line 1: has two columns named 'question'"),
        (
            'question,contexts,answer\nWhy?,"[""So.""]",#NAME?\n',
            "line 2, answer: is #NAME?, a spreadsheet",
        ),
        (
            "question,contexts,answer\nWhy?,#REF!,So.\n",
            "line 2, evidence[0].text: is #REF!, a spreadsheet",
        ),
        (f"sep=;\nquestion;contexts;answer\n{QUOTED}\n", "query"),
    ],
)
def test_a_misplaced_or_invalid_cell_is_reported_with_its_position(
    content: str, says: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        masis.read_cases(csv_file(tmp_path, content))


# Excel workbooks


def book(*sheets: list[list[Any]], folder: Path, formats: dict[str, str] | None = None) -> Path:
    written = openpyxl.Workbook()
    written.remove(written.active)
    for number, rows in enumerate(sheets, 1):
        sheet = written.create_sheet(f"Sheet {number}")
        for row in rows:
            sheet.append(row)
    for cell, form in (formats or {}).items():
        written.worksheets[0][cell].number_format = form
    path = folder / "f.xlsx"
    written.save(path)
    return path


HEADER = ["question", "contexts", "answer"]


def test_a_workbook_is_read_under_any_file_name(tmp_path: Path) -> None:
    path = book([[*HEADER, None], [], [*ROW, None]], [], folder=tmp_path)
    assert read_one(path) == READ
    (row,) = read_any(path)
    assert row.number == 3  # the spreadsheet's own row number
    assert read_one(path.rename(tmp_path / "upload-without-name")) == READ


def test_cells_are_read_as_displayed(tmp_path: Path) -> None:
    at = datetime.datetime(2024, 1, 5, 13, 30)
    values = [1.0, *ROW, 0.125, 7, True, at, datetime.date(2024, 1, 5), 0.1 + 0.2, "a\r\nb"]
    names = ["id", *HEADER, "share", "code", "right", "at", "day", "sum", "note"]
    path = book([names, values], folder=tmp_path, formats={"E2": "0.0%", "F2": "00000"})
    (case,) = masis.read_cases(path)
    assert case.id == "1"
    row = case.metadata["source_row"]
    assert [row[name] for name in ("share", "code", "right", "at", "day", "sum")] == [
        "12.5%", "00007", "TRUE", "2024-01-05 13:30:00", "2024-01-05", "0.3",
    ]  # fmt: skip
    assert row["note"].splitlines() == ["a", "b"]


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (1234.5, "#,##0.00", "1,234.50"), (-5, "0.00;[Red](0.00)", "(5.00)"), (-5, "0.00", "-5.00"),
        (5, '"$"#,##0', "$5"),
        (5, "#,##0.00 [$€-407]", "5.00 €"), (1.5, "0.##", "1.5"), (1, "0.##", "1"), (0.12, "0%", "12%"),
        (12, "0.00E+00", "12"), (1_500_000, '0.0,,"M"', "1500000"), (0.5, "# ?/?", "0.5"), (7, "@", "7"),
        (2.0, "General", "2"), (1e20, "General", "1e+20"), (3, '0 "items"', "3 items"), (5, "", "5"),
    ],
)  # fmt: skip
def test_a_number_is_displayed_by_its_format(value: float, form: str, shown: str) -> None:
    assert format_number(value, form) == shown


def test_a_formula_is_read_by_its_value_and_rejected_without_one(tmp_path: Path) -> None:
    path = book([HEADER, [*ROW[:2], '=CONCAT("So ","[1].")']], folder=tmp_path)
    with pytest.raises(
        InputError, match=r"line 2: has a formula without a value in C2\. Open the file in Excel"
    ):
        masis.read_cases(path)
    calculated = tmp_path / "calculated.xlsx"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(calculated, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            if name == "xl/worksheets/sheet1.xml":
                part = part.replace(b"<v />", b"<v>So [1].</v>").replace(
                    b"<v></v>", b"<v>So [1].</v>"
                )
                part = part.replace(b'<c r="C2"', b'<c r="C2" t="str"').replace(
                    b't="str" t="str"', b't="str"'
                )
            new.writestr(name, part)
    assert read_one(calculated) == READ


def test_one_of_several_sheets_must_be_chosen(tmp_path: Path) -> None:
    path = book([["notes"], ["none"]], [HEADER, ROW], folder=tmp_path)
    with pytest.raises(
        InputError,
        match=r"sheet: has 2 sheets: 'Sheet 1', 'Sheet 2'\. Choose one: --sheet 'Sheet 1'",
    ):
        masis.read_cases(path)
    for named in ("Sheet 2", "sheet 2", "2"):
        assert read_one(path, sheet=named) == READ
        command = ["import", str(path), "--sheet", named, "--db", str(tmp_path / f"{named}.db")]
        assert "1 case imported" in CliRunner().invoke(main, command).output
    with pytest.raises(InputError, match=r"has no sheet 'May'\. There are: 'Sheet 1', 'Sheet 2'\."):
        masis.read_cases(path, sheet="May")
    suggested = CliRunner().invoke(main, ["import", str(path), "--sheet", "Sheet 2", "--suggest"])
    assert "--sheet 'Sheet 2'" in suggested.output
    assert masis.suggest(path, sheet="Sheet 2").format == "hf-rag"


def test_a_hidden_sheet_and_a_wrong_sheet_size_hide_no_row(tmp_path: Path) -> None:
    path = book([["notes"], ["none"]], [HEADER, ROW], folder=tmp_path)
    written = openpyxl.load_workbook(path)
    written["Sheet 1"].sheet_state = "hidden"
    written.active = 1
    written.save(path)
    smaller = tmp_path / "smaller.xlsx"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(smaller, "w") as new:
        for name in old.namelist():
            new.writestr(
                name, re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="A1"', old.read(name))
            )
    assert read_one(path) == read_one(smaller) == READ


def test_a_malicious_workbook_is_rejected_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = book([HEADER, ROW], folder=tmp_path)

    def change_sheet(name: str, old: bytes, new: bytes) -> Path:
        made = tmp_path / f"{name}.xlsx"
        with zipfile.ZipFile(path) as source, zipfile.ZipFile(made, "w") as target:
            for member in source.namelist():
                target.writestr(
                    member,
                    source.read(member).replace(old, new)
                    if "sheet1" in member
                    else source.read(member),
                )
        return made

    began = time.monotonic()
    far = change_sheet("far", b'<row r="2"', b'<row r="99999999999"')
    assert not [row.case for row in read_any(far) if row.case]
    entities = b'<?xml version="1.0"?><!DOCTYPE w [<!ENTITY a "aaaa">]><worksheet'
    with pytest.raises(InputError, match="isn't a readable Excel workbook"):
        masis.read_cases(change_sheet("entities", b"<worksheet", entities))
    with pytest.raises(InputError, match="isn't a readable Excel workbook"):
        masis.read_cases(change_sheet("broken", b"</sheetData>", b""))
    assert time.monotonic() - began < 20
    monkeypatch.setattr(workbooks, "_MOST_CELLS", 3)
    with pytest.raises(InputError, match="has a sheet of more than 3 cells"):
        masis.read_cases(path)
    monkeypatch.setattr(workbooks, "MOST_WORKBOOK_BYTES", 1_000)
    with pytest.raises(InputError, match="unpacks to more than is allowed"):
        masis.read_cases(path)


def test_decisions_are_read_from_a_workbook_with_numeric_ids(
    tmp_path: Path,
) -> None:
    case = {"id": "2", "query": "Why?", "answer": "So [1].", "evidence": ["So."]}
    (tmp_path / "c.jsonl").write_text(masis.Case(**case).model_dump_json(exclude_unset=True))
    run = CliRunner().invoke
    run(main, ["audit", str(tmp_path / "c.jsonl"), "--db", str(tmp_path / "m.db")])
    path = book(
        [["case", "verdict", "reason", None], [2.0, "reject", "contradicted", None]],
        folder=tmp_path,
    )
    for file in (path, csv_file(tmp_path, "case,verdict,reason,,\n2.0,reject,contradicted,,\n")):
        found = run(
            main, ["decide", "--file", str(file), "--dry-run", "--db", str(tmp_path / "m.db")]
        )
        assert found.exit_code == 0, found.output


# folders, archives, and files of another kind


def test_hidden_and_temporary_files_are_skipped_in_folders_and_archives(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data"
    good = f"question,contexts,answer\n{QUOTED}\n"
    for name in (
        "a.csv",
        ".ipynb_checkpoints/a-checkpoint.csv",
        "__MACOSX/._a.csv",
        "~$a.xlsx",
        ".hidden.csv",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(good if name == "a.csv" else "damaged")
    packed = tmp_path / "data.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for path in folder.rglob("*.*"):
            if path.is_file():
                archive.write(path, path.relative_to(folder).as_posix())
    assert read_one(folder) == read_one(packed) == READ
    book([HEADER, ["How?", *ROW[1:]]], folder=folder)
    assert [case.query for case in masis.read_cases(folder)] == ["Why?", "How?"]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("f.csv", b"\x89PNG\r\n\x1a\n", "is an image (PNG)"),
        ("f.jsonl", b"\xff\xd8\xff\xe0", "is an image (JPEG)"),
        ("f.pkl", b"\x80\x04\x95", "is a Python pickle, which isn't opened"),
        (
            "f.xls",
            b"\xd0\xcf\x11\xe0\xa1\xb1",
            "is an old Office document (.xls, .doc). Save it as .xlsx",
        ),
        ("f.feather", b"ARROW1\x00\x00", "is an Arrow or Feather file. Write it as Parquet"),
        ("f.npy", b"\x93NUMPY\x01", "is a numpy array"),
        ("f.csv", b"<!DOCTYPE html><html>", "is an HTML page, perhaps one that asks for a sign-in"),
        ("f.json", b"<?xml version='1.0'?>", "is an XML file"),
        (
            "f.csv",
            b"version https://git-lfs.github.com/spec/v1\noid",
            "is a Git LFS pointer, not the file itself. Fetch it",
        ),
        ("f.tar", b"a" * 257 + b"ustar\x00", "is a tar archive"),
        ("f.csv", b"\x00\x01\x02\x03,\x00", "isn't text: it contains null bytes"),
    ],
)
def test_a_file_of_another_kind_is_named_in_one_line(
    name: str, content: bytes, says: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=re.escape(says)) as raised:
        masis.read_cases(path)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("member", "says"),
    [("xl/workbook.bin", "is a binary Excel workbook"), ("META-INF/manifest.xml", "is an OpenDocument file"),
     ("ppt/presentation.xml", "is a PowerPoint presentation")],
)  # fmt: skip
def test_an_unsupported_office_file_is_named(member: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, b"x")
    with pytest.raises(InputError, match=re.escape(says)):
        masis.read_cases(path)


def test_a_workbook_as_a_byte_stream_is_rejected_with_a_hint(tmp_path: Path) -> None:
    content = io.BytesIO(book([HEADER, ROW], folder=tmp_path).read_bytes())
    with pytest.raises(InputError, match="is a zip archive or a spreadsheet"):
        list(read_any(content))


def test_the_service_lists_the_sheets(tmp_path: Path) -> None:
    path = book([["notes"]], [HEADER, ROW], [], folder=tmp_path)
    workbench = Workbench.open(tmp_path / "w.db")
    assert workbench.imports.sheets_of(ADA, path, name="f.xlsx") == ["Sheet 1", "Sheet 2"]
    assert workbench.imports.sheets_of(ADA, csv_file(tmp_path, "a,b\n"), name="f.csv") == []
    look = workbench.imports.preview(ADA, path, name="f.xlsx", sheet="2")
    assert len(look.cases) == 1
    workbench.close()


@pytest.mark.parametrize("word", ["nan", "NaN", "NaT", "<NA>"])
def test_a_missing_value_written_by_pandas_is_empty(tmp_path: Path, word: str) -> None:
    file = tmp_path / "cases.csv"
    file.write_text(
        f'query,answer,evidence,note\nHow long?,{word},"[""It is long.""]",{word}\n',
        encoding="utf-8",
    )
    (case,) = masis.read_cases(file)
    assert case.answer is None
