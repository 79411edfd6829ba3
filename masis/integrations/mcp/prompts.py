"""Prompts: what a person may ask of an agent with these tools in one word, as clients offer it beside their input.

Each says which tools to use and what to report in the end. None asks an agent to decide: that is for people. What is
given as an argument, and every id, is quoted as JSON, so that it stays data.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

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


def _takes(name: str, description: str, *, required: bool = True) -> wire.PromptArgument:
    return wire.PromptArgument(name=name, description=description, required=required)


PROMPTS = (
    Prompt(
        name="check_draft",
        title="Check a draft answer",
        description="Hold a draft answer against stored evidence, and improve it where the evidence says otherwise.",
        arguments=[
            _takes("question", "The question that the draft answers"),
            _takes("draft", "The draft answer"),
            _takes(
                "case_id", "Id of a stored case whose evidence counts; left out: evidence is searched", required=False
            ),
        ],
        text="Check the draft given below against stored evidence. Take the evidence of the case that is named "
        "(get_case), or find some with search_evidence. Call critique_answer with the question, the draft, the ids of "
        "that evidence as sourceIds, and autoRevise. Then tell: whether the draft is valid, each issue with the words "
        "of the draft and of the source, what could not be judged (unscored), and the revised draft where there is "
        "one. Say nothing for certain that the result leaves open.",
    ),
    Prompt(
        name="explain_run",
        title="Explain an audit",
        description="Tell a person who must decide what an audit found, and on what it rests.",
        arguments=[_takes("run_id", "Id of the run")],
        text="Explain the audit given below to the person who must decide about it. Call get_run for it and get_case "
        "for its case. Report what is wrong with the original answer, most severe first, each with its words and "
        "those of the evidence; what the revision changed, and whether it is better; what could not be judged; why a "
        "person is asked. Do not recommend a verdict: the decision is the person's.",
    ),
    Prompt(
        name="whats_waiting",
        title="What waits for people",
        description="Sum up the review queue: what waits, and what to look at first.",
        text="Sum up the review queue. Call list_queue with states [needs_review], as many pages as it takes up to "
        "five. Tell how many cases wait and why (reasons), and name the five to look at first, each with its id, its "
        "question and what was found. Decide nothing.",
    ),
)


def prompt_named(name: str) -> Prompt:
    """Return the prompt of this name. Raises InputError naming those there are."""
    by_name = {prompt.name: prompt for prompt in PROMPTS}
    if name in by_name:
        return by_name[name]
    near = difflib.get_close_matches(name[:60], by_name, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise InputError(f"there is no prompt {named(name)}{hint}", cure=f"There are: {', '.join(by_name)}.", field="name")
