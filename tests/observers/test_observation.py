"""Observers receive what starts, what happens and how it ended; and can do no harm."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import masis
from masis import Case, Settings
from masis.api.audits import run_audit, run_audit_async
from masis.api.draft_critique import critique_draft
from masis.observers import observation
from masis.schema.calls import ModelCall
from masis.schema.drafts import CritiqueResult
from masis.schema.run import Event, Run
from masis.schema.screening import Abstract, Screening

CASE = Case.model_validate(
    {"id": "1", "query": "How?", "answer": "So it is [1].", "evidence": [{"id": "1", "text": "So it is."}]}
)


@dataclass
class Seen:
    """Keeps what it receives."""

    started: list[observation.Start] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    ended: list[tuple[Any, BaseException | None]] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)

    def on_start(self, start: observation.Start) -> observation.Listener:
        self.started.append(start)
        self.threads.add(threading.get_ident())
        return _Listener(self)


@dataclass
class _Listener:
    seen: Seen

    def on_event(self, event: observation.Event) -> None:
        self.seen.events.append(event)
        self.seen.threads.add(threading.get_ident())

    def on_end(self, result: observation.Result | None, error: BaseException | None) -> None:
        self.seen.ended.append((result, error))
        self.seen.threads.add(threading.get_ident())


class Clumsy:
    """Fails at everything."""

    def on_start(self, start: observation.Start) -> observation.Listener:
        raise RuntimeError("no")


class Late(Clumsy):
    """Fails once it listens."""

    def on_start(self, start: observation.Start) -> observation.Listener:
        return self

    def on_event(self, event: observation.Event) -> None:
        raise RuntimeError("no")

    def on_end(self, result: observation.Result | None, error: BaseException | None) -> None:
        raise RuntimeError("no")


@pytest.fixture
def seen() -> Iterator[Seen]:
    found = Seen()
    leave = observation.register(found)
    yield found
    leave()
    assert not observation._observers


def test_an_audit_is_reported_from_its_start_to_its_run(seen: Seen) -> None:
    run = run_audit(CASE, Settings(max_iterations=1))
    assert seen.started == [observation.AuditStart(CASE)]
    assert [event.kind for event in seen.events][:2] == ["run_started", "step_started"]
    assert all(isinstance(event, Event) for event in seen.events)
    assert seen.ended == [(run, None)]


def test_observers_are_called_on_the_thread_that_does_the_work(seen: Seen) -> None:
    import asyncio

    asyncio.run(run_audit_async(CASE, Settings(max_iterations=1)))
    assert len(seen.threads) == 1
    assert threading.get_ident() not in seen.threads


def test_a_draft_is_reported_around_its_audit(seen: Seen) -> None:
    result = critique_draft("How?", "So it is.", [{"id": "1", "content": "So it is."}])
    assert seen.started[0] == observation.DraftStart("How?", "So it is.", 1)
    assert isinstance(seen.started[1], observation.AuditStart)
    assert seen.started[1].operation == "critique_draft"
    assert isinstance(seen.ended[0][0], Run)
    assert isinstance(seen.ended[1][0], CritiqueResult)
    assert seen.ended[1][0] == result


def test_a_screening_is_reported(seen: Seen) -> None:
    found = masis.screen_abstracts("Does it help?", [Abstract(id="1", title="It helps", text="A trial.")])
    assert seen.started == [observation.ScreeningStart()]
    assert isinstance(found, Screening)
    assert seen.ended == [(found, None)]


def test_a_call_is_reported_with_its_replies(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    from masis.settings import ROLES
    from tests.serving_models import ModelServer

    monkeypatch.setenv("SCRIPTED_KEY", "sk")
    with ModelServer(issues="none") as server:
        table = {"kind": "openai", "address": server.address, "key_env": "SCRIPTED_KEY"}
        values = dict.fromkeys(ROLES, "here:m") | {"providers": {"here": table}, "max_iterations": 1}
        run = run_audit(CASE, Settings.model_validate(values))
    started = [what for what in seen.started if isinstance(what, observation.CallStart)]
    assert [(what.provider, what.model, what.role, what.step) for what in started] == [
        (*call.model.split(":"), call.role, call.step) for call in run.calls
    ]
    assert all("How?" in what.question for what in started)
    assert sum(isinstance(event, observation.Replied) for event in seen.events) == run.usage.tries
    assert [result for result, _ in seen.ended if isinstance(result, ModelCall)] == list(run.calls)


def test_what_is_cut_short_is_reported_with_its_error(seen: Seen) -> None:
    def stop(event: Event) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_audit(CASE, Settings(), stop)
    ((result, error),) = seen.ended
    assert result is None
    assert isinstance(error, KeyboardInterrupt)


@pytest.mark.parametrize("observer", [Clumsy(), Late()])
def test_an_observer_that_fails_harms_no_audit_and_no_other_observer(
    seen: Seen, observer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    leave = observation.register(observer)
    try:
        run = run_audit(CASE, Settings(max_iterations=1))
    finally:
        leave()
    assert run.total_iterations == 1
    assert seen.ended == [(run, None)]
    assert "an observer of the audits failed" in caplog.text


def test_without_an_observer_nothing_is_retained() -> None:
    with observation.observe(observation.AuditStart()) as under_way:
        under_way.emit(observation.Replied("x"))
    assert not observation._observers
