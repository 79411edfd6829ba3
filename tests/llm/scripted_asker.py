"""A test double for a role's model: it returns scripted replies and records its requests."""

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
class ModelRequest:
    """One request to the model."""

    prompt: RolePrompt
    shape: type[BaseModel]
    max_tokens: int
    temperature: float | None

    @property
    def file(self) -> str:
        """The name of the prompt file."""
        return self.prompt.version.partition("/")[0]

    @property
    def text(self) -> str:
        """The complete text that is sent."""
        return "\n".join(self.prompt[:3])


@dataclass
class ScriptedAsker:
    """Looks up the reply by the name of the prompt file.

    A sequence of replies is used in order, and its last reply is repeated. A reply is a record, a
    text that is parsed as a server's reply would be, an error to raise, or a function of the
    prompt.
    """

    replies: dict[str, Reply | Sequence[Reply]]
    name: str = "scripted:model"
    control: RunControl = field(default_factory=lambda: RunControl(fence=MARK))
    requests: list[ModelRequest] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(
        self,
        prompt: RolePrompt,
        shape: type[R],
        *,
        max_tokens: int,
        temperature: float | None = None,
    ) -> R:
        """Return or raise the next reply for this prompt."""
        request = ModelRequest(prompt, shape, max_tokens, temperature)
        with self._lock:
            earlier = len(self.requests_for(request.file))
            self.requests.append(request)
        reply: Any = self.replies[request.file]
        if isinstance(reply, list | tuple):
            reply = reply[min(earlier, len(reply) - 1)]
        if callable(reply):
            reply = reply(prompt)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, str):
            try:
                return parse_reply(reply, shape)
            except UnreadableReply as error:
                raise BadReply(str(error), kind="malformed", raw=reply) from error
        return shape.model_validate(reply)

    def requests_for(self, file: str) -> list[ModelRequest]:
        """Return the requests with this prompt file, in order."""
        return [request for request in self.requests if request.file == file]
