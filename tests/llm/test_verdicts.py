"""A model's verdicts checked against the evidence: quotations, confidence, calculations,
contradictions and references.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from masis.llm.roles.replies import Stance
from masis.llm.roles.verdicts import Chunks, ClaimJudgement, with_references
from masis.llm.roles.verifier import Extractions, ModelVerifier
from masis.schema.audit import Claim, ClaimCheck
from masis.schema.case import ClaimVerdict, Evidence
from masis.settings import Settings
from tests.audit.factories import EVIDENCE
from tests.llm.canned import chunk_stance, verdict
from tests.llm.scripted_asker import ScriptedAsker

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


def checks(
    reply: Any, *claims: Claim, evidence: tuple[Evidence, ...] = EVIDENCE
) -> tuple[ClaimCheck, ...]:
    return verifier(reply)[0].verify(claims or (LENGTH,), evidence)


@pytest.mark.spec("DRAFT-CRITIQUE-VERIFY")
def test_a_supported_claim_has_sources_and_quote_offsets() -> None:
    (check,) = checks([verdict(confidence=90)])
    assert (check.verdict, check.support, check.confidence) == ("supported", 1.0, 0.9)
    assert check.sources == ("chunk_1",)
    (quote,) = check.quotes
    assert EVIDENCE[0].text[quote.start : quote.end] == quote.text == "120 metres long"
    assert check.issue is None
    assert check.judged_by == "scripted:model"


@pytest.mark.spec("DRAFT-CRITIQUE-VERIFY")
def test_a_missing_verdict_leaves_only_its_claim_unscored() -> None:
    first, second = checks([verdict(2)], LENGTH, YEAR)
    assert (first.verdict, first.support) == ("unscored", None)
    assert first.unscored is not None
    assert second.verdict == "supported"


def test_a_derived_claim_has_its_passages_and_steps() -> None:
    parts = [
        chunk_stance("chunk_1", "supports_together", "120 metres"),
        chunk_stance("chunk_1", "supports_together", "metres long"),
    ]
    steps = "120 is more than 100."
    (check,) = checks([verdict(evidence=parts, reasoning=steps)])
    assert (check.verdict, check.steps, check.issue) == ("supported", steps, None)
    assert [quote.text for quote in check.quotes] == ["120 metres", "metres long"]
    references = [(reference.evidence_id, reference.finding) for reference in check.references]
    assert references == [("chunk_1", "supports")]


def test_an_extra_verdict_is_dropped() -> None:
    found = checks(
        [
            verdict(0),
            verdict(1),
            verdict(3),
            verdict(-1),
            verdict(None),
            verdict(1.5),
            verdict(True),
        ],
        LENGTH,
    )
    assert [check.verdict for check in found] == ["supported"]


def test_the_worst_of_several_verdicts_on_a_claim_counts() -> None:
    worse = verdict(1, verdict="unsupported", reasoning="No chunk says it.")
    for verdicts in ([verdict(1), worse], [worse, verdict(1)]):
        (check,) = checks(verdicts)
        assert (check.verdict, check.issue) == ("unsupported", "No chunk says it.")


@pytest.mark.parametrize("number", [1, 1.0, "1", " 1 "])
def test_claim_numbers_are_read_in_any_format(number: Any) -> None:
    assert checks([verdict(number)])[0].verdict == "supported"


@pytest.mark.parametrize("word", ["yes", "", None, 1, ["supported"], "unscored"])
def test_an_invalid_verdict_leaves_its_claim_unscored(word: Any) -> None:
    first, second = checks([verdict(1, verdict=word), verdict(2)], LENGTH, YEAR)
    assert first.verdict == "unscored"
    assert first.unscored.raw is not None
    assert second.verdict == "supported"


@pytest.mark.parametrize(
    "evidence",
    [
        [],
        [chunk_stance("chunk_9", quote="120 metres long")],
        [chunk_stance("chunk_1")],
        [chunk_stance("chunk_1", quote="300 metres long")],
        [chunk_stance("chunk_2", quote="120 metres long")],
        [chunk_stance("chunk_1", quote="is the")],
        [chunk_stance("chunk_1", "leaves_open", "120 metres long")],
        [chunk_stance("chunk_1", "contradicts", "120 metres long")],
        [chunk_stance("chunk_1", "bears", "120 metres long")],
        [
            chunk_stance("chunk_1", "supports_together", "120 metres"),
            chunk_stance("chunk_2", "supports_together", "1831"),
        ],
    ],
)
def test_supported_needs_a_quotation_found_in_the_named_chunk(
    evidence: list[Any],
) -> None:
    (check,) = checks([verdict(evidence=evidence)])
    assert (check.verdict, check.support, check.abstained) == ("unverifiable", None, "quotation")
    assert check.issue
    assert check.sources == check.quotes == ()


def test_a_supported_claim_may_have_several_found_passages() -> None:
    parts = [
        chunk_stance("chunk_1", "supports_together", "120 metres"),
        chunk_stance("chunk_2", "supports_together", "1931"),
    ]
    (check,) = checks([verdict(evidence=parts)])
    assert (check.verdict, check.sources) == ("supported", ("chunk_1", "chunk_2"))


def test_a_missing_quotation_is_reported_beside_a_found_one() -> None:
    (check,) = checks(
        [
            verdict(
                evidence=[
                    chunk_stance(quote="120 metres long"),
                    chunk_stance("chunk_2", quote="in 1831"),
                ]
            )
        ]
    )
    assert (check.verdict, check.sources) == ("supported", ("chunk_1",))
    assert check.issue == "The words quoted from chunk_2 are not there."


@pytest.mark.parametrize("word", ["partial", "unsupported"])
def test_verdicts_other_than_supported_need_no_quotation(word: str) -> None:
    (check,) = checks([verdict(verdict=word, evidence=[])])
    assert check.verdict == word


@pytest.mark.parametrize(
    ("quote", "is_accepted"),
    [
        ("opened in 1931", True),
        ("1931", True),
        ("opened", False),
        ("longstanding", True),
        ("in the", False),
        ("of", False),
        ("...", False),
        ("", False),
        ("鋼鉄製の橋", True),
        ("鋼", False),
    ],
)
def test_words_common_to_every_chunk_arent_a_quotation(quote: str, is_accepted: bool) -> None:
    evidence = (
        Evidence(
            id="c",
            text="The longstanding bridge of steel, opened in 1931, is in the ... valley. 鋼鉄製の橋。",
        ),
    )
    (check,) = checks([verdict(evidence=[chunk_stance("c", quote=quote)])], evidence=evidence)
    assert (check.verdict == "supported") == is_accepted


def test_a_whole_short_chunk_is_a_quotation() -> None:
    (check,) = checks(
        [verdict(evidence=[chunk_stance("c", quote="Yes")])],
        evidence=(Evidence(id="c", text="Yes."),),
    )
    assert check.verdict == "supported"


@pytest.mark.parametrize(
    ("word", "support"),
    [
        ("supported", 1.0),
        ("partial", 0.5),
        ("unsupported", 0.0),
        ("unverifiable", None),
        ("either_way", None),
    ],
)
def test_support_is_derived_from_the_verdict(word: str, support: float | None) -> None:
    (check,) = checks([verdict(verdict=word) | {"support": 0.7}])
    assert check.support == support


@pytest.mark.parametrize(
    ("word", "confidence", "is_kept"),
    [
        ("supported", 0.66, True),
        ("supported", 0.64, False),
        ("supported", 0.5, False),
        ("supported", "high", False),
        ("supported", None, False),
        ("supported", float("nan"), False),
        ("contradicted", 0.66, True),
        ("contradicted", 0.2, False),
        ("unsupported", 0.5, True),
        ("unsupported", 0.2, False),
        ("partial", 0.4, True),
        ("partial", "20%", False),
    ],
)
def test_an_uncertain_verdict_is_debatable(word: str, confidence: Any, is_kept: bool) -> None:
    stance = "contradicts" if word == "contradicted" else "supports"
    evidence = [chunk_stance("chunk_1", stance, "120 metres long")]
    (check,) = checks(
        [verdict(verdict=word, confidence=confidence, evidence=evidence, reasoning="So it says.")]
    )
    if is_kept:
        assert (check.verdict, check.abstained) == (word, None)
    else:
        assert (check.verdict, check.support, check.abstained) == (
            "unverifiable",
            None,
            "either_way",
        )
        assert f"called this {word}" in (check.issue or "")
        assert "So it says." in (check.issue or "")


def test_a_debatable_claim_shows_its_reason() -> None:
    for reasoning, issue in (
        ("Metres or yards?", "Metres or yards?"),
        ("", "This, or the evidence, can be read"),
    ):
        (check,) = checks([verdict(verdict="either_way", reasoning=reasoning)])
        assert (check.verdict, check.abstained) == ("unverifiable", "either_way")
        assert (check.issue or "").startswith(issue)


@pytest.mark.parametrize(
    ("calculation", "issue"),
    [
        ("240 / 2 = 130", "The verifier's calculation is wrong: 240 / 2 = 130."),
        ("117 + 3 = 120", "The verifier calculates with 117, which no chunk has."),
        ("120 * 10 = 1,200", None),
        ("as the table says", None),
    ],
)
def test_a_calculation_is_checked_against_evidence_figures(
    calculation: str, issue: str | None
) -> None:
    evidence = (*EVIDENCE, Evidence(id="chunk_3", text="Both halves together are 240 metres."))
    (check,) = checks([verdict(calculation=calculation)], evidence=evidence)
    if issue is None:
        assert (check.verdict, check.issue) == ("supported", None)
        assert check.steps == calculation
    else:
        assert (check.verdict, check.abstained, check.issue) == ("unverifiable", "quotation", issue)


def test_a_source_conflict_is_recorded() -> None:
    both = [
        chunk_stance("chunk_1", quote="120 metres"),
        chunk_stance("chunk_2", "contradicts", "opened in 1931", "long"),
    ]
    for word in ("supported", "contradicted"):
        (check,) = checks([verdict(verdict=word, evidence=both)])
        assert (check.verdict, check.sources_disagree) == (word, True)
        assert [found.evidence_id for found in check.contradictions] == ["chunk_2"]
    (check,) = checks([verdict(verdict="contradicted", evidence=both[1:])])
    assert not check.sources_disagree


@pytest.mark.parametrize("word", ["unsupported", "partial"])
def test_a_contradicting_passage_makes_a_claim_contradicted(word: str) -> None:
    (check,) = checks(
        [
            verdict(
                verdict=word, evidence=[chunk_stance("chunk_2", "contradicts", "opened in 1931")]
            )
        ],
        YEAR,
    )
    assert (check.verdict, len(check.contradictions)) == ("contradicted", 1)


def contradicted_verdict(quote: str = "nowhere at all") -> dict[str, Any]:
    return verdict(verdict="contradicted", evidence=[chunk_stance("chunk_2", "contradicts", quote)])


def test_a_second_request_explains_the_problem_with_the_verdict() -> None:
    model_verifier, asker = verifier(
        ({"verdicts": [verdict(1), verdict(2, evidence=[])]}, {"verdicts": [verdict(1)]})
    )
    assert [check.verdict for check in model_verifier.verify([LENGTH, YEAR], EVIDENCE)] == [
        "supported",
        "supported",
    ]
    first, second = (json.dumps(request.prompt.task) for request in asker.requests)
    assert "returned" not in first.partition("<<<CLAIMS")[2]
    assert "The verifier names no chunk that supports this." in second
    assert "120 metres" not in second


def test_a_claim_is_rechecked_only_once() -> None:
    model_verifier, asker = verifier([verdict(evidence=[])])
    model_verifier.verify([LENGTH], EVIDENCE)
    assert len(asker.requests) == 2


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (contradicted_verdict(), contradicted_verdict("opened in 1931"), "contradicted"),
        (contradicted_verdict(), contradicted_verdict(), "unverifiable"),
        (contradicted_verdict(), verdict(), "unverifiable"),
        (contradicted_verdict(), verdict(verdict="unsupported", evidence=[]), "unsupported"),
        (contradicted_verdict(), verdict(verdict="none"), "unverifiable"),
        (verdict(evidence=[]), verdict(), "supported"),
        (verdict(evidence=[]), contradicted_verdict("opened in 1931"), "contradicted"),
        (verdict(verdict="perhaps"), verdict(), "supported"),
    ],
)
def test_the_second_verdict_counts_but_contradictions_are_kept(
    first: dict[str, Any], second: dict[str, Any], expected: str
) -> None:
    (check,) = verifier(({"verdicts": [first]}, {"verdicts": [second]}))[0].verify(
        [LENGTH], EVIDENCE
    )
    assert check.verdict == expected
    assert expected != "unverifiable" or check.abstained is not None


def test_a_contradiction_has_both_positions() -> None:
    stance = chunk_stance("chunk_2", "contradicts", "opened in 1931", "1932")
    reply = verdict(
        verdict="contradicted",
        reasoning="Another year.",
        evidence=[stance, stance | {"claim_words": "1999"}, stance | {"evidence_id": "chunk_9"}],
    )
    (check,) = checks([reply], YEAR)
    (contradiction,) = check.contradictions
    assert (
        YEAR.text[contradiction.claim_start : contradiction.claim_end]
        == contradiction.claim_text
        == "1932"
    )
    assert (
        EVIDENCE[1].text[contradiction.evidence_start : contradiction.evidence_end]
        == contradiction.evidence_text
        == "opened in 1931"
    )
    assert (check.sources, contradiction.reason) == (("chunk_2",), "Another year.")


@pytest.mark.parametrize(
    ("quote", "reasoning", "kind"),
    [
        ("dissent (Judge Ash)", "Another wrote it.", "source"),
        ("I cannot agree.", "By its origin Judge Ash wrote the dissent.", "source"),
        # The text has another name, the reason has no name from the source, or the quotation has
        # words of the claim.
        ("I cannot agree.", "By its origin Judge Ash wrote the dissent, as Reed says.", "source"),
        ("I cannot agree.", "As Reed says.", "stated"),
        ("I cannot agree.", "Judge Ash says that he cannot agree.", "stated"),
        ("Not Judge Kallas but Reed spoke.", "Judge Ash wrote the dissent.", "stated"),
        ("nowhere to be found", "By its origin Judge Ash wrote the dissent.", None),
    ],
)
def test_a_contradiction_may_be_in_a_chunks_header(
    quote: str, reasoning: str, kind: str | None
) -> None:
    source = "Water Court, dissent (Judge Ash)"
    evidence = (
        Evidence(id="c1", text="I cannot agree. Not Judge Kallas but Reed spoke.", source=source),
    )
    claim = Claim(text="In dissent Judge Kallas wrote")
    stance = chunk_stance("c1", "contradicts", quote, "Judge Kallas")
    reply = verdict(verdict="contradicted", reasoning=reasoning, evidence=[stance])
    (check,) = checks([reply], claim, evidence=evidence)
    assert [found.kind for found in check.contradictions] == ([kind] if kind else [])
    if kind == "source":
        (contradiction,) = check.contradictions
        assert (
            contradiction.evidence_text,
            contradiction.evidence_start,
            contradiction.evidence_end,
        ) == (source, 0, 0)
        assert check.issue == reasoning


def test_a_contradiction_is_kept_next_to_a_supporting_passage() -> None:
    stance = chunk_stance("chunk_2", "contradicts", "opened in 1931", "120")
    leaves_open = chunk_stance("chunk_2", "leaves_open", "It opened in 1931")
    (check,) = checks([verdict(evidence=[chunk_stance(quote="120 metres"), leaves_open])])
    assert [quote.text for quote in check.quotes] == ["120 metres"]
    (check,) = checks([verdict(evidence=[chunk_stance(quote="120 metres"), stance])])
    assert (check.verdict, [found.claim_text for found in check.contradictions]) == (
        "supported",
        ["120"],
    )


@pytest.mark.parametrize(
    "text",
    [
        "The sources don't give a width.",
        "No width is given in the evidence.",
        "Die Quellen nennen keine Breite.",
        "The press release states no reason.",
        "The memo of March 2021 doesn't say what it cost.",
        "Neither letter mentions a deadline.",
        "The leaflet is old and does not name a dose.",
        "The minutes never explain why.",
        "The sources don't say that it is 12 metres wide.",
        "The interview names no date.",
    ],
)
def test_a_claim_of_silence_is_supported_if_every_chunk_leaves_it_open(
    text: str,
) -> None:
    leaves_open, claim = chunk_stance("all", "leaves_open"), Claim(text=text)
    assert [check.verdict for check in checks([verdict(evidence=[leaves_open])], claim)] == [
        "supported"
    ]
    for evidence in ([chunk_stance("all")], [leaves_open, chunk_stance("chunk_1", "contradicts")]):
        assert [check.verdict for check in checks([verdict(evidence=evidence)], claim)] == [
            "unverifiable"
        ]


@pytest.mark.parametrize(
    "text",
    [
        YEAR.text,
        "The study found no difference.",
        "The survey reported no deaths.",
        "The policy gives no refund.",
        "The contract states that no fee is due.",
        "The guideline doesn't name aspirin as safe.",
        "The log contains no errors.",
        "The letter contains no signature.",
        "The letter states that no fee is due.",
        "The memo says no deaths occurred.",
        "The sources say that no width is known.",
        "The policy was not renewed.",
        "No reason was found. The letter states the date.",
    ],
)
def test_other_claims_arent_supported_by_open_chunks(text: str) -> None:
    claim = Claim(text=text)
    assert (
        checks([verdict(evidence=[chunk_stance("all", "leaves_open")])], claim)[0].verdict
        == "unverifiable"
    )


# Findings about a sentence's references, derived from the model's stance on each chunk

CHUNKS = Chunks(
    [Evidence(id=name, text="words") for name in "abc"] + [Evidence(id="empty", text=" ")]
)


def judgement(
    cited: str, verdict: ClaimVerdict = "supported", sentence: int | None = 0, **stances: Stance
) -> ClaimJudgement:
    claim = Claim(text="It is long.", sentence=sentence, cited=tuple(cited.split()))
    return ClaimJudgement(
        ClaimCheck(claim=claim, verdict=verdict, support=0.9, confidence=0.9), stances
    )


def references(*group: ClaimJudgement) -> list[list[tuple[str, str, str | None]]]:
    """Return (evidence id, finding, better chunk) of the references of each claim."""
    return [
        [
            (reference.evidence_id, reference.finding, reference.better)
            for reference in check.references
        ]
        for check in with_references(group, CHUNKS)
    ]


@pytest.mark.parametrize(
    ("claim", "findings"),
    [
        (judgement("a", a="supports"), [("a", "supports", None)]),
        (judgement("a", "partial", a="supports_together"), [("a", "partly_supports", None)]),
        (
            judgement("a b", a="supports", b="leaves_open"),
            [("a", "supports", None), ("b", "redundant", None)],
        ),
        (
            judgement("a b", a="supports", b="supports_together"),
            [("a", "supports", None), ("b", "redundant", None)],
        ),
        (
            judgement("a b", "partial", a="supports_together", b="supports_together"),
            [("a", "partly_supports", None), ("b", "partly_supports", None)],
        ),
        (judgement("a", a="leaves_open", c="supports"), [("a", "misattributed", "c")]),
        (
            judgement("a", "partial", a="supports_together", c="supports_together"),
            [("a", "partly_supports", None)],
        ),
        (judgement("a", "unsupported", a="leaves_open"), [("a", "unsupported", None)]),
        (
            judgement("a", "unsupported", a="leaves_open", c="supports"),
            [("a", "unsupported", None)],
        ),
        (judgement("a", "contradicted", a="contradicts"), [("a", "contradicts", None)]),
        (
            judgement("a b", "contradicted", a="supports", b="contradicts"),
            [("a", "supports", None), ("b", "contradicts", None)],
        ),
        (judgement("a", c="supports"), [("a", "unchecked", None)]),
        (judgement("empty", c="supports"), [("empty", "unchecked", None)]),
        (judgement("a", "unscored"), [("a", "unchecked", None)]),
        (judgement("", c="supports"), []),
    ],
)
def test_the_stances_of_a_claim_decide_its_references(
    claim: ClaimJudgement, findings: list[tuple[str, str, str | None]]
) -> None:
    assert references(claim) == [findings]


def test_chunks_supporting_different_claims_are_both_needed() -> None:
    first = judgement("a b", a="supports", b="leaves_open")
    second = judgement("a b", a="leaves_open", b="supports")
    assert references(first, second) == [[("a", "supports", None)], [("b", "supports", None)]]


def test_a_chunk_no_claim_needs_is_redundant() -> None:
    first = judgement("a b c", a="supports", b="leaves_open", c="leaves_open")
    second = judgement("a b c", a="leaves_open", b="supports", c="leaves_open")
    assert references(first, second)[0] == [("a", "supports", None), ("c", "redundant", None)]


def test_a_better_chunk_is_suggested_only_without_cited_support() -> None:
    first = judgement("a b", a="leaves_open", b="supports", c="supports")
    second = judgement("a b", "unsupported", a="leaves_open", b="leaves_open")
    assert references(first, second) == [[("a", "unsupported", None), ("b", "supports", None)], []]


def test_separately_given_claims_are_judged_independently() -> None:
    for sentences in ((0, 1), (None, None)):
        first = judgement("a", sentence=sentences[0], a="supports")
        second = judgement("a", "unsupported", sentence=sentences[1], a="leaves_open")
        assert references(first, second) == [
            [("a", "supports", None)],
            [("a", "unsupported", None)],
        ]


def test_an_unjudged_claim_leaves_its_reference_open() -> None:
    first = judgement("a", "unscored")
    second = judgement("a", "unsupported", a="leaves_open")
    assert references(first, second) == [[], [("a", "unchecked", None)]]
