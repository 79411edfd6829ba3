"""Checks of an answer that other packages add.

A check is a function of a case and an answer that yields the answer's problems as raw issues. Its
issues are merged with those of citations and claims: pages show them, the reviser gets them, and a
serious one sends the case to a person. A package adds a check with an entry point of the group
``masis.checks`` (``docs/extending.md``), and the setting ``checks`` names the checks that run.

An output validator (``masis.audit.output_validation``) is the place for rules that a revision must
meet to be used at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from masis.audit.critique import RawIssue
from masis.audit.issues import raise_issues
from masis.errors import SettingsError
from masis.schema.audit import Issue
from masis.schema.case import Case
from masis.schema.registry import added_entry_point

CHECKS_GROUP = "masis.checks"
"""The group of entry points by which a package adds a check."""

AnswerCheck = Callable[[Case, str], Iterable[RawIssue]]
"""Yields the problems of an answer to a case. It must not depend on anything else, because an
interrupted audit runs it again."""


def checks_named(names: str) -> dict[str, AnswerCheck]:
    """Return the checks that the setting ``checks`` names, by name.

    Raises:
        SettingsError: There is no such check, and the error lists those that are installed; or it
            can't be loaded.

    """
    requested = dict.fromkeys(name.strip() for name in names.split(",") if name.strip())
    entry_points = {
        name: added_entry_point(CHECKS_GROUP, name, setting="checks") for name in requested
    }
    try:
        return {name: entry_point.load() for name, entry_point in entry_points.items()}
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"checks: a check can't be loaded. {error}") from error


def run_checks(
    names: str, case: Case, answer: str, earlier_issues: Sequence[Issue]
) -> tuple[Issue, ...]:
    """Return the issues that the named checks raise, numbered after the earlier ones.

    A check that fails raises a serious issue about its failure. Otherwise the answer would seem to
    have passed the check.
    """
    issues: list[Issue] = []
    for name, check in checks_named(names).items():
        rule = f"check_{name}"
        try:
            raw_issues = [raw_issue._replace(rule=rule) for raw_issue in check(case, answer)]
        except Exception as error:  # noqa: BLE001 (a plug-in's check may raise anything)
            description = f"The check {name} failed: {type(error).__name__}: {error}"
            suggestion = "Fix the check, or remove it from the setting checks."
            raw_issues = [RawIssue("ambiguity", rule, "high", description, "", suggestion)]
        issues += raise_issues("checks", raw_issues, answer, [*earlier_issues, *issues]).issues
    return tuple(issues)
