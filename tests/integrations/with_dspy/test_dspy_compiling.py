"""Compiling a critic: what raises the metric, what must not, and what can stop it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dspy.clients import model_metadata

from masis import run_audit
from masis.errors import InputError, ProviderFailed, SettingsError
from masis.integrations.dspy import compiling, labelled, programs
from masis.integrations.dspy.plugin import CompiledRole
from masis.schema.case import Case
from masis.schema.providers import Price
from masis.settings import Settings
from tests.integrations.with_dspy import learning_model as learning
from tests.integrations.with_dspy.conftest import settings_at
from tests.served_replies import status
from tests.serving_models import ModelServer

pytestmark = pytest.mark.timeout(300)  # programs are compiled, with many calls


def parts_of() -> labelled.TrainTestSplit:
    cases = [Case.model_validate(learned) for learned in learning.cases()]
    return labelled.split_by_question(labelled.from_cases(cases), 0.5, 0)


def plan(optimizer: Any = "bootstrap", **options: Any) -> programs.Plan:
    given = {"name": "careful", "role": "critic", "optimizer": optimizer, "model": "scripted:m"}
    return programs.Plan(**(given | options))


@pytest.mark.spec("REQ-CRITIC-007")
def test_examples_improve_the_metric_on_held_out_answers() -> None:
    seen: list[str] = []
    with ModelServer(learning.critic) as served:
        session = compiling.Session(
            plan(), settings_at(served), watch=lambda doing, spent: seen.append(doing)
        )
        made = compiling.compile_program(session, parts_of())
    assert list(dict.fromkeys(seen)) == [
        "measuring the uncompiled program",
        "compiling with bootstrap",
        "measuring the compiled program",
    ]
    assert made.before.mean < 0.7
    assert made.after.mean == 1.0
    assert made.improved
    assert made.demonstrations == 4
    assert (made.role, made.model, made.optimizer) == ("critic", "scripted:m", "bootstrap")
    assert made.data.train + made.data.held_out == 24
    assert made.tokens > 10_000


@pytest.mark.parametrize("optimizer", ["mipro", "gepa"])
def test_instructions_are_rewritten_from_failures(
    optimizer: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_up: list[str] = []
    monkeypatch.setattr(
        model_metadata,
        "_load",
        lambda: looked_up.append("the network, unless told otherwise") or {},
    )
    with ModelServer(learning.critic) as served:
        session = compiling.Session(plan(optimizer, trials=4), settings_at(served))
        made = compiling.compile_program(session, parts_of())
    assert made.improved
    assert "Compare each number" in made.state["critic"].instructions
    assert capfd.readouterr().out == ""
    assert not looked_up


@pytest.mark.spec("REQ-CRITIC-014")
def test_a_reviser_can_be_compiled_and_used(tmp_path: Path) -> None:
    cases = []
    for learned in learning.cases():
        wrong = [
            {"text": finding["text"], "verdict": "contradicted"}
            for finding in learned["labels"]["findings"]
        ]
        cases.append(
            Case.model_validate(learned | {"labels": learned["labels"] | {"claims": wrong}})
        )
    parts = labelled.split_by_question(
        [case for case in labelled.from_cases(cases) if not case.clean], 0.5, 0
    )
    with ModelServer(issues="always") as served:
        mender = plan(name="mender", role="reviser", accept=0.5)
        made = compiling.compile_program(compiling.Session(mender, settings_at(served)), parts)
        assert made.state.keys() == {"revision"}
        assert made.demonstrations > 0
        assert served.requests[-1].fences("EXAMPLE_ANSWER")
        assert served.requests[-1].fences("EXAMPLE_ISSUES")
        programs.save_program(tmp_path, made)
        roles = {"critic": "scripted:m", "reviser": "dspy:mender", "evaluate": "never"}
        settings = settings_at(served, programs_folder=str(tmp_path), **roles)
        run = run_audit(Case.model_validate(learning.case(80, True)), settings)
    revision = run.iterations[0].revision
    assert revision.judged_by.model == run.models["reviser"] == "dspy:mender@1"
    assert run.versions.prompts["reviser"] == f"dspy:mender@1+{made.digest[:8]}"
    assert [call.model for call in run.calls if call.role == "reviser"] == ["scripted:m"]


def test_a_program_file_round_trips(tmp_path: Path) -> None:
    with ModelServer(learning.critic) as served:
        settings = settings_at(served)
        session = compiling.Session(plan(), settings)
        kept, file = programs.save_program(tmp_path, compiling.compile_program(session, parts_of()))
        assert programs.read_program(file) == kept
        assert json.loads(file.read_text())["state"] == {
            "critic": kept.state["critic"].model_dump(mode="json")
        }
        measured = served.requests[-1]
        case = learning.case(80, True)
        audited = settings.model_copy(
            update={"critic": "dspy:careful", "programs_folder": str(tmp_path)}
        )
        run = run_audit(Case.model_validate(case), audited.model_copy(update={"evaluate": "never"}))
        found = [issue.quote for issue in run.iterations[0].issues if issue.source == "critic"]
        assert found == [case["labels"]["findings"][0]["text"]]
        asked = next(request for request in served.requests if case["answer"] in request.text)
        for fence in ("EXAMPLE_ANSWER", "EXAMPLE_EVIDENCE", "EXAMPLE_REPLY"):
            assert asked.fences(fence) == measured.fences(fence), "an audit asks as it was measured"


@pytest.mark.parametrize("optimizer", ["bootstrap", "gepa"])
def test_the_cost_limit_holds_for_every_optimizer(optimizer: str) -> None:
    with ModelServer(learning.critic) as served:
        settings = settings_at(served, prices={"scripted:m": Price(input=1.0, output=1.0)})
        session = compiling.Session(plan(optimizer, max_cost=0.03), settings)
        with pytest.raises(compiling.OptimizationStopped, match="limit"):
            compiling.compile_program(session, parts_of())
        assert 0.018 <= (session.usage.cost_usd or 0) <= 0.045  # what was running is finished


def test_a_cost_limit_needs_a_price(server: ModelServer) -> None:
    with pytest.raises(SettingsError, match="no price is known"):
        compiling.Session(plan(max_cost=1.0), settings_at(server))


def test_an_unusable_model_is_an_error_rather_than_no_gain() -> None:
    with ModelServer(lambda request: status(401, "no")) as served, pytest.raises(ProviderFailed):
        compiling.compile_program(compiling.Session(plan(), settings_at(served)), parts_of())


@pytest.mark.parametrize(
    "demo", [{}, {"answer": 1}, {"original_query": "?", "answer": "a", "evidence_chunks": 7}]
)
def test_a_program_with_an_invalid_demonstration_is_rejected(demo: Any, tmp_path: Path) -> None:
    state = {"critic": programs.Predictor(instructions="Judge.", demos=({**demo, "issues": []},))}
    broken = CompiledRole.model_construct(
        name="a", version=1, role="critic", state=state, digest="0" * 64
    )
    with pytest.raises(InputError, match="demonstration 1"):
        broken.build(SimpleNamespace(control=None), Settings())
