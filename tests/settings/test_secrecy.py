"""What may be a key is not repeated; what is none is."""

from __future__ import annotations

import pytest

from masis.settings.secrecy import HIDDEN, may_be_a_key, shown, without_secrets


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-abcdefghijklmnop",
        "sk-ant-api03-abcdefghij",
        "  sk_live_abcdefghijkl",
        "ghp_abcdefghijklmnop1234",
        "hf_abcdefghijklmnopqr",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyAbcdefghijklmnopqrstuvwx",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.x",
        "Bearer abcdefghijklmnop",
        "0123456789abcdef0123456789abcdef",
        "token 0123456789abcdef0123456789abcdef",
        "openai:sk-abcdefghijklmnop",
        '{"key": "sk-abcdefghijklmnop"}',
    ],
)
def test_what_looks_like_a_key_is_not_shown(text: str) -> None:
    assert may_be_a_key(text)
    assert shown(text) == HIDDEN
    assert without_secrets(text) == HIDDEN


@pytest.mark.parametrize(
    "text",
    [
        "strickt",
        "openai:gpt-4o-mini",
        "anthropic:claude-sonnet-5-5",
        "vllm:meta-llama/Llama-3.1-70B-Instruct-AWQ-INT4",
        "offline,openai:gpt-4o,ollama:llama3.2:3b-instruct-q4_K_M",
        "https://eutils.ncbi.nlm.nih.gov/entrez/eutils",
        "ollama:skywork-13b-base-v2",
        "ollama:hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF",
        "librarian@hospital.example",
        "nine",
    ],
)
def test_what_looks_like_none_is_shown(text: str) -> None:
    assert without_secrets(text) == text
    assert shown(text) == repr(text)


def test_an_address_is_shown_without_what_only_its_server_should_read() -> None:
    assert without_secrets("http://me:hidden@host:8000/v1?api_key=hidden#hidden") == "http://host:8000/v1"
    assert "hidden" not in shown("http://[hidden")


def test_values_are_shown_short_and_on_one_line() -> None:
    assert [shown(value) for value in (True, 3, 0.5, {"a": 1}, [1])] == ["true", "3", "0.5", "a table", "a list"]
    assert shown("a\nb\x1b") == r"'a\nb\x1b'"
    assert len(shown("x y" * 100)) < 70


def test_a_long_text_takes_no_long_time() -> None:
    for text in ("a" * 100_000, "a1" * 50_000, "sk-" * 33_000, "1_" * 50_000, "http://" + "@" * 100_000):
        shown(text)
