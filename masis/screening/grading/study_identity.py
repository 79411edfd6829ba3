"""Recognizes reports of one study, so that a trial in two papers counts once.

Reports belong together if they share a trial registry number, the name of a trial that a title
gives or that a text is a follow-up of, or the first author, the last author and the sample size.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from masis.schema.screening import Abstract, Grade, SampleSize
from masis.screening.grading.wording import LONGEST_READ

# The formats of trial registration numbers: ClinicalTrials.gov, ISRCTN, and the registries of
# China, Australia and New Zealand, Japan, the EU, India, Germany, the Netherlands and Iran.
_REGISTERED = re.compile(
    r"\b(NCT ?\d{8}|ISRCTN ?\d{6,8}|ChiCTR[-\w]{5,20}|ACTRN ?\d{14}|UMIN ?\d{9}|EudraCT:?"
    r" ?\d{4}-\d{6}-\d\d"
    r"|CTRI/\d{4}/\d+/\d+|DRKS ?\d{8}|NTR ?\d{3,5}|IRCT\w{6,20})\b",
    re.I,
)
# Names of trials have at least two capitals, or are written in capitals: HOPE, Syst-Eur, 4S.
_ACRONYM = r"((?=[\w-]*[A-Z][\w-]*[A-Z])[A-Z][\w-]{2,20})"
_OWN_NAME = re.compile(rf"(?:^|\W){_ACRONYM} (?:[Tt]rial|[Ss]tudy)\b|\({_ACRONYM}\)\W*$")
_FOLLOWED = re.compile(
    rf"(?i:follow-?up|extension|sub-?study|secondary analysis|post[- ]hoc analysis)"
    rf" (?:of|from|in) (?:the )?(?:participants (?:in|of) the )?{_ACRONYM} (?:[Tt]rial|[Ss]tudy)\b"
)
# Methods, forms of drugs and diseases in capitals, which aren't names of a trial.
_NO_NAMES = frozenset(
    "RCT GITS OROS PCR MRI CT PET ECG EEG ADHD COPD HIV GERD DNA RNA ICU UK USA".split()
)
# Smaller samples often have the same size by chance.
_LEAST_SIZE = 20


def registrations_of(abstract: Abstract, size: SampleSize | None = None) -> tuple[str, ...]:
    """Return the marks of the study that an abstract reports; reports of one study share one.

    Args:
        abstract: The abstract, with the registry numbers that its record carries.
        size: The size of the whole study, if it is stated.

    """
    return tuple(dict.fromkeys(_study_marks(abstract, size)))


def _study_marks(abstract: Abstract, size: SampleSize | None) -> Iterator[str]:
    text = abstract.text[:LONGEST_READ]
    record = (abstract.model_extra or {}).get("record")
    listed = record.get("registrations", ()) if isinstance(record, dict) else ()
    for number in _REGISTERED.findall("\n".join([abstract.title, text, *map(str, listed)])):
        yield re.sub(r"[\s:]", "", number).upper()
    for match in (*_OWN_NAME.finditer(abstract.title[:LONGEST_READ]), *_FOLLOWED.finditer(text)):
        name = next(filter(None, match.groups())).upper()
        if name not in _NO_NAMES:
            yield f"{name} study"
    if len(abstract.authors) > 2 and size and size.kind != "of" and size.value >= _LEAST_SIZE:
        first, last = (_surname(abstract.authors[index]) for index in (0, -1))
        yield f"{first} and {last}, {size.value:,} {size.unit}".strip()


def _surname(author: str) -> str:
    """Return the surname of ``Doe, Jane``, ``Doe J`` or ``Jane Doe``."""
    words = re.split(r",|\s", author.strip())
    is_initials = len(words[-1].rstrip(".")) <= 3 and words[-1].isupper()
    return words[0] if "," in author or is_initials else words[-1]


def first_reports(grades: Iterable[Grade]) -> dict[str, str]:
    """Return the first report of the study for each abstract, which can be itself, in order."""
    first: dict[str, str] = {}
    marks: dict[str, str] = {}
    for grade in grades:
        shared = [first[marks[mark]] for mark in grade.registrations if mark in marks]
        report = min(shared, key=list(first).index, default=grade.abstract_id)
        first[grade.abstract_id] = report
        # A report with two marks can connect reports that were separate until now.
        first = {name: report if other in shared else other for name, other in first.items()}
        marks |= {mark: grade.abstract_id for mark in grade.registrations if mark not in marks}
    return first
