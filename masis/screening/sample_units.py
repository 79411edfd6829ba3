"""The units that studies count, and the phrase that stands behind a number: "consecutive stroke patients"."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

from masis.screening.numerals import Token

UNITS = Path(__file__).parent / "sample_units.txt"


Family = Literal["people", "animals", "studies", "other"]
_SINGULARS = frozenset(
    """patient man woman child boy girl infant adolescent male female person
    newborn neonate lady gentleman adult teenager baby toddler mother veteran""".split()
)
"""People in the singular whose plural is not one sign longer, or who stand alone in a report on one."""
_STOPS = frozenset(
    """of in with who were was to for from at the that which had is are as by on than versus vs between after before
    during without among per each under over including whose when while whom will have has been be did could would
    using received underwent completed but if then a an not only because within into through via against across aged
    having showed shows meeting undergoing receiving suffering treated although where since until about more less
    following according it they we this these those their its our his her both either can may might did does do
    nor so such there""".split()
)
MEASURES = frozenset(
    """mg g kg ml l dl mm cm m nm hz khz mhz db
    µg μg mcg ng pg iu u mmol µmol μmol nmol pmol mol mv ma w kda kb bp gy mmhg s
    sec secs second seconds min mins minute minutes h hr hrs hour hours day days week weeks wk wks month months mo year
    years yr yrs decade decades night nights time times point points percent percentage fold item items scale scales
    subscale subscales domain domains dimension dimensions factor factors group groups subgroup subgroups arm arms
    session sessions dose doses type types category categories site sites centers centres center centre country
    countries region regions area areas level levels step steps phase phases stage stages measure measures test tests
    task tasks question questions criteria theme themes questionnaire class classes degrees degree c cycles trial-days
    gene genes snps snp mutations variants loci exons regimen tablets methods models parameters variables approaches
    components modules lessons units db minutes/day sd se cfu rpm v t x °""".split()
)
"""Words directly behind a number of something else than units."""
_OLD = frozenset("year years yr yrs month months week weeks day days".split())
DASHES = frozenset("-–‐‑—")
"""Signs that join two words or numbers."""
_PHRASE = 9
"""How many tokens a number may be away from its unit."""


class Phrase(NamedTuple):
    """The unit behind a number: its word, its family, the token after it, and whether a percentage stands by it."""

    unit: str
    family: Family
    after: int
    share: bool


@cache
def families() -> dict[str, Family]:
    """The family of each unit, in the plural."""
    found: dict[str, Family] = {}
    for line in UNITS.read_text(encoding="utf-8").splitlines():
        name, _, words = line.partition(":")
        if name in get_args(Family):
            found.update(dict.fromkeys(words.split(), cast("Family", name)))
    return found


def family_of(unit: str) -> Family | None:
    """The family of a unit, in the singular or the plural; None where it is unknown."""
    lower = unit.lower()
    if lower in _SINGULARS:
        return "people"
    return families().get(lower) or families().get(f"{lower}s")


def tokens_lower(tokens: Sequence[Token], at: int) -> str:
    """The token at a place in lower case; empty outside the text."""
    return tokens[at].lower if 0 <= at < len(tokens) else ""


def phrase_after(tokens: Sequence[Token], at: int) -> Phrase | None:
    """The unit that the words from ``at`` on end in: "consecutive stroke patients"; None where they don't."""
    share, here, limit = False, at, at + _PHRASE
    best: Phrase | None = None
    commas = 0
    while here < min(len(tokens), limit):
        lower = tokens[here].lower
        if lower == "(":
            close = _closed(tokens, here)
            if best is not None or close is None:
                break
            share = share or any(token.lower == "%" for token in tokens[here:close])
            if not share and here == at:  # "5 (of) ...": a number with a remark that is no share
                return None
            limit += close - here
            here = close
            continue
        if old := _years_old(tokens, here):
            limit += old - here
            here = old
            if tokens[old - 1].lower == "olds":
                best = Phrase("year-olds", "people", old, share)
            continue
        if lower in _STOPS or (lower in MEASURES and here == at):
            break
        if lower in ",/" or lower in DASHES or lower in ("and", "or", "'", '"', "“", "”", "’"):
            commas += lower == ","
            if here == at or best is not None or commas > 1:
                break
            limit = min(limit, here + 3) if lower == "," else limit
            here += 2 if lower in DASHES and _joined(tokens, here) else 1
            continue
        if not lower[0].isalpha():
            break
        family = families().get(lower)
        if family:
            best = Phrase(lower, family, here + 1, share)
        elif best is not None:
            break
        here += 1
    if best and tokens_lower(tokens, best.after) == "(":
        close = _closed(tokens, best.after)
        inside = tokens[best.after : close] if close else ()
        if any(token.lower == "%" for token in inside[:6]):
            return best._replace(share=True)
    return best


def _joined(tokens: Sequence[Token], at: int) -> bool:
    """Whether a hyphen joins the words beside it into one: "knock-in", "fed-up"."""
    beside = tokens[at - 1].end == tokens[at].start and at + 1 < len(tokens) and tokens[at].end == tokens[at + 1].start
    return beside and tokens[at + 1].lower not in families()


def _closed(tokens: Sequence[Token], at: int) -> int | None:
    """The token after the bracket that opens here; None where it is far away."""
    for here in range(at + 1, min(len(tokens), at + 12)):
        if tokens[here].lower == ")":
            return here + 1
    return None


def _years_old(tokens: Sequence[Token], at: int) -> int | None:
    """The token after "14-year-old(s)" or "6 month old"; None where no age stands here."""
    words = [token.lower for token in tokens[at : at + 6]]
    bare = [word for word in words if word not in DASHES]
    if len(bare) >= 3 and bare[0][0].isdigit() and bare[1] in _OLD and bare[2] in ("old", "olds"):
        return at + words.index(bare[2]) + 1
    return None
