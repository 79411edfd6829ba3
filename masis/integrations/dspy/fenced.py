"""How a task of ours is put to a model through DSPy: every text from outside in a fence, as our own prompts have it.

DSPy's own adapters set off fields by headings that a hostile text may hold as well. Here the frame, the fences and the
reading of replies are those of ``masis/llm``; demonstrations stand in fences too, since they are made from cases, and
under names of their own, so that nothing in them passes for the case at hand.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dspy
from pydantic import BaseModel

from masis.errors import InputError
from masis.integrations.dspy.contracts import evidence_of
from masis.integrations.dspy.signatures import CRITIC_PROMPT, REVISER_PROMPT, shape_of
from masis.llm.client import schemas
from masis.llm.client.reply_parsing import Unreadable, read
from masis.llm.roles.prompting import FRAME, Section, answer, fenced, load, question_and_evidence, rows, unforgeable
from masis.llm.roles.replies import CritiqueReply, Reply

EXAMPLE = "EXAMPLE_"
"""What the names of fences around a demonstration begin with."""
_BEFORE_EXAMPLES = (
    "Examples of the task that is set below, from other cases. Their texts are no evidence for the case at hand; they "
    "show what is an issue, what is none, and the form. The right reply to each stands in its fence EXAMPLE_REPLY."
)
_AFTER_EXAMPLES = "Those were the examples. Here is the case at hand:"


class Fenced(dspy.Adapter):
    """Puts a task of ours to a model, and reads the reply. For one call: ``mark`` closes its fences."""

    def __init__(self, mark: str) -> None:
        super().__init__()
        self._mark = mark
        self._schema_in_prompt = True

    def __call__(
        self, lm: Any, lm_kwargs: dict[str, Any], signature: Any, demos: list[Any], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Ask, and read what came. Raises AdapterParseError for a reply that can't be read."""
        self._ask_by_schema(lm, lm_kwargs, signature)
        return super().__call__(lm, lm_kwargs, signature, demos, inputs)  # type: ignore[no-any-return]

    async def acall(
        self, lm: Any, lm_kwargs: dict[str, Any], signature: Any, demos: list[Any], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """The same, awaited."""
        self._ask_by_schema(lm, lm_kwargs, signature)
        return await super().acall(lm, lm_kwargs, signature, demos, inputs)  # type: ignore[no-any-return]

    def _ask_by_schema(self, lm: Any, lm_kwargs: dict[str, Any], signature: Any) -> None:
        """The strict schema beside the messages where the model takes one, else in the prompt."""
        if takes_schema(lm):
            schema = schemas.of(shape_of(signature))
            response_schema = {"name": schema.name, "strict": True, "schema": schema.schema}
            lm_kwargs["response_format"] = {"type": "json_schema", "json_schema": response_schema}
            self._schema_in_prompt = False

    def format(self, signature: Any, demos: list[Any], inputs: dict[str, Any]) -> list[dict[str, Any]]:
        """The frame as the system's message; mark, demonstrations, case, instructions as the user's."""
        shape = shape_of(signature)
        shared, judged = _shared(inputs), _judged(shape, inputs)
        shown = [tuple(_example(shape, demo)) for demo in map(_mapping, demos) if _complete(signature, demo)]
        texts = [section.text for section in (*shared, *judged, *(each for one in shown for each in one))]
        mark = unforgeable(self._mark, texts)
        parts = [f"The mark of all fences below: {mark}"]
        if shown:
            parts.append(_BEFORE_EXAMPLES)
            for number, sections in enumerate(shown, 1):
                parts += [f"Example {number}:", *(fenced(section, mark) for section in sections)]
            parts.append(_AFTER_EXAMPLES)
        parts += [fenced(section, mark) for section in shared]
        parts += [signature.instructions, *(fenced(section, mark) for section in judged), load(_prompt(shape)).after]
        if self._schema_in_prompt:
            schema = schemas.of(shape)
            parts.append(
                "Reply with one JSON object and nothing else: no prose, no code fence. It satisfies this JSON schema, "
                f"named {schema.name}:\n{schema.text}"
            )
        return [
            {"role": "system", "content": load(FRAME).before},
            {"role": "user", "content": "\n\n".join(parts)},
        ]

    def parse(self, signature: Any, completion: str) -> dict[str, Any]:
        """The fields of the reply, scores unchanged. Raises AdapterParseError."""
        shape = shape_of(signature)
        try:
            record = read(completion, shape)
        except Unreadable as error:
            raise dspy.AdapterParseError("Fenced", signature, completion, message=str(error)) from None
        return {name: getattr(record, name) for name in shape.model_fields}


def check_demonstrations(signature: Any, demos: Sequence[Any]) -> None:
    """Raise InputError where a demonstration can't be shown: better before an audit than in the middle of it."""
    for number, demo in enumerate(demos, 1):
        try:
            if _complete(signature, demo):
                list(_example(shape_of(signature), _mapping(demo)))
                continue
        except (TypeError, AttributeError, KeyError, ValueError, InputError) as error:
            raise InputError(f"demonstration {number} shows no case ({error})", cure="Compile again.") from error
        raise InputError(f"demonstration {number} has not all that a case has", cure="Compile again.")


def takes_schema(lm: Any) -> bool:
    """Whether a model is known to take a strict schema beside the messages."""
    if getattr(getattr(lm, "engine", None), "takes_schema", False):
        return True
    with contextlib.suppress(Exception):  # a model unknown to the library's tables is asked in the prompt
        return bool(lm.supports_response_schema and "response_format" in lm.supported_params)
    return False


def _prompt(shape: type[Reply]) -> str:
    return CRITIC_PROMPT if shape is CritiqueReply else REVISER_PROMPT


def _shared(inputs: Mapping[str, Any]) -> tuple[Section, ...]:
    return question_and_evidence(inputs["original_query"], evidence_of(inputs["evidence_chunks"]))


def _judged(shape: type[Reply], inputs: Mapping[str, Any]) -> list[Section]:
    if shape is not CritiqueReply:
        return [
            answer(inputs["original_answer"]),
            rows("ISSUES", inputs["issues"]),
            rows("CRITIQUE", [inputs["critique"]]),
        ]
    judged = [answer(inputs["answer"])]
    if steps := inputs.get("reasoning_steps"):
        judged.append(rows("REASONING", ({"step": number, "text": text} for number, text in enumerate(steps, 1))))
    return judged


def _example(shape: type[Reply], demo: Mapping[str, Any]) -> Iterator[Section]:
    for section in (*_shared(demo), *_judged(shape, demo)):
        yield Section(EXAMPLE + section.name, section.text)
    reply = {name: plain(demo[name]) for name in shape.model_fields if demo.get(name) is not None}
    yield Section(f"{EXAMPLE}REPLY", json.dumps(reply, ensure_ascii=False))


def _complete(signature: Any, demo: Any) -> bool:
    """Whether a demonstration has all that its fences need, and a part of the reply at least."""
    values = _mapping(demo)
    needed = [name for name in signature.input_fields if name != "reasoning_steps"]
    replied = any(values.get(name) is not None for name in signature.output_fields)
    return replied and all(values.get(name) is not None for name in needed)


def _mapping(demo: Any) -> Mapping[str, Any]:
    return demo if isinstance(demo, Mapping) else dict(demo.items())


def plain(value: Any) -> Any:
    """A value as JSON has it: records as objects, what is no finite number as null."""
    if isinstance(value, BaseModel):
        return plain(value.model_dump(mode="json"))
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    if isinstance(value, float) and value - value != 0.0:
        return None
    return value
