"""The outcome of verifying a claim without its passages, at the claim."""

from __future__ import annotations

from typing import Any

from masis.schema.minimal_evidence import MinimalEvidence
from masis.views.minimal_evidence import add_outcomes, newest_results, outcome_text
from masis.views.verdicts import ClaimData


def result(**keys: Any) -> MinimalEvidence:
    content = {
        "case_id": "bridge",
        "run_id": "run-1",
        "iteration": 1,
        "claim": 2,
        "text": "It is long.",
        "passages": [{"evidence_id": "c1", "start": 0, "end": 4, "text": "long"}],
        "audited": "supported",
        "before": "supported",
        "after": "unverifiable",
        "decisive": True,
        "judged_by": "offline",
        "by": "Ada",
        "at": "2026-01-02T00:00:00Z",
    }
    return MinimalEvidence.model_validate(content | keys)


def test_the_newest_result_on_the_shown_answer_is_said_at_its_claim() -> None:
    older = result(at="2026-01-01T00:00:00Z", after="supported", decisive=False)
    others = (result(run_id="run-0", claim=1), result(iteration=2, claim=1))
    newest = newest_results([result(), older, *others], "run-1", 1)
    assert newest == {2: result()}
    claim: ClaimData = {
        "text": "It is long.",
        "label": {"text": "supported", "tone": "good", "meaning": ""},  # type: ignore[typeddict-unknown-key]
        "says": ["Because."],
        "by": "",
    }
    first, second = add_outcomes([claim, claim], newest)
    assert first == claim
    assert second["says"] == [
        "Because.",
        (
            "Without its passages (c1) the verdict changes from “supported” to “not confirmed”, so"
            " it rests on them."
        ),
    ]


def test_a_verdict_that_stays_isnt_called_unfounded() -> None:
    says = outcome_text(result(after="supported", decisive=False))
    assert says == (
        "Without its passages (c1) the verdict stays “supported”, so they aren't the only reason"
        " for it."
    )
