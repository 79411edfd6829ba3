"""Each citation style is declared once, and everything else about markers follows from
the table.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import json
import re
import re._constants as re_constants
import re._parser as re_parser
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from masis.audit.citations import audit_citations
from masis.audit.markers import (
    EvidenceIds,
    MarkerStyle,
    Reference,
    bracketed_numbers,
    find_markers,
    index_of,
    leading_marker,
    marker_end_pattern,
    marker_spans,
    style_of_marker,
    styles,
    without_brackets,
    without_last_brackets,
    without_markers,
)
from masis.audit.markers.damage import (
    count_empty_markers,
    count_unclosed_markers,
    half_bracketed_ids,
)
from masis.audit.markers.references import read_references
from masis.audit.markers.styles import STYLES, StyleTable
from masis.audit.sentences import split_sentences
from masis.offline.roles.reviser import citing_style
from masis.schema.case import Evidence
from masis.ui.components import sources
from masis.views.diff import word_changes
from tests.rules import for_each
from tools import marker_styles

ROOT = Path(__file__).resolve().parents[3]
EVIDENCE = (Evidence(id="chunk_1", source="https://a.example/report"), Evidence(id="chunk_2"))


def references(
    answer: str, evidence: tuple[Evidence, ...] = EVIDENCE
) -> list[tuple[str, str | None]]:
    return [
        (citation.reference, citation.evidence_id)
        for citation in audit_citations(answer, evidence).citations
    ]


@for_each(styles.STYLES, lambda style: style.name)
def test_each_styles_example_is_recognized(style: MarkerStyle) -> None:
    answer = (
        f"The bridge is long{style.example}"
        if style.example[0] == "¹"
        else f"The bridge is long {style.example}"
    )
    (marker,) = find_markers(
        answer, index_of(("chunk_1", "chunk_2"), ("https://a.example/report", None))
    )
    if style.name != "source line":  # its marker is the list after the word
        assert answer[marker.start : marker.end] == style.example
        recognized_style = style_of_marker(answer, marker.start, marker.end)
        assert recognized_style is not None
        assert recognized_style.name == style.name
    if style.name != "turns":  # they refer to search results, never to a chunk
        assert [reference.evidence_id for reference in marker.references] == ["chunk_1"]


@for_each([style for style in styles.STYLES if style.write], lambda style: style.name)
def test_each_style_reads_what_it_writes(style: MarkerStyle) -> None:
    assert style.write is not None
    for names in (["1"], ["1", "2"]):
        evidence_ids = [
            evidence_id
            for _, evidence_id in references(f"The bridge is long {style.write(names)}.")
        ]
        assert evidence_ids == [f"chunk_{name}" for name in names], names


def test_the_docs_print_the_table_of_styles(monkeypatch: pytest.MonkeyPatch) -> None:
    page = marker_styles.PAGE.read_text(encoding="utf-8")
    assert marker_styles.update_page(page) == page
    monkeypatch.setattr(styles, "STYLES", (*styles.STYLES, ARROW))
    row = "| arrow | `→chunk_1←` | A style that only this test knows. |\n"
    assert row in marker_styles.update_page(page)


def parse_arrow(match: re.Match[str], index: EvidenceIds) -> list[Reference]:
    return [Reference(*match.span(1), match[1], *index.resolve(match[1]))]


ARROW = MarkerStyle(
    name="arrow",
    opening="→",
    pattern=re.compile(r"→(\w+)←"),
    parse=parse_arrow,
    write=lambda names: "".join(f"→{name}←" for name in names),
    example="→chunk_1←",
    explanation="A style that only this test knows.",
)


def test_a_new_style_needs_only_its_table_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = "The bridge is long.→1← It was opened in 1931.→9←"
    assert references(answer) == []
    monkeypatch.setattr(styles, "STYLES", (*styles.STYLES, ARROW))
    assert references(answer) == [("1", "chunk_1"), ("9", None)]
    assert without_markers(answer) == "The bridge is long. It was opened in 1931."
    assert [answer[unit.start : unit.end] for unit in split_sentences(answer)] == [
        "The bridge is long.→1←",
        "It was opened in 1931.→9←",
    ]
    audit = audit_citations(answer, EVIDENCE)
    assert [sentence.status for sentence in audit.sentences] == ["cited", "cited"]
    assert citing_style(answer, audit, EVIDENCE).write(["chunk_2"]) == "→2←"


def bracketed_style(opening: str, closing: str) -> MarkerStyle:
    """Return a style with brackets that no other style uses."""
    return MarkerStyle(
        name="test brackets",
        opening=opening[0],
        signs=(opening,),
        pattern=re.compile(rf"{re.escape(opening)}(\w+){re.escape(closing)}"),
        parse=parse_arrow,
        example=f"{opening}chunk_1{closing}",
        explanation="A style that only this test knows.",
        brackets=((opening, closing),),
        is_ambiguous=True,
    )


def parse_source_braces(match: re.Match[str], index: EvidenceIds) -> list[Reference]:
    return read_references(match[1], match.start(1), index)


SOURCE_BRACES = MarkerStyle(
    name="source braces",
    opening="{",
    signs=("{{src:",),
    pattern=re.compile(r"\{\{src:([^{}\n]{1,100})\}\}"),
    parse=parse_source_braces,
    example="{{src:chunk_1}}",
    explanation="A style that only this test knows.",
    brackets=(("{{src:", "}}"),),
    is_ambiguous=False,
)
"""A style whose opening has a prefix."""


def test_a_style_in_brackets_must_say_whether_they_are_ambiguous() -> None:
    with pytest.raises(ValueError, match="is_ambiguous"):
        replace(SOURCE_BRACES, is_ambiguous=None)


@pytest.mark.parametrize(
    ("opening", "closing"), [("⟦", "⟧"), ("<<", ">>"), ("{", "}"), ("{{src:", "}}")]
)
@pytest.mark.parametrize(
    "sentences",
    [
        ["It is long [1].", "It opened in 1931 [9]."],
        ["It is long. [1]", "It opened in 1931. [9]"],
        ["[1] It is long.", "[9] It opened in 1931."],
        ["[1] It is long.", "[chunk_2] It opened in 1931."],
        ["It is long.\n[1]"],
        ["It is long. Source: [1]", "It opened in 1931."],
        ["It is long. (see [1])", "It opened in 1931."],
        ["It is long. <sup>[1]</sup>", "It opened in 1931."],
        ["It is long. **[1]**", "It opened in 1931."],
        ["It is long. [[1]]", "It opened in 1931."],
        ["It is long. ^[1]", "It opened in 1931."],
        ["It is long. [[[1]]]", "It opened in 1931."],
        ["สะพานยาวหลายเมตร [1]", "เปิดใช้งานเมื่อนานมาแล้ว [2]"],
        ["ຂົວຍາວຫຼາຍແມັດ [1]", "ເປີດໃຊ້ງານດົນນານແລ້ວ [2]"],
    ],
)
def test_a_new_style_in_brackets_splits_sentences_like_square_brackets(
    monkeypatch: pytest.MonkeyPatch, opening: str, closing: str, sentences: list[str]
) -> None:
    assert split_texts(" ".join(sentences)) == sentences
    monkeypatch.setattr(styles, "STYLES", (*styles.STYLES, bracketed_style(opening, closing)))
    rewritten = [text.replace("[", opening).replace("]", closing) for text in sentences]
    assert split_texts(" ".join(rewritten)) == rewritten
    assert len(references(" ".join(rewritten))) == len(references(" ".join(sentences)))
    assert without_markers(" ".join(rewritten)) == without_markers(" ".join(sentences))


def test_a_new_styles_brackets_are_read_like_square_brackets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(styles, "STYLES", (*styles.STYLES, bracketed_style("<<", ">>")))
    assert bracketed_numbers("Turn to <<12>> and [^3], not to 【4】.") == {"12", "3"}
    assert without_brackets("<<12>>") == "12"
    assert [change.text for change in word_changes("Long <<12>>.", "Long <<13>>.")] == [
        "Long",
        " <<12>>",
        " <<13>>",
        ".",
    ]
    assert without_last_brackets("It is long <<12>> [a]") == "It is long"


def test_a_stop_in_a_new_styles_brackets_doesnt_end_the_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "It is long ⟦Smith. Bridges⟧."
    assert split_texts(text) == ["It is long ⟦Smith.", "Bridges⟧."]
    monkeypatch.setattr(styles, "STYLES", (*styles.STYLES, bracketed_style("⟦", "⟧")))
    assert split_texts(text) == [text]


@pytest.mark.parametrize(
    "marker",
    [
        "{{src:3}}",
        "{{{{src:3}}}}",
        "{{src:{{src:3}}}}",
        "{{{src:3}}}",
        "**{{src:3}}**",
        "({{src:3}})",
        "({{src:3}}, {{{{src:4}}}})",
        "<sup>{{src:3}}</sup>",
    ],
)
def test_a_marker_of_a_style_with_a_prefix_stays_with_the_sentence_before_it(
    monkeypatch: pytest.MonkeyPatch, marker: str
) -> None:
    monkeypatch.setattr(styles, "STYLES", (*styles.STYLES, SOURCE_BRACES))
    text = f"It is old. {marker} It is red."
    assert split_texts(text) == [f"It is old. {marker}", "It is red."]
    assert without_markers(text) == "It is old. It is red."
    assert without_brackets("{{src:3}}") == "3"


def test_a_value_in_the_brackets_of_a_new_style_isnt_a_fabrication(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(styles, "STYLES", (*styles.STYLES, SOURCE_BRACES))
    assert references("It has {{src:1,000}} or {{src:3.5}} arches {{src:2}}.") == [("2", "chunk_2")]


def test_damage_to_a_new_style_in_brackets_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(styles, "STYLES", (*styles.STYLES, bracketed_style("<<", ">>")))
    assert count_empty_markers("It is long << >>. It opened [] then.") == 2
    assert count_unclosed_markers("It is long <<c1 and old <<c2>>.", ["c1", "c2"]) == 1
    assert [text for _, text in half_bracketed_ids("<<c1>>c2>>", ["c1", "c2"])] == ["<<c1", "c2>>"]


@pytest.mark.parametrize("text", ["{}", "{} and old {{{{src:2}}}}.", "{}. It is old.\n", "{}."])
def test_a_partly_closed_bracket_counts_as_unclosed(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(
        styles, "STYLES", (*styles.STYLES, bracketed_style("<<", ">>"), SOURCE_BRACES)
    )
    for half_closed in ("<<3>", "{{src:3}", "<<3", "{{src:3"):
        assert count_unclosed_markers(f"It is long {text.format(half_closed)}", ["2", "3"]) == 1
    assert count_unclosed_markers(f"It is long {text.format('<<3>>')}", ["2", "3"]) == 0
    assert count_unclosed_markers(f"It is long {text.format('{{src:3}}')}", ["2", "3"]) == 0


def split_texts(text: str) -> list[str]:
    return [text[unit.start : unit.end] for unit in split_sentences(text)]


# No other module has a pattern for markers

FURTHER_MARKERS = ("[1]", "[1, 2]", "【1】", " [1]")
"""Forms of markers in addition to the example of each style."""
EXCEPTIONS = {
    "masis/store/reviews/observations.py": "quoted words, which don't belong to a pattern of notes",
    "masis/audit/citations/engine.py": "the literal rules of the specification, as written",
    "masis/schema/columns.py": "numbered texts in a column; imports can't use the audit package",
    "masis/schema/literals.py": "lists of Python in a cell",
    "masis/schema/reading.py": "paths of a row",
    "masis/datasets/paths.py": "numbered texts of a file",
    "masis/datasets/readers/plain_text.py": "labels of texts that are imported",
    "masis/bench/tasks.py": "labels of a public data set's references",
    "masis/datasets/readers/workbooks.py": "number formats of a spreadsheet",
    "masis/llm/roles/tolerances.py": "the number of a claim or a chunk as a model writes it",
    "masis/offline/checks/figures.py": "words left out of a quotation",
    "masis/offline/parsing/numerals.py": "exponents of numbers",
    "masis/audit/text/language.py": "words with signs, which tell nothing about a language",
    "masis/settings/hosts.py": "addresses of hosts",
    "masis/screening/grading/directions.py": "statistics in brackets",
    "masis/screening/readers/bibliographic.py": "notes that there is no abstract",
}


class ModuleNamespace(dict[str, object]):
    """The names of a module; a missing name, such as a parameter, matches any word."""

    def __missing__(self, name: str) -> object:
        if hasattr(builtins, name):
            raise KeyError(name)
        return r"\w{1,40}"


def patterns_in(source: str, names: Mapping[str, object]) -> Iterator[str]:
    """Yield the regular expressions that a module compiles or uses, however it builds them.

    The first argument of each call of ``re`` is evaluated with the names of the module, so f-strings,
    sums and ``re.escape`` count as well. Patterns that helper functions built are among the names.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.") and node.args:
            with suppress(Exception):  # it isn't a text, or needs more than the module's names
                value = eval(ast.unparse(node.args[0]), {"re": re}, ModuleNamespace(names))
                if isinstance(value, str):
                    yield value
    for value in names.values():
        values = value.values() if isinstance(value, dict) else value
        for candidate in values if isinstance(values, Iterable) else (values,):
            if isinstance(candidate, re.Pattern) and isinstance(candidate.pattern, str):
                yield candidate.pattern


def module_names(file: Path) -> dict[str, object]:
    """Return the names of a module, or none if it needs an extra that isn't installed."""
    name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    with suppress(ImportError):
        return vars(importlib.import_module(name))
    return {}


def literals(parsed: Iterable[Any]) -> Iterator[str]:
    """Yield the characters that a parsed pattern contains, except those that it excludes."""
    for part in parsed:
        if isinstance(part, tuple) and len(part) == 2 and part[0] is re_constants.LITERAL:
            yield chr(part[1])
        elif isinstance(part, tuple) and len(part) == 2 and part[0] is re_constants.RANGE:
            yield from map(chr, range(part[1][0], min(part[1][1], part[1][0] + 99) + 1))
        elif isinstance(part, list) and part and part[0] == (re_constants.NEGATE, None):
            continue
        elif isinstance(part, (tuple, list, re_parser.SubPattern)):
            yield from literals(part)


def is_about_markers(pattern: str) -> bool:
    """Return whether a pattern matches a marker and contains the marker's first sign.

    An address begins with a letter, and a source line with a line break; those aren't signs.
    """
    flags = re.VERBOSE if "\n" in pattern else 0
    try:
        compiled = re.compile(pattern, flags)
    except re.error:
        return False
    named_characters = set(literals(re_parser.parse(pattern, flags)))
    return any(
        compiled.fullmatch(marker)
        for marker in (*FURTHER_MARKERS, *(style.example for style in styles.STYLES))
        if re.match(r"[^a-z\s]", first_sign := marker.lstrip(" ")[0])
        and first_sign in named_characters
    )


def test_no_other_module_has_a_marker_regex() -> None:
    marker_patterns = {}
    for file in sorted((ROOT / "masis").rglob("*.py")):
        name = file.relative_to(ROOT).as_posix()
        if name.startswith("masis/audit/markers/"):
            continue
        source = file.read_text(encoding="utf-8")
        if not re.search(r"\bre\.", source):
            continue
        module_patterns = patterns_in(source, module_names(file))
        if patterns := [pattern for pattern in module_patterns if is_about_markers(pattern)]:
            marker_patterns[name] = patterns
    assert marker_patterns.keys() - EXCEPTIONS.keys() == set(), "ask masis.audit.markers instead"
    assert EXCEPTIONS.keys() - marker_patterns.keys() == set(), "these no longer need an exception"


@pytest.mark.parametrize(
    "pattern",
    [
        r"\s*\[[^\]]*\]",
        r"\[\^?\d{1,3}\]|【[^】]*】",
        r"[⁰¹²]+|\[x\]",
        r"\(Source \d+\)",
        r"<cite>.*?</cite>",
        r"##\d+\$\$",
        r"[①-⑳]",
    ],
)
def test_the_check_recognizes_a_marker_regex(pattern: str) -> None:
    assert is_about_markers(pattern)


@pytest.mark.parametrize(
    "source",
    [
        r'PATTERN = re.compile(rf"{OPEN}\d+\]")',
        r'PATTERN = re.compile(OPEN + r"\d+" + re.escape("]"))',
        r'PATTERN = re.compile("".join((OPEN, r"\d+", r"\]")))',
        r'def find(text, number): return re.search(rf"\[{number}\]", text)',
        r"""
def build(body):
    return re.compile(OPEN + body + r"\]")

TABLE = {"numbers": build(r"\d+")}
""",
    ],
)
def test_the_check_recognizes_a_marker_regex_that_is_built_from_parts(source: str) -> None:
    source = f'import re\nOPEN = re.escape("[")\n{source}'
    names: dict[str, object] = {}
    exec(source, names)
    assert any(map(is_about_markers, patterns_in(source, names)))


# "\\]" in a pattern, also in a set of characters: "(?<=[.!?\\]])"; "】" anywhere.
IN_JAVASCRIPT = re.compile(
    "|".join([r"\\\]", *(end for pair in StyleTable(STYLES).brackets for end in pair if end > "~")])
)


def test_no_javascript_matches_brackets() -> None:
    lines = [
        f"{file.name}: {line.strip()}"
        for file in (ROOT / "masis").rglob("*.js")
        for line in file.read_text(encoding="utf-8").splitlines()
        if IN_JAVASCRIPT.search(line)
    ]
    assert lines == [], "use MARKER_END, which masis/ui/components/__init__.py defines"


@pytest.mark.parametrize(
    "line", [r"/\[\^?(\d+)\]/g", r"split(/(?<=[.!?\]])\s+/)", 'endsWith("】")']
)
def test_the_check_recognizes_brackets_in_javascript(line: str) -> None:
    assert IN_JAVASCRIPT.search(line)


def test_scripts_get_the_end_signs_of_every_style(monkeypatch: pytest.MonkeyPatch) -> None:
    for end in ("]", "】", ")", "</sup>", "¹", "³"):
        assert re.fullmatch(marker_end_pattern(), end), end
    monkeypatch.setattr(styles, "STYLES", (*styles.STYLES, SOURCE_BRACES, ARROW))
    _, script = sources("base")
    (pattern,) = re.findall(r"^const MARKER_END = (.*)$", script, re.MULTILINE)
    for style in styles.STYLES:
        if not re.fullmatch("[a-z0-9]", style.example[-1]):
            assert re.search(rf"(?:{json.loads(pattern)})\Z", style.example), style.name
    assert "}}" in re.sub(r"\\", "", pattern).split("|")


# Markers in texts whose evidence isn't known


@for_each(
    [
        ("It is long [1].", "It is long."),
        ("It is long [1], [2; 3] and old.", "It is long and old."),
        ("It is long【1†source】.", "It is long."),
        ("It is long [[1]].", "It is long."),
        ("It is long 【【1】】.", "It is long."),
        ("It is long [[[1]]].", "It is long."),
        ("It is long **[1]**.", "It is long."),
        ("It is long ([1]).", "It is long."),
        ("It is long^[1]^ and ***[2]*** old.", "It is long and old."),
        ("It is long ([1], [2; 3]) and old ([[1]]).", "It is long and old."),
        ("It is long<sup>[1], [2]</sup>.", "It is long."),
        ('It is long <span class="source">[1]</span>.', "It is long."),
        ("It is **long**[1]**bridge**.", "It is **long****bridge**."),
        ("It is **long [1]** and old (very [1]).", "It is **long** and old (very)."),
        ("It is long [chunk_1].", "It is long."),
        ("It is long (Source 1).", "It is long."),
        ("It is long¹.", "It is long."),
        ("It opened in 1931[2].", "It opened in 1931."),
        ("It opened in 1931 [2, 4].", "It opened in 1931."),
        ("It is long <cite>chunk_1</cite>.", "It is long."),
        ("See [the report](https://a.example/x) [1].", "See [the report](https://a.example/x)."),
    ],
    lambda pair: pair[0],
)
def test_markers_can_be_removed_without_evidence(pair: tuple[str, str]) -> None:
    text, plain = pair
    assert without_markers(text) == plain


@for_each(
    [
        "the CI of [2, 8] was wide",
        "it rose by 4.1 [2, 8] points",
        "10[6] cells and 5 × 10[7] more",
        "[18]F-FDG and [125]I",
        "x[3] and rows[0]",
        "10⁸ cells on 5 m³, χ², R², s⁻¹ and ¹⁸F",
        "pyrazolo[1,5-a]pyrimidine",
        "[EMIM][TfO] and [sic] and [...]",
        "`[1]` is code",
        "- [x] done",
        "Smith et al. [2004]",
        "m<sup>2</sup> and 10<sup>6</sup>",
        "① wash it ② dry it",
        "a ratio of [1/9]",
        "the solution is (x + 1)²",
        "$\\frac{[9]}{2}$",
    ],
    str,
)
def test_meaningful_brackets_are_kept_without_evidence(text: str) -> None:
    assert without_markers(text) == text
    assert marker_spans(text) == []


def test_with_evidence_exactly_its_markers_are_removed() -> None:
    index = index_of(("smith-2004", "jones-2011"), ("https://a.example/report", None))
    text = (
        "It is [the longest](https://a.example/report) of [all], says [smith-2004]; 10[6] cells"
        " agree [brown-2015]."
    )
    assert without_markers(text, index) == "It is the longest of [all], says; 10[6] cells agree."
    assert leading_marker("[smith-2004] Smith") == "[smith-2004]"
