"""An abstract is read in linear time, whatever it repeats."""

from __future__ import annotations

import pytest

from masis.schema.screening import Abstract
from masis.screening.grading.designs import recognise
from masis.screening.grading.hierarchy import place_design, sure_design
from masis.screening.grading.methodology import methodology
from masis.screening.grading.question import read_question
from masis.screening.grading.relevance import relevance
from masis.screening.grading.sample_size import sample_sizes
from tests.test_linear_time import read_repeated

PIECES = (
    "a¦a-¦randomised, ¦in this ¦double-¦not blinded ¦1:¦two two ¦p<¦\u2028¦%=¦rat"
    " ¦1,1.¦é¦randomised controlled trial ¦( ¦of 5 ¦one hundred ¦1 ¦n = 5 ¦patients ¦a"
    " 5-year-old x x ¦a case ¦will be ¦rats ¦retraction ¦male ¦registered "
)
"""Texts to repeat, separated by a broken bar."""


def _abstract(text: str) -> None:
    abstract = Abstract(id="a", title=text[:500], text=text)
    recognise(abstract)
    sure_design(abstract)
    sample_sizes(text)
    place_design("non_systematic_review", abstract)
    for design in ("randomised_trial", "systematic_review", "cohort_study", "animal_study"):
        methodology(abstract, design)
    relevance(
        read_question("Does metformin reduce mortality in patients with heart failure?"), abstract
    )
    read_question(text)


@pytest.mark.soak(smoke=30_000, full=100_000)
def test_an_abstract_that_repeats_a_piece_is_read_in_linear_time(rounds: int) -> None:
    for piece in PIECES.split("¦"):
        read_repeated(_abstract, piece, rounds)
