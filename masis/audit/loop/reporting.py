"""How a run tells what happens in it: events for who watches, warnings for the record, lines for the log.

A step that waits for a model runs on a thread of its own, so that its retries show as they happen and a person who
stops the run need not wait for the reply. Log lines hold counts, scores and codes, never a text
(``specs/critic-loop.md``, 6.2 and REQ-CRITIC-SEC-003); texts are logged at DEBUG, where ``log_texts`` allows it. Each
line carries its figures as ``fields`` too, for a log that is read by programs (``masis/observers/log_records.py``).
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from pydantic import BaseModel

from masis.audit.loop.inputs import Clock, Events, Roles
from masis.audit.run_control import Notice, begun
from masis.schema.calls import Step
from masis.schema.case import Case
from masis.schema.run import Event, RunWarning
from masis.settings import Settings

T = TypeVar("T")
log = logging.getLogger("masis.audit.loop")

POLL_S = 0.2
"""How often a step that waits tells what its calls told, and looks whether the person asked to stop."""

LOGGED_AS_ERRORS = {"critique", "revision"}
"""Steps whose failure is an error in the log; so is any failure of a provider (REQ-CRITIC-OBS-003)."""


class Cancelled(Exception):
    """The person asked to stop."""


def figure(value: object) -> str:
    """A figure as a line of the log has it: three decimals are enough for people, JSON has them all."""
    return f"{value:.3f}" if isinstance(value, float) else "none" if value is None else str(value)


def counted(count: int, one: str) -> str:
    """``1 iteration``, ``2 iterations``."""
    return f"{count} {one if count == 1 else one + 's'}"


def _plain(text: object) -> object:
    """A record, or several, as JSON has them."""
    if isinstance(text, BaseModel):
        return text.model_dump(mode="json")
    return [_plain(each) for each in text] if isinstance(text, tuple) else text


class Telling:
    """What a run under way tells, and how it does a step."""

    def __init__(
        self, case: Case, roles: Roles, settings: Settings, run_id: str, cancelled: Callable[[], bool], clock: Clock
    ) -> None:
        self.case, self.roles, self.settings, self.run_id = case, roles, settings, run_id
        self.cancelled, self.clock = cancelled, clock
        self.conduct = roles.conduct
        self.warnings: list[RunWarning] = []
        self.seq = 0
        self.step_ms: dict[str, float] = {}

    def begin(self, step: Step, number: int | None) -> Events:
        """A step begins, unless the person asked to stop."""
        if self.cancelled():
            self.conduct.stop()
            raise Cancelled
        self.conduct.at(step, number)
        yield self.event("step_started", iteration=number, step=step)

    def doing(self, step: Step, work: Callable[[], T]) -> Generator[Event, None, T]:
        """Do the work of a step, on the clock; where it may wait for others, tell meanwhile what happens."""
        with self.timed(step):
            if not self.roles.waits:
                return work()
            ended = threading.Event()
            future = begun(work, "step", then=ended.set)
            while not ended.wait(POLL_S):  # to be woken by every notice would cost more than the notices do
                yield from self._told_so_far()
                if self.cancelled():
                    self.conduct.stop()  # the call under way is left to end by itself; nobody reads its reply
                    raise Cancelled
            yield from self._told_so_far()
            return future.result()

    def _told_so_far(self) -> Events:
        with suppress(queue.Empty):
            while True:
                yield self._event_of(self.conduct.told.get_nowait())

    def _event_of(self, notice: Notice) -> Event:
        if notice.kind == "call_retried":
            told = {"step": notice.step, "iteration": notice.iteration, **notice.data}
            self.log(logging.INFO, "call_retried", f"a call is tried again in step {notice.step}", told)
        return self.event(
            notice.kind, iteration=notice.iteration, step=notice.step, message=notice.message, data=dict(notice.data)
        )

    @contextmanager
    def timed(self, step: Step) -> Iterator[None]:
        """Adds the milliseconds a step took to the iteration's record, without waits in a provider's queue."""
        start = self.conduct.worked_s()
        try:
            yield
        finally:
            spent = (self.conduct.worked_s() - start) * 1000
            self.step_ms[step] = self.step_ms.get(step, 0.0) + spent

    def warn(self, code: str | None, step: Step | None, message: str, number: int | None = None) -> Events:
        """Something a reader of the run must know."""
        grave = code == "CRITIC-ERR-003" or (code is not None and step in LOGGED_AS_ERRORS)
        self.log(
            logging.ERROR if grave else logging.WARNING,
            "warning",
            _placed(code or "a warning", step, number),
            {"code": code, "step": step, "iteration": number},
        )
        self.log_text("warning", message)
        self.warnings.append(RunWarning(code=code, step=step, iteration=number, message=message))
        yield self.event("warning", iteration=number, step=step, message=message, data={"code": code})

    def log(self, level: int, event: str, words: str, told: Mapping[str, Any]) -> None:
        """A line of the log: in words, and its figures beside them under their names."""
        fields = {"event": event, "run": self.run_id, **told}
        log.log(level, "run %s: %s", self.run_id, words, extra={"fields": fields})

    def log_text(self, what: str, text: object) -> None:
        """At DEBUG, what was said in full, where the settings allow it (REQ-CRITIC-OBS-004)."""
        if self.settings.log_texts and log.isEnabledFor(logging.DEBUG):
            fields = {"event": "text", "run": self.run_id, what: _plain(text)}
            log.debug("run %s: %s: %s", self.run_id, what, text, extra={"fields": fields})

    def step_finished(self, step: Step, number: int | None, data: dict[str, Any]) -> Event:
        """The event that a step is finished; the log has its figures (the specs' "Telemetry Emitted")."""
        if log.isEnabledFor(logging.INFO):
            words = ", ".join(f"{name} {figure(value)}" for name, value in data.items() if name != "node")
            of = "" if number is None else f" of iteration {number}"
            self.log(logging.INFO, "step_finished", f"{step}{of}: {words}", {"step": step, "iteration": number, **data})
        return self.event("step_finished", iteration=number, step=step, data=data)

    def event(self, kind: Any, *, message: str = "", data: dict[str, Any] | None = None, **where: Any) -> Event:
        """The next event of the run."""
        self.seq += 1
        return Event(
            run_id=self.run_id,
            case_id=self.case.id,
            seq=self.seq,
            at=self.clock.now(),
            kind=kind,
            message=message,
            data=data or {},
            **where,
        )


def _placed(what: str, step: Step | None, number: int | None) -> str:
    """A warning with its place, where it has one: the limit of iterations belongs to no step."""
    place = [f"step {step}" if step else "", f"iteration {number}" if number is not None else ""]
    return f"{what} in {', '.join(filter(None, place))}" if any(place) else what
