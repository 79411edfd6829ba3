"""The judge page leads from decided cases to a version that is adopted or dropped."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from masis.schema.judge import JudgeContent, JudgeVersion
from masis.schema.judge_trials import DecidedFilter
from masis.services import Workbench
from masis.settings import load
from masis.ui.judge.page import STEPS
from masis.views.markdown import escape_markdown
from tests.judging import (
    ADA,
    CURRENCY_REASON,
    CURRENCY_RULE,
    ROUNDED_REASON,
    ROUNDED_RULE,
    configure,
    decided_database,
    server,
)
from tests.serving_models import ModelServer
from tests.ui.conftest import Serve, open_page, press, texts

NAMED = {"reviewer-name": "Ada"}


__all__ = ["decided_database", "server"]  # the fixtures of both judge tests


@pytest.fixture
def desk(
    decided_database: Path,
    server: ModelServer,
    tmp_path: Path,
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
) -> Workbench:
    """24 decided cases in which a team disagrees with the default judge in two ways."""
    configure(tmp_path, server)
    monkeypatch.chdir(tmp_path)
    opened = serve(shutil.copy(decided_database, tmp_path / "judge.db"))
    opened.use_settings(ADA, load().settings)
    return opened


def a_draft(desk: Workbench) -> JudgeVersion:
    split = desk.alignment.choose(ADA, DecidedFilter(), 11)
    content = JudgeContent(rules=(ROUNDED_RULE, CURRENCY_RULE), held_out=split.held_out)
    return desk.judge.draft(ADA, "team 1", content)


def page(step: str, **parameters: str) -> AppTest:
    return open_page("judge", NAMED, step=step, **parameters)


def element_data(app: AppTest) -> str:
    """All data that the page's own elements were given."""
    return "\n".join(str(element.proto) for element in app.main if hasattr(element, "proto"))


@pytest.mark.parametrize("step", STEPS)
def test_every_step_says_how_to_begin_before_the_first_decision(
    audited_workbench: Workbench, step: str
) -> None:
    shown = texts(page(step))
    assert "Audits use the default judge." in shown
    assert any(
        words in shown
        for words in ("No decided cases yet", "No cases chosen yet", "No version yet")
    )


def test_choosing_cases_shows_the_halves_and_leads_to_the_next_step(desk: Workbench) -> None:
    app = page("choose")
    assert "24 decided cases, 24 of them decided before the audit's verdict was shown" in texts(app)
    app.number_input(key="judge-seed").set_value(11)
    app = press(app, "Choose these cases")
    assert "24 cases chosen." in texts(app)
    assert "12 questions to write rules from, 12 held out (seed 11)" in texts(app)
    app = press(app, "judge-to-see")
    assert "False flags" in "\n".join(str(heading.value) for heading in app.subheader)


def test_cases_of_the_held_out_half_are_counted_but_not_listed(desk: Workbench) -> None:
    split = desk.alignment.choose(ADA, DecidedFilter(), 11)
    told, held_out = element_data(page("see")), element_data(page("see", half="held_out"))
    report = desk.alignment.measure(ADA, split)
    for case in (*report.false_flags, *report.misses):
        assert case.case_id in told
    assert "review?case=" in told
    assert "review?case=" not in held_out
    assert "Confusion of audit and people" in held_out


def test_a_proposed_rule_is_added_to_a_draft_with_one_click(desk: Workbench) -> None:
    split = desk.alignment.choose(ADA, DecidedFilter(), 11)
    app = page("tell")
    assert escape_markdown(ROUNDED_REASON) in texts(app)
    assert escape_markdown(CURRENCY_REASON) in texts(app)
    assert "No answer that people found faulty would lose its flag." in texts(app)
    app.text_input(key="judge-new-name").set_value("team 1")
    app = press(app, "Write a new draft")
    app = press(app, "judge-proposal-0-add")
    app = press(app, "judge-proposal-1-add")
    assert app.button(key="judge-proposal-1-add").disabled, "a rule is added once"
    [version] = desk.judge.versions(ADA)
    assert {rule.sentence for rule in version.content.rules} == {ROUNDED_REASON, CURRENCY_REASON}
    assert version.content.held_out == split.held_out


def test_a_rule_is_written_edited_and_removed(desk: Workbench) -> None:
    split = desk.alignment.choose(ADA, DecidedFilter(), 11)
    version = desk.judge.draft(ADA, "team 1", JudgeContent(held_out=split.held_out))
    app = page("tell")
    form = f"judge-rule-{version.id}-"
    app.text_area(key=f"{form}-sentence").set_value("Answers are short.")
    app.selectbox(key=f"{form}-check").set_value("maximal_length")
    app.number_input(key=f"{form}-check-limit").set_value(50)
    app = press(app, "Add the rule")
    [rule] = desk.judge.get(ADA, "team 1").content.rules
    assert (rule.force, rule.severity) == ("must", "high")
    assert rule.check is not None
    assert (rule.check.kind, rule.check.limit) == ("maximal_length", 50)
    app.text_area(key=f"{form}{rule.id}-sentence").set_value("Answers are very short.")
    app = press(app, "Save the rule")
    [rule] = desk.judge.get(ADA, "team 1").content.rules
    assert rule.sentence == "Answers are very short."
    press(app, f"judge-remove-{rule.id}")
    assert desk.judge.get(ADA, "team 1").content.rules == ()


def test_a_rule_that_cant_be_used_is_refused_with_its_reason(desk: Workbench) -> None:
    split = desk.alignment.choose(ADA, DecidedFilter(), 11)
    version = desk.judge.draft(ADA, "team 1", JudgeContent(held_out=split.held_out))
    app = page("tell")
    form = f"judge-rule-{version.id}-"
    app.text_area(key=f"{form}-sentence").set_value("No slang.")
    app.selectbox(key=f"{form}-check").set_value("pattern")
    app.text_input(key=f"{form}-check-text").set_value("(")
    app = press(app, "Add the rule")
    assert "regular expression" in texts(app)
    assert desk.judge.get(ADA, "team 1").content.rules == ()


def test_the_cost_is_shown_before_a_trial_and_its_flips_afterwards(desk: Workbench) -> None:
    version = a_draft(desk)
    app = page("try")
    assert "The trial needs up to 12 calls" in texts(app)
    assert "Not tried yet" in texts(page("compare"))
    press(app, "judge-try")
    task = desk.alignment.latest_trial(version)
    assert task is not None
    task.wait(60)
    assert not task.problems
    app = page("compare")
    shown = element_data(app)
    compared = desk.alignment.compare(ADA, version)
    assert compared.flips
    for change in compared.flips:
        assert change.case_id in shown
    assert "rule currency" in shown
    assert "rule rounding" in shown
    assert f"{compared.gained} cases gained and 0 lost" in texts(app)


def test_a_version_is_adopted_with_author_and_date_or_dropped(desk: Workbench) -> None:
    version = a_draft(desk)
    dropped = desk.judge.draft(ADA, "team 2", version.content)
    for draft in (version, dropped):
        desk.alignment.start(ADA, draft).wait(60)
    press(page("compare", version=dropped.id), "judge-drop")
    app = press(page("compare", version=version.id), "judge-adopt")
    assert "Audits use **team 1**, adopted by Ada on" in texts(app)
    assert desk.judge.get(ADA, "team 2").state == "dropped"
    app = page("history")
    assert "team 2" in element_data(app)
    press(app, "judge-retire")
    assert desk.judge.find_adopted(ADA) is None


def test_hostile_texts_of_cases_and_rules_are_shown_as_they_are(desk: Workbench) -> None:
    split = desk.alignment.choose(ADA, DecidedFilter(), 11)
    hostile = "**bold** <script>alert(1)</script> :red[x] $x$"
    rule = CURRENCY_RULE.model_copy(update={"sentence": hostile})
    desk.judge.draft(ADA, "team 1", JudgeContent(rules=(rule,), held_out=split.held_out))
    app = page("tell")
    for expander in app.expander:
        assert "**bold**" not in expander.label
