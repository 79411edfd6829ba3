"""Commands on a team's server (``--url``), with the results and errors of the same commands on a
file; and personal tokens.
"""

from __future__ import annotations

import functools
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from masis.cli import options as shared
from masis.cli.commands import Command, CommandGroup, JobFailed
from masis.cli.options import FileOptions
from masis.cli.output import Emit, ErrorReport, ProgressBar, say, table
from masis.cli.worst_answers import WorstAnswers
from masis.datasets.exports.export import Selection
from masis.datasets.mapping.reader import read_any
from masis.datasets.writers.files import whole_file
from masis.datasets.writers.lines import write_line
from masis.errors import InputError, ResultsHidden
from masis.schema.actor import ROLES, Actor, Role
from masis.schema.base import utc_now
from masis.schema.case import Case
from masis.schema.run import Run
from masis.schema.tokens import ApiToken
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.desk import Desk
from masis.services.remote_desk import TOKEN, RemoteDesk
from masis.services.tokens import DEFAULT_DAYS, MOST_DAYS
from masis.settings import secret
from masis.settings.sign_in import name_problem


def desk_options(command: shared.Body) -> shared.Body:
    """Add ``--by``, ``--db``, ``--url`` and ``--insecure``, passed as ``desk``."""

    @click.option("--by", metavar="NAME", help="The reviewer. Default: your login name.")
    @shared.database_option
    @shared.url_option
    @shared.insecure_option
    @functools.wraps(command)
    def call(
        by: str | None, db: Path | None, url: str | None, insecure: bool, **arguments: Any
    ) -> None:
        if url is not None:
            with open_server(url, by, insecure=insecure) as desk:
                command(desk=desk, **arguments)
            return
        workbench = shared.open_existing(db)
        command(desk=Desk(workbench, reviewer=shared.operator(by).name), **arguments)

    return call


def open_server(url: str, by: str | None = None, *, insecure: bool = False) -> RemoteDesk:
    """Return the desk on a server for a command.

    Raises:
        click.UsageError: Options of a file are given as well.
        SettingsError: The address can't be used.

    """
    given = shared.given_options()
    if "url" in given and "db" in given:
        raise click.UsageError("--db and --url: give one of the two.")
    if by is not None and secret(TOKEN) is not None:
        raise click.UsageError("--by: the token names its owner. Leave it out.")
    # On a server without sign-in the name is what a person gives, as on the pages.
    reviewer = None if secret(TOKEN) is not None else shared.operator(by).name
    return RemoteDesk(url, reviewer=reviewer, insecure=insecure)


OF_SERVER = frozenset(
    (
        *("cases", "url", "insecure", "profile_name", "maps", "sheet", "system"),
        *("out", "again", "limit", "emit"),
    )
)
"""The parameters of ``masis audit`` that can be used with ``--url``."""


def audit_on_server(
    url: str,
    cases: str,
    reading: FileOptions,
    *,
    insecure: bool,
    out: str | None,
    again: bool,
    limit: int | None,
    emit: Emit,
) -> None:
    """Add the cases of a file to a server, have it audit them, and show the worst answers.

    Raises:
        click.UsageError: An option is given that only a local audit has.
        JobFailed: Some lines couldn't be read or audited.

    """
    for name, written in shared.given_options().items():
        if name not in OF_SERVER:
            raise click.UsageError(f"{written}: the server's settings apply. Leave it out.")
    file = shared.existing_file(cases)
    to = None if out is None else shared.writable_file(out)
    source = sys.stdin.buffer if file == shared.STDIO else file
    errors = ErrorReport()
    read: list[Case] = []
    try:
        rows = read_any(
            source,
            reading.profile,
            reading.names,
            sheet=reading.sheet,
            system=reading.system,
        )
        for row in rows:
            errors.add_all(row.problems)
            if row.case is not None and (limit is None or len(read) < limit):
                read.append(row.case)
    except InputError as error:
        errors.add(error)
    worst, hidden = WorstAnswers(emit, stdout_has_runs=to == shared.STDIO), 0
    runs: list[Run] = []
    with open_server(url, insecure=insecure) as desk, ProgressBar("Auditing", len(read)) as bar:
        conflicts = {conflict.case: conflict.message for conflict in desk.add(read)}
        errors.add_all(conflicts.values())
        stored = [case for case in read if case.id not in conflicts]
        for number, (case, result) in enumerate(desk.audit_stored(stored, again=again), 1):
            if isinstance(result, Run):
                worst.add(case, result, desk.show(case.id).summary)
                runs.append(result)
            elif isinstance(result, ResultsHidden):
                hidden += 1
            else:
                errors.add(f"case {case.id!r}: {result}")
            bar.move(number, f"{number:,} audited")
    if to is not None:
        with whole_file(to) as stream:
            for run in runs:
                write_line(run.model_dump_json(), stream)
    worst.show()
    done = len(runs) + hidden
    say(f"{count_noun(done, 'case')} audited at {url}.")
    if hidden:
        say(f"The policy hides the results of {count_noun(hidden, 'case')} until you decide.")
    errors.end("Everything else is stored." if done else "Nothing was audited.")


def export_from_server(
    url: str, form: str, out: Path, selection: Selection, *, insecure: bool, encoding: str | None
) -> None:
    """Write an export of a server to a file or folder.

    Raises:
        click.UsageError: The export can't be written to stdout, or an option isn't possible.

    """
    given = shared.given_options()
    for name in ("manifest", "shares"):
        if name in given:
            raise click.UsageError(f"{given[name]}: isn't possible with --url. Leave it out.")
    if out == shared.STDIO:
        raise click.UsageError("--url: name a file with --out.")
    # An export has neither pages nor an order.
    filters = selection.cases.model_dump(exclude_defaults=True, exclude={"page", "size", "order"})
    with open_server(url, insecure=insecure) as desk:
        desk.export(form, out, encoding=encoding, split=selection.split, any_state=True, **filters)
    say(f"The export is in {out}.")


@click.group(cls=CommandGroup)
def token() -> None:
    """Create, list and revoke personal tokens for programs that use the JSON API (docs/api.md).

    masis token create "nightly import" --by "Ada Lovelace" --role reviewer
    masis token list
    masis token revoke 8c21d4
    """


role_option = click.option(
    "--role",
    type=click.Choice(ROLES),
    required=True,
    help="The maximum role of the token. It never exceeds the owner's current role.",
)


@token.command(cls=Command, short_help="Create a token for a person of the sign-in file.")
@click.argument("label")
@click.option("--by", metavar="NAME", help="The person that the token acts for.", required=True)
@role_option
@click.option(
    "--days",
    type=click.IntRange(1, MOST_DAYS),
    default=DEFAULT_DAYS,
    show_default=True,
    metavar="N",
    help="How long it is valid.",
)
@shared.workbench_option
@shared.json_option
def create(label: str, by: str, role: Role, days: int, workbench: Workbench, emit: Emit) -> None:
    """Create a token for a person of the sign-in file. LABEL describes its purpose.

    The token is printed once, on stdout. Only its digest is stored.

      masis token create "nightly import" --by "Ada Lovelace" --role reviewer
      MASIS_TOKEN=masis_... masis queue --url https://audits.example.org

    It never has more rights than its owner has at the moment of a request.
    """
    if (problem := name_problem(by)) is not None:
        raise click.BadParameter(f"{by!r}: {problem}.", param_hint="--by")
    created = workbench.tokens.create(Actor(name=by), label, role=role, days=days)
    emit({"text": created.text, **created.token.model_dump()}, [created.text])
    say(
        f"The token {created.token.id} acts for {by}, with at most the role {created.token.role},"
        f" until {created.token.expires_at[:10]}. Store it now; it can't be shown again. A server"
        " with --sign-in accepts it as long as its file lists this name."
    )


@token.command("list", cls=Command, short_help="List all tokens, without their secret text.")
@shared.workbench_option
@shared.json_option
def list_tokens(workbench: Workbench, emit: Emit) -> None:
    """List all tokens, newest first, without their secret text.

    masis token list
    """
    tokens = workbench.tokens.list_for(shared.operator())
    if not tokens:
        say("There are no tokens. Create one with 'masis token create'.")
    now = utc_now()
    rows = [
        (token.id, token.owner, token.role, status_of(token, now), (token.used_at or "never")[:16])
        for token in tokens
    ]
    emit(list(tokens), table(("token", "owner", "role", "status", "last used"), rows))


def status_of(token: ApiToken, now: str) -> str:
    """Return whether a token is valid, and until when, in words."""
    if token.revoked_at is not None:
        return f"revoked {token.revoked_at[:10]}"
    return f"until {token.expires_at[:10]}" if token.is_valid(now) else "expired"


@token.command(cls=Command, short_help="Revoke tokens by their ids.")
@click.argument("tokens", nargs=-1, required=True, metavar="TOKEN...")
@shared.by_option
@shared.workbench_option
@shared.json_option
def revoke(tokens: tuple[str, ...], by: str | None, workbench: Workbench, emit: Emit) -> None:
    """Revoke tokens by their ids, which 'masis token list' shows.

    A server refuses the next request with them.

    masis token revoke 8c21d4
    """
    # Every id is checked first, so that a typo in the last one revokes nothing.
    known = {token.id for token in workbench.tokens.list_for(shared.operator(by))}
    if missing := [name for name in tokens if name not in known]:
        raise JobFailed(f"There is no token {missing[0]!r}. 'masis token list' shows their ids.")
    revoke_one = partial(workbench.tokens.revoke, shared.operator(by))
    revoked = [revoke_one(name) for name in tokens]
    emit(revoked, [f"{token.id}  revoked" for token in revoked])
