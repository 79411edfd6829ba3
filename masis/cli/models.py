"""``masis models``, ``bench`` and ``optimize``: models that judge, had, measured and compiled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

import click

from masis.api.exam_results import ExamResults
from masis.api.roles import check_models, exam_standing, examined_models, probe_model
from masis.bench import render, run_bench
from masis.bench.exam import estimate_exam, exam_settings, take_exam
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
from masis.schema.wording import count_noun
from masis.services import demo_cases
from masis.settings import Settings, load
from masis.settings.reference import option_help
from masis.views.exam import exam_costs, exam_line, exam_lines
from masis.views.numbers import cost_text, day, dollars


@click.group(cls=CommandGroup)
def models() -> None:
    """Models that judge: let one take the exam, download a verifier model, list those that are
    here.

      masis models exam openai:gpt-4o-mini
      masis models get local:ORG/NAME
      masis models list

    docs/models.md says which models are understood and how to measure them.
    """


@models.command(
    short_help="Let a model take the exam: 32 answers, half of them with a known fault."
)
@click.argument("name", metavar="[MODEL]", required=False)
@shared.judges_options
@click.option(
    "--yes", is_flag=True, help="Start without asking for confirmation, whatever it costs."
)
@click.option("--show", is_flag=True, help="Show the current result instead of taking the exam.")
@shared.json_option
def exam(name: str | None, judges: Judges, yes: bool, show: bool, emit: Emit) -> None:
    """Let MODEL judge 32 short answers whose faults are known: may answers pass without a person on
    its word?

    MODEL judges alone: as verifier, critic and evaluator. A verifier model (local:...) judges
    beside the offline critic and evaluator. Without MODEL those take the exam that the settings and
    --model name for these roles.

    They pass if they accept no faulty answer, call no faulty passage supported, flag at most 2 of
    16 sound answers, and leave at most 1 reply in 10 unreadable. The result holds for these models
    together, at these addresses, with these prompts. It is stored and shown wherever they are
    named.

      masis models exam offline
      masis models exam openai:gpt-4o-mini
      masis models exam openai:gpt-4o-mini --show
      masis models exam --model verifier=local:ORG/NAME --model critic=openai:gpt-4o

    Exit code 0: passed. 1: not passed, not finished, or not taken (with --show). 2: wrong use. 130:
    stopped, nothing stored.
    """
    settings = exam_settings(judges.load().settings, name or "")
    results = ExamResults(settings.exam_results)
    if show:
        standing = exam_standing(settings)
        if standing.result is None:
            raise JobFailed(f"{_judging(settings)} {exam_line(standing)}.")
        _show_exam_result(standing.result, emit)
        return
    expected = estimate_exam(settings)
    if expected.calls:
        say(f"{exam_costs(*expected)} If you stop it with Ctrl-C, nothing is stored.")
        shared.confirm("Start the exam?", "Nothing was asked.", yes=yes)
    notice = "Stopping after the answers under way. Nothing will be stored."
    with Interruption(notice) as stop, ProgressBar("Exam") as progress:

        def show_progress(done: int, total: int) -> None:
            progress.total = total
            progress.move(done, f"{done} of {total} answers")

        result = take_exam(settings, on_progress=show_progress, stopped=stop.is_stopped)
    if result is None:
        end_interrupted("Stopped. Nothing was stored.")
    results.add(result)
    _show_exam_result(result, emit)


def _show_exam_result(result: ExamResult, emit: Emit) -> None:
    emit(result, exam_lines(result))
    if not result.passed:
        raise JobFailed(f"{result.name} {exam_line(ExamStanding(result))}.")


def _judging(settings: Settings) -> str:
    return joined_name({role: getattr(settings, role) for role in JUDGING_ROLES})


@models.command(short_help="Download a verifier model and describe it.")
@click.argument("name", metavar="local:NAME")
@shared.json_option
def get(name: str, emit: Emit) -> None:
    """Download a model of the Hugging Face hub, unless it is here, and show what it is; a folder is
    shown alike.

      masis models get local:ORG/NAME
      masis models get local:ORG/NAME/onnx/model_quantized.onnx     one file of several
      masis models get local:ORG/NAME@REVISION
      masis models get local:./models/my-nli

    Only configuration, tokenizer, card and one form of the weights are fetched, into the hub's own
    cache (HF_HOME). Interrupted, the same command goes on.

    Exit code 0: it is here and understood. 2: it can't be had or understood; the message says why
    and what to do.
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


@models.command("list", short_help="List the verifier models that were downloaded.")
@shared.json_option
def list_models(emit: Emit) -> None:
    """List the models in the hub's cache that can verify here, each with its licence, size and
    place.

    Then all that have taken the exam, with how it ended for their present prompts and addresses.

      masis models list
    """
    from masis.integrations.local import model_files, scoring

    settings = shared.chosen_settings()
    number = 0
    for downloaded in model_files.downloaded_models():
        try:
            labels = scoring.check(downloaded.name.removeprefix(f"{PREFIX}:"))
        except (SettingsError, MissingExtra) as error:
            say(f"{downloaded.name}: {error}")
            continue
        number += 1
        record = model_files.model_record(downloaded)
        licence = record.licence or "licence not stated"
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
        f"{count_noun(number, 'verifier model')} in the hub's cache. docs/models.md suggests"
        " some to start with."
    )


def download_missing(settings: Settings) -> None:
    """Download the verifier model that the settings name, where it is not here yet, showing how far
    it has come.
    """
    if name := local_name(settings.verifier):
        _download_model(name)


def _download_model(text: str) -> None:
    from masis.integrations.local import model_files

    if model_files.is_here(text):
        return
    say(f"{PREFIX}:{text} is downloaded once, into the cache of the Hugging Face hub.")
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
    help="The half of each file to use. report: the half that nothing was fitted on; fit: the"
    " other; all: both.",
)
@click.option(
    "--bootstrap",
    type=click.IntRange(0, 100_000),
    metavar="N",
    default=1000,
    show_default=True,
    help="Resamples.",
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
    help="Compare verifiers on the labelled claims instead: offline, local:..., a language "
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
    """Measure the auditor on labelled data: precision, recall, F1, AUROC and coverage, each with an
    interval.

    Each FILE is recognised by its keys: HAGRID, WiCE, SummEdits, ExpertQA, or cases with labelled
    claims; the files of a folder are measured together. Beside the auditor stand three baselines:
    one always says "not supported", the others count shared words, in all evidence and in the
    nearest three sentences. Our own cases are also audited from end to end: which planted issues
    are found, how often a revision improves an answer, how often the loop converges, how long it
    takes. A FILE of runs is measured likewise, without the issues.

      masis bench data/cases
      masis audit data/cases --model openai --out runs.jsonl
      masis bench data/cases --half all --runs runs.jsonl
      masis bench hagrid_claims.jsonl wice_claims.jsonl --json > metrics.jsonl
      masis bench mine.jsonl --half all --verifier offline --verifier openai:gpt-4o-mini

    Exit code 0: every file was measured. 1: some were not. 2: wrong use.
    """
    if verifiers and runs:
        raise click.UsageError(
            "--runs: stored audits already have a verifier. Leave --verifier out."
        )
    settings = shared.chosen_settings()
    # download missing models first, so that a failed download can't stop the job midway
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
    help="The training data: the gold labels of the demo cases, reviewers' decisions (see --db),"
    " or a file of cases with labels.",
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
    help="The lowest metric of a reply that may serve as an example.",
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
    help="Stop without saving once this much is spent.",
)
@click.option(
    "--control",
    is_flag=True,
    help="Measure the gain by chance: shuffle the labels between answers, and save nothing.",
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
    """Compile the critic on labelled answers with DSPy, and store the program as the next version
    of NAME.

    The program holds instructions and demonstrations for one model. It is measured on questions
    that nothing was learnt from: finding what was labelled counts, raising what was not costs. The
    file's place goes to stdout.

      masis optimize --list
      masis optimize --on demo --model openai:gpt-4o-mini --name careful
      masis optimize --on decisions --model openai --optimizer gepa --max-cost 5 --name ours
      masis audit cases.jsonl --model openai --model critic=dspy:careful

    Needs DSPy, in an environment of its own: pip install '.[dspy]'.

    Exit code 0: compiled and stored, whether or not it gained anything. 1: it failed. 2: wrong use.
    130: stopped, nothing stored.
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
    programs.checked_name(name)
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
    # a wrong key must not look like a critic that learnt nothing
    for model_name in filter(None, (model, teacher)):
        if not (probed := probe_model(model_name, settings)).ok:
            raise JobFailed(f"{probed.message} Nothing was compiled.")
    cases = _training_cases(source, db)
    parts = labelled.split_by_question(cases, held_out, seed)
    say(
        f"{count_noun(len(cases), 'labelled answer')}, {sum(not case.clean for case in cases)} of "
        f"them"
        f" with issues: {len(parts.train)} to learn from, {len(parts.held_out)} to measure on."
    )
    notice = "Stopping after the calls under way; nothing will be stored."
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
    emit({"program": stored.string, "file": file}, [str(file)])


def _training_cases(source: str, db: Path | None) -> list[labelled.LabelledAnswer]:
    if source == "demo":
        answers = labelled.from_cases(demo_cases())
    elif source == "decisions":
        answers = labelled.from_decisions(shared.open_existing(db))
    else:
        file = Path(source)
        if not file.is_file():
            raise click.BadParameter(f"{source} is neither demo, nor decisions, nor a file.")
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
    yield f"Gained:  {_interval(program.gain, sign=True)}"
    if program.improved:
        yield "It improved: the interval of the gain is above 0."
    elif program.gain.mean > 0:
        yield (
            "It did not clearly improve, because the interval of the gain includes 0. More"
            " labelled answers would narrow it."
        )
    else:
        yield "It did not improve."
    spent = f"{program.calls:,} calls, {program.tokens:,} tokens, {cost_text(program.cost_usd)}"
    measured = (
        f"Metric {program.metric}, on {count_noun(program.after.answers, 'answer')} that nothing "
        f"was learnt"
        " from."
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
