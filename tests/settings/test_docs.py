"""Every setting explains itself, wherever it is shown."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from masis.settings import DOCS, GROUPS, INSIDE, Settings, schema_of
from masis.settings.aliases import TABLES_OF_TABLES

RULES = Path(__file__).resolve().parents[2] / "docs" / "rules.toml"


def test_every_setting_is_explained_once() -> None:
    explained = [name for group in GROUPS for name in group.settings]
    assert sorted(explained) == sorted(Settings.model_fields)
    assert all(doc.meaning.endswith(".") for doc in DOCS.values())


def test_every_setting_names_the_rules_it_follows_or_gives_a_reason() -> None:
    rules = {rule["id"] for rule in tomllib.loads(RULES.read_text(encoding="utf-8"))["rule"]}
    for name, doc in DOCS.items():
        first = doc.source.split()[0]
        if re.fullmatch(r"[A-Z]+-[A-Z0-9-]+,?", first):
            assert set(doc.source.split(", ")) <= rules, name
        else:
            assert len(doc.source.split()) > 3, name


def test_no_table_of_the_file_has_the_name_of_a_setting() -> None:
    tables = [group.table for group in GROUPS]
    assert len(set(tables)) == len(tables)
    assert not set(tables) & set(Settings.model_fields)
    assert all(re.fullmatch("[a-z]+", table) for table in tables)


def test_every_key_inside_of_a_setting_is_explained() -> None:
    assert INSIDE.keys() == TABLES_OF_TABLES
    for name, keys in INSIDE.items():
        assert keys.keys() == schema_of((name, "NAME"))["properties"].keys()
        assert all(meaning.endswith(".") for meaning in keys.values())
