"""Check that everything works that audits and decisions need (REQ-CRITIC-OBS-005)."""

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
from masis.extensions import Library, extensions, load_all
from masis.llm.provider_apis import install_command, provider_api
from masis.schema.case import Case
from masis.schema.providers import provider_entry_points
from masis.schema.wording import count_noun
from masis.services.maintenance.backups import BackupService
from masis.settings import OFFLINE, ROLES, Settings
from masis.store import Store
from masis.store.core.connections import RESTORE


class HealthItem(NamedTuple):
    """One check: its name, whether it passed, and a message.

    ``hint`` says what to do if it failed. ``absent`` means that something optional isn't installed.
    ``uncounted`` replaces the message for people to whom its figures could reveal whether others
    have decided.
    """

    name: str
    ok: bool
    message: str
    hint: str = ""
    absent: bool = False
    uncounted: str = ""


# Check that every module starts (REQ-CRITIC-OBS-005): roles, extensions, integrations.
#
# A missing library of an integration is a problem only if the settings use the integration. An
# installed one must import. The import runs in a separate process, because some of these libraries
# need seconds and much memory, and change the process that imports them.

IMPORT_WITHIN_S = 60.0


_ALL_OFFLINE = dict.fromkeys(ROLES, OFFLINE) | {"output_validator": output_validation.PYDANTIC}
REINSTALL = "Reinstall the workbench, or report this as a bug."


def check_start(
    name: str, start: Callable[[], str], hint: str, hint_of_crash: str = REINSTALL
) -> HealthItem:
    """Return the result of starting something, or why it doesn't start."""
    try:
        return HealthItem(name, True, start())
    except MasisError as error:
        return HealthItem(name, False, str(error), hint)
    except Exception as error:  # noqa: BLE001 (Health reports it instead of crashing)
        return HealthItem(
            name, False, f"doesn't start: {type(error).__name__}: {error}", hint_of_crash
        )


def check_roles(settings: Settings) -> Iterator[HealthItem]:
    """Check each role under the settings, without any network call.

    The output validator is checked separately, so that its error isn't shown for each role. An
    error that several roles share because they use the same model is shown once as well.
    """
    first: dict[str, str] = {}
    for role, string in settings.models().items():

        def start(role: str = role, string: str = string) -> str:
            # All other roles are offline, so an error belongs to this role.
            filled = build_roles(settings.model_copy(update=_ALL_OFFLINE | {role: string}))
            prompt = filled.prompts.get(role)
            return f"starts: {filled.models[role]}{f', prompt {prompt}' if prompt else ''}"

        item = check_start(role, start, f"Choose another model for {role}, or fix this.")
        # A crash is shown for every role, because it's a bug and may differ between roles.
        is_unique = item.ok or item.hint == REINSTALL
        message = item.message.removeprefix(f"{role}: ")
        other = role if is_unique else first.setdefault(message, role)
        if other != role:
            item = HealthItem(role, False, f"fails like {other}.", f"Follow the hint of {other}.")
        yield item


def check_output_validator(settings: Settings) -> HealthItem:
    """Check the validator for revisions (REQ-CRITIC-028)."""

    def start() -> str:
        output_validation.validator_named(settings.output_validator)
        return f"starts: {settings.output_validator}"

    hint = "Fix its package, or set output_validator = pydantic."
    return check_start("output validator", start, hint, hint)


def libraries() -> tuple[Library, ...]:
    """Return the libraries that integrations need."""
    return tuple(library for extension in extensions() for library in extension.libraries)


def check_integrations(settings: Settings, *, try_them: bool) -> Iterator[HealthItem]:
    """Check each integration: whether it's installed and, with ``try_them``, whether it imports.

    A missing one is a problem only if a setting that isn't a role asks for it directly, as that of
    telemetry does.
    """
    for library in libraries():
        value = getattr(settings, library.setting) if library.setting else "off"
        if value != "off" and not _is_installed(library.library):
            install = install_command(library.extra, library.library)
            yield HealthItem(
                library.name,
                False,
                f"not installed, but the setting {library.setting} = {value} needs it",
                f"{install}, or set {library.setting} = off.",
            )
        else:
            yield _check_library(library, try_it=try_them)


def _check_library(integration: Library, *, try_it: bool) -> HealthItem:
    """Check whether an integration's library is installed and, with ``try_it``, whether it
    imports.
    """
    name = integration.name
    install = install_command(integration.extra, integration.library)
    if not _is_installed(integration.library):
        optional = f"not installed, and optional ({install})"
        return HealthItem(name, True, optional, absent=True)
    if not try_it:
        return HealthItem(name, True, "installed; loaded when it is used")
    if why := _import_error(integration.imports):
        message = f"installed, but can't be imported: {why}"
        return HealthItem(name, False, message, f"Try {install} again.")
    return HealthItem(name, True, "installed, and can be imported")


def check_apis(*, try_them: bool) -> Iterator[HealthItem]:
    """Check each API by which models can be reached: whether it loads, and its library, if any."""
    for kind in provider_entry_points():
        try:
            api = provider_api(kind)
        except Exception as error:  # noqa: BLE001 (the package runs code of its own)
            message = f"can't be loaded: {type(error).__name__}: {error}"
            yield HealthItem(kind, False, message, "Update or remove the package that adds it.")
            continue
        if api.library:
            library = Library(api.title, api.extra, api.library, api.library)
            yield _check_library(library, try_it=try_them)
        else:
            yield HealthItem(api.title, True, "needs no package")


def _is_installed(library: str) -> bool:
    try:
        # find_spec imports only the parent packages, so this stays fast for libraries that load
        # slowly.
        return importlib.util.find_spec(library) is not None
    except ModuleNotFoundError:  # Its parent package is missing.
        return False


def _import_error(module: str) -> str:
    """Return Python's error message if a module doesn't import, or ""."""
    # The search path of this process may differ from that of a new one, for example in a checkout.
    code = f"import sys; sys.path[:] = {sys.path!r}; import {module}"
    try:
        result = subprocess.run(  # noqa: S603 (our own interpreter and our own names)
            [sys.executable, "-W", "ignore", "-c", code],
            capture_output=True,
            text=True,
            timeout=IMPORT_WITHIN_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return f"it takes longer than {IMPORT_WITHIN_S:g} s"
    if result.returncode == 0:
        return ""
    # The last line of a traceback names the error.
    return (result.stderr.strip().splitlines() or [f"it ended with {result.returncode}"])[-1][:300]


LEAST_FREE_BYTES = 100_000_000
_MAKE_WRITABLE = (
    "Make the file and its folder writable, free space on the disk, or choose another database with"
    " --db or MASIS_DB."
)


class HealthReport(NamedTuple):
    """All checks."""

    items: tuple[HealthItem, ...]

    @property
    def ok(self) -> bool:
        """Whether all checks passed."""
        return all(item.ok for item in self.items)

    def to_json(self) -> dict[str, Any]:
        """Return the report as ``masis health --json`` prints it (``docs/running.md``)."""
        shown = [name for name in HealthItem._fields if name != "uncounted"]
        items = [{name: getattr(item, name) for name in shown} for item in self.items]
        return {"ok": self.ok, "version": version.APP, "items": items}


def check_store(store: Store) -> Iterator[HealthItem]:
    """Check the database, its triggers, the decision log and the screening log."""
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
    for name, log in (
        ("decision log", check.log),
        ("screening log", check.screening_log),
        ("preference log", check.preference_log),
    ):
        message = (
            f"{count_noun(log.length, 'entry', 'entries')}, head {log.head[:12]}"
            if log.intact
            else "; ".join(log.broken[:5])
        )
        hint = (
            ""
            if log.intact
            else "Run `masis verify-log` to see the errors, and compare with a backup."
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
    "preference_log": ("entry of the preference log", "entries of the preference log"),
}
"""The nouns for the store's counts, singular and plural."""


def check_writing(store: Store) -> HealthItem:
    """Check that the database can be written, by writing to it."""
    ok, message = store.try_writing()
    return HealthItem("writing", ok, message, "" if ok else _MAKE_WRITABLE)


def check_auditor(settings: Settings) -> HealthItem:
    """Check that the offline roles start and judge a small case correctly."""

    def start() -> str:
        run = audits.run_audit(_SAMPLE, settings.model_copy(update=_ALL_OFFLINE))
        if run.best is None or run.warnings:
            raise StepError("; ".join(warning.message for warning in run.warnings))
        return "a small case was audited from claims to scores"

    return check_start("auditor", start, "")


def build_report(
    of_database: Iterable[HealthItem], database: Path, settings: Settings, *, ask_models: bool
) -> HealthReport:
    """Check everything that an audit needs besides the database, whose checks come first.

    With ``ask_models`` models are called and integrations imported. The model of a role that
    doesn't start isn't called, because the role's check says why.
    """
    roles = list(check_roles(settings))
    started = [item.name for item in roles if item.ok]
    return HealthReport(
        (
            *of_database,
            *roles,
            check_output_validator(settings),
            *(check() for check in load_all("health_checks")),
            *check_integrations(settings, try_them=ask_models),
            *check_apis(try_them=ask_models),
            check_auditor(settings),
            *(probe_models(settings, started) if ask_models else ()),
            check_disk(database),
        )
    )


def report_without_database(
    database: Path, settings: Settings, error: StoreError | None = None, *, ask_models: bool = False
) -> HealthReport:
    """Check everything except the database, which doesn't exist or can't be opened (``error``)."""
    none_yet = f"There is no database yet. The first import or audit creates {database}."
    item = HealthItem("database", error is None, none_yet if error is None else str(error))
    return build_report([item], database, settings, ask_models=ask_models)


def check_disk(database: Path) -> HealthItem:
    """Check the free space in the database's folder, or in its nearest existing parent."""
    folder = next(folder for folder in database.resolve().parents if folder.is_dir())
    free = shutil.disk_usage(folder).free
    enough = free >= LEAST_FREE_BYTES
    return HealthItem(
        "disk", enough, f"{free / 1e9:.1f} GB free", "" if enough else f"Free space in {folder}."
    )


def check_backups(
    backups: BackupService, settings: Settings, now: datetime | None = None
) -> Iterator[HealthItem]:
    """Check the age of the newest backup, if the settings name a folder for backups.

    It may be at most twice as old as the interval in the settings.
    """
    if not settings.backup_folder:
        return
    now = now or datetime.now(UTC)
    newest = backups.newest(Path(settings.backup_folder).expanduser(), now)
    limit = timedelta(hours=2 * settings.backup_hours)
    late = newest is None or now - newest > limit
    age = f"the newest is from {newest:%Y-%m-%d %H:%M} UTC" if newest else "there is none"
    hint = f"Run `masis db backup {settings.backup_folder}` to see the error." if late else ""
    yield HealthItem("backup", not late, f"{settings.backup_folder}: {age}", hint)


def probe_models(settings: Settings, roles: Sequence[str] = ROLES) -> tuple[HealthItem, ...]:
    """Send a short request to each model of these roles; offline roles audit a small case."""
    items: list[HealthItem] = []
    failed: dict[str, str] = {}
    by_model: dict[str, list[str]] = {}
    for role in roles:
        by_model.setdefault(settings.models()[role], []).append(role)
    for string, filled in by_model.items():
        if string == OFFLINE:
            offline = check_auditor(settings)
            message = f"{OFFLINE}: {offline.message} ({', '.join(filled)})"
            items.append(HealthItem("models", offline.ok, message))
            continue
        for full in dict.fromkeys(_resolve_or_same(string, role, settings) for role in filled):
            ok, message, _ = probe_model(full, settings)
            hint = "" if ok else "Fix this error, or choose another model (docs/models.md)."
            # Several models often fail for one reason, such as a missing key, which is shown in
            # full once.
            first = full if ok else failed.setdefault(message.replace(full, ""), full)
            if first != full:
                hint, message = "", f"{full} fails like {first}."
            items.append(HealthItem("models", ok, f"{message} ({', '.join(filled)})", hint))
    return tuple(items)


def _resolve_or_same(string: str, role: str, settings: Settings) -> str:
    try:
        return resolve_model(string, role, settings)
    except MasisError:
        return string  # Calling it reports the error.


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
