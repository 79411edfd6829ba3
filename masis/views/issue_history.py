"""Follows issues from one iteration to the next: new, persisting, fixed, regressed. Pure.

``Issue.key`` stays the same while the same words have the same issue. A revision that rewords a
sentence without fixing it changes the key, so the remaining issues are matched once more by rule
and by the share of words they have in common.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from masis.schema.audit import Issue
from masis.schema.run import Iteration, Run
from masis.schema.wording import count_noun
from masis.views.markdown import colour_label, escape_markdown
from masis.views.numbering import numbered_issues, raised_issues
from masis.views.words import COURSE, rule_word

if TYPE_CHECKING:
    import pandas as pd

Course = Literal["new", "persisting", "fixed", "regressed", "absent"]
"""How an issue develops.

``regressed`` means fixed earlier and back again. ``absent`` means not raised yet, or fixed for more
than one iteration.
"""

SAME_WORDS = 0.6
"""Minimum share of common words (of the union) for which a reworded sentence is the same one."""

# Most pairs compared to find rewordings; above that only keys are matched.
_PAIRS = 20_000

_WORD = re.compile(r"\w+")


class FollowedIssue(NamedTuple):
    """One issue through a run: the issue in each iteration (None if absent) and its course."""

    issues: tuple[Issue | None, ...]
    courses: tuple[Course, ...]

    @property
    def last(self) -> Issue:
        """The issue as worded in the newest iteration that has it."""
        return next(issue for issue in reversed(self.issues) if issue is not None)


def follow(iterations: Sequence[Iteration]) -> list[FollowedIssue]:
    """Return every issue of a run once, ordered by first appearance."""
    chains: list[list[Issue | None]] = []
    for index, iteration in enumerate(iterations):
        raised = raised_issues(iteration)
        continued = _continue_chains(chains, raised)
        for chain, issue in zip(chains, continued, strict=True):
            chain.append(issue)
        taken = {id(issue) for issue in continued if issue is not None}
        chains += [[*[None] * index, issue] for issue in raised if id(issue) not in taken]
    return [FollowedIssue(tuple(chain), tuple(_courses(chain))) for chain in chains]


def follow_groups(iterations: Sequence[Iteration]) -> list[FollowedIssue]:
    """Return the issues of a run as a reader counts them: those about the same words are one.

    An issue belongs to the group of the first iteration in which it is raised.
    """
    followed = follow(iterations)
    rows: list[list[int]] = []
    row_of: dict[int, int] = {}
    ranks: list[dict[int, int]] = []
    for index, iteration in enumerate(iterations):
        histories = {
            issue.id: number
            for number, history in enumerate(followed)
            if (issue := history.issues[index]) is not None
        }
        ranks.append({})
        for group in numbered_issues(iteration):
            members = [histories[issue.id] for issue in group if issue.id in histories]
            ranks[index] |= {member: len(ranks[index]) + i for i, member in enumerate(members)}
            row = next((row_of[member] for member in members if member in row_of), len(rows))
            if row == len(rows) and members:
                rows.append([])
            for member in members:
                if member not in row_of:
                    row_of[member] = row
                    rows[row].append(member)
    merged = []
    for members in rows:
        chain = [
            followed[min(present, key=rank.__getitem__)].issues[index]
            if (present := [member for member in members if member in rank])
            else None
            for index, rank in enumerate(ranks)
        ]
        merged.append(FollowedIssue(tuple(chain), tuple(_courses(chain))))
    return merged


def course_at(followed: Iterable[FollowedIssue], index: int) -> dict[str, Course]:
    """Return the course of each issue of iteration ``index``, by issue id."""
    return {
        issue.id: history.courses[index]
        for history in followed
        if (issue := history.issues[index]) is not None
    }


def _continue_chains(
    chains: Sequence[Sequence[Issue | None]], issues: Sequence[Issue]
) -> list[Issue | None]:
    """Return for each chain the issue that continues it, matched by key or else by its words."""
    # First by key, which is exact.
    left = list(issues)
    continued: list[Issue | None] = [None] * len(chains)
    latest = [next(issue for issue in reversed(chain) if issue is not None) for chain in chains]
    by_key: dict[str, list[Issue]] = {}
    for issue in left:
        by_key.setdefault(issue.key, []).append(issue)
    for number, before in enumerate(latest):
        if same := by_key.get(before.key):
            continued[number] = same.pop(0)
    taken = {id(issue) for issue in continued}
    left = [issue for issue in left if id(issue) not in taken]
    open_chains = [number for number, issue in enumerate(continued) if issue is None]
    if not left or len(left) * len(open_chains) > _PAIRS:
        return continued
    # Then by wording (Jaccard index), the most similar pairs first, each issue at most once.
    words = [_issue_words(issue) for issue in left]
    likeness = [
        (-alike, number, place)
        for number in open_chains
        for before in [_issue_words(latest[number])]
        for place, issue in enumerate(left)
        if issue.rule == latest[number].rule
        and (alike := len(before & words[place]) / (len(before | words[place]) or 1)) >= SAME_WORDS
    ]
    used: set[int] = set()
    for _, number, place in sorted(likeness):
        if continued[number] is None and place not in used:
            continued[number] = left[place]
            used.add(place)
    return continued


def _issue_words(issue: Issue) -> set[str]:
    return set(_WORD.findall((issue.quote or issue.description)[:2_000].casefold()))


def _courses(chain: Sequence[Issue | None]) -> Iterable[Course]:
    seen = False
    for index, issue in enumerate(chain):
        before = chain[index - 1] if index else None
        if issue is not None:
            yield "persisting" if before is not None else "regressed" if seen else "new"
            seen = True
        else:
            yield "fixed" if before is not None else "absent"


ROWS_SHOWN = 60
LONGEST_DESCRIPTION = 200


class IssueHistory(NamedTuple):
    """The issues of a run as a table of Markdown cells, and how many rows are left out."""

    table: pd.DataFrame
    left_out: int


def issue_history(run: Run, shown: int) -> IssueHistory:
    """Return every issue with its course; the column of iteration ``shown`` (from 0) is marked.

    Issues that share a number in the answer are one row.
    """
    # imported on use, because commands that only follow issues would wait 0.4 s for pandas
    import pandas as pd

    followed = sorted(follow_groups(run.iterations), key=lambda row: row.issues[-1] is None)
    titles = [
        f"Iteration {iteration.iteration_number}{', shown' if index == shown else ''}:"
        f" {_course_text(followed, index)}"
        for index, iteration in enumerate(run.iterations)
    ]
    rows = [
        [
            (
                f"**{escape_markdown(rule_word(history.last.rule).text)}**"
                f" {escape_markdown(history.last.description[:LONGEST_DESCRIPTION])}"
            ),
            *(_course_words(course) for course in history.courses),
        ]
        for history in followed[:ROWS_SHOWN]
    ]
    return IssueHistory(
        pd.DataFrame(rows, columns=["Issue", *titles]), max(0, len(followed) - ROWS_SHOWN)
    )


def _course_text(followed: Sequence[FollowedIssue], index: int) -> str:
    if index == 0:
        return count_noun(sum(history.issues[0] is not None for history in followed), "issue")
    courses: Counter[str] = Counter(history.courses[index] for history in followed)
    return (
        ", ".join(
            f"{courses[course]} {COURSE[course].text}" for course in COURSE if courses[course]
        )
        or "none"
    )


_SIGN = {"new": "●", "persisting": "→", "fixed": "✓", "regressed": "↺"}


def _course_words(course: Course) -> str:
    word = COURSE.get(course)
    return colour_label(word._replace(text=f"{_SIGN[course]} {word.text}")) if word else ""
