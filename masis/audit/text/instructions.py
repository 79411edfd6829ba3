"""Find text that instructs its reader, a model or a tool, in an answer or in evidence.

Evidence is fetched from anywhere and answers are written by models that read it. Text such as
"ignore previous instructions", "SYSTEM:", "send the password to ..." or the tokens of a chat
template is no evidence and no answer: whoever finds it can certify nothing (docs/trust.md).
``instructions.toml`` holds the patterns, so that they can be read and extended without code.

What is only quoted is no instruction: a security article that puts an attack into quotation marks
and speaks about it is harmless. What evades these patterns meets two more walls: models get every
text in fences, and acceptance asks for support in the evidence.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import tomllib
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Any, NamedTuple

from masis.audit.claims import withhold_verdict
from masis.schema.audit import ClaimCheck
from masis.schema.case import Evidence
from masis.schema.wording import shorten

MAX_QUOTE = 300
"""Characters of an instruction that a record or a page repeats."""
CONTEXT_CHARACTERS = 160
"""Characters on both sides of a cue in which patterns are tried; the longest spans of the patterns
are shorter.
"""


class Instruction(NamedTuple):
    """A stretch ``text[start:end]`` that instructs somebody; ``kind`` is a table of
    ``instructions.toml``.
    """

    start: int
    end: int
    kind: str

    @property
    def label(self) -> str:
        """What kind of instruction it is, in words."""
        return LABEL.get(self.kind, f"an order in {self.kind.capitalize()}")


LABEL = {
    "override": "sets other instructions aside",
    "authority": "claims authority over the reader",
    "aims": "an order to a model",
    "role": "poses as a message of system, user or assistant",
    "template": "a control word of a chat template",
    "verdict": "asks for a verdict or a score",
    "exfiltration": "asks for secrets or data",
    "tool": "asks for the use of a tool",
    "role_play": "assigns another role",
    "reader": "dictates an answer",
    "hidden": "hidden from people",
    "encoded": "encoded",
}


def instruction_text(text: str, found: Instruction) -> str:
    """Return the instruction for people: invisible characters written out, blanks single, cut where
    it is long.
    """
    words = _INVISIBLE.sub(
        lambda sign: f"\\u{ord(sign.group()):04x}", text[found.start : found.end]
    )
    words = " ".join(_TAGS.sub("(invisible characters)", words).split())
    return shorten(words, MAX_QUOTE)


REASON = "This instructs a reader, a model or a tool; such a text confirms nothing."


def withdraw_instruction_support(
    checks: Sequence[ClaimCheck], answer: str, evidence: Sequence[Evidence]
) -> tuple[ClaimCheck, ...]:
    """Return the checks, unverifiable where a claim is an instruction or only an instruction
    supports it.

    Whoever the verifier is: words that were put into the evidence in order to be repeated are no
    support.
    """
    orders = find_instructions(answer)
    by_chunk = {chunk.id: found for chunk in evidence if (found := find_instructions(chunk.text))}
    if not orders and not by_chunk:
        return tuple(checks)
    return tuple(
        withhold_verdict(check, "instruction", REASON)
        if _rests_on_instruction(check, orders, by_chunk)
        else check
        for check in checks
    )


def _rests_on_instruction(
    check: ClaimCheck, orders: Sequence[Instruction], by_chunk: Mapping[str, Sequence[Instruction]]
) -> bool:
    """Return whether a confirmed claim is an instruction itself, or nothing but instructions
    confirms it.
    """
    if check.verdict not in ("supported", "partial"):
        return False
    start, end = check.claim.start, check.claim.end
    if (
        start is not None
        and end is not None
        and any(o.start < end and start < o.end for o in orders)
    ):
        return True
    if not any(source in by_chunk for source in check.sources):
        return False
    if not check.quotes:
        return all(source in by_chunk for source in check.sources)
    return all(
        any(
            o.start < quote.end and quote.start < o.end for o in by_chunk.get(quote.evidence_id, ())
        )
        for quote in check.quotes
    )


class _Family(NamedTuple):
    """One kind of instruction: its patterns, and what a text must hold for them to be tried."""

    kind: str
    cue: re.Pattern[str]
    patterns: tuple[re.Pattern[str], ...]


@cache
def _families() -> tuple[_Family, ...]:
    tables = tomllib.loads(
        resources.files("masis.audit.text")
        .joinpath("instructions.toml")
        .read_text(encoding="utf-8")
    )
    words = tables.pop("words")
    return tuple(_family(kind, table, words) for kind, table in tables.items())


def _family(kind: str, table: dict[str, Any], words: dict[str, str]) -> _Family:
    patterns = []
    for line in table["patterns"].strip().splitlines():
        for _ in range(2):  # words may hold words
            for name, pattern in words.items():
                line = line.replace(f"{{{name}}}", pattern)
        patterns.append(re.compile(line))
    return _Family(kind, re.compile(table["cue"]), tuple(patterns))


@lru_cache(maxsize=4096)
def find_instructions(text: str) -> tuple[Instruction, ...]:
    """Return the stretches of a text that instruct a reader, a model or a tool, in order and
    without overlaps.

    The results for the last texts are remembered: evidence is read in every iteration.
    """
    # Letters of the block of tags are shown nowhere; only flags of regions have a use for them.
    found = [Instruction(*run.span(), "hidden") for run in _TAGS.finditer(text)]
    for reading in _pattern_texts(text):
        found += _family_matches(reading, text)
    found += _encoded_instructions(text)
    return _merge_overlapping(found)


def _merge_overlapping(found: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Return one instruction for those that overlap, under the name of the first."""
    kept: list[Instruction] = []
    for each in sorted(found):
        if kept and each.start < kept[-1].end:
            kept[-1] = kept[-1]._replace(end=max(each.end, kept[-1].end))
        else:
            kept.append(each)
    return tuple(kept)


# Readings: the text as a model may read it, with the place of every character.


class _PatternText(NamedTuple):
    """A text in the form in which patterns are tried; ``places[i]`` is where character ``i`` stands
    in the original.
    """

    text: str
    places: Sequence[int]

    def replace(
        self, pattern: re.Pattern[str], meaning: Callable[[re.Match[str]], str]
    ) -> _PatternText:
        """Return the text with what each match means in its place, all of which stands where the
        match begins.
        """
        pieces: list[str] = []
        places: list[int] = []
        at = 0
        for found in pattern.finditer(self.text):
            means = meaning(found)
            pieces += self.text[at : found.start()], means
            places += [*self.places[at : found.start()], *[self.places[found.start()]] * len(means)]
            at = found.end()
        return _PatternText("".join([*pieces, self.text[at:]]), [*places, *self.places[at:]])


_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
)
_TAGS = re.compile("(?<!\U0001f3f4)[\U000e0020-\U000e007e]{3,}")
_LOOKALIKES = str.maketrans(
    "аесорхуіјѕԁһкмнтвгіїοαενικρτυχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧАВЕКМНОРСТУХІЈЅ",
    "aecopxyijsdhkmhtbriioaevikptuxyabezhikmnoptyxabekmhopctyxijs",
)
_LATIN, _FOREIGN = re.compile("[a-z]"), re.compile("[\u0370-\u03ff\u0400-\u052f]")
_WORD = re.compile(r"\w+")
_LEET = str.maketrans("013457@$", "oieastas")
_LEET_WORD = re.compile(
    r"(?<![\w@$])(?=[013457@$]{0,40}[a-z])(?=[a-z]{0,40}[013457@$])[a-z013457@$]{3,40}(?![\w@$])"
)
_SPACED = re.compile(r"(?<![\w])[a-z](?:([ ._*-])[a-z])(?:\1[a-z]){3,}(?![\w])")
_BLANKS = re.compile(r"[^\S\n]+")
_ESCAPED = re.compile(
    r"""(?P<entity>&(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});)
      | (?P<code>\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})) | (?P<percent>%[2-7][0-9a-fA-F])
      | (?P<tags>(?<=\w)(?:</?[a-zA-Z][^<>]{0,40}>|<!--[^<>]{0,80}-->){1,4}(?=\w))""",
    re.VERBOSE,
)
"""Characters written out for a parser, and tags that stand inside of a word."""
_BACKWARDS = re.compile(
    r"\b(?:erongi|suoiverp|snoitcurtsni|tpmorp|metsys|drager?sid|rewsna|evorppa|detroppus|tegrof)\b"
)


def _pattern_texts(text: str) -> Iterator[_PatternText]:
    plain = _fold_for_patterns(text)
    yield plain
    written_out = _PatternText(text, range(len(text))).replace(_ESCAPED, _unescape_match)
    if written_out.text != text:
        read = _fold_for_patterns(written_out.text)
        yield _PatternText(read.text, [written_out.places[at] for at in read.places])
    if len(_BACKWARDS.findall(plain.text)) > 1:
        yield _PatternText(plain.text[::-1], plain.places[::-1])
    if len(_LEET_WORD.findall(plain.text)) > 1:
        yield _PatternText(
            _LEET_WORD.sub(lambda word: word.group().translate(_LEET), plain.text), plain.places
        )
    if apart := {
        at for run in _SPACED.finditer(plain.text) for at in range(run.start() + 1, run.end(), 2)
    }:
        letters = [at for at in range(len(plain.text)) if at not in apart]  # i g n o r e
        yield _PatternText(
            "".join(plain.text[at] for at in letters), [plain.places[at] for at in letters]
        )
    if "\u202e" in text:
        yield _PatternText(plain.text[::-1], plain.places[::-1])


def _unescape_match(found: re.Match[str]) -> str:
    """Return what a browser or a parser hands to the next reader: a character for ``%49``, nothing
    for a tag.
    """
    if found["code"] or found["percent"]:
        return chr(int(found.group().lstrip("\\%ux"), 16))
    return html.unescape(found.group()) if found["entity"] else ""


def _fold_for_patterns(text: str) -> _PatternText:
    """Return the text in lower case and compatibility form, without what can't be seen, look-alike
    letters replaced.
    """
    if text.isascii():
        low = text.lower()
        places: Sequence[int] = range(len(text))
    else:
        characters: list[str] = []
        origin: list[int] = []
        for at, character in enumerate(text):
            if not character.isascii():
                if _INVISIBLE.match(character) or "\U000e0000" <= character <= "\U000e007f":
                    continue
                for part in unicodedata.normalize("NFKC", character).casefold():
                    characters.append("'" if part in "’‘" else part)
                    origin.append(at)
                continue
            characters.append(character.lower())
            origin.append(at)
        low, places = "".join(characters), origin
        if _FOREIGN.search(low) and _LATIN.search(low):
            low = _WORD.sub(_to_latin, low)
    if not _BLANKS.search(low) or ("  " not in low and "\t" not in low and low.isascii()):
        return _PatternText(low, places)
    return _PatternText(low, places).replace(_BLANKS, lambda blank: " ")


def _to_latin(word: re.Match[str]) -> str:
    """Return a word of two alphabets in one: ``ign\u043ere`` with a Cyrillic o is written to be
    overlooked.
    """
    text = word.group()
    return text.translate(_LOOKALIKES) if _LATIN.search(text) and _FOREIGN.search(text) else text


# Matching, and what is only quoted.

_QUOTED = re.compile(
    r"`[^`\n]{1,300}`|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|„[^“”\n]{1,300}[“”]|«[^»\n]{1,300}»|(?<!\w)'[^'\n]{4,300}'(?!\w)"
)
_SENTENCE_EDGE = re.compile(r"[.!?]\s|\n")
_SPEAKS_ABOUT = re.compile(
    r"\b(?:attack\w*|inject\w*|jailbreak\w*|phish\w*|malicious\w*|adversar\w*|exploit\w*|poison\w*|researcher\w*|phrases?|"
    r"sentences?|wrote|writes?|written|such"
    r" as|e\.g|examples?|tokens?|reads|marks|expects|tricks?|fool\w*|told|asked|"
    r"instructed|hid|hidden|words|called|says|said|contains?|angriff\w*|attaque\w*|ataque\w*)\b"
)


def _family_matches(reading: _PatternText, text: str) -> Iterator[Instruction]:
    if not reading.text:
        return
    quotes: list[tuple[int, int]] | None = None
    for family in _families():
        for begin, end in _cue_windows(family.cue, reading.text):
            for pattern in family.patterns:
                for match in pattern.finditer(reading.text, begin, end):
                    if quotes is None:
                        quotes = [quote.span() for quote in _QUOTED.finditer(reading.text)]
                    start = _match_start(match)
                    if start < match.end() and not _is_mentioned(
                        reading.text, start, match.end(), quotes
                    ):
                        first, last = sorted(
                            (reading.places[start], reading.places[match.end() - 1])
                        )
                        yield Instruction(first, last + 1, family.kind)


def _cue_windows(cue: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield the stretches around the cues, since every pattern on every character of long evidence
    takes too long.
    """
    begin = end = -1
    for hit in cue.finditer(text):
        if hit.start() - CONTEXT_CHARACTERS > end:
            if end >= 0:
                yield begin, min(end, len(text))
            begin = max(0, hit.start() - CONTEXT_CHARACTERS)
        end = hit.end() + CONTEXT_CHARACTERS
    if end >= 0:
        yield begin, min(end, len(text))


def _match_start(match: re.Match[str]) -> int:
    """Return where the match begins, less the sign and the blanks that lead up to it."""
    text = match.group()
    return match.start() + len(text) - len(text.lstrip(' \t\n.!?:;>])}|*#="“”„«(—–…。，：！-'))


def _is_mentioned(text: str, start: int, end: int, quotes: Sequence[tuple[int, int]]) -> bool:
    """Return whether the match only stands in quotation marks, in a sentence that
    speaks about it.
    """
    at = bisect_right(quotes, (start, len(text))) - 1
    if at < 0 or not quotes[at][0] <= start < quotes[at][1] or end > quotes[at][1] + 1:
        return False
    opens, closes = quotes[at]
    before = text[max(0, opens - 200) : opens]
    edges = list(_SENTENCE_EDGE.finditer(before))
    before = before[edges[-1].end() :] if edges else before
    after = _SENTENCE_EDGE.split(text[closes : closes + 200], maxsplit=1)[0]
    return _SPEAKS_ABOUT.search(f"{before} {after}") is not None


# Encoded instructions: what decodes to one is one.

_BASE64 = re.compile(
    r"(?<![\w+/=])(?:[A-Za-z0-9+/]{4}){5,400}(?:[A-Za-z0-9+/]{2,3}={1,2}|[A-Za-z0-9+/]{2,3})?(?![\w+/])"
)
_HEX = re.compile(r"(?<!\w)(?:[0-9a-fA-F]{2}){16,800}(?!\w)")
_ROT13 = re.compile(
    r"\brot ?-?13\b|\b(?:vtaber|qvfertneq|vafgehpgvbaf?|cerivbhf|sbetrg|bireevqr)\b", re.IGNORECASE
)
"""The word, or one that orders begin with, in that code."""
_RUN = re.compile(r"[A-Za-z0-9+/]{22}")


def _encoded_instructions(text: str) -> Iterator[Instruction]:
    if _ROT13.search(text) and _instructs(codecs.decode(text, "rot13")):
        yield Instruction(0, len(text), "encoded")
    if not _RUN.search(text):
        return
    for pattern, decoded in ((_BASE64, _from_base64), (_HEX, bytes.fromhex)):
        for found in pattern.finditer(text):
            if _instructs(decoded(found.group()).decode("utf-8", errors="replace")):
                yield Instruction(found.start(), found.end(), "encoded")


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        return b""


def _instructs(decoded: str) -> bool:
    printable = sum(character.isprintable() or character.isspace() for character in decoded)
    if not decoded or "\ufffd" in decoded or printable < len(decoded):
        return False
    return any(True for _ in _family_matches(_fold_for_patterns(decoded), decoded))
