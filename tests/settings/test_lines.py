"""Each key of a TOML file is found on its line, whatever stands around it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.settings.toml_positions import key_lines

HARD = (Path(__file__).parent / "hard.toml").read_text(encoding="utf-8")


def test_each_key_is_found_on_its_line() -> None:
    tomllib.loads(HARD)  # it is TOML
    assert key_lines(HARD) == {
        ("a",): 2,
        ("e",): 6,
        ("e", "f"): 6,
        ("i",): 10,
        ("i", "j k"): 11,
        ("i", "j k", "l"): 11,
        ("i", "j k", "m"): 11,
        ("i", "j k", "m", "n"): 11,
        ("i", "j k", "p"): 11,
        ("i", 'q"'): 12,
        ("s",): 13,
        ("s", "t.u"): 13,
        ("s", "t.u", "v"): 14,
        ("s", "t.u", "w"): 16,
        ("y",): 19,
        ("y", "z"): 20,
        ("providers",): 21,
        ("providers", "my server"): 21,
        ("providers", "my server", "a"): 22,
    }


VALUES = ("1", "-0.5", "true", '"#"', "'['", '"""\n]"""', "'''\n{'''", "[1, 2]", "[\n# }\n'a',\n]", "{a = 1, b.c = []}")


@given(st.lists(st.tuples(st.sampled_from(VALUES), st.sampled_from(("", " # x = 1", "\n\n# [t]"))), max_size=12))
def test_every_key_of_any_file_is_found_where_it_was_written(pairs: list[tuple[str, str]]) -> None:
    text, expected = "", {}
    for number, (value, after) in enumerate(pairs):
        expected[f"k{number}"] = text.count("\n") + 1
        text += f"k{number} = {value}{after}\n"
    found = key_lines(text)
    assert {name: found[name,] for name in expected} == expected
    assert set(_paths(tomllib.loads(text))) == set(found)


def _paths(tree: dict[str, Any], at: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for key, value in tree.items():
        found += [(*at, key), *(_paths(value, (*at, key)) if isinstance(value, dict) else [])]
    return found


@pytest.mark.parametrize("text", ["a", "a =", "[", "= 1", '"', "a = {b", "a = [", "a = '''", "\x00", 'a = "\\', "]"])
def test_what_is_no_toml_gives_what_was_found_until_there(text: str) -> None:
    assert set(key_lines(f"first = 1\n{text}")) >= {("first",)}


LONG = (
    "a = " + "[" * 100_000,
    "#" * 100_000,
    "a" * 100_000,
    'a = """' + '"' * 100_000,
    "a = '" + "'" * 100_000,
    "a = " + '"\\' * 50_000,
    "\n" * 100_000 + "a",
    " \t" * 50_000,
    "a." * 50_000,
    "[" + "a." * 50_000,
    "a = " + "{a = " * 20_000,
    "a = 1\n" * 20_000,
)


@pytest.mark.parametrize("text", LONG)
def test_long_files_take_no_long_time(text: str) -> None:
    key_lines(text)
