"""How many were studied: the sample sizes an abstract states, and the one the study rests on.

What counts as a sample size is the codebook of docs/sample-sizes.md. Numbers of units are found in ``sample_mentions``;
``sample_kinds`` decides which of them are sizes of the whole study (``total``), of a part of it (``arm``), or the
larger number a part is counted in (``of``), and which only count those who had an outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from masis.schema.screening import SampleSize
from masis.screening.numerals import Token, numerals, tokens_of
from masis.screening.sample_kinds import Counted, Kind, Reader
from masis.screening.sample_mentions import mentions
from masis.screening.sample_single import single
from masis.screening.sample_units import Family, family_of

__all__ = ["family_of", "sample_sizes", "study_size"]

READ = 20_000
"""How many characters of an abstract are read."""


def sample_sizes(text: str) -> tuple[SampleSize, ...]:
    """All sample sizes that an abstract states, in order; offsets are characters of ``text``."""
    return _read(text)[0]


def study_size(text: str) -> SampleSize | None:
    """The size that the study rests on; None where none is stated.

    The first total of people or animals that is not the rest of a greater one; else the studies of a review; else the
    largest arm or whole (``kind`` says so).
    """
    return _read(text)[1]


@lru_cache(maxsize=256)
def _read(text: str) -> tuple[tuple[SampleSize, ...], SampleSize | None]:
    """Both answers from one reading: who asks for one asks for the other of the same text."""
    text = text[:READ]
    tokens = tokens_of(text)
    found = mentions(tokens, numerals(tokens))
    counted = Reader(text, tokens).decide(found)
    one = single(text, tokens) if not _has_people(counted) else None
    if one:
        counted = (Counted(one, "total"), *counted)
    sizes = tuple(_size(item, tokens) for item in counted)
    rests = _rests_on(counted)
    return sizes, None if rests is None else _size(rests, tokens)


def _size(item: Counted, tokens: Sequence[Token]) -> SampleSize:
    mention = item.mention
    return SampleSize(
        value=mention.value,
        unit=mention.unit,
        arm=item.arm,
        kind=item.kind,
        start=tokens[mention.first].start,
        end=tokens[mention.after - 1].end,
    )


def _has_people(counted: Sequence[Counted]) -> bool:
    return any(item.kind != "of" and item.mention.family in ("people", "animals", None) for item in counted)


def _rests_on(counted: Sequence[Counted]) -> Counted | None:
    wanted: tuple[tuple[Kind, tuple[Family | None, ...]], ...] = (
        ("total", ("people", "animals", None)),
        ("total", ("studies",)),
        ("total", ("other",)),
        ("arm", ("people", "animals", None)),
        ("of", ("people", "animals", None)),
        ("arm", ("studies", "other")),
        ("of", ("studies", "other")),
    )
    for kind, among in wanted:
        held = [item for item in counted if item.kind == kind and item.mention.family in among]
        if held:
            return max(held, key=lambda item: item.mention.value)
    return None
