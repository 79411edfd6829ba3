"""A workbench with audited cases that a guarantee may cover, made quickly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from masis.offline.matching.key_points import VERSION as OFFLINE_RULES
from masis.schema.exam import JUDGING_ROLES
from masis.schema.review import Decision
from masis.schema.run import ReviewReason, RunVersions
from masis.services import Workbench
from masis.settings import OFFLINE, Settings
from tests.reviewing import ADA
from tests.store.factories import a_case, a_run, an_iteration

DOUBT = ReviewReason(code="low_confidence", message="Confidence is low.")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    opened = Workbench.open(tmp_path / "trust.db", Settings(spot_check_share=0))
    yield opened
    opened.close()


@pytest.fixture
def audited(bench: Workbench) -> Callable[..., None]:
    """Store audited cases ``case-FIRST`` to ``case-LAST``, each of a question of its own."""

    return partial(store_audited, bench, bench.settings)


def store_audited(
    bench: Workbench,
    settings: Settings,
    first: int,
    last: int,
    *,
    confidence: float = 0.6,
    **keys: Any,
) -> None:
    """Store cases ``case-FIRST`` to ``case-LAST``, audited with these settings."""
    for number in range(first, last):
        case = a_case(f"case-{number}", query=f"Question {number}?", **keys.get("case", {}))
        bench.cases.add(ADA, [case])
        iteration = an_iteration(invalid=(), confidence=confidence, quality=0.6)
        made = {
            "review_reasons": (DOUBT,),
            "iterations": (iteration,),
            "settings": settings.of_audit(),
            "models": dict.fromkeys(JUDGING_ROLES, OFFLINE),
            "versions": RunVersions(app="0.1.0", rubric="1", offline_rules=OFFLINE_RULES),
        }
        bench.audits.store_run(ADA, a_run(case, f"run-{number}", **(made | keys.get("run", {}))))


def decide_original(
    bench: Workbench, number: int, verdict: str = "approve", *, blind: bool = True, **keys: Any
) -> None:
    """Decide case ``case-NUMBER`` about its original answer."""
    content = {
        "reviewer": "Ada",
        "reason": "Says more than the evidence",
        "corrected_answer": "No.",
    } | keys
    decision = Decision(
        case_id=f"case-{number}",
        run_id=f"run-{number}",
        iteration=1,
        verdict=verdict,
        machine_shown=() if blind else ("scores",),
        **content,
    )
    bench.store.decisions.append(decision)
