"""Calls a model in a role until a reply can be read or no further try makes sense.

This is the only module that waits for a slot, retries, falls back to another reply format, enforces
deadlines and counts usage (REQ-CRITIC-032). A provider makes one try; the ``RunControl`` holds the
limits of the run.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pydantic import BaseModel

from masis.audit.control.run_control import RunControl
from masis.audit.output_validation import RepairedRecord
from masis.audit.sampling import SAMPLE
from masis.errors import BadReply, ContextFull, ProviderFailed, StepError
from masis.llm.client import schemas, shared_schema
from masis.llm.client.limits import Limiter
from masis.llm.client.reply_parsing import UnreadableReply, parse, validate_record
from masis.llm.client.retry import NoTimeToRetry, Retry, RetryCancelled, RetryPolicy
from masis.llm.client.server_capabilities import ServerCapabilities
from masis.llm.prices import cost
from masis.llm.providers.base import (
    Call,
    FailureKind,
    ModelReply,
    Provider,
    TokenUsage,
    TryFailed,
    replace_surrogates,
)
from masis.llm.providers.provider_errors import LARGER_CONTEXT
from masis.llm.recordings import OUTCOMES as RECORDED_OUTCOMES
from masis.llm.recordings import Outcome, RecordedReply, Replies, RequestKey, shown_name
from masis.llm.roles.prompting import RolePrompt
from masis.observers import observation
from masis.schema.base import utc_now
from masis.schema.calls import CallOutcome, ModelCall, ReplyMode, ReplySource
from masis.schema.model_ref import ModelRef
from masis.schema.providers import Price
from masis.schema.wording import count_noun

R = TypeVar("R", bound=BaseModel)
S = TypeVar("S", bound=BaseModel)
log = logging.getLogger(__name__)

RAW_KEPT = 20_000
"""How many characters of an unreadable reply are recorded."""

RETRYABLE: frozenset[FailureKind] = frozenset({"rate", "server", "unreachable", "reset"})
"""Failures that may be over when the same request is sent again."""
RETRYABLE_ONCE: frozenset[FailureKind] = frozenset({"malformed", "empty"})
"""Failures that a second try may fix, but that a third hardly would."""
OUTCOMES: dict[FailureKind, CallOutcome] = {
    "refused": "refused",
    "cut_off": "cut_off",
    "empty": "empty",
    "malformed": "malformed",
    "timeout": "out_of_time",
}


@dataclass(frozen=True)
class Model:
    """A model string in a role, for one run; thread-safe."""

    name: str
    model: str
    role: str
    control: RunControl
    provider: Provider
    limiter: Limiter
    capabilities: ServerCapabilities
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    price: Price | None = None
    rescue: Callable[[str, type[BaseModel]], RepairedRecord | None] = lambda text, shape: None
    """Reads a reply that strict parsing refused, if its content is certain
    (``masis/audit/output_validation.py``).
    """
    replies: Replies | None = None
    """Recorded replies that are searched before the model is called."""
    record: Callable[[Sequence[RecordedReply]], None] | None = None
    """Writes the replies to a request to disk. Raises OSError if that fails."""
    log_texts: bool = False
    """Whether prompts and replies are logged at DEBUG; they are never logged at INFO
    (REQ-CRITIC-SEC-003).
    """

    _request_counts: Counter[tuple[str, int]] = field(default_factory=Counter)
    _count_lock: threading.Lock = field(default_factory=threading.Lock)

    def request_key(self, prompt: RolePrompt, temperature: float | None) -> RequestKey:
        """Return the key that identifies the reply to a prompt sent now.

        Each sample of a judge has its own number. If a run repeats a request, for example because
        an answer returned to an earlier text, the count continues.
        """
        # A prompt that was made elsewhere, as by DSPy, has no digest. Its text is used instead,
        # without the mark of the fences, which differs from run to run.
        digest = (
            prompt.asked
            or hashlib.sha256(
                "\0".join(prompt[:3]).replace(self.control.fence, "").encode()
            ).hexdigest()
        )
        sample = SAMPLE.get()
        with self._count_lock:
            earlier = self._request_counts[digest, sample.number]
            self._request_counts[digest, sample.number] += 1
        return RequestKey(
            role=self.role,
            prompt=prompt.version,
            model=self.name,
            asked=digest,
            sample=sample.number + earlier * sample.of,
            temperature=temperature,
        )

    def ask(
        self,
        prompt: RolePrompt,
        shape: type[R],
        *,
        max_tokens: int,
        temperature: float | None = None,
    ) -> R:
        """Return the model's reply as a record of type ``shape``.

        The call is recorded with all its tries, whether it succeeds or fails.

        Raises:
            ProviderFailed: The model couldn't be reached, refused to work or ran out of time.
            BadReply: The model's reply isn't such a record.

        """
        return _ModelRequest(self, prompt, shape, max_tokens, temperature).run()

    def say(self, prompt: RolePrompt, *, max_tokens: int, temperature: float | None = None) -> str:
        """Return the model's reply as plain text, for a prompt that doesn't ask for a record.

        Raises the same errors as ``ask``.
        """
        return _ModelRequest(self, prompt, TextReply, max_tokens, temperature).run().text


class TextReply(BaseModel):
    """A plain-text reply, for prompts that don't ask for a record."""

    text: str


LONGEST_NAME = 200
"""How many characters of the name of the model that answered are kept."""


def _short_name(answered_by: str | None) -> str | None:
    return answered_by[:LONGEST_NAME] if answered_by else answered_by


def _usable_reply(reply: ModelReply) -> ModelReply:
    """Return a provider's reply with text that can be stored.

    Raises:
        TryFailed: The text is empty.

    """
    text, answered_by = replace_surrogates(reply.text), _short_name(reply.answered_by)
    if not text.strip():
        raise TryFailed(
            "empty", "the reply is empty", raw=text, answered_by=answered_by, tokens=reply.tokens
        )
    return ModelReply(text, answered_by, reply.tokens)


_SOURCE_LABEL: dict[ReplySource, str] = {
    "model": "",
    "cache": "from the cache",
    "replay": "from recorded replies",
}


class _Stop(Exception):
    """Ends the tries of a call with an outcome and a reason."""

    def __init__(self, outcome: CallOutcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome: CallOutcome = outcome
        self.reason = reason


class _ModelRequest(Generic[R]):
    """One request in progress."""

    def __init__(
        self,
        model: Model,
        prompt: RolePrompt,
        shape: type[R],
        max_tokens: int,
        temperature: float | None,
    ) -> None:
        self.model, self.control, self.shape = model, model.control, shape
        self.prompt = RolePrompt(*(replace_surrogates(part) for part in prompt))
        self.max_tokens, self.temperature = max_tokens, temperature
        self.started_s = self.control.budget.seconds()
        self.deadline_s: float | None = None
        self.limit = ""
        self.tries = 0
        self.tokens = TokenUsage()
        # Only the mode to record if no try is made. _next_call() sets it for each try.
        self.mode: ReplyMode = model.capabilities.mode
        self.answered_by: str | None = None
        self.failed: TryFailed | None = None
        self.parse_error = ""
        self.has_retried_once = False
        self.repaired: tuple[str, ...] = ()
        self.observation = observation.Observation()
        self.key = model.request_key(self.prompt, temperature)
        self.replies: list[RecordedReply] = []
        """All replies so far, both recorded and new."""
        self.source: ReplySource = model.replies.source if model.replies else "model"

    def run(self) -> R:
        """Try until a reply can be read or there is a reason to stop."""
        place = self.control.calls.place
        start = observation.CallStart(
            provider=ModelRef.parse(self.model.name).provider,
            model=self.model.model,
            role=self.model.role,
            step=place.step,
            iteration=place.iteration,
            prompt=self.prompt.version,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            system=self.prompt.system,
            question="\n\n".join((self.prompt.shared, self.prompt.task)),
        )
        with observation.observe(start) as self.observation:
            return self._ask()

    def _ask(self) -> R:
        outcome: CallOutcome
        try:
            answer = self.model.retry.run(
                self._attempt,
                self._classify,
                left_s=self._left_s,
                pause=self.control.cancellation.pause,
                on_retry=self._on_retry,
            )
        except _Stop as stop:
            outcome, reason = stop.outcome, stop.reason
        except TryFailed as failed:
            outcome, reason = OUTCOMES.get(failed.trouble, "failed"), failed.message
        except NoTimeToRetry as stop:
            outcome, reason = "out_of_time", f"{self.failed}; {stop}"
        except RetryCancelled:
            outcome, reason = "stopped", f"stopped while it waited to try again: {self.failed}"
        else:
            self._record("answered", "")
            return answer
        if outcome == "out_of_time":
            limit = self.limit or self.control.budget.limit()
            reason = (
                f"{reason}. The limit was {limit} s: raise it in masis.toml or with --set"
                f" {limit.partition(' ')[0]}=..."
            )
        # The number of failures in a row tells how serious the problem is.
        reason = reason if self.tries < 2 else f"{reason} (after {self.tries} tries)"
        self._record(outcome, reason)
        raise self._error(outcome, f"{self.model.name}: {reason}") from self.failed

    def _attempt(self) -> R:
        """Call once, and again in another format while the server refuses the format; that doesn't
        count as a retry.
        """
        # learn() changes the capabilities each time, and returns None once nothing is left to
        # change, so this ends.
        while True:
            call = self._next_call()
            try:
                return self._read_reply(self._recorded_reply() or self._try(call), call)
            except TryFailed as failed:
                self.failed = failed
                self._add_usage(failed.answered_by, failed.tokens)
                learned = self.model.capabilities.learn(failed, call)
                if learned is None:
                    if self.source == "model" and (
                        outcome := RECORDED_OUTCOMES.get(failed.trouble)
                    ):
                        self._add_reply(outcome, failed.raw or "")
                    raise
                if learned:
                    self._report_retry(learned, failed.trouble, 0.0)

    def _recorded_reply(self) -> ModelReply | None:
        """Return the recorded reply to this attempt, or None if the model must be called.

        Once the model is called, the rest of the request uses the model as well.

        Raises:
            TryFailed: The recorded reply was a refusal, or none was recorded and the model must not
                be called.

        """
        replies, attempt = self.model.replies, len(self.replies) + 1
        if replies is None or self.source == "model":
            return None
        recorded = replies.find(self.key.model_copy(update={"attempt": attempt}))
        if recorded is None:
            # Later attempts mustn't mix with recorded ones: a retry is an answer to a failure that
            # the recording doesn't have.
            self.source = "model"
            return None
        self.tries += 1
        self.replies.append(recorded)
        self.answered_by = shown_name(recorded.model)
        if recorded.prompt != self.prompt.version:
            self.control.calls.warn(
                f"older_prompt {self.prompt.version}",
                f"{self.model.role}: the recorded reply is to the prompt"
                f" {shown_name(recorded.prompt)}; today's is {self.prompt.version}, to which the"
                " model might have replied otherwise.",
                once=True,
            )
        if recorded.outcome != "replied":
            raise TryFailed(
                recorded.outcome,
                f"recorded as {recorded.outcome.replace('_', ' ')}",
                raw=recorded.reply,
            )
        return ModelReply(recorded.reply, self.answered_by, TokenUsage())

    def _add_reply(self, outcome: Outcome, text: str) -> None:
        """Add a reply that the model has just sent."""
        if self.model.replies is not None or self.model.record is not None:
            key_fields = self.key.model_dump() | {"attempt": len(self.replies) + 1}
            self.replies.append(
                RecordedReply(**key_fields, date=utc_now(), outcome=outcome, reply=text)
            )

    def _store_replies(self, *, answered: bool) -> None:
        """Store all replies in the recording, but cache only the replies to a request that was
        answered.
        """
        # A failure would otherwise be replayed from the cache when the user tries again.
        if answered and self.model.replies is not None and self.source == "model":
            self.model.replies.keep(self.replies)
        if self.model.record is not None and self.replies:
            try:
                self.model.record(self.replies)
            except OSError as error:
                self.control.calls.warn(
                    "record",
                    f"Replies could not be recorded: {error.strerror or error}.",
                    once=True,
                )

    def _classify(self, error: BaseException) -> Retry | None:
        """Return a retry if the failure may be over at the next try."""
        if not isinstance(error, TryFailed):
            return None
        # All calls to this address share the rate limit, so none of them should start now.
        if error.trouble == "rate" and error.retry_after_s:
            self.model.limiter.pause(error.retry_after_s)
        if error.trouble in RETRYABLE:
            return Retry(error.retry_after_s)
        if error.trouble in RETRYABLE_ONCE and not self.has_retried_once:
            self.has_retried_once = True
            return Retry(at_once=True)
        return None

    def _on_retry(self, wait_s: float) -> None:
        if self.failed is not None:
            message = f"{self.failed.message}; trying again in {wait_s:.1f} s"
            self._report_retry(message, self.failed.trouble, wait_s)

    def _next_call(self) -> Call:
        capabilities, correction = self.model.capabilities, ""
        self.mode = "text" if self.shape is TextReply else capabilities.mode
        if self.parse_error:
            self.mode = capabilities.plainer_if_unproven(self.mode)
            correction = (
                f"A reply before this one could not be read: {self.parse_error}. Keep to the form"
                " asked for."
            )
        is_shared = (
            self.mode == "json_schema"
            and self.model.provider.schema_in_cache
            and shared_schema.should_share(self.prompt, self.shape)
        )
        return Call(
            self.model.model,
            shared_schema.for_shared_schema(self.prompt, self.shape) if is_shared else self.prompt,
            schemas.reply_schema(shared_schema.CommonReply if is_shared else self.shape),
            self.mode,
            self.max_tokens,
            self.temperature,
            self._left_s(),
            capabilities.without,
            capabilities.room,
            correction,
        )

    def _try(self, call: Call) -> ModelReply:
        """Wait for a slot and make one try."""
        self._wait_for_turn()
        try:
            if self.control.cancellation.is_cancelled:
                raise _Stop("stopped", "stopped before it was asked")

            if self._left_s() <= 0:
                raise _Stop(
                    "out_of_time", self.failed.message if self.failed else "no time was left to ask"
                )
            # The deadline of a call starts when it is first sent, not while it waits for a slot.
            if self.deadline_s is None:
                self.limit = self.control.budget.limit()
                self.deadline_s = self.control.budget.seconds() + self.control.budget.left_s()
            self.tries += 1
            if self.model.log_texts:
                log.debug(
                    "%s is asked: %s", self.model.name, "\n\n".join((*self.prompt[:2], call.task()))
                )
            started_s = self.control.budget.seconds()
            reply = _usable_reply(
                self.model.provider.answer(call._replace(timeout_s=self._left_s()))
            )
            self.model.limiter.record_reply(
                self.control.budget.seconds() - started_s, self.prompt.version
            )
        except TryFailed as failed:
            if failed.trouble == "timeout":
                self.model.limiter.timed_out()
            failed.raw = replace_surrogates(failed.raw) if failed.raw else failed.raw
            failed.answered_by = _short_name(failed.answered_by)
            raise
        finally:
            self.model.limiter.release()
        # After the slot is released, because these steps don't use the server.
        self._refuse_if_cut(call, reply)
        self._add_usage(reply.answered_by, reply.tokens)
        self._add_reply("replied", reply.text)
        self.observation.emit(observation.Replied(reply.text))
        if self.model.log_texts:
            log.debug("%s replies: %s", self.model.name, reply.text[:RAW_KEPT])
        return reply

    def _refuse_if_cut(self, call: Call, reply: ModelReply) -> None:
        """Raise TryFailed if the server counted fewer tokens than it was sent, so part of the
        prompt wasn't read.

        Ollama and others truncate a prompt to their context without an error. Such a reply rests on
        part of the evidence or of the instructions, so it can't be trusted.
        """
        sent = "\n\n".join((call.prompt.system, call.prompt.shared, call.task()))
        if self.model.capabilities.cut_the_prompt(sent, reply.tokens):
            raise TryFailed(
                "too_long",
                f"the server read only {reply.tokens.prompt:,} tokens of a question of"
                f" {len(sent):,} characters: it cut question and evidence to its context."
                f" {LARGER_CONTEXT}",
                raw=reply.text,
                answered_by=reply.answered_by,
                tokens=reply.tokens,
            )

    def _wait_for_turn(self) -> None:
        """Wait for a slot; the time spent in the queue doesn't count against the deadline."""
        if self.model.limiter.try_acquire():
            return
        started_s = self.control.budget.seconds()
        with self.control.budget.pause_while_queued():
            is_acquired = self.model.limiter.acquire(
                lambda: not self.control.cancellation.is_cancelled
            )
        if self.deadline_s is not None:
            self.deadline_s += self.control.budget.seconds() - started_s
        if not is_acquired:
            raise _Stop("stopped", "stopped before it was asked")

    def _read_reply(self, reply: ModelReply, call: Call) -> R:
        capabilities = self.model.capabilities
        if self.shape is TextReply:
            return self.shape(text=reply.text)
        try:
            # reply_schema() is cached, so identity is enough.
            is_shared = call.schema is schemas.reply_schema(shared_schema.CommonReply)
            parsed = (
                shared_schema.parse_shared(reply.text, self.shape)
                if is_shared
                else parse(reply.text, self.shape)
            )
        except UnreadableReply as error:
            capabilities.read_badly(call.mode)
            if (repaired := self._repair_reply(reply.text, is_shared)) is not None:
                return repaired
            self.parse_error = str(error)
            raise TryFailed("malformed", self.parse_error, raw=reply.text) from None
        if change := capabilities.read_well(call.mode):
            self._report_retry(change, "malformed", 0.0)
        self._report_repairs(parsed.repairs)
        return parsed.record

    def _repair_reply(self, text: str, is_shared: bool) -> R | None:
        """Return the record in a malformed reply if the output validator can read it with
        certainty.
        """
        if (
            is_shared
            and (
                shared_record := self._rescue_record(
                    text, shared_schema.with_only_field_of(self.shape)
                )
            )
            is not None
        ):
            return shared_schema.record_in_shared(shared_record, self.shape)
        return self._rescue_record(text, self.shape)

    def _rescue_record(self, text: str, shape: type[S]) -> S | None:
        repair = self.model.rescue(text, shape)
        if repair is None:
            return None
        try:
            record = validate_record(repair.value, text, shape)
        except UnreadableReply:
            return None
        self._report_repairs(repair.repairs)
        return record

    def _report_repairs(self, repairs: tuple[str, ...]) -> None:
        """Record the repairs that were needed to read the reply."""
        if not repairs:
            return
        self.repaired = repairs
        repairs_text = ", ".join(repairs)
        self._log_trouble(f"a reply was repaired: {repairs_text}", {})
        self.control.calls.emit(
            "call_repaired",
            f"{self.model.role}: the reply was repaired before it was read: {repairs_text}",
            role=self.model.role,
            model=self.model.name,
            repaired=list(repairs),
        )

    def _left_s(self) -> float:
        """Return the seconds left for all tries together, counted from the first slot."""
        return (
            self.control.budget.left_s()
            if self.deadline_s is None
            else self.deadline_s - self.control.budget.seconds()
        )

    def _add_usage(self, answered_by: str | None, tokens: TokenUsage) -> None:
        self.answered_by = answered_by or self.answered_by
        self.tokens = self.tokens.plus(tokens)

    def _report_retry(self, message: str, trouble: FailureKind, wait_s: float) -> None:
        model = self.model
        details = {"role": model.role, "model": model.name, "trouble": trouble, "tries": self.tries}
        self._log_trouble(f"try {self.tries}: {trouble}", {"event": "try_failed", **details})
        self.control.calls.emit(
            "call_retried", f"{model.role}: {message}", **details, wait_s=round(wait_s, 3)
        )

    def _log_trouble(self, message: str, fields: dict[str, object]) -> None:
        case_id = self.control.calls.case_id
        case_note = f" for case {case_id[:80]!r}" if case_id else ""
        record_fields = {"fields": {**fields, "case": case_id}}
        log.warning(
            "%s %s%s: %s", self.model.role, self.model.name, case_note, message, extra=record_fields
        )

    def _record(self, outcome: CallOutcome, error: str) -> None:
        model, place = self.model, self.control.calls.place
        self._store_replies(answered=outcome == "answered")
        call = ModelCall(
            role=model.role,
            step=place.step,
            iteration=place.iteration,
            model=model.name,
            answered_by=self.answered_by,
            prompt=self.prompt.version,
            mode=self.mode,
            outcome=outcome,
            tries=self.tries,
            ms=(self.control.budget.seconds() - self.started_s) * 1000,
            prompt_tokens=self.tokens.prompt,
            cached_tokens=self.tokens.cached,
            completion_tokens=self.tokens.completion,
            cost_usd=cost(self.tokens, model.price) if self.source == "model" else 0.0,
            error=error,
            repaired=self.repaired,
            source=self.source,
        )
        self.control.calls.record(call)
        self.observation.result = call
        log.info(
            "%s %s, %s: %s after %s, %.0f ms, %d + %d tokens",
            *(
                call.role,
                call.model,
                call.prompt,
                outcome,
                count_noun(call.tries, "try", "tries"),
                call.ms,
            ),
            *self.tokens[::3],
            extra={
                "fields": {
                    "event": "call_finished",
                    **call.model_dump(mode="json", exclude={"error"}),
                }
            },
        )
        self.control.calls.emit(
            "call_finished",
            f"{model.role}: {outcome.replace('_', ' ')}"
            f" {_SOURCE_LABEL[self.source] or f'in {call.ms / 1000:.1f} s'}",
            **call.model_dump(mode="json", exclude={"step", "iteration", "error"}),
        )

    def _error(self, outcome: CallOutcome, message: str) -> StepError:
        if outcome in ("refused", "cut_off", "empty", "malformed"):
            raw = self.failed.raw if self.failed else None
            return BadReply(message, kind=outcome, raw=None if raw is None else raw[:RAW_KEPT])
        is_too_long = self.failed is not None and self.failed.trouble == "too_long"
        return (
            ContextFull(message) if outcome == "failed" and is_too_long else ProviderFailed(message)
        )
