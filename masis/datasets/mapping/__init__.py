"""Files, data frames and rows read as cases, in the workbench's own format or that of another tool.

A profile names the paths of a format; ``profiles/*.toml`` are the built-in ones, and a person's own file has the same
form (``docs/importing.md``).
"""

from masis.datasets.mapping.columns import (
    Column,
    ColumnChoice,
    columns_key,
    columns_of,
    field_map,
    likely_choice,
    profile_of,
    profile_text,
    still_there,
)
from masis.datasets.mapping.detection import fitting
from masis.datasets.mapping.profile import Profile, builtin, builtin_names, load_profile
from masis.datasets.mapping.reader import OWN_FORMAT, Fitting, MappedRow, formats_of, read_any

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
    "field_map",
    "fitting",
    "formats_of",
    "likely_choice",
    "load_profile",
    "profile_of",
    "profile_text",
    "read_any",
    "still_there",
]
