"""Records of tagged lines: RIS, as reference managers export it, and MEDLINE text, as PubMed saves it (``.nbib``).

A record of RIS is read by rispy. MEDLINE (https://www.nlm.nih.gov/bsd/mms/medlineelements.html), a tag of up to four
letters, a dash and the field, which blanks continue, is parsed here: the only packaged parser comes with 15 MB of
molecular biology.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, BinaryIO

from rispy import RisParser  # type: ignore[import-untyped]

from masis.datasets.readers.abstracts.blocks import Block, read_blocks
from masis.errors import InputError
from masis.schema.screening import Abstract
from masis.screening.sources.publication import OF_CONCERN_TYPE, RETRACTED_TYPE
from masis.screening.sources.records import abstract_of

_RIS_BEGINS, _RIS_ENDS = re.compile(r"[ \t]{0,100}TY  -"), re.compile(r"[ \t]{0,100}ER  -")
_RIS_CURE = "Begin each record with a line `TY  - JOUR` and end it with `ER  - `."
_TITLE = ("title", "primary_title", "translated_title", "short_title")
_TEXT = ("abstract", "notes_abstract")
_JOURNAL = ("secondary_title", "alternate_title3", "journal_name", "alternate_title2", "alternate_title1")
_AUTHORS = ("authors", "first_authors")
_KEPT_APART = {*_TITLE[:2], *_TEXT, *_AUTHORS, "doi", "keywords", "urls"}
_PUBMED = re.compile(r"pubmed|medline|nlm", re.IGNORECASE)

_MEDLINE_BEGINS = re.compile("PMID-")
_MEDLINE_CURE = "Save the records from PubMed in the format PubMed; each begins with a line `PMID- `."
_TAG = re.compile(r"([A-Z][A-Z0-9]{1,3}) {0,2}- ?(.*)", re.DOTALL)
_KEPT = {"MH": "mesh", "SI": "registrations", "LA": "languages"}
_MARKED = {"RIN": RETRACTED_TYPE, "ECI": OF_CONCERN_TYPE}
"""Tags that point to the notice about a study, and the type that makes it."""
_ABOUT = ("ROF", "EFR", "ECF")
"""Tags of a notice that point to what it is about."""
_IDENTIFIER = re.compile(r"PMID: ?\d+|10\.\d{4,9}/\S+")


def read_ris(stream: BinaryIO, *, source: str) -> Iterator[Abstract | InputError]:
    """Yield every record, and an error where one lacks its end or can't be read."""
    for block in read_blocks(stream, _RIS_BEGINS, _RIS_ENDS, _RIS_CURE):
        yield block if isinstance(block, InputError) else block.read(_of_ris, source)


def _of_ris(block: Block, source: str) -> Abstract:
    if not block.ended:
        raise InputError("has no end", cure="Add a line `ER  - ` behind it; it may have been cut off.")
    parser = RisParser(delimiter_tags_mapping={})  # an address may hold a semicolon
    fields: dict[str, Any] = parser.parse_lines(line for text in block.texts if (line := text.lstrip()))[0]

    def first(*keys: str) -> str:
        return next((value for key in keys if isinstance(value := fields.get(key), str) and value.strip()), "")

    number, database = first("accession_number"), first("name_of_database") + first("database_provider")
    types = (first("type_of_work"), first("type_of_reference"))
    rest = {key: value for key, value in fields.items() if key not in _KEPT_APART}
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
        publication_types=[part for each in types for part in re.split(r"[;|]", each)],
        source=source,
        record=rest | ({"unknown_tag": dict(rest["unknown_tag"])} if "unknown_tag" in rest else {}),
    )


def read_medline(stream: BinaryIO, *, source: str) -> Iterator[Abstract | InputError]:
    """Yield every record, or an error where one can't be read."""
    for block in read_blocks(stream, _MEDLINE_BEGINS, stray=_MEDLINE_CURE):
        yield block if isinstance(block, InputError) else block.read(_of_medline, source)


def _of_medline(block: Block, source: str) -> Abstract:
    fields: defaultdict[str, list[str]] = defaultdict(list)
    tag = ""
    for line in block.texts:
        if (found := _TAG.fullmatch(line)) is not None:
            tag = found[1]
            fields[tag].append(found[2].strip())
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
        doi=next((each for each in fields["LID"] + fields["AID"] if each.endswith("[doi]")), ""),
        pmid=first("PMID"),
        keywords=[word.lstrip("*") for word in fields["OT"]],
        publication_types=fields["PT"] + [name for tag, name in _MARKED.items() if fields[tag]],
        notice_about=[found for tag in _ABOUT for each in fields[tag] for found in _IDENTIFIER.findall(each)],
        source=source,
        record={name: fields[tag] for tag, name in _KEPT.items() if fields[tag]},
    )
