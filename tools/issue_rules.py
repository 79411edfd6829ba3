"""Write the table of the audit's rules to docs/audits.md: python tools/issue_rules.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from masis.schema.rules import REVIEW_CODES, RULES

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


def update_page(page: str) -> str:
    """Return the page with the current table."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + "\n".join(lines()) + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(update_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
