"""docs/models.md says what the code does, and what calls cost."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from masis.llm.client.model import OUTCOMES, RAW_KEPT
from masis.llm.client.retry import RetryPolicy
from masis.llm.endpoints import CONCURRENCY, KNOWN
from masis.llm.prices import cost, listed, price
from masis.llm.providers.base import Tokens
from masis.schema.calls import CallOutcome
from masis.schema.providers import Price, ProviderSettings
from masis.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")


def test_every_provider_stands_there_with_its_address_key_and_models() -> None:
    for name, known in KNOWN.items():
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))
        assert known.address in row
        assert known.key_env in row
        assert known.address_env in row
        if known.strong:
            assert f"| `{name}` | `{known.strong}` | `{known.plain}` |" in PAGE


def test_no_default_is_a_model_that_its_vendor_is_about_to_shut_down() -> None:
    retired = pytest.importorskip("anthropic.resources.messages.messages").DEPRECATED_MODELS
    known = KNOWN["anthropic"]
    assert not {known.strong, known.plain} & set(retired)


def test_every_field_of_a_table_is_explained() -> None:
    for table in (ProviderSettings, Price):
        for field in table.model_fields:
            assert f"\n{field} = " in PAGE


def test_every_outcome_of_a_call_stands_there() -> None:
    for outcome in get_args(CallOutcome):
        assert outcome == "answered" or f"`{outcome}`" in PAGE
    assert set(OUTCOMES.values()) <= set(get_args(CallOutcome))


@pytest.mark.spec(
    "REQ-CRITIC-032", "REQ-CRITIC-NFR-001", "REQ-CRITIC-NFR-002", "REQ-CRITIC-NFR-003", "REQ-CRITIC-NFR-004"
)
def test_the_numbers_are_those_of_the_code() -> None:
    effort = pytest.importorskip("masis.llm.providers.anthropic").EFFORT
    settings, policy = Settings(), RetryPolicy()
    for words in (
        f"`max_retries` times ({settings.max_retries})",
        f"`retry_base_s` ({settings.retry_base_s:g} s)",
        f"`retry_cap_s` ({settings.retry_cap_s:g} s)",
        f"has {settings.call_deadline_s:g} s (`call_deadline_s`), an iteration {settings.iteration_deadline_s:g} s",
        f"loop {settings.loop_deadline_s:g} s",
        f"process, {CONCURRENCY} at once",
        f"cut to {RAW_KEPT:,} characters",
        f"`effort` is `{effort}`",
    ):
        assert words in PAGE, words
    deadlines = (settings.call_deadline_s, settings.iteration_deadline_s, settings.loop_deadline_s)
    assert (settings.max_retries, *deadlines) == (2, 15, 35, 90)
    assert (policy.retries, policy.base_s, policy.cap_s) == (
        settings.max_retries,
        settings.retry_base_s,
        settings.retry_cap_s,
    )


def test_every_model_that_is_a_default_has_a_price() -> None:
    for vendor, known in KNOWN.items():
        for model in filter(None, (known.strong, known.plain)):
            assert f"{vendor}:{model}" in listed()


def test_cached_tokens_cost_their_own_price() -> None:
    at = Price(input=2.0, output=10.0, cached_input=0.5, cache_write=4.0)
    tokens = Tokens(prompt=1_000_000, cached=200_000, written=100_000, completion=50_000)
    assert cost(tokens, at) == pytest.approx(0.7 * 2.0 + 0.2 * 0.5 + 0.1 * 4.0 + 0.05 * 10.0)
    assert cost(tokens, Price(input=2.0, output=10.0)) == pytest.approx(2.5)


def test_an_unknown_price_is_no_price() -> None:
    assert price("ollama:llama3.2", {}) is None
    assert price("openai:gpt-4o-turbo-x", {}) is None
    assert cost(Tokens(prompt=5), None) is None


def test_a_dated_name_costs_what_the_name_costs() -> None:
    assert price("openai:gpt-4o-2024-08-06", {}) == listed()["openai:gpt-4o"]
    assert price("anthropic:claude-haiku-4-5-20251001", {}) == listed()["anthropic:claude-haiku-4-5"]


def test_a_price_of_ones_own_comes_first() -> None:
    own = Price(input=1.0, output=1.0)
    assert price("openai:gpt-4o", {"openai:gpt-4o": own}) == own
    assert price("mine:m", {"mine:m": own}) == own


def test_prices_are_dollars_for_a_million_tokens_and_ordered_as_vendors_order_them() -> None:
    for name, each in listed().items():
        assert 0 < each.input < each.output <= 100, name
        assert each.cached_input is not None, name
        assert each.cached_input < each.input, name
