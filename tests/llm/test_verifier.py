"""The verifier with a model: claims tied to words of the answer, verdicts, references, evidence beyond its context."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import masis
from masis.api.audits import audit_citations
from masis.audit.claims import Checked
from masis.errors import BadReply, ContextFull, ProviderFailed, StepError
from masis.llm.roles.prompting import Prompt
from masis.llm.roles.replies import ListedClaim, Stance
from masis.llm.roles.verdicts import Chunks, Judged, with_references
from masis.llm.roles.verifier import LEAST, Extractions, ModelVerifier, located_claims, narrowed
from masis.schema.audit import Claim, ClaimCheck, ReferenceCheck
from masis.schema.case import ClaimVerdict, Evidence
from masis.schema.run import Run
from masis.settings import Settings
from tests.audit.factories import EVIDENCE
from tests.cases import case_of
from tests.llm.canned import listed, supporting, verdict
from tests.llm.scripted_asker import MARK, ScriptedAsker
from tests.serving_models import Behaviour, ModelServer, Request

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


@pytest.mark.parametrize(
    ("quote", "reasoning", "kind"),
    [
        ("dissent (Judge Ash)", "Another wrote it.", "source"),
        ("I cannot agree.", "By its origin Judge Ash wrote the dissent.", "source"),
        # the text has another name, the reason none of the source, or the quoted words have words of the claim
        ("I cannot agree.", "By its origin Judge Ash wrote the dissent, as Reed says.", "source"),
        ("I cannot agree.", "As Reed says.", "stated"),
        ("I cannot agree.", "Judge Ash says that he cannot agree.", "stated"),
        ("Not Judge Kallas but Reed spoke.", "Judge Ash wrote the dissent.", "stated"),
        ("nowhere", "By its origin Judge Ash wrote the dissent.", None),
    ],
)
def test_a_contradiction_may_stand_in_the_line_that_names_the_source(
    quote: str, reasoning: str, kind: str | None
) -> None:
    source = "Water Court, dissent (Judge Ash)"
    evidence = (Evidence(id="c1", text="I cannot agree. Not Judge Kallas but Reed spoke.", source=source),)
    claim = Claim(text="In dissent Judge Kallas wrote")
    denied = supporting("c1", "contradicts", quote, "Judge Kallas")
    given = verdict(verdict="contradicted", support=0, reasoning=reasoning, evidence=[denied])
    (check,) = checks([given], claim, evidence=evidence)
    assert [each.kind for each in check.contradictions] == ([kind] if kind else [])
    if kind == "source":
        (found,) = check.contradictions
        assert (found.evidence_text, found.evidence_start, found.evidence_end) == (source, 0, 0)
        assert check.issue == reasoning


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


# Claims tied to the words of the answer: none judged that nobody said, none lost that somebody did

ANSWER = "The bridge is 120 metres long [chunk_1] and it opened in 1931 [chunk_2]. How wide is it? It is **red**."


def listings(pairs: Sequence[tuple[str, str]]) -> list[ListedClaim]:
    return [ListedClaim(number=1, sentence=None, words=words, meaning=meaning) for words, meaning in pairs]


def found(*pairs: tuple[str, str], answer: str = ANSWER) -> tuple[Claim, ...]:
    return located_claims(listings(pairs), answer, audit_citations(answer, EVIDENCE))


def extracted(
    asker: ScriptedAsker, answer: str = ANSWER, kept: Extractions | None = None, **changes: Any
) -> tuple[Claim, ...]:
    verifier = ModelVerifier(asker, Settings(**changes), kept or Extractions())
    return verifier.extract(answer, audit_citations(answer, EVIDENCE), "How long is it?")


@pytest.mark.spec("DRAFT-CRITIQUE-EXTRACT")
def test_a_sentence_with_two_assertions_gives_two_claims_with_their_places() -> None:
    first, second, third = found(
        ("The bridge is 120 metres long", "The bridge is 120 metres long."),
        ("it opened in 1931", "The bridge opened in 1931."),
        ("It is red", "The bridge is red."),
    )
    for claim in (first, second, third):
        assert ANSWER[claim.start : claim.end] == claim.text
    assert (first.text, first.statement, first.sentence) == ("The bridge is 120 metres long", "", 0)
    assert (second.text, second.statement, second.sentence) == ("it opened in 1931", "The bridge opened in 1931.", 0)
    assert (third.text, third.statement, third.sentence) == ("It is **red**.", "The bridge is red.", 2)
    assert first.cited == second.cited == ("chunk_1", "chunk_2")


def test_a_quote_of_all_but_the_markers_is_the_whole_sentence() -> None:
    answer = "1. The bridge is long [chunk_1]."
    (claim,) = found(("The bridge is long.", "The bridge is long."), answer=answer)
    assert claim.text == answer
    assert [claim.text[start:end] for start, end in claim.markers] == ["[chunk_1]"]


def test_what_is_not_in_the_answer_is_not_judged() -> None:
    assert [claim.text for claim in found(("It collapsed in 1950.", "The bridge collapsed."))] == [
        ANSWER[: ANSWER.index(" How")],
        "It is **red**.",
    ]


def test_a_sentence_that_the_list_leaves_out_is_a_claim_all_the_same() -> None:
    assert [claim.sentence for claim in found()] == [0, 2]
    assert [claim.sentence for claim in found(("It is red", "It is red."))] == [0, 2]


def test_claims_come_in_the_order_of_the_answer_and_each_once() -> None:
    said = ("it opened in 1931", "The bridge opened in 1931.")
    assert [claim.start for claim in found(("It is red", ""), said, said)] == [44, 89]


def test_one_stretch_may_make_two_claims() -> None:
    answer = "A and B rose by 5% and 6%."
    made = found((answer, "A rose by 5%."), (answer, "B rose by 6%."), answer=answer)
    assert [claim.statement for claim in made] == ["A rose by 5%.", "B rose by 6%."]


def test_a_claim_over_two_sentences_covers_both() -> None:
    answer = "It is long. It is red."
    (claim,) = found((answer, "It is long and red."), answer=answer)
    assert (claim.text, claim.sentence) == (answer, 0)


@given(st.text(max_size=120), st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), max_size=5))
def test_every_claim_stands_where_it_says_and_every_assertion_is_claimed(
    answer: str, pairs: list[tuple[str, str]]
) -> None:
    audit = audit_citations(answer, EVIDENCE)
    made = located_claims(listings(pairs), answer, audit)
    for claim in made:
        assert answer[claim.start : claim.end] == claim.text
        assert all(0 <= start < end <= len(claim.text) for start, end in claim.markers)
    for sentence in audit.sentences:
        if sentence.status != "exempt":
            assert any(claim.start < sentence.end and claim.end > sentence.start for claim in made)


@pytest.mark.spec("DRAFT-CRITIQUE-CACHE")
def test_an_answer_that_comes_again_is_not_asked_about_again() -> None:
    asker, kept = (ScriptedAsker({"claims_extract": {"claims": [listed(sentence=3)]}}), Extractions())
    assert extracted(asker, kept=kept) == extracted(asker, kept=kept)
    assert len(asker.asked) == 1
    extracted(asker, answer="Another answer.", kept=kept)
    other = ScriptedAsker(asker.replies, name="another:model")
    extracted(other, kept=kept)
    assert (len(asker.asked), len(other.asked)) == (2, 1)


def test_a_failed_extraction_is_not_kept() -> None:
    asker, kept = ScriptedAsker({"claims_extract": [ProviderFailed("down"), {"claims": []}]}), Extractions()
    with pytest.raises(ProviderFailed):
        extracted(asker, kept=kept)
    assert extracted(asker, kept=kept)


def test_extractions_that_nobody_asks_for_give_way() -> None:
    kept = Extractions(most=2)
    for key in "abc":
        kept.keep(key, ())
        kept.get("a")
    assert [kept.get(key) is None for key in "abc"] == [False, True, False]


@pytest.mark.spec("DRAFT-CRITIQUE-OPTIONS")
def test_without_the_check_of_facts_no_model_is_asked_for_claims() -> None:
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
def test_an_extraction_that_fails_says_so(failure: Any, code: str) -> None:
    with pytest.raises(StepError) as raised:
        extracted(ScriptedAsker({"claims_extract": failure}))
    assert raised.value.code == code


# What can be said of a sentence's references from a model's word on each chunk

CHUNKS = Chunks([Evidence(id=name, text="words") for name in "abc"] + [Evidence(id="empty", text=" ")])


def chunk_judged(
    cited: str, verdict: ClaimVerdict = "supported", sentence: int | None = 0, **stances: Stance
) -> Judged:
    claim = Claim(text="It is long.", sentence=sentence, cited=tuple(cited.split()))
    return Judged(ClaimCheck(claim=claim, verdict=verdict, support=0.9, confidence=0.9), stances)


def references(*group: Judged) -> list[list[tuple[str, str, str | None]]]:
    return [[told(each) for each in check.references] for check in with_references(group, CHUNKS)]


def told(reference: ReferenceCheck) -> tuple[str, str, str | None]:
    return reference.evidence_id, reference.finding, reference.better


@pytest.mark.parametrize(
    ("one", "findings"),
    [
        (chunk_judged("a", a="supports"), [("a", "supports", None)]),
        (chunk_judged("a", "partial", a="partly"), [("a", "partly_supports", None)]),
        (chunk_judged("a b", a="supports", b="silent"), [("a", "supports", None), ("b", "redundant", None)]),
        (chunk_judged("a b", a="supports", b="partly"), [("a", "supports", None), ("b", "redundant", None)]),
        (
            chunk_judged("a b", "partial", a="partly", b="partly"),
            [("a", "partly_supports", None), ("b", "partly_supports", None)],
        ),
        (chunk_judged("a", a="silent", c="supports"), [("a", "misattributed", "c")]),
        (chunk_judged("a", "partial", a="partly", c="partly"), [("a", "partly_supports", None)]),
        (chunk_judged("a", "unsupported", a="silent"), [("a", "unsupported", None)]),
        (chunk_judged("a", "unsupported", a="silent", c="supports"), [("a", "unsupported", None)]),
        (chunk_judged("a", "contradicted", a="contradicts"), [("a", "contradicts", None)]),
        (
            chunk_judged("a b", "contradicted", a="supports", b="contradicts"),
            [("a", "supports", None), ("b", "contradicts", None)],
        ),
        (chunk_judged("a", c="supports"), [("a", "unchecked", None)]),
        (chunk_judged("empty", c="supports"), [("empty", "unchecked", None)]),
        (chunk_judged("a", "unscored"), [("a", "unchecked", None)]),
        (chunk_judged("", c="supports"), []),
    ],
)
def test_one_claim(one: Judged, findings: list[tuple[str, str, str | None]]) -> None:
    assert references(one) == [findings]


def test_chunks_that_bear_different_claims_of_a_sentence_are_both_needed() -> None:
    first = chunk_judged("a b", a="supports", b="silent")
    second = chunk_judged("a b", a="silent", b="supports")
    assert references(first, second) == [[("a", "supports", None)], [("b", "supports", None)]]


def test_a_chunk_that_no_claim_of_the_sentence_needs_is_redundant() -> None:
    first = chunk_judged("a b c", a="supports", b="silent", c="silent")
    second = chunk_judged("a b c", a="silent", b="supports", c="silent")
    assert references(first, second)[0] == [("a", "supports", None), ("c", "redundant", None)]


def test_another_chunk_is_better_only_where_nothing_cited_supports_the_claim() -> None:
    first = chunk_judged("a b", a="silent", b="supports", c="supports")
    second = chunk_judged("a b", "unsupported", a="silent", b="silent")
    assert references(first, second) == [[("a", "unsupported", None), ("b", "supports", None)], []]


def test_sentences_and_claims_given_alone_are_judged_each_for_itself() -> None:
    for sentences in ((0, 1), (None, None)):
        first = chunk_judged("a", sentence=sentences[0], a="supports")
        second = chunk_judged("a", "unsupported", sentence=sentences[1], a="silent")
        assert references(first, second) == [[("a", "supports", None)], [("a", "unsupported", None)]]


def test_a_claim_without_a_verdict_leaves_the_reference_open() -> None:
    first = chunk_judged("a", "unscored")
    second = chunk_judged("a", "unsupported", a="silent")
    assert references(first, second) == [[], [("a", "unchecked", None)]]


# Evidence beyond a model's context: what is sent instead, and what is not concluded from what wasn't read

FILLER = "Nothing of note was said on the matter by anyone present. " * 100
LENGTH_TEXT = "The bridge is 120 metres long."
LONG_EVIDENCE = (
    Evidence(id="1", text=f"{FILLER}{LENGTH_TEXT} {FILLER}"),
    Evidence(id="2", text=FILLER),
    Evidence(id="3", text=f"The mayor opened it in 1931. {FILLER}"),
)
CLAIM = Claim(text="The bridge is 120 metres long.", cited=("1", "2"))


def test_what_fits_is_sent_as_it_is() -> None:
    fitted = narrowed(LONG_EVIDENCE, [CLAIM.text], 1_000_000)
    assert fitted.evidence == LONG_EVIDENCE
    assert fitted.share == 1.0


@pytest.mark.parametrize("room", [LEAST, 3_000, 9_999])
def test_a_narrow_context_gets_the_passages_that_share_most_words_with_each_claim(room: int) -> None:
    fitted = narrowed(LONG_EVIDENCE, [CLAIM.text, "It was opened by the mayor in 1931."], room)
    sent = {chunk.id: chunk.text for chunk in fitted.evidence}
    assert LENGTH_TEXT in sent["1"]
    assert "The mayor opened it in 1931." in sent["3"]
    assert sum(len(chunk.text) for chunk in fitted.evidence) <= room + 200
    assert 0 < fitted.share < 1


def test_passages_are_parts_of_their_chunks_in_order_whatever_the_text() -> None:
    text = "x" * 5_000 + "\n\n \u2028" + "ends. " * 900 + "wörter" * 400
    (chunk,) = narrowed((Evidence(id="1", text=text),), ["ends"], 4_000).evidence
    at = 0
    for part in chunk.text.split("\n[...]\n"):
        assert part
        at = text.index(part, at)


def _small_context(prompt: Prompt) -> dict[str, object] | Exception:
    if len(prompt.shared) > 6_000:
        return ContextFull("scripted:model: question and evidence do not fit the model's context (400)")
    supported = LENGTH_TEXT in prompt.shared and "120" in prompt.task
    word, stance = ("supported", "supports") if supported else ("unsupported", "silent")
    told = [supporting("1", stance, LENGTH_TEXT if supported else ""), supporting("2", "silent")]
    return {"verdicts": [verdict(verdict=word, evidence=told, support=1.0 if supported else 0.0)]}


def _judge() -> tuple[ModelVerifier, ScriptedAsker]:
    asker = ScriptedAsker({"claims_verify": _small_context})
    return ModelVerifier(asker, Settings(), Extractions()), asker


def test_a_claim_is_judged_by_its_passages_where_the_evidence_does_not_fit() -> None:
    judge, asker = _judge()
    (check,) = judge.verify((CLAIM,), LONG_EVIDENCE)
    assert check.verdict == "supported"
    (quote,) = check.quotes
    assert LONG_EVIDENCE[0].text[quote.start : quote.end] == LENGTH_TEXT
    assert {each.evidence_id: each.finding for each in check.references} == {"1": "supports", "2": "redundant"}
    notice = asker.control.calls.notices.get_nowait()
    assert notice.kind == "warning"
    assert "does not fit the context of scripted:model" in notice.message


def test_what_no_passage_supports_is_not_confirmed_rather_than_unsupported() -> None:
    judge, _ = _judge()
    (check,) = judge.verify((Claim(text="The bridge is red.", cited=("2",)),), LONG_EVIDENCE)
    assert (check.verdict, check.support) == ("unverifiable", None)
    assert "None of the passages that were read" in (check.issue or "")
    assert [each.finding for each in check.references] == ["unchecked"]


def test_the_next_claims_of_a_run_begin_with_what_did_fit() -> None:
    judge, asker = _judge()
    judge.verify((CLAIM,), LONG_EVIDENCE)
    refused = len(asker.asked)
    judge.verify((CLAIM,), LONG_EVIDENCE)
    assert len(asker.asked) == refused + 1


def test_a_context_too_small_for_any_evidence_fails_as_before() -> None:
    asker = ScriptedAsker({"claims_verify": ContextFull("too long")})
    (check,) = ModelVerifier(asker, Settings(), Extractions()).verify((CLAIM,), LONG_EVIDENCE)
    assert check.unscored.code == ProviderFailed.code
    assert len(asker.asked) < 8


def audited(server: ModelServer, evidence: str) -> Run:
    case = case_of(f"{LENGTH_TEXT} [1]", {"1": evidence}, query="How long?")
    table = {"providers": {"here": {"address": server.address}}}
    models = dict.fromkeys(("verifier", "critic", "evaluator", "reviser"), "here:m")
    return masis.run_audit(case, Settings.model_validate({**table, **models, "max_iterations": 1}))


def _refuse_long(request: Request) -> Behaviour | None:
    if sum(map(len, request.messages)) < 12_000:
        return None
    message = "the request exceeds the available context size (2048 tokens), try increasing it"
    return Behaviour(status=400, error={"code": 400, "message": message, "type": "exceed_context_size_error"})


def test_a_run_says_that_claims_were_judged_by_passages_and_keeps_the_rest_unscored() -> None:
    with ModelServer(_refuse_long, issues="none") as server:
        run = audited(server, LONG_EVIDENCE[0].text)
    (check,) = run.iterations[0].claims
    assert check.verdict == "supported"
    assert run.iterations[0].critique.unscored is not None
    assert run.needs_review
    assert sum("each claim was judged by the passages" in warning.message for warning in run.warnings) == 1
    (critic,) = [warning for warning in run.warnings if warning.step == "critique"]
    assert "llama-server -c 32768" in critic.message
