"""Commands as functions: each parameter's default declares its option, the docstring is the help.

    @command("List the cases that wait.")
    def queue(
        limit: int = option("How many cases.", default=20, within=(1, 1000)),
        db: Path | None = DATABASE,
    ) -> None:

The annotation determines the kind of option: ``bool`` is a flag, ``Literal`` or the names of a
registry a choice, and a tuple an option that may be repeated (or several arguments). Errors and
exit codes are handled in one place, ``CommandGroup.invoke``.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NoReturn,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import click

from masis.cli.output import printable, say
from masis.errors import MasisError, SettingsError
from masis.schema.registry import RegisteredName

INTERRUPTED = 130
"""The exit code after Ctrl-C: 128 + SIGINT, as in shells."""

EXIT_CODES = "Exit code 0: done. 1: failed; the message says why. 2: wrong use."
"""The default last line of a command's help."""


class JobFailed(click.ClickException):
    """The job failed completely or in part, as the message explains. Exit code 1."""


def end_interrupted(message: str) -> NoReturn:
    """End a command that a person stopped; the message says how to continue."""
    say(message)
    raise click.exceptions.Exit(INTERRUPTED)


class _DeclaredParameter(NamedTuple):
    kind: type[click.Parameter]
    names: tuple[str, ...]
    settings: dict[str, Any]

    def make(self, name: str, annotation: Any) -> click.Parameter:
        settings = {**_settings_of(annotation, self.kind), **self.settings}
        if within := settings.pop("within", None):
            ranged = click.FloatRange if settings["type"] is float else click.IntRange
            settings["type"] = ranged(*within)
        names = self.names or (f"--{name.replace('_', '-')}",)
        return self.kind((name, *names) if self.kind is click.Option else (name,), **settings)


class _Group(NamedTuple):
    """Options that are passed to a function as one value, built by ``make``."""

    parameters: list[click.Parameter]
    make: Callable[..., Any]


def option(text: str, *names: str, **settings: Any) -> Any:
    """Declare an option as the default of a parameter.

    Args:
        text: The help text.
        names: Flags to use instead of ``--name``.
        settings: click's settings, and ``within`` for the bounds of a number.

    """
    default = settings.get("default")
    shown = default not in (None, "", ()) and not isinstance(default, bool)
    return _DeclaredParameter(
        click.Option, names, {"help": text, "show_default": shown, **settings}
    )


def argument(**settings: Any) -> Any:
    """Declare an argument as the default of a parameter. It is required unless ``required=False``."""
    return _DeclaredParameter(click.Argument, (), settings)


def options(make: Callable[..., Any], **changed: Any) -> Any:
    """Declare several options that are passed to a function as one value, built by ``make``.

    They are the defaults of the parameters of ``make``, or ``changed`` ones.
    """
    return _Group(*_read_parameters(make, changed))


def _read_parameters(
    function: Callable[..., Any], changed: Mapping[str, Any]
) -> tuple[list[click.Parameter], Callable[..., Any]]:
    """Return the options that a function's parameters declare, and the function that accepts their
    values.
    """
    plain = function.func if isinstance(function, partial) else function
    hints = get_type_hints(plain, include_extras=True)
    parameters, groups = list[click.Parameter](), dict[str, _Group]()
    for parameter in inspect.signature(function).parameters.values():
        declared = changed.get(parameter.name, parameter.default)
        if isinstance(declared, _Group):
            groups[parameter.name] = declared
            parameters += declared.parameters
        elif isinstance(declared, _DeclaredParameter):
            parameters.append(declared.make(parameter.name, hints[parameter.name]))

    def call(**arguments: Any) -> Any:
        values = {
            name: group.make(
                **{
                    parameter.name: arguments.pop(parameter.name)
                    for parameter in group.parameters
                    if parameter.name
                }
            )
            for name, group in groups.items()
        }
        return function(**arguments, **values)

    return parameters, call


def command(
    summary: str = "", name: str | None = None, group: click.Group | None = None
) -> Callable[[Callable[..., None]], click.Command]:
    """Turn a function into a command, and add it to ``group`` with ``summary`` as its line in the
    overview.
    """

    def made(function: Callable[..., None]) -> click.Command:
        text = help_text(function.__doc__ or "")
        parameters, call = _read_parameters(function, {})
        built = click.Command(
            name or function.__name__.replace("_", "-"),
            callback=call,
            params=parameters,
            help=text,
            short_help=summary,
            epilog=None if "xit code" in text else EXIT_CODES,
        )
        if group is not None:
            group.add_command(built)
        return built

    return made


def help_text(docstring: str) -> str:
    """Convert a docstring to click's help format. Indented examples keep their line breaks."""
    parts = []
    for part in inspect.cleandoc(docstring).split("\n\n"):
        lines = part.splitlines()
        if lines and all(line.startswith(("  ", "masis ")) for line in lines):
            # lost where all of a docstring's lines have it
            indent = "" if part.startswith(" ") else "  "
            parts.append("\n".join(["\b", *(f"{indent}{line}" for line in lines)]))
        else:
            parts.append(part)
    return "\n\n".join(parts)


class RegisteredChoice(click.Choice[str]):
    """A choice of the names of a registry, which it asks whenever an option is parsed or shown.

    Reading them when a command is imported would miss entries that are added later, and would open
    the metadata of every installed package even to print a version.
    """

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names that are valid now."""
        return tuple(self._names())


def _settings_of(annotation: Any, kind: type[click.Parameter]) -> dict[str, Any]:
    """Return click's settings for the type of a parameter."""
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(member for member in get_args(annotation) if member is not type(None))
    if get_origin(annotation) is Annotated:
        plain, *marks = get_args(annotation)
        names = next((mark.names for mark in marks if isinstance(mark, RegisteredName)), None)
        return {"type": RegisteredChoice(names)} if names else _settings_of(plain, kind)
    if get_origin(annotation) is tuple:
        inner = _settings_of(get_args(annotation)[0], kind)
        if kind is click.Argument:
            return inner | {"nargs": -1}
        return inner | {"multiple": True} | ({"metavar": "NAME"} if inner["type"] is str else {})
    if get_origin(annotation) is Literal:
        return {"type": click.Choice(get_args(annotation))}
    if annotation is bool:
        return {"is_flag": True, "default": False}
    settings = {"type": click.Path(path_type=Path) if annotation is Path else annotation}
    return settings | (
        {"metavar": _METAVARS[annotation]}
        if kind is click.Option and annotation in _METAVARS
        else {}
    )


_METAVARS = {int: "N", date: "DAY", Path: "PATH"}
"""The placeholder of an option's value in the help, by type."""


class Lazy(NamedTuple):
    """The location of a command (``module:name``), imported on first use, and its line in the
    overview.
    """

    target: str
    summary: str
    is_group: bool = False


class CommandGroup(click.Group):
    """A group that lists its commands in order of definition and turns errors into a line and an
    exit code.

    ``headings`` holds commands by heading. They are imported when called, so the overview stays
    fast.
    """

    def __init__(
        self, *args: Any, headings: Mapping[str, Mapping[str, Lazy]] | None = None, **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.help = help_text(self.help or "")
        self.headings = headings or {}
        self.lazy = {
            name: entry for entries in self.headings.values() for name, entry in entries.items()
        }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of their making: as a newcomer meets them."""
        return [*self.lazy, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported; None where there is none of that name."""
        if cmd_name not in self.lazy:
            return self.commands.get(cmd_name)
        module, _, name = self.lazy[cmd_name].target.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest right name for a wrong one."""
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            for name in (name for name, entry in self.lazy.items() if entry.is_group):
                group = self.get_command(ctx, name)
                if isinstance(group, click.Group) and args[0] in group.commands:
                    ctx.fail(f"There is no command {args[0]!r} here. Use: masis {name} {args[0]}")
            near = difflib.get_close_matches(args[0][:40], names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" There are: {', '.join(names)}."
            ctx.fail(f"There is no command {args[0][:80]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview without importing a command."""
        own = {name: Lazy("", command.short_help or "") for name, command in self.commands.items()}
        width = max(map(len, self.list_commands(ctx)))
        for heading, entries in {**self.headings, **({"Commands": own} if own else {})}.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(f"{name:<{width}}", entry.summary) for name, entry in entries.items()]
                )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. What people can cause is one line; anything else says how to
        see more.
        """
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            usage, problem = error.ctx, error.format_message()
        except SettingsError as error:
            usage, problem = ctx, str(error)
        except (click.ClickException, MasisError) as error:
            usage, problem = (
                None,
                (error.format_message() if isinstance(error, click.ClickException) else str(error)),
            )
        except KeyboardInterrupt:
            end_interrupted("Interrupted.")
        except (click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except OSError as error:
            where = error.filename or "a file"
            usage, problem = (
                None,
                f"{where}: {error.strerror}. Check the path, its permissions and the free space.",
            )
        except Exception as error:
            if ctx.find_root().params.get("debug"):
                raise
            bug = "This is a bug; 'masis --debug COMMAND ...' shows where."
            usage, problem = None, f"Unexpected error: {type(error).__name__}: {error}. {bug}"
        shown = printable(problem)  # text from a file must not control the terminal
        raise JobFailed(shown) if usage is None else click.UsageError(shown, usage)
