"""``masis mcp`` serves the workbench's tools to agents."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Literal

import click

from masis.api.roles import check_models
from masis.cli import options as shared
from masis.cli.commands import Command, JobFailed
from masis.cli.options import Judges, Names
from masis.cli.output import LogLines, say
from masis.observers.telemetry import send_telemetry
from masis.schema.extras import require
from masis.services import Workbench
from masis.settings import database_path, secret

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
    help="The maximum cost of model calls until the server ends. When it is reached, tools stop"
    " calling models. Prices: docs/models.md.",
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
    """Serve the workbench's tools to agents over the Model Context Protocol.

    Agents can read cases and audit answers, but not decide. The tools are critique_answer,
    audit_citations, verify_claims, run_audit, get_run, get_case, list_queue and search_evidence.
    Runs and cases are resources.

      masis mcp                                            over stdin and stdout
      masis mcp --db review.db --model openai              you choose the models, not the agent
      masis mcp --transport http --port 8765               at http://127.0.0.1:8765/mcp
      MASIS_MCP_TOKEN=... masis mcp --transport http --host 0.0.0.0 --allow-host audits.example.org

    With stdio, the server exits with code 0 when its input ends. Ctrl-C stops it too; if an audit
    is interrupted, the same call resumes it later.

    Needs the extra mcp: pip install '.[mcp]'.
    """
    settings = judges.load().settings
    # An unknown model is reported once as wrong usage, instead of on every call.
    check_models(settings)
    require("The MCP server needs a package that isn't installed", "mcp", "mcp")
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
    say(f"Database: {workbench.database}. Models: {judging}.")
    if listener is None:
        if sys.stdin.isatty():
            say(
                "Waiting for an MCP client on stdin, but stdin is a terminal (docs/frameworks.md)."
                " Press Ctrl-C to stop."
            )
        context.exit(transports.serve_stdio(server))
    say(f"Serving at {transports.address(listener)}")
    context.exit(transports.serve_http(server, listener, allowed, token))
