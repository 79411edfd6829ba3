"""Integrations with other systems: each behind an extra, each calling the services, with no rule of its own
(docs/architecture.md). Importing ``masis`` imports none of them.
"""

import importlib.util


def require(what: str, extra: str, *packages: str) -> None:
    """Raise MissingExtra, which says what installs them, where one of an extra's packages is not installed."""
    from masis.errors import MissingExtra  # a start of pytest, which finds our plugin here, imports no more

    if not all(map(importlib.util.find_spec, packages)):
        raise MissingExtra(f"{what}: pip install '.[{extra}]'")
