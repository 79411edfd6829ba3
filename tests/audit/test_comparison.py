"""The comparison form applies the folds that its table declares, and changes nothing else."""

from __future__ import annotations

import dataclasses
import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.audit.text import comparison
from masis.audit.text.comparison import (
    FOLDS,
    Fold,
    comparison_form,
    quotation_forms,
    quotation_key,
    sentence_form,
)


def form(fold: Fold, text: str) -> str:
    return quotation_key(text) if fold.scope == "quotation" else sentence_form(text)


@pytest.mark.parametrize("fold", FOLDS, ids=lambda fold: fold.name)
def test_a_fold_equates_its_example_but_not_a_lookalike(fold: Fold) -> None:
    assert form(fold, fold.same[0]) == form(fold, fold.same[1])
    assert form(fold, fold.different[0]) != form(fold, fold.different[1])


@pytest.mark.parametrize("fold", FOLDS, ids=lambda fold: fold.name)
def test_without_its_fold_an_example_differs(fold: Fold, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        comparison, "FOLDS", tuple(other_fold for other_fold in FOLDS if other_fold is not fold)
    )
    assert form(fold, fold.same[0]) != form(fold, fold.same[1])


def test_a_new_fold_needs_only_its_table_entry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def american_spelling(text: str) -> object:
        return (
            comparison.FoldEdit(start, start + 6, "color")
            for start in range(len(text))
            if text.startswith("colour", start)
        )

    spelling_fold = dataclasses.replace(FOLDS[0], name="spelling", edits=american_spelling)
    monkeypatch.setattr(comparison, "FOLDS", (*FOLDS, spelling_fold))
    assert sentence_form("A colour.") == sentence_form("A color.")
    assert quotation_key("its colour") == quotation_key("its color")


def test_every_fold_has_a_unique_name_and_a_reason() -> None:
    assert len({fold.name for fold in FOLDS}) == len(FOLDS)
    assert all(fold.what and fold.why for fold in FOLDS)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Der Gru\u0308ne Weg ist lang.", "Der Gr\u00fcne Weg ist lang."),
        ("각 is a syllable.", unicodedata.normalize("NFD", "각 is a syllable.")),
        ("It has 5 \u2126.", "It has 5 \u03a9."),
        ("The co\u00ad\nuncil met.", "The council met."),
        ("Its e\ufb03ciency is low.", "Its efficiency is low."),
        ("The gov-\r\nernor signed it.", "The governor signed it."),
        ("The Anglo-\nSaxon wall stands.", "The Anglo-Saxon wall stands."),
        ("It’s the mayor’s “first” plan.", "It's the mayor's \"first\" plan."),
        ("The plank is 5' 3'' long.", "The plank is 5′ 3″ long."),
        (
            "The loan\u00a0\u2014\u00a0a small one\u2014was repaid.",
            "The loan - a small one - was repaid.",
        ),
        ("A five \u2011 gate dam.", "A five-gate dam."),
        ("It lost (-5) and \u22125 and minus 5.", "It lost (\u22125) and -5 and \u20135."),
        ("Pages 5 – 10 are 3,000 words.", "Pages 5-10 are 3000 words."),
        ("Fifty-one per cent of 12 won't.", "fifty-one per cent of twelve will not."),
        ("It dosed 2.5 ml , then -.5 ml .", "It dosed 2.5ml, then -0.5ml."),
        (
            "Before the war, the mill was shut, though it ran.",
            "Before the war the mill was shut though it ran.",
        ),
        (
            "The ***dam*** and `its wall` are _old_ and __quite safe__.",
            "The dam and its wall are old and quite safe.",
        ),
    ],
)
def test_typographic_variants_are_equal(first: str, second: str) -> None:
    assert sentence_form(first) == sentence_form(second)


PAIRS = (
    # superscripts, subscripts and other kinds of digits
    "10⁸ and 10³ and 108 and 10^8 and 10*8 and 10**8 and 10-8 and 10⁻⁸ and 10 8 and 10₈ and ①0",
    "m³ and m² and m and m3 and M³",
    "Fe²⁺ and Fe³⁺ and Fe and Fe2+ and Fe⁺ and Fe²⁻",
    "¹³C and ¹⁴C and C and 13C and [13]C and C₁₃",
    "H₂O and HO and H₂O₂",
    "½ and 1/2 and 12 and ⅓",
    # brackets
    "[2,8] and [2,9] and (2,8) and 2,8 and {2,8} and [2,8) and ]2,8[",
    "(5) and 5 and [5] and -5 and {5}",
    "$(5) and $5 and -$5 and $-5 and +$5 and ~$5",
    "10[6] and 10[3] and 10 and 106 and 10(6)",
    "a[0] and a[1] and a and a(0)",
    # signs
    "-5 and 5 and +5 and ±5 and ~5 and ≈5 and /5 and !5 and #5 and *5 and 5* and 5+",
    "<5 and >5 and ≤5 and ≥5 and ≠5 and =5 and 5",
    "+/-5 and +/5 and -/+5",
    "5! and 5 and 5!!",
    "x!=5 and x=5 and x==5 and x<5 and x<=5",
    "!ready and ready and ready!done",
    "0.5 and 5 and 05 and 0.50 and 0,5 and .05",
    "5′ and 5″ and 5 and 5° and 5‴",
    "1:3 and 13 and 3:1 and 1.3 and 1,3 and 1;3 and 1/3 and 1-3 and 1 3",
    "5% and 5‰ and 5 and 5%p and 5°",
    # units and codes that differ by case
    "MW and mW and Mw and mw",
    "Mb and MB and mb and Mb/s and MB/s and Mbit and Mbyte",
    "pF and PF and Pf",
    "kcal and Kcal and cal and Cal",
    "T and t and Ta",
    "MΩ and mΩ",
    "µg and mg and Mg and g",
    "-v and -V and v and --v and —v",
    "US and us and Us",
    "Polish and polish",
    "NaN and nan and Nan",
    # signs before and after a name
    "A and A- and A+ and A* and A# and A' and A-- and A++ and A® and A† and A‡ and a",
    "C and C# and C++ and C* and C♯ and F#",
    "BBB and BBB- and BBB+ and BB",
    "$x and x and @x and #x and %x and &x and *x and ~x and \\x and _x and x_ and __x",
    "./data and ../data and /data and data and ~/data and .data and data/",
    "a*b and ab and a b and a.b and a->b and a|b and a||b and a&b and a&&b and a-b and a+b and a^b",
    "FY_22 and FY22 and FY-22 and FY 22 and FY*22",
    "__init__ and init and _init_x",
    # money
    "$5 and €5 and £5 and ¥5 and 5 and US$5 and A$5 and 5$ and 5¢",
    "1,500 and 1.500 and 15,00 and 1,5 and 1500.0 and 1,500,000",
    # words
    "re-signed and resigned and re signed",
    "and/or and and or and or and and",
    "underground and under ground",
    "œuvre and euvre and oeuvre",
    "straße and strasse",
    "café and cafe and cafè",
    "✅ and ❌ and ✔ and ☑",
    "→ and ← and ↔ and ↑ and - and >",
)


@pytest.mark.parametrize("row", PAIRS)
def test_meaningful_differences_are_kept(row: str) -> None:
    variants = row.split(" and ") if "and/or" not in row else ["and/or", "and or", "or", "and"]
    forms = {text: sentence_form(f"The value is {text} in all reports.") for text in variants}
    assert len(set(forms.values())) == len(variants), forms
    at_the_end = {text: sentence_form(f"The value of the day is {text}.") for text in variants}
    assert len(set(at_the_end.values())) == len(variants), at_the_end


WORDS = st.lists(
    st.sampled_from(
        "the dam valve holds water near a wall of brick and stone while it rains in May".split()
    ),
    min_size=3,
    max_size=10,
)
SIGNS = "⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₊₋⁺⁻+±−*#^~=<>≤≥≠%‰°′″$€£¥§@&|\\/_!?©®™†‡√∞∂∑∏∫←→↔✅❌"


@given(
    WORDS,
    st.sampled_from(SIGNS),
    st.integers(1, 9_999),
    st.sampled_from(["{0}{1}", "{1}{0}", "{0} {1}", "{0}"]),
)
def test_a_sign_added_to_a_figure_is_a_difference(
    words: list[str], sign: str, figure: int, template: str
) -> None:
    figure_with_sign = template.format(sign, figure)
    with_sign = " ".join([*words, figure_with_sign, "kelvin", "again"])
    without_sign = " ".join([*words, str(figure), "kelvin", "again"])
    if template == "{0}":
        without_sign = " ".join([*words, "kelvin", "again"])
    assert sentence_form(with_sign) != sentence_form(without_sign)


@given(
    WORDS,
    st.sampled_from(SIGNS),
    st.sampled_from(SIGNS),
    st.integers(1, 999),
    st.sampled_from(["{0}{1}", "{1}{0}"]),
)
def test_a_replaced_sign_is_a_difference(
    words: list[str], first_sign: str, second_sign: str, figure: int, template: str
) -> None:
    texts = [
        f"{' '.join(words)} {template.format(sign, figure)} kelvin"
        for sign in (first_sign, second_sign)
    ]
    assert (sentence_form(texts[0]) == sentence_form(texts[1])) == (first_sign == second_sign)


@given(WORDS, st.text(string.ascii_letters, min_size=1, max_size=3))
def test_the_case_of_a_unit_is_a_difference(words: list[str], unit: str) -> None:
    text = f"{' '.join(words)} 5 {unit} again"
    swapped = f"{' '.join(words)} 5 {unit.swapcase()} again"
    assert sentence_form(text) != sentence_form(swapped)


@given(
    WORDS,
    st.integers(0, 999),
    st.sampled_from(["-", "−", "–", "+", ".", "<", "~"]),
    st.sampled_from(["", "$", "€"]),
)
def test_a_sign_or_point_before_a_figure_is_a_difference(
    words: list[str], figure: int, sign: str, currency: str
) -> None:
    text = f"{' '.join(words)} {currency}{figure} again"
    changed = f"{' '.join(words)} {sign}{currency}{figure} again"
    assert sentence_form(text) != sentence_form(changed)


@given(
    WORDS,
    st.lists(st.integers(0, 999), min_size=1, max_size=3),
    st.lists(st.integers(0, 999), min_size=1, max_size=3),
)
def test_other_figures_in_brackets_are_a_difference(
    words: list[str], first_figures: list[int], second_figures: list[int]
) -> None:
    texts = [
        sentence_form(f"{' '.join(words)} {figures} again")
        for figures in (first_figures, second_figures)
    ]
    assert (texts[0] == texts[1]) == (first_figures == second_figures)


PIECES = (
    "The dam it’s can't 1,500 twelve -5 .5 “so” 5″ [2, 8] **bold** a*b A* re-\nsigned may-\nor ﬁne"
    " 5–10 5 % cafe\u0301"
)
SENTENCE = st.lists(
    st.one_of(st.sampled_from(PIECES.split(" ")), st.text(max_size=6)), max_size=12
).map(" ".join)


@given(SENTENCE)
def test_the_comparison_form_is_idempotent(text: str) -> None:
    folded = sentence_form(text)
    # A fold may bring two characters together, so that another fold applies. After a few rounds
    # the form no longer changes.
    for _ in range(4):
        folded = sentence_form(folded)
    assert sentence_form(folded) == folded


@given(SENTENCE)
def test_every_character_of_the_form_maps_to_the_text(text: str) -> None:
    for folded in (comparison_form(text), *quotation_forms(text)):
        assert len(folded.text) == len(folded.starts) == len(folded.ends)
        assert all(
            0 <= start < end <= len(text)
            for start, end in zip(folded.starts, folded.ends, strict=True)
        )
        assert list(folded.starts) == sorted(folded.starts)


@given(SENTENCE)
def test_a_fold_changes_only_texts_with_its_declared_characters(text: str) -> None:
    for fold in FOLDS:
        if fold.signs and not set(text) & set(fold.signs):
            assert not list(fold.edits(text)), fold.name


def test_offsets_in_the_form_map_to_the_original() -> None:
    text = "He can't ﬁnd the cafe\u0301 of **Łódź**, 1,500 m away."
    folded = comparison_form(text)
    for words, original in (
        ("cannot find", "can't ﬁnd"),
        ("find", "ﬁnd"),
        ("caf\u00e9", "cafe\u0301"),
        ("Łódź,", "Łódź**,"),
        ("1500", "1,500"),
    ):
        position = folded.text.index(words)
        start, end = folded.span(position, position + len(words))
        assert text[start:end] == original


def test_an_ignored_span_counts_as_a_space() -> None:
    assert comparison_form("The dam[1] is safe.", [(7, 10)]).text == "The dam is safe."
    assert comparison_form("ab", [(1, 1), (5, 9), (-2, 1)]).text == "ab"


def test_a_line_end_hyphen_in_a_quotation_matches_both_ways() -> None:
    texts = {quotation_form.text for quotation_form in quotation_forms("a well-\nknown may-\nor")}
    assert {"a well-known may-or", "a wellknown mayor", "a well-known mayor"} <= texts
    assert len(quotation_forms("a well-known mayor")) == 1
