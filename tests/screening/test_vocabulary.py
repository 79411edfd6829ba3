"""Concepts are found by other spellings, other names and kinds, and lists are alternatives."""

from __future__ import annotations

from pathlib import Path

import pytest

from masis.schema.screening import Abstract, Grade
from masis.screening.grading import relevance as relevance_module
from masis.screening.grading import vocabulary
from masis.screening.grading.offline_grader import offline_grader
from masis.screening.grading.question import concepts_as_text, read_question
from masis.screening.grading.relevance import MENTIONED, relevance, relevance_by_meaning
from masis.screening.grading.vocabulary import word_stem
from tools.vocabulary import vocabulary as wordnet_lines

TRIAL = (
    "In this double-blind trial 412 adults were randomly assigned 1:1 by a computer-generated"
    " sequence. The primary outcome was analysed by intention to treat (odds ratio 0.61, 95% CI"
    " 0.45 to 0.83; p=0.002)."
)


def names(question: str) -> list[tuple[str, ...]]:
    """Return the concepts of a question, each with its alternatives."""
    return [
        (concept.name, *(other.text for other in concept.alternatives))
        for concept in read_question(question).concepts
    ]


def share_of(question: str, title: str, text: str = "") -> float:
    """Return how far an abstract matches the first concept of a question."""
    return relevance(read_question(question), Abstract(id="a", title=title, text=text)).met[0].share


def grade_abstract(question: str, title: str, text: str) -> Grade:
    return offline_grader().grade(question, [Abstract(id="a", title=title, text=text)])[0]


@pytest.mark.parametrize(
    ("british", "american"),
    [
        ("oesophagitis", "esophagitis"),
        ("haemoglobin", "hemoglobin"),
        ("diarrhoea", "diarrhea"),
        ("anaesthesia", "anesthesia"),
        ("paediatric", "pediatric"),
        ("tumours", "tumors"),
        ("behavioural", "behavioral"),
        ("randomised", "randomized"),
        ("hospitalisation", "hospitalization"),
        ("centres", "centers"),
        ("fibre", "fiber"),
        ("sulphate", "sulfate"),
        ("leucocytes", "leukocytes"),
        ("catalogue", "catalog"),
        ("ageing", "aging"),
        ("practise", "practice"),
    ],
)
def test_british_and_american_spellings_are_one_word(british: str, american: str) -> None:
    assert word_stem(british) == word_stem(american)


@pytest.mark.parametrize(
    ("word", "other"), [("hour", "her"), ("raise", "race"), ("acre", "acer"), ("toe", "tee")]
)
def test_words_that_only_look_alike_stay_different(word: str, other: str) -> None:
    assert word_stem(word) != word_stem(other)


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Do ACE inhibitors work?", "Zofenopril in adults"),
        ("Do calcium channel blockers work?", "Lercanidipine in adults"),
        ("Do proton pump inhibitors work?", "Dexlansoprazole in adults"),
        ("Do statins work?", "Pitavastatin in adults"),
        ("Do antihistamines work?", "Bilastine in adults"),
        ("Do monoclonal antibodies work?", "Dupilumab in adults"),
        ("Do nonsteroidal anti-inflammatory drugs work?", "Diflunisal in adults"),
        ("Do antihypertensives work?", "Captopril in adults"),
        ("Do doctors follow it?", "Reminders for surgeons"),
    ],
)
def test_a_kind_matches_a_question_about_its_class(question: str, title: str) -> None:
    assert share_of(question, title) == 1.0


@pytest.mark.parametrize("title", ["Visits in April", "A map of Scotland", "Ice and speed"])
def test_everyday_words_are_no_drugs(title: str) -> None:
    assert share_of("Do ACE inhibitors work?", title) == 0.0
    assert share_of("Do drugs work?", title) == 0.0


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "Do statins help adults with hypertension, heart failure or recent angina?",
            [("statins",), ("hypertension", "heart failure", "angina")],
        ),
        ("Are antihistamines effective for rhinitis or urticaria?",
         [("antihistamines",), ("rhinitis", "urticaria")]),
        ("Are vitamin and mineral intakes associated with health outcomes?",
         [("vitamin", "mineral")]),
        ("Does yoga reduce pain and anxiety?", [("yoga",), ("pain", "anxiety")]),
        ("Is yoga safe for children and adults with asthma?", [("yoga",), ("children",), ("asthma",)]),
        ("Does yoga in asthma reduce cough?", [("yoga",), ("asthma",), ("cough",)]),
        ("Do anticholinergic drugs reduce incontinence episodes?",
         [("anticholinergic",), ("incontinence",)]),
        ("Is recent disease severe in adults with gout?", [("gout",)]),
    ],
)  # fmt: skip
def test_lists_are_alternatives_and_empty_words_are_no_concepts(
    question: str, expected: list[tuple[str, ...]]
) -> None:
    found = [tuple(name.removesuffix(" drugs") for name in listed) for listed in names(question)]
    assert found == expected


def test_any_member_of_a_list_meets_its_concept() -> None:
    question = "Do statins help in hypertension, heart failure or gout?"
    for disease in ("hypertension", "heart failure", "gout"):
        match = relevance(
            read_question(question), Abstract(id="a", title=f"Statins in {disease}")
        ).score
        assert match == 1.0


def test_a_list_is_offered_as_names_of_one_concept() -> None:
    lines = concepts_as_text("Do statins help in hypertension, heart failure or gout?")
    assert lines["population"] == "hypertension = heart failure = gout"


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Lisinopril in diabetic nephropathy", "Lisinopril was given."),
        ("Heart failure in the community", "People with heart failure were followed."),
        ("Enalapril and quality of life", "Enalapril was taken daily."),
        ("Exercise after myocardial infarction", "Walking was encouraged."),
        ("Costs of hypertension", "A model of costs."),
    ],
)
def test_an_abstract_that_names_a_concept_of_the_question_is_never_off_topic(
    title: str, text: str
) -> None:
    question = (
        "Do ACE inhibitors reduce mortality in adults with hypertension, heart failure or recent"
        " myocardial infarction?"
    )
    assert grade_abstract(question, title, f"{text} {TRIAL}").rule != "off_topic"


def test_a_named_drug_is_never_replaced_by_similar_meaning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relevance_module, "similarity_of", lambda question, abstract: 0.95)
    question = read_question("Does atorvastatin prevent stroke?")
    other = Abstract(id="a", title="Prevention of strokes with a lipid-lowering capsule")
    score = relevance_by_meaning(question, other).score
    assert score is not None
    assert 0.30 <= score < 0.50


@pytest.mark.parametrize(
    ("text", "is_studied"),
    [
        ("Forty adults were assigned to metformin. Metformin was stopped at week 12.", True),
        ("Patients received metformin, and metformin was continued.", True),
        ("All were treated with metformin; metformin levels fell.", True),
        (
            "Some people knew of metformin. Its price, like that of metformin elsewhere, rose.",
            False,
        ),
        ("Guidelines name metformin. Knees were measured. Metformin is old.", False),
    ],
)
def test_an_intervention_counts_by_its_role_and_not_by_mention(text: str, is_studied: bool) -> None:
    share = share_of("Does metformin work?", "A study of knees", text)
    assert (share > MENTIONED) is is_studied
    assert share_of("Does metformin work?", "Metformin for knees", text) == 1.0


@pytest.mark.parametrize("animals", ["mice", "rats", "rabbits", "dogs", "zebrafish"])
def test_a_question_about_animals_takes_animal_studies(animals: str) -> None:
    text = (
        f"METHODS: Forty-eight {animals} were randomly assigned to fluoxetine or saline in a blinded"
        f" experiment. Behavior was analyzed. RESULTS: Fluoxetine reduced anxiety in {animals}"
        " (p=0.002, 95% CI 1 to 3)."
    )
    title = f"Fluoxetine reduces anxiety in {animals}"
    direct = grade_abstract(f"Does fluoxetine reduce anxiety in {animals}?", title, text)
    assert direct.rule != "weak_design"
    assert grade_abstract("Does fluoxetine reduce anxiety in adults?", title, text).rule != "strong"


def test_the_vocabulary_is_generated_from_the_files_of_wordnet(tmp_path: Path) -> None:
    """A drug is kept with its class, and a slang name whose first sense is another is left out."""
    noun = [
        "03252323 06 n 01 drug 0 001 ~ 00000002 n 0000 | a substance",
        "00000002 06 n 02 ACE_inhibitor 0 pusher 0 002 @ 03252323 n 0000 ~ 00000003 n 0000 | a class",
        "00000003 06 n 02 captopril 0 Capoten 0 001 @ 00000002 n 0000 | a drug",
        "00000009 18 n 01 pusher 0 000 | someone who pushes",
    ]  # fmt: skip
    noun += [
        f"{number} 26 n 01 root{number} 0 000 | another root"
        for number in ("03745652", "14075399", "14323139", "14107272", "00659325", "15113825",
                       "05414462", "10184702")
    ]  # fmt: skip
    index = [
        "drug n 1 1 ~ 1 0 03252323",
        "ace_inhibitor n 1 1 ~ 1 0 00000002",
        "captopril n 1 1 @ 1 0 00000003",
        "capoten n 1 1 @ 1 0 00000003",
        "pusher n 2 1 @ 2 1 00000009 00000002",
    ]
    (tmp_path / "data.noun").write_text("  1 license\n" + "\n".join(noun), encoding="latin-1")
    (tmp_path / "index.noun").write_text("  1 license\n" + "\n".join(index), encoding="latin-1")
    lines = [line.split("\t")[1:] for line in wordnet_lines(tmp_path)]
    assert ["", "drug"] in lines
    assert any(names == "ACE inhibitor" for _, names in lines)
    assert any(names == "captopril = Capoten" and broader for broader, names in lines)


def test_the_license_of_wordnet_is_beside_its_words() -> None:
    folder = Path(vocabulary.__file__).parent
    text = (folder / "WORDNET-LICENSE.txt").read_text(encoding="utf-8")
    assert "Copyright 2011 by Princeton University" in text
    assert "Permission to use, copy, modify and distribute" in text
