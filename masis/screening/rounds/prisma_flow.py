"""The counts of a PRISMA 2020 flow: identified, duplicates removed, screened, excluded with reasons, kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from masis.schema.screening import Exclusion, Flow, Grade, Round
from masis.screening.synthesis.criteria import Criterion
from masis.views.screening import rule_text


def flow(rounds: Iterable[Round], grades: Iterable[Grade], criteria: Sequence[Criterion] = ()) -> Flow:
    """Return the counts of these rounds; ``grades`` holds the latest grade of each abstract screened.

    What a person discarded for one of the team's ``criteria`` is counted under it.

    A hit that an earlier search or another source had already brought counts as identified and as a duplicate.
    """
    latest = tuple(grades)
    identified = max(sum(each.identified for each in rounds), len(latest))
    excluded = Counter((grade.rule, _reason(grade, criteria)) for grade in latest if grade.recommendation == "discard")
    return Flow(
        identified=identified,
        duplicates=identified - len(latest),
        screened=len(latest),
        excluded=tuple(
            Exclusion(rule=rule, label=label, count=count)
            for (rule, label), count in sorted(excluded.items(), key=lambda each: (-each[1], each[0]))
        ),
        undecided=sum(grade.recommendation == "needs_more" for grade in latest),
        unscored=sum(grade.unscored is not None for grade in latest),
        kept=sum(grade.recommendation == "keep" for grade in latest),
    )


def _reason(grade: Grade, criteria: Sequence[Criterion]) -> str:
    """Return why an abstract was discarded: the criterion that a person gave as the reason, else the rule's words."""
    why = grade.reasons.get("recommendation")
    if grade.rule == "person" and why is not None:
        for each in criteria:
            if why.text.endswith(f": {each.reason}"):
                return each.reason
    return rule_text(grade)
