"""``masis config``: show the settings and where each comes from, check the file, write one to begin with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from masis.cli.check_models import misnamed_anywhere
from masis.cli.group import Command, CommandGroup, JobFailed
from masis.cli.options import STDIO, chosen, database_option, out_option, settings_options
from masis.cli.output import printable, say
from masis.errors import SettingsError
from masis.schema.wording import counted
from masis.settings import (
    GROUPS,
    Loaded,
    config_file,
    config_places,
    database_path,
    load,
    secret,
    secrets_file,
)
from masis.settings.names import OTHER_VARIABLES
from masis.settings.ranges import spelled
from masis.settings.reference import Row, all_rows, rows, template

COMMANDS = {
    "show": Command("masis.cli.config:show", "Show every setting, its value, and where it comes from."),
    "check": Command("masis.cli.config:check", "Check a configuration file."),
    "init": Command("masis.cli.config:init", "Write a configuration file with every default in it."),
}

DEFAULT_FILE = Path("masis.toml")


@click.group("config", cls=CommandGroup, entries=COMMANDS)
def config() -> None:
    """Show the settings and where each comes from; check the configuration file.

    \b
      masis config show
      masis config check masis.toml
      masis config init

    A value comes, strongest first, from the command line (--set, --model), the environment (MASIS_MAX_ITERATIONS=2),
    the file masis.toml, the defaults. The file is the one that MASIS_CONFIG names, else masis.toml in the working
    folder, else masis.toml in your configuration folder. Keys of providers are no settings, and never shown.
    """  # noqa: D301 (click reads the backspace)


@click.command()
@settings_options
@click.option("--changed", is_flag=True, help="Only settings that differ from their defaults.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@database_option
def show(models: tuple[str, ...], assignments: tuple[str, ...], changed: bool, as_json: bool, db: Path | None) -> None:
    """Print every setting with its value and the place it comes from.

    \b
      masis config show
      masis config show --changed
      masis config show --model openai --set max_iterations=2 --json

    With options as those of 'masis audit', it shows the settings of that audit. Keys are never printed: only whether
    there is one.
    """  # noqa: D301 (click reads the backspace)
    loaded = chosen(models, assignments)
    if as_json:
        click.echo(json.dumps(_as_json(loaded, db, changed), ensure_ascii=False, indent=2))
    else:
        for line in (*_places(loaded, db), *_table(loaded, changed), *_variables()):
            click.echo(printable(line).rstrip())
    for error in misnamed_anywhere(loaded):
        say(error)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
def check(file: Path | None) -> None:
    """Check FILE (default: the one in use): every wrong name and value is shown with its cure.

    \b
      masis config check
      masis config check deploy/masis.toml

    The environment is not considered. Exit code 0: all in order. 2: something is wrong.
    """  # noqa: D301 (click reads the backspace)
    found = file or config_file()
    if file is not None and not file.exists():
        raise click.UsageError(f"{printable(str(file))}: does not exist. Check the name and the folder.")
    if found is None:
        raise click.UsageError(f"There is no file to check: none of {_spoken(config_places())} is there.")
    loaded = load(environment={}, file=found)
    if errors := misnamed_anywhere(loaded):
        raise SettingsError("\n".join(errors))
    number = sum(row.origin.kind == "file" and not isinstance(row.value, list) for row in all_rows(loaded))
    say(f"{found}: in order. It sets {counted(number, 'setting')}; 'masis config show' shows what applies.")


@click.command()
@out_option(default=DEFAULT_FILE, show_default=True, help="The file to write, or '-' for stdout.")
@click.option("--user", is_flag=True, help="Write it into your configuration folder, which is made where need be.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def init(out: Path, user: bool, force: bool) -> None:
    """Write a configuration file with every setting in it: what it does, what it may be, and its default.

    \b
      masis config init
      masis config init --user
      masis config init --out - | less

    Everything in it is commented out, so that it changes nothing until you do.
    """  # noqa: D301 (click reads the backspace)
    if user:
        out = config_places()[-1]
        out.parent.mkdir(parents=True, exist_ok=True)
    if out == STDIO:
        click.echo(template(), nl=False)
        return
    if out.exists() and not force:
        raise JobFailed(f"{out}: is there already. Name another file with --out, or write over it with --force.")
    out.write_text(template(), encoding="utf-8")
    say(f"{out}: written. Uncomment what you want to change; 'masis config check' checks it.")


def _places(loaded: Loaded, db: Path | None) -> Iterator[str]:
    looked = f"none (looked for {_spoken(config_places())})"
    yield f"Configuration file  {loaded.file or looked}"
    yield f"Secrets file        {secrets_file() or 'none'}"
    yield f"Database            {database_path(db)}"


def _table(loaded: Loaded, changed: bool) -> Iterator[str]:
    every = [row for row in all_rows(loaded) if row.changed or not changed]
    names, values = (max((len(text) for text in texts), default=0) for texts in _columns(every))
    for group in GROUPS:
        found = [row for row in rows(loaded, group) if row.changed or not changed]
        if found:
            yield from ("", group.title)
        for row in found:
            mark = "*" if row.changed else " "
            yield f"{mark} {row.name:<{names}}  {row.spelled:<{min(values, 40)}}  {_origin(row)}{_key(row)}"
    yield from ("", "* differs from its default" if any(row.changed for row in every) else "Nothing is changed.")


def _columns(found: Iterable[Row]) -> tuple[list[str], list[str]]:
    return [row.name for row in found], [row.spelled for row in found]


def _origin(row: Row) -> str:
    if row.origin.kind == "default":
        return "default"
    return f"{row.origin.place} (default: {spelled(row.default)})" if row.default is not None else row.origin.place


def _key(row: Row) -> str:
    """Whether the key that a provider's table names is there; never the key."""
    if not row.name.startswith("providers.") or not row.name.endswith(".key_env"):
        return ""
    return ", set" if secret(str(row.value)) else ", not set"


def _variables() -> Iterator[str]:
    yield from ("", "Every setting has a variable: MASIS_ and its name in capitals. Others are:")
    for name, meaning in OTHER_VARIABLES.items():
        yield f"  {name:<14}  {meaning}"


def _as_json(loaded: Loaded, db: Path | None, changed: bool) -> dict[str, Any]:
    secrets = secrets_file()
    return {
        "file": str(loaded.file) if loaded.file else None,
        "looked_for": [str(place) for place in config_places()],
        "secrets_file": str(secrets) if secrets else None,
        "database": str(database_path(db)),
        "warnings": list(loaded.warnings),
        "settings": {row.name: _row_as_json(row) for row in all_rows(loaded) if row.changed or not changed},
    }


def _row_as_json(row: Row) -> dict[str, Any]:
    origin = {"kind": row.origin.kind, "place": row.origin.place or None}
    return {"value": row.value, "default": row.default, "changed": row.changed, "origin": origin}


def _spoken(places: Iterable[Path]) -> str:
    return ", ".join(map(str, places))
