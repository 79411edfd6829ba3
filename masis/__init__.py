"""MASIS Workbench: audits AI answers against their evidence, for people who must vouch for them.

    names = {"query": "question", "answer": "response", "evidence": "context"}
    frame.join(masis.audit(frame, map=names))                 # a row of figures for each case
    names = masis.suggest(frame).names                        # proposes the map
    table = await masis.aaudit(frame, map=names)              # the same in async code
    runs = masis.audit_many(frame, map=names)                 # whole runs
    claims = masis.runs_to_pandas(runs, of="claims")          # a row for each claim and its verdict
    desk = masis.Desk("review.db", reviewer="Ada")
    desk.audit(frame)
    desk.queue()
    desk.decide("case-7", "reject", reason="unsupported")     # see help(masis.Desk.decide)

Data flow:

    Case (question, evidence, draft answer)
      -> citations   which markers point at real evidence, and which sentences have none
                     (rules in code, no model)
      -> claims      what the answer asserts, and the evidence for each assertion
      -> critique    a critic's issues and confidence, lowered by the citation penalties
      -> revision    a better answer, audited again     } repeated until it converges
      -> evaluation  four scores, capped by the state of the citations
    Run (all iterations) -> queue -> a person's decision -> dataset

    import masis
    evidence = (masis.Evidence(id="1", text="It is ten metres long."),)
    case = masis.Case(
        id="bridge", query="How long is it?", answer="Ten metres [1].", evidence=evidence
    )
    run = masis.run_audit(case)
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

# Python binds the package ``masis.audit`` to the name ``audit`` of this module once, when it first
# imports it. It's imported here, before the function ``audit`` is defined, so that the function
# keeps the name. ``from masis.audit import loop`` finds the package in ``sys.modules``, not here.
from masis import audit as _audit_package  # noqa: F401
from masis import extensions as _hooks
from masis import version
from masis.schema.display import HtmlDisplay

if TYPE_CHECKING:
    import pandas as pd

    from masis.api.audits import audit_citations, run_audit, run_audit_async, verify_claims
    from masis.api.batch import aaudit, audit_many
    from masis.api.draft_critique import critique_draft
    from masis.datasets.loading import read_cases, suggest
    from masis.pipeline import (
        assert_grounded,
        assert_not_worse,
        audited,
        query_with_critique,
        query_with_critique_async,
    )
    from masis.schema.audit import CitationAudit, ClaimCheck
    from masis.schema.case import Case, Evidence
    from masis.schema.reading import FieldMap
    from masis.schema.run import Run
    from masis.schema.screening import Abstract, Screening
    from masis.screening.critic import screen_abstracts, screen_abstracts_async
    from masis.services.remote_desk import Desk
    from masis.settings import Settings
    from masis.views.notebook import html, plot
    from masis.views.tables import runs_to_pandas

__version__ = version.APP

# Programs that use the package configure its log. Without a NullHandler, Python prints warnings of
# an unconfigured logger on stderr (https://docs.python.org/3/howto/logging.html#library-config).
logging.getLogger("masis").addHandler(logging.NullHandler())

_MODULE_OF = {
    "audit_citations": "masis.api.audits",
    "critique_draft": "masis.api.draft_critique",
    "query_with_critique": "masis.pipeline",
    "query_with_critique_async": "masis.pipeline",
    "audited": "masis.pipeline",
    "assert_grounded": "masis.pipeline",
    "assert_not_worse": "masis.pipeline",
    "aaudit": "masis.api.batch",
    "audit_many": "masis.api.batch",
    "html": "masis.views.notebook",
    "plot": "masis.views.notebook",
    "read_cases": "masis.datasets.loading",
    "suggest": "masis.datasets.loading",
    "Desk": "masis.services.remote_desk",
    "runs_to_pandas": "masis.views.tables",
    "run_audit": "masis.api.audits",
    "run_audit_async": "masis.api.audits",
    "verify_claims": "masis.api.audits",
    "CitationAudit": "masis.schema.audit",
    "ClaimCheck": "masis.schema.audit",
    "Case": "masis.schema.case",
    "Evidence": "masis.schema.case",
    "Run": "masis.schema.run",
    "Settings": "masis.settings",
    "Abstract": "masis.schema.screening",
    "Screening": "masis.schema.screening",
}
for _extension in _hooks.extensions():
    _MODULE_OF |= _extension.public_names

__all__ = [
    "Abstract",
    "Case",
    "CitationAudit",
    "ClaimCheck",
    "Desk",
    "Evidence",
    "Run",
    "Screening",
    "Settings",
    "__version__",
    "aaudit",
    "assert_grounded",
    "assert_not_worse",
    "audit",
    "audit_citations",
    "audit_many",
    "audited",
    "critique_draft",
    "html",
    "plot",
    "query_with_critique",
    "query_with_critique_async",
    "read_cases",
    "run_audit",
    "run_audit_async",
    "runs_to_pandas",
    "screen_abstracts",
    "screen_abstracts_async",
    "suggest",
    "verify_claims",
]


# Without the folder that has them, its names aren't public.
__all__[:] = [name for name in __all__ if name in (*_MODULE_OF, "__version__", "audit")]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, which keeps ``import masis`` quick."""
    if name in _MODULE_OF:
        return getattr(importlib.import_module(_MODULE_OF[name]), name)
    raise AttributeError(f"module 'masis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


def audit(
    cases: Any,
    settings: Settings | None = None,
    *,
    concurrency: int | None = None,
    progress: bool = True,
    max_cost: float | None = None,
    map: FieldMap | None = None,  # noqa: A002 (the public name)
) -> pd.DataFrame:
    """Audit many cases and return a data frame with one row per case, with the labels of the given
    frame.

        frame.join(masis.audit(frame, map={"answer": "response"}), rsuffix="_audit")

    The columns are those of ``runs_to_pandas``, and ``error``: the reason if a row could not be
    read as a case or was not audited. Such a row doesn't stop the others, and its figures are
    empty. ``audit_many`` returns the runs themselves, and ``aaudit`` is the same for async code.

    Args:
        cases: As for ``audit_many``; an iterator is read to its end first.
        settings: As for ``run_audit``.
        concurrency: How many audits run at once.
        progress: Whether to show a progress bar on stderr.
        max_cost: US dollars that all audits together may cost.
        map: The column or key of a field where its name differs: ``{"answer": "response"}``.

    Raises:
        InputError: No row can be read as a case, or an argument is wrong, as for ``audit_many``.

    """
    from masis.api import batch

    options = batch.Options(concurrency, progress, max_cost, map)
    return batch.audit_to_table(cases, settings, options)


def _html_view(record: Run | Screening) -> str:
    # Import the view only when a notebook asks for it.
    html: Callable[[object], str] = __getattr__("html")
    return html(record)


HtmlDisplay.html_view = _html_view
