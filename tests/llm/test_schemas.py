"""The schemas sent hold to the rules of strict mode, whatever the reply model says."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from masis.audit.run_control import RunControl
from masis.errors import BadReply, ProviderFailed
from masis.llm.client import schemas
from masis.llm.registry import Ready
from masis.llm.roles import replies
from masis.schema.providers import Wire
from tests.llm.asking import PROMPT, WIRES, model_at
from tests.served_replies import Behaviour, Request, says, status
from tests.serving_models import ModelServer, broken_rules

REPLIES = [
    shape
    for _, shape in inspect.getmembers(replies, inspect.isclass)
    if issubclass(shape, BaseModel) and shape.__name__.endswith("Reply") and shape.__name__ != "Reply"
]


class Inner(BaseModel):
    """Inner words."""

    kind: Literal["a", "b"] = "a"
    only: Literal["one"]


class Awkward(BaseModel):
    """All that strict mode refuses, or takes only in another form."""

    share: Annotated[float, Field(ge=0, le=1, description="How much.")] = 0.5
    name: Annotated[str, Field(max_length=5, pattern="^a")] | None = None
    inner: Inner = Field(description="Stands beside a reference.")
    more: list[Inner] = []
    either: int | str | None


def request_with(shape: type[BaseModel]) -> Request:
    made = schemas.of(shape)
    return Request(
        "openai",
        {},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": made.name, "strict": True, "schema": made.schema},
            }
        },
    )


@pytest.mark.parametrize("shape", [*REPLIES, Ready, Awkward], ids=lambda shape: shape.__name__)
def test_every_schema_holds_to_the_strict_rules(shape: type[BaseModel]) -> None:
    assert broken_rules(request_with(shape)) == []
    assert set(schemas.of(shape).schema["required"]) == set(shape.model_fields)


def test_the_replies_of_all_prompts_are_among_them() -> None:
    assert len(REPLIES) >= 7


def test_what_a_keyword_said_is_said_in_words() -> None:
    properties = schemas.of(Awkward).schema["properties"]
    assert properties["share"] == {"type": "number", "description": "How much. (maximum: 1, minimum: 0)"}
    assert properties["name"]["anyOf"][0]["description"] == "(maxLength: 5, pattern: ^a)"
    assert properties["inner"] == {"$ref": "#/$defs/Inner"}
    assert schemas.of(Awkward).schema["$defs"]["Inner"]["properties"]["only"] == {"type": "string", "enum": ["one"]}


def test_a_schema_is_made_once() -> None:
    assert schemas.of(Awkward) is schemas.of(Awkward)
    assert schemas.of(Awkward).name == "awkward"
    assert schemas.of(replies.CritiqueReply).name == "critique_reply"


@pytest.mark.parametrize("kind", [dict[str, int], tuple[int, str], Any])
def test_what_strict_mode_cannot_say_is_refused_when_it_is_written(kind: Any) -> None:
    shape = type("Loose", (BaseModel,), {"__annotations__": {"value": kind}, "__module__": __name__})
    with pytest.raises(TypeError, match=r"Loose\.value"):
        schemas.of(shape)


@pytest.mark.parametrize("wire", WIRES)
def test_words_are_asked_for_without_a_form_and_come_as_they_are(wire: Wire) -> None:
    control = RunControl()
    with ModelServer([status(503), says('Write {"this": 1} down.')]) as server:
        said = model_at(server, wire, control).say(PROMPT, max_tokens=100, temperature=0.9)
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
def test_no_words_are_an_error(behaviour: Behaviour, error: type[Exception]) -> None:
    with ModelServer(lambda request: behaviour) as server, pytest.raises(error):
        model_at(server).say(PROMPT, max_tokens=100)


def test_a_server_without_strict_schemas_is_asked_for_words_all_the_same() -> None:
    with ModelServer(lambda request: says("Yes."), refuses=("json_schema", "json_object")) as server:
        assert model_at(server).say(PROMPT, max_tokens=100) == "Yes."
        assert len(server.requests) == 1
