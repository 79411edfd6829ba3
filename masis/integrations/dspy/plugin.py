"""Compiled programs as critics and revisers of an audit, found by name: what the entry points of this package give.

Needs the library only when a role is filled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from masis.errors import SettingsError
from masis.integrations.dspy import here, part, programs, require
from masis.integrations.dspy.programs import Program
from masis.llm.client.model import Model
from masis.schema.audit import JudgedBy
from masis.settings import Settings

if TYPE_CHECKING:
    from masis.integrations.dspy.labelled import Role


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
        """Raise MissingExtra where DSPy is not installed."""
        require()

    def filled(self, model: Model, settings: Settings) -> Any:
        """The critic or reviser, asking this model. Raises MissingExtra where DSPy is not installed."""
        agent = part("critic_loop").agent_of(self.program, settings)
        engine, roles = part("engine"), part("critic_loop")
        sampled = self.program.role == "critic" and settings.judge_samples > 1
        heat = settings.sample_temperature if sampled else agent.temperature
        lm = engine.language_model(model, self.recorded, temperature=heat)
        fill = roles.DspyCritic if self.program.role == "critic" else roles.DspyReviser
        judged_by = JudgedBy(model=self.string, version=self.recorded)
        return fill(agent, lm, model.control, judged_by, traced=False)


@dataclass(frozen=True)
class ProgramShelf:
    """The programs for one role."""

    role: Role

    def named(self, name: str, settings: Settings) -> Compiled:
        """The program ``careful`` or ``careful@2``. Raises SettingsError and InputError."""
        found = programs.named(programs.folder(settings.programs_folder), name)
        if found.role != self.role:
            raise SettingsError(f"{found.string} was compiled as {found.role}: it can't be the {self.role}.")
        return Compiled(found)

    def offered(self, settings: Settings) -> tuple[str, ...]:
        """Every version there is, the newest of each name first; none where DSPy is not installed."""
        if not here():
            return ()
        at = programs.folder(settings.programs_folder)
        found = [each for each in programs.listed(at) if isinstance(each, Program) and each.role == self.role]
        found.sort(key=lambda each: (each.name, -each.version))
        return tuple(each.string for each in found)


critics = ProgramShelf("critic")
revisers = ProgramShelf("reviser")
