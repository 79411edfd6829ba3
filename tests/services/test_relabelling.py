"""Guarantees for dataset versions: drawn, labeled again blind, bounded, and stated."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from masis.datasets.exports.export import Selection
from masis.errors import InputError, NotAllowed, StoreError
from masis.schema.actor import Actor
from masis.schema.labels import TargetLabel
from masis.schema.review import Decision
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.services.access import SIGN_IN_REQUIRED
from masis.services.records import CaseFilter, DecisionFilter
from masis.services.relabelling import GuaranteeState, RelabellingService
from masis.store.reviews.states import problems
from tests.planted import fill_with_approved
from tests.reviewing import ADA, decide

BEN = Actor(name="Ben")
LEA = Actor(name="Lea", roles=("lead",), authenticated=True)
READER = Actor(name="Ben", roles=("reviewer",), authenticated=True)


@pytest.fixture
def workbench(bench: Workbench) -> Workbench:
    """Six answers that Ada approved, frozen as v1."""
    fill_with_approved(bench, 6)
    bench.datasets.freeze(ADA, "v1", "decided", Selection())
    return bench


def draw(workbench: Workbench, **keys: Any) -> list[str]:
    """Draw all six labels for Ben, and return the ids of the copies."""
    keys = {"rate": 0.2, "n": 6, "seed": 1} | keys
    workbench.relabelling.draw(ADA, "v1", ["Ben"], **keys)
    return [item.copy_id for item in workbench.store.relabelling.list_drawn(1)]


def relabel(workbench: Workbench, case_id: str, verdict: str = "approve", **given: Any) -> None:
    content = {"reviewer": "Ben", "case_id": case_id, "run_id": None, "verdict": verdict}
    decision = Decision.model_validate({**content, "reason": "read", **given})
    workbench.reviews.submit(BEN, decision)


def state(workbench: Workbench, name: str = "v1") -> GuaranteeState:
    found = workbench.relabelling.state(ADA, name)
    assert found is not None
    return found


def test_an_offer_says_how_many_labels_are_needed_before_anything_is_drawn(
    workbench: Workbench,
) -> None:
    offer = workbench.relabelling.offer(ADA, "v1", rate=0.2, level=0.95)
    assert (offer.labels, offer.left_out, offer.method) == (6, 0, "hypergeometric")
    # One wrong label of six is within 20%; two wrong ones hide from 4 draws with 1 in 15 chances.
    assert offer.needed == (5, 6, None, None)
    assert workbench.relabelling.state(ADA, "v1") is None


def test_a_copy_holds_the_labeled_answer_and_nothing_of_the_label(workbench: Workbench) -> None:
    for copy_id in draw(workbench):
        view = workbench.cases.open_for(BEN, copy_id)
        assert view.case.answer
        assert (view.state, view.decision, view.run, view.runs) == ("new", None, None, ())
        assert [e.decision.kind for e in view.history if e.decision] == ["assign"]
        assert "Ada" not in json.dumps(view.case.to_json_dict())
        assert workbench.team.work(BEN, copy_id).assignees == ("Ben",)


def test_copies_come_up_in_the_other_persons_queue_and_not_in_the_authors(
    workbench: Workbench,
) -> None:
    copies = draw(workbench)
    assert workbench.team.count_open(BEN, CaseFilter()) == 6
    assert workbench.team.count_open(ADA, CaseFilter()) == 0
    with pytest.raises(StoreError, match="assigned to another person"):
        decide(workbench, copies[0])


def test_an_audit_of_a_copy_is_hidden_until_it_is_decided(workbench: Workbench) -> None:
    first, *_ = draw(workbench)
    workbench.audits.audit(ADA, workbench.store.cases.get(first))
    view = workbench.cases.open_for(BEN, first)
    assert view.machine_hidden
    assert view.run is None
    rows = {row.id: row for row in workbench.cases.find_for(BEN, CaseFilter()).rows}
    assert rows[first].quality is None
    assert rows[first].standing in ("to_review", "not_audited")


def test_one_person_decides_a_copy_under_a_policy_of_several(workbench: Workbench) -> None:
    copies = draw(workbench)
    workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    assert workbench.team.work(BEN, copies[0]).policy is None
    for copy_id in copies:
        relabel(workbench, copy_id)
    assert state(workbench).status == "holds"
    with workbench.store.database.reading() as connection:
        assert list(problems(connection)) == []


def test_results_are_shown_only_when_all_are_decided(workbench: Workbench) -> None:
    *others, last = draw(workbench)
    for copy_id in others:
        relabel(workbench, copy_id, "reject")
    found = state(workbench)
    assert (found.status, found.remaining, found.wrong, found.bound) == ("open", 1, None, None)
    assert found.differing == ()
    assert found.by_person == {"Ben": (5, 6)}
    relabel(workbench, last)
    found = state(workbench)
    assert (found.status, found.wrong) == ("fails", 5)
    assert len(found.differing) == 5
    assert found.guarantee is None


def test_a_guarantee_is_part_of_the_manifest_and_the_card(
    workbench: Workbench, tmp_path: Path
) -> None:
    workbench.datasets.freeze(ADA, "hub", "hf", Selection())
    workbench.relabelling.draw(ADA, "hub", ["Ben"], rate=0.2, n=6, seed=3)
    first, *others = [item.copy_id for item in workbench.store.relabelling.list_drawn(1)]
    relabel(workbench, first, "reject")
    for copy_id in others:
        relabel(workbench, copy_id)
    workbench.datasets.write(ADA, "hub", tmp_path / "hub")
    manifest = json.loads((tmp_path / "hub" / "manifest.json").read_text())
    assert manifest["guarantee"] == {
        "rate": 0.2,
        "level": 0.95,
        "labels": 6,
        "n": 6,
        "wrong": 1,
        "bound": pytest.approx(1 / 6),
        "method": "hypergeometric",
        "seed": 3,
        "relabelled_by": ["Ben"],
    }
    assert workbench.relabelling.manifest(ADA, "hub")["guarantee"] == manifest["guarantee"]
    card = (tmp_path / "hub" / "README.md").read_text()
    assert "At most 20.0% of the 6 labels are wrong, at 95.0% confidence" in card


def test_a_wrong_label_is_another_class_of_verdict_or_another_label_on_the_same_words(
    workbench: Workbench,
) -> None:
    from masis.trust.relabelling import is_wrong

    def make_decision(verdict: str, *labels: str) -> Decision:
        marks = [TargetLabel(target="claim", start=0, end=3, text="The", label=x) for x in labels]
        return Decision(
            reviewer="Ada", case_id="c", run_id=None, verdict=verdict, labels=tuple(marks)
        )

    assert is_wrong(make_decision("approve"), make_decision("reject"))
    assert is_wrong(make_decision("approve"), make_decision("escalate"))
    assert is_wrong(
        make_decision("reject", "contradicted"), make_decision("override", "unsupported")
    )
    assert not is_wrong(make_decision("reject"), make_decision("override"))
    assert not is_wrong(make_decision("reject", "contradicted"), make_decision("reject"))


def test_copies_are_never_exported_as_labels(workbench: Workbench) -> None:
    copies = draw(workbench)
    relabel(workbench, copies[0], "reject")
    out = io.BytesIO()
    workbench.exports.write(ADA, out, "decided", Selection(CaseFilter()))
    ids = {json.loads(line)["case"]["id"] for line in out.getvalue().splitlines()}
    assert not ids & set(copies)
    assert len(ids) == 6
    log = io.BytesIO()
    workbench.exports.write_log_csv(ADA, log, DecisionFilter(case_id=copies[0]))
    assert "bridge-01" in log.getvalue().decode()


def test_a_second_sample_of_the_same_labels_shares_the_error(workbench: Workbench) -> None:
    for copy_id in draw(workbench):
        relabel(workbench, copy_id, "reject")
    assert workbench.relabelling.offer(ADA, "v1").needed == ()
    with pytest.raises(InputError, match="used up"):
        workbench.relabelling.draw(ADA, "v1", ["Ben"], rate=0.2)
    workbench.datasets.freeze(ADA, "again", "decided", Selection())
    with pytest.raises(InputError, match="used up"):
        workbench.relabelling.draw(ADA, "again", ["Ben"], rate=0.2)
    again = workbench.relabelling.draw(ADA, "v1", ["Ben"], rate=0.2, level=0.9, n=6)
    assert (again.plan.error, again.plan.level) == (0.05, 0.9)


def test_a_guarantee_lapses_with_the_data_set(workbench: Workbench) -> None:
    for copy_id in draw(workbench):
        relabel(workbench, copy_id)
    assert state(workbench).status == "holds"
    workbench.datasets.remove(ADA, "v1")
    workbench.datasets.freeze(ADA, "v1", "decided", Selection())
    assert workbench.relabelling.state(ADA, "v1") is None
    assert "guarantee" not in workbench.relabelling.manifest(ADA, "v1")


def test_redacting_a_case_redacts_its_copy_and_ends_the_guarantee(workbench: Workbench) -> None:
    copies = draw(workbench)
    for copy_id in copies:
        relabel(workbench, copy_id)
    workbench.reviews.redact_case(ADA, "bridge-01", "asked")
    assert state(workbench).status == "lapsed"
    assert "bridge" not in (workbench.store.cases.get(copies[0]).answer or "")


def test_a_withdrawn_sample_gives_no_guarantee_and_spends_nothing_before_a_decision(
    workbench: Workbench,
) -> None:
    draw(workbench)
    with pytest.raises(StoreError, match="isn't finished"):
        workbench.relabelling.draw(ADA, "v1", ["Ben"], rate=0.2)
    assert workbench.relabelling.withdraw(ADA, "v1") == 6
    assert state(workbench).status == "withdrawn"
    assert workbench.relabelling.offer(ADA, "v1", rate=0.2).needed[0] == 5
    assert workbench.team.count_open(BEN, CaseFilter()) == 0


def test_an_author_cannot_be_the_only_one_who_checks(workbench: Workbench) -> None:
    with pytest.raises(InputError, match="decided it themselves"):
        workbench.relabelling.draw(ADA, "v1", ["Ada"], rate=0.2)
    assert workbench.relabelling.state(ADA, "v1") is None
    shared = workbench.relabelling.draw(ADA, "v1", ["Ada", "Ben", "Cy"], rate=0.2, n=6)
    assert shared.by_person == {"Ben": (0, 3), "Cy": (0, 3)}


def test_a_wrong_label_of_a_reopened_case_is_counted_but_not_listed(workbench: Workbench) -> None:
    for copy_id in draw(workbench):
        relabel(workbench, copy_id, "reject")
    current = workbench.reviews.current("bridge-01")
    assert current is not None
    workbench.reviews.undo(ADA, current.id)
    found = state(workbench)
    assert found.wrong == 6
    assert "bridge-01" not in [label.case_id for label in found.differing]


def test_only_leads_draw_and_withdraw(workbench: Workbench) -> None:
    service = RelabellingService(workbench.store, SIGN_IN_REQUIRED)
    with pytest.raises(NotAllowed):
        service.draw(READER, "v1", ["Cy"], rate=0.2)
    service.draw(LEA, "v1", ["Cy"], rate=0.2)
    with pytest.raises(NotAllowed):
        service.withdraw(READER, "v1")
    assert service.withdraw(LEA, "v1") == 5
