"""DSPy (extra ``dspy``): critic, reviser and their loop as modules, and compiled ones as critics of an audit.

    import dspy
    from masis.integrations.dspy import CriticAgent, MultiAgentCriticLoop, RevisionAgent

What needs the library is imported on first use; without it that raises MissingExtra. Compiled programs can be listed,
named in settings and described without it (``programs.py``).
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from masis.errors import MissingExtra

if TYPE_CHECKING:
    from masis.integrations.dspy.agents import CONTEXT, CriticAgent, RevisionAgent
    from masis.integrations.dspy.contracts import (
        CriticAgentInput,
        CriticAgentOutput,
        CriticLoopInput,
        CriticLoopOutput,
        EvidenceChunk,
        Issue,
        IterationResult,
        RevisionAgentInput,
        RevisionAgentOutput,
    )
    from masis.integrations.dspy.critic_loop import MultiAgentCriticLoop

__all__ = [
    "CONTEXT",
    "CriticAgent",
    "CriticAgentInput",
    "CriticAgentOutput",
    "CriticLoopInput",
    "CriticLoopOutput",
    "EvidenceChunk",
    "Issue",
    "IterationResult",
    "MultiAgentCriticLoop",
    "RevisionAgent",
    "RevisionAgentInput",
    "RevisionAgentOutput",
]

_AT = {
    "CONTEXT": "agents",
    "CriticAgent": "agents",
    "RevisionAgent": "agents",
    "MultiAgentCriticLoop": "critic_loop",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in _AT:
        return getattr(importlib.import_module(f"{__name__}.contracts"), name)
    return getattr(part(_AT[name]), name)


def here() -> bool:
    """Whether the library is installed."""
    try:
        return importlib.util.find_spec("dspy") is not None
    except ValueError:  # put out of reach in sys.modules
        return False


def require() -> None:
    """Raise MissingExtra where the library is not installed."""
    if not here():
        raise MissingExtra(
            "DSPy is needed and not installed: pip install '.[dspy]', into an environment of its own, "
            "since it brings an older openai"
        )


def part(name: str) -> Any:
    """A module of this package that needs the library. Raises MissingExtra."""
    require()
    return importlib.import_module(f"{__name__}.{name}")
