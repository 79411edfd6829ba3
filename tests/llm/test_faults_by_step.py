"""Every kind of server fault at the steps of an audit, over real HTTP.

Each run must end in its documented state with the right code, final answer and termination reason,
keep all results so far, and score nothing that failed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from masis.schema.case import Case
from masis.schema.run import Run
from masis.services import Workbench
from tests.llm.asking import ANSWER, CASE, settings_for
from tests.reviewing import ADA
from tests.served_replies import Behaviour, Request, faulty
from tests.serving_models import ModelServer

pytestmark = pytest.mark.slow

STEPS = {
    "drafting": "draft_reply",
    "claims": "checked_claims_reply",
    "extraction": "claims_reply",
    "verdicts": "verdicts_reply",
    "completeness": "completeness_reply",
    "critique": "critique_reply",
    "evaluation": "evaluation_reply",
    "revision": "revision_reply",
}
ROLE = {
    "drafting": "drafter",
    "claims": "verifier",
    "critique": "critic",
    "evaluation": "evaluator",
    "revision": "reviser",
}
SPLIT_CALLS = {"extraction", "verdicts", "completeness"}
"""Calls that are made separately if an answer is too long for one call."""
API_FAULTS = {"500", "hang", "refused connection"}


def expected_code(step: str, fault: str) -> str:
    """Return the specs' code; steps without one (drafter, verifier, evaluator) use 001."""
    if fault in API_FAULTS:
        return "CRITIC-ERR-003"
    if step == "critique":
        return "CRITIC-ERR-001" if fault == "refusal" else "CRITIC-ERR-005"
    if step == "revision":
        return "CRITIC-ERR-002" if fault == "refusal" else "CRITIC-ERR-006"
    return "CRITIC-ERR-001"


def audited(
    tmp_path: Path, wire: str, step: str, fault: str, case: Case = CASE
) -> tuple[Run, Workbench]:
    """Run an audit in which all calls of the step have the fault, and store it.

    The stored run must be equal to the run in memory.
    """

    def script(request: Request) -> Behaviour | None:
        return faulty(fault, request) if request.schema_name == STEPS[step] else None

    is_refused = fault == "refused connection"
    with ModelServer(
        (lambda request: None) if is_refused else script,
        issues="always" if step == "revision" else "none",
    ) as server:
        settings = settings_for(server, wire, ROLE[step] if is_refused else None)
        if fault == "hang":
            settings = settings.with_values({"call_deadline_s": 1.5})
        if step in SPLIT_CALLS:
            settings = settings.with_values({"claims_batch": 1})
        bench = Workbench.open(tmp_path / "masis.db", settings)
        bench.cases.add(ADA, [case])
        run = bench.audits.audit(ADA, case)
    assert bench.store.runs.get(run.id) == run
    assert bench.store.check().problems == ()
    return run, bench


def codes(run: Run) -> set[str | None]:
    return {warning.code for warning in run.warnings}


def no_draft(run: Run, code: str) -> None:
    assert run.termination_reason == "error"
    assert (run.iterations, run.best, run.final_answer) == ((), None, "")
    assert codes(run) == {code}


def no_claims(run: Run, code: str) -> None:
    first = run.iterations[0]
    assert first.claims == ()
    assert first.claim_report.unscored.code == code
    assert first.claim_report.confidence is None
    assert first.critique.overall_quality_score is not None, "the other steps are unaffected"
    assert run.final_answer == ANSWER


def no_verdicts(run: Run, code: str) -> None:
    first = run.iterations[0]
    assert first.claims
    for check in first.claims:
        assert (check.verdict, check.support, check.confidence) == ("unscored", None, None)
        assert check.unscored.code == code
    assert first.claim_report.facts_verified == 0


def no_completeness(run: Run, code: str) -> None:
    assert run.iterations[0].claim_report.completeness_unscored.code == code
    assert all(check.verdict == "supported" for check in run.iterations[0].claims)


def no_critique(run: Run, code: str) -> None:
    critique = run.iterations[0].critique
    assert critique.unscored.code == code
    scores = (critique.confidence, critique.overall_quality_score, critique.critique_confidence)
    assert scores == (None, None, None)
    assert (run.final_quality_score, run.improvement_percentage) == (None, None)
    assert (run.termination_reason, run.final_answer) == ("error", ANSWER)


def no_evaluation(run: Run, code: str) -> None:
    evaluation = run.iterations[0].evaluation
    assert evaluation.unscored.code == code
    assert (evaluation.faithfulness, evaluation.overall_score) == (None, None)
    assert (run.termination_reason, run.final_answer) == ("no_issues", ANSWER)
    assert run.final_quality_score == pytest.approx(0.9)


def no_revision(run: Run, code: str) -> None:
    assert (run.termination_reason, run.total_iterations) == ("error", 1)
    assert run.iterations[0].revision is None
    assert run.iterations[0].critique.unscored is None
    assert run.final_answer == ANSWER


STATES: dict[str, Callable[[Run, str], None]] = {
    "drafting": no_draft,
    "claims": no_claims,
    "extraction": no_claims,
    "verdicts": no_verdicts,
    "completeness": no_completeness,
    "critique": no_critique,
    "evaluation": no_evaluation,
    "revision": no_revision,
}
WIRES = ("openai", "anthropic")
KINDS = ("500", "hang", "cut-off", "refusal", "prose", "refused connection")
"""One fault for each way a call can fail; ``test_model.py`` tests every fault on one call."""
CASES = [
    (step, fault, WIRES[(row + column) % 2])
    for row, step in enumerate(STEPS)
    for column, fault in enumerate(KINDS)
    if (fault != "refused connection" or step in ROLE)
    and (step in ("critique", "revision") or (row + column) % 3 == 0)
]
"""Critique and revision have their own error codes, so they get every kind of fault; the other
steps get a third of them.
"""


@pytest.mark.spec(
    "CRITIC-ERR-001",
    "CRITIC-ERR-002",
    "CRITIC-ERR-003",
    "CRITIC-ERR-005",
    "CRITIC-ERR-006",
    "REQ-CRITIC-030",
    "REQ-CRITIC-031",
)
@pytest.mark.parametrize(("step", "fault", "wire"), CASES)
def test_a_permanent_fault_ends_in_its_documented_state(
    tmp_path: Path, step: str, fault: str, wire: str
) -> None:
    case = CASE.model_copy(update={"answer": None}) if step == "drafting" else CASE
    run, _ = audited(tmp_path, wire, step, fault, case)
    code = expected_code(step, fault)
    STATES[step](run, code)
    assert code in codes(run)
    assert run.needs_review
    reasons = {reason.code for reason in run.review_reasons}
    assert reasons & {"unscored", "error"}
    failed = [call for call in run.calls if call.outcome != "answered"]
    assert failed, "the failed call is on record"
