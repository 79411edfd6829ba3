"""Options that several commands share, each declared once; what is wrong here exits with 2, before
any work.
"""

from __future__ import annotations

import difflib
import logging
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import click
from click.core import ParameterSource

from masis.cli.commands import JobFailed, option, options
from masis.cli.output import Emit, LogLines, say
from masis.datasets.loading import chosen_profile
from masis.datasets.mapping.profile import Profile
from masis.errors import InputError, StoreError
from masis.observers.log_records import formatter
from masis.schema.actor import Actor
from masis.schema.columns import COLUMN_JOINER
from masis.schema.reading import MAPPED
from masis.schema.review import CaseState
from masis.schema.run import ReviewTier
from masis.services import Workbench
from masis.services.records import CaseFilter, Unguarded
from masis.settings import ROLES, LoadedSettings, Settings, database_path, default_reviewer, load
from masis.settings import safe_value as shown_setting
from masis.settings.reference import option_help

STDIO = Path("-")
"""Stands for stdin or stdout."""

FILE = click.Path(path_type=Path, dir_okay=False)
"""A file that a command reads or writes by itself: one that is there or is not."""

Names = tuple[str, ...]

BY = option("In whose name. Default: the one you are logged in with.", metavar="NAME")
YES = option("Don't ask.")
EMIT = options(Emit, as_json=option("Print JSON, one object a line, for programs.", "--json"))
DATABASE = option("The database. Default: MASIS_DB, else masis.db in your data folder.")
COST: dict[str, Any] = {"within": (0, None, True), "metavar": "USD"}


def existing(value: str | Path) -> Path:
    """Return a file or folder to read, or ``-`` for stdin. Raises BadParameter where it does not
    exist.
    """
    path = Path(value)
    if path != STDIO and not path.exists():
        raise click.BadParameter(f"{path}: does not exist. Check the name and the folder.")
    return path


def existing_file(value: str | Path) -> Path:
    """Return a file to read, or ``-`` for stdin. Raises BadParameter where it is a folder or does
    not exist.
    """
    if (path := existing(value)).is_dir():
        raise click.BadParameter(f"{path}: is a directory. Name one file of JSON Lines in it.")
    return path


def place(value: str | Path) -> Path | str:
    """Return a path, which has to exist, or an address such as ``s3://bucket/folder``, which stays
    text.
    """
    return value if isinstance(value, str) and "://" in value else existing(value)


def writable(value: str | Path) -> Path:
    """Return a file or folder to write. Raises BadParameter where there is no folder to put it
    into.
    """
    path = Path(value)
    if path != STDIO and not path.parent.is_dir():
        raise click.BadParameter(f"{path.parent}: there is no such folder. Create it first.")
    return path


def writable_file(value: str | Path) -> Path:
    """Return a file to write. Raises BadParameter where it is a folder, or where there is none to
    put it into.
    """
    if (path := writable(value)) != STDIO and path.is_dir():
        raise click.BadParameter(
            f"{path}: is a directory. Name a file in it.", param_hint="'--out'"
        )
    return path


def wrong(value: str, hint: str) -> click.BadParameter:
    """Return the error for a value that is not written as it has to be."""
    return click.BadParameter(f"{value[:40]}: {hint}")


def out(
    text: str = "The file to write; '-' for stdout.", *, folders: bool = False, **settings: Any
) -> Any:
    """Declare ``--out``. With ``folders`` it may be one: the command calls ``writable_file`` where
    it writes a file.
    """
    given = {
        "default": "-",
        "type": writable if folders else writable_file,
        "metavar": "PATH",
        **settings,
    }
    return option(text, "--out", **given)


def day(value: str | date) -> date:
    """Return a day that is written as ``2026-11-21``, or as ``30d``: so many days ago. Raises
    BadParameter.
    """
    if isinstance(value, date):
        return value
    ago = value.removesuffix("d")
    if value.endswith("d") and ago.isascii() and ago.isdigit() and len(ago) < 6:
        return datetime.now(UTC).date() - timedelta(days=int(ago))
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise wrong(value, "write a day as 2026-11-21, or 30d for thirty days ago.") from None


def given_options() -> dict[str, str]:
    """Return which parameters the person who runs the command gave, as they are written: ``{"db":
    "--db"}``.
    """
    context = click.get_current_context()
    return {
        each.name or "": each.opts[-1]
        for each in context.command.params
        if context.get_parameter_source(each.name or "") is ParameterSource.COMMANDLINE
    }


SHEET = option(
    "Which sheet of an Excel workbook is read: its name, or its place from 1.",
    "--sheet",
    metavar="NAME",
)


class FileOptions(NamedTuple):
    """How a file is read: by a profile, by the keys that hold its fields, which sheet of a
    workbook.
    """

    profile: Profile | str | None
    names: dict[str, str | None]
    sheet: str | None = None


def chosen_reading(
    profile_name: str | None = option(
        "Whose format it is. Default: detected from the first row.", "--as", metavar="PROFILE"
    ),
    maps: Names = option(
        "Which key or column holds a field, such as answer=response or query=inputs.question"
        " (repeat it, also evidence where several columns hold a chunk each); 'answer=' says that"
        " answers are to be drafted, 'id=' that ids are made of the content, 'evidence.id=' that"
        " [1] means the first chunk, 'evidence.split=|' what separates chunks in one text. Or a"
        " TOML file that names the paths (docs/files.md); a field that is named beside it goes"
        " before its path.",
        "--map",
        metavar="FIELD=KEY|FILE",
    ),
    sheet: str | None = SHEET,
) -> FileOptions:
    """Return the profile of ``--as`` or of a file that ``--map`` names, the field map of ``--map``,
    and the sheet.
    """
    names: dict[str, str | None] = {}
    files: list[str] = [] if profile_name is None else [profile_name]
    for given in maps:
        field, equals, key = given.partition("=")
        if not equals or field not in MAPPED:
            if not given.endswith(".toml"):
                near = difflib.get_close_matches(field, MAPPED, n=1)
                write = "Write answer=response, or a .toml file."
                hint = f"Did you mean {near[0]}={key[:40]}?" if near else write
                raise click.UsageError(f"--map {given[:60]}: names no field of a case. {hint}")
            files.append(given)
        elif field == "evidence" and key and names.get(field):  # a further column of it
            names[field] = f"{names[field]}{COLUMN_JOINER}{key}"
        elif names.setdefault(field, key or None) != (key or None):
            raise click.UsageError(f"--map {field}: is given twice. Keep one.")
    if len(files) > 1:
        raise click.UsageError("--as and --map FILE: give one of the two, once.")
    try:
        return FileOptions(chosen_profile(files[0] if files else None), names, sheet)
    except InputError as error:
        named = "--map" if files[0].endswith(".toml") else "--as"
        raise click.UsageError(f"{named}: {error}") from error


READING = options(chosen_reading)


@contextmanager
def spool_stdin(file: Path) -> Iterator[Path]:
    """Give the path of a file; what comes through stdin is put into a temporary one, so that it can
    be read twice.
    """
    if file != STDIO:
        yield file
        return
    with tempfile.NamedTemporaryFile(suffix="-stdin") as held:
        shutil.copyfileobj(sys.stdin.buffer, held)
        held.flush()
        yield Path(held.name)


def chosen_settings(models: Names = (), assignments: Names = ()) -> Settings:
    """Return settings from options, environment, file and defaults. Raises SettingsError or
    click.UsageError.
    """
    return Judges(models, assignments).load().settings


def _roles(models: Iterable[str]) -> dict[str, str]:
    for_all: dict[str, str] = {}
    for_one: dict[str, str] = {}
    for written in models:
        role, equals, model = written.partition("=") if "=" in written else ("", "", written)
        if not model.strip():
            raise click.UsageError(f"--model {written}: no model is named. Write --model offline.")
        if equals and role not in ROLES:
            near = difflib.get_close_matches(role, ROLES, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(ROLES)}."
            raise click.UsageError(f"--model {written}: there is no role {role!r}. {hint}")
        if not equals and for_all:
            raise click.UsageError(
                "--model: two models for all roles. Name the role: --model ROLE=MODEL."
            )
        if equals:
            for_one[role] = model
        else:
            for_all = dict.fromkeys(ROLES, model)
    return for_all | for_one


ASSIGNMENTS = option(
    "A setting of the audit, such as max_iterations=2. May be repeated.",
    "--set",
    metavar="KEY=VALUE",
)


class Judges(NamedTuple):
    """Who judges and by which settings, as it was written on the command line."""

    models: Names = option(
        f"Who judges: one model for all, or for a role ({', '.join(ROLES)}). Default: offline,"
        " which needs no key and no network. May be repeated.",
        "--model",
        metavar="[ROLE=]MODEL",
    )
    assignments: Names = ASSIGNMENTS

    def load(self) -> LoadedSettings:
        """Return the settings with the origin of each value, and show each warning about them once
        a command.

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
            if flags.setdefault(key.strip(), value.strip()) != value.strip():
                raise click.UsageError(
                    f"--set {key.strip()}: is set twice, with different values. Keep one."
                )
        loaded = load(flags, models=_roles(self.models))
        context = click.get_current_context(silent=True)
        meta = context.meta if context else {}
        shown: set[str] = meta.setdefault("masis.settings.warnings", set())
        for warning in dict.fromkeys(loaded.warnings):
            if warning not in shown:
                say(f"Note: {warning}")
        shown.update(loaded.warnings)
        if (lines := meta.get("masis.log")) and loaded.origins["log_format"].kind == "flag":
            # --set log_format is known only now
            lines.setFormatter(formatter(loaded.settings.log_format))
        return loaded


JUDGES = options(Judges)
LOG_FORMAT = option(option_help("log_format"))


def _configure_log(
    log: Literal["error", "warning", "info", "debug"] = option(
        "What the log on stderr shows: failures and retries, with info also scores and calls as"
        " they come (or: error, debug). Texts are in it only with debug and --set log_texts=true.",
        metavar="LEVEL",
        default="warning",
    ),
    log_format: Literal["text", "json"] | None = LOG_FORMAT,
) -> None:
    """Show the log on stderr from a level on, as long as the command lasts."""
    context, logger, lines = click.get_current_context(), logging.getLogger("masis"), LogLines()
    lines.setFormatter(formatter(log_format or load().settings.log_format))
    before = logger.level
    logger.setLevel(log.upper())
    logger.addHandler(lines)
    context.meta["masis.log"] = None if log_format else lines

    def restore() -> None:
        logger.removeHandler(lines)
        logger.setLevel(before)

    context.call_on_close(restore)


LOG = options(_configure_log)

STATES: tuple[CaseState, ...] = get_args(CaseState)
_ANY = "any"


def _range(value: str | tuple[Any, ...]) -> tuple[float | None, ...]:
    """Return a range of scores as the queue's address has it: ``0.2-0.8``, ``0.5-`` or ``-0.5``."""
    if isinstance(value, tuple):
        return value
    low, dash, high = value.partition("-")
    try:
        bounds = tuple(float(each) if each.strip() else None for each in (low, high))
    except ValueError:
        bounds = ()
    if not dash or not bounds or any(each is not None and not 0 <= each <= 1 for each in bounds):
        raise wrong(value, "write a range as 0.2-0.8, 0.5- or -0.5, from 0 to 1.")
    return bounds


FIELD = option("Only cases of this field.", "--field")
DATASET = option("Only cases of this data set.", "--dataset")
SEARCH = option("Only cases that hold all these words.", "--search", default="", metavar="WORDS")


SCORES: dict[str, Any] = {"type": _range, "metavar": "LOW-HIGH"}


def _filter(
    default: Sequence[CaseState],
    text: str = SEARCH,
    states: Names = option(""),  # its help depends on the default
    tiers: tuple[ReviewTier, ...] = option("How pressing a review is.", "--tier"),
    flags: Names = option("Only cases with this issue in the original answer.", "--flag"),
    reasons: Names = option("Only cases with this reason for review.", "--reason", metavar="CODE"),
    fields: Names = FIELD,
    datasets: Names = DATASET,
    models: Names = option("Only cases that this model audited.", "--model", metavar="MODEL"),
    reviewers: Names = option("Only cases that this person decided.", "--reviewer"),
    quality: Any = option("Only this range of quality, such as 0.2-0.8.", **SCORES),
    confidence: Any = option("Only this range of confidence.", **SCORES),
) -> CaseFilter:
    """Return the filter that the options describe; without --state, of cases in these ``default``
    states.
    """
    given: dict[str, Any] = {
        "text": text,
        "tiers": tiers,
        "flags": flags,
        "reasons": reasons,
        "fields": fields,
        "datasets": datasets,
        "models": models,
        "reviewers": reviewers,
    }
    for name, bounds in (("quality", quality), ("confidence", confidence)):
        given[f"{name}_from"], given[f"{name}_to"] = bounds or (None, None)
    chosen = states or default
    return CaseFilter.model_validate({**given, "states": () if _ANY in chosen else tuple(chosen)})


def filter_options(unless_given: str, states: Sequence[CaseState]) -> Any:
    """Declare the filters of the queue; the command takes them as a ``CaseFilter``.

    ``unless_given`` says in words which ``states`` hold without ``--state``.
    """
    state = (
        f"Only cases in this state: {', '.join(STATES)}; '{_ANY}' for all. Default: {unless_given}."
    )
    choice = option(state, "--state", type=click.Choice([*STATES, _ANY]), metavar="STATE")
    return options(partial(_filter, states), states=choice)


def open_workbench(database: Path) -> Workbench:
    """Open the workbench on a database, made or migrated where need be, with the settings of
    environment and file.
    """
    return Workbench.open(database, chosen_settings())


def open_existing(db: Path | None = DATABASE, unguarded: Unguarded = "refuse") -> Workbench:
    """Open the workbench on a database that exists. Raises JobFailed where there is none: reading
    creates nothing.

    ``unguarded`` says what to do where the decision log has lost its guards.
    """
    path = database_path(db)
    if not path.exists():
        raise JobFailed(str(no_database(path)))
    return Workbench.open(path, chosen_settings(), unguarded=unguarded)


WORKBENCH = options(open_existing)


def operator(name: str | None = None) -> Actor:
    """Return who a command acts for: the given name, else the one the person is logged in with."""
    return Actor(name=default_reviewer() if name is None else name)


def confirm(question: str, otherwise: str = "Nothing was removed.", *, yes: bool = False) -> None:
    """Ask whether to do something that stays, unless ``yes`` says so.

    Raises JobFailed at a no, UsageError where nobody can be asked.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("nobody can be asked here: say --yes.")
    if not click.confirm(question, err=True):
        raise JobFailed(otherwise)


def no_database(path: Path) -> StoreError:
    """Return the error about a database that was named and does not exist."""
    return StoreError(
        f"{path}: there is no database here. 'masis import FILE' or 'masis audit FILE' makes one."
    )
