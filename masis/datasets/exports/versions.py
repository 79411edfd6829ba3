"""Dataset versions: data sets that are frozen under a name, rebuilt byte for byte, and compared.

The store keeps the cases, entries and audits of a version
(``masis.store.reviews.dataset_versions``) and its manifest with the digest of its bytes. A rebuild
writes the format again and compares the digest. The result is the same bytes, or an error that
explains why it isn't possible.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from masis import version
from masis.datasets.exports.export import (
    CaseWithSide,
    ExportResult,
    Selection,
    Watcher,
    write_export,
    write_file,
)
from masis.datasets.exports.formats import export_formats
from masis.errors import InputError, StoreError
from masis.schema.trust import DatasetGuarantee
from masis.store import Store
from masis.store.records import DatasetVersion
from masis.store.reviews.dataset_versions import Member, VersionDifference
from masis.store.reviews.outcomes import CaseOutcome

_NAME = re.compile(r"\w[\w.-]{0,99}")
"""A version's name, which is also a file name."""
LONGEST_DESCRIPTION = 2_000


def freeze_version(
    store: Store,
    name: str,
    form: str,
    selection: Selection,
    *,
    by: str,
    description: str = "",
    encoding: str = "jsonl",
    on_case: Callable[[int], None] | None = None,
) -> DatasetVersion:
    """Freeze the current result of an export under a name.

    Raises:
        StoreError: The name is already used.
        InputError: The name or description is invalid, there is no such format, or no case matches.

    """
    if not _NAME.fullmatch(name):
        hint = "Use letters, digits, '.', '-' and '_', at most 100."
        raise InputError("isn't a valid name for a dataset version", hint=hint, field="name")
    if len(description) > LONGEST_DESCRIPTION or "\x00" in description:
        hint = f"Write at most {LONGEST_DESCRIPTION:,} characters."
        raise InputError("can't be kept", hint=hint, field="description")
    with tempfile.TemporaryFile() as members, tempfile.TemporaryDirectory() as folder:

        def keep(outcome: CaseOutcome, side: str) -> None:
            """Write a member to a temporary file; a million members wouldn't fit into memory."""
            members.write(json.dumps(Member.of(outcome, side)).encode() + b"\n")

        watcher, file = Watcher(on_case, keep), file_name(name, form, encoding)
        store.modes.catch_up()  # A search for words needs it, and can't write within reading().
        # One read transaction: the log's end and the cases must match.
        with store.database.reading():
            head = store.decisions.head()
            if form in export_formats() and export_formats()[form].folder:
                manifest = write_file(
                    store, Path(folder) / file, form, selection, watcher=watcher
                ).manifest
            else:
                with Path(os.devnull).open("wb") as nowhere:
                    manifest = write_export(
                        store,
                        nowhere,
                        form,
                        selection,
                        encoding=encoding,
                        name=file,
                        watcher=watcher,
                    ).manifest
        if not manifest["counts"]["rows"]:
            raise InputError(
                "would be empty: no matching case gives a row", hint="Choose other filters."
            )
        at = store.database.now()
        about = {"name": name, "description": description, "frozen_at": at, "frozen_by": by}
        dataset_version = DatasetVersion(
            name=name,
            at=at,
            by=by,
            description=description,
            form=form,
            encoding=manifest["encoding"] if export_formats()[form].tabular else "jsonl",
            selection={key: manifest[key] for key in ("filter", "split", "shares")},
            manifest={**manifest, "dataset": {**about, "decision_log": head._asdict()}},
            log_length=head.length,
            log_digest=head.digest,
            app=version.APP,
        )
        members.seek(0)
        store.datasets.add(dataset_version, (Member(*json.loads(line)) for line in members))
    return dataset_version


def file_name(name: str, form: str, encoding: str) -> str:
    """Return the default name of a version's file or folder."""
    suffix = export_formats()[form].suffix if form in export_formats() else ""
    return f"{name}{suffix if encoding == 'jsonl' else f'.{encoding}'}"


@dataclass(frozen=True, kw_only=True)
class _FrozenSelection(Selection):
    """A version as a selection; it contains only cases of the wanted side."""

    version: DatasetVersion

    def manifest_entry(self) -> dict[str, Any]:
        return self.version.selection

    def outcomes(self, store: Store) -> Iterator[CaseWithSide]:
        return store.datasets.outcomes(self.version.name)


def rebuild_version(
    store: Store,
    name: str,
    path: Path,
    *,
    on_case: Callable[[int], None] | None = None,
    guarantee: DatasetGuarantee | None = None,
) -> ExportResult:
    """Write a version to a file or folder with exactly the frozen bytes.

    The manifest is written too, with the version's guarantee. On an error the file stays unchanged.
    Output to stdout or a pipe can't be undone: the error then follows the output.

    Raises:
        UnknownRecord: There is no such version.
        StoreError: Cases were redacted, audits were removed, or the bytes differ.

    """
    frozen = store.datasets.get(name)
    lost = store.datasets.count_lost(name)
    if any(lost):
        raise StoreError(
            f"dataset version {name!r} is {lost}. Freeze its selection again to keep the rest."
        )

    def checked(manifest: dict[str, Any]) -> dict[str, Any]:
        """Return the frozen manifest with the current file names, if the bytes are the same."""
        if _file_digests(manifest) != _file_digests(frozen.manifest):
            raise StoreError(
                f"dataset version {name!r} can't be rebuilt byte for byte: the format {frozen.form}"
                f" gives other bytes now. It was frozen with MASIS {frozen.app}, this is"
                f" {version.APP}. If the two differ, rebuild it with that version. Otherwise"
                " something else changed the database: run `masis health` and `masis verify-log`."
            )
        return with_guarantee({**frozen.manifest, "files": manifest["files"]}, guarantee)

    watcher = Watcher(on_case, on_end=checked)
    return write_file(
        store,
        path,
        frozen.form,
        _FrozenSelection(version=frozen),
        encoding=frozen.encoding,
        watcher=watcher,
    )


def with_guarantee(manifest: dict[str, Any], guarantee: DatasetGuarantee | None) -> dict[str, Any]:
    """Return a version's manifest with its guarantee, if it has one."""
    if guarantee is None:
        return manifest
    return {**manifest, "guarantee": guarantee.model_dump(mode="json")}


def _file_digests(manifest: dict[str, Any]) -> list[tuple[int, str]]:
    return [(entry["bytes"], entry["sha256"]) for entry in manifest["files"]]


Kind = Literal["added", "removed", "relabelled", "moved", "reaudited"]
KINDS: tuple[Kind, ...] = ("added", "removed", "relabelled", "moved", "reaudited")


class VersionChange(NamedTuple):
    """A case in which two versions differ.

    ``was`` and ``now`` are its state and side; None if the case isn't in that version.
    ``relabelled`` means that its state or a reviewer's decision or labels changed, ``moved`` that
    it is on another side of the split, and ``reaudited`` that the decision is about another
    audit or answer.
    """

    case_id: str
    kinds: tuple[Kind, ...]
    was: tuple[str, str] | None
    now: tuple[str, str] | None


def compare_versions(store: Store, first: str, second: str) -> Iterator[VersionChange]:
    """Yield the cases in which the second version differs from the first, in the order of import.

    Cases that give no row in a version aren't part of it.

    Raises:
        UnknownRecord: There is no such version.

    """
    for difference in store.datasets.differences(first, second):
        was, now = (
            (member.state, member.side) if member else None
            for member in (difference.first, difference.second)
        )
        # A repeated identical decision is another entry but not a change.
        if kinds := tuple(_change_kinds(difference)):
            yield VersionChange(difference.case_id, kinds, was, now)


def _change_kinds(difference: VersionDifference) -> Iterator[Kind]:
    first, second = difference.first, difference.second
    if first is None or second is None:
        yield "added" if first is None else "removed"
        return
    if difference.relabelled or first.state != second.state:
        yield "relabelled"
    if first.side != second.side:
        yield "moved"
    audits = [
        sorted((pin.run or 0, pin.number or 0) for pin in member.pins) for member in (first, second)
    ]
    if audits[0] != audits[1]:
        yield "reaudited"
