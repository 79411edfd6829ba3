"""Lists and documents that libraries print as one text are parsed, or rejected if they can't be."""

from __future__ import annotations

from typing import Any

import pytest

import masis
from masis.errors import InputError
from masis.schema import literals
from masis.schema.case import Case
from masis.schema.literals import parse_value, why_unreadable

NODE = (
    "[NodeWithScore(node=TextNode(id_='n1', embedding=None, metadata={'file_name': 'a.pdf'},"
    " relationships={<NodeRelationship.SOURCE: '1'>: RelatedNodeInfo(node_id='9',"
    " node_type=<ObjectType.DOCUMENT: '4'>)}, text='So.'), score=0.5)]"
)
WRITTEN: list[tuple[str, Any]] = [
    # numpy separates with spaces or, in a narrow column, with line breaks
    ("['So.' 'Thus.']", ["So.", "Thus."]),
    ("['So.'\n 'Thus.']", ["So.", "Thus."]),
    ("""["It's so." 'Thus.']""", ["It's so.", "Thus."]),
    ("[['a' 'b']\n ['c' 'd']]", [["a", "b"], ["c", "d"]]),
    ("array(['So.', 'Thus.'], dtype=object)", ["So.", "Thus."]),
    ("np.array(['So.'], dtype='<U3')", ["So."]),
    ("[array(['So.'], dtype=object)\n array(['Thus.'], dtype=object)]", [["So."], ["Thus."]]),
    ("[{'id': 'a', 'text': 'So.'} {'id': 'b', 'text': 'Thus.'}]", [{"id": "a", "text": "So."},
                                                                   {"id": "b", "text": "Thus."}]),
    ("[np.str_('So.'), np.str_('Thus.')]", ["So.", "Thus."]),
    ("[1.0 2.0]", [1.0, 2.0]),
    ("[b'So.' b'Thus.']", ["So.", "Thus."]),
    ("{'b', 'a', 'c'}", ["b", "a", "c"]),
    # Python
    ("('So.', 'Thus.')", ["So.", "Thus."]),
    ("('So.',)", ["So."]),
    ("{'So.'}", ["So."]),
    ("frozenset({'So.'})", ["So."]),
    ("deque(['So.', 'Thus.'])", ["So.", "Thus."]),
    ("[nan, 'So.', None, pd.NA]", [None, "So.", None, None]),
    ("{'a': True, 'b': [1, -2.5, np.float64(0.5)]}", {"a": True, "b": [1, -2.5, 0.5]}),
    ("OrderedDict([('id', 'a'), ('text', 'So.')])", {"id": "a", "text": "So."}),
    ("defaultdict(<class 'list'>, {'a': ['So.']})", {"a": ["So."]}),
    ("['So \\'so\\'.\\nAnd \\u00e9.', r'a']", ["So 'so'.\nAnd é.", "a"]),
    ("['''So\n'so'.''', b'Thus.']", ["So\n'so'.", "Thus."]),
    ("['So it is ' 'said.', 'Thus.']", ["So it is said.", "Thus."]),  # as pprint wraps a long text
    ("{'at': datetime.date(2024, 1, 5)}", {"at": "datetime.date(2024, 1, 5)"}),
    # JSON, and JSON altered by a spreadsheet's autocorrection
    ('["So.", NaN]', ["So.", None]),
    ("[“So.”, “Thus.”]", ["So.", "Thus."]),
    # LangChain and LlamaIndex
    ("[Document(metadata={'source': 'a.pdf', 'page': 3}, page_content='So.'), Document(page_content='Thus.')]",
     [{"text": "So.", "source": "a.pdf", "metadata": {"source": "a.pdf", "page": 3}}, {"text": "Thus."}]),
    ("Document(id='7', metadata={}, page_content='So.')", {"id": "7", "text": "So."}),
    ("page_content='So.' metadata={'source': 'a'}", {"text": "So.", "source": "a", "metadata": {"source": "a"}}),
    (NODE,
     [{"id": "n1", "text": "So.", "source": "a.pdf", "metadata": {"file_name": "a.pdf"}, "score": 0.5}]),
    ("[TextNode(id_='n1', text_resource=MediaResource(embeddings=None, text='So.', path=None))]",
     [{"id": "n1", "text": "So."}]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), WRITTEN)
def test_a_printed_python_list_is_parsed(text: str, value: Any) -> None:
    assert parse_value(text) == value
    assert why_unreadable(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "[1] So. [2] Thus.", "(Source 1) So.", '("the Agreement") is made', "[link](https://a.b) So.",
        "{x: 1} is a set", "f(x) = 3", "print(text='So.')", "[**bold**] So.", "[“so”] it is said", "(120)",
        "array of sensors", "[sic]",
    ],
)  # fmt: skip
def test_prose_and_code_starting_with_a_bracket_stay_text(text: str) -> None:
    assert parse_value(text) == text
    assert why_unreadable(text) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("['So.' 'Thus.' ... 'Or not.']", "items were left out at character 16 (...)"),
        ("['So.', 'Thu", "the quote at character 9 isn't closed"),
        ("['So.', 'Thus.'", "it is cut off at the end"),
        ("['It's so.']", "it can't be read from character 6"),
        (
            "[Document(page_content='So.'), Document(page_con",
            "it can't be read from character 41",
        ),
        ("['So it is '\n 'said.']", "it may be one text that was wrapped, or several"),
        ("[{'a': 'So.', 'Thus.'}]", "an object in it has a value without a key"),
        ("['a'" + "[" * 100, "it is nested more than 64 levels deep"),
    ],
)
def test_a_malformed_list_is_rejected_unless_the_map_makes_it_one_chunk(
    text: str, why: str
) -> None:
    row = {"query": "Why?", "evidence": text}
    assert parse_value(text) == text
    assert why_unreadable(text) == why
    for read in (lambda: Case(**row), lambda: masis.read_cases([row])):
        with pytest.raises(InputError) as raised:
            read()
        assert f"looks like a list that a program wrote, but {why}" in str(raised.value)
        assert "--map evidence.split=" in raised.value.hint
    (case,) = masis.read_cases([row], map={"evidence.split": None})
    assert [chunk.text for chunk in case.evidence] == [text]


def test_nothing_is_executed_and_long_literals_stay_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = "[__import__('os').system('exit 1'), exit(), open('f', 'w')]"
    assert parse_value(code) == code
    assert parse_value("[exit('So.')]") == ["exit('So.')"]
    monkeypatch.setattr(literals, "MOST_NESTED_TEXT", 10)
    assert parse_value("['So.', 'Thus.']") == "['So.', 'Thus.']"


def test_a_null_chunk_is_reported_with_its_position(tmp_path: Any) -> None:
    path = tmp_path / "f.csv"
    path.write_text("question,contexts,answer\nWhy?,\"[nan, 'So.']\",So [1].\n")
    with pytest.raises(
        InputError, match=r"line 2, evidence\[0\]: is null, must be text or an object"
    ):
        masis.read_cases(path)


TABLE = "| Plan | Price |\n| --- | --- |\n| Pro | 20 |"


@pytest.mark.parametrize(
    ("text", "answer", "chunks"),
    [
        (TABLE, "It costs 20 [1].", [TABLE]),
        (TABLE, "It costs 20 [1]. So [2].", [TABLE]),
        ("| Pro | 20 |\n| Team | 30 |", "It costs 20 [1].", ["| Pro | 20 |\n| Team | 30 |"]),
        ("cat access.log | grep ERROR", "Filter it [1].", ["cat access.log | grep ERROR"]),
        ("It is long; it is red.", "It is red [1].", ["It is long; it is red."]),
        ("Fish &amp; chips; so.", "So [1].", ["Fish &amp; chips; so."]),
        ("x=1;y=2;z=3", "So [1].", ["x=1;y=2;z=3"]),
        ("It is long.|It is red.", "So [1].", ["It is long.", "It is red."]),
        ("a bridge|a tunnel", "So [1]. Or so [2].", ["a bridge", "a tunnel"]),
    ],
)
@pytest.mark.parametrize(
    "names", [("query", "answer", "evidence"), ("input", "actual_output", "retrieval_context")]
)
def test_a_text_is_split_into_chunks_only_if_unambiguous(
    text: str, answer: str, chunks: list[str], names: tuple[str, str, str]
) -> None:
    (case,) = masis.read_cases([dict(zip(names, ("How?", answer, text), strict=True))])
    assert [chunk.text for chunk in case.evidence] == chunks


@pytest.mark.parametrize(
    ("text", "answer", "separator", "count"),
    [
        ("It is long.; It is red.", "So.", ";", 2),
        ("It is long;it is red;it is old", "So.", ";", 3),
        ("물의 위치에너지 활용;댐에서 물 저장;터빈 회전", "저장합니다 [2].", ";", 3),
        ("It is long; it is red; it is old", "So [3].", ";", 3),
        ("它很长；它是红色的", "So [2].", "；", 2),
        ("a long bridge|a red one|an old one", "So [2].", "|", 3),
        ("a long bridge|a red one", "So.", "|", 2),
        ("It is long. | It is red.", "So.", "|", 2),
    ],
)
@pytest.mark.parametrize(
    "names", [("query", "answer", "evidence"), ("question", "answer", "contexts")]
)
def test_an_ambiguous_text_is_rejected_and_the_suggested_option_works(
    text: str, answer: str, separator: str, count: int, names: tuple[str, str, str]
) -> None:
    row = dict(zip(names, ("How?", answer, text), strict=True))
    with pytest.raises(InputError, match=f"evidence: is one text of {count} parts") as raised:
        masis.read_cases([row])
    assert f"--map 'evidence.split={separator}'" in raised.value.hint
    (several,) = masis.read_cases([row], map={"evidence.split": separator})
    assert len(several.evidence) == count
    (one,) = masis.read_cases([row], map={"evidence.split": None})
    assert [chunk.text for chunk in one.evidence] == [text]
