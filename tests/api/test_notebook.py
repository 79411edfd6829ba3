"""From Python: many audits at once, runs as tables, and views for notebooks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import masis
from masis.api import batch
from masis.errors import InputError
from masis.schema.audit import Issue
from tests.store.factories import a_case, a_run, an_iteration

HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)> \"&"


@pytest.fixture(scope="module")
def runs() -> list[masis.Run]:
    return masis.audit_many(cases(3), masis.Settings(max_iterations=2), concurrency=2, progress=False)


def cases(count: int) -> list[masis.Case]:
    evidence = [{"id": "1", "text": "The bridge is 120 metres long."}]
    return [
        masis.Case.model_validate(
            {
                "id": f"case-{number}",
                "query": "How long is it?",
                "answer": "The bridge is 120 metres long [1]. It is red [9].",
                "evidence": evidence,
            }
        )
        for number in range(count)
    ]


def test_runs_come_in_the_order_of_their_cases(runs: list[masis.Run]) -> None:
    assert [run.case_id for run in runs] == ["case-0", "case-1", "case-2"]
    assert all(run.iterations for run in runs)


def test_ctrl_c_returns_what_is_finished_and_begins_no_further_audit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[str] = []
    audit = batch._Batch._audit

    def counted(self: Any, case: masis.Case) -> masis.Run:
        begun.append(case.id)
        return audit(self, case)

    def interrupted() -> Iterator[masis.Case]:
        yield from cases(2)
        raise KeyboardInterrupt

    monkeypatch.setattr(batch._Batch, "_audit", counted)
    found = masis.audit_many(interrupted(), masis.Settings(max_iterations=1), concurrency=1)
    assert [run.case_id for run in found] == ["case-0", "case-1"]
    assert begun == ["case-0", "case-1"]
    assert "Interrupted: 2 audits are finished" in capsys.readouterr().out


def test_wrong_arguments_are_errors_of_ours() -> None:
    with pytest.raises(InputError, match="Put it into a list"):
        masis.audit_many(cases(1)[0])  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"cases\[0\]: is text, not a case"):
        masis.audit_many(["text"], progress=False)  # type: ignore[list-item]
    with pytest.raises(InputError, match="There are: runs, iterations"):
        masis.runs_to_pandas([], of="poems")  # type: ignore[arg-type]


@pytest.mark.parametrize("of", ["runs", "iterations", "claims", "citations", "issues"])
def test_tables_have_the_same_columns_with_and_without_rows(runs: list[masis.Run], of: Any) -> None:
    table = masis.runs_to_pandas(runs, of=of)
    assert len(table)
    assert list(table.columns) == list(masis.runs_to_pandas([], of=of).columns)
    assert not table.isna().all(axis=None)


def test_offsets_of_claims_cut_them_out_of_the_answer_of_their_iteration(runs: list[masis.Run]) -> None:
    answers = masis.runs_to_pandas(runs, of="iterations").set_index(["run_id", "iteration"])["answer"]
    for claim in masis.runs_to_pandas(runs, of="claims").to_dict("records"):
        assert answers[claim["run_id"], claim["iteration"]][claim["start"] : claim["end"]] == claim["text"]


def test_a_run_is_one_line_where_it_is_printed_and_html_in_a_notebook(runs: list[masis.Run]) -> None:
    assert repr(runs[0]).startswith("<Run of 'case-0': quality ")
    assert "\n" not in repr(runs[0])
    view = runs[0]._repr_html_()
    assert view == masis.html(runs[0])
    assert "120 metres long" in view
    assert 'title="names no evidence"' in masis.html(runs[0].model_copy(update={"best": 0}))


def test_a_view_escapes_everything_and_stays_under_its_limit() -> None:
    long = HOSTILE * 2000
    issue = Issue(
        id="i",
        key="k",
        source="critic",
        type="factual",
        rule="r",
        severity="high",
        description=long,
        reason=long,
        suggestion=long,
    )
    iteration = an_iteration(1, long).model_copy(update={"issues": (issue,) * 500})
    run = a_run(a_case(HOSTILE), iterations=(iteration,))
    view = masis.html(run)
    assert len(view.encode()) < 200_000
    assert "<script" not in view
    assert "<img" not in view
    assert "&lt;script&gt;" in view
    assert "more characters" in view
    assert "more issues" in view


@pytest.mark.slow
def test_a_screening_has_a_line_and_a_view() -> None:
    abstract = masis.Abstract(id=HOSTILE, title="A trial", text="It worked in 40 of 80 patients.")
    screening = masis.screen_abstracts("Does <b>it</b> work?", [abstract])
    assert repr(screening).startswith("<Screening of 'Does <b>it</b> work?'")
    assert "Does &lt;b&gt;it&lt;/b&gt; work?" in screening._repr_html_()
    assert "<script" not in masis.html(screening)


def test_a_chart_has_every_score_of_every_iteration(runs: list[masis.Run]) -> None:
    chart = masis.plot(runs[0]).to_dict()
    (rows,) = chart["datasets"].values()
    assert {row["score"] for row in rows} >= {"quality", "confidence", "faithfulness"}
    assert {row["iteration"] for row in rows} == set(range(1, runs[0].total_iterations + 1))
    with pytest.raises(InputError, match="has no iteration"):
        masis.plot(a_run(a_case(), iterations=()))


def test_cases_of_a_file_are_a_list_and_every_wrong_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    good = [case.to_json_dict() for case in cases(2)]
    file.write_text("".join(json.dumps(each) + "\n" for each in good))
    assert masis.read_cases(file) == cases(2)
    file.write_text(json.dumps(good[0]) + "\n{}\nnot json\n")
    with pytest.raises(InputError, match=r"problems: .*line 2.*line 3"):
        masis.read_cases(str(file))


def test_files_of_other_tools_are_read_by_a_profile(tmp_path: Path) -> None:
    file = tmp_path / "samples.jsonl"
    sample = {"user_input": "How long?", "response": "Ten metres.", "retrieved_contexts": ["It is ten metres long."]}
    file.write_text(json.dumps(sample) + "\n")
    for profile in ("ragas", None):
        (case,) = masis.read_cases(file, profile)
        assert (case.query, case.answer) == ("How long?", "Ten metres.")
        assert [chunk.text for chunk in case.evidence] == ["It is ten metres long."]
    with pytest.raises(InputError, match=r"'poems' is no profile.*ragas"):
        masis.read_cases(file, "poems")
