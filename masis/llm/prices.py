"""Computes the cost of calls by the prices in ``prices.toml`` or in the settings. An unknown price
is None, never 0.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from importlib import resources

from masis.llm.providers.base import TokenUsage
from masis.schema.providers import Price

# The date or alias at the end of a model name: "-2024-08-06", "-20250514", "@latest".
_DATED = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|latest)\Z")


@functools.cache
def price_list() -> Mapping[str, Price]:
    """Return the prices that ship with this version, by model string."""
    text = resources.files("masis.llm").joinpath("prices.toml").read_text(encoding="utf-8")
    return {
        name: Price.model_validate(table)
        for name, table in tomllib.loads(text).items()
        if isinstance(table, dict)
    }


def price(model: str, configured: Mapping[str, Price]) -> Price | None:
    """Return the price of a model string, or None if it isn't known.

    Prices in ``configured`` override the shipped ones. A dated name (``-2024-08-06``) without its
    own price has the price of the undated name.
    """
    names = (model, _DATED.sub("", model))
    return next(
        (prices[name] for prices in (configured, price_list()) for name in names if name in prices),
        None,
    )


def cost(tokens: TokenUsage, prices: Price | None) -> float | None:
    """Return the US dollars for these tokens, or None if no price is known."""
    if prices is None:
        return None
    cached_input = prices.input if prices.cached_input is None else prices.cached_input
    cache_write = prices.input if prices.cache_write is None else prices.cache_write
    # A server may report more cached tokens than prompt tokens, if it doesn't count them there.
    plain = max(0, tokens.prompt - tokens.cached - tokens.written)
    dollars = (
        plain * prices.input
        + tokens.cached * cached_input
        + tokens.written * cache_write
        + tokens.completion * prices.output
    )
    return dollars / 1_000_000
