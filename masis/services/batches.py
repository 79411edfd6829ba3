"""Act on many cases at once: preview an action, apply it, and undo it as a whole.

Each case gets an entry of its own in the decision log, made by the service that makes it for one
case, with its rules and permissions. The entries name their batch in ``extra["batch"]``. A batch is
handled case by case, each in a transaction of its own, so it can be cancelled, continues after an
interruption, and loses nothing if one case is refused.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator

from masis.errors import (
    CaseHeld,
    Conflict,
    InputError,
    MasisError,
    NotAllowed,
    RecordDamaged,
    Removed,
    StaleVersion,
    UnknownRecord,
)
from masis.schema.actor import Actor
from masis.schema.base import Record
from masis.schema.batches import Batch, LeftOut, SentenceLabel
from masis.schema.review import LogEntry
from masis.services.access import OPEN, Access, Service, may_require, requires
from masis.services.batch_actions import (
    ACTIONS,
    MOST_IN_BATCH,
    BatchAction,
    BatchContext,
    BatchRequest,
    action_named,
    find_in_sentence,
    sentence_around,
)
from masis.services.cases import CaseService
from masis.services.reviews import ReviewService, name_of, newest_run
from masis.services.team import TeamService
from masis.store import Store
from masis.store.reviews.batches import BatchCase, PlannedCase, StoredBatch

MOST_ACKNOWLEDGED = 50
"""Maximum number of cases with serious issues per batch, because a person must read all of the
issues.
"""

AT_ONCE = 20
"""The number of cases that one call of ``advance`` handles, which takes less than a second."""

EXAMPLES = 5
"""The number of cases that a preview names for each reason to leave cases out."""

_ACT = "act on many cases at once"
_PAGE = 1_000

# The refusals that are about one case. Others, such as a full disk, stop the batch.
_REFUSALS: tuple[tuple[type[MasisError], LeftOut], ...] = (
    (CaseHeld, "held"),
    (NotAllowed, "refused"),
    (StaleVersion, "changed"),
    (Removed, "redacted"),
    (Conflict, "refused"),
    (InputError, "refused"),
    (RecordDamaged, "refused"),
    (UnknownRecord, "refused"),
)


class SeriousCase(Record):
    """A case whose approval would leave serious issues open, with the issues in words."""

    case_id: str
    query: str
    issues: tuple[str, ...]


class LeftOutCases(Record):
    """Cases that an action leaves out for the same reason: how many, and the first of them."""

    count: int
    examples: tuple[str, ...]


class BatchPreview(Record):
    """What an action would do.

    Attributes:
        action: The name of the action.
        total: The number of chosen cases.
        included: The number of cases that would get an entry.
        left_out: The others, by the reason.
        serious: The cases that need to be acknowledged and can be in one batch.
        digest: Identifies the included cases in their present versions. ``start`` refuses others.

    """

    action: str
    total: int
    included: int
    left_out: dict[LeftOut, LeftOutCases]
    serious: tuple[SeriousCase, ...]
    digest: str


Progress = Callable[[Batch], object]


class BatchService(Service):
    """The use cases of actions on many cases."""

    def __init__(self, store: Store, access: Access = OPEN) -> None:
        super().__init__(store, access)
        self._reviews, self._team = ReviewService(store, access), TeamService(store, access)
        self._cases = CaseService(store, access)

    @requires("decide", _ACT)
    @may_require("oversee", "assign cases to others")
    def preview(self, actor: Actor, request: BatchRequest) -> BatchPreview:
        """Return what an action would do, without doing it.

        Raises:
            InputError: The request lacks something, or has too many cases.
            UnknownRecord: There is no such case.
            NotAllowed: The actor's role doesn't allow the action.

        """
        action, context = self._context(actor, request)
        planned = self._plan(action, context)
        left_out: dict[LeftOut, list[str]] = {}
        for case in planned:
            if case.why is not None:
                left_out.setdefault(case.why, []).append(case.case_id)
        return BatchPreview(
            action=action.name,
            total=len(planned),
            included=sum(case.why is None for case in planned),
            left_out={
                why: LeftOutCases(count=len(ids), examples=tuple(ids[:EXAMPLES]))
                for why, ids in sorted(left_out.items(), key=lambda item: -len(item[1]))
            },
            serious=tuple(self._serious(context, planned)) if action.needs_acknowledgement else (),
            digest=_digest_of(planned),
        )

    @requires("decide", _ACT)
    @may_require("oversee", "assign cases to others")
    def start(
        self, actor: Actor, request: BatchRequest, *, token: str = "", expected: str = ""
    ) -> Batch:
        """Store a batch with its cases. ``advance`` or ``run`` then handles them.

        Args:
            actor: The person.
            request: The action and its cases.
            token: Makes a repeated call harmless: it returns the same batch.
            expected: The digest of the preview that the person saw.

        Raises:
            InputError: The request lacks something, has too many cases, or its token was used for
                another one.
            StoreError: No case can be included, or not the cases of the preview.
            UnknownRecord: There is no such case.
            NotAllowed: The actor's role doesn't allow the action.

        """
        by, written = name_of(actor), request.model_dump_json()
        digest = hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
        token = token or secrets.token_hex(16)
        if (earlier := self._find_repeated(by, token, digest)) is not None:
            return earlier
        action, context = self._context(actor, request)
        planned = self._plan(action, context)
        if expected and expected != _digest_of(planned):
            raise Conflict(
                "the cases have changed since the preview, so nothing was recorded. Look at a new"
                " preview."
            )
        if all(case.why is not None for case in planned):
            raise Conflict(
                "no case is left for this action. The preview says why each is left out."
            )
        batch = Batch(
            id=secrets.token_hex(6),
            by=by,
            at=self._store.database.now(),
            action=action.name,
            state="applying",
            names=context.names,
        )
        # The cases are planned before, because that may take longer than other writers should wait.
        # A case that changes in the meantime has another version and isn't handled.
        with self._store.transaction():
            if (earlier := self._find_repeated(by, token, digest)) is not None:
                return earlier
            self._store.batches.add(batch, token, digest, written, planned)
        return self._store.batches.get(batch.id).batch

    def _find_repeated(self, by: str, token: str, digest: str) -> Batch | None:
        """Return the batch that a repeated request made before, or None.

        Raises:
            InputError: The token was used for another request.

        """
        earlier = self._store.batches.with_token(by, token)
        if earlier is not None and earlier.digest != digest:
            raise InputError("belongs to another batch", hint="Use a new token.", field="token")
        return earlier.batch if earlier is not None else None

    @requires("decide", _ACT)
    @may_require("oversee", "undo batches of others")
    def advance(self, actor: Actor, batch_id: str, most: int = AT_ONCE) -> Batch:
        """Handle, or undo, the next cases of a batch, and return how far it is.

        Raises:
            UnknownRecord: There is no such batch.
            NotAllowed: The batch is another person's.
            StoreError: The database can't be written. The batch can be continued later.

        """
        stored = self._get(actor, batch_id)
        self._require_own(actor, stored.batch)
        if not stored.batch.is_running:
            return stored.batch
        undoing = stored.batch.state == "undoing"
        if not undoing and stored.batch.by != actor.name:
            # A lead may undo it, but each entry is made under the name of who chose the cases.
            raise NotAllowed(f"{stored.batch.by} started this batch, so only they can continue it.")
        cases = self._store.batches.list_remaining(
            batch_id, "recorded" if undoing else "waiting", most
        )
        context = self._stored_context(actor, stored)
        for case in cases:
            with self._store.transaction():
                if undoing:
                    self._undo_one(context, case)
                else:
                    self._record_one(context, case)
        if len(cases) < most:
            self._store.batches.set_state(batch_id, "undone" if undoing else "applied")
        return self._store.batches.get(batch_id).batch

    @requires("decide", _ACT)
    @may_require("oversee", "undo batches of others")
    def run(
        self,
        actor: Actor,
        batch_id: str,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Batch:
        """Handle, or undo, all cases of a batch, and return it.

        It raises the errors of ``advance``.

        Args:
            actor: The person.
            batch_id: The batch.
            progress: Called with the batch after some of its cases.
            cancelled: Asked between cases. If it returns true, the other cases aren't handled.

        """
        batch = self.get(actor, batch_id)
        while batch.is_running:
            if cancelled():
                return self.cancel(actor, batch_id)
            batch = self.advance(actor, batch_id)
            if progress is not None:
                progress(batch)
        return batch

    @requires("decide", _ACT)
    @may_require("oversee", "undo batches of others")
    def cancel(self, actor: Actor, batch_id: str) -> Batch:
        """Stop a batch. Entries that were made stay, and so do those that weren't undone yet.

        Raises:
            UnknownRecord: There is no such batch.
            NotAllowed: The batch is another person's.

        """
        batch = self._get(actor, batch_id).batch
        self._require_own(actor, batch)
        if batch.is_running:
            self._store.batches.set_state(batch_id, "cancelled")
        return self._store.batches.get(batch_id).batch

    @requires("decide", "undo own decisions or auto-acceptances")
    @may_require("oversee", "undo batches of others")
    def start_undo(self, actor: Actor, batch_id: str) -> Batch:
        """Begin to undo a batch, with one further entry for each of its entries.

        ``advance`` or ``run`` then undoes them.

        Raises:
            UnknownRecord: There is no such batch.
            NotAllowed: The batch is another person's, and the actor isn't a lead.

        """
        name_of(actor)
        batch = self._get(actor, batch_id).batch
        self._require_own(actor, batch)
        if batch.recorded and batch.state != "undoing":
            self._store.batches.set_state(batch_id, "undoing")
        return self._store.batches.get(batch_id).batch

    @requires("read")
    def get(self, actor: Actor, batch_id: str) -> Batch:
        """Return a batch with its counts.

        Raises:
            UnknownRecord: There is no such batch, or the policy hides it from the actor.

        """
        return self._get(actor, batch_id).batch

    @requires("read")
    def newest(self, actor: Actor, limit: int = 50) -> tuple[Batch, ...]:
        """Return the newest batches: the actor's, or everyone's unless the policy hides those of
        others.
        """
        by = actor.name if self._hides_others_from(actor) else None
        return self._store.batches.newest(by, limit)

    @requires("decide", _ACT)
    def sentence_request(
        self, actor: Actor, case_id: str, label: SentenceLabel, *, acknowledge: bool = False
    ) -> BatchRequest:
        """Return the request to label a sentence in every case that this person decided.

        Args:
            actor: The person.
            case_id: A case whose decided answer has the words ``label.sentence``. The sentence
                around them is the one that is labeled.
            label: The label. Its ``text`` is set to these words.
            acknowledge: Whether serious issues of approved answers were seen.

        Raises:
            InputError: The person hasn't decided the case, or its answer doesn't have the words.
            UnknownRecord: There is no such case.

        """
        request = BatchRequest(action="label", label=label)
        context = BatchContext(self._store, self._reviews, self._team, actor, request)
        entry = context.own_decision(case_id)
        if entry is None or entry.decision is None:
            raise InputError(
                "has no decision of yours", hint="Decide it first, with the labels.", field="case"
            )
        answer, words = self._reviews.answer_of(entry.decision), label.sentence
        start = answer.find(words)
        if start < 0:
            raise InputError(
                "isn't in the answer", hint="Copy the words from the answer.", field="label.text"
            )
        sentence = sentence_around(answer, start, start + len(words))
        exact = label.model_copy(update={"sentence": sentence, "text": words})
        found = self._store.answers.decided_with_words(sentence, actor.name, MOST_IN_BATCH)
        # The index covers the answers that came with the cases. The decided one may be a revision.
        cases = dict.fromkeys((case_id, *found))
        chosen = [
            other
            for other in cases
            if other == case_id or self._has_sentence(context, other, exact)
        ]
        return BatchRequest(
            action="label", cases=tuple(chosen), label=exact, acknowledge=acknowledge
        )

    def _has_sentence(self, context: BatchContext, case_id: str, label: SentenceLabel) -> bool:
        entry = context.own_decision(case_id)
        if entry is None or entry.decision is None:
            return False
        try:
            answer = self._reviews.answer_of(entry.decision)
        except Removed:
            return False
        return find_in_sentence(answer, label) is not None

    def _context(self, actor: Actor, request: BatchRequest) -> tuple[BatchAction, BatchContext]:
        action = action_named(request.action)
        name_of(actor)
        context = BatchContext(self._store, self._reviews, self._team, actor, request)
        action.validate(context)
        return action, context

    def _stored_context(self, actor: Actor, stored: StoredBatch) -> BatchContext:
        # An undo needs no part of the request, which is gone by then.
        request = (
            BatchRequest.model_validate_json(stored.request)
            if stored.request is not None
            else BatchRequest(action=stored.batch.action)
        )
        store, batch = self._store, stored.batch.id
        return BatchContext(store, self._reviews, self._team, actor, request, batch)

    def _resolve_cases(self, actor: Actor, request: BatchRequest) -> list[str]:
        """Return the ids of the cases of a request, each once."""
        if (request.matching is None) == (not request.cases):
            raise InputError(
                "must be named, or a filter given", hint="Give one of the two.", field="cases"
            )
        if request.matching is None:
            return list(dict.fromkeys(request.cases))
        ids: dict[str, None] = {}
        matching = request.matching.model_copy(update={"size": _PAGE})
        number, total = 0, 1
        while number * _PAGE < total:
            number += 1
            page = self._cases.find_for(actor, matching.model_copy(update={"page": number}))
            total = page.total
            if total > MOST_IN_BATCH:
                raise InputError(
                    f"match too many cases ({total:,})",
                    hint=f"Narrow them down to {MOST_IN_BATCH:,}.",
                    field="matching",
                )
            ids.update(dict.fromkeys(row.id for row in page.rows))
        return list(ids)

    def _plan(self, action: BatchAction, context: BatchContext) -> list[PlannedCase]:
        """Return the chosen cases, each with the reason to leave it out, if there is one.

        Acknowledged cases with serious issues are included, up to the number that a preview lists.
        """
        planned: list[PlannedCase] = []
        acknowledged = 0
        chosen = self._resolve_cases(context.actor, context.request)
        with self._store.database.reading():
            for facts in self._store.batches.facts(chosen, context.actor.name):
                why = action.check(context, facts)
                if why == "serious_issues" and context.request.acknowledge:
                    acknowledged += 1
                    why = None if acknowledged <= MOST_ACKNOWLEDGED else why
                planned.append(PlannedCase(facts.case_id, facts.version, why))
        return planned

    def _serious(self, context: BatchContext, planned: list[PlannedCase]) -> Iterator[SeriousCase]:
        """Yield the first cases that approving would leave with serious issues, with the issues."""
        ids = [case.case_id for case in planned if case.why in (None, "serious_issues")]
        facts = self._store.batches.facts(ids, context.actor.name)
        check = action_named("approve").check
        serious = (case for case in facts if check(context, case) == "serious_issues")
        for _, case in zip(range(MOST_ACKNOWLEDGED), serious, strict=False):
            run_id = newest_run(self._store, case.case_id)
            issues = self._store.runs.get(run_id).iterations[0].issues if run_id else ()
            yield SeriousCase(
                case_id=case.case_id,
                query=self._store.cases.summary(case.case_id).query,
                issues=tuple(issue.description for issue in issues if issue.major),
            )

    def _record_one(self, context: BatchContext, case: BatchCase) -> None:
        """Make the entry of one case, or note why it has none. Call it in a transaction."""
        batches, action = self._store.batches, action_named(context.request.action)
        if not batches.has_outcome(context.batch, case.case_id, "waiting"):
            return  # Another call has handled it in the meantime.
        [facts] = batches.facts([case.case_id], context.actor.name)
        why: LeftOut | None = "changed" if facts.version != case.version else None
        why = why or action.check(context, facts)
        if why == "serious_issues" and context.request.acknowledge:
            why = None
        entry: LogEntry | None = None
        if why is None:
            entry, why = self._attempt(lambda: action.record(context, facts))
            if entry is None and why is None:
                why = "nothing_to_change"
        batches.note(
            context.batch,
            case.case_id,
            "kept" if entry is None else "recorded",
            entry_id=entry.id if entry else None,
            why=why,
        )

    def _undo_one(self, context: BatchContext, case: BatchCase) -> None:
        """Undo the entry of one case, or note why it stays. Call it in a transaction."""
        batches, action = self._store.batches, action_named(context.request.action)
        if not batches.has_outcome(context.batch, case.case_id, "recorded"):
            return
        made = self._reviews.get(case.entry_id or "")
        undo: LogEntry | None = None
        why: LeftOut | None = "redacted" if made.decision is None else None
        if why is None:
            undo, why = self._attempt(lambda: action.undo(context, made))
            if undo is None and why != "redacted":
                [facts] = batches.facts([case.case_id], context.actor.name)
                is_final = made.decision is not None and made.decision.verdict is not None
                why = "settled" if facts.settled and is_final else "replaced"
        batches.note(
            context.batch,
            case.case_id,
            "not_undone" if undo is None else "undone",
            entry_id=undo.id if undo else None,
            why=why,
        )

    def _attempt(
        self, make: Callable[[], LogEntry | None]
    ) -> tuple[LogEntry | None, LeftOut | None]:
        """Return the entry that was made, or why it was refused. A refusal writes nothing."""
        try:
            with self._store.transaction():
                return make(), None
        except tuple(kind for kind, _ in _REFUSALS) as error:
            return None, next(why for kind, why in _REFUSALS if isinstance(error, kind))

    def _get(self, actor: Actor, batch_id: str) -> StoredBatch:
        stored = self._store.batches.get(batch_id)
        if stored.batch.by != actor.name and self._hides_others_from(actor):
            raise UnknownRecord(f"there is no batch {batch_id!r} of yours.")
        return stored

    def _hides_others_from(self, actor: Actor) -> bool:
        """Return whether to hide batches of others.

        Their counts would reveal undecided work of others on shared cases, or how many cases had
        serious issues.
        """
        several_decide = self._store.decisions.several_decide()
        return several_decide or self._cases.hides_figures_from(actor)

    def _require_own(self, actor: Actor, batch: Batch) -> None:
        if batch.by != actor.name:
            self.access.require(actor, "oversee", "undo batches of others")


def _digest_of(planned: list[PlannedCase]) -> str:
    included = sorted((case.case_id, case.version) for case in planned if case.why is None)
    return hashlib.sha256(json.dumps(included).encode()).hexdigest()


__all__ = ["ACTIONS", "BatchPreview", "BatchRequest", "BatchService"]
