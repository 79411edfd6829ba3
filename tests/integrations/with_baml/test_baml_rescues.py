"""Malformed replies of every kind, for every role: what strict reading reads, what BAML's parser rescues, and that
nothing is ever read that was not written.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from masis.integrations.baml import DEEPEST, LONGEST, MOST_BRACKETS, rescued
from masis.llm.client import shared_schema
from masis.llm.client.reply_parsing import Unreadable, read
from masis.llm.roles import replies
from tests.llm.canned import ALL, PROMPT_OF, critique, listed, raised, revision, verdict

SHAPE: dict[str, type[BaseModel]] = {prompt: shape for shape, prompt in PROMPT_OF.items()}
WORDS = 'The bridge, "Old Jim", is 120 metres long {see [chunk_1]}: it\'s steel; 5 > 3.\nSo they say.'
FULL: dict[str, dict[str, Any]] = {
    **ALL,
    "claims_extract": {"claims": [listed(1, 1, WORDS, "It is long."), listed(2, 2, "b", "c")]},
    "completeness": {"missing": [{"description": WORDS, "evidence_id": "", "quote": "1931", "importance": 0.5}]},
    "claims_verify": {"verdicts": [verdict(1, reasoning=WORDS), verdict(2, support=0, reasoning="No length.")]},
    "critic": critique(
        critique_reasoning=WORDS,
        issues=[raised(), raised(severity="low", location="")],
        conflicting_evidence=["one", "two"],
        hallucination_detected=True,
    ),
    "reviser": revision(
        WORDS,
        changes=[{"issue_ids": ["i1", "i2"], "kind": "corrected", "before": "100", "after": "120", "why": WORDS}],
    ),
}
TAME = re.compile(r"[\w .,\[\]-]*\Z")
Malformed = Callable[[dict[str, Any]], str]


def tame(value: Any) -> Any:
    """The value with texts that hold no sign of the form: kinds that need such ones can't be written otherwise."""
    if isinstance(value, str):
        return value if TAME.match(value) else "The bridge is 120 metres long [chunk_1]."
    if isinstance(value, list):
        return [tame(each) for each in value]
    return {key: tame(each) for key, each in value.items()} if isinstance(value, dict) else value


def pretty(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def python(value: dict[str, Any]) -> str:
    return repr(value)


def words_of_python(value: dict[str, Any]) -> str:
    text = json.dumps(value)
    return re.sub(
        r"(?<=: )(true|false|null)\b", lambda m: {"true": "True", "false": "False", "null": "None"}[m[1]], text
    )


RESCUABLE: dict[str, Malformed] = {
    "a comma before the last brace": lambda v: pretty(v)[:-2] + ",\n}",
    "a comma before every brace": lambda v: re.sub(r"(?<=[^\[{\s])(\s*\n\s*[}\]])", r",\1", pretty(v)),
    "quotes of Python": lambda v: python(tame(v)),
    "words of Python": words_of_python,
    "names without quotes": lambda v: re.sub(r'^(\s*)"(\w+)":', r"\1\2:", pretty(v), flags=re.MULTILINE),
    "a comment on each line": lambda v: re.sub(r",\n", ", // so it is\n", pretty(tame(v))),
    "a comment at the top": lambda v: "/* my verdict */ " + pretty(v)[:-2] + ",\n}",
    "line breaks in texts": lambda v: json.dumps(v).replace("\\n", "\n"),
    "a fence, prose, a comma": lambda v: f"Sure! Here:\n```json\n{pretty(v)[:-2]},\n}}\n```\nIs it {{good}}?",
    "thoughts before": lambda v: f"<think>Is it {{so}}?</think>\n{words_of_python(v)[:-1]},}}",
    "names in capitals": lambda v: re.sub(r'"(\w)(\w+)": ', lambda m: f'"{m[1].upper()}{m[2]}": ', json.dumps(v)),
}
HOPELESS: dict[str, Malformed] = {
    "cut off at a third": lambda v: json.dumps(v)[: len(json.dumps(v)) // 3],
    "cut off at a half": lambda v: json.dumps(v)[: len(json.dumps(v)) // 2],
    "cut off near the end": lambda v: json.dumps(v)[:-7],
    "cut off and fenced": lambda v: f"```json\n{pretty(v)[: len(pretty(v)) * 2 // 3]}\n```",
    "cut off in Python": lambda v: python(tame(v))[:-9],
    "one field missing": lambda v: json.dumps(dict(list(v.items())[1:]) or {"x": 1})[:-1] + ",}",
    "a field named twice": lambda v: json.dumps(v)[:-1] + f', "{next(iter(v))}": [1],}}',
    "two records": lambda v: f"{json.dumps(v)[:-1]},}}\n{json.dumps(v)[:-1]},}}",
    "quoted in another": lambda v: (
        json.dumps({"note": "x"})[:-1] + ', "quoted": ' + python(tame(v)) + ', "issues": 1,}'
    ),
    "dots in a list": lambda v: re.sub(r"\[(?=[{\"])", "[..., ", json.dumps(v), count=1)[:-1] + ",}",
    "a list that is never opened": lambda v: json.dumps(v).replace("[{", "{", 1)[:-1] + ",}",
    "no JSON": lambda v: "I would rather say it in words: all is well.",
    "empty": lambda v: "",
}
LISTS = ("dots in a list", "a list that is never opened")
ROLES = sorted(FULL)


def strictly(text: str, shape: type[BaseModel]) -> BaseModel | None:
    try:
        return read(text, shape)
    except Unreadable:
        return None


def by_baml(text: str, shape: type[BaseModel]) -> BaseModel | None:
    found = rescued(text, shape)
    return None if found is None else shape.model_validate(found.value)


@pytest.mark.spec("REQ-CRITIC-028")
@pytest.mark.parametrize("kind", RESCUABLE)
@pytest.mark.parametrize("role", ROLES)
def test_a_malformed_reply_is_rescued_with_the_values_that_were_written(role: str, kind: str) -> None:
    shape, value = SHAPE[role], FULL[role]
    text = RESCUABLE[kind](value)
    meant = tame(value) if kind in ("quotes of Python", "a comment on each line") else value
    found = rescued(text, shape)
    assert found is not None
    assert shape.model_validate(found.value) == shape.model_validate(meant)
    assert found.repairs


@pytest.mark.spec("REQ-CRITIC-028")
@pytest.mark.parametrize("kind", HOPELESS)
@pytest.mark.parametrize("role", ROLES)
def test_what_is_cut_off_or_not_certain_is_never_made_whole(role: str, kind: str) -> None:
    text = HOPELESS[kind](FULL[role])
    if kind in LISTS and text == json.dumps(FULL[role])[:-1] + ",}":
        return  # there is no such list in it
    assert rescued(text, SHAPE[role]) is None


@pytest.mark.parametrize("role", ROLES)
def test_a_reply_cut_off_anywhere_yields_the_whole_record_or_none(role: str) -> None:
    for text in (json.dumps(FULL[role]), pretty(FULL[role]), python(tame(FULL[role]))):
        whole = SHAPE[role].model_validate(tame(FULL[role]) if "'" in text[:3] else FULL[role])
        for cut in range(0, len(text), 23):
            found = by_baml(text[:cut], SHAPE[role])
            assert found is None or found == whole, text[:cut]


def test_how_many_kinds_each_way_reads() -> None:
    """The figures of docs/baml.md."""
    counts: Counter[str] = Counter()
    for role in ROLES:
        for kinds in (RESCUABLE, HOPELESS):
            for make in kinds.values():
                text = make(FULL[role])
                counts["all"] += 1
                counts["strict"] += strictly(text, SHAPE[role]) is not None
                counts["baml"] += by_baml(text, SHAPE[role]) is not None
    assert counts["baml"] >= len(RESCUABLE) * len(ROLES)
    assert counts["strict"] <= 10


DAMAGES = st.lists(
    st.tuples(
        st.sampled_from(["drop", "double", "quote", "comma", "cut", "python", "newline", "brace"]),
        st.integers(0, 10_000),
    ),
    min_size=1,
    max_size=3,
)


def damaged(text: str, damages: list[tuple[str, int]]) -> str:
    for kind, where in damages:
        at = where % max(1, len(text))
        match kind:
            case "drop":
                text = text[:at] + text[at + 1 :]
            case "double":
                text = text[:at] + text[at : at + 1] + text[at:]
            case "quote":
                text = text[:at] + '"' + text[at:]
            case "comma":
                text = text[:at] + "," + text[at:]
            case "cut":
                text = text[:at]
            case "python":
                text = text.replace('"', "'").replace("true", "True")
            case "newline":
                text = text[:at] + "\n" + text[at:]
            case "brace":
                text = text[:at] + "}" + text[at:]
    return text


@given(st.sampled_from(ROLES), DAMAGES)
def test_whatever_is_damaged_no_list_loses_or_gains_an_item_and_no_score_changes(
    role: str, damages: list[tuple[str, int]]
) -> None:
    value = tame(FULL[role])
    text = damaged(json.dumps(value), damages)
    found = rescued(text, SHAPE[role])
    if found is None:
        return
    assert outline(found.value) == outline(value), (text, found)
    signs = set("".join(kind for kind, _ in damages))
    assert signs  # a text in it may have got the sign that was put into it; its form has not


FORM = st.lists(
    st.tuples(st.sampled_from(["drop", "double", *',"}]:{[']), st.integers(0, 10_000)), min_size=1, max_size=3
)


def damaged_in_form(text: str, damages: list[tuple[str, int]]) -> str:
    """The text with signs of the form dropped, doubled or added, and nothing done to what stands in quotes."""
    for kind, where in damages:
        changes = kind in ("drop", "double")  # what is put before a closing quote would be in the text
        inside = ((found.start() + 1, found.end() - changes) for found in re.finditer(r'"(?:[^"\\]|\\.)*"', text))
        quoted = {at for start, end in inside for at in range(start, end)}
        places = [at for at in range(len(text)) if at not in quoted and (not changes or text[at] in ',"}]:{[')]
        if not places:
            return text
        at = places[where % len(places)]
        text = text[:at] + {"drop": "", "double": text[at] * 2}.get(kind, kind + text[at]) + text[at + 1 :]
    return text


@given(st.sampled_from(ROLES), FORM, st.sampled_from([None, 2]))
def test_whatever_is_damaged_in_the_form_what_is_read_is_what_stood_there(
    role: str, damages: list[tuple[str, int]], indent: int | None
) -> None:
    text = damaged_in_form(json.dumps(tame(FULL[role]), indent=indent), damages)
    found = by_baml(text, SHAPE[role])
    assert found is None or said(found.model_dump()) == said(tame(FULL[role])), text


def said(value: Any) -> Any:
    """What a record says: a sign of the form that went into a text or around a number is in the text as written."""
    if isinstance(value, dict):
        return {key: said(each) for key, each in value.items()}
    if isinstance(value, list):
        return [said(each) for each in value]
    if isinstance(value, str):
        text = value.strip()
        return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else text
    return value


def outline(value: Any) -> Any:
    """A record without its texts: what it holds, how many of it, every verdict and, but for a digit hit, score."""
    if isinstance(value, dict):
        return {re.sub(r"\W", "", key).lower()[:3]: outline(each) for key, each in value.items()}
    if isinstance(value, list):
        return [outline(each) for each in value]
    return type(value).__name__ if not isinstance(value, int | float) or isinstance(value, bool) else "number"


@pytest.mark.parametrize("role", ["critic", "reviser", "evaluator", "claims_verify", "completeness"])
def test_the_common_form_is_read_too(role: str) -> None:
    shape = shared_schema.holding(SHAPE[role])
    field = next(iter(shape.model_fields))
    found = rescued(json.dumps({field: FULL[role]})[:-1] + ",}", shape)
    assert found is not None
    assert shared_schema.held(shape.model_validate(found.value), SHAPE[role]) == SHAPE[role].model_validate(FULL[role])


def test_numbers_in_quotes_and_one_in_place_of_a_list_are_aligned_and_said() -> None:
    text = json.dumps(critique(conflicting_evidence="one", issues=raised()))[:-1] + ",}"
    found = rescued(text, replies.CritiqueReply)
    assert found is not None
    assert found.value["conflicting_evidence"] == ["one"]
    assert len(found.value["issues"]) == 1
    assert "one value in place of a list" in found.repairs


@pytest.mark.parametrize("word", ["very high", "grave", "HIGH!"])
def test_a_word_outside_a_closed_set_is_not_bent_into_one(word: str) -> None:
    text = json.dumps(critique(issues=[raised(severity=word)]))[:-1] + ",}"
    assert rescued(text, replies.CritiqueReply) is None


def test_a_planted_record_in_a_quote_does_not_count() -> None:
    planted = python(tame(critique(confidence=1.0)))
    own = critique(confidence=0.2, hallucination_detected=True)
    for text in (
        f"The answer says {planted}. I say {json.dumps(own)[:-1]},}}",
        json.dumps(own)[:-1] + f", 'note': {planted},}}",
        json.dumps(own).replace('"Every', '"It says ' + planted + " Every", 1)[:-1] + ",}",
    ):
        found = by_baml(text, replies.CritiqueReply)
        assert found is None or found.confidence == 0.2  # type: ignore[attr-defined]


HOSTILE = {
    "deep lists": "[" * 100_000,
    "deep objects": '{"critique_reasoning": ' * 20_000,
    "deep in a field": '{"critique_reasoning": ' + '{"a":' * 20_000,
    "many objects": '{"issues": [' + '{"type": "a", "severity": "b"},' * 3_000 + "],}",
    "many quotes": '{"issues": ' + '"' * 90_000 + "}",
    "many commas": '{"critique_reasoning": "' + ", " * 45_000 + "}",
    "many escapes": '{"critique_reasoning": "' + '\\"' * 45_000 + "}",
    "comments": '{"critique_reasoning": ' + "//" * 45_000 + "}",
    "open comments": '{"critique_reasoning": ' + "/*" * 45_000 + "}",
    "braces behind": '{"critique_reasoning": "x"' + "}" * 90_000,
    "too long": '{"critique_reasoning": "' + "x" * (LONGEST + 1) + '",}',
    "at the limit": '{"critique_reasoning": ' + "[" * (DEEPEST - 1) + "{}," * (MOST_BRACKETS // 2 - DEEPEST),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_replies_of_a_hundred_thousand_characters_do_no_harm(name: str) -> None:
    """In a process of their own: BAML's parser would take it with it, or keep it for minutes."""
    script = (
        "import sys; from masis.integrations.baml import rescued; "
        "from masis.llm.roles.replies import CritiqueReply\n"
        "rescued('{}', CritiqueReply); text = sys.stdin.read()\n"
        "assert rescued(text, CritiqueReply) is None"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=HOSTILE[name], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-500:]


def test_any_text_is_no_danger() -> None:
    @given(st.text(max_size=300))
    def tried(text: str) -> None:
        rescued('{"critique_reasoning": ' + text, replies.CritiqueReply)

    tried()


def test_threads_read_side_by_side() -> None:
    texts = [json.dumps(critique(confidence=n / 100))[:-1] + ",}" for n in range(100)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: by_baml(text, replies.CritiqueReply), texts))
    assert [each and each.confidence for each in found] == [n / 100 for n in range(100)]  # type: ignore[attr-defined]


def test_a_rescue_takes_little_time() -> None:
    text = pretty(FULL["claims_verify"] | {"verdicts": FULL["claims_verify"]["verdicts"] * 8})[:-2] + ",\n}"
    by_baml(text, replies.VerdictsReply)
    assert by_baml(text, replies.VerdictsReply) is not None


class Odd(BaseModel):
    """A form with fields that BAML can't name, and values of any kind."""

    model_config = {"populate_by_name": True}
    table: dict[str, int]
    anything: Any
    either: int | str | None
    nested: list[list[str]]


def test_a_teams_own_form_of_any_kind_is_read() -> None:
    value = {"table": {"a": 1}, "anything": {"b": [1, None]}, "either": "x", "nested": [["a"], ["b", "c"]]}
    assert by_baml(json.dumps(value)[:-1] + ",}", Odd) == Odd.model_validate(value)
