"""An issue is fixed only where what it accused is gone or confirmed; until then it keeps its severity and its cost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from masis.audit import loop
from masis.audit.carried import carried
from masis.audit.citations import audit_citations
from masis.audit.critique import Objection
from masis.observers.observation import run_to_completion
from masis.schema.audit import Claim, ClaimCheck, Issue
from masis.schema.case import Evidence
from masis.schema.run import Run
from masis.settings import Settings
from tests.audit import factories
from tests.audit.factories import EVIDENCE, claimed, issue
from tests.scripted import ContentVerifier, ScriptedCritic, ScriptedReviser, roles, said, ticking

RIGHT = "The bridge is 120 metres long [chunk_1]."
INVENTED = "Its mayor collects antique silver spoons from Portugal"
FAULTY = f"{RIGHT} {INVENTED} [chunk_99]."
BARE = f"{RIGHT} {INVENTED}."


class Undecided(ContentVerifier):
    """Confirms what the evidence says of the bridge, and leaves the rest open."""

    def verify(self, claims: Sequence[Claim], evidence: Sequence[Evidence]) -> tuple[ClaimCheck, ...]:
        return tuple(
            check if "120 metres" in check.claim.text else check.model_copy(update={"verdict": "unverifiable"})
            for check in super().verify(claims, evidence)
        )


def run(answer: str, *revisions: str, critic: ScriptedCritic | None = None, confirming: bool = False) -> Run:
    """The run of an answer that a reviser, as fluent as any model, rewrites to these texts in turn."""
    filled = roles(
        verifier=ContentVerifier() if confirming else Undecided(),
        critic=critic or ScriptedCritic([said(0.9)]),
        reviser=ScriptedReviser(revisions),
    )
    work = loop.audit(factories.case(answer, evidence=list(EVIDENCE)), filled, Settings(), run_id="r1", clock=ticking())
    return run_to_completion(work)


@pytest.mark.spec("MASIS-CRITIC-P3", "MASIS-CRITIC-P6", "MASIS-EVAL-P5", "REQ-CRITIC-010")
@pytest.mark.parametrize(
    "revised",
    [
        BARE,
        f"{RIGHT} {INVENTED} [citation needed].",
        f"{RIGHT} {INVENTED} [chunk_2].",
        f"{RIGHT} The mayor there collects antique silver spoons from Portugal.",
        f"{RIGHT} {INVENTED}, 14 of them.",
        f"{RIGHT} Its mayor collects antique spoons. They are of silver from Portugal.",
    ],
)
def test_a_sentence_that_lost_its_invented_marker_keeps_its_issue_and_what_that_costs(revised: str) -> None:
    first, second = run(FAULTY, revised).iterations[:2]
    [before] = [each for each in first.issues if each.rule == "fabricated_reference"]
    [after] = [each for each in second.issues if each.rule == "fabricated_reference"]
    assert (after.key, after.severity, after.carried_from) == (before.key, "critical", 1)
    assert "from Portugal" in second.answer[after.start : after.end]
    assert second.citation_audit.invalid_citations == ()
    assert second.citation_audit.penalty_factor <= first.citation_audit.penalty_factor == 0.5
    assert second.quality_score is not None
    assert first.quality_score is not None
    assert second.quality_score <= first.quality_score
    assert second.critique.hallucination_detected
    assert second.critique.has_major_issues
    assert second.evaluation is not None
    assert second.evaluation.faithfulness == 0.4


def test_it_is_carried_from_one_iteration_to_the_next_and_counted_once() -> None:
    critic = ScriptedCritic([said(0.5), said(0.7), said(0.9)])
    found = run(FAULTY, BARE, BARE.replace("antique", "old"), critic=critic)
    third = found.iterations[2]
    assert [each.carried_from for each in third.issues if each.rule == "fabricated_reference"] == [1]
    assert third.citation_audit.penalty_factor == pytest.approx(0.45)
    assert third.issues[-1].reason.count("still stands") == 1
    assert len({each.id for each in third.issues}) == len(third.issues)


@pytest.mark.parametrize(
    ("revised", "confirming"),
    [
        (RIGHT, False),
        (f"{RIGHT} The evidence provided does not say whether its mayor collects spoons.", False),
        (f"{RIGHT} It opened in 1931 [chunk_2].", False),
        (BARE, True),
    ],
)
def test_an_issue_is_fixed_where_the_sentence_is_gone_or_confirmed(revised: str, confirming: bool) -> None:
    second = run(FAULTY, revised, confirming=confirming).iterations[1]
    assert "fabricated_reference" not in {each.rule for each in second.issues}
    assert second.citation_audit.carried_references == ()
    assert not second.critique.hallucination_detected


def test_a_marker_that_goes_with_a_list_of_sources_accused_no_sentence() -> None:
    second = run(f"{RIGHT}\n\nSources: [chunk_1], [chunk_99]", f"{RIGHT}\n\nSources: [chunk_1]").iterations[1]
    assert second.issues == ()


def test_what_a_critic_objected_to_stays_open_until_it_is_gone_even_if_the_next_critique_is_silent() -> None:
    wrong = Objection("factual", "test", "high", "Nobody says so.", "No source.", "Drop it.", quote=INVENTED)
    unclear = Objection("ambiguity", "unclear", "high", "Which spoons?", "Vague.", "Say which.", quote=INVENTED)
    critic = ScriptedCritic([said(0.5, objections=(wrong, unclear)), said(0.9), said(0.9)])
    second, third = run(BARE, f"Yes. {BARE}", RIGHT, critic=critic).iterations[1:]
    assert [(each.rule, each.carried_from) for each in second.issues if each.source == "critic"] == [("test", 1)]
    assert second.critique.has_major_issues
    assert third.issues == ()
    again = ScriptedCritic([said(0.5, objections=(wrong,)), said(0.9, objections=(wrong,))])
    second = run(BARE, f"Yes. {BARE}", critic=again).iterations[1]
    assert [(each.rule, each.carried_from) for each in second.issues if each.source == "critic"] == [("test", None)]


WRONG = "The old bridge over the fjord is 510 metres long [chunk_1]."


@pytest.mark.parametrize(
    ("revised", "verdict", "open_still"),
    [
        (WRONG, "unverifiable", True),
        (WRONG.replace(" [chunk_1]", ""), "unverifiable", True),
        (WRONG.replace("old", "ancient"), "unverifiable", True),
        (WRONG.replace("510", "410"), "unverifiable", False),
        (WRONG.replace("is 510", "is not 510"), "unverifiable", False),
        (WRONG, "supported", False),
        (WRONG, "contradicted", False),  # raised again by the verdict itself
        ("The toll is 3 euros.", "unverifiable", False),
    ],
)
def test_a_contradicted_claim_is_gone_where_the_figure_or_the_negation_changed(
    revised: str, verdict: str, open_still: bool
) -> None:
    accused = issue(
        source="claims", rule="contradicted_claim", type="contradiction", quote=WRONG, start=0, end=len(WRONG)
    )
    before = claimed(WRONG, "contradicted", issues=(accused,))
    after = claimed(revised, verdict)
    raised: tuple[Issue, ...] = (accused,) if verdict == "contradicted" else ()
    found = carried(before, revised, audit_citations(revised, EVIDENCE), after.claims, raised)
    assert [(each.severity, each.quote) for each in found] == ([("high", revised)] if open_still else [])
