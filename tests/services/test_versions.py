"""New versions of a case: pasted text for evidence of which only the address was known."""

from __future__ import annotations

import pytest

from masis.errors import CaseHeld, InputError, StaleVersion, StoreError
from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.review import Decision
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.services.arrivals.versions import LONGEST_TEXT, fillable
from masis.services.cases import versions_of
from masis.services.records import CaseFilter
from tests.store.factories import a_case, a_run

ADA, BEN = Actor(name="Ada"), Actor(name="Ben")


def a_bare_case(case_id: str = "case-1", **keys: object) -> Case:
    """A case with two addresses without text, and one chunk with text."""
    evidence = [
        {"id": "1", "text": "", "source": "https://example.org/one"},
        {"id": "2", "text": "What the second says."},
        {"id": "3", "text": " ", "source": "https://example.org/three"},
    ]
    return a_case(case_id, evidence=evidence, **keys)


@pytest.fixture
def workbench(bench: Workbench) -> Workbench:
    """One audited case whose evidence lacks text, and another one."""
    for case in (a_bare_case(), a_case("other")):
        bench.store.cases.add(case)
        bench.store.runs.finish(a_run(case, f"run of {case.id}", needs_review=True))
    return bench


def decide(
    workbench: Workbench, verdict: str = "escalate", actor: Actor = ADA, case_id: str = "case-1"
) -> str:
    run = f"run of {case_id}" if "@" not in case_id else None
    decision = Decision.model_validate(
        {
            "reviewer": actor.name,
            "case_id": case_id,
            "run_id": run,
            "verdict": verdict,
            "reason": "why",
        }
    )
    return workbench.reviews.submit(
        actor, decision, seen_version=workbench.cases.summary(case_id).version
    ).id


def state(workbench: Workbench, case_id: str) -> str:
    return workbench.cases.summary(case_id).state


def test_pasted_text_creates_a_new_version(
    workbench: Workbench,
) -> None:
    before = workbench.store.cases.get("case-1")
    newer = workbench.versions.fill_evidence(
        ADA, "case-1", {"1": "  What the first says.\n", "3": ""}
    )
    assert newer.id == "case-1@2"
    assert [chunk.text for chunk in newer.evidence] == [
        "What the first says.",
        "What the second says.",
        " ",
    ]
    assert [chunk.source for chunk in newer.evidence] == [chunk.source for chunk in before.evidence]
    assert (newer.query, newer.answer, newer.metadata) == (
        before.query,
        before.answer,
        before.metadata,
    )
    assert (newer.earlier_version.id, newer.earlier_version.digest) == ("case-1", before.digest())
    assert workbench.store.cases.get("case-1") == before
    assert workbench.store.cases.get("case-1@2") == newer
    assert (state(workbench, "case-1"), state(workbench, "case-1@2")) == ("superseded", "new")
    assert workbench.versions.neighbours(newer) == ("case-1", None)
    assert workbench.versions.neighbours(before) == (None, "case-1@2")
    assert workbench.store.decisions.verify().intact
    assert not workbench.store.decisions.check_subjects().broken


def test_a_superseded_case_leaves_the_queue(
    workbench: Workbench,
) -> None:
    workbench.versions.fill_evidence(ADA, "case-1", {"1": "Quillfeather."})
    found = workbench.cases.find(workbench.team.open_to(BEN, CaseFilter()))
    assert sorted(row.id for row in found.rows) == ["case-1@2", "other"]
    assert [row.id for row in workbench.cases.find(CaseFilter(text="quillfeather")).rows] == [
        "case-1@2"
    ]
    assert [row.id for row in workbench.cases.find(CaseFilter(states=("superseded",))).rows] == [
        "case-1"
    ]


def test_a_wrong_text_can_be_replaced_by_another_version(workbench: Workbench) -> None:
    second = workbench.versions.fill_evidence(ADA, "case-1", {"1": "The wrong text."})
    assert fillable(second) == ("1", "3")
    third = workbench.versions.fill_evidence(ADA, second.id, {"1": "The right text."})
    assert third.id == "case-1@3"
    assert third.evidence[0].text == "The right text."
    assert versions_of(workbench.store, "case-1@2") == ("case-1", "case-1@2", "case-1@3")
    assert [state(workbench, case_id) for case_id in ("case-1", "case-1@2", "case-1@3")] == [
        "superseded"
    ] * 2 + ["new"]


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ({}, "no text was pasted"),
        ({"1": " \n"}, "no text was pasted"),
        ({"2": "Another text."}, "'2' isn't evidence without text in case 'case-1'"),
        ({"9": "A text."}, "'9' isn't evidence"),
        ({"1": "x" * (LONGEST_TEXT + 1)}, "has 200,001 characters"),
    ],
)
def test_unchanged_text_is_rejected(workbench: Workbench, texts: dict[str, str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        workbench.versions.fill_evidence(ADA, "case-1", texts)
    assert state(workbench, "case-1") == "needs_review"
    assert workbench.store.cases.count() == 2


def test_only_the_newest_version_can_be_filled_and_decided(workbench: Workbench) -> None:
    workbench.versions.fill_evidence(ADA, "case-1", {"1": "Text."})
    with pytest.raises(StoreError, match="already has a newer version, 'case-1@2'"):
        workbench.versions.fill_evidence(ADA, "case-1", {"3": "Text."})
    with pytest.raises(StoreError, match="has a newer version"):
        decide(workbench, "approve")
    decide(workbench, "approve", case_id="case-1@2")
    assert (state(workbench, "case-1"), state(workbench, "case-1@2")) == ("superseded", "approved")


def test_an_escalated_case_can_get_more_evidence(
    workbench: Workbench,
) -> None:
    entry = decide(workbench, "escalate")
    workbench.versions.fill_evidence(BEN, "case-1", {"1": "Text."})
    assert state(workbench, "case-1") == "superseded"
    assert workbench.reviews.get(entry).decision is not None
    assert not workbench.store.decisions.check_subjects().broken


@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_a_decided_case_cant_be_replaced(workbench: Workbench, verdict: str) -> None:
    decide(workbench, verdict)
    with pytest.raises(StoreError, match="already has 1 decision"):
        workbench.versions.fill_evidence(BEN, "case-1", {"1": "Text."})


def test_a_running_or_redacted_case_cant_be_replaced(workbench: Workbench) -> None:
    case = workbench.store.cases.get("case-1")
    run = a_run(case, "under way")
    workbench.store.runs.start(
        run.id, case_id=case.id, case_digest=case.digest(), models=run.models, settings=run.settings
    )
    with pytest.raises(StoreError, match="is being audited"):
        workbench.versions.fill_evidence(ADA, "case-1", {"1": "Text."})
    workbench.store.runs.finish(run)
    workbench.reviews.redact_case(ADA, "case-1", "asked for")
    with pytest.raises(StoreError, match="is redacted"):
        workbench.versions.fill_evidence(ADA, "case-1", {"1": "Text."})


def test_a_case_leased_by_another_cant_be_replaced(workbench: Workbench) -> None:
    workbench.team.claim(BEN, "case-1")
    with pytest.raises(CaseHeld, match="Ben has taken"):
        workbench.versions.fill_evidence(ADA, "case-1", {"1": "Text."})
    workbench.versions.fill_evidence(BEN, "case-1", {"1": "Text."})
    assert workbench.store.team.leases() == ()


def test_a_stale_page_replaces_nothing(workbench: Workbench) -> None:
    seen = workbench.cases.summary("case-1").version
    decide(workbench, "escalate")
    with pytest.raises(StaleVersion):
        workbench.versions.fill_evidence(ADA, "case-1", {"1": "Text."}, seen_version=seen)
    assert workbench.store.cases.count() == 2


def test_redacting_one_version_redacts_all(workbench: Workbench) -> None:
    workbench.versions.fill_evidence(ADA, "case-1", {"1": "Quillfeather."})
    workbench.drafts.save(ADA, "evidence:case-1@2", {"3": "Quillfeather again"})
    done = workbench.reviews.redact_case(ADA, "case-1", "asked for")
    assert (done.runs, done.drafts) == (1, 1)
    assert [state(workbench, case_id) for case_id in ("case-1", "case-1@2", "other")] == [
        *["redacted"] * 2,
        "needs_review",
    ]
    assert b"Quillfeather" not in b"".join(
        path.read_bytes() for path in workbench.database.parent.iterdir()
    )


def test_a_forged_version_link_is_ignored(workbench: Workbench) -> None:
    claimed = {"id": "other", "digest": "0" * 64, "number": 2}
    case = a_case("claims", supersedes=claimed)
    workbench.cases.add(ADA, [case])
    assert workbench.versions.neighbours(workbench.store.cases.get("claims")) == (None, None)
    assert state(workbench, "other") == "needs_review"


def test_blind_reviewers_dont_see_results_of_earlier_versions(
    workbench: Workbench,
) -> None:
    workbench.team.put_in_force(ADA, QueuePolicy(machine="after"))
    newer = workbench.versions.fill_evidence(ADA, "case-1", {"1": "Text."})
    assert workbench.cases.open_for(BEN, "case-1").machine_hidden
    assert workbench.cases.open_for(BEN, "case-1").run is None
    decide(workbench, "approve", BEN, newer.id)
    assert not workbench.cases.open_for(BEN, "case-1").machine_hidden
