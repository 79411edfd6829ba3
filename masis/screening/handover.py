"""Turns the kept abstracts of a screening into a case that an audit can use as evidence.

Each kept abstract becomes one chunk, the best first. A chunk's text is the unchanged text of the
abstract, so that offsets of words, sentences and quotes stay valid. Its other fields help a drafter
to use the study: ``sentences`` (start and end of each sentence), ``finding`` (the sentence that
states the result), ``direction`` (of that result) and ``findings_conflict`` (whether the kept
studies disagree).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from masis.audit.sentences import split_sentences
from masis.errors import InputError
from masis.schema.case import Case, CaseScreening, Evidence
from masis.schema.screening import Abstract, Grade, Screening
from masis.screening.grading.directions import Finding
from masis.screening.synthesis.findings import best_kept, findings_of, synthesis_of
from masis.screening.views.words import DESIGN


def case_from_screening(
    screening: Screening, abstracts: Mapping[str, Abstract], case_id: str | None = None
) -> Case:
    """Return a case with the screening's question and its kept abstracts as evidence.

    The case has no answer, so that an audit drafts one. The same kept abstracts with the same
    outcome and directions give the same case. Raises InputError if nothing is kept, or if none of
    the kept abstracts has a title or a text.
    """
    readable = _readable_grades(screening.grades, abstracts)
    if not readable:
        has_kept = any(
            grade.recommendation == "keep" and grade.abstract_id in abstracts
            for grade in screening.grades
        )
        raise InputError(
            (
                "none of the kept abstracts has a text"
                if has_kept
                else "no abstract is kept, so there is no evidence to audit"
            ),
            hint="Keep an abstract that has a text, or screen again with another question.",
        )
    evidence = evidence_from_kept(screening.grades, abstracts, screening.question)
    return Case(
        id=case_id or _case_id(screening, readable),
        query=screening.question,
        evidence=evidence,
        screening=CaseScreening(id=screening.id, outcome=screening.outcome),
        metadata={
            "screening": screening.id,
            "screening_outcome": screening.outcome,
            "screening_rounds": len(screening.rounds),
            "screening_graders": list(screening.graders),
        },
    )


def evidence_from_kept(
    grades: Iterable[Grade], abstracts: Mapping[str, Abstract], question: str = ""
) -> tuple[Evidence, ...]:
    """Return the kept abstracts that have a text as evidence, the best first.

    With a question, each chunk also carries the study's finding and its direction.
    """
    best = _readable_grades(grades, abstracts)
    read = findings_of(question, best, abstracts) if question else []
    conflict = synthesis_of(read).agree is False
    findings: list[Finding | None] = [*read] or [None] * len(best)
    return tuple(
        _study_evidence(number, grade, abstracts[grade.abstract_id], finding, conflict)
        for number, (grade, finding) in enumerate(zip(best, findings, strict=True), 1)
    )


def _readable_grades(grades: Iterable[Grade], abstracts: Mapping[str, Abstract]) -> list[Grade]:
    return [
        grade
        for grade in best_kept(grades, abstracts)
        if _abstract_text(abstracts[grade.abstract_id])
    ]


def _case_id(screening: Screening, kept: list[Grade]) -> str:
    # The id is a digest of the content: the same kept set gives the same case, and a direction that
    # a person corrects gives a new one.
    outcome = [] if screening.outcome == "sufficient" else [screening.outcome]
    directions = [
        f"{grade.abstract_id} {grade.direction}" for grade in kept if grade.direction is not None
    ]
    content = "\n".join(
        [screening.id, *(grade.abstract_id for grade in kept), *outcome, *directions]
    )
    return f"screening-{screening.id[:8]}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"


def _abstract_text(abstract: Abstract) -> str:
    return abstract.text if abstract.text.strip() else abstract.title.strip()


def _study_evidence(
    number: int, grade: Grade, abstract: Abstract, finding: Finding | None, conflict: bool
) -> Evidence:
    text = _abstract_text(abstract)
    words = None if finding is None else finding.words
    fields = {
        "title": abstract.title or None,
        "year": abstract.year,
        "journal": abstract.journal,
        "authors": list(abstract.authors) or None,
        "doi": abstract.doi,
        "pmid": abstract.pmid,
        "design": None if grade.design is None else DESIGN[grade.design],
        "study_size": None if grade.study_size is None else grade.study_size.value,
        "quality": None if grade.quality is None else round(grade.quality, 4),
        "finding": None if words is None else {"start": words.start, "end": words.end},
        "direction": None if finding is None else finding.direction,
        "findings_conflict": conflict or None,
    }
    return Evidence.model_validate(
        {
            "id": f"abstract_{number}",
            "text": text,
            "source": _record_source(abstract),
            "abstract_id": abstract.id,
            "sentences": [{"start": span.start, "end": span.end} for span in split_sentences(text)],
            **{name: value for name, value in fields.items() if value is not None},
        }
    )


def _record_source(abstract: Abstract) -> str:
    """Return a link to the record if one is known, else its source or its id."""
    if abstract.doi:
        doi = abstract.doi.removeprefix("https://doi.org/").removeprefix("doi:").strip()
        return f"https://doi.org/{doi}"
    if abstract.pmid:
        return f"https://pubmed.ncbi.nlm.nih.gov/{abstract.pmid}/"
    return abstract.url or abstract.source or abstract.id
