"""Many audits at once: their order, a stop, and a limit on what they may cost."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import masis
from masis.api import batch
from masis.api.batch import BatchItem, Budget, ItemResult, OverBudget, audit_in_threads
from masis.errors import InputError
from masis.schema.calls import Usage
from masis.settings import ROLES, Settings
from tests.cases import case_of
from tests.serving_models import ModelServer
from tests.store.factories import a_run
from tests.waiting import until, until_async

CASES = [
    masis.Case.model_validate({"id": str(n), "query": "Why?", "evidence": [{"id": "1"}]})
    for n in range(12)
]


def cost(usd: float) -> masis.Run:
    return a_run(CASES[0], "run").model_copy(
        update={"loose_calls": (), "usage": Usage(cost_usd=usd)}
    )


class Spent(Budget):
    """A budget where each audit costs ten dollars, and is estimated at that."""

    def __init__(self, limit: float) -> None:
        super().__init__(masis.Settings(), limit)
        self._spent, self._ended = 10.0, 1


def done_of(**told: Any) -> list[ItemResult]:
    return list(audit_in_threads((BatchItem(n, case) for n, case in enumerate(CASES)), **told))


def test_results_are_in_the_order_of_the_cases() -> None:
    first_may_end = threading.Event()

    def audit(job: BatchItem, cancelled: Callable[[], bool]) -> masis.Run:
        if job.number == 0:
            assert first_may_end.wait(20)
        elif job.number == 3:
            first_may_end.set()
        return cost(0)

    assert [finished.job.number for finished in done_of(audit=audit, at_once=2)] == list(range(12))


def test_no_audit_starts_after_a_stop() -> None:
    begun: list[int] = []
    stop, full = threading.Event(), threading.Barrier(4, timeout=20)

    def audit(job: BatchItem, cancelled: Callable[[], bool]) -> masis.Run:
        begun.append(job.number)
        full.wait()
        stop.set()
        return cost(0)

    done = done_of(audit=audit, at_once=4, stopping=stop.is_set)
    assert sorted(begun) == [finished.job.number for finished in done] == [0, 1, 2, 3]


def test_an_abandoned_iteration_cancels_audits_and_reads_no_more_cases() -> None:
    taken: list[int] = []
    ended = threading.Event()

    def jobs() -> Iterator[BatchItem]:
        for n, case in enumerate(CASES):
            taken.append(n)
            if n == 2:
                raise KeyboardInterrupt
            yield BatchItem(n, case)

    def audit(job: BatchItem, cancelled: Callable[[], bool]) -> masis.Run:
        try:
            while not cancelled():
                time.sleep(0.01)
        finally:
            ended.set()
        return cost(0)

    with pytest.raises(KeyboardInterrupt):
        list(audit_in_threads(jobs(), audit, at_once=4))
    assert ended.is_set()
    assert taken == [0, 1, 2]


def test_audits_that_might_exceed_the_limit_wait_for_running_ones() -> None:
    most, running, lock = 0, 0, threading.Lock()

    def audit(job: BatchItem, cancelled: Callable[[], bool]) -> masis.Run:
        nonlocal most, running
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1
        return cost(1.0)

    # 10 are spent: 2 may begin at 10 dollars each
    done = done_of(audit=audit, at_once=4, budget=Spent(31.0))
    assert most == 4  # once the first have shown that they cost less
    assert not any(isinstance(finished.outcome, OverBudget) for finished in done)


def priced_settings(server: ModelServer) -> masis.Settings:
    return masis.Settings.model_validate(
        {
            "providers": {"here": {"kind": "openai", "address": server.address}},
            "prices": {"here:m": {"input": 1000.0, "output": 1000.0}},
            "max_iterations": 1,
            **dict.fromkeys(ROLES, "here:m"),
        }
    )


def test_earlier_spending_doesnt_count_toward_a_single_audit() -> None:
    budget, audits = Budget(Settings(), 5.0, spent=2.6), 0
    while budget.try_start(case("a")):
        budget.record(Usage(calls=1, cost_usd=0.01))
        audits += 1
    assert audits == pytest.approx(240, abs=1)


def test_audit_many_respects_a_cost_limit_and_returns_a_run_per_case() -> None:
    with ModelServer(keep=False) as server:
        settings = priced_settings(server)
        one = masis.audit_many([case("a")], settings, progress=False)[0].usage.cost_usd
        assert one
        runs = masis.audit_many(
            map(case, "abcdefgh"), settings, concurrency=2, progress=False, max_cost=4.5 * one
        )
        unlimited = masis.audit_many(
            map(case, "abc"), settings, progress=False, max_cost=1000 * one
        )
    assert [run.case_id for run in runs] == list("abcdefgh")
    assert all(run.iterations for run in unlimited)
    audited = sum(bool(run.iterations) for run in runs)
    spent = sum(run.usage.cost_usd or 0.0 for run in runs)
    rest = runs[audited:]
    assert 3 <= audited < 8
    assert spent <= 4.5 * one
    assert {(run.termination_reason, run.needs_review, run.usage.calls) for run in rest} == {
        ("cancelled", True, 0)
    }
    for run in rest:
        assert run.warnings[0].message.startswith(
            f"Not audited: ${spent:,.2f} is spent, and one more audit could exceed"
        )
        assert run.warnings[0].message in [reason.message for reason in run.review_reasons]


def case(name: str) -> masis.Case:
    answer = "The bridge is 120 metres long [1]. It is red [9]."
    return case_of(answer, {"1": "The bridge is 120 metres long."}, case_id=name)


def test_a_cost_limit_needs_a_price_and_an_amount() -> None:
    with ModelServer(keep=False) as server:
        settings = priced_settings(server).model_copy(update={"prices": {}})
        with pytest.raises(InputError, match="max_cost: no price is known for here:m"):
            masis.audit_many([case("a")], settings, progress=False, max_cost=1)
    with pytest.raises(InputError, match="max_cost: is 0"):
        masis.audit_many([case("a")], progress=False, max_cost=0)


def cases(count: int) -> list[masis.Case]:
    return [case(f"case-{number}") for number in range(count)]


def test_ctrl_c_returns_finished_runs_and_starts_no_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[str] = []
    begin = batch.audit_events

    def count_audit(case: masis.Case, *rest: Any) -> Any:
        begun.append(case.id)
        return begin(case, *rest)

    def yield_then_interrupt() -> Iterator[masis.Case]:
        yield from cases(2)
        raise KeyboardInterrupt

    monkeypatch.setattr(batch, "audit_events", count_audit)
    found = masis.audit_many(
        yield_then_interrupt(), masis.Settings(max_iterations=1), concurrency=1
    )
    assert [run.case_id for run in found] == ["case-0", "case-1"]
    assert begun == ["case-0", "case-1"]
    assert "Interrupted. 2 audits finished" in capsys.readouterr().out


def test_all_invalid_cases_are_reported_before_any_audit(
    tmp_path: Path,
) -> None:
    given = [case("a").to_json_dict(), {"id": "b", "question": "How?"}, {"id": "c"}]
    with pytest.raises(
        InputError,
        match=r"2 problems: cases\[1\]\.query: is missing.*; cases\[2\]\.query: is missing",
    ):
        masis.audit_many(given, progress=False)
    with masis.Desk(tmp_path / "desk.db") as desk, pytest.raises(InputError, match="2 problems"):
        desk.audit(given, progress=False)
    with masis.Desk(tmp_path / "desk.db") as desk:
        assert desk.queue() == ()


def test_an_audit_of_a_frame_gives_a_row_for_each_row_of_a_frame() -> None:
    frame = pd.DataFrame(
        {
            "frage": ["Why?", "", "How?"],
            "antwort": ["So [1].", "Thus [1].", "Thus [2]."],
            "ctx": [["So."], ["b"], ["c"]],
        },
        index=["x", "x", "z"],
    )
    names = {"query": "frage", "answer": "antwort", "evidence": "ctx"}
    found = masis.audit(frame, masis.Settings(max_iterations=1), map=names, progress=False)
    assert list(found.index) == ["x", "x", "z"]
    assert [bool(error) for error in found["error"]] == [False, True, False]
    assert found["error"].iloc[1].startswith("cases[1].query: is empty")
    assert "which is which" not in found["error"].iloc[1], "none of its fields has another name"
    assert list(found["standing"]) == ["not_confirmed", "not_audited", "wrong"]
    assert list(found["invalid_citations"].dropna()) == [0, 1]
    assert {found[name].dtype.kind for name in ("quality", "claims", "seconds")} == {"f"}
    assert found.loc[found["needs_review"], "error"].size == 3
    assert list(
        masis.audit(iter([case("a")]), masis.Settings(max_iterations=1), progress=False).index
    ) == [0]


def test_a_frame_with_other_column_names_is_explained_once() -> None:
    rows = [
        {"frage": "Warum?", "antwort": "So [1].", "beleg": "So ist es.", "ticket_id": f"T-{n}"}
        for n in range(5)
    ]
    with pytest.raises(InputError) as raised:
        masis.audit(pd.DataFrame(rows), progress=False)
    assert str(raised.value).count('map={"query": "frage"') == 1
    assert "--map" not in str(raised.value)
    assert "cases[4].query: the same" in str(raised.value)
    names = masis.suggest(pd.DataFrame(rows)).names
    assert names == {"query": "frage", "answer": "antwort", "evidence": "beleg", "id": "ticket_id"}
    assert list(masis.audit(pd.DataFrame(rows), map=names, progress=False)["case_id"]) == [
        f"T-{n}" for n in range(5)
    ]
    # it says nothing of a row
    assert "id" not in masis.suggest([{**row, "ticket_id": "T-1"} for row in rows]).names


def test_masis_audit_stays_a_function_after_modules_of_its_package_are_imported() -> None:
    program = (
        "import masis, masis.audit.loop; from masis.audit import loop; from masis import audit;"
        " print(masis.audit is audit, callable(audit), loop.__name__)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert shown.stdout.split() == ["True", "True", "masis.audit.loop"]
    assert inspect.signature(masis.audit) == inspect.signature(masis.aaudit)


def test_async_code_awaits_the_same_table() -> None:
    rows, settings = [case("a"), {"id": "b"}], masis.Settings(max_iterations=1)
    table = asyncio.run(masis.aaudit(rows, settings, progress=False))
    same = masis.audit(rows, settings, progress=False)
    for column in ("case_id", "standing", "needs_review", "error"):
        assert list(table[column]) == list(same[column])


def test_a_cancelled_task_starts_no_further_audit_and_stops_those_in_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, ended = list[str](), list[str]()

    def audit(job: BatchItem, settings: Settings, cancelled: Callable[[], bool]) -> masis.Run:
        started.append(job.case.id)
        until(cancelled, "the audit is cancelled")
        ended.append(job.case.id)
        return cost(0)

    async def cancel_early() -> None:
        task = asyncio.create_task(masis.aaudit(CASES, concurrency=2, progress=False))
        await until_async(lambda: len(started) == 2, "two audits are in progress")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    monkeypatch.setattr(batch, "_audit_job", audit)
    asyncio.run(cancel_early())
    until(lambda: len(ended) == 2, "both audits end")
    assert len(started) == 2


def test_read_cases_returns_a_list_and_names_every_invalid_line(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    good = [case.to_json_dict() for case in cases(2)]
    file.write_text("".join(json.dumps(record) + "\n" for record in good))
    assert masis.read_cases(file) == cases(2)
    file.write_text(json.dumps(good[0]) + "\n{}\nnot json\n")
    with pytest.raises(InputError, match=r"problems: .*line 2.*line 3"):
        masis.read_cases(str(file))
