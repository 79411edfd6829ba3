"""All settings. No other package reads the environment or the configuration file.

A value comes from the strongest source that has it: a flag, the environment
(``MASIS_MAX_ITERATIONS``), the file ``masis.toml``, or the default, which is the spec's constant if
a spec has one. ``load()`` records the source of each value.
"""

from masis.schema.model_ref import OFFLINE
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
