"""A package adds a check with an entry point, and the setting ``checks`` enables it by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import masis
from masis.errors import SettingsError
from masis.schema.case import Case
from masis.settings import Settings
from masis.views.answer import answer_view
from masis.views.headline import headline
from tests.plugins import install_package

CHECKS = """
from masis.audit.critique import RawIssue


def metres(case, answer):
    if "metres" in answer:
        yield RawIssue(
            "factual", "", "high", f"{case.id} gives metres.", "The house writes feet.",
            "Convert it.", quote="120 metres",
        )


def broken(case, answer):
    raise ZeroDivisionError("by zero")
"""
ENTRY_POINTS = """
[masis.checks]
house-units = house_checks:metres
house-broken = house_checks:broken
"""
CASE = Case.model_validate(
    {
        "id": "one",
        "query": "How long is the bridge?",
        "answer": "The bridge is 120 metres long [1].",
        "evidence": [{"id": "1", "text": "The bridge is 120 metres long."}],
    }
)


@pytest.fixture(autouse=True)
def package(tmp_path: Path) -> Iterator[None]:
    """Install a package that adds two checks."""
    with install_package(tmp_path / "site", ENTRY_POINTS, {"house_checks.py": CHECKS}):
        yield


def test_a_check_runs_only_if_the_settings_name_it() -> None:
    assert not masis.run_audit(CASE, Settings()).iterations[0].issues


def test_an_added_checks_issue_is_shown_and_sends_the_case_to_a_person() -> None:
    run = masis.run_audit(CASE, Settings(checks="house-units", max_iterations=1))
    (issue,) = run.iterations[0].issues
    assert (issue.source, issue.rule, issue.quote) == ("checks", "check_house-units", "120 metres")
    assert "serious_issue" in {reason.code for reason in run.review_reasons}
    assert headline(run).text == "one gives metres"
    (issue_view,) = answer_view(CASE, run, 0)["issues"]
    assert issue_view["label"]["text"] == "house-units"


def test_a_check_that_raises_an_error_doesnt_count_as_passed() -> None:
    run = masis.run_audit(CASE, Settings(checks=" house-broken , house-units", max_iterations=1))
    failed, _ = run.iterations[0].issues
    assert failed.description == "The check house-broken failed: ZeroDivisionError: by zero"
    assert run.needs_review


def test_an_unknown_check_is_reported_before_the_audit_starts() -> None:
    with pytest.raises(SettingsError, match=r"no 'house-unit'. Did you mean 'house-units'\?"):
        masis.run_audit(CASE, Settings(checks="house-unit"))
