"""The demo questions have their expected outcomes, in memory and with a stored corpus, and the demo
module runs standalone.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest

from masis.observers.observation import run_to_completion
from masis.schema.screening import Screening
from masis.screening import demo
from masis.screening.demo import (
    CORPUS,
    DemoQuestion,
    as_expected,
    demo_abstracts,
    demo_questions,
    simulate,
)
from masis.screening.grading.offline_grader import OfflineGrader, offline_grader
from masis.screening.rounds import round_loop
from masis.screening.store import ScreeningStore
from masis.settings import Settings
from masis.store import Store

QUESTIONS = demo_questions()
OUTCOME_BY_KIND = {
    "strong": "sufficient",
    "weak": "evidence_insufficient",
    "insufficient": "evidence_insufficient",
}
with_each_question = pytest.mark.parametrize(
    "demo_question", QUESTIONS, ids=lambda demo_question: demo_question.id
)


@pytest.fixture(scope="module")
def grader() -> OfflineGrader:
    return offline_grader()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("demo") / "demo.db") as opened:
        ScreeningStore(opened).corpora.add_many(CORPUS, demo_abstracts(), source="demo")
        yield opened


@functools.cache
def in_memory(question: str) -> Screening:
    """Screen a demo question, given by its id, against the demo abstracts in memory."""
    (demo_question,) = (row for row in QUESTIONS if row.id == question)
    return simulate(demo_question, demo_abstracts(), offline_grader())


def in_corpus(store: Store, demo_question: DemoQuestion, grader: OfflineGrader) -> Screening:
    retriever = ScreeningStore(store).corpora.retriever(CORPUS)
    settings = Settings(screening_retrieve=demo_question.retrieve)
    return run_to_completion(
        round_loop.screen(
            demo_question.question, [retriever], grader, settings, screening_id=demo_question.id
        )
    )


@pytest.mark.slow
@pytest.mark.spec(
    "AESOP-STANDALONE", "AESOP-WEAK-REJECTED", "AESOP-BORDERLINE", "AESOP-CONVERGES", "AESOP-SERIES"
)
@with_each_question
def test_a_demo_question_has_the_expected_outcome_in_memory(demo_question: DemoQuestion) -> None:
    screening = in_memory(demo_question.id)
    assert as_expected(demo_question, screening), (screening.outcome, len(screening.rounds))
    if demo_question.kind in OUTCOME_BY_KIND:
        assert screening.outcome == OUTCOME_BY_KIND[demo_question.kind], [
            screening_round.ruling.why for screening_round in screening.rounds
        ]
        designs = {grade.design for grade in screening.grades if grade.recommendation == "keep"}
        assert not designs & {
            "case_series",
            "case_report",
            "animal_study",
            "in_vitro_study",
            "narrative_review",
        }


@with_each_question
def test_a_demo_question_has_the_expected_outcome_with_a_stored_corpus(
    demo_question: DemoQuestion, grader: OfflineGrader, store: Store
) -> None:
    screening = in_corpus(store, demo_question, grader)
    assert as_expected(demo_question, screening), (screening.outcome, len(screening.rounds))


@pytest.mark.slow
@pytest.mark.spec("AESOP-SERIES", "AESOP-WEAK-REJECTED")
def test_no_case_series_and_no_off_topic_abstract_is_kept() -> None:
    labels = {abstract.id: (abstract.model_extra or {})["labels"] for abstract in demo_abstracts()}
    for demo_question in QUESTIONS:
        for kept in in_memory(demo_question.id).kept:
            assert labels[kept]["topic"] == demo_question.id, kept
            assert (
                "case" not in labels[kept]["design"]
                or labels[kept]["design"] == "case-control study"
            ), kept
            assert labels[kept]["study_type"] not in {
                "non_systematic_review",
                "clinical_study_protocol",
            }, kept


@pytest.mark.spec("AESOP-RCT-FAIR")
def test_every_strong_demo_trial_is_graded_above_every_case_report(
    grader: OfflineGrader,
) -> None:
    quality: dict[str, list[float]] = {"randomised trial": [], "case report": []}
    for demo_question in QUESTIONS:
        topic_abstracts = [
            abstract
            for abstract in demo_abstracts()
            if (abstract.model_extra or {})["labels"]["topic"] == demo_question.id
            and (abstract.model_extra or {})["labels"]["design"] in quality
        ]
        for abstract, grade in zip(
            topic_abstracts, grader.grade(demo_question.question, topic_abstracts), strict=True
        ):
            labels = (abstract.model_extra or {})["labels"]
            if grade.methodology_score is not None and (labels["sample_size"] or 0) != 22:
                quality[labels["design"]].append(grade.methodology_score)
    assert min(quality["randomised trial"]) > max(quality["case report"])


@pytest.mark.spec("AESOP-STANDALONE")
def test_the_demo_prints_each_outcome_and_whether_it_was_expected(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert demo.main(["htn", "ery"]) == 0
    shown = capsys.readouterr().out
    assert "The studies in them are invented" in shown
    assert "  Evidence insufficient after 4 rounds, 0 kept. As expected: " in shown
    assert shown.count("As expected: ") == 2
