"""A question retrieved for, drafted and critiqued in one call (the draft-critique spec, Integration)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from masis import Settings, query_with_critique, query_with_critique_async
from masis.errors import InputError, SettingsError, StepError
from masis.schema.drafts import PipelineResult

QUESTION = "How long is the bridge, and when was it opened?"
CHUNKS = [
    {"id": "1", "content": "The bridge is 120 metres long and made of steel.", "score": 0.9, "path": "bridges.md"},
    {"id": "2", "content": "The bridge was opened in 1931 by the mayor.", "score": 0.4},
]
WRONG = "The bridge is 180 metres long [1]. It was opened in 1931 [2]."


def retriever(query: str) -> list[dict[str, Any]]:
    return CHUNKS


def ways(*args: Any, **kwargs: Any) -> list[PipelineResult]:
    """The same question asked both ways."""
    return [query_with_critique(*args, **kwargs), asyncio.run(query_with_critique_async(*args, **kwargs))]


@pytest.mark.spec("DRAFT-CRITIQUE-PIPELINE", "REQ-CRITIC-026", "REQ-CRITIC-027")
def test_what_comes_back_has_the_names_of_the_spec() -> None:
    for found in ways(QUESTION, retriever):
        written = found.model_dump(by_alias=True)
        assert {"context", "searchResults", "draft", "critique"} <= written.keys()
        assert [each["relevanceScore"] for each in written["searchResults"]] == [0.9, 0.4]
        assert found.context.startswith("[bridges.md]\nThe bridge is 120 metres")
        assert "[2]\nThe bridge was opened" in found.context
        assert found.draft
        assert found.critique
        assert found.critique.is_valid


@pytest.mark.spec("DRAFT-CRITIQUE-PIPELINE")
def test_a_draft_of_ones_own_gets_question_and_context_and_is_critiqued() -> None:
    seen: list[tuple[str, str]] = []

    def draft(query: str, context: str) -> str:
        seen.append((query, context))
        return WRONG

    for found in ways(QUESTION, retriever, {"critiqueOptions": {"autoRevise": True}}, draft=draft):
        assert found.critique
        assert not found.critique.is_valid
        assert found.draft == found.critique.revised_draft
        assert "120 metres" in (found.draft or "")
    assert [query for query, _ in seen] == [QUESTION] * 2
    assert all("120 metres long" in context for _, context in seen)


def test_a_draft_may_be_a_message_or_a_coroutine() -> None:
    class Message:
        content = WRONG

    async def draft(query: str, context: str) -> Message:
        return Message()

    found = asyncio.run(query_with_critique_async(QUESTION, retriever, draft=draft))
    assert found.draft == WRONG
    assert query_with_critique(QUESTION, retriever, draft=lambda *_: Message()).draft == WRONG
    with pytest.raises(InputError, match="draft: is async"):
        query_with_critique(QUESTION, retriever, draft=draft)


def test_a_draft_that_fails_or_is_no_text_is_reported() -> None:
    def failing(query: str, context: str) -> str:
        raise TimeoutError("no model")

    with pytest.raises(StepError, match="could not be written: TimeoutError: no model"):
        query_with_critique(QUESTION, retriever, draft=failing)
    with pytest.raises(StepError, match="could not be written: TimeoutError: no model"):
        asyncio.run(query_with_critique_async(QUESTION, retriever, draft=failing))
    with pytest.raises(InputError, match="gave int, not a text"):
        query_with_critique(QUESTION, retriever, draft=lambda *_: 7)


@pytest.mark.spec("DRAFT-CRITIQUE-PIPELINE-OPTIONS", "DRAFT-CRITIQUE-CONFIG")
def test_only_what_is_asked_for_is_done() -> None:
    for found in ways(QUESTION, retriever, {"generateAnswer": False}):
        assert (found.draft, found.critique, found.not_critiqued) == (None, None, None)
        assert len(found.search_results) == 2
    for found in ways(QUESTION, retriever, {"enableCritique": False}):
        assert (found.critique, found.not_critiqued) == (None, "Critique is switched off.")
        assert found.draft
    for found in ways(QUESTION, retriever, settings=Settings(draft_critique=False)):
        assert found.critique is None
    for found in ways(QUESTION, retriever, {"enableCritique": True}, Settings(draft_critique=False)):
        assert found.critique
    for found in ways(QUESTION, retriever, draft=lambda *_: "It is 120 metres long [1]."):
        assert (found.critique, found.not_critiqued) == (None, "The draft is shorter than 50 characters.")


@pytest.mark.spec("DRAFT-CRITIQUE-PIPELINE")
def test_nothing_found_is_said_and_nothing_is_drafted() -> None:
    for found in ways(QUESTION, lambda query: [], draft=lambda *_: pytest.fail("drafted")):
        assert (found.context, found.search_results, found.draft, found.critique) == ("", (), None, None)
        assert found.not_critiqued == "Nothing was found that a draft could be written from."


def test_a_model_that_can_not_be_asked_is_reported_before_anything_is_searched() -> None:
    with pytest.raises(SettingsError):
        query_with_critique(
            QUESTION, lambda query: pytest.fail("searched"), settings=Settings(verifier="openai:gpt-4o")
        )


ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "pipeline"


@pytest.mark.slow
@pytest.mark.spec("DRAFT-CRITIQUE-PIPELINE")
def test_a_question_is_asked_and_a_wrong_answer_is_rejected() -> None:
    done = subprocess.run([sys.executable, str(EXAMPLES / "ask.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "valid: False" in done.stdout
    assert "draft: Uploads on the free tier are limited to 10 MB [manual]." in done.stdout
    assert "The answer was rejected: A hallucination was detected" in done.stdout
    assert done.stdout in (ROOT / "docs" / "programs.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_gate_of_ones_own_answers(tmp_path: Path) -> None:
    report = tmp_path / "answers.jsonl"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:langsmith_plugin", "--rootdir", str(tmp_path)]
    command += ["-c", "/dev/null", str(EXAMPLES / "test_answers.py"), "--masis-report", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout
    assert "masis: 2 answers checked, 1 not grounded" in done.stdout
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert [line["grounded"] for line in lines] == [True, False]
