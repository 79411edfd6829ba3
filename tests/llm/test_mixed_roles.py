"""Any mix of offline roles and roles with a model audits a case: what one leaves behind, every other can work on."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from masis.audit import loop
from masis.audit.loop import Roles
from masis.llm.roles.critic import ModelCritic
from masis.llm.roles.drafter import ModelDrafter
from masis.llm.roles.evaluator import ModelEvaluator
from masis.llm.roles.prompting import Prompt
from masis.llm.roles.reviser import ModelReviser
from masis.llm.roles.verifier import Extractions, ModelVerifier
from masis.observers.observation import run_to_completion
from masis.offline.roles.critic import OfflineCritic
from masis.offline.roles.drafter import OfflineDrafter
from masis.offline.roles.evaluator import OfflineEvaluator
from masis.offline.roles.reviser import NOTHING_SAFE, OfflineReviser
from masis.offline.roles.verifier import OfflineVerifier
from masis.schema.case import Case, Evidence
from masis.schema.run import Run
from masis.settings import Settings
from tests.llm import canned
from tests.llm.scripted_asker import ScriptedAsker

ROLES = ("drafter", "verifier", "critic", "reviser", "evaluator")
EVIDENCE = (
    Evidence(id="chunk_1", text="The Halden bridge is 120 metres long. It is made of steel."),
    Evidence(id="chunk_2", text="It was opened to traffic in 1931 by the mayor."),
)
WRONG = "The Halden bridge is 90 metres long and was opened in 1931 [chunk_1][chunk_2]. It is made of steel [chunk_2]."
RIGHT = "The Halden bridge is 120 metres long and was opened in 1931 [chunk_1][chunk_2]. It is made of steel [chunk_1]."


def verdicts(prompt: Prompt) -> dict[str, Any]:
    """A verdict for each claim that was sent, by what it says."""
    rows = prompt.task.partition("<<<CLAIMS ")[2].splitlines()[1:]
    found = [json.loads(row) for row in itertools.takewhile(lambda row: row.startswith("{"), rows)]
    return {"verdicts": [verdict(row["number"], row["claim"], row["cited"]) for row in found]}


def verdict(number: int, claim: str, cited: list[str]) -> dict[str, Any]:
    silent = [canned.supporting(chunk, "silent") for chunk in cited]
    if "90 metres" in claim:
        conflict = {"evidence_id": "chunk_1", "claim_words": "90", "evidence_words": "120", "explanation": "Another."}
        denied = canned.supporting("chunk_1", "contradicts", "120 metres long")
        return canned.verdict(
            number,
            verdict="contradicted",
            support=0.1,
            issue="It is 120 metres.",
            evidence=[*silent, denied],
            contradictions=[conflict],
        )
    says = canned.supporting("chunk_2") if "1931" in claim else canned.supporting("chunk_1")
    return canned.verdict(number, evidence=[*silent, says])


def replies() -> dict[str, Any]:
    """A model that finds the wrong length and the wrong reference, and puts them right."""
    objection = canned.raised(location="90 metres long", severity="high")
    return {
        "drafter": {"reasoning_steps": ["chunk_1 gives the length."], "answer": WRONG},
        "claims_extract": {
            "claims": [
                {"quote": "The Halden bridge is 90 metres long", "claim": "The Halden bridge is 90 metres long."},
                {"quote": "was opened in 1931", "claim": "The Halden bridge was opened in 1931."},
            ]
        },
        "claims_verify": verdicts,
        "completeness": {"missing": []},
        "critic": [canned.critique(issues=[objection], overall_quality_score=0.4), canned.critique()],
        "reviser": canned.revision(RIGHT, issues_addressed=["i1"]),
        "evaluator": canned.evaluation(),
    }


def audited(with_model: frozenset[str], answer: str | None) -> Run:
    asker, settings = ScriptedAsker(replies()), Settings()
    offline = {
        "drafter": OfflineDrafter(),
        "verifier": OfflineVerifier(),
        "critic": OfflineCritic(),
        "reviser": OfflineReviser(),
        "evaluator": OfflineEvaluator(),
    }
    asked = {
        "drafter": ModelDrafter(asker),
        "verifier": ModelVerifier(asker, settings, Extractions()),
        "critic": ModelCritic(asker),
        "reviser": ModelReviser(asker),
        "evaluator": ModelEvaluator(asker, settings),
    }
    filled: dict[str, Any] = {role: asked[role] if role in with_model else offline[role] for role in ROLES}
    case = Case(
        id="bridge", query="How long is the Halden bridge, and when was it opened?", answer=answer, evidence=EVIDENCE
    )
    return run_to_completion(loop.audit(case, Roles(**filled, models={}), settings, run_id="r"))


MIXES = [frozenset(mix) for size in range(6) for mix in itertools.combinations(ROLES, size)]


@pytest.mark.parametrize("mix", MIXES, ids=lambda mix: "+".join(sorted(mix)) or "offline")
@pytest.mark.parametrize("answer", [WRONG, None], ids=["answer", "draft"])
def test_every_mix_of_roles_audits_a_case_to_its_end(mix: frozenset[str], answer: str | None) -> None:
    run = audited(mix, answer)
    assert run.termination_reason in ("no_issues", "convergence", "max_iterations")
    assert all(each.code == "CRITIC-ERR-004" or each.message == NOTHING_SAFE for each in run.warnings)
    assert run.final_quality_score is not None
    for iteration in run.iterations:
        for check in iteration.claims:
            assert iteration.answer[check.claim.start : check.claim.end] == check.claim.text
        for issue in iteration.issues:
            if issue.start is not None and issue.source != "citations":
                assert iteration.answer[issue.start : issue.end] == issue.quote


@pytest.mark.parametrize(
    "mix", [mix for mix in MIXES if "drafter" not in mix], ids=lambda mix: "+".join(sorted(mix)) or "offline"
)
def test_every_mix_finds_the_wrong_length_and_puts_it_right(mix: frozenset[str]) -> None:
    run = audited(mix, WRONG)
    assert any(check.verdict == "contradicted" for check in run.iterations[0].claims)
    assert "misattributed_reference" in {issue.rule for issue in run.iterations[0].issues}
    assert "120 metres" in run.final_answer
    assert "90 metres" not in run.final_answer
