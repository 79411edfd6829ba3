"""Two verifiers in a row: the second checks the claims that the first left open, and the run
reports the calls and cost saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from masis import Settings, run_audit, verify_claims
from masis.api import roles
from masis.api.roles import (
    addresses,
    check_models,
    pin_versions,
    resolve_model,
    unpriced_models,
    uses_models,
)
from masis.audit.escalation import EscalatingVerifier
from masis.errors import SettingsError
from masis.offline.roles.verifier import OfflineVerifier
from masis.schema.audit import Claim, ClaimCheck, JudgedBy
from masis.schema.base import Unscored
from masis.schema.case import ClaimVerdict, Evidence
from masis.schema.providers import Price, ProviderSettings
from masis.schema.run import Run
from masis.views.batches import BatchSummary
from masis.views.spending import escalation_text
from masis.views.story import story
from tests.cases import case_of
from tests.integrations.tiny_models import save_model
from tests.rooms import needs_integrations
from tests.scripted import ContentVerifier
from tests.served_replies import Request
from tests.serving_models import ModelServer

ANSWER = "The bridge is long [1]. The bridge is old [1]. The bridge is new [1]."
CASE = case_of(ANSWER, {"1": "The bridge is long."}, case_id="1", query="How is the bridge?")
VERDICT_BY_WORD: dict[str, ClaimVerdict] = {
    "long": "supported",
    "old": "unverifiable",
    "new": "partial",
    "lost": "unscored",
}


class Screen(ContentVerifier):
    """An offline verifier whose verdict depends on one word of the claim."""

    def judge_claim(self, claim: Claim) -> ClaimCheck:
        verdicts = [verdict for word, verdict in VERDICT_BY_WORD.items() if word in claim.text]
        return _check(claim, verdicts[0])


def _check(claim: Claim, verdict: ClaimVerdict, judged_by: str = "offline") -> ClaimCheck:
    unscored = Unscored(reason="failed") if verdict == "unscored" else None
    support = None if unscored else 0.5
    return ClaimCheck(
        claim=claim,
        verdict=verdict,
        support=support,
        confidence=None,
        judged_by=judged_by,
        unscored=unscored,
    )


@dataclass
class SecondVerifier(OfflineVerifier):
    """Gives every claim the same verdict and records the claims."""

    verdict: ClaimVerdict = "supported"
    received: list[str] = field(default_factory=list)
    judged_by: JudgedBy = field(default_factory=lambda: JudgedBy(model="second", version="1"))

    def verify(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence], question: str = ""
    ) -> tuple[ClaimCheck, ...]:
        self.received += [claim.text for claim in claims]
        return tuple(_check(claim, self.verdict, "second") for claim in claims)


@pytest.fixture
def screened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roles, "OfflineVerifier", Screen)


def escalate(
    *texts: str, second: SecondVerifier | None = None, evidence: str = "A bridge."
) -> tuple[ClaimCheck, ...]:
    verifier = EscalatingVerifier(Screen(), second or SecondVerifier(), ("offline", "second"))
    return verifier.verify([Claim(text=text) for text in texts], [Evidence(id="1", text=evidence)])


def test_only_open_claims_go_to_the_second_verifier() -> None:
    second = SecondVerifier()
    checks = escalate("It is long.", "It is old.", "It is new.", "It is lost.", second=second)
    assert second.received == ["It is old.", "It is new.", "It is lost."]
    assert [check.judged_by for check in checks] == ["offline", "second", "second", "second"]
    assert {check.verdict for check in checks} == {"supported"}


@pytest.mark.parametrize("verdict", ["unverifiable", "unscored"])
def test_claims_left_open_by_the_second_verifier_are_attributed_to_it(
    verdict: ClaimVerdict,
) -> None:
    (check,) = escalate("It is old.", second=SecondVerifier(verdict))
    assert (check.verdict, check.judged_by) == (verdict, "second")


def test_without_evidence_text_no_model_is_called() -> None:
    second = SecondVerifier()
    assert [check.judged_by for check in escalate("It is old.", second=second, evidence=" ")] == [
        "offline"
    ]
    assert not second.received


# with a language model


def settings_of(server: ModelServer, **changes: object) -> Settings:
    return Settings.model_validate(
        {
            "verifier": "offline,scripted:m",
            "max_iterations": 1,
            "evaluate": "never",
            "providers": {"scripted": ProviderSettings(address=server.address)},
            "prices": {"scripted:m": Price(input=1.0, output=2.0)},
            **changes,
        }
    )


@pytest.mark.usefixtures("screened")
def test_a_language_model_is_called_only_for_open_claims() -> None:
    requests: list[Request] = []

    def record_request(request: Request) -> None:
        requests.append(request)

    with ModelServer(script=record_request) as server:
        run = run_audit(CASE, settings_of(server))
    assert [request.schema_name for request in requests] == ["verdicts_reply"]
    assert "The bridge is long" not in requests[0].text.partition("<<<CLAIMS")[2]
    assert [check.judged_by for check in run.iterations[0].claims] == [
        "offline",
        "scripted:m",
        "scripted:m",
    ]
    escalation = run.escalation
    # Nothing is saved: without the first stage, one call would cover all claims.
    assert (escalation.settled, escalation.escalated, escalation.calls, escalation.calls_saved) == (
        1,
        2,
        1,
        0,
    )
    assert escalation.cost_saved_usd == 0
    assert run.models["verifier"] == "offline,scripted:m"
    assert run.versions.offline_rules
    assert Run.model_validate_json(run.model_dump_json()) == run


@pytest.mark.usefixtures("screened")
def test_savings_are_relative_to_the_second_stage_alone() -> None:
    with ModelServer() as server:
        settings = settings_of(server)
        for batch, calls in ((8, 1), (1, 5)):
            alone = settings.with_values({"verifier": "scripted:m", "claims_batch": batch})
            assert run_audit(CASE, alone).usage.calls == calls
            run = run_audit(CASE, settings.with_values({"claims_batch": batch}))
            escalation = run.iterations[0].claim_report.escalation
            assert (run.usage.calls, escalation.calls + escalation.calls_saved) == (
                escalation.calls,
                calls,
            )


def test_settings_name_the_model_of_the_second_stage() -> None:
    with ModelServer() as server:
        settings = settings_of(server)
        assert uses_models(settings)
        assert addresses(settings) == (server.address,)
        assert unpriced_models(settings) == ()
        assert unpriced_models(settings.model_copy(update={"prices": {}})) == ("scripted:m",)
        assert roles.with_concurrency(settings, 5).providers["scripted"].concurrency == 5
        assert roles.probe_model(settings.verifier, settings).ok
    assert (
        resolve_model("offline, ollama:llama3.3", "verifier", Settings())
        == "offline,ollama:llama3.3"
    )


@pytest.mark.parametrize(
    "string", ["offline,", "offline,offline", "ollama:a,offline", "offline,ollama:a,ollama:b", ","]
)
def test_invalid_stages_are_rejected_with_the_right_syntax(string: str) -> None:
    with pytest.raises(SettingsError, match="offline,MODEL"):
        check_models(Settings(verifier=string))


def test_other_roles_have_one_stage() -> None:
    with pytest.raises(SettingsError, match="only the verifier has two stages"):
        check_models(Settings(critic="offline,ollama:a"))


# with a model on this machine


@needs_integrations
@pytest.mark.usefixtures("screened")
def test_a_local_model_can_be_the_second_stage(tmp_path: Path) -> None:
    words = {"old": (9.0, 0.0, 0.0), "new": (0.0, 0.0, 9.0)}
    folder = save_model(tmp_path / "nli", words)
    settings = Settings(verifier=f"offline,local:{folder}", max_iterations=1)
    run = run_audit(CASE, settings)
    assert [check.verdict for check in run.iterations[0].claims] == [
        "supported",
        "supported",
        "contradicted",
    ]
    assert [check.judged_by for check in run.iterations[0].claims] == [
        "offline",
        f"local:{folder}",
        f"local:{folder}",
    ]
    assert [model.file for model in run.versions.local_models] == [str(folder / "model.onnx")]
    assert (run.escalation.settled, run.escalation.escalated, run.escalation.calls) == (1, 2, 0)
    assert not uses_models(settings)
    assert pin_versions(settings).verifier.startswith(f"offline,local:{folder}#")
    (check,) = verify_claims(["The bridge is old."], ["The bridge."], settings)
    assert check.verdict == "supported"


@needs_integrations
def test_languages_unknown_to_the_offline_checks_go_to_the_model(tmp_path: Path) -> None:
    folder = save_model(
        tmp_path / "nli", {"eröffnet": (9.0, 0.0, 0.0)}, vocabulary="die brücke wurde im jahr"
    )
    claim = "Die lange Brücke über den Fluss wurde im vergangenen Jahr feierlich eröffnet."
    evidence = ["Der Bürgermeister hat die neue Brücke über den Fluss im letzten Jahr eingeweiht."]
    (alone,) = verify_claims([claim], evidence)
    assert (alone.verdict, alone.abstained, alone.judged_by) == (
        "unverifiable",
        "language",
        "offline",
    )
    (decided,) = verify_claims([claim], evidence, Settings(verifier=f"offline,local:{folder}"))
    assert (decided.verdict, decided.judged_by) == ("supported", f"local:{folder}")
    (folder / "README.md").write_text("---\nlanguage: en\n---\n")
    (undecided,) = verify_claims([claim], evidence, Settings(verifier=f"offline,local:{folder}"))
    assert (undecided.verdict, undecided.abstained) == ("unverifiable", "language")


# texts shown to users


@needs_integrations
@pytest.mark.usefixtures("screened")
def test_the_batch_summary_covers_all_runs(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "nli", {"old": (9.0, 0.0, 0.0)})
    settings = Settings(verifier=f"offline,local:{folder}", max_iterations=1)
    run, summary = run_audit(CASE, settings), BatchSummary()
    summary.count(run)
    summary.count(run)
    text = " ".join(summary.lines(settings))
    assert "settled 2 of 6 claims" in text
    assert "decided the other 4" in text
    assert ("Claims decided", [escalation_text(run.escalation)]) in [
        (row.title, row.lines) for row in story(run, 0)
    ]


@pytest.mark.usefixtures("screened")
def test_open_claims_are_counted_with_a_hint() -> None:
    run, summary = run_audit(CASE, Settings(max_iterations=1)), BatchSummary()
    assert run.unconfirmed_offline == 1
    summary.count(run)
    (line,) = [line for line in summary.lines(Settings()) if "not confirmed" in line]
    assert "1 claim of 1 answer" in line
    assert "verifier=offline,local:ORG/NAME" in line
