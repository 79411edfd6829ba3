"""How many were studied: the sample sizes an abstract states, and the one the study rests on.

What counts as a sample size is the codebook of docs/screening.md. Three questions, in this order:
which numbers does the text hold, which of them count units (``Mention``), and which of those are
sizes of the whole study (``total``), of a part of it (``arm``), or the larger number a part is
counted in (``of``)? The rest count those who had an outcome.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Literal, NamedTuple

from masis.audit.text.comparison import NUMBER_WORDS
from masis.offline.text.number_words import SCALES, read_cardinal
from masis.schema.screening import SampleSize
from masis.screening.grading.wording import LONGEST_READ, joined_forms, read_tables, read_word_lists

Family = Literal["people", "animals", "studies", "other"]
Kind = Literal["total", "arm", "of"]
Form = Literal["noun", "bare", "n", "of", "sample", "groups", "single"]
"""How a number is written: before a unit ("48 patients"), behind one ("and 30 with headache"), as
"n = 48", as the whole of a share ("42 of 50"), behind "a sample of", as "groups of 10", or as an
article ("a 49-year-old woman").
"""

_LISTS = read_word_lists(Path(__file__).parent / "sample_words.txt")
_LIST = {name: frozenset(words) for name, words in _LISTS.items()}
_FAMILIES: tuple[Family, ...] = ("people", "animals", "studies", "other")
FAMILY: dict[str, Family] = {
    word: family for family in reversed(_FAMILIES) for word in _LISTS[family]
}
"""The family of each unit, in the plural."""
_TABLES = read_tables(Path(__file__).with_name("sample_forms.toml"))
_FORM = {
    name: re.compile(joined_forms(forms, _TABLES["names"]))
    for name, forms in _TABLES["forms"].items()
}
_WITHOUT_UNIT: tuple[tuple[Form, re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (
        row["form"],
        *(
            re.compile(joined_forms([each], _TABLES["names"]))
            for each in (row["ahead"], f"(?:{row['behind']})(?!\\w)")
        ),
    )
    for row in _TABLES["without_unit"]
)
"""The forms of a number whose unit was said before, by the words ahead and behind."""


def family_of(unit: str, behind: str = "who") -> Family | None:
    """Return the family of a unit in the plural; people that no list names are known by the words
    behind them.
    """
    named = (
        unit not in _LIST["staff"] | _LIST["measure"]
        and _FORM["trade"].fullmatch(unit)
        and _FORM["does"].match(behind)
    )
    return FAMILY.get(unit) or ("people" if named else None)


_TOKEN = re.compile(
    # thousands, set apart by a comma or a space
    r"\d{1,3}(?:[,\u00a0\u2009\u202f ]\d{3})+(?![\d])(?!\.\d)"
    r"|\d+(?:[.,·]\d+)*"
    r"|[^\W\d_]+(?:['’][^\W\d_]+)*"
    r"|\S"
)
"""Numbers, words, and every other sign by itself. A hyphen is a sign of its own."""
_MOST_DIGITS = 10
"""A longer number is no number of units studied."""
_BARE_SCALES = frozenset({"hundred", "thousand", "million"})
"""Scales that count by themselves: "a hundred patients"."""
_MULTIPLES = {"dozen": 12, "thousand": 1_000, "million": 1_000_000}
# "12,400" with commas between thousands, or a plain number with up to three decimals ("1.25").
_DECIMAL = re.compile(r"\d{1,3}(?:,\d{3})+|\d{1,9}(?:\.\d{1,3})?", re.A)


class TokenNumeral(NamedTuple):
    """A whole number: its value, and the tokens it is written in, from ``first`` up to, not
    including, ``after``.
    """

    value: int
    first: int
    after: int


class SizeMention(NamedTuple):
    """A number of units: where it is written (tokens ``first`` up to ``after``), in which form, of
    what.

    ``share`` where a percentage stands by it; ``kind`` where it is a sample size.
    """

    value: int
    form: Form
    first: int
    after: int
    unit: str = ""
    family: Family | None = None
    share: bool = False
    kind: Kind | None = None

    @property
    def whose(self) -> Family | None:
        """The family that shares a total with this one: people, animals and unnamed units share,
        others don't.
        """
        return None if self.family in ("people", "animals") else self.family


def sample_sizes(text: str) -> tuple[SampleSize, ...]:
    """Return all sample sizes that an abstract states, in order; offsets are characters of
    ``text``.
    """
    return _read_sizes(text)[0]


def study_size(text: str) -> SampleSize | None:
    """Return the size that the study rests on; None where none is stated.

    The first total of people or animals that is not the rest of a greater one; else the studies of
    a review; else the sum of its groups; else a single group, or the whole that a part is counted
    in (``kind`` says so).
    """
    return _read_sizes(text)[1]


@lru_cache(maxsize=256)
def _read_sizes(text: str) -> tuple[tuple[SampleSize, ...], SampleSize | None]:
    """Read both at once: callers ask for both of the same text."""
    tokens = TextTokens(text[:LONGEST_READ])
    reader = MentionClassifier(tokens)
    if all(each.kind == "of" for each in reader.counted.values()):
        single = {(each.value, each.whose): each for each in tokens.single_case()}
        reader.counted = single | reader.counted
    return tuple(map(tokens.size, reader.counted.values())), reader.study_size()


class TextTokens:
    """The words, numbers and signs of a text in lower case, with their places."""

    def __init__(self, text: str) -> None:
        found = list(_TOKEN.finditer(text))
        self.text = text
        self.words = [each.group().lower() for each in found]
        self.spans = [each.span() for each in found]

    def word(self, at: int) -> str:
        """Return the token at a place; empty outside the text."""
        return self.words[at] if 0 <= at < len(self.words) else ""

    def ahead(self, at: int, count: int, least: int = 0) -> str:
        """Return the tokens before a place, with a blank between them."""
        return " ".join(self.words[max(least, at - count) : at])

    def behind(self, at: int, count: int, limit: int | None = None) -> str:
        """Return the tokens from a place on, with a blank between them."""
        return " ".join(self.words[at : at + count if limit is None else min(limit, at + count)])

    def is_glued(self, at: int) -> bool:
        """Return whether no blank stands before a token."""
        return 0 < at < len(self.spans) and self.spans[at - 1][1] == self.spans[at][0]

    def numerals(self, first: int = 0, after: int | None = None) -> list[TokenNumeral]:
        """Return the whole numbers among these tokens, in order: "1,204", "1 204", "forty-two",
        "2.5 million".
        """
        found: list[TokenNumeral] = []
        words = self.words[:after]
        for at in range(first, len(words)):
            if at >= (found[-1].after if found else first) and (numeral := _number_at(words, at)):
                found.append(numeral)
        return found

    def size(self, mention: SizeMention) -> SampleSize:
        """Return a mention as a size with its place in the text."""
        start, end = self.spans[mention.first][0], self.spans[mention.after - 1][1]
        kind = mention.kind or "total"
        return SampleSize(value=mention.value, unit=mention.unit, kind=kind, start=start, end=end)

    def single_case(self) -> list[SizeMention]:
        """Return the first mention of the single case an abstract is about; empty where it isn't
        about one.
        """
        if (match := _FORM["single_case"].search(self.text)) is None:
            return []
        first = next(at for at, span in enumerate(self.spans) if span[1] > match.start())
        after = next(
            (at for at, span in enumerate(self.spans) if span[0] >= match.end()), len(self.spans)
        )
        return [SizeMention(1, "single", first, after, "patient", "people", kind="total")]


def _number_at(words: Sequence[str], at: int) -> TokenNumeral | None:
    word, after = words[at], at + 1
    value: float | None = None
    if word[0].isdecimal():
        digits = re.sub(r"[,\s]", "", word)
        decimal_comma = "," in word and len(word.rsplit(",", 1)[1]) != 3  # or a list without blanks
        if digits.isdigit() and len(digits) <= _MOST_DIGITS and not decimal_comma:
            value = int(digits)
    elif word in NUMBER_WORDS or word in _BARE_SCALES or word == "dozen":
        number = read_cardinal(words, at, joined_after=SCALES, bare_scales=_BARE_SCALES)
        if number is not None:
            value, after = number.value, number.after
    if multiple := _MULTIPLES.get(words[after] if after < len(words) else ""):
        if _DECIMAL.fullmatch(word):
            value = float(word.replace(",", ""))
        if value is not None:
            value, after = round(value * multiple), after + 1
    return None if value is None else TokenNumeral(int(value), at, after)


# Which numbers count units.

_DASHES = frozenset("-–‐‑—")
_SIGNS_BEFORE = frozenset("±<>≥≤=~$€£#+*^×/\\.−") | _DASHES
_SPAN = 9
"""How many tokens a number may be away from its unit."""
_MOST_EACH = 12
"""As many may belong to one unit, "4 controls"; more are a group."""


def mentions(tokens: TextTokens) -> list[SizeMention]:
    """Return all numbers of units, in order."""
    found: list[SizeMention] = []
    before: TokenNumeral | None = None
    for numeral in tokens.numerals():
        mention = _mention(tokens, numeral, before)
        if mention is None and found and _echoes(tokens, found[-1], numeral):
            form: Form = "n" if found[-1].form == "n" else "bare"
            mention = found[-1]._replace(
                value=numeral.value, form=form, first=numeral.first, after=numeral.after
            )
        if mention:
            found.append(mention)
        if tokens.word(numeral.after) != "%":
            before = numeral
    return found


def _echoes(tokens: TextTokens, earlier: SizeMention, numeral: TokenNumeral) -> bool:
    """Return whether a number without a unit is said like the one before it, whose unit it shares.

    "402 adults treated with A and 377 treated with B", "A was given to 39 patients and B to 38",
    "187 women in the one group, in the other group 184".
    """
    between = tokens.words[earlier.after : numeral.first]
    if numeral.value <= 3 or _like_a_year(tokens, numeral) or _counts_no_units(tokens, numeral):
        return False
    if {".", ":"} & set(between) or not _LIST["coordinating"] & set(between):
        return False
    if earlier.form == "n":  # "(n = 77 and 73)"
        return len(between) == 1 and between[0] != ","
    if tokens.word(numeral.after).isalpha() and between[-1] != "than":
        return _repeats_number(between, tokens.words[numeral.after : numeral.after + 2])
    return between[-1] in _LIST["named_group"] or (
        between[-1].isalpha() and between[-1] == tokens.word(earlier.first - 1)
    )


def _repeats_number(between: Sequence[str], behind: Sequence[str]) -> bool:
    """Return whether what stands behind a number was said before it; of "was" and "had" only with
    the next word.
    """
    if (
        not behind
        or behind[0] in ("and", "or", "per")
        or (behind[0].endswith("s") and behind[0] != "was")
    ):
        return False  # "59 devices" are not people because devices were named before
    return (
        tuple(behind) in set(pairwise(between))
        if behind[0] in _LIST["auxiliary"]
        else behind[0] in between[:-1]
    )


def _mention(
    tokens: TextTokens, numeral: TokenNumeral, before: TokenNumeral | None
) -> SizeMention | None:
    value, first, after = numeral
    if _FORM["n"].search(tokens.ahead(first, 2)):
        if tokens.word(after) in _LIST["measure"]:
            return None
        mention = _with_unit(tokens, numeral, "n")
        beside = _FORM["share_ahead"].search(tokens.ahead(first - 2, 2)) or _FORM[
            "share_behind"
        ].match(tokens.behind(after, 4))
        if _is_of_each_group(tokens, numeral, mention):
            return mention._replace(form="groups")
        return mention._replace(first=first - 2, share=mention.share or bool(beside))
    mention = _with_unit(tokens, numeral, "noun")
    if whole := _whole_of_part(tokens, numeral, before, mention):
        return whole
    if _counts_no_units(tokens, numeral):
        return None
    if _is_of_each_group(tokens, numeral, mention):
        return mention._replace(form="groups")
    word = tokens.word(after)  # "a total of 166 infusions": a noun that is no unit
    if not mention.unit and word.isalpha() and _FORM["they_were"].search(tokens.ahead(first, 2)):
        return mention._replace(form="sample")
    counts = (
        mention.unit
        or family_of(word)
        or word in _LIST["stop"]
        or not (word[:1].isalpha() and word.endswith("s"))
    )
    compared = _LIST["control"] & set(tokens.ahead(first, 4).split())
    if counts and not compared and _FORM["of_sample"].search(tokens.ahead(first, 4)):
        return mention._replace(form="sample")
    if mention.unit:
        return mention if value > 1 else None
    joined = after + (
        word.isalpha() and word not in _LIST["stop"] | {"and", "or"} and word[-1] != "s"
    )
    a_range = joined == after and (
        tokens.word(first - 1) == "between" or _like_a_year(tokens, numeral)
    )
    if tokens.word(joined) in ("and", "or", "versus", "vs", "v") and not a_range:
        next_one = _number_at(tokens.words, joined + 1) if joined + 1 < len(tokens.words) else None
        infants = next_one and _with_unit(tokens, next_one, "noun")
        if infants and infants.unit:  # "394 male and 360 female infants", "77 and 73 patients"
            return mention._replace(after=joined, unit=infants.unit, family=infants.family)
    if value > 3:
        ahead, behind = tokens.ahead(first, 24).split(" . ")[-1], tokens.behind(after, 10)
        if share := _FORM["share_beside"].match(tokens.behind(after, 6)):
            after += share.group().count(" ") + 1
            behind = tokens.behind(after, 10)
        for form, words_ahead, words_behind in _WITHOUT_UNIT:
            said = words_behind.match(behind) if words_ahead.search(ahead) else None
            if said and not (share and form == "bare"):
                # "interviews (32 in all)"
                named = tokens.word(first - 2) if tokens.word(first - 1) == "(" else ""
                other = form == "sample" and named.endswith("s") and named not in FAMILY
                taken = said.group().count(" ") + 1 if form == "sample" else 0
                return None if other else SizeMention(value, form, first, after + taken)
        if word in _LIST["chose"]:  # "88 chose surgery and 97 chose drugs"
            return mention._replace(form="bare")
    return None


def _counts_no_units(tokens: TextTokens, numeral: TokenNumeral) -> bool:
    """Return whether what stands beside the number makes it something else: a range, a compound, a
    dose, a year.
    """
    before, after = tokens.word(numeral.first - 1), tokens.word(numeral.after)
    if after in ("%", "°", ":", "=", "±") or after in _LIST["measure"]:
        return True
    if tokens.is_glued(numeral.after) and (after in _DASHES or after == "/" or after[0].isalpha()):
        return True
    glued = tokens.is_glued(numeral.first)
    if (glued and before[-1].isalpha()) or _FORM["bound"].search(tokens.ahead(numeral.first, 2)):
        return True
    if before in _SIGNS_BEFORE:
        return glued or before not in _DASHES | {"."}
    if numeral.value <= _MOST_EACH and _FORM["for_each"].search(
        tokens.ahead(numeral.first, 2 * _SPAN)
    ):
        return True
    if after == "to" and tokens.word(numeral.after + 1)[:1].isdecimal():  # "158 to 1162"
        return True
    return _like_a_year(tokens, numeral) and before in _LIST["time"]


def _like_a_year(tokens: TextTokens, numeral: TokenNumeral) -> bool:
    return 1900 <= numeral.value <= 2035 and len(tokens.words[numeral.first]) == 4


def _with_unit(tokens: TextTokens, numeral: TokenNumeral, form: Form) -> SizeMention:
    """Return the number with the unit that the words behind it end in ("consecutive stroke
    patients"), if any.
    """
    plain = best = SizeMention(numeral.value, form, numeral.first, numeral.after)
    share, here, limit = False, numeral.after, numeral.after + _SPAN
    while here < min(len(tokens.words), limit):
        word = tokens.words[here]
        if word == "(":
            if (close := _closing(tokens, here)) is None:
                break
            share = share or "%" in tokens.words[here:close]
            if not share and (
                here == numeral.after or (not best.unit and tokens.word(here - 1).endswith("s"))
            ):
                break
            here, limit = close, limit + close - here
        elif age := _FORM["age"].match(tokens.behind(here, 6)):
            old = here + age.group().count(" ") + 1
            if tokens.words[old - 1] == "olds":
                best = plain._replace(after=old, unit="year-olds", family="people", share=share)
            here, limit = old, limit + old - here
        elif word in _DASHES and tokens.is_glued(here):  # "knock-in"
            here += 1 if tokens.word(here + 1) in FAMILY else 2
        elif word not in _LIST["stop"] and (word[0].isalpha() or word in ",/'\"“”’"):
            listed = word == "," and _FORM["plural"].fullmatch(
                tokens.word(here - 1)
            )  # "in eleven homes, staff were trained"
            if listed or (best.unit and (not word[0].isalpha() or word in ("and", "or"))):
                break
            here += 1
            if family := family_of(word, tokens.behind(here, 4)):
                best = plain._replace(after=here, unit=word, family=family, share=share)
        else:
            break
    if best.unit and tokens.word(best.after) == "(" and (close := _closing(tokens, best.after)):
        inside = tokens.behind(best.after, 6, close)
        return best._replace(share=best.share or _FORM["share_inside"].search(inside) is not None)
    return best


def _closing(tokens: TextTokens, at: int) -> int | None:
    """Return the token after the bracket that opens here; None where it is far away."""
    close = tokens.words[at : at + 12]
    return at + close.index(")") + 1 if ")" in close else None


def _whole_of_part(
    tokens: TextTokens, numeral: TokenNumeral, before: TokenNumeral | None, mention: SizeMention
) -> SizeMention | None:
    """Return the whole in "42 of 50", "11 of the 15 patients", "five (14%) of 36 subjects",
    "(14/15, 93%)".
    """
    at = numeral.first - 1
    at -= tokens.word(at) in ("the", "all", "these", "those", "our")
    if tokens.word(at) not in ("of", "/") or before is None or before.value > numeral.value:
        return None
    between = tokens.words[before.after : at]
    plain = [word for word in between if word[0].isalpha()]
    if {".", ";"} & set(between) or not all(
        word in FAMILY or word in ("out", "cases", "ci") for word in plain
    ):
        return None
    if mention.family == "people" and any(FAMILY.get(word) == "other" for word in plain):
        return None  # "89 eyes of 89 patients"
    unit = mention.unit or next((word for word in plain if word in FAMILY), "")
    past = _closing(tokens, mention.after) if tokens.word(mention.after) == "(" else mention.after
    # "90 of the 97 randomised"
    if {tokens.word(numeral.after), tokens.word(mention.after)} & _LIST["by_chance"]:
        return mention
    does = set(tokens.behind(past or mention.after, 3).split())
    if does & (_LIST["gathered"] | _LIST["replied"] | _LIST["pool"]) or _FORM["response"].search(
        tokens.ahead(before.first, 8)
    ):
        return mention._replace(value=before.value, form="sample", first=before.first)
    enclosed = tokens.word(before.first - 1) in ("(", ";", ",", "[")
    if (
        not unit
        and "%" not in between
        and (not enclosed if tokens.word(at) == "/" else numeral.value < 5)
    ):
        return None
    return mention._replace(form="of", first=before.first, unit=unit, family=FAMILY.get(unit))


def _is_of_each_group(tokens: TextTokens, numeral: TokenNumeral, mention: SizeMention) -> bool:
    """Return whether a number is of each group: "groups of 10", "10 per group", "10 rats in each
    group".
    """
    stated = tokens.ahead(numeral.first, 2) in ("groups of", "arms of")
    return stated or _FORM["per_group"].match(tokens.behind(mention.after, _SPAN)) is not None


# Which of them are sample sizes, and of which kind. The kinds are those of the codebook in
# docs/screening.md; those who had an outcome are distinguished from those who were studied by the
# words around the number, and by the total before it.

_STUDIED: tuple[Family | None, ...] = ("people", "animals", None)
_RESTS_ON: tuple[tuple[Kind, tuple[Family | None, ...]], ...] = (
    ("total", _STUDIED),
    ("total", ("studies",)),
    ("arm", _STUDIED),
    ("total", ("other",)),
    ("of", _STUDIED),
)
"""What a study rests on, the first that it states."""
_VALUE = attrgetter("value")
_LEAST_SUM, _PARTS_WITHIN = 20, 40
"""Smaller numbers are the sum of others by chance; the parts stand within so many words."""


class MentionClassifier:
    """Decides about the mentions of one abstract, in order: a later one is read in the light of the
    earlier.
    """

    def __init__(self, tokens: TextTokens) -> None:
        self.tokens, self.found = tokens, mentions(tokens)
        words, spans, text = tokens.words, tokens.spans, tokens.text
        ends = [
            at + 1
            for at, word in enumerate(words)
            if at + 1 == len(words)
            or (word in (".", "?", "!") and not text[spans[at + 1][0]].islower())
        ]
        self.sentences = list(zip([0, *ends[:-1]], ends, strict=True)) if ends else []
        self.headings = [
            at for at, _ in self.sentences if words[at] in _LIST["background"] | _LIST["heading"]
        ]
        self.is_review = sum(word in _LIST["review"] for word in words) >= 2
        self.several_n = (
            sum(mention.form == "n" and not mention.share for mention in self.found) > 1
        )
        self.whole: Counter[Family | None] = Counter()
        """The greatest total so far, by family."""
        self.arms: Counter[Family | None] = Counter()
        """The sum of the groups so far, by family."""
        self.with_arms = -1
        """Where the sentence of the last group begins."""
        self.repeated: list[SizeMention] = []
        """Groups of the size of another one: a value is listed once, and counts in the sum."""
        self.counted: dict[tuple[int, Family | None], SizeMention] = {}
        """The mentions that are sample sizes, each with its kind."""
        for index in range(len(self.found)):
            self._decide(index)

    def _decide(self, index: int) -> None:
        mention = self.found[index]
        key = (mention.value, mention.whose)
        if (counted := self.counted.get(key)) is not None:
            alike = (mention.form == "n" and self.several_n) or self._is_paired(index)
            if counted.kind == "arm" and alike and not mention.share:
                self.repeated.append(mention)
                self.arms[mention.whose] += mention.value
        elif (kind := None if self._is_of_others(mention) else self._kind(index)) is not None:
            self.counted[key] = mention._replace(kind=kind)
            if kind == "arm":
                self.with_arms = self._sentence(mention)[0]
                self.arms[mention.whose] += mention.value
            if kind == "total":
                self.whole[mention.whose] = max(self.whole[mention.whose], mention.value)

    def study_size(self) -> SampleSize | None:
        """Return the greatest of the first kind that is stated; where only groups are,
        their sum.
        """
        for kind, families in _RESTS_ON:
            matching = [
                each
                for each in self.counted.values()
                if each.kind == kind and each.family in families
            ]
            if not matching:
                continue
            rests = max(matching, key=_VALUE)
            arms = [
                each
                for each in self.counted.values()
                if each.kind == "arm" and each.family in families
            ]
            if (
                kind == "total"
                and len(arms) == 1
                and arms[0].form in ("noun", "n")
                and arms[0].value >= rests.value
            ):
                # who were matched to them
                return self.tokens.size(rests._replace(value=rests.value + arms[0].value))
            if families == _STUDIED and arms and kind in ("total", "arm"):
                groups = self._of_arms(max(arms, key=_VALUE))
                first, end = self._sentence(groups)
                words, forms = (
                    self._words(first, end),
                    {each.form for each in arms if first <= each.first < end},
                )
                stated = any(
                    each.kind == "total" and first <= each.first < end for each in matching
                )
                parts = forms == {"bare"} and not words & _LIST["by_chance"]
                formed = words & _LIST["grouped"] or (
                    forms == {"noun"} and groups.first < rests.first
                )
                if kind == "arm" or (formed and not (stated or parts)):
                    rests = max(rests, groups, key=_VALUE)
            return self.tokens.size(rests)
        return None

    def _of_arms(self, rests: SizeMention) -> SizeMention:
        """Return the size of a study that states its groups alone: their sum; "10 per group" by how
        many there are.
        """
        if rests.form == "groups":
            groups = [
                each.value
                for each in self.tokens.numerals()
                if 1 < each.value < 13
                and _LIST["several"] & set(near := self.tokens.words[each.after : each.after + 3])
                and not {"per", "each"} & set(near)
            ]
            to = _FORM["alternatives"].search(
                self.tokens.ahead(rests.first, 24, self._sentence(rests)[0])
            )
            named = 2 + len(re.findall(r" , \S", to[1])) if to else 2
            return rests._replace(value=rests.value * max(groups, default=named), kind="total")
        arms = [*self.repeated, *(each for each in self.counted.values() if each.kind == "arm")]
        arms = sorted(each for each in arms if each.form != "groups" and each.whose == rests.whose)
        together = [
            [each for each in arms if first <= each.first < after]
            for first, after in self.sentences
        ]
        arms = next((each for each in together if len(each) > 1), arms)
        if len(arms) < 2:
            return rests
        first, after = min(each.first for each in arms), max(each.after for each in arms)
        return rests._replace(
            value=sum(each.value for each in arms), first=first, after=after, kind="total"
        )

    def _is_of_others(self, mention: SizeMention) -> bool:
        """Return whether a number is of a study elsewhere, of what happens everywhere, or was only
        planned.
        """
        first, end = self._sentence(mention)
        heading = max((at for at in self.headings if at <= mention.first), default=-1)
        if len(self.headings) > 1 and self.tokens.word(heading) in _LIST["background"]:
            return True
        before = self.tokens.ahead(mention.first, mention.first - first).split(" ; ")[-1]
        after = self.tokens.behind(mention.after, 8, end).split(";")[0]
        return bool(
            _FORM["every_year"].search(self.tokens.ahead(end, end - first))
            or (mention.family == "people" and _FORM["in_print"].search(after))
            or "published" in self.tokens.words[mention.first : mention.after]
            or _FORM["elsewhere"].search(before)
            or _FORM["planned"].search(before)
            or (mention.form == "sample" and _FORM["only_planned"].match(after))
        )

    def _kind(self, index: int) -> Kind | None:
        mention = self.found[index]
        if (mention.family == "studies" and not self.is_review) or (
            mention.family == "other" and mention.value < 3
        ):
            return None
        match mention.form:
            case "of":
                return "of"
            case "groups":
                return "arm"
            case "bare":
                died = self.tokens.word(mention.after) in _LIST["outcome"] - _LIST["was_or_had"]
                return "arm" if self._is_paired(index) and not died else None
        if self._is_pool(index):
            return "of"
        match mention.form:
            case "sample":
                return "total"
            case "n":
                return self._kind_of_n(index)
        return self._kind_of_noun(index)

    def _kind_of_n(self, index: int) -> Kind | None:
        mention = self.found[index]
        later = [other.value for other in self.found[index + 1 :] if other.form == "n"]
        if mention.share:
            return None
        if any(sum(later[:count]) == mention.value for count in range(2, min(6, len(later) + 1))):
            return "total"
        if self.whole and self._words(self._sentence(mention)[0], mention.first) & _LIST["control"]:
            return "arm"
        greater = max(self.whole.values(), default=0) > mention.value
        return "arm" if greater or self.several_n or self._is_paired(index) else "total"

    def _kind_of_noun(self, index: int) -> Kind | None:
        mention = self.found[index]
        first, end = self._sentence(mention)
        near = self._words(mention.after, min(end, mention.after + 10))
        ahead = self._words(max(first, mention.first - 4), mention.first)
        whole = max(self.whole[mention.whose], self.arms[mention.whose])
        behind = self.tokens.words[mention.after : min(end, mention.after + 8)]
        verb = next((word for word in behind if word in _LIST["outcome"]), "")
        if whole and self._words(mention.first, mention.after) & _LIST["control"]:
            return "arm"
        of_more = any(each.form == "of" and each.value > mention.value for each in self.found)
        # "39 of 6332. Of these 39"
        part = self.tokens.word(mention.first - 1) in ("these", "those") and of_more
        if mention.share or part or (whole and verb in _LIST["outcome"] - _LIST["was_or_had"]):
            return None
        if self._is_sum(index) or _FORM["in_all"].match(self.tokens.behind(mention.after, 2)):
            return "total"
        paired = self._is_paired(index)
        if whole == 0:
            return "arm" if paired else "total"
        if paired and whole == self.arms[mention.whose] and self.with_arms == first:
            return "arm"
        if mention.value >= whole or ((near | ahead) & _LIST["whole"] and not paired):
            return "total"
        if verb in ("have", "has", "had"):
            return None
        return "arm" if paired or self._words(first, end) & _LIST["grouped"] else None

    def _is_pool(self, index: int) -> bool:
        """Return whether a sample was drawn from these: "402 adults were screened and 306 were
        enrolled".
        """
        mention = self.found[index]
        first, end = self._sentence(mention)
        smaller = [each for each in self.found[index + 1 :] if each.value < mention.value]
        later = [each for each in smaller if each.first < end]
        stop = min(
            end, mention.after + 20, *(each.first - (each.form == "sample") for each in later)
        )
        start = mention.after if mention.form == "sample" and not mention.unit else mention.first
        clause = _FORM["clause_ends"].split(self.tokens.behind(start, stop - start))[0].split()
        ahead = self.tokens.words[max(first, mention.first - 6) : mention.first]
        said = {*clause, *(() if "," in ahead or mention.form == "sample" else ahead)}
        if said & _LIST["gathered"]:
            return False
        after = next((each for each in self.sentences if each[0] == end), (end, end))[1]
        sampled = [each for each in smaller if each.form == "sample"]
        sampled = [
            each for each in sampled if each.first < (after if self._from_these(each) else end)
        ]
        if any(
            self.tokens.word(each.after - 1) in _LIST["replied"] or self._from_these(each)
            for each in sampled
        ):
            return True
        if said & _LIST["pool"] or not said & _LIST["possible"]:
            return bool(said & _LIST["pool"])
        enter = _LIST["gathered"] | _LIST["replied"]
        return bool(sampled) or any(
            each.form == "groups" or self._words(each.after, each.after + 3) & enter
            for each in later
        )

    def _from_these(self, mention: SizeMention) -> bool:
        """Return whether a number is stated as part of what was named before it: "of whom 1,805
        enrolled".
        """
        around = (
            f"{self.tokens.ahead(mention.first, 3)} | {self.tokens.behind(mention.first + 1, 2)}"
        )
        return _FORM["from_these"].search(around) is not None

    def _is_sum(self, index: int) -> bool:
        """Return whether numbers soon behind this one make it up: "88 patients, 45 in one arm, 43
        in the other".
        """
        mention = self.found[index]
        end = self._sentence(mention)[1]
        parts = [each.value for each in self.found[index + 1 : index + 6] if each.first < end]
        if any(sum(parts[:count]) == mention.value for count in range(2, len(parts) + 1)):
            return True
        later = self.tokens.numerals(mention.after, mention.after + _PARTS_WITHIN)
        runs = [
            later[start : start + count] for start in range(len(later) - 1) for count in range(2, 6)
        ]
        return mention.value >= _LEAST_SUM and any(
            sum(each.value for each in run) == mention.value
            and min(run).value > 1
            and not any(run[0].first < first <= run[-1].first for first, _ in self.sentences)
            for run in runs
        )

    def _is_paired(self, index: int) -> bool:
        """Return whether another number of the same sentence counts another group of
        the same kind.
        """
        mention = self.found[index]
        first, end = self._sentence(mention)
        if (
            self.tokens.word(mention.first - 1) in ("of", "among", "amongst")
            and mention.first < first + 4
        ):
            return False
        near = (*self.found[max(0, index - 2) : index], *self.found[index + 1 : index + 3])
        return any(
            self._pair_up(*sorted((mention, other), key=lambda each: each.first))
            for other in near
            if other.form in ("noun", "bare", "n")
            and not other.share
            and first <= other.first < end
        )

    def _pair_up(self, one: SizeMention, other: SizeMention) -> bool:
        """Return whether two numbers of a sentence, in their order, count two groups of the same
        kind.
        """
        said, forms = self.tokens.words[one.after : other.first], {one.form, other.form}
        between = frozenset(said)
        before = [self.tokens.word(each.first - 1) for each in (one, other)]
        behind = [self.tokens.word(each.after) for each in (one, other)]
        if "n" in forms and not (between & _LIST["control"] and len(forms) == 2):
            return False
        if one.value == other.value and {"all", "these"} & set(before):
            return False
        alike = (
            before[0] == before[1]
            or behind[0] == behind[1]
            or bool(_LIST["named_group"] & set(before))
        )
        alike = alike or _repeats_number(said, self.tokens.words[other.after : other.after + 2])
        loose = ";" in between or not between & _LIST["coordinating"] - {","}
        if (loose and forms == {"bare", "noun"} and not alike) or _FORM["from_these"].search(
            " ".join(said[-4:])
        ):
            return False
        nested = one.unit != other.unit and len(_LIST["of_several"] & {one.unit, other.unit}) == 1
        # "five (three women, ...)"
        inside = "n" not in forms and "(" in between and ")" not in between
        apart = {"(", ")"} <= between  # "one school (360 pupils); another (340 pupils)"
        joined = apart or ((between & _LIST["joining"] or alike) and not inside)
        return bool(
            one.whose == other.whose and not nested and joined and not between & _LIST["pool"]
        )

    def _sentence(self, mention: SizeMention) -> tuple[int, int]:
        return next(sentence for sentence in self.sentences if mention.first < sentence[1])

    def _words(self, first: int, after: int) -> frozenset[str]:
        return frozenset(self.tokens.words[max(0, first) : after])
