"""MASIS Workbench: audits AI answers against their evidence, for people who must vouch for them.

    found = frame.join(masis.audit(frame, map={"query": "question", "answer": "response", "evidence": "context"}))
    runs = masis.audit_many(frame, map=masis.suggest(frame).names)   # whole runs; suggest proposes the map
    claims = masis.runs_to_pandas(runs, of="claims")                  # a row for each claim and its verdict
    desk = masis.Desk("review.db", reviewer="Ada"); desk.audit(frame); desk.queue()
    desk.decide("case-7", "reject", reason="unsupported")            # help(masis.Desk.decide) says the rest

The way of the data:

    Case (question, evidence, draft answer)
      -> citations   which markers point at real evidence, which sentences carry none   (code, no model)
      -> claims      what the answer asserts, and which evidence supports each assertion
      -> critique    what a demanding reader objects to; a confidence, lowered by the citations' penalties
      -> revision    a better answer, re-audited from the start            } repeated until it converges
      -> evaluation  four scores, clamped by what the citations prove
    Run (every iteration, kept) -> queue -> decision of a person -> dataset

    import masis
    evidence = (masis.Evidence(id="1", text="It is ten metres long."),)
    run = masis.run_audit(masis.Case(id="bridge", query="How long is it?", answer="Ten metres [1].", evidence=evidence))
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

# Who uses the package says where its log goes; a script that says nothing gets no lines of it on
# stderr.
logging.getLogger("masis").addHandler(logging.NullHandler())

_HOMES = {
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
    """Import a public name when it is first used, so that ``import masis`` and ``masis --help``
    stay quick.
    """
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'masis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


class _CallablePackage(ModuleType):
    """The package ``masis.audit``, which is also the function ``masis.audit(cases)``: a package has
    its name once.

    To import a part of a package binds its name, whatever stood there; a class of its own is what
    Python has for this
    (https://docs.python.org/3/reference/datamodel.html#customizing-module-attribute-access).
    """

    @property
    def __signature__(self) -> Signature:
        return signature(__getattr__("audit"))

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Audit cases: ``masis.api.batch.audit``."""
        return __getattr__("audit")(*given, **named)


_package.__class__ = _CallablePackage


def _html_view(record: Run | Screening) -> str:
    # the view is imported when a notebook first asks for it
    html: Callable[[object], str] = __getattr__("html")
    return html(record)


HtmlDisplay.html_view = _html_view
