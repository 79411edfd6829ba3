"""Whole audits, over real HTTP, by a verifier model that replies carelessly.

The critic and the evaluator find no problem, so only the verifier's replies decide. One sentence
of seven is false. Whatever is wrong with the reply about it, the answer must go to a reviewer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import masis
from masis.schema.run import Run
from tests.cases import case_of
from tests.llm import canned
from tests.llm.asking import settings_for
from tests.serving_models import Behaviour, ModelServer, Request, reply_with

Row = dict[str, Any]
Change = Callable[[list[Row]], list[Row]]
Recheck = Callable[[Request], list[Row]]

EVIDENCE = {
    "1": (
        "The Orvik ferry carries 48 cars. It crosses the sound in 35 minutes. Dogs travel free of"
        " charge."
    ),
    "2": (
        "In winter the ferry leaves at 7.15 every morning. It does not sail when the wind exceeds"
        " 20 metres a second."
    ),
    "3": (
        "A ticket for a car costs 140 crowns. Tickets are sold on board only, and cards are taken."
    ),
}
QUESTION = "What should I know of the Orvik ferry, and is a ticket sold at 240 crowns?"
SENTENCES = (
    ("The Orvik ferry carries 48 cars [1].", "1", "carries 48 cars"),
    ("It crosses the sound in 35 minutes [1].", "1", "crosses the sound in 35 minutes"),
    ("Dogs travel free of charge [1].", "1", "Dogs travel free of charge"),
    ("In winter it leaves at 7.15 every morning [2].", "2", "leaves at 7.15 every morning"),
    ("A ticket for a car costs 240 crowns [3].", "3", "A ticket for a car costs 140 crowns"),
    ("Tickets are sold on board only [3].", "3", "Tickets are sold on board only"),
    (
        "The ferry stays in port when the wind exceeds 20 metres a second [2].",
        "2",
        "does not sail when the wind exceeds",
    ),
)
FALSE_SENTENCE = 4
"""The index of the false sentence in the list."""
FAULTY_ANSWER = " ".join(text for text, _, _ in SENTENCES)
CORRECT_ANSWER = FAULTY_ANSWER.replace("240", "140")


def support(chunk: str, quote: str, **changes: Any) -> Row:
    """Return a claim that is supported by this quotation."""
    return canned.judged_claim(
        1, evidence=[canned.chunk_stance(chunk, quote=quote)], confidence=0.95, **changes
    )


def contradiction(
    quote: str = "A ticket for a car costs 140 crowns", chunk: str = "3", **changes: Any
) -> Row:
    """Return a careful model's verdict on the false sentence."""
    stance = canned.chunk_stance(chunk, "contradicts", quote, "240 crowns")
    values: Row = {
        "evidence": [stance],
        "verdict": "contradicted",
        "confidence": 0.95,
        "reasoning": "It costs 140.",
    }
    return canned.judged_claim(FALSE_SENTENCE + 1, **(values | changes))


def careful_rows(false_sentence: Row | None = None) -> list[Row]:
    """Return a row with a correct quotation for each sentence.

    ``false_sentence`` replaces the row of the false sentence.
    """
    rows = [
        support(chunk, quote) | {"sentence": number}
        for number, (_, chunk, quote) in enumerate(SENTENCES, 1)
    ]
    if false_sentence is not None:
        rows[FALSE_SENTENCE] = false_sentence
    return rows


def no_verdicts(request: Request) -> list[Row]:
    """Reply to the recheck without a verdict."""
    return []


def invented_quotations(request: Request) -> list[Row]:
    """Reply to the recheck that every claim is supported, with words that no chunk has."""
    return [
        canned.verdict(
            claim["number"],
            evidence=[canned.chunk_stance("3", quote="as the timetable of 2019 says")],
        )
        for claim in map(json.loads, "".join(request.fences("CLAIMS")).splitlines())
    ]


RECHECKS: tuple[Recheck, ...] = (no_verdicts, invented_quotations)


def audited(rows: list[Row], recheck: Recheck = no_verdicts, answer: str = FAULTY_ANSWER) -> Run:
    """Audit the answer with a model that returns these rows and a critic that finds no problem."""

    def script(request: Request) -> Behaviour | None:
        match request.schema_name:
            case "checked_claims_reply":
                return reply_with({"claims": rows, "missing": []})
            case "verdicts_reply":
                return reply_with({"verdicts": recheck(request)})
            case "critique_reply":
                praise = {
                    "confidence": 0.95,
                    "overall_quality_score": 0.95,
                    "critique_confidence": 0.95,
                }
                return reply_with(canned.critique(**praise))
            case "evaluation_reply":
                scores = ("faithfulness", "relevance", "completeness", "reasoning_quality")
                return reply_with(
                    canned.evaluation(**dict.fromkeys(scores, 0.95), improvement_suggestions=[])
                )
        return None

    with ModelServer(script, issues="none") as server:
        settings = settings_for(server, "openai").with_values(
            {"spot_check_share": 0.0, "max_iterations": 1}
        )
        return masis.run_audit(case_of(answer, EVIDENCE, query=QUESTION), settings)


CONTRADICTED, UNCONFIRMED, UNSCORED = "contradicted_claim", "unconfirmed_claim", "unscored"


def codes(run: Run) -> set[str]:
    return {reason.code for reason in run.review_reasons}


def count_claims(run: Run) -> tuple[int, int]:
    """Return the numbers of confirmed and of checked claims."""
    report = run.iterations[0].claim_report
    return report.facts_verified, report.facts_checked


def assert_needs_review(run: Run, *causes: str) -> None:
    """Assert that the run needs review for one of these reasons, and that the false sentence isn't
    confirmed.
    """
    assert run.needs_review
    assert codes(run) & set(causes), run.review_reasons
    figure_offset = FAULTY_ANSWER.index("240")
    checks = [
        check
        for check in run.iterations[0].claims
        if check.claim.start is not None
        and check.claim.start <= figure_offset < (check.claim.end or 0)
    ]
    assert checks
    assert any(check.verdict != "supported" or check.contradictions for check in checks)


def variants(variants: dict[str, Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("variant", list(variants.values()), ids=list(variants))


with_each_recheck = pytest.mark.parametrize(
    "recheck", RECHECKS, ids=lambda recheck: recheck.__name__
)


def test_a_careful_reply_on_a_sound_answer_passes_every_check() -> None:
    """The control: only ``examined``, which requires an exam of the model, may fail."""
    run = audited(careful_rows(), answer=CORRECT_ANSWER)
    failed = {check.name for check in run.acceptance.checks if not check.passed}
    assert failed <= {"examined"}
    assert count_claims(run) == (7, 7)
    assert run.usage.calls == 3


def test_a_careful_reply_on_the_faulty_answer_flags_it() -> None:
    run = audited(careful_rows(contradiction()))
    assert_needs_review(run, CONTRADICTED)
    assert count_claims(run) == (6, 7)
    assert run.usage.calls == 3


MISQUOTED_WORDS = {
    "one letter changed": "A ticket for a car cosls 240 crowns",
    "one letter left out": "A ticket for a car costs 240 crwns",
    "two letters swapped": "A tikcet for a car costs 240 crowns",
    "another figure": "A ticket for a car costs 250 crowns",
    "paraphrased": "The price of a car ticket is 240 crowns",
    "of the evidence": "A ticket for a car costs 140 crowns",
    "in another language": "Ein Ticket für ein Auto kostet 240 Kronen",
    "with the marker of another": "A ticket for a car costs 240 crowns [2].",
}


@variants(MISQUOTED_WORDS)
def test_a_contradicted_claim_with_misquoted_words_keeps_its_verdict(variant: str) -> None:
    run = audited(careful_rows(contradiction() | {"words": variant}))
    assert_needs_review(run, CONTRADICTED)
    assert count_claims(run) == (6, 7)


@variants({name: words for name, words in MISQUOTED_WORDS.items() if "language" not in name})
def test_a_contradicted_claim_without_a_sentence_number_keeps_its_verdict(variant: str) -> None:
    run = audited(careful_rows(contradiction() | {"words": variant, "sentence": 99}))
    assert_needs_review(run, CONTRADICTED)
    assert count_claims(run) == (6, 7)


INCOMPLETE_LISTS: dict[str, Change] = {
    "a sentence": lambda rows: rows[:FALSE_SENTENCE] + rows[FALSE_SENTENCE + 1 :],
    "all but one": lambda rows: rows[:1],
    "named twice, another": lambda rows: [
        *rows[:FALSE_SENTENCE],
        rows[FALSE_SENTENCE - 1],
        *rows[FALSE_SENTENCE + 1 :],
    ],
    "a part of it": lambda rows: [
        (
            row | {"words": "A ticket for a car", "meaning": "There are tickets for cars"}
            if index == FALSE_SENTENCE
            else row
        )
        for index, row in enumerate(rows)
    ],
    "its beginning": lambda rows: [
        row | {"words": "A ticket for a car costs"} if index == FALSE_SENTENCE else row
        for index, row in enumerate(rows)
    ],
}


@with_each_recheck
@variants(INCOMPLETE_LISTS)
def test_an_unlisted_clause_isnt_confirmed(variant: Change, recheck: Recheck) -> None:
    run = audited(variant(careful_rows()), recheck)
    assert_needs_review(run, UNCONFIRMED, UNSCORED)
    verified, checked = count_claims(run)
    assert verified < checked
    assert checked >= 7


OMITTED_CLAUSES = {
    "English": (
        "Dogs travel free of charge, and cats pay the full fare [1].",
        "Dogs travel free of charge",
    ),
    "a condition": (
        "Dogs travel free of charge if they wear a muzzle [1].",
        "Dogs travel free of charge",
    ),
    "an exception": (
        "Dogs travel free of charge except on Sundays [1].",
        "Dogs travel free of charge",
    ),
    "a negation": ("Dogs never travel free of charge [1].", "travel free of charge"),
    "only": ("Only dogs travel free of charge [1].", "dogs travel free of charge"),
    "a figure": ("Dogs travel free of charge up to 30 kg [1].", "Dogs travel free of charge"),
    "a year": ("Since 2011 dogs travel free of charge [1].", "dogs travel free of charge"),
    "German": (
        "Hunde reisen kostenlos, Katzen zahlen den vollen Preis [1].",
        "Hunde reisen kostenlos",
    ),
    "Spanish": (
        "Los perros viajan gratis, pero los gatos pagan el billete entero [1].",
        "Los perros viajan gratis",
    ),
    "Japanese": (
        "犬は無料で乗船できますが、猫は全額を支払う必要があります [1]。",
        "犬は無料で乗船できます",
    ),
}


@with_each_recheck
@variants(OMITTED_CLAUSES)
def test_a_clause_omitted_from_a_claims_words_isnt_confirmed(
    variant: tuple[str, str], recheck: Recheck
) -> None:
    sentence, words = variant
    run = audited(
        [support("1", "Dogs travel free of charge", words=words)], recheck, answer=sentence
    )
    assert run.needs_review
    assert codes(run) & {UNCONFIRMED, UNSCORED}, run.iterations[0].claims
    assert count_claims(run)[0] < count_claims(run)[1]


IRRELEVANT_QUOTATIONS = {
    "invented": ("3", "a car ticket is sold at 240 crowns"),
    "empty": ("3", ""),
    "blank": ("3", " \n"),
    "of another chunk": ("2", "A ticket for a car costs 140 crowns"),
    "of a chunk that isn't there": ("9", "A ticket for a car costs 140 crowns"),
    "of no chunk": ("", "A ticket for a car costs 140 crowns"),
    "one figure changed": ("3", "A ticket for a car costs 240 crowns"),
    "one letter changed": ("3", "A ticket for a car cost 140 crowns"),
    "of the question": ("3", "is a ticket sold at 240 crowns"),
    "of the answer": ("3", "A ticket for a car costs 240 crowns [3]"),
    "of several places as one": ("3", "A ticket for a car is sold on board"),
    "trivial": ("3", "a"),
    "a word that all chunks have": ("2", "the"),
    "two words that say nothing": ("2", "when the"),
    "a mark": ("3", "."),
    "an ellipsis": ("3", "..."),
    "of the source's number": ("3", "[3]"),
}


@with_each_recheck
@variants(IRRELEVANT_QUOTATIONS)
def test_supported_with_an_irrelevant_quotation_isnt_accepted(
    variant: tuple[str, str], recheck: Recheck
) -> None:
    run = audited(careful_rows(support(*variant) | {"sentence": FALSE_SENTENCE + 1}), recheck)
    assert_needs_review(run, UNCONFIRMED)
    assert count_claims(run) == (6, 7)
    (check,) = [check for check in run.iterations[0].claims if check.verdict == "unverifiable"]
    assert check.abstained == "quotation"
    assert check.issue


@with_each_recheck
def test_supported_without_evidence_isnt_accepted(recheck: Recheck) -> None:
    for evidence in ([], None, [canned.chunk_stance("3", "leaves_open")]):
        run = audited(
            careful_rows(
                canned.judged_claim(FALSE_SENTENCE + 1, evidence=evidence, confidence=0.95)
            ),
            recheck,
        )
        assert_needs_review(run, UNCONFIRMED)
        assert count_claims(run) == (6, 7)


CONFIDENCES = {
    "0.2": 0.2,
    "per cent": "20%",
    "a fifth": "1/5",
    "a word": "low",
    "high in words": "high",
    "none": None,
    "no number": math.nan,
    "an infinite one": math.inf,
    "an anchor of the scale": 0.5,
    "negative": -1,
    "0": 0,
    "a list": [0.9],
}


@variants(CONFIDENCES)
def test_a_model_without_confidence_confirms_nothing(variant: Any) -> None:
    run = audited([row | {"confidence": variant} for row in careful_rows()])
    assert_needs_review(run, UNCONFIRMED)
    assert count_claims(run) == (0, 7)


@variants(CONFIDENCES)
def test_an_uncertain_verdict_is_shown_as_debatable(
    variant: Any,
) -> None:
    run = audited(careful_rows(contradiction(confidence=variant)))
    assert_needs_review(run, UNCONFIRMED)
    assert count_claims(run) == (6, 7)
    assert [check.abstained for check in run.iterations[0].claims if check.abstained] == [
        "either_way"
    ]


def test_a_reply_without_confidences_is_unreadable() -> None:
    rows = [
        {key: value for key, value in row.items() if key != "confidence"} for row in careful_rows()
    ]
    run = audited(rows)
    assert run.needs_review
    assert UNSCORED in codes(run)


REPEATED_CLAIMS: dict[str, Change] = {
    "denied first": lambda rows: [contradiction(), *rows],
    "denied last": lambda rows: [*rows, contradiction()],
    "denied in the middle of three": lambda rows: [*rows, contradiction(), rows[FALSE_SENTENCE]],
    "denied, then by its words": lambda rows: [
        contradiction(),
        *rows[:FALSE_SENTENCE],
        rows[FALSE_SENTENCE] | {"words": SENTENCES[FALSE_SENTENCE][0]},
    ],
    "denied in part": lambda rows: [*rows, contradiction() | {"words": "costs 240 crowns"}],
}


@variants(REPEATED_CLAIMS)
def test_the_worse_of_two_verdicts_counts(variant: Change) -> None:
    assert_needs_review(audited(variant(careful_rows())), CONTRADICTED)


def test_an_empty_list_confirms_nothing() -> None:
    for recheck in RECHECKS:
        run = audited([], recheck)
        assert_needs_review(run, UNCONFIRMED, UNSCORED)
        assert count_claims(run) == (0, 7)


UNKNOWN_SENTENCE_NUMBERS = {
    "beyond the last": 8,
    "none at all": 99,
    "0": 0,
    "negative": -3,
    "no number": None,
    "words": "the fifth",
    "a part": 5.5,
}


@with_each_recheck
@variants(UNKNOWN_SENTENCE_NUMBERS)
def test_a_claim_about_an_unknown_sentence_confirms_nothing(variant: Any, recheck: Recheck) -> None:
    run = audited(
        careful_rows(support("3", "A ticket for a car costs 140 crowns") | {"sentence": variant}),
        recheck,
    )
    assert_needs_review(run, UNCONFIRMED, UNSCORED)
    verified, checked = count_claims(run)
    assert verified < checked
    assert all(
        check.verdict != "supported" or check.claim.text.strip()
        for check in run.iterations[0].claims
    )


@with_each_recheck
@variants(UNKNOWN_SENTENCE_NUMBERS)
def test_a_contradiction_of_an_unknown_sentence_flags_the_answer(
    variant: Any, recheck: Recheck
) -> None:
    run = audited(careful_rows(contradiction() | {"sentence": variant}), recheck)
    assert_needs_review(run, CONTRADICTED)
    assert count_claims(run)[0] == 6


WRONG_CONTRADICTIONS = {
    "invented": ("3", "The ticket for cars has been 140 crowns for years"),
    "empty": ("3", ""),
    "of another chunk": ("1", "A ticket for a car costs 140 crowns"),
    "of a chunk that isn't there": ("7", "A ticket for a car costs 140 crowns"),
    "one figure changed": ("3", "A ticket for a car costs 14 crowns"),
    "trivial": ("3", "a"),
}


def other_quotation(request: Request) -> list[Row]:
    """Reply to the recheck that every claim is supported, with other words from chunk 3."""
    return [
        canned.verdict(
            claim["number"],
            evidence=[canned.chunk_stance("3", quote="Tickets are sold on board only")],
        )
        for claim in map(json.loads, "".join(request.fences("CLAIMS")).splitlines())
    ]


@pytest.mark.parametrize(
    "recheck", [*RECHECKS, other_quotation], ids=lambda recheck: recheck.__name__
)
@variants(WRONG_CONTRADICTIONS)
def test_a_contradiction_with_a_wrong_quotation_is_kept(
    variant: tuple[str, str], recheck: Recheck
) -> None:
    chunk, quote = variant
    run = audited(careful_rows(contradiction(quote, chunk)), recheck)
    assert_needs_review(run, UNCONFIRMED)
    assert count_claims(run) == (6, 7)
    (check,) = [check for check in run.iterations[0].claims if check.verdict == "unverifiable"]
    assert check.abstained
    assert check.issue


def supported_with(*evidence: Row) -> list[Row]:
    """Return rows that call the false sentence supported and also name this evidence."""
    supporting = canned.chunk_stance("3", quote="A ticket for a car")
    return careful_rows(
        canned.judged_claim(FALSE_SENTENCE + 1, evidence=[supporting, *evidence], confidence=0.95)
    )


CONTRADICTING_EVIDENCE = {
    "found": canned.chunk_stance("3", "contradicts", "costs 140 crowns", "240 crowns"),
    "without the claim's words": canned.chunk_stance("3", "contradicts", "costs 140 crowns"),
    "from a chunk not cited": canned.chunk_stance(
        "1", "contradicts", "Dogs travel free of charge", "costs"
    ),
    "invented": canned.chunk_stance("3", "contradicts", "the price was never 240", "240"),
    "without a quotation": canned.chunk_stance("3", "contradicts"),
    "of a chunk that isn't there": canned.chunk_stance(
        "8", "contradicts", "costs 140 crowns", "240 crowns"
    ),
}


@with_each_recheck
@variants(CONTRADICTING_EVIDENCE)
def test_contradicting_evidence_overrides_supported(variant: Row, recheck: Recheck) -> None:
    assert_needs_review(
        audited(supported_with(variant), recheck), CONTRADICTED, UNCONFIRMED, "conflicting_evidence"
    )


@pytest.mark.parametrize("word", ["unsupported", "partial"])
def test_contradicting_evidence_overrides_other_verdicts(word: str) -> None:
    run = audited(careful_rows(contradiction(verdict=word)))
    assert_needs_review(run, CONTRADICTED)
    assert count_claims(run) == (6, 7)


WRONG_CALCULATIONS = {
    "wrong": "140 + 48 = 240",
    "wrong by rounding": "140 * 1.7 = 240",
    "wrong in its last step": "140 + 48 = 188; 188 + 35 = 240",
    "with an invented operand": "140 + 100.5 - 0.5 = 240",
    "with an invented price": "80 * 3 = 240",
    "with the figure itself": "480 / 2 = 240",
}


@with_each_recheck
@variants(WRONG_CALCULATIONS)
def test_a_claim_based_on_a_wrong_calculation_isnt_confirmed(
    variant: str, recheck: Recheck
) -> None:
    row = support("3", "A ticket for a car costs 140 crowns", calculation=variant) | {
        "sentence": FALSE_SENTENCE + 1
    }
    run = audited(careful_rows(row), recheck)
    assert_needs_review(run, UNCONFIRMED)
    assert count_claims(run) == (6, 7)


@with_each_recheck
def test_invented_quotations_confirm_nothing(
    recheck: Recheck,
) -> None:
    """A model with 1.5 billion parameters called 23 of 23 claims supported; 3 were false."""
    run = audited(
        [row | {"evidence": with_invented_quotes(row["evidence"])} for row in careful_rows()],
        recheck,
    )
    assert_needs_review(run, UNCONFIRMED)
    assert count_claims(run) == (0, 7)


def with_invented_quotes(evidence: Iterable[Row]) -> list[Row]:
    return [
        stance | {"quote": f"It is well known that this holds, as {stance['evidence_id']} says."}
        for stance in evidence
    ]


def test_a_retry_explains_what_was_wrong_with_the_verdict() -> None:
    claims: list[Row] = []

    def recheck(request: Request) -> list[Row]:
        claims.extend(map(json.loads, "".join(request.fences("CLAIMS")).splitlines()))
        evidence = [canned.chunk_stance("3", "contradicts", "costs 140 crowns", "240 crowns")]
        return [
            canned.verdict(claim["number"], evidence=evidence, verdict="contradicted")
            for claim in claims
        ]

    run = audited(
        careful_rows(support("3", "costs 240 crowns") | {"sentence": FALSE_SENTENCE + 1}), recheck
    )
    (row,) = claims
    assert row["claim"] == "A ticket for a car costs 240 crowns ."
    assert row["returned"] == "The words that the verifier quotes from 3 are not there."
    assert_needs_review(run, CONTRADICTED)
    assert count_claims(run) == (6, 7)
    assert run.usage.calls == 4
