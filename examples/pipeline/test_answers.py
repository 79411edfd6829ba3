"""A gate for CI: pytest examples/pipeline/test_answers.py --masis-report answers.jsonl

Checks each answer of the bot against its documents. An unsupported answer fails.
"""

import pytest

DOCUMENTS = [
    {"id": "manual", "content": "Uploads on the free tier are limited to 10 MB."},
    {"id": "pricing", "content": "On the pro tier, uploads may be up to 100 MB."},
]


def bot(question: str) -> str:
    """Return answers, as the system under test would."""
    free, pro = (
        "Uploads on the free tier are limited to 10 MB",
        "On the pro tier, uploads may be up to 100 MB",
    )
    return f"{free} [manual]. {pro} [pricing]."


@pytest.mark.grounded(allow_uncited=False)
def test_the_bot_says_only_what_the_documents_bear(assert_grounded):
    question = "What is the limit for uploads?"
    assert_grounded(bot(question), DOCUMENTS, question=question)


def test_an_invented_limit_is_found(grounded):
    found = grounded("Uploads on the free tier are limited to 25 MB [manual].", DOCUMENTS)
    assert [issue.what for issue in found.issues] == ["contradicted"]
