"""What the page and the command say first: may the audit be relied on, how far, and since when."""

from __future__ import annotations

from masis.schema.wording import count_noun
from masis.services.trust.guarantees import GuaranteeWatch
from masis.services.trust.service import MachineReport, MissReport
from masis.trust.agreement import AgreementEstimate
from masis.trust.guarantee import draws_needed
from masis.trust.machine import AUDIT_VERDICTS
from masis.views.numbers import percent

SIMULATED = (
    "These figures rest on {} that the demo simulated. They show what the page can say; they say"
    " nothing about the audit."
)


def figure_text(found: AgreementEstimate, *, share: bool = True, brief: bool = False) -> str:
    """Return a figure with what it rests on and its interval: "50% (2 of 4; 95% interval 6.8% to
    93%)".

    ``brief`` leaves out the words "95% interval", for a table that says so once.
    """
    if found.value is None:
        return found.why or "undefined"
    write = percent if share else "{:.2f}".format
    rests = f"{round(found.value * found.n):,} of {found.n:,}" if share else f"n = {found.n:,}"
    if found.low is None or found.high is None:
        return f"{write(found.value)} ({rests}; {found.why})"
    return (
        f"{write(found.value)} ({rests}; {'' if brief else '95% interval '}{write(found.low)} to"
        f" {write(found.high)})"
    )


IN_VIEW = "Who sees a verdict agrees with it more often: these figures flatter the audit."
UPHELD = (
    "Upheld: how many of a person's verdicts stand, of the settled cases that several decided. With"
    " their correction: how many of these also gave the answer that stands, corrected or approved;"
    " a rejection gives none."
)
TOO_WIDE = 0.3
"""Width of an interval from which on a figure says little: it can't tell mostly right from half
right.
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


def interval_text(found: AgreementEstimate) -> str:
    """Say whether a share rests on enough to tell; "" where it does."""
    if (
        found.value is None
        or found.low is None
        or found.high is None
        or found.high - found.low <= TOO_WIDE
    ):
        return ""
    return (
        f"{found.n:,} are too few to tell: it may be anything from {percent(found.low)} to"
        f" {percent(found.high)}."
    )


def _strength(value: float) -> str:
    return next(word for bound, word in _STRENGTHS if value <= bound)


def agreement_text(found: AgreementEstimate) -> str:
    """Say how strong an agreement beyond chance is, where it rests on enough cases to tell."""
    if found.value is None:
        return f"agreement beyond chance {found.why}" if found.n else found.why or "undefined"
    if found.low is None or found.high is None:
        return (
            f"{count_noun(found.n, 'case')}: too few to tell how strong agreement beyond chance is"
        )
    text = f"{_strength(found.value)} agreement beyond chance"
    low, high = _strength(found.low), _strength(found.high)
    return text if low == high else f"{text}; it may be {low} to {high}"


def short_answers(
    report: MachineReport, missed: MissReport, watch: GuaranteeWatch | None
) -> dict[str, str]:
    """Return the questions that a stakeholder asks, each with its answer in a sentence or two."""
    return {
        "May answers pass without a person?": _auto_accept_summary(missed, watch),
        "How far is the audit right?": agreement_summary(report),
        "Since when, and by how many decisions?": _provenance_summary(report, watch),
        "What next?": _next_step(report, missed, watch),
    }


def _auto_accept_summary(missed: MissReport, watch: GuaranteeWatch | None) -> str:
    passed = (
        f"Of the answers that passed without a person, spot checks found {_share_text(missed.total)}"
        " faulty."
    )
    if missed.total.value is None:
        drawn = (
            f"none of the {len(missed.open):,} spot checks is decided"
            if missed.open
            else "no spot check was drawn"
        )
        passed = (
            f"What passes is not known to be right either: {drawn}, so nobody knows what is missed."
        )
    if watch is None:
        return f"No: nothing shows yet that they may. {passed}"
    applied = watch.guarantee
    promise = (
        f"at most {applied.tolerance:.1%} of the answers accepted by guarantee {applied.plan} are"
        f" faulty, with {applied.certainty:.0%} certainty"
    )
    if watch.lapsed:
        return f"No longer. The guarantee ({promise}) has lapsed: {watch.lapsed}. {passed}"
    later = (
        f" Spot checks since: {watch.faulty} of {watch.checked} faulty." if watch.checked else ""
    )
    return (
        f"Yes, within limits: {promise}. It rests on {count_noun(applied.decisions, 'blind decision')}"
        f" with {applied.faulty} faulty.{later}"
    )


def _share_text(found: AgreementEstimate) -> str:
    """Return a share in plain words: "2 of 4 (it could be anything from 7% to 93%)"."""
    if found.value is None:
        return found.why
    text = f"{round(found.value * found.n):,} of {found.n:,}"
    if found.low is None or found.high is None:
        return text
    return (
        f"{text} (the true share may be anything from {percent(found.low)} to"
        f" {percent(found.high)})"
    )


def agreement_summary(report: MachineReport) -> str:
    """Say how often the audit is right, by decisions made without its verdict in view."""
    found = report.answers
    who = "simulated reviewers" if report.simulated else "people"
    if not found.n:
        return (
            "Nobody knows yet: no answer was decided by a person who had not seen the audit's"
            " verdict."
        )
    if found.precision.value is None:
        return (
            f"It accused none of the {found.n:,} answers that {who} judged; {_share_text(found.faulty)} are"
            " faulty."
        )
    worse = ""
    if (
        found.constant is not None
        and found.accuracy.value is not None
        and found.accuracy.value < found.constant
    ):
        always = "faulty" if (found.faulty.value or 0) >= 0.5 else "right"
        worse = (
            f" It agrees with {who} on {round(found.accuracy.value * found.n):,} of {found.n:,};"
            f" calling every answer {always} would on {round(found.constant * found.n):,}."
        )
    right = (
        f"Of the answers of which it said that something is wrong, {who} found"
        f" {_share_text(found.precision)} faulty."
    )
    if found.recall.value is None:
        return (
            f"{right} Only such answers were checked, so nobody knows how many faulty ones it"
            " misses."
        )
    faulty = {name: count for name, (count, _) in found.confusion.items()}
    accused, unconfirmed, passed = (faulty.get(name, 0) for name in AUDIT_VERDICTS)
    faults = count_noun(accused + unconfirmed + passed, "faulty answer")
    return (
        f"{right} Of {faults} it accused {accused:,}, left {unconfirmed:,} unconfirmed for a"
        f" person, and found nothing in {passed:,}.{worse}"
    )


def _provenance_summary(report: MachineReport, watch: GuaranteeWatch | None) -> str:
    parts = []
    if watch is not None:
        parts.append(f"The guarantee was applied by {watch.by} on {watch.at[:10]}.")
    if len(report.rows):
        days = sorted(report.rows["at"].astype(str).str.slice(0, 10))
        when = f"on {days[0]}" if days[0] == days[-1] else f"from {days[0]} to {days[-1]}"
        # Not how many people: a settled answer is one row, with whoever decided last, not with all
        # who decided it.
        by = (
            ("simulated reviewers" if report.simulated else "people")
            if "reviewer" in report.rows
            else "labels"
        )
        parts.append(
            f"These figures rest on {count_noun(report.answers.n, 'answer')} settled by {by} {when}."
        )
    elif report.seen is not None and report.seen.n:
        parts.append(
            f"By none yet: {count_noun(report.seen.n, 'answer')} so far, decided with the verdict in"
            " view."
        )
    return " ".join(parts) or "There is no decision to date it by."


def _next_step(report: MachineReport, missed: MissReport, watch: GuaranteeWatch | None) -> str:
    """Return the step that would tell most, of those that are open."""
    if missed.open:
        return f"Decide the {count_noun(len(missed.open), 'spot check')} that wait (What passes unseen)."
    if watch is not None and not watch.lapsed:
        return "Decide spot checks as they are drawn: they watch the guarantee."
    needed = draws_needed(0.02, 0.05)
    steps = ["Keep a person on every answer."] if watch is None else []
    if not report.answers.n:
        steps.append(
            "Have findings shown after a reviewer's own decision (Team, Policy): only such"
            " decisions count."
        )
    if missed.drawable < needed:
        steps.append(
            f"Audit more answers for a random sample: {missing_answers_text(missed.drawable, needed)}."
        )
    steps.append(
        f"Draw {needed} at random for blind decisions (Guarantee): without a fault among them, at"
        " most 2% of the answers that pass are faulty, with 95% certainty."
    )
    return "\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1))


def missing_answers_text(pool: int, needed: int) -> str:
    """Say how many undecided answers there are, and how many are missing."""
    return f"{pool:,} undecided can be drawn, {needed - pool:,} more are needed"
