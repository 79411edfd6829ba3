r"""Where a case stands: derived from its runs and its entries in the log, never set by hand.

    new -> running -> needs_review | accepted (by policy) -> approved, overridden, rejected, escalated
              \-> interrupted     \-> needs_adjudication -> (where several reviewers decide, and differ)
                                any of them -> superseded or redacted, unless a person's decision stands

A person's decision stands, whatever runs follow, until it is undone or another one is made. Without one, a run under
way shows; then the newest finished run counts: accepted where the log holds the policy's acceptance of that run, else
waiting for review. Where several reviewers decide a case (``CasePolicy``) it needs review until all their decisions
are in, and no state before that says that any is; then the policy says which stands, and where none does, the case
needs an adjudication, which stands before all of them. Undoing an entry gives the state the case had without it. A run
whose content retention has removed counts only where an entry that stands is about it. Where a new version took the
place of a case it is superseded, if it was escalated, too: more evidence is what that asked for.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from masis.schema.review import CaseState
from masis.schema.team import CasePolicy

STATE_OF_VERDICT: dict[str, CaseState] = {
    "approve": "approved",
    "override": "overridden",
    "reject": "rejected",
    "escalate": "escalated",
}


class RunFact(NamedTuple):
    """What of a run the state of its case depends on."""

    seq: int
    state: str
    removed: bool = False


class EntryFact(NamedTuple):
    """What of an entry the state of its case depends on."""

    seq: int
    kind: str
    verdict: str | None
    run_seq: int | None
    undoes: int | None
    answer: str | None = None
    """What tells the answer that it lets stand from others; None where that is not known, as after a redaction."""


class DerivedState(NamedTuple):
    """Where a case stands: its state, the newest finished run, the entry that decides it."""

    state: CaseState
    run_seq: int | None
    entry_seq: int | None


def derive_state(
    runs: Sequence[RunFact],
    entries: Sequence[EntryFact],
    *,
    policy: CasePolicy | None = None,
    redacted: bool = False,
) -> DerivedState:
    """Derive the state from all runs and entries of one case, each in order of their sequence numbers.

    A redacted case on which no person's decision stands is ``redacted``: nobody can audit or review it any more.
    """
    undone = {entry.undoes for entry in entries if entry.kind == "undo"}
    about = {entry.run_seq for entry in entries if entry.kind != "undo" and entry.seq not in undone}
    runs = [run for run in runs if not run.removed or run.seq in about]
    finished = next((run.seq for run in reversed(runs) if run.state == "finished"), None)
    entry = current_entry(entries, finished, policy)
    entry_seq = entry.seq if entry else None
    replaced = superseded(entries)
    answered = replaced and entry is not None and entry.verdict == "escalate"
    if entry is not None and entry.kind in ("decision", "adjudication") and not answered:
        return DerivedState(STATE_OF_VERDICT[entry.verdict or ""], finished, entry_seq)
    if redacted:
        return DerivedState("redacted", finished, entry_seq)
    if replaced:
        return DerivedState("superseded", finished, entry_seq)
    made = len(decisions_that_count(entries)) if policy else 0
    if policy is not None and made >= policy.reviewers:
        return DerivedState("needs_adjudication", finished, None)
    if any(run.state == "running" for run in runs):
        return DerivedState("running", finished, entry_seq)
    if made:
        return DerivedState("needs_review", finished, None)
    if finished is not None:
        return DerivedState("accepted" if entry else "needs_review", finished, entry_seq)
    return DerivedState("interrupted" if runs else "new", None, entry_seq)


def superseded(entries: Sequence[EntryFact]) -> bool:
    """Whether a new version took the place of the case."""
    return any(entry.kind == "new_version" for entry in entries)


def decisions_that_count(entries: Sequence[EntryFact]) -> list[EntryFact]:
    """The decisions that nobody has undone. A reviewer who decides a shared case anew undoes the earlier one."""
    undone = {entry.undoes for entry in entries if entry.kind == "undo"}
    return [entry for entry in entries if entry.kind == "decision" and entry.seq not in undone]


def current_entry(
    entries: Sequence[EntryFact], finished_run: int | None, policy: CasePolicy | None = None
) -> EntryFact | None:
    """The entry that stands: the last adjudication, else what the policy says of the decisions.

    Without a policy that is the last decision. Without any decision it is the acceptance of the newest finished run.
    """
    undone = {entry.undoes for entry in entries if entry.kind == "undo"}
    alive = [entry for entry in entries if entry.seq not in undone]
    if adjudications := [entry for entry in alive if entry.kind == "adjudication"]:
        return adjudications[-1]
    decisions = decisions_that_count(entries)
    if policy is not None and decisions:
        return _agreed(decisions, policy)
    accepted = [entry for entry in alive if entry.kind == "policy_accept" and entry.run_seq == finished_run]
    return next(reversed(decisions or accepted), None)


def _agreed(decisions: Sequence[EntryFact], policy: CasePolicy) -> EntryFact | None:
    """The decision that stands by the policy; None while one is missing, or where too few agree."""
    if len(decisions) < policy.reviewers:
        return None
    if policy.rule == "first":
        return decisions[0]
    groups: list[list[EntryFact]] = []
    for decision in decisions:
        group = next((each for each in groups if all(_same(one, decision) for one in each)), None)
        if group is None:
            groups.append([decision])
        else:
            group.append(decision)
    # two of four against two of four: neither stands
    enough = [group for group in groups if len(group) >= policy.agree]
    return enough[0][-1] if len(enough) == 1 else None


def _same(one: EntryFact, other: EntryFact) -> bool:
    """Whether two decisions say the same about the same answer; an unknown answer is taken for the same."""
    return one.verdict == other.verdict and (None in (one.answer, other.answer) or one.answer == other.answer)


def answer_decided(payload: str | None) -> str | None:
    """What tells the answer that a decision lets stand from others, from its stored text; None where redacted."""
    if payload is None:
        return None
    decision: dict[str, Any] = json.loads(payload)
    if decision.get("verdict") in ("reject", "escalate"):
        return "none"
    if (corrected := decision.get("corrected_answer")) is not None:
        return hashlib.sha256(" ".join(corrected.split()).encode()).hexdigest()
    return (decision.get("about") or {}).get("answer") or f"{decision.get('run_id')}:{decision.get('iteration')}"


def policy_of(stored: str | None) -> CasePolicy | None:
    """The policy of a case as its row keeps it."""
    return None if stored is None else CasePolicy.model_validate_json(stored)


_FIGURES = (
    *("quality", "revised_quality", "confidence", "overall", "invalid", "uncited", "iterations"),
    *("flags", "reasons", "disagreement", "doubt", "tier", "risk", "headline", "severity"),
)
_NO_FIGURES = (*[None] * 7, "[]", "[]", -1.0, -1.0, None, -1.0, None, None)


def refresh(connection: sqlite3.Connection, case_seq: int) -> None:
    """Bring the derived columns of one case up to date. Every write to runs or log calls this before it commits.

    The version counts the changes of what people decide about: one reviewer's decision on a case of several is none
    until it is settled, so that it neither turns the others away nor shows.
    """
    derived = _derived(connection, case_seq)
    case, now, entries = derived.case, derived.state, derived.entries
    shown = ("state", "run_seq", "decision_seq", "reviewer")
    changed = tuple(case[name] for name in shown) != (*now, derived.reviewer)
    times = [time for run in derived.runs for time in (run["started_at"], run["ended_at"]) if time]
    hidden = ("decision", "undo", "comment") if derived.pending else ()  # others may not know when one was made
    times += [case["imported_at"], *(entry["at"] for entry in entries if entry["kind"] not in hidden)]
    columns = (*shown, "version", "pending", "updated_at", "models", *_FIGURES)
    connection.execute(
        f"UPDATE cases SET {', '.join(f'{name} = ?' for name in columns)} WHERE seq = ?",  # noqa: S608 (names of ours)
        [
            *(*now, derived.reviewer, case["version"] + changed, derived.pending, max(times)),
            *(*_figures(connection, now.run_seq), case_seq),
        ],
    )
    if entries:
        connection.execute("DELETE FROM case_work WHERE case_seq = ?", [case_seq])
        connection.executemany(
            "INSERT INTO case_work VALUES (?, ?, ?, ?)", [[case_seq, *key, seq] for key, seq in derived.work.items()]
        )


class _Derived(NamedTuple):
    """A case with its runs and entries, and what follows from them; ``work``: which entry gives kind and name."""

    case: sqlite3.Row
    runs: list[sqlite3.Row]
    entries: list[sqlite3.Row]
    state: DerivedState
    reviewer: str | None
    pending: int
    work: dict[tuple[str, str], int]


def _derived(connection: sqlite3.Connection, case_seq: int) -> _Derived:
    runs = connection.execute(
        "SELECT seq, state, started_at, ended_at, removed_by FROM runs WHERE case_seq = ? ORDER BY seq",
        [case_seq],
    ).fetchall()
    entries = connection.execute(
        "SELECT seq, kind, verdict, run_seq, undoes, at, payload, reviewer FROM decision_log "
        "LEFT JOIN decision_payloads ON entry_seq = seq WHERE case_seq = ? ORDER BY seq",
        [case_seq],
    ).fetchall()
    case = connection.execute("SELECT * FROM cases WHERE seq = ?", [case_seq]).fetchone()
    policy = policy_of(case["policy"])
    facts = [_fact(entry, policy) for entry in entries]
    now = derive_state(
        [RunFact(run["seq"], run["state"], run["removed_by"] is not None) for run in runs],
        facts,
        policy=policy,
        redacted=case["redaction_seq"] is not None,
    )
    decided = next((entry for entry in entries if entry["seq"] == now.entry_seq), None)
    reviewer = decided["reviewer"] if decided is not None and decided["kind"] in ("decision", "adjudication") else None
    return _Derived(case, runs, entries, now, reviewer, _pending(facts, policy), _work(entries, now, policy))


WORK = ("assign", "unassign", "tag", "untag", "skip", "comment", "guarantee")
"""Kinds of entries that decide nothing."""


def _fact(entry: sqlite3.Row, policy: CasePolicy | None) -> EntryFact:
    shared = policy is not None and entry["kind"] == "decision"
    answer = answer_decided(entry["payload"]) if shared else None
    seq, kind, verdict, run_seq, undoes = tuple(entry)[:5]
    return EntryFact(seq, kind, verdict, run_seq, undoes, answer)


def _pending(facts: Sequence[EntryFact], policy: CasePolicy | None) -> int:
    """How many decisions are still wanted after the first, undone or not; none where the case is adjudicated."""
    made = len(decisions_that_count(facts))
    undone = {fact.undoes for fact in facts if fact.kind == "undo"}
    if policy is None or any(each.kind == "adjudication" and each.seq not in undone for each in facts):
        return 0
    return max(0, policy.reviewers - made)


def _work(entries: Sequence[sqlite3.Row], now: DerivedState, policy: CasePolicy | None) -> dict[tuple[str, str], int]:
    """Return who has decided, is assigned and has skipped, and the tags. A decision ends its reviewer's skip."""
    undone = {entry["undoes"] for entry in entries if entry["kind"] == "undo"}
    found: dict[tuple[str, str], int] = {}
    for entry in entries:
        kind, reviewer = entry["kind"], entry["reviewer"]
        if kind == "decision" and entry["seq"] not in undone and (policy is not None or entry["seq"] == now.entry_seq):
            # of a redacted decision the name is gone, not that somebody made it
            found["decided", reviewer or f"(redacted entry {entry['seq']})"] = entry["seq"]
            found.pop(("skipped", reviewer), None)
        elif kind == "skip" and reviewer:
            found["skipped", reviewer] = entry["seq"]
        elif kind in ("assign", "unassign", "tag", "untag") and entry["payload"]:
            content = json.loads(entry["payload"])
            names: Iterable[str] = content["assignees"] if kind in ("assign", "unassign") else content["tags"]
            for name in names:
                key = ("assigned" if kind in ("assign", "unassign") else "tagged", name)
                found.pop(key, None)
                if not kind.startswith("un"):
                    found[key] = entry["seq"]
    return found


def _figures(connection: sqlite3.Connection, run_seq: int | None) -> list[object]:
    row = connection.execute(
        f"SELECT models, {', '.join(_FIGURES)} FROM runs WHERE seq = ?",  # noqa: S608 (names of our own columns)
        [run_seq],
    ).fetchone()
    if row is None:
        return ["[]", *_NO_FIGURES]
    models = sorted(set(json.loads(row["models"]).values()))
    return [json.dumps(models, ensure_ascii=False), *tuple(row)[1:]]


def mismatches(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Cases whose state, run or entry differ from what their runs and entries give: id, state kept, state derived."""
    runs: dict[int, list[RunFact]] = {}
    for case, *facts in connection.execute(
        "SELECT case_seq, seq, state, removed_by IS NOT NULL FROM runs ORDER BY seq"
    ):
        runs.setdefault(case, []).append(RunFact(*facts))
    entries: dict[int, list[EntryFact]] = {}
    for case, stored, payload, seq, kind, verdict, run_seq, undoes in connection.execute(
        """SELECT case_seq, policy, iif(kind = 'decision' AND policy IS NOT NULL, payload, NULL),
               log.seq, kind, verdict, log.run_seq, undoes
           FROM decision_log AS log LEFT JOIN decision_payloads ON entry_seq = log.seq
           LEFT JOIN cases ON cases.seq = case_seq ORDER BY log.seq"""
    ):
        answer = answer_decided(payload) if stored is not None else None
        entries.setdefault(case, []).append(EntryFact(seq, kind, verdict, run_seq, undoes, answer))
    found: list[tuple[str, str, str]] = []
    for case, case_id, redacted, policy, *kept in connection.execute(
        "SELECT seq, id, redaction_seq IS NOT NULL, policy, state, run_seq, decision_seq FROM cases"
    ):
        of = (runs.get(case, ()), entries.get(case, ()))
        derived = derive_state(*of, policy=policy_of(policy), redacted=bool(redacted))
        if DerivedState(*kept) != derived:
            found.append((case_id, kept[0], derived.state))
    return found


def mistaken(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield which columns beside the state differ from what follows: who decided, what is missing, who has done what,
    the policy of a case, its figures.
    """
    with_entries = "SELECT DISTINCT case_seq FROM decision_log WHERE kind <> 'policy_accept'"
    for (seq,) in connection.execute(with_entries).fetchall():
        derived = _derived(connection, seq)
        case = derived.case
        stored = {
            (kind, who): entry
            for kind, who, entry in connection.execute(
                "SELECT kind, who, entry_seq FROM case_work WHERE case_seq = ?", [seq]
            )
        }
        named = {
            "the reviewer": (case["reviewer"], derived.reviewer),
            "the number of missing decisions": (case["pending"], derived.pending),
            "who decided, skipped or was assigned it, or a tag": (stored, derived.work),
        }
        decided = [entry for entry in derived.entries if entry["kind"] == "decision"]
        if decided and decided[-1]["payload"] is not None:
            policy = json.loads(decided[-1]["payload"]).get("policy")
            kept = None if case["policy"] is None else json.loads(case["policy"])
            named["the policy"] = (kept, policy)
            if derived.work and any(kind == "decided" for kind, _ in derived.work):
                named["the number of decisions it wants"] = (case["wanted"], policy["reviewers"] if policy else 1)
        wrong = [what for what, (is_so, should_be) in named.items() if is_so != should_be]
        if wrong:
            yield f"case {case['id']!r}: {', '.join(wrong)} differs from what the log says"
    others = f"""SELECT id FROM cases WHERE seq NOT IN ({with_entries})
        AND (reviewer IS NOT NULL OR pending <> 0 OR policy IS NOT NULL OR seq IN (SELECT case_seq FROM case_work))"""  # noqa: S608
    for (case_id,) in connection.execute(others):
        yield f"case {case_id!r}: somebody is said to have decided or worked on it, and the log has no entry"
    differ = " OR ".join(f"cases.{name} IS NOT runs.{name}" for name in _FIGURES)
    sql = f"SELECT cases.id FROM cases JOIN runs ON runs.seq = cases.run_seq WHERE {differ}"  # noqa: S608
    for (case_id,) in connection.execute(sql):
        yield f"case {case_id!r}: its figures differ from those of its run"
