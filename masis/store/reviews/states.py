r"""Derives the state of a case from its runs and its entries in the log. It is never set by hand.

    new -> running -> needs_review | accepted (by policy) -> approved, overridden, rejected,
              |             |                                escalated
              |             \-> needs_adjudication (several reviewers decided, and they differ)
              \-> interrupted
    any of them -> superseded or redacted, unless a person's decision is in force

These rules apply in order:

- A person's decision is in force, whatever runs follow, until it is undone or replaced.
- If several reviewers decide a case (``CasePolicy``), it has the state that it would have without
  their decisions until all are made, so that its state doesn't reveal earlier ones. Then the policy
  chooses the decision that counts. If it chooses none, the case needs an adjudication, which
  overrides all decisions.
- Each queue has its own decisions and policy, and settles a case by itself. The state of the case
  follows from the newest decision that settled it in any queue, and it needs an adjudication as
  long as the reviewers of one queue differ. A decision that was made while the case waited in other
  queues for independent or blind decisions, the first one included, doesn't change its state until
  they have them (``held_by``).
- Without a decision, a running audit determines the state, then the newest finished run. The case
  is accepted if the log has the policy's acceptance of that run, otherwise it needs review.
- A run whose content retention removed only counts if an effective entry is about it.
- A case with a newer version is superseded. That includes escalated cases, because an escalation
  asks for more evidence.

Undoing an entry restores the state that the case would have without it.

A copy that measures people, with a planted fault or to be labeled again, behaves like any other
case until all its decisions are made. Then it is ``planted`` permanently. No run, decision, figure
or reviewer is derived for it, so queries of the derived columns don't find it, and its rows in the
figures of runs are deleted.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from masis.errors import StoreError
from masis.schema.review import CaseState
from masis.schema.team import CasePolicy
from masis.store.core.sql import Condition
from masis.store.reviews import observations
from masis.store.reviews.queues import (
    FIRST_QUEUE,
    holding_queues,
    open_queues,
    waits_in_shared_queue,
)

CopyKind = Literal[0, 1, 2]
"""The values of the column ``cases.planted``."""

NO_COPY: CopyKind = 0
PLANTED_COPY: CopyKind = 1
"""A copy with a planted fault (``planted.py``)."""
RELABEL_COPY: CopyKind = 2
"""A copy that another person labels again (``relabelling.py``)."""

STATE_OF_VERDICT: dict[str, CaseState] = {
    "approve": "approved",
    "override": "overridden",
    "reject": "rejected",
    "escalate": "escalated",
}


class RunFact(NamedTuple):
    """The fields of a run that the state of its case depends on."""

    seq: int
    state: str
    removed: bool = False


class EntryFact(NamedTuple):
    """The fields of a log entry that the state of its case depends on."""

    seq: int
    kind: str
    verdict: str | None
    run_seq: int | None
    undoes: int | None
    answer: str | None = None
    """Identifies the answer that the entry accepts. None if that isn't known, such as after a
    redaction.
    """
    queue: str = FIRST_QUEUE
    held_by: tuple[str, ...] = ()


class QueueResult(NamedTuple):
    """The result of the decisions on a case in one queue.

    Attributes:
        state: ``pending`` if decisions are missing, ``differ`` if the policy chooses none of them.
        pending: How many decisions are missing.
        entry: The entry that counts, once it's settled.
        held_by: The other queues that its entries wait for.

    """

    state: Literal["pending", "settled", "differ"]
    pending: int = 0
    entry: EntryFact | None = None
    held_by: frozenset[str] = frozenset()


class DerivedState(NamedTuple):
    """The derived state of a case: its state, its newest finished run, and the entry that decides
    it.
    """

    state: CaseState
    run_seq: int | None
    entry_seq: int | None


NO_POLICIES: Mapping[str, CasePolicy | None] = MappingProxyType({})


def derive_state(
    runs: Sequence[RunFact],
    entries: Sequence[EntryFact],
    *,
    policy: CasePolicy | None = None,
    redacted: bool = False,
    copy: CopyKind = NO_COPY,
    queue_policies: Mapping[str, CasePolicy | None] = NO_POLICIES,
    holding: Collection[str] = (),
) -> DerivedState:
    """Derive the state from all runs and entries of one case, each in order of their numbers.

    A redacted case without a person's decision is ``redacted``, because nobody can audit or review
    it any more. A copy (``copy``) is ``planted`` once nobody can decide it any more.

    Args:
        runs: The runs of the case.
        entries: Its entries in the log.
        policy: The policy of its decisions in the first queue.
        redacted: Whether the case is redacted.
        copy: Whether it's a copy that measures people.
        queue_policies: The policies of its decisions in named queues.
        holding: The queues in which it still waits, by which other decisions are held.

    """
    results = results_by_queue(entries, {FIRST_QUEUE: policy, **queue_policies})
    derived = _state_of_case(runs, entries, results, redacted, holding)
    return DerivedState("planted", None, None) if derived.state in _OVER[copy] else derived


_DECIDED_COPY: frozenset[CaseState] = frozenset(
    ("approved", "overridden", "rejected", "needs_adjudication", "redacted")
)

_OVER: dict[CopyKind, frozenset[CaseState]] = {
    NO_COPY: frozenset(),
    PLANTED_COPY: _DECIDED_COPY,
    RELABEL_COPY: _DECIDED_COPY | {"escalated"},
}
"""States in which a copy has served its purpose, by the kind of the copy.

An escalated copy with a planted fault still waits for a verdict. An escalation of a copy to be
labeled again is the other person's label. If reviewers disagree about a copy, there is nothing to
adjudicate. A superseded copy stays superseded, because ``planted`` would reveal that its undecided
new version is a copy too.
"""


def _state_of_case(
    runs: Sequence[RunFact],
    entries: Sequence[EntryFact],
    results: Mapping[str, QueueResult],
    redacted: bool,
    holding: Collection[str],
) -> DerivedState:
    standing = _not_undone(entries)
    about = {entry.run_seq for entry in standing if entry.kind != "undo"}
    runs = [run for run in runs if not run.removed or run.seq in about]
    finished = next((run.seq for run in reversed(runs) if run.state == "finished"), None)
    free = [result for result in results.values() if not result.held_by & {*holding}]
    differ = any(result.state == "differ" for result in free)
    entry = None if differ else _current_entry(free, standing, finished)
    entry_seq = entry.seq if entry else None
    replaced = any(entry.kind == "new_version" for entry in entries)
    answered = replaced and entry is not None and entry.verdict == "escalate"
    if entry is not None and entry.kind in ("decision", "adjudication") and not answered:
        return DerivedState(STATE_OF_VERDICT[entry.verdict or ""], finished, entry_seq)
    if redacted:
        return DerivedState("redacted", finished, entry_seq)
    if replaced:
        return DerivedState("superseded", finished, entry_seq)
    if differ:
        return DerivedState("needs_adjudication", finished, None)
    if any(run.state == "running" for run in runs):
        return DerivedState("running", finished, entry_seq)
    if finished is not None:
        return DerivedState("accepted" if entry else "needs_review", finished, entry_seq)
    return DerivedState("interrupted" if runs else "new", None, entry_seq)


def _not_undone(entries: Sequence[EntryFact]) -> list[EntryFact]:
    """Return the entries that weren't undone.

    A reviewer who decides a shared case again undoes the earlier decision.
    """
    undone = {entry.undoes for entry in entries if entry.kind == "undo"}
    return [entry for entry in entries if entry.seq not in undone]


def results_by_queue(
    entries: Sequence[EntryFact], policies: Mapping[str, CasePolicy | None]
) -> dict[str, QueueResult]:
    """Return what the entries that weren't undone decide, by the queue in which they were made."""
    by_queue: dict[str, list[EntryFact]] = {}
    for entry in _not_undone(entries):
        if entry.kind in ("decision", "adjudication"):
            by_queue.setdefault(entry.queue, []).append(entry)
    return {queue: _result(made, policies.get(queue)) for queue, made in by_queue.items()}


def _result(made: Sequence[EntryFact], policy: CasePolicy | None) -> QueueResult:
    """Return what the decisions and adjudications of one queue decide.

    The last adjudication counts, or else the policy's choice. Without a policy that is the last
    decision.
    """
    held_by = frozenset(queue for entry in made for queue in entry.held_by)
    if adjudications := [entry for entry in made if entry.kind == "adjudication"]:
        return QueueResult("settled", entry=adjudications[-1], held_by=held_by)
    if policy is None:
        return QueueResult("settled", entry=made[-1], held_by=held_by)
    if missing := max(0, policy.reviewers - len(made)):
        return QueueResult("pending", missing, held_by=held_by)
    agreed = _agreed_decision(made, policy)
    return QueueResult("settled" if agreed else "differ", entry=agreed, held_by=held_by)


def _current_entry(
    results: Iterable[QueueResult], standing: Sequence[EntryFact], finished_run: int | None
) -> EntryFact | None:
    """Return the entry that decides: the newest one that settled the case in a queue.

    Without one it is the acceptance of the newest finished run, and so it is while decisions of a
    shared case are missing.
    """
    settling = [result.entry for result in results if result.entry is not None]
    if settling:
        return max(settling, key=lambda entry: entry.seq)
    accepted = [
        entry
        for entry in standing
        if entry.kind == "policy_accept" and entry.run_seq == finished_run
    ]
    return next(reversed(accepted), None)


def _agreed_decision(decisions: Sequence[EntryFact], policy: CasePolicy) -> EntryFact | None:
    """Return the decision that the policy chooses, or None if too few agree."""
    if policy.rule == "first":
        return decisions[0]
    groups: list[list[EntryFact]] = []
    for decision in decisions:
        group = next(
            (group for group in groups if all(_same_verdict(member, decision) for member in group)),
            None,
        )
        if group is None:
            groups.append([decision])
        else:
            group.append(decision)
    # If two groups are large enough (such as two against two), neither wins.
    enough = [group for group in groups if len(group) >= policy.agree]
    return enough[0][-1] if len(enough) == 1 else None


def _same_verdict(first: EntryFact, second: EntryFact) -> bool:
    """Return whether two decisions give the same verdict on the same answer. An unknown answer
    counts as the same.
    """
    return first.verdict == second.verdict and (
        None in (first.answer, second.answer) or first.answer == second.answer
    )


def answer_decided(payload: str | None) -> str | None:
    """Return an identifier of the answer that a decision accepts, or None if it was redacted.

    Corrections that differ only in whitespace have the same identifier.
    """
    if payload is None:
        return None
    decision: dict[str, Any] = json.loads(payload)
    if decision.get("verdict") in ("reject", "escalate"):
        return "none"
    if (corrected := decision.get("corrected_answer")) is not None:
        return hashlib.sha256(" ".join(corrected.split()).encode()).hexdigest()
    return (decision.get("about") or {}).get(
        "answer"
    ) or f"{decision.get('run_id')}:{decision.get('iteration')}"


def policy_of(stored: str | None) -> CasePolicy | None:
    """Return the policy in a case's row, or None if there is none."""
    return None if stored is None else CasePolicy.model_validate_json(stored)


_FIGURES = (
    *("quality", "revised_quality", "confidence", "overall", "invalid", "uncited", "iterations"),
    *("flags", "reasons", "disagreement", "doubt", "tier", "risk", "headline", "severity"),
)
_NO_FIGURES = (*[None] * 7, "[]", "[]", -1.0, -1.0, None, -1.0, None, None)

_CASES_AT_ONCE = 500
"""The number of cases per batch. Their log entries are held in memory, including the texts."""


def refresh(connection: sqlite3.Connection, case_seq: int) -> None:
    """Update the derived columns of one case. Every write to runs or log calls this before it
    commits.

    The version counts changes that all reviewers may see. A decision on a shared case doesn't
    change it until all are made. Otherwise it would refuse the other reviewers' decisions as stale,
    and reveal itself. The policy's acceptance doesn't change it either, because a reviewer from
    whom the machine's verdict is hidden sees the version too.
    """
    [derived] = _derive_cases(connection, ("= ?", [case_seq]))
    case, now, entries = derived.case, derived.state, derived.entries
    shown = ("state", "run_seq", "decision_seq", "reviewer")
    before = DerivedState(case["state"], case["run_seq"], case["decision_seq"])
    changed = _without_acceptance(before) != _without_acceptance(now) or (
        case["reviewer"] != derived.reviewer
    )
    times = [time for run in derived.runs for time in (run["started_at"], run["ended_at"]) if time]
    # The time of a change would reveal an acceptance, or a pending decision.
    hidden: tuple[str, ...] = ("policy_accept",)
    hidden += ("decision", "undo") if derived.pending else ()
    if (
        derived.pending
        or (case["wanted"] > 1 and not derived.is_decided_in_first)
        or (entries and waits_in_shared_queue(connection, case_seq))
    ):
        hidden += (*observations.CODING, "comment")
    acceptances = {entry["seq"] for entry in entries if entry["kind"] == "policy_accept"}
    times += [
        case["imported_at"],
        *(
            entry["at"]
            for entry in entries
            if entry["kind"] not in hidden and entry["undoes"] not in acceptances
        ),
    ]
    columns = (*shown, "version", "pending", "updated_at", "models", *_FIGURES)
    updated = connection.execute(
        f"UPDATE cases SET {', '.join(f'{name} = ?' for name in columns)} "  # noqa: S608
        f"WHERE seq = ?",
        [
            *(*now, derived.reviewer, case["version"] + changed, derived.pending, max(times)),
            *(*_run_figures(connection, now.run_seq), case_seq),
        ],
    )
    if updated.rowcount != 1:
        raise StoreError(
            "the state of a case couldn't be stored, because something other than the workbench"
            " changed this database. Nothing was recorded. `masis verify-log` names what was"
            " changed."
        )
    if now.state == "planted":
        connection.execute(
            "DELETE FROM run_measures WHERE run_id IN (SELECT id FROM runs WHERE case_seq = ?)",
            [case_seq],
        )
    if entries:  # entries are never deleted, so a case without any has no rows to delete
        connection.execute("DELETE FROM case_work WHERE case_seq = ?", [case_seq])
        connection.executemany(
            "INSERT INTO case_work VALUES (?, ?, ?, ?)",
            [[case_seq, *key, seq] for key, seq in derived.work.items()],
        )
        _store_queues(connection, case_seq, derived)
        if derived.queue_states:
            # Its tags and assignees have changed only now, and a queue may hold it by them. This
            # can't repeat without end: of a row, only figures, tags and assignees decide which
            # queues hold it. They follow from runs and entries alone, unless the case is planted,
            # which has no states in queues, so that it isn't derived again.
            [again] = _derive_cases(connection, ("= ?", [case_seq]))
            if (again.state, again.pending) != (now, derived.pending):
                refresh(connection, case_seq)
                return
    run = next((run for run in derived.runs if run["seq"] == now.run_seq), None)
    observations.update(
        connection,
        case_seq,
        None if run is None or run["removed_by"] is not None else run["seq"],
        [] if now.state == "planted" else entries,
        is_new_run=now.run_seq != case["run_seq"],
    )


def _store_queues(connection: sqlite3.Connection, case_seq: int, derived: _DerivedState) -> None:
    """Store the state of a case in each queue, and who decided it there."""
    for table in ("queue_states", "queue_work"):
        connection.execute(f"DELETE FROM {table} WHERE case_seq = ?", [case_seq])  # noqa: S608
    connection.executemany(
        "INSERT INTO queue_states VALUES (?, ?, ?, ?, ?, ?)",
        [[case_seq, queue, *state] for queue, state in derived.queue_states.items()],
    )
    connection.executemany(
        "INSERT INTO queue_work VALUES (?, ?, ?, ?)",
        [[case_seq, *key, seq] for key, seq in derived.queue_work.items()],
    )


def _without_acceptance(derived: DerivedState) -> DerivedState:
    """Return the state as a reviewer sees it from whom the machine's verdict is hidden."""
    if derived.state != "accepted":
        return derived
    return derived._replace(state="needs_review", entry_seq=None)


StoredState = tuple[str, int, int | None, str | None]
"""The state of a case in a queue: a row of ``queue_states`` without its key."""

NO_STATES: dict[Any, Any] = {}


class _DerivedState(NamedTuple):
    """A case with its runs and entries, and everything derived from them.

    ``work`` maps kind and name to the entry that set it. ``queue_states`` and ``queue_work`` (queue
    and name) are empty if no other queue than the first one has a part in the case.
    """

    case: sqlite3.Row
    runs: list[sqlite3.Row]
    entries: list[sqlite3.Row]
    state: DerivedState
    reviewer: str | None
    pending: int
    work: dict[tuple[str, str], int]
    queue_states: dict[str, StoredState] = NO_STATES
    queue_work: dict[tuple[str, str], int] = NO_STATES

    @property
    def is_decided_in_first(self) -> bool:
        """Whether a decision counts that was made in the first queue."""
        if self.queue_states:
            return any(queue == FIRST_QUEUE for queue, _ in self.queue_work)
        return any(kind == "decided" for kind, _ in self.work)


def _derive_cases(connection: sqlite3.Connection, numbers: Condition) -> Iterator[_DerivedState]:
    """Yield the cases whose numbers meet a condition, with everything derived from them."""
    which, values = numbers
    runs, entries = (
        defaultdict[int, list[sqlite3.Row]](list),
        defaultdict[int, list[sqlite3.Row]](list),
    )
    for run in connection.execute(
        f"""SELECT case_seq, seq, state, started_at, ended_at, removed_by FROM runs
            WHERE case_seq {which} ORDER BY case_seq, seq""",  # noqa: S608
        values,
    ):
        runs[run["case_seq"]].append(run)
    for entry in connection.execute(
        f"""SELECT seq, kind, verdict, run_seq, undoes, at, payload, reviewer, case_seq, id, queue
            FROM decision_log LEFT JOIN decision_payloads ON entry_seq = seq WHERE case_seq {which}
            ORDER BY case_seq, seq""",  # noqa: S608
        values,
    ):
        entries[entry["case_seq"]].append(entry)
    sql = f"SELECT * FROM cases WHERE seq {which}"  # noqa: S608
    for case in connection.execute(sql, values).fetchall():
        yield _derive_state_of(connection, case, runs[case["seq"]], entries[case["seq"]])


def _derive_state_of(
    connection: sqlite3.Connection,
    case: sqlite3.Row,
    runs: list[sqlite3.Row],
    entries: list[sqlite3.Row],
) -> _DerivedState:
    policies = {FIRST_QUEUE: policy_of(case["policy"]), **_queue_policies(entries)}
    facts = [_fact(entry, policies) for entry in entries]
    results = results_by_queue(facts, policies)
    held = {queue for result in results.values() for queue in result.held_by}
    holding = holding_queues(connection, case["seq"], held) if held else {}
    # The stored states are those before this change.
    for queue, result in results.items():
        if result.state != "pending":
            holding.pop(queue, None)
        elif queue in holding:
            holding[queue] = result.pending
    now = derive_state(
        [RunFact(run["seq"], run["state"], run["removed_by"] is not None) for run in runs],
        facts,
        policy=policies.pop(FIRST_QUEUE),
        redacted=case["redaction_seq"] is not None,
        copy=case["planted"],
        queue_policies=policies,
        holding=holding,
    )
    if now.state == "planted":
        return _DerivedState(case, runs, entries, now, None, 0, {})
    decided = next((entry for entry in entries if entry["seq"] == now.entry_seq), None)
    reviewer = (
        decided["reviewer"]
        if decided is not None and decided["kind"] in ("decision", "adjudication")
        else None
    )
    policies[FIRST_QUEUE] = policy_of(case["policy"])
    deciding = _deciding_entries(facts, results, policies)
    involved = held or any(queue != FIRST_QUEUE for queue in results)
    return _DerivedState(
        case,
        runs,
        entries,
        now,
        reviewer,
        max((*_missing(connection, results, policies), *holding.values()), default=0),
        _work_of_case(entries, deciding),
        {queue: _stored_state(result, policies.get(queue)) for queue, result in results.items()}
        if involved
        else {},
        {
            (fact.queue, _decider(entry)): fact.seq
            for entry, fact in zip(entries, facts, strict=True)
            if fact.seq in deciding
        }
        if involved
        else {},
    )


def _missing(
    connection: sqlite3.Connection,
    results: Mapping[str, QueueResult],
    policies: Mapping[str, CasePolicy | None],
) -> Iterator[int]:
    """Yield how many decisions each queue of a case misses after the first.

    Once one was made, its undo must not reveal it, so then all are missing. An archived queue waits
    for none.
    """
    named = any(queue != FIRST_QUEUE for queue in policies)
    known = {queue.id for queue in open_queues(connection)} if named else set()
    for queue, policy in policies.items():
        if queue == FIRST_QUEUE or queue in known:
            if queue in results:
                yield results[queue].pending
            elif policy is not None:
                yield policy.reviewers


def _queue_policies(entries: Iterable[sqlite3.Row]) -> dict[str, CasePolicy | None]:
    """Return the policy of each named queue in which a case was decided.

    The first decision that isn't undone fixes it, and the later ones repeat it. If all are undone,
    it's that of the last one. It isn't known if all of them are redacted.
    """
    undone = {entry["undoes"] for entry in entries if entry["kind"] == "undo"}
    policies: dict[str, CasePolicy | None] = {}
    for entry in sorted(entries, key=lambda entry: entry["seq"] not in undone):
        if entry["queue"] and entry["kind"] == "decision":
            policies.setdefault(entry["queue"], None)
            if entry["payload"] is not None:
                stored = json.loads(entry["payload"])["policy"]
                policies[entry["queue"]] = stored and CasePolicy.model_validate(stored)
    return policies


def _stored_state(result: QueueResult, policy: CasePolicy | None) -> StoredState:
    entry = result.entry.seq if result.entry else None
    return result.state, result.pending, entry, policy.model_dump_json() if policy else None


def _deciding_entries(
    facts: Sequence[EntryFact],
    results: Mapping[str, QueueResult],
    policies: Mapping[str, CasePolicy | None],
) -> set[int]:
    """Return the decisions that count: all of a shared case, or else the last one in a queue."""
    return {
        fact.seq
        for fact in _not_undone(facts)
        if fact.kind == "decision"
        and (policies.get(fact.queue) is not None or results[fact.queue].entry == fact)
    }


def _decider(entry: sqlite3.Row) -> str:
    # A redacted decision still counts, although its reviewer isn't known any more.
    return entry["reviewer"] or f"(redacted entry {entry['seq']})"


WORK = (
    *("assign", "unassign", "tag", "untag", "skip", "comment"),
    *observations.CODING,
    "guarantee",
)
"""Kinds of entries that don't decide the case."""


def _fact(entry: sqlite3.Row, policies: Mapping[str, CasePolicy | None]) -> EntryFact:
    queue, payload = entry["queue"] or FIRST_QUEUE, entry["payload"]
    shared = policies.get(queue) is not None and entry["kind"] == "decision"
    answer = answer_decided(payload) if shared else None
    held_by: tuple[str, ...] = ()
    # Only a decision that other queues hold has this field, and quotes in a text are escaped.
    if payload is not None and '"held_by":[' in payload:
        held_by = tuple(json.loads(payload)["held_by"])
    seq, kind, verdict, run_seq, undoes = tuple(entry)[:5]
    return EntryFact(seq, kind, verdict, run_seq, undoes, answer, queue, held_by)


def _work_of_case(
    entries: Sequence[sqlite3.Row], deciding: Collection[int]
) -> dict[tuple[str, str], int]:
    """Return the deciders, assignees and tags, and who skipped the case.

    A decision ends its reviewer's skip, and so does an undo of it.
    """
    undone = {entry["undoes"] for entry in entries if entry["kind"] == "undo"}
    work: dict[tuple[str, str], int] = {}
    for entry in entries:
        kind, reviewer = entry["kind"], entry["reviewer"]
        if entry["seq"] in deciding:
            work["decided", _decider(entry)] = entry["seq"]
            work.pop(("skipped", reviewer), None)
        elif kind == "skip" and reviewer and entry["seq"] not in undone:
            work["skipped", reviewer] = entry["seq"]
        elif kind in ("assign", "unassign", "tag", "untag") and entry["payload"]:
            content = json.loads(entry["payload"])
            names: Iterable[str] = (
                content["assignees"] if kind in ("assign", "unassign") else content["tags"]
            )
            for name in names:
                key = ("assigned" if kind in ("assign", "unassign") else "tagged", name)
                work.pop(key, None)
                if not kind.startswith("un"):
                    work[key] = entry["seq"]
    return work


def _run_figures(connection: sqlite3.Connection, run_seq: int | None) -> list[object]:
    row = connection.execute(
        f"SELECT models, {', '.join(_FIGURES)} FROM runs WHERE seq = ?",  # noqa: S608
        [run_seq],
    ).fetchone()
    if row is None:
        return ["[]", *_NO_FIGURES]
    models = sorted(set(json.loads(row["models"]).values()))
    return [json.dumps(models, ensure_ascii=False), *tuple(row)[1:]]


def problems(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield the differences between the derived columns and the values from runs and log."""
    [last] = connection.execute("SELECT coalesce(max(seq), 0) FROM cases").fetchone()
    for first in range(1, last + 1, _CASES_AT_ONCE):
        numbers: Condition = ("BETWEEN ? AND ?", [first, first + _CASES_AT_ONCE - 1])
        work = defaultdict[int, dict[tuple[str, str], int]](dict)
        for seq, kind, who, entry in connection.execute(
            f"SELECT case_seq, kind, who, entry_seq FROM case_work "  # noqa: S608
            f"WHERE case_seq {numbers[0]}",
            numbers[1],
        ):
            work[seq][kind, who] = entry
        codes = defaultdict[int, dict[tuple[str, str, str], int]](dict)
        for seq, *key, entry in connection.execute(
            f"SELECT case_seq, place, code, reviewer, entry_seq FROM case_codes "  # noqa: S608
            f"WHERE case_seq {numbers[0]}",
            numbers[1],
        ):
            codes[seq][key[0], key[1], key[2]] = entry
        queues = defaultdict[int, dict[str, StoredState]](dict)
        for row in connection.execute(
            f"SELECT * FROM queue_states WHERE case_seq {numbers[0]}",  # noqa: S608
            numbers[1],
        ):
            seq, queue, state, pending, entry, policy = row
            queues[seq][queue] = (state, pending, entry, policy)
        queue_work = defaultdict[int, dict[tuple[str, str], int]](dict)
        for seq, queue, who, entry in connection.execute(
            f"SELECT case_seq, queue, who, entry_seq FROM queue_work "  # noqa: S608
            f"WHERE case_seq {numbers[0]}",
            numbers[1],
        ):
            queue_work[seq][queue, who] = entry
        for derived in _derive_cases(connection, numbers):
            yield from _state_mistakes(derived, work[derived.case["seq"]])
            if derived.state.state == "planted":
                continue
            if queues[derived.case["seq"]] != derived.queue_states:
                yield f"case {derived.case['id']!r}: its state in a queue differs from the log"
            if queue_work[derived.case["seq"]] != derived.queue_work:
                yield f"case {derived.case['id']!r}: who decided it in a queue differs from the log"
            if codes[derived.case["seq"]] != observations.codes_of_entries(derived.entries):
                yield f"case {derived.case['id']!r}: its failure modes differ from the log"
    differ = " OR ".join(f"cases.{name} IS NOT runs.{name}" for name in _FIGURES)
    sql = (
        f"SELECT cases.id FROM cases JOIN runs ON runs.seq = cases.run_seq "  # noqa: S608
        f"WHERE {differ}"
    )
    for (case_id,) in connection.execute(sql):
        yield f"case {case_id!r}: its figures differ from those of its run"


def _state_mistakes(derived: _DerivedState, work: dict[tuple[str, str], int]) -> Iterator[str]:
    case, now = derived.case, derived.state
    if DerivedState(case["state"], case["run_seq"], case["decision_seq"]) != now:
        yield (
            f"case {case['id']!r} is marked {case['state']}, but its runs and decisions make it"
            f" {now.state}"
        )
    named: dict[str, tuple[object, object]] = {
        "the reviewer": (case["reviewer"], derived.reviewer),
        "the number of missing decisions": (case["pending"], derived.pending),
        "who decided, skipped or was assigned it, or a tag": (work, derived.work),
    }
    decided = [
        entry["payload"]
        for entry in derived.entries
        if entry["kind"] == "decision" and not entry["queue"]
    ]
    if not decided or decided[-1] is not None:
        policy = json.loads(decided[-1]).get("policy") if decided else None
        named["the policy"] = (case["policy"] and json.loads(case["policy"]), policy)
        if decided and derived.is_decided_in_first:
            named["the number of decisions it needs"] = (
                case["wanted"],
                policy["reviewers"] if policy else 1,
            )
    if wrong := [what for what, (is_so, should_be) in named.items() if is_so != should_be]:
        yield f"case {case['id']!r}: differs from the log in {', '.join(wrong)}"
