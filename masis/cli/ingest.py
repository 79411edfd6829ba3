"""``masis ingest``: take cases from programs over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from masis.cli.group import JobFailed
from masis.cli.options import database_option, open_workbench
from masis.cli.output import say
from masis.errors import SettingsError
from masis.schema.wording import counted
from masis.services.ingestion import Source, new_token
from masis.settings import database_path, sources_file
from masis.settings.hosts import AllowedHosts, is_loopback

PORT = 8700


@click.command()
@click.option("--address", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(1, 65535), default=PORT, show_default=True)
@click.option("--sources", type=click.Path(path_type=Path, dir_okay=False), help="The file of sources. See below.")
@click.option(
    "--allow-host", "allowed", metavar="NAME", multiple=True, help="A host name by which programs reach it. Repeatable."
)
@click.option("--insecure", is_flag=True, help="Let others send over unencrypted HTTP; else put a TLS proxy before it.")
@click.option("--new-token", metavar="SOURCE", help="Print a token for a source and its entry in the file, and end.")
@database_option
def ingest(
    address: str,
    port: int,
    sources: Path | None,
    allowed: tuple[str, ...],
    insecure: bool,
    new_token: str | None,
    db: Path | None,
) -> None:
    """Take cases from programs over HTTP: POST /v1/cases, polled at the address that the 202 names.

    The sources are in a TOML file (--sources, else MASIS_SOURCES, else masis.sources.toml): for each the digest of its
    token, its limits, and the rules that say which of its cases enter the queue. docs/ingestion.md explains them.

    \b
      masis ingest --new-token chatbot >> masis.sources.toml
      masis ingest --db review.db
    """  # noqa: D301 (click reads the backspace)
    if new_token is not None:
        _print_token(new_token)
        return
    from masis.integrations import web

    web.require()
    import uvicorn

    from masis.integrations.web.app import application

    if not is_loopback(address) and not insecure:
        raise SettingsError(
            f"--address {address}: tokens and texts would travel unencrypted. Listen on 127.0.0.1 behind a proxy that "
            "adds TLS, or say --insecure."
        )
    found = read_sources(sources_file(sources))
    workbench = open_workbench(database_path(db))
    say(f"Database: {workbench.database}. {counted(len(found), 'source')}: {', '.join(found)}.")
    say(f"Taking cases at http://{address}:{port}/v1/cases. Stop it with Ctrl-C.")
    served = application(workbench.ingestion, found, AllowedHosts(allowed))
    try:
        uvicorn.run(served, host=address, port=port, log_config=None, access_log=False)
    except SystemExit as error:
        raise JobFailed(f"{address}:{port}: can't listen there. Is the port taken?") from error
    except KeyboardInterrupt:
        return


def read_sources(written: dict[str, Any]) -> dict[str, Source]:
    """Return the sources of a file by name. Raises SettingsError naming what is wrong with which source."""
    tables = written.get("sources")
    if not isinstance(tables, dict) or not tables:
        raise SettingsError("The file of sources names none. `masis ingest --new-token NAME` prints an entry.")
    found: dict[str, Source] = {}
    for name, values in tables.items():
        try:
            found[name] = Source.model_validate({"name": name, **values})
        except (ValidationError, TypeError) as error:
            first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": "is no table"}
            place = ".".join(map(str, ("sources", name, *first["loc"])))
            raise SettingsError(f"The file of sources, {place}: {first['msg']}.") from error
    if len({source.token_sha256 for source in found.values()}) < len(found):
        raise SettingsError("The file of sources: two sources have one token. Give each its own.")
    return found


def _print_token(name: str) -> None:
    token, digest = new_token()
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise click.UsageError("--new-token: name the source with letters, digits, - and _.")
    click.echo(f'[sources.{name}]\ntoken_sha256 = "{digest}"')
    say(f"The token of {name}, shown once: {token}")
