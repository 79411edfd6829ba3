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


def claims(prompt: Prompt) -> dict[str, Any]:
    """The clauses of each sentence that was sent, and a verdict on each, by what it says."""
    lines = prompt.task.partition("<<<ANSWER ")[2].splitlines()[1:]
    rows = [json.loads(line) for line in itertools.takewhile(lambda line: line.startswith("{"), lines)]
    clauses = [
        (row, words) for row in rows for words in (row["text"].split(" and ") if "1931" in row["text"] else [""])
    ]
    return {
        "claims": [canned.listed(n, row["sentence"], words) for n, (row, words) in enumerate(clauses, 1)],
        "verdicts": [
            verdict(n, words or row["text"], row.get("cites", [])) for n, (row, words) in enumerate(clauses, 1)
        ],
        "missing": [],
    }


def verdict(number: int, claim: str, cited: list[str]) -> dict[str, Any]:
    silent = [canned.supporting(chunk, "silent") for chunk in cited]
    if "90 metres" in claim:
        denied = canned.supporting("chunk_1", "contradicts", "120", "90")
        return canned.verdict(
            number, verdict="contradicted", support=0.1, reasoning="It is 120 metres.", evidence=[*silent, denied]
        )
    says = canned.supporting("chunk_2") if "1931" in claim else canned.supporting("chunk_1")
    return canned.verdict(number, evidence=[*silent, says])


def replies() -> dict[str, Any]:
    """A model that finds the wrong length and the wrong reference, and puts them right."""
    objection = canned.raised(location="90 metres long", severity="high")
    return {
        "drafter": {"reasoning_steps": ["chunk_1 gives the length."], "answer": WRONG},
        "claims": claims,
        "critic": [canned.critique(issues=[objection], overall_quality_score=0.4), canned.critique()],
        "reviser": canned.revision(RIGHT),
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
    if answer == WRONG:
        assert any(check.verdict == "contradicted" for check in run.iterations[0].claims)
        assert "misattributed_reference" in {issue.rule for issue in run.iterations[0].issues}
        assert "120 metres" in run.final_answer
        assert "90 metres" not in run.final_answer
