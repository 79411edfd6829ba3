"""What a careless, small or hasty model replies, and what comes of it: whole audits over real HTTP.

The critic and the evaluator find nothing in any of them, so that only the verifier's replies
decide. One sentence of seven is false. Whatever is wrong with the reply on it, nobody may get the
answer without a person having read it.
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
from tests.serving_models import Behaviour, ModelServer, Request, says

Row = dict[str, Any]
Change = Callable[[list[Row]], list[Row]]
Again = Callable[[Request], list[Row]]

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
WRONG = 4
"""The place of the false sentence in the list."""
FAULTY = " ".join(text for text, _, _ in SENTENCES)
SOUND = FAULTY.replace("240", "140")


def supported(chunk: str, quote: str, **changes: Any) -> Row:
    """A verdict for a claim, with this quotation."""
    return canned.judged(
        1, evidence=[canned.supporting(chunk, quote=quote)], confidence=0.95, **changes
    )


def denied(
    quote: str = "A ticket for a car costs 140 crowns", chunk: str = "3", **changes: Any
) -> Row:
    """The verdict on the false sentence as a careful model gives it."""
    against = canned.supporting(chunk, "contradicts", quote, "240 crowns")
    given: Row = {
        "evidence": [against],
        "verdict": "contradicted",
        "confidence": 0.95,
        "reasoning": "It costs 140.",
    }
    return canned.judged(WRONG + 1, **(given | changes))


def careful(wrong: Row | None = None) -> list[Row]:
    """A row for each sentence, with words that the evidence has; ``wrong`` is that of the false
    one.
    """
    rows = [
        supported(chunk, quote) | {"sentence": at}
        for at, (_, chunk, quote) in enumerate(SENTENCES, 1)
    ]
    if wrong is not None:
        rows[WRONG] = wrong
    return rows


def silent(request: Request) -> list[Row]:
    """Give no verdict when asked again."""
    return []


def stubborn(request: Request) -> list[Row]:
    """Call everything supported when asked again, with words that no chunk has."""
    return [
        canned.verdict(
            each["number"], evidence=[canned.supporting("3", quote="as the timetable of 2019 says")]
        )
        for each in map(json.loads, "".join(request.fences("CLAIMS")).splitlines())
    ]


AGAIN: tuple[Again, ...] = (silent, stubborn)


def audited(rows: list[Row], again: Again = silent, answer: str = FAULTY) -> Run:
    """The audit of the answer by a model that lists these claims, and whose critic praises whatever
    it reads.
    """

    def script(request: Request) -> Behaviour | None:
        match request.schema_name:
            case "checked_claims_reply":
                return says({"claims": rows, "missing": []})
            case "verdicts_reply":
                return says({"verdicts": again(request)})
            case "critique_reply":
                praise = {
                    "confidence": 0.95,
                    "overall_quality_score": 0.95,
                    "critique_confidence": 0.95,
                }
                return says(canned.critique(**praise))
            case "evaluation_reply":
                scores = ("faithfulness", "relevance", "completeness", "reasoning_quality")
                return says(
                    canned.evaluation(**dict.fromkeys(scores, 0.95), improvement_suggestions=[])
                )
        return None

    with ModelServer(script, issues="none") as server:
        settings = settings_for(server, "openai").with_values(
            {"spot_check_share": 0.0, "max_iterations": 1}
        )
        return masis.run_audit(case_of(answer, EVIDENCE, query=QUESTION), settings)


ACCUSED, UNCONFIRMED, UNSCORED = "contradicted_claim", "unconfirmed_claim", "unscored"


def codes(run: Run) -> set[str]:
    return {reason.code for reason in run.review_reasons}


def counts(run: Run) -> tuple[int, int]:
    """Claims that are confirmed, of how many."""
    report = run.iterations[0].claim_report
    return report.facts_verified, report.facts_checked


def goes_to_a_person(run: Run, *causes: str) -> None:
    """Assert that the run isn't accepted, for one of these reasons, and that the false sentence is
    not confirmed.
    """
    assert run.needs_review
    assert codes(run) & set(causes), run.review_reasons
    start = FAULTY.index("240")
    about = [
        check
        for check in run.iterations[0].claims
        if check.claim.start is not None and check.claim.start <= start < (check.claim.end or 0)
    ]
    assert about
    assert any(check.verdict != "supported" or check.contradictions for check in about)


def ways(ways: dict[str, Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("way", list(ways.values()), ids=list(ways))


each_second_reply = pytest.mark.parametrize("again", AGAIN, ids=lambda again: again.__name__)


def test_a_careful_reply_on_a_sound_answer_passes_every_check() -> None:
    """The control: but for ``examined``, which asks for an exam of the model, nothing keeps it from
    being accepted.
    """
    run = audited(careful(), answer=SOUND)
    failed = {check.name for check in run.acceptance.checks if not check.passed}
    assert failed <= {"examined"}
    assert counts(run) == (7, 7)
    assert run.usage.calls == 3


def test_a_careful_reply_on_the_faulty_answer_flags_it() -> None:
    run = audited(careful(denied()))
    goes_to_a_person(run, ACCUSED)
    assert counts(run) == (6, 7)
    assert run.usage.calls == 3


WORDS = {
    "one letter changed": "A ticket for a car cosls 240 crowns",
    "one letter left out": "A ticket for a car costs 240 crwns",
    "two letters swapped": "A tikcet for a car costs 240 crowns",
    "another figure": "A ticket for a car costs 250 crowns",
    "paraphrased": "The price of a car ticket is 240 crowns",
    "of the evidence": "A ticket for a car costs 140 crowns",
    "in another language": "Ein Ticket für ein Auto kostet 240 Kronen",
    "with the marker of another": "A ticket for a car costs 240 crowns [2].",
}


@ways(WORDS)
def test_a_contradicted_claim_with_misquoted_words_keeps_its_verdict(way: str) -> None:
    run = audited(careful(denied() | {"words": way}))
    goes_to_a_person(run, ACCUSED)
    assert counts(run) == (6, 7)


@ways({name: words for name, words in WORDS.items() if "language" not in name})
def test_a_contradicted_claim_without_a_sentence_number_keeps_its_verdict(way: str) -> None:
    run = audited(careful(denied() | {"words": way, "sentence": 99}))
    goes_to_a_person(run, ACCUSED)
    assert counts(run) == (6, 7)


UNLISTED: dict[str, Change] = {
    "a sentence": lambda rows: rows[:WRONG] + rows[WRONG + 1 :],
    "all but one": lambda rows: rows[:1],
    "named twice, another": lambda rows: [*rows[:WRONG], rows[WRONG - 1], *rows[WRONG + 1 :]],
    "a part of it": lambda rows: [
        (
            row | {"words": "A ticket for a car", "meaning": "There are tickets for cars"}
            if at == WRONG
            else row
        )
        for at, row in enumerate(rows)
    ],
    "its beginning": lambda rows: [
        row | {"words": "A ticket for a car costs"} if at == WRONG else row
        for at, row in enumerate(rows)
    ],
}


@each_second_reply
@ways(UNLISTED)
def test_an_unlisted_clause_isnt_confirmed(way: Change, again: Again) -> None:
    run = audited(way(careful()), again)
    goes_to_a_person(run, UNCONFIRMED, UNSCORED)
    verified, checked = counts(run)
    assert verified < checked
    assert checked >= 7


CLAUSES = {
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


@each_second_reply
@ways(CLAUSES)
def test_a_clause_omitted_from_a_claims_words_isnt_confirmed(
    way: tuple[str, str], again: Again
) -> None:
    sentence, words = way
    run = audited(
        [supported("1", "Dogs travel free of charge", words=words)], again, answer=sentence
    )
    assert run.needs_review
    assert codes(run) & {UNCONFIRMED, UNSCORED}, run.iterations[0].claims
    assert counts(run)[0] < counts(run)[1]


QUOTATIONS = {
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


@each_second_reply
@ways(QUOTATIONS)
def test_supported_with_an_irrelevant_quotation_isnt_accepted(
    way: tuple[str, str], again: Again
) -> None:
    run = audited(careful(supported(*way) | {"sentence": WRONG + 1}), again)
    goes_to_a_person(run, UNCONFIRMED)
    assert counts(run) == (6, 7)
    (check,) = [check for check in run.iterations[0].claims if check.verdict == "unverifiable"]
    assert check.abstained == "quotation"
    assert check.issue


@each_second_reply
def test_supported_without_evidence_isnt_accepted(again: Again) -> None:
    for evidence in ([], None, [canned.supporting("3", "leaves_open")]):
        run = audited(careful(canned.judged(WRONG + 1, evidence=evidence, confidence=0.95)), again)
        goes_to_a_person(run, UNCONFIRMED)
        assert counts(run) == (6, 7)


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


@ways(CONFIDENCES)
def test_a_model_without_confidence_confirms_nothing(way: Any) -> None:
    run = audited([row | {"confidence": way} for row in careful()])
    goes_to_a_person(run, UNCONFIRMED)
    assert counts(run) == (0, 7)


@ways(CONFIDENCES)
def test_an_uncertain_verdict_is_shown_as_debatable(
    way: Any,
) -> None:
    run = audited(careful(denied(confidence=way)))
    goes_to_a_person(run, UNCONFIRMED)
    assert counts(run) == (6, 7)
    assert [check.abstained for check in run.iterations[0].claims if check.abstained] == [
        "either_way"
    ]


def test_a_reply_without_confidences_is_unreadable() -> None:
    rows = [{key: held for key, held in row.items() if key != "confidence"} for row in careful()]
    run = audited(rows)
    assert run.needs_review
    assert UNSCORED in codes(run)


TWICE: dict[str, Change] = {
    "denied first": lambda rows: [denied(), *rows],
    "denied last": lambda rows: [*rows, denied()],
    "denied in the middle of three": lambda rows: [*rows, denied(), rows[WRONG]],
    "denied, then by its words": lambda rows: [
        denied(),
        *rows[:WRONG],
        rows[WRONG] | {"words": SENTENCES[WRONG][0]},
    ],
    "denied in part": lambda rows: [*rows, denied() | {"words": "costs 240 crowns"}],
}


@ways(TWICE)
def test_the_worse_of_two_verdicts_counts(way: Change) -> None:
    goes_to_a_person(audited(way(careful())), ACCUSED)


def test_an_empty_list_confirms_nothing() -> None:
    for again in AGAIN:
        run = audited([], again)
        goes_to_a_person(run, UNCONFIRMED, UNSCORED)
        assert counts(run) == (0, 7)


NUMBERS = {
    "beyond the last": 8,
    "none at all": 99,
    "0": 0,
    "negative": -3,
    "no number": None,
    "words": "the fifth",
    "a part": 5.5,
}


@each_second_reply
@ways(NUMBERS)
def test_a_claim_about_an_unknown_sentence_confirms_nothing(way: Any, again: Again) -> None:
    run = audited(
        careful(supported("3", "A ticket for a car costs 140 crowns") | {"sentence": way}), again
    )
    goes_to_a_person(run, UNCONFIRMED, UNSCORED)
    verified, checked = counts(run)
    assert verified < checked
    assert all(
        check.verdict != "supported" or check.claim.text.strip()
        for check in run.iterations[0].claims
    )


@each_second_reply
@ways(NUMBERS)
def test_a_contradiction_of_an_unknown_sentence_flags_the_answer(way: Any, again: Again) -> None:
    run = audited(careful(denied() | {"sentence": way}), again)
    goes_to_a_person(run, ACCUSED)
    assert counts(run)[0] == 6


AGAINST = {
    "invented": ("3", "The ticket for cars has been 140 crowns for years"),
    "empty": ("3", ""),
    "of another chunk": ("1", "A ticket for a car costs 140 crowns"),
    "of a chunk that isn't there": ("7", "A ticket for a car costs 140 crowns"),
    "one figure changed": ("3", "A ticket for a car costs 14 crowns"),
    "trivial": ("3", "a"),
}


def converted(request: Request) -> list[Row]:
    """Call everything supported when asked again, with words that chunk 3 has."""
    return [
        canned.verdict(
            each["number"],
            evidence=[canned.supporting("3", quote="Tickets are sold on board only")],
        )
        for each in map(json.loads, "".join(request.fences("CLAIMS")).splitlines())
    ]


@pytest.mark.parametrize("again", [*AGAIN, converted], ids=lambda again: again.__name__)
@ways(AGAINST)
def test_a_contradiction_with_a_wrong_quotation_is_kept(way: tuple[str, str], again: Again) -> None:
    chunk, quote = way
    run = audited(careful(denied(quote, chunk)), again)
    goes_to_a_person(run, UNCONFIRMED)
    assert counts(run) == (6, 7)
    (check,) = [check for check in run.iterations[0].claims if check.verdict == "unverifiable"]
    assert check.abstained
    assert check.issue


def beside(*evidence: Row) -> list[Row]:
    """Careful rows with the false sentence called supported, and this evidence beside what supports
    it.
    """
    said = canned.supporting("3", quote="A ticket for a car")
    return careful(canned.judged(WRONG + 1, evidence=[said, *evidence], confidence=0.95))


IN_SUPPORT = {
    "found": canned.supporting("3", "contradicts", "costs 140 crowns", "240 crowns"),
    "without the claim's words": canned.supporting("3", "contradicts", "costs 140 crowns"),
    "from a chunk not cited": canned.supporting(
        "1", "contradicts", "Dogs travel free of charge", "costs"
    ),
    "invented": canned.supporting("3", "contradicts", "the price was never 240", "240"),
    "without a quotation": canned.supporting("3", "contradicts"),
    "of a chunk that isn't there": canned.supporting(
        "8", "contradicts", "costs 140 crowns", "240 crowns"
    ),
}


@each_second_reply
@ways(IN_SUPPORT)
def test_contradicting_evidence_overrides_supported(way: Row, again: Again) -> None:
    goes_to_a_person(audited(beside(way), again), ACCUSED, UNCONFIRMED, "conflicting_evidence")


@pytest.mark.parametrize("word", ["unsupported", "partial"])
def test_contradicting_evidence_overrides_other_verdicts(word: str) -> None:
    run = audited(careful(denied(verdict=word)))
    goes_to_a_person(run, ACCUSED)
    assert counts(run) == (6, 7)


CALCULATIONS = {
    "wrong": "140 + 48 = 240",
    "wrong by rounding": "140 * 1.7 = 240",
    "wrong in its last step": "140 + 48 = 188; 188 + 35 = 240",
    "with an invented operand": "140 + 100.5 - 0.5 = 240",
    "with an invented price": "80 * 3 = 240",
    "with the figure itself": "480 / 2 = 240",
}


@each_second_reply
@ways(CALCULATIONS)
def test_a_claim_based_on_a_wrong_calculation_isnt_confirmed(way: str, again: Again) -> None:
    row = supported("3", "A ticket for a car costs 140 crowns", calculation=way) | {
        "sentence": WRONG + 1
    }
    run = audited(careful(row), again)
    goes_to_a_person(run, UNCONFIRMED)
    assert counts(run) == (6, 7)


@each_second_reply
def test_invented_quotations_confirm_nothing(
    again: Again,
) -> None:
    """So a model of 1.5 billion parameters answered: 23 of 23 claims supported, 3 of them false."""
    run = audited([row | {"evidence": made_up(row["evidence"])} for row in careful()], again)
    goes_to_a_person(run, UNCONFIRMED)
    assert counts(run) == (0, 7)


def made_up(evidence: Iterable[Row]) -> list[Row]:
    return [
        each | {"quote": f"It is well known that this holds, as {each['evidence_id']} says."}
        for each in evidence
    ]


def test_a_retry_explains_what_was_wrong_with_the_verdict() -> None:
    asked: list[Row] = []

    def again(request: Request) -> list[Row]:
        asked.extend(map(json.loads, "".join(request.fences("CLAIMS")).splitlines()))
        evidence = [canned.supporting("3", "contradicts", "costs 140 crowns", "240 crowns")]
        return [
            canned.verdict(each["number"], evidence=evidence, verdict="contradicted")
            for each in asked
        ]

    run = audited(careful(supported("3", "costs 240 crowns") | {"sentence": WRONG + 1}), again)
    (row,) = asked
    assert row["claim"] == "A ticket for a car costs 240 crowns ."
    assert row["returned"] == "The words that the verifier quotes from 3 are not there."
    goes_to_a_person(run, ACCUSED)
    assert counts(run) == (6, 7)
    assert run.usage.calls == 4
