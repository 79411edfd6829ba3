"""Long evidence is paid for once a run: its calls ask for the same form, so that a provider's cache serves them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from masis.audit.context import AuditContext
from masis.llm.client import schemas
from masis.llm.client.reply_parsing import Unreadable
from masis.llm.client.shared_schema import COMMON_FROM, CommonReply, asked_in, read_from, worthwhile
from masis.llm.roles.critic import ModelCritic
from masis.llm.roles.evaluator import ModelEvaluator
from masis.llm.roles.prompting import Prompt
from masis.llm.roles.replies import ClaimsReply, CompletenessReply, CritiqueReply
from masis.llm.roles.reviser import ModelReviser
from masis.llm.roles.verifier import Extractions, ModelVerifier
from masis.schema.base import Unscored
from masis.schema.calls import ModelCall
from masis.schema.case import Evidence
from masis.schema.providers import Wire
from masis.settings import Settings
from tests.audit.factories import check, context, issue, verdict
from tests.llm import canned
from tests.llm.asking import WIRES, model_at
from tests.serving_models import Behaviour, ModelServer, Request, broken_rules, says, status

LONG = Prompt("frame", "x" * COMMON_FROM, "task", "critic/1+0")


def audited(characters: int) -> AuditContext:
    """An answer with about this much evidence."""
    text = "The bridge is 120 metres long. " + "It stands in a valley. " * (characters // 23)
    return context(evidence=(Evidence(id="chunk_1", text=text),), answer="The bridge is 120 metres long [chunk_1].")


def calls_at(server: ModelServer, wire: Wire, seen: AuditContext, **changes: Any) -> tuple[ModelCall, ...]:
    """What every judge of a run takes, one after the other, with one model."""
    model = model_at(server, wire, **changes)
    model.provider.schema_in_cache = True  # as OpenAI's and Anthropic's own servers have it
    assert not isinstance(ModelCritic(model).critique(seen), Unscored)
    assert not isinstance(ModelEvaluator(model, Settings()).evaluate(seen, verdict()), Unscored)
    ModelReviser(model).revise(seen, verdict(), (issue(),))
    verifier = ModelVerifier(model, Settings(), Extractions())
    verifier.check([check().claim], seen.query, seen.answer, seen.evidence, completeness=False)
    verifier.check([], seen.query, seen.answer, seen.evidence, completeness=True)
    return model.control.calls.since()


def forms(server: ModelServer) -> set[str]:
    """The schemas that were asked for."""
    return {json.dumps(request.schema, sort_keys=True) for request in server.requests}


@pytest.mark.spec("REQ-CRITIC-NFR-013")
@pytest.mark.parametrize("wire", WIRES)
def test_long_evidence_is_served_from_the_cache_to_every_judge_after_the_first(wire: Wire) -> None:
    with ModelServer() as server:
        first, *others = calls_at(server, wire, audited(80_000))
        assert len(forms(server)) == 1
        assert not any(broken_rules(request) for request in server.requests)
    assert first.cached_tokens == 0
    assert len(others) == 4
    for call in others:
        assert (call.mode, call.outcome, call.tries) == ("json_schema", "answered", 1)
        assert call.cached_tokens > 0.85 * call.prompt_tokens


def test_a_server_whose_cache_does_not_begin_with_the_schema_is_asked_for_each_reply_alone() -> None:
    with ModelServer() as server:
        model = model_at(server)
        assert not isinstance(ModelCritic(model).critique(audited(80_000)), Unscored)
        assert {request.schema_name for request in server.requests} == {"critique_reply"}


@pytest.mark.parametrize("wire", WIRES)
def test_where_evidence_is_short_each_reply_has_its_own_form(wire: Wire) -> None:
    with ModelServer() as server:
        calls_at(server, wire, audited(1_000))
        assert len(forms(server)) == 5


def test_only_calls_that_share_the_evidence_share_the_form() -> None:
    assert worthwhile(LONG, CritiqueReply)
    assert not worthwhile(LONG, ClaimsReply)
    assert not worthwhile(LONG._replace(shared="short"), CritiqueReply)


def test_the_prompt_says_which_field_to_fill_and_keeps_what_is_shared() -> None:
    asked = asked_in(LONG, CompletenessReply)
    assert asked.task.endswith("Fill 'completeness'; all others are null.")
    assert (asked.frame, asked.shared, asked.version) == (LONG.frame, LONG.shared, LONG.version)
    assert set(schemas.of(CommonReply).schema["properties"]) >= {"completeness", "critic"}


def test_what_stands_in_other_fields_is_not_looked_at() -> None:
    text = json.dumps({"critic": canned.critique(), "reviser": "nonsense", "evaluator": None})
    assert read_from(text, CritiqueReply).confidence == 0.9


def test_the_record_without_the_form_around_it_is_read_all_the_same() -> None:
    assert read_from(json.dumps(canned.critique()), CritiqueReply).confidence == 0.9


@pytest.mark.parametrize(
    "text",
    ["All fine.", '{"critic": null}', json.dumps({"evaluator": canned.evaluation()}), '{"critic": {"confidence": 1}}'],
)
def test_a_reply_without_the_record_is_no_reply(text: str) -> None:
    with pytest.raises(Unreadable):
        read_from(text, CritiqueReply)


def test_a_server_without_schemas_is_asked_for_the_reply_alone() -> None:
    def script(request: Request) -> Behaviour | None:
        if request.mode == "json_schema":
            return status(400, "response_format json_schema is not supported", code_name="unsupported")
        return says(canned.critique())

    with ModelServer(script) as server:
        model = model_at(server)
        assert not isinstance(ModelCritic(model).critique(audited(80_000)), Unscored)
        assert [request.mode for request in server.requests] == ["json_schema", "json_object_schema"]
        assert "critique_reply" in server.requests[-1].text
        assert "all others are null" not in server.requests[-1].text
