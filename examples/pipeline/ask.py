"""Answer a question from documents and check the answer; then audit a function's answers.

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
    """Return relevant documents, most relevant first, as a vector store would."""
    return DOCUMENTS


def model(question: str, context: str) -> str:
    """Return an answer with a wrong number, as a language model might write it."""
    return (
        "Uploads on the free tier are limited to 25 MB [manual]. The pro tier allows up to 100 MB"
        " [pricing]."
    )


# Retrieve, draft and critique. A draft with problems is revised, and the revision is checked again.
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


# The same for an existing function: it works as before, and flagged answers are rejected.
@masis.audited(on_flag="raise")
def answer(question: str, evidence: list[dict]) -> str:
    """Answer a question."""
    return model(question, "")


try:
    answer("What is the limit for uploads?", DOCUMENTS)
except AnswerRejected as rejected:
    print(rejected)
