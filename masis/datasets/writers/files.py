"""Writes a file as a whole or not at all, and also to devices, pipes and symbolic links."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from masis.errors import InputError

STDIO = Path("-")
"""Means stdin or stdout."""

_STREAMS = (Path("/dev/fd"), Path("/dev/stdout"), Path("/dev/stderr"), Path("/proc"))
"""Paths of files that a process has open."""


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` when it is complete.

    On failure nothing changes. A device or pipe is written to directly. A symbolic link is kept,
    and the file it points to is replaced. ``-`` is stdout.
    """
    if path == STDIO:
        yield sys.stdout.buffer
        return
    if not _can_replace(path):
        # Renaming a file over /dev/null, as root, would remove the device for all programs.
        with path.open("wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(path))
    # In the same folder, because a rename is only atomic within a file system.
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    unfinished = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp() makes files that only their owner can read.
        unfinished.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o644)
        unfinished.replace(target)
    # Also for KeyboardInterrupt, or an unfinished file would stay.
    except BaseException as error:
        unfinished.unlink(missing_ok=True)
        # A full disk, for example, raises an error without a file name.
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextmanager
def whole_folder(folder: Path, mark: str) -> Iterator[Path]:
    """Create a temporary folder that replaces ``folder`` when it is complete.

    On failure nothing changes. ``mark`` is a file that every folder of this kind contains.

    Raises:
        InputError: ``folder`` is a file, or has files but not ``mark``, so it has another purpose.

    """
    if (
        folder.exists()
        and not (folder / mark).is_file()
        and (not folder.is_dir() or any(folder.iterdir()))
    ):
        raise InputError("holds other files", hint="Name a new folder.", file=str(folder))
    new_folder = Path(
        tempfile.mkdtemp(dir=folder.absolute().parent, prefix=f".{folder.name[:100]}.")
    )
    try:
        yield new_folder
        new_folder.chmod(0o755)
        # A folder with files can't be replaced by a rename (rename(2)), so there is a moment
        # without one.
        if folder.exists():
            shutil.rmtree(folder)
        new_folder.replace(folder)
    except BaseException:
        shutil.rmtree(new_folder, ignore_errors=True)
        raise


def _can_replace(path: Path) -> bool:
    """Return whether a path is a regular file or new, and isn't open in a process.

    ``/dev/stdout`` may lead to a regular file. The shell has it open, so output to a replacement
    would be lost.
    """
    absolute = path.absolute()
    opened = any(stream in (absolute, *absolute.parents) for stream in _STREAMS)
    return not opened and (path.is_file() or not path.exists())
