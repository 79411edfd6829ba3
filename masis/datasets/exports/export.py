"""Writes an export: the matching cases in one format, with a manifest.

Only a few hundred cases are in memory at a time.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from pydantic_core import to_json

from masis import version
from masis.datasets.exports.answers import JudgedAnswer, Row
from masis.datasets.exports.folders import LAYOUTS
from masis.datasets.exports.formats import Format, export_formats, labelling_interface
from masis.datasets.exports.splits import SPLITS, SplitShares, assign_splits
from masis.datasets.writers.files import STDIO, whole_file, whole_folder
from masis.datasets.writers.lines import escape_formula
from masis.errors import InputError
from masis.schema.review import CaseState
from masis.schema.trust import DatasetGuarantee
from masis.store import Store
from masis.store.records import CaseFilter
from masis.store.reviews.outcomes import CaseOutcome

# Encodings: JSON Lines, one JSON list, CSV and Parquet. Rows are written one by one, and the bytes
# are digested.

ENCODINGS = ("jsonl", "csv", "parquet")
"""The encodings of flat rows; each other format has one encoding of its own."""

_TYPES = {
    "support": "float64",
    "confidence": "float64",
    "start": "int64",
    "passage_start": "int64",
    "passage_end": "int64",
    "end": "int64",
    "iteration": "int64",
    "in_force": "bool",
}
"""The Parquet types of columns; all other columns are texts."""

_ROWS_AT_ONCE = 5_000
"""Rows of a Parquet row group."""


class DigestStream(io.RawIOBase):
    """Writes bytes to a stream and computes their digest."""

    def __init__(self, out: BinaryIO) -> None:
        super().__init__()
        self._out, self._digest, self._size = out, hashlib.sha256(), 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, content: Any) -> int:
        """Write bytes and return their number."""
        raw = bytes(content)
        self._out.write(raw)
        self._digest.update(raw)
        self._size += len(raw)
        return len(raw)

    def manifest_entry(self, name: str, rows: int) -> dict[str, Any]:
        """Return the manifest's entry for the file: its rows, size and digest."""
        return {"name": name, "rows": rows, "bytes": self._size, "sha256": self._digest.hexdigest()}


Rows = Iterator[dict[str, Any]]


def _write_lines(rows: Rows, out: BinaryIO, columns: Sequence[str]) -> None:
    for row in rows:
        out.write(to_json(row) + b"\n")


def _write_list(rows: Rows, out: BinaryIO, columns: Sequence[str]) -> None:
    # Written piece by piece, because the list may be larger than memory.
    before = b"[\n"
    for row in rows:
        out.write(before + to_json(row))
        before = b",\n"
    out.write(b"[]\n" if before == b"[\n" else b"\n]\n")


def _write_csv(rows: Rows, out: BinaryIO, columns: Sequence[str]) -> None:
    # newline="" leaves line ends to the csv module, which writes CRLF (RFC 4180).
    text = io.TextIOWrapper(out, "utf-8", newline="")
    writer = csv.DictWriter(text, columns, extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {
                name: escape_formula(cell) if isinstance(cell, str) else cell
                for name, cell in row.items()
            }
        )
    text.detach()  # detach() flushes the rest and leaves the stream open


def _write_parquet(rows: Rows, out: BinaryIO, columns: Sequence[str]) -> None:
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema(
        [(name, pyarrow.type_for_alias(_TYPES.get(name, "string"))) for name in columns]
    )
    with pyarrow.parquet.ParquetWriter(out, schema) as writer:
        # Each table becomes a row group, the unit that readers load.
        while some := list(islice(rows, _ROWS_AT_ONCE)):
            writer.write_table(pyarrow.Table.from_pylist(some, schema=schema))


_WRITERS = {
    "jsonl": _write_lines,
    "json": _write_list,
    "csv": _write_csv,
    "parquet": _write_parquet,
}


# The manifest: versions, filter, counts, class balance, provenance, licences and file digests.
#
# Nothing in it depends on the time or place of the export, so the same data give the same manifest.

VERSION = 1

_LICENCE = ("licence", "license")


class ExportTally:
    """Counts the contents of a manifest while rows are written."""

    def __init__(self, form: Format) -> None:
        self._format = form
        self.cases, self.rows = 0, 0
        self.splits: Counter[str] = Counter()
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._balance: dict[str, Counter[str]] = {name: Counter() for name in form.balance}
        self._models: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._versions: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def leave_out(self, reason: str) -> None:
        """Count a case, or a reviewer's judgement on it, that gives no rows."""
        self._counts["left_out"][reason] += 1

    def count_case(self, judged: JudgedAnswer) -> None:
        """Count a case that gives rows."""
        self.cases += 1
        self._counts["states"][judged.outcome.state] += 1
        self._counts["licences"].update(find_licences(judged.case) or ["not noted"])

    def count_judgement(self, judged: JudgedAnswer, rows: list[Row]) -> None:
        """Count a judgement: its reviewer, models, rows and the values of the format's balance.

        For Label Studio, its labels and choices become part of the labelling interface.
        """
        self.rows += len(rows)
        self.splits[judged.split] += len(rows)
        if judged.reviewer is not None:
            self._counts["reviewers"][judged.reviewer] += 1
        if (run := judged.judgement.run) is not None:
            for role, model in run.models.items():
                self._models[role][model] += 1
            for name in ("app", "rubric", "offline_rules"):
                self._versions[name][str(run.versions.get(name))] += 1
            # Only if there is one, so that a data set frozen before judge versions stays the same.
            if judge := run.versions.get("judge"):
                self._versions["judge"][str(judge)] += 1
        for name, counter in self._balance.items():
            counter.update("none" if row[name] is None else str(row[name]) for row in rows)
        if self._format.interface:
            for annotation in (annotation for row in rows for annotation in row["annotations"]):
                for region in annotation["result"]:
                    for name in ("labels", "choices"):
                        self._counts[name].update(region["value"].get(name, ()))

    def manifest(
        self, selection: dict[str, Any], encoding: str, files: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Return the manifest."""
        manifest: dict[str, Any] = {
            "manifest": "masis-export",
            "version": VERSION,
            "format": self._format.name,
            "encoding": encoding,
            "made_by": {"app": version.APP, "rubric": version.RUBRIC},
            **selection,
            "counts": {
                "cases": self.cases,
                "rows": self.rows,
                "rows_by_split": _sort_counts(self.splits),
                "cases_by_state": _sort_counts(self._counts["states"]),
                "left_out": _sort_counts(self._counts["left_out"]),
            },
            "class_balance": {
                name: _sort_counts(counter) for name, counter in self._balance.items()
            },
            "provenance": {
                "reviewers": _sort_counts(self._counts["reviewers"]),
                "models": {
                    role: _sort_counts(counter) for role, counter in sorted(self._models.items())
                },
                "audited_with": {
                    name: _sort_counts(counter) for name, counter in sorted(self._versions.items())
                },
            },
            "licences": _sort_counts(self._counts["licences"]),
            "files": files,
        }
        if self._format.interface:
            manifest["labelling_interface"] = labelling_interface(
                self._counts["labels"], self._counts["choices"]
            )
        return manifest


def find_licences(case: dict[str, Any]) -> list[str]:
    """Return the distinct licences noted on a case.

    They may be in its metadata, beside its fields, or on its evidence.
    """
    metadata = case.get("metadata")
    places = [metadata if isinstance(metadata, dict) else {}, case, *case["evidence"]]
    noted = [
        place[name] for place in places for name in _LICENCE if isinstance(place.get(name), str)
    ]
    return list(dict.fromkeys(licence.strip()[:200] for licence in noted if licence.strip()))


def _sort_counts(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items()))


DECIDED: tuple[CaseState, ...] = ("approved", "overridden", "rejected", "escalated")
"""The states in which a person has decided. They are exported by default."""

CaseWithSide = tuple[CaseOutcome, str]
"""A case with the side of the split that its question belongs to."""


@dataclass(frozen=True)
class Selection:
    """The cases to export and the side of the split; ``split`` None writes all sides.

    The page and order of the filter don't matter.
    """

    cases: CaseFilter = field(default_factory=lambda: CaseFilter(states=DECIDED))
    split: str | None = None
    shares: SplitShares = field(default_factory=SplitShares)

    def __post_init__(self) -> None:
        """Raise InputError if there is no such side of the split."""
        if self.split not in (None, *SPLITS):
            raise InputError(
                f"is {str(self.split)[:40]!r}", hint=f"Use {', '.join(SPLITS)}.", field="split"
            )

    def manifest_entry(self) -> dict[str, Any]:
        """Return the selection for the manifest: the filter, the side and the shares."""
        words = self.cases.model_dump(
            mode="json", exclude={"order", "seed", "page", "size"}, exclude_defaults=True
        )
        return {"filter": words, "split": self.split, "shares": self.shares._asdict()}

    def outcomes(self, store: Store) -> Iterator[CaseWithSide]:
        """Yield every matching case with its side of the split, including unwanted sides."""
        sides = assign_splits(store.outcomes.queries(self.cases), self.shares)
        yield from zip(store.outcomes.iterate(self.cases), sides, strict=True)


DECISIONS = Selection()
"""Every case that a person decided, on all sides."""


class ExportResult(NamedTuple):
    """The number of rows written, and the manifest."""

    rows: int
    manifest: dict[str, Any]


class Watcher(NamedTuple):
    """Callbacks that follow an export.

    Attributes:
        on_case: Called with the number of cases read so far.
        on_rows: Called for each case that gave rows, with its side.
        on_end: Called with the manifest; returns the manifest to write. If it raises, the target
            file or folder stays unchanged.

    """

    on_case: Callable[[int], None] | None = None
    on_rows: Callable[[CaseOutcome, str], None] | None = None
    on_end: Callable[[dict[str, Any]], dict[str, Any]] = lambda manifest: manifest


def write_export(
    store: Store,
    out: BinaryIO,
    form: str,
    selection: Selection = DECISIONS,
    *,
    encoding: str = "jsonl",
    name: str = "-",
    watcher: Watcher = Watcher(),  # noqa: B008 (a tuple)
) -> ExportResult:
    """Write an export to a stream in any format that isn't a folder.

    Args:
        store: The database.
        out: The stream, written row by row.
        form: The name of the format.
        selection: The cases to export.
        encoding: ``jsonl``, or ``csv`` or ``parquet`` for tabular formats.
        name: The file's name in the manifest.
        watcher: Callbacks.

    Raises:
        InputError: There is no such format, or it doesn't support the encoding.

    """
    chosen, how = _check_format(form, encoding)
    if chosen.folder:
        raise InputError("is a folder, not one file", hint="Name a folder with --out.", field=form)
    tally, stream = ExportTally(chosen), DigestStream(out)
    with contextlib.closing(_export_rows(store, chosen, selection, tally, watcher)) as judged_rows:
        flat = how in ("csv", "parquet")
        rows = (chosen.table_row(judged, row) if flat else row for judged, row in judged_rows)
        write = chosen.write or _WRITERS[how]
        write(rows, cast("BinaryIO", stream), chosen.columns_in(how))
    out.flush()
    files = [stream.manifest_entry(name, tally.rows)]
    return ExportResult(
        tally.rows, watcher.on_end(tally.manifest(selection.manifest_entry(), how, files))
    )


def _write_folder(
    store: Store, folder: Path, form: Format, selection: Selection, watcher: Watcher
) -> ExportResult:
    """Write a format that is a folder: the files of its layout, a card and the manifest.

    The folder is replaced as a whole or not at all.

    Raises:
        InputError: The folder has files but isn't an export.

    """
    layout = LAYOUTS[form.layout]()
    with whole_folder(folder, MANIFEST) as new_folder:
        tally = ExportTally(form)
        lines: Counter[str] = Counter()
        with (
            contextlib.ExitStack() as files,
            contextlib.closing(_export_rows(store, form, selection, tally, watcher)) as judged_rows,
        ):
            streams = {}
            for name, heading in layout.headings.items():
                (new_folder / name).parent.mkdir(exist_ok=True)
                streams[name] = DigestStream(files.enter_context((new_folder / name).open("wb")))
                streams[name].write(heading)
            for judged, row in judged_rows:
                for name, line in layout.lines(judged.split, row):
                    streams[name].write(line)
                    lines[name] += 1
        digests = [stream.manifest_entry(name, lines[name]) for name, stream in streams.items()]
        manifest = watcher.on_end(tally.manifest(selection.manifest_entry(), "jsonl", digests))
        (new_folder / MANIFEST).write_bytes(manifest_bytes(manifest))
        if form.card:
            (new_folder / "README.md").write_text(_dataset_card(manifest), encoding="utf-8")
    return ExportResult(tally.rows, manifest)


MANIFEST = "manifest.json"


def write_file(
    store: Store,
    path: Path,
    form: str,
    selection: Selection = DECISIONS,
    *,
    encoding: str = "jsonl",
    watcher: Watcher = Watcher(),  # noqa: B008 (a tuple)
) -> ExportResult:
    """Write an export to a file, with its manifest beside it as ``NAME.manifest.json``.

    The file is replaced as a whole or not at all. Some formats write a folder. A device, a pipe and
    stdout (``-``) get no manifest.

    Raises:
        InputError: See ``write_export``.

    """
    chosen, _ = _check_format(form, encoding)
    if path == STDIO:
        return write_export(
            store, sys.stdout.buffer, form, selection, encoding=encoding, watcher=watcher
        )
    if chosen.folder:
        return _write_folder(store, path, chosen, selection, watcher)
    with whole_file(path) as stream:
        written = write_export(
            store, stream, form, selection, encoding=encoding, name=path.name, watcher=watcher
        )
    if path.is_file():
        with whole_file(path.with_name(f"{path.name}.manifest.json")) as stream:
            stream.write(manifest_bytes(written.manifest))
    return written


def manifest_bytes(manifest: dict[str, Any]) -> bytes:
    """Return a manifest as it is written."""
    return (json.dumps(manifest, ensure_ascii=False, indent=2) + "\n").encode()


def _check_format(form: str, encoding: str) -> tuple[Format, str]:
    chosen = export_formats().get(form)
    if chosen is None:
        raise InputError(
            f"{form!r} isn't a format",
            hint=f"There are: {', '.join(export_formats())}.",
            field="format",
        )
    if encoding not in ENCODINGS:
        raise InputError(
            f"{encoding!r} isn't an encoding",
            hint=f"There are: {', '.join(ENCODINGS)}.",
            field="encoding",
        )
    if encoding != "jsonl" and not chosen.tabular:
        tabular = ", ".join(
            name for name, candidate in export_formats().items() if candidate.tabular
        )
        raise InputError(
            f"{form} has nested rows, so it can't be written as {encoding}",
            hint=f"Write it as jsonl, or choose one of: {tabular}.",
            field="encoding",
        )
    return chosen, "json" if chosen.suffix == ".json" else encoding


def _export_rows(
    store: Store, form: Format, selection: Selection, tally: ExportTally, watcher: Watcher
) -> Generator[tuple[JudgedAnswer, Row], None, None]:
    """Yield the rows of a selection, each with its judgement, and count them."""
    store.modes.catch_up()  # A search for words needs it, and can't write within reading().
    with store.database.reading():  # One read transaction: sides and cases must match.
        for number, (outcome, side) in enumerate(selection.outcomes(store)):
            if watcher.on_case and number % 100 == 0:
                watcher.on_case(number)
            if selection.split in (None, side):
                rows = tally.rows
                yield from _outcome_rows(outcome, side, form, tally)
                if watcher.on_rows and tally.rows > rows:
                    watcher.on_rows(outcome, side)


def _outcome_rows(
    outcome: CaseOutcome, side: str, form: Format, tally: ExportTally
) -> Iterator[tuple[JudgedAnswer, Row]]:
    if outcome.redacted and not form.redacted:
        tally.leave_out("redacted")
        return
    judged: list[JudgedAnswer] = []
    judged += (JudgedAnswer(outcome, judgement, side, judged) for judgement in outcome.judgements)
    persons = [judged_answer for judged_answer in judged if judged_answer.reviewer is not None]
    # By reviewer: each person's judgement, or the machine's if no person decided. By case: the
    # judgement that determines the case's state.
    of_reviewers = form.of == "reviewer"
    counted = False
    for judged_answer in (
        (persons or judged)
        if of_reviewers
        else [judged_answer for judged_answer in judged if judged_answer.judgement.in_force]
    ):
        rows = form.rows(judged_answer)
        if isinstance(rows, str):
            tally.leave_out(rows)
            continue
        if not counted:
            tally.count_case(judged_answer)
            counted = True
        tally.count_judgement(judged_answer, rows)
        yield from ((judged_answer, row) for row in rows)
    if not judged:
        tally.leave_out("not audited")


def _dataset_card(manifest: dict[str, Any]) -> str:
    """Return the card of a folder: Hugging Face's metadata and a description for people."""
    counts, licences = manifest["counts"], manifest["licences"]
    known = next(iter(licences)) if len(licences) == 1 and "not noted" not in licences else "other"
    sides = [side for side in SPLITS if counts["rows_by_split"].get(side)]
    template = (resources.files("masis.datasets.exports") / "card.md").read_text(encoding="utf-8")
    return template.format(
        licence=json.dumps(known),
        files="".join(f"  - split: {side}\n    path: data/{side}.jsonl\n" for side in sides),
        rows=counts["rows"],
        licences=", ".join(
            f"{_escape_markdown(name)} ({count:,})" for name, count in licences.items()
        ),
        guarantee=_guarantee_text(manifest.get("guarantee")),
    )


def _guarantee_text(guarantee: dict[str, Any] | None) -> str:
    """Return the guarantee of a dataset version as a paragraph of its card, or ""."""
    if guarantee is None:
        return ""
    stated = DatasetGuarantee.model_validate(guarantee)
    people = ", ".join(map(_escape_markdown, stated.relabelled_by))
    return (
        f"\n\nAt most {stated.rate:.1%} of the {stated.labels:,} labels are wrong, at"
        f" {stated.level:.1%} confidence: of {stated.n:,} drawn at random and labeled again blind"
        f" by {people}, {stated.wrong:,} were wrong (exact {stated.method} bound"
        f" {stated.bound:.2%})."
    )


def _escape_markdown(text: str) -> str:
    return " ".join(text.replace("<", "&lt;").replace("|", " ").replace("`", "'").split())
