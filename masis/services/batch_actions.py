"""The actions that can be applied to many cases at once, as one declared table.

To add an action, add a row to ``ACTIONS``. Pages, commands, the API and the docs follow the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

from pydantic import Field, ValidationError

from masis.audit.sentences import split_sentences
from masis.errors import InputError, Removed
from masis.schema.actor import Actor
from masis.schema.base import Record
from masis.schema.batches import LeftOut, SentenceLabel
from masis.schema.explain import explain
from masis.schema.labels import TargetLabel
from masis.schema.review import (
    BATCH,
    LABELS_ADDED,
    SHOWN_UNKNOWN,
    CaseState,
    Decision,
    EntryKind,
    LogEntry,
    Verdict,
    answer_name,
)
from masis.schema.team import CaseWork, LabelTypes
from masis.schema.trust import SamplePlan
from masis.services.cases import machine_hidden
from masis.services.decision_rules import (
    REASON_CODE,
    REASON_NEEDED,
    reason_and_code,
    reason_codes,
    seen_issues,
    seen_labels,
)
from masis.services.modes.entries import code_entry, known_codes, uncode_entry
from masis.services.queue_rules import member_queue
from masis.services.records import CaseFilter, DecisionFilter, ObservationFilter, ReviewQueue
from masis.services.reviews import ReviewService, newest_run
from masis.services.team import (
    IN_A_QUEUE,
    LONGEST_REVIEWER,
    LONGEST_TAG,
    TeamService,
    clean_names,
)
from masis.store import Store
from masis.store.reviews.batches import CaseFacts

MOST_IN_BATCH = 10_000
"""Maximum number of cases per batch. Each is a transaction of its own, so others can write
in the meantime.
"""

MOST_OF_CASE = 1_000
"""Maximum number of observations per case that a batch codes."""

IN_LIST = ("state", "headline")
"""The parts of the machine's verdict that a list of cases shows, as decisions record them."""

Need = Literal["reason", "names", "modes", "label"]
"""What an action needs besides its cases."""


class BatchRequest(Record):
    """An action and its cases: chosen ones, or all that match a filter of the queue.

    Attributes:
        action: A name in ``ACTIONS``.
        cases: The ids of the chosen cases.
        matching: The filter. Its page is ignored.
        reason: The reason of a decision, by its code or in the reviewer's own words.
        note: A note to record with each decision.
        names: The tags to add or remove, the reviewers to assign the cases to, or the codes of
            failure modes to apply.
        observations: What the codes are applied to in the cases, by id; the cases themselves if
            empty.
        label: The label on a sentence.
        acknowledge: Whether the reviewer acknowledges the serious issues that the preview lists.
        queue: The named queue in which the cases are decided.

    """

    action: str
    cases: tuple[str, ...] = Field(default=(), max_length=MOST_IN_BATCH)
    matching: CaseFilter | None = None
    reason: str = Field(default="", max_length=10_000)
    note: str = Field(default="", max_length=10_000)
    names: tuple[str, ...] = Field(default=(), max_length=100)
    observations: tuple[str, ...] = Field(default=(), max_length=MOST_IN_BATCH)
    label: SentenceLabel | None = None
    acknowledge: bool = False
    queue: str = Field(default="", max_length=200)


@dataclass(frozen=True)
class BatchContext:
    """What an action needs for any of its cases: the services, the person and the request.

    ``batch`` is the id of the batch, or "" in a preview.
    """

    store: Store
    reviews: ReviewService
    team: TeamService
    actor: Actor
    request: BatchRequest
    batch: str = ""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the request without superfluous blanks."""
        return tuple(dict.fromkeys(" ".join(name.split()) for name in self.request.names))

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The codes of the failure modes that the names of the request stand for."""
        return known_codes(self.store, self.names)

    @cached_property
    def drawn(self) -> frozenset[str]:
        """The cases of the sample for a guarantee, whose answers are judged one by one."""
        return frozenset(self.store.team.in_force(SamplePlan).case_ids)

    @cached_property
    def queue(self) -> ReviewQueue | None:
        """The named queue in which the cases are decided; None for the first queue.

        Raises NotAllowed if the person isn't one of its people.
        """
        return member_queue(self.store, self.actor, self.request.queue)

    @cached_property
    def hides_results(self) -> bool:
        """Whether the policy hides the results of any audit."""
        return self.store.team.strictest_shown() != "first"

    def is_hidden(self, case_id: str) -> bool:
        """Return whether the audit's results on a case are hidden from the person now."""
        return self.hides_results and machine_hidden(self.store, self.actor, case_id)

    def work(self, case_id: str) -> CaseWork:
        """Return the team's state of a case, limited to what the person may see."""
        return self.team.work(self.actor, case_id)

    def newest_entry(self, case_id: str, kind: EntryKind) -> LogEntry:
        """Return the newest entry of a kind on a case, which this action has just made."""
        newest = DecisionFilter(case_id=case_id, kinds=(kind,), size=1)
        return self.store.decisions.entries(newest).rows[0]

    def own_decision(self, case_id: str) -> LogEntry | None:
        """Return the entry of the person's decision on a case that counts, or None."""
        for entry in self.store.decisions.individual(case_id):
            if entry.decision is not None and entry.decision.reviewer == self.actor.name:
                return entry
        return None


@dataclass(frozen=True)
class BatchAction:
    """An action on many cases.

    Attributes:
        name: Its name in requests and commands.
        title: The words of its button.
        done: What it has done, before a number of cases.
        needs: What the request must have besides the cases.
        validate: Raises InputError or NotAllowed if the request can't be carried out on any case.
        check: Returns why a case is left out, or None.
        record: Makes the entry of a case and returns it, or returns None if nothing would change.
        undo: Makes the entry that undoes an entry of the batch, or returns None if there is nothing
            left to undo.
        needs_acknowledgement: Whether cases with serious open issues need to be acknowledged.

    """

    name: str
    title: str
    done: str
    needs: tuple[Need, ...]
    check: Callable[[BatchContext, CaseFacts], LeftOut | None]
    record: Callable[[BatchContext, CaseFacts], LogEntry | None]
    undo: Callable[[BatchContext, LogEntry], LogEntry | None]
    validate: Callable[[BatchContext], None] = lambda _: None
    needs_acknowledgement: bool = False


# Decisions

_DECIDED: frozenset[CaseState] = frozenset({"approved", "overridden", "rejected", "escalated"})
_CLOSED: dict[CaseState, LeftOut] = {
    **dict.fromkeys(_DECIDED, "decided"),
    "superseded": "superseded",
    "redacted": "redacted",
    "planted": "planted",
    "needs_adjudication": "needs_adjudication",
    "running": "being_audited",
}


def _check_content(facts: CaseFacts) -> LeftOut | None:
    """Return why nobody can work on a case any more, or None."""
    if facts.redacted:
        return "redacted"
    return "planted" if facts.state == "planted" else None


def _check_decision(verdict: Verdict, context: BatchContext, facts: CaseFacts) -> LeftOut | None:
    if (gone := _check_content(facts)) is not None:
        return gone
    queue, team = context.queue, context.store.team
    # A decision in another queue doesn't end the case's wait in this one.
    if facts.state in _CLOSED and (queue is None or facts.state not in IN_A_QUEUE):
        return _CLOSED[facts.state]
    decided = facts.decided_by_me
    if queue is not None:
        made = team.work(facts.case_id, queue.id).decided_by
        decided = context.actor.name in made or not team.waits_in(facts.case_id, queue)
    if decided:
        return "decided"
    queue_id = queue.id if queue else ""
    if facts.held and not team.is_free(facts.case_id, context.actor.name, queue_id):
        return "held"
    if not facts.has_answer:
        return "no_answer"
    if facts.drafted:
        return "your_draft"
    if facts.case_id in context.drawn:
        return "drawn"
    if context.is_hidden(facts.case_id):
        # The severity of its issues is hidden, too, so it isn't looked at.
        return None if facts.opened else "not_opened"
    serious = verdict == "approve" and facts.severity in ("critical", "high")
    return "serious_issues" if serious else None


def _record_decision(verdict: Verdict, context: BatchContext, facts: CaseFacts) -> LogEntry:
    """Decide the original answer of a case.

    The decision never counts as blind: the reviewer saw the list, or what they saw when they opened
    the case isn't known.
    """
    request, case_id = context.request, facts.case_id
    hidden = context.is_hidden(case_id)
    run_id = None if hidden else newest_run(context.store, case_id)
    words, code = reason_and_code(verdict, request.reason)
    drafted = not facts.answered
    extra: dict[str, Any] = {
        "answer": answer_name(1, drafted=drafted),
        BATCH: context.batch,
        # A lease would say how long the case was open, which isn't what the decision took.
        "seconds": None,
    }
    if code:
        extra[REASON_CODE] = code
    decision = Decision(
        reviewer=context.actor.name,
        case_id=case_id,
        run_id=run_id,
        iteration=None if run_id is None else 1,
        verdict=verdict,
        reason=words,
        note=request.note.strip(),
        machine_shown=(SHOWN_UNKNOWN,) if hidden else IN_LIST,
        token=f"batch:{context.batch}:{case_id}",
        extra=extra,
        queue=context.queue.id if context.queue else None,
    )
    if verdict == "approve" and request.acknowledge:
        serious = context.reviews.decided_answer(context.actor, decision).serious
        decision = decision.model_copy(update={"extra": extra | seen_issues(serious)})
    return context.reviews.submit(context.actor, decision, seen_version=facts.version)


def _validate_reason(verdict: Verdict, context: BatchContext) -> None:
    if context.queue is not None and context.queue.archived:
        raise InputError(
            f"{context.queue.name!r} is archived", hint="Use another queue.", field="queue"
        )
    words, _ = reason_and_code(verdict, context.request.reason)
    if verdict in REASON_NEEDED and not words:
        raise InputError(
            f"is missing: {REASON_NEEDED[verdict]}",
            hint=f"Use one of {reason_codes(verdict)}, or your own words.",
            field="reason",
        )


# Tags and assignments


NameChange = Literal["tag", "untag", "assign", "unassign"]

_OPPOSITE: dict[NameChange, NameChange] = {
    "tag": "untag",
    "untag": "tag",
    "assign": "unassign",
    "unassign": "assign",
}


def _changed_names(kind: NameChange, names: Iterable[str], work: CaseWork) -> tuple[str, ...]:
    """Return the names that a change would add to a case, or remove from it."""
    current = work.assignees if kind in ("assign", "unassign") else work.tags
    if kind in ("untag", "unassign"):
        return tuple(name for name in names if name in current)
    # A person who has decided a case has nothing to do on it.
    done = work.decided_by if kind == "assign" else ()
    return tuple(name for name in names if name not in (*current, *done))


def _change_names(
    kind: NameChange, context: BatchContext, case_id: str, names: Iterable[str]
) -> LogEntry | None:
    """Add or remove names and return the entry, or None if nothing would change."""
    changed = _changed_names(kind, names, context.work(case_id))
    if not changed:
        return None
    team = context.team
    change = {
        "tag": team.tag,
        "untag": team.untag,
        "assign": team.assign,
        "unassign": team.unassign,
    }[kind]
    change(context.actor, [case_id], changed, batch=context.batch)
    return context.newest_entry(case_id, kind)


def _check_names(kind: NameChange, context: BatchContext, facts: CaseFacts) -> LeftOut | None:
    if (gone := _check_content(facts)) is not None:
        return gone
    if kind == "assign" and facts.state in _DECIDED - {"escalated"}:
        return "decided"
    names = context.names
    return None if _changed_names(kind, names, context.work(facts.case_id)) else "nothing_to_change"


def _record_names(kind: NameChange, context: BatchContext, facts: CaseFacts) -> LogEntry | None:
    return _change_names(kind, context, facts.case_id, context.names)


def _undo_names(kind: NameChange, context: BatchContext, entry: LogEntry) -> LogEntry | None:
    made = entry.decision
    if made is None:
        return None
    return _change_names(_OPPOSITE[kind], context, made.case_id, (*made.tags, *made.assignees))


def _validate_tags(context: BatchContext) -> None:
    clean_names(context.request.names, "a tag", LONGEST_TAG)


def _validate_reviewers(context: BatchContext) -> None:
    names = clean_names(context.request.names, "a reviewer", LONGEST_REVIEWER)
    if set(names) != {context.actor.name}:
        context.team.access.require(context.actor, "oversee", "assign cases to others")


# Labels on a sentence


class Span(NamedTuple):
    """A part of a text, end excluded."""

    start: int
    end: int


def fold(text: str) -> str:
    """Return a text without differences in case and blanks."""
    return " ".join(text.casefold().split())


def sentence_around(answer: str, start: int, end: int) -> str:
    """Return the sentence of an answer that contains a range of characters, or the range itself if
    it isn't within one sentence.
    """
    for unit in split_sentences(answer):
        if unit.start <= start and end <= unit.end:
            return answer[unit.start : unit.end]
    return answer[start:end]


def find_in_sentence(answer: str, label: SentenceLabel) -> Span | None:
    """Return the words of a label in the first sentence of an answer that equals the label's, apart
    from case and blanks; None if the answer doesn't have that sentence.
    """
    wanted = fold(label.sentence)
    words = (label.text.strip() or label.sentence).split()
    pattern = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
    for unit in split_sentences(answer):
        if fold(answer[unit.start : unit.end]) == wanted:
            match = pattern.search(answer, unit.start, unit.end)
            if match is not None:
                return Span(match.start(), match.end())
    return None


def target_label(label: SentenceLabel, answer: str, span: Span) -> TargetLabel:
    """Return the label on these words of an answer.

    Raises:
        InputError: The label isn't one that the target can have.

    """
    try:
        return TargetLabel(
            target=label.target or ("span" if label.severity else "claim"),
            start=span.start,
            end=span.end,
            text=answer[span.start : span.end],
            label=label.label,
            note=label.note,
            severity=label.severity,
        )
    except ValidationError as error:
        raise explain(error) from error


def _new_label(context: BatchContext, own: Decision) -> TargetLabel | None:
    """Return the label on the answer that the person decided, or None without the sentence."""
    label = context.request.label
    if label is None:
        return None
    answer = context.reviews.answer_of(own)
    span = find_in_sentence(answer, label)
    return None if span is None else target_label(label, answer, span)


def _check_label(context: BatchContext, facts: CaseFacts) -> LeftOut | None:
    if (gone := _check_content(facts)) is not None:
        return gone
    entry = context.own_decision(facts.case_id)
    own = entry.decision if entry is not None else None
    if own is None:
        return "no_decision_of_yours"
    if facts.settled:
        return "settled"
    try:
        added = _new_label(context, own)
    except Removed:
        return "redacted"
    if added is None:
        return "sentence_missing"
    return "nothing_to_change" if added in own.labels else None


def _record_label(context: BatchContext, facts: CaseFacts) -> LogEntry | None:
    """Record the person's decision on a case again with the label."""
    entry = context.own_decision(facts.case_id)
    own = entry.decision if entry is not None else None
    added = _new_label(context, own) if own is not None else None
    if own is None or added is None:
        return None
    extra = own.extra | {BATCH: context.batch, LABELS_ADDED: 1}
    labels = (*own.labels, added)
    extra |= seen_labels(labels)  # the request itself names the label
    if context.request.acknowledge and own.verdict == "approve":
        extra |= seen_issues(context.reviews.decided_answer(context.actor, own).serious)
    return _decide_again(context, own, labels, extra, facts.version)


def _decide_again(
    context: BatchContext,
    own: Decision,
    labels: tuple[TargetLabel, ...],
    extra: dict[str, Any],
    version: int,
) -> LogEntry:
    again = own.model_copy(
        # without the token, which would return the earlier entry instead of adding one
        update={"labels": labels, "extra": extra, "token": None, "about": None, "policy": None}
    )
    return context.reviews.submit(context.actor, again, seen_version=version)


def _undo_label(context: BatchContext, entry: LogEntry) -> LogEntry | None:
    """Restore the decision before the label.

    A reviewer's decision on a case that others decide, too, replaced the one before it, which no
    undo restores. It's recorded again without the label.
    """
    made = entry.decision
    if made is None:
        return None
    if made.policy is None:
        return context.reviews.undo(context.actor, entry.id, batch=context.batch)
    current = context.own_decision(made.case_id)
    if current is None or current.id != entry.id:
        return None
    added = int(made.extra.get(LABELS_ADDED, 0))
    kept = made.labels[: len(made.labels) - added]
    extra = {key: value for key, value in made.extra.items() if key != LABELS_ADDED}
    version = context.store.cases.summary(made.case_id).version
    return _decide_again(context, made, kept, extra, version)


def _validate_label(context: BatchContext) -> None:
    label = context.request.label
    if label is None:
        raise InputError("is missing", hint="Name the sentence and the label.", field="label")
    types = context.store.team.in_force(LabelTypes)
    if label.severity is not None and label.label not in types.names:
        raise InputError(
            f"{label.label!r} isn't a label type of version {types.version}",
            hint=f"Types: {', '.join(types.names)}.",
            field="label",
        )


# Failure modes


class _Coding(NamedTuple):
    """Codes that a place in a case doesn't have yet; None for the case itself."""

    place: str | None
    codes: tuple[str, ...]


def _new_codings(context: BatchContext, case_id: str) -> list[_Coding]:
    """Return what a batch would apply to the observations of a case that the person may see."""
    applied = context.store.modes.codes_of_case(case_id, context.actor.name)
    own = {(code.place, code.code) for code in applied if code.reviewer == context.actor.name}
    places: list[str | None] = [None]
    if context.request.observations:
        wanted = ObservationFilter(
            case_id=case_id,
            ids=context.request.observations,
            viewer=context.actor.name,
            size=MOST_OF_CASE,
        )
        places = [row.place for row in context.store.modes.search(wanted).rows]
    codings = [
        _Coding(place, tuple(code for code in context.codes if (place or "", code) not in own))
        for place in places
    ]
    return [coding for coding in codings if coding.codes]


def _check_coding(context: BatchContext, facts: CaseFacts) -> LeftOut | None:
    if (gone := _check_content(facts)) is not None:
        return gone
    return None if _new_codings(context, facts.case_id) else "nothing_to_change"


def _record_coding(context: BatchContext, facts: CaseFacts) -> LogEntry | None:
    """Apply the codes to each observation by an entry of its own, and return the last one."""
    entry: LogEntry | None = None
    for coding in _new_codings(context, facts.case_id):
        made = code_entry(
            context.store,
            context.actor,
            facts.case_id,
            coding.codes,
            coding.place,
            extra={BATCH: context.batch},
        )
        entry = context.store.decisions.append(made)
    return entry


def _undo_coding(context: BatchContext, entry: LogEntry) -> LogEntry | None:
    """Remove the codes that the batch applied in the case of an entry and that are still there."""
    made = entry.decision
    if made is None:
        return None
    there: dict[str, list[str]] = {}
    for code in context.store.modes.codes_of_case(made.case_id, None):
        there.setdefault(code.entry_id, []).append(code.code)
    removal: LogEntry | None = None
    for entry_id in context.store.modes.entries_of_batch(context.batch, made.case_id):
        decision = context.store.decisions.get(entry_id).decision
        if decision is None or entry_id not in there:
            continue
        removal = context.store.decisions.append(
            uncode_entry(
                context.actor,
                made.case_id,
                there[entry_id],
                decision.observation,
                decision.reviewer,
                extra={BATCH: context.batch},
            )
        )
    return removal


def _validate_codes(context: BatchContext) -> None:
    known_codes(context.store, context.names)


def _decision(name: Verdict, title: str, done: str) -> BatchAction:
    return BatchAction(
        name,
        title,
        done,
        needs=("reason",) if name in REASON_NEEDED else (),
        check=partial(_check_decision, name),
        record=partial(_record_decision, name),
        undo=lambda context, entry: context.reviews.undo(
            context.actor, entry.id, batch=context.batch
        ),
        validate=partial(_validate_reason, name),
        needs_acknowledgement=name == "approve",
    )


def _names(
    kind: NameChange, title: str, done: str, validate: Callable[[BatchContext], None]
) -> BatchAction:
    return BatchAction(
        kind,
        title,
        done,
        needs=("names",),
        check=partial(_check_names, kind),
        record=partial(_record_names, kind),
        undo=partial(_undo_names, kind),
        validate=validate,
    )


ACTIONS: dict[str, BatchAction] = {
    action.name: action
    for action in (
        _decision("approve", "Approve", "Approved"),
        _decision("reject", "Reject", "Rejected"),
        _names("tag", "Tag", "Tagged", _validate_tags),
        _names("untag", "Remove tags", "Removed tags from", _validate_tags),
        _names("assign", "Assign", "Assigned", _validate_reviewers),
        BatchAction(
            "code",
            "Add failure modes",
            "Added failure modes to",
            needs=("modes",),
            check=_check_coding,
            record=_record_coding,
            undo=_undo_coding,
            validate=_validate_codes,
        ),
        BatchAction(
            "label",
            "Label the same sentence",
            "Labeled the sentence in",
            needs=("label",),
            check=_check_label,
            record=_record_label,
            undo=_undo_label,
            validate=_validate_label,
        ),
    )
}
"""The actions by name."""


def action_named(name: str) -> BatchAction:
    """Return an action.

    Raises:
        InputError: There is no such action.

    """
    if name not in ACTIONS:
        raise InputError(
            f"is {name[:40]!r}, which isn't an action",
            hint=f"Use one of {', '.join(ACTIONS)}.",
            field="action",
        )
    return ACTIONS[name]
