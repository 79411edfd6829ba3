"""What the integrations add to the core (``masis.extensions``)."""

from __future__ import annotations

from masis.extensions import AddedCommand, Extension, Library, RolePlugins, is_module

EXTENSION = Extension(
    commands=(
        AddedCommand(
            "Audit",
            "optimize",
            "masis.integrations.cli.optimize:optimize",
            "Compile a critic on labeled answers with DSPy.",
        ),
        AddedCommand(
            "Connect",
            "mcp",
            "masis.integrations.cli.mcp:mcp",
            "Serve the workbench's tools to agents (MCP).",
        ),
    ),
    audit_engines={"ray": "masis.integrations.cli.ray:run_ray_audit"},
    role_plugins=(
        RolePlugins("masis.verifiers", "local", "masis.integrations.local.plugin:verifiers"),
    ),
    model_files=("masis.integrations.local.files",),
    telemetry=("masis.integrations.telemetry",),
    kept_texts=("masis.integrations.dspy.programs:list_old_programs",),
    libraries=(
        Library("MCP", "mcp", "mcp", "masis.integrations.mcp.server"),
        Library("DSPy", "dspy", "dspy", "masis.integrations.dspy.agents"),
        # One of its nodes is the evidence critic.
        *(
            (Library("LangGraph", "langgraph", "langgraph", "masis.integrations.langgraph"),)
            if is_module("masis.screening.extension")
            else ()
        ),
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
