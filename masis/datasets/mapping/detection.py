"""Which profile a file is for: one whose required paths all give something in its first row."""

from __future__ import annotations

from typing import Any

from masis.datasets.mapping.profile import Profile, builtin
from masis.datasets.paths import value_at
from masis.errors import InputError


def fitting(row: Any) -> tuple[Profile, ...]:
    """Return the built-in profiles that a row fits."""
    return tuple(profile for profile in builtin().values() if profile.required and _fits(profile, row))


def one_of(found: tuple[Profile, ...]) -> Profile:
    """Return the one profile that a row fits. Raises InputError where there are several."""
    if len(found) == 1:
        return found[0]
    names = " and ".join(profile.name for profile in found)
    raise InputError(f"fits {names}", cure=f"Say which: --as {found[0].name}, for example.")


def _fits(profile: Profile, row: Any) -> bool:
    try:
        return all(value_at(row, (path,)) is not None for path in profile.required) and not any(
            value_at(row, (path,)) is not None for path in profile.absent
        )
    except InputError:
        return False
