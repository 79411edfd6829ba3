"""The records an archive is made of: JSON-ready and complete, so that they make the same database again.

What is derived (states, figures, words to search) is left out. Remembered grades are left out too: they are asked again
where they are missed. The words in these records never change: archives written before hold them.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from masis.schema.base import OpenRecord, Record
from masis.schema.review import EntryKind
from masis.store.core.process_owner import Owner
from masis.store.records import DatasetVersion

ALTERED = "The archive was altered or put together by hand: export it again from the database."
UNDER_WAY = "It was under way when the archive was written."
NOBODY = Owner("", 0, "")
"""Whose runs and screenings those of an archive are: nobody will finish them there."""

IMPORT_COLUMNS = ("at", "source", "identified", "added", "duplicates", "faulty")
LISTS = ("flags", "reasons")
"""Figures of a run that are lists, and JSON in the database."""

AS_ARCHIVED = {"disagreement": "telling", "redundant": "needless"}
"""Names of figures and flags that are others in archives."""


class CaseRecord(Record):
    """A case and when it came in."""

    record: Literal["case"] = "case"
    imported_at: str
    case: dict[str, Any]


class RedactedCaseRecord(Record):
    """What is left of a redacted case, the digest of what it was, and the log entry that redacted it."""

    record: Literal["redacted_case"] = "redacted_case"
    imported_at: str
    case: dict[str, Any]
    digest: str
    redaction: str


class RunRecord(Record):
    """A run, finished (then ``run`` is its result, without the iterations, which are here) or interrupted.

    Of one that retention has removed there are only its ``figures`` and ``measures``, which are otherwise
    derived again, and the number of the purge that removed it.
    """

    record: Literal["run"] = "run"
    id: str
    case_id: str
    case_digest: str
    state: Literal["finished", "interrupted"]
    starts: int
    started_at: str
    ended_at: str
    why: str
    models: dict[str, str]
    settings: dict[str, Any]
    draft: dict[str, Any] | None
    iterations: list[dict[str, Any]]
    run: dict[str, Any] | None
    events: list[dict[str, Any]]
    removed_by: int | None = None
    figures: dict[str, Any] | None = None
    measures: dict[str, Any] | None = None


class LogRecord(Record):
    """An entry of a log. Of a redacted one ``decision`` is None and ``kept`` what the log's own columns say of it."""

    record: str
    seq: int
    id: str
    at: str
    payload_digest: str
    previous: str
    digest: str
    decision: dict[str, Any] | None
    kept: dict[str, Any] | None = None


class EntryRecord(LogRecord):
    """An entry of the decision log."""

    record: Literal["entry"] = "entry"


class RedactedEntry(OpenRecord):
    """What the decision log's own columns say of a redacted entry."""

    case_id: str
    run_id: str | None
    kind: EntryKind
    source: Literal["HUMAN", "LLM_JUDGE", "CODE"]
    verdict: str | None
    token: str | None
    undoes: str | None


class CorpusRecord(Record):
    """A corpus and what its imports brought; its abstracts follow."""

    record: Literal["corpus"] = "corpus"
    name: str
    made_at: str
    note: str
    imports: list[dict[str, Any]]


class AbstractRecord(Record):
    """An abstract of a corpus."""

    record: Literal["abstract"] = "abstract"
    corpus: str
    abstract: dict[str, Any]


class ScreeningRecord(Record):
    """A screening, finished (then ``screening`` is its result, without rounds and grades, which are here) or not.

    ``abstracts`` holds for each its round, the abstract and its grade; ``order`` the ids of the result's grades.
    """

    record: Literal["screening"] = "screening"
    id: str
    question: str
    sources: list[str]
    state: Literal["finished", "interrupted"]
    starts: int
    started_at: str
    ended_at: str
    why: str
    settings: dict[str, Any]
    thresholds: dict[str, Any] | None
    rounds: list[dict[str, Any]]
    abstracts: list[dict[str, Any]]
    order: list[str]
    screening: dict[str, Any] | None
    events: list[dict[str, Any]]
    removed_by: int | None = None
    figures: dict[str, Any] | None = None


class ScreeningEntryRecord(LogRecord):
    """An entry of the screening log."""

    record: Literal["screening_entry"] = "screening_entry"


class RedactedScreeningEntry(OpenRecord):
    """What the screening log's own columns say of a redacted entry."""

    screening_id: str | None
    kind: Literal["override", "agreement", "handed_over", "memory_reset"]
    abstract_id: str | None
    field: str | None
    token: str | None


class AcceptanceRecord(Record):
    """An entry of the acceptance memory, and the id of the log entry that made it forgotten."""

    record: Literal["acceptance"] = "acceptance"
    screening_id: str
    at: str
    acceptance: dict[str, Any]
    forgotten_by: str | None


class PurgeRecord(Record):
    """A purge and what it removed, without a word of it."""

    record: Literal["purge"] = "purge"
    purge: dict[str, Any]
    removed: list[dict[str, Any]]


class ExecutionRecord(Record):
    """A row of the log of executions."""

    record: Literal["execution"] = "execution"
    execution: dict[str, Any]


class TeamRecord(Record):
    """A policy, a rubric, label types, a saved view of the team, or a sample that was brought in from a lake."""

    record: Literal["team"] = "team"
    at: str
    by: str
    kind: Literal["policy", "rubric", "view", "label_types", "sample"]
    name: str
    content: dict[str, Any]


class DatasetRecord(Record):
    """A dataset version; its members follow."""

    record: Literal["dataset"] = "dataset"
    version: DatasetVersion


class ArchivedJudgement(Record):
    """A judgement of a member."""

    entry: str | None
    in_force: bool
    run: str | None
    number: int | None
    redacted: bool
    label: str


class DatasetMemberRecord(Record):
    """A case of a dataset version; ``judgements`` name entries and runs by their ids."""

    record: Literal["dataset_member"] = "dataset_member"
    dataset: str
    case_id: str
    state: str
    redacted: bool
    side: str
    rows: int
    judgements: list[ArchivedJudgement]


StoreRecord = (
    CaseRecord
    | RedactedCaseRecord
    | RunRecord
    | EntryRecord
    | CorpusRecord
    | AbstractRecord
    | ScreeningRecord
    | ScreeningEntryRecord
    | AcceptanceRecord
    | PurgeRecord
    | ExecutionRecord
    | TeamRecord
    | DatasetRecord
    | DatasetMemberRecord
)


class Counts(NamedTuple):
    """How many records of each kind, in the order of ``KINDS``."""

    cases: int = 0
    runs: int = 0
    entries: int = 0
    corpora: int = 0
    abstracts: int = 0
    screenings: int = 0
    screening_entries: int = 0
    acceptances: int = 0
    purges: int = 0
    executions: int = 0
    redacted_cases: int = 0
    team_records: int = 0
    datasets: int = 0
    dataset_members: int = 0


KINDS = (
    "case",
    "run",
    "entry",
    "corpus",
    "abstract",
    "screening",
    "screening_entry",
    "acceptance",
    "purge",
    "execution",
    "redacted_case",
    "team",
    "dataset",
    "dataset_member",
)
"""The names of the records, as they name themselves."""
