"""``masis audit`` audits every case in a file and stores the runs.

Running the same command again continues from the last finished audit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, Protocol, get_args

import click

from masis.api.batch import (
    AUDITS_PER_CALL,
    AuditFailure,
    BatchItem,
    Budget,
    ItemResult,
    OverBudget,
    audit_in_processes,
    audit_in_threads,
    guarded_audit,
)
from masis.api.roles import (
    calls_at_once,
    check_models,
    estimate,
    pin_versions,
    uses_models,
    with_concurrency,
)
from masis.cli import options as shared
from masis.cli.commands import Command, JobFailed, RegisteredChoice, end_interrupted
from masis.cli.config import check_named
from masis.cli.models import download_missing
from masis.cli.options import FileOptions, Judges
from masis.cli.output import (
    Emit,
    ErrorReport,
    Interruption,
    ProgressBar,
    say,
    start_worker_telemetry,
)
from masis.cli.worst_answers import WorstAnswers
from masis.datasets.mapping.reader import read_any
from masis.datasets.mapping.row import MappedRow
from masis.datasets.writers.lines import frame_csv, write_line
from masis.errors import InputError, MasisError
from masis.extensions import extensions, load
from masis.llm.estimates import CostEstimate
from masis.observers.telemetry import send_telemetry
from masis.schema.case import Case
from masis.schema.judge import JudgeBrief
from masis.schema.model_ref import REPLAY
from masis.schema.run import Run
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.maintenance.health import probe_models
from masis.settings import UNCHECKED, Depth, Settings, database_path
from masis.views.batches import BatchSummary
from masis.views.numbers import dollars

LOCAL = "local"
"""The engine that audits on this machine and stores the runs in the database."""


class Engine(Protocol):
    """Another way to audit a file of cases, as an extension names it in ``audit_engines``."""

    def __call__(
        self,
        cases: str,
        out: str | None,
        settings: Settings,
        reading: FileOptions,
        address: str | None,
        workers: int | None,
        max_cost: float | None,
    ) -> None:
        """Audit the cases that aren't audited yet, show progress, and report the result."""


def audit_engines() -> dict[str, str]:
    """Return the engines of extensions by name."""
    return {
        name: target
        for extension in extensions()
        for name, target in extension.audit_engines.items()
    }


def engine_names() -> list[str]:
    """Return the names of all engines."""
    return [LOCAL, *audit_engines()]


@click.command(cls=Command)
@click.argument("cases")
@shared.judges_options
@click.option(
    "--engine",
    type=RegisteredChoice(engine_names),
    default="local",
    show_default=True,
    help="local: audit on this machine and store the runs in the database. ray (extra: ray): audit"
    " inputs of any size on Ray and write a folder of Parquet files.",
)
@click.option(
    "--address",
    metavar="ADDR",
    help="With --engine ray: the address of the cluster. Default: start Ray on this machine.",
)
@shared.reading_options
@click.option(
    "--concurrency",
    type=click.IntRange(1, 64),
    metavar="N",
    help="The number of worker processes; with models, the number of concurrent calls to each"
    " provider. Default: 1, or the provider's value in masis.toml.",
)
@click.option(
    "--max-cost",
    type=shared.COST,
    metavar="USD",
    help="Stop starting audits when the next one could exceed this total. Audits in progress are"
    " allowed to finish.",
)
@shared.database_option
@click.option(
    "--out",
    metavar="PATH",
    help="Also write the runs to PATH, one JSON object per line ('-' for stdout), or their issues"
    " as a table if PATH ends in .csv. With --engine ray: the folder for the Parquet files"
    " (docs/scale.md).",
)
@click.option(
    "--again/--resume",
    help="Audit every case again, or only cases without a finished run for the same text and"
    " settings. Default: --resume.",
)
@click.option(
    "--retry-errors",
    is_flag=True,
    help="Also repeat audits that are partly unscored because something failed, such as a call to"
    " a model.",
)
@click.option(
    "--ask/--no-ask",
    default=True,
    help="Send each model a test request before the first audit, so that a wrong key is reported"
    " at once. Default: --ask.",
)
@click.option(
    "--record",
    metavar="FILE",
    help="Append every model reply to FILE (JSON Lines), for use with --replay. Redaction, purge"
    " and retention don't change this file.",
)
@click.option(
    "--replay",
    metavar="FILE",
    help="Use the replies that --record wrote to FILE for all roles, without calling a model. For"
    " one role: --model ROLE=replay:FILE.",
)
@click.option(
    "--depth",
    type=click.Choice(get_args(Depth)),
    help="quick: citations and claims only. standard: all roles. thorough: several samples and"
    " second opinions as well (docs/models.md). Default: standard, or the value in the settings.",
)
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Only the first N cases in the file."
)
@shared.url_option
@shared.insecure_option
@shared.json_option
@shared.log_options
def audit(
    cases: str,
    judges: Judges,
    engine: str,
    address: str | None,
    reading: FileOptions,
    concurrency: int | None,
    max_cost: float | None,
    db: Path | None,
    out: str | None,
    again: bool,
    retry_errors: bool,
    ask: bool,
    record: str | None,
    replay: str | None,
    depth: Depth | None,
    limit: int | None,
    url: str | None,
    insecure: bool,
    emit: Emit,
) -> None:
    """Audit every case in the file CASES ('-' for stdin), store the runs in the database, and list
    the worst answers.

    CASES has one case per line, such as {"id": "1", "query": "...", "answer": "...", "evidence":
    [{"id": "1", "text": "..."}]}, or any format that 'masis import' reads. If a case has no answer,
    one is drafted from its evidence. If it has no id, the id is derived from its content. A line
    that can't be read is reported with a hint, and the other lines are audited.

    With --engine ray, CASES is a file or a folder of any of these formats, on this machine or at an
    address that fsspec supports. The audits are written to the folder --out, grouped by outcome,
    and the database isn't used.

      masis audit cases.jsonl
      masis audit answers.csv --map query=question --map answer=response --map evidence=context
      masis audit cases.jsonl --json | jq -r 'select(.issue != "") | .case'
      masis audit cases.jsonl --concurrency 4 --out runs.jsonl
      masis audit cases.jsonl --set max_iterations=1 --db trial.db
      masis audit cases.jsonl --model openai --concurrency 16 --max-cost 5
      masis audit cases.jsonl --model openai --depth quick
      masis audit cases.jsonl --model critic=anthropic --model reviser=ollama:llama3.3
      masis audit cases.jsonl --model critic=dspy:careful
      masis audit cases.jsonl --model verifier=local:ORG/NAME
      masis audit cases.jsonl --model verifier=offline,openai:gpt-4o-mini
      masis audit cases.jsonl --model openai --record replies.jsonl
      masis audit cases.jsonl --replay replies.jsonl
      cat cases.jsonl | masis audit - --out - | jq .final_quality_score
      masis audit cases.jsonl --url https://audits.example.org
      masis audit s3://bucket/answers/ --engine ray --out s3://bucket/audited/ --max-cost 500

    Ctrl-C finishes the audits in progress and then stops. Run the same command again to continue.

    Exit code 0: every line was read and audited. 1: some lines weren't. 2: wrong usage. 130:
    interrupted.
    """
    if url is not None:
        from masis.cli.remote import audit_on_server

        audit_on_server(
            url, cases, reading, insecure=insecure, out=out, again=again, limit=limit, emit=emit
        )
        return
    _refuse_engine_options(engine)
    written = {"depth": depth, "record": record}
    judges = Judges(
        # --replay is a model for all roles, so --model ROLE=MODEL still replaces it for one.
        judges.models if replay is None else (f"{REPLAY}{replay}", *judges.models),
        (
            *judges.assignments,
            *(f"{name}={value}" for name, value in written.items() if value is not None),
        ),
    )
    if engine != LOCAL:
        load(audit_engines()[engine])(
            cases,
            out,
            _prepare_settings(judges, concurrency, ask=ask),
            reading,
            address,
            concurrency,
            max_cost,
        )
        return
    file, to = shared.existing_file(cases), None if out is None else shared.writable_file(out)
    if (
        to is not None
        and to != shared.STDIO
        and to.exists()
        and file != shared.STDIO
        # samefile also finds a link to the input.
        and to.samefile(file)
    ):
        raise click.UsageError("--out is the same file as the input. Name another.")
    if to == shared.STDIO and emit.as_json:
        raise click.UsageError("--json and '--out -' both write to stdout. Name a file with --out.")
    settings = _prepare_settings(judges, concurrency, ask=ask)
    if uses_models(settings):
        concurrency = calls_at_once(settings)
    try:
        budget = Budget(settings, max_cost)
    except InputError as error:
        raise click.UsageError(f"--max-cost: {error.problem}. {error.hint}") from error
    source = sys.stdin.buffer if file == shared.STDIO else file
    read = partial(
        read_any,
        source,
        reading.profile,
        reading.names,
        sheet=reading.sheet,
        system=reading.system,
    )
    job = _AuditJob(
        file,
        read,
        settings,
        budget,
        concurrency or 1,
        database_path(db),
        to,
        again,
        retry_errors,
        limit,
        emit,
    )
    with send_telemetry(settings):
        finished = job.run(
            # --debug is an option of masis itself, before the command.
            show_traces=bool(click.get_current_context().find_root().params.get("debug"))
        )
    job.report()
    if not finished:
        end_interrupted(
            "Interrupted. Finished audits are stored. Run the same command again to continue"
            " (without --again)."
        )
    if job.summary.audited and job.summary.useless == job.summary.audited:
        raise JobFailed("Every audit failed, so there are no scores. The reasons are listed above.")
    job.errors.end(
        "Everything else is stored."
        if job.summary.audited or job.summary.skipped
        else "Nothing was audited."
    )


_ENGINE_OPTIONS = {
    LOCAL: ("db", "again", "retry_errors", "record", "limit", "emit"),
    "ray": ("address",),
}


def _refuse_engine_options(engine: str) -> None:
    """Raise UsageError for an option that belongs to the other engine."""
    given_options = shared.given_options()
    for other_engine, names in _ENGINE_OPTIONS.items():
        if other_engine != engine and (
            wrong := [given_options[name] for name in names if name in given_options]
        ):
            raise click.UsageError(f"{wrong[0]} is only allowed with --engine {other_engine}.")


def _prepare_settings(judges: Judges, concurrency: int | None, *, ask: bool) -> Settings:
    """Return the settings for the audits, after checking that all models respond.

    Raises SettingsError if a name in the settings is unknown, and JobFailed if a model doesn't
    respond.
    """
    loaded = judges.load()
    download_missing(loaded.settings)
    check_named(loaded)
    # An unknown model is reported once as wrong usage, instead of as a failure of every case.
    check_models(loaded.settings)
    # Runs are stored with pinned versions, so finding the finished ones needs them too.
    settings = pin_versions(loaded.settings)
    if settings.record:
        note = "Redaction, purge and retention don't change this file."
        say(f"Replies are recorded in {settings.record}. {note}")
    if not uses_models(settings):
        return settings
    settings = with_concurrency(settings, concurrency)
    answers = probe_models(settings) if ask else ()
    for item in answers:
        say(item.message)
    if not all(item.ok for item in answers):
        raise JobFailed(
            "A model didn't respond, so nothing was audited. Pass --no-ask to start anyway."
        )
    return settings


@dataclass
class _AuditJob:
    """One execution of ``masis audit --engine local``."""

    cases: Path
    read: Callable[[], Iterator[MappedRow]]
    settings: Settings
    budget: Budget
    concurrency: int
    database: Path
    out: Path | None
    again: bool
    retry_errors: bool
    limit: int | None
    emit: Emit

    def __post_init__(self) -> None:
        self.workbench = Workbench.open(self.database, self.settings)
        # Pinned once, so that a judge version that is adopted in the meantime doesn't split the
        # batch.
        self.settings = self.workbench.audits.pin(self.settings)
        self.summary = BatchSummary()
        self.with_models = uses_models(self.settings)
        self.in_processes = self.concurrency > 1 and not self.with_models
        self.worst = WorstAnswers(self.emit, stdout_has_runs=self.out == shared.STDIO)
        self.progress = ProgressBar(
            # Without the size of the input, as of stdin, there is no bar.
            "Auditing",
            None if self.cases == shared.STDIO else self.cases.stat().st_size,
        )
        self.errors, self.noted = ErrorReport(), False

    def run(self, *, show_traces: bool) -> bool:
        """Audit the file. Returns False if it was interrupted."""
        if self.with_models and self.cases != shared.STDIO:
            show_estimate(
                self.read(), self.cases.stat().st_size, self.settings, self.limit, self._is_needed
            )
        with ExitStack() as stack:
            write = None
            if self.out is not None:
                to_stdout = self.out == shared.STDIO
                # bytes, because the encoding of stdout depends on the locale
                write = sys.stdout.buffer if to_stdout else stack.enter_context(self.out.open("wb"))
            stop = stack.enter_context(
                Interruption("Stopping after the audits in progress (Ctrl-C again to drop them).")
            )
            stack.enter_context(self.progress)
            for done in self._audits(self._jobs(stop.is_stopped), stop.is_stopped):
                if isinstance(done.outcome, OverBudget):
                    break
                self._record_outcome(done.job, done.outcome, write, show_traces)
        return not stop.asked

    def report(self) -> None:
        """Show the worst answers, then summarize the job and say where the results are."""
        self.worst.show()
        for line in self.summary.lines(self.settings):
            say(line)
        if self.budget.exhausted:
            say(
                "The --max-cost limit was reached. Run the same command with a higher limit to"
                " continue."
            )
        if self.out and self.out != shared.STDIO:
            say(f"{'Issues' if self.out.suffix.lower() == '.csv' else 'Runs'}: {self.out}")
        say(f"Database: {self.database}")

    def _jobs(self, stopping: Callable[[], bool]) -> Iterator[BatchItem]:
        """Yield the cases in the file after storing each one; report rows that can't be read."""
        read = 0
        try:
            for row in self.read():
                if stopping() or (self.limit is not None and read >= self.limit):
                    return
                self.errors.add_all(row.problems)
                if row.notes and not self.noted:
                    self.noted = True
                    say(f"{row.notes[0]} (Shown once per file.)")
                if row.case is None:
                    continue
                read += 1
                # one by one, because a case must be stored before its audit starts
                report = self.workbench.cases.add(shared.operator(), [row.case])
                self.errors.add_all(
                    f"{self.cases}, line {row.number}: {error}" for error in report.conflicts
                )
                if not report.conflicts:
                    yield BatchItem(
                        row.number,
                        row.case,
                        row.end,
                        skip=not self._is_needed(row.case),
                        judge=self._brief(row.case),
                    )
        # The file is truncated, or part of it has another format. The rows before are still used.
        except InputError as error:
            self.errors.add(error)

    def _is_needed(self, case: Case) -> bool:
        """Return whether to audit a case, given ``--again`` and ``--retry-errors``."""
        if self.again or self.workbench.audits.is_needed(case, self.settings):
            return True
        run = (
            self.workbench.audits.newest_finished(case, self.settings)
            if self.retry_errors
            else None
        )
        return run is not None and run.incomplete

    def _brief(self, case: Case) -> JudgeBrief | None:
        """Return the judge's guidance about a case that a worker process audits."""
        if not self.in_processes:
            return None
        return self.workbench.audits.brief(shared.operator(), case, self.settings)

    def _audits(
        self, jobs: Iterable[BatchItem], stopping: Callable[[], bool]
    ) -> Iterator[ItemResult]:
        """Audit the jobs: in threads if models are called, in processes if ``--concurrency`` asks.

        Waiting for a model releases Python's global interpreter lock; the offline checks don't.
        """
        if self.in_processes:
            return audit_in_processes(
                jobs,
                self.settings,
                workers=self.concurrency,
                budget=self.budget,
                stopping=stopping,
                prepare=start_worker_telemetry,
            )

        def audit_here(job: BatchItem, cancelled: Callable[[], bool]) -> Run | AuditFailure:
            """Audit a case and store each step, so that an interrupted run can be resumed."""
            audit = self.workbench.audits.audit
            return guarded_audit(
                lambda: audit(
                    shared.operator(), job.case, settings=self.settings, cancelled=cancelled
                )
            )

        at_once = self.concurrency * AUDITS_PER_CALL if self.with_models else 1
        return audit_in_threads(
            jobs, audit_here, at_once=at_once, budget=self.budget, stopping=stopping
        )

    def _record_outcome(
        self,
        job: BatchItem,
        outcome: Run | AuditFailure | None,
        write: BinaryIO | None,
        show_traces: bool,
    ) -> None:
        # Worker processes return their runs, because SQLite has one writer at a time. Threads
        # store their runs themselves.
        if isinstance(outcome, Run) and self.in_processes:
            try:
                self.workbench.audits.store_run(shared.operator(), outcome)
            except MasisError as error:
                outcome = AuditFailure(str(error))
        if isinstance(outcome, AuditFailure):
            self.summary.failed += 1
            self.errors.add(
                f"{self.cases}, line {job.number}: case {job.case.id!r}: {outcome.message}"
            )
            if show_traces:
                say(outcome.trace)
        else:
            # None means that the case was skipped, because it has a finished run.
            run = outcome or self.workbench.audits.newest_finished(job.case, self.settings)
            if outcome is None:
                self.summary.count_skipped(run)
            else:
                self.summary.count(outcome)
            if run is not None:
                if write is not None:
                    self._write(run, write)
                self.worst.add(job.case, run, self.workbench.cases.summary(job.case.id))
        self.progress.move(job.end, self.summary.note())

    def _write(self, run: Run, write: BinaryIO) -> None:
        """Write a run as JSON, or its issues as table rows if the file is a CSV."""
        if self.out is None or self.out.suffix.lower() != ".csv":
            write_line(run.model_dump_json(), write)
            return
        # imported here because pandas is slow to import and only CSV output needs it
        from masis.views.tables import runs_to_pandas

        rows = runs_to_pandas([run], of="issues")
        # The position is 0 only before the first rows, which get the header.
        write.write(frame_csv(rows, header=write.tell() == 0))


SAMPLED = 200
"""How many cases an estimate reads; the rest of the file is assumed to have the same density."""


def show_estimate(
    rows: Iterable[MappedRow],
    size: int,
    settings: Settings,
    limit: int | None,
    needed: Callable[[Case], bool],
) -> None:
    """Show the estimated calls, tokens and cost of the ``needed`` cases.

    The estimate is extrapolated from the first ``SAMPLED`` cases by their share of the file's
    ``size`` in bytes.
    """
    total, number, seen, read = CostEstimate(), 0, 0, 0
    try:
        for row in rows:
            if row.case is not None:
                seen, read = seen + 1, row.end
                if needed(row.case):
                    total, number = total.plus(estimate(row.case, settings)), number + 1
            if number >= SAMPLED or seen == limit:
                break
    except InputError:  # the audit reports it when it reaches the line
        pass
    if not number:
        return
    left = max(0, size - read) / (max(1, read) / seen)  # unread cases, assumed to be needed
    scale = 1 + round(left if limit is None else min(left, limit - seen)) / number
    cost = "cost unknown" if total.cost_usd is None else f"about {dollars(total.cost_usd * scale)}"
    skipped = f" ({seen - number:,} already audited)" if seen > number else ""
    say(
        "Estimate for"
        f" {'about ' if scale > 1 else ''}{count_noun(round(number * scale), 'case')}{skipped}: "
        f"up to"
        f" {round(total.calls * scale):,} calls and {round(total.tokens * scale):,} tokens, {cost}."
        f" Depth: {settings.depth}. {UNCHECKED[settings.depth]}"
    )
