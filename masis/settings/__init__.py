"""All settings, and the only place that reads the environment and the configuration file.

A value comes, strongest first, from a flag, the environment (``MASIS_MAX_ITERATIONS``), the file ``masis.toml``, or the
default, which is the spec's constant where a spec has one. ``load()`` remembers which.
"""

from masis.settings.aliases import OTHER_VARIABLES, YAML_KEYS
from masis.settings.docs import DOCS, GROUPS, INSIDE, Group, SettingDoc
from masis.settings.environment import (
    config_file,
    config_places,
    data_folder,
    database_path,
    demo_database_path,
    log_key,
    secret,
    secrets_file,
    sources_file,
    variable,
)
from masis.settings.fields import NOT_OF_AUDIT, NOT_OF_SCREENING, OFFLINE, ROLES, Role, Seconds, Settings
from masis.settings.listing import Row, all_rows, rows
from masis.settings.loading import Loaded, load
from masis.settings.origins import Origin
from masis.settings.ranges import as_toml, described, schema_of, spelled
from masis.settings.secrecy import may_be_a_key, shown
from masis.settings.template import template

__all__ = [
    "DOCS",
    "GROUPS",
    "INSIDE",
    "NOT_OF_AUDIT",
    "NOT_OF_SCREENING",
    "OFFLINE",
    "OTHER_VARIABLES",
    "ROLES",
    "YAML_KEYS",
    "Group",
    "Loaded",
    "Origin",
    "Role",
    "Row",
    "Seconds",
    "SettingDoc",
    "Settings",
    "all_rows",
    "as_toml",
    "config_file",
    "config_places",
    "data_folder",
    "database_path",
    "demo_database_path",
    "described",
    "load",
    "log_key",
    "may_be_a_key",
    "rows",
    "schema_of",
    "secret",
    "secrets_file",
    "shown",
    "sources_file",
    "spelled",
    "template",
    "variable",
]
