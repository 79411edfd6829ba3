"""The constants of the evidence critic: priors, hierarchy and thresholds, each with its source.

The specification defines three priors, four required averages and two consensus shares
(AESOP-PRIORS, AESOP-DECAY, AESOP-CONSENSUS in docs/CONFORMANCE.md). The other constants come from:

- **OCEBM 2011**: Oxford Centre for Evidence-Based Medicine, Levels of Evidence 2: for "does this
  intervention help?" level 1 systematic review of randomised trials, 2 randomised trial, 3
  non-randomised controlled cohort or follow-up study, 4 case series, case-control or historically
  controlled study, 5 mechanism-based reasoning.
- **GRADE**: Guyatt et al., BMJ 2008;336:924: randomised trials start as high, observational studies
  as low certainty; evidence from other populations (animals, cells) is indirect.
- **Cohen 1992**: A power primer, Psychological Bulletin 112:155, table 2 (alpha 0.05 two-sided,
  power 0.80).
- **Jackson and Turner 2017**: Res Synth Methods 8:290: a random-effects meta-analysis of about five
  studies or more has more power than its studies alone.
- **Mead 1988**: The design of experiments, the resource equation; Festing and Altman, ILAR J
  2002;43:244: an animal experiment should leave 10 to 20 degrees of freedom for error.
- **Cohen 1988**: Statistical power analysis, 2nd edition, chapter 2: pairs of measurements.
- **Hayes and Moulton 2017**: Cluster randomised trials, 2nd edition, chapter 7: at least four
  clusters per arm.
"""

from __future__ import annotations

from typing import NamedTuple

from masis.schema.screening import Design, StudyType

VERSION = "6"
"""Increased whenever a constant or a rule of screening changes; recorded with every screening."""


class HierarchyPlace(NamedTuple):
    """A design's place in the evidence hierarchy.

    ``level`` is that of OCEBM 2011 (1 is best), None for designs outside it. ``prior`` is the floor
    of the methodology score. ``concludes`` says whether the design can support a conclusion about
    people by itself, and ``source`` names the source of level and prior.
    """

    level: int | None
    prior: float
    concludes: bool
    source: str


HIERARCHY: dict[Design, HierarchyPlace] = {
    "meta_analysis": HierarchyPlace(
        1, 0.75, True, "specification: starts strong; OCEBM level 1, above one trial"
    ),
    "systematic_review": HierarchyPlace(
        1, 0.70, True, "OCEBM level 1; without pooling a step under a meta-analysis"
    ),
    "randomised_trial": HierarchyPlace(2, 0.65, True, "specification: 0.65; OCEBM level 2"),
    "cohort_study": HierarchyPlace(3, 0.45, True, "specification: 0.45; OCEBM level 3"),
    "non_randomised_study": HierarchyPlace(
        3, 0.40, True, "OCEBM level 3 if controlled, 4 if not: under the cohort's 0.45"
    ),
    "case_control_study": HierarchyPlace(
        4, 0.35, True, "OCEBM level 4: between cohort and case series"
    ),
    "cross_sectional_study": HierarchyPlace(
        4, 0.30, True, "GRADE: observational, no order in time; under case-control"
    ),
    "diagnostic_accuracy_study": HierarchyPlace(
        3, 0.45, True, "OCEBM 2011, diagnosis: with a reference standard level 2 to 3"
    ),
    "prognostic_study": HierarchyPlace(
        3, 0.45, True, "OCEBM 2011, prognosis: inception cohort; as a cohort"
    ),
    "interrupted_time_series": HierarchyPlace(
        3, 0.40, True, "Cochrane EPOC: as non-randomised, its own past the control"
    ),
    "target_trial_emulation": HierarchyPlace(
        3, 0.45, True, "Hernan and Robins 2016: a cohort analysed by a trial's protocol"
    ),
    "mendelian_randomisation": HierarchyPlace(
        3, 0.40, True, "STROBE-MR 2021: observational, genes the instruments"
    ),
    "economic_evaluation": HierarchyPlace(
        None, 0.30, True, "CHEERS 2022: rests on the effects it models"
    ),
    "qualitative_study": HierarchyPlace(
        None, 0.30, True, "GRADE-CERQual 2018: other rules; as a cross-sectional study"
    ),
    "case_series": HierarchyPlace(
        4, 0.20, False, "specification: 0.20; OCEBM level 4, no comparison"
    ),
    "narrative_review": HierarchyPlace(5, 0.15, False, "OCEBM level 5: no systematic search"),
    "case_report": HierarchyPlace(5, 0.10, False, "under the case series' 0.20: one case"),
    "animal_study": HierarchyPlace(5, 0.10, False, "OCEBM level 5; GRADE: indirect for people"),
    "in_vitro_study": HierarchyPlace(
        5, 0.05, False, "OCEBM level 5; GRADE: further from people than animals"
    ),
    "protocol": HierarchyPlace(None, 0.10, False, "no results yet: nothing to conclude from"),
    "notice": HierarchyPlace(
        None, 0.0, False, "reports no study of its own, or one that was withdrawn"
    ),
    "other": HierarchyPlace(None, 0.0, True, "an unknown design earns no floor"),
}

DESIGN_OF: dict[StudyType, Design] = {
    "human_systematic_review": "systematic_review",
    "human_rct_drug_intervention": "randomised_trial",
    "human_rct_non_drug_intervention": "randomised_trial",
    "human_rct_non_intervention": "randomised_trial",
    "human_non_rct_drug_intervention": "non_randomised_study",
    "human_non_rct_non_drug_intervention": "non_randomised_study",
    "human_case_report": "case_report",
    "non_systematic_review": "narrative_review",
    "clinical_study_protocol": "protocol",
    "animal_drug_intervention": "animal_study",
    "animal_non_drug_intervention": "animal_study",
    "animal_other": "animal_study",
    "in_vitro_study": "in_vitro_study",
    "remaining": "other",
}
"""The usual design of each study type. ``hierarchy.py`` refines it by the words of the abstract."""

REQUIRED_AVERAGE = (0.70, 0.65, 0.60, 0.55)
"""The required average quality of the kept abstracts by round; the last value holds for all later
rounds (specification, Reviewer Confidence Decay).
"""
PAGE = 15
"""The number of abstracts in a round that lowers the required average by a whole step: three
quarters of the default page (our own choice).
"""
KEEP_SHARE = 0.60
"""The least share of ``keep`` that is sufficient (specification, Disagreement-Aware CRAG)."""
DISCARD_SHARE = 0.50
"""The least share of ``discard`` that retrieves more (specification, Disagreement-Aware CRAG)."""

KEEP_QUALITY = 0.45
"""The least quality to keep an abstract: half of the question met by a non-randomized study (0.50
and 0.40). The required averages decide whether the kept abstracts are good enough together, so a
stricter bound here would count the same twice.
"""
KEEP_RELEVANCE = 0.50
"""The least relevance to keep an abstract: at least half of the question is met."""
KEEP_METHODOLOGY = 0.30
"""The least methodology to keep an abstract: the lowest prior of a design that can support a
conclusion by itself, that of cross-sectional studies.
"""
DISCARD_RELEVANCE = 0.30
"""Below this an abstract is about something else: it shares one of three or four terms."""
DISCARD_METHODOLOGY = 0.20
"""Below this the method is weaker than a case series, the weakest design with a prior in the
specification.
"""


class Adequacy(NamedTuple):
    """The smallest plausible size of a design, its unit and its source.

    ``least`` is None if size doesn't matter.
    """

    least: int | None
    of: str
    source: str


LARGE_EFFECT_TWO_GROUPS = 52
"""26 in each of two groups can show a large difference (d = 0.8): Cohen 1992, table 2."""
LARGE_CORRELATION = 28
"""28 can show a large correlation (r = 0.50): Cohen 1992, table 2."""
POOLED_STUDIES = 5
"""Five studies are needed before pooling adds power: Jackson and Turner 2017."""
OPTIMAL_INFORMATION = 400
"""Participants that make a review plausible even with few studies: Guyatt et al., J Clin Epidemiol
2011;64:1283.
"""
LARGE_TRIAL = OPTIMAL_INFORMATION
"""Participants that make one randomized trial enough evidence alone: the optimal information size
of GRADE.
"""
ANIMALS = 12
"""Two groups that leave ten degrees of freedom for error: Mead 1988."""

ADEQUATE_SIZE: dict[Design, Adequacy] = {
    "meta_analysis": Adequacy(POOLED_STUDIES, "studies", "Jackson and Turner 2017"),
    "systematic_review": Adequacy(POOLED_STUDIES, "studies", "Jackson and Turner 2017"),
    "randomised_trial": Adequacy(LARGE_EFFECT_TWO_GROUPS, "participants", "Cohen 1992, d = 0.8"),
    "non_randomised_study": Adequacy(
        LARGE_EFFECT_TWO_GROUPS, "participants", "Cohen 1992, d = 0.8"
    ),
    "cohort_study": Adequacy(LARGE_EFFECT_TWO_GROUPS, "participants", "Cohen 1992, d = 0.8"),
    "case_control_study": Adequacy(LARGE_EFFECT_TWO_GROUPS, "participants", "Cohen 1992, d = 0.8"),
    "cross_sectional_study": Adequacy(LARGE_CORRELATION, "participants", "Cohen 1992, r = 0.50"),
    "diagnostic_accuracy_study": Adequacy(
        LARGE_CORRELATION, "participants", "Cohen 1992, r = 0.50"
    ),
    "prognostic_study": Adequacy(LARGE_EFFECT_TWO_GROUPS, "participants", "Cohen 1992, d = 0.8"),
    "target_trial_emulation": Adequacy(
        LARGE_EFFECT_TWO_GROUPS, "participants", "Cohen 1992, d = 0.8"
    ),
    "mendelian_randomisation": Adequacy(
        None, "participants", "the strength of the instruments decides, not the size"
    ),
    "interrupted_time_series": Adequacy(
        None, "participants", "the points in time decide, not people (EPOC)"
    ),
    "economic_evaluation": Adequacy(None, "participants", "a model rests on other studies' sizes"),
    "qualitative_study": Adequacy(None, "participants", "saturation decides, not power (CASP)"),
    "notice": Adequacy(None, "participants", "no study"),
    "animal_study": Adequacy(ANIMALS, "animals", "Mead 1988"),
    "case_series": Adequacy(None, "cases", "without a comparison no size makes it conclusive"),
    "case_report": Adequacy(None, "cases", "one case"),
    "narrative_review": Adequacy(None, "studies", "reviews without a search have no sample"),
    "protocol": Adequacy(None, "participants", "nobody has been studied yet"),
    "in_vitro_study": Adequacy(
        None, "samples", "cells and samples are not counted like participants"
    ),
    "other": Adequacy(None, "participants", "the design is unknown, and with it the size it needs"),
}

CROSSOVER = Adequacy(15, "participants", "Cohen 1988, d = 0.8 within each person")
"""A crossover trial compares each person with themselves, so it needs fewer."""
CLUSTERS = Adequacy(8, "clusters", "Hayes and Moulton 2017, four in each arm")
"""A cluster trial needs enough clusters, however many people each of them has."""
CLUSTER_PARTICIPANTS = Adequacy(
    2 * LARGE_EFFECT_TWO_GROUPS, "participants", "Cohen 1992, d = 0.8, with a design effect of 2"
)
"""For a cluster trial that doesn't state its clusters. The design effect is our own choice."""

MEMORY_NEEDS = 20
"""The acceptances needed before memory changes a required average."""
