"""Finds text that instructs its reader, a model or a tool, in an answer or in evidence.

Evidence comes from anywhere, and models that read it write the answers. Text such as "ignore
previous instructions", "SYSTEM:", "send the password to ..." or the tokens of a chat template is
neither evidence nor an answer, so an answer with it is never certified (docs/trust.md).
``instructions.toml`` has the patterns, so that they can be read and extended without code.

Quoted instructions don't count: a security article that puts an attack in quotation marks and
speaks about it is harmless. Two other defenses remain for text that evades these patterns: models
get every text in fences, and acceptance requires support in the evidence.
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
"""Maximum number of characters of an instruction that a record or a page repeats."""
CONTEXT_CHARACTERS = 160
"""The characters on both sides of a cue in which patterns are tried; pattern spans are shorter."""


class Instruction(NamedTuple):
    """A span ``text[start:end]`` that instructs somebody.

    ``kind`` is the name of a table of ``instructions.toml``.
    """

    start: int
    end: int
    kind: str

    @property
    def label(self) -> str:
        """The kind of instruction, in words."""
        return LABEL.get(self.kind, f"an order in {self.kind.capitalize()}")


LABEL = {
    "override": "sets other instructions aside",
    "authority": "claims authority over its reader",
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


def instruction_text(text: str, instruction: Instruction) -> str:
    """Return the instruction for people, shortened, with invisible characters written out."""
    words = _INVISIBLE.sub(
        lambda sign: f"\\u{ord(sign.group()):04x}", text[instruction.start : instruction.end]
    )
    words = " ".join(_TAGS.sub("(invisible characters)", words).split())
    return shorten(words, MAX_QUOTE)


REASON = "This instructs a reader, a model or a tool, so it can't confirm a claim."


def withdraw_instruction_support(
    checks: Sequence[ClaimCheck], answer: str, evidence: Sequence[Evidence]
) -> tuple[ClaimCheck, ...]:
    """Withdraw the verdict of each claim that is an instruction or that only instructions support.

    This applies to any verifier, because words planted in the evidence to be repeated don't support
    a claim.
    """
    answer_instructions = find_instructions(answer)
    by_chunk = {
        chunk.id: instructions
        for chunk in evidence
        if (instructions := find_instructions(chunk.text))
    }
    if not answer_instructions and not by_chunk:
        return tuple(checks)
    return tuple(
        withhold_verdict(check, "instruction", REASON)
        if _is_based_on_instruction(check, answer_instructions, by_chunk)
        else check
        for check in checks
    )


def _is_based_on_instruction(
    check: ClaimCheck,
    answer_instructions: Sequence[Instruction],
    by_chunk: Mapping[str, Sequence[Instruction]],
) -> bool:
    """Return whether a confirmed claim is an instruction, or only instructions confirm it."""
    if check.verdict not in ("supported", "partial"):
        return False
    start, end = check.claim.start, check.claim.end
    if (
        start is not None
        and end is not None
        and any(
            instruction.start < end and start < instruction.end
            for instruction in answer_instructions
        )
    ):
        return True
    if not any(source in by_chunk for source in check.sources):
        return False
    if not check.quotes:
        return all(source in by_chunk for source in check.sources)
    return all(
        any(
            instruction.start < quote.end and quote.start < instruction.end
            for instruction in by_chunk.get(quote.evidence_id, ())
        )
        for quote in check.quotes
    )


class _Family(NamedTuple):
    """One kind of instruction: its patterns, and the cue without which they aren't tried."""

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
        for _ in range(2):  # words may contain words
            for name, pattern in words.items():
                line = line.replace(f"{{{name}}}", pattern)
        patterns.append(re.compile(line))
    return _Family(kind, re.compile(table["cue"]), tuple(patterns))


@lru_cache(maxsize=4096)
def find_instructions(text: str) -> tuple[Instruction, ...]:
    """Return the spans of a text that instruct a reader, a model or a tool.

    They are in order and don't overlap. Results are cached, because evidence is read in every
    iteration.
    """
    # Characters of the Unicode tag block are invisible, and only flags of regions use them.
    instructions = [Instruction(*run.span(), "hidden") for run in _TAGS.finditer(text)]
    for reading in _pattern_texts(text):
        instructions += _family_matches(reading, text)
    instructions += _encoded_instructions(text)
    return _merge_overlapping(instructions)


def _merge_overlapping(instructions: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Merge overlapping instructions into one, with the kind of the first."""
    merged: list[Instruction] = []
    for instruction in sorted(instructions):
        if merged and instruction.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(instruction.end, merged[-1].end))
        else:
            merged.append(instruction)
    return tuple(merged)


# Readings of the text as a model may read it, with the original position of each character.


class _PatternText(NamedTuple):
    """A text in the form that patterns are applied to.

    ``positions[i]`` is the original position of character ``i``.
    """

    text: str
    positions: Sequence[int]

    def replace(
        self, pattern: re.Pattern[str], replacement_of: Callable[[re.Match[str]], str]
    ) -> _PatternText:
        """Return the text with each match replaced by the result of ``replacement_of``.

        The position of the replacement is the start of the match.
        """
        pieces: list[str] = []
        positions: list[int] = []
        position = 0
        for match in pattern.finditer(self.text):
            replacement = replacement_of(match)
            pieces += self.text[position : match.start()], replacement
            positions += [
                *self.positions[position : match.start()],
                *[self.positions[match.start()]] * len(replacement),
            ]
            position = match.end()
        return _PatternText(
            "".join([*pieces, self.text[position:]]), [*positions, *self.positions[position:]]
        )


# Characters without a glyph: soft hyphens, zero-width and direction marks, variation selectors.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
)
# Three or more characters of the Unicode tag block, except in the flag of a region, which begins
# with a black flag (U+1F3F4).
_TAGS = re.compile("(?<!\U0001f3f4)[\U000e0020-\U000e007e]{3,}")
# Cyrillic and Greek letters that look like Latin ones.
_LOOKALIKES = str.maketrans(
    "аесорхуіјѕԁһкмнтвгіїοαενικρτυχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧАВЕКМНОРСТУХІЈЅ",
    "aecopxyijsdhkmhtbriioaevikptuxyabezhikmnoptyxabekmhopctyxijs",
)
# A Latin letter, and a Greek or Cyrillic one.
_LATIN, _FOREIGN = re.compile("[a-z]"), re.compile("[\u0370-\u03ff\u0400-\u052f]")
_WORD = re.compile(r"\w+")
_LEET = str.maketrans("013457@$", "oieastas")
# A word with both letters and figures, such as "1gn0r3". The two lookaheads require one of each.
_LEET_WORD = re.compile(
    r"(?<![\w@$])(?=[013457@$]{0,40}[a-z])(?=[a-z]{0,40}[013457@$])[a-z013457@$]{3,40}(?![\w@$])"
)
# A word whose letters are separated by the same sign: "i g n o r e", "i-g-n-o-r-e".
_SPACED = re.compile(r"(?<![\w])[a-z](?:([ ._*-])[a-z])(?:\1[a-z]){3,}(?![\w])")
# Whitespace except line breaks, which end a sentence.
_SPACES = re.compile(r"[^\S\n]+")
# Characters escaped for a parser ("&#105;", "\u0069", "%69"), and tags or comments inside a word:
# "ig<b></b>nore".
_ESCAPED = re.compile(
    r"""(?P<entity>&(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});)
      | (?P<code>\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})) | (?P<percent>%[2-7][0-9a-fA-F])
      | (?P<tags>(?<=\w)(?:</?[a-zA-Z][^<>]{0,40}>|<!--[^<>]{0,80}-->){1,4}(?=\w))""",
    re.VERBOSE,
)
# Typical words of instructions, written backwards: "erongi" is "ignore".
_BACKWARDS = re.compile(
    r"\b(?:erongi|suoiverp|snoitcurtsni|tpmorp|metsys|drager?sid|rewsna|evorppa|detroppus|tegrof)\b"
)


def _pattern_texts(text: str) -> Iterator[_PatternText]:
    plain = _fold_for_patterns(text)
    yield plain
    unescaped = _PatternText(text, range(len(text))).replace(_ESCAPED, _unescape_match)
    if unescaped.text != text:
        folded = _fold_for_patterns(unescaped.text)
        yield _PatternText(folded.text, [unescaped.positions[index] for index in folded.positions])
    if len(_BACKWARDS.findall(plain.text)) > 1:
        yield _PatternText(plain.text[::-1], plain.positions[::-1])
    if len(_LEET_WORD.findall(plain.text)) > 1:
        yield _PatternText(
            _LEET_WORD.sub(lambda word: word.group().translate(_LEET), plain.text), plain.positions
        )
    if separators := {
        index
        for run in _SPACED.finditer(plain.text)
        for index in range(run.start() + 1, run.end(), 2)
    }:
        letters = [
            index for index in range(len(plain.text)) if index not in separators
        ]  # i g n o r e
        yield _PatternText(
            "".join(plain.text[index] for index in letters),
            [plain.positions[index] for index in letters],
        )
    if "\u202e" in text:
        yield _PatternText(plain.text[::-1], plain.positions[::-1])


def _unescape_match(match: re.Match[str]) -> str:
    """Return the text that a browser or parser makes of an escape.

    That is a character for ``%49`` and nothing for a tag.
    """
    if match["code"] or match["percent"]:
        return chr(int(match.group().lstrip("\\%ux"), 16))
    return html.unescape(match.group()) if match["entity"] else ""


def _fold_for_patterns(text: str) -> _PatternText:
    """Return the text in lower case and Unicode's compatibility form (NFKC).

    Invisible characters are dropped. Letters that look like Latin ones become Latin.
    """
    if text.isascii():
        lowered = text.lower()
        positions: Sequence[int] = range(len(text))
    else:
        characters: list[str] = []
        origins: list[int] = []
        for position, character in enumerate(text):
            if not character.isascii():
                if _INVISIBLE.match(character) or "\U000e0000" <= character <= "\U000e007f":
                    continue
                for part in unicodedata.normalize("NFKC", character).casefold():
                    characters.append("'" if part in "’‘" else part)
                    origins.append(position)
                continue
            characters.append(character.lower())
            origins.append(position)
        lowered, positions = "".join(characters), origins
        if _FOREIGN.search(lowered) and _LATIN.search(lowered):
            lowered = _WORD.sub(_to_latin, lowered)
    if not _SPACES.search(lowered) or (
        "  " not in lowered and "\t" not in lowered and lowered.isascii()
    ):
        return _PatternText(lowered, positions)
    return _PatternText(lowered, positions).replace(_SPACES, lambda blank: " ")


def _to_latin(word: re.Match[str]) -> str:
    """Return a word of two alphabets in Latin letters.

    A word such as ``ign\u043ere``, with a Cyrillic o, is written to be overlooked.
    """
    text = word.group()
    return text.translate(_LOOKALIKES) if _LATIN.search(text) and _FOREIGN.search(text) else text


# Matching, and the exception for quoted text.

# Text in quotation marks or code marks: `x`, "x", “x”, „x“, «x», 'ignore'. The lookarounds exclude
# an apostrophe inside a word.
_QUOTED = re.compile(
    r"`[^`\n]{1,300}`|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|„[^“”\n]{1,300}[“”]|«[^»\n]{1,300}»|"
    r"(?<!\w)'[^'\n]{4,300}'(?!\w)"
)
# ". ", "!\n", or a line break.
_SENTENCE_EDGE = re.compile(r"[.!?]\s|\n")
# Words of a sentence that reports an attack instead of making one: "the attacker wrote", "a phrase
# such as".
_SPEAKS_ABOUT = re.compile(
    r"\b(?:attack\w*|inject\w*|jailbreak\w*|phish\w*|malicious\w*|adversar\w*|exploit\w*|poison\w*|"
    r"researcher\w*|phrases?|sentences?|wrote|writes?|written|such as|e\.g|examples?|tokens?|reads|"
    r"marks|expects|tricks?|fool\w*|told|asked|instructed|hid|hidden|words|called|says|said|"
    r"contains?|angriff\w*|attaque\w*|ataque\w*)\b"
)


_LEADING_SIGNS = ' \t\n.!?:;>])}|*#="“”„«(—–…。，：！-'


def _family_matches(reading: _PatternText, text: str) -> Iterator[Instruction]:
    if not reading.text:
        return
    quotes: list[tuple[int, int]] | None = None
    for family in _families():
        for window_start, window_end in _cue_windows(family.cue, reading.text):
            for pattern in family.patterns:
                for match in pattern.finditer(reading.text, window_start, window_end):
                    if quotes is None:
                        quotes = [quote.span() for quote in _QUOTED.finditer(reading.text)]
                    # Leading punctuation and spaces aren't part of the instruction.
                    words = match.group().lstrip(_LEADING_SIGNS)
                    start = match.end() - len(words)
                    if start < match.end() and not _is_mentioned(
                        reading.text, start, match.end(), quotes
                    ):
                        first, last = sorted(
                            (reading.positions[start], reading.positions[match.end() - 1])
                        )
                        yield Instruction(first, last + 1, family.kind)


def _cue_windows(cue: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans around the cues; every pattern on all of a long text would take too long."""
    window_start = window_end = -1
    for cue_match in cue.finditer(text):
        if cue_match.start() - CONTEXT_CHARACTERS > window_end:
            if window_end >= 0:
                yield window_start, min(window_end, len(text))
            window_start = max(0, cue_match.start() - CONTEXT_CHARACTERS)
        window_end = cue_match.end() + CONTEXT_CHARACTERS
    if window_end >= 0:
        yield window_start, min(window_end, len(text))


def _is_mentioned(text: str, start: int, end: int, quotes: Sequence[tuple[int, int]]) -> bool:
    """Return whether the match is in quotation marks, in a sentence that speaks about it."""
    index = bisect_right(quotes, (start, len(text))) - 1
    if index < 0 or not quotes[index][0] <= start < quotes[index][1] or end > quotes[index][1] + 1:
        return False
    quote_start, quote_end = quotes[index]
    before = text[max(0, quote_start - 200) : quote_start]
    sentence_edges = list(_SENTENCE_EDGE.finditer(before))
    before = before[sentence_edges[-1].end() :] if sentence_edges else before
    after = _SENTENCE_EDGE.split(text[quote_end : quote_end + 200], maxsplit=1)[0]
    return _SPEAKS_ABOUT.search(f"{before} {after}") is not None


# Encoded instructions: text that decodes to an instruction counts as one.

# Base64 of at least 20 characters, possibly padded: "aWdub3JlIHByZXZpb3Vz".
_BASE64 = re.compile(
    r"(?<![\w+/=])(?:[A-Za-z0-9+/]{4}){5,400}"
    r"(?:[A-Za-z0-9+/]{2,3}={1,2}|[A-Za-z0-9+/]{2,3})?(?![\w+/])"
)
# At least 16 bytes in hexadecimal digits: "69676e6f7265...".
_HEX = re.compile(r"(?<!\w)(?:[0-9a-fA-F]{2}){16,800}(?!\w)")
# The word "rot13", or in that code a word that orders begin with: "vtaber" is "ignore".
_ROT13 = re.compile(
    r"\brot ?-?13\b|\b(?:vtaber|qvfertneq|vafgehpgvbaf?|cerivbhf|sbetrg|bireevqr)\b", re.IGNORECASE
)
# Most texts have no run of letters and digits this long, and need no search for encodings.
_RUN = re.compile(r"[A-Za-z0-9+/]{22}")


def _encoded_instructions(text: str) -> Iterator[Instruction]:
    if _ROT13.search(text) and _is_instruction(codecs.decode(text, "rot13")):
        yield Instruction(0, len(text), "encoded")
    if not _RUN.search(text):
        return
    for pattern, decode in ((_BASE64, _from_base64), (_HEX, bytes.fromhex)):
        for match in pattern.finditer(text):
            if _is_instruction(decode(match.group()).decode("utf-8", errors="replace")):
                yield Instruction(match.start(), match.end(), "encoded")


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        return b""


def _is_instruction(decoded: str) -> bool:
    printable = sum(character.isprintable() or character.isspace() for character in decoded)
    if not decoded or "\ufffd" in decoded or printable < len(decoded):
        return False
    return any(True for _ in _family_matches(_fold_for_patterns(decoded), decoded))
