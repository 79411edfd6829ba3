"""An answer or a case beyond the limits is checked within them, says what was not checked, and is never accepted."""

from __future__ import annotations

from typing import Any

import pytest

import masis
from masis import Case, Evidence, Run, Settings
from masis.audit import loop
from masis.audit.citations import audit_citations
from masis.audit.limits import answer_within, evidence_within
from masis.observers.observation import run_to_completion
from tests.audit import factories
from tests.scripted import ContentVerifier, ScriptedReviser, roles, ticking

SENTENCE = "The bridge is 120 metres long [chunk_1]. "


def audited(case: Case, settings: Settings, **filled: Any) -> Run:
    work = loop.audit(case, roles(verifier=ContentVerifier(), **filled), settings, run_id="r1", clock=ticking())
    return run_to_completion(work)


def not_all_checked(run: Run) -> bool:
    """Whether the run says at every place that it did not look at everything."""
    reason = next((each for each in run.review_reasons if each.code == "not_all_checked"), None)
    check = next(each for each in run.acceptance.checks if each.name == "limits")
    warned = any("Not everything was checked" in warning.message for warning in run.warnings)
    assert (reason is not None) == warned == (not check.passed) == bool(run.iterations[0].claim_report.unchecked)
    assert reason is None or reason.tier == "not_certified"
    return reason is not None


def test_what_lies_within_the_limits_is_checked_whole() -> None:
    run = audited(factories.case(), Settings())
    assert not not_all_checked(run)
    assert not run.needs_review


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"max_answer_characters": 1_000}, "983 of 12,300 characters of the answer were checked."),
        ({"max_claims": 7}, "7 of 300 claims were checked."),
        ({"max_evidence": 2}, "2 of 40 chunks of evidence were checked."),
        ({"max_evidence_characters": 1_000}, "1,000 of 2,240 characters of evidence were checked."),
    ],
)
def test_beyond_a_limit_the_audit_says_what_it_left_out_and_needs_review(changes: dict[str, int], said: str) -> None:
    evidence = [
        Evidence(id=f"chunk_{n}", text=f"The bridge is 120 metres long, says {n:02} of these sources.")
        for n in range(40)
    ]
    run = audited(factories.case(SENTENCE * 300, evidence=evidence), Settings(**changes))
    assert not_all_checked(run)
    assert run.needs_review
    assert said in " ".join(run.iterations[0].claim_report.unchecked)
    assert run.iterations[0].answer == SENTENCE * 300
    assert run.iterations[0].citation_audit.invalid_citations == ()


def test_an_answer_is_cut_at_the_end_of_a_sentence() -> None:
    settings = Settings(max_answer_characters=1_000)
    assert answer_within(SENTENCE * 300, settings).endswith("[chunk_1].")
    assert len(answer_within("word " * 300, settings)) == 1_000


def test_cited_evidence_is_read_first_and_a_chunk_that_is_left_out_is_no_fabrication() -> None:
    evidence = tuple(Evidence(id=str(number), text="x" * 400) for number in range(1, 10))
    audit = audit_citations("It is so [8]. And so [9].", evidence)
    assert [chunk.id for chunk in evidence_within(evidence, audit, Settings(max_evidence=3))] == ["1", "8", "9"]
    cut = evidence_within(evidence, audit, Settings(max_evidence_characters=1_000))
    assert [(chunk.id, len(chunk.text)) for chunk in cut] == [("1", 200), ("8", 400), ("9", 400)]
    every = tuple(Evidence(id=str(number), text=f"Tower {number} is {number} metres high.") for number in range(1, 10))
    case = Case(id="towers", query="How high?", answer="Tower 8 is 8 metres high [8][9][7].", evidence=every)
    [first, *_] = masis.run_audit(case, Settings(max_evidence=2)).iterations
    assert first.citation_audit.invalid_citations == ()
    assert len(first.claims) == 1


def test_what_the_unread_evidence_may_hold_is_accused_by_nobody() -> None:
    evidence = tuple(
        Evidence(id=str(n), text=f"Tower {n} stands in the north and is 1{n} metres high.") for n in (1, 2)
    )
    case = Case(
        id="towers", query="Where?", answer="The mayor collects antique spoons from Portugal.", evidence=evidence
    )
    [first, *_] = masis.run_audit(case, Settings(max_evidence=1)).iterations
    assert {check.verdict for check in first.claims} == {"unverifiable"}
    assert [check.abstained for check in first.claims if check.abstained] in ([], ["limits"])


def test_the_rest_of_a_long_answer_follows_its_revision_unchanged() -> None:
    whole = SENTENCE * 30
    settings = Settings(max_answer_characters=1_000, min_iterations=2)
    head = answer_within(whole, settings)
    run = audited(factories.case(whole), settings, reviser=ScriptedReviser([head.replace("120", "0120")]))
    assert run.iterations[1].answer == head.replace("120", "0120") + whole[len(head) :]


@pytest.mark.slow
def test_an_answer_of_more_than_a_million_characters_takes_bounded_time() -> None:
    run = masis.run_audit(factories.case(SENTENCE * 40_000), Settings(max_claims=50))
    assert not_all_checked(run)
    assert len(run.iterations[0].claims) == 50
    assert run.termination_reason != "error"
