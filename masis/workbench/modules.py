"""Whether every module starts (``specs/critic-loop.md``, REQ-CRITIC-OBS-005): roles, evidence critic, doors.

A door to another system needs a library that may be absent; that is no fault unless the settings ask for the door. One
that is installed must import, which is tried in a process of its own: some of these libraries take seconds and much
memory, and change what they are imported into.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

from masis import auditor
from masis.errors import MasisError
from masis.schema.screening import Abstract
from masis.screening.critic import screen_abstracts
from masis.settings import OFFLINE, ROLES, Settings
from masis.steps import validation

IMPORT_WITHIN_S = 60.0


class ModuleFound(NamedTuple):
    """One module: whether it starts, what was found, what to do where it does not; or that it is not installed."""

    name: str
    ok: bool
    message: str
    cure: str = ""
    absent: bool = False


class Door(NamedTuple):
    """A door to another system: its extra, the library it needs, and what is imported to try it."""

    name: str
    extra: str
    library: str
    imports: str


DOORS = (
    Door("MCP", "mcp", "mcp", "masis.integrations.mcp.server"),
    Door("DSPy", "dspy", "dspy", "masis.integrations.dspy.agents"),
    Door("LangGraph", "langgraph", "langgraph", "masis.integrations.langgraph"),
    Door("BAML", "baml", "baml_py", "masis.integrations.baml"),
    Door("OpenTelemetry", "otel", "opentelemetry.sdk", "masis.integrations.telemetry.sdk"),
    Door("Anthropic", "anthropic", "anthropic", "masis.llm.providers.anthropic"),
)


def roles(settings: Settings) -> Iterator[ModuleFound]:
    """Each role as the settings fill it; nothing is asked over the network.

    The output validator is looked at by itself, so that its fault is not told once a role.
    """
    alone = dict.fromkeys(ROLES, OFFLINE) | {"output_validator": validation.PYDANTIC}
    for role in ROLES:
        try:
            filled = auditor.roles_for(settings.model_copy(update=alone | {role: getattr(settings, role)}))
        except MasisError as error:
            yield ModuleFound(role, False, str(error), f"Choose another model for {role}, or put this right.")
        except Exception as error:  # noqa: BLE001 (whatever happens as it starts is a finding here, not a crash)
            yield ModuleFound(role, False, f"does not start: {type(error).__name__}: {error}", _REINSTALL)
        else:
            prompt = filled.prompts.get(role)
            yield ModuleFound(role, True, f"starts: {filled.models[role]}{f', prompt {prompt}' if prompt else ''}")


def output_validator(settings: Settings) -> ModuleFound:
    """What an improved answer must pass (REQ-CRITIC-028)."""
    name = settings.output_validator
    try:
        validation.chosen(name)
    except MasisError as error:
        return ModuleFound("output validator", False, str(error), "Put this right, or set output_validator = pydantic.")
    except Exception as error:  # noqa: BLE001 (a team's own package may raise anything as it is imported)
        why = f"{name} does not start: {type(error).__name__}: {error}"
        return ModuleFound("output validator", False, why, "Put its package right, or set output_validator = pydantic.")
    return ModuleFound("output validator", True, f"starts: {name}")


_REINSTALL = "Install the workbench anew, or report this fault."
_ABSTRACT = Abstract(
    id="health",
    title="Aspirin in acute headache: a randomised trial",
    text="We randomised 400 adults with acute headache to aspirin or placebo. Aspirin relieved pain within two hours.",
)


def evidence_critic() -> ModuleFound:
    """The evidence critic grades a small abstract by its offline grader."""
    try:
        screening = screen_abstracts("Does aspirin relieve headache?", [_ABSTRACT], Settings())
    except Exception as error:  # noqa: BLE001 (as above)
        return ModuleFound("evidence critic", False, f"does not start: {type(error).__name__}: {error}", _REINSTALL)
    if not screening.grades:
        return ModuleFound("evidence critic", False, "graded nothing of a small abstract", _REINSTALL)
    return ModuleFound("evidence critic", True, "graded a small abstract")


def doors(settings: Settings, *, try_them: bool) -> Iterator[ModuleFound]:
    """Each optional door: not installed, or installed and, where it is tried, whether it imports.

    One that is not installed is a fault where the settings ask for it by something that is no role: telemetry.
    """
    for door in DOORS:
        install = f"pip install 'masis-workbench[{door.extra}]'"
        if not _installed(door.library) and door.extra == "otel" and settings.telemetry != "off":
            asked_for = f"not installed, and the setting telemetry = {settings.telemetry} asks for it"
            yield ModuleFound(door.name, False, asked_for, f"{install}, or set telemetry = off.")
        elif not _installed(door.library):
            yield ModuleFound(door.name, True, f"not installed, and needed by nothing else ({install})", absent=True)
        elif not try_them and door.imports not in _found_out:
            yield ModuleFound(door.name, True, "installed; not tried now")
        elif why := _tried(door.imports):
            yield ModuleFound(door.name, False, f"installed, but does not import: {why}", f"Try {install} again.")
        else:
            yield ModuleFound(door.name, True, "installed, and imports")


def _installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except ModuleNotFoundError:  # not even what it is a part of
        return False


_found_out: dict[str, str] = {}
"""What trying each door came to: what is installed does not change while a process runs."""


def _tried(module: str) -> str:
    """Why a module does not import, in the words of Python; empty where it does."""
    if module not in _found_out:
        _found_out[module] = _import(module)
    return _found_out[module]


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
