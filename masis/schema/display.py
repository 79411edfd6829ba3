"""How a notebook shows a record.

The top-level package registers its view here, since records may not import views.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar


class OneLine:
    """A record that Python prints as the one line of its ``__repr__``."""

    def __str__(self) -> str:
        return repr(self)


class HtmlDisplay(OneLine):
    """A record that a notebook shows as HTML, or as plain text if no view is registered."""

    html_view: ClassVar[Callable[[Any], str] | None] = None

    def _repr_html_(self) -> str | None:
        view = HtmlDisplay.html_view
        return view(self) if view else None
