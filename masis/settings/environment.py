"""Read the environment and its files. Other modules of the package read neither."""

from __future__ import annotations

import getpass
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from platformdirs import user_config_path, user_data_path
from pydantic import SecretStr

from masis.errors import SettingsError

SHORTEST_LOG_KEY = 32
"""Minimum number of characters of a log key: 32 hexadecimal digits are 128 bits."""


def environment_or(environment: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return the given environment, or the one of this process."""
    return os.environ if environment is None else environment


def read_file(file: Path, named_by: str = "MASIS_CONFIG") -> str:
    """Return the text of a file.

    Raises:
        SettingsError: It can't be read; the message names ``named_by``.

    """
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError(
            f"{file}: can't be read ({error.strerror}). Check {named_by}."
        ) from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file}: isn't UTF-8 text (byte {error.start + 1}).") from error


def toml(text: str, file: Path) -> dict[str, Any]:
    """Parse the text of a file as TOML.

    Raises:
        SettingsError: It isn't valid. The message names the line, but repeats no value, because one
            may be a key.

    """
    try:
        return tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, or a number of thousands of digits
        hint = (
            "Put text in quotes, write true and false in lower case, and one KEY = VALUE per line."
        )
        if file.suffix.casefold() in (".yaml", ".yml"):
            hint = (
                "This is a YAML file, but settings are TOML: a table such as [retrieval.critique],"
                " then lines KEY = VALUE."
            )
        raise SettingsError(f"{file}: isn't valid TOML: {error}. {hint}") from error
    except RecursionError as error:
        raise SettingsError(
            f"{file}: isn't valid TOML, because its tables are nested too deeply."
        ) from error


def variable(name: str, environment: Mapping[str, str] | None = None) -> str | None:
    """Return a provider's environment variable, such as ``OPENAI_BASE_URL``, or None if it is
    empty.
    """
    return environment_or(environment).get(name, "").strip() or None


def secret(name: str, environment: Mapping[str, str] | None = None) -> SecretStr | None:
    """Return a key by its name from the environment, else from the secrets file, or None.

    The secrets file is ``MASIS_SECRETS``, else ``masis.secrets.toml`` in the working folder, with
    lines such as ``OPENAI_API_KEY = "..."``.

    Raises:
        SettingsError: The file can't be read, or the key isn't text.

    """
    environment = environment_or(environment)
    if value := environment.get(name, "").strip():
        return SecretStr(value)
    file = secrets_file(environment)
    value = toml(read_file(file, "MASIS_SECRETS"), file).get(name, "") if file else ""
    if not isinstance(value, str):
        raise SettingsError(f"{file}, {name}: isn't text. Put the key in quotes.")
    return SecretStr(value.strip()) if value.strip() else None


def secrets_file(environment: Mapping[str, str] | None = None) -> Path | None:
    """Return ``MASIS_SECRETS``, else ``masis.secrets.toml`` in the working folder or the user's
    configuration folder.
    """
    return _find_file("MASIS_SECRETS", "masis.secrets.toml", environment_or(environment))


def log_key(
    path: str | Path | None = None, environment: Mapping[str, str] | None = None
) -> bytes | None:
    """Return the key that signs the logs, from the given file or ``MASIS_LOG_KEY``, or None.

    Raises:
        SettingsError: The file can't be read or has fewer than 32 characters.

    """
    file = (
        str(path)
        if path is not None
        else environment_or(environment).get("MASIS_LOG_KEY", "").strip()
    )
    if not file:
        return None
    text = read_file(Path(file).expanduser(), "--key or MASIS_LOG_KEY").strip()
    if len(text) < SHORTEST_LOG_KEY:
        raise SettingsError(
            f"{file}: doesn't contain a key of {SHORTEST_LOG_KEY} characters or more. "
            "Make one with `masis verify-log --new-key FILE`."
        )
    return text.encode()


def sources_file(
    path: str | Path | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the parsed file of sources: the given one, else ``MASIS_SOURCES``, else
    ``masis.sources.toml``.

    Raises:
        SettingsError: There is none, or it can't be read.

    """
    file_name = (
        path or environment_or(environment).get("MASIS_SOURCES", "").strip() or "masis.sources.toml"
    )
    file = Path(file_name).expanduser()
    return toml(read_file(file, "--sources or MASIS_SOURCES"), file)


def config_file(environment: Mapping[str, str] | None = None) -> Path | None:
    """Return ``MASIS_CONFIG``, else ``masis.toml`` in the working folder or the user's
    configuration folder.

    Only the first existing file is used; files aren't merged.
    """
    return _find_file("MASIS_CONFIG", "masis.toml", environment_or(environment))


def config_places() -> tuple[Path, ...]:
    """Return where the configuration file is looked for if ``MASIS_CONFIG`` isn't set."""
    return _places("masis.toml")


def _find_file(variable: str, name: str, environment: Mapping[str, str]) -> Path | None:
    if file_name := environment.get(variable, "").strip():
        return Path(file_name).expanduser()
    return next((place for place in _places(name) if place.is_file()), None)


def _places(name: str) -> tuple[Path, ...]:
    return Path(name), user_config_path("masis", appauthor=False) / name


UNKNOWN_USER = "unknown user"
"""The name that is recorded if the process belongs to no named account."""

_LONGEST_NAME = 200


def account_name() -> str:
    """Return the name of the account that this process runs under; "" if it has none.

    ``getpass`` reads the environment, then the password database. A container may run under a uid
    that is in neither; it then raises KeyError up to Python 3.12 and OSError from 3.13. On Windows,
    which has no password database, it raises ImportError.
    """
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
    return "".join(letter for letter in name if letter.isprintable()).strip()[:_LONGEST_NAME]


def default_reviewer() -> str:
    """Return the name that decisions are recorded under if none is given."""
    return account_name() or UNKNOWN_USER


def data_folder() -> Path:
    """Return the user's data folder for the workbench."""
    return user_data_path("masis", appauthor=False)


def database_path(
    path: str | Path | None = None, environment: Mapping[str, str] | None = None
) -> Path:
    """Return the database file: ``--db``, else ``MASIS_DB``, else ``masis.db`` in the user's data
    folder.
    """
    file_name = (
        path
        if path is not None
        else environment_or(environment).get("MASIS_DB") or data_folder() / "masis.db"
    )
    return Path(file_name).expanduser()


def demo_database_path() -> Path:
    """Return the demo's own database, which ``masis demo --reset`` empties."""
    return data_folder() / "demo.db"


def quiet_ray() -> None:
    """Keep Ray, if started after this, from sending usage statistics and logging to stderr.

    Its subprocesses inherit these variables.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    # Without this, it warns about tasks without an accelerator.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
