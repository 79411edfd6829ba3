"""What Health says of the evidence critic, and the demo's screenings."""

from __future__ import annotations

import pytest

from masis.screening.services import health


def test_health_says_that_the_evidence_critic_graded_an_abstract() -> None:
    assert health.check_evidence_critic().message == "graded a small abstract"


def test_a_failing_evidence_critic_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError("no such file")

    monkeypatch.setattr(health, "screen_abstracts", broken)
    assert not health.check_evidence_critic().ok
