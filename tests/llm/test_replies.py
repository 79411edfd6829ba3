"""Replies: the schemas requested, parsing the text into a record, and repairs that are accepted or
rejected.
"""

from __future__ import annotations

import inspect
import json
import math
from dataclasses import replace
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from masis.audit.context import AuditContext
from masis.audit.control.run_control import RunControl
from masis.audit.output_validation import RepairedRecord
from masis.errors import BadReply, ProviderFailed
from masis.llm.client import schemas, shared_schema
from masis.llm.client.json_repair import RepairRefused, verify_repair
from masis.llm.client.model import Model
from masis.llm.client.reply_parsing import LONGEST_REPLY, UnreadableReply, parse_reply
from masis.llm.client.shared_schema import (
    SHARED_FROM,
    CommonReply,
    for_shared_schema,
    parse_shared,
    should_share,
)
from masis.llm.registry import Ready
from masis.llm.roles import replies
from masis.llm.roles.critic import ModelCritic
from masis.llm.roles.evaluator import ModelEvaluator
from masis.llm.roles.prompting import RolePrompt
from masis.llm.roles.replies import ClaimsReply, CompletenessReply, CritiqueReply, EvaluationReply
from masis.llm.roles.reviser import ModelReviser
from masis.llm.roles.verifier import Extractions, ModelVerifier
from masis.schema.base import Unscored
from masis.schema.calls import ModelCall, Usage
from masis.schema.case import Evidence
from masis.schema.providers import ProviderKind
from masis.settings import Settings
from tests.audit.factories import check, context, issue, verdict
from tests.llm import canned
from tests.llm.asking import PROMPT, WIRES, SampleReply, model_at
from tests.rules import for_each
from tests.serving_models import Behaviour, ModelServer, Request, broken_rules, reply_with, status

GOOD = {"reasons": ["a { in a text", 'and "quotes"'], "sound": True, "confidence": 0.7}
TEXT = json.dumps(GOOD)
FAKE = json.dumps({"reasons": ["planted"], "sound": True, "confidence": 1.0})


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        f"  \n{TEXT}\n",
        f"```json\n{TEXT}\n```",
        f"Here you are:\n\n{TEXT}\n\nAnything else?",
        f"<think>{{maybe}} I would say {{'a': 1}} so</think>{TEXT}",
        f"{FAKE}\n{TEXT}",
        f'The answer says {FAKE}, but I say: {TEXT} and a note {{"remark": 1}}',
        f"{TEXT} {{}}",
        f"{{{{ {TEXT}",
        json.dumps(GOOD, indent=2),
        TEXT[:-1] + ', "one more": {"sound": false}}',
    ],
)
def test_the_last_matching_json_object_is_used(reply: str) -> None:
    assert parse_reply(reply, SampleReply).model_dump() == GOOD


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "no JSON object"),
        ("I would give it an 8.", "no JSON object"),
        (TEXT[:-5], "no JSON object"),
        (f"[{TEXT[:-5]}]", "no JSON object"),
        ('{"sound": true, "confidence": 1}', "reasons: Field required"),
        (
            '{"reasons": "none", "sound": true, "confidence": 1}',
            "reasons: Input should be a valid list",
        ),
        ("{}", "Field required"),
        (f"{FAKE} But mine is: {TEXT[:-5]}", "not finished"),
        (
            f'{FAKE} But mine is: {{"sound": "perhaps", "confidence": 2}}',
            "sound: Input should be a valid boolean",
        ),
        ('{"reasons": [1], "sound": true, "confidence": 1}', r"reasons\.0"),
        ("9" * 5000, "no JSON object"),
        ('{"confidence": ' + "9" * 5000 + "}", "no JSON object"),
        ("[" * 50_000, "no JSON object"),
        ('{"reasons": ' * 50_000, "no JSON object"),
        ("x" * (LONGEST_REPLY + 1), "1,000,001 characters"),
    ],
)
def test_a_reply_without_the_record_is_rejected_with_a_reason(reply: str, reason: str) -> None:
    with pytest.raises(UnreadableReply, match=reason):
        parse_reply(reply, SampleReply)


def test_the_reason_doesnt_quote_the_reply() -> None:
    with pytest.raises(UnreadableReply) as raised:
        parse_reply(
            '{"reasons": "ORDERS", "sound": "ORDERS", "confidence": 1, "ORDERS": 1}', SampleReply
        )
    assert "ORDERS" not in str(raised.value)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_null_number_is_read_as_none(number: str) -> None:
    reply = parse_reply(f'{{"reasons": [], "sound": true, "confidence": {number}}}', SampleReply)
    assert not math.isfinite(reply.confidence)


def test_lone_surrogates_are_never_stored() -> None:
    reply = parse_reply(
        '{"reasons": ["a\\ud800b", "\\ud83d\\ude00"], "sound": true, "confidence": "\\udfff"}',
        SampleReply,
    )
    assert reply.reasons == ["a\ufffdb", "\U0001f600"]
    reply.model_dump_json().encode("utf-8")


@given(st.text(max_size=300), st.text(max_size=300))
def test_surrounding_text_doesnt_change_the_record(before: str, after: str) -> None:
    if any(f'"{name}"' in after for name in GOOD):
        return
    assert (
        parse_reply(f"{before}\n{TEXT}\n{after}", SampleReply).model_dump() == GOOD or "{" in before
    )


# A repair is compared with the text: anything that isn't certainly in the text is rejected

RECORD: dict[str, Any] = {
    "why": "It says [1].",
    "items": [{"kind": "a", "n": 1}, {"kind": "b", "n": 2}],
    "sound": True,
    "score": 0.5,
    "place": None,
}
NAMES = ("why", "items", "kind", "n", "sound", "score", "place")
WRITTEN = json.dumps(RECORD)
PRETTY = json.dumps(RECORD, indent=2)


def accepted_repair(
    text: str, proposed: dict[str, Any] = RECORD
) -> tuple[dict[str, Any], tuple[str, ...]]:
    repair = verify_repair(proposed, text, text.find("{"), NAMES, ("a", "b"))
    return repair.value, repair.repairs


@pytest.mark.parametrize(
    ("text", "repairs"),
    [
        (WRITTEN, ()),
        (PRETTY, ()),
        (f"Here: {WRITTEN} and more", ()),
        (WRITTEN.replace('"', "'"), ("quotes of another kind",)),
        (WRITTEN.replace("}]", "},]"), ("a comma too many",)),
        (WRITTEN.replace("}, {", "} {"), ("a missing comma",)),
        (PRETTY.replace('",\n', '"\n'), ("a missing comma",)),
        (WRITTEN.replace('"kind"', "kind"), ("a name without quotes",)),
        (WRITTEN.replace('"a"', "a"), ("a word without quotes",)),
        (WRITTEN.replace("0.5,", "0.5, // it is so\n"), ("a comment",)),
        (WRITTEN.replace("0.5,", "/* so */ 0.5,"), ("a comment",)),
        (WRITTEN.replace("null", "None"), ("a word of another language",)),
        (WRITTEN.replace("[1]", "\\u005b1\\u005D"), ()),
        (WRITTEN.replace("0.5", "5e-1"), ()),
    ],
)
def test_a_repaired_reply_lists_its_repairs(text: str, repairs: tuple[str, ...]) -> None:
    assert accepted_repair(text) == (RECORD, repairs)


def test_translated_keywords_are_understood() -> None:
    value, _ = accepted_repair(
        '{"sound": True, "place": None, "score": NaN}',
        {"sound": "True", "place": "None", "score": "NaN"},
    )
    assert value["sound"] is True
    assert value["place"] is None
    assert value["score"] != value["score"]
    assert accepted_repair('{"sound": "True"}', {"sound": "True"})[0] == {"sound": "True"}, (
        "a quoted keyword stays text"
    )
    assert accepted_repair(WRITTEN, RECORD | {"sound": "true"})[0]["sound"] is True, (
        "an unquoted keyword is a keyword"
    )


@for_each(range(1, len(WRITTEN) - 1))
def test_a_truncated_text_confirms_no_repair(cut: int) -> None:
    with pytest.raises(RepairRefused):
        accepted_repair(WRITTEN[:cut])


def test_only_a_final_closing_brace_may_be_missing() -> None:
    record = {"why": "a", "items": [1, 2]}
    text = json.dumps(record)
    assert accepted_repair(text[:-1], record) == (record, ("a missing last brace",))
    assert accepted_repair(text[:-1] + "\n```", record) == (record, ("a missing last brace",))
    for truncated in (
        '{"items": [1, 2], "why": "a"',
        '{"items": [1, 2], "score": 0.5',
        '{"why": "a", "items": [1, 2',
    ):
        with pytest.raises(RepairRefused):
            accepted_repair(
                truncated, json.loads(truncated + ("}" if truncated[-1] in '"5' else "]}"))
            )
    with pytest.raises(RepairRefused):
        accepted_repair(text[:-1] + " and so on", record)


@pytest.mark.parametrize(
    "proposed",
    [
        RECORD | {"more": None},
        {key: value for key, value in RECORD.items() if key != "items"},
        RECORD | {"items": RECORD["items"][1:]},
        RECORD | {"items": RECORD["items"][:1]},
        RECORD | {"items": []},
        RECORD | {"score": 0.51},
        RECORD | {"score": 5},
        RECORD | {"score": None},
        RECORD | {"sound": False},
        RECORD | {"sound": 1},
        RECORD | {"place": "null"} | {"why": "It says"},
        RECORD | {"why": "It says [1]"},
        RECORD | {"why": "It  says [1]."},
        RECORD | {"why": 'It says [1].", "items": [{"kind": "a'},
    ],
)
def test_a_repair_that_changes_anything_is_rejected(proposed: dict[str, Any]) -> None:
    with pytest.raises(RepairRefused):
        accepted_repair(WRITTEN, proposed)


@pytest.mark.parametrize(
    ("text", "proposed"),
    [
        ('{"why": "a", "items": ["b" "c"]}', {"why": "a", "items": ['b" "c']}),
        ('{"why": "a" "score": 2}', {"why": 'a" "score": 2'}),
        ('{"why": "a", score: 2"}', {"why": 'a", score: 2'}),
        ('{"why": a, score: 2}', {"why": "a, score: 2"}),
        ('{"why": "a"\n"score": 2}', {"why": 'a"\n"score": 2'}),
        ('{"items": [..., 1]}', {"items": ["...", 1]}),
        ('{"place": nulll}', {"place": "nulll"}),
        ('{"score": 85%}', {"score": "85%"}),
        ('{"why": "a "b""}', {"why": 'a "b"'}),
        ('{"items": ["a, "b"]}', {"items": ['a, "b']}),
        ('{"items": ["a"}, "b"]}', {"items": ['a"}, "b']}),
        ('{"why": ""a" b"}', {"why": '"a" b'}),
        ('{"why": "\n "a"}', {"why": '\n "a'}),
        ('{"why": "a", "why": "b"}', {"why": "b"}),
        ('{"score": 0.5 of 1}', {"score": 0.5}),
        ('{"score": 0.5abc}', {"score": 0.5}),
        ('{"score": 1, 000}', {"score": 1000}),
    ],
)
def test_a_repair_that_may_have_lost_text_is_rejected(text: str, proposed: dict[str, Any]) -> None:
    with pytest.raises(RepairRefused):
        accepted_repair(text, proposed)


def test_an_unescaped_quotation_mark_is_accepted_if_unambiguous() -> None:
    assert accepted_repair(
        '{"why": "he said "yes", and left", "score": 1}',
        {"why": 'he said "yes", and left', "score": 1},
    ) == ({"why": 'he said "yes", and left', "score": 1}, ("a quote in a text",))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=8), json_values, max_size=4), st.booleans())
def test_valid_json_confirms_itself(value: dict[str, Any], plain: bool) -> None:
    text = json.dumps(value, ensure_ascii=plain)
    assert verify_repair(value, text, 0).value == value


@given(
    st.dictionaries(st.sampled_from("abc"), json_values, min_size=1),
    st.dictionaries(st.sampled_from("abc"), json_values, min_size=1),
)
def test_an_object_isnt_confirmed_by_the_text_of_another(
    value: dict[str, Any], other: dict[str, Any]
) -> None:
    try:
        repaired = verify_repair(other, json.dumps(value), 0).value
    except RepairRefused:
        return
    assert repaired == value


@pytest.mark.parametrize(
    ("text", "proposed"),
    [
        ('{"a": ' + "/*" * 50_000, {"a": 1}),
        ('{"a": ' + "//\n" * 50_000, {"a": 1}),
        ("{" + " " * 100_000, {"a": 1}),
        ('{"a": "' + '"' * 100_000 + '"}', {"a": '"' * 100_000}),
        ('{"a": "' + "x\\" * 50_000, {"a": "x\\" * 50_000}),
    ],
)
def test_hostile_replies_are_parsed_quickly(text: str, proposed: dict[str, Any]) -> None:
    with pytest.raises(RepairRefused):
        verify_repair(proposed, text, 0, NAMES)


# A reply that a validator repairs is read, recorded, announced and counted; one that it can't
# repair is requested again

VALUE: dict[str, Any] = {"reasons": ["it is so"], "sound": True, "confidence": 0.7}
BAD = "{'reasons': ['it is so'], 'sound': True, 'confidence': 0.7}"


def with_validator(
    model: Model, value: dict[str, Any] | None
) -> tuple[Model, list[tuple[str, type[BaseModel]]]]:
    """Give the model a validator that returns this value for any reply, and list its inputs."""
    inputs: list[tuple[str, type[BaseModel]]] = []

    def rescue(text: str, shape: type[BaseModel]) -> RepairedRecord | None:
        inputs.append((text, shape))
        return None if value is None else RepairedRecord(value, ("quotes of another kind",))

    return replace(model, rescue=rescue), inputs


@pytest.mark.spec("REQ-CRITIC-028")
def test_a_repaired_reply_needs_no_retry_and_is_recorded() -> None:
    control = RunControl()
    with ModelServer([reply_with(BAD)]) as server:
        model, validated = with_validator(model_at(server, control=control), VALUE)
        assert model.ask(PROMPT, SampleReply, max_tokens=100).model_dump() == VALUE
        assert len(server.requests) == 1
    assert validated == [(BAD, SampleReply)]
    (call,) = control.calls.since()
    assert (call.outcome, call.tries, call.repaired) == ("answered", 1, ("quotes of another kind",))
    assert Usage.of([call]).repaired == 1
    notices = [control.calls.notices.get_nowait() for _ in range(control.calls.notices.qsize())]
    assert [notice.kind for notice in notices] == ["call_repaired", "call_finished"]
    assert (
        notices[0].message
        == "critic: the reply was repaired before it was read: quotes of another kind"
    )
    assert "it is so" not in str(notices)


def test_an_unrepairable_reply_is_requested_again() -> None:
    control = RunControl()
    with ModelServer([reply_with(BAD), reply_with(VALUE)]) as server:
        model, validated = with_validator(model_at(server, control=control), None)
        assert model.ask(PROMPT, SampleReply, max_tokens=100).model_dump() == VALUE
    assert len(validated) == 1
    (call,) = control.calls.since()
    assert (call.tries, call.repaired) == (2, ())


@pytest.mark.parametrize("value", [{"reasons": "none"}, {}, VALUE | {"sound": "perhaps"}])
def test_a_validator_that_changes_the_content_isnt_trusted(value: dict[str, Any]) -> None:
    control = RunControl()
    with ModelServer([reply_with(BAD), reply_with(BAD)]) as server:
        model, _ = with_validator(model_at(server, control=control), value)
        with pytest.raises(BadReply) as raised:
            model.ask(PROMPT, SampleReply, max_tokens=100)
    assert raised.value.kind == "malformed"
    assert control.calls.since()[0].repaired == ()


def test_a_truncated_reply_isnt_repaired() -> None:
    with ModelServer([Behaviour(text=BAD, finish="length")]) as server:
        model, validated = with_validator(model_at(server, max_retries=0), VALUE)
        with pytest.raises(BadReply) as raised:
            model.ask(PROMPT, SampleReply, max_tokens=100)
    assert raised.value.kind == "cut_off"
    assert validated == []


def test_a_shared_schema_reply_is_read_from_its_field() -> None:
    prompt = RolePrompt(PROMPT.frame, "x" * shared_schema.SHARED_FROM, PROMPT.task, PROMPT.version)
    with ModelServer([reply_with("{'evaluator': ...}")]) as server:
        model, validated = with_validator(model_at(server), {"evaluator": canned.evaluation()})
        model.provider.schema_in_cache = True
        reply = model.ask(prompt, EvaluationReply, max_tokens=100)
    assert reply == EvaluationReply.model_validate(canned.evaluation())
    assert [shape for _, shape in validated] == [shared_schema.with_only_field_of(EvaluationReply)]


# Long evidence is paid for once per run, because its calls use one schema and can share a
# provider's cache

LONG = RolePrompt("frame", "x" * SHARED_FROM, "task", "critic/1+0")


def context_of_length(characters: int) -> AuditContext:
    """Return the context of an answer with about this many characters of evidence."""
    text = "The bridge is 120 metres long. " + "It stands in a valley. " * (characters // 23)
    return context(
        evidence=(Evidence(id="chunk_1", text=text),),
        answer="The bridge is 120 metres long [chunk_1].",
    )


def calls_of_all_judges(
    server: ModelServer, wire: ProviderKind, context: AuditContext, **changes: Any
) -> tuple[ModelCall, ...]:
    """Run every judge of an audit in turn with one model, and return the calls."""
    model = model_at(server, wire, **changes)
    model.provider.schema_in_cache = True  # as for OpenAI's and Anthropic's own servers
    assert not isinstance(ModelCritic(model).critique(context), Unscored)
    assert not isinstance(ModelEvaluator(model, Settings()).evaluate(context, verdict()), Unscored)
    ModelReviser(model).revise(context, verdict(), (issue(),))
    verifier = ModelVerifier(model, Settings(), Extractions())
    verifier.check(
        [check().claim], context.query, context.answer, context.evidence, completeness=False
    )
    verifier.check([], context.query, context.answer, context.evidence, completeness=True)
    return model.control.calls.since()


def requested_schemas(server: ModelServer) -> set[str]:
    """Return the schemas of all requests."""
    return {json.dumps(request.schema, sort_keys=True) for request in server.requests}


@pytest.mark.spec("REQ-CRITIC-NFR-013")
@pytest.mark.parametrize("wire", WIRES)
def test_long_evidence_is_cached_after_the_first_call(
    wire: ProviderKind,
) -> None:
    with ModelServer() as server:
        first, *others = calls_of_all_judges(server, wire, context_of_length(80_000))
        assert len(requested_schemas(server)) == 1
        assert not any(broken_rules(request) for request in server.requests)
    assert first.cached_tokens == 0
    assert len(others) == 4
    for call in others:
        assert (call.mode, call.outcome, call.tries) == ("json_schema", "answered", 1)
        assert call.cached_tokens > 0.85 * call.prompt_tokens


def test_the_shared_schema_is_used_only_where_it_helps_caching() -> None:
    with ModelServer() as server:
        model = model_at(server)
        assert not isinstance(ModelCritic(model).critique(context_of_length(80_000)), Unscored)
        assert {request.schema_name for request in server.requests} == {"critique_reply"}


@pytest.mark.parametrize("wire", WIRES)
def test_short_evidence_uses_separate_schemas(wire: ProviderKind) -> None:
    with ModelServer() as server:
        calls_of_all_judges(server, wire, context_of_length(1_000))
        assert len(requested_schemas(server)) == 5


def test_only_calls_with_the_same_evidence_share_a_schema() -> None:
    assert should_share(LONG, CritiqueReply)
    assert not should_share(LONG, ClaimsReply)
    assert not should_share(LONG._replace(shared="short"), CritiqueReply)


def test_the_prompt_names_the_field_to_fill_after_the_shared_prefix() -> None:
    prompt = for_shared_schema(LONG, CompletenessReply)
    assert prompt.task.endswith("Fill 'completeness'; all others are null.")
    assert (prompt.frame, prompt.shared, prompt.version) == (LONG.frame, LONG.shared, LONG.version)
    assert set(schemas.reply_schema(CommonReply).schema["properties"]) >= {"completeness", "critic"}


@pytest.mark.parametrize(
    "reply",
    [{"critic": canned.critique(), "reviser": "nonsense", "evaluator": None}, canned.critique()],
)
def test_the_record_is_read_with_or_without_the_shared_wrapper(
    reply: Any,
) -> None:
    assert parse_shared(json.dumps(reply), CritiqueReply).record.confidence == 0.9


@pytest.mark.parametrize(
    "text",
    [
        "All fine.",
        '{"critic": null}',
        json.dumps({"evaluator": canned.evaluation()}),
        '{"critic": {"confidence": 1}}',
    ],
)
def test_a_shared_reply_without_the_record_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableReply):
        parse_shared(text, CritiqueReply)


def test_servers_without_schemas_get_no_shared_schema() -> None:
    def script(request: Request) -> Behaviour | None:
        if request.mode == "json_schema":
            return status(
                400, "response_format json_schema is not supported", code_name="unsupported"
            )
        return reply_with(canned.critique())

    with ModelServer(script) as server:
        model = model_at(server)
        assert not isinstance(ModelCritic(model).critique(context_of_length(80_000)), Unscored)
        assert [request.mode for request in server.requests] == [
            "json_schema",
            "json_object_schema",
        ]
        assert "critique_reply" in server.requests[-1].text
        assert "all others are null" not in server.requests[-1].text


# The schemas sent follow the rules of strict mode for every reply model

REPLIES = [
    shape
    for _, shape in inspect.getmembers(replies, inspect.isclass)
    if issubclass(shape, BaseModel)
    and shape.__name__.endswith("Reply")
    and shape.__name__ != "Reply"
]


class Inner(BaseModel):
    """A nested record."""

    kind: Literal["a", "b"] = "a"
    only: Literal["one"]


class Awkward(BaseModel):
    """Everything that strict mode rejects or needs in another form."""

    share: Annotated[float, Field(ge=0, le=1, description="How much.")] = 0.5
    name: Annotated[str, Field(max_length=5, pattern="^a")] | None = None
    inner: Inner = Field(description="A description next to a reference.")
    more: list[Inner] = []
    either: int | str | None


def request_with(shape: type[BaseModel]) -> Request:
    schema = schemas.reply_schema(shape)
    return Request(
        "openai",
        {},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": schema.name, "strict": True, "schema": schema.schema},
            }
        },
    )


@pytest.mark.parametrize("shape", [*REPLIES, Ready, Awkward], ids=lambda shape: shape.__name__)
def test_every_schema_follows_the_strict_mode_rules(shape: type[BaseModel]) -> None:
    assert broken_rules(request_with(shape)) == []
    assert set(schemas.reply_schema(shape).schema["required"]) == set(
        shape.model_json_schema()["properties"]
    )


def test_all_prompts_replies_are_covered() -> None:
    assert len(REPLIES) >= 7


def test_unsupported_schema_keywords_become_descriptions() -> None:
    properties = schemas.reply_schema(Awkward).schema["properties"]
    assert properties["share"] == {
        "type": "number",
        "description": "How much. (maximum: 1, minimum: 0)",
    }
    assert properties["name"]["anyOf"][0]["description"] == "(maxLength: 5, pattern: ^a)"
    assert properties["inner"] == {"$ref": "#/$defs/Inner"}
    assert schemas.reply_schema(Awkward).schema["$defs"]["Inner"]["properties"]["only"] == {
        "type": "string",
        "enum": ["one"],
    }


def test_schemas_are_cached() -> None:
    assert schemas.reply_schema(Awkward) is schemas.reply_schema(Awkward)
    assert schemas.reply_schema(Awkward).name == "awkward"
    assert schemas.reply_schema(replies.CritiqueReply).name == "critique_reply"


@pytest.mark.parametrize("kind", [dict[str, int], tuple[int, str], Any])
def test_an_inexpressible_schema_is_rejected(kind: Any) -> None:
    shape = type(
        "Loose", (BaseModel,), {"__annotations__": {"value": kind}, "__module__": __name__}
    )
    with pytest.raises(TypeError, match=r"Loose\.value"):
        schemas.reply_schema(shape)


@pytest.mark.parametrize("wire", WIRES)
def test_plain_text_is_requested_without_a_schema(wire: ProviderKind) -> None:
    control = RunControl()
    with ModelServer([status(503), reply_with('Write {"this": 1} down.')]) as server:
        reply = model_at(server, wire, control).say(PROMPT, max_tokens=100, temperature=0.9)
        body = server.requests[-1].body
    assert reply == 'Write {"this": 1} down.'
    assert "response_format" not in body
    assert "tools" not in body
    assert "JSON" not in server.requests[-1].text
    (call,) = control.calls.since()
    assert (call.mode, call.outcome, call.tries) == ("text", "answered", 2)


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        (Behaviour(text=""), BadReply),
        (Behaviour(refusal="No.", finish="refusal"), BadReply),
        (status(401), ProviderFailed),
    ],
)
def test_an_empty_text_reply_is_an_error(behaviour: Behaviour, error: type[Exception]) -> None:
    with ModelServer(lambda request: behaviour) as server, pytest.raises(error):
        model_at(server).say(PROMPT, max_tokens=100)


def test_plain_text_works_without_schema_support() -> None:
    with ModelServer(
        lambda request: reply_with("Yes."), refuses=("json_schema", "json_object")
    ) as server:
        assert model_at(server).say(PROMPT, max_tokens=100) == "Yes."
        assert len(server.requests) == 1
