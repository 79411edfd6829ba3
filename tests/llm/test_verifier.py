"""Verdicts of a model: one for each claim by its number, held against the evidence, in batches side by side."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from masis.audit.claims import Checked
from masis.errors import BadReply, ProviderFailed
from masis.llm.roles.prompting import Prompt
from masis.llm.roles.verifier import Extractions, ModelVerifier
from masis.schema.audit import Claim, ClaimCheck
from masis.schema.case import Evidence
from masis.settings import Settings
from tests.audit.factories import EVIDENCE
from tests.llm.canned import supporting, verdict
from tests.llm.scripted_asker import MARK, ScriptedAsker

LENGTH = Claim(
    text="It is 120 metres long [chunk_1].", markers=((22, 31),), start=0, end=32, sentence=0, cited=("chunk_1",)
)
YEAR = Claim(text="It opened in 1932.", start=33, end=51, sentence=1)


def verifier(given: Any, missing: Any = None, **changes: Any) -> tuple[ModelVerifier, ScriptedAsker]:
    replies = given if isinstance(given, dict | str | Exception | tuple) or callable(given) else {"verdicts": given}
    asker = ScriptedAsker({"claims_verify": replies, "completeness": missing or {"missing": []}})
    return ModelVerifier(asker, Settings(**changes), Extractions()), asker


def checks(given: Any, *claims: Claim, evidence: tuple[Evidence, ...] = EVIDENCE) -> tuple[ClaimCheck, ...]:
    return verifier(given)[0].verify(claims or (LENGTH,), evidence)


def checked(given: Any, *claims: Claim, missing: Any = None, **changes: Any) -> Checked:
    judge, _ = verifier(given, missing, **changes)
    return judge.check(claims or (LENGTH,), "How long is it?", "It is long.", EVIDENCE, completeness=True)


@pytest.mark.spec("DRAFT-CRITIQUE-VERIFY")
def test_a_supported_claim_has_its_support_sources_and_quotes_by_offset() -> None:
    (check,) = checks([verdict(support=95, confidence=0.9)])
    assert (check.verdict, check.support, check.confidence) == ("supported", 0.95, 0.9)
    assert check.sources == ("chunk_1",)
    (quote,) = check.quotes
    assert EVIDENCE[0].text[quote.start : quote.end] == quote.text == "120 metres long"
    assert check.issue is None
    assert check.judged_by == "scripted:model"


@pytest.mark.spec("DRAFT-CRITIQUE-VERIFY")
def test_a_verdict_too_few_leaves_its_claim_unscored_and_the_others_as_judged() -> None:
    first, second = checks([verdict(2)], LENGTH, YEAR)
    assert (first.verdict, first.support) == ("unscored", None)
    assert first.unscored is not None
    assert second.verdict == "supported"


def test_a_claim_that_follows_from_two_passages_has_both_and_the_steps_and_one_chunk_of_them_supports_it_whole() -> (
    None
):
    parts = [supporting("chunk_1", "partly", "120 metres"), supporting("chunk_1", "partly", "long")]
    steps = "120 is more than 100."
    (check,) = checks([verdict(evidence=parts, reasoning=steps)])
    assert (check.verdict, check.steps, check.issue) == ("supported", steps, None)
    assert [quote.text for quote in check.quotes] == ["120 metres", "long"]
    assert [(each.evidence_id, each.finding) for each in check.references] == [("chunk_1", "supports")]


def test_a_verdict_too_many_is_left_out() -> None:
    found = checks(
        [verdict(0), verdict(1), verdict(3), verdict(-1), verdict(None), verdict(1.5), verdict(True)], LENGTH
    )
    assert [check.verdict for check in found] == ["supported"]


def test_the_last_verdict_on_a_number_binds() -> None:
    (check,) = checks([verdict(1), verdict(1, verdict="unsupported", support=0.0, reasoning="No chunk says it.")])
    assert (check.verdict, check.issue) == ("unsupported", "No chunk says it.")


@pytest.mark.parametrize("number", [1, 1.0, "1", " 1 "])
def test_a_number_counts_however_it_is_written(number: Any) -> None:
    assert checks([verdict(number)])[0].verdict == "supported"


@pytest.mark.parametrize("word", ["yes", "", None, 1, ["supported"], "unscored"])
def test_a_word_that_is_no_verdict_costs_its_own_claim_the_score(word: Any) -> None:
    first, second = checks([verdict(1, verdict=word), verdict(2)], LENGTH, YEAR)
    assert first.verdict == "unscored"
    assert first.unscored is not None
    assert first.unscored.raw is not None
    assert second.verdict == "supported"


@pytest.mark.parametrize(
    "evidence",
    [
        [],
        [supporting("chunk_9")],
        [supporting("chunk_1", "silent")],
        [supporting("chunk_1", "contradicts")],
        [supporting("chunk_1", "x")],
    ],
)
@pytest.mark.parametrize("word", ["supported", "partial"])
def test_credit_to_evidence_that_does_not_bear_the_claim_is_no_verdict(word: str, evidence: list[Any]) -> None:
    (check,) = checks([verdict(verdict=word, evidence=evidence)])
    assert (check.verdict, check.support) == ("unscored", None)


def test_a_quote_that_the_chunk_does_not_have_is_reported_and_does_not_count() -> None:
    (check,) = checks([verdict(evidence=[supporting(quote="300 metres long")])])
    assert (check.verdict, check.quotes) == ("supported", ())
    assert check.issue == "The words quoted from chunk_1 are not there."


@pytest.mark.parametrize(
    ("word", "given", "kept"),
    [
        ("supported", 0.7, 0.7),
        ("partial", 55, 0.55),
        ("unsupported", 0.95, 0.5),
        ("contradicted", 1.0, 0.5),
        ("unsupported", 0.1, 0.1),
        ("unverifiable", 0.8, None),
        ("supported", "high", None),
        ("supported", float("nan"), None),
    ],
)
def test_support_is_a_number_that_agrees_with_the_verdict(word: str, given: Any, kept: float | None) -> None:
    (check,) = checks([verdict(verdict=word, support=given)])
    assert (check.verdict, check.support) == (word, kept)


def test_a_contradiction_names_both_places() -> None:
    denied = supporting("chunk_2", "contradicts", "opened in 1931", "1932")
    given = verdict(
        verdict="contradicted",
        support=0,
        reasoning="Another year.",
        evidence=[denied, denied | {"claim_words": "1999"}, denied | {"evidence_id": "chunk_9"}],
    )
    (check,) = checks([given], YEAR)
    (found,) = check.contradictions
    assert YEAR.text[found.claim_start : found.claim_end] == found.claim_text == "1932"
    assert EVIDENCE[1].text[found.evidence_start : found.evidence_end] == found.evidence_text == "opened in 1931"
    assert (check.sources, found.reason) == (("chunk_2",), "Another year.")


def test_only_a_contradicted_claim_has_contradictions_and_a_silent_chunk_no_quote() -> None:
    denied = supporting("chunk_2", "contradicts", "1931", "120")
    silent = supporting("chunk_2", "silent", "It opened in 1931")
    (check,) = checks([verdict(evidence=[supporting(), denied, silent])])
    assert (check.verdict, check.contradictions, check.quotes) == ("supported", (), ())


def test_a_claim_that_the_sources_say_nothing_is_supported_where_every_chunk_is_silent() -> None:
    silent, none = supporting("all", "silent"), Claim(text="The sources don't give a width.")
    assert [check.verdict for check in checks([verdict(evidence=[silent])], none)] == ["supported"]
    for word, evidence in (
        ("partial", [silent]),
        ("supported", [supporting("all")]),
        ("supported", [supporting("chunk_1", "silent")]),
        ("supported", [silent, supporting("chunk_1", "contradicts")]),
    ):
        assert [check.verdict for check in checks([verdict(verdict=word, evidence=evidence)], none)] == ["unscored"]


def test_where_no_chunk_has_text_no_model_is_asked_and_nothing_can_be_verified() -> None:
    judge, asker = verifier([])
    empty = (Evidence(id="chunk_1", text=" "),)
    found = judge.check([LENGTH], "How long is it?", "It is long.", empty, completeness=True)
    assert [check.verdict for check in found.checks] == ["unverifiable"]
    assert asker.asked == []


@pytest.mark.spec("DRAFT-CRITIQUE-CACHE")
def test_claims_are_verified_in_batches_numbered_from_one() -> None:
    many = [LENGTH.model_copy(update={"text": f"It has {n} arches.", "markers": (), "start": n}) for n in range(10)]
    judge, asker = verifier([verdict(number) for number in range(1, 9)], claims_batch=4)
    found = judge.verify(many, EVIDENCE)
    assert [check.claim for check in found] == many
    assert {check.verdict for check in found} == {"supported"}
    sent = sorted((rows_of(asked.prompt) for asked in asker.asked), key=lambda rows: str(rows[0]["claim"]))
    assert [[row["number"] for row in rows] for rows in sent] == [[1, 2, 3, 4], [1, 2, 3, 4], [1, 2]]


def test_batches_and_completeness_are_under_way_at_once() -> None:
    meeting = threading.Barrier(3, timeout=20)

    def reply(given: dict[str, Any]) -> Any:
        def wait(prompt: Prompt) -> dict[str, Any]:
            meeting.wait()
            return given

        return wait

    judge, _ = verifier(reply({"verdicts": [verdict(1)]}), reply({"missing": []}), claims_batch=1)
    found = judge.check([LENGTH, YEAR], "How long is it?", "It is long.", EVIDENCE, completeness=True)
    assert [check.verdict for check in found.checks] == ["supported", "supported"]


@pytest.mark.parametrize(
    ("failure", "code", "raw"),
    [
        (ProviderFailed("the provider is down"), "CRITIC-ERR-003", None),
        (BadReply("the reply was cut off", kind="cut_off", raw='{"verd'), "CRITIC-ERR-001", '{"verd'),
        ("All of it is supported.", "CRITIC-ERR-001", "All of it is supported."),
        ('{"verdicts": [{"number": 1}]}', "CRITIC-ERR-001", '{"verdicts": [{"number": 1}]}'),
    ],
)
def test_a_batch_that_fails_leaves_its_claims_unscored_and_the_other_batches_stand(
    failure: Any, code: str, raw: str | None
) -> None:
    def reply(prompt: Prompt) -> Any:
        return {"verdicts": [verdict(1)]} if "1932" in prompt.task else failure

    found = checked(reply, LENGTH, YEAR, claims_batch=1)
    first, second = found.checks
    assert (first.verdict, first.support, second.verdict) == ("unscored", None, "supported")
    assert first.unscored is not None
    assert (first.unscored.code, first.unscored.raw) == (code, raw)


@pytest.mark.spec("DRAFT-CRITIQUE-COMPLETENESS")
def test_what_is_missing_has_its_place_in_the_evidence() -> None:
    points = [
        {"description": "It opened in 1931.", "evidence_id": "Chunk 2", "quote": "opened in 1931", "importance": 80},
        {"description": "It is red.", "evidence_id": None, "quote": None, "importance": "very"},
        {"description": " ", "evidence_id": None, "quote": None, "importance": 1},
    ]
    first, second = checked([verdict()], missing={"missing": points}).missing
    assert (first.evidence_id, first.weight) == ("chunk_2", 0.8)
    assert EVIDENCE[1].text[first.start : first.end] == "opened in 1931"
    assert (second.evidence_id, second.start, second.weight) == (None, None, 0.5)


def test_completeness_that_fails_leaves_the_verdicts_standing() -> None:
    found = checked([verdict()], missing=BadReply("refused", kind="refused", raw="No."))
    assert [check.verdict for check in found.checks] == ["supported"]
    assert found.missing == ()
    assert found.completeness_unscored is not None
    assert (found.completeness_unscored.code, found.completeness_unscored.raw) == ("CRITIC-ERR-001", "No.")


@pytest.mark.spec("DRAFT-CRITIQUE-OPTIONS")
def test_completeness_is_asked_for_only_where_it_is_wanted() -> None:
    judge, asker = verifier([verdict()])
    judge.check([LENGTH], "How long is it?", "It is long.", EVIDENCE, completeness=False)
    assert [asked.file for asked in asker.asked] == ["claims_verify"]


def test_the_verifier_sees_the_claim_without_its_markers_and_what_it_cites_beside_it() -> None:
    judge, asker = verifier([verdict()])
    judge.verify([LENGTH.model_copy(update={"statement": "The bridge is 120 metres long."})], EVIDENCE)
    (row,) = rows_of(asker.asked[0].prompt)
    assert row == {
        "number": 1,
        "claim": "It is 120 metres long .",
        "meaning": "The bridge is 120 metres long.",
        "cites": ["chunk_1"],
    }


def test_the_checks_say_which_prompts_judged() -> None:
    judge, asker = verifier([])
    steps = ["claims_extract", "claims_verify", "completeness"]
    for in_steps, names in ((False, ["claims", *steps]), (True, steps)):
        judge = ModelVerifier(asker, judge.settings, in_steps=in_steps)
        assert [name.partition("/")[0] for name in judge.judged_by.version.split(", ")] == names


def rows_of(prompt: Prompt) -> list[dict[str, Any]]:
    """The claims as they were sent."""
    body = prompt.task.partition(f"<<<CLAIMS {MARK}>>>\n")[2].partition(f"\n<<<END CLAIMS {MARK}>>>")[0]
    return [json.loads(line) for line in body.splitlines()]
