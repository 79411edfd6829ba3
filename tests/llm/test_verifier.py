"""The verifier with a model: what it asks, in which calls, and what becomes of calls that fail."""

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
from tests.llm.canned import listed, verdict
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
    given: Any, missing: Any = None, **changes: Any
) -> tuple[ModelVerifier, ScriptedAsker]:
    replies = (
        given
        if isinstance(given, dict | str | Exception | tuple) or callable(given)
        else {"verdicts": given}
    )
    asker = ScriptedAsker({"claims_verify": replies, "completeness": missing or {"missing": []}})
    return ModelVerifier(asker, Settings(**changes), Extractions()), asker


def checked(given: Any, *claims: Claim, missing: Any = None, **changes: Any) -> ClaimResults:
    judge, _ = verifier(given, missing, **changes)
    return judge.check(
        claims or (LENGTH,), "How long is it?", "It is long.", EVIDENCE, completeness=True
    )


def test_without_chunk_texts_no_model_is_called() -> None:
    judge, asker = verifier([])
    empty = (Evidence(id="chunk_1", text=" "),)
    found = judge.check([LENGTH], "How long is it?", "It is long.", empty, completeness=True)
    assert [check.verdict for check in found.checks] == ["unverifiable"]
    assert asker.asked == []


@pytest.mark.spec("DRAFT-CRITIQUE-CACHE")
def test_claims_are_verified_in_numbered_batches() -> None:
    many = [
        LENGTH.model_copy(update={"text": f"It has {n} arches.", "markers": (), "start": n})
        for n in range(10)
    ]
    judge, asker = verifier([verdict(number) for number in range(1, 9)], claims_batch=4)
    found = judge.verify(many, EVIDENCE)
    assert [check.claim for check in found] == many
    assert {check.verdict for check in found} == {"supported"}
    sent = sorted(
        (rows_of(asked.prompt) for asked in asker.asked), key=lambda rows: str(rows[0]["claim"])
    )
    assert [[row["number"] for row in rows] for rows in sent] == [
        [1, 2, 3, 4],
        [1, 2, 3, 4],
        [1, 2],
    ]


def test_batches_and_completeness_run_in_parallel() -> None:
    meeting = threading.Barrier(3, timeout=20)

    def reply(given: dict[str, Any]) -> Any:
        def wait(prompt: RolePrompt) -> dict[str, Any]:
            meeting.wait()
            return given

        return wait

    judge, _ = verifier(reply({"verdicts": [verdict(1)]}), reply({"missing": []}), claims_batch=1)
    found = judge.check(
        [LENGTH, YEAR], "How long is it?", "It is long.", EVIDENCE, completeness=True
    )
    assert [check.verdict for check in found.checks] == ["supported", "supported"]


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

    found = checked(reply, LENGTH, YEAR, claims_batch=1)
    first, second = found.checks
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
    first, second = checked([verdict()], missing={"missing": points}).missing
    assert (first.evidence_id, first.weight) == ("chunk_2", 0.8)
    assert EVIDENCE[1].text[first.start : first.end] == "opened in 1931"
    assert (second.evidence_id, second.start, second.weight) == (None, None, 0.5)


def test_failed_completeness_keeps_the_verdicts() -> None:
    found = checked([verdict()], missing=BadReply("refused", kind="refused", raw="No."))
    assert [check.verdict for check in found.checks] == ["supported"]
    assert found.missing == ()
    assert (found.completeness_unscored.code, found.completeness_unscored.raw) == (
        "CRITIC-ERR-001",
        "No.",
    )


@pytest.mark.spec("DRAFT-CRITIQUE-OPTIONS")
def test_completeness_is_checked_only_if_enabled() -> None:
    judge, asker = verifier([verdict()])
    judge.check([LENGTH], "How long is it?", "It is long.", EVIDENCE, completeness=False)
    assert [asked.file for asked in asker.asked] == ["claims_verify"]


def test_the_verifier_receives_claims_without_markers_and_their_citations() -> None:
    judge, asker = verifier([verdict()])
    judge.verify(
        [LENGTH.model_copy(update={"statement": "The bridge is 120 metres long."})], EVIDENCE
    )
    (row,) = rows_of(asker.asked[0].prompt)
    assert row == {
        "number": 1,
        "claim": "It is 120 metres long .",
        "meaning": "The bridge is 120 metres long.",
        "cites": ["chunk_1"],
    }


def test_checks_record_their_prompts() -> None:
    judge, asker = verifier([])
    for in_steps, name in ((False, "claims"), (True, "claims_verify")):
        judge = ModelVerifier(asker, judge.settings, in_steps=in_steps)
        assert judge.judged_by.version == load(name).version


def rows_of(prompt: RolePrompt) -> list[dict[str, Any]]:
    """The claims as they were sent."""
    body = prompt.task.partition(f"<<<CLAIMS {MARK}>>>\n")[2].partition(
        f"\n<<<END CLAIMS {MARK}>>>"
    )[0]
    return [json.loads(line) for line in body.splitlines()]


# What an answer asserts

ANSWER = (
    "The bridge is 120 metres long [chunk_1] and it opened in 1931 [chunk_2]. How wide is it? It is"
    " **red**."
)


def extracted(
    asker: ScriptedAsker, answer: str = ANSWER, kept: Extractions | None = None, **changes: Any
) -> tuple[Claim, ...]:
    verifier = ModelVerifier(asker, Settings(**changes), kept or Extractions())
    return verifier.extract(answer, audit_citations(answer, EVIDENCE), "How long is it?")


@pytest.mark.spec("DRAFT-CRITIQUE-CACHE")
def test_repeated_answers_use_cached_extractions() -> None:
    asker, kept = (
        ScriptedAsker({"claims_extract": {"claims": [listed(sentence=3)]}}),
        Extractions(),
    )
    assert extracted(asker, kept=kept) == extracted(asker, kept=kept)
    assert len(asker.asked) == 1
    extracted(asker, answer="Another answer.", kept=kept)
    other = ScriptedAsker(asker.replies, name="another:model")
    extracted(other, kept=kept)
    assert (len(asker.asked), len(other.asked)) == (2, 1)


def test_a_failed_extraction_isnt_cached() -> None:
    asker, kept = (
        ScriptedAsker({"claims_extract": [ProviderFailed("down"), {"claims": []}]}),
        Extractions(),
    )
    with pytest.raises(ProviderFailed):
        extracted(asker, kept=kept)
    assert extracted(asker, kept=kept)


def test_unused_extractions_are_evicted() -> None:
    kept = Extractions(most=2)
    for key in "abc":
        kept.keep(key, ())
        kept.get("a")
    assert [kept.get(key) is None for key in "abc"] == [False, True, False]


@pytest.mark.spec("DRAFT-CRITIQUE-OPTIONS")
def test_without_the_facts_check_no_claims_are_requested() -> None:
    asker = ScriptedAsker({})
    assert extracted(asker, check_factual=False) == ()
    assert extracted(asker, answer="  ") == ()
    assert asker.asked == []


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
        extracted(ScriptedAsker({"claims_extract": failure}))
    assert raised.value.code == code
