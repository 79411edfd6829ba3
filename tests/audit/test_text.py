"""Texts are split into sentences, and quotes are located in a text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masis.audit.sentences import split_sentences
from masis.audit.text.quotes import locate_quote, located_parts


def sentence_texts(text: str) -> list[str]:
    return [text[span.start : span.end] for span in split_sentences(text)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Revenue fell 0.002% in 2004.", "It rose later."],
        ["Smith et al. [2004] showed it.", "Others agree."],
        ["Smith et al. (2004) showed it.", "Others agree."],
        ["Dr. J. R. Smith of the U.S. Army agreed.", "A. A. Milne did not."],
        ["He met Apple Inc. CEO Tim.", "He likes Apple Inc.", "The firm grew."],
        ["See Fig. 3 and No. 5 in vol. 2.", "E.g. this, i.e. that vs. those."],
        ["Version 3.11.2 is out.", "So is v2.0."],
        ["Visit https://a.example/c.d?e=f.", "Then mail a.b@c.example.", "Done!"],
        ["Visit www.site.example/Index.html for more.", "Done."],
        ['He said "Stop."', "She left."],
        ["He said “Stop!”", "(It was late.)", "She left."],
        ["Wait... what?", "Yes...", "No."],
        ["A value (p < 0.05. N = 3) counts.", "Next."],
        ["Use `a. B` there.", "Then stop."],
        ["He asked why?!", "Nobody knew."],
        ["Yahoo! is a firm.", "So is Jeopardy! in a way."],
        ["In St. Louis it rained at 5 p.m. on Sept. 11.", "Then it stopped."],
        ["He took vitamin C.", "The dose was small."],
        ["It cost $5.", "2004 was worse."],
        ["**It fell.**", "*It rose.*"],
        ["1. Wash the hands.", "Dry them."],
        ["Das gilt z.B. für Dr. Meier.", "Es gilt nicht für Nr. 5 usw."],
        ["Voir p.ex. M. Dupont.", "Il est parti."],
        ["iPhone sales rose.", "iPad sales fell.", "mRNA was measured."],
    ],
    ids=lambda sentences: sentences[0],
)
def test_a_full_stop_ends_a_sentence_only_at_its_end(sentences: list[str]) -> None:
    assert sentence_texts(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["The sky fell. [1]", "Next thing. [2][3]", "Last one."],
        ["The sky fell.[1]", "Next thing.[2], [3]", "Last one."],
        ["The sky fell.【1†source】", "Next thing."],
        ["The sky fell. (Source 1)", "Next thing."],
        ["The sky fell.[^1]", "Next thing."],
        ["The sky fell.¹", "Next thing."],
        ['"The sky fell." [chunk_1]', "Next thing."],
        ["The sky fell [1].", "Next thing [2]."],
        ["The sky fell. [1, 2; 3]", "however, it rose."],
        ["The sky fell. Sources: [1], [2].", "Next thing."],
        ["The sky fell. (See [1], [2].)", "Next thing."],
        ["The sky fell. See [1].", "Next thing."],
        ["The sky fell. (Sources: [1], [2])", "Next thing."],
        ["The sky fell.", "[EMIM] boils."],
    ],
)
def test_a_citation_after_the_full_stop_belongs_to_the_sentence_before(
    sentences: list[str],
) -> None:
    assert sentence_texts(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("The sky fell.[1]Next thing.", ["The sky fell.[1]", "Next thing."]),
        (
            "[1] The sky is blue. [2] Grass is green.",
            ["[1] The sky is blue.", "[2] Grass is green."],
        ),
        ("The sky fell.\n[1]\nNext thing.", ["The sky fell.\n[1]", "Next thing."]),
        ("今天很好。[1]明天下雨！「好。」完", ["今天很好。[1]", "明天下雨！", "「好。」", "完"]),
        ("यह सच है। वह गया।", ["यह सच है।", "वह गया।"]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_markers_stay_with_their_sentences_in_other_scripts(
    text: str, sentences: list[str]
) -> None:
    assert sentence_texts(text) == sentences


MARKDOWN = """# What happened. And why
The firm grew
- in Europe [1]. Much.
- in Asia
  and Africa
1. third. Really.

| year | rev. Total |
|---|---|
| 2004 | 1.5 |
```py
x = 1.

y[0]
```
A paragraph that was broken by its width goes on here and then of
Boston. It ends.
***
[^1]: Smith, J. 2004.
"""


def test_headings_list_items_rows_and_code_are_separate_sentences() -> None:
    assert sentence_texts(MARKDOWN) == [
        "# What happened. And why",
        "The firm grew",
        "- in Europe [1].",
        "Much.",
        "- in Asia\n  and Africa",
        "1. third.",
        "Really.",
        "| year | rev. Total |",
        "|---|---|",
        "| 2004 | 1.5 |",
        "```py\nx = 1.\n\ny[0]\n```",
        "A paragraph that was broken by its width goes on here and then of\nBoston.",
        "It ends.",
        "***",
        "[^1]: Smith, J. 2004.",
    ]


def test_each_sentence_has_its_block_kind() -> None:
    kinds = [
        (unit.kind, unit.opens) for unit in split_sentences("# Head\n- One. Two.\n\n| a |\n\nText.")
    ]
    assert kinds == [
        ("heading", True),
        ("item", True),
        ("item", False),
        ("row", True),
        ("prose", True),
    ]


ODD_TEXT = st.text(
    alphabet=st.one_of(
        st.sampled_from(list(".!?。[]()`|#-*\n\r \t\"'1aA1,;:】【†^…é漢")), st.characters()
    ),
    max_size=200,
)


@given(ODD_TEXT)
@settings(max_examples=300, deadline=None)
def test_every_visible_character_is_in_exactly_one_sentence(text: str) -> None:
    spans = split_sentences(text)
    last_end = 0
    for start, end, _, _ in spans:
        assert last_end <= start < end
        assert not text[last_end:start].strip()
        assert text[start:end] == text[start:end].strip()
        last_end = end
    assert not text[last_end:].strip()


def test_splitting_real_texts_loses_no_character(public_data: Path) -> None:
    with (public_data / "expertqa_cases.jsonl").open(encoding="utf-8") as lines:
        answers = [json.loads(line)["answer"] for line in lines]
    for answer in answers:
        joined = "".join(sentence_texts(answer))
        assert "".join(joined.split()) == "".join(answer.split())


# Quotes are located exactly, and only if the text has them

TEXT = (
    "Revenue **grew** by 12 % in 2020 [chunk_1]. It’s said – “well” – that A fell; the\n café"
    " opened in Łódź."
)
MARKER = (TEXT.index("[chunk_1]"), TEXT.index("[chunk_1]") + len("[chunk_1]"))


@pytest.mark.parametrize(
    ("quote", "expected"),
    [
        ("by 12 % in 2020", "by 12 % in 2020"),
        ("Revenue grew by 12% in 2020", "Revenue **grew** by 12 % in 2020"),
        ('It\'s said - "well" - that A fell', "It’s said – “well” – that A fell"),
        ('"It\'s Said"', "It’s said"),
        ("Said – well – that A", "said – “well” – that A"),
        ("CAFÉ opened", "café opened"),
        ("It’s said – well – that A", "It’s said – “well” – that A"),
        ("the cafe\u0301 opened", "the\n café opened"),
        ("the caf\u00e9\u200b opened!", "the\n café opened"),
        (
            "It's said ... opened in Łódź.",
            "It’s said – “well” – that A fell; the\n café opened in Łódź",
        ),
        (
            "It's said […] opened in Łódź",
            "It’s said – “well” – that A fell; the\n café opened in Łódź",
        ),
    ],
)
def test_an_inexact_quote_is_located(quote: str, expected: str) -> None:
    position = locate_quote(quote, TEXT)
    assert TEXT[position.start : position.end] == expected


@pytest.mark.parametrize(
    "quote",
    [
        "",
        "   ",
        "...",
        "Revenue fell",
        "grew by 13 %",
        "he",
        "e",
        "It's said ... no such thing",
        "opened ... Revenue grew",
        "grew ... 2020",
    ],
)
def test_a_quote_not_in_the_text_isnt_found(quote: str) -> None:
    assert locate_quote(quote, TEXT) is None


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("the office was opened", "Then the of\u00adfice was opened."),
        ("the of\u00adfice was opened", "Then the office was opened."),
        ("the office was opened", "Then the o\ufb03ce was opened."),
        ("the office was opened", "Then the of-\nfice was\nopened."),
        ("the well-known office", "Then the well-\nknown office."),
        ("the wellknown office", "Then the well-\nknown office."),
        ("the mayor re-signed it", "Then the mayor re-\nsigned it."),
        ("a cafe\u0301 opened", "Then a caf\u00e9 opened."),
        ("a caf\u00e9 opened", "Then a cafe\u0301 opened."),
        ("it was ‘new’ … and ‘red’", "Then it was 'new' and large and 'red'."),
        ("the wall – a new one – fell", "Then the wall\u2014a new one\u2014fell."),
        ("Wall was red", "Then wall was red."),
        ("wall was red", "Then Wall was red."),
        ("it cost 1500 euros", "Then it cost 1,500 euros."),
    ],
)
def test_a_quote_is_found_despite_typesetting(quote: str, text: str) -> None:
    position = locate_quote(quote, text)
    assert position is not None
    assert text[position.start : position.end] == text.removeprefix("Then ").rstrip(".'")


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("held 10⁸ cells", "It held 10³ cells."),
        ("held 108 cells", "It held 10⁸ cells."),
        ("held 10 cells", "It held 10⁸ cells."),
        ("it held 10", "And it held 10⁸ cells."),
        ("5 m of water", "It has 5 m³ of water."),
        ("a tank of 5 m", "It has a tank of 5 m³."),
        ("needs 5 mW now", "It needs 5 MW now."),
        ("8 Gb of it", "It has 8 GB of it."),
        ("5 mg a day", "They took .5 mg a day."),
        ("5 mg a day", "They took 0.5 mg a day."),
        ("5 mg a day", "They took 15 mg a day."),
        ("a fee of 1", "There is a fee of 1,500 euros."),
        ("500 euros a day", "There is a fee of 1,500 euros a day."),
        ("5 degrees of frost", "At −5 degrees of frost."),
        ("5 degrees of frost", "At -5 degrees of frost."),
        ("$5 million a year", "A loss of -$5 million a year."),
        ("is rated BBB by them", "It is rated BBB- by them."),
        ("written in C by them", "It is written in C# by them."),
        ("the CO in it", "See the CO₂ in it."),
        ("binds Fe²⁺ well", "It binds Fe³⁺ well."),
        ("when x = 5 holds", "Stop when x != 5 holds."),
        ("a CI of [2, 8]", "With a CI of [3, 9]."),
        ("is 5″ wide", "It is 5′ wide."),
        ("the US fleet", "To the us fleet."),
    ],
)
def test_a_quote_with_another_value_sign_or_unit_isnt_found(quote: str, text: str) -> None:
    assert locate_quote(quote, text) is None


def test_a_quote_may_omit_only_the_given_markers() -> None:
    quote = "in 2020. It’s said"
    assert locate_quote(quote, TEXT) is None
    position = locate_quote(quote, TEXT, [MARKER])
    assert TEXT[position.start : position.end] == "in 2020 [chunk_1]. It’s said"


def test_a_short_quote_matches_whole_words_only() -> None:
    assert locate_quote("he", "the other one said that he left").start == 24


def test_words_around_a_removed_marker_stay_separate() -> None:
    assert locate_quote("ab", "a[1]b", [(1, 4)]) is None


def test_parts_of_an_ellipsis_quote_are_located_separately() -> None:
    parts = located_parts("It’s said ... opened in Łódź", TEXT)
    assert [TEXT[start:end] for start, end in parts] == ["It’s said", "opened in Łódź"]


def test_ellipsis_parts_must_be_close_together() -> None:
    assert (
        locate_quote(
            "the first part ... the second part", f"the first part{' x' * 1000} the second part"
        )
        is None
    )


NO_FIGURES = st.characters(exclude_categories=["Cs", "Nd", "No"])


@given(
    st.text(max_size=60),
    st.text(NO_FIGURES, min_size=4, max_size=40),
    st.text(NO_FIGURES, max_size=60),
)
def test_any_verbatim_copy_is_found(before: str, quote: str, after: str) -> None:
    position = locate_quote(quote, before + quote + after)
    if not quote.strip():
        assert position is None
    elif len(quote.strip()) >= 4:
        assert (before + quote + after)[position.start : position.end] == quote.strip()


@given(
    st.text(max_size=80),
    st.text(max_size=80),
    st.lists(st.tuples(st.integers(0, 80), st.integers(0, 80))),
)
def test_positions_are_within_the_text(quote: str, text: str, spans: list[tuple[int, int]]) -> None:
    ignoring = [(start, end) for start, end in spans if start < end <= len(text)]
    for start, end in located_parts(quote, text, ignoring):
        assert 0 <= start < end <= len(text)


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("a " * 50_000, "a " * 100_000 + "b"),
        ("x" * 99_999 + "y", "x" * 100_000),
        ("... " * 25_000, "a" * 100_000),
        ("(a+)+$ [x" * 12_000, "a" * 100_000),
        ("abcdefg...hijklmn..." * 5_000, "abcdefg hijklmn " * 6_000),
        ("ab" * 50_000, "ab" * 49_999),
    ],
)
def test_a_quote_of_100_000_characters_is_searched_quickly(quote: str, text: str) -> None:
    locate_quote(quote, text, [(start, start + 1) for start in range(0, 40_000, 5)])


def test_a_space_next_to_a_quotation_mark_is_ignored() -> None:
    text = "They ask « why? » and go."
    position = locate_quote('They ask "why?" and go', text)
    assert (position.start, position.end) == (0, len(text) - 1)
