"""Copies of the evidence, and copies that were altered."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from masis import verify_claims
from masis.offline.checks.copies import CopyIndex, one_change
from masis.offline.matching.evidence_index import EvidenceIndex

SAFE = "The dam is safe for ten years."


def assess(
    evidence: str | list[str], claim: str, question: str = "", before: str = ""
) -> tuple[str, tuple[str, ...]]:
    texts = [evidence] if isinstance(evidence, str) else evidence
    index = EvidenceIndex((f"c{number}", text) for number, text in enumerate(texts, 1))
    assessment = index.assess(claim, question=question, before=before)
    return assessment.verdict, assessment.vetoes


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("The dam isn't safe for another ten years.", "The dam is not safe for another 10 years"),
        ("However, the dam is safe for ten years.", "The dam is safe for ten years."),
        ("Therefore, the dam is safe for ten years.", "The dam is safe for ten years."),
        ("The dam is safe for ten years.", "In addition, the dam is safe for ten years."),
        ("The dam is safe for ten years [12] (Smith et al., 2019).", "The dam is safe for ten years."),
        ("The World Health Organization (WHO) met in Oslo.", "The World Health Organization met in Oslo."),
        ("The dam is 410 metres long and was opened to traffic in 1931.", "The dam is 410 metres long."),
        ("It cost 1,500 euros. It was paid by the town.", "It cost 1500 euros and it was paid by the town."),
        ("# Notes\nThe dam is safe for ten years.", "The dam is safe for ten years."),
        ("Rules:\n\nDogs are allowed in the park. Cats are allowed as well.", "Cats are allowed as well."),
        ("The mayor said that “the dam is safe” on Monday.", "The mayor said that “the dam is safe” on Monday."),
        ("Growth was five per cent in the second quarter.", "Growth was 5% in the second quarter."),
        ("Its height is 30–40 metres at the top.", "Its height is 30-40 metres at the top."),
        ("The firm’s profit rose in 2019.", "The firm's profit rose in 2019."),
        ("Nur zwei Pumpen liefen. Sie liefen nicht lange!", "Sie liefen nicht lange."),
    ],
)  # fmt: skip
def test_typographic_variants_are_copies(evidence: str, claim: str) -> None:
    assert assess(evidence, claim) == ("supported", ())


@pytest.mark.parametrize(
    "heading",
    [
        "CONCLUSIONS: ",
        "IMPORTANCE: ",
        "Results - ",
        "Results – ",
        "CONCLUSIONS ",
        "CONCLUSIONS:\n",
        "CONCLUSIONS\n",
        "Conclusions:\n\n",
        "**Conclusion:** ",
        "[Results] ",
        "METHODS AND FINDINGS: ",
        "Main outcome measures: ",
        "Aim: to look. INTERPRETATION: ",
    ],
)
def test_the_heading_of_a_section_doesnt_hinder_a_copy(heading: str) -> None:
    assert assess(heading + SAFE, SAFE) == ("supported", ())
    negated = "The dam isn't safe for lorries."
    assert assess(heading + negated, "The dam is safe for lorries.")[0] == "contradicted"


@pytest.mark.parametrize(
    "heading",
    ["Hypothesis: ", "Objective: ", "Myth: ", "Design ", "Results of ", "Claim - ", "Not so: "],
)
def test_words_before_a_sentence_that_are_no_heading_hinder_a_copy(heading: str) -> None:
    assert assess(heading + SAFE, SAFE)[0] == "unverifiable"


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("Lake Vern is the second largest lake in the region.", "Lake Vern is the largest lake in the region."),
        ("The project overran its budget by 12 percent.", "The project came in under its budget."),
        ("The vote was held before May 2020.", "The vote was held after May 2020."),
        ("All pumps may be used indoors.", "All pumps will be used indoors."),
        ("The bridge might have been closed in 1990.", "The bridge may have been closed in 1990."),
        ("The council proposed a new tax on cars.", "The council adopted a new tax on cars."),
        ("Voss defeated Lebrune at Castril in May.", "Lebrune defeated Voss at Castril in May."),
        ("Profit rose from 5 to 7 million euros.", "Profit rose from 7 to 5 million euros."),
        ("Only members may vote at the annual meeting.", "All members may vote at the annual meeting."),
        ("The fee covers everything except meals and drinks.", "The fee covers everything including meals and drinks."),
        ("The firm reported a profit in 2020.", "The firm reported a loss in 2020."),
        ("Few patients improved in the trial.", "A few patients improved in the trial."),
        ("He was a founder of the club.", "He was the founder of the club."),
        ("Bans on fishing were lifted in March.", "Bans on fishing were not lifted in March."),
        ("The bridge can't be used by lorries.", "The bridge can be used by lorries."),
        ("The firm has up to 300 employees worldwide.", "The firm has 300 employees worldwide."),
        ("The temperature fell to -5 degrees that night.", "The temperature fell to 5 degrees that night."),
        ("Sales were <5 million in 2020 alone.", "Sales were 5 million in 2020 alone."),
        ("No, changes are needed in the law.", "No changes are needed in the law."),
        ("He thanked the men, who lied to him.", "He thanked the men who lied to him."),
        ("The residents re-signed last year in May.", "The residents resigned last year in May."),
        ("The ratio was 2:1 in favour of the plan.", "The ratio was 21 in favour of the plan."),
        ("The dam is safe for ten years.", "Therefore, the dam is safe for ten years."),
    ],
)  # fmt: skip
def test_one_meaning_changing_word_prevents_a_copy(evidence: str, claim: str) -> None:
    assert assess(evidence, claim)[0] != "supported"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("10⁶", "10⁹"),
        ("4 × 10⁻³", "4 × 10³"),
        ("7 cm³", "7 cm²"),
        ("7 cm²", "7 cm"),
        ("Cu²⁺", "Cu⁺"),
        ("⁹⁹Tc", "⁹⁷Tc"),
        ("N₂O", "NO"),
        ("an interval of [4, 7]", "an interval of [5, 9]"),
        ("10[5]", "10[4]"),
        ("[11]C", "[14]C"),
        ("row[2]", "row[3]"),
        ("-$40 million", "$40 million"),
        ("$(40) million", "$40 million"),
        ("(812)", "812"),
        ("−4%", "4%"),
        ("~4%", "4%"),
        ("+/-4", "+/4"),
        (".25 g", "25 g"),
        ("9 MV", "9 mV"),
        ("9 Mbit", "9 MBit"),
        ("9 Kb", "9 KB"),
        ("3 T", "3 t"),
        ("AA+", "AA"),
        ("A-", "A"),
        ("G#", "G"),
        ("C++", "C"),
        ("D*", "D"),
        ("K+", "K"),
        ("y != 3", "y = 3"),
        ("y >= 3", "y > 3"),
        ("!done", "done"),
        ("7!", "7"),
        ("7′", "7″"),
        ("7'", '7"'),
        ("7''", "7'"),
        ("2:3", "2 3"),
        ("2:30", "2.30"),
        ("a*b", "a b"),
        ("-q", "-Q"),
        ("../src", "./src"),
        ("$HOME", "HOME"),
        ("70‰", "70%"),
        ("✅", "❌"),
    ],
)
def test_a_copy_with_another_sign_unit_or_value_isnt_confirmed(first: str, second: str) -> None:
    for template in (
        "The value in the report of the plant is {} as of May.",
        "In the report of the plant it is {}.",
    ):
        texts = template.format(first), template.format(second)
        assert assess(texts[0], texts[0])[0] == "supported"
        assert assess(texts[0], texts[1])[0] != "supported"
        assert assess(texts[1], texts[0])[0] != "supported"


def test_a_copy_may_omit_evidence_markers_but_not_bracketed_values() -> None:
    assert assess("[3] The dam is safe for ten years.[4][5]", SAFE)[0] == "supported"
    assert (
        assess("The dam is safe, [4] for ten years [5–7].", "The dam is safe, for ten years.")[0]
        == "supported"
    )
    assert assess("The dam is safe for ten years.²", SAFE)[0] == "supported"
    assert (
        assess("The lot has ten square metres².", "The lot has ten square metres.")[0]
        != "supported"
    )
    assert (
        assess("The interval is [1, 4] in all women.", "The interval is in all women.")[0]
        != "supported"
    )


@pytest.mark.parametrize("join", [" and it is", ", and it is", "; it is"])
def test_two_sentences_joined_by_and_or_a_semicolon_are_a_copy(join: str) -> None:
    assert (
        assess("It is old and red. It is long as well.", f"It is old and red{join} long as well.")[
            0
        ]
        == "supported"
    )


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("Then the Polish firm left.", "Then the polish firm left."),
        ("Let us eat, Grandma Jones.", "Let us eat Grandma Jones."),
        ("They sell light, green and red lamps.", "They sell light green and red lamps."),
        ("He did not leave, until she came.", "He did not leave until she came."),
        ("It has twenty five-year-old pumps.", "It has 25-year-old pumps."),
        ("The plan is the best.", "The plan is “the best”."),
        ("He's left the firm alone.", "He is left the firm alone."),
    ],
)
def test_meaning_changing_punctuation_prevents_a_copy(evidence: str, claim: str) -> None:
    assert assess(evidence, claim)[0] != "supported"


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("Turn to verse [21] for the rule.", "Turn to verse [12] for the rule."),
        ("For the rule turn to verse [21].", "For the rule turn to verse [12]."),
        ("The plot has 5 x 10[3] square metres.", "The plot has 5 x 10[6] square metres."),
        (
            "The plot of the firm has 10 square metres.",
            "The plot of the firm has 10[6] square metres.",
        ),
        ("The value is stored in a[0].", "The value is stored in a[1]."),
    ],
)
def test_another_bracketed_number_prevents_a_copy(evidence: str, claim: str) -> None:
    assert verify_claims([claim], [evidence])[0].verdict != "supported"
    assert verify_claims([evidence], [evidence])[0].verdict == "supported"


def test_a_fabricated_citation_doesnt_prevent_a_copy() -> None:
    assert verify_claims(["The dam is safe for ten years [9]."], [SAFE])[0].verdict == "supported"
    (check,) = verify_claims(
        ["The dam is safe for ten years [1]."], ["The dam is safe for ten years [4]."]
    )
    assert check.verdict == "supported"


def test_a_copy_with_different_brackets_says_so() -> None:
    index = EvidenceIndex([("1", "Net cash in the year was (300) in all.")])
    assert index.assess("Net cash in the year was 300 in all.").change == ("300", "(300)")


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("It is false that the dam is safe for ten years.", "The dam is safe for ten years."),
        ("It is false that\nthe dam is safe for ten years.", "The dam is safe for ten years."),
        ("Critics deny that\nTor Dam is safe for ten years.", "Tor Dam is safe for ten years."),
        ("The dam is safe for ten years...", "The dam is safe for ten years."),
        ("The panel alleged that the firm hid the losses.", "The firm hid the losses."),
        ("If it rains, the game is cancelled at noon.", "The game is cancelled at noon."),
        ("In mice, the drug hints the disease within days.", "The drug hints the disease within days."),
        ("The company closed the plant unless orders came in.", "The company closed the plant."),
        ("The firm will close the plant and will sell the land if the vote fails.", "The firm will close the plant."),
        ("The dam is quite safe and was only partly inspected.", "The dam is quite safe."),
        ("Both the dam and the bridge are safe and were inspected.", "The dam and the bridge are safe."),
        ("Patients (not staff) were tested every week.", "Patients were tested every week."),
        ("Everyone (except minors) can vote in the poll.", "Everyone can vote in the poll."),
        ("The drug (DRAFT) is approved for use in adults.", "The drug is approved for use in adults."),
        ("The dam is … safe for ten years.", "The dam is safe for ten years."),
        ("Is the dam safe for ten years?", "Is the dam safe for ten years."),
    ],
)  # fmt: skip
def test_omitting_a_restriction_prevents_a_copy(evidence: str, claim: str) -> None:
    assert assess(evidence, claim)[0] != "supported"


@pytest.mark.parametrize(
    ("evidence", "veto"),
    [
        ("the dam is safe for ten years.", "cut"),
        ("As critics in the valley put it\nThe dam is safe for ten years.", "cut"),
        ("The dam is safe for ten years", "cut"),
        ('He said: "It is old. The dam is safe for ten years. It will hold."', "quoted"),
        ("“The dam is safe for ten years.”", "quoted"),
        ("The ‘dam’ is safe for ten years.", "quoted"),
        ("The draft said:\nThe dam is safe for ten years.", "introduced"),
        ("Not one of these is true:\n- The fee is low.\n- The dam is safe for ten years.", "introduced"),
        ("# Myths about the dam\n\nThe dam is safe for ten years.", "introduced"),
        ("The following claim is often heard. The dam is safe for ten years.", "introduced"),
        ("The draft had two points. The dam is safe for ten years.", "introduced"),
        ("The dam is safe for ten years. This is false.", "qualified"),
        ("The dam is safe for ten years. That claim was later retracted.", "qualified"),
        ("The dam is safe for ten years. However, the north wall leaks.", "qualified"),
        ("The dam is safe for ten years. The rule does not apply to floods.", "qualified"),
    ],
)  # fmt: skip
def test_a_copy_of_an_unasserted_passage_isnt_confirmed(evidence: str, veto: str) -> None:
    assert assess(evidence, SAFE) == ("unverifiable", (veto,))


@pytest.mark.parametrize(
    ("statement", "contrary_statement"),
    [
        ("The mill fire of 1911 killed 43 workers.", "The mill fire of 1911 killed 57 workers."),
        ("The vote will be held before May.", "The vote will be held after May."),
        ("The council adopted the plan in May.", "The council rejected the plan in May."),
    ],
)
def test_a_copy_negated_by_another_passage_is_disputed(
    statement: str, contrary_statement: str
) -> None:
    assert assess([statement, contrary_statement], statement) == ("unverifiable", ("disputed",))


def test_a_statement_about_something_else_doesnt_dispute_a_copy() -> None:
    assert (
        assess(["Anna Sell sang in Oslo.", "Karin Moe sang in Oslo."], "Anna Sell sang in Oslo.")[0]
        == "supported"
    )


@pytest.mark.parametrize(
    ("question", "before", "verdict"),
    [
        ("How long is the Tor Bridge?", "", "supported"),
        ("How long is the Ansel Bridge?", "", "unverifiable"),
        ("How long is it?", "The Ansel Bridge is red.", "unverifiable"),
        ("How long is it?", "The Tor Bridge is blue.", "supported"),
        ("", "", "supported"),
    ],
)
def test_a_copy_without_a_subject_uses_the_evidences_subject(
    question: str, before: str, verdict: str
) -> None:
    evidence = (
        "We saw the Ansel Bridge first. Then the Tor Bridge came in sight. It is 80 metres long."
    )
    assert assess(evidence, "It is 80 metres long.", question, before)[0] == verdict


def test_a_near_copy_names_the_differing_words() -> None:
    index = EvidenceIndex([("1", "Lake Vern is the second largest lake in the region.")])
    assert index.assess("Lake Vern is the largest lake in the region.").change == ("", "second")


def test_one_changed_stretch_is_a_near_copy_and_two_arent() -> None:
    change = one_change("the fee is five euros".split(), "the fee is six euros".split())
    assert (change.here, change.there) == (("five",), ("six",))
    assert one_change("a fee of five euros".split(), "the fee of six euros".split()) is None


def test_a_single_word_isnt_a_copy() -> None:
    assert CopyIndex(["It was red."]).find("It was red.") is None


# Claims altered by hand and their true versions, in small cases from many fields: an altered claim
# isn't confirmed

HERE = Path(__file__).parent
KINDS = ("number", "date", "name", "negation", "direction")
MIN_CORRECT_SHARE = 0.97
"""The share of flags that must be correct (107 of 107 measured)."""
MIN_FOUND_SHARE = {"number": 0.75, "date": 0.8}
"""The share of altered figures that must be flagged or marked (measured: 0.80 and 0.86)."""
MAX_MARKED_SHARE = 0.02
"""The share of true claims that may be marked (2 of 387 measured)."""


@cache
def verdict_counts() -> Counter[tuple[str, str]]:
    """Count the claims by kind (or "true") and verdict."""
    counts: Counter[tuple[str, str]] = Counter()
    for name in ("altered.json", "traps.json"):
        for case in json.loads((HERE / name).read_text("utf-8")):
            index = EvidenceIndex(
                [(str(number), text) for number, text in enumerate(case["evidence"], 1)]
            )
            claims = [("true", claim) for claim in case.get("true", case.get("clean"))]
            claims += [
                (altered_claim["kind"], altered_claim["claim"]) for altered_claim in case["altered"]
            ]
            for kind, claim in claims:
                assessment = index.assess(claim)
                counts[
                    kind,
                    (
                        "marked"
                        if assessment.verdict == "unverifiable" and assessment.figures
                        else assessment.verdict
                    ),
                ] += 1
    return counts


def count_of_altered(verdict: str) -> int:
    return sum(verdict_counts()[kind, verdict] for kind in KINDS)


@pytest.mark.slow
def test_altered_claims_arent_confirmed() -> None:
    assert sum(count for (kind, _), count in verdict_counts().items() if kind != "true") > 500
    assert count_of_altered("supported") == 0


@pytest.mark.slow
def test_flagged_claims_were_altered() -> None:
    correct_flags = count_of_altered("contradicted") + count_of_altered("unsupported")
    wrong_flags = verdict_counts()["true", "contradicted"] + verdict_counts()["true", "unsupported"]
    assert correct_flags >= 100
    assert correct_flags >= MIN_CORRECT_SHARE * (correct_flags + wrong_flags)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MIN_FOUND_SHARE)
def test_figures_missing_from_the_evidence_are_flagged_or_marked(kind: str) -> None:
    total = sum(count for (kind_, _), count in verdict_counts().items() if kind_ == kind)
    assert (
        verdict_counts()[kind, "contradicted"] + verdict_counts()[kind, "marked"]
        >= MIN_FOUND_SHARE[kind] * total
    )


@pytest.mark.slow
def test_few_figures_of_true_claims_are_marked() -> None:
    total = sum(count for (kind, _), count in verdict_counts().items() if kind == "true")
    assert 0 < verdict_counts()["true", "marked"] <= MAX_MARKED_SHARE * total


def verdict(evidence: str, claim: str) -> str:
    return EvidenceIndex([("1", evidence)]).assess(claim).verdict


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("Judge Paulsen gave the leading opinion; Judge Imhof dissented.", "Judge Paulsen dissented."),
        ("Photographs may be taken without flash.", "Photographs are not allowed."),
        ("Rails must be at least 1,100 mm high.", "Rails may be at most 1,100 mm high."),
        ("The stay costs 40 a night for up to six weeks.", "The stay costs 40 a night for up to six months."),
        ("The alarm sounded at 02:10.", "The alarm sounded at 03:10."),
        ("A quarter of the parcels held medicines.", "A third of the parcels held medicines."),
        ("In May Voss defeated Lebrune at Castril.", "Lebrune defeated Voss at Castril."),
        ("In May Voss defeated Lebrune at Castril.", "Voss was defeated by Lebrune at Castril."),
        (
            "Vancomycin is infused over 60 minutes; for operations on the bowel add gentamicin.",
            "Gentamicin is infused over 60 minutes, and for bowel operations vancomycin is added.",
        ),
        ("Counts rose from 412 in spring to 1,967 in autumn.", "Counts fell from 412 in spring to 1,967 in autumn."),
        ("The heater goes on heating without a connection.", "The heater stops heating without a connection."),
        ("Fatigue was ruled out. They ruled out fatigue in the weld.", "Fatigue in the weld was the cause."),
        ("The minister praised the report.", "The report praised the minister."),
        ("All pumps may be used indoors.", "No pumps may be used indoors."),
    ],
)  # fmt: skip
def test_swapped_claims_arent_confirmed(evidence: str, claim: str) -> None:
    assert verdict(evidence, claim) != "supported"


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("Openings wider than 120 mm are not allowed.", "No opening may be wider than 120 mm."),
        ("Customers were informed only in April.", "Customers were not told until April."),
        (
            "Do not add water before the mixture has cooled.",
            "Water is added only after the mixture has cooled.",
        ),
        ("The council declined to hold a referendum.", "No referendum was held."),
        (
            "Profit was 31 million in 2021 and 24 million in 2022.",
            "Profit was 7 million lower in 2022.",
        ),
        ("The colony had 1,240 seals in 2022.", "In 2022 the colony had about 1,200 seals."),
        ("It would save six hundred and forty thousand a year.", "It would save 640,000 a year."),
        ("They stand for seven per cent of loans.", "They stand for 7% of loans."),
        (
            "The study asked whether the drug improves survival.",
            "The drug does not improve survival.",
        ),
        ("The reservoir never fell below 70%.", "The reservoir stayed above 70%."),
        ("In May Voss defeated Lebrune at Castril.", "Lebrune was defeated by Voss at Castril."),
        ("Of 640 boats 32 were lost.", "One boat in twenty was lost, 5% of all."),
    ],
)
def test_entailed_and_paraphrased_claims_arent_flagged(evidence: str, claim: str) -> None:
    assert verdict(evidence, claim) not in ("contradicted", "unsupported")
