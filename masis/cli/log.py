"""The log of a command on stderr: the lines of the loggers ``masis.*``, above the bar where one is drawn."""

from __future__ import annotations

import logging
import multiprocessing.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from masis.cli.output import Progress, say
from masis.observers.log_records import formatter
from masis.settings import Loaded, Settings, load
from masis.settings.reference import option_help

# Telemetry of a command that audits: begun where the settings ask for it, and sent before the command ends.


@contextmanager
def measured(settings: Settings) -> Iterator[None]:
    """Send telemetry as the settings say while entered; Ctrl-C ends it as well. Raises MissingExtra."""
    if settings.telemetry == "off":
        yield
        return
    from masis.integrations import telemetry

    with telemetry.start(settings):
        yield


def measure_worker(settings: Settings) -> None:
    """Send telemetry as the settings say in a worker process, until it ends."""
    if settings.telemetry == "off":
        return
    from masis.integrations import telemetry

    telemetry.start(settings)
    multiprocessing.util.Finalize(None, telemetry.end, exitpriority=100)  # such a process runs no atexit


F = TypeVar("F", bound=Callable[..., Any])

_FORMAT = "masis.log_format"
_LINES = "masis.observers.log_records"
LEVELS = ("error", "warning", "info", "debug")


class Lines(logging.Handler):
    """Each record as a line; control characters in it are shown, not obeyed."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record to stderr, from whatever thread it comes."""
        message = self.format(record)
        (Progress.shown.say if Progress.shown else say)(message)


def log_option(command: F) -> F:
    """Add ``--log`` and ``--log-format``."""
    command = click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        expose_value=False,
        is_eager=True,
        callback=lambda context, param, form: context.meta.update({_FORMAT: form}),
        help=option_help("log_format"),
    )(command)
    return click.option(
        "--log",
        type=click.Choice(LEVELS),
        metavar="LEVEL",
        default="warning",
        show_default=True,
        expose_value=False,
        callback=_shown_from,
        help="What the log on stderr shows: failures and retries, with info also scores and calls as they come (or: "
        "error, debug). Texts are in it only with debug and --set log_texts=true.",
    )(command)


def _shown_from(context: click.Context, param: click.Parameter, level: str) -> None:
    """Show the log from this level on, as long as the command lasts."""
    logger, lines = logging.getLogger("masis"), Lines()
    lines.setFormatter(formatter(context.meta.get(_FORMAT) or load().settings.log_format))
    before = logger.level
    logger.setLevel(level.upper())
    logger.addHandler(lines)
    context.meta[_LINES] = lines

    def restore() -> None:
        logger.removeHandler(lines)
        logger.setLevel(before)

    context.call_on_close(restore)


def follow(loaded: Loaded) -> None:
    """Give the log the form that ``--set log_format`` asks for, which is known only once all options are read."""
    context = click.get_current_context(silent=True)
    lines: Lines | None = context.meta.get(_LINES) if context else None
    if context is None or lines is None or context.meta.get(_FORMAT):
        return
    if loaded.origins["log_format"].kind == "flag":
        lines.setFormatter(formatter(loaded.settings.log_format))
