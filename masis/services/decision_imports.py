"""Reads the decisions of an export of decided cases, so that they come back in as decisions.

``masis export --format decided`` writes the rows, and ``datasets/readers/decisions.py`` finds them
in a file. ``ReviewService.import_entry`` records their decisions, marked as imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ConfigDict, ValidationError

from masis.errors import InputError, UnknownRecord
from masis.schema.base import CheckedModel, Record
from masis.schema.case import Case
from masis.schema.explain import explain, kind_of
from masis.schema.review import IMPORTED, REVISION, SHOWN_UNKNOWN, Decision, LogEntry
from masis.schema.run import Run
from masis.schema.team import Rubric
from masis.services.decision_rules import (
    CITATIONS_KEPT,
    ISSUES_SEEN,
    REASON_CODE,
    REASON_CODES,
    kept_citations,
    seen_labels,
)

PERSONS_KINDS = ("decision", "adjudication")


class ImportSource(Record):
    """Where an imported decision comes from, as its entry's ``extra`` records it.

    Attributes:
        file: The SHA-256 digest of the file, or "" if the rows came without one.
        entry: The id of the entry in the log in which the decision was made.
        at: The time of that entry.
        by: Who imported it.
        machine_shown: What the file says that the reviewer saw of the machine's verdict.

    """

    file: str
    entry: str
    at: str
    by: str
    machine_shown: tuple[str, ...]


class _ExportedExtra(CheckedModel):
    """The parts of an entry's ``extra`` that come back in."""

    model_config = ConfigDict(extra="ignore")

    reason_code: str | None = None
    reason_codes: tuple[str, ...] = ()
    answer: str | None = None
    issues_seen: tuple[dict[str, str], ...] = ()
    citations_kept: tuple[str, ...] = ()
    revision: dict[str, int | bool] | None = None

    def as_extra(self) -> dict[str, Any]:
        """Return the parts that are set."""
        parts = {
            REASON_CODE: self.reason_code,
            REASON_CODES: list(self.reason_codes),
            "answer": self.answer,
            ISSUES_SEEN: list(self.issues_seen),
            CITATIONS_KEPT: list(self.citations_kept),
            REVISION: self.revision,
        }
        return {name: part for name, part in parts.items() if part}


class ExportedRow(NamedTuple):
    """The decisions of people in a row of an export.

    Attributes:
        case: The case.
        judged_answer: The answer that ``in_force`` is about.
        in_force: The id of the entry that the case's state followed from.
        entries: The entries of people, in the order in which they were made.

    """

    case: Case
    judged_answer: str | None
    in_force: str
    entries: tuple[LogEntry, ...]


def read_exported(row: object) -> ExportedRow:
    """Read a row of an export of decided cases.

    Raises:
        InputError: The row isn't one, its case isn't valid, or no person's decision is in it.

    """
    if not isinstance(row, Mapping):
        raise InputError(
            f"is {kind_of(row)}, must be an object",
            hint="Write the rows with masis export --format decided.",
            field="exported",
        )
    decisions, decision = row.get("decisions"), row.get("decision")
    listed = [*(decisions if isinstance(decisions, list) else ()), decision]
    try:
        entries = {
            entry.id: entry
            for entry in (
                LogEntry.model_validate(record) for record in listed if record is not None
            )
            if entry.decision is not None
            and entry.decision.kind in PERSONS_KINDS
            and entry.decision.source == "HUMAN"
        }
    except ValidationError as error:
        raise explain(error) from error
    if not entries:
        raise InputError(
            "no person's decision is in this row",
            hint="It was accepted by the policy, isn't decided, or its decisions were redacted.",
        )
    judged = row.get("judged_answer")
    return ExportedRow(
        case=Case.model_validate(row.get("case")),
        judged_answer=judged if isinstance(judged, str) else None,
        in_force=str(decision.get("id")) if isinstance(decision, Mapping) else "",
        entries=tuple(sorted(entries.values(), key=lambda entry: entry.seq)),
    )


def decision_here(
    entry: LogEntry,
    row: ExportedRow,
    runs: Sequence[Run],
    file: str,
    by: str,
    rubric: Rubric,
    *,
    keep: Sequence[str] = (),
) -> Decision:
    """Return an exported decision as one about the same answer here.

    It never counts as blind, because what its reviewer saw can't be known here.

    Args:
        entry: The entry of the export.
        row: Its row.
        runs: The finished audits of the case here, newest first.
        file: The digest of the file.
        by: Who imports it.
        rubric: The rubric in force here. Scores that it has come back if their values fit it.
        keep: The unknown references of its corrected answer that the importer acknowledges.

    Raises:
        UnknownRecord: The answer that it's about isn't here.
        InputError: Its details aren't valid.

    """
    decision = entry.decision
    assert decision is not None
    run, number = _answer_here(entry, row, runs)
    try:
        extra = _ExportedExtra.model_validate(decision.extra).as_extra()
    except ValidationError as error:
        raise explain(error) from error
    source = ImportSource(
        file=file,
        entry=original_id(entry),
        at=entry.at,
        by=by,
        machine_shown=decision.machine_shown,
    )
    versions = {name: text for name, text in decision.versions.items() if name in ("app", "rubric")}
    known = {score.name: score for score in rubric.scores}
    scores = {
        name: value
        for name, value in decision.rubric_scores.items()
        if name in known and known[name].accepts(value)
    }
    if scores:
        versions["team_rubric"] = str(rubric.version)
    return decision.model_copy(
        update={
            "case_id": row.case.id,
            "run_id": run.id if run else None,
            "iteration": number if run else None,
            "machine_shown": decision.machine_shown or (SHOWN_UNKNOWN,),
            "token": token_of(entry),
            "extra": extra
            | kept_citations(keep)
            | seen_labels(decision.labels)  # whether it was asked there can't be known here
            | {IMPORTED: source.model_dump(mode="json")},
            "versions": versions,
            "rubric_scores": scores,
            "about": None,
        }
    )


def original_id(entry: LogEntry) -> str:
    """Return the id of the entry in the log in which its decision was made."""
    extra = entry.decision.extra if entry.decision else {}
    source = extra.get(IMPORTED)
    first = source.get("entry") if isinstance(source, Mapping) else None
    return first if isinstance(first, str) and first else entry.id


def token_of(entry: LogEntry) -> str:
    """Return the token of an imported entry, by which a second import adds nothing."""
    return f"imported:{original_id(entry)[:180]}"


def _answer_here(
    entry: LogEntry, row: ExportedRow, runs: Sequence[Run]
) -> tuple[Run | None, int | None]:
    """Return the audit and the iteration here whose answer a decision is about.

    Without an audit here, it can only be about the original answer.
    """
    decision = entry.decision
    assert decision is not None
    number = decision.iteration or 1
    same = next((run for run in runs if run.id == decision.run_id), None)
    if same is not None and number <= len(same.iterations):
        return same, number
    text = row.judged_answer if entry.id == row.in_force else None
    if number == 1 and text is None:
        text = row.case.answer
    if text is not None:
        for run in runs:
            for iteration in run.iterations:
                if iteration.answer == text:
                    return run, iteration.iteration_number
        if text == row.case.answer:
            return None, None
    raise UnknownRecord(
        f"the decision {entry.id!r} is about"
        f" {f'revision {number}' if number > 1 else 'an answer'} of an audit that isn't here."
    )
