"""What people and audits wrote as rows, in step with the log, runs, redaction and retention."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from masis.datasets.exports.export import Selection
from masis.schema.causes import CAUSES, cause_of
from masis.schema.codebook import NO_FAULT_LABELS
from masis.schema.retention import RetentionRule
from masis.schema.rules import RULES
from masis.services import Workbench
from masis.services.decision_rules import REASONS
from masis.services.records import CaseFilter
from masis.store import Store
from masis.store.reviews.observations import pattern_of
from tests.modes import (
    ADA,
    BEN,
    WRONG_DATE,
    a_label,
    add_audited,
    an_issue,
    find_observations,
    reject,
    texts,
)


@pytest.fixture
def desk(bench: Workbench) -> Workbench:
    """A workbench with one audited case, in which two issues were found."""
    unconfirmed = an_issue("key-2", "unverifiable_claim", description="Not confirmed: it is grey.")
    add_audited(bench.store, "case-1", an_issue(), unconfirmed)
    bench.modes.add_mode(ADA, WRONG_DATE)
    return bench


def words_in_file(path: Path, word: str) -> bool:
    """Whether a word is anywhere in a database or its write-ahead log."""
    files = [path, path.with_name(f"{path.name}-wal")]
    content = b"".join(file.read_bytes() for file in files if file.exists())
    return word.lower().encode() in content.lower()


def test_each_issue_reason_note_label_and_comment_is_a_row(desk: Workbench) -> None:
    entry = reject(desk, "case-1", ADA, a_label(note="No source."), note="Ask the museum.")
    desk.team.comment(BEN, "case-1", "The second source is newer.")
    rows = find_observations(desk)
    assert [(row.kind, row.type, row.author) for row in rows] == [
        ("issue", "contradicted_claim", ""),
        ("issue", "unverifiable_claim", ""),
        ("reason", "unsupported", "Ada"),
        ("note", "", "Ada"),
        ("label", "unsupported", "Ada"),
        ("comment", "", "Ben"),
    ]
    assert rows[0].text == "The evidence contradicts the year “1932”. It opened later."
    assert (rows[0].quote, rows[0].severity, rows[0].run_id) == (
        *("opened in 1932", "high", "run-case-1"),
    )
    assert (rows[4].text, rows[4].quote, rows[4].entry_id) == (
        "No source.",
        "It was opened",
        entry.id,
    )
    assert rows[4].place == f"{entry.id}:label.0"


def test_only_texts_about_something_wrong_are_faults(desk: Workbench) -> None:
    confirmed = a_label("supported", severity=None, target="claim")
    reject(
        desk,
        "case-1",
        ADA,
        confirmed,
        reason="",
        verdict="approve",
        note="Read it twice.",
    )
    assert {row.type or row.kind: row.is_fault for row in find_observations(desk)} == {
        "contradicted_claim": True,
        "unverifiable_claim": False,  # not confirmed doesn't mean wrong
        "note": False,
        "supported": False,
    }
    assert texts(desk, faults_only=True) == [find_observations(desk)[0].text]


def test_an_undone_decision_has_no_texts(desk: Workbench) -> None:
    entry = reject(desk, "case-1", ADA, a_label(note="No source."))
    assert len(texts(desk, kinds=("reason", "label"))) == 2
    desk.reviews.undo(ADA, entry.id)
    assert texts(desk, kinds=("reason", "label")) == []


def test_a_redacted_entry_leaves_no_word_in_the_file(desk: Workbench) -> None:
    entry = reject(desk, "case-1", ADA, a_label(note="Quillfeather wrote it."))
    desk.modes.groups(ADA)
    desk.modes.code(ADA, "case-1", ["wrong-date"], find_observations(desk, kinds=("label",))[0].id)
    assert words_in_file(desk.store.path, "quillfeather")
    desk.reviews.redact_entry(ADA, entry.id, "asked")
    assert texts(desk, kinds=("reason", "label")) == []
    assert not words_in_file(desk.store.path, "quillfeather")


def test_a_redacted_case_leaves_neither_texts_nor_codes(desk: Workbench) -> None:
    reject(desk, "case-1", ADA, a_label(note="Quillfeather wrote it."))
    desk.modes.code(ADA, "case-1", ["wrong-date"])
    desk.modes.groups(ADA)
    desk.reviews.redact_case(ADA, "case-1", "asked")
    assert find_observations(desk) == []
    assert desk.modes.list_codes(ADA, "case-1") == ()
    assert not words_in_file(desk.store.path, "quillfeather")


def test_a_removed_audit_has_no_issues(bench: Workbench) -> None:
    add_audited(bench.store, "case-1", an_issue(description="Quillfeather contradicts it."))
    bench.modes.groups(ADA)
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    rule = RetentionRule(cutoff=tomorrow, days=0, decided=True, waiting=True)
    bench.store.retention.remove(rule, by="Ada", how="command")
    assert find_observations(bench) == []
    assert not words_in_file(bench.store.path, "quillfeather")


def test_the_issues_of_a_new_audit_replace_the_earlier_ones_and_keep_their_codes(
    desk: Workbench,
) -> None:
    kept, gone = find_observations(desk, kinds=("issue",))
    desk.modes.apply(ADA, ["wrong-date"], [kept.id])
    add_audited(desk.store, "case-1", an_issue(), an_issue("key-3"), run_id="run-later")
    rows = find_observations(desk, kinds=("issue",))
    assert [row.place for row in rows] == ["issue:key-1", "issue:key-3"]
    assert {row.run_id for row in rows} == {"run-later"}
    assert rows[0].id == kept.id
    assert rows[0].codes == ("wrong-date",)
    assert gone.id not in {row.id for row in rows}


def test_two_issues_with_the_same_key_are_two_rows(bench: Workbench) -> None:
    add_audited(bench.store, "case-1", an_issue(), an_issue())
    assert [row.place for row in find_observations(bench)] == ["issue:key-1", "issue:key-1.2"]


def forget_observations(desk: Workbench) -> None:
    """Leave the observations of all cases due, as a migration does."""
    with desk.store.database.transaction() as connection:
        for statement in (
            "DELETE FROM observations",
            "DELETE FROM case_codes",
            "INSERT INTO observations_due SELECT seq FROM cases",
        ):
            connection.execute(statement)


def test_cases_of_an_older_database_are_derived_when_they_are_first_read(desk: Workbench) -> None:
    reject(desk, "case-1", ADA, a_label(note="No source."))
    desk.modes.code(ADA, "case-1", ["wrong-date"])
    before = find_observations(desk)
    forget_observations(desk)
    assert desk.modes.list_codes(ADA, "case-1") != ()
    assert find_observations(desk) == before


@pytest.mark.parametrize(
    "find",
    [
        lambda desk, wanted: [row.id for row in desk.store.cases.search(wanted).rows],
        lambda desk, wanted: ["case-1"] * desk.store.cases.count_matching(wanted),
        lambda desk, wanted: [desk.store.cases.first(wanted)],
        lambda desk, wanted: [desk.store.cases.following("case-1", wanted)],
        lambda desk, wanted: ["case-1"] * sum(desk.store.cases.values(wanted, "states").values()),
        lambda desk, wanted: ["case-1"] * sum(desk.store.cases.standings(wanted)[0].values()),
        lambda desk, wanted: ["case-1"] * desk.store.outcomes.count(wanted),
    ],
)
@pytest.mark.parametrize("wanted", [CaseFilter(text="giraffe"), CaseFilter(modes=("wrong-date",))])
def test_a_search_finds_notes_of_an_older_database(
    desk: Workbench, wanted: CaseFilter, find: Callable[[Workbench, CaseFilter], list[str]]
) -> None:
    reject(desk, "case-1", ADA, a_label(note="No source about the giraffe."))
    desk.modes.code(ADA, "case-1", ["wrong-date"])
    forget_observations(desk)
    assert find(desk, wanted) == ["case-1"]


def test_an_export_by_words_includes_the_notes_of_an_older_database(
    desk: Workbench, tmp_path: Path
) -> None:
    reject(desk, "case-1", ADA, a_label(note="No source about the giraffe."))
    chosen = Selection(CaseFilter(text="giraffe"))
    forget_observations(desk)
    desk.exports.write_file(ADA, tmp_path / "out.jsonl", "decided", chosen, encoding="jsonl")
    assert "case-1" in (tmp_path / "out.jsonl").read_text(encoding="utf-8")
    forget_observations(desk)
    assert desk.datasets.freeze(ADA, "giraffes", "decided", chosen).rows == 1


def test_the_health_check_finds_codes_that_differ_from_the_log(desk: Workbench) -> None:
    desk.modes.code(ADA, "case-1", ["wrong-date"])
    assert not desk.store.check().problems
    with desk.store.database.transaction() as connection:
        connection.execute("UPDATE case_codes SET code = 'forged'")
    assert any("failure modes" in problem for problem in desk.store.check().problems)


def test_texts_that_differ_in_numbers_and_quotations_have_the_same_pattern() -> None:
    first = pattern_of("The reference [7] names “page 12”, not 3.5 km.")
    assert first == pattern_of("The reference [9] names “chapter one”, not 12 km!")
    assert first != pattern_of("The reference names a page.")
    assert pattern_of("“Only quoted words.”") == "only quoted words"
    assert pattern_of("…") == "…"


def test_a_type_of_fault_has_at_most_one_cause() -> None:
    named = [name for row in CAUSES.values() for name in row.types]
    assert len(named) == len(set(named))
    rules = {rule for rule, row in RULES.items() if not row.is_undecided}
    faults = {
        code
        for code, reason in REASONS.items()
        if "approve" not in reason.verdicts and code != "needs_specialist"
    }
    # A fault of the whole answer doesn't say whether the evidence settles the question.
    whole = {"incomplete", "unsafe", "unclear", "misses_the_question", "at_risk"}
    assert {name for name in rules | faults if cause_of(name) is None} == whole
    assert cause_of("critic_factual") == "generation"
    assert cause_of("the team's own label") is None
    assert not set(NO_FAULT_LABELS) & set(named)


def test_words_in_any_notation_are_found_and_no_text_is_read_as_a_query(bench: Workbench) -> None:
    with Store.open(bench.store.path):
        add_audited(bench.store, "case-1")
        bench.team.comment(ADA, "case-1", 'Größe NEAR(x) "quoted" <b>bold</b> 100%')
    for words in ("grosse", "größe", "near(x)", '"quoted"', "<b>bold</b>", "bol"):
        assert len(texts(bench, text=words)) == (0 if words == "grosse" else 1), words
    for hostile in ('"', "x* OR y", "text:bold", "') OR 1=1 --", "^bold"):
        assert isinstance(texts(bench, text=hostile), list)
