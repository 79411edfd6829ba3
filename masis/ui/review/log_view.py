"""The component that draws the decision log. Its texts are in ``masis/views/log_entries.py``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from masis.schema.case import Case
from masis.schema.review import BATCH, Decision, LogEntry
from masis.schema.run import Run
from masis.services.decision_rules import CAUSES
from masis.services.records import CaseSummary
from masis.ui.components import noop, register_component
from masis.ui.shell.address import link
from masis.views.diff import DiffChange
from masis.views.labels import label_lines
from masis.views.log_entries import (
    entry_about,
    entry_contents,
    entry_number,
    entry_reason,
    entry_word,
    recorded_facts,
    undone_text,
)
from masis.views.numbers import moment_utc
from masis.views.words import SOURCE, label


class EntryContext(NamedTuple):
    """The records that belong to an entry.

    Attributes:
        case: Its case.
        undone: The entry that it undoes or redacts.
        undone_by: The entry that undid it.
        adopted: The reviewer whose decision an adjudication adopted, in words.
        modes: The names of the failure modes that it applies or removes.

    """

    case: CaseSummary | None = None
    undone: LogEntry | None = None
    undone_by: LogEntry | None = None
    adopted: str = ""
    modes: tuple[str, ...] = ()


def entry_row(entry: LogEntry, context: EntryContext) -> dict[str, Any]:
    """Return an entry as the data of a row."""
    decision, case = entry.decision, context.case
    about = entry_about(decision, context.undone, context.modes)
    return {
        "id": entry.id,
        "seq": entry_number(entry),
        "at": entry.at,
        "when": moment_utc(entry.at),
        "who": decision.reviewer if decision else "",
        "source": SOURCE[decision.source].text if decision and decision.source != "HUMAN" else "",
        "label": label(entry_word(entry)),
        "about": ", ".join(filter(None, (about, context.adopted))),
        "undone": undone_text(context.undone_by),
        "reason": entry_reason(decision),
        "note": decision.note if decision else "",
        "more": [*entry_contents(decision), *_cause_texts(decision)],
        "batch": decision.extra.get(BATCH, "") if decision else "",
        "case": (
            {"id": case.id, "question": case.query, "href": link("review", case=case.id)}
            if case
            else None
        ),
    }


def _cause_texts(decision: Decision | None) -> list[str]:
    """Return why reviewers differed, if an adjudication says so."""
    if decision is None or decision.cause is None:
        return []
    proposes = ["a sentence for the rubric"] if decision.rubric_sentence else []
    return [f"cause: {CAUSES[decision.cause].text.lower()}", *proposes]


def _disagreement_facts(decision: Decision | None) -> list[tuple[str, str]]:
    """Return why reviewers differed, and the sentence that was proposed for the rubric."""
    if decision is None or decision.cause is None:
        return []
    cause = CAUSES[decision.cause]
    facts = [("Why they differed", f"{cause.text}: {cause.meaning}")]
    sentence = decision.rubric_sentence
    return [*facts, ("Sentence for the rubric", sentence)] if sentence else facts


def entry_detail(
    entry: LogEntry, correction: list[DiffChange], case: Case | None, run: Run | None
) -> dict[str, Any]:
    """Return the details of an entry.

    Args:
        entry: The entry.
        correction: The changes of its correction to the answer.
        case: Its case, if the reader may see it.
        run: The run that it's about, if the reader may see it.

    """
    decision = entry.decision
    detail: dict[str, Any] = {
        "labels": [line._asdict() for line in label_lines(decision, case, run)],
        "correction": [change._asdict() for change in correction],
        "corrected": (decision.corrected_answer if decision else None) or "",
        "facts": [*_disagreement_facts(decision), *recorded_facts(entry)],
    }
    if decision is not None and decision.run_id:
        at = str(decision.iteration or "")
        detail["run"] = {
            "id": decision.run_id,
            "question": f"{decision.run_id}, iteration {at}" if at else decision.run_id,
            "href": link("review", case=decision.case_id, run=decision.run_id, iteration=at),
        }
    return detail


_LOG = register_component("decision_log", "table", "row_keys")


class LogClick(NamedTuple):
    """A click in the log: a case to open, an entry to unfold ("" folds it), an address, or a batch
    whose entries to list.
    """

    case: str | None
    entry: str | None
    href: str | None
    batch: str | None = None


def decision_log(data: Mapping[str, Any], *, key: str) -> LogClick:
    """Draw entries of the decision log, in full or in brief, and return the latest click."""
    clicked = _LOG(
        data=data, key=key, on_open_change=noop, on_entry_change=noop, on_batch_change=noop
    )
    opened = clicked.open if isinstance(clicked.open, Mapping) else {}
    return LogClick(
        _text_or_none(opened.get("case")),
        _text_or_none(clicked.entry),
        _text_or_none(opened.get("href")),
        _text_or_none(clicked.batch),
    )


def _text_or_none(value: object) -> str | None:
    # A browser posts the value, so it may be anything.
    return value if isinstance(value, str) else None
