"""Dataset versions: a data set frozen under a name, made again byte for byte, and compared with
another one.

The store keeps which cases, entries and audits it was made of
(``masis.store.reviews.dataset_versions``) and the manifest with the digest of its bytes. Making it
again writes the format from these and compares the digest: so it is either the same bytes, or an
error that says why it can't be.
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
from masis.datasets.exports.formats import FORMATS
from masis.errors import InputError, StoreError
from masis.store import Store
from masis.store.records import DatasetVersion
from masis.store.reviews.dataset_versions import Member, VersionDifference
from masis.store.reviews.outcomes import CaseOutcome

_NAME = re.compile(r"\w[\w.-]{0,99}")
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
    """Keep what an export of this selection holds now under a name.

    Raises StoreError where the name is taken, InputError where it or the description can't be kept,
    there is no such format, or nothing matches.
    """
    if not _NAME.fullmatch(name):
        hint = "Use letters, digits, '.', '-' and '_', at most 100."
        raise InputError("is no name for a dataset version", hint=hint, field="name")
    if len(description) > LONGEST_DESCRIPTION or "\x00" in description:
        hint = f"Write at most {LONGEST_DESCRIPTION:,} characters."
        raise InputError("can't be kept", hint=hint, field="description")
    with tempfile.TemporaryFile() as members, tempfile.TemporaryDirectory() as folder:

        def keep(outcome: CaseOutcome, side: str) -> None:
            """Keep a member in a file until the export is complete: a million would not fit into
            memory.
            """
            members.write(json.dumps(Member.of(outcome, side)).encode() + b"\n")

        watcher, file = Watcher(on_case, keep), file_name(name, form, encoding)
        with store.database.reading():  # the end of the log and the cases are of one moment
            head = store.decisions.head()
            if form == "hf":
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
                "holds nothing: no case that matches gives a row", hint="Choose other filters."
            )
        at = store.database.now()
        about = {"name": name, "description": description, "frozen_at": at, "frozen_by": by}
        made = DatasetVersion(
            name=name,
            at=at,
            by=by,
            description=description,
            form=form,
            encoding=manifest["encoding"] if FORMATS[form].tabular else "jsonl",
            selection={key: manifest[key] for key in ("filter", "split", "shares")},
            manifest={**manifest, "dataset": {**about, "decision_log": head._asdict()}},
            log_length=head.length,
            log_digest=head.digest,
            app=version.APP,
        )
        members.seek(0)
        store.datasets.add(made, (Member(*json.loads(line)) for line in members))
    return made


def file_name(name: str, form: str, encoding: str) -> str:
    """Return the name that the file of a version has unless another is chosen; of ``hf`` it is a
    folder's.
    """
    suffix = FORMATS[form].suffix if form in FORMATS else ""
    return f"{name}{suffix if encoding == 'jsonl' else f'.{encoding}'}"


@dataclass(frozen=True, kw_only=True)
class _FrozenSelection(Selection):
    """A version as a selection; it holds the cases of the wanted side alone."""

    version: DatasetVersion

    def manifest_entry(self) -> dict[str, Any]:
        return self.version.selection

    def outcomes(self, store: Store) -> Iterator[CaseWithSide]:
        return store.datasets.outcomes(self.version.name)


def rebuild_version(
    store: Store, name: str, path: Path, *, on_case: Callable[[int], None] | None = None
) -> ExportResult:
    """Write a version to a file (a folder for ``hf``) with its manifest: the bytes that were
    frozen, or nothing.

    What is written to stdout or a pipe is gone before the digest is known: an error then comes
    after it. Raises UnknownRecord, and StoreError where cases were redacted since, audits removed,
    or the bytes are others: the file is as it was.
    """
    frozen = store.datasets.get(name)
    lost = store.datasets.count_lost(name)
    if any(lost):
        raise StoreError(
            f"dataset version {name!r} is {lost}. Freeze its selection again for what is left."
        )

    def checked(manifest: dict[str, Any]) -> dict[str, Any]:
        """Return the manifest as it was frozen, with the names that the files have now, if the
        bytes are the same.
        """
        if _file_digests(manifest) != _file_digests(frozen.manifest):
            made_by = f"It was frozen with MASIS {frozen.app}, this is {version.APP}"
            raise StoreError(
                f"dataset version {name!r} can't be rebuilt byte for byte: the format {frozen.form}"
                f" gives other bytes now. {made_by}; where these differ, rebuild it with that"
                " version. Where they don't, the database was changed by something else: `masis"
                " health` and `masis verify-log` look for that."
            )
        return {**frozen.manifest, "files": manifest["files"]}

    watcher = Watcher(on_case, on_end=checked)
    return write_file(
        store,
        path,
        frozen.form,
        _FrozenSelection(version=frozen),
        encoding=frozen.encoding,
        watcher=watcher,
    )


def _file_digests(manifest: dict[str, Any]) -> list[tuple[int, str]]:
    return [(each["bytes"], each["sha256"]) for each in manifest["files"]]


Kind = Literal["added", "removed", "relabelled", "moved", "audited_anew"]
KINDS: tuple[Kind, ...] = ("added", "removed", "relabelled", "moved", "audited_anew")


class VersionChange(NamedTuple):
    """A case that two versions differ in, and how; ``was`` and ``now`` say state and side, None
    where it is absent.

    ``relabelled``: its state, or what a reviewer decided or marked, is another one. ``moved``: it
    stands on another side of the split. ``audited_anew``: the decision is about another audit or
    answer.
    """

    case_id: str
    kinds: tuple[Kind, ...]
    was: tuple[str, str] | None
    now: tuple[str, str] | None


def compare_versions(store: Store, first: str, second: str) -> Iterator[VersionChange]:
    """Yield the cases in which the second version differs from the first, in the order of import.

    Cases that give no row in a version are not part of it. Raises UnknownRecord.
    """
    for found in store.datasets.differences(first, second):
        was, now = (
            (each.state, each.side) if each else None for each in (found.first, found.second)
        )
        # the same decision, made again, is another entry and no change
        if kinds := tuple(_change_kinds(found)):
            yield VersionChange(found.case_id, kinds, was, now)


def _change_kinds(found: VersionDifference) -> Iterator[Kind]:
    one, two = found.first, found.second
    if one is None or two is None:
        yield "added" if one is None else "removed"
        return
    if found.relabelled or one.state != two.state:
        yield "relabelled"
    if one.side != two.side:
        yield "moved"
    audits = [sorted((pin.run or 0, pin.number or 0) for pin in each.pins) for each in (one, two)]
    if audits[0] != audits[1]:
        yield "audited_anew"
