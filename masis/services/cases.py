"""Import and find cases, and open a case with everything that belongs to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from masis.errors import ResultsHidden, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.faults import PlantedFault
from masis.schema.review import CaseState, LogEntry, Standing
from masis.schema.run import Run
from masis.schema.team import QueuePolicy
from masis.schema.trust import RelabelPlan, SamplePlan
from masis.schema.wording import count_noun
from masis.services.access import ADD_CASES, OPEN, Access, Service, may_require, requires
from masis.services.audits import POLICY
from masis.services.records import (
    ORDERS,
    AddResult,
    CaseFilter,
    CasePage,
    CaseSummary,
    DecisionFilter,
    Facets,
    RunSummary,
)
from masis.store import Store
from masis.store.audits.conditions import BY_AUDIT
from masis.store.audits.queue import NOT_DECIDED
from masis.store.audits.runs import faults, run_flags
from masis.store.reviews.visibility import UNDECIDED

WAITING: tuple[CaseState, ...] = ("needs_review", "new", "interrupted")
"""The states of cases that need a decision.

Escalated cases are excluded, because they need another person or more evidence first.
"""


class CaseView(NamedTuple):
    """One opened case: its summary, its runs (newest first), the newest finished run and its log.

    If ``machine_hidden``, the reviewer may not see the machine's verdict now, and runs and figures
    are left out. ``planted`` is the fault of a copy that people have decided or that was withdrawn;
    it's None for every other case.
    """

    case: Case
    summary: CaseSummary
    runs: tuple[RunSummary, ...]
    run: Run | None
    decision: LogEntry | None
    history: tuple[LogEntry, ...]
    machine_hidden: bool = False
    planted: PlantedFault | None = None

    def __repr__(self) -> str:
        entries = count_noun(len(self.history), "log entry", "log entries")
        runs = count_noun(len(self.runs), "run")
        return f"<CaseView of {self.case.id[:80]!r}: {self.state}, {runs}, {entries}; {self.run}>"

    @property
    def state(self) -> CaseState:
        """The state of the case."""
        return self.summary.state


AUDIT_STANDINGS: tuple[Standing, ...] = (
    "failed",
    "no_answer",
    "wrong",
    "not_confirmed",
    "nothing_found",
)
"""The statuses that reveal the audit's result; blind reviewers see ``to_review`` instead."""


def _count_accepted_as_waiting(states: Mapping[str, int]) -> dict[str, int]:
    """Count auto-accepted cases as cases that need review, for blind reviewers."""
    others = {name: count for name, count in states.items() if name != "accepted"}
    waiting = states.get("needs_review", 0) + states.get("accepted", 0)
    return others | ({"needs_review": waiting} if waiting else {})


def _merge_audit_standings(standings: Mapping[str, int]) -> dict[str, int]:
    """Merge the statuses that reveal audit results into one, for blind reviewers."""
    others = {name: count for name, count in standings.items() if name not in AUDIT_STANDINGS}
    return {**others, "to_review": sum(standings.get(name, 0) for name in AUDIT_STANDINGS)}


def waiting_in(case_filter: CaseFilter) -> CaseFilter:
    """Narrow a filter to the cases that need a decision.

    A filter for decided cases only becomes a filter for all cases that need a decision.
    Auto-accepted cases are included only if the filter asks for them, or for cases in which the
    audit found nothing.
    """
    waiting_standings: tuple[Standing, ...] = ("not_audited", *AUDIT_STANDINGS)
    standings = tuple(
        standing for standing in waiting_standings if standing in case_filter.standings
    )
    has_all = len(standings) == len(waiting_standings)
    asks_accepted = case_filter.states == ("accepted",) or (
        not has_all and "nothing_found" in standings
    )
    possible: tuple[CaseState, ...] = (*WAITING, *(("accepted",) if asks_accepted else ()))
    states = tuple(
        state for state in possible if not case_filter.states or state in case_filter.states
    )
    return case_filter.model_copy(
        update={"states": states or WAITING, "standings": () if has_all else standings}
    )


RESULTS_HIDDEN = "The team's policy hides the audit's results until you decide the case."


def assert_machine_shown(store: Store, actor: Actor, case_id: str) -> None:
    """Raise ResultsHidden if the policy hides the machine's verdict on a case from this reviewer.

    Raises:
        UnknownRecord: There is no such case.
        ResultsHidden: The policy hides it.

    """
    if machine_hidden(store, actor, case_id):
        raise ResultsHidden(RESULTS_HIDDEN)


def machine_hidden(store: Store, actor: Actor, case_id: str) -> bool:
    """Return whether the policy hides the machine's verdict on a case from this reviewer now.

    ``after`` hides it until the reviewer has decided the case, or others have settled it. ``never``
    hides it until the case is settled. Results about an earlier version are hidden as long as
    results about the newest one. An answer drawn for a guarantee (``SamplePlan``, or a copy to
    be labeled again) is decided blind under any policy. The policies of named queues hide the
    verdict until the reviewer has decided the case there, or until it's settled there, so the
    strictest of them holds.

    Raises:
        UnknownRecord: There is no such case.

    """
    if store.team.is_hidden_by_queue(case_id, actor.name):
        return True
    shown = store.team.in_force(QueuePolicy).machine
    if shown == "first" and (
        store.team.strictest_shown() != "first"
        and store.cases.summary(case_id).state == "superseded"
    ):
        shown = "after"
    if shown == "first" and (
        case_id in store.team.in_force(SamplePlan).case_ids or store.relabelling.is_copy(case_id)
    ):
        shown = "after"
    if shown == "first":
        return False
    state = store.cases.summary(case_id).state
    if state == "superseded" and (newer := newer_version(store, case_id)) is not None:
        return machine_hidden(store, actor, newer)
    if state not in UNDECIDED:
        return False
    return shown == "never" or actor.name not in store.team.work(case_id).decided_by


def _without_machine(summary: CaseSummary) -> CaseSummary:
    """Return a summary without anything that depends on the audit's result."""
    scores = (
        "quality",
        "revised_quality",
        "confidence",
        "overall",
        "fault_probability",
        "disagreement",
    )
    hidden = dict.fromkeys(
        ("run_id", *scores, "invalid", "uncited", "iterations", "tier", "headline", "severity")
    )
    hidden |= dict.fromkeys(("models", "flags", "reasons"), ())
    if summary.standing in AUDIT_STANDINGS:
        hidden["standing"] = "to_review"
    state = "needs_review" if summary.state == "accepted" else summary.state
    if summary.state == "accepted":
        # the acceptance policy's name would reveal the acceptance; waiting cases have no reviewer
        hidden["reviewer"] = None
    return summary.model_copy(update=hidden | {"state": state})


def _is_policy_accept(entry: LogEntry | None) -> bool:
    return (
        entry is not None and entry.decision is not None and entry.decision.kind == "policy_accept"
    )


def shown_flags(run: Run, index: int) -> tuple[str, ...]:
    """Return the flags of an iteration's answer (``index`` counts from 0) and those of the run."""
    return (*faults(run.iterations[index]), *run_flags(run))


# Versions of a case, from its own reference to the earlier one and from the decision log.


def earlier_version(store: Store, case: Case) -> str | None:
    """Return the id of the previous version of a case, or None if this database doesn't have it.

    An imported file can name any id, so the digest is compared as well.
    """
    earlier = case.earlier_version
    if earlier is None:
        return None
    try:
        return earlier.id if store.cases.get(earlier.id).digest() == earlier.digest else None
    except UnknownRecord:
        return None


def newer_version(store: Store, case_id: str) -> str | None:
    """Return the id of the case that replaced this one, or None if it is the newest version."""
    log_filter = DecisionFilter(case_id=case_id, kinds=("new_version",), size=1)
    entries = store.decisions.entries(log_filter).rows
    return next((entry.decision.newer_case for entry in entries if entry.decision), None)


def versions_of(store: Store, case_id: str) -> tuple[str, ...]:
    """Return the ids of all versions of a case, oldest first.

    Raises:
        UnknownRecord: There is no such case.

    """
    earlier = _version_chain(case_id, lambda other: earlier_version(store, store.cases.get(other)))
    newer = _version_chain(case_id, lambda other: newer_version(store, other))
    return (*reversed(list(earlier)), case_id, *newer)


def _version_chain(case_id: str, following: Callable[[str], str | None]) -> Iterator[str]:
    seen = {case_id}  # an imported file may name versions that refer to each other in a circle
    while (other := following(case_id)) is not None and other not in seen:
        seen.add(other)
        yield other
        case_id = other


class CaseService(Service):
    """The use cases of cases and their evidence.

    ``summary``, ``find``, ``count``, ``facets``, ``values`` and ``neighbor`` read stored data
    without checks.
    """

    def __init__(self, store: Store, access: Access = OPEN) -> None:
        super().__init__(store, access)
        cases = store.cases
        self.summary, self.find, self.count = cases.summary, cases.search, cases.count_matching
        self.facets, self.values, self.neighbor = cases.facets, cases.values, cases.neighbor

    @requires("audit", ADD_CASES)
    def add(
        self, actor: Actor, cases: Iterable[Case], on_batch: Callable[[int], None] | None = None
    ) -> AddResult:
        """Store cases.

        A case whose id is stored with other content is reported as a conflict; the other cases are
        stored.
        """
        return self._store.cases.add_many(cases, on_batch=on_batch)

    @requires("audit", ADD_CASES)
    def add_one(self, actor: Actor, case: Case) -> Literal["added", "unchanged"]:
        """Store one case.

        Raises:
            CaseConflict: Another case has its id.
            NotAllowed: The actor's role doesn't allow imports.

        """
        return self._store.cases.add(case)

    def open(self, case_id: str, viewer: str | None = None) -> CaseView:
        """Return one case with its newest finished run and its log.

        Raises:
            UnknownRecord: There is no such case.

        """
        runs = self._store.runs.for_case(case_id)
        summary = self._store.cases.summary(case_id, viewer)
        copy = self._store.planted.find_revealed(case_id) if summary.state == "planted" else None
        finished = next((run.id for run in runs if run.readable), None)
        return CaseView(
            case=self._store.cases.get(case_id),
            summary=summary,
            runs=runs,
            run=self._store.runs.get(finished) if finished else None,
            decision=self._store.decisions.current(case_id),
            history=self._store.decisions.entries(DecisionFilter(case_id=case_id, size=200)).rows,
            planted=copy.fault if copy else None,
        )

    @requires("read")
    def open_for(self, actor: Actor, case_id: str) -> CaseView:
        """Return one case as this reviewer may see it now.

        Others' decisions and comments are left out while decisions of a shared case are missing. If
        the policy hides the machine's verdict, runs and figures are left out, and a case without an
        answer shows the drafted one.

        Raises:
            UnknownRecord: There is no such case.

        """
        view = self.open(case_id, actor.name)
        seen = DecisionFilter(case_id=case_id, size=200, blind_to=actor.name)
        view = view._replace(history=self._store.decisions.entries(seen).rows)
        if self._is_sealed(actor, view):
            view = view._replace(decision=None)
        elif view.decision is not None:
            decision = self._store.decisions.shown_to(actor.name, view.decision)
            view = view._replace(decision=decision)
        if not machine_hidden(self._store, actor, case_id):
            return view
        case = view.case
        if case.answer is None and view.run is not None and view.run.iterations:
            case = case.model_copy(update={"answer": view.run.iterations[0].answer})
        return CaseView(
            case=case,
            summary=_without_machine(view.summary),
            runs=(),
            run=None,
            decision=None if _is_policy_accept(view.decision) else view.decision,
            history=view.history,
            machine_hidden=True,
        )

    def _is_sealed(self, actor: Actor, view: CaseView) -> bool:
        """Return whether another person's decision is hidden, as it is in the history."""
        if view.decision is None or not self._store.team.work(view.case.id).pending:
            return False
        made = view.decision.decision
        return made is None or (made.kind == "decision" and made.reviewer != actor.name)

    @requires("read")
    def note_opened(self, actor: Actor, case_id: str) -> None:
        """Remember that this person has seen the answer of a case, if they may decide.

        Actions on many cases include a case whose results a policy hides only if it was opened. A
        later decision isn't blind if the machine's verdict was shown.

        Raises:
            UnknownRecord: There is no such case.

        """
        if actor.name and self.access.allows(actor, "decide"):
            seen = (
                not machine_hidden(self._store, actor, case_id)
                and self._store.cases.summary(case_id).run_id is not None
            )
            self._store.batches.note_opening(case_id, actor.name, machine_seen=seen)

    @requires("read")
    def find_for(self, actor: Actor, case_filter: CaseFilter) -> CasePage:
        """Return one page of the matching cases, as this reviewer may see them now.

        If the policy hides the machine's verdict, neither the filters nor the order use it.
        """
        case_filter = case_filter.model_copy(update={"viewer": actor.name})
        # Without a blind policy or a drawn sample nothing is hidden, so the rows needn't be checked
        # one by one.
        drawn = any(self._store.team.in_force(plan).version for plan in (SamplePlan, RelabelPlan))
        if not self.hides_machine_from(actor) and not drawn:
            return self.find(case_filter)
        page = self.find(self.blind_filter(actor, case_filter))
        rows = (
            _without_machine(row) if machine_hidden(self._store, actor, row.id) else row
            for row in page.rows
        )
        return page.model_copy(update={"rows": tuple(rows)})

    @requires("read")
    def summary_for(self, actor: Actor, case_id: str) -> CaseSummary:
        """Return the row of one case, as this reviewer may see it now.

        Raises:
            UnknownRecord: There is no such case.

        """
        summary = self._store.cases.summary(case_id, actor.name)
        return _without_machine(summary) if machine_hidden(self._store, actor, case_id) else summary

    @requires("read")
    def hides_machine_from(self, actor: Actor) -> bool:
        """Return whether the policy hides audit results from this reviewer for any case.

        While it does, counts and lists of audits are hidden too, because figures over all cases
        would reveal something about cases that the reviewer hasn't decided.
        """
        return self._store.team.hides_machine_from(actor.name)

    @requires("read")
    @may_require("oversee", "see figures over all cases under a blind policy")
    def hides_figures_from(self, actor: Actor) -> bool:
        """Return whether the policy hides figures over all cases from this reviewer.

        Signed-in leads and admins see them: they're responsible for the policy and may never decide
        a case.
        """
        return self.hides_machine_from(actor) and not actor.may("oversee")

    @requires("read")
    def blind_filter(self, actor: Actor, case_filter: CaseFilter) -> CaseFilter:
        """Return the filter without the parts that reveal the machine's verdict, if it is hidden
        from this reviewer.
        """
        if not self.hides_machine_from(actor):
            return case_filter
        policy = self._store.team.in_force(QueuePolicy)
        update: dict[str, Any] = {name: CaseFilter.model_fields[name].default for name in BY_AUDIT}
        if set(AUDIT_STANDINGS) & set(case_filter.standings):
            update["standings"] = tuple(
                standing
                for standing in NOT_DECIDED
                if standing in (*case_filter.standings, *AUDIT_STANDINGS)
            )
            update["standings"] += ("decided",) * ("decided" in case_filter.standings)
        if ORDERS[case_filter.order].by_audit:
            update |= {"order": "random", "seed": policy.seed + 1}
        # A filter by the policy's name would list the auto-accepted cases.
        update["reviewers"] = tuple(name for name in case_filter.reviewers if name != POLICY.name)
        if {"needs_review", "accepted"} & set(case_filter.states):
            update["states"] = tuple(
                dict.fromkeys((*case_filter.states, "needs_review", "accepted"))
            )
        return case_filter.model_copy(update=update)

    @requires("read")
    def standings_for(self, actor: Actor, case_filter: CaseFilter) -> tuple[dict[str, int], int]:
        """Count the matching cases by standing, and those with less serious issues only.

        They are counted as this reviewer may see them.
        """
        standings, minor = self._store.cases.standings(
            self.blind_filter(actor, case_filter.model_copy(update={"viewer": actor.name}))
        )
        if self.hides_machine_from(actor):
            return _merge_audit_standings(standings), 0
        return standings, minor

    @requires("read")
    def facets_for(self, actor: Actor) -> Facets:
        """Count the cases by each value that this reviewer may filter by now.

        If verdicts are hidden from them, auto-accepted cases count as cases that need review.
        """
        facets = self._store.cases.facets(actor.name)
        if not self.hides_machine_from(actor):
            return facets
        standings, states = (
            _merge_audit_standings(facets.standings),
            _count_accepted_as_waiting(facets.states),
        )
        reviewers = {name: count for name, count in facets.reviewers.items() if name != POLICY.name}
        shown = {"standings": standings, "states": states, "reviewers": reviewers}
        return facets.model_copy(update={**shown, "flags": {}, "minor": 0})

    @requires("read")
    def values_for(self, actor: Actor, case_filter: CaseFilter, field: str) -> dict[str, int]:
        """Count the cases that would be listed with each value of a filter's field, as this
        reviewer may see it.
        """
        case_filter = case_filter.model_copy(update={"viewer": actor.name, field: ()})
        values = self.values(self.blind_filter(actor, case_filter), field)
        if not self.hides_machine_from(actor):
            return values
        # The policy's count is the number of auto-accepted cases.
        values.pop(POLICY.name, None)
        if field in BY_AUDIT:
            return {}
        return _count_accepted_as_waiting(values) if field == "states" else values
