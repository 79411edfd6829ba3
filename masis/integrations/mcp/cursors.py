"""Where the next page begins: opaque to the client, and bound to what it asked for."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from typing import Any

from masis.errors import InputError

MOST_PAGES = 100_000


def cursor(page: int, asked: Any) -> str:
    """The cursor of a page of what was asked for."""
    return base64.urlsafe_b64encode(json.dumps([page, _digest(asked)]).encode()).decode().rstrip("=")


def page_of(given: str | None, asked: Any) -> int:
    """The page that a cursor names; 1 without one. Raises InputError for a cursor of something else."""
    if given is None:
        return 1
    try:
        page, digest = json.loads(base64.urlsafe_b64decode(given + "=" * (-len(given) % 4)))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        page, digest = None, None
    if not isinstance(page, int) or isinstance(page, bool) or not 1 <= page <= MOST_PAGES or digest != _digest(asked):
        raise InputError(
            "is not a cursor of this list with these filters",
            cure="Give next_cursor as it came, with the same filters, or leave it out to begin at the first page.",
            field="cursor",
        )
    return page


def _digest(asked: Any) -> str:
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()[:12]
