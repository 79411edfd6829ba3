"""Make every attack of ``ATTACKS`` on a database file, and show which check detects it.

    python tools/tamper.py            prints the table of docs/security.md

Each attack alters a copy of a database with three audited and decided cases, one that was decided
in a named queue, one that waits for another reviewer, and two undecided ones. The attacker can
write the file and knows the schema, so the triggers are dropped first and restored afterward. Then
the copy is checked as `masis verify-log` does: without a key, with the key, and against a head
noted earlier.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.review import Decision
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.services.decision_rules import seen_issues
from masis.services.jobs import job_kinds
from masis.settings import Settings
from masis.store import Store
from masis.store.core import guards
from masis.store.core.chained_log import canonical_json, place_after, sha256
from masis.store.core.signatures import sign
from masis.store.jobs import pack, unpack
from masis.store.records import CaseFilter, LogHead

KEY = b"0123456789abcdef0123456789abcdef"
ADA = Actor(name="Ada Lind")
HAS_SCREENING = "screening" in job_kinds()
SCREENED = "Does velotarine lower blood pressure in adults with resistant hypertension?"

Change = Callable[[sqlite3.Connection], None]


class Attack(NamedTuple):
    """An alteration, and the check that detects it."""

    name: str
    detected_by: str
    change: Change


class Detection(NamedTuple):
    """The problems that each check reported for an altered database."""

    chain: tuple[str, ...]
    digests: tuple[str, ...]
    signatures: tuple[str, ...]
    note: tuple[str, ...]

    def names(self) -> list[str]:
        """Return the checks that found a problem."""
        return [name for name in self._fields if getattr(self, name)]


def build(path: Path) -> None:
    """Create the database.

    It has three audited cases (one approved, one rejected and undone, one overridden) and a
    screening with one override.
    """
    store = Store.open(path, log_key=KEY)
    workbench = Workbench(store, Settings(), path)
    for number in (1, 2, 3):
        case = Case.model_validate(
            {
                "id": f"bridge-{number}",
                "query": "How long is the bridge?",
                "answer": "The bridge is 120 metres long [1]. It was opened in 1931 [9].",
                "evidence": [{"id": "1", "text": f"Bridge {number} is 120 metres long."}],
            }
        )
        workbench.cases.add_one(ADA, case)
        run = workbench.audits.audit(ADA, case)
        serious = [issue for issue in run.iterations[0].issues if issue.major]
        verdict, answer = (("approve", None), ("reject", None), ("override", "120 metres [1]."))[
            number - 1
        ]
        entry = workbench.reviews.submit(
            ADA,
            Decision(
                reviewer=ADA.name,
                case_id=case.id,
                run_id=run.id,
                verdict=verdict,
                reason="checked",
                corrected_answer=answer,
                extra=seen_issues(serious if verdict == "approve" else ()),
            ),
        )
        if number == 2:
            workbench.reviews.undo(ADA, entry.id)
    workbench.cases.add_one(ADA, case.model_copy(update={"id": "queued"}))
    queue = workbench.queues.create(ADA, "Bridges", CaseFilter())
    workbench.reviews.submit(
        ADA,
        Decision(
            reviewer=ADA.name,
            case_id="queued",
            run_id=None,
            verdict="reject",
            reason="checked",
            queue=queue.id,
        ),
    )
    workbench.tokens.create(ADA, "nightly import", role="viewer")
    workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    for name in ("undecided", "shared", "newest"):
        workbench.cases.add_one(ADA, case.model_copy(update={"id": name}))
    workbench.reviews.submit(
        ADA,
        Decision(
            reviewer=ADA.name, case_id="shared", run_id=None, verdict="reject", reason="checked"
        ),
    )
    if HAS_SCREENING:
        _screen(workbench)
    workbench.close()


def _screen(workbench: Workbench) -> None:
    """Screen a question, and override a grade."""
    # Imported here because the workbench works without this folder.
    from masis.screening.services import corpus_service, screening_service

    corpus = corpus_service(workbench).add_demo(ADA)
    source = f"corpus:{corpus.name}"
    screening = screening_service(workbench).screen(
        ADA, SCREENED, (source,), screening_id="screening-1"
    )
    abstract = screening.grades[0].abstract_id
    screening_service(workbench).override(
        ADA, "screening-1", abstract, "recommendation", "discard", reason="off topic"
    )


def detect(path: Path, noted: LogHead) -> Detection:
    """Run all checks on a database."""
    with Store.open(path, unguarded="open") as store:
        check = store.decisions.verify()
        signed = store.check_signatures(KEY)
        subjects = (
            *store.decisions.check_subjects().broken,
            *store.screening_log.check_subjects().broken,
        )
        digests = [entry.digest for entry in _entries(store)]
    cut = len(digests) < noted.length or digests[noted.length - 1] != noted.digest
    note = ("the log was rewritten or cut off",) if cut else ()
    return Detection(check.broken, subjects, signed.broken, note)


def _entries(store: Store) -> Iterator[Any]:
    connection = sqlite3.connect(store.path)
    connection.row_factory = sqlite3.Row
    for row in connection.execute("SELECT digest FROM decision_log ORDER BY seq"):
        yield _Digest(row["digest"])
    connection.close()


class _Digest(NamedTuple):
    digest: str


def attack(original: Path, folder: Path, change: Change) -> Path:
    """Return an altered copy of a database."""
    copy = folder / "altered.db"
    for leftover in folder.glob("altered.db*"):
        leftover.unlink()
    shutil.copy(original, copy)
    connection = sqlite3.connect(copy, isolation_level=None)
    connection.row_factory = sqlite3.Row
    for name in [
        name
        for log in guards.GUARDS.values()
        for name in log
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [name]).fetchone()
    ]:
        connection.execute(f"DROP TRIGGER {name}")
    change(connection)
    if change is not drop_guards:
        guards.arm(connection)
    connection.close()
    return copy


# The attacks.


def _case(
    connection: sqlite3.Connection, alter: Callable[[dict[str, Any]], None], *, digest: bool = False
) -> None:
    [text] = connection.execute("SELECT payload FROM case_payloads WHERE case_seq = 1").fetchone()
    case = json.loads(text)
    alter(case)
    connection.execute(
        "UPDATE case_payloads SET payload = ? WHERE case_seq = 1",
        [json.dumps(case, ensure_ascii=False)],
    )
    if digest:
        new = sha256(canonical_json(case))
        connection.execute("UPDATE cases SET digest = ? WHERE seq = 1", [new])
        connection.execute("UPDATE jobs SET case_digest = ? WHERE case_seq = 1", [new])


def _repack(
    connection: sqlite3.Connection, table: str, condition: str, old_text: str, new_text: str
) -> None:
    [text] = connection.execute(f"SELECT payload FROM {table} WHERE {condition}").fetchone()
    assert old_text in unpack(text), (table, old_text)
    connection.execute(
        f"UPDATE {table} SET payload = ? WHERE {condition}",
        [pack(unpack(text).replace(old_text, new_text, 1))],
    )


def edit_question(connection: sqlite3.Connection) -> None:
    _case(connection, lambda case: case.update(query="How wide is the bridge?"))


def edit_evidence(connection: sqlite3.Connection) -> None:
    _case(connection, lambda case: case["evidence"][0].update(text="Bridge 1 is 999 metres long."))


def edit_answer_of_case(connection: sqlite3.Connection) -> None:
    _case(connection, lambda case: case.update(answer="The bridge is 999 metres long [1]."))


def edit_case_and_its_digests(connection: sqlite3.Connection) -> None:
    _case(connection, lambda case: case.update(query="How wide is the bridge?"), digest=True)


def claim_redaction(connection: sqlite3.Connection) -> None:
    """Mark a case as redacted by an entry that doesn't redact it, and edit its text."""
    connection.execute("UPDATE cases SET redaction_seq = 1 WHERE seq = 1")
    _case(connection, lambda case: case.update(query="How wide is the bridge?"), digest=True)


def redefine_column(connection: sqlite3.Connection) -> None:
    """Let every decision count as blind."""
    connection.execute("PRAGMA writable_schema = ON")
    [changed] = connection.execute(
        """UPDATE sqlite_master SET sql = replace(sql, '"machine_shown":[]', '"') WHERE name =
            'decision_payloads' RETURNING 1"""
    ).fetchall()
    assert changed
    connection.execute("PRAGMA writable_schema = OFF")


def swap_cases(connection: sqlite3.Connection) -> None:
    rows = [
        row[0]
        for row in connection.execute("SELECT payload FROM case_payloads ORDER BY case_seq LIMIT 2")
    ]
    connection.execute("UPDATE case_payloads SET payload = ? WHERE case_seq = 1", [rows[1]])
    connection.execute("UPDATE case_payloads SET payload = ? WHERE case_seq = 2", [rows[0]])


def edit_answer_of_iteration(connection: sqlite3.Connection) -> None:
    _repack(
        connection,
        "job_parts",
        "job_seq = 1 AND kind = 'iteration' AND number = 1",
        "120 metres",
        "999 metres",
    )


def edit_final_answer(connection: sqlite3.Connection) -> None:
    _repack(connection, "jobs", "seq = 1", '"final_answer":"', '"final_answer":"Not ')


def edit_result(connection: sqlite3.Connection) -> None:
    _repack(connection, "jobs", "seq = 1", '"needs_review":true', '"needs_review":false')


def empty_run(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM job_parts WHERE job_seq = 1 AND kind = 'iteration'")
    connection.execute("UPDATE jobs SET payload = NULL WHERE seq = 1")


def forge_removal(connection: sqlite3.Connection) -> None:
    connection.execute(
        "INSERT INTO purges VALUES (1, '2026-01-01T00:00:00.000Z', 'x', 'command', '{}', '0')"
    )
    connection.execute(
        "INSERT INTO purged VALUES (1, 1, 'run', (SELECT id FROM runs WHERE seq = 1), 'ab', 1,"
        " '{}')"
    )
    connection.execute("UPDATE jobs SET payload = NULL, removed_by = 1 WHERE seq = 1")


def edit_reason(connection: sqlite3.Connection) -> None:
    connection.execute(
        "UPDATE decision_payloads SET payload = replace(payload, 'checked', 'guessed')"
    )


def edit_reason_and_digest(connection: sqlite3.Connection) -> None:
    edit_reason(connection)
    for row in connection.execute("SELECT entry_seq, payload FROM decision_payloads").fetchall():
        connection.execute(
            "UPDATE decision_log SET payload_digest = ? WHERE seq = ?",
            [sha256(row["payload"]), row["entry_seq"]],
        )


def edit_verdict_column(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE decision_log SET verdict = 'reject' WHERE seq = 1")


def edit_reviewer_column(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE decision_payloads SET reviewer = 'Bob' WHERE entry_seq = 1")


def edit_time(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE decision_log SET at = '2020-01-01T00:00:00.000Z' WHERE seq = 1")


def move_entry_to_another_case(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE decision_log SET case_seq = 2 WHERE seq = 1")


def remove_entry(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("DELETE FROM decision_payloads WHERE entry_seq = 2")
    connection.execute("DELETE FROM decision_log WHERE seq = 2")


def remove_payload(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM decision_payloads WHERE entry_seq = 1")


def drop_guards(connection: sqlite3.Connection) -> None:
    """Do nothing else: every attack drops the triggers, and this one doesn't restore them."""


def set_state(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE cases SET state = 'approved', decision_seq = 1 WHERE seq = 2")


def edit_policy(connection: sqlite3.Connection) -> None:
    """Change the policy from two reviewers to one."""
    edited = "replace(payload, '\"reviewers\":2', '\"reviewers\":1')"
    changed = connection.execute(
        f"UPDATE team_records SET payload = {edited} WHERE kind = 'policy'"
    )
    assert changed.rowcount


def remove_policy(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM team_records WHERE kind = 'policy'")


def edit_work(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE case_work SET who = 'Bob' WHERE case_seq = 1")


def edit_queue_work(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE queue_work SET who = 'Ben'")


def edit_token(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE api_tokens SET role = 'admin'")


def edit_pending(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE cases SET pending = 0 WHERE id = 'shared'")


def edit_wanted(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE cases SET wanted = 3 WHERE seq = 1")


def edit_reviewer(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE cases SET reviewer = 'Bob' WHERE seq = 1")


def edit_quality(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE cases SET quality = 0.99 WHERE seq = 1")


def _delete_case(connection: sqlite3.Connection, case: str) -> None:
    connection.execute("PRAGMA foreign_keys = OFF")
    for table in ("case_payloads", "case_work", "leases"):
        connection.execute(
            f"DELETE FROM {table} WHERE case_seq = (SELECT seq FROM cases WHERE id = ?)", [case]
        )
    connection.execute("DELETE FROM cases WHERE id = ?", [case])


def delete_undecided(connection: sqlite3.Connection) -> None:
    """Delete an undecided case."""
    _delete_case(connection, "undecided")


def delete_newest(connection: sqlite3.Connection) -> None:
    """Delete the newest, undecided case, which leaves no gap in the numbers."""
    _delete_case(connection, "newest")


def empty_log(connection: sqlite3.Connection) -> None:
    """Remove every entry, but leave the cases decided."""
    connection.execute("PRAGMA foreign_keys = OFF")
    for table in ("decision_payloads", "decision_log", "log_signatures"):
        connection.execute(f"DELETE FROM {table}")


def _edit_screened(
    connection: sqlite3.Connection, column: str, old_text: str, new_text: str
) -> None:
    """Edit the abstract that an override is about, or its grade."""
    condition = "abstract_id = (SELECT abstract_id FROM screening_log WHERE kind = 'override')"
    [packed] = connection.execute(
        f"SELECT {column} FROM screening_abstracts WHERE {condition}"
    ).fetchone()
    text = unpack(packed)
    assert old_text in text, (column, old_text)
    connection.execute(
        f"UPDATE screening_abstracts SET {column} = ? WHERE {condition}",
        [pack(text.replace(old_text, new_text, 1))],
    )


def edit_abstract(connection: sqlite3.Connection) -> None:
    """Change the title of an abstract."""
    _edit_screened(connection, "abstract", '"title":"', '"title":"No ')


def edit_grade(connection: sqlite3.Connection) -> None:
    """Change the rule that graded an abstract."""
    _edit_screened(connection, "grade", '"rule":"', '"rule":"not_')


def edit_screening(connection: sqlite3.Connection) -> None:
    """Change the question in the result of a screening."""
    [packed] = connection.execute("SELECT payload FROM screenings").fetchone()
    assert SCREENED in unpack(packed)
    altered = pack(unpack(packed).replace(SCREENED, "Is it safe?"))
    connection.execute("UPDATE jobs SET payload = ? WHERE kind = 'screening'", [altered])


def _rewrite(
    connection: sqlite3.Connection, alter: Callable[[dict[str, Any], dict[str, Any]], None]
) -> None:
    """Alter entries and recompute the whole chain, as docs/running.md describes it."""
    head = LogHead(0, "0" * 64)
    rows = connection.execute(
        "SELECT log.*, payload FROM decision_log AS log JOIN decision_payloads ON entry_seq = seq"
        " ORDER BY seq"
    ).fetchall()
    for row in rows:
        entry, payload = dict(row), json.loads(row["payload"])
        alter(entry, payload)
        text = canonical_json(payload)
        place = place_after(head, entry["at"], sha256(text))
        connection.execute(
            """UPDATE decision_log SET id = ?, at = ?, payload_digest = ?, previous = ?, digest = ?, verdict = ?
               WHERE seq = ?""",
            [
                place.id,
                place.at,
                place.payload_digest,
                place.previous,
                place.digest,
                payload["verdict"],
                place.seq,
            ],
        )
        if payload["undoes"] is not None:
            [payload["undoes"]] = connection.execute(
                "SELECT id FROM decision_log WHERE seq = ?", [row["undoes"]]
            ).fetchone()
            text = canonical_json(payload)
            place = place_after(head, entry["at"], sha256(text))
            connection.execute(
                "UPDATE decision_log SET id = ?, payload_digest = ?, digest = ? WHERE seq = ?",
                [place.id, place.payload_digest, place.digest, place.seq],
            )
        connection.execute(
            "UPDATE decision_payloads SET payload = ?, reviewer = ? WHERE entry_seq = ?",
            [text, payload["reviewer"], place.seq],
        )
        head = LogHead(place.seq, place.digest)


def rewrite_reason(connection: sqlite3.Connection) -> None:
    _rewrite(
        connection,
        lambda entry, payload: payload.update(reason="guessed") if entry["seq"] == 1 else None,
    )


def rewrite_times(connection: sqlite3.Connection) -> None:
    _rewrite(connection, lambda entry, _: entry.update(at=f"2020-01-0{entry['seq']}T00:00:00.000Z"))


def rewrite_without_digests(connection: sqlite3.Connection) -> None:
    _case(connection, lambda case: case.update(query="How wide is the bridge?"), digest=True)
    _rewrite(
        connection,
        lambda entry, payload: payload.update(about=None) if entry["case_seq"] == 1 else None,
    )


def _append(connection: sqlite3.Connection, key: bytes | None) -> None:
    last = connection.execute("SELECT * FROM decision_log ORDER BY seq DESC LIMIT 1").fetchone()
    [text] = connection.execute(
        "SELECT payload FROM decision_payloads WHERE entry_seq = 1"
    ).fetchone()
    payload = json.loads(text) | {"verdict": "reject", "reason": "forged", "reviewer": "Bob"}
    text = canonical_json(payload)
    place = place_after(
        LogHead(last["seq"], last["digest"]), "2027-01-01T00:00:00.000Z", sha256(text)
    )
    connection.execute(
        """INSERT INTO decision_log
               (seq, id, at, payload_digest, previous, digest, case_seq, run_seq, kind, source,
               verdict)
           VALUES (?, ?, ?, ?, ?, ?, 1, 1, 'decision', 'HUMAN', 'reject')""",
        [*place.model_dump().values()],
    )
    connection.execute("INSERT INTO decision_payloads VALUES (?, 'Bob', ?)", [place.seq, text])
    connection.execute(
        "UPDATE cases SET state = 'rejected', decision_seq = ?, reviewer = 'Bob' WHERE seq = 1",
        [place.seq],
    )
    if key is not None:
        sign(connection, key, "decision_log", place.seq, place.digest)


def forge_entry(connection: sqlite3.Connection) -> None:
    _append(connection, None)


def forge_entry_with_another_key(connection: sqlite3.Connection) -> None:
    _append(connection, b"another key, another key, another")


def strip_signatures(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM log_signatures")


def cut_tail(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA foreign_keys = OFF")
    [newest] = connection.execute("SELECT max(seq) FROM decision_log").fetchone()
    connection.execute(
        "UPDATE cases SET state = 'new', policy = NULL, pending = 0 WHERE seq IN "
        "(SELECT case_seq FROM decision_log WHERE seq = ?)",
        [newest],
    )
    for table in ("case_work", "decision_payloads"):
        connection.execute(f"DELETE FROM {table} WHERE entry_seq = ?", [newest])
    for table in ("decision_log", "log_signatures"):
        connection.execute(f"DELETE FROM {table} WHERE seq = ?", [newest])


def edit_import_time(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE cases SET imported_at = '2020-01-01T00:00:00.000Z' WHERE seq = 1")


ATTACKS = (
    Attack("edit a case's question", "digests", edit_question),
    Attack("edit a case's evidence", "digests", edit_evidence),
    Attack("edit a case's answer", "digests", edit_answer_of_case),
    Attack("edit a case and its digests", "digests", edit_case_and_its_digests),
    Attack("mark a case as redacted and edit it", "digests", claim_redaction),
    Attack("redefine a column that is counted", "digests", redefine_column),
    Attack("swap the texts of two cases", "digests", swap_cases),
    Attack("edit the answer of an iteration", "digests", edit_answer_of_iteration),
    Attack("edit the chosen answer of a run", "digests", edit_final_answer),
    Attack("edit the results of a run", "digests", edit_result),
    Attack("empty a run", "digests", empty_run),
    Attack("empty a run and forge a record of its removal", "digests", forge_removal),
    Attack("edit a decision's reason", "chain", edit_reason),
    Attack("edit a decision's reason and its digest", "chain", edit_reason_and_digest),
    Attack("edit the verdict shown in lists", "chain", edit_verdict_column),
    Attack("edit the reviewer shown in lists", "chain", edit_reviewer_column),
    Attack("edit an entry's time", "chain", edit_time),
    Attack("move an entry to another case", "chain", move_entry_to_another_case),
    Attack("remove an entry from the middle", "chain", remove_entry),
    Attack("remove an entry's content without a redaction", "chain", remove_payload),
    Attack("drop the triggers", "chain", drop_guards),
    Attack("mark a case as approved", "digests", set_state),
    Attack("name another reviewer on a decided case", "digests", edit_reviewer),
    Attack("edit the quality shown in lists", "digests", edit_quality),
    Attack("change the person who decided", "digests", edit_work),
    Attack("change the person who decided in a named queue", "digests", edit_queue_work),
    Attack("mark a case as having all its decisions", "digests", edit_pending),
    Attack("edit the number of reviewers that a decided case needs", "digests", edit_wanted),
    Attack("edit the policy that applied to decisions", "digests", edit_policy),
    Attack("remove the policy that applied to decisions", "digests", remove_policy),
    Attack("delete an undecided case", "digests", delete_undecided),
    Attack("delete the newest case, if undecided", "digests", delete_newest),
    Attack("remove every entry", "chain", empty_log),
    *(
        (
            Attack("edit an abstract whose grade a person corrected", "digests", edit_abstract),
            Attack("edit the grade that a person corrected", "digests", edit_grade),
            Attack(
                "edit the result of a screening that people corrected", "digests", edit_screening
            ),
        )
        if HAS_SCREENING
        else ()
    ),
    Attack("edit a reason and recompute the whole chain", "signatures", rewrite_reason),
    Attack("change all times and recompute the chain", "signatures", rewrite_times),
    Attack(
        "edit a case, drop an entry's digests and recompute the chain",
        "signatures",
        rewrite_without_digests,
    ),
    Attack("append a forged entry", "signatures", forge_entry),
    Attack(
        "append a forged entry, signed with another key", "signatures", forge_entry_with_another_key
    ),
    Attack("remove all signatures", "signatures", strip_signatures),
    Attack("remove the newest entry with its signature", "note", cut_tail),
    Attack("edit a case's import time", "", edit_import_time),
    Attack("give a personal token a higher role", "", edit_token),
)
"""Every attack, with the weakest check that detects it, or an empty string if none does."""

WORDS = {
    "chain": "chain",
    "digests": "digests",
    "signatures": "signatures",
    "note": "note",
    "": "nothing",
}


def table(folder: Path) -> Iterator[tuple[Attack, Detection]]:
    """Make every attack and yield the check that detected it."""
    original = folder / "original.db"
    build(original)
    with Store.open(original) as store:
        noted = store.decisions.head()
        store.settle()
    for tampering in ATTACKS:
        yield tampering, detect(attack(original, folder, tampering.change), noted)


def main() -> int:
    """Print the table; return 1 if an attack wasn't detected by the expected check."""
    wrong = 0
    print("| attack | detected by |")
    print("|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for tampering, detection in table(Path(folder)):
            print(f"| {tampering.name} | {WORDS[tampering.detected_by]} |")
            if tampering.detected_by not in (detection.names() or [""]):
                wrong += 1
                print(f"NOT SO: {detection}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
