"""The values that use cases accept and return: filters, pages, summaries.

Pages import them from here instead of the store.
"""

from masis.audit.measures.metrics import (
    Bin,
    Distribution,
    MeasureFilter,
    MetricsReport,
    Period,
    RunGroup,
)
from masis.store.audits.inbox import Acknowledgement, Form, ReceivedRequest
from masis.store.audits.metrics import MeasuredRun, Pick
from masis.store.audits.queue import NOT_DECIDED
from masis.store.core.connections import Unguarded, explained_errors
from masis.store.orders import DEFAULT_ORDER, ORDERS, OrderName, QueueOrder
from masis.store.records import (
    FIRST_QUEUE_NAME,
    MEMBER_FIELDS,
    VIEWER_FIELDS,
    AddResult,
    AppliedCode,
    CaseFilter,
    CasePage,
    CaseSummary,
    DatasetVersion,
    DecisionFilter,
    DecisionPage,
    Facets,
    LogHead,
    ObservationFilter,
    ObservationPage,
    ReviewQueue,
    RunProgress,
    RunState,
    RunSummary,
    ScreeningLogFilter,
    clean_queue_name,
)
from masis.store.retention.redaction import CaseRedaction
from masis.store.reviews.drafts import ReviewDraft
from masis.store.reviews.failure_modes import FACETS, Facet
from masis.store.reviews.states import STATE_OF_VERDICT
