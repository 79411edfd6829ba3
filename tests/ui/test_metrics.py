"""The metrics page: figures as they are, each a way to the runs behind it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from click.testing import CliRunner
from streamlit.testing.v1 import AppTest

from masis.audit.measures.case_figures import OriginCount
from masis.audit.measures.metrics import REPORT_METRICS, ReportMetric, select_metrics
from masis.cli import main
from masis.datasets.writers.lines import csv_line
from masis.datasets.writers.metrics import metrics_csv
from masis.schema.run import RunWarning
from masis.services import Workbench
from masis.services.records import MeasureFilter, Pick
from masis.services.trust.service import TrustFilter
from masis.services.trust.summary import IN_VIEW, figure_text, interval_text
from masis.ui.components.linked_table import LinkedRow
from masis.ui.metrics.page import picked_words, run_table
from masis.ui.metrics.sections import group_table
from masis.views import pictures
from masis.views.metrics import course_rows, spread_view, value_text
from tests.reviewing import ADA, decide, undone
from tests.store.factories import a_case, a_run
from tests.ui.conftest import AUDITED, open_page, texts


def cells(row: LinkedRow) -> list[Any]:
    return list(row["cells"])


def drawn_on(app: AppTest) -> str:
    return "\n".join(str(element.proto) for element in app.main if hasattr(element, "proto"))


def test_each_figure_has_its_base_an_explanation_and_a_link_to_its_cases(
    audited_workbench: Workbench,
) -> None:
    total = audited_workbench.metrics.report(MeasureFilter(), "week").total
    found = value_text(REPORT_METRICS["hallucination"], total)
    assert found.endswith(f" of {len(AUDITED)})")
    app = open_page("metrics", **{"as": "tables"})
    said = texts(app)
    drawn = drawn_on(app)
    assert f"{len(AUDITED)} audits: results" in said
    for part in (
        found,
        REPORT_METRICS["hallucination"].label,
        "metrics?as=tables&show=hallucination",
        "queue?flag=contradicted",
    ):
        assert part in drawn
    assert "no model was called. The answers were checked offline" in said
    assert "Nobody has decided a case yet" in said
    for jargon in ("REQ-", "Hallucination", "Converge", "Iteration"):
        assert jargon not in said
        assert jargon not in drawn
    decide(audited_workbench, AUDITED[0], "reject")
    decide(audited_workbench, AUDITED[1], "approve")
    decide(audited_workbench, AUDITED[4], "approve")
    drawn = drawn_on(open_page("metrics", **{"as": "tables"}))
    precision = audited_workbench.trust.compare(ADA, TrustFilter()).answers.precision
    for part in (
        figure_text(precision),
        interval_text(precision),
        "trust?list=must_look",
        "queue?state=rejected",
    ):
        assert part in drawn
    recall = audited_workbench.trust.compare(ADA, TrustFilter()).answers.recall
    assert f"1 of {recall.n} among the cases people chose to decide" in drawn
    assert figure_text(recall) not in drawn, (
        "no passed answer was drawn at random: nobody knows what is missed"
    )
    assert "Overrides" not in drawn  # the cases overridden are counted once


def test_every_picture_has_its_table_and_a_file_that_no_spreadsheet_runs(
    audited_workbench: Workbench,
) -> None:
    case = a_case("formula", metadata={"field": "=HYPERLINK(1)"})
    audited_workbench.cases.add(ADA, [case])
    audited_workbench.audits.audit(ADA, case)
    decide(audited_workbench, AUDITED[0], "reject")
    shown = ("standing", "stopped", "issues", "origin", "decided")
    app = open_page("metrics", {f"picture-table-{key}": True for key in shown})
    files = {button.label: button for button in app.get("download_button") if "CSV" in button.label}
    assert files
    drawn = drawn_on(app)
    for part in (
        "that people rejected or corrected",
        "Where is something wrong?",
        "Decisions by week",
    ):
        assert part in drawn
    for key in shown:
        assert f"picture-rows-{key}" in drawn, key
    titles, rows = pictures.table_of(
        pictures.origin_rows((OriginCount("=HYPERLINK(1)", 4, 1),), "No field", "field")
    )
    assert titles == ("Name", "Cases", "Of", "Share", "From", "To")
    assert rows == [("=HYPERLINK(1)", 1, 4, 0.25, 0.0456, 0.6994)]
    assert csv_line(rows[0]).startswith(b"'=HYPERLINK(1),1,4")


def test_pictures_open_the_cases_that_they_count(audited_workbench: Workbench) -> None:
    decide(audited_workbench, AUDITED[0], "reject")
    counts = audited_workbench.case_figures.count(ADA, MeasureFilter())
    facets = audited_workbench.cases.facets_for(ADA)
    rows = [
        *pictures.standing_rows(facets.standings),
        *pictures.stopped_rows(counts.stopped),
        *pictures.origin_rows(counts.origins, "No field", "field"),
    ]
    by_flag: dict[str, int] = {}
    for picture_row in pictures.issue_rows(counts.issues):
        if flag := picture_row["link"].get("flag"):
            by_flag[flag] = by_flag.get(flag, 0) + picture_row["Cases"]
    listed = [
        (picture_row["link"], picture_row.get("Of", picture_row["Cases"])) for picture_row in rows
    ]
    listed += [
        ({"flag": flag, "standing": pictures.AUDITED}, count) for flag, count in by_flag.items()
    ]
    assert len(listed) > 8
    for link, count in listed:
        app = open_page("queue", **link)
        noun = "case" if count == 1 else "cases"
        assert re.search(rf"\b{count} {noun}\b", texts(app)), (link, count)


def test_every_chart_can_be_built() -> None:
    for build, arguments in (
        (pictures.bar_chart, ("Status", 3)),
        (pictures.stacked_chart, ("Issue", "Severity", ("high", "low"), 2)),
        (pictures.weeks_chart, (("Approved", "Rejected"),)),
        (pictures.backlog_chart, ()),
        (pictures.time_chart, ()),
        (pictures.course_share_chart, ()),
        (pictures.share_chart, ("Name", 4)),
        (pictures.heat_map, (9,)),
    ):
        assert build(*arguments).to_dict()["$schema"], build


def test_own_work_is_a_section_without_empty_rows(
    audited_workbench: Workbench,
) -> None:
    decide(audited_workbench, AUDITED[0], "reject", reviewer="Bob")
    assert "You decided" not in drawn_on(open_page("metrics", {"reviewer-name": "Ada"}))
    alone = drawn_on(open_page("metrics", {"reviewer-name": "Bob"}))
    for part in (
        "You decided",
        "1 rejected.",
        "Time per decision",
        "Decisions per day",
        "Your decisions",
    ):
        assert part in alone
    assert "Your own decisions" not in alone, "one block where nobody else has decided"
    for case, verdict in zip(AUDITED[1:4], ("reject", "approve", "reject"), strict=True):
        decide(audited_workbench, case, verdict)
    undone(audited_workbench, AUDITED[3], "Ada")
    drawn = drawn_on(open_page("metrics", {"reviewer-name": "Ada"}))
    for part in (
        "You decided",
        "1 approved",
        "1 rejected.",
        "Your time per decision",
        "reviewer=Ada&kind=undo",
    ):
        assert part in drawn
    for part in ("Adjudications", "With labels"):
        assert part not in drawn


def test_recorded_replies_have_no_time_and_no_revision_means_no_improvement(
    audited_workbench: Workbench,
) -> None:
    app = open_page("metrics", {"metrics-run": True})
    assert REPORT_METRICS["critic_ms"].label in texts(app)
    assert "No answer was revised." not in drawn_on(app)
    with audited_workbench.store.database.transaction() as connection:
        connection.execute("UPDATE run_measures SET critic = 'replay:demo', iterations = 1")
    st.cache_data.clear()
    app = open_page("metrics", {"metrics-run": True})
    for measure in ("critic_ms", "reviser_ms", "iteration_ms", "loop_ms", "improvement_percentage"):
        assert REPORT_METRICS[measure].label not in texts(app)
    drawn = drawn_on(app)
    for part in (
        "no model took time for them",
        "No answer was revised.",
        REPORT_METRICS["iterations"].label,
    ):
        assert part in drawn
    assert "The answers were checked by recorded replies of a model" in texts(app)
    runs = audited_workbench.metrics.find_runs(MeasureFilter(), Pick()).rows[:2]
    replayed = [
        run.model_copy(
            update={"models": {"critic": "replay:demo"}, "loop_ms": ms, "run_id": str(ms)}
        )
        for run, ms in zip(runs, (8, 13), strict=True)
    ]
    asked = runs[0].model_copy(update={"models": {"critic": "openai:gpt-4o"}, "loop_ms": 900})
    assert "Time" in [row["title"] for row in run_table([asked, replayed[0]], None, {})[0]]
    assert "Time" not in [row["title"] for row in run_table(replayed, None, {})[0]]
    assert REPORT_METRICS["iterations"].label not in texts(app), (
        "all are alike: there is nothing to draw"
    )


def test_decisions_with_a_visible_verdict_arent_evidence_for_the_audit(
    audited_workbench: Workbench,
) -> None:
    for case in AUDITED[:2]:
        decide(audited_workbench, case, "reject", iteration=1, machine_shown=["scores"])
    app = open_page("metrics")
    said = texts(app)
    assert "Unknown so far." in said
    assert f":material/warning: 2 answers decided with its verdict visible. {IN_VIEW}" in said
    decide(audited_workbench, AUDITED[2], "escalate", iteration=1, machine_shown=["scores"])
    said = texts(open_page("metrics"))
    assert (
        "2 answers decided with its verdict visible (1 escalation left out, as it doesn't judge "
        "the answer)" in said
    )
    app = open_page("metrics")
    drawn = drawn_on(app)
    assert "unknown: only flagged answers were checked" in drawn
    assert "trust?seen=too&list=must_look" in drawn


def test_a_failed_step_isnt_an_issue_of_the_answer_and_says_why(
    audited_workbench: Workbench,
) -> None:
    case = a_case("failed")
    audited_workbench.cases.add(ADA, [case])
    why = RunWarning(
        code="CRITIC-ERR-003", step="revision", iteration=1, message="The server did not answer."
    )
    audited_workbench.audits.store_run(
        ADA, a_run(case, termination_reason="error", warnings=(why,))
    )
    app = open_page("metrics")
    cases = len(AUDITED) + 1
    said = (
        f"A step of the audit failed in 1 of {cases} cases, which says nothing about their answers"
    )
    assert said in [link.label for link in app.get("page_link")]
    assert "Newest failure: the revision" in [expander.label for expander in app.expander]
    assert "The server did not answer." in texts(app)
    assert "queue?flag=error" not in drawn_on(app)


def test_technical_metrics_are_collapsed_and_complete(
    audited_workbench: Workbench,
) -> None:
    app = open_page("metrics", {"metrics-run": True})
    said = texts(app)
    drawn = drawn_on(app)
    measured = {
        distribution.measure
        for distribution in audited_workbench.metrics.report(MeasureFilter(), "week").distributions
        if distribution.count
    }
    for measure in measured - {"tokens"}:
        assert REPORT_METRICS[measure].label in said
    assert {
        "critic_ms",
        "reviser_ms",
        "loop_ms",
        "iterations",
        "improvement_delta",
        "issues",
    } <= measured
    for part in (
        REPORT_METRICS["converged"].label,
        REPORT_METRICS["convergence_ending"].label,
        "Confidence in claims",
    ):
        assert part in drawn
    assert "limit" not in said  # of a call of a model: none was made


def test_a_distribution_needs_two_bins(audited_workbench: Workbench) -> None:
    found = audited_workbench.metrics.report(MeasureFilter(), "week")
    tokens = next(
        distribution for distribution in found.distributions if distribution.measure == "tokens"
    )
    assert spread_view(tokens).bars == []


def test_every_figure_links_to_as_many_runs_as_it_counts(audited_workbench: Workbench) -> None:
    store = audited_workbench.store
    found = store.measures.report(MeasureFilter(), "week")
    for distribution in found.distributions:
        for bin_ in distribution.bins:
            pick = Pick(metric=distribution.measure, above=bin_.low, most=bin_.high)
            runs = store.measures.find_runs(MeasureFilter(), pick).total
            assert (runs > 0) is (bin_.count > 0), distribution.measure
            assert runs <= bin_.count
    for metric in select_metrics("share"):
        runs = store.measures.find_runs(MeasureFilter(), Pick(metric=metric.name)).total
        share = found.total.values[metric.name] or 0
        assert runs == round(share * found.total.known[metric.name]), metric.name


def test_links_keep_the_url_filters(audited_workbench: Workbench) -> None:
    found = audited_workbench.metrics.report(MeasureFilter(), "week")
    columns, (offline,) = group_table(found, "of")
    assert [column["title"] for column in columns][:4] == [
        *("Model", "Audits", "Fabricated, unsupported or contradicted", "A serious issue")
    ]
    assert cells(offline)[2]["href"] == "metrics?of=offline&show=hallucination"
    _, (week,) = group_table(found, "at")
    assert cells(week)[0]["text"].startswith("week of ")
    assert cells(week)[0]["open"].startswith("at=2")
    drawn = drawn_on(open_page("metrics", **{"as": "tables", "role": "reviser"}))
    assert "metrics?as=tables&role=reviser&of=offline&show=hallucination" in drawn


def test_a_declared_metric_is_on_the_page_in_the_command_and_in_the_file(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    many = ReportMetric(
        "many_claims",
        "Long answers",
        "Original answers with more than one claim.",
        "share",
        "claims > 1",
        chart="share",
        topic="answers",
        listed="Audits of long answers",
        is_column=True,
    )
    monkeypatch.setitem(REPORT_METRICS, many.name, many)
    total = audited_workbench.metrics.report(MeasureFilter(), "week").total
    words = value_text(many, total)
    assert "Long answers: " + words in drawn_on(open_page("metrics"))
    drawn = drawn_on(open_page("metrics", **{"as": "tables"}))
    for part in (many.label, many.meaning, words, "show=many_claims"):
        assert part in drawn
    listed = audited_workbench.metrics.find_runs(MeasureFilter(), Pick(metric=many.name))
    assert words.endswith(f"({listed.total} of {total.known[many.name]})")
    assert "Audits of long answers" in texts(open_page("metrics", show=many.name))
    database, file = ("--db", str(audited_workbench.store.path)), tmp_path / "metrics.csv"
    printed = CliRunner().invoke(main, ["metrics", *database, "--csv", str(file)]).stdout
    assert "long answers" in printed.splitlines()[2]
    assert f"many_claims,Long answers,1,all,,{total.values[many.name]}" in file.read_text()
    report = json.loads(CliRunner().invoke(main, ["metrics", *database, "--json"]).stdout)
    assert report["total"]["many_claims"] == total.values[many.name]


def test_the_page_offers_the_numbers_as_a_file(audited_workbench: Workbench) -> None:
    report = audited_workbench.metrics.report(MeasureFilter(), "week")
    rows = list(csv.DictReader(io.StringIO(metrics_csv(report))))
    assert {row["group"] for row in rows} == {"all", "week", "critic", "distribution", "bin"}
    bins = [row for row in rows if row["metric"] == "issues" and row["group"] == "bin"]
    assert sum(int(row["value"]) for row in bins) == int(bins[0]["known"])
    assert "Download the numbers (CSV)" in [
        button.label for button in open_page("metrics").get("download_button")
    ]


def test_over_several_weeks_shares_and_sums_are_drawn_by_week(
    audited_workbench: Workbench,
) -> None:
    with audited_workbench.store.database.transaction() as connection:
        connection.execute(
            "UPDATE run_measures SET finished_at = '2026-01-01T00:00:00.000Z', calls = 2"
            " WHERE seq = 1"
        )
    drawn = drawn_on(open_page("metrics"))
    assert "A serious issue: by week" in drawn
    assert "Model calls: by week" in drawn
    assert "Tokens: by week" in drawn


@pytest.mark.parametrize(
    "address",
    [
        {"show": "critic_ms", "above": "nan", "most": "1e400"},
        {"show": "critic_ms", "above": "0.001"},
        {"show": "'; DROP TABLE runs"},
        {"since": "2026-02-31", "until": "x", "by": "year", "role": "nobody"},
        {
            "since": "0001-01-01",
            "until": "9999-12-31",
            "show": "all",
            "at": "9999-12-31",
            "by": "month",
        },
        {"show": "all", "at": "not a day", "of": "<script>", "page": "99999"},
        {"model": "none such", "show": "all"},
    ],
)
def test_an_invalid_url_is_no_error(audited_workbench: Workbench, address: dict[str, str]) -> None:
    open_page("metrics", **address)


def test_filters_without_a_match_are_reported(audited_workbench: Workbench) -> None:
    assert "No audit matches" in texts(open_page("metrics", since="2999-01-01"))


def test_without_an_audit_the_page_explains_itself(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    from masis.ui.shell import served_database

    monkeypatch.setattr(served_database, "_served", [tmp_path / "empty.db"])
    assert "No audit has finished yet" in texts(open_page("metrics"))


def test_the_chosen_period_is_in_the_url(audited_workbench: Workbench) -> None:
    # all audits are of one day
    assert "metrics-by" not in [group.key for group in open_page("metrics").button_group]
    with audited_workbench.store.database.transaction() as connection:
        connection.execute(
            "UPDATE run_measures SET finished_at = '2026-01-01T00:00:00.000Z' WHERE seq = 1"
        )
    app = open_page("metrics", show="all")
    app.button_group(key="metrics-by").set_value("day").run()
    assert not app.exception
    assert app.query_params["by"] == "day"
    assert "show" not in app.query_params


def test_removed_runs_are_listed_without_a_link(
    audited_workbench: Workbench,
) -> None:
    page = audited_workbench.metrics.find_runs(MeasureFilter(), Pick())
    removed = page.rows[0].model_copy(update={"case_id": None, "query": None})
    case = audited_workbench.store.cases.summary(page.rows[1].case_id or "")
    columns, (listed, there) = run_table((removed, page.rows[1]), None, {case.id: case})
    assert (listed["open"], "href" in cells(listed)[0]) == (None, False)
    assert cells(there)[0]["href"].startswith("review?case=")
    assert len(cells(there)) == len(columns)


def test_a_listed_run_shows_its_headline_and_case_status_without_constant_columns(
    audited_workbench: Workbench,
) -> None:
    runs = audited_workbench.metrics.find_runs(MeasureFilter(), Pick()).rows[:2]
    one = runs[0].model_copy(
        update={"hallucination": False, "needs_review": True, "iterations": 1, "termination": "x"}
    )
    other = one.model_copy(update={"run_id": "older", "iterations": 2, "needs_review": False})
    case = audited_workbench.store.cases.summary(one.case_id or "").model_copy(
        update={
            "run_id": one.run_id,
            "headline": "Cites [9], which doesn't exist\n1 uncited",
            "standing": "decided",
        }
    )
    columns, rows = run_table((one, other), None, {case.id: case})
    named = [column["title"] for column in columns]
    assert "Iterations" in named
    assert "End reason" not in named
    newest, older = (dict(zip(named, cells(row), strict=True)) for row in rows)
    assert newest["Question"]["quote"] == "Cites [9], which doesn't exist"
    assert older["Question"]["quote"] == ""  # another audit's
    # it may be decided since
    assert [pill["text"] for pill in newest["Question"]["pills"]] == ["needed review"]
    assert cells(run_table((one,), None, {case.id: case})[1][0])[0]["pills"] == [], (
        "the heading says it of all"
    )
    assert newest["Status now"]["pills"][0]["text"] == "Decided"


def test_the_list_has_a_title() -> None:
    assert (
        picked_words(Pick(metric="converged"), "week", "2026-11-16", "offline")
        == "Audits with nothing left to improve, week of 16 Nov 2026, offline"
    )
    assert (
        picked_words(Pick(metric="critic_ms", above=5000.0), "week", "", "")
        == "Audits with critic time per answer: over 5 s"
    )
    assert picked_words(Pick(), "week", "", "") == "Audits"


@pytest.mark.spec(
    "REQ-CRITIC-NFR-001", "REQ-CRITIC-NFR-002", "REQ-CRITIC-NFR-003", "REQ-CRITIC-NFR-004"
)
def test_times_are_shown_with_the_limits_of_the_spec(audited_workbench: Workbench) -> None:
    limits = {
        metric.name: metric.limit for metric in select_metrics("spread") if metric.limit is not None
    }
    assert limits == {
        "critic_ms": 15_000,
        "reviser_ms": 15_000,
        "iteration_ms": 35_000,
        "loop_ms": 90_000,
    }
    found = audited_workbench.metrics.report(MeasureFilter(), "week")
    critic = spread_view(
        next(
            distribution
            for distribution in found.distributions
            if distribution.measure == "critic_ms"
        )
    )
    assert critic.bars[0]["from"] >= 0  # no time lies below zero
    assert (critic.held, critic.limit) == (True, "95% are within the limit of 15 s")


def test_a_table_of_days_is_limited_to_a_readable_length(
    audited_workbench: Workbench,
) -> None:
    found = audited_workbench.metrics.report(MeasureFilter(), "day")
    days = tuple(
        found.total.model_copy(update={"name": f"2026-{1 + n // 28:02}-{1 + n % 28:02}"})
        for n in range(336)
    )
    long = found.model_copy(update={"periods": days})
    assert len(course_rows(long, REPORT_METRICS["hallucination"])) == 336
    columns, listed = group_table(long, "at")
    assert len(listed) == 60
    assert cells(listed[0])[0]["text"] == "28 Dec 2026"
    assert {len(cells(row)) for row in listed} == {len(columns)}
