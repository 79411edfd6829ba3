"""Writing a file whole or not at all, and writing through what is no file: a device, a pipe, a
symbolic link.
"""

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
"""Stands for stdin or stdout."""

_STREAMS = (Path("/dev/fd"), Path("/dev/stdout"), Path("/dev/stderr"), Path("/proc"))
"""Names of what a process has open."""


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Give a stream whose content becomes ``path`` once it is complete; until then, and on failure,
    nothing changes.

    A device or a pipe is written to as the content comes. A symbolic link stays: the file it names
    is replaced. ``-`` is stdout.
    """
    if path == STDIO:
        yield sys.stdout.buffer
        return
    if not _can_replace(path):
        # Renaming a file over /dev/null, as root, would take the device away from every program of
        # the machine.
        with path.open("wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(path))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    unfinished = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        unfinished.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o644)
        unfinished.replace(target)
    except BaseException as error:
        unfinished.unlink(missing_ok=True)
        # as of a full disk
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextmanager
def whole_folder(folder: Path, mark: str) -> Iterator[Path]:
    """Give a new folder that takes the place of ``folder`` once it is complete; until then nothing
    changes.

    ``mark`` names a file that stands in every folder of this kind. Raises InputError where
    ``folder`` is a file, or holds files but no such one: it is somebody else's.
    """
    if (
        folder.exists()
        and not (folder / mark).is_file()
        and (not folder.is_dir() or any(folder.iterdir()))
    ):
        raise InputError("holds other files", hint="Name a new folder.", file=str(folder))
    made = Path(tempfile.mkdtemp(dir=folder.absolute().parent, prefix=f".{folder.name[:100]}."))
    try:
        yield made
        made.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        made.replace(folder)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def _can_replace(path: Path) -> bool:
    """Return whether a path names a regular file, or none yet, and nothing that a process has open.

    ``/dev/stdout`` may lead to a regular file: the shell has it open, so that another one in its
    place would be lost.
    """
    absolute = path.absolute()
    opened = any(each in (absolute, *absolute.parents) for each in _STREAMS)
    return not opened and (path.is_file() or not path.exists())
