"""Sends telemetry as the settings say, through the extension that can."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from masis.errors import SettingsError
from masis.extensions import load_all

if TYPE_CHECKING:
    from masis.settings import Settings


class Sender(Protocol):
    """What an extension names as its ``telemetry``: the module, or an object like it."""

    def start(self, settings: Settings) -> contextlib.AbstractContextManager[object]:
        """Measure all work of this process until the block ends. Raises MissingExtra."""

    def end(self, within_s: float = ...) -> None:
        """Send what is left, for at most these seconds."""


def send_telemetry(settings: Settings) -> contextlib.AbstractContextManager[object]:
    """Send telemetry as configured until the block ends, also if Ctrl-C ends it.

    Raises:
        MissingExtra: Telemetry is on and its packages aren't installed.
        SettingsError: Telemetry is on and nothing here can send it.

    """
    if settings.telemetry == "off":
        return contextlib.nullcontext()
    return _find_sender().start(settings)


def start_telemetry(settings: Settings) -> Callable[..., None] | None:
    """Start telemetry if it's on, for processes that can't use a block.

    Returns the function that sends what is left, which takes the seconds that it may take, or None.
    Raises like ``send_telemetry``.
    """
    if settings.telemetry == "off":
        return None
    sender = _find_sender()
    sender.start(settings)
    return sender.end


def _find_sender() -> Sender:
    sender: Sender | None = next(load_all("telemetry"), None)
    if sender is None:
        raise SettingsError("telemetry: nothing here can send it. Set telemetry = off.")
    return sender
