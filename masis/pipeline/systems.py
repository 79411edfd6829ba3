"""An assertion that a new version of a system isn't worse than the one before."""

from __future__ import annotations

from pathlib import Path

from masis.schema.actor import Actor
from masis.schema.comparison import SystemComparison
from masis.services import Workbench
from masis.settings import database_path
from masis.views.systems import regression_lines, verdict_text


class SystemWorse(AssertionError):
    """The second system is worse than the first. The message says how sure that is, and where.

    ``comparison`` is the full result.
    """

    def __init__(self, comparison: SystemComparison, why: str) -> None:
        self.comparison = comparison
        super().__init__("\n".join([why, verdict_text(comparison), *regression_lines(comparison)]))


def worse_because(comparison: SystemComparison, most_regressions: int | None = None) -> str:
    """Return why the second system doesn't pass, in one sentence; "" if it does.

    It fails if more of its answers are wrong than chance explains, or with more regressions than
    ``most_regressions``. Without a question to compare by, it fails too: nothing was checked.
    """
    first, second = comparison.first.name, comparison.second.name
    flagged = comparison.measure("flagged")
    if not flagged.questions:
        return f"{first} and {second} share no question with audited or decided answers."
    if flagged.conclusion == "worse":
        return f"{second} is worse than {first}."
    if most_regressions is not None and comparison.regression_count > most_regressions:
        return (
            f"{second} has {comparison.regression_count:,} regressions against {first}, and at most"
            f" {most_regressions:,} are allowed."
        )
    return ""


def assert_not_worse(
    first: str,
    second: str,
    *,
    db: str | Path | None = None,
    most_regressions: int | None = None,
) -> SystemComparison:
    """Raise SystemWorse, an AssertionError, if the second system is worse than the first.

    Example::

        def test_the_new_prompt_is_not_worse():
            masis.assert_not_worse("v1", "v2", most_regressions=5)

    Args:
        first: The system before.
        second: The system now.
        db: The database; by default that of commands (``MASIS_DB``).
        most_regressions: The most questions that the second system may get wrong although the first
            got them right. By default any number that chance explains.

    Returns:
        The comparison.

    Raises:
        SystemWorse: More of the second system's answers are wrong than chance explains, it has too
            many regressions, or there is no question to compare by.
        UnknownRecord: A system has no answers in the database.
        StoreError: The database can't be read.

    """
    workbench = Workbench.open(database_path(db))
    try:
        [comparison] = workbench.comparison.compare(Actor(name=""), [first, second], groups=False)
    finally:
        workbench.close()
    if why := worse_because(comparison, most_regressions):
        raise SystemWorse(comparison, why)
    return comparison
