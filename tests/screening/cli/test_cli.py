"""``masis screen`` and ``masis screening``: abstracts, progress by round, corpora and drift."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from masis.cli import output
from masis.errors import InputError
from masis.schema.actor import Actor
from masis.schema.screening import Abstract, Screening
from masis.screening import cli as commands
from masis.screening.demo import CORPUS, demo_folder, demo_questions
from masis.screening.readers import read_abstracts
from masis.screening.services import corpus_service, screening_service
from masis.screening.store import ScreeningStore
from masis.services import Workbench
from masis.store import Store
from tests.cli.running import Masis

QUESTION = "Does velotarine lower blood pressure in adults with resistant hypertension?"
FILE = demo_folder() / "abstracts.jsonl"


@pytest.mark.spec("AESOP-STANDALONE")
def test_a_file_is_searched_and_graded_by_round_without_network_or_database(
    masis: Masis,
) -> None:
    result = masis("screen", FILE, "-q", QUESTION, "--retrieve", "10")
    assert result.exit_code == 0, result.stderr
    found = Screening.model_validate_json(result.stdout)
    assert found.outcome == "sufficient"
    assert len(found.rounds[0].retrieved) == 10
    assert "round  found  new  keep" in result.stderr
    assert "Sufficient." in result.stderr


@pytest.mark.slow
def test_every_abstract_can_be_graded_in_one_round_and_written_as_csv(
    masis: Masis, tmp_path: Path
) -> None:
    out = tmp_path / "log.csv"
    result = masis("screen", FILE, "-q", QUESTION, "--all", "--format", "csv", "--out", out)
    assert result.exit_code == 0, result.stderr
    rows = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"))))
    assert len(rows) == len(FILE.read_text(encoding="utf-8").splitlines())
    assert {row["recommendation"] for row in rows} == {"keep", "discard", "needs_more"}
    assert "Sufficient." in result.stderr, (
        "what is not about the question takes no part in the vote"
    )


def test_a_screening_is_stored_only_if_a_database_is_named(masis: Masis, tmp_path: Path) -> None:
    database = tmp_path / "kept.db"
    result = masis("screen", FILE, "-q", QUESTION, "--retrieve", "10", "--db", database)
    found = Screening.model_validate_json(result.stdout)
    with Store.open(database) as store:
        assert ScreeningStore(store).screenings.get(found.id) == found
        assert set(ScreeningStore(store).screenings.abstracts(found.id)) == {
            grade.abstract_id for grade in found.grades
        }


def test_unreadable_records_are_reported_and_the_others_are_screened(
    masis: Masis, tmp_path: Path
) -> None:
    file = tmp_path / "some.jsonl"
    good = {
        "id": "a",
        "title": "Velotarine in resistant hypertension",
        "text": "Velotarine lowered blood pressure.",
    }
    twice = {**good, "text": "Something else altogether."}
    file.write_text(
        "\n".join([json.dumps(good), "{oops", json.dumps(twice)]) + "\n", encoding="utf-8"
    )
    result = masis("screen", file, "-q", QUESTION, "--all")
    assert result.exit_code == 1
    assert "some.jsonl, line 2" in result.stderr
    assert "two different records have this id" in result.stderr
    assert len(Screening.model_validate_json(result.stdout).grades) == 1


WEANING = "Does music therapy shorten ventilator weaning in children with neuromuscular disease?"


@pytest.mark.slow
@pytest.mark.spec("AESOP-ROUNDS")
def test_a_screening_continues_in_the_stored_records_and_in_the_file_given_again(
    masis: Masis, tmp_path: Path
) -> None:
    database = tmp_path / "kept.db"
    screened = masis(
        *(
            "screen",
            FILE,
            "-q",
            WEANING,
            "--retrieve",
            "5",
            "--db",
            database,
            "--set",
            "screening_max_rounds=1",
        )
    )
    first = Screening.model_validate_json(screened.stdout)
    (source,) = first.retrievers
    assert source.startswith("corpus:abstracts.jsonl ")
    assert "can search them again" in screened.stderr
    for files in ((), (FILE,)):
        result = masis("screening", "further", first.id, *files, "--db", database, "--rounds", "1")
        assert result.exit_code == 0, result.stderr
        further = Screening.model_validate_json(result.stdout)
        assert further.retrievers == (source,)  # the file is recognized by its records
        assert further.rounds[0] == first.rounds[0]
        assert len(further.grades) > len(first.grades)
    with Store.open(database) as store:
        (held,) = ScreeningStore(store).corpora.list_all()
        assert len(ScreeningStore(store).corpora.imports(held.name)) == 1


@pytest.mark.slow
def test_continuing_without_further_records_or_a_stored_screening_is_an_error(
    masis: Masis, tmp_path: Path
) -> None:
    database = tmp_path / "kept.db"
    whole = Screening.model_validate_json(
        masis("screen", FILE, "-q", WEANING, "--all", "--db", database).stdout
    )
    nothing = masis("screening", "further", whole.id, "--db", database)
    assert nothing.exit_code == 1
    assert (
        f"further queries wouldn't find more: all {len(whole.grades)} abstracts of its sources "
        f"are graded" in nothing.stderr
    )
    # The same file again has nothing new either.
    assert masis("screening", "further", whole.id, FILE, "--db", database).exit_code == 1
    elsewhere = whole.model_copy(update={"id": "earlier", "retrievers": ("export.ris",)})
    workbench = Workbench.open(database)
    abstracts = ScreeningStore(workbench.store).screenings.abstracts(whole.id).values()
    screening_service(workbench).store_screening(Actor(name="Ada Lind"), elsewhere, abstracts)
    workbench.close()
    unknown = masis("screening", "further", "earlier", "--db", database)
    assert unknown.exit_code == 1
    assert "the records of export.ris, which it searched, aren't stored" in unknown.stderr
    assert "masis screening further earlier FILE" in unknown.stderr


def test_the_flow_is_exported_as_svg(masis: Masis) -> None:
    result = masis("screen", FILE, "-q", QUESTION, "--retrieve", "10", "--format", "svg")
    assert result.stdout.startswith("<svg ")
    assert "Records screened (n = 10)" in result.stdout


def test_concept_options_replace_the_parsed_concepts(masis: Masis) -> None:
    asked = (
        "screen",
        FILE,
        "-q",
        QUESTION,
        "--retrieve",
        "10",
        "--population",
        "adults",
        "--comparison",
        "",
    )
    result = masis(*asked)
    assert result.exit_code == 0, result.stderr
    found = Screening.model_validate_json(result.stdout)
    assert found.settings["screening_concepts"] == "population: adults\ncomparison:"
    assert "population: adults; intervention: velotarine; comparison: none" in result.stderr
    read = masis(
        "screen", FILE, "-q", f"{QUESTION}\noutcome: death", "--retrieve", "10", "--format", "csv"
    )
    assert next(csv.DictReader(io.StringIO(read.stdout)))["concepts"].endswith("outcome: death")


@pytest.mark.spec("AESOP-DRIFT", "AESOP-MEMORY")
def test_drift_and_memory_are_shown_on_the_command_line(masis: Masis, tmp_path: Path) -> None:
    database = tmp_path / "judged.db"
    workbench = Workbench.open(database)
    ada = Actor(name="Ada \x1b[31mLind")
    corpus_service(workbench).add_demo(ada)
    empty = masis("screening", "drift", "--db", database)
    assert "Nobody has changed or confirmed a grade yet" in empty.stdout
    question = demo_questions()[0]
    found = screening_service(workbench).screen(ada, question.question, [f"corpus:{CORPUS}"])
    screening_service(workbench).agree(ada, found.id, found.kept[0])
    screening_service(workbench).override(
        ada, found.id, found.kept[1], "methodology_score", 0.91, reason="Read."
    )
    workbench.close()
    result = masis("screening", "drift", "--db", database)
    assert result.exit_code == 0
    assert "Grader offline: 1 changed of 2 judged. 2 judgements; more than 60" in result.stdout
    assert "\x1b" not in result.stdout
    assert f"Acceptance memory (off): {len(found.kept)} acceptances." in result.stdout
    record = json.loads(masis("screening", "drift", "--json", "--db", database).stdout)
    assert [(drift["judgements"], drift["disagreements"]) for drift in record["drift"]] == [
        (2, 1),
        (2, 1),
    ]
    assert record["memory"]["on"] is False


def test_a_stored_corpus_is_screened_like_a_file(masis: Masis, tmp_path: Path) -> None:
    database = tmp_path / "masis.db"
    assert masis("screening", "corpus", "demo", FILE, "--db", database).exit_code == 0
    for extra in ((), ("--all",)):
        of_corpus = masis("screen", "corpus:demo", "--question", QUESTION, "--db", database, *extra)
        of_file = masis("screen", FILE, "--question", QUESTION, *extra)
        assert (of_corpus.exit_code, of_file.exit_code) == (0, 0), of_corpus.stderr
        one, other = (
            Screening.model_validate_json(result.stdout) for result in (of_corpus, of_file)
        )
        assert (one.outcome, one.decision) == (other.outcome, other.decision)
        assert f"Screening {one.id} is stored" in of_corpus.stderr
        if extra:
            assert {grade.abstract_id for grade in one.grades} == {
                grade.abstract_id for grade in other.grades
            }


RIS = "TY  - JOUR\nTI  - Inhaled steroids in children with asthma\nDO  - 10.1000/a\nER  - \n"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "new.db"


def test_files_of_several_formats_make_one_corpus_without_duplicates(
    masis: Masis, tmp_path: Path, database: Path
) -> None:
    (tmp_path / "a.ris").write_text(RIS, encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(
        json.dumps({"id": "x", "title": "The same", "doi": "https://doi.org/10.1000/A"})
        + "\n"
        + json.dumps({"id": "y", "title": "Gout in adults", "text": "No steroids."})
        + "\n",
        encoding="utf-8",
    )
    result = masis(
        "screening", "corpus", "mine", tmp_path / "a.ris", tmp_path / "b.jsonl", "--db", database
    )
    assert (result.exit_code, result.stdout) == (0, "")
    assert "b.jsonl: 2 records, 1 added, 1 duplicate, 0 unreadable." in result.stderr
    assert "Corpus 'mine' holds 2 abstracts." in result.stderr
    found = masis(
        "screening", "corpus", "mine", "--search", "which STEROID for children?", "--db", database
    )
    assert [json.loads(line)["id"] for line in found.stdout.splitlines()] == ["doi-10.1000/a", "y"]
    assert (
        len(
            masis(
                "screening",
                "corpus",
                "mine",
                "--search",
                "steroids",
                "--limit",
                "1",
                "--db",
                database,
            ).stdout.splitlines()
        )
        == 1
    )
    assert (
        masis("screening", "corpus", "--db", database).stdout
        == "mine  2 abstracts, 3 identified, 1 duplicate, 0 unreadable\n"
    )
    assert (
        "a.ris: 1 identified, 1 added"
        in masis("screening", "corpus", "mine", "--db", database).stdout
    )


def test_unreadable_records_are_reported_and_the_others_are_stored(
    masis: Masis, tmp_path: Path, database: Path
) -> None:
    file = tmp_path / "a.ris"
    file.write_text("TY  - JOUR\nTI  - Lost\n" + RIS, encoding="utf-8")
    other = tmp_path / "notes.txt"
    other.write_text("hello", encoding="utf-8")
    result = masis("screening", "corpus", "mine", file, other, "--db", database)
    assert result.exit_code == 1
    assert f"{file}, line 1, record 1: has no end." in result.stderr
    assert f"{other}: isn't in a known format of abstracts" in result.stderr
    assert "2 errors, listed above" in result.stderr
    assert "holds 1 abstract." in result.stderr
    assert (
        masis("screening", "corpus", "mine", "-", "--db", database, stdin=RIS.encode()).exit_code
        == 0
    )


def test_a_corpus_is_removed_on_request(masis: Masis, tmp_path: Path, database: Path) -> None:
    (tmp_path / "a.ris").write_text(RIS, encoding="utf-8")
    masis("screening", "corpus", "mine", tmp_path / "a.ris", "--db", database)
    assert (
        "'mine' with 1 abstract is removed"
        in masis("screening", "corpus", "mine", "--remove", "--db", database).stderr
    )
    gone = masis("screening", "corpus", "mine", "--search", "asthma", "--db", database)
    assert (gone.exit_code, gone.stdout) == (1, "")
    assert "there is no corpus 'mine'" in gone.stderr
    assert "There are no corpora yet" in masis("screening", "corpus", "--db", database).stderr


def many(tmp_path: Path, count: int = 2_000) -> Path:
    file = tmp_path / "many.ris"
    record = (
        "TY  - JOUR\nTI  - Trial {0} of steroids\nAB  - Steroids in trial {0}.\nDO  - 10.1/{0}\nER "
        " - \n"
    )
    file.write_text("".join(record.format(number) for number in range(count)), encoding="utf-8")
    return file


def test_importing_a_large_file_shows_progress(
    masis: Masis, tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "_SECONDS_BETWEEN_LINES", 0.0)
    result = masis("screening", "corpus", "mine", many(tmp_path), "--db", database)
    assert result.exit_code == 0
    assert "Importing: 1,000 records read, " in result.stderr
    assert "Importing: 2,000 records read, 100% of the file" in result.stderr


@pytest.mark.parametrize(
    "command", [("screening", "corpus", "mine"), ("screen", "-q", "Do steroids help?")]
)
def test_reading_a_large_file_can_be_interrupted(
    masis: Masis,
    tmp_path: Path,
    database: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
) -> None:
    def yield_then_interrupt(stream: BinaryIO, *, name: str) -> Iterator[Abstract | InputError]:
        for number, abstract in enumerate(read_abstracts(stream, name=name)):
            if number == 700:
                os.kill(os.getpid(), signal.SIGINT)
            yield abstract

    monkeypatch.setattr(commands, "read_abstracts", yield_then_interrupt)
    result = masis(*command, many(tmp_path), "--db", database)
    assert result.exit_code == 130
    if command[0] == "screen":
        assert "Stopped before the first abstract was graded." in result.stderr
        return
    assert "many.ris: 700 records, 700 added" in result.stderr
    assert "Run the same command again to add the rest" in result.stderr
    monkeypatch.undo()
    again = masis(*command, many(tmp_path), "--db", database)
    assert "2,000 records, 1,300 added, 700 duplicates" in again.stderr


def test_the_abstracts_to_read_next_and_the_stopping_proposal_are_listed(
    masis: Masis, tmp_path: Path
) -> None:
    database = tmp_path / "reading.db"
    workbench = Workbench.open(database)
    ada = Actor(name="Ada Lind")
    corpus_service(workbench).add_demo(ada)
    found = screening_service(workbench).screen(
        ada, demo_questions()[0].question, [f"corpus:{CORPUS}"]
    )
    read = [grade.abstract_id for grade in found.grades][:2]
    screening_service(workbench).override(
        ada, found.id, read[0], "recommendation", "keep", reason="Read."
    )
    screening_service(workbench).override(
        ada, found.id, read[1], "recommendation", "discard", reason="Read."
    )
    workbench.close()
    record = json.loads(masis("screening", "order", found.id, "--json", "--db", database).stdout)
    assert (record["included"], record["excluded"], record["learned"]) == (1, 1, False)
    assert set(record["order"]) == {grade.abstract_id for grade in found.grades} - set(read)
    assert record["stop"] is False
    shown = masis("screening", "order", found.id, "--db", database).stdout
    assert "1 included and 1 excluded of" in shown
    assert "ordered by relevance to the question" in shown


def test_missing_abstracts_and_unread_records_are_counted(masis: Masis, tmp_path: Path) -> None:
    file = tmp_path / "found.jsonl"
    file.write_text(
        '{"title": "Velotarine in adults", "text": "We randomised 100 adults to velotarine."}\n'
        '{"title": "Velotarine in hypertension", "text": "[No abstract available]"}\n'
        '{"title": 5}\n',
        encoding="utf-8",
    )
    result = masis("screen", file, "-q", QUESTION, "--all")
    assert "3 identified, 0 found again, 1 unread, 2 screened" in result.stderr
    assert "1 of 2 records has no abstract" in result.stderr
    assert Screening.model_validate_json(result.stdout).flow.unread == 1
    stored = masis("screening", "corpus", "demo", file, "--db", tmp_path / "masis.db")
    assert "1 record has no abstract." in stored.stderr
