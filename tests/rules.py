"""Check one rule for many items in a single test that names every item that breaks the rule."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

Thing = TypeVar("Thing")


def for_each(
    things: Iterable[Thing], name: Callable[[Thing], object] = repr
) -> Callable[[Callable[[Thing], None]], Callable[[], None]]:
    """Turn a test of one item into a single test of all items.

    Use it for rules that are cheap to check and apply to hundreds of rows, when one test per row
    would take longer to set up than to run. ``name`` names the items that break the rule, each with
    its error.
    """
    rows = list(things)

    def decorate(rule: Callable[[Thing], None]) -> Callable[[], None]:
        @functools.wraps(rule)
        def test() -> None:
            broken = []
            for row in rows:
                try:
                    rule(row)
                except (
                    AssertionError,
                    ValueError,
                    TypeError,
                    LookupError,
                    pytest.fail.Exception,
                ) as error:
                    broken.append(f"{name(row)}: {type(error).__name__}: {error}")
            assert rows, "nothing to hold the rule against"
            assert not broken, f"{len(broken)} of {len(rows)} break the rule\n" + "\n".join(broken)

        del test.__wrapped__  # otherwise pytest would treat the rule's argument as a fixture
        return test

    return decorate
