"""All settings as rows for the page, the command line and the docs, and the file template, without
secrets.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from masis.settings.fields import GROUPS, Settings, SettingsGroup
from masis.settings.names import CRITIQUE, TABLES_OF_TABLES, YAML_KEYS, name_in_file
from masis.settings.origins import LoadedSettings, SettingOrigin
from masis.settings.ranges import describe_range, schema_of, value_text
from masis.settings.secrecy import without_secrets

WIDTH = 100


class SettingRow(NamedTuple):
    """One setting, or one value in a table such as ``providers.vllm.address``, which has no
    default.

    ``name`` is as written in the file. ``value`` and ``default`` are JSON-ready; for tables they
    are the names. ``meaning``, ``allowed`` and ``rule`` (or the reason) are in words.
    """

    name: str
    value: Any
    default: Any
    changed: bool
    origin: SettingOrigin
    meaning: str
    allowed: str
    rule: str

    @property
    def spelled(self) -> str:
        """The value as text for people."""
        return value_text(self.value)


def rows(loaded: LoadedSettings, group: SettingsGroup) -> Iterator[SettingRow]:
    """Yield the settings of a group, each followed by its contents if it is a table."""
    for name in group.settings:
        value, default, schema = (
            getattr(loaded.settings, name),
            Settings.model_fields[name].default,
            schema_of((name,)),
        )
        origin = loaded.origins.get(name, SettingOrigin())
        words = (schema["description"], describe_range(schema), schema["rule"])
        yield SettingRow(
            name,
            _shown_setting(name, value),
            _plain_setting(default),
            value != default,
            origin,
            *words,
        )
        for key, record in value.items() if name in TABLES_OF_TABLES else ():
            for field, inside in record.model_dump(mode="json", exclude_none=True).items():
                path = (name, key, field)
                origin = loaded.origins.get(name_in_file(path), SettingOrigin())
                words = (
                    schema_of(path)["description"],
                    describe_range(schema_of(path)),
                    schema["rule"],
                )
                yield SettingRow(
                    name_in_file(path), _plain_setting(inside), None, True, origin, *words
                )


def all_rows(loaded: LoadedSettings) -> tuple[SettingRow, ...]:
    """Return the rows of all groups."""
    return tuple(row for group in GROUPS for row in rows(loaded, group))


def option_help(name: str, meaning: str = "") -> str:
    """Return the help of an option for a setting: its meaning, or the given one, and the
    default.
    """
    field = Settings.model_fields[name]
    return (
        f"{meaning or field.description} Default: the setting {name} ({value_text(field.default)})."
    )


def _plain_setting(value: Any) -> Any:
    if isinstance(value, Mapping):
        return list(value)
    return without_secrets(value) if isinstance(value, str) else value


def _shown_setting(name: str, value: Any) -> Any:
    """Return a setting's value as people may see it.

    The path of a webhook's address is often a token, as with Slack and Teams.
    """
    shown = _plain_setting(value)
    if name != "webhook_address" or "://" not in str(shown):
        return shown
    parts = urlsplit(shown)
    return urlunsplit((parts.scheme, parts.netloc, "/…" if parts.path.strip("/") else "", "", ""))


HEAD = """
Settings of MASIS Workbench. Every setting is listed with its default, commented out: take the '#'
before a name away and change the value. What is left commented out follows the defaults,
including those of later versions.

A value comes, strongest first, from the command line (--set max_iterations=2), the environment
(MASIS_MAX_ITERATIONS=2), this file, the defaults. Any setting may also be written above all
tables under its own name. 'masis config show' shows the values in use and where each comes from;
'masis config check' checks this file. Keys of providers do not belong here: they come from the
environment or from masis.secrets.toml.
"""

EXAMPLES = {
    "providers": (
        """\
[providers.vllm]
kind = "openai"
address = "http://127.0.0.1:8000/v1"
key_env = "VLLM_API_KEY"
concurrency = 8
mode = "json_schema"
effort = "low"
"""
    ),
    "prices": (
        """\
[prices."vllm:llama-3.3-70b"]
input = 0.2
output = 0.6
cached_input = 0.1
cache_write = 0.2
"""
    ),
}


def template() -> str:
    """Return the file that ``masis config init`` writes.

    All settings are commented out with their defaults, so the file changes nothing, with or without
    the comment signs.
    """
    return "\n".join(_reference_lines()) + "\n"


def _reference_lines() -> Iterator[str]:
    first, second = HEAD.split("\n\n")
    yield from (*_prose(first), "#", *_prose(second))
    default = LoadedSettings(Settings(), {})
    for group in GROUPS:
        yield from ("", f"[{group.table}]")
        yield from _prose(f"{group.title}. {group.meaning}")
        for row in rows(default, group):
            yield ""
            if row.name in EXAMPLES:
                yield from _prose(f"{row.meaning} ({row.rule}) For example:")
                yield from (f"#     {line}".rstrip() for line in EXAMPLES[row.name].splitlines())
            else:
                allowed = (
                    f" {row.allowed.capitalize()}." if not row.allowed.startswith("text") else ""
                )
                yield from _prose(f"{row.meaning}{allowed} ({row.rule})")
                yield f"#{row.name} = {json.dumps(row.value)}"
    yield from ("", f"[{name_in_file(CRITIQUE)}]")
    yield from _prose(
        "The names of DRAFT-CRITIQUE-CONFIG (docs/CONFORMANCE.md); each means the setting"
        " beside it."
    )
    for key, name in YAML_KEYS.items():
        yield f"#{key} = {json.dumps(getattr(default.settings, name))}  # {name}"


def _prose(text: str) -> Iterator[str]:
    for line in textwrap.wrap(" ".join(text.split()), WIDTH - 2, break_on_hyphens=False):
        yield f"# {line}"
