"""The SQLite store of cases, runs, logs and drafts, with the tables of screenings. All SQL of the
product is in this package and in ``masis.screening.store``.

    store = Store.open(path)
    store.cases.add(case)
    store.runs.start(...); store.runs.save_iteration(...); store.runs.finish(run)
    store.decisions.append(decision)
    store.drafts.save(reviewer, "case:1", {"note": "..."})

A store may be shared between threads; each gets a connection of its own. Other processes may use
the same file at the same time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from masis.schema.base import utc_now
from masis.schema.retention import Shrunk
from masis.schema.review import SignatureCheck
from masis.store.audits.answers import Answers
from masis.store.audits.case_figures import CaseFigures
from masis.store.audits.cases import Cases, EvidenceOfCases
from masis.store.audits.executions import Executions
from masis.store.audits.inbox import Inbox
from masis.store.audits.metrics import Measures
from masis.store.audits.minimal_evidence import MinimalEvidenceResults
from masis.store.audits.replies import CachedReplies
from masis.store.audits.runs import Runs
from masis.store.audits.systems import Systems
from masis.store.core import signatures
from masis.store.core.connections import Database, Unguarded, open_database
from masis.store.core.health import check, try_writing
from masis.store.core.signatures import SigningResult
from masis.store.jobs import StoredScreenings
from masis.store.records import StoreCheck
from masis.store.retention import shrinking
from masis.store.retention.redaction import Redactions
from masis.store.retention.removal import Purges, Retention
from masis.store.reviews.batches import Batches
from masis.store.reviews.dataset_versions import Datasets
from masis.store.reviews.decisions import Decisions
from masis.store.reviews.drafts import Drafts
from masis.store.reviews.failure_modes import FailureModes
from masis.store.reviews.judge_trials import JudgeTrials
from masis.store.reviews.judge_versions import JudgeVersions
from masis.store.reviews.outcomes import Outcomes
from masis.store.reviews.planted import PlantedFaults
from masis.store.reviews.preferences import PreferenceLog, Preferences
from masis.store.reviews.relabelling import Relabelling
from masis.store.reviews.rubric_proposals import RubricProposals
from masis.store.reviews.team import Team
from masis.store.reviews.tokens import Tokens
from masis.store.reviews.trust import TrustReads
from masis.store.screening_log import ScreeningLog


class Store:
    """One database and its parts: ``cases``, ``evidence``, ``runs``, ``executions``, ``decisions``,
    ``outcomes``, ``datasets``; ``drafts``; ``screening_log``; ``retention``, ``purges``,
    ``redactions``, ``team``, ``trust``, ``planted``, ``relabelling``, ``proposals``, ``tokens``,
    ``batches``, ``answers``, ``modes``, ``case_figures``, ``minimal_evidence``, ``judges``,
    ``judge_trials``, ``systems``, ``preferences``, ``preference_log``.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.cases, self.evidence, self.inbox = (
            Cases(database),
            EvidenceOfCases(database),
            Inbox(database),
        )
        self.runs, self.executions, self.measures = (
            Runs(database),
            Executions(database),
            Measures(database),
        )
        self.decisions, self.drafts, self.team = (
            Decisions(database),
            Drafts(database),
            Team(database),
        )
        self.outcomes, self.datasets, self.trust = (
            Outcomes(database),
            Datasets(database),
            TrustReads(database),
        )
        self.screening_log, self.retention = ScreeningLog(database), Retention(database)
        self.purges, self.redactions = Purges(database), Redactions(database)
        self.planted, self.tokens = PlantedFaults(database), Tokens(database)
        self.batches, self.answers = Batches(database), Answers(database)
        self.relabelling, self.proposals = Relabelling(database), RubricProposals(database)
        self.modes, self.case_figures = FailureModes(database), CaseFigures(database)
        self.minimal_evidence = MinimalEvidenceResults(database)
        self.judge_trials = JudgeTrials(database)
        self.judges = JudgeVersions(database)
        self.systems = Systems(database)
        self.preferences, self.preference_log = Preferences(database), PreferenceLog(database)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        now: Callable[[], str] = utc_now,
        unguarded: Unguarded = "refuse",
        log_key: bytes | None = None,
    ) -> Self:
        """Open a database, creating or migrating it. Jobs whose process has ended become
        interrupted.

        Args:
            path: The database file.
            now: Returns the current time.
            unguarded: What to do if a log has lost a trigger: refuse, open (to inspect it) or
                rearm.
            log_key: The key that signs new log entries.

        Raises:
            UnguardedLog: A trigger is missing and ``unguarded`` is "refuse".
            StoreError: The file can't be used. Subclasses are NotADatabase, NewerDatabase and
                OtherSchema.

        """
        opened = open_database(Path(path), now=now, unguarded=unguarded, log_key=log_key)
        store = cls(opened)
        store.runs.mark_lost()
        StoredScreenings[Any](opened).mark_lost()
        return store

    def replies_of(self, case_id: str) -> CachedReplies:
        """Return the cache of model replies about a case."""
        return CachedReplies(self.database, case_id)

    @property
    def path(self) -> Path:
        """The database file."""
        return self.database.path

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Store several writes together: either all of them or none."""
        with self.database.transaction():
            yield

    def check(self) -> StoreCheck:
        """Check file, schema, triggers and logs. Raises StoreError if the file can't be read at
        all.
        """
        return check(self.database)

    def check_signatures(self, key: bytes) -> SignatureCheck:
        """Check the signatures of all logs with the key that made them."""
        with self.database.reading() as connection:
            return signatures.check(connection, key)

    def sign_logs(self, key: bytes) -> SigningResult:
        """Sign every unsigned entry of all logs. Forged entries would be signed too."""
        with self.database.transaction() as connection:
            return signatures.sign_unsigned(connection, key)

    def settle(self) -> bool:
        """Checkpoint the write-ahead log. Returns False if another program still reads an old
        state.
        """
        return shrinking.settle(self.database)

    def try_writing(self) -> tuple[bool, str]:
        """Check with a test write whether the database is writable. The written time stays."""
        return try_writing(self.database)

    def shrink(
        self, stopped: Callable[[], bool] | None = None, *, freed: int | None = None
    ) -> Shrunk:
        """Return the free space in the file to the disk, or say why that isn't possible.

        ``freed`` says how many bytes were just removed: for hardly any the file is not rewritten.
        """
        return shrinking.shrink(self.database, stopped, freed=freed)

    def close(self) -> None:
        """Close all connections. Later use opens new ones."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
