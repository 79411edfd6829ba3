"""BibTeX; an entry is read by bibtexparser, its TeX converted to plain text by ``plain``."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Iterator
from typing import BinaryIO

from bibtexparser.entrypoint import parse_string
from bibtexparser.model import DuplicateFieldKeyBlock, Entry, ParsingFailedBlock

from masis.datasets.readers.abstracts.text_lines import Block, read_text_lines
from masis.errors import InputError
from masis.schema.screening import Abstract
from masis.screening.sources.records import abstract_of, collapse_blanks

# TeX in bibliographic fields as plain text: accents, letters, escapes, braces.
#
# Exported abstracts are mostly plain text with a little TeX, so a bare ``%`` stays a percent sign (in TeX it begins a
# comment and would swallow the rest of the line) and ``$...$`` stays as written.

_ACCENTS = {
    "`": "\u0300",
    "'": "\u0301",
    "^": "\u0302",
    "~": "\u0303",
    "=": "\u0304",
    "u": "\u0306",
    ".": "\u0307",
    '"': "\u0308",
    "r": "\u030a",
    "H": "\u030b",
    "v": "\u030c",
    "d": "\u0323",
    "c": "\u0327",
    "k": "\u0328",
}
_LETTERS = {
    "ss": "ß",
    "o": "ø",
    "O": "Ø",
    "l": "ł",
    "L": "Ł",
    "ae": "æ",
    "AE": "Æ",
    "oe": "œ",
    "OE": "Œ",
    "aa": "å",
    "AA": "Å",
    "i": "ı",
    "j": "ȷ",
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "kappa": "κ",
    "mu": "μ",
    "pm": "±",
    "times": "×",
    "le": "≤",
    "leq": "≤",
    "ge": "≥",
    "geq": "≥",
    "textendash": "–",
    "textemdash": "—",
    "textquoteright": "’",
    "textquoteleft": "‘",
    "textpm": "±",
    "textless": "<",
    "textgreater": ">",
    "textregistered": "®",
    "texttrademark": "™",
    "textdegree": "°",
}
_MARK = re.compile(
    r"""\\(?P<symbol>[`'^~=."]|[uvHdckr](?=[\s{]))\s{0,4}(?P<brace>\{?)\s{0,4}(?P<base>\\[ij](?![a-zA-Z])|[^\W\d_])\}?"""
    r"""|\\(?P<name>[a-zA-Z]{1,40})\s?(?P<empty>\{\})?|\\(?P<escaped>[^a-zA-Z])|(?P<curly>[{}])|(?P<tie>~)|(?P<dash>-{2,3})"""
)


def plain(text: str) -> str:
    """Return the text without TeX; what is no TeX known here loses its backslash and keeps its letters."""
    return _MARK.sub(_replaced, text) if any(mark in text for mark in ("\\", "{", "}", "~", "--")) else text


def _replaced(mark: re.Match[str]) -> str:
    if mark["symbol"]:
        base = mark["base"].removeprefix("\\")
        return unicodedata.normalize("NFC", base + _ACCENTS[mark["symbol"]])
    if mark["name"]:
        return _LETTERS.get(mark["name"], "")
    if mark["escaped"]:
        return " " if mark["escaped"] in ("\\", " ", "\n") else mark["escaped"]
    if mark["dash"]:
        return "–" if len(mark["dash"]) == 2 else "—"
    return " " if mark["tie"] else ""


# What could not be parsed becomes an error of ours; the library would log it to stderr too.
logging.getLogger("bibtexparser.splitter").setLevel(logging.CRITICAL)

_BEGINS = re.compile(r"\s{0,100}@\s{0,10}(\w{1,40})\s{0,10}[{(]")
_PASSED_OVER = ("comment", "preamble")
_NAMED = re.compile(r"[^{(]{0,200}[{(]\s{0,100}([\w.:+/-]{1,100})\s{0,100}=")
_BARE_WORD = re.compile(r"[\w.:+/-]+")
_MOST_STRINGS = 1000
_TYPES = ("type", "document_type", "article_type", "note")
_USED = frozenset({"title", "abstract", "author", "keywords", "keyword", "doi", "pmid", "url", "journal", "year"})


def read_bibtex(stream: BinaryIO, *, source: str) -> Iterator[tuple[int, Abstract | InputError]]:
    """Yield every entry with the line it begins at, or an error where one can't be read.

    An entry begins at a line that starts with ``@type{``; text between entries is a comment, as BibTeX has it.
    Abbreviations (``@string``) hold from where they stand to the end of the file.
    """
    strings: dict[str, str] = {}
    for kind, block in _blocks(stream):
        if kind == "string":
            text = "\n".join(block.texts)
            if (named := _NAMED.match(text)) is not None and len(strings) < _MOST_STRINGS:
                strings[named[1].lower()] = text
        elif kind not in _PASSED_OVER:
            yield from ((block.line, found) for found in _records(block, strings, source))


def _blocks(stream: BinaryIO) -> Iterator[tuple[str, Block]]:
    """Yield the blocks of the file with their kinds, in order; entries alone are numbered."""
    kind, block, entries = "", None, 0
    for line in read_text_lines(stream):
        if (begun := _BEGINS.match(line.text)) is not None:
            if block is not None:
                yield kind, block
            kind = begun[1].lower()
            entries += kind not in ("string", *_PASSED_OVER)
            block = Block(entries, line)
        elif block is not None:
            block.add(line)
    if block is not None:
        yield kind, block


def _records(block: Block, strings: dict[str, str], source: str) -> Iterator[Abstract | InputError]:
    """Yield what the lines of a block hold: an entry, unless several stand on one line."""
    if block.problem is not None:
        yield block.placed(block.problem)
        return
    text = "\n".join(block.texts)
    named = {word.lower() for word in _BARE_WORD.findall(text)} & strings.keys() if strings else ()
    library = parse_string("\n".join([*(strings[name] for name in sorted(named)), text]))
    for failed in library.failed_blocks:
        if isinstance(failed, ParsingFailedBlock) and not _about_strings(failed):
            yield _why(block, failed)
    for entry in library.entries:
        yield _abstract(block, entry, source)


def _about_strings(failed: ParsingFailedBlock) -> bool:
    return (failed.raw or "").lstrip().lower().startswith("@string")


def _why(block: Block, failed: ParsingFailedBlock) -> InputError:
    if isinstance(failed, DuplicateFieldKeyBlock):
        twice = ", ".join(sorted(failed.duplicate_keys))[:100]
        return block.wrong(f"holds {twice} twice", "Keep one of the two.")
    reason = str(getattr(failed.error, "abort_reason", failed.error))
    return block.wrong(
        f"can't be read ({' '.join(reason.split())[:200]})",
        "Close its braces and quotes, and put commas between fields.",
    )


def _abstract(block: Block, entry: Entry, source: str) -> Abstract | InputError:
    raw = {field.key.lower(): str(field.value) for field in entry.fields}
    fields = {key: plain(value) for key, value in raw.items()}
    listed = re.split(r"[;,]", fields.get("keywords") or fields.get("keyword") or "")
    try:
        return abstract_of(
            title=fields.get("title", ""),
            text=fields.get("abstract", ""),
            year=fields.get("year") or fields.get("date") or "",
            journal=fields.get("journal") or fields.get("journaltitle") or fields.get("booktitle") or "",
            authors=[plain(name) for name in _authors(raw.get("author", ""))],
            doi=raw.get("doi", "").replace("\\", ""),
            pmid=fields.get("pmid", ""),
            url=raw.get("url", "").replace("\\", ""),
            keywords=listed,
            publication_types=re.split(r"[;|]", "; ".join(fields.get(name, "") for name in _TYPES)),
            source=source,
            record={"key": entry.key, "type": entry.entry_type}
            | {key: value for key, value in fields.items() if key not in _USED},
        )
    except InputError as error:
        return block.placed(error)


def _authors(names: str) -> list[str]:
    """Return the names between ``and``; one in braces is a group's, whatever it holds."""
    authors, depth, begun = list[str](), 0, 0
    names = collapse_blanks(names)
    for found in re.finditer(r"[{}]| and ", names):
        if found.group() in "{}":
            depth = max(0, depth + (1 if found.group() == "{" else -1))
        elif not depth:
            authors.append(names[begun : found.start()])
            begun = found.end()
    return [*authors, names[begun:]]
