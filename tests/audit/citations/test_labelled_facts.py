"""A label with a value asserts something; a title with a colon doesn't."""

from __future__ import annotations

import pytest

from masis.audit.citations import audit_citations
from masis.schema.case import Evidence

EVIDENCE = (Evidence(id="chunk_1", text="A tower."), Evidence(id="chunk_2", text="A door."))


def uncited_sentences(answer: str) -> list[str]:
    return list(audit_citations(answer, EVIDENCE).uncited_claims)


@pytest.mark.parametrize(
    ("answer", "facts"),
    [
        ("**Height:** 40 m [1]\n**Material:** oak\n**Built:** 1907 [2]", ["**Material:** oak"]),
        ("**Height**: 40 m [1]\n**Material**: oak\n**Built**: 1907 [2]", ["**Material**: oak"]),
        ("__Height:__ 40 m [1]\n\n__Material:__ oak\n\n__Built:__ 1907 [2]", ["__Material:__ oak"]),
        ("*Material:* oak\n*Height:* 40 m [1]\n*Built:* 1907 [2]", ["*Material:* oak"]),
        ("Height: 40 m [1]\nMaterial: oak\nBuilt: 1907 [2]", ["Material: oak"]),
        ("Height (m): 40 [1]\nWeight (t): 12\nBuilt: 1907 [2]", ["Weight (t): 12"]),
        ("Height – 40 m [1]\nMaterial – oak\nBuilt – 1907 [2]", ["Material – oak"]),
        ("高度：40米 [1]\n材料：橡木\n年份：1907 [2]", ["材料：橡木"]),
        ("Height: 40 m [1]\u2028Material: oak\u2028Built: 1907 [2]", ["Material: oak"]),
        ("The tower is tall [1].\n\n**Material:** oak\n\nIt is old [2].", ["**Material:** oak"]),
    ],
)
def test_a_labeled_fact_without_a_citation_is_uncited(answer: str, facts: list[str]) -> None:
    assert uncited_sentences(answer) == facts


@pytest.mark.parametrize(
    "answer",
    [
        "Part 1: The tower\n\nThe tower is tall [1].",
        "**Step 2:** Foundations\n\nThe ground is dug [1].",
        "Option B: oak\nThe door is oak [2].",
        "Phase II: the door\nThe door is oak [2].",
        "Towers: a history\n\nThe tower is tall [1].",
        "**The tower: its height**\n\nThe tower is tall [1].",
    ],
)
def test_a_title_with_a_colon_is_exempt(answer: str) -> None:
    assert uncited_sentences(answer) == []


@pytest.mark.parametrize(
    "question", ["ドアは赤い？", "هل البرج طويل؟", "Πού είναι ο πύργος;", "ከተማው ትልቅ ነው፧", "Really⁇"]
)
def test_questions_in_any_script_are_exempt(question: str) -> None:
    assert uncited_sentences(f"{question}\n\nThe tower is tall [1].") == []
