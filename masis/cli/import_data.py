"""``masis import``: read cases into the database."""

from __future__ import annotations

import difflib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from masis.cli.group import JobFailed
from masis.cli.options import STDIO, database_option, open_workbench, operator, places_argument
from masis.cli.output import ErrorReport, Progress, printable, say
from masis.datasets.mapping import OWN_FORMAT, Profile, builtin, load_profile, read_any
from masis.errors import InputError
from masis.schema.wording import counted
from masis.services import Workbench
from masis.services.lake import LakeService, is_lake
from masis.settings import database_path

_SHOWN_ROWS = 3
"""Rows that ``--dry-run`` shows as they would be read."""


class Percent(click.ParamType[float]):
    """A share: ``2%``, or ``0.02``."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the share, above 0 and at most 1; wrong use where it is none."""
        if isinstance(value, float):
            return value
        try:
            share = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
        except ValueError:
            share = 0.0
        if not 0 < share <= 1:
            self.fail(f"{printable(value[:40])}: write a share as 2% or 0.02.", param, ctx)
        return share


@click.command("import")
@places_argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--as", "profile_name", metavar="PROFILE", help="Whose format it is. Default: detected from the first row."
)
@click.option(
    "--map",
    "own",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A TOML file of your own that names the paths (docs/importing.md).",
)
@click.option("--dry-run", is_flag=True, help="Show the first rows as they would be read, and every problem.")
@click.option("--strict", is_flag=True, help="Refuse rows that hold an answer under a name that is not read.")
@click.option("--needs-review", is_flag=True, help="Of a folder of audited cases: what needs review, and what failed.")
@click.option(
    "--sample", type=Percent(), metavar="SHARE", help="Of a folder of audited cases: draw 2% of what was auto-accepted."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Draws the sample.")
@database_option
def import_files(
    files: tuple[Path | str, ...],
    profile_name: str | None,
    own: Path | None,
    dry_run: bool,
    strict: bool,
    needs_review: bool,
    sample: float | None,
    seed: int,
    db: Path | None,
) -> None:
    """Read cases, or files of other tools, into the database, without auditing them.

    A FILE holds cases, one a line ('-' for stdin). A case that is there already is left alone; another case under an id
    that is taken is an error, for decisions refer to ids.

    Files of other tools (Ragas, DeepEval, LangSmith, Langfuse, Phoenix, MLflow, promptfoo, RAGTruth, replies of OpenAI
    and Anthropic, and more) are recognised by their first row, or named with --as; they may be JSON Lines, JSON, CSV,
    TSV or Parquet, packed with gzip or zip.

    A folder of audited cases ('masis audit --engine ray --out') comes with its audits: --needs-review brings in what a
    person must see, --sample a random share of what was auto-accepted, as spot checks. Their decisions estimate how
    many wrong answers passed unseen; 'masis metrics' says so. The seed is recorded.

    \b
      masis import cases.jsonl more-cases.jsonl
      masis import audited/ --needs-review --sample 2%
      masis import traces.json --as langfuse-traces --dry-run
      masis import own.csv.gz --map own.toml

    Exit code 0: everything was read. 1: some of it was not; the rest is stored. 2: wrong use.
    """  # noqa: D301 (click reads the backspace)
    lakes, paths = _sorted_out(files)
    if lakes:
        if paths or profile_name or own or strict:
            raise click.UsageError("a folder of audited cases is read alone, without --as, --map and --strict.")
        if not (needs_review or sample or dry_run):
            raise click.UsageError("say what to bring in: --needs-review, --sample 2%, or both.")
        _import_lakes(lakes, db, dry_run=dry_run, needs_review=needs_review, share=sample or 0.0, seed=seed)
        return
    if needs_review or sample is not None:
        raise click.UsageError("--needs-review and --sample are for a folder of audited cases.")
    profile = chosen_profile(profile_name, own)
    if dry_run:
        _show_all(paths, profile, strict)
        return
    database = database_path(db)
    workbench = open_workbench(database)
    errors = ErrorReport()
    for file in paths:
        name = "stdin" if file == STDIO else str(file)
        with _readable(file) as path:
            _import_cases(path, name, profile, workbench, errors, strict)
    say(f"Database: {database}")
    if errors.count:
        raise JobFailed(f"{counted(errors.count, 'error')}, named above. Everything else is stored.")


def _sorted_out(places: tuple[Path | str, ...]) -> tuple[list[str], tuple[Path, ...]]:
    """Return the folders and addresses of audited cases, and the files. Raises BadParameter for any other folder."""
    lakes: list[str] = []
    files: list[Path] = []
    for place in places:
        if isinstance(place, Path) and not place.is_dir():
            files.append(place)
        elif is_lake(str(place)):
            lakes.append(str(place))
        else:
            raise click.BadParameter(
                f"{printable(str(place))}: is a directory without audited cases. Name one file of JSON Lines in it.",
                param_hint="'FILE...'",
            )
    return lakes, tuple(files)


def _import_lakes(
    lakes: list[str], db: Path | None, *, dry_run: bool, needs_review: bool, share: float, seed: int
) -> None:
    if dry_run:
        for place in lakes:
            found = LakeService.counts(place)
            words = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in found.items())
            say(f"{place}: {words}. Nothing is stored.")
        return
    database = database_path(db)
    workbench, errors = open_workbench(database), ErrorReport()
    for place in lakes:
        total = sum(LakeService.counts(place).values())
        with Progress("Importing", total) as progress:
            done = workbench.lake.bring_in(
                operator(),
                place,
                needs_review=needs_review,
                share=share,
                seed=seed,
                on_rows=lambda read, progress=progress: progress.move(read, f"{read:,} read"),  # type: ignore[misc]
                on_problem=errors.add,
            )
        there = f", {counted(done.unchanged, 'case')} there already" if done.unchanged else ""
        words = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in done.brought.items() if number)
        say(f"{place}: {counted(sum(done.brought.values()), 'case')} imported{f' ({words})' if words else ''}{there}.")
        if done.sample is not None:
            say(
                f"{done.sample.drawn:,} of {done.sample.accepted:,} auto-accepted were drawn for a spot check "
                f"(share {done.sample.share:.2%}, seed {done.sample.seed})."
            )
    say(f"Database: {database}")
    if errors.count:
        raise JobFailed(f"{counted(errors.count, 'error')}, named above. Everything else is stored.")


def chosen_profile(name: str | None, own: Path | None) -> Profile | None:
    """Return the profile of ``--as`` or ``--map``; None for our own format, or where neither is given."""
    if name is not None and own is not None:
        raise click.UsageError("--as and --map: give one of the two.")
    if own is not None:
        try:
            return load_profile(own)
        except InputError as error:
            raise click.UsageError(f"--map: {printable(str(error))}") from error
    if name is None or name == OWN_FORMAT:
        return None
    if name not in builtin():
        near = difflib.get_close_matches(name, builtin(), n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(builtin())}."
        raise click.UsageError(f"--as {printable(name)}: there is no such profile. {hint}")
    return builtin()[name]


def _show_all(files: tuple[Path, ...], profile: Profile | None, strict: bool) -> None:
    """Show what would be read: the first cases on stdout, every problem on stderr, and nothing stored."""
    failed = 0
    for file in files:
        name = "stdin" if file == STDIO else str(file)
        good = bad = 0
        try:
            with _readable(file) as path:
                for row in read_any(path, profile, name=name):
                    problems = [*row.problems, *(row.notes if strict else ())]
                    for problem in problems or row.notes:
                        say(str(problem))
                    bad += bool(problems)
                    if row.case is not None and not problems:
                        good += 1
                        if good <= _SHOWN_ROWS:
                            click.echo(printable(json.dumps(row.case.to_json_dict(), ensure_ascii=False, indent=1)))
        except InputError as error:
            say(str(error))
            bad += 1
        say(f"{name}: {counted(good, 'case')} would be imported, {counted(bad, 'row')} would not. Nothing is stored.")
        failed += bad
    if failed:
        raise JobFailed(f"{counted(failed, 'row')} can't be imported, for the reasons above.")


@contextmanager
def _readable(file: Path) -> Iterator[Path]:
    """Give the path of a file; what comes through stdin is put into a temporary one, for it is read twice."""
    if file != STDIO:
        yield file
        return
    with tempfile.NamedTemporaryFile(suffix="-stdin") as held:
        shutil.copyfileobj(sys.stdin.buffer, held)
        held.flush()
        yield Path(held.name)


def _import_cases(
    path: Path, name: str, profile: Profile | None, workbench: Workbench, errors: ErrorReport, strict: bool
) -> None:
    progress = Progress("Importing", path.stat().st_size)
    added = unchanged = 0
    noted = False
    try:
        with progress:
            for step in workbench.imports.add_file(operator(), path, profile, name=name, strict=strict):
                added, unchanged = step.added, step.unchanged
                progress.move(step.end, f"{step.rows:,} read")
                for problem in step.problems:
                    errors.add(problem if isinstance(problem, InputError) else f"{name}: {problem}")
                if step.notes and not noted:
                    noted = True
                    progress.say(f"{step.notes[0]} (Said once a file; --strict refuses such rows.)")
    finally:
        there = f", {counted(unchanged, 'case')} there already" if unchanged else ""
        say(f"{name}: {counted(added, 'case')} imported{there}.")
