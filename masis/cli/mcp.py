"""``masis mcp``: the tools of the workbench for agents, over the Model Context Protocol."""

from __future__ import annotations

import logging
import socket
import sys
from pathlib import Path

import click

from masis.api.roles import check_models
from masis.cli.group import JobFailed
from masis.cli.log import Lines, log_option, measured
from masis.cli.options import chosen_settings, database_option, settings_options
from masis.cli.output import say
from masis.services import Workbench
from masis.settings import database_path, secret

TOKEN = "MASIS_MCP_TOKEN"  # noqa: S105 (the name of the variable)
PORT = 8765


@click.command()
@click.option(
    "--transport",
    type=click.Choice(["stdio", "http"]),
    default="stdio",
    show_default=True,
    help="stdio: for a client that starts this command. http: streamable HTTP at /mcp.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen, with http.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="With http; 0 takes a free one, which is shown on stderr.",
)
@click.option(
    "--allow-host",
    "allowed",
    metavar="NAME",
    multiple=True,
    help="A host name by which others reach the server, with http. Without one it listens to this machine only; with "
    "one it also needs a secret, in MASIS_MCP_TOKEN. May be repeated.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 64),
    metavar="N",
    help="How many audits at once. Default: 2; with models, as many as calls go to a provider, at least 4.",
)
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="What calls to models may cost until the server ends; then no tool asks one. Prices: docs/models.md.",
)
@settings_options
@database_option
@log_option
@click.pass_context
def mcp(
    context: click.Context,
    transport: str,
    host: str,
    port: int,
    allowed: tuple[str, ...],
    concurrency: int | None,
    max_cost: float | None,
    models: tuple[str, ...],
    assignments: tuple[str, ...],
    db: Path | None,
) -> None:
    """Serve the tools of the workbench to agents, over the Model Context Protocol: reading and auditing, no deciding.

    Tools: critique_answer, audit_citations, verify_claims, run_audit, get_run, get_case, list_queue, search_evidence.
    Runs and cases are resources.

    \b
      masis mcp                                            over stdin and stdout
      masis mcp --db review.db --model openai              who judges is chosen here, not by the agent
      masis mcp --transport http --port 8765               at http://127.0.0.1:8765/mcp
      MASIS_MCP_TOKEN=... masis mcp --transport http --host 0.0.0.0 --allow-host audits.example.org

    Over stdin and stdout it ends, with exit code 0, when its input ends. Ctrl-C ends it too; an audit under way is then
    resumed by the same call later.

    Needs the extra mcp: pip install '.[mcp]'.
    """  # noqa: D301 (click reads the backspace)
    from masis.integrations import mcp as integration  # --help need not wait for it

    settings = chosen_settings(models, assignments)
    check_models(settings)  # a model that nothing answers to is wrong use, not a failure of each call
    integration.require()
    from masis.integrations.mcp import transports
    from masis.integrations.mcp.server import MasisServer, audits_at_once

    configured = secret(TOKEN)
    token = configured.get_secret_value() if configured else None
    if transport == "http":
        transports.check_address(host, allowed, token)
    workbench = Workbench.open(database_path(db), settings)
    _log_of_the_sdk()
    context.with_resource(measured(settings))
    listener = _listening(host, port) if transport == "http" else None
    server = MasisServer(workbench, concurrency or audits_at_once(workbench), max_cost)
    judges = ", ".join(sorted(set(settings.models().values())))
    say(f"Database: {workbench.database}. Judges: {judges}.")
    if listener is None:
        if sys.stdin.isatty():
            say("Waiting for a client on stdin, which is a terminal: docs/mcp.md says how clients start this. Ctrl-C.")
        context.exit(transports.serve_stdio(server))
    say(f"Serving at {transports.address(listener)}")
    context.exit(transports.serve_http(server, listener, allowed, token))


def _listening(host: str, port: int) -> socket.socket:
    from masis.integrations.mcp import transports

    try:
        return transports.listening(host, port)
    except OSError as error:
        cure = "Is the port taken? --port 0 takes a free one."
        raise JobFailed(f"{host}:{port}: can't listen there ({error.strerror}). {cure}") from error


def _log_of_the_sdk() -> None:
    """Send the SDK's warnings to our log; at lower levels it repeats texts, so those are left out."""
    for name in ("mcp", "uvicorn"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.WARNING)
        logger.propagate = False
        logger.handlers = [each for each in logging.getLogger("masis").handlers if isinstance(each, Lines)]
