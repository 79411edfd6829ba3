"""The verifier with a model: its prompts, its calls, and calls that fail."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from masis.api.audits import audit_citations
from masis.audit.claims import ClaimResults
from masis.errors import BadReply, ProviderFailed, StepError
from masis.llm.roles.prompting import RolePrompt, load
from masis.llm.roles.verifier import Extractions, ModelVerifier
from masis.schema.audit import Claim
from masis.schema.case import Evidence
from masis.settings import Settings
from tests.audit.factories import EVIDENCE
from tests.llm.canned import listed_claim, verdict
from tests.llm.scripted_asker import MARK, ScriptedAsker

LENGTH = Claim(
    text="It is 120 metres long [chunk_1].",
    markers=((22, 31),),
    start=0,
    end=32,
    sentence=0,
    cited=("chunk_1",),
)
YEAR = Claim(text="It opened in 1932.", start=33, end=51, sentence=1)


def verifier(
    reply: Any, missing: Any = None, **changes: Any
) -> tuple[ModelVerifier, ScriptedAsker]:
    """Return a verifier and its model, which gives this reply or this list of verdicts."""
    is_reply = isinstance(reply, dict | str | Exception | tuple) or callable(reply)
    replies = reply if is_reply else {"verdicts": reply}
    asker = ScriptedAsker({"claims_verify": replies, "completeness": missing or {"missing": []}})
    return ModelVerifier(asker, Settings(**changes), Extractions()), asker


def check_claims(reply: Any, *claims: Claim, missing: Any = None, **changes: Any) -> ClaimResults:
    model_verifier, _ = verifier(reply, missing, **changes)
    return model_verifier.check(
        claims or (LENGTH,), "How long is it?", "It is long.", EVIDENCE, completeness=True
    )


def test_without_chunk_texts_no_model_is_called() -> None:
    model_verifier, asker = verifier([])
    empty = (Evidence(id="chunk_1", text=" "),)
    results = model_verifier.check(
        [LENGTH], "How long is it?", "It is long.", empty, completeness=True
    )
    assert [check.verdict for check in results.checks] == ["unverifiable"]
    assert asker.requests == []


@pytest.mark.spec("DRAFT-CRITIQUE-CACHE")
def test_claims_are_verified_in_numbered_batches() -> None:
    claims = [
        LENGTH.model_copy(update={"text": f"It has {n} arches.", "markers": (), "start": n})
        for n in range(10)
    ]
    model_verifier, asker = verifier([verdict(number) for number in range(1, 9)], claims_batch=4)
    checks = model_verifier.verify(claims, EVIDENCE)
    assert [check.claim for check in checks] == claims
    assert {check.verdict for check in checks} == {"supported"}
    batches = sorted(
        (claim_rows(request.prompt) for request in asker.requests),
        key=lambda rows: str(rows[0]["claim"]),
    )
    assert [[row["number"] for row in rows] for rows in batches] == [
        [1, 2, 3, 4],
        [1, 2, 3, 4],
        [1, 2],
    ]


def test_batches_and_completeness_run_in_parallel() -> None:
    all_calls_running = threading.Barrier(3, timeout=20)

    def reply_when_all_run(content: dict[str, Any]) -> Any:
        def wait(prompt: RolePrompt) -> dict[str, Any]:
            all_calls_running.wait()
            return content

        return wait

    model_verifier, _ = verifier(
        reply_when_all_run({"verdicts": [verdict(1)]}),
        reply_when_all_run({"missing": []}),
        claims_batch=1,
    )
    results = model_verifier.check(
        [LENGTH, YEAR], "How long is it?", "It is long.", EVIDENCE, completeness=True
    )
    assert [check.verdict for check in results.checks] == ["supported", "supported"]


@pytest.mark.parametrize(
    ("failure", "code", "raw"),
    [
        (ProviderFailed("the provider is down"), "CRITIC-ERR-003", None),
        (
            BadReply("the reply was cut off", kind="cut_off", raw='{"verd'),
            "CRITIC-ERR-001",
            '{"verd',
        ),
        ("All of it is supported.", "CRITIC-ERR-001", "All of it is supported."),
        ('{"verdicts": [{"number": 1}]}', "CRITIC-ERR-001", '{"verdicts": [{"number": 1}]}'),
    ],
)
def test_a_failed_batch_leaves_only_its_claims_unscored(
    failure: Any, code: str, raw: str | None
) -> None:
    def reply(prompt: RolePrompt) -> Any:
        return {"verdicts": [verdict(1)]} if "1932" in prompt.task else failure

    results = check_claims(reply, LENGTH, YEAR, claims_batch=1)
    first, second = results.checks
    assert (first.verdict, first.support, second.verdict) == ("unscored", None, "supported")
    assert (first.unscored.code, first.unscored.raw) == (code, raw)


@pytest.mark.spec("DRAFT-CRITIQUE-COMPLETENESS")
def test_a_missing_point_is_located_in_the_evidence() -> None:
    points = [
        {
            "description": "It opened in 1931.",
            "evidence_id": "Chunk 2",
            "quote": "opened in 1931",
            "importance": 80,
        },
        {"description": "It is red.", "evidence_id": None, "quote": None, "importance": "very"},
        {"description": " ", "evidence_id": None, "quote": None, "importance": 1},
    ]
    first, second = check_claims([verdict()], missing={"missing": points}).missing
    assert (first.evidence_id, first.weight) == ("chunk_2", 0.8)
    assert EVIDENCE[1].text[first.start : first.end] == "opened in 1931"
    assert (second.evidence_id, second.start, second.weight) == (None, None, 0.5)


def test_failed_completeness_keeps_the_verdicts() -> None:
    results = check_claims([verdict()], missing=BadReply("refused", kind="refused", raw="No."))
    assert [check.verdict for check in results.checks] == ["supported"]
    assert results.missing == ()
    assert (results.completeness_unscored.code, results.completeness_unscored.raw) == (
        "CRITIC-ERR-001",
        "No.",
    )


@pytest.mark.spec("DRAFT-CRITIQUE-OPTIONS")
def test_completeness_is_checked_only_if_enabled() -> None:
    model_verifier, asker = verifier([verdict()])
    model_verifier.check([LENGTH], "How long is it?", "It is long.", EVIDENCE, completeness=False)
    assert [request.file for request in asker.requests] == ["claims_verify"]


def test_the_verifier_receives_claims_without_markers_and_their_citations() -> None:
    model_verifier, asker = verifier([verdict()])
    model_verifier.verify(
        [LENGTH.model_copy(update={"statement": "The bridge is 120 metres long."})], EVIDENCE
    )
    (row,) = claim_rows(asker.requests[0].prompt)
    assert row == {
        "number": 1,
        "claim": "It is 120 metres long .",
        "meaning": "The bridge is 120 metres long.",
        "cites": ["chunk_1"],
    }


def test_checks_record_their_prompts() -> None:
    model_verifier, asker = verifier([])
    for in_steps, name in ((False, "claims"), (True, "claims_verify")):
        model_verifier = ModelVerifier(asker, model_verifier.settings, in_steps=in_steps)
        assert model_verifier.judged_by.version == load(name).version


def claim_rows(prompt: RolePrompt) -> list[dict[str, Any]]:
    """Return the rows of claims in a prompt."""
    body = prompt.task.partition(f"<<<CLAIMS {MARK}>>>\n")[2].partition(
        f"\n<<<END CLAIMS {MARK}>>>"
    )[0]
    return [json.loads(line) for line in body.splitlines()]


# Extracting the claims of an answer

ANSWER = (
    "The bridge is 120 metres long [chunk_1] and it opened in 1931 [chunk_2]. How wide is it? It is"
    " **red**."
)


def extract_claims(
    asker: ScriptedAsker, answer: str = ANSWER, cache: Extractions | None = None, **changes: Any
) -> tuple[Claim, ...]:
    verifier = ModelVerifier(asker, Settings(**changes), cache or Extractions())
    return verifier.extract(answer, audit_citations(answer, EVIDENCE), "How long is it?")


@pytest.mark.spec("DRAFT-CRITIQUE-CACHE")
def test_repeated_answers_use_cached_extractions() -> None:
    asker, cache = (
        ScriptedAsker({"claims_extract": {"claims": [listed_claim(sentence=3)]}}),
        Extractions(),
    )
    assert extract_claims(asker, cache=cache) == extract_claims(asker, cache=cache)
    assert len(asker.requests) == 1
    extract_claims(asker, answer="Another answer.", cache=cache)
    other = ScriptedAsker(asker.replies, name="another:model")
    extract_claims(other, cache=cache)
    assert (len(asker.requests), len(other.requests)) == (2, 1)


def test_a_failed_extraction_isnt_cached() -> None:
    asker, cache = (
        ScriptedAsker({"claims_extract": [ProviderFailed("down"), {"claims": []}]}),
        Extractions(),
    )
    with pytest.raises(ProviderFailed):
        extract_claims(asker, cache=cache)
    assert extract_claims(asker, cache=cache)


def test_unused_extractions_are_evicted() -> None:
    cache = Extractions(size=2)
    for key in "abc":
        cache.keep(key, ())
        cache.get("a")
    assert [cache.get(key) is None for key in "abc"] == [False, True, False]


@pytest.mark.spec("DRAFT-CRITIQUE-OPTIONS")
def test_without_the_facts_check_no_claims_are_requested() -> None:
    asker = ScriptedAsker({})
    assert extract_claims(asker, check_factual=False) == ()
    assert extract_claims(asker, answer="  ") == ()
    assert asker.requests == []


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ProviderFailed("down"), "CRITIC-ERR-003"),
        (BadReply("cut off", kind="cut_off"), "CRITIC-ERR-001"),
        ("1. The bridge is long.", "CRITIC-ERR-001"),
    ],
)
def test_a_failed_extraction_is_reported(failure: Any, code: str) -> None:
    with pytest.raises(StepError) as raised:
        extract_claims(ScriptedAsker({"claims_extract": failure}))
    assert raised.value.code == code
