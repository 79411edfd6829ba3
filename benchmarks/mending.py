"""How many damaged replies BAML's parser mends, and whether any is mended into what was not
written.

    pip install '.[baml]' pytest hypothesis
    PYTHONPATH=. python benchmarks/mending.py [--replies 4000] [--seed 1]

Replies to all prompts, damaged at random places: in their form alone, where whatever is read has to
be equal to what was damaged; and anywhere, where texts may differ by the damage but no item may be
lost or gained. What strict reading takes is not counted as mended. The figures of
docs/frameworks.md.
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
from tests.integrations.with_baml import test_baml_rescues as made

FORM = ("drop", "double", *',"}]:{[')
ANYWHERE = ("drop", "double", "quote", "comma", "cut", "python", "newline", "brace")


def main() -> None:
    """Damage, read, count, print."""
    parser = argparse.ArgumentParser(description="How many damaged replies are mended.")
    parser.add_argument("--replies", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    for name, kinds in (("in their form", FORM), ("anywhere", ANYWHERE)):
        counts: Counter[str] = Counter()
        for _ in range(given.replies):
            counts[outcome(draw, kinds)] += 1
        print(f"{given.replies:,} replies damaged {name}: {dict(sorted(counts.items()))}")


def outcome(draw: random.Random, kinds: tuple[str, ...]) -> str:
    """One damaged reply: read strictly, mended rightly or wrongly, or refused."""
    role = draw.choice(made.ROLES)
    value, shape = made.tame(made.FULL[role]), made.SHAPE[role]
    damages = [
        (draw.choice(kinds), draw.randrange(10_000)) for _ in range(draw.choice((1, 1, 2, 3)))
    ]
    damage = damaged_in_form if kinds is FORM else damaged
    text = damage(json.dumps(value, indent=draw.choice((None, 2))), damages)
    if strictly(text, shape) is not None:
        return "read strictly"
    found = repair_record(text, shape)
    if found is None:
        return "refused"
    if kinds is FORM:
        as_written = said(shape.model_validate(found.value).model_dump()) == said(value)
    else:
        as_written = outline(found.value) == outline(value)
    return "mended" if as_written else "MENDED WRONGLY"


def damaged_in_form(text: str, damages: list[tuple[str, int]]) -> str:
    """The text with signs of the form dropped, doubled or added, and nothing done to what stands in
    quotes.
    """
    for kind, where in damages:
        # what is put before a closing quote would be in the text
        changes = kind in ("drop", "double")
        inside = (
            (found.start() + 1, found.end() - changes)
            for found in re.finditer(r'"(?:[^"\\]|\\.)*"', text)
        )
        quoted = {at for start, end in inside for at in range(start, end)}
        places = [
            at
            for at in range(len(text))
            if at not in quoted and (not changes or text[at] in ',"}]:{[')
        ]
        if not places:
            return text
        at = places[where % len(places)]
        text = (
            text[:at]
            + {"drop": "", "double": text[at] * 2}.get(kind, kind + text[at])
            + text[at + 1 :]
        )
    return text


def damaged(text: str, damages: list[tuple[str, int]]) -> str:
    """The text with changes anywhere, texts included."""
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


def strictly(text: str, shape: type[BaseModel]) -> BaseModel | None:
    """What strict reading takes it for, if it takes it."""
    try:
        return parse_reply(text, shape)
    except UnreadableReply:
        return None


def said(value: Any) -> Any:
    """What a record says: a sign of the form that went into a text or around a number is in the
    text as written.
    """
    if isinstance(value, dict):
        return {key: said(each) for key, each in value.items()}
    if isinstance(value, list):
        return [said(each) for each in value]
    if isinstance(value, str):
        text = value.strip()
        return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else text
    return value


def outline(value: Any) -> Any:
    """A record without its texts: what it holds, how many of it, every verdict and, but for a digit
    hit, score.
    """
    if isinstance(value, dict):
        return {re.sub(r"\W", "", key).lower()[:3]: outline(each) for key, each in value.items()}
    if isinstance(value, list):
        return [outline(each) for each in value]
    return (
        type(value).__name__
        if not isinstance(value, int | float) or isinstance(value, bool)
        else "number"
    )


if __name__ == "__main__":
    main()
