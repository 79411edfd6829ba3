"""``masis import``: read cases into the database."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import click

from masis.cli.group import JobFailed
from masis.cli.options import (
    STDIO,
    chosen_reading,
    database_option,
    json_option,
    open_workbench,
    operator,
    places_argument,
    reading_options,
    spooled,
)
from masis.cli.output import ErrorReport, Progress, printable, say
from masis.datasets import loading
from masis.datasets.mapping import Profile, read_any
from masis.datasets.mapping.columns import profile_text
from masis.errors import InputError
from masis.schema.case import Case
from masis.schema.reading import FieldMap
from masis.schema.wording import counted, shortened
from masis.services import Workbench
from masis.services.lake import LakeService, is_lake
from masis.settings import database_path

_SHOWN_ROWS = 3
"""Rows that ``--dry-run`` shows as they would be read."""

_WIDE = 100
"""Characters of a text that it shows."""


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
@reading_options
@click.option("--dry-run", is_flag=True, help="Show the first rows as they would be read, and every problem.")
@click.option(
    "--suggest", is_flag=True, help="Propose how to read the file: a whole map, and two cases as they would be read."
)
@click.option(
    "--save", type=click.Path(path_type=Path, dir_okay=False), help="With --suggest: write the proposal to a TOML file."
)
@click.option("--needs-review", is_flag=True, help="Of a folder of audited cases: what needs review, and what failed.")
@click.option(
    "--sample", type=Percent(), metavar="SHARE", help="Of a folder of audited cases: draw 2% of what was auto-accepted."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Draws the sample.")
@json_option
@database_option
def import_files(
    files: tuple[Path | str, ...],
    profile_name: str | None,
    maps: tuple[str, ...],
    dry_run: bool,
    suggest: bool,
    save: Path | None,
    needs_review: bool,
    sample: float | None,
    seed: int,
    as_json: bool,
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
      masis import answers.csv --suggest --save own.toml
      masis import answers.csv --map query=question --map answer=response --dry-run

    Exit code 0: everything was read. 1: some of it was not; the rest is stored. 2: wrong use.
    """  # noqa: D301 (click reads the backspace)
    lakes, paths = _sorted_out(files)
    if lakes:
        if paths or profile_name or maps:
            raise click.UsageError("a folder of audited cases is read alone, without --as and --map.")
        if not (needs_review or sample or dry_run):
            raise click.UsageError("say what to bring in: --needs-review, --sample 2%, or both.")
        _import_lakes(lakes, db, dry_run=dry_run, needs_review=needs_review, share=sample or 0.0, seed=seed)
        return
    if needs_review or sample is not None:
        raise click.UsageError("--needs-review and --sample are for a folder of audited cases.")
    profile, names = chosen_reading(profile_name, maps)
    if suggest or save is not None:
        for file in paths:
            with spooled(file) as path:
                _suggest(path, "stdin" if file == STDIO else str(file), save)
        return
    if dry_run:
        _show_all(paths, profile, names)
        return
    database = database_path(db)
    workbench = open_workbench(database)
    errors = ErrorReport()
    for file in paths:
        name = "stdin" if file == STDIO else str(file)
        with spooled(file) as path:
            _import_cases(path, name, profile, names, workbench, errors, as_json=as_json)
    say(f"Database: {database}")
    if errors.count:
        raise JobFailed(f"{counted(errors.count, 'error')}, named above. Everything else is stored.")


def _sorted_out(places: tuple[Path | str, ...]) -> tuple[list[str], tuple[Path, ...]]:
    """Return the folders and addresses of audited cases, and the files and folders of files."""
    lakes: list[str] = []
    files: list[Path] = []
    for place in places:
        if isinstance(place, Path) and not (place.is_dir() and is_lake(str(place))):
            files.append(place)
        elif is_lake(str(place)):
            lakes.append(str(place))
        else:
            raise click.BadParameter(
                f"{printable(str(place))}: holds no audited cases. Name a folder that masis audit wrote.",
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


def _show_all(files: tuple[Path, ...], profile: Profile | str | None, names: FieldMap) -> None:
    """Show what would be read: a summary and three cases on stdout, every problem on stderr, and nothing stored."""
    failed, errors = 0, ErrorReport()
    for file in files:
        name = "stdin" if file == STDIO else str(file)
        found, shown, bad = Counter[str](), list[str](), 0
        try:
            with spooled(file) as path:
                for row in read_any(path, profile, names, name=name):
                    errors.add_all(row.problems or row.notes)
                    bad += bool(row.problems)
                    if row.case is not None:
                        found += _facts(row.case)
                        if found["read as cases"] <= _SHOWN_ROWS:
                            shown += _as_read(row.case)
        except InputError as error:
            errors.add(error)
            bad += 1
        for line in (*shown, ", ".join(f"{number:,} {words}" for words, number in found.items() if number)):
            click.echo(printable(line))
        say(
            f"{name}: {counted(found['read as cases'], 'case')} would be imported, {counted(bad, 'row')} would not. "
            "Nothing is stored."
        )
        failed += bad
    if failed:
        raise JobFailed(f"{counted(failed, 'row')} can't be imported, for the reasons above.")


def _suggest(path: Path, name: str, save: Path | None) -> None:
    """Print the map that probably reads a file, two cases as it reads them, and the command that imports it."""
    found = loading.suggest(path)
    if found.format:
        say(f"{name}: is read as {found.format}, with no option. Look first: masis import {name} --dry-run")
        return
    if found.profile is None:
        keys = ", ".join(found.row)
        raise JobFailed(
            f"{name}: nothing in the first row looks like a question with evidence (it holds {shortened(keys, 300)}). "
            "Name them: --map query=KEY --map evidence=KEY."
        )
    click.echo(printable(profile_text(found.profile)))
    for row in islice((row for row in read_any(path, None, found.names, name=name) if row.case or row.problems), 2):
        for line in (*map(str, row.problems), *(_as_read(row.case) if row.case else ())):
            click.echo(printable(line))
    options = " ".join(f"--map {shlex.quote(f'{field}={key}')}" for field, key in found.names.items())
    if save is not None:
        save.write_text(profile_text(found.profile), encoding="utf-8")
        options = f"--map {save}"
    say(f"Import it: masis import {name} {options}")


def _facts(case: Case) -> Counter[str]:
    return Counter(
        {
            "read as cases": 1,
            "with an answer": case.answer is not None,
            "without an answer, which an audit drafts": case.answer is None,
            "chunks of evidence": len(case.evidence),
            "chunks without text": len(case.without_text),
            "with labels": case.labels is not None,
            "with citations beside the answer": bool(case.given_citations),
        }
    )


def _as_read(case: Case) -> Iterator[str]:
    """Yield a case as lines: what was read as what."""
    answer = "none: an audit drafts one" if case.answer is None else shortened(" ".join(case.answer.split()), _WIDE)
    yield f"id        {shortened(case.id, _WIDE)}"
    yield f"question  {shortened(' '.join(case.query.split()), _WIDE)}"
    yield f"answer    {answer}"
    for chunk in case.evidence[:2]:
        yield f"evidence  [{shortened(chunk.id, 20)}] {shortened(' '.join(chunk.text.split()), _WIDE)}"
    if len(case.evidence) > 2:
        yield f"          and {len(case.evidence) - 2:,} more"
    yield ""


def _import_cases(
    path: Path,
    name: str,
    profile: Profile | str | None,
    names: FieldMap,
    workbench: Workbench,
    errors: ErrorReport,
    *,
    as_json: bool,
) -> None:
    progress = Progress("Importing", path.stat().st_size)
    added = unchanged = refused = 0
    noted = False
    try:
        with progress:
            for step in workbench.imports.add_file(operator(), path, profile, names, name=name):
                added, unchanged, refused = step.added, step.unchanged, step.refused
                progress.move(step.end, f"{step.rows:,} read")
                for problem in step.problems:
                    errors.add(problem if isinstance(problem, InputError) else f"{name}: {problem}")
                if step.notes and not noted:
                    noted = True
                    progress.say(f"{step.notes[0]} (Said once a file.)")
    finally:
        if as_json:
            click.echo(json.dumps({"file": name, "imported": added, "there_already": unchanged, "refused": refused}))
        there = f", {counted(unchanged, 'case')} there already" if unchanged else ""
        say(f"{name}: {counted(added, 'case')} imported{there}.")
