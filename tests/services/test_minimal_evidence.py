"""Claims verified again without the passages that decide them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from masis.datasets.exports.export import Selection
from masis.datasets.exports.origin import refuse_export
from masis.errors import InputError, Removed, ResultsHidden, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.labels import LabelPassage
from masis.schema.minimal_evidence import MinimalEvidence, remove_passages
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.services.desk import Desk
from masis.services.maintenance.retention import rule_of
from masis.services.minimal_evidence import verifier_settings
from masis.services.records import CaseFilter
from masis.settings import Settings
from tests.reviewing import ADA

BEN = Actor(name="Ben")
OPENED = "It was opened in 1932."
CASE = Case.model_validate(
    {
        "id": "bridge",
        "query": "How long is the bridge, and when was it opened?",
        "answer": "The bridge is ten metres long [1]. It was opened in 1932 [2].",
        "evidence": [
            {"id": "1", "text": "The bridge is ten metres long. It is red."},
            {"id": "2", "text": f"Old records say more. {OPENED}"},
            {"id": "3", "text": f"A later report. {OPENED}"},
        ],
    }
)
LABEL: dict[str, Any] = {
    "text": "It was opened in 1932 [2].",
    "label": "supported",
    "target": "claim",
    "evidence": [{"evidence_id": "2", "text": OPENED}, {"evidence_id": "3", "text": OPENED}],
}


@pytest.fixture
def workbench(tmp_path: Path) -> Iterator[Workbench]:
    """One audited case, of which the second claim is in two chunks."""
    opened = Workbench.open(tmp_path / "review.db")
    opened.cases.add(ADA, [CASE])
    opened.audits.audit(ADA, CASE)
    yield opened
    opened.close()


def count_stored(workbench: Workbench) -> int:
    return int(workbench.store.database.value("SELECT count(*) FROM minimal_evidence"))


def label_by(workbench: Workbench, name: str) -> None:
    Desk(workbench, reviewer=name).decide(
        "bridge", "approve", labels=[LABEL], acknowledge=True, reason="checked"
    )


def passage(text: str, words: str, start: int | None = None) -> LabelPassage:
    at = text.index(words) if start is None else start
    return LabelPassage(evidence_id="1", start=at, end=at + len(words), text=words)


def test_a_plan_names_the_claims_with_passages_and_costs_nothing_offline(
    workbench: Workbench,
) -> None:
    plan = workbench.minimal_evidence.plan(ADA, "bridge")
    assert plan.claims == {
        1: "The bridge is ten metres long [1].",
        2: "It was opened in 1932 [2].",
    }
    assert plan.models == ()
    assert {cost.calls for cost in plan.cost.values()} == {0}


def test_a_plan_names_the_model_and_the_most_that_its_two_verdicts_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-0123456789abcdef")
    bench = Workbench.open(tmp_path / "model.db", settings=Settings(critic="offline"))
    bench.cases.add(ADA, [CASE])
    run = bench.audits.audit(ADA, CASE)
    stored_run = run.model_copy(
        update={"id": "by-model", "settings": {**run.settings, "verifier": "openai:gpt-4o-mini"}}
    )
    bench.store.runs.finish(stored_run)
    plan = bench.minimal_evidence.plan(ADA, "bridge")
    assert plan.models == ("openai:gpt-4o-mini",)
    assert [cost.calls >= 2 for cost in plan.cost.values()] == [True, True]
    assert all(cost.tokens > 0 for cost in plan.cost.values())
    bench.close()


def test_claims_are_verified_on_a_thread_with_progress_and_can_be_stopped(
    workbench: Workbench,
) -> None:
    task = workbench.minimal_evidence.start(ADA, "bridge")
    task.wait(60)
    assert (task.failed, task.done, task.share) == (None, 2, 1.0)
    assert "2 of 2 claims" in task.progress_text
    assert workbench.minimal_evidence.latest("bridge") is task
    assert count_stored(workbench) == 2
    asked: list[int] = []

    def stop_after_the_first(done: int) -> bool:
        asked.append(done)
        return False

    assert (
        len(workbench.minimal_evidence.verify(ADA, "bridge", on_progress=stop_after_the_first)) == 1
    )
    assert asked == [1]


def test_a_verdict_that_rests_on_its_passage_changes_without_it(workbench: Workbench) -> None:
    (result,) = workbench.minimal_evidence.verify(ADA, "bridge", claim=1)
    assert [found.text for found in result.passages] == ["The bridge is ten metres long."]
    assert (result.audited, result.before, result.after) == (
        "supported",
        "supported",
        "unverifiable",
    )
    assert result.decisive
    assert (result.by, result.judged_by, result.label_by) == ("Ada", "offline", "")
    assert CASE.answer is not None
    assert CASE.answer[result.start : result.end] == result.text
    assert workbench.minimal_evidence.results(ADA, "bridge") == (result,)


def test_a_verdict_stands_if_another_chunk_says_the_same(workbench: Workbench) -> None:
    (result,) = workbench.minimal_evidence.verify(ADA, "bridge", claim=2)
    assert [found.evidence_id for found in result.passages] == ["2"]
    assert (result.before, result.after, result.decisive) == ("supported", "supported", False)


def test_a_label_names_the_passages_before_the_audit_does(workbench: Workbench) -> None:
    label_by(workbench, "Ada")
    (result,) = workbench.minimal_evidence.verify(ADA, "bridge", claim=2)
    assert [found.evidence_id for found in result.passages] == ["2", "3"]
    assert (result.label_by, result.after, result.decisive) == ("Ada", "unverifiable", True)


def test_all_claims_with_passages_are_verified_and_only_the_newest_results_are_shown(
    workbench: Workbench,
) -> None:
    for _ in range(2):
        newest = workbench.minimal_evidence.verify(ADA, "bridge")
        assert [result.claim for result in newest] == [1, 2]
    assert results(workbench) == newest
    label_by(workbench, "Ada")
    workbench.minimal_evidence.verify(BEN, "bridge", claim=2)
    assert len(export_rows(workbench)) == len(results(workbench)) == 3


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ({"claim": 3}, "is 3, and the answer has 2 claims"),
        ({"claim": 0}, "is 0, and the answer has 2 claims"),
        ({"iteration": 9}, "is 9, and the audit has"),
    ],
)
def test_a_claim_that_does_not_exist_is_refused(
    workbench: Workbench, wanted: dict[str, int], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        workbench.minimal_evidence.verify(ADA, "bridge", **wanted)


def test_a_case_without_audit_or_without_passages_is_refused(workbench: Workbench) -> None:
    other = CASE.model_copy(update={"id": "other", "answer": "It cost nine million pounds."})
    workbench.cases.add(ADA, [other])
    with pytest.raises(InputError, match="has no finished audit"):
        workbench.minimal_evidence.verify(ADA, "other")
    workbench.audits.audit(ADA, other)
    assert workbench.minimal_evidence.verify(ADA, "other") == ()
    with pytest.raises(InputError, match="has no passage that decides its verdict"):
        workbench.minimal_evidence.verify(ADA, "other", claim=1)
    for use in (workbench.minimal_evidence.verify, workbench.minimal_evidence.results):
        with pytest.raises(UnknownRecord):
            use(ADA, "nothing")


def test_an_audit_with_recorded_replies_is_refused_and_other_roles_are_not_needed(
    workbench: Workbench,
) -> None:
    run = workbench.cases.open("bridge").run
    assert run is not None
    replayed = run.model_copy(
        update={"settings": run.settings | {"verifier": "replay:replies.jsonl"}}
    )
    with pytest.raises(InputError, match="was audited with recorded replies"):
        verifier_settings(replayed, Settings())
    critic = run.model_copy(update={"settings": run.settings | {"critic": "replay:replies.jsonl"}})
    assert verifier_settings(critic, Settings()).critic == "offline"
    thorough = critic.model_copy(update={"settings": critic.settings | {"depth": "thorough"}})
    with pytest.raises(InputError, match="was audited with recorded replies"):
        verifier_settings(thorough, Settings())


def test_results_are_hidden_as_long_as_the_audit_is(workbench: Workbench) -> None:
    workbench.minimal_evidence.verify(ADA, "bridge")
    workbench.team.put_in_force(ADA, QueuePolicy(machine="after"))
    for use in (workbench.minimal_evidence.verify, workbench.minimal_evidence.results):
        with pytest.raises(ResultsHidden):
            use(BEN, "bridge")
    assert count_stored(workbench) == 2


def test_labels_of_others_stay_hidden_while_decisions_are_missing(workbench: Workbench) -> None:
    workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    label_by(workbench, "Ada")
    (by_label,) = workbench.minimal_evidence.verify(ADA, "bridge", claim=2)
    assert by_label.label_by == "Ada"
    assert workbench.minimal_evidence.results(BEN, "bridge") == ()
    assert export_rows(workbench) == []
    (by_audit,) = workbench.minimal_evidence.verify(BEN, "bridge", claim=2)
    assert (by_audit.label_by, len(by_audit.passages)) == ("", 1)
    label_by(workbench, "Ben")
    assert workbench.minimal_evidence.results(BEN, "bridge") == (by_label, by_audit)


def export_rows(workbench: Workbench) -> list[dict[str, Any]]:
    out = io.BytesIO()
    workbench.exports.write(ADA, out, "contrast", Selection(CaseFilter()))
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_contrast_pairs_have_the_evidence_with_and_without_the_passages(
    workbench: Workbench,
) -> None:
    workbench.minimal_evidence.verify(ADA, "bridge", claim=1)
    (row,) = export_rows(workbench)
    with pytest.raises(InputError, match="export format 'contrast'"):
        refuse_export(row, "cases")
    assert row["claim"] == "The bridge is ten metres long [1]."
    assert row["with_passages"]["verdict"] == "supported"
    assert row["with_passages"]["evidence"][0]["text"] == CASE.evidence[0].text
    assert row["without_passages"]["verdict"] == "unverifiable"
    texts = [chunk["text"] for chunk in row["without_passages"]["evidence"]]
    assert texts == [" It is red.", CASE.evidence[1].text, CASE.evidence[2].text]
    assert (row["decisive"], row["passage_by"]) == (True, "audit")


def test_redaction_and_retention_remove_the_results(workbench: Workbench) -> None:
    label_by(workbench, "Ada")
    workbench.minimal_evidence.verify(ADA, "bridge")
    (labelled,) = [r for r in results(workbench) if r.label_by]
    workbench.reviews.redact_entry(ADA, labelled.entry_id, "asked")
    assert [r.label_by for r in results(workbench)] == [""]
    with pytest.raises(Removed):  # the redaction came while the verifier was asked
        workbench.store.minimal_evidence.add(labelled)
    workbench.reviews.redact_case(ADA, "bridge", "asked")
    assert count_stored(workbench) == 0


def test_a_purge_of_the_audit_removes_the_results(workbench: Workbench) -> None:
    (result, _) = workbench.minimal_evidence.verify(ADA, "bridge")
    workbench.retention.purge(ADA, rule_of(0, waiting=True), how="page")
    with pytest.raises(Removed):
        workbench.store.minimal_evidence.add(result)
    assert count_stored(workbench) == 0


def results(workbench: Workbench) -> tuple[MinimalEvidence, ...]:
    return workbench.minimal_evidence.results(ADA, "bridge")


@pytest.mark.parametrize(
    ("text", "words", "left"),
    [
        ("A b c.", ["b "], "A c."),
        ("one,two", [","], "one two"),
        ("ab cd ef", ["ab cd", "cd ef"], ""),
        ("ab cd ef", ["cd", "cd"], "ab  ef"),
        ("ab", [], "ab"),
    ],
)
def test_removed_words_overlap_and_glue_no_others(text: str, words: list[str], left: str) -> None:
    assert remove_passages("1", text, [passage(text, word) for word in words]) == left


def test_words_that_are_not_at_their_place_stay() -> None:
    assert remove_passages("1", "ab cd", [passage("", "cd", start=0)]) == "ab cd"
    assert remove_passages("2", "ab cd", [passage("ab cd", "cd")]) == "ab cd"
