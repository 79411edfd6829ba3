"""The evidence index confirms copies, flags altered figures and leaves other claims undecided."""

import pytest

from masis.offline.matching.evidence_index import (
    ALWAYS_JUDGED,
    TOO_LONG,
    ClaimAssessment,
    EvidenceIndex,
)

FIRM = "The firm grew by 12% in 2021. It had 67 million users. The dose is 0.002 mg a day."
OTHERS = [
    ("2", "Paris is the capital of France. The brands will not be merged before 2026."),
    (
        "3",
        (
            "Peter Okonjo will chair the board. Permission is granted to trap mink from 1 September"
            " to 30 April."
        ),
    ),
]


@pytest.fixture(scope="module")
def index() -> EvidenceIndex:
    return EvidenceIndex([("chunk_1", FIRM), *OTHERS])


@pytest.mark.parametrize(
    "claim",
    ["The firm grew by 12% in 2021.", "It had 67 million users.", "The dose is 0.002 mg a day."],
)
def test_claims_stated_in_the_evidence_are_supported(index: EvidenceIndex, claim: str) -> None:
    assessment = index.assess(claim)
    assert assessment.verdict == "supported"
    assert assessment.support > 0.6
    assert assessment.uncovered == ()


@pytest.mark.parametrize(
    ("claim", "kind", "claim_value", "evidence_value"),
    [
        ("The firm grew by 21% in 2021.", "number", "21%", "12%"),
        ("It had 999 million users.", "number", "999 million", "67 million"),
        ("The dose is 0.02 mg a day.", "number", "0.02 mg", "0.002 mg"),
        ("The firm grew by 12% in 2012.", "date", "2012", "2021"),
    ],
)
def test_an_altered_fact_is_contradicted_with_the_right_value(
    index: EvidenceIndex, claim: str, kind: str, claim_value: str, evidence_value: str
) -> None:
    assessment = index.assess(claim)
    assert assessment.verdict == "contradicted"
    signal = assessment.signals[0]
    assert (signal.kind, signal.claim_text, signal.evidence_text) == (
        kind,
        claim_value,
        evidence_value,
    )
    assert claim[signal.claim_start : signal.claim_end] == claim_value
    texts = dict([("chunk_1", FIRM), *OTHERS])
    assert texts[signal.evidence_id][signal.evidence_start : signal.evidence_end] == evidence_value


@pytest.mark.parametrize(
    "claim",
    [
        "The firm did not grow by 12% in 2021.",
        "The brands will be merged before 2026.",
    ],
)
def test_a_claim_that_turns_a_sentence_around_is_contradicted(
    index: EvidenceIndex, claim: str
) -> None:
    assert [signal.kind for signal in index.assess(claim).signals] == ["opposite"]


@pytest.mark.parametrize(
    "claim",
    [
        "Paris is the capital of Italy.",
        "France is the capital of Paris.",
        "The firm grew by at least 12% in 2021.",
        "Zebras migrate across dusty plains in great herds.",
    ],
)
def test_a_claim_that_isnt_a_copy_and_has_no_figure_is_undecided(
    index: EvidenceIndex, claim: str
) -> None:
    assessment = index.assess(claim)
    assert assessment.verdict == "unverifiable"
    assert assessment.signals == assessment.absent == ()


def test_synonyms_are_closer_than_unrelated_words(index: EvidenceIndex) -> None:
    synonym_support, unrelated_support = (
        index.assess(claim).support
        for claim in ("The company expanded quickly.", "The choir sang loudly.")
    )
    assert synonym_support > unrelated_support + 0.05


def test_a_claim_is_confirmed_only_if_all_its_sentences_are_copies(
    index: EvidenceIndex,
) -> None:
    two_copies = "The firm grew by 12% in 2021. Paris is the capital of France."
    assert index.assess(two_copies).verdict == "supported"
    assert {passage.evidence_id for passage in index.assess(two_copies).supporting} == {
        "chunk_1",
        "2",
    }
    assert index.assess(f"{two_copies} It is a small city.").verdict == "unverifiable"


def test_words_not_covered_by_evidence_are_named(index: EvidenceIndex) -> None:
    claim = "The firm grew fast in 2021 thanks to zeppelin races."
    spans = [claim[start:end] for start, end in index.assess(claim).uncovered]
    assert any("zeppelin" in span for span in spans)


@pytest.mark.parametrize(
    "claim",
    [
        "I don't know.",
        "idk",
        "I'm sorry, I cannot help with that.",
        "What did the firm do?",
        "The sources do not mention it.",
        "The sources do not mention the zeppelin fleet of the firm.",
        "",
        "...",
    ],
)
def test_text_that_asserts_nothing_is_unverifiable(index: EvidenceIndex, claim: str) -> None:
    assessment = index.assess(claim)
    assert (assessment.support, assessment.verdict) == (None, "unverifiable")


def test_a_title_ending_in_a_question_mark_isnt_a_question() -> None:
    index = EvidenceIndex([("1", "Their second record is called Who Are You?")])
    assert index.assess("Their second record is called Who Are You?").verdict == "supported"


@pytest.mark.parametrize("evidence", [[], [("1", "")], [("1", " \n ")]])
def test_without_evidence_a_claim_is_unverifiable_without_support(
    evidence: list[tuple[str, str]],
) -> None:
    assert EvidenceIndex(evidence).assess("The firm grew by 12%.") == ClaimAssessment(
        None, "unverifiable", 1.0
    )


def test_a_claim_can_be_checked_against_selected_evidence(index: EvidenceIndex) -> None:
    claim = "Paris is the capital of France."
    assert index.assess(claim, only=["2"]).verdict == "supported"
    assert index.assess(claim, only=["chunk_1"]).verdict != "supported"
    assert index.assess(claim, only=["nowhere"]).verdict == "unverifiable"
    assert {passage.evidence_id for passage in index.assess(claim).supporting} == {"2"}


def test_deciding_passages_are_offsets_into_the_evidence(index: EvidenceIndex) -> None:
    best = index.assess("It had 67 million users.").supporting[0]
    assert FIRM[best.start : best.end] == "It had 67 million users."


def test_verdicts_are_deterministic(index: EvidenceIndex) -> None:
    claim = "The firm grew by 21% in 2021."
    second_index = EvidenceIndex([("chunk_1", FIRM), *OTHERS])
    assert index.assess(claim) is index.assess(claim)
    assert second_index.assess(claim) == index.assess(claim)


def test_evidence_late_in_a_long_text_is_used() -> None:
    text = "Nothing of note was said on that day. " * 3000 + "The bridge was opened on 4 June 1911."
    assessment = EvidenceIndex([("long", text)]).assess("The bridge was opened on 4 June 1911.")
    assert assessment.verdict == "supported"
    assert text[assessment.supporting[0].start : assessment.supporting[0].end].startswith(
        "The bridge"
    )


@pytest.mark.soak(smoke=2_000, full=10_000)
def test_10_000_chunks_are_indexed_and_searched_in_seconds(rounds: int) -> None:
    chunks = [
        (
            str(number),
            f"Plant {number} made {number} tonnes in {1900 + number % 120}. The mayor was pleased.",
        )
        for number in range(rounds)
    ]
    assert EvidenceIndex(chunks).assess("Plant 77 made 77 tonnes in 1977.").verdict == "supported"


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["The bridge is 120 metres long. It was opened in 1931. ", "1.5 million ", "A B C. "]
)
def test_a_claim_too_long_to_compare_is_undecided(
    unit: str,
) -> None:
    text = (unit * 50_000)[:50_000]
    index = EvidenceIndex([("1", text)])
    assessment = index.assess(text)
    assert (assessment.verdict, assessment.support, assessment.vetoes) == (
        "unverifiable",
        None,
        (TOO_LONG,),
    )
    assert index.assess(text[: ALWAYS_JUDGED // 4]).vetoes != (TOO_LONG,), (
        "a claim of ordinary length is judged"
    )
