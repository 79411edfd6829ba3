"""``masis audit``: audit every case of a file and store the runs; run again, it goes on where it stopped."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

import click
from click.core import ParameterSource

from masis.api.batch import (
    AUDITS_A_CALL,
    Budget,
    Done,
    Failed,
    Job,
    NotAudited,
    audit_in_processes,
    audit_in_threads,
    guarded_audit,
)
from masis.api.roles import calls_at_once, check_models, estimate, pin_versions, uses_models, with_concurrency
from masis.audit.acceptance import accusations
from masis.cli.check_models import check_named
from masis.cli.group import INTERRUPTED, JobFailed
from masis.cli.local_models import download_missing
from masis.cli.log import log_option, measure_worker, measured
from masis.cli.options import (
    STDIO,
    checked_input,
    checked_output,
    chosen,
    chosen_reading,
    database_option,
    json_option,
    operator,
    reading_options,
    settings_options,
)
from masis.cli.output import ErrorReport, Interruption, Progress, emit, printable, say
from masis.datasets.mapping import MappedRow, read_any
from masis.datasets.writers import write_run
from masis.errors import MAX_ITERATIONS_WARNING, InputError, MasisError
from masis.llm.estimates import Estimate
from masis.schema.audit import Escalation
from masis.schema.calls import REPLAY, Usage
from masis.schema.case import Case
from masis.schema.run import Run
from masis.schema.wording import counted, shortened
from masis.services import Workbench
from masis.services.cases import shown_flags
from masis.services.health import models_asked
from masis.settings import UNCHECKED, Settings, database_path
from masis.views.numbers import dollars, score_text
from masis.views.spending import unpaid
from masis.views.words import FLAG, ISSUES, model_words


def _cases(context: click.Context, parameter: click.Parameter, value: str) -> Path | str:
    return value if context.params["engine"] == "ray" else checked_input(context, parameter, Path(value))


def _out(context: click.Context, parameter: click.Parameter, value: str | None) -> Path | str | None:
    if value is None or context.params["engine"] == "ray":
        return value
    return checked_output(context, parameter, Path(value))


@click.command()
@click.argument("cases", callback=_cases)
@settings_options
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    is_eager=True,
    help="What audits: this process and its workers, into the database; or Ray (extra: ray), for inputs of any size, "
    "into a folder of Parquet files. Default: local.",
)
@click.option("--address", metavar="ADDR", help="With --engine ray: the cluster. Default: Ray is started here.")
@reading_options
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
@click.option(
    "--out",
    callback=_out,
    help="Also write the runs here, one JSON object a line ('-' for stdout). With --engine ray: the folder for the "
    "Parquet files (docs/scale.md).",
)
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
@click.option(
    "--record",
    metavar="FILE",
    help="Append every reply of a model to FILE (JSON Lines), to be replayed without the model. The file is yours: "
    "redaction, purge and retention don't reach it.",
)
@click.option(
    "--replay",
    metavar="FILE",
    help="Answer from the replies that --record wrote to FILE, in all roles; no model is called. For one role: "
    "--model ROLE=replay:FILE.",
)
@click.option(
    "--depth",
    type=click.Choice(list(UNCHECKED)),
    help="quick: citations and claims only; standard: all roles; thorough: samples and second opinions as well "
    "(docs/models.md). Default: standard, or what the settings say.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N cases of the file.")
@json_option
@log_option
@click.pass_context
def audit(
    context: click.Context,
    cases: Path | str,
    engine: str,
    address: str | None,
    profile_name: str | None,
    maps: tuple[str, ...],
    models: tuple[str, ...],
    assignments: tuple[str, ...],
    concurrency: int | None,
    max_cost: float | None,
    db: Path | None,
    out: Path | str | None,
    again: bool,
    retry_errors: bool,
    ask: bool,
    record: str | None,
    replay: str | None,
    depth: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Audit every case of CASES, a file ('-' for stdin), keep the runs in the database, and show the worst answers.

    With --engine ray CASES is a file or a folder of JSON Lines, Parquet or any format of 'masis import', here or at an
    address that fsspec reads, and the audits go into the folder --out, by outcome; the database is left alone.

    One case a line: {"id": "1", "query": "...", "answer": "...", "evidence": [{"id": "1", "text": "..."}]}; or any
    format of 'masis import'. Without an answer one is drafted from the evidence first. A line that can't be read is
    named with its cure, and the others are audited all the same.

    \b
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
      masis audit s3://bucket/answers/ --engine ray --address auto --out s3://bucket/audited/ --max-cost 500

    Ctrl-C stops after the audits under way and keeps what is finished; the same command then goes on from there.

    Exit code 0: every line was read and audited. 1: some were not. 2: wrong use. 130: interrupted.
    """  # noqa: D301 (click reads the backspace)
    wanted = concurrency
    profile, names = chosen_reading(profile_name, maps)
    if replay is not None:
        models = (f"{REPLAY}{replay}", *models)
    if depth is not None:
        assignments = (*assignments, f"depth={depth}")
    if record is not None:
        assignments = (*assignments, f"record={record}")
    loaded = chosen(models, assignments)
    download_missing(loaded.settings)
    check_named(loaded)
    settings = loaded.settings
    check_models(settings)  # a model that nothing answers to is wrong use, not a failure of each case
    settings = pin_versions(settings)
    if settings.record:
        say(
            f"Replies are recorded in {settings.record}. The file is yours: redaction, purge and retention don't "
            "reach it."
        )
    if uses_models(settings):
        settings = with_concurrency(settings, concurrency)
        concurrency = calls_at_once(settings)
        if ask:
            _ask(settings)
    if engine == "ray":
        _refuse(context, "db", "again", "retry_errors", "record", "limit", "as_json")
        from masis.cli import audit_ray

        if names or isinstance(profile, str):
            raise click.UsageError(
                "--map FIELD=KEY: with --engine ray write the paths into a TOML file, and name that."
            )
        audit_ray.run(context, str(cases), out, settings, profile, address, wanted, max_cost)
        return
    _refuse(context, "address", engine="ray")
    assert isinstance(cases, Path)
    assert not isinstance(out, str)
    if out is not None and out != STDIO and out.exists() and cases != STDIO and out.samefile(cases):
        raise click.UsageError("--out names the file that is read. Name another.")
    read = partial(read_any, sys.stdin.buffer if cases == STDIO else cases, profile, names)
    job = _AuditJob(
        *(cases, read, settings, concurrency or 1, database_path(db), out, again, retry_errors, limit, max_cost),
        as_json=as_json,
    )
    debug = bool(context.find_root().params.get("debug"))
    with measured(settings):
        finished = job.run(show_traces=debug)
    job.report()
    if not finished:
        say("Interrupted. What is finished is stored; the same command goes on from here (without --again).")
        context.exit(INTERRUPTED)
    if job.summary.audited and job.summary.useless == job.summary.audited:
        raise JobFailed("Every audit failed: none has a score. What failed, and what to do, is named above.")
    if job.errors.count:
        raise JobFailed(f"{counted(job.errors.count, 'error')}, named above. Everything else is stored.")


def _refuse(context: click.Context, *names: str, engine: str = "local") -> None:
    """Raise UsageError where an option was given that belongs to the other engine."""
    for parameter in context.command.params:
        if parameter.name in names and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[0]}: goes with --engine {engine} only.")


def _ask(settings: Settings) -> None:
    """Say what each model answers to a word. Raises JobFailed where one can't judge."""
    answers = models_asked(settings)
    for item in answers:
        say(item.message)
    if not all(item.ok for item in answers):
        raise JobFailed("A model can't be asked, so nothing was audited. (--no-ask begins all the same.)")


class _AuditJob:
    """One run of the command."""

    def __init__(
        self,
        cases: Path,
        read: Callable[[], Iterator[MappedRow]],
        settings: Settings,
        concurrency: int,
        database: Path,
        out: Path | None,
        again: bool,
        retry_errors: bool,
        limit: int | None,
        max_cost: float | None,
        *,
        as_json: bool,
    ) -> None:
        self.cases, self.settings, self.concurrency, self.database = cases, settings, concurrency, database
        self.read = read
        self.out, self.again, self.retry_errors, self.limit = out, again, retry_errors, limit
        self.summary = BatchSummary()
        try:
            self.budget = Budget(settings, max_cost)
        except InputError as error:
            raise click.UsageError(f"--max-cost: {error.problem}. {error.cure}") from error
        self.with_models = uses_models(settings)
        self.in_processes = concurrency > 1 and not self.with_models
        total = None if cases == STDIO else cases.stat().st_size
        self.worst = None if out else WorstAnswers(as_json=as_json)
        self.progress = Progress("Auditing", total)
        self.errors = ErrorReport(self.progress)

    def run(self, *, show_traces: bool) -> bool:
        """Do the work; False where it was interrupted."""
        self.workbench = Workbench.open(self.database, self.settings)
        if self.with_models and self.cases != STDIO:
            show_estimate(self.read(), self.cases.stat().st_size, self.settings, self.limit, self._needed)
        with ExitStack() as stack:
            write = stack.enter_context(_writer(self.out)) if self.out else None
            stop = stack.enter_context(Interruption("Stopping after the audits under way (Ctrl-C again to drop them)."))
            stack.enter_context(self.progress)
            for done in self._audits(self._jobs(lambda: stop.asked), lambda: stop.asked):
                if isinstance(done.outcome, NotAudited):
                    break
                self._take(done.job, done.outcome, write, show_traces)
        return not stop.asked

    def report(self) -> None:
        """Show the worst answers where no file takes the runs; say what was done and where it is."""
        if self.worst is not None:
            self.worst.show()
        for line in self.summary.lines(self.settings):
            say(line)
        if self.budget.exhausted:
            say("The limit of --max-cost was reached: the same command with a higher one goes on from here.")
        if self.out and self.out != STDIO:
            say(f"Runs: {self.out}")
        say(f"Database: {self.database}")

    def _jobs(self, stopping: Callable[[], bool]) -> Iterator[Job]:
        """The cases of the file, each put into the database first; what can't be read is complained about."""
        read = 0
        for row in self._readable():
            if stopping() or (self.limit is not None and read >= self.limit):
                return
            self.errors.add_all(row.problems)
            if row.case is None:
                continue
            read += 1
            report = self.workbench.cases.add(operator(), [row.case])
            if report.conflicts:
                self.errors.add_all(f"{self.cases}, line {row.number}: {error}" for error in report.conflicts)
                continue
            yield Job(row.number, row.case, row.end, skip=not self._needed(row.case))

    def _needed(self, case: Case) -> bool:
        if self.again or self.workbench.audits.needed(case, self.settings):
            return True
        if not self.retry_errors:
            return False
        run = self.workbench.audits.finished(case, self.settings)
        return run is not None and run.incomplete

    def _readable(self) -> Iterator[MappedRow]:
        try:
            yield from self.read()
        except InputError as error:  # the file is of another format, or broke off: say so, keep what was read
            self.errors.add(error)

    def _audits(self, jobs: Iterable[Job], stopping: Callable[[], bool]) -> Iterator[Done]:
        if self.in_processes:
            return audit_in_processes(
                jobs,
                self.settings,
                workers=self.concurrency,
                budget=self.budget,
                stopping=stopping,
                prepare=measure_worker,
            )
        at_once = self.concurrency * AUDITS_A_CALL if self.with_models else 1
        return audit_in_threads(jobs, self._audit_here, at_once=at_once, budget=self.budget, stopping=stopping)

    def _audit_here(self, job: Job, cancelled: Callable[[], bool]) -> Run | Failed:
        """Audit a case; its run is stored as it goes, so that one cut short is resumed after its last finished step."""
        audit = self.workbench.audits.audit
        return guarded_audit(lambda: audit(operator(), job.case, settings=self.settings, cancelled=cancelled))

    def _take(self, job: Job, outcome: Run | Failed | None, write: BinaryIO | None, show_traces: bool) -> None:
        if isinstance(outcome, Run) and self.in_processes:
            outcome = self._stored(outcome)
        if isinstance(outcome, Failed):
            self.summary.failed += 1
            self.errors.add(f"{self.cases}, line {job.number}: case {job.case.id!r}: {outcome.message}")
            if show_traces:
                self.progress.say(outcome.trace)
        else:
            if outcome is None:
                self.summary.skipped += 1
                self.summary.skipped_incomplete += self.workbench.audits.failed_before(job.case, self.settings)
            else:
                self.summary.count(outcome)
            run = outcome or self.workbench.audits.finished(job.case, self.settings)
            if run is not None and write is not None:
                write_run(run, write)
            if run is not None and self.worst is not None:
                self.worst.add(job.case, run)
        self.progress.move(job.end, self.summary.note())

    def _stored(self, run: Run) -> Run | Failed:
        try:
            self.workbench.audits.store_run(operator(), run)
        except MasisError as error:
            return Failed(str(error))
        return run


def _writer(out: Path) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdout.buffer) if out == STDIO else out.open("wb")


WORST_SHOWN = 20
"""Answers in the table that a person reads; the rest waits in the queue."""

ISSUES_SHOWN = 5


class _Answer(NamedTuple):
    """What the table says of an answer; in its order the worst comes first."""

    rank: tuple[int, float, int]
    case: str
    state: str
    issue: str
    quality: str
    question: str
    issues: tuple[str, ...]


class WorstAnswers:
    """The answers of a file with the gravest issues, as a table that a person can read."""

    def __init__(self, *, as_json: bool) -> None:
        self._worst: list[_Answer] = []
        self._count, self._as_json = 0, as_json

    def add(self, case: Case, run: Run) -> None:
        """Take one audited answer into account."""
        self._count += 1
        original = run.iterations[0] if run.iterations else None
        flags = shown_flags(run, 0) if original else ("error",)
        place = next((at for at, flag in enumerate(ISSUES) if flag in flags), len(ISSUES))
        drafted = "answer drafted by MASIS, " if case.answer is None else ""
        issues = sorted(original.issues if original else (), key=lambda issue: not issue.major)
        quality = original.quality_score if original else None
        self._worst.append(
            _Answer(
                (place, 1.0 if quality is None else quality, self._count),
                case.id,
                drafted + ("needs review" if run.needs_review else "auto-accepted"),
                FLAG[ISSUES[place]].text if place < len(ISSUES) else "",
                score_text(quality),
                case.query,
                tuple(issue.description for issue in issues if issue.major),
            )
        )
        if self._as_json:  # each as it comes: nobody waits for the last
            found = self._worst.pop()._asdict()
            click.echo(json.dumps({name: found[name] for name in found if name != "rank"}, ensure_ascii=False))
        if len(self._worst) > 10 * WORST_SHOWN:
            self._worst = sorted(self._worst)[:WORST_SHOWN]

    def show(self) -> None:
        """Write the table to stdout, and under it the gravest issues in full; nothing where they came as JSON."""
        if self._as_json:
            return
        shown = sorted(self._worst)[:WORST_SHOWN]
        rows = [(each.case, each.state, each.issue, each.quality, each.question) for each in shown]
        emit((), ("case", "state", "worst issue", "quality", "question"), rows, as_json=False)
        issues = [(each.case, issue) for each in shown for issue in each.issues[:1]][:ISSUES_SHOWN]
        if issues:
            click.echo("\nWorst issues")
        for case, issue in issues:
            click.echo(printable(f"  {case}: {shortened(' '.join(issue.split()), 300)}"))
        if self._count > len(shown):
            say(f"{self._count - len(shown):,} more: 'masis queue' lists what waits for a person.")


SAMPLED = 200
"""Cases to be audited that an estimate reads; the rest of the file is taken to be like them, byte for byte."""


def show_estimate(
    rows: Iterable[MappedRow], size: int, settings: Settings, limit: int | None, needed: Callable[[Case], bool]
) -> None:
    """Show what the cases of a file that are ``needed`` will take, estimated from the first of them."""
    total, number, seen, read = Estimate(), 0, 0, 0
    try:
        for row in rows:
            if row.case is not None:
                seen, read = seen + 1, row.end
                if needed(row.case):
                    total, number = total.plus(estimate(row.case, settings)), number + 1
            if number >= SAMPLED or seen == limit:
                break
    except InputError:  # shown when the line is reached in earnest
        pass
    if not number:
        return
    left = max(0, size - read) / (max(1, read) / seen)  # not looked at; taken to be needed
    scale = 1 + round(left if limit is None else min(left, limit - seen)) / number
    cost = "cost unknown" if total.cost_usd is None else f"about {dollars(total.cost_usd * scale)}"
    skipped = f" ({seen - number:,} were audited before)" if seen > number else ""
    say(
        f"Estimate for {'about ' if scale > 1 else ''}{counted(round(number * scale), 'case')}{skipped}: up to "
        f"{round(total.calls * scale):,} calls and {round(total.tokens * scale):,} tokens, {cost}. "
        f"Depth {settings.depth}. {UNCHECKED[settings.depth]}"
    )


FAILURES_SHOWN = 3
"""Kinds of failed calls, and of warnings, that are named after a batch, the commonest."""
_FIGURES = re.compile(r"\b[0-9a-f]{12}\b|\d[\d,.]*")


@dataclass
class BatchSummary:
    """What became of the cases of one file, what it cost, and how long the steps took against their limits."""

    audited: int = 0
    skipped: int = 0
    failed: int = 0
    flagged: int = 0
    needs_review: int = 0
    incomplete: int = 0
    useless: int = 0
    skipped_incomplete: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    warnings: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    calls: int = 0
    tokens: int = 0
    cached: int = 0
    cost_usd: float | None = None
    unpriced: int = 0
    unpaid: Usage = field(default_factory=Usage)
    recorded: set[str] = field(default_factory=set)
    unconfirmed: int = 0
    unconfirmed_answers: int = 0
    escalation: Escalation | None = None
    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def count(self, run: Run) -> None:
        """Count one new run."""
        self.audited += 1
        self.flagged += bool(run.iterations and accusations(run.iterations[0]))
        self.needs_review += run.needs_review
        self.incomplete += run.incomplete
        self.useless += run.incomplete and run.final_quality_score is None
        for call in run.calls:
            if call.error:
                alike = _FIGURES.sub("#", call.error)
                self.failures[alike] += 1
                self.examples.setdefault(alike, f"{call.model}: {call.error.removeprefix(f'{call.model}: ')}")
        explained = [call.error for call in run.calls if call.error]
        for warning in run.warnings:
            if warning.code != MAX_ITERATIONS_WARNING and not any(error in warning.message for error in explained):
                alike = _FIGURES.sub("#", warning.message)
                self.warnings[alike] += 1
                self.examples.setdefault(alike, warning.message)
        self.unconfirmed += run.unconfirmed_offline
        self.unconfirmed_answers += bool(run.unconfirmed_offline)
        if run.escalation is not None:
            self.escalation = run.escalation if self.escalation is None else self.escalation.plus(run.escalation)
        self._count_usage(run.usage)
        self.recorded |= {call.model for call in run.calls if call.source == "replay"}
        self.unpriced += sum(call.cost_usd is None for call in run.calls)
        for name, milliseconds in step_times(run):
            self.times[name].append(milliseconds)

    def _count_usage(self, usage: Usage) -> None:
        self.calls += usage.calls
        self.tokens += usage.prompt_tokens + usage.completion_tokens
        self.cached += usage.cached_tokens
        self.unpaid = Usage(
            cached_calls=self.unpaid.cached_calls + usage.cached_calls,
            replayed_calls=self.unpaid.replayed_calls + usage.replayed_calls,
        )
        if usage.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + usage.cost_usd

    def note(self) -> str:
        """Return the state of the work, for beside the progress bar."""
        cost = "" if self.cost_usd is None else f", {dollars(self.cost_usd)}"
        return f"{self.audited:,} audited{cost}"

    def lines(self, settings: Settings) -> Iterator[str]:
        """Yield what was done, line by line."""
        again = f", {counted(self.skipped, 'case')} skipped (audited before with these settings)"
        yield (
            f"{counted(self.audited, 'case')} audited{again if self.skipped else ''}: {self.flagged:,} original "
            f"{'answer' if self.flagged == 1 else 'answers'} flagged, {self.needs_review:,} still to be reviewed after "
            "revision."
        )
        if self.skipped_incomplete:
            yield (
                f"{counted(self.skipped_incomplete, 'skipped case')} had something left unscored by a failure. "
                "--retry-errors audits what failed again."
            )
        for alike, count in self.failures.most_common(FAILURES_SHOWN):
            yield f"{counted(count, 'call')}: {self.examples[alike]}"
        if len(self.failures) > FAILURES_SHOWN:
            yield f"{len(self.failures) - FAILURES_SHOWN} further kinds of failures: the pages of the cases name them."
        for alike, count in self.warnings.most_common(FAILURES_SHOWN):
            yield f"{counted(count, 'warning')}: {self.examples[alike]}"
        if self.incomplete:
            yield (
                f"{counted(self.incomplete, 'audit')} left something unscored by a failure, each with its reason, and "
                "need review. --retry-errors audits them again."
            )
        yield from self._verified()
        if self.calls:
            yield self._spent()
            yield from self._latencies(settings)
        if answered := unpaid(self.unpaid):
            yield f"{', '.join(answered)}."
        for words in sorted(map(model_words, self.recorded)):
            yield f"{words[:1].upper()}{words[1:]}."
        if settings.record and self.skipped:
            yield f"Of skipped cases no replies are recorded in {settings.record}: --again audits them too."

    def _verified(self) -> Iterator[str]:
        """What was decided by whom, and what the offline checks left open."""
        if self.escalation is not None:
            found, whole = self.escalation, self.escalation.settled + self.escalation.escalated
            saved = "" if found.cost_saved_usd is None else f", about {dollars(found.cost_saved_usd)}"
            calls = (
                f" ({counted(found.calls, 'call')}, {found.calls_saved:,} saved{saved})" if found.calls_saved else ""
            )
            yield (
                f"The offline checks settled {found.settled:,} of {counted(whole, 'claim')}; "
                f"{model_words(found.second)} was asked for {found.escalated:,}{calls}."
            )
        if self.unconfirmed:
            them = "it" if self.unconfirmed == 1 else "them"
            yield (
                f"{counted(self.unconfirmed, 'claim')} of {counted(self.unconfirmed_answers, 'answer')} not confirmed "
                f"by the offline checks; a verifier model would decide {them}: --model verifier=offline,local:ORG/NAME "
                "(docs/verifiers.md)."
            )

    def _spent(self) -> str:
        cached = f", {self.cached:,} of them from a cache" if self.cached else ""
        spent = f"{counted(self.calls, 'call')} to models, {self.tokens:,} tokens{cached}"
        if self.cost_usd is None:
            return f"{spent}; the cost is not known (no price: see 'prices' in masis.toml)."
        rest = f" (without {counted(self.unpriced, 'call')} of unknown price)" if self.unpriced else ""
        return f"{spent}: {dollars(self.cost_usd)}{rest}."

    def _latencies(self, settings: Settings) -> Iterator[str]:
        from masis.audit.statistics import percentile  # loads numpy, which most commands do without

        limits = {
            "critic": settings.call_deadline_s,
            "reviser": settings.call_deadline_s,
            "iteration": settings.iteration_deadline_s,
            "loop": settings.loop_deadline_s,
        }
        measured = [
            f"{name} {percentile(self.times[name], 95):.1f} of {limit:g}"
            for name, limit in limits.items()
            if self.times[name]
        ]
        if measured:
            yield f"95% were done within (seconds, of the limit): {', '.join(measured)}."


def step_times(run: Run) -> Iterator[tuple[str, float]]:
    """Yield the seconds of each critic and reviser step, iteration and loop of a run (REQ-CRITIC-NFR-001 to -004)."""
    total = 0.0
    for iteration in run.iterations:
        spent = sum(iteration.step_ms.values()) / 1000
        total += spent
        yield "iteration", spent
        for name, step in (("critic", "critique"), ("reviser", "revision")):
            if step in iteration.step_ms:
                yield name, iteration.step_ms[step] / 1000
    if run.iterations:
        yield "loop", total
