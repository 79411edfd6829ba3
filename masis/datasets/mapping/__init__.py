"""Files, data frames and rows read as cases, in the workbench's own format or that of another tool.

A profile names the paths of a format; ``profiles/*.toml`` are the built-in ones, and a person's own file has the same
form (``docs/files.md``), or is made of columns that a person chooses.
"""

from masis.datasets.mapping.profile import OWN_FORMAT, Profile, builtin, builtin_names, load_profile
from masis.datasets.mapping.reader import Fitting, formats_of, read_any, source_rows
from masis.datasets.mapping.row import MappedRow

__all__ = [
    "OWN_FORMAT",
    "Fitting",
    "MappedRow",
    "Profile",
    "builtin",
    "builtin_names",
    "formats_of",
    "load_profile",
    "read_any",
    "source_rows",
]
