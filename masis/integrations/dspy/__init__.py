"""DSPy (extra ``dspy``): critic, reviser and their loop as modules, and compiled ones as critics of an audit.

    import dspy
    from masis.integrations.dspy import CriticAgent, MultiAgentCriticLoop, RevisionAgent

What needs the library is imported on first use; without it that raises MissingExtra. Compiled programs can be listed,
named in settings and described without it (``programs.py``).
"""

from __future__ import annotations

import importlib
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
    return getattr(part(_AT.get(name, "contracts")), name)


def part(name: str) -> Any:
    """A module of this package that may need the library. Raises MissingExtra."""
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("masis"):
            raise
        raise MissingExtra(
            f"DSPy is needed and not installed ({error.name}): pip install 'masis-workbench[dspy]', into an "
            "environment of its own, since it brings an older openai"
        ) from None
