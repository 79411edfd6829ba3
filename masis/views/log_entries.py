"""Describes entries of the decision log: their action, their subject and their reason."""

from __future__ import annotations

from collections.abc import Sequence

from masis.schema.review import (
    BATCH,
    IMPORTED,
    SHOWN_UNKNOWN,
    Decision,
    LogEntry,
    decided_about,
    decision_outcome,
)
from masis.schema.wording import count_noun
from masis.views.words import DECIDED, ENTRY, REDACTED, Word


def entry_number(entry: LogEntry) -> str:
    """Return an entry's number, or its id for readers who may not know the number."""
    return str(entry.seq or entry.id)


def entry_word(entry: LogEntry) -> Word:
    """Return the label of an entry."""
    decision = entry.decision
    if decision is None:
        return REDACTED
    if decision.verdict is None:
        return ENTRY[decision.kind]
    word = DECIDED[decision.verdict]
    return (
        word._replace(text=f"{word.text} by adjudication")
        if decision.kind == "adjudication"
        else word
    )


def verdict_text(decision: Decision) -> str:
    """Describe a decision and its answer, for example ``Approved revision 2``."""
    if decision.verdict is None:
        return "Decided"
    done = "Overrode" if decision.verdict == "override" else DECIDED[decision.verdict].text
    return f"{done} {decided_about(decision)}"


def entry_texts(entries: Sequence[LogEntry]) -> dict[str, Word]:
    """Describe each entry of a case by its id, for example ``Undid “Approved revision 2”``."""
    words = {entry.id: _verdict_word(entry) for entry in entries}
    for entry in entries:
        decision = entry.decision
        if decision is not None and decision.kind == "undo":
            before = words.get(decision.undoes or "")
            words[entry.id] = ENTRY["undo"]._replace(
                text=f"Undid “{before.text}”" if before else "Undid a decision"
            )
        elif decision is not None and decision.kind == "redaction":
            words[entry.id] = ENTRY["redaction"]._replace(
                text=f"Redacted entry {decision.extra.get('redacts', '')}"
            )
    return words


def _verdict_word(entry: LogEntry) -> Word:
    word = entry_word(entry)
    if entry.decision is None or entry.decision.verdict is None:
        return word
    by = " by adjudication" if entry.decision.kind == "adjudication" else ""
    return word._replace(text=verdict_text(entry.decision) + by)


def entry_reason(decision: Decision | None) -> str:
    """Return the reason given with a decision, or name the rule that accepted."""
    if decision is None or decision.kind != "policy_accept":
        return decision.reason if decision else ""
    # Any program may write such an entry, so a list must not fail if the rule is missing.
    rule = decision.extra.get("rule")
    return f"by acceptance rule {rule}" if rule else "by the acceptance rule"


def entry_about(
    decision: Decision | None, undone: LogEntry | None, modes: Sequence[str] = ()
) -> str:
    """Name the subject of an entry: an answer, people, tags, failure modes, or an undone entry.

    Args:
        decision: The content of the entry.
        undone: The entry that it undoes or redacts.
        modes: The names of the failure modes of its codes.

    """
    if decision is None:
        return "its text was removed"
    if decision.kind == "redaction":
        return f"the text of entry {entry_number(undone)}" if undone else ""
    if named := (*decision.assignees, *decision.tags, *(modes or decision.codes)):
        return ", ".join(named)
    if answer := decided_about(decision):
        return ", ".join(filter(None, (answer, decision_outcome(decision))))
    if undone is None:
        return ""
    author = f" by {undone.decision.reviewer}" if undone.decision else ""
    return f"“{entry_word(undone).text}”{author}, entry {entry_number(undone)}"


_COMPARED_FIELDS = (
    "verdict",
    "run_id",
    "iteration",
    "reason",
    "note",
    "corrected_answer",
    "labels",
    "rubric_scores",
)


def adopted_decision_text(final: Decision, decisions: Sequence[Decision]) -> str:
    """Name the decision that a final verdict adopted, and whether it was changed, or ""."""
    side = next(
        (decision for decision in decisions if decision.reviewer == final.extra.get("taken_from")),
        None,
    )
    if side is None:
        return ""
    same = all(getattr(side, name) == getattr(final, name) for name in _COMPARED_FIELDS)
    return f"{side.reviewer}’s decision, {'as it was' if same else 'with changes'}"


def undone_text(by: LogEntry | None) -> str:
    """Name the person who undid an entry, or return "" if it wasn't undone."""
    if by is None:
        return ""
    return f"undone by {by.decision.reviewer}" if by.decision else "undone"


def entry_contents(decision: Decision | None) -> list[str]:
    """List the contents of a decision besides its verdict."""
    if decision is None:
        return []
    contents = ["corrected answer"] if decision.corrected_answer is not None else []
    if labels := len(decision.labels) - len(decision.reported):
        contents.append(count_noun(labels, "label"))
    if decision.reported:
        contents.append(count_noun(len(decision.reported), "reported issue"))
    return contents


_VERSION_OF = {
    "app": "the application",
    "rubric": "the audit's rules",
    "offline_rules": "the offline rules",
    "team_rubric": "the team's rubric",
    "label_types": "the label types",
    "codebook": "the codebook",
    "judge": "the judge",
}
"""What the versions of an entry are of. The name ``rubric`` is that of the audit's own rules."""


def recorded_facts(entry: LogEntry) -> list[tuple[str, str]]:
    """Return the facts recorded with an entry, as pairs of name and value."""
    facts = [("Entry", f"{entry.seq} · {entry.id}" if entry.seq else entry.id), ("Time", entry.at)]
    facts += [("Digest", entry.digest)] if entry.digest else []
    decision = entry.decision
    if decision is None:
        return facts
    if decision.machine_shown:
        words = ", ".join(word.replace("_", " ") for word in decision.machine_shown)
        facts.append(("The machine showed", "not known" if words == SHOWN_UNKNOWN else words))
    if isinstance(source := decision.extra.get(IMPORTED), dict):
        words = f"entry {source.get('entry')} of {source.get('at')}, by {source.get('by')}"
        facts.append(("Imported", words))
    if batch := decision.extra.get(BATCH):
        facts.append(("Batch", str(batch)))
    facts += [(f"Score: {name}", str(score)) for name, score in decision.rubric_scores.items()]
    return facts + [
        (f"Version of {_VERSION_OF.get(name, name)}", text)
        for name, text in decision.versions.items()
    ]
