"""Integrations with other systems: each behind an extra, each calling the services, with no rule of
its own (docs/architecture.md). Importing ``masis`` imports none of them.
"""

import importlib.util


def require(what: str, extra: str, *modules: str) -> None:
    """Raise MissingExtra, which says what installs them, where one of an extra's modules is not
    installed.
    """
    # a start of pytest, which finds our plugin here, imports no more
    from masis.errors import MissingExtra

    try:
        there = all(map(importlib.util.find_spec, modules))
    except ModuleNotFoundError:  # the package that a module belongs to
        there = False
    if not there:
        raise MissingExtra(f"{what}: pip install '.[{extra}]'")
