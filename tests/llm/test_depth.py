"""The depth of an audit: what it asks for, what it leaves out, and that a quick one certifies nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from masis.api.audits import run_audit
from masis.api.roles import estimate
from masis.schema.run import Run
from masis.settings import Settings
from tests.llm.asking import CASE, settings_for
from tests.serving_models import ModelServer


def audited(depth: str, **changes: object) -> tuple[Run, Counter[str]]:
    """A run at this depth, and how often each form of reply was asked for."""
    with ModelServer(issues="none") as server:
        settings = settings_for(server, "openai").updated({"depth": depth, **changes})
        run = run_audit(CASE, settings)
        assert run.usage.calls <= estimate(CASE, settings).calls
        return run, Counter(request.schema_name for request in server.requests)


def test_a_quick_audit_asks_for_claims_alone_and_is_never_auto_accepted() -> None:
    run, asked = audited("quick")
    assert asked == {"checked_claims_reply": 1}
    (first,) = run.iterations
    assert [check.verdict for check in first.claims] == ["supported", "supported"]
    assert (first.quality_score, first.evaluation, first.revision) == (None, None, None)
    assert (run.termination_reason, run.warnings) == ("no_issues", ())
    assert run.needs_review
    assert [(reason.code, reason.tier) for reason in run.review_reasons] == [("critic_not_run", "not_certified")]
    assert Run.model_validate_json(run.model_dump_json()) == run


def test_a_quick_audit_that_finds_a_fault_says_so_and_revises_nothing() -> None:
    run = run_audit(CASE.model_copy(update={"answer": "The bridge is long [9]."}), Settings(depth="quick"))
    assert {"critic_not_run", "invalid_reference"} <= {reason.code for reason in run.review_reasons}
    assert (run.total_iterations, run.iterations[0].revision) == (1, None)
    assert run.iterations[0].critique.hallucination_detected


def test_a_standard_audit_asks_every_role_once() -> None:
    run, asked = audited("standard")
    assert asked == {"checked_claims_reply": 1, "critique_reply": 1, "evaluation_reply": 1}
    assert not run.needs_review


def test_a_thorough_audit_asks_judges_three_times_and_the_critics_model_for_doubtful_claims() -> None:
    run, asked = audited("thorough")
    assert asked == {"checked_claims_reply": 1, "critique_reply": 3, "evaluation_reply": 3}
    assert audited("thorough", judge_samples=5)[1]["critique_reply"] == 5
    assert run.escalation is not None
    assert (run.escalation.settled, run.escalation.escalated) == (2, 0)


@pytest.mark.parametrize("depth", ["quick", "standard", "thorough"])
def test_the_settings_of_a_depth_are_those_of_the_depth_again(depth: str) -> None:
    settings = Settings(depth=depth).at_depth()  # type: ignore[arg-type]
    assert settings.at_depth() == settings
