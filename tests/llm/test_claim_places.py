"""Locating the claims that a model lists: every claim is kept, even if it misquotes the answer,
and every assertion that it omits becomes a claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.api.audits import audit_citations
from masis.llm.roles.claim_places import in_order, place_claims, uncovered_assertions
from masis.llm.roles.replies import JudgedClaim, ListedClaim
from masis.llm.roles.verifier import located_claims
from masis.schema.audit import Claim
from tests.audit.factories import EVIDENCE
from tests.llm import canned

ANSWER = (
    "The bridge is 120 metres long [chunk_1] and it opened in 1931 [chunk_2]. How wide is it? It is"
    " **red**."
)
Listed = tuple[Any, str, str]


def rows(listed: Sequence[Listed]) -> list[ListedClaim]:
    return [
        ListedClaim(sentence=sentence, words=words, meaning=meaning)
        for sentence, words, meaning in listed
    ]


def locate(*pairs: tuple[str, str], answer: str = ANSWER) -> tuple[Claim, ...]:
    """Locate claims given as (words, meaning), without sentence numbers."""
    return located_claims(
        rows([(None, *pair) for pair in pairs]), answer, audit_citations(answer, EVIDENCE)
    )


def in_row_order(answer: str, *listed: Listed) -> list[Claim]:
    """Locate claims given as (sentence, words, meaning), and keep their order."""
    return place_claims(rows(listed), answer, audit_citations(answer, EVIDENCE))


def gaps(answer: str, *listed: Listed) -> list[str]:
    """Return the words of the answer that none of these rows covers."""
    audit = audit_citations(answer, EVIDENCE)
    return [
        claim.text
        for claim in uncovered_assertions(place_claims(rows(listed), answer, audit), audit)
    ]


@pytest.mark.spec("DRAFT-CRITIQUE-EXTRACT")
def test_a_sentence_with_two_assertions_yields_two_located_claims() -> None:
    first, second, third = locate(
        ("The bridge is 120 metres long", "The bridge is 120 metres long."),
        ("it opened in 1931", "The bridge opened in 1931."),
        ("It is red", "The bridge is red."),
    )
    for claim in (first, second, third):
        assert ANSWER[claim.start : claim.end] == claim.text
    assert (first.text, first.statement, first.sentence) == ("The bridge is 120 metres long", "", 0)
    assert (second.text, second.statement, second.sentence) == (
        "it opened in 1931",
        "The bridge opened in 1931.",
        0,
    )
    assert (third.text, third.statement, third.sentence) == (
        "It is **red**.",
        "The bridge is red.",
        2,
    )
    assert first.cited == second.cited == ("chunk_1", "chunk_2")


def test_a_quote_without_its_markers_is_the_whole_sentence() -> None:
    answer = "1. The bridge is long [chunk_1]."
    (claim,) = locate(("The bridge is long.", "The bridge is long."), answer=answer)
    assert claim.text == answer
    assert [claim.text[start:end] for start, end in claim.markers] == ["[chunk_1]"]


def test_a_claim_not_in_the_answer_is_judged_without_a_position() -> None:
    first, second, third = locate(("Traffic lights flash on Sundays.", "The traffic lights flash."))
    assert [claim.text for claim in (first, second)] == [
        ANSWER[: ANSWER.index(" How")],
        "It is **red**.",
    ]
    assert (third.text, third.statement) == (
        "Traffic lights flash on Sundays.",
        "The traffic lights flash.",
    )
    assert (third.start, third.sentence, third.cited) == (None, None, ())


def test_a_sentence_omitted_by_the_model_is_still_a_claim() -> None:
    assert [claim.sentence for claim in locate()] == [0, 2]
    assert [claim.sentence for claim in locate(("It is red", "It is red."))] == [0, 2]


def test_claims_are_unique_and_in_answer_order() -> None:
    opening = ("it opened in 1931", "The bridge opened in 1931.")
    assert [claim.start for claim in locate(("It is red", ""), opening, opening)] == [0, 44, 89]


def test_one_passage_can_have_two_claims() -> None:
    answer = "A and B rose by 5% and 6%."
    claims = locate((answer, "A rose by 5%."), (answer, "B rose by 6%."), answer=answer)
    assert [claim.statement for claim in claims] == ["A rose by 5%.", "B rose by 6%."]


def test_a_claim_over_two_sentences_covers_both() -> None:
    answer = "It is long. It is red."
    (claim,) = locate((answer, "It is long and red."), answer=answer)
    assert (claim.text, claim.sentence) == (answer, 0)


FERRY = (
    "The Orvik ferry carries 48 cars [chunk_1]. A car costs 140 crowns [chunk_2]. Dogs travel free"
    " of charge."
)
HAMBURG = (
    "Die Brücke ist 120 Meter lang [chunk_1]. Sie wurde 1931 für den Verkehr freigegeben [chunk_2]."
)
MADRID = (
    "El puente mide 120 metros [chunk_1]. Se abrió al tráfico en 1931 con una ceremonia [chunk_2]."
)
KYOTO = "橋の長さは120メートルです[chunk_1]。橋は1931年に開通しました[chunk_2]。"
RUSSIAN = "Мост имеет длину 120 метров [chunk_1]. Он был открыт для движения в 1931 году [chunk_2]."


@pytest.mark.parametrize(
    ("answer", "words", "sentence"),
    [
        (FERRY, "A car cosls 140 crowns", 1),
        (FERRY, "A car costs 140 crows", 1),
        (FERRY, "The Orvik fery carries 48 cars", 0),
        (FERRY, "The ferry carries 48 cars at a time", 0),
        (FERRY, "Dogs travell free of charge", 2),
        (HAMBURG, "Sie wurde 1931 für den Verkehr freigegben", 1),
        (HAMBURG, "Die Brucke ist 120 Meter lang", 0),
        (MADRID, "Se abrio al tráfico en 1931 con una ceremonía", 1),
        (KYOTO, "橋は1931年に開通しましだ", 1),
        (RUSSIAN, "Он был открит для движения в 1931 году", 1),
    ],
)
def test_misspelled_words_are_located_by_similarity(answer: str, words: str, sentence: int) -> None:
    expected = audit_citations(answer, EVIDENCE).sentences[sentence].text
    for number in (sentence + 1, str(sentence + 1), f"Sentence {sentence + 1}"):
        (claim,) = in_row_order(answer, (number, words, ""))
        assert (claim.text, claim.statement, claim.sentence) == (expected, words, sentence)


@pytest.mark.parametrize(
    "number", [0, -1, 9, None, "first", "", 1.5, True, [1], float("nan"), float("inf"), 10**400]
)
def test_an_invalid_sentence_number_falls_back_to_the_words(number: Any) -> None:
    for words in ("A car costs 140 crowns", "A car costs 140 crows"):
        (claim,) = in_row_order(FERRY, (number, words, ""))
        assert claim.sentence == 1
    (claim,) = in_row_order(FERRY, (number, "", "Dogs travel without charge on the ferry, free"))
    assert claim.sentence == 2


def test_words_are_located_where_they_occur_despite_the_number() -> None:
    (claim,) = in_row_order(
        FERRY, (1, "A car costs 140 crowns", "A car costs 140 crowns on the ferry")
    )
    assert (claim.sentence, claim.cited) == (1, ("chunk_2",))
    assert FERRY[claim.start : claim.end] == claim.text


def test_repeated_words_are_located_by_the_sentence_number() -> None:
    answer = "It is red. It was blue. It is red."
    assert [
        claim.start for claim in in_row_order(answer, (3, "It is red.", ""), (1, "It is red", ""))
    ] == [24, 0]


def test_a_row_without_words_is_its_whole_sentence() -> None:
    for words in ("", "  ", "\n"):
        (claim,) = in_row_order(FERRY, (2, words, "A car costs 140 crowns on the ferry"))
        assert claim.text == "A car costs 140 crowns [chunk_2]."
        assert claim.statement == "A car costs 140 crowns on the ferry"


def test_paraphrased_words_match_the_most_similar_sentence() -> None:
    (claim,) = in_row_order(FERRY, (None, "the price of a car is 140 crowns", ""))
    assert (claim.sentence, claim.statement) == (1, "the price of a car is 140 crowns")


def test_a_row_without_a_location_uses_the_contradicted_words() -> None:
    audit = audit_citations(FERRY, EVIDENCE)
    denied = canned.chunk_stance("chunk_1", "contradicts", "120 metres", "140 crowns")
    row = JudgedClaim.model_validate(
        canned.judged_claim(99, evidence=[denied], verdict="contradicted")
    )
    (claim,) = place_claims([row], FERRY, audit)
    assert (claim.text, claim.sentence) == ("140 crowns", 1)


def test_overlapping_claims_stay_separate() -> None:
    listed = ((1, "The Orvik ferry carries", ""), (1, "ferry carries 48 cars", ""))
    first, second = in_row_order(FERRY, *listed)
    assert (first.text, second.text) == ("The Orvik ferry carries", "ferry carries 48 cars")
    assert gaps(FERRY, *listed, (2, "", ""), (3, "", "")) == []


def test_claims_without_a_position_are_last() -> None:
    located_claim, unlocated = in_row_order(FERRY, (3, "", ""), (None, "Sharks sleep", ""))
    assert in_order([unlocated, located_claim, unlocated]) == (located_claim, unlocated)


@pytest.mark.parametrize(
    ("answer", "words", "unclaimed"),
    [
        (
            "Dogs travel free, and cats pay the full fare.",
            "Dogs travel free",
            "and cats pay the full fare",
        ),
        ("Dogs travel free if they wear a muzzle.", "Dogs travel free", "if they wear a muzzle"),
        (
            "After two delays in the spring, it opened.",
            "it opened",
            "After two delays in the spring",
        ),
        (
            "It rose, which surprised the board, to 12%.",
            "It rose",
            "which surprised the board, to 12%",
        ),
        (
            "Hunde reisen kostenlos, Katzen zahlen den vollen Preis.",
            "Hunde reisen kostenlos",
            "Katzen zahlen den vollen",
        ),
        (
            "Los perros viajan gratis, pero los gatos pagan todo.",
            "Los perros viajan gratis",
            "pero los gatos pagan todo",
        ),
        (
            "Les chiens voyagent gratis, mais les chats paient.",
            "Les chiens voyagent gratis",
            "mais les chats paient",
        ),
        (
            "Собаки ездят бесплатно, а кошки платят полностью.",
            "Собаки ездят бесплатно",
            "а кошки платят полностью",
        ),
        (
            "犬は無料で乗船できますが、猫は全額を支払います。",
            "犬は無料で乗船できます",
            "猫は全額を支払います",
        ),
        ("狗可以免费乘船，但是猫必须支付全价。", "狗可以免费乘船", "但是猫必须支付全价"),
        (
            "개는 무료로 탈 수 있지만 고양이는 전액을 냅니다.",
            "개는 무료로 탈 수 있지만",
            "고양이는 전액을 냅니다",
        ),
    ],
)
def test_an_unclaimed_clause_becomes_a_claim(answer: str, words: str, unclaimed: str) -> None:
    (gap,) = gaps(answer, (1, words, ""))
    assert unclaimed in gap


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("Dogs do not travel free of charge.", "travel free of charge"),
        ("Dogs never travel free of charge.", "travel free of charge"),
        ("Dogs don't travel free of charge.", "travel free of charge"),
        ("Only dogs travel free of charge.", "dogs travel free of charge"),
        ("Without a ticket dogs travel on it.", "dogs travel on it"),
        ("Hunde reisen nicht kostenlos mit der Fähre.", "kostenlos mit der Fähre"),
        ("Los perros no viajan gratis en el barco.", "viajan gratis en el barco"),
        ("In 12 of 48 sites dogs travel free.", "dogs travel free"),
        ("Dogs travel free of charge up to 30 kg.", "Dogs travel free of charge"),
    ],
)
def test_an_omitted_negation_or_figure_is_judged(answer: str, words: str) -> None:
    assert gaps(answer, (1, words, ""))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("However, dogs travel free of charge.", ["dogs travel free of charge"]),
        ("Dogs travel free, and they need a lead.", ["Dogs travel free", "they need a lead"]),
        ("Dogs travel free, while cats pay.", ["Dogs travel free", "cats pay"]),
        ("Both dogs and cats travel free of charge.", ["dogs and cats travel free of charge"]),
        ("- Dogs travel free of charge.", ["Dogs travel free of charge"]),
        ("3. Dogs travel free of charge [chunk_1].", ["Dogs travel free of charge"]),
        ("**Dogs** travel free of charge [chunk_1][chunk_2].", ["Dogs travel free of charge"]),
        ("Hunde reisen kostenlos und Katzen zahlen.", ["Hunde reisen kostenlos", "Katzen zahlen"]),
        (
            "Los perros viajan gratis y los gatos pagan.",
            ["Los perros viajan gratis", "los gatos pagan"],
        ),
        ("犬は無料です、猫は有料です。", ["犬は無料です", "猫は有料です"]),
        ("Therefore, it opened in 1931 [chunk_2].", ["it opened in 1931"]),
        ("In addition, it opened in 1931.", ["it opened in 1931"]),
        ("Zum Beispiel wurde sie 1931 eröffnet.", ["wurde sie 1931 eröffnet"]),
        ("Sin embargo, se abrió en 1931.", ["se abrió en 1931"]),
        ("Par ailleurs, il a ouvert en 1931.", ["il a ouvert en 1931"]),
        ("For example, it opened in 1931.", ["it opened in 1931"]),
        ("It also opened in 1931, as well.", ["It also opened in 1931"]),
    ],
)
def test_connecting_words_arent_a_gap(answer: str, words: list[str]) -> None:
    assert gaps(answer, *[(1, claim_words, "") for claim_words in words]) == []


def test_words_repeated_in_a_claims_meaning_arent_a_gap() -> None:
    answer = "According to the report of 1931, dogs travel free."
    assert (
        gaps(answer, (1, "dogs travel free", "The report of 1931 says that dogs travel free")) == []
    )
    assert gaps(answer, (1, "dogs travel free", "")) == ["According to the report of 1931"]


def test_one_or_two_unclaimed_words_are_judged_with_their_sentence() -> None:
    answer = "Dogs reportedly travel free, cats pay."
    assert gaps(answer, (1, "travel free", ""), (1, "cats pay", "")) == [answer]


def test_a_fully_claimed_sentence_has_no_gap() -> None:
    assert gaps(FERRY, (1, "", ""), (1, "48 cars", ""), (2, "", ""), (3, "", "")) == []
    assert gaps(FERRY) == [sentence.text for sentence in audit_citations(FERRY, EVIDENCE).sentences]


text = st.text(max_size=120) | st.lists(
    st.sampled_from([*FERRY.split(), *KYOTO, "not", ".", "\n", "[chunk_1]"])
).map(" ".join)
numbers = st.integers(-2, 9) | st.sampled_from([None, "2", "x", 1.5, True])


@given(text, st.lists(st.tuples(numbers, st.text(max_size=30), st.text(max_size=30)), max_size=5))
def test_every_row_and_every_assertion_has_a_claim(answer: str, listed: list[Listed]) -> None:
    audit = audit_citations(answer, EVIDENCE)
    assert len(place_claims(rows(listed), answer, audit)) == len(listed)
    claims = located_claims(rows(listed), answer, audit)
    for claim in claims:
        assert claim.start is None or answer[claim.start : claim.end] == claim.text
        assert all(0 <= start < end <= len(claim.text) for start, end in claim.markers)
    spans = [(claim.start, claim.end or 0) for claim in claims if claim.start is not None]
    for sentence in audit.sentences:
        if sentence.status != "exempt":
            assert any(start < sentence.end and end > sentence.start for start, end in spans)


@given(text, st.lists(st.tuples(numbers, st.text(max_size=30), st.text(max_size=30)), max_size=4))
def test_a_gap_is_found_once(answer: str, listed: list[Listed]) -> None:
    audit = audit_citations(answer, EVIDENCE)
    claims = place_claims(rows(listed), answer, audit)
    assert uncovered_assertions([*claims, *uncovered_assertions(claims, audit)], audit) == []


def test_locating_many_claims_takes_linear_time() -> None:
    answer = " ".join(
        f"The bridge number {number} is {number} metres long." for number in range(400)
    )
    listed = [
        (number + 1, f"The bridge number {number} is {number} meters long", "")
        for number in range(400)
    ]
    assert len(in_row_order(answer, *listed)) == 400
    assert gaps(answer, *listed) == []
