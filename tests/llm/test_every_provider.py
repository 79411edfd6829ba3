"""Critic and reviser on each kind of provider that the spec names: OpenAI, Anthropic, a model on this machine."""

from __future__ import annotations

import pytest

from masis.api import audits
from masis.settings import ROLES, Settings
from tests.cases import case_of
from tests.serving_models import ModelServer

CASE = case_of("The bridge is 90 metres long [1].", {"1": "The bridge is 120 metres long and made of steel."})
KEY = "k-of-the-provider"


@pytest.mark.spec("REQ-CRITIC-006", "REQ-CRITIC-013")
@pytest.mark.parametrize(
    ("provider", "wire", "keyed"),
    [("openai", "openai", True), ("anthropic", "anthropic", True), ("ollama", "openai", False)],
)
def test_critic_and_reviser_work_on_every_provider(
    provider: str, wire: str, keyed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer(issues="always") as server:
        reached = {"address": server.address.removesuffix("/v1") if provider == "anthropic" else server.address}
        if keyed:
            monkeypatch.setenv("THE_KEY", KEY)
            reached["key_env"] = "THE_KEY"
        models = dict.fromkeys(ROLES, "offline") | {"critic": f"{provider}:judge", "reviser": f"{provider}:writer"}
        settings = Settings.model_validate({**models, "providers": {provider: reached}, "max_iterations": 2})
        run = audits.run_audit(CASE, settings)
        sent = server.requests
    first, second = run.iterations
    assert first.critique.judged_by is not None
    assert first.critique.judged_by.model == f"{provider}:judge"
    assert first.critique.overall_quality_score is not None
    assert [issue for issue in first.issues if issue.source == "critic"]
    assert first.revision is not None
    assert first.revision.revised_answer == second.answer != CASE.answer
    assert {call.role for call in run.calls} == {"critic", "reviser"}
    assert {request.body["model"] for request in sent} == {"judge", "writer"}
    assert {request.wire for request in sent} == {wire}
    given = [request.headers.get("x-api-key") or request.headers.get("authorization", "") for request in sent]
    assert all((KEY in each) is keyed for each in given)
