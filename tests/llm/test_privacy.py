"""What a whole run with models leaves in logs, records and errors: never a key, and at INFO never a text."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from masis.schema.case import Case
from masis.schema.run import Event, Run
from masis.services import Workbench
from masis.settings import ROLES, Settings
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
CASE = Case.model_validate(
    {
        "id": "umbrella-id",
        "query": f"How long is the {QUESTION}?",
        "answer": f"The {ANSWER}",
        "evidence": [{"id": "1", "text": f"The {EVIDENCE}."}],
    }
)


def audited(tmp_path: Path, script: object, events: list[Event] | None = None, **told: object) -> Run:
    with ModelServer(script, issues="always") as server:  # type: ignore[arg-type]
        table = {"kind": "openai", "address": server.address, "key_env": "SCRIPTED_KEY"}
        given = dict.fromkeys(ROLES, "here:m") | {"providers": {"here": table}, "retry_base_s": 0.01} | told
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


@pytest.mark.spec("REQ-CRITIC-SEC-003")
@pytest.mark.parametrize("script", [sound, failing])
def test_at_info_the_log_of_a_whole_run_holds_no_text_and_no_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, script: object
) -> None:
    with caplog.at_level(logging.INFO):
        run = audited(tmp_path, script)
    assert caplog.records
    assert run.id in caplog.text
    said = caplog.text.lower()
    assert not [word for word in WORDS if word in said]
    assert KEY not in caplog.text


@pytest.mark.spec("REQ-CRITIC-SEC-003", "REQ-CRITIC-OBS-004")
def test_debug_has_texts_only_where_they_are_asked_for_and_never_a_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        audited(tmp_path, sound)
    assert not [word for word in WORDS if word in caplog.text.lower()]
    caplog.clear()
    with caplog.at_level(logging.DEBUG):
        audited(tmp_path / "2", sound, log_texts=True)
    assert "walrus" in caplog.text
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


def test_an_error_that_ends_the_program_shows_no_key(tmp_path: Path) -> None:
    """The traceback of a crash in the middle of a call names no key, even with the local variables of our frames."""
    code = (
        "import sys; from masis.llm.endpoints import endpoint; from masis.settings import Settings;"
        "found = endpoint('openai', Settings());"
        "print(repr(found)); raise RuntimeError(found)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"OPENAI_API_KEY": KEY, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "RuntimeError" in done.stderr
    assert KEY not in done.stdout + done.stderr
