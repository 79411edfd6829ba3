"""The counts of a PRISMA 2020 flow: identified, duplicates removed, screened, excluded with reasons, kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from masis.schema.screening import Exclusion, Flow, Grade, Round
from masis.screening.grading import rubric


def flow(rounds: Iterable[Round], grades: Iterable[Grade]) -> Flow:
    """Return the counts of these rounds; ``grades`` holds the latest grade of each abstract screened.

    A hit that an earlier search or another source had already brought counts as identified and as a duplicate.
    """
    latest = tuple(grades)
    identified = max(sum(each.identified for each in rounds), len(latest))
    excluded = Counter(grade.rule for grade in latest if grade.recommendation == "discard")
    return Flow(
        identified=identified,
        duplicates=identified - len(latest),
        screened=len(latest),
        excluded=tuple(
            Exclusion(rule=rule, label=rubric.REASON_OF_RULE[rule], count=excluded[rule])
            for rule in sorted(excluded, key=lambda rule: (-excluded[rule], rule))
        ),
        undecided=sum(grade.recommendation == "needs_more" for grade in latest),
        unscored=sum(grade.unscored is not None for grade in latest),
        kept=sum(grade.recommendation == "keep" for grade in latest),
    )
