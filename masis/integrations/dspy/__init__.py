"""DSPy (extra ``dspy``): critic, reviser and their loop as modules, and compiled programs as
critics of an audit.

    import dspy
    from masis.integrations.dspy import CriticAgent, MultiAgentCriticLoop, RevisionAgent

What needs the library is imported on first use; without it that raises MissingExtra. Compiled
programs are listed, named in settings and used in audits without it (``programs.py``,
``plugin.py``).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from masis.integrations import require
from masis.integrations.dspy.contracts import (
    AnswerIssue,
    CriticAgentInput,
    CriticAgentOutput,
    CriticLoopInput,
    CriticLoopOutput,
    EvidenceChunk,
    IterationResult,
    RevisionAgentInput,
    RevisionAgentOutput,
)

if TYPE_CHECKING:
    from masis.integrations.dspy.agents import (
        CONTEXT,
        CriticAgent,
        MultiAgentCriticLoop,
        RevisionAgent,
    )

_OF_AGENTS = frozenset({"CONTEXT", "CriticAgent", "MultiAgentCriticLoop", "RevisionAgent"})


def __getattr__(name: str) -> Any:
    if name not in _OF_AGENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(part("agents"), name)


def part(name: str) -> Any:
    """Return a module of this package that needs the library. Raises MissingExtra."""
    require(
        "DSPy is needed, in an environment of its own since it brings an older openai",
        "dspy",
        "dspy",
    )
    return importlib.import_module(f"{__name__}.{name}")
