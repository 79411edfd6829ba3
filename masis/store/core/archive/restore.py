"""Records of an archive put into an empty database, inside one transaction: all of them, or none.

Everything that belongs to the chains is checked as it comes: each entry follows the one before it, and none is without
its words unless a redaction says why.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from masis.errors import InputError, StoreError
from masis.schema.audit import Draft
from masis.schema.base import OpenRecord, Record
from masis.schema.case import Case
from masis.schema.retention import Execution, Purge, Removal
from masis.schema.review import Decision
from masis.schema.run import Event, Iteration, Run
from masis.schema.screening import (
    Abstract,
    Acceptance,
    Grade,
    Round,
    Screening,
    ScreeningDecision,
    ScreeningEvent,
    Thresholds,
)
from masis.schema.team import LabelTypes, LakeSample, QueuePolicy, Rubric, SavedView
from masis.store.audits import executions
from masis.store.audits.cases import insert_case
from masis.store.audits.runs import (
    DERIVED_ANEW,
    RunFigures,
    pack,
    risk_without_content,
    tier_of,
    unpack,
    write_result,
)
from masis.store.core.archive.export import RUNS, abandoned
from masis.store.core.archive.records import (
    ALTERED,
    AS_ARCHIVED,
    IMPORT_COLUMNS,
    KINDS,
    LISTS,
    NOBODY,
    AbstractRecord,
    AcceptanceRecord,
    CaseRecord,
    CorpusRecord,
    Counts,
    DatasetMemberRecord,
    DatasetRecord,
    EntryRecord,
    ExecutionRecord,
    LogRecord,
    PurgeRecord,
    RedactedCaseRecord,
    RedactedEntry,
    RedactedScreeningEntry,
    RunRecord,
    ScreeningEntryRecord,
    ScreeningRecord,
    StoreRecord,
    TeamRecord,
)
from masis.store.core.chained_log import PLACE, ChainedLog, Place, canonical_json, place_after, sha256
from masis.store.core.connections import Database
from masis.store.retention.removal import insert_purge, insert_removal
from masis.store.reviews import dataset_versions, decisions, team
from masis.store.reviews.states import refresh
from masis.store.screening import corpora, corpus_search
from masis.store.screening import log as screening_log
from masis.store.screening.screenings import insert, store_abstracts, store_grade, store_round

if TYPE_CHECKING:
    from sqlite_utils import Database as Tables


class Restoring:
    """Puts records into an empty database, inside a transaction: use ``Store.restoring``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        from sqlite_utils import Database as Tables  # here: it brings pandas, which takes longer than opening a store

        self._connection = connection
        self._tables: Tables = Tables(connection, recursive_triggers=False, execute_plugins=False)
        self._log = _RestoringLog(connection, decisions.LOG, RedactedEntry)
        self._screening_log = _RestoringLog(connection, screening_log.LOG, RedactedScreeningEntry)
        self._redacted: dict[str, str] = {}
        self._executions_read = False
        self.counts = Counts()

    def put(self, record: StoreRecord) -> None:
        """Put one record. Raises InputError (without file and line) where it does not fit those before."""
        try:
            self._put(record)
        except sqlite3.IntegrityError as error:
            raise InputError(f"does not fit those before ({error})", cure=ALTERED) from error
        counts = self.counts._asdict()
        name = Counts._fields[KINDS.index(record.record)]
        self.counts = self.counts._replace(**{name: counts[name] + 1})

    def _put(self, record: StoreRecord) -> None:
        match record:
            case CaseRecord() | RedactedCaseRecord():
                self._put_case(record)
            case RunRecord():
                self._put_run(record)
            case EntryRecord():
                self._log.put(record, self._decision_links)
                self._settle_policy(record)
            case TeamRecord():
                self._put_team_record(record)
            case ScreeningEntryRecord():
                self._screening_log.put(record, self._screening_links)
            case CorpusRecord():
                self._put_corpus(record)
            case AbstractRecord():
                self._put_abstract(record)
            case ScreeningRecord():
                self._put_screening(record)
            case AcceptanceRecord():
                self._put_acceptance(record)
            case DatasetRecord():
                dataset_versions.insert_version(self._connection, record.version)
            case DatasetMemberRecord():
                self._put_dataset_member(record)
            case PurgeRecord():
                purge = Purge.model_validate(record.purge)
                insert_purge(self._connection, purge)
                for each in record.removed:
                    insert_removal(self._connection, purge.seq, Removal.model_validate(each))
            case ExecutionRecord():
                executions.write(self._connection, Execution.model_validate(record.execution))
                self._executions_read = True

    def finish(self) -> None:
        """Derive the states. Raises InputError where an entry without words was never redacted."""
        self._log.finish()
        self._screening_log.finish()
        if not self._executions_read:
            self._make_executions()
        self._mark_redacted()
        for (seq,) in self._connection.execute("SELECT seq FROM cases").fetchall():
            refresh(self._connection, seq)
        team.redraw(self._connection, team.queue_policy(self._connection))

    def _mark_redacted(self) -> None:
        """Raises InputError where no entry of the log redacts a case that comes as a redacted one."""
        for case_id, entry in self._redacted.items():
            row = next(iter(decisions.LOG.rows(self._connection, "log.id = ?", [entry])), None)
            decision = decisions.LOG.read(row).decision if row is not None else None
            if row is None or decision is None or decision.extra.get("redacts_case") != case_id:
                raise InputError(f"case {case_id!r} is redacted, and no entry says why", cure=ALTERED)
            self._connection.execute("UPDATE cases SET redaction_seq = ? WHERE id = ?", [row["seq"], case_id])

    def _put_case(self, record: CaseRecord | RedactedCaseRecord) -> None:
        case = Case.model_validate(record.case)
        if self._connection.execute("SELECT 1 FROM cases WHERE id = ?", [case.id]).fetchone():
            raise InputError(f"case {case.id!r} comes a second time", cure=ALTERED, field="case.id")
        payload = json.dumps(record.case, ensure_ascii=False)
        digest = case.digest()
        if isinstance(record, RedactedCaseRecord):
            digest, self._redacted[case.id] = record.digest, record.redaction
        insert_case(self._connection, case, payload, digest, record.imported_at)

    def _put_run(self, record: RunRecord) -> None:
        case = self._number("cases", record.case_id, "case_id")
        if self._connection.execute("SELECT 1 FROM runs WHERE id = ?", [record.id]).fetchone():
            raise InputError(f"run {record.id!r} comes a second time", cure=ALTERED, field="id")
        digest = self._connection.execute("SELECT digest FROM cases WHERE seq = ?", [case]).fetchone()[0]
        if record.case_digest != digest:
            raise InputError(f"run {record.id!r} audited other content", cure=ALTERED, field="case_digest")
        if record.draft:
            Draft.model_validate(record.draft)
        cursor = self._connection.execute(
            """
            INSERT INTO runs (id, case_seq, case_digest, state, owner, starts, started_at, seen_at, ended_at, why,
                models, settings, settings_digest, draft) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                record.id,
                case,
                record.case_digest,
                record.state,
                NOBODY.to_text(),
                record.starts,
                record.started_at,
                record.ended_at,
                record.ended_at,
                record.why,
                json.dumps(record.models, ensure_ascii=False),
                json.dumps(record.settings, ensure_ascii=False),
                sha256(canonical_json(record.settings)),
                _text(record.draft) if record.draft else None,
            ],
        )
        seq = int(cursor.lastrowid or 0)
        iterations = tuple(Iteration.model_validate(each) for each in record.iterations)
        # What is stored is the text that came, not what this version would write for it: an archive keeps its words.
        for iteration, content in zip(iterations, record.iterations, strict=True):
            row = [seq, iteration.iteration_number, pack(_text(content))]
            self._connection.execute("INSERT INTO run_iterations VALUES (?, ?, ?)", row)
        if record.run is not None:
            run = Run.model_validate(record.run).model_copy(update={"iterations": iterations})
            if (run.id, run.case_id) != (record.id, record.case_id):
                raise InputError(f"the result is of run {run.id!r} of case {run.case_id!r}", cure=ALTERED, field="run")
            write_result(self._connection, seq, run, {iteration.iteration_number for iteration in iterations})
            row = [pack(_text(record.run)), _text(record.draft) if record.draft else None, seq]
            self._connection.execute("UPDATE runs SET payload = ?, draft = ? WHERE seq = ?", row)
        if record.removed_by is not None:
            self._mark_removed(seq, record.removed_by, record.figures or {})
            self._put_measures(record.measures)
        for content in record.events:
            row = [seq, Event.model_validate(content).seq, _text(content)]
            self._connection.execute("INSERT INTO run_events VALUES (?, ?, ?)", row)

    def _mark_removed(self, run_seq: int, purge: int, figures: dict[str, Any]) -> None:
        """Note that retention has removed a run, and give it the figures that are left of it."""
        own = {archived: name for name, archived in AS_ARCHIVED.items()}
        figures = {own.get(name, name): value for name, value in figures.items()}
        if set(figures) != set(RunFigures._fields).difference(DERIVED_ANEW):
            raise InputError("has not the figures of a run that was removed", cure=ALTERED, field="figures")
        figures["flags"] = [own.get(flag, flag) for flag in figures["flags"]]
        reasons = figures["reasons"]
        derived = {
            "tier": tier_of(reasons),
            "rule": None,
            "risk": risk_without_content(reasons, figures["disagreement"], figures["doubt"]),
        }
        kept = figures | {name: json.dumps(figures[name]) for name in LISTS} | derived | {"removed_by": purge}
        assignments = ", ".join(f"{name} = ?" for name in kept)
        self._connection.execute(f"UPDATE runs SET {assignments} WHERE seq = ?", [*kept.values(), run_seq])  # noqa: S608

    def _put_measures(self, measures: dict[str, Any] | None) -> None:
        """Put the rows of figures of a run whose content is gone."""
        if measures is None:
            return
        figures = {name: value for name, value in measures.items() if name != "of_iterations"}
        try:
            seq = self._tables.table("run_measures").insert(figures).last_rowid
            rows = [{"measures_seq": seq, **each} for each in measures.get("of_iterations", ())]
            self._tables.table("iteration_measures").insert_all(rows)
        except sqlite3.OperationalError as error:
            raise InputError("has figures that this workbench does not know", cure=ALTERED, field="measures") from error

    def _make_executions(self) -> None:
        """Make the log of executions where the archive is older than it."""
        rows = self._connection.execute(f"{RUNS} ORDER BY coalesce(runs.ended_at, runs.seen_at), runs.seq").fetchall()
        for row in rows:
            if row["payload"] is not None:
                result = Run.model_validate_json(unpack(row["payload"]))
                executions.log_end(self._connection, result, row["starts"])
            else:
                executions.write(self._connection, abandoned(self._connection, row, row["ended_at"]))

    def _settle_policy(self, record: EntryRecord) -> None:
        """Give a case the policy that its decisions record."""
        decision = record.decision or {}
        if decision.get("kind") == "decision" and decision.get("source") == "HUMAN":
            policy = Decision.model_validate(decision).policy
            self._connection.execute(
                "UPDATE cases SET policy = ?, wanted = ? WHERE id = ?",
                [policy.model_dump_json() if policy else None, policy.reviewers if policy else 1, decision["case_id"]],
            )

    def _put_team_record(self, record: TeamRecord) -> None:
        kinds: dict[str, type[Record]] = {
            "policy": QueuePolicy,
            "rubric": Rubric,
            "view": SavedView,
            "label_types": LabelTypes,
            "sample": LakeSample,
        }
        kinds[record.kind].model_validate(record.content)
        team.append_record(self._connection, record.at, record.by, record.kind, record.name, _text(record.content))

    def _put_dataset_member(self, record: DatasetMemberRecord) -> None:
        case, dataset = (
            self._number("cases", record.case_id, "case_id"),
            self._number("dataset_versions", record.dataset, "dataset", column="name"),
        )
        assert case is not None
        assert dataset is not None
        judgements = tuple(
            dataset_versions.PinnedJudgement(
                entry=self._number("decision_log", each.entry, "judgements.entry"),
                in_force=int(each.in_force),
                run=self._number("runs", each.run, "judgements.run"),
                number=each.number,
                redacted=int(each.redacted),
                label=each.label,
            )
            for each in record.judgements
        )
        member = dataset_versions.Member(case, record.state, int(record.redacted), record.side, record.rows, judgements)
        dataset_versions.insert_members(self._connection, dataset, [member])

    def _decision_links(self, about: Decision | RedactedEntry) -> dict[str, int | None]:
        return {
            "case_seq": self._number("cases", about.case_id, "decision.case_id"),
            "run_seq": self._number("runs", about.run_id, "decision.run_id"),
            "undoes": self._number("decision_log", about.undoes, "decision.undoes"),
        }

    def _screening_links(self, about: ScreeningDecision | RedactedScreeningEntry) -> dict[str, int | None]:
        return {"screening_seq": self._number("screenings", about.screening_id, "decision.screening_id")}

    def _put_corpus(self, record: CorpusRecord) -> None:
        row = {"name": record.name, "made_at": record.made_at, "note": record.note}
        seq = self._tables.table("corpora").insert(row).last_rowid
        assert seq is not None
        corpus_search.create(self._connection, seq)
        imports = [{"corpus_seq": seq, **{name: each.get(name) for name in IMPORT_COLUMNS}} for each in record.imports]
        self._tables.table("corpus_imports").insert_all(imports)

    def _put_abstract(self, record: AbstractRecord) -> None:
        corpus = self._number("corpora", record.corpus, "corpus", column="name")
        prepared = corpora.prepared(Abstract.model_validate(record.abstract))
        if isinstance(prepared, InputError):
            raise prepared
        assert corpus is not None
        corpora.insert_new(self._connection, corpus, prepared)

    def _put_screening(self, record: ScreeningRecord) -> None:
        thresholds = Thresholds.model_validate(record.thresholds) if record.thresholds else None
        seq = insert(
            self._connection,
            record.id,
            record.question,
            record.sources,
            record.settings,
            thresholds,
            record.started_at,
            NOBODY,
        )
        for each in record.rounds:
            store_round(self._connection, seq, Round.model_validate(each))
        for each in record.abstracts:
            abstract = Abstract.model_validate(each.get("abstract"))
            store_abstracts(self._connection, seq, int(each.get("round") or 0), [abstract])
            if each.get("grade") is not None:
                store_grade(self._connection, seq, Grade.model_validate(each["grade"]))
        for event in map(ScreeningEvent.model_validate, record.events):
            self._connection.execute(
                "INSERT INTO screening_events VALUES (?, ?, ?)", [seq, event.seq, event.model_dump_json()]
            )
        result = self._result(record)
        self._connection.execute(
            """UPDATE screenings SET state = ?, starts = ?, seen_at = ?, ended_at = ?, why = ?, payload = ?,
               outcome = ?, kept = ? WHERE seq = ?""",
            [
                record.state,
                record.starts,
                record.ended_at,
                record.ended_at,
                record.why,
                pack(f"{json.dumps(record.order, ensure_ascii=False)}\n{result.model_dump_json()}") if result else None,
                result.outcome if result else None,
                len(result.kept) if result else None,
                seq,
            ],
        )
        if record.removed_by is not None:
            figures = record.figures or {}
            self._connection.execute(
                "UPDATE screenings SET removed_by = ?, outcome = ?, kept = ? WHERE seq = ?",
                [record.removed_by, figures.get("outcome"), figures.get("kept"), seq],
            )

    @staticmethod
    def _result(record: ScreeningRecord) -> Screening | None:
        result = Screening.model_validate(record.screening) if record.screening is not None else None
        finished = record.state == "finished" and record.removed_by is None
        if (result is not None) != finished or (result is not None and result.id != record.id):
            raise InputError(
                f"screening {record.id!r} has not the result its state says", cure=ALTERED, field="screening"
            )
        graded = {(each.get("grade") or {}).get("abstract_id") for each in record.abstracts}
        if not set(record.order) <= graded:
            raise InputError(f"screening {record.id!r} lacks grades of its result", cure=ALTERED, field="order")
        return result

    def _put_acceptance(self, record: AcceptanceRecord) -> None:
        self._connection.execute(
            "INSERT INTO acceptances (screening_seq, at, payload, forgotten_by) VALUES (?, ?, ?, ?)",
            [
                self._number("screenings", record.screening_id, "screening_id"),
                record.at,
                Acceptance.model_validate(record.acceptance).model_dump_json(),
                self._number("screening_log", record.forgotten_by, "forgotten_by"),
            ],
        )

    def _number(self, table: str, value: str | None, field: str, *, column: str = "id") -> int | None:
        return _number(self._connection, table, value, field, column=column)


class _RestoringLog:
    """Puts the entries of one log back: each behind the one before it, none without its words."""

    def __init__(self, connection: sqlite3.Connection, log: ChainedLog[Any, Any], redacted: type[OpenRecord]) -> None:
        self._connection, self._chained, self._redacted = connection, log, redacted
        self._bare: dict[str, dict[str, Any]] = {}

    def put(self, record: LogRecord, links_of: Callable[[Any], dict[str, int | None]]) -> None:
        """Put one entry; ``links_of`` finds the rows it refers to. Raises InputError where it was altered."""
        head = self._chained.head(self._connection)
        place = Place(*(getattr(record, name) for name in PLACE))
        if place != place_after(head, record.at, record.payload_digest):
            raise InputError(
                f"entry {record.seq} of the {self._chained.name} does not fit the one before", cure=ALTERED
            )
        if record.decision is None:
            self._bare[record.id] = record.kept or {}
            facts = self._redacted.model_validate(record.kept or {})
            self._chained.insert(self._connection, place, facts.model_dump(), links_of(facts))
            return
        payload = canonical_json(record.decision)
        if sha256(payload) != record.payload_digest:
            raise InputError("the decision is not the one that was made", cure=ALTERED, field="decision")
        decision = self._chained.decision.model_validate(record.decision)
        links = {**links_of(decision), "redacts": self._redacted_by(decision)}
        self._chained.insert(self._connection, place, self._chained.facts(decision), links)
        self._chained.insert_payload(self._connection, record.seq, decision.reviewer, payload)

    def finish(self) -> None:
        """Raise InputError where an entry without words was never redacted."""
        for entry in self._bare:
            raise InputError(
                f"{self._chained.noun} {entry} has lost its words, and no redaction says why", cure=ALTERED
            )

    def _redacted_by(self, decision: Decision | ScreeningDecision) -> int | None:
        """Return the number of the entry that this one redacts; None where it redacts none."""
        if decision.kind != "redaction" or "redacts_case" in decision.extra:
            return None
        redacted = str(decision.extra.get("redacts"))
        if self._bare.pop(redacted, None) != decision.extra.get("kept"):
            raise InputError(f"it redacts entry {redacted}, which is another one", cure=ALTERED, field="decision.extra")
        return _number(self._connection, self._chained.table, redacted, "decision.extra.redacts")


def _text(content: Any) -> str:
    """Return JSON as models are stored."""
    return to_json(content).decode()


def _number(
    connection: sqlite3.Connection, table: str, value: str | None, field: str, *, column: str = "id"
) -> int | None:
    """Return the number of the row that a record names, None where it names none. Raises InputError."""
    if value is None:
        return None
    row = connection.execute(f"SELECT seq FROM {table} WHERE {column} = ?", [value]).fetchone()  # noqa: S608
    if row is None:
        raise InputError(f"names {value!r}, which does not come before it", cure=ALTERED, field=field)
    return int(row[0])


def assert_empty(connection: sqlite3.Connection, database: Database) -> None:
    """Raise StoreError where the database holds anything: two decision logs can't be one chain."""
    held = ("cases", "team_records", "decision_log", "corpora", "screenings", "screening_log")
    if connection.execute(" UNION ALL ".join(f"SELECT 1 FROM {table}" for table in held) + " LIMIT 1").fetchone():  # noqa: S608
        raise StoreError(
            f"{database.path}: holds cases already. An archive goes into an empty database, since its decision log "
            "can't be merged with another: name a new file with --db. To add only its cases, `masis export --format "
            "cases` them from the database it came from."
        )
