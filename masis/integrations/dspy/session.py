"""One compilation: what is to be done, the model that does it, what it spent, and whether it may go on."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from masis.audit.run_control import RunControl
from masis.errors import SettingsError
from masis.integrations.dspy.agents import CriticAgent
from masis.integrations.dspy.engine import Stopped, language_model
from masis.integrations.dspy.labelled import Role
from masis.llm import registry
from masis.llm.roles.prompting import load
from masis.schema.calls import Usage
from masis.settings import Settings

Optimizer = Literal["bootstrap", "mipro", "gepa"]


@dataclass(frozen=True)
class Plan:
    """What is to be compiled, and how.

    ``accept``: what a reply must be worth to become a demonstration. ``trials``: how many programs MIPROv2 tries, and
    how many times GEPA may look at all answers. ``teacher``: the model whose replies are shown (bootstrap) or that
    writes instructions (mipro, gepa); the same model where it is empty.
    """

    name: str
    role: Role
    optimizer: Optimizer
    model: str
    teacher: str = ""
    demonstrations: int = 4
    accept: float = 0.75
    trials: int = 6
    seed: int = 0
    max_cost: float | None = None
    source: str = ""
    shuffled: bool = False

    def settings(self) -> dict[str, Any]:
        """Return the optimiser's arguments, for the record."""
        return {
            "teacher": self.teacher,
            "demonstrations": self.demonstrations,
            "accept": self.accept,
            "trials": self.trials,
        }


class Watched(NamedTuple):
    """How far the work is: what is done now, the calls and tokens so far, what they cost where that is known."""

    doing: str
    calls: int
    tokens: int
    cost_usd: float | None


@dataclass
class Session:
    """One compilation: its model, what it spent, whether to go on."""

    plan: Plan
    base: Settings
    stopping: Callable[[], bool] = lambda: False
    watch: Callable[[Watched], None] = lambda seen: None
    doing: str = ""
    control: RunControl = field(default_factory=RunControl)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _under_way: int = 0

    def __post_init__(self) -> None:
        self.base = self.base.model_copy(update={"call_deadline_s": max(self.base.call_deadline_s, 60.0)})
        self.control.budget.call_s = self.base.call_deadline_s
        model = registry.asker(self.plan.model, self.plan.role, self.control, self.base)
        if self.plan.max_cost is not None and model.price is None:
            raise SettingsError(f"--max-cost: no price is known for {model.name}. Give one in masis.toml.")
        self.model_name, self.lm = model.name, self._lm(model, CriticAgent.temperature)
        writer = registry.asker(self.plan.teacher or self.plan.model, self.plan.role, self.control, self.base)
        self.teacher_lm = self._lm(writer, CriticAgent.temperature) if self.plan.teacher else self.lm
        self.writer_lm = self._lm(writer, 1.0)
        self.concurrency = max(1, model.limiter.most)

    def _lm(self, model: Any, temperature: float) -> Any:
        recorded = f"{self._prompt()} compiled by {self.plan.optimizer}"
        return language_model(model, recorded, temperature=temperature, turn=self._turn)

    def _prompt(self) -> str:
        return load(self.plan.role).version

    @property
    def usage(self) -> Usage:
        """What was spent so far."""
        return Usage.of(self.control.calls.since())

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """One call, if there may be one more; what is under way is reckoned with at what calls cost so far."""
        with self._lock:
            self._may_go_on()
            self._under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    def _may_go_on(self) -> None:
        spent = self.usage
        self.watch(Watched(self.doing, spent.calls, spent.prompt_tokens + spent.completion_tokens, spent.cost_usd))
        if self.stopping():
            self.control.cancellation.cancel()
            raise Stopped("a person asked to stop")
        cost = spent.cost_usd or 0.0
        soon = self._under_way * cost / max(1, spent.calls)
        if self.plan.max_cost is not None and cost + soon >= self.plan.max_cost:
            raise Stopped(f"the limit of ${self.plan.max_cost:g} is reached")
