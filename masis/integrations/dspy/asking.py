"""A predictor asked within what a run allows: tries, deadlines and the record of the call are the run's.

A model of ours (``engine.py``) keeps to all that itself. Any other ``dspy.LM`` is asked here, with DSPy's own retries
and cache off, under the same policy (``masis/llm/client/retry.py``): at most ``max_retries`` more tries where that may
help, once more for a reply that can't be read, and no wait past the deadline.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dspy

from masis.audit.run_control import RunControl
from masis.errors import BadReply, ProviderFailed, StepError
from masis.integrations.dspy.engine import OurEngine
from masis.integrations.dspy.fenced import Fenced, takes_schema
from masis.llm.client.model import RAW_KEPT
from masis.llm.client.retry import Again, NoTimeToRetry, RetryCancelled, RetryPolicy
from masis.llm.prices import cost
from masis.llm.providers.base import Tokens
from masis.schema.calls import CallOutcome, ModelCall


def asked(predictor: Any, inputs: dict[str, Any], lm: Any, control: RunControl, retry: RetryPolicy, about: str) -> Any:
    """Return the prediction. Raises ProviderFailed or BadReply, as ``Model.ask``. ``about`` names role and prompt."""
    asking = _Asking(predictor, lm, control, about)

    def attempt() -> Any:
        with asking.one_try() as arguments:
            return predictor(**inputs, **arguments)

    with asking.recorded():
        return retry.run(attempt, asking.again, left_s=asking.left_s, pause=control.cancellation.pause)


async def asked_async(
    predictor: Any, inputs: dict[str, Any], lm: Any, control: RunControl, retry: RetryPolicy, about: str
) -> Any:
    """Do the same, awaited."""
    asking = _Asking(predictor, lm, control, about)

    async def attempt() -> Any:
        with asking.one_try() as arguments:
            return await predictor.acall(**inputs, **arguments)

    with asking.recorded():
        return await retry.run_async(
            attempt, asking.again, left_s=asking.left_s, pause=control.cancellation.pause_async
        )


class _Asking:
    """One question under way."""

    def __init__(self, predictor: Any, lm: Any, control: RunControl, about: str) -> None:
        self.lm = _alone(predictor.lm or lm or dspy.settings.lm)
        self.ours = isinstance(getattr(self.lm, "engine", None), OurEngine)
        self.control, self.about = control, about
        # DSPy keeps the last 10,000 questions of the process; ours are on record where they belong.
        self.history: dict[str, Any] = {"disable_history": True} if self.ours else {}
        self.began = control.budget.seconds()
        self.until = self.began + control.budget.left_s()
        self.tries = self.unread = 0
        self.tokens = Tokens()
        self.last: Exception | None = None

    def left_s(self) -> float:
        """Return the seconds left for all tries together."""
        return self.until - self.control.budget.seconds()

    @contextmanager
    def one_try(self) -> Iterator[dict[str, Any]]:
        """Count one try and what it used; yields the arguments to pass on with the question."""
        if self.control.cancellation.cancelled:
            raise self._failed("stopped", "stopped before it was asked")
        if (left := self.left_s()) <= 0:
            raise self._failed("out_of_time", str(self.last or "no time was left to ask"))
        self.tries += 1
        arguments: dict[str, Any] = {"lm": self.lm}
        if isinstance(getattr(self.lm, "engine", None), str):
            arguments["config"] = {"timeout": max(left, 0.1)}
        with (
            dspy.track_usage() as tracker,
            dspy.context(adapter=Fenced(self.control.fence), track_usage=False, **self.history),
        ):
            try:
                yield arguments
            finally:
                self._spend(tracker.get_total_tokens())

    def again(self, error: BaseException) -> Again | None:
        """Return whether a failure may be over at the next try; a reply that can't be read is asked for once more."""
        if isinstance(error, dspy.AdapterParseError):
            self.last, self.unread = error, self.unread + 1
            return None if self.unread > 1 or self.ours else Again(at_once=True)
        if isinstance(error, dspy.LMError) and _step_error(error) is None:
            self.last = error
            return Again(getattr(error, "retry_after", None)) if dspy.is_retryable_lm_error(error) else None
        return None

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Put the call on record, and raise the error of ours for whatever ended it."""
        try:
            yield
        except dspy.AdapterParseError as error:
            raise self._bad(error) from error
        except dspy.LMError as error:
            if (own := _step_error(error)) is not None:
                raise own from error
            raise self._failed("failed", error.message or str(error)) from error
        except NoTimeToRetry as stop:
            raise self._failed("out_of_time", f"{self.last}; {stop}") from self.last
        except RetryCancelled:
            raise self._failed("stopped", "stopped while it waited to try again") from self.last
        self._record("answered", "")

    def _failed(self, outcome: CallOutcome, why: str) -> ProviderFailed:
        """Return the error to raise, with the call on record."""
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
