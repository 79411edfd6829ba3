"""Whether time grows with the length of a text, or with its square: hostile texts at a quarter and
at full length.

    python benchmarks/hostile_texts.py [--characters 40000] [READER ...]

Everything that reads text from outside is given texts made to be hard: one unit, repeated. What is
compared is the processor time for a text with that for a quarter of it, in the same run: four times
as much is linear, sixteen times is quadratic. Prints the worst unit of each reader; exits 1 where
one grows by more than the limit.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from masis.audit.citations import audit_citations
from masis.audit.sentences import split_sentences
from masis.audit.text.quotes import locate_quote
from masis.datasets.readers.pasted import read_pasted
from masis.errors import MasisError
from masis.llm.client.reply_parsing import UnreadableReply, parse_reply
from masis.llm.providers.provider_errors import scrub_error
from masis.llm.roles.prompting import disarm
from masis.llm.roles.replies import CritiqueReply
from masis.offline.parsing.facts import extract
from masis.offline.text.tokens import tokens
from masis.schema.case import Evidence
from masis.schema.screening import Abstract
from masis.screening.grading.designs import recognise
from masis.screening.grading.sample_size import sample_sizes
from masis.settings.secrecy import safe_value

FACTOR = 4
MOST = 10.0
"""Times as much processor time as for a quarter of the text: linear is 4, quadratic 16."""
LEAST_S = 0.03
"""What takes less at full length is too short to be compared."""
UNITS = (
    *(
        "a",
        "a ",
        "a. ",
        ". ",
        "A. ",
        "[",
        "[a. ",
        "(",
        "( ",
        "`",
        "```\n",
        "\n",
        " ",
        "-\n",
        "1.",
        "1,",
        "1 ",
        "= ",
    ),
    *(
        "[1]",
        "[1-",
        "[1, ",
        "【1†",
        "[^1]:",
        "[a](",
        "http://",
        "www.",
        "sk-",
        "@",
        "{",
        '{"a":',
        '{"a":[',
        '"',
        "\\",
    ),
    *(
        "/*",
        "//\n",
        "<<<END ",
        "<|",
        "word ",
        "not ",
        "and the ",
        "by the X of Y ",
        "May ",
        "A of ",
        "twenty ",
        "$",
    ),
    *(
        "5 of 9 in 3 ",
        "more than 5 km, ",
        "n = 5 ",
        "one hundred ",
        "patients ",
        "é",
        "\u202e",
        "a = {",
        "[[a]]\n",
        "|",
    ),
)
EVIDENCE = (
    Evidence(id="1", text="The bridge is 120 metres long."),
    Evidence(id="u", source="https://a.b/c"),
)


def replied(text: str) -> None:
    """Read a model's reply, which is refused."""
    with suppress(UnreadableReply, MasisError):
        parse_reply(text, CritiqueReply)


def quoted(text: str) -> None:
    """Look for a quote that is nearly there."""
    locate_quote(f"{text}x", f"{text}y")


def designed(text: str) -> None:
    """Recognise the design of a study from a hostile abstract."""
    recognise(Abstract(id="1", title=text[:500], text=text))


READERS: dict[str, Callable[[str], object]] = {
    "sentences": split_sentences,
    "citations": partial(audit_citations, evidence=EVIDENCE),
    "quotes": quoted,
    "tokens": tokens,
    "facts": extract,
    "replies": replied,
    "fences": disarm,
    "errors of providers": scrub_error,
    "pasted evidence": read_pasted,
    "settings shown": safe_value,
    "study designs": designed,
    "sample sizes": sample_sizes,
}


class Growth(NamedTuple):
    """How much longer a full text takes than a quarter of it, and how long that is."""

    factor: float
    seconds: float
    unit: str


def seconds(reader: Callable[[str], object], text: str) -> float:
    """Processor time of one reading, the least of two."""
    taken = []
    for _ in range(2):
        began = time.process_time()
        reader(text)
        taken.append(time.process_time() - began)
    return min(taken)


def growth(reader: Callable[[str], object], unit: str, characters: int) -> Growth:
    """Compare a text of this length with a quarter of it."""
    text = (unit * (characters // len(unit) + 1))[:characters]
    full = seconds(reader, text)
    if full < LEAST_S:
        return Growth(0.0, full, unit)
    return Growth(full / max(seconds(reader, text[: characters // FACTOR]), 1e-6), full, unit)


def main() -> int:
    """Measure and print; 1 where time grows too fast."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--characters", type=int, default=40_000)
    parser.add_argument("readers", nargs="*", metavar="READER", help=", ".join(READERS))
    options = parser.parse_args()
    wrong = 0
    print(f"{'reader':26}{'worst growth':>14}{'unit':>18}{'slowest':>12}{'unit':>18}")
    for name in options.readers or READERS:
        found = [growth(READERS[name], unit, options.characters) for unit in UNITS]
        worst, slowest = max(found), max(found, key=lambda each: each.seconds)
        wrong += worst.factor > MOST
        grown = f"{worst.factor:.1f} times" if worst.factor else "too short"
        print(
            f"{name:26}{grown:>14}{worst.unit!r:>18}{slowest.seconds:>10.2f} s{slowest.unit!r:>18}",
            flush=True,
        )
    print(
        f"A text {FACTOR} times as long may take {MOST:.0f} times as long; {wrong} readers take"
        " longer."
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
