"""Reassessment: what the current acceptance rule makes of stored runs, from their stored
iterations.

Nothing is audited again and nothing that was stored is rewritten. A run that the current rule no
longer accepts gets an entry that undoes its acceptance, one that it accepts now gets an entry of
acceptance, both signed by the policy and naming the rule and who asked. What a person has decided
or undone is left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

from masis.api.exam_results import examinee_of_run, unexamined_name
from masis.audit import acceptance
from masis.audit.acceptance import RULE_VERSION, Acceptability
from masis.errors import Removed, StaleVersion, StoreError
from masis.schema.actor import Actor
from masis.schema.review import Decision
from masis.schema.run import ReviewCode, Run
from masis.schema.wording import count_noun
from masis.services.access import OPEN, Access
from masis.services.audits import POLICY, acceptance_entry
from masis.services.reviews import name_of
from masis.services.trust.guarantees import Guarantees, review_settings
from masis.settings import Settings
from masis.store import Store
from masis.store.records import AssessedCase

BATCH = 50
"""Runs that are read, and with ``apply`` written, in one transaction."""


@dataclass
class Reassessment:
    """What the current rule changes: counts, and for what it no longer accepts how often each
    reason is given.

    ``left`` are runs that could not be read or that somebody changed meanwhile; each comes again
    the next time.
    """

    total: int
    rule: str = RULE_VERSION
    done: int = 0
    to_review: int = 0
    to_accepted: int = 0
    skipped: int = 0
    reasons: Counter[ReviewCode] = field(default_factory=Counter)
    applied: bool = False

    @property
    def changed(self) -> int:
        """Return how many cases change their state."""
        return self.to_review + self.to_accepted


class ReassessmentService:
    """The use cases of recomputing acceptance on one database, by the thresholds of
    these settings.
    """

    def __init__(self, store: Store, settings: Settings, access: Access = OPEN) -> None:
        self._store, self._settings, self._access = store, settings, access
        self._guarantees = Guarantees(store)

    def waiting(self, *, again: bool = False) -> int:
        """Return how many cases stand by a run that an earlier rule judged.

        ``again`` counts those that the current rule has judged as well.
        """
        return self._store.runs.count_to_assess(None if again else RULE_VERSION)

    def run(
        self,
        actor: Actor,
        *,
        apply: bool = False,
        again: bool = False,
        on_progress: Callable[[Reassessment], None] | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> Reassessment:
        """Reassess the runs that cases without a person's decision stand by, and say what changes.

        Nothing is written without ``apply``, whose entries name the actor. With ``again`` also runs
        are reassessed that the current rule has judged, for thresholds that were changed since.
        ``on_progress`` hears after each batch how far it has come; ``stopped`` is asked between
        batches: what is written by then stays, and the next call goes on behind it. Raises
        NotAllowed, and InputError where the actor has no name and ``apply`` is asked.
        """
        self._access.require(actor, "oversee")
        name = name_of(actor) if apply else actor.name
        rule = None if again else RULE_VERSION
        found = Reassessment(self._store.runs.count_to_assess(rule), applied=apply)
        after = 0
        while not (stopped is not None and stopped()):
            batch = self._store.runs.to_assess(rule, after=after, limit=BATCH)
            if not batch:
                break
            after = batch[-1].case_seq
            with self._store.transaction() if apply else nullcontext():
                for each in batch:
                    self._reassess_case(each, found, name)
            if on_progress is not None:
                on_progress(found)
        return found

    def _reassess_case(self, each: AssessedCase, counts: Reassessment, name: str) -> None:
        counts.done += 1
        try:
            run, case = self._store.runs.get(each.run_id), self._store.cases.get(each.case_id)
        except (Removed, StoreError):
            counts.skipped += 1
            return
        found = acceptance.assess(
            run.iterations,
            case,
            run.termination_reason,
            self._settings,
            chosen=run.best,
            unexamined=unexamined_name(examinee_of_run(run, self._settings), self._settings),
        )
        assessed = self._guarantees.reassess(found, run, case, review_settings(self._settings))
        drawn = assessed.acceptance.passed and acceptance.drawn_for_spot_check(
            case.id, self._settings
        )
        waits = not each.accepted and not each.touched
        entry: Decision | None = None
        if each.accepted and not assessed.acceptance.passed:
            entry = _revoke_acceptance(each, assessed, name)
        elif waits and assessed.acceptance.passed and not drawn:
            entry = _accept_by_rule(each, run, name, assessed)
        if counts.applied:
            try:
                if entry is not None:
                    self._store.decisions.append(entry, seen_version=each.version)
                self._store.runs.note_assessment(
                    each.run_id, assessed.acceptance, assessed.reasons, drawn=waits and drawn
                )
            except StaleVersion:
                counts.skipped += 1
                return
        if entry is None:
            return
        if each.accepted:
            counts.to_review += 1
            counts.reasons.update({reason.code for reason in assessed.reasons})
        else:
            counts.to_accepted += 1


def _revoke_acceptance(each: AssessedCase, assessed: Acceptability, name: str) -> Decision:
    """Return the entry that undoes an acceptance; it names no run, so that retention counts it as
    nobody's decision.
    """
    reasons = " ".join(reason.message for reason in assessed.reasons)
    return Decision(
        kind="undo",
        source="CODE",
        reviewer=POLICY.name,
        case_id=each.case_id,
        run_id=None,
        undoes=each.entry_id,
        reason=f"Acceptance rule {RULE_VERSION} does not accept it: {reasons}",
        token=f"reassess:{each.run_id}:{each.version}",
        extra={
            "rule": RULE_VERSION,
            "by": name,
            "reasons": sorted({reason.code for reason in assessed.reasons}),
        },
    )


def _accept_by_rule(each: AssessedCase, run: Run, name: str, assessed: Acceptability) -> Decision:
    entry = acceptance_entry(run.model_copy(update={"acceptance": assessed.acceptance}))
    return entry.model_copy(
        update={
            "reason": f"{entry.reason} by acceptance rule {RULE_VERSION}",
            "token": f"reassess:{each.run_id}:{each.version}",
            "extra": entry.extra | {"rule": RULE_VERSION, "by": name},
        }
    )


def result_lines(found: Reassessment) -> list[str]:
    """Return what a reassessment changed or would change, a line each."""
    review, accepted = "now need review", "now auto-accepted"
    if not found.applied:
        review, accepted = "would now need review", "would now be auto-accepted"
    lines = [
        (
            f"{count_noun(found.done, 'case')} of {found.total:,} reassessed by acceptance rule"
            f" {found.rule}."
        ),
        f"{count_noun(found.to_review, 'auto-accepted answer')} {review}.",
        f"{count_noun(found.to_accepted, 'answer')} that needed review {accepted}.",
    ]
    if found.skipped:
        lines.append(
            f"{count_noun(found.skipped, 'case')} left: not readable, or changed meanwhile."
        )
    return lines
