"""The evidence critic as a whole: a screening in one call, also on the demo abstracts."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

import masis
from masis.errors import InputError, SettingsError
from masis.schema.screening import Abstract, Screening, ScreeningEvent
from masis.screening.critic import evaluate, grader_for, grader_names
from masis.screening.grading.offline_grader import offline_grader
from masis.settings import Settings

QUESTION = "Does aspirin relieve acute migraine in adults?"
TRIAL = {
    "id": "trial",
    "title": (
        "Aspirin for acute migraine in adults: a randomised, double-blind, placebo-controlled trial"
    ),
    "text": (
        "Adults with acute migraine were randomly assigned to aspirin 900 mg (n = 206) or placebo"
        " (n = 206). Participants and assessors were blinded. The primary outcome was freedom from"
        " pain at 2 hours. Aspirin relieved acute migraine more often than placebo (odds ratio 2.1,"
        " 95% CI 1.5 to 2.9; p < 0.001). NCT01234567."
    ),
}
CASE = {
    "id": "case",
    "title": "Acute migraine relieved by aspirin: a case report",
    "text": "We report a 34-year-old woman whose acute migraine was relieved by aspirin.",
}
OFF_TOPIC = {
    "id": "away",
    "title": "Early walking after knee replacement: a randomised controlled trial",
    "text": (
        "We randomly assigned 240 adults after knee replacement to early walking or usual care. It"
        " was better."
    ),
}


@pytest.mark.spec("AESOP-GRADING", "AESOP-WEAK-REJECTED", "AESOP-RCT-FAIR")
def test_each_abstract_gets_a_grade_a_recommendation_and_reasons() -> None:
    screening = masis.screen_abstracts(QUESTION, [TRIAL, CASE, OFF_TOPIC])
    recommendations = {
        grade.abstract_id: (grade.recommendation, grade.rule) for grade in screening.grades
    }
    assert recommendations == {
        "trial": ("keep", "strong"),
        "case": ("discard", "weak_method"),
        "away": ("discard", "off_topic"),
    }
    assert (screening.decision, screening.consensus, screening.kept) == (
        "retrieve_more",
        "retrieve_more",
        ("trial",),
    )
    # The second round retrieves nothing new.
    assert [len(screening_round.new) for screening_round in screening.rounds] == [3, 0]
    trial = screening.grade("trial")
    assert trial.study_size is not None
    assert trial.sample_size_adequate is True
    assert set(trial.reasons) == {
        "relevance_score",
        "methodology_score",
        "sample_size_adequate",
        "study_type",
        "design",
        "recommendation",
    }
    for reason in trial.reasons.values():
        for words in reason.words:
            source = TRIAL[words.place]
            assert source[words.start : words.end] == words.text


@pytest.mark.spec("AESOP-CONVERGES")
def test_strong_evidence_is_sufficient() -> None:
    trials = [
        Abstract.model_validate(
            {
                **TRIAL,
                "id": f"t{i}",
                "title": f"{TRIAL['title']} {i}",
                "text": re.sub(r"NCT\d+", f"NCT0000000{i}", TRIAL["text"]),
            }
        )
        for i in range(4)
    ]
    screening = masis.screen_abstracts(QUESTION, trials)
    assert (screening.decision, screening.outcome, screening.flow.kept) == (
        "sufficient",
        "sufficient",
        4,
    )


@pytest.mark.soak(smoke=300, full=1_200)
def test_every_abstract_of_a_large_set_is_graded_in_the_first_round(rounds: int) -> None:
    abstracts = [
        {**OFF_TOPIC, "id": str(i), "title": f"{OFF_TOPIC['title']}, number {i}"}
        for i in range(rounds)
    ]
    screening = masis.screen_abstracts(QUESTION, abstracts)
    assert (len(screening.grades), len(screening.rounds[0].new), screening.outcome) == (
        rounds,
        rounds,
        "evidence_insufficient",
    )


def test_abstracts_with_equal_titles_are_all_graded_but_duplicate_records_only_once() -> None:
    same_title = [{**TRIAL, "id": f"t{i}"} for i in range(3)]
    assert len(masis.screen_abstracts(QUESTION, same_title).grades) == 3
    same_doi = [{**TRIAL, "id": f"t{i}", "doi": "10.5555/one"} for i in range(3)]
    screening = masis.screen_abstracts(QUESTION, same_doi)
    assert (len(screening.grades), screening.flow.identified, screening.flow.duplicates) == (
        1,
        3,
        2,
    )


def test_unreadable_input_is_rejected_with_its_position() -> None:
    with pytest.raises(InputError, match=r"abstracts\[1\]: has neither a title nor an abstract"):
        masis.screen_abstracts(QUESTION, [TRIAL, {"journal": "nothing to read"}])
    with pytest.raises(InputError, match=r"abstracts\[1\].year"):
        masis.screen_abstracts(QUESTION, [TRIAL, {**CASE, "year": "soon"}])
    with pytest.raises(InputError, match=r"abstracts\[1\].id: the id 'trial' is used by another"):
        masis.screen_abstracts(QUESTION, [TRIAL, {**CASE, "id": "trial"}])
    with pytest.raises(InputError, match="question"):
        masis.screen_abstracts("  ", [TRIAL])
    assert masis.screen_abstracts(QUESTION, []).outcome == "evidence_insufficient"


def test_a_mapping_can_use_the_keys_abstract_and_pmid() -> None:
    row = {
        "pmid": "31563227",
        "title": TRIAL["title"],
        "abstract": TRIAL["text"],
        "keywords": ["aspirin"],
    }
    screening = masis.screen_abstracts(QUESTION, [row])
    assert screening.kept == ("pmid-31563227",)


def test_the_result_round_trips_through_json() -> None:
    screening = masis.screen_abstracts(QUESTION, [TRIAL, CASE])
    assert Screening.model_validate_json(screening.model_dump_json()) == screening


@pytest.mark.spec("AESOP-ASYNC")
def test_evaluate_is_stateless() -> None:
    abstracts = [Abstract.model_validate(row) for row in (TRIAL, CASE)]
    grader = offline_grader()
    grades, ruling = evaluate(QUESTION, abstracts, 2, grader=grader)
    assert (ruling.required_average, ruling.decision) == (0.60, "retrieve_more")

    async def evaluate_in_parallel() -> list[object]:
        return list(
            await asyncio.gather(
                asyncio.to_thread(evaluate, QUESTION, abstracts, 2, grader=grader),
                asyncio.to_thread(
                    evaluate,
                    "Does walking help after knee replacement?",
                    abstracts,
                    0,
                    grader=grader,
                ),
            )
        )

    first, second = asyncio.run(evaluate_in_parallel())
    assert first == (grades, ruling)
    assert second != first


def test_async_screening_doesnt_block_the_event_loop() -> None:
    events: list[ScreeningEvent] = []
    abstracts = [{**TRIAL, "id": f"trial-{number}"} for number in range(300)]

    async def screen_and_count_turns() -> tuple[Screening, int]:
        task, turns = (
            asyncio.create_task(
                masis.screen_abstracts_async(QUESTION, abstracts, on_event=events.append)
            ),
            0,
        )
        while not task.done():
            await asyncio.sleep(0)
            turns += 1
        return await task, turns

    screening, turns = asyncio.run(screen_and_count_turns())
    assert turns > 10, "the event loop was blocked during the screening"
    assert screening.grades == masis.screen_abstracts(QUESTION, abstracts).grades
    assert events[-1].kind == "screening_finished"


@pytest.mark.parametrize("text", ["", " , ", "offline, offline", "nobody:knows"])
def test_invalid_graders_are_rejected(text: str) -> None:
    with pytest.raises(SettingsError):
        grader_for(Settings(screening_graders=text))


def test_graders_are_separated_by_commas() -> None:
    assert grader_names(Settings(screening_graders="offline, openai:gpt-4o")) == (
        "offline",
        "openai:gpt-4o",
    )


@pytest.mark.parametrize("abstracts", ["one text", [TRIAL, 7], [None]])
def test_input_that_isnt_an_abstract_is_rejected_with_its_position(abstracts: Any) -> None:
    with pytest.raises(
        InputError, match=r"abstracts\[[01]\]: must be an abstract, not (str|int|NoneType)"
    ):
        masis.screen_abstracts(QUESTION, abstracts)
