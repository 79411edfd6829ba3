"""The guarantee in force: which reasons it waives, and whether later decisions still support it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from masis.audit.acceptance import (
    RULE_VERSION,
    Acceptability,
    drawn_for_spot_check,
    is_coverable,
    waive,
)
from masis.schema.case import Case
from masis.schema.run import Run
from masis.schema.trust import FaultScore, Guarantee
from masis.settings import Settings
from masis.store import Store
from masis.store.audits.runs import figures
from masis.trust import guarantee, machine
from masis.trust.score import probabilities

REVIEW_SETTINGS = (
    "review_threshold",
    "review_quality",
    "review_disagreement",
    "review_uncited_answers",
    "review_revised",
    "max_judge_spread",
)
"""Settings of the acceptance rule. A guarantee holds only for the values it was tested with."""


def review_settings(settings: Settings | Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the acceptance rule that a guarantee is bound to, JSON-ready.

    Args:
        settings: The settings, or the ones stored with a run (``Run.settings``). A setting that
            the run doesn't have is None, and no guarantee was tested with None.

    """
    values = settings if isinstance(settings, Mapping) else settings.of_audit()
    return {name: values.get(name) for name in REVIEW_SETTINGS}


class GuaranteeWatch(NamedTuple):
    """A guarantee in force and the spot checks since it was applied.

    ``lapsed`` says why it no longer applies, or is "". ``cases`` are the faulty spot checks.
    """

    guarantee: Guarantee
    at: str
    by: str
    checked: int
    faulty: int
    evidence: float
    lapsed: str
    cases: tuple[str, ...]


class Guarantees:
    """Applies the guarantee that a lead has put in force; it depends only on scores and decisions.

    It holds no settings, because the process that stores a run may not have the run's: a worker
    process audits each job with the settings that come with the job. Each method gets the review
    settings as an argument.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def score(self) -> FaultScore:
        """Return the fitted score in use; version 0 stands for the built-in estimate."""
        return self._store.team.in_force(FaultScore)

    def lapse_reason(
        self, rule: str, review: dict[str, Any], score: int, *, now: dict[str, Any]
    ) -> str:
        """Return why a test no longer holds under the review settings ``now``; "" if it does.

        The auditor is checked separately for each run, because a guarantee never covers another
        auditor's runs.

        Args:
            rule: The version of the acceptance rule that was tested.
            review: The review settings that were tested.
            score: The version of the fitted score that was tested.
            now: The review settings to apply it under.

        """
        if rule != RULE_VERSION:
            return f"it was tested with acceptance rule {rule}; rule {RULE_VERSION} is in force"
        if review != now:
            return "settings of the acceptance rule have changed"
        if score != self.score().version:
            return "another score has been fitted since"
        return ""

    def watch(self, now: dict[str, Any]) -> GuaranteeWatch | None:
        """Return the guarantee in force and its spot checks under the review settings ``now``, or
        None if none is applied.

        Every decided spot check on an answer that the guarantee accepts counts, blind or not. An
        escalated one counts as faulty.
        """
        entry = self._store.trust.guarantee()
        if entry is None:
            return None
        seq, at, by, applied = entry
        decided = machine.frame_of(self._store.trust.decision_columns(after=seq, spot_checks=True))
        covered = (decided["auditor"] == applied.auditor) & (decided["rule"] == applied.rule)
        since = decided[covered & decided["settles"].astype(bool)]
        settled = zip(since["state"], since["reason_code"], strict=True)
        # None means escalated, which counts as faulty.
        truth = [machine.truth_of(state, code) is not False for state, code in settled]
        evidence = guarantee.evidence_against(sum(truth), len(truth), applied.tolerance)
        lapsed = self.lapse_reason(applied.rule, applied.review, applied.score.version, now=now)
        if evidence >= guarantee.ALARM_EVIDENCE:
            lapsed = (
                f"it no longer holds: {sum(truth)} of {len(truth)} spot checks since are faulty"
            )
        faulty = tuple(case for case, wrong in zip(since["case_id"], truth, strict=True) if wrong)
        return GuaranteeWatch(applied, at, by, len(truth), sum(truth), evidence, lapsed, faulty)

    def score_run(self, run: Run, case: Case) -> Run:
        """Return a finished run with its probability of fault, accepted if the guarantee in force
        covers it.

        The guarantee must have been tested with the run's own review settings. Covered runs are
        drawn for spot checks at the usual share, because only spot checks show when the guarantee
        no longer holds.
        """
        assessed = Acceptability(run.acceptance, run.review_reasons)
        acceptance, reasons = self.reassess(assessed, run, case, review_settings(run.settings))
        update = {"acceptance": acceptance, "review_reasons": reasons}
        if acceptance.guarantee is not None:
            recorded = {
                name: run.settings[name] for name in ("spot_check_seed", "spot_check_share")
            }
            update["spot_check"] = run.spot_check or drawn_for_spot_check(
                case.id, Settings(**recorded)
            )
        return run.model_copy(update=update | {"needs_review": run.needs_review and bool(reasons)})

    def reassess(
        self, assessed: Acceptability, run: Run, case: Case, review: dict[str, Any]
    ) -> Acceptability:
        """Return an assessment with the fitted probability, and without its reasons if the
        guarantee waives them.

        ``review`` are the review settings that the assessment was made with.
        """
        run, score = run.model_copy(update={"review_reasons": assessed.reasons}), self.score()
        if score.version and run.iterations:
            noted = {"score": score.version, "fault_probability": self._probability(run, score)}
            assessed = assessed._replace(acceptance=assessed.acceptance.model_copy(update=noted))
        if not assessed.reasons or not is_coverable(run) or case.evidence_outcome is not None:
            return assessed
        watched = self.watch(review)
        if watched is None or watched.lapsed:
            return assessed
        applied = watched.guarantee
        covers = applied.is_about(run.auditor, assessed.acceptance.rule, review)
        if not covers or self._probability(run, applied.score) > applied.threshold:
            return assessed
        return waive(assessed, guarantee=applied.plan)

    def _probability(self, run: Run, score: FaultScore) -> float:
        columns = {name: [value] for name, value in figures(run).items()}
        return float(probabilities(score, columns)[0])
