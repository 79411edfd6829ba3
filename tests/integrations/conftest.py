"""The tests of a folder with_NAME need the extra NAME; where its package isn't installed they are
left out.

``make test`` installs all of them but PyTorch, DSPy in an environment of its own
(``tools/every_test.py``).
"""

from __future__ import annotations

import importlib.util

import pytest

from masis.llm.client import server_capabilities
from tests.llm.asking import KEY

NEEDS = {
    "with_mcp": ("mcp",),
    "with_dspy": ("dspy",),
    "with_langgraph": ("langgraph",),
    "with_baml": ("baml_py",),
    "with_local": ("torch", "transformers"),
    "with_otel": ("opentelemetry.sdk",),
    "with_ray": ("ray",),
    "with_retrievers": ("langchain_core", "llama_index"),
}


def _here(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


collect_ignore = [folder for folder, modules in NEEDS.items() if not all(map(_here, modules))]


@pytest.fixture(autouse=True)
def _a_key_and_no_habits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of scripted models; nothing known of servers that earlier tests had at the same
    address.
    """
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    server_capabilities._known.clear()
