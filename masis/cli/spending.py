"""What a batch will cost, said before it starts, and a limit on it that holds while it runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from masis.api.roles import estimate, unpriced_models
from masis.cli.output import say
from masis.datasets.readers import read_case_lines
from masis.errors import InputError
from masis.llm.estimates import Estimate
from masis.llm.prices import dollars
from masis.schema.calls import Usage
from masis.schema.case import Case
from masis.schema.wording import counted
from masis.settings import Settings

SAMPLED = 200
"""Cases to be audited that an estimate reads; the rest of the file is taken to be like them, byte for byte."""


class Spending:
    """What was spent and what is under way, against the limit. Used from one thread, that of the command."""

    def __init__(self, settings: Settings, most: float | None) -> None:
        self.exhausted = False
        self._settings, self._most = settings, most
        self._spent, self._ended, self._under_way = 0.0, 0, 0
        if most is not None and (unpriced := unpriced_models(settings)):
            raise click.UsageError(
                f"--max-cost: no price is known for {', '.join(unpriced)}. Give one in masis.toml: "
                f'[prices."{unpriced[0]}"] with input and output, in US dollars for a million tokens.'
            )

    def estimate(self, cases: Path, limit: int | None, wanted: Callable[[Case], bool]) -> None:
        """Say what the cases of a file that are ``wanted`` will take, from the first of them."""
        whole, number, seen, read = Estimate(), 0, 0, 0
        try:
            for line in read_case_lines(cases):
                if isinstance(line.found, Case):
                    seen, read = seen + 1, line.end
                    if wanted(line.found):
                        whole, number = whole.plus(estimate(line.found, self._settings)), number + 1
                if number >= SAMPLED or seen == limit:
                    break
        except InputError:  # said when the line is reached in earnest
            pass
        if not number:
            return
        left = (cases.stat().st_size - read) / (read / seen)  # not looked at; taken to be wanted
        scale = 1 + round(left if limit is None else min(left, limit - seen)) / number
        cost = "cost unknown" if whole.cost_usd is None else f"about {dollars(whole.cost_usd * scale)}"
        skipped = f" ({seen - number:,} were audited before)" if seen > number else ""
        say(
            f"Estimate for {'about ' if scale > 1 else ''}{counted(round(number * scale), 'case')}{skipped}: up to "
            f"{round(whole.calls * scale):,} calls and {round(whole.tokens * scale):,} tokens, {cost}."
        )

    def begin(self, case: Case) -> bool:
        """Whether one more audit may begin."""
        if self._most is not None:
            each = self._spent / self._ended if self._ended else estimate(case, self._settings).cost_usd or 0.0
            if self._spent + (self._under_way + 1) * each > self._most:
                self.exhausted = True
                return False
        self._under_way += 1
        return True

    def ended(self, usage: Usage | None) -> None:
        """An audit ended, having taken this."""
        self._under_way -= 1
        self._ended += 1
        self._spent += (usage.cost_usd if usage else None) or 0.0
