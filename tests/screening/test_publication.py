"""Records that don't count as studies, recognized by publication type, title, or a separate
about them.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import masis
from masis.observers.observation import run_to_completion
from masis.schema.screening import Abstract, Screening
from masis.screening.grading.offline_grader import offline_grader
from masis.screening.readers import read_abstracts
from masis.screening.rounds.round_loop import screen
from masis.screening.sources.pool import AbstractPool
from masis.screening.sources.publication import publication_of
from masis.screening.sources.retrievers import InMemoryRetriever
from masis.screening.store import ScreeningStore
from masis.settings import Settings
from masis.store import Store
from tests.screening.scripted import ScriptedSource, table

QUESTION = "Does aspirin relieve migraine in adults?"
TITLE = "Aspirin for migraine in adults: a randomised trial"
TRIAL = (
    "412 adults with migraine were randomly assigned to aspirin or placebo. Patients and assessors"
    " were blinded. The primary outcome was pain at 2 hours (odds ratio 2.1, 95% CI 1.5 to 2.9;"
    " p<0.001)."
)


def abstract_of(title: str = TITLE, text: str = TRIAL, **fields: object) -> Abstract:
    return Abstract.model_validate({"id": "a", "title": title, "text": text, **fields})


def pubmed_record(kind: str, links: str = "") -> str:
    return (
        "<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>7</PMID><Article>"
        f"<ArticleTitle>{TITLE}</ArticleTitle>"
        f"<Abstract><AbstractText>{TRIAL.replace('<', '&lt;')}</AbstractText></Abstract>"
        "<PublicationTypeList><PublicationType>Journal"
        f" Article</PublicationType>{kind}</PublicationTypeList></Article>"
        f"<CommentsCorrectionsList>{links}</CommentsCorrectionsList>"
        "</MedlineCitation></PubmedArticle></PubmedArticleSet>"
    )


def link(kind: str) -> str:
    return (
        "<CommentsCorrections"
        f' RefType="{kind}"><RefSource>J</RefSource><PMID>8</PMID></CommentsCorrections>'
    )


MEDLINE = f"PMID- 7\nTI  - {TITLE}\nAB  - {TRIAL}\n"
RIS = f"TY  - JOUR\nTI  - {TITLE}\nAB  - {TRIAL}\n"
CSV = f'Title,Abstract,{{}}\n"{TITLE}","{TRIAL}",{{}}\n'


@pytest.mark.spec("AESOP-WEAK-REJECTED")
@pytest.mark.parametrize(
    ("record", "status"),
    [
        (pubmed_record("<PublicationType>Retracted Publication</PublicationType>"), "retracted"),
        (pubmed_record("<PublicationType>Retraction of Publication</PublicationType>"), "retraction_notice"),
        (pubmed_record("<PublicationType>Retraction Notice</PublicationType>"), "retraction_notice"),
        (pubmed_record("<PublicationType>Published Erratum</PublicationType>"), "erratum"),
        (pubmed_record("<PublicationType>Expression of Concern</PublicationType>"), "expression_of_concern"),
        (pubmed_record("<PublicationType>Clinical Trial Protocol</PublicationType>"), "protocol"),
        (pubmed_record("<PublicationType>Comment</PublicationType>"), "comment"),
        (pubmed_record("", link("RetractionIn")), "retracted"),
        (pubmed_record("", link("ExpressionOfConcernIn")), "of_concern"),
        (pubmed_record("", link("ErratumIn")), None),
        (pubmed_record("<PublicationType>Randomized Controlled Trial</PublicationType>"), None),
        (f"{MEDLINE}PT  - Journal Article\nPT  - Retracted Publication\n", "retracted"),
        (f"{MEDLINE}RIN - J Pain. 2011 May;3(2):7. PMID: 8\n", "retracted"),
        (f"{MEDLINE}ECI - J Pain. 2011 May;3(2):7. doi: 10.1000/x.8\n", "of_concern"),
        (f"{MEDLINE}PT  - Published Erratum\n", "erratum"),
        (f"{MEDLINE}PT  - Clinical Trial Protocol\n", "protocol"),
        (f"{MEDLINE}EIN - J Pain. 2011;3:7\n", None),
        (f"{RIS}M3  - Retracted Publication\nER  - \n", "retracted"),
        (f"{RIS}M3  - Article; Retracted Publication\nER  - \n", "retracted"),
        (f"{RIS}M3  - Erratum\nER  - \n", "erratum"),
        (f"{RIS}M3  - Editorial Material\nER  - \n", "comment"),
        (f"{RIS}M3  - Article\nER  - \n", None),
        (f"{RIS.replace('JOUR', 'NEWS')}ER  - \n", "comment"),
        (f"@article{{a, title={{{TITLE}}}, abstract={{{TRIAL}}}, type={{Retracted Publication}}}}", "retracted"),
        (CSV.format("Document Type", "Retracted"), "retracted"),
        (CSV.format("Publication Type", "Article; Retracted Publication"), "retracted"),
        (CSV.format("Document Type", "Erratum"), "erratum"),
        (CSV.format("Document Type", "Article"), None),
        (CSV.format("is_retracted", "True"), "retracted"),
        ('{"title": "Aspirin", "text": "A trial.", "publication_types": ["Retracted Publication"]}', "retracted"),
        ('{"title": "Aspirin", "text": "A trial.", "type": "retraction"}', "retraction_notice"),
        ('{"title": "Aspirin", "text": "A trial.", "is_retracted": true}', "retracted"),
        ('{"title": "Aspirin", "text": "A trial.", "type": "article"}', None),
    ],
)  # fmt: skip
def test_the_publication_type_of_the_record_is_read_in_every_format(
    record: str, status: str | None
) -> None:
    (abstract,) = read_abstracts(io.BytesIO(record.encode()))
    assert isinstance(abstract, Abstract), abstract
    publication = publication_of(abstract)
    assert (publication and publication.status) == status


@pytest.mark.parametrize(("status", "title"), table("titles"))
def test_a_publication_status_is_read_from_the_title(status: str, title: str) -> None:
    publication = publication_of(abstract_of(title))
    assert (publication.status if publication else "a study") == status
    for words in publication.words if publication else ():
        assert title[words.start : words.end] == words.text


@pytest.mark.parametrize(
    ("title", "text", "status"),
    [
        ("Protocol for a randomised trial of aspirin", "The outcome is pain.", "protocol"),
        (
            "Protocol for aspirin in migraine",
            "Adults will be enrolled. Pain will be measured.",
            "protocol",
        ),
        ("Aspirin in migraine: a protocol", "We will randomise 400 adults.", "protocol"),
        (
            "Aspirin in migraine (ASPIRE): study protocol for a randomised trial",
            "Background. Methods.",
            "protocol",
        ),
        ("Protocol for aspirin in migraine shortens attacks", TRIAL, None),
        ("A weaning protocol for ventilated adults: a randomised trial", TRIAL, None),
        (
            "Effects of a new fasting protocol",
            "Recovery was faster (3.1 vs 4.2 days, p = 0.02).",
            None,
        ),
        (
            "Aspirin for migraine",
            f"{TRIAL} A further trial will be conducted, and costs will be compared.",
            None,
        ),
    ],
)
def test_a_protocol_is_recognized_only_without_results(
    title: str, text: str, status: str | None
) -> None:
    publication = publication_of(abstract_of(title, text))
    assert (publication and publication.status) == status


@pytest.mark.spec("AESOP-WEAK-REJECTED")
@pytest.mark.parametrize(
    "record",
    [
        abstract_of(publication_types=["Retracted Publication"]),
        abstract_of(f"Erratum to: {TITLE}"),
        abstract_of(f"RETRACTED: {TITLE}", ""),
        abstract_of(
            "Aspirin for migraine",
            f"{TRIAL} This article has been retracted at the request of the editor.",
        ),
        abstract_of("Aspirin for migraine: study protocol", "400 adults will be randomised."),
        abstract_of(
            "[Retracted] Aspirin bei Migräne",
            "Eine Studie mit 400 Erwachsenen zeigte eine Wirkung bei Kopfschmerz.",
        ),
    ],
    ids=["retracted", "erratum", "title only", "text", "protocol", "another language"],
)
def test_a_notice_is_excluded_with_its_reason_and_doesnt_vote(record: Abstract) -> None:
    screening = masis.screen_abstracts(QUESTION, [record])
    (grade,) = screening.grades
    assert (grade.recommendation, grade.rule, grade.unscored) == ("discard", "not_a_study", None)
    assert screening.rounds[0].ruling.tally.votes == 0
    (excluded,) = screening.flow.excluded
    assert excluded.label in ("retracted study", "erratum", "protocol without results")


def test_a_study_with_an_expression_of_concern_needs_more_and_doesnt_vote() -> None:
    screening = masis.screen_abstracts(
        QUESTION, [abstract_of(publication_types=["Expression of Concern Published"])]
    )
    assert (screening.grades[0].recommendation, screening.grades[0].rule) == (
        "needs_more",
        "of_concern",
    )
    assert screening.rounds[0].ruling.tally.votes == 0


STUDY = Abstract(id="pmid-7", title=TITLE, text=TRIAL, pmid="7", doi="10.1000/a.7", year=2009)
NOTICE = Abstract(
    id="pmid-8", title=f"Retraction: {TITLE}", text="", pmid="8", doi="10.1000/a.8", year=2011
)
ERRATUM = Abstract(
    id="pmid-9", title="Erratum", publication_types=("Published Erratum",), notice_about=("7",)
)


def run_screening(*answers: tuple[Abstract, ...]) -> Screening:
    steps = screen(
        QUESTION,
        [ScriptedSource(*answers)],
        offline_grader(),
        Settings(screening_least_rounds=len(answers)),
        screening_id="s",
    )
    return run_to_completion(steps)


@pytest.mark.spec("AESOP-FLOW")
@pytest.mark.parametrize(
    "answers",
    [((STUDY, NOTICE),), ((NOTICE, STUDY),), ((STUDY,), (NOTICE,)), ((NOTICE,), (STUDY,))],
    ids=["after it", "before it", "in a later round", "in an earlier round"],
)
def test_a_study_and_its_retraction_notice_are_one_excluded_record(
    answers: tuple[tuple[Abstract, ...], ...],
) -> None:
    screening = run_screening(*answers)
    assert [(grade.abstract_id, grade.rule, grade.publication) for grade in screening.grades] == [
        ("pmid-7", "not_a_study", "retracted")
    ]
    assert (
        screening.flow.identified,
        screening.flow.duplicates,
        screening.flow.screened,
        screening.kept,
    ) == (
        2,
        1,
        1,
        (),
    )


def test_a_study_and_its_erratum_are_one_kept_record() -> None:
    screening = run_screening((ERRATUM, STUDY))
    assert (screening.kept, screening.flow.duplicates) == (("pmid-7",), 1)


def test_a_retraction_in_one_database_applies_in_either_order() -> None:
    marked_retracted = STUDY.model_copy(
        update={"id": "wos", "publication_types": ("Retracted Publication",)}
    )
    for records in ((STUDY, marked_retracted), (marked_retracted, STUDY)):
        pool = AbstractPool()
        for record in records:
            pool.add(record)
        (merged,) = pool.by_id.values()
        publication = publication_of(merged)
        assert publication.status == "retracted"


@pytest.mark.parametrize(
    "records", [(STUDY, NOTICE), (NOTICE, STUDY)], ids=["study first", "notice first"]
)
def test_a_retracted_study_is_marked_even_if_its_notice_isnt_a_hit(
    records: tuple[Abstract, ...], tmp_path: Path
) -> None:
    with Store.open(tmp_path / "c.db") as store:
        ScreeningStore(store).corpora.add_many("c", records, source="f")
        for source in (InMemoryRetriever(records), ScreeningStore(store).corpora.retriever("c")):
            results = source.search("aspirin migraine adults", 5)
            hits = [abstract for abstract in results if abstract.id == STUDY.id]
            publication = publication_of(hits[0])
            assert publication.status == "retracted"
