"""``masis judge``: the judge's guidance beyond the default prompts, in versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import click
from pydantic import ValidationError

from masis.cli import options as shared
from masis.cli.commands import CommandGroup, RegisteredChoice
from masis.cli.judge_alignment import align, compare, hold_out, propose, try_version
from masis.cli.options import Names
from masis.cli.output import Emit, say, table
from masis.errors import InputError
from masis.schema.actor import Actor
from masis.schema.case import Severity
from masis.schema.explain import explain
from masis.schema.judge import (
    CHECK_KINDS,
    FORCES,
    CodeCheck,
    HouseRule,
    JudgeContent,
    JudgeVersion,
    rule_id_from,
)
from masis.schema.rules import ISSUE_TYPES
from masis.schema.wording import count_noun, shorten
from masis.services import Workbench
from masis.services.judge.versions import JudgeService

_TEXT_LENGTH = 80


@click.group(cls=CommandGroup)
def judge() -> None:
    """Tell the judge what this team requires: house rules, severities, and decided cases as
    examples.

      masis judge new "prices 1"
      masis judge rules "prices 1" --add "A price has its currency" --force must --severity high
      masis judge adopt "prices 1"

    A version is a draft until it is adopted or dropped. docs/judge.md explains each step.
    """


def _version_command(command: Callable[..., None]) -> shared.Body:
    """Add ``--by``, ``--json`` and ``--db``."""
    for option in (shared.workbench_option, shared.json_option, shared.by_option):
        command = option(command)
    return command


@judge.command("list", short_help="List the judge versions.")
@_version_command
def list_versions(by: str | None, emit: Emit, workbench: Workbench) -> None:
    """List the judge versions, newest first.

    masis judge list
    masis judge list --json | jq -r 'select(.state == "adopted") | .name'
    """
    versions = workbench.judge.versions(shared.operator(by))
    cells = [
        (
            version.name,
            version.state,
            str(len(version.content.rules)),
            version.author,
            (version.decided_at or version.changed_at)[:10],
        )
        for version in versions
    ]
    emit(list(versions), table(("version", "state", "rules", "author", "date"), cells))
    if not versions:
        say("No judge version yet: audits use the default judge. Start with 'masis judge new'.")


@judge.command(short_help="Show a judge version with its rules.")
@click.argument("name")
@click.option(
    "--cost-of",
    "cases",
    multiple=True,
    metavar="ID",
    help="Also estimate the cost of auditing this case by it. Can be repeated.",
)
@_version_command
def show(name: str, cases: Names, by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Show the judge version NAME with its rules, severities and numbers of examples.

    masis judge show "prices 1"
    masis judge show "prices 1" --cost-of tower-02
    """
    person = shared.operator(by)
    version = workbench.judge.get(person, name)
    _show_judge_version(version, emit)
    if cases:
        cost = workbench.judge.estimate(person, name, cases)
        dollars = "cost unknown" if cost.cost_usd is None else f"${cost.cost_usd:.2f}"
        say(
            f"An audit of {count_noun(len(cases), 'case')} by it needs at most"
            f" {count_noun(cost.calls, 'call')}, {count_noun(cost.tokens, 'token')}, {dollars}."
        )


def _show_judge_version(version: JudgeVersion, emit: Emit) -> None:
    emit(version, _version_lines(version))
    content = version.content
    parts = [
        f"{version.name} is {version.state}",
        count_noun(len(content.rules), "rule"),
        f"{count_noun(len(content.example_cases), 'example')} to choose from",
        f"{count_noun(len(content.held_out), 'question')} held out",
    ]
    say(f"{', '.join(parts)}.")


def _version_lines(version: JudgeVersion) -> Iterator[str]:
    rows = [
        (
            rule.id,
            FORCES[rule.force].words,
            rule.severity or "",
            "" if rule.check is None else CHECK_KINDS[rule.check.kind].words,
            shorten(rule.sentence, _TEXT_LENGTH),
        )
        for rule in version.content.rules
    ]
    if rows:
        yield from table(("rule", "force", "severity", "checked as", "sentence"), rows)
    for row in version.content.severities:
        yield f"severity of {row.type}: {row.severity}"
    if version.content.critic:
        yield f"critic: {version.content.critic}"


@judge.command(short_help="Write a new draft.")
@click.argument("name")
@click.option("--based-on", metavar="NAME", help="The version to copy.")
@click.option(
    "--file",
    "file",
    type=shared.existing_file,
    help="Its content as JSON, as in 'content' of 'masis judge show --json'.",
)
@click.option("--note", default="", metavar="TEXT", help="Why it was written.")
@_version_command
def new(
    name: str,
    based_on: str | None,
    file: Path | None,
    note: str,
    by: str | None,
    emit: Emit,
    workbench: Workbench,
) -> None:
    """Write the new draft NAME: empty, a copy of another version, or from a file.

    masis judge new "prices 2" --based-on "prices 1"
    masis judge new "prices 2" --file judge.json --note "after the pilot"
    """
    content = None
    if file is not None:
        with click.open_file(str(file), "rb") as opened:
            text = opened.read().decode(errors="replace")
        try:
            content = JudgeContent.model_validate_json(text)
        except ValidationError as error:
            raise explain(error) from None
    _show_judge_version(
        workbench.judge.draft(shared.operator(by), name, content, note=note, based_on=based_on),
        emit,
    )


@judge.command(short_help="Show, add and remove the rules of a draft.")
@click.argument("name")
@click.option("--add", "sentence", metavar="TEXT", help="Add a rule with this sentence.")
@click.option(
    "--force",
    type=RegisteredChoice(lambda: FORCES),
    help="The type of the new rule.",
)
@click.option(
    "--severity",
    type=click.Choice(get_args(Severity)),
    help="The severity of its issues; for does_not_matter, the severity to lower issues to.",
)
@click.option("--id", "rule_id", metavar="ID", help="Its id. Default: from the sentence.")
@click.option(
    "--check",
    metavar="KIND=TEXT",
    help=(
        "Check it without a model. KIND is pattern, required_citation, banned_phrase or"
        " maximal_length (TEXT: '200 words')."
    ),
)
@click.option(
    "--about",
    "issue_types",
    type=click.Choice(tuple(ISSUE_TYPES)),
    multiple=True,
    help="A type of issues that a rule with does_not_matter is about. Can be repeated.",
)
@click.option("--breaks", multiple=True, metavar="ID", help="A decided case that breaks it.")
@click.option("--follows", multiple=True, metavar="ID", help="A decided case that follows it.")
@click.option("--remove", multiple=True, metavar="ID", help="Remove the rule with this id.")
@_version_command
def rules(
    name: str,
    sentence: str | None,
    remove: Names,
    by: str | None,
    emit: Emit,
    workbench: Workbench,
    **options: Any,
) -> None:
    r"""Show the rules of the judge version NAME; add rules to a draft, or remove some.

    masis judge rules "prices 1"
    masis judge rules "prices 1" --add "Rounded figures" --force does_not_matter
    masis judge rules "prices 1" --add "No slang" --force must_not --severity low \\
          --check banned_phrase="no worries"
    masis judge rules "prices 1" --remove no-slang
    """
    person, service = shared.operator(by), workbench.judge
    given = [option for option, value in options.items() if value]
    if sentence is None and given:
        raise click.UsageError(f"--{given[0].replace('_', '-')} belongs to --add.")
    if sentence is None and not remove:
        _show_judge_version(service.get(person, name), emit)
        return
    _show_judge_version(_change_rules(service, person, name, sentence, remove, options), emit)


def _change_rules(
    service: JudgeService,
    person: Actor,
    name: str,
    sentence: str | None,
    remove: Names,
    options: dict[str, Any],
) -> JudgeVersion:
    content = service.get(person, name).content
    if unknown := next((rule_id for rule_id in remove if content.rule(rule_id) is None), None):
        raise InputError(
            f"{name!r} has no rule {unknown!r}",
            hint=f"Its rules: {', '.join(rule.id for rule in content.rules) or 'none'}.",
            field="remove",
        )
    remaining = [rule for rule in content.rules if rule.id not in remove]
    if sentence is not None:
        remaining.append(_rule_of(sentence, [rule.id for rule in remaining], **options))
    try:
        changed = JudgeContent.model_validate(
            content.model_dump() | {"rules": [rule.model_dump() for rule in remaining]}
        )
    except ValidationError as error:
        raise explain(error) from None
    return service.change(person, name, changed)


def _rule_of(
    sentence: str,
    taken: list[str],
    *,
    force: str | None,
    severity: str | None,
    rule_id: str | None,
    check: str | None,
    issue_types: Names,
    breaks: Names,
    follows: Names,
) -> HouseRule:
    if force is None:
        raise click.UsageError("--add needs --force.")
    examples = [{"case_id": case_id, "breaks": True} for case_id in breaks]
    examples += [{"case_id": case_id, "breaks": False} for case_id in follows]
    try:
        return HouseRule.model_validate(
            {
                "id": rule_id or rule_id_from(sentence, taken),
                "sentence": sentence,
                "force": force,
                "severity": severity,
                "issue_types": issue_types,
                "check": None if check is None else _check_of(check),
                "examples": examples,
            }
        )
    except ValidationError as error:
        raise explain(error) from None


def _check_of(written: str) -> CodeCheck:
    """Return the check that ``KIND=TEXT`` names.

    Raises:
        UsageError: It names none.

    """
    kind, _, text = written.partition("=")
    row = next((row for name, row in CHECK_KINDS.items() if name == kind), None)
    if row is None:
        raise click.UsageError(f"--check: there is no kind {kind!r}: {', '.join(CHECK_KINDS)}.")
    fields: dict[str, Any] = {"kind": kind, "text": text}
    if row.needs_limit:
        number, _, unit = text.strip().partition(" ")
        fields = {"kind": kind, "limit": number, "unit": unit.strip() or "words"}
    return CodeCheck.model_validate(fields)


@judge.command(short_help="Let audits use a version.")
@click.argument("name")
@_version_command
def adopt(name: str, by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Let audits use the draft or the retired version NAME. The one before is retired.

      masis judge adopt "prices 1"

    Models must retake the exam, and guarantees measured with the previous judge no longer apply.
    """
    _show_judge_version(workbench.judge.adopt(shared.operator(by), name), emit)


@judge.command(short_help="Drop a draft.")
@click.argument("name")
@_version_command
def drop(name: str, by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Drop the draft NAME. It stays on record.

    masis judge drop "prices 1"
    """
    _show_judge_version(workbench.judge.drop(shared.operator(by), name), emit)


@judge.command(short_help="Return to the default judge.")
@click.argument("name")
@_version_command
def retire(name: str, by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Retire the adopted version NAME, so that audits use the default judge again.

    masis judge retire "dates 1"
    """
    _show_judge_version(workbench.judge.retire(shared.operator(by), name), emit)


for _command in (align, propose, hold_out, try_version, compare):
    judge.add_command(_command)
