"""Checks that everything an audit and a decision need is in order (REQ-CRITIC-OBS-005)."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from masis import version
from masis.api import audits
from masis.api.roles import build_roles, probe_model, resolve_model
from masis.audit import output_validation
from masis.errors import MasisError, StoreError
from masis.schema.case import Case
from masis.schema.screening import Abstract
from masis.schema.wording import counted
from masis.screening.critic import screen_abstracts
from masis.services.backups import BackupService
from masis.settings import OFFLINE, ROLES, Settings
from masis.store import Store
from masis.store.core.connections import RESTORE


class HealthItem(NamedTuple):
    """One check: its name, whether it is in order, and what was found.

    ``cure`` says what to do where it is not in order; ``absent`` that it is not installed, which is no problem.
    """

    name: str
    ok: bool
    message: str
    cure: str = ""
    absent: bool = False


# Whether every module starts (REQ-CRITIC-OBS-005): roles, evidence critic, integrations.
#
# An integration needs a library that may be absent; that is a problem only where the settings ask for the integration.
# One that is installed must import, which is tried in a process of its own: some of these libraries take seconds and
# much memory, and change what they are imported into.

IMPORT_WITHIN_S = 60.0


class Integration(NamedTuple):
    """An optional integration: its extra, the library it needs, and what is imported to try it."""

    name: str
    extra: str
    library: str
    imports: str


INTEGRATIONS = (
    Integration("MCP", "mcp", "mcp", "masis.integrations.mcp.server"),
    Integration("DSPy", "dspy", "dspy", "masis.integrations.dspy.agents"),
    Integration("LangGraph", "langgraph", "langgraph", "masis.integrations.langgraph"),
    Integration("BAML", "baml", "baml_py", "masis.integrations.baml"),
    Integration("OpenTelemetry", "otel", "opentelemetry.sdk", "masis.integrations.telemetry.sdk"),
    Integration("Local models in PyTorch files", "local", "transformers", "masis.integrations.local.scoring"),
    Integration("Anthropic", "anthropic", "anthropic", "masis.llm.providers.anthropic"),
)


def role_health(settings: Settings) -> Iterator[HealthItem]:
    """Check each role as the settings fill it; nothing is asked over the network.

    The output validator is checked by itself, so that its error is not shown once for each role; an error that several
    roles share, since one model fills them, is shown once as well.
    """
    first: dict[str, str] = {}
    alone = dict.fromkeys(ROLES, OFFLINE) | {"output_validator": output_validation.PYDANTIC}
    for role in ROLES:
        try:
            filled = build_roles(settings.model_copy(update=alone | {role: getattr(settings, role)}))
        except MasisError as error:
            said = str(error).removeprefix(f"{role}: ")
            if said in first:
                yield HealthItem(role, False, f"fails as {first[said]} does.", f"Do what is said of {first[said]}.")
            else:
                first[said] = role
                yield HealthItem(role, False, str(error), f"Choose another model for {role}, or fix this.")
        except Exception as error:  # noqa: BLE001 (whatever happens as it starts is reported here, not a crash)
            yield HealthItem(role, False, f"does not start: {type(error).__name__}: {error}", _REINSTALL)
        else:
            prompt = filled.prompts.get(role)
            yield HealthItem(role, True, f"starts: {filled.models[role]}{f', prompt {prompt}' if prompt else ''}")


def output_validator(settings: Settings) -> HealthItem:
    """Check the validator that a revision must pass (REQ-CRITIC-028)."""
    name = settings.output_validator
    try:
        output_validation.chosen(name)
    except MasisError as error:
        return HealthItem("output validator", False, str(error), "Fix this, or set output_validator = pydantic.")
    except Exception as error:  # noqa: BLE001 (a team's own package may raise anything as it is imported)
        why = f"{name} does not start: {type(error).__name__}: {error}"
        return HealthItem("output validator", False, why, "Fix its package, or set output_validator = pydantic.")
    return HealthItem("output validator", True, f"starts: {name}")


_REINSTALL = "Reinstall the workbench, or report this as a bug."
_ABSTRACT = Abstract(
    id="health",
    title="Aspirin in acute headache: a randomised trial",
    text="We randomised 400 adults with acute headache to aspirin or placebo. Aspirin relieved pain within two hours.",
)


def evidence_critic() -> HealthItem:
    """Check that the evidence critic grades a small abstract by its offline grader."""
    try:
        screening = screen_abstracts("Does aspirin relieve headache?", [_ABSTRACT], Settings())
    except Exception as error:  # noqa: BLE001 (as above)
        return HealthItem("evidence critic", False, f"does not start: {type(error).__name__}: {error}", _REINSTALL)
    if not screening.grades:
        return HealthItem("evidence critic", False, "graded nothing of a small abstract", _REINSTALL)
    return HealthItem("evidence critic", True, "graded a small abstract")


def integrations(settings: Settings, *, try_them: bool) -> Iterator[HealthItem]:
    """Check each integration: not installed, or installed and, where it is tried, whether it imports.

    One that is not installed is a problem where the settings ask for it by something that is no role: telemetry.
    """
    for each in INTEGRATIONS:
        install = f"pip install '.[{each.extra}]'"
        if not _installed(each.library) and each.extra == "otel" and settings.telemetry != "off":
            asked_for = f"not installed, and the setting telemetry = {settings.telemetry} asks for it"
            yield HealthItem(each.name, False, asked_for, f"{install}, or set telemetry = off.")
        elif not _installed(each.library):
            yield HealthItem(each.name, True, f"not installed, and needed by nothing else ({install})", absent=True)
        elif not try_them and each.imports not in _import_errors:
            yield HealthItem(each.name, True, "installed; loaded when it is used")
        elif why := _tried(each.imports):
            yield HealthItem(each.name, False, f"installed, but does not import: {why}", f"Try {install} again.")
        else:
            yield HealthItem(each.name, True, "installed, and imports")


def _installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except ModuleNotFoundError:  # not even what it is a part of
        return False


_import_errors: dict[str, str] = {}
"""Why each integration does not import, empty where it does: this does not change while a process runs."""


def _tried(module: str) -> str:
    """Return why a module does not import, in the words of Python; empty where it does."""
    if module not in _import_errors:
        _import_errors[module] = _import(module)
    return _import_errors[module]


def _import(module: str) -> str:
    code = f"import sys; sys.path[:] = {sys.path!r}; import {module}"
    try:
        tried = subprocess.run(  # noqa: S603 (our own interpreter and our own names)
            [sys.executable, "-W", "ignore", "-c", code],
            capture_output=True,
            text=True,
            timeout=IMPORT_WITHIN_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return f"it takes longer than {IMPORT_WITHIN_S:g} s"
    if tried.returncode == 0:
        return ""
    return (tried.stderr.strip().splitlines() or [f"it ended with {tried.returncode}"])[-1][:300]


LEAST_FREE_BYTES = 100_000_000
_MAKE_WRITABLE = "Make file and folder writable, make room on the disk, or name another database with --db or MASIS_DB."


class HealthReport(NamedTuple):
    """Every check, and whether all is in order."""

    items: tuple[HealthItem, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return all(item.ok for item in self.items)

    def to_json(self) -> dict[str, Any]:
        """Return the report as ``masis health --json`` gives it (``docs/running.md``)."""
        return {"ok": self.ok, "version": version.APP, "items": [item._asdict() for item in self.items]}


def of_store(store: Store) -> Iterator[HealthItem]:
    """Check the database, its guards, the decision log and the screening log."""
    check = store.check()
    contents = ", ".join(counted(count, *_COUNTED.get(name, (name, name))) for name, count in check.counts.items())
    yield HealthItem("database", not check.problems, f"{check.path} ({check.bytes / 1e6:.1f} MB): {contents}")
    for problem in check.problems:
        yield HealthItem("database", False, problem, RESTORE)
    yield HealthItem("schema", True, f"{check.schema_version}, the newest; SQLite {check.sqlite_version}")
    yield of_writing(store)
    for name, log in (("decision log", check.log), ("screening log", check.screening_log)):
        message = (
            f"{counted(log.length, 'entry', 'entries')}, head {log.head[:12]}"
            if log.intact
            else "; ".join(log.broken[:5])
        )
        cure = "" if log.intact else "See what is wrong with `masis verify-log`, and compare with a backup."
        yield HealthItem(name, log.intact, message, cure)


_COUNTED = {
    "cases": ("case", "cases"),
    "runs": ("run", "runs"),
    "iterations": ("iteration", "iterations"),
    "events": ("event", "events"),
    "decision_log": ("entry of the decision log", "entries of the decision log"),
    "corpora": ("corpus", "corpora"),
    "screenings": ("screening", "screenings"),
    "screening_log": ("entry of the screening log", "entries of the screening log"),
}
"""The nouns for what the store counts, singular and plural."""


def of_writing(store: Store) -> HealthItem:
    """Check that the database takes a write: one is made, and stays."""
    tried = store.try_writing()
    return HealthItem("writing", tried.ok, tried.message, "" if tried.ok else _MAKE_WRITABLE)


def of_modules(settings: Settings, *, try_integrations: bool) -> Iterator[HealthItem]:
    """Check that every module starts: each role, output validator, evidence critic, the integrations."""
    yield from role_health(settings)
    yield output_validator(settings)
    yield evidence_critic()
    yield from integrations(settings, try_them=try_integrations)


def unopened(error: StoreError, database: Path, settings: Settings, *, ask_models: bool) -> HealthReport:
    """Return what can be checked where the database can't be opened."""
    asked = models_asked(settings) if ask_models else tuple(models_configured(settings))
    parts = (*of_modules(settings, try_integrations=ask_models), of_auditor(settings), *asked, of_disk(database))
    return HealthReport((HealthItem("database", False, str(error)), *said_once(parts, settings)))


def of_auditor(settings: Settings) -> HealthItem:
    """Check that the offline roles start and judge a small case as they should."""
    offline = settings.model_copy(
        update=dict.fromkeys(ROLES, OFFLINE) | {"output_validator": output_validation.PYDANTIC}
    )
    try:
        run = audits.run_audit(_SAMPLE, offline)
    except MasisError as error:
        return HealthItem("auditor", False, str(error))
    works = run.best is not None and not run.warnings
    return HealthItem(
        "auditor",
        works,
        "a small case was audited from claims to scores" if works else "; ".join(w.message for w in run.warnings),
    )


def before_the_first_case(database: Path, settings: Settings, *, ask_models: bool) -> HealthReport:
    """Return what can be checked while there is no database yet: above all whether the models answer."""
    message = f"There is no database yet; the first import or audit makes {database}."
    models = models_asked(settings) if ask_models else tuple(models_configured(settings))
    parts = (*of_modules(settings, try_integrations=ask_models), of_auditor(settings), *models, of_disk(database))
    return HealthReport((HealthItem("database", True, message), *said_once(parts, settings)))


def of_disk(database: Path) -> HealthItem:
    """Check that there is room to write, in the database's folder or the nearest one above it that exists."""
    folder = next(folder for folder in database.resolve().parents if folder.is_dir())
    free = shutil.disk_usage(folder).free
    enough = free >= LEAST_FREE_BYTES
    return HealthItem("disk", enough, f"{free / 1e9:.1f} GB free", "" if enough else f"Make room in {folder}.")


def of_backups(backups: BackupService, settings: Settings, now: datetime | None = None) -> Iterator[HealthItem]:
    """Check that the newest backup is no older than twice what the settings say; nothing where they name no folder."""
    if not settings.backup_folder:
        return
    newest = backups.newest(Path(settings.backup_folder).expanduser())
    limit = timedelta(hours=2 * settings.backup_hours)
    late = newest is None or (now or datetime.now(UTC)) - newest > limit
    made = f"the newest is of {newest:%Y-%m-%d %H:%M} UTC" if newest else "there is none"
    cure = f"`masis db backup {settings.backup_folder}` says why none is made." if late else ""
    yield HealthItem("backup", not late, f"{settings.backup_folder}: {made}", cure)


def models_configured(settings: Settings) -> Iterator[HealthItem]:
    """Check that each role's model can be asked, as far as that shows without asking it."""
    for string, roles in _by_model(settings).items():
        try:
            full = {resolve_model(string, role, settings) for role in roles}
        except MasisError as error:
            yield HealthItem("models", False, str(error), f"Name another model for {', '.join(roles)}.")
            continue
        asked = "on this machine" if string == OFFLINE else "not asked now"
        yield HealthItem("models", True, f"{', '.join(sorted(full))} ({', '.join(roles)}): {asked}")


def models_asked(settings: Settings) -> tuple[HealthItem, ...]:
    """Return what each role's model answers to a word; offline roles audit a small case."""
    items: list[HealthItem] = []
    failed: dict[str, str] = {}
    for string, roles in _by_model(settings).items():
        if string == OFFLINE:
            here = of_auditor(settings)
            items.append(HealthItem("models", here.ok, f"{OFFLINE}: {here.message} ({', '.join(roles)})"))
            continue
        for full in dict.fromkeys(_resolved_each(string, roles, settings)):
            probed = probe_model(full, settings)
            cure, message = "", probed.message
            if not probed.ok:
                cure = "Fix what it says, or name another model (docs/models.md)."
                first = failed.setdefault(message.replace(full, ""), full)
                if first != full:
                    cure, message = "", f"{full} fails as {first} does."
            items.append(HealthItem("models", probed.ok, f"{message} ({', '.join(roles)})", cure))
    return tuple(items)


def _resolved_each(string: str, roles: list[str], settings: Settings) -> Iterator[str]:
    for role in roles:
        try:
            yield resolve_model(string, role, settings)
        except MasisError:
            yield string  # asking it says what is wrong


def said_once(items: Iterable[HealthItem], settings: Settings) -> tuple[HealthItem, ...]:
    """Point from a model that can't be asked to the role that fails for the same reason, instead of saying it again."""
    said: dict[str, str] = {}
    return tuple(_pointed(item, said, settings.models()) for item in items)


def _pointed(item: HealthItem, said: dict[str, str], models: Mapping[str, str]) -> HealthItem:
    if not item.ok and item.name in ROLES:
        said.setdefault(item.message.removeprefix(f"{item.name}: "), item.name)
    if item.ok or item.name != "models":
        return item
    for reason, role in said.items():
        if reason in item.message:
            return HealthItem("models", False, f"{models[role]} can't be asked: see {role}.", f"Do what {role} says.")
    return item


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
