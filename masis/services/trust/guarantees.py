"""The guarantee in force: what it waives as an audit ends, and whether later decisions still agree with it."""

from __future__ import annotations

from typing import Any, NamedTuple

from masis.audit.acceptance import RULE_VERSION, Assessment, coverable, waive
from masis.schema.case import Case
from masis.schema.run import Run
from masis.schema.trust import FaultScore, Guarantee
from masis.settings import Settings
from masis.store import Store
from masis.store.audits.runs import figures
from masis.trust import guarantee as tests_of
from masis.trust import machine
from masis.trust.score import probabilities

REVIEW_SETTINGS = (
    "review_threshold",
    "review_quality",
    "review_disagreement",
    "review_uncited_answers",
    "review_revised",
    "max_judge_spread",
)
"""Settings of the acceptance rule: a guarantee holds for the values it was tested with."""


class Watch(NamedTuple):
    """A guarantee in force: since when, by whom, and what later spot checks say.

    ``lapsed`` says why it waives nothing any more; ``cases`` are the spot checks found faulty.
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
    """Applies what a lead has certified, and reads nothing but scores, settings and decisions."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store, self._settings = store, settings

    def score(self) -> FaultScore:
        """Return the fitted score in use; version 0 where none was fitted and the built-in order is used."""
        return self._store.team.in_force(FaultScore)

    def review_settings(self) -> dict[str, Any]:
        """Return the settings of the acceptance rule that a guarantee is bound to."""
        return self._settings.model_dump(mode="json", include=set(REVIEW_SETTINGS))

    def lapsed(self, rule: str, review: dict[str, Any], score: int) -> str:
        """Return why what was tested with this rule, these settings and this score holds no longer; "" where it does.

        Runs of another auditor are never covered: that is asked of each run.
        """
        if rule != RULE_VERSION:
            return f"it was tested with acceptance rule {rule}; rule {RULE_VERSION} is in force"
        if review != self.review_settings():
            return "settings of the acceptance rule have changed"
        if score != self.score().version:
            return "another score was fitted since"
        return ""

    def watch(self) -> Watch | None:
        """Return the guarantee in force with what spot checks since say of it; None where none is applied.

        Every decided spot check on what it accepts counts, blind or not; an escalated one counts as faulty.
        """
        found = self._store.trust.guarantee()
        if found is None:
            return None
        seq, at, by, applied = found
        decided = machine.frame_of(self._store.trust.decided(after=seq, spot_checks=True))
        own = (decided["auditor"] == applied.auditor) & (decided["rule"] == applied.rule)
        since = decided[own & decided["settles"].astype(bool)]
        truth = [machine.truth_of(s, r) is not False for s, r in zip(since["state"], since["reason"], strict=True)]
        evidence = tests_of.evidence_against(sum(truth), len(truth), applied.tolerance)
        lapsed = self.lapsed(applied.rule, applied.review, applied.score.version)
        if evidence >= tests_of.ALARM:
            lapsed = f"it no longer holds: {sum(truth)} of {len(truth)} spot checks since are faulty"
        faulty = tuple(case for case, wrong in zip(since["case_id"], truth, strict=True) if wrong)
        return Watch(applied, at, by, len(truth), sum(truth), evidence, lapsed, faulty)

    def scored(self, run: Run, case: Case) -> Run:
        """Return a finished run with its probability of fault, and accepted where the guarantee in force covers it."""
        acceptance, reasons = self.assessed(Assessment(run.acceptance, run.review_reasons), run, case)
        found = {"acceptance": acceptance, "review_reasons": reasons}
        return run.model_copy(update=found | {"needs_review": run.needs_review and bool(reasons)})

    def assessed(self, assessed: Assessment, run: Run, case: Case) -> Assessment:
        """Return an assessment with the fitted probability, without its reasons where the guarantee waives them."""
        run, score = run.model_copy(update={"review_reasons": assessed.reasons}), self.score()
        if score.version and run.iterations:
            noted = {"score": score.version, "fault_probability": self._probability(run, score)}
            assessed = assessed._replace(acceptance=assessed.acceptance.model_copy(update=noted))
        if not assessed.reasons or not coverable(run) or case.evidence_outcome is not None:
            return assessed
        watched = self.watch()
        if watched is None or watched.lapsed:
            return assessed
        applied = watched.guarantee
        covers = applied.covers(run.auditor, assessed.acceptance.rule, self.review_settings())
        if not covers or self._probability(run, applied.score) > applied.threshold:
            return assessed
        return waive(assessed, guarantee=applied.plan)

    def _probability(self, run: Run, score: FaultScore) -> float:
        columns = {name: [value] for name, value in figures(run).items()}
        return float(probabilities(score, columns)[0])
