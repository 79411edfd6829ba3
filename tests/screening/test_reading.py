"""Facts read from an abstract without a model: its subject, design, methodology and sample
size.
"""

from __future__ import annotations

import pytest

from masis.schema.screening import (
    Abstract,
    AbstractWords,
    Design,
    GradeReason,
    SampleSize,
    StudyType,
)
from masis.screening.grading.grader import size_adequacy
from masis.screening.grading.hierarchy import designs_asked_about, place_design
from masis.screening.grading.methodology import CEILING, CHECKLIST, LABELS, appraise, methodology
from masis.screening.grading.question import read_question
from masis.screening.grading.relevance import relevance
from masis.screening.grading.wording import Wording
from tests.screening.scripted import table

QUESTION = "Does metformin reduce mortality in patients with heart failure?"


def abstract_of(text: str, title: str = "") -> Abstract:
    return Abstract(id="a", title=title, text=text)


def parts(question: str) -> list[tuple[str, str]]:
    return [(concept.name, concept.part) for concept in read_question(question).concepts]


def quoted_words(reason: GradeReason, abstract: Abstract) -> list[str]:
    for words in reason.words:
        source = abstract.title if words.place == "title" else abstract.text
        assert source[words.start : words.end] == words.text
    return [words.text for words in reason.words]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            QUESTION,
            [
                ("metformin", "intervention"),
                ("mortality", "outcome"),
                ("heart failure", "population"),
            ],
        ),
        (
            "What is the effect of exercise on low back pain?",
            [("exercise", "intervention"), ("low back pain", "outcome")],
        ),
        (
            "Cognitive behavioural therapy versus sertraline in adolescents with depression",
            [
                ("Cognitive behavioural therapy", "intervention"),
                ("sertraline", "comparison"),
                ("adolescents", "population"),
                ("depression", "population"),
            ],
        ),
        (
            "Is the infection rate lower in rats?",
            [("infection", "intervention"), ("rats", "population")],
        ),
        ("Does it work?", [("work", "intervention")]),
        ("???", []),
    ],
)
def test_a_question_is_parsed_into_concepts(question: str, expected: list[tuple[str, str]]) -> None:
    assert parts(question) == expected


def score(text: str, title: str = "", question: str = QUESTION) -> float:
    value = relevance(read_question(question), abstract_of(text, title)).score
    assert value is not None
    return value


@pytest.mark.spec("AESOP-GRADING")
def test_an_abstract_that_matches_the_whole_question_is_relevant_and_shows_the_words() -> None:
    abstract = abstract_of(
        "We followed people with heart failure given metformin. Metformin lowered mortality."
        " Mortality was 3%.",
        "Metformin in heart failure",
    )
    result = relevance(read_question(QUESTION), abstract)
    assert result.score == pytest.approx(1.0)
    assert {"Metformin", "heart failure", "mortality"} <= set(quoted_words(result.reason, abstract))
    assert result.reason.text.startswith("Met: metformin (intervention)")


def test_a_missing_concept_outweighs_the_matching_ones() -> None:
    complete = score(
        "Metformin and mortality in heart failure. Metformin in heart failure: mortality."
    )
    without_drug = score(
        "Ramipril and mortality in heart failure. Mortality in heart failure fell."
    )
    without_people = score("Metformin and mortality in diabetes. Metformin lowers mortality.")
    unrelated = score("Knee surgery in athletes and its complications.")
    assert unrelated == 0.0
    assert unrelated < without_drug < 0.5 < complete
    assert unrelated < without_people < 0.6 < complete


def test_synonyms_match_the_question() -> None:
    assert (
        score("Metformin and death in congestive cardiac failure. Deaths on metformin were fewer.")
        > 0.6
    )
    question = "Do statins prevent heart attack in the elderly?"
    assert score("Atorvastatin and myocardial infarction in older adults.", question=question) > 0.6


def test_a_specific_drug_matches_its_class_but_not_the_reverse() -> None:
    assert score("Statins in adults. Statins work.", question="Does atorvastatin work?") < 0.3


def test_a_passing_mention_counts_less_than_the_subject_of_the_study() -> None:
    mention = "We studied knees. Metformin was mentioned once."
    subject = "We studied metformin. Metformin was given daily."
    assert score(mention, question="metformin") < score(subject, question="metformin") == 1.0


def test_words_of_a_concept_count_less_if_far_apart() -> None:
    question = "Does yellow bark help?"
    filler = (
        "and many other things were said about quite different matters in between these two words "
    )
    together = "A tea of yellow, dried bark. Yellow dried bark."
    apart = f"Yellow paint, {filler}, and bark. Bark {filler} and yellow."
    assert score(apart, question=question) == pytest.approx((0.8 - 0.12) / 0.88, abs=1e-4)
    assert score(together, question=question) == 1.0


def test_partial_concepts_and_related_words_count_partially() -> None:
    partial = score("Yellow paint was used.", question="Does yellow bark help?")
    assert partial == pytest.approx((0.5 * 0.8 * 0.85 - 0.12) / 0.88, abs=1e-4)
    related = score("Hepatobiliary surgery was done.", question="hepatotoxicity")
    assert related == pytest.approx((0.5 - 0.12) / 0.88, abs=1e-4)


def test_an_empty_abstract_or_question_is_unscored() -> None:
    assert relevance(read_question(QUESTION), abstract_of("")).score is None
    assert relevance(read_question("?"), abstract_of("Metformin.")).score is None


@pytest.mark.spec("AESOP-PRIORS")
@pytest.mark.parametrize(("design", "study_type", "title", "text"), table("designs"))
def test_wording_places_a_study_type_in_the_hierarchy(
    design: str, study_type: StudyType, title: str, text: str
) -> None:
    assert (
        place_design(study_type, abstract_of(text, "" if title == "-" else title)).design == design
    )


def test_people_bitten_by_rats_are_people() -> None:
    text = "Patients were bitten by 12 rats. Patients were randomised to a vaccine."
    assert place_design("remaining", abstract_of(text, "Wounds")).design == "randomised_trial"


def test_a_question_about_animals_or_cells_is_recognized() -> None:
    assert designs_asked_about("Does X shrink tumours in mice?") == {"animal_study"}
    assert designs_asked_about("Does X kill cell lines in vitro?") == {"in_vitro_study"}
    assert designs_asked_about(QUESTION) == frozenset()


FULL = abstract_of(
    "We randomly assigned 412 adults (1:1, computer-generated sequence) to aspirin or placebo."
    " Participants and assessors were blinded. The primary outcome was pain at 2 weeks, analysed by"
    " intention to treat. Mean difference -1.2 (95% CI -1.6 to -0.8; p<0.001). Adverse events were"
    " few. NCT01234567."
)
SPARSE = abstract_of(
    "Aspirin was given to people who were randomly assigned to it. They felt better."
)


@pytest.mark.spec("AESOP-GRADING", "AESOP-METHODOLOGY")
def test_a_trial_reporting_bias_safeguards_scores_high_and_shows_the_words() -> None:
    full, sparse = methodology(FULL, "randomised_trial"), methodology(SPARSE, "randomised_trial")
    assert full.score == pytest.approx(0.95)
    assert sparse.score < 0.3
    words = quoted_words(full.reason, FULL)
    assert {
        "randomly assigned",
        "blinded",
        "placebo",
        "primary outcome",
        "95% CI",
        "NCT01234567",
    } <= set(words)
    assert "blinded" in sparse.reason.text.partition("Not reported:")[2]


def reported_measures(text: str, design: Design) -> set[str]:
    return {item.item for item in appraise(abstract_of(text), design) if item.state == "stated"}


@pytest.mark.spec("AESOP-METHODOLOGY")
@pytest.mark.parametrize(("item", "stated", "text"), table("method_words"))
def test_a_method_word_earns_points_only_if_stated_as_done(
    item: str, stated: str, text: str
) -> None:
    designs: tuple[Design, ...] = ("randomised_trial", "cohort_study", "systematic_review")
    design = next(design for design in designs if item in CHECKLIST[design])
    assert (item in reported_measures(text, design)) is (stated == "stated")


def test_a_nonsignificant_result_is_still_reported() -> None:
    text = "The primary outcome was not different. Adverse events were not rare."
    assert {"outcome", "harms"} <= reported_measures(text, "randomised_trial")


@pytest.mark.spec("AESOP-SERIES")
def test_good_reporting_never_keeps_a_case_series() -> None:
    assert methodology(FULL, "case_series").score <= CEILING["case_series"] < 0.45


def test_every_checklist_item_has_a_label() -> None:
    assert {item for checklist in CHECKLIST.values() for item in checklist} == set(LABELS)


def test_a_title_alone_has_no_methodology() -> None:
    assert methodology(abstract_of("", "A randomised trial"), "randomised_trial").score is None


def size(value: int, kind: str = "total", unit: str = "patients") -> SampleSize:
    return SampleSize(value=value, unit=unit, kind=kind, start=0, end=1)


SIZES: tuple[tuple[Design | None, tuple[SampleSize, ...], int | None, bool | None], ...] = (
    ("randomised_trial", (size(52),), 0, True),
    ("randomised_trial", (size(51),), 0, False),
    ("randomised_trial", (size(26, "arm"),), 0, True),
    ("randomised_trial", (size(25, "arm"),), 0, False),
    ("randomised_trial", (), None, None),
    ("cohort_study", (size(51),), 0, False),
    ("cohort_study", (size(52),), 0, True),
    ("meta_analysis", (size(5, unit="studies"), size(90)), 1, True),
    ("meta_analysis", (size(4, unit="randomised trials"), size(9000)), 0, True),
    ("meta_analysis", (size(4, unit="randomised trials"), size(399)), 0, False),
    ("meta_analysis", (size(4, unit="randomised trials"),), 0, False),
    ("meta_analysis", (size(2, unit="studies"), size(21, unit="studies")), 1, True),
    ("systematic_review", (size(400),), 0, True),
    ("systematic_review", (size(399),), 0, False),
    ("case_report", (size(1),), 0, None),
    ("narrative_review", (), None, None),
    ("animal_study", (size(12, unit="rats"),), 0, True),
    (None, (size(1000),), 0, None),
)


@pytest.mark.spec("AESOP-SIZE")
@pytest.mark.parametrize(("design", "sizes", "main", "expected"), SIZES)
def test_adequate_size_depends_on_the_design(
    design: Design | None, sizes: tuple[SampleSize, ...], main: int | None, expected: bool | None
) -> None:
    adequacy = size_adequacy(
        abstract_of("412 patients"), design, sizes, None if main is None else sizes[main]
    )
    assert adequacy.value is expected
    assert adequacy.reason.text


@pytest.mark.parametrize(
    ("text", "sizes", "expected"),
    [
        ("A double-blind crossover trial.", (size(15),), True),
        ("A randomised cross-over study.", (size(14),), False),
        ("Patients served as their own controls.", (size(15),), True),
        ("A cluster-randomised trial.", (size(8, unit="practices"), size(90)), True),
        ("A cluster randomized trial.", (size(7, unit="practices"), size(4000)), False),
        ("Schools were randomly assigned.", (size(104),), True),
        ("A stepped-wedge trial.", (size(103),), False),
        ("A trial in two parallel groups.", (size(51),), False),
    ],
)
def test_crossover_and_cluster_trials_have_sizes_of_their_own(
    text: str, sizes: tuple[SampleSize, ...], expected: bool
) -> None:
    adequacy = size_adequacy(abstract_of(text), "randomised_trial", sizes, sizes[-1])
    assert adequacy.value is expected
    assert size_adequacy(abstract_of(text), "cohort_study", sizes, size(52)).value is True


def test_a_letter_that_lengthens_in_lowercase_shifts_no_offsets() -> None:
    text = "İİİ Patients were Randomly Assigned to NCT01234567."
    assert (
        text[slice(*(Wording(r"\brandomly assigned\b").search(text) or (0, 0)))]
        == "Randomly Assigned"
    )
    assert text[slice(*(Wording(r"\bNCT ?\d{6,8}\b").search(text) or (0, 0)))] == "NCT01234567"
    assert Wording(r"\bNCT ?\d{6,8}\b").search("nct0123456") == (0, 10)


def test_a_wording_after_a_negated_one_is_matched() -> None:
    text = "not blinded in phase one; later blinded"
    assert Wording(r"\bblinded\b").search(text) == (text.rindex("blinded"), len(text))
    assert AbstractWords(start=0, end=1, text="n").place == "text"
