"""What tests of the DSPy door share: a scripted server with a critic that learns, and settings that reach it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from masis.schema.providers import ProviderSettings
from masis.settings import Settings
from tests.serving_models import ModelServer


def _beside(name: str) -> ModuleType:
    """A module of this folder, which is no package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def learning() -> ModuleType:
    """The scripted model that learns from examples."""
    return _beside("learning_model")


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


@pytest.fixture
def settings_at() -> Callable[..., Settings]:
    """Settings that reach a server as the provider ``scripted``, with short waits."""

    def made(served: ModelServer, **changes: Any) -> Settings:
        given = {"retry_base_s": 0.01, "retry_cap_s": 0.05} | changes
        providers = {"scripted": ProviderSettings(address=served.address)}
        return Settings.model_validate({"providers": providers, **given})

    return made
