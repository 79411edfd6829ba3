"""Options that several commands share. An invalid value exits with code 2 before work starts."""

from __future__ import annotations

import difflib
import functools
import logging
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import click
from click.core import ParameterSource

from masis.cli.commands import JobFailed
from masis.cli.output import Emit, LogLines, say
from masis.datasets.loading import chosen_profile
from masis.datasets.mapping.profile import Profile
from masis.errors import InputError, StoreError
from masis.observers.log_records import formatter
from masis.schema.actor import Actor
from masis.schema.columns import COLUMN_JOINER
from masis.schema.reading import MAPPED
from masis.schema.review import CaseState
from masis.schema.rules import ReviewTier
from masis.schema.systems import checked_name
from masis.services import Workbench
from masis.services.records import CaseFilter, Unguarded
from masis.settings import ROLES, LoadedSettings, Settings, database_path, default_reviewer, load
from masis.settings import safe_value as shown_setting
from masis.settings.reference import option_help

STDIO = Path("-")
"""The path that means stdin or stdout."""

PATH = click.Path(path_type=Path)

FILE = click.Path(path_type=Path, dir_okay=False)
"""The click type of a file that a command reads or writes itself, whether or not it exists yet."""

Names = tuple[str, ...]

Body = Callable[..., None]
"""The function of a command, which click calls with its parameters."""

by_option = click.option(
    "--by", metavar="NAME", help="The name to record. Default: your login name."
)
yes_option = click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
json_option = click.option(
    "--json",
    "emit",
    is_flag=True,
    callback=lambda _context, _option, as_json: Emit(as_json),
    help="Print JSON for programs, one object per line.",
)
"""``--json``, passed as ``emit``, which writes the command's results."""

database_option = click.option(
    "--db",
    type=PATH,
    metavar="PATH",
    help="The database. Default: MASIS_DB, otherwise masis.db in your data folder.",
)
url_option = click.option(
    "--url",
    metavar="ADDRESS",
    help="Work on this server instead of a file, with the token in MASIS_TOKEN (docs/api.md).",
)
insecure_option = click.option(
    "--insecure",
    is_flag=True,
    help="Allow http to another machine. Anyone on the network can read the token and all text.",
)
iteration_option = click.option(
    "--iteration",
    type=click.IntRange(1, 5),
    metavar="N",
    default=1,
    show_default=True,
    help="1: the original answer; 2: revision 2.",
)
COST = click.FloatRange(0, min_open=True)
"""The click type of an amount in US dollars."""


def existing(value: str | Path) -> Path:
    """Return the path of an existing file or folder, or ``-`` for stdin.

    Raises BadParameter if it doesn't exist.
    """
    path = Path(value)
    if path != STDIO and not path.exists():
        raise click.BadParameter(f"{path}: doesn't exist. Check the name and the folder.")
    return path


def existing_file(value: str | Path) -> Path:
    """Return the path of an existing file, or ``-`` for stdin.

    Raises BadParameter if it is a folder or doesn't exist.
    """
    if (path := existing(value)).is_dir():
        raise click.BadParameter(f"{path} is a folder. Name one JSON Lines file in it.")
    return path


def existing_or_address(value: str | Path) -> Path | str:
    """Return an existing path, or an address such as ``s3://bucket/folder`` as text."""
    return value if isinstance(value, str) and "://" in value else existing(value)


def writable(value: str | Path) -> Path:
    """Return the path of a file or folder to write.

    Raises BadParameter if its parent folder doesn't exist.
    """
    path = Path(value)
    if path != STDIO and not path.parent.is_dir():
        raise click.BadParameter(f"{path.parent}: this folder doesn't exist. Create it first.")
    return path


def writable_file(value: str | Path) -> Path:
    """Return the path of a file to write.

    Raises BadParameter if it is a folder or its parent folder doesn't exist.
    """
    if (path := writable(value)) != STDIO and path.is_dir():
        raise click.BadParameter(f"{path} is a folder. Name a file in it.", param_hint="'--out'")
    return path


def wrong(value: str, hint: str) -> click.BadParameter:
    """Return the error for a value in the wrong format."""
    return click.BadParameter(f"{value[:40]}: {hint}")


def out_option(
    text: str = "The file to write; '-' for stdout.",
    default: str | Path = "-",
    *,
    folders: bool = False,
) -> Callable[[Body], Body]:
    """Return the decorator for ``--out``.

    With ``folders`` the value may be a folder; a command that needs a file after all calls
    ``writable_file``.
    """
    return click.option(
        "--out",
        type=writable if folders else writable_file,
        default=default,
        show_default=True,
        metavar="PATH",
        help=text,
    )


def day(value: str | date) -> date:
    """Parse a day written as ``2026-11-21``, or as ``30d`` for 30 days ago. Raises BadParameter."""
    # click also passes defaults, and values that it has converted before, through the type.
    if isinstance(value, date):
        return value
    ago = value.removesuffix("d")
    # isdigit is also true of characters such as "²", and a timedelta overflows from a billion days.
    if value.endswith("d") and ago.isascii() and ago.isdigit() and len(ago) < 6:
        return datetime.now(UTC).date() - timedelta(days=int(ago))
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise wrong(value, "write a day as 2026-11-21, or 30d for 30 days ago.") from None


def given_options() -> dict[str, str]:
    """Return the options typed on the command line, such as ``{"db": "--db"}``.

    The keys are parameter names, the values are flags. Options with values from defaults or from
    the environment are left out.
    """
    context = click.get_current_context()
    return {
        parameter.name or "": parameter.opts[-1]
        for parameter in context.command.params
        if context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
    }


sheet_option = click.option(
    "--sheet",
    metavar="NAME",
    help="The sheet of an Excel workbook to read: its name, or its number from 1.",
)


class FileOptions(NamedTuple):
    """How to read a file: its profile, the keys of its fields, and the sheet of a workbook."""

    profile: Profile | str | None
    names: dict[str, str | None]
    sheet: str | None = None
    system: str | None = None


def chosen_reading(profile_name: str | None, maps: Names, sheet: str | None) -> FileOptions:
    """Combine ``--as``, ``--map`` and ``--sheet`` into the options for reading a file.

    Raises click.UsageError if a field doesn't exist or is given twice, or if both a profile and a
    map file are given.
    """
    names: dict[str, str | None] = {}
    files: list[str] = [] if profile_name is None else [profile_name]
    for written in maps:
        field, equals, key = written.partition("=")
        if not equals or field not in MAPPED:
            if not written.endswith(".toml"):
                near = difflib.get_close_matches(field, MAPPED, n=1)
                write = "Write answer=response, or a .toml file."
                hint = f"Did you mean {near[0]}={key[:40]}?" if near else write
                raise click.UsageError(f"--map {written[:60]}: a case has no such field. {hint}")
            files.append(written)
        elif field == "evidence" and key and names.get(field):  # another column with evidence
            names[field] = f"{names[field]}{COLUMN_JOINER}{key}"
        elif names.setdefault(field, key or None) != (key or None):
            raise click.UsageError(f"--map {field} is given twice. Keep one.")
    # --as and --map FILE both name a profile.
    if len(files) > 1:
        raise click.UsageError("Use --as or --map FILE, not both, and only once.")
    try:
        return FileOptions(chosen_profile(files[0] if files else None), names, sheet)
    except InputError as error:
        named = "--map" if files[0].endswith(".toml") else "--as"
        raise click.UsageError(f"{named}: {error}") from error


def reading_options(command: Body) -> Body:
    """Add ``--as``, ``--map``, ``--sheet`` and ``--system``, passed as ``reading``."""

    @click.option(
        "--as",
        "profile_name",
        metavar="PROFILE",
        help="The format of the file. Default: detected from the first row.",
    )
    @click.option(
        "--map",
        "maps",
        multiple=True,
        metavar="FIELD=KEY|FILE",
        help="The key or column of a field, such as answer=response or query=inputs.question."
        " Repeat it for each field, and for each column that holds a chunk of evidence."
        " 'answer=' ignores answers and drafts new ones, 'id=' derives ids from the content,"
        " 'evidence.id=' makes [1] mean the first chunk, and 'evidence.split=|' sets the separator"
        " of chunks in one text. FILE is a TOML file with the keys of all fields (docs/files.md);"
        " FIELD=KEY overrides it.",
    )
    @sheet_option
    @click.option(
        "--system",
        metavar="NAME",
        help="The system that gave the answers, such as v2, for rows that don't name one. Their"
        " ids are then those of the questions.",
    )
    # wraps also copies __click_params__, the list to which click's decorators add.
    @functools.wraps(command)
    def call(
        profile_name: str | None,
        maps: Names,
        sheet: str | None,
        system: str | None,
        **arguments: Any,
    ) -> None:
        named = None if system is None else checked_name(system)
        reading = chosen_reading(profile_name, maps, sheet)._replace(system=named)
        command(reading=reading, **arguments)

    return call


@contextmanager
def spool_stdin(file: Path) -> Iterator[Path]:
    """Yield the path of a file that can be read twice: stdin is copied to a temporary file."""
    if file != STDIO:
        yield file
        return
    with tempfile.NamedTemporaryFile(suffix="-stdin") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        # The file is opened again by its name, and unflushed data would be missing.
        copy.flush()
        yield Path(copy.name)


def chosen_settings(models: Names = (), assignments: Names = ()) -> Settings:
    """Return the settings from options, environment, file and defaults.

    Raises SettingsError or click.UsageError.
    """
    return Judges(models, assignments).load().settings


def _models_by_role(models: Iterable[str]) -> dict[str, str]:
    """Parse the values of ``--model``, such as ``openai`` or ``critic=openai``, into roles."""
    for_all: dict[str, str] = {}
    for_one: dict[str, str] = {}
    for written in models:
        # Without "=", partition would return the model as the role.
        role, equals, model = written.partition("=") if "=" in written else ("", "", written)
        if not model.strip():
            raise click.UsageError(
                f"--model {written}: the model is missing. Write --model offline."
            )
        if equals and role not in ROLES:
            near = difflib.get_close_matches(role, ROLES, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Roles: {', '.join(ROLES)}."
            raise click.UsageError(f"--model {written}: there is no role {role!r}. {hint}")
        if not equals and for_all:
            raise click.UsageError(
                "--model: you gave two models for all roles. Name the role: --model ROLE=MODEL."
            )
        if equals:
            for_one[role] = model
        else:
            for_all = dict.fromkeys(ROLES, model)
    return for_all | for_one


class Judges(NamedTuple):
    """The models and settings from the command line."""

    models: Names
    assignments: Names

    def load(self) -> LoadedSettings:
        """Return the settings with the origin of each value, and show their warnings.

        A warning is shown once per command, even if the command loads its settings again.

        Raises SettingsError or click.UsageError.
        """
        flags: dict[str, Any] = {}
        for assignment in self.assignments:
            key, equals, value = assignment.partition("=")
            if not equals:
                written = shown_setting(assignment)
                raise click.UsageError(
                    f"--set {written}: write it as KEY=VALUE, like max_iterations=2."
                )
            # The same value given twice is harmless, for example in a script that adds a default.
            if flags.setdefault(key.strip(), value.strip()) != value.strip():
                raise click.UsageError(
                    f"--set {key.strip()} is given twice with different values. Keep one."
                )
        loaded = load(flags, models=_models_by_role(self.models))
        # There is no context outside of a command.
        context = click.get_current_context(silent=True)
        meta = context.meta if context else {}
        shown: set[str] = meta.setdefault("masis.settings.warnings", set())
        for warning in dict.fromkeys(loaded.warnings):
            if warning not in shown:
                say(f"Note: {warning}")
        shown.update(loaded.warnings)
        if (lines := meta.get("masis.log")) and loaded.origins["log_format"].kind == "flag":
            # --log is handled first, before the value of --set log_format is known
            lines.setFormatter(formatter(loaded.settings.log_format))
        return loaded


def judges_options(command: Body) -> Body:
    """Add ``--model`` and ``--set``, passed as ``judges``."""

    @click.option(
        "--model",
        "models",
        multiple=True,
        metavar="[ROLE=]MODEL",
        help="The model for all roles, or ROLE=MODEL for one role"
        f" ({', '.join(ROLES)}). Default: offline, which needs no key and no network. Can be"
        " repeated.",
    )
    @click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting of the audit, such as max_iterations=2. Can be repeated.",
    )
    @functools.wraps(command)
    def call(models: Names, assignments: Names, **arguments: Any) -> None:
        command(judges=Judges(models, assignments), **arguments)

    return call


log_format_option = click.option(
    "--log-format", type=click.Choice(["text", "json"]), help=option_help("log_format")
)


def _configure_log(
    log: Literal["error", "warning", "info", "debug"], log_format: Literal["text", "json"] | None
) -> None:
    """Show the log on stderr from this level until the command ends."""
    context, logger, lines = click.get_current_context(), logging.getLogger("masis"), LogLines()
    lines.setFormatter(formatter(log_format or load().settings.log_format))
    before = logger.level
    logger.setLevel(log.upper())
    logger.addHandler(lines)
    context.meta["masis.log"] = None if log_format else lines

    def restore() -> None:
        logger.removeHandler(lines)
        logger.setLevel(before)

    # Tests run several commands in one process.
    context.call_on_close(restore)


def log_options(command: Body) -> Body:
    """Add ``--log`` and ``--log-format``, which configure the log on stderr."""

    @click.option(
        "--log",
        type=click.Choice(["error", "warning", "info", "debug"]),
        metavar="LEVEL",
        default="warning",
        show_default=True,
        help="The level of the log on stderr: error, warning (failures and retries), info (scores"
        " and calls as well) or debug. Text is logged only with debug and --set log_texts=true.",
    )
    @log_format_option
    @functools.wraps(command)
    def call(
        log: Literal["error", "warning", "info", "debug"],
        log_format: Literal["text", "json"] | None,
        **arguments: Any,
    ) -> None:
        _configure_log(log, log_format)
        command(**arguments)

    return call


STATES: tuple[CaseState, ...] = get_args(CaseState)
_ANY = "any"


_Range = tuple[float | None, ...]


def _range(value: str | _Range) -> _Range:
    """Parse a range of scores as in the queue's address: ``0.2-0.8``, ``0.5-`` or ``-0.5``."""
    # click also passes values that it has converted before through the type.
    if isinstance(value, tuple):
        return value
    # No score is negative, so the first hyphen separates the bounds.
    low, dash, high = value.partition("-")
    try:
        bounds = tuple(float(bound) if bound.strip() else None for bound in (low, high))
    except ValueError:
        bounds = ()
    if not dash or not bounds or any(bound is not None and not 0 <= bound <= 1 for bound in bounds):
        raise wrong(value, "write a range as 0.2-0.8, 0.5- or -0.5, from 0 to 1.")
    return bounds


field_option = click.option(
    "--field", "fields", multiple=True, metavar="NAME", help="Only cases in this field."
)
dataset_option = click.option(
    "--dataset", "datasets", multiple=True, metavar="NAME", help="Only cases in this data set."
)
system_option = click.option(
    "--system", "systems", multiple=True, metavar="NAME", help="Only answers of this system."
)
import_option = click.option(
    "--import",
    "imports",
    multiple=True,
    metavar="ID",
    help="Only cases of this import (masis import prints its ID).",
)
queue_option = click.option(
    "--queue",
    default="",
    metavar="NAME",
    help="Only cases of this queue ('masis queues list').",
)
search_option = click.option(
    "--search",
    "text",
    default="",
    metavar="WORDS",
    help="Only cases that contain all these words, or have them in a note.",
)


def filter_options(default_text: str, default: Sequence[CaseState]) -> Callable[[Body], Body]:
    """Return the decorator that adds the filters of the queue, passed as ``case_filter``.

    Args:
        default_text: The default of ``--state`` in words, for the help text.
        default: The states selected without ``--state``.

    """

    def decorate(command: Body) -> Body:
        @search_option
        @click.option(
            "--state",
            "states",
            type=click.Choice([*STATES, _ANY]),
            multiple=True,
            metavar="STATE",
            help=f"Only cases in this state: {', '.join(STATES)}; '{_ANY}' for all. Default: "
            f"{default_text}.",
        )
        @click.option(
            "--tier",
            "tiers",
            type=click.Choice(get_args(ReviewTier)),
            multiple=True,
            help="Only cases with this review priority.",
        )
        @click.option(
            "--flag",
            "flags",
            multiple=True,
            metavar="NAME",
            help="Only cases with this issue in the original answer.",
        )
        @click.option(
            "--reason",
            "reasons",
            multiple=True,
            metavar="CODE",
            help="Only cases with this reason for review.",
        )
        @field_option
        @dataset_option
        @system_option
        @import_option
        @queue_option
        @click.option(
            "--model",
            "models",
            multiple=True,
            metavar="MODEL",
            help="Only cases that this model audited.",
        )
        @click.option(
            "--reviewer",
            "reviewers",
            multiple=True,
            metavar="NAME",
            help="Only cases that this person decided.",
        )
        @click.option(
            "--tagged", "tags", multiple=True, metavar="TAG", help="Only cases with this tag."
        )
        @click.option(
            "--similar-to",
            "similar_to",
            multiple=True,
            metavar="CASE",
            help="Only the other cases with nearly the same answer as this one.",
        )
        @click.option(
            "--quality",
            type=_range,
            metavar="LOW-HIGH",
            help="Only this range of quality, such as 0.2-0.8.",
        )
        @click.option(
            "--confidence", type=_range, metavar="LOW-HIGH", help="Only this range of confidence."
        )
        @functools.wraps(command)
        def call(
            text: str,
            states: tuple[CaseState | Literal["any"], ...],
            tiers: tuple[ReviewTier, ...],
            flags: Names,
            reasons: Names,
            fields: Names,
            datasets: Names,
            systems: Names,
            imports: Names,
            queue: str,
            models: Names,
            reviewers: Names,
            tags: Names,
            similar_to: Names,
            quality: _Range | None,
            confidence: _Range | None,
            **arguments: Any,
        ) -> None:
            chosen = states or default
            values: dict[str, Any] = {
                "text": text,
                "states": () if _ANY in chosen else chosen,
                "tiers": tiers,
                "flags": flags,
                "reasons": reasons,
                "fields": fields,
                "datasets": datasets,
                "systems": systems,
                "imports": imports,
                "queue": queue,
                "models": models,
                "reviewers": reviewers,
                "tags": tags,
                "similar_to": similar_to,
            }
            for name, bounds in (("quality", quality), ("confidence", confidence)):
                values[f"{name}_from"], values[f"{name}_to"] = bounds or (None, None)
            command(case_filter=CaseFilter.model_validate(values), **arguments)

        return call

    return decorate


def open_workbench(database: Path) -> Workbench:
    """Open the workbench on a database with the settings from environment and file.

    Creates or migrates the database if needed.
    """
    return Workbench.open(database, chosen_settings())


def open_existing(db: Path | None, unguarded: Unguarded = "refuse") -> Workbench:
    """Open the workbench on an existing database, for commands that must not create one.

    Args:
        db: The database; None for the default one.
        unguarded: What to do if the decision log has lost its triggers.

    Raises:
        JobFailed: The database doesn't exist.

    """
    path = database_path(db)
    if not path.exists():
        raise JobFailed(str(no_database(path)))
    return Workbench.open(path, chosen_settings(), unguarded=unguarded)


def workbench_option(command: Body) -> Body:
    """Add ``--db``, passed as ``workbench``, opened on the existing database."""

    @database_option
    @functools.wraps(command)
    def call(db: Path | None, **arguments: Any) -> None:
        command(workbench=open_existing(db), **arguments)

    return call


def operator(name: str | None = None) -> Actor:
    """Return the actor of a command: the given name, or else the user's login name."""
    return Actor(name=default_reviewer() if name is None else name)


def confirm(question: str, if_declined: str = "Nothing was removed.", *, yes: bool = False) -> None:
    """Ask for confirmation of a permanent change, unless ``yes`` is set.

    ``if_declined`` is the message if the person answers no.

    Raises:
        JobFailed: The person answered no.
        click.UsageError: Stdin isn't a terminal, so the question can't be asked.

    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("not an interactive terminal; pass --yes.")
    # on stderr, because stdout may go to a file or to another program
    if not click.confirm(question, err=True):
        raise JobFailed(if_declined)


def no_database(path: Path) -> StoreError:
    """Return the error for a database that doesn't exist."""
    return StoreError(
        f"{path}: the database doesn't exist. Create it with 'masis import FILE' or 'masis audit"
        " FILE'."
    )
