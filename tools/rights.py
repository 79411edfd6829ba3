"""Write the table of who may do what into docs/security.md: python tools/rights.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from masis.schema.actor import PERMISSIONS, ROLES
from masis.services.access import ACTS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "security.md"
BEGIN, END = "<!-- rights: python tools/rights.py -->\n", "<!-- end of rights -->\n"
OTHERS = {"token": "a program with a token", "file": "who owns the database file, by a command"}


def lines() -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"| act | not signed in | {' | '.join(ROLES)} |"
    yield f"|---|{'---|' * (len(ROLES) + 1)}"
    for act in ACTS:
        if act.takes in OTHERS:
            continue
        least = -1 if act.takes == "nothing" else ROLES.index(PERMISSIONS[act.takes])  # type: ignore[index]
        yield (
            f"| {act.words} |"
            f" {' | '.join('yes' if place >= least else '' for place in range(-1, len(ROLES)))} |"
        )
    yield ""
    for takes, who in OTHERS.items():
        yield (
            f"- **{who[0].upper()}{who[1:]}** may"
            f" {'; '.join(act.words for act in ACTS if act.takes == takes)}."
        )


def written(page: str) -> str:
    """Return the page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + "\n".join(lines()) + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
