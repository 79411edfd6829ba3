"""What servers say when they refuse, as seen from real ones, and what it is taken for."""

from __future__ import annotations

from typing import Any

import pytest

from masis.llm.client.retry import retry_after
from masis.llm.providers.base import Trouble
from masis.llm.providers.provider_errors import from_status, refusal, scrubbed


def openai(message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": code, "param": param}}


def anthropic(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


SEEN: list[tuple[int, Any, Trouble]] = [
    (401, openai("Incorrect API key provided: sk-proj-***abcd.", "invalid_api_key"), "key"),
    (401, anthropic("authentication_error", "invalid x-api-key"), "key"),
    (403, openai("You are not allowed to sample from this model"), "forbidden"),
    (404, openai("The model `gpt-9` does not exist or you do not have access to it.", "model_not_found"), "model"),
    (404, openai('model "llama9" not found, try pulling it first'), "model"),
    (404, anthropic("not_found_error", "model: claude-9"), "model"),
    (404, {"detail": "Not Found"}, "address"),
    (404, "404 page not found", "address"),
    (404, "<html><body>nginx</body></html>", "address"),
    (405, {"detail": "Method Not Allowed"}, "address"),
    (
        400,
        openai(
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
            param="response_format",
        ),
        "format",
    ),
    (400, openai("This response_format type is unavailable now"), "format"),
    (400, openai("'response_format.type' must be 'json_schema' or 'text'"), "format"),
    (400, openai("This model does not support response format `json_schema`."), "format"),
    (422, {"detail": [{"loc": ["body", "response_format"], "msg": "Extra inputs", "input": "PRIVATE"}]}, "format"),
    (400, anthropic("invalid_request_error", "output_config: Extra inputs are not permitted"), "format"),
    (400, anthropic("invalid_request_error", "'claude-3-haiku' does not support output format."), "format"),
    (501, {"error": "not implemented"}, "format"),
    (415, "", "format"),
    (
        400,
        openai(
            "Unsupported parameter: 'max_tokens' is not supported here. Use 'max_completion_tokens' instead.",
            "unsupported_parameter",
            "max_tokens",
        ),
        "parameter",
    ),
    (
        400,
        openai(
            "Unsupported value: 'temperature' does not support 0. Only the default (1) value is supported.",
            "unsupported_value",
            "temperature",
        ),
        "parameter",
    ),
    (400, anthropic("invalid_request_error", "`temperature` is deprecated for this model."), "parameter"),
    (400, openai("System role not supported"), "parameter"),
    (400, anthropic("invalid_request_error", "This model does not support the effort parameter."), "parameter"),
    (400, anthropic("invalid_request_error", "output_config.effort: Extra inputs are not permitted"), "parameter"),
    (400, anthropic("invalid_request_error", "tool_choice: forced tool use is not supported"), "format"),
    (
        400,
        openai("This model's maximum context length is 8192 tokens.", "context_length_exceeded", "messages"),
        "too_long",
    ),
    (400, anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), "too_long"),
    (400, openai("the request exceeds the available context size"), "too_long"),
    (413, anthropic("request_too_large", "Request exceeds the maximum size"), "too_long"),
    (400, anthropic("invalid_request_error", "Your credit balance is too low to access the API."), "quota"),
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
    (400, openai("Invalid type for 'temperature': expected a decimal", param="temperature"), "request"),
]


@pytest.mark.parametrize(("status", "body", "trouble"), SEEN)
def test_a_refusal_is_taken_for_what_it_is(status: int, body: Any, trouble: Trouble) -> None:
    found = from_status(status, {}, body, key_name="A_KEY", model="m")
    assert found.trouble == trouble, found.message
    assert "PRIVATE" not in found.message


def test_the_parameter_that_is_refused_is_named() -> None:
    named = {
        from_status(400, {}, body, key_name="", model="m").parameter for _, body, kind in SEEN if kind == "parameter"
    }
    assert named == {"effort", "max_tokens", "temperature", "system"}


def test_a_wrong_key_is_never_shown_and_says_where_to_look() -> None:
    said = openai("Incorrect API key provided: sk-proj-abcdefghijklmnop.")
    found = from_status(401, {}, said, key_name="OPENAI_API_KEY", model="m", key="sk-proj-abcdefghijklmnop")
    assert found.message == "the key was not accepted (401). Check OPENAI_API_KEY."


def test_what_looks_like_a_key_is_taken_out_of_a_servers_words() -> None:
    key = "gateway.secret/1"
    assert scrubbed(f"no quota for {key} or sk-abc***wxyz", key) == "no quota for [key] or [key]"
    assert len(scrubbed("x" * 5000)) == 300
    assert scrubbed("two\nlines\x85here") == "two lines here"


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
def test_what_a_server_asks_to_wait_is_read(headers: dict[str, str], seconds: float | None) -> None:
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
def test_an_error_body_of_any_shape_is_read(body: Any) -> None:
    assert isinstance(refusal(body).message, str)
    assert from_status(400, {}, body, key_name="", model="m").trouble == "request"
