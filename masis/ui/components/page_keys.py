"""The keys of every page but an open case: its decision form listens itself."""

from __future__ import annotations

from masis.ui.components import registered
from masis.ui.shell.keys import page_key_map

_KEYS = registered("page_keys", "key_sheet")


def page_keys(page: str) -> None:
    """Listen for the keys of a page, and show them on H or ?; to be drawn after the page.

    Args:
        page: the last part of its address, empty for the overview.

    """
    _KEYS(data=page_key_map(page), key="page-keys")
