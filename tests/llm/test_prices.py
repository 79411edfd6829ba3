"""What calls cost."""

from __future__ import annotations

import pytest

from masis.llm.endpoints import KNOWN
from masis.llm.prices import cost, listed, price
from masis.llm.providers.base import Tokens
from masis.schema.providers import Price


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
