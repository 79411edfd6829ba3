"""What the specs fix beside the steps' own rules: codes over HTTP, the three hedges, what the record keeps."""

from __future__ import annotations

import pytest

from masis.audit.citations import audit_citations
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
from masis.schema.case import Case
from masis.settings import Settings
from tests.audit.test_loop import CASE, run
from tests.scripted import MAJOR, ScriptedCritic, ScriptedReviser, said


@pytest.mark.spec("CRITIC-ERR-HTTP")
def test_every_code_has_its_status_over_http() -> None:
    assert list(HTTP_STATUS.values()) == [500, 500, 502, 200, 500, 500]
    assert list(HTTP_STATUS) == [f"CRITIC-ERR-00{number}" for number in range(1, 7)]
    raised = {StepError.code, *(error.code for error in StepError.__subclasses__())}
    assert raised | {MAX_ITERATIONS_WARNING} == HTTP_STATUS.keys()
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
    assert InputError("is empty", cure="Fill it in.").about == {"kind": "InputError", "http_status": 400}
    assert [UnknownRecord.http_status, StaleVersion.http_status, StoreError.http_status] == [404, 409, 500]


@pytest.mark.spec("MASIS-CRITIC-HEDGES")
@pytest.mark.parametrize("mode", ["standard", "literal"])
@pytest.mark.parametrize(
    "hedge",
    ["There is insufficient evidence", "The length is NOT PROVIDED", "The sources cannot provide the length"],
)
def test_a_sentence_that_says_the_evidence_lacks_it_needs_no_citation(hedge: str, mode: str) -> None:
    answer = f"The bridge is 120 metres long [chunk_1]. {hedge}. It is blue."
    audit = audit_citations(answer, CASE.evidence, mode=mode)  # type: ignore[arg-type]
    assert [claim.rstrip(".") for claim in audit.uncited_claims] == ["It is blue"]


@pytest.mark.spec("MASIS-CRITIC-LITERAL")
def test_the_spec_s_two_expressions_to_the_letter_are_a_mode_that_judges_a_run() -> None:
    answer = "The bridge is 2.5 km long [chunk_1]. It is blue [sic] [chunk_1]."
    case = Case.model_validate(CASE.model_dump() | {"answer": answer})
    found = {
        mode: run(case=case, settings=Settings(citation_mode=mode, max_iterations=1)).iterations[0].citation_audit
        for mode in ("standard", "literal")
    }
    assert (found["literal"].invalid_citations, found["standard"].invalid_citations) == (("sic",), ())
    assert found["literal"].uncited_claims == ("The bridge is 2",)
    assert found["standard"].uncited_claims == ()


@pytest.mark.spec("MASIS-CRITIC-METRICS", "MASIS-EVAL-METRICS", "CRITIC-LOOP-SEQUENTIAL")
def test_the_record_keeps_each_iterations_findings_confidence_scores_and_times() -> None:
    reviser = ScriptedReviser(("The bridge is 120 metres long [chunk_1]. So it is.",))
    critic = ScriptedCritic((said(0.6, objections=(MAJOR,)), said(0.9)))
    case = Case.model_validate(CASE.model_dump() | {"answer": "The bridge is 120 metres long [7]."})
    first, second = run(case=case, critic=critic, reviser=reviser).iterations
    assert [len(each.citation_audit.invalid_citations) for each in (first, second)] == [1, 0]
    assert [each.critique.confidence for each in (first, second)] == [pytest.approx(0.3), pytest.approx(0.81)]
    assert first.revision is not None
    assert (first.revision.revised_answer, critic.seen[1].answer) == (second.answer, second.answer)
    for each in (first, second):
        assert each.evaluation is not None
        assert each.step_ms["critique"] > 0
        assert each.step_ms["evaluation"] > 0


@pytest.mark.spec("MASIS-EVAL-ALWAYS")
def test_an_answer_that_a_person_must_read_carries_its_scores_all_the_same() -> None:
    found = run(critic=ScriptedCritic((said(0.1, hallucination_detected=True),)), settings=Settings(max_iterations=1))
    assert found.needs_review
    assert found.best_iteration is not None
    evaluation = found.best_iteration.evaluation
    assert evaluation is not None
    assert (evaluation.faithfulness, evaluation.overall_score) == (0.4, 0.725)
