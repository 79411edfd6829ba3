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
from masis.settings import Settings
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


def test_the_kept_go_out_as_ris(masis: Masis) -> None:
    result = masis("screen", FILE, "-q", QUESTION, "--retrieve", "10", "--format", "ris")
    assert result.stdout.count("TY  - JOUR") == result.stdout.count("ER  - ") > 4


@pytest.mark.parametrize("name", ["abstracts.ris", "abstracts.bib", "abstracts.xml", "abstracts.nbib"])
def test_other_formats_are_read_too(masis: Masis, name: str) -> None:
    found = sorted((demo_folder() / "import").glob(f"*{Path(name).suffix}"))
    result = masis("screen", found[0], "-q", QUESTION, "--all")
    assert result.exit_code == 0, result.stderr
    assert len(Screening.model_validate_json(result.stdout).grades) == 10


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


def test_a_file_without_abstracts_is_a_failed_job(masis: Masis, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("", encoding="utf-8")
    result = masis("screen", tmp_path / "empty.jsonl", "-q", QUESTION)
    assert result.exit_code == 1
    assert "empty.jsonl" in result.stderr


def test_what_abstracts_say_steers_no_terminal(masis: Masis, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps({"id": "\u001b[2Ja", "title": "\u001b[31mred", "text": "Text."}) + "\n" + "{", "utf-8")
    result = masis("screen", file, "-q", "red \u001b[2J text?", "--all")
    assert "\u001b" not in result.stderr


@pytest.mark.slow
def test_a_finished_screening_of_a_corpus_is_searched_further(masis: Masis, tmp_path: Path) -> None:
    database = tmp_path / "kept.db"
    workbench = Workbench.open(database)
    ada = Actor(name="Ada Lind")
    workbench.corpora.add_demo(ada)
    once = Settings(screening_max_rounds=1)
    question = "Does music therapy shorten ventilator weaning in children with neuromuscular disease?"
    first = workbench.screenings.screen(ada, question, [f"corpus:{CORPUS}"], settings=once)
    workbench.close()
    result = masis("screening", "search-further", first.id, "--db", database, "--rounds", "2")
    assert result.exit_code == 0, result.stderr
    found = Screening.model_validate_json(result.stdout)
    assert len(found.rounds) > len(first.rounds)
    assert found.rounds[0] == first.rounds[0]
    assert "No further query would help" in result.stderr or "limit of" in result.stderr
    missing = masis("screening", "search-further", "nobody", "--db", database)
    assert missing.exit_code == 1
    assert "nobody" in missing.stderr


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
        result = masis("screening", "search-further", first.id, *files, "--db", database, "--rounds", "1")
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
    nothing = masis("screening", "search-further", whole.id, "--db", database)
    assert nothing.exit_code == 1
    assert f"no further query would help: all {len(whole.grades)} abstracts of its sources are graded" in nothing.stderr
    assert (
        masis("screening", "search-further", whole.id, FILE, "--db", database).exit_code == 1
    )  # nor in the same file again
    elsewhere = whole.model_copy(update={"id": "earlier", "retrievers": ("export.ris",)})
    workbench = Workbench.open(database)
    abstracts = workbench.store.screenings.abstracts(whole.id).values()
    workbench.screenings.store_screening(Actor(name="Ada Lind"), elsewhere, abstracts)
    workbench.close()
    unknown = masis("screening", "search-further", "earlier", "--db", database)
    assert unknown.exit_code == 1
    assert "the records of export.ris, which it searched, are not stored" in unknown.stderr
    assert "masis screening search-further earlier FILE" in unknown.stderr


def test_the_flow_goes_out_as_a_picture(masis: Masis) -> None:
    result = masis("screen", FILE, "-q", QUESTION, "--retrieve", "10", "--format", "svg")
    assert result.stdout.startswith("<svg ")
    assert "Records screened (n = 10)" in result.stdout


@pytest.mark.slow
@pytest.mark.spec("AESOP-MEMORY")
def test_what_is_stored_is_remembered_and_moves_the_next_screening_where_memory_is_on(
    masis: Masis, tmp_path: Path
) -> None:
    database = tmp_path / "kept.db"
    for _ in range(3):  # each keeps more than the third of the 20 that memory needs
        stored = masis("screen", FILE, "-q", QUESTION, "--retrieve", "20", "--db", database)
        assert stored.exit_code == 0, stored.stderr
    with Store.open(database) as store:
        assert len(store.acceptances.accepted()) >= 20
    on = masis("screen", FILE, "-q", QUESTION, "--db", database, "--set", "screening_memory=true")
    found = Screening.model_validate_json(on.stdout)
    assert found.thresholds.adapted_by < 0
    assert found.thresholds.required_average[0] < 0.70


def test_concepts_that_options_name_take_the_place_of_what_was_read(masis: Masis) -> None:
    asked = ("screen", FILE, "-q", QUESTION, "--retrieve", "10", "--population", "adults", "--comparison", "")
    result = masis(*asked)
    assert result.exit_code == 0, result.stderr
    found = Screening.model_validate_json(result.stdout)
    assert found.settings["screening_concepts"] == "population: adults\ncomparison:"
    assert "population: adults; intervention: velotarine; comparison: none" in result.stderr
    read = masis("screen", FILE, "-q", f"{QUESTION}\noutcome: death", "--retrieve", "10", "--format", "csv")
    assert next(csv.DictReader(io.StringIO(read.stdout)))["concepts"].endswith("outcome: death")


def test_concepts_too_long_to_keep_are_wrong_use(masis: Masis) -> None:
    long = ["--population", "x, " * 700, "--outcome", "y, " * 700, "--intervention", "z, " * 700]
    result = masis("screen", FILE, "-q", QUESTION, *long, "--comparison", "w, " * 2_000)
    assert result.exit_code == 2
    assert "too long" in result.stderr


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
