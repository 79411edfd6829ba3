"""What a program that answers questions puts around its answers: retrieve, draft, critique; audit;
assert.

    result = masis.query_with_critique("How long is the bridge?", retriever)     # DRAFT-CRITIQUE-PIPELINE
    @masis.audited(on_flag="raise")                                             # audits what a function answers
    masis.assert_grounded(answer, documents)                                    # in a test: fails where unsupported

Documents come as they are found: our own, mappings, texts, LangChain's, LlamaIndex's
(``documents.py``).
"""

from masis.pipeline.auditing import Audited, audited
from masis.pipeline.documents import documents
from masis.pipeline.grounding import Bounds, Grounding, NotGrounded, assert_grounded, grounding
from masis.pipeline.query import query_with_critique, query_with_critique_async
