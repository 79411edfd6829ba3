"""Reads sheets of Excel workbooks (.xlsx, .xlsm) as a person sees them.

Formulas are replaced by their values, and numbers are formatted. openpyxl reads a sheet row by row.
python-calamine is about 17 times as fast (0.16 s instead of 2.8 s for 50,000 rows), but allocates
every cell between the first and the last: for a file of 5 kB with a cell in the far corner it
requests 549 GB, which ends the process.
"""

from __future__ import annotations

import datetime
import re
import shlex
import warnings
import zipfile
from collections.abc import Iterator
from itertools import islice, repeat
from pathlib import Path
from typing import Any, BinaryIO

from masis.datasets.readers.tables import Header, TableRow
from masis.errors import InputError
from masis.schema.wording import shorten

MOST_WORKBOOK_BYTES = 256 * 1024 * 1024
"""Maximum number of bytes that a workbook may unpack to, since the texts of all its sheets are in
memory.
"""

_MOST_STYLE_BYTES = 16 * 1024 * 1024
"""Maximum number of bytes of a part that is parsed into a tree, which takes many times its size."""

_MOST_ROWS = 1_048_576
"""Maximum number of rows per sheet, which is Excel's own limit."""

_MOST_CELLS = 50_000_000
"""Maximum number of cells per sheet, including empty ones before the last cell of a row.

Each of them takes time.
"""

_LOOKED_AT = 50
"""The first rows of a sheet, of which one must have a value for the sheet to count."""

_BATCH = 500


def read_workbook(file: BinaryIO, sheet: str | None = None) -> Iterator[TableRow]:
    """Yield the rows of one sheet; ``end`` counts rows.

    Args:
        file: The workbook.
        sheet: The name of the sheet or its position from 1. By default, the only sheet with values.

    Raises:
        InputError: The workbook or the sheet can't be read, or several sheets have values.

    """
    try:
        yield from _sheet_rows(file, sheet)
    except InputError:
        raise
    except Exception as error:  # a damaged part can raise any exception in openpyxl
        raise _damaged_workbook(error) from error


def sheets_of(path: Path) -> list[str]:
    """Return the names of a workbook's sheets with values, or an empty list for another file.

    Raises:
        InputError: The workbook can't be read.

    """
    with path.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl warns about parts that it drops
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
        f"isn't a readable Excel workbook ({shorten(str(error) or type(error).__name__, 100)})"
    )
    return InputError(problem, hint="Open it and save it again, or save its sheet as CSV UTF-8.")


def _open_workbook_file(file: BinaryIO, *, values: bool = True) -> Any:
    import openpyxl  # imported late, since few files need it

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
    # read_only reads rows as a stream. keep_links=False skips parts about other workbooks.
    return openpyxl.load_workbook(file, read_only=True, data_only=values, keep_links=False)


def _filled_sheets(sheets: list[Any]) -> list[Any]:
    """Return the sheets with values; hidden ones only if there are no others."""
    filled = [
        sheet
        for sheet in sheets
        if any(cell.value is not None for row in _cell_rows(sheet, _LOOKED_AT) for cell in row)
    ]
    return [sheet for sheet in filled if sheet.sheet_state == "visible"] or filled


def _choose_sheet(sheets: list[Any], wanted: str | None) -> Any:
    """Return the sheet with a name or position.

    Raises:
        InputError: There is no such sheet, or none is named and several have values.

    """
    if wanted is not None:
        matches = [sheet for sheet in sheets if sheet.title == wanted]
        matches = matches or [
            # Excel ignores case in sheet names.
            sheet
            for sheet in sheets
            if sheet.title.casefold() == wanted.casefold()
        ]
        if not matches and wanted.isascii() and wanted.isdigit() and 0 < int(wanted) <= len(sheets):
            matches = [sheets[int(wanted) - 1]]
        if matches:
            return matches[0]
    else:
        sheets = _filled_sheets(sheets)
        if len(sheets) == 1:
            return sheets[0]
    names = ", ".join(repr(shorten(sheet.title, 40)) for sheet in sheets[:10])
    if wanted is not None:
        problem, hint = f"has no sheet {shorten(wanted, 40)!r}", f"There are: {names}."
    elif not sheets:
        problem, hint = "has no sheet with rows", "Check the file."
    else:
        problem = f"has {len(sheets)} sheets: {names}"
        hint = (
            f"Choose one: --sheet {shlex.quote(sheets[0].title)}, in Python"
            f" sheet={sheets[0].title!r}."
        )
    raise InputError(problem, hint=hint, field="sheet")


def _sheet_rows(file: BinaryIO, wanted: str | None) -> Iterator[TableRow]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sheet = _choose_sheet(_open_workbook_file(file).worksheets, wanted)
        # A cell has either its value or its formula, depending on how the workbook is opened, so it
        # is opened twice.
        formulas = _formula_rows(file, sheet.title)
    rows = enumerate(zip(_cell_rows(sheet), formulas or repeat(()), strict=False), 1)
    header: Header | None = None
    while True:
        # Not around the yield: the filter is global, and would stay on while the generator waits.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            batch = list(islice(rows, _BATCH))
        for number, (cells, formula_cells) in batch:
            row = [_cell_text(cell) for cell in cells]
            if not any(row) and not any(_is_formula(cell) for cell in formula_cells):
                continue
            if header is None:
                while row and not row[-1]:
                    row.pop()
                header = Header(row, number)
                continue
            yield TableRow(
                number, number, _uncalculated_error(row, formula_cells) or header.cells_of(row)
            )
        if len(batch) < _BATCH:
            return


def _cell_rows(sheet: Any, most: int = _MOST_ROWS) -> Iterator[tuple[Any, ...]]:
    # Some libraries write a wrong sheet size, and openpyxl would drop the cells beyond it.
    sheet.reset_dimensions()
    count = 0
    # Without the limit, a row with a huge number would be reached through as many empty rows.
    for row in sheet.iter_rows(max_row=most):
        count += len(row)
        if count > _MOST_CELLS:
            raise InputError(
                f"has a sheet of more than {_MOST_CELLS:,} cells", hint="Save it as CSV UTF-8."
            )
        yield row


def _formula_rows(file: BinaryIO, title: str) -> Iterator[tuple[Any, ...]] | None:
    """Return the rows of a sheet with formulas as written, or None if it has none."""
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
            # A tag may be split between two blocks.
            before = block[-2:]
    return False


def _is_formula(cell: Any) -> bool:
    return getattr(cell, "data_type", "") == "f"


def _uncalculated_error(row: list[str], formula_cells: tuple[Any, ...]) -> InputError | None:
    """Return an error if a formula has no value.

    A library wrote such a formula, and no spreadsheet has calculated it yet.
    """
    for place, cell in enumerate(formula_cells):
        if _is_formula(cell) and (place >= len(row) or not row[place]):
            return InputError(
                f"has a formula without a value in {cell.coordinate}",
                hint="Open the file in Excel or LibreOffice and save it to calculate the formula.",
            )
    return None


# Formatting cells

_ESCAPED = re.compile(r"_x000D_\n?|_x000[A9]_", re.IGNORECASE)
"""Escaped control characters of OOXML: carriage return, line feed and tab (ECMA-376, ST_Xstring).
"""


def _cell_text(cell: Any) -> str:
    """Return a cell as text: numbers in their format, dates always as ISO 8601."""
    value = cell.value
    match value:
        case None:
            return ""
        case str():  # the file escapes carriage returns and tabs: _x000D_
            return _ESCAPED.sub(lambda match: "\t" if match[0][5] == "9" else "\n", value)
        case bool():
            # Excel shows TRUE and FALSE.
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
"""Parts of a number format that aren't digits.

Quoted text, escaped characters and currencies are shown; colors, conditions, padding and fill
aren't.
"""

_DIGITS = re.compile(r"[#?0][#?0,]*(?:\.[#?0]+)?")
"""The digit placeholders of a number format: ``#,##0.00``."""


def format_number(value: float, form: str) -> str:
    """Return a number as a cell with this format shows it.

    Supported are decimals, thousands separators, percent, leading zeros and currencies.
    """
    positive, *other_sections = form.split(";")
    section, number = positive, value
    if value < 0 and other_sections and other_sections[0].strip():
        section, number = other_sections[0], -value
    literals: list[str] = []

    def keep(digits_match: re.Match[str]) -> str:
        literals.append(next((group for group in digits_match.groups() if group), ""))
        return "\ue000"  # a private-use character, which is no format sign

    bare = _LITERAL.sub(keep, section)
    digits_match = _DIGITS.search(bare)
    if (
        digits_match is None
        or re.search(r"[eE][+-]|/|[dmyhs@]|General", bare)
        or len(_DIGITS.findall(bare)) > 1
    ):
        return _format_general(value)
    whole, _, decimals = digits_match[0].partition(".")
    # A trailing comma divides by 1,000.
    if whole.endswith(",") or bare.startswith(",", digits_match.end()):
        return _format_general(value)
    percent = "%" in bare
    separator, places = "," if "," in whole else "", min(len(decimals), 30)
    digits = f"{abs(number) * (100 if percent else 1):{separator}.{places}f}"
    before, dot, after = digits.partition(".")
    after = (
        after.rstrip("0").ljust(decimals.rstrip("#?").count("0"), "0") if "#" in decimals else after
    )
    least_digits = whole.replace(",", "").count("0")
    digits = before.rjust(least_digits, "0") + (dot + after if after else "")
    text = bare[: digits_match.start()] + digits + bare[digits_match.end() :]
    literals_left = iter(literals)
    shown = re.sub("\ue000", lambda _: next(literals_left), text).strip()
    return f"-{shown}" if number < 0 else shown


def _format_general(value: float) -> str:
    if isinstance(value, int) or value.is_integer():
        return str(int(value)) if abs(value) < 1e15 else repr(value)
    return f"{value:.15g}"  # a spreadsheet shows 0.1 + 0.2 as 0.3
