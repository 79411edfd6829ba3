"""Critics that another package brings: found by name, handed a model of ours, recorded under their own name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from masis import run_audit
from masis.api.roles import (
    addresses,
    asked_model,
    estimate,
    pin_versions,
    probe_model,
    resolve_model,
    unpriced_models,
    with_concurrency,
)
from masis.errors import MissingExtra, SettingsError
from masis.llm import role_plugins
from masis.llm.client.model import Model
from masis.llm.roles.critic import ModelCritic
from masis.schema.audit import JudgedBy
from masis.schema.case import Case
from masis.schema.providers import Price, ProviderSettings
from masis.settings import Settings
from tests.serving_models import ModelServer

CASE = Case.model_validate(
    {"id": "1", "query": "How long?", "answer": "It is 9 m [1].", "evidence": [{"id": "1", "text": "It is 5 m."}]}
)


@dataclass(frozen=True)
class TheirCritic(ModelCritic):
    """The built-in critic under a name of theirs."""

    name: str = ""

    @property
    def judged_by(self) -> JudgedBy:
        return JudgedBy(model=self.name, version=f"{self.name}+1")


@dataclass(frozen=True)
class Theirs:
    string: str
    asks: str = "scripted:m"
    recorded: str = "theirs"
    characters: int = 40_000
    missing: bool = False

    def check(self) -> None:
        if self.missing:
            raise MissingExtra("pip install theirs")

    def filled(self, model: Model, settings: Settings) -> Any:
        return TheirCritic(model, name=self.string)


class PluginRegistry:
    def named(self, name: str, settings: Settings) -> Theirs:
        if name not in ("strict", "strict@3", "gone"):
            raise SettingsError(f"theirs:{name}: there is none. Did you mean theirs:strict?")
        return Theirs("theirs:strict@3", missing=name == "gone")

    def offered(self, settings: Settings) -> tuple[str, ...]:
        return ("theirs:strict@3",)


class Point:
    def load(self) -> PluginRegistry:
        return PluginRegistry()


@pytest.fixture(autouse=True)
def _on_the_shelf(monkeypatch: pytest.MonkeyPatch) -> None:
    def points(role: str) -> dict[str, Any]:
        return {"theirs": Point()} if role == "critic" else {}

    monkeypatch.setattr(role_plugins, "_entry_points", points)


@pytest.fixture
def settings() -> Iterator[Settings]:
    with ModelServer() as server:
        yield Settings(
            critic="theirs:strict",
            evaluate="never",
            providers={"scripted": ProviderSettings(address=server.address)},
            prices={"scripted:m": Price(input=1.0, output=1.0)},
        )


def test_a_brought_critic_judges_with_a_model_of_ours(settings: Settings) -> None:
    run = run_audit(CASE, settings)
    assert run.models["critic"] == "theirs:strict@3"
    assert run.versions.prompts["critic"] == "theirs:strict@3+1"
    assert run.iterations[0].critique.judged_by.model == "theirs:strict@3"
    assert {call.model for call in run.calls} == {"scripted:m"}
    assert run.usage.cost_usd


def test_its_cost_and_its_address_are_those_of_the_model_behind_it(settings: Settings) -> None:
    assert addresses(settings) == (settings.providers["scripted"].address,)
    assert unpriced_models(settings) == ()
    plain = estimate(CASE, settings.model_copy(update={"critic": "scripted:m"}))
    brought_in = estimate(CASE, settings)
    assert brought_in.calls == plain.calls
    assert brought_in.tokens > plain.tokens + 20_000
    assert with_concurrency(settings, 7).providers["scripted"].concurrency == 7
    assert probe_model("theirs:strict", settings).ok


def test_settings_are_pinned_to_its_version(settings: Settings) -> None:
    assert pin_versions(settings).critic == "theirs:strict@3"
    assert pin_versions(pin_versions(settings)) == pin_versions(settings)
    assert asked_model("theirs:strict", "critic", settings) == "scripted:m"
    assert asked_model("openai", "critic", settings) == "openai"


def test_a_provider_of_the_settings_goes_before_a_shelf_of_the_same_name(settings: Settings) -> None:
    own = settings.model_copy(update={"providers": settings.providers | {"theirs": settings.providers["scripted"]}})
    assert resolve_model("theirs:strict", "critic", own) == "theirs:strict"
