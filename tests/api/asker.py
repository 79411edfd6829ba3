"""The five roles as a model fills them, one that answers as a test tells it; and what
it may say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from masis.audit.loop import Roles
from masis.llm.roles.critic import ModelCritic
from masis.llm.roles.drafter import ModelDrafter
from masis.llm.roles.evaluator import ModelEvaluator
from masis.llm.roles.reviser import ModelReviser
from masis.llm.roles.verifier import Extractions, ModelVerifier
from masis.settings import Settings
from tests.llm import canned
from tests.llm.scripted_asker import ScriptedAsker


def roles(asker: ScriptedAsker) -> Roles:
    """The five roles as a model fills them, this one asked in steps, as critiques of drafts ask."""
    settings = Settings()
    return Roles(
        drafter=ModelDrafter(asker),
        verifier=ModelVerifier(asker, settings, extractions=Extractions(), in_steps=True),
        critic=ModelCritic(asker),
        reviser=ModelReviser(asker),
        evaluator=ModelEvaluator(asker, settings),
        models={"critic": asker.name},
        control=asker.control,
    )


def claims(*quotes: str) -> dict[str, Any]:
    """What the model finds asserted."""
    return {"claims": [canned.listed_claim(0, quote) for quote in quotes]}


def verdict(
    number: int, word: str, *sources: tuple[str, str, str], issue: str = ""
) -> dict[str, Any]:
    """A verdict on a claim; ``sources`` are id, stance and quote."""
    evidence = [canned.chunk_stance(*source) for source in sources]
    return canned.verdict(number, evidence=evidence, verdict=word, reasoning=issue)


def verdicts(*all_verdicts: Mapping[str, Any]) -> dict[str, Any]:
    """The verdicts on one batch."""
    return {"verdicts": list(all_verdicts)}


def critique(*issues: Mapping[str, Any], quality: float = 0.9) -> dict[str, Any]:
    """What the model objects to."""
    return canned.critique(issues=list(issues), confidence=quality, overall_quality_score=quality)


def issue(
    type_: str, severity: str, description: str, suggestion: str, location: str, *ids: str
) -> dict[str, Any]:
    """One raw issue."""
    return canned.critic_issue(
        type=type_,
        severity=severity,
        description=description,
        suggestion=suggestion,
        location=location,
        evidence_ids=list(ids),
    )
