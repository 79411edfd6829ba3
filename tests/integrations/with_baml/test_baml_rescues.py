"""Malformed replies of every kind, for every role: what strict reading reads, what BAML's parser
rescues, and that nothing is ever read that was not written.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from masis.integrations.baml import DEEPEST, LONGEST, MOST_BRACKETS, repair_record
from masis.llm.client import shared_schema
from masis.llm.roles import replies
from tests.llm.canned import (
    ALL,
    PROMPT_OF,
    critic_issue,
    critique,
    listed_claim,
    revision,
    verdict,
)

SHAPE: dict[str, type[BaseModel]] = {prompt: shape for shape, prompt in PROMPT_OF.items()}
WORDS = (
    'The bridge, "Old Jim", is 120 metres long {see [chunk_1]}: it\'s steel; 5 > 3.\nSo they say.'
)
FULL: dict[str, dict[str, Any]] = {
    **ALL,
    "claims_extract": {
        "claims": [listed_claim(1, WORDS, "It is long."), listed_claim(2, "b", "c")]
    },
    "completeness": {
        "missing": [{"description": WORDS, "evidence_id": "", "quote": "1931", "importance": 0.5}]
    },
    "claims_verify": {
        "verdicts": [
            verdict(1, reasoning=WORDS),
            verdict(2, verdict="unsupported", reasoning="No length."),
        ]
    },
    "critic": critique(
        critique_reasoning=WORDS,
        issues=[critic_issue(), critic_issue(severity="low", location="")],
        conflicting_evidence=["one", "two"],
    ),
    "reviser": revision(
        WORDS,
        changes=[
            {
                "issue_ids": ["i1", "i2"],
                "kind": "corrected",
                "before": "100",
                "after": "120",
                "why": WORDS,
            }
        ],
    ),
}
TAME = re.compile(r"[\w .,\[\]-]*\Z")
Malformed = Callable[[dict[str, Any]], str]


def tame(value: Any) -> Any:
    """The value with texts that hold no sign of the form: kinds that need such ones can't be
    written otherwise.
    """
    if isinstance(value, str):
        return value if TAME.match(value) else "The bridge is 120 metres long [chunk_1]."
    if isinstance(value, list):
        return [tame(item) for item in value]
    return {key: tame(item) for key, item in value.items()} if isinstance(value, dict) else value


def pretty(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def words_of_python(value: dict[str, Any]) -> str:
    words = {"true": "True", "false": "False", "null": "None"}
    return re.sub(r"(?<=: )(true|false|null)\b", lambda found: words[found[1]], json.dumps(value))


def without_a_field(value: dict[str, Any]) -> dict[str, Any]:
    """The record without the first field that it may not lack."""
    shape = next(
        model
        for model in SHAPE.values()
        if model.model_json_schema()["properties"].keys() == value.keys()
    )
    asked = next(name for name, field in shape.model_fields.items() if field.is_required())
    return {name: held for name, held in value.items() if name != asked} or {"x": 1}


RESCUABLE: dict[str, Malformed] = {
    "a comma before the last brace": lambda v: pretty(v)[:-2] + ",\n}",
    "a comma before every brace": lambda v: re.sub(
        r"(?<=[^\[{\s])(\s*\n\s*[}\]])", r",\1", pretty(v)
    ),
    "quotes of Python": lambda v: repr(tame(v)),
    "words of Python": words_of_python,
    "names without quotes": lambda v: re.sub(
        r'^(\s*)"(\w+)":', r"\1\2:", pretty(v), flags=re.MULTILINE
    ),
    "a comment on each line": lambda v: re.sub(r",\n", ", // so it is\n", pretty(tame(v))),
    "a comment at the top": lambda v: "/* my verdict */ " + pretty(v)[:-2] + ",\n}",
    "line breaks in texts": lambda v: json.dumps(v).replace("\\n", "\n"),
    "a fence, prose, a comma": lambda v: (
        f"Sure! Here:\n```json\n{pretty(v)[:-2]},\n}}\n```\nIs it {{good}}?"
    ),
    "thoughts before": lambda v: f"<think>Is it {{so}}?</think>\n{words_of_python(v)[:-1]},}}",
    "names in capitals": lambda v: re.sub(
        r'"(\w)(\w+)": ', lambda m: f'"{m[1].upper()}{m[2]}": ', json.dumps(v)
    ),
}
HOPELESS: dict[str, Malformed] = {
    "cut off at a third": lambda v: json.dumps(v)[: len(json.dumps(v)) // 3],
    "cut off at a half": lambda v: json.dumps(v)[: len(json.dumps(v)) // 2],
    "cut off near the end": lambda v: json.dumps(v)[:-7],
    "cut off and fenced": lambda v: f"```json\n{pretty(v)[: len(pretty(v)) * 2 // 3]}\n```",
    "cut off in Python": lambda v: repr(tame(v))[:-9],
    "one field missing": lambda v: json.dumps(without_a_field(v))[:-1] + ",}",
    "a field named twice": lambda v: json.dumps(v)[:-1] + f', "{next(iter(v))}": [1],}}',
    "two records": lambda v: f"{json.dumps(v)[:-1]},}}\n{json.dumps(v)[:-1]},}}",
    "quoted in another": (
        lambda v: (
            json.dumps({"note": "x"})[:-1] + ', "quoted": ' + repr(tame(v)) + ', "issues": 1,}'
        )
    ),
    "dots in a list": (
        lambda v: re.sub(r"\[(?=[{\"])", "[..., ", json.dumps(v), count=1)[:-1] + ",}"
    ),
    "a list that is never opened": lambda v: json.dumps(v).replace("[{", "{", 1)[:-1] + ",}",
    "no JSON": lambda v: "I would rather say it in words: all is well.",
    "empty": lambda v: "",
}
LISTS = ("dots in a list", "a list that is never opened")
ROLES = sorted(FULL)


def by_baml(text: str, shape: type[BaseModel]) -> BaseModel | None:
    found = repair_record(text, shape)
    return None if found is None else shape.model_validate(found.value)


@pytest.mark.spec("REQ-CRITIC-028")
@pytest.mark.parametrize("kind", RESCUABLE)
@pytest.mark.parametrize("role", ROLES)
def test_a_malformed_reply_is_repaired_with_its_own_values(role: str, kind: str) -> None:
    shape, value = SHAPE[role], FULL[role]
    text = RESCUABLE[kind](value)
    meant = tame(value) if kind in ("quotes of Python", "a comment on each line") else value
    found = repair_record(text, shape)
    assert shape.model_validate(found.value) == shape.model_validate(meant)
    assert found.repairs


@pytest.mark.spec("REQ-CRITIC-028")
@pytest.mark.parametrize("kind", HOPELESS)
@pytest.mark.parametrize("role", ROLES)
def test_truncated_or_ambiguous_replies_arent_completed(role: str, kind: str) -> None:
    text = HOPELESS[kind](FULL[role])
    if kind in LISTS and text == json.dumps(FULL[role])[:-1] + ",}":
        return  # there is no such list in it
    assert repair_record(text, SHAPE[role]) is None


@pytest.mark.parametrize(
    "role", ["critic", "reviser", "evaluator", "claims_verify", "completeness"]
)
def test_the_shared_schema_is_read(role: str) -> None:
    shape = shared_schema.with_only_field_of(SHAPE[role])
    field = next(iter(shape.model_fields))
    found = repair_record(json.dumps({field: FULL[role]})[:-1] + ",}", shape)
    assert shared_schema.record_in_shared(shape.model_validate(found.value), SHAPE[role]) == SHAPE[
        role
    ].model_validate(FULL[role])


def test_quoted_numbers_and_scalars_for_lists_are_read() -> None:
    text = json.dumps(critique(conflicting_evidence="one", issues=critic_issue()))[:-1] + ",}"
    found = repair_record(text, replies.CritiqueReply)
    read = replies.CritiqueReply.model_validate(found.value)
    assert read.conflicting_evidence == ["one"]
    assert len(read.issues) == 1


@pytest.mark.parametrize("word", ["very high", "grave", "high?"])
def test_an_unknown_enum_value_isnt_coerced(word: str) -> None:
    text = json.dumps(critique(issues=[critic_issue(severity=word)]))[:-1] + ",}"
    assert repair_record(text, replies.CritiqueReply) is None


def test_a_record_inside_a_quotation_is_ignored() -> None:
    planted = repr(tame(critique(confidence=1.0)))
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
    "at the limit": (
        '{"critique_reasoning": ' + "[" * (DEEPEST - 1) + "{}," * (MOST_BRACKETS // 2 - DEEPEST)
    ),
}


def test_hostile_replies_of_100_000_characters_are_harmless() -> None:
    """In a process of their own: BAML's parser would take it with it, or keep it for minutes."""
    script = (
        "import json, sys; from masis.integrations.baml import repair_record; "
        "from masis.llm.roles.replies import CritiqueReply\n"
        "for name, text in json.load(sys.stdin).items():\n"
        "    print(name, flush=True)\n"
        "    assert repair_record(text, CritiqueReply) is None"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(HOSTILE), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-500:]
    assert done.stdout.splitlines() == list(HOSTILE)


class Odd(BaseModel):
    """A form with fields that BAML can't name, and values of any kind."""

    model_config = {"populate_by_name": True}
    table: dict[str, int]
    anything: Any
    either: int | str | None
    nested: list[list[str]]


def test_custom_models_of_any_kind_are_read() -> None:
    value = {
        "table": {"a": 1},
        "anything": {"b": [1, None]},
        "either": "x",
        "nested": [["a"], ["b", "c"]],
    }
    assert by_baml(json.dumps(value)[:-1] + ",}", Odd) == Odd.model_validate(value)
