"""The group of commands: imports a command when it is called, turns what goes wrong into a line and an exit code."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import click

from masis.cli.output import printable
from masis.errors import MasisError, SettingsError

INTERRUPTED = 130
"""The exit code after Ctrl-C: 128 + SIGINT, as shells have it."""


EXIT_CODES = "Exit code 0: done. 1: it failed, and why. 2: wrong use."
"""What the help of a command says that doesn't say more."""


class Command(NamedTuple):
    """Where a command is defined (``module:name``), and its line in the overview."""

    target: str
    summary: str


class JobFailed(click.ClickException):
    """The job failed, wholly or in part; the message says so. Exit code 1."""

    def format_message(self) -> str:
        """The message with control characters shown, not obeyed."""
        return printable(self.message)


class CommandGroup(click.Group):
    """A group whose commands are named by ``entries`` and imported on use; ``headings`` puts them under headings.

    ``inner`` are the commands of its groups, so that one that is looked for here is pointed at.
    """

    def __init__(
        self,
        *args: Any,
        entries: Mapping[str, Command],
        headings: Mapping[str, Mapping[str, Command]] | None = None,
        inner: Mapping[str, Mapping[str, Command]] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.entries, self.headings, self.inner = entries, headings or {"Commands": entries}, inner or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of ``entries``: as a newcomer meets them."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported; None where there is none of that name."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        module, _, name = entry.target.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        if not isinstance(command, click.Group) and not command.epilog and "xit code" not in (command.help or ""):
            command.epilog = EXIT_CODES
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest right name for a wrong one."""
        if args and args[0] not in self.entries and not args[0].startswith("-"):
            if group := next((group for group, commands in self.inner.items() if args[0] in commands), None):
                ctx.fail(f"There is no command {args[0]!r} here. It is: masis {group} {args[0]}")
            near = difflib.get_close_matches(args[0][:40], self.entries, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" There are: {', '.join(self.entries)}."
            ctx.fail(f"There is no command {printable(args[0][:80])!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview from ``entries`` without importing a command."""
        width = max(map(len, self.entries))
        for heading, entries in self.headings.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:<{width}}", entry.summary) for name, entry in entries.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. What people can cause is one line; anything else says how to see more."""
        try:
            return super().invoke(ctx)
        except SettingsError as error:
            raise click.UsageError(printable(str(error))) from error
        except MasisError as error:
            raise JobFailed(str(error)) from error
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except OSError as error:
            place = error.filename or "a file"
            raise JobFailed(f"{place}: {error.strerror}. Check the place, its permissions and its space.") from error
        except Exception as error:
            if ctx.find_root().params.get("debug"):
                raise
            raise JobFailed(
                f"Unexpected: {type(error).__name__}: {error}. This is a bug; 'masis --debug COMMAND ...' shows where."
            ) from error
