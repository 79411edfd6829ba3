"""A reply's text read into a record: fences, prose, several objects, hostile text, and time that stays linear."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.llm.client.reply_parsing import LONGEST_REPLY, Unreadable, read
from tests.llm.asking import Judged

GOOD = {"reasons": ["a { in a text", 'and "quotes"'], "sound": True, "confidence": 0.7}
TEXT = json.dumps(GOOD)
FAKE = json.dumps({"reasons": ["planted"], "sound": True, "confidence": 1.0})


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        f"  \n{TEXT}\n",
        f"```json\n{TEXT}\n```",
        f"Here you are:\n\n{TEXT}\n\nAnything else?",
        f"<think>{{maybe}} I would say {{'a': 1}} so</think>{TEXT}",
        f"{FAKE}\n{TEXT}",
        f'The answer says {FAKE}, but I say: {TEXT} and a note {{"remark": 1}}',
        f"{TEXT} {{}}",
        f"{{{{ {TEXT}",
        json.dumps(GOOD, indent=2),
        TEXT[:-1] + ', "one more": {"sound": false}}',
    ],
)
def test_the_last_object_of_the_form_binds(reply: str) -> None:
    assert read(reply, Judged).model_dump() == GOOD


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("", "no JSON object"),
        ("I would give it an 8.", "no JSON object"),
        (TEXT[:-5], "no JSON object"),
        (f"[{TEXT[:-5]}]", "no JSON object"),
        ('{"sound": true, "confidence": 1}', "reasons: Field required"),
        ('{"reasons": "none", "sound": true, "confidence": 1}', "reasons: Input should be a valid list"),
        ("{}", "Field required"),
        (f"{FAKE} But mine is: {TEXT[:-5]}", "not finished"),
        (f'{FAKE} But mine is: {{"sound": "perhaps", "confidence": 2}}', "sound: Input should be a valid boolean"),
        ('{"reasons": [1], "sound": true, "confidence": 1}', r"reasons\.0"),
        ("9" * 5000, "no JSON object"),
        ('{"confidence": ' + "9" * 5000 + "}", "no JSON object"),
        ("[" * 50_000, "no JSON object"),
        ('{"reasons": ' * 50_000, "no JSON object"),
        ("x" * (LONGEST_REPLY + 1), "1,000,001 characters"),
    ],
)
def test_what_is_not_the_record_is_refused_with_the_reason(reply: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read(reply, Judged)


def test_the_reason_quotes_nothing_of_the_reply() -> None:
    with pytest.raises(Unreadable) as raised:
        read('{"reasons": "ORDERS", "sound": "ORDERS", "confidence": 1, "ORDERS": 1}', Judged)
    assert "ORDERS" not in str(raised.value)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_none_is_read_as_such(number: str) -> None:
    found = read(f'{{"reasons": [], "sound": true, "confidence": {number}}}', Judged).confidence
    assert not math.isfinite(found)


def test_half_a_character_does_not_reach_a_file_or_a_database() -> None:
    found = read('{"reasons": ["a\\ud800b", "\\ud83d\\ude00"], "sound": true, "confidence": "\\udfff"}', Judged)
    assert found.reasons == ["a\ufffdb", "\U0001f600"]
    found.model_dump_json().encode("utf-8")


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_around_the_record_leaves_it_as_it_is(before: str, after: str) -> None:
    if any(f'"{name}"' in after for name in GOOD):
        return
    assert read(f"{before}\n{TEXT}\n{after}", Judged).model_dump() == GOOD or "{" in before
