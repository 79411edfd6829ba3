"""LangGraph: the critic, the evaluator, the evidence critic and a person as nodes of a graph.

    from langgraph.graph import StateGraph
    from masis.integrations.langgraph import MasisState, critic_node, evaluator_node

    graph = StateGraph(MasisState)
    graph.add_node("critic", critic_node(settings))
    graph.add_node("evaluator", evaluator_node(settings))

The nodes have no rules of their own. They read the state, call ``masis.api.stepwise``,
``masis.screening`` and the workbench, and write the fields that the rules name (MASIS-CRITIC-*,
MASIS-EVAL-*, AESOP-* in ``docs/CONFORMANCE.md``). They're stateless, run in sync and async graphs,
and only write JSON values. The extra ``langgraph`` is needed. See ``docs/frameworks.md``.
"""

from __future__ import annotations

from masis.schema.extras import require

require("The LangGraph nodes need a package that isn't installed", "langgraph", "langgraph")

from masis.integrations.langgraph.evidence import (
    EvidenceState,
    evidence_critic_node,
    evidence_graph,
)
from masis.integrations.langgraph.nodes import critic_node, evaluator_node, synthesizer_node
from masis.integrations.langgraph.person import aresume, keep_node, person_node, resume, waiting
from masis.integrations.langgraph.state import EvidenceList, MasisState, Metrics, Trace
