"""A predictor asked within what a run allows: tries, deadlines and the record of the call are the run's.

A model of ours (``engine.py``) keeps to all that itself. Any other ``dspy.LM`` is asked here, with DSPy's own retries
and cache off, under the same rules as ``masis.llm.client.model``: at most ``max_retries`` more tries where that may
help, once more for a reply that can't be read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dspy

from masis.audit.run_control import RunControl
from masis.errors import BadReply, ProviderFailed, StepError
from masis.integrations.dspy.engine import OurEngine
from masis.integrations.dspy.fenced import Fenced, takes_schema
from masis.llm.client.model import RAW_KEPT, Retries
from masis.llm.prices import cost
from masis.llm.providers.base import Tokens
from masis.schema.calls import CallOutcome, ModelCall


def asked(predictor: Any, inputs: dict[str, Any], lm: Any, control: RunControl, retries: Retries, about: str) -> Any:
    """The prediction. Raises ProviderFailed or BadReply, as ``Model.ask`` does. ``about`` names role and prompt."""
    asking = _Asking(predictor, lm, control, retries, about)
    while True:
        wait_s = asking.wait_s()
        if wait_s and not control.cancellation.pause(wait_s):
            raise asking.over("stopped", "stopped while it waited to try again")
        with asking.a_try() as given:
            asking.found = predictor(**inputs, **given)
        if asking.found is not None:
            return asking.done()


async def asked_async(
    predictor: Any, inputs: dict[str, Any], lm: Any, control: RunControl, retries: Retries, about: str
) -> Any:
    """The same, awaited."""
    asking = _Asking(predictor, lm, control, retries, about)
    while True:
        if wait_s := asking.wait_s():
            await asyncio.sleep(wait_s)
        with asking.a_try() as given:
            asking.found = await predictor.acall(**inputs, **given)
        if asking.found is not None:
            return asking.done()


class _Asking:
    """One question under way."""

    def __init__(self, predictor: Any, lm: Any, control: RunControl, retries: Retries, about: str) -> None:
        self.lm = _alone(predictor.lm or lm or dspy.settings.lm)
        self.ours = isinstance(getattr(self.lm, "engine", None), OurEngine)
        self.control, self.retries, self.about = control, retries, about
        # DSPy keeps the last 10,000 questions of the process; ours are on record where they belong.
        self.kept: dict[str, Any] = {"disable_history": True} if self.ours else {}
        self.began = control.budget.seconds()
        self.until = self.began + control.budget.left_s()
        self.tries = self.unread = 0
        self.tokens = Tokens()
        self.last: Exception | None = None
        self.found: Any = None

    def wait_s(self) -> float:
        """Seconds to wait before the next try; none before the first and after a reply that could not be read."""
        if self.last is None or isinstance(self.last, dspy.AdapterParseError):
            return 0.0
        return self.retries.wait_s(self.tries, getattr(self.last, "retry_after", None))

    @contextmanager
    def a_try(self) -> Iterator[dict[str, Any]]:
        """One try; gives what to pass on with the question. What may be over next time is kept, all else raised."""
        if self.control.cancellation.cancelled:
            raise self.over("stopped", "stopped before it was asked")
        if (left := self.until - self.control.budget.seconds()) <= 0:
            raise self.over("out_of_time", str(self.last or "no time was left to ask"))
        self.tries += 1
        given: dict[str, Any] = {"lm": self.lm}
        if isinstance(getattr(self.lm, "engine", None), str):
            given["config"] = {"timeout": max(left, 0.1)}
        try:
            with (
                dspy.track_usage() as tracker,
                dspy.context(adapter=Fenced(self.control.fence), track_usage=False, **self.kept),
            ):
                try:
                    yield given
                finally:
                    self._spend(tracker.get_total_tokens())
        except dspy.AdapterParseError as error:
            self.last, self.unread = error, self.unread + 1
            if self.unread > 1 or self.tries > self.retries.most or self.ours:
                raise self._bad(error) from error
        except dspy.LMError as error:
            if (own := _step_error(error)) is not None:
                raise own from error
            self.last = error
            if not dspy.is_retryable_lm_error(error) or self.tries > self.retries.most:
                raise self.over("failed", error.message or str(error)) from error

    def done(self) -> Any:
        """It was answered: the prediction."""
        self._record("answered", "")
        return self.found

    def over(self, outcome: CallOutcome, why: str) -> ProviderFailed:
        """No further try: the error to raise, with the call on record."""
        why = f"{_name(self.lm)}: {' '.join(why.split())[:300]}"
        self._record(outcome, why)
        return ProviderFailed(why)

    def _bad(self, error: Any) -> BadReply:
        why = f"{_name(self.lm)}: {error.message.partition('Adapter Fenced failed')[0].strip()}"
        self._record("malformed", why)
        return BadReply(why, kind="malformed", raw=str(error.lm_response)[:RAW_KEPT])

    def _spend(self, by_model: dict[str, dict[str, Any]]) -> None:
        for usage in by_model.values():
            counts = [_count(usage, name) for name in ("prompt_tokens", "completion_tokens")]
            self.tokens = self.tokens.plus(Tokens(prompt=counts[0], completion=counts[1]))

    def _record(self, outcome: CallOutcome, error: str) -> None:
        if self.ours:  # on record already
            return
        role, _, prompt = self.about.partition(" ")
        self.control.calls.record(
            ModelCall(
                role=role,
                step=self.control.calls.place.step,
                iteration=self.control.calls.place.iteration,
                model=_name(self.lm),
                prompt=prompt,
                mode="json_schema" if takes_schema(self.lm) else "prompt",
                outcome=outcome,
                tries=self.tries,
                ms=(self.control.budget.seconds() - self.began) * 1000,
                prompt_tokens=self.tokens.prompt,
                completion_tokens=self.tokens.completion,
                cost_usd=cost(self.tokens, None),
                error=error,
            )
        )


def _alone(lm: Any) -> Any:
    """The model without DSPy's own retries and cache; its history goes on in the one given."""
    if lm is None:
        raise ProviderFailed("no model is named: give the agent an lm, or set one with dspy.context(lm=...)")
    if not isinstance(getattr(lm, "engine", None), str):
        return lm
    alone = lm.copy(num_retries=0, cache=False)
    alone.history = lm.history
    return alone


def _step_error(error: BaseException) -> StepError | None:
    """The error of ours that a call through our engine ended with."""
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, StepError):
            return at
        at = at.__cause__
    return None


def _name(lm: Any) -> str:
    return str(getattr(lm, "model", None) or type(lm).__name__)


def _count(usage: dict[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and value > 0 else 0
