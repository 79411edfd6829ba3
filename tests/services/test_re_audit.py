"""A revision is audited from the start: what it invents and what it loses shows, and it is not chosen for it."""

from __future__ import annotations

import pytest

from masis.audit import loop
from masis.observers.observation import run_to_completion
from masis.schema.case import Case
from masis.schema.run import Run
from masis.settings import Settings
from tests.audit.factories import EVIDENCE
from tests.scripted import MAJOR, ScriptedCritic, ScriptedReviser, roles, said

LENGTH = "The bridge is 120 metres long [chunk_1]."
ANSWER = f"{LENGTH} It was opened in 1931 [chunk_2]."


def audited(*revisions: str, qualities: tuple[float, ...] = (0.5, 0.6)) -> Run:
    critic = ScriptedCritic(tuple(said(quality, objections=(MAJOR,)) for quality in qualities))
    filled = roles(critic=critic, reviser=ScriptedReviser(revisions))
    case = Case(id="bridge", query="How long is it?", answer=ANSWER, evidence=EVIDENCE)
    return run_to_completion(loop.audit(case, filled, Settings(max_iterations=len(revisions) + 1), run_id="r"))


def rules(run: Run, index: int) -> set[str]:
    return {issue.rule for issue in run.iterations[index].issues} - {"test"}


@pytest.mark.spec("REQ-CRITIC-012")
def test_a_revision_that_drops_supported_content_is_caught() -> None:
    run = audited(LENGTH)
    assert (rules(run, 0), rules(run, 1)) == (set(), {"dropped_content"})


def test_what_was_dropped_stays_noticed_until_it_is_back() -> None:
    run = audited(LENGTH, LENGTH.replace("The", "This"), ANSWER, qualities=(0.2, 0.4, 0.6, 0.8))
    assert [rules(run, index) for index in range(4)] == [set(), {"dropped_content"}, {"dropped_content"}, set()]


def test_a_revision_that_invents_evidence_is_caught_and_not_chosen() -> None:
    run = audited(ANSWER.replace("chunk_2", "chunk_9"))
    assert "fabricated_reference" in rules(run, 1)
    assert run.best == 0
    assert run.final_answer == ANSWER
