"""Set a key for the scripted provider and forget server capabilities learned by earlier tests.

Servers of different tests can get the same port, and capabilities are stored by address.
"""

from __future__ import annotations

import pytest

from masis.llm.client import server_capabilities
from tests.llm.asking import KEY


@pytest.fixture(autouse=True)
def _set_key_and_forget_capabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    server_capabilities._known.clear()
