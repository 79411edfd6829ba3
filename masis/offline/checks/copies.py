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

MIN_WORDS_OF_COPY = 4
"""Minimum number of words in a copy. A shorter claim may answer a question that the evidence asks.
"""
LONGEST_COMPARED = 120
"""The longest claim, in words, that is compared word by word with sentences that differ from it."""
MAX_CHANGED_WORDS = 2
"""Maximum number of words by which a near-copy may differ from its sentence."""

# Quotation marks of English, German and French. Single marks are counted in `_count_quotes`.
_QUOTES = frozenset('"“”„«»‹›')
# Matches the bullet, number, letter or hash signs that open an item or heading, with the space
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
# Matches words that call a statement untrue: "false", "a myth", "no longer", "not
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
# Matches the heading of a section of an abstract, under which the evidence asserts its sentences:
# "CONCLUSIONS: ", "Results - ", "**Methods and findings.** ", "[Background] " and "RESULTS " before
# a capital. It doesn't match "Results of", "Objective: " or "Hypothesis: ", which assert nothing.
_SECTION = r"""
    (?:main\ |key\ |study\ |principal\ |primary\ )?
    (?:background|importance|introduction|context|rationale|methods?|methodology|materials?|design|settings?
      |participants|patients|subjects|population|interventions?|exposures?|measurements?|measures
      |outcomes?(?:\ measures?)?|data\ sources?|study\ selection|data\ extraction|results?
      |findings?|observations?|discussions?|conclusions?|interpretations?|implications?|relevance
      |significance|summary|limitations?|messages?|points|evidence\ synthesis)
"""
_SECTION_HEADING = re.compile(
    rf"""
    \s*[*_\[(]*
    (?:{_SECTION})(?:(?:\ and\ |\ &\ |/|,\ )(?:{_SECTION}))*
    (?:\s?(?::|[-–—](?=\s)|[\])]|\.?[*_]+[:.]?)[*_\])]*(?:\s+|$)
      |(?-i:(?<=[A-Z]{{4}}))\s+(?-i:(?=[A-Z][a-z]|\d)))
    """,
    re.IGNORECASE | re.VERBOSE,
)
_STOPS = frozenset(".!?…。！？।؟")


class PassageSpan(NamedTuple):
    """The span of one sentence or two neighboring ones: the index of the chunk, and offsets into
    its text.
    """

    document: int
    start: int
    end: int


class CopyMatch(NamedTuple):
    """The spans of the evidence that have a claim word for word.

    ``veto`` is a code for the reason not to confirm it, or empty.
    """

    places: tuple[PassageSpan, ...]
    veto: str = ""


# Matches the space after an opening bracket or before punctuation, which `" ".join` has added.
_ADDED_SPACE = re.compile(r"(?<=[(\[{]) | (?=[)\]},;:.!?])")


class WordChange(NamedTuple):
    """The words that differ between a claim (``here``) and a sentence of the evidence (``there``).

    Either may be empty.
    """

    here: tuple[str, ...]
    there: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, str]:
        """Both sides as text, with punctuation and brackets attached to their words."""
        here, there = (_ADDED_SPACE.sub("", " ".join(words)) for words in self)
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
        item = _without_bullet(text)
        body = without_section_heading(item)
        full_words = words_of(body)
        if not full_words:
            return
        self._full.setdefault(full_words, []).append(sentence)
        forms = dict.fromkeys((full_words, words_of(item), *_short_forms(body)))
        for variant in dict.fromkeys(chain(forms, *map(_first_predicate, forms))):
            if variant != full_words:
                self._variants.setdefault(variant, []).append(sentence)

    def find(self, claim: str, allowed: Collection[int] | None = None) -> CopyMatch | None:
        """Return the spans of the evidence that have the claim word for word, or None.

        The claim is one sentence without citation markers. ``allowed`` has the indices of the
        chunks that count.
        """
        forms = list(
            dict.fromkeys(
                [
                    words_of(claim),
                    words_of(_CONNECTIVE.sub("", claim, count=1)),
                    words_of(without_section_heading(claim)),
                ]
            )
        )
        veto, doubted_spans = "", []
        for words in forms:
            if _count_words(words) < MIN_WORDS_OF_COPY:
                continue
            for run in self._matching_runs(words, allowed):
                reason = self._objection(run, claim)
                if not reason:
                    return CopyMatch((self._place(run),))
                veto = veto or reason
                doubted_spans.append(self._place(run))
        return CopyMatch(tuple(doubted_spans), veto) if doubted_spans else None

    def changes(self, claim: str, positions: Iterable[tuple[int, int]]) -> Iterator[WordChange]:
        """Yield the single change between a claim of one sentence and each near-copy of it.

        ``positions`` gives the sentences to compare, by the index of the chunk and an offset into
        its text.
        """
        claim_words = words_of(claim)
        if not MIN_WORDS_OF_COPY <= len(claim_words) <= LONGEST_COMPARED:
            return
        for document, offset in positions:
            units = self._units[document]
            unit = units[max(0, bisect_left(units, offset + 1, key=lambda unit: unit.start) - 1)]
            sentence = _without_bullet(self._texts[document][unit.start : unit.end])
            sentence_words = words_of(without_section_heading(sentence))
            if (change := one_change(claim_words, sentence_words)) is not None:
                yield change

    def is_asserted(self, document: int, start: int) -> bool:
        """Return whether the evidence asserts the sentence at an offset of a chunk.

        It may not if the sentence is quoted, introduced as somebody's words, or retracted.
        """
        units = self._units[document]
        number = max(0, bisect_left(units, start + 1, key=lambda unit: unit.start) - 1)
        run = (_EvidenceSentence(document, number),)
        text = self._texts[document][units[number].start : units[number].end]
        return self._objection(run, text) in ("", "cut")

    def _matching_runs(
        self, words: tuple[str, ...], allowed: Collection[int] | None
    ) -> Iterator[tuple[_EvidenceSentence, ...]]:
        """Yield the sentences, or pairs of neighbors, that consist of these words."""
        for table in (self._full, self._variants):
            for sentence in table.get(words, ()):
                if allowed is None or sentence.document in allowed:
                    yield (sentence,)
        if len(words) > 2 * LONGEST_COMPARED:
            return
        # Two neighboring sentences, "A. B.", which the claim may join as "A and B".
        for cut in range(MIN_WORDS_OF_COPY, len(words) - MIN_WORDS_OF_COPY + 1):
            for first in self._full.get(words[:cut], ()):
                if allowed is not None and first.document not in allowed:
                    continue
                second = _EvidenceSentence(first.document, first.number + 1)
                if second in self._full.get(_without_join(words[cut:]), ()):
                    yield (first, second)

    def _place(self, run: Sequence[_EvidenceSentence]) -> PassageSpan:
        units = self._units[run[0].document]
        return PassageSpan(run[0].document, units[run[0].number].start, units[run[-1].number].end)

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


def one_change(claim_words: Sequence[str], evidence_words: Sequence[str]) -> WordChange | None:
    """Return the only difference between two sentences, or None if there is none or several.

    The time is linear in the number of words.
    """
    start, shorter_length = 0, min(len(claim_words), len(evidence_words))
    while start < shorter_length and claim_words[start] == evidence_words[start]:
        start += 1
    end = 0
    while end < shorter_length - start and claim_words[-1 - end] == evidence_words[-1 - end]:
        end += 1
    claim_part, evidence_part = (
        tuple(claim_words[start : len(claim_words) - end]),
        tuple(evidence_words[start : len(evidence_words) - end]),
    )
    changed_words = max(_count_words(claim_part), _count_words(evidence_part))
    if (
        not (claim_part or evidence_part)
        or changed_words > MAX_CHANGED_WORDS
        or start + end < MIN_WORDS_OF_COPY - 1
    ):
        return None
    return WordChange(claim_part, evidence_part)


def _alters_meaning(word: str) -> bool:
    """Return whether a word has a figure, a sign, or a part that alters the meaning."""
    parts = _LETTERS.findall(word.lower())
    return (
        any(character.isdigit() for character in word)
        or not (_PLAIN.fullmatch(word) or word in _PLAIN_PUNCTUATION)
        or any(part in _ALTERING_WORDS or part.startswith(("un", "non", "dis")) for part in parts)
    )


_LETTERS = re.compile(r"[^\W\d_]+")
# Matches words without a sign that carries meaning: "well-known", "U.S." but not "C++" or "A*".
_PLAIN = re.compile(r"[\w'.-]+")
_PLAIN_PUNCTUATION = frozenset("()[]{},;:.!-–…")
"""Punctuation that doesn't alter the meaning by itself."""
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]},;:.!?")
# Matches Chinese and Japanese characters; these scripts don't separate words by spaces.
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
# Matches a run of characters between punctuation, or one punctuation mark.
_WIDE_PART = re.compile(r"[^,;:.!?、。]+|.")


@lru_cache(maxsize=4096)
def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a sentence in the comparison form, with punctuation as separate words.

    Two sentences have equal words only if their comparison forms are equal
    (``masis.audit.text.comparison``).
    """
    return tuple(_split_words(sentence_form(text)))


def _split_words(form: str) -> Iterator[str]:
    """Yield the words between spaces, with opening brackets and trailing punctuation split off.

    Signs stay attached to their words: A*, C++, -V, !ready, 10[6], 5:30.
    """
    for token in form.split():
        start, end = 0, len(token)
        while start < end and token[start] in _OPENING:
            start += 1
        while end > start and token[end - 1] in _CLOSING:
            end -= 1
        yield from token[:start]
        if core := token[start:end]:
            yield from _WIDE_PART.findall(core) if _WIDE.search(core) else (core,)
        yield from token[end:]


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
    bullet = _BULLET.match(text)
    return text[bullet.end() :] if bullet else text


def without_section_heading(text: str) -> str:
    """Return a sentence without the heading of its section of an abstract.

    A heading alone stays as it is.
    """
    heading = _SECTION_HEADING.match(text)
    return text[heading.end() :] or text if heading else text


def _short_forms(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of a sentence without its markers, its leading connective and its asides."""
    for rest in dict.fromkeys((text, text_without_markers(text))):
        if rest != text:
            yield words_of(rest)
        if lead := _CONNECTIVE.match(rest) or _CONCLUDING.match(rest):
            rest = rest[lead.end() :]
            yield words_of(rest)
        without_asides = _ASIDE.sub(_replace_aside, rest)
        if without_asides != rest:
            yield words_of(without_asides)


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
    for index in range(MIN_WORDS_OF_COPY, len(words) - 2):
        if words[index] == "and" and words[index + 1] in _FINITE:
            head = words[: index - 1] if words[index - 1] == "," else words[:index]
            tail = " ".join(words[index + 1 :])
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


def _inside_quotation(text: str, offset: int) -> bool:
    """Return whether a quotation is open at the offset, judging by its paragraph."""
    opened = text[text.rfind("\n\n", 0, offset) + 1 : offset]
    return (
        opened.count('"') % 2 == 1
        or opened.count("“") > opened.count("”")
        or opened.count("«") > opened.count("»")
        or opened.count("„") > opened.count("“") + opened.count("”")
    )


def _may_be_cut(text: str, units: Sequence[SentenceUnit], run: Sequence[_EvidenceSentence]) -> bool:
    """Return whether the sentence may start before the stretch or continue after it."""
    first, last = units[run[0].number], units[run[-1].number]
    is_list_item = _BULLET.match(text[first.start : first.end]) is not None
    body = _without_bullet(text[first.start : first.end]).lstrip("\"“'‘(*_")
    if not body or body[0].islower() or body.startswith(("…", "...")):
        return True
    preceding = text[: first.start].rstrip(" \t")
    # A single line break after a line without a final point may be a hard wrap within a sentence.
    is_broken_line = (
        preceding.endswith("\n") and not preceding.endswith("\n\n") and not is_list_item
    )
    previous = preceding.rstrip()
    is_ended = previous[-1:] in _STOPS or previous[-1:] in '"”’)]}*_:'
    if is_broken_line and previous and not is_ended:
        line_before = units[run[0].number - 1]
        heading = f"{text[line_before.start : line_before.end].strip()}:"
        if line_before.kind != "heading" and not _SECTION_HEADING.fullmatch(heading):
            return True
    # Markers after the final point are removed: "It grew.[3][4]" ends with a point.
    sentence_text = without_last_brackets(text[last.start : last.end].rstrip())
    sentence_text = text_without_markers(sentence_text).rstrip("\"”’'»)]}*_ ")
    if sentence_text.endswith(("…", "...")):
        return True
    is_closed = sentence_text[-1:] in _STOPS
    return not is_closed and not (
        last.kind in ("item", "row", "heading") or (is_list_item and last.end < len(text))
    )


def _is_announced(text: str, units: Sequence[SentenceUnit], number: int) -> bool:
    """Return whether the text before a sentence shows that the evidence may not assert it."""
    lead_in = number - 1
    while lead_in >= 0 and units[number].kind == units[lead_in].kind == "item":
        lead_in -= 1  # the lead-in of a list counts for each of its items
    if lead_in < 0:
        return False
    lead_in_text = text[units[lead_in].start : units[lead_in].end].rstrip()
    if _SECTION_HEADING.fullmatch(lead_in_text):
        return False
    if lead_in_text.endswith(":") or (
        units[lead_in].kind == "heading" and _DOUBTFUL_HEADING.search(lead_in_text)
    ):
        return True
    return bool(_INTRODUCTION.search(lead_in_text))
