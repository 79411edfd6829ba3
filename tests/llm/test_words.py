"""A model asked for words: no form goes with the question, and what comes back is taken as it is."""

from __future__ import annotations

import pytest

from masis.audit.run_control import RunControl
from masis.errors import BadReply, ProviderFailed
from tests.llm.asking import PROMPT, WIRES, model_at
from tests.served_replies import Behaviour, says, status
from tests.serving_models import ModelServer


@pytest.mark.parametrize("wire", WIRES)
def test_words_are_asked_for_without_a_form_and_come_as_they_are(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", "loopback")
    control = RunControl()
    with ModelServer([status(503), says('Write {"this": 1} down.')]) as server:
        address = server.address if wire == "openai" else server.address.removesuffix("/v1")
        said = model_at(address, wire, control).say(PROMPT, max_tokens=100, temperature=0.9)  # type: ignore[arg-type]
        body = server.requests[-1].body
    assert said == 'Write {"this": 1} down.'
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
def test_no_words_are_an_error(behaviour: Behaviour, error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", "loopback")
    with ModelServer(lambda request: behaviour) as server, pytest.raises(error):
        model_at(server).say(PROMPT, max_tokens=100)


def test_a_server_without_strict_schemas_is_asked_for_words_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", "loopback")
    with ModelServer(lambda request: says("Yes."), refuses=("json_schema", "json_object")) as server:
        assert model_at(server).say(PROMPT, max_tokens=100) == "Yes."
        assert len(server.requests) == 1
