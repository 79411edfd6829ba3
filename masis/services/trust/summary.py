"""The short answers of the Trust page and ``masis trust``: whether the audit is reliable."""

from __future__ import annotations

from masis.schema.wording import count_noun
from masis.services.trust.guarantees import GuaranteeWatch
from masis.services.trust.service import MachineReport, MissReport
from masis.trust.agreement import AgreementEstimate
from masis.trust.guarantee import draws_needed
from masis.trust.machine import AUDIT_VERDICTS
from masis.views.numbers import percent


def simulated_text(simulated: int, answers: int) -> str:
    """Say how many of the compared answers the demo's simulated reviewers decided; "" if none."""
    people = answers - simulated
    if not simulated:
        return ""
    if not people:
        return (
            f"These figures are based on {count_noun(simulated, 'answer')} whose decisions the demo"
            " simulated. They show how the page works, not how reliable the audit is."
        )
    return (
        f"The demo simulated the decisions on {simulated:,} of the {answers:,} answers"
        f" behind these figures; people decided {people:,}. Only the people's decisions show how"
        " reliable the audit is."
    )


def _judges(report: MachineReport) -> str:
    if not report.simulated:
        return "people"
    if report.simulated == len(report.rows):
        return "simulated reviewers"
    return "people and simulated reviewers"


def agreement_base_text(decisions: int, simulated: int) -> str:
    """Return a sentence about the decisions that the agreement of reviewers rests on."""
    people = decisions - simulated
    of_demo = (
        f" The demo simulated {simulated:,} of them; people made {people:,}." if simulated else ""
    )
    return (
        f"Based on {count_noun(decisions, 'decision')} of single reviewers, before any"
        f" adjudication.{of_demo}"
    )


def figure_text(estimate: AgreementEstimate, *, share: bool = True, brief: bool = False) -> str:
    """Return a figure with its base and interval: "50% (2 of 4; 95% interval 6.8% to 93%)".

    ``brief`` leaves out the words "95% interval", for a table that says so once.
    """
    if estimate.value is None:
        return estimate.why or "undefined"
    write = percent if share else "{:.2f}".format
    n = f"{estimate.n:,}"
    base = f"{round(estimate.value * estimate.n):,} of {n}" if share else f"n = {n}"
    if estimate.low is None or estimate.high is None:
        return f"{write(estimate.value)} ({base}; {estimate.why})"
    return (
        f"{write(estimate.value)} ({base}; {'' if brief else '95% interval '}{write(estimate.low)}"
        f" to {write(estimate.high)})"
    )


IN_VIEW = (
    "Reviewers who saw the audit's verdict tend to agree with it, so these figures are optimistic."
)
UPHELD = (
    "Upheld: the share of settled cases with several reviewers that ended with this person's"
    " verdict. With their correction: the share of these that also ended with this person's answer,"
    " corrected or approved. A rejection leaves no answer."
)
TOO_WIDE = 0.3
"""The minimum width of an interval for its share to be called too uncertain.

At this width, an interval can include both "mostly right" and "right half of the time".
"""
_STRENGTHS = (
    (0.0, "no"),
    (0.2, "slight"),
    (0.4, "fair"),
    (0.6, "moderate"),
    (0.8, "substantial"),
    (1.01, "almost full"),
)
"""Agreement beyond chance in words, each up to its bound: the scale of Landis and Koch (1977)."""


def interval_text(estimate: AgreementEstimate) -> str:
    """Return a warning if a share is based on too few cases, or "" if it is based on enough."""
    if (
        estimate.value is None
        or estimate.low is None
        or estimate.high is None
        or estimate.high - estimate.low <= TOO_WIDE
    ):
        return ""
    return (
        f"{estimate.n:,} {'is' if estimate.n == 1 else 'are'} too few to tell. The true share may"
        f" be anything from {percent(estimate.low)} to {percent(estimate.high)}."
    )


def _strength(value: float) -> str:
    return next(word for bound, word in _STRENGTHS if value <= bound)


def agreement_text(estimate: AgreementEstimate) -> str:
    """Describe how strong an agreement beyond chance is, if there are enough cases to tell."""
    if estimate.value is None:
        if estimate.n:
            return f"agreement beyond chance {estimate.why}"
        return estimate.why or "undefined"
    if estimate.low is None or estimate.high is None:
        cases = count_noun(estimate.n, "case")
        return f"{cases}, too few to tell how strong the agreement beyond chance is"
    text = f"{_strength(estimate.value)} agreement beyond chance"
    low, high = _strength(estimate.low), _strength(estimate.high)
    return text if low == high else f"{text}; it may be {low} to {high}"


def short_answers(
    report: MachineReport, missed: MissReport, watch: GuaranteeWatch | None
) -> dict[str, str]:
    """Return a stakeholder's questions with short answers."""
    return {
        "Can answers be accepted without a person?": _auto_accept_summary(missed, watch),
        "How often is the audit right?": agreement_summary(report),
        "What are these figures based on?": _provenance_summary(report, watch),
        "What should you do next?": _next_step(report, missed, watch),
    }


def _auto_accept_summary(missed: MissReport, watch: GuaranteeWatch | None) -> str:
    passed = (
        "Of the answers that were accepted without a person, spot checks found"
        f" {_share_text(missed.total)} faulty."
    )
    if missed.total.value is None:
        drawn = (
            f"none of the {len(missed.open):,} spot checks has been decided"
            if missed.open
            else "no spot checks have been drawn"
        )
        passed = f"It's also unknown how many faulty answers are accepted, because {drawn}."
    if watch is None:
        return f"No, there is no evidence for that yet. {passed}"
    applied = watch.guarantee
    promise = (
        f"at most {applied.tolerance:.1%} of the answers accepted by guarantee {applied.plan} are"
        f" faulty, with {applied.certainty:.0%} confidence"
    )
    if watch.lapsed:
        return f"No longer. The guarantee ({promise}) has lapsed because {watch.lapsed}. {passed}"
    later = (
        f" Spot checks since: {watch.faulty} of {watch.checked} faulty." if watch.checked else ""
    )
    return (
        f"Yes, within limits: {promise}. This is based on"
        f" {count_noun(applied.decisions, 'blind decision')}, {applied.faulty} of them"
        f" faulty.{later}"
    )


def _share_text(estimate: AgreementEstimate) -> str:
    """Return a share in plain words: "2 of 4 (the true share may be anything from 7% to 93%)"."""
    if estimate.value is None:
        return estimate.why
    text = f"{round(estimate.value * estimate.n):,} of {estimate.n:,}"
    if estimate.low is None or estimate.high is None:
        return text
    return (
        f"{text} (the true share may be anything from {percent(estimate.low)} to"
        f" {percent(estimate.high)})"
    )


def agreement_summary(report: MachineReport) -> str:
    """Describe how often the audit is right, measured on blind decisions."""
    answers = report.answers
    judges = _judges(report)
    if not answers.n:
        return (
            "Unknown so far. Answers have to be decided by reviewers who haven't seen the audit's"
            " verdict."
        )
    if answers.precision.value is None:
        return (
            f"It flagged none of the {answers.n:,} answers that {judges} judged;"
            f" {_share_text(answers.faulty)} are faulty."
        )
    worse = ""
    if (
        answers.constant is not None
        and answers.accuracy.value is not None
        and answers.accuracy.value < answers.constant
    ):
        always = "faulty" if (answers.faulty.value or 0) >= 0.5 else "right"
        agreed = f"{round(answers.accuracy.value * answers.n):,} of {answers.n:,}"
        worse = (
            f" It agrees with {judges} on {agreed} answers. Calling every answer {always} would"
            f" agree on {round(answers.constant * answers.n):,}."
        )
    right = (
        f"Of the answers that it flagged, {judges} found {_share_text(answers.precision)} faulty."
    )
    if answers.recall.value is None:
        return (
            f"{right} Only flagged answers were checked, so it's unknown how many faulty ones it"
            " misses."
        )
    faulty = {name: count for name, (count, _) in answers.confusion.items()}
    flagged, unconfirmed, passed = (faulty.get(name, 0) for name in AUDIT_VERDICTS)
    faults = count_noun(flagged + unconfirmed + passed, "faulty answer")
    return (
        f"{right} Of {faults} it flagged {flagged:,}, left {unconfirmed:,} unconfirmed for a"
        f" person, and found nothing in {passed:,}.{worse}"
    )


def _provenance_summary(report: MachineReport, watch: GuaranteeWatch | None) -> str:
    parts = []
    if watch is not None:
        parts.append(f"The guarantee was applied by {watch.by} on {watch.at[:10]}.")
    if len(report.rows):
        days = sorted(report.rows["at"].astype(str).str.slice(0, 10))
        when = f"on {days[0]}" if days[0] == days[-1] else f"from {days[0]} to {days[-1]}"
        # The number of people is unknown here: a settled answer is one row, which names only the
        # last person who decided it.
        by = _judges(report) if "reviewer" in report.rows else "labels"
        parts.append(
            f"These figures are based on {count_noun(report.answers.n, 'answer')} settled by {by}"
            f" {when}."
        )
    elif report.seen is not None and report.seen.n:
        parts.append(
            "There are no blind decisions yet."
            f" {count_noun(report.seen.n, 'answer')} so far decided with the verdict visible."
        )
    return " ".join(parts) or "There are no decisions yet."


def _next_step(report: MachineReport, missed: MissReport, watch: GuaranteeWatch | None) -> str:
    """Return the open steps that would reveal the most, as text."""
    if missed.open:
        checks = count_noun(len(missed.open), "open spot check")
        return f"Decide the {checks} (see “Missed errors”)."
    if watch is not None and not watch.lapsed:
        return "Decide spot checks as they are drawn. They show whether the guarantee still holds."
    needed = draws_needed(0.02, 0.05)
    steps = ["Keep a person on every answer."] if watch is None else []
    if not report.answers.n:
        steps.append(
            "Hide issues until a reviewer has decided (Team, Policy). Only blind decisions count."
        )
    if missed.drawable < needed:
        missing = missing_answers_text(missed.drawable, needed)
        steps.append(f"Audit more answers for a random sample: {missing}.")
    steps.append(
        f"Draw {needed} at random for blind decisions (Guarantee). If none of them is faulty, at"
        " most 2% of the accepted answers are faulty, with 95% confidence."
    )
    return "\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1))


def missing_answers_text(pool: int, needed: int) -> str:
    """Say how many undecided answers there are, and how many are missing."""
    return f"{pool:,} undecided answers can be drawn, {needed - pool:,} more are needed"
