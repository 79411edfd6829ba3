"""What the integrations add to the core (``masis.extensions``)."""

from __future__ import annotations

from masis.extensions import Extension, Library

EXTENSION = Extension(
    libraries=(
        Library("MCP", "mcp", "mcp", "masis.integrations.mcp.server"),
        Library("DSPy", "dspy", "dspy", "masis.integrations.dspy.agents"),
        Library("LangGraph", "langgraph", "langgraph", "masis.integrations.langgraph"),
        Library("BAML", "baml", "baml_py", "masis.integrations.baml"),
        Library(
            "OpenTelemetry",
            "otel",
            "opentelemetry.sdk",
            "masis.integrations.telemetry.sdk",
            setting="telemetry",
        ),
        Library(
            "Local models in PyTorch files",
            "local",
            "transformers",
            "masis.integrations.local.scoring",
        ),
    ),
)
