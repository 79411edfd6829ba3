"""Splits a text into tokens, and gives each its stem and weight.

Stems are the same for inflected forms ("acquired", "acquires"). Weights separate content words from
function words. Synonyms come from `synonyms.txt`. There is no grammar. All functions are linear in
the length of the text.
"""

import re
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple
from unicodedata import combining, normalize

from masis.audit.text.comparison import LIGATURES, NUMBER_WORDS

# Matches a word with an optional apostrophe ("don't", "firm's"), or a number with its separators
# ("1,234.5"). "well-known" is two words, and a final point isn't part of a number.
# Possessive quantifiers (`++`) keep the scan linear on hostile input such as "1.1.1.1...".
WORD = re.compile(r"\d++(?:[.,]\d++)++|[^\W_]++(?:['’][^\W\d_]++)?")

STOPWORDS = frozenset(
    """
        a an the this that these those there here it its itself he him his she her hers they them
        their theirs we us our ours you your yours i me my mine who whom whose which what when where
        why how be is are was were been being am do does did done doing have has had having will
        would shall should can could may might must of in on at by for with from to into onto upon
        about above below over under between among through during within without across against
        along around as than then so such if or and but nor not no yet both either neither each
        every any all some also too very just only even more most much many less least few own same
        other another because since while although though however therefore thus hence moreover
        furthermore additionally while whereas whether until unless after before again further once
        out off up down per via et al etc e.g i.e s t don't doesn't didn't isn't aren't wasn't
        weren't won't wouldn't can't cannot couldn't shouldn't hasn't haven't hadn't it's that's
        there's they're we're you're he's she's i'm one ones like well now still rather quite often
        usually one's let lets get gets got
    """.split()
)

# Content words that say little about the subject, so they have less weight than others.
WEAK_WORDS = frozenset(
    """
        use used uses using make makes made include includes included including provide provides
        provided various several certain different important significant significantly overall
        general generally typically common commonly known called term refers refer based due help
        helps thing things way ways type types kind form part number example examples case cases
        fact result results lead leads found find become became new high low good great large small
        long first also time times year years people person group become becomes according says said
        say state states stated mention mentioned mentions describe described discuss discussed note
        noted report reported show shows shown suggest suggests main major specific particular
        particularly potential possible likely ensure involve involves involved include contain
        contains consider considered need needs take takes taken give gives given go goes come comes
        work works aim aims allow allows role factor factors effect effects impact process level
        levels area areas
    """.split()
)

# Words before an apostrophe in contractions ("I'll", "there's"), which carry no content.
_CONTRACTED = frozenset("i you he she it we they who what that there here".split())
# Acronyms that count as names. Two of them are function words in lowercase (WHO, US).
_ACRONYMS = frozenset({"WHO", "US", "UK", "EU", "UN"})

_IRREGULAR = """
    lead: led; use: used uses using; add: added adding adds; go: went gone goes; come: came;
    rise: rose risen;
    fall: fell fallen; grow: grew grown growth; win: won winner; lose: lost loss; hold: held;
    make: made;
    take: took taken; give: gave given; write: wrote written; begin: began begun; become: became;
    buy: bought;
    sell: sold sale sales; build: built; find: found; leave: left; say: said; tell: told;
    send: sent; pay: paid;
    meet: met; run: ran; break: broke broken; choose: chose chosen choice; drive: drove driven;
    know: knew known;
    see: saw seen; speak: spoke spoken; teach: taught; think: thought; bring: brought;
    catch: caught; fight: fought;
    seek: sought; child: children; man: men; woman: women; foot: feet;
    die: died dies dying death dead;
    bear: born bore; shrink: shrank shrunk; keep: kept; lie: lay lain; stand: stood;
    understand: understood;
    spend: spent; strike: struck; steal: stole stolen; draw: drew drawn; fly: flew flown;
    throw: threw thrown;
    wear: wore worn; eat: ate eaten; drink: drank drunk; swim: swam swum; sing: sang sung;
    ring: rang rung;
    analysis: analyses analyse analysed analyze analyzed analyzing; criterion: criteria;
    phenomenon: phenomena;
    datum: data; medium: media; bacterium: bacteria; person: people persons; shoot: shot;
    deal: dealt; feel: felt;
    mean: meant; sleep: slept; forbid: forbade forbidden; beat: beaten; freeze: froze frozen;
    hide: hid hidden;
    arise: arose arisen; withdraw: withdrew withdrawn; undergo: underwent undergone; saint: st;
    oversee: oversaw overseen; succeed: success; decide: decision
"""
IRREGULAR = {
    form: base.strip()
    for base, _, forms in (entry.partition(":") for entry in _IRREGULAR.split(";"))
    for form in forms.split()
}
"""Irregular forms and the base word of each: "went" -> "go"."""
# Derivational suffixes, the longer ones first, so that "ization" isn't cut to "iz".

_DERIVED = tuple(
    """
        ization isation ational fulness iveness ations ation ition ement ments ment ness ities ity
        ingly edly ally ably ibly ily ly ance ence ancy ency able ible ical ions ion ive ial ous ful
        ist ism ic al er or en an
    """.split()
)
_VOWEL = re.compile(r"[aeiouy]")


class Token(NamedTuple):
    """A word at `text[start:end]`, with its stem and weight (0 for a function word)."""

    start: int
    end: int
    text: str
    stem: str
    weight: float


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the lowercase stem of a word: "acquires" -> "acquir".

    The stem of a number is its digits without separators: "1,200" -> "1200".
    """
    lower = word.lower()
    if not lower.isascii():
        # NFD removes accents ("café"). NFKD would also turn 10⁸ into 108.
        lower = (
            "".join(c for c in normalize("NFD", lower.translate(LIGATURES)) if not combining(c))
            or lower
        )
    if lower[0].isdigit():
        return _plain_number(lower)
    if "'" in lower or "’" in lower:
        lower = re.split("['’]", lower, maxsplit=1)[0]
    if lower in NUMBER_WORDS and lower != "one":
        return str(NUMBER_WORDS[lower])
    lower = IRREGULAR.get(lower, lower)
    if len(lower) <= 3 or len(lower) > 40:
        return lower
    return _remove_derivation(_remove_inflection(lower))


def _plain_number(text: str) -> str:
    """Return a number without separators and ordinal ending: "1,200.50" -> "1200.5"."""
    digits = re.match(r"[\d.,]+", text)
    rest = text[digits.end() :] if digits else ""
    plain = text[: len(text) - len(rest)].replace(",", "")
    if plain.count(".") == 1:
        plain = plain.rstrip("0").rstrip(".")
    return plain if rest in ("", "st", "nd", "rd", "th", "s") else plain + rest


def _remove_inflection(word: str) -> str:
    """Remove the ending of a plural, participle or past tense: "studies" -> "study"."""
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    if word.endswith("ied") and len(word) > 4:
        return word[:-3] + "y"
    for suffix in ("ing", "ed"):
        root = word[: -len(suffix)]
        if word.endswith(suffix) and len(root) >= 3 and _VOWEL.search(root):
            # A doubled consonant is undone: "stopped" -> "stop", but not "falling" -> "fal".
            return root[:-1] if root[-1] == root[-2] and root[-1] not in "lsz" else root
    return word


def _remove_derivation(word: str) -> str:
    """Remove a derivational suffix and a final "e", and turn a final "y" into "i"."""
    for suffix in _DERIVED:
        if word.endswith(suffix) and len(word) - len(suffix) >= 4:
            word = word[: -len(suffix)]
            break
    word = word[:-1] if word.endswith("e") and len(word) > 3 else word
    return word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word


def prefix_key(root: str) -> str | None:
    """Return the first five letters of a stem, which related words share, or None.

    "acquisit" and "acquir" have the key "acqui". Short stems and numbers have none.
    """
    return root[:5] if len(root) > 5 and not root[0].isdigit() else None


@cache
def synonym_keys() -> dict[str, tuple[str, ...]]:
    """Return the keys of the synonym groups of each stem: "=12" for a line of `synonyms.txt`."""
    text = (Path(__file__).parent / "synonyms.txt").read_text(encoding="utf-8")
    groups: dict[str, list[str]] = {}
    for number, line in enumerate(
        line for line in text.splitlines() if line and not line.startswith("#")
    ):
        # Phrases ("pass_away") and compounds ("well-known") are skipped, because the parts alone
        # aren't synonyms of the other words.
        for root in dict.fromkeys(
            stem(word) for word in line.split() if "_" not in word and "-" not in word
        ):
            groups.setdefault(root, []).append(f"={number}")
    return {root: tuple(keys) for root, keys in groups.items()}


@lru_cache(maxsize=65536)
def loose_keys(root: str) -> tuple[str, ...]:
    """Return the keys that related words share: "~acqui" for a prefix, "=12" for synonyms."""
    prefix = prefix_key(root)
    return (*((f"~{prefix}",) if prefix else ()), *synonym_keys().get(root, ()))


def weight(word: str) -> float:
    """Return the weight of a word.

    It's 0 for a function word, 0.4 for a weak content word, 1 for another content word, 1.3 for a
    name, and 1.5 for a number.
    """
    if word[0].isdigit():
        return 1.5
    lower = word.lower()
    if word in _ACRONYMS:
        return 1.3
    if ("'" in word or "’" in word) and re.split("['’]", lower, maxsplit=1)[0] in _CONTRACTED:
        return 0.0  # "I'll" isn't a name and carries no more than "I"
    if lower in STOPWORDS or (len(word) == 1 and not word.isupper()):
        return 0.0
    if lower in WEAK_WORDS:
        return 0.4
    if lower in NUMBER_WORDS:
        return 1.3
    return 1.3 if word != lower else 1.0


@lru_cache(maxsize=65536)
def _stem_and_weight(word: str) -> tuple[str, float]:
    return stem(word), weight(word)


def tokens(text: str) -> list[Token]:
    """Return the words of a text, in order, with their offsets."""
    # `tuple.__new__` is what Token(...) calls. Calling it directly saves a Python call per word.
    found, new = [], tuple.__new__
    for match in WORD.finditer(text):
        word = match.group()
        found.append(new(Token, (*match.span(), word, *_stem_and_weight(word))))
    return found
