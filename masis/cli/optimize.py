"""``masis optimize``: compile a critic or reviser on labelled answers; list the compiled programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import click

from masis.api.roles import probe_model
from masis.cli.group import INTERRUPTED, JobFailed
from masis.cli.options import database_option, open_existing
from masis.cli.output import ErrorReport, Interruption, Progress, printable, say
from masis.datasets.mapping import read_any
from masis.errors import InputError
from masis.integrations.dspy import labelled, part, programs
from masis.integrations.dspy.programs import Measured, Program, Role
from masis.schema.case import Case
from masis.schema.wording import counted
from masis.services import demo_cases
from masis.settings import Settings, load
from masis.settings.reference import option_help
from masis.views.numbers import cost_text, day, dollars

FIELD = "{:<24} {:<8} {:<22} {:<10} {:>7} {:>7}  {}"


@click.command()
@click.option("--name", metavar="NAME", help="What the program is called: dspy:NAME names it in --model and settings.")
@click.option(
    "--on",
    "source",
    metavar="demo|decisions|FILE",
    default="demo",
    show_default=True,
    help="What is learnt from: the gold labels of the demo cases, what reviewers decided (see --db), or a file of "
    "cases with labels.",
)
@click.option(
    "--role", type=click.Choice(["critic", "reviser"]), default="critic", show_default=True, help="What is compiled."
)
@click.option(
    "--optimizer",
    type=click.Choice(["bootstrap", "mipro", "gepa"]),
    default="bootstrap",
    show_default=True,
    help="bootstrap: shows the model its own best replies. mipro: tries instructions and replies together. gepa: has "
    "instructions rewritten from what went wrong.",
)
@click.option("--model", metavar="MODEL", help="The model to compile for, as PROVIDER:MODEL.")
@click.option(
    "--teacher",
    metavar="MODEL",
    default="",
    help="A model whose replies are shown (bootstrap), or that writes instructions. Default: the same.",
)
@click.option("--demos", type=click.IntRange(0, 16), default=4, show_default=True, help="Demonstrations at most.")
@click.option(
    "--accept",
    type=click.FloatRange(0, 1),
    default=0.75,
    show_default=True,
    help="What a reply must be worth by the metric to be shown as an example.",
)
@click.option(
    "--trials",
    type=click.IntRange(1, 100),
    default=6,
    show_default=True,
    help="mipro: programs tried. gepa: looks at all answers.",
)
@click.option(
    "--held-out",
    type=click.FloatRange(0.1, 0.9),
    default=0.5,
    show_default=True,
    help="Share of the questions that nothing is learnt from, to measure on.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Draws the split.")
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="Stop, and save nothing, before a call that comes after this was spent.",
)
@click.option(
    "--control",
    is_flag=True,
    help="Give each answer another's labels, and save nothing: what is gained by chance alone.",
)
@click.option(
    "--programs",
    "at",
    type=click.Path(path_type=Path, file_okay=False),
    help=option_help("programs_folder"),
)
@database_option
@click.option("--list", "listing", is_flag=True, help="Show the programs there are, and compile nothing.")
@click.option("--show", metavar="NAME", help="Print instructions and demonstrations of a program: NAME or NAME@2.")
@click.pass_context
def optimize(
    context: click.Context,
    name: str | None,
    source: str,
    role: Role,
    optimizer: Literal["bootstrap", "mipro", "gepa"],
    model: str | None,
    teacher: str,
    demos: int,
    accept: float,
    trials: int,
    held_out: float,
    seed: int,
    max_cost: float | None,
    control: bool,
    at: Path | None,
    db: Path | None,
    listing: bool,
    show: str | None,
) -> None:
    """Compile the critic on labelled answers with DSPy, and store the program as the next version of NAME.

    The program holds instructions and demonstrations for one model. It is measured on questions that nothing was learnt
    from: finding what was labelled counts, raising what was not costs. The file's place goes to stdout.

    \b
      masis optimize --on demo --model openai:gpt-4o-mini --name careful
      masis optimize --on decisions --model openai --optimizer gepa --max-cost 5 --name ours
      masis audit cases.jsonl --model openai --model critic=dspy:careful
      masis optimize --list

    Needs DSPy, in an environment of its own: pip install '.[dspy]'.

    Exit code 0: compiled and stored, whether or not it gained anything. 1: it failed. 2: wrong use. 130: stopped,
    nothing stored.
    """  # noqa: D301 (click reads the backspace)
    settings = load().settings
    folder = programs.folder(at or settings.programs_folder)
    if listing:
        _list(folder)
        return
    if show:
        _show(programs.named(folder, show.removeprefix(f"{programs.PREFIX}:")))
        return
    if not name or not model:
        raise click.UsageError("Name the program and the model: --name careful --model openai:gpt-4o-mini.")
    programs.checked_name(name)
    compiling = part("compiling")
    plan = compiling.Plan(
        name, role, optimizer, model, teacher, demos, accept, trials, seed, max_cost, _source(source), control
    )
    _ask(settings, model, teacher)
    cases = _cases(source, db)
    parts = labelled.split(cases, held_out, seed)
    _show_parts(cases, parts)
    with Interruption("Stopping after the calls under way; nothing will be stored.") as stop:
        made = _compiled(compiling, plan, settings, parts, lambda: stop.asked)
    if isinstance(made, str):
        say(f"Stopped: {made}. Nothing was stored.")
        if stop.asked:
            context.exit(INTERRUPTED)
        raise JobFailed("The limit of --max-cost was reached before it was compiled.")
    _show_result(made)
    if control:
        say("This was a control, with the labels of other answers: nothing is stored.")
        return
    stored, file = programs.saved(folder, made)
    there = "" if folder == programs.folder(settings.programs_folder) else f" --set programs_folder={folder}"
    say(f"Stored as {stored.string}. To use it: masis audit CASES --model {role}={stored.string}{there}")
    click.echo(str(file))


def _ask(settings: Settings, *models: str) -> None:
    """Ask each model for a word: a wrong key must not look like a critic that learnt nothing. Raises JobFailed."""
    for model in filter(None, models):
        probed = probe_model(model, settings)
        if not probed.ok:
            raise JobFailed(f"{probed.message} Nothing was compiled.")


def _compiled(
    compiling: Any, plan: Any, settings: Settings, parts: labelled.Parts, stopping: Callable[[], bool]
) -> Program | str:
    """Return the program, or why it was stopped."""
    with Progress("Compiling", None) as progress:

        def watch(seen: Any) -> None:
            cost = "" if seen.cost_usd is None else f", {dollars(seen.cost_usd)}"
            progress.move(seen.calls, f"{seen.doing}: {seen.calls:,} calls, {seen.tokens:,} tokens{cost}")

        session = compiling.Session(plan, settings, stopping, watch)
        try:
            made: Program = compiling.compiled(session, parts)
        except compiling.Stopped as stopped:
            return str(stopped)
        return made


def _cases(source: str, db: Path | None) -> list[labelled.Labelled]:
    if source == "demo":
        found = labelled.from_cases(demo_cases())
    elif source == "decisions":
        found = labelled.from_decisions(open_existing(db))
    else:
        file = Path(source)
        if not file.is_file():
            raise click.BadParameter(f"{printable(source)}: is neither demo, nor decisions, nor a file.")
        found = labelled.from_cases(_read(file))
    if not found:
        raise JobFailed(f"{printable(source)} holds no answer with labels that say what is wrong with it.")
    return found


def _read(file: Path) -> list[Case]:
    errors, cases = ErrorReport(), []
    for row in read_any(file):
        errors.add_all(row.problems)
        if row.case is not None:
            cases.append(row.case)
    return cases


def _source(source: str) -> str:
    return source if source in ("demo", "decisions") else Path(source).name


def _show_parts(cases: Sequence[labelled.Labelled], parts: labelled.Parts) -> None:
    flawed = sum(not case.clean for case in cases)
    say(
        f"{counted(len(cases), 'labelled answer')}, {flawed} of them with issues: {len(parts.train)} to learn from, "
        f"{len(parts.held_out)} to measure on."
    )


def _show_result(made: Program) -> None:
    say(f"Before:  {_interval(made.before)}")
    say(f"After:   {_interval(made.after)}")
    say(f"Gained:  {_interval(made.gain, sign=True)}")
    if made.improved:
        say("It improved: the interval of the gain is above 0.")
    elif made.gain.mean > 0:
        say("It did not clearly improve: the interval of the gain holds 0. More labelled answers would show.")
    else:
        say("It did not improve.")
    cost = cost_text(made.cost_usd)
    say(
        f"{counted(made.demonstrations, 'demonstration')}; {made.calls:,} calls, {made.tokens:,} tokens, {cost}. "
        f"Metric {made.metric}, on {counted(made.after.answers, 'answer')} that nothing was learnt from."
    )


def _interval(measured: Measured, sign: bool = False) -> str:
    form = "+.3f" if sign else ".3f"
    interval = "" if measured.low is None else f" ({measured.low:{form}} to {measured.high:{form}})"
    return f"{measured.mean:{form}}{interval}"


def _list(folder: Path) -> None:
    found = programs.listed(folder)
    if not found:
        say(f"There is no program in {folder}. masis optimize --on demo --model MODEL --name NAME makes one.")
        return
    click.echo(FIELD.format("program", "role", "model", "optimizer", "before", "after", "made"))
    errors = ErrorReport()
    for each in found:
        if isinstance(each, InputError):
            errors.add(each)
            continue
        means = f"{each.before.mean:.3f}", f"{each.after.mean:.3f}"
        row = FIELD.format(each.string, each.role, each.model, each.optimizer, *means, day(each.made_at))
        click.echo(printable(row) + ("" if each.improved else "  no clear gain"))
    if errors.count:
        raise JobFailed(f"{counted(errors.count, 'file')} could not be read, named above.")


def _show(program: Program) -> None:
    for name, state in program.state.items():
        click.echo(printable(f"# {program.string}, {name}: instructions\n\n{state.instructions}\n"))
        for number, demo in enumerate(state.demos, 1):
            click.echo(f"# Demonstration {number}\n")
            for key, value in demo.items():
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                click.echo(printable(f"{key}: {text}"))
            click.echo()
    sys.stdout.flush()
