"""``masis screen``: a file of abstracts in, a screening out, rounds told on the way."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from masis.schema.actor import Actor
from masis.schema.screening import Screening
from masis.screening.demo import CORPUS, demo_folder, demo_questions
from masis.services import Workbench
from masis.store import Store
from tests.cli.running import Masis

QUESTION = "Does velotarine lower blood pressure in adults with resistant hypertension?"
FILE = demo_folder() / "abstracts.jsonl"


@pytest.mark.spec("AESOP-STANDALONE")
def test_a_file_is_searched_and_graded_round_by_round_without_network_or_database(masis: Masis) -> None:
    result = masis("screen", FILE, "-q", QUESTION, "--retrieve", "10")
    assert result.exit_code == 0, result.stderr
    found = Screening.model_validate_json(result.stdout)
    assert found.outcome == "sufficient"
    assert len(found.rounds[0].retrieved) == 10
    assert "round  found  new  keep" in result.stderr
    assert "Sufficient." in result.stderr


@pytest.mark.slow
def test_every_abstract_can_be_graded_in_one_round_and_written_as_csv(masis: Masis, tmp_path: Path) -> None:
    out = tmp_path / "log.csv"
    result = masis("screen", FILE, "-q", QUESTION, "--all", "--format", "csv", "--out", out)
    assert result.exit_code == 0, result.stderr
    rows = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"))))
    assert len(rows) == len(FILE.read_text(encoding="utf-8").splitlines())
    assert {row["recommendation"] for row in rows} == {"keep", "discard", "needs_more"}
    assert "Sufficient." in result.stderr, "what is not about the question takes no part in the vote"


def test_it_is_kept_in_a_database_where_one_is_named(masis: Masis, tmp_path: Path) -> None:
    database = tmp_path / "kept.db"
    result = masis("screen", FILE, "-q", QUESTION, "--retrieve", "10", "--db", database)
    found = Screening.model_validate_json(result.stdout)
    with Store.open(database) as store:
        assert store.screenings.get(found.id) == found
        assert set(store.screenings.abstracts(found.id)) == {grade.abstract_id for grade in found.grades}


def test_records_that_cannot_be_read_are_named_and_the_rest_is_screened(masis: Masis, tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl"
    good = {"id": "a", "title": "Velotarine in resistant hypertension", "text": "Velotarine lowered blood pressure."}
    twice = {**good, "text": "Something else altogether."}
    file.write_text("\n".join([json.dumps(good), "{oops", json.dumps(twice)]) + "\n", encoding="utf-8")
    result = masis("screen", file, "-q", QUESTION, "--all")
    assert result.exit_code == 1
    assert "some.jsonl, line 2" in result.stderr
    assert "two records have this id" in result.stderr
    assert len(Screening.model_validate_json(result.stdout).grades) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-q", " "], "is empty"),
        (["-q", QUESTION, "--grader", "nobody:knows"], "nobody"),
        (["-q", QUESTION, "--set", "screening_keep_share=2"], "screening_keep_share"),
        ([], "--question"),
    ],
)
def test_wrong_use_is_reported_before_anything_is_read(masis: Masis, arguments: list[str], says: str) -> None:
    result = masis("screen", FILE, *arguments)
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stdout == ""


WEANING = "Does music therapy shorten ventilator weaning in children with neuromuscular disease?"


@pytest.mark.slow
@pytest.mark.spec("AESOP-ROUNDS")
def test_a_screening_of_a_file_is_searched_further_in_the_stored_records_and_in_the_file_given_again(
    masis: Masis, tmp_path: Path
) -> None:
    database = tmp_path / "kept.db"
    screened = masis(
        *("screen", FILE, "-q", WEANING, "--retrieve", "5", "--db", database, "--set", "screening_max_rounds=1")
    )
    first = Screening.model_validate_json(screened.stdout)
    (source,) = first.retrievers
    assert source.startswith("corpus:abstracts.jsonl ")
    assert "can search further" in screened.stderr
    for files in ((), (FILE,)):
        result = masis("screening", "further", first.id, *files, "--db", database, "--rounds", "1")
        assert result.exit_code == 0, result.stderr
        further = Screening.model_validate_json(result.stdout)
        assert further.retrievers == (source,)  # the file given again is known by its records
        assert further.rounds[0] == first.rounds[0]
        assert len(further.grades) > len(first.grades)
    with Store.open(database) as store:
        (held,) = store.corpora.list_all()
        assert len(store.corpora.imports(held.name)) == 1


@pytest.mark.slow
def test_where_a_file_holds_nothing_else_or_is_not_stored_searching_further_says_so(
    masis: Masis, tmp_path: Path
) -> None:
    database = tmp_path / "kept.db"
    whole = Screening.model_validate_json(masis("screen", FILE, "-q", WEANING, "--all", "--db", database).stdout)
    nothing = masis("screening", "further", whole.id, "--db", database)
    assert nothing.exit_code == 1
    assert f"no further query would help: all {len(whole.grades)} abstracts of its sources are graded" in nothing.stderr
    assert masis("screening", "further", whole.id, FILE, "--db", database).exit_code == 1  # nor in the same file again
    elsewhere = whole.model_copy(update={"id": "earlier", "retrievers": ("export.ris",)})
    workbench = Workbench.open(database)
    abstracts = workbench.store.screenings.abstracts(whole.id).values()
    workbench.screenings.store_screening(Actor(name="Ada Lind"), elsewhere, abstracts)
    workbench.close()
    unknown = masis("screening", "further", "earlier", "--db", database)
    assert unknown.exit_code == 1
    assert "the records of export.ris, which it searched, are not stored" in unknown.stderr
    assert "masis screening further earlier FILE" in unknown.stderr


def test_the_flow_goes_out_as_a_picture(masis: Masis) -> None:
    result = masis("screen", FILE, "-q", QUESTION, "--retrieve", "10", "--format", "svg")
    assert result.stdout.startswith("<svg ")
    assert "Records screened (n = 10)" in result.stdout


def test_concepts_that_options_name_take_the_place_of_what_was_read(masis: Masis) -> None:
    asked = ("screen", FILE, "-q", QUESTION, "--retrieve", "10", "--population", "adults", "--comparison", "")
    result = masis(*asked)
    assert result.exit_code == 0, result.stderr
    found = Screening.model_validate_json(result.stdout)
    assert found.settings["screening_concepts"] == "population: adults\ncomparison:"
    assert "population: adults; intervention: velotarine; comparison: none" in result.stderr
    read = masis("screen", FILE, "-q", f"{QUESTION}\noutcome: death", "--retrieve", "10", "--format", "csv")
    assert next(csv.DictReader(io.StringIO(read.stdout)))["concepts"].endswith("outcome: death")


@pytest.mark.spec("AESOP-DRIFT", "AESOP-MEMORY")
def test_drift_and_memory_are_shown_on_the_command_line(masis: Masis, tmp_path: Path) -> None:
    database = tmp_path / "judged.db"
    workbench = Workbench.open(database)
    ada = Actor(name="Ada \x1b[31mLind")
    workbench.corpora.add_demo(ada)
    empty = masis("screening", "drift", "--db", database)
    assert "No grade has been changed or agreed with yet" in empty.stdout
    question = demo_questions()[0]
    found = workbench.screenings.screen(ada, question.question, [f"corpus:{CORPUS}"])
    workbench.screenings.agree(ada, found.id, found.kept[0])
    workbench.screenings.override(ada, found.id, found.kept[1], "methodology_score", 0.91, reason="Read.")
    workbench.close()
    result = masis("screening", "drift", "--db", database)
    assert result.exit_code == 0
    assert "Grader offline: grades changed by people: 1 of 2 judgements. 2 judgements; more than 60" in result.stdout
    assert "\x1b" not in result.stdout
    assert f"Acceptance memory (off): {len(found.kept)} acceptances." in result.stdout
    record = json.loads(masis("screening", "drift", "--json", "--db", database).stdout)
    assert [(each["judgements"], each["disagreements"]) for each in record["drift"]] == [(2, 1), (2, 1)]
    assert record["memory"]["on"] is False


def test_a_stored_corpus_is_screened_as_a_file_is_in_pages_and_whole(masis: Masis, tmp_path: Path) -> None:
    database = tmp_path / "masis.db"
    assert masis("screening", "corpus", "demo", FILE, "--db", database).exit_code == 0
    for extra in ((), ("--all",)):
        of_corpus = masis("screen", "corpus:demo", "--question", QUESTION, "--db", database, *extra)
        of_file = masis("screen", FILE, "--question", QUESTION, *extra)
        assert (of_corpus.exit_code, of_file.exit_code) == (0, 0), of_corpus.stderr
        one, other = (Screening.model_validate_json(each.stdout) for each in (of_corpus, of_file))
        assert (one.outcome, one.decision) == (other.outcome, other.decision)
        assert f"Screening {one.id} is stored" in of_corpus.stderr
        if extra:
            assert {grade.abstract_id for grade in one.grades} == {grade.abstract_id for grade in other.grades}


def test_a_corpus_that_is_not_there_and_all_of_pubmed_are_refused(masis: Masis, tmp_path: Path) -> None:
    missing = masis("screen", "corpus:none", "-q", QUESTION, "--db", tmp_path / "masis.db")
    assert (missing.exit_code, "there is no corpus 'none'" in missing.stderr) == (1, True)
    whole = masis("screen", "pubmed", "-q", QUESTION, "--all", "--db", tmp_path / "masis.db")
    assert (whole.exit_code, "can't be read whole" in whole.stderr) == (2, True)
