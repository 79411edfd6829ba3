"""Redacting a case: every text of it goes, from the file too; the chain, the verdicts and the figures stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from masis.errors import InputError, Removed, StoreError, UnknownRecord
from masis.schema.case import Case
from masis.store import CaseFilter, Store
from masis.store.retention.redaction import REDACTED
from tests.store.factories import a_case, a_decision, a_run, accepted, an_event, an_iteration, an_undo
from tests.store.test_screenings import abstracts, says, screened

SECRET = "Quillfeather"


def a_secret_case(case_id: str = "case-1") -> Case:
    return a_case(
        case_id,
        query=f"What ails {SECRET}?",
        answer=f"{SECRET} coughs [1].",
        evidence=[{"id": "1", "text": f"{SECRET} has a cough."}],
        metadata={"field": "Medicine", "dataset": "ward", "patient": SECRET},
    )


@pytest.fixture
def filled(store: Store) -> Store:
    """A case with two runs, a decision that was undone, one that stands, a draft; and another case."""
    case = a_secret_case()
    store.cases.add_many([case, a_case("other", query="Who coughs?")])
    answer = case.answer or ""
    for number in (1, 2):
        run = a_run(case, f"run-{number}", iterations=(an_iteration(1, answer=answer),))
        store.runs.start(run.id, case_id=case.id, case_digest=case.digest(), models=run.models, settings=run.settings)
        store.runs.append_event(an_event(case, run.id))
        store.runs.finish(run)
    first = store.decisions.append(a_decision(case, "run-1", note=f"I know {SECRET}"))
    store.decisions.append(an_undo(case, first.id, note=f"not {SECRET}"))
    store.decisions.append(a_decision(case, "run-2", verdict="override", reason="r", corrected_answer=f"{SECRET}?"))
    store.drafts.save("Grace", "case:case-1", "note", f"typed about {SECRET}")
    store.drafts.save("Grace", "case:other", "note", "typed about another")
    return store


def files(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir())


def test_no_text_of_a_redacted_case_is_left_in_the_store_or_its_files(filled: Store, path: Path) -> None:
    filled.settle()
    assert SECRET.encode() in files(path)
    done = filled.redactions.redact_case("case-1", by="Data protection", reason="request 17")
    assert (done.entries, done.runs, done.drafts) == (3, 2, 1)
    case = filled.cases.get("case-1")
    assert (case.query, case.answer, case.labels) == (REDACTED, None, None)
    assert case.metadata == {"field": "Medicine", "dataset": "ward", "redacted": True}
    for text in (SECRET, "cough", SECRET[:5]):
        assert "case-1" not in {row.id for row in filled.cases.search(CaseFilter(text=text)).rows}
    assert [row.id for row in filled.cases.search(CaseFilter(text="case-1")).rows] == ["case-1"]
    assert [row.id for row in filled.cases.search(CaseFilter(text="coughs")).rows] == ["other"]
    assert filled.drafts.load("Grace", "case:case-1") == {}
    assert filled.drafts.load("Grace", "case:other") == {"note": "typed about another"}
    for run_id in ("run-1", "run-2"):
        with pytest.raises(Removed, match="its case was redacted"):
            filled.runs.get(run_id)
    filled.close()
    assert SECRET.encode() not in files(path)
    assert SECRET.lower().encode() not in files(path)


def test_the_log_records_who_redacted_a_case_when_and_why_and_stays_intact(filled: Store) -> None:
    digest = a_secret_case().digest()
    entry = filled.redactions.redact_case("case-1", by="Data protection", reason="request 17").entry
    found = filled.decisions.get(entry.id).decision
    assert found is not None
    assert (found.kind, found.reviewer, found.reason) == ("redaction", "Data protection", "request 17")
    assert found.extra == {"redacts_case": "case-1", "digest": digest, "entries": 3, "runs": 2}
    check = filled.check()
    assert check.ok
    assert (check.log.length, check.log.redacted) == (7, 3)
    assert filled.cases.summary("case-1").state == "overridden"
    assert filled.cases.summary("case-1").headline is None
    (purge,) = filled.purges.history()
    assert (purge.by, purge.how, purge.runs) == ("Data protection", "redaction", 2)
    assert [execution.run_id for execution in filled.executions.iterate()] == ["run-1", "run-2"]


def test_a_redacted_case_waits_for_nobody_and_is_not_brought_back(filled: Store) -> None:
    other = a_case("waits")
    filled.cases.add(other)
    filled.runs.finish(a_run(other, "run-of-another"))
    assert filled.cases.summary("waits").state == "needs_review"
    filled.redactions.redact_case("waits", by="Ada", reason="r")
    assert filled.cases.summary("waits").state == "redacted"
    assert filled.cases.facets().states == {"new": 1, "overridden": 1, "redacted": 1}
    assert filled.cases.add(other) == "unchanged"
    assert filled.cases.get("waits").query == REDACTED
    with pytest.raises(Removed, match="redacted"):
        filled.runs.start("again", case_id="waits", case_digest=other.digest(), models={}, settings={})
    assert filled.check().ok


def test_what_can_not_be_redacted_says_why_and_nothing_is_removed(filled: Store) -> None:
    case = a_case("audited")
    filled.cases.add(case)
    filled.runs.start("under way", case_id=case.id, case_digest=case.digest(), models={}, settings={})
    with pytest.raises(StoreError, match="being audited"):
        filled.redactions.redact_case("audited", by="Ada", reason="r")
    with pytest.raises(UnknownRecord):
        filled.redactions.redact_case("nowhere", by="Ada", reason="r")
    with pytest.raises(InputError, match="reason is missing"):
        filled.redactions.redact_case("case-1", by="Ada", reason=" ")
    assert filled.cases.get("case-1") == a_secret_case()
    filled.redactions.redact_case("case-1", by="Ada", reason="r")
    with pytest.raises(StoreError, match="already"):
        filled.redactions.redact_case("case-1", by="Ada", reason="r")


def test_a_redaction_that_is_broken_off_leaves_everything(filled: Store) -> None:
    def fails() -> None:
        with filled.transaction():
            filled.redactions.redact_case("case-1", by="Ada", reason="r")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert filled.cases.get("case-1") == a_secret_case()
    assert filled.runs.get("run-1").final_answer
    assert filled.check().ok


def test_an_acceptance_by_policy_stays_in_the_log_of_a_redacted_case(store: Store) -> None:
    case = a_secret_case()
    store.cases.add(case)
    run = a_run(case, needs_review=False)
    store.runs.finish(run)
    store.decisions.append(accepted(run))
    assert store.redactions.redact_case("case-1", by="Ada", reason="r").entries == 0
    entry = store.decisions.get(store.decisions.entries().rows[-1].id).decision
    assert entry is not None
    assert entry.model_copy(update={"about": None}) == accepted(run)
    assert store.cases.summary("case-1").state == "redacted"
    assert store.check().ok


def test_an_entry_of_either_log_is_redacted_by_its_id(filled: Store) -> None:
    entry = filled.decisions.entries().rows[0]
    assert filled.redactions.redact_entry(entry.id, by="Ada", reason="name").decision is not None
    assert filled.decisions.get(entry.id).decision is None
    screened(filled, abstracts(0, 2))
    said = filled.screening_log.append(says("keep"))
    filled.redactions.redact_entry(said.id, by="Ada", reason="name")
    assert filled.screening_log.verify().redacted == 1
    with pytest.raises(UnknownRecord):
        filled.redactions.redact_entry("nothing", by="Ada", reason="name")
