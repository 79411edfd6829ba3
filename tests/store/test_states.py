"""Where a case stands follows from its runs and its log, whatever happened in whatever order."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from masis.errors import StoreError
from masis.store import Store
from masis.store.core.connections import connect
from masis.store.reviews.states import EntryFact, RunFact, derive_state, problems, refresh
from tests.store.conftest import ticking
from tests.store.factories import (
    SETTINGS,
    a_case,
    a_decision,
    a_run,
    acceptance_of,
    an_iteration,
    an_undo,
)

pytestmark = pytest.mark.slow

VERDICTS = {
    "approve": "approved",
    "override": "overridden",
    "reject": "rejected",
    "escalate": "escalated",
}


@pytest.mark.parametrize(
    ("runs", "entries", "state"),
    [
        ([], [], "new"),
        (["running"], [], "running"),
        (["interrupted"], [], "interrupted"),
        (["finished"], [], "needs_review"),
        (["finished", "running"], [], "running"),
        (["finished", "interrupted"], [], "needs_review"),
        (["finished"], [("policy_accept", None, 1, None)], "accepted"),
        (["finished", "finished"], [("policy_accept", None, 1, None)], "needs_review"),
        (["finished", "running"], [("decision", "reject", 1, None)], "rejected"),
        (
            ["finished"],
            [("policy_accept", None, 1, None), ("decision", "approve", 1, None)],
            "approved",
        ),
        (
            ["finished"],
            [("decision", "approve", 1, None), ("policy_accept", None, 1, None)],
            "approved",
        ),
        (["finished"], [("policy_accept", None, 1, None), ("undo", None, 1, 1)], "needs_review"),
        ([], [("decision", "escalate", None, None)], "escalated"),
        ([], [("decision", "escalate", None, None), ("redaction", None, None, None)], "escalated"),
    ],
)
def test_states_follow_the_table(runs: list[str], entries: list[tuple], state: str) -> None:
    facts = [RunFact(seq, run) for seq, run in enumerate(runs, 1)]
    assert (
        derive_state(facts, [EntryFact(seq, *entry) for seq, entry in enumerate(entries, 1)]).state
        == state
    )


class OneCase(RuleBasedStateMachine):
    """Everything that can happen to a case; a simple model of it says where it must stand."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = Store.open(Path(self.folder.name) / "masis.db", now=ticking())
        self.case = a_case()
        self.store.cases.add(self.case)
        self.runs: dict[str, str] = {}
        self.standing: list[tuple[str, str]] = []
        self.accepted: dict[str, str] = {}
        self.version = 1
        self.shown: tuple[object, ...] = ("new", None, None)

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    @rule()
    def start(self) -> None:
        run_id = f"run-{len(self.runs)}"
        self.store.runs.start(
            run_id,
            case_id=self.case.id,
            case_digest=self.case.digest(),
            models={},
            settings=SETTINGS,
        )
        self.runs[run_id] = "running"

    def unfinished_runs(self, state: str) -> list[str]:
        return [run_id for run_id, now in self.runs.items() if now == state]

    @precondition(lambda self: self.unfinished_runs("running"))
    @rule(data=st.data())
    def interrupt(self, data: st.DataObject) -> None:
        run_id = data.draw(st.sampled_from(self.unfinished_runs("running")))
        self.store.runs.abandon(run_id, "Ctrl-C")
        self.runs[run_id] = "interrupted"

    @precondition(lambda self: self.unfinished_runs("interrupted"))
    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        run_id = data.draw(st.sampled_from(self.unfinished_runs("interrupted")))
        self.store.runs.resume(run_id)
        self.runs[run_id] = "running"

    @precondition(lambda self: self.unfinished_runs("running"))
    @rule(data=st.data(), clean=st.booleans())
    def finish(self, data: st.DataObject, clean: bool) -> None:
        run_id = data.draw(st.sampled_from(self.unfinished_runs("running")))
        run = a_run(self.case, run_id, iterations=(an_iteration(invalid=() if clean else ("7",)),))
        self.store.runs.finish(run)
        self.runs[run_id] = "finished"
        if clean:
            self.accepted[run_id] = self.store.decisions.append(acceptance_of(run)).id

    @rule(verdict=st.sampled_from(sorted(VERDICTS)), redacted=st.booleans())
    def decide(self, verdict: str, redacted: bool) -> None:
        entry = self.store.decisions.append(
            a_decision(self.case, None, verdict=verdict, reason="r", corrected_answer="c")
        )
        self.standing.append((entry.id, VERDICTS[verdict]))
        if redacted:
            self.store.decisions.redact(entry.id, by="Grace", reason="name")

    @precondition(lambda self: self.store.decisions.current("case-1"))
    @rule()
    def undo(self) -> None:
        current = self.store.decisions.current("case-1")
        self.store.decisions.append(an_undo(self.case, current.id))
        if self.standing:
            assert self.standing.pop()[0] == current.id
        else:
            self.accepted = {
                run_id: entry for run_id, entry in self.accepted.items() if entry != current.id
            }

    @rule()
    def undo_something_that_does_not_stand(self) -> None:
        current = self.store.decisions.current("case-1")
        for entry in self.store.decisions.entries().rows:
            if current is None or entry.id != current.id:
                with pytest.raises(StoreError):
                    self.store.decisions.append(an_undo(self.case, entry.id))

    def expected_state(self) -> str:
        finished = [run_id for run_id, now in self.runs.items() if now == "finished"]
        if self.standing:
            return self.standing[-1][1]
        if self.unfinished_runs("running"):
            return "running"
        if finished:
            return "accepted" if finished[-1] in self.accepted else "needs_review"
        return "interrupted" if self.runs else "new"

    @invariant()
    def it_stands_where_it_must_and_recomputing_changes_nothing(self) -> None:
        assert self.store.cases.summary("case-1").state == self.expected_state()
        connection = connect(self.store.path)
        assert list(problems(connection)) == []
        before = tuple(connection.execute("SELECT * FROM cases").fetchone())
        refresh(connection, 1)
        assert tuple(connection.execute("SELECT * FROM cases").fetchone()) == before
        connection.close()
        assert self.store.decisions.verify().intact

    @invariant()
    def its_version_rises_with_what_all_may_see_and_not_with_an_acceptance(self) -> None:
        summary, current = (
            self.store.cases.summary("case-1"),
            self.store.decisions.current("case-1"),
        )
        by_policy = summary.state == "accepted"
        shown = (
            "needs_review" if by_policy else summary.state,
            summary.run_id,
            None if by_policy else current and current.id,
        )
        assert summary.version >= self.version
        assert (summary.version > self.version) == (shown != self.shown)
        self.version, self.shown = summary.version, shown


TestOneCase = OneCase.TestCase
TestOneCase.settings = settings(
    max_examples=12, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)


def test_a_manually_changed_state_is_detected(store: Store) -> None:
    store.cases.add(a_case())
    store.database.execute("UPDATE cases SET state = 'approved'")
    check = store.check()
    assert not check.ok
    assert check.problems == (
        "case 'case-1' is marked approved, but its runs and decisions make it new",
    )
