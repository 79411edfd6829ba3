"""What calls to models took, in words, and what a batch would take."""

from __future__ import annotations

from pathlib import Path

import pytest

from masis.schema.calls import Usage
from masis.schema.run import Event
from masis.services import Workbench
from masis.services.records import CaseFilter
from masis.settings import ROLES, Settings
from masis.ui.queue.overview import batch_costs, batch_time, can_be_limited
from masis.views.spending import spent, spent_so_far
from tests.audit.test_loop_waiting import TellingCritic, audited, waiting
from tests.reviewing import ADA


def test_what_was_spent_tells_retries_caches_and_an_unknown_price() -> None:
    usage = Usage(calls=2, tries=3, prompt_tokens=1000, cached_tokens=400, completion_tokens=200, cost_usd=0.01)
    assert spent(usage) == "2 calls, 1 retry, 1,200 tokens (40% of those sent came from a cache), $0.0100"
    assert spent(Usage(calls=1, tries=1, prompt_tokens=10)) == "1 call, 10 tokens, cost unknown"


def test_a_run_under_way_tells_what_its_finished_calls_took() -> None:
    assert spent_so_far([]) == ""
    run = audited(waiting(TellingCritic()))
    assert run.usage.calls == 1


def test_the_overview_says_where_a_batch_would_be_sent_and_what_it_may_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workbench = Workbench.open(tmp_path / "masis.db")
    workbench.cases.add_demo(ADA)
    assert batch_costs(workbench, 60) == ""
    assert not can_be_limited(workbench)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-0123456789abcdef")
    workbench.settings = Settings(**dict.fromkeys(ROLES, "openai"))  # type: ignore[arg-type]
    said = batch_costs(workbench, 60)
    assert "are sent to api.openai.com." in said
    assert "at most about $" in said
    assert can_be_limited(workbench)
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "Set OPENAI_API_KEY" in batch_costs(workbench, 60)


def test_the_overview_says_how_long_a_batch_takes_at_the_pace_of_audits_by_the_same_models(tmp_path: Path) -> None:
    workbench = Workbench.open(tmp_path / "masis.db")
    workbench.cases.add_demo(ADA)
    assert batch_time(workbench, 60) == ""
    first, second = workbench.cases.find(CaseFilter(size=2)).rows
    for row in (first, second):
        workbench.audits.audit(ADA, workbench.store.cases.get(row.id))
    with workbench.store.database.transaction() as connection:
        connection.execute("UPDATE run_measures SET loop_ms = 1500")
    assert batch_time(workbench, 60) == "About 2 minutes at the pace of the last 2 audits with these models."
    assert batch_time(workbench, 1) == "About 2 seconds at the pace of the last 2 audits with these models."
    workbench.settings = Settings(critic="openai")
    assert batch_time(workbench, 60) == ""


def test_replies_that_no_model_gave_are_counted_apart_and_show_no_tokens_or_cost() -> None:
    cached, replayed = Usage(cached_calls=2, cost_usd=0.0), Usage(replayed_calls=1, cost_usd=0.0)
    assert spent(cached) == "2 replies from the cache, unpaid"
    assert spent(replayed) == "1 recorded reply"
    answered = {"source": "replay", "tries": 1, "cost_usd": 0.0}
    event = Event(run_id="r", case_id="c", seq=1, at="", kind="call_finished", data=answered)
    assert spent_so_far([event, event]) == "2 recorded replies; no model was called"
    both = Usage(calls=1, tries=1, prompt_tokens=10, cost_usd=0.01, cached_calls=1)
    assert spent(both) == "1 call, 10 tokens, 1 reply from the cache, unpaid, $0.0100"
