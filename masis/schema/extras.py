"""Checks whether the packages of an optional extra are installed."""

from __future__ import annotations

import importlib.util

from masis.errors import MissingExtra


def require(what: str, extra: str, *modules: str) -> None:
    """Raise MissingExtra with the install command if one of an extra's modules isn't installed."""
    try:
        installed = all(map(importlib.util.find_spec, modules))
    except ModuleNotFoundError:  # find_spec imports parent packages, and raises if one is missing
        installed = False
    if not installed:
        raise MissingExtra(f"{what}: pip install '.[{extra}]'")
