"""Prompts: what a person may ask of an agent with these tools in one word (``prompts.toml``), as clients offer it.

What is given as an argument, and every id, is quoted as JSON, so that it stays data.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path

from mcp import types as wire
from pydantic import Field

from masis.errors import InputError
from masis.integrations.mcp.quoting import named, quoted_json
from masis.schema import limits


class Prompt(wire.Prompt):
    """One prompt: ``text`` is followed by the arguments, quoted."""

    arguments: list[wire.PromptArgument] = Field(default_factory=list)
    text: str = Field(exclude=True)

    def message(self, arguments: Mapping[str, str] | None) -> str:
        """Return the text for the agent. Raises InputError naming each missing, unknown or too long argument."""
        values = {name: value for name, value in (arguments or {}).items() if value.strip()}
        names = [argument.name for argument in self.arguments]
        wrong = [f"{each.name} is missing" for each in self.arguments if each.required and each.name not in values]
        wrong += [f"there is no argument {named(name)}" for name in values if name not in names]
        wrong += [
            f"{named(name)} has more than {limits.ANSWER:,} characters"
            for name in values
            if len(values[name]) > limits.ANSWER
        ]
        if wrong:
            takes = f"{self.name} takes {', '.join(names) or 'no arguments'}."
            raise InputError("; ".join(wrong), cure=takes, field="arguments")
        return self.text if not values else f"{self.text}\n\nThe arguments, as data: {quoted_json(values)}"


PROMPTS: tuple[Prompt, ...] = tuple(
    Prompt.model_validate(each)
    for each in tomllib.loads(Path(__file__).with_name("prompts.toml").read_text(encoding="utf-8"))["prompts"]
)


def prompt_named(name: str) -> Prompt:
    """Return the prompt of this name. Raises InputError naming those there are."""
    by_name: dict[str, Prompt] = {prompt.name: prompt for prompt in PROMPTS}
    if name in by_name:
        return by_name[name]
    near = difflib.get_close_matches(name[:60], by_name, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise InputError(f"there is no prompt {named(name)}{hint}", cure=f"There are: {', '.join(by_name)}.", field="name")
