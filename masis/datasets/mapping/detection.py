"""Which profile a file is for: those whose required paths all give something in its first row."""

from __future__ import annotations

from typing import Any

from masis.datasets.mapping.paths import value_at
from masis.datasets.mapping.profile import Profile, builtin
from masis.errors import InputError


def fitting(row: Any) -> tuple[Profile, ...]:
    """Return the built-in profiles that a row fits."""
    return tuple(profile for profile in builtin().values() if profile.required and _fits(profile, row))


def profile_for(row: Any) -> Profile:
    """Return the one profile that a row fits. Raises InputError where none does, or more than one."""
    found = fitting(row)
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(
            f"fits {' and '.join(profile.name for profile in found)}",
            cure=f"Say which: --as {found[0].name}, for example.",
        )
    keys = ", ".join(repr(str(key)[:40]) for key in list(row)[:8]) if isinstance(row, dict) else "no object"
    raise InputError(
        f"fits no profile (the first row holds {keys or 'nothing'})",
        cure=f"Name one with --as ({', '.join(builtin())}), or write your own for --map (docs/importing.md).",
    )


def _fits(profile: Profile, row: Any) -> bool:
    try:
        return all(value_at(row, (path,)) is not None for path in profile.required) and not any(
            value_at(row, (path,)) is not None for path in profile.absent
        )
    except InputError:
        return False
