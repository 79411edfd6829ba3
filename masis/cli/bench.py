"""``masis bench``: the offline auditor measured on labelled data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import click

from masis.api.roles import check_models
from masis.bench import render, run_bench
from masis.bench.verifiers import compare_verifiers, render_comparison
from masis.cli.group import JobFailed
from masis.cli.local_models import download_missing
from masis.cli.options import chosen_settings, sources_argument
from masis.cli.output import ErrorReport, Progress, say
from masis.errors import InputError
from masis.schema.wording import counted
from masis.settings import Settings


@click.command()
@sources_argument("files", required=True, metavar="FILE...")
@click.option(
    "--half",
    type=click.Choice(["report", "fit", "all"]),
    default="report",
    show_default=True,
    help="Which half of each file: the one nothing was fitted on, the other, or both.",
)
@click.option("--bootstrap", type=click.IntRange(0, 100_000), default=1000, show_default=True, help="Resamples.")
@click.option(
    "--runs",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Audits of these cases, as masis audit --out wrote them; without it they are audited here, without a model.",
)
@click.option(
    "--verifier",
    "verifiers",
    metavar="MODEL",
    multiple=True,
    help="Compare verifiers on the labelled claims instead: offline, local:..., a language model, or offline,MODEL. "
    "May be repeated; each is measured on the same claims.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="With --verifier: at most N claims.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a file instead of tables.")
def bench(
    files: tuple[Path, ...],
    half: Literal["report", "fit", "all"],
    bootstrap: int,
    runs: Path | None,
    verifiers: tuple[str, ...],
    limit: int | None,
    as_json: bool,
) -> None:
    """Measure the auditor on labelled data: precision, recall, F1, AUROC and coverage, each with an interval.

    Each FILE is recognised by its keys: HAGRID, WiCE, SummEdits, ExpertQA, or cases with labelled claims; the files of
    a folder are measured together. Beside the auditor stand three baselines: one always says "not supported", the
    others count shared words, in all evidence and in the nearest three sentences. Our own cases are also audited from
    end to end: which planted issues are found, how often a revision improves an answer, how often the loop converges,
    how long it takes. A FILE of runs is measured likewise, without the issues.

    \b
      masis bench data/cases
      masis audit data/cases --model openai --out runs.jsonl && masis bench data/cases --half all --runs runs.jsonl
      masis bench hagrid_claims.jsonl wice_claims.jsonl --json > metrics.jsonl
      masis bench mine.jsonl --half all --verifier offline --verifier local:ORG/NAME --verifier openai:gpt-4o-mini

    Exit code 0: every file was measured. 1: some were not. 2: wrong use.
    """  # noqa: D301 (click reads the backspace)
    if verifiers and runs:
        raise click.UsageError("--runs: audits that were made before have their verifier. Leave --verifier out.")
    settings = _prepared(verifiers) if verifiers else None
    errors = ErrorReport()
    for file in files:
        say(f"{file} ...")
        try:
            if settings is not None:
                _compare(file, verifiers, settings, half, bootstrap, limit, as_json=as_json)
                continue
            report = run_bench(file, half=half, bootstrap=bootstrap, runs=runs)
        except UnicodeDecodeError as error:
            errors.add(InputError(f"is not UTF-8 ({error.reason})", cure="Save it as UTF-8.", file=str(file)))
        except InputError as error:
            errors.add(error.at(file=error.file or str(file)))
        else:
            click.echo(json.dumps({"file": str(file), **report.to_dict()}) if as_json else render(report))
    if errors.count:
        raise JobFailed(f"{counted(errors.count, 'file')} could not be measured, named above.")


def _prepared(verifiers: tuple[str, ...]) -> Settings:
    """The settings to compare with; models that are not here yet are downloaded, so that none fails midway."""
    settings = chosen_settings((), ())
    for verifier in verifiers:
        alone = settings.model_copy(update={"verifier": verifier})
        download_missing(alone)
        check_models(alone)
    return settings


def _compare(
    file: Path,
    verifiers: tuple[str, ...],
    settings: Settings,
    half: Literal["report", "fit", "all"],
    bootstrap: int,
    limit: int | None,
    *,
    as_json: bool,
) -> None:
    bar: Progress | None = None

    def show(done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            bar = Progress("Judging", total)
            bar.__enter__()
        bar.move(done, f"{done:,} of {total:,} claims")

    try:
        found = compare_verifiers(
            file, verifiers, settings, half=half, limit=limit, bootstrap=bootstrap, on_progress=show
        )
    finally:
        if bar is not None:
            bar.__exit__(None, None, None)
    click.echo(json.dumps({"file": str(file), **found.to_dict()}) if as_json else render_comparison(found))
