"""An archive reproduces the store it was written from, or says why it can't."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from masis.datasets.archive import is_archive, read_archive, write_archive
from masis.errors import InputError, StoreError
from masis.schema.audit import Draft
from masis.schema.run import Run
from masis.store import CaseFilter, Owner, Store
from tests.store.factories import (
    JUDGE,
    SETTINGS,
    a_case,
    a_decision,
    a_run,
    accepted,
    an_event,
    an_iteration,
    an_undo,
)


def written(store: Store) -> bytes:
    stream = io.BytesIO()
    write_archive(store, stream)
    return stream.getvalue()


@pytest.fixture
def full(tmp_path: Path) -> Store:
    """A store with one of everything."""
    store = Store.open(tmp_path / "full.db")
    cases = [a_case(f"case-{n}") for n in range(4)]
    cases[1] = a_case("case-1", answer=None, house={"β": [1.0, 1e-7, 10**20, None]}, evidence=[{"id": "x", "page": 1}])
    store.cases.add_many(reversed(cases))
    run = a_run(cases[0], "run-0", iterations=(an_iteration(1), an_iteration(2, quality=1e-7)))
    store.runs.finish(run)
    clean = a_run(cases[3], "run-3", needs_review=False, review_reasons=())
    store.runs.finish(clean)
    store.decisions.append(accepted(clean))
    _cut_short(store, "run-1")
    first = store.decisions.append(a_decision(cases[0], "run-0", token="t", extra={"seconds": 1.5}))
    store.decisions.append(an_undo(cases[0], first.id))
    redacted = store.decisions.append(a_decision(cases[0], "run-0", verdict="reject", reason="r", token="u"))
    store.decisions.redact(redacted.id, by="Grace", reason="names a patient")
    store.decisions.append(a_decision(cases[2], None, verdict="escalate", note="“…”\u2028"))
    return store


def _cut_short(store: Store, run_id: str) -> None:
    case = store.cases.get("case-1")
    store.runs.start(run_id, case_id=case.id, case_digest=case.digest(), models={"critic": "m"}, settings=SETTINGS)
    store.runs.save_draft(run_id, Draft(answer="Drafted.", judged_by=JUDGE))
    store.runs.append_event(an_event(case, run_id, data={"share": 0.1}))
    store.runs.save_iteration(run_id, an_iteration(1, "Drafted."))
    store.runs.abandon(run_id, "Ctrl-C")


def test_reading_an_archive_into_an_empty_database_and_writing_it_again_gives_the_same_bytes(
    full: Store, tmp_path: Path
) -> None:
    archive = tmp_path / "archive.jsonl"
    archive.write_bytes(written(full))
    assert is_archive(archive)
    copy = Store.open(tmp_path / "copy.db")
    assert str(read_archive(archive, copy)) == "4 cases, 3 runs, 6 log entries restored."
    assert written(copy) == archive.read_bytes()


def test_the_copy_answers_like_the_original(full: Store, tmp_path: Path) -> None:
    archive = tmp_path / "archive.jsonl"
    archive.write_bytes(written(full))
    copy = Store.open(tmp_path / "copy.db")
    read_archive(archive, copy)
    for case in full.cases.iterate():
        assert copy.cases.get(case.id) == case
        assert copy.runs.for_case(case.id) == full.runs.for_case(case.id)
    assert copy.cases.search(CaseFilter()) == full.cases.search(CaseFilter())
    assert copy.cases.search(CaseFilter(text="1932")).total == full.cases.search(CaseFilter(text="1932")).total == 3
    assert copy.cases.facets() == full.cases.facets()
    assert copy.runs.get("run-0") == full.runs.get("run-0")
    assert copy.runs.progress("run-1").iterations == full.runs.progress("run-1").iterations
    assert copy.decisions.entries() == full.decisions.entries()
    assert copy.decisions.verify() == full.decisions.verify()
    assert copy.decisions.verify().intact
    assert copy.check().ok
    assert copy.runs.resume("run-1").last_event == 1


def test_a_run_under_way_comes_back_as_interrupted(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "full.db")
    case = a_case()
    store.cases.add(case)
    store.runs.start(
        "r", case_id=case.id, case_digest=case.digest(), models={}, settings={}, owner=Owner("elsewhere", 1, "x")
    )
    store.runs.save_iteration("r", an_iteration(1))
    archive = tmp_path / "archive.jsonl"
    archive.write_bytes(written(store))
    copy = Store.open(tmp_path / "copy.db")
    read_archive(archive, copy)
    assert [run.id for run in copy.runs.interrupted()] == ["r"]
    assert written(copy) == archive.read_bytes()


def test_an_archive_does_not_go_into_a_database_that_holds_something(full: Store, tmp_path: Path) -> None:
    archive = tmp_path / "archive.jsonl"
    archive.write_bytes(written(full))
    before = written(full)
    with pytest.raises(StoreError, match=r"full\.db: holds cases already.*--db"):
        read_archive(archive, full)
    assert written(full) == before


Edit = Callable[[list[dict[str, Any]]], Any]


def edit_line(kind: str, change: Callable[[dict[str, Any]], Any]) -> Edit:
    return lambda lines: change(next(line for line in lines if line["record"] == kind))


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda lines: lines[0].update(version=9), r"line 1, version: is an archive of version 9"),
        (lambda lines: lines[0].update(record="case"), r"line 1: is not the first line of an archive"),
        (lambda lines: lines.pop(), r"line 17: ends before its last line: it was cut off"),
        (lambda lines: lines.pop(4), r"line \d+, case_id: names 'case-0', which does not come before it"),
        (lambda lines: lines.pop(1), r"names 'case-3'"),
        (lambda lines: lines.pop(-2), r"line 17: counts"),
        (lambda lines: lines.pop(12), r"does not fit the one before"),
        (lambda lines: lines.append(lines[1]), r"line 19: stands behind the end"),
        (lambda lines: lines.insert(2, lines[1]), r"line 3, case\.id: case 'case-3' comes a second time"),
        (lambda lines: lines.insert(2, {"record": "poem"}), r"line 3, record: is a record of unknown kind 'poem'"),
        (edit_line("case", lambda line: line["case"].pop("query")), r"line 2, query: does not fit"),
        (edit_line("case", lambda line: line["case"].update(answer="Changed.")), r"case_digest: run .* other content"),
        (edit_line("run", lambda line: line["run"].update(id="x")), r"line 6, run: the result is of run 'x'"),
        (edit_line("run", lambda line: line["iterations"][0].pop("answer")), r"line 6, answer: does not fit"),
        (
            edit_line("entry", lambda line: line["decision"].update(reviewer="Eve")),
            r"line 9, decision: the decision is not the one that was made",
        ),
        (edit_line("entry", lambda line: line.update(at="1999")), r"line 9: entry 1 of the decision log does not fit"),
        (lambda lines: lines[11]["kept"].update(verdict="approve"), r"it redacts entry .*, which is another one"),
        (lambda lines: lines[13].update(decision=None, kept=lines[11]["kept"]), r"goes to its end, once"),
    ],
)
def test_an_altered_archive_is_refused_with_the_place_named_and_nothing_kept(
    full: Store, tmp_path: Path, edit: Edit, said: str
) -> None:
    lines = [json.loads(line) for line in written(full).splitlines()]
    kinds = ["masis-archive", *4 * ["case"], *3 * ["run"], *6 * ["entry"], *3 * ["execution"], "end"]
    assert [line["record"] for line in lines] == kinds
    edit(lines)
    archive = tmp_path / "archive.jsonl"
    archive.write_text("".join(json.dumps(line) + "\n" for line in lines))
    copy = Store.open(tmp_path / "copy.db")
    with pytest.raises(InputError, match=said) as raised:
        read_archive(archive, copy)
    assert raised.value.file == str(archive)
    assert copy.cases.count() == copy.decisions.head().length == 0


def test_an_archive_of_version_1_is_read_and_its_log_of_executions_is_made_of_the_runs(
    full: Store, tmp_path: Path
) -> None:
    lines = [json.loads(line) for line in written(full).splitlines()]
    lines[0]["version"] = 1
    old = [line for line in lines if line["record"] != "execution"]
    del old[-1]["execution"], old[-1]["purge"]
    for line in old:
        if line["record"] == "run":
            del line["removed_by"], line["figures"]
    archive = tmp_path / "archive.jsonl"
    archive.write_text("".join(json.dumps(line) + "\n" for line in old))
    copy = Store.open(tmp_path / "copy.db")
    read_archive(archive, copy)
    made = {each.run_id: each for each in copy.executions.iterate()}
    kept = {each.run_id: each for each in full.executions.iterate()}
    assert made == kept
    assert made["run-1"].termination == "abandoned"


@pytest.mark.parametrize(
    ("line", "said"),
    [(b"{", "no JSON"), (b"[]", "not an object"), (b'{"a": NaN}', "NaN"), (b'"\xff"', "UTF-8"), (b"[" * 10**5, "JSON")],
)
def test_a_line_that_is_no_record_is_named(full: Store, tmp_path: Path, line: bytes, said: str) -> None:
    archive = tmp_path / "archive.jsonl"
    archive.write_bytes(written(full).split(b"\n")[0] + b"\n" + line + b"\n")
    with pytest.raises(InputError, match=rf"archive\.jsonl, line 2: .*{said}"):
        read_archive(archive, Store.open(tmp_path / "copy.db"))


def test_other_files_are_distinguished_from_archives(tmp_path: Path) -> None:
    other = tmp_path / "cases.jsonl"
    other.write_text('{"id": "1", "query": "?", "evidence": []}\n')
    assert not is_archive(other)
    other.write_bytes(b"")
    assert not is_archive(other)
    with pytest.raises(InputError, match="cut off"):
        read_archive(other, Store.open(tmp_path / "copy.db"))


@pytest.mark.slow
def test_memory_stays_flat_while_writing_and_reading(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "full.db")
    long = "word " * 4000
    cases = [a_case(f"case-{n}", answer=long) for n in range(300)]
    store.cases.add_many(cases)
    runs: list[Run] = [a_run(case, f"run-{case.id}", iterations=(an_iteration(1, long),)) for case in cases]
    for run in runs:
        store.runs.finish(run)
    archive = tmp_path / "archive.jsonl"
    tracemalloc.start()
    with archive.open("wb") as stream:
        write_archive(store, stream)
    read_archive(archive, Store.open(tmp_path / "copy.db"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert archive.stat().st_size > 15_000_000
    assert peak < 3_000_000
