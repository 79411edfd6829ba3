"""What someone who can write the file can alter, and which check detects it; what is not checkable is no problem."""

from __future__ import annotations

from pathlib import Path

import pytest

from masis.schema.retention import RetentionRule
from masis.store import LogHead, Store
from masis.store.reviews import subjects
from tests.store.factories import a_case, a_decision, a_run, accepted
from tools import tamper

ROOT = Path(__file__).resolve().parents[2]
KEY = tamper.KEY


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LogHead]:
    """An audited, decided and signed database, and the head that somebody noted."""
    path = tmp_path_factory.mktemp("tampering") / "original.db"
    tamper.build(path)
    with Store.open(path) as store:
        store.settle()
        return path, store.decisions.head()


def test_nothing_is_detected_where_nothing_was_altered(original: tuple[Path, LogHead], tmp_path: Path) -> None:
    path, noted = original
    found = tamper.detect(tamper.attack(path, tmp_path, lambda _: None), noted)
    assert found.names() == []
    with Store.open(path) as store:
        assert store.decisions.check_subjects().checked == 4
        assert store.screening_log.check_subjects().checked == 1
        assert store.check_signatures(KEY).signed == 5


@pytest.mark.parametrize("each", tamper.ATTACKS, ids=[each.name for each in tamper.ATTACKS])
def test_an_attack_is_detected_by_what_the_page_on_security_says(
    original: tuple[Path, LogHead], tmp_path: Path, each: tamper.Attack
) -> None:
    path, noted = original
    found = tamper.detect(tamper.attack(path, tmp_path, each.change), noted).names()
    assert (each.detected_by in found) if each.detected_by else not found
    if each.detected_by == "note":
        assert found == ["note"], "were it found by anything else, the page would ask for a note in vain"
    if each.detected_by == "signatures":
        assert "chain" not in found, "a chain that was computed anew verifies: that is what the key is for"
    line = f"| {each.name} | {tamper.WORDS[each.detected_by]} |"
    assert line in (ROOT / "docs/security.md").read_text(encoding="utf-8")


def test_what_was_redacted_or_removed_is_not_checkable_and_not_broken(store: Store) -> None:
    entries = []
    for name in ("removed", "redacted", "entry", "stays"):
        case = a_case(name)
        store.cases.add(case)
        store.runs.finish(a_run(case, f"run-{name}"))
        entries.append(store.decisions.append(a_decision(case, f"run-{name}")))
    run = a_run(a_case("policy"), "run-policy", needs_review=False)
    store.cases.add(a_case("policy"))
    store.runs.finish(run)
    policy = store.decisions.append(accepted(run))
    store.redactions.redact_case("policy", by="Ada", reason="r")
    store.redactions.redact_case("redacted", by="Ada", reason="r")
    store.redactions.redact_entry(entries[2].id, by="Ada", reason="r")
    rule = RetentionRule(cutoff="2026-01-02T00:00:00.000Z", days=0, decided=True)
    with store.database.transaction() as connection:
        connection.execute("UPDATE jobs SET ended_at = '2026-02-01T00:00:00.000Z' WHERE id = 'run-stays'")
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


def test_a_run_that_was_altered_before_it_was_removed_shows_in_the_record_of_its_removal(store: Store) -> None:
    case = a_case()
    store.cases.add(case)
    store.runs.finish(a_run(case))
    store.decisions.append(a_decision(case))
    with store.database.transaction() as connection:
        tamper._packed(connection, "job_parts", "job_seq = 1 AND kind = 'iteration'", "1932", "1933")
    store.retention.remove(
        RetentionRule(cutoff="2026-01-02T00:00:00.000Z", days=0, decided=True), by="Ada", how="command"
    )
    [problem] = store.decisions.check_subjects().broken
    assert "the record of removals has another digest" in problem
