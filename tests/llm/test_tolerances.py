"""Replies that deviate from the requested form, over real HTTP: harmless deviations are read, and
ambiguous ones confirm nothing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

import masis
from masis.audit.measures.scores import normalize_score
from masis.errors import BadReply
from masis.llm.client.reply_parsing import UnreadableReply, parse, parse_reply, record_at_the_end
from masis.llm.roles.replies import (
    CheckedClaimsReply,
    CritiqueReply,
    EvaluationReply,
    ListedClaim,
    NumberedVerdict,
    RaisedIssue,
    RevisionReply,
    Verdict,
    VerdictsReply,
)
from masis.llm.roles.tolerances import SYNONYMS, TOLERANCES, chunk_names
from masis.llm.roles.verdicts import Chunks
from masis.schema.case import Evidence
from masis.schema.run import Run
from tests.llm import canned
from tests.llm.asking import CASE, PROMPT, SampleReply, model_at, settings_for, settings_here
from tests.rules import for_each
from tests.served_replies import sensible
from tests.serving_models import Behaviour, ModelServer, Request, reply_with

Change = Callable[[Any], Any]
JsonObject = dict[str, Any]


def change_fields(value: Any, change: Callable[[str, Any], Any]) -> Any:
    """Return the value with ``change`` applied to every field of its objects, at any depth."""
    if isinstance(value, dict):
        return {key: change(key, change_fields(item, change)) for key, item in value.items()}
    return [change_fields(item, change) for item in value] if isinstance(value, list) else value


def audited(change: Change, wire: str = "openai", issues: Any = "none", **script: Any) -> Run:
    """Audit a correct answer with a model whose replies are changed by this function.

    The function returns a record, a text or a ``Behaviour``.
    """

    def reply(request: Request) -> Behaviour:
        changed = change(sensible(request, issues))
        return changed if isinstance(changed, Behaviour) else reply_with(changed)

    with ModelServer(reply, **script) as server:
        return masis.run_audit(
            CASE, settings=settings_for(server, wire).with_values({"spot_check_share": 0.0})
        )


def verdicts(run: Run) -> list[tuple[str, float | None]]:
    return [(check.verdict, check.support) for check in run.iterations[0].claims]


SCORES: dict[Any, float | None] = {
    "0.95": 0.95,
    " 0.95 ": 0.95,
    ".5": 0.5,
    "5e-1": 0.5,
    "0,95": 0.95,
    "0,125": 0.125,
    "95%": 0.95,
    "1%": 0.01,
    "97,5 %": 0.975,
    "80 percent": 0.8,
    "4/5": 0.8,
    "8 out of 10": 0.8,
    "3 of 4": 0.75,
    "0.9/1": 0.9,
    '"0.7"': 0.7,
    "85": 0.85,  # numbers above 1 are percentages
    8: 0.08,
    "8": 0.08,
    "1,500": None,
    "1,500%": None,
    "about 90%": None,
    "%": None,
    "11/10": None,
    "5/0": None,
    "high": None,
    "0.8 or 0.9": None,
    "0.8-0.9": None,
    ">0.9": None,
    "0.9 (high)": None,
    "8/10?": None,
    "1.2.3": None,
    "": None,
    "NaN": None,
    "nine": None,
    "9" * 400: None,
}


@for_each(SCORES)
def test_a_score_with_its_scale_in_words_is_read(written: Any) -> None:
    verdict = Verdict.model_validate(canned.verdict(confidence=written))
    score = normalize_score("confidence", verdict.confidence).value
    assert (
        score == pytest.approx(SCORES[written]) if SCORES[written] is not None else score is None
    ), score


ROW_NUMBERS: dict[Any, Any] = {
    "2": 2,
    "2.0": 2,
    "Claim 2": 2,
    "claim #2": 2,
    "Claim: 2": 2,
    "[2]": 2,
    "No. 2": 2,
    "#2": 2,
    "2.": 2,
    2: 2,
    "Claim 2 and 3": None,
    "2-3": None,
    "1/2": None,
    "second": None,
    "Claim 2b": None,
    "Claim two": None,
    "chunk 2": None,
}


@for_each(ROW_NUMBERS)
def test_a_row_number_may_include_its_noun(written: Any) -> None:
    expected = written if ROW_NUMBERS[written] is None else ROW_NUMBERS[written]
    assert NumberedVerdict.model_validate(canned.verdict(written)).number == expected
    assert ListedClaim.model_validate(canned.listed_claim(written)).sentence == expected


def chunks(*ids: str) -> Chunks:
    return Chunks([Evidence(id=id_, text="x") for id_ in ids])


@pytest.mark.parametrize(
    ("written", "ids", "meant"),
    [
        ("EVIDENCE 1", ("1", "2"), "1"),
        ("[1]", ("1", "2"), "1"),
        ("chunk 2", ("1", "2"), "2"),
        ("[Source 2]", ("chunk_1", "chunk_2"), "chunk_2"),
        ("Document id: 2", ("1", "2"), "2"),
        ("doc #7", ("6", "7"), "7"),
        ("evidence [a-b]", ("a-b", "c"), "a-b"),
        ("Evidence 1", ("1", "Evidence 1"), "Evidence 1"),
        ("EVIDENCE 3", ("1", "2"), None),
        ("evidence", ("1", "2"), None),
        ("EVIDENCE 1", ("a_1", "b_1"), None),
        ("1 and 2", ("1", "2"), None),
    ],
)
def test_a_chunk_id_may_include_the_word_chunk(
    written: str, ids: tuple[str, ...], meant: str | None
) -> None:
    assert chunks(*ids).id_of(written) == meant


SUPPORTED = {
    "supported",
    "Supported",
    "SUPPORTED.",
    "**supported**",
    '"supported"',
    "Fully supported",
    "supports",
}
NEVER_SUPPORTED = {
    *(
        "partially supported",
        "not supported",
        "supported?",
        "mostly supported",
        "Yes, it is supported.",
        "unsupported",
    ),
    *(
        "supported/partial",
        "not contradicted",
        "supported by nothing",
        "true",
        "yes",
        "",
        "likely supported",
        "sup",
    ),
    *(
        "no support",
        "un-supported",
        "supported (weakly)",
        "supported or partial",
        "not fully supported",
    ),
}


@for_each(sorted(SUPPORTED | NEVER_SUPPORTED))
def test_only_unambiguous_words_mean_supported(word: str) -> None:
    assert (Verdict.model_validate(canned.verdict(verdict=word)).verdict == "supported") == (
        word in SUPPORTED
    )


def test_lenient_verdict_words_never_increase_support() -> None:
    for kind in ("verdict", "stance"):
        for written, meaning in SYNONYMS[kind].items():
            is_doubtful = written.startswith(
                ("not", "part", "contradict", "refute", "can", "un", "says_nothing", "neutral")
            )
            assert not (is_doubtful and meaning in ("supported", "supports")), written


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("major", "high"),
        ("Severe", "high"),
        ("MODERATE", "medium"),
        ("minor.", "low"),
        ("info", "low"),
    ],
)
def test_severity_synonyms_are_read(written: str, meant: str) -> None:
    assert RaisedIssue.model_validate(canned.critic_issue(severity=written)).severity == meant


@pytest.mark.parametrize("field", ["severity", "type"])
@pytest.mark.parametrize("written", ["weird", "high?", "3", "", "high or low"])
def test_an_unknown_severity_or_type_makes_no_issue(field: str, written: str) -> None:
    with pytest.raises(ValueError, match=field):
        RaisedIssue.model_validate(canned.critic_issue(**{field: written}))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Factual error", "factual"),
        ("unsupported_claim", "unsupported"),
        ("omission", "missing_info"),
    ],
)
def test_issue_type_synonyms_are_read(written: str, meant: str) -> None:
    assert RaisedIssue.model_validate(canned.critic_issue(type=written)).type == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (None, []),
        ("", []),
        ("none", []),
        (2, ["2"]),
        ("2", ["2"]),
        ([1, None, "b"], ["1", "b"]),
        ('["a", "b"]', ["a", "b"]),
    ],
)
def test_abbreviated_chunk_lists_are_read(written: Any, meant: list[str]) -> None:
    assert (
        RaisedIssue.model_validate(canned.critic_issue(evidence_ids=written)).evidence_ids == meant
    )


def without_fields(value: JsonObject, *names: str) -> JsonObject:
    return {key: item for key, item in value.items() if key not in names}


def test_an_omitted_list_is_empty_unless_the_reply_mentions_its_content() -> None:
    reply = without_fields(canned.critique(), "issues", "conflicting_evidence")
    assert CritiqueReply.model_validate(reply).issues == []
    for mention in (
        {"hallucination_detected": True},
        {"needs_retry": True},
        {"confidence": 0.7},
        {"overall_quality_score": "60%"},
        {"confidence": "high"},
    ):
        with pytest.raises(ValueError, match="no issues are given"):
            CritiqueReply.model_validate(reply | mention)
    assert (
        RevisionReply.model_validate({"revised_answer": "It is.", "updated_confidence": 1}).changes
        == []
    )


@pytest.mark.parametrize(
    ("shape", "reply"),
    [
        (VerdictsReply, {}),
        (CheckedClaimsReply, {"missing": []}),
        (CheckedClaimsReply, {"claims": [without_fields(canned.judged_claim(), "verdict")]}),
        (CheckedClaimsReply, {"claims": [without_fields(canned.judged_claim(), "confidence")]}),
        (CheckedClaimsReply, {"claims": [canned.listed_claim()], "verdicts": [canned.verdict()]}),
        (CritiqueReply, canned.critique(hallucination_detected=None)),
        (CritiqueReply, without_fields(canned.critique(), "confidence")),
        (EvaluationReply, {}),
    ],
)
def test_required_fields_are_never_filled_in(shape: Any, reply: JsonObject) -> None:
    with pytest.raises(UnreadableReply):
        parse_reply(json.dumps(reply), shape)


COMPLETE_REPLY = canned.evaluation()
WRITTEN = json.dumps(COMPLETE_REPLY)
WRAPPED_REPLIES: list[Any] = [
    {"result": COMPLETE_REPLY},
    {"evaluation_reply": COMPLETE_REPLY},
    {"EvaluationReply": COMPLETE_REPLY},
    {"type": "object", "properties": COMPLETE_REPLY},
    {
        "type": "object",
        "title": "Reply",
        "required": ["faithfulness"],
        "properties": COMPLETE_REPLY,
    },
    {"response": {"output": COMPLETE_REPLY}},
    {"data": [COMPLETE_REPLY]},
    {"status": "ok", "result": COMPLETE_REPLY},
]


@for_each([*WRAPPED_REPLIES, [COMPLETE_REPLY]])
def test_a_record_is_extracted_from_its_surroundings(wrapped: Any) -> None:
    assert parse(json.dumps(wrapped), EvaluationReply).record.relevance == 0.9
    assert (
        parse(f"Here:\n```json\n{json.dumps(wrapped)}\n```", EvaluationReply).record.relevance
        == 0.9
    )


@for_each(
    [
        {"example": COMPLETE_REPLY},
        {"quoted": COMPLETE_REPLY},
        {"result": COMPLETE_REPLY, "output": COMPLETE_REPLY},
        {"result": COMPLETE_REPLY, "quoted": {"relevance": 1.0}},
        {"result": [COMPLETE_REPLY, COMPLETE_REPLY]},
        {"result": {"result": {"result": {"result": {"result": COMPLETE_REPLY}}}}},
        {"result": "none"},
    ]
)
def test_a_quoted_or_ambiguous_record_isnt_read(wrapped: Any) -> None:
    with pytest.raises(UnreadableReply):
        parse_reply(json.dumps(wrapped), EvaluationReply)


def test_a_remark_about_the_record_isnt_the_record() -> None:
    assert (
        parse_reply(
            f'{WRITTEN} Note: {{"relevance": "high"}} was considered.', EvaluationReply
        ).relevance
        == 0.9
    )


@pytest.mark.parametrize(
    ("written", "expected", "repair"),
    [
        (r"so \(x \le \$5\)", r"so \(x \le \$5\)", "a backslash that escapes nothing"),
        (r"it\'s", "it's", "a backslash that escapes nothing"),
        (r"a\\b\dan", r"a\b\dan", "a backslash that escapes nothing"),
        (r"\u12", r"\u12", "a backslash that escapes nothing"),
        ("one\ntwo\tthree", "one\ntwo\tthree", "a line break in a text"),
        ('she said \\"yes, }\\" and left', 'she said "yes, }" and left', None),
    ],
)
def test_unambiguous_damage_is_repaired(written: str, expected: str, repair: str | None) -> None:
    parsed = parse(WRITTEN.replace("It answers.", written), EvaluationReply)
    assert parsed.record.relevance_reason == expected
    assert parsed.repairs == (() if repair is None else (repair,))


def test_extra_commas_are_removed_outside_of_text() -> None:
    text = WRITTEN.replace("It answers.", "a, }, ] b")[:-1] + " ,\n}"
    parsed = parse(f'Say "so": {text}', EvaluationReply)
    assert (parsed.record.relevance_reason, parsed.repairs) == ("a, }, ] b", ("a comma too many",))


def test_a_record_after_a_thought_differs_from_one_inside_it() -> None:
    assert record_at_the_end(f"Let me {{see}}.\n```json\n{WRITTEN}\n```") == WRITTEN
    assert record_at_the_end(f"Perhaps {WRITTEN}? No, that is wrong.") is None
    assert record_at_the_end("I can't say.") is None


def test_tolerated_deviations_are_recorded() -> None:
    value = {"reasons": [], "sound": True, "confidence": 0.7}
    with ModelServer([reply_with({"result": value})]) as server:
        model = model_at(server)
        assert model.ask(PROMPT, SampleReply, max_tokens=100).confidence == 0.7
    (call,) = model.control.calls.since()
    assert (call.tries, call.repaired) == (1, ("a wrapper around the record",))


HARMLESS_STYLES: dict[str, Change] = {
    "ids as numbers": lambda v: change_fields(v, lambda k, x: int(x) if k == "evidence_id" else x),
    "ids in words": lambda v: change_fields(
        v, lambda k, x: f"EVIDENCE {x}" if k == "evidence_id" else x
    ),
    "ids in brackets": lambda v: change_fields(
        v, lambda k, x: f"[chunk {x}]" if k == "evidence_id" else x
    ),
    "scores as percentages": lambda v: change_fields(
        v, lambda k, x: f"{100 * x:.0f}%" if isinstance(x, float) else x
    ),
    "scores with a comma": lambda v: change_fields(
        v, lambda k, x: str(x).replace(".", ",") if isinstance(x, float) else x
    ),
    "scores out of ten": lambda v: change_fields(
        v, lambda k, x: f"{x * 10:g} out of 10" if isinstance(x, float) else x
    ),
    "yes and no": lambda v: change_fields(
        v, lambda k, x: ("Yes." if x else "No.") if isinstance(x, bool) else x
    ),
    "null for empty lists": lambda v: change_fields(v, lambda k, x: None if x == [] else x),
    "no empty lists": lambda v: {key: item for key, item in v.items() if item != []},
    "a wrapper": lambda v: {"result": v},
    "an echoed schema": lambda v: {"type": "object", "properties": v},
    "numbers in words": lambda v: change_fields(
        v, lambda k, x: f"Sentence {x}" if k == "sentence" else x
    ),
    "verdicts with a stop": lambda v: change_fields(
        v, lambda k, x: f"{x}." if k in ("verdict", "stance") else x
    ),
    "invalid escapes": lambda v: json.dumps(v).replace("As it reads", r"As \(it\) reads"),
}


@pytest.mark.parametrize("name", HARMLESS_STYLES)
def test_reply_style_doesnt_change_the_audit(name: str) -> None:
    run = audited(HARMLESS_STYLES[name])
    assert verdicts(run) == [("supported", 1.0)] * 2
    assert run.iterations[0].critique.confidence == 0.9
    assert run.iterations[0].evaluation is not None
    assert run.iterations[0].evaluation.faithfulness == 0.9
    assert run.usage.tries == run.usage.calls
    assert not run.needs_review


@pytest.mark.parametrize(
    ("wire", "refuses"),
    [
        ("openai", ("json_schema",)),
        ("openai", ("json_schema", "json_object")),
        ("anthropic", ()),
        ("anthropic", ("json_schema",)),
    ],
)
def test_tolerances_apply_to_every_request_format(wire: str, refuses: tuple[str, ...]) -> None:
    def change(value: Any) -> Any:
        return {
            "result": HARMLESS_STYLES["ids in words"](HARMLESS_STYLES["scores out of ten"](value))
        }

    assert verdicts(audited(change, wire, refuses=refuses)) == [("supported", 1.0)] * 2


def test_all_issues_of_a_sloppy_critic_are_raised() -> None:
    sloppy_fields: dict[str, Any] = {
        "severity": "Major",
        "type": "unsupported_claim",
        "evidence_ids": 1,
        "suggestion": None,
    }
    run = audited(lambda v: change_fields(v, lambda k, x: sloppy_fields.get(k, x)), issues="always")
    (issue,) = (issue for issue in run.iterations[0].issues if issue.source == "critic")
    assert (issue.type, issue.severity, issue.evidence_ids, issue.suggestion) == (
        "unsupported",
        "high",
        ("1",),
        "",
    )


AMBIGUOUS_STYLES: dict[str, Change] = {
    "hedged": lambda v: change_fields(v, lambda k, x: "mostly supported" if k == "verdict" else x),
    "questioned": lambda v: change_fields(v, lambda k, x: "supported?" if k == "verdict" else x),
    "negated": lambda v: change_fields(v, lambda k, x: "not supported" if k == "verdict" else x),
    "of no chunk": lambda v: change_fields(
        v, lambda k, x: "EVIDENCE 9" if k == "evidence_id" else x
    ),
    "of nothing": lambda v: change_fields(v, lambda k, x: None if k == "evidence" else x),
    "of no words": lambda v: change_fields(v, lambda k, x: "" if k == "quote" else x),
    "unsure": lambda v: change_fields(v, lambda k, x: 0.5 if k == "confidence" else x),
    "in the middle of a thought": lambda v: message(
        {"content": "", "reasoning": f"{json.dumps(v)}? Or no."}
    ),
}


@pytest.mark.parametrize("name", AMBIGUOUS_STYLES)
def test_ambiguous_replies_confirm_no_claim(name: str) -> None:
    run = audited(AMBIGUOUS_STYLES[name])
    assert "supported" not in dict(verdicts(run))
    assert run.needs_review


# Replies and errors in unusual parts of a response


def body(value: Any) -> Behaviour:
    return Behaviour(body=value if isinstance(value, bytes) else json.dumps(value).encode())


def message(content: JsonObject, finish: str = "stop", **choice: Any) -> Behaviour:
    entry = {
        "index": 0,
        "message": {"role": "assistant", **content},
        "finish_reason": finish,
        **choice,
    }
    return body({"id": "c", "object": "chat.completion", "model": "m", "choices": [entry]})


def stream(*events: Any, done: bool = True) -> Behaviour:
    lines = [f"data: {json.dumps(event)}\n\n" for event in events] + (
        ["data: [DONE]\n\n"] if done else []
    )
    return body("".join(lines).encode())


def delta(text: str, finish: str | None = None) -> JsonObject:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


GOOD = {"reasons": ["it is so"], "sound": True, "confidence": 0.7}
TEXT = json.dumps(GOOD)
TOOL_CALL = {"name": "sample_reply", "arguments": TEXT}
RESPONSES = [
    message(
        {"content": None, "tool_calls": [{"id": "t", "type": "function", "function": TOOL_CALL}]},
        "tool_calls",
    ),
    message({"content": "", "tool_calls": [{"function": TOOL_CALL | {"arguments": GOOD}}]}),
    message({"content": None, "function_call": TOOL_CALL}),
    message({"content": "", "reasoning_content": TEXT}),
    message({"content": None, "reasoning": f"I see.\n\n{TEXT}"}),
    message({"content": TEXT, "reasoning": '{"reasons": ["no"], "sound": false, "confidence": 0}'}),
    message(
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "{"}]},
                {"type": "text", "text": TEXT},
            ]
        }
    ),
    message({"content": [{"type": "reasoning", "text": "{}"}, {"type": "text", "text": TEXT}]}),
    message({"content": TEXT}, error=None),
    body({"error": None, "choices": [{"message": {"content": TEXT}}]}),
    stream(
        delta(TEXT[:9]),
        delta(TEXT[9:]),
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
        done=False,
    ),
    stream(delta(TEXT)),
]


@pytest.mark.parametrize("response", RESPONSES)
def test_the_record_is_found_in_any_part_of_the_response(response: Behaviour) -> None:
    with ModelServer([response]) as server:
        assert model_at(server).ask(PROMPT, SampleReply, max_tokens=100).model_dump() == GOOD


def test_a_streamed_anthropic_message_is_read() -> None:
    events: list[JsonObject] = [
        {
            "type": "message_start",
            "message": {"model": "m", "content": [], "usage": {"input_tokens": 9}},
        },
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "{}"},
        },
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "text_delta", "text": TEXT[:5]},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "text_delta", "text": TEXT[5:]},
        },
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 5},
        },
    ]
    complete = stream(*events, {"type": "message_stop"}, done=False)
    truncated = stream(*events, done=False)
    with ModelServer([truncated, complete]) as server:
        model = model_at(server, "anthropic")
        assert model.ask(PROMPT, SampleReply, max_tokens=100).model_dump() == GOOD
    assert model.control.calls.since()[0].tries == 2


ERRORS = [
    ("openai", body({"choices": None, "error": {"code": 429, "message": "Rate limit MET"}}), "MET"),
    (
        "openai",
        body({"choices": [], "error": {"code": 400, "message": "No such thing, MET"}}),
        "MET",
    ),
    (
        "openai",
        message({"content": ""}, "error", error={"code": 502, "message": "Provider returned MET"}),
        "MET",
    ),
    (
        "openai",
        message(
            {"content": TEXT}, "error", error={"code": 502, "message": "Provider returned MET"}
        ),
        "MET",
    ),
    ("openai", body({"error": "model MET is not loaded"}), "MET"),
    ("openai", body({"object": "error", "message": "MET", "code": 40301}), "MET"),
    ("openai", body({"code": 400, "message": "the request is MET"}), "MET"),
    (
        "openai",
        body([{"error": {"code": 400, "message": "MET", "status": "INVALID_ARGUMENT"}}]),
        "MET",
    ),
    (
        "openai",
        body({"type": "error", "error": {"type": "overloaded_error", "message": "MET"}}),
        "MET",
    ),
    ("openai", body({"detail": "MET"}), "isn't a chat completion: MET"),
    ("openai", stream(delta("{"), {"error": {"code": 500, "message": "MET"}}), "MET"),
    ("openai", stream(delta(TEXT), done=False), "the stream ended"),
    (
        "openai",
        body({"error": {"code": "content_filter", "message": "The prompt was filtered"}}),
        "content filter",
    ),
    (
        "openai",
        message({}, "content_filter", content_filter_results={"hate": {"filtered": True}}),
        "content filter",
    ),
    ("openai", body(b"<!doctype html><html>Sign in</html>"), "a web page"),
    (
        "openai",
        message({"content": "", "tool_calls": [{"function": TOOL_CALL}, {"function": TOOL_CALL}]}),
        "empty",
    ),
    (
        "anthropic",
        body({"type": "error", "error": {"type": "overloaded_error", "message": "MET"}}),
        "MET",
    ),
    ("anthropic", body(b"<html>"), "a web page"),
]


@pytest.mark.parametrize(("wire", "response", "message"), ERRORS)
def test_an_error_with_status_200_keeps_the_providers_message(
    wire: Any, response: Behaviour, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with ModelServer(lambda request: response) as server:
        model = model_at(server, wire)
        with pytest.raises(Exception, match=message):
            model.ask(PROMPT, SampleReply, max_tokens=100)
    assert "MET" not in caplog.text


def test_provider_messages_are_bounded_and_sanitized() -> None:
    hostile = "down \x1b[31m\u202e<script>alert(1)</script>\r\nERROR forged" + "x" * 5000
    response = body({"choices": None, "error": {"code": 403, "message": hostile}})
    with ModelServer(lambda request: response) as server:
        run = masis.run_audit(CASE, settings=settings_here(server))
    (message,) = (warning.message for warning in run.warnings if warning.step == "critique")
    assert "down" in message
    assert message.isprintable()
    assert len(message) < 500
    assert run.needs_review


def test_text_is_never_taken_from_reasoning() -> None:
    response = message({"content": "", "reasoning": "I think {}"})
    with ModelServer(lambda request: response) as server, pytest.raises(BadReply, match="empty"):
        model_at(server).say(PROMPT, max_tokens=100)


def test_every_tolerance_has_an_example_and_a_reason() -> None:
    kinds = {tolerance.kind for tolerance in TOLERANCES}
    assert kinds == {"score", "row", "chunk", "word", "list", "flag"}
    assert all(tolerance.written and tolerance.why for tolerance in TOLERANCES)
    assert list(chunk_names("[Evidence 2]")) == ["[Evidence 2]", "Evidence 2", "2"]
