"""Which sentences need no citation, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from masis.audit.citations import audit_citations
from masis.schema.audit import Sentence
from masis.schema.case import Evidence
from tests.rules import each

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


PAGE = Path(__file__).resolve().parents[3] / "docs" / "citations.md"


def rows(table: str) -> Iterator[list[str]]:
    """The cells of the tables under the comment that names them."""
    for part in PAGE.read_text(encoding="utf-8").split(f"<!-- {table} -->")[1:]:
        lines = part.strip().splitlines()
        for line in lines[2:]:
            if not line.startswith("|"):
                break
            yield [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def written(cell: str) -> str:
    return cell.strip("`").strip(" " if cell.startswith("``") else "").replace("⏎", "\n")


def evidence(cell: str) -> list[Evidence]:
    pairs = [entry.partition("=") for entry in cell.split(", ")]
    return [Evidence(id=id_, source=source or None) for id_, _, source in pairs]


@pytest.mark.spec("MASIS-CRITIC-P3")
@each(rows("markers"), lambda row: row[0])
def test_a_documented_marker_names_what_the_page_says(row: list[str]) -> None:
    answer, ids, names = row
    found = [
        f"{citation.evidence_id} ({citation.resolved_by})" if citation.evidence_id else f"**{citation.reference}**"
        for citation in audit_citations(written(answer), evidence(ids)).citations
    ]
    assert (", ".join(found) or "nothing") == names


@pytest.mark.spec("MASIS-CRITIC-P3", "MASIS-CRITIC-P4")
@each(rows("departures"), lambda row: row[0])
def test_a_documented_departure_is_one(row: list[str]) -> None:
    answer, ids, literal, here, _ = row
    for mode, said in (("literal", literal), ("standard", here)):
        audit = audit_citations(written(answer), evidence(ids), mode=mode)  # type: ignore[arg-type]
        assert f"{', '.join(audit.invalid_citations) or '-'}; {len(audit.uncited_claims)}" == said, mode


def test_the_page_has_its_examples() -> None:
    assert len(list(rows("markers"))) > 50
    assert len(list(rows("departures"))) > 10
    assert not re.search(r"/(?:work|tmp|home)/", PAGE.read_text(encoding="utf-8"))
