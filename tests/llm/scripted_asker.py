"""A model that answers as a test tells it, and keeps what it was asked: a double for roles, without
a provider.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from masis.audit.control.run_control import RunControl
from masis.errors import BadReply, StepError
from masis.llm.client.reply_parsing import UnreadableReply, parse_reply
from masis.llm.roles.prompting import R, RolePrompt

MARK = "0123456789abcdef0123456789abcdef"

Reply = (
    dict[str, Any] | str | StepError | Callable[[RolePrompt], "dict[str, Any] | str | StepError"]
)


@dataclass(frozen=True)
class Asked:
    """One question put to the model."""

    prompt: RolePrompt
    shape: type[BaseModel]
    max_tokens: int
    temperature: float | None

    @property
    def file(self) -> str:
        """The prompt file."""
        return self.prompt.version.partition("/")[0]

    @property
    def text(self) -> str:
        """All that is sent."""
        return "\n".join(self.prompt[:3])


@dataclass
class ScriptedAsker:
    """Answers by the name of the prompt file: a reply for all calls, or a sequence, the last one
    again and again.

    A reply is a record, a text to be read as a server's reply is, an error to raise, or a function
    of the prompt.
    """

    replies: dict[str, Reply | Sequence[Reply]]
    name: str = "scripted:model"
    control: RunControl = field(default_factory=lambda: RunControl(fence=MARK))
    asked: list[Asked] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(
        self,
        prompt: RolePrompt,
        shape: type[R],
        *,
        max_tokens: int,
        temperature: float | None = None,
    ) -> R:
        """The next reply for this prompt."""
        asked = Asked(prompt, shape, max_tokens, temperature)
        with self._lock:
            before = sum(each.file == asked.file for each in self.asked)
            self.asked.append(asked)
        given: Any = self.replies[asked.file]
        if isinstance(given, list | tuple):
            given = given[min(before, len(given) - 1)]
        if callable(given):
            given = given(prompt)
        if isinstance(given, Exception):
            raise given
        if isinstance(given, str):
            try:
                return parse_reply(given, shape)
            except UnreadableReply as error:
                raise BadReply(str(error), kind="malformed", raw=given) from error
        return shape.model_validate(given)

    def of(self, file: str) -> list[Asked]:
        """What was asked with this prompt file, in order."""
        return [each for each in self.asked if each.file == file]
