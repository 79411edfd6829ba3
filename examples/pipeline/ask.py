"""A question answered from documents and checked in one call; and a function whose answers are
audited.

    python examples/pipeline/ask.py

Any retriever does: a function of the question, one of LangChain (``invoke``) or of LlamaIndex
(``retrieve``).
"""

import masis
from masis.errors import AnswerRejected

DOCUMENTS = [
    {
        "id": "manual",
        "content": "Uploads on the free tier are limited to 10 MB.",
        "type": "doc",
        "score": 0.9,
    },
    {
        "id": "pricing",
        "content": "On the pro tier, uploads may be up to 100 MB.",
        "type": "doc",
        "score": 0.7,
    },
]


def retriever(question: str) -> list[dict]:
    """Stands for a vector store: the documents that bear on the question, the most
    relevant first.
    """
    return DOCUMENTS


def model(question: str, context: str) -> str:
    """Stands for a language model, which writes from what was found and here gets a
    number wrong.
    """
    return (
        "Uploads on the free tier are limited to 25 MB [manual]. The pro tier allows up to 100 MB"
        " [pricing]."
    )


# Retrieve, draft, critique; a draft that does not hold is revised, and the revision checked again.
found = masis.query_with_critique(
    "What is the limit for uploads?",
    retriever,
    {"critiqueOptions": {"autoRevise": True}},
    draft=model,
)
assert found.critique is not None
print("valid:", found.critique.is_valid)
for issue in found.critique.issues:
    print(f"{issue.type} ({issue.severity}): {issue.description}")
print("draft:", found.draft)


# The same for a function that stands: it answers as before, and what is flagged is rejected.
@masis.audited(on_flag="raise")
def answer(question: str, evidence: list[dict]) -> str:
    """Answers a question."""
    return model(question, "")


try:
    answer("What is the limit for uploads?", DOCUMENTS)
except AnswerRejected as rejected:
    print(rejected)
