"""A reply that a validator mends: read, on record, told and counted; one that it can't is asked for once more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from masis.audit.output_validation import Rescued
from masis.audit.run_control import RunControl
from masis.errors import BadReply
from masis.llm.client import shared_schema
from masis.llm.client.model import Model
from masis.llm.roles.prompting import Prompt
from masis.llm.roles.replies import EvaluationReply
from masis.schema.calls import Usage
from tests.llm import canned
from tests.llm.asking import PROMPT, Judged, model_at
from tests.served_replies import Behaviour, says
from tests.serving_models import ModelServer

VALUE: dict[str, Any] = {"reasons": ["it is so"], "sound": True, "confidence": 0.7}
BAD = "{'reasons': ['it is so'], 'sound': True, 'confidence': 0.7}"


def mending(model: Model, value: dict[str, Any] | None) -> tuple[Model, list[tuple[str, type[BaseModel]]]]:
    """The model with a validator that reads this out of any reply."""
    asked: list[tuple[str, type[BaseModel]]] = []

    def rescue(text: str, shape: type[BaseModel]) -> Rescued | None:
        asked.append((text, shape))
        return None if value is None else Rescued(value, ("quotes of another kind",))

    return replace(model, rescue=rescue), asked


@pytest.mark.spec("REQ-CRITIC-028")
def test_a_mended_reply_is_read_at_the_first_try_and_on_record() -> None:
    control = RunControl()
    with ModelServer([says(BAD)]) as server:
        model, asked = mending(model_at(server, control=control), VALUE)
        assert model.ask(PROMPT, Judged, max_tokens=100).model_dump() == VALUE
        assert len(server.requests) == 1
    assert asked == [(BAD, Judged)]
    (call,) = control.calls.since()
    assert (call.outcome, call.tries, call.repaired) == ("answered", 1, ("quotes of another kind",))
    assert Usage.of([call]).repaired == 1
    told = [control.calls.notices.get_nowait() for _ in range(control.calls.notices.qsize())]
    assert [notice.kind for notice in told] == ["call_repaired", "call_finished"]
    assert told[0].message == "critic: the reply was repaired before it was read: quotes of another kind"
    assert "it is so" not in str(told)


def test_what_can_not_be_mended_is_asked_for_once_more() -> None:
    control = RunControl()
    with ModelServer([says(BAD), says(VALUE)]) as server:
        model, asked = mending(model_at(server, control=control), None)
        assert model.ask(PROMPT, Judged, max_tokens=100).model_dump() == VALUE
    assert len(asked) == 1
    (call,) = control.calls.since()
    assert (call.tries, call.repaired) == (2, ())


@pytest.mark.parametrize("value", [{"reasons": "none"}, {}, VALUE | {"sound": "perhaps"}])
def test_a_validator_that_mends_into_something_else_is_not_believed(value: dict[str, Any]) -> None:
    control = RunControl()
    with ModelServer([says(BAD), says(BAD)]) as server:
        model, _ = mending(model_at(server, control=control), value)
        with pytest.raises(BadReply) as raised:
            model.ask(PROMPT, Judged, max_tokens=100)
    assert raised.value.kind == "malformed"
    assert control.calls.since()[0].repaired == ()


def test_a_reply_that_the_provider_says_is_cut_off_is_not_even_tried() -> None:
    with ModelServer([Behaviour(text=BAD, finish="length")]) as server:
        model, asked = mending(model_at(server, max_retries=0), VALUE)
        with pytest.raises(BadReply) as raised:
            model.ask(PROMPT, Judged, max_tokens=100)
    assert raised.value.kind == "cut_off"
    assert asked == []


def test_a_reply_in_the_common_form_is_looked_for_in_its_field_first() -> None:
    prompt = Prompt(PROMPT.frame, "x" * shared_schema.COMMON_FROM, PROMPT.task, PROMPT.version)
    with ModelServer([says("{'evaluator': ...}")]) as server:
        model, asked = mending(model_at(server), {"evaluator": canned.evaluation()})
        model.provider.schema_in_cache = True
        found = model.ask(prompt, EvaluationReply, max_tokens=100)
    assert found == EvaluationReply.model_validate(canned.evaluation())
    assert [shape for _, shape in asked] == [shared_schema.holding(EvaluationReply)]
