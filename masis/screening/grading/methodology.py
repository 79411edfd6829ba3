"""How rigorous and how openly reported a study is, from what its abstract says: one item after another, with its
words.

Items come from the reporting guidelines for abstracts: CONSORT for Abstracts (Hopewell et al., Lancet 2008;371:281) for
trials, STROBE (von Elm et al., Lancet 2007;370:1453) for observational studies, PRISMA for Abstracts (Beller et al.,
PLoS Med 2013;10:e1001419) for reviews, ARRIVE 2.0 (Percie du Sert et al., PLoS Biol 2020;18:e3000410) for animals. How
much an item counts is ours: twice for what guards against bias (randomisation, blinding, adjustment, the search of a
review), once or half for the rest.

    score = ceiling of the design x min(1, points reported / ``WHOLE`` of the points a design can have)

The ceiling says how far reporting alone can carry a design (GRADE: observational evidence starts low, however well it
is reported); the prior as a floor comes after, in ``recommendation.with_prior_floor``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from masis.audit.sentences import split_sentences
from masis.schema.screening import Abstract, AppraisalItem, Design, ItemState, Reason, SampleSize, Words
from masis.screening.grading.wording import Wording, mentioned

WHOLE = 0.8
"""The share of the points that counts as all: 250 words can't report everything."""

CEILING: dict[Design, float] = {
    "meta_analysis": 0.95,
    "systematic_review": 0.95,
    "randomised_trial": 0.95,
    "cohort_study": 0.80,
    "non_randomised_study": 0.75,
    "case_control_study": 0.70,
    "cross_sectional_study": 0.60,
    "diagnostic_accuracy_study": 0.80,
    "prognostic_study": 0.80,
    "target_trial_emulation": 0.80,
    "interrupted_time_series": 0.75,
    "mendelian_randomisation": 0.75,
    "economic_evaluation": 0.60,
    "qualitative_study": 0.60,
    "notice": 0.0,
    "other": 0.60,
    "animal_study": 0.50,
    "in_vitro_study": 0.45,
    "case_series": 0.40,
    "protocol": 0.40,
    "narrative_review": 0.35,
    "case_report": 0.25,
}

_ITEMS: dict[AppraisalItem, Wording] = {
    "randomisation": Wording(
        r"\brandomi[sz](?:ed|ation)\b|\brandomly (?:assigned|allocated|divided)\b"
        r"|\b(?:assigned|allocated|divided|split) (?:\w+ )?at random\b"
    ),
    "allocation": Wording(
        r"\ballocation (?:was )?conceal\w+|\bconcealed allocation\b|\bsealed envelopes?\b|\b(?:computer"
        r"|centrally)[- ]"
        r"(?:generated|randomi[sz]ed)|\b(?:block|stratified|central|cluster|permuted)[- ]?(?:block )?randomi[sz]\w+"
        r"|\b[1-3] ?: ?[1-3]\b|\bminimi[sz]ation\b"
    ),
    "blinding": Wording(
        r"\b(?:double|single|triple|assessor|observer|rater|evaluator|investigator|patient)s?[- ](?:blind\w*"
        r"|masked)\b"
        r"|\bblind(?:ed|ly)\b|\bmasked\b(?! (?:uncontrolled )?hypertens)|\bblinding\b|\bdouble[- ]dummy\b"
        r"|\b(?!colou?r|non|un)\w+-(?:blind(?:ed)?|masked)\b|\bblind to\b"
        r"|\b(?:unaware of|did not know)(?: of| about)? (?:the |their |which |to which |what )?(?:[\w-]+ ){0,2}?"
        r"(?:groups?|allocations?|assignments?|treatments?)\b"
    ),
    "control": Wording(
        r"\bplacebo\b|\bcontrol(?:led)? (?:group|arm|trial|condition|study|subjects|animals)\b|\bcontrols\b|\bsham\b"
        r"|\busual care\b|\bstandard (?:care|treatment|therapy)\b|\bwait(?:ing)?[- ]?list\b"
        r"|\b(?:randomi[sz]ed|assigned|allocated) (?:[\w-]+ ){0,2}to [^.;]{1,90}? (?:or|versus) "
        r"|\bcompared? (?:[\w-]+ ){1,8}?with (?:those|the|patients|women|men|people|children|participants)\b"
        r"|\bcompar(?:ator|ison group)\b|\bcompared (?:with|to)\b|\bversus\b|\bvs\.? "
        r"|\b(?:more|less|fewer|better|worse|(?:high|low|great|small|long|short|fast|slow|earli|lat|larg|few|saf)er"
        r"|superior|inferior) (?:[\w-]+ ){0,6}?than (?:in|with|for|after|among|those|did|under|on|the|placebo|usual"
        r"|standard|open|conventional|controls?|non\w+|un\w+)\b"
    ),
    "outcome": Wording(
        r"\b(?:primary|main|principal|co-primary) (?:[\w-]+ ){0,2}?(?:outcome|end ?-?point|measure|variable)s?\b"
        r"|\boutcome measures?\b"
    ),
    "registration": Wording(
        r"\bNCT ?\d{6,8}\b|\bISRCTN ?\d{4,9}\b|\bCRD ?\d{8,14}\b|\bPROSPERO\b|\bEudraCT\b|\bChiCTR\b|\bACTRN ?\d+"
        r"|\bUMIN ?\d+|\bclinicaltrials\.gov\b|\b(?:trial|protocol) (?:was )?(?:pre-?)?registr\w+|\bpre-?registered\b"
    ),
    "interval": Wording(
        r"\b9[059] ?% ?(?:CI\b|CrI\b|confidence|credible)|\bconfidence intervals?\b|\bcredible intervals?\b",
        result=True,
    ),
    "test": Wording(r"\bp ?[<=>≤] ?0?\.\d+|\bp[- ]values?\b|\bstatistically significant\b", result=True),
    "effect": Wording(
        r"\b(?:odds|hazard|risk|rate|incidence) ratios?\b|\brelative risks?\b|\b(?:[as]?OR|[as]?HR|RR|IRR|SMD|WMD|MD)"
        r" ?[=:,]? ?-?\d|\bmean difference\b|\beffect sizes?\b|\bcohen'?s? d\b|\bnumber needed to treat\b",
        result=True,
    ),
    "model": Wording(
        r"\bregression\b|\badjust(?:ed|ing|ment) for\b|\bmixed[- ](?:effects? |models?)|\bAN[C]?OVA\b"
        r"|\bmultivaria(?:te|ble)\b|\bpropensity\b|\bCox\b(?![- ]?[12])|\bintention[- ]to[- ]treat\b"
        r"|\bgenerali[sz]ed estimating\b"
        r"|\brandom[- ]effects?\b|\bmeta-regression\b|\bmatched\b|\bKaplan\b|\bBayesian\b"
    ),
    "follow_up": Wording(
        r"\bfollow(?:ed)?[- ]?up\b|\b(?:after|at|for|over) \d{1,3} (?:days?|weeks?|months?|years?)\b|\bbaseline\b"
    ),
    "harms": Wording(
        r"\b(?:adverse (?:events?|effects?|reactions?)|side[- ]effects?|tolerab\w+|safety)\b", result=True
    ),
    "prospective": Wording(r"\bprospective(?:ly)?\b"),
    "consecutive": Wording(
        r"\bconsecutive(?:ly)?\b|\ball (?:patients|adults|children|women) (?:who|with|admitted|treated)\b"
    ),
    "eligibility": Wording(r"\b(?:inclusion|exclusion|eligibility|selection) criteria\b|\beligible\b|\baged? \d"),
    "search": Wording(
        r"\bsearched\b|\bliterature search\b|\bmedline\b|\bembase\b|\bpubmed\b|\bcochrane (?:library|central"
        r"|database)"
        r"|\bweb of science\b|\bpsycinfo\b|\bscopus\b"
    ),
    "selection": Wording(
        r"\b(?:two|2|three|both) (?:[\w-]+ ){0,2}?(?:reviewers|authors|investigators)\b|\bindependently\b"
    ),
    "bias": Wording(
        r"\brisk[- ]of[- ]bias\b|\bquality (?:assessment|appraisal|of (?:the )?(?:evidence|studies))"
        r"|\bnewcastle[- ]ottawa|\bjadad\b|\bheterogeneity\b|\bpublication bias\b|\bfunnel plot\b"
        r"|\bGRADE\b|\bI ?2 ?=|\bAMSTAR\b"
    ),
    "reference": Wording(
        r"\b(?:gold|reference) standards?\b|\bcompared with (?:histolog\w+|patholog\w+|biopsy|surgery|angiography"
        r"|culture)"
        r"|\b(?:histolog\w+|histopatholog\w+|surgically|biopsy)[- ](?:confirmed|proven|diagnosis|findings)\b"
    ),
    "accuracy": Wording(
        r"\bsensitivit(?:y|ies)\b|\bspecificit(?:y|ies)\b|\bpredictive values?\b|\blikelihood ratios?\b"
        r"|\barea under the (?:curve|ROC|receiver)|\bAU(?:RO)?C\b|\bkappa\b",
        result=True,
    ),
    "collection": Wording(r"\binterviews?\b|\bfocus groups?\b|\bfield ?notes?\b|\bparticipant observation\b"),
    "analysis": Wording(
        r"\b(?:thematic|framework|content|narrative|grounded theory|phenomenological|interpretative)[- ]"
        r"(?:\w+ )?analys[ie]s\b|\bgrounded theory\b|\bcoded\b|\bthemes?\b"
    ),
    "sampling": Wording(r"\b(?:purposive|purposeful|theoretical|maximum variation|snowball) sampl\w+|\bsaturation\b"),
    "guideline": Wording(r"\b(?:PRISMA|CONSORT|STROBE|QUOROM|MOOSE|STARD|ARRIVE)\b"),
}

LABELS: dict[AppraisalItem, str] = {
    "randomisation": "randomised",
    "allocation": "how it was allocated",
    "blinding": "blinded",
    "control": "a control or comparison",
    "outcome": "a main outcome",
    "registration": "registered",
    "interval": "a confidence interval",
    "test": "a test of significance",
    "effect": "a size of effect",
    "model": "a model or adjustment",
    "follow_up": "when it was measured",
    "harms": "harms",
    "prospective": "prospective",
    "consecutive": "how people came in",
    "eligibility": "who could take part",
    "search": "where was searched",
    "selection": "selection by two people",
    "bias": "risk of bias or heterogeneity",
    "reference": "a reference standard",
    "accuracy": "sensitivity, specificity or agreement",
    "collection": "how views were collected",
    "analysis": "how they were analysed",
    "sampling": "how people were sampled",
    "guideline": "a reporting guideline",
    "size": "how many were studied",
}

ITEM_STATE_NAMES: dict[ItemState, str] = {
    "stated": "stated",
    "denied": "denied",
    "planned": "only planned",
    "not_stated": "not stated",
}

_Checklist = dict[AppraisalItem, float]

_TRIAL: _Checklist = {
    **dict.fromkeys(("randomisation", "blinding"), 2.0),
    **dict.fromkeys(("control", "outcome", "size"), 1.5),
    **dict.fromkeys(("allocation", "interval", "effect", "model", "registration"), 1.0),
    **dict.fromkeys(("test", "follow_up", "harms", "eligibility"), 0.5),
}
_OBSERVED: _Checklist = {
    **dict.fromkeys(("model",), 2.0),
    **dict.fromkeys(("control", "size"), 1.5),
    **dict.fromkeys(("outcome", "interval", "effect", "follow_up", "prospective"), 1.0),
    **dict.fromkeys(("test", "consecutive", "eligibility", "registration", "blinding"), 0.5),
}
_REVIEW: _Checklist = {
    **dict.fromkeys(("search", "bias"), 2.0),
    **dict.fromkeys(("size",), 1.5),
    **dict.fromkeys(("eligibility", "selection", "effect", "interval", "model", "registration"), 1.0),
    **dict.fromkeys(("guideline", "outcome"), 0.5),
}
_SERIES: _Checklist = {
    **dict.fromkeys(("consecutive", "size", "follow_up", "outcome"), 1.0),
    **dict.fromkeys(("prospective", "eligibility", "effect", "test", "control"), 0.5),
}
_BENCH: _Checklist = {
    **dict.fromkeys(("control", "blinding"), 2.0),
    **dict.fromkeys(("randomisation", "size"), 1.5),
    **dict.fromkeys(("test", "model"), 1.0),
    **dict.fromkeys(("interval", "effect", "guideline"), 0.5),
}
_DIAGNOSTIC: _Checklist = {  # QUADAS-2: patient selection, index test, reference standard, flow
    **dict.fromkeys(("reference", "accuracy"), 2.0),
    **dict.fromkeys(("size", "blinding", "consecutive"), 1.5),
    **dict.fromkeys(("interval", "prospective", "eligibility"), 1.0),
    **dict.fromkeys(("test", "registration"), 0.5),
}
_QUALITATIVE: _Checklist = {  # CASP, qualitative checklist: recruitment, data collection, analysis
    **dict.fromkeys(("collection", "analysis"), 2.0),
    **dict.fromkeys(("size", "sampling"), 1.5),
    **dict.fromkeys(("eligibility",), 1.0),
}
CHECKLIST: dict[Design, _Checklist] = {
    "meta_analysis": _REVIEW,
    "systematic_review": _REVIEW,
    "narrative_review": _REVIEW,
    "randomised_trial": _TRIAL,
    "protocol": _TRIAL,
    "non_randomised_study": _OBSERVED,
    "cohort_study": _OBSERVED,
    "case_control_study": _OBSERVED,
    "cross_sectional_study": _OBSERVED,
    "diagnostic_accuracy_study": _DIAGNOSTIC,
    "prognostic_study": _OBSERVED,
    "target_trial_emulation": _OBSERVED,
    "interrupted_time_series": _OBSERVED,
    "mendelian_randomisation": _OBSERVED,
    "economic_evaluation": _OBSERVED,
    "qualitative_study": _QUALITATIVE,
    "notice": _OBSERVED,
    "other": _OBSERVED,
    "case_series": _SERIES,
    "case_report": _SERIES,
    "animal_study": _BENCH,
    "in_vitro_study": _BENCH,
}
"""The points of each item, by design: what its reporting guideline asks for."""


class ReadItem(NamedTuple):
    """An item of a design's checklist: its points, how the abstract speaks of it, and in which words."""

    item: AppraisalItem
    points: float
    state: ItemState
    words: tuple[Words, ...] = ()


class Methodology(NamedTuple):
    """A score before the prior's floor, the items reported and not, and why."""

    score: float | None
    reported: dict[AppraisalItem, tuple[Words, ...]]
    absent: tuple[AppraisalItem, ...]
    reason: Reason


def methodology(abstract: Abstract, design: Design, sizes: tuple[SampleSize, ...] = ()) -> Methodology:
    """Score what an abstract reports of its design's checklist. ``sizes`` are the sample sizes found in its text."""
    if not abstract.text.strip():
        return Methodology(None, {}, (), Reason(text="There is no abstract to read, only a title."))
    return score_items(design, appraise(abstract, design, sizes))


def appraise(abstract: Abstract, design: Design, sizes: tuple[SampleSize, ...] = ()) -> tuple[ReadItem, ...]:
    """Return every item of the design's checklist as the abstract speaks of it; none where there is only a title."""
    if not abstract.text.strip():
        return ()
    found = []
    for item, points in CHECKLIST[design].items():
        if item == "size":
            words = _size(abstract, sizes)
            found.append(ReadItem(item, points, "stated" if words else "not_stated", words))
        else:
            found.append(ReadItem(item, points, *mentioned(_ITEMS[item], abstract)))
    return tuple(found)


def corrected(items: Iterable[ReadItem], corrections: Mapping[AppraisalItem, ItemState]) -> tuple[ReadItem, ...]:
    """Return the items with the states that a person set; what a person sets rests on no words of the machine's."""
    return tuple(
        ReadItem(each.item, each.points, corrections[each.item])
        if corrections.get(each.item, each.state) != each.state
        else each
        for each in items
    )


def score_items(design: Design, items: Sequence[ReadItem]) -> Methodology:
    """Score a design's checklist by the items that are stated."""
    reported = {each.item: each.words for each in items if each.state == "stated"}
    points = sum(each.points for each in items if each.state == "stated")
    whole = sum(each.points for each in items)
    share = min(1.0, points / (WHOLE * whole))
    absent = tuple(each.item for each in items if each.state != "stated")
    score = round(CEILING[design] * share, 4)
    return Methodology(score, reported, absent, _reason(design, reported, absent, points, CHECKLIST[design]))


def sentence_of(words: Words, abstract: Abstract) -> tuple[str, int]:
    """Return the sentence that holds these words, and where in it they begin; of a title all of it."""
    source = abstract.title if words.place == "title" else abstract.text
    if words.place == "title":
        return source, words.start
    for span in split_sentences(source):
        if span.start <= words.start < span.end:
            return source[span.start : max(span.end, words.end)], words.start - span.start
    return words.text, 0


def _size(abstract: Abstract, sizes: tuple[SampleSize, ...]) -> tuple[Words, ...]:
    return tuple(Words(start=s.start, end=s.end, text=abstract.text[s.start : s.end]) for s in sizes[:1])


def _reason(
    design: Design,
    reported: dict[AppraisalItem, tuple[Words, ...]],
    absent: tuple[AppraisalItem, ...],
    points: float,
    checklist: _Checklist,
) -> Reason:
    says = ", ".join(LABELS[item] for item in reported) or "nothing of what its design calls for"
    lacks = ", ".join(LABELS[item] for item in sorted(absent, key=lambda item: -checklist[item])[:4])
    text = f"Reports {says} ({points:g} of {sum(checklist.values()):g} points, at most {CEILING[design]:.2f} by design)"
    return Reason(
        text=f"{text}. Not reported: {lacks}." if lacks else f"{text}.",
        words=tuple(word for found in reported.values() for word in found),
    )
