r"""Where a case stands: derived from its runs and its entries in the log, never set by hand.

    new -> running -> needs_review | accepted (by policy) -> approved, overridden, rejected, escalated
              \-> interrupted                    any of them -> redacted, unless a person's decision stands

A person's decision stands, whatever runs follow, until it is undone or another one is made. Without one, a run under
way shows; then the newest finished run counts: accepted where the log holds the policy's acceptance of that run, else
waiting for review. Undoing an entry gives the state the case had without it. A run whose content retention has removed
counts only where an entry that stands is about it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from masis.schema.review import CaseState

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


class Standing(NamedTuple):
    """Where a case stands: its state, the newest finished run, the entry that decides it."""

    state: CaseState
    run_seq: int | None
    entry_seq: int | None


def standing(runs: Sequence[RunFact], entries: Sequence[EntryFact], *, redacted: bool = False) -> Standing:
    """Derive the state from all runs and entries of one case, each in order of their sequence numbers.

    A redacted case on which no person's decision stands is ``redacted``: nobody can audit or review it any more.
    """
    undone = {entry.undoes for entry in entries if entry.kind == "undo"}
    about = {entry.run_seq for entry in entries if entry.kind != "undo" and entry.seq not in undone}
    runs = [run for run in runs if not run.removed or run.seq in about]
    finished = next((run.seq for run in reversed(runs) if run.state == "finished"), None)
    entry = current_entry(entries, finished)
    entry_seq = entry.seq if entry else None
    if entry is not None and entry.kind == "decision":
        return Standing(STATE_OF_VERDICT[entry.verdict or ""], finished, entry_seq)
    if redacted:
        return Standing("redacted", finished, entry_seq)
    if any(run.state == "running" for run in runs):
        return Standing("running", finished, entry_seq)
    if finished is not None:
        return Standing("accepted" if entry else "needs_review", finished, entry_seq)
    return Standing("interrupted" if runs else "new", None, entry_seq)


def current_entry(entries: Sequence[EntryFact], finished_run: int | None) -> EntryFact | None:
    """The entry that stands: the last decision not undone, else the policy's acceptance of the newest finished run."""
    undone = {entry.undoes for entry in entries if entry.kind == "undo"}
    alive = [entry for entry in entries if entry.seq not in undone]
    decisions = [entry for entry in alive if entry.kind == "decision"]
    accepted = [entry for entry in alive if entry.kind == "policy_accept" and entry.run_seq == finished_run]
    return next(reversed(decisions or accepted), None)


_FIGURES = (
    *("quality", "confidence", "overall", "invalid", "uncited", "iterations"),
    *("flags", "reasons", "disagreement", "doubt", "tier", "risk"),
)
_NO_FIGURES = (*[None] * 6, "[]", "[]", -1.0, -1.0, None, -1.0)


def refresh(connection: sqlite3.Connection, case_seq: int) -> None:
    """Bring the derived columns of one case up to date. Every write to runs or log calls this before it commits."""
    runs = connection.execute(
        "SELECT seq, state, starts, started_at, ended_at, removed_by FROM runs WHERE case_seq = ? ORDER BY seq",
        [case_seq],
    ).fetchall()
    entries = connection.execute(
        "SELECT seq, kind, verdict, run_seq, undoes, at FROM decision_log WHERE case_seq = ? ORDER BY seq", [case_seq]
    ).fetchall()
    now = standing(
        [RunFact(run["seq"], run["state"], run["removed_by"] is not None) for run in runs],
        [EntryFact(*tuple(entry)[:5]) for entry in entries],
        redacted=connection.execute("SELECT redaction_seq FROM cases WHERE seq = ?", [case_seq]).fetchone()[0]
        is not None,
    )
    times = [time for run in runs for time in (run["started_at"], run["ended_at"]) if time]
    times += [entry["at"] for entry in entries]
    # a start counts one, its end another, its removal a third: whatever happens to a case, the number rises
    version = 1 + len(entries)
    version += sum(2 * run["starts"] - (run["state"] == "running") + (run["removed_by"] is not None) for run in runs)
    figures = _figures(connection, now.run_seq)
    connection.execute(
        f"""
        UPDATE cases SET state = ?, run_seq = ?, decision_seq = ?, version = ?,
            updated_at = max(imported_at, ?),
            reviewer = (SELECT reviewer FROM decision_payloads JOIN decision_log ON seq = entry_seq
                        WHERE seq = ? AND kind = 'decision'),
            models = ?, {", ".join(f"{name} = ?" for name in _FIGURES)}
        WHERE seq = ?
        """,  # noqa: S608 (names of our own columns)
        [now.state, now.run_seq, now.entry_seq, version, max(times, default=""), now.entry_seq, *figures, case_seq],
    )


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
    for case, *facts in connection.execute(
        "SELECT case_seq, seq, kind, verdict, run_seq, undoes FROM decision_log ORDER BY seq"
    ):
        entries.setdefault(case, []).append(EntryFact(*facts))
    found: list[tuple[str, str, str]] = []
    for case, case_id, redacted, *kept in connection.execute(
        "SELECT seq, id, redaction_seq IS NOT NULL, state, run_seq, decision_seq FROM cases"
    ):
        derived = standing(runs.get(case, ()), entries.get(case, ()), redacted=bool(redacted))
        if Standing(*kept) != derived:
            found.append((case_id, kept[0], derived.state))
    return found
