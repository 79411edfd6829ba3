"""Where sentences begin and end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masis.audit.sentences import split_sentences, split_units


def pieces(text: str) -> list[str]:
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
def test_a_stop_ends_a_sentence_only_where_one_ends(sentences: list[str]) -> None:
    assert pieces(" ".join(sentences)) == sentences


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
def test_a_citation_behind_the_stop_belongs_to_the_sentence_before(sentences: list[str]) -> None:
    assert pieces(" ".join(sentences)) == sentences


def test_a_citation_behind_the_stop_needs_no_blank_after_it() -> None:
    assert pieces("The sky fell.[1]Next thing.") == ["The sky fell.[1]", "Next thing."]


def test_markers_that_lead_their_sentences_stay_with_them() -> None:
    assert pieces("[1] The sky is blue. [2] Grass is green.") == ["[1] The sky is blue.", "[2] Grass is green."]


def test_a_marker_alone_on_the_next_line_belongs_to_the_sentence_before() -> None:
    assert pieces("The sky fell.\n[1]\nNext thing.") == ["The sky fell.\n[1]", "Next thing."]


def test_stops_of_other_scripts_end_sentences() -> None:
    assert pieces("今天很好。[1]明天下雨！「好。」完") == ["今天很好。[1]", "明天下雨！", "「好。」", "完"]
    assert pieces("यह सच है। वह गया।") == ["यह सच है।", "वह गया।"]


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


def test_headings_list_items_rows_and_code_are_sentences_of_their_own() -> None:
    assert pieces(MARKDOWN) == [
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


def test_each_sentence_knows_its_block() -> None:
    kinds = [(unit.kind, unit.opens) for unit in split_units("# Head\n- One. Two.\n\n| a |\n\nText.")]
    assert kinds == [("heading", True), ("item", True), ("item", False), ("row", True), ("prose", True)]


def test_nothing_to_split_gives_nothing() -> None:
    assert split_sentences("") == []
    assert split_sentences(" \n\t ") == []


ODD_TEXT = st.text(
    alphabet=st.one_of(st.sampled_from(list(".!?。[]()`|#-*\n\r \t\"'1aA1,;:】【†^…é漢")), st.characters()),
    max_size=200,
)


@given(ODD_TEXT)
@settings(max_examples=300, deadline=None)
def test_every_character_that_is_not_blank_belongs_to_exactly_one_sentence(text: str) -> None:
    spans = split_sentences(text)
    last = 0
    for start, end in spans:
        assert last <= start < end
        assert not text[last:start].strip()
        assert text[start:end] == text[start:end].strip()
        last = end
    assert not text[last:].strip()


def test_real_texts_lose_no_character(public_data: Path) -> None:
    with (public_data / "expertqa_cases.jsonl").open(encoding="utf-8") as lines:
        answers = [json.loads(line)["answer"] for line in lines]
    for answer in answers:
        kept = "".join(pieces(answer))
        assert "".join(kept.split()) == "".join(answer.split())
