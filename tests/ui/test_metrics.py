"""The metrics page: figures as they are, each a way to the runs behind it."""

from __future__ import annotations

from typing import Any

import pytest

from masis.services import Workbench
from masis.services.metrics import SPREADS, MetricsService
from masis.store import MeasureFilter, Pick
from masis.ui.metrics.view import duration, figure, percent, period_name, period_of, picked_words, run_rows, view
from tests.ui.conftest import AUDITED, OpenPage, texts


def board(workbench: Workbench, **kept: str) -> Any:
    return view(workbench.metrics.report(MeasureFilter(), "week"), kept)


def test_the_page_shows_rates_distributions_and_tables(audited_workbench: Workbench) -> None:
    drawn = board(audited_workbench)
    tiles = {tile["title"]: tile["value"] for tile in drawn["tiles"]}
    assert tiles["audits"] == str(len(AUDITED))
    total = audited_workbench.metrics.report(MeasureFilter(), "week").total
    assert tiles["hallucination"] == percent(total.critique_hallucination_rate)
    assert [rate["title"] for rate in drawn["rates"]] == [
        "Hallucination",
        "Needed revision",
        "Convergence",
        "Needs review",
    ]
    titles = {each["title"] for each in drawn["spreads"]}
    assert {"Critic time per answer", "Time per audit", "Issues per answer"} <= titles
    assert [table["title"] for table in drawn["tables"]] == ["By model of the critic", "By week"]


def test_beside_convergence_stands_how_else_audits_ended(audited_workbench: Workbench) -> None:
    [convergence] = [rate for rate in board(audited_workbench)["rates"] if rate["title"] == "Convergence"]
    done = percent(audited_workbench.metrics.report(MeasureFilter(), "week").total.no_issues_rate)
    assert done != "0%"
    assert f"Besides these, {done} ended with nothing grave left" in convergence["meaning"]


def test_every_figure_leads_to_as_many_runs_as_it_counts(audited_workbench: Workbench) -> None:
    store = audited_workbench.store
    found = MetricsService(store).report(MeasureFilter(), "week")
    for each in found.distributions:
        for bin_ in each.bins:
            pick = Pick(measure=each.measure, above=bin_.low, most=bin_.high)
            runs = store.measures.runs(MeasureFilter(), pick).total
            assert (runs > 0) is (bin_.count > 0), each.measure
            assert runs <= bin_.count
    for rate, share in (
        ("hallucination", found.total.critique_hallucination_rate),
        ("converged", found.total.converged_rate),
        ("convergence_ending", found.total.convergence_rate),
        ("needs_review", found.total.needs_review_rate),
    ):
        pick = Pick(rate=rate)  # type: ignore[arg-type]
        assert store.measures.runs(MeasureFilter(), pick).total == round((share or 0) * found.total.runs)


def test_links_keep_the_filters_of_the_address(audited_workbench: Workbench) -> None:
    drawn = board(audited_workbench, role="reviser", since="2020-01-01")
    hallucination = next(tile for tile in drawn["tiles"] if tile["title"] == "hallucination")
    assert hallucination["href"] == "metrics?role=reviser&since=2020-01-01&show=hallucination"


def test_the_page_opens_with_and_without_a_list(audited_workbench: Workbench, open_page: OpenPage) -> None:
    assert "Metrics" in [title.value for title in open_page("metrics").title]
    listed = open_page("metrics", show="hallucination")
    assert any("something is made up" in text.value for text in listed.text)


@pytest.mark.parametrize(
    "address",
    [
        {"show": "critic_ms", "above": "nan", "most": "1e400"},
        {"show": "critic_ms", "above": "0.001"},
        {"show": "'; DROP TABLE runs"},
        {"since": "2026-02-31", "until": "x", "by": "year", "role": "nobody"},
        {"since": "0001-01-01", "until": "9999-12-31", "show": "all", "at": "9999-12-31", "by": "month"},
        {"show": "all", "at": "not a day", "of": "<script>", "page": "99999"},
        {"model": "none such", "show": "all"},
    ],
)
def test_an_address_that_makes_no_sense_is_no_error(
    audited_workbench: Workbench, open_page: OpenPage, address: dict[str, str]
) -> None:
    open_page("metrics", **address)


def test_filters_that_nothing_matches_are_told(audited_workbench: Workbench, open_page: OpenPage) -> None:
    assert "No audit matches" in texts(open_page("metrics", since="2999-01-01"))


def test_without_an_audit_the_page_says_what_will_be_here(
    audited_workbench: Workbench, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    from masis.ui.shell import served_database

    monkeypatch.setattr(served_database, "_served", [tmp_path / "empty.db"])
    assert "No audit has finished yet" in texts(open_page("metrics"))


def test_choosing_a_period_is_kept_in_the_address(audited_workbench: Workbench, open_page: OpenPage) -> None:
    app = open_page("metrics", show="all")
    app.button_group(key="metrics-by").set_value("day").run()
    assert not app.exception
    assert app.query_params["by"] == "day"
    assert "show" not in app.query_params


def test_runs_whose_texts_are_gone_are_listed_without_a_way(audited_workbench: Workbench) -> None:
    page = audited_workbench.store.measures.runs(MeasureFilter(), Pick())
    gone = page.rows[0].model_copy(update={"case_id": None, "query": None})
    row = run_rows((gone,), None)["rows"][0]
    assert (row["href"], row["way"], row["question"]) == ("", None, "")


@pytest.mark.parametrize(
    ("period", "first", "last", "name"),
    [
        ("day", "2026-02-28", "2026-03-01", "28 Feb 2026"),
        ("week", "2026-11-16", "2026-11-23", "week of 16 Nov 2026"),
        ("month", "2026-12-01", "2027-01-01", "December 2026"),
    ],
)
def test_periods_have_a_first_day_and_a_name(period: Any, first: str, last: str, name: str) -> None:
    bounds = period_of(period, first)
    assert bounds is not None
    assert (bounds[0].isoformat(), bounds[1].isoformat()) == (first, last)
    assert period_name(period, first) == name


def test_figures_have_as_many_digits_as_they_deserve() -> None:
    assert [percent(each) for each in (None, 0.0, 0.034, 0.31, 1.0)] == ["–", "0%", "3.4%", "31%", "100%"]
    assert [figure(each) for each in (None, 0.0, 0.0312, 0.5, 12.34, 1234.5, 3.0)] == [
        "–",
        "0",
        "0.031",
        "0.50",
        "12.3",
        "1,234",
        "3",
    ]
    assert [duration(each) for each in (None, 0.5, 12.0, 999.0, 1500.0, 61_234.0)] == [
        "–",
        "0.50 ms",
        "12 ms",
        "999 ms",
        "1.5 s",
        "61.2 s",
    ]


def test_the_list_says_what_it_shows() -> None:
    assert picked_words(Pick(rate="converged"), "week", "2026-11-16", "offline") == (
        "Audits that converged, week of 16 Nov 2026, offline"
    )
    assert picked_words(Pick(measure="critic_ms", above=5000.0), "week", "", "") == (
        "Audits with critic time per answer: over 5 s"
    )
    assert picked_words(Pick(), "week", "", "") == "Audits"


@pytest.mark.spec("REQ-CRITIC-NFR-001", "REQ-CRITIC-NFR-002", "REQ-CRITIC-NFR-003", "REQ-CRITIC-NFR-004")
def test_the_limits_of_the_spec_stand_beside_the_times(audited_workbench: Workbench) -> None:
    limits = {name: spread.limit for name, spread in SPREADS.items() if spread.limit is not None}
    assert limits == {"critic_ms": 15_000, "reviser_ms": 15_000, "iteration_ms": 35_000, "loop_ms": 90_000}
    critic = next(each for each in board(audited_workbench)["spreads"] if each["title"] == "Critic time per answer")
    assert critic["limit"]["text"] == "95% are under 15 s"
    assert "REQ-CRITIC-NFR-001" in critic["limit"]["meaning"]


def test_years_of_days_are_listed_as_far_as_a_table_can_be_read(audited_workbench: Workbench) -> None:
    found = audited_workbench.metrics.report(MeasureFilter(), "day")
    days = tuple(found.total.model_copy(update={"name": f"2026-{1 + n // 28:02}-{1 + n % 28:02}"}) for n in range(336))
    drawn: Any = view(found.model_copy(update={"periods": days}), {})
    assert len(drawn["rates"][0]["points"]) == 336
    (table,) = (each for each in drawn["tables"] if each["title"].startswith("By day"))
    assert (table["title"], len(table["rows"])) == ("By day, the newest 60", 60)
    assert table["rows"][0]["name"] == "28 Dec 2026"
