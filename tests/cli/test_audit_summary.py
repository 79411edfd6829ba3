"""What a batch says at its end of what went wrong: calls that failed, and warnings that no call explains."""

from __future__ import annotations

from masis.cli.audit import BatchSummary
from masis.settings import Settings
from tests.llm.test_windows import EVIDENCE, _refuse_long, audited
from tests.served_replies import Request, says
from tests.serving_models import ModelServer


def lines(*runs: object) -> list[str]:
    summary = BatchSummary()
    for run in runs:
        summary.count(run)  # type: ignore[arg-type]
    return list(summary.lines(Settings()))


def test_evidence_that_did_not_fit_is_named_beside_the_calls_that_failed() -> None:
    with ModelServer(_refuse_long, issues="none") as server:
        found = lines(audited(server, EVIDENCE[0].text), audited(server, EVIDENCE[0].text))
    (cut,) = [line for line in found if "each claim was judged by the passages" in line]
    assert cut.startswith("2 warnings: ")
    (failed,) = [line for line in found if "do not fit the model's context" in line]
    assert "calls: here:m: " in failed
    assert "llama-server -c 32768" in failed


def test_claims_without_a_verdict_are_a_warning_with_its_reason() -> None:
    def silent(request: Request) -> object:
        return says({"verdicts": []}) if request.schema_name == "verdicts_reply" else None

    with ModelServer(silent, issues="none") as server:  # type: ignore[arg-type]
        found = lines(audited(server, EVIDENCE[0].text))
    assert any(line.endswith("claims are unscored: the verifier gave no verdict on this claim") for line in found)
