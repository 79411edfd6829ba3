"""The file to begin with changes nothing, and says what the defaults say; rows hold every setting and no secret."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from masis.settings import DOCS, Settings, all_rows, as_toml, load, spelled, template
from masis.settings.template import EXAMPLES, WIDTH


def loaded(text: str, tmp_path: Path) -> dict[str, str]:
    """The settings that a file of this text gives, with the kind of their origin."""
    file = tmp_path / "masis.toml"
    file.write_text(text, encoding="utf-8")
    found = load(file=file, environment={})
    assert found.settings == Settings()
    return {name: origin.kind for name, origin in found.origins.items() if origin.kind != "default"}


def test_the_file_to_begin_with_changes_nothing(tmp_path: Path) -> None:
    assert loaded(template(), tmp_path) == {}


def test_with_its_settings_uncommented_it_says_what_the_defaults_say(tmp_path: Path) -> None:
    uncommented = re.sub(r"^#(?=\w+ = )", "", template(), flags=re.MULTILINE)
    given = loaded(uncommented, tmp_path)
    unset = {name for name, value in Settings() if value is None}
    assert given.keys() == Settings.model_fields.keys() - EXAMPLES.keys() - unset
    assert uncommented.count("\nmaxRevisions = 1") == 1


def test_every_setting_stands_in_it_with_its_documentation() -> None:
    prose = " ".join(template().replace("\n# ", " ").split())
    for doc in DOCS.values():
        assert doc.meaning in prose
        assert doc.source in prose
    assert max(map(len, template().splitlines())) <= WIDTH + 20


@pytest.mark.parametrize("name", EXAMPLES)
def test_its_examples_are_read(name: str, tmp_path: Path) -> None:
    file = tmp_path / "masis.toml"
    file.write_text(EXAMPLES[name], encoding="utf-8")
    found = load(file=file, environment={}).settings
    [table] = getattr(found, name).values()
    assert table.model_fields_set >= set(tomllib.loads(EXAMPLES[name])) - {name}
    assert EXAMPLES[name].splitlines()[1] in template()


def test_rows_hold_every_setting_once_and_what_lies_in_tables(tmp_path: Path) -> None:
    file = tmp_path / "masis.toml"
    file.write_text("[providers.vllm]\naddress = 'http://me:pass@host/v1?key=1'\n", encoding="utf-8")
    found = all_rows(load(file=file, environment={}))
    names = [row.name for row in found]
    assert sorted(names) == sorted([*Settings.model_fields, "providers.vllm.address"])
    inside = found[names.index("providers.vllm.address")]
    assert (inside.value, inside.origin.line, inside.changed) == ("http://host/v1", 2, True)
    assert inside.doc.meaning.startswith("Its address")
    assert found[names.index("max_iterations")].allowed == "a whole number from 1 to 5"
    assert {row.name for row in found if row.changed} == {"providers", "providers.vllm.address"}


def test_what_a_setting_may_be_is_said_in_words() -> None:
    allowed = {row.name: row.allowed for row in all_rows(load(environment={}))}
    assert allowed["max_iterations"] == "a whole number from 1 to 5"
    assert allowed["improvement_threshold"] == "a number from 0 to 1"
    assert allowed["strictness"] == "one of lenient, moderate, strict"
    assert allowed["log_texts"] == "true or false"
    assert allowed["critic"] == "text"
    assert "a value of its kind" not in allowed.values()


def test_values_are_spelled_as_in_the_file() -> None:
    values: tuple[object, ...] = (True, 0.5, 90.0, 3, "offline", "", None, {}, {"a": 1}, ("a", "b"))
    assert [spelled(value) for value in values] == [
        *("true", "0.5", "90", "3", "offline", "none", "none", "none", "a", "a, b"),
    ]


@pytest.mark.parametrize("value", [True, 3, 0.05, 1e-7, 'say "so"\n\\ \x7f\u202e', {"a b": [1, {"c": "d"}]}, (), ""])
def test_a_value_written_as_toml_is_read_back(value: object) -> None:
    back = tomllib.loads(f"value = {as_toml(value)}")["value"]
    assert back == (list(value) if isinstance(value, tuple) else value)
