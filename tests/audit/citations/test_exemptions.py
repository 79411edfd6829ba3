"""Which sentences need no citation, and why."""

from __future__ import annotations

import pytest

from masis.audit.citations import audit_citations
from masis.schema.audit import Sentence
from masis.schema.case import Evidence

ONE = (Evidence(id="1"),)


def judged(answer: str) -> list[Sentence]:
    return list(audit_citations(answer, ONE).sentences)


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("# Results in 2023", "a heading"),
        ("Is that much?", "a question"),
        ("这是什么？", "a question"),
        ("Here are the main causes:", "speaks about the answer itself"),
        ("The main causes are:", "announces what follows"),
        ("There are several reasons for this.", "announces what follows"),
        ("**Background.**", "a title"),
        ("I hope this helps!", "a greeting"),
        ("Let me know if you have further questions.", "speaks about the answer itself"),
        ("Certainly!", "a greeting"),
        ("Yes.", "a bare answer, which the next sentences carry"),
        ("Please consult a doctor before taking it.", "advises to ask a professional"),
        ("It is important to consult a qualified professional.", "advises to ask a professional"),
        ("```\nx = rows[7]\n```", "a code block"),
        ("---", "a rule between parts"),
        ("On the other hand.", "a transition"),
        ("***", "a rule between parts"),
        ("The sources do not mention the price.", "says what is not known"),
    ],
)
def test_what_asserts_nothing_is_exempt_and_says_why(sentence: str, why: str) -> None:
    first = judged(f"{sentence}\n\nIt rose [1].")[0]
    assert (first.status, first.why) == ("exempt", why)


@pytest.mark.parametrize(
    "sentence",
    [
        "Paris is the capital of France.",
        "Paris.",
        "However, revenue fell by 12%.",
        "In conclusion, the drug works.",
        "First, the plant was closed in 2004.",
        "Revenue fell by 12% in 2004 for these reasons:",
        "The doctor advised a change of diet.",
        "See the doctor paid by the firm in 2004 for 3 million.",
        "Sources of energy vary by region.",
        "Sure signs of the disease are fever and rash in most patients.",
        "Thanks to the new plant, output rose by a third in a year.",
        "There are several hundred species of oak in the region and most of them are threatened by drought.",
        "Consider the fact that the sales of 2023 were lower than those of 2022.",
        "These are the largest whales in the southern ocean and eat krill.",
    ],
)
def test_what_asserts_something_is_not(sentence: str) -> None:
    assert judged(f"{sentence}\n\nIt rose [1].")[0].status == "uncited"


def test_the_head_and_the_rule_of_a_table_are_exempt_and_its_rows_are_not() -> None:
    table = "| year | sales |\n|---|---|\n| 2023 | 5 million |\n| 2024 | 6 million [1] |"
    assert [(s.status, s.why) for s in judged(table)] == [
        ("exempt", "the head of a table"),
        ("exempt", "a rule of a table"),
        ("uncited", "asserts something and carries no citation"),
        ("cited", "carries a citation"),
    ]


def test_the_definitions_of_footnotes_are_a_source_list() -> None:
    audit = audit_citations("Sales rose [^1].\n\n[^1]: Annual report, 2023", ONE)
    assert [c.evidence_id for c in audit.citations] == ["1"]
    assert [s.status for s in audit.sentences] == ["cited", "exempt"]


def test_a_lone_sentence_of_one_word_is_an_answer_and_needs_its_citation() -> None:
    assert judged("Paris.")[0].status == "uncited"
    assert judged("Yes.")[0].status == "uncited"


def test_a_hedge_that_carries_a_citation_is_cited() -> None:
    assert judged("The report [1] does not mention the price.")[0].status == "cited"
