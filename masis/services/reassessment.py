"""Apply the current acceptance rule to stored runs, using their stored iterations.

Answers aren't audited again, and stored runs aren't changed. If the current rule no longer accepts
a run, a log entry undoes its acceptance; if it now accepts the run, an entry accepts it. Both are
signed by the policy and name the rule and the person who asked. People's decisions and undos aren't
changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

from masis.api.exam_results import build_examinee_of_run, find_unexamined_name
from masis.audit import acceptance
from masis.audit.acceptance import RULE_VERSION, Acceptability
from masis.errors import Removed, StaleVersion, StoreError
from masis.schema.actor import Actor
from masis.schema.review import Decision
from masis.schema.rules import ReviewCode
from masis.schema.run import Run
from masis.schema.wording import count_noun
from masis.services.access import OPEN, Access, requires
from masis.services.audits import POLICY, acceptance_entry
from masis.services.reviews import name_of
from masis.services.trust.guarantees import Guarantees, review_settings
from masis.settings import Settings
from masis.store import Store
from masis.store.records import AssessedCase

BATCH = 50
"""The number of runs that are read, and with ``apply`` written, in one transaction."""


@dataclass
class Reassessment:
    """Counts of the changes, and of the reasons for lost acceptances.

    ``skipped`` runs couldn't be read or were changed in the meantime; the next reassessment retries
    them.
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
        """The number of cases that change their state."""
        return self.to_review + self.to_accepted


class ReassessmentService:
    """The use cases of reassessing the acceptance on one database under these settings."""

    def __init__(self, store: Store, settings: Settings, access: Access = OPEN) -> None:
        self._store, self._settings, self.access = store, settings, access
        self._guarantees = Guarantees(store)

    def waiting(self, *, again: bool = False) -> int:
        """Return how many cases have a run that was judged by an earlier rule.

        ``again`` also counts the runs that the current rule has judged.
        """
        return self._store.runs.count_to_assess(None if again else RULE_VERSION)

    @requires("oversee", "reassess audits")
    def run(
        self,
        actor: Actor,
        *,
        apply: bool = False,
        again: bool = False,
        on_progress: Callable[[Reassessment], None] | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> Reassessment:
        """Reassess the runs of cases without a person's decision and return the changes.

        Args:
            actor: A lead.
            apply: Write the changes; the entries name the actor.
            again: Also reassess runs that the current rule has judged, after thresholds have
                changed.
            on_progress: Called after each batch.
            stopped: Checked between batches. Written batches stay, and the next call continues
                after them.

        Raises:
            NotAllowed: The actor isn't a lead.
            InputError: ``apply`` is set and the actor has no name.

        """
        name = name_of(actor) if apply else actor.name
        rule = None if again else RULE_VERSION
        result = Reassessment(self._store.runs.count_to_assess(rule), applied=apply)
        after = 0
        while not (stopped is not None and stopped()):
            batch = self._store.runs.to_assess(rule, after=after, limit=BATCH)
            if not batch:
                break
            after = batch[-1].case_seq
            with self._store.transaction() if apply else nullcontext():
                for assessed in batch:
                    self._reassess_case(assessed, result, name)
            if on_progress is not None:
                on_progress(result)
        return result

    def _reassess_case(self, stored: AssessedCase, counts: Reassessment, name: str) -> None:
        counts.done += 1
        try:
            run, case = self._store.runs.get(stored.run_id), self._store.cases.get(stored.case_id)
        # Retention or a redaction may have removed it since the batch was read.
        except (Removed, StoreError):
            counts.skipped += 1
            return
        by_rule = acceptance.assess(
            run.iterations,
            case,
            run.termination_reason,
            self._settings,
            chosen=run.best,
            unexamined=find_unexamined_name(
                build_examinee_of_run(run, self._settings), self._settings
            ),
        )
        assessed = self._guarantees.reassess(by_rule, run, case, review_settings(self._settings))
        drawn = assessed.acceptance.passed and acceptance.drawn_for_spot_check(
            case.id, self._settings
        )
        waits = not stored.accepted and not stored.touched
        entry: Decision | None = None
        if stored.accepted and not assessed.acceptance.passed:
            entry = _revoke_acceptance(stored, assessed, name)
        elif waits and assessed.acceptance.passed and not drawn:
            entry = _accept_by_rule(stored, run, name, assessed)
        if counts.applied:
            try:
                if entry is not None:
                    self._store.decisions.append(entry, seen_version=stored.version)
                self._store.runs.note_assessment(
                    stored.run_id, assessed.acceptance, assessed.reasons, drawn=waits and drawn
                )
            # A person has decided the case in the meantime, and their decision counts.
            except StaleVersion:
                counts.skipped += 1
                return
        if entry is None:
            return
        if stored.accepted:
            counts.to_review += 1
            counts.reasons.update({reason.code for reason in assessed.reasons})
        else:
            counts.to_accepted += 1


def _revoke_acceptance(stored: AssessedCase, assessed: Acceptability, name: str) -> Decision:
    """Return the entry that undoes an acceptance.

    It doesn't name the run, because retention would treat a named run as decided by a person.
    """
    reasons = " ".join(reason.message for reason in assessed.reasons)
    return Decision(
        kind="undo",
        source="CODE",
        reviewer=POLICY.name,
        case_id=stored.case_id,
        run_id=None,
        undoes=stored.entry_id,
        reason=f"Acceptance rule {RULE_VERSION} doesn't accept it: {reasons}",
        # With the version, so that a reassessment after a later change makes an entry of its own.
        token=f"reassess:{stored.run_id}:{stored.version}",
        extra={
            "rule": RULE_VERSION,
            "by": name,
            "reasons": sorted({reason.code for reason in assessed.reasons}),
        },
    )


def _accept_by_rule(stored: AssessedCase, run: Run, name: str, assessed: Acceptability) -> Decision:
    entry = acceptance_entry(run.model_copy(update={"acceptance": assessed.acceptance}))
    return entry.model_copy(
        update={
            "reason": f"{entry.reason} by acceptance rule {RULE_VERSION}",
            "token": f"reassess:{stored.run_id}:{stored.version}",
            "extra": entry.extra | {"rule": RULE_VERSION, "by": name},
        }
    )


def result_lines(result: Reassessment) -> list[str]:
    """Return the changes of a reassessment in words, one line each."""
    review, accepted = "now need review", "now auto-accepted"
    if not result.applied:
        review, accepted = "would now need review", "would now be auto-accepted"
    lines = [
        (
            f"{count_noun(result.done, 'case')} of {result.total:,} reassessed by acceptance rule"
            f" {result.rule}."
        ),
        f"{count_noun(result.to_review, 'auto-accepted answer')} {review}.",
        f"{count_noun(result.to_accepted, 'answer')} that needed review {accepted}.",
    ]
    if result.skipped:
        skipped = count_noun(result.skipped, "case")
        lines.append(
            f"{skipped} skipped because they couldn't be read or were changed in the meantime."
        )
    return lines
