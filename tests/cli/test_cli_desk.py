"""The desk by command: a queue, a case, decisions one by one or in a file, labels, the log, and undoing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import Masis, case, lines

NO_VERDICT = "verdict: is 'aprove', which is no verdict. Use one of approve, override, reject, escalate."


@pytest.fixture
def database(masis: Masis, tmp_path: Path) -> Path:
    """Two audited cases, the first with a fabricated reference."""
    file, database = tmp_path / "cases.jsonl", tmp_path / "desk.db"
    file.write_bytes(lines(case("a"), case("b", answer="The bridge is 120 metres long [1].")))
    result = masis("audit", file, "--db", database)
    assert result.exit_code == 0, result.stderr
    table = result.stdout.splitlines()
    assert table[0].split() == ["case", "state", "worst", "issue", "quality", "question"]
    assert table[1].startswith("a     needs review   fabricated citation")
    assert table[2].startswith("b     auto-accepted")
    assert "  a: The reference '9' names no evidence of this case." in table
    return database


def test_an_answer_is_found_read_decided_labelled_and_undone(masis: Masis, database: Path) -> None:
    at = ("--db", database)
    assert masis("queue", *at).stdout.splitlines()[1].startswith("a     Needs review  fabricated citation")
    (row,) = map(json.loads, masis("queue", "--json", *at).stdout.splitlines())
    assert (row["id"], row["state"]) == ("a", "needs_review")
    shown = masis("show", "a", *at).stdout
    assert "The bridge is 120 metres long [1]. It was opened in 1931 [9]." in shown
    assert "critical  The reference '9' names no evidence of this case." in shown
    refused = masis("decide", "a", "approve", *at)
    assert refused.exit_code == 1
    assert "Read them, then say acknowledge=True (--acknowledge)." in refused.stderr
    decided = masis(
        "decide", "a", "reject", "--reason", "fabricated_citation", "--by", "Ada", "--saw", "audit", "--json", *at
    )
    entry = json.loads(decided.stdout)
    assert (entry["decision"]["verdict"], entry["decision"]["reviewer"]) == ("reject", "Ada")
    assert entry["decision"]["machine_shown"] == ["answer", "verdicts", "scores", "issues"]
    assert masis("label", "a", "unsupported", "in 1931", "--by", "Ada", *at).exit_code == 0
    assert "No case waits for you." in masis("queue", *at).stderr
    log = masis("log", "a", *at).stdout
    assert log.count("Rejected the original answer of a by Ada") == 2
    newest = json.loads(masis("log", "a", "--limit", "1", "--json", *at).stdout)
    assert masis("undo", newest["id"], "--by", "Ada", *at).exit_code == 0
    assert masis("undo", "nothing", *at).exit_code == 1
    assert masis("verify-log", *at).exit_code == 0


def test_a_file_of_decisions_is_tried_first_and_each_row_says_what_became_of_it(masis: Masis, database: Path) -> None:
    rows = b'{"case": "a", "verdict": "escalate"}\n{"case": "b", "verdict": "aprove"}\n[1]\n'
    tried = masis("decide", "--file", "-", "--dry-run", "--db", database, stdin=rows)
    assert tried.exit_code == 1
    assert tried.stdout.splitlines() == [
        "line 1  a  escalate  would be recorded",
        "line 2  b  aprove  refused: " + NO_VERDICT,
    ]
    assert "stdin, line 3: is a list, must be an object." in tried.stderr
    assert "1 decision would be recorded, 2 refused." in tried.stderr
    done = masis("decide", "--file", "-", "--json", "--db", database, stdin=rows)
    first, second = map(json.loads, done.stdout.splitlines())
    assert (first["result"], second["result"], second["entry"]) == ("recorded", "refused", None)
    assert masis("log", "a", "--json", "--db", database).stdout.count(first["entry"]) > 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("decide", "a"), "Name a case and a verdict"),
        (("decide", "a", "approve", "--file", "-"), "--file: goes without CASE and VERDICT."),
        (("decide", "a", "aprove"), "'aprove' is not one of"),
        (("decide", "a", "reject", "--label", "grey"), "write it as LABEL=WORDS"),
        (("backup",), "It is: masis db backup"),
        (("corpus",), "It is: masis screening corpus"),
        (("import", "f", "--map", "anser=x"), "Did you mean answer=x?"),
        (("import", "f", "--map", "answer=a", "--map", "answer=b"), "--map answer: is given twice."),
    ],
)
def test_wrong_use_names_the_right_one(masis: Masis, tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    (tmp_path / "f").write_bytes(lines(case("a")))
    masis("import", "f", "--db", tmp_path / "w.db")
    result = masis(*arguments, *(("--db", tmp_path / "w.db") if len(arguments) > 1 else ()))
    assert result.exit_code == 2
    assert says in result.stderr


def test_import_and_audit_say_what_became_of_a_file_as_json(masis: Masis, tmp_path: Path) -> None:
    file, database = tmp_path / "cases.jsonl", tmp_path / "w.db"
    file.write_bytes(lines(case("a"), case("b", query=...)))
    imported = json.loads(masis("import", file, "--json", "--db", database).stdout)
    assert (imported["imported"], imported["refused"]) == (1, 1)
    (found,) = map(json.loads, masis("audit", file, "--json", "--db", database).stdout.splitlines())
    assert (found["case"], found["state"], found["issue"]) == ("a", "needs review", "fabricated citation")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_completion(masis: Masis, shell: str) -> None:
    assert "_MASIS_COMPLETE" in masis("completion", shell).stdout
