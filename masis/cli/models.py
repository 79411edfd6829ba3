"""``masis models``, ``bench`` and ``optimize``: get, measure and compile the models that judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import click

from masis.api.exam_results import ExamResults
from masis.api.roles import check_models, exam_standing, examined_models, probe_model
from masis.bench import render, run_bench
from masis.bench.exam import (
    estimate_exam,
    exam_cases,
    exam_settings,
    no_guidance,
    take_exam,
)
from masis.bench.verifiers import compare_verifiers, render_comparison
from masis.cli import options as shared
from masis.cli.commands import Command, CommandGroup, JobFailed, end_interrupted
from masis.cli.options import Judges, Names
from masis.cli.output import Emit, ErrorReport, Interruption, ProgressBar, plain, say, table
from masis.datasets.mapping.reader import read_any
from masis.datasets.readers.lines import utf8_error
from masis.errors import InputError, MissingExtra, SettingsError
from masis.integrations.dspy import labelled, part, programs
from masis.integrations.dspy.programs import HeldOutScore, Program, Role
from masis.integrations.local import PREFIX, local_name
from masis.schema.calls import Usage
from masis.schema.case import Case
from masis.schema.exam import JUDGING_ROLES, ExamResult, ExamStanding, joined_name
from masis.schema.judge import JudgeContent, JudgeVersion, question_id
from masis.schema.wording import count_noun
from masis.services import Workbench, demo_cases
from masis.settings import Settings, load
from masis.settings.reference import option_help
from masis.views.exam import exam_costs, exam_line, exam_lines
from masis.views.numbers import cost_text, day, dollars


@click.group(cls=CommandGroup)
def models() -> None:
    """Test models with the exam, and download and list verifier models.

      masis models exam openai:gpt-4o-mini
      masis models get local:ORG/NAME
      masis models list

    docs/models.md lists the supported models and explains how to measure them.
    """


@models.command(short_help="Test a model on the exam: 32 answers, half of them with a known fault.")
@click.argument("name", metavar="[MODEL]", required=False)
@shared.judges_options
@click.option(
    "--yes", is_flag=True, help="Start without asking for confirmation, regardless of the cost."
)
@click.option("--show", is_flag=True, help="Show the current result instead of taking the exam.")
@click.option(
    "--judge",
    "version",
    metavar="NAME",
    help="The judge version of the database that the models take the exam with. Default: none.",
)
@shared.database_option
@shared.json_option
def exam(
    name: str | None,
    judges: Judges,
    yes: bool,
    show: bool,
    version: str | None,
    db: Path | None,
    emit: Emit,
) -> None:
    """Test on 32 short answers with known faults whether MODEL is reliable enough for answers to be
    accepted without a person's review.

    MODEL fills the roles verifier, critic and evaluator. A verifier model (local:...) is combined
    with the offline critic and evaluator. Without MODEL, the models from the settings and --model
    take the exam.

    To pass, they must not accept a faulty answer or call a faulty passage supported. They may flag
    at most 2 of 16 correct answers, and at most 1 reply in 10 may be unreadable. The result is
    valid for this combination of models, addresses and prompts. It is stored, and shown next to the
    models' names.

      masis models exam offline
      masis models exam openai:gpt-4o-mini
      masis models exam openai:gpt-4o-mini --show
      masis models exam --model verifier=local:ORG/NAME --model critic=openai:gpt-4o
      masis models exam openai:gpt-4o-mini --judge "prices 1"

    Exit code 0: passed. 1: not passed, not finished, or not taken (with --show). 2: wrong usage.
    130: stopped, nothing stored.
    """
    settings = exam_settings(judges.load().settings, name or "")
    results = ExamResults(settings.exam_results)
    guidance = no_guidance
    if version is not None:
        workbench = shared.open_existing(db)
        settings = workbench.audits.pin(settings.model_copy(update={"judge": version}))
        guidance = partial(workbench.audits.brief, shared.operator(), settings=settings)
    sample = guidance(exam_cases()[0].case)
    if show:
        standing = exam_standing(settings, sample)
        if standing.result is None:
            examinee = joined_name({role: getattr(settings, role) for role in JUDGING_ROLES})
            raise JobFailed(f"{examinee} {exam_line(standing)}.")
        _show_exam_result(standing.result, emit)
        return
    expected = estimate_exam(settings, sample)
    if expected.calls:
        say(f"{exam_costs(*expected)} If you stop it with Ctrl-C, nothing is stored.")
        shared.confirm("Start the exam?", "The exam wasn't started.", yes=yes)
    notice = "Stopping after the answers in progress. Nothing will be stored."
    with Interruption(notice) as stop, ProgressBar("Exam") as progress:

        def show_progress(done: int, total: int) -> None:
            progress.total = total
            progress.move(done, f"{done} of {total} answers")

        result = take_exam(
            settings, on_progress=show_progress, stopped=stop.is_stopped, judge=guidance
        )
    if result is None:
        end_interrupted("Stopped. Nothing was stored.")
    results.add(result)
    _show_exam_result(result, emit)


def _show_exam_result(result: ExamResult, emit: Emit) -> None:
    emit(result, exam_lines(result))
    if not result.passed:
        raise JobFailed(f"{result.name} {exam_line(ExamStanding(result))}.")


@models.command(short_help="Download a verifier model and describe it.")
@click.argument("name", metavar="local:NAME")
@shared.json_option
def get(name: str, emit: Emit) -> None:
    """Download a verifier model from the Hugging Face Hub and describe it. A local folder is only
    described.

      masis models get local:ORG/NAME
      masis models get local:ORG/NAME/onnx/model_quantized.onnx     one file of several
      masis models get local:ORG/NAME@REVISION
      masis models get local:./models/my-nli

    Only the configuration, the tokenizer, the model card and one format of the weights are
    downloaded, to the Hub's cache (HF_HOME). If the download is interrupted, run the same command
    again to continue.

    Exit code 0: the model is available and supported. 2: it isn't; the message says why and what to
    do.
    """
    text = name.removeprefix(f"{PREFIX}:")
    _download_model(text)
    from masis.integrations.local import model_files, scoring

    labels = scoring.check(text)
    record = model_files.model_record(model_files.find(text))
    emit({**plain(record), "tells": labels.words}, model_files.describe_model(record, labels.words))
    used = f"verifier={record.name}"
    say(
        f"Use it: masis audit cases.jsonl --model {used}   or in masis.toml: verifier ="
        f' "{record.name}"'
    )


@models.command("list", short_help="List the downloaded verifier models and exam results.")
@shared.json_option
def list_models(emit: Emit) -> None:
    """List the verifier models in the Hub's cache with their license, size and location.

    The list then shows every model that has taken the exam, with its result for the current prompts
    and addresses.

      masis models list
    """
    from masis.integrations.local import model_files, scoring

    settings = shared.chosen_settings()
    number = 0
    for downloaded in model_files.downloaded_models():
        try:
            labels = scoring.check(downloaded.name.removeprefix(f"{PREFIX}:"))
        # One model that can't be used must not hide the others.
        except (SettingsError, MissingExtra) as error:
            say(f"{downloaded.name}: {error}")
            continue
        number += 1
        record = model_files.model_record(downloaded)
        licence = record.licence or "license not stated"
        passed = exam_line(exam_standing(exam_settings(settings, record.name)))
        line = (
            f"{record.name}  {labels.words}  {licence}  {record.bytes / 1e6:,.0f} MB  {record.file}"
            f"  {passed}"
        )
        emit({**plain(record), "tells": labels.words, "exam": passed}, [line])
    for examined, standing in examined_models(settings):
        emit(
            {"model": examined, "exam": exam_line(standing)}, [f"{examined}  {exam_line(standing)}"]
        )
    say(
        f"{count_noun(number, 'verifier model')} in the Hub's cache. docs/models.md suggests"
        " models to start with."
    )


def download_missing(settings: Settings) -> None:
    """Download the verifier model named in the settings, with progress, unless it is available."""
    if name := local_name(settings.verifier):
        _download_model(name)


def _download_model(text: str) -> None:
    from masis.integrations.local import model_files

    if model_files.is_here(text):
        return
    say(f"Downloading {PREFIX}:{text} to the cache of the Hugging Face Hub. This is done once.")
    with ProgressBar("Downloading") as progress:

        def show(step: model_files.Step) -> None:
            progress.total = step.total
            progress.move(
                step.done, f"{step.done / 1e6:,.0f} of {step.total / 1e6:,.0f} MB ({step.file})"
            )

        model_files.download(text, show)


Half = Literal["report", "fit", "all"]


@click.command(cls=Command)
@click.argument("files", type=shared.existing, nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--half",
    type=click.Choice(get_args(Half)),
    default="report",
    show_default=True,
    help="The half of each file to use. report: the half not used for fitting; fit: the other"
    " half; all: both.",
)
@click.option(
    "--bootstrap",
    type=click.IntRange(0, 100_000),
    metavar="N",
    default=1000,
    show_default=True,
    help="The number of bootstrap resamples for the intervals.",
)
@click.option(
    "--runs",
    type=shared.existing_file,
    metavar="PATH",
    help="Audits of these cases, written by masis audit --out. By default the cases are audited"
    " here, without a model.",
)
@click.option(
    "--verifier",
    "verifiers",
    multiple=True,
    metavar="MODEL",
    help="Compare verifiers on the labeled claims instead: offline, local:..., a language "
    "model, or"
    " offline,MODEL. Can be repeated; each is measured on the same claims.",
)
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="With --verifier: at most N claims."
)
@shared.json_option
def bench(
    files: tuple[Path, ...],
    half: Half,
    bootstrap: int,
    runs: Path | None,
    verifiers: Names,
    limit: int | None,
    emit: Emit,
) -> None:
    """Measure the auditor on labeled data: precision, recall, F1, AUROC and coverage, each with an
    interval.

    The format of each FILE is detected by its keys: HAGRID, WiCE, SummEdits, ExpertQA, or cases
    with labeled claims. The files in a folder are measured together. The auditor is compared with
    three baselines: one always says "not supported", and two count shared words, in all evidence
    and in the three most similar sentences. Cases in our own format are also audited from end to
    end: which planted issues are found, how often a revision improves an answer, how often the loop
    converges, and how long it takes. With --runs the same is measured on stored runs, without the
    planted issues.

      masis bench data/cases
      masis audit data/cases --model openai --out runs.jsonl
      masis bench data/cases --half all --runs runs.jsonl
      masis bench hagrid_claims.jsonl wice_claims.jsonl --json > metrics.jsonl
      masis bench mine.jsonl --half all --verifier offline --verifier openai:gpt-4o-mini

    Exit code 0: every file was measured. 1: some files weren't. 2: wrong usage.
    """
    if verifiers and runs:
        raise click.UsageError(
            "--runs: stored audits already have a verifier. Leave --verifier out."
        )
    settings = shared.chosen_settings()
    # Missing models are downloaded first, so that a failed download can't stop the job midway.
    for verifier in verifiers:
        alone = settings.model_copy(update={"verifier": verifier})
        download_missing(alone)
        check_models(alone)
    errors = ErrorReport()
    for file in files:
        say(f"{file} ...")
        try:
            if verifiers:
                with ProgressBar("Judging") as progress:
                    # The default binds the bar of this file, because the loop changes the variable.
                    def show(done: int, total: int, progress: ProgressBar = progress) -> None:
                        progress.total = total
                        progress.move(done, f"{done:,} of {total:,} claims")

                    compared = compare_verifiers(
                        file,
                        verifiers,
                        settings,
                        half=half,
                        limit=limit,
                        bootstrap=bootstrap,
                        on_progress=show,
                    )
                record, text = compared.to_dict(), render_comparison(compared)
            else:
                report = run_bench(file, half=half, bootstrap=bootstrap, runs=runs)
                record, text = report.to_dict(), render(report)
            emit({"file": file, **record}, [text])
        except UnicodeDecodeError as error:
            errors.add(utf8_error(error).at(file=str(file)))
        except InputError as error:
            errors.add(error.at(file=error.file or str(file)))
    if errors.count:
        raise JobFailed(
            f"{count_noun(errors.count, 'file')} couldn't be measured; the errors are listed above."
        )


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
