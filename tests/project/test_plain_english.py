"""The check of names and words reports what it should, and reports nothing in the package."""

from __future__ import annotations

import pytest

from tools.plain_english import (
    ROOT,
    candidates,
    definitions,
    helper_candidates,
    is_bare_form,
    limit_candidates,
    name_candidates,
    variable_candidates,
    word_candidates,
)


def test_the_package_has_no_name_or_word_to_replace() -> None:
    found = [f"{candidate.place}: {candidate.problem}" for candidate in candidates(ROOT)]
    assert found == []


@pytest.mark.parametrize("name", ["placed", "_kept", "begun", "leads", "_stands", "carried"])
def test_a_bare_participle_or_third_person_verb_isnt_a_function_name(name: str) -> None:
    assert is_bare_form(name)


@pytest.mark.parametrize(
    "name", ["place", "is_placed", "keep_alive", "read", "put", "needs_review", "seed", "address"]
)
def test_verb_phrases_predicates_and_nouns_are_function_names(name: str) -> None:
    assert not is_bare_form(name)


def test_a_property_can_be_an_adjective_but_a_method_cant() -> None:
    source = "class A:\n    @property\n    def passed(self): ...\n    def failed(self): ...\n"
    problems = [candidate.problem for candidate in name_candidates([*definitions("a.py", source)])]
    assert problems == ["failed is no verb phrase"]


def test_a_private_name_or_class_name_is_defined_only_once() -> None:
    one = "class Row: ...\ndef _read(): ...\n"
    other = "class Row: ...\nclass B:\n    def _read(self): ...\ndef _read(): ...\n"
    found = [*definitions("one.py", one), *definitions("other.py", other)]
    assert sorted((candidate.place, candidate.problem) for candidate in name_candidates(found)) == [
        ("other.py:1", "Row is also a class at one.py:1"),
        ("other.py:4", "_read is also a function at one.py:2"),
    ]


def test_a_word_with_a_plainer_alternative_is_reported_with_its_line() -> None:
    text = "first\n# The audit accuses it.\nsecure = obscure\n"
    assert [*word_candidates("a.py", text)] == [("a.py:2", "accuses: say flags")]


def test_a_variable_or_parameter_named_each_is_reported_where_it_is_bound() -> None:
    source = (
        "for each in ():\n    print(each)\nfirst = [each for each in ()]\n"
        "key = lambda each: each\nclaims = 'each'\n"
    )
    assert [candidate.place for candidate in variable_candidates("a.py", source)] == [
        "a.py:1",
        "a.py:3",
        "a.py:4",
    ]


def test_a_helper_of_a_test_has_a_verb_unless_it_is_a_fixture() -> None:
    source = (
        "def audited(): ...\n@pytest.fixture\ndef decided(): ...\n"
        "def test_it():\n    def stored(): ...\n    def store(): ...\n"
    )
    assert [candidate.place for candidate in helper_candidates("a.py", source)] == ["a.py:5"]


def test_a_limit_is_a_maximum_or_a_minimum() -> None:
    source = (
        'A = 1\n"""The most cases of a batch."""\nB = 2\n"""The fewest words of a copy."""\n'
        'C = 3\n"""The most recent report."""\nD = 4\n"""Maximum number of cases per batch."""\n'
    )
    assert [candidate.problem for candidate in limit_candidates("a.py", source)] == [
        "The most cases: begin with Maximum",
        "The fewest words: begin with Minimum",
    ]
