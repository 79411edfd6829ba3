"""``masis preference``: two answers without names, and what people prefer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from masis.cli import options as shared
from masis.cli.commands import Command, CommandGroup
from masis.cli.output import Emit, say, table
from masis.datasets.writers.files import whole_file
from masis.schema.preference import LONGEST_REASON, PREFERENCE_VERDICTS, PreferenceVerdict
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.api_records import PreferenceSummary
from masis.services.preference_texts import agreement_lines, strength_rows, win_rate_rows
from masis.services.preferences import (
    PREFERENCE_FORMATS,
    BlindAnswer,
    NewPreference,
    PreferenceProgress,
    PreferenceTask,
    RecordedPreference,
)


@click.group(cls=CommandGroup)
def preference() -> None:
    """Decide which of two systems' answers is better, without their names, and see the results.

      masis preference list
      masis preference decide 12-9f3c01 left --reason "It answers the question."
      masis preference results

    docs/preference.md explains the figures, and who sees them when.
    """


_everyone = click.option(
    "--everyone",
    is_flag=True,
    help="Include verdicts on questions that you haven't decided. You're no longer blind then.",
)


@preference.command("list", cls=Command, short_help="Show the next undecided pair.")
@shared.by_option
@shared.json_option
@shared.workbench_option
def list_pairs(by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Show the next pair of answers that you haven't decided.

      masis preference list
      masis preference list --json | jq -r .pair

    The sides are shuffled, and nothing shows which system wrote an answer.
    """
    task = workbench.preferences.next(shared.operator(by))
    if task is None:
        say(
            "No pair is open for you. Pairs need answers from two systems to the same question:"
            " masis import answers.jsonl --system v2"
        )
        return
    emit(task, _task_lines(task))
    say(_progress_text(task.progress))


def _task_lines(task: PreferenceTask) -> Iterator[str]:
    yield f"pair      {task.pair}"
    yield f"question  {task.question}"
    for side, shown in (("left", task.left), ("right", task.right)):
        yield ""
        yield f"--- {side}"
        yield from _answer_lines(shown)


def _answer_lines(shown: BlindAnswer) -> Iterator[str]:
    yield shown.answer
    for chunk in shown.evidence:
        yield f"  [{chunk.id}] {chunk.text}"


@preference.command("decide", cls=Command, short_help="Decide a pair.")
@click.argument("pair")
@click.argument("verdict", type=click.Choice(PREFERENCE_VERDICTS))
@click.option("--reason", default="", metavar="TEXT", help="Why.")
@shared.by_option
@shared.json_option
@shared.workbench_option
def decide(
    pair: str,
    verdict: PreferenceVerdict,
    reason: str,
    by: str | None,
    emit: Emit,
    workbench: Workbench,
) -> None:
    """Record which answer of PAIR is better: left, right, equal or both_bad.

    masis preference decide 12-9f3c01 left --reason "It answers the question."
    """
    if len(reason) > LONGEST_REASON:
        raise click.BadParameter(
            f"has more than {LONGEST_REASON:,} characters", param_hint="reason"
        )
    given = NewPreference(pair=pair, verdict=verdict, reason=reason)
    _emit_recorded(workbench.preferences.decide(shared.operator(by), given), emit)


@preference.command("undo", cls=Command, short_help="Undo your newest verdict.")
@shared.by_option
@shared.json_option
@shared.workbench_option
def undo(by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Undo your newest verdict. Its pair is open again, and both entries stay in the log.

    masis preference undo
    """
    _emit_recorded(workbench.preferences.undo(shared.operator(by)), emit)


def _emit_recorded(recorded: RecordedPreference, emit: Emit) -> None:
    done = (
        f"undone: {recorded.undone}" if recorded.kind == "undo" else f"recorded: {recorded.verdict}"
    )
    emit(recorded, [f"{recorded.pair}: {done}"])
    say(_progress_text(recorded.progress))


def _progress_text(progress: PreferenceProgress) -> str:
    return f"You have decided {progress.decided:,} of {count_noun(progress.total, 'pair')}."


@preference.command("results", cls=Command, short_help="Show win rates and agreement.")
@_everyone
@shared.by_option
@shared.json_option
@shared.workbench_option
def results(everyone: bool, by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Show win rates, strengths and how far reviewers agree.

      masis preference results
      masis preference results --everyone --json | jq .win_rates

    They cover the questions for which you've decided every pair.
    """
    found = workbench.preferences.results(shared.operator(by), everyone=everyone)
    lines = [
        f"{count_noun(found.verdicts, 'verdict')} on {count_noun(found.questions, 'question')}",
        "",
        *table(
            ("system", "against", "wins", "losses", "ties", "win rate", ""), win_rate_rows(found)
        ),
        "",
        *table(("system", "strength", "interval"), strength_rows(found)),
        *agreement_lines(found),
    ]
    emit(PreferenceSummary.of(found), lines if found.verdicts else [])
    if not found.verdicts:
        say("There are no verdicts that you may see yet. Decide pairs first: masis preference list")


@preference.command("export", cls=Command, short_help="Write preference pairs to a file.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option(
    "--format",
    "format_name",
    type=click.Choice(PREFERENCE_FORMATS),
    default=PREFERENCE_FORMATS[0],
    show_default=True,
    help="The format: for TRL, or for OpenAI's fine-tuning.",
)
@shared.by_option
@shared.json_option
@shared.workbench_option
def export(file: Path, format_name: str, by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Write preferred and rejected answers to FILE as JSON Lines, one line for each pair.

      masis preference export pairs.jsonl
      masis preference export pairs.jsonl --format pairs-openai

    The answer that more reviewers prefer is the preferred one. Pairs without one are left out.
    """
    found = workbench.preferences.export(shared.operator(by), format_name)
    with whole_file(file) as stream:
        for row in found.rows:
            stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    if str(file) != "-":
        emit({"rows": len(found.rows), "left_out": found.left_out}, [])
    say(f"{count_noun(len(found.rows), 'pair')} written.")
    for reason, count in found.left_out.items():
        say(f"{count_noun(count, 'pair')} left out: {reason}.")
