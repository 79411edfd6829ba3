"""The lake: audited cases as Parquet files in a folder, partitioned by outcome.

The layout is ``DIR/outcome=accepted|needs_review|failed/*.parquet``. As usual in partitioned data
sets, the outcome is in the folder's name and not in the files, and names that begin with ``_`` or
``.`` aren't data. ``docs/scale.md`` documents the columns. This module defines the schema and opens
lakes; it doesn't audit or import anything.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, BinaryIO, Literal, NamedTuple, TypedDict, cast, get_args

from masis.audit.acceptance import fault_probability
from masis.audit.measures import run_metrics
from masis.datasets.writers.lines import case_line
from masis.errors import InputError
from masis.schema.case import Case
from masis.schema.rules import MUST_LOOK
from masis.schema.run import Run

Outcome = Literal["accepted", "needs_review", "failed"]
"""The partition of a case.

``accepted``: auto-accepted. ``needs_review``: to be seen by a person, for a reason or as a spot
check. ``failed``: not audited; the row has the error.
"""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

VERSION = "1"
"""The version of the schema, in every file as the metadata ``masis_lake``.

A new column, which is null in older files, doesn't change it.
"""


COLUMNS = {
    **dict.fromkeys(("case_id", "digest", "dataset", "source"), "string"),
    **dict.fromkeys(("source_offset", "source_row"), "int64"),
    "run_id": "string",
    "finished_at": "timestamp",
    "tier": "string",
    "reasons": "list<string>",
    "fault_probability": "double",
    **dict.fromkeys(("spot_check", "incomplete"), "bool"),
    **dict.fromkeys(
        ("quality", "revised_quality", "confidence", "overall", "faithfulness"), "double"
    ),
    "hallucination": "bool",
    "iterations": "int32",
    "improvement_percentage": "double",
    "converged": "bool",
    "termination_reason": "string",
    **dict.fromkeys(
        ("claims", "supported_claims", "contradicted_claims", "unconfirmed_claims"), "int32"
    ),
    **dict.fromkeys(("citations", "invalid_citations", "issues", "serious_issues"), "int32"),
    "seconds": "double",
    "calls": "int32",
    **dict.fromkeys(("prompt_tokens", "completion_tokens"), "int64"),
    "cost_usd": "double",
    **dict.fromkeys(
        ("models", "app_version", "final_answer", "case_json", "run_json", "error"), "string"
    ),
    "tries": "int32",
}
"""The columns of every file in their order, with their Arrow types.

The folder provides ``outcome``. ``docs/scale.md`` describes the columns; a missing value is null.
"""


class RecordOrigin(TypedDict):
    """The origin of a case.

    It is a file, and the row or line from 1, counted from ``source_offset``.
    """

    source: str
    source_offset: int
    source_row: int


def file_schema() -> Any:
    """Return the pyarrow schema of a file: ``COLUMNS``, with the version as metadata."""
    import pyarrow

    own = {
        "list<string>": pyarrow.list_(pyarrow.string()),
        # Parquet has no timestamps in seconds (parquet-format, LogicalTypes: TIMESTAMP).
        "timestamp": pyarrow.timestamp("us", tz="UTC"),
    }
    fields = [
        (name, own.get(kind) or pyarrow.type_for_alias(kind)) for name, kind in COLUMNS.items()
    ]
    return pyarrow.schema(fields, metadata={"masis_lake": VERSION})


def lake_schema() -> Any:
    """Return the pyarrow schema of the whole lake: the schema of a file, and ``outcome``."""
    import pyarrow

    return file_schema().append(pyarrow.field("outcome", pyarrow.string()))


def outcome_of(run: Run) -> Outcome:
    """Return the folder of a run: a person sees runs that need review and spot checks."""
    return "needs_review" if run.needs_review or run.spot_check else "accepted"


_RUN_COLUMNS = (
    "spot_check",
    "incomplete",
    "quality",
    "revised_quality",
    "improvement_percentage",
    "converged",
    "termination_reason",
    "final_answer",
)
"""Columns with the same names as the fields of a run."""


def audited_row(case: Case, run: Run, origin: RecordOrigin, *, tries: int = 1) -> dict[str, Any]:
    """Return the row of an audited case, with ``outcome``."""
    original = run.original
    figures = run_metrics.of_run(run)
    tier = "spot_check" if run.spot_check else None
    if run.needs_review:
        must_look = any(reason.code in MUST_LOOK for reason in run.review_reasons)
        tier = "must_look" if must_look else "not_certified"
    of_original: dict[str, Any] = {}
    if original is not None:
        verdicts = [check.verdict for check in original.claims]
        of_original = {
            "fault_probability": fault_probability(original),
            "faithfulness": original.evaluation.faithfulness if original.evaluation else None,
            "claims": len(verdicts),
            "supported_claims": sum(check.verified for check in original.claims),
            "contradicted_claims": sum(
                verdict in ("contradicted", "unsupported") for verdict in verdicts
            ),
            "unconfirmed_claims": sum(
                verdict in ("unverifiable", "unscored") for verdict in verdicts
            ),
            "citations": len(original.citation_audit.citations),
            "invalid_citations": len(original.citation_audit.invalid_citations),
            "issues": len(original.issues),
            "serious_issues": sum(issue.major for issue in original.issues),
        }
    return {
        **_case_columns(case, origin),
        "outcome": outcome_of(run),
        "run_id": run.id,
        "finished_at": datetime.fromisoformat(run.finished_at),
        "tier": tier,
        "reasons": [reason.code for reason in run.review_reasons],
        **{name: getattr(run, name) for name in _RUN_COLUMNS},
        **run.usage.model_dump(include={"calls", "prompt_tokens", "completion_tokens", "cost_usd"}),
        "confidence": figures.confidence,
        "overall": figures.overall,
        "hallucination": figures.critique.hallucination,
        "iterations": run.total_iterations,
        **of_original,
        "seconds": figures.loop_ms / 1000,
        "models": json.dumps(run.models, ensure_ascii=False, sort_keys=True),
        "app_version": run.versions.app,
        "run_json": run.model_dump_json(),
        "tries": tries,
    }


def failed_row(
    case_or_row: Case | str | None, error: str, origin: RecordOrigin, *, tries: int = 1
) -> dict[str, Any]:
    """Return the row of a case that couldn't be audited, or of an input row that isn't a case.

    Args:
        case_or_row: The case, or the text of the row; None if the row can't be shown.
        error: The error.
        origin: The row's origin.
        tries: The number of attempts; 0 if the row isn't a case.

    """
    about = (
        _case_columns(case_or_row, origin)
        if isinstance(case_or_row, Case)
        else {**origin, "case_json": case_or_row}
    )
    return {**about, "outcome": "failed", "error": error, "tries": tries}


def write_lake_file(rows: Iterable[Mapping[str, Any]], stream: BinaryIO) -> None:
    """Write rows of one outcome as a Parquet file, without ``outcome``; missing values are null."""
    import pyarrow
    from pyarrow import parquet

    # With a schema, from_pylist() fills in missing keys with null and ignores others.
    table = pyarrow.Table.from_pylist([dict(row) for row in rows], schema=file_schema())
    parquet.write_table(table, stream, compression="zstd", row_group_size=_ROW_GROUP_SIZE)


def open_lake(place: str) -> Any:
    """Open a lake as a ``pyarrow.dataset.Dataset`` with the columns of ``lake_schema``.

    Args:
        place: A folder, or an address that fsspec reads (``s3://bucket/folder``).

    Raises:
        InputError: There is no lake at this place.

    """
    import pyarrow
    from pyarrow import dataset

    files, folder = filesystem_of(place)
    if not (folders := _outcome_folders(files, folder)):
        hint = "Name what 'masis audit --engine ray --out' wrote."
        raise InputError("isn't a folder of audited cases", hint=hint, file=place)
    partitioning = dataset.partitioning(
        pyarrow.schema([("outcome", pyarrow.string())]), flavor="hive"
    )
    return dataset.dataset(
        [path for outcome_folder in folders for path in _parquet_files(files, outcome_folder)],
        filesystem=files,
        format="parquet",
        partitioning=partitioning,
        # Only what follows this folder is read as partitions, so a parent named "x=y" adds no
        # column.
        partition_base_dir=folder,
        schema=lake_schema(),
    )


def is_lake(place: str) -> bool:
    """Return whether a folder, or an fsspec address, contains audited cases by outcome."""
    return bool(_outcome_folders(*filesystem_of(place)))


def filesystem_of(place: str) -> tuple[Any, str]:
    """Return pyarrow's file system for a path or an fsspec address, and the path in it.

    Raises:
        InputError: No installed package supports such addresses.

    """
    from pyarrow import fs

    place = place.removeprefix("file://")
    if "://" not in place:
        return fs.LocalFileSystem(), os.path.abspath(place)
    import fsspec

    try:
        filesystem, path = fsspec.core.url_to_fs(place)
    except (ImportError, ValueError) as error:
        raise InputError(
            f"can't be reached ({error})", hint="Install fsspec's package for it.", file=place
        ) from error
    return fs.PyFileSystem(fs.FSSpecHandler(filesystem)), cast("str", path).rstrip("/")


_ROW_GROUP_SIZE = 500
"""Rows of a row group. A run takes tens of kilobytes, and a reader loads one group at a time."""


def _parquet_files(files: Any, folder: str) -> list[str]:
    """Return the Parquet files of an outcome, sorted by name.

    Other files that a person keeps in the folder are ignored.
    """
    from pyarrow import fs

    listed = files.get_file_info(fs.FileSelector(folder))
    names = ((file.base_name, str(file.path)) for file in listed if file.type == fs.FileType.File)
    return sorted(
        path
        for name, path in names
        if name.endswith(".parquet") and not name.startswith(("_", "."))
    )


def _outcome_folders(files: Any, folder: str) -> list[str]:
    from pyarrow import fs

    folders = files.get_file_info([f"{folder}/outcome={outcome}" for outcome in OUTCOMES])
    return [entry.path for entry in folders if entry.type == fs.FileType.Directory]


def _case_columns(case: Case, origin: RecordOrigin) -> dict[str, Any]:
    dataset = case.metadata.get("dataset")
    return {
        "case_id": case.id,
        "digest": case.digest(),
        "dataset": dataset if isinstance(dataset, str) else None,
        **origin,
        "case_json": case_line(case),
    }


# Repeated ids. Parts of a lake are audited in parallel, so only the whole lake shows repetitions.

MOST_NAMED_IDS = 10
"""Maximum number of repeated ids to name; the others are counted."""


class Repeats(NamedTuple):
    """The ids that occur in several rows.

    Attributes:
        total: The number of these ids.
        named: The first of them in order, each with its input rows: file, offset of the row count,
            and row.

    """

    total: int
    named: dict[str, list[tuple[str, int, int]]]


def repeated_ids(place: str, named: int = MOST_NAMED_IDS) -> Repeats:
    """Return the ids that occur in several rows, ``named`` of them with their rows.

    The column of ids is loaded into memory.

    Raises:
        InputError: ``place``, a folder or an address that fsspec reads, isn't a lake.

    """
    from pyarrow import dataset

    lake = open_lake(place)
    counts = lake.to_table(columns=["case_id"]).to_pandas()["case_id"].value_counts()
    repeated = sorted(counts.index[counts > 1])
    if not repeated:
        return Repeats(0, {})
    of_shown = dataset.field("case_id").isin(repeated[:named])
    columns = ["case_id", "source", "source_offset", "source_row"]
    rows: dict[str, list[tuple[str, int, int]]] = {}
    repetitions = lake.to_table(columns=columns, filter=of_shown).to_pylist()
    for row in sorted(repetitions, key=lambda row: tuple(row.values())):
        origin = (row["source"], row["source_offset"], row["source_row"])
        rows.setdefault(row["case_id"], []).append(origin)
    return Repeats(len(repeated), rows)
