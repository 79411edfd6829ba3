"""Commands that run until stopped (``masis demo``, ``serve``, ``ingest``, ``mcp``), and ``person``
for sign-in.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from masis.api.roles import check_models
from masis.cli import options as shared
from masis.cli.commands import Command, JobFailed
from masis.cli.options import Judges, Names
from masis.cli.output import LogLines, ProgressBar, say, send_telemetry
from masis.errors import OtherSchema, SettingsError
from masis.integrations import require
from masis.schema.actor import ROLES
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.arrivals.ingestion import ProgramSource, audit_settings, read_sources
from masis.services.arrivals.ingestion import new_token as token_and_digest
from masis.services.demo_database import Planned, fill_demo
from masis.settings import database_path, demo_database_path, secret, sources_file
from masis.settings.hosts import AllowedHosts, is_loopback
from masis.settings.sign_in import SignIn, name_problem, new_secret

if TYPE_CHECKING:
    from masis.ui.shell.reach import Reach

port_option = click.option(
    "--port",
    type=click.IntRange(1, 65535),
    metavar="N",
    help="Default: 8501, or the next free one.",
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
    """Open the workbench on cases written to show it: no key, no network, nothing to set up.

    The demo has a database of its own; yours is not touched.

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
        for suffix in ("", "-wal", "-shm"):  # with the files that SQLite keeps beside it
            database.with_name(database.name + suffix).unlink(missing_ok=True)
    try:
        workbench = shared.open_workbench(database)
    except OtherSchema as error:
        if db is not None:
            raise
        raise JobFailed(
            f"{database}: was made by a development version of the workbench. Start over with"
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
@click.option("--insecure", is_flag=True, help="Let others in without sign-in. Every page says so.")
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
    """Open the workbench on your own cases.

      masis serve
      masis serve --db review.db --port 9000
      masis serve --address 0.0.0.0 --allow-host audits.example.org --sign-in people.toml

    With the setting retention_auto, what is past its time is removed at the start and once a day
    (docs/running.md). With backup_folder, backups are made at the start and every backup_hours
    (docs/running.md). GET /healthz and /health.json say how the server is (docs/running.md). Who
    can reach it: docs/security.md.
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
        for automatic in filter(None, (retention, backups, calls)):
            automatic.end()


def _prepare_demo(workbench: Workbench) -> None:
    """Add what is missing from the demo's database and say so. This takes seconds the first time
    only.
    """
    with send_telemetry(workbench.settings), ProgressBar("Auditing the demo cases") as progress:

        def watched(audits: list[Planned]) -> Iterator[Planned]:
            progress.total = len(audits)
            for done, planned in enumerate(audits, 1):
                yield planned
                progress.move(done, planned[0].id)

        filled = fill_demo(workbench, shared.operator(), watched)
    if filled.decisions:
        say(
            f"{count_noun(filled.decisions, 'decision')} of simulated reviewers added, marked as"
            " simulated."
        )
    say(f"{count_noun(filled.audits, 'audit')} of demo cases run. Database: {workbench.database}.")


def _open_workbench(
    database: Path,
    port: int | None,
    reach: Reach | None = None,
    *,
    browser: bool,
    sources: Mapping[str, ProgramSource] | None = None,
) -> None:
    from masis.ui.shell.reach import ONLY_HERE

    # Streamlit takes a second to import, and --help must not wait for it
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
    """Print the entry of a person for the sign-in file, and a new secret for them.

    The entry goes to stdout, the secret to stderr, once: only its digest is in the entry.

      masis person "Ada Lovelace" --role reviewer >> people.toml
      masis serve --sign-in people.toml
    """
    if (problem := name_problem(name)) is not None:
        raise click.BadParameter(f"{name!r}: {problem}.", param_hint="NAME")
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
    help="Print a token for a source and its entry in the file, then exit.",
)
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
    """Take cases from programs over HTTP: POST /v1/cases, polled at the address that the 202 names,
    and audit them.

    The sources are in a TOML file (--sources, else MASIS_SOURCES, else masis.sources.toml): for
    each the digest of its token, its limits, and the rules that say which of its cases enter the
    queue. The settings of ingest and webhook say who audits them, for how much a day, and whom to
    call when one needs review or was decided. docs/ingestion.md explains it all.

      masis ingest --new-token chatbot >> masis.sources.toml
      masis ingest --db review.db
    """
    if new_token is not None:
        if not new_token.replace("-", "").replace("_", "").isalnum() or not new_token.isascii():
            raise click.UsageError("--new-token: name the source with letters, digits, - and _.")
        token, digest = token_and_digest()
        click.echo(f'[sources.{new_token}]\ntoken_sha256 = "{digest}"')
        say(f"The token of {new_token}, shown once: {token}")
        return

    require(
        "Taking cases over HTTP needs packages that are not installed",
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
            f"--address {address}: tokens and texts would travel unencrypted. Listen on"
            " 127.0.0.1 behind a proxy that adds TLS, or pass --insecure."
        )
    known_sources = read_sources(sources_file(sources))
    workbench = shared.open_workbench(database_path(db))
    auditing = audit_settings(workbench.settings)
    jobs = Jobs(workbench, lambda database: WorkerProcess(database, "masis.ui.shell.worker"))
    if auditing is not None:
        # audit the cases that arrived before the start; an unknown price is reported here
        jobs.audit_arrived(auditing)
    calls = webhook.start(workbench)
    say(
        f"Database: {workbench.database}. {count_noun(len(known_sources), 'source')}: "
        f"{', '.join(known_sources)}."
    )
    say(f"Taking cases at http://{address}:{port}/v1/cases. Stop it with Ctrl-C.")
    judging = (
        ", ".join(sorted(set(auditing.models().values())))
        if auditing
        else "no model (ingest_model = off)"
    )
    say(f"Audited by {judging}.")
    audit_more = partial(jobs.audit_arrived, auditing) if auditing else None
    served = application(workbench.ingestion, known_sources, AllowedHosts(allowed), audit_more)
    try:
        uvicorn.run(served, host=address, port=port, log_config=None, access_log=False)
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


TOKEN = "MASIS_MCP_TOKEN"  # noqa: S105 (the name of the variable)


@click.command(cls=Command)
@click.option(
    "--transport",
    type=click.Choice(["stdio", "http"]),
    default="stdio",
    show_default=True,
    help="stdio: for a client that starts this command. http: streamable HTTP at /mcp.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address to listen on, with http."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=8765,
    show_default=True,
    help="The port, with http. 0 picks a free one, which is shown on stderr.",
)
@click.option(
    "--allow-host",
    "allowed",
    multiple=True,
    metavar="NAME",
    help="A host name that others use, with http. Without one the server accepts only this"
    " machine; with one it also needs a secret in MASIS_MCP_TOKEN. Can be repeated.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 64),
    metavar="N",
    help="The number of concurrent audits. Default: 2; with models, the number of concurrent"
    " calls to a provider, at least 4.",
)
@click.option(
    "--max-cost",
    type=shared.COST,
    metavar="USD",
    help="The most that model calls may cost until the server ends; after that, tools call no"
    " model. Prices: docs/models.md.",
)
@shared.judges_options
@shared.database_option
@shared.log_options
def mcp(
    transport: Literal["stdio", "http"],
    host: str,
    port: int,
    allowed: Names,
    concurrency: int | None,
    max_cost: float | None,
    judges: Judges,
    db: Path | None,
) -> None:
    """Serve the tools of the workbench to agents, over the Model Context Protocol: reading and
    auditing, no deciding.

    Tools: critique_answer, audit_citations, verify_claims, run_audit, get_run, get_case,
    list_queue, search_evidence. Runs and cases are resources.

      masis mcp                                            over stdin and stdout
      masis mcp --db review.db --model openai              you choose the models, not the agent
      masis mcp --transport http --port 8765               at http://127.0.0.1:8765/mcp
      MASIS_MCP_TOKEN=... masis mcp --transport http --host 0.0.0.0 --allow-host audits.example.org

    Over stdin and stdout it ends, with exit code 0, when its input ends. Ctrl-C ends it too; an
    audit under way is then resumed by the same call later.

    Needs the extra mcp: pip install '.[mcp]'.
    """
    settings = judges.load().settings
    # an unknown model is wrong use, and is reported once instead of on every call
    check_models(settings)
    require("The MCP server needs a package that is not installed", "mcp", "mcp")
    from masis.integrations.mcp import transports
    from masis.integrations.mcp.server import MasisServer, audits_at_once

    configured = secret(TOKEN)
    token = configured.get_secret_value() if configured else None
    if transport == "http":
        transports.check_address(host, allowed, token)
    workbench = Workbench.open(database_path(db), settings)
    # Only the SDK's warnings are logged, because at lower levels its log repeats texts.
    for name in ("mcp", "uvicorn"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.WARNING)
        logger.propagate = False
        logger.handlers = [
            handler
            for handler in logging.getLogger("masis").handlers
            if isinstance(handler, LogLines)
        ]
    context = click.get_current_context()
    context.with_resource(send_telemetry(settings))
    try:
        listener = transports.listening(host, port) if transport == "http" else None
    except OSError as error:
        hint = "Is the port in use? --port 0 picks a free one."
        raise JobFailed(
            f"{host}:{port}: can't listen on this address ({error.strerror}). {hint}"
        ) from error
    server = MasisServer(workbench, concurrency or audits_at_once(workbench), max_cost)
    judging = ", ".join(sorted(set(settings.models().values())))
    say(f"Database: {workbench.database}. Judges: {judging}.")
    if listener is None:
        if sys.stdin.isatty():
            say(
                "Waiting for a client on stdin, which is a terminal (docs/frameworks.md). Stop it"
                " with Ctrl-C."
            )
        context.exit(transports.serve_stdio(server))
    say(f"Serving at {transports.address(listener)}")
    context.exit(transports.serve_http(server, listener, allowed, token))
