"""Recognizes files that are our own exports but can't be imported again.

Without it, a file of claims would be read as a foreign table with missing columns. ``formats.toml``
declares which formats can be imported (``returns``), and the keys of their rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from masis.datasets.exports.formats import Importable, export_formats
from masis.errors import InputError


def refuse_export(row: Mapping[str, object], wanted: Importable) -> None:
    """Refuse a row of an export format that can't be imported as ``wanted``.

    A row is recognized by its keys alone, so that a copy without its manifest is recognized too.

    Args:
        row: A row of a file, usually the first.
        wanted: What the file is imported as.

    Raises:
        InputError: The row has the keys of such a format. The hint names the format to export.

    """
    keys = frozenset(row)
    for name, candidate in export_formats().items():
        if keys not in candidate.row_keys:
            continue
        if wanted in candidate.returns and not candidate.table:
            return
        encoding = " as CSV" if candidate.table else ""
        raise InputError(
            f"has the fields of the export format {name!r}{encoding} ({candidate.summary}), which"
            f" can't be imported as {wanted}",
            hint="Run masis export --format decided, and import the JSON Lines or Parquet file.",
        )
