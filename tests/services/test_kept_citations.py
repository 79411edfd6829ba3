"""A corrected answer that cites what doesn't exist: the question of the page on every way in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import masis
from masis.datasets.readers.decisions import read_decisions
from masis.errors import InputError
from masis.schema.actor import Actor
from masis.schema.review import Decision
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.services.desk import Desk
from masis.store import Store

CLEO = Actor(name="Cleo")
WRONG: dict[str, Any] = {
    "reason": "fabricated_citation",
    "corrected_answer": "It was opened in 1932 [1]. It is painted grey [99].",
}
SAYS = (
    r"^corrected_answer: the corrected answer cites “99”, which doesn't match any evidence\. Correct the"
    r" citation, or set acknowledge_citations=True \(--acknowledge-citations; in a row of a"
    r" file \"acknowledge_citations\": true\) to keep it\.$"
)


@pytest.fixture
def desk(store: Store) -> Desk:
    """Ada's desk on five audited cases."""
    return Desk(Workbench(store, masis.Settings(), store.path), reviewer="Ada")


def test_a_desk_asks_about_unknown_citations_and_records_that_they_are_kept(desk: Desk) -> None:
    with pytest.raises(InputError, match=SAYS):
        desk.decide("case-0", "override", **WRONG)
    assert desk.log() == ()
    entry = desk.decide("case-0", "override", **WRONG, acknowledge_citations=True)
    assert entry.decision.extra["citations_kept"] == ["99"]
    # the acknowledgement is part of the decision that the label repeats
    again = desk.label("case-0", [{"text": "1932", "label": "supported"}])
    assert again.decision.extra["citations_kept"] == ["99"]


def test_a_correction_with_known_citations_is_not_asked_about(desk: Desk) -> None:
    right = {**WRONG, "corrected_answer": "It was opened in 1932 [1]."}
    entry = desk.decide("case-0", "override", **right, acknowledge_citations=True)
    assert "citations_kept" not in entry.decision.extra


def test_the_question_is_the_same_for_a_reviewer_who_may_not_see_the_audit(desk: Desk) -> None:
    desk.workbench.team.put_in_force(CLEO, QueuePolicy(reviewers=2, machine="never"))
    assert desk.show("case-0").machine_hidden
    with pytest.raises(InputError, match=SAYS):
        desk.decide("case-0", "override", **WRONG)
    # another answer's audit isn't read: only the correction and the evidence
    entry = desk.decide("case-0", "override", **WRONG, acknowledge_citations=True)
    assert entry.decision.machine_shown == ()


def test_an_adjudication_asks_about_unknown_citations(desk: Desk) -> None:
    desk.workbench.team.put_in_force(CLEO, QueuePolicy(reviewers=2, rule="adjudicated"))
    desk.decide("case-0", "approve")
    Desk(desk.workbench, reviewer="Ben").decide("case-0", "reject", reason="unclear")
    cleo = Desk(desk.workbench, reviewer="Cleo")
    with pytest.raises(InputError, match="cites “99”, which doesn't match any evidence"):
        cleo.adjudicate("case-0", "override", **WRONG)
    final = cleo.adjudicate("case-0", "override", **WRONG, acknowledge_citations=True)
    assert final.decision.extra["citations_kept"] == ["99"]


def test_a_row_of_a_file_asks_about_unknown_citations(desk: Desk, tmp_path: Path) -> None:
    row = {"case": "case-0", "verdict": "override", **WRONG}
    file = tmp_path / "decisions.jsonl"
    rows = [row, {**row, "case": "case-1", "acknowledge_citations": True}]
    file.write_text("\n".join(map(json.dumps, rows)))
    first, second = desk.decide_all(read_decisions(file))
    with pytest.raises(InputError, match=SAYS):
        raise first.error
    assert second.entry.decision.extra["citations_kept"] == ["99"]


def test_a_label_on_an_older_override_asks_about_its_citations(desk: Desk) -> None:
    old = Decision(
        reviewer="Ada", case_id="case-0", run_id="run-0", iteration=1, verdict="override", **WRONG
    )
    desk.workbench.store.decisions.append(old)
    label = [{"text": "1932", "label": "supported"}]
    with pytest.raises(InputError, match="cites “99”"):
        desk.label("case-0", label)
    entry = desk.label("case-0", label, acknowledge_citations=True)
    assert entry.decision.extra["citations_kept"] == ["99"]
