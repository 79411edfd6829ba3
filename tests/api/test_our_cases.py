"""Cases of ours of the same kinds as the spec's examples, in other words and fields.

Offline no condition is understood, and nothing is added to a draft that assumes one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from masis.api.draft_critique import critique_draft

HERE = Path(__file__).parent


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


CASES = read("cases.jsonl")
MORE = read("more_cases.jsonl")


def test_every_kind_has_twenty_cases() -> None:
    assert len(CASES) == len({case["id"] for case in CASES}) == 20
    assert sum(case["half"] == "held out" for case in CASES) == 10
    assert {case["expect"] for case in CASES} == {"assumes", "valid", "wrong"}


@pytest.mark.parametrize("case", [*CASES, *MORE], ids=lambda case: case["id"])
@pytest.mark.spec("DRAFT-CRITIQUE-EXAMPLES")
def test_offline_results_match_the_labels(case: dict[str, Any]) -> None:
    """The offline checks need not see what is wrong with a draft, but they never verify it, nor add
    a condition.
    """
    found = critique_draft(case["query"], case["draft"], case["sources"], {"autoRevise": True})
    if case["expect"] == "valid":
        assert (found.is_valid, found.issues, found.revised_draft) == (True, (), None)
    elif case["expect"] == "wrong":
        assert (found.needs_review, found.metadata.facts_verified) == (True, 0)
        types = {issue.type for issue in found.issues if issue.severity == "high"}
        assert found.is_valid or "unsupported" in types
    else:
        assert found.revised_draft is None
