"""ASReview, Rayyan and Covidence read the labels that we write, and their decisions come back as overrides."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from masis.datasets.readers.abstracts import read_abstracts
from masis.datasets.readers.abstracts.decisions import decision_of
from masis.datasets.writers.screenings import write_screening_csv, write_screening_ris
from masis.schema.screening import Abstract
from masis.screening.critic import screen_abstracts
from masis.services import Workbench
from masis.services.access import Actor
from masis.settings import Settings
from masis.views.screening import RECOMMENDATIONS

QUESTION = "Does aspirin relieve migraine in adults?"
TEXT = (
    "We randomly assigned 412 adults with migraine to aspirin or placebo. Patients and assessors were blinded. The "
    "primary outcome was pain at 2 hours. Aspirin relieved migraine (odds ratio 2.1, 95% CI 1.5 to 2.9; p < 0.001)."
)
TRIAL = Abstract(id="t", title="Aspirin for migraine in adults: a randomised trial", text=TEXT, doi="10.1000/t")
AWAY = Abstract(id="w", title="Early walking after replacement of the knee", text="240 adults walked early.", pmid="7")
ACTOR = Actor(name="Ada")


def one(text: str) -> Abstract:
    (found,) = read_abstracts(io.BytesIO(text.encode()))
    assert isinstance(found, Abstract), found
    return found


@pytest.mark.parametrize(
    ("export", "expected"),
    [
        ("title,abstract,included\nAspirin,A trial.,1\n", ("keep", "ASReview", "")),
        ("title,abstract,asreview_label\nAspirin,A trial.,0\n", ("discard", "ASReview", "")),
        ("title,abstract,included\nAspirin,A trial.,\n", None),
        ("TY  - JOUR\nTI  - Aspirin\nN1  - ASReview_irrelevant\nER  - \n", ("discard", "ASReview", "")),
        ("TY  - JOUR\nTI  - Aspirin\nN1  - ASReview_not_seen\nER  - \n", None),
        ('key,title,notes\n1,Aspirin,"RAYYAN-INCLUSION: {""Ada""=>""Included""} | RAYYAN-LABELS: x"\n',
         ("keep", "Rayyan", "")),
        ('key,title,notes\n1,Aspirin,"RAYYAN-INCLUSION: {""Ada""=>""Excluded""} | RAYYAN-EXCLUSION-REASONS: animals"\n',
         ("discard", "Rayyan", "animals")),
        ('key,title,notes\n1,Aspirin,"RAYYAN-INCLUSION: {""Ada""=>""Included"", ""Ben""=>""Excluded""}"\n', None),
        ('key,title,notes\n1,Aspirin,"RAYYAN-INCLUSION: {""Ada""=>""Maybe""}"\n', ("needs_more", "Rayyan", "")),
        ("Title,Abstract,Notes,Covidence #\nAspirin,A trial.,Exclusion reason: Wrong population; ,#12\n",
         ("discard", "Covidence", "Wrong population")),
        ("Title,Abstract,Notes,Covidence #\nAspirin,A trial.,,#12\n", None),
    ],
)  # fmt: skip
def test_a_decision_is_read_from_the_export_of_each_tool(export: str, expected: tuple[str, str, str] | None) -> None:
    assert decision_of(one(export)) == expected


def test_what_is_written_carries_labels_that_the_tools_read() -> None:
    found = screen_abstracts(QUESTION, [TRIAL, AWAY])
    by_id, table, tags = {each.id: each for each in (TRIAL, AWAY)}, io.BytesIO(), io.BytesIO()
    write_screening_csv(found, by_id, table)
    rows = list(csv.DictReader(io.StringIO(table.getvalue().decode())))
    assert [(row["title"], row["abstract"], row["included"]) for row in rows] == [
        (TRIAL.title, TRIAL.text, "1"),
        (AWAY.title, AWAY.text, "0"),
    ]
    assert write_screening_ris(found, by_id, tags, RECOMMENDATIONS) == 2
    written = tags.getvalue().decode()
    assert "N1  - ASReview_relevant\r\n" in written
    assert 'N1  - RAYYAN-INCLUSION: {"MASIS"=>"Excluded"}\r\n' in written
    for each, kept in zip(read_abstracts(io.BytesIO(tags.getvalue())), ("keep", "discard"), strict=True):
        assert isinstance(each, Abstract)
        decided = decision_of(each)
        assert decided is not None
        assert decided.value == kept


def test_decisions_come_back_as_overrides_with_the_tool_as_their_reason(tmp_path: Path) -> None:
    workbench = Workbench.open(tmp_path / "masis.db", Settings())
    found = screen_abstracts(QUESTION, [TRIAL, AWAY])
    workbench.screenings.store_screening(ACTOR, found, [TRIAL, AWAY])
    export = (
        "title,doi,pubmed_id,notes\n"
        f'{TRIAL.title},https://doi.org/10.1000/T,,"RAYYAN-INCLUSION: {{""Ada""=>""Excluded""}}"\n'
        'Early walking,,7,"RAYYAN-INCLUSION: {""Ada""=>""Excluded""}"\n'
        'Nobody knows this one,,,"RAYYAN-INCLUSION: {""Ada""=>""Included""}"\n'
        "Nothing said,,,\n"
    )
    records = [each for each in read_abstracts(io.BytesIO(export.encode())) if isinstance(each, Abstract)]
    assert workbench.screenings.take_labels(ACTOR, found.id, records) == (1, 1, 1, 1)
    opened = workbench.screenings.open(found.id)
    assert opened.screening.kept == ()
    grade = opened.screening.grade("t")
    assert grade is not None
    assert (grade.rule, grade.reasons["recommendation"].text) == ("person", "Ada: Decided in Rayyan.")
    assert workbench.screenings.take_labels(ACTOR, found.id, [AWAY], every="keep").changed == 1
