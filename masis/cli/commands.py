"""Commands with their help and exit codes, and the group that imports them on first use."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

import click

from masis.cli.output import printable, say
from masis.errors import MasisError, SettingsError

INTERRUPTED = 130
"""The exit code after Ctrl-C: 128 + SIGINT, as in shells."""

EXIT_CODES = "Exit code 0: success. 1: failure; the message says why. 2: wrong usage."
"""The default last line of a command's help."""


class JobFailed(click.ClickException):
    """Ends a command that failed completely or in part with exit code 1 and a message."""


def end_interrupted(message: str) -> NoReturn:
    """Exit with code 130 after a person stopped the command; the message says how to continue."""
    say(message)
    raise click.exceptions.Exit(INTERRUPTED)


def help_text(docstring: str) -> str:
    """Convert a docstring to click's help format. Indented examples keep their line breaks."""
    parts = []
    for part in inspect.cleandoc(docstring).split("\n\n"):
        lines = part.splitlines()
        if lines and all(line.startswith(("  ", "masis ")) for line in lines):
            # click rewraps a paragraph unless it starts with a line that holds only \b (click's
            # documentation, "Preventing Rewrapping"). inspect.cleandoc removes an indentation
            # that all lines share, so a docstring with examples only needs it again.
            indent = "" if part.startswith(" ") else "  "
            parts.append("\n".join(["\b", *(f"{indent}{line}" for line in lines)]))
        else:
            parts.append(part)
    return "\n\n".join(parts)


class RegisteredChoice(click.Choice[str]):
    """A choice among the names in a registry, which are read when an option is parsed or shown.

    Reading them when a command is imported would miss entries that are added later. It would also
    read the metadata of every installed package, even to print a version.
    """

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        # click.Choice.__init__ isn't called, because it would read the names now.
        self._names = names
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names that are currently registered."""
        return tuple(self._names())


class Command(click.Command):
    """A command whose help is its docstring, followed by the exit codes unless it states them."""

    def __init__(self, name: str | None, **settings: Any) -> None:
        text = help_text(settings.pop("help", None) or "")
        # matches "Exit code" and "exit code"
        epilog = None if "xit code" in text else EXIT_CODES
        super().__init__(name, help=text, epilog=epilog, **settings)


class Lazy(NamedTuple):
    """A command that is imported on first use: its location (``module:name``) and summary line."""

    target: str
    summary: str
    is_group: bool = False


class CommandGroup(click.Group):
    """A group that lists commands in order of definition and reports each error in one line.

    ``headings`` maps headings to commands, which are imported when they are called, so that the
    overview is fast.
    """

    command_class = Command

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
        """Return the names of the commands in the order of their definition."""
        return [*self.lazy, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, or return None if there is no such command."""
        if cmd_name not in self.lazy:
            return self.commands.get(cmd_name)
        module, _, name = self.lazy[cmd_name].target.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command, and suggest the nearest name for an unknown one."""
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            for name in (name for name, entry in self.lazy.items() if entry.is_group):
                group = self.get_command(ctx, name)
                if isinstance(group, click.Group) and args[0] in group.commands:
                    ctx.fail(f"There is no command {args[0]!r} here. Use: masis {name} {args[0]}")
            # shortened because the time difflib needs is quadratic in the length of the text
            near = difflib.get_close_matches(args[0][:40], names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" Commands: {', '.join(names)}."
            ctx.fail(f"There is no command {args[0][:80]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview without importing the commands."""
        own = {name: Lazy("", command.short_help or "") for name, command in self.commands.items()}
        width = max(map(len, self.list_commands(ctx)))
        for heading, entries in {**self.headings, **({"Commands": own} if own else {})}.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(f"{name:<{width}}", entry.summary) for name, entry in entries.items()]
                )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and report an error in one line instead of a traceback."""
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
        # caught before click, which would print "Aborted!" and exit with 1
        except KeyboardInterrupt:
            end_interrupted("Interrupted.")
        # click itself handles these three: it ends silently when the reader of a pipe, such as
        # 'head', has closed it
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
            bug = "This is a bug. Run 'masis --debug COMMAND ...' to see the traceback."
            usage, problem = None, f"Unexpected error: {type(error).__name__}: {error}. {bug}"
        # A problem may quote a file, and an escape sequence in it must not control the terminal.
        shown = printable(problem)
        raise JobFailed(shown) if usage is None else click.UsageError(shown, usage)
