"""Identifies the process that owns a run, and checks whether that process is still alive.

Process ids are reused, so the start time is compared too. A process on another machine can't be
checked. Its runs count as lost after ``SILENCE_S`` without a sign of life.
"""

from __future__ import annotations

import functools
import os
import socket
import subprocess
from pathlib import Path
from typing import NamedTuple

SILENCE_S = 3600.0
"""Seconds without an event after which a run on another machine counts as lost, 40 times the
deadline of a loop.
"""


class Owner(NamedTuple):
    """A process: its machine's name, its id, and its start time in the system's own format."""

    host: str
    pid: int
    started: str


def this_process() -> Owner:
    """Return the current process."""
    return _owner_of(os.getpid())


@functools.lru_cache(maxsize=8)
def _owner_of(pid: int) -> Owner:
    return Owner(socket.gethostname(), pid, process_start(pid) or "")


def is_alive(owner: Owner) -> bool | None:
    """Return whether the process still runs, or None if this machine can't tell."""
    if owner.host != socket.gethostname():
        return None
    started = process_start(owner.pid)
    return None if started is None and os.name != "posix" else started == owner.started


def process_start(pid: int) -> str | None:
    """Return the start time of a process on this machine, or None if it doesn't exist or is a
    zombie.
    """
    if Path("/proc/self/stat").exists():
        try:
            # "pid (command) state ...": the command may contain blanks and brackets (proc(5)), so
            # the fields are counted from the last bracket
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        fields = stat.rpartition(")")[2].split()
        # The start time counts clock ticks since the boot, so the boot id must be added to it. Z is
        # a zombie and X a dead process.
        return None if fields[0] in "ZX" else f"{_boot()} {fields[19]}"
    if os.name != "posix":
        return None
    ps = ["/bin/ps", "-o", "lstart=", "-p", str(pid)]
    listing = subprocess.run(ps, capture_output=True, text=True, check=False)  # noqa: S603
    return listing.stdout.strip() or None


@functools.cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
