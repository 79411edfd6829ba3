"""Faults are planted in sound answers, reproducibly by seed, and only if they are certain."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from masis.audit.citations.engine import audit_citations
from masis.offline.faults.planting import FaultyAnswer, NoCertainFault, plant_fault
from masis.offline.matching.key_points import index_of
from masis.schema.case import Evidence
from masis.schema.faults import FAULT_KINDS, FaultKind

ORCHARD = (
    "The orchard at Veldrup was planted in 1887 with 640 trees and is not open on Mondays.",
    "Visitors pay at the gate. The cider press at Halmby dates from another century.",
)
SOUND = "The orchard at Veldrup was planted in 1887 with 640 trees and is not open on Mondays [1]."


def chunks(*texts: str) -> tuple[Evidence, ...]:
    return tuple(Evidence(id=str(number), text=text) for number, text in enumerate(texts, 1))


def plant(
    answer: str, texts: Sequence[str], kind: FaultKind, seed: int = 0, question: str = ""
) -> FaultyAnswer:
    result = plant_fault(answer, chunks(*texts), kind, seed=seed, question=question)
    assert isinstance(result, FaultyAnswer), result.reason
    return result


def refusal_reason(answer: str, texts: Sequence[str], kind: FaultKind, question: str = "") -> str:
    for seed in range(5):
        result = plant_fault(answer, chunks(*texts), kind, seed=seed, question=question)
        assert isinstance(result, NoCertainFault), result.answer
    return result.reason  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", [kind for kind in FAULT_KINDS if kind != "negation"])
@pytest.mark.parametrize("seed", range(4))
def test_a_planted_fault_changes_only_the_reported_words(kind: FaultKind, seed: int) -> None:
    faulty_answer = plant(SOUND, ORCHARD, kind, seed)
    fault = faulty_answer.fault
    assert SOUND[fault.original_start : fault.original_end] == fault.before != fault.after
    assert (
        faulty_answer.answer
        == SOUND[: fault.original_start] + fault.after + SOUND[fault.original_end :]
    )
    assert faulty_answer.answer[fault.start : fault.end] == fault.after
    assert fault.sentence in faulty_answer.answer
    assert fault.evidence_ids == ("1",)
    assert plant(SOUND, ORCHARD, kind, seed) == faulty_answer


@pytest.mark.parametrize("seed", range(12))
def test_a_planted_figure_isnt_in_or_derivable_from_the_evidence(seed: int) -> None:
    texts = (
        "In 2014 the ferry carried 30 cars and 12 lorries a day, and 4,200 people.",
        "It makes 6 crossings.",
    )
    faulty_answer = plant(
        "In 2014 the ferry carried 30 cars and 12 lorries a day, and 4,200 people [1].",
        texts,
        "figure",
        seed,
    )
    check = index_of(chunks(*texts)).assess(faulty_answer.answer.replace(" [1]", ""))
    assert check.verdict != "supported"
    assert faulty_answer.fault.after not in {
        "18",
        "42",
        "360",
        "180",
        "72",
        "6",
    }, "a sum, difference or product"


def test_figures_of_questions_and_references_arent_changed() -> None:
    texts = ("The tram of 1931 ran along the harbour until the bridge was closed for repair.",)
    answer = "The tram of 1931 ran along the harbour until the bridge was closed for repair [1]."
    assert "figure" in refusal_reason(
        answer, texts, "figure", question="Where did the tram of 1931 run?"
    )


def test_a_figure_missing_from_the_cited_chunk_isnt_changed() -> None:
    texts = ("The mill employs many people from the valley.", "The mill has 58 looms.")
    assert refusal_reason("The mill has 58 looms [1].", texts, "figure")


def test_negations_are_added_or_removed_against_the_evidence() -> None:
    negated = (
        "The west door was not repaired after the second storm.",
        "Tickets are sold in the shop.",
    )
    faulty_answer = plant(
        "The west door was not repaired after the second storm [1].", negated, "negation"
    )
    assert (faulty_answer.fault.before, faulty_answer.fault.after) == ("was not", "was")
    plain = (negated[0].replace(" not", ""), negated[1])
    faulty_answer = plant(
        "The west door was repaired after the second storm [1].", plain, "negation"
    )
    assert (faulty_answer.fault.before, faulty_answer.fault.after) == ("was", "was not")


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        (
            "All doors were repaired after the second storm [1].",
            ("All doors were repaired after the second storm.",),
        ),
        (
            "If it rains, the west door is closed by the guard [1].",
            ("If it rains, the west door is closed by the guard.",),
        ),
        (
            "The west door was repaired after the second storm [1].",
            (
                "The west door was repaired after the second storm.",
                "The west door was never repaired after that storm.",
            ),
        ),
        (
            "The west door was repaired by masons of the town [1].",
            ("Masons worked in the town that year.",),
        ),
    ],
    ids=["a quantity", "a condition", "sources that disagree", "no near copy"],
)
def test_an_ambiguous_negation_isnt_planted(answer: str, texts: tuple[str, ...]) -> None:
    assert refusal_reason(answer, texts, "negation")


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (
            "Die Brücke wurde nach dem zweiten Sturm von den Maurern der Stadt erneuert.",
            "wurde nicht",
        ),
        (
            "Le pont de la vieille ville est long de plusieurs centaines de mètres environ.",
            "n'est pas",
        ),
        ("El puente de la ciudad vieja fue inaugurado por el alcalde de la provincia.", "no fue"),
        ("Il ponte della vecchia città era stato costruito con pietre della valle.", "non era"),
        ("De brug over de oude rivier werd door de metselaars van de stad hersteld.", "werd niet"),
        ("A ponte da cidade velha foi construída com pedras de uma pedreira vizinha.", "não foi"),
    ],
)
def test_negations_are_planted_in_the_listed_languages(text: str, after: str) -> None:
    assert plant(f"{text[:-1]} [1].", (text,), "negation").fault.after == after


def test_an_unsupported_language_is_rejected_with_the_supported_ones() -> None:
    text = "Мост через старую реку был построен каменщиками города после второй бури."
    assert "English, German" in refusal_reason(f"{text[:-1]} [1].", (text,), "negation")
    assert "English" in refusal_reason(f"{text[:-1]} [1].", (text,), "name")
    assert plant(f"{text[:-1]} [1].", (text,), "citation").fault.after == "2"


@pytest.mark.parametrize("seed", range(6))
def test_a_moved_citation_names_a_chunk_without_the_statement(seed: int) -> None:
    faulty_answer = plant(SOUND, ORCHARD, "citation", seed)
    (citation,) = audit_citations(faulty_answer.answer, chunks(*ORCHARD)).citations
    assert citation.evidence_id in ("2", None)
    assert citation.status == ("invalid" if citation.evidence_id is None else "valid")


def test_a_citation_isnt_moved_to_a_supporting_chunk() -> None:
    repeated_evidence = (ORCHARD[0], f"As a guide has it: {ORCHARD[0]}")
    for seed in range(6):
        faulty_answer = plant(SOUND, repeated_evidence, "citation", seed)
        assert (
            audit_citations(faulty_answer.answer, chunks(*repeated_evidence)).citations[0].status
            == "invalid"
        )
    assert refusal_reason(SOUND.replace("[1]", "[1] [2]"), repeated_evidence, "citation")


def test_a_name_is_replaced_by_one_in_the_same_context() -> None:
    texts = (ORCHARD[0], "Beer was brewed at Halmby. Mondays are quiet.")
    faulty_answer = plant(SOUND, texts, "name")
    assert (faulty_answer.fault.before, faulty_answer.fault.after) == ("Veldrup", "Halmby")


def test_a_name_that_also_fits_the_evidence_isnt_used() -> None:
    second_statement = ORCHARD[0].replace("Veldrup", "Halmby")
    assert refusal_reason(SOUND, (ORCHARD[0], second_statement), "name")


@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_hostile_text_causes_no_error_or_delay(kind: FaultKind) -> None:
    random_source = random.Random(kind)
    for _ in range(40):
        text = "".join(
            random_source.choice("ab1 .,[]()%-–’'\"\n\x0bÄé漢 not is 12 [1]A") for _ in range(300)
        )
        result = plant_fault(text, chunks(text, text[::-1]), kind, seed=1, question=text[:50])
        assert isinstance(result, FaultyAnswer | NoCertainFault)
    assert isinstance(plant_fault("1 " * 20_000, chunks("1"), kind), NoCertainFault)
