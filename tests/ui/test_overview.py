"""The overview: what waits is said first, each situation has its next step, and what a batch took
and may take.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from masis.schema.actor import Actor
from masis.schema.calls import Usage
from masis.schema.run import Event
from masis.services import ANONYMOUS, Workbench, demo_cases
from masis.services.records import CaseFilter
from masis.settings import ROLES, Settings
from masis.ui.live import served_jobs
from masis.ui.queue.case_list import PRODUCT
from masis.ui.queue.overview import batch_costs, batch_time, can_be_limited, headline, pace
from masis.ui.review.desk import OpenDesk, Place, whole_queue
from masis.ui.review.log_view import LogClick
from masis.ui.shell.served_database import served_workbench
from masis.views.spending import spent_so_far, usage_text
from tests.reviewing import ADA, decide, undone
from tests.services.test_comparison import add_answer
from tests.ui.conftest import AUDITED, Serve, labels, open_page, texts
from tests.waiting import until


@pytest.mark.parametrize(
    ("states", "standings", "says"),
    [
        (
            {"needs_review": 1, "new": 4},
            {"wrong": 1},
            "5 cases need review; the audit flags 1 of them; 4 are not audited yet",
        ),
        (
            {"needs_review": 1200, "accepted": 18},
            {"wrong": 70},
            (
                "1,200 cases need review; the audit flags 70 of them; 18 passed the audit without"
                " a person's decision"
            ),
        ),
        ({"needs_review": 3}, {"not_confirmed": 3}, "3 cases need review"),
        (
            {"needs_review": 8, "needs_adjudication": 14, "escalated": 1},
            {"wrong": 8},
            "8 cases need review",
        ),
        ({"needs_adjudication": 1, "new": 2}, {}, "1 case needs an adjudication"),
        ({"new": 3, "interrupted": 1}, {}, "4 cases have not been audited"),
        ({"approved": 3}, {"decided": 3}, "No cases need review"),
    ],
)
def test_the_headline_is_the_next_task(
    audited_workbench: Workbench, states: dict[str, int], standings: dict[str, int], says: str
) -> None:
    counts = {"states": states, "standings": standings}
    assert headline(audited_workbench.cases.facets().model_copy(update=counts)) == says


def test_each_status_links_to_its_cases(audited_workbench: Workbench) -> None:
    links = [link.proto for link in open_page("overview").get("page_link")]
    ways = {link.query_string: link.label for link in links if link.query_string}
    assert ways["standing=not_audited"] == "**2** :gray[Not audited]"
    assert "standing=wrong" in ways
    assert "standing=decided" not in ways


def test_a_first_visit_explains_the_product_and_suggests_a_case(
    audited_workbench: Workbench,
) -> None:
    app = open_page("overview")
    said = texts(app)
    for expected in (PRODUCT, "New here?", "Halvorsen Marine", "2 cases have not been audited"):
        assert expected in said
    assert {"Open this case", "Audit all 2 cases"} <= set(labels(app))


def test_recent_decisions_have_one_row_per_case(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[list[str]] = []

    def log(data: dict[str, Any], *, key: str) -> LogClick:
        drawn.append([row["label"]["text"] for row in data["rows"]])
        return LogClick(None, None, None)

    monkeypatch.setattr("masis.ui.queue.overview.decision_log", log)
    decide(audited_workbench, AUDITED[0], "approve")
    decide(audited_workbench, AUDITED[1], "escalate")
    undone(audited_workbench, AUDITED[1], "Ada")
    decide(audited_workbench, AUDITED[1], "escalate")
    open_page("overview")
    assert drawn[-1] == ["Escalated", "Approved"]


def test_todays_own_decisions_are_counted_with_their_time(audited_workbench: Workbench) -> None:
    assert "today" not in texts(open_page("overview", {"reviewer-name": "Ada"}))
    for case, seconds in zip(AUDITED[:3], (20.0, 40.0, 400.0), strict=True):
        decide(audited_workbench, case, extra={"seconds": seconds})
    undone(audited_workbench, AUDITED[2], "Ada")
    decide(audited_workbench, AUDITED[2], "escalate", extra={"seconds": 20.3})
    decide(audited_workbench, AUDITED[3], reviewer="Bob", extra={"seconds": 5.0})
    said = texts(open_page("overview", {"reviewer-name": "Ada"}))
    assert "You decided 2 cases and escalated 1 case today, in 20 s each (median)." in said
    assert pace(3, 1, 20.3, 6).endswith("About 2 min left at this pace (6 cases).")


def test_the_cases_left_are_the_same_number_on_the_overview_the_button_and_the_desk(
    audited_workbench: Workbench,
) -> None:
    ada = Actor(name="Ada")
    decide(audited_workbench, "docs-02", extra={"seconds": 20.0})
    waiting = audited_workbench.team.open_to(ada, CaseFilter())
    first, second, *others = [row.id for row in audited_workbench.cases.find(waiting).rows]
    audited_workbench.team.skip(ada, [first])
    audited_workbench.team.claim(Actor(name="Bob"), second)
    count = audited_workbench.team.count_open(ada, CaseFilter())
    assert count == len(others) + 1  # the skipped case is left, the one that Bob has isn't
    session = {"reviewer-name": "Ada"}
    title = next(title.value for title in open_page("overview", session).title)
    assert title.startswith(f"{count + 1} cases need review;")
    assert f"; {count} of them are left for you" in title
    # until the page knows the name, it can't know whose cases are held
    assert audited_workbench.team.count_open(ANONYMOUS, CaseFilter()) == count + 1
    assert f"left at this pace ({count} cases)" in texts(open_page("overview", session))
    assert f"Open the first of {count} waiting cases" in labels(open_page("review", session))
    place = Place(case=others[0])
    desk = OpenDesk.open(audited_workbench, ada, place, whole_queue(CaseFilter()), lambda _: None)
    assert desk.data()["go"]["says"] == f"{count} left to review"


def test_first_steps_disappear_after_the_first_decision(audited_workbench: Workbench) -> None:
    decide(audited_workbench, "docs-02")
    said = texts(open_page("overview"))
    assert "New here?" not in said
    assert "Nobody has decided" not in said


def test_a_cost_limit_too_low_for_any_audit_is_reported(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not open_page("overview").number_input  # the offline audits cost nothing
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-0123456789abcdef")
    served_workbench().settings = Settings(**dict.fromkeys(ROLES, "openai"))  # type: ignore[arg-type]
    app = open_page("overview")
    app.number_input(key="audit-all-limit").set_value(0.01)
    app.button(key="audit-all").click().run()
    until(
        lambda: (batch := served_jobs().batch()) is not None and not batch.is_running, "the batch"
    )
    app.run()
    assert not app.exception
    assert "In the last batch, 0 cases were audited.** It stopped because one more" in texts(app)
    assert audited_workbench.cases.facets().states["new"] == 2


def test_spending_shows_retries_caches_and_unknown_prices() -> None:
    usage = Usage(
        calls=2,
        tries=3,
        prompt_tokens=1000,
        cached_tokens=400,
        completion_tokens=200,
        cost_usd=0.01,
    )
    assert (
        usage_text(usage)
        == "2 calls, 1 retry, 1,200 tokens (40% of those sent came from a cache), $0.0100"
    )
    assert (
        usage_text(Usage(calls=1, tries=1, prompt_tokens=10)) == "1 call, 10 tokens, cost unknown"
    )


def test_the_overview_shows_where_a_batch_is_sent_and_its_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workbench = Workbench.open(tmp_path / "masis.db")
    workbench.cases.add(ADA, demo_cases())
    assert batch_costs(workbench, 60) == ""
    assert not can_be_limited(workbench)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-0123456789abcdef")
    workbench.settings = Settings(**dict.fromkeys(ROLES, "openai"))  # type: ignore[arg-type]
    said = batch_costs(workbench, 60)
    assert "question, evidence and answer to api.openai.com." in said
    assert "at most about $" in said
    assert can_be_limited(workbench)
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "Set OPENAI_API_KEY" in batch_costs(workbench, 60)


def test_the_overview_estimates_the_duration_of_a_batch(
    tmp_path: Path,
) -> None:
    workbench = Workbench.open(tmp_path / "masis.db")
    workbench.cases.add(ADA, demo_cases())
    assert batch_time(workbench, 60) == ""
    first, second = workbench.cases.find(CaseFilter(size=2)).rows
    for row in (first, second):
        workbench.audits.audit(ADA, workbench.store.cases.get(row.id))
    with workbench.store.database.transaction() as connection:
        connection.execute("UPDATE run_measures SET loop_ms = 1500")
    assert (
        batch_time(workbench, 60)
        == "About 1 min 30 s at the pace of the last 2 audits with these models."
    )
    assert (
        batch_time(workbench, 1)
        == "About 1.5 s at the pace of the last 2 audits with these models."
    )
    workbench.settings = Settings(critic="openai")
    assert batch_time(workbench, 60) == ""


def test_recorded_replies_are_counted_separately_without_tokens_or_cost() -> None:
    cached, replayed = Usage(cached_calls=2, cost_usd=0.0), Usage(replayed_calls=1, cost_usd=0.0)
    assert usage_text(cached) == "2 replies from the cache, at no cost"
    assert usage_text(replayed) == "1 recorded reply"
    answered = {"source": "replay", "tries": 1, "cost_usd": 0.0}
    event = Event(run_id="r", case_id="c", seq=1, at="", kind="call_finished", data=answered)
    assert spent_so_far([]) == ""
    assert spent_so_far([event, event]) == "2 recorded replies; no model was called"
    both = Usage(calls=1, tries=1, prompt_tokens=10, cost_usd=0.01, cached_calls=1)
    assert usage_text(both) == "1 call, 10 tokens, 1 reply from the cache, at no cost, $0.0100"


def test_two_systems_that_answered_the_same_questions_are_offered_for_comparison(
    tmp_path: Path, serve: Serve
) -> None:
    served = serve(tmp_path / "systems.db")
    add_answer(served, "q", "v1")
    assert "Which system is better?" not in texts(open_page())
    add_answer(served, "q", "v2")
    assert "Which system is better?" in texts(open_page())
