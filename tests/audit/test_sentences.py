"""Sentences end in the right place in each supported language."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masis.audit import languages
from masis.audit.languages import FULL_STOPS, TextLanguages, guess_languages
from masis.audit.sentences import split_sentences

EXAMPLES = Path(__file__).with_name("sentences_by_language.txt")
UNSPACED_SCRIPT = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\u1000-\u109f\u1780-\u17ff]")


def parse_examples(file: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each text of a file with its sentences; ``~`` begins a text without spaces."""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line and line[0] not in "#[":
            sentences = line.lstrip("~").split(" | ")
            unspaced = line[0] == "~" or UNSPACED_SCRIPT.search(line)
            yield ("" if unspaced else " ").join(sentences), sentences


def sentence_texts(text: str) -> list[str]:
    return [text[unit.start : unit.end] for unit in split_sentences(text)]


@pytest.mark.parametrize(("text", "sentences"), list(parse_examples(EXAMPLES)))
def test_sentences_end_as_in_the_cases_of_each_language(text: str, sentences: list[str]) -> None:
    assert sentence_texts(text) == sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "Der 4. Band [1] kam am 2. Juni [2]. Er fehlt.",
            ["Der 4. Band [1] kam am 2. Juni [2].", "Er fehlt."],
        ),
        (
            "Hij sprak met mevr. Smit. [1] Zij zweeg.",
            ["Hij sprak met mevr. Smit. [1]", "Zij zweeg."],
        ),
        ("Она из г. Тверь. [1] Потом уехала.", ["Она из г. Тверь. [1]", "Потом уехала."]),
        (
            "彼は「赤い。」と書いた。[1]皆が笑った。",
            ["彼は「赤い。」と書いた。[1]", "皆が笑った。"],
        ),
        ("It has vitamin B. [2] Children need it.", ["It has vitamin B. [2]", "Children need it."]),
    ],
)
def test_citations_stay_with_their_sentences_in_every_language(
    text: str, sentences: list[str]
) -> None:
    assert sentence_texts(text) == sentences


@pytest.mark.parametrize("stop", FULL_STOPS)
def test_full_stops_of_every_script_end_a_sentence(stop: str) -> None:
    assert (
        sentence_texts(f"ab{stop}cd{stop} ef") == [f"ab{stop}", f"cd{stop}", "ef"] or stop == "．"
    )


@pytest.mark.parametrize(
    "separator", ["\n", "\r\n", "\r", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "<br>", "<BR />"]
)
def test_every_line_separator_ends_a_short_line(separator: str) -> None:
    texts = sentence_texts(f"The tower is tall [1]{separator}The door is green")
    assert [sentence.replace(separator, "") for sentence in texts] == [
        "The tower is tall [1]",
        "The door is green",
    ]


def test_line_break_tags_dont_split_rows_and_long_sentences() -> None:
    assert sentence_texts("| tall<br>green | old |") == ["| tall<br>green | old |"]
    assert sentence_texts("The tower is tall<br>and green.") == ["The tower is tall<br>and green."]
    assert sentence_texts("<p>The tower is tall.</p><p>It is green.</p>") == [
        "<p>The tower is tall.</p>",
        "<p>It is green.</p>",
    ]
    long_line = "The tower that they built beside the river in the year 1931 is tall [1]<br>"
    assert sentence_texts(long_line + "It is green.") == [long_line, "It is green."]


def test_abbreviations_apply_only_in_their_language() -> None:
    assert sentence_texts("La via è in via del sig. Rossi.") == ["La via è in via del sig. Rossi."]
    assert sentence_texts("It was, as the old man said, a sig. Rossi agreed with him.") == [
        "It was, as the old man said, a sig.",
        "Rossi agreed with him.",
    ]


def test_a_short_block_inherits_the_surrounding_language() -> None:
    text = "Die Brücke ist nicht lang, und das ist gut.\n\n- Kosten: 3. Quartal"
    _, best = guess_languages(text)
    assert best == guess_languages("Das ist nicht die Brücke.")[1]
    assert TextLanguages(text, 46, around=TextLanguages(text)).are_surely(best)


def test_a_new_language_needs_only_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    content = {
        **languages._CONTENT,
        "languages": {**languages._TABLES, "new": {"words": "qor", "never_end": "zoq"}},
    }
    monkeypatch.setattr(tomllib, "loads", lambda text: content)
    spec = importlib.util.spec_from_file_location("languages_with_a_new_one", languages.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.TextLanguages("Qor the qor zoq. Ann").have(module.NEVER_END, "zoq")
    assert not module.TextLanguages("It is of the zoq. Ann").have(module.NEVER_END, "zoq")


def test_language_tables_have_unique_plain_words() -> None:
    patterns = {"speech", "quotation_goes_on", "letters", "ordinals", "names"}
    for name, table in languages._TABLES.items():
        for key, value in table.items():
            words = value.split()
            assert key in patterns or len(words) == len(set(words)), (name, key)
            assert key in patterns or not any(word.endswith(".") for word in words), (name, key)


WORDS = (
    st.sampled_from(
        """
            . ! ? … 。 ！ ．３ ۔ । ။ ; “ ” „ « » 「 」 ( ) （ ） 《 》 [1] [ ] ~ | ` * _ # - 3. 24. 1931. XIV.
            z. B. EE. UU. т. д. г. Mai Der die vitamin C. B. King V. p.m. U.S. Yahoo! "Why?" said
            він สะพาน [2] และ <br> </p> <li> डॉ. κ. é http://a.b www. Dr. usw. s. XX 3 a ５
        """.split()
    )
    | st.characters()
)
TEXTS = st.lists(
    st.tuples(WORDS, st.sampled_from(["", " ", "\n", "\u2028", "\u00a0"])), max_size=30
)


@given(TEXTS)
@settings(max_examples=400, deadline=None, derandomize=True)
def test_every_visible_character_is_in_exactly_one_unit(
    parts: list[tuple[str, str]],
) -> None:
    text = "".join(word + separator for word, separator in parts)
    last_end = 0
    for unit in split_sentences(text):
        assert last_end <= unit.start < unit.end
        assert not text[last_end : unit.start].strip()
        assert text[unit.start : unit.end] == text[unit.start : unit.end].strip()
        last_end = unit.end
    assert not text[last_end:].strip()
