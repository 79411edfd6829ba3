"""The keys of the page Screening."""

from __future__ import annotations

from masis.ui.shell.keys import Key

AGREE = Key("A", "A", "Agree with the grade of the opened abstract")
PAGE_KEYS = (AGREE,)
