"""Cases of a file as a list, for scripts and notebooks."""

from __future__ import annotations

import os
from pathlib import Path

from masis.datasets.mapping import builtin, builtin_names, load_profile, read_any
from masis.datasets.mapping.profile import Profile
from masis.errors import InputError
from masis.schema.case import Case

_SHOWN = 5


def read_cases(path: str | os.PathLike[str], profile: str | os.PathLike[str] | None = None) -> list[Case]:
    """Return every case of a file: in our own format, or in that of another tool.

    Args:
        path: The file.
        profile: The name of a built-in profile, or a TOML file of one's own; recognised where none is given.

    Raises:
        InputError: There is no such profile, the file can't be read, or a row holds no case; the first are named.

    """
    cases: list[Case] = []
    errors: list[InputError] = []
    for row in read_any(Path(path), _profile(profile)):
        errors.extend(row.problems)
        if row.case is not None:
            cases.append(row.case)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        shown = "; ".join(str(each).rstrip(".") for each in errors[:_SHOWN])
        raise InputError(
            f"{len(errors):,} problems: {shown}{'; and more' if len(errors) > _SHOWN else ''}",
            cure="Correct these lines or remove them.",
            file=str(path),
        )
    return cases


def _profile(named: str | os.PathLike[str] | None) -> Profile | None:
    if named is None:
        return None
    if isinstance(named, str) and named in builtin_names():
        return builtin()[named]
    if Path(named).suffix == ".toml":
        return load_profile(Path(named))
    raise InputError(
        f"{str(named)!r} is no profile",
        cure=f"Name a TOML file, or one of: {', '.join(builtin_names())}.",
        field="profile",
    )
