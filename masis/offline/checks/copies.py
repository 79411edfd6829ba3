"""Finds claims that copy one sentence, or two neighboring sentences, of the evidence.

A claim is a copy if it equals the sentence in the comparison form
(``masis.audit.text.comparison``). A copy may omit only a short list of things: citation markers, a
leading "However,", a reference or an abbreviation in brackets, and a second predicate after "and
was". Any other addition, omission, change of order or change of spelling makes it a different
statement, even a sign, a superscript or the case of a unit. A copy is confirmed only if the
evidence asserts the sentence. That excludes quotations, sentences after "The draft said:",
truncated sentences, sentences before "This is false.", and sentences that another passage states
with a different figure or an opposite word.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from masis.audit.markers import marker_spans, without_last_brackets, without_spans
from masis.audit.markers.styles import style_table
from masis.audit.sentences import SentenceUnit, split_sentences
from masis.audit.text.comparison import sentence_form, without_capital

LEAST_WORDS = 4
"""The fewest words of a copy; a shorter claim may answer a question that the evidence asks."""
LONGEST_COMPARED = 120
"""The longest claim, in words, that is compared word by word with sentences that differ from it."""
ONE_STRETCH = 2
"""The most words by which a near-copy may differ from its sentence."""

# Quotation marks of English, German and French. Single marks are counted in `_count_quotes`.
_QUOTES = frozenset('"“”„«»‹›')
# Matches the bullet, number, letter or hash signs that open an item or heading, with the blank
# after them: "- ", "2. ", "(3) ", "b) ", "## ". It doesn't match "2.5 " or "#1 ".
_BULLET = re.compile(r"\s*(?:#{1,6}|[-*+•‣▪◦●○·–]|\(?\d{1,3}[.)]|[a-zA-Z][.)])\s+")
# Opening words, followed by a comma, that link a sentence to the previous one and assert nothing.
# Examples are "However, " and "“In addition, " but not "However high", which has no comma.
_CONNECTIVE = re.compile(
    r"[\s\"“]*(?:however|moreover|furthermore|additionally|in addition|besides|notably|in"
    r" fact),\s+",
    re.IGNORECASE,
)
# Opening words that assert how the sentence follows; a copy may omit them but may not add them.
# Examples are "Therefore, " and "For example, " but not "Thus far".
_CONCLUDING = re.compile(
    r"[\s\"“]*(?:therefore|thus|hence|consequently|as a result|for example|for instance),\s+", re.I
)
# Matches author and year, several of them if separated: "Smith et al., 2013; see Lee and Park
# 2015a". It doesn't match "smith 2013", which has no capital.
_REFERENCE = (
    r"(?:(?:see |cf\. |e\.g\.,? )?(?-i:[A-Z])[\w’'-]+(?:,? (?:et al\.?|(?:and|&)"
    r" (?-i:[A-Z])[\w’'-]+))?"
    r",? (?:19|20)\d\d[a-z]?(?:[;,] ?)?)+"
)
# Matches "(Smith, 2013)", "[see Table 2]" and "(MRI)" but not "(12 patients)" or "(e.g. rain)".
_ASIDE = re.compile(
    rf"\s*[(\[](?:{_REFERENCE}|(?:see )?(?:figs?\.|figures?|tables?|eqs?\.) ?\d+[a-z]?"
    r"|(?P<short>(?-i:[A-Z])[A-Za-z]{1,7}s?))[)\]]",
    re.IGNORECASE,
)
"""Text in brackets that a copy may omit: a reference, a figure number, or an abbreviation of the
words before it.
"""
# Verbs that start a second predicate: "The dam was built in 1960 and was closed in 1990."
_FINITE = frozenset("is are was were has had have will did does".split())
# Words that bind the first predicate to the second ("both ... and"), so that it can't stand alone.
_PAIRED = frozenset("both either neither nor whether only".split())
_LIMITS = frozenset(
    """
        not no never none nor neither cannot without only just merely solely except excepting
        excluding including but however though although unless if until till when whenever while
        whereas where provided providing assuming supposing should may might could would can before
        after since because so then than as rather instead otherwise else unlike despite
        respectively alone alleged allegedly claimed claims claim reported reportedly said says say
        according supposedly apparently possibly perhaps probably likely unlikely proposed planned
        pending subject depending theory paper false untrue wrong incorrect denied disputed doubtful
        doubted retracted withdrawn repealed revoked overturned reversed cancelled canceled
        corrected superseded amended hardly barely scarcely almost nearly which who whose that once
        first second last final most least more less fewer best worst some all any every each few
        many several both either under over above below within outside or
    """.split()
)
"""Words that may limit the words before them; a second predicate that has one can't be omitted."""
# Words whose change alters the meaning of a near-copy: "before" for "after", "rose" for "fell".
_ALTERING_WORDS = _LIMITS | frozenset(
    """
        will shall must always often sometimes usually rarely up down up in out on off to from by
        for against with largest smallest highest lowest greatest third fourth fifth next previous
        former latter earlier later increase increased increases decrease decreased decreases rise
        rose fall fell higher lower larger smaller better worse adopted rejected approved accepted
        refused allowed forbidden prohibited required optional mandatory voluntary won lost gained
        opened closed east west north south left right before after open shut
    """.split()
)
# Matches what a sentence says of a statement to deny it: "false", "a myth", "no longer", "not
# true".
_FALSEHOOD = (
    r"(?:false|untrue|wrong|incorrect|mistaken|inaccurate|misleading|myths?|fiction\w*|fabricated"
    r"|invented|hoax|lies?"
    r"|disprove[dn]|refuted|rejected|denied|disputed|retracted|withdrawn|repealed|revoked"
    r"|overturned|reversed"
    r"|superseded|corrected|quashed|annulled|outdated|hypothetical|alleged\w*|unproven|unconfirmed"
    r"|no"
    r" longer"
    r"|not (?:the case|true|correct|so))"
)
# Matches the beginning of a sentence that retracts or limits the previous one: "However,
# ...", "This was later retracted", "It applies only to ...", "Today ... now" and "An exception is
# ...". It doesn't match "This was later confirmed".
_QUALIFICATION = re.compile(
    r"[\s\"“'(\[]*(?:(?:however|but|yet|still|nevertheless|nonetheless|instead|rather|except|unless"
    r"|only|not"
    r" so|in fact"
    r"|in reality|actually|in truth|correction|erratum|conversely|or so|so"
    r" (?:said|claimed|wrote))\b"
    rf"|(?:this|that|these|those|it|they|both|such|the) (?:[\w’-]+ ){{0,9}}?{_FALSEHOOD}\b"
    r"|(?:this|that|these|those|the) (?:[\w’-]+ ){0,4}?(?:do(?:es)? not|did"
    r" not|don['’]t|doesn['’]t|didn['’]t)"
    r" (?:apply|hold|count)"
    r"|(?:this|that|it) (?:only )?(?:appli|h[oe]ld|count)\w* only"
    r"|(?:it|this|that|they|these|today|now|since then) (?:[\w’-]+"
    r" ){0,9}?(?:today|now|nowadays|currently|any ?more)\b"
    r"|(?:an |one |the |some )?exceptions?\b|later (?:work|studies|tests|analys))",
    re.IGNORECASE,
)
# Matches headings of sections whose sentences the evidence may not assert: "Common myths",
# "Draft proposal", "Not covered". It doesn't match "Results".
_DOUBTFUL_HEADING = re.compile(
    r"\b(?:false|untrue|wrong|incorrect|myths?|fiction\w*|hypothetical\w*|drafts?|propos\w+"
    r"|alleg\w+|rumou?rs?|hoax|parody"
    r"|satir\w*|advertis\w+|slogans?|scenarios?|not"
    r" (?:covered|allowed|included|permitted)|excluded|rejected|withdrawn"
    r"|repealed)\b",
    re.IGNORECASE,
)
# Matches sentences that may introduce a statement that the evidence doesn't assert:
# "Consider the following statements.", "Suppose that ...", "The claim is false" and "a legend". It
# doesn't match "The committee met in May."
_INTRODUCTION = re.compile(
    r"\b(?:the following (?:\w+"
    r" ){0,2}(?:statements?|claims?|sentences?|passages?|versions?|words|wording)|as follows"
    r"|suppose that|imagine|thought"
    r" experiment|myths?|legends?|drafts?|proposals?|allegations?|alleged|rumou?rs?|hoax"
    r"|parody|(?:is|are|was|were) (?:\w+"
    rf" )?{_FALSEHOOD}|(?:fictional|false|untrue|hypothetical|invented)"
    r" (?:statement|claim|belief|stor|example|scenario|report)\w*)\b",
    re.IGNORECASE,
)
_STOPS = frozenset(".!?…。！？।؟")


class PassagePlace(NamedTuple):
    """The place of one sentence or two neighboring ones: the index of the chunk and offsets into
    its text.
    """

    document: int
    start: int
    end: int


class CopyMatch(NamedTuple):
    """The places where the evidence has a claim word for word.

    ``objection`` is a code for the reason not to confirm it, or empty.
    """

    places: tuple[PassagePlace, ...]
    objection: str = ""


# Matches the blank after an opening bracket and before punctuation, which `" ".join` has added.
_ADDED_BLANK = re.compile(r"(?<=[(\[{]) | (?=[)\]},;:.!?])")


class WordChange(NamedTuple):
    """The words that differ between a claim (``here``) and a sentence of the evidence (``there``).

    Either may be empty.
    """

    here: tuple[str, ...]
    there: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, str]:
        """Both sides as text, with punctuation and brackets attached to their words."""
        here, there = (_ADDED_BLANK.sub("", " ".join(words)) for words in self)
        return here, there

    @property
    def alters_meaning(self) -> bool:
        """Whether the change has a figure or a word that alters the meaning."""
        return any(_alters_meaning(word) for word in (*self.here, *self.there))


class _EvidenceSentence(NamedTuple):
    """A sentence of the evidence, by the index of its chunk and its number in that chunk."""

    document: int
    number: int


class CopyIndex:
    """An index of the sentences of the evidence by their words."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Index the texts of all chunks, in the order of the case, in linear time."""
        self._texts = texts
        self._units: list[list[SentenceUnit]] = [split_sentences(text) for text in texts]
        self._full: dict[tuple[str, ...], list[_EvidenceSentence]] = {}
        self._variants: dict[tuple[str, ...], list[_EvidenceSentence]] = {}
        for document, units in enumerate(self._units):
            for number, unit in enumerate(units):
                self._add(
                    _EvidenceSentence(document, number), texts[document][unit.start : unit.end]
                )

    def _add(self, sentence: _EvidenceSentence, text: str) -> None:
        body = _without_bullet(text)
        whole = words_of(body)
        if not whole:
            return
        self._full.setdefault(whole, []).append(sentence)
        forms = dict.fromkeys((whole, *_short_forms(body)))
        for variant in dict.fromkeys(chain(forms, *map(_first_predicate, forms))):
            if variant != whole:
                self._variants.setdefault(variant, []).append(sentence)

    def find(self, claim: str, allowed: Collection[int] | None = None) -> CopyMatch | None:
        """Return the places where the evidence has the claim word for word, or None.

        The claim is one sentence without citation markers. ``allowed`` has the indices of the
        chunks that count.
        """
        forms = list(
            dict.fromkeys([words_of(claim), words_of(_CONNECTIVE.sub("", claim, count=1))])
        )
        objection, objected = "", []
        for words in forms:
            if _count_words(words) < LEAST_WORDS:
                continue
            for run in self._matching_runs(words, allowed):
                reason = self._objection(run, claim)
                if not reason:
                    return CopyMatch((self._place(run),))
                objection = objection or reason
                objected.append(self._place(run))
        return CopyMatch(tuple(objected), objection) if objected else None

    def changes(self, claim: str, near: Iterable[tuple[int, int]]) -> Iterator[WordChange]:
        """Yield the single change between a claim of one sentence and each near-copy of it.

        ``near`` gives the sentences to compare, by the index of the chunk and an offset into its
        text.
        """
        mine = words_of(claim)
        if not LEAST_WORDS <= len(mine) <= LONGEST_COMPARED:
            return
        for document, at in near:
            units = self._units[document]
            unit = units[max(0, bisect_left(units, at + 1, key=lambda unit: unit.start) - 1)]
            theirs = words_of(_without_bullet(self._texts[document][unit.start : unit.end]))
            if (change := one_change(mine, theirs)) is not None:
                yield change

    def _matching_runs(
        self, words: tuple[str, ...], allowed: Collection[int] | None
    ) -> Iterator[tuple[_EvidenceSentence, ...]]:
        """Yield the sentences, or pairs of neighbors, that consist of these words."""
        for table in (self._full, self._variants):
            for found in table.get(words, ()):
                if allowed is None or found.document in allowed:
                    yield (found,)
        if len(words) > 2 * LONGEST_COMPARED:
            return
        # Two neighboring sentences, "A. B.", which the claim may join as "A and B".
        for cut in range(LEAST_WORDS, len(words) - LEAST_WORDS + 1):
            for first in self._full.get(words[:cut], ()):
                if allowed is not None and first.document not in allowed:
                    continue
                second = _EvidenceSentence(first.document, first.number + 1)
                if second in self._full.get(_without_join(words[cut:]), ()):
                    yield (first, second)

    def _place(self, run: Sequence[_EvidenceSentence]) -> PassagePlace:
        units = self._units[run[0].document]
        return PassagePlace(run[0].document, units[run[0].number].start, units[run[-1].number].end)

    def _objection(self, run: Sequence[_EvidenceSentence], claim: str) -> str:
        """Return a code for the reason why the evidence may not assert this sentence, or an empty
        string.

        The codes are `cut` (the sentence may start earlier or continue), `quoted`, `introduced` and
        `qualified`.
        """
        document, (start, end) = run[0].document, self._place(run)[1:]
        text, units = self._texts[document], self._units[document]
        body = text[start:end]
        if _may_be_cut(text, units, run):
            return "cut"
        if _inside_quotation(text, start) or _count_quotes(body) != _count_quotes(claim):
            return "quoted"
        if run[0].number and _is_announced(text, units, run[0].number):
            return "introduced"
        after = units[run[-1].number + 1 : run[-1].number + 2]
        return (
            "qualified"
            if after and _QUALIFICATION.match(text[after[0].start : after[0].end])
            else ""
        )


def _count_words(words: Sequence[str]) -> int:
    """Count the words that aren't just punctuation."""
    return sum(any(map(str.isalnum, word)) for word in words)


def one_change(mine: Sequence[str], theirs: Sequence[str]) -> WordChange | None:
    """Return the only stretch in which two sentences differ, or None for no or several differences.

    The time is linear in the number of words.
    """
    start, least = 0, min(len(mine), len(theirs))
    while start < least and mine[start] == theirs[start]:
        start += 1
    end = 0
    while end < least - start and mine[-1 - end] == theirs[-1 - end]:
        end += 1
    here, there = tuple(mine[start : len(mine) - end]), tuple(theirs[start : len(theirs) - end])
    longest = max(_count_words(here), _count_words(there))
    if not (here or there) or longest > ONE_STRETCH or start + end < LEAST_WORDS - 1:
        return None
    return WordChange(here, there)


def _alters_meaning(word: str) -> bool:
    """Return whether a word has a figure, a sign, or a part that alters the meaning."""
    parts = _LETTERS.findall(word.lower())
    return (
        any(character.isdigit() for character in word)
        or not (_PLAIN.fullmatch(word) or word in _QUIET)
        or any(part in _ALTERING_WORDS or part.startswith(("un", "non", "dis")) for part in parts)
    )


_LETTERS = re.compile(r"[^\W\d_]+")
# Matches words without a sign that carries meaning: "well-known", "U.S." but not "C++" or "A*".
_PLAIN = re.compile(r"[\w'.-]+")
_QUIET = frozenset("()[]{},;:.!-–…")
"""Punctuation that doesn't alter the meaning by itself."""
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]},;:.!?")
# Matches Chinese and Japanese characters; these scripts don't separate words by blanks.
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
# Matches a stretch between punctuation, or one punctuation mark.
_WIDE_PART = re.compile(r"[^,;:.!?、。]+|.")


@lru_cache(maxsize=4096)
def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a sentence in the comparison form, with punctuation as separate words.

    Two sentences have equal words only if their comparison forms are equal
    (``masis.audit.text.comparison``).
    """
    return tuple(_split_words(sentence_form(text)))


def _split_words(form: str) -> Iterator[str]:
    """Yield the words between blanks, with opening brackets and trailing punctuation split off.

    Signs stay attached to their words: A*, C++, -V, !ready, 10[6], 5:30.
    """
    for stretch in form.split():
        start, end = 0, len(stretch)
        while start < end and stretch[start] in _OPENING:
            start += 1
        while end > start and stretch[end - 1] in _CLOSING:
            end -= 1
        yield from stretch[:start]
        if core := stretch[start:end]:
            yield from _WIDE_PART.findall(core) if _WIDE.search(core) else (core,)
        yield from stretch[end:]


def _without_join(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a second sentence without a leading "and", ", and" or ";"."""
    start = next((len(join) for join in _JOINS if tuple(words[: len(join)]) == join), 0)
    rest = tuple(words[start:])
    return (without_capital(*rest[:2]), *rest[1:]) if rest else ()


_JOINS = ((",", "and"), ("and",), (";",), (".",))


_STOPS_BESIDE_MARKERS = ".,;:!?()"


def text_without_markers(text: str) -> str:
    """Remove from a sentence of the evidence the markers that certainly belong to its own
    references.

    The targets of these markers are unknown. A bracket therefore counts as a marker only next to
    punctuation or at an end of the sentence: "fell [12].", "fell.[1]", "[2] The dam is safe."
    Elsewhere it may be a value, as in "a CI of [2, 8] in men" or "10[6]".
    """
    groups: list[tuple[int, int]] = []
    for start, end in marker_spans(text):
        if groups and not text[groups[-1][1] : start].strip(" ,"):
            # In "ten years.[4][5]", the point before the first marker counts for both.
            groups[-1] = (groups[-1][0], end)
        else:
            groups.append((start, end))
    return (
        without_spans(text, [group for group in groups if _is_beside_stop(text, *group)])
        if groups
        else text
    )


def _is_beside_stop(text: str, start: int, end: int) -> bool:
    before, after = text[:start].rstrip(), text[end:].lstrip()
    if before[-1:] in _STOPS_BESIDE_MARKERS:  # true at the start too: "" is in every string
        return after[:1] == "" or not text[end : end + 1].isalnum()
    if not text[start].isascii() and not text.startswith(style_table().opening_brackets, start):
        return False  # a superscript digit after a word or figure may be an exponent
    is_attached = text[start - 1] == before[-1]
    if is_attached and not before[-3:].isalpha():
        return False  # 10[6], a[0]
    return after[:1] == "" or after[0] in _STOPS_BESIDE_MARKERS


def _without_bullet(text: str) -> str:
    found = _BULLET.match(text)
    return text[found.end() :] if found else text


def _short_forms(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of a sentence without its markers, its leading connective and its asides."""
    for rest in dict.fromkeys((text, text_without_markers(text))):
        if rest != text:
            yield words_of(rest)
        if lead := _CONNECTIVE.match(rest) or _CONCLUDING.match(rest):
            rest = rest[lead.end() :]
            yield words_of(rest)
        bare = _ASIDE.sub(_replace_aside, rest)
        if bare != rest:
            yield words_of(bare)


def _replace_aside(match: re.Match[str]) -> str:
    """Return the replacement of a match of `_ASIDE`: an empty string if it may be omitted.

    An abbreviation may be omitted only if its letters are the initials of the words before it:
    "magnetic resonance imaging (MRI)".
    """
    if match["short"] is None:
        return ""
    letters = [c for c in match["short"].rstrip("s") if c.isupper()]
    words = re.findall(r"[^\W\d_]+", match.string[max(0, match.start() - 120) : match.start()])
    abbreviates = (
        len(letters) >= 2 and [word[0].upper() for word in words[-len(letters) :]] == letters
    )
    return "" if abbreviates else match.group()


def _first_predicate(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the sentence up to "and was ...", if the rest can't limit the first part."""
    for at in range(LEAST_WORDS, len(words) - 2):
        if words[at] == "and" and words[at + 1] in _FINITE:
            head = words[: at - 1] if words[at - 1] == "," else words[:at]
            tail = " ".join(words[at + 1 :])
            parts = frozenset(_LETTERS.findall(tail.lower()))
            if (
                _LIMITS.isdisjoint(parts)
                and _PAIRED.isdisjoint(head)
                and not re.search("[?…]", tail)
            ):
                yield head
            return


def _count_quotes(text: str) -> int:
    """Count the quotation marks. A single mark counts only where it opens a word."""
    single = len(re.findall(r"(?:^|[\s(])[‘'](?=\w)", text))
    return sum(character in _QUOTES for character in text) + single


def _inside_quotation(text: str, at: int) -> bool:
    """Return whether a quotation is open at the offset, judging by its paragraph."""
    opened = text[text.rfind("\n\n", 0, at) + 1 : at]
    return (
        opened.count('"') % 2 == 1
        or opened.count("“") > opened.count("”")
        or opened.count("«") > opened.count("»")
        or opened.count("„") > opened.count("“") + opened.count("”")
    )


def _may_be_cut(text: str, units: Sequence[SentenceUnit], run: Sequence[_EvidenceSentence]) -> bool:
    """Return whether the sentence may start before the stretch or continue after it."""
    first, last = units[run[0].number], units[run[-1].number]
    listed = _BULLET.match(text[first.start : first.end]) is not None
    body = _without_bullet(text[first.start : first.end]).lstrip("\"“'‘(*_")
    if not body or body[0].islower() or body.startswith(("…", "...")):
        return True
    before = text[: first.start].rstrip(" \t")
    # A single line break after a line without a final point may be a hard wrap within a sentence.
    broken_line = before.endswith("\n") and not before.endswith("\n\n") and not listed
    previous = before.rstrip()
    ended = previous[-1:] in _STOPS or previous[-1:] in '"”’)]}*_:'
    if broken_line and previous and not ended and units[run[0].number - 1].kind != "heading":
        return True
    # Markers after the final point are removed: "It grew.[3][4]" ends with a point.
    stretch = without_last_brackets(text[last.start : last.end].rstrip())
    stretch = text_without_markers(stretch).rstrip("\"”’'»)]}*_ ")
    if stretch.endswith(("…", "...")):
        return True
    closed = stretch[-1:] in _STOPS
    return not closed and not (
        last.kind in ("item", "row", "heading") or (listed and last.end < len(text))
    )


def _is_announced(text: str, units: Sequence[SentenceUnit], number: int) -> bool:
    """Return whether the text before a sentence shows that the evidence may not assert it."""
    at = number - 1
    while at >= 0 and units[number].kind == units[at].kind == "item":
        at -= 1  # the lead-in of a list counts for each of its items
    if at < 0:
        return False
    before = text[units[at].start : units[at].end].rstrip()
    if before.endswith(":") or (units[at].kind == "heading" and _DOUBTFUL_HEADING.search(before)):
        return True
    return bool(_INTRODUCTION.search(before))
