"""Reads bibliographic text files: RIS, MEDLINE text as PubMed saves it, and BibTeX.

A record is a block of lines. rispy reads a RIS record, bibtexparser a BibTeX entry, and pylatexenc
turns its TeX into plain text. MEDLINE (https://www.nlm.nih.gov/bsd/mms/medlineelements.html) has a
tag of up to four letters, a dash and a field that blanks continue. It is parsed here because the
only packaged parser comes with 15 MB of molecular biology.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO

from bibtexparser.entrypoint import parse_string
from bibtexparser.middlewares.names import split_multiple_persons_names
from bibtexparser.model import DuplicateFieldKeyBlock, Entry, ParsingFailedBlock
from pylatexenc.latex2text import LatexNodes2Text  # type: ignore[import-untyped]
from rispy import RisParser  # type: ignore[import-untyped]

from masis.datasets.readers.lines import read_raw_lines, utf8_error
from masis.errors import InputError
from masis.schema.screening import Abstract
from masis.screening.sources.publication import OF_CONCERN_TYPE, RETRACTED_TYPE
from masis.screening.sources.records import abstract_of, collapse_whitespace

MAX_LINE_BYTES = 4 * 1024 * 1024
"""The longest line. Many exports have a whole abstract on one line, but none is this long."""

MAX_RECORD_CHARACTERS = 8 * 1024 * 1024
"""The longest record. A longer one has lost its end, so reading continues with the next record."""


class RecordBlock:
    """Collects the lines of one record.

    If they don't fit into memory or aren't text, ``problem`` says so.
    """

    def __init__(self, number: int, line: int) -> None:
        self.number, self.line, self.ended = number, line, False
        self.texts: list[str] = []
        self.problem: InputError | None = None
        self._characters = 0

    def add(self, text: str, problem: InputError | None) -> None:
        """Add a line, unless the record is already too long."""
        self.problem = self.problem or problem
        self._characters += len(text)
        if self._characters <= MAX_RECORD_CHARACTERS:
            self.texts.append(text)
        elif self.texts:
            self.texts = []
            hint = "Look for the missing end of the record."
            too_long = f"is longer than {MAX_RECORD_CHARACTERS // 2**20} MiB"
            self.problem = InputError(too_long, hint=hint, line=self.line)

    def with_place(self, error: InputError) -> InputError:
        """Return an error with the place of the record."""
        field = f"record {self.number}" + (f", {error.field}" if error.field else "")
        return InputError(error.problem, hint=error.hint, line=error.line or self.line, field=field)

    def read(
        self, reader: Callable[[RecordBlock, str], Abstract], source: str
    ) -> Abstract | InputError:
        """Return the result of a reader, or the problem with the record and its place."""
        try:
            if self.problem is not None:
                raise self.problem
            return reader(self, source)
        except InputError as error:
            return self.with_place(error)


def read_blocks(
    stream: BinaryIO, begins: re.Pattern[str], ends: re.Pattern[str] | None = None, stray: str = ""
) -> Iterator[RecordBlock | InputError]:
    """Yield the records of a file, which begin at a line of their own.

    A record ends at a line that matches ``ends``, or else before the next record. Lines outside
    records are an error with the hint ``stray``, reported for the first of several. If records have
    an end, text before the first one is an export's header and is skipped, and so are numbers of
    records between them.
    """
    block: RecordBlock | None = None
    number, strayed = 0, not stray
    for line, raw, _ in read_raw_lines(stream, max_bytes=MAX_LINE_BYTES):
        text, problem = _decode_line(line, raw)
        if begins.match(text):
            if block is not None:
                yield block
            number, strayed = number + 1, not stray
            block = RecordBlock(number, line)
        if block is not None:
            block.add(text, problem)
            if ends is not None and ends.match(text):
                block.ended = True
                yield block
                block = None
        elif (
            text.strip()
            and not strayed
            and (number or ends is None)
            and not (ends is not None and _RECORD_NUMBER.fullmatch(text))
        ):
            strayed = True
            yield InputError("is outside any record", hint=stray, line=line)
    if block is not None:
        yield block


def _decode_line(line: int, raw: bytes | None) -> tuple[str, InputError | None]:
    """Return the text of a line, and the problem with it if there is one."""
    if raw is None:
        problem = f"is longer than {MAX_LINE_BYTES // 2**20} MiB"
        hint = "Break the line, or remove the record."
        return "", InputError(problem, hint=hint, line=line)
    raw = raw.rstrip(b"\r\n")
    try:
        return raw.decode("utf-8"), None
    except UnicodeDecodeError as error:
        return raw.decode("utf-8", "replace"), utf8_error(error, line, of_line=True)


# RIS and MEDLINE

# "TY  - JOUR" and "ER  - ", the first and the last line of a record.
_RIS_BEGINS, _RIS_ENDS = re.compile(r"[ \t]{0,100}TY  -"), re.compile(r"[ \t]{0,100}ER  -")
# A number before each record, as rispy and Ovid write it: "1.", "<12>", "Record 3".
_RECORD_NUMBER = re.compile(r"\s{0,100}(?:record )?[<\[(#]?\d{1,9}[>\])]?[.:]?\s{0,100}", re.I)
_RIS_HINT = "Begin each record with a line `TY  - JOUR` and end it with `ER  - `."
_TITLE = ("title", "primary_title", "translated_title", "short_title")
_TEXT = ("abstract", "notes_abstract")
_JOURNAL = (
    "secondary_title",
    "alternate_title3",
    "journal_name",
    "alternate_title2",
    "alternate_title1",
)
_AUTHORS = ("authors", "first_authors")
_RIS_FIELDS_READ = {*_TITLE[:2], *_TEXT, *_AUTHORS, "doi", "keywords", "urls"}
"""RIS fields that become fields of the abstract; the others are kept in ``record``."""
_PUBMED = re.compile(r"pubmed|medline|nlm", re.IGNORECASE)

# "PMID- 12345678", the first line of a record.
_MEDLINE_BEGINS = re.compile("PMID-")
_MEDLINE_HINT = (
    "Save the records from PubMed in the format PubMed; each begins with a line `PMID- `."
)
_TAG = re.compile(r"([A-Z][A-Z0-9]{1,3}) {0,2}- ?(.*)", re.DOTALL)
"""A line of MEDLINE with its tag: ``TI  - Title``. Tags have two to four characters."""
_MEDLINE_EXTRAS = {"MH": "mesh", "SI": "registrations", "LA": "languages"}
"""MEDLINE tags that are kept in ``record``, with their names there."""
_NOTICE_TYPES = {"RIN": RETRACTED_TYPE, "ECI": OF_CONCERN_TYPE}
"""Tags that point to a notice about the study, with the publication type that this implies."""
_NOTICE_TARGETS = ("ROF", "EFR", "ECF")
"""Tags of a notice that point to the record it is about."""
_IDENTIFIER = re.compile(r"PMID: ?\d+|10\.\d{4,9}/\S+")
"""A PubMed id or a DOI in the text of a notice tag."""


def read_ris(stream: BinaryIO, *, source: str) -> Iterator[Abstract | InputError]:
    """Yield every record, or an error if it has no end or can't be read."""
    for block in read_blocks(stream, _RIS_BEGINS, _RIS_ENDS, _RIS_HINT):
        yield block if isinstance(block, InputError) else block.read(_ris_abstract, source)


def _ris_abstract(block: RecordBlock, source: str) -> Abstract:
    if not block.ended:
        raise InputError(
            "has no end", hint="Add a line `ER  - ` after it; it may have been cut off."
        )
    parser = RisParser(delimiter_tags_mapping={})  # rispy would split URLs at semicolons
    fields: dict[str, Any] = parser.parse_lines(
        line for text in block.texts if (line := text.lstrip())
    )[0]

    def first(*keys: str) -> str:
        return next(
            (value for key in keys if isinstance(value := fields.get(key), str) and value.strip()),
            "",
        )

    number = first("accession_number")
    database = first("name_of_database") + first("database_provider")
    types = (first("type_of_work"), first("type_of_reference"))
    rest = {key: value for key, value in fields.items() if key not in _RIS_FIELDS_READ}
    return abstract_of(
        title=first(*_TITLE),
        text=first(*_TEXT),
        year=first("year", "publication_year", "date"),
        journal=first(*_JOURNAL),
        authors=[name for key in _AUTHORS for name in fields.get(key, ())],
        doi=first("doi"),
        pmid=number if number.isdigit() and _PUBMED.search(database[:200]) else "",
        url=next(iter(fields.get("urls", ())), ""),
        keywords=fields.get("keywords", ()),
        publication_types=[part for value in types for part in re.split(r"[;|]", value)],
        source=source,
        record=rest | ({"unknown_tag": dict(rest["unknown_tag"])} if "unknown_tag" in rest else {}),
    )


def read_medline(stream: BinaryIO, *, source: str) -> Iterator[Abstract | InputError]:
    """Yield every record, or an error if it can't be read."""
    for block in read_blocks(stream, _MEDLINE_BEGINS, stray=_MEDLINE_HINT):
        yield block if isinstance(block, InputError) else block.read(_medline_abstract, source)


def _medline_abstract(block: RecordBlock, source: str) -> Abstract:
    fields: defaultdict[str, list[str]] = defaultdict(list)
    tag = ""
    for line in block.texts:
        if (tagged := _TAG.fullmatch(line)) is not None:
            tag = tagged[1]
            fields[tag].append(tagged[2].strip())
        elif tag and line.strip():
            fields[tag][-1] += f" {line.strip()}"

    def first(*tags: str) -> str:
        return next((fields[tag][0] for tag in tags if fields[tag] and fields[tag][0]), "")

    return abstract_of(
        title=first("TI", "BTI", "TT"),
        text=first("AB"),
        year=first("DP", "DEP"),
        journal=first("JT", "TA"),
        authors=(fields["FAU"] or fields["AU"]) + fields["CN"],
        doi=next((value for value in fields["LID"] + fields["AID"] if value.endswith("[doi]")), ""),
        pmid=first("PMID"),
        keywords=[word.lstrip("*") for word in fields["OT"]],
        publication_types=fields["PT"]
        + [name for tag, name in _NOTICE_TYPES.items() if fields[tag]],
        notice_about=[
            identifier
            for tag in _NOTICE_TARGETS
            for value in fields[tag]
            for identifier in _IDENTIFIER.findall(value)
        ],
        source=source,
        record={name: fields[tag] for tag, name in _MEDLINE_EXTRAS.items() if fields[tag]},
    )


# BibTeX

_TEX = LatexNodes2Text(math_mode="with-delimiters", keep_comments=True)
_BARE_TEX_SIGN = re.compile(r"(?<!\\)[%&#_]")
"""Signs that are escaped before TeX is decoded.

Exported abstracts are mostly plain text with little TeX. TeX would treat a bare ``%`` as a comment
and drop the rest of the line.
"""


def strip_tex(text: str) -> str:
    """Return the text without TeX; unknown commands lose their backslash and keep their letters."""
    if not any(mark in text for mark in ("\\", "{", "}", "~", "--")):
        return text
    escaped = _BARE_TEX_SIGN.sub(
        r"\\\g<0>", text.replace(r"\textless", "<").replace(r"\textgreater", ">")
    )
    try:
        return str(_TEX.latex_to_text(escaped)).replace("\u00a0", " ")
    except RecursionError:  # braces nested more deeply than in any real text
        return text


# Parse failures become our own errors; without this the library also logs them to stderr.
logging.getLogger("bibtexparser.splitter").setLevel(logging.CRITICAL)

_BIBTEX_BEGINS = re.compile(r"\s{0,100}@\s{0,10}(\w{1,40})\s{0,10}[{(]")
"""The start of an entry: ``@article{``, or with a parenthesis."""
_SKIPPED_ENTRIES = ("comment", "preamble")
_STRING_NAME = re.compile(r"[^{(]{0,200}[{(]\s{0,100}([\w.:+/-]{1,100})\s{0,100}=")
"""The name of an abbreviation: ``@string{jama = "..."}``."""
_BARE_WORD = re.compile(r"[\w.:+/-]+")
_MOST_STRINGS = 1000
_TYPES = ("type", "document_type", "article_type", "note")
_BIBTEX_FIELDS_READ = frozenset(
    {"title", "abstract", "author", "keywords", "keyword", "doi", "pmid", "url", "journal", "year"}
)


def read_bibtex(stream: BinaryIO, *, source: str) -> Iterator[Abstract | InputError]:
    """Yield every entry, or an error if it can't be read.

    An entry begins at a line that starts with ``@type{``; text between entries is a comment in
    BibTeX. Abbreviations (``@string``) apply from their place to the end of the file.
    """
    strings: dict[str, str] = {}
    entries = 0
    for block in read_blocks(stream, _BIBTEX_BEGINS):
        assert isinstance(block, RecordBlock)  # without `stray` there are no errors
        first_line = _BIBTEX_BEGINS.match(block.texts[0]) if block.texts else None
        kind = first_line[1].lower() if first_line else ""
        if kind == "string":
            text = "\n".join(block.texts)
            if (named := _STRING_NAME.match(text)) is not None and len(strings) < _MOST_STRINGS:
                strings[named[1].lower()] = text
        elif kind not in _SKIPPED_ENTRIES:
            entries += 1
            block.number = entries
            yield from _bibtex_records(block, strings, source)


def _bibtex_records(
    block: RecordBlock, strings: dict[str, str], source: str
) -> Iterator[Abstract | InputError]:
    """Yield the entries of a block: one, unless several are on the same line."""
    if block.problem is not None:
        yield block.with_place(block.problem)
        return
    text = "\n".join(block.texts)
    named = {word.lower() for word in _BARE_WORD.findall(text)} & strings.keys() if strings else ()
    library = parse_string("\n".join([*(strings[name] for name in sorted(named)), text]))
    for failed in library.failed_blocks:
        if isinstance(failed, DuplicateFieldKeyBlock):
            twice = ", ".join(sorted(failed.duplicate_keys))[:100]
            yield block.with_place(InputError(f"holds {twice} twice", hint="Keep one of the two."))
        elif isinstance(failed, ParsingFailedBlock) and not (
            failed.raw or ""
        ).lstrip().lower().startswith("@string"):
            reason = " ".join(str(getattr(failed.error, "abort_reason", failed.error)).split())
            reason = reason[:200]
            hint = "Close its braces and quotes, and put commas between fields."
            yield block.with_place(InputError(f"can't be read ({reason})", hint=hint))
    for entry in library.entries:
        yield block.read(partial(_bibtex_abstract, entry), source)


def _bibtex_abstract(entry: Entry, block: RecordBlock, source: str) -> Abstract:
    raw = {field.key.lower(): str(field.value) for field in entry.fields}
    fields = {key: strip_tex(value) for key, value in raw.items()}
    return abstract_of(
        title=fields.get("title", ""),
        text=fields.get("abstract", ""),
        year=fields.get("year") or fields.get("date") or "",
        journal=fields.get("journal")
        or fields.get("journaltitle")
        or fields.get("booktitle")
        or "",
        authors=map(
            strip_tex, split_multiple_persons_names(collapse_whitespace(raw.get("author", "")))
        ),
        doi=raw.get("doi", "").replace("\\", ""),
        pmid=fields.get("pmid", ""),
        url=raw.get("url", "").replace("\\", ""),
        keywords=re.split(r"[;,]", fields.get("keywords") or fields.get("keyword") or ""),
        publication_types=re.split(r"[;|]", "; ".join(fields.get(name, "") for name in _TYPES)),
        source=source,
        record={"key": entry.key, "type": entry.entry_type}
        | {key: value for key, value in fields.items() if key not in _BIBTEX_FIELDS_READ},
    )
