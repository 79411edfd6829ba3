"""Every setting explains itself wherever it is shown, and the file to begin with says what the defaults say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from masis.settings import GROUPS, Settings, load
from masis.settings.names import TABLES_OF_TABLES
from masis.settings.ranges import described, schema_of, spelled
from masis.settings.reference import EXAMPLES, WIDTH, all_rows, template

RULES = Path(__file__).resolve().parents[2] / "docs" / "rules.toml"
DEFAULTS = all_rows(load(environment={}))


def test_every_setting_is_in_one_group_and_explains_itself() -> None:
    assert sorted(name for group in GROUPS for name in group.settings) == sorted(Settings.model_fields)
    assert [row.name for row in DEFAULTS if not row.meaning.endswith(".")] == []
    for name in TABLES_OF_TABLES:
        keys = schema_of((name, "NAME"))["properties"]
        assert [key for key in keys if not schema_of((name, "NAME", key))["description"].endswith(".")] == []


def test_every_setting_names_the_rules_it_follows_or_gives_a_reason() -> None:
    rules = {rule["id"] for rule in tomllib.loads(RULES.read_text(encoding="utf-8"))["rule"]}
    for row in DEFAULTS:
        if re.match(r"[A-Z]+-[A-Z0-9-]+(,|$)", row.rule):
            assert set(row.rule.split(", ")) <= rules, row.name
        else:
            assert len(row.rule.split()) > 3, row.name


def test_no_table_of_the_file_has_the_name_of_a_setting() -> None:
    tables = [group.table for group in GROUPS]
    assert len(set(tables)) == len(tables)
    assert not set(tables) & set(Settings.model_fields)


def test_what_a_setting_may_be_is_written_in_words() -> None:
    allowed = {row.name: row.allowed for row in DEFAULTS}
    assert allowed["max_iterations"] == "a whole number from 1 to 5"
    assert allowed["improvement_threshold"] == "a number from 0 to 1"
    assert allowed["call_deadline_s"] == "a number above 0, of at most 3600"
    assert allowed["draft_min_length"] == "a whole number of at least 0"
    assert allowed["strictness"] == "one of lenient, moderate, strict"
    assert allowed["log_texts"] == "true or false"
    assert allowed["output_validator"] == "text of 1 to 100 characters"
    assert (allowed["critic"], allowed["providers"]) == ("text", "a table")
    assert described(schema_of(("prices", "NAME", "input"))) == "a number of at least 0"


def test_values_are_written_as_people_read_them() -> None:
    values: tuple[object, ...] = (True, 0.5, 90.0, 3, "offline", "", {}, {"a": 1, "b": 2})
    assert [spelled(value) for value in values] == ["true", "0.5", "90", "3", "offline", "none", "none", "a, b"]


def test_rows_hold_every_setting_once_and_what_lies_in_tables(tmp_path: Path) -> None:
    file = tmp_path / "masis.toml"
    file.write_text("[providers.vllm]\naddress = 'http://me:pass@host/v1?key=1'\n", encoding="utf-8")
    found = {row.name: row for row in all_rows(load(file=file, environment={}))}
    assert sorted(found) == sorted([*Settings.model_fields, "providers.vllm.address"])
    inside = found["providers.vllm.address"]
    assert (inside.value, inside.origin.place, inside.changed) == ("http://host/v1", str(file), True)
    assert inside.meaning.startswith("Its address")
    assert {row.name for row in found.values() if row.changed} == {"providers", "providers.vllm.address"}


def _given(text: str, tmp_path: Path) -> set[str]:
    """The settings that a file of this text gives, all of them as by default."""
    file = tmp_path / "masis.toml"
    file.write_text(text, encoding="utf-8")
    found = load(file=file, environment={})
    assert found.settings == Settings()
    return {name for name, origin in found.origins.items() if origin.kind != "default"}


def test_the_file_to_begin_with_changes_nothing_and_says_what_the_defaults_say(tmp_path: Path) -> None:
    assert _given(template(), tmp_path) == set()
    uncommented = re.sub(r"^#(?=\w+ = )", "", template(), flags=re.MULTILINE)
    assert _given(uncommented, tmp_path) == Settings.model_fields.keys() - EXAMPLES.keys()
    assert uncommented.count("\nmaxRevisions = 1") == 1
    prose = " ".join(template().replace("\n# ", " ").split())
    assert [row.name for row in DEFAULTS if row.meaning not in prose or row.rule not in prose] == []
    assert max(map(len, template().splitlines())) <= WIDTH + 20


@pytest.mark.parametrize("name", EXAMPLES)
def test_its_examples_are_read(name: str, tmp_path: Path) -> None:
    file = tmp_path / "masis.toml"
    file.write_text(EXAMPLES[name], encoding="utf-8")
    [table] = getattr(load(file=file, environment={}).settings, name).values()
    assert table.model_fields_set == tomllib.loads(EXAMPLES[name])[name].popitem()[1].keys()
    assert EXAMPLES[name].splitlines()[1] in template()
