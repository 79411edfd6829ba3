"""MEDLINE text, as PubMed saves it (``.nbib``): a tag of up to four letters, a dash, the field; blanks continue it.

The tags: https://www.nlm.nih.gov/bsd/mms/medlineelements.html. Parsed here in a page of code: the only packaged parser
comes with 15 MB of molecular biology.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import BinaryIO

from masis.datasets.readers.abstracts.text_lines import Block, read_blocks
from masis.errors import InputError
from masis.schema.screening import Abstract
from masis.screening.sources.publication import OF_CONCERN_TYPE, RETRACTED_TYPE
from masis.screening.sources.records import abstract_of

_TAG = re.compile(r"([A-Z][A-Z0-9]{1,3}) {0,2}- ?(.*)", re.DOTALL)
_BEGINS = re.compile("PMID-")
_STRAY_CURE = "Save the records from PubMed in the format PubMed; each begins with a line `PMID- `."
_KEPT = {"MH": "mesh", "SI": "registrations", "LA": "languages"}
_MARKED = {"RIN": RETRACTED_TYPE, "ECI": OF_CONCERN_TYPE}
"""Tags that point to the notice about a study, and the type that makes it."""
_ABOUT = ("ROF", "EFR", "ECF")
"""Tags of a notice that point to what it is about."""
_IDENTIFIER = re.compile(r"PMID: ?\d+|10\.\d{4,9}/\S+")


def read_medline(stream: BinaryIO, *, source: str) -> Iterator[Abstract | InputError]:
    """Yield every record, or an error where one can't be read."""
    for block in read_blocks(stream, _BEGINS, stray=_STRAY_CURE):
        yield block if isinstance(block, InputError) else block.read(_record, source)


def _record(block: Block, source: str) -> Abstract:
    fields = _fields(block.texts)
    return abstract_of(
        title=_first(fields, "TI") or _first(fields, "BTI") or _first(fields, "TT"),
        text=_first(fields, "AB"),
        year=_first(fields, "DP") or _first(fields, "DEP"),
        journal=_first(fields, "JT") or _first(fields, "TA"),
        authors=(fields["FAU"] or fields["AU"]) + fields["CN"],
        doi=next((each for each in fields["LID"] + fields["AID"] if each.endswith("[doi]")), ""),
        pmid=_first(fields, "PMID"),
        keywords=[word.lstrip("*") for word in fields["OT"]],
        publication_types=fields["PT"] + [name for tag, name in _MARKED.items() if fields[tag]],
        notice_about=[found for tag in _ABOUT for each in fields[tag] for found in _IDENTIFIER.findall(each)],
        source=source,
        record={name: fields[tag] for tag, name in _KEPT.items() if fields[tag]},
    )


def _fields(lines: list[str]) -> defaultdict[str, list[str]]:
    fields: defaultdict[str, list[str]] = defaultdict(list)
    tag = ""
    for line in lines:
        if (found := _TAG.fullmatch(line)) is not None:
            tag = found[1]
            fields[tag].append(found[2].strip())
        elif tag and line.strip():
            fields[tag][-1] += f" {line.strip()}"
    return fields


def _first(fields: defaultdict[str, list[str]], tag: str) -> str:
    return next(iter(fields[tag]), "")
