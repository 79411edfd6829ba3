"""Every setting explains itself, wherever it is shown."""

from __future__ import annotations

import re

from masis.settings import GROUPS, INSIDE, WORDS, Settings, schema_of
from masis.settings.aliases import TABLES_OF_TABLES


def test_every_setting_is_explained_once() -> None:
    explained = [name for group in GROUPS for name in group.settings]
    assert sorted(explained) == sorted(Settings.model_fields)
    assert all(words.meaning.endswith(".") for words in WORDS.values())


def test_every_setting_names_the_spec_it_comes_from_or_why_it_is_ours() -> None:
    known = re.compile(r"(specs/[a-z-]+\.md, |DESIGN\.md, \d|ours: )\S")
    assert not [name for name, words in WORDS.items() if not known.match(words.source)]


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
