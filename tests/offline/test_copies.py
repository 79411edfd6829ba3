"""What counts as a copy of the evidence, what turns a near-copy, and what speaks against confirming a true one."""

import pytest

from masis.offline.checks.copies import CopyIndex, one_change
from masis.offline.matching.evidence_index import EvidenceIndex


def assessed(
    evidence: str | list[str], claim: str, question: str = "", before: str = ""
) -> tuple[str, tuple[str, ...]]:
    texts = [evidence] if isinstance(evidence, str) else evidence
    index = EvidenceIndex((f"c{number}", text) for number, text in enumerate(texts, 1))
    found = index.assess(claim, question=question, before=before)
    return found.verdict, found.vetoes


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("The dam isn't safe for another ten years.", "The dam is not safe for another 10 years"),
        ("However, the dam is safe for ten years.", "The dam is safe for ten years."),
        ("Therefore, the dam is safe for ten years.", "The dam is safe for ten years."),
        ("The dam is safe for ten years.", "In addition, the dam is safe for ten years."),
        ("The dam is safe [12] for ten years (Smith et al., 2019).", "The dam is safe for ten years."),
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
def test_what_is_written_otherwise_and_says_the_same_is_a_copy(evidence: str, claim: str) -> None:
    assert assessed(evidence, claim) == ("supported", ())


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
def test_one_word_that_turns_a_sentence_makes_it_no_copy(evidence: str, claim: str) -> None:
    assert assessed(evidence, claim)[0] != "supported"


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("It is false that the dam is safe for ten years.", "The dam is safe for ten years."),
        ("It is false that\nthe dam is safe for ten years.", "The dam is safe for ten years."),
        ("Critics deny that\nTor Dam is safe for ten years.", "Tor Dam is safe for ten years."),
        ("The dam is safe for ten years...", "The dam is safe for ten years."),
        ("The panel alleged that the firm hid the losses.", "The firm hid the losses."),
        ("If it rains, the game is cancelled at noon.", "The game is cancelled at noon."),
        ("In mice, the drug cures the disease within days.", "The drug cures the disease within days."),
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
def test_what_is_left_out_may_limit_what_is_left(evidence: str, claim: str) -> None:
    assert assessed(evidence, claim)[0] != "supported"


SAFE = "The dam is safe for ten years."


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
def test_a_copy_of_what_the_evidence_may_not_assert_is_not_confirmed(evidence: str, veto: str) -> None:
    assert assessed(evidence, SAFE) == ("unverifiable", (veto,))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The mill fire of 1911 killed 43 workers.", "The mill fire of 1911 killed 57 workers."),
        ("The vote will be held before May.", "The vote will be held after May."),
        ("The council adopted the plan in May.", "The council rejected the plan in May."),
    ],
)
def test_a_copy_that_another_passage_turns_is_disputed(one: str, other: str) -> None:
    assert assessed([one, other], one) == ("unverifiable", ("disputed",))


def test_the_same_said_of_something_else_disputes_nothing() -> None:
    assert assessed(["Anna Sell sang in Oslo.", "Karin Moe sang in Oslo."], "Anna Sell sang in Oslo.")[0] == "supported"


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
def test_a_copy_without_a_subject_of_its_own_takes_that_of_the_evidence(
    question: str, before: str, verdict: str
) -> None:
    evidence = "We saw the Ansel Bridge first. Then the Tor Bridge came in sight. It is 80 metres long."
    assert assessed(evidence, "It is 80 metres long.", question, before)[0] == verdict


def test_a_near_copy_says_which_words_differ() -> None:
    index = EvidenceIndex([("1", "Lake Vern is the second largest lake in the region.")])
    assert index.assess("Lake Vern is the largest lake in the region.").change == ("", "second")


def test_a_stretch_in_the_middle_is_one_change_and_two_stretches_are_none() -> None:
    change = one_change("the fee is five euros".split(), "the fee is six euros".split())
    assert change is not None
    assert (change.here, change.there) == (("five",), ("six",))
    assert one_change("a fee of five euros".split(), "the fee of six euros".split()) is None


def test_a_word_alone_is_no_copy() -> None:
    assert CopyIndex(["It was red."]).find("It was red.") is None
