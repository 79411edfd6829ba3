"""A rule that is added to the table at run time follows its columns."""

from __future__ import annotations

import pytest

from masis.audit import loop
from masis.audit.carried import issues_still_open
from masis.audit.citations import audit_citations
from masis.audit.revision import dropped_claims
from masis.bench.outcomes import score_issues
from masis.observers.observation import run_to_completion
from masis.offline.roles.reviser import OfflineReviser
from masis.schema.audit import Issue
from masis.schema.rules import RULES, IssueRule, rule_of
from masis.settings import Settings
from tests.audit.factories import EVIDENCE, case, context, issue, iteration_with_claims, verdict
from tests.scripted import MAJOR, ScriptedCritic, ScriptedReviser, judgement_with, roles, ticking

LENGTH = "The bridge is 120 metres long [chunk_1]."
YEAR = "It opened in 1931 [chunk_2]."
ANSWER = f"{LENGTH} {YEAR}"
STALE = IssueRule("stale source", "warn", "Cites a replaced edition", "serious", "outdated")


def add_rule(monkeypatch: pytest.MonkeyPatch, **columns: object) -> Issue:
    """Add a rule with these columns, and return an issue that it raised about the first sentence."""
    values = {name: getattr(STALE, name) for name in ("label", "tone", "meaning", "kind", "type")}
    monkeypatch.setitem(RULES, "stale_source", IssueRule(**(values | columns)))  # type: ignore[arg-type]
    return issue(
        source="claims",
        type="outdated",
        rule="stale_source",
        start=0,
        end=len(LENGTH),
        quote=LENGTH,
    )


def still_open(raised: Issue, answer: str) -> list[str]:
    previous = iteration_with_claims(ANSWER, "unsupported", issues=(raised,))
    audit = audit_citations(answer, EVIDENCE)
    return [open_issue.rule for open_issue in issues_still_open(previous, answer, audit, (), ())]


@pytest.mark.parametrize(
    ("carried_with", "open_if_repeated", "open_with_other_figure"),
    [(None, False, False), ("words", True, False), ("sentence", True, True)],
)
def test_an_issue_stays_open_according_to_its_rule(
    monkeypatch: pytest.MonkeyPatch,
    carried_with: str | None,
    open_if_repeated: bool,
    open_with_other_figure: bool,
) -> None:
    raised = add_rule(monkeypatch, carried_with=carried_with)
    assert bool(still_open(raised, ANSWER)) is open_if_repeated
    assert bool(still_open(raised, ANSWER.replace("120", "410"))) is open_with_other_figure


@pytest.mark.parametrize("by_citing", [True, False])
def test_a_revision_must_keep_statements_that_another_citation_fixes(
    monkeypatch: pytest.MonkeyPatch, by_citing: bool
) -> None:
    raised = add_rule(monkeypatch, is_fixed_by_citing=by_citing)
    dropped = dropped_claims((iteration_with_claims(ANSWER, issues=(raised,)),), YEAR)
    assert [check.claim.text for check in dropped] == ([LENGTH] if by_citing else [])


def test_the_offline_reviser_removes_sentences_flagged_as_instructions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raised = add_rule(monkeypatch, kind="instruction")
    audit = audit_citations(ANSWER, EVIDENCE)
    reviser_context = context(answer=ANSWER, citation_audit=audit, claims=())
    assert OfflineReviser().revise(reviser_context, verdict(), (raised,)).revised_answer == YEAR


def test_the_reviser_doesnt_get_issues_of_undecided_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add_rule(monkeypatch, is_undecided=True)
    raw_issues = (MAJOR, MAJOR._replace(rule="stale_source"))
    reviser = ScriptedReviser()
    steps = loop.audit(
        case(),
        roles(critic=ScriptedCritic([judgement_with(0.5, raw_issues=raw_issues)]), reviser=reviser),
        Settings(),
        run_id="r1",
        clock=ticking(),
    )
    run = run_to_completion(steps, None)
    assert {run_issue.rule for run_issue in run.iterations[0].issues} == {"test", "stale_source"}
    assert {run_issue.rule for run_issue in reviser.seen[0][2]} == {"test"}


def test_masis_bench_matches_an_issue_with_the_gold_label_of_its_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raised = add_rule(monkeypatch, gold_label="stale")
    findings = [{"type": type_, "text": LENGTH} for type_ in ("stale", "contradiction")]
    gold = case(ANSWER).model_dump() | {"labels": {"findings": findings}}
    assert [hit.hit for hit in score_issues(gold, [raised]).found] == [True, False]


def test_a_critics_rule_has_the_default_columns() -> None:
    row = rule_of("critic_factual")
    assert (row.carried_with, row.is_fixed_by_citing, row.is_undecided) == (None, False, False)
