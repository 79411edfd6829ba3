"""Whatever stands in a file, in the environment or in a flag, it is read or refused in words: nothing else happens."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.errors import SettingsError
from masis.settings import Settings, load
from masis.settings.names import SPELLINGS, TABLES, written
from masis.settings.sources import VARIABLES

KEY = "sk-proj-a1b2c3d4e5f6g7h8"

scalars = st.one_of(
    st.booleans(),
    st.integers(-3, 200),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from(["strict", "lenient", "offline", "openai:gpt-4o", "json", "", KEY, f"x {KEY}", "9", "0.5"]),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8),
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner))
tables = st.dictionaries(
    st.sampled_from(["vllm", "my server", "openai:gpt-4o", KEY]),
    st.dictionaries(st.sampled_from(["kind", "address", "key_env", "concurrency", "input", "output", KEY]), scalars)
    | scalars,
    max_size=2,
)
KNOWN = [written(path) for path in (*SPELLINGS, *TABLES)]
names = st.sampled_from(KNOWN) | st.sampled_from(["loop.x", "x", f"'{KEY}'"])
files = st.dictionaries(names, values, max_size=5)


def _toml(pairs: dict[str, Any]) -> str:
    return "\n".join(f"{name} = {_value(value)}" for name, value in pairs.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_value(str(key))} = {_value(inside)}" for key, inside in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}.get(text, text)


def _tried(**given: Any) -> None:
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
def test_any_file_is_read_or_refused(pairs: dict[str, Any], providers: dict[str, Any], prices: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "masis.toml"
        whole = {**({"providers": providers} if providers else {}), **({"prices": prices} if prices else {}), **pairs}
        file.write_text(_toml(whole), encoding="utf-8", newline="\n")
        _tried(file=file, environment={})


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "masis.toml"
        file.write_bytes(content)
        _tried(file=file, environment={})


variables = st.sampled_from([*VARIABLES, "MASIS_PROVIDERS__A__ADDRESS", "MASIS_PRICES__A", "MASIS_X", "MASIS_"])
texts = st.text(max_size=8) | st.sampled_from(
    [KEY, "true", "3", "{}", "[]", '{"a": {"address": 1}}', f'{{"a": "{KEY}"}}']
)


@given(st.dictionaries(variables, texts, max_size=5))
def test_any_environment_is_read_or_refused(environment: dict[str, str]) -> None:
    _tried(environment=environment)


@given(
    st.dictionaries(
        names | st.text(max_size=12) | st.sampled_from(["providers.a.b.c.d", "prices.a", 'prices."a.b".input']),
        st.text(max_size=8) | st.sampled_from([KEY, "{}", '{"a": 1}', "1"]),
        max_size=4,
    )
)
def test_any_flags_are_read_or_refused(flags: dict[str, str]) -> None:
    _tried(flags=flags, environment={})
