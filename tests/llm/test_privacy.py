"""What a whole run with models leaves in logs, records and errors: never a key, and at INFO never a text."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from masis.schema.run import Event, Run
from masis.services import Workbench
from masis.settings import ROLES, Settings
from tests.cases import case_of
from tests.llm.asking import KEY
from tests.reviewing import ADA
from tests.served_replies import Behaviour, Request, faulty
from tests.serving_models import ModelServer

QUESTION, EVIDENCE, ANSWER = (
    "quisling-question",
    "zebra-evidence is 120 metres long",
    "walrus-answer is 120 metres long [1].",
)
REPLY = "yodel-reasoning"
WORDS = ("quisling", "zebra", "walrus", "yodel", "umbrella")
CASE = case_of(f"The {ANSWER}", {"1": f"The {EVIDENCE}."}, case_id="umbrella-id", query=f"How long is the {QUESTION}?")


def audited(tmp_path: Path, script: object, events: list[Event] | None = None) -> Run:
    with ModelServer(script, issues="always") as server:  # type: ignore[arg-type]
        table = {"kind": "openai", "address": server.address, "key_env": "SCRIPTED_KEY"}
        given = dict.fromkeys(ROLES, "here:m") | {"providers": {"here": table}, "retry_base_s": 0.01}
        bench = Workbench.open(tmp_path / "masis.db", Settings.model_validate(given))
        bench.cases.add(ADA, [CASE])
        return bench.audits.audit(ADA, CASE, on_event=events.append if events is not None else None)


def sound(request: Request) -> Behaviour | None:
    """Every reply sensible, with a word of its own in it."""
    return None


def failing(request: Request) -> Behaviour | None:
    """A server that repeats the question and the key in its errors."""
    if request.schema_name in ("critique_reply", "evaluation_reply"):
        return Behaviour(status=500, error={"message": f"{REPLY}: {request.text[:3000]} {request.headers}"})
    return faulty("prose", request) if request.schema_name == "verdicts_reply" else None


@pytest.mark.spec("REQ-CRITIC-SEC-003", "REQ-CRITIC-OBS-004")
@pytest.mark.parametrize(("script", "level"), [(sound, logging.INFO), (failing, logging.INFO), (sound, logging.DEBUG)])
def test_unless_texts_are_asked_for_the_log_of_a_whole_run_holds_none_and_no_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, script: object, level: int
) -> None:
    with caplog.at_level(level):
        run = audited(tmp_path, script)
    assert caplog.records
    assert run.id in caplog.text
    said = caplog.text.lower()
    assert not [word for word in WORDS if word in said]
    assert KEY not in caplog.text


@pytest.mark.spec("REQ-CRITIC-SEC-002")
def test_no_key_is_in_the_record_the_events_or_the_database(tmp_path: Path) -> None:
    events: list[Event] = []
    run = audited(tmp_path, failing, events)
    assert KEY not in run.model_dump_json()
    assert not [event for event in events if KEY in event.model_dump_json()]
    for file in tmp_path.rglob("masis.db*"):
        assert KEY.encode() not in file.read_bytes()


def test_no_event_holds_the_text_of_answer_or_evidence(tmp_path: Path) -> None:
    events: list[Event] = []
    audited(tmp_path, sound, events)
    told = "".join(event.model_dump_json(exclude={"case_id"}) for event in events)
    assert not [word for word in WORDS if word in told.lower()]
