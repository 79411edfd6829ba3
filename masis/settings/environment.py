"""The environment and the files beside it: nothing else of the package reads either."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from platformdirs import user_data_path
from pydantic import SecretStr

from masis.errors import SettingsError


def environment_or(given: Mapping[str, str] | None) -> Mapping[str, str]:
    """The environment given, else the one of this process."""
    return os.environ if given is None else given


def read_file(file: Path, named_by: str = "MASIS_CONFIG") -> dict[str, Any]:
    """A TOML file. Raises SettingsError where it can't be read, naming what named it."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{file}: can't be read ({error.strerror}). Check {named_by}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: is no valid TOML ({error}).") from error


def variable(name: str, environment: Mapping[str, str] | None = None) -> str | None:
    """A variable of the environment that belongs to a provider, such as ``OPENAI_BASE_URL``; None where it is empty."""
    return environment_or(environment).get(name, "").strip() or None


def secret(name: str, environment: Mapping[str, str] | None = None) -> SecretStr | None:
    """A key by its name: from the environment, else from the secrets file; None where neither has it.

    The secrets file is ``MASIS_SECRETS``, else ``masis.secrets.toml`` in the working folder, with lines such as
    ``OPENAI_API_KEY = "..."``. Raises SettingsError for a file that can't be read, and for a key that is no text.
    """
    environment = environment_or(environment)
    if value := environment.get(name, "").strip():
        return SecretStr(value)
    file = secrets_file(environment)
    value = read_file(file, "MASIS_SECRETS").get(name, "") if file else ""
    if not isinstance(value, str):
        raise SettingsError(f"{file}, {name}: a key is text in quotes.")
    return SecretStr(value.strip()) if value.strip() else None


def secrets_file(environment: Mapping[str, str] | None = None) -> Path | None:
    """``MASIS_SECRETS``, else ``masis.secrets.toml`` in the working folder if there is one."""
    environment = environment_or(environment)
    if named := environment.get("MASIS_SECRETS"):
        return Path(named)
    here = Path("masis.secrets.toml")
    return here if here.is_file() else None


def config_file(environment: Mapping[str, str] | None = None) -> Path | None:
    """``MASIS_CONFIG``, else ``masis.toml`` in the working folder if there is one."""
    environment = environment_or(environment)
    if named := environment.get("MASIS_CONFIG"):
        return Path(named)
    here = Path("masis.toml")
    return here if here.is_file() else None


def data_folder() -> Path:
    """The user's data folder for the workbench."""
    return user_data_path("masis", appauthor=False)


def database_path(named: str | Path | None = None, environment: Mapping[str, str] | None = None) -> Path:
    """Where the database lies: ``--db``, else ``MASIS_DB``, else ``masis.db`` in the user's data folder."""
    environment = environment_or(environment)
    if named is not None:
        return Path(named).expanduser()
    if from_environment := environment.get("MASIS_DB"):
        return Path(from_environment).expanduser()
    return data_folder() / "masis.db"


def demo_database_path() -> Path:
    """The demo's own database, which ``masis demo --reset`` starts anew."""
    return data_folder() / "demo.db"
