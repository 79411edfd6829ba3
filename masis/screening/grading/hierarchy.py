"""The place of a study in the evidence hierarchy: from its type, refined by its words.

The 14 study types have no cohort, no case series and no meta-analysis; the hierarchy and its priors (AESOP-PRIORS) do.
The words decide between them, and they may raise a type that was recognised too low where they leave no doubt: people
"were randomly assigned" in a randomised trial, whatever else the abstract sounds like.
"""

from __future__ import annotations

from typing import NamedTuple

from masis.schema.screening import Abstract, Design, StudyType, Words
from masis.screening.grading import rubric
from masis.screening.grading.wording import Wording, first


class Placement(NamedTuple):
    """A design and the words it rests on; ``why`` says which rule placed it."""

    design: Design
    why: str
    words: tuple[Words, ...] = ()


_RANDOMISED = Wording(
    r"\brandomly (?:assigned|allocated|divided into)\b"
    r"|\b(?:was|were|are|be) (?:(?!not |never )\w+ )?randomi[sz]ed\b"
    r"|\brandomi[sz]ed,? (?:to (?:receive|either|one)|into (?:two|three|four|2|3|4))\b"
    r"|\b(?:in this|we (?:conducted|performed|did|carried out)|this (?:was|is)|a) (?:an? )?(?:[\w-]+,? ){0,5}?"
    r"randomi[sz]ed,? (?:[\w-]+,? ){0,4}?trial\b"
)
_RANDOMISED_TITLE = Wording(r"\brandomi[sz]ed\b")
_POOLED = Wording(r"\bmeta-?\s?analy(?:sis|ses|tic|zed|sed)\b|\bmetaanaly(?:sis|ses)\b")
_SEARCHED = Wording(
    r"\b(?:systematic(?:ally)? (?:review|search)\w*|(?:we|were|was|databases?) (?:\w+ )?searched|literature search"
    r"|medline|embase|cochrane (?:library|central|database)|pubmed|web of science|studies were included)\b"
)
_REVIEW_TITLE = Wording(r"\b(?:systematic review|meta-?\s?analysis|metaanalysis)\b")
_FEW = r"(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|[2-9]|1\d)"
_SERIES = Wording(
    rf"\b(?:charts?|records|notes|review|report|analysis) of (?:the )?{_FEW} (?:[\w-]+ ){{0,2}}?(?:cases|patients)\b"
    r"|\bcase series\b|\bseries of (?:\w+ )?(?:\w+ )?(?:cases|patients)\b"
    r"|\b(?:we (?:report|describe|present)|reports?|describes?) (?:on )?(?:the )?(?:cases of )?"
    r"(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|[2-9]|[1-9]\d) (?:[\w-]+ ){0,3}?"
    r"(?:cases|patients|children|women|men|siblings|brothers|infants)\b"
)
_CASE_CONTROL = Wording(r"\bcase[- ]control(?:led)?\b|\bmatched controls\b")
_CROSS_SECTIONAL = Wording(r"\bcross[- ]sectional\b|\bprevalence (?:study|survey)\b|\bquestionnaire survey\b")
_SURVEY = Wording(
    r"\bsurveyed\b|\bsurvey (?:of|among)\b|\ba (?:[\w-]+ ){0,3}?survey was\b"
    r"|\bquestionnaires? (?:was|were) (?:sent|mailed|posted|distributed)\b"
)
_COHORT = Wording(
    r"\bcohorts?\b|\blongitudinal (?:study|data|analysis)\b"
    r"|\bprospective(?:ly)? (?:\w+ )?(?:study|observational|followed)"
    r"|\bfollowed(?: up)? for\b|\bregistry\b|\bretrospective(?:ly)? (?:\w+ )?(?:study|review|analy[sz]\w+|chart)\b"
)

_OF_INTERVENTIONS: tuple[tuple[Design, Wording], ...] = (
    ("case_series", _SERIES),
    ("cohort_study", Wording(r"\bcohorts?\b")),
    ("case_control_study", _CASE_CONTROL),
    ("cross_sectional_study", _CROSS_SECTIONAL),
)
_FINER: dict[StudyType, tuple[tuple[Design, Wording], ...]] = {
    "human_case_report": (("case_series", _SERIES),),
    "remaining": (
        ("case_control_study", _CASE_CONTROL),
        ("cross_sectional_study", _CROSS_SECTIONAL),
        ("cohort_study", _COHORT),
        ("case_series", _SERIES),
        ("cross_sectional_study", _SURVEY),
    ),
    "human_non_rct_drug_intervention": _OF_INTERVENTIONS,
    "human_non_rct_non_drug_intervention": _OF_INTERVENTIONS,
}
_MAY_BE_TRIAL: frozenset[StudyType] = frozenset(
    {"remaining", "human_non_rct_drug_intervention", "human_non_rct_non_drug_intervention"}
)
_MAY_BE_REVIEW: frozenset[StudyType] = frozenset({"remaining", "non_systematic_review", "human_systematic_review"})


def place_design(study_type: StudyType | None, abstract: Abstract) -> Placement:
    """Return the place of an abstract of this type; ``other`` where no type was recognised."""
    if study_type is None:
        return Placement("other", "No study type was recognised.")
    name = rubric.STUDY_TYPE_NAMES[study_type]
    if study_type in _MAY_BE_REVIEW and (found := _review(study_type, abstract)) is not None:
        return found
    if study_type in _MAY_BE_TRIAL and (words := _randomised(abstract)):
        return Placement("randomised_trial", f"Recognised as {name}, but its words say that it was randomised.", words)
    for design, wording in _FINER.get(study_type, ()):
        if words := first(wording, abstract):
            return Placement(design, f"Its words make it a {rubric.HIERARCHY[design].name}.", words)
    design = rubric.DESIGN_OF[study_type]
    return Placement(design, f"What the type stands for ({name}): {rubric.HIERARCHY[design].name}.")


def _review(study_type: StudyType, abstract: Abstract) -> Placement | None:
    """Place a systematic review or meta-analysis, by its type or by its title and a search in its text; None for
    others.
    """
    searched = first(_SEARCHED, abstract, title=False)
    by_type = study_type == "human_systematic_review"
    if not by_type and not (searched and first(_REVIEW_TITLE, abstract, text=False)):
        return None
    if pooled := first(_POOLED, abstract):
        return Placement("meta_analysis", "Its words say that results were pooled.", pooled)
    return Placement("systematic_review", "A systematic search, and nothing pooled.", searched)


def _randomised(abstract: Abstract) -> tuple[Words, ...]:
    return first(_RANDOMISED, abstract, title=False) or first(_RANDOMISED_TITLE, abstract, text=False)


_ANIMALS = Wording(r"\b(?:animals?|rats?|mice|mouse|rodents?|murine|rabbits?|pigs?|dogs?|zebrafish|primates?)\b")
_CELLS = Wording(r"\b(?:in vitro|cell lines?|cell cultures?|cultured cells|organoids?|ex vivo)\b")


def designs_asked_about(question: str) -> frozenset[Design]:
    """Return the designs a question is itself about ("in rats", "in vitro"), so that they are no indirect evidence for
    it.
    """
    found: set[Design] = set()
    if _ANIMALS.search(question):
        found.add("animal_study")
    if _CELLS.search(question):
        found.add("in_vitro_study")
    return frozenset(found)
