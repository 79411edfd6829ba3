"""Tests of the public contract: names, fields and constants that users and the specs rely on."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

import pytest
from pydantic import BaseModel

import masis
from masis.audit.citations import audit_citations
from masis.audit.measures import run_metrics
from masis.errors import (
    HTTP_STATUS,
    MAX_ITERATIONS_WARNING,
    InputError,
    ProviderFailed,
    StaleVersion,
    StepError,
    StoreError,
    UnknownRecord,
)
from masis.schema.audit import Critique, Evaluation, Issue, Revision
from masis.schema.case import Case, Evidence, Severity
from masis.schema.rules import CRITIC_LOOP_TYPE, IssueType
from masis.schema.run import Event, Iteration, Run, TerminationReason
from masis.settings import Settings
from tests.audit.test_loop import CASE, run
from tests.scripted import MAJOR, ScriptedCritic, ScriptedReviser, judgement_with

RECORDS: dict[type[BaseModel], str] = {
    Issue: "type severity description quote start end suggestion reason evidence_ids",
    Critique: "overall_quality_score critique_confidence critique_reasoning has_major_issues",
    Revision: (
        "revised_answer changes_explanation updated_confidence issues_addressed preserved_content"
    ),
    Case: "answer query evidence reasoning_steps",
    Iteration: (
        "iteration_number answer citation_audit claims issues changes_made critique revision"
        " evaluation quality_score improvement_delta"
    ),
    Run: (
        "case_id iterations best final_answer final_quality_score improvement_percentage"
        " total_iterations converged termination_reason needs_review review_reasons warnings usage"
    ),
    Evaluation: (
        "faithfulness relevance completeness reasoning_quality overall_score"
        " improvement_suggestions"
    ),
}
"""The fields of each record that users and the specs rely on."""


@pytest.mark.spec(
    "CRITIC-LOOP-ISSUE",
    "CRITIC-LOOP-CRITIC-OUTPUT",
    "CRITIC-LOOP-REVISER-OUTPUT",
    "CRITIC-LOOP-INPUT",
    "CRITIC-LOOP-ITERATION",
    "CRITIC-LOOP-OUTPUT",
    "MASIS-EVAL-FIELDS",
)
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_a_record_has_every_field_under_its_name(record: type[BaseModel]) -> None:
    assert set(RECORDS[record].split()) <= set(record.model_fields)


@pytest.mark.spec("CRITIC-LOOP-CRITIC-INPUT")
def test_the_critics_input() -> None:
    critic = ScriptedCritic()
    run(critic=critic, case=CASE.model_copy(update={"reasoning_steps": ("First.", "Then.")}))
    seen = critic.seen[0]
    assert (seen.answer, seen.query, seen.evidence) == (CASE.answer, CASE.query, CASE.evidence)
    assert (seen.reasoning_steps, seen.iteration_number) == (("First.", "Then."), 1)


@pytest.mark.spec("CRITIC-LOOP-ISSUE")
def test_the_types_and_severities_of_an_issue() -> None:
    assert set(get_args(Severity)) == {"critical", "high", "medium", "low"}
    spec_types = {
        "logical",
        "factual",
        "safety",
        "ambiguity",
        "missing_info",
        "incomplete_reasoning",
    }
    assert spec_types <= set(get_args(IssueType))
    assert set(CRITIC_LOOP_TYPE.values()) == spec_types


@pytest.mark.spec("CRITIC-LOOP-REVISER-INPUT", "REQ-CRITIC-009")
def test_the_revisers_input() -> None:
    reviser = ScriptedReviser()
    result = run(
        critic=ScriptedCritic((judgement_with(0.5, raw_issues=(MAJOR,)), judgement_with(0.9))),
        reviser=reviser,
    )
    context, critique, issues = reviser.seen[0]
    assert (context.answer, context.query, context.evidence) == (
        CASE.answer,
        CASE.query,
        CASE.evidence,
    )
    assert context.iteration_number == 1
    assert critique == result.iterations[0].critique
    assert issues == result.iterations[0].issues


@pytest.mark.spec("CRITIC-LOOP-REASONS")
def test_the_reasons_to_end() -> None:
    spec_reasons = {"max_iterations", "convergence", "no_issues", "error"}
    assert set(get_args(TerminationReason)) == spec_reasons | {"cancelled", "no_answer"}


MINOR = MAJOR._replace(rule="minor", severity="low", description="It could be shorter.")


@pytest.mark.spec("REQ-CRITIC-OBS-001-ISSUES")
def test_issues_of_every_severity_are_counted() -> None:
    critic = ScriptedCritic(
        (
            judgement_with(0.5, raw_issues=(MAJOR, MINOR)),
            judgement_with(0.9, raw_issues=(MINOR,)),
            judgement_with(0.9),
        )
    )
    events: list[Event] = []
    result = run(critic=critic, settings=Settings(strictness="strict"), on_event=events.append)
    assert [[issue.severity for issue in iteration.issues] for iteration in result.iterations] == [
        ["high", "low"],
        ["low"],
    ]
    assert [
        (iteration.issues, iteration.major_issues)
        for iteration in run_metrics.of_run(result).iterations
    ] == [
        (2, 1),
        (1, 0),
    ]
    emitted = [event.data for event in events if event.kind == "iteration_finished"]
    assert [(data["issues"], data["major_issues"]) for data in emitted] == [(2, 1), (1, 0)]


# Other rules of the specs: HTTP status codes, the three hedges, and what the record keeps.


@pytest.mark.spec("CRITIC-ERR-HTTP")
def test_every_code_has_its_status_over_http() -> None:
    assert list(HTTP_STATUS.values()) == [500, 500, 502, 200, 500, 500]
    assert list(HTTP_STATUS) == [f"CRITIC-ERR-00{number}" for number in range(1, 7)]
    error_codes = {StepError.code, *(error.code for error in StepError.__subclasses__())}
    assert error_codes | {MAX_ITERATIONS_WARNING} == HTTP_STATUS.keys()
    errors: tuple[type[StepError], ...] = (StepError, *StepError.__subclasses__())
    assert {error.code: error.http_status for error in errors} == {
        code: status for code, status in HTTP_STATUS.items() if code != MAX_ITERATIONS_WARNING
    }
    assert ProviderFailed("no answer").about == {
        "kind": "ProviderFailed",
        "code": "CRITIC-ERR-003",
        "http_status": 502,
    }


def test_what_a_caller_can_put_right_is_distinguished_from_what_they_can_not() -> None:
    assert InputError("is empty", hint="Fill it in.").about == {
        "kind": "InputError",
        "http_status": 400,
    }
    assert [UnknownRecord.http_status, StaleVersion.http_status, StoreError.http_status] == [
        404,
        409,
        500,
    ]


@pytest.mark.spec("MASIS-CRITIC-HEDGES", "MASIS-CRITIC-P4")
@pytest.mark.parametrize("mode", ["standard", "literal"])
@pytest.mark.parametrize(
    "hedge",
    [
        "There is insufficient evidence",
        "The length is NOT PROVIDED",
        "The sources cannot provide the length",
    ],
)
def test_a_sentence_that_says_the_evidence_lacks_it_needs_no_citation(
    hedge: str, mode: str
) -> None:
    answer = f"The bridge is 120 metres long [chunk_1]. {hedge}. It is blue."
    audit = audit_citations(answer, CASE.evidence, mode=mode)
    assert [claim.rstrip(".") for claim in audit.uncited_claims] == ["It is blue"]


@pytest.mark.spec("MASIS-CRITIC-LITERAL")
def test_the_literal_mode_applies_the_spec_s_two_expressions_exactly() -> None:
    answer = "The bridge is 2.5 km long [chunk_1]. It is blue [sic] [chunk_1]."
    case = Case.model_validate(CASE.model_dump() | {"answer": answer})
    audits = {
        mode: (
            run(case=case, settings=Settings(citation_mode=mode, max_iterations=1))
            .iterations[0]
            .citation_audit
        )
        for mode in ("standard", "literal")
    }
    assert (audits["literal"].invalid_citations, audits["standard"].invalid_citations) == (
        ("sic",),
        (),
    )
    assert audits["literal"].uncited_claims == ("The bridge is 2",)
    assert audits["standard"].uncited_claims == ()


@pytest.mark.spec("MASIS-CRITIC-METRICS", "MASIS-EVAL-METRICS", "CRITIC-LOOP-SEQUENTIAL")
def test_the_record_keeps_the_findings_confidence_scores_and_times_of_each_iteration() -> None:
    reviser = ScriptedReviser(("The bridge is 120 metres long [chunk_1]. So it is.",))
    critic = ScriptedCritic((judgement_with(0.6, raw_issues=(MAJOR,)), judgement_with(0.9)))
    case = Case.model_validate(CASE.model_dump() | {"answer": "The bridge is 120 metres long [7]."})
    first, second = run(case=case, critic=critic, reviser=reviser).iterations
    assert [len(iteration.citation_audit.invalid_citations) for iteration in (first, second)] == [
        1,
        0,
    ]
    assert [iteration.critique.confidence for iteration in (first, second)] == [
        pytest.approx(0.3),
        pytest.approx(0.81),
    ]
    assert (first.revision.revised_answer, critic.seen[1].answer) == (second.answer, second.answer)
    for iteration in (first, second):
        assert iteration.step_ms["critique"] > 0
        assert iteration.step_ms["evaluation"] > 0


@pytest.mark.spec("MASIS-EVAL-ALWAYS")
def test_an_answer_that_needs_review_has_scores_too() -> None:
    result = run(
        critic=ScriptedCritic((judgement_with(0.1, hallucination_detected=True),)),
        settings=Settings(max_iterations=1),
    )
    assert result.needs_review
    evaluation = result.best_iteration.evaluation
    assert (evaluation.faithfulness, evaluation.overall_score) == (0.4, 0.725)


# Names that users rely on.

REVENUE = [
    Evidence(id="chunk_1", text="Revenue rose by 12% in 2023."),
    Evidence(id="chunk_2", text="It was cold."),
]


def test_the_exported_names() -> None:
    assert set(masis.__all__) == {
        "Abstract", "Case", "CitationAudit", "ClaimCheck", "Desk", "Evidence", "Run", "Screening", "Settings",
        "__version__", "audit_citations", "run_audit", "run_audit_async", "screen_abstracts", "screen_abstracts_async",
        "verify_claims", "critique_draft", "query_with_critique", "query_with_critique_async", "audited",
        "assert_grounded", "assert_not_worse", "aaudit", "audit", "audit_many", "read_cases", "suggest", "runs_to_pandas", "html", "plot",
    }  # fmt: skip
    assert all(getattr(masis, name) is not None for name in masis.__all__)


def test_importing_the_package_is_cheap() -> None:
    script = (
        "import sys, masis; print([m for m in ('pydantic', 'pandas', 'streamlit', 'numpy') if m in"
        " sys.modules])"
    )
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "[]"


def test_the_same_case_gives_the_same_run_except_for_its_id_and_times() -> None:
    case = Case(
        id="1",
        query="How did revenue do?",
        answer="Revenue rose by 21% in 2023 [9].",
        evidence=tuple(REVENUE),
    )

    def run_without_times() -> dict[str, object]:
        run = masis.run_audit(case).model_dump(exclude={"id", "started_at", "finished_at"})
        for iteration in run["iterations"]:
            iteration.pop("step_ms")
        return run

    assert run_without_times() == run_without_times()


def test_a_case_without_screening_keeps_its_digest_and_other_screening_keys_are_kept() -> None:
    plain = {"id": "c1", "query": "How long?", "evidence": [{"id": "1", "text": "120 m."}]}
    assert Case.model_validate(plain).to_json_dict() == plain
    assert (
        Case.model_validate(plain).digest()
        == "ed26467ad289ebf9cb579f38961e2575ae1af09e52900ae44c1ab5696f2edd8b"
    )
    for screening in (
        "by hand",
        3,
        {"by": "hand"},
        {"id": "s1", "outcome": "sufficient", "more": 1},
    ):
        case = Case.model_validate({**plain, "screening": screening})
        assert case.to_json_dict()["screening"] == screening
        assert case.evidence_outcome == (
            "sufficient" if isinstance(screening, dict) and "outcome" in screening else None
        )
