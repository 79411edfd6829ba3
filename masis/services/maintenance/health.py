"""Checks that everything an audit and a decision need is in order (REQ-CRITIC-OBS-005)."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from masis import version
from masis.api import audits
from masis.api.roles import build_roles, probe_model, resolve_model
from masis.audit import output_validation
from masis.errors import MasisError, StepError, StoreError
from masis.llm.provider_apis import provider_api
from masis.schema.case import Case
from masis.schema.providers import provider_entry_points
from masis.schema.screening import Abstract
from masis.schema.wording import count_noun
from masis.screening.critic import screen_abstracts
from masis.services.maintenance.backups import BackupService
from masis.settings import OFFLINE, ROLES, Settings
from masis.store import Store
from masis.store.core.connections import RESTORE


class HealthItem(NamedTuple):
    """One check: its name, whether it is in order, and what was found.

    ``hint`` says what to do where it is not in order; ``absent`` that it is not installed, which is
    no problem. ``uncounted`` is the message without figures that tell whether others have decided,
    where it has such figures.
    """

    name: str
    ok: bool
    message: str
    hint: str = ""
    absent: bool = False
    uncounted: str = ""


# Whether every module starts (REQ-CRITIC-OBS-005): roles, evidence critic, integrations.
#
# An integration needs a library that may be absent; that is a problem only where the settings ask
# for the integration. One that is installed must import, which is tried in a process of its own:
# some of these libraries take seconds and much memory, and change what they are imported into.

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
    Integration(
        "Local models in PyTorch files", "local", "transformers", "masis.integrations.local.scoring"
    ),
    *(
        Integration(api.title, api.extra, api.library, api.home)
        for api in map(provider_api, provider_entry_points())
        if api.extra
    ),
)


_ALL_OFFLINE = dict.fromkeys(ROLES, OFFLINE) | {"output_validator": output_validation.PYDANTIC}
_REINSTALL = "Reinstall the workbench, or report this as a bug."


def _check_start(
    name: str, start: Callable[[], str], hint: str, hint_of_crash: str = _REINSTALL
) -> HealthItem:
    """Return what starting something says of it, or why it does not start."""
    try:
        return HealthItem(name, True, start())
    except MasisError as error:
        return HealthItem(name, False, str(error), hint)
    except Exception as error:  # noqa: BLE001 (whatever happens as it starts is reported here, not a crash)
        return HealthItem(
            name, False, f"does not start: {type(error).__name__}: {error}", hint_of_crash
        )


def check_roles(settings: Settings) -> Iterator[HealthItem]:
    """Check each role as the settings fill it; nothing is asked over the network.

    The output validator is checked by itself, so that its error is not shown once for each role; an
    error that several roles share, since one model fills them, is shown once as well.
    """
    first: dict[str, str] = {}
    for role, string in settings.models().items():

        def start(role: str = role, string: str = string) -> str:
            filled = build_roles(settings.model_copy(update=_ALL_OFFLINE | {role: string}))
            prompt = filled.prompts.get(role)
            return f"starts: {filled.models[role]}{f', prompt {prompt}' if prompt else ''}"

        item = _check_start(role, start, f"Choose another model for {role}, or fix this.")
        # what crashes says so in every role that uses it
        alone = item.ok or item.hint == _REINSTALL
        other = role if alone else first.setdefault(item.message.removeprefix(f"{role}: "), role)
        if other != role:
            item = HealthItem(
                role, False, f"fails as {other} does.", f"Do what is said of {other}."
            )
        yield item


def check_output_validator(settings: Settings) -> HealthItem:
    """Check the validator that a revision must pass (REQ-CRITIC-028)."""

    def start() -> str:
        output_validation.validator_named(settings.output_validator)
        return f"starts: {settings.output_validator}"

    hint = "Fix its package, or set output_validator = pydantic."
    return _check_start("output validator", start, hint, hint)


_ABSTRACT = Abstract(
    id="health",
    title="Aspirin in acute headache: a randomised trial",
    text=(
        "We randomised 400 adults with acute headache to aspirin or placebo. Aspirin relieved pain"
        " within two hours."
    ),
)


def check_evidence_critic() -> HealthItem:
    """Check that the evidence critic grades a small abstract by its offline grader."""

    def start() -> str:
        if not screen_abstracts("Does aspirin relieve headache?", [_ABSTRACT], Settings()).grades:
            raise StepError("graded nothing of a small abstract")
        return "graded a small abstract"

    return _check_start("evidence critic", start, _REINSTALL)


def check_integrations(settings: Settings, *, try_them: bool) -> Iterator[HealthItem]:
    """Check each integration: not installed, or installed and, where it is tried, whether it
    imports.

    One that is not installed is a problem where the settings ask for it by something that is no
    role: telemetry.
    """
    for each in INTEGRATIONS:
        install = f"pip install '.[{each.extra}]'"
        if not _is_installed(each.library) and each.extra == "otel" and settings.telemetry != "off":
            asked_for = (
                f"not installed, and the setting telemetry = {settings.telemetry} asks for it"
            )
            yield HealthItem(each.name, False, asked_for, f"{install}, or set telemetry = off.")
        elif not _is_installed(each.library):
            yield HealthItem(
                each.name,
                True,
                f"not installed, and needed by nothing else ({install})",
                absent=True,
            )
        elif not try_them:
            yield HealthItem(each.name, True, "installed; loaded when it is used")
        elif why := _import_error(each.imports):
            yield HealthItem(
                each.name, False, f"installed, but does not import: {why}", f"Try {install} again."
            )
        else:
            yield HealthItem(each.name, True, "installed, and imports")


def _is_installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except ModuleNotFoundError:  # not even what it is a part of
        return False


def _import_error(module: str) -> str:
    """Return why a module does not import, in the words of Python; empty where it does."""
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
_MAKE_WRITABLE = (
    "Make file and folder writable, make room on the disk, or name another database with --db or"
    " MASIS_DB."
)


class HealthReport(NamedTuple):
    """Every check, and whether all is in order."""

    items: tuple[HealthItem, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return all(item.ok for item in self.items)

    def to_json(self) -> dict[str, Any]:
        """Return the report as ``masis health --json`` gives it (``docs/running.md``)."""
        shown = [name for name in HealthItem._fields if name != "uncounted"]
        items = [{name: getattr(item, name) for name in shown} for item in self.items]
        return {"ok": self.ok, "version": version.APP, "items": items}


def check_store(store: Store) -> Iterator[HealthItem]:
    """Check the database, its guards, the decision log and the screening log."""
    check = store.check()
    contents = ", ".join(
        count_noun(count, *_COUNTED.get(name, (name, name))) for name, count in check.counts.items()
    )
    path = str(check.path)
    message = f"{path} ({check.bytes / 1e6:.1f} MB): {contents}"
    yield HealthItem("database", not check.problems, message, uncounted=path)
    for problem in check.problems:
        yield HealthItem("database", False, problem, RESTORE)
    yield HealthItem(
        "schema", True, f"{check.schema_version}, the newest; SQLite {check.sqlite_version}"
    )
    yield check_writing(store)
    for name, log in (("decision log", check.log), ("screening log", check.screening_log)):
        message = (
            f"{count_noun(log.length, 'entry', 'entries')}, head {log.head[:12]}"
            if log.intact
            else "; ".join(log.broken[:5])
        )
        hint = (
            ""
            if log.intact
            else "See what is wrong with `masis verify-log`, and compare with a backup."
        )
        yield HealthItem(
            name, log.intact, message, hint, uncounted="intact" if log is check.log else ""
        )


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


def check_writing(store: Store) -> HealthItem:
    """Check that the database takes a write: one is made, and stays."""
    tried = store.try_writing()
    return HealthItem("writing", tried.ok, tried.message, "" if tried.ok else _MAKE_WRITABLE)


def check_auditor(settings: Settings) -> HealthItem:
    """Check that the offline roles start and judge a small case as they should."""

    def start() -> str:
        run = audits.run_audit(_SAMPLE, settings.model_copy(update=_ALL_OFFLINE))
        if run.best is None or run.warnings:
            raise StepError("; ".join(warning.message for warning in run.warnings))
        return "a small case was audited from claims to scores"

    return _check_start("auditor", start, "")


def build_report(
    of_database: Iterable[HealthItem], database: Path, settings: Settings, *, ask_models: bool
) -> HealthReport:
    """Check all that an audit needs beside the database, whose checks come first.

    With ``ask_models`` models are asked and integrations imported. The model of a role that does
    not start is passed over: the role says why.
    """
    roles = list(check_roles(settings))
    started = [item.name for item in roles if item.ok]
    return HealthReport(
        (
            *of_database,
            *roles,
            check_output_validator(settings),
            check_evidence_critic(),
            *check_integrations(settings, try_them=ask_models),
            check_auditor(settings),
            *(probe_models(settings, started) if ask_models else ()),
            check_disk(database),
        )
    )


def report_without_database(
    database: Path, settings: Settings, error: StoreError | None = None, *, ask_models: bool = False
) -> HealthReport:
    """Check what can be checked without a database: there is none yet, or it can't be opened
    (``error``).
    """
    none_yet = f"There is no database yet; the first import or audit makes {database}."
    item = HealthItem("database", error is None, none_yet if error is None else str(error))
    return build_report([item], database, settings, ask_models=ask_models)


def check_disk(database: Path) -> HealthItem:
    """Check that there is room to write, in the database's folder or the nearest one above it that
    exists.
    """
    folder = next(folder for folder in database.resolve().parents if folder.is_dir())
    free = shutil.disk_usage(folder).free
    enough = free >= LEAST_FREE_BYTES
    return HealthItem(
        "disk", enough, f"{free / 1e9:.1f} GB free", "" if enough else f"Make room in {folder}."
    )


def check_backups(
    backups: BackupService, settings: Settings, now: datetime | None = None
) -> Iterator[HealthItem]:
    """Check that the newest backup is no older than twice what the settings say; nothing where they
    name no folder.
    """
    if not settings.backup_folder:
        return
    newest = backups.newest(Path(settings.backup_folder).expanduser())
    limit = timedelta(hours=2 * settings.backup_hours)
    late = newest is None or (now or datetime.now(UTC)) - newest > limit
    made = f"the newest is of {newest:%Y-%m-%d %H:%M} UTC" if newest else "there is none"
    hint = f"`masis db backup {settings.backup_folder}` says why none is made." if late else ""
    yield HealthItem("backup", not late, f"{settings.backup_folder}: {made}", hint)


def probe_models(settings: Settings, roles: Sequence[str] = ROLES) -> tuple[HealthItem, ...]:
    """Return what each model of these roles answers to a word; offline roles audit a small case."""
    items: list[HealthItem] = []
    failed: dict[str, str] = {}
    for string, filled in _by_model(settings, roles).items():
        if string == OFFLINE:
            here = check_auditor(settings)
            items.append(
                HealthItem("models", here.ok, f"{OFFLINE}: {here.message} ({', '.join(filled)})")
            )
            continue
        for full in dict.fromkeys(_resolve_or_same(string, role, settings) for role in filled):
            ok, message, _ = probe_model(full, settings)
            hint = "" if ok else "Fix what it says, or name another model (docs/models.md)."
            first = full if ok else failed.setdefault(message.replace(full, ""), full)
            if first != full:
                hint, message = "", f"{full} fails as {first} does."
            items.append(HealthItem("models", ok, f"{message} ({', '.join(filled)})", hint))
    return tuple(items)


def _resolve_or_same(string: str, role: str, settings: Settings) -> str:
    try:
        return resolve_model(string, role, settings)
    except MasisError:
        return string  # asking it says what is wrong


def _by_model(settings: Settings, roles: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for role in roles:
        found.setdefault(settings.models()[role], []).append(role)
    return found


_SAMPLE = Case.model_validate(
    {
        "id": "health",
        "query": "How long is the bridge?",
        "answer": "The bridge is 120 metres long [chunk_1].",
        "evidence": [
            {"id": "chunk_1", "text": "The bridge is 120 metres long and was opened in 1931."}
        ],
    }
)
