"""What is said while an older database is brought up to date: a minute or so where it holds 100,000 runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from masis.cli.output import Progress, say
from masis.services import Workbench
from masis.services.records import Unguarded, Upgrade
from masis.settings import Settings


def opened_telling(database: Path, settings: Settings, *, unguarded: Unguarded = "refuse") -> Workbench:
    """The workbench on a database, made or migrated where need be; who waits for that hears why, and how long yet."""
    with _telling(database) as told:
        return Workbench.open(database, settings, unguarded=unguarded, on_upgrade=told)


@contextmanager
def _telling(database: Path) -> Iterator[Callable[[Upgrade], None]]:
    with ExitStack() as bars:
        bar: Progress | None = None
        first = True

        def told(now: Upgrade) -> None:
            nonlocal bar, first
            if first:
                say(
                    f"{database} was made by an older version and is brought up to date now, once. Ctrl-C undoes what "
                    "is not done yet, and loses nothing."
                )
                first = False
            if bar is None and now.total:
                bar = bars.enter_context(Progress(f"Step {now.step} of {now.steps}", now.total))
            if bar is not None:
                bar.move(now.done, f"{now.done:,} of {now.total:,} runs")
            if now.done == now.total:
                bars.pop_all().close()
                bar = None

        yield told
