"""How many damaged replies BAML's parser mends, and whether any is mended into what was not written.

    pip install '.[baml]' pytest hypothesis
    PYTHONPATH=. python benchmarks/mending.py [--replies 4000] [--seed 1]

Replies to all prompts, damaged at random places: in their form alone, where whatever is read has to be equal to what
was damaged; and anywhere, where texts may differ by the damage but no item may be lost or gained. What strict reading
takes is not counted as mended. The figures of docs/baml.md.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter

from masis.integrations.baml import rescued
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
    damages = [(draw.choice(kinds), draw.randrange(10_000)) for _ in range(draw.choice((1, 1, 2, 3)))]
    damage = made.damaged_in_form if kinds is FORM else made.damaged
    text = damage(json.dumps(value, indent=draw.choice((None, 2))), damages)
    if made.strictly(text, shape) is not None:
        return "read strictly"
    found = rescued(text, shape)
    if found is None:
        return "refused"
    if kinds is FORM:
        as_written = made.said(shape.model_validate(found.value).model_dump()) == made.said(value)
    else:
        as_written = made.outline(found.value) == made.outline(value)
    return "mended" if as_written else "MENDED WRONGLY"


if __name__ == "__main__":
    main()
