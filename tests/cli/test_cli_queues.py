"""Named queues by command, and in exports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from masis import Desk
from tests.cli.running import Masis, case, desk


@pytest.fixture
def at(tmp_path: Path) -> tuple[str | Path, ...]:
    """The options that name a database with a medical case and one of another field."""
    cases = [case("a", metadata={"field": "Medicine"}), case("b", metadata={"field": "History"})]
    desk(tmp_path / "queues.db", *cases).close()
    return ("--db", tmp_path / "queues.db")


def test_a_queue_is_created_set_up_worked_on_and_archived(
    masis: Masis, at: tuple[str | Path, ...], tmp_path: Path
) -> None:
    assert "only the queue 'All cases'" in masis("queues", "list", *at).stderr
    fill = ("--field", "Medicine", "--state", "needs_review")
    dry = masis("queues", "create", "Medical", *fill, "--dry-run", *at)
    assert dry.stdout == "1 case matches this filter.\n"
    assert "Left out, because decisions change it: states." in dry.stderr
    searched = masis("queues", "create", "Search", "--search", "a", "--dry-run", *at)
    assert "must be whole words of the case." in searched.stderr
    made = masis("queues", "create", "Medical", *fill, *at)
    assert made.stdout == "The queue 'Medical' (id medical) holds 1 case now.\n"
    text = tmp_path / "instructions.txt"
    text.write_text("Read the dose.\n", encoding="utf-8")
    people = ("--person", "Ada", "--person", "Ben", "--instructions", text)
    changed = masis("queues", "change", "medical", "--reviewers", "2", *people, *at)
    assert "version 2 is in force. 2 reviewers per case" in changed.stdout
    shown = masis("queues", "show", "Medical", "--by", "Ada", *at).stdout
    for line in ("filled by    field Medicine", "people       Ada, Ben", "| Read the dose."):
        assert line in shown
    renamed = masis("queues", "change", "medical", "--name", "Clinical", *at)
    assert "Clinical: version 3 is in force." in renamed.stdout
    assert masis("queues", "change", "Clinical", "--name", "Medical", *at).exit_code == 0
    in_queue = ("--queue", "Medical")
    refused = masis("queue", *in_queue, "--by", "Cy", *at)
    assert refused.exit_code == 1
    assert "people of the queue 'Medical'. A lead can add you" in refused.stderr
    assert masis("queue", "--json", *in_queue, "--by", "Ada", *at).stdout.count('"id"') == 1
    for name in ("Ada", "Ben"):
        verdict = ("decide", "a", "reject", "--reason", "unsupported", *in_queue, "--by", name)
        assert masis(*verdict, *at).exit_code == 0
    assert "No case of the queue 'Medical'" in masis("queue", *in_queue, "--by", "Ada", *at).stderr
    agreed = json.loads(masis("trust", "--json", *in_queue, *at).stdout)
    assert agreed["people"]["units"] == 1
    assert masis("queues", "archive", "Medical", *at).stdout == "Medical is archived.\n"
    assert masis("queues", "list", "--json", *at).stdout == ""
    assert json.loads(masis("queues", "list", "--archived", "--json", *at).stdout)["left"] == 0


def test_the_rule_the_rubric_and_the_filter_of_a_queue_are_changed_by_command(
    masis: Masis, at: tuple[str | Path, ...], tmp_path: Path
) -> None:
    masis("queues", "create", "Medical", "--field", "Medicine", *at)
    change = ("queues", "change", "Medical")
    assert masis(*change, "--reviewers", "3", "--rule", "agree", "--agree", "2", *at).exit_code == 0
    guide = tmp_path / "guide.txt"
    guide.write_text("Check doses.\n", encoding="utf-8")
    own = ("--score", "Clarity: 1-5 | how well it reads", "--score", "Tone: plain, harsh")
    masis(*change, *own, "--guidelines", guide, *at)
    shown = masis("queues", "show", "Medical", *at).stdout
    for line in (
        "verdict      the one that 2 of 3 agree on, otherwise an adjudication",
        "Clarity: 1-5 | how well it reads",
        "Tone: plain, harsh",
        "| Check doses.",
    ):
        assert line in shown
    masis(*change, "--score", "Depth: 1-3", *at)
    shown = masis("queues", "show", "Medical", *at).stdout
    assert "Depth: 1-3" in shown
    assert "Clarity" not in shown
    assert "| Check doses." in shown
    masis(*change, "--team-rubric", *at)
    assert "rubric" not in masis("queues", "show", "Medical", *at).stdout

    moved = masis(*change, "--field", "History", "--state", "approved", *at)
    assert "Left out, because decisions change it: states." in moved.stderr
    assert "filled by    field History\n" in masis("queues", "show", "Medical", *at).stdout
    masis(*change, "--all-cases", *at)
    row = json.loads(masis("queues", "show", "Medical", "--json", *at).stdout)
    assert row["cases"] == 2
    assert row["queue"]["policy"]["agree"] == 2


def test_a_new_filter_keeps_the_order_of_a_queue(
    masis: Masis, at: tuple[str | Path, ...], tmp_path: Path
) -> None:
    masis("queues", "create", "Medical", "--field", "Medicine", *at)
    with Desk(tmp_path / "queues.db") as desk:
        desk.change_queue("Medical", cases={"order": "oldest"})
    masis("queues", "change", "Medical", "--field", "History", *at)
    row = json.loads(masis("queues", "show", "Medical", "--json", *at).stdout)
    assert row["queue"]["cases"] == {"fields": ["History"], "order": "oldest"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--score", "Clarity"), "isn't a score"),
        (("--score", "Clarity: 5-1"), "isn't a score"),
        (("--score", "Clarity: "), "isn't a score"),
        (("--score", "A: 1-5", "--score", "a: 1-3"), "same name"),
        (("--reviewers", "2", "--rule", "agree", "--agree", "3"), "can't agree"),
        (("--team-rubric", "--score", "A: 1-5"), "either --team-rubric"),
        (("--all-cases", "--field", "x"), "either --all-cases"),
        (("--reviewer", "2"), "None of these filters can fill a queue"),
    ],
)
def test_a_change_of_a_queue_that_cant_be_made_is_explained(
    masis: Masis, at: tuple[str | Path, ...], options: tuple[str, ...], problem: str
) -> None:
    masis("queues", "create", "Medical", "--field", "Medicine", *at)
    done = masis("queues", "change", "Medical", *options, *at)
    assert done.exit_code in (1, 2)
    assert problem in " ".join(done.stderr.split())
    row = json.loads(masis("queues", "show", "Medical", "--json", *at).stdout)
    assert row["queue"]["version"] == 1


def test_an_export_of_a_queue_names_it_with_its_decisions(
    masis: Masis, at: tuple[str | Path, ...], tmp_path: Path
) -> None:
    masis("queues", "create", "Medical", "--field", "Medicine", *at)
    for name, queue in (("a", ("--queue", "Medical")), ("b", ())):
        masis("decide", name, "reject", "--reason", "unsupported", *queue, *at)
    out = tmp_path / "out.jsonl"
    chosen = ("--format", "decided", "--queue", "medical", "--out", out)
    assert masis("export", *chosen, *at).exit_code == 0
    [row] = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    assert row["case"]["id"] == "a"
    assert '"queue": "medical"' in json.dumps(row)
    [manifest] = tmp_path.glob("out*manifest*")
    assert '"medical"' in manifest.read_text(encoding="utf-8")


def test_a_queue_that_doesnt_exist_is_refused_by_every_command(
    masis: Masis, at: tuple[str | Path, ...], tmp_path: Path
) -> None:
    for command in (
        ("queue", "--queue", "nope"),
        ("decide", "a", "reject", "--reason", "unsupported", "--queue", "nope"),
        ("queues", "show", "nope"),
        ("queues", "change", "nope", "--reviewers", "2"),
        ("queues", "archive", "nope"),
        ("export", "--format", "decided", "--queue", "nope", "--out", tmp_path / "x.jsonl"),
        ("trust", "--queue", "nope"),
    ):
        done = masis(*command, *at)
        assert done.exit_code in (1, 2), command
        assert "no queue 'nope'" in done.stderr, (command, done.stderr)


def test_the_first_queue_has_a_name_in_commands(masis: Masis, at: tuple[str | Path, ...]) -> None:
    assert masis("queue", "--queue", "all cases", "--json", *at).stdout.count('"id"') == 2
    refused = masis("queues", "archive", "All cases", *at)
    assert refused.exit_code == 1
    assert "All cases" in refused.stderr
