"""``JsonServer``: requests to a server without an SDK over real HTTP, and kinds of failures."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from masis.llm.client.schemas import reply_schema
from masis.llm.providers.base import Call, Endpoint, FailureKind, TryFailed
from masis.llm.providers.json_server import JsonServer
from masis.llm.providers.provider_errors import ServerRefusal
from tests.llm.asking import KEY, PROMPT, SampleReply, closed_port
from tests.loopback import Answer, receiver


def post(
    address: str, timeout_s: float = 10.0, parameters: tuple[str, ...] = (), **options: Any
) -> dict[str, Any]:
    endpoint = Endpoint(
        "house", "openai", address, SecretStr(KEY), "HOUSE_KEY", parameters=parameters
    )
    call = Call("judge-1", PROMPT, reply_schema(SampleReply), "prompt", 100, 0.0, timeout_s)
    return JsonServer(endpoint, **options).post("/generate", {"user": "How long?"}, call)


def failure(answer: Answer, **options: Any) -> TryFailed:
    with receiver(lambda number: answer) as (address, calls), pytest.raises(TryFailed) as failed:
        post(address, **options)
    assert len(calls) == 1
    return failed.value


@pytest.mark.parametrize(
    ("options", "header", "value"),
    [
        ({}, "authorization", f"Bearer {KEY}"),
        ({"key_header": "X-House-Key"}, "x-house-key", KEY),
        ({"key_prefix": "Key "}, "authorization", f"Key {KEY}"),
    ],
)
def test_a_body_is_posted_with_the_key_and_the_reply_returned(
    options: dict[str, str], header: str, value: str
) -> None:
    with receiver(lambda number: Answer(200, {"text": "Ten metres."})) as (address, calls):
        assert post(f"{address}/", **options) == {"text": "Ten metres."}
    (call,) = calls
    assert (call.path, call.json()) == ("/generate", {"user": "How long?"})
    assert call.headers[header] == value
    assert [text for text in call.headers.values() if KEY in text] == [value]


def trickle() -> Iterator[bytes]:
    """Keep the connection open by sending a space now and then."""
    for _ in range(100):
        yield b" "
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(429, {"error": "slow down"}, {"retry-after": "7"}), "rate"),
        (Answer(500, b"<html>"), "server"),
        (Answer(401, {"error": f"no such key {KEY}"}), "key"),
        (Answer(302, headers={"location": "http://127.0.0.1:9/"}), "address"),
        (Answer(200, b"not json"), "malformed"),
        (Answer(200, [1]), "malformed"),
        (Answer(200, trickle()), "timeout"),
    ],
)
def test_each_failure_has_its_kind_and_doesnt_show_the_key(answer: Answer, kind: str) -> None:
    failed = failure(answer, timeout_s=1.0)
    assert failed.trouble == kind
    assert KEY not in str(failed)
    assert failed.__cause__ is None
    assert failed.__context__ is None
    assert failed.retry_after_s == (7.0 if kind == "rate" else None)


@pytest.mark.parametrize(
    ("body", "options"),
    [
        ({"error": "engine stalled"}, {}),
        ({"error": {"message": "engine stalled"}}, {}),
        ({"detail": "engine stalled"}, {}),
        (b"engine stalled", {}),
        ({"oops": "engine stalled"}, {"error_field": "oops"}),
        ({"error": {"oops": "engine stalled"}}, {"error_field": "oops"}),
    ],
)
def test_the_servers_error_message_is_shown(body: Any, options: dict[str, str]) -> None:
    failed = failure(Answer(500, body), **options)
    assert failed.message == "the server failed or is overloaded (500): engine stalled"


def classify_missing_engine(status: int, refusal: ServerRefusal) -> FailureKind | None:
    return "model" if status == 404 and "no such engine" in refusal.message else None


def test_a_servers_own_rules_classify_its_errors_first() -> None:
    answer = Answer(404, {"error": "no such engine: judge-1"})
    assert failure(answer).message == (
        "the address answers, but not as this API does (404). Check it: no such engine: judge-1"
    )
    missing = failure(answer, classify=classify_missing_engine)
    assert missing.trouble == "model"
    assert missing.message.startswith("there is no model 'judge-1' there")
    other = failure(Answer(500, {"error": "engine stalled"}), classify=classify_missing_engine)
    assert other.trouble == "server"


def test_only_a_parameter_that_the_api_sends_can_be_refused() -> None:
    answer = Answer(400, {"error": "The effort or temperature of this text is not supported"})
    assert failure(answer).trouble == "request"
    refused = failure(answer, parameters=("temperature",))
    assert (refused.trouble, refused.parameter) == ("parameter", "temperature")


def test_a_server_that_isnt_there_is_unreachable() -> None:
    with pytest.raises(TryFailed) as failed:
        post(f"http://127.0.0.1:{closed_port()}")
    assert failed.value.trouble == "unreachable"
