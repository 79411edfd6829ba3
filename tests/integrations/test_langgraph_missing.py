"""Without the extra, the nodes for LangGraph say what to install."""

from __future__ import annotations

import sys

import pytest

from masis.errors import MissingExtra

pytestmark = pytest.mark.slow


def test_without_langgraph_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langgraph", None)
    monkeypatch.delitem(sys.modules, "masis.integrations.langgraph", raising=False)
    with pytest.raises(MissingExtra, match=r"pip install '\.\[langgraph\]'"):
        import masis.integrations.langgraph  # noqa: F401
