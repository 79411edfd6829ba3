"""The button on a case that verifies claims without the passages that decide them."""

from __future__ import annotations

from masis.schema.team import QueuePolicy
from masis.services import Workbench
from tests.modes import ADA
from tests.ui.conftest import AUDITED, open_page, press, texts
from tests.waiting import until

SIGNED_IN = {"reviewer-name": "Ada"}


def case_with_passages(workbench: Workbench) -> str:
    return next(
        case_id for case_id in AUDITED if workbench.minimal_evidence.plan(ADA, case_id).claims
    )


def test_claims_are_verified_after_their_cost_is_shown_and_the_page_counts_the_results(
    audited_workbench: Workbench,
) -> None:
    service = audited_workbench.minimal_evidence
    case_id = case_with_passages(audited_workbench)
    page = press(open_page("review", SIGNED_IN, case=case_id), "minimal-open")
    assert "It calls no model and is free." in texts(page)
    assert not service.results(ADA, case_id)
    total = len(service.plan(ADA, case_id).claims)
    press(page, "minimal-start")
    until(lambda: len(service.results(ADA, case_id)) == total, "all results")
    shown = texts(open_page("review", SIGNED_IN, case=case_id)).replace("\\", "")
    changed = sum(result.decisive for result in service.results(ADA, case_id))
    assert f"The verdict changed for {changed} of {total} claim" in shown


def test_the_button_is_missing_while_the_policy_hides_the_audit(
    audited_workbench: Workbench,
) -> None:
    audited_workbench.team.put_in_force(ADA, QueuePolicy(machine="after"))
    page = open_page("review", SIGNED_IN, case=AUDITED[0])
    assert not [button for button in page.button if button.key == "minimal-open"]
