"""Decide cases, undo and redact decisions, and read the decision log."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from masis import version
from masis.errors import AnotherAnswer, Conflict, InputError, Removed, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.preference import PreferenceEntry
from masis.schema.review import (
    BATCH,
    IMPORTED,
    REVISION,
    SHOWN_UNKNOWN,
    Decision,
    EntryKind,
    LogEntry,
    Verdict,
    answer_digest,
    answer_name,
    settled_answer,
)
from masis.schema.run import Iteration, Run
from masis.schema.screening import ScreeningEntry
from masis.schema.team import LabelTypes, QueuePolicy, Rubric
from masis.services.access import OPEN, Access, Service, may_require, requires
from masis.services.cases import machine_hidden, versions_of
from masis.services.decision_imports import (
    PERSONS_KINDS,
    ExportedRow,
    decision_here,
    original_id,
    token_of,
)
from masis.services.decision_rules import (
    DecidedAnswer,
    is_unchanged,
    problems,
    unknown_citations,
    why_final_needs_reason,
    with_reason_code,
)
from masis.services.drafts import case_subject
from masis.services.label_names import with_known_names
from masis.services.labels import check_quotations
from masis.services.queue_rules import assert_member, label_types_of
from masis.services.records import CaseFilter, CaseRedaction, DecisionFilter, ReviewQueue
from masis.settings import Settings
from masis.store import Store
from masis.store.reviews.states import WORK, answer_decided


class DecisionInForce(NamedTuple):
    """A decision in force, when it was made, and the answer it leaves (None if there is none).

    ``seq`` and ``entry_id`` name its entry in the decision log.
    """

    seq: int
    entry_id: str
    at: str
    decision: Decision
    answer: str | None


SIGNED_IN_BY = "signed_in_by"
"""Key in an entry's ``extra``: the sign-in provider that verified the reviewer's name.

Without it, the name is what a person typed.
"""


class ReviewService(Service):
    """The use cases of the decision log, which ``masis/store/reviews/decisions.py`` writes.

    ``get``, ``current``, ``individual``, ``entries`` and ``iterate`` read the log without checks.
    ``shown_to`` returns an entry that was just written as its author may see it.
    """

    def __init__(
        self, store: Store, access: Access = OPEN, settings: Settings | None = None
    ) -> None:
        super().__init__(store, access)
        self._settings = settings
        log = store.decisions
        self.get, self.current, self.individual, self.entries = (
            log.get,
            log.current,
            log.individual,
            log.entries,
        )
        self.iterate, self.check_signatures = log.iterate, store.check_signatures
        self.shown_to = log.shown_to

    @requires("decide", "decide cases")
    @may_require("oversee", "adjudicate cases")
    def submit(
        self,
        actor: Actor,
        decision: Decision,
        *,
        seen_version: int | None = None,
        shown: str | None = None,
        kept_labels: int = 0,
    ) -> LogEntry:
        """Append a decision under the actor's name and remove its draft, in one transaction.

        Args:
            actor: The reviewer.
            decision: The decision. If its token is already in the log, the first entry is returned.
            seen_version: The version of the case that the actor looked at.
            shown: The ``answer_digest`` of the answer that the actor was shown; pages always pass
                it.
            kept_labels: How many labels, from the first, the decision repeats from an earlier one
                (``label_names.with_known_names``).

        Raises:
            NotAllowed: The actor's role doesn't allow decisions.
            InputError: The decision isn't valid (``decision_rules.problems``).
            AnotherAnswer: The decision names another answer than the one shown; the draft stays.
            StaleVersion: The case has changed since it was looked at; the draft stays.
            CaseHeld: Another reviewer has taken the case; the draft stays.
            InputError: The actor has no name, a reported issue quotes words that aren't at its
                place in the answer, or a label has a name that doesn't exist.
            UnknownRecord: There is no such case, run or iteration.
            StoreError: The run belongs to another case, or all decisions that the case needs have
                been made.

        """
        if decision.kind != "decision":
            self.access.require(actor, "oversee", "adjudicate cases")
        own = with_reason_code(sign_decision(actor, decision))
        queue = assert_member(self._store, actor, own.case_id, own.queue or "")
        own = own.model_copy(update={"queue": queue.id if queue else None})
        with self._store.transaction():
            # A repeated token is answered with its first entry. The checks are skipped, because the
            # entry itself may have made them fail, for example by settling the case.
            fresh = not self._store.decisions.has_token(own.token)
            if own.kind == "decision" and fresh:
                self._store.team.assert_free(own.case_id, actor.name, own.queue or "")
                if shown is not None and shown != answer_digest(self.answer_of(own)):
                    raise AnotherAnswer(
                        f"{answer_name(own.iteration)} of case {own.case_id!r} isn't the answer"
                        " that you were shown. Nothing was recorded. Read the answer on the page,"
                        " then decide."
                    )
                self._assert_valid(actor, own)
                own = self._with_revision(actor, own)
                own = own.model_copy(update=self._policy_and_rubric(actor, own))
            if fresh:
                own = self._with_seconds(self._with_label_types(own, kept_labels))
            entry = self._store.decisions.append(own, seen_version=seen_version)
            if not fresh:
                _assert_repeated(entry, own)
            self._store.team.release(own.case_id, actor.name)
            self._store.drafts.clear(actor.name, case_subject(decision.case_id))
        return entry

    def answer_of(self, decision: Decision) -> str:
        """Return the text of the answer that a decision is about, by default the original answer.

        Raises:
            UnknownRecord: There is no such run or iteration.
            StoreError: The run belongs to another case.
            Removed: The answer has been removed.

        """
        return self._answer_and_iteration(decision)[0]

    @requires("read")
    def decided_answer(self, actor: Actor, decision: Decision) -> DecidedAnswer:
        """Return what the rules need of the judged answer, as far as the actor may see it.

        Raises:
            UnknownRecord: There is no such run or iteration.
            StoreError: The run belongs to another case.

        """
        final = decision.kind == "adjudication"
        why = self.explain_needed_reason(decision.case_id, decision.verdict) if final else ""
        blind = machine_hidden(self._store, actor, decision.case_id)
        try:
            text, iteration = self._answer_and_iteration(decision)
        except Removed:
            unknown = self._unknown_citations(decision)
            return DecidedAnswer(None, final_needs_reason=why, unknown_citations=unknown)
        unknown = self._unknown_citations(decision, text if blind else "")
        issues = iteration.issues if iteration is not None and not blind else ()
        serious = tuple(issue for issue in issues if issue.major)
        return DecidedAnswer(text, serious, why, unknown)

    def _unknown_citations(self, decision: Decision, before: str = "") -> tuple[str, ...]:
        """Return the references of a correction that name no evidence, without those of ``before``.

        A reviewer from whom the audit is hidden isn't told about those of the answer itself.
        """
        corrected = decision.corrected_answer
        if decision.verdict != "override" or not corrected:
            return ()
        case = self._store.cases.get(decision.case_id)
        known = unknown_citations(before, case, self._settings) if before else ()
        found = unknown_citations(corrected, case, self._settings)
        return tuple(reference for reference in found if reference not in known)

    def _assert_valid(self, actor: Actor, decision: Decision) -> None:
        """Raise InputError for the first problem of a decision."""
        for problem in problems(decision, self.decided_answer(actor, decision)):
            raise problem.as_error()

    def _answer_and_iteration(self, decision: Decision) -> tuple[str, Iteration | None]:
        """Return the text that a decision is about, and its iteration (None if it wasn't audited).

        Without a run, a decision is about the original answer, as the newest finished run audited
        it.
        """
        if decision.run_id is None:
            case, newest = (
                self._store.cases.get(decision.case_id),
                newest_run(self._store, decision.case_id),
            )
            original = self._store.runs.get(newest).iterations[0] if newest else None
            if original is not None and case.answer in (None, original.answer):
                return original.answer, original
            return case.answer or "", None
        run = self._store.runs.get(decision.run_id)
        if run.case_id != decision.case_id:
            raise Conflict(
                f"run {run.id!r} belongs to case {run.case_id!r}, not to {decision.case_id!r}."
            )
        if decision.iteration is None and not run.iterations:
            return run.final_answer, None
        number = decision.iteration or 1
        if not 1 <= number <= len(run.iterations):
            raise UnknownRecord(f"run {run.id!r} has no iteration {number}.")
        return run.iterations[number - 1].answer, run.iterations[number - 1]

    def _with_seconds(self, decision: Decision) -> Decision:
        """Add how long the reviewer had the case, if that's known.

        It is unknown for decisions that were imported from a file.
        """
        leases = self._store.team.work(decision.case_id).leases
        taken_at = next(
            (lease.taken_at for lease in leases if lease.reviewer == decision.reviewer), None
        )
        if taken_at is None or "seconds" in decision.extra:
            return decision
        now = datetime.fromisoformat(self._store.database.now())
        seconds = (now - datetime.fromisoformat(taken_at)).total_seconds()
        return decision.model_copy(
            update={"extra": decision.extra | {"seconds": round(seconds, 1)}}
        )

    def _with_revision(self, actor: Actor, decision: Decision) -> Decision:
        """Record the revision of the audit that the decision approves or takes as correction.

        People who can't see the audit wrote the same words themselves. A correction that an
        adjudication takes from a reviewer is what it was in the reviewer's decision.
        """
        if decision.run_id is None or decision.verdict not in ("approve", "override"):
            return decision
        if decision.verdict == "override":
            source = self._source_of_correction(decision)
            if source is not None:
                kept = {REVISION: source.extra[REVISION]} if REVISION in source.extra else {}
                return decision.model_copy(update={"extra": decision.extra | kept})
            if machine_hidden(self._store, actor, decision.case_id):
                return decision
        try:
            run = self._store.runs.get(decision.run_id)
        except Removed:
            return decision
        corrected = decision.corrected_answer or ""
        if decision.verdict == "approve":
            number = decision.iteration or 1
        else:
            revisions = enumerate(run.iterations[1:], 2)
            same = (at for at, made in revisions if is_unchanged(corrected, made.answer))
            number = next(same, 1)
        if number == 1:
            return decision
        revision = {"number": number, "suggested": run.best == number - 1}
        return decision.model_copy(update={"extra": decision.extra | {REVISION: revision}})

    def _source_of_correction(self, final: Decision) -> Decision | None:
        """Return the reviewer's decision from which an adjudication takes its correction."""
        if final.kind != "adjudication":
            return None
        taken_from = final.extra.get("taken_from")
        for entry in self.individual(final.case_id):
            made = entry.decision
            if made is not None and made.reviewer == taken_from:
                return made if made.corrected_answer == final.corrected_answer else None
        return None

    def _with_label_types(self, decision: Decision, kept: int = 0) -> Decision:
        """Check the labels of a decision, and record the version of the label types.

        The first ``kept`` labels repeat an earlier decision.

        Raises:
            InputError: A label, a type or a chunk is unknown, or a quotation isn't at its place.

        """
        if not decision.labels:
            return decision
        types = self._store.team.in_force(LabelTypes)
        offered = types
        if decision.queue:
            offered = label_types_of(self._store.team.queue(decision.queue), types)
        labels = with_known_names(decision.labels, offered, kept=kept)
        decision = decision.model_copy(update={"labels": labels})
        evidence = self._store.cases.get(decision.case_id).evidence
        check_quotations(labels, self.answer_of(decision), evidence, kept=kept)
        if not decision.reported:
            return decision
        return decision.model_copy(
            update={"versions": decision.versions | {"label_types": str(types.version)}}
        )

    def _policy_and_rubric(self, actor: Actor, decision: Decision) -> dict[str, Any]:
        """Return the fields that the policy and the rubric change in a decision.

        Raises:
            InputError: A score isn't one of the rubric's.

        """
        update: dict[str, Any] = {}
        if machine_hidden(self._store, actor, decision.case_id):
            if SHOWN_UNKNOWN not in decision.machine_shown:
                seen = self._store.batches.has_seen_machine(decision.case_id, actor.name)
                update["machine_shown"] = (SHOWN_UNKNOWN,) if seen else ()
            # Pages that hide the run can't name it. The original answer is its first iteration.
            if decision.run_id is None:
                newest = newest_run(self._store, decision.case_id)
                update |= {"run_id": newest, "iteration": 1} if newest else {}
        if decision.rubric_scores:
            queue = self._store.team.queue(decision.queue) if decision.queue else None
            rubric = (queue and queue.rubric) or self._store.team.in_force(Rubric)
            scores = {score.name: score for score in rubric.scores}
            for name, value in decision.rubric_scores.items():
                if name not in scores or not scores[name].accepts(value):
                    raise InputError(
                        f"{value!r} isn't a value of the score {name!r} in"
                        f" {_rubric_words(queue, rubric)}",
                        hint="Reload the page, because the rubric may have changed.",
                        field="rubric_scores",
                    )
            own_rubric = queue is not None and queue.rubric is not None
            version_of = {} if own_rubric else {"team_rubric": str(rubric.version)}
            update["versions"] = decision.versions | version_of
        return update

    @requires("oversee", "adjudicate cases")
    def adjudicate(
        self,
        actor: Actor,
        decision: Decision,
        *,
        seen_version: int | None = None,
        kept_labels: int = 0,
    ) -> LogEntry:
        """Append the final verdict on a case of several reviewers.

        All individual decisions stay in the log.

        It raises the errors of ``submit``, and StoreError if the case has no decisions to
        adjudicate, some are missing, or one of them is the actor's.
        """
        work = self._store.team.work(decision.case_id)
        if work.policy is None or not work.decided_by:
            raise Conflict(
                f"case {decision.case_id!r} has no decisions of several reviewers to adjudicate."
            )
        if work.pending:
            raise Conflict(
                f"case {decision.case_id!r} still lacks {work.pending} of {work.policy.reviewers}"
                " decisions."
            )
        if actor.name in work.decided_by:
            raise Conflict("you decided this case yourself, so another person must adjudicate it.")
        queue = self._store.team.disputed_queue(decision.case_id)
        final = with_reason_code(
            sign_decision(
                actor, decision.model_copy(update={"kind": "adjudication", "queue": queue})
            )
        )
        self._assert_valid(actor, final)
        final = self._with_revision(actor, self._with_label_types(final, kept_labels))
        entry = self._store.decisions.append(final, seen_version=seen_version)
        _assert_repeated(entry, final)  # the token may have been another verdict's
        return entry

    @requires("oversee", "import decisions of other reviewers")
    def import_entry(
        self, actor: Actor, entry: LogEntry, row: ExportedRow, *, file: str, keep_unknown: bool
    ) -> tuple[LogEntry, bool]:
        """Record a decision that was made in another database, in its reviewer's name.

        The entry is marked as imported and never counts as blind. Rubric scores aren't imported,
        since they follow another team's rubric.

        Args:
            actor: Who imports it.
            entry: The entry of the export.
            row: Its row. The case must be stored.
            file: The digest of the file.
            keep_unknown: Whether references of a corrected answer that name no evidence are kept.

        Returns:
            The entry here, and whether it is new. The same decision is recorded only once.

        Raises:
            Conflict: The case has decisions that were made here, or is shared between reviewers
                here, or an adjudication lacks its decisions.
            InputError: The decision isn't valid here, such as a label type that doesn't exist.
            UnknownRecord: The answer that it is about isn't here.

        """
        name, store = name_of(actor), self._store
        with store.transaction():
            if (known := self._known_entry(entry)) is not None:
                _assert_same_decision(known, entry, row.case.id)
                return known, False
            if store.cases.get(row.case.id).digest() != row.case.digest():
                raise Conflict(f"case {row.case.id!r} is stored with other content.")
            self._assert_only_imported(row.case.id)
            runs = [
                store.runs.get(run.id)
                for run in store.runs.for_case(row.case.id)
                if run.readable and run.iterations
            ]
            rubric = store.team.in_force(Rubric)
            decision = decision_here(entry, row, runs, file, name, rubric)
            unknown = self._unknown_citations(decision)
            if keep_unknown:
                decision = decision_here(entry, row, runs, file, name, rubric, keep=unknown)
            # The issues that an audit here left open say nothing about what the reviewer saw there.
            answer = DecidedAnswer(self.answer_of(decision), unknown_citations=unknown)
            for problem in problems(decision, answer):
                raise problem.as_error()
            if decision.kind == "adjudication":
                work = store.team.work(decision.case_id)
                if work.policy is None or work.pending:
                    raise Conflict(
                        f"the decision {entry.id!r} is the final verdict of several reviewers, and"
                        " not all their decisions could be imported."
                    )
            else:
                store.team.assert_free(decision.case_id, decision.reviewer)
            return store.decisions.append(self._with_label_types(decision)), True

    def _known_entry(self, entry: LogEntry) -> LogEntry | None:
        """Return the entry of a decision that was made here or imported earlier, or None."""
        try:
            return self._store.decisions.get(original_id(entry))
        except UnknownRecord:
            return self._store.decisions.with_token(token_of(entry))

    def _assert_only_imported(self, case_id: str) -> None:
        """Raise Conflict if decisions on a case are made here, or will be made blind."""
        made_filter = DecisionFilter(case_id=case_id, kinds=PERSONS_KINDS, size=200)
        made = self._store.decisions.entries(made_filter).rows
        is_own = any(
            entry.decision is None or IMPORTED not in entry.decision.extra for entry in made
        )
        # The same words with and without decisions, because their number may be hidden.
        if self._store.team.in_force(QueuePolicy).for_case(case_id) is not None:
            raise Conflict(
                f"case {case_id!r} is shared between several reviewers here, so decisions of"
                " another database aren't imported."
            )
        if is_own:
            raise Conflict(
                f"case {case_id!r} has decisions that were made here, so those of another database"
                " aren't imported."
            )

    def settled_by(self, case_id: str) -> tuple[str, ...]:
        """Return the people who settled a case: one person, or all reviewers who agreed.

        Raises:
            UnknownRecord: There is no such case.

        """
        entry = self._store.decisions.current(case_id)
        final = entry.decision if entry else None
        if final is None:
            return ()
        if final.kind != "decision" or final.policy is None or final.policy.rule == "first":
            return (final.reviewer,)
        decisions = [
            entry.decision
            for entry in self._store.decisions.individual(case_id)
            if entry.decision is not None
        ]
        return tuple(
            decision.reviewer
            for decision in decisions
            if (decision.verdict, answer_decided(decision.model_dump_json()))
            == (final.verdict, answer_decided(final.model_dump_json()))
        )

    def explain_needed_reason(self, case_id: str, verdict: Verdict | None) -> str:
        """Return why a final verdict on a case needs a reason, or "" if it doesn't.

        It doesn't if reviewers differ and the verdict approves the answer as one of them did.

        Raises:
            UnknownRecord: There is no such case.

        """
        differ = self._store.cases.summary(case_id).state == "needs_adjudication"
        individual = self._store.decisions.individual(case_id) if differ else ()
        verdicts = [entry.decision.verdict for entry in individual if entry.decision is not None]
        return why_final_needs_reason(verdict, verdicts, reviewers_differ=differ)

    @requires("decide", "undo own decisions or auto-acceptances")
    @may_require("oversee", "undo decisions of others")
    def undo(self, actor: Actor, entry_id: str, *, batch: str = "") -> LogEntry:
        """Undo a decision or a skip with a new entry. A repeated call returns the same new entry.

        The entry must be named, because a second click on "undo the current decision" would
        otherwise undo the one before it as well.

        Args:
            actor: The person.
            entry_id: The id of the entry.
            batch: The batch that is undone, if the entry is undone with others.

        Raises:
            UnknownRecord: There is no such entry.
            StoreError: The entry no longer decides its case, or the skip isn't in effect.
            NotAllowed: The entry is another person's, and the actor's role allows undoing only
                one's own.

        """
        entry = self._store.decisions.get(entry_id)
        own = (
            entry.decision is None
            or entry.decision.reviewer == actor.name
            or entry.decision.source == "CODE"
        )
        if not own:
            self.access.require(actor, "oversee", "undo decisions of others")
        if entry.decision is None:
            raise Conflict(
                f"entry {entry_id} was redacted, so it can't be undone. Decide the case again."
            )
        if entry.decision.kind in WORK and entry.decision.kind != "skip":
            raise Conflict(f"entry {entry_id} isn't a decision. Add another one instead.")
        undo = Decision(
            kind="undo",
            reviewer=name_of(actor),
            case_id=entry.decision.case_id,
            run_id=entry.decision.run_id,
            undoes=entry.id,
            # The same for every undo of an entry, so that a double click adds one entry.
            token=f"undo:{entry.id}",
            extra=in_batch(batch),
        )
        return self._store.decisions.append(sign_decision(actor, undo))

    @requires("redact", "redact cases or entries")
    def redact_entry(
        self, actor: Actor, entry_id: str, reason: str
    ) -> LogEntry | ScreeningEntry | PreferenceEntry:
        """Permanently remove the texts of an entry of the decision, screening or preference log.

        Returns the entry that records the redaction. The verdict and the place in the hash chain
        are kept.

        Raises:
            InputError: The name or the reason is missing.
            NotAllowed: The actor's role doesn't allow redactions.
            UnknownRecord: There is no such entry.
            StoreError: The entry is already redacted, or is itself a redaction.

        """
        return self._store.redactions.redact_entry(entry_id, by=name_of(actor), reason=reason)

    @requires("redact", "redact cases or entries")
    def redact_case(self, actor: Actor, case_id: str, reason: str) -> CaseRedaction:
        """Permanently remove all texts of a case, its runs, drafts and decisions.

        The id, the verdicts and the figures are kept. Other versions of the case, and copies that
        measure people, have the same question and answer, so they are redacted too and included in
        the counts. Saved views with search words that only these cases contain are removed.

        Raises:
            InputError: The name or the reason is missing.
            NotAllowed: The actor's role doesn't allow redactions.
            UnknownRecord: There is no such case.
            StoreError: The case is already redacted or is being audited.

        """
        by = name_of(actor)

        def is_found(words: str) -> bool:
            return self._store.cases.count_matching(CaseFilter(text=words)) > 0

        with self._store.transaction():
            versions = versions_of(self._store, case_id)
            # Copies that measure people hold the question, the evidence and most of the answer.
            copies = [
                copy
                for version_id in versions
                for copy in (
                    *self._store.planted.copies_of(version_id),
                    *self._store.relabelling.copies_of(version_id),
                )
            ]
            others = [other for other in (*versions, *copies) if other != case_id]
            searches = {
                seq: words for seq, words in self._store.team.searches().items() if is_found(words)
            }
            redaction = self._store.redactions.redact_case(case_id, by=by, reason=reason)
            for other in others:
                if self._store.cases.summary(other).state != "redacted":
                    further = self._store.redactions.redact_case(other, by=by, reason=reason)
                    counts = {
                        name: getattr(redaction, name) + getattr(further, name)
                        for name in ("entries", "runs", "drafts")
                    }
                    redaction = redaction.model_copy(update=counts)
            # If a view's words were found before the redaction but not after it, they repeat a
            # redacted text.
            self._store.team.forget_views(
                seq for seq, words in searches.items() if not is_found(words)
            )
        return redaction

    @requires("configure", "sign the log")
    def sign(self, actor: Actor, key: bytes) -> int:
        """Sign all unsigned entries of both logs and return the number.

        A signature can't tell whether an entry was forged before it was signed.

        Raises:
            NotAllowed: The actor isn't an admin.
            InputError: The actor has no name.

        """
        name_of(actor)
        return self._store.sign_logs(key).new

    def undone_by(self, entry: LogEntry) -> LogEntry | None:
        """Return the entry that undid this one, or None."""
        if entry.decision is None:
            return None
        undos = self._store.decisions.entries(
            DecisionFilter(case_id=entry.decision.case_id, kinds=("undo",), size=200)
        ).rows
        return next(
            (undo for undo in undos if undo.decision and undo.decision.undoes == entry.id), None
        )

    def outcome(self, case_id: str, after: int = 0) -> DecisionInForce | None:
        """Return the decision in force on a case, or None if it isn't decided.

        The decision is a person's or the acceptance policy's. Entries up to number ``after`` and
        undone decisions are ignored.

        Raises:
            UnknownRecord: There is no such case.
            StoreError: The decision has been redacted.

        """
        # one read transaction, so that the entry and its run are from the same moment
        with self._store.database.reading():
            entry = self._store.decisions.current(case_id)
            if entry is None or entry.seq <= after:
                return None
            if entry.decision is None:
                raise Conflict(
                    f"the decision about case {case_id!r} has been redacted. Decide it again."
                )
            run = self._run_of(entry.decision)
        return DecisionInForce(
            entry.seq, entry.id, entry.at, entry.decision, settled_answer(entry.decision, run)
        )

    def _run_of(self, decision: Decision) -> Run | None:
        """Return the run that a decision is about, by default the newest finished one.

        Returns None if retention has removed it.
        """
        run_id = decision.run_id or self._store.cases.summary(decision.case_id).run_id
        try:
            return self._store.runs.get(run_id) if run_id else None
        except Removed:  # the decision is still valid
            return None


def _rubric_words(queue: ReviewQueue | None, rubric: Rubric) -> str:
    if queue is not None and queue.rubric is not None:
        return f"the rubric of the queue {queue.name!r}"
    return f"version {rubric.version} of the rubric"


def _assert_repeated(first: LogEntry, again: Decision) -> None:
    """Raise InputError unless a decision whose token is in the log repeats that entry.

    Otherwise a person could read another one's entry by its token, or take a decision for recorded
    that wasn't.
    """
    made = first.decision
    if made is not None and (made.reviewer, made.verdict) != (again.reviewer, again.verdict):
        raise InputError(
            "belongs to another decision on this case",
            hint="Use a new token for each decision.",
            field="token",
        )


def _assert_same_decision(known: LogEntry, exported: LogEntry, case_id: str) -> None:
    """Raise Conflict if an exported entry has the id of another decision here."""
    ours, theirs = known.decision, exported.decision
    if ours is None or theirs is None:
        return
    if (ours.case_id, ours.reviewer, ours.verdict) != (case_id, theirs.reviewer, theirs.verdict):
        raise Conflict(f"entry {exported.id!r} is another decision here, so it isn't imported.")


def sign_decision(actor: Actor, decision: Decision) -> Decision:
    """Return the decision with the actor's name, the sign-in provider and the current versions.

    A provider or an origin that the caller put into ``extra`` is removed, because it could be
    forged.
    """
    versions = decision.versions or {"app": version.APP, "rubric": version.RUBRIC}
    extra = {
        key: value for key, value in decision.extra.items() if key not in (SIGNED_IN_BY, IMPORTED)
    }
    if actor.authenticated:
        extra[SIGNED_IN_BY] = actor.signed_in_by
    return decision.model_copy(
        update={"reviewer": name_of(actor), "versions": versions, "extra": extra}
    )


def entry_on_case(actor: Actor, case_id: str, kind: EntryKind, **content: Any) -> Decision:
    """Return an entry about a case, independent of its audits, under the actor's name."""
    named = {"reviewer": name_of(actor), "versions": {"app": version.APP}}
    return sign_decision(
        actor, Decision(kind=kind, case_id=case_id, run_id=None, **named, **content)
    )


def newest_run(store: Store, case_id: str) -> str | None:
    """Return the id of a case's newest finished run with an audited answer, or None.

    Don't show it to a person from whom the policy hides the audit's results.
    """
    runs = store.runs.for_case(case_id)
    return next((run.id for run in runs if run.readable and run.iterations), None)


def in_batch(batch: str) -> dict[str, Any]:
    """Return the ``extra`` of an entry that names its batch, if it has one."""
    return {BATCH: batch} if batch else {}


def name_of(actor: Actor) -> str:
    """Return the actor's name for a log.

    Raises:
        InputError: The actor has no name.

    """
    if not actor.name.strip():
        raise InputError("the reviewer's name is missing", hint="Type your name.", field="reviewer")
    return actor.name
