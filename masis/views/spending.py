"""Describes the usage of calls to models: tokens, those from a cache, and dollars. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from masis.schema.audit import Escalation
from masis.schema.calls import ModelCall, Usage
from masis.schema.run import Event, Run
from masis.schema.wording import count_noun
from masis.views.numbers import cost_text, dollars
from masis.views.words import model_words


def usage_text(usage: Usage) -> str:
    """Describe the usage of calls: ``12 calls, 34,120 tokens (40% from a cache), $0.12``."""
    words = []
    if usage.calls or not (usage.cached_calls or usage.replayed_calls):
        words += [count_noun(usage.calls, "call"), _token_text(usage)]
        if usage.tries > usage.calls:
            words.insert(1, count_noun(usage.tries - usage.calls, "retry", "retries"))
    words += unpaid_replies(usage)
    if usage.repaired:
        words.append(f"{count_noun(usage.repaired, 'reply', 'replies')} repaired")
    if usage.calls or not words:
        words.append(cost_text(usage.cost_usd))
    return ", ".join(words)


def unpaid_replies(usage: Usage) -> list[str]:
    """Describe replies that used no tokens because they came from the cache or a recording."""
    from_cache = f"{count_noun(usage.cached_calls, 'reply', 'replies')} from the cache, at no cost"
    return [
        *([from_cache] if usage.cached_calls else []),
        *(
            [count_noun(usage.replayed_calls, "recorded reply", "recorded replies")]
            if usage.replayed_calls
            else []
        ),
    ]


def _token_text(usage: Usage) -> str:
    tokens = usage.prompt_tokens + usage.completion_tokens
    if not usage.cached_tokens:
        return f"{tokens:,} tokens"
    return (
        f"{tokens:,} tokens ({usage.cached_tokens / usage.prompt_tokens:.0%} of those sent came"
        " from a cache)"
    )


def spent_so_far(events: Iterable[Event]) -> str:
    """Describe the calls of a running audit; "" if none has ended."""
    calls = [event.data for event in events if event.kind == "call_finished"]
    if not calls:
        return ""
    # without validation: the data is our own, and a live page draws it twice a second
    usage = Usage.of(ModelCall.model_construct(**call) for call in calls)
    return (
        f"{usage_text(usage)}; no model was called"
        if usage.replayed_calls and not usage.calls
        else usage_text(usage)
    )


def spent_by_role(run: Run) -> list[str]:
    """Describe the usage of the whole run and then of each role; empty if no model was called."""
    if not run.calls:
        return []
    roles = [
        f"{role.capitalize()}: {usage_text(usage)}" for role, usage in run.usage_by_role().items()
    ]
    return [f"{usage_text(run.usage)}.", *roles]


def escalation_text(escalation: Escalation) -> str:
    """Describe how two verifiers in a row shared the claims.

    Example: ``Offline settled 5 of 8 claims; openai:gpt-4o decided 3 (1 call).``
    """
    whole = escalation.settled + escalation.escalated
    words = f"The offline checks settled {escalation.settled:,} of {count_noun(whole, 'claim')}"
    if not escalation.escalated:
        words += f"; {model_words(escalation.second)} wasn't called."
    else:
        calls = f" ({count_noun(escalation.calls, 'call')})" if escalation.calls else ""
        words += (
            f"; {model_words(escalation.second)} decided the other {escalation.escalated:,}{calls}."
        )
    if escalation.calls_saved:
        cost = (
            ""
            if escalation.cost_saved_usd is None
            else f", about {dollars(escalation.cost_saved_usd)}"
        )
        words += f" Saved: {count_noun(escalation.calls_saved, 'call')}{cost}."
    return words
