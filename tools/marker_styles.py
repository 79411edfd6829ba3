"""Write the table of citation styles to docs/audits.md: python tools/marker_styles.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from masis.audit.markers import styles

PAGE = Path(__file__).resolve().parent.parent / "docs" / "audits.md"
BEGIN, END = "<!-- styles: python tools/marker_styles.py -->\n\n", "\n<!-- end of styles -->\n"
SHOWN = {"\n": "⏎", "|": "\\|", "\ue200": "U+E200", "\ue201": "U+E201", "\ue202": "U+E202"}
"""How a character that a table can't contain is written in an example."""


def lines() -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| style | example | what it names |"
    yield "|---|---|---|"
    for style in styles.STYLES:
        example = "".join(SHOWN.get(character, character) for character in style.example)
        yield f"| {style.name} | `{example}` | {style.explanation} |"


def update_page(page: str) -> str:
    """Return the page with the current table."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + "\n".join(lines()) + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(update_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
