"""Cases of a file as a list, for scripts and notebooks."""

from __future__ import annotations

import os
from pathlib import Path

from masis.datasets.readers import read_case_lines
from masis.errors import InputError
from masis.schema.case import Case

_SHOWN = 5


def read_cases(path: str | os.PathLike[str]) -> list[Case]:
    """Return every case of a file of JSON Lines.

    Raises InputError where the file can't be read or a line holds no case; it names the first lines at fault.
    """
    cases: list[Case] = []
    errors: list[InputError] = []
    for line in read_case_lines(Path(path)):
        (errors if isinstance(line.found, InputError) else cases).append(line.found)  # type: ignore[arg-type]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        shown = "; ".join(str(each).rstrip(".") for each in errors[:_SHOWN])
        raise InputError(
            f"{len(errors):,} lines hold no case: {shown}{'; and more' if len(errors) > _SHOWN else ''}",
            cure="Mend these lines, or take the good ones with masis.datasets.readers.read_cases.",
            file=str(path),
        )
    return cases
