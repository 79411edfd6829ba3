"""The decision log as a page: what each kind of entry says, filters, and whether the
log is whole.
"""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from masis.schema.actor import Actor
from masis.schema.labels import TargetLabel
from masis.schema.review import LogEntry
from masis.schema.team import QueuePolicy
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.store import Store
from masis.store.records import DecisionFilter
from masis.ui import components
from masis.ui.review import decisions
from masis.ui.review.decisions import entry_context, log_filter
from masis.ui.review.log_view import entry_row
from masis.views.numbers import moment
from tests.reviewing import ADA, decide
from tests.ui.conftest import open_page, press, texts

CASE = "docs-02"


def row(workbench: Workbench, entry: LogEntry) -> dict[str, Any]:
    return entry_row(entry, entry_context(workbench, entry))


def test_an_entry_shows_reviewer_action_case_and_reason(audited_workbench: Workbench) -> None:
    entry = decide(audited_workbench, CASE, "reject", reason="useless", note="see the log")
    found = row(audited_workbench, entry)
    assert (found["who"], found["label"]["text"], found["reason"], found["note"]) == (
        "Ada",
        "Rejected",
        "useless",
        "see the log",
    )
    assert found["case"]["href"] == f"review?case={CASE}"
    assert "Quillbase" in found["case"]["question"]


def test_an_adjudication_names_the_adopted_decision(audited_workbench: Workbench) -> None:
    audited_workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    decide(audited_workbench, CASE, "reject", "Ana", reason="useless")
    decide(audited_workbench, CASE, "approve", "Ben")
    ana = audited_workbench.reviews.individual(CASE)[0].decision
    assert ana is not None
    taken = {"kind": "adjudication", "reviewer": "Cleo", "extra": {"taken_from": "Ana"}}
    for note, says in (
        (ana.note, "the original answer, Ana’s decision, as it was"),
        ("Mine.", "with changes"),
    ):
        final = ana.model_copy(update={**taken, "note": note, "token": note or "first"})
        entry = audited_workbench.reviews.adjudicate(Actor(name="Cleo"), final)
        assert row(audited_workbench, entry)["about"].endswith(says)


def test_details_show_the_correction_diff_and_labels(
    audited_workbench: Workbench,
) -> None:
    run = audited_workbench.cases.open(CASE).run
    shown = run.iterations[0].answer
    entry = decide(
        audited_workbench,
        CASE,
        "override",
        iteration=1,
        reason="wrong",
        corrected_answer=f"{shown} It was checked.",
        labels=(
            TargetLabel(
                target="claim", start=0, end=4, text=shown[:4], label="partial", note="it is there"
            ),
            TargetLabel(target="answer", label="incomplete", severity="low"),
        ),
        machine_shown=("scores", "marks"),
    )
    assert row(audited_workbench, entry)["more"] == [
        "corrected answer",
        "1 label",
        "1 reported issue",
    ]
    changes = decisions._correction_diff(audited_workbench, entry)
    assert "".join(change.text for change in changes if change.kind != "in") == shown
    assert "It was checked." in "".join(change.text for change in changes if change.kind == "in")
    detail = decisions._opened_detail(audited_workbench, entry)
    assert [(label["text"], label["reports"]) for label in detail["labels"]] == [
        (f"claim “{shown[:4]}”: partly supported (it is there)", False),
        ("the whole answer: incomplete, low", True),
    ]
    assert detail["run"]["href"] == f"review?case={CASE}&run={run.id}&iteration=1"
    assert ("The machine showed", "scores, marks") in detail["facts"]


def test_the_url_filters_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    address = {
        "case": "a",
        "reviewer": "Ada,acceptance policy",
        "verdict": "approve,never",
        "kind": "undo",
        "source": "HUMAN",
        "since": "2026-11-01",
        "until": "2026-11-30",
        "order": "oldest",
        "page": "2",
    }
    monkeypatch.setattr(st, "query_params", address)
    assert log_filter() == DecisionFilter(
        case_id="a",
        reviewers=("Ada", "acceptance policy"),
        verdicts=("approve",),
        kinds=("undo",),
        sources=("HUMAN",),
        since="2026-11-01",
        until="2026-12-01",
        newest_first=False,
        blind_to="",
        page=2,
        size=20,
    )


@pytest.mark.parametrize(
    "day", ["yesterday", "2026-13-40", "", "9999-12-31", "0001-01-01", "' OR 1"]
)
def test_an_invalid_day_is_ignored(monkeypatch: pytest.MonkeyPatch, day: str) -> None:
    monkeypatch.setattr(st, "query_params", {"until": day, "since": ""})
    log_filter()


def test_an_intact_log_is_confirmed_with_its_head(audited_workbench: Workbench) -> None:
    decide(audited_workbench, CASE, "approve")
    head = audited_workbench.store.decisions.head()
    said = texts(open_page("decisions"))
    assert f"The decision log is intact: {count_noun(head.length, 'entry')}" in said
    assert head.digest[:12] in said


def test_a_long_log_is_verified_on_request(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide(audited_workbench, CASE, "approve")
    monkeypatch.setattr(decisions, "CHECKED_AT_ONCE", 0)
    app = open_page("decisions")
    assert "not verified yet" in texts(app)
    press(app, "Verify the log")
    assert "The decision log is intact" in texts(app)


def test_an_altered_log_is_reported(audited_workbench: Workbench) -> None:
    decide(audited_workbench, CASE, "reject", reason="useless")
    connection = sqlite3.connect(audited_workbench.database)
    for (trigger,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute(
        "UPDATE decision_payloads SET payload = replace(payload, 'useless', 'perfect')"
    )
    connection.commit()
    connection.close()
    assert "can't be used" in texts(open_page("decisions"))
    Store.open(audited_workbench.database, unguarded="rearm").close()
    said = texts(open_page("decisions"))
    assert "The decision log isn't intact" in said
    assert "its content was altered" in said


def test_filters_that_match_nothing_can_be_cleared(audited_workbench: Workbench) -> None:
    decide(audited_workbench, CASE, "approve")
    app = open_page("decisions", verdict="escalate", case="nowhere")
    assert "No entry matches." in texts(app)
    press(app, "Clear filters")
    assert "newest first" in texts(app)


def test_an_empty_log_explains_the_page(audited_workbench: Workbench) -> None:
    audited_workbench.store.close()
    for suffix in ("", "-wal", "-shm"):
        audited_workbench.database.with_name(audited_workbench.database.name + suffix).unlink(
            missing_ok=True
        )
    assert "Nothing has been decided yet." in texts(open_page("decisions"))


def test_components_never_format_times_in_the_browsers_time_zone(
    audited_workbench: Workbench,
) -> None:
    entry = decide(audited_workbench, CASE, "escalate")
    assert row(audited_workbench, entry)["when"] == f"{moment(entry.at)} UTC"
    folder = Path(components.__file__).parent
    for script in folder.glob("*.js"):  # the rest of every page is in UTC, which it says
        assert not re.search(
            r"toLocale(Date|Time)String|hour:|getHours|getDate\b", script.read_text("utf-8")
        ), script
