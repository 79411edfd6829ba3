"""Words, sentences and word lists: how the verifier reads a text.

Offsets are positions in the text they were read from. The stemmer is deliberately crude: it only has to bring the
forms of a word together, and both sides of a comparison go through it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

WORD_LISTS = Path(__file__).resolve().parents[2] / "masis" / "offline" / "text"
"""Where `synonyms.txt` and `antonyms.txt` are: the lists of the product's own offline auditor."""
MAX_SENTENCE_WORDS = 60
"""A sentence with more words is cut into several."""

WORD = re.compile(r"\d++(?:[.,]\d++)*+[^\W\d_]{0,3}+(?![^\W_])|[^\W_]++(?:['’][^\W\d_]++)?")
PLAIN_WORD = re.compile(r"\w{3,}")
_STOP = frozenset(
    """a an the this that these those there here it its itself he him his himself she her hers herself they them their
    theirs themselves we us our ours ourselves you your yours i my me mine who whom whose which what when where why how
    be is are was were been being am do does did done doing have has had having will would shall should can could may
    might must of in on at by for with from to into onto upon about over under between among through during within
    across against along around as than then so such if or and but nor both either neither each every any all some also
    too very just even more most much many same other another because since while although though however therefore
    thus hence moreover furthermore whether until unless after before again further once out off up down per via et al
    etc eg ie s t don't doesn't didn't isn't aren't wasn't weren't won't can't couldn't hasn't haven't hadn't one ones
    like well still rather quite often usually not no""".split()
)
_WEAK = frozenset(
    """use used uses using make made makes include included includes including provide provides provided various several
    certain different important significant significantly overall general generally typically common commonly known
    called term refers based due help helps thing things way ways type types kind form part example case cases fact
    result results lead leads become became new also time times year years people person group according says said say
    state stated mention mentioned describe described report reported show shows shown suggest suggests main major
    specific particular potential possible likely involve involves contain contains consider take takes taken give
    given role factor factors effect effects impact process level levels area areas""".split()
)
_ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen""".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
NUMERALS = {word: float(n) for n, word in enumerate(_ONES)} | {w: 10.0 * n for n, w in enumerate(_TENS, 2)}
MAGNITUDES = {
    "hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "billion": 1e9, "bn": 1e9, "trillion": 1e12,
    "tn": 1e12, "lakh": 1e5, "crore": 1e7,
}  # fmt: skip
_IRREGULAR = {
    form: base
    for base, forms in {
        "lead": "led", "go": "went gone goes", "come": "came", "rise": "rose risen", "fall": "fell fallen",
        "grow": "grew grown growth", "win": "won winner", "lose": "lost loss", "hold": "held", "take": "took",
        "write": "wrote written", "begin": "began begun", "buy": "bought", "sell": "sold sale sales", "build": "built",
        "find": "found", "leave": "left", "tell": "told", "send": "sent", "pay": "paid", "meet": "met", "run": "ran",
        "break": "broke broken", "choose": "chose chosen choice", "drive": "drove driven", "know": "knew",
        "see": "saw seen", "speak": "spoke spoken", "teach": "taught", "think": "thought", "bring": "brought",
        "child": "children", "man": "men", "woman": "women", "foot": "feet", "die": "died dies dying death dead",
        "bear": "born bore", "keep": "kept", "spend": "spent", "strike": "struck", "draw": "drew drawn",
        "fly": "flew flown", "eat": "ate eaten", "analysis": "analyses analyse analysed analyze analyzed analyzing",
    }.items()
    for form in forms.split()
}  # fmt: skip
_DERIVED = """ization isation ational fulness iveness ations ation ition ement ments ment ness ities ity ingly edly ally
    ably ibly ily ly ance ence ancy ency able ible ical ions ion ive ial ous ful ist ism ic al er or en an""".split()
_VOWEL = re.compile(r"[aeiouy]")
_VERBAL = ("ing", "ed", "ly", "es", "ize", "ise", "ate", "ify")


class Word(NamedTuple):
    """A word at ``text[start:end]``, its stem, and its weight in an overlap (0 for a function word)."""

    start: int
    end: int
    text: str
    stem: str
    weight: float


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the common root of a word's forms in lower case; numbers lose their separators."""
    lower = word.lower()
    if lower[0].isdigit():
        digits = re.match(r"[\d.,]+", lower)
        head = digits.group() if digits else lower
        rest, plain = lower[len(head) :], head.replace(",", "")
        plain = plain.rstrip("0").rstrip(".") if plain.count(".") == 1 else plain.rstrip(".")
        return plain if rest in ("", "st", "nd", "rd", "th", "s") else plain + rest
    lower = re.split("['’]", lower, maxsplit=1)[0] or lower
    if lower in NUMERALS and lower != "one":
        return str(int(NUMERALS[lower]))
    lower = _IRREGULAR.get(lower, lower)
    if not 3 < len(lower) <= 40:
        return lower
    if lower.endswith("ies") and len(lower) > 4:
        lower = lower[:-3] + "y"
    elif lower.endswith(("sses", "shes", "ches", "xes", "zes")):
        lower = lower[:-2]
    elif lower.endswith("s") and not lower.endswith(("ss", "us", "is")):
        lower = lower[:-1]
    if lower.endswith("ied") and len(lower) > 4:
        lower = lower[:-3] + "y"
    for suffix in ("ing", "ed"):
        root = lower[: -len(suffix)]
        if lower.endswith(suffix) and len(root) >= 3 and _VOWEL.search(root):
            lower = root[:-1] if root[-1] == root[-2] and root[-1] not in "lsz" else root
            break
    for suffix in _DERIVED:
        if lower.endswith(suffix) and len(lower) - len(suffix) >= 4:
            lower = lower[: -len(suffix)]
            break
    lower = lower[:-1] if lower.endswith("e") and len(lower) > 3 else lower
    return lower[:-1] + "i" if lower.endswith("y") and len(lower) > 3 else lower


@lru_cache(maxsize=65536)
def _weight(word: str) -> float:
    lower = word.lower()
    if word[0].isdigit():
        return 1.5
    if lower in _STOP or (len(word) == 1 and not word.isupper()):
        return 0.0
    if lower in _WEAK:
        return 0.4
    return 1.3 if word != lower or lower in NUMERALS else 1.0


def words(text: str) -> list[Word]:
    """Return the words of a text, in order."""
    return [Word(*m.span(), m.group(), stem(m.group()), _weight(m.group())) for m in WORD.finditer(text)]


_BREAK = re.compile(r"[.!?]+[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[A-Z0-9])|\n+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Z]|al|approx|ca|cf|dr|e\.g|eg|fig|figs|i\.e|jr|mr|mrs|ms|no|nos|prof|sr|st|vs|inc|ltd|co|u\.s|u\.k"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec))\.$",
    re.IGNORECASE,
)


def sentences(text: str) -> list[tuple[int, int]]:
    """Return the offsets of the sentences of a text; long ones are cut after `MAX_SENTENCE_WORDS` words."""
    cuts, start = [], 0
    for boundary in _BREAK.finditer(text):
        head = text[start : boundary.start() + 1]
        if text[boundary.start()] == "." and _ABBREVIATION.search(head[-12:]):
            continue
        cuts.append((start, boundary.end()))
        start = boundary.end()
    cuts.append((start, len(text)))
    result = []
    for begin, end in cuts:
        spans = [match.span() for match in WORD.finditer(text, begin, end)]
        for first_word in range(0, len(spans), MAX_SENTENCE_WORDS):
            next_word = first_word + MAX_SENTENCE_WORDS
            piece_start = begin if first_word == 0 else spans[first_word][0]
            piece_end = end if next_word >= len(spans) else spans[next_word][0]
            body = text[piece_start:piece_end]
            indent = len(body) - len(body.lstrip())
            result.append((piece_start + indent, piece_start + len(body.rstrip())))
    return result


class Lexicon:
    """Groups of synonyms and pairs of antonyms, by stem."""

    def __init__(self, synonyms: str = "", antonyms: str = "") -> None:
        """Parse both lists.

        Args:
            synonyms: One group of words a line.
            antonyms: Two groups a line, divided by ``|``.

        """
        self.groups: dict[str, tuple[int, ...]] = {}
        for number, line in enumerate(word_list_lines(synonyms)):
            for root in dict.fromkeys(_stems(line)):
                self.groups[root] = (*self.groups.get(root, ()), number)
        self.opposites: dict[str, set[str]] = {}
        for line in word_list_lines(antonyms):
            left, right = (set(_stems(side)) for side in line.split("|"))
            for a, b in ((left, right), (right, left)):
                for root in a - b:
                    self.opposites.setdefault(root, set()).update(b - a)

    @classmethod
    def load(cls, folder: Path = WORD_LISTS) -> Lexicon:
        """Read both lists from a folder."""
        return cls(*((folder / name).read_text(encoding="utf-8") for name in ("synonyms.txt", "antonyms.txt")))

    def keys(self, root: str) -> tuple[str, ...]:
        """Return the keys that related stems share: the first five letters, and the synonym groups."""
        prefix = (f"~{root[:5]}",) if len(root) > 5 and not root[0].isdigit() else ()
        return (*prefix, *(f"={n}" for n in self.groups.get(root, ())))


def word_list_lines(text: str) -> list[str]:
    """Return the lines of a word list that are neither empty nor comments."""
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def _stems(line: str) -> list[str]:
    return [stem(word) for word in line.split() if "_" not in word and "-" not in word]
