"""``masis audit``: every case of a file is audited and its run kept; running it again goes on where it stopped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import BinaryIO

import click

from masis.api.roles import calls_at_once, check_models, pin_versions, uses_models, with_concurrency
from masis.cli.check_models import check_named
from masis.cli.group import INTERRUPTED, JobFailed
from masis.cli.interrupt import Interruption
from masis.cli.log import log_option, measured
from masis.cli.options import STDIO, chosen, database_option, input_argument, operator, out_option, settings_options
from masis.cli.output import Complaints, Progress, say
from masis.cli.spending import Spending
from masis.cli.summary import Tally, incomplete
from masis.cli.upgrading import opened_telling
from masis.cli.workers import Done, Failed, Job, audit_in_processes, audit_in_threads, guarded_audit
from masis.datasets.readers import CaseLine, likely_misnamed, read_case_lines
from masis.datasets.writers import write_run
from masis.errors import InputError, MasisError
from masis.schema.case import Case
from masis.schema.run import Run
from masis.schema.wording import counted
from masis.services.health import models_asked
from masis.settings import Settings, database_path


@click.command()
@input_argument("cases")
@settings_options
@click.option(
    "--concurrency",
    type=click.IntRange(1, 64),
    metavar="N",
    help="How many worker processes audit at once; with models, how many calls at once go to each provider. "
    "Default: 1, or what masis.toml says of the provider.",
)
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="Begin no further audit that would cost more than this in all. What is under way is finished.",
)
@database_option
@out_option(help="Also write the runs here, one JSON object a line ('-' for stdout).")
@click.option(
    "--again/--resume",
    default=False,
    help="Audit every case again, or only those without a finished run of the same text and settings. "
    "Default: --resume.",
)
@click.option(
    "--retry-errors",
    is_flag=True,
    help="Also audit again where a failure left something unscored before: a model that was not reached, say.",
)
@click.option(
    "--ask/--no-ask",
    default=True,
    help="Ask each model for a word before the first audit, so that a wrong key stops the job and not each case. "
    "Default: --ask.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N cases of the file.")
@log_option
@click.pass_context
def audit(
    context: click.Context,
    cases: Path,
    models: tuple[str, ...],
    assignments: tuple[str, ...],
    concurrency: int | None,
    max_cost: float | None,
    db: Path | None,
    out: Path | None,
    again: bool,
    retry_errors: bool,
    ask: bool,
    limit: int | None,
) -> None:
    """Audit every case of CASES, a file of JSON Lines ('-' for stdin), and keep the runs in the database.

    One case a line: {"id": "1", "query": "...", "answer": "...", "evidence": [{"id": "1", "text": "..."}]}. Without an
    answer one is drafted from the evidence first. A line that can't be read is named with its cure, and the others are
    audited all the same.

    \b
      masis audit cases.jsonl
      masis audit cases.jsonl --concurrency 4 --out runs.jsonl
      masis audit cases.jsonl --set max_iterations=1 --db trial.db
      masis audit cases.jsonl --model openai --concurrency 16 --max-cost 5
      masis audit cases.jsonl --model critic=anthropic --model reviser=ollama:llama3.3
      masis audit cases.jsonl --model critic=dspy:careful
      cat cases.jsonl | masis audit - --out - | jq .final_quality_score

    Ctrl-C stops after the audits under way and keeps what is finished; the same command then goes on from there.

    Exit code 0: every line was read and audited. 1: some were not. 2: wrong use. 130: interrupted.
    """  # noqa: D301 (click reads the backspace)
    loaded = chosen(models, assignments)
    check_named(loaded)
    settings = loaded.settings
    check_models(settings)  # a model that nothing answers to is wrong use, not a failure of each case
    settings = pin_versions(settings)
    if uses_models(settings):
        settings = with_concurrency(settings, concurrency)
        concurrency = calls_at_once(settings)
        if ask:
            _ask(settings)
    if out is not None and out != STDIO and out.exists() and cases != STDIO and out.samefile(cases):
        raise click.UsageError("--out names the file that is read. Name another.")
    job = _AuditJob(cases, settings, concurrency or 1, database_path(db), out, again, retry_errors, limit, max_cost)
    debug = bool(context.find_root().params.get("debug"))
    with measured(settings):
        finished = job.run(show_traces=debug)
    job.report()
    if not finished:
        say("Interrupted. What is finished is kept; the same command goes on from here (without --again).")
        context.exit(INTERRUPTED)
    if job.complaints.count:
        raise JobFailed(f"{counted(job.complaints.count, 'error')}, named above. Everything else is kept.")


def _ask(settings: Settings) -> None:
    """Say what each model answers to a word. Raises JobFailed where one can't judge."""
    asked = models_asked(settings)
    for item in asked:
        say(item.message)
    if not all(item.ok for item in asked):
        raise JobFailed("A model can't be asked, so nothing was audited. (--no-ask begins all the same.)")


class _AuditJob:
    """One run of the command."""

    def __init__(
        self,
        cases: Path,
        settings: Settings,
        concurrency: int,
        database: Path,
        out: Path | None,
        again: bool,
        retry_errors: bool,
        limit: int | None,
        max_cost: float | None,
    ) -> None:
        self.cases, self.settings, self.concurrency, self.database = cases, settings, concurrency, database
        self.out, self.again, self.retry_errors, self.limit = out, again, retry_errors, limit
        self.tally = Tally()
        self.spending = Spending(settings, max_cost)
        self.with_models = uses_models(settings)
        total = None if cases == STDIO else cases.stat().st_size
        self.progress = Progress("Auditing", total)
        self.complaints = Complaints(self.progress)
        self._misnamed_told = False

    def run(self, *, show_traces: bool) -> bool:
        """Do the work; False where it was interrupted."""
        lines = read_case_lines(sys.stdin.buffer if self.cases == STDIO else self.cases)
        self.workbench = opened_telling(self.database, self.settings)
        if self.with_models and self.cases != STDIO:
            self.spending.estimate(self.cases, self.limit, self._wanted)
        with ExitStack() as stack:
            write = stack.enter_context(_writer(self.out)) if self.out else None
            stop = stack.enter_context(Interruption("Stopping after the audits under way (Ctrl-C again to drop them)."))
            stack.enter_context(self.progress)
            for done in self._audits(self._jobs(lines, lambda: stop.asked), lambda: stop.asked):
                self._take(done, write, show_traces)
        return not stop.asked

    def report(self) -> None:
        """Say what was done and where it is."""
        for line in self.tally.lines(self.settings):
            say(line)
        if self.spending.exhausted:
            say("The limit of --max-cost was reached: the same command with a higher one goes on from here.")
        if self.out and self.out != STDIO:
            say(f"Runs: {self.out}")
        say(f"Database: {self.database}")

    def _jobs(self, lines: Iterator[CaseLine], stopping: Callable[[], bool]) -> Iterator[Job]:
        """The cases of the file, each put into the database first; what can't be read is complained about."""
        read = 0
        for line in self._readable(lines):
            if stopping() or (self.limit is not None and read >= self.limit):
                return
            if isinstance(line.found, InputError):
                self.complaints.add(line.found)
                continue
            read += 1
            self._point_out_misnamed_answer(line)
            report = self.workbench.cases.add(operator(), [line.found])
            if report.conflicts:
                self.complaints.add_all(f"{self.cases}, line {line.number}: {error}" for error in report.conflicts)
                continue
            wanted = self._wanted(line.found)
            if wanted and not self.spending.begin(line.found):
                return
            yield Job(line.number, line.end, line.found, wanted)

    def _wanted(self, case: Case) -> bool:
        if self.again or self.workbench.audits.needed(case, self.settings):
            return True
        if not self.retry_errors:
            return False
        run = self.workbench.audits.finished(case, self.settings)
        return run is not None and incomplete(run)

    def _readable(self, lines: Iterator[CaseLine]) -> Iterator[CaseLine]:
        try:
            yield from lines
        except InputError as error:  # the file is of another format, or broke off: say so, keep what was read
            self.complaints.add(error)

    def _audits(self, jobs: Iterable[Job], stopping: Callable[[], bool]) -> Iterator[Done]:
        if self.with_models:
            yield from audit_in_threads(jobs, self._audit_here, concurrency=self.concurrency, stopping=stopping)
            return
        if self.concurrency > 1:
            yield from audit_in_processes(jobs, self.settings, workers=self.concurrency, stopping=stopping)
            return
        for job in jobs:
            yield Done(job, guarded_audit(partial(self._audit_here, job.case)) if job.wanted else None)

    def _audit_here(self, case: Case, cancelled: Callable[[], bool] | None = None) -> Run:
        return self.workbench.audits.audit(operator(), case, settings=self.settings, cancelled=cancelled)

    def _take(self, done: Done, write: BinaryIO | None, show_traces: bool) -> None:
        outcome = done.outcome
        if isinstance(outcome, Run) and self.concurrency > 1 and not self.with_models:
            outcome = self._stored(done.job, outcome)
        if isinstance(outcome, Failed):
            self.tally.failed += 1
            self.spending.ended(None)
            self.complaints.add(f"{self.cases}, line {done.job.line}: case {done.job.case.id!r}: {outcome.message}")
            if show_traces:
                self.progress.say(outcome.trace)
        else:
            if outcome is None:
                self.tally.kept += 1
            else:
                self.tally.count(outcome)
                self.spending.ended(outcome.usage)
            if write is not None and (run := outcome or self.workbench.audits.finished(done.job.case, self.settings)):
                write_run(run, write)
        self.progress.move(done.job.end, self.tally.note())

    def _stored(self, job: Job, run: Run) -> Run | Failed:
        try:
            self.workbench.audits.store_run(operator(), run)
        except MasisError as error:
            return Failed(str(error))
        return run

    def _point_out_misnamed_answer(self, line: CaseLine) -> None:
        if self._misnamed_told or isinstance(line.found, InputError) or not (key := likely_misnamed(line.found)):
            return
        self._misnamed_told = True
        self.progress.say(
            f'{self.cases}, line {line.number}: has no "answer", so one will be drafted. If "{key}" is the answer, '
            f'rename it to "answer". (Said once a file.)'
        )


def _writer(out: Path) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdout.buffer) if out == STDIO else out.open("wb")
