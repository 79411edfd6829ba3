"""Count the damaged replies that BAML's parser repairs, and check that none is repaired wrongly.

    pip install '.[baml]' pytest hypothesis
    PYTHONPATH=. python benchmarks/mending.py [--replies 4000] [--seed 1]

Damages replies to all prompts at random places. Damage to the JSON structure alone must be undone
exactly. Damage anywhere may change texts, but must not lose or add an item. A reply that the strict
parser accepts doesn't count as repaired. docs/frameworks.md states the figures.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from typing import Any

from pydantic import BaseModel

from masis.integrations.baml import repair_record
from masis.llm.client.reply_parsing import UnreadableReply, parse_reply
from tests.integrations.with_baml import test_baml_rescues as replies

STRUCTURE = ("drop", "double", *',"}]:{[')
ANYWHERE = ("drop", "double", "quote", "comma", "cut", "python", "newline", "brace")


def main() -> None:
    """Damage replies, parse them, and print the counts."""
    parser = argparse.ArgumentParser(description="Count the damaged replies that BAML repairs.")
    parser.add_argument("--replies", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    draw = random.Random(args.seed)
    for name, kinds in (("in their structure", STRUCTURE), ("anywhere", ANYWHERE)):
        counts: Counter[str] = Counter()
        for _ in range(args.replies):
            counts[try_damaged_reply(draw, kinds)] += 1
        print(f"{args.replies:,} replies damaged {name}: {dict(sorted(counts.items()))}")


def try_damaged_reply(draw: random.Random, kinds: tuple[str, ...]) -> str:
    """Damage one reply and return whether it is parsed strictly, repaired, or rejected."""
    role = draw.choice(replies.ROLES)
    value, shape = replies.tame(replies.FULL[role]), replies.SHAPE[role]
    damages = [
        (draw.choice(kinds), draw.randrange(10_000)) for _ in range(draw.choice((1, 1, 2, 3)))
    ]
    damage = damage_structure if kinds is STRUCTURE else damage_text
    text = damage(json.dumps(value, indent=draw.choice((None, 2))), damages)
    if parse_strictly(text, shape) is not None:
        return "parsed strictly"
    repaired = repair_record(text, shape)
    if repaired is None:
        return "rejected"
    if kinds is STRUCTURE:
        is_correct = normalize(shape.model_validate(repaired.value).model_dump()) == normalize(
            value
        )
    else:
        is_correct = outline(repaired.value) == outline(value)
    return "repaired" if is_correct else "REPAIRED WRONGLY"


def damage_structure(text: str, damages: list[tuple[str, int]]) -> str:
    """Drop, double or add structural characters of JSON text, but none inside strings."""
    for kind, number in damages:
        # a character inserted before a closing quote would be inside the string
        changes = kind in ("drop", "double")
        inside = (
            (match.start() + 1, match.end() - changes)
            for match in re.finditer(r'"(?:[^"\\]|\\.)*"', text)
        )
        quoted = {position for start, end in inside for position in range(start, end)}
        places = [
            position
            for position in range(len(text))
            if position not in quoted and (not changes or text[position] in ',"}]:{[')
        ]
        if not places:
            return text
        position = places[number % len(places)]
        text = (
            text[:position]
            + {"drop": "", "double": text[position] * 2}.get(kind, kind + text[position])
            + text[position + 1 :]
        )
    return text


def damage_text(text: str, damages: list[tuple[str, int]]) -> str:
    """Change the JSON text anywhere, inside strings too."""
    for kind, number in damages:
        position = number % max(1, len(text))
        match kind:
            case "drop":
                text = text[:position] + text[position + 1 :]
            case "double":
                text = text[:position] + text[position : position + 1] + text[position:]
            case "quote":
                text = text[:position] + '"' + text[position:]
            case "comma":
                text = text[:position] + "," + text[position:]
            case "cut":
                text = text[:position]
            case "python":
                text = text.replace('"', "'").replace("true", "True")
            case "newline":
                text = text[:position] + "\n" + text[position:]
            case "brace":
                text = text[:position] + "}" + text[position:]
    return text


def parse_strictly(text: str, shape: type[BaseModel]) -> BaseModel | None:
    """Return the reply that the strict parser reads, or None if it rejects the text."""
    try:
        return parse_reply(text, shape)
    except UnreadableReply:
        return None


def normalize(value: Any) -> Any:
    """Strip strings and turn numeric strings into numbers, so that equal records compare equal."""
    if isinstance(value, dict):
        return {key: normalize(member) for key, member in value.items()}
    if isinstance(value, list):
        return [normalize(item) for item in value]
    if isinstance(value, str):
        text = value.strip()
        return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else text
    return value


def outline(value: Any) -> Any:
    """Return a record with every value replaced by its type, to compare keys and list lengths."""
    if isinstance(value, dict):
        return {
            re.sub(r"\W", "", key).lower()[:3]: outline(member) for key, member in value.items()
        }
    if isinstance(value, list):
        return [outline(item) for item in value]
    return (
        type(value).__name__
        if not isinstance(value, int | float) or isinstance(value, bool)
        else "number"
    )


if __name__ == "__main__":
    main()
