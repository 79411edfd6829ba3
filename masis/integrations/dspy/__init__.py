"""DSPy (extra ``dspy``): the critic, the reviser and their loop as DSPy modules, and compiled
programs as critics or revisers of an audit.

    import dspy
    from masis.integrations.dspy import CriticAgent, MultiAgentCriticLoop, RevisionAgent

The modules are imported on first use, which raises MissingExtra if DSPy isn't installed. Listing
compiled programs and using them in audits doesn't need DSPy (``programs.py``, ``plugin.py``).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from masis.integrations.dspy.contracts import (
    AnswerIssue,
    CriticAgentOutput,
    CriticLoopOutput,
    IterationResult,
    RevisionAgentOutput,
)
from masis.schema.extras import require

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
    """Import a module of this package that needs DSPy. Raises MissingExtra."""
    require(
        "DSPy is needed, in a separate environment, because it brings an older openai",
        "dspy",
        "dspy",
    )
    return importlib.import_module(f"{__name__}.{name}")
