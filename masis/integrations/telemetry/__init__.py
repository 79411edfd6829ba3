"""Telemetry through OpenTelemetry: a span a run, iteration, step and model call; every metric of
the rules.

    from masis.integrations import telemetry
    with telemetry.start(Settings(telemetry="otlp")):
        masis.run_audit(case)

With ``telemetry = "off"``, the default, nothing is started and OpenTelemetry is not even imported.
``otlp`` sends to the collector that the standard variables name
(``OTEL_EXPORTER_OTLP_ENDPOINT``...; the SDK reads them), ``console`` prints to stderr. A program
that has providers of its own hands them over instead; they are used and left as they are.

Numbers, names of models and ids are sent; the text of question, answer and evidence only with
``telemetry_texts``. A collector that is down neither delays nor fails an audit.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from masis.integrations import require
from masis.observers import log_records, observation
from masis.settings import Settings

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

END_WITHIN_S = 3.0
"""How long the end of a program waits for what is still to be sent."""


class Telemetry(contextlib.AbstractContextManager["Telemetry"]):
    """Telemetry under way; ``on`` is False where the settings say off. Ends when it is left as a
    context manager.
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
        """Measure no more, and send what is left, for at most so many seconds; harmless where it
        has ended before.
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
            sending = threading.Thread(target=self._shut, name="telemetry's end", daemon=True)
            sending.start()
            sending.join(within_s)

    def __exit__(self, *error: object) -> None:
        self.end()


_lock = threading.RLock()  # a signal may come while it is held
_started: Telemetry | None = None


def start(
    settings: Settings,
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> Telemetry:
    """Measure all that begins in this process from now on, as the settings say; once, however often
    it is called.

    With providers given they are used whatever ``telemetry`` says, and never shut down. Raises
    MissingExtra where OpenTelemetry is not installed.
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
    require("Telemetry needs packages of OpenTelemetry that are not installed", "otel", *modules)
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
    """End what ``start`` began, if it did: for the end of a process that keeps no handle."""
    with _lock:
        started = _started
    if started is not None:
        with contextlib.suppress(Exception):
            started.end(within_s)
