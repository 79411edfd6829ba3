"""What a run reports as it goes: events for observers, warnings for the record, lines for the log.

Log lines hold counts, scores and codes, never a text (REQ-CRITIC-SEC-003); texts are logged at DEBUG, where
``log_texts`` allows it (REQ-CRITIC-OBS-004). Each line also carries its values as ``fields``, for a log that is read by
programs (``masis/observers/log_records.py``).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from masis.audit.loop.inputs import Clock, Events
from masis.audit.run_control import Notice
from masis.schema.calls import Step
from masis.schema.run import Event, RunWarning

log = logging.getLogger("masis.audit.loop")

LOGGED_AS_ERRORS = {"critique", "revision"}
"""Steps whose failure is an error in the log; so is any failure of a provider (REQ-CRITIC-OBS-003)."""


def as_text(value: object) -> str:
    """Return a value as a log line shows it: numbers with three decimals, None as ``none``."""
    return f"{value:.3f}" if isinstance(value, float) else "none" if value is None else str(value)


def _plain(text: object) -> object:
    """Return a record, or several, as JSON values."""
    if isinstance(text, BaseModel):
        return text.model_dump(mode="json")
    return [_plain(each) for each in text] if isinstance(text, tuple) else text


class RunReporter:
    """Makes the events, warnings and log lines of one run, numbering the events."""

    def __init__(self, run_id: str, case_id: str, clock: Clock, *, log_texts: bool = False) -> None:
        self.run_id, self.case_id, self.clock, self.log_texts = run_id, case_id, clock, log_texts
        self.warnings: list[RunWarning] = []
        self.seq = 0

    def event(self, kind: Any, *, message: str = "", data: dict[str, Any] | None = None, **where: Any) -> Event:
        """Return the next event of the run."""
        self.seq += 1
        return Event(
            run_id=self.run_id,
            case_id=self.case_id,
            seq=self.seq,
            at=self.clock.now(),
            kind=kind,
            message=message,
            data=data or {},
            **where,
        )

    def notice(self, notice: Notice) -> Event:
        """Return the event of something that happened in a call to a model."""
        if notice.kind == "call_retried":
            fields = {"step": notice.step, "iteration": notice.iteration, **notice.data}
            self.log(logging.INFO, "call_retried", f"a call is tried again in step {notice.step}", fields)
        return self.event(
            notice.kind, iteration=notice.iteration, step=notice.step, message=notice.message, data=dict(notice.data)
        )

    def step_finished(self, step: Step, number: int | None, data: dict[str, Any]) -> Event:
        """Return the event that a step has finished; its values also go to the log."""
        if log.isEnabledFor(logging.INFO):
            words = ", ".join(f"{name} {as_text(value)}" for name, value in data.items() if name != "node")
            of = "" if number is None else f" of iteration {number}"
            self.log(logging.INFO, "step_finished", f"{step}{of}: {words}", {"step": step, "iteration": number, **data})
        return self.event("step_finished", iteration=number, step=step, data=data)

    def warn(self, code: str | None, step: Step | None, message: str, number: int | None = None) -> Events:
        """Add a warning to the run, the log and the events."""
        serious = code == "CRITIC-ERR-003" or (code is not None and step in LOGGED_AS_ERRORS)
        self.log(
            logging.ERROR if serious else logging.WARNING,
            "warning",
            _placed(code or "a warning", step, number),
            {"code": code, "step": step, "iteration": number},
        )
        self.log_text("warning", message)
        self.warnings.append(RunWarning(code=code, step=step, iteration=number, message=message))
        yield self.event("warning", iteration=number, step=step, message=message, data={"code": code})

    def log(self, level: int, event: str, words: str, fields: Mapping[str, Any]) -> None:
        """Write a log line, with its values beside the words under their names."""
        named = {"event": event, "run": self.run_id, **fields}
        log.log(level, "run %s: %s", self.run_id, words, extra={"fields": named})

    def log_text(self, what: str, text: object) -> None:
        """Write a text in full at DEBUG, where the settings allow it (REQ-CRITIC-OBS-004)."""
        if self.log_texts and log.isEnabledFor(logging.DEBUG):
            fields = {"event": "text", "run": self.run_id, what: _plain(text)}
            log.debug("run %s: %s: %s", self.run_id, what, text, extra={"fields": fields})


def _placed(what: str, step: Step | None, number: int | None) -> str:
    """Return a warning with its place, where it has one: the limit of iterations belongs to no step."""
    place = [f"step {step}" if step else "", f"iteration {number}" if number is not None else ""]
    return f"{what} in {', '.join(filter(None, place))}" if any(place) else what
