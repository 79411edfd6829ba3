"""The guard that every test relies on: no connection but to this machine, no key, in every worker and every thread."""

from __future__ import annotations

import os
import socket
import threading

import pytest

OUTSIDE = ("192.0.2.1", 9)
"""An address that nobody has (RFC 5737)."""


def refusals() -> list[str]:
    """What each way of connecting raises."""
    found = []
    for way in ("connect", "connect_ex"):
        with socket.socket() as probe:
            probe.settimeout(0.1)
            try:
                getattr(probe, way)(OUTSIDE)
            except (OSError, RuntimeError) as error:
                found.append(type(error).__name__)
    return found


@pytest.fixture(scope="module")
def in_a_fixture_of_the_module() -> list[str]:
    return refusals()


def test_no_connection_leaves_the_machine(in_a_fixture_of_the_module: list[str]) -> None:
    in_a_thread: list[str] = []
    thread = threading.Thread(target=lambda: in_a_thread.extend(refusals()))
    thread.start()
    thread.join()
    assert refusals() == in_a_thread == in_a_fixture_of_the_module == ["NetworkRefused", "NetworkRefused"]


def test_this_machine_can_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()[:2]):
        pass


def test_no_key_and_no_setting_reaches_a_test() -> None:
    assert not [name for name in os.environ if name.endswith("_API_KEY") or name.startswith("MASIS_")]
