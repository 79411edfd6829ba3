"""Model output is separated into the answer, the reasoning before it, or the reason why there is no
answer.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import masis
from masis.datasets.loading import read_cases
from masis.datasets.mapping.reader import read_any
from masis.errors import InputError
from masis.schema.answers import no_answer_in, separate_thoughts
from masis.schema.case import Case, case_of
from tests.rules import for_each

QUESTION = "How tall is the mill?"
CHUNK = {"id": "1", "text": "The mill is 18 metres tall."}
ANSWER = "The mill is 18 metres tall [1]."
THOUGHT = "Could it be 20 metres [9]? I look it up."

APART: dict[str, tuple[str, str]] = {
    f"<think>{THOUGHT}</think>{ANSWER}": (ANSWER, THOUGHT),
    f"\n<think>\n{THOUGHT}\n</think>\n\n{ANSWER}": (ANSWER, THOUGHT),
    f"<thinking>{THOUGHT}</thinking>\n{ANSWER}": (ANSWER, THOUGHT),
    f"<THINK>{THOUGHT}</THINK>\n{ANSWER}": (ANSWER, THOUGHT),
    f"[THINK]{THOUGHT}[/THINK]{ANSWER}": (ANSWER, THOUGHT),
    f"◁think▷{THOUGHT}◁/think▷{ANSWER}": (ANSWER, THOUGHT),
    f"{THOUGHT}\n</think>\n\n{ANSWER}": (ANSWER, THOUGHT),
    f"{THOUGHT}</think>{ANSWER}": (ANSWER, THOUGHT),
    f"<think></think>\n\n{ANSWER}": (ANSWER, ""),
    f"<think>a</think>\n<think>b</think>\n{ANSWER}": (ANSWER, "a\n\nb"),
    f"{ANSWER}\n<think>Is that all?</think>\nIt has a wheel.": (
        f"{ANSWER}\n\nIt has a wheel.",
        "Is that all?",
    ),
    f"<think>{THOUGHT}": ("", THOUGHT),
    f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}<|return|>": (
        ANSWER,
        THOUGHT,
    ),
    f"<|channel|>final<|message|>{ANSWER}": (ANSWER, ""),
    f"<|channel|>analysis<|message|>{THOUGHT}<|end|>": ("", THOUGHT),
    f"analysis{THOUGHT}assistantfinal{ANSWER}": (ANSWER, THOUGHT),
}
WHOLE = (
    ANSWER,
    "",
    "Models write <think> before and </think> behind their thoughts [1].",
    "Put it between `<think>` and `</think>`.",
    "Use this:\n```xml\n<think>x</think>\n```\nand no more.",
    "The mark </think> closes it.",
    "I think </b> so. 3 < 4 > 2.",
    "analysis of the mill shows 18 metres [1].",
    "The <thinking man> stands before it.",
    f"{ANSWER}\nIt ends with <think> and goes on.",
)


@for_each(APART)
def test_thoughts_are_separated_from_the_answer_by_their_markers(text: str) -> None:
    found = separate_thoughts(text)
    assert (found.answer, found.thoughts) == APART[text]
    kept = "".join(
        text[since:to]
        for since, to in zip(
            [0, *(to for _, to in found.removed)],
            [*(since for since, _ in found.removed), len(text)],
            strict=True,
        )
    )
    assert kept == found.answer


@for_each(WHOLE)
def test_text_that_only_mentions_thought_markers_is_unchanged(text: str) -> None:
    assert separate_thoughts(text) == (text, "", ())


@given(st.text(alphabet="a<>/|`\n .think[]THINKfinalassistantchannelmessage", max_size=60))
def test_any_text_is_its_answer_plus_the_removed_parts(text: str) -> None:
    found = separate_thoughts(text)
    at, kept = 0, ""
    for since, to in found.removed:
        assert at <= since <= to <= len(text)
        kept, at = kept + text[at:since], to
    assert kept + text[at:] == found.answer


def case_with(**fields: Any) -> Case:
    return case_of({"query": QUESTION, "evidence": [CHUNK], **fields})


def test_offsets_into_the_answer_are_shifted_and_those_into_thoughts_dropped() -> None:
    text = f"<think>{THOUGHT}</think>\n\n{ANSWER}"
    start = text.index(ANSWER)
    cited = [
        {"start": start, "end": len(text), "evidence_id": "1"},
        {"start": 8, "end": 12, "evidence_id": "1"},
        {"start": start + 4, "end": start + 4, "evidence_id": "1"},
    ]
    labels = {
        "claims": [{"text": ANSWER, "start": start, "end": len(text), "verdict": "supported"}]
    }
    case = case_with(answer=text, citations=cited, labels=labels)
    assert case.answer == ANSWER
    assert case.model_reasoning == THOUGHT
    assert [(citation.start, citation.end) for citation in case.given_citations] == [
        (0, len(ANSWER)),
        (4, 4),
    ]
    assert case.labels
    assert case.labels.claims[0].start == 0


def test_a_case_is_identical_from_python_or_a_file_and_round_trips() -> None:
    text = f"<think>{THOUGHT}</think>{ANSWER}"
    case = Case(id="a", query=QUESTION, answer=text, evidence=[CHUNK])
    assert case == case_with(id="a", answer=text)
    assert case_of(case.to_json_dict()) == case
    assert Case.model_validate(case.to_json_dict()).digest() == case.digest()


def test_thoughts_are_not_audited() -> None:
    run = masis.run_audit(case_with(answer=f"<think>{THOUGHT}</think>{ANSWER}"))
    assert run.iterations[0].answer == ANSWER
    assert run.iterations[0].citation_audit.invalid_citations == ()
    assert "20 metres" not in run.model_dump_json()


# Files of other tools


def read(tmp_path: Path, rows: Any, name: str = "rows.json") -> Case:
    path = tmp_path / name
    path.write_text(rows if isinstance(rows, str) else json.dumps(rows), encoding="utf-8")
    (case,) = read_cases(path)
    return case


def chat(message: dict[str, Any], finish: str = "stop", **reply: Any) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", **message}, "finish_reason": finish}
    return {
        "request": {"messages": [{"role": "user", "content": QUESTION}]},
        "response": {"choices": [choice], **reply},
        "documents": [CHUNK],
    }


def responses(*output: Any, **reply: Any) -> dict[str, Any]:
    held = {"object": "response", "output": list(output), **reply}
    return {"request": {"input": QUESTION}, "response": held, "documents": [CHUNK]}


def message(*content: Any, **reply: Any) -> dict[str, Any]:
    asked = {"messages": [{"role": "user", "content": QUESTION}]}
    return {
        "request": asked,
        "response": {"type": "message", "content": list(content), **reply},
        "documents": [CHUNK],
    }


def gemini(*parts: Any, **reply: Any) -> dict[str, Any]:
    candidate = {"content": {"parts": list(parts)}} if parts else None
    asked = {"contents": [{"role": "user", "parts": [{"text": QUESTION}]}]}
    held = {"candidates": [candidate | reply.pop("candidate", {})]} if candidate else {}
    return {"request": asked, "response": {**held, **reply}, "documents": [CHUNK]}


def text_block(text: str = ANSWER) -> dict[str, Any]:
    return {"type": "text", "text": text}


THOUGHT_OUT: dict[str, dict[str, Any]] = {
    "beside, DeepSeek": chat({"content": ANSWER, "reasoning_content": THOUGHT}),
    "beside, OpenRouter": chat({"content": ANSWER, "reasoning": THOUGHT}),
    "in the text": chat({"content": f"<think>{THOUGHT}</think>{ANSWER}"}),
    "parts, Mistral": chat(
        {"content": [{"type": "thinking", "thinking": [text_block(THOUGHT)]}, text_block()]}
    ),
    "parts": chat({"content": [{"type": "reasoning", "text": THOUGHT}, text_block()]}),
    "Responses": responses(
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}]},
        {"type": "message", "content": [{"type": "output_text", "text": ANSWER}]},
    ),
    "Anthropic": message(
        {"type": "thinking", "thinking": THOUGHT},
        {"type": "redacted_thinking", "data": "x"},
        text_block(),
    ),
    "Gemini": gemini({"text": THOUGHT, "thought": True}, {"text": ANSWER}),
    "Ragas": {
        "user_input": QUESTION,
        "retrieved_contexts": [CHUNK["text"]],
        "response": f"{THOUGHT}</think>\n{ANSWER}",
    },
    "Inspect": {
        "eval": {"task": "t"},
        "samples": [
            {
                "id": 1,
                "epoch": 1,
                "input": QUESTION,
                "target": "18",
                "metadata": {"context": CHUNK["text"]},
                "output": {
                    "choices": [
                        {
                            "message": {
                                "content": [
                                    {"type": "reasoning", "reasoning": THOUGHT},
                                    text_block(),
                                ]
                            }
                        }
                    ]
                },
            }
        ],
    },
    "spans of GenAI": {
        "traceId": "t",
        "spanId": "s",
        "attributes": {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps(
                [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]
            ),
            "gen_ai.output.messages": json.dumps(
                [
                    {
                        "role": "assistant",
                        "parts": [
                            {"type": "reasoning", "content": THOUGHT},
                            {"type": "text", "content": ANSWER},
                        ],
                    }
                ]
            ),
            "gen_ai.retrieval.documents": json.dumps([{"id": "1", "content": CHUNK["text"]}]),
        },
    },
    "messages": {
        "messages": [
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": f"<think>{THOUGHT}</think>{ANSWER}"},
        ],
        "evidence": [CHUNK],
    },
    "messages, beside": {
        "messages": [
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": ANSWER, "reasoning_content": THOUGHT},
        ],
        "evidence": [CHUNK],
    },
}


@pytest.mark.parametrize("name", THOUGHT_OUT)
def test_model_reasoning_is_stored_next_to_the_answer(name: str, tmp_path: Path) -> None:
    case = read(tmp_path, THOUGHT_OUT[name])
    assert (case.answer, case.model_reasoning) == (ANSWER, THOUGHT)
    assert case.earlier_turns == ()


def test_thoughts_in_table_cells_are_separated(tmp_path: Path) -> None:
    written = io.StringIO()
    csv.writer(written).writerows(
        [
            ("query", "answer", "evidence"),
            (QUESTION, f"<think>{THOUGHT}</think>\n{ANSWER}", json.dumps([CHUNK])),
        ]
    )
    case = read(tmp_path, written.getvalue(), "rows.csv")
    assert (case.answer, case.model_reasoning) == (ANSWER, THOUGHT)


def test_gemini_supports_point_into_the_answer_after_thoughts(
    tmp_path: Path,
) -> None:
    chunk = {"retrievedContext": {"uri": "s", "text": CHUNK["text"]}}
    words = "Die Mühle ist 18 m hoch."
    offset = len("Ich überlege.".encode())
    for segment in (
        {"partIndex": 1, "startIndex": 0, "endIndex": len(words.encode()), "text": words},
        {"startIndex": offset, "endIndex": offset + len(words.encode()), "text": words},
        {"partIndex": 1, "text": words},
    ):
        grounding = {
            "groundingChunks": [chunk],
            "groundingSupports": [{"segment": segment, "groundingChunkIndices": [0]}],
        }
        row = gemini(
            {"text": "Ich überlege.", "thought": True},
            {"text": words},
            candidate={"groundingMetadata": grounding},
        )
        case = read(tmp_path, row)
        assert case.answer
        assert [
            case.answer[citation.start : citation.end] for citation in case.given_citations
        ] == [words]


REFUSED: dict[str, dict[str, Any]] = {
    "Chat": chat({"content": None, "refusal": "I can't help."}),
    "a filter": chat({"content": None}, "content_filter"),
    "a filter's error": (
        chat({}, error={"code": "content_filter", "message": "content_filter"})
        | {
            "response": {
                "error": {"code": "content_filter", "message": "The prompt hit the content filter"}
            }
        }
    ),
    "Responses": responses(
        {"type": "message", "content": [{"type": "refusal", "refusal": "I can't help."}]}
    ),
    "Responses, a filter": responses(
        status="incomplete", incomplete_details={"reason": "content_filter"}
    ),
    "Anthropic": message(stop_reason="refusal"),
    "Anthropic, in the middle": message(text_block("The mill"), stop_reason="refusal"),
    "Gemini, the question": gemini(promptFeedback={"blockReason": "SAFETY"}),
    "Gemini, the answer": gemini({"text": ""}, candidate={"finishReason": "PROHIBITED_CONTENT"}),
    "own": {"query": QUESTION, "evidence": [CHUNK], "no_answer": "refused"},
}
FAILED: dict[str, dict[str, Any]] = {
    "Chat": chat({"content": ""}, "length"),
    "Chat, an error": {
        "request": {"messages": [{"role": "user", "content": QUESTION}]},
        "response": {"error": {"message": "Overloaded", "code": 529}},
        "documents": [CHUNK],
    },
    "only thoughts": chat({"content": f"<think>{THOUGHT}"}, "length"),
    "Responses": responses(status="failed", error={"code": "server_error", "message": "It broke"}),
    "Responses, cut off": responses(
        status="incomplete", incomplete_details={"reason": "max_output_tokens"}
    ),
    "Anthropic": message(stop_reason="max_tokens"),
    "Gemini": gemini({"text": ""}, candidate={"finishReason": "MAX_TOKENS"}),
    "Inspect": {
        "eval": {"task": "t"},
        "samples": [
            {
                "id": 1,
                "epoch": 1,
                "input": QUESTION,
                "target": "18",
                "metadata": {"context": CHUNK["text"]},
                "output": {"choices": [], "completion": ""},
                "error": {"message": "Timed out", "traceback": "..."},
            }
        ],
    },
    "promptfoo": {
        "results": {
            "results": [
                {
                    "vars": {"question": QUESTION, "context": CHUNK["text"]},
                    "response": {"error": "API error: 500"},
                    "provider": "p",
                    "promptIdx": 0,
                    "error": "API error: 500",
                }
            ]
        }
    },
    "own, an error": {
        "query": QUESTION,
        "evidence": [CHUNK],
        "answer": "",
        "error": "Read timed out",
    },
    "own, an object": {
        "query": QUESTION,
        "evidence": [CHUNK],
        "answer": {"error": {"code": 429, "message": "Slow down"}},
    },
    "own, HTTP": {"query": QUESTION, "evidence": [CHUNK], "answer": None, "status_code": 503},
    "a text, OpenAI": {
        "query": QUESTION,
        "evidence": [CHUNK],
        "answer": "Error code: 429 - {'error': {'message': 'Slow down'}}",
    },
    "a text, requests": {
        "query": QUESTION,
        "evidence": [CHUNK],
        "answer": "502 Server Error: Bad Gateway for url: http://a.b/c",
    },
    "a text, JSON": {
        "query": QUESTION,
        "evidence": [CHUNK],
        "answer": '{"error": {"message": "Slow down"}}',
    },
    "a text, a traceback": {
        "query": QUESTION,
        "evidence": [CHUNK],
        "answer": "Traceback (most recent call last):\n  File ...",
    },
}


@pytest.mark.parametrize(
    ("code", "name"),
    [*(("refused", name) for name in REFUSED), *(("failed", name) for name in FAILED)],
)
def test_a_refused_or_failed_answer_isnt_drafted_by_default(
    code: str, name: str, tmp_path: Path
) -> None:
    case = read(tmp_path, (REFUSED if code == "refused" else FAILED)[name])
    assert case.unanswered
    assert (case.unanswered.code, case.answer) == (code, None)
    run = masis.run_audit(case)
    assert run.draft is None
    assert run.iterations[0].answer == ""
    assert [reason.code for reason in run.review_reasons] == [f"answer_{code}"]
    assert (run.termination_reason, run.needs_review, run.final_answer) == ("no_answer", True, "")
    assert " ".join(case.unanswered.message.split()).rstrip(".") in run.review_reasons[0].message


FAILED |= {
    "promptfoo, nothing came": {
        "results": {
            "results": [
                {
                    "vars": {"question": QUESTION, "context": CHUNK["text"]},
                    "response": {},
                    "provider": "p",
                    "promptIdx": 0,
                    "error": "API error: 500",
                }
            ]
        }
    },
    "Langfuse": {
        "id": "t",
        "input": {"question": QUESTION},
        "output": None,
        "observations": [
            {"type": "RETRIEVER", "name": "search", "output": [{"page_content": CHUNK["text"]}]},
            {"type": "GENERATION", "level": "ERROR", "statusMessage": "Slow down"},
        ],
    },
    "LangSmith": {
        "id": "r",
        "run_type": "chain",
        "trace_id": "t",
        "inputs": {"question": QUESTION, "context": CHUNK["text"]},
        "outputs": None,
        "error": "RateLimitError('Slow down')",
    },
    "a page of a proxy": {
        "query": QUESTION,
        "evidence": [CHUNK],
        "answer": "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head></html>",
    },
    "a text, Python": {
        "query": QUESTION,
        "evidence": [CHUNK],
        "answer": "{'error': {'message': 'Slow down'}}",
    },
}
REFUSED |= {
    "promptfoo": {
        "results": {
            "results": [
                {
                    "vars": {"question": QUESTION, "context": CHUNK["text"]},
                    "response": {"output": "", "isRefusal": True},
                    "provider": "p",
                    "promptIdx": 0,
                }
            ]
        }
    },
}


ANSWERED: tuple[dict[str, Any], ...] = (
    chat({"content": "I'm sorry, the sources don't say how tall it is."}),
    chat({"content": "The mill is 18"}, "length"),
    chat({"content": ANSWER, "refusal": None}, error=None),
    {"query": QUESTION, "evidence": [CHUNK], "answer": ANSWER, "error": "the scorer failed"},
    {
        "query": QUESTION,
        "evidence": [CHUNK],
        "answer": "Error code: 429 means that there were too many requests [1].",
    },
    {"query": QUESTION, "evidence": [CHUNK], "answer": '{"answer": "18 metres", "error": null}'},
    {"query": QUESTION, "evidence": [CHUNK], "answer": "I can't help with that."},
    {
        "query": "Which status is sent?",
        "evidence": ["It sends 404 Not Found."],
        "answer": "404 Not Found",
    },
)


@for_each(ANSWERED)
def test_an_answer_that_hedges_breaks_off_or_mentions_errors_is_an_answer(
    row: dict[str, Any],
) -> None:
    (read_row,) = read_any([row])
    assert read_row.case is not None
    assert read_row.case.unanswered is None
    assert read_row.case.answer


def test_a_truncated_answer_is_noted(tmp_path: Path) -> None:
    row = chat({"content": "The mill is 18"}, "length")
    (found,) = read_any([row])
    assert found.case
    assert found.case.metadata["cut_off"] == "finish_reason: length"
    assert "cut off" in str(found.notes[0])
    assert "cut_off" not in read(tmp_path, chat({"content": ANSWER})).metadata


def test_a_run_without_an_answer_says_so_in_repr_and_notebook() -> None:
    run = masis.run_audit(case_with(id="m", error="It <b>broke</b>"))
    assert (
        repr(run)
        == "<Run of 'm': no answer, needs review: The call of the system failed: It <b>broke</b>>"
    )
    html = run._repr_html_() or ""
    assert "There was no answer to audit." in html
    assert "<b>broke" not in html
    (found,) = masis.audit_many([case_with(id="m", error="It broke")], progress=False)
    assert found.termination_reason == "no_answer"


def test_a_missing_answer_is_drafted() -> None:
    for error in (
        {},
        {"error": None},
        {"error": ""},
        {"error": "None"},
        {"status": "ok"},
        {"status": 200},
    ):
        case = case_with(**error)
        assert case.unanswered is None
        assert masis.run_audit(case).draft is not None


def test_an_answer_under_another_key_isnt_a_failure() -> None:
    with pytest.raises(InputError, match="may hold it"):
        case_with(response=ANSWER, finish_reason="length")


def test_a_case_with_both_answer_and_no_answer_is_rejected() -> None:
    with pytest.raises(InputError, match="but there is one"):
        case_with(answer=ANSWER, no_answer={"code": "failed"})


def test_the_no_answer_message_is_bounded() -> None:
    found = no_answer_in({"error": "x" * 100_000})
    assert found is not None
    assert len(found["message"]) <= 500
    deep: Any = "end"
    for _ in range(2_000):
        deep = {"output": [deep] * 2}
    assert no_answer_in({"output": deep}) is None


def test_a_refused_answer_is_drafted_only_on_request_and_needs_review() -> None:
    case = case_with(no_answer={"code": "refused", "message": "I can't help."})
    run = masis.run_audit(case, settings=masis.Settings().with_values({"draft_unanswered": True}))
    assert run.draft is not None
    assert run.iterations[0].claims
    assert "answer_refused" in {reason.code for reason in run.review_reasons}
    assert run.needs_review
