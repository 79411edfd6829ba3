"""What calls cost: the prices kept in ``prices.toml``, or those of the settings. An unknown price
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

_DATED = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|latest)\Z")


@functools.cache
def price_list() -> Mapping[str, Price]:
    """The prices that come with this version, by model string."""
    text = resources.files("masis.llm").joinpath("prices.toml").read_text(encoding="utf-8")
    return {
        name: Price.model_validate(each)
        for name, each in tomllib.loads(text).items()
        if isinstance(each, dict)
    }


def price(model: str, own: Mapping[str, Price]) -> Price | None:
    """The price of a model string; of a dated name (``-2024-08-06``) also the price of the name
    without its date.
    """
    names = (model, _DATED.sub("", model))
    return next(
        (prices[name] for prices in (own, price_list()) for name in names if name in prices), None
    )


def cost(tokens: TokenUsage, at: Price | None) -> float | None:
    """US dollars for these tokens; None where no price is known."""
    if at is None:
        return None
    cached_input = at.input if at.cached_input is None else at.cached_input
    cache_write = at.input if at.cache_write is None else at.cache_write
    plain = max(0, tokens.prompt - tokens.cached - tokens.written)
    dollars = (
        plain * at.input
        + tokens.cached * cached_input
        + tokens.written * cache_write
        + tokens.completion * at.output
    )
    return dollars / 1_000_000
