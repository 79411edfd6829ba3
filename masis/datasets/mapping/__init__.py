"""Files of other tools read as cases: a profile names the paths, one reader follows them.

``profiles/*.toml`` are the built-in ones; a person's own file has the same form (``docs/importing.md``).
"""

from masis.datasets.mapping.detection import fitting, profile_for
from masis.datasets.mapping.profile import Profile, builtin, builtin_names, load_profile
from masis.datasets.mapping.reader import OWN_FORMAT, MappedRow, detected, read_any, read_mapped

__all__ = [
    "OWN_FORMAT",
    "MappedRow",
    "Profile",
    "builtin",
    "builtin_names",
    "detected",
    "fitting",
    "load_profile",
    "profile_for",
    "read_any",
    "read_mapped",
]
