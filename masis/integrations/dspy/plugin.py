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
"""What the names of fences around a demonstration begin with."""

_BEFORE_EXAMPLES = (
    "Examples of the task, from other cases. Their texts are no evidence for the case at hand; they"
    " show what is an issue, what is none, and the form. The right reply to each stands in its"
    " fence EXAMPLE_REPLY."
)
_AFTER_EXAMPLES = "Those were the examples. Here is the case at hand:"
_MARK = re.compile(r"<<<[A-Z_]+ ([0-9a-f]{16,64})>>>")


def with_program(
    prompt: RolePrompt, role: Role, instructions: str, examples: Sequence[Sequence[Section]]
) -> RolePrompt:
    """Return the prompt with these instructions in place of the prompt file's, and the examples
    before the case.

    The mark of the prompt was drawn after the demonstrations were written, so none of them holds
    it. Raises InputError where the prompt does not hold the file's instructions.
    """
    if prompt.instructions != load(role).before:
        raise InputError(
            f"the prompt of the {role} has no place for other instructions", hint="Compile again."
        )
    mark = _MARK.findall(f"{prompt.shared}\n{prompt.task}")[0]
    shared = prompt.shared
    if examples:
        parts = [_BEFORE_EXAMPLES]
        for number, sections in enumerate(examples, 1):
            parts += [f"Example {number}:", *(fence(section, mark) for section in sections)]
        shared = "\n\n".join([*parts, _AFTER_EXAMPLES, shared])
    return prompt._replace(instructions=instructions, shared=shared)


def examples_of(role: Role, demos: Sequence[Mapping[str, Any]]) -> list[list[Section]]:
    """Return the fenced texts of each demonstration. Raises InputError for one that
    can't be shown.
    """
    shown = []
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
                f"demonstration {number} shows no case ({error})", hint="Compile again."
            ) from error
        case = [Section(EXAMPLE + section.name, section.text) for section in (*shared, *judged)]
        shown.append([*case, Section(f"{EXAMPLE}REPLY", json.dumps(reply, ensure_ascii=False))])
    return shown


def _role_sections(
    role: Role, inputs: Mapping[str, Any]
) -> tuple[tuple[Section, ...], list[Section]]:
    """Return what all calls of an audit share, and what the role judges."""
    shared = question_and_evidence(
        inputs["original_query"], evidence_of(inputs["evidence_chunks"], "evidence_chunks")
    )
    if role == "reviser":
        found = [rows("ISSUES", inputs["issues"]), rows("CRITIQUE", [inputs["critique"]])]
        return shared, [answer(inputs["original_answer"]), *found]
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
    """Return a value as JSON has it: records as objects, what is no finite number as null."""
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
        """Return the reply as a record. Raises as ``Model.ask``."""
        changed = with_program(prompt, self._program.role, self._part.instructions, self._examples)
        changed = changed._replace(version=self._program.version_name)
        return self._model.ask(changed, shape, max_tokens=max_tokens, temperature=temperature)


class CompiledRole(Program):
    """A program as an audit asks for it."""

    @property
    def asks(self) -> str:
        """The model it was compiled for."""
        return self.model

    def check(self) -> None:
        """Nothing can be missing: no package is needed."""

    def build(self, model: Model, settings: Settings) -> ModelCritic | ModelReviser:
        """Return the critic or reviser, asking this model. Raises InputError for demonstrations
        that show no case.
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
        """Return the program ``careful`` or ``careful@2``. Raises SettingsError and InputError."""
        found = programs.find_program(programs.folder(settings.programs_folder), name)
        if found.role != self.role:
            raise SettingsError(
                f"{found.string} was compiled as {found.role}: it can't be the {self.role}."
            )
        return CompiledRole.model_construct(**dict(found))

    def available(self, settings: Settings) -> tuple[str, ...]:
        """Return every version there is, the newest of each name first."""
        at = programs.folder(settings.programs_folder)
        found = [
            each
            for each in programs.list_programs(at)
            if isinstance(each, Program) and each.role == self.role
        ]
        found.sort(key=lambda each: (each.name, -each.version))
        return tuple(each.string for each in found)


critics = ProgramRegistry("critic")
revisers = ProgramRegistry("reviser")
