"""Where an abstract counts units: the numbers before a unit, behind "n =", or in "x of y".

What is found here is a number with its form and its signs; which of them are sizes of the study, of an arm or of
neither is decided in ``sample_size``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

from masis.offline.text.number_words import NUMBER_WORDS, SCALES, read_cardinal

# Whole numbers as abstracts write them: "1,204", "1 204", "forty-two", "two hundred and fifty-nine".

TOKEN = re.compile(
    r"\d{1,3}(?:[,\u00a0\u2009\u202f ]\d{3})+(?![\d])(?!\.\d)"  # thousands, set apart by a comma or a space
    r"|\d+(?:[.,·]\d+)*"
    r"|[^\W\d_]+(?:['’][^\W\d_]+)*"
    r"|\S"
)
"""Numbers, words, and every other sign by itself. A hyphen is a sign of its own."""

LARGEST = 1_000_000_000
"""A greater number is no number of units studied."""
_BARE_SCALES = frozenset({"hundred", "thousand", "million"})
"""Scales that count by themselves: "a hundred patients"."""


class Token(NamedTuple):
    """A word, number or sign with its place; ``lower`` is what it is compared by."""

    lower: str
    start: int
    end: int


class Numeral(NamedTuple):
    """A whole number: its value, and the tokens it is written in, from ``first`` up to, not including, ``after``."""

    value: int
    first: int
    after: int


def tokens_of(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text, in order."""
    return tuple(Token(found.group().lower(), *found.span()) for found in TOKEN.finditer(text))


def numerals(tokens: Sequence[Token]) -> tuple[Numeral, ...]:
    """Return the whole numbers among the tokens, in order; decimals are left out."""
    found: list[Numeral] = []
    words = [token.lower for token in tokens]
    at = 0
    while at < len(tokens):
        lower = words[at]
        numeral = None
        if lower[0].isdecimal():
            numeral = _in_digits(lower, at)
        elif lower in NUMBER_WORDS or lower in _BARE_SCALES or lower == "dozen":
            numeral = _in_words(words, at)
        numeral = _scaled(words, at, numeral)
        if numeral is None:
            at += 1
            continue
        found.append(numeral)
        at = numeral.after
    return tuple(found)


def _in_digits(lower: str, at: int) -> Numeral | None:
    digits = re.sub(r"[,\s]", "", lower)
    if not digits.isascii() or not digits.isdigit() or len(digits) > len(str(LARGEST)):
        return None
    if "," in lower and len(lower.rsplit(",", 1)[1]) != 3:  # a decimal comma, or a list without blanks
        return None
    return Numeral(int(digits), at, at + 1)


_SCALED = re.compile(r"\d{1,3}(?:,\d{3})+|\d{1,9}(?:\.\d{1,3})?", re.A)
_MULTIPLES = {"dozen": 12, "thousand": 1_000, "million": 1_000_000}


def _scaled(words: Sequence[str], at: int, numeral: Numeral | None) -> Numeral | None:
    """Return a number with the multiple behind it: "3 million", "2.5 million", "two dozen"; else as it is."""
    after = numeral.after if numeral is not None else at + 1
    multiple = _MULTIPLES.get(words[after]) if after < len(words) else None
    if multiple is None:
        return numeral
    if numeral is not None:
        value = numeral.value * multiple
    elif _SCALED.fullmatch(words[at]):
        value = round(float(words[at].replace(",", "")) * multiple)
    else:
        return None
    return Numeral(value, at, after + 1) if value <= LARGEST else None


def _in_words(words: Sequence[str], at: int) -> Numeral | None:
    number = read_cardinal(words, at, joined_after=SCALES, bare_scales=_BARE_SCALES)
    return None if number is None or number.value > LARGEST else Numeral(number.value, at, number.after)


# The units that studies count, and the phrase that stands behind a number: "consecutive stroke patients".

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
    """Return the family of each unit, in the plural."""
    found: dict[str, Family] = {}
    for line in UNITS.read_text(encoding="utf-8").splitlines():
        name, _, words = line.partition(":")
        if name in get_args(Family):
            found.update(dict.fromkeys(words.split(), cast("Family", name)))
    return found


def family_of(unit: str) -> Family | None:
    """Return the family of a unit, in the singular or the plural; None where it is unknown."""
    lower = unit.lower()
    if lower in _SINGULARS:
        return "people"
    return families().get(lower) or families().get(f"{lower}s")


def tokens_lower(tokens: Sequence[Token], at: int) -> str:
    """Return the token at a place in lower case; empty outside the text."""
    return tokens[at].lower if 0 <= at < len(tokens) else ""


def phrase_after(tokens: Sequence[Token], at: int) -> Phrase | None:
    """Return the unit that the words from ``at`` on end in: "consecutive stroke patients"; None where they don't."""
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
    """Return whether a hyphen joins the words beside it into one: "knock-in", "fed-up"."""
    beside = tokens[at - 1].end == tokens[at].start and at + 1 < len(tokens) and tokens[at].end == tokens[at + 1].start
    return beside and tokens[at + 1].lower not in families()


def _closed(tokens: Sequence[Token], at: int) -> int | None:
    """Return the token after the bracket that opens here; None where it is far away."""
    for here in range(at + 1, min(len(tokens), at + 12)):
        if tokens[here].lower == ")":
            return here + 1
    return None


def _years_old(tokens: Sequence[Token], at: int) -> int | None:
    """Return the token after "14-year-old(s)" or "6 month old"; None where no age stands here."""
    words = [token.lower for token in tokens[at : at + 6]]
    bare = [word for word in words if word not in DASHES]
    if len(bare) >= 3 and bare[0][0].isdigit() and bare[1] in _OLD and bare[2] in ("old", "olds"):
        return at + words.index(bare[2]) + 1
    return None


Form = Literal["noun", "bare", "n", "of", "sample", "groups", "single"]
"""How the number is written: before a unit ("48 patients"), behind one ("and 30 with headache"), as "n = 48", as the
whole of a share ("42 of 50"), behind "a sample of", as "groups of 10", or as an article ("a 49-year-old woman").
"""

_SIGNS_BEFORE = frozenset("±<>≥≤=~$€£#+*^×/\\.−") | DASHES
_LINKS = frozenset("the all these those our".split())


@dataclass(frozen=True, slots=True)
class Mention:
    """A number of units: where it is written (tokens ``first`` up to ``after``), in which form, of what.

    ``share`` where a percentage stands by it; ``part`` is the x of "x of y".
    """

    value: int
    form: Form
    first: int
    after: int
    unit: str = ""
    family: Family | None = None
    share: bool = False
    part: int | None = None


def mentions(tokens: Sequence[Token], found: Sequence[Numeral]) -> tuple[Mention, ...]:
    """Return all numbers of units, in order."""
    numbers_of_units = [
        mention
        for index, numeral in enumerate(found)
        if (mention := _mention(tokens, numeral, found[index - 1] if index else None))
    ]
    return tuple(numbers_of_units)


def _mention(tokens: Sequence[Token], numeral: Numeral, before: Numeral | None) -> Mention | None:
    if numeral.value < 1:
        return None
    counted = _behind_n(tokens, numeral)
    if counted:
        return counted
    if _barred(tokens, numeral):
        return _of_slash(tokens, numeral, before)
    phrase = phrase_after(tokens, numeral.after)
    mention = _of_words(tokens, numeral, before, phrase) or _groups_of(tokens, numeral, phrase)
    if mention:
        return mention
    if _behind_sample(tokens, numeral) and (phrase or not _counts_something_else(tokens, numeral.after)):
        return _stated(numeral, "sample", phrase)
    if numeral.value == 1:
        return None
    return _stated(numeral, "noun", phrase) if phrase else _bare(tokens, numeral)


def _stated(
    numeral: Numeral,
    form: Form,
    phrase: Phrase | None,
    *,
    first: int | None = None,
    share: bool = False,
    part: int | None = None,
) -> Mention:
    """Return the mention of a number with the phrase behind it, if there is one."""
    return Mention(
        value=numeral.value,
        form=form,
        first=numeral.first if first is None else first,
        after=phrase.after if phrase else numeral.after,
        unit=phrase.unit if phrase else "",
        family=phrase.family if phrase else None,
        share=share or bool(phrase and phrase.share),
        part=part,
    )


_JOINS = frozenset("and , versus vs to or while whereas with plus ;".split())
_ANSWERED = frozenset("answered responded returned participated consented enrolled".split())
"""Verbs behind the number of those who became the sample: "sent to 74 units; 57 answered"."""
_BARE = frozenset("with without who in on received receiving assigned randomized randomised had".split())


_INTO_STUDY = frozenset("randomised randomized enrolled recruited included".split())
"""Verbs that say that the number is of those who came into the study."""


def _assigned_before(tokens: Sequence[Token], first: int) -> bool:
    return any(token.lower in ("randomised", "randomized", "assigned") for token in tokens[max(0, first - 12) : first])


def _counts_something_else(tokens: Sequence[Token], at: int) -> bool:
    """Return whether "a total of 166" goes on with a noun that is no unit: infusions, events, visits."""
    word = tokens_lower(tokens, at)
    return word[:1].isalpha() and word not in _STOPS and not word.endswith("ed") and word.endswith("s")


def _bare(tokens: Sequence[Token], numeral: Numeral) -> Mention | None:
    """Return a number whose unit was said before: "27 patients with migraine and 30 with headache", "(640 in all)"."""
    ahead, behind = tokens_lower(tokens, numeral.first - 1), tokens_lower(tokens, numeral.after)
    if ahead in _JOINS | {"("} and behind in _ANSWERED and numeral.value > 3:
        return Mention(numeral.value, "sample", numeral.first, numeral.after + 1)
    following = tokens_lower(tokens, numeral.after + 1)
    if numeral.value > 3 and ahead in _JOINS | {"("} and behind in ("were", "was") and following in _INTO_STUDY:
        return Mention(numeral.value, "sample", numeral.first, numeral.after + 2)
    if numeral.value > 3 and ahead in ("the", "of", "all") and behind in _INTO_STUDY:
        return Mention(numeral.value, "noun", numeral.first, numeral.after)
    if behind == "to" and ahead in ("and", "or", "versus") and _assigned_before(tokens, numeral.first):
        return Mention(numeral.value, "bare", numeral.first, numeral.after)
    if ahead not in _JOINS | {"("} or behind not in _BARE or numeral.value < 4:
        return None
    if behind == "in" and following in ("all", "total"):
        return Mention(numeral.value, "sample", numeral.first, numeral.after + 2)
    if behind in ("in", "on") and following not in ("the", "a", "each"):
        return None
    return Mention(numeral.value, "bare", numeral.first, numeral.after)


def _barred(tokens: Sequence[Token], numeral: Numeral) -> bool:
    """Return whether what stands beside the number makes it something else: a range, a compound, a dose, a year, a
    score.
    """
    before, after = tokens_lower(tokens, numeral.first - 1), tokens_lower(tokens, numeral.after)
    if after in ("%", "°", ":", "=", "±") or after in MEASURES:
        return True
    if after in DASHES | {"/"} and tokens[numeral.after].start == tokens[numeral.after - 1].end:
        return True
    if _glued_to_letters(tokens, numeral) or _is_least(tokens, numeral) or _are_judges(tokens, numeral):
        return True
    if before in _SIGNS_BEFORE:
        glued = tokens[numeral.first - 1].end == tokens[numeral.first].start
        return before not in DASHES | {"."} or glued
    return _is_year(tokens, numeral, before)


def _glued_to_letters(tokens: Sequence[Token], numeral: Numeral) -> bool:
    """Return whether letters stand directly by it: "B6129S", "3xTg", "9th"."""
    first, last = numeral.first, numeral.after
    before = tokens_lower(tokens, first - 1)[-1:].isalpha() and tokens[first - 1].end == tokens[first].start
    return before or (tokens_lower(tokens, last)[:1].isalpha() and tokens[last].start == tokens[last - 1].end)


def _is_least(tokens: Sequence[Token], numeral: Numeral) -> bool:
    """Return whether it is a bound and no count: "a minimum of 50 participants", "at least 10 patients"."""
    ahead = tokens_lower(tokens, numeral.first - 1), tokens_lower(tokens, numeral.first - 2)
    return ahead in (("of", "minimum"), ("least", "at"), ("of", "maximum"), ("to", "up"))


_JUDGES = frozenset("reviewers authors investigators researchers raters observers readers assessors coders".split())
_OF_JUDGES = frozenset("independent blinded trained masked experienced other of the".split())


def _are_judges(tokens: Sequence[Token], numeral: Numeral) -> bool:
    """Return whether it counts those who made the study: "two reviewers independently selected trials"."""
    at = numeral.after
    while tokens_lower(tokens, at) in _OF_JUDGES and at < numeral.after + 3:
        at += 1
    return tokens_lower(tokens, at) in _JUDGES


_TIMES = frozenset(
    """in since from until to and between by during before after january february march april may june july august
    september october november december jan feb mar apr jun jul aug sept sep oct nov dec early late year -""".split()
)


def _is_year(tokens: Sequence[Token], numeral: Numeral, before: str) -> bool:
    written = tokens[numeral.first].lower
    return 1900 <= numeral.value <= 2035 and len(written) == 4 and before in _TIMES


def _behind_n(tokens: Sequence[Token], numeral: Numeral) -> Mention | None:
    """Return a number behind "n =" or "N:"."""
    sign, letter = tokens_lower(tokens, numeral.first - 1), tokens_lower(tokens, numeral.first - 2)
    if sign not in ("=", ":", "≈") or letter not in ("n", "ns"):
        return None
    if tokens_lower(tokens, numeral.after) == "%":
        return None
    phrase = phrase_after(tokens, numeral.after)
    each = _groups_of(tokens, numeral, phrase)
    beside = _share_beside(tokens, numeral.first - 2, numeral.after)
    return each or _stated(numeral, "n", phrase, first=numeral.first - 2, share=beside)


def _share_beside(tokens: Sequence[Token], first: int, after: int) -> bool:
    """Return whether a percentage stands directly by "n = 19": it counts those who had something."""
    before = [tokens_lower(tokens, first - back) for back in (1, 2)]
    behind = [tokens_lower(tokens, after + on) for on in range(4)]
    if before[0] in ("(", ",", ";") and before[1] == "%":
        return True
    if behind[0] not in (",", ";", "[", "(", "/", "="):
        return False
    return "%" in behind[2:3]


def _of_words(
    tokens: Sequence[Token], numeral: Numeral, before: Numeral | None, phrase: Phrase | None
) -> Mention | None:
    """Return the whole in "42 of 50", "11 of the 15 patients", "five (14%) of 36 subjects", "18 out of 70"."""
    at = numeral.first - 1
    if tokens_lower(tokens, at) in _LINKS:
        at -= 1
    if tokens_lower(tokens, at) != "of" or before is None or at - before.after > 8:
        return None
    between = [token.lower for token in tokens[before.after : at]]
    plain = [word for word in between if word[0].isalpha()]
    if any(word in (".", ";") for word in between) or before.value > numeral.value:
        return None
    if not all(word in families() or word in ("out", "cases", "ci") for word in plain):
        return None
    if between and between[0] in MEASURES:
        return None
    unit = phrase.unit if phrase else next((word for word in plain if word in families()), "")
    if not unit and "%" not in between and (numeral.value < 5 or tokens_lower(tokens, numeral.after)[:1].isalpha()):
        return None
    part = None if between[:1] == ["%"] else before.value
    counted = _stated(numeral, "of", phrase, first=before.first, part=part)
    return counted if phrase or not unit else replace(counted, unit=unit, family=families()[unit])


def _of_slash(tokens: Sequence[Token], numeral: Numeral, before: Numeral | None) -> Mention | None:
    """Return the whole in "(14/15, 93%)" or "48/57 cases"."""
    if before is None or before.after != numeral.first - 1 or tokens_lower(tokens, before.after) != "/":
        return None
    if not before.value <= numeral.value or numeral.value < 3:
        return None
    after, ahead = tokens_lower(tokens, numeral.after), tokens_lower(tokens, before.first - 1)
    phrase = phrase_after(tokens, numeral.after)
    enclosed = ahead in ("(", ";", ",", "[") and after in (")", ",", ";", "]", "=")
    shared = after == "(" and "%" in [token.lower for token in tokens[numeral.after : numeral.after + 4]]
    if after in ("/", "-", "–") or not (phrase or enclosed or shared):
        return None
    return _stated(numeral, "of", phrase, first=before.first, part=before.value)


_EACH = frozenset("per each every either".split())
_GROUPS = frozenset("group groups arm arms cohort condition conditions treatment dose".split())


def _groups_of(tokens: Sequence[Token], numeral: Numeral, phrase: Phrase | None) -> Mention | None:
    """Return a number of each group: "groups of 10", "10 per group", "10 rats in each group"."""
    after = phrase.after if phrase else numeral.after
    behind = [tokens_lower(tokens, after + on) for on in range(3)]
    each = (
        (behind[0] in _EACH | {"/"} and (behind[1] in _GROUPS or behind[1] in families()))
        or (behind[0] in ("in", "for") and behind[1] in _EACH and behind[2] in _GROUPS)
        or (behind[0] == "each" and phrase is not None and not behind[1][:1].isalpha())
    )
    of_groups = tokens_lower(tokens, numeral.first - 1) == "of" and tokens_lower(tokens, numeral.first - 2) in (
        "groups",
        "arms",
    )
    if not each and not of_groups:
        return None
    return _stated(numeral, "groups", phrase)


_LINKING = frozenset("of was is were included comprised comprising consisted totaled totalled comprises".split())


def _behind_sample(tokens: Sequence[Token], numeral: Numeral) -> bool:
    """Return whether the number stands behind "a total of", "a sample of", "sample size was", "sample consisted of"."""
    words = [tokens_lower(tokens, numeral.first - back) for back in range(1, 5)]
    if words[0] in ("approximately", "about", "over", "only", "nearly"):
        words = words[1:]
    if words[0] not in _LINKING:
        return False
    rest = words[1:]
    if rest[0] in ("consisted", "size", "composed", "comprised"):
        rest = rest[1:]
    if words[0] != "of" and words[1] not in ("size", "sample", "samples"):
        return False
    return rest[0] in ("sample", "samples", "total", "series", "cohort", "population")
