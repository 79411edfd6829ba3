"""How many were studied: the sample sizes an abstract states, and the one the study rests on.

What counts as a sample size is the codebook of docs/sample-sizes.md. Numbers of units are found in ``sample_mentions``;
this module decides which of them are sizes of the whole study (``total``), of a part of it (``arm``), or the larger
number a part is counted in (``of``), and which only count those who had an outcome.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from masis.schema.screening import SampleSize
from masis.screening.grading.sample_mentions import (
    Family,
    Mention,
    Token,
    family_of,
    mentions,
    numerals,
    tokens_lower,
    tokens_of,
)

# Which numbers of units are sample sizes: of the whole study, of a part of it, or what a part is counted in.
#
# The kinds are those of the codebook in docs/sample-sizes.md. Those who had an outcome are distinguished from those who
# were studied by the words around the number, and by the total that stands before it.

Kind = Literal["total", "arm", "of"]

_TAKEN_IN = frozenset(
    """included enrolled recruited randomized randomised studied participated assigned allocated analyzed analysed
    examined evaluated entered selected treated assessed followed investigated tested interviewed surveyed took
    completed complete finished divided consented eligible identified found reviewed collected obtained
    available comprised participating consecutive diagnosed admitted undergoing underwent received scanned
    observed measured compared completing involving met""".split()
)
"""Words by a number that say these were taken into the study, or stayed in it."""
_WHOLE = frozenset(
    """included enrolled recruited randomized randomised analyzed analysed completed complete finished completing
    entered participated available consented final total involving""".split()
)
"""Words by a number that is smaller than the study's own and yet of all: those left at the end."""
_POOL = frozenset("screened invited approached contacted retrieved mailed returned yielded".split())
"""Words behind a number that a sample was drawn from."""
_POOL_OF_STUDIES = frozenset("screened retrieved yielded returned duplicates resulted initial initially".split())
"""Words before a number of studies that those included were chosen from."""
_OUTCOMES = frozenset(
    """died developed experienced showed reported improved required exhibited relapsed recovered dropped withdrew
    discontinued responded achieved suffered demonstrated remained became survived complained had have has were was
    presented failed reached displayed needed deteriorated stopped fulfilled developing responding""".split()
)
"""Words behind a number of those who had something."""
_SEEN = frozenset(
    """found observed seen detected noted occurred present positive abnormal resolved improved reported evident achieved
    identified obtained normal""".split()
)
"""Words before "in 12 patients" that say what was found in them."""
_GROUPED = frozenset(
    """group groups arm arms control controls healthy placebo sham versus vs received receiving assigned allocated
    matched comparison either respectively randomized randomised intervention treated cohort compared normal normals
    normotensive vehicle model models divided subgroup subgroups underwent""".split()
)
"""Words in the sentence of a number of one group."""
_CONTROLS = frozenset("controls control healthy normal normals comparison unaffected".split())
_REVIEWED = frozenset(
    """review reviews reviewed meta systematic systematically literature search searched searches medline pubmed embase
    databases cochrane pooled eligible inclusion""".split()
)
"""Words of an abstract whose studies are what it studies."""


_EARLIER = frozenset("previous prior earlier another other published".split())
_STUDIED = frozenset(
    "trial trials study studies report reports series cohort cohorts review reviews meta research work".split()
)
_ONLY_PLANNED = frozenset("planned required needed calculated necessary intended".split())
"""Words behind a sample size that was aimed at."""
_JOINING = frozenset("and versus vs with to or , plus another".split())
"""Words between the numbers of two groups."""


class Sentence(NamedTuple):
    """A sentence as the tokens from ``first`` up to ``after``."""

    first: int
    after: int


@dataclass(frozen=True, slots=True)
class SampleSizeMention:
    """A mention that is a sample size, and of which kind."""

    mention: Mention
    kind: Kind
    arm: str | None = None


class MentionClassifier:
    """Decides about the mentions of one abstract, in order: a later one is read in the light of the earlier."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.sentences = _sentences(text, tokens)
        self.is_review = sum(token.lower in _REVIEWED for token in tokens) >= 2
        self.whole: dict[Family | None, int] = {}
        """The greatest total so far, by family."""
        self.arms: dict[Family | None, int] = {}
        """The sum of the groups so far, by family."""
        self.repeated: list[Mention] = []
        """Groups of the size of another one: a value is listed once, and counts in the sum."""

    def decide(self, found: Sequence[Mention]) -> tuple[SampleSizeMention, ...]:
        """Return what each mention is; those that are no sample size are left out."""
        several_n = sum(mention.form == "n" and not mention.share for mention in found) > 1
        counted: list[SampleSizeMention] = []
        counted_values: set[tuple[int, Family | None]] = set()
        for index, mention in enumerate(found):
            if (mention.value, _shared(mention.family)) in counted_values:
                if mention.form == "n" and not mention.share and several_n:
                    self.repeated.append(mention)
                continue
            kind = None if self._is_of_others(mention) else self._kind(mention, found, index, several_n)
            if kind is None:
                continue
            counted_values.add((mention.value, _shared(mention.family)))
            counted.append(SampleSizeMention(mention, kind, self._arm(mention) if kind == "arm" else None))
            family = _shared(mention.family)
            if kind == "arm":
                self.arms[family] = self.arms.get(family, 0) + mention.value
            if kind == "total":
                self.whole[family] = max(self.whole.get(family, 0), mention.value)
                counted.extend(self._parts(mention, found))
        return tuple(sorted(counted, key=lambda item: item.mention.first))

    def _kind(self, mention: Mention, found: Sequence[Mention], index: int, several_n: bool) -> Kind | None:
        if (mention.family == "studies" and not self.is_review) or (mention.family == "other" and mention.value < 3):
            return None
        if mention.form == "of":
            return "of" if mention.value >= 3 else None
        if mention.form == "groups":
            return "arm"
        if mention.form == "sample":
            return "total"
        if mention.form == "n":
            return self._kind_of_n(
                mention, several_n, [other.value for other in found[index + 1 :] if other.form == "n"]
            )
        if mention.form == "bare":
            return "arm" if self._is_paired(mention, found, index, self._sentence(mention)) else None
        return self._kind_of_noun(mention, found, index)

    def _is_of_others(self, mention: Mention) -> bool:
        """Return whether a number is of a study elsewhere ("a previous trial of 1,500"), or was only planned."""
        sentence = self._sentence(mention)
        before = [token.lower for token in self.tokens[sentence.first : mention.first]]
        before = before[before.index(";") + 1 :] if ";" in before else before
        after = [token.lower for token in self.tokens[mention.after : min(sentence.after, mention.after + 8)]]
        after = after[: after.index(";")] if ";" in after else after
        if before[:1] == ["previously"] or any(
            word in _EARLIER and following in _STUDIED for word, following in pairwise(before)
        ):
            return True
        literature = "literature" in after or any(
            pair
            in (("previously", "reported"), ("been", "reported"), ("been", "described"), ("previously", "described"))
            for pair in pairwise(after)
        )
        return literature or (mention.form == "sample" and bool(_ONLY_PLANNED.intersection(after[:4])))

    def _kind_of_n(self, mention: Mention, several: bool, later: Sequence[int]) -> Kind | None:
        if mention.share or self._is_event(mention):
            return None
        ahead = self._words(max(0, mention.first - 4), mention.first)
        if ahead & {"sample", "total", "overall"} and not ahead & _GROUPED:
            return "total"
        if any(sum(later[:count]) == mention.value for count in range(2, min(6, len(later) + 1))):
            return "total"
        whole = max(self.whole.values(), default=0)
        return "arm" if several or whole > mention.value else "total"

    def _is_event(self, mention: Mention) -> bool:
        """Return whether "n = 19" stands behind an outcome and not behind a group: "deaths (n = 19)"."""
        ahead = tokens_lower(self.tokens, mention.first - 2)
        return ahead in ("deaths", "death", "rate", "events", "event", "complications", "strokes", "relapses")

    def _kind_of_noun(self, mention: Mention, found: Sequence[Mention], index: int) -> Kind | None:
        sentence = self._sentence(mention)
        near = self._words(mention.after, min(sentence.after, mention.after + 10))
        ahead = self._words(max(sentence.first, mention.first - 4), mention.first)
        whole = max(counts.get(_shared(mention.family), 0) for counts in (self.whole, self.arms))
        verb = _first_verb(self.tokens, mention.after, sentence.after)
        opens = tokens_lower(self.tokens, sentence.first) == "of" and mention.first <= sentence.first + 2
        drawn = any(each.form == "sample" for each in found[index + 1 :] if each.first < sentence.after)
        if (opens and drawn) or verb in _POOL or (mention.family == "studies" and ahead & _POOL_OF_STUDIES):
            return "of"
        if whole and self._words(mention.first, mention.after) & _CONTROLS:
            return "arm"
        paired = self._is_paired(mention, found, index, sentence)
        if mention.share and not near & _WHOLE:
            return None
        if whole == 0:
            return "arm" if paired else "total"
        if mention.value >= whole:
            return "total" if mention.value > whole else "of" if "of" in ahead else "total"
        if (near | ahead) & _WHOLE and not paired:
            return "total"
        if verb in _OUTCOMES and (verb not in ("was", "were") or not paired):
            return None
        if "in" in ahead and self._words(max(sentence.first, mention.first - 7), mention.first) & _SEEN:
            return None
        words = self._words(sentence.first, sentence.after)
        if paired or words & _GROUPED:
            return "arm"
        return None

    def _is_paired(self, mention: Mention, found: Sequence[Mention], index: int, sentence: Sentence) -> bool:
        """Return whether another number of the same sentence counts another group of the same kind."""
        for other in (*found[max(0, index - 2) : index], *found[index + 1 : index + 3]):
            if other.form not in ("noun", "bare") or other.share or not sentence.first <= other.first < sentence.after:
                continue
            if _shared(other.family) != _shared(mention.family):
                continue
            between = self._words(min(mention.after, other.after), max(mention.first, other.first))
            inside = "(" in between and ")" not in between  # the parts of the one before: "five (three women, ...)"
            if between & _JOINING and not between & _POOL and not inside:
                return True
        return False

    def _parts(self, total: Mention, found: Sequence[Mention]) -> list[SampleSizeMention]:
        """Return the groups named in brackets behind a total: "259 patients (128 nimodipine, 131 placebo)"."""
        opens = next(
            (at for at in range(total.after, min(len(self.tokens), total.after + 12)) if self.tokens[at].lower == "("),
            None,
        )
        if opens is None:
            return []
        closes = next(
            (at for at in range(opens, min(len(self.tokens), opens + 40)) if self.tokens[at].lower == ")"), opens
        )
        counted_values = {mention.first for mention in found}
        parts = [
            numeral
            for numeral in numerals(self.tokens[opens:closes])
            if tokens_lower(self.tokens, opens + numeral.after)[:1].isalpha() and numeral.value > 0
        ]
        if len(parts) < 2 or sum(part.value for part in parts) != total.value:
            return []
        return [
            SampleSizeMention(
                Mention(part.value, "noun", opens + part.first, opens + part.after + 1, family=total.family),
                "arm",
                tokens_lower(self.tokens, opens + part.after),
            )
            for part in parts
            if opens + part.first not in counted_values
        ]

    def _arm(self, mention: Mention) -> str | None:
        """Return what the abstract calls the group: the words between number and unit, or before "(n = 48)"."""
        if mention.form == "groups":
            return "per group"
        if mention.form == "noun":
            named = self.tokens[mention.first + 1 : mention.after]
            return " ".join(token.lower for token in named) or None
        opens = mention.first - 1
        if tokens_lower(self.tokens, opens) not in ("(", "["):
            return None
        words: list[str] = []
        for at in range(opens - 1, max(-1, opens - 4), -1):
            lower = tokens_lower(self.tokens, at)
            if not lower[:1].isalnum() or lower in ("and", "or", "the", "a", "of", "with", "in", "to", "versus", "vs"):
                break
            words.append(lower)
        return " ".join(reversed(words)) or None

    def _sentence(self, mention: Mention) -> Sentence:
        return next(sentence for sentence in self.sentences if mention.first < sentence.after)

    def _words(self, first: int, after: int) -> frozenset[str]:
        return frozenset(token.lower for token in self.tokens[first:after])


def _shared(family: Family | None) -> Family | None:
    """Return the family that shares a total with this one: people, animals and unnamed units share, others don't."""
    return None if family in ("people", "animals") else family


def _first_verb(tokens: Sequence[Token], at: int, limit: int) -> str:
    """Return the first word of the lists that stands behind a number and its unit, within a few words."""
    for token in tokens[at : min(limit, at + 8)]:
        if token.lower in _TAKEN_IN or token.lower in _OUTCOMES or token.lower in _POOL:
            return token.lower
    return ""


def _sentences(text: str, tokens: Sequence[Token]) -> tuple[Sentence, ...]:
    """Return where sentences end: a full stop, a question mark or a semicolon before a capital or the end."""
    found: list[Sentence] = []
    first = 0
    for at, token in enumerate(tokens):
        following = tokens[at + 1] if at + 1 < len(tokens) else None
        ends = token.lower in (".", "?", "!") and (following is None or not text[following.start].islower())
        if ends or following is None:
            found.append(Sentence(first, at + 1))
            first = at + 1
    return tuple(found)


# The sample of one: "a 49-year-old woman", "we report a patient", "the case of a child".

_ONE = (
    r"patient|man|woman|child|boy|girl|infant|adolescent|male|female|person|newborn|neonate|lady|gentleman|adult|"
    r"teenager|baby|toddler|mother|veteran|student|soldier|case|fetus"
)
_OLD = r"(?:\d{1,3}|[a-z]{3,9})[-‐–\s](?:year|yr|month|week|day)s?[-‐–\s]old"
_WORDS = r"(?: [\w'’-]{1,30})"
_TELL = "report|describe|present|experienced|encountered|treated|observed|saw"
_PATTERNS = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        rf"\b(?:an?|the|this|one|single|our){_WORDS}{{0,3}} {_OLD}\b(?:,?{_WORDS}){{0,4}}? (?:{_ONE})\b",
        rf"\b(?:an?|the|this|one|our) {_OLD}\b",
        rf"\b(?:{_TELL})\w{{0,3}}(?: here| on)? (?:an?|the|one){_WORDS}{{0,5}}? (?:{_ONE})\b",
        rf"\b(?:an?|the){_WORDS}{{0,3}} case (?:report )?of\b",
        rf"\bcase (?:report|history) of an?\b{_WORDS}{{0,4}}? (?:{_ONE})\b",
        rf"\ban?{_WORDS}{{0,4}}? (?:{_ONE}) (?:is|was|who (?:was )?) ?(?:reported|described|presented|admitted)\b",
    )
)
_SET_PHRASE = re.compile(r"\bcase[- ](?:control|series)|\bin the case of\b", re.I)


def single_case(text: str, tokens: Sequence[Token]) -> Mention | None:
    """Return the first mention of the single case an abstract is about; None where it doesn't."""
    found = [match for pattern in _PATTERNS if (match := _first(pattern, text))]
    if not found:
        return None
    match = min(found, key=lambda match: match.start())
    first = next(index for index, token in enumerate(tokens) if token.end > match.start())
    after = next((index for index, token in enumerate(tokens) if token.start >= match.end()), len(tokens))
    return Mention(1, "single", first, after, "patient", "people")


def _first(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the first match that is not part of a set phrase."""
    for match in pattern.finditer(text):
        if not _SET_PHRASE.search(text[max(0, match.start() - 8) : match.end() + 8]):
            return match
    return None


__all__ = ["family_of", "sample_sizes", "study_size"]

READ = 20_000
"""How many characters of an abstract are read."""


def sample_sizes(text: str) -> tuple[SampleSize, ...]:
    """Return all sample sizes that an abstract states, in order; offsets are characters of ``text``."""
    return _read(text)[0]


def study_size(text: str) -> SampleSize | None:
    """Return the size that the study rests on; None where none is stated.

    The first total of people or animals that is not the rest of a greater one; else the studies of a review; else the
    sum of its groups; else a single group, or the whole that a part is counted in (``kind`` says so).
    """
    return _read(text)[1]


@lru_cache(maxsize=256)
def _read(text: str) -> tuple[tuple[SampleSize, ...], SampleSize | None]:
    """Read both at once: callers ask for both of the same text."""
    text = text[:READ]
    tokens = tokens_of(text)
    found = mentions(tokens, numerals(tokens))
    reader = MentionClassifier(text, tokens)
    counted = reader.decide(found)
    one = single_case(text, tokens) if not _has_people(counted) else None
    if one:
        counted = (SampleSizeMention(one, "total"), *counted)
    sizes = tuple(_size(item, tokens) for item in counted)
    rests = _rests_on(counted)
    if rests is None or rests.kind != "arm":
        return sizes, None if rests is None else _size(rests, tokens)
    return sizes, _of_arms(rests, counted, reader)


_GROUP_NOUNS = frozenset("groups arms".split())


def _of_arms(rests: SampleSizeMention, counted: Sequence[SampleSizeMention], reader: MentionClassifier) -> SampleSize:
    """Return the size of a study that states its groups alone: their sum; "10 per group" by the number of groups."""
    mention, tokens = rests.mention, reader.tokens
    size = _size(rests, tokens)
    if mention.form == "groups":
        groups = [
            each.value
            for each in numerals(tokens)
            if 1 < each.value < 13 and _GROUP_NOUNS & {tokens_lower(tokens, each.after + on) for on in range(3)}
        ]
        return size.model_copy(update={"value": size.value * max(groups, default=2), "kind": "total"})
    arms = [*reader.repeated, *(each.mention for each in counted if each.kind == "arm")]
    arms = [each for each in arms if each.form != "groups" and _shared(each.family) == _shared(mention.family)]
    if len(arms) < 2:
        return size
    first, last = min(arms, key=lambda each: each.first), max(arms, key=lambda each: each.after)
    return size.model_copy(
        update={
            "value": sum(each.value for each in arms),
            "kind": "total",
            "start": tokens[first.first].start,
            "end": tokens[last.after - 1].end,
        }
    )


def _size(item: SampleSizeMention, tokens: Sequence[Token]) -> SampleSize:
    mention = item.mention
    return SampleSize(
        value=mention.value,
        unit=mention.unit,
        arm=item.arm,
        kind=item.kind,
        start=tokens[mention.first].start,
        end=tokens[mention.after - 1].end,
    )


def _has_people(counted: Sequence[SampleSizeMention]) -> bool:
    return any(item.kind != "of" and item.mention.family in ("people", "animals", None) for item in counted)


def _rests_on(counted: Sequence[SampleSizeMention]) -> SampleSizeMention | None:
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
        matching = [item for item in counted if item.kind == kind and item.mention.family in among]
        if matching:
            return max(matching, key=lambda item: item.mention.value)
    return None
