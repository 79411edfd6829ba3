"""The ruling on a round from its votes: consensus, average and decision, as pure functions.

Required averages follow AESOP-DECAY, consensus AESOP-CONSENSUS. Both must hold to stop, and, beyond
the specification, the kept abstracts must be of at least ``screening_least_studies`` independent
studies, or one that is enough alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from masis.schema.screening import Grade, Ruling, Sufficiency, Thresholds, VoteTally
from masis.schema.wording import count_noun
from masis.screening.grading import rubric
from masis.screening.grading.recommendation import NO_STUDY
from masis.settings import Settings

_SAME = 1e-9
"""What is equal on paper is equal here: 3 of 5 is 60%, whatever binary fractions make of it."""


def thresholds_of(settings: Settings) -> Thresholds:
    """Return the thresholds these settings ask for, before any memory.

    The requirement falls with what was retrieved: a round of a smaller page than ``rubric.PAGE``
    counts in proportion, so that small pages, which make more rounds of the same evidence, are no
    more lenient.
    """
    first, step = settings.screening_required_first, settings.screening_required_step
    least, required = settings.screening_required_least, [first]
    pace = min(1.0, settings.screening_retrieve / rubric.PAGE)
    while (
        required[-1] > least + _SAME and step > 0 and len(required) < settings.screening_max_rounds
    ):
        fallen = int(len(required) * pace + _SAME)
        required.append(round(max(least, first - step * fallen), 6))
    return Thresholds(
        least_studies=settings.screening_least_studies,
        required_average=tuple(required),
        keep_share=settings.screening_keep_share,
        discard_share=settings.screening_discard_share,
    )


DEFAULT = Thresholds(
    required_average=rubric.REQUIRED_AVERAGE,
    keep_share=rubric.KEEP_SHARE,
    discard_share=rubric.DISCARD_SHARE,
)
"""The thresholds of the rubric."""


def tally(grades: Iterable[Grade]) -> VoteTally:
    """Return the votes: one an abstract; an unscored one asks for more."""
    votes = tuple(grades)
    return VoteTally(
        keep=sum(grade.recommendation == "keep" for grade in votes),
        discard=sum(grade.recommendation == "discard" for grade in votes),
        needs_more=sum(grade.recommendation == "needs_more" for grade in votes),
        unscored=sum(grade.unscored is not None for grade in votes),
    )


def consensus(votes: VoteTally, thresholds: Thresholds = DEFAULT) -> Sufficiency:
    """Return the consensus: half or more ``discard`` retrieves more; else three fifths or more
    ``keep`` suffice; anything mixed doesn't.
    """
    if not votes.votes or votes.discard >= thresholds.discard_share * votes.votes - _SAME:
        return "retrieve_more"
    return (
        "sufficient"
        if votes.keep >= thresholds.keep_share * votes.votes - _SAME
        else "retrieve_more"
    )


def votes_on(grade: Grade) -> bool:
    """Return whether a grade votes: its abstract is relevant to the question, or a person has
    decided on it.

    What a search returned beside the relevant abstracts says nothing about the evidence, so the
    ruling must not depend on how many of them a page holds; what is retracted, a notice, a comment
    or a protocol doesn't vote either. A grader that failed leaves the relevance unscored and asks
    for more; another language leaves it open (rule ``unmatched``) and doesn't vote.
    """
    if grade.rule == "person":
        return True
    if grade.design in NO_STUDY or grade.rule == "of_concern":
        return False
    if grade.relevance_score is None:
        return grade.rule != "unmatched"
    return grade.relevance_score >= rubric.KEEP_RELEVANCE - _SAME


def average_quality(grades: Iterable[Grade]) -> float | None:
    """Return the mean quality of the kept abstracts; None where none is kept or none of the kept
    has a quality.

    One that a person keeps though it has no score has no quality to average.
    """
    qualities = [
        grade.quality
        for grade in grades
        if grade.recommendation == "keep" and grade.quality is not None
    ]
    return fmean(qualities) if qualities else None


def make_ruling(
    votes: VoteTally,
    average: float | None,
    number: int,
    thresholds: Thresholds = DEFAULT,
    *,
    studies: int | None = None,
    enough_alone: bool = False,
) -> Ruling:
    """Return the ruling on votes and on the average of what is kept; ``number`` counts rounds from
    0.

    ``studies`` is the number of independent studies kept, the abstracts kept unless given;
    ``enough_alone`` whether one of them needs no other beside it.
    """
    required = thresholds.average_required_in(number)
    agreed = consensus(votes, thresholds)
    studies = votes.keep if studies is None else studies
    too_few = studies < thresholds.least_studies and not enough_alone
    reached = votes.keep > 0 and average is not None and average >= required - _SAME
    quality = "nothing is kept, and without a kept abstract nothing is sufficient"
    if votes.keep:
        quality = "what is kept carries no score to average"
        if average is not None:
            held = "reaches" if reached else "is under"
            quality = f"the kept average {average:.3f} {held} the required {required:.2f}"
        quality += f"; {_least(studies, enough_alone, thresholds.least_studies)}"
    return Ruling(
        required_average=required,
        average=average,
        tally=votes,
        consensus=agreed,
        decision=(
            "sufficient" if agreed == "sufficient" and reached and not too_few else "retrieve_more"
        ),
        why=_ruling_reason(votes, agreed, quality, thresholds),
        studies=studies,
        enough_alone=enough_alone,
        too_few=too_few,
    )


def independent_studies(grades: Iterable[Grade]) -> tuple[int, bool]:
    """Return how many independent studies are kept, and whether one of them is enough alone.

    Reports that state one number of a trial registry are one study. A systematic review or
    meta-analysis is enough alone, and so is a randomised trial of ``rubric.LARGE_TRIAL``
    participants.
    """
    groups: list[set[str]] = []
    alone = False
    for grade in grades:
        if grade.recommendation != "keep":
            continue
        mine = set(grade.registrations) or {f"record {grade.abstract_id}"}
        shared = [group for group in groups if group & mine]
        groups = [group for group in groups if not group & mine] + [mine.union(*shared)]
        size = (
            0
            if grade.study_size is None or grade.study_size.kind == "of"
            else grade.study_size.value
        )
        large = grade.design == "randomised_trial" and size >= rubric.LARGE_TRIAL
        alone = alone or large or grade.design in ("meta_analysis", "systematic_review")
    return len(groups), alone


def ruling(number: int, grades: Iterable[Grade], thresholds: Thresholds = DEFAULT) -> Ruling:
    """Return the ruling on a round from the grades of all that was found so far: only relevant
    abstracts vote.
    """
    found = tuple(grades)
    votes = tuple(grade for grade in found if votes_on(grade))
    voted = tally(votes).model_copy(update={"not_relevant": len(found) - len(votes)})
    studies, alone = independent_studies(votes)
    return make_ruling(
        voted, average_quality(votes), number, thresholds, studies=studies, enough_alone=alone
    )


def _ruling_reason(
    votes: VoteTally, agreed: Sufficiency, quality: str, thresholds: Thresholds
) -> str:
    """Say how the votes fell and what follows; ``quality`` says how good and how many
    the kept are.
    """
    if not votes.votes:
        found = (
            f"Of {votes.not_relevant} found, none is"
            if votes.not_relevant
            else "Nothing was found, nothing is"
        )
        return f"{found} relevant to the question, so there is nothing to agree on."
    shares = (
        f"{votes.keep} of {votes.votes} keep ({votes.keep / votes.votes:.0%}), {votes.discard}"
        f" discard ({votes.discard / votes.votes:.0%}), {votes.needs_more} ask for more"
    )
    verdict = "mixed signals: retrieve more"
    if agreed == "sufficient":
        verdict = f"at least {thresholds.keep_share:.0%} keep: they agree"
    elif votes.discard >= thresholds.discard_share * votes.votes - _SAME:
        verdict = f"at least {thresholds.discard_share:.0%} discard: retrieve more"
    others = count_noun(votes.not_relevant, "other abstract is", "other abstracts are")
    aside = (
        f" {others} not shown to be about the question, without a vote."
        if votes.not_relevant
        else ""
    )
    return f"{shares}; {verdict}; {quality}.{aside}"


def _least(studies: int, enough_alone: bool, least: int) -> str:
    """Say how many independent studies are kept, and whether they are as many as a
    verdict needs.
    """
    kept = count_noun(studies, "independent study", "independent studies")
    large = f"a trial of {rubric.LARGE_TRIAL} or more"
    if studies >= least:
        return f"{kept} kept, at least {least} required"
    if enough_alone:
        return f"{kept} kept, a systematic review or {large} among them: enough alone"
    return f"too few: {kept} kept, {least} required, or one systematic review or {large}"


def relevant_words(grades: Iterable[Grade]) -> str:
    """Say how all relevant abstracts of a screening were graded, whichever round brought them."""
    screened = tuple(grades)
    votes = tally(grade for grade in screened if votes_on(grade))
    if not votes.votes:
        return f"Of {len(screened)} screened in all, none is relevant."
    return (
        f"Of {len(screened)} screened in all, {votes.votes} are relevant: {votes.keep} kept, "
        f"{votes.discard} discarded, {votes.needs_more} ask for more."
    )
