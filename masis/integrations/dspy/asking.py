"""How an agent asks: our prompts and fences through DSPy, and a model of ours as a ``dspy.LM``.

DSPy's own adapters set off fields by headings that a hostile text may hold as well, so the prompt, the fences and the
reading of replies are those of ``masis/llm``. A model is asked as every role asks it: addresses, keys, retries,
deadlines and the record of each call are ``masis.llm.client.model``'s. Any other ``dspy.LM`` is a provider like others.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import dspy
from dspy import lm15

from masis.api.roles import calls_at_once
from masis.audit.run_control import RunControl
from masis.errors import ProviderFailed, StepError
from masis.integrations.dspy.demonstrations import SHAPES, Role, examples_of, task, with_program
from masis.llm.client.limits import Limiter
from masis.llm.client.model import Model
from masis.llm.client.retry import RetryPolicy
from masis.llm.client.server_capabilities import ServerCapabilities
from masis.llm.providers.base import Call, Reply, Tokens, Trouble, TryFailed
from masis.llm.roles.prompting import Prompt, load
from masis.schema.calls import ReplyMode
from masis.settings import Settings

TOKENS_MOST = 8_000


class Stopped(BaseException):
    """No further call is to be made. No ``Exception``: optimisers count those and go on with the next case."""


@dataclass(frozen=True)
class OurEngine:
    """A model of ours behind a ``dspy.LM``; each call is made within ``turn``, which may raise Stopped."""

    model: Model
    version: str
    turn: Callable[[], AbstractContextManager[None]] = nullcontext

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Return words, for an optimiser that has instructions written. Raises ProviderError for our StepError."""
        system = request.system if isinstance(request.system, str) else _texts(request.system or ())
        text = "\n\n".join(_texts(message.parts) for message in request.messages)
        prompt = Prompt(system or "You are a careful assistant.", "Your task:", text, self.version)
        most = request.config.max_tokens or TOKENS_MOST
        with self.turn():
            try:
                words = self.model.say(prompt, max_tokens=most, temperature=request.config.temperature)
            except StepError as error:
                raise lm15.ProviderError(str(error)) from error
        return lm15.Response(
            id=None,
            model=self.model.name,
            message=lm15.Message.assistant(words),
            finish_reason="stop",
            usage=lm15.Usage(),
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> OurEngine:
        return self  # connections and limits are shared by all copies of a program


def language_model(
    model: Model,
    version: str,
    *,
    temperature: float = 0.0,
    turn: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Any:
    """Return a model of ours as a ``dspy.LM``; ``version`` is recorded with each call."""
    return dspy.LM(
        f"masis/{model.name.replace('/', ' ')}",  # the library takes what follows the last slash for a family of models
        engine=OurEngine(model, version, turn),
        cache=False,
        num_retries=0,
        temperature=temperature,
        max_tokens=TOKENS_MOST,
    )


def name_of(lm: Any) -> str:
    """Return the name of a model, as records have it."""
    engine = getattr(lm, "engine", None)
    return engine.model.name if isinstance(engine, OurEngine) else str(getattr(lm, "model", None) or type(lm).__name__)


def asked(predictor: Any, inputs: dict[str, Any], lm: Any, control: RunControl, settings: Settings, role: Role) -> Any:
    """Return a predictor's prediction. Raises ProviderFailed or BadReply, as ``Model.ask``."""
    lm = predictor.lm or lm or dspy.settings.lm
    if lm is None:
        raise ProviderFailed("no model is named: give the agent an lm, or set one with dspy.context(lm=...)")
    if not isinstance(getattr(lm, "engine", None), OurEngine):
        lent = LentModel(lm)
        model = Model(
            name=name_of(lm),
            model=name_of(lm),
            role=role,
            control=control,
            provider=lent,
            limiter=Limiter(calls_at_once(settings)),
            capabilities=ServerCapabilities(lent.modes),
            retry=RetryPolicy(settings.max_retries, settings.retry_base_s, settings.retry_cap_s),
        )
        lm = language_model(model, f"{load(role).version} by DSPy", temperature=lm.kwargs.get("temperature") or 0.0)
    with dspy.context(adapter=Fenced(role, control)):
        return predictor(**inputs, lm=lm)


class Fenced(dspy.Adapter):
    """Puts a task of ours to a model of ours within one run."""

    def __init__(self, role: Role, control: RunControl) -> None:
        super().__init__()
        self._role, self._control = role, control

    def __call__(
        self, lm: Any, lm_kwargs: dict[str, Any], signature: Any, demos: list[Any], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Ask, and return the fields of the reply, scores unchanged. Raises ProviderFailed and BadReply."""
        engine, shape = lm.engine, SHAPES[self._role]
        mappings = [each if isinstance(each, Mapping) else dict(each.items()) for each in demos]
        prompt = task(self._role, inputs, self._control.fence)
        prompt = with_program(prompt, self._role, signature.instructions, examples_of(self._role, mappings))
        heat = lm_kwargs.get("temperature", lm.kwargs.get("temperature"))
        with engine.turn():
            prompt = prompt._replace(version=engine.version)
            record = engine.model.ask(prompt, shape, max_tokens=TOKENS_MOST, temperature=heat)
        return [{name: getattr(record, name) for name in shape.model_fields}]


class LentModel:
    """Any other ``dspy.LM`` as a provider: one try, with DSPy's own retries and cache off."""

    schema_in_cache = False

    def __init__(self, lm: Any) -> None:
        self._lm, self._timed = lm, isinstance(getattr(lm, "engine", None), str)
        if self._timed:
            self._lm = lm.copy(num_retries=0, cache=False)
            self._lm.history = lm.history
        self.modes: tuple[ReplyMode, ...] = ("prompt",)
        with contextlib.suppress(Exception):  # a model unknown to the library's tables is asked in the prompt
            if lm.supports_response_schema and "response_format" in lm.supported_params:
                self.modes = ("json_schema", "prompt")

    def answer(self, call: Call) -> Reply:
        """Make one try. Raises TryFailed."""
        arguments: dict[str, Any] = {"timeout": call.timeout_s} if self._timed else {}
        text = call.task_with_schema() if call.mode == "prompt" else call.task()
        if call.mode == "json_schema":
            form = {"name": call.schema.name, "strict": True, "schema": call.schema.schema}
            arguments["response_format"] = {"type": "json_schema", "json_schema": form}
        messages = [
            {"role": "system", "content": call.prompt.system},
            {"role": "user", "content": f"{call.prompt.shared}\n\n{text}"},
        ]
        with dspy.track_usage() as tracker:
            try:
                found = _Plain(messages)(self._lm, arguments, dspy.Signature("asked -> text"), [], {"asked": ""})
            except dspy.LMError as error:
                trouble: Trouble = "server" if dspy.is_retryable_lm_error(error) else "request"
                why = " ".join((error.message or str(error)).split())[:300]
                raise TryFailed(trouble, why, retry_after_s=getattr(error, "retry_after", None)) from error
            except dspy.AdapterParseError as error:
                raise TryFailed("empty", "the reply is empty") from error
        used = tracker.get_total_tokens().values()
        counts = [sum(int(each.get(f"{kind}_tokens") or 0) for each in used) for kind in ("prompt", "completion")]
        return Reply(found[0]["text"], None, Tokens(prompt=counts[0], completion=counts[1]))


class _Plain(dspy.Adapter):
    """Sends messages as they are and returns the text: the library takes messages from adapters alone."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        super().__init__()
        self._messages = messages

    def format(self, signature: Any, demos: list[Any], inputs: dict[str, Any]) -> list[dict[str, Any]]:
        return self._messages

    def parse(self, signature: Any, completion: str) -> dict[str, Any]:
        return {"text": completion}


def _texts(parts: Any) -> str:
    return "\n\n".join(part.text for part in parts if getattr(part, "text", None))
