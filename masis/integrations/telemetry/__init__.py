"""Telemetry through OpenTelemetry: spans for each run, iteration, step and model call, and every
metric of the rules.

    from masis.integrations import telemetry
    with telemetry.start(Settings(telemetry="otlp")):
        masis.run_audit(case)

With ``telemetry = "off"``, the default, nothing is started and OpenTelemetry isn't imported.
``otlp`` sends to the collector that the standard variables set (``OTEL_EXPORTER_OTLP_ENDPOINT`` and
others, which the SDK reads), and ``console`` prints to stderr. A program with its own providers can
pass them in; they are used and never shut down.

Numbers, model names and ids are sent. The text of questions, answers and evidence is sent only with
``telemetry_texts``. An audit isn't delayed and doesn't fail if the collector is down.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from masis.observers import log_records, observation
from masis.schema.extras import require
from masis.settings import Settings

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

END_WITHIN_S = 3.0
"""Seconds that the end of a program waits for unsent data."""


class Telemetry(contextlib.AbstractContextManager["Telemetry"]):
    """Running telemetry, which ends when the context manager exits. ``on`` is False if the settings
    turn it off.
    """

    def __init__(
        self, leave: Callable[[], None] | None = None, shut: Callable[[], None] | None = None
    ) -> None:
        self._leave, self._shut = leave, shut

    @property
    def on(self) -> bool:
        """Whether anything is measured."""
        return self._leave is not None

    def end(self, within_s: float = END_WITHIN_S) -> None:
        """Stop measuring and send the remaining data, for at most ``within_s`` seconds. Calling it
        again is harmless.
        """
        global _started
        leave, self._leave = self._leave, None
        if leave is None:
            return
        leave()
        with _lock:
            if _started is self:
                _started = None
        if self._shut is not None:
            # On a daemon thread, so that a collector that doesn't answer can't keep the process
            # alive.
            sending = threading.Thread(target=self._shut, name="telemetry's end", daemon=True)
            sending.start()
            sending.join(within_s)

    def __exit__(self, *error: object) -> None:
        self.end()


_lock = threading.RLock()  # reentrant, because a signal handler may call end() while it's held
_started: Telemetry | None = None


def start(
    settings: Settings,
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> Telemetry:
    """Measure all work that starts in this process from now on. Repeated calls return the same
    telemetry.

    Providers passed as arguments are used whatever ``telemetry`` says, and never shut down. Raises
    MissingExtra if OpenTelemetry isn't installed.
    """
    global _started
    if tracer_provider is not None or meter_provider is not None:
        return _start_telemetry(settings, tracer_provider, meter_provider)
    if settings.telemetry == "off":
        return Telemetry()
    with _lock:
        _started = _started or _start_telemetry(settings, None, None)
        return _started


def _start_telemetry(
    settings: Settings, tracers: TracerProvider | None, meters: MeterProvider | None
) -> Telemetry:
    own = tracers is None and meters is None
    modules = (
        ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
        if own
        else ("opentelemetry.trace",)
    )
    require("Telemetry needs OpenTelemetry packages that aren't installed", "otel", *modules)
    from masis.integrations.telemetry.spans import Spans, place

    shut = None
    if own:
        from masis.integrations.telemetry import sdk

        tracers, meters, shut = sdk.providers(settings)
    undo = contextlib.ExitStack()
    undo.callback(observation.register(Spans(tracers, meters, texts=settings.telemetry_texts)))
    log_records.place.append(place)
    undo.callback(log_records.place.remove, place)
    return Telemetry(undo.close, shut)


def end(within_s: float = END_WITHIN_S) -> None:
    """End the telemetry of ``start``, if any, for processes that don't keep the handle."""
    with _lock:
        started = _started
    if started is not None:
        with contextlib.suppress(Exception):
            started.end(within_s)
