"""A parser's reading is held against the text: what is not there, or not sure to be there, is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.llm.client.json_repair import RepairRefused, verify_repair
from tests.rules import each

RECORD: dict[str, Any] = {
    "why": "It says [1].",
    "items": [{"kind": "a", "n": 1}, {"kind": "b", "n": 2}],
    "sound": True,
    "score": 0.5,
    "place": None,
}
NAMES = ("why", "items", "kind", "n", "sound", "score", "place")
TEXT = json.dumps(RECORD)
PRETTY = json.dumps(RECORD, indent=2)


def told(text: str, proposed: dict[str, Any] = RECORD) -> tuple[dict[str, Any], tuple[str, ...]]:
    found = verify_repair(proposed, text, text.find("{"), NAMES, ("a", "b"))
    return found.value, found.repairs


@pytest.mark.parametrize(
    ("text", "repairs"),
    [
        (TEXT, ()),
        (PRETTY, ()),
        (f"Here: {TEXT} and more", ()),
        (TEXT.replace('"', "'"), ("quotes of another kind",)),
        (TEXT.replace("}]", "},]"), ("a comma too many",)),
        (TEXT.replace("}, {", "} {"), ("a missing comma",)),
        (PRETTY.replace('",\n', '"\n'), ("a missing comma",)),
        (TEXT.replace('"kind"', "kind"), ("a name without quotes",)),
        (TEXT.replace('"a"', "a"), ("a word without quotes",)),
        (TEXT.replace("0.5,", "0.5, // it is so\n"), ("a comment",)),
        (TEXT.replace("0.5,", "/* so */ 0.5,"), ("a comment",)),
        (TEXT.replace("null", "None"), ("a word of another language",)),
        (TEXT.replace("[1]", "\\u005b1\\u005D"), ()),
        (TEXT.replace("0.5", "5e-1"), ()),
    ],
)
def test_what_the_text_says_is_taken_with_what_had_to_be_overlooked(text: str, repairs: tuple[str, ...]) -> None:
    assert told(text) == (RECORD, repairs)


def test_a_word_of_another_language_becomes_what_it_means() -> None:
    value, _ = told('{"sound": True, "place": None, "score": NaN}', {"sound": "True", "place": "None", "score": "NaN"})
    assert value["sound"] is True
    assert value["place"] is None
    assert value["score"] != value["score"]


def test_the_same_word_in_quotes_stays_a_text() -> None:
    assert told('{"sound": "True"}', {"sound": "True"})[0] == {"sound": "True"}


@each(range(1, len(TEXT) - 1))
def test_a_text_that_is_cut_off_verifies_no_repair(cut: int) -> None:
    with pytest.raises(RepairRefused):
        told(TEXT[:cut])


def test_only_a_last_brace_behind_something_closed_may_be_missing() -> None:
    record = {"why": "a", "items": [1, 2]}
    text = json.dumps(record)
    assert told(text[:-1], record) == (record, ("a missing last brace",))
    assert told(text[:-1] + "\n```", record) == (record, ("a missing last brace",))
    for short in ('{"items": [1, 2], "why": "a"', '{"items": [1, 2], "score": 0.5', '{"why": "a", "items": [1, 2'):
        with pytest.raises(RepairRefused):
            told(short, json.loads(short + ("}" if short[-1] in '"5' else "]}")))
    with pytest.raises(RepairRefused):
        told(text[:-1] + " and so on", record)


@pytest.mark.parametrize(
    "proposed",
    [
        RECORD | {"more": None},
        {key: value for key, value in RECORD.items() if key != "items"},
        RECORD | {"items": RECORD["items"][1:]},
        RECORD | {"items": RECORD["items"][:1]},
        RECORD | {"items": []},
        RECORD | {"score": 0.51},
        RECORD | {"score": 5},
        RECORD | {"score": None},
        RECORD | {"sound": False},
        RECORD | {"sound": 1},
        RECORD | {"place": "null"} | {"why": "It says"},
        RECORD | {"why": "It says [1]"},
        RECORD | {"why": "It  says [1]."},
        RECORD | {"why": 'It says [1].", "items": [{"kind": "a'},
    ],
)
def test_a_reading_that_differs_in_anything_is_refused(proposed: dict[str, Any]) -> None:
    with pytest.raises(RepairRefused):
        told(TEXT, proposed)


def test_a_word_without_quotes_is_what_the_text_says_it_is() -> None:
    assert told(TEXT, RECORD | {"sound": "true"})[0]["sound"] is True


@pytest.mark.parametrize(
    ("text", "proposed"),
    [
        ('{"why": "a", "items": ["b" "c"]}', {"why": "a", "items": ['b" "c']}),
        ('{"why": "a" "score": 2}', {"why": 'a" "score": 2'}),
        ('{"why": "a", score: 2"}', {"why": 'a", score: 2'}),
        ('{"why": a, score: 2}', {"why": "a, score: 2"}),
        ('{"why": "a"\n"score": 2}', {"why": 'a"\n"score": 2'}),
        ('{"items": [..., 1]}', {"items": ["...", 1]}),
        ('{"place": nulll}', {"place": "nulll"}),
        ('{"score": 85%}', {"score": "85%"}),
        ('{"why": "a "b""}', {"why": 'a "b"'}),
        ('{"items": ["a, "b"]}', {"items": ['a, "b']}),
        ('{"items": ["a"}, "b"]}', {"items": ['a"}, "b']}),
        ('{"why": ""a" b"}', {"why": '"a" b'}),
        ('{"why": "\n "a"}', {"why": '\n "a'}),
        ('{"why": "a", "why": "b"}', {"why": "b"}),
        ('{"score": 0.5 of 1}', {"score": 0.5}),
        ('{"score": 0.5abc}', {"score": 0.5}),
        ('{"score": 1, 000}', {"score": 1000}),
    ],
)
def test_what_may_have_been_swallowed_or_left_out_is_refused(text: str, proposed: dict[str, Any]) -> None:
    with pytest.raises(RepairRefused):
        told(text, proposed)


def test_a_quote_in_a_text_that_nothing_escapes_is_taken_where_it_is_one_text_for_certain() -> None:
    assert told('{"why": "he said "yes", and left", "score": 1}', {"why": 'he said "yes", and left', "score": 1}) == (
        {"why": 'he said "yes", and left', "score": 1},
        ("a quote in a text",),
    )


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=8), json_values, max_size=4), st.booleans())
def test_every_json_object_is_verified_by_its_own_text(value: dict[str, Any], plain: bool) -> None:
    text = json.dumps(value, ensure_ascii=plain)
    assert verify_repair(value, text, 0).value == value


@given(
    st.dictionaries(st.sampled_from("abc"), json_values, min_size=1),
    st.dictionaries(st.sampled_from("abc"), json_values, min_size=1),
)
def test_no_object_is_verified_by_the_text_of_another(value: dict[str, Any], other: dict[str, Any]) -> None:
    try:
        found = verify_repair(other, json.dumps(value), 0).value
    except RepairRefused:
        return
    assert found == value


@pytest.mark.parametrize(
    ("text", "proposed"),
    [
        ('{"a": ' + "/*" * 50_000, {"a": 1}),
        ('{"a": ' + "//\n" * 50_000, {"a": 1}),
        ("{" + " " * 100_000, {"a": 1}),
        ('{"a": "' + '"' * 100_000 + '"}', {"a": '"' * 100_000}),
        ('{"a": "' + "x\\" * 50_000, {"a": "x\\" * 50_000}),
    ],
)
def test_hostile_texts_take_no_time(text: str, proposed: dict[str, Any]) -> None:
    with pytest.raises(RepairRefused):
        verify_repair(proposed, text, 0, NAMES)
