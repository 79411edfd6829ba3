"""docs/api.md lists the endpoints as the table has them."""

from __future__ import annotations

from tools import api_reference


def test_the_page_lists_every_endpoint() -> None:
    page = api_reference.PAGE.read_text(encoding="utf-8")
    assert api_reference.update_page(page) == page
    assert "`POST /cases/CASE/decisions`" in page
