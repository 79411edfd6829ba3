"""Runs and screenings in a notebook: as tables, as HTML, as a chart."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import masis
from masis.errors import InputError
from masis.schema.run import ReviewReason
from tests.audit.factories import issue
from tests.cases import case_of
from tests.rooms import needs_screening
from tests.store.factories import a_case, a_run, an_iteration

HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)> \"&"


@pytest.fixture(scope="module")
def runs() -> list[masis.Run]:
    evidence, answer = (
        {"1": "The bridge is 120 metres long."},
        "The bridge is 120 metres long [1]. It is red [9].",
    )
    cases = [case_of(answer, evidence, case_id=f"case-{at}") for at in range(2)]
    return [masis.run_audit(case, masis.Settings(max_iterations=2)) for case in cases]


def test_an_unknown_table_is_rejected() -> None:
    with pytest.raises(InputError, match="Choose one of: runs, iterations"):
        masis.runs_to_pandas([], of="poems")


@pytest.mark.parametrize("of", ["runs", "iterations", "claims", "citations", "issues"])
def test_empty_tables_have_the_same_columns(runs: list[masis.Run], of: Any) -> None:
    table = masis.runs_to_pandas(runs, of=of)
    assert len(table)
    assert list(table.columns) == list(masis.runs_to_pandas([], of=of).columns)
    assert not table.isna().all(axis=None)


def test_claim_offsets_match_their_iterations_answer(
    runs: list[masis.Run],
) -> None:
    answers = masis.runs_to_pandas(runs, of="iterations").set_index(["run_id", "iteration"])[
        "answer"
    ]
    for claim in masis.runs_to_pandas(runs, of="claims").to_dict("records"):
        assert (
            answers[claim["run_id"], claim["iteration"]][claim["start"] : claim["end"]]
            == claim["text"]
        )


def test_a_run_has_a_one_line_repr_and_html_in_notebooks(
    runs: list[masis.Run],
) -> None:
    assert repr(runs[0]).startswith("<Run of 'case-0': quality ")
    for printed in (runs[0], runs[0].iterations[0], runs[0].iterations[0].citation_audit):
        assert str(printed) == repr(printed)
        assert "\n" not in str(printed)
        assert len(str(printed)) < 300
    view = runs[0]._repr_html_()
    assert view == masis.html(runs[0])
    assert "120 metres long" in view
    assert 'title="fabricated: Names evidence that doesn\'t exist"' in masis.html(
        runs[0].model_copy(update={"best": 0})
    )


def test_the_original_answer_is_first_and_a_revision_is_labelled() -> None:
    answer = "The Lenne bridge is 210 metres long [c1]."
    run = masis.run_audit(case_of(answer, {"c1": "The Lenne bridge is 120 metres long."}))
    first, second = run.iterations
    assert run.best == 1
    assert (
        run.final_quality_score
        == run.revised_quality
        == second.quality_score
        != run.quality
        == first.quality_score
    )
    assert (
        f"quality {first.quality_score:.2f}, revised {second.quality_score:.2f}, 1 issue, 2"
        " iterations (ended by" in repr(run)
    )
    [row] = masis.runs_to_pandas(run).to_dict("records")
    assert (row["quality"], row["revised_quality"]) == (first.quality_score, second.quality_score)
    assert (row["confidence"], row["issues"]) == (first.critique.confidence, len(first.issues))
    shown = masis.html(run)
    original, _, revision = shown.partition("<details>")
    assert "210 metres" in original
    assert "120 metres long [" not in original
    assert "Revision 2, suggested by the audit" in revision
    # of the original, too
    assert "contradicted_claim" in {reason.code for reason in run.review_reasons}


def test_the_notebook_view_escapes_everything_and_is_limited_in_size() -> None:
    long = HOSTILE * 2000
    found = issue(description=long, reason=long, suggestion=long)
    iteration = an_iteration(1, long).model_copy(update={"issues": (found,) * 500})
    reasons = (ReviewReason(code="revised", message=long),) * 500
    run = a_run(a_case(HOSTILE), iterations=(iteration, iteration), review_reasons=reasons)
    view = masis.html(run)
    assert len(view.encode()) < 200_000
    assert "<script" not in view
    assert "<img" not in view
    assert "&lt;script&gt;" in view
    assert "more characters" in view
    assert "more issues" in view


def test_a_record_imports_its_view_only_when_displayed() -> None:
    program = (
        "import sys; from masis.schema.run import Run; before = 'masis.views.notebook' in"
        " sys.modules\nfrom masis.schema.screening import Screening; from masis.views.notebook"
        " import html\nfrom tests.store.factories import a_case, a_run; run ="
        " a_run(a_case())\nprint(before, run._repr_html_() == html(run), Screening._repr_html_ is"
        " Run._repr_html_)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["False", "True", "True"]


@needs_screening
@pytest.mark.slow
def test_a_screening_has_a_repr_and_a_view() -> None:
    abstract = masis.Abstract(id=HOSTILE, title="A trial", text="It worked in 40 of 80 patients.")
    screening = masis.screen_abstracts("Does <b>it</b> work?", [abstract])
    assert repr(screening).startswith("<Screening of 'Does <b>it</b> work?'")
    assert "Does &lt;b&gt;it&lt;/b&gt; work?" in screening._repr_html_()
    assert "<script" not in masis.html(screening)


def test_unsupported_objects_are_rejected_with_a_hint(runs: list[masis.Run]) -> None:
    with pytest.raises(
        InputError, match=r"is a list, not a Run. Pass one run: .*masis\.runs_to_pandas"
    ):
        masis.plot(runs)  # type: ignore[arg-type]
    with pytest.raises(
        InputError, match=r"is text, not a Run. Pass the result of masis\.audit_many or Desk\.audit"
    ):
        masis.runs_to_pandas(masis.runs_to_pandas(runs))  # type: ignore[arg-type]


def test_a_claim_has_a_one_line_repr(runs: list[masis.Run]) -> None:
    check = next(
        check for run in runs for iteration in run.iterations for check in iteration.claims
    )
    assert str(check).startswith(f"<ClaimCheck: {check.verdict}")
    assert len(str(check)) < 300


def test_a_chart_has_every_score_of_every_iteration(runs: list[masis.Run]) -> None:
    chart = masis.plot(runs[0]).to_dict()
    (rows,) = chart["datasets"].values()
    assert {row["score"] for row in rows} >= {"Quality", "Confidence", "Faithfulness"}
    assert {row["iteration"] for row in rows} == set(range(1, runs[0].total_iterations + 1))
    with pytest.raises(InputError, match="has no iteration"):
        masis.plot(a_run(a_case(), iterations=()))
