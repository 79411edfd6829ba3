"""What the page and the command say first: may the audit be relied on, how far, and since when."""

from __future__ import annotations

from masis.schema.wording import counted
from masis.services.guarantees import Watch
from masis.services.trust import MachineReport, MissReport
from masis.trust.agreement import Estimate

SIMULATED = (
    "These figures rest on {} that the demo simulated. They show what the page can say; they say nothing about the "
    "audit."
)


def figure(found: Estimate, *, share: bool = True) -> str:
    """Return a figure with its interval and what it rests on: "83.1% (95% interval 74.0% to 90.0%, n = 77)"."""
    if found.value is None:
        return found.why or "undefined"

    def write(value: float) -> str:
        return f"{value:.1%}" if share else f"{value:.2f}"

    if found.low is None or found.high is None:
        return f"{write(found.value)} (n = {found.n:,}; {found.why})"
    return f"{write(found.value)} (95% interval {write(found.low)} to {write(found.high)}, n = {found.n:,})"


def short_answers(report: MachineReport, missed: MissReport, watch: Watch | None) -> dict[str, str]:
    """Return the three questions that a stakeholder asks, each with its answer in a sentence or two."""
    return {
        "May answers pass without a person?": _may(missed, watch),
        "How far is the audit right?": _how_far(report),
        "Since when?": _since(report, watch),
    }


def _may(missed: MissReport, watch: Watch | None) -> str:
    passed = f"Of the answers that pass by themselves, {figure(missed.total)} were found faulty by spot checks."
    if missed.total.value is None:
        passed = (
            "What passes by itself has not been checked yet: no spot check is decided, so nobody knows what is missed."
        )
    if watch is None:
        return f"Nothing shows yet that they may: no threshold has a guarantee. {passed}"
    applied = watch.guarantee
    promise = (
        f"at most {applied.tolerance:.1%} of the answers accepted by guarantee {applied.plan} are faulty, with "
        f"{applied.certainty:.0%} certainty"
    )
    if watch.lapsed:
        return f"No longer. The guarantee ({promise}) has lapsed: {watch.lapsed}. {passed}"
    later = f" Spot checks since: {watch.faulty} of {watch.checked} faulty." if watch.checked else ""
    return (
        f"Yes, within limits: {promise}. It rests on {counted(applied.decisions, 'blind decision')} with "
        f"{applied.faulty} faulty.{later}"
    )


def _how_far(report: MachineReport) -> str:
    found = report.answers
    if not found.n:
        return "Nobody knows yet: no answer was decided by a person who had not seen the audit's verdict."
    if found.precision.value is None:
        return (
            f"It accused none of the {found.n:,} answers that people judged; {figure(found.faulty)} of them are faulty."
        )
    return (
        f"When it says that something is wrong, that is right in {figure(found.precision)}. "
        f"Of the faulty answers it accuses {figure(found.recall)}."
    )


def _since(report: MachineReport, watch: Watch | None) -> str:
    parts = []
    if watch is not None:
        parts.append(f"The guarantee was applied by {watch.by} on {watch.at[:10]}.")
    if len(report.rows):
        days = sorted(report.rows["at"].astype(str))
        parts.append(f"The decisions counted here are of {days[0][:10]} to {days[-1][:10]}.")
    return " ".join(parts) or "There is no decision to date it by."
