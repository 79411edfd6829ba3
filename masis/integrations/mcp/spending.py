"""Counts the cost of model calls made through the server, enforces a limit, and issues a receipt
for each tool call.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from masis.errors import SpendingLimit
from masis.observers import observation
from masis.observers.observation import Event, Listener, Result, Start
from masis.schema.calls import ModelCall


@dataclass
class Receipt:
    """The cost of one tool call: US dollars where prices are known, the number of calls, and the
    models called.
    """

    cost_usd: float = 0.0
    calls: int = 0
    unpriced: int = 0
    models: dict[str, int] = field(default_factory=dict)

    def in_words(self) -> str:
        """Return the receipt in one line."""
        if not self.calls:
            return "No model was asked; this cost nothing."
        calls_per_model = ", ".join(f"{model} ({count})" for model, count in self.models.items())
        open_ends = (
            f"; {self.unpriced} calls of unknown price are not counted" if self.unpriced else ""
        )
        return f"Models asked: {calls_per_model}. Cost: {self.cost_usd:.4f} USD{open_ends}."


_receipt: contextvars.ContextVar[Receipt | None] = contextvars.ContextVar(
    "masis_mcp_receipt", default=None
)


class Spending:
    """Adds up the cost of model calls since the server started, and refuses more once the limit is
    reached.

    ``limit_usd`` is None if there's no limit. A call of unknown price adds nothing to the total, so
    with a limit the first such call is also the last. Set a price for the model to avoid this (0
    for one that you host yourself).
    """

    def __init__(self, limit_usd: float | None = None) -> None:
        self.limit_usd = limit_usd
        self.total = Receipt()
        self._lock = threading.Lock()

    def watch(self) -> Callable[[], None]:
        """Start counting, and return a function that stops it."""
        return observation.register(self)

    def on_start(self, start: Start) -> Listener:
        """Listen to all work that starts. Its cost is known when it ends."""
        return self

    def on_event(self, event: Event) -> None:
        """Ignore events, since the cost is only known at the end."""

    def on_end(self, result: Result | None, error: BaseException | None) -> None:
        """Count a model call, unless the cache or a recording answered it."""
        if not isinstance(result, ModelCall) or result.source != "model":
            return
        with self._lock:
            for receipt in filter(None, (self.total, _receipt.get())):
                receipt.calls += 1
                receipt.cost_usd += result.cost_usd or 0.0
                receipt.unpriced += result.cost_usd is None
                receipt.models[result.model] = receipt.models.get(result.model, 0) + 1

    @property
    def is_exhausted(self) -> bool:
        """Whether the limit forbids further model calls."""
        return self.limit_usd is not None and (
            self.total.cost_usd >= self.limit_usd or self.total.unpriced > 0
        )

    def check(self) -> None:
        """Raise SpendingLimit if the limit forbids further model calls."""
        if self.is_exhausted and self.total.unpriced:
            raise SpendingLimit(
                "a model whose price is not known was asked, so that the limit of --max-cost can't"
                " be kept. Set its price in the table prices of the configuration, 0 for your own"
                " model, and start the server again."
            )
        if self.is_exhausted:
            raise SpendingLimit(
                f"the limit of this server is reached: {self.total.cost_usd:.4f} of"
                f" {self.limit_usd:g} USD (--max-cost). Whoever runs it can start it again with a"
                " higher one; tools that call no model still work."
            )

    @contextmanager
    def receipt(self) -> Iterator[Receipt]:
        """Collect the cost of the model calls made in this context."""
        token = _receipt.set(receipt := Receipt())
        try:
            yield receipt
        finally:
            _receipt.reset(token)
