"""Compiled programs as critics and revisers of an audit, registered through this package's entry
points.

A program consists of instructions and demonstrations, which the ordinary critic or reviser uses in
its prompt, so DSPy isn't needed. The texts of demonstrations are from cases. They're fenced like
all texts from outside, under names of their own, so that none can be mistaken for the case at hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic_core import to_json

from masis.errors import InputError, SettingsError
from masis.integrations.dspy import programs
from masis.integrations.dspy.programs import Program, Role
from masis.llm.client.model import Model
from masis.llm.roles.critic import ModelCritic
from masis.llm.roles.prompting import (
    RolePrompt,
    Section,
    answer,
    fence,
    load,
    question_and_evidence,
    rows,
)
from masis.llm.roles.replies import CritiqueReply, RevisionReply, RoleReply
from masis.llm.roles.reviser import ModelReviser
from masis.schema.case import evidence_of
from masis.settings import Settings

R = TypeVar("R", bound=BaseModel)
SHAPES: dict[Role, type[RoleReply]] = {"critic": CritiqueReply, "reviser": RevisionReply}
EXAMPLE = "EXAMPLE_"
"""The start of the fence names of a demonstration."""

_BEFORE_EXAMPLES = (
    "Examples of the task, from other cases. Their texts are no evidence for the case at hand; they"
    " show what is an issue, what is none, and the form. The right reply to each stands in its"
    " fence EXAMPLE_REPLY."
)
_AFTER_EXAMPLES = "Those were the examples. Here is the case at hand:"
# The random mark of a fence, as in "<<<ANSWER 0123456789abcdef>>>".
_MARK = re.compile(r"<<<[A-Z_]+ ([0-9a-f]{16,64})>>>")


def apply_program(
    prompt: RolePrompt, role: Role, instructions: str, examples: Sequence[Sequence[Section]]
) -> RolePrompt:
    """Replace the instructions of a prompt and add examples before the case.

    Instructions for house rules, which follow those of the file, stay.
    The prompt's mark was drawn after the demonstrations were written, so they can't contain it.
    Raises InputError if the prompt doesn't have its file's instructions.
    """
    own = load(role).before
    if not prompt.instructions.startswith(own):
        raise InputError(
            f"the {role}'s prompt can't be given other instructions", hint="Compile again."
        )
    mark = _MARK.findall(f"{prompt.shared}\n{prompt.task}")[0]
    shared = prompt.shared
    if examples:
        parts = [_BEFORE_EXAMPLES]
        for number, sections in enumerate(examples, 1):
            parts += [f"Example {number}:", *(fence(section, mark) for section in sections)]
        shared = "\n\n".join([*parts, _AFTER_EXAMPLES, shared])
    of_house = prompt.instructions.removeprefix(own)
    return prompt._replace(instructions=f"{instructions}{of_house}", shared=shared)


def examples_of(role: Role, demos: Sequence[Mapping[str, Any]]) -> list[list[Section]]:
    """Return the sections of each demonstration. Raises InputError if one isn't a case."""
    examples = []
    for number, demo in enumerate(demos, 1):
        try:
            shared, judged = _role_sections(role, demo)
            reply = {
                name: plain(demo[name])
                for name in SHAPES[role].model_fields
                if demo.get(name) is not None
            }
            if not reply:
                raise KeyError("reply")
        except (TypeError, AttributeError, KeyError, ValueError, InputError) as error:
            raise InputError(
                f"demonstration {number} isn't a case ({error})", hint="Compile again."
            ) from error
        case = [Section(EXAMPLE + section.name, section.text) for section in (*shared, *judged)]
        examples.append([*case, Section(f"{EXAMPLE}REPLY", json.dumps(reply, ensure_ascii=False))])
    return examples


def _role_sections(
    role: Role, inputs: Mapping[str, Any]
) -> tuple[tuple[Section, ...], list[Section]]:
    """Return the sections that all calls of an audit share, and those that the role judges."""
    shared = question_and_evidence(
        inputs["original_query"], evidence_of(inputs["evidence_chunks"], "evidence_chunks")
    )
    if role == "reviser":
        critique = [rows("ISSUES", inputs["issues"]), rows("CRITIQUE", [inputs["critique"]])]
        return shared, [answer(inputs["original_answer"]), *critique]
    judged = [answer(inputs["answer"])]
    if steps := inputs.get("reasoning_steps"):
        judged.append(
            rows(
                "REASONING",
                ({"step": number, "text": text} for number, text in enumerate(steps, 1)),
            )
        )
    return shared, judged


def plain(value: Any) -> Any:
    """Convert a value to JSON types: records to dicts, and NaN and infinity to None."""
    return json.loads(to_json(value, inf_nan_mode="null"))


class ProgramAsker:
    """Calls a model with the instructions and demonstrations of a program."""

    def __init__(self, model: Model, program: Program) -> None:
        self._model, self._program = model, program
        (self._part,) = program.state.values()
        self._examples = examples_of(program.role, self._part.demos)
        self.control = model.control
        self.name = program.string

    def ask(
        self,
        prompt: RolePrompt,
        shape: type[R],
        *,
        max_tokens: int,
        temperature: float | None = None,
    ) -> R:
        """Return the reply as a record. Raises like ``Model.ask``."""
        changed = apply_program(prompt, self._program.role, self._part.instructions, self._examples)
        of_house = prompt.version.removeprefix(load(self._program.role).version)
        changed = changed._replace(version=f"{self._program.version_name}{of_house}")
        return self._model.ask(changed, shape, max_tokens=max_tokens, temperature=temperature)


class CompiledRole(Program):
    """A program in a role of an audit."""

    @property
    def asks(self) -> str:
        """The model it was compiled for."""
        return self.model

    def check(self) -> None:
        """Do nothing, because a program needs no package."""

    def build(self, model: Model, settings: Settings) -> ModelCritic | ModelReviser:
        """Return the critic or reviser with this model. Raises InputError if a demonstration isn't
        a case.
        """
        asker = ProgramAsker(model, self)
        if self.role == "reviser":
            return ModelReviser(asker, version=self.version_name)
        temperature = settings.sample_temperature if settings.judge_samples > 1 else 0.0
        return ModelCritic(asker, temperature, self.version_name)


@dataclass(frozen=True)
class ProgramRegistry:
    """The programs for one role."""

    role: Role

    def find(self, name: str, settings: Settings) -> CompiledRole:
        """Read the program ``careful`` or ``careful@2``. Raises SettingsError and InputError."""
        program = programs.find_program(programs.folder(settings.programs_folder), name)
        if program.role != self.role:
            raise SettingsError(
                f"{program.string} was compiled as a {program.role}, so it can't be the"
                f" {self.role}."
            )
        return CompiledRole.model_construct(**dict(program))

    def available(self, settings: Settings) -> tuple[str, ...]:
        """Return every saved version, by name and newest first."""
        saved = [
            program
            for program in programs.list_programs(programs.folder(settings.programs_folder))
            if isinstance(program, Program) and program.role == self.role
        ]
        saved.sort(key=lambda program: (program.name, -program.version))
        return tuple(program.string for program in saved)


critics = ProgramRegistry("critic")
revisers = ProgramRegistry("reviser")
