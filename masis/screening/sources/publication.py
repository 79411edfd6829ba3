"""Recognizes records that don't count as studies: retractions, notices, protocols and comments.

The record's own types are read first (PubMed's publication types, ``M3`` and ``TY`` of RIS, columns
of a table), then the marks that databases and publishers add to a title ("RETRACTED: ...", "...
(Retracted article. See vol. 3)", "Erratum to: ..."). A notice names its study by an identifier or
repeats its title, so that both can be merged into one record.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from masis.schema.screening import Abstract, AbstractWords, PublicationStatus
from masis.schema.wording import with_article
from masis.screening.grading.wording import LONGEST_READ, joined_forms, read_tables
from masis.screening.sources.records import normal_doi, normal_pmid, title_key
from masis.screening.views.words import PUBLICATION

RETRACTED_TYPE = "Retracted Publication"
"""PubMed's type of a retracted study. A retraction notice adds it to its study."""
OF_CONCERN_TYPE = "Expression of Concern Published"
"""The type that a notice of concern adds to its study. PubMed has a type for the notice only."""


_TABLES = read_tables(Path(__file__).with_name("publication.toml"))


def _compile_table(table: str) -> dict[Any, re.Pattern[str]]:
    """Return the forms of a table, in their order, each as one pattern."""
    rows = _TABLES[table].items()
    return {name: re.compile(joined_forms(forms, _TABLES["names"]), re.I) for name, forms in rows}


_OF_TYPE: dict[PublicationStatus, re.Pattern[str]] = _compile_table("type")
_OF_TITLE: dict[PublicationStatus, re.Pattern[str]] = _compile_table("title")
_OF_TEXT: dict[PublicationStatus, re.Pattern[str]] = _compile_table("text")
_WORDING: dict[str, re.Pattern[str]] = _compile_table("wordings")


def _publication_match(wording: str, text: str) -> re.Match[str] | None:
    return _WORDING[wording].search(text)


class Publication(NamedTuple):
    """The kind of a record that isn't a study to count, the reason, and the words that show it."""

    status: PublicationStatus
    why: str
    words: tuple[AbstractWords, ...] = ()


def publication_of(abstract: Abstract) -> Publication | None:
    """Return the kind of a record by its types, its title or its text; None for a normal study."""
    if found := _by_type(abstract):
        return found
    for status, pattern in _OF_TITLE.items():
        if match := pattern.search(abstract.title[:LONGEST_READ]):
            words = (
                AbstractWords(
                    start=match.start(), end=match.end(), text=match.group(), place="title"
                ),
            )
            return Publication(
                status, f"Its title makes it {with_article(PUBLICATION[status])}.", words
            )
    text = abstract.text[:LONGEST_READ]
    for status, pattern in _OF_TEXT.items():
        if match := pattern.search(text):
            words = (AbstractWords(start=match.start(), end=match.end(), text=match.group()),)
            return Publication(
                status, f"Its words make it {with_article(PUBLICATION[status])}.", words
            )
    return _protocol(abstract, text)


def _by_type(abstract: Abstract) -> Publication | None:
    is_study = any(_publication_match("study_type", name) for name in abstract.publication_types)
    for status, pattern in _OF_TYPE.items():
        for name in abstract.publication_types:
            if not pattern.search(name):
                continue
            reports_results = name.lower().startswith("letter") and _publication_match(
                "result", abstract.text[:LONGEST_READ]
            )
            # A letter to the editor that reports results is a short study, not a comment.
            if status == "comment" and (is_study or reports_results):
                continue
            return Publication(
                status, f"Its record says “{name[:80]}”: {with_article(PUBLICATION[status])}."
            )
    return None


def _protocol(abstract: Abstract, text: str) -> Publication | None:
    """Return the record as a protocol if it describes future work and gives no result."""
    if _publication_match("result", text):
        return None
    title = abstract.title[:LONGEST_READ]
    planned = list(_WORDING["planned"].finditer(text))
    title_match = _publication_match("protocol_title", title) or (
        _publication_match("maybe_protocol_title", title) if planned else None
    )
    # Without a title that says so, one planned step isn't enough: many studies mention future work.
    # A text that reports more steps as done than as planned isn't a protocol either.
    if len(planned) < (2 if not title_match else 0) or len(planned) < len(
        _WORDING["happened"].findall(text)
    ):
        return None
    words = tuple(
        AbstractWords(start=match.start(), end=match.end(), text=match.group())
        for match in planned[:3]
    )
    if title_match:
        words = (
            AbstractWords(
                start=title_match.start(),
                end=title_match.end(),
                text=title_match.group(),
                place="title",
            ),
            *words,
        )
    return Publication("protocol", "It says what will be done, and gives no result.", words)


_NOTICES: frozenset[PublicationStatus] = frozenset(
    {"retraction_notice", "erratum", "expression_of_concern", "withdrawn"}
)


class PublicationNotice(NamedTuple):
    """A notice about another record: the status that it gives it, and the record's identifiers."""

    status: PublicationStatus
    dois: frozenset[str]
    pmids: frozenset[str]
    title: str | None


def notice_of(abstract: Abstract) -> PublicationNotice | None:
    """Return the notice that a record is; None if it isn't a notice."""
    publication = publication_of(abstract)
    if publication is None or publication.status not in _NOTICES:
        return None
    own_ids = {normal_doi(abstract.doi or ""), normal_pmid(abstract.pmid or "")}
    dois = {
        doi
        for record_id in abstract.notice_about
        if (doi := normal_doi(record_id)) and doi not in own_ids
    }
    pmids = {
        pmid
        for record_id in abstract.notice_about
        if not normal_doi(record_id) and (pmid := normal_pmid(record_id)) not in own_ids
    }
    title = study_title_key(abstract.title)
    return PublicationNotice(
        publication.status, frozenset(dois), frozenset(filter(None, pmids)), title
    )


def study_title_key(title: str) -> str | None:
    """Return a study's title as a key, without the marks of retractions and notices.

    A study and the notice about it have the same key, so that they can be matched.
    """
    return title_key(
        _WORDING["behind_title"]
        .sub("", _WORDING["about_title"].sub("", title[:2000], count=1))
        .strip(_TABLES["names"]["quotes"] + " .")
    )


_MARKS: dict[PublicationStatus, str] = {
    "retracted": RETRACTED_TYPE,
    "retraction_notice": RETRACTED_TYPE,
    "withdrawn": "Withdrawn",
    "of_concern": OF_CONCERN_TYPE,
    "expression_of_concern": OF_CONCERN_TYPE,
}


def apply_notice(study: Abstract, status: PublicationStatus) -> Abstract:
    """Return a study with the publication type that a notice gives it. An erratum adds none."""
    mark = _MARKS.get(status)
    if mark is None or mark in study.publication_types:
        return study
    return study.model_copy(update={"publication_types": (*study.publication_types, mark)})


def merge_notices(first: Abstract, second: Abstract) -> Abstract:
    """Return a record, marked as retracted or of concern if another record of its study is."""
    if first == second or (found := publication_of(second)) is None:
        return first
    return first if publication_of(first) is not None else apply_notice(first, found.status)
