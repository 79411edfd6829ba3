"""The output folder, with shards by outcome and markers of completed shards. Files are written
atomically.

A shard becomes at most one file in the folder of each outcome, always with the same name, so that
writing it again replaces the old file. ``_masis/audit.json`` records what the folder was made from.
``_masis/done/PART/`` has an empty file for each completed shard.
"""

from __future__ import annotations

import io
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from filelock import FileLock, Timeout

from masis.datasets.lake import OUTCOMES, filesystem_of, write_lake_file
from masis.errors import InputError
from masis.integrations.ray.inputs import Chunk

STATE = "_masis"
ABOUT, DONE = f"{STATE}/audit.json", f"{STATE}/done"


class Lake:
    """The output folder. ``place`` is a path or an fsspec address."""

    def __init__(self, place: str) -> None:
        from pyarrow import fs

        self.place = place
        base, self._root = filesystem_of(place)
        self._local = isinstance(base, fs.LocalFileSystem)
        self._files = fs.SubTreeFileSystem(self._root, base)

    def prepare(self, made_of: Mapping[str, Any]) -> None:
        """Create the folder, or check that it was made from the same input and settings.

        Unfinished files of killed workers are removed. Raises InputError if the folder contains
        other files, or audits with other settings or of another input.
        """
        if self._exists(ABOUT):
            with self._files.open_input_stream(ABOUT) as stream:
                self._check(json.loads(stream.read()), made_of)
        elif self._list_files(""):
            raise InputError("holds other files", hint="Name a new folder.", file=self.place)
        for folder in (*(f"outcome={outcome}" for outcome in OUTCOMES), STATE, DONE):
            self._files.create_dir(folder, recursive=True)
        self._write_whole(
            ABOUT, json.dumps(made_of, ensure_ascii=False, indent=1, sort_keys=True).encode()
        )
        for outcome in OUTCOMES:
            for file in self._list_files(f"outcome={outcome}"):
                if file.base_name.startswith("."):
                    self._files.delete_file(file.path)

    def _check(self, before: Mapping[str, Any], made_of: Mapping[str, Any]) -> None:
        reasons = {
            "settings": "with other settings",
            "profile": "as another format",
            "chunk": "in chunks",
        }
        for key, reason in reasons.items():
            if before.get(key) != made_of.get(key):
                raise InputError(
                    f"holds audits made {reason}", hint="Name a new folder.", file=self.place
                )
        earlier: dict[str, int] = before.get("parts", {})
        now: dict[str, int] = made_of["parts"]
        if changed := sorted(name for name, size in earlier.items() if now.get(name) != size):
            raise InputError(
                f"holds audits of another input ({len(changed)} of {len(earlier)} parts differ)",
                hint="Name a new folder, or restore the input.",
                file=self.place,
            )

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Prevent other jobs on this machine from writing to the folder.

        Raises InputError if one is writing already.
        """
        if not self._local:
            yield
            return
        try:
            # The operating system releases the lock when the process ends, even if it's killed.
            lock = FileLock(f"{self._root}/{STATE}/lock").acquire(blocking=False)
        except Timeout as error:
            raise InputError(
                "is being written by another audit",
                hint="Wait until it ends, or name a new folder.",
                file=self.place,
            ) from error
        with lock:
            yield

    def completed_chunks(self) -> dict[str, tuple[dict[int, int], bool]]:
        """Return the completed chunks of each input file.

        They are the bytes of input by chunk number, and whether these are all chunks of the file.
        """
        completed: defaultdict[str, dict[int, int]] = defaultdict(dict)
        last: dict[str, int] = {}
        for file in self._list_files(DONE, recursive=True):
            # Markers are named NUMBER-SIZE, with "-last" for the last chunk of a file.
            part, _, marker = file.path.removeprefix(f"{DONE}/").partition("/")
            number, *size = marker.split("-")
            if number.isdecimal():
                completed[part][int(number)] = int(size[0])
                last |= {part: int(number)} if size[1:] else {}
        return {
            part: (chunks, last.get(part) == len(chunks) - 1) for part, chunks in completed.items()
        }

    def written_rows(self, shard: str) -> dict[int, dict[str, Any]]:
        """Return the written rows of a shard with their outcomes, by number in the input."""
        from pyarrow import parquet

        rows: dict[int, dict[str, Any]] = {}
        for outcome in OUTCOMES:
            path = f"outcome={outcome}/{shard}.parquet"
            if self._exists(path):
                with self._files.open_input_file(path) as stream:
                    for row in parquet.ParquetFile(stream).read().to_pylist():
                        rows[row["source_row"]] = row | {"outcome": outcome}
        return rows

    def write(self, shard: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write all rows of a shard in the order of the input, with a file for each outcome."""
        by_outcome: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: int(row["source_row"])):
            by_outcome[row["outcome"]].append(row)
        for outcome, ordered in by_outcome.items():
            stream = io.BytesIO()
            write_lake_file(ordered, stream)
            self._write_whole(f"outcome={outcome}/{shard}.parquet", stream.getvalue())

    def complete(self, chunk: Chunk) -> None:
        """Mark a shard as complete."""
        end = "-last" if chunk.last else ""
        self._files.create_dir(f"{DONE}/{chunk.part}", recursive=True)
        self._write_whole(f"{DONE}/{chunk.part}/{chunk.number:06d}-{chunk.size}{end}", b"")

    def _write_whole(self, path: str, content: bytes) -> None:
        """Write a file atomically. Object storage does so itself, and a local file is renamed."""
        folder, _, name = path.rpartition("/")
        # Readers of partitioned data skip names that begin with a dot.
        unfinished = f"{folder}/.{name}.{uuid4().hex}" if self._local else path
        with self._files.open_output_stream(unfinished) as stream:
            stream.write(content)
        if self._local:
            self._files.move(unfinished, path)

    def _exists(self, path: str) -> bool:
        from pyarrow import fs

        return bool(self._files.get_file_info(path).type == fs.FileType.File)

    def _list_files(self, folder: str, *, recursive: bool = False) -> list[Any]:
        from pyarrow import fs

        return list(
            self._files.get_file_info(
                fs.FileSelector(folder, recursive=recursive, allow_not_found=True)
            )
        )
