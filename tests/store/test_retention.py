"""What retention removes and redaction takes out, what they never touch, what is left, and the
record of it.
"""

from __future__ import annotations

import hashlib
import io
import json
import threading
import time
from pathlib import Path

import pytest

from masis.datasets.writers.lines import write_line
from masis.errors import InputError, Removed, StoreError, UnknownRecord
from masis.schema.audit import Draft
from masis.schema.case import Case
from masis.schema.retention import RetentionRule
from masis.schema.run import Run
from masis.schema.screening import ScreeningDecision
from masis.store import Store
from masis.store.core import connections
from masis.store.core.connections import connect
from masis.store.core.process_owner import Owner
from masis.store.records import CaseFilter, DecisionFilter
from masis.store.retention import removal
from masis.store.reviews.placeholder import REDACTED
from tests.store.factories import (
    JUDGE,
    SETTINGS,
    a_case,
    a_decision,
    a_run,
    acceptance_of,
    an_event,
    an_iteration,
    an_undo,
)
from tests.waiting import PATIENCE_S

OLD, NEW, CUTOFF = (
    "2026-01-01T10:00:01.000Z",
    "2026-03-01T10:00:01.000Z",
    "2026-02-01T00:00:00.000Z",
)
SECRET = "Kastellaun lies on a ridge of slate"
RULE = RetentionRule(cutoff=CUTOFF, days=30, waiting=False)
ALL = RetentionRule(cutoff=CUTOFF, days=30, decided=True, waiting=True)


def run_of(
    store: Store,
    name: str,
    *,
    at: str = OLD,
    run: str = "",
    waits: bool = False,
    text: str = SECRET,
) -> Run:
    """A finished run of a case of this name, with two iterations and an event."""
    case = a_case(name)
    store.cases.add(case)
    run_id = run or f"run-{name}"
    store.runs.start(
        run_id, case_id=name, case_digest=case.digest(), models={"critic": "m"}, settings=SETTINGS
    )
    store.runs.append_event(an_event(case, run_id, message=f"event of {text}"))
    made = a_run(
        case,
        run_id,
        iterations=(
            an_iteration(1, f"{text} [1]."),
            an_iteration(2, f"{text}, revised [1].", quality=0.6),
        ),
        finished_at=at,
        models={"critic": "m"},
        needs_review=waits,
        review_reasons=a_run(case).review_reasons if waits else (),
    )
    store.runs.finish(made)
    return made


def purge(store: Store, rule: RetentionRule = RULE) -> set[str]:
    """The ids of the runs that went."""
    done = store.retention.remove(rule, by="Ada", how="command")
    return (
        {removal.id for removal in store.purges.removals(done.seq) if removal.kind == "run"}
        if done
        else set()
    )


def planned_ids(store: Store, rule: RetentionRule = RULE) -> set[str]:
    return {
        candidate.id for candidate in store.retention.plan(rule).goes if candidate.kind == "run"
    }


@pytest.fixture
def mixed(store: Store) -> Store:
    """One run of every kind, all of them old but one."""
    store.decisions.append(acceptance_of(run_of(store, "accepted")))
    run_of(store, "waits", waits=True)
    run_of(store, "again", run="superseded", waits=True)
    run_of(store, "again", run="newest", at=NEW)
    run_of(store, "decided")
    store.decisions.append(a_decision(a_case("decided"), "run-decided"))
    run_of(store, "undone", waits=True)
    entry = store.decisions.append(a_decision(a_case("undone"), "run-undone"))
    store.decisions.append(an_undo(a_case("undone"), entry.id))
    run_of(store, "unnamed", waits=True)
    store.decisions.append(a_decision(a_case("unnamed"), None, verdict="escalate"))
    case = a_case("cut")
    store.cases.add(case)
    store.runs.start(
        "cut",
        case_id="cut",
        case_digest=case.digest(),
        models={},
        settings=SETTINGS,
        started_at=OLD,
    )
    store.runs.save_draft("cut", Draft(answer=SECRET, judged_by=JUDGE))
    store.runs.save_iteration("cut", an_iteration(1, SECRET))
    store.runs.abandon("cut", "Ctrl-C")
    store.database.execute("UPDATE jobs SET ended_at = ? WHERE id = 'cut'", [OLD])
    return store


@pytest.mark.spec("REQ-CRITIC-COMP-002", "REQ-CRITIC-SEC-004")
def test_old_runs_are_purged_except_decided_and_waiting_ones(
    mixed: Store,
) -> None:
    plan = mixed.retention.plan(RULE)
    assert planned_ids(mixed) == {"run-accepted", "superseded", "cut"}
    assert plan.kept == {"decided": 3, "waiting": 1}
    assert (plan.runs_in_all, plan.parts.iterations, plan.parts.drafts, plan.parts.events) == (
        8,
        5,
        1,
        2,
    )
    assert purge(mixed) == {"run-accepted", "superseded", "cut"}
    assert planned_ids(mixed) == set()
    check = mixed.check()
    assert check.ok, check.problems


@pytest.mark.parametrize(
    ("rule", "more"),
    [
        (RULE.model_copy(update={"waiting": True}), {"run-waits"}),
        (RULE.model_copy(update={"decided": True}), {"run-decided", "run-undone", "run-unnamed"}),
        (ALL, {"run-waits", "run-decided", "run-undone", "run-unnamed"}),
    ],
)
def test_decided_runs_are_purged_only_on_request(
    mixed: Store, rule: RetentionRule, more: set[str]
) -> None:
    # an undone decision leaves its case waiting: its run is kept as the decision's, which it rested
    # on
    assert purge(mixed, rule) == {"run-accepted", "superseded", "cut"} | more
    check = mixed.check()
    assert check.ok, check.problems
    assert mixed.decisions.verify().intact
    assert mixed.decisions.entries(DecisionFilter(case_id="decided")).total == 1


def test_a_running_audit_is_never_purged(store: Store) -> None:
    case = a_case()
    store.cases.add(case)
    nobody_knows = Owner("elsewhere", 1, "x")
    store.runs.start(
        "r",
        case_id=case.id,
        case_digest=case.digest(),
        models={},
        settings={},
        started_at=OLD,
        owner=nobody_knows,
    )
    assert purge(store, ALL) == set()


def test_an_unreadable_time_prevents_purging(store: Store) -> None:
    run_of(store, "odd")
    store.database.execute("UPDATE jobs SET ended_at = 'the other day'")
    assert purge(store, ALL) == set()


def test_times_with_utc_offsets_are_compared_correctly(store: Store) -> None:
    run_of(store, "before", at="2026-02-01T00:30:00+01:00")
    run_of(store, "after", at="2026-01-31T23:30:00-01:00")
    assert purge(store, ALL) == {"run-before"}


def test_a_purged_run_keeps_only_its_metrics(
    mixed: Store,
) -> None:
    before = mixed.runs.summary("run-accepted")
    purge(mixed)
    after = mixed.runs.summary("run-accepted")
    assert after.removed_at is not None
    assert not after.readable
    assert after == before.model_copy(update={"removed_at": after.removed_at, "settings": {}})
    assert mixed.cases.summary("accepted").state == "accepted"
    for ask in (mixed.runs.get, mixed.runs.progress, mixed.runs.resume):
        with pytest.raises(
            Removed, match=r"run 'run-accepted' was removed on 2026-01-01 by retention"
        ):
            ask("run-accepted")
    assert mixed.runs.events("run-accepted") == ()
    assert mixed.runs.in_state("interrupted") == ()
    case = a_case("accepted")
    assert mixed.runs.find(case.id, "finished", case.digest(), SETTINGS) is None


def test_a_case_without_runs_can_be_audited_again(
    mixed: Store,
) -> None:
    before = mixed.cases.summary("waits")
    purge(mixed, ALL)
    after = mixed.cases.summary("waits")
    assert (before.state, after.state) == ("needs_review", "new")
    assert after.version > before.version
    assert mixed.cases.get("waits") == a_case("waits")
    assert mixed.cases.summary("cut").state == "new"
    assert mixed.cases.summary("decided").state == "approved"


def test_a_purged_run_cant_be_decided_but_its_entry_can_be_undone(
    mixed: Store,
) -> None:
    purge(mixed)
    with pytest.raises(Removed, match="Audit the case again"):
        mixed.decisions.append(a_decision(a_case("accepted"), "run-accepted"))
    entry = mixed.decisions.current("accepted")
    undo = an_undo(a_case("accepted"), entry.id).model_copy(update={"run_id": "run-accepted"})
    mixed.decisions.append(undo)
    assert mixed.cases.summary("accepted").state == "new"
    assert mixed.check().ok


@pytest.mark.spec("REQ-CRITIC-COMP-001")
def test_execution_log_and_figures_outlive_purged_runs(mixed: Store) -> None:
    before = list(mixed.executions.iterate())
    purge(mixed, ALL)
    assert list(mixed.executions.iterate()) == before
    assert {run.run_id for run in before} >= {"run-accepted", "superseded", "cut"}


def test_a_purge_is_logged_without_content(
    mixed: Store,
) -> None:
    plan = mixed.retention.plan(RULE)
    done = mixed.retention.remove(RULE, by="Grace", how="page")
    assert mixed.purges.history() == (done,)
    assert (done.by, done.how, done.rule, done.runs) == ("Grace", "page", RULE, 3)
    assert (done.parts, done.bytes) == (plan.parts, plan.bytes)
    assert {removal.id: removal.bytes for removal in mixed.purges.removals(done.seq)} == {
        candidate.id: candidate.bytes for candidate in plan.goes
    }
    told = json.dumps(
        [done.model_dump(), *(removal.model_dump() for removal in mixed.purges.removals(done.seq))]
    )
    assert SECRET not in told
    assert mixed.retention.remove(RULE, by="Grace", how="page") is None
    assert len(mixed.purges.history()) == 1


def test_a_runs_digest_matches_its_exported_line(mixed: Store) -> None:
    line = io.BytesIO()
    write_line(mixed.runs.get("run-accepted").model_dump_json(), line)
    purge(mixed)
    digests = {removal.id: removal.digest for removal in mixed.purges.removals(1)}
    assert (
        digests["run-accepted"] == hashlib.sha256(line.getvalue().removesuffix(b"\n")).hexdigest()
    )


def bytes_of(path: Path) -> bytes:
    """The file with what lies beside it."""
    files = (path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm"))
    return b"".join(file.read_bytes() for file in files if file.exists())


def test_purged_content_leaves_no_bytes_in_the_file(path: Path) -> None:
    with Store.open(path) as store:
        for number in range(30):
            run_of(store, f"case-{number}", text=f"{SECRET} {number}")
        # draft and events are kept as text, the rest is packed: its packed bytes are looked for
        connection = connect(path)
        held = [
            bytes(row[0])
            for row in connection.execute("SELECT payload FROM job_parts WHERE kind = 'iteration'")
        ]
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert SECRET.encode() in bytes_of(path)
        assert any(secret in bytes_of(path) for secret in held)
        assert len(purge(store)) == 0  # they wait for nobody, but nothing accepted them either
        assert len(purge(store, ALL)) == 30
        left = bytes_of(path)
    assert SECRET.encode() not in left
    assert not [secret for secret in held if secret in left or secret[20:60] in left]


def test_a_purge_shrinks_the_file_or_says_why_not(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(path) as store:
        for number in range(200):
            run_of(
                store,
                f"case-{number}",
                text=" ".join(f"{SECRET} {number} {word}" for word in range(200)),
            )
        purge(store, ALL)
        assert store.shrink(lambda: True).why_not == "it was stopped"
        monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", 0.05)
        with Store.open(path) as other, other.transaction():
            held = store.shrink()
            assert "another program" in held.why_not
        shrunk = store.shrink()
        assert shrunk.why_not == ""
        assert shrunk.after < shrunk.before / 2
        assert "hardly any" in store.shrink(freed=100).why_not
        assert store.check().ok


def test_a_stopped_purge_is_logged(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("masis.store.retention.removal.BATCH", 5)
    with Store.open(path) as store:
        for number in range(20):
            run_of(store, f"case-{number}")
        batches: list[int] = []
        done = store.retention.remove(
            ALL, by="Ada", how="command", on_batch=batches.append, stopped=lambda: len(batches) == 2
        )
        assert (done.runs, batches) == (10, [5, 10])
        assert store.retention.remove(ALL, by="Ada", how="command") is not None
        assert [purge.runs for purge in store.purges.history()] == [10, 10]


def test_a_full_disk_during_a_purge_is_reported(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("masis.store.retention.removal.BATCH", 5)
    with Store.open(path) as store:
        for number in range(20):
            run_of(store, f"case-{number}")

        def fill_up(done: int) -> None:
            pages = store.database.value("PRAGMA page_count")
            store.database.execute(f"PRAGMA max_page_count = {pages}")
            store.database.execute(
                "INSERT INTO store_info VALUES ('filler', hex(zeroblob(1000000)))"
            )

        with pytest.raises(
            StoreError, match=r"no room left \(database or disk is full\). Free some space"
        ):
            store.retention.remove(ALL, by="Ada", how="command", on_batch=fill_up)
        (done,) = store.purges.history()
        assert (
            done.runs
            == sum(not run.readable for n in range(20) for run in store.runs.for_case(f"case-{n}"))
            == 5
        )
        assert store.check().ok


def test_search_results_are_unchanged_after_vacuum(mixed: Store) -> None:
    before = mixed.cases.search(CaseFilter(text="bridge"))
    assert before.total
    purge(mixed, ALL)
    assert mixed.shrink().why_not == ""
    after = mixed.cases.search(CaseFilter(text="bridge"))
    assert {row.id for row in after.rows} == {row.id for row in before.rows}


def test_a_concurrent_reader_delays_erasure_and_is_reported(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("masis.store.retention.shrinking.SETTLED_WITHIN_MS", 50)
    with Store.open(path) as store:
        run_of(store, "one")
        reader = connect(path)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM job_parts").fetchone()
        purge(store, ALL)
        assert not store.settle()
        assert SECRET.encode() in bytes_of(path)
        reader.close()
        assert store.settle()
        assert SECRET.encode() not in bytes_of(path)


# Redacting a case: every text of it goes, from the file too; the chain, the verdicts and the
# figures stay

PATIENT = "Quillfeather"


def a_secret_case(case_id: str = "case-1") -> Case:
    return a_case(
        case_id,
        query=f"What ails {PATIENT}?",
        answer=f"{PATIENT} coughs [1].",
        evidence=[{"id": "1", "text": f"{PATIENT} has a cough."}],
        metadata={"field": "Medicine", "dataset": "ward", "patient": PATIENT},
    )


@pytest.fixture
def with_secret(store: Store) -> Store:
    """A case with two runs, a decision that was undone, one that stands, a draft; and
    another case.
    """
    case = a_secret_case()
    store.cases.add_many([case, a_case("other", query="Who coughs?")])
    answer = case.answer or ""
    for number in (1, 2):
        run = a_run(case, f"run-{number}", iterations=(an_iteration(1, answer=answer),))
        store.runs.start(
            run.id,
            case_id=case.id,
            case_digest=case.digest(),
            models=run.models,
            settings=run.settings,
        )
        store.runs.append_event(an_event(case, run.id))
        store.runs.finish(run)
    first = store.decisions.append(a_decision(case, "run-1", note=f"I know {PATIENT}"))
    store.decisions.append(an_undo(case, first.id, note=f"not {PATIENT}"))
    store.decisions.append(
        a_decision(case, "run-2", verdict="override", reason="r", corrected_answer=f"{PATIENT}?")
    )
    for what in ("case", "evidence", "adjudication", "comment"):
        store.drafts.save("Grace", f"{what}:case-1", {"note": f"typed about {PATIENT}"})
    store.drafts.save("Grace", "case:other", {"note": "typed about another"})
    return store


def files(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir())


def test_redacted_text_leaves_no_bytes_in_the_store(with_secret: Store, path: Path) -> None:
    with_secret.settle()
    assert PATIENT.encode() in files(path)
    done = with_secret.redactions.redact_case("case-1", by="Data protection", reason="request 17")
    assert (done.entries, done.runs, done.drafts) == (3, 2, 4)
    case = with_secret.cases.get("case-1")
    assert (case.query, case.answer, case.labels) == (REDACTED, None, None)
    assert case.metadata == {"field": "Medicine", "dataset": "ward", "redacted": True}
    for text in (PATIENT, "cough", PATIENT[:5]):
        assert "case-1" not in {
            row.id for row in with_secret.cases.search(CaseFilter(text=text)).rows
        }
    assert [row.id for row in with_secret.cases.search(CaseFilter(text="case-1")).rows] == [
        "case-1"
    ]
    assert [row.id for row in with_secret.cases.search(CaseFilter(text="coughs")).rows] == ["other"]
    assert with_secret.drafts.get("Grace", "case:case-1").values == {}
    assert with_secret.drafts.get("Grace", "case:other").values == {"note": "typed about another"}
    for run_id in ("run-1", "run-2"):
        with pytest.raises(Removed, match="its case was redacted"):
            with_secret.runs.get(run_id)
    with_secret.close()
    assert PATIENT.encode() not in files(path)
    assert PATIENT.lower().encode() not in files(path)


def test_a_redaction_is_logged_and_the_log_stays_intact(
    with_secret: Store,
) -> None:
    digest = a_secret_case().digest()
    entry = with_secret.redactions.redact_case(
        "case-1", by="Data protection", reason="request 17"
    ).entry
    found = with_secret.decisions.get(entry.id).decision
    assert (found.kind, found.reviewer, found.reason) == (
        "redaction",
        "Data protection",
        "request 17",
    )
    assert found.extra == {"redacts_case": "case-1", "digest": digest, "entries": 3, "runs": 2}
    check = with_secret.check()
    assert check.ok
    assert (check.log.length, check.log.redacted) == (7, 3)
    assert with_secret.cases.summary("case-1").state == "overridden"
    assert with_secret.cases.summary("case-1").headline is None
    (purge,) = with_secret.purges.history()
    assert (purge.by, purge.how, purge.runs) == ("Data protection", "redaction", 2)
    assert [execution.run_id for execution in with_secret.executions.iterate()] == [
        "run-1",
        "run-2",
    ]


def test_a_redacted_case_leaves_the_queue_for_good(with_secret: Store) -> None:
    other = a_case("waits")
    with_secret.cases.add(other)
    with_secret.runs.finish(a_run(other, "run-of-another"))
    assert with_secret.cases.summary("waits").state == "needs_review"
    with_secret.redactions.redact_case("waits", by="Ada", reason="r")
    assert with_secret.cases.summary("waits").state == "redacted"
    assert with_secret.cases.facets().states == {"new": 1, "overridden": 1, "redacted": 1}
    assert with_secret.cases.add(other) == "unchanged"
    assert with_secret.cases.get("waits").query == REDACTED
    with pytest.raises(Removed, match="redacted"):
        with_secret.runs.start(
            "again", case_id="waits", case_digest=other.digest(), models={}, settings={}
        )
    assert with_secret.check().ok


def test_an_impossible_redaction_is_explained(with_secret: Store) -> None:
    case = a_case("audited")
    with_secret.cases.add(case)
    with_secret.runs.start(
        "under way", case_id=case.id, case_digest=case.digest(), models={}, settings={}
    )
    with pytest.raises(StoreError, match="being audited"):
        with_secret.redactions.redact_case("audited", by="Ada", reason="r")
    with pytest.raises(UnknownRecord):
        with_secret.redactions.redact_case("nowhere", by="Ada", reason="r")
    with pytest.raises(InputError, match="reason is missing"):
        with_secret.redactions.redact_case("case-1", by="Ada", reason=" ")
    assert with_secret.cases.get("case-1") == a_secret_case()
    with_secret.redactions.redact_case("case-1", by="Ada", reason="r")
    with pytest.raises(StoreError, match="already"):
        with_secret.redactions.redact_case("case-1", by="Ada", reason="r")


def test_an_interrupted_redaction_changes_nothing(with_secret: Store) -> None:
    def fail() -> None:
        with with_secret.transaction():
            with_secret.redactions.redact_case("case-1", by="Ada", reason="r")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert with_secret.cases.get("case-1") == a_secret_case()
    assert with_secret.runs.get("run-1").final_answer
    assert with_secret.check().ok


def test_redaction_keeps_the_logged_acceptance(store: Store) -> None:
    case = a_secret_case()
    store.cases.add(case)
    run = a_run(case, needs_review=False)
    store.runs.finish(run)
    store.decisions.append(acceptance_of(run))
    assert store.redactions.redact_case("case-1", by="Ada", reason="r").entries == 0
    entry = store.decisions.get(store.decisions.entries().rows[-1].id).decision
    assert entry.model_copy(update={"about": None}) == acceptance_of(run)
    assert store.cases.summary("case-1").state == "redacted"
    assert store.check().ok


def test_entries_of_both_logs_are_redacted_by_id(with_secret: Store) -> None:
    entry = with_secret.decisions.entries().rows[0]
    assert (
        with_secret.redactions.redact_entry(entry.id, by="Ada", reason="name").decision is not None
    )
    assert with_secret.decisions.get(entry.id).decision is None
    said = with_secret.screening_log.append(
        ScreeningDecision(kind="memory_reset", reviewer="Ada", screening_id=None, reason="drift")
    )
    with_secret.redactions.redact_entry(said.id, by="Ada", reason="name")
    assert with_secret.screening_log.verify().redacted == 1
    with pytest.raises(UnknownRecord):
        with_secret.redactions.redact_entry("nothing", by="Ada", reason="name")


# Many runs, half of them decided, and others at work in the meantime

TEXT = " ".join(
    f"In the year {number} the bridge over the river {number * 7919 % 1009} was opened."
    for number in range(30)
)


def fill(store: Store, runs: int) -> None:
    """Old runs in turn decided by a person and accepted by policy, every one with two iterations
    and six events.
    """
    for start in range(0, runs, 200):
        with store.transaction():
            for number in range(start, min(start + 200, runs)):
                case = a_case(f"case-{number}")
                store.cases.add(case)
                its = (
                    an_iteration(1, f"{TEXT} {number} [1]."),
                    an_iteration(2, f"{TEXT} {number}, better [1]."),
                )
                run = a_run(
                    case, f"run-{number}", iterations=its, needs_review=False, review_reasons=()
                )
                store.runs.start(
                    run.id,
                    case_id=case.id,
                    case_digest=case.digest(),
                    models=run.models,
                    settings=SETTINGS,
                )
                store.runs.append_events(an_event(case, run.id, seq=seq) for seq in range(1, 7))
                store.runs.finish(run)
                store.decisions.append(
                    acceptance_of(run) if number % 2 else a_decision(case, run.id)
                )


@pytest.mark.slow
def test_a_run_decided_during_a_purge_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "BATCH", 1)
    with Store.open(path) as store:
        fill(store, 6)

        def decide(done: int) -> None:
            if done == 1:
                store.decisions.append(
                    a_decision(a_case("case-3"), "run-3", verdict="reject", reason="no")
                )

        made = store.retention.remove(RULE, by="Ada", how="command", on_batch=decide)
        assert [removal.id for removal in store.purges.removals(made.seq)] == ["run-1", "run-5"]
        assert store.runs.get("run-3").final_answer


@pytest.mark.slow
def test_a_purge_pauses_between_batches(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "BATCH", 10)
    breaths: list[float] = []
    with Store.open(path) as store:
        fill(store, 60)
        monkeypatch.setattr("masis.store.retention.removal.time.sleep", breaths.append)
        begun = time.monotonic()
        assert store.retention.remove(RULE, by="Ada", how="command") is not None
        took = time.monotonic() - begun
    assert len(breaths) == 3
    assert 0 < sum(breaths) <= took * removal.BREATH


@pytest.mark.slow
def test_writers_can_proceed_between_purge_batches(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "BATCH", 10)
    with Store.open(path) as store:
        fill(store, 60)
        entered = threading.Event()

        def write_meanwhile() -> None:
            with store.transaction():
                entered.set()
                store.cases.add(a_case("meanwhile"))

        def on_batch(done: int) -> None:
            if done == 10:
                thread = threading.Thread(target=write_meanwhile)
                thread.start()
                thread.join(PATIENCE_S)
                assert entered.is_set()

        assert store.retention.remove(RULE, by="Ada", how="command", on_batch=on_batch)
        assert store.cases.get("meanwhile")
