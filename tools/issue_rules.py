"""Write the audit's rules and penalties to docs/audits.md: python tools/issue_rules.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from masis.schema.penalties import FAITHFULNESS_LIMITS, PENALTIES
from masis.schema.rules import REVIEW_CODES, RULES
from masis.settings import Settings

PAGE = Path(__file__).resolve().parent.parent / "docs" / "audits.md"
BEGIN, END = "<!-- rules: python tools/issue_rules.py -->\n", "<!-- end of rules -->\n"


def lines() -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| rule | label | meaning | type | severity | reason for review | tier |"
    yield "|---|---|---|---|---|---|---|"
    for code, rule in RULES.items():
        review = rule.review_code
        tier = REVIEW_CODES[review].tier.replace("_", " ") if review else ""
        yield (
            f"| `{code}` | {rule.label} | {rule.meaning} | `{rule.type}` |"
            f" {rule.severity or 'depends on the case'} | {f'`{review}`' if review else ''} |"
            f" {tier} |"
        )


PENALTIES_BEGIN = "<!-- penalties: python tools/issue_rules.py -->\n"
PENALTIES_END = "<!-- end of penalties -->\n"


def penalty_lines() -> Iterator[str]:
    """Yield the lines of the table of penalties and limits."""
    settings = Settings()
    yield "| problem | condition | effect | setting |"
    yield "|---|---|---|---|"
    for penalty in PENALTIES:
        yield (
            f"| {penalty.one}{penalty.more} | {penalty.condition} | confidence and quality"
            f" × {getattr(settings, penalty.setting):g} | `{penalty.setting}` |"
        )
    for limit in FAITHFULNESS_LIMITS:
        least = getattr(settings, limit.from_setting) if limit.from_setting else 1
        condition = f"{least} or more" if limit.from_setting else "any"
        names = ", ".join(f"`{name}`" for name in (limit.setting, limit.from_setting) if name)
        yield (
            f"| {limit.problem} | {condition} | faithfulness at most"
            f" {getattr(settings, limit.setting):g} | {names} |"
        )


def update_page(page: str) -> str:
    """Return the page with the current tables."""
    for begin, end, rows in (
        (PENALTIES_BEGIN, PENALTIES_END, penalty_lines()),
        (BEGIN, END, lines()),
    ):
        before, _, rest = page.partition(begin)
        page = before + begin + "\n".join(rows) + "\n" + end + rest.partition(end)[2]
    return page


if __name__ == "__main__":
    PAGE.write_text(update_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
