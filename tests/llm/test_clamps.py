"""The hard clamps against judges that ignore them, over the wire (the masis-evaluator spec, Problems 4 and 5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from masis.schema.case import Case
from masis.schema.run import Run
from masis.services import Workbench
from masis.settings import ROLES, Settings
from tests.llm.test_faults_by_step import settings_for
from tests.reviewing import ADA
from tests.served_replies import Behaviour, Request, says, sensible
from tests.serving_models import ModelServer

CITED = "The bridge is 120 metres long [1]."
EVIDENCE = [{"id": "1", "text": "The bridge is 120 metres long and made of steel."}]
UNCITED = tuple(f"The {what} of the bridge was painted in {1900 + number}." for number, what in enumerate(
    ("deck", "railing", "arch", "pier", "lamp", "stair", "gate", "cable", "tower", "sign")
))  # fmt: skip


def generous(request: Request) -> Behaviour | None:
    """A judge that gives 0.95 for everything; a critic that finds nothing."""
    if request.schema_name != "evaluation_reply":
        return None
    made = sensible(request)
    return says({key: 0.95 if isinstance(value, float) else value for key, value in made.items()})


def audited(tmp_path: Path, answer: str, script: object = generous) -> Run:
    case = Case.model_validate({"id": "c", "query": "How long is it?", "answer": answer, "evidence": EVIDENCE})
    with ModelServer(script, issues="none") as server:  # type: ignore[arg-type]
        settings = settings_for(server, "openai").model_copy(update={"max_iterations": 1})
        bench = Workbench.open(tmp_path / "masis.db", settings)
        bench.cases.add(ADA, [case])
        return bench.audits.audit(ADA, case)


@pytest.mark.spec("MASIS-EVAL-P5", "MASIS-EVAL-WEIGHTS", "MASIS-EVAL-LOWEST")
@pytest.mark.parametrize(
    ("answer", "faithfulness", "overall"),
    [
        (CITED, 0.95, 0.95),
        (f"{CITED} It was opened in 1931 [9].", 0.4, 0.757),
        (" ".join((CITED, *UNCITED[:4])), 0.95, 0.95),
        (" ".join((CITED, *UNCITED[:5])), 0.5, 0.792),
        (" ".join((CITED, *UNCITED)), 0.3, 0.722),
        (" ".join(("It was opened in 1931 [9].", *UNCITED)), 0.3, 0.722),
        (" ".join(("It was opened in 1931 [9].", *UNCITED[:5])), 0.4, 0.757),
    ],
    ids=["clean", "fabricated", "4 uncited", "5 uncited", "10 uncited", "both", "fabricated and 5 uncited"],
)
def test_a_judge_that_gives_095_for_everything_is_clamped(
    tmp_path: Path, answer: str, faithfulness: float, overall: float
) -> None:
    evaluation = audited(tmp_path, answer).iterations[0].evaluation
    assert evaluation
    assert evaluation.faithfulness == faithfulness
    assert evaluation.overall_score == overall
    others = (evaluation.relevance, evaluation.completeness, evaluation.reasoning_quality)
    assert others == (0.95, 0.95, 0.95)


@pytest.mark.spec("MASIS-EVAL-P5")
def test_a_critic_that_says_hallucination_where_the_citations_are_clean_bounds_faithfulness(tmp_path: Path) -> None:
    def script(request: Request) -> Behaviour | None:
        if request.schema_name == "critique_reply":
            return says(sensible(request) | {"hallucination_detected": True})
        return generous(request)

    first = audited(tmp_path, CITED, script).iterations[0]
    assert not first.citation_audit.hallucination_detected
    assert first.evaluation
    assert (first.evaluation.faithfulness, first.evaluation.overall_score) == (0.4, 0.757)


@pytest.mark.spec("MASIS-EVAL-P4")
def test_the_judge_receives_the_citation_issues_as_hard_constraints(tmp_path: Path) -> None:
    seen: list[str] = []

    def script(request: Request) -> Behaviour | None:
        if request.schema_name == "evaluation_reply":
            seen.append(request.text)
        return None

    audited(tmp_path, " ".join(("It was opened in 1931 [99].", *UNCITED[:5])), script)
    told = seen[0]
    audit = told[told.index("AUDIT") :] if "AUDIT" in told else told
    assert "99" in audit
    assert "5" in audit
    for constant in ("0.5", "0.3", "0.4"):
        assert constant in told


@pytest.mark.spec("MASIS-CRITIC-P1", "MASIS-CRITIC-P6")
def test_the_critic_judges_on_its_own_and_sees_neither_the_right_answer_nor_the_citation_issues(
    tmp_path: Path,
) -> None:
    seen: list[Request] = []

    def script(request: Request) -> Behaviour | None:
        seen.append(request)
        return None

    audited(tmp_path, f"{CITED} It was opened in 1931 [9].", script)
    critic = next(request for request in seen if request.schema_name == "critique_reply")
    assert "You are an AI Auditor." in critic.text
    assert "Evaluate the answer strictly using the provided evidence." in critic.text
    assert "citation audit" not in critic.text.lower()
    assert Settings().models() == dict.fromkeys(ROLES, "offline")


@pytest.mark.spec("MASIS-CRITIC-P1")
def test_the_auditor_is_by_default_a_stronger_model_than_the_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    from masis.api.roles import resolve_model

    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-0123456789abcdef")
    models = {role: resolve_model("openai", role, Settings()) for role in ROLES}
    assert models["critic"] == "openai:gpt-4o"
    assert models["drafter"] == models["reviser"] == "openai:gpt-4o-mini"
