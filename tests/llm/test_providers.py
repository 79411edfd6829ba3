"""Requests to providers: their format and address, learning a server's capabilities, and
classifying its errors.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from masis.api import audits
from masis.audit.control.run_control import RunBudget, RunControl
from masis.errors import BadReply, ContextFull, ProviderFailed
from masis.llm import registry
from masis.llm.client.retry import retry_after
from masis.llm.client.server_capabilities import ServerCapabilities
from masis.llm.providers.base import FailureKind, TokenUsage
from masis.llm.providers.provider_errors import from_status, refusal, scrub_error
from masis.schema.providers import ProviderKind, ProviderSettings
from masis.settings import ROLES, Settings
from tests.cases import case_of
from tests.llm.asking import KEY, PROMPT, WIRES, SampleReply, model_at
from tests.serving_models import Behaviour, ModelServer, Request, reply_with, status

both_wires = pytest.mark.parametrize("wire", WIRES)
GOOD = {"reasons": [], "sound": True, "confidence": 0.8}


def ask_times(
    server: ModelServer, wire: ProviderKind = "openai", times: int = 1, **changes: Any
) -> RunControl:
    control = RunControl()
    for _ in range(times):
        model_at(server, wire, control, **changes).ask(PROMPT, SampleReply, max_tokens=100)
    return control


def retry_messages(control: RunControl) -> list[str]:
    """Return the messages shown when a call was retried in another format."""
    notices = [control.calls.notices.get_nowait() for _ in range(control.calls.notices.qsize())]
    return [notice.message for notice in notices if notice and notice.kind == "call_retried"]


@pytest.mark.spec("REQ-CRITIC-006", "REQ-CRITIC-013")
def test_a_request_has_the_openai_format() -> None:
    with ModelServer() as server:
        model_at(server).ask(PROMPT, SampleReply, max_tokens=123, temperature=0.2)
        (request,) = server.requests
    assert request.body["messages"] == [
        {"role": "system", "content": PROMPT.frame},
        {"role": "user", "content": f"{PROMPT.shared}\n\n{PROMPT.task}"},
    ]
    assert (request.body["max_tokens"], request.body["temperature"]) == (123, 0.2)
    assert request.body["response_format"]["json_schema"]["strict"] is True
    assert request.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.spec("REQ-CRITIC-006", "REQ-CRITIC-013")
def test_a_request_has_the_anthropic_format() -> None:
    long = PROMPT._replace(shared="EVIDENCE " * 1000)
    with ModelServer() as server:
        model_at(server, "anthropic").ask(long, SampleReply, max_tokens=123, temperature=0.0)
        (request,) = server.requests
    assert request.body["system"] == [{"type": "text", "text": long.frame}]
    shared, task = request.body["messages"][0]["content"]
    assert shared == {"type": "text", "text": long.shared, "cache_control": {"type": "ephemeral"}}
    assert task == {"type": "text", "text": long.task}
    assert request.body["max_tokens"] == 123
    assert "temperature" not in request.body
    assert request.body["output_config"]["format"]["type"] == "json_schema"
    assert KEY in (request.headers.get("x-api-key") or request.headers["authorization"])


@both_wires
@pytest.mark.parametrize(
    ("refuses", "mode"),
    [
        (("json_schema", "json_object_schema"), "json_object"),
        (("json_object",), "json_schema"),
        (("json_schema", "json_object"), "prompt"),
    ],
)
def test_a_rejected_reply_format_falls_back_to_a_simpler_one(
    wire: ProviderKind, refuses: tuple[str, ...], mode: str
) -> None:
    with ModelServer(refuses=refuses) as server:
        control = ask_times(server, wire, times=3)
        modes = [request.mode for request in server.requests]
    ladder = ["json_schema", "json_object_schema", "json_object", "prompt"]
    if wire == "anthropic":
        ladder.remove("json_object_schema")
    assert modes == [*ladder[: ladder.index(mode)], *[mode] * 3]
    calls = control.calls.since()
    assert [call.mode for call in calls] == [mode] * 3
    assert [call.tries for call in calls] == [ladder.index(mode) + 1, 1, 1]
    assert len(retry_messages(control)) == ladder.index(mode)


def test_a_server_error_about_a_format_falls_back_to_another() -> None:
    """llama-cpp-python's server answers ``json_schema`` with 500, and takes a schema in
    JSON mode.
    """
    message = (
        "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), "
        "'msg': \"Input should be 'text' or 'json_object'\"}]"
    )

    def script(request: Request) -> Behaviour | None:
        if request.mode == "json_schema":
            return status(500, message, code_name="internal_server_error")
        return None

    with ModelServer(script) as server:
        control = ask_times(server, times=2)
        modes = [request.mode for request in server.requests]
        (schema,) = {
            json.dumps(request.body["response_format"].get("schema"))
            for request in server.requests[1:]
        }
    assert modes == ["json_schema", "json_object_schema", "json_object_schema"]
    assert "confidence" in schema
    assert [(call.outcome, call.mode) for call in control.calls.since()] == [
        ("answered", "json_object_schema")
    ] * 2
    assert not any("overloaded" in message for message in retry_messages(control))


def test_openai_gets_no_parameters_of_other_servers() -> None:
    table = {"openai": ProviderSettings(key_env="SCRIPTED_KEY")}
    provider = registry.model_in_role(
        "openai:gpt-4o", "critic", RunControl(), Settings(providers=table)
    ).provider
    assert provider.modes == ("json_schema", "json_object", "prompt")


def failure(behaviour: Behaviour, control: RunControl | None = None, **changes: Any) -> str:
    with (
        ModelServer([behaviour] * 5) as server,
        pytest.raises((BadReply, ProviderFailed)) as raised,
    ):
        model_at(server, control=control, **changes).ask(PROMPT, SampleReply, max_tokens=2_000)
    return str(raised.value)


@pytest.mark.parametrize("wire", WIRES)
def test_a_full_context_and_a_truncated_reply_are_distinct_errors(
    wire: ProviderKind,
) -> None:
    full = failure(Behaviour(finish="length", prompt_tokens=2_084, completion_tokens=11), wire=wire)
    assert (
        "the model's context is full: 2,084 tokens of question and evidence left room for 11 of the"
        " 2,000" in full
    )
    assert "llama-server -c 32768" in full
    assert "OLLAMA_CONTEXT_LENGTH" in full
    assert "cut off at 2000 tokens" in failure(
        Behaviour(finish="length", completion_tokens=2_000), wire=wire
    )
    too_long = failure(
        status(400, "the request exceeds the available context size", code_name="x"), wire=wire
    )
    assert "llama-server -c 32768" in too_long


LONG = PROMPT._replace(shared="EVIDENCE of many words. " * 2_000)


def counting(prompt_tokens: int) -> Behaviour:
    """A valid reply whose usage reports this many prompt tokens."""
    return Behaviour(text=json.dumps(GOOD), prompt_tokens=prompt_tokens)


def test_a_prompt_truncated_by_the_server_is_an_error() -> None:
    control = RunControl()
    with ModelServer([counting(2_048), reply_with(GOOD)]) as server:
        with pytest.raises(
            ContextFull, match=r"the server read only 2,048 tokens of a question of 48,"
        ):
            model_at(server, control=control).ask(LONG, SampleReply, max_tokens=100)
        model_at(server, control=control).ask(LONG, SampleReply, max_tokens=100)
    truncated, complete = control.calls.since()
    assert (truncated.outcome, truncated.tries, truncated.prompt_tokens) == ("failed", 1, 2_048)
    assert "OLLAMA_CONTEXT_LENGTH" in truncated.error
    assert (complete.outcome, complete.error) == ("answered", "")


@pytest.mark.parametrize("counted", [0, 8_100, 12_000])
def test_plausible_token_counts_dont_indicate_truncation(
    counted: int,
) -> None:
    with ModelServer([counting(counted)]) as server:
        assert model_at(server).ask(LONG, SampleReply, max_tokens=100)


def test_counts_without_cached_tokens_dont_indicate_truncation() -> None:
    with ModelServer([counting(11_000), counting(40)]) as server:
        for _ in range(2):
            assert model_at(server).ask(LONG, SampleReply, max_tokens=100)


@pytest.mark.parametrize(
    ("text", "tokens", "is_truncated"),
    [
        ("The bridge is 120 metres long and opened in 1931. " * 100, 700, True),
        ("The bridge is 120 metres long and opened in 1931. " * 100, 1_300, False),
        ("Donaudampfschifffahrtsgesellschaftskapitän " * 100, 900, False),
        ("這座橋全長一百二十公尺於一九三一年通車" * 100, 300, True),
        ("這座橋全長一百二十公尺於一九三一年通車" * 100, 1_100, False),
        ("สะพานยาวหนึ่งร้อยยี่สิบเมตรเปิดใช้งานในปี" * 100, 1_300, False),
        (f"{' ' * 400}| {'=' * 400} |\n" * 100, 500, False),
        ("https://example.org/" + "a1b2" * 5_000, 300, False),
    ],
)
def test_truncation_is_detected_in_any_language(text: str, tokens: int, is_truncated: bool) -> None:
    capabilities = ServerCapabilities(("json_schema",))
    assert capabilities.cut_the_prompt(text, TokenUsage(prompt=tokens)) is is_truncated


def test_cached_tokens_count_as_read() -> None:
    text = "word " * 3_000
    capabilities = ServerCapabilities(("json_schema",))
    assert not capabilities.cut_the_prompt(text, TokenUsage(prompt=100, cached=4_000))
    assert not capabilities.cut_the_prompt(text, TokenUsage(prompt=100, written=4_000))


def test_truncation_uses_at_most_one_word_per_token() -> None:
    capabilities, text = ServerCapabilities(("json_schema",)), "word " * 1_000
    assert not capabilities.cut_the_prompt(text, TokenUsage(prompt=900))
    assert not capabilities.cut_the_prompt(text, TokenUsage(prompt=1_300))
    assert capabilities.cut_the_prompt(text, TokenUsage(prompt=900))


def test_a_key_rejected_by_a_proxy_is_an_authentication_error() -> None:
    message = failure(status(400, "No connected db.", code_name="no_db_connection"))
    assert "the key was not accepted (400). Check SCRIPTED_KEY." in message


def test_a_missing_key_names_its_environment_variable() -> None:
    with ModelServer(keys=["right"]) as server:
        table = {"own": ProviderSettings(kind="openai", address=server.address)}
        model = registry.model_in_role("own:m", "critic", RunControl(), Settings(providers=table))
        with pytest.raises(ProviderFailed) as raised:
            model.ask(PROMPT, SampleReply, max_tokens=10)
    hint = "Name the variable that holds it: key_env in [providers.own] of masis.toml."
    assert f"a key is needed (401). {hint}" in str(raised.value)


@pytest.mark.parametrize("name", ["call", "iteration", "loop"])
def test_a_timeout_names_its_limit_value_and_setting(name: str) -> None:
    control = RunControl(RunBudget(**{f"{name}_s": 0.2}))
    if name == "iteration":
        control.budget.begin_iteration()
    message = failure(Behaviour(hang_s=5), control)
    assert (
        f"The limit was {name}_deadline_s = 0.2 s: raise it in masis.toml or with --set"
        f" {name}_deadline_s=" in message
    )


def test_a_format_fallback_is_reported_once() -> None:
    control = RunControl()
    with ModelServer(refuses=("json_schema",), latency_ms=30) as server:
        model = model_at(server, control=control)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: model.ask(PROMPT, SampleReply, max_tokens=100), range(8)))
    assert len(retry_messages(control)) == 1
    assert {call.outcome for call in control.calls.since()} == {"answered"}


def test_formats_are_learned_per_model() -> None:
    with ModelServer(lambda request: None, refuses=("json_schema",)) as server:
        ask_times(server)
        server.refuses.clear()
        ask_times(server, model="judge-2")
        assert [request.mode for request in server.requests] == [
            "json_schema",
            "json_object_schema",
            "json_schema",
        ]


def test_a_server_that_ignores_schemas_is_asked_in_another_format() -> None:
    def script(request: Request) -> Behaviour:
        return reply_with("It looks fine." if request.mode == "json_schema" else GOOD)

    with ModelServer(script) as server:
        control = ask_times(server, times=4)
        modes = [request.mode for request in server.requests]
    assert modes == [
        "json_schema",
        "json_object_schema",
        "json_schema",
        *["json_object_schema"] * 3,
    ]
    assert [call.outcome for call in control.calls.since()] == ["answered"] * 4


def test_one_unreadable_reply_doesnt_change_the_format() -> None:
    replies = {1: "It looks fine.", 3: "It looks fine."}
    with ModelServer(lambda request: reply_with(replies.get(request.number, GOOD))) as server:
        ask_times(server, times=4)
        assert {request.mode for request in server.requests} == {"json_schema"}


def test_an_explicit_format_is_kept() -> None:
    with ModelServer() as server:
        ask_times(server, mode="prompt")
        assert server.requests[0].mode == "prompt"
        assert "JSON schema, named sample_reply" in server.requests[0].text
    with (
        ModelServer(refuses=("json_schema",)) as server,
        pytest.raises(ProviderFailed, match="not supported"),
    ):
        ask_times(server, mode="json_schema")


@pytest.mark.parametrize("refused", ["temperature", "max_tokens", "system"])
def test_a_rejected_parameter_is_omitted_afterwards(refused: str) -> None:
    control = RunControl()
    with ModelServer(refuses=(refused,)) as server:
        for _ in range(2):
            model_at(server, control=control).ask(
                PROMPT, SampleReply, max_tokens=100, temperature=0.0
            )
        bodies = [request.body for request in server.requests]
        texts = {request.text for request in server.requests}
    assert [call.tries for call in control.calls.since()] == [2, 1]
    assert len(retry_messages(control)) == 1
    if refused == "system":
        assert [len(body["messages"]) for body in bodies] == [2, 1, 1]
        assert len(texts) == 1
    else:
        assert [refused in body for body in bodies] == [True, False, False]
    if refused == "max_tokens":
        assert bodies[1]["max_completion_tokens"] == 100


def test_a_token_limit_rejected_under_both_names_is_omitted() -> None:
    with ModelServer(refuses=("max_tokens", "max_completion_tokens")) as server:
        ask_times(server)
        assert not {"max_tokens", "max_completion_tokens"} & server.requests[-1].body.keys()


@both_wires
def test_reasoning_models_get_a_larger_token_limit(wire: ProviderKind) -> None:
    control = RunControl()
    with ModelServer(thinks=900) as server:
        for _ in range(2):
            model_at(server, wire, control).ask(PROMPT, SampleReply, max_tokens=100)
        assert [request.body["max_tokens"] for request in server.requests] == [100, 400, 1600, 1600]
    assert [call.tries for call in control.calls.since()] == [3, 1]
    with (
        ModelServer(thinks=5000) as server,
        pytest.raises(BadReply, match="cut off at 1600 tokens"),
    ):
        model_at(server, wire).ask(PROMPT, SampleReply, max_tokens=100)


@both_wires
def test_reasoning_effort_is_sent_where_supported(wire: ProviderKind) -> None:
    with ModelServer() as server:
        ask_times(server, wire, effort="medium")
        body = server.requests[0].body
    assert (
        body["reasoning_effort"] if wire == "openai" else body["output_config"]["effort"]
    ) == "medium"
    with ModelServer(refuses=("effort",)) as server:
        control = ask_times(server, wire, times=2, effort="medium")
        assert "effort" not in str(server.requests[-1].body)
        assert {request.mode for request in server.requests} == {"json_schema"}
    assert [call.tries for call in control.calls.since()] == [2, 1]


def test_a_rejected_cache_marker_is_omitted() -> None:
    long = PROMPT._replace(shared="EVIDENCE " * 1000)
    with ModelServer(refuses=("cache_control",)) as server:
        model_at(server, "anthropic").ask(long, SampleReply, max_tokens=100)
        assert "cache_control" not in str(server.requests[-1].body)


@both_wires
@pytest.mark.parametrize(("mode", "shared"), [("json_schema", False), ("prompt", True)])
@pytest.mark.spec("REQ-CRITIC-NFR-013")
def test_roles_with_different_schemas_share_a_prompt_cache(
    wire: ProviderKind, mode: str, shared: bool
) -> None:
    long, control = PROMPT._replace(shared="EVIDENCE " * 2000), RunControl()
    with ModelServer() as server:
        model = model_at(server, wire, control, mode=mode)
        model.ask(long, SampleReply, max_tokens=100)
        model.ask(long._replace(task="Something else."), registry.Ready, max_tokens=100)
    first, second = control.calls.since()
    assert first.cached_tokens == 0
    assert (second.cached_tokens > 0.8 * second.prompt_tokens) is shared


@both_wires
def test_redirects_arent_followed(wire: ProviderKind) -> None:
    with ModelServer() as other_server:
        path = "chat/completions" if wire == "openai" else "messages"
        moved = Behaviour(status=307, headers={"location": f"{other_server.address}/{path}"})
        with (
            ModelServer(lambda request: moved) as server,
            pytest.raises(ProviderFailed, match=r"307"),
        ):
            ask_times(server, wire)
        assert not other_server.requests


@both_wires
@pytest.mark.spec("REQ-CRITIC-SEC-002")
def test_vendor_environment_variables_dont_reach_other_servers(
    wire: ProviderKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_ORG_ID",
        "OPENAI_PROJECT_ID",
        "OPENAI_ADMIN_KEY",
        "ANTHROPIC_API_KEY",
    ):
        monkeypatch.setenv(name, f"private-{name}")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "private-token")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: private-header")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Gateway: private-header")
    with ModelServer() as server:
        ask_times(server, wire)
        assert "private" not in str(server.requests[0].headers)


@pytest.mark.parametrize("vendor", WIRES)
def test_a_vendor_key_is_sent_to_the_base_url_of_the_environment(
    vendor: ProviderKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{vendor.upper()}_API_KEY", KEY)
    with ModelServer(keys=[KEY]) as server:
        monkeypatch.setenv(f"{vendor.upper()}_BASE_URL", server.address)
        assert registry.probe(vendor).ok
        assert server.requests[0].model == ("gpt-4o" if vendor == "openai" else "claude-sonnet-5-5")


def test_a_vendor_key_isnt_sent_to_a_base_url_of_the_config_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ModelServer() as server:
        settings = Settings.model_validate({"providers": {"openai": {"address": server.address}}})
        assert registry.probe("openai:gpt-4o", settings).ok
        assert KEY not in str(server.requests[0].headers)
        settings = Settings.model_validate(
            {"providers": {"openai": {"address": server.address, "key_env": "OPENAI_API_KEY"}}}
        )
        assert registry.probe("openai:gpt-4o", settings).ok
        assert KEY in str(server.requests[1].headers)


@pytest.mark.parametrize(
    ("wire", "body", "message"),
    [
        *(
            ("openai", body, "isn't a chat completion")
            for body in (b"", b"{", b"[]", b"null", b'{"object": "list"}')
        ),
        *(
            ("openai", b'{"choices": %s}' % choices, "isn't a chat completion")
            for choices in (b"[]", b"[null]")
        ),
        *(
            ("anthropic", body, "isn't a message of this")
            for body in (b"", b"[]", b'{"content": "text"}', b"<html>")
        ),
    ],
)
def test_an_unexpected_response_body_is_reported(
    wire: ProviderKind, body: bytes, message: str
) -> None:
    with (
        ModelServer(lambda request: Behaviour(body=body)) as server,
        pytest.raises(BadReply, match=message),
    ):
        ask_times(server, wire)


def test_loosely_compatible_replies_are_read() -> None:
    parts = [
        {"type": "text", "text": '{"reasons": [], '},
        {"text": '"sound": true, "confidence": 1}'},
    ]
    response = {
        "choices": [{"message": {"content": parts}}],
        "usage": {"prompt_tokens": "many", "completion_tokens": None},
    }
    with ModelServer([Behaviour(body=json.dumps(response).encode())]) as server:
        (call,) = ask_times(server).calls.since()
    assert (call.outcome, call.prompt_tokens, call.answered_by) == ("answered", 0, None)


def test_an_error_inside_a_reply_with_status_200_is_an_error() -> None:
    limited = b'{"error": {"code": 429, "message": "slow down"}}'
    with ModelServer([Behaviour(body=limited)]) as server:
        (call,) = ask_times(server).calls.since()
    assert (call.outcome, call.tries) == ("answered", 2)


@both_wires
def test_localhost_is_reached_without_a_proxy(
    wire: ProviderKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with ModelServer() as server:
        ask_times(server, wire)


def test_connections_are_reused() -> None:
    with ModelServer() as server:
        ask_times(server, times=5)
        assert server.connections == 1


# Error messages of real servers, and their classification


def openai(message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    return {
        "error": {"message": message, "type": "invalid_request_error", "code": code, "param": param}
    }


def anthropic(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


SERVER_ERRORS: list[tuple[int, Any, FailureKind]] = [
    (401, openai("Incorrect API key provided: sk-proj-***abcd.", "invalid_api_key"), "key"),
    (401, anthropic("authentication_error", "invalid x-api-key"), "key"),
    (403, openai("You are not allowed to sample from this model"), "forbidden"),
    (
        404,
        openai(
            "The model `gpt-9` does not exist or you do not have access to it.", "model_not_found"
        ),
        "model",
    ),
    (404, openai('model "llama9" not found, try pulling it first'), "model"),
    (404, anthropic("not_found_error", "model: claude-9"), "model"),
    (404, {"detail": "Not Found"}, "address"),
    (404, "404 page not found", "address"),
    (404, "<html><body>nginx</body></html>", "address"),
    (405, {"detail": "Method Not Allowed"}, "address"),
    (
        400,
        openai(
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this"
            " model.",
            param="response_format",
        ),
        "format",
    ),
    (400, openai("This response_format type is unavailable now"), "format"),
    (400, openai("'response_format.type' must be 'json_schema' or 'text'"), "format"),
    (400, openai("This model does not support response format `json_schema`."), "format"),
    (
        422,
        {
            "detail": [
                {"loc": ["body", "response_format"], "msg": "Extra inputs", "input": "PRIVATE"}
            ]
        },
        "format",
    ),
    (
        400,
        anthropic("invalid_request_error", "output_config: Extra inputs are not permitted"),
        "format",
    ),
    (
        400,
        anthropic("invalid_request_error", "'claude-3-haiku' does not support output format."),
        "format",
    ),
    (501, {"error": "not implemented"}, "format"),
    (415, "", "format"),
    (
        400,
        openai(
            "Unsupported parameter: 'max_tokens' is not supported here. Use 'max_completion_tokens'"
            " instead.",
            "unsupported_parameter",
            "max_tokens",
        ),
        "parameter",
    ),
    (
        400,
        openai(
            "Unsupported value: 'temperature' does not support 0. Only the default (1) value is"
            " supported.",
            "unsupported_value",
            "temperature",
        ),
        "parameter",
    ),
    (
        400,
        anthropic("invalid_request_error", "`temperature` is deprecated for this model."),
        "parameter",
    ),
    (400, openai("System role not supported"), "parameter"),
    (
        400,
        anthropic("invalid_request_error", "This model does not support the effort parameter."),
        "parameter",
    ),
    (
        400,
        anthropic("invalid_request_error", "output_config.effort: Extra inputs are not permitted"),
        "parameter",
    ),
    (
        400,
        anthropic("invalid_request_error", "tool_choice: forced tool use is not supported"),
        "format",
    ),
    (
        400,
        openai(
            "This model's maximum context length is 8192 tokens.",
            "context_length_exceeded",
            "messages",
        ),
        "too_long",
    ),
    (
        400,
        anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        "too_long",
    ),
    (400, openai("the request exceeds the available context size"), "too_long"),
    (413, anthropic("request_too_large", "Request exceeds the maximum size"), "too_long"),
    (
        400,
        anthropic("invalid_request_error", "Your credit balance is too low to access the API."),
        "quota",
    ),
    (402, openai("Insufficient Balance"), "quota"),
    (429, openai("You exceeded your current quota", "insufficient_quota"), "quota"),
    (429, openai("Rate limit reached for gpt-4o", "rate_limit_exceeded"), "rate"),
    (400, openai("The response was filtered", "content_filter"), "refused"),
    (400, openai("Failed to generate JSON.", "json_validate_failed"), "malformed"),
    (408, "", "server"),
    (409, "", "server"),
    (500, openai("The server had an error"), "server"),
    (502, "<html>Bad Gateway</html>", "server"),
    (529, anthropic("overloaded_error", "Overloaded"), "server"),
    (307, "", "address"),
    (400, openai("Something else is wrong"), "request"),
    (
        400,
        openai("Invalid type for 'temperature': expected a decimal", param="temperature"),
        "request",
    ),
]


@pytest.mark.parametrize(("status", "body", "kind"), SERVER_ERRORS)
def test_server_errors_are_classified(status: int, body: Any, kind: FailureKind) -> None:
    failure = from_status(status, {}, body, key_name="A_KEY", model="m")
    assert failure.trouble == kind, failure.message
    assert "PRIVATE" not in failure.message


def test_the_rejected_parameter_is_named() -> None:
    named = {
        from_status(400, {}, body, key_name="", model="m").parameter
        for _, body, kind in SERVER_ERRORS
        if kind == "parameter"
    }
    assert named == {"effort", "max_tokens", "temperature", "system"}


def test_a_wrong_key_is_never_shown() -> None:
    body = openai("Incorrect API key provided: sk-proj-abcdefghijklmnop.")
    failure = from_status(
        401, {}, body, key_name="OPENAI_API_KEY", model="m", key="sk-proj-abcdefghijklmnop"
    )
    assert failure.message == "the key was not accepted (401). Check OPENAI_API_KEY."


def test_keys_are_redacted_from_server_messages() -> None:
    key = "gateway.secret/1"
    assert scrub_error(f"no quota for {key} or sk-abc***wxyz", key) == "no quota for [key] or [key]"
    assert len(scrub_error("x" * 5000)) == 300
    assert scrub_error("two\nlines\x85here") == "two lines here"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after_headers_are_parsed(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        3,
        "",
        b"\xff\xfe",
        {"error": None},
        {"error": []},
        {"error": {"message": {"a": 1}, "code": [1]}},
        {"detail": [1]},
    ],
)
def test_error_bodies_of_any_shape_are_read(body: Any) -> None:
    assert isinstance(refusal(body).message, str)
    assert from_status(400, {}, body, key_name="", model="m").trouble == "request"


# Critic and reviser with each kind of provider that the spec names: OpenAI, Anthropic and local
# models

WRONG_LENGTH = case_of(
    "The bridge is 90 metres long [1].", {"1": "The bridge is 120 metres long and made of steel."}
)
PROVIDER_KEY = "k-of-the-provider"


@pytest.mark.spec("REQ-CRITIC-006", "REQ-CRITIC-013")
@pytest.mark.parametrize(
    ("provider", "wire", "needs_key"),
    [("openai", "openai", True), ("anthropic", "anthropic", True), ("ollama", "openai", False)],
)
def test_critic_and_reviser_work_with_every_provider(
    provider: str, wire: str, needs_key: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer(issues="always") as server:
        provider_table = {
            "address": (
                server.address.removesuffix("/v1") if provider == "anthropic" else server.address
            )
        }
        if needs_key:
            monkeypatch.setenv("PROVIDER_KEY", PROVIDER_KEY)
            provider_table["key_env"] = "PROVIDER_KEY"
        models = dict.fromkeys(ROLES, "offline") | {
            "critic": f"{provider}:judge",
            "reviser": f"{provider}:writer",
        }
        settings = Settings.model_validate(
            {**models, "providers": {provider: provider_table}, "max_iterations": 2}
        )
        run = audits.run_audit(WRONG_LENGTH, settings)
        sent = server.requests
    first, second = run.iterations
    assert first.critique.judged_by.model == f"{provider}:judge"
    assert first.critique.overall_quality_score is not None
    assert [issue for issue in first.issues if issue.source == "critic"]
    assert first.revision.revised_answer == second.answer != WRONG_LENGTH.answer
    assert {call.role for call in run.calls} == {"critic", "reviser"}
    assert {request.body["model"] for request in sent} == {"judge", "writer"}
    assert {request.wire for request in sent} == {wire}
    headers = [
        request.headers.get("x-api-key") or request.headers.get("authorization", "")
        for request in sent
    ]
    assert all((PROVIDER_KEY in header) is needs_key for header in headers)
