"""A function's answers are audited, and what becomes of one that is flagged is what was asked for."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import masis
from masis.errors import AnswerRejected, InputError, SettingsError
from masis.pipeline import Audited
from masis.schema.run import MUST_LOOK
from masis.services import Workbench
from masis.store.records import CaseFilter

QUESTION = "How long is the bridge?"
CHUNKS = [{"id": "1", "text": "The bridge is 120 metres long and made of steel."}]
RIGHT = "The bridge is 120 metres long [1]."
WRONG = "The bridge is 180 metres long [1]."
INVENTED = "The bridge is 120 metres long [7]."


def test_a_function_answers_as_before_and_its_audit_is_reported() -> None:
    seen: list[Audited] = []

    @masis.audited(on_result=seen.append)
    def answer(question: str, evidence: list[Any], *, tone: str = "plain") -> str:
        """Answers."""
        return WRONG

    assert answer(QUESTION, CHUNKS, tone="kind") == WRONG
    (found,) = seen
    assert (found.question, found.answer, found.flagged) == (QUESTION, WRONG, True)
    assert {reason.code for reason in found.reasons} >= {"contradicted_claim", "hallucination"}
    assert (answer.__name__, answer.__doc__) == ("answer", "Answers.")
    assert list(inspect.signature(answer).parameters) == ["question", "evidence", "tone"]


@pytest.mark.parametrize(("given", "code"), [(WRONG, "contradicted_claim"), (INVENTED, "invalid_reference")])
def test_a_flagged_answer_is_rejected_where_that_is_asked(given: str, code: str) -> None:
    @masis.audited(on_flag="raise")
    def answer(question: str, evidence: list[Any]) -> str:
        return given

    with pytest.raises(AnswerRejected) as raised:
        answer(QUESTION, CHUNKS)
    found = raised.value.audit
    assert isinstance(found, Audited)
    assert code in {reason.code for reason in found.reasons}


def test_a_sound_answer_is_not_rejected_and_the_flags_are_ones_own_choice() -> None:
    @masis.audited(on_flag="raise")
    def answer(question: str, evidence: list[Any]) -> str:
        return RIGHT

    @masis.audited(on_flag="raise", flag_on={"invalid_reference"})
    def lenient(question: str, evidence: list[Any]) -> str:
        return WRONG

    assert answer(QUESTION, CHUNKS) == RIGHT
    assert lenient(QUESTION, CHUNKS) == WRONG


def test_by_default_an_answer_is_flagged_for_what_must_be_looked_at_and_for_nothing_else() -> None:
    assert inspect.signature(masis.audited).parameters["flag_on"].default == MUST_LOOK
    seen: list[Audited] = []

    @masis.audited(on_flag="raise", on_result=seen.append)
    def unconfirmed(question: str, evidence: list[Any]) -> str:
        return RIGHT

    assert unconfirmed(QUESTION, [{"id": "1", "text": ""}]) == RIGHT
    assert seen[0].run.needs_review
    assert not seen[0].flagged


def test_a_flagged_answer_is_revised_where_that_is_asked() -> None:
    @masis.audited(on_flag="revise")
    def answer(question: str, evidence: list[Any]) -> str:
        return WRONG

    assert "120" in answer(QUESTION, CHUNKS)


@pytest.mark.parametrize(
    "given",
    [
        (WRONG, CHUNKS),
        {"answer": WRONG, "sources": CHUNKS},
        {"result": WRONG, "source_documents": CHUNKS, "more": 1},
        (SimpleNamespace(content=WRONG), CHUNKS),
    ],
)
def test_evidence_may_come_with_the_answer(given: Any) -> None:
    seen: list[Audited] = []

    @masis.audited(on_result=seen.append)
    def answer(question: str) -> Any:
        return given

    assert answer(QUESTION) is given
    assert seen[0].answer == WRONG
    assert seen[0].flagged


def test_a_revision_takes_its_place_in_what_was_given() -> None:
    @masis.audited(on_flag="revise", answer="said")
    def answer(question: str, context: list[str]) -> dict[str, Any]:
        return {"said": WRONG, "tokens": 12}

    @masis.audited(on_flag="revise")
    def pair(question: str) -> Any:
        return WRONG, CHUNKS

    revised = answer(QUESTION, [CHUNKS[0]["text"]])
    assert ("120" in revised["said"], revised["tokens"]) == (True, 12)
    text, evidence = pair(QUESTION)
    assert "120" in text
    assert evidence is CHUNKS


def test_a_coroutine_is_audited_beside_the_event_loop() -> None:
    seen: list[Audited] = []
    threads: list[str] = []

    def listen(found: Audited) -> None:
        seen.append(found)
        threads.append(threading.current_thread().name)

    @masis.audited(on_result=listen)
    async def answer(question: str, evidence: list[Any]) -> str:
        return WRONG

    @masis.audited(on_flag="raise")
    async def strict(question: str, evidence: list[Any]) -> str:
        return WRONG

    assert inspect.iscoroutinefunction(answer)
    assert asyncio.run(answer(QUESTION, CHUNKS)) == WRONG
    assert seen[0].flagged
    assert threads != [threading.main_thread().name]
    with pytest.raises(AnswerRejected):
        asyncio.run(strict(QUESTION, CHUNKS))


def test_a_streamed_answer_is_passed_on_as_it_comes_and_audited_whole() -> None:
    seen: list[Audited] = []

    @masis.audited(on_result=seen.append, on_flag="raise")
    def answer(question: str, evidence: list[Any]) -> Iterator[str]:
        yield WRONG[:10]
        assert not seen
        yield WRONG[10:]

    pieces: list[str] = []
    with pytest.raises(AnswerRejected):
        pieces.extend(answer(QUESTION, CHUNKS))
    assert "".join(pieces) == WRONG
    assert seen[0].answer == WRONG

    @masis.audited(on_result=seen.append)
    async def streamed(question: str, evidence: list[Any]) -> AsyncIterator[str]:
        yield RIGHT[:10]
        yield RIGHT[10:]

    async def all_of_it() -> str:
        return "".join([piece async for piece in streamed(QUESTION, CHUNKS)])

    assert asyncio.run(all_of_it()) == RIGHT
    assert seen[1].answer == RIGHT


def test_an_audit_that_fails_never_takes_the_answer_away() -> None:
    errors: list[Exception] = []

    def broken(found: Audited) -> None:
        raise RuntimeError("the listener is broken")

    @masis.audited(on_flag="raise", on_error=errors.append, on_result=broken)
    def answer(question: Any, evidence: Any) -> Any:
        return "It is long." if question else 7

    assert answer(QUESTION, []) == "It is long."  # no evidence
    assert answer(QUESTION, 7) == "It is long."  # nothing that could be evidence
    assert answer("", CHUNKS) == 7  # no text
    assert len(errors) == 3
    assert answer(QUESTION, CHUNKS) == "It is long."


def test_what_the_function_itself_raises_is_its_own_affair() -> None:
    @masis.audited
    def failing(question: str, evidence: list[Any]) -> float:
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        failing(QUESTION, CHUNKS)


def test_case_and_run_are_kept_in_a_database(tmp_path: Path) -> None:
    database = tmp_path / "audits.db"

    @masis.audited(database=database)
    def answer(question: str, evidence: list[Any]) -> str:
        return WRONG

    answer(QUESTION, CHUNKS)
    answer(QUESTION, CHUNKS)
    bench = Workbench.open(database)
    assert bench.cases.overview().cases == 1
    view = bench.cases.open(bench.cases.find(CaseFilter()).rows[0].id)
    assert view.case.answer == WRONG
    assert len(view.runs) == 2
    assert view.run
    assert view.run.needs_review


def test_nobody_waits_for_an_audit_that_is_not_waited_for() -> None:
    done, seen = threading.Event(), []

    def listen(found: Audited) -> None:
        seen.append(found)
        done.set()

    @masis.audited(wait=False, on_result=listen)
    def answer(question: str, evidence: list[Any]) -> str:
        return WRONG

    assert answer(QUESTION, CHUNKS) == WRONG
    assert done.wait(30)
    assert seen[0].flagged


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"on_flag": "rais"}, "on_flag: is 'rais'. Give one of record, revise, raise"),
        ({"flag_on": ["halucination"]}, "flag_on: has no reason 'halucination'. There are: hallucination, "),
        ({"flag_on": "hallucination"}, "flag_on: is the text 'hallucination', not a list"),
    ],
)
def test_a_gate_with_a_typing_error_in_it_does_not_let_everything_pass(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        masis.audited(**given)


def test_what_can_not_go_together_is_reported_where_it_stands() -> None:
    with pytest.raises(InputError, match="has no parameter 'docs'"):

        @masis.audited(evidence="docs")
        def one(question: str, evidence: list[Any]) -> str:
            return ""

    with pytest.raises(InputError, match="streams its answer"):

        @masis.audited(on_flag="revise")
        def two(question: str, evidence: list[Any]) -> Iterator[str]:
            yield ""

    with pytest.raises(InputError, match="streams its answer"):

        @masis.audited
        def three(question: str) -> Iterator[str]:
            yield ""

    with pytest.raises(InputError, match="takes no question"):

        @masis.audited
        def four() -> str:
            return ""

    with pytest.raises(InputError, match="wait=False"):
        masis.audited(wait=False, on_flag="raise")
    with pytest.raises(SettingsError):
        masis.audited(settings=masis.Settings(critic="openai:gpt-4o"))
