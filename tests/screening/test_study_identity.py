"""Reports of one study are recognized, so that a trial in two papers counts once."""

from __future__ import annotations

import pytest

from masis.schema.screening import Abstract, Grade, SampleSize
from masis.screening.critic import screen_abstracts
from masis.screening.grading.study_identity import first_reports, registrations_of, reports_by_study
from masis.screening.synthesis.findings import synthesise
from tests.screening.test_findings import QUESTION, trial

SIZE = SampleSize(value=240, unit="adults", kind="total", start=0, end=1)


def marks(title: str = "A trial", text: str = "", *authors: str, **extra: object) -> set[str]:
    record = Abstract(id="a", title=title, text=text, authors=authors, **extra)
    return set(registrations_of(record, SIZE))


@pytest.mark.parametrize(
    ("title", "text", "mark"),
    [
        ("A trial", "Registered as NCT 01234567.", "NCT01234567"),
        ("Ramipril in the elderly: the HOPE study", "", "HOPE study"),
        ("Nitrendipine in the Syst-Eur trial", "", "SYST-EUR study"),
        ("The Survival and Ventricular Enlargement trial (SAVE)", "", "SAVE study"),
        ("The Heart Outcomes Prevention Evaluation (HOPE) study", "", "HOPE study"),
        (
            "Ramipril in the elderly: the HOPE study",
            "The Heart Outcomes Prevention Evaluation Study compared ramipril with placebo.",
            "HOPE study",
        ),
        ("Late effects", "This is a ten-year follow-up of the HOPE trial.", "HOPE study"),
        ("Late effects", "A secondary analysis of participants in the HOPE trial.", "HOPE study"),
    ],
)
def test_a_registry_number_or_a_name_marks_a_study(title: str, text: str, mark: str) -> None:
    assert mark in marks(title, text)


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("A trial", "Unlike the HOPE study, we found no effect."),
        ("A PCR study of bacteria", ""),
        ("A cohort study", "Follow-up of the patients was complete."),
    ],
)
def test_another_trial_in_the_text_is_no_mark(title: str, text: str) -> None:
    assert marks(title, text) == set()


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Remdesivir for adults with coronavirus disease 2019 (COVID-19)", ""),
        ("Peppermint oil in irritable bowel syndrome (IBS)", ""),
        ("Metformin in type 2 diabetes mellitus (T2DM)", ""),
        ("Off-pump coronary artery bypass grafting (CABG)", ""),
        ("Screening by low-dose computed tomography (LDCT)", ""),
        ("Prazosin in posttraumatic stress disorder (PTSD).", ""),
        ("Survival after infarction (SAVE)", ""),
        ("A COVID-19 study of remdesivir", ""),
        ("A PTSD trial", ""),
        ("Prazosin: a pilot trial (PTSD)", ""),
        ("Yoga for back pain: a PILOT study", ""),
        ("An LRBP trial of yoga in low-risk back pain", ""),
        ("An LRBP study of yoga", "Adults with low-risk back pain took part."),
        ("A DOK study", "Yoga for degeneration of the knee."),
        ("The LRBP trial", "LRBP (Low-Risk Back Pain) was common."),
    ],
)
def test_an_abbreviation_that_is_not_a_name_marks_no_study(title: str, text: str) -> None:
    assert marks(title, text) == set()


def test_the_record_of_a_database_gives_registry_numbers() -> None:
    listed = {"registrations": ["ClinicalTrials.gov/NCT01234567"]}
    assert marks(record=listed) == {"NCT01234567"}


def test_the_same_three_authors_and_size_mark_a_study() -> None:
    first = marks("A trial", "", "Doe, Jane", "Lee, A", "Poe, B", "Roe, Max")
    assert first == {"Doe J, Lee A and Roe M, 240 adults"}
    assert first == marks("Later results", "", "Doe JA", "Lee A", "Roe M")
    assert first == marks("Later results", "", "Doe J. A.", "LEE A.", "Roe M-K")
    assert first == marks("Later results", "", "Jane A. Doe", "Ann Lee", "Max Roe")
    small = SIZE.model_copy(update={"value": 12})
    authors = ("Doe, Jane", "Lee, A", "Roe, Max")
    assert registrations_of(Abstract(id="a", authors=authors), small) == ()


@pytest.mark.parametrize(
    "authors",
    [
        ("Wang X", "Li J", "Zhang Y"),
        ("Wang L", "Chen H", "Zhang Y"),
        ("Wang L", "Li J", "Zhang H"),
        ("Wang, Xia", "Li, Jun", "Zhang, Yan"),
        ("Lei Wang", "Jun Li", "Hui Zhang"),
        ("Wang L", "Zhang Y"),
        ("Wang", "Li J", "Zhang Y"),
    ],
)
def test_frequent_surnames_and_the_same_size_mark_no_study(authors: tuple[str, ...]) -> None:
    assert marks("A trial", "", "Wang L", "Li J", "Zhang Y").isdisjoint(marks("A", "", *authors))


def test_authors_without_first_names_mark_no_study() -> None:
    assert marks("A trial", "", "Wang", "Li", "Zhang") == set()


def test_a_study_that_two_abstracts_report_counts_once_and_says_so() -> None:
    again = trial(2, "Velotarine reduced stroke in group 2.")
    again = again.model_copy(update={"text": again.text.replace("NCT99912342", "NCT99912341")})
    other = trial(3, "Velotarine reduced stroke in group 3.")
    abstracts = {
        abstract.id: abstract
        for abstract in (trial(1, "Velotarine reduced stroke in group 1."), again, other)
    }
    screening = screen_abstracts(QUESTION, list(abstracts.values()))
    synthesis = synthesise(QUESTION, screening.grades, abstracts)
    assert synthesis.counts["effect"] == 2
    assert [finding.repeats for finding in synthesis.findings] == [None, "t1", None]


def reports(*registrations: str) -> list[Grade]:
    grade = screen_abstracts(QUESTION, [trial(1, "")]).grades[0]
    return [
        grade.model_copy(
            update={"abstract_id": f"t{number}", "registrations": tuple(marks_text.split())}
        )
        for number, marks_text in enumerate(registrations, 1)
    ]


@pytest.mark.parametrize(
    ("registrations", "studies"),
    [
        (["A", "B", "A B"], 2),
        (["A B", "A", "B"], 2),
        (["A", "A B", "B"], 2),
        (["A B", "A one", "B two"], 2),
        (["A B C", "A", "B", "C"], 3),
        (["A B", "C D", "B C"], 2),
        (["B C", "A B", "C D"], 2),
        (["A B", "A B", "A B"], 1),
        (["A", "A B", "A C"], 1),
        (["", "", "A"], 3),
    ],
)
def test_a_report_of_several_studies_does_not_make_them_one(
    registrations: list[str], studies: int
) -> None:
    grades = reports(*registrations)
    assert len(reports_by_study(grades)) == studies
    assert len(set(first_reports(grades).values())) == studies


def test_the_first_report_of_a_study_is_the_first_in_order() -> None:
    found = first_reports(reports("A B", "C", "A", "B", "C"))
    assert found == {"t1": "t1", "t2": "t2", "t3": "t1", "t4": "t4", "t5": "t2"}


class CountedMark(str):
    """A mark that counts how often it is looked up."""

    lookups = 0

    def __hash__(self) -> int:
        CountedMark.lookups += 1
        return super().__hash__()


def test_grouping_reports_takes_linear_work() -> None:
    grade = reports("A")[0]

    def lookups_for(count: int) -> int:
        marks = [(CountedMark(f"N{at // 2}"), CountedMark(f"a{at}")) for at in range(count)]
        grades = [grade.model_copy(update={"registrations": pair}) for pair in marks]
        CountedMark.lookups = 0
        assert len(reports_by_study(grades)) == count // 2
        return CountedMark.lookups

    # Quadratic work would be 16 times as much for four times as many reports.
    assert lookups_for(400) < 6 * lookups_for(100)
