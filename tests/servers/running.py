"""Third-party model servers on loopback, each started as its documentation describes."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.waiting import until

SERVERS = os.environ.get("MASIS_SERVERS", "")
HERE = Path(__file__).resolve().parent
MASTER_KEY = "sk-loopback-0123456789"


class Served(NamedTuple):
    """A running server: its URL and the options it was started with."""

    address: str
    key: str = ""


def python_of(name: str) -> str:
    """Return the interpreter of a server's environment; skip the test if it couldn't be
    installed.
    """
    place = Path(SERVERS).resolve() / name
    if not (place / ".installed").exists():
        pytest.skip(f"{name} could not be installed")
    return str(place / "bin" / "python")


def write_model(folder: Path) -> Path:
    """Write the model in the environment that has the ``gguf`` package."""
    file = folder / "tiny.gguf"
    subprocess.run(
        [python_of("llamacpp"), HERE / "tiny_model.py", file], check=True, capture_output=True
    )
    return file


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextlib.contextmanager
def _running(command: list[str], port: int, log: Path, key: str = "") -> Iterator[Served]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out)
    address = f"http://127.0.0.1:{port}/v1"
    headers = {"Authorization": f"Bearer {key}"} if key else {}

    def ready() -> bool:
        assert process.poll() is None, log.read_text(encoding="utf-8", errors="replace")[-2000:]
        request = urllib.request.Request(f"{address}/models", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=5) as reply:
                return bool(reply.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    try:
        until(ready, f"the server answers: {' '.join(command)}", 100)
        yield Served(address, key)
    finally:
        process.terminate()
        process.communicate(timeout=30)


def llamacpp(
    model: Path, folder: Path, *, ctx: int = 32768, slots: int = 1
) -> contextlib.AbstractContextManager[Served]:
    """Start llama.cpp's own server."""
    port = _free_port()
    options = ["--port", str(port), "--ctx", str(ctx), "--slots", str(slots)]
    command = [python_of("llamacpp"), str(HERE / "llamacpp_server.py"), str(model), *options]
    return _running(command, port, folder / f"llamacpp-{port}.log")


def llama_cpp_python(
    model: Path, folder: Path, *, ctx: int = 32768
) -> contextlib.AbstractContextManager[Served]:
    """Start the server of llama-cpp-python."""
    port = _free_port()
    options = ["--model", str(model), "--n_ctx", str(ctx), "--port", str(port)]
    command = [python_of("llama-cpp-python"), "-m", "llama_cpp.server", *options]
    return _running(command, port, folder / f"llama-cpp-python-{port}.log")


@contextlib.contextmanager
def litellm(model: Path, folder: Path) -> Iterator[Served]:
    """Start LiteLLM's proxy in front of llama.cpp's server."""
    port = _free_port()
    with llamacpp(model, folder, slots=2) as behind:
        config = folder / "litellm.yaml"
        config.write_text(
            "model_list:\n  - model_name: tiny\n    litellm_params:\n      model: openai/tiny\n"
            f"      api_base: {behind.address}\n      api_key: none\n"
            f"general_settings:\n  master_key: {MASTER_KEY}\n",
            encoding="utf-8",
        )
        program = Path(python_of("litellm")).parent / "litellm"
        command = [
            str(program),
            "--config",
            str(config),
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
        ]
        with _running(command, port, folder / "litellm.log", MASTER_KEY) as served:
            yield served
