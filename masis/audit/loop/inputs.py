"""What the loop is handed: who judges, how far an interrupted run had come, where times come from."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from masis.audit.claims import Verifier
from masis.audit.critique import Critic
from masis.audit.evaluation import Evaluator
from masis.audit.output_validation import OutputValidator, PydanticValidator
from masis.audit.revision import Reviser
from masis.audit.run_control import RunControl
from masis.schema.audit import Draft
from masis.schema.base import utc_now
from masis.schema.case import Evidence
from masis.schema.run import Event, Iteration, LocalModel, Run, RunWarning, StepsDone

# Drafting: an answer for a case that came without one. The role alone; there is no rule in code around it.


class Drafter(Protocol):
    """Writes an answer from the evidence, citing it by id."""

    def draft(self, query: str, evidence: Sequence[Evidence]) -> Draft:
        """Return an answer whose every assertion cites the chunk that supports it. StepError if there is none."""
        ...


Events = Generator[Event, None, None]
Audit = Generator[Event, None, Run]


@dataclass(frozen=True)
class Roles:
    """Who judges: any mix of offline, models and people's own. ``models`` names each role's for the record.

    ``control`` is the one that roles with a model were made with; ``waits`` says that some role waits for others, so
    that the loop tells meanwhile what happens and can be stopped; ``prompts`` the version of each role's prompts;
    ``local_models`` the model files that roles use on this machine. Every improved answer passes ``validator`` before
    it is audited.
    """

    drafter: Drafter
    verifier: Verifier
    critic: Critic
    reviser: Reviser
    evaluator: Evaluator
    models: dict[str, str]
    offline_rules: str | None = None
    control: RunControl = field(default_factory=RunControl)
    waits: bool = False
    prompts: dict[str, str] = field(default_factory=dict)
    local_models: tuple[LocalModel, ...] = ()
    validator: OutputValidator = field(default_factory=PydanticValidator)


@dataclass(frozen=True)
class Progress:
    """How far an interrupted run had come: its finished iterations, the last with the revision made from it.

    ``steps`` are those that the iteration after them had finished. ``rewritten`` says that somebody outside of the
    audit wrote the last revision: it is audited even if its text is that of the answer before it, where a reviser's
    ends the loop.
    """

    draft: Draft | None = None
    iterations: tuple[Iteration, ...] = ()
    events: int = 0
    warnings: tuple[RunWarning, ...] = ()
    steps: StepsDone | None = None
    rewritten: bool = False


def new_run_id() -> str:
    """A fresh id for a run."""
    return uuid.uuid4().hex


@dataclass(frozen=True)
class Clock:
    """Where times come from: ``now`` for records, ``seconds`` (monotonic) for durations."""

    now: Callable[[], str] = utc_now
    seconds: Callable[[], float] = time.perf_counter
