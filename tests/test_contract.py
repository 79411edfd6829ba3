"""The public contract: names and shapes that others rely on."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import masis
from masis import Case, Evidence, Run

EVIDENCE = [Evidence(id="chunk_1", text="Revenue rose by 12% in 2023."), Evidence(id="chunk_2", text="It was cold.")]


def test_the_exported_names() -> None:
    assert set(masis.__all__) == {
        "Abstract", "Case", "CitationAudit", "ClaimCheck", "Desk", "Evidence", "Run", "Screening", "Settings",
        "__version__", "audit_citations", "run_audit", "run_audit_async", "screen_abstracts", "screen_abstracts_async",
        "verify_claims", "critique_draft", "query_with_critique", "query_with_critique_async", "audited",
        "assert_grounded", "audit_many", "read_cases", "suggest", "runs_to_pandas", "html", "plot",
    }  # fmt: skip
    assert all(getattr(masis, name) is not None for name in masis.__all__)


def test_importing_the_package_is_cheap() -> None:
    heavy = "import sys, masis; print([m for m in ('pydantic', 'pandas', 'streamlit', 'numpy') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.spec("MASIS-CRITIC-P3", "MASIS-CRITIC-P4")
def test_citations() -> None:
    audit = masis.audit_citations("Revenue rose [1, 99]. It was cold.", EVIDENCE)
    assert [(c.text, c.evidence_id, c.status, c.resolved_by) for c in audit.citations] == [
        ("1", "chunk_1", "valid", "suffix"),
        ("99", None, "invalid", None),
    ]
    assert [(s.status, s.citation_ids) for s in audit.sentences] == [("cited", ("chunk_1",)), ("uncited", ())]
    assert list(audit.invalid_citations) == ["99"]
    assert list(audit.uncited_claims) == ["It was cold."]
    assert audit.hallucination_detected
    assert audit.penalty_factor == 0.45


def test_claims() -> None:
    found = masis.verify_claims(["Revenue rose by 12% in 2023.", "Revenue rose by 21% in 2023."], EVIDENCE)
    assert [check.verdict for check in found] == ["supported", "contradicted"]
    assert found[0].support is not None
    assert found[0].confidence is not None
    assert found[0].sources == ("chunk_1",)
    assert (found[0].quotes[0].evidence_id, found[0].quotes[0].start) == ("chunk_1", 0)
    assert found[1].issue


def test_runs() -> None:
    events = []
    case = Case(
        id="1", query="How did revenue do?", answer="Revenue rose by 21% in 2023 [9].", evidence=tuple(EVIDENCE)
    )
    run = masis.run_audit(case, on_event=events.append)
    assert events
    first = run.iterations[0]
    iteration_fields = (
        "iteration_number answer citation_audit claims issues critique revision evaluation quality_score "
        "improvement_delta"
    )
    assert set(iteration_fields.split()) <= first.model_dump().keys()
    run_fields = (
        "case_id best final_answer final_quality_score improvement_percentage total_iterations converged "
        "termination_reason needs_review review_reasons warnings usage"
    )
    assert set(run_fields.split()) <= run.model_dump().keys()
    assert Run.model_validate_json(run.model_dump_json()) == run
    assert json.loads(run.model_dump_json())["case_id"] == "1"


def test_the_same_case_gives_the_same_run_but_for_its_id_and_times() -> None:
    case = Case(
        id="1", query="How did revenue do?", answer="Revenue rose by 21% in 2023 [9].", evidence=tuple(EVIDENCE)
    )

    def bare() -> dict[str, object]:
        run = masis.run_audit(case).model_dump(exclude={"id", "started_at", "finished_at"})
        for iteration in run["iterations"]:
            iteration.pop("step_ms")
        return run

    assert bare() == bare()


def test_unknown_keys_of_a_case_are_kept() -> None:
    given = {"id": "1", "query": "q", "evidence": [{"id": "a", "text": "t", "page": 3}], "mine": {"x": [1]}}
    assert Case.model_validate(given).to_json_dict() == given


def test_a_case_of_no_screening_keeps_its_bytes_and_its_digest_and_another_key_of_that_name_is_kept() -> None:
    plain = {"id": "c1", "query": "How long?", "evidence": [{"id": "1", "text": "120 m."}]}
    assert Case.model_validate(plain).to_json_dict() == plain
    assert Case.model_validate(plain).digest() == "ed26467ad289ebf9cb579f38961e2575ae1af09e52900ae44c1ab5696f2edd8b"
    for brought in ("by hand", 3, {"by": "hand"}, {"id": "s1", "outcome": "sufficient", "more": 1}):
        case = Case.model_validate({**plain, "screening": brought})
        assert case.to_json_dict()["screening"] == brought
        assert case.evidence_outcome == ("sufficient" if isinstance(brought, dict) and "outcome" in brought else None)
