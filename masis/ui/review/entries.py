"""Entries of the decision log as the pages show them: who, when, what, why, and what became of it. Pure.

What the store has to be asked for comes in as ``Around``, so that nothing here reads anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, NotRequired, TypedDict

from masis.schema.review import Decision, LogEntry, decided_about
from masis.schema.wording import counted
from masis.services.records import CaseSummary
from masis.ui.components import nothing, registered
from masis.ui.review.answer_view import LabelData, label
from masis.ui.shell.address import link
from masis.ui.shell.wording import Word

VERDICT_WORD: dict[str, Word] = {
    "approve": Word("Approved", "good", "A person found the answer fit for use"),
    "override": Word("Overridden", "good", "A person corrected the answer"),
    "reject": Word("Rejected", "bad", "A person found the answer unfit for use"),
    "escalate": Word("Escalated", "warn", "A person wants more evidence or another reviewer"),
}
KIND_WORD: dict[str, Word] = {
    "decision": Word("Decision", "calm", "A verdict on a case"),
    "undo": Word("Undone", "calm", "Cancels an earlier entry"),
    "policy_accept": Word("Auto-accepted", "calm", "The acceptance rule found no reason for a review"),
    "adjudication": Word("Adjudication", "calm", "The final verdict on a case whose reviewers differ"),
    "assign": Word("Assigned", "calm", "Gives a case to a reviewer"),
    "unassign": Word("Unassigned", "calm", "Takes a case from a reviewer"),
    "tag": Word("Tagged", "calm", "Gives a case a tag"),
    "untag": Word("Tag removed", "calm", "Takes a tag from a case"),
    "skip": Word("Skipped", "calm", "Leaves a case undecided"),
    "comment": Word("Comment", "calm", "What somebody wrote about a case"),
    "new_version": Word("New version", "calm", "A case with more evidence takes the place of this one"),
    "redaction": Word("Redaction", "warn", "Removes what was written in an earlier entry"),
}
SOURCE_WORD: dict[str, Word] = {
    "HUMAN": Word("person", "calm"),
    "LLM_JUDGE": Word("model", "calm"),
    "CODE": Word("rule", "calm"),
}
REMOVED = Word("Redacted", "warn", "What was written in this entry was removed; a later entry records by whom and why")


class Around(NamedTuple):
    """What belongs to an entry: its case, the entry it undoes or redacts, the one that undid it."""

    case: CaseSummary | None = None
    undone: LogEntry | None = None
    undone_by: LogEntry | None = None


class CaseLink(TypedDict):
    """A case to open."""

    id: str
    question: str
    href: str


class LabelGiven(TypedDict):
    """A person's label on a part of the answer; a severity says that it reports an issue."""

    target: str
    text: str
    label: str
    severity: str
    note: str


class DiffPiece(TypedDict):
    """A stretch of a correction: unchanged, removed or added."""

    text: str
    kind: str


class EntryRow(TypedDict):
    """One entry as the list draws it."""

    id: str
    seq: int
    at: str
    who: str
    source: str
    label: LabelData
    about: str
    undone: str
    case: NotRequired[CaseLink]
    reason: str
    note: str
    more: list[str]


class EntryDetail(TypedDict):
    """What is shown under an entry that was opened."""

    labels: list[LabelGiven]
    correction: list[DiffPiece]
    corrected: str
    facts: list[tuple[str, str]]
    run: NotRequired[CaseLink]


def entry_row(entry: LogEntry, around: Around) -> EntryRow:
    """Return one entry with what belongs to it."""
    decision = entry.decision
    row: EntryRow = {
        "id": entry.id,
        "seq": entry.seq,
        "at": entry.at,
        "who": decision.reviewer if decision else "",
        "source": SOURCE_WORD[decision.source].text if decision else "",
        "label": label(entry_word(entry)),
        "about": _about(decision, around),
        "undone": _undone_words(around.undone_by),
        "reason": _reason(decision),
        "note": decision.note if decision else "",
        "more": _more(decision),
    }
    if around.case is not None:
        row["case"] = {
            "id": around.case.id,
            "question": around.case.query,
            "href": link("review", case=around.case.id),
        }
    return row


def _reason(decision: Decision | None) -> str:
    if decision is None or decision.kind != "policy_accept":
        return decision.reason if decision else ""
    rule = decision.extra.get("rule")
    return f"by acceptance rule {rule}" if rule else "by an acceptance rule of an earlier version"


def entry_word(entry: LogEntry) -> Word:
    """Return what an entry says, in a word."""
    decision = entry.decision
    if decision is None:
        return REMOVED
    if decision.kind == "adjudication":
        word = VERDICT_WORD[decision.verdict or ""]
        return word._replace(text=f"{word.text} by adjudication")
    return VERDICT_WORD[decision.verdict or ""] if decision.kind == "decision" else KIND_WORD[decision.kind]


def _about(decision: Decision | None, around: Around) -> str:
    if decision is None:
        return "what was written here was removed"
    if decision.kind == "redaction":
        return f"the text of entry {around.undone.seq}" if around.undone else ""
    if decision.assignees or decision.tags:
        return ", ".join((*decision.assignees, *decision.tags))
    if answer := decided_about(decision):
        return answer
    undone = around.undone
    if undone is None:
        return ""
    who = f" by {undone.decision.reviewer}" if undone.decision else ""
    return f"“{entry_word(undone).text}”{who}, entry {undone.seq}"


def _undone_words(by: LogEntry | None) -> str:
    if by is None:
        return ""
    return f"undone by {by.decision.reviewer}" if by.decision else "undone"


def _more(decision: Decision | None) -> list[str]:
    if decision is None:
        return []
    more = ["corrected answer"] if decision.corrected_answer is not None else []
    if labels := len(decision.labels) - len(decision.reported):
        more.append(counted(labels, "label"))
    if decision.reported:
        more.append(counted(len(decision.reported), "reported issue"))
    return more


def entry_detail(entry: LogEntry, correction: list[DiffPiece]) -> EntryDetail:
    """Return everything else an entry holds; ``correction`` is the corrected answer against the one that was shown."""
    decision = entry.decision
    facts = [("Entry", f"{entry.seq} · {entry.id}"), ("Time", entry.at), ("Digest", entry.digest)]
    detail: EntryDetail = {"labels": [], "correction": correction, "corrected": "", "facts": facts}
    if decision is None:
        return detail
    detail["labels"] = [
        {
            "target": each.target,
            "text": each.text,
            "label": each.label,
            "severity": each.severity or "",
            "note": each.note,
        }
        for each in decision.labels
    ]
    detail["corrected"] = decision.corrected_answer or ""
    if decision.machine_shown:
        facts.append(("The machine showed", ", ".join(word.replace("_", " ") for word in decision.machine_shown)))
    facts += [(f"Version of {name}", text) for name, text in decision.versions.items()]
    if decision.run_id:
        at = f", iteration {decision.iteration}" if decision.iteration else ""
        detail["run"] = {
            "id": decision.run_id,
            "question": f"{decision.run_id}{at}",
            "href": link("review", case=decision.case_id, run=decision.run_id, iteration=str(decision.iteration or "")),
        }
    return detail


_LOG = registered("decision_log")


class LogClick(NamedTuple):
    """What was clicked in the log: a case to open, an entry to unfold ("" folds it up), an address to go to."""

    case: str | None
    entry: str | None
    href: str | None


def decision_log(data: Mapping[str, Any], *, key: str) -> LogClick:
    """Draw entries of the decision log, in full or in brief; return what was just clicked."""
    found = _LOG(data=data, key=key, on_open_change=nothing, on_entry_change=nothing)
    opened = found.open if isinstance(found.open, Mapping) else {}
    return LogClick(_text(opened.get("case")), _text(found.entry), _text(opened.get("href")))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
