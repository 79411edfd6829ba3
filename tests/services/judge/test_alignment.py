"""The judge is measured by decided cases, and a version is tried on cases that nobody told it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from masis.errors import InputError, NotAllowed, SettingsError
from masis.schema.actor import Actor
from masis.schema.judge import JudgeContent, JudgeVersion, question_id
from masis.schema.judge_trials import HALVES, DecidedFilter, DecidedSplit
from masis.schema.labels import TargetLabel
from masis.schema.review import Decision
from masis.schema.team import QueuePolicy
from masis.services import SIGN_IN_REQUIRED, Workbench
from masis.services.decision_rules import with_reason_code
from masis.services.judge.alignment import AlignmentService, JudgeComparison
from masis.services.judge.proposals import (
    LEAST_OVERRULED,
    OverruledFlag,
    SeenCase,
    overruled_flags,
    propose_rules,
)
from masis.services.modes.grouping import PatternText
from masis.services.records import CaseFilter
from masis.services.trust.service import TrustFilter
from tests.judging import (
    ADA,
    CURRENCY_REASON,
    CURRENCY_RULE,
    KEY,
    ROUNDED_REASON,
    ROUNDED_RULE,
    a_decided_case,
    decided_database,
    judged_by,
    server,
)
from tests.modes import an_issue
from tests.reviewing import decide, undone
from tests.serving_models import ModelServer
from tests.store.factories import an_iteration

__all__ = ["decided_database", "server"]  # the fixtures of both judge tests


@pytest.fixture
def desk(
    decided_database: Path,
    server: ModelServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Workbench]:
    """24 decided cases in which a team disagrees with the default judge in two ways."""
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    path = tmp_path / "judge.db"
    shutil.copy(decided_database, path)
    opened = Workbench.open(path, judged_by(server))
    yield opened
    opened.close()


def choose_split(desk: Workbench, seed: int = 11) -> DecidedSplit:
    return desk.alignment.choose(ADA, DecidedFilter(), seed)


def a_version(desk: Workbench, *rules: object, name: str = "team 1") -> JudgeVersion:
    split = desk.alignment.split(ADA) or choose_split(desk)
    content = JudgeContent.model_validate({"rules": rules, "held_out": split.held_out})
    return desk.judge.draft(ADA, name, content)


def try_version(desk: Workbench, version: JudgeVersion) -> JudgeComparison:
    task = desk.alignment.start(ADA, version)
    task.wait(120)
    assert task.over
    assert task.failed is None
    assert not task.problems
    return desk.alignment.compare(ADA, version)


def question_of(desk: Workbench, case_id: str) -> str:
    """Return the id of the question that a case answers, as a split names it."""
    return question_id(desk.store.systems.question_records([case_id])[case_id])


def test_after_two_house_rules_the_held_out_half_follows_the_team(desk: Workbench) -> None:
    version = a_version(desk, ROUNDED_RULE, CURRENCY_RULE)
    compared = try_version(desk, version)
    assert (compared.cases, compared.tried) == (12, 12)
    assert compared.after.agreement.value == 1.0
    assert compared.before.agreement.value is not None
    assert compared.before.agreement.value < 0.5 + 1 / 3
    assert compared.lost == 0
    assert compared.gained == len(compared.flips) >= 6
    assert compared.p < 0.05
    assert compared.difference.low is not None
    assert compared.difference.low > 0
    described = json.loads(compared.model_dump_json())
    assert described["after"]["agreement"]["value"] == 1.0, "figures are objects in JSON"
    assert {change.rules for change in compared.flips} == {("rounding",), ("currency",)}
    assert all(change.right_now for change in compared.flips)


def test_a_flip_that_no_rule_explains_is_shown_as_such(
    desk: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = ROUNDED_RULE.model_copy(
        update={"id": "silent", "sentence": "Answers are short.", "issue_types": ("logical",)}
    )
    version = a_version(desk, silent, CURRENCY_RULE)
    run_ids = [run.id for run in desk.runs.for_case("plain-0")]
    compared = try_version(desk, version)
    assert {change.rules for change in compared.changes} == {("currency",)}
    # The judge changes its mind about a case that no rule is about.
    held_out = {
        f"plain-{number}"
        for number in range(8)
        if question_of(desk, f"plain-{number}") in version.content.held_out
    }
    case_id = sorted(held_out)[0]
    [outcome] = [
        outcome
        for outcome in desk.store.judge_trials.outcomes(version.digest, range(1, 100)).values()
        if outcome.case_id == case_id
    ]
    changed = outcome.model_copy(update={"verdict": "must_look"})
    desk.store.judge_trials.add_outcome(changed)
    [unexplained] = [
        change for change in desk.alignment.compare(ADA, version).flips if not change.rules
    ]
    assert (unexplained.case_id, unexplained.right_now) == (case_id, False)
    assert desk.alignment.compare(ADA, version).changes[0] == unexplained, "wrong flips come first"
    assert [run.id for run in desk.runs.for_case("plain-0")] == run_ids


def test_a_trial_changes_no_case_no_queue_and_no_figure(desk: Workbench) -> None:
    def everything() -> list[object]:
        filters = CaseFilter()
        return [
            desk.cases.find(filters),
            desk.store.decisions.head(),
            desk.trust.compare(ADA, TrustFilter()).answers,
            desk.trust.auditors(),
            desk.metrics.newest(),
            desk.store.database.execute("SELECT count(*), max(seq) FROM jobs")[0][:],
            desk.store.database.execute("SELECT count(*) FROM executions")[0][:],
        ]

    version = a_version(desk, ROUNDED_RULE, CURRENCY_RULE)
    before = everything()
    try_version(desk, version)
    assert everything() == before


def test_a_trial_asks_for_nothing_that_was_tried_before(
    desk: Workbench, server: ModelServer
) -> None:
    version = a_version(desk, ROUNDED_RULE)
    first = desk.alignment.plan(ADA, version)
    assert (first.cases, first.tried, first.to_audit) == (12, 0, 12)
    assert first.cost.calls >= 12
    assert first.unpriced == ("here:judge",)
    try_version(desk, version)
    second, asked = desk.alignment.plan(ADA, version), server.counts["requests"]
    assert (second.tried, second.to_audit, second.cost.calls) == (12, 0, 0)
    try_version(desk, version)
    assert server.counts["requests"] == asked
    changed = desk.judge.change(
        ADA, version.id, version.content.model_copy(update={"rules": (CURRENCY_RULE,)})
    )
    assert desk.alignment.plan(ADA, changed).to_audit == 12, "another content is another judge"


def test_a_stopped_trial_keeps_what_it_has_and_goes_on_later(desk: Workbench) -> None:
    version = a_version(desk, ROUNDED_RULE)
    task = desk.alignment.start(ADA, version)
    task.stop()
    task.wait(60)
    done = desk.alignment.compare(ADA, version).tried
    assert done + sum(task.problems.values()) == 12
    assert desk.alignment.plan(ADA, version).to_audit == 12 - done
    assert try_version(desk, version).tried == 12


def test_a_case_that_cant_be_audited_again_is_counted_with_its_reason(
    desk: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = a_version(desk, ROUNDED_RULE)
    monkeypatch.delenv("SCRIPTED_KEY")
    with pytest.raises(SettingsError):
        desk.alignment.start(ADA, version)


def test_no_question_is_in_both_halves_and_the_seed_gives_the_halves(desk: Workbench) -> None:
    twin = a_decided_case("plain", 3).model_copy(
        update={"id": "twin", "query": "what color is the  BRIDGE of Lyon?"}
    )
    desk.cases.add(ADA, [twin])
    desk.audits.audit(ADA, twin)
    decide(desk, "twin", "reject", "Bo", reason="It is blue.", iteration=1)
    first, again, other = choose_split(desk, 7), choose_split(desk, 7), choose_split(desk, 8)
    assert first.held_out == again.held_out != other.held_out
    assert (first.cases, first.questions, len(first.held_out)) == (25, 24, 12)
    halves = {half: desk.alignment.measure(ADA, first, half) for half in HALVES}
    assert sum(report.figures.cases for report in halves.values()) == 25
    assert sum(report.questions for report in halves.values()) == 24
    assert desk.alignment.split(ADA) == other
    assert desk.alignment.split(ADA, first.id) == first


def test_false_flags_and_misses_are_listed_with_issues_but_never_of_the_held_out_half(
    desk: Workbench,
) -> None:
    split = choose_split(desk)
    told = desk.alignment.measure(ADA, split)
    assert told.figures.cases == 12
    assert {case.case_id.split("-")[0] for case in told.false_flags} == {"rounded"}
    assert {case.case_id.split("-")[0] for case in told.misses} == {"price"}
    assert [issue.description for issue in told.false_flags[0].issues] == ["The figure is rounded."]
    assert told.false_flags[0].reason == ROUNDED_REASON
    shown = {case.case_id for case in (*told.false_flags, *told.misses)}
    held_out = desk.alignment.measure(ADA, split, "held_out")
    assert (held_out.false_flags, held_out.misses) == ((), ())
    questions = {question_of(desk, case_id) for case_id in shown}
    assert questions.isdisjoint(split.held_out)


def test_only_blind_decisions_count_unless_others_are_wanted(desk: Workbench) -> None:
    case = a_decided_case("plain", 20)
    desk.cases.add(ADA, [case])
    desk.audits.audit(ADA, case)
    decide(desk, case.id, "approve", "Bo", iteration=1, machine_shown=("marks",))
    assert desk.alignment.count_decided(ADA, DecidedFilter()) == 24
    assert desk.alignment.count_decided(ADA, DecidedFilter(blind_only=False)) == 25


@pytest.mark.parametrize("machine", ["first", "after", "never"])
def test_undecided_work_of_others_is_in_no_report(desk: Workbench, machine: Any) -> None:
    """Bo's decision on a case that needs two reviewers must stay unknown to Cleo."""
    split = choose_split(desk)
    case = a_decided_case("rounded", 30)
    desk.store.team.put_in_force(
        "Lea", QueuePolicy(reviewers=2, rule="adjudicated", machine=machine)
    )
    desk.cases.add(ADA, [case])
    desk.audits.audit(ADA, case)
    decide(desk, case.id, "approve", "Bo", iteration=1, reason=ROUNDED_REASON)
    for actor in (Actor(name="Cleo"), Actor(name="Bo")):
        report = desk.alignment.measure(actor, split, None)
        assert report.figures.cases == 24
        told = desk.alignment.measure(actor, split)
        assert case.id not in {row.case_id for row in (*told.false_flags, *told.misses)}
        proposals = desk.alignment.propose_rules(actor, split)
        assert all(case.id not in proposal.cases for proposal in proposals)


def test_a_case_that_is_opened_again_is_in_no_comparison(desk: Workbench) -> None:
    version = a_version(desk, ROUNDED_RULE, CURRENCY_RULE)
    compared = try_version(desk, version)
    undone(desk, compared.flips[0].case_id, "Bo")
    desk.store.team.put_in_force("Lea", QueuePolicy(machine="never"))
    after = desk.alignment.compare(Actor(name="Cleo"), version)
    assert (after.cases, after.tried) == (11, 11)
    assert compared.flips[0].case_id not in {change.case_id for change in after.changes}


def test_trials_go_with_the_texts_of_their_case(desk: Workbench) -> None:
    version = a_version(desk, CURRENCY_RULE)
    change = try_version(desk, version).changes[0]
    desk.reviews.redact_case(ADA, change.case_id, "personal data")
    stored = desk.store.judge_trials.outcomes(version.digest, range(1, 100))
    assert change.case_id not in {outcome.case_id for outcome in stored.values()}
    assert len(stored) == 11


def test_choosing_and_trying_need_a_lead(desk: Workbench) -> None:
    version = a_version(desk, CURRENCY_RULE)
    guarded = AlignmentService(desk.store, desk.settings, desk.trust, desk.judge, SIGN_IN_REQUIRED)
    reviewer = Actor(name="Cleo", roles=("reviewer",), authenticated=True)
    with pytest.raises(NotAllowed):
        guarded.choose(reviewer, DecidedFilter())
    with pytest.raises(NotAllowed):
        guarded.start(reviewer, version)


def test_too_few_cases_and_a_version_without_held_out_questions_are_refused(
    desk: Workbench, bench: Workbench
) -> None:
    with pytest.raises(InputError, match="only 0 decided questions"):
        bench.alignment.choose(ADA, DecidedFilter())
    unmeasured = desk.judge.draft(ADA, "unmeasured", JudgeContent(rules=(CURRENCY_RULE,)))
    with pytest.raises(InputError, match="holds out no questions"):
        desk.alignment.plan(ADA, unmeasured)
    with pytest.raises(InputError, match="no decided cases are chosen"):
        desk.alignment.hold_out(ADA, unmeasured)
    choose_split(desk)
    measured = desk.alignment.hold_out(ADA, unmeasured)
    assert desk.alignment.plan(ADA, measured).cases == 12


# Proposals


def test_three_decisions_against_one_kind_of_flag_propose_a_rule_from_their_reasons(
    desk: Workbench,
) -> None:
    split = choose_split(desk)
    proposals = {proposal.kind: proposal for proposal in desk.alignment.propose_rules(ADA, split)}
    overruled, missed = proposals["overruled"], proposals["missed"]
    assert overruled.rule.sentence == ROUNDED_REASON
    assert overruled.rule.force == "does_not_matter"
    assert overruled.rule.issue_types == ("ambiguity",)
    assert set(overruled.effect.corrected) == set(overruled.cases)
    assert overruled.effect.spoiled == ()
    assert missed.rule.sentence == CURRENCY_REASON
    assert (missed.rule.force, missed.rule.severity) == ("must_not", "high")
    assert missed.effect.unknown
    for proposal in proposals.values():
        questions = {question_of(desk, case) for case in proposal.cases}
        assert questions.isdisjoint(split.held_out)


def test_a_proposed_rule_can_be_told_and_helps_on_the_held_out_half(desk: Workbench) -> None:
    rules = [proposal.rule for proposal in desk.alignment.propose_rules(ADA, choose_split(desk))]
    compared = try_version(desk, a_version(desk, *rules))
    assert compared.after.agreement.value == 1.0


def test_two_decisions_propose_nothing(bench: Workbench, server: ModelServer) -> None:
    assert LEAST_OVERRULED == 3
    flags = [
        OverruledFlag("overruled", f"case-{number}", "It is rounded.", "ambiguity", "Fine.")
        for number in range(2)
    ]
    same_case = [flags[0]] * 5
    for few in (flags, same_case):
        assert propose_rules(few, (), _vectors, str) == ()


def _vectors(patterns: Sequence[PatternText]) -> Any:
    return np.ones((len(patterns), 384), dtype=np.float32)


def test_a_proposal_says_which_real_faults_it_would_hide(desk: Workbench) -> None:
    split = choose_split(desk)
    told = desk.alignment.measure(ADA, split)
    case_id = told.false_flags[0].case_id
    undone(desk, case_id, "Bo")
    decide(desk, case_id, "reject", "Bo", reason="It should be exact here.", iteration=1)
    [overruled] = [
        proposal
        for proposal in desk.alignment.propose_rules(ADA, split)
        if proposal.kind == "overruled"
    ]
    assert overruled.effect.spoiled == (case_id,)
    assert case_id not in overruled.effect.corrected


def test_no_rule_is_proposed_against_safety_issues() -> None:
    issue = an_issue(source="critic", type="safety", rule="critic")
    iteration = an_iteration(invalid=()).model_copy(update={"issues": (issue,)})
    case = SeenCase("case-1", iteration, flagged=True, faulty=False)
    decision = Decision(reviewer="Bo", case_id="case-1", run_id="run", verdict="approve")
    assert overruled_flags(case, decision) == []


@pytest.mark.parametrize("reason", ["contradicted", "unsupported", "wrong_citation", "incomplete"])
def test_faults_that_every_audit_looks_for_propose_no_rule(reason: str) -> None:
    """Their notes are about one answer each, and would be absurd as rules."""
    flags = [
        flag
        for number in range(6)
        for flag in overruled_flags(
            a_seen_case(f"q{number}"),
            a_rejection(reason, note=f"It says {number}; E1 says {number + 1} (number changed)."),
        )
    ]
    assert flags == []


def test_missed_faults_are_grouped_by_what_names_them() -> None:
    own = a_rejection("In my own words.", note="")
    unclear = a_rejection("unclear", note="Too long.")
    assert [flag.named for flag in overruled_flags(a_seen_case("q"), own)] == [""]
    assert [flag.named for flag in overruled_flags(a_seen_case("q"), unclear)] == ["unclear"]
    label = TargetLabel(target="answer", label="no currency", severity="high")
    labelled = own.model_copy(update={"labels": (label,)})
    assert [flag.named for flag in overruled_flags(a_seen_case("q"), labelled)] == ["no currency"]
    audited = own.model_copy(update={"labels": (label.model_copy(update={"label": "incomplete"}),)})
    assert overruled_flags(a_seen_case("q"), audited) == []


def a_seen_case(case_id: str) -> SeenCase:
    """Return a case that the audit didn't flag and people found faulty."""
    return SeenCase(case_id, an_iteration(), flagged=False, faulty=True)


def a_rejection(reason: str, note: str) -> Decision:
    said = {"reason": reason, "note": note}
    return with_reason_code(
        Decision(reviewer="Bo", case_id="q", run_id=None, verdict="reject", **said)
    )
