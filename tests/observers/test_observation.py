"""Observers receive what starts, what happens and how it ended; and can do no harm."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import masis
from masis import Settings
from masis.api.audits import run_audit, run_audit_async
from masis.api.draft_critique import critique_draft
from masis.audit import loop
from masis.errors import CriticFailed, ProviderFailed, ReviserFailed
from masis.observers import observation
from masis.observers.log_records import JsonLine, formatter
from masis.observers.observation import run_to_completion
from masis.schema.calls import ModelCall
from masis.schema.run import Event, Run
from masis.schema.screening import Abstract
from tests.cases import case_of
from tests.llm.asking import settings_here
from tests.rooms import needs_screening
from tests.scripted import MAJOR, ScriptedCritic, ScriptedReviser, judgement_with, roles
from tests.serving_models import ModelServer

CASE = case_of("So it is [1].", {"1": "So it is."}, query="How?")


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
    assert seen.started[1].operation == "critique_draft"
    assert isinstance(seen.ended[0][0], Run)
    assert seen.ended[1][0] == result


@needs_screening
def test_a_screening_is_reported(seen: Seen) -> None:
    found = masis.screen_abstracts(
        "Does it help?", [Abstract(id="1", title="It helps", text="A trial.")]
    )
    assert seen.started == [observation.ScreeningStart()]
    assert seen.ended == [(found, None)]


def test_a_call_is_reported_with_its_replies(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", "sk")
    with ModelServer(issues="none") as server:
        run = run_audit(CASE, settings_here(server, max_iterations=1))
    started = [what for what in seen.started if isinstance(what, observation.CallStart)]
    assert [(what.provider, what.model, what.role, what.step) for what in started] == [
        (*call.model.split(":"), call.role, call.step) for call in run.calls
    ]
    assert all("How?" in what.question for what in started)
    assert sum(isinstance(event, observation.Replied) for event in seen.events) == run.usage.tries
    assert [result for result, _ in seen.ended if isinstance(result, ModelCall)] == list(run.calls)


def test_interrupted_work_is_reported_with_its_error(seen: Seen) -> None:
    def stop(event: Event) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_audit(CASE, Settings(), stop)
    ((result, error),) = seen.ended
    assert result is None
    assert isinstance(error, KeyboardInterrupt)


@pytest.mark.parametrize("observer", [Clumsy(), Late()])
def test_a_failing_observer_doesnt_affect_audits_or_others(
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


def test_without_an_observer_nothing_is_collected() -> None:
    with observation.observe(observation.AuditStart()) as observed:
        observed.emit(observation.Replied("x"))
    assert not observation._observers


# What the log tells of the loop, at which level, in words and as JSON (the critic-loop spec, 6.2)

LOGGED_CASE = case_of(
    "The bridge is 120 metres long [chunk_1].", {"chunk_1": "The bridge is 120 metres long."}
)
TEXTS = ("metres", "How long", "It is wrong.")


class Kept(logging.Handler):
    """The lines as JSON writes them."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonLine())
        self.lines: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        assert "\n" not in line
        found = json.loads(line)
        # calls that another test left running may still report their end
        if found.get("run") == "r1":
            self.lines.append(found)

    def at(self, level: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["level"] == level]

    def events(self, level: str) -> list[str]:
        return [line["event"] for line in self.at(level)]


@pytest.fixture
def kept() -> Iterator[Kept]:
    logger, found = logging.getLogger("masis"), Kept()
    before = logger.level
    logger.addHandler(found)
    logger.setLevel(logging.DEBUG)
    yield found
    logger.removeHandler(found)
    logger.setLevel(before)


def run(*, log_texts: bool = False, **given: Any) -> Run:
    work = loop.audit(
        LOGGED_CASE, roles(**given), Settings(log_texts=log_texts), run_id="r1", case_digest="abc"
    )
    return run_to_completion(work)


def improving_scores() -> dict[str, Any]:
    """Quality 0.4, then 0.8."""
    return {
        "critic": ScriptedCritic([judgement_with(0.4, raw_issues=(MAJOR,)), judgement_with(0.8)]),
        "reviser": ScriptedReviser(),
    }


def test_a_warning_names_its_place_if_it_has_one(kept: Kept) -> None:
    always = ScriptedCritic(
        [judgement_with(quality, raw_issues=(MAJOR,)) for quality in (0.4, 0.6, 0.8)]
    )
    run(
        critic=always,
        reviser=ScriptedReviser([f"It is 120 metres long, version {n} [chunk_1]." for n in (2, 3)]),
    )
    assert [line["message"] for line in kept.at("WARNING")] == [
        "run r1 of case 'bridge': CRITIC-ERR-004"
    ]
    run(critic=ScriptedCritic([CriticFailed("down")]))
    assert (
        kept.at("ERROR")[0]["message"]
        == "run r1 of case 'bridge': CRITIC-ERR-001 in step critique, iteration 1"
    )


@pytest.mark.spec("REQ-CRITIC-OBS-002", "REQ-CRITIC-025")
def test_info_logs_start_end_scores_and_convergence(kept: Kept) -> None:
    found = run(**improving_scores())
    told = kept.at("INFO")
    assert told[0]["event"] == "run_started"
    assert told[0]["resumed_after"] == 0
    first, second = (line for line in told if line["event"] == "iteration_finished")
    assert (first["quality_score"], first["improvement_delta"]) == (0.4, None)
    assert second["quality_score"] == 0.8
    assert second["improvement_delta"] == pytest.approx(0.4)
    end = told[-1]
    assert (end["event"], end["total_iterations"], end["converged"]) == ("run_finished", 2, False)
    assert end["termination_reason"] == found.termination_reason == "no_issues"
    assert end["improvement_percentage"] == pytest.approx(100)
    words = (
        "run r1: ends after 2 iterations: no_issues, not converged, quality 0.800, improvement"
        " 100.0 %"
    )
    assert end["message"].startswith(words)
    assert all(line["run"] == "r1" for line in told)


def test_one_iteration_is_singular(kept: Kept) -> None:
    run()
    assert "ends after 1 iteration: no_issues" in kept.at("INFO")[-1]["message"]


@pytest.mark.spec("REQ-CRITIC-OBS-003", "REQ-CRITIC-030", "REQ-CRITIC-031")
@pytest.mark.parametrize(
    ("critic", "reviser", "code", "step"),
    [
        (CriticFailed("It is wrong."), "", "CRITIC-ERR-001", "critique"),
        (ProviderFailed("no route"), "", "CRITIC-ERR-003", "critique"),
        (
            judgement_with(0.5, raw_issues=(MAJOR,)),
            ReviserFailed("refused"),
            "CRITIC-ERR-002",
            "revision",
        ),
    ],
)
def test_a_failed_step_is_logged_as_an_error(
    kept: Kept, critic: Any, reviser: Any, code: str, step: str
) -> None:
    run(critic=ScriptedCritic([critic]), reviser=ScriptedReviser([reviser]))
    failed, ended = kept.at("ERROR")
    assert (failed["code"], failed["step"], failed["iteration"]) == (code, step, 1)
    assert (ended["event"], ended["codes"]) == ("ended_by_error", [code])
    assert "ended by an error after 1 iteration" in ended["message"]


@pytest.mark.spec("REQ-CRITIC-OBS-004")
def test_debug_logs_full_details(kept: Kept) -> None:
    found = run(log_texts=True, **improving_scores())
    told: dict[str, Any] = {}
    for line in kept.at("DEBUG"):
        for name in ("critique", "issues", "revision", "changes"):
            if name in line:
                told.setdefault(name, line[name])
    first = found.iterations[0]
    assert told["critique"] == first.critique.model_dump(mode="json")
    assert told["issues"] == [issue.model_dump(mode="json") for issue in first.issues]
    assert told["revision"] == first.revision.model_dump(mode="json")
    assert told["changes"] == first.revision.changes_explanation


@pytest.mark.spec("REQ-CRITIC-SEC-003", "REQ-CRITIC-OBS-004")
def test_the_log_has_no_texts_by_default(kept: Kept) -> None:
    run(**improving_scores())
    assert not [text for text in TEXTS for line in kept.lines if text in json.dumps(line)]


def test_a_json_log_record_is_one_line() -> None:
    record = logging.LogRecord(
        "masis.x", logging.WARNING, "f", 1, "a\nline %s", ("\u2028“x”",), None
    )
    line = formatter("json").format(record)
    assert "\n" not in line
    read = json.loads(line)
    assert (read["level"], read["logger"], read["message"]) == (
        "WARNING",
        "masis.x",
        "a\nline \u2028“x”",
    )
    assert read["at"].endswith("+00:00")


def test_an_unexpected_error_is_logged_with_its_traceback() -> None:
    try:
        raise ValueError("no")
    except ValueError as error:
        record = logging.LogRecord(
            "masis", 40, "f", 1, "it broke", (), (ValueError, error, error.__traceback__)
        )
    assert "ValueError: no" in json.loads(JsonLine().format(record))["traceback"]
