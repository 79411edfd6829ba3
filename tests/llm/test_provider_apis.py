"""A provider API from another package: one entry point is enough to use it everywhere."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

import masis
from masis.audit.control.run_control import RunControl
from masis.errors import BadReply, MissingExtra, MissingKey, SettingsError
from masis.llm.endpoints import endpoint
from masis.llm.provider_apis import (
    KnownProvider,
    ProviderApi,
    known_providers,
    provider,
    provider_api,
)
from masis.llm.providers.base import Call, Endpoint, ModelReply, TokenUsage
from masis.llm.registry import model_in_role
from masis.schema import providers, registry
from masis.schema.providers import (
    DEFAULT_KIND,
    OWN_PROVIDERS,
    ProviderSettings,
    provider_entry_points,
)
from masis.schema.registry import added_entry_points
from masis.settings import Settings
from tests.llm import canned
from tests.llm.asking import CASE, PROMPT


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
    """Register a provider API as another package would, and return its kind."""

    @provider(
        "The API of example.org",
        needs_key=True,
        known={
            "example": KnownProvider(
                "Example",
                key_env="EXAMPLE_API_KEY",
                address_env="EXAMPLE_BASE_URL",
                get_a_key="https://example.org/keys",
            ),
            "openai": KnownProvider("An impostor", "http://127.0.0.1:9/impostor"),
        },
    )
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
    run = masis.run_audit(CASE, settings_for_kind(example))
    assert run.iterations[0].critique.critique_reasoning == "judge-1 at http://127.0.0.1:9/v1"
    assert run.models["critic"] == "mine:judge-1"
    assert run.usage.prompt_tokens == 2_000 * run.usage.calls


def test_an_unknown_provider_kind_is_rejected_with_the_known_ones(example: str) -> None:
    with pytest.raises(SettingsError) as raised:
        settings_for_kind("exmaple")
    assert "providers.mine.kind" in str(raised.value)
    kinds = [*(point.name for point in OWN_PROVIDERS), "example"]
    assert ", ".join(map(repr, kinds)) in str(raised.value)
    assert ProviderSettings.model_json_schema()["properties"]["kind"]["anyOf"][0] == {
        "type": "string",
        "enum": kinds,
    }


def test_a_provider_of_another_package_needs_no_table(
    example: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingsError, match=r"no address\. Set EXAMPLE_BASE_URL .*\[providers\.ex"):
        endpoint("example", Settings())
    monkeypatch.setenv("EXAMPLE_BASE_URL", "http://127.0.0.1:9/v2")
    with pytest.raises(MissingKey, match=r"Set EXAMPLE_API_KEY .*https://example\.org/keys"):
        endpoint("example", Settings())
    monkeypatch.setenv("EXAMPLE_API_KEY", "loopback-key")
    run = masis.run_audit(CASE, Settings(critic="example:judge-1"))
    assert run.iterations[0].critique.critique_reasoning == "judge-1 at http://127.0.0.1:9/v2"
    with pytest.raises(SettingsError, match=r"openai, ollama, .*, anthropic, example, each but"):
        masis.run_audit(CASE, Settings(critic="nothing-like-it:judge-1"))


def test_a_package_cant_replace_a_known_provider(example: str) -> None:
    assert known_providers()["openai"].address == "https://api.openai.com/v1"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"key_env": ""}, "Name the variable that holds it: key_env in [providers.mine]"),
        ({"effort": "low"}, "providers.mine.effort: The API of example.org has no such setting"),
        (
            {"mode": "json_object"},
            "mode: this server has no mode 'json_object'. It has: json_schema, prompt.",
        ),
    ],
)
def test_a_table_that_doesnt_fit_its_api_is_refused(
    example: str, setting: dict[str, str], message: str
) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        masis.run_audit(CASE, settings_for_kind(example, **setting))


def settings_for_kind(kind: str, **values: str) -> Settings:
    table = {"kind": kind, "address": "http://127.0.0.1:9/v1", "key_env": "SCRIPTED_KEY"} | values
    table = {name: value for name, value in table.items() if value}
    return Settings(critic="mine:judge-1", providers={"mine": table})  # type: ignore[dict-item]


def test_a_package_cant_replace_a_built_in_api(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("openai", "elsewhere:api", providers.PROVIDERS_GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: (point,))
    added_entry_points.cache_clear()
    try:
        assert provider_entry_points()["openai"].value == "masis.llm.providers.apis.openai:api"
    finally:
        added_entry_points.cache_clear()


def test_every_built_in_api_has_its_own_provider_names() -> None:
    apis = [provider_api(point.name) for point in OWN_PROVIDERS]
    assert all(isinstance(api, ProviderApi) for api in apis)
    names = [name for api in apis for name in api.known]
    assert len(names) == len(set(names))
    assert set(names) <= set(known_providers())
    assert OWN_PROVIDERS[0].name == DEFAULT_KIND


@pytest.mark.parametrize(
    ("text", "expected"), [("half a \ud83d pair", "half a ? pair"), (" \n", None)]
)
def test_a_provider_may_return_any_text(
    example: str, monkeypatch: pytest.MonkeyPatch, text: str, expected: str | None
) -> None:
    reply = ModelReply(text, "j" * 300, TokenUsage(prompt=2_000))
    monkeypatch.setattr(ExampleProvider, "answer", lambda self, call: reply)
    control = RunControl()
    model = model_in_role("mine:judge-1", "critic", control, settings_for_kind(example))
    if expected is None:
        with pytest.raises(BadReply, match="the reply is empty") as raised:
            model.say(PROMPT, max_tokens=10)
        assert raised.value.kind == "empty"
    else:
        assert model.say(PROMPT, max_tokens=10) == expected
    (call,) = control.calls.since()
    assert call.answered_by == "j" * 200


def test_a_missing_sdk_names_its_extra() -> None:
    def make(endpoint: Endpoint) -> Any:
        raise ModuleNotFoundError("No module named 'its_sdk'", name="its_sdk")

    with pytest.raises(MissingExtra, match=r"Its API needs .*: pip install its_sdk$"):
        ProviderApi("Its API", make, library="its_sdk")(Endpoint("x", "its", "http://127.0.0.1:9"))
    api = ProviderApi("Its API", make, "its-extra", "its_sdk")
    with pytest.raises(MissingExtra, match=r"Its API needs .* '\.\[its-extra\]'"):
        api(Endpoint("x", "its", "http://127.0.0.1:9"))
    with pytest.raises(ModuleNotFoundError):
        ProviderApi("Its API", make)(Endpoint("x", "its", "http://127.0.0.1:9"))
