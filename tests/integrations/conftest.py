"""Skip the tests in a folder ``with_NAME`` if the packages of the extra NAME aren't installed.

``make test`` installs all of them except PyTorch, and DSPy in a separate environment
(``tools/every_test.py``).
"""

from __future__ import annotations

import importlib.util

import pytest

from masis.llm.client import server_capabilities
from tests.llm.asking import KEY

REQUIRED_MODULES = {
    "with_mcp": ("mcp",),
    "with_dspy": ("dspy",),
    "with_langgraph": ("langgraph",),
    "with_baml": ("baml_py",),
    "with_local": ("torch", "transformers"),
    "with_otel": ("opentelemetry.sdk",),
    "with_ray": ("ray",),
    "with_retrievers": ("langchain_core", "llama_index"),
}


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False


collect_ignore = [
    folder for folder, modules in REQUIRED_MODULES.items() if not all(map(_is_installed, modules))
]


@pytest.fixture(autouse=True)
def _set_key_and_forget_capabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the key of scripted models and forget server capabilities learned by earlier tests."""
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    server_capabilities._known.clear()
