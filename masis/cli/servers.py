"""Commands that run servers (``masis demo``, ``serve``, ``ingest``, ``mcp``), and ``person``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from masis.cli import options as shared
from masis.cli.commands import Command, JobFailed
from masis.cli.options import Names
from masis.cli.output import ProgressBar, say
from masis.errors import OtherSchema, SettingsError
from masis.observers.telemetry import send_telemetry
from masis.schema.actor import ROLES
from masis.schema.extras import require
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.arrivals.ingestion import ProgramSource, audit_settings, read_sources
from masis.services.arrivals.ingestion import new_token as token_and_digest
from masis.services.demo_database import Planned, fill_demo
from masis.settings import database_path, demo_database_path, sources_file
from masis.settings.hosts import AllowedHosts, is_loopback
from masis.settings.sign_in import SignIn, name_problem, new_secret

if TYPE_CHECKING:
    from masis.ui.shell.reach import Reach

port_option = click.option(
    "--port",
    type=click.IntRange(1, 65535),
    metavar="N",
    help="The port. Default: 8501, or the next free one.",
)


@click.command(cls=Command)
@click.option(
    "--reset", is_flag=True, help="Start over and delete every run and decision of the demo."
)
@port_option
@click.option("--no-browser", is_flag=True, help="Don't open a browser.")
@click.option(
    "--db",
    type=shared.PATH,
    metavar="PATH",
    help="The demo's database. Default: demo.db in your data folder.",
)
def demo(reset: bool, port: int | None, no_browser: bool, db: Path | None) -> None:
    """Open the workbench with demo cases, without a key, a network or any setup.

    The demo has its own database, so yours isn't changed.

      masis demo
      masis demo --reset --port 9000
    """
    database = db or demo_database_path()
    if reset and db is not None:
        raise click.UsageError(
            f"--reset deletes only the demo's own database. Remove {db} yourself, or leave --db"
            " out."
        )
    if reset:
        # SQLite keeps -wal and -shm files next to a database, and warns against leaving them to
        # another database of the same name (sqlite.org/howtocorrupt.html).
        for suffix in ("", "-wal", "-shm"):
            database.with_name(database.name + suffix).unlink(missing_ok=True)
    try:
        workbench = shared.open_workbench(database)
    except OtherSchema as error:
        if db is not None:
            raise
        raise JobFailed(
            f"{database} was created by a development version of the workbench. Start over with"
            " `masis demo --reset`, which deletes the runs and decisions of the demo."
        ) from error
    _prepare_demo(workbench)
    _open_workbench(database, port, browser=not no_browser)


@click.command(cls=Command)
@port_option
@click.option(
    "--address",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on. An address that others can reach needs --sign-in or "
    "--insecure.",
)
@click.option(
    "--allow-host",
    "allow_hosts",
    multiple=True,
    metavar="NAME",
    help="A host name or address that others use. Can be repeated. Requests to other hosts are"
    " refused. "
    " [default: only 127.0.0.1, localhost and ::1]",
)
@click.option(
    "--sign-in",
    type=shared.FILE,
    metavar="FILE",
    help="Require sign-in with this file, which lists people with their roles or an OpenID"
    " Connect provider.",
)
@click.option(
    "--insecure",
    is_flag=True,
    help="Allow access from other machines without sign-in. Every page shows a warning.",
)
@click.option(
    "--sources",
    type=shared.FILE,
    metavar="PATH",
    help="Also receive cases from the programs of this file, at /v1/cases (docs/ingestion.md).",
)
@click.option("--browser/--no-browser", help="Open a browser.  [default: no-browser]")
@shared.database_option
def serve(
    port: int | None,
    address: str,
    allow_hosts: Names,
    sign_in: Path | None,
    insecure: bool,
    sources: Path | None,
    browser: bool,
    db: Path | None,
) -> None:
    """Open the workbench with your own cases.

      masis serve
      masis serve --db review.db --port 9000
      masis serve --address 0.0.0.0 --allow-host audits.example.org --sign-in people.toml

    If retention_auto is set, audits past their retention period are removed at the start and then
    once a day. If backup_folder is set, backups are made at the start and then every backup_hours.
    GET /healthz and /health.json report the state of the server. docs/running.md explains all of
    this; docs/security.md explains who can reach the server.
    """
    from masis.services.arrivals import webhook
    from masis.services.maintenance import backups as of_backups
    from masis.services.maintenance import retention as of_retention
    from masis.ui.shell.reach import Reach

    reach = Reach(address, allow_hosts, insecure, SignIn(sign_in) if sign_in else None)
    reach.check()
    database = database_path(db)
    workbench = shared.open_workbench(database)
    retention = of_retention.start_automatic(workbench.retention, workbench.settings)
    if retention is not None:
        say(
            "Automatic retention is on. Audits that ended over"
            f" {workbench.settings.retention_days} days ago are removed."
        )
    backups = of_backups.start_automatic(workbench.backups, workbench.settings)
    if backups is not None:
        say(
            f"Backups go to {workbench.settings.backup_folder}, every"
            f" {workbench.settings.backup_hours} hours."
        )
    known = None if sources is None else read_sources(sources_file(sources))
    calls = webhook.start(workbench) if known else None
    try:
        _open_workbench(database, port, reach, browser=browser, sources=known)
    finally:
        # end() waits for the work in progress, so that no backup or purge is cut off.
        for automatic in filter(None, (retention, backups, calls)):
            automatic.end()


def _prepare_demo(workbench: Workbench) -> None:
    """Add missing audits and decisions to the demo's database, which takes seconds only once."""
    with send_telemetry(workbench.settings), ProgressBar("Auditing the demo cases") as progress:

        def watched(audits: list[Planned]) -> Iterator[Planned]:
            progress.total = len(audits)
            for done, planned in enumerate(audits, 1):
                yield planned
                progress.move(done, planned[0].id)

        filled = fill_demo(workbench, shared.operator(), watched)
    if filled.decisions:
        say(
            f"Added {count_noun(filled.decisions, 'decision')} of simulated reviewers, marked as"
            " simulated."
        )
    say(f"Ran {count_noun(filled.audits, 'audit')} of demo cases. Database: {workbench.database}.")


def _open_workbench(
    database: Path,
    port: int | None,
    reach: Reach | None = None,
    *,
    browser: bool,
    sources: Mapping[str, ProgramSource] | None = None,
) -> None:
    from masis.ui.shell.reach import ONLY_HERE

    # imported here because Streamlit takes a second to import, which --help must not wait for
    from masis.ui.shell.serve import launch

    if status := launch(database, port, reach or ONLY_HERE, open_browser=browser, sources=sources):
        raise click.exceptions.Exit(status)


@click.command(cls=Command)
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    required=True,
    help="The person's role; docs/security.md lists the rights of each.",
)
@click.option(
    "--no-secret",
    is_flag=True,
    help="Leave out the secret, for a person who signs in with a provider.",
)
def person(name: str, role: str, no_secret: bool) -> None:
    """Print a person's entry for the sign-in file, and a new secret for them.

    The entry is written to stdout. The secret is shown once, on stderr; the entry has only its
    digest.

      masis person "Ada Lovelace" --role reviewer >> people.toml
      masis serve --sign-in people.toml
    """
    if (problem := name_problem(name)) is not None:
        raise click.BadParameter(f"{name!r}: {problem}.", param_hint="NAME")
    # A JSON string is a TOML basic string too: both have the same escapes.
    lines = [f"[people.{json.dumps(name, ensure_ascii=False)}]", f'role = "{role}"']
    if not no_secret:
        person_secret = new_secret()
        lines.append(f'secret = "{person_secret.digest}"')
        say(f"The secret of {name}, shown only once: {person_secret.text}")
    click.echo("\n".join(lines) + "\n")


@click.command(cls=Command)
@click.option("--address", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", default=8700, show_default=True)
@click.option(
    "--sources", type=shared.FILE, metavar="PATH", help="The file of sources, described below."
)
@click.option(
    "--allow-host",
    "allowed",
    multiple=True,
    metavar="NAME",
    help="A host name that programs use. Can be repeated.",
)
@click.option(
    "--insecure",
    is_flag=True,
    help="Allow unencrypted HTTP from other machines. Prefer a TLS proxy in front.",
)
@click.option(
    "--new-token",
    metavar="SOURCE",
    help="Print a new token for a source and its entry for the file, then exit.",
)
@shared.log_options
@shared.database_option
def ingest(
    address: str,
    port: int,
    sources: Path | None,
    allowed: Names,
    insecure: bool,
    new_token: str | None,
    db: Path | None,
) -> None:
    """Receive cases from programs over HTTP and audit them.

    A program sends cases with POST /v1/cases and polls the address in the 202 response for the
    results.

    The sources are listed in a TOML file (--sources, otherwise MASIS_SOURCES, otherwise
    masis.sources.toml) with the digest of their token, their limits, and the rules that select
    which of their cases are queued. The ingest settings choose the models and the daily budget; the
    webhook settings name the address to notify when a case needs review or is decided. See
    docs/ingestion.md.

      masis ingest --new-token chatbot >> masis.sources.toml
      masis ingest --db review.db
    """
    if new_token is not None:
        # Only these characters are allowed in a bare key of TOML.
        if not new_token.replace("-", "").replace("_", "").isalnum() or not new_token.isascii():
            raise click.UsageError("--new-token: name the source with letters, digits, - and _.")
        token, digest = token_and_digest()
        click.echo(f'[sources.{new_token}]\ntoken_sha256 = "{digest}"')
        say(f"The token of {new_token}, shown only once: {token}")
        return

    require(
        "Receiving cases over HTTP needs packages that aren't installed",
        "web",
        "starlette",
        "uvicorn",
    )
    import uvicorn

    from masis.server.ingestion import application
    from masis.services.arrivals import webhook
    from masis.services.jobs import Jobs, WorkerProcess

    if not is_loopback(address) and not insecure:
        raise SettingsError(
            f"--address {address}: tokens and text would travel unencrypted. Listen on 127.0.0.1"
            " behind a proxy that adds TLS, or pass --insecure."
        )
    known_sources = read_sources(sources_file(sources))
    workbench = shared.open_workbench(database_path(db))
    auditing = audit_settings(workbench.settings)
    # The module is named, because the worker process imports it.
    jobs = Jobs(workbench, lambda database: WorkerProcess(database, "masis.ui.shell.worker"))
    if auditing is not None:
        # audit the cases that arrived before the start; an unknown price is reported here
        jobs.audit_arrived(auditing)
    calls = webhook.start(workbench)
    say(
        f"Database: {workbench.database}. {count_noun(len(known_sources), 'source')}: "
        f"{', '.join(known_sources)}."
    )
    say(f"Receiving cases at http://{address}:{port}/v1/cases. Press Ctrl-C to stop.")
    if auditing is None:
        say("Cases are stored without an audit (ingest_model = off).")
    else:
        say(f"Models: {', '.join(sorted(set(auditing.models().values())))}.")
    audit_more = partial(jobs.audit_arrived, auditing) if auditing else None
    served = application(workbench.ingestion, known_sources, AllowedHosts(allowed), audit_more)
    try:
        # log_config=None, because uvicorn would otherwise configure logging itself
        uvicorn.run(served, host=address, port=port, log_config=None, access_log=False)
    # uvicorn calls sys.exit if it can't listen on the address.
    except SystemExit as error:
        raise JobFailed(
            f"{address}:{port}: can't listen on this address. Is the port in use?"
        ) from error
    except KeyboardInterrupt:
        return
    finally:
        jobs.close()
        if calls is not None:
            calls.end()
