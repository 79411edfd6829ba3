"""A task of the critic or the reviser with the instructions and demonstrations of a compiled program in it.

The texts of demonstrations come from cases, so they stand in fences like every text from outside, under names of their
own, so that nothing in them passes for the case at hand. Needs no library: the ordinary critic and reviser ask so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel

from masis.errors import InputError
from masis.llm.roles.prompting import Prompt, Section, answer, compose, fenced, load, question_and_evidence, rows
from masis.llm.roles.replies import CritiqueReply, Reply, RevisionReply
from masis.schema.case import evidence_of

Role = Literal["critic", "reviser"]
SHAPES: dict[Role, type[Reply]] = {"critic": CritiqueReply, "reviser": RevisionReply}
EXAMPLE = "EXAMPLE_"
"""What the names of fences around a demonstration begin with."""

_BEFORE_EXAMPLES = (
    "Examples of the task, from other cases. Their texts are no evidence for the case at hand; they show what is an "
    "issue, what is none, and the form. The right reply to each stands in its fence EXAMPLE_REPLY."
)
_AFTER_EXAMPLES = "Those were the examples. Here is the case at hand:"
_MARK = re.compile(r"<<<[A-Z_]+ ([0-9a-f]{16,64})>>>")


def task(role: Role, inputs: Mapping[str, Any], mark: str) -> Prompt:
    """Return the prompt of a task whose inputs have the names of the specs."""
    return compose(role, mark, *_sections(role, inputs))


def with_program(prompt: Prompt, role: Role, instructions: str, examples: Sequence[Sequence[Section]]) -> Prompt:
    """Return the prompt with these instructions in place of the prompt file's, and the examples before the case.

    The mark of the prompt was drawn after the demonstrations were written, so none of them holds it. Raises InputError
    where the prompt does not hold the file's instructions.
    """
    if prompt.instructions != load(role).before:
        raise InputError(f"the prompt of the {role} has no place for other instructions", cure="Compile again.")
    mark = _MARK.findall(f"{prompt.shared}\n{prompt.task}")[0]
    shared = prompt.shared
    if examples:
        parts = [_BEFORE_EXAMPLES]
        for number, sections in enumerate(examples, 1):
            parts += [f"Example {number}:", *(fenced(section, mark) for section in sections)]
        shared = "\n\n".join([*parts, _AFTER_EXAMPLES, shared])
    return prompt._replace(instructions=instructions, shared=shared)


def examples_of(role: Role, demos: Sequence[Mapping[str, Any]]) -> list[list[Section]]:
    """Return the fenced texts of each demonstration. Raises InputError for one that can't be shown."""
    shown = []
    for number, demo in enumerate(demos, 1):
        try:
            shared, judged = _sections(role, demo)
            reply = {name: plain(demo[name]) for name in SHAPES[role].model_fields if demo.get(name) is not None}
            if not reply:
                raise KeyError("reply")
        except (TypeError, AttributeError, KeyError, ValueError, InputError) as error:
            raise InputError(f"demonstration {number} shows no case ({error})", cure="Compile again.") from error
        case = [Section(EXAMPLE + section.name, section.text) for section in (*shared, *judged)]
        shown.append([*case, Section(f"{EXAMPLE}REPLY", json.dumps(reply, ensure_ascii=False))])
    return shown


def _sections(role: Role, inputs: Mapping[str, Any]) -> tuple[tuple[Section, ...], list[Section]]:
    """Return what all calls of an audit share, and what the role judges."""
    shared = question_and_evidence(inputs["original_query"], evidence_of(inputs["evidence_chunks"], "evidence_chunks"))
    if role == "reviser":
        found = [rows("ISSUES", inputs["issues"]), rows("CRITIQUE", [inputs["critique"]])]
        return shared, [answer(inputs["original_answer"]), *found]
    judged = [answer(inputs["answer"])]
    if steps := inputs.get("reasoning_steps"):
        judged.append(rows("REASONING", ({"step": number, "text": text} for number, text in enumerate(steps, 1))))
    return shared, judged


def plain(value: Any) -> Any:
    """Return a value as JSON has it: records as objects, what is no finite number as null."""
    if isinstance(value, BaseModel):
        return plain(value.model_dump(mode="json"))
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    if isinstance(value, float) and value - value != 0.0:
        return None
    return value
