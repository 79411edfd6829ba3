"""A screening as the page shows it: rounds, flow, table, one abstract with the words its grade
rests on.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from masis.schema.audit import JudgedBy
from masis.schema.base import Unscored
from masis.schema.screening import (
    Abstract,
    AbstractWords,
    Exclusion,
    Flow,
    Grade,
    GradeField,
    GradeReason,
    Opinion,
    Override,
    OverrideField,
    Query,
    Recommendation,
    Round,
    SampleSize,
    Screening,
    ScreeningVersions,
)
from masis.screening.critic import screen_abstracts
from masis.screening.rounds.overrides import apply_overrides
from masis.screening.rounds.ruling import DEFAULT, ruling
from masis.screening.services.screenings import OpenedScreening
from masis.screening.synthesis.findings import synthesise
from masis.screening.ui.result import (
    abstract_row,
    agreement_words,
    convergence_rows,
    count_recommendations,
    direction_rows,
    finding_row,
    select_grades,
    study_name,
)
from masis.screening.views.abstract import abstract_data, pieces
from masis.screening.views.charts import AVERAGE, REQUIRED
from masis.screening.views.rounds import flow_frame, rules_text, votes_text
from masis.screening.views.words import value_text

TEXT = "We randomised 412 patients to velotarine or placebo. Blood pressure fell."
ABSTRACT = Abstract(
    id="a1",
    title="Velotarine for hypertension",
    text=TEXT,
    year=2019,
    journal="Demo Journal",
    authors=("A B", "C D", "E F", "G H"),
    doi="10.5555/demo.a1",
)
BY = JudgedBy(model="offline", version="1")


def grade(
    abstract_id: str = "a1",
    recommendation: Recommendation = "keep",
    *,
    relevance: float | None = 0.9,
    methodology: float | None = 0.7,
    size: int | None = 412,
    reasons: dict[OverrideField, GradeReason] | None = None,
    unscored: Unscored | None = None,
) -> Grade:
    scored = relevance is not None and methodology is not None
    return Grade(
        abstract_id=abstract_id,
        relevance_score=relevance,
        methodology_score=methodology,
        methodology_raw=0.5,
        prior=0.65,
        quality=(relevance + methodology) / 2 if scored else None,  # type: ignore[operator]
        sample_size_adequate=True,
        study_size=(
            SampleSize(value=size, unit="patients", kind="total", start=14, end=26)
            if size
            else None
        ),
        study_type="human_rct_drug_intervention",
        study_type_confidence=0.9,
        design="randomised_trial",
        recommendation=recommendation,
        rule={"keep": "strong", "discard": "off_topic", "needs_more": "borderline_method"}[
            recommendation
        ],
        reasons=reasons or {},
        judged_by=BY,
        unscored=unscored,
    )


def a_round(number: int, grades: list[Grade]) -> Round:
    return Round(
        number=number,
        queries=(Query(text="velotarine hypertension", why="the question itself"),),
        identified=len(grades),
        retrieved=tuple(grade.abstract_id for grade in grades),
        new=tuple(grade.abstract_id for grade in grades),
        ruling=ruling(number, grades),
        missing=("a randomised trial",),
    )


def screening(*rounds: list[Grade]) -> Screening:
    grades = tuple({grade.abstract_id: grade for found in rounds for grade in found}.values())
    return Screening(
        id="s1",
        question="Does velotarine lower blood pressure?",
        started_at="2026-01-01T00:00:00Z",
        finished_at="2026-01-01T00:00:01Z",
        retrievers=("corpus:demo",),
        graders=("offline",),
        rounds=tuple(a_round(number, found) for number, found in enumerate(rounds)),
        grades=grades,
        kept=tuple(grade.abstract_id for grade in grades if grade.recommendation == "keep"),
        outcome="sufficient",
        reasons=(),
        thresholds=DEFAULT,
        flow=Flow(
            identified=3, duplicates=1, screened=2, excluded=(), undecided=1, unscored=0, kept=1
        ),
        settings={},
        versions=ScreeningVersions(app="0", rubric="1"),
    )


def test_a_round_shows_its_votes_and_the_three_rules() -> None:
    kept = [grade(f"k{n}") for n in range(6)]
    weak = [grade(f"d{n}", "discard") for n in range(4)]
    (found,) = screening(kept + weak).rounds
    assert (
        votes_text(found)
        == ":green[**6** keep] (60%), :orange[**0** need more] (0%), :red[**4** discard] (40%)"
    )
    held = (
        r":green\[✓\] Consensus: sufficient  \n:green\[✓\] Quality: average [^\n]*  \n:green\[✓\]"
        r" Studies: [^\n]*"
    )
    assert re.fullmatch(held, rules_text(found))
    (poor,) = screening([grade("x", relevance=0.6, methodology=0.66, size=60)]).rounds
    assert re.fullmatch(
        r":green\[✓\] Consensus: sufficient  \n:red\[✗\] Quality: average [^\n]*  \n"
        r":red\[✗\] Studies: 1 independent study kept, too few",
        rules_text(poor),
    )


def test_a_round_without_abstracts_has_no_shares() -> None:
    (found,) = screening([]).rounds
    assert votes_text(found) == ":green[**0** keep], :orange[**0** need more], :red[**0** discard]"
    assert "Quality: nothing kept" in rules_text(found)


@pytest.mark.spec("AESOP-FLOW")
def test_the_flow_adds_up_and_names_exclusion_reasons() -> None:
    flow = Flow(
        identified=30,
        duplicates=6,
        screened=24,
        excluded=(Exclusion(rule="off_topic", label="about something else", count=9),),
        undecided=5,
        unscored=2,
        kept=10,
    )
    assert flow_frame(flow).values.tolist() == [
        ["Identified", "**30**", "Duplicates removed (6)"],
        ["Screened", "**24**", "Excluded (9) · 9 about something else"],
        [
            "Not excluded",
            "**15**",
            "Undecided (5) · 3 need more evidence · 2 couldn\\'t be graded",
        ],
        ["Kept", "**10**", ""],
    ]


def test_the_table_can_be_filtered_and_sorted() -> None:
    good, fair = grade("good"), grade("fair", relevance=0.7, size=900)
    poor, none = (
        grade("poor", "discard", relevance=0.1),
        grade("none", "needs_more", relevance=None, size=None),
    )
    shown = screening([none, poor, fair, good])
    assert [grade.abstract_id for grade in select_grades(shown, (), "quality")] == [
        "good",
        "fair",
        "poor",
        "none",
    ]
    assert select_grades(shown, (), "size")[0].abstract_id == "fair"
    assert select_grades(shown, (), "found")[0].abstract_id == "none"
    assert [
        grade.abstract_id for grade in select_grades(shown, ("discard", "needs_more"), "quality")
    ] == [
        "poor",
        "none",
    ]
    assert count_recommendations(shown) == {"keep": 2, "discard": 1, "needs_more": 1}


def test_a_row_works_without_a_record() -> None:
    shown = screening([grade()])
    row: Any = abstract_row(shown, shown.grades[0], ABSTRACT, opened="a1")
    title, _, study, *_ = row["cells"]
    assert title["text"] == ABSTRACT.title
    assert title["below"] == ["A B, C D, E F et al.  ·  Demo Journal  ·  2019  ·  round 0"]
    assert study["below"] == ["412 patients"]
    assert row["marked"]
    assert "screening=s1" in title["href"]
    unknown: Any = abstract_row(shown, shown.grades[0], None)
    assert unknown["cells"][0]["text"] == "a1"


def test_marked_pieces_match_the_reasons_and_add_up_to_the_text() -> None:
    start = TEXT.index("412")
    reasons: dict[OverrideField, GradeReason] = {
        "study_type": GradeReason(
            text="It says so.", words=(AbstractWords(start=3, end=13, text="randomised"),)
        ),
        "sample_size_adequate": GradeReason(
            text="412 are enough.",
            words=(AbstractWords(start=start, end=start + 12, text="412 patients"),),
        ),
        "relevance_score": GradeReason(
            text="Meets velotarine.",
            words=(
                AbstractWords(start=0, end=10, text="Velotarine", place="title"),
                AbstractWords(start=9, end=20, text=""),
            ),
        ),
    }
    data = abstract_data(grade(reasons=reasons), ABSTRACT)
    assert "".join(piece["text"] for piece in data["text"]) == TEXT
    assert data["title"][0] == {"text": "Velotarine", "fields": ["relevance_score"]}
    both = [
        piece for piece in data["text"] if {"study_type", "relevance_score"} <= set(piece["fields"])
    ]
    assert [piece["text"] for piece in both] == [TEXT[9:13]]
    whole = "".join(
        piece["text"] for piece in data["text"] if "sample_size_adequate" in piece["fields"]
    )
    assert whole == "412 patients"


def test_offsets_past_the_end_are_clipped() -> None:
    data = abstract_data(
        grade(
            reasons={
                "relevance_score": GradeReason(
                    text="", words=(AbstractWords(start=60, end=999, text=""),)
                )
            }
        ),
        ABSTRACT,
    )
    assert data["text"][-1] == {"text": TEXT[60:], "fields": ["relevance_score"]}
    assert pieces("", []) == []


def test_a_floor_that_raised_the_score_is_shown() -> None:
    notes = {score["name"]: score["note"] for score in abstract_data(grade(), ABSTRACT)["scores"]}
    assert (
        notes["Methodology"]
        == "0.50 as reported, raised to the floor 0.65 of a randomized controlled trial"
    )


def test_an_override_shows_its_reviewer_and_the_original_grade() -> None:
    machine = grade(recommendation="discard")
    override = Override(
        abstract_id="a1",
        field="recommendation",
        value="keep",
        reason="The dose is the one we use.",
        reviewer="Ada Lind",
        at="2026-01-01T00:00:00Z",
    )
    data = abstract_data(grade(), ABSTRACT, machine=machine, overrides={"recommendation": override})
    row = next(reason for reason in data["reasons"] if reason["field"] == "recommendation")
    assert row["value"] == "keep"
    assert row["why"] == "Ada Lind: The dose is the one we use."
    assert row["machine"] == "the critic graded discard"


@pytest.mark.spec("AESOP-ENSEMBLE")
def test_a_corrected_field_shows_the_original_grade() -> None:
    machine = screen_abstracts("Does aspirin relieve headache?", [TRIAL]).grades[0]
    override = Override(
        abstract_id=machine.abstract_id,
        field="blinding",
        value="stated",
        reason="Read.",
        reviewer="Ada",
        at="now",
    )
    now = apply_overrides(machine, {"blinding": override}, abstract=TRIAL)
    data = abstract_data(now, TRIAL, machine=machine, overrides={"blinding": override})
    shown = {reason["field"]: reason["machine"] for reason in data["reasons"]}
    assert shown["methodology_score"] == f"the critic graded {machine.methodology_score:.2f}"
    assert shown["relevance_score"] == ""


TRIAL = Abstract(
    id="t",
    title="Aspirin for headache: a randomised controlled trial",
    text=(
        "We randomly assigned 300 adults with headache to aspirin or placebo. The primary outcome"
        " was relief, analysed by regression. The odds ratio was 2.1 (95% CI 1.4 to 3.0)."
        " NCT01234567."
    ),
)


def test_each_graders_result_is_shown_with_the_combined_grade() -> None:
    said = [
        Opinion(
            judged_by=JudgedBy(model=model, version="1"),
            relevance_score=0.9,
            methodology_score=0.7,
            study_type="human_rct_drug_intervention",
            recommendation=recommendation,
        )
        for model, recommendation in (("offline", "keep"), ("openai:gpt-4o", "discard"))
    ]
    several = grade().model_copy(update={"opinions": tuple(said), "agreement": 0.0})
    data = abstract_data(several, ABSTRACT)
    assert [(row["by"], row["recommendation"]["text"]) for row in data["opinions"]] == [
        ("offline", "keep"),
        ("openai:gpt-4o", "discard"),
    ]
    assert "2 graders agree on 0% of 1 abstract" in agreement_words((several,))
    assert agreement_words((grade(),)) == ""


def test_an_unscored_abstract_says_why_and_shows_no_number() -> None:
    data = abstract_data(
        grade(
            recommendation="needs_more", relevance=None, unscored=Unscored(reason="It has no text.")
        ),
        ABSTRACT,
    )
    assert data["unscored"] == "It has no text."
    assert next(score for score in data["scores"] if score["name"] == "Quality")["value"] is None
    assert (
        next(reason for reason in data["reasons"] if reason["field"] == "relevance_score")["value"]
        == "unscored"
    )


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("recommendation", "needs_more", "needs more"),
        ("relevance_score", 0.5, "0.50"),
        ("sample_size_adequate", False, "too small"),
        ("sample_size_adequate", None, "not reported"),
        ("study_type", "in_vitro_study", "in vitro study"),
        ("design", "cohort_study", "cohort study"),
    ],
)
def test_values_are_shown_as_words(field: GradeField, value: object, words: str) -> None:
    assert value_text(field, value) == words


@pytest.mark.spec("AESOP-CHART")
def test_the_chart_compares_averages_with_the_requirement_and_skips_unknown_values() -> None:
    shown = screening([grade("x", "discard")], [grade("y")])
    rows = convergence_rows(shown.rounds, shown.thresholds)
    assert [row["value"] for row in rows if row["what"] == REQUIRED] == [0.7, 0.65]
    assert [row["round"] for row in rows if row["what"] == AVERAGE] == [1]


def test_findings_are_rows_with_sentence_direction_and_a_link() -> None:
    abstract = Abstract(
        id="f1",
        title="Aspirin for <b>headache</b>",
        text="RESULTS: 40 of 80 were free of pain. CONCLUSIONS: Aspirin\n   relieved headache.",
        authors=("Doe, Jane",),
        year=2019,
    )
    screening = screen_abstracts("Does aspirin relieve headache?", [abstract])
    kept = screening.grades[0].model_copy(update={"recommendation": "keep"})
    screening = screening.model_copy(update={"grades": (kept,), "kept": ("f1",)})
    held = {"f1": abstract}
    found = synthesise(screening.question, screening.grades, held)
    opened = OpenedScreening(screening, screening, (), held, None, found)  # type: ignore[arg-type]
    shown = finding_row(opened, found.findings[0])
    assert study_name(abstract) == "Doe 2019: Aspirin for <b>headache</b>"
    assert "'quote': 'Aspirin relieved headache.'" in str(shown), (
        "on one line, whatever breaks its record has"
    )
    assert "effect as asked" in str(shown)
    assert "abstract=f1" in str(shown)
    assert [row["studies"] for row in direction_rows(opened)] == [1]
