"""Sheets of Excel workbooks (.xlsx, .xlsm), as a person sees them: the values of formulas, numbers
by their format.

openpyxl reads a sheet a row at a time. python-calamine is some 17 times as fast (50,000 rows in
0.16 s instead of 2.8 s), but lays out every cell between the first and the last: a file of 5 kB
with a cell at the far corner asks it for 549 GB and ends the process.
"""

from __future__ import annotations

import datetime
import re
import shlex
import warnings
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from masis.datasets.readers.tables import Header, TableRow
from masis.errors import InputError
from masis.schema.wording import shorten

MOST_WORKBOOK_BYTES = 256 * 1024 * 1024
"""Bytes that a workbook may unpack to: the texts of all of its sheets are held in memory."""

_MOST_STYLE_BYTES = 16 * 1024 * 1024
"""Bytes of a part that is held as a tree, which takes many times its size."""

_MOST_ROWS = 1_048_576
"""Rows of a sheet, by the limit of Excel."""

_MOST_CELLS = 50_000_000
"""Cells of a sheet, empty ones before the last of a row included: each of them costs time."""

_LOOKED_AT = 50
"""Rows in which a sheet has something, for it to count as one."""

_BATCH = 500


def read_workbook(file: BinaryIO, sheet: str | None = None) -> Iterator[TableRow]:
    """Yield the rows of one sheet, by its name or its place from 1; ``end`` counts rows. Raises
    InputError.

    Without a ``sheet`` it is the one that holds something.
    """
    try:
        yield from _sheet_rows(file, sheet)
    except InputError:
        raise
    except Exception as error:  # openpyxl raises whatever a damaged part makes it stumble over
        raise _damaged_workbook(error) from error


def sheets_of(path: Path) -> list[str]:
    """Return the names of the sheets of a workbook that hold something; none of another file.
    Raises InputError.
    """
    with path.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about parts of a workbook that openpyxl leaves out
        try:
            with zipfile.ZipFile(file) as archive:
                if "xl/workbook.xml" not in archive.namelist():
                    return []
        except zipfile.BadZipFile:
            return []
        try:
            return [sheet.title for sheet in _filled_sheets(_open_workbook_file(file).worksheets)]
        except InputError:
            raise
        except Exception as error:
            raise _damaged_workbook(error) from error


def _damaged_workbook(error: Exception) -> InputError:
    problem = (
        "is no Excel workbook that can be read"
        f" ({shorten(str(error) or type(error).__name__, 100)})"
    )
    return InputError(problem, hint="Open it and save it again, or save its sheet as CSV UTF-8.")


def _open_workbook_file(file: BinaryIO, *, values: bool = True) -> Any:
    import openpyxl  # loaded only for such a file

    with zipfile.ZipFile(file) as archive:
        sizes = {member.filename: member.file_size for member in archive.infolist()}
        parts = [
            size
            for name, size in sizes.items()
            if "/worksheets/" not in name and "sharedStrings" not in name
        ]
        if sum(sizes.values()) > MOST_WORKBOOK_BYTES or max(parts, default=0) > _MOST_STYLE_BYTES:
            raise InputError(
                "unpacks to more than is allowed",
                hint="Save its sheet as CSV UTF-8, and import that file.",
            )
    file.seek(0)
    return openpyxl.load_workbook(file, read_only=True, data_only=values, keep_links=False)


def _filled_sheets(sheets: list[Any]) -> list[Any]:
    """Return the sheets that hold something; hidden ones only where no other does."""
    filled = [
        sheet
        for sheet in sheets
        if any(cell.value is not None for row in _cell_rows(sheet, _LOOKED_AT) for cell in row)
    ]
    return [sheet for sheet in filled if sheet.sheet_state == "visible"] or filled


def _choose_sheet(sheets: list[Any], named: str | None) -> Any:
    """Return the sheet of a name or a place. Raises InputError where there is none, or several are
    meant.
    """
    if named is not None:
        found = [sheet for sheet in sheets if sheet.title == named]
        found = found or [sheet for sheet in sheets if sheet.title.casefold() == named.casefold()]
        if not found and named.isascii() and named.isdigit() and 0 < int(named) <= len(sheets):
            found = [sheets[int(named) - 1]]
        if found:
            return found[0]
    else:
        sheets = _filled_sheets(sheets)
        if len(sheets) == 1:
            return sheets[0]
    names = ", ".join(repr(shorten(sheet.title, 40)) for sheet in sheets[:10])
    if named is not None:
        problem, hint = f"has no sheet {shorten(named, 40)!r}", f"There are: {names}."
    elif not sheets:
        problem, hint = "holds no sheet with rows", "Check the file."
    else:
        problem = f"has {len(sheets)} sheets: {names}"
        hint = (
            f"Say which: --sheet {shlex.quote(sheets[0].title)}, in Python"
            f" sheet={sheets[0].title!r}."
        )
    raise InputError(problem, hint=hint, field="sheet")


def _sheet_rows(file: BinaryIO, named: str | None) -> Iterator[TableRow]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sheet = _choose_sheet(_open_workbook_file(file).worksheets, named)
        formulas = _formula_rows(file, sheet.title)
    rows = enumerate(zip(_cell_rows(sheet), formulas or _no_formulas(), strict=False), 1)
    header: Header | None = None
    while True:
        # not around a yield: the filter would hold wherever this generator rests
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            batch = list(islice(rows, _BATCH))
        for number, (cells, written) in batch:
            row = [_cell_text(cell) for cell in cells]
            if not any(row) and not any(_is_formula(cell) for cell in written):
                continue
            if header is None:
                while row and not row[-1]:
                    row.pop()
                header = Header(row, number)
                continue
            yield TableRow(
                number, number, _uncalculated_error(row, written) or header.cells_of(row)
            )
        if len(batch) < _BATCH:
            return


def _cell_rows(sheet: Any, most: int = _MOST_ROWS) -> Iterator[tuple[Any, ...]]:
    # Some libraries write a wrong size of the sheet, and openpyxl would leave out what lies beyond
    # it.
    sheet.reset_dimensions()
    count = 0
    # The limit keeps a row with a number of any size from being reached through as many empty rows.
    for row in sheet.iter_rows(max_row=most):
        count += len(row)
        if count > _MOST_CELLS:
            raise InputError(
                f"has a sheet of more than {_MOST_CELLS:,} cells", hint="Save it as CSV UTF-8."
            )
        yield row


def _no_formulas() -> Iterator[tuple[Any, ...]]:
    while True:
        yield ()


def _formula_rows(file: BinaryIO, title: str) -> Iterator[tuple[Any, ...]] | None:
    """Return the rows of a sheet with its formulas as they are written; None where it has none."""
    with zipfile.ZipFile(file) as archive:
        names = [
            name
            for name in archive.namelist()
            if name.startswith("xl/worksheets/") and name.endswith(".xml")
        ]
        if not any(_has_formula(archive, name) for name in names):
            return None
    return _cell_rows(_open_workbook_file(file, values=False)[title])


def _has_formula(archive: zipfile.ZipFile, name: str) -> bool:
    before = b""
    with archive.open(name) as part:
        while block := part.read(1 << 20):
            if b"<f>" in before + block or b"<f " in before + block:
                return True
            before = block[-2:]
    return False


def _is_formula(cell: Any) -> bool:
    return getattr(cell, "data_type", "") == "f"


def _uncalculated_error(row: list[str], written: tuple[Any, ...]) -> InputError | None:
    """Return what is wrong where a formula has no value: a library wrote it, and no spreadsheet has
    calculated it.
    """
    for place, cell in enumerate(written):
        if _is_formula(cell) and (place >= len(row) or not row[place]):
            return InputError(
                f"has a formula without a value in {cell.coordinate}",
                hint="Open the file in Excel or LibreOffice, and save it: that calculates it.",
            )
    return None


# cells as a person sees them

_ESCAPED = re.compile(r"_x000D_\n?|_x000[A9]_", re.IGNORECASE)


def _cell_text(cell: Any) -> str:
    """Return a cell as text: numbers by their format, dates as ISO 8601 has them, whatever the
    format's order is.
    """
    value = cell.value
    match value:
        case None:
            return ""
        case str():  # carriage returns and tabs are escaped in the file
            return _ESCAPED.sub(lambda found: "\t" if found[0][5] == "9" else "\n", value)
        case bool():
            return str(value).upper()
        case int() | float():
            return format_number(value, str(cell.number_format or ""))
        case datetime.datetime():
            return (
                value.date().isoformat()
                if value.time() == datetime.time()
                else value.isoformat(" ", "seconds")
            )
        case datetime.timedelta():
            return str(value)
        case datetime.date() | datetime.time():
            return value.isoformat()
        case _:
            return str(value)


_LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|\[[^\]]*\]|_.|\*.')
"""What a format shows as it is: quoted text, an escaped character, a currency; colours, conditions,
room and fill.
"""

_DIGITS = re.compile(r"[#?0][#?0,]*(?:\.[#?0]+)?")


def format_number(value: float, form: str) -> str:
    """Return a number as a cell of this format shows it: decimals, thousands, percent, leading
    zeros, a currency.
    """
    positive, *others = form.split(";")
    section, number = positive, value
    if value < 0 and others and others[0].strip():
        section, number = others[0], -value
    marks: list[str] = []

    def keep(found: re.Match[str]) -> str:
        marks.append(next((each for each in found.groups() if each), ""))
        return "\ue000"  # no sign of a format, nor a digit

    bare = _LITERAL.sub(keep, section)
    found = _DIGITS.search(bare)
    if (
        found is None
        or re.search(r"[eE][+-]|/|[dmyhs@]|General", bare)
        or len(_DIGITS.findall(bare)) > 1
    ):
        return _format_general(value)
    whole, _, decimals = found[0].partition(".")
    if whole.endswith(",") or bare.startswith(",", found.end()):  # shown in thousands
        return _format_general(value)
    percent = "%" in bare
    digits = f"{abs(number) * (100 if percent else 1):{',' if ',' in whole else ''}.{min(len(decimals), 30)}f}"
    before, dot, after = digits.partition(".")
    after = (
        after.rstrip("0").ljust(decimals.rstrip("#?").count("0"), "0") if "#" in decimals else after
    )
    least = whole.replace(",", "").count("0")
    digits = before.rjust(least, "0") + (dot + after if after else "")
    text = bare[: found.start()] + digits + bare[found.end() :]
    kept = iter(marks)
    shown = re.sub("\ue000", lambda _: next(kept), text).strip()
    return f"-{shown}" if number < 0 else shown


def _format_general(value: float) -> str:
    if isinstance(value, int) or value.is_integer():
        return str(int(value)) if abs(value) < 1e15 else repr(value)
    return f"{value:.15g}"  # of 0.1 + 0.2 a spreadsheet shows 0.3
