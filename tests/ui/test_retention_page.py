"""The page of retention: what would go, removing it by name and word; and pages that meet an audit
that is gone.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from masis.schema.actor import Actor
from masis.schema.retention import PurgePlan, RetentionRule
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.services.maintenance.retention import rule_of
from masis.store.retention.removal import Retention
from masis.ui.admin import retention_page
from masis.ui.admin.retention_page import parts_words, plan_row
from masis.ui.review.run_list import run_row
from tests.reviewing import decide
from tests.ui.conftest import AUDITED, labels, open_page, texts

DECIDED, WAITS = AUDITED[0], AUDITED[1]


@pytest.fixture
def old(audited_workbench: Workbench) -> Workbench:
    """Audits forty days old, one of them decided on."""
    decide(audited_workbench, DECIDED)
    with sqlite3.connect(audited_workbench.database) as connection:
        connection.execute(
            "UPDATE jobs SET ended_at = strftime('%Y-%m-%dT%H:%M:%fZ', julianday(ended_at) - 40)"
        )
    connection.close()
    return audited_workbench


def press(app: AppTest, *, name: str, word: str) -> AppTest:
    fields = {field.label: field for field in app.text_input}
    fields["Your name, for the record"].set_value(name)
    fields["Type “remove”"].set_value(word)
    next(button for button in app.button if button.label.startswith("Remove ")).click()
    app.run()
    assert not app.exception
    return app


def test_the_purge_preview_is_computed_once_per_rule(
    old: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[RetentionRule] = []

    plan = Retention.plan

    def count_plan(retention: Retention, rule: RetentionRule) -> PurgePlan:
        looked.append(rule)
        return plan(retention, rule)

    monkeypatch.setattr(Retention, "plan", count_plan)
    app = press(open_page("retention"), name="Grace", word="not yet")
    assert len(looked) == 1
    app.checkbox(key="retention-decided").check().run()
    assert [rule.decided for rule in looked] == [False, True]
    press(app, name="Grace", word="remove")
    assert len(looked) == 3, "after a removal it is looked for again"


def test_the_url_sets_the_age_limit(old: Workbench) -> None:
    app = open_page("retention", days="50")
    assert not [button for button in app.button if button.label.startswith("Remove ")]
    app = open_page("retention", days="39")
    assert [button for button in app.button if button.label.startswith("Remove ")]
    assert not open_page("retention", days="many").exception


def test_the_plan_explains_why_the_rest_is_kept(
    old: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = old.store.retention.plan(rule_of(30))
    monkeypatch.setattr(retention_page, "LISTED", 2)
    app = open_page("retention")
    drawn = {(metric.label, metric.value, metric.delta) for metric in app.metric}
    assert ("Kept", "1", "because people decided on them") in drawn
    assert ("Would be removed", f"{len(AUDITED) - 1} audits") in {row[:2] for row in drawn}
    assert f"and {len(AUDITED) - 3} more" in texts(app)
    assert "event" in parts_words(plan)
    case: Any = plan_row(plan.goes[0])["cells"][0]
    assert case["href"].startswith("review?case=")


def test_blind_reviewers_see_no_endings_or_scores_here(old: Workbench) -> None:
    assert "End reason" in str(column_titles(open_page("retention")))
    old.team.put_in_force(Actor(name="Lead"), QueuePolicy(machine="after"))
    app = open_page("retention")
    assert not {"End reason", "Quality", "Improvement"} & set(column_titles(app))
    assert "How audits ended is left out" in texts(app)


def column_titles(app: AppTest) -> list[str]:
    """Return the titles of the columns of the execution log."""
    (table,) = [
        component for component in app.get("bidi_component") if "executions" in component.proto.id
    ]
    return [column["title"] for column in json.loads(table.proto.json)["columns"]]


# pages that meet what is gone


@pytest.fixture
def purged(old: Workbench) -> Workbench:
    """Every audit removed."""
    done = old.retention.purge(Actor(name="Grace"), rule_of(30, decided=True), how="command")
    assert done.purge is not None
    return old


def test_pages_report_a_removed_audit_and_offer_a_new_one(purged: Workbench) -> None:
    for case in (DECIDED, WAITS):
        run = purged.cases.open(case).runs[0]
        for address in ({"case": case}, {"case": case, "run": run.id}):
            app = open_page("review", **address)
            said = "\n".join(info.value for info in app.info)
            assert "was removed on" in said
            assert "by the retention policy" in said
            assert "Audit again" in labels(app)
        watched = open_page("new", job=run.id, case=case)
        assert any(
            "The retention policy removed this audit on" in info.value for info in watched.info
        )


def test_every_page_handles_removed_audits(purged: Workbench) -> None:
    entry = purged.store.decisions.current(DECIDED)
    for page in ("queue", "overview", "decisions", "compare", "metrics", "health", "retention"):
        open_page(page)
    for page, address in (
        ("compare", {"case": DECIDED}),
        ("new", {"case": DECIDED}),
        ("decisions", {"entry": entry.id}),
    ):
        open_page(page, **address)


def test_the_case_history_marks_removed_runs(purged: Workbench) -> None:
    row: Any = run_row(purged.cases.open(WAITS).runs[0])
    _, state, judged, _, quality, *_ = row["cells"]
    assert (state["pills"][0]["text"], judged["below"]) == ("Removed", [""])
    assert quality is not None
