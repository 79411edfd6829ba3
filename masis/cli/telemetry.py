"""Telemetry of a command that audits: begun where the settings ask for it, and sent before the command ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from masis.settings import Settings


@contextmanager
def measured(settings: Settings) -> Iterator[None]:
    """While entered, what is audited is measured as the settings say; Ctrl-C ends it as well. Raises MissingExtra."""
    if settings.telemetry == "off":
        yield
        return
    from masis.integrations import telemetry

    with telemetry.start(settings):
        yield
