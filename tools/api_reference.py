"""Write the table of endpoints into docs/api.md: python tools/api_reference.py."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from masis.schema.actor import PERMISSIONS
from masis.server import api
from masis.server.endpoints import ENDPOINTS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
BEGIN = "<!-- endpoints: made by tools/api_reference.py -->\n"
END = "<!-- end of endpoints -->\n"


def lines() -> Iterator[str]:
    """Yield the lines of the table, one per endpoint of ``masis/server/api.py``."""
    yield "| address | what it does | role |"
    yield "|---|---|---|"
    for endpoint in ENDPOINTS:
        if endpoint.handler.__module__ != api.__name__:
            continue
        path = re.sub(r"\{(\w+)(?::path)?\}", lambda match: match[1].upper(), endpoint.path)
        summary = endpoint.description.split("\n\n")[0].replace("\n", " ").replace("``", "`")
        yield f"| `{endpoint.method} {path}` | {summary} | {PERMISSIONS[endpoint.requires]} |"


def update_page(page: str) -> str:
    """Return the page with the current table."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + "\n".join(lines()) + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(update_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
