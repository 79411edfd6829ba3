"""The table of citation styles, the ways in which answers cite evidence.

Each style declares how its markers look (``pattern``), what a marker names (``parse``) and an
example. The rest of the package uses ``find_markers``, ``marker_spans`` and ``without_markers``, so
a new style is one more row of ``STYLES``. ``python tools/marker_styles.py`` lists the rows in
``docs/audits.md``, and a test reads every example.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from masis.audit.markers.ambiguity import (
    is_probably_a_list_number,
    is_probably_an_exponent,
    is_probably_not_a_citation,
)
from masis.audit.markers.references import (
    CITATION_NEEDED,
    LONGEST_RANGE,
    Reference,
    is_file_name,
    read_references,
)
from masis.audit.markers.resolution import NOTHING, EvidenceIds, Resolution
from masis.audit.markers.source_words import SOURCE_WORD

Match = re.Match[str]
Brackets = tuple[tuple[str, str], ...]
"""Pairs of an opening and a closing bracket."""
Parsed = Sequence[Reference] | None
"""The references in a text that has the shape of a style.

Empty means that it is certainly not a citation, so that no other style reads it. None means that
another style may read it.
"""


@dataclass(frozen=True, eq=False)
class MarkerStyle:
    """One way in which answers cite.

    Attributes:
        opening: The characters that a marker may begin with.
        parse: Returns the references of a match. If the marker encloses text that people also write
            for another purpose, parse it with ``read_references``, which ignores everything
            that doesn't have the shape of a reference. If it encloses only names, like the
            attribute of a tag, use ``_parse_attribute``.
        signs: Strings of which one must occur in a text with such a marker, if that is more
            specific than the opening. A search for a single character is ten times as fast as for
            two.
        brackets: Pairs of brackets that enclose such a marker. A marker in brackets may begin a
            paragraph, have a line of its own, or end a sentence before its full stop. A fixed
            prefix of the names belongs to the opening: ``("{{src:", "}}")`` for ``{{src:3}}``.
            Pairs around a whole marker, as in ``{{{{src:3}}}}``, are recognized without it.
        is_ambiguous: Whether text in its brackets is often something else. At the beginning of a
            line it is then a marker only with a number, and a number in it may be a value. It must
            be given if there are brackets.
        write: Writes a marker for some names, if the style can be written for any evidence.
        words: Returns the words of a marker in its sentence, such as the label of a link.
        may_follow_stop: Whether a marker after a full stop belongs to the sentence before it. This
            is decided without knowing the evidence.

    """

    name: str
    opening: str
    pattern: re.Pattern[str]
    parse: Callable[[Match, EvidenceIds], Parsed]
    example: str
    explanation: str
    signs: tuple[str, ...] = ()
    brackets: Brackets = ()
    is_ambiguous: bool | None = None
    may_follow_stop: Callable[[Match], bool] = field(default=lambda match: True)
    write: Callable[[Sequence[str]], str] | None = None
    words: Callable[[Match], str] = field(default=lambda match: "")

    def __post_init__(self) -> None:
        if self.brackets and self.is_ambiguous is None:
            raise ValueError(f"The style {self.name} has brackets, so it needs is_ambiguous.")


def _references_for(
    start: int, end: int, name: str, resolutions: Iterable[Resolution]
) -> list[Reference]:
    return [Reference(start, end, name, *resolution) for resolution in resolutions]


def _resolve_name_or_source(name: str, index: EvidenceIds) -> list[Resolution]:
    """Return the evidence that a name means, by id or else as a source.

    The result is one empty resolution if the name means none.
    """
    resolution = index.resolve(name)
    if resolution.evidence_id:
        return [resolution]
    return [Resolution(id_, "source") for id_ in index.resolve_source(name)] or [NOTHING]


# Square brackets and their look-alikes: [1], ［1］, 〔1〕, 〖1〗.


def _parse_square(match: Match, index: EvidenceIds) -> Parsed:
    answer, (start, end) = match.string, match.span()
    body, offset = answer[start + 1 : end - 1], start + 1
    if body[0] == "^":
        return None
    if answer[end - 2] == "\\" or answer[start - 1 : start] == "\\":
        return None  # LaTeX, or brackets that Markdown escapes, which are a style of their own
    if len(body) == len(CITATION_NEEDED) - 2 and match.group().casefold() == CITATION_NEEDED:
        return ()
    references = (
        _read_before_dagger(body, offset, index)
        if "†" in body
        else read_references(body, offset, index)
    )
    if not references and index.is_slug(body) and _CLAUSE_END.match(answer, end):
        references = [Reference(offset, offset + len(body), body, None, None)]
    return _unless_ambiguous(match, body, references, index)


def _unless_ambiguous(
    match: Match, body: str, references: list[Reference], index: EvidenceIds
) -> Parsed:
    """Return the references of brackets, or None if there are none or it may be another text."""
    is_other_text = not references or is_probably_not_a_citation(
        match.string, *match.span(), body, references, index
    )
    return None if is_other_text else references


# A slug in brackets is a reference only at the end of a clause: "It fell [earnings-call]."
_CLAUSE_END = re.compile(r"\s*(?:[.,;:!?)\[]|\Z|\n)")


def _square_may_follow_stop(match: Match) -> bool:
    """Return whether brackets after a full stop are a marker: ``It fell. [smith-2004] It rose.``

    They are if they have a digit or a single word. A lower-case word after them shows that the stop
    didn't end a sentence: ``approx. [sic] five``.
    """
    body = match.group()[1:-1]
    text, end = match.string, match.end()
    if "\n" in body or text[end : end + 1] == "(" or len(body) > 61:
        return False
    if match.group().casefold() == CITATION_NEEDED or any(map(str.isdecimal, body)):
        return True
    return not any(map(str.isspace, body)) and not _LOWER_NEXT.match(text, end)


# " five" in "approx. [sic] five".
_LOWER_NEXT = re.compile(r"\s{0,3}[a-z]")


# OpenAI's 【1†source】, also copied into square brackets.


# "1†source", "4:0†report.pdf", "source 1".
_LENTICULAR_BODY = re.compile(
    r"(?:(?:source|ref|doc)\w*\s*)?(\d{1,9})(?::(\d{1,9}))?(?:†[^†]*)?\Z", re.IGNORECASE
)


def _read_before_dagger(body: str, offset: int, index: EvidenceIds) -> list[Reference]:
    """Read a body such as ``1†source`` or ``4:0†report.pdf``, whose text after † is a label."""
    plain = _LENTICULAR_BODY.match(body)
    if plain is None:
        return read_references(body.partition("†")[0].rstrip(), offset, index)
    # 【4:0†source】 names source 4 and a location in it, unless 4:0 is an id of the case.
    full_name = body.partition("†")[0].strip()
    if plain.group(2) and (resolution := index.resolve(full_name)).evidence_id:
        return [Reference(offset, offset + len(full_name), full_name, *resolution)]
    return read_references(plain.group(1), offset + plain.start(1), index)


# (Source 1), (chunk_1)

# "(see Source 1)", "(according to chunk_2)".
_ROUND_LEAD = re.compile(
    r"(?:see(?:\s+also)?|cf\.?|from|per|in|e\.g\.,?|according to|siehe|vgl\.)\s+", re.IGNORECASE
)
# Brackets without a digit, colon or full stop can't have a number, "source: A" or "report.pdf".
_MAY_NAME_EVIDENCE = re.compile(r"[\d:：.]")
# "(Source 1)", "(Quelle: A)": these may follow a full stop.
_ROUND_SOURCE = re.compile(
    rf"[(（](?:see |cf\. )?{SOURCE_WORD}(?=\W|\d)\.?[\s:：]{{0,3}}[^()（）\n]{{1,40}}[)）]",
    re.IGNORECASE,
)


def _parse_round(match: Match, index: EvidenceIds) -> Parsed:
    body, offset = match.group(1), match.start(1)
    if lead_match := _ROUND_LEAD.match(body):
        body, offset = body[lead_match.end() :], offset + lead_match.end()
    if not body or body[0].isdecimal() or not _MAY_NAME_EVIDENCE.search(body):
        return None
    return read_references(body, offset, index, is_parenthesized=True) or None


# Links: [1](https://...), [[1]](https://...), [the report](https://...), <a href="...">1</a>,
# <https://...>

# The address of a link, which may contain one pair of round brackets.
_TARGET = r"([^()\s<>]{1,800}(?:\([^()\s]{0,200}\)[^()\s<>]{0,200})?)"
# "[label](https://...)" or "[[1]](https://...)", with an optional title. The lookahead requires an
# address, so that "[1](see below)" isn't a link.
_LINK = re.compile(
    r"\[?\[([^\[\]]{1,300})\](?:\]?)\(\s*<?(?=[a-zA-Z][\w+.-]{1,20}://|www\.|/|#|mailto:|"
    rf"[^()\s<>]{{1,200}}\.[a-z]{{2,4}}\b){_TARGET}>?(?:\s+[\"'][^\"'\n]{{0,200}}[\"'])?\s*\)"
)
_WEB_ADDRESS = ("http://", "https://", "www.")


def _parse_link(match: Match, index: EvidenceIds) -> Parsed:
    if match.string[match.start() - 1 : match.start()] == "!":
        return ()  # a picture
    return _parse_link_marker(
        match, match.group(1), match.start(1), match.group(2), match.span(2), index
    )


def _parse_link_marker(
    match: Match, label: str, offset: int, target: str, span: tuple[int, int], index: EvidenceIds
) -> Sequence[Reference]:
    """Return the references of a link: the chunks that come from its address.

    The label counts only if the address can't be compared with the evidence.
    """
    if ids := index.resolve_source(target):
        return [Reference(*span, target, id_, "source") for id_ in ids]
    if (index.has_addresses and target.startswith(_WEB_ADDRESS)) or (
        index.has_file_names and is_file_name(target)
    ):
        return [Reference(*span, target, None, None)]
    caret = label.startswith("^")
    references = read_references(label[caret:].rstrip("^"), offset + caret, index)
    is_handle = label.startswith("@") and not any(reference.evidence_id for reference in references)
    return () if is_handle else references


def _link_may_follow_stop(match: Match) -> bool:
    label = match.group(1)
    preceding = match.string[match.start() - 1 : match.start()]
    # A link in running text has a space before it; a citation doesn't: "It
    # fell.[a.example](https://a.example) It rose."
    return (
        preceding in tuple("(.!?。")
        or label.strip("^ ").isdecimal()
        or match.group().startswith("[[")
    )


# "report", but not "1" or "[a]".
_TWO_LETTERS = re.compile(r"[^\W\d_]{2}")


def _label_words(label: str) -> str:
    """Return the words of a link, or "" for a label that is a marker itself: ``1`` or ``[1]``."""
    return label if _TWO_LETTERS.search(label) else ""


# '<a href="https://...">label</a>'
_HTML_LINK = re.compile(
    r"<a\s[^<>]{0,300}?href=[\"']?([^\"'<>\s]{1,800})[\"']?[^<>]{0,200}>([^<>]{1,300})</a>",
    re.IGNORECASE,
)


def _parse_html_link(match: Match, index: EvidenceIds) -> Parsed:
    label, offset = match.group(2), match.start(2)
    stripped = label.strip()
    if stripped[:1] == "[" and stripped[-1:] == "]":
        offset += label.index("[") + 1
        label = stripped[1:-1]
    return _parse_link_marker(match, label, offset, match.group(1), match.span(1), index)


# "https://a.example/report", "www.a.example". The lookbehind excludes the middle of an address or
# an e-mail address: "me@www.a.example".
_BARE_ADDRESS = re.compile(r"(?:https?://|(?<![\w./@])www\.)[^\s<>\[\]{}\"'`|]{3,800}")
# "<" or "(" before an address that is set as a citation.
_BEFORE_ADDRESS = re.compile(r"[<(]\s?\Z")
# Words before an address that is a source. "See" and "visit" don't cite the address.
_NAMED_AS_SOURCE = re.compile(
    r"\b(?:according to|as (?:reported|stated|described|published) (?:by|in|on|at)|quoted from|"
    r"cited in|taken from|laut|gemäß|selon|d['’]après|según|secondo|segundo|volgens|według|"
    r"согласно)\s\Z",
    re.IGNORECASE,
)
# "[^1]: https://..." defines a footnote; "[1]: https://..." below defines a link.
_FOOTNOTE_OF_ADDRESS = re.compile(r"[ \t]{0,3}\[\^[\w.-]{1,40}\]:[^\n]*\Z")
_REFERENCE_OF_ADDRESS = re.compile(r"[ \t]{0,3}\[[\w.-]{1,40}\]:[^\n]*\Z")
# The beginning of an entry in a list of sources: "- [1]", "2.", "Source 3:".
_LISTED = re.compile(
    r"[\s>*+•_-]{0,9}(?:\[\w{1,20}\]:?|\d{1,3}[.)]|"
    rf"{SOURCE_WORD}(?:\s\d{{1,3}})?[*_]{{0,3}}[:：]).{{0,200}}\Z",
    re.IGNORECASE,
)
# "## Sources", "**References used:**": a heading above a list of sources.
_SOURCES_HEADING = re.compile(
    rf"^[\s#*_]{{0,9}}(?:{SOURCE_WORD}|bibliography|works cited|further reading|literatur|"
    r"bibliografía|links)(?: (?:used|cited|consulted))?[*_]{0,3}[:：]?[*_ \t]{0,4}$",
    re.IGNORECASE | re.MULTILINE,
)
# "## Outlook": the heading at which the list ends.
_NEXT_HEADING = re.compile(r"^#{1,6}\s", re.MULTILINE)


def _parse_address(match: Match, index: EvidenceIds) -> Parsed:
    """Return the references of a bare address: the chunks that come from it.

    An address without evidence is a fabrication if it is set as a citation, that is
    ``<https://...>``, ``(https://...)`` or an entry of a list of sources, or if it is named as the
    source ("according to https://..."). Elsewhere it is only an address.
    """
    if not index.has_addresses:
        return None
    answer = match.string
    address = trimmed_address(match.group())
    start, end = match.start(), match.start() + len(address)
    line = answer[max(0, start - 300) : start].rpartition("\n")[2]
    if _FOOTNOTE_OF_ADDRESS.match(line):
        return None  # _parse_footnote reads it
    if ids := index.resolve_source(address):
        return (
            None
            if _REFERENCE_OF_ADDRESS.match(line)
            else [Reference(start, end, address, id_, "source") for id_ in ids]
        )
    enclosed = _BEFORE_ADDRESS.search(line) and answer[end : end + 1] in (">", ")")
    if (
        enclosed
        or _NAMED_AS_SOURCE.search(line)
        or _LISTED.match(line)
        or any(list_start <= start < list_end for list_start, list_end in _source_lists(answer))
    ):
        return [Reference(start, end, address, None, None)]
    return None


_MAX_SOURCE_LISTS = 50


@lru_cache(maxsize=4)
def _source_lists(answer: str) -> tuple[tuple[int, int], ...]:
    """Return the parts of an answer under a heading such as "Sources"."""
    parts = []
    for heading in _SOURCES_HEADING.finditer(answer):
        following = _NEXT_HEADING.search(answer, heading.end())
        parts.append((heading.end(), following.start() if following else len(answer)))
        if following is None or len(parts) == _MAX_SOURCE_LISTS:
            break
    return tuple(parts)


def trimmed_address(address: str) -> str:
    """Return an address without the punctuation of the sentence around it."""
    address = address.rstrip(".,;:!?*_")
    while address.endswith(")") and address.count("(") < address.count(")"):
        address = address[:-1].rstrip(".,;:!?*_")
    return address


# Footnotes: [^1], [^1^], [^note] with "[^note]: https://..." below

# The beginning of a line, with its indentation: a marker and a colon here define a footnote.
_LINE_START = re.compile(r"(?:\A|\n)[ \t]*\Z")
# "[^1]: Smith 2004", "[1]: https://...".
_DEFINITION = re.compile(r"^[ \t]{0,3}\[\^?([\w.-]{1,40})\]:[ \t]*(.{0,500})", re.MULTILINE)


def _parse_footnote(match: Match, index: EvidenceIds) -> Parsed:
    answer, (start, end) = match.string, match.span()
    if answer[end : end + 1] == ":" and _LINE_START.search(answer[max(0, start - 8) : start]):
        return ()  # the footnote itself
    label = match.group(1).strip()
    start = match.start(1) + len(match.group(1)) - len(match.group(1).lstrip())
    end = start + len(label)
    definition = _definitions(answer).get(label)
    if definition is not None:
        if chunks := _chunks_named_by(definition, index):
            return _references_for(start, end, label, (Resolution(id_, "source") for id_ in chunks))
        if _looks_like_source(definition, index):
            return [Reference(start, end, label, None, None)]
    if label.isdecimal() or index.resolve(label).evidence_id or index.is_shaped(label):
        return read_references(label, start, index)
    # A remark isn't a citation: "Without the one-off items of the year."
    if (
        definition
        and definition.strip()
        and (len(definition.split()) < _SENTENCE_WORDS or _BIBLIOGRAPHIC.search(definition))
    ):
        return [Reference(start, end, label, None, None)]
    return ()


@lru_cache(maxsize=4)
def _definitions(answer: str) -> dict[str, str]:
    """Return the footnotes of an answer by label; the first of two with the same label counts."""
    return {match[1]: match[2] for match in reversed(list(_DEFINITION.finditer(answer)))}


@lru_cache(maxsize=256)
def _chunks_named_by(definition: str, index: EvidenceIds) -> tuple[str, ...]:
    text = definition.strip().strip("[]().")
    if not text.isdecimal() and (chunk_id := index.resolve(text).evidence_id):
        return (chunk_id,)
    if ids := index.resolve_source(text):
        return ids
    for address in _BARE_ADDRESS.finditer(definition):
        if ids := index.resolve_source(trimmed_address(address.group())):
            return ids
    return ()


@lru_cache(maxsize=256)
def _looks_like_source(definition: str, index: EvidenceIds) -> bool:
    """Return whether a footnote without evidence has the form of a source.

    That is an id, an address or a worded number.
    """
    text = definition.strip().strip("[]().")
    if index.has_addresses and _BARE_ADDRESS.search(definition):
        return True
    return (
        not text.isdecimal()
        and bool(text)
        and (index.is_shaped(text) or bool(read_references(text, 0, index)))
    )


# Signs of a bibliographic entry: a year, an address, "et al", "pp."
_BIBLIOGRAPHIC = re.compile(
    r"\b(?:1[5-9]|20)\d\d\b|https?://|\bdoi\b|\bet al\b|\bvol\b|\bpp?\.", re.IGNORECASE
)
_SENTENCE_WORDS = 5

# Brackets that Markdown escapes: \[9\], \[chunk\_1\]. LaTeX formulas use the same brackets, but
# with spaces inside them or with signs such as = and ^.

ESCAPED_MARKER = re.compile(r"\\\[(?!\s)((?:[^\\\[\]\n^{}=$<>]|\\[_*#&.|/@-]){1,200})(?<!\s)\\\]")


def _parse_escaped(match: Match, index: EvidenceIds) -> Parsed:
    body = match.group(1)
    return _unless_ambiguous(match, body, read_references(body, match.start(1), index), index)


# \cite{smith2020, chunk_9}: every key is a reference, regardless of its shape.

# "\citep[p. 3]{chunk_1}" of natbib, "\parencite{smith2020}" of BibLaTeX, "\citeauthor*{smith2020}".
_LATEX_CITE = re.compile(
    r"\\(?:paren|text|auto|foot|smart|super|full)?cite(?:s|p|t|alp|alt|author|year|yearpar|title|"
    r"num|text)?\*?(?:\[[^\[\]\n]{0,100}\]){0,2}\{([^{}\n]{1,300})\}",
    re.IGNORECASE,
)
# The keys between the commas of \cite{smith2020, chunk_9}.
_CITE_KEY = re.compile(r"[^\s,](?:[^,]*[^\s,])?")


def _parse_latex(match: Match, index: EvidenceIds) -> Parsed:
    references = []
    for key in _CITE_KEY.finditer(match.group(1)):
        name = key.group()
        start = match.start(1) + key.start()
        references += _references_for(
            start, start + len(name), name, _resolve_name_or_source(name, index)
        )
    return references


# Raised numbers: ¹, ¹⁻³, <sup>1</sup>, ^1^, and circled ones: ①

_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_AS_DIGITS = str.maketrans(_RAISED, "0123456789")
# "¹", "¹⁻³", "¹,²".
_RAISED_NUMBER = re.compile(rf"[{_RAISED}]{{1,3}}(?:[,˒’⁻–-][{_RAISED}]{{1,3}}){{0,9}}")
# One number or range in it: "¹⁻³".
_RAISED_PART = re.compile(rf"([{_RAISED}]{{1,3}})(?:[⁻–-]([{_RAISED}]{{1,3}}))?")


def _parse_raised(match: Match, index: EvidenceIds) -> Parsed:
    text, (start, end) = match.string, match.span()
    if text[start - 1 : start] in tuple("⁺⁻⁽⁄/") or is_probably_an_exponent(text, start, end):
        return None
    return _parse_numbers(
        match, _RAISED_PART, index, lambda digits: int(digits.translate(_AS_DIGITS))
    )


def _parse_numbers(
    match: Match, part: re.Pattern[str], index: EvidenceIds, value: Callable[[str], int]
) -> list[Reference]:
    """Return the references of numbers that aren't plain digits, ranges included."""
    references: list[Reference] = []
    for number_match in part.finditer(match.string, *match.span()):
        first = value(number_match.group(1))
        last = value(number_match.group(2)) if number_match.lastindex == 2 else first
        numbers = range(first, last + 1) if first <= last < first + LONGEST_RANGE else (first, last)
        references += [
            Reference(*number_match.span(), str(number), *index.resolve(str(number)))
            for number in numbers
        ]
    return references


# "1, 2-4": plain digits that markup raises.
_RAISED_LIST = r"(\d{1,3}(?:\s?[,;–-]\s?\d{1,3}){0,9})"
# "<sup>1, 2</sup>", "^1^", "$^{1}$".
_SUPERSCRIPT = re.compile(
    rf"<sup>\s{{0,3}}{_RAISED_LIST}\s{{0,3}}</sup>|\^{_RAISED_LIST}\^|\$\^\{{?{_RAISED_LIST}\}}?\$",
    re.IGNORECASE,
)


def _parse_superscript(match: Match, index: EvidenceIds) -> Parsed:
    if is_probably_an_exponent(match.string, *match.span()):
        return None
    group = match.lastindex or 1
    return read_references(match.group(group), match.start(group), index)


_CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳❶❷❸❹❺❻❼❽❾❿"
# "①", "①②", "①, ③".
_CIRCLED_NUMBERS = re.compile(rf"[{_CIRCLED}](?:[,，、\s]?[{_CIRCLED}]){{0,9}}")
_CIRCLED_PART = re.compile(rf"([{_CIRCLED}])")


def _parse_circled(match: Match, index: EvidenceIds) -> Parsed:
    if _are_list_numbers(match.string):
        return None
    return _parse_numbers(match, _CIRCLED_PART, index, lambda sign: _CIRCLED.index(sign) % 20 + 1)


@lru_cache(maxsize=4)
def _are_list_numbers(text: str) -> bool:
    """Return whether circled numbers number the steps or entries of a text.

    All circled numbers of such a text refer to its steps.
    """
    return any(
        is_probably_a_list_number(text, *match.span()) for match in _CIRCLED_NUMBERS.finditer(text)
    )


# Tags: <cite>chunk_1</cite>, <ref>1</ref>, <inref id="chunk_1"/>, <co>...</co: 1>

_TAG_NAME = r"(?:cite|citation|ref|reference|inref|source|sources|doc|document|chunk|footnote)"
# "<cite>chunk_1</cite>": the closing tag must have the same name.
_TAGGED = re.compile(
    rf"<({_TAG_NAME})(?:\s[^<>]{{0,100}})?>\s{{0,3}}([^<>]{{1,200}}?)\s{{0,3}}</\1>", re.IGNORECASE
)
# '<inref id="chunk_1"/>', '<source n=2>'.
_TAG_WITH_ID = re.compile(
    rf"<{_TAG_NAME}\s{{1,3}}(?:ids?|names?|docs?|sources?|chunks?|refs?|keys?|numbers?|n|"
    rf"target)\s?=\s?[\"']?([^\"'<>]{{1,200}}?)[\"']?\s{{0,3}}/?>(?:</{_TAG_NAME}>)?",
    re.IGNORECASE,
)
# "</co: 1,2>" closes a span of Cohere's models.
_GROUNDED_SPAN_END = re.compile(r"</co:\s{0,3}([\w:.-]{1,60}(?:,\s{0,3}[\w:.-]{1,60}){0,20})>")


def _parse_tagged(match: Match, index: EvidenceIds) -> Parsed:
    body, start, end = match.group(2), match.start(2), match.end(2)
    if "[" in body or "【" in body:
        return None  # the marker inside is read separately
    if references := read_references(body, start, index):
        return references
    # <cite>The Odyssey</cite> is a title; one word with a number is a key
    is_key = not any(map(str.isspace, body)) and any(map(str.isdecimal, body))
    resolutions = _resolve_name_or_source(body, index)
    return (
        _references_for(start, end, body, resolutions)
        if is_key or resolutions[0].evidence_id
        else None
    )


def _parse_attribute(match: Match, index: EvidenceIds) -> Parsed:
    """Return the references of names in an attribute or a closing tag, regardless of their shape.

    Only for text that can't be anything but names, because ``3.5`` becomes a fabrication here.
    Elsewhere use ``read_references``.
    """
    if references := read_references(match.group(1), match.start(1), index):
        return references
    references = []
    for key in _CITE_KEY.finditer(match.group(1)):
        start = match.start(1) + key.start()
        resolutions = _resolve_name_or_source(key.group(), index)
        references += _references_for(start, start + len(key.group()), key.group(), resolutions)
    return references


# Control characters of chat products, and numbers from 0.

# U+E200 "cite" U+E202 "turn0search1" U+E201, the control characters of ChatGPT.
_PRIVATE_USE = re.compile(
    "\ue200?[a-z_]{0,20}(?:\ue202[\\w.:-]{1,60}(?:\u2020[^\ue200-\ue202\n]{0,60})?)+\ue201?",
    re.IGNORECASE,
)
# One name in it: "turn0search1", or any name after U+E202.
_TURN = re.compile(r"turn\d{1,3}[a-z]{3,12}\d{1,3}|(?<=\ue202)[\w.:-]{1,60}", re.IGNORECASE)
# "citeturn0search1turn0search2": the same without the control characters.
_PLAIN_TURNS = re.compile(r"(?:(?:file)?cite)?(?:turn\d{1,3}[a-z]{3,12}\d{1,3}){1,20}(?![a-z0-9])")
# One name in it.
_PLAIN_TURN = re.compile(r"turn\d{1,3}[a-z]{3,12}\d{1,3}")
# "##0$$" of RAGFlow and ":contentReference[oaicite:0]{index=0}" of ChatGPT.
_FROM_ZERO = re.compile(
    r"##(\d{1,4})\$\$|:contentReference\[oaicite:(\d{1,4})\](?:\{index=\d{1,4}\})?"
)


def _parse_turns(match: Match, part: re.Pattern[str], index: EvidenceIds) -> list[Reference]:
    references = []
    for turn in part.finditer(match.string, *match.span()):
        references += _references_for(
            *turn.span(), turn.group(), _resolve_name_or_source(turn.group(), index)
        )
    return references


def _parse_from_zero(match: Match, index: EvidenceIds) -> Parsed:
    group = match.lastindex or 1  # each of the two products has its own group
    number = match.group(group)
    return [Reference(*match.span(group), number, *index.resolve_from_zero(int(number)))]


# "Sources: chunk_1, chunk_9", "**Quelle:** chunk_1": a whole line without brackets.
_SOURCE_LINE = re.compile(
    rf"^[ \t*_]{{0,8}}(?:{SOURCE_WORD})[*_]{{0,3}}[:：]"
    r"[*_ \t]{0,6}([^\s\[\]【(][^\[\]【\n]{0,300})$",
    re.IGNORECASE | re.MULTILINE,
)


def _parse_source_line(match: Match, index: EvidenceIds) -> Parsed:
    references = read_references(match.group(1), match.start(1), index)
    if any(
        reference.evidence_id or (index.has_file_names and is_file_name(reference.name))
        for reference in references
    ):
        return references
    return None


def _never_after_stop(match: Match) -> bool:
    return False


SQUARE_BRACKETS = MarkerStyle(
    name="square brackets",
    opening="[［〔〖",
    pattern=re.compile(
        r"\[[^\[\]]{1,300}\]|［[^［］]{1,300}］|〔[^〔〕\n]{1,300}〕|〖[^〖〗\n]{1,300}〗"
    ),
    parse=_parse_square,
    brackets=(("[", "]"), ("［", "］"), ("〔", "〕"), ("〖", "〗")),
    is_ambiguous=True,
    may_follow_stop=_square_may_follow_stop,
    write=lambda names: f"[{', '.join(names)}]",
    example="[chunk_1]",
    explanation=(
        "An id, a number, a list, a range, or a word for evidence with a number. `［］`, `〔〕` and"
        " `〖〗` are the same."
    ),
)

STYLES: tuple[MarkerStyle, ...] = (
    MarkerStyle(
        name="link",
        opening="[",
        signs=("](",),
        pattern=_LINK,
        parse=_parse_link,
        may_follow_stop=_link_may_follow_stop,
        words=lambda match: _label_words(match.group(1)),
        example="[[1]](https://a.example/report)",
        explanation=(
            "A link cites the chunks that have its address. If chunks have web addresses and none"
            " of them is this one, the link is a fabrication, regardless of its label. Otherwise"
            " the label counts."
        ),
    ),
    MarkerStyle(
        name="footnote",
        opening="[",
        signs=("^",),
        pattern=re.compile(r"\[\^([^\[\]\n^]{1,300})\^?\]"),
        parse=_parse_footnote,
        write=lambda names: "".join(f"[^{name}]" for name in names),
        example="[^1]",
        explanation=(
            "Cites the evidence in its definition or, without a definition, the evidence with that"
            " number. If its definition has an id or an address that isn't in the evidence, it's a"
            " fabrication. `[^1^]` is"
            " the same."
        ),
    ),
    SQUARE_BRACKETS,
    MarkerStyle(
        name="escaped brackets",
        opening="\\",
        pattern=ESCAPED_MARKER,
        parse=_parse_escaped,
        write=lambda names: f"\\[{', '.join(names)}\\]",
        example="\\[1\\]",
        explanation="Square brackets that Markdown escapes.",
    ),
    MarkerStyle(
        name="lenticular brackets",
        opening="【",
        pattern=re.compile(r"【([^【】\n]{1,300})】"),
        parse=lambda match, index: _read_before_dagger(match.group(1), match.start(1), index),
        brackets=(("【", "】"),),
        is_ambiguous=False,
        write=lambda names: "".join(f"【{name}†source】" for name in names),
        example="【1†source】",
        explanation="OpenAI's file search: the source, `:` and a place in it, `†` and a label.",
    ),
    MarkerStyle(
        name="round brackets",
        opening="(（",
        pattern=re.compile(r"[(（]([^()（）\[\]]{2,200})[)）]"),
        parse=_parse_round,
        write=lambda names: (
            f"(Source {names[0]})" if len(names) == 1 else f"(Sources {', '.join(names)})"
        ),
        may_follow_stop=lambda match: _ROUND_SOURCE.fullmatch(match.group()) is not None,
        example="(Source 1)",
        explanation=(
            "Only with a word for evidence, or an id of letters and digits. `(1)` isn't a citation."
        ),
    ),
    MarkerStyle(
        name="LaTeX",
        opening="\\",
        pattern=_LATEX_CITE,
        parse=_parse_latex,
        write=lambda names: f"\\cite{{{', '.join(names)}}}",
        example="\\citep[p. 3]{chunk_1}",
        explanation="Every key is a reference.",
    ),
    MarkerStyle(
        name="raised digits",
        opening=_RAISED,
        pattern=_RAISED_NUMBER,
        parse=_parse_raised,
        example="¹",
        explanation=(
            "After a word or a stop, but not after a number, a unit or a letter: `10⁸`, `m³`, `x²`."
        ),
    ),
    MarkerStyle(
        name="superscript",
        opening="<^$",
        signs=("<", "^"),
        pattern=_SUPERSCRIPT,
        parse=_parse_superscript,
        write=lambda names: f"<sup>{', '.join(names)}</sup>",
        example="<sup>1</sup>",
        explanation="Numbers in `<sup>1</sup>`, `^1^` or `$^{1}$`, as raised digits.",
    ),
    MarkerStyle(
        name="circled digits",
        opening=_CIRCLED,
        pattern=_CIRCLED_NUMBERS,
        parse=_parse_circled,
        example="①",
        may_follow_stop=lambda match: not _are_list_numbers(match.string),
        explanation="At the end of a clause, unless they number steps or entries in the answer.",
    ),
    MarkerStyle(
        name="tag",
        opening="<",
        pattern=_TAGGED,
        parse=_parse_tagged,
        write=lambda names: "".join(f"<cite>{name}</cite>" for name in names),
        example="<cite>chunk_1</cite>",
        explanation=(
            "Between `<cite>`, `<ref>`, `<source>`, `<doc>`, `<chunk>` and the like, including with"
            " brackets (LongCite)."
        ),
    ),
    MarkerStyle(
        name="tag with an id",
        opening="<",
        pattern=_TAG_WITH_ID,
        parse=_parse_attribute,
        example='<inref id="chunk_1"/>',
        explanation="The attribute names the evidence.",
    ),
    MarkerStyle(
        name="grounded span",
        opening="<",
        pattern=_GROUNDED_SPAN_END,
        parse=_parse_attribute,
        example="</co: 1>",
        explanation="The end of a span for which Cohere's models cite documents.",
    ),
    MarkerStyle(
        name="HTML link",
        opening="<",
        pattern=_HTML_LINK,
        parse=_parse_html_link,
        words=lambda match: _label_words(match.group(2)),
        example='<a href="https://a.example/report">1</a>',
        explanation="Like a link in Markdown.",
    ),
    MarkerStyle(
        name="numbers from 0",
        opening="#:",
        signs=("##", "oaicite"),
        pattern=_FROM_ZERO,
        parse=_parse_from_zero,
        example="##0$$",
        explanation=(
            "RAGFlow, and `:contentReference[oaicite:0]{index=0}` of ChatGPT: the place of the"
            " chunk, counted from 0."
        ),
    ),
    MarkerStyle(
        name="control characters",
        opening="\ue200\ue202",
        pattern=_PRIVATE_USE,
        parse=lambda match, index: _parse_turns(match, _TURN, index),
        example="\ue200cite\ue202chunk_1\ue201",
        explanation="ChatGPT's search: U+E200 `cite` U+E202 `turn0search1` U+E201.",
    ),
    MarkerStyle(
        name="turns",
        opening="cft",
        signs=("turn0", "citeturn"),
        pattern=_PLAIN_TURNS,
        parse=lambda match, index: _parse_turns(match, _PLAIN_TURN, index),
        example="citeturn0search1",
        explanation="The same in text that has lost its control characters.",
    ),
    MarkerStyle(
        name="address",
        opening="hw",
        signs=("://", "www."),
        pattern=_BARE_ADDRESS,
        parse=_parse_address,
        may_follow_stop=_never_after_stop,
        example="https://a.example/report",
        explanation=(
            "Cites the chunks that come from it. If chunks have web addresses and none of them is"
            " this one, it's a fabrication in `<>`, in `()`, in lists of sources, and after words"
            ' such as "according to". Elsewhere it is only an address.'
        ),
    ),
    MarkerStyle(
        name="source line",
        opening=":：",
        pattern=_SOURCE_LINE,
        parse=_parse_source_line,
        may_follow_stop=_never_after_stop,
        example="\nSources: chunk_1",
        explanation="A line of ids without brackets, if it names any evidence at all.",
    ),
)
"""All styles. If two match the same text, the longer match is used, then the style listed first."""


def alternatives(texts: Iterable[str]) -> str:
    """Return the pattern that matches any of these texts, the longest first."""
    return "|".join(sorted(map(re.escape, texts), key=len, reverse=True))


def none_of(texts: Iterable[str]) -> str:
    """Return the beginning of a character set that excludes all characters of these texts."""
    return "[^" + "".join(re.escape(character) for character in dict.fromkeys("".join(texts)))


# "{{" in "{{src:", and "}}": the brackets without a prefix or suffix of the names.
_OPENING_WITHOUT_PREFIX = re.compile(r"[^\w\s]+")
_CLOSING_WITHOUT_SUFFIX = re.compile(r"[^\w\s]+\Z")


def _without_prefix(pair: tuple[str, str]) -> tuple[str, str]:
    opening, closing = pair
    if match := _OPENING_WITHOUT_PREFIX.match(opening):
        opening = match.group()
    if match := _CLOSING_WITHOUT_SUFFIX.search(closing):
        closing = match.group()
    return opening, closing


def _first_signs(pair: tuple[str, str]) -> tuple[str, str]:
    opening, closing = _without_prefix(pair)
    return opening[0], closing[-1]


class StyleTable:
    """The citation styles, indexed by the characters that a marker of each style has.

    The index is for speed: most answers use one style, so a search for a sign rules out the others
    before a regular expression runs.
    """

    def __init__(self, table: tuple[MarkerStyle, ...]) -> None:
        self.styles = table
        self.signs = [(style.signs or tuple(style.opening), style) for style in table]
        self.signs_in_ascii = [
            (ascii_signs, style)
            for signs, style in self.signs
            if (ascii_signs := tuple(filter(str.isascii, signs)))
        ]
        self.by_opening: dict[str, list[MarkerStyle]] = defaultdict(list)
        for style in table:
            for character in style.opening:
                self.by_opening[character].append(style)
        self.brackets = tuple(pair for style in table for pair in style.brackets)
        self.ambiguous_brackets = tuple(
            pair for style in table if style.is_ambiguous for pair in style.brackets
        )
        self.outer_brackets = tuple(
            dict.fromkeys(
                pair
                for brackets in self.brackets
                for pair in (brackets, _without_prefix(brackets), _first_signs(brackets))
            )
        )
        """Pairs that may enclose a whole marker: those of the styles, and their signs alone."""
        self.openings = "".join(self.by_opening)
        """All characters that a marker may begin with."""
        self.opening_brackets = tuple(opening for opening, _ in self.brackets)
        self.closing_brackets = tuple(closing for _, closing in self.brackets)


_current_table = StyleTable(STYLES)


def style_table() -> StyleTable:
    """Return the index of ``STYLES``."""
    # A test replaces STYLES, so the index is rebuilt when it belongs to another table.
    global _current_table
    if _current_table.styles is not STYLES:
        _current_table = StyleTable(STYLES)
    return _current_table
