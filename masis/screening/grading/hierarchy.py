"""The place of a study in the evidence hierarchy: from its type, refined by its words.

The 14 study types have no cohort, no case series and no meta-analysis; the hierarchy and its priors (AESOP-PRIORS) do.
The words decide between them, and they may raise a type that was recognised too low where they leave no doubt: people
"were randomly assigned" in a randomised trial, whatever else the abstract sounds like.
"""

from __future__ import annotations

from typing import NamedTuple

from masis.schema.screening import Abstract, Design, StudyType, Words
from masis.schema.wording import with_article
from masis.screening.grading import rubric
from masis.screening.grading.wording import Wording, first, mentioned
from masis.screening.sources.publication import publication_of
from masis.views.screening import DESIGN, STUDY_TYPE


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
_REVIEW_NAMED = Wording(
    r"(?:^|[:.–—-] ?)(?:an? |the )?(?:[\w-]+ ){0,4}?(?:systematic review|meta-?\s?analys[ie]s|metaanalysis)"
    r"(?: and meta-?\s?analysis)?(?: of\b|\W*$)"
)
"""A title that names the record so: "... : a meta-analysis", "Meta-analysis of ..."."""
_REVIEW_DONE = Wording(
    r"\b(?:we|this|our|present) (?:\w+ )?(?:performed |conducted |did |carried out |undertook |present |report )?"
    r"(?:an? |the )?(?:[\w-]+ ){0,3}?(?:systematic review|meta-?\s?analysis)\b"
    r"|\b(?:trials|studies|results|data|estimates|effects?) were (?:\w+ )?(?:pooled|meta-?analy[sz]ed)\b"
    r"|\b(?:random|fixed)[- ]effects? meta-?\s?analysis\b"
)
_RANDOM = Wording(r"\brandomi[sz](?:ed|ation)\b|\brandomly (?:assigned|allocated|divided)\b")
_OF_RECORD: dict[str, Design] = {
    "meta-analysis": "meta_analysis",
    "network meta-analysis": "meta_analysis",
    "systematic review": "systematic_review",
    "randomized controlled trial": "randomised_trial",
}
"""Publication types of PubMed that name a design: people have read the article for them."""
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

_ANIMAL_WORDS = (
    r"(?:rats|mice|murine|rabbits|piglets|pigs|swine|beagles|zebrafish|sheep|ewes|hamsters|monkeys|macaques)"
)
_ANIMAL_TITLE = Wording(
    rf"\b(?:in|of|on) (?:[\w-]+ ){{0,4}}?{_ANIMAL_WORDS}\b|\b(?:rat|mouse|murine|animal) (?:models?|study)\b"
)
_ANIMAL_TEXT = Wording(
    rf"\b(?:wistar|sprague[- ]dawley|c57bl/6\w*|balb/c|transgenic|knockout|adult male|adult female|male|female|\d+)"
    rf" (?:albino |adult |[a-z]+ )?{_ANIMAL_WORDS}\b|\b{_ANIMAL_WORDS} (?:were|received)\b"
)
_HUMAN = Wording(
    r"\b(?:patients|participants|volunteers|women|men|adults|children|people"
    r"|infants) (?:with [\w -]{1,40}?)?(?:were|was|who|received|aged)\b"
)
_VITRO_TITLE = Wording(r"\bin vitro\b|\bcell lines?\b|\bcultured (?:\w+ ){0,3}cells\b")
_VITRO_TEXT = Wording(
    r"\b(?:this|present|an|the|our) in[- ]vitro (?:study|experiment|comparison|investigation)\b"
    r"|\bextracted (?:[\w-]+ ){0,3}?(?:teeth|incisors|molars|premolars)\b"
)

_QUALITATIVE = Wording(
    r"\bqualitative (?:\w+ )?(?:study|research|interviews?|analysis|methods?|approach|descriptive)\b"
    r"|\bfocus groups?\b|\bgrounded theory\b"
    r"|\b(?:semi-?structured|in-depth|unstructured) (?:\w+ ){0,2}interviews?\b|\bthematic analysis\b"
)
_ITS = Wording(r"\binterrupted time[- ]series\b")
_EMULATION = Wording(
    r"\b(?:target|hypothetical) trial emulation\b|\bemulat\w+ (?:of )?(?:a |the )?(?:[\w-]+ ){0,2}trials?\b"
)
_MENDELIAN = Wording(r"\bmendelian randomi[sz]ation\b")
_ECONOMIC = Wording(
    r"\bcost[- ](?:effectiveness|utility|benefit|minimi[sz]ation) (?:\w+ )?(?:analys[ie]s|stud(?:y|ies)|models?"
    r"|ratio)\b|\beconomic evaluation\b"
    r"|\b(?:decision[- ]analytic|markov|budget impact) (?:\w+ )?(?:model|analysis)\b"
    r"|\bquality-adjusted life[- ]years? gained\b|\bICERs?\b"
)
_DIAGNOSTIC = Wording(
    r"\bdiagnostic (?:accuracy|performance|yield|value|test)\b|\b(?:sensitivity|specificity) (?:and|of|was|were|,)"
    r"|\b(?:gold|reference) standard\b|\b(?:inter|intra)-?(?:observer|rater) (?:\w+ )?(?:agreement|reliability"
    r"|variability)\b"
    r"|\bpositive predictive values?\b|\breceiver[- ]operating\b|\binternal consistency\b|\bpsychometric\w*\b"
    r"|\bRasch\b|\bBland[- ]Altman\b"
)
_PROGNOSTIC = Wording(
    r"\bprognostic (?:factors?|value|significance|markers?|model|impact|study)\b"
    r"|\bpredictors? of (?:\w+ ){0,3}(?:survival|mortality|recurrence|death|outcomes?)\b"
    r"|\b(?:overall|disease-free|cancer-specific|relapse-free|5-year|five-year) survival\b|\bpredict(?:s|ed"
    r"|ion)? (?:\w+ ){0,2}(?:survival|mortality|recurrence)\b"
    r"|\bCox (?:proportional|regression|model)"
)
_RETROSPECTIVE = Wording(
    r"\bretrospective(?:ly)?\b|\b(?:medical|patients?'?|hospital|case|clinical) (?:records|charts|notes)\b"
    r"|\bchart review\b"
    r"|\b(?:admitted|treated|operated|discharged|hospitali[sz]ed|seen|referred|undergoing|underwent|born|delivered"
    r"|diagnosed) (?:[\w-]+ ){0,8}?"
    r"(?:between|from|during|in) (?:[A-Z]\w+ )?(?:\d{1,2},? )?(?:19|20)\d\d\b|\b(?:between"
    r"|from) (?:[A-Z]\w+ )?(?:\d{1,2},? )?(?:19|20)\d\d (?:and|to|through|until)\b"
    r"|\bdatabase\b|\bconsecutive (?:\w+ ){0,2}(?:patients|cases|women|men|children|infants)\b"
    r"|\bfollow(?:ed)?[- ]?up\b|\bprospective(?:ly)?\b|\bat baseline\b"
)
_COMPARED = Wording(
    r"\b(?:compared (?:with|to|between)|comparison (?:group|of)|control group|healthy (?:controls|volunteers"
    r"|subjects)|controls)\b|\bdivided into (?:two|three|four|2|3|4) groups\b"
    r"|\b(?:pre|before)[- ]?(?:and|to|/)?[- ]?(?:post|after)[- ]?(?:intervention|test|training|treatment)?\b"
)
_ASKED = Wording(
    r"\bquestionnaires?\b|\b(?:an?|this|our|online|postal|national) survey\b"
    r"|\b(?:were|was) (?:asked|interviewed|surveyed)\b|\bprevalence\b"
    r"|\brespondents\b|\bcorrelat(?:ed|ion)s?\b|\bself-reported\b|\bmultivaria\w+\b|\bregression\b"
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
        ("mendelian_randomisation", _MENDELIAN),
        ("target_trial_emulation", _EMULATION),
        ("interrupted_time_series", _ITS),
        ("economic_evaluation", _ECONOMIC),
        ("qualitative_study", _QUALITATIVE),
        ("case_control_study", _CASE_CONTROL),
        ("cross_sectional_study", _CROSS_SECTIONAL),
        ("cohort_study", _COHORT),
        ("case_series", _SERIES),
        ("cross_sectional_study", _SURVEY),
        ("diagnostic_accuracy_study", _DIAGNOSTIC),
        ("prognostic_study", _PROGNOSTIC),
        ("cohort_study", _RETROSPECTIVE),
        ("cross_sectional_study", _ASKED),
        ("non_randomised_study", _COMPARED),
    ),
    "human_non_rct_drug_intervention": _OF_INTERVENTIONS,
    "human_non_rct_non_drug_intervention": _OF_INTERVENTIONS,
}
_MAY_BE_TRIAL: frozenset[StudyType] = frozenset(
    {"remaining", "human_non_rct_drug_intervention", "human_non_rct_non_drug_intervention"}
)
_MAY_BE_REVIEW: frozenset[StudyType] = frozenset({"remaining", "non_systematic_review", "human_systematic_review"})


LEAST_SURE = 0.5
"""A type that discards an abstract by itself has to be likelier than all others together."""

_DISCARDING: frozenset[Design] = frozenset(
    {"case_report", "narrative_review", "animal_study", "in_vitro_study", "protocol"}
)
"""Designs for which an abstract is discarded: no study with results, or a prior under the least methodology."""


def place_design(study_type: StudyType | None, abstract: Abstract, confidence: float = 1.0) -> Placement:
    """Return the place of an abstract of this type; ``other`` where no type was recognised, or none surely enough.

    ``confidence`` is the share of the type among all. Where it is under a half, no abstract is discarded for its type:
    what is uncertain needs more.
    """
    if (sure := sure_design(abstract)) is not None:
        return sure
    for each in abstract.publication_types:
        if (named := _OF_RECORD.get(each.strip().lower())) is not None:
            return Placement(named, f"Its record says “{each}”.")
    if study_type is None:
        return Placement("other", "No study type was recognised.")
    name = STUDY_TYPE[study_type]
    if (found := _review(study_type, abstract)) is not None:
        return found
    if study_type in _MAY_BE_TRIAL and (words := _randomised(abstract)):
        return Placement("randomised_trial", f"Recognised as {name}, but its words say that it was randomised.", words)
    for design, wording in _FINER.get(study_type, ()):
        if words := first(wording, abstract):
            return Placement(design, f"Its words make it {with_article(DESIGN[design])}.", words)
    design = rubric.DESIGN_OF[study_type]
    state, words = mentioned(_RANDOM, abstract)
    if design in ("randomised_trial", "other") and state == "denied":
        return Placement("non_randomised_study", "Its words deny that it was randomised.", words)
    if design in _DISCARDING and confidence < LEAST_SURE:
        return Placement("other", f"Recognised as {name}, but not surely enough (share {confidence:.2f}).")
    return Placement(design, f"What the type stands for ({name}): {DESIGN[design]}.")


def sure_design(abstract: Abstract) -> Placement | None:
    """Return the place of what is no study with results in people, by its own words or its record's
    publication types.

    Retractions, errata and comments, protocols without results, animals and cells: these pass for a trial by no
    classifier's and no model's word. None for everything else.
    """
    if (found := publication_of(abstract)) is not None and found.status != "of_concern":
        return Placement("protocol" if found.status == "protocol" else "notice", found.why, found.words)
    if first(_HUMAN, abstract) == ():
        animal = first(_ANIMAL_TEXT, abstract, title=False) or first(_ANIMAL_TITLE, abstract, text=False)
        if animal:
            return Placement("animal_study", "Its words say that animals were studied.", animal)
        if cells := first(_VITRO_TITLE, abstract, text=False) or first(_VITRO_TEXT, abstract, title=False):
            return Placement("in_vitro_study", "Its words say that it was done in cells or specimens.", cells)
    return None


def _review(study_type: StudyType, abstract: Abstract) -> Placement | None:
    """Place a systematic review or meta-analysis, by its type, by its title, or by what its text says that it did; None
    for others.
    """
    searched = first(_SEARCHED, abstract, title=False)
    by_type = study_type == "human_systematic_review"
    titled = first(_REVIEW_TITLE, abstract, text=False) if searched else first(_REVIEW_NAMED, abstract, text=False)
    did = first(_REVIEW_DONE, abstract, title=False) if study_type in _MAY_BE_REVIEW else ()
    if not (by_type or titled or did):
        return None
    if pooled := first(_POOLED, abstract):
        return Placement("meta_analysis", "Its words say that results were pooled.", pooled)
    return Placement("systematic_review", "A systematic search, and nothing pooled.", searched)


def _randomised(abstract: Abstract) -> tuple[Words, ...]:
    return first(_RANDOMISED, abstract, title=False) or first(_RANDOMISED_TITLE, abstract, text=False)


_ANIMALS = Wording(r"\b(?:animals?|rats?|mice|mouse|rodents?|murine|rabbits?|pigs?|dogs?|zebrafish|primates?)\b")
_CELLS = Wording(r"\b(?:in vitro|cell lines?|cell cultures?|cultured cells|organoids?|ex vivo)\b")


def designs_asked_about(question: str) -> frozenset[Design]:
    """Return the designs a question is itself about ("in rats", "in vitro"), so that they are no indirect"
    " evidence for
    it.
    """
    found: set[Design] = set()
    if _ANIMALS.search(question):
        found.add("animal_study")
    if _CELLS.search(question):
        found.add("in_vitro_study")
    return frozenset(found)
