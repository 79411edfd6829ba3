"""Handing a decision in: once however often it is sent, against the case as it was seen, its draft gone with it."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from masis import version
from masis.schema.review import CaseState, Decision, LogEntry, Verdict
from masis.store import Store
from masis.store.records import CaseFilter

# The reasons a reviewer can give with one key, so that decisions can be counted by reason.
#
# The list follows what the audit can find (fabricated, misattributed, contradicted, ...) and adds what only a person
# sees. ``other`` asks for words of the reviewer's own.

OTHER = "other"


class Reason(NamedTuple):
    """One reason; ``rules`` are the findings of an audit that speak for it."""

    code: str
    text: str
    verdicts: tuple[Verdict, ...]
    rules: tuple[str, ...] = ()


_FAULT: tuple[Verdict, ...] = ("override", "reject")

REASONS: tuple[Reason, ...] = (
    Reason("fabricated_citation", "Cites evidence that does not exist", _FAULT, ("fabricated_reference",)),
    Reason("wrong_citation", "Cites the wrong evidence", _FAULT, ("misattributed_reference", "needless_reference")),
    Reason("contradicted", "The evidence says otherwise", _FAULT, ("contradicted_claim",)),
    Reason("unsupported", "Says more than the evidence", _FAULT, ("unsupported_claim", "partly_supported_claim")),
    Reason("uncited", "Claims without a citation", _FAULT, ("uncited_sentence",)),
    Reason("incomplete", "Leaves out what matters", _FAULT, ("missing_information", "dropped_content")),
    Reason("misses_the_question", "Does not answer the question", _FAULT),
    Reason("unclear", "Unclear or badly argued", _FAULT),
    Reason("findings_wrong", "The audit's findings are wrong", ("approve",)),
    Reason("findings_harmless", "The findings are harmless", ("approve",)),
    Reason("checked", "Checked against the evidence", ("approve",)),
    Reason("needs_evidence", "Needs more evidence", ("escalate",)),
    Reason("needs_specialist", "Needs someone who knows the field", ("escalate",)),
    Reason("sources_conflict", "The sources conflict", ("escalate",)),
    Reason("question_unclear", "The question is unclear", ("escalate",)),
    Reason(OTHER, "Other", ("approve", *_FAULT, "escalate")),
)

_BY_CODE = {reason.code: reason for reason in REASONS}


def reasons_for(verdict: Verdict) -> tuple[Reason, ...]:
    """The reasons that can be given with a verdict; ``other`` is the last."""
    return tuple(reason for reason in REASONS if verdict in reason.verdicts)


def suggested(verdict: Verdict, rules: Collection[str]) -> tuple[str, ...]:
    """The codes of the reasons that findings of these rules speak for."""
    return tuple(reason.code for reason in reasons_for(verdict) if any(rule in rules for rule in reason.rules))


def reason_text(code: str, own_words: str = "") -> str:
    """What goes into the log: the words of the reason, for ``other`` the reviewer's own; empty for an unknown code."""
    if code == OTHER:
        return own_words.strip()
    known = _BY_CODE.get(code)
    return known.text if known else ""


# Which case a reviewer should look at next, in the queue and the order they have chosen.

WAITING: tuple[CaseState, ...] = ("needs_review", "new", "interrupted")
"""The states that wait for a person. An escalated case waits too, but for somebody or something else."""


def waiting_in(wanted: CaseFilter) -> CaseFilter:
    """What waits among the cases of a queue; a queue of decided cases only holds nothing that waits."""
    states = tuple(state for state in WAITING if not wanted.states or state in wanted.states)
    return wanted.model_copy(update={"states": states or WAITING})


def next_waiting(store: Store, case_id: str, wanted: CaseFilter, skipped: Collection[str] = ()) -> str | None:
    """The case to decide after this one: behind it in the order, else from the start; None where nothing is left.

    Cases skipped are passed over. Raises UnknownRecord.
    """
    return store.cases.following(case_id, waiting_in(wanted), without={case_id, *skipped})


def case_subject(case_id: str) -> str:
    """What a draft of a decision on a case goes by."""
    return f"case:{case_id}"


def submit(store: Store, decision: Decision, *, seen_version: int | None) -> LogEntry:
    """Append a decision and let its draft go, both or neither.

    The same token again gives the first entry back. Raises StaleVersion where the case is no longer as it was seen,
    and what ``store.decisions.append`` raises; the draft then stays.
    """
    with store.transaction():
        entry = store.decisions.append(_versioned(decision), seen_version=seen_version)
        store.drafts.clear(decision.reviewer, case_subject(decision.case_id))
    return entry


def take_back(store: Store, entry: LogEntry, reviewer: str) -> LogEntry:
    """Undo one entry by a further one; asked again, the same undo is given back and nothing else is undone.

    Naming the entry matters: with "undo whatever stands" a second press would take back the decision before, too.
    Raises StoreError where the entry does not stand any more.
    """
    if entry.decision is None:
        raise ValueError("what a redacted entry decided is not known")
    return store.decisions.append(
        _versioned(
            Decision(
                kind="undo",
                reviewer=reviewer,
                case_id=entry.decision.case_id,
                run_id=entry.decision.run_id,
                undoes=entry.id,
                token=f"undo:{entry.id}",
            )
        )
    )


def _versioned(decision: Decision) -> Decision:
    if decision.versions:
        return decision
    return decision.model_copy(update={"versions": {"app": version.APP, "rubric": version.RUBRIC}})
