"""Evidence that exceeds a model's context: the most similar passages are sent, and the verdict
doesn't depend on passages that weren't read.
"""

from __future__ import annotations

import pytest

import masis
from masis.errors import ContextFull, ProviderFailed
from masis.llm.roles.evidence_window import MIN_EVIDENCE, narrow_evidence
from masis.llm.roles.prompting import RolePrompt
from masis.llm.roles.verifier import Extractions, ModelVerifier
from masis.schema.audit import Claim
from masis.schema.case import Evidence
from masis.schema.run import Run
from masis.settings import Settings
from tests.cases import case_of
from tests.llm.canned import chunk_stance, verdict
from tests.llm.scripted_asker import ScriptedAsker
from tests.serving_models import Behaviour, ModelServer, Request

FILLER = "Nothing of note was said on the matter by anyone present. " * 100
LENGTH_TEXT = "The bridge is 120 metres long."
LONG_EVIDENCE = (
    Evidence(id="1", text=f"{FILLER}{LENGTH_TEXT} {FILLER}"),
    Evidence(id="2", text=FILLER),
    Evidence(id="3", text=f"The mayor opened it in 1931. {FILLER}"),
)
CLAIM = Claim(text="The bridge is 120 metres long.", cited=("1", "2"))


def test_evidence_that_fits_is_sent_unchanged() -> None:
    fitted = narrow_evidence(LONG_EVIDENCE, [CLAIM.text], 1_000_000)
    assert fitted.evidence == LONG_EVIDENCE
    assert fitted.share == 1.0


@pytest.mark.parametrize("room", [MIN_EVIDENCE, 3_000, 9_999])
def test_a_small_context_gets_the_most_similar_passages(
    room: int,
) -> None:
    fitted = narrow_evidence(
        LONG_EVIDENCE, [CLAIM.text, "It was opened by the mayor in 1931."], room
    )
    sent = {chunk.id: chunk.text for chunk in fitted.evidence}
    assert LENGTH_TEXT in sent["1"]
    assert "The mayor opened it in 1931." in sent["3"]
    assert sum(len(chunk.text) for chunk in fitted.evidence) <= room + 200
    assert 0 < fitted.share < 1


def test_passages_are_ordered_parts_of_their_chunks() -> None:
    text = "x" * 5_000 + "\n\n \u2028" + "ends. " * 900 + "wörter" * 400
    (chunk,) = narrow_evidence((Evidence(id="1", text=text),), ["ends"], 4_000).evidence
    offset = 0
    for part in chunk.text.split("\n[...]\n"):
        assert part
        offset = text.index(part, offset)


def _small_context(prompt: RolePrompt) -> dict[str, object] | Exception:
    if len(prompt.shared) > 6_000:
        return ContextFull(
            "scripted:model: question and evidence do not fit the model's context (400)"
        )
    supported = LENGTH_TEXT in prompt.shared and "120" in prompt.task
    word, stance = ("supported", "supports") if supported else ("unsupported", "leaves_open")
    stances = [
        chunk_stance("1", stance, LENGTH_TEXT if supported else ""),
        chunk_stance("2", "leaves_open"),
    ]
    return {"verdicts": [verdict(verdict=word, evidence=stances)]}


def _verifier() -> tuple[ModelVerifier, ScriptedAsker]:
    asker = ScriptedAsker({"claims_verify": _small_context})
    return ModelVerifier(asker, Settings(), Extractions()), asker


def test_a_claim_is_judged_by_passages_if_the_evidence_doesnt_fit() -> None:
    verifier, asker = _verifier()
    (check,) = verifier.verify((CLAIM,), LONG_EVIDENCE)
    assert check.verdict == "supported"
    (quote,) = check.quotes
    assert LONG_EVIDENCE[0].text[quote.start : quote.end] == LENGTH_TEXT
    assert {reference.evidence_id: reference.finding for reference in check.references} == {
        "1": "supports",
        "2": "redundant",
    }
    notice = asker.control.calls.notices.get_nowait()
    assert notice.kind == "warning"
    assert "does not fit the context of scripted:model" in notice.message


def test_a_claim_without_a_supporting_passage_is_unconfirmed_not_unsupported() -> None:
    verifier, _ = _verifier()
    (check,) = verifier.verify((Claim(text="The bridge is red.", cited=("2",)),), LONG_EVIDENCE)
    assert (check.verdict, check.support) == ("unverifiable", None)
    assert "None of the passages that were read" in (check.issue or "")
    assert [reference.finding for reference in check.references] == ["unchecked"]


def test_later_claims_reuse_the_size_that_fit() -> None:
    verifier, asker = _verifier()
    verifier.verify((CLAIM,), LONG_EVIDENCE)
    first_round = len(asker.requests)
    verifier.verify((CLAIM,), LONG_EVIDENCE)
    assert len(asker.requests) == first_round + 1


def test_a_context_too_small_for_evidence_fails() -> None:
    asker = ScriptedAsker({"claims_verify": ContextFull("too long")})
    (check,) = ModelVerifier(asker, Settings(), Extractions()).verify((CLAIM,), LONG_EVIDENCE)
    assert check.unscored.code == ProviderFailed.code
    assert len(asker.requests) < 8


def audited(server: ModelServer, evidence: str) -> Run:
    case = case_of(f"{LENGTH_TEXT} [1]", {"1": evidence}, query="How long?")
    provider = {"providers": {"here": {"address": server.address}}}
    models = dict.fromkeys(("verifier", "critic", "evaluator", "reviser"), "here:m")
    return masis.run_audit(
        case, Settings.model_validate({**provider, **models, "max_iterations": 1})
    )


def _refuse_long(request: Request) -> Behaviour | None:
    if sum(map(len, request.messages)) < 12_000:
        return None
    message = "the request exceeds the available context size (2048 tokens), try increasing it"
    return Behaviour(
        status=400, error={"code": 400, "message": message, "type": "exceed_context_size_error"}
    )


def test_the_run_warns_about_claims_judged_by_passages() -> None:
    with ModelServer(_refuse_long, issues="none") as server:
        run = audited(server, LONG_EVIDENCE[0].text)
    (check,) = run.iterations[0].claims
    assert check.verdict == "supported"
    assert run.iterations[0].critique.unscored is not None
    assert run.needs_review
    assert (
        sum("each claim was judged by the passages" in warning.message for warning in run.warnings)
        == 1
    )
    (critic,) = [warning for warning in run.warnings if warning.step == "critique"]
    assert "llama-server -c 32768" in critic.message
