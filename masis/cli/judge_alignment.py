"""The commands of ``masis judge`` that measure the judge and try versions of it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from masis.cli import options as shared
from masis.cli.commands import Command, JobFailed, end_interrupted
from masis.cli.output import Emit, ProgressBar, say, table
from masis.errors import InputError
from masis.schema.actor import Actor
from masis.schema.judge_trials import HALVES, DecidedFilter, DecidedSplit, Half
from masis.schema.wording import count_noun, shorten
from masis.services import Workbench
from masis.services.judge.alignment import (
    AlignmentReport,
    ChangedVerdict,
    JudgeComparison,
    RunningTrial,
)
from masis.services.judge.proposals import RuleProposal
from masis.services.judge.words import cost_line, effect_text, rules_text, verdict_line
from masis.services.trust.summary import figure_text
from masis.trust.alignment import JudgeFigures

_TEXT_LENGTH = 80
_POLL_S = 0.2


@click.command(cls=Command, short_help="Compare the audits with people's decisions.")
@click.option("--choose", is_flag=True, help="Choose the cases again.")
@click.option(
    "--seen", is_flag=True, help="Also use decisions made with the audit's verdict visible."
)
@click.option("--dataset", default="", metavar="NAME", help="Only cases of this data set.")
@click.option("--field", default="", metavar="NAME", help="Only cases of this field.")
@click.option("--since", default="", metavar="DATE", help="Only decisions on this day or later.")
@click.option("--until", default="", metavar="DATE", help="Only decisions before this day.")
@click.option(
    "--seed",
    type=click.IntRange(0, (1 << 31) - 1),
    metavar="N",
    help="The seed that determines the halves.",
)
@click.option(
    "--half", type=click.Choice(list(HALVES)), default="first", help="The half to report on."
)
@shared.by_option
@shared.json_option
@shared.workbench_option
def align(
    choose: bool,
    seen: bool,
    dataset: str,
    field: str,
    since: str,
    until: str,
    seed: int | None,
    half: Half,
    by: str | None,
    emit: Emit,
    workbench: Workbench,
) -> None:
    """Choose decided cases, hold out half of their questions, and compare the audits with people.

      masis judge align
      masis judge align --choose --dataset pilot --seed 7
      masis judge align --half held_out

    Without --choose, the newest choice is used if there is one. Cases of the held-out half are
    never listed. If you wrote rules from them, they could no longer test those rules. Exit code 2:
    fewer than two decided questions match.
    """
    person, service = shared.operator(by), workbench.alignment
    split = None if choose else service.split(person)
    filters = DecidedFilter(
        blind_only=not seen, dataset=dataset, field=field, since=since, until=until
    )
    if split is not None and (filters != DecidedFilter() or seed is not None):
        raise click.UsageError("Filters and --seed belong to --choose.")
    if split is None:
        split = service.choose(person, filters, seed)
    report = service.measure(person, split, half)
    emit({"chosen": split, "report": report}, _alignment_lines(report))
    held_out = len(split.held_out)
    say(
        f"{count_noun(split.cases, 'case')} chosen by {split.by} with seed {split.seed}:"
        f" {split.questions - held_out:,} questions to write rules from, {held_out:,} held out."
    )


def _alignment_lines(report: AlignmentReport) -> Iterator[str]:
    yield from _figure_lines(report.figures)
    for title, cases in (("false flag", report.false_flags), ("miss", report.misses)):
        for case in cases:
            issues = "; ".join(issue.description for issue in case.issues)
            yield shorten(f"{title}: {case.case_id}  {issues or case.reason}", 2 * _TEXT_LENGTH)


def _figure_lines(figures: JudgeFigures) -> Iterator[str]:
    yield f"same verdict as people: {figure_text(figures.agreement)}"
    yield f"kappa: {figure_text(figures.kappa, share=False)}"
    yield f"right answers flagged: {figure_text(figures.false_flags)}"
    yield f"faulty answers missed: {figure_text(figures.misses)}"


@click.command(cls=Command, short_help="Propose rules from decisions against the audit.")
@shared.by_option
@shared.json_option
@shared.workbench_option
def propose(by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Propose house rules where reviewers disagreed with the audit at least three times on one kind
    of flag, with what each of them would have changed.

      masis judge propose

    The sentences are the reviewers' own. 'masis judge rules' adds one to a draft.
    """
    person = shared.operator(by)
    found = workbench.alignment.propose_rules(person, _find_split(workbench, person))
    emit(list(found), (line for proposal in found for line in _proposal_lines(proposal)))
    say(f"{count_noun(len(found), 'rule')} proposed.")


def _proposal_lines(proposal: RuleProposal) -> Iterator[str]:
    yield f"{proposal.rule.id} ({proposal.rule.force}): {proposal.rule.sentence}"
    yield f"  {count_noun(len(proposal.cases), 'case')}. {effect_text(proposal)}"


def _find_split(workbench: Workbench, person: Actor) -> DecidedSplit:
    split = workbench.alignment.split(person)
    if split is None:
        raise InputError(
            "no decided cases are chosen", hint="Choose them with 'masis judge align'."
        )
    return split


@click.command("hold-out", cls=Command, short_help="Let a draft hold out the chosen half.")
@click.argument("name")
@shared.by_option
@shared.json_option
@shared.workbench_option
def hold_out(name: str, by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Let the draft NAME hold out the held-out half of the chosen cases, so that it can be tried.

      masis judge hold-out "prices 1"

    Cases of these questions are never shown to the judge as examples.
    """
    person = shared.operator(by)
    split = _find_split(workbench, person)
    version = workbench.alignment.hold_out(person, workbench.judge.get(person, name), split)
    emit(version)
    say(f"{version.name} holds out {count_noun(len(version.content.held_out), 'question')}.")


@click.command("try", cls=Command, short_help="Audit the held-out cases with a version.")
@click.argument("name")
@shared.yes_option
@shared.by_option
@shared.json_option
@shared.workbench_option
def try_version(name: str, yes: bool, by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Audit the held-out cases with the judge version NAME. The cost is shown first.

      masis judge try "prices 1" --yes

    Cases, the queue and figures don't change. Ctrl-C stops it; finished cases are kept, and the
    next trial audits the others. Exit code 1: a case couldn't be audited.
    """
    person, service = shared.operator(by), workbench.alignment
    version = workbench.judge.get(person, name)
    plan = service.plan(person, version)
    for reason, count in plan.left_out.items():
        say(f"{count_noun(count, 'case')} left out: {reason}")
    say(f"{count_noun(plan.to_audit, 'case')} to audit, {plan.tried:,} tried before.")
    say(cost_line(plan))
    if plan.to_audit and not yes:
        click.confirm("Start?", abort=True, err=True)
    task = service.start(person, version)
    _follow_trial(task)
    compared = service.compare(person, version)
    emit(compared, _trial_lines(compared))
    for problem, count in task.problems.items():
        say(f"{count_noun(count, 'case')} not audited: {problem}")
    if task.problems or task.failed:
        raise JobFailed(task.failed or "The next trial audits these cases again.")


def _follow_trial(task: RunningTrial) -> None:
    with ProgressBar("Auditing", task.total) as progress:
        try:
            while not task.over:
                task.wait(_POLL_S)
                progress.move(task.done)
        except KeyboardInterrupt:
            task.stop()
            task.wait()
            end_interrupted("Stopped. The next trial audits the other cases.")


@click.command(cls=Command, short_help="Compare before and after on the held-out cases.")
@click.argument("name")
@shared.by_option
@shared.json_option
@shared.workbench_option
def compare(name: str, by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Compare the stored audits and the trial of the judge version NAME with people, and list each
    case whose verdict changed, with the rule responsible.

      masis judge compare "prices 1"
      masis judge compare "prices 1" --json | jq '.changes[] | select(.right_now | not)'

    All figures are about the cases that 'masis judge try' has audited.
    """
    person = shared.operator(by)
    version = workbench.judge.get(person, name)
    compared = workbench.alignment.compare(person, version)
    emit(compared, _trial_lines(compared))
    say(f"Tried on {compared.tried:,} of {count_noun(compared.cases, 'held-out case')}.")


def _trial_lines(compared: JudgeComparison) -> Iterator[str]:
    for title, figures in (("before", compared.before), (compared.version, compared.after)):
        yield title
        yield from (f"  {line}" for line in _figure_lines(figures))
    yield verdict_line(compared)
    if compared.changes:
        rows = [_change_row(change) for change in compared.changes]
        yield from table(("case", "before", "now", "people", "because of"), rows)


def _change_row(change: ChangedVerdict) -> tuple[str, ...]:
    people = "faulty" if change.faulty else "right"
    return change.case_id, change.before, change.after, people, rules_text(change.rules)
