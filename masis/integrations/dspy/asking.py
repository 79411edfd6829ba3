"""How an agent asks: our prompts and fences through DSPy, and a model of ours as a ``dspy.LM``.

DSPy's own adapters set off fields by headings that a hostile text may hold as well, so the prompt, the fences and the
reading of replies are those of ``masis/llm``. A model of ours is asked as every role asks it: addresses, keys, retries,
deadlines and the record of each call are ``masis.llm.client.model``'s. Any other ``dspy.LM`` is asked as whoever made
it set it up, within the time that is left.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import dspy
from dspy import lm15

from masis.audit.run_control import RunControl
from masis.errors import BadReply, ProviderFailed, StepError
from masis.integrations.dspy.demonstrations import SHAPES, Role, examples_of, task, with_program
from masis.llm.client import schemas
from masis.llm.client.model import RAW_KEPT, Model
from masis.llm.client.reply_parsing import Unreadable, read
from masis.llm.roles.prompting import Prompt
from masis.schema.calls import ModelCall

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


def asked(predictor: Any, inputs: dict[str, Any], lm: Any, control: RunControl, role: Role, version: str) -> Any:
    """Return a predictor's prediction. Raises ProviderFailed or BadReply, as ``Model.ask``."""
    lm = predictor.lm or lm or dspy.settings.lm
    if lm is None:
        raise ProviderFailed("no model is named: give the agent an lm, or set one with dspy.context(lm=...)")
    with dspy.context(adapter=Fenced(role, control, version)):
        return predictor(**inputs, lm=lm)


class Fenced(dspy.Adapter):
    """Puts a task of ours to a model within one run, and reads the reply."""

    def __init__(self, role: Role, control: RunControl, version: str) -> None:
        super().__init__()
        self._role, self._control, self._version = role, control, version
        self._shape, self._strict = SHAPES[role], False

    def __call__(
        self, lm: Any, lm_kwargs: dict[str, Any], signature: Any, demos: list[Any], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Ask, and read what came. Raises ProviderFailed and BadReply."""
        engine = getattr(lm, "engine", None)
        if not isinstance(engine, OurEngine):
            return self._foreign(lm, lm_kwargs, signature, demos, inputs)
        prompt = self._prompt(signature, demos, inputs)._replace(version=engine.version)
        heat = lm_kwargs.get("temperature", lm.kwargs.get("temperature"))
        with engine.turn():
            record = engine.model.ask(prompt, self._shape, max_tokens=TOKENS_MOST, temperature=heat)
        return [{name: getattr(record, name) for name in self._shape.model_fields}]

    def _prompt(self, signature: Any, demos: list[Any], inputs: dict[str, Any]) -> Prompt:
        mappings = [each if isinstance(each, Mapping) else dict(each.items()) for each in demos]
        prompt = task(self._role, inputs, self._control.fence)
        return with_program(prompt, self._role, signature.instructions, examples_of(self._role, mappings))

    def _foreign(
        self, lm: Any, lm_kwargs: dict[str, Any], signature: Any, demos: list[Any], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Ask a ``dspy.LM`` of somebody else's, and put the call on record."""
        began, arguments = self._control.budget.seconds(), dict(lm_kwargs)
        self._strict = _takes_schema(lm)
        if self._strict:
            schema = schemas.of(self._shape)
            form = {"name": schema.name, "strict": True, "schema": schema.schema}
            arguments["response_format"] = {"type": "json_schema", "json_schema": form}
        if isinstance(getattr(lm, "engine", None), str):
            arguments.setdefault("timeout", max(self._control.budget.left_s(), 0.1))
        outcome, why = "failed", ""
        with dspy.track_usage() as tracker:
            try:
                found: list[dict[str, Any]] = super().__call__(lm, arguments, signature, demos, inputs)
                outcome = "answered"
            except dspy.LMError as error:
                why = f"{name_of(lm)}: {' '.join((error.message or str(error)).split())[:300]}"
                raise ProviderFailed(why) from error
            except dspy.AdapterParseError as error:
                outcome = "malformed"
                why = f"{name_of(lm)}: {error.message.partition('Adapter Fenced failed')[0].strip()}"
                raise BadReply(why, kind="malformed", raw=str(error.lm_response)[:RAW_KEPT]) from error
            finally:
                self._record(name_of(lm), outcome, why, began, tracker.get_total_tokens())
        return found

    def format(self, signature: Any, demos: list[Any], inputs: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the frame as the system's message, the rest as the user's, with the schema where none goes beside."""
        prompt, schema = self._prompt(signature, demos, inputs), schemas.of(self._shape)
        text = f"{prompt.shared}\n\n{prompt.task}"
        if not self._strict:
            text += (
                "\n\nReply with one JSON object and nothing else: no prose, no code fence. It satisfies this JSON "
                f"schema, named {schema.name}:\n{schema.text}"
            )
        return [{"role": "system", "content": prompt.frame}, {"role": "user", "content": text}]

    def parse(self, signature: Any, completion: str) -> dict[str, Any]:
        """Return the fields of a reply, scores unchanged. Raises AdapterParseError."""
        try:
            record = read(completion, self._shape)
        except Unreadable as error:
            raise dspy.AdapterParseError("Fenced", signature, completion, message=str(error)) from None
        return {name: getattr(record, name) for name in self._shape.model_fields}

    def _record(self, model: str, outcome: Any, why: str, began: float, used: dict[str, dict[str, Any]]) -> None:
        tokens = [
            sum(int(each.get(f"{kind}_tokens") or 0) for each in used.values()) for kind in ("prompt", "completion")
        ]
        place = self._control.calls.place
        self._control.calls.record(
            ModelCall(
                role=self._role,
                step=place.step,
                iteration=place.iteration,
                model=model,
                prompt=self._version,
                mode="json_schema" if self._strict else "prompt",
                outcome=outcome,
                ms=(self._control.budget.seconds() - began) * 1000,
                prompt_tokens=tokens[0],
                completion_tokens=tokens[1],
                error=why,
            )
        )


def _takes_schema(lm: Any) -> bool:
    """Whether a model is known to take a strict schema beside the messages."""
    with contextlib.suppress(Exception):  # a model unknown to the library's tables is asked in the prompt
        return bool(lm.supports_response_schema and "response_format" in lm.supported_params)
    return False


def _texts(parts: Any) -> str:
    return "\n\n".join(part.text for part in parts if getattr(part, "text", None))
