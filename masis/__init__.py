"""MASIS Workbench: audits AI answers against their evidence, for people who must vouch for them.

    names = {"query": "question", "answer": "response", "evidence": "context"}
    frame.join(masis.audit(frame, map=names))                 # a row of figures for each case
    names = masis.suggest(frame).names                        # proposes the map
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
from inspect import Signature, signature
from types import ModuleType
from typing import TYPE_CHECKING, Any

from masis import audit as _package  # empty but for its parts
from masis import version
from masis.schema.display import HtmlDisplay

if TYPE_CHECKING:
    from masis.api.audits import audit_citations, run_audit, run_audit_async, verify_claims
    from masis.api.batch import audit, audit_many
    from masis.api.draft_critique import critique_draft
    from masis.datasets.loading import read_cases, suggest
    from masis.pipeline import (
        assert_grounded,
        audited,
        query_with_critique,
        query_with_critique_async,
    )
    from masis.schema.audit import CitationAudit, ClaimCheck
    from masis.schema.case import Case, Evidence
    from masis.schema.run import Run
    from masis.schema.screening import Abstract, Screening
    from masis.screening.critic import screen_abstracts, screen_abstracts_async
    from masis.services.desk import Desk
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
    "audit": "masis.api.batch",
    "audit_many": "masis.api.batch",
    "html": "masis.views.notebook",
    "plot": "masis.views.notebook",
    "read_cases": "masis.datasets.loading",
    "suggest": "masis.datasets.loading",
    "Desk": "masis.services.desk",
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
    "screen_abstracts": "masis.screening.critic",
    "screen_abstracts_async": "masis.screening.critic",
    "Abstract": "masis.schema.screening",
    "Screening": "masis.schema.screening",
}

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
    "assert_grounded",
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


def __getattr__(name: str) -> Any:
    """Import a public name on first use, which keeps ``import masis`` quick."""
    if name in _MODULE_OF:
        return getattr(importlib.import_module(_MODULE_OF[name]), name)
    raise AttributeError(f"module 'masis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


class _CallablePackage(ModuleType):
    """The package ``masis.audit``, which is also the function ``masis.audit(cases)``.

    Importing a submodule binds the package's name here, so a function of that name would be
    overwritten. A module class with ``__call__`` makes the package itself callable
    (https://docs.python.org/3/reference/datamodel.html#customizing-module-attribute-access).
    """

    @property
    def __signature__(self) -> Signature:
        return signature(__getattr__("audit"))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Audit cases: ``masis.api.batch.audit``."""
        return __getattr__("audit")(*args, **kwargs)


_package.__class__ = _CallablePackage


def _html_view(record: Run | Screening) -> str:
    # Import the view only when a notebook asks for it.
    html: Callable[[object], str] = __getattr__("html")
    return html(record)


HtmlDisplay.html_view = _html_view
