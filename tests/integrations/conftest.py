"""Each folder with_NAME is for an environment that has the extra NAME; elsewhere it is left out.

``make test`` runs each in an environment of its own (``tools/every_test.py``).
"""

from __future__ import annotations

import importlib.util

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
