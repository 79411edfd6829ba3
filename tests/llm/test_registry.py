"""Model strings, their servers and prices, role plug-ins, the connection test, and keys that must
stay secret.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

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
from masis.audit.control.run_control import RunControl
from masis.errors import MissingExtra, SettingsError, StepError
from masis.llm import role_plugins
from masis.llm.client.model import OUTCOMES, RAW_KEPT, Model
from masis.llm.client.retry import RetryPolicy
from masis.llm.endpoints import endpoint
from masis.llm.prices import cost, price, price_list
from masis.llm.provider_apis import known_providers
from masis.llm.providers.apis import anthropic
from masis.llm.providers.base import CONCURRENCY, TokenUsage
from masis.llm.registry import model_in_role, probe, resolve
from masis.llm.roles.critic import ModelCritic
from masis.schema.audit import JudgedBy
from masis.schema.calls import CallOutcome
from masis.schema.providers import Price, ProviderSettings
from masis.settings import Settings, load, secret
from tests.cases import case_of
from tests.llm.asking import KEY, PROMPT, WIRES, SampleReply, model_at
from tests.serving_models import Behaviour, ModelServer, faulty, reply_with, status
from tools import providers


def settings_with_provider(address: str, **values: Any) -> Settings:
    table = {"kind": "openai", "address": address, "key_env": "SCRIPTED_KEY"} | values
    return Settings.model_validate({"providers": {"scripted": table}, "max_retries": 0})


@pytest.mark.spec("MASIS-CRITIC-P1")
@pytest.mark.parametrize(
    ("string", "role", "full"),
    [
        ("openai", "critic", "openai:gpt-4o"),
        ("openai", "evaluator", "openai:gpt-4o"),
        ("openai", "drafter", "openai:gpt-4o-mini"),
        ("openai", "reviser", "openai:gpt-4o-mini"),
        ("openai", "grader", "openai:gpt-4o-mini"),
        ("anthropic", "critic", "anthropic:claude-sonnet-5-5"),
        ("anthropic", "verifier", "anthropic:claude-haiku-5-5"),
        ("openai:gpt-4.1", "drafter", "openai:gpt-4.1"),
        ("ollama:llama3.2:3b", "critic", "ollama:llama3.2:3b"),
        ("offline", "critic", "offline"),
    ],
)
def test_a_full_model_string_is_parsed(
    string: str, role: str, full: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert resolve(string, role) == full


@pytest.mark.parametrize(
    ("string", "message"),
    [
        (
            "opneai:gpt-4o",
            r"critic: there is no provider 'opneai'\. Did you mean 'openai:gpt-4o'\?",
        ),
        ("nope", r"critic: there is no model 'nope'\. There are: offline, "),
        ("gpt-4o", r"Did you mean 'openai:gpt-4o'\?"),
        ("claude-sonnet-5-5", r"Did you mean 'anthropic:claude-sonnet-5-5'\?"),
        ("offlin", r"Did you mean 'offline'\?"),
        ("offlin:x", r"Did you mean 'offline'\?"),
        ("offline:x", r"offline has no models to choose from\. Write offline alone\."),
        ("OpenAI:gpt-4o", r"Did you mean 'openai:gpt-4o'\?"),
        ("", r"there is no model ''\. There are: offline, openai"),
        ("zzz:m", r"a table \[providers\.zzz\]|a table \[providers\.NAME\]"),
        ("ollama", r"'ollama' doesn't name a model\. Write ollama:NAME"),
        ("openai:", "doesn't name a model"),
        (
            "openai:gpt-4o",
            (
                r"there is no key\. Set OPENAI_API_KEY in the"
                r" environment.*masis\.secrets\.toml.*platform\.openai"
            ),
        ),
        ("anthropic", "Set ANTHROPIC_API_KEY"),
    ],
)
def test_an_invalid_model_string_suggests_the_nearest_valid_one(string: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        resolve(string, "critic")


def test_offline_isnt_a_language_model() -> None:
    with pytest.raises(SettingsError, match="isn't a language model"):
        model_in_role("offline", "critic", RunControl(), Settings())


def test_a_missing_sdk_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-not-seen-before")
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(MissingExtra, match=r"pip install '\.\[anthropic\]'"):
        resolve("anthropic", "critic")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "has no address"),
        ({"address": "127.0.0.1:8000"}, "isn't an address such as"),
        ({"address": "ftp://host/v1"}, "isn't an address"),
        ({"address": "http://[::1/v1"}, "isn't an address"),
        ({"address": "http://host:99999/v1"}, "isn't an address"),
        ({"address": "http://ho st/v1"}, "isn't an address"),
        ({"address": "http://host/v1?key=1"}, "isn't an address"),
        ({"address": "http://me:private@host/v1"}, "contains a name or a password"),
        ({"address": "http://host/v1", "key_env": "NOT_THERE"}, "Set NOT_THERE"),
    ],
)
def test_an_invalid_provider_table_is_reported(table: dict[str, str], message: str) -> None:
    settings = Settings.model_validate({"providers": {"mine": {"kind": "openai"} | table}})
    with pytest.raises(SettingsError, match=message) as raised:
        resolve("mine:m", "critic", settings)
    assert "private" not in str(raised.value)


def test_a_custom_provider_is_called_as_configured(tmp_path: Path) -> None:
    file = tmp_path / "masis.toml"
    file.write_text(
        "[providers.gateway]\nkind = 'anthropic'\naddress = 'https://gateway.example/v1/'\nkey_env"
        " = 'GATEWAY'\nconcurrency = 3\nmode = 'prompt'\n[prices.'gateway:m']\ninput = 1.0\noutput"
        " = 2.0\n",
        encoding="utf-8",
    )
    settings = load(environment={}, file=file).settings
    custom = endpoint("gateway", settings, {"GATEWAY": " sk-gateway-key\n"})
    assert (custom.kind, custom.address, custom.concurrency, custom.mode) == (
        "anthropic",
        "https://gateway.example/v1",
        3,
        "prompt",
    )
    assert custom.key.get_secret_value() == "sk-gateway-key"
    assert settings.prices["gateway:m"].output == 2.0


@pytest.mark.spec("REQ-CRITIC-SEC-002")
def test_keys_are_read_from_the_environment_or_a_secrets_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "keys.toml"
    file.write_text('OPENAI_API_KEY = "sk-from-file"\nODD = 5\n', encoding="utf-8")
    environment = {"MASIS_SECRETS": str(file)}
    key = secret("OPENAI_API_KEY", environment)
    assert key.get_secret_value() == "sk-from-file"
    key = secret("OPENAI_API_KEY", environment | {"OPENAI_API_KEY": "sk-from-environment"})
    assert key.get_secret_value() == "sk-from-environment"
    assert secret("ANTHROPIC_API_KEY", environment) is None
    with pytest.raises(SettingsError, match="ODD: isn't text"):
        secret("ODD", environment)
    with pytest.raises(SettingsError, match="MASIS_SECRETS"):
        secret("OPENAI_API_KEY", {"MASIS_SECRETS": str(tmp_path / "absent.toml")})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "masis.secrets.toml").write_text(
        'OPENAI_API_KEY = "sk-from-folder"\n', encoding="utf-8"
    )
    key = secret("OPENAI_API_KEY", {})
    assert key.get_secret_value() == "sk-from-folder"


@pytest.mark.parametrize("wrong", ["sk-with\nbreak", "sk-mit-ü", "sk-\x07"])
def test_a_key_invalid_in_headers_is_rejected_without_showing_it(wrong: str) -> None:
    with pytest.raises(SettingsError, match="OPENAI_API_KEY: isn't a key") as raised:
        endpoint("openai", Settings(), {"OPENAI_API_KEY": wrong})
    assert wrong not in str(raised.value)


def test_keys_never_appear_in_printed_or_stored_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    control = RunControl()
    with ModelServer() as server:
        settings = settings_with_provider(server.address)
        model = model_in_role("scripted:m", "critic", control, settings)
        model.ask(PROMPT, SampleReply, max_tokens=50)
        notices = [control.calls.notices.get_nowait() for _ in range(control.calls.notices.qsize())]
        shown = [
            repr(model),
            repr(model.provider),
            repr(endpoint("scripted", settings)),
            repr(control),
            repr(notices),
        ]
    shown += [
        settings.model_dump_json(),
        str(pickle.dumps(settings)),
        control.calls.since()[0].model_dump_json(),
    ]
    assert KEY not in "".join(shown)


@pytest.mark.parametrize("fault", ["401", "500", "reset in the middle", "prose"])
@pytest.mark.parametrize("wire", WIRES)
def test_keys_never_appear_in_errors_or_their_causes(wire: Any, fault: str) -> None:
    def script(request: Any) -> Behaviour:
        reply = faulty(fault, request)
        # A server that echoes the key in its error.
        return status(reply.status, f"no luck with {KEY}") if reply.status >= 400 else reply

    with ModelServer(script) as server:
        try:
            model_at(server, wire, max_retries=0).ask(PROMPT, SampleReply, max_tokens=50)
        except StepError as error:
            cause: BaseException | None = error
        else:
            pytest.fail("it did not fail")
    while cause is not None:
        assert KEY not in f"{cause} {cause!r} {vars(cause)}"
        assert type(cause).__module__.startswith("masis")
        cause = cause.__cause__ or cause.__context__


@pytest.mark.parametrize("wire", WIRES)
def test_a_working_connection_is_reported(wire: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer(keys=[KEY], models=["m"]) as server:
        check = probe("scripted:m", settings_with_provider(server.address, kind=wire))
        assert check == (True, "scripted:m answers, in the form asked for.", "json_schema")
        failed = probe("scripted:other", settings_with_provider(server.address, kind=wire))
        assert not failed.ok
        assert "there is no model 'other' there" in failed.message
        monkeypatch.setenv("SCRIPTED_KEY", "sk-another")
        failed = probe("scripted:m", settings_with_provider(server.address, kind=wire))
        assert not failed.ok
        assert "the key was not accepted (401). Check SCRIPTED_KEY." in failed.message
        address = server.address
    unreachable = probe("scripted:m", settings_with_provider(address, kind=wire))
    assert not unreachable.ok
    assert f"{address} can't be reached" in unreachable.message
    assert "Is the server running?" in unreachable.message


def test_a_server_that_substitutes_the_model_is_reported() -> None:
    body = {
        "model": "tiny-llama.gguf",
        "choices": [{"finish_reason": "stop", "message": {"content": json.dumps({"ready": True})}}],
    }
    with ModelServer(lambda request: Behaviour(body=json.dumps(body).encode())) as server:
        check = probe("scripted:gpt-5", settings_with_provider(server.address))
    assert check.ok
    assert "The server says that 'tiny-llama.gguf' answered, not 'gpt-5'" in check.message


@pytest.mark.parametrize("wire", WIRES)
def test_a_server_without_structured_output_is_reported_separately(wire: Any) -> None:
    with ModelServer(refuses=("json_schema", "json_object")) as server:
        check = probe("scripted:m", settings_with_provider(server.address, kind=wire))
    assert (check.ok, check.mode) == (True, "prompt")
    assert "takes no strict schema" in check.message
    with ModelServer(lambda request: reply_with("I am ready.")) as server:
        check = probe("scripted:m", settings_with_provider(server.address, kind=wire))
    assert not check.ok
    assert check.message.startswith("scripted:m answers, but not in the form asked for")


def test_a_connection_test_has_the_timeout_of_a_call() -> None:
    with ModelServer(lambda request: faulty("hang", request)) as server:
        settings = settings_with_provider(server.address).model_copy(
            update={"call_deadline_s": 0.3}
        )
        assert "no answer in the time given" in probe("scripted:m", settings).message


def test_clients_are_shared_and_changed_keys_take_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer() as server:
        settings = settings_with_provider(server.address)
        first = model_in_role("scripted:m", "critic", RunControl(), settings)
        assert (
            model_in_role("scripted:n", "drafter", RunControl(), settings).provider
            is first.provider
        )
        monkeypatch.setenv("SCRIPTED_KEY", "sk-another-key")
        assert (
            model_in_role("scripted:m", "critic", RunControl(), settings).provider
            is not first.provider
        )


# docs/models.md matches the code and the price list

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")


def test_docs_list_every_known_provider_as_its_declaration_says() -> None:
    assert providers.page(PAGE) == PAGE, "run: python tools/providers.py"


def test_no_default_model_is_about_to_be_shut_down() -> None:
    retired = pytest.importorskip("anthropic.resources.messages.messages").DEPRECATED_MODELS
    known = known_providers()["anthropic"]
    assert not {known.strong, known.plain} & set(retired)


def test_docs_explain_every_field_of_a_provider_table() -> None:
    for table in (ProviderSettings, Price):
        for field in table.model_fields:
            assert f"\n{field} = " in PAGE


def test_docs_list_every_outcome_of_a_call() -> None:
    for outcome in get_args(CallOutcome):
        assert outcome == "answered" or f"`{outcome}`" in PAGE
    assert set(OUTCOMES.values()) <= set(get_args(CallOutcome))


@pytest.mark.spec(
    "REQ-CRITIC-032",
    "REQ-CRITIC-NFR-001",
    "REQ-CRITIC-NFR-002",
    "REQ-CRITIC-NFR-003",
    "REQ-CRITIC-NFR-004",
)
def test_the_numbers_in_the_docs_match_the_code() -> None:
    effort = anthropic.EFFORT
    settings, policy = Settings(), RetryPolicy()
    for phrase in (
        f"`max_retries` times ({settings.max_retries})",
        f"`retry_base_s` ({settings.retry_base_s:g} s)",
        f"`retry_cap_s` ({settings.retry_cap_s:g} s)",
        (
            f"has {settings.call_deadline_s:g} s (`call_deadline_s`), an iteration"
            f" {settings.iteration_deadline_s:g} s"
        ),
        f"loop {settings.loop_deadline_s:g} s",
        f"process, {CONCURRENCY} at once",
        f"cut to {RAW_KEPT:,} characters",
        f"`effort` is `{effort}`",
    ):
        assert phrase in PAGE, phrase
    deadlines = (settings.call_deadline_s, settings.iteration_deadline_s, settings.loop_deadline_s)
    assert (settings.max_retries, *deadlines) == (2, 15, 35, 90)
    assert (policy.retries, policy.base_s, policy.cap_s) == (
        settings.max_retries,
        settings.retry_base_s,
        settings.retry_cap_s,
    )


def test_every_default_model_has_a_price() -> None:
    for vendor, known in known_providers().items():
        for model in filter(None, (known.strong, known.plain)):
            assert f"{vendor}:{model}" in price_list()


def test_cached_tokens_have_their_own_price() -> None:
    prices = Price(input=2.0, output=10.0, cached_input=0.5, cache_write=4.0)
    tokens = TokenUsage(prompt=1_000_000, cached=200_000, written=100_000, completion=50_000)
    assert cost(tokens, prices) == pytest.approx(0.7 * 2.0 + 0.2 * 0.5 + 0.1 * 4.0 + 0.05 * 10.0)
    assert cost(tokens, Price(input=2.0, output=10.0)) == pytest.approx(2.5)
    assert cost(tokens, None) is None


CONFIGURED = Price(input=1.0, output=1.0)


@pytest.mark.parametrize(
    ("model", "configured", "expected"),
    [
        ("ollama:llama3.2", {}, None),
        ("openai:gpt-4o-turbo-x", {}, None),
        ("openai:gpt-4o-2024-08-06", {}, "openai:gpt-4o"),  # same price as the undated name
        ("anthropic:claude-haiku-4-5-20251001", {}, "anthropic:claude-haiku-4-5"),
        ("openai:gpt-4o", {"openai:gpt-4o": CONFIGURED}, CONFIGURED),  # overrides the list
        ("mine:m", {"mine:m": CONFIGURED}, CONFIGURED),
    ],
)
def test_a_price_is_configured_listed_or_unknown(
    model: str, configured: dict[str, Price], expected: str | Price | None
) -> None:
    listed = price_list()[expected] if isinstance(expected, str) else expected
    assert price(model, configured) == listed


def test_prices_are_per_million_tokens_and_plausible() -> None:
    for name, prices in price_list().items():
        assert 0 < prices.input < prices.output <= 100, name
        assert prices.cached_input is not None, name
        assert prices.cached_input < prices.input, name


# Critics from another package: selected by name, given one of our models, and recorded under their
# own name

FIVE_METRES = case_of("It is 9 m [1].", {"1": "It is 5 m."}, query="How long?")


@dataclass(frozen=True)
class PluginCritic(ModelCritic):
    """The built-in critic under a plug-in's name."""

    name: str = ""

    @property
    def judged_by(self) -> JudgedBy:
        return JudgedBy(model=self.name, version=f"{self.name}+1")


@dataclass(frozen=True)
class CriticPlugin:
    string: str
    asks: str = "scripted:m"
    recorded: str = "theirs"
    characters: int = 40_000
    missing: bool = False

    def check(self) -> None:
        if self.missing:
            raise MissingExtra("pip install theirs")

    def build(self, model: Model, settings: Settings) -> Any:
        return PluginCritic(model, name=self.string)


class PluginRegistry:
    def find(self, name: str, settings: Settings) -> CriticPlugin:
        if name not in ("strict", "strict@3", "gone"):
            raise SettingsError(f"theirs:{name}: there is none. Did you mean theirs:strict?")
        return CriticPlugin("theirs:strict@3", missing=name == "gone")

    def available(self, settings: Settings) -> tuple[str, ...]:
        return ("theirs:strict@3",)


class EntryPointOfPlugin:
    def load(self) -> PluginRegistry:
        return PluginRegistry()


@pytest.fixture
def _plugin_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def entry_points(role: str) -> dict[str, Any]:
        return {"theirs": EntryPointOfPlugin()} if role == "critic" else {}

    monkeypatch.setattr(role_plugins, "_entry_points", entry_points)


@pytest.fixture
def settings(_plugin_installed: None) -> Iterator[Settings]:
    with ModelServer() as server:
        yield Settings(
            critic="theirs:strict",
            evaluate="never",
            providers={"scripted": ProviderSettings(address=server.address)},
            prices={"scripted:m": Price(input=1.0, output=1.0)},
        )


def test_a_plug_in_critic_uses_a_configured_model(settings: Settings) -> None:
    run = run_audit(FIVE_METRES, settings)
    assert run.models["critic"] == "theirs:strict@3"
    assert run.versions.prompts["critic"] == "theirs:strict@3+1"
    assert run.iterations[0].critique.judged_by.model == "theirs:strict@3"
    assert {call.model for call in run.calls} == {"scripted:m"}
    assert run.usage.cost_usd


def test_a_plug_ins_cost_and_server_are_its_models(settings: Settings) -> None:
    assert addresses(settings) == (settings.providers["scripted"].address,)
    assert unpriced_models(settings) == ()
    without_plugin = estimate(FIVE_METRES, settings.model_copy(update={"critic": "scripted:m"}))
    with_plugin = estimate(FIVE_METRES, settings)
    assert with_plugin.calls == without_plugin.calls
    assert with_plugin.tokens > without_plugin.tokens + 20_000
    assert with_concurrency(settings, 7).providers["scripted"].concurrency == 7
    assert probe_model("theirs:strict", settings).ok


def test_settings_pin_the_plug_ins_version(settings: Settings) -> None:
    assert pin_versions(settings).critic == "theirs:strict@3"
    assert pin_versions(pin_versions(settings)) == pin_versions(settings)
    assert asked_model("theirs:strict", "critic", settings) == "scripted:m"
    assert asked_model("openai", "critic", settings) == "openai"


def test_a_configured_provider_precedes_a_plug_in_of_the_same_name(
    settings: Settings,
) -> None:
    changed = settings.model_copy(
        update={"providers": settings.providers | {"theirs": settings.providers["scripted"]}}
    )
    assert resolve_model("theirs:strict", "critic", changed) == "theirs:strict"
