"""What every test may rely on: no network but loopback, no paid call, real data only where it lies."""

from __future__ import annotations

import ipaddress
import os
import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every run, and no verdict on how busy the machine is.
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

# Nobody's own masis.toml has a say in a test, nor in a process that a test starts.
os.environ["XDG_CONFIG_HOME"] = str(Path(tempfile.gettempdir()) / "masis-tests-no-configuration")

ROOT = Path(__file__).resolve().parent.parent
SHARED_DATA = Path(os.environ.get("MASIS_SHARED_DATA", ROOT.parent / "shared" / "data"))


class NetworkRefused(RuntimeError):
    """A test tried to reach something other than this machine."""


def _is_loopback(address: Any) -> bool:
    if not isinstance(address, tuple):  # a Unix socket
        return True
    host = address[0]
    if host in ("localhost", ""):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that leaves the machine, and hide keys that could pay for one."""
    for variable in list(os.environ):
        if variable.endswith("_API_KEY") or variable.startswith("MASIS_"):
            monkeypatch.delenv(variable)
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def guarded(real: Any) -> Any:
        def call(self: socket.socket, address: Any) -> Any:
            if not _is_loopback(address):
                raise NetworkRefused(f"tests reach only this machine, not {address!r}")
            return real(self, address)

        return call

    monkeypatch.setattr(socket.socket, "connect", guarded(connect))
    monkeypatch.setattr(socket.socket, "connect_ex", guarded(connect_ex))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real public data; skips where it isn't present."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"real data is not here: {SHARED_DATA} (set MASIS_SHARED_DATA)")
    return SHARED_DATA
