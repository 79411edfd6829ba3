"""What a record is where it is no study to count: retracted, a notice about another record, a protocol, a comment.

The record's own types say so first (PubMed's publication types, ``M3`` and ``TY`` of RIS, columns of a table), then the
forms that databases and publishers give a title ("RETRACTED: ...", "... (Retracted article. See vol. 3)", "Erratum to:
..."). A notice names the study it is about by an identifier or by repeating its title, so that both are one record.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from masis.schema.screening import Abstract, PublicationStatus, Words
from masis.schema.wording import with_article
from masis.screening.sources.duplicates import normal_doi, normal_pmid, title_key
from masis.views.screening import PUBLICATION

RETRACTED_TYPE = "Retracted Publication"
"""PubMed's type of a study that was retracted; what a study's notice adds to it."""
OF_CONCERN_TYPE = "Expression of Concern Published"
"""What a notice of concern adds to its study: PubMed has a type for the notice alone."""


def _patterns(table: dict[PublicationStatus, tuple[str, ...]]) -> tuple[tuple[PublicationStatus, re.Pattern[str]], ...]:
    """Return the forms of each status as one pattern, in their order."""
    return tuple((status, re.compile("|".join(forms), re.I)) for status, forms in table.items())


_OF_TYPE = _patterns(
    {
        "retracted": (r"\bretracted\b",),
        "retraction_notice": (r"\bretraction\b",),
        "withdrawn": (r"\b(?:withdrawn|withdrawal)\b",),
        "of_concern": (r"\bexpression of concern published\b",),
        "expression_of_concern": (r"\bexpression of concern\b",),
        "erratum": (
            r"\b(?:errat(?:um|a)|corrigend(?:um|a)|addendum)\b",
            r"^\s*(?:author |publisher )?correction\b",
        ),
        "protocol": (r"\bprotocols?\b",),
        "comment": (r"^\s*(?:comment(?:ary)?|letter|editorial|news)\b",),
    }
)
_STUDY_TYPE = re.compile(
    r"\b(?:trial|meta-analysis|systematic review|observational study|comparative study|multicenter study|cohort"
    r"|case reports?|evaluation study|validation study)\b",
    re.I,
)
"""A type that says that the record reports a study: a letter or a comment can be one."""

_QUOTES = "\"'‘’“”«»"
_ITEM = r"(?:article|paper|publication|study|manuscript|chapter|review)"
_THIS = rf"(?:the|this) {_ITEM}\b"
_ENDS = r"\s*[:.–—-]|\W*$"
_ABOUT = rf"\s+(?:to|for|of|regarding|about|on|over)\s*(?:[:{_QUOTES}]|{_THIS})"
"""What a notice is about, as it goes on: 'to "Aspirin for ..."', "of the article"."""
_OF_TITLE = _patterns(
    {
        "retracted": (
            rf"^\W*retracted(?: {_ITEM})?\s*[:\]\).–—-]",
            rf"[\(\[]\s*(?:{_THIS} (?:has been |was |is )?)?retracted\b(?: {_ITEM}\b)?[^()\[\]]{{0,120}}[\)\]]",
            rf"\W[–—-] ?retracted(?: {_ITEM})?\W*$",
        ),
        "retraction_notice": (
            rf"^\W*(?:(?:notice|statement) of )?retraction(?: note| notice| statement)?(?:{_ENDS}|{_ABOUT})",
            r"^\W*retraction (?:note|notice) (?:to|for)\b",
        ),
        "withdrawn": (
            rf"^\W*(?:withdrawn|(?:temporary |article )?(?:withdrawal|removal)(?: notice)?)(?: {_ITEM})?\s*[:\]\)]",
            r"[\(\[]withdrawn\b[^()\[\]]{0,120}[\)\]]",
            r"^\W*withdrawn\W*$",
            r"^\W*notice of withdrawal\b",
        ),
        "expression_of_concern": (
            rf"^\W*(?:editorial )?(?:expressions?|note|statement|notice) of concern(?:{_ENDS}|{_ABOUT})",
        ),
        "erratum": (
            rf"^\W*(?:errat(?:um|a)|corrigend(?:um|a)|addendum)(?:{_ENDS}|\s+(?:to|for|in|on|regarding)\b)",
            rf"^\W*(?:author |publisher )?corrections?(?: notice)?(?: (?:to|for|in))?\s*[:{_QUOTES}]",
            rf"^\W*corrections?(?:\W*$|{_ABOUT})",
        ),
        "comment": (
            r"^\W*(?:(?:invited |editorial )?comment(?:s|ary)?|editorial|letter(?: to the editors?)?)\s*:",
            r"^\W*(?:authors?'?s? (?:reply|response)|correspondence|reply|re|response)\s*:",
            r"^\W*(?:invited |editorial )?comment(?:ary)? on\b",
            r"^\W*(?:letter to the editors?|in response to|reply to)\b",
            r"^\W*(?:editorial|comment|commentary|letter|correspondence|author'?s'? reply)\W*$",
            rf"^\W*response to\s*(?:[:{_QUOTES}]|(?:the )?(?:letter|comments?|editors?)\b)",
        ),
    }
)
_OF_TEXT = _patterns(
    {
        "retracted": (
            rf"\bthis {_ITEM} (?:has been|was|is) (?:\w+ )?retracted\b",
            r"^\W*retracted\b[^.]{0,40}[:.\]]",
        ),
        "retraction_notice": (
            r"\b(?:retracts?|retraction of|retracting) (?:this|the) (?:above |following )?(?:article|paper)\b",
            rf"\bthe above {_ITEM}\b[^.]{{0,200}}\bhas been retracted\b",
            r"\bwe (?:hereby )?retract\b",
        ),
        "withdrawn": (
            rf"\bthis {_ITEM} (?:has been|was|is) (?:\w+ )?withdrawn\b",
            r"\bwithdr[ae]w (?:this|the) (?:published )?(?:article|paper|publication|review)\b",
        ),
        "erratum": (r"\bcorrects the article\b", r"\bthe article cited above\b", r"\[this corrects\b"),
    }
)
_PROTOCOL_TITLE = re.compile(
    r"\b(?:study|trial|review|research|statistical analysis) protocol\b"
    r"|\bprotocol (?:for|of) (?:an? |the )?(?:[\w-]+,? ){0,8}?(?:study|trial|review|meta-analysis|survey|rct|cohort)\b"
    r"|\brationale(?:,| and)? (?:(?:study|trial) )?design\b|\bdesign(?:,)? and rationale\b|\bstudy design (?:and|of)\b",
    re.I,
)
_MAYBE_PROTOCOL_TITLE = re.compile(
    r"^\W*protocol (?:for|of)\b|[:.(–—-] ?(?:an? |the )?(?:[\w-]+ ){0,4}protocol\)?\W*$"
    r"|\bdesign (?:and methods?|of) (?:of )?(?:an? |the )(?:[\w-]+,? ){0,6}?(?:trial|study)\b",
    re.I,
)
"""Titles that a study of a clinical protocol has too: they count where the text says what will be done."""
_PLANNED = re.compile(
    r"\b(?:will|shall|are to|is to) (?:\w+ly )?(?:be (?:\w+ly )?(?:randomi[sz]ed|allocated|assigned|recruited|enrolled"
    r"|included|invited|assessed|measured|followed|analy[sz]ed|compared|collected|conducted|searched|screened|evaluated"
    r"|performed|pooled|extracted|used|undertaken|carried out|tested|interviewed|examined|reported|estimated)"
    r"|recruit|enrol+|receive|randomi[sz]e|undergo|compare|assess|evaluate|include|search|measure|complete)\b",
    re.I,
)
_RESULT = re.compile(
    r"\bp ?(?:[<=>≤]|&lt;) ?0?[.·]\d|\b9[059] ?% ?(?:CI|confidence)|\b(?:we found|results showed|did not differ"
    r"|was (?:significantly )?(?:associated|correlated) with"
    r"|(?:significantly|markedly) (?:\w+ )?(?:lower|higher|better|worse|reduced|increased|improved|shorter|longer"
    r"|fewer|more)"
    r"|(?:fell|rose|improved|decreased|increased|declined|dropped) (?:significantly |by |from |more |in )"
    r"|(?:was|were) (?:\w+ )?(?:lower|higher|better|worse|shorter|longer|reduced|increased|similar) )"
    r"|\b(?:was|were) \d[\d.]* ?%|\b\d[\d.]* ?% (?:versus|vs\.?|and|compared|of the|in the)",
    re.I,
)
_HAPPENED = re.compile(
    r"\b(?:(?:was|were) (?:\w+ly )?(?:randomi[sz]ed|enrolled|recruited|included|allocated|assigned|followed|seen|found"
    r"|observed|reported|recorded|present|associated|followed by)|occurred|developed|died|healed|recovered|fell|rose"
    r"|improved|differed|declined|reached|did not \w+|we found|there (?:was|were)"
    r"|had (?:a|an|no|fewer|more|less))\b",
    re.I,
)
"""What has happened: a study that tells more of it than of what will be done has results, whatever its title."""
LONGEST_READ = 20_000


class Publication(NamedTuple):
    """What a record is where it is no study to count, why, and the words of the abstract that say so."""

    status: PublicationStatus
    why: str
    words: tuple[Words, ...] = ()


def publication_of(abstract: Abstract) -> Publication | None:
    """Return what a record is by its own types, its title or its text; None for a study like any other."""
    if found := _by_type(abstract):
        return found
    for status, pattern in _OF_TITLE:
        if match := pattern.search(abstract.title[:LONGEST_READ]):
            words = (Words(start=match.start(), end=match.end(), text=match.group(), place="title"),)
            return Publication(status, f"Its title makes it {with_article(PUBLICATION[status])}.", words)
    text = abstract.text[:LONGEST_READ]
    for status, pattern in _OF_TEXT:
        if match := pattern.search(text):
            words = (Words(start=match.start(), end=match.end(), text=match.group()),)
            return Publication(status, f"Its words make it {with_article(PUBLICATION[status])}.", words)
    return _protocol(abstract, text)


def _by_type(abstract: Abstract) -> Publication | None:
    reports = any(_STUDY_TYPE.search(each) for each in abstract.publication_types)
    for status, pattern in _OF_TYPE:
        for each in abstract.publication_types:
            if not pattern.search(each):
                continue
            letter = each.lower().startswith("letter") and _RESULT.search(abstract.text[:LONGEST_READ])
            if status == "comment" and (reports or letter):
                continue  # a letter that reports results is a study in a short form
            return Publication(status, f"Its record says “{each[:80]}”: {with_article(PUBLICATION[status])}.")
    return None


def _protocol(abstract: Abstract, text: str) -> Publication | None:
    """Return a protocol: it says what will be done, and gives no result."""
    if _RESULT.search(text):
        return None
    title = abstract.title[:LONGEST_READ]
    planned = list(_PLANNED.finditer(text))
    titled = _PROTOCOL_TITLE.search(title) or (_MAYBE_PROTOCOL_TITLE.search(title) if planned else None)
    if len(planned) < (2 if not titled else 0) or len(planned) < len(_HAPPENED.findall(text)):
        return None
    words = tuple(Words(start=each.start(), end=each.end(), text=each.group()) for each in planned[:3])
    if titled:
        words = (Words(start=titled.start(), end=titled.end(), text=titled.group(), place="title"), *words)
    return Publication("protocol", "It says what will be done, and gives no result.", words)


_NOTICES: frozenset[PublicationStatus] = frozenset(
    {"retraction_notice", "erratum", "expression_of_concern", "withdrawn"}
)
_ABOUT_TITLE = re.compile(
    r"^\W*(?:notice of |statement of |editorial |author |publisher )?"
    r"(?:retract\w+|withdraw\w+|errat\w+|corrigend\w+|addendum|corrections?|expressions? of concern)"
    r"(?: (?:note|notice|statement|article|paper))?(?: (?:to|for|of|regarding|about|in|on))?"
    rf"\s*[:.–—{_QUOTES}-]*\s*",
    re.I,
)
_BEHIND_TITLE = re.compile(r"\s*[\(\[][^()\[\]]{0,40}(?:retract|withdraw|errat)\w+[^()\[\]]{0,160}[\)\]]\W*$", re.I)


class Notice(NamedTuple):
    """A notice about another record: what it says of it, and by what the other is known."""

    status: PublicationStatus
    dois: frozenset[str]
    pmids: frozenset[str]
    title: str | None


def notice_of(abstract: Abstract) -> Notice | None:
    """Return what a record is a notice about; None where it is none, or names nothing."""
    found = publication_of(abstract)
    if found is None or found.status not in _NOTICES:
        return None
    own = {normal_doi(abstract.doi or ""), normal_pmid(abstract.pmid or "")}
    dois = {doi for each in abstract.notice_about if (doi := normal_doi(each)) and doi not in own}
    pmids = {pmid for each in abstract.notice_about if not normal_doi(each) and (pmid := normal_pmid(each)) not in own}
    title = study_title_key(abstract.title)
    return Notice(found.status, frozenset(dois), frozenset(filter(None, pmids)), title)


def study_title_key(title: str) -> str | None:
    """Return the key of a study's title without what marks it or a notice about it: both have the same."""
    return title_key(_BEHIND_TITLE.sub("", _ABOUT_TITLE.sub("", title[:2000], count=1)).strip(_QUOTES + " ."))


_MARKS: dict[PublicationStatus, str] = {
    "retracted": RETRACTED_TYPE,
    "retraction_notice": RETRACTED_TYPE,
    "withdrawn": "Withdrawn",
    "of_concern": OF_CONCERN_TYPE,
    "expression_of_concern": OF_CONCERN_TYPE,
}


def marked(study: Abstract, status: PublicationStatus) -> Abstract:
    """Return a study with what a notice about it says; an erratum leaves it a study like any other."""
    mark = _MARKS.get(status)
    if mark is None or mark in study.publication_types:
        return study
    return study.model_copy(update={"publication_types": (*study.publication_types, mark)})


def joined(first: Abstract, again: Abstract) -> Abstract:
    """Return a record with what another record of the same study says of it: retracted, withdrawn, of concern."""
    if first == again or (found := publication_of(again)) is None:
        return first
    return first if publication_of(first) is not None else marked(first, found.status)
