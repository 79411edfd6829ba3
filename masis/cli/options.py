"""Arguments and options that several commands share, checked before any work: what is wrong here exits with 2."""

from __future__ import annotations

import difflib
import getpass
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from masis.cli import log
from masis.cli.group import JobFailed
from masis.cli.output import printable, say
from masis.datasets.loading import chosen_profile
from masis.datasets.mapping.profile import Profile
from masis.errors import InputError, StoreError
from masis.schema.reading import CHUNK_FIELDS, FIELDS
from masis.services import Actor, Workbench
from masis.services.records import Unguarded
from masis.settings import ROLES, Loaded, Settings, database_path, load
from masis.settings import shown as shown_setting

F = TypeVar("F", bound=Callable[..., Any])

STDIO = Path("-")
"""Stands for stdin or stdout."""

_SHOWN_WARNINGS = "masis.settings.warnings"


def checked_input(ctx: click.Context | None, param: click.Parameter | None, value: Any) -> Any:
    """Return a path to read, or several. Raises BadParameter where one is a folder or does not exist."""
    for path in value if isinstance(value, tuple) else (value,):
        if path is None or path == STDIO:
            continue
        if path.is_dir():
            raise click.BadParameter(f"{printable(str(path))}: is a directory. Name one file of JSON Lines in it.")
        _check_exists(path)
    return value


def _checked_sources(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    for path in value:
        _check_exists(path)
    return value


def _check_exists(path: Path) -> None:
    if not path.exists():
        raise click.BadParameter(f"{printable(str(path))}: does not exist. Check the name and the folder.")


def checked_output(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """Return a path to write. Raises BadParameter where it is a folder, or where there is none to put it into."""
    return value if value is None else not_a_folder(_checked_place(ctx, param, value))


def not_a_folder(value: Path) -> Path:
    """Return a path to write a file to. Raises BadParameter where it is a folder."""
    if value != STDIO and value.is_dir():
        raise click.BadParameter(f"{printable(str(value))}: is a directory. Name a file in it.", param_hint="'--out'")
    return value


def _checked_place(_ctx: click.Context, _param: click.Parameter, value: Path) -> Path:
    if value == STDIO:
        return value
    if not value.parent.is_dir():
        raise click.BadParameter(f"{printable(str(value.parent))}: there is no such folder. Create it first.")
    return value


def input_argument(name: str, **options: Any) -> Callable[[F], F]:
    """An argument that is a file to read (or files, by ``nargs``), or ``-`` for stdin."""
    return click.argument(name, type=click.Path(path_type=Path), callback=checked_input, **options)


class _Place(click.ParamType[Path | str]):
    """A file, a folder, or an address such as ``s3://bucket/folder``, which stays text."""

    name = "place"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path | str:
        """Return the path, which has to exist, or the address."""
        if isinstance(value, Path) or "://" in value:
            return cast("Path | str", value)
        path = Path(value)
        if path != STDIO:
            _check_exists(path)
        return path


def places_argument(name: str, **options: Any) -> Callable[[F], F]:
    """Add an argument that is a file, ``-``, a folder or an address (or several, by ``nargs``)."""
    return click.argument(name, type=_Place(), **options)


def sources_argument(name: str, **options: Any) -> Callable[[F], F]:
    """Arguments that are files or folders."""
    return click.argument(name, nargs=-1, type=click.Path(path_type=Path), callback=_checked_sources, **options)


def out_option(*, folders: bool = False, **options: Any) -> Callable[[F], F]:
    """Add ``--out``: a file to write, or ``-`` for stdout.

    With ``folders`` it may be a folder that is there: the command itself calls ``not_a_folder`` where it writes a file.
    """
    check = _checked_place if folders else checked_output
    return click.option("--out", type=click.Path(path_type=Path), callback=check, **options)


def database_option(command: F) -> F:
    """Add ``--db``."""
    return click.option(
        "--db",
        type=click.Path(path_type=Path),
        help="The database. Default: MASIS_DB, else masis.db in your data folder.",
    )(command)


def reading_options(command: F) -> F:
    """Add ``--as`` and ``--map``: ``chosen_reading`` reads them."""
    command = click.option(
        "--map",
        "maps",
        metavar="FIELD=KEY|FILE",
        multiple=True,
        help="Which key or column holds a field, such as answer=response or query=inputs.question (repeat it); "
        "'answer=' says that answers are to be drafted. Or a TOML file that names the paths (docs/files.md).",
    )(command)
    return click.option(
        "--as", "profile_name", metavar="PROFILE", help="Whose format it is. Default: detected from the first row."
    )(command)


def chosen_reading(name: str | None, maps: Iterable[str]) -> tuple[Profile | str | None, dict[str, str | None]]:
    """Return the profile of ``--as`` or of a file that ``--map`` names, and the field map of ``--map``."""
    names: dict[str, str | None] = {}
    files: list[str] = [] if name is None else [name]
    for given in maps:
        field, equals, key = given.partition("=")
        if not equals or field not in (*FIELDS, *CHUNK_FIELDS):
            if not given.endswith(".toml"):
                near = difflib.get_close_matches(field, (*FIELDS, *CHUNK_FIELDS), n=1)
                hint = (
                    f"Did you mean {near[0]}={printable(key[:40])}?"
                    if near
                    else "Write answer=response, or a .toml file."
                )
                raise click.UsageError(f"--map {printable(given[:60])}: names no field of a case. {hint}")
            files.append(given)
        elif names.setdefault(field, key or None) != (key or None):
            raise click.UsageError(f"--map {field}: is given twice. Keep one.")
    if len(files) > 1:
        raise click.UsageError("--as and --map FILE: give one of the two, once.")
    try:
        return chosen_profile(files[0] if files else None), names
    except InputError as error:
        option = "--map" if files[0].endswith(".toml") else "--as"
        raise click.UsageError(f"{option}: {printable(str(error))}") from error


def json_option(command: F) -> F:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line, for programs.")(command)


@contextmanager
def spooled(file: Path) -> Iterator[Path]:
    """Give the path of a file; what comes through stdin is put into a temporary one, so that it can be read twice."""
    if file != STDIO:
        yield file
        return
    with tempfile.NamedTemporaryFile(suffix="-stdin") as held:
        shutil.copyfileobj(sys.stdin.buffer, held)
        held.flush()
        yield Path(held.name)


def settings_options(command: F) -> F:
    """Add ``--model`` and ``--set``."""
    command = click.option(
        "--set",
        "assignments",
        metavar="KEY=VALUE",
        multiple=True,
        help="A setting of the audit, such as max_iterations=2. May be repeated.",
    )(command)
    return click.option(
        "--model",
        "models",
        metavar="[ROLE=]MODEL",
        multiple=True,
        help=f"Who judges: one model for all, or for a role ({', '.join(ROLES)}). Default: offline, which needs no "
        "key and no network. May be repeated.",
    )(command)


def chosen_settings(models: Iterable[str], assignments: Iterable[str]) -> Settings:
    """Return settings from options, environment, file and defaults. Raises SettingsError or click.UsageError."""
    return chosen(models, assignments).settings


def chosen(models: Iterable[str], assignments: Iterable[str]) -> Loaded:
    """Return the same with the origin of each value, and show the warnings about them."""
    flags: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise click.UsageError(f"--set {shown_setting(assignment)}: write it as KEY=VALUE, like max_iterations=2.")
        if flags.setdefault(key.strip(), value.strip()) != value.strip():
            raise click.UsageError(f"--set {printable(key.strip())}: is set twice, with different values. Keep one.")
    loaded = load(flags, models=_roles(models))
    log.follow(loaded)
    _say_once(loaded.warnings)
    return loaded


def _say_once(warnings: Iterable[str]) -> None:
    """Show each warning once a command, however often its settings are read."""
    context = click.get_current_context(silent=True)
    shown: set[str] = context.meta.setdefault(_SHOWN_WARNINGS, set()) if context else set()
    for warning in warnings:
        if warning not in shown:
            shown.add(warning)
            say(f"Note: {warning}")


def _roles(models: Iterable[str]) -> dict[str, str]:
    for_all: dict[str, str] = {}
    for_one: dict[str, str] = {}
    for written in models:
        role, equals, model = written.partition("=") if "=" in written else ("", "", written)
        if not model.strip():
            raise click.UsageError(f"--model {printable(written)}: no model is named. Write --model offline.")
        if equals and role not in ROLES:
            near = difflib.get_close_matches(role, ROLES, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(ROLES)}."
            raise click.UsageError(f"--model {printable(written)}: there is no role {printable(role)!r}. {hint}")
        if not equals and for_all:
            raise click.UsageError("--model: two models for all roles. Name the role: --model ROLE=MODEL.")
        if equals:
            for_one[role] = model
        else:
            for_all = dict.fromkeys(ROLES, model)
    return for_all | for_one


def open_workbench(database: Path) -> Workbench:
    """Open the workbench on a database, made or migrated where need be, with the settings of environment and file."""
    return Workbench.open(database, chosen((), ()).settings)


def open_existing(named: Path | None, unguarded: Unguarded = "refuse") -> Workbench:
    """Open the workbench on a database that exists. Raises JobFailed where there is none: reading creates nothing.

    ``unguarded`` says what to do where the decision log has lost its guards.
    """
    path = database_path(named)
    if not path.exists():
        raise JobFailed(str(no_database(path)))
    return Workbench.open(path, chosen((), ()).settings, unguarded=unguarded)


def operator(name: str | None = None) -> Actor:
    """Return who a command acts for: the given name, else the one the person is logged in with."""
    if name is None:
        try:
            name = getpass.getuser()
        except (OSError, KeyError):
            name = "somebody without a name"
    return Actor(name=name)


def confirm_removal(question: str, otherwise: str = "Nothing was removed.") -> None:
    """Ask whether to do something that stays. Raises JobFailed at a no, UsageError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise click.UsageError("nobody can be asked here: say --yes.")
    if not click.confirm(question, err=True):
        raise JobFailed(otherwise)


def no_database(path: Path) -> StoreError:
    """Return the error about a database that was named and does not exist."""
    return StoreError(f"{path}: there is no database here. 'masis import FILE' or 'masis audit FILE' makes one.")
