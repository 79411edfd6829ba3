"""Groups the issues of an answer that a reader sees as one, since they report one fault."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable

from masis.schema.audit import Issue
from masis.schema.rules import GROUNDLESS, OMISSIONS, IssueType


def about_same_words(issues: Iterable[Issue]) -> list[list[Issue]]:
    """Group the issues about the same words, which a reader sees as one issue.

    The issues of the checks determine the words. The critic's issues concern whole sentences, which
    may have several faults, so a critic's issue joins the first of them. It also joins an issue
    beside its words if both report the same fault: a fabricated marker, and the sentence before it
    as unsupported. If it concerns no words but says that a missing point is left out, it joins the
    issue of that point.
    """
    groups: list[list[Issue]] = []
    # The groups with a position. Their words don't overlap, and are in the order of the answer, so
    # that bisect finds the first one that ends after an issue's start.
    positioned_groups: list[_PositionedGroup] = []

    def breadth(issue: Issue) -> tuple[bool, int]:
        return issue.source == "critic", (issue.end or 0) - (issue.start or 0)

    for issue in sorted(issues, key=breadth):
        if issue.start is None or issue.end is None:
            same_point = next(
                (group for group in groups if _is_about_missing_point(issue, group[0])), None
            )
            if same_point is None:
                groups.append([issue])
            else:
                same_point.append(issue)
            continue
        index = bisect_left(positioned_groups, issue.start, key=lambda group: group.end - 1)
        if index < len(positioned_groups) and positioned_groups[index].start < max(
            issue.end, issue.start + 1
        ):
            positioned_groups[index].add(issue)
            continue
        neighbors = positioned_groups[max(index - 1, 0) : index + 1]
        same_fault = next((group for group in neighbors if group.has_same_fault(issue)), None)
        if same_fault is not None:
            same_fault.add(issue)
            continue
        groups.append([issue])
        positioned_groups.insert(index, _PositionedGroup(groups[-1]))
    return groups


class _PositionedGroup:
    """A group of issues about the words of its first issue, from ``start`` to ``end``.

    ``groundless_start`` and ``groundless_end`` also include the words that its other issues call
    unsupported.
    """

    def __init__(self, issues: list[Issue]) -> None:
        self.issues = issues
        self.start, self.end = issues[0].start or 0, issues[0].end or 0
        self.groundless_start, self.groundless_end = self.start, self.end

    def add(self, issue: Issue) -> None:
        self.issues.append(issue)
        if issue.type in GROUNDLESS:
            self.groundless_start = min(self.groundless_start, issue.start or 0)
            self.groundless_end = max(self.groundless_end, issue.end or 0)

    def has_same_fault(self, issue: Issue) -> bool:
        """Return whether an issue about other words reports the fault of this group."""
        start, end = issue.start or 0, issue.end or 0
        if issue.type not in GROUNDLESS or self.issues[0].type not in GROUNDLESS:
            return False
        if issue.source == "critic" and start < self.groundless_end and self.groundless_start < end:
            return True
        # A claim ends before its marker: "fell by half" and " [9]".
        pair = sorted((issue, self.issues[0]), key=lambda one: one.start or 0)
        return (
            _WITHOUT_SOURCE.issuperset(one.type for one in pair)
            and pair[1].rule == "fabricated_reference"
            and pair[0].rule != "fabricated_reference"
            and (pair[1].start or 0) - (pair[0].end or 0) <= MARKER_GAP
        )


_WITHOUT_SOURCE = frozenset[IssueType](("unsupported", "hallucination"))
"""The types of an issue that a fabricated marker explains. A contradiction is a fault of its own,
and behind the marker a reader would miss it.
"""
MARKER_GAP = 1
"""Maximum number of characters between a sentence and the marker behind it."""


# "revenue": a word of four letters or more.
_WORD = re.compile(r"\w{4,}")
_STEM_LENGTH = 4
"""The number of first letters by which two forms of a word count as the same."""
MIN_REPEATED_SHARE = 0.5
"""The share of a missing point's words that a critic's issue must have to be about that point."""


def word_stems(text: str) -> set[str]:
    """Return the longer words of a text, by their first letters.

    Two sentences about the same topic share some of them.
    """
    return {word.casefold()[:_STEM_LENGTH] for word in _WORD.findall(text)}


def _is_about_missing_point(issue: Issue, point: Issue) -> bool:
    """Return whether the critic says that the answer as a whole leaves out this missing point."""
    if (
        issue.source != "critic"
        or issue.type not in OMISSIONS
        or point.rule != "missing_information"
    ):
        return False
    point_stems = word_stems(point.point)
    shared_count = len(point_stems & word_stems(f"{issue.description} {issue.reason}"))
    return (
        bool(set(issue.evidence_ids) & set(point.evidence_ids))
        and shared_count >= MIN_REPEATED_SHARE * len(point_stems) > 0
    )
