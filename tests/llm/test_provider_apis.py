"""An API that another package adds: one entry point, and everything else knows it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

import masis
from masis.errors import MissingExtra, SettingsError
from masis.llm.endpoints import Endpoint
from masis.llm.provider_apis import ProviderApi, provider
from masis.llm.providers.base import Call, ModelReply, TokenUsage
from masis.schema import providers, registry
from masis.schema.providers import OWN_PROVIDERS, ProviderSettings, provider_entry_points
from masis.schema.registry import added_entry_points
from masis.settings import Settings
from tests.llm import canned
from tests.llm.asking import CASE


class ExampleProvider:
    """Answers every call with the same critique, as a client of another API would."""

    modes = ("json_schema", "prompt")
    schema_in_cache = False

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    def answer(self, call: Call) -> ModelReply:
        critique = canned.critique(critique_reasoning=f"{call.model} at {self.endpoint.address}")
        return ModelReply(json.dumps(critique), call.model, TokenUsage(prompt=2_000, completion=50))


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The kind of an API that a package adds by an entry point."""

    @provider("The API of example.org")
    def example_api(endpoint: Endpoint) -> Any:
        return ExampleProvider(endpoint)

    module = ModuleType("example_api_package")
    module.example_api = example_api  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    point = EntryPoint("example", f"{module.__name__}:example_api", providers.PROVIDERS_GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: (point,))
    added_entry_points.cache_clear()
    yield "example"
    added_entry_points.cache_clear()


def test_an_audit_uses_a_provider_from_another_package(example: str) -> None:
    run = masis.run_audit(CASE, _of_kind(example))
    assert run.iterations[0].critique.critique_reasoning == "judge-1 at http://127.0.0.1:9/v1"
    assert run.models["critic"] == "mine:judge-1"
    assert run.usage.prompt_tokens == 2_000 * run.usage.calls


def test_an_unknown_provider_kind_is_rejected_with_the_known_ones(example: str) -> None:
    with pytest.raises(SettingsError) as raised:
        _of_kind("exmaple")
    assert "providers.mine.kind" in str(raised.value)
    kinds = [*(point.name for point in OWN_PROVIDERS), "example"]
    assert ", ".join(map(repr, kinds)) in str(raised.value)
    assert ProviderSettings.model_json_schema()["properties"]["kind"]["anyOf"][0] == {
        "type": "string",
        "enum": kinds,
    }


def _of_kind(kind: str) -> Settings:
    table = {"kind": kind, "address": "http://127.0.0.1:9/v1"}
    return Settings(critic="mine:judge-1", providers={"mine": table})  # type: ignore[dict-item]


def test_a_package_cant_replace_a_built_in_api(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("openai", "elsewhere:api", providers.PROVIDERS_GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: (point,))
    added_entry_points.cache_clear()
    try:
        assert provider_entry_points()["openai"].value == "masis.llm.providers:openai_api"
    finally:
        added_entry_points.cache_clear()


def test_a_missing_sdk_names_its_extra() -> None:
    def make(endpoint: Endpoint) -> Any:
        raise ModuleNotFoundError("No module named 'its_sdk'", name="its_sdk")

    api = ProviderApi("Its API", make, "its-extra", "its_sdk")
    with pytest.raises(MissingExtra, match=r"Its API needs .* '\.\[its-extra\]'"):
        api(Endpoint("x", "its", "http://127.0.0.1:9"))
    with pytest.raises(ModuleNotFoundError):
        ProviderApi("Its API", make)(Endpoint("x", "its", "http://127.0.0.1:9"))
