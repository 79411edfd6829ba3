"""One answer audited at a time: what a host with a loop of its own gets, pass by pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from masis import run_audit
from masis.api import stepwise
from masis.errors import InputError
from masis.observers import observation
from masis.schema.audit import Critique
from masis.schema.case import Case
from masis.schema.run import Run
from masis.services import Workbench
from masis.settings import Settings
from tests.reviewing import ADA

EVIDENCE = (
    {"id": "chunk_1", "text": "The Halden bridge is 120 metres long. It is made of steel."},
    {"id": "chunk_2", "text": "It was opened to traffic in 1931 by the mayor."},
)
WRONG = "The Halden bridge is 90 metres long [chunk_1]. It cost 4 million crowns [chunk_9]."
RIGHT = (
    "The Halden bridge is 120 metres long [chunk_1]. It was opened to traffic in 1931 by the mayor"
    " [chunk_2]."
)
SETTINGS = Settings()


def bridge(answer: str = WRONG) -> Case:
    fields: dict[str, Any] = {
        "id": "bridge",
        "query": "How long is the Halden bridge, and when was it opened?",
    }
    return Case.model_validate(fields | {"answer": answer, "evidence": EVIDENCE})


def findings(run: Run) -> list[Any]:
    """What was found, without the times it took and the ids of the moment."""
    return [
        (
            it.answer,
            it.citation_audit,
            it.claims,
            it.issues,
            it.critique,
            it.evaluation,
            it.quality_score,
        )
        for it in run.iterations
    ]


def test_one_pass_equals_the_first_iteration_of_an_audit() -> None:
    whole = run_audit(bridge(), Settings(max_iterations=1, evaluate="never"))
    assert findings(stepwise.audit_once(bridge(), SETTINGS)) == findings(whole)


def test_a_pass_calls_neither_reviser_nor_evaluator() -> None:
    run = stepwise.audit_once(bridge(), SETTINGS)
    (only,) = run.iterations
    assert (only.revision, only.evaluation, run.final_answer) == (None, None, WRONG)


@pytest.mark.spec("MASIS-CRITIC-P7")
def test_the_next_draft_is_the_next_iteration() -> None:
    first = stepwise.audit_once(bridge(), SETTINGS)
    again = stepwise.audit_once(bridge(), SETTINGS, before=first, answer=RIGHT)
    assert (again.id, again.started_at, again.total_iterations) == (first.id, first.started_at, 2)
    assert [it.iteration_number for it in again.iterations] == [1, 2]
    assert again.iterations[0].revision.revised_answer == RIGHT
    before, after = (it.quality_score for it in again.iterations)
    assert again.iterations[1].improvement_delta == pytest.approx(after - before)
    assert (again.best, again.final_answer) == (1, RIGHT)


def test_a_worse_next_draft_is_kept_but_not_chosen() -> None:
    first = stepwise.audit_once(bridge(RIGHT), SETTINGS)
    worse = stepwise.audit_once(bridge(RIGHT), SETTINGS, before=first, answer=WRONG)
    assert [it.answer for it in worse.iterations] == [RIGHT, WRONG]
    assert (worse.best, worse.final_answer) == (0, RIGHT)


def test_the_pass_limit_warns_once() -> None:
    settings = Settings(improvement_threshold=0.0)  # so that no pass ends by convergence
    run = stepwise.audit_once(bridge(), settings)
    for _ in range(3):
        run = stepwise.audit_once(bridge(), settings, before=run, answer=WRONG)
        assert [warning.code for warning in run.warnings] == ["CRITIC-ERR-004"]


@pytest.mark.spec("MASIS-EVAL-P1")
def test_the_evaluator_scores_the_last_answer_as_in_an_audit() -> None:
    audited = stepwise.audit_once(
        bridge(), SETTINGS, before=stepwise.audit_once(bridge(), SETTINGS), answer=RIGHT
    )
    judged = stepwise.evaluate_once(bridge(), audited, SETTINGS)
    assert judged.iterations[0].evaluation is None
    alone = run_audit(bridge(RIGHT), Settings(max_iterations=1))
    assert judged.iterations[1].evaluation == alone.iterations[0].evaluation
    assert findings(judged)[0] == findings(audited)[0]
    assert (
        stepwise.evaluate_once(bridge(), judged, SETTINGS).iterations[1].evaluation
        == alone.iterations[0].evaluation
    )


@pytest.mark.spec("MASIS-EVAL-P4", "MASIS-EVAL-P5")
@pytest.mark.parametrize(
    ("found", "most"),
    [
        (stepwise.ExternalFindings(invalid_citations=("chunk_99",)), 0.4),
        (stepwise.ExternalFindings(hallucination_detected=True), 0.4),
        (stepwise.ExternalFindings(uncited_claim_count=5), 0.5),
        (stepwise.ExternalFindings(uncited_claim_count=10), 0.3),
        (
            stepwise.ExternalFindings(
                invalid_citations=("x",), uncited_claim_count=12, hallucination_detected=True
            ),
            0.3,
        ),
    ],
)
def test_an_external_critics_citation_findings_cap_the_scores(
    found: stepwise.ExternalFindings, most: float
) -> None:
    case = bridge(RIGHT)
    free = (
        stepwise.evaluate_once(case, stepwise.audit_once(case, SETTINGS), SETTINGS)
        .iterations[0]
        .evaluation
    )
    bound = stepwise.evaluate_once(
        case, stepwise.with_external_findings(stepwise.audit_once(case, SETTINGS), found), SETTINGS
    )
    assert free.faithfulness > most
    evaluation = bound.iterations[0].evaluation
    assert evaluation.faithfulness == most


def test_an_external_critic_cant_weaken_citation_findings() -> None:
    bound = stepwise.with_external_findings(
        stepwise.audit_once(bridge(), SETTINGS), stepwise.ExternalFindings()
    )
    assert bound.iterations[0].citation_audit.invalid_citations == ("chunk_9",)
    assert bound.iterations[0].citation_audit.hallucination_detected


def test_a_supplied_critique_is_used_without_calling_a_critic() -> None:
    given = Critique(
        confidence=0.2,
        hallucination_detected=True,
        needs_retry=True,
        overall_quality_score=None,
        critique_confidence=None,
        critique_reasoning="Their own words.",
        has_major_issues=False,
        judged_by=stepwise.HOST,
    )
    run = stepwise.audit_once(bridge(RIGHT), SETTINGS, critique=given)
    assert run.iterations[0].critique == given
    assert run.iterations[0].claims  # the claims were looked at all the same


def test_a_revision_addresses_the_issues_and_is_audited_next() -> None:
    first = stepwise.audit_once(bridge(), SETTINGS)
    revision = stepwise.revise_once(bridge(), first, SETTINGS)
    assert "chunk_9" not in revision.revised_answer
    assert "120 metres" in revision.revised_answer
    again = stepwise.audit_once(bridge(), SETTINGS, before=first, answer=revision.revised_answer)
    second = again.iterations[1]
    assert second.citation_audit.invalid_citations == ()
    open_still = [issue for issue in second.issues if issue.rule == "fabricated_reference"]
    assert [issue.carried_from for issue in open_still] == [1]


def test_a_draft_is_written_from_evidence_with_citations() -> None:
    case = bridge()
    draft = stepwise.draft_once(case.query, case.evidence, SETTINGS)
    assert "[chunk_1]" in draft.answer


@pytest.mark.parametrize("answer", ["", " \n "])
def test_an_empty_answer_is_rejected_and_never_drafted(answer: str) -> None:
    with pytest.raises(InputError, match="answer: is empty"):
        stepwise.audit_once(bridge(answer), SETTINGS)
    with pytest.raises(InputError, match="answer: is empty"):
        stepwise.audit_once(
            bridge(), SETTINGS, before=stepwise.audit_once(bridge(), SETTINGS), answer=answer
        )


def test_a_run_of_another_case_is_rejected() -> None:
    other = bridge().model_copy(update={"query": "What is it made of?"})
    run = stepwise.audit_once(bridge(), SETTINGS)
    with pytest.raises(InputError, match="isn't an audit of case"):
        stepwise.audit_once(other, SETTINGS, before=run, answer=RIGHT)
    with pytest.raises(InputError, match="isn't an audit of case"):
        stepwise.evaluate_once(other, run, SETTINGS)
    with pytest.raises(InputError, match="isn't an audit of case"):
        stepwise.revise_once(other, run, SETTINGS)


def test_a_stepwise_run_is_stored_and_loaded_like_any_other(tmp_path: Path) -> None:
    case = bridge()
    run = stepwise.audit_once(case, SETTINGS)
    run = stepwise.audit_once(case, SETTINGS, before=run, answer=RIGHT)
    run = stepwise.evaluate_once(case, run, SETTINGS)
    bench = Workbench.open(tmp_path / "passes.db")
    bench.cases.add(ADA, [case])
    bench.audits.store_run(ADA, run)
    bench.audits.store_run(ADA, run)
    opened = bench.cases.open("bridge")
    assert opened.run == run
    assert (opened.state, len(opened.runs)) == ("needs_review", 1)
    bench.store.close()


class Recording:
    """Keeps what every pass came to."""

    def __init__(self) -> None:
        self.results: list[Any] = []
        self.operations: list[str] = []

    def on_start(self, start: Any) -> Recording:
        self.operations.append(start.operation)
        return self

    def on_event(self, event: Any) -> None:
        """Nothing of it matters here."""

    def on_end(self, result: Any, error: BaseException | None) -> None:
        self.results.append(result)


def test_observers_receive_each_iteration_once() -> None:
    watcher = Recording()
    leave = observation.register(watcher)
    try:
        run = stepwise.audit_once(bridge(), SETTINGS)
        run = stepwise.audit_once(bridge(), SETTINGS, before=run, answer=RIGHT)
        stepwise.evaluate_once(bridge(), run, SETTINGS)
    finally:
        leave()
    assert watcher.operations == ["pass", "pass", "pass"]
    first, second, judged = watcher.results
    assert [it.answer for it in (*first.iterations, *second.iterations)] == [WRONG, RIGHT]
    assert (second.total_iterations, second.best_iteration.answer) == (1, RIGHT)
    assert judged is None
