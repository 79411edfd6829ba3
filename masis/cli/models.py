"""``masis models`` and ``bench``: get and measure the models that judge."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import click

from masis.api.exam_results import ExamResults
from masis.api.roles import check_models, exam_standing, examined_models
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
from masis.cli.output import Emit, ErrorReport, Interruption, ProgressBar, plain, say
from masis.datasets.readers.lines import utf8_error
from masis.errors import InputError, MissingExtra, SettingsError
from masis.llm.model_files import ModelFiles, Step, model_files
from masis.schema.exam import JUDGING_ROLES, ExamResult, ExamStanding, joined_name
from masis.schema.run import LocalModel
from masis.schema.wording import count_noun
from masis.settings import Settings
from masis.views.exam import exam_costs, exam_line, exam_lines


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
    if (files := model_files()) is None:
        raise JobFailed("No verifier models can be downloaded here.")
    text = name.removeprefix(f"{files.PREFIX}:")
    _download_model(files, text)
    record, tells, lines = files.describe(text)
    emit({**plain(record), "tells": tells}, lines)
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
    settings, number = shared.chosen_settings(), 0
    for record, tells in _usable_models():
        number += 1
        licence = record.licence or "license not stated"
        passed = exam_line(exam_standing(exam_settings(settings, record.name)))
        line = (
            f"{record.name}  {tells}  {licence}  {record.bytes / 1e6:,.0f} MB  {record.file}"
            f"  {passed}"
        )
        emit({**plain(record), "tells": tells, "exam": passed}, [line])
    for examined, standing in examined_models(settings):
        emit(
            {"model": examined, "exam": exam_line(standing)}, [f"{examined}  {exam_line(standing)}"]
        )
    say(
        f"{count_noun(number, 'verifier model')} in the Hub's cache. docs/models.md suggests"
        " models to start with."
    )


def _usable_models() -> Iterator[tuple[LocalModel, str]]:
    """Yield each usable model with its verdicts, and say why the others can't be used."""
    if (files := model_files()) is None:
        return
    for name in files.list_downloaded():
        try:
            record, tells, _ = files.describe(name)
        except (SettingsError, MissingExtra) as error:
            say(f"{files.PREFIX}:{name}: {error}")
        else:
            yield record, tells


def download_missing(settings: Settings) -> None:
    """Download the verifier model named in the settings, with progress, unless it is available."""
    files = model_files()
    if files is not None and (name := files.local_name(settings.verifier)):
        _download_model(files, name)


def _download_model(files: ModelFiles, text: str) -> None:
    if files.is_here(text):
        return
    model = f"{files.PREFIX}:{text}"
    say(f"Downloading {model} to the cache of the Hugging Face Hub. This is done once.")
    with ProgressBar("Downloading") as progress:

        def show(step: Step) -> None:
            progress.total = step.total
            progress.move(
                step.done, f"{step.done / 1e6:,.0f} of {step.total / 1e6:,.0f} MB ({step.file})"
            )

        files.download(text, show)


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
