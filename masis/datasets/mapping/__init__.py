"""Files of other tools read as cases: a profile names the paths, one reader follows them.

``profiles/*.toml`` are the built-in ones; a person's own file has the same form (``docs/importing.md``).
"""

from masis.datasets.mapping.columns import (
    Column,
    ColumnChoice,
    columns_key,
    columns_of,
    likely_choice,
    profile_of,
    still_there,
)
from masis.datasets.mapping.detection import fitting, profile_for
from masis.datasets.mapping.profile import Profile, builtin, builtin_names, load_profile
from masis.datasets.mapping.reader import OWN_FORMAT, Fitting, MappedRow, detected, formats_of, read_any, read_mapped

__all__ = [
    "OWN_FORMAT",
    "Column",
    "ColumnChoice",
    "Fitting",
    "MappedRow",
    "Profile",
    "builtin",
    "builtin_names",
    "columns_key",
    "columns_of",
    "detected",
    "fitting",
    "formats_of",
    "likely_choice",
    "load_profile",
    "profile_for",
    "profile_of",
    "read_any",
    "read_mapped",
    "still_there",
]
