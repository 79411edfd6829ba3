"""The filters of the queue as options of a command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, get_args

import click

from masis.cli.output import printable
from masis.schema.review import CaseState
from masis.schema.run import ReviewTier
from masis.services.records import CaseFilter

F = TypeVar("F", bound=Callable[..., Any])

STATES: tuple[CaseState, ...] = get_args(CaseState)
_ANY = "any"
_WORDS = ("text", "tiers", "flags", "reasons", "fields", "datasets", "models", "reviewers")
_RANGES = ("quality", "confidence")
NAMES = (*_WORDS, "states", *_RANGES)
"""The parameters that ``filter_options`` adds."""


class Range(click.ParamType[tuple[float | None, float | None]]):
    """A range of scores as the queue's address has it: ``0.2-0.8``, ``0.5-`` or ``-0.5``."""

    name = "range"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the bounds; wrong use where they are none."""
        if isinstance(value, tuple):
            return value
        low, dash, high = value.partition("-")
        try:
            bounds = tuple(float(each) if each.strip() else None for each in (low, high))
        except ValueError:
            bounds = ()
        if not dash or not bounds or any(each is not None and not 0 <= each <= 1 for each in bounds):
            self.fail(f"{printable(value[:40])}: write a range as 0.2-0.8, 0.5- or -0.5, from 0 to 1.", param, ctx)
        return bounds


def filter_options(unless_given: str) -> Callable[[F], F]:
    """Add the filters of the queue: ``chosen_filter`` reads them. ``unless_given`` names the cases without --state."""
    options = (
        click.option("--search", "text", default="", metavar="WORDS", help="Only cases that hold all these words."),
        click.option(
            "--state",
            "states",
            type=click.Choice([*STATES, _ANY]),
            multiple=True,
            metavar="STATE",
            help=f"Only cases in this state: {', '.join(STATES)}; '{_ANY}' for all. Default: {unless_given}.",
        ),
        click.option(
            "--tier", "tiers", type=click.Choice(get_args(ReviewTier)), multiple=True, help="How pressing a review is."
        ),
        click.option(
            "--flag", "flags", multiple=True, metavar="NAME", help="Only cases with this issue in the original answer."
        ),
        click.option(
            "--reason", "reasons", multiple=True, metavar="CODE", help="Only cases with this reason for review."
        ),
        click.option("--field", "fields", multiple=True, metavar="NAME", help="Only cases of this field."),
        click.option("--dataset", "datasets", multiple=True, metavar="NAME", help="Only cases of this data set."),
        click.option("--model", "models", multiple=True, metavar="MODEL", help="Only cases that this model audited."),
        click.option(
            "--reviewer", "reviewers", multiple=True, metavar="NAME", help="Only cases that this person decided."
        ),
        click.option(
            "--quality", type=Range(), metavar="LOW-HIGH", help="Only this range of quality, such as 0.2-0.8."
        ),
        click.option("--confidence", type=Range(), metavar="LOW-HIGH", help="Only this range of confidence."),
    )

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def chosen_filter(given: dict[str, Any], states: Sequence[CaseState]) -> CaseFilter:
    """Return the filter that the options describe; without --state, of cases in these ``states`` (none: in any)."""
    bounds = {
        f"{name}_{end}": value
        for name in _RANGES
        for end, value in zip(("from", "to"), given[name] or (None, None), strict=True)
    }
    wanted = given["states"] or states
    return CaseFilter(
        **{name: given[name] for name in _WORDS}, **bounds, states=() if _ANY in wanted else tuple(wanted)
    )
