"""Compare the audit with a team's decisions, fit a score on them, and test thresholds."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from masis.audit.acceptance import RULE_VERSION
from masis.errors import InputError
from masis.schema.actor import Actor
from masis.schema.base import Record, utc_now
from masis.schema.review import Decision
from masis.schema.trust import FaultScore, Guarantee, SamplePlan
from masis.services.access import OPEN, Access, may_require, requires
from masis.services.cases import CaseService, machine_hidden
from masis.services.reviews import name_of, sign_decision
from masis.services.trust.guarantees import Guarantees, GuaranteeWatch, review_settings
from masis.settings import Settings
from masis.store import Store
from masis.store.orders import TIER_RANK, fitted_risk
from masis.trust import guarantee, machine
from masis.trust.agreement import (
    AgreementEstimate,
    Pair,
    ReviewerAgreement,
    measure_agreement,
    reviewer_pairs,
    share,
    span_f1,
)
from masis.trust.guarantee import Outcome, ThresholdTest
from masis.trust.score import FITTED_ON, LEAST_ORDERED, fit, probabilities, yield_curve
from masis.views.numbers import duration

if TYPE_CHECKING:
    import pandas as pd  # the functions that need it import it; see agreement.codes

VERDICTS = ("approve", "override", "reject", "escalate")
"""Verdicts from best to worst: the order for weighted kappa and ordinal alpha.

Both ignore escalations.
"""

MOST_LEFT_OUT = 0.2
"""The minimum share of decided answers for the page to warn that they can't be drawn."""


LEAST_CONSTANT = 5
"""Minimum number of shared cases for the warning that a reviewer always gives the same verdict.

With fewer cases that happens by chance.
"""

LEAST_SECONDS = 1.0
"""Faster decisions are made by scripts, and are left out of the times."""

_RUN_GUARANTEE = "draw, apply or end a guarantee"
_SEE_OTHERS = "see names and figures of other reviewers"


class TrustFilter(Record):
    """Selects the answers to compare.

    Attributes:
        source: ``decision`` compares with people's decisions, ``gold`` with the labels that came
            with the cases.
        blind_only: Leave out answers that were decided with the machine's verdict in view.
        auditor: The auditor's digest; "" for all.
        dataset: The dataset's name; "" for all.
        field: The field of knowledge; "" for all.
        since: The first day, ISO 8601.
        until: The day after the last one, ISO 8601.
        queue: The id of a named queue; "" for all. Decisions count if they were made in it, and
            labels that came with the cases if it holds the case now.

    """

    source: Literal["decision", "gold"] = "decision"
    blind_only: bool = True
    auditor: str = ""
    dataset: str = ""
    field: str = ""
    since: str = ""
    until: str = ""
    queue: str = ""


class Excluded(NamedTuple):
    """Counts of the answers that a comparison leaves out, by reason."""

    not_blind: int
    escalated: int
    unaudited: int


class MachineReport(NamedTuple):
    """The audit compared with people over answers.

    ``rows`` are the compared answers and ``seen`` compares those that weren't decided blind.
    ``breakdowns`` holds the comparison by auditor, dataset, field and month.
    """

    answers: machine.MachineComparison
    seen: machine.MachineComparison | None
    excluded: Excluded
    breakdowns: dict[str, dict[str, machine.MachineComparison]]
    rows: pd.DataFrame
    simulated: int


class _SelectedRows(NamedTuple):
    """Rows that match a filter, those of them to compare, and the number of unaudited answers."""

    rows: pd.DataFrame
    compared: pd.DataFrame
    unaudited: int


class PartReport(NamedTuple):
    """The audit compared with labels on claims or references, with one row for each of them."""

    comparison: machine.MachineComparison
    rows: pd.DataFrame


class PeopleReport(NamedTuple):
    """Agreement between reviewers.

    ``cases`` are the ids of the units that ``pairs`` refers to by number. ``constant`` has a
    (reviewer, verdict, number of cases) for each reviewer who gave the same verdict in all shared
    cases. ``decisions`` counts the compared decisions, which are those before any adjudication,
    and ``simulated`` those of them that the demo simulated.
    """

    agreement: ReviewerAgreement
    pairs: list[Pair]
    spans: AgreementEstimate
    cases: tuple[str, ...]
    decisions: int
    simulated: int
    constant: tuple[tuple[str, str, int], ...] = ()


class MissReport(NamedTuple):
    """The miss rate overall, by month and by field, and the spot checks that it is based on.

    ``strata`` is empty if how many answers passed is hidden. ``open`` are drawn cases without a
    decision. ``drawable`` is ``TrustService.drawable`` for the
    auditor with the most cases.
    """

    total: AgreementEstimate
    months: dict[str, AgreementEstimate]
    fields: dict[str, AgreementEstimate]
    open: tuple[str, ...]
    strata: tuple[machine.Stratum, ...]
    faulty: tuple[str, ...]
    drawable: int


class YieldReport(NamedTuple):
    """How many faults each order of the queue finds.

    A curve has points of (share of cases read, share of faults found).

    The curves cover ``n`` answers, ``faulty`` of them faulty. They are empty below
    ``LEAST_ORDERED`` answers, and if all answers are faulty or none is.
    """

    n: int
    faulty: int
    curves: dict[str, list[tuple[float, float]]]


class ReviewerStats(NamedTuple):
    """The work of one reviewer, or of the whole team (``reviewer`` is "").

    Attributes:
        reviewer: The reviewer's name.
        decisions: The number of decisions; adjudications aren't counted here.
        a_day: Decisions per day with at least one decision.
        seconds: The median time of a decision; None if it wasn't recorded.
        overrides: The share of decisions that override the answer.
        agreed: The share of settled shared cases that ended with this reviewer's verdict.
        differing: The settled shared cases that ended with another verdict.
        adjudications: Adjudications that haven't been undone.
        escalations: The adjudications among them that escalate, and so settle nothing.
        whole: Cases of ``with_answer`` that are known to be settled on this reviewer's very answer.
        verdicts: Decisions by verdict.
        adjudication_seconds: The median time of an adjudication; None if it wasn't recorded.
        labelled: Decisions with labels on parts of the answer.
        with_answer: Cases of ``agreed`` whose verdict leaves an answer, as it was or corrected.

    """

    reviewer: str
    decisions: int
    a_day: float | None
    seconds: float | None
    overrides: AgreementEstimate
    agreed: AgreementEstimate
    differing: tuple[str, ...] = ()
    adjudications: int = 0
    escalations: int = 0
    whole: int = 0
    verdicts: Mapping[str, int] = {}
    adjudication_seconds: float | None = None
    labelled: int = 0
    with_answer: int = 0

    @property
    def median_time(self) -> str:
        """The median time of a decision as text."""
        return _seconds_text(self.seconds)

    @property
    def median_adjudication_time(self) -> str:
        """The median time of an adjudication as text."""
        return _seconds_text(self.adjudication_seconds)


def _seconds_text(seconds: float | None) -> str:
    return "not recorded" if seconds is None else duration(1000 * round(seconds))


class PlanState(NamedTuple):
    """A sampling plan and the outcome of each draw; ``tested`` is None while draws are open."""

    plan: SamplePlan
    outcomes: dict[str, Outcome]
    tested: list[ThresholdTest] | None
    lapsed: str

    @property
    def open(self) -> tuple[str, ...]:
        """The drawn cases without a decision."""
        return tuple(case for case, outcome in self.outcomes.items() if outcome == "open")


class Offer(NamedTuple):
    """The sample that could be drawn for an auditor.

    ``pool`` counts the answers that can be drawn, ``waiting`` those of them that need review, and
    ``least`` the draws that a test needs.
    """

    auditor: str
    models: dict[str, str]
    pool: int
    waiting: int
    left_out: int
    least: int
    expected: float
    spent: float


class TrustService:
    """The use cases of the Trust page."""

    def __init__(self, store: Store, settings: Settings, access: Access = OPEN) -> None:
        self._store, self.access, self._team = store, access, store.team
        self.guarantees, self._review = Guarantees(store), review_settings(settings)
        self.score, self.auditors = self.guarantees.score, store.trust.auditors
        self._read: tuple[int, pd.DataFrame | None] = (-1, None)
        self._answers: dict[int, str | None] = {}

    # reading

    def watch(self) -> GuaranteeWatch | None:
        """Return the guarantee in force under this workbench's settings, or None."""
        return self.guarantees.watch(self._review)

    def position(self) -> str:
        """Return a cache key that changes with the data behind the figures.

        It depends on the log, the score and the measures.
        """
        length, score = self._store.decisions.head().length, self.score().version
        return f"{length}:{score}:{self._store.measures.newest()}"

    @requires("read")
    def compare(self, actor: Actor, filters: TrustFilter) -> MachineReport:
        """Compare the audit's verdicts on answers with people's."""
        selected = self._select_rows(actor, filters)
        rows, compared = selected.rows, selected.compared
        blind, escalated = (
            rows["blind"].to_numpy(dtype=bool),
            rows["faulty"].isna().to_numpy(dtype=bool),
        )
        return MachineReport(
            machine.compare(compared),
            machine.compare(rows[~blind]) if filters.blind_only and not blind.all() else None,
            Excluded(
                int((~blind & ~escalated).sum()) if filters.blind_only else 0,
                int(escalated.sum()),
                selected.unaudited,
            ),
            {
                column: machine.breakdown(compared, column)
                for column in ("auditor", "dataset", "field", "month")
            },
            compared,
            int(compared["simulated"].astype(bool).sum()),
        )

    def _select_rows(self, actor: Actor, filters: TrustFilter) -> _SelectedRows:
        """Return the rows that match the filter and that this person may see."""
        score = self.score()
        if filters.source == "gold":
            all_rows = machine.gold_answer_rows(machine.frame_of(self._store.trust.gold()), score)
            if self._hides_open(actor):
                hidden = {
                    case for case in all_rows["case_id"] if machine_hidden(self._store, actor, case)
                }
                all_rows = all_rows[~all_rows["case_id"].isin(hidden)]
            if filters.queue:
                held = self._team.case_ids_in(self._team.queue(filters.queue))
                all_rows = all_rows[all_rows["case_id"].isin(held)]
            unaudited = 0
        else:
            decided = self._decision_frame(
                settled=self._hides_open(actor), queue=filters.queue or None
            )
            all_rows = machine.answer_rows(decided, score)
            unaudited = int((decided["settles"].astype(bool) & decided["auditor"].isna()).sum())
        rows = _narrow_frame(all_rows, filters)
        compared = rows[rows["blind"].to_numpy(dtype=bool)] if filters.blind_only else rows
        return _SelectedRows(rows, compared, unaudited)

    @requires("read")
    def decided_rows(self, actor: Actor, filters: TrustFilter) -> pd.DataFrame:
        """Return the audited answers that people found right or faulty, one row each.

        The rows are those of ``machine.answer_rows``. Escalated answers are left out, and so are
        cases whose decisions or audit this person may not see yet.
        """
        compared = self._select_rows(actor, filters).compared
        return compared[compared["faulty"].notna()]

    @requires("read")
    def compare_parts(
        self, actor: Actor, level: Literal["claim", "reference"], source: str
    ) -> PartReport:
        """Compare the audit's verdicts on claims or references with labels.

        ``source`` selects gold labels or labels of blind decisions.
        """
        hides = self._hides_open(actor)
        labelled = (
            case
            for case in self._store.trust.labelled_cases()
            if not hides or case.state in machine.SETTLED
        )
        parts = machine.part_rows(labelled)
        parts = parts[
            (parts["source"] == source) & parts["blind"].astype(bool) & (parts["level"] == level)
        ]
        return PartReport(machine.compare_parts(parts, level), parts)

    @requires("read")
    @may_require("oversee", _SEE_OTHERS)
    def people(
        self, actor: Actor, *, names: bool = False, queue: str | None = None
    ) -> PeopleReport:
        """Measure the agreement between reviewers on cases that several of them decided.

        ``queue`` counts only the decisions that were made in this queue, by its id.

        If a policy blinds reviewers, others appear as "Reviewer A", "Reviewer B", ... unless a lead
        asks for the names.

        Raises:
            NotAllowed: The actor asks for names and isn't a lead.

        """
        import pandas as pd

        if names and not self.shows_names():
            self.access.require(actor, "oversee", _SEE_OTHERS)
        names = names or self.shows_names()
        frame = self._decision_frame(settled=self._hides_open(actor), queue=queue)
        frame = frame[frame["kind"] == "decision"]
        # A person who decided a case in two queues counts once.
        frame = frame.drop_duplicates(["case_id", "reviewer"], keep="last")
        # keep=False marks every row of a case that has several.
        shared = frame[frame.duplicated("case_id", keep=False)]
        cases, place = np.unique(shared["case_id"].to_numpy(dtype=str), return_inverse=True)
        people, column = np.unique(shared["reviewer"].to_numpy(dtype=str), return_inverse=True)
        # A row for each case and a column for each reviewer; -1 means not rated.
        ratings = np.full((len(cases), max(1, len(people))), -1, dtype=np.int64)
        ratings[place, column] = [VERDICTS.index(verdict) for verdict in shared["verdict"]]
        answers = np.full(ratings.shape, -1, dtype=np.int64)
        # factorize gives equal answers the same number, and -1 to None.
        answers[place, column] = pd.factorize(pd.Series(self._answers_of(shared), dtype=object))[0]
        questions = (
            shared.drop_duplicates("case_id").sort_values("case_id")["question"].to_numpy(dtype=str)
        )
        shown = [
            name if names or name == actor.name else f"Reviewer {_letter_label(n)}"
            for n, name in enumerate(people)
        ]
        marked: dict[str, list[list[tuple[int, int]]]] = {}
        entries = shared["entry"][shared["marks"].astype(bool)]
        labels = self._store.trust.decisions_of([int(entry) for entry in entries])
        for case in shared["case_id"][shared["marks"].astype(bool)].unique():
            for entry in shared["entry"][shared["case_id"] == case]:
                spans = labels[int(entry)].labels if int(entry) in labels else ()
                marked.setdefault(str(case), []).append(
                    [
                        (label.start, label.end)
                        for label in spans
                        if label.start is not None and label.end is not None
                    ]
                )
        # An escalation has no place in the order of verdicts, so it counts as not rated.
        graded = np.where(ratings == VERDICTS.index("escalate"), -1, ratings)
        nominal = measure_agreement(ratings, questions, VERDICTS)
        return PeopleReport(
            nominal._replace(
                ordinal_alpha=measure_agreement(graded, questions, VERDICTS[:3]).ordinal_alpha
            ),
            reviewer_pairs(ratings, shown, questions, VERDICTS.index("escalate"), answers),
            span_f1(marked),
            tuple(cases.tolist()),
            len(shared),
            int(shared["simulated"].astype(bool).sum()),
            tuple(
                (name, VERDICTS[verdicts[0]], len(verdicts))
                for name, verdicts in (
                    (name, column[column >= 0])
                    for name, column in zip(shown, ratings.T, strict=False)
                )
                if len(verdicts) >= LEAST_CONSTANT and len(set(verdicts.tolist())) == 1
            ),
        )

    def _answers_of(self, decisions: pd.DataFrame) -> list[str | None]:
        """Return a digest of the answer that each decision leaves.

        Digests are cached because a logged decision never changes.
        """
        entries = [int(entry) for entry in decisions["entry"]]
        self._answers |= self._store.trust.answers(
            [entry for entry in entries if entry not in self._answers]
        )
        return [self._answers.get(entry) for entry in entries]

    @requires("read")
    def miss_report(self, actor: Actor) -> MissReport:
        """Estimate how many faulty answers are accepted without a person.

        The estimate weights the decided spot checks by stratum.
        """
        import pandas as pd

        checks = machine.frame_of(self._store.trust.spot_checks())
        if self._hides_open(actor):
            checks = checks[checks["state"].isin(machine.SETTLED)]
        decided = self._decision_frame(settled=self._hides_open(actor))
        coded = zip(decided["case_id"], decided["reason_code"], strict=True)
        reasons = {case: code for case, code in coded if code}
        truth = [
            machine.truth_of(state, reasons.get(case))
            for case, state in zip(checks["case_id"], checks["state"], strict=True)
        ]
        passed: Counter[tuple[str, str]] = Counter()
        for (drawn, field), count in self._store.trust.passed_by_share().items():
            passed[f"{drawn:.2%} of audits", field] += count
        names = [f"{drawn:.2%} of audits" for drawn in checks["share"]]
        for sample in self._team.samples():
            # A lake's accepted answers aren't in the database except for the drawn ones, so the
            # share that passed is estimated from the counts that the import recorded.
            fields = dict.fromkeys(checks["field"], 0)
            for place, (case, field) in enumerate(
                zip(checks["case_id"], checks["field"], strict=True)
            ):
                if sample.draws(case):
                    passed[names[place], field] -= 1
                    names[place], fields[field] = sample.place, fields[field] + 1
            for field, count in fields.items():
                passed[sample.place, field] += round(
                    sample.accepted * count / max(1, sum(fields.values()))
                )
        checks = checks.assign(
            faulty=pd.Series(truth, index=checks.index, dtype=object), stratum=names
        )
        known = checks[checks["faulty"].notna()]

        def strata_of(rows: pd.DataFrame, field: str | None = None) -> tuple[machine.Stratum, ...]:
            totals: Counter[str] = Counter()
            for (name, stratum_field), count in passed.items():
                totals[name] += count if field in (None, stratum_field) else 0
            faulty = {name: rows["faulty"][rows["stratum"] == name].astype(bool) for name in totals}
            strata = (
                machine.Stratum(name, totals[name], len(flags), int(flags.sum()))
                for name, flags in faulty.items()
            )
            return tuple(stratum for stratum in strata if stratum.passed > 0)

        months = known["at"].str.slice(0, 7)
        return MissReport(
            machine.miss_rate(strata_of(known)),
            {
                month: machine.miss_rate(strata_of(known[months == month]))
                for month in sorted(months.unique())
            },
            {
                field: machine.miss_rate(strata_of(known[known["field"] == field], field))
                for field in sorted(known["field"].unique())
            },
            tuple(checks["case_id"][checks["faulty"].isna()]),
            () if self._hides_open(actor) else strata_of(known),
            tuple(known["case_id"][known["faulty"].astype(bool)]),
            sum(
                self.drawable(actor, name, guarantee.draws_needed(0.02, 0.05))
                for name, *_ in self.auditors()[:1]
            ),
        )

    @requires("read")
    def drawable(self, actor: Actor, auditor: str, most: int) -> int:
        """Count the auditor's answers that a sample could draw, up to ``most``, because there may
        be very many.

        If the exact count would reveal how many cases others have decided, all unsettled cases
        count. If it would reveal what audits found, the result is ``most``.
        """
        if CaseService(self._store, self.access).hides_figures_from(actor):
            return most
        hides = not actor.may("oversee") and self._store.decisions.several_decide()
        known = {*self.score().case_ids, *self._drawn_ids()}
        pool = self._store.trust.pool_ids(auditor, most + len(known), unsettled=hides)
        return min(most, sum(case not in known for case in pool))

    @requires("read")
    def yield_report(self, actor: Actor, filters: TrustFilter | None = None) -> YieldReport:
        """Measure how many faults each order of the queue finds by cases read, on questions the
        score hasn't seen.

        Without a filter it covers all decisions, as fitting does. Decisions that weren't blind
        always count.
        """
        rows = self.compare(
            actor, (filters or TrustFilter()).model_copy(update={"blind_only": False})
        ).rows
        rows = rows[rows["faulty"].notna()]
        truth = rows["faulty"].to_numpy(dtype=bool)
        if len(truth) < LEAST_ORDERED or truth.all() or not truth.any():
            return YieldReport(len(truth), int(truth.sum()), {})
        # An answer without a probability is read first, as if it were faulty.
        likely = rows["likely"].fillna(1.0).to_numpy(dtype=float)
        rank = np.array([_RANKS.get(tier, 0.0) for tier in rows["tier"]])
        curves = {
            "built-in order": yield_curve(truth, rank + likely),
            "random order": [(0.0, 0.0), (1.0, 1.0)],
        }
        try:
            columns = {name: rows[name].to_numpy() for name in FITTED_ON}
            curves["fitted order"] = yield_curve(
                truth, fit(columns, truth, rows["question"].tolist()).held_out
            )
        except InputError:
            pass  # There are too few decisions to fit on; the page says so beside the score.
        return YieldReport(len(truth), int(truth.sum()), curves)

    @requires("read")
    @may_require("oversee", _SEE_OTHERS)
    def reviewers(self, actor: Actor, *, others: bool = False) -> list[ReviewerStats]:
        """Return the actor's own figures, or everyone's with ``others``, which needs the lead role.

        Raises:
            NotAllowed: ``others`` is set and the actor isn't a lead.

        """
        if others:
            self.access.require(actor, "oversee", _SEE_OTHERS)
        frame = self._decision_frame(actor.name, settled=self._hides_open(actor))
        names = sorted(frame["reviewer"].unique()) if others else [actor.name]
        shared = frame[frame.duplicated("case_id", keep=False)]
        answers = dict(zip(shared["entry"], self._answers_of(shared), strict=True))
        settled = _SettledCases.of(frame)
        return [
            _reviewer_stats(name, frame[frame["reviewer"] == name], settled, answers)
            for name in names
        ]

    @requires("read")
    def team_stats(self, actor: Actor) -> ReviewerStats:
        """Return the figures of all reviewers together, over the decisions the actor may count."""
        frame = self._decision_frame(actor.name, settled=self._hides_open(actor))
        return _reviewer_stats("", frame, _SettledCases.of(frame), {})

    @requires("read")
    def today(self, actor: Actor) -> tuple[int, int, float | None]:
        """Return the number of the actor's decisions today (UTC), of escalations, and the median
        seconds.
        """
        import pandas as pd

        frame = pd.DataFrame(self._store.trust.seconds(actor.name, utc_now()[:10]))
        return len(frame), int((frame["verdict"] == "escalate").sum()), _median_seconds(frame)

    @requires("read")
    def decisions_by(
        self, actor: Actor, kind: Literal["decision", "adjudication"] = "decision"
    ) -> dict[str, int]:
        """Count the decisions or adjudications of each person that the actor may count."""
        frame = self._decision_frame(actor.name, settled=self._hides_open(actor))
        return dict(Counter(frame["reviewer"][frame["kind"] == kind]))

    @requires("read")
    def counts_in_words(self, actor: Actor) -> str:
        """Describe which decisions are counted for the actor; "" if all are."""
        if self._hides_open(actor):
            return "Counts settled cases and all of your own decisions."
        several = self._store.decisions.several_decide()
        return "Decisions on a shared case are counted once all are made." if several else ""

    def shows_names(self) -> bool:
        """Return whether reviewers are named beside their verdicts by default, because no policy
        blinds them.
        """
        return self._team.strictest_shown() == "first"

    def _decision_frame(
        self, reviewer: str = "", *, settled: bool = False, queue: str | None = None
    ) -> pd.DataFrame:
        """Return the decisions that count, plus all decisions of ``reviewer``.

        ``queue`` is the id of the queue in which they were made; None for all.

        Decisions on a shared case count once all of them are made. With ``settled``, others'
        decisions count only on settled cases. The log is read again only after it has grown.
        """
        length = self._store.decisions.head().length
        read, frame = self._read
        if frame is None or read != length:
            frame = machine.frame_of(self._store.trust.decision_columns(pending=True))
            self._read = (length, frame)
        counts = ~frame["pending"].astype(bool)
        if settled:
            counts &= frame["state"].isin(machine.SETTLED)
        counts |= frame["reviewer"] == reviewer
        return frame[counts if queue is None else counts & (frame["queue"] == queue)]

    def _hides_open(self, actor: Actor) -> bool:
        return CaseService(self._store, self.access).hides_machine_from(actor)

    # the score

    @requires("oversee", "fit the score")
    def fit(self, actor: Actor) -> FaultScore:
        """Fit the probability of fault on the settled decisions and order the queue by it.

        Drawn samples are left out, so that a guarantee can be tested on answers that the score
        hasn't seen.

        Raises:
            NotAllowed: The actor isn't a lead.
            InputError: There are too few decisions.

        """
        rows = machine.answer_rows(self._decision_frame(), FaultScore())
        rows = rows[rows["faulty"].notna() & ~rows["case_id"].isin(self._drawn_ids())]
        columns = {name: rows[name].to_numpy() for name in FITTED_ON}
        fitted = fit(columns, rows["faulty"].to_numpy(dtype=bool), rows["question"].tolist()).score
        mocked = int(rows["simulated"].astype(bool).sum())
        provenance: dict[str, Any] = {
            "by": name_of(actor),
            "simulated": mocked,
            "at": self._store.database.now(),
            "case_ids": tuple(rows["case_id"]),
        }
        score = self._team.put_in_force(name_of(actor), fitted.model_copy(update=provenance))
        # The queue's order is stored with each run, so it's updated at once for the undecided ones.
        undecided = self._store.trust.undecided_runs()
        risks = fitted_risk(probabilities(score, undecided))
        self._store.trust.reorder(dict(zip(undecided["seq"], risks.tolist(), strict=True)))
        return score

    def _drawn_ids(self) -> set[str]:
        return {case for plan in self._plans() for case in plan.case_ids}

    # the sample

    def _plans(self) -> list[SamplePlan]:
        newest = self._team.in_force(SamplePlan)
        return [
            # Earlier plans count too: each test has used up a part of the allowed error.
            self._team.in_force(SamplePlan, version)
            for version in range(1, newest.version + 1)
        ]

    def _pool(self, auditor: str) -> pd.DataFrame:
        """Return an auditor's undecided answers that a threshold may accept, with their probability
        of fault.

        Answers that the acceptance rule accepts without a reason have probability 0: every
        threshold accepts them.
        """
        score = self.score()
        columns = self._store.trust.pool(auditor)
        frame = machine.frame_of(columns).assign(probability=probabilities(score, columns))
        frame.loc[frame["reasons"] == "[]", "probability"] = 0.0
        return frame[~frame["case_id"].isin([*score.case_ids, *self._drawn_ids()])]

    def offer(self, auditor: str, *, tolerance: float = 0.02, certainty: float = 0.95) -> Offer:
        """Return the sample that could be drawn for an auditor."""
        pool = self._pool(auditor)
        models = next((models for name, models, _ in self.auditors() if name == auditor), {})
        spent = self._error_spent(auditor)
        error = 1 - certainty - spent
        decided = self._decision_frame()
        return Offer(
            auditor,
            models,
            len(pool),
            int(_needs_review(pool).sum()),
            int(
                (
                    (decided["auditor"] == auditor) & decided["coverable"].fillna(0).astype(bool)
                ).sum()
            ),
            guarantee.draws_needed(tolerance, error) if error > 1e-9 else 0,
            (
                guarantee.expected_threshold(pool["probability"].to_numpy(dtype=float), tolerance)
                if len(pool)
                else 0.0
            ),
            spent,
        )

    def _error_spent(self, auditor: str) -> float:
        return sum(
            plan.error
            for plan in self._plans()
            if (plan.auditor, plan.rule) == (auditor, RULE_VERSION)
        )

    @requires("oversee", _RUN_GUARANTEE)
    def draw(
        self,
        actor: Actor,
        auditor: str,
        *,
        draws: int,
        loosest: float = 1.0,
        tolerance: float = 0.02,
        certainty: float = 0.95,
        seed: int | None = None,
    ) -> SamplePlan:
        """Draw a sample for blind decisions and fix the thresholds to test on it. An earlier plan
        ends.

        Args:
            actor: A lead.
            auditor: The digest of the auditor whose answers are drawn.
            draws: The number of answers.
            loosest: The highest probability of fault that may be accepted.
            tolerance: The share of faulty answers tolerated among the accepted ones, 0 to 1.
            certainty: The certainty of the guarantee over all plans for this auditor and rule.
            seed: The seed of the draw. It's random by default, and recorded with the plan.

        Raises:
            NotAllowed: The actor isn't a lead.
            InputError: There are too few draws for the test, more draws than answers, or earlier
                plans have used up the error.

        """
        spent = self._error_spent(auditor)
        # rounded, because 1 - 0.95 is 0.050000000000000044 as a float
        error = round(1 - certainty - spent, 9)
        if error <= 0:
            raise InputError(
                f"earlier samples of this auditor have used up the {1 - certainty:.0%} error that"
                f" {certainty:.0%} confidence allows",
                hint=(
                    f"Choose a confidence level below {1 - spent:.0%}, or change the auditor or its"
                    " prompts."
                ),
            )
        pool = self._pool(auditor)
        pool = pool[pool["probability"] <= loosest]
        least = guarantee.draws_needed(tolerance, error)
        if draws < least or len(pool) < draws:
            raise InputError(
                f"{draws} draws from {len(pool)} answers can't show {tolerance:.1%} at"
                f" {certainty:.0%}",
                hint=(
                    f"You need {least} blind decisions without a fault on undecided answers of"
                    " this auditor."
                ),
            )
        seed = secrets.randbits(32) if seed is None else seed
        # sorted, so that the draws are in the order of the pool
        place = np.sort(np.random.default_rng(seed).choice(len(pool), size=draws, replace=False))
        probability = pool["probability"].to_numpy(dtype=float)
        cuts = guarantee.thresholds_for(probability, draws, tolerance, error)
        waiting = probability[_needs_review(pool)]
        plan = SamplePlan(
            at=self._store.database.now(),
            by=name_of(actor),
            auditor=auditor,
            rule=RULE_VERSION,
            review=self._review,
            score=self.score().version,
            tolerance=tolerance,
            error=error,
            spent=spent,
            thresholds=cuts,
            pools=tuple(int((probability <= cut).sum()) for cut in cuts),
            waiting=tuple(int((waiting <= cut).sum()) for cut in cuts),
            pool=len(pool),
            left_out=self.offer(auditor).left_out,
            seed=seed,
            case_ids=tuple(pool["case_id"].iloc[place]),
            probabilities=tuple(probability[place].tolist()),
        )
        return self._team.put_in_force(name_of(actor), plan)

    def plan(self) -> PlanState | None:
        """Return the newest plan and the outcome of its draws, or None if nothing was drawn."""
        plan = self._team.in_force(SamplePlan)
        if not plan.version:
            return None
        decided = self._decision_frame()
        rows = decided[decided["case_id"].isin(plan.case_ids)]
        # A shared case counts as blind only if all its reviewers decided blind.
        blind = rows.groupby("case_id")["blind"].all()
        mocked = rows.groupby("case_id")["simulated"].any()
        settled = {
            row["case_id"]: row for row in rows[rows["settles"].astype(bool)].to_dict("records")
        }
        removed = {
            case
            for case in plan.case_ids
            if self._store.cases.summary(case).state in ("redacted", "superseded")
        }

        def outcome(case: str) -> Outcome:
            if case in removed:
                return "gone"
            row = settled.get(case)
            if row is None:
                return "open"
            if not blind[case] or mocked[case]:
                return "not_blind"
            truth = machine.truth_of(row["state"], row["reason_code"])
            return "escalated" if truth is None else "faulty" if truth else "right"

        outcomes = {case: outcome(case) for case in plan.case_ids}
        tested = None
        if "open" not in outcomes.values():
            # An answer that wasn't decided blind, or is gone, counts as faulty, which is the safe
            # side.
            faulty = np.array([outcomes[case] != "right" for case in plan.case_ids])
            tested = guarantee.try_thresholds(
                plan.thresholds, np.array(plan.probabilities), faulty, plan.tolerance, plan.error
            )
        lapsed = self.guarantees.lapse_reason(plan.rule, plan.review, plan.score, now=self._review)
        return PlanState(plan, outcomes, tested, lapsed)

    def propose_guarantee(self) -> Guarantee:
        """Return the guarantee that the newest plan supports.

        Raises:
            InputError: The plan supports no guarantee.

        """
        state = self.plan()
        if state is None:
            raise InputError("no sample has been drawn", hint="Draw a sample first.")
        if state.tested is None:
            raise InputError(
                f"{len(state.open)} of {len(state.outcomes)} drawn answers aren't decided yet",
                hint="Decide them first. Testing early would weaken the guarantee.",
            )
        best = guarantee.loosest_valid(state.tested)
        if best is None or state.lapsed:
            first = state.tested[0]
            raise InputError(
                state.lapsed
                or (
                    f"{first.faulty} of {first.n} answers under the strictest threshold are faulty,"
                    " too many for a guarantee"
                ),
                hint="Improve the auditor or the score, and draw again.",
            )
        plan, place = state.plan, state.plan.thresholds.index(best.threshold)
        return Guarantee(
            plan=plan.version,
            auditor=plan.auditor,
            rule=plan.rule,
            review=plan.review,
            score=self.score().model_copy(update={"case_ids": ()}),
            threshold=best.threshold,
            tolerance=plan.tolerance,
            certainty=plan.certainty,
            decisions=best.n,
            faulty=best.faulty,
            upper=best.upper,
            saved=plan.waiting[place],
            pool=plan.pools[place],
        )

    # the guarantee

    @requires("oversee", _RUN_GUARANTEE)
    def apply(self, actor: Actor) -> Guarantee:
        """Log the guarantee of the newest plan. ``reassess`` then accepts the answers that wait.

        Raises:
            NotAllowed: The actor isn't a lead.
            InputError: The plan supports no guarantee.

        """
        proposed = self.propose_guarantee()
        self._log_guarantee(
            actor,
            proposed.model_dump(mode="json"),
            f"At most {proposed.tolerance:.1%} faulty at {proposed.certainty:.0%} confidence",
        )
        return proposed

    @requires("oversee", _RUN_GUARANTEE)
    def end(self, actor: Actor, reason: str) -> None:
        """End the guarantee in force; from now on it waives nothing.

        Raises:
            NotAllowed: The actor isn't a lead.
            InputError: The reason is empty.

        """
        if not reason.strip():
            raise InputError(
                "the reason is missing", hint="Say why the guarantee ends.", field="reason"
            )
        self._log_guarantee(actor, None, reason)

    def _log_guarantee(self, actor: Actor, content: dict[str, Any] | None, reason: str) -> None:
        plan = self._team.in_force(SamplePlan)
        # An entry of the log belongs to a case, so this one names a drawn case.
        case_id = plan.case_ids[-1] if plan.case_ids else ""
        entry = Decision(
            kind="guarantee",
            reviewer=name_of(actor),
            case_id=case_id,
            run_id=None,
            reason=reason,
            extra={"guarantee": content},
        )
        self._store.decisions.append(sign_decision(actor, entry))


# copied item by item, because the type of a dict's keys is invariant
_RANKS: dict[str | None, float] = {}
_RANKS.update(TIER_RANK.items())


def _needs_review(pool: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of the answers in a pool that need review for a reason.

    Spot checks without a reason are left out: a person decides them under any guarantee.
    """
    return ((pool["state"] == "needs_review") & pool["needs_review"].astype(bool)).to_numpy(
        dtype=bool
    )


def _narrow_frame(frame: pd.DataFrame, filters: TrustFilter) -> pd.DataFrame:
    for name in ("auditor", "dataset", "field"):
        if value := getattr(filters, name):
            frame = frame[frame[name] == value]
    if filters.since:
        frame = frame[frame["at"] >= filters.since]
    return frame[frame["at"] < filters.until] if filters.until else frame


def _letter_label(number: int) -> str:
    """Return the number as letters: A to Z, then AA, AB, ..."""
    return (_letter_label(number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26)


class _SettledCases(NamedTuple):
    """The settling verdict and log entry of each case that several people decided."""

    verdicts: dict[str, str]
    entries: dict[str, int]

    @classmethod
    def of(cls, frame: pd.DataFrame) -> _SettledCases:
        """Collect them from a frame of decisions and adjudications; escalations settle nothing."""
        settling = frame[
            frame.duplicated("case_id", keep=False)
            & frame["settles"].astype(bool)
            & (frame["verdict"] != "escalate")
        ]
        return cls(
            *(
                dict(zip(settling["case_id"], settling[column], strict=True))
                for column in ("verdict", "entry")
            )
        )


def _reviewer_stats(
    name: str, mine: pd.DataFrame, settled: _SettledCases, answers: Mapping[int, str | None]
) -> ReviewerStats:
    """Summarize a person's decisions and adjudications (``mine``) against the settled verdicts.

    ``answers`` maps an entry to the digest of the answer that it leaves, where that is known.
    """
    adjudicated, mine = mine[mine["kind"] == "adjudication"], mine[mine["kind"] == "decision"]
    final, settling_entries = settled
    compared = mine[mine["case_id"].isin(final)]
    agreed = [
        final[case] == verdict
        for case, verdict in zip(compared["case_id"], compared["verdict"], strict=True)
    ]
    upheld = compared[
        np.array(agreed, dtype=bool) & compared["verdict"].isin(("approve", "override"))
    ]
    whole = sum(
        None in (pair := {answers.get(entry), answers.get(settling_entries[case])})
        or len(pair) == 1
        for case, entry in zip(upheld["case_id"], upheld["entry"], strict=True)
    )
    none = AgreementEstimate(None, why="no decision")
    return ReviewerStats(
        name,
        len(mine),
        len(mine) / mine["at"].str.slice(0, 10).nunique() if len(mine) else None,
        _median_seconds(mine),
        (
            share(mine["verdict"] == "override", mine["question"].to_numpy(dtype=str))
            if len(mine)
            else none
        ),
        share(agreed),
        tuple(case for case, same in zip(compared["case_id"], agreed, strict=True) if not same),
        len(adjudicated),
        int((adjudicated["verdict"] == "escalate").sum()),
        whole,
        Counter(mine["verdict"]),
        _median_seconds(adjudicated),
        int(mine["marks"].astype(bool).sum()),
        len(upheld),
    )


def _median_seconds(rows: pd.DataFrame) -> float | None:
    """Return the median recorded time in seconds, or None if none was recorded."""
    import pandas as pd

    # The log may hold anything here, because programs write entries too. coerce turns it into NaN.
    seconds = pd.to_numeric(rows["seconds"], errors="coerce")
    seconds = seconds[seconds >= LEAST_SECONDS]
    return float(seconds.median()) if len(seconds) else None
