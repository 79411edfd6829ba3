"""Says in words what trials cost and change, for the page and the commands."""

from __future__ import annotations

from collections.abc import Sequence

from masis.schema.wording import count_noun
from masis.services.judge.alignment import SEVERITY_TABLE, JudgeComparison, TrialPlan
from masis.services.judge.proposals import RuleProposal
from masis.trust.paired import is_too_few_to_tell
from masis.views.numbers import cost_text


def cost_line(plan: TrialPlan) -> str:
    """Return the most that a trial may cost, in words."""
    calls, tokens, dollars = plan.cost
    if not calls:
        return "The trial calls no language model and costs nothing."
    unpriced = f" The price of {', '.join(plan.unpriced)} isn't known." if plan.unpriced else ""
    return (
        f"The trial needs up to {calls:,} calls and {tokens:,} tokens, {cost_text(dollars)}."
        f"{unpriced}"
    )


def effect_text(proposal: RuleProposal) -> str:
    """Return in words what a proposed rule would have changed."""
    effect = proposal.effect
    corrected = count_noun(len(effect.corrected), "case")
    if effect.unknown:
        return (
            f"This rule is meant to find the fault in {corrected}. Only a trial shows whether it"
            " does, and which other cases it flags."
        )
    spoiled = (
        f" {count_noun(len(effect.spoiled), 'answer')} that people found faulty wouldn't be"
        " flagged either."
        if effect.spoiled
        else " No answer that people found faulty would lose its flag."
    )
    return f"{corrected} wouldn't have been flagged.{spoiled}"


def verdict_line(compared: JudgeComparison) -> str:
    """Return in words how many cases the version gained and lost, and how sure that is."""
    if not compared.gained + compared.lost:
        return "No case agrees with people in one of the two only."
    counts = f"{count_noun(compared.gained, 'case')} gained and {compared.lost:,} lost."
    if is_too_few_to_tell(compared.gained + compared.lost):
        return f"{counts} That is too few to tell which judge agrees more with people."
    value, low, high = (
        round(100 * (part or 0.0))
        for part in (compared.difference.value, compared.difference.low, compared.difference.high)
    )
    return (
        f"{counts} The share of cases with people's verdict changes by {value:+} percentage points"
        f" (95% interval {low:+} to {high:+}; McNemar's exact test: p = {compared.p:.2g})."
    )


def rules_text(rules: Sequence[str]) -> str:
    """Return which rules changed a case, in words."""
    named = ["the severity table" if rule == SEVERITY_TABLE else f"rule {rule}" for rule in rules]
    return ", ".join(named) or "another reply of the model, not a rule"
