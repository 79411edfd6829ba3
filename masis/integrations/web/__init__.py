"""The HTTP door (extra ``web``): programs in production send cases, and poll what became of them.

masis ingest                                  at http://127.0.0.1:8700/v1/cases
"""

from __future__ import annotations

import importlib.util

from masis.errors import MissingExtra


def require() -> None:
    """Raise MissingExtra where Starlette or uvicorn is not installed."""
    if importlib.util.find_spec("starlette") is None or importlib.util.find_spec("uvicorn") is None:
        raise MissingExtra("Taking cases over HTTP needs packages that are not installed: pip install '.[web]'")
