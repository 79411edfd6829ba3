"""The ruling on a round from its votes: consensus, average and decision, as pure functions.

Required averages follow AESOP-DECAY, consensus AESOP-CONSENSUS. Both the consensus and the average must hold to stop,
and without a kept abstract nothing is sufficient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from masis.schema.screening import Grade, Ruling, Sufficiency, Tally, Thresholds
from masis.screening.grading import rubric
from masis.settings import Settings

_SAME = 1e-9
"""What is equal on paper is equal here: 3 of 5 is 60%, whatever binary fractions make of it."""


def thresholds_of(settings: Settings) -> Thresholds:
    """Return the thresholds these settings ask for, before any memory."""
    first, step, least = (
        settings.screening_required_first,
        settings.screening_required_step,
        settings.screening_required_least,
    )
    required = [first]
    while required[-1] > least + _SAME and step > 0 and len(required) < settings.screening_max_rounds:
        required.append(round(max(least, first - step * len(required)), 6))
    return Thresholds(
        required_average=tuple(required),
        keep_share=settings.screening_keep_share,
        discard_share=settings.screening_discard_share,
    )


DEFAULT = Thresholds(
    required_average=rubric.REQUIRED_AVERAGE, keep_share=rubric.KEEP_SHARE, discard_share=rubric.DISCARD_SHARE
)
"""The thresholds of the rubric."""


def tally(grades: Iterable[Grade]) -> Tally:
    """Return the votes: one an abstract; an unscored one asks for more."""
    votes = tuple(grades)
    return Tally(
        keep=sum(grade.recommendation == "keep" for grade in votes),
        discard=sum(grade.recommendation == "discard" for grade in votes),
        needs_more=sum(grade.recommendation == "needs_more" for grade in votes),
        unscored=sum(grade.unscored is not None for grade in votes),
    )


def consensus(votes: Tally, thresholds: Thresholds = DEFAULT) -> Sufficiency:
    """Return the consensus: half or more ``discard`` retrieves more; else three fifths or more ``keep`` suffice;
    anything mixed doesn't.
    """
    if not votes.votes or votes.discard >= thresholds.discard_share * votes.votes - _SAME:
        return "retrieve_more"
    return "sufficient" if votes.keep >= thresholds.keep_share * votes.votes - _SAME else "retrieve_more"


def votes_on(grade: Grade) -> bool:
    """Return whether a grade votes: its abstract is relevant to the question, or a person has decided on it.

    What a search returned beside the relevant abstracts says nothing about the evidence, so the ruling must not depend
    on how many of them a page holds. A grader that failed leaves the relevance unscored and asks for more; another
    language leaves it open (rule ``unmatched``) and doesn't vote.
    """
    if grade.rule == "person":
        return True
    if grade.relevance_score is None:
        return grade.rule != "unmatched"
    return grade.relevance_score >= rubric.KEEP_RELEVANCE - _SAME


def average_quality(grades: Iterable[Grade]) -> float | None:
    """Return the mean quality of the kept abstracts; None where none is kept or none of the kept has a quality.

    One that a person keeps though it has no score has no quality to average.
    """
    qualities = [grade.quality for grade in grades if grade.recommendation == "keep" and grade.quality is not None]
    return fmean(qualities) if qualities else None


def decided(votes: Tally, average: float | None, number: int, thresholds: Thresholds = DEFAULT) -> Ruling:
    """Return the ruling on a round that voted so and whose kept abstracts average so; ``number`` counts from 0."""
    required = thresholds.required(number)
    agreed = consensus(votes, thresholds)
    reached = votes.keep > 0 and average is not None and average >= required - _SAME
    return Ruling(
        required_average=required,
        average=average,
        tally=votes,
        consensus=agreed,
        decision="sufficient" if agreed == "sufficient" and reached else "retrieve_more",
        why=_why(votes, average, required, agreed, thresholds),
    )


def judged(brought: Sequence[Grade], so_far: Sequence[Grade]) -> tuple[Grade, ...]:
    """Return the grades that a round is ruled on: of what it brought; where nothing of it is relevant, of all so far.

    A search that brings nothing relevant adds nothing and takes nothing away: the evidence found before it stands, and
    is held to what this round requires.
    """
    return tuple(brought) if any(votes_on(grade) for grade in brought) else tuple(so_far)


def ruling(number: int, grades: Iterable[Grade], thresholds: Thresholds = DEFAULT) -> Ruling:
    """Return the ruling on a round from the grades of what its searches brought: only relevant abstracts vote."""
    brought = tuple(grades)
    votes = tuple(grade for grade in brought if votes_on(grade))
    counted = tally(votes).model_copy(update={"not_relevant": len(brought) - len(votes)})
    return decided(counted, average_quality(votes), number, thresholds)


def _why(votes: Tally, average: float | None, required: float, agreed: Sufficiency, thresholds: Thresholds) -> str:
    aside = f" {votes.not_relevant} others are not shown to be about the question and don't vote."
    if not votes.votes:
        found = f"Of {votes.not_relevant} found, none is" if votes.not_relevant else "Nothing was found, nothing is"
        return f"{found} relevant to the question, so there is nothing to agree on."
    shares = (
        f"{votes.keep} of {votes.votes} keep ({_percent(votes.keep, votes.votes)}), "
        f"{votes.discard} discard ({_percent(votes.discard, votes.votes)}), {votes.needs_more} ask for more"
    )
    if agreed == "sufficient":
        verdict = f"at least {thresholds.keep_share:.0%} keep: they agree"
    elif votes.discard >= thresholds.discard_share * votes.votes - _SAME:
        verdict = f"at least {thresholds.discard_share:.0%} discard: retrieve more"
    else:
        verdict = "mixed signals: retrieve more"
    if not votes.keep:
        quality = "nothing is kept, and without a kept abstract nothing is sufficient"
    elif average is None:
        quality = "what is kept carries no score to average"
    else:
        reached = "reaches" if average >= required - _SAME else "is under"
        quality = f"the kept average {average:.3f} {reached} the required {required:.2f}"
    return f"{shares}; {verdict}; {quality}.{aside if votes.not_relevant else ''}"


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


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.0%}"
