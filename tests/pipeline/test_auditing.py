"""A function's answers are audited, and what becomes of one that is flagged is what was
asked for.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import masis
from masis import Settings, query_with_critique, query_with_critique_async
from masis.errors import AnswerRejected, InputError, SettingsError, StepError
from masis.pipeline import Audited
from masis.schema.drafts import PipelineResult
from masis.schema.rules import MUST_LOOK
from masis.services import Workbench
from masis.store.records import CaseFilter

QUESTION = "How long is the bridge?"
CHUNKS = [{"id": "1", "text": "The bridge is 120 metres long and made of steel."}]
RIGHT = "The bridge is 120 metres long [1]."
WRONG = "The bridge is 180 metres long [1]."
INVENTED = "The bridge is 120 metres long [7]."


def answering(given: str, **options: Any) -> Any:
    """A function that gives this answer to any question, audited with these options."""

    @masis.audited(**options)
    def answer(question: str, evidence: list[Any]) -> str:
        return given

    return answer


def test_a_decorated_function_returns_its_answer_and_reports_the_audit() -> None:
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


@pytest.mark.parametrize(
    ("given", "code"), [(WRONG, "contradicted_claim"), (INVENTED, "invalid_reference")]
)
def test_a_flagged_answer_raises_if_requested(given: str, code: str) -> None:
    with pytest.raises(AnswerRejected) as raised:
        answering(given, on_flag="raise")(QUESTION, CHUNKS)
    found = raised.value.audit
    assert isinstance(found, Audited)
    assert code in {reason.code for reason in found.reasons}


def test_a_sound_answer_passes_and_flags_are_configurable() -> None:
    assert answering(RIGHT, on_flag="raise")(QUESTION, CHUNKS) == RIGHT
    assert (
        answering(WRONG, on_flag="raise", flag_on={"invalid_reference"})(QUESTION, CHUNKS) == WRONG
    )


def test_by_default_only_must_look_reasons_flag_an_answer() -> None:
    assert inspect.signature(masis.audited).parameters["flag_on"].default == MUST_LOOK
    seen: list[Audited] = []
    unconfirmed = answering(RIGHT, on_flag="raise", on_result=seen.append)
    assert unconfirmed(QUESTION, [{"id": "1", "text": ""}]) == RIGHT
    assert seen[0].run.needs_review
    assert not seen[0].flagged


@pytest.mark.parametrize(
    "given",
    [
        (WRONG, CHUNKS),
        {"answer": WRONG, "sources": CHUNKS},
        {"result": WRONG, "source_documents": CHUNKS, "more": 1},
        (SimpleNamespace(content=WRONG), CHUNKS),
    ],
)
def test_evidence_can_be_returned_with_the_answer(given: Any) -> None:
    seen: list[Audited] = []

    @masis.audited(on_result=seen.append)
    def answer(question: str) -> Any:
        return given

    assert answer(QUESTION) is given
    assert seen[0].answer == WRONG
    assert seen[0].flagged


def test_a_revision_replaces_the_answer_in_the_result() -> None:
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


def test_a_coroutine_is_audited_without_blocking_the_event_loop() -> None:
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


def test_a_streamed_answer_is_forwarded_and_audited_as_a_whole() -> None:
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
    async def stream_answer(question: str, evidence: list[Any]) -> AsyncIterator[str]:
        yield RIGHT[:10]
        yield RIGHT[10:]

    async def all_of_it() -> str:
        return "".join([piece async for piece in stream_answer(QUESTION, CHUNKS)])

    assert asyncio.run(all_of_it()) == RIGHT
    assert seen[1].answer == RIGHT


def test_a_failing_audit_still_returns_the_answer() -> None:
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


def test_errors_of_the_function_are_propagated() -> None:
    @masis.audited
    def failing(question: str, evidence: list[Any]) -> float:
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        failing(QUESTION, CHUNKS)


def test_case_and_run_are_stored_in_a_database(tmp_path: Path) -> None:
    answer = answering(WRONG, database=tmp_path / "audits.db")
    answer(QUESTION, CHUNKS)
    answer(QUESTION, CHUNKS)
    bench = Workbench.open(tmp_path / "audits.db")
    assert bench.store.cases.count() == 1
    view = bench.cases.open(bench.cases.find(CaseFilter()).rows[0].id)
    assert view.case.answer == WRONG
    assert len(view.runs) == 2
    assert view.run.needs_review


def test_a_background_audit_doesnt_delay_the_answer() -> None:
    done, seen = threading.Event(), []

    def listen(found: Audited) -> None:
        seen.append(found)
        done.set()

    assert answering(WRONG, wait=False, on_result=listen)(QUESTION, CHUNKS) == WRONG
    assert done.wait(30)
    assert seen[0].flagged


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"on_flag": "rais"}, "on_flag: is 'rais'. Give one of record, revise, raise"),
        (
            {"flag_on": ["halucination"]},
            "flag_on: has no reason 'halucination'. There are: hallucination, ",
        ),
        ({"flag_on": "hallucination"}, "flag_on: is the text 'hallucination', not a list"),
    ],
)
def test_a_misspelled_gate_is_an_error(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        masis.audited(**given)


def test_incompatible_options_are_reported() -> None:
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

    with pytest.raises(InputError, match="has no parameter for the question"):

        @masis.audited
        def four() -> str:
            return ""

    with pytest.raises(InputError, match="wait=False"):
        masis.audited(wait=False, on_flag="raise")
    with pytest.raises(SettingsError):
        masis.audited(settings=masis.Settings(critic="openai:gpt-4o"))


# A question retrieved for, drafted and critiqued in one call (the draft-critique spec, Integration)

ASKED = "How long is the bridge, and when was it opened?"
FOUND = [
    {
        "id": "1",
        "content": "The bridge is 120 metres long and made of steel.",
        "score": 0.9,
        "path": "bridges.md",
    },
    {"id": "2", "content": "The bridge was opened in 1931 by the mayor.", "score": 0.4},
]
WRONG_ANSWER = "The bridge is 180 metres long [1]. It was opened in 1931 [2]."


def retriever(query: str) -> list[dict[str, Any]]:
    return FOUND


def ways(*args: Any, **kwargs: Any) -> list[PipelineResult]:
    """The same question asked both ways."""
    return [
        query_with_critique(*args, **kwargs),
        asyncio.run(query_with_critique_async(*args, **kwargs)),
    ]


@pytest.mark.spec("DRAFT-CRITIQUE-PIPELINE", "REQ-CRITIC-026", "REQ-CRITIC-027")
def test_the_result_has_the_field_names_of_the_spec() -> None:
    for found in ways(ASKED, retriever):
        written = found.model_dump(by_alias=True)
        assert {"context", "searchResults", "draft", "critique"} <= written.keys()
        assert [result["relevanceScore"] for result in written["searchResults"]] == [0.9, 0.4]
        assert found.context.startswith("[bridges.md]\nThe bridge is 120 metres")
        assert "[2]\nThe bridge was opened" in found.context
        assert found.draft
        assert found.critique.is_valid


@pytest.mark.spec("DRAFT-CRITIQUE-PIPELINE")
def test_a_custom_drafter_gets_question_and_context() -> None:
    seen: list[tuple[str, str]] = []

    def draft(query: str, context: str) -> str:
        seen.append((query, context))
        return WRONG_ANSWER

    for found in ways(ASKED, retriever, {"critiqueOptions": {"autoRevise": True}}, draft=draft):
        assert not found.critique.is_valid
        assert found.draft == found.critique.revised_draft
        assert "120 metres" in (found.draft or "")
    assert [query for query, _ in seen] == [ASKED] * 2
    assert all("120 metres long" in context for _, context in seen)


def test_a_draft_can_be_a_message_or_a_coroutine() -> None:
    class Message:
        content = WRONG_ANSWER

    async def draft(query: str, context: str) -> Message:
        return Message()

    assert (
        asyncio.run(query_with_critique_async(ASKED, retriever, draft=draft)).draft == WRONG_ANSWER
    )
    assert query_with_critique(ASKED, retriever, draft=lambda *_: Message()).draft == WRONG_ANSWER
    with pytest.raises(InputError, match="draft: is async"):
        query_with_critique(ASKED, retriever, draft=draft)


def test_a_failing_or_non_text_draft_is_reported() -> None:
    def failing(query: str, context: str) -> str:
        raise TimeoutError("no model")

    with pytest.raises(StepError, match="could not be written: TimeoutError: no model"):
        query_with_critique(ASKED, retriever, draft=failing)
    with pytest.raises(StepError, match="could not be written: TimeoutError: no model"):
        asyncio.run(query_with_critique_async(ASKED, retriever, draft=failing))
    with pytest.raises(InputError, match="gave int, not a text"):
        query_with_critique(ASKED, retriever, draft=lambda *_: 7)


@pytest.mark.spec("DRAFT-CRITIQUE-PIPELINE-OPTIONS", "DRAFT-CRITIQUE-CONFIG")
def test_only_the_requested_steps_run() -> None:
    for found in ways(ASKED, retriever, {"generateAnswer": False}):
        assert (found.draft, found.critique, found.not_critiqued) == (None, None, None)
        assert len(found.search_results) == 2
    for found in ways(ASKED, retriever, {"enableCritique": False}):
        assert (found.critique, found.not_critiqued) == (None, "Critique is switched off.")
        assert found.draft
    for found in ways(ASKED, retriever, settings=Settings(draft_critique=False)):
        assert found.critique is None
    for found in ways(ASKED, retriever, {"enableCritique": True}, Settings(draft_critique=False)):
        assert found.critique
    for found in ways(ASKED, retriever, draft=lambda *_: "It is 120 metres long [1]."):
        assert (found.critique, found.not_critiqued) == (
            None,
            "The draft is shorter than 50 characters.",
        )


@pytest.mark.spec("DRAFT-CRITIQUE-PIPELINE")
def test_without_documents_nothing_is_drafted() -> None:
    for found in ways(ASKED, lambda query: [], draft=lambda *_: pytest.fail("drafted")):
        assert (found.context, found.search_results, found.draft, found.critique) == (
            "",
            (),
            None,
            None,
        )
        assert found.not_critiqued == "Nothing was found to write a draft from."


def test_an_unusable_model_is_reported_before_retrieval() -> None:
    with pytest.raises(SettingsError):
        query_with_critique(
            ASKED,
            lambda query: pytest.fail("searched"),
            settings=Settings(verifier="openai:gpt-4o"),
        )


ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "pipeline"


@pytest.mark.slow
@pytest.mark.spec("DRAFT-CRITIQUE-PIPELINE")
def test_a_wrong_answer_to_a_question_is_rejected() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "ask.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "valid: False" in done.stdout
    assert "draft: Uploads on the free tier are limited to 10 MB [manual]." in done.stdout
    assert "The answer was rejected: A hallucination was detected" in done.stdout
    assert done.stdout in (ROOT / "docs" / "programs.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_custom_gate_is_used(tmp_path: Path) -> None:
    report = tmp_path / "answers.jsonl"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:langsmith_plugin",
        "--rootdir",
        str(tmp_path),
    ]
    command += ["-c", "/dev/null", str(EXAMPLES / "test_answers.py"), "--masis-report", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout
    assert "masis: 2 answers checked, 1 not grounded" in done.stdout
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert [line["grounded"] for line in lines] == [True, False]
