"""Edited concepts of a question replace the parsed ones everywhere."""

from __future__ import annotations

import pytest

from masis.observers.observation import run_to_completion
from masis.schema.screening import Abstract, Screening
from masis.screening.demo import demo_questions
from masis.screening.grading.offline_grader import offline_grader
from masis.screening.grading.question import (
    MAX_CONCEPTS,
    PARTS,
    changed_lines,
    concept_lines,
    concepts_as_text,
    question_of,
    read_question,
    with_concepts,
    written_lines,
)
from masis.screening.grading.relevance import relevance, relevance_by_meaning
from masis.screening.rounds.queries import first_queries, searched_text
from masis.screening.rounds.round_loop import screen
from masis.settings import Settings
from tests.screening.scripted import ScriptedGrader, ScriptedSource, abstracts

QUESTION = "Do adults on long-term proton pump inhibitors develop vitamin B12 deficiency?"
TRIAL = Abstract(
    id="a",
    title="Early physiotherapy after stroke: a randomised trial",
    text=(
        "We randomly assigned 200 patients with stroke to early physiotherapy or usual care."
        " Walking improved more."
    ),
)


def names(text: str, part: str) -> list[str]:
    return [concept.name for concept in read_question(text).concepts if concept.part == part]


@pytest.mark.parametrize("question", [demo.question for demo in demo_questions()])
def test_unchanged_concepts_are_parsed_as_the_question_is(question: str) -> None:
    lines = concepts_as_text(question)
    edited = read_question(with_concepts(question, written_lines(lines)))
    assert {concept.stems for concept in edited.concepts} == {
        concept.stems for concept in read_question(question).concepts
    }
    assert changed_lines(question, lines) == "", "unchanged lines follow the question"


def test_a_line_replaces_its_part_and_the_other_parts_are_unchanged() -> None:
    text = with_concepts(QUESTION, "population: adults\nintervention: proton pump inhibitors")
    assert names(text, "population") == ["adults"]
    assert names(text, "intervention") == ["proton pump inhibitors"]
    assert "vitamin B12" in names(text, "outcome")
    assert read_question(text).written == ("population", "intervention")
    assert names(text, "outcome").count("proton pump inhibitors") == 0, (
        "a concept belongs to one part"
    )


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("Population :  adults ", {"population": "adults"}),
        ("OUTCOME: death", {"outcome": "death"}),
        ("comparison:", {"comparison": ""}),
        ("outcome: death\noutcome: stroke", {"outcome": "stroke"}),
        ("  intervention:\taspirin   and  more", {"intervention": "aspirin and more"}),
        ("populations: adults", {}),
        ("the population: adults", {}),
        ("nothing", {}),
        ("", {}),
        ("population: a: b", {"population": "a: b"}),
    ],
)
def test_concept_lines_are_parsed(lines: str, expected: dict[str, str]) -> None:
    assert concept_lines(lines) == expected


def test_an_empty_line_removes_its_part() -> None:
    text = with_concepts("Is aspirin better than ibuprofen for pain?", "comparison:")
    assert names(text, "comparison") == []
    assert concepts_as_text(text)["comparison"] == ""


def test_an_equals_sign_gives_a_synonym() -> None:
    text = "Does it help?\nintervention: bloxatide = BLX-7, early physiotherapy = mobilisation"
    concepts = read_question(text).concepts
    first, second = (concept for concept in concepts if concept.part == "intervention")
    assert [other.text for other in first.others] == ["BLX-7"]
    assert "mobilisation" in [other.text for other in second.others]
    matches = relevance(
        read_question(text), Abstract(id="a", title="BLX-7 and mobilisation", text="BLX-7.")
    ).met
    assert [match.share for match in matches] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("lines", "is_relevant"),
    [
        ("population: stroke\nintervention: physiotherapy\noutcome: walking", True),
        (
            (
                "population: stroke = cerebral infarction\nintervention: physical therapy ="
                " physiotherapy\noutcome:"
            ),
            True,
        ),
        (
            "population: asthma\nintervention: inhaled corticosteroids\noutcome: exacerbations",
            False,
        ),
        (
            "population: children with epilepsy\nintervention: ketogenic diet\noutcome: seizures",
            False,
        ),
    ],
)
def test_relevance_uses_the_edited_concepts(lines: str, is_relevant: bool) -> None:
    """The question itself is about another topic, so neither its meaning nor its words may
    count.
    """
    for question in ("Does it work?", "Does early physiotherapy improve walking after stroke?"):
        score = relevance_by_meaning(read_question(with_concepts(question, lines)), TRIAL).score
        assert (score >= 0.5) is is_relevant


@pytest.mark.parametrize(
    "concept",
    [
        "高血压",
        "деменция",
        "ดื้อยา",
        "고혈압",
        "الصرع",
        "उच्च रक्तचाप",
        "υπέρταση",
        "血圧",
        "סוכרת",
        "☃☃",
    ],
)
def test_an_unsearchable_concept_leaves_the_abstract_open_with_a_reason(
    concept: str,
) -> None:
    question = with_concepts(
        "Does early physiotherapy improve walking after stroke?", f"population: {concept}, stroke"
    )
    (grade,) = offline_grader().grade(question, [TRIAL])
    assert (grade.recommendation, grade.rule) == ("needs_more", "borderline_relevance")
    assert f"Not matched: {concept} (population)" in grade.reasons["relevance_score"].text
    lines = "\n".join(f"{part}: {concept}" for part in PARTS)
    (grade,) = offline_grader().grade(with_concepts("Helps it?", lines), [TRIAL])
    assert (grade.recommendation, grade.rule) == ("needs_more", "unmatched")
    assert concept in grade.reasons["recommendation"].text


def test_searches_use_the_edited_concepts() -> None:
    assert searched_text(QUESTION) == QUESTION
    edited = with_concepts(
        QUESTION, "population: adults\nintervention: omeprazole\noutcome: vitamin B12 deficiency"
    )
    (query,) = first_queries(edited)
    assert query.text == "omeprazole vitamin B12 deficiency in adults"
    assert "as a person set them" in query.why


def run_screening(concepts: str) -> tuple[Screening, ScriptedSource]:
    source = ScriptedSource(abstracts("a", "b", "c"))
    settings = Settings(screening_max_rounds=1, screening_concepts=concepts)
    screening = run_to_completion(
        screen("aspirin", [source], ScriptedGrader({}), settings, screening_id="s")
    )
    return screening, source


def test_a_screening_stores_its_concepts() -> None:
    screening, source = run_screening("population: adults\noutcome: headache")
    assert source.queries == ["aspirin headache in adults"]
    assert screening.question == "aspirin"
    restored = Screening.model_validate_json(screening.model_dump_json())
    assert (
        concepts_as_text(question_of(restored.question, restored.settings))["population"]
        == "adults"
    )


def test_hostile_lines_are_bounded() -> None:
    text = with_concepts("Does it help?", "population: " + "a1, " * 100_000)
    assert len(read_question(text).concepts) <= MAX_CONCEPTS
    assert concept_lines("population:" + " " * 100_000 + "x")["population"] in ("", "x")
