"""The queue: what its address narrows and orders, and that filters can be taken out one by one."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args
from urllib.parse import parse_qsl

import pytest
import streamlit as st

from masis.schema.actor import Actor
from masis.schema.case import Case, Severity
from masis.schema.review import Standing
from masis.schema.rules import ReviewCode
from masis.schema.team import QueuePolicy
from masis.schema.wording import count_noun
from masis.services import Workbench, demo_cases
from masis.services.access import Access
from masis.services.cases import shown_flags
from masis.services.drafts import case_subject
from masis.services.records import NOT_DECIDED, ORDERS, CaseFilter, CaseSummary
from masis.ui.components import linked_table
from masis.ui.components.linked_table import TableChoice, TableEvent
from masis.ui.queue import case_list
from masis.ui.queue.case_list import case_columns, case_row, state_cell
from masis.ui.shell import address
from masis.views.words import REASON, SEVERITY, STANDING
from tests.cases import case_of
from tests.reviewing import ADA, decide
from tests.ui.conftest import Serve, open_page, press, texts


@pytest.fixture
def query(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    params: dict[str, str] = {}
    monkeypatch.setattr(st, "query_params", params)
    return params


def test_every_filter_has_a_url_parameter(query: dict[str, str]) -> None:
    query |= {
        "q": "offshore wind",
        "standing": "decided,wrong,nowhere",
        "state": "rejected,needs_adjudication,new",
        "flag": "invalid_reference",
        "reason": "revised,unconfirmed_claim,nothing",
        "field": "Medicine,Law%2C public",
        "model": "offline",
        "reviewer": "Ana",
        "similar": "case-1,case%2C2",
        "quality": "0.2-0.8",
        "confidence": "-0.5",
        "order": "random",
        "seed": "7",
        "page": "3",
        "size": "50",
    }
    assert address.case_filter() == CaseFilter(
        text="offshore wind",
        standings=("decided", "wrong"),
        states=("needs_adjudication", "rejected"),
        flags=("invalid_reference",),
        reasons=("unconfirmed_claim", "revised"),
        fields=("Medicine", "Law, public"),
        models=("offline",),
        reviewers=("Ana",),
        similar_to=("case-1", "case,2"),
        quality_from=0.2,
        quality_to=0.8,
        confidence_to=0.5,
        order="random",
        seed=7,
        page=3,
        size=50,
    )


@pytest.mark.parametrize(
    "given",
    [
        {"quality": "x-y"},
        {"quality": "0.9-0.1"},
        {"quality": "-3-9"},
        {"quality": "nan-nan"},
        {"confidence": "1e999"},
        {"page": "-1"},
        {"page": "99999999999"},
        {"size": "1000000"},
        {"seed": "a"},
        {"order": "DROP TABLE"},
        {"standing": "%27%20OR%201"},
        {"flag": ",,,"},
    ],
)
def test_invalid_url_filters_are_ignored(query: dict[str, str], given: dict[str, str]) -> None:
    query |= given
    assert address.case_filter() == CaseFilter(size=address.PAGE_SIZE, standings=NOT_DECIDED)


def test_blind_reviewers_cant_filter_by_audit_details(
    query: dict[str, str],
) -> None:
    query["standing"] = "to_review,decided"
    assert address.standings() == (
        "failed",
        "no_answer",
        "decided",
        "wrong",
        "not_confirmed",
        "nothing_found",
    )


def test_url_filters_round_trip(query: dict[str, str]) -> None:
    address.set_param("field", address.in_words(["Law, public", "100% done", "ä/ö", 'quote"']))
    assert address.words("field") == ["Law, public", "100% done", "ä/ö", 'quote"']
    for chosen, written in (
        ((0.25, 0.9), "0.25-0.9"),
        ((0.0, 1.0), ""),
        (True, "yes"),
        (date(2026, 1, 2), "2026-01-02"),
    ):
        assert address.to_query(chosen) == written
    address.set_param("quality", address.to_query((0.25, 0.9)))
    assert address.bounds("quality") == (0.25, 0.9)


def test_links_to_cases_keep_their_list(
    query: dict[str, str], audited_workbench: Workbench
) -> None:
    query |= {
        "q": "a&b=c",
        "standing": "wrong",
        "seed": "3",
        "page": "2",
        "case": "another",
        "iteration": "2",
    }
    row: Any = case_row(audited_workbench.store.cases.summary("docs-02"), address.list_parameters())
    assert row["cells"][0]["href"] == "review?q=a%26b%3Dc&standing=wrong&seed=3&page=2&case=docs-02"


def test_a_row_shows_the_quality_of_the_original_and_best_revision(
    audited_workbench: Workbench,
) -> None:
    rows = audited_workbench.cases.find(CaseFilter(size=100)).rows
    assert any(row.revised_quality is not None for row in rows)
    for summary in rows:
        run = audited_workbench.cases.open(summary.id).run
        assert summary.quality == (run.iterations[0].quality_score if run else None)
        assert summary.revised_quality == (run.revised_quality if run else None)
        shown: Any = case_row(summary, {})
        revised = (
            [] if summary.revised_quality is None else [f"revised {summary.revised_quality:.2f}"]
        )
        assert shown["cells"][-1] == {"score": summary.quality, "below": revised}


def severity_mark(summary: CaseSummary) -> str:
    cell: Any = case_row(summary, {}, order="risk")["cells"][-1]
    return (
        " ".join((cell["pills"][0]["text"], cell["pills"][0]["tone"]))
        if "pills" in cell
        else str(cell["text"])
    )


def test_a_list_shows_the_figure_it_is_sorted_by(
    audited_workbench: Workbench,
) -> None:
    rows = audited_workbench.cases.find(CaseFilter(states=("needs_review",), size=100)).rows
    shown = [severity_mark(row) for row in rows]
    assert shown == sorted(
        shown, key=lambda severity: [*SEVERITY, "none"].index(severity.split()[0])
    )
    assert len(set(shown)) > 1  # it tells apart rows that stand alike
    assert [case_columns(order)[-1]["title"] for order in ORDERS] == [
        *("Severity", "Disagreement", "Confidence", "Quality", "Quality", "Quality")
    ]
    for order, name in (("disagreement", "disagreement"), ("least_confident", "confidence")):
        found = audited_workbench.cases.find(CaseFilter(states=("needs_review",), order=order)).rows
        cells: list[Any] = [case_row(row, {}, order=order)["cells"][-1] for row in found]
        assert [cell["score"] for cell in cells] == [getattr(row, name) for row in found]
        assert cells[0]["below"][0] == f"quality {found[0].quality:.2f}"
    apart = [
        row.disagreement
        for row in audited_workbench.cases.find(CaseFilter(order="disagreement")).rows
    ]
    assert apart == sorted(apart, key=lambda value: -1 if value is None else value, reverse=True)


@pytest.mark.parametrize(
    ("standing", "severity", "mark"),
    [
        ("wrong", "critical", "critical grave"),
        ("wrong", None, "none"),
        ("nothing_found", "medium", "medium calm"),
        ("nothing_found", None, "none"),
    ],
)
def test_minor_issues_of_passed_answers_have_a_neutral_mark(
    audited_workbench: Workbench, standing: Standing, severity: Severity | None, mark: str
) -> None:
    summary = audited_workbench.store.cases.summary("docs-02")
    assert (
        severity_mark(summary.model_copy(update={"standing": standing, "severity": severity}))
        == mark
    )


@pytest.mark.parametrize(
    ("address_", "columns"),
    [
        ({"standing": "wrong"}, 3),
        ({}, 3),
        ({"standing": "not_audited", "order": "oldest"}, 3),
        ({"standing": "wrong,decided"}, 4),
        ({"order": "newest"}, 4),
        ({"q": "docs-02"}, 4),
    ],
)
def test_the_state_column_depends_on_the_filter_only(
    audited_workbench: Workbench,
    monkeypatch: pytest.MonkeyPatch,
    address_: dict[str, str],
    columns: int,
) -> None:
    drawn: list[int] = []

    def draw(shown: list[Any], _rows: object, **_: object) -> TableEvent:
        drawn.append(len(shown))
        return TableEvent(None, None)

    monkeypatch.setattr(case_list, "choosable_table", draw)
    open_page("queue", **address_)
    assert drawn == [columns]


def test_waiting_cases_and_own_drafts_are_marked(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide(audited_workbench, "docs-02", "escalate")
    for who, case in (("Ada", "strategy-01"), ("Bob", "law-01")):
        audited_workbench.drafts.save(Actor(name=who), case_subject(case), {"note": "half"})
    audited_workbench.team.skip(Actor(name="Ada"), ["policy-01"])
    audited_workbench.team.skip(Actor(name="Bob"), ["law-01"])
    drawn: list[dict[str, Any]] = []

    def draw(_columns: object, rows: list[dict[str, Any]], **_: object) -> TableEvent:
        drawn.extend(rows)
        return TableEvent(None, None)

    monkeypatch.setattr(case_list, "choosable_table", draw)
    app = open_page("queue", {"reviewer-name": "Ada"})
    (pills,) = [group for group in app.button_group if group.key == "standing"]
    marks = {row["open"]: [pill["text"] for pill in row["cells"][0]["pills"]] for row in drawn}
    assert marks["docs-02"] == ["Waiting: escalated"]
    assert "Waiting: escalated 1" in pills.options
    assert marks["law-01"] == ["Not audited"], "another's draft or skip isn't one's own"
    assert "skipped by you" in marks["policy-01"]
    assert marks["strategy-01"] == ["draft"]


def test_an_answer_with_only_minor_issues_has_nothing_serious(
    audited_workbench: Workbench,
) -> None:
    summary = audited_workbench.store.cases.summary("docs-02").model_copy(
        update={"standing": "nothing_found", "state": "accepted"}
    )
    badges: list[Any] = [
        state_cell(audited_workbench, summary.model_copy(update={"severity": severity}))["pills"][
            0
        ]["text"]
        for severity in ("medium", None)
    ]
    assert badges == ["Less serious issues only", "Nothing found"]


def test_the_nothing_found_chip_counts_minor_issues_and_can_exclude_them(
    audited_workbench: Workbench,
) -> None:
    database = audited_workbench.store.database
    database.execute("UPDATE cases SET tier = NULL, reasons = '[]', severity = NULL")
    database.execute("UPDATE cases SET severity = 'low' WHERE id = 'docs-02'")
    passed = audited_workbench.cases.facets().standings["nothing_found"]
    app = open_page("queue", standing="nothing_found")
    pills = {group.key: group for group in app.button_group}
    apart = f"Nothing found {passed - 1}, less serious issues only 1"
    assert apart in pills["standing"].options
    assert "Cases with a less serious issue are first" in texts(app)
    assert pills["minor"].options == [
        "Less serious issues only 1",
        f"No issue, at most a remark {passed - 1}",
    ]
    pills["minor"].set_value("none").run()
    assert f"{passed - 1} cases" in texts(app)
    assert "less serious issue are" not in texts(app)
    assert "Cases with the most claims and the lowest confidence are first" in texts(app)
    next(group for group in app.button_group if group.key == "minor").set_value(
        address.in_words(SEVERITY)
    ).run()
    assert "1 case" in texts(app)
    assert "Worst issue" not in " ".join(button.label for button in app.button)
    next(group for group in app.button_group if group.key == "standing").set_value(
        "not_audited"
    ).run()
    assert "severity" not in app.query_params
    link = next(
        link.proto
        for link in open_page("overview").get("page_link")
        if "Nothing found" in link.proto.label
    )
    assert link.label == (f"**{passed - 1}** :gray[Nothing found], **1** less serious issues only")


def test_false_quotations_have_a_chip_and_a_filter(tmp_path: Path) -> None:
    workbench = Workbench.open(tmp_path / "quotes.db")
    for name, quote in (
        ("true", "The bridge is 120 metres long."),
        ("false", "The bridge is 150 metres long."),
    ):
        case = Case.model_validate(
            {
                "id": name,
                "query": "How long is the bridge?",
                "answer": "The bridge is 120 metres long.",
                "evidence": [{"id": "a", "text": "The bridge is 120 metres long."}],
                "citations": [{"start": 0, "end": 30, "evidence_id": "a", "quote": quote}],
            }
        )
        workbench.cases.add(ADA, [case])
        workbench.audits.audit(ADA, case)
    (found,) = workbench.cases.find(CaseFilter(flags=("misquoted",))).rows
    assert found.id == "false"
    row: Any = case_row(found, {})
    assert "with words that aren't in the evidence: “The bridge is 150" in row["cells"][1]["text"]
    run = workbench.cases.open("false").run
    assert run is not None
    assert "misquoted" in shown_flags(run, 0)  # what the head of the case shows
    workbench.close()


def test_each_order_has_an_explanation(
    audited_workbench: Workbench,
) -> None:
    said = texts(open_page("queue"))
    assert "answers with something wrong are first" in said
    assert "7 undecided cases" in said
    said = texts(open_page("queue", order="disagreement"))
    assert "the citation engine, the critic and the evaluator" in said
    assert "The figure is the gap, from 0 to 1, between" in said
    assert "lowest confidence of the critic" in texts(open_page("queue", order="least_confident"))


def test_each_active_filter_can_be_removed(audited_workbench: Workbench) -> None:
    app = open_page("queue", field="Medicine,Finance", quality="0-0.99")
    labels = [button.label.replace("\\", "") for button in app.button]
    assert "Field: Medicine" in labels
    assert "Quality 0.00 to 0.99" in labels
    next(button for button in app.button if "Medicine" in button.label).click()
    app.run()
    assert not app.exception
    assert app.query_params["field"] == ["Finance"] or app.query_params["field"] == "Finance"
    press(app, "Clear all")
    assert "7 undecided cases" in texts(app)


def test_status_pills_filter_and_exclude_decided_cases_by_default(
    audited_workbench: Workbench,
) -> None:
    assert set(REASON) == set(get_args(ReviewCode))
    decide(audited_workbench, "docs-02")
    standings = audited_workbench.cases.facets().standings
    assert (sum(standings.values()), standings["decided"], standings["not_audited"]) == (7, 1, 2)
    app = open_page("queue")
    assert "6 undecided cases" in texts(app)
    (searched,) = [
        group for group in open_page("queue", q="docs-02").button_group if group.key == "standing"
    ]
    assert searched.options == ["Decided 1"]
    (pills,) = [group for group in app.button_group if group.key == "standing"]
    assert set(pills.options) == {
        f"{STANDING[name].text} {count}" for name, count in standings.items()
    }
    for name in ("wrong", "decided"):  # one in place of the other
        next(group for group in app.button_group if group.key == "standing").set_value(name).run()
        assert app.query_params["standing"] in (name, [name])
    assert "1 case" in texts(app)
    both = open_page("queue", standing=address.in_words(["decided", "not_audited"]))
    assert [group.value for group in both.button_group if group.key == "standing"] == [
        ["not_audited", "decided"]
    ]
    assert "3 cases" in texts(both)
    assert "1 case" in texts(open_page("queue", q="docs 02"))
    assert "1 case" in texts(
        press(open_page("queue", field="Product documentation"), "show-decided")
    )
    for name, count in standings.items():
        assert count_noun(count, "case") in texts(open_page("queue", standing=name))


def test_filter_counts_match_the_resulting_lists(audited_workbench: Workbench) -> None:
    decide(audited_workbench, "docs-02")
    app = open_page("queue", {"queue-filters": True}, flag="invalid_reference")
    drawer = {select.label: select.options for select in app.multiselect}
    for label, name in {"Issue": "flag", "State in detail": "state", "Field": "field"}.items():
        known = {
            text: value
            for parameter in address.DRAWER
            if parameter.name == name
            for value, text in parameter.options.items()
        }
        assert drawer[label]
        for option in drawer[label]:
            text, _, count = option.rpartition(" (")
            shown = open_page("queue", **{"flag": "invalid_reference", name: known.get(text, text)})
            summary = rf"\*\*{count.rstrip(')')} (undecided )?cases?\*\*"
            assert re.search(summary, texts(shown)), option
    assert not open_page("queue").multiselect, "closed, nothing is counted for it"


def test_search_counts_dont_reveal_hidden_results(audited_workbench: Workbench) -> None:
    audited_workbench.team.put_in_force(ADA, QueuePolicy(machine="after"))
    (pills,) = [
        group for group in open_page("queue", q="docs-02").button_group if group.key == "standing"
    ]
    assert pills.options == [f"{STANDING['to_review'].text} 1"]


def test_a_filter_without_matches_explains_what_to_do(audited_workbench: Workbench) -> None:
    app = open_page("queue", field="Nowhere <b>", reviewer="Nobody", model="none")
    assert "No cases match." in texts(app)
    press(app, "Clear search and filters")
    assert "7 undecided cases" in texts(app)


def test_the_url_keeps_the_random_order_until_reshuffled(
    audited_workbench: Workbench,
) -> None:
    app = open_page("queue", order="random", seed="5")
    press(app, "Shuffle again")
    assert app.query_params["seed"] in ("6", ["6"])


def test_a_page_number_past_the_end_shows_the_last_page(
    audited_workbench: Workbench,
) -> None:
    audited_workbench.cases.add(ADA, demo_cases())
    assert "21 to 40 of 65 undecided cases" in texts(open_page("queue", page="2", order="oldest"))
    assert "61 to 65 of 65 undecided cases" in texts(open_page("queue", page="900"))


@pytest.mark.parametrize(
    ("posted", "choice"),
    [
        (None, None),
        ("approve", None),
        ({"action": "approve"}, None),
        ({"action": 1, "rows": ["a"]}, None),
        ({"action": "tag", "rows": ["a", 7, None]}, TableChoice("tag", ("a",), False)),
        ({"action": "tag", "rows": [], "everything": "yes"}, TableChoice("tag", (), False)),
        ({"action": "tag", "rows": [], "everything": True}, TableChoice("tag", (), True)),
    ],
)
def test_a_posted_choice_of_rows_may_be_anything(
    monkeypatch: pytest.MonkeyPatch, posted: object, choice: TableChoice | None
) -> None:
    monkeypatch.setattr(linked_table, "_TABLE", lambda **_: SimpleNamespace(open=None, act=posted))
    event = linked_table.choosable_table(
        [], [], description="", key="k", actions=[], total=0, noun="case", scope=""
    )
    assert event == TableEvent(None, choice)


def test_the_address_names_the_saved_view_that_a_link_opens(tmp_path: Path, serve: Serve) -> None:
    workbench = serve(tmp_path / "views.db")
    for case_id in ("bridge-a", "bridge-b", "dam"):
        case = case_of("It is.", {"c1": "It is."}, case_id=case_id, query=f"Is {case_id} long?")
        workbench.cases.add(ADA, [case])
    workbench.team.save_view(ADA, "Bridges only", {"q": "bridge"}, shared=True)
    queue = open_page("queue", {"reviewer-name": "Grace"})
    [link] = [
        element.proto for element in queue.get("page_link") if "Bridges" in element.proto.label
    ]
    followed = dict(parse_qsl(link.query_string))
    assert followed == {"q": "bridge", "view": "Bridges only"}
    for opened in (followed, {"view": "Bridges only"}):
        page = open_page("queue", {"reviewer-name": "Grace"}, **opened)
        assert "2 cases" in texts(page)
        assert "Saved view “Bridges only”." in texts(page).replace("\\", "")
        assert page.query_params["q"] in ("bridge", ["bridge"])
    other = open_page("queue", view="Bridges only", q="dam")
    assert "Saved view “Bridges only”, changed." in texts(other).replace("\\", "")
    workbench.team.remove_view(ADA, workbench.store.team.views(ADA.name)[0])
    removed = open_page("queue", **followed)
    assert "2 cases" in texts(removed)
    assert "There is no saved view “Bridges only”" in texts(removed)


def test_readers_without_the_reviewer_role_get_no_check_boxes(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []

    def draw(*_: object, actions: list[Any], **__: object) -> TableEvent:
        drawn.append([action.name for action in actions])
        return TableEvent(None, None)

    monkeypatch.setattr(case_list, "choosable_table", draw)
    open_page("queue")
    monkeypatch.setattr(Access, "allows", lambda _access, _actor, needed: needed == "read")
    open_page("queue")
    assert drawn == [["approve", "reject", "tag", "untag", "assign", "code"], []]
