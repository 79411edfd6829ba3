"""How a notebook shows a record: the package registers its view here, since records know of no
views.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar


class OneLine:
    """A record of many parts, which Python prints as the one line that its ``__repr__`` gives."""

    def __str__(self) -> str:
        return repr(self)


class HtmlDisplay(OneLine):
    """A record that a notebook shows as HTML; as its plain text where no view is registered."""

    html_view: ClassVar[Callable[[Any], str] | None] = None

    def _repr_html_(self) -> str | None:
        view = HtmlDisplay.html_view
        return view(self) if view else None
