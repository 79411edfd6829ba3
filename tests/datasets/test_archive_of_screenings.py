"""An archive reproduces corpora, screenings, the screening log and the acceptance memory, or says why it can't."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from masis.datasets.archive import read_archive
from masis.errors import InputError, StoreError
from masis.schema.screening import Agreement, ScreeningDecision
from masis.screening.rounds.memory import acceptances
from masis.store import Owner, Store
from tests.datasets.test_archive import written
from tests.store.conftest import ticking
from tests.store.test_screenings import abstracts, accepted, says, screened


@pytest.fixture
def full(tmp_path: Path) -> Store:
    """A store with one of everything that belongs to screening."""
    store = Store.open(tmp_path / "full.db", now=ticking())
    store.corpora.add_many("two", [*abstracts(1, 1), InputError("broken", cure="-")], source="x.ris")
    store.corpora.add_many("one", abstracts(1, 1), source="y.ris")
    store.corpora.add_many("two", abstracts(1, 1), source="again.ris")
    result = screened(store, abstracts(2, 2))
    store.acceptances.replace("s1", [accepted("s1")])
    store.acceptances.reset(by="Ada", reason="Start over.")
    screened(store, abstracts(2, 0), "s2")
    store.acceptances.replace("s2", acceptances(store.screenings.get("s2")))
    entry = store.screening_log.append(says("discard", token="t"))
    store.screening_log.append(says(0.25, name="relevance_score", reviewer="Bö"))
    store.screening_log.redact(entry.id, by="Officer", reason="names a patient")
    store.screenings.start("s3", question="“Why?”", sources=["pubmed"], settings={"a": 1.5}, owner=Owner("far", 1, "x"))
    store.screenings.append_event(store.screenings.events("s1")[0].model_copy(update={"screening_id": "s3"}))
    assert result.rounds
    return store


def test_screenings_come_back_byte_for_byte_and_answer_like_the_original(full: Store, tmp_path: Path) -> None:
    archive = tmp_path / "archive.jsonl"
    archive.write_bytes(written(full))
    copy = Store.open(tmp_path / "copy.db")
    said = str(read_archive(archive, copy))
    assert said == (
        "0 cases, 0 runs, 0 log entries, 2 corpora, 4 abstracts, 3 screenings, 4 screening entries, "
        "3 acceptances restored."
    )
    assert written(copy) == archive.read_bytes()
    assert copy.corpora.list_all() == full.corpora.list_all()
    assert copy.corpora.search("two", "good words", 5) == full.corpora.search("two", "good words", 5) != ()
    for screening_id in ("s1", "s2"):
        assert copy.screenings.get(screening_id) == full.screenings.get(screening_id)
        assert copy.screenings.abstracts(screening_id) == full.screenings.abstracts(screening_id)
        assert copy.screening_log.overrides(screening_id) == full.screening_log.overrides(screening_id)
        assert copy.screenings.progress(screening_id).progress == full.screenings.progress(screening_id).progress
    assert [each.id for each in copy.screenings.interrupted()] == ["s3"]
    assert copy.screenings.resume("s3").progress.events == 1
    assert copy.screening_log.verify() == full.screening_log.verify()
    assert copy.acceptances.accepted() == full.acceptances.accepted() != ()
    assert len(copy.acceptances.history()) == 3
    assert copy.check().ok


def test_agreements_come_back_and_raise_the_version_of_the_archive(full: Store, tmp_path: Path) -> None:
    assert json.loads(written(full).splitlines()[0])["version"] == 2
    name = full.screenings.get("s1").grades[0].abstract_id
    agreement = Agreement(abstract_id=name, reviewer="Ada", at="")
    decision = ScreeningDecision(kind="agreement", reviewer="Ada", screening_id="s1", agreement=agreement)
    full.screening_log.append(decision)
    archive = tmp_path / "archive.jsonl"
    archive.write_bytes(written(full))
    assert json.loads(archive.read_bytes().splitlines()[0])["version"] == 7
    copy = Store.open(tmp_path / "copy.db")
    read_archive(archive, copy)
    assert copy.screening_log.agreements("s1") == full.screening_log.agreements("s1") != ()
    assert written(copy) == archive.read_bytes()
    assert copy.check().ok


def test_an_archive_does_not_go_where_there_is_a_corpus_already(full: Store, tmp_path: Path) -> None:
    archive = tmp_path / "archive.jsonl"
    archive.write_bytes(written(full))
    with Store.open(tmp_path / "other.db") as other:
        other.corpora.add_many("c", abstracts(1, 0), source="x")
        with pytest.raises(StoreError, match="already"):
            read_archive(archive, other)


def _of(kind: str, lines: list[dict[str, Any]], number: int = 0) -> dict[str, Any]:
    return [line for line in lines if line["record"] == kind][number]


KEPT = {
    "screening_id": "s1",
    "kind": "override",
    "abstract_id": "a0",
    "field": "relevance_score",
    "token": None,
}
ALTERATIONS: list[tuple[str, Callable[[list[dict[str, Any]]], object], str]] = [
    (
        "a verdict",
        lambda lines: _of("screening_entry", lines, 2)["decision"].update(reason="x"),
        "not the one that was",
    ),
    ("a time", lambda lines: _of("screening_entry", lines).update(at="then"), "does not fit the one before"),
    ("a lost entry", lambda lines: lines.remove(_of("screening_entry", lines)), "does not fit the one before"),
    (
        "lost words",
        lambda lines: _of("screening_entry", lines, 2).update(decision=None, kept=KEPT),
        "has lost its words, and no redaction says why",
    ),
    ("a lost corpus", lambda lines: lines.remove(_of("corpus", lines)), "names 'two', which does not come before"),
    ("a lost screening", lambda lines: lines.remove(_of("screening", lines, 1)), "names 's2'"),
    ("a lost result", lambda lines: _of("screening", lines).update(screening=None), "not the result its state says"),
    ("a lost grade", lambda lines: _of("screening", lines)["abstracts"][0].update(grade=None), "lacks grades"),
    ("a lost abstract", lambda lines: lines.remove(_of("abstract", lines)), "lines are missing"),
]


@pytest.mark.parametrize(("alter", "told"), [each[1:] for each in ALTERATIONS], ids=[each[0] for each in ALTERATIONS])
def test_an_altered_archive_is_refused_whole(
    full: Store, tmp_path: Path, alter: Callable[[list[dict[str, Any]]], object], told: str
) -> None:
    lines = [json.loads(line) for line in written(full).splitlines()]
    alter(lines)
    archive = tmp_path / "archive.jsonl"
    archive.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with Store.open(tmp_path / "copy.db") as copy:
        with pytest.raises(InputError, match=told):
            read_archive(archive, copy)
        assert copy.corpora.list_all() == ()
        assert copy.screenings.newest() == ()


def test_an_archive_with_corrections_says_so_and_comes_back_the_same(full: Store, tmp_path: Path) -> None:
    assert b'"version":2}' in written(full).partition(b"\n")[0]
    full.screening_log.append(says("stated", name="blinding"))
    full.screening_log.append(says("opposite", name="direction"))
    archive = tmp_path / "archive.jsonl"
    archive.write_bytes(written(full))
    assert b'"version":8}' in archive.read_bytes().partition(b"\n")[0]
    copy = Store.open(tmp_path / "copy.db")
    read_archive(archive, copy)
    assert written(copy) == archive.read_bytes()
    assert copy.screening_log.overrides("s1") == full.screening_log.overrides("s1")
    assert copy.screening_log.check_subjects() == full.screening_log.check_subjects()
    assert copy.check().ok
