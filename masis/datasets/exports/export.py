"""Writes one export: the cases that match, in one format, with a manifest; a few hundred cases in
memory at a time.
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
from masis.datasets.exports.formats import FORMATS, Format, labelling_interface
from masis.datasets.exports.splits import SPLITS, SplitShares, assign_splits
from masis.datasets.writers.files import STDIO, whole_file, whole_folder
from masis.datasets.writers.lines import escape_formula
from masis.errors import InputError
from masis.schema.review import CaseState
from masis.store import Store
from masis.store.records import CaseFilter
from masis.store.reviews.outcomes import CaseOutcome

# Where rows go: JSON Lines, one JSON list, CSV or Parquet, each written as rows come, with a digest
# of its bytes.

ENCODINGS = ("jsonl", "csv", "parquet")
"""How flat rows can be written; the other formats have one encoding of their own."""

_TYPES = {
    "support": "float64",
    "confidence": "float64",
    "start": "int64",
    "end": "int64",
    "iteration": "int64",
} | {"in_force": "bool"}
"""The types of columns in Parquet; the others are texts."""

_ROWS_AT_ONCE = 5_000
"""Rows of a group in Parquet."""


class DigestStream(io.RawIOBase):
    """Passes bytes on to a stream and digests them."""

    def __init__(self, out: BinaryIO) -> None:
        super().__init__()
        self._out, self._digest, self._size = out, hashlib.sha256(), 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, content: Any) -> int:
        """Write and digest bytes; returns how many."""
        raw = bytes(content)
        self._out.write(raw)
        self._digest.update(raw)
        self._size += len(raw)
        return len(raw)

    def manifest_entry(self, name: str, rows: int) -> dict[str, Any]:
        """Return what a manifest says of the file of this name: its rows, its size, the digest of
        all its bytes.
        """
        return {"name": name, "rows": rows, "bytes": self._size, "sha256": self._digest.hexdigest()}


Rows = Iterator[dict[str, Any]]


def _write_lines(rows: Rows, out: DigestStream, columns: Sequence[str]) -> None:
    for row in rows:
        out.write(to_json(row) + b"\n")


def _write_list(rows: Rows, out: DigestStream, columns: Sequence[str]) -> None:
    before = b"[\n"
    for row in rows:
        out.write(before + to_json(row))
        before = b",\n"
    out.write(b"[]\n" if before == b"[\n" else b"\n]\n")


def _write_csv(rows: Rows, out: DigestStream, columns: Sequence[str]) -> None:
    text = io.TextIOWrapper(cast("BinaryIO", out), "utf-8", newline="")
    writer = csv.DictWriter(text, columns, extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {
                name: escape_formula(cell) if isinstance(cell, str) else cell
                for name, cell in row.items()
            }
        )
    text.detach()  # which writes what is left; the stream stays open


def _write_parquet(rows: Rows, out: DigestStream, columns: Sequence[str]) -> None:
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema(
        [(name, pyarrow.type_for_alias(_TYPES.get(name, "string"))) for name in columns]
    )
    with pyarrow.parquet.ParquetWriter(out, schema) as writer:
        while some := list(islice(rows, _ROWS_AT_ONCE)):
            writer.write_table(pyarrow.Table.from_pylist(some, schema=schema))


_WRITERS = {
    "jsonl": _write_lines,
    "json": _write_list,
    "csv": _write_csv,
    "parquet": _write_parquet,
}


# What an export says of itself: versions, filter, counts, class balance, provenance, licences,
# digests of its files.
#
# Nothing in a manifest depends on when or where it was written, so that the same data give the same
# manifest.

VERSION = 1

_LICENCE = ("licence", "license")


class ExportTally:
    """Counts what goes into a manifest while rows are written."""

    def __init__(self, form: Format) -> None:
        self._format = form
        self.cases, self.rows = 0, 0
        self.splits: Counter[str] = Counter()
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._balance: dict[str, Counter[str]] = {name: Counter() for name in form.balance}
        self._models: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._versions: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def leave_out(self, reason: str) -> None:
        """Count a case (or a reviewer's judgement on it) that gives no rows."""
        self._counts["left_out"][reason] += 1

    def count_case(self, judged: JudgedAnswer) -> None:
        """Count a case that gives rows."""
        self.cases += 1
        self._counts["states"][judged.outcome.state] += 1
        self._counts["licences"].update(find_licences(judged.case) or ["not noted"])

    def count_judgement(self, judged: JudgedAnswer, rows: list[Row]) -> None:
        """Count who judged, with what, and the rows that this gives, with the values that the
        format's balance counts.

        The labels and choices of tasks for Label Studio are what its labelling interface has to
        offer.
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
        for name, counter in self._balance.items():
            counter.update("none" if row[name] is None else str(row[name]) for row in rows)
        for region in (
            each for row in rows for made in row.get("annotations", ()) for each in made["result"]
        ):
            for name in ("labels", "choices"):
                self._counts[name].update(region["value"].get(name, ()))

    def manifest(
        self, selection: dict[str, Any], encoding: str, files: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Return the manifest."""
        made: dict[str, Any] = {
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
        if self._format.name == "label-studio":
            made["labelling_interface"] = labelling_interface(
                self._counts["labels"], self._counts["choices"]
            )
        return made


def find_licences(case: dict[str, Any]) -> list[str]:
    """The licences noted on a case: in its metadata, beside its fields, or on its evidence; each
    once.
    """
    metadata = case.get("metadata")
    places = [metadata if isinstance(metadata, dict) else {}, case, *case["evidence"]]
    found = [
        place[name] for place in places for name in _LICENCE if isinstance(place.get(name), str)
    ]
    return list(dict.fromkeys(each.strip()[:200] for each in found if each.strip()))


def _sort_counts(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items()))


DECIDED: tuple[CaseState, ...] = ("approved", "overridden", "rejected", "escalated")
"""The states in which a person has decided: what is exported unless states are named."""

CaseWithSide = tuple[CaseOutcome, str]
"""A case with the side of the split on which its question stands."""


@dataclass(frozen=True)
class Selection:
    """Which cases, and which side of the split; ``split`` None writes all sides. Page and order
    don't matter.
    """

    cases: CaseFilter = field(default_factory=lambda: CaseFilter(states=DECIDED))
    split: str | None = None
    shares: SplitShares = field(default_factory=SplitShares)

    def manifest_entry(self) -> dict[str, Any]:
        """Return the selection as the manifest has it: what narrows it, and the shares."""
        words = self.cases.model_dump(
            mode="json", exclude={"order", "seed", "page", "size"}, exclude_defaults=True
        )
        return {"filter": words, "split": self.split, "shares": self.shares._asdict()}

    def outcomes(self, store: Store) -> Iterator[CaseWithSide]:
        """Yield every case that matches with its side of the split; those of another side than
        wanted too.
        """
        sides = assign_splits(store.outcomes.queries(self.cases), self.shares)
        yield from zip(store.outcomes.iterate(self.cases), sides, strict=True)


DECISIONS = Selection()
"""Every case that a person decided, on all sides."""


class ExportResult(NamedTuple):
    """What was written: how many rows, and the manifest."""

    rows: int
    manifest: dict[str, Any]


class Watcher(NamedTuple):
    """Follows an export: how many cases were read, each case that gave rows with its side, the
    manifest at the end.

    ``on_end`` returns the manifest as it is to be written; raising leaves a file or folder as it
    was.
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
    """Write one export to a stream, as it is read, in any of ``FORMATS`` but ``hf``, which is a
    folder.

    ``encoding`` is ``jsonl``, or ``csv`` or ``parquet`` for formats that are tables; ``name`` is
    how the manifest names the file. Raises InputError where there is no such format, or it can't be
    written so.
    """
    chosen, how = _check_format(form, encoding)
    if chosen.name == "hf":
        raise InputError("is a folder, not one file", hint="Name a folder with --out.", field="hf")
    tally, stream = ExportTally(chosen), DigestStream(out)
    with contextlib.closing(_export_rows(store, chosen, selection, tally, watcher)) as found:
        flat = how in ("csv", "parquet")
        rows = (chosen.table_row(judged, row) if flat else row for judged, row in found)
        _WRITERS[how](rows, stream, chosen.columns_in(how))
    out.flush()
    files = [stream.manifest_entry(name, tally.rows)]
    return ExportResult(
        tally.rows, watcher.on_end(tally.manifest(selection.manifest_entry(), how, files))
    )


def _write_folder(
    store: Store, folder: Path, selection: Selection, watcher: Watcher
) -> ExportResult:
    """Write the format ``hf``: ``data/SPLIT.jsonl``, a card and the manifest, the folder whole or
    not at all.

    Raises InputError where the folder holds something that is no export of ours.
    """
    with whole_folder(folder, MANIFEST) as made:
        (made / "data").mkdir()
        tally = ExportTally(FORMATS["hf"])
        with (
            contextlib.ExitStack() as files,
            contextlib.closing(
                _export_rows(store, FORMATS["hf"], selection, tally, watcher)
            ) as found,
        ):
            opened = {
                side: files.enter_context((made / "data" / f"{side}.jsonl").open("wb"))
                for side in SPLITS
            }
            streams = {side: DigestStream(stream) for side, stream in opened.items()}
            for judged, row in found:
                streams[judged.split].write(to_json(row) + b"\n")
        digests = [
            each.manifest_entry(f"data/{side}.jsonl", tally.splits[side])
            for side, each in streams.items()
        ]
        manifest = watcher.on_end(tally.manifest(selection.manifest_entry(), "jsonl", digests))
        (made / MANIFEST).write_bytes(manifest_bytes(manifest))
        (made / "README.md").write_text(_dataset_card(manifest), encoding="utf-8")
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
    """Write an export to a file, whole or not at all, and its manifest beside it as
    ``NAME.manifest.json``.

    A device, a pipe and stdout (``-``) get no manifest. ``hf`` writes a folder. Raises InputError
    as ``write_export`` does.
    """
    _check_format(form, encoding)
    if path == STDIO:
        return write_export(
            store, sys.stdout.buffer, form, selection, encoding=encoding, watcher=watcher
        )
    if form == "hf":
        return _write_folder(store, path, selection, watcher)
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
    chosen = FORMATS.get(form)
    if chosen is None:
        raise InputError(
            f"{form!r} is no format", hint=f"There are: {', '.join(FORMATS)}.", field="format"
        )
    if encoding not in ENCODINGS:
        raise InputError(
            f"{encoding!r} is no encoding", hint=f"There are: {', '.join(ENCODINGS)}.", field="as"
        )
    if encoding != "jsonl" and not chosen.tabular:
        flat = ", ".join(name for name, each in FORMATS.items() if each.tabular)
        raise InputError(
            f"{form} has rows that are not flat, and can't be written as {encoding}",
            hint=f"Write it as jsonl, or choose one of: {flat}.",
            field="as",
        )
    return chosen, "json" if chosen.suffix == ".json" else encoding


def _export_rows(
    store: Store, form: Format, selection: Selection, tally: ExportTally, watcher: Watcher
) -> Generator[tuple[JudgedAnswer, Row], None, None]:
    """Yield the rows of a selection with the judgement that each follows from, and count them."""
    with store.database.reading():  # the sides of the questions and the cases are of one moment
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
    if outcome.redacted and form.name != "decided":
        tally.leave_out("redacted")
        return
    judged: list[JudgedAnswer] = []
    judged += (JudgedAnswer(outcome, judgement, side, judged) for judgement in outcome.judgements)
    persons = [each for each in judged if each.reviewer is not None]
    # Each person's judgement, or the machine's alone where nobody decided; else the one that the
    # state follows from.
    of_reviewers = form.of == "reviewer"
    counted = False
    for each in (
        (persons or judged)
        if of_reviewers
        else [each for each in judged if each.judgement.in_force]
    ):
        rows = form.rows(each)
        if isinstance(rows, str):
            tally.leave_out(rows)
            continue
        if not counted:
            tally.count_case(each)
            counted = True
        tally.count_judgement(each, rows)
        yield from ((each, row) for row in rows)
    if not judged:
        tally.leave_out("not audited")


def _dataset_card(manifest: dict[str, Any]) -> str:
    """Return the card of a folder: what Hugging Face reads, then what a person reads."""
    counts, licences = manifest["counts"], manifest["licences"]
    known = next(iter(licences)) if len(licences) == 1 and "not noted" not in licences else "other"
    sides = [side for side in SPLITS if counts["rows_by_split"].get(side)]
    template = (resources.files("masis.datasets.exports") / "card.md").read_text(encoding="utf-8")
    return template.format(
        licence=json.dumps(known),
        files="".join(f"  - split: {side}\n    path: data/{side}.jsonl\n" for side in sides),
        rows=counts["rows"],
        licences=", ".join(f"{_plain_cell(name)} ({count:,})" for name, count in licences.items()),
    )


def _plain_cell(text: str) -> str:
    return " ".join(text.replace("<", "&lt;").replace("|", " ").replace("`", "'").split())
