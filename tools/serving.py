"""Run and measure a workbench in its own process, for tests, benchmarks and screenshots."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 120
"""A server starts in three seconds, or in a minute if many processes share a core."""
LISTENING = "0A"
"""The code of a listening socket in /proc/net/tcp."""


class Served(NamedTuple):
    """A running workbench: its address and its process, whose cost can be measured on Linux."""

    base: str
    pid: int

    def cpu_seconds(self) -> float:
        """Return the CPU time that the server has used so far, without its worker processes."""
        fields = (
            Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        )
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        """Return the server's memory (PSS: private pages plus its share of shared ones) in MB."""
        for line in Path(f"/proc/{self.pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / 1e6
        raise RuntimeError(f"process {self.pid} says nothing about its memory")


@contextmanager
def serving(*arguments: str, folder: Path, port: int | None = None) -> Iterator[Served]:
    """Run ``masis`` with these arguments (``demo``, ``serve --db FILE``) until the block ends.

    It runs in ``folder``, isolated from settings in the environment and files in the home folder.

    Raises:
        RuntimeError: The server didn't start. The message contains its output.

    """
    port = port or free_port()
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("MASIS_", "STREAMLIT_"))
    }
    environment |= {"PYTHONPATH": str(ROOT), "HOME": str(folder)}
    environment |= {
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_CONFIG_HOME": str(folder / "config"),
    }
    with (folder / "server.log").open("a+", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "masis.cli", *arguments, "--port", str(port), "--no-browser"],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )
        base = f"http://127.0.0.1:{port}"
        try:
            wait_for(base, process, folder / "server.log")
            yield Served(base, process.pid)
        finally:
            process.terminate()
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(pid: int, port: int) -> bool:
    """Return whether this process listens on a port of 127.0.0.1; assume so without /proc."""
    tables = Path("/proc/net/tcp")
    if not tables.exists():
        return True
    rows = (line.split() for line in tables.read_text(encoding="ascii").splitlines()[1:])
    sockets = {
        f"socket:[{row[9]}]"
        for row in rows
        if row[3] == LISTENING and int(row[1].rpartition(":")[2], 16) == port
    }
    try:
        return any(os.readlink(file) in sockets for file in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:  # the process has just ended or closed a file
        return False


def wait_for(base: str, process: subprocess.Popen[str], log: str | Path) -> None:
    """Wait until this server, and not another one on its port, responds.

    Raises:
        RuntimeError: The server didn't start.

    """
    deadline = time.monotonic() + START_SECONDS
    port = int(base.rpartition(":")[2])
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{base}/_stcore/health", timeout=1):
                if listens(process.pid, port):
                    return
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.1)
    raise RuntimeError(f"the server didn't start:\n{Path(log).read_text(encoding='utf-8')[-4000:]}")
