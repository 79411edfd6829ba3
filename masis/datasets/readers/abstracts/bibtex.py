"""BibTeX; an entry is read by bibtexparser, its TeX made plain text by pylatexenc."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from bibtexparser.entrypoint import parse_string
from bibtexparser.middlewares.names import split_multiple_persons_names
from bibtexparser.model import DuplicateFieldKeyBlock, Entry, ParsingFailedBlock
from pylatexenc.latex2text import LatexNodes2Text  # type: ignore[import-untyped]

from masis.datasets.readers.abstracts.blocks import Block, read_blocks
from masis.errors import InputError
from masis.schema.screening import Abstract
from masis.screening.sources.records import abstract_of, collapse_blanks

_TEX = LatexNodes2Text(math_mode="with-delimiters", keep_comments=True)
_NO_TEX = re.compile(r"(?<!\\)[%&#_]")
"""Exported abstracts are mostly plain text with a little TeX: these stay what they are, where TeX would take a bare
``%`` for a comment that swallows the rest of the line."""


def plain(text: str) -> str:
    """Return the text without TeX; what is no TeX known here loses its backslash and keeps its letters."""
    if not any(mark in text for mark in ("\\", "{", "}", "~", "--")):
        return text
    escaped = _NO_TEX.sub(r"\\\g<0>", text.replace(r"\textless", "<").replace(r"\textgreater", ">"))
    try:
        return str(_TEX.latex_to_text(escaped)).replace("\u00a0", " ")
    except RecursionError:  # braces deeper than in any text
        return text


# What could not be parsed becomes an error of ours; the library would log it to stderr too.
logging.getLogger("bibtexparser.splitter").setLevel(logging.CRITICAL)

_BEGINS = re.compile(r"\s{0,100}@\s{0,10}(\w{1,40})\s{0,10}[{(]")
_PASSED_OVER = ("comment", "preamble")
_NAMED = re.compile(r"[^{(]{0,200}[{(]\s{0,100}([\w.:+/-]{1,100})\s{0,100}=")
_BARE_WORD = re.compile(r"[\w.:+/-]+")
_MOST_STRINGS = 1000
_TYPES = ("type", "document_type", "article_type", "note")
_USED = frozenset({"title", "abstract", "author", "keywords", "keyword", "doi", "pmid", "url", "journal", "year"})


def read_bibtex(stream: BinaryIO, *, source: str) -> Iterator[Abstract | InputError]:
    """Yield every entry, or an error where one can't be read.

    An entry begins at a line that starts with ``@type{``; text between entries is a comment, as BibTeX has it.
    Abbreviations (``@string``) hold from where they stand to the end of the file.
    """
    strings: dict[str, str] = {}
    entries = 0
    for block in read_blocks(stream, _BEGINS):
        assert isinstance(block, Block)  # there are no stray lines
        kind = begun[1].lower() if block.texts and (begun := _BEGINS.match(block.texts[0])) else ""
        if kind == "string":
            text = "\n".join(block.texts)
            if (named := _NAMED.match(text)) is not None and len(strings) < _MOST_STRINGS:
                strings[named[1].lower()] = text
        elif kind not in _PASSED_OVER:
            entries += 1
            block.number = entries
            yield from _records(block, strings, source)


def _records(block: Block, strings: dict[str, str], source: str) -> Iterator[Abstract | InputError]:
    """Yield what the lines of a block hold: an entry, unless several stand on one line."""
    if block.problem is not None:
        yield block.placed(block.problem)
        return
    text = "\n".join(block.texts)
    named = {word.lower() for word in _BARE_WORD.findall(text)} & strings.keys() if strings else ()
    library = parse_string("\n".join([*(strings[name] for name in sorted(named)), text]))
    for failed in library.failed_blocks:
        if isinstance(failed, DuplicateFieldKeyBlock):
            twice = ", ".join(sorted(failed.duplicate_keys))[:100]
            yield block.placed(InputError(f"holds {twice} twice", cure="Keep one of the two."))
        elif isinstance(failed, ParsingFailedBlock) and not (failed.raw or "").lstrip().lower().startswith("@string"):
            reason = " ".join(str(getattr(failed.error, "abort_reason", failed.error)).split())[:200]
            cure = "Close its braces and quotes, and put commas between fields."
            yield block.placed(InputError(f"can't be read ({reason})", cure=cure))
    for entry in library.entries:
        yield block.read(partial(_abstract, entry), source)


def _abstract(entry: Entry, block: Block, source: str) -> Abstract:
    raw = {field.key.lower(): str(field.value) for field in entry.fields}
    fields = {key: plain(value) for key, value in raw.items()}
    return abstract_of(
        title=fields.get("title", ""),
        text=fields.get("abstract", ""),
        year=fields.get("year") or fields.get("date") or "",
        journal=fields.get("journal") or fields.get("journaltitle") or fields.get("booktitle") or "",
        authors=map(plain, split_multiple_persons_names(collapse_blanks(raw.get("author", "")))),
        doi=raw.get("doi", "").replace("\\", ""),
        pmid=fields.get("pmid", ""),
        url=raw.get("url", "").replace("\\", ""),
        keywords=re.split(r"[;,]", fields.get("keywords") or fields.get("keyword") or ""),
        publication_types=re.split(r"[;|]", "; ".join(fields.get(name, "") for name in _TYPES)),
        source=source,
        record={"key": entry.key, "type": entry.entry_type}
        | {key: value for key, value in fields.items() if key not in _USED},
    )
