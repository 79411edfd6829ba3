"""Reads abstracts from PubMed's XML (``PubmedArticleSet``), with one record in memory at a time.

defusedxml refuses entity declarations and doesn't fetch external ones, so a file can't expand in
memory or open a connection. The DTD that PubMed names in each file isn't loaded. The elements are
described at https://www.nlm.nih.gov/bsd/licensee/elements_descriptions.html.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from typing import IO, NamedTuple

from defusedxml import DefusedXmlException  # type: ignore[import-untyped]
from defusedxml import ElementTree as SafeElementTree

from masis.errors import InputError
from masis.schema.screening import Abstract
from masis.screening.sources.publication import OF_CONCERN_TYPE, RETRACTED_TYPE
from masis.screening.sources.records import abstract_of, collapse_whitespace

_RECORDS = ("PubmedArticle", "PubmedBookArticle")
_LINK = "CommentsCorrectionsList/CommentsCorrections[@RefType='{}']"
_DATES = ("Journal/JournalIssue/PubDate", "ArticleDate", "Book/PubDate")
_HINT = "Export it from PubMed again, or delete everything after the last good record."


class ReadArticle(NamedTuple):
    """One record of the file: its number from 1, and the abstract or the error."""

    number: int
    found: Abstract | InputError


def read_articles(stream: IO[bytes], *, source: str) -> Iterator[ReadArticle]:
    """Yield every record, in order. If the file is incomplete or invalid, an error is the last one.

    Errors carry the line where the XML is broken and the record's number as ``field``. They don't
    name the file.
    """
    number, root = 0, None
    try:
        for event, element in SafeElementTree.iterparse(
            stream, events=("start", "end"), forbid_dtd=False
        ):
            if root is None:
                root = element
                _refuse_other_documents(root)
            if event == "end" and element.tag in _RECORDS:
                number += 1
                yield ReadArticle(number, _article(element, number, source))
                root.clear()  # iterparse keeps every element below the root otherwise.
    except ElementTree.ParseError as error:
        problem = (
            f"is incomplete or not XML ({str(error).split(':')[0]}, column {error.position[1] + 1})"
        )
        last_error = InputError(
            problem, hint=_HINT, line=error.position[0], field=f"after record {number}"
        )
        yield ReadArticle(number + 1, last_error)
    except DefusedXmlException as error:
        error_ = InputError(
            "declares entities, which aren't allowed", hint="Export it from PubMed again."
        )
        raise error_ from error


def _refuse_other_documents(root: ElementTree.Element) -> None:
    if root.tag not in ("PubmedArticleSet", "PubmedBookArticleSet", *_RECORDS):
        raise InputError(
            f"isn't PubMed XML (<{str(root.tag)[:60]}>)",
            hint="Export the records from PubMed in the format XML.",
        )


def _article(record: ElementTree.Element, number: int, source: str) -> Abstract | InputError:
    body = record.find("MedlineCitation")
    article = body.find("Article") if body is not None else None
    if body is None or article is None:
        body = article = record.find("BookDocument")
    if body is None or article is None:
        return InputError("has no citation", hint="Remove the record.", field=f"record {number}")
    try:
        return abstract_of(
            title=_first_text(article, "ArticleTitle", "VernacularTitle", "Book/BookTitle"),
            text=_section_texts(article),
            year=_first_text(
                article,
                *(f"{place}/{part}" for place in _DATES for part in ("Year", "MedlineDate")),
            ),
            journal=_first_text(article, "Journal/Title", "Book/BookTitle"),
            authors=map(_author_name, article.iterfind("AuthorList/Author")),
            doi=_first_text(article, "ELocationID[@EIdType='doi']")
            or _first_text(record, "PubmedData/ArticleIdList/ArticleId[@IdType='doi']")
            or _first_text(article, "ArticleIdList/ArticleId[@IdType='doi']"),
            pmid=_element_text(body.find("PMID")),
            keywords=map(_element_text, body.iterfind("KeywordList/Keyword")),
            publication_types=_publication_types(body, article),
            notice_about=_related_ids(body, "RetractionOf", "ErratumFor", "ExpressionOfConcernFor"),
            source=source,
            record=_study_details(body, article),
        )
    except InputError as error:
        return InputError(error.problem, hint=error.hint, field=f"record {number}")


def _element_text(element: ElementTree.Element | None) -> str:
    """Return the text of an element without markup such as <i> and <sup>."""
    return "" if element is None else collapse_whitespace("".join(element.itertext()))


def _first_text(element: ElementTree.Element, *paths: str) -> str:
    """Return the first text at these paths, or an empty string."""
    return next(
        (
            text
            for path in paths
            for child in element.iterfind(path)
            if (text := _element_text(child))
        ),
        "",
    )


def _section_texts(article: ElementTree.Element) -> str:
    """Return the sections of the abstract, one per line, with their labels: ``METHODS: ...``."""
    sections = []
    for section in article.iterfind("Abstract/AbstractText"):
        label = collapse_whitespace(section.get("Label") or "").rstrip(":")
        text = _element_text(section)
        sections.append(f"{label}: {text}" if label and text else text)
    return "\n".join(sections)


def _author_name(author: ElementTree.Element) -> str:
    """Return ``Last, First``, or the name of a group of authors."""
    last, first = (
        _element_text(author.find("LastName")),
        _element_text(author.find("ForeName")) or _element_text(author.find("Initials")),
    )
    return ", ".join(filter(None, (last, first))) or _element_text(author.find("CollectiveName"))


def _publication_types(body: ElementTree.Element, article: ElementTree.Element) -> list[str]:
    """Return the record's own types, and those that follow from the notices it points to."""
    listed = (
        *article.iterfind("PublicationTypeList/PublicationType"),
        *body.iterfind("PublicationType"),  # Books have no list around their types.
    )
    types = [_element_text(element) for element in listed]
    added = {"RetractionIn": RETRACTED_TYPE, "ExpressionOfConcernIn": OF_CONCERN_TYPE}
    return types + [
        name for kind, name in added.items() if body.find(_LINK.format(kind)) is not None
    ]


def _related_ids(body: ElementTree.Element, *kinds: str) -> list[str]:
    """Return the PubMed ids of the records that this one is a notice about."""
    return [
        _element_text(link.find("PMID"))
        for kind in kinds
        for link in body.iterfind(_LINK.format(kind))
    ]


def _study_details(body: ElementTree.Element, article: ElementTree.Element) -> dict[str, list[str]]:
    """Return the study's MeSH terms and its numbers in trial registries."""
    listed = {
        "mesh": body.iterfind("MeshHeadingList/MeshHeading/DescriptorName"),
        "registrations": article.iterfind(
            "DataBankList/DataBank/AccessionNumberList/AccessionNumber"
        ),
    }
    texts = {
        name: [text for element in elements if (text := _element_text(element))]
        for name, elements in listed.items()
    }
    return {name: values for name, values in texts.items() if values}
