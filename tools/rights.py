"""Write the table of permissions to docs/security.md: python tools/rights.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import masis.server.api
import masis.services.jobs
import masis.services.workbench  # noqa: F401 (all add their acts to ACTS)
from masis.extensions import load_all
from masis.schema.actor import PERMISSIONS, ROLES
from masis.services.access import ACTS, Need

PAGE = Path(__file__).resolve().parent.parent / "docs" / "security.md"
BEGIN, END = "<!-- rights: python tools/rights.py -->\n", "<!-- end of rights -->\n"
OTHERS: dict[Need, str] = {
    "token": "A program with a token",
    "file": "The owner of the database file, by a command,",
}


def lines() -> Iterator[str]:
    """Yield the lines of the table, one per act, starting with the weakest permission."""
    list(load_all("use_cases"))  # They add their acts when they are imported.
    acts: dict[Need, set[str]] = {}
    for act in ACTS:
        acts.setdefault(act.requires, set()).add(act.words)
    yield f"| act | not signed in | {' | '.join(ROLES)} |"
    yield f"|---|{'---|' * (len(ROLES) + 1)}"
    first_columns: dict[Need, int] = {"nothing": 0}
    first_columns |= {need: 1 + ROLES.index(role) for need, role in PERMISSIONS.items()}
    for need, first in first_columns.items():
        marks = ["yes" if column >= first else "" for column in range(1 + len(ROLES))]
        for words in sorted(acts.get(need, ())):
            yield f"| {words} | {' | '.join(marks)} |"
    yield ""
    for need, subject in OTHERS.items():
        yield f"- **{subject}** may {'; '.join(sorted(acts[need]))}."


def update_page(page: str) -> str:
    """Return the page with the current table."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + "\n".join(lines()) + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(update_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
