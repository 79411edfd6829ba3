"""Which sentences say only what is not known."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.audit.citations import audit_citations
from masis.audit.citations.hedges import hedges, languages
from masis.schema.case import Evidence
from tests.rules import each

HERE = Path(__file__).parent


def lines(name: str) -> list[str]:
    """The sentences of a file beside this one, one a line."""
    return [line for line in (HERE / name).read_text(encoding="utf-8").splitlines() if line]


@pytest.mark.spec("MASIS-CRITIC-P4")
@each(lines("hedges.txt"))
def test_a_sentence_that_says_what_is_not_known_is_a_hedge(sentence: str) -> None:
    assert hedges(sentence)


@each(lines("assertions.txt"))
def test_a_sentence_that_asserts_something_is_none_however_negative(sentence: str) -> None:
    assert not hedges(sentence)


@pytest.mark.spec("MASIS-CRITIC-P4")
@pytest.mark.parametrize(
    "sentence",
    [
        "There is insufficient evidence.",
        "The figure is not provided.",
        "I cannot provide an answer.",
        "INSUFFICIENT EVIDENCE for a conclusion.",
    ],
)
def test_the_spec_s_own_wordings_are_exempt(sentence: str) -> None:
    audit = audit_citations(f"Sales rose [1]. {sentence}", [Evidence(id="1")])
    assert audit.uncited_claims == ()
    assert audit.penalty_factor == 1.0


@pytest.mark.spec("MASIS-CRITIC-P4")
def test_a_hedge_inside_a_sentence_that_asserts_does_not_excuse_it() -> None:
    sentence = "The margin is not provided, but revenue rose 12% in the third quarter."
    audit = audit_citations(f"Sales rose [1]. {sentence}", [Evidence(id="1")])
    assert audit.uncited_claims == (sentence,)


def test_every_pattern_of_every_language_compiles_and_is_quick() -> None:
    long = "the evidence does not, " * 60
    for name, language in languages().items():
        language.hedged(long)
        assert not language.hedged("plain words"), name
        assert language.turns.search("plain words") is None, name


@given(st.text(alphabet=st.sampled_from("notbuт,; :.aé不。、없 그-"), max_size=300))
def test_any_text_is_judged_without_an_error(text: str) -> None:
    assert hedges(text) in (True, False)
