"""The workbench: all use cases on one database, by subject."""

from __future__ import annotations

from pathlib import Path

from masis.schema.actor import Actor
from masis.services.access import OPEN, Access, requires
from masis.services.arrivals.imports import ImportService
from masis.services.arrivals.ingestion import IngestionService
from masis.services.arrivals.lake import LakeService
from masis.services.arrivals.versions import VersionService
from masis.services.audits import AuditService
from masis.services.batches import BatchService
from masis.services.case_figures import CaseFigureService
from masis.services.cases import CaseService
from masis.services.comparison import ComparisonService
from masis.services.datasets import DatasetService, ExportService
from masis.services.drafts import DraftService
from masis.services.exams import ExamService
from masis.services.judge.alignment import AlignmentService
from masis.services.judge.versions import JudgeService
from masis.services.maintenance import health
from masis.services.maintenance.backups import BackupService
from masis.services.maintenance.health import HealthItem, HealthReport
from masis.services.maintenance.retention import RetentionService
from masis.services.minimal_evidence import MinimalEvidenceService
from masis.services.modes.service import ModeService
from masis.services.planted import PlantedService
from masis.services.preferences import PreferenceService
from masis.services.queues import QueueService
from masis.services.reassessment import ReassessmentService
from masis.services.records import Unguarded
from masis.services.relabelling import RelabellingService
from masis.services.reviews import ReviewService
from masis.services.rubric_proposals import RubricProposalService
from masis.services.systems import SystemService
from masis.services.team import TeamService
from masis.services.tokens import TokenService
from masis.services.trust.service import TrustService
from masis.settings import Settings, log_key
from masis.store import Store


class Workbench:
    """The use cases on one database with one set of settings, such as ``reviews.submit(...)``.

    Pages, commands and integrations write through the services. They use ``store``, ``runs`` and
    ``metrics`` only for reads that don't depend on permissions.
    """

    def __init__(
        self, store: Store, settings: Settings, database: Path, access: Access = OPEN
    ) -> None:
        self.store, self.database, self.access = store, database, access
        self.cases, self.runs = CaseService(store, access), store.runs
        self.drafts = DraftService(store, access)
        self.exports, self.datasets = ExportService(store, access), DatasetService(store, access)
        self.metrics, self.retention = store.measures, RetentionService(store, access)
        self.team, self.backups = TeamService(store, access), BackupService(store, access)
        self.versions, self.tokens = VersionService(store, access), TokenService(store, access)
        self.ingestion, self.imports = IngestionService(store), ImportService(store, access)
        self.batches, self.systems = BatchService(store, access), SystemService(store, access)
        self.case_figures = CaseFigureService(store, access)
        self.lake, self.planted = LakeService(store, access), PlantedService(store, access)
        self.relabelling = RelabellingService(store, access)
        self.comparison = ComparisonService(store, access)
        self.proposals = RubricProposalService(store, access)
        self.preferences = PreferenceService(store, access)
        self.queues = QueueService(store, access)
        self._apply_settings(settings)

    def _apply_settings(self, settings: Settings) -> None:
        """Create all services that depend on settings, so that none of them uses old settings."""
        store, access = self.store, self.access
        self.settings = settings
        self.audits = AuditService(store, settings, access)
        self.reviews = ReviewService(store, access, settings)
        self.reassessment = ReassessmentService(store, settings, access)
        self.trust = TrustService(store, settings, access)
        self.exams = ExamService(store, settings, access)
        self.judge = JudgeService(store, settings, access)
        self.alignment = AlignmentService(store, settings, self.trust, self.judge, access)
        self.modes = ModeService(store, settings, access)
        self.minimal_evidence = MinimalEvidenceService(store, settings, access)

    @classmethod
    def open(
        cls,
        database: Path,
        settings: Settings | None = None,
        *,
        unguarded: Unguarded = "refuse",
        access: Access = OPEN,
    ) -> Workbench:
        """Open the workbench on the database at this path, which is created or migrated if needed.

        Args:
            database: The path.
            settings: The settings of audits and screenings.
            unguarded: What to do if a log has lost its triggers: refuse, open anyway, or restore
                them.
            access: The access rule.

        Raises:
            StoreError: The file isn't a MASIS database, is newer than this version, or can't be
                read.
            SettingsError: ``MASIS_LOG_KEY`` names a file without a key.

        """
        store = Store.open(database, unguarded=unguarded, log_key=log_key())
        return cls(store, settings or Settings(), database, access)

    @requires("configure", "change settings")
    def use_settings(self, actor: Actor, settings: Settings) -> None:
        """Use these settings until the workbench is opened again.

        Raises:
            NotAllowed: The actor isn't an admin.

        """
        self._apply_settings(settings)

    def close(self) -> None:
        """Close all connections; later calls open new ones."""
        self.store.close()

    def health(self, settings: Settings | None = None, *, ask_models: bool = False) -> HealthReport:
        """Check everything that audits and decisions need.

        Models are called only if ``ask_models`` is set, because calls may cost money.
        """
        settings = settings or self.settings
        of_database = (
            *health.check_store(self.store),
            *health.check_backups(self.backups, settings),
        )
        return health.build_report(of_database, self.database, settings, ask_models=ask_models)

    def check_models(self, settings: Settings | None = None) -> tuple[HealthItem, ...]:
        """Send a short request to each model in a role; offline roles audit a small case."""
        return health.probe_models(settings or self.settings)
