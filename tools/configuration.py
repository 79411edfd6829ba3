"""Write docs/configuration.md from the settings themselves: python tools/configuration.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from masis.errors import SettingsError
from masis.schema.limits import LIMITS
from masis.settings import GROUPS, LoadedSettings, Settings, SettingsGroup, load
from masis.settings.names import OTHER_VARIABLES, TABLES_OF_TABLES, YAML_KEYS, variable_of
from masis.settings.ranges import describe_range, schema_of, value_text
from masis.settings.reference import rows

PAGE = ROOT / "docs" / "configuration.md"
EXAMPLE = ROOT / "examples" / "configuration" / "masis.toml"

INTRODUCTION = """# Configuration

The file `masis.toml` can set every setting. Each has a default, which is the spec's constant if a spec has one.
This page is generated from the settings by `tools/configuration.py`, and a test checks that it is current.

    masis config show               shows every setting, its value and its source
    masis config show --changed     shows only settings that differ from their defaults
    masis config check FILE         checks a file and lists every wrong name and value
    masis config init               writes a starter file with every setting, commented out

The Settings page of the workbench shows the same. `masis config show` accepts the options of `masis
audit`, so it can show the settings that an audit would use.

## Precedence

Highest precedence first:

1. **the command line**: `--set max_iterations=2`, `--model critic=openai`;
2. **the environment**: `MASIS_MAX_ITERATIONS=2`; an empty variable counts as not set;
3. **the file**: the one that `MASIS_CONFIG` names, otherwise `masis.toml` in the working folder, otherwise `masis.toml`
   in your configuration folder (on Linux `~/.config/masis`, on macOS `~/Library/Application Support/masis`). Only the
   first file found is used. Files aren't merged, so all values from files are in one place;
4. **the defaults**.

Tables of servers and prices are merged value by value: the environment can set the address of a server whose
other values are in the file. The workbench's server reads its settings when it starts; its Settings page says if
they have changed since.

In Python, `masis.Settings(critic="openai")` uses only defaults and arguments. To use the file and the
environment too, call `load`:

    from masis.settings import load
    settings = load({"max_iterations": 2}).settings      # load().origins has the source of each value

Trust a masis.toml as much as a script: it determines where texts are sent, and with which key. Check a file that
someone gave you before you use it.

## Names of settings

Every setting has one name, which you can use at the top level of the file. You can also use it in the table of its
group (below), where some names omit the prefix: `max_rounds` in `[screening]` is `screening_max_rounds`. With `--set`,
use the same names with dots: `--set screening.max_rounds=3`. If a setting has different values under two names,
an error names both places. The same applies to `--model critic=a` with `--set critic=b`.

A variable's name is `MASIS_` and the setting's name in capitals; two underscores separate the parts of a name:

    MASIS_MAX_ITERATIONS=2
    MASIS_SCREENING__MAX_ROUNDS=3
    MASIS_RETRIEVAL__CRITIQUE__AUTO_REVISE=true
    MASIS_PROVIDERS__VLLM__ADDRESS=http://127.0.0.1:8000/v1
    MASIS_PROVIDERS='{"vllm": {"address": "http://127.0.0.1:8000/v1", "concurrency": 8}}'

`MASIS_PROVIDERS__MY_SERVER__ADDRESS` refers to the table `my-server` if the file has one of that name. A `MASIS_`
variable that resembles the name of a setting is rejected, and the error suggests the right name. Any other unknown
one causes only a warning. Other variables:

"""

KEYS_ARE_NO_SETTINGS = """
**Keys of providers aren't settings.** They are read from the environment (`OPENAI_API_KEY`) or from a secrets file: the
one that `MASIS_SECRETS` names, otherwise `masis.secrets.toml` in the working folder or in your configuration folder.
A provider's table names the variable with `key_env`. Commands, pages, records and errors never show a key, and a value
that looks like one is never repeated, wherever you put it. [models.md](models.md) says where each key is sent.

## Errors in the file

All errors are reported at once, each with the file, the name, the allowed values, and the nearest valid name
or value:

"""

LIMITED = """
## Input limits

The same limits apply everywhere: HTTP, MCP, files on the page and on the command line, the form of a new audit, Python. If
input is rejected, the error names the limit. If a setting has a lower limit for an audit, the rest is stored but not checked, and the audit says so.

| limit | at most | HTTP | setting of an audit |
|---|---|---|---|
"""

YAML = """
## The keys of draft critique

The requirements of draft critique (DRAFT-CRITIQUE-CONFIG in [CONFORMANCE.md](CONFORMANCE.md)) are configured in YAML.
Here the file is TOML: the same keys have their own names in a table of the same name.

    retrieval:                          [retrieval.critique]
      critique:                         enabled = true
        enabled: true                   defaultStrictness = "moderate"
        defaultStrictness: moderate     minDraftLength = 50
        minDraftLength: 50

That table also accepts `strictness`. All names except `enabled` can also be used at the top level and with `--set`,
because they are names of options too; instead of `enabled`, use `enableCritique` (PipelineOptions).
Each name stands for this setting:

"""

MISTAKES = """\
max_iteration = 2
strictness = "strickt"

[loop]
improvement_threshold = 5

[providers.vllm]
base_url = "http://127.0.0.1:8000/v1"
"""


def page() -> str:
    """The page."""
    return "\n".join(_lines()).replace("\n\n\n", "\n\n") + "\n"


def _lines() -> Iterator[str]:
    yield INTRODUCTION.rstrip()
    yield from ("", "| variable | meaning |", "|---|---|")
    yield from (f"| `{name}` | {meaning} |" for name, meaning in OTHER_VARIABLES.items())
    yield KEYS_ARE_NO_SETTINGS.rstrip()
    yield from ("", *(f"    {line}".rstrip() for line in MISTAKES.splitlines()), "")
    yield from ("is reported", "", *(f"    {line}" for line in mistakes()))
    yield YAML.rstrip()
    yield from ("", "| key | setting | variable | default | may be |", "|---|---|---|---|---|")
    for key, name in YAML_KEYS.items():
        default = value_text(getattr(Settings(), name))
        variable = variable_of(("retrieval", "critique", key))
        yield f"| `{key}` | `{name}` | `{variable}` | {default} | {describe_range(schema_of((name,)))} |"
    yield from ("", "## An example", "", "`examples/configuration/masis.toml`:", "")
    yield from (f"    {line}".rstrip() for line in EXAMPLE.read_text(encoding="utf-8").splitlines())
    yield LIMITED.rstrip()
    for limit in LIMITS:
        source_note = f", or as the source has `{limit.name}`" if limit.source else ""
        setting = (
            f"`{limit.setting}` = {value_text(getattr(Settings(), limit.setting))}"
            if limit.setting
            else ""
        )
        yield f"| `{limit.name}` | {limit.most:,} {limit.of}{source_note} | {limit.status} | {setting} |"
    yield from ("", "## Every setting")
    for group in GROUPS:
        yield from _group(group)


def mistakes() -> list[str]:
    """Return the error about the mistakes shown."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "masis.toml"
        file.write_text(MISTAKES, encoding="utf-8")
        try:
            load(file=file, environment={})
        except SettingsError as error:
            return str(error).replace(f"{folder}/", "").splitlines()
    raise AssertionError("the mistakes are none")


def _group(group: SettingsGroup) -> Iterator[str]:
    yield from ("", f"### {group.title}: `[{group.table}]`", "", group.meaning, "")
    yield from ("| setting | default | may be | what it does | from |", "|---|---|---|---|---|")
    for row in rows(LoadedSettings(Settings(), {}), group):
        short = row.name.removeprefix(group.prefix)
        also = f"<br>`[{group.table}] {short}`" if short != row.name else ""
        yield f"| `{row.name}`{also} | {row.spelled} | {row.allowed} | {row.meaning} | {row.rule} |"
    for name in group.settings:
        if name in TABLES_OF_TABLES:
            yield from _inside(name)


def _inside(name: str) -> Iterator[str]:
    yield from (
        "",
        f"In a table `[{name}.NAME]`:",
        "",
        "| key | may be | what it does |",
        "|---|---|---|",
    )
    for key in schema_of((name, "NAME"))["properties"]:
        schema = schema_of((name, "NAME", key))
        yield f"| `{key}` | {describe_range(schema)} | {schema['description']} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
