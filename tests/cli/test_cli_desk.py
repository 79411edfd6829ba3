"""Reviewing by command: the queue, a case, single and batch decisions, labels, the log, undo and
reports.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from masis.services.decision_rules import OTHER, REASONS, ReviewReasonChoice
from masis.trust.machine import FORM_ONLY
from masis.ui.review import decision_form
from tests.cli.running import Masis, case, desk, lines

NO_VERDICT = (
    "verdict: is 'aprove', which isn't a verdict. Use one of approve, override, reject, escalate."
)


@pytest.fixture
def database(masis: Masis, tmp_path: Path) -> Path:
    """Two audited cases, the first with a fabricated reference."""
    file, database = tmp_path / "cases.jsonl", tmp_path / "desk.db"
    file.write_bytes(lines(case("a"), case("b", answer="The bridge is 120 metres long [1].")))
    result = masis("audit", file, "--db", database)
    assert result.exit_code == 0, result.stderr
    table = result.stdout.splitlines()
    assert table[0].split() == ["case", "status", "worst", "issue", "quality", "question"]
    assert table[1].startswith(
        "a     Something is wrong  Cites [9], which doesn't exist: “It was opened"
    )
    assert table[2].startswith("b     Nothing found")
    assert "  a: The reference '9' names no evidence of this case." in table
    return database


def test_an_answer_is_listed_shown_decided_labeled_and_undone(masis: Masis, database: Path) -> None:
    at = ("--db", database)
    assert (
        masis("queue", *at)
        .stdout.splitlines()[1]
        .startswith("a     Something is wrong  Cites [9], which doesn't exist")
    )
    (row,) = map(json.loads, masis("queue", "--json", *at).stdout.splitlines())
    assert (row["id"], row["state"]) == ("a", "needs_review")
    shown = masis("show", "a", *at).stdout
    assert "The bridge is 120 metres long [1]. It was opened in 1931 [9]." in shown
    assert "critical  The reference '9' names no evidence of this case." in shown
    assert "Cite the chunk that says this, or drop the sentence." in shown
    assert "Revision 2, suggested by the audit (quality " in shown
    assert shown.startswith("a · Something is wrong · version ")
    assert row["headline"].partition("\n")[0] in shown
    assert "Reasons for review" in shown
    refused = masis("decide", "a", "approve", *at)
    assert refused.exit_code == 1
    assert "set acknowledge=True (--acknowledge; in a row of a file" in refused.stderr
    decided = masis(
        "decide",
        "a",
        "reject",
        "--reason",
        "fabricated_citation",
        "--by",
        "Ada",
        "--note",
        "Ask the zebrafish lab",
        "--saw",
        "audit",
        "--json",
        *at,
    )
    entry = json.loads(decided.stdout)
    assert (entry["decision"]["verdict"], entry["decision"]["reviewer"]) == ("reject", "Ada")
    assert entry["decision"]["machine_shown"] == ["answer", "verdicts", "scores", "issues"]
    named = ("--supported-by", "1=The bridge")
    assert masis("label", "a", "unsupported", "in 1931", *named, "--by", "Ada", *at).exit_code == 0
    shown = masis("show", "a", *at).stdout
    assert "Note: Ask the zebrafish lab" in shown
    for words, count in (("LAB zebrafish", 2), ("zebrafish labs", 0)):
        found = masis("log", "--search", words, "--json", *at).stdout.splitlines()
        assert len(found) == count
    assert (
        "claim “in 1931”: unsupported; [1] supports: “The bridge”; likely cause: citation" in shown
    )
    assert "No cases need your decision." in masis("queue", *at).stderr
    log = masis("log", "a", *at).stdout
    assert log.count("Rejected: the original answer of a, by Ada") == 2
    newest = json.loads(masis("log", "a", "--limit", "1", "--json", *at).stdout)
    assert masis("undo", newest["id"], "--by", "Ada", *at).exit_code == 0
    corrected = ("--corrected-answer", "It is 120 metres long [1].", "--reason", "other: shorter")
    assert masis("decide", "a", "override", *corrected, "--by", "Ada", *at).exit_code == 0
    assert (
        "Corrected answer, by Ada\n  It is 120 metres long [1]." in masis("show", "a", *at).stdout
    )
    assert masis("undo", "nothing", *at).exit_code == 1
    assert masis("verify-log", *at).exit_code == 0


def test_unknown_labels_and_citations_are_refused_with_a_suggestion(
    masis: Masis, database: Path
) -> None:
    at = ("--by", "Ada", "--db", database)
    label = ("--label", "contradictd=in 1931")
    refused = masis("decide", "a", "reject", "--reason", "contradicted", *label, *at)
    assert refused.exit_code == 1
    assert "labels[0].label: is 'contradictd'" in refused.stderr
    assert "Did you mean 'contradicted'?" in refused.stderr
    override = ("override", "--corrected-answer", "It is long [9].", "--reason", "unclear")
    refused = masis("decide", "a", *override, *at)
    assert refused.exit_code == 1
    assert "cites “9”, which doesn't match any evidence" in refused.stderr
    assert "(--acknowledge-citations; in a row of a file" in refused.stderr
    kept = masis("decide", "a", *override, "--acknowledge-citations", "--json", *at)
    assert json.loads(kept.stdout)["decision"]["extra"]["citations_kept"] == ["9"]
    refused = masis("label", "a", "unsuported", "in 1931", *at)
    assert "labels[0].label: is 'unsuported'" in refused.stderr
    row = b'{"case": "b", "verdict": "escalate", "labls": []}'
    refused = masis("decide", "--file", "-", *at, stdin=row)
    assert "labls: isn't a field of a decision. Did you mean 'labels'?" in refused.stdout


def test_a_file_of_decisions_has_a_dry_run_and_reports_each_row(
    masis: Masis, database: Path
) -> None:
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


def test_import_and_audit_report_their_results_as_json(masis: Masis, tmp_path: Path) -> None:
    file, database = tmp_path / "cases.jsonl", tmp_path / "w.db"
    file.write_bytes(lines(case("a"), case("b", query=...)))
    imported = json.loads(masis("import", file, "--json", "--db", database).stdout)
    assert (imported["imported"], imported["refused"]) == (1, 1)
    more = tmp_path / "more.jsonl"
    more.write_bytes(lines(case("c"), case("a")))
    said = masis("import", more, "--db", database).stderr
    command = re.search(r"masis queue --import (\w+)", said)
    assert command
    listed = masis("queue", "--import", command[1], "--json", "--db", database).stdout
    assert [json.loads(line)["id"] for line in listed.splitlines()] == ["c"]
    (found,) = map(json.loads, masis("audit", file, "--json", "--db", database).stdout.splitlines())
    assert (found["case"], found["state"], found["issue"]) == (
        "a",
        "needs review",
        "fabricated citation",
    )
    assert (found["standing"], type(found["quality"])) == ("wrong", float)
    file.write_bytes(lines(case("c", query=...)))
    for command in ("audit", "import"):
        assert "1 error, listed above. Nothing was" in masis(command, file, "--db", database).stderr


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with two audited cases. Reports don't change it."""
    workbench = desk(tmp_path_factory.mktemp("report") / "first.db", case("ä"), case("b"))
    workbench.close()
    return workbench.database


def test_the_report_of_a_case_is_written_to_a_file(
    masis: Masis, audited: Path, tmp_path: Path
) -> None:
    out = tmp_path / "audit.html"
    result = masis("report", "ä", "--out", out, "--db", audited)
    assert (result.exit_code, result.stdout) == (0, "")
    html = out.read_text(encoding="utf-8")
    assert html.startswith("<!DOCTYPE html>")
    assert "How long is the bridge?" in html
    assert "ref-fabricated" in html


def test_without_a_file_the_report_is_printed_to_stdout(masis: Masis, audited: Path) -> None:
    assert masis("report", "b", "--db", audited).stdout.startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("arguments", [("ä", "b", "ä"), ("--state", "any"), ("--search", "bridge")])
def test_several_reports_become_a_folder_that_opens_from_disk(
    masis: Masis, audited: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    out = tmp_path / "reports"
    for _ in range(2):  # an existing folder of reports is replaced
        result = masis("report", *arguments, "--out", out, "--db", audited)
        assert (result.exit_code, result.stdout) == (0, "")
    index = (out / "index.html").read_text(encoding="utf-8")
    linked = re.findall(r'<a href="([^"]+)">', index)
    assert {*linked, "index.html"} == {path.name for path in out.iterdir()}
    assert len(linked) == 2
    for name in linked:
        page = (out / name).read_text(encoding="utf-8")
        assert "How long is the bridge?" in page
        assert '<a href="index.html">' in page


def test_ids_with_the_same_file_name_get_separate_pages(masis: Masis, tmp_path: Path) -> None:
    file, database, out = tmp_path / "cases.jsonl", tmp_path / "same.db", tmp_path / "reports"
    names = ("../b", "B", "b<script>", "b")
    file.write_bytes(lines(*map(case, names)))
    assert masis("audit", file, "--db", database).exit_code == 0
    assert masis("report", *names, "--out", out, "--db", database).exit_code == 0
    pages = [path.name.casefold() for path in out.iterdir()]
    assert len(set(pages)) == len(names) + 1
    assert not list(tmp_path.glob("*.html"))
    assert "<script>" not in (out / "index.html").read_text(encoding="utf-8")


def test_existing_files_are_never_overwritten(masis: Masis, audited: Path, tmp_path: Path) -> None:
    out = tmp_path / "papers"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    result = masis("report", "ä", "b", "--out", out, "--db", audited)
    assert result.exit_code != 0
    assert "papers" in result.stderr
    assert "Name a new folder" in result.stderr
    assert [path.name for path in out.iterdir()] == ["thesis.txt"]
    result = masis("report", "ä", "nowhere", "--out", tmp_path / "new", "--db", audited)
    assert result.exit_code != 0
    assert "nowhere" in result.stderr
    assert not (tmp_path / "new").exists()


def test_a_new_reason_is_offered_and_recorded_without_another_change(
    masis: Masis, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = ("--db", database)
    new = ReviewReasonChoice("off_topic", "Strays from the subject", ("reject",), ("off_topic",))
    monkeypatch.setitem(REASONS, new.code, new)
    refused = masis("decide", "a", "reject", "--reason", "offtopic", *at)
    assert "unclear, unsafe, off_topic, or your own words" in refused.stderr
    decided = masis("decide", "a", "reject", "--reason", new.code, *at)
    assert decided.exit_code == 0, decided.stderr
    logged = json.loads(masis("log", "a", "--json", *at).stdout)
    assert new.text in str(logged)
    exported = masis("export", "--format", "decided", *at)
    assert f'"reason_code":"{new.code}"' in exported.stdout.replace(" ", "")
    # The page's form also offers it.
    form = decision_form.reasons(None)["reject"]
    assert {"code": new.code, "text": new.text, "suggested": False, "labels": ()} in form
    assert form[-1]["code"] == OTHER
    assert set(REASONS) >= FORM_ONLY


def test_the_command_counts_the_decisions_of_an_export_that_come_back(
    masis: Masis, database: Path, tmp_path: Path
) -> None:
    masis("decide", "a", "reject", "--reason", "unclear", "--by", "Ada", "--db", database)
    masis("decide", "b", "escalate", "--by", "Ben", "--db", database)
    file, new = tmp_path / "decided.jsonl", ("--db", tmp_path / "new.db")
    assert masis("export", "--format", "decided", "--out", file, "--db", database).exit_code == 0
    masis("import", "-", *new, stdin=lines(case("c")))
    noted = masis("import", file, "--db", tmp_path / "cases-only.db")
    assert "has decisions, and only the cases are imported." in noted.stderr
    assert "masis decide --file FILE" in noted.stderr
    tried = masis("decide", "--file", file, "--dry-run", *new)
    assert "2 would be imported, 0 already here, 2 cases would be added" in tried.stderr
    done = masis("decide", "--file", file, *new)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[0] == "line 1  a  reject  imported"
    again = masis("decide", "--file", file, "--json", *new)
    assert "0 imported, 2 already here, 0 cases added, 0 refused." in again.stderr
    assert json.loads(again.stdout.splitlines()[0])["result"] == "already here"
