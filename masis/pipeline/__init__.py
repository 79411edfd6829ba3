"""Audits for programs that answer questions.

    masis.query_with_critique("How long is the bridge?", retriever)   # DRAFT-CRITIQUE-PIPELINE
    @masis.audited(on_flag="raise")                # audits the answers of a function
    masis.assert_grounded(answer, documents)       # in a test: fails if the answer is unsupported
    masis.assert_not_worse("v1", "v2")             # in a test: fails if a system got worse

Documents can be our own, mappings, texts, or those of LangChain and LlamaIndex (``documents.py``).
"""

from masis.pipeline.auditing import Audited, audited
from masis.pipeline.documents import documents
from masis.pipeline.grounding import Bounds, Grounding, NotGrounded, assert_grounded, grounding
from masis.pipeline.query import query_with_critique, query_with_critique_async
from masis.pipeline.systems import SystemWorse, assert_not_worse
