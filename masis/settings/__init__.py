"""All settings, and the only place that reads the environment and the configuration file.

A value comes, strongest first, from a flag, the environment (``MASIS_MAX_ITERATIONS``), the file
``masis.toml``, or the default, which is the spec's constant where a spec has one. ``load()``
remembers which.
"""

from masis.settings.environment import (
    account_name,
    config_file,
    config_places,
    data_folder,
    database_path,
    default_reviewer,
    demo_database_path,
    log_key,
    secret,
    secrets_file,
    sources_file,
    variable,
)
from masis.settings.fields import (
    GROUPS,
    OFFLINE,
    ROLES,
    UNCHECKED,
    Depth,
    Role,
    Seconds,
    Settings,
    SettingsGroup,
)
from masis.settings.origins import LoadedSettings, SettingOrigin
from masis.settings.secrecy import may_be_a_key, safe_value
from masis.settings.sources import load
