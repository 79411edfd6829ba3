"""What calls to models cost that clients of the server cause: a limit for all, a receipt for each
call of a tool.
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
    """What one call of a tool cost: US dollars where prices are known, calls, and the models that
    were asked.
    """

    cost_usd: float = 0.0
    calls: int = 0
    unpriced: int = 0
    models: dict[str, int] = field(default_factory=dict)

    def in_words(self) -> str:
        """Return the receipt in one line."""
        if not self.calls:
            return "No model was asked; this cost nothing."
        asked = ", ".join(f"{model} ({count})" for model, count in self.models.items())
        open_ends = (
            f"; {self.unpriced} calls of unknown price are not counted" if self.unpriced else ""
        )
        return f"Models asked: {asked}. Cost: {self.cost_usd:.4f} USD{open_ends}."


_receipt: contextvars.ContextVar[Receipt | None] = contextvars.ContextVar(
    "masis_mcp_receipt", default=None
)


class Spending:
    """Adds up what calls to models cost since the server began, and refuses more once the limit is
    reached.

    ``limit_usd`` is None where there is none. A call of unknown price counts as none, so that with
    a limit such a call is the last: name a price for the model, 0 for one of your own.
    """

    def __init__(self, limit_usd: float | None = None) -> None:
        self.limit_usd = limit_usd
        self.total = Receipt()
        self._lock = threading.Lock()

    def watch(self) -> Callable[[], None]:
        """Count from now on; returns a function that ends this."""
        return observation.register(self)

    def on_start(self, start: Start) -> Listener:
        """Listen to whatever starts: what it has cost is known once it ends."""
        return self

    def on_event(self, event: Event) -> None:
        """Nothing costs anything before it ends."""

    def on_end(self, result: Result | None, error: BaseException | None) -> None:
        """Count a call to a model, but not one that the cache or recorded replies answered: then
        none was asked.
        """
        if not isinstance(result, ModelCall) or result.source != "model":
            return
        with self._lock:
            for each in filter(None, (self.total, _receipt.get())):
                each.calls += 1
                each.cost_usd += result.cost_usd or 0.0
                each.unpriced += result.cost_usd is None
                each.models[result.model] = each.models.get(result.model, 0) + 1

    @property
    def is_exhausted(self) -> bool:
        """Whether no model may be asked any more."""
        return self.limit_usd is not None and (
            self.total.cost_usd >= self.limit_usd or self.total.unpriced > 0
        )

    def check(self) -> None:
        """Raise SpendingLimit where no model may be asked any more."""
        if self.is_exhausted and self.total.unpriced:
            raise SpendingLimit(
                "a model whose price is not known was asked, so that the limit of --max-cost can't"
                " be kept. Set its price in the table prices of the configuration, 0 for a model of"
                " your own, and start the server again."
            )
        if self.is_exhausted:
            raise SpendingLimit(
                f"the limit of this server is reached: {self.total.cost_usd:.4f} of"
                f" {self.limit_usd:g} USD (--max-cost). Whoever runs it can start it again with a"
                " higher one; tools that ask no model go on working."
            )

    @contextmanager
    def receipt(self) -> Iterator[Receipt]:
        """Collect what is spent in this context."""
        token = _receipt.set(receipt := Receipt())
        try:
            yield receipt
        finally:
            _receipt.reset(token)
