"""Reads abstracts from EndNote's XML (``<xml><records><record>``), one record in memory at a time.

EndNote wraps all text in ``<style>`` elements. Its fields are described by the DTD in EndNote's
folder "XML Support". Zotero, Covidence and DistillerSR write the same format. defusedxml refuses
entity declarations and external files.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from typing import IO

from defusedxml import DefusedXmlException  # type: ignore[import-untyped]
from defusedxml import ElementTree as SafeElementTree

from masis.errors import InputError
from masis.schema.screening import Abstract
from masis.screening.sources.records import abstract_of

_HINT = "Export the library from EndNote again, in the style XML."
_TITLES = ("titles/title", "titles/alt-title", "titles/short-title")
_JOURNALS = ("titles/secondary-title", "periodical/full-title", "periodical/abbr-1")
_NOTES = ("notes", "research-notes", "custom1", "label")


def read_endnote(stream: IO[bytes], *, source: str) -> Iterator[Abstract | InputError]:
    """Yield every record, or an error with its number; a broken file's error is the last one."""
    number = 0
    parents: list[ElementTree.Element] = []
    try:
        for event, element in SafeElementTree.iterparse(
            stream, events=("start", "end"), forbid_dtd=False
        ):
            if event == "start":
                parents.append(element)
                continue
            parents.pop()
            if element.tag == "record":
                number += 1
                try:
                    yield _endnote_abstract(element, source)
                except InputError as error:
                    yield InputError(error.problem, hint=error.hint, field=f"record {number}")
                if parents:
                    parents[-1].clear()  # iterparse keeps every record below it otherwise.
    except ElementTree.ParseError as error:
        yield InputError(
            "is incomplete or not XML",
            hint=_HINT,
            line=error.position[0],
            field=f"after record {number}",
        )
    except DefusedXmlException as error:
        raise InputError("declares entities, which aren't allowed", hint=_HINT) from error


def _endnote_abstract(record: ElementTree.Element, source: str) -> Abstract:
    number = _first_text_at(record, ("accession-num",))
    # The element "database" names the user's library if it has a path, else a database.
    database = _first_text_at(record, ("remote-database-name",)) or " ".join(
        "".join(element.itertext())
        for element in record.iterfind("database")
        if element.get("path") is None
    )
    reference_type = record.find("ref-type")
    types = [
        *_texts_at(record, "work-type"),
        "" if reference_type is None else reference_type.get("name", ""),
    ]
    # Other databases also have accession numbers of at most eight digits.
    is_of_pubmed = not database.strip() or re.search("pubmed|medline", database, re.I)
    is_pmid = bool(is_of_pubmed) and number.isdigit() and len(number) <= 8
    return abstract_of(
        title=_first_text_at(record, _TITLES),
        text=_first_text_at(record, ("abstract",)),
        year=_first_text_at(record, ("dates/year", "dates/pub-dates/date")),
        journal=_first_text_at(record, _JOURNALS),
        authors=_texts_at(record, "contributors/authors/author"),
        doi=_first_text_at(record, ("electronic-resource-num",)),
        pmid=number if is_pmid else "",
        url=_first_text_at(record, ("urls/related-urls/url", "urls/web-urls/url")),
        keywords=_texts_at(record, "keywords/keyword"),
        publication_types=types,
        source=source,
        record={
            name: text
            for name in (*_NOTES, "rec-number", "accession-num")
            if (text := _first_text_at(record, (name,)))
        },
    )


def _texts_at(record: ElementTree.Element, path: str) -> list[str]:
    return ["".join(element.itertext()).strip() for element in record.iterfind(path)]


def _first_text_at(record: ElementTree.Element, paths: Iterable[str]) -> str:
    """Return the first text at these paths that isn't empty."""
    return next((text for path in paths for text in _texts_at(record, path) if text), "")
