"""Set up all tests: no network, no paid calls, public data only with --data, a time limit."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import ipaddress
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from functools import cache, wraps
from inspect import unwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from masis.services import Workbench

# Use the same examples on every run, and no deadline, so that a busy machine can't fail a test.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")

# Write compiled modules even if the environment disables it (as containers often do). Without them,
# every worker, server and command of the tests compiles thousands of modules again.
# `python -B` still disables it.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    sys.dont_write_bytecode = False

# Keep test databases in memory if there is room, because otherwise every commit waits for the disk.
IN_MEMORY = Path("/dev/shm")
if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > 2 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))

# Ignore the user's masis.toml in tests and in processes that tests start.
os.environ["XDG_CONFIG_HOME"] = str(Path(tempfile.gettempdir()) / "masis-tests-no-configuration")
# Ignore exam results stored on this machine.
os.environ["XDG_DATA_HOME"] = str(Path(tempfile.gettempdir()) / "masis-tests-no-data")

ROOT = Path(__file__).resolve().parent.parent
BROWSER_REQUIRED = os.environ.get("MASIS_REQUIRE_BROWSER") == "1"
BROWSER_SECONDS = 180
SOAK_SECONDS = 3600
MAIN = sys.modules["__main__"]


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


def _guard_connect(real: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: socket.socket, address: Any) -> Any:
        if not _is_loopback(address):
            raise NetworkRefused(f"tests reach only this machine, not {address!r}")
        return real(self, address)

    return call


def pytest_configure() -> None:
    """Block all connections to other machines from now on.

    This applies to the whole process, so that it also covers module and session fixtures and
    threads that outlive their test. Each worker of pytest-xdist calls this hook.
    """
    socket.socket.connect = _guard_connect(socket.socket.connect)
    socket.socket.connect_ex = _guard_connect(socket.socket.connect_ex)
    for variable in [name for name in os.environ if name.endswith("_API_KEY")]:
        del os.environ[variable]
    gc.disable()  # until everything is imported and collected


def pytest_collection_finish() -> None:
    """Prepare for the tests: their modules are imported now, and nothing has run yet."""
    if "masis.store" in sys.modules:
        copy_new_databases()
    # Streamlit collects garbage after each page, which needn't look at tests and modules.
    gc.freeze()
    gc.enable()


def copy_new_databases() -> None:
    """Make each new database of this process a copy of the first one.

    The migrations take 0.1 s of processor time, and thousands of tests need a new database. Each
    copy is opened and checked like any other file. Tests of the creation itself use the fixture
    ``migrated_databases``, and other processes than pytest's don't copy.
    """
    from masis.store.core import connections

    check_place = connections._check_place

    @cache
    def new_database() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "new.db"
            path.touch()  # it exists, so it isn't copied itself
            connections.open_database(path).close()
            return path.read_bytes()

    @wraps(check_place)
    def check_and_copy(path: Path) -> None:
        check_place(path)
        if path.exists():
            return
        copy = path.with_name(f"{path.name}-{uuid4()}")
        with contextlib.suppress(OSError):  # opening the file explains what is wrong
            copy.write_bytes(new_database())
            try:
                os.link(copy, path)  # fails if another thread or process has just created it
            finally:
                copy.unlink()

    connections._check_place = check_and_copy


@pytest.fixture
def migrated_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the migrations create each new database, see ``copy_new_databases``."""
    from masis.store.core import connections

    monkeypatch.setattr(connections, "_check_place", unwrap(connections._check_place))


@pytest.fixture(autouse=True)
def _no_keys_nor_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide API keys and the user's own settings."""
    for variable in list(os.environ):
        if variable.endswith("_API_KEY") or variable.startswith("MASIS_"):
            monkeypatch.delenv(variable)


@pytest.fixture(autouse=True)
def _same_main() -> Iterator[None]:
    """Restore ``__main__``; Streamlit replaces it with a page, which spawned processes import."""
    sys.modules["__main__"] = MAIN
    yield
    sys.modules["__main__"] = MAIN


@pytest.fixture(scope="session")
def public_data(request: pytest.FixtureRequest) -> Path:
    """Return the folder of public data sets, given with ``--data`` (CONTRIBUTING.md).

    Tests that use this fixture run only with that option.
    """
    folder = Path(request.config.getoption("--data"))
    assert folder.is_dir(), f"--data {folder} is not a folder"
    return folder


def made_once(temporary: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a file for tests to copy; the first process that needs it creates it, others wait."""
    folder = temporary.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = folder / name
        if not path.exists():
            make(unfinished := folder / f"unfinished-{name}")
            unfinished.rename(path)
    return path


@pytest.fixture(scope="session")
def demo_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the database that ``masis demo`` creates, for tests to copy."""
    return made_once(tmp_path_factory, "demo.db", _fill_database)


def _fill_database(path: Path) -> None:
    from masis.services import Actor, Workbench  # most tests need neither
    from masis.services.demo_database import fill_demo

    workbench = Workbench.open(path)
    fill_demo(workbench, Actor(name="Ada"))
    workbench.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    """Return a workbench without cases."""
    from masis.services import Workbench  # most tests need none

    opened = Workbench.open(tmp_path / "masis.db")
    yield opened
    opened.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--soak", action="store_true", help="run the tests marked soak at their full length"
    )
    parser.addoption(
        "--data", metavar="FOLDER", help="run the tests on the public data sets in this folder too"
    )


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    """Return the rounds of a test marked ``soak(smoke=..., full=...)``: ``full`` with --soak."""
    marker = request.node.get_closest_marker("soak")
    assert marker is not None, "a test that takes `rounds` is marked soak(smoke=..., full=...)"
    return int(marker.kwargs["full" if request.config.getoption("--soak") else "smoke"])


def _on_request(item: pytest.Item) -> str | None:
    """Return the option that a test requires: ``--data``, or ``--soak`` without a smoke round."""
    if "public_data" in getattr(item, "fixturenames", ()):
        return "--data"
    marker = item.get_closest_marker("soak")
    return "--soak" if marker is not None and "smoke" not in marker.kwargs else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add marks that follow from fixtures, and run the longest tests first.

    A worker that gets a long file last would run alone at the end.
    """
    left_out = {
        item for item in items if (option := _on_request(item)) and not config.getoption(option)
    }
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        names: tuple[str, ...] = getattr(item, "fixturenames", ())
        if "public_data" in names:
            item.add_marker(pytest.mark.soak)
        if any(hasattr(getattr(item, "module", None), name) for name in ("AppTest", "open_page")):
            item.add_marker(pytest.mark.apptest)
        if "public_data" in names or (
            config.getoption("--soak") and item.get_closest_marker("soak")
        ):
            item.add_marker(pytest.mark.timeout(SOAK_SECONDS), append=False)
        elif item.get_closest_marker("browser") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(BROWSER_SECONDS))
    slow = {
        item.path
        for item in items
        if any(map(item.get_closest_marker, ("slow", "soak", "apptest")))
    }
    items.sort(
        key=lambda item: 0 if item.get_closest_marker("browser") else 1 if item.path in slow else 2
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn skipped browser tests into failures if MASIS_REQUIRE_BROWSER=1 is set."""
    report = yield
    if (
        BROWSER_REQUIRED
        and report.skipped
        and not hasattr(report, "wasxfail")
        and item.get_closest_marker("browser")
    ):
        report.outcome = "failed"
        report.longrepr = (
            f"skipped, and MASIS_REQUIRE_BROWSER=1 allows no browser test to be: {report.longrepr}"
        )
    return report
