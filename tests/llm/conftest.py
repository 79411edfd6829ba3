"""A key for the scripted provider, and nothing known of servers that earlier tests had at the same
address.
"""

from __future__ import annotations

import pytest

from masis.llm.client import server_capabilities
from tests.llm.asking import KEY


@pytest.fixture(autouse=True)
def _a_key_and_no_habits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    server_capabilities._known.clear()
