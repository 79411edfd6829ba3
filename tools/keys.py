"""Write the tables of keys to docs/workbench.md: python tools/keys.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from masis.ui.shell.keys import adjudication_keys, key_map, page_key_map

PAGE = Path(__file__).resolve().parent.parent / "docs" / "workbench.md"
BEGIN, END = "<!-- keys: python tools/keys.py -->\n\n", "\n<!-- end of keys -->\n"


def lines() -> Iterator[str]:
    """Yield the lines of the tables: lists, the page of a case, and an adjudication."""
    lists = page_key_map("queue")["keys"][:2]
    adjudication = [group for group in adjudication_keys() if group not in key_map()]
    for title, groups in (
        ("In lists", lists),
        ("On a case", key_map()),
        ("In an adjudication", adjudication),
    ):
        yield f"| {title} | |"
        yield "|---|---|"
        for group in groups:
            for shown, does in group["keys"]:
                yield f"| `{shown}` | {does} |"
        yield ""


def update_page(page: str) -> str:
    """Return the page with the current tables."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + "\n".join(lines()) + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(update_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
