"""Recognizes reports of one study, so that a trial in two papers counts once.

Reports belong together if they share a trial registry number, the name of a trial that a title
gives or that a text is a follow-up of, or the first two authors, the last one and the sample size.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

from masis.schema.screening import Abstract, Grade, SampleSize
from masis.screening.grading.vocabulary import synonyms
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
_STUDY = r"(?:[Tt]rial|[Ss]tudy)"
_OWN_NAME = re.compile(rf"(?:^|\W){_ACRONYM}\)? {_STUDY}\b|{_STUDY} \({_ACRONYM}\)\W*$")
_FOLLOWED = re.compile(
    rf"(?i:follow-?up|extension|sub-?study|secondary analysis|post[- ]hoc analysis)"
    rf" (?:of|from|in) (?:the )?(?:participants (?:in|of) the )?{_ACRONYM} {_STUDY}\b"
)
# Words that an acronym leaves out.
_PARTICLES = "and|of|the|in|for|to|with|by"
# Designs, methods, forms of drugs and diseases in capitals, which aren't names of a trial. Those of
# the vocabulary of medical terms aren't either.
_NO_NAMES = frozenset(
    "RCT GITS OROS PCR MRI CT PET ECG EEG ADHD COPD HIV GERD DNA RNA ICU UK USA NHS CABG LDCT PCI"
    " PILOT PHASE COHORT RANDOMIZED RANDOMISED CONTROLLED CLINICAL CROSSOVER CROSS-OVER FEASIBILITY"
    " OBSERVATIONAL PROSPECTIVE RETROSPECTIVE MULTICENTER MULTICENTRE CASE-CONTROL".split()
)
# The initials in "Doe JA" and "Doe J. A.".
_LAST_INITIALS = re.compile(r"(.+?)\s+((?:(?:[^\W\d_]\.?-?){1,3}\s*){1,3})")
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
    title = abstract.title[:LONGEST_READ]
    for match in (*_OWN_NAME.finditer(title), *_FOLLOWED.finditer(text)):
        name = next(filter(None, match.groups())).upper()
        if name not in _NO_NAMES | _medical_abbreviations() and not _is_term(name, title, text):
            yield f"{name} study"
    if len(abstract.authors) > 2 and size and size.kind != "of" and size.value >= _LEAST_SIZE:
        # Two authors are too few: thousands of researchers are called Wang L or Zhang Y.
        names = [_name_with_initial(abstract.authors[index]) for index in (0, 1, -1)]
        if all(names):
            first, second, last = names
            yield f"{first}, {second} and {last}, {size.value:,} {size.unit}".strip()


@cache
def _medical_abbreviations() -> frozenset[str]:
    """Return the abbreviations among the medical terms: IBS, COVID-19, T2DM."""
    names = (phrase.text for phrases in synonyms().values() for phrase in phrases)
    return frozenset(name.upper() for name in names if re.fullmatch(_ACRONYM, name))


def _is_term(name: str, *texts: str) -> bool:
    """Return whether a text spells out an acronym as a term: "low-dose computed tomography".

    A trial's name is spelled out in capitals, beside the word "trial" or "study".
    """
    initials = [re.escape(letter) for letter in name if letter.isalnum()]
    words = rf"\w*[\s-]+(?:(?:{_PARTICLES}) )?".join(initials)
    spelled = re.compile(rf"(?<![\w-]){words}\w*", re.I)
    of_study = re.compile(rf"(?i:\W+{re.escape(name)}\W*)? ?{_STUDY}\b")
    return any(
        re.search(rf"(?<!\w)(?!(?:{_PARTICLES})\b)[a-z]", match.group())
        or not of_study.match(text, match.end())
        for text in texts
        for match in spelled.finditer(text)
    )


def _name_with_initial(author: str) -> str:
    """Return ``Doe J`` for ``Doe, Jane``, ``Doe JA``, ``Doe, J. A.`` or ``Jane A. Doe``.

    A name without a first name or an initial gives "".
    """
    surname, comma, given = author.strip().partition(",")
    if not comma:
        initials = _LAST_INITIALS.fullmatch(surname)
        if initials and initials[2].isupper():
            surname, given = initials.groups()
        else:
            given, _, surname = surname.rpartition(" ")
    initial = given.strip()[:1].upper()
    return f"{surname.strip().title()} {initial}" if surname and initial.isalpha() else ""


def reports_by_study(grades: Iterable[Grade]) -> list[list[Grade]]:
    """Return the grades grouped by study, both in their order: reports of a study share a mark.

    A report with marks of several studies, such as a pooled analysis, belongs to one of them and
    doesn't make them one study. Otherwise further evidence could lower the number of studies.
    """
    reports = list(grades)
    marks = [frozenset(grade.registrations) for grade in reports]
    spread = Counter(mark for found in set(marks) for mark in found)
    # Reports that share marks with few others come first. So a report with the marks of two
    # studies joins one of them, even if it was found before their own reports.
    order = sorted(range(len(reports)), key=lambda at: sum(spread[mark] for mark in marks[at]))
    study_of_mark: dict[str, int] = {}
    studies: dict[int, list[int]] = {}
    for at in order:
        study = min((study_of_mark[mark] for mark in marks[at] & study_of_mark.keys()), default=at)
        studies.setdefault(study, []).append(at)
        if study == at:
            study_of_mark.update(dict.fromkeys(marks[at], at))
    groups = sorted(map(sorted, studies.values()))
    return [[reports[at] for at in group] for group in groups]


def first_reports(grades: Iterable[Grade]) -> dict[str, str]:
    """Return the first report of the study for each abstract, which can be itself."""
    return {
        report.abstract_id: study[0].abstract_id
        for study in reports_by_study(grades)
        for report in study
    }
