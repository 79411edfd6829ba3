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

One file, `masis.toml`, holds every setting; each has a default, which is the spec's constant where a spec has one.
This page is written from the settings themselves by `tools/configuration.py`; a test holds them together.

    masis config show               every setting, its value, and the place it comes from
    masis config show --changed     only what differs from its default
    masis config check FILE         a file looked over: every wrong name and value
    masis config init               a file to begin with: every setting, commented out

The settings page of the workbench shows the same, and what `masis config show` prints takes the options of `masis
audit`, so that it says what that audit would go by.

## Who is heard

Strongest first:

1. **the command line**: `--set max_iterations=2`, `--model critic=openai`;
2. **the environment**: `MASIS_MAX_ITERATIONS=2`; an empty variable counts as not set;
3. **the file**: the one that `MASIS_CONFIG` names, else `masis.toml` in the working folder, else `masis.toml` in
   your configuration folder (on Linux `~/.config/masis`, on macOS `~/Library/Application Support/masis`). The first
   that is there is the file: files are not merged, so that what holds stands in one place;
4. **the defaults**.

Tables of servers and prices are put together value by value: the environment may give the address of a server whose
other values stand in the file. The server of the workbench reads its settings when it starts; its page says when
they have changed since.

From Python, `masis.Settings(critic="openai")` is made of defaults and arguments alone; who wants the file and the
environment to be heard asks for them:

    from masis.settings import load
    settings = load({"max_iterations": 2}).settings      # load().origins says where each value came from

A masis.toml is trusted like a script: it says where texts are sent, and with which key. Look at one that came with
a folder you were given.

## How a name is written

Every setting has one name, which may stand above all tables. It may also stand in the table of its group (below),
where some leave out their prefix: `max_rounds` in `[screening]` is `screening_max_rounds`. With `--set` the same
names are understood, with dots: `--set screening.max_rounds=3`. One setting under two names with different values
is an error that names both places; so is `--model critic=a` with `--set critic=b`.

Variables are `MASIS_` and the name in capitals; two underscores part the names where there are several:

    MASIS_MAX_ITERATIONS=2
    MASIS_SCREENING__MAX_ROUNDS=3
    MASIS_RETRIEVAL__CRITIQUE__AUTO_REVISE=true
    MASIS_PROVIDERS__VLLM__ADDRESS=http://127.0.0.1:8000/v1
    MASIS_PROVIDERS='{"vllm": {"address": "http://127.0.0.1:8000/v1", "concurrency": 8}}'

`MASIS_PROVIDERS__MY_SERVER__ADDRESS` means the table `my-server` where the file has one of that name. A `MASIS_`
variable that is nearly the name of a setting is refused with the right name; one that is like none is pointed out,
and does no harm. Other variables:

"""

KEYS_ARE_NO_SETTINGS = """
**Keys of providers are no settings.** They come from the environment (`OPENAI_API_KEY`) or from a secrets file: the
one that `MASIS_SECRETS` names, else `masis.secrets.toml` in the working folder, else in your configuration folder.
A provider's table names the variable with `key_env`. No command, page, record or error shows a key, and a value
that looks like one is not repeated anywhere, wherever it was put. [models.md](models.md) says which key goes where.

## Mistakes in the file

All mistakes are reported at once, each with file, name, the values allowed there, and the nearest right name
or value:

"""

LIMITED = """
## What is taken at once

At every door: HTTP, MCP, files by page and by command, the form of a new audit, Python. What is refused names the
limit. Where a setting bounds the same for an audit, the rest is taken, not checked, and the audit says so.

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

`strictness` is understood in that table too. All but `enabled` are understood above all tables and with `--set` as
well, since they are names of options too, and so is `enableCritique` (PipelineOptions) for
`enabled`. Each means the setting beside it:

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
        more = f", or as the source has `{limit.name}`" if limit.source else ""
        setting = (
            f"`{limit.setting}` = {value_text(getattr(Settings(), limit.setting))}"
            if limit.setting
            else ""
        )
        yield f"| `{limit.name}` | {limit.most:,} {limit.of}{more} | {limit.status} | {setting} |"
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
