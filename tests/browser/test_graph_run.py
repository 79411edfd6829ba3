"""A run that a graph brought waits on the page, and what is decided there is what the graph learns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, expect

from masis.api import stepwise
from masis.schema.case import Case
from masis.services import Workbench
from masis.settings import Settings
from tests.browser.conftest import Tab, serving
from tests.reviewing import ADA

CASE = Case.model_validate(
    {
        "id": "ferry-1",
        "query": "How long is the Halden bridge, and when was it opened?",
        "answer": "The Halden bridge is 90 metres long [chunk_1]. It cost 4 million crowns [chunk_9].",
        "evidence": [
            {"id": "chunk_1", "text": "The Halden bridge is 120 metres long. It is made of steel."},
            {"id": "chunk_2", "text": "It was opened to traffic in 1931 by the mayor."},
        ],
        "metadata": {"made_by": "langgraph", "thread_id": "ferry"},
    }
)
BETTER = "The Halden bridge is 120 metres long [chunk_1]. It was opened to traffic in 1931 [chunk_2]."


def test_the_second_draft_of_a_graph_is_approved_on_the_page(
    browser: Browser, open_tab: Callable[..., Tab], tmp_path: Path
) -> None:
    db = tmp_path / "graph.db"
    workbench = Workbench.open(db)
    run = stepwise.audit_once(CASE, Settings(), before=stepwise.audit_once(CASE, Settings()), answer=BETTER)
    workbench.cases.add(ADA, [CASE])
    workbench.audits.store_run(ADA, stepwise.evaluate_once(CASE, run, Settings()))
    assert workbench.reviews.outcome(CASE.id) is None
    with serving("serve", "--db", str(db), "--no-browser", folder=tmp_path) as base:
        tab = open_tab(base)
        tab.open("/queue")
        expect(tab.page.get_by_text("How long is the Halden bridge").first).to_be_visible()
        tab.open(f"/review?case={CASE.id}&iteration=2")
        found = tab.page.get_by_role("region", name="Decision")
        expect(found.get_by_role("navigation")).to_be_visible()
        found.get_by_label("Open the next case").uncheck()
        found.get_by_text("Approve", exact=True).click(delay=40)
        found.get_by_label("Your name").fill("Ada")
        found.get_by_role("button", name="Submit").click(delay=40)
        expect(found.get_by_role("status").first).to_contain_text("Approved revision 2.")
    decided = workbench.reviews.outcome(CASE.id)
    assert decided is not None
    assert (decided.decision.reviewer, decided.decision.iteration, decided.answer) == ("Ada", 2, BETTER)
    workbench.store.close()
