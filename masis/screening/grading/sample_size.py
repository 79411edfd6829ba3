"""Extracts the sample sizes that an abstract states, and the size of the whole study.

docs/screening.md defines what counts as a sample size. The extraction has three steps: find the
numbers in the text, find those that count units (``SizeMention``), and classify these as the size
of the whole study (``total``), of a group in it (``arm``), or of a larger set that a part was
selected from (``of``). The remaining numbers count people who had an outcome.
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
"""The form of a number, in the order above: before its unit ("48 patients"), without a unit of
its own ("and 30 with headache"), as "n = 48", as the whole of a share ("42 of 50"), after "a sample
of", as "groups of 10", or as an article ("a 49-year-old woman").
"""

_LISTS = read_word_lists(Path(__file__).parent / "sample_words.txt")
_WORDS = {name: frozenset(words) for name, words in _LISTS.items()}
_FAMILIES: tuple[Family, ...] = ("people", "animals", "studies", "other")
FAMILY: dict[str, Family] = {
    word: family for family in reversed(_FAMILIES) for word in _LISTS[family]
}
"""The family of each unit, which is in the plural."""
_TABLES = read_tables(Path(__file__).with_name("sample_forms.toml"))
_FORM = {
    name: re.compile(joined_forms(forms, _TABLES["names"]))
    for name, forms in _TABLES["forms"].items()
}
# The forms of a number whose unit was named before, by the words ahead and behind.
_WITHOUT_UNIT: tuple[tuple[Form, re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (
        row["form"],
        *(
            re.compile(joined_forms([pattern], _TABLES["names"]))
            for pattern in (row["ahead"], f"(?:{row['behind']})(?!\\w)")
        ),
    )
    for row in _TABLES["without_unit"]
)


def family_of(unit: str, behind: str = "who") -> Family | None:
    """Return the family of a unit in the plural, or None.

    People of a trade that isn't listed ("bakers") are recognized by the words after them ("who").
    """
    is_trade = (
        unit not in _WORDS["staff"] | _WORDS["measure"]
        and _FORM["trade"].fullmatch(unit)
        and _FORM["does"].match(behind)
    )
    return FAMILY.get(unit) or ("people" if is_trade else None)


_TOKEN = re.compile(
    # A number with groups of thousands, separated by a comma or a space: "12,400", "12 400".
    r"\d{1,3}(?:[,\u00a0\u2009\u202f ]\d{3})+(?![\d])(?!\.\d)"
    # Any other number, with decimal points, commas or middle dots ("0·05", as The Lancet writes).
    r"|\d+(?:[.,·]\d+)*"
    # A word, also with an apostrophe.
    r"|[^\W\d_]+(?:['’][^\W\d_]+)*"
    # Any other character, including a hyphen, is a separate token.
    r"|\S"
)
# A number with more digits can't be a sample size.
_MAX_DIGITS = 10
# Scales that are numbers without a digit before them: "a hundred patients".
_BARE_SCALES = frozenset({"hundred", "thousand", "million"})
_MULTIPLES = {"dozen": 12, "thousand": 1_000, "million": 1_000_000}
# "12,400" with commas between thousands, or a plain number with up to three decimals ("1.25").
_DECIMAL = re.compile(r"\d{1,3}(?:,\d{3})+|\d{1,9}(?:\.\d{1,3})?", re.A)


class TokenNumeral(NamedTuple):
    """A whole number, and its tokens from ``first`` to ``after``, which is excluded."""

    value: int
    first: int
    after: int


class SizeMention(NamedTuple):
    """A number of units: its tokens (``first`` to ``after``, excluded), its form and its unit.

    ``share`` is true if there is a percentage next to it. ``kind`` is set for sample sizes.
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
    def total_key(self) -> Family | None:
        """The key of the total that this number belongs to.

        People, animals and unnamed units have a common total, and other families have their own.
        """
        return None if self.family in ("people", "animals") else self.family


def sample_sizes(text: str) -> tuple[SampleSize, ...]:
    """Return all sample sizes in an abstract, in order, with their offsets in ``text``."""
    return _read_sizes(text)[0]


def study_size(text: str) -> SampleSize | None:
    """Return the size of the whole study, or None if it isn't stated.

    It is the largest total of people or animals, else the number of studies of a review, else the
    sum of the groups, else a single group or the set that a part was selected from. ``kind`` says
    which one it is.
    """
    return _read_sizes(text)[1]


@lru_cache(maxsize=256)
def _read_sizes(text: str) -> tuple[tuple[SampleSize, ...], SampleSize | None]:
    """Return all sizes and the size of the study; cached because callers need both."""
    tokens = TextTokens(text[:LONGEST_READ])
    reader = MentionClassifier(tokens)
    # A case report often states no number, so "a 49-year-old woman" counts as one patient.
    if all(mention.kind == "of" for mention in reader.counted.values()):
        single = {(mention.value, mention.total_key): mention for mention in tokens.single_case()}
        reader.counted = single | reader.counted
    return tuple(map(tokens.size, reader.counted.values())), reader.study_size()


class TextTokens:
    """The words, numbers and signs of a text in lower case, with their offsets."""

    def __init__(self, text: str) -> None:
        matches = list(_TOKEN.finditer(text))
        self.text = text
        self.words = [match.group().lower() for match in matches]
        self.spans = [match.span() for match in matches]

    def word(self, index: int) -> str:
        """Return the token at an index, or "" outside the text."""
        return self.words[index] if 0 <= index < len(self.words) else ""

    def ahead(self, index: int, count: int, first_index: int = 0) -> str:
        """Return the ``count`` tokens before an index, joined by spaces."""
        return " ".join(self.words[max(first_index, index - count) : index])

    def behind(self, index: int, count: int, limit: int | None = None) -> str:
        """Return ``count`` tokens from an index on, joined by spaces."""
        return " ".join(
            self.words[index : index + count if limit is None else min(limit, index + count)]
        )

    def is_glued(self, index: int) -> bool:
        """Return whether a token follows the one before it without a space."""
        return 0 < index < len(self.spans) and self.spans[index - 1][1] == self.spans[index][0]

    def numerals(self, first: int = 0, after: int | None = None) -> list[TokenNumeral]:
        """Return the whole numbers among these tokens, in order.

        They can be written as "1,204", "1 204", "forty-two" or "2.5 million".
        """
        numerals: list[TokenNumeral] = []
        words = self.words[:after]
        for index in range(first, len(words)):
            # A number of several tokens, such as "forty - two", must not start again within itself.
            if index >= (numerals[-1].after if numerals else first) and (
                numeral := _number_at(words, index)
            ):
                numerals.append(numeral)
        return numerals

    def size(self, mention: SizeMention) -> SampleSize:
        """Return a mention as a sample size with its offsets in the text."""
        start, end = self.spans[mention.first][0], self.spans[mention.after - 1][1]
        kind = mention.kind or "total"
        return SampleSize(value=mention.value, unit=mention.unit, kind=kind, start=start, end=end)

    def single_case(self) -> list[SizeMention]:
        """Return the first mention of a single case ("a 49-year-old woman"), or an empty list."""
        if (match := _FORM["single_case"].search(self.text)) is None:
            return []
        first = next(index for index, span in enumerate(self.spans) if span[1] > match.start())
        after = next(
            (index for index, span in enumerate(self.spans) if span[0] >= match.end()),
            len(self.spans),
        )
        return [SizeMention(1, "single", first, after, "patient", "people", kind="total")]


def _number_at(words: Sequence[str], index: int) -> TokenNumeral | None:
    word, after = words[index], index + 1
    value: float | None = None
    if word[0].isdecimal():
        digits = re.sub(r"[,\s]", "", word)
        # "3,5" is a decimal number, or a list without spaces.
        decimal_comma = "," in word and len(word.rsplit(",", 1)[1]) != 3
        if digits.isdigit() and len(digits) <= _MAX_DIGITS and not decimal_comma:
            value = int(digits)
    elif word in NUMBER_WORDS or word in _BARE_SCALES or word == "dozen":
        number = read_cardinal(words, index, joined_after=SCALES, bare_scales=_BARE_SCALES)
        if number is not None:
            value, after = number.value, number.after
    if multiple := _MULTIPLES.get(words[after] if after < len(words) else ""):
        if _DECIMAL.fullmatch(word):
            value = float(word.replace(",", ""))
        if value is not None:
            value, after = round(value * multiple), after + 1
    return None if value is None else TokenNumeral(int(value), index, after)


# Step 2: find the numbers that count units.

_DASHES = frozenset("-–‐‑—")
# Symbols before a number that isn't a count: a bound, a price, a measurement, part of a formula.
_SIGNS_BEFORE = frozenset("±<>≥≤=~$€£#+*^×/\\.−") | _DASHES
# The most tokens between a number and its unit.
_MAX_UNIT_DISTANCE = 9
# The most units that belong to another one, as in "4 controls for each case". More are a group.
_MAX_PER_UNIT = 12


def mentions(tokens: TextTokens) -> list[SizeMention]:
    """Return all numbers that count units, in order."""
    found: list[SizeMention] = []
    previous: TokenNumeral | None = None
    for numeral in tokens.numerals():
        mention = _mention(tokens, numeral, previous)
        if mention is None and found and _shares_unit(tokens, found[-1], numeral):
            form: Form = "n" if found[-1].form == "n" else "bare"
            mention = found[-1]._replace(
                value=numeral.value, form=form, first=numeral.first, after=numeral.after
            )
        if mention:
            found.append(mention)
        if tokens.word(numeral.after) != "%":
            previous = numeral
    return found


def _shares_unit(tokens: TextTokens, earlier: SizeMention, numeral: TokenNumeral) -> bool:
    """Return whether a number without a unit is worded like the one before and has its unit.

    "402 adults treated with A and 377 treated with B", "A was given to 39 patients and B to 38",
    "187 women in the one group, in the other group 184".
    """
    between = tokens.words[earlier.after : numeral.first]
    if numeral.value <= 3 or _like_a_year(tokens, numeral) or _counts_no_units(tokens, numeral):
        return False
    if {".", ":"} & set(between) or not _WORDS["coordinating"] & set(between):
        return False
    if earlier.form == "n":  # "(n = 77 and 73)"
        return len(between) == 1 and between[0] != ","
    if tokens.word(numeral.after).isalpha() and between[-1] != "than":
        return _repeats_number(between, tokens.words[numeral.after : numeral.after + 2])
    return between[-1] in _WORDS["named_group"] or (
        between[-1].isalpha() and between[-1] == tokens.word(earlier.first - 1)
    )


def _repeats_number(between: Sequence[str], behind: Sequence[str]) -> bool:
    """Return whether the word after a number also occurs before it.

    Auxiliaries such as "was" and "had" are so frequent that the next word must match too.
    """
    # A plural after the number is its own unit: "59 devices" aren't people, even if devices were
    # mentioned before.
    if (
        not behind
        or behind[0] in ("and", "or", "per")
        or (behind[0].endswith("s") and behind[0] != "was")
    ):
        return False
    return (
        tuple(behind) in set(pairwise(between))
        if behind[0] in _WORDS["auxiliary"]
        else behind[0] in between[:-1]
    )


def _mention(
    tokens: TextTokens, numeral: TokenNumeral, before: TokenNumeral | None
) -> SizeMention | None:
    """Return a number as a mention of units, or None if it counts something else."""
    value, first, after = numeral
    if _FORM["n"].search(tokens.ahead(first, 2)):
        if tokens.word(after) in _WORDS["measure"]:
            return None
        mention = _with_unit(tokens, numeral, "n")
        has_share = _FORM["share_ahead"].search(tokens.ahead(first - 2, 2)) or _FORM[
            "share_behind"
        ].match(tokens.behind(after, 4))
        if _is_of_each_group(tokens, numeral, mention):
            return mention._replace(form="groups")
        return mention._replace(first=first - 2, share=mention.share or bool(has_share))
    mention = _with_unit(tokens, numeral, "noun")
    if total := _whole_of_part(tokens, numeral, before, mention):
        return total
    if _counts_no_units(tokens, numeral):
        return None
    if _is_of_each_group(tokens, numeral, mention):
        return mention._replace(form="groups")
    word = tokens.word(after)
    if not mention.unit and word.isalpha() and _FORM["they_were"].search(tokens.ahead(first, 2)):
        return mention._replace(form="sample")
    # In "a total of 166 infusions", the number is followed by a plural that isn't a unit.
    is_count = (
        mention.unit
        or family_of(word)
        or word in _WORDS["stop"]
        or not (word[:1].isalpha() and word.endswith("s"))
    )
    is_compared = _WORDS["control"] & set(tokens.ahead(first, 4).split())
    if is_count and not is_compared and _FORM["of_sample"].search(tokens.ahead(first, 4)):
        return mention._replace(form="sample")
    if mention.unit:
        return mention if value > 1 else None
    next_index = after + (
        word.isalpha() and word not in _WORDS["stop"] | {"and", "or"} and word[-1] != "s"
    )
    is_range = next_index == after and (
        tokens.word(first - 1) == "between" or _like_a_year(tokens, numeral)
    )
    if tokens.word(next_index) in ("and", "or", "versus", "vs", "v") and not is_range:
        next_numeral = (
            _number_at(tokens.words, next_index + 1) if next_index + 1 < len(tokens.words) else None
        )
        next_mention = next_numeral and _with_unit(tokens, next_numeral, "noun")
        # "394 male and 360 female infants", "77 and 73 patients": both numbers have the same unit.
        if next_mention and next_mention.unit:
            return mention._replace(
                after=next_index, unit=next_mention.unit, family=next_mention.family
            )
    if value > 3:
        ahead, behind = tokens.ahead(first, 24).split(" . ")[-1], tokens.behind(after, 10)
        if share := _FORM["share_beside"].match(tokens.behind(after, 6)):
            after += share.group().count(" ") + 1
            behind = tokens.behind(after, 10)
        for form, words_ahead, words_behind in _WITHOUT_UNIT:
            behind_match = words_behind.match(behind) if words_ahead.search(ahead) else None
            if behind_match and not (share and form == "bare"):
                # In "interviews (32 in all)", the number counts the plural before the bracket.
                noun = tokens.word(first - 2) if tokens.word(first - 1) == "(" else ""
                counts_noun = form == "sample" and noun.endswith("s") and noun not in FAMILY
                extra_tokens = behind_match.group().count(" ") + 1 if form == "sample" else 0
                return (
                    None if counts_noun else SizeMention(value, form, first, after + extra_tokens)
                )
        if word in _WORDS["chose"]:  # As in "88 chose surgery and 97 chose drugs".
            return mention._replace(form="bare")
    return None


def _counts_no_units(tokens: TextTokens, numeral: TokenNumeral) -> bool:
    """Return whether a number's neighbors show that it is a range, a compound, a dose or a year."""
    before, after = tokens.word(numeral.first - 1), tokens.word(numeral.after)
    if after in ("%", "°", ":", "=", "±") or after in _WORDS["measure"]:
        return True
    if tokens.is_glued(numeral.after) and (after in _DASHES or after == "/" or after[0].isalpha()):
        return True
    glued = tokens.is_glued(numeral.first)
    if (glued and before[-1].isalpha()) or _FORM["bound"].search(tokens.ahead(numeral.first, 2)):
        return True
    if before in _SIGNS_BEFORE:
        return glued or before not in _DASHES | {"."}
    if numeral.value <= _MAX_PER_UNIT and _FORM["for_each"].search(
        tokens.ahead(numeral.first, 2 * _MAX_UNIT_DISTANCE)
    ):
        return True
    if after == "to" and tokens.word(numeral.after + 1)[:1].isdecimal():  # As in "158 to 1162".
        return True
    return _like_a_year(tokens, numeral) and before in _WORDS["time"]


def _like_a_year(tokens: TextTokens, numeral: TokenNumeral) -> bool:
    return 1900 <= numeral.value <= 2035 and len(tokens.words[numeral.first]) == 4


def _with_unit(tokens: TextTokens, numeral: TokenNumeral, form: Form) -> SizeMention:
    """Return the number with its unit, which may follow other words, if there is one.

    In "48 consecutive stroke patients" the unit is "patients".
    """
    without_unit = best = SizeMention(numeral.value, form, numeral.first, numeral.after)
    share, index, limit = False, numeral.after, numeral.after + _MAX_UNIT_DISTANCE
    while index < min(len(tokens.words), limit):
        word = tokens.words[index]
        if word == "(":
            if (close := _closing(tokens, index)) is None:
                break
            share = share or "%" in tokens.words[index:close]
            if not share and (
                index == numeral.after or (not best.unit and tokens.word(index - 1).endswith("s"))
            ):
                break
            index, limit = close, limit + close - index
        elif age := _FORM["age"].match(tokens.behind(index, 6)):
            after_age = index + age.group().count(" ") + 1
            if tokens.words[after_age - 1] == "olds":
                best = without_unit._replace(
                    after=after_age, unit="year-olds", family="people", share=share
                )
            index, limit = after_age, limit + after_age - index
        elif word in _DASHES and tokens.is_glued(index):  # As in "knock-in".
            index += 1 if tokens.word(index + 1) in FAMILY else 2
        elif word not in _WORDS["stop"] and (word[0].isalpha() or word in ",/'\"“”’"):
            # In "in eleven homes, staff were trained", the unit ends at the comma.
            is_list = word == "," and _FORM["plural"].fullmatch(tokens.word(index - 1))
            if is_list or (best.unit and (not word[0].isalpha() or word in ("and", "or"))):
                break
            index += 1
            if family := family_of(word, tokens.behind(index, 4)):
                best = without_unit._replace(after=index, unit=word, family=family, share=share)
        else:
            break
    if best.unit and tokens.word(best.after) == "(" and (close := _closing(tokens, best.after)):
        inside = tokens.behind(best.after, 6, close)
        return best._replace(share=best.share or _FORM["share_inside"].search(inside) is not None)
    return best


def _closing(tokens: TextTokens, opening: int) -> int | None:
    """Return the index after the closing bracket of the one that opens here; None if it is far."""
    inside = tokens.words[opening : opening + 12]
    return opening + inside.index(")") + 1 if ")" in inside else None


def _whole_of_part(
    tokens: TextTokens, numeral: TokenNumeral, before: TokenNumeral | None, mention: SizeMention
) -> SizeMention | None:
    """Return the whole that a part is counted in, or None.

    Examples: "42 of 50", "11 of the 15 patients", "five (14%) of 36 subjects", "(14/15, 93%)".
    """
    link_index = numeral.first - 1
    link_index -= tokens.word(link_index) in ("the", "all", "these", "those", "our")
    if tokens.word(link_index) not in ("of", "/") or before is None or before.value > numeral.value:
        return None
    between = tokens.words[before.after : link_index]
    words_between = [word for word in between if word[0].isalpha()]
    if {".", ";"} & set(between) or not all(
        word in FAMILY or word in ("out", "cases", "ci") for word in words_between
    ):
        return None
    # In "89 eyes of 89 patients", the eyes aren't a part of the patients.
    if mention.family == "people" and any(FAMILY.get(word) == "other" for word in words_between):
        return None
    unit = mention.unit or next((word for word in words_between if word in FAMILY), "")
    after_bracket = (
        _closing(tokens, mention.after) if tokens.word(mention.after) == "(" else mention.after
    )
    # In "90 of the 97 randomised", the second number is the sample.
    if {tokens.word(numeral.after), tokens.word(mention.after)} & _WORDS["by_chance"]:
        return mention
    words_after = set(tokens.behind(after_bracket or mention.after, 3).split())
    if words_after & (_WORDS["gathered"] | _WORDS["replied"] | _WORDS["pool"]) or _FORM[
        "response"
    ].search(tokens.ahead(before.first, 8)):
        return mention._replace(value=before.value, form="sample", first=before.first)
    is_enclosed = tokens.word(before.first - 1) in ("(", ";", ",", "[")
    if (
        not unit
        and "%" not in between
        and (not is_enclosed if tokens.word(link_index) == "/" else numeral.value < 5)
    ):
        return None
    return mention._replace(form="of", first=before.first, unit=unit, family=FAMILY.get(unit))


def _is_of_each_group(tokens: TextTokens, numeral: TokenNumeral, mention: SizeMention) -> bool:
    """Return whether a number is the size of each group ("groups of 10", "10 rats per group")."""
    says_groups_of = tokens.ahead(numeral.first, 2) in ("groups of", "arms of")
    return (
        says_groups_of
        or _FORM["per_group"].match(tokens.behind(mention.after, _MAX_UNIT_DISTANCE)) is not None
    )


# Step 3: find the mentions that are sample sizes, and classify them by the kinds of
# docs/screening.md. The words around a number, and the total before it, distinguish people who
# were studied from people who had an outcome.

_STUDIED: tuple[Family | None, ...] = ("people", "animals", None)
# Kinds and families in the order in which they give the size of a study.
_SIZE_PREFERENCE: tuple[tuple[Kind, tuple[Family | None, ...]], ...] = (
    ("total", _STUDIED),
    ("total", ("studies",)),
    ("arm", _STUDIED),
    ("total", ("other",)),
    ("of", _STUDIED),
)
_VALUE = attrgetter("value")
# The least sum of parts (smaller sums occur by chance), and the most words between the parts.
_MIN_SUM, _MAX_PARTS_DISTANCE = 20, 40
# The least share of the randomized that the groups analyzed later add up to.
_LEAST_FOLLOWED = 0.8


class MentionClassifier:
    """Classifies the mentions of one abstract in order; a later one depends on the earlier ones."""

    def __init__(self, tokens: TextTokens) -> None:
        self.tokens, self.mentions = tokens, mentions(tokens)
        self.first_parts = {
            index for index in range(len(self.mentions)) if self._is_first_part(index)
        }
        words, spans, text = tokens.words, tokens.spans, tokens.text
        # A sentence ends at a stop, unless a lowercase letter follows, as in "vs. placebo".
        ends = [
            at + 1
            for at, word in enumerate(words)
            if at + 1 == len(words)
            or (word in (".", "?", "!") and not text[spans[at + 1][0]].islower())
        ]
        self.sentences = list(zip([0, *ends[:-1]], ends, strict=True)) if ends else []
        self.headings = [
            at for at, _ in self.sentences if words[at] in _WORDS["background"] | _WORDS["heading"]
        ]
        self.is_review = sum(word in _WORDS["review"] for word in words) >= 2
        self.several_n = (
            sum(mention.form == "n" and not mention.share for mention in self.mentions) > 1
        )
        # The largest total so far, by family.
        self.totals: Counter[Family | None] = Counter()
        # The sum of the groups so far, by family.
        self.arm_sums: Counter[Family | None] = Counter()
        # The start of the sentence with the last group.
        self.last_arm_sentence = -1
        # Groups of the same size as another one, which ``counted`` can't hold twice.
        self.repeated: list[SizeMention] = []
        # The mentions that are sample sizes, each with its kind.
        self.counted: dict[tuple[int, Family | None], SizeMention] = {}
        for index in range(len(self.mentions)):
            self._classify(index)

    def _classify(self, index: int) -> None:
        mention = self.mentions[index]
        key = (mention.value, mention.total_key)
        if (counted := self.counted.get(key)) is not None:
            is_repeated_arm = (
                (mention.form == "n" and self.several_n)
                or index - 1 in self.first_parts
                or self._is_paired(index)
            )
            if counted.kind == "arm" and is_repeated_arm and not mention.share:
                self.repeated.append(mention)
                self.arm_sums[mention.total_key] += mention.value
        elif (kind := None if self._is_of_others(mention) else self._kind(index)) is not None:
            self.counted[key] = mention._replace(kind=kind)
            if kind == "arm":
                self.last_arm_sentence = self._sentence(mention)[0]
                self.arm_sums[mention.total_key] += mention.value
            if kind == "total":
                self.totals[mention.total_key] = max(self.totals[mention.total_key], mention.value)

    def study_size(self) -> SampleSize | None:
        """Return the largest size of the first kind that is stated, or the sum of the groups."""
        for kind, families in _SIZE_PREFERENCE:
            matching = [
                mention
                for mention in self.counted.values()
                if mention.kind == kind and mention.family in families
            ]
            if not matching:
                continue
            total = max(matching, key=_VALUE)
            arms = [
                mention
                for mention in self.counted.values()
                if mention.kind == "arm" and mention.family in families
            ]
            if (
                kind == "total"
                and len(arms) == 1
                and arms[0].form in ("noun", "n")
                and arms[0].value >= total.value
            ):
                # A single group as large as the total is a control group matched to it.
                return self.tokens.size(total._replace(value=total.value + arms[0].value))
            if families == _STUDIED and arms and kind in ("total", "arm"):
                groups = self._sum_of_arms(max(arms, key=_VALUE))
                first, end = self._sentence(groups)
                words = self._words(first, end)
                forms = {arm.form for arm in arms if first <= arm.first < end}
                stated = any(
                    mention.kind == "total" and first <= mention.first < end for mention in matching
                )
                are_unnamed_parts = forms == {"bare"} and not words & _WORDS["by_chance"]
                # Groups of a sentence without a total of its own may be more than a total stated
                # later, which then counts only some of them. A total stated before them wins.
                are_groups = groups.first < total.first and (
                    words & _WORDS["grouped"] or forms == {"noun"}
                )
                if kind == "arm" or (are_groups and not (stated or are_unnamed_parts)):
                    total = max(total, groups, key=_VALUE)
            return self.tokens.size(total)
        return None

    def _sum_of_arms(self, arm: SizeMention) -> SizeMention:
        """Return the size of a study that states only its groups: their sum.

        A size of each group ("10 per group") is multiplied by the number of groups.
        """
        if arm.form == "groups":
            groups = [
                numeral.value
                for numeral in self.tokens.numerals()
                if 1 < numeral.value < 13
                and _WORDS["several"]
                & set(near := self.tokens.words[numeral.after : numeral.after + 3])
                and not {"per", "each"} & set(near)
            ]
            alternatives = _FORM["alternatives"].search(
                self.tokens.ahead(arm.first, 24, self._sentence(arm)[0])
            )
            # Groups that are listed ("to A, B or C") have a comma between all but the last two.
            listed_groups = 2 + len(re.findall(r" , \S", alternatives[1])) if alternatives else 2
            return arm._replace(value=arm.value * max(groups, default=listed_groups), kind="total")
        arms = [
            *self.repeated,
            *(mention for mention in self.counted.values() if mention.kind == "arm"),
        ]
        arms = sorted(
            other for other in arms if other.form != "groups" and other.total_key == arm.total_key
        )
        by_sentence = [
            [other for other in arms if first <= other.first < after]
            for first, after in self.sentences
        ]
        # Groups of one sentence belong together. Later sentences often repeat them or count others.
        arms = next((group for group in by_sentence if len(group) > 1), arms)
        if len(arms) < 2:
            return arm
        first, after = min(other.first for other in arms), max(other.after for other in arms)
        return arm._replace(
            value=sum(other.value for other in arms), first=first, after=after, kind="total"
        )

    def _is_of_others(self, mention: SizeMention) -> bool:
        """Return whether a number is about other studies, about people in general, or planned."""
        first, end = self._sentence(mention)
        heading = max((start for start in self.headings if start <= mention.first), default=-1)
        # Numbers in the background section of a structured abstract are from other sources.
        if len(self.headings) > 1 and self.tokens.word(heading) in _WORDS["background"]:
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
        """Return the kind of a mention, or None if it isn't a sample size."""
        mention = self.mentions[index]
        if (mention.family == "studies" and not self.is_review) or (
            mention.family == "other" and mention.value < 3
        ):
            return None
        if index in self.first_parts or index - 1 in self.first_parts:
            return "arm"
        if index and self._has_event(index - 1) and self._continues(index):
            return None
        match mention.form:
            case "of":
                return "of"
            case "groups":
                return "arm"
            case "bare":
                died = self.tokens.word(mention.after) in _WORDS["outcome"] - _WORDS["was_or_had"]
                return "arm" if self._is_paired(index) and not died else None
        if self._is_pool(index):
            return "of"
        if self._has_event(index):
            return None if self.counted or self._is_outcome(index) else "total"
        match mention.form:
            case "sample":
                return "total"
            case "n":
                return self._kind_of_n(index)
        return self._kind_of_noun(index)

    def _kind_of_n(self, index: int) -> Kind | None:
        mention = self.mentions[index]
        later = [other.value for other in self.mentions[index + 1 :] if other.form == "n"]
        if mention.share:
            return None
        # The numbers after a total often add up to it: "n = 80 (drug, n = 41; placebo, n = 39)".
        # They add up to less if some left before the count.
        sums = [sum(later[:count]) for count in range(2, min(6, len(later) + 1))]
        near = self._words(mention.after, mention.after + 4)
        least = _LEAST_FOLLOWED if near & _WORDS["entered"] else 1
        if any(least * mention.value <= total <= mention.value for total in sums):
            return "total"
        if (
            self.totals
            and self._words(self._sentence(mention)[0], mention.first) & _WORDS["control"]
        ):
            return "arm"
        has_larger_total = max(self.totals.values(), default=0) > mention.value
        return "arm" if has_larger_total or self.several_n or self._is_paired(index) else "total"

    def _kind_of_noun(self, index: int) -> Kind | None:
        mention = self.mentions[index]
        first, end = self._sentence(mention)
        near = self._words(mention.after, min(end, mention.after + 10))
        ahead = self._words(max(first, mention.first - 4), mention.first)
        total = max(self.totals[mention.total_key], self.arm_sums[mention.total_key])
        behind = self.tokens.words[mention.after : min(end, mention.after + 8)]
        verb = next((word for word in behind if word in _WORDS["outcome"]), "")
        if total and self._words(mention.first, mention.after) & _WORDS["control"]:
            return "arm"
        has_larger_pool = any(
            other.form == "of" and other.value > mention.value for other in self.mentions
        )
        # In "39 of 6332. Of these 39", the second 39 repeats a part.
        repeats_part = self.tokens.word(mention.first - 1) in ("these", "those") and has_larger_pool
        if (
            mention.share
            or repeats_part
            or (total and verb in _WORDS["outcome"] - _WORDS["was_or_had"])
        ):
            return None
        if self._is_sum(index) or _FORM["in_all"].match(self.tokens.behind(mention.after, 2)):
            return "total"
        is_paired = self._is_paired(index)
        if total == 0:
            return "arm" if is_paired else "total"
        if (
            is_paired
            and total == self.arm_sums[mention.total_key]
            and self.last_arm_sentence == first
        ):
            return "arm"
        if mention.value >= total or ((near | ahead) & _WORDS["whole"] and not is_paired):
            return "total"
        if verb in ("have", "has", "had"):
            return None
        return "arm" if is_paired or self._words(first, end) & _WORDS["grouped"] else None

    def _has_event(self, index: int) -> bool:
        """Return whether an event before a number happened to those that it counts."""
        mention = self.mentions[index]
        ahead = self.tokens.ahead(mention.first, 4)
        return mention.family is not None and _FORM["event"].search(ahead) is not None

    def _continues(self, index: int) -> bool:
        """Return whether a number is worded like the one before it in a sentence.

        In "relapse occurred in 20 patients on A and 35 patients on B", both count an outcome.
        """
        mentions = self.mentions[index - 1 : index + 1]
        before = {self.tokens.word(mention.first - 1) for mention in mentions}
        behind = {self.tokens.word(mention.after) for mention in mentions}
        is_alike = len(before) == 1 or (len(behind) == 1 and not behind & _WORDS["auxiliary"])
        return is_alike and self._is_paired(index)

    def _is_outcome(self, index: int) -> bool:
        """Return whether people with an event are a part of others: of a share, or of a group."""
        mention = self.mentions[index]
        is_share = mention.share or _FORM["share_after"].match(self.tokens.behind(mention.after, 5))
        has_larger = any(
            other.family in _STUDIED and other.value > mention.value for other in self.mentions
        )
        return bool(is_share) or has_larger or self._is_paired(index)

    def _is_pool(self, index: int) -> bool:
        """Return whether a sample was selected from this number.

        In "402 adults were screened and 306 were enrolled", 402 is the pool.
        """
        mention = self.mentions[index]
        first, end = self._sentence(mention)
        smaller = [other for other in self.mentions[index + 1 :] if other.value < mention.value]
        later = [other for other in smaller if other.first < end]
        clause_end = min(
            end, mention.after + 20, *(other.first - (other.form == "sample") for other in later)
        )
        start = mention.after if mention.form == "sample" and not mention.unit else mention.first
        clause = (
            _FORM["clause_ends"].split(self.tokens.behind(start, clause_end - start))[0].split()
        )
        ahead = self.tokens.words[max(first, mention.first - 6) : mention.first]
        words = {*clause, *(() if "," in ahead or mention.form == "sample" else ahead)}
        if words & _WORDS["gathered"]:
            return False
        # The sample is stated in the same sentence, or in the next one that refers back to it.
        after = next((sentence for sentence in self.sentences if sentence[0] == end), (end, end))[1]
        samples = [other for other in smaller if other.form == "sample"]
        samples = [
            other for other in samples if other.first < (after if self._refers_back(other) else end)
        ]
        if any(
            self.tokens.word(other.after - 1) in _WORDS["replied"] or self._refers_back(other)
            for other in samples
        ):
            return True
        if words & _WORDS["pool"] or not words & _WORDS["possible"]:
            return bool(words & _WORDS["pool"])
        enrolment_words = _WORDS["gathered"] | _WORDS["replied"]
        return bool(samples) or any(
            other.form == "groups" or self._words(other.after, other.after + 3) & enrolment_words
            for other in later
        )

    def _is_first_part(self, index: int) -> bool:
        """Return whether another part follows, as in "a total of 267 men and 220 women"."""
        mention, following = self.mentions[index], self.mentions[index + 1 : index + 2]
        return any(
            mention.form == "sample"
            and other.family == mention.family == "people"
            and other.unit != mention.unit
            and self.tokens.words[mention.after : other.first] == ["and"]
            and {mention.unit, other.unit} & (_WORDS["sexes"] | _WORDS["control"])
            for other in following
        )

    def _refers_back(self, mention: SizeMention) -> bool:
        """Return whether a number is a part of the one before ("of whom 1,805 enrolled")."""
        around = (
            f"{self.tokens.ahead(mention.first, 3)} | {self.tokens.behind(mention.first + 1, 2)}"
        )
        return _FORM["from_these"].search(around) is not None

    def _is_sum(self, index: int) -> bool:
        """Return whether numbers soon after this one add up to it.

        An example is "88 patients, 45 in one arm, 43 in the other".
        """
        mention = self.mentions[index]
        end = self._sentence(mention)[1]
        parts = [other.value for other in self.mentions[index + 1 : index + 6] if other.first < end]
        sums = [sum(parts[:count]) for count in range(2, len(parts) + 1)]
        if mention.value in sums:
            return True
        # "120 were randomized; 58 received A and 60 received B": some left before the count.
        near = self._words(mention.after, mention.after + 4)
        if near & _WORDS["entered"] and any(
            _LEAST_FOLLOWED * mention.value <= total < mention.value for total in sums
        ):
            return True
        later = self.tokens.numerals(mention.after, mention.after + _MAX_PARTS_DISTANCE)
        runs = [
            later[start : start + count] for start in range(len(later) - 1) for count in range(2, 6)
        ]
        # Parts without a unit count too, but only within one sentence, and not if one of them is 1.
        return mention.value >= _MIN_SUM and any(
            sum(part.value for part in run) == mention.value
            and min(run).value > 1
            and not any(run[0].first < first <= run[-1].first for first, _ in self.sentences)
            for run in runs
        )

    def _is_paired(self, index: int) -> bool:
        """Return whether another number in the sentence counts another group of the same kind."""
        mention = self.mentions[index]
        first, end = self._sentence(mention)
        if (
            self.tokens.word(mention.first - 1) in ("of", "among", "amongst")
            and mention.first < first + 4
        ):
            return False
        neighbors = (
            *self.mentions[max(0, index - 2) : index],
            *self.mentions[index + 1 : index + 3],
        )
        return any(
            self._are_two_groups(*sorted((mention, other), key=lambda either: either.first))
            for other in neighbors
            if other.form in ("noun", "bare", "n")
            and not other.share
            and first <= other.first < end
        )

    def _are_two_groups(self, first: SizeMention, second: SizeMention) -> bool:
        """Return whether two numbers of a sentence, in order, count two groups of the same kind."""
        words_between, forms = (
            self.tokens.words[first.after : second.first],
            {first.form, second.form},
        )
        between = frozenset(words_between)
        before = [self.tokens.word(mention.first - 1) for mention in (first, second)]
        behind = [self.tokens.word(mention.after) for mention in (first, second)]
        if "n" in forms and not (between & _WORDS["control"] and len(forms) == 2):
            return False
        if first.value == second.value and {"all", "these"} & set(before):
            return False
        are_alike = (
            before[0] == before[1]
            or behind[0] == behind[1]
            or bool(_WORDS["named_group"] & set(before))
        )
        are_alike = are_alike or _repeats_number(
            words_between, self.tokens.words[second.after : second.after + 2]
        )
        is_loose = ";" in between or not between & _WORDS["coordinating"] - {","}
        if (is_loose and forms == {"bare", "noun"} and not are_alike) or _FORM["from_these"].search(
            " ".join(words_between[-4:])
        ):
            return False
        # "Ten clinics with 48 patients": units of units aren't groups next to each other.
        is_nested = (
            first.unit != second.unit and len(_WORDS["of_several"] & {first.unit, second.unit}) == 1
        )
        # In "five (three women, ...)", the second number is a part of the first.
        is_inside = "n" not in forms and "(" in between and ")" not in between
        # In "one school (360 pupils); another (340 pupils)", each has brackets of its own.
        have_own_brackets = {"(", ")"} <= between
        are_joined = have_own_brackets or (
            (between & _WORDS["joining"] or are_alike) and not is_inside
        )
        return bool(
            first.total_key == second.total_key
            and not is_nested
            and are_joined
            and not between & _WORDS["pool"]
        )

    def _sentence(self, mention: SizeMention) -> tuple[int, int]:
        return next(sentence for sentence in self.sentences if mention.first < sentence[1])

    def _words(self, first: int, after: int) -> frozenset[str]:
        return frozenset(self.tokens.words[max(0, first) : after])
