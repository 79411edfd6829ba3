"""Whether everything an audit and a decision need is in order (``specs/critic-loop.md``, REQ-CRITIC-OBS-005)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from masis import auditor, version
from masis.errors import MasisError, StoreError
from masis.schema.case import Case
from masis.settings import OFFLINE, ROLES, Settings
from masis.steps import validation
from masis.store import Store
from masis.store.opening import RESTORE
from masis.workbench import modules

LEAST_FREE_BYTES = 100_000_000
_MAKE_WRITABLE = "Make file and folder writable, make room on the disk, or name another database with --db or MASIS_DB."


class HealthItem(NamedTuple):
    """One thing that was looked at.

    ``cure`` says what to do where it is not in order; ``absent`` that it is not installed, which is no fault.
    """

    name: str
    ok: bool
    message: str
    cure: str = ""
    absent: bool = False


class HealthReport(NamedTuple):
    """Whether everything the workbench needs is in order."""

    items: tuple[HealthItem, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return all(item.ok for item in self.items)

    def to_json(self) -> dict[str, Any]:
        """As ``masis health --json`` and ``/health.json`` give it (``docs/health.md``)."""
        return {"ok": self.ok, "version": version.APP, "items": [item._asdict() for item in self.items]}


def of_store(store: Store) -> Iterator[HealthItem]:
    """The database, its guards, the decision log, the screening log."""
    check = store.check()
    kept = ", ".join(_counted(count, *_KEPT.get(name, (name, name))) for name, count in check.counts.items())
    yield HealthItem("database", not check.problems, f"{check.path} ({check.bytes / 1e6:.1f} MB): {kept}")
    for problem in check.problems:
        yield HealthItem("database", False, problem, RESTORE)
    yield HealthItem("schema", True, f"{check.schema_version}, the newest; SQLite {check.sqlite_version}")
    yield of_writing(store)
    for name, log in (("decision log", check.log), ("screening log", check.screening_log)):
        message = (
            f"{_counted(log.length, 'entry', 'entries')}, head {log.head[:12]}"
            if log.whole
            else "; ".join(log.broken[:5])
        )
        cure = "" if log.whole else "See what is wrong with `masis verify-log`, and compare with an archive."
        yield HealthItem(name, log.whole, message, cure)


_KEPT = {
    "cases": ("case", "cases"),
    "runs": ("run", "runs"),
    "run_iterations": ("iteration", "iterations"),
    "run_events": ("event of a run", "events of runs"),
    "decision_log": ("entry of the decision log", "entries of the decision log"),
    "corpora": ("corpus", "corpora"),
    "screenings": ("screening", "screenings"),
    "screening_log": ("entry of the screening log", "entries of the screening log"),
}
"""What the store counts, in words: one of it, and several."""


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def of_writing(store: Store) -> HealthItem:
    """Whether the database takes a write: one is made, and stays."""
    tried = store.try_writing()
    return HealthItem("writing", tried.ok, tried.message, "" if tried.ok else _MAKE_WRITABLE)


def of_modules(settings: Settings, *, try_doors: bool) -> Iterator[HealthItem]:
    """Whether every module starts: each role, output validator, evidence critic, the doors to other systems."""
    yield from (HealthItem(*found) for found in modules.roles(settings))
    yield HealthItem(*modules.output_validator(settings))
    yield HealthItem(*modules.evidence_critic())
    yield from (HealthItem(*found) for found in modules.doors(settings, try_them=try_doors))


def unopened(error: StoreError, database: Path, settings: Settings, *, ask_models: bool) -> HealthReport:
    """What can be looked at where the database can't be opened."""
    asked = models_asked(settings) if ask_models else tuple(models_configured(settings))
    parts = (*of_modules(settings, try_doors=ask_models), of_auditor(settings), *asked, of_disk(database))
    return HealthReport((HealthItem("database", False, str(error)), *parts))


def of_auditor(settings: Settings) -> HealthItem:
    """Whether the roles on this machine start and judge a small case as they should."""
    offline = settings.model_copy(update=dict.fromkeys(ROLES, OFFLINE) | {"output_validator": validation.PYDANTIC})
    try:
        run = auditor.run_audit(_SAMPLE, offline)
    except MasisError as error:
        return HealthItem("auditor", False, str(error))
    works = run.best is not None and not run.warnings
    return HealthItem(
        "auditor",
        works,
        "a small case was audited from claims to scores" if works else "; ".join(w.message for w in run.warnings),
    )


def before_the_first_case(database: Path, settings: Settings, *, ask_models: bool) -> HealthReport:
    """What can be looked at while there is no database yet: above all whether the models answer."""
    message = f"There is no database yet; the first import or audit makes {database}."
    models = models_asked(settings) if ask_models else tuple(models_configured(settings))
    parts = (*of_modules(settings, try_doors=ask_models), of_auditor(settings), *models, of_disk(database))
    return HealthReport((HealthItem("database", True, message), *parts))


def of_disk(database: Path) -> HealthItem:
    """Whether there is room to write, in the database's folder or the nearest one above it that is there."""
    folder = next(folder for folder in database.resolve().parents if folder.is_dir())
    free = shutil.disk_usage(folder).free
    enough = free >= LEAST_FREE_BYTES
    return HealthItem("disk", enough, f"{free / 1e9:.1f} GB free", "" if enough else f"Make room in {folder}.")


def models_configured(settings: Settings) -> Iterator[HealthItem]:
    """Whether each role's model can be asked, as far as that shows without asking it."""
    for string, roles in _by_model(settings).items():
        try:
            full = {auditor.resolved(string, role, settings) for role in roles}
        except MasisError as error:
            yield HealthItem("models", False, str(error), f"Name another model for {', '.join(roles)}.")
            continue
        asked = "on this machine" if string == OFFLINE else "not asked now"
        yield HealthItem("models", True, f"{', '.join(sorted(full))} ({', '.join(roles)}): {asked}")


def models_asked(settings: Settings) -> tuple[HealthItem, ...]:
    """What each role's model answers to a word; offline roles audit a small case."""
    items = []
    for string, roles in _by_model(settings).items():
        if string == OFFLINE:
            here = of_auditor(settings)
            items.append(HealthItem("models", here.ok, f"{OFFLINE}: {here.message} ({', '.join(roles)})"))
            continue
        for full in dict.fromkeys(_resolved_each(string, roles, settings)):
            probed = auditor.probed(full, settings)
            cure = "" if probed.ok else "Put right what it says, or name another model (docs/models.md)."
            items.append(HealthItem("models", probed.ok, f"{probed.message} ({', '.join(roles)})", cure))
    return tuple(items)


def _resolved_each(string: str, roles: list[str], settings: Settings) -> Iterator[str]:
    for role in roles:
        try:
            yield auditor.resolved(string, role, settings)
        except MasisError:
            yield string  # asking it says what is wrong


def _by_model(settings: Settings) -> dict[str, list[str]]:
    roles: dict[str, list[str]] = {}
    for role, string in settings.models().items():
        roles.setdefault(string, []).append(role)
    return roles


_SAMPLE = Case.model_validate(
    {
        "id": "health",
        "query": "How long is the bridge?",
        "answer": "The bridge is 120 metres long [chunk_1].",
        "evidence": [{"id": "chunk_1", "text": "The bridge is 120 metres long and was opened in 1931."}],
    }
)
