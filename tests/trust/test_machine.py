"""The audit beside people: what counts, what is set apart, and what the figures are."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from masis.errors import InputError, NotAllowed
from masis.schema.actor import Actor
from masis.schema.review import TargetLabel
from masis.schema.run import ReviewReason
from masis.schema.team import QueuePolicy
from masis.schema.trust import FaultScore
from masis.services import Workbench, demo
from masis.services.access import SIGN_IN_REQUIRED
from masis.services.trust import TrustFilter, TrustService
from masis.services.trust_summary import figure, short_answers
from masis.store.records import CaseFilter
from masis.trust.machine import Stratum, draws_for_width, missed
from masis.trust.score import auroc, calibration_error, error_floor, fit, probabilities, reliability, yield_curve
from tests.reviewing import ADA
from tests.trust.conftest import decided

Audited = Callable[..., None]
SERIOUS = ReviewReason(code="invalid_reference", message="1 reference cites no evidence.")


@pytest.fixture
def reviewed(bench: Workbench, audited: Audited) -> Workbench:
    """Twelve answers: six accused of which four are faulty, six not of which one is; two decided with the verdict."""
    audited(0, 6, run={"review_reasons": (SERIOUS,)})
    audited(6, 14)
    for number, verdict in enumerate(["reject", "reject", "override", "reject", "approve", "approve"]):
        decided(bench, number, verdict)
    for number in range(6, 11):
        decided(bench, number)
    decided(bench, 11, "reject")
    decided(bench, 12, "reject", blind=False)
    decided(bench, 13, "escalate")
    return bench


def test_blind_decisions_make_the_confusion_matrix_and_the_others_stand_apart(reviewed: Workbench) -> None:
    found = reviewed.trust.compare(ADA, TrustFilter())
    assert found.answers.confusion == {"must_look": (4, 2), "not_certified": (1, 5)}
    assert found.answers.precision.value == pytest.approx(4 / 6)
    assert found.answers.recall.value == pytest.approx(4 / 5)
    assert found.answers.kappa.value == pytest.approx(0.5)
    assert found.answers.constant == pytest.approx(7 / 12)
    assert found.left == (1, 1, 0)
    assert found.seen.n == 1
    flags = {flag.name: flag for flag in found.answers.flags}
    assert (flags["invalid_reference"].flagged, flags["invalid_reference"].precision.n) == (6, 6)
    assert reviewed.trust.compare(ADA, TrustFilter(blind_only=False)).answers.n == 13
    assert set(found.by["field"]) == {"Engineering"}
    assert reviewed.trust.compare(ADA, TrustFilter(field="Law")).answers.n == 0
    assert reviewed.trust.compare(ADA, TrustFilter(since="2999-01-01")).answers.n == 0


def test_gold_and_imported_labels_are_compared_too(bench: Workbench, audited: Audited) -> None:
    statement = "It was opened in 1932 [1]."
    gold = {"clean": False, "claims": [{"text": statement, "verdict": "contradicted"}]}
    audited(0, 1, case={"labels": gold})
    audited(1, 2, case={"labels": {"claims": [{"text": statement, "support": "Complete"}]}})
    assert bench.trust.compare(ADA, TrustFilter(source="gold")).answers.confusion == {"not_certified": (1, 1)}
    assert bench.trust.parts(ADA, "claim", "gold").comparison.n == 0  # the audit's claim has no place in the answer


def test_claims_and_references_are_matched_by_their_place() -> None:
    from types import SimpleNamespace

    from masis.trust.machine import compare_items, items

    claims = [
        SimpleNamespace(verdict="supported", claim=SimpleNamespace(start=0, end=10)),
        SimpleNamespace(verdict="contradicted", claim=SimpleNamespace(start=11, end=20)),
    ]
    references = [SimpleNamespace(status="invalid", start=12, end=15), SimpleNamespace(status="valid", start=2, end=5)]
    audit = SimpleNamespace(citations=references)
    iteration = SimpleNamespace(claims=claims, citation_audit=audit, issues=[])
    labels = {
        "claims": [{"text": "0123456789", "verdict": "supported"}, {"text": "abcdefghi", "support": "Incomplete"}],
        "citations": [{"text": "bcd", "sentence": "abcdefghi", "status": "invalid"}],
    }
    word = TargetLabel(target="claim", start=0, end=10, text="0123456789", label="unsupported")
    decision = SimpleNamespace(labels=(word,), machine_shown=())
    judged = SimpleNamespace(iteration=iteration, entry=SimpleNamespace(decision=decision))
    case = {"id": "a", "query": "q", "answer": "0123456789 abcdefghi", "labels": labels}
    outcome: Any = SimpleNamespace(case=case, current=judged, judgements=(judged,))
    found = items([outcome])
    gold = found[found["source"] == "gold"]
    assert compare_items(gold, "claim").confusion == {"supported": (0, 1), "contradicted": (1, 0)}
    assert compare_items(gold, "reference").confusion == {"invalid": (1, 0)}
    assert compare_items(found[found["source"] == "decision"], "claim").confusion == {"supported": (1, 0)}


def test_reviewers_are_compared_and_only_a_lead_sees_their_names(bench: Workbench, audited: Audited) -> None:
    audited(0, 3)
    bench.store.team.put("Ada", QueuePolicy(reviewers=2, rule="adjudicated", machine="never"))
    for number, verdict in enumerate(["approve", "approve", "reject"]):
        decided(bench, number, "approve", reviewer="Ada")
        decided(bench, number, verdict, reviewer="Bo")
    decided(bench, 2, "reject", kind="adjudication", reviewer="Cy")
    found = bench.trust.people(ADA)
    assert (found.agreement.units, found.agreement.raw.value) == (3, pytest.approx(2 / 3))
    (pair,) = found.pairs
    assert (pair.first, pair.second) == ("Ada", "Reviewer B")
    assert [found.cases[unit] for unit in pair.differ] == ["case-2"]
    assert bench.trust.people(ADA, names=True).pairs[0].second == "Bo"
    (own,) = bench.trust.reviewers(ADA)
    assert (own.decisions, own.agreed.value) == (3, pytest.approx(2 / 3))
    assert {each.reviewer for each in bench.trust.reviewers(ADA, others=True)} == {"Ada", "Bo"}
    shared = TrustService(bench.store, bench.settings, SIGN_IN_REQUIRED)
    reviewer = Actor(name="Bo", roles=("reviewer",), authenticated=True)
    for forbidden in (shared.people, lambda person, names: shared.reviewers(person, others=names)):
        with pytest.raises(NotAllowed):
            forbidden(reviewer, names=True)


def test_a_blind_reviewer_sees_settled_cases_only(bench: Workbench, audited: Audited) -> None:
    audited(0, 2)
    bench.store.team.put("Ada", QueuePolicy(reviewers=2, rule="adjudicated", machine="never"))
    for reviewer, verdict in (("Bo", "approve"), ("Cy", "reject")):
        decided(bench, 0, verdict, reviewer=reviewer)  # differ: not settled
    for reviewer in ("Bo", "Cy"):
        decided(bench, 1, "approve", reviewer=reviewer)
    assert bench.trust.people(ADA).cases == ("case-1",)


def test_the_miss_rate_weighs_strata_and_says_how_many_draws_are_missing(bench: Workbench, audited: Audited) -> None:
    both = missed([Stratum("5%", 900, 20, 0), Stratum("50%", 100, 50, 10)])
    assert both.value == pytest.approx(0.1 * 0.2)
    assert both.low is not None
    assert both.high is not None
    assert 0 < both.low < 0.02 < both.high < 0.15
    assert missed([Stratum("5%", 900, 0, 0), Stratum("50%", 100, 50, 10)]).why.startswith("90%")
    assert missed([]).value is None
    one = missed([Stratum("5%", 1000, 20, 1)])
    more = draws_for_width(one, 0.05)
    assert more is not None
    assert more > 200
    assert draws_for_width(missed([]), 0.05) is None
    audited(0, 4, run={"needs_review": False, "review_reasons": (), "spot_check": True})
    decided(bench, 0, "reject")
    decided(bench, 1)
    found = bench.trust.missed(ADA)
    assert (found.total.value, found.total.n, found.faulty) == (0.5, 2, ("case-0",))
    assert set(found.open) == {"case-2", "case-3"}
    assert found.fields["Engineering"].n == 2


def columns(n: int, seed: int = 0) -> tuple[dict[str, Any], np.ndarray]:
    """Runs whose confidence says something about their faults, and whether they are faulty."""
    draws = np.random.default_rng(seed)
    confidence = draws.random(n)
    faulty = draws.random(n) < 0.8 * (1 - confidence) ** 2 + 0.05
    same = {name: np.full(n, 0.5) for name in ("likely", "quality", "disagreement")}
    rest = {"uncited": np.zeros(n), "invalid": np.array([None] * n), "tier": np.array([None] * n)}
    return {**same, **rest, "confidence": confidence}, faulty


def test_a_score_beats_order_and_constant_on_questions_it_has_not_seen() -> None:
    found, faulty = columns(400)
    score, held_out = fit(found, faulty, list(range(400)))
    assert score.log_loss is not None
    assert score.baseline is not None
    assert score.log_loss < score.baseline
    assert score.auroc == pytest.approx(roc_auc_score(faulty, held_out))
    assert calibration_error(faulty, held_out) < 2 * error_floor(held_out)
    read, share = yield_curve(faulty, held_out)[10]
    assert read == pytest.approx(0.2)
    assert share > 0.3
    version = score.model_copy(update={"version": 1})
    assert probabilities(version, found).mean() == pytest.approx(faulty.mean(), abs=0.02)
    assert probabilities(FaultScore(), found).tolist() == [0.5] * 400


def test_a_question_is_never_on_both_sides_of_a_split() -> None:
    found, _ = columns(200)
    questions = np.repeat(np.arange(20), 10)
    faulty = questions % 2 == 0
    found["confidence"] = questions / 20 + np.arange(200) * 1e-6  # tells the question, and with it the answer
    score, _ = fit(found, faulty, questions.tolist())
    assert score.auroc is not None
    assert score.auroc < 0.7


@pytest.mark.parametrize(("n", "faulty"), [(59, 20), (200, 14), (200, 186)])
def test_too_few_decisions_give_no_score(n: int, faulty: int) -> None:
    found, _ = columns(n)
    with pytest.raises(InputError, match="too few for a score"):
        fit(found, np.arange(n) < faulty, list(range(n)))


def test_figures_of_a_score() -> None:
    truth, same = np.array([True, False] * 50), np.full(100, 0.5)
    assert auroc(truth, same) == 0.5
    assert auroc(np.ones(3, dtype=bool), np.ones(3)) is None
    assert [each.n for each in reliability(truth, same)] == [100]
    assert calibration_error(truth, same) == 0.0
    assert yield_curve(truth, same)[25] == (0.5, 0.5)


def test_fitting_orders_the_queue_and_runs_record_the_score(bench: Workbench, audited: Audited) -> None:
    with pytest.raises(InputError, match="0 settled decisions"):
        bench.trust.fit(ADA)
    for number in range(80):
        faulty = number % 3 == 0
        audited(number, number + 1, confidence=0.2 if faulty else 0.9)
        decided(bench, number, "reject" if faulty else "approve")
    audited(80, 81, confidence=0.9)
    audited(81, 82, confidence=0.2)
    score = bench.trust.fit(ADA)
    assert (score.version, score.by, score.decisions, score.faulty, len(score.case_ids)) == (1, "Ada", 80, 27, 80)
    waiting = bench.cases.find(CaseFilter(states=("needs_review",), order="risk")).rows
    assert [row.id for row in waiting] == ["case-81", "case-80"]
    audited(82, 83, confidence=0.5)
    acceptance = bench.runs.get("run-82").acceptance
    assert acceptance.score == 1
    assert acceptance.fault_probability is not None
    for _ in ("as audited", "as reassessed"):
        waiting = bench.cases.find(CaseFilter(states=("needs_review",), order="risk")).rows
        assert [row.id for row in waiting] == ["case-81", "case-82", "case-80"]
        bench.reassessment.run(ADA, apply=True, again=True)
    before = bench.store.trust.undecided()
    assert bench.store.database.execute("SELECT risk FROM jobs WHERE seq = ?", before["seq"][:1])[0][
        0
    ] == pytest.approx(3 * probabilities(score, before)[0])
    assert set(bench.trust.yields(ADA, TrustFilter()).curves) == {"built-in order", "fitted order", "random order"}


def test_the_short_answers_say_what_is_not_known(bench: Workbench, reviewed: Workbench) -> None:
    trust = reviewed.trust
    may, far, since, following = short_answers(
        trust.compare(ADA, TrustFilter()), trust.missed(ADA), trust.watch()
    ).values()
    assert may.startswith("No: nothing shows yet that they may")
    assert "of 6 (the true share may be anything from" in far
    assert "faulty answers it accused " in far
    assert since.startswith("These figures rest on 12 answers settled by ")
    assert "149 without a fault would show with 95% certainty" in following
    nothing = trust.compare(ADA, TrustFilter(field="Law"))
    assert "Nobody knows yet" in short_answers(nothing, trust.missed(ADA), None)["How far is the audit right?"]
    assert figure(trust.compare(ADA, TrustFilter()).answers.kappa, share=False).startswith("0.50 (n = 12; no interval")


def test_simulated_decisions_are_marked_counted_apart_and_never_exported(
    bench: Workbench, audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited(0, 3, case={"labels": {"clean": True}})
    cases = [bench.store.cases.get(f"case-{number}") for number in range(3)]
    monkeypatch.setattr(demo, "demo_cases", lambda: cases)
    monkeypatch.setattr(demo, "_DECIDED", demo.re.compile(r"-[01]$"))
    assert bench.trust.add_demo(ADA) == 4
    assert bench.trust.add_demo(ADA) == 0
    assert bench.store.team.in_force(QueuePolicy).reviewers == 1
    found = bench.trust.compare(ADA, TrustFilter())
    assert (found.simulated, found.answers.n) == (2, 2)
    decisions = [entry.decision for entry in bench.reviews.iterate() if entry.decision]
    assert all("Simulated" in each.reviewer and each.extra["simulated"] for each in decisions)
    decided(bench, 2)
    exported = [each.case["id"] for each in bench.store.outcomes.iterate(CaseFilter())]
    assert exported == ["case-2"]
    assert len(list(bench.store.outcomes.queries(CaseFilter()))) == 1


def test_figures_are_read_for_100_decisions_as_the_log_has_them(reviewed: Workbench) -> None:
    found = reviewed.store.trust.decided()
    assert {len(column) for column in found.values()} == {14}
    assert found["blind"].count(0) == 1
    assert json.loads(found["reasons"][0]) == ["invalid_reference"]
    assert reviewed.store.trust.decided(after=13)["case_id"] == ["case-13"]
    assert reviewed.store.trust.decided(spot_checks=True)["case_id"] == []
