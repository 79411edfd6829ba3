"""Check that reading time grows linearly with text length, on hostile texts at two lengths.

    python benchmarks/hostile_texts.py [--characters 40000] [READER ...]

Every parser of external text gets adversarial texts, each of which repeats one unit. The benchmark
compares the CPU time for a text with that for a quarter of it, in the same run: a ratio of 4 is
linear, 16 is quadratic. Prints the worst unit of each reader. Exits 1 if the ratio of one is above
the limit.
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
MAX_GROWTH = 10.0
"""Maximum ratio of the CPU time for a text to that for a quarter of it."""
MIN_SECONDS = 0.03
"""Texts that take less CPU time than this at full length are too fast to compare."""
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


def parse_as_critique(text: str) -> None:
    """Parse a model's reply that isn't valid."""
    with suppress(UnreadableReply, MasisError):
        parse_reply(text, CritiqueReply)


def find_near_quote(text: str) -> None:
    """Look for a quote that differs from the text in one character."""
    locate_quote(f"{text}x", f"{text}y")


def recognise_design(text: str) -> None:
    """Recognise the design of a study from a hostile abstract."""
    recognise(Abstract(id="1", title=text[:500], text=text))


READERS: dict[str, Callable[[str], object]] = {
    "sentences": split_sentences,
    "citations": partial(audit_citations, evidence=EVIDENCE),
    "quotes": find_near_quote,
    "tokens": tokens,
    "facts": extract,
    "replies": parse_as_critique,
    "fences": disarm,
    "errors of providers": scrub_error,
    "pasted evidence": read_pasted,
    "settings shown": safe_value,
    "study designs": recognise_design,
    "sample sizes": sample_sizes,
}


class Growth(NamedTuple):
    """The time for a full text, and its ratio to the time for a quarter of the text."""

    factor: float
    seconds: float
    unit: str


def measure_seconds(reader: Callable[[str], object], text: str) -> float:
    """Return the CPU time to read the text once, the minimum of two tries."""
    times = []
    for _ in range(2):
        started = time.process_time()
        reader(text)
        times.append(time.process_time() - started)
    return min(times)


def measure_growth(reader: Callable[[str], object], unit: str, characters: int) -> Growth:
    """Compare the time for a text of this length with that for a quarter of it."""
    text = (unit * (characters // len(unit) + 1))[:characters]
    full = measure_seconds(reader, text)
    if full < MIN_SECONDS:
        return Growth(0.0, full, unit)
    return Growth(
        full / max(measure_seconds(reader, text[: characters // FACTOR]), 1e-6), full, unit
    )


def main() -> int:
    """Run the benchmark; return 1 if time grows too fast."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--characters", type=int, default=40_000)
    parser.add_argument("readers", nargs="*", metavar="READER", help=", ".join(READERS))
    options = parser.parse_args()
    failures = 0
    print(f"{'reader':26}{'worst growth':>14}{'unit':>18}{'slowest':>12}{'unit':>18}")
    for name in options.readers or READERS:
        growths = [measure_growth(READERS[name], unit, options.characters) for unit in UNITS]
        worst, slowest = max(growths), max(growths, key=lambda growth: growth.seconds)
        failures += worst.factor > MAX_GROWTH
        grown = f"{worst.factor:.1f} times" if worst.factor else "too fast"
        print(
            f"{name:26}{grown:>14}{worst.unit!r:>18}{slowest.seconds:>10.2f} s{slowest.unit!r:>18}",
            flush=True,
        )
    print(
        f"Limit: {MAX_GROWTH:.0f} times as long for {FACTOR} times the text."
        f" Readers above it: {failures}."
    )
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
