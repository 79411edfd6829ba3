"""Decisions are appended and chained; what someone who can write the file alters is seen, and by
which check.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest

from masis.errors import InputError, StaleVersion, StoreError, UnguardedLog, UnknownRecord
from masis.schema.case import Case
from masis.schema.labels import TargetLabel
from masis.schema.preference import PreferenceDecision
from masis.schema.retention import RetentionRule
from masis.schema.review import LogEntry
from masis.schema.screening import ScreeningDecision
from masis.schema.team import QueuePolicy
from masis.store import Store
from masis.store.core.guards import GUARDS
from masis.store.records import DecisionFilter
from masis.store.reviews import subjects
from tests.store.factories import a_case, a_decision, a_run, acceptance_of, an_audited_case, an_undo
from tools import tamper


@pytest.fixture
def case(store: Store) -> Case:
    """A case with a finished run."""
    return an_audited_case(store, a_case())


def state(store: Store, case: Case) -> str:
    return store.cases.summary(case.id).state


def test_a_decision_round_trips_and_changes_the_state(store: Store, case: Case) -> None:
    decision = a_decision(
        case,
        verdict="override",
        reason="wrong",
        note="“Zażółć” \U0001f600",
        corrected_answer="It is green.",
        labels=(TargetLabel(target="reference", start=1, end=2, text="7", label="fabricated"),),
        machine_shown=("scores", "marks"),
        iteration=1,
        versions={"app": "0.1.0"},
        extra={"seconds": 12.5},
    )
    entry = store.decisions.append(decision, "2026-02-01T00:00:00.000Z")
    given = entry.decision.model_copy(update={"about": None})
    assert (entry.seq, entry.at, given) == (1, "2026-02-01T00:00:00.000Z", decision)
    assert store.decisions.current("case-1") == entry
    assert store.decisions.get(entry.id) == entry
    summary = store.cases.summary("case-1")
    assert (summary.state, summary.reviewer, summary.updated_at) == ("overridden", "Ada", entry.at)


def test_the_documented_digests_can_be_recomputed(store: Store, case: Case) -> None:
    first = store.decisions.append(a_decision(case))
    second = store.decisions.append(a_decision(case, verdict="reject", reason="r"))
    payload = json.dumps(
        first.decision.model_dump(mode="json"),
        ensure_ascii=False,
        sort_keys=True,
        separators=(",", ":"),
    )
    assert hashlib.sha256(payload.encode()).hexdigest() == first.payload_digest
    line = f"1\n{first.at}\n{first.payload_digest}\n{'0' * 64}"
    assert hashlib.sha256(line.encode()).hexdigest() == first.digest
    assert (second.previous, first.id) == (first.digest, first.digest[:24])
    assert store.decisions.head() == (2, second.digest)


def test_one_token_makes_one_decision(store: Store, case: Case) -> None:
    entries = {store.decisions.append(a_decision(case, token="t-1")).id for _ in range(3)}
    assert len(entries) == 1
    assert store.decisions.entries().total == 1
    with pytest.raises(StoreError, match="token"):
        store.decisions.append(an_undo(case, entries.pop(), token="t-1"))


def test_undo_restores_the_previous_decision_or_the_audit(store: Store, case: Case) -> None:
    first = store.decisions.append(a_decision(case))
    second = store.decisions.append(a_decision(case, verdict="escalate"))
    assert state(store, case) == "escalated"
    store.decisions.append(an_undo(case, second.id))
    assert (state(store, case), store.decisions.current("case-1")) == ("approved", first)
    store.decisions.append(an_undo(case, first.id))
    assert (state(store, case), store.decisions.current("case-1")) == ("needs_review", None)
    assert store.cases.summary("case-1").reviewer is None
    assert store.decisions.entries().total == 4


def test_only_the_current_entry_can_be_undone(store: Store, case: Case) -> None:
    first = store.decisions.append(a_decision(case))
    store.decisions.append(a_decision(case, verdict="escalate"))
    with pytest.raises(StoreError, match="case 'case-1' no longer depends on that decision"):
        store.decisions.append(an_undo(case, first.id))
    with pytest.raises(UnknownRecord, match="no entry 'nothing'"):
        store.decisions.append(an_undo(case, "nothing"))
    store.cases.add(a_case("other"))
    with pytest.raises(StoreError, match="case 'other' no longer depends on that decision"):
        store.decisions.append(an_undo(a_case("other"), first.id))


def test_a_decision_without_a_case_is_rejected(store: Store, case: Case) -> None:
    store.cases.add(a_case("other"))
    with pytest.raises(UnknownRecord, match="no case"):
        store.decisions.append(a_decision(a_case("nowhere")))
    with pytest.raises(UnknownRecord, match="no run"):
        store.decisions.append(a_decision(case, "nothing"))
    with pytest.raises(StoreError, match="doesn't belong to case"):
        store.decisions.append(a_decision(a_case("other"), "run-1"))
    with pytest.raises(UnknownRecord, match="no iteration 9"):
        store.decisions.append(a_decision(case, iteration=9))
    assert store.decisions.entries().total == 0


def test_a_stale_decision_is_rejected(store: Store, case: Case) -> None:
    seen = store.cases.summary("case-1").version
    store.decisions.append(a_decision(case, reviewer="Grace"), seen_version=seen)
    with pytest.raises(StaleVersion, match="has changed since you opened it"):
        store.decisions.append(a_decision(case), seen_version=seen)


def test_unstorable_text_is_rejected_before_writing(store: Store, case: Case) -> None:
    with pytest.raises(InputError):
        store.decisions.append(a_decision(case, extra={"note": "\ud800"}))
    with pytest.raises(InputError, match="null byte"):
        store.decisions.append(a_decision(case, reviewer="A\x00da"))
    assert store.decisions.entries().total == 0


def test_the_log_can_be_filtered_and_paged(store: Store, case: Case) -> None:
    other = a_case("other")
    store.cases.add(other)
    for index in range(7):
        store.decisions.append(a_decision(case, reviewer="Ada" if index % 2 else "Grace"))
    last = store.decisions.append(a_decision(other, None, verdict="escalate"))
    page = store.decisions.entries(DecisionFilter(case_id="case-1", size=3, page=2))
    assert ([entry.seq for entry in page.rows], page.total) == ([4, 3, 2], 7)
    assert store.decisions.entries(DecisionFilter(reviewers=("Ada",))).total == 4
    assert store.decisions.entries(DecisionFilter(verdicts=("escalate",))).rows == (last,)
    assert (
        store.decisions.entries(DecisionFilter(run_id="run-1", newest_first=False)).rows[0].seq == 1
    )
    assert store.decisions.entries(DecisionFilter(since=last.at)).rows == (last,)
    assert store.decisions.entries(DecisionFilter(until=last.at, kinds=("decision",))).total == 7
    assert (
        store.decisions.entries(DecisionFilter(reviewers=("'; DROP TABLE decision_log; --",))).total
        == 0
    )
    assert [entry.seq for entry in store.decisions.iterate()] == list(range(1, 9))


def test_a_redacted_decision_still_counts(store: Store, case: Case) -> None:
    entry = store.decisions.append(a_decision(case))
    redaction = store.decisions.redact(entry.id, by="Grace", reason="name")
    assert (state(store, case), store.cases.summary("case-1").reviewer) == ("approved", None)
    with pytest.raises(StoreError, match="already"):
        store.decisions.redact(entry.id, by="Grace", reason="again")
    with pytest.raises(StoreError, match="already"):
        store.decisions.redact(redaction.id, by="Grace", reason="hide it")
    store.decisions.append(an_undo(case, entry.id))
    assert state(store, case) == "needs_review"


@pytest.fixture
def every_log(store: Store, case: Case) -> Store:
    """A store with an entry in each of its logs."""
    store.decisions.append(a_decision(case))
    store.screening_log.append(
        ScreeningDecision(kind="memory_reset", reviewer="Ada", screening_id=None, reason="drift")
    )
    store.team.put_in_force("Ada", QueuePolicy(reviewers=2))
    for system in ("v1", "v2"):
        store.cases.add(a_case(f"q:{system}", metadata={"system": system}))
    store.preference_log.append(
        PreferenceDecision(
            reviewer="Ada", left_case="q:v1", right_case="q:v2", seed=1, verdict="left"
        )
    )
    an_audited_case(store, a_case("old"), "run-old", needs_review=False)
    store.retention.remove(
        RetentionRule(cutoff="2026-02-01T00:00:00.000Z", days=0), by="Ada", how="command"
    )
    return store


SAME_ID = "SELECT 2, " + ", ".join(
    "id at payload_digest previous digest case_seq run_seq kind source verdict token undoes "
    "redacts queue".split()
)


@pytest.mark.parametrize(
    "guard", [guard for guards in GUARDS.values() for guard in guards if "_no_update" in guard]
)
def test_triggers_protect_each_log_on_every_connection(
    every_log: Store, path: Path, guard: str
) -> None:
    table = guard.removesuffix("_no_update")
    key, columns = (
        ("entry_seq", "entry_seq, reviewer, payload")
        if table.endswith("_payloads")
        else ("seq", "*")
    )
    raw = sqlite3.connect(path)
    for statement in (
        f"UPDATE {table} SET {key} = {key}",
        f"DELETE FROM {table}",
        f"INSERT OR REPLACE INTO {table} SELECT {columns} FROM {table} WHERE {key} = 1",
        *(
            [f"REPLACE INTO {table} {SAME_ID} FROM {table} WHERE seq = 1"]
            if table == "decision_log"
            else []
        ),
    ):
        with pytest.raises(sqlite3.IntegrityError, match=r"only grows|never|only by a redaction"):
            raw.execute(statement)
    raw.close()
    assert every_log.check().ok


def tamper_with(path: Path, *statements: str) -> None:
    """Alter rows the way somebody with the file and no scruples would, guards back in place
    afterwards.
    """
    raw = sqlite3.connect(path)
    guards = raw.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in guards:
        raw.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        raw.execute(statement)
    for _, sql in guards:
        raw.execute(sql)
    raw.commit()
    raw.close()


PAYLOAD = "(SELECT replace(payload, 'Ada', 'Eve') FROM decision_payloads WHERE entry_seq = 2)"


@pytest.mark.parametrize(
    ("statement", "named", "said"),
    [
        (
            f"UPDATE decision_payloads SET payload = {PAYLOAD} WHERE entry_seq = 2",
            2,
            "another digest",
        ),
        (
            "UPDATE decision_log SET verdict = 'approve' WHERE seq = 2",
            2,
            "verdict 'approve' where 'reject'",
        ),
        ("UPDATE decision_log SET kind = 'undo' WHERE seq = 2", 2, "kind 'undo'"),
        (
            "UPDATE decision_payloads SET reviewer = 'Eve' WHERE entry_seq = 2",
            2,
            "the reviewer 'Eve'",
        ),
        (
            "UPDATE decision_log SET at = '1999' WHERE seq = 2",
            2,
            "doesn't match its number, time and content",
        ),
        ("UPDATE decision_log SET id = 'zzz' WHERE seq = 2", 2, "its id doesn't match"),
        ("DELETE FROM decision_payloads WHERE entry_seq = 2", 2, "no redaction explains it"),
        ("DELETE FROM decision_log WHERE seq = 2", 3, "entries 2 to 2 before it are missing"),
        ("DELETE FROM decision_log WHERE seq = 2", 2, "but its content is still stored"),
        ("DELETE FROM decision_log WHERE seq = 1", 2, "entries 1 to 1 before it are missing"),
        (
            "UPDATE decision_log SET digest = 'f' WHERE seq = 2",
            3,
            "doesn't continue the entry before it",
        ),
        ("UPDATE decision_log SET run_seq = NULL WHERE seq = 2", 2, "run_id None where 'run-1'"),
    ],
)
def test_a_tampered_entry_is_named_with_its_problem(
    store: Store, case: Case, path: Path, statement: str, named: int, said: str
) -> None:
    entries: list[LogEntry] = []
    for verdict in ("approve", "reject", "escalate", "approve"):
        entries.append(store.decisions.append(a_decision(case, verdict=verdict, reason="r")))
    store.close()
    tamper_with(path, "PRAGMA foreign_keys = OFF", statement)
    check = store.decisions.verify()
    assert not check.intact
    assert any(
        text.startswith(f"entry {named} (") and said in text for text in check.broken
    ) or any(text.startswith(f"entry {named}:") and said in text for text in check.broken), (
        check.broken
    )
    assert not any(text.startswith(("entry 1 ", "entry 4 ")) for text in check.broken)
    assert not store.check().ok


def test_tampering_with_a_redacted_entry_is_detected(store: Store, case: Case, path: Path) -> None:
    entry = store.decisions.append(a_decision(case))
    store.decisions.redact(entry.id, by="Grace", reason="name")
    store.close()
    tamper_with(path, "UPDATE decision_log SET verdict = 'reject' WHERE seq = 1")
    assert any("than its redaction (entry 2)" in text for text in store.decisions.verify().broken)


def test_text_put_into_a_redacted_case_is_named(store: Store, case: Case, path: Path) -> None:
    original = store.database.value("SELECT payload FROM case_payloads WHERE case_seq = 1")
    store.redactions.redact_case(case.id, by="Grace", reason="name")
    assert store.decisions.check_subjects().broken == ()
    store.close()
    quoted = original.replace("'", "''")
    tamper_with(path, f"UPDATE case_payloads SET payload = '{quoted}' WHERE case_seq = 1")
    assert store.decisions.check_subjects().broken == (
        "case 'case-1' is redacted, but holds text that was added later",
    )


@pytest.mark.parametrize("table", ["decision_log", "decision_payloads", "cases", "case_work"])
def test_a_trigger_of_another_program_is_rejected_until_it_is_removed(
    store: Store, case: Case, path: Path, table: str
) -> None:
    store.close()
    raw = sqlite3.connect(path)
    raw.execute(f"CREATE TRIGGER quiet BEFORE INSERT ON {table} BEGIN SELECT RAISE(IGNORE); END")
    raw.close()
    with pytest.raises(UnguardedLog, match=r"\(quiet\).*verify-log.*--rearm"):
        Store.open(path)
    with Store.open(path, unguarded="open") as looking:
        [broken] = looking.decisions.check_subjects().broken
        assert broken.startswith("trigger quiet is in the schema of the database")
    Store.open(path, unguarded="rearm").close()
    Store.open(path).close()


@pytest.mark.parametrize(
    ("table", "event"),
    [("decision_log", "INSERT"), ("decision_payloads", "INSERT"), ("cases", "UPDATE")],
)
def test_a_decision_that_is_not_stored_is_an_error(
    store: Store, case: Case, path: Path, table: str, event: str
) -> None:
    """The trigger is added while the database is open, so opening can't refuse it."""
    raw = sqlite3.connect(path)
    raw.execute(f"CREATE TRIGGER quiet BEFORE {event} ON {table} BEGIN SELECT RAISE(IGNORE); END")
    raw.close()
    with pytest.raises(StoreError, match="Nothing was recorded"):
        store.decisions.append(a_decision(case))
    assert store.decisions.head().length == 0
    assert state(store, case) == "needs_review"


def test_a_database_without_its_triggers_is_rejected_until_repaired(
    store: Store, case: Case, path: Path
) -> None:
    store.close()
    raw = sqlite3.connect(path)
    raw.execute("DROP TRIGGER decision_log_no_update")
    raw.close()
    with pytest.raises(UnguardedLog, match=r"decision_log_no_update.*verify-log.*--rearm"):
        Store.open(path)
    with Store.open(path, unguarded="open") as looking:
        check = looking.decisions.verify()
        assert check.broken == (
            (
                "the decision log has lost its triggers, so entries could be altered"
                " (decision_log_no_update)"
            ),
        )
    Store.open(path, unguarded="rearm").close()
    Store.open(path).close()


# What someone who can write the file can alter, and which check detects it; what is not checkable
# is no problem

ROOT = Path(__file__).resolve().parents[2]
KEY = tamper.KEY


def test_an_unaltered_log_is_intact(original: Path, tmp_path: Path) -> None:
    with Store.open(original) as store:
        assert (
            tamper.detect(
                tamper.attack(original, tmp_path, lambda _: None), store.decisions.head()
            ).names()
            == []
        )
        assert store.decisions.check_subjects().checked == 6
        assert store.screening_log.check_subjects().checked == tamper.HAS_SCREENING
        assert store.check_signatures(KEY).signed == 6 + tamper.HAS_SCREENING


def test_an_entry_older_than_its_predecessor_is_named(store: Store) -> None:
    store.cases.add(a_case())
    for at in ("2026-01-02T10:00:00.000Z", "2026-01-02T09:00:00.000Z", "2026-01-02T11:00:00.000Z"):
        store.decisions.append(a_decision(a_case(), None), at=at)
    check = store.decisions.verify()
    assert check.intact
    assert [said.partition(" (")[0] for said in check.set_back] == ["entry 2"]


@pytest.mark.parametrize("attack", tamper.ATTACKS, ids=[row.name for row in tamper.ATTACKS])
def test_attacks_are_detected_as_documented(
    original: Path, tmp_path: Path, attack: tamper.Attack
) -> None:
    with Store.open(original) as store:
        noted = store.decisions.head()
    found = tamper.detect(tamper.attack(original, tmp_path, attack.change), noted).names()
    assert (attack.detected_by in found) if attack.detected_by else not found
    if attack.detected_by == "note":
        assert found == ["note"], (
            "were it found by anything else, the page would ask for a note in vain"
        )
    if attack.detected_by == "signatures":
        assert "chain" not in found, (
            "a chain that was computed anew verifies: that is what the key is for"
        )
    line = f"| {attack.name} | {tamper.WORDS[attack.detected_by]} |"
    assert line in (ROOT / "docs/security.md").read_text(encoding="utf-8")


def test_redacted_and_purged_content_doesnt_break_the_log(store: Store) -> None:
    entries = []
    for name in ("removed", "redacted", "entry", "stays"):
        case = an_audited_case(store, a_case(name), f"run-{name}")
        entries.append(store.decisions.append(a_decision(case, f"run-{name}")))
    run = a_run(a_case("policy"), "run-policy", needs_review=False)
    store.cases.add(a_case("policy"))
    store.runs.finish(run)
    policy = store.decisions.append(acceptance_of(run))
    store.redactions.redact_case("policy", by="Ada", reason="r")
    store.redactions.redact_case("redacted", by="Ada", reason="r")
    store.redactions.redact_entry(entries[2].id, by="Ada", reason="r")
    rule = RetentionRule(cutoff="2026-01-02T00:00:00.000Z", days=0, decided=True)
    with store.database.transaction() as connection:
        connection.execute(
            "UPDATE jobs SET ended_at = '2026-02-01T00:00:00.000Z' WHERE id = 'run-stays'"
        )
    store.retention.remove(rule, by="Ada", how="command")
    found = store.decisions.check_subjects()
    assert found.broken == ()
    assert found.checked == 1
    assert found.not_checkable == {
        subjects.REMOVED_RUN: 1,
        "redacted": 2,
        subjects.REDACTED_CASE: 1,
    }
    assert policy.decision is not None


def test_tampering_before_a_purge_shows_in_the_purge_record(
    store: Store,
) -> None:
    case = an_audited_case(store, a_case())
    store.decisions.append(a_decision(case))
    with store.database.transaction() as connection:
        tamper._repack(
            connection, "job_parts", "job_seq = 1 AND kind = 'iteration'", "1932", "1933"
        )
    store.retention.remove(
        RetentionRule(cutoff="2026-01-02T00:00:00.000Z", days=0, decided=True),
        by="Ada",
        how="command",
    )
    [problem] = store.decisions.check_subjects().broken
    assert "the record of removals has another digest" in problem
