"""Model strings are parsed once, and the parsed values convert back to the same string."""

from __future__ import annotations

import pytest

from masis.schema.model_ref import ModelRef
from masis.settings import Settings


@pytest.mark.parametrize(
    ("string", "parsed"),
    [
        ("offline", ModelRef("offline")),
        ("openai", ModelRef("openai")),
        ("openai:", ModelRef("openai", "")),
        ("ollama:llama3.2:1b", ModelRef("ollama", "llama3.2:1b")),
        ("local:a, b", ModelRef("local", "a, b")),
        ("replay:a,b.jsonl", ModelRef("replay", "a,b.jsonl")),
        (
            "replay:a (b).jsonl (openai:gpt-4o, 2026-03-01)",
            ModelRef("replay", "a (b).jsonl", False, "openai:gpt-4o", "2026-03-01"),
        ),
        ("replay:a (b, c)", ModelRef("replay", "a (b, c)")),
        ("offline,openai:gpt-4o", ModelRef("openai", "gpt-4o", after_offline=True)),
        ("offline,replay:a", ModelRef("replay", "a", after_offline=True)),
        ("", ModelRef("")),
    ],
)
def test_a_parsed_model_string_converts_back_to_itself(string: str, parsed: ModelRef) -> None:
    assert ModelRef.parse(string) == parsed
    assert str(parsed) == string
    assert ModelRef.parse(f" {string} ") == parsed


def test_only_the_plain_rules_are_offline() -> None:
    strings = ("offline", "offline,openai:m", "offline:m", "replay:offline")
    assert [ModelRef.parse(string).is_offline for string in strings] == [True, False, False, False]
    assert ModelRef.parse("offline,replay:a").is_replay
    assert not ModelRef.parse("replay:").is_replay


def test_settings_give_the_parsed_model_of_each_role() -> None:
    refs = Settings(verifier="offline, openai:m").model_refs()
    assert str(refs["verifier"].alone) == "openai:m"
    assert refs["critic"].is_offline
