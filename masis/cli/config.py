"""``masis config`` shows and checks settings; ``masis completion`` prints completion scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Literal

import click
from click.shell_completion import get_completion_class

from masis.api.roles import resolve_model
from masis.audit import output_validation
from masis.audit.checks import checks_named
from masis.cli import options as shared
from masis.cli.commands import Command, CommandGroup, JobFailed
from masis.cli.options import Judges
from masis.cli.output import Emit, say
from masis.errors import MissingExtra, MissingKey, MissingModel, SettingsError
from masis.extensions import extensions
from masis.extensions import load as load_object
from masis.schema.wording import count_noun
from masis.settings import (
    GROUPS,
    LoadedSettings,
    config_file,
    config_places,
    database_path,
    load,
    secret,
    secrets_file,
)
from masis.settings.names import OTHER_VARIABLES
from masis.settings.ranges import value_text
from masis.settings.reference import SettingRow, all_rows, rows, template

Check = Callable[[], object]

DEFAULT_FILE = Path("masis.toml")


def check_named(loaded: LoadedSettings) -> None:
    """Raise SettingsError if the settings of an audit name something that doesn't exist.

    The message says in which file or option the name is.
    """
    if errors := _name_errors(loaded):
        raise SettingsError("\n".join(errors))


def _name_errors(loaded: LoadedSettings, more: Iterable[tuple[str, Check]] = ()) -> list[str]:
    """Return an error, with its place, for each name in the settings that doesn't exist.

    A missing key, an extra that isn't installed, and a model that isn't downloaded yet don't count
    as errors.
    """
    settings, errors = loaded.settings, list[str]()
    roles = [
        (role, partial(resolve_model, model, role, settings))
        for role, model in settings.models().items()
    ]
    checks: list[tuple[str, Check]] = [*roles, *more]
    checks.append(
        ("output_validator", partial(output_validation.validator_named, settings.output_validator))
    )
    checks.append(("checks", partial(checks_named, settings.checks)))
    for setting, check in checks:
        try:
            check()
        # These depend on the machine, not on the file.
        except (MissingKey, MissingExtra, MissingModel):
            continue
        except SettingsError as error:
            place = loaded.origins[setting].place
            errors.append(f"{place}, {error}" if place else str(error))
    return errors


def _all_name_errors(loaded: LoadedSettings) -> list[str]:
    """Return the errors in all names in the settings, including those that extensions use."""
    return _name_errors(
        loaded,
        (
            (models.setting, partial(resolve_model, name, models.role, loaded.settings))
            for extension in extensions()
            for models in extension.model_lists
            for name in load_object(models.names)(loaded.settings)
        ),
    )


@click.group(cls=CommandGroup)
def config() -> None:
    """Show the settings and where each is set, and check or create the configuration file.

      masis config show
      masis config check masis.toml
      masis config init

    A value on the command line (--set, --model) overrides the environment
    (MASIS_MAX_ITERATIONS=2), which overrides the configuration file, which overrides the default.
    The configuration file is the one named by MASIS_CONFIG, otherwise masis.toml in the current
    folder, otherwise masis.toml in your configuration folder. Provider keys aren't settings and are
    never shown.
    """


@config.command(short_help="Show every setting, its value, and where it is set.")
@shared.judges_options
@click.option("--changed", is_flag=True, help="Only settings that differ from their defaults.")
@shared.json_option
@shared.database_option
def show(judges: Judges, changed: bool, emit: Emit, db: Path | None) -> None:
    """Print every setting with its value and where it is set.

      masis config show
      masis config show --changed
      masis config show --model openai --set max_iterations=2 --json

    Pass --model and --set as to 'masis audit' to see the settings of that audit. Keys are never
    printed, only whether one is set.
    """
    loaded, secrets, database = judges.load(), secrets_file(), database_path(db)
    rows_by_group = {
        group: [row for row in rows(loaded, group) if row.changed or not changed]
        for group in GROUPS
    }
    every = [row for group in rows_by_group.values() for row in group]
    record = {
        "file": loaded.file,
        "looked_for": config_places(),
        "secrets_file": secrets,
        "database": database,
        "warnings": loaded.warnings,
        "settings": {
            row.name: {
                "value": row.value,
                "default": row.default,
                "changed": row.changed,
                "origin": {"kind": row.origin.kind, "place": row.origin.place or None},
            }
            for row in every
        },
    }
    lines = [
        f"Configuration file  {loaded.file or f'none (looked for {_config_places_text()})'}",
        f"Secrets file        {secrets or 'none'}",
        f"Database            {database}",
    ]
    name = max((len(row.name) for row in every), default=0)
    # A longer value, such as a path, moves the origins only in its own line.
    value = min(40, max((len(row.spelled) for row in every), default=0))
    for group, settings in rows_by_group.items():
        lines += ["", group.title] if settings else []
        for row in settings:
            lines.append(
                f"{'*' if row.changed else ' '} {row.name:<{name}}  {row.spelled:<{value}} "
                f" {_value_origin(row)}"
            )
    lines += [
        "",
        (
            "* differs from its default"
            if any(row.changed for row in every)
            else "All settings have their default values."
        ),
    ]
    lines += [
        "",
        "Every setting has an environment variable: MASIS_ and its name in capitals. Others:",
    ]
    lines += [f"  {variable:<14}  {meaning}" for variable, meaning in OTHER_VARIABLES.items()]
    emit(record, lines)
    for error in _all_name_errors(loaded):
        say(error)


@config.command(short_help="Check a configuration file.")
@click.argument("file", type=shared.FILE, required=False)
@shared.json_option
def check(file: Path | None, emit: Emit) -> None:
    """Check a configuration file, by default the one in use, and show each error with a hint.

      masis config check
      masis config check deploy/masis.toml

    Environment variables are ignored. Exit code 0: the file is valid. 2: it has errors.
    """
    checked_file = file or config_file()
    if file is not None and not file.exists():
        raise click.UsageError(f"{file}: doesn't exist. Check the name and the folder.")
    if checked_file is None:
        raise click.UsageError(
            f"There is no file to check. None of these exist: {_config_places_text()}."
        )
    # The result must depend on the file only.
    loaded = load(environment={}, file=checked_file)
    if errors := _all_name_errors(loaded):
        raise SettingsError("\n".join(errors))
    number = sum(
        row.origin.kind == "file" and not isinstance(row.value, list) for row in all_rows(loaded)
    )
    emit({"file": checked_file, "settings": number})
    say(
        f"{checked_file} is valid. It sets {count_noun(number, 'setting')}; 'masis config show'"
        " shows the values in effect."
    )


@config.command(short_help="Write a configuration file that lists every setting.")
@shared.out_option("The file to write, or '-' for stdout.", DEFAULT_FILE)
@click.option(
    "--user",
    is_flag=True,
    help="Write it to your configuration folder, which is created if needed.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def init(out: Path, user: bool, force: bool) -> None:
    """Write a configuration file that lists every setting with its explanation, valid values and
    default.

      masis config init
      masis config init --user
      masis config init --out - | less

    All settings in it are commented out, so the file has no effect until you edit it.
    """
    if user:
        out = config_places()[-1]
        out.parent.mkdir(parents=True, exist_ok=True)
    if out == shared.STDIO:
        click.echo(template(), nl=False)
        return
    if out.exists() and not force:
        raise JobFailed(
            f"{out} already exists. Name another file with --out, or overwrite it with --force."
        )
    out.write_text(template(), encoding="utf-8")
    say(f"Wrote {out}. Uncomment the settings you want to change, then run 'masis config check'.")


def _value_origin(row: SettingRow) -> str:
    """Return where a value is set. For a provider's key, add whether its variable is set."""
    if row.origin.kind == "default":
        return "default"
    place = (
        f"{row.origin.place} (default: {value_text(row.default)})"
        if row.default is not None
        else row.origin.place
    )
    if row.name.startswith("providers.") and row.name.endswith(".key_env"):
        return f"{place}, {'set' if secret(str(row.value)) else 'not set'}"
    return place


def _config_places_text() -> str:
    return ", ".join(map(str, config_places()))


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print the completion script of 'masis' for SHELL.

    masis completion bash >> ~/.bashrc
    masis completion zsh >> ~/.zshrc
    masis completion fish > ~/.config/fish/completions/masis.fish
    """
    completion_class = get_completion_class(shell)
    assert completion_class is not None  # click has a class for each of these shells
    click.echo(
        # click reads _MASIS_COMPLETE when the shell asks for completions.
        completion_class(
            click.get_current_context().find_root().command, {}, "masis", "_MASIS_COMPLETE"
        ).source()
    )
