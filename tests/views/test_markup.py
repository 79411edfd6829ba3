"""Markdown as ranges of a text: every character stays where it is, only markup is hidden, hostile
text is only text.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis import run_audit
from masis.schema.case import Case
from masis.views.answer import answer_view, unaudited_answer_view
from masis.views.diff import word_changes
from masis.views.markdown import MOST_MARKS, drawable
from masis.views.marks import answer_pieces, reference_marks
from masis.views.markup import Markup, apply_markup, find_markup
from tests.cases import case_of

HIDEABLE = re.compile(r"(?:[\s>#*+\-_~`|:\\\[\]]|\d{1,9}[.)](?=\s))*")
"""What may be hidden: marks of Markdown and blanks, never a word; of digits only the number of a
list's item.
"""

PARTS = st.sampled_from(
    [
        *(
            "# ",
            "- ",
            "1. ",
            "2) ",
            "> ",
            "```",
            "~~~",
            "| a | b |",
            "|---|---|",
            "---",
            "**",
            "*",
            "_",
            "`",
            "[c1]",
        ),
        *(
            "[",
            "]",
            "(http://e.org/x)",
            "\\*",
            "\n",
            "\n\n",
            "    ",
            "\t",
            "word",
            "an\u00e9e",
            "5*3*2",
            "<b>",
            " ",
            ".",
        ),
    ]
)
TEXTS = st.lists(PARTS, max_size=40).map("".join)


def pieces_of(text: str) -> list[dict[str, Any]]:
    markup = find_markup(text)
    return [{"text": text}] if markup is None else apply_markup([{"text": text}], markup)


def find(text: str) -> Markup:
    markup = find_markup(text)
    assert markup is not None
    return markup


def tags(text: str) -> list[str]:
    return [block["tag"] for block in find(text).blocks]


def visible_text(text: str) -> str:
    """What a reader sees."""
    return "".join(piece["text"] for piece in pieces_of(text) if not piece.get("hidden"))


@given(TEXTS)
def test_every_character_is_kept_and_no_word_is_hidden(text: str) -> None:
    pieces = pieces_of(text)
    assert "".join(piece["text"] for piece in pieces) == text
    hidden = "\0".join(piece["text"] for piece in pieces if piece.get("hidden"))
    for part in hidden.split("\0"):
        assert HIDEABLE.fullmatch(part) or part.strip().rstrip(".)").isdigit(), part


@given(TEXTS)
def test_blocks_form_a_tree_in_text_order(text: str) -> None:
    markup = find_markup(text)
    if markup is None:
        return
    assert all(block["parent"] < place for place, block in enumerate(markup.blocks))
    assert [place for _, place in markup.leaves] == sorted(place for _, place in markup.leaves)
    edges = [edge for leaf, _ in markup.leaves for edge in leaf]
    assert edges == sorted(edges)
    assert all(
        0 <= span.start < span.end <= len(text)
        for span in (*markup.hidden, *(one for one, _ in markup.styles))
    )


@pytest.mark.parametrize(
    "plain",
    [
        "",
        "The bridge is 120 metres long [c1]. It was opened in 1931 [c9].",
        "First.\n\nSecond, indented:\n   so.\nThird [chunk_1] and [chunk_2].",
        "5*3*2 is 30, p < 0.05 * 2, snake_case_name, [1](2), a ~ b.",
        "It was opened in\n1990. Then it was closed.",
        "[ref]: http://example.org/defined",
    ],
)
def test_a_text_without_markdown_is_shown_as_typed(plain: str) -> None:
    assert find_markup(plain) is None


def test_every_kind_of_block_is_found() -> None:
    text = (
        "# Title\n\nWords.\n\n- one\n- two\n  - nested\n\n3. three\n4. four\n\n> quoted\n\n"
        "```python\nx = 1\n```\n\n| a | b |\n|---|---|\n| c | d |\n\n---\n\n### End"
    )
    assert tags(text) == [
        *(
            "h3",
            "p",
            "ul",
            "li",
            "p",
            "li",
            "p",
            "ul",
            "li",
            "p",
            "ol",
            "li",
            "p",
            "li",
            "p",
            "quote",
            "p",
        ),
        *("pre", "table", "tr", "th", "th", "tr", "td", "td", "hr", "h4"),
    ]
    assert [block["number"] for block in find(text).blocks if "number" in block] == [3, 4]


@given(st.text(alphabet="ab*_`[]()#>-+.|~\\\\\n\t \r\0\u00a0\u4e2d1/", max_size=60))
def test_any_text_is_parsed_without_an_error(text: str) -> None:
    assert "".join(piece["text"] for piece in pieces_of(text)) == text
    for leaf, _ in (find_markup(text) or Markup((), (), (), ())).leaves:
        assert 0 <= leaf.start < leaf.end <= len(text)


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("> quoted\nand so on", ["quote", "p"]),  # CommonMark's lazy continuation
        ("1. one\n\n2) another list", ["ol", "li", "p", "ol", "li", "p"]),
        ("- a\n    - b", ["ul", "li", "p", "ul", "li", "p"]),
        ("- ```\n  x\n  ```\n- b", ["ul", "li", "pre", "li", "p"]),
        ("> > twice", ["quote", "quote", "p"]),
        ("**a**\n*\n#", ["p"]),  # an item and a heading without words are shown as typed
    ],
)
def test_blocks_nest_as_in_commonmark(text: str, blocks: list[str]) -> None:
    assert tags(text) == blocks


def test_a_fence_is_closed_only_by_a_line_of_its_own() -> None:
    assert visible_text("```\n```| a | b |") == "```| a | b |"
    assert visible_text("~~~\na\n~~~~ \nb") == "ab"


def test_code_in_a_list_keeps_its_own_indentation() -> None:
    assert visible_text("- ```\n  if x:\n    y\n  ```") == "if x:\n  y"


def test_heading_levels_arent_skipped() -> None:
    assert tags("### a\n\n###### b\n\n# c\n\n## d\n\n#### e\n\n##### f\n\n###### g") == [
        *("h3", "h4", "h3", "h4", "h5", "h6", "h6")
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**bold** and *thin* and ***both***", "bold and thin and both"),
        ("_thin_ and __bold__", "thin and bold"),
        ("a `code *a*` b", "a code *a* b"),
        ("an unclosed **star and `tick", "an unclosed **star and `tick"),
        (r"\*no emphasis\*", "*no emphasis*"),
        ("[the survey](https://e.org/a_(b)) says", "the survey(https://e.org/a_(b)) says"),
        ("**chunk_1_a** [c1][c2]", "chunk_1_a [c1][c2]"),
        ("这是**重点**内容", "这是重点内容"),
        ("- a\n  b\n\n  c", "a\nbc"),
        ("| a | b |\n|--|--|\n| 1 | 2 | 3 |", "ab123"),
        ("```\n**as typed**\n```", "**as typed**"),
    ],
)
def test_only_markup_is_hidden(text: str, shown: str) -> None:
    assert visible_text(text) == shown


@pytest.mark.parametrize(
    "hostile",
    ["<img src=x onerror=a()>", "![x](http://192.0.2.1/a.png)", "&lt;b&gt;", "<!-- a -->"],
)
def test_html_images_and_entities_are_shown_as_typed(hostile: str) -> None:
    assert visible_text(f"**a** {hostile}").replace("[", "").replace(
        "]", ""
    ) == f"a {hostile}".replace("[", "").replace("]", "")


@pytest.mark.parametrize(
    "long",
    [
        *(
            "*a " * 9_000,
            "[a](b.c) " * 4_000,
            "`" * 30_000,
            "> " * 10_000,
            "- " * 10_000 + "a",
            "[" * 20_000,
        ),
        *(
            "_a*" * 9_000,
            "[a](x:" + "(" * 30_000,
            "| a " * 5_000 + "\n|-|",
            "\n".join(" " * n + "- a" for n in range(300)),
        ),
    ],
)
@pytest.mark.timeout(30)
def test_long_hostile_texts_are_parsed_completely(long: str) -> None:
    markup = find_markup(long)
    assert markup is None or all(0 <= start <= end <= len(long) for start, end in markup.hidden)


ANSWER = (
    "# Length\n\nThe Lenne bridge is **120 metres** long [c1].\n\n- It was opened in **1931"
    " [c9]**.\n- See [the survey](https://example.org/s).\n"
)


@pytest.fixture(scope="module")
def case() -> Case:
    return case_of(
        ANSWER,
        {"c1": "## Survey\n\nThe Lenne bridge is **120 metres** long."},
        query="How long is the Lenne bridge?",
    )


def test_marks_and_chips_are_at_their_words(case: Case) -> None:
    run = run_audit(case)
    shown = answer_view(case, run, 0)
    assert "".join(piece["text"] for piece in shown["pieces"]) == ANSWER
    (fabricated,) = [piece for piece in shown["pieces"] if piece.get("reference") == "fabricated"]
    assert (fabricated["text"], fabricated.get("styles"), fabricated.get("hidden")) == (
        "[c9]",
        ["strong"],
        None,
    )
    assert shown["blocks"][fabricated["block"]]["tag"] == "p"
    ends = [number for piece in shown["pieces"] for number in piece.get("ends", [])]
    placed = [issue["number"] for issue in shown["issues"] if issue["placed"]]
    assert sorted(ends) == placed
    assert not [
        piece for piece in shown["pieces"] if piece.get("reference") and piece.get("hidden")
    ]
    evidence = shown["evidence"][0]
    assert [block["tag"] for block in evidence["blocks"]] == ["h3", "p"]
    assert "".join(piece["text"] for piece in evidence["pieces"]) == case.evidence[0].text


def test_an_unaudited_answer_is_rendered(case: Case) -> None:
    shown = unaudited_answer_view(case, "v")
    assert [block["tag"] for block in shown["blocks"]][:2] == ["h3", "p"]
    assert "".join(piece["text"] for piece in shown["pieces"]) == ANSWER


def test_a_marker_is_never_cut_or_hidden() -> None:
    text = "See [*a*] and **[c1]**."
    cut = apply_markup(
        [{"text": "See "}, {"text": "[*a*]", "reference": "valid"}, {"text": " and **[c1]**."}],
        find(text),
    )
    assert [piece["text"] for piece in cut if "reference" in piece] == ["[*a*]"]
    assert not any(piece.get("hidden") for piece in cut if "reference" in piece)


def test_an_attached_citation_ends_once_after_its_words() -> None:
    text = "It is **120 metres** long."
    cut = apply_markup([{"text": text, "reference": "valid", "beside": ["c1"]}], find(text))
    assert [(piece["text"], piece["beside"]) for piece in cut if piece["beside"]] == [
        (" long.", ["c1"])
    ]
    assert [piece["text"] for piece in cut if piece.get("hidden")] == ["**", "**"]


# Word-level differences: nothing is lost, what a reader calls one change is one, and no text takes
# minutes


def sides(before: str, after: str) -> tuple[str, str]:
    changes = word_changes(before, after)
    left = "".join(change.text for change in changes if change.kind != "in")
    right = "".join(change.text for change in changes if change.kind != "out")
    return left, right


@given(st.text(alphabet="ab .,[]1\n\u6587"), st.text(alphabet="ab .,[]1\n\u6587"))
def test_a_diff_reproduces_both_texts(before: str, after: str) -> None:
    assert sides(before, after) == (before, after)
    assert all(change.text for change in word_changes(before, after))


def test_a_changed_figure_and_its_sign_are_one_change() -> None:
    changes = word_changes(
        "Revenue grew by 41.2% in 2023 [chunk_99].", "Revenue grew by 14.2% in 2023 [chunk_2]."
    )
    assert [(change.kind, change.text.strip()) for change in changes if change.kind != "same"] == [
        ("out", "41.2%"),
        ("in", "14.2%"),
        ("out", "[chunk_99]"),
        ("in", "[chunk_2]"),
    ]


def test_the_same_text_has_no_changes() -> None:
    assert [change.kind for change in word_changes("Nothing new here.", "Nothing new here.")] == [
        "same"
    ]
    assert word_changes("", "") == []


def test_changes_separated_by_only_a_comma_are_merged() -> None:
    changes = word_changes("It is grey, narrow and old.", "It is blue, wide and old.")
    assert [change.text.strip() for change in changes if change.kind != "same"] == [
        "grey, narrow",
        "blue, wide",
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a b " * 12_500, "b a " * 12_500),
        ("x" * 100_000, "y" * 100_000),
        (" " * 100_000, "\n" * 100_000),
        ("[" * 50_000 + "]" * 50_000, "[" * 50_000),
        (" ".join(map(str, range(20_000))), " ".join(map(str, reversed(range(20_000))))),
        ("the cat sat. " * 8_000, "the cat stood. " * 7_000),
    ],
)
def test_long_texts_are_compared_in_bounded_time(before: str, after: str) -> None:
    assert sides(before, after) == (before, after)


def test_a_few_edits_in_a_long_text_are_located() -> None:
    chooser = random.Random(7)
    words = [
        f"{chooser.choice(('the', 'a', 'of', 'in'))} word{chooser.randrange(3_000)}"
        for _ in range(8_000)
    ]
    edited = [*words[:4_000], "newly", *words[4_001:]]
    changes = [
        change
        for change in word_changes(" ".join(words), " ".join(edited))
        if change.kind != "same"
    ]
    assert [change.text.strip() for change in changes] == [words[4_000], "newly"]


# Citations that came beside an answer on the desk: their words stay text, and what they name stands
# behind them

BESIDE_ANSWER = "The bridge is 120 metres long. It was opened in 1931 [b]."
CASE = case_of(
    BESIDE_ANSWER,
    {"a": "The bridge is 120 metres long.", "b": "It was opened in 1931."},
    case_id="1",
    citations=[
        {"start": 0, "end": 30, "evidence_id": "a"},
        {"start": 0, "end": 30, "evidence_id": "nowhere"},
        {"start": 31, "end": len(BESIDE_ANSWER), "evidence_id": "b"},
    ],
)


def test_attached_citations_follow_their_words_worst_first() -> None:
    first = run_audit(CASE).iterations[0]
    marks = reference_marks(first)
    pieces = list(answer_pieces(first, marks, [()] * len(first.issues)))
    assert "".join(piece["text"] for piece in pieces) == BESIDE_ANSWER
    ended = [(piece["beside"], piece["reference"]) for piece in pieces if piece.get("beside")]
    assert ended == [(["a", "nowhere"], "fabricated"), (["b"], "valid")]
    markers = [
        piece["text"] for piece in pieces if piece.get("reference") and "beside" not in piece
    ]
    assert markers == ["[b]"]


# What browsers can't draw


def test_only_long_runs_of_combining_marks_are_broken_up() -> None:
    marks = "\u0301\u20dd" * 60
    broken = drawable(f"a{marks}b")
    assert broken.replace("\u25cc", "") == f"a{marks}b"
    assert max(len(run) for run in broken.split("\u25cc")) <= MOST_MARKS + 1
    assert json.loads(drawable(json.dumps({"x": f"a{marks}b"}))) == {"x": broken}
    for text in (
        "e\u0301" * 1_000,
        "\u4e2d\u6587" * 1_000,
        "\\u0301",
        "plain",
        "a" + "\u0301" * MOST_MARKS,
    ):
        assert drawable(text) == text
        assert drawable(json.dumps(text)) == json.dumps(text)
