"""Claims tied to the words of the answer: none judged that nobody said, none lost that somebody did."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.api.audits import audit_citations
from masis.errors import BadReply, ProviderFailed, StepError
from masis.llm.roles.verifier import Extracted, Extractions, ModelVerifier, located_claims
from masis.schema.audit import Claim
from masis.settings import Settings
from tests.audit.factories import EVIDENCE
from tests.llm.canned import listed
from tests.llm.scripted_asker import ScriptedAsker

ANSWER = "The bridge is 120 metres long [chunk_1] and it opened in 1931 [chunk_2]. How wide is it? It is **red**."


def found(*pairs: tuple[str, str], answer: str = ANSWER) -> tuple[Claim, ...]:
    return located_claims([Extracted(None, *pair) for pair in pairs], answer, audit_citations(answer, EVIDENCE))


def extracted(
    asker: ScriptedAsker, answer: str = ANSWER, kept: Extractions | None = None, **changes: Any
) -> tuple[Claim, ...]:
    verifier = ModelVerifier(asker, Settings(**changes), kept or Extractions())
    return verifier.extract(answer, audit_citations(answer, EVIDENCE), "How long is it?")


@pytest.mark.spec("DRAFT-CRITIQUE-EXTRACT")
def test_a_sentence_with_two_assertions_gives_two_claims_with_their_places() -> None:
    first, second, third = found(
        ("The bridge is 120 metres long", "The bridge is 120 metres long."),
        ("it opened in 1931", "The bridge opened in 1931."),
        ("It is red", "The bridge is red."),
    )
    for claim in (first, second, third):
        assert ANSWER[claim.start : claim.end] == claim.text
    assert (first.text, first.statement, first.sentence) == ("The bridge is 120 metres long", "", 0)
    assert (second.text, second.statement, second.sentence) == ("it opened in 1931", "The bridge opened in 1931.", 0)
    assert (third.text, third.statement, third.sentence) == ("It is **red**.", "The bridge is red.", 2)
    assert first.cited == second.cited == ("chunk_1", "chunk_2")


def test_a_quote_of_all_but_the_markers_is_the_whole_sentence() -> None:
    answer = "1. The bridge is long [chunk_1]."
    (claim,) = found(("The bridge is long.", "The bridge is long."), answer=answer)
    assert claim.text == answer
    assert [claim.text[start:end] for start, end in claim.markers] == ["[chunk_1]"]


def test_what_is_not_in_the_answer_is_not_judged() -> None:
    assert [claim.text for claim in found(("It collapsed in 1950.", "The bridge collapsed."))] == [
        ANSWER[: ANSWER.index(" How")],
        "It is **red**.",
    ]


def test_a_sentence_that_the_list_leaves_out_is_a_claim_all_the_same() -> None:
    assert [claim.sentence for claim in found()] == [0, 2]
    assert [claim.sentence for claim in found(("It is red", "It is red."))] == [0, 2]


def test_claims_come_in_the_order_of_the_answer_and_each_once() -> None:
    said = ("it opened in 1931", "The bridge opened in 1931.")
    assert [claim.start for claim in found(("It is red", ""), said, said)] == [44, 89]


def test_one_stretch_may_make_two_claims() -> None:
    answer = "A and B rose by 5% and 6%."
    made = found((answer, "A rose by 5%."), (answer, "B rose by 6%."), answer=answer)
    assert [claim.statement for claim in made] == ["A rose by 5%.", "B rose by 6%."]


def test_a_claim_over_two_sentences_covers_both() -> None:
    answer = "It is long. It is red."
    (claim,) = found((answer, "It is long and red."), answer=answer)
    assert (claim.text, claim.sentence) == (answer, 0)


@given(st.text(max_size=120), st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), max_size=5))
def test_every_claim_stands_where_it_says_and_every_assertion_is_claimed(
    answer: str, pairs: list[tuple[str, str]]
) -> None:
    audit = audit_citations(answer, EVIDENCE)
    made = located_claims([Extracted(None, *pair) for pair in pairs], answer, audit)
    for claim in made:
        assert answer[claim.start : claim.end] == claim.text
        assert all(0 <= start < end <= len(claim.text) for start, end in claim.markers)
    for sentence in audit.sentences:
        if sentence.status != "exempt":
            assert any(claim.start < sentence.end and claim.end > sentence.start for claim in made)  # type: ignore[operator]


@pytest.mark.spec("DRAFT-CRITIQUE-CACHE")
def test_an_answer_that_comes_again_is_not_asked_about_again() -> None:
    asker, kept = (ScriptedAsker({"claims_extract": {"claims": [listed(sentence=3)]}}), Extractions())
    assert extracted(asker, kept=kept) == extracted(asker, kept=kept)
    assert len(asker.asked) == 1
    extracted(asker, answer="Another answer.", kept=kept)
    other = ScriptedAsker(asker.replies, name="another:model")
    extracted(other, kept=kept)
    assert (len(asker.asked), len(other.asked)) == (2, 1)


def test_a_failed_extraction_is_not_kept() -> None:
    asker, kept = ScriptedAsker({"claims_extract": [ProviderFailed("down"), {"claims": []}]}), Extractions()
    with pytest.raises(ProviderFailed):
        extracted(asker, kept=kept)
    assert extracted(asker, kept=kept)


def test_extractions_that_nobody_asks_for_give_way() -> None:
    kept = Extractions(most=2)
    for key in "abc":
        kept.keep(key, ())
        kept.get("a")
    assert [kept.get(key) is None for key in "abc"] == [False, True, False]


@pytest.mark.spec("DRAFT-CRITIQUE-OPTIONS")
def test_without_the_check_of_facts_no_model_is_asked_for_claims() -> None:
    asker = ScriptedAsker({})
    assert extracted(asker, check_factual=False) == ()
    assert extracted(asker, answer="  ") == ()
    assert asker.asked == []


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ProviderFailed("down"), "CRITIC-ERR-003"),
        (BadReply("cut off", kind="cut_off"), "CRITIC-ERR-001"),
        ("1. The bridge is long.", "CRITIC-ERR-001"),
    ],
)
def test_an_extraction_that_fails_says_so(failure: Any, code: str) -> None:
    with pytest.raises(StepError) as raised:
        extracted(ScriptedAsker({"claims_extract": failure}))
    assert raised.value.code == code
