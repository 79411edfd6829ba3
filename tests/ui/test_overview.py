"""The overview: what waits is said first, and each situation has its next step."""

from __future__ import annotations

import pytest

from masis.schema.review import Decision
from masis.services import Workbench
from masis.settings import ROLES, Settings
from masis.ui.live import served_jobs
from masis.ui.queue.case_list import PRODUCT
from masis.ui.queue.overview import headline, nothing_waits
from masis.ui.shell.served_database import served_workbench
from tests.reviewing import submitted
from tests.ui.conftest import OpenPage, labels, texts
from tests.waiting import until


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ({"needs_review": 1, "new": 4}, "1 case needs review"),
        ({"needs_review": 1200}, "1,200 cases need review"),
        ({"new": 3, "interrupted": 1}, "4 cases have not been audited"),
        ({"approved": 3}, "No case needs review"),
    ],
)
def test_the_headline_is_what_there_is_to_do(states: dict[str, int], said: str) -> None:
    assert headline(states) == said


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ({"new": 3, "interrupted": 1, "running": 1, "approved": 0}, "No case has been audited yet"),
        ({"new": 3, "accepted": 1}, "all that did have been decided"),
    ],
)
def test_an_empty_list_says_whether_anything_was_looked_at(states: dict[str, int], said: str) -> None:
    assert said in nothing_waits(states)


def test_each_state_leads_to_its_cases(audited_workbench: Workbench, open_page: OpenPage) -> None:
    links = [link.proto for link in open_page("overview").get("page_link")]
    ways = {link.query_string: link.label for link in links if link.query_string}
    assert ways["state=new"] == "**2** :gray[Not audited]"
    assert "state=needs_review" in ways
    assert "state=rejected" not in ways


def test_a_first_visit_is_told_what_the_product_is_and_led_to_a_case_that_shows_much_and_to_what_was_not_audited(
    audited_workbench: Workbench, open_page: OpenPage
) -> None:
    app = open_page("overview")
    said = texts(app)
    for expected in (PRODUCT, "New here?", "Halvorsen Marine", "2 cases have not been audited"):
        assert expected in said
    assert str(audited_workbench.database) in said
    assert {"Open this case", "Audit all 2 cases"} <= set(labels(app))


def test_once_somebody_has_decided_the_first_steps_are_gone(audited_workbench: Workbench, open_page: OpenPage) -> None:
    run = audited_workbench.cases.open("docs-02-altered").run
    assert run is not None
    submitted(audited_workbench, Decision(reviewer="Ana", case_id="docs-02-altered", run_id=run.id, verdict="approve"))
    said = texts(open_page("overview"))
    assert "New here?" not in said
    assert "No person has decided" not in said


def test_a_limit_on_cost_that_no_audit_fits_leaves_every_case_and_says_so(
    audited_workbench: Workbench, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not open_page("overview").number_input  # the offline audits cost nothing
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-0123456789abcdef")
    served_workbench().settings = Settings(**dict.fromkeys(ROLES, "openai"))  # type: ignore[arg-type]
    app = open_page("overview")
    app.number_input(key="audit-all-limit").set_value(0.01)
    app.button(key="audit-all").click().run()
    until(lambda: (batch := served_jobs().batch()) is not None and not batch.under_way, "the batch")
    app.run()
    assert not app.exception
    assert "It ended there since one more audit could pass the limit on cost." in texts(app)
    assert audited_workbench.cases.facets().states["new"] == 2
