"""``masis demo`` and ``masis serve``: the workbench in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from masis.api.roles import pin_versions
from masis.cli.log import measured
from masis.cli.options import database_option, open_workbench, operator
from masis.cli.output import Progress, say
from masis.schema.wording import counted
from masis.services import Workbench, demo_cases, recorded_settings
from masis.settings import database_path, demo_database_path

if TYPE_CHECKING:
    from masis.ui.shell.reach import Reach

_port = click.option("--port", type=click.IntRange(1, 65535), help="Default: 8501, or the next free one.")


@click.command()
@click.option("--reset", is_flag=True, help="Start over: forget every run and decision of the demo.")
@_port
@click.option("--no-browser", is_flag=True, help="Don't open a browser.")
@click.option(
    "--db", type=click.Path(path_type=Path), help="The demo's database. Default: demo.db in your data folder."
)
def demo(reset: bool, port: int | None, no_browser: bool, db: Path | None) -> None:
    """Open the workbench on cases written to show it: no key, no network, nothing to set up.

    The demo has a database of its own; yours is not touched.

    \b
      masis demo
      masis demo --reset --port 9000
    """  # noqa: D301 (click reads the backspace)
    database = db or demo_database_path()
    if reset and db is not None:
        raise click.UsageError(
            f"--reset forgets only the demo's own database. Remove {db} yourself, or leave --db out."
        )
    if reset:
        _forget(database)
    _prepare_demo(open_workbench(database))
    _open(database, port, browser=not no_browser)


@click.command()
@_port
@click.option(
    "--address",
    default="127.0.0.1",
    show_default=True,
    help="Where to listen. Anything but this machine's own address needs --insecure.",
)
@click.option(
    "--allow-host",
    "allow_hosts",
    multiple=True,
    metavar="NAME",
    help="A host name or address that others use; repeat it. Requests to any other are refused.  [default: only "
    "127.0.0.1, localhost and ::1]",
)
@click.option(
    "--sign-in",
    "sign_in",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Let in only who signs in, by this file: people with their roles, or an OpenID Connect provider.",
)
@click.option("--insecure", is_flag=True, help="Let others in without sign-in. Every page says so.")
@click.option("--browser/--no-browser", default=False, help="Open a browser.  [default: no-browser]")
@database_option
def serve(
    port: int | None,
    address: str,
    allow_hosts: tuple[str, ...],
    sign_in: Path | None,
    insecure: bool,
    browser: bool,
    db: Path | None,
) -> None:
    """Open the workbench on your own cases.

    \b
      masis serve
      masis serve --db review.db --port 9000
      masis serve --address 0.0.0.0 --allow-host audits.example.org --sign-in people.toml

    With the setting retention_auto, what is past its time is removed at the start and once a day (docs/running.md).
    With backup_folder, backups are made at the start and every backup_hours (docs/running.md).
    GET /healthz and /health.json say how the server is (docs/running.md). Who can reach it: docs/security.md.
    """  # noqa: D301 (click reads the backspace)
    from masis.services import backups as of_backups
    from masis.services import retention as of_retention
    from masis.settings.sign_in import SignIn
    from masis.ui.shell.reach import Reach

    reach = Reach(address, allow_hosts, insecure, SignIn(sign_in) if sign_in else None)
    reach.check()
    database = database_path(db)
    workbench = open_workbench(database)
    retention = of_retention.start_automatic(workbench.retention, workbench.settings)
    if retention is not None:
        say(f"Retention works by itself: what ended over {workbench.settings.retention_days} days ago goes.")
    backups = of_backups.start_automatic(workbench.backups, workbench.settings)
    if backups is not None:
        say(f"Backups go to {workbench.settings.backup_folder}, every {workbench.settings.backup_hours} hours.")
    try:
        _open(database, port, reach, browser=browser)
    finally:
        for automatic in (retention, backups):
            if automatic is not None:
                automatic.end()


def _prepare_demo(workbench: Workbench) -> None:
    """Bring demo cases and abstracts in, and audit what isn't audited yet: seconds the first time, then nothing.

    They are audited by the replies of a language model that were recorded for them; no model is called.
    """
    workbench.cases.add_demo(operator())
    workbench.corpora.add_demo(operator())
    settings = pin_versions(recorded_settings(workbench.settings))  # as runs are stored: else each start audits again
    new = [case for case in demo_cases() if workbench.audits.needed(case, settings)]
    with measured(workbench.settings), Progress("Auditing the demo cases", len(new)) as progress:
        for done, case in enumerate(new, 1):
            workbench.audits.audit(operator(), case, settings=settings)
            progress.move(done, case.id)
    if simulated := workbench.trust.add_demo(operator()):
        say(f"{counted(simulated, 'decision')} of simulated reviewers added, marked as simulated.")
    say(f"{counted(len(new), 'demo case')} audited now, {workbench.cases.overview().cases:,} in {workbench.database}.")


def _forget(database: Path) -> None:
    """Remove the database with the files SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)


def _open(database: Path, port: int | None, reach: Reach | None = None, *, browser: bool) -> None:
    from masis.ui.shell.reach import ONLY_HERE
    from masis.ui.shell.serve import launch  # Streamlit takes a second to import, and --help must not wait for it

    status = launch(database, port, reach or ONLY_HERE, open_browser=browser)
    if status:
        click.get_current_context().exit(status)
