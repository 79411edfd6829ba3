"""The values that use cases take and return: filters, pages, summaries. Pages import them from here, not the store."""

from masis.store import Unguarded, Upgrade
from masis.store.audits.inbox import Acknowledged, Form, Received
from masis.store.audits.metrics import (
    Bin,
    Distribution,
    Measure,
    MeasuredRun,
    MeasuredRuns,
    MeasureFilter,
    Period,
    Pick,
    Rate,
    Rates,
)
from masis.store.audits.queue import MOST_COUNTED, Counted
from masis.store.core.connections import explained_errors
from masis.store.records import (
    Added,
    CaseFilter,
    CasePage,
    CaseSummary,
    DatasetVersion,
    DecisionFilter,
    DecisionPage,
    Facets,
    Found,
    LogHead,
    LostFromDataset,
    QueueOrder,
    RunProgress,
    RunState,
    RunSummary,
)
from masis.store.retention.redaction import CaseRedaction
from masis.store.reviews.drafts import Draft
from masis.store.reviews.team import Progress
from masis.store.screening.corpora import CorpusImport, CorpusRetriever, CorpusSummary
from masis.store.screening.log import ScreeningLogFilter
from masis.store.screening.screenings import ScreeningProgress, ScreeningSummary

__all__ = [
    "MOST_COUNTED",
    "Acknowledged",
    "Added",
    "Bin",
    "CaseFilter",
    "CasePage",
    "CaseRedaction",
    "CaseSummary",
    "CorpusImport",
    "CorpusRetriever",
    "CorpusSummary",
    "Counted",
    "DatasetVersion",
    "DecisionFilter",
    "DecisionPage",
    "Distribution",
    "Draft",
    "Facets",
    "Form",
    "Found",
    "LogHead",
    "LostFromDataset",
    "Measure",
    "MeasureFilter",
    "MeasuredRun",
    "MeasuredRuns",
    "Period",
    "Pick",
    "Progress",
    "QueueOrder",
    "Rate",
    "Rates",
    "Received",
    "RunProgress",
    "RunState",
    "RunSummary",
    "ScreeningLogFilter",
    "ScreeningProgress",
    "ScreeningSummary",
    "Unguarded",
    "Upgrade",
    "explained_errors",
]
