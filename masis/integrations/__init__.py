"""Integrations with other systems.

Each is behind an extra and calls the services; none has rules of its own (docs/architecture.md).
Importing ``masis`` doesn't import any of them.
"""

import importlib.util


def require(what: str, extra: str, *modules: str) -> None:
    """Raise MissingExtra with the install command if one of an extra's modules isn't installed."""
    # Imported late because pytest imports this package at every start to find our plugin.
    from masis.errors import MissingExtra

    try:
        installed = all(map(importlib.util.find_spec, modules))
    except ModuleNotFoundError:  # find_spec imports parent packages, and raises if one is missing
        installed = False
    if not installed:
        raise MissingExtra(f"{what}: pip install '.[{extra}]'")
