"""Summarise a batch of audits: results, cost and time."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from masis.audit.acceptance import flagged_reasons
from masis.errors import MAX_ITERATIONS_WARNING
from masis.schema.audit import Escalation
from masis.schema.calls import Usage
from masis.schema.run import Run
from masis.schema.wording import count_noun
from masis.settings import Settings
from masis.views.numbers import dollars
from masis.views.spending import escalation_text, usage_text
from masis.views.words import model_words

FAILURES_SHOWN = 3
"""Kinds of failed calls and of warnings listed after a batch, most frequent first."""
# Digests of 12 digits and numbers. Without them, messages of one kind are equal and can be counted.
_FIGURES = re.compile(r"\b[0-9a-f]{12}\b|\d[\d,.]*")


@dataclass
class BatchSummary:
    """The results of one file's cases, their cost, and the time of steps against their limits."""

    audited: int = 0
    skipped: int = 0
    failed: int = 0
    flagged: int = 0
    needs_review: int = 0
    incomplete: int = 0
    useless: int = 0
    skipped_incomplete: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    warnings: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    unpriced: int = 0
    recorded: set[str] = field(default_factory=set)
    unconfirmed: int = 0
    unconfirmed_answers: int = 0
    escalation: Escalation | None = None
    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def count(self, run: Run) -> None:
        """Count one new run."""
        self.audited += 1
        self.flagged += bool(run.iterations and flagged_reasons(run.iterations[0]))
        self.needs_review += run.needs_review
        self.incomplete += run.incomplete
        self.useless += run.incomplete and run.final_quality_score is None
        # A warning that repeats the error of a call would count the same failure twice.
        explained = [call.error for call in run.calls if call.error]
        for call in run.calls:
            if call.error:
                self._count_kind(
                    self.failures,
                    call.error,
                    f"{call.model}: {call.error.removeprefix(f'{call.model}: ')}",
                )
        for warning in run.warnings:
            if warning.code != MAX_ITERATIONS_WARNING and not any(
                error in warning.message for error in explained
            ):
                self._count_kind(self.warnings, warning.message, warning.message)
        self.unconfirmed += run.unconfirmed_offline
        self.unconfirmed_answers += bool(run.unconfirmed_offline)
        if run.escalation is not None:
            self.escalation = (
                run.escalation if self.escalation is None else self.escalation.plus(run.escalation)
            )
        self.usage = self.usage.plus(run.usage)
        self.recorded |= {call.model for call in run.calls if call.source == "replay"}
        self.unpriced += sum(call.cost_usd is None for call in run.calls)
        for name, milliseconds in step_times(run):
            self.times[name].append(milliseconds)

    def count_skipped(self, run: Run | None) -> None:
        """Count a skipped case with its earlier run, if it has one."""
        self.skipped += 1
        if run is None:
            return
        self.skipped_incomplete += run.incomplete
        self.flagged += bool(run.iterations and flagged_reasons(run.iterations[0]))
        self.needs_review += run.needs_review

    def _count_kind(self, kinds: Counter[str], message: str, example: str) -> None:
        alike = _FIGURES.sub("#", message)
        kinds[alike] += 1
        self.examples.setdefault(alike, example)

    def note(self) -> str:
        """Return the progress so far, shown beside the progress bar."""
        cost = "" if self.usage.cost_usd is None else f", {dollars(self.usage.cost_usd)}"
        return f"{self.audited:,} audited{cost}"

    def lines(self, settings: Settings) -> Iterator[str]:
        """Yield the summary line by line."""
        again = f", {count_noun(self.skipped, 'case')} skipped (audited before with these settings)"
        yield (
            f"{count_noun(self.audited, 'case')} audited{again if self.skipped else ''}:"
            f" something is wrong with {self.flagged:,}, {self.needs_review:,}"
            f" {'needs' if self.needs_review == 1 else 'need'} review."
        )
        if self.skipped_incomplete:
            yield (
                f"{count_noun(self.skipped_incomplete, 'skipped case')} had unscored parts after a"
                " failure. Use --retry-errors to audit them again."
            )
        for alike, count in self.failures.most_common(FAILURES_SHOWN):
            yield f"{count_noun(count, 'call')}: {self.examples[alike]}"
        if len(self.failures) > FAILURES_SHOWN:
            yield (
                f"{len(self.failures) - FAILURES_SHOWN} more kinds of failures are listed on the"
                " case pages."
            )
        for alike, count in self.warnings.most_common(FAILURES_SHOWN):
            yield f"{count_noun(count, 'warning')}: {self.examples[alike]}"
        if self.incomplete:
            needs = "needs" if self.incomplete == 1 else "need"
            yield (
                f"{count_noun(self.incomplete, 'audit has', 'audits have')} unscored parts after a"
                f" failure and {needs} review. Use --retry-errors to audit again."
            )
        yield from self._verification_lines()
        if self.usage != Usage():
            unpriced = f" (without {count_noun(self.unpriced, 'call')} of unknown price)"
            if not self.unpriced or self.usage.cost_usd is None:
                unpriced = ""
            yield f"Models: {usage_text(self.usage)}{unpriced}."
        if self.usage.calls:
            yield from self._latency_lines(settings)
        for words in sorted(map(model_words, self.recorded)):
            yield f"{words[:1].upper()}{words[1:]}."
        if settings.record and self.skipped:
            yield (
                f"The replies for skipped cases aren't in {settings.record}. Use --again to audit"
                " them too."
            )

    def _verification_lines(self) -> Iterator[str]:
        """Yield lines about the verifiers of the claims and the claims left undecided offline."""
        if self.escalation is not None:
            yield escalation_text(self.escalation)
        if self.unconfirmed:
            them = "it" if self.unconfirmed == 1 else "them"
            yield (
                f"{count_noun(self.unconfirmed, 'claim')} of"
                f" {count_noun(self.unconfirmed_answers, 'answer')} not confirmed by the offline"
                f" checks; a verifier model would decide {them}: --model"
                " verifier=offline,local:ORG/NAME (docs/models.md)."
            )

    def _latency_lines(self, settings: Settings) -> Iterator[str]:
        # Imported here because it loads numpy, which most commands don't need.
        from masis.audit.measures.statistics import percentile

        limits = {
            "critic": settings.call_deadline_s,
            "reviser": settings.call_deadline_s,
            "iteration": settings.iteration_deadline_s,
            "loop": settings.loop_deadline_s,
        }
        measured = [
            f"{name} {percentile(self.times[name], 95):.1f} of {limit:g}"
            for name, limit in limits.items()
            if self.times[name]
        ]
        if measured:
            yield f"95% were done within (seconds, of the limit): {', '.join(measured)}."


def step_times(run: Run) -> Iterator[tuple[str, float]]:
    """Yield the seconds of each critic and reviser step, iteration and loop of a run.

    Source: REQ-CRITIC-NFR-001 to -004.
    """
    total = 0.0
    for iteration in run.iterations:
        spent = sum(iteration.step_ms.values()) / 1000
        total += spent
        yield "iteration", spent
        for name, step in (("critic", "critique"), ("reviser", "revision")):
            if step in iteration.step_ms:
                yield name, iteration.step_ms[step] / 1000
    if run.iterations:
        yield "loop", total
