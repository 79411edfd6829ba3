"""The audit beside people, agreement between people, and what may be guaranteed from both."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from benchmarks import trust_simulation as simulation
from masis.audit.acceptance import RULE_VERSION, Acceptability, waive
from masis.audit.measures.statistics import exact_bounds
from masis.errors import InputError, NotAllowed
from masis.schema.actor import Actor
from masis.schema.labels import TargetLabel
from masis.schema.rules import MUST_LOOK, ReviewCode
from masis.schema.run import AcceptanceRecord, ReviewReason
from masis.schema.team import QueuePolicy
from masis.schema.trust import FaultScore
from masis.services import Workbench
from masis.services.access import SIGN_IN_REQUIRED
from masis.services.trust.guarantees import REVIEW_SETTINGS
from masis.services.trust.service import TrustFilter, TrustService
from masis.services.trust.summary import (
    agreement_summary,
    agreement_text,
    figure_text,
    interval_text,
    short_answers,
    simulated_text,
)
from masis.settings import Settings
from masis.store.records import CaseFilter
from masis.trust.agreement import (
    AgreementEstimate,
    Patterns,
    UnitCounts,
    cohen_kappa,
    gwet_ac1,
    krippendorff_alpha,
    measure_agreement,
    pairwise_agreement,
    reviewer_pairs,
    share,
    span_f1,
)
from masis.trust.guarantee import (
    ALARM_EVIDENCE,
    draws_needed,
    evidence_against,
    least_tolerance,
    loosest_valid,
    thresholds_for,
    try_thresholds,
    upper_bound,
)
from masis.trust.machine import Stratum, draws_for_width, miss_rate
from masis.trust.score import (
    calibration_error,
    error_floor,
    fit,
    probabilities,
    reliability,
    yield_curve,
)
from masis.ui.team.page import pair_text
from masis.views.story import checks_passed
from tests.reviewing import ADA
from tests.trust.conftest import DOUBT, decide_original, store_audited

Audited = Callable[..., None]
ALIKE = "can't be computed: all verdicts are alike"
SERIOUS = ReviewReason(code="invalid_reference", message="1 reference cites no evidence.")


@pytest.fixture
def reviewed(bench: Workbench, audited: Audited) -> Workbench:
    """Twelve answers: six accused of which four are faulty, six not of which one is; two decided
    with the verdict.
    """
    audited(0, 6, run={"review_reasons": (SERIOUS,)})
    audited(6, 14)
    for number, verdict in enumerate(
        ["reject", "reject", "override", "reject", "approve", "approve"]
    ):
        decide_original(bench, number, verdict)
    for number in range(6, 11):
        decide_original(bench, number)
    decide_original(bench, 11, "reject")
    decide_original(bench, 12, "reject", blind=False)
    decide_original(bench, 13, "escalate")
    return bench


def test_the_confusion_matrix_uses_blind_decisions(
    reviewed: Workbench,
) -> None:
    found = reviewed.trust.compare(ADA, TrustFilter())
    assert found.answers.confusion == {"must_look": (4, 2), "not_certified": (1, 5)}
    assert found.answers.precision.value == pytest.approx(4 / 6)
    assert found.answers.recall.value == pytest.approx(4 / 5)
    assert found.answers.kappa.value == pytest.approx(0.5)
    assert found.answers.constant == pytest.approx(7 / 12)
    assert found.excluded == (1, 1, 0)
    assert found.seen.n == 1
    flags = {flag.name: flag for flag in found.answers.flags}
    assert (flags["invalid_reference"].flagged, flags["invalid_reference"].precision.n) == (6, 6)
    assert reviewed.trust.compare(ADA, TrustFilter(blind_only=False)).answers.n == 13
    assert set(found.breakdowns["field"]) == {"Engineering"}
    assert reviewed.trust.compare(ADA, TrustFilter(field="Law")).answers.n == 0
    assert reviewed.trust.compare(ADA, TrustFilter(since="2999-01-01")).answers.n == 0


def test_without_checks_of_passed_answers_the_miss_rate_is_unknown(
    bench: Workbench, audited: Audited
) -> None:
    audited(0, 3, run={"review_reasons": (SERIOUS,)})
    for number in range(2):
        decide_original(bench, number, "reject")
    decide_original(bench, 2, "escalate", blind=False)
    report = bench.trust.compare(ADA, TrustFilter())
    assert (report.answers.precision.value, report.answers.recall.value) == (1.0, None)
    assert "it's unknown how many faulty ones it misses" in agreement_summary(report)
    assert report.excluded == (0, 1, 0)  # each answer is left out for one reason
    assert report.seen is not None
    assert report.seen.n == 0


def test_gold_and_imported_labels_are_compared(bench: Workbench, audited: Audited) -> None:
    statement = "It was opened in 1932 [1]."
    gold = {"clean": False, "claims": [{"text": statement, "verdict": "contradicted"}]}
    audited(0, 1, case={"labels": gold})
    audited(1, 2, case={"labels": {"claims": [{"text": statement, "support": "Complete"}]}})
    assert bench.trust.compare(ADA, TrustFilter(source="gold")).answers.confusion == {
        "not_certified": (1, 1)
    }
    # the audit's claim has no place in the answer
    assert bench.trust.compare_parts(ADA, "claim", "gold").comparison.n == 0


def test_claims_and_references_are_matched_by_position() -> None:
    from types import SimpleNamespace

    from masis.trust.machine import compare_parts, part_rows

    claims = [
        SimpleNamespace(verdict="supported", claim=SimpleNamespace(start=0, end=10)),
        SimpleNamespace(verdict="contradicted", claim=SimpleNamespace(start=11, end=20)),
    ]
    references = [
        SimpleNamespace(status="invalid", start=12, end=15),
        SimpleNamespace(status="valid", start=2, end=5),
    ]
    audit = SimpleNamespace(citations=references)
    iteration = SimpleNamespace(claims=claims, citation_audit=audit, issues=[])
    labels = {
        "claims": [
            {"text": "0123456789", "verdict": "supported"},
            {"text": "abcdefghi", "support": "Incomplete"},
        ],
        "citations": [{"text": "bcd", "sentence": "abcdefghi", "status": "invalid"}],
    }
    word = TargetLabel(target="claim", start=0, end=10, text="0123456789", label="unsupported")
    decision = SimpleNamespace(labels=(word,), machine_shown=())
    judged = SimpleNamespace(iteration=iteration, entry=SimpleNamespace(decision=decision))
    case = {"id": "a", "query": "q", "answer": "0123456789 abcdefghi", "labels": labels}
    outcome: Any = SimpleNamespace(case=case, current=judged, judgements=(judged,))
    found = part_rows([outcome])
    gold = found[found["source"] == "gold"]
    assert compare_parts(gold, "claim").confusion == {"supported": (0, 1), "contradicted": (1, 0)}
    assert compare_parts(gold, "reference").confusion == {"invalid": (1, 0)}
    assert compare_parts(found[found["source"] == "decision"], "claim").confusion == {
        "supported": (1, 0)
    }


def test_only_a_lead_sees_reviewer_names(bench: Workbench, audited: Audited) -> None:
    audited(0, 3)
    bench.store.team.put_in_force(
        "Ada", QueuePolicy(reviewers=2, rule="adjudicated", machine="never")
    )
    for number, verdict in enumerate(["approve", "approve", "reject"]):
        decide_original(bench, number, "approve", reviewer="Ada")
        decide_original(bench, number, verdict, reviewer="Bo")
    decide_original(bench, 2, "reject", kind="adjudication", reviewer="Cy")
    found = bench.trust.people(ADA)
    assert (found.agreement.units, found.agreement.raw.value) == (3, pytest.approx(2 / 3))
    (pair,) = found.pairs
    assert (pair.first, pair.second) == ("Ada", "Reviewer B")
    assert [found.cases[unit] for unit in pair.differ] == ["case-2"]
    assert bench.trust.people(ADA, names=True).pairs[0].second == "Bo"
    (own,) = bench.trust.reviewers(ADA)
    assert (own.decisions, own.agreed.value) == (3, pytest.approx(2 / 3))
    assert {reviewer.reviewer for reviewer in bench.trust.reviewers(ADA, others=True)} == {
        "Ada",
        "Bo",
        "Cy",
    }
    shared = TrustService(bench.store, bench.settings, SIGN_IN_REQUIRED)
    reviewer = Actor(name="Bo", roles=("reviewer",), authenticated=True)
    for forbidden in (shared.people, lambda person, names: shared.reviewers(person, others=names)):
        with pytest.raises(NotAllowed):
            forbidden(reviewer, names=True)


def test_constant_reviewers_are_named(bench: Workbench, audited: Audited) -> None:
    audited(0, 6)
    bench.store.team.put_in_force("Ada", QueuePolicy(reviewers=2, rule="adjudicated"))
    for number in range(6):
        decide_original(bench, number, "override", reviewer="Ada")
        decide_original(bench, number, "override" if number < 2 else "reject", reviewer="Bo")
    found = bench.trust.people(ADA)
    assert found.constant == (("Ada", "override", 6),)
    assert found.agreement.raw == found.pairs[0].raw
    assert (found.agreement.raw.low, found.agreement.alpha.low) == (
        pytest.approx(0.043, abs=1e-3),
        None,
    )


def test_equal_verdicts_with_different_corrections_arent_full_agreement(
    bench: Workbench, audited: Audited
) -> None:
    audited(0, 4)
    bench.store.team.put_in_force("Ada", QueuePolicy(reviewers=2, rule="adjudicated"))
    mine = {"verdict": "override", "corrected_answer": "Zinc."}
    theirs = (
        mine,
        {**mine, "corrected_answer": "Tin."},
        {"verdict": "reject"},
        {**mine, "corrected_answer": " Zinc. "},
    )
    for number, other in enumerate(theirs):
        decide_original(bench, number, **mine)
        decide_original(bench, number, reviewer="Bo", **other)
    found = bench.trust.people(ADA)
    (pair,) = found.pairs
    assert (pair.same, [found.cases[unit] for unit in pair.apart]) == (3, ["case-1"])
    assert (
        pair_text(pair, "case")
        == "Ada and Bo gave the same verdict in 3 of 4 cases (75%), the same verdict and correction"
        " in 2."
    )


def test_instant_decisions_and_escalations_are_excluded(bench: Workbench, audited: Audited) -> None:
    audited(0, 3)
    bench.store.team.put_in_force("Ada", QueuePolicy(reviewers=2, rule="adjudicated"))
    for number, (mine, seconds) in enumerate(
        (("approve", 0.2), ("approve", 20.0), ("approve", 0.0))
    ):
        decide_original(bench, number, mine, extra={"seconds": seconds})
        decide_original(bench, number, "reject", reviewer="Bo", extra={"seconds": 0.1})
    for number, verdict in enumerate(("reject", "approve", "escalate")):
        decide_original(
            bench, number, verdict, kind="adjudication", reviewer="Cy", extra={"seconds": 40.0}
        )
    ada, bo, cy = bench.trust.reviewers(ADA, others=True)
    assert (cy.seconds, cy.adjudication_seconds) == (None, 40.0)
    assert (ada.seconds, bo.seconds) == (20.0, None)
    assert (ada.agreed.value, ada.agreed.n, ada.differing) == (0.5, 2, ("case-0",))
    assert (cy.reviewer, cy.decisions, cy.adjudications, cy.escalations) == ("Cy", 0, 3, 1)
    assert bench.trust.team_stats(ADA).adjudications == 3
    assert bench.trust.decisions_by(ADA, "adjudication") == {"Cy": 3}


def test_blind_reviewers_see_only_settled_cases(bench: Workbench, audited: Audited) -> None:
    audited(0, 2)
    bench.store.team.put_in_force(
        "Ada", QueuePolicy(reviewers=2, rule="adjudicated", machine="never")
    )
    for reviewer, verdict in (("Bo", "approve"), ("Cy", "reject")):
        decide_original(bench, 0, verdict, reviewer=reviewer)  # differ: not settled
    for reviewer in ("Bo", "Cy"):
        decide_original(bench, 1, "approve", reviewer=reviewer)
    assert bench.trust.people(ADA).cases == ("case-1",)
    assert bench.trust.decisions_by(ADA) == {"Bo": 1, "Cy": 1}
    assert bench.trust.counts_in_words(ADA) == "Counts settled cases and all of your own decisions."


def test_current_and_own_decisions_are_counted(bench: Workbench, audited: Audited) -> None:
    audited(0, 3)
    assert bench.trust.counts_in_words(ADA) == ""
    policy = QueuePolicy(reviewers=2, rule="adjudicated")
    bench.store.team.put_in_force("Ada", policy)
    for reviewer, verdict in (("Bo", "approve"), ("Cy", "override")):
        # differ: all count, once all are in
        decide_original(bench, 0, verdict, reviewer=reviewer, corrected_answer="Better.")
    # another decision is missing
    decide_original(bench, 1, "override", reviewer="Cy", corrected_answer="Better.")
    for actor, counts in ((ADA, {"Bo": 1, "Cy": 1}), (Actor(name="Cy"), {"Bo": 1, "Cy": 2})):
        assert bench.trust.decisions_by(actor) == counts
        assert bench.trust.team_stats(actor).decisions == sum(counts.values())
        assert (
            bench.trust.counts_in_words(actor)
            == "Decisions on a shared case are counted once all are made."
        )
    (own,) = bench.trust.reviewers(Actor(name="Cy"))
    assert (own.decisions, own.overrides.value) == (2, 1.0)
    bench.store.team.put_in_force("Ada", policy.model_copy(update={"machine": "never"}))
    assert bench.trust.decisions_by(ADA) == {}
    assert bench.trust.decisions_by(Actor(name="Cy")) == {"Cy": 2}
    bench.store.team.put_in_force("Ada", QueuePolicy())
    # case-1 was begun under the policy before, so its decision still waits for another one
    assert (
        bench.trust.counts_in_words(ADA)
        == "Decisions on a shared case are counted once all are made."
    )


def test_reviewers_are_named_without_a_blind_policy(bench: Workbench, audited: Audited) -> None:
    audited(0, 1)
    bench.store.team.put_in_force("Ada", QueuePolicy(reviewers=2))
    for reviewer in ("Bo", "Cy"):
        decide_original(bench, 0, "approve", reviewer=reviewer)
    (pair,) = bench.trust.people(ADA).pairs
    assert (pair.first, pair.second) == ("Bo", "Cy")


def test_the_miss_rate_is_stratified_and_reports_missing_draws(
    bench: Workbench, audited: Audited
) -> None:
    both = miss_rate([Stratum("5%", 900, 20, 0), Stratum("50%", 100, 50, 10)])
    assert both.value == pytest.approx(0.1 * 0.2)
    assert 0 < both.low < 0.02 < both.high < 0.15
    assert miss_rate([Stratum("5%", 900, 0, 0), Stratum("50%", 100, 50, 10)]).why.startswith(
        "leaves out 90%"
    )
    assert miss_rate([]).value is None
    one = miss_rate([Stratum("5%", 1000, 20, 1)])
    more = draws_for_width(one, 0.05)
    assert more > 200
    assert draws_for_width(miss_rate([]), 0.05) is None
    audited(0, 4, run={"needs_review": False, "review_reasons": (), "spot_check": True})
    decide_original(bench, 0, "reject")
    decide_original(bench, 1)
    found = bench.trust.miss_report(ADA)
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


def test_a_fitted_score_beats_baselines_on_held_out_questions() -> None:
    found, faulty = columns(400)
    score, held_out = fit(found, faulty, list(range(400)))
    assert score.log_loss < score.baseline
    assert score.auroc == pytest.approx(roc_auc_score(faulty, held_out))
    assert calibration_error(faulty, held_out) < 2 * error_floor(held_out)
    read, share = yield_curve(faulty, held_out)[10]
    assert read == pytest.approx(0.2)
    assert share > 0.3
    version = score.model_copy(update={"version": 1})
    assert probabilities(version, found).mean() == pytest.approx(faulty.mean(), abs=0.02)
    assert probabilities(FaultScore(), found).tolist() == [0.5] * 400


def test_a_question_is_never_in_both_splits() -> None:
    found, _ = columns(200)
    questions = np.repeat(np.arange(20), 10)
    faulty = questions % 2 == 0
    # tells the question, and with it the answer
    found["confidence"] = questions / 20 + np.arange(200) * 1e-6
    score, _ = fit(found, faulty, questions.tolist())
    assert score.auroc < 0.7


@pytest.mark.parametrize(("n", "faulty"), [(59, 20), (200, 14), (200, 186)])
def test_too_few_decisions_yield_no_score(n: int, faulty: int) -> None:
    found, _ = columns(n)
    with pytest.raises(InputError, match="too few for a score"):
        fit(found, np.arange(n) < faulty, list(range(n)))


def test_a_score_has_its_figures() -> None:
    truth, same = np.array([True, False] * 50), np.full(100, 0.5)
    assert [part.n for part in reliability(truth, same)] == [100]
    assert calibration_error(truth, same) == 0.0
    assert yield_curve(truth, same)[25] == (0.5, 0.5)


def test_a_fitted_score_orders_the_queue(bench: Workbench, audited: Audited) -> None:
    with pytest.raises(InputError, match="0 settled decisions"):
        bench.trust.fit(ADA)
    for number in range(80):
        faulty = number % 3 == 0
        audited(number, number + 1, confidence=0.2 if faulty else 0.9)
        decide_original(bench, number, "reject" if faulty else "approve")
        if number in (0, 18, 19):  # one faulty answer, one too few, enough of both kinds
            assert bool(bench.trust.yield_report(ADA).curves) == (number == 19)
    audited(80, 81, confidence=0.9)
    audited(81, 82, confidence=0.2)
    score = bench.trust.fit(ADA)
    assert (score.version, score.by, score.decisions, score.faulty, len(score.case_ids)) == (
        1,
        "Ada",
        80,
        27,
        80,
    )
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
    before = bench.store.trust.undecided_runs()
    assert bench.store.database.execute("SELECT risk FROM jobs WHERE seq = ?", before["seq"][:1])[
        0
    ][0] == pytest.approx(3 * probabilities(score, before)[0])
    assert set(bench.trust.yield_report(ADA, TrustFilter()).curves) == {
        "built-in order",
        "fitted order",
        "random order",
    }


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (AgreementEstimate(0.7, 0.62, 0.78, 90), "substantial agreement beyond chance"),
        (
            AgreementEstimate(0.5, 0.3, 0.7, 90),
            "moderate agreement beyond chance; it may be fair to substantial",
        ),
        (
            AgreementEstimate(-0.1, n=9),
            "9 cases, too few to tell how strong the agreement beyond chance is",
        ),
        (
            AgreementEstimate(None, n=9, why=ALIKE),
            "agreement beyond chance can't be computed: all verdicts are alike",
        ),
        (
            AgreementEstimate(1.0, n=1),
            "1 case, too few to tell how strong the agreement beyond chance is",
        ),
    ],
)
def test_agreement_is_described_with_its_uncertainty(found: AgreementEstimate, says: str) -> None:
    assert agreement_text(found) == says


def test_a_share_over_too_few_cases_says_so() -> None:
    assert (
        interval_text(AgreementEstimate(0.5, 0.4, 0.6, 90))
        == interval_text(AgreementEstimate(None))
        == ""
    )
    assert (
        interval_text(AgreementEstimate(0.5, 0.01, 0.99, 2))
        == "2 are too few to tell. The true share may be anything from 1.0% to 99%."
    )


@pytest.mark.parametrize(
    ("simulated", "says"),
    [
        (0, ""),
        (40, "40 answers whose decisions the demo simulated"),
        (32, "32 of the 40 answers behind these figures; people decided 8."),
    ],
)
def test_simulated_and_real_people_are_told_apart(simulated: int, says: str) -> None:
    assert says in simulated_text(simulated, 40)
    assert bool(says) == bool(simulated_text(simulated, 40))


def test_the_summary_says_what_is_unknown(bench: Workbench, reviewed: Workbench) -> None:
    trust = reviewed.trust
    may, far, since, following = short_answers(
        trust.compare(ADA, TrustFilter()), trust.miss_report(ADA), trust.watch()
    ).values()
    assert may.startswith("No, there is no evidence for that yet.")
    assert "of 6 (the true share may be anything from" in far
    assert "faulty answers it flagged " in far
    assert since.startswith("These figures are based on 12 answers settled by people ")
    assert "Draw 149 at random for blind decisions" in following
    report = trust.compare(ADA, TrustFilter())
    few, enough = (trust.miss_report(ADA)._replace(drawable=count) for count in (18, 149))
    assert (
        "18 undecided answers can be drawn, 131 more are needed"
        in short_answers(report, few, None)["What should you do next?"]
    )
    assert (
        "Audit more answers" not in short_answers(report, enough, None)["What should you do next?"]
    )
    assert "(Team, Policy)" not in following
    nothing = trust.compare(ADA, TrustFilter(field="Law"))
    assert (
        "(Team, Policy). Only blind decisions count"
        in short_answers(nothing, enough, None)["What should you do next?"]
    )
    assert (
        "Unknown so far."
        in short_answers(nothing, trust.miss_report(ADA), None)["How often is the audit right?"]
    )
    assert figure_text(trust.compare(ADA, TrustFilter()).answers.kappa, share=False).startswith(
        "0.50 (n = 12; no interval"
    )


def test_figures_match_a_log_of_100_decisions(reviewed: Workbench) -> None:
    found = reviewed.store.trust.decision_columns()
    assert {len(column) for column in found.values()} == {14}
    assert found["blind"].count(0) == 1
    assert json.loads(found["reasons"][0]) == ["invalid_reference"]
    assert reviewed.store.trust.decision_columns(after=13)["case_id"] == ["case-13"]
    assert reviewed.store.trust.decision_columns(spot_checks=True)["case_id"] == []


# Agreement figures equal published worked examples and reference implementations, degenerate ones
# included

# Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), example C; Gwet (Handbook of
# Inter-Rater Reliability, 4th ed., table 2.10) takes the same ratings of 12 units by 4 raters for
# AC1. 0: not rated.
FOUR_RATERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
        [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
    ]
).T


def table_of(first: np.ndarray, second: np.ndarray, k: int) -> np.ndarray:
    return np.bincount(first * k + second, minlength=k * k).astype(float).reshape(k, k)


def count_patterns(ratings: np.ndarray, categories: int) -> tuple[Patterns, np.ndarray]:
    patterns = Patterns.of(ratings, categories)
    return patterns, np.bincount(patterns.member, minlength=len(patterns.counts)).astype(float)


def test_several_raters_match_published_examples() -> None:
    patterns, weights = count_patterns(FOUR_RATERS - 1, 5)
    assert krippendorff_alpha(patterns, weights) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(patterns, weights, ordered=True) == pytest.approx(0.815, abs=5e-4)
    assert gwet_ac1(patterns, weights) == pytest.approx(0.77544, abs=5e-6)
    assert pairwise_agreement(patterns, weights) == pytest.approx(0.81818, abs=5e-6)


@pytest.mark.parametrize(
    ("table", "weights", "kappa"),
    [
        # the worked example of most textbooks: 0.70 observed, 0.50 by chance
        ([[20, 5], [10, 15]], "", 0.4),
        # Gwet (2002): high agreement on a rare trait, and kappa below zero
        ([[118, 5], [2, 0]], "", -0.0234),
        # two of the same agreement, 0.60, and other marginals (Feinstein &
        ([[45, 15], [25, 15]], "", 0.1304),
        ([[25, 35], [5, 35]], "", 0.2593),  # Cicchetti's first paradox)
    ],
)
def test_two_raters_match_published_examples(
    table: list[list[int]], weights: str, kappa: float
) -> None:
    assert cohen_kappa(np.array(table, dtype=float), weights) == pytest.approx(kappa, abs=5e-5)


def test_ac1_matches_gwets_example() -> None:
    ratings = np.array([[0, 0]] * 118 + [[0, 1]] * 5 + [[1, 0]] * 2)
    assert gwet_ac1(*count_patterns(ratings, 2)) == pytest.approx(0.9408, abs=5e-5)


@pytest.mark.parametrize("seed", range(5))
def test_coefficients_match_reference_libraries(seed: int) -> None:
    draws = np.random.default_rng(seed)
    ratings = draws.integers(0, 4, (60, 3))
    ratings[:, 1] = np.where(draws.random(60) < 0.7, ratings[:, 0], ratings[:, 1])
    for weights in ("", "linear", "quadratic"):
        table = table_of(ratings[:, 0], ratings[:, 1], 4)
        expected = cohen_kappa_score(
            ratings[:, 0], ratings[:, 1], weights=weights or None, labels=range(4)
        )
        assert cohen_kappa(table, weights) == pytest.approx(expected)
    ratings[draws.random((60, 3)) < 0.2] = -1
    patterns, weighted = count_patterns(ratings, 4)
    data = np.where(ratings < 0, np.nan, ratings).T
    for level, ordered in (("nominal", False), ("ordinal", True)):
        expected = krippendorff.alpha(data, level_of_measurement=level)
        assert krippendorff_alpha(patterns, weighted, ordered) == pytest.approx(expected)


def test_undefined_and_perfect_agreement_are_distinct() -> None:
    same = measure_agreement(np.zeros((80, 2), dtype=int), np.arange(80), ("approve", "reject"))
    assert same.raw.value == 1.0
    assert same.alpha.value is None
    assert same.alpha.why == ALIKE
    assert same.ac1.value == 1.0
    (pair,) = reviewer_pairs(np.zeros((80, 2), dtype=int), ("ann", "bo"), np.arange(80), 2)
    assert pair.kappa.value is None
    none = measure_agreement(np.full((3, 2), -1), np.arange(3), ("approve", "reject"))
    assert (none.units, none.raw.value) == (0, None)
    assert measure_agreement(
        np.array([[0, 1], [1, 0]]), np.arange(2), ("a", "b")
    ).alpha.value == pytest.approx(-0.5)


def test_misleading_intervals_are_omitted() -> None:
    ratings = np.array([[0, 0], [1, 1], [0, 1]] * 10)
    few = measure_agreement(ratings, np.arange(30), ("approve", "reject"))
    assert few.alpha.value is not None
    assert few.alpha.low is None
    many = measure_agreement(np.tile(ratings, (4, 1)), np.arange(120), ("approve", "reject"))
    assert many.alpha.low < many.alpha.value < many.alpha.high
    assert (
        "questions"
        in measure_agreement(
            np.tile(ratings, (4, 1)), np.repeat(np.arange(30), 4), ("a", "b")
        ).alpha.why
    )


def test_intervals_are_clustered_by_question() -> None:
    hit = np.repeat([True, False, True, True, False, True] * 10, 5)
    alone, together = share(hit), share(hit, np.repeat(np.arange(60), 5))
    assert alone.value == together.value
    assert together.high - together.low > 1.8 * (alone.high - alone.low)
    ratings = np.column_stack([hit, ~hit]).astype(int)
    counted = [
        UnitCounts.of(ratings, ratings[:, 0], units, 2)
        for units in (np.arange(300), np.repeat(np.arange(60), 5))
    ]
    mean = [counts.estimate(lambda table: table[..., 1] / table.sum(-1)) for counts in counted]
    assert mean[1].high - mean[1].low > 1.8 * (mean[0].high - mean[0].low)


def test_exact_intervals_are_clopper_pearson() -> None:
    assert exact_bounds(0, 149, 0.1) == pytest.approx((0.0, 0.0199), abs=1e-4)
    # Clopper & Pearson (1934), 10% of 50
    assert exact_bounds(5, 50) == pytest.approx((0.0333, 0.2181), abs=1e-4)


def test_pairs_list_their_disagreements() -> None:
    ratings = np.array([[0, 0, -1], [0, 1, 1], [1, 1, -1], [0, -1, 0], [3, 0, -1]])
    first, *others = reviewer_pairs(ratings, ("ann", "bo", "cy"), np.arange(5), 3)
    assert (first.first, first.second, first.differ, first.raw.n) == ("ann", "bo", (1, 4), 4)
    assert first.verdicts == {(0, 0): 1, (0, 1): 1, (1, 1): 1, (3, 0): 1}
    assert (first.kappa.n, first.weighted.n, first.weighted.value) == (4, 3, pytest.approx(0.4))
    assert {(pair.first, pair.second) for pair in others} == {("ann", "cy"), ("bo", "cy")}


def test_spans_are_compared_by_character() -> None:
    assert span_f1({"a": [[(0, 10)], [(5, 15)]]}).value == pytest.approx(0.5)
    assert span_f1({"a": [[(0, 10)], [(0, 10)]], "b": [[(0, 5)], []]}).value == pytest.approx(
        20 / 25
    )
    assert span_f1({"a": [[], []]}).value is None


# A threshold is guaranteed on blind random draws alone, applied by a lead in the log, watched, and
# lapses


def test_2_percent_at_95_needs_149_faultless_draws() -> None:
    assert [draws_needed(0.02, 0.05, faulty) for faulty in (0, 1, 2)] == [149, 236, 313]
    assert upper_bound(0, 149, 0.05) <= 0.02 < upper_bound(0, 148, 0.05)
    assert (least_tolerance(18, 0.05), least_tolerance(0, 0.05)) == (0.16, 1.0)
    # who follows it may draw
    assert draws_needed(least_tolerance(18, 0.05), 0.05) <= 18 < draws_needed(0.15, 0.05)


def test_thresholds_are_tested_strictest_first_until_one_fails() -> None:
    probability = np.repeat([0.1, 0.2, 0.3], 60)
    faulty = np.zeros(180, dtype=bool)
    faulty[60:66] = True
    found = try_thresholds((0.1, 0.2, 0.3), probability, faulty, 0.06, 0.05)
    assert [(attempt.n, attempt.faulty, attempt.holds) for attempt in found] == [
        (60, 0, True),
        (120, 6, False),
        (180, 6, False),
    ]
    assert loosest_valid(found).threshold == 0.1


def test_thresholds_depend_only_on_the_pool() -> None:
    pool = np.linspace(0, 0.5, 1000)
    cuts = thresholds_for(pool, 400, 0.02, 0.05)
    assert list(cuts) == sorted(cuts)
    assert cuts[-1] == 0.5
    assert (pool <= cuts[0]).mean() * 400 >= 149


@pytest.mark.timeout(3600)
@pytest.mark.soak(smoke=60, full=2000)
def test_guarantees_fail_no_more_often_than_stated(rounds: int) -> None:
    bound = simulation.monte_carlo_bound(0.05, rounds)
    kinds = simulation.KINDS if rounds > 100 else simulation.KINDS[::4]
    for kind in kinds:
        # one plan; and a lead who looks after every decision and draws again until one succeeds
        for plans in (1, 4):
            found = simulation.guarantees(kind, rounds, plans=plans)
            assert found.wrong / rounds <= bound, (kind, plans, found)
    useful = simulation.guarantees(simulation.Kind(0.02, 3.0, 300), rounds)
    assert useful.given > 0.8 * rounds
    assert useful.accepted > 0.7


@pytest.mark.timeout(3600)
@pytest.mark.soak(full=2000)
def test_shown_intervals_have_their_coverage(rounds: int) -> None:
    for units in (50, 100, 400):
        for prevalence in (0.05, 0.3, 0.5):
            for found in simulation.coverage(units, prevalence, rounds):
                assert found.shown < rounds / 4 or found.covered > 0.92, found


def test_monitoring_detects_a_bad_guarantee_with_few_false_alarms() -> None:
    draws = np.random.default_rng(1)

    def alarms(rate: float) -> float:
        wrong = draws.random((200, 400)) < rate
        return float(np.mean([_ever(row) for row in np.cumsum(wrong, axis=1)]))

    def _ever(faults: np.ndarray) -> bool:
        return any(
            evidence_against(int(faults[n - 1]), n, 0.05) >= ALARM_EVIDENCE
            for n in range(20, 401, 20)
        )

    assert alarms(0.05) <= 0.05 + 0.04
    assert alarms(0.15) > 0.9


def test_a_guarantee_waives_only_uncertainty_reasons() -> None:
    assessed = Acceptability(AcceptanceRecord(rule=RULE_VERSION, checks=()), (DOUBT,))
    assert waive(assessed, guarantee=3).acceptance.waived == ("low_confidence",)
    incomplete = (
        "model_not_examined",
        "critic_not_run",
        "not_all_checked",
        "error",
        "limit",
        "cancelled",
    )
    for code in (*MUST_LOOK, "revised", "conflicting_evidence", "screening_draft", *incomplete):
        with pytest.raises(ValueError, match="no guarantee waives"):
            waive(assessed._replace(reasons=(ReviewReason(code=code, message="m"),)), guarantee=3)


def draw_sample(bench: Workbench, draws: int = 22, **keys: object) -> tuple[int, ...]:
    """Draw a sample at 10% and 90%, which takes 22 draws; returns the numbers of the cases."""
    (auditor, _, _), *_ = bench.trust.auditors()
    plan = bench.trust.draw(ADA, auditor, draws=draws, tolerance=0.1, certainty=0.9, seed=1, **keys)
    return tuple(int(case.removeprefix("case-")) for case in plan.case_ids)


def test_a_drawn_and_decided_sample_makes_answers_pass(bench: Workbench, audited: Audited) -> None:
    audited(0, 40)
    numbers = draw_sample(bench)
    state = bench.trust.plan()
    assert (len(state.open), state.plan.pool, state.tested) == (22, 40, None)
    for number in numbers[:-1]:
        decide_original(bench, number)
    with pytest.raises(InputError, match="1 of 22 drawn answers aren't decided yet"):
        bench.trust.apply(ADA)
    decide_original(bench, numbers[-1])
    applied = bench.trust.apply(ADA)
    assert (applied.decisions, applied.faulty, applied.saved, applied.rule) == (
        22,
        0,
        40,
        RULE_VERSION,
    )
    assert applied.upper <= 0.1
    audited(40, 41)
    summary = bench.cases.summary("case-40")
    assert (summary.state, summary.reasons, summary.tier) == ("accepted", (), None)
    run = bench.runs.get("run-40")
    assert (run.acceptance.guarantee, run.acceptance.waived) == (1, ("low_confidence",))
    assert checks_passed(run) == ["Not passed, waived by guarantee 1: low confidence"]
    bench.reassessment.run(ADA, apply=True, again=True)
    left = [case for case in range(40) if case not in numbers]
    assert {bench.cases.summary(f"case-{case}").state for case in left} <= {
        "accepted",
        "needs_review",
    }
    log = [entry.decision for entry in bench.store.decisions.iterate() if entry.decision]
    assert [entry.reviewer for entry in log if entry.kind == "guarantee"] == [ADA.name]
    accepted = [entry for entry in log if entry.kind == "policy_accept"]
    assert accepted[0].extra["guarantee"] == 1
    assert not bench.store.decisions.check_subjects().broken
    bench.trust.end(ADA, "the auditor's prompts will change")
    audited(41, 42)
    assert bench.cases.summary("case-41").state == "needs_review"


def test_answers_accepted_by_guarantee_are_spot_checked(bench: Workbench, audited: Audited) -> None:
    audited(0, 22)
    for number in draw_sample(bench):
        decide_original(bench, number)
    bench.trust.apply(ADA)
    store_audited(bench, Settings(spot_check_share=0.5), 22, 62)
    runs = [bench.runs.get(f"run-{number}") for number in range(22, 62)]
    assert all(run.acceptance.guarantee == 1 and not run.needs_review for run in runs)
    checked = [run.case_id for run in runs if run.spot_check]
    assert 10 < len(checked) < 30
    assert checked == [
        run.case_id for run in runs if bench.cases.summary(run.case_id).state == "needs_review"
    ]
    for case in checked:
        decide_original(bench, int(case.removeprefix("case-")), "reject")
    watched = bench.trust.watch()
    assert (watched.checked, watched.faulty) == (len(checked), len(checked))
    assert "no longer holds" in watched.lapsed


def test_some_reasons_are_never_covered_by_a_guarantee(bench: Workbench, audited: Audited) -> None:
    audited(0, 24)
    for number in draw_sample(bench):
        decide_original(bench, number)
    bench.trust.apply(ADA)
    audited(24, 25, run={"models": {"critic": "openai:other"}})
    audited(25, 26, case={"screening": {"id": "s", "outcome": "sufficient"}})
    never: tuple[ReviewCode, ...] = (
        "invalid_reference",
        "not_all_checked",
        "critic_not_run",
        "screening_draft",
        "model_not_examined",
    )
    for number, code in enumerate(never, 26):
        audited(
            number,
            number + 1,
            run={"review_reasons": (DOUBT, ReviewReason(code=code, message="m"))},
        )
    assert {bench.cases.summary(f"case-{number}").state for number in range(24, 31)} == {
        "needs_review"
    }
    assert bench.trust.offer(bench.trust.auditors()[0][0]).pool == 2, "the two that were not drawn"


@pytest.mark.parametrize(
    ("verdict", "keys", "counted"),
    [
        ("reject", {}, "faulty"),
        ("override", {}, "faulty"),
        ("override", {"extra": {"reason_code": "unclear"}}, "right"),
        ("override", {"reason": "Worded anew", "extra": {"reason_code": "uncited"}}, "right"),
        (
            "override",
            {"reason": "Unclear or badly argued", "extra": {"reason_code": "other"}},
            "faulty",
        ),
        ("escalate", {}, "escalated"),
        ("approve", {"blind": False}, "not_blind"),
        ("approve", {"extra": {"simulated": True}}, "not_blind"),
    ],
)
def test_rejections_and_overrides_count_as_faults(
    bench: Workbench, audited: Audited, verdict: str, keys: dict[str, object], counted: str
) -> None:
    audited(0, 22)
    first, *others = draw_sample(bench)
    for number in others:
        decide_original(bench, number)
    decide_original(bench, first, verdict, **keys)
    assert bench.trust.plan().outcomes[f"case-{first}"] == counted
    if counted == "right":
        assert bench.trust.propose_guarantee().faulty == 0
    else:
        with pytest.raises(InputError, match="too many for a guarantee"):
            bench.trust.propose_guarantee()


def test_a_guarantee_needs_enough_answers_and_cant_be_retried(
    bench: Workbench, audited: Audited
) -> None:
    audited(0, 50)
    with pytest.raises(InputError, match="21 draws"):
        draw_sample(bench, 21)
    draw_sample(bench)
    with pytest.raises(InputError, match="have used up the 10%"):
        draw_sample(bench)
    (auditor, _, _), *_ = bench.trust.auditors()
    second = bench.trust.draw(ADA, auditor, draws=22, tolerance=0.1, certainty=0.8, seed=2)
    assert second.certainty == pytest.approx(0.8)
    assert (second.pool, second.spent) == (28, pytest.approx(0.1))


def test_a_guarantee_lapses_on_changes_and_contrary_evidence(
    bench: Workbench, audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited(0, 22)
    for number in draw_sample(bench):
        decide_original(bench, number)
    bench.trust.apply(ADA)
    changed = TrustService(bench.store, Settings(review_threshold=0.9))
    watched = changed.watch()
    assert "settings" in watched.lapsed
    monkeypatch.setattr("masis.services.trust.guarantees.RULE_VERSION", "99")
    watched = bench.trust.watch()
    assert "rule" in watched.lapsed
    monkeypatch.undo()
    audited(22, 32, run={"spot_check": True})
    for number in range(22, 32):
        decide_original(bench, number, "reject")
    watched = bench.trust.watch()
    assert (watched.checked, watched.faulty) == (10, 10)
    assert "no longer holds" in watched.lapsed
    audited(32, 33)
    assert bench.cases.summary("case-32").state == "needs_review"


def test_samples_are_decided_blind_and_only_leads_draw(bench: Workbench, audited: Audited) -> None:
    audited(0, 23)
    numbers = draw_sample(bench)
    view = bench.cases.open_for(ADA, f"case-{numbers[0]}")
    assert view.machine_hidden
    assert view.run is None
    (other,) = set(range(23)) - set(numbers)
    assert not bench.cases.open_for(ADA, f"case-{other}").machine_hidden
    decide_original(bench, numbers[0])
    assert not bench.cases.open_for(ADA, f"case-{numbers[0]}").machine_hidden
    shared = TrustService(bench.store, bench.settings, SIGN_IN_REQUIRED)
    reviewer = Actor(name="Bo", roles=("reviewer",), authenticated=True)
    for forbidden in (shared.apply, shared.fit, lambda person: shared.draw(person, "x", draws=22)):
        with pytest.raises(NotAllowed):
            forbidden(reviewer)


@pytest.mark.parametrize(
    ("tested_with", "audited_with", "state"),
    [
        ({}, {}, "accepted"),
        ({}, {"review_threshold": 0.9}, "needs_review"),
        ({}, {"review_revised": False}, "needs_review"),
        ({"review_threshold": 0.8}, {"review_threshold": 0.8}, "accepted"),
        ({"review_quality": 0.8}, {}, "needs_review"),
        ({"max_judge_spread": 0.1}, {"max_judge_spread": 0.1}, "accepted"),
    ],
)
def test_a_guarantee_uses_the_runs_settings_in_any_process(
    tmp_path: Path, tested_with: dict[str, object], audited_with: dict[str, object], state: str
) -> None:
    def settings(changed: dict[str, object]) -> Settings:
        return Settings(spot_check_share=0, **changed)

    lead = Workbench.open(tmp_path / "trust.db", settings(tested_with))
    # as a worker process opens it: the job has the settings
    worker = Workbench.open(tmp_path / "trust.db")
    try:
        store_audited(lead, lead.settings, 0, 22)
        for number in draw_sample(lead):
            decide_original(lead, number)
        lead.trust.apply(ADA)
        store_audited(worker, settings(audited_with), 22, 23)
        assert worker.cases.summary("case-22").state == state
    finally:
        lead.close()
        worker.close()


def test_a_run_records_every_setting_a_guarantee_depends_on() -> None:
    assert set(REVIEW_SETTINGS) <= set(Settings().of_audit())
