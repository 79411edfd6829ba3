"""One rule held for many things: a single test, which names every thing that breaks the rule."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

Thing = TypeVar("Thing")


def each(
    things: Iterable[Thing], name: Callable[[Thing], object] = repr
) -> Callable[[Callable[[Thing], None]], Callable[[], None]]:
    """Decorate a test of one thing: it becomes one test of all of them.

    For rules that are cheap to check and hold for hundreds of rows, where a test a row takes longer
    to set up than to run. What breaks the rule is named by ``name``, each with its own error.
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

        del test.__wrapped__  # pytest would ask for the rule's argument
        return test

    return decorate
