"""What tests of the DSPy door share: a scripted server, and settings and agents that reach it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from masis.integrations.dspy import CriticAgent, RevisionAgent
from masis.schema.providers import ProviderSettings
from masis.settings import Settings
from tests.serving_models import ModelServer


@pytest.fixture(autouse=True)
def _at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No look at prices over the network, and a data folder of the test's own."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "true")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model that gives sensible replies."""
    with ModelServer() as served:
        yield served


def settings_at(served: ModelServer, **changes: Any) -> Settings:
    """Settings that reach a server as the provider ``scripted``, with short waits."""
    given = {"retry_base_s": 0.01, "retry_cap_s": 0.05} | changes
    return Settings.model_validate(
        {"providers": {"scripted": ProviderSettings(address=served.address)}, **given}
    )


def critic_at(served: ModelServer, **options: Any) -> CriticAgent:
    """A critic whose model is served here."""
    return CriticAgent("scripted", "judge", **({"settings": settings_at(served)} | options))


def reviser_at(served: ModelServer) -> RevisionAgent:
    """A reviser whose model is served here."""
    return RevisionAgent("scripted", "writer", settings=settings_at(served))
