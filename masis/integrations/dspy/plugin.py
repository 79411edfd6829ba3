"""Compiled programs as critics and revisers of an audit, found by name: what the entry points of this package give.

A program is instructions and demonstrations: the ordinary critic or reviser asks with them, and DSPy is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from masis.audit.run_control import RunControl
from masis.errors import SettingsError
from masis.integrations.dspy import programs
from masis.integrations.dspy.demonstrations import Role, examples_of, with_program
from masis.integrations.dspy.programs import Program
from masis.llm.client.model import Model
from masis.llm.roles.critic import ModelCritic
from masis.llm.roles.prompting import Prompt
from masis.llm.roles.reviser import ModelReviser
from masis.schema.audit import JudgedBy
from masis.settings import Settings

R = TypeVar("R", bound=BaseModel)


class ProgramAsker:
    """A model that is asked with the instructions and demonstrations of a program."""

    def __init__(self, model: Model, program: Program) -> None:
        self._model, self._program = model, program
        (self._part,) = program.state.values()
        self._examples = examples_of(program.role, self._part.demos)

    @property
    def name(self) -> str:
        """``dspy:careful@2``."""
        return self._program.string

    @property
    def control(self) -> RunControl:
        """The run's limits."""
        return self._model.control

    def ask(self, prompt: Prompt, shape: type[R], *, max_tokens: int, temperature: float | None = None) -> R:
        """Return the reply as a record. Raises as ``Model.ask``."""
        changed = with_program(prompt, self._program.role, self._part.instructions, self._examples)
        changed = changed._replace(version=self._program.recorded)
        return self._model.ask(changed, shape, max_tokens=max_tokens, temperature=temperature)


class _Versioned:
    """Names the program's version in place of the prompt file's."""

    asker: Any
    version: str

    @property
    def judged_by(self) -> JudgedBy:
        return JudgedBy(model=self.asker.name, version=self.version)


@dataclass(frozen=True)
class CompiledCritic(_Versioned, ModelCritic):
    """The critic with a program."""

    version: str = ""


@dataclass(frozen=True)
class CompiledReviser(_Versioned, ModelReviser):
    """The reviser with a program."""

    version: str = ""


@dataclass(frozen=True)
class Compiled:
    """One program, as an audit asks for it."""

    program: Program

    @property
    def string(self) -> str:
        """``dspy:careful@2``."""
        return self.program.string

    @property
    def asks(self) -> str:
        """The model it was compiled for."""
        return self.program.model

    @property
    def recorded(self) -> str:
        """``dspy:careful@2+1f3a9c0b``: name, version, digest."""
        return self.program.recorded

    @property
    def characters(self) -> int:
        """How long instructions and demonstrations are."""
        return self.program.characters

    def check(self) -> None:
        """Nothing can be missing: no package is needed."""

    def filled(self, model: Model, settings: Settings) -> CompiledCritic | CompiledReviser:
        """Return the critic or reviser, asking this model. Raises InputError for demonstrations that show no case."""
        asker = ProgramAsker(model, self.program)
        if self.program.role == "reviser":
            return CompiledReviser(asker, version=self.recorded)
        heat = settings.sample_temperature if settings.judge_samples > 1 else 0.0
        return CompiledCritic(asker, heat, version=self.recorded)


@dataclass(frozen=True)
class ProgramShelf:
    """The programs for one role."""

    role: Role

    def named(self, name: str, settings: Settings) -> Compiled:
        """Return the program ``careful`` or ``careful@2``. Raises SettingsError and InputError."""
        found = programs.named(programs.folder(settings.programs_folder), name)
        if found.role != self.role:
            raise SettingsError(f"{found.string} was compiled as {found.role}: it can't be the {self.role}.")
        return Compiled(found)

    def offered(self, settings: Settings) -> tuple[str, ...]:
        """Return every version there is, the newest of each name first."""
        at = programs.folder(settings.programs_folder)
        found = [each for each in programs.listed(at) if isinstance(each, Program) and each.role == self.role]
        found.sort(key=lambda each: (each.name, -each.version))
        return tuple(each.string for each in found)


critics = ProgramShelf("critic")
revisers = ProgramShelf("reviser")
