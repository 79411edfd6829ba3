"""Cases of ours of the same kinds as the spec's examples, in other words and fields.

A model that reads well says that a draft assumes a condition, and names it in a revision. Offline no condition is
understood, and nothing is added to such a draft.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from masis.api.draft_critique import critique_draft
from masis.schema.drafts import CritiqueResult
from tests.api import asker as script
from tests.llm import canned
from tests.llm.scripted_asker import ScriptedAsker

HERE = Path(__file__).parent


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


CASES = read("cases.jsonl")
MORE = read("more_cases.jsonl")
EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])


def as_labelled(found: CritiqueResult, case: dict[str, Any], *, understood: bool = False) -> None:
    """``understood``: by a model; the offline checks need not see what is wrong with a draft, but never verify it."""
    types = {issue.type for issue in found.issues if issue.severity == "high"}
    if case["expect"] == "valid":
        assert found.is_valid
        assert found.issues == ()
        assert found.revised_draft is None
    elif case["expect"] == "wrong":
        assert found.needs_review
        assert found.metadata.facts_verified == 0
        if understood or not found.is_valid:
            assert not found.is_valid
            assert "unsupported" in types
    elif not understood:
        assert found.revised_draft is None
    else:
        assert not found.is_valid
        assert types == {"incomplete"}
        assert found.revised_draft is not None
        assert [name for name in case["names"] if name not in found.revised_draft] == []
        assert case["draft"] not in found.revised_draft
        assert found.revised_is_valid


def test_there_are_twenty_cases_of_every_kind() -> None:
    assert len(CASES) == len({case["id"] for case in CASES}) == 20
    assert sum(case["half"] == "held out" for case in CASES) == 10
    assert {case["expect"] for case in CASES} == {"assumes", "valid", "wrong"}


@pytest.mark.parametrize("case", [*CASES, *MORE], ids=lambda case: case["id"])
@pytest.mark.spec("DRAFT-CRITIQUE-EXAMPLES")
def test_a_case_comes_out_as_labelled_without_a_model(case: dict[str, Any]) -> None:
    as_labelled(critique_draft(case["query"], case["draft"], case["sources"], {"autoRevise": True}), case)


def replies(case: dict[str, Any]) -> dict[str, Any]:
    """What a model that reads well says of the case, and of its revision."""
    draft, first = case["draft"], case["sources"][0]
    quote = (first["id"], "supports", first["content"])
    revised = " ".join(f"{source['content'].rstrip('.')}." for source in case["sources"])
    words = {"valid": ("supported", 0.95), "wrong": ("unsupported", 0.1), "assumes": ("partial", 0.5)}
    word, support = words[case["expect"]]
    assumed = script.issue("incomplete", "high", "The draft assumes a case.", "Name the condition.", draft, first["id"])
    return canned.ALL | {
        "claims_extract": [script.claims(draft), script.claims(revised)],
        "claims_verify": [
            script.verdicts(script.verdict(1, word, support, quote, issue="Not so." if word != "supported" else "")),
            {"verdicts": [script.verdict(n, "supported", 0.95, quote) for n in range(1, 9)]},
        ],
        "critic": [script.critique(*([assumed] if case["expect"] == "assumes" else [])), script.critique()],
        "reviser": canned.revision(revised),
    }


@EVERY_CASE
@pytest.mark.spec("DRAFT-CRITIQUE-EXAMPLES")
def test_a_case_comes_out_as_labelled_with_a_scripted_model(case: dict[str, Any]) -> None:
    roles = script.roles(ScriptedAsker(replies(case)))
    as_labelled(
        critique_draft(case["query"], case["draft"], case["sources"], {"autoRevise": True}, roles=roles),
        case,
        understood=True,
    )
