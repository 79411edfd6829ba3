"""Settings in words and rows, no key repeated, and any file, variable or flag read or refused."""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.errors import SettingsError
from masis.settings import GROUPS, Settings, load
from masis.settings.names import SPELLINGS, TABLES, TABLES_OF_TABLES, name_in_file
from masis.settings.ranges import describe_range, schema_of, value_text
from masis.settings.reference import EXAMPLES, WIDTH, all_rows, template
from masis.settings.secrecy import HIDDEN, may_be_a_key, safe_value, without_secrets
from masis.settings.sources import VARIABLES

RULES = Path(__file__).resolve().parents[2] / "docs" / "rules.toml"
DEFAULTS = all_rows(load(environment={}))


def test_every_setting_has_a_group_and_an_explanation() -> None:
    assert sorted(name for group in GROUPS for name in group.settings) == sorted(
        Settings.model_fields
    )
    assert [row.name for row in DEFAULTS if not row.meaning.endswith(".")] == []
    for name in TABLES_OF_TABLES:
        keys = schema_of((name, "NAME"))["properties"]
        assert [
            key for key in keys if not schema_of((name, "NAME", key))["description"].endswith(".")
        ] == []


def test_every_setting_names_its_rules_or_a_reason() -> None:
    rules = {rule["id"] for rule in tomllib.loads(RULES.read_text(encoding="utf-8"))["rule"]}
    for row in DEFAULTS:
        if re.match(r"[A-Z]+-[A-Z0-9-]+(,|$)", row.rule):
            assert set(row.rule.split(", ")) <= rules, row.name
        else:
            assert len(row.rule.split()) > 3, row.name


def test_no_table_is_named_like_a_setting() -> None:
    tables = [group.table for group in GROUPS]
    assert len(set(tables)) == len(tables)
    assert not set(tables) & set(Settings.model_fields)


def test_allowed_values_are_described() -> None:
    allowed = {row.name: row.allowed for row in DEFAULTS}
    assert allowed["max_iterations"] == "a whole number from 1 to 5"
    assert allowed["improvement_threshold"] == "a number from 0 to 1"
    assert allowed["call_deadline_s"] == "a number above 0, of at most 3600"
    assert allowed["draft_min_length"] == "a whole number of at least 0"
    assert allowed["strictness"] == "one of lenient, moderate, strict"
    assert allowed["log_texts"] == "true or false"
    assert allowed["output_validator"] == "text of 1 to 100 characters"
    assert (allowed["critic"], allowed["providers"]) == ("text", "a table")
    assert describe_range(schema_of(("prices", "NAME", "input"))) == "a number of at least 0"


def test_values_are_shown_readably() -> None:
    values: tuple[object, ...] = (True, 0.5, 90.0, 3, "offline", "", {}, {"a": 1, "b": 2})
    assert [value_text(value) for value in values] == [
        "true",
        "0.5",
        "90",
        "3",
        "offline",
        "none",
        "none",
        "a, b",
    ]


def test_rows_have_every_setting_once(tmp_path: Path) -> None:
    file = tmp_path / "masis.toml"
    file.write_text(
        "[providers.vllm]\naddress = 'http://me:pass@host/v1?key=1'\n", encoding="utf-8"
    )
    found = {row.name: row for row in all_rows(load(file=file, environment={}))}
    assert sorted(found) == sorted([*Settings.model_fields, "providers.vllm.address"])
    inside = found["providers.vllm.address"]
    assert (inside.value, inside.origin.place, inside.changed) == (
        "http://host/v1",
        str(file),
        True,
    )
    assert inside.meaning.startswith("Its address")
    assert {row.name for row in found.values() if row.changed} == {
        "providers",
        "providers.vllm.address",
    }


def _given(text: str, tmp_path: Path) -> set[str]:
    """The settings that a file of this text gives, all of them as by default."""
    file = tmp_path / "masis.toml"
    file.write_text(text, encoding="utf-8")
    found = load(file=file, environment={})
    assert found.settings == Settings()
    return {name for name, origin in found.origins.items() if origin.kind != "default"}


def test_the_starter_file_has_the_defaults(
    tmp_path: Path,
) -> None:
    assert _given(template(), tmp_path) == set()
    uncommented = re.sub(r"^#(?=\w+ = )", "", template(), flags=re.MULTILINE)
    assert _given(uncommented, tmp_path) == Settings.model_fields.keys() - EXAMPLES.keys()
    assert uncommented.count("\nmaxRevisions = 1") == 1
    prose = " ".join(template().replace("\n# ", " ").split())
    assert [row.name for row in DEFAULTS if row.meaning not in prose or row.rule not in prose] == []
    assert max(map(len, template().splitlines())) <= WIDTH + 20


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_starter_files_examples_are_valid(name: str, tmp_path: Path) -> None:
    file = tmp_path / "masis.toml"
    file.write_text(EXAMPLES[name], encoding="utf-8")
    [table] = getattr(load(file=file, environment={}).settings, name).values()
    assert table.model_fields_set == tomllib.loads(EXAMPLES[name])[name].popitem()[1].keys()
    assert EXAMPLES[name].splitlines()[1] in template()


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
def test_possible_keys_are_hidden(text: str) -> None:
    assert may_be_a_key(text)
    assert safe_value(text) == HIDDEN
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
def test_ordinary_values_are_shown(text: str) -> None:
    assert without_secrets(text) == text
    assert safe_value(text) == repr(text)


def test_urls_are_shown_without_credentials() -> None:
    assert (
        without_secrets("http://me:hidden@host:8000/v1?api_key=hidden#hidden")
        == "http://host:8000/v1"
    )
    assert "hidden" not in safe_value("http://[hidden")


def test_values_are_shown_on_one_short_line() -> None:
    assert [safe_value(value) for value in (True, 3, 0.5, {"a": 1}, [1])] == [
        "true",
        "3",
        "0.5",
        "a table",
        "a list",
    ]
    assert safe_value("a\nb\x1b") == r"'a\nb\x1b'"
    assert len(safe_value("x y" * 100)) < 70


KEY = "sk-proj-a1b2c3d4e5f6g7h8"

scalars = st.one_of(
    st.booleans(),
    st.integers(-3, 200),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from(
        ["strict", "lenient", "offline", "openai:gpt-4o", "json", "", KEY, f"x {KEY}", "9", "0.5"]
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8),
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner)
)
tables = st.dictionaries(
    st.sampled_from(["vllm", "my server", "openai:gpt-4o", KEY]),
    st.dictionaries(
        st.sampled_from(["kind", "address", "key_env", "concurrency", "input", "output", KEY]),
        scalars,
    )
    | scalars,
    max_size=2,
)
KNOWN = [name_in_file(path) for path in (*SPELLINGS, *TABLES)]
names = st.sampled_from(KNOWN) | st.sampled_from(["loop.x", "x", f"'{KEY}'"])
files = st.dictionaries(names, values, max_size=5)


def _toml(pairs: dict[str, Any]) -> str:
    return "\n".join(f"{name} = {_value(value)}" for name, value in pairs.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{_value(str(key))} = {_value(inside)}" for key, inside in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}.get(text, text)


def _try_to_load(**given: Any) -> None:
    told = "read"
    try:
        found = load(**given)
    except SettingsError as error:
        told = str(error)
    else:
        assert isinstance(found.settings, Settings)
        assert found.origins.keys() >= Settings.model_fields.keys()
    assert told.strip()
    assert "a1b2c3" not in told


@pytest.mark.slow
@given(files, tables, tables)
def test_any_file_is_read_or_rejected(
    pairs: dict[str, Any], providers: dict[str, Any], prices: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "masis.toml"
        whole = {
            **({"providers": providers} if providers else {}),
            **({"prices": prices} if prices else {}),
            **pairs,
        }
        file.write_text(_toml(whole), encoding="utf-8", newline="\n")
        _try_to_load(file=file, environment={})


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_rejected(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "masis.toml"
        file.write_bytes(content)
        _try_to_load(file=file, environment={})


variables = st.sampled_from(
    [*VARIABLES, "MASIS_PROVIDERS__A__ADDRESS", "MASIS_PRICES__A", "MASIS_X", "MASIS_"]
)
texts = st.text(max_size=8) | st.sampled_from(
    [KEY, "true", "3", "{}", "[]", '{"a": {"address": 1}}', f'{{"a": "{KEY}"}}']
)


@given(st.dictionaries(variables, texts, max_size=5))
def test_any_environment_is_read_or_rejected(environment: dict[str, str]) -> None:
    _try_to_load(environment=environment)


@given(
    st.dictionaries(
        names
        | st.text(max_size=12)
        | st.sampled_from(["providers.a.b.c.d", "prices.a", 'prices."a.b".input']),
        st.text(max_size=8) | st.sampled_from([KEY, "{}", '{"a": 1}', "1"]),
        max_size=4,
    )
)
def test_any_flags_are_read_or_rejected(flags: dict[str, str]) -> None:
    _try_to_load(flags=flags, environment={})
