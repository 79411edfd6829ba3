"""Decides from the votes of a round whether the evidence is sufficient, as pure functions.

Required averages follow AESOP-DECAY, consensus AESOP-CONSENSUS. Both must hold to stop. In addition
to the specification, the kept abstracts must report at least ``screening_least_studies``
independent studies, or one that is enough alone.

Further evidence that agrees never lowers a verdict. The specification averages and counts over all
abstracts, so that small trials beside large ones would outvote them. Here, if the best kept
abstracts suffice by themselves, the other kept ones don't lower their average, and studies that
can't conclude alone (too small, a weak design) don't vote against them.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from masis.schema.screening import Grade, Rule, Ruling, Sufficiency, Thresholds, VoteTally
from masis.schema.wording import count_noun
from masis.screening.grading import rubric
from masis.screening.grading.recommendation import NO_STUDY
from masis.screening.grading.study_identity import reports_by_study
from masis.settings import Settings

# Tolerance of comparisons: as floats, 0.56 * 25 is 14.000000000000002, but 14 of 25 is 56%.
_TOLERANCE = 1e-9


def thresholds_of(settings: Settings) -> Thresholds:
    """Return the thresholds of these settings, before memory.

    The requirement falls with the number of abstracts retrieved. If a page is smaller than
    ``rubric.PAGE``, a round lowers it in proportion, so that the same evidence in more rounds isn't
    judged more leniently.
    """
    first, step = settings.screening_required_first, settings.screening_required_step
    minimum, averages = settings.screening_required_least, [first]
    pace = min(1.0, settings.screening_retrieve / rubric.PAGE)
    # The last value holds for all later rounds, so the list ends at the minimum.
    while (
        averages[-1] > minimum + _TOLERANCE
        and step > 0
        and len(averages) < settings.screening_max_rounds
    ):
        steps = int(len(averages) * pace + _TOLERANCE)
        averages.append(round(max(minimum, first - step * steps), 6))
    return Thresholds(
        least_studies=settings.screening_least_studies,
        required_average=tuple(averages),
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
    """Count the votes, one per abstract. An unscored abstract has ``needs_more`` as its vote."""
    votes = tuple(grades)
    return VoteTally(
        keep=sum(grade.recommendation == "keep" for grade in votes),
        discard=sum(grade.recommendation == "discard" for grade in votes),
        needs_more=sum(grade.recommendation == "needs_more" for grade in votes),
        unscored=sum(grade.unscored is not None for grade in votes),
    )


def consensus(votes: VoteTally, thresholds: Thresholds = DEFAULT) -> Sufficiency:
    """Return the consensus of the votes (AESOP-CONSENSUS).

    If half or more are ``discard``, more is retrieved. Otherwise three fifths or more ``keep`` are
    sufficient. With any other mix, more is retrieved.
    """
    if not votes.votes or votes.discard >= thresholds.discard_share * votes.votes - _TOLERANCE:
        return "retrieve_more"
    return (
        "sufficient"
        if votes.keep >= thresholds.keep_share * votes.votes - _TOLERANCE
        else "retrieve_more"
    )


# The rules of relevant studies that can't conclude alone. They say nothing against those that can.
_LIMITED_RULES: frozenset[Rule] = frozenset(
    {"underpowered", "weak_design", "unknown_design", "borderline_method", "borderline_quality"}
)


def votes_on(grade: Grade) -> bool:
    """Return whether a grade votes: its abstract is relevant, and nobody has excluded it.

    Irrelevant search results say nothing about the evidence, so the ruling must not depend on how
    many of them a page has. The same holds for abstracts that a person discards: a review that
    excludes most records isn't short of evidence. Retracted studies, notices, comments and
    protocols don't vote either. If the grader failed, the relevance is unscored, and the vote is
    ``needs_more``. An abstract in another language (rule ``unmatched``) doesn't vote.
    """
    if grade.rule == "person":
        return grade.recommendation != "discard"
    return _is_relevant_study(grade)


def _is_relevant_study(grade: Grade) -> bool:
    if grade.design in NO_STUDY or grade.rule == "of_concern":
        return False
    if grade.relevance_score is None:
        return grade.rule != "unmatched"
    return grade.relevance_score >= rubric.KEEP_RELEVANCE - _TOLERANCE


def is_limited(grade: Grade) -> bool:
    """Return whether a study can't conclude alone: too small, or of a weak or unknown design.

    A study whose method is too weak to use is discarded, and the specification counts discards.
    """
    return grade.rule in _LIMITED_RULES


def average_quality(grades: Iterable[Grade]) -> float | None:
    """Return the mean quality of the kept abstracts; None if none of them has a quality.

    An unscored abstract that a person keeps has no quality and isn't part of the mean.
    """
    qualities = [
        grade.quality
        for grade in grades
        if grade.recommendation == "keep" and grade.quality is not None
    ]
    return fmean(qualities) if qualities else None


def best_average(grades: Iterable[Grade], thresholds: Thresholds = DEFAULT) -> float | None:
    """Return the average quality of the best kept studies that suffice by themselves.

    They are the least number of independent studies, or one that is enough alone. Of several
    reports of a study the best counts. None if too few are kept. Weaker kept studies can't lower
    this average, unlike the average of all.
    """
    kept = [grade for grade in grades if grade.recommendation == "keep"]
    studies = reports_by_study(kept)
    averages = [
        grade.quality for grade in kept if grade.quality is not None and _is_enough_alone(grade)
    ]
    if len(studies) >= thresholds.least_studies:
        best_reports = [
            max(report.quality for report in reports if report.quality is not None)
            for reports in studies
            if any(report.quality is not None for report in reports)
        ]
        # A study that a person keeps without a score counts as a study, but not in the mean.
        scored = max(1, thresholds.least_studies - (len(studies) - len(best_reports)))
        averages += [fmean(sorted(best_reports)[-scored:])] if best_reports else []
    return max(averages, default=None)


def make_ruling(
    votes: VoteTally,
    average: float | None,
    number: int,
    thresholds: Thresholds = DEFAULT,
    *,
    studies: int | None = None,
    enough_alone: bool = False,
    best: float | None = None,
) -> Ruling:
    """Return the ruling on the votes of a round and the average quality of the kept abstracts.

    ``number`` counts rounds from 0. ``studies`` is the number of independent studies that are kept,
    by default the number of abstracts. ``enough_alone`` says whether one of them is sufficient
    evidence without others. ``best`` is the average of the best ones that suffice by themselves.
    """
    required = thresholds.average_required_in(number)
    votes_consensus = consensus(votes, thresholds)
    studies = votes.keep if studies is None else studies
    too_few = studies < thresholds.least_studies and not enough_alone
    # The average of all kept abstracts, as in the specification, unless weaker ones lower it.
    decisive = average
    if average is not None and average < required - _TOLERANCE:
        decisive = max(average, best or 0.0)
    reaches_average = votes.keep > 0 and decisive is not None and decisive >= required - _TOLERANCE
    quality = "no abstract is kept, so the evidence can't be sufficient"
    if votes.keep:
        quality = "the kept abstracts have no scores to average"
        if average is not None and decisive is not None:
            comparison = "reaches" if reaches_average else "is under"
            shown, name = average, "kept average"
            if reaches_average and decisive > average:
                shown, name = decisive, "average of the best kept studies"
            quality = f"the {name} {shown:.3f} {comparison} the required {required:.2f}"
        quality += f"; {_study_count_text(studies, enough_alone, thresholds.least_studies)}"
    return Ruling(
        required_average=required,
        average=average,
        best_average=best,
        tally=votes,
        consensus=votes_consensus,
        decision=(
            "sufficient"
            if votes_consensus == "sufficient" and reaches_average and not too_few
            else "retrieve_more"
        ),
        why=_ruling_reason(votes, votes_consensus, quality, thresholds),
        studies=studies,
        enough_alone=enough_alone,
        too_few=too_few,
    )


def independent_studies(grades: Iterable[Grade]) -> tuple[int, bool]:
    """Return how many independent studies are kept, and whether one of them is enough alone.

    Reports that share a mark of a study (``study_identity``) are one study. A systematic review or
    meta-analysis is enough alone, and so is a randomized trial of ``rubric.LARGE_TRIAL``
    participants.
    """
    kept = [grade for grade in grades if grade.recommendation == "keep"]
    return len(reports_by_study(kept)), any(map(_is_enough_alone, kept))


def _is_enough_alone(grade: Grade) -> bool:
    size = (
        0 if grade.study_size is None or grade.study_size.kind == "of" else grade.study_size.value
    )
    is_large_trial = grade.design == "randomised_trial" and size >= rubric.LARGE_TRIAL
    return is_large_trial or grade.design in ("meta_analysis", "systematic_review")


def ruling(number: int, grades: Iterable[Grade], thresholds: Thresholds = DEFAULT) -> Ruling:
    """Return the ruling on a round from the grades of all abstracts found so far.

    Only the relevant ones vote (``votes_on``). Beside enough kept studies, those that can't
    conclude alone don't vote either (``is_limited``).
    """
    all_grades = tuple(grades)
    voting = tuple(grade for grade in all_grades if votes_on(grade))
    studies, enough_alone = independent_studies(voting)
    is_enough = studies >= thresholds.least_studies or enough_alone
    counted = tuple(grade for grade in voting if not (is_enough and is_limited(grade)))
    excluded = sum(
        grade.rule == "person" and grade.recommendation == "discard" for grade in all_grades
    )
    vote_tally = tally(counted).model_copy(
        update={
            "not_relevant": len(all_grades) - len(voting) - excluded,
            "excluded": excluded,
            "limited": len(voting) - len(counted),
        }
    )
    return make_ruling(
        vote_tally,
        average_quality(counted),
        number,
        thresholds,
        studies=studies,
        enough_alone=enough_alone,
        best=best_average(counted, thresholds),
    )


def _ruling_reason(
    votes: VoteTally, votes_consensus: Sufficiency, quality: str, thresholds: Thresholds
) -> str:
    """Return the votes and the decision as a sentence; ``quality`` is its part on the kept ones."""
    if not votes.votes:
        opening = (
            f"Of {count_noun(votes.not_relevant, 'abstract')} found, none is relevant to the"
            " question"
            if votes.not_relevant
            else "Nothing was found"
        )
        return f"{opening}, so there is nothing to agree on."
    shares = (
        f"{votes.keep} of {votes.votes} keep ({votes.keep / votes.votes:.0%}), {votes.discard}"
        f" discard ({votes.discard / votes.votes:.0%}), {votes.needs_more} need more"
    )
    verdict = "mixed signals: retrieve more"
    if votes_consensus == "sufficient":
        verdict = f"at least {thresholds.keep_share:.0%} keep: they agree"
    elif votes.discard >= thresholds.discard_share * votes.votes - _TOLERANCE:
        verdict = f"at least {thresholds.discard_share:.0%} discard: retrieve more"
    causes = (
        (votes.not_relevant, "because they aren't shown to be about the question"),
        (votes.excluded, "because a person excluded them"),
        (votes.limited, "because too small or weak a study says nothing against enough others"),
    )
    notes = "".join(
        f" {count_noun(count, 'other abstract has', 'other abstracts have')} no vote, {cause}."
        for count, cause in causes
        if count
    )
    return f"{shares}; {verdict}; {quality}.{notes}"


def _study_count_text(studies: int, enough_alone: bool, minimum: int) -> str:
    """Return the number of independent studies kept, next to the required one, as text."""
    kept = count_noun(studies, "independent study", "independent studies")
    large_trial = f"a trial of {rubric.LARGE_TRIAL} or more"
    if studies >= minimum:
        return f"{kept} kept, at least {minimum} required"
    if enough_alone:
        return f"{kept} kept, a systematic review or {large_trial} among them: enough alone"
    return f"too few: {kept} kept, {minimum} required, or one systematic review or {large_trial}"


def relevant_words(grades: Iterable[Grade]) -> str:
    """Return the number of relevant abstracts in all rounds and their recommendations as text."""
    screened = tuple(grades)
    votes = tally(
        grade for grade in screened if grade.rule == "person" or _is_relevant_study(grade)
    )
    if not votes.votes:
        return f"Of {count_noun(len(screened), 'screened abstract')}, none is relevant."
    return (
        f"Of {count_noun(len(screened), 'screened abstract')}, {votes.votes} are relevant:"
        f" {votes.keep} kept, "
        f"{votes.discard} discarded, {votes.needs_more} need more evidence."
    )
