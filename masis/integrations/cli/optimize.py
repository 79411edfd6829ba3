"""``masis optimize`` compiles a critic on labeled answers with DSPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

import click

from masis.api.roles import probe_model
from masis.cli import options as shared
from masis.cli.commands import Command, JobFailed, end_interrupted
from masis.cli.output import Emit, ErrorReport, Interruption, ProgressBar, plain, say, table
from masis.datasets.mapping.reader import read_any
from masis.errors import InputError
from masis.integrations.dspy import labelled, part, programs
from masis.integrations.dspy.programs import HeldOutScore, Program, Role
from masis.schema.calls import Usage
from masis.schema.case import Case
from masis.schema.judge import JudgeContent, JudgeVersion, question_id
from masis.schema.wording import count_noun
from masis.services import Workbench, demo_cases
from masis.settings import load
from masis.settings.reference import option_help
from masis.views.numbers import cost_text, day, dollars

PROGRAMS = option_help("programs_folder")


@click.command(cls=Command)
@click.option(
    "--name",
    metavar="NAME",
    help="The name of the program, used as dspy:NAME in --model and settings.",
)
@click.option(
    "--on",
    "source",
    default="demo",
    metavar="demo|decisions|FILE",
    show_default=True,
    help="The training data: demo (the demo cases with their gold labels), decisions (reviewers'"
    " decisions in --db), or a file of cases with labels.",
)
@click.option(
    "--role",
    type=click.Choice(get_args(Role)),
    default="critic",
    show_default=True,
    help="The role to compile.",
)
@click.option(
    "--optimizer",
    type=click.Choice(["bootstrap", "mipro", "gepa"]),
    default="bootstrap",
    show_default=True,
    help="bootstrap: adds the model's own best replies as examples. mipro: searches instructions"
    " and examples together. gepa: rewrites instructions based on mistakes.",
)
@click.option("--model", metavar="MODEL", help="The model to compile for, as PROVIDER:MODEL.")
@click.option(
    "--teacher",
    default="",
    metavar="MODEL",
    help="A model that provides example replies (bootstrap) or writes instructions. Default: the"
    " same model.",
)
@click.option(
    "--demos",
    type=click.IntRange(0, 16),
    metavar="N",
    default=4,
    show_default=True,
    help="The maximum number of demonstrations.",
)
@click.option(
    "--accept",
    type=click.FloatRange(0, 1),
    default=0.75,
    show_default=True,
    help="The lowest metric of a reply that may be used as an example.",
)
@click.option(
    "--trials",
    type=click.IntRange(1, 100),
    metavar="N",
    default=6,
    show_default=True,
    help="mipro: the number of programs to try. gepa: the number of passes over all answers.",
)
@click.option(
    "--held-out",
    type=click.FloatRange(0.1, 0.9),
    default=0.5,
    show_default=True,
    help="The share of the questions held out to measure on.",
)
@click.option(
    "--seed", metavar="N", default=0, show_default=True, help="The random seed of the split."
)
@click.option(
    "--max-cost",
    type=shared.COST,
    metavar="USD",
    help="Stop without saving when this much is spent.",
)
@click.option(
    "--control",
    is_flag=True,
    help="Measure the gain by chance: compile with labels shuffled between answers, and save"
    " nothing.",
)
@click.option("--programs", "at", type=shared.PATH, metavar="PATH", help=PROGRAMS)
@shared.database_option
@click.option(
    "--list", "listing", is_flag=True, help="List the stored programs without compiling one."
)
@click.option(
    "--show",
    metavar="NAME",
    help="Print the instructions and demonstrations of a program: NAME or NAME@2.",
)
@shared.json_option
def optimize(
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
    emit: Emit,
) -> None:
    """Compile a critic on labeled answers with DSPy, and store the program as the next version of
    NAME.

    The program contains instructions and demonstrations for one model. It is measured on held-out
    questions: finding a labeled issue raises the metric, and raising an issue that isn't labeled
    lowers it. The path of the file is written to stdout. A critic from decisions also becomes a
    draft of a judge version ('masis judge').

      masis optimize --list
      masis optimize --on demo --model openai:gpt-4o-mini --name careful
      masis optimize --on decisions --model openai --optimizer gepa --max-cost 5 --name ours
      masis audit cases.jsonl --model openai --model critic=dspy:careful

    Needs DSPy in a separate environment: pip install '.[dspy]'.

    Exit code 0: compiled and stored, whether or not the metric improved. 1: it failed. 2: wrong
    usage. 130: stopped, nothing stored.
    """
    settings = load().settings
    folder = programs.folder(at or settings.programs_folder)
    if listing:
        _list_programs(folder, emit)
        return
    if show:
        program = programs.find_program(folder, show.removeprefix(f"{programs.PREFIX}:"))
        emit(program, _contents(program))
        return
    if not name or not model:
        raise click.UsageError(
            "Name the program and the model: --name careful --model openai:gpt-4o-mini."
        )
    # raises an error for an invalid name, before a model is called
    programs.checked_name(name)
    # raises MissingExtra without DSPy, which needs an environment of its own
    compiling = part("compiling")
    learnt_from = source if source in ("demo", "decisions") else Path(source).name
    plan = programs.Plan(
        name=name,
        role=role,
        optimizer=optimizer,
        model=model,
        teacher=teacher,
        most_demonstrations=demos,
        accept=accept,
        trials=trials,
        seed=seed,
        max_cost=max_cost,
        source=learnt_from,
        shuffled=control,
    )
    # With a wrong key every reply would fail, which would look like a critic that learned nothing.
    for model_name in filter(None, (model, teacher)):
        if not (probed := probe_model(model_name, settings)).ok:
            raise JobFailed(f"{probed.message} Nothing was compiled.")
    cases = _training_cases(source, db)
    parts = labelled.split_by_question(cases, held_out, seed)
    say(
        f"{count_noun(len(cases), 'labeled answer')}, {sum(not case.clean for case in cases)} of"
        f" them with issues: {len(parts.train)} for training, {len(parts.held_out)} held out."
    )
    notice = "Stopping after the calls in progress. Nothing will be stored."
    with Interruption(notice) as stop, ProgressBar("Compiling") as progress:

        def watch(doing: str, spent: Usage) -> None:
            cost = "" if spent.cost_usd is None else f", {dollars(spent.cost_usd)}"
            tokens = spent.prompt_tokens + spent.completion_tokens
            progress.move(spent.calls, f"{doing}: {spent.calls:,} calls, {tokens:,} tokens{cost}")

        try:
            compiled: Program = compiling.compile_program(
                compiling.Session(plan, settings, stop.is_stopped, watch), parts
            )
        except compiling.OptimizationStopped as stopped:
            message = f"Stopped: {stopped}. Nothing was stored."
            if stop.asked:
                end_interrupted(message)
            say(message)
            raise JobFailed(
                "The --max-cost limit was reached before the program was compiled."
            ) from stopped
    for line in _program_lines(compiled):
        say(line)
    if control:
        say("This was a control with shuffled labels, so nothing is stored.")
        return
    stored, file = programs.save_program(folder, compiled)
    folder_option = (
        ""
        if folder == programs.folder(settings.programs_folder)
        else f" --set programs_folder={folder}"
    )
    say(
        f"Stored as {stored.string}. To use it: masis audit CASES --model"
        f" {role}={stored.string}{folder_option}"
    )
    if source == "decisions" and role == "critic":
        measured = [case.id for case in parts.held_out]
        version = _draft_judge(shared.open_existing(db), folder, stored, measured)
        say(f"Judge version {version.name!r} is a draft with it: masis judge show {version.id}")
    emit({"program": stored.string, "file": file}, [str(file)])


def _draft_judge(
    workbench: Workbench, folder: Path, program: Program, measured: Sequence[str]
) -> JudgeVersion:
    """Write a draft of a judge version with a compiled critic, so that it can be compared with
    others on the held-out questions, and adopted.
    """
    person = shared.operator()
    # The draft's critic must be found, also in another folder than that of the settings.
    there = {"programs_folder": str(folder)}
    workbench.use_settings(person, workbench.settings.model_copy(update=there))
    records = workbench.store.systems.question_records(measured)
    held_out = tuple(dict.fromkeys(question_id(records.get(case, case)) for case in measured))
    return workbench.judge.draft(
        person,
        # With the time, because another folder may have a program of the same name and version.
        f"{program.name} {program.version} {program.made_at[:16].replace(':', '')}",
        JudgeContent(critic=program.string, held_out=held_out),
        note=f"Compiled with DSPy ({program.optimizer}) for {program.model}",
    )


def _training_cases(source: str, db: Path | None) -> list[labelled.LabelledAnswer]:
    if source == "demo":
        answers = labelled.from_cases(demo_cases())
    elif source == "decisions":
        answers = labelled.from_decisions(shared.open_existing(db))
    else:
        file = Path(source)
        if not file.is_file():
            raise click.BadParameter(f"{source}: write demo, decisions, or the name of a file.")
        errors, cases = ErrorReport(), list[Case]()
        for row in read_any(file):
            errors.add_all(row.problems)
            cases += [row.case] if row.case is not None else []
        answers = labelled.from_cases(cases)
    if not answers:
        raise JobFailed(f"{source} has no answers with labels of their issues.")
    return answers


def _program_lines(program: Program) -> Iterator[str]:
    yield f"Before:  {_interval(program.before)}"
    yield f"After:   {_interval(program.after)}"
    yield f"Gain:    {_interval(program.gain, sign=True)}"
    if program.improved:
        yield "The metric improved: the interval of the gain is above 0."
    elif program.gain.mean > 0:
        yield (
            "The metric didn't clearly improve, because the interval of the gain includes 0. More"
            " labeled answers would narrow it."
        )
    else:
        yield "The metric didn't improve."
    spent = f"{program.calls:,} calls, {program.tokens:,} tokens, {cost_text(program.cost_usd)}"
    measured = (
        f"Metric {program.metric}, on {count_noun(program.after.answers, 'held-out answer')}."
    )
    yield f"{count_noun(program.demonstrations, 'demonstration')}; {spent}. {measured}"


def _interval(measured: HeldOutScore, sign: bool = False) -> str:
    form = "+.3f" if sign else ".3f"
    interval = "" if measured.low is None else f" ({measured.low:{form}} to {measured.high:{form}})"
    return f"{measured.mean:{form}}{interval}"


def _list_programs(folder: Path, emit: Emit) -> None:
    listed = programs.list_programs(folder)
    if not listed:
        say(
            f"There are no programs in {folder}. Create one with: masis optimize --on demo"
            " --model MODEL --name NAME"
        )
        return
    errors, readable = (
        ErrorReport(),
        [program for program in listed if not isinstance(program, InputError)],
    )
    errors.add_all(program for program in listed if isinstance(program, InputError))
    rows = []
    for program in readable:
        means, gain = (
            (f"{program.before.mean:.3f}", f"{program.after.mean:.3f}"),
            ("" if program.improved else "no clear gain"),
        )
        rows.append(
            (
                program.string,
                program.role,
                program.model,
                program.optimizer,
                *means,
                day(program.made_at),
                gain,
            )
        )
    emit(
        readable,
        table(("program", "role", "model", "optimizer", "before", "after", "made", ""), rows),
    )
    if errors.count:
        raise JobFailed(
            f"{count_noun(errors.count, 'file')} couldn't be read; the errors are listed above."
        )


def _contents(program: Program) -> Iterator[str]:
    for name, state in program.state.items():
        yield f"# {program.string}, {name}: instructions\n\n{state.instructions}\n"
        for number, demo in enumerate(state.demos, 1):
            yield f"# Demonstration {number}\n"
            for key, value in demo.items():
                yield f"{key}: {value if isinstance(value, str) else plain(value)}"
            yield ""
