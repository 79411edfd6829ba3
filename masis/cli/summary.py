"""What became of the cases of one file, what it cost, and how long the steps took against their limits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from masis.llm.prices import dollars
from masis.schema.calls import Usage
from masis.schema.run import Iteration, Run
from masis.schema.wording import counted
from masis.settings import Settings


@dataclass
class Tally:
    """Counts as the runs come in."""

    audited: int = 0
    kept: int = 0
    failed: int = 0
    flagged: int = 0
    needs_review: int = 0
    errors: int = 0
    calls: int = 0
    tokens: int = 0
    cached: int = 0
    cost_usd: float | None = None
    unpriced: int = 0
    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def count(self, run: Run) -> None:
        """Count one new run."""
        self.audited += 1
        self.flagged += bool(run.iterations) and _flagged(run.iterations[0])
        self.needs_review += run.needs_review
        self.errors += incomplete(run)
        self._count_usage(run.usage)
        self.unpriced += sum(call.cost_usd is None for call in run.calls)
        for name, milliseconds in step_times(run):
            self.times[name].append(milliseconds)

    def _count_usage(self, usage: Usage) -> None:
        self.calls += usage.calls
        self.tokens += usage.prompt_tokens + usage.completion_tokens
        self.cached += usage.cached_tokens
        if usage.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + usage.cost_usd

    def note(self) -> str:
        """Where things stand, beside the progress bar."""
        cost = "" if self.cost_usd is None else f", {dollars(self.cost_usd)}"
        return f"{self.audited:,} audited{cost}"

    def lines(self, settings: Settings) -> Iterator[str]:
        """What was done, a line each."""
        kept = f", {counted(self.kept, 'case')} skipped (audited before with these settings)" if self.kept else ""
        yield (
            f"{counted(self.audited, 'case')} audited{kept}: {self.flagged:,} flagged as they came, "
            f"{self.needs_review:,} still to be reviewed by a person after revision."
        )
        if self.errors:
            yield (
                f"{counted(self.errors, 'audit')} left something unscored by a failure, each with its reason and up "
                "for review. --retry-errors audits them again."
            )
        if self.calls:
            yield self._spent()
            yield from self._latencies(settings)

    def _spent(self) -> str:
        cached = f", {self.cached:,} of them from a cache" if self.cached else ""
        spent = f"{counted(self.calls, 'call')} to models, {self.tokens:,} tokens{cached}"
        if self.cost_usd is None:
            return f"{spent}; the cost is not known (no price: see 'prices' in masis.toml)."
        rest = f" (without {counted(self.unpriced, 'call')} of unknown price)" if self.unpriced else ""
        return f"{spent}: {dollars(self.cost_usd)}{rest}."

    def _latencies(self, settings: Settings) -> Iterator[str]:
        from masis.audit.statistics import percentile  # loads numpy, which most commands do without

        limits = {
            "critic": settings.call_deadline_s,
            "reviser": settings.call_deadline_s,
            "iteration": settings.iteration_deadline_s,
            "loop": settings.loop_deadline_s,
        }
        told = [
            f"{name} {percentile(self.times[name], 95):.1f} of {limit:g}"
            for name, limit in limits.items()
            if self.times[name]
        ]
        if told:
            yield f"95 of 100 were done within (seconds, of the limit): {', '.join(told)}."


def incomplete(run: Run) -> bool:
    """Whether a failure left the run without something it should have."""
    return run.incomplete


def step_times(run: Run) -> Iterator[tuple[str, float]]:
    """Seconds of each critic and reviser step, iteration and loop of a run (NFR-001 to NFR-004)."""
    whole = 0.0
    for iteration in run.iterations:
        spent = sum(iteration.step_ms.values()) / 1000
        whole += spent
        yield "iteration", spent
        for name, step in (("critic", "critique"), ("reviser", "revision")):
            if step in iteration.step_ms:
                yield name, iteration.step_ms[step] / 1000
    if run.iterations:
        yield "loop", whole


def _flagged(iteration: Iteration) -> bool:
    """Whether an answer cites what isn't there, or asserts what the evidence contradicts or doesn't hold."""
    return (
        iteration.citation_audit.hallucination_detected
        or iteration.critique.hallucination_detected
        or any(claim.verdict == "contradicted" for claim in iteration.claims)
    )
