"""Files of other tools, in their documented formats, are recognized and read completely."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.datasets.loading import read_cases, suggest
from masis.datasets.mapping.profile import (
    ColumnChoice,
    Profile,
    columns_key,
    drop_missing_columns,
    import_profiles,
    likely_choice,
    load_profile,
    parse_profile,
    profile_of,
    profile_text,
)
from masis.datasets.mapping.reader import formats_of, read_any
from masis.datasets.mapping.row import MappedRow
from masis.errors import InputError
from masis.schema.case import Case
from masis.schema.columns import columns_of

FILES = Path(__file__).parent / "files"
QUESTION = "How long is the Marle bridge?"
FIXTURES = sorted(
    path for path in FILES.iterdir() if path.name not in ("source_info.jsonl", "batch_input.jsonl")
)
CITED = {"anthropic-message", "openai-responses", "openai-chat", "gemini", "cohere", "bedrock"}


def cases(rows: list[MappedRow]) -> list[Case]:
    assert [str(problem) for row in rows for problem in row.problems] == []
    return [row.case for row in rows if row.case is not None]


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_tools_file_is_recognized_and_gives_question_answer_and_evidence(
    path: Path,
) -> None:
    (named,) = formats_of(path).formats
    profile = import_profiles()[named]
    assert path.name.startswith(profile.name)
    (case,) = cases(list(read_any(path, profile)))
    assert case.query == ("Summarise the source." if profile.name == "summaries" else QUESTION)
    assert case.answer
    assert any(word in case.answer for word in ("120", "130"))
    assert "The Marle bridge is 120 metres long." in case.evidence[0].text
    assert bool(case.given_citations) == (profile.name in CITED)
    for citation in case.given_citations:
        assert case.answer[citation.start : citation.end] or citation.start == citation.end > 0
        assert citation.evidence_id in {chunk.id for chunk in case.evidence}


def test_every_profile_has_a_file() -> None:
    assert {formats_of(path).formats[0] for path in FIXTURES} == set(import_profiles())


def test_gemini_byte_offsets_become_character_offsets() -> None:
    (case,) = cases(list(read_any(FILES / "gemini-v1beta.json")))
    (cited,) = case.given_citations
    assert (case.answer or "")[
        cited.start : cited.end
    ] == "Die Brücke von Marle ist 120 Meter lang."


def test_a_reply_with_source_urls_only_is_rejected_and_adjacent_texts_are_used(
    tmp_path: Path,
) -> None:
    (row,) = json.loads((FILES / "openai-chat-sdk-3.54.0.json").read_text())
    (case,) = cases(list(read_any([row])))
    assert [(chunk.id, chunk.text) for chunk in case.evidence] == [
        ("https://example.org/marle", "The Marle bridge is 120 metres long.")
    ]
    (refused,) = read_any([{key: value for key, value in row.items() if key != "documents"}])
    assert refused.case is None
    assert "evidence: has only the addresses of its sources; their texts aren't in the file" in str(
        refused.problems[0]
    )


def test_anthropic_locations_give_the_position_in_the_document() -> None:
    (case,) = cases(list(read_any(FILES / "anthropic-message-2023-06-01.json")))
    first, second = case.given_citations
    assert (first.evidence_id, second.evidence_id) == ("doc_0", "result_0")
    assert case.evidence[0].text[first.evidence_start : first.evidence_end] == first.quote
    assert (case.answer or "")[second.start : second.end] == " It was opened in 1931."


def test_ragtruth_and_label_studio_labels_keep_their_words_and_verdicts() -> None:
    (case,) = cases(list(read_any(FILES / "ragtruth-2024-response.jsonl")))
    (label,) = case.labels.claims
    assert (label.text, label.verdict) == ("130 metres", "contradicted")
    (case,) = cases(list(read_any(FILES / "label-studio-1.20.json")))
    assert case.labels.claims[0].verdict == "supported"


def test_a_missing_second_file_is_named(tmp_path: Path) -> None:
    alone = tmp_path / "response.jsonl"
    alone.write_bytes((FILES / "ragtruth-2024-response.jsonl").read_bytes())
    with pytest.raises(InputError, match=r"needs source_info\.jsonl beside it"):
        list(read_any(alone))


def test_both_ragtruth_files_can_be_in_one_zip(tmp_path: Path) -> None:
    packed = tmp_path / "ragtruth.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(FILES / "ragtruth-2024-response.jsonl", "response.jsonl")
        archive.write(FILES / "source_info.jsonl", "source_info.jsonl")
    (case,) = cases(list(read_any(packed, import_profiles()["ragtruth"])))
    assert case.evidence[1].text == "It was opened in 1931."


ROW = {
    "question": "Why?",
    "contexts": ["So it is written.", "Thus."],
    "answer": "So.",
    "ground_truth": "So.",
}


def test_the_same_row_is_read_from_every_container(tmp_path: Path) -> None:
    import pandas as pd

    text = json.dumps(ROW)
    (tmp_path / "a.jsonl").write_text(text + "\n")
    (tmp_path / "b.json").write_text(json.dumps([ROW], indent=1))
    (tmp_path / "c.json").write_text(json.dumps({"data": [ROW]}))
    (tmp_path / "d.json").write_text(json.dumps({"results": [ROW]}, indent=1))
    pd.DataFrame([ROW]).to_csv(tmp_path / "e.csv", index=False)
    pd.DataFrame([ROW]).to_csv(tmp_path / "f.tsv", sep="\t", index=False)
    pd.DataFrame([ROW]).to_parquet(tmp_path / "g.parquet")
    (tmp_path / "h.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    with zipfile.ZipFile(tmp_path / "i.zip", "w") as archive:
        archive.writestr("inner/rows.jsonl", text)
    read = [cases(list(read_any(path)))[0] for path in sorted(tmp_path.iterdir())]
    assert len(read) == 9
    assert {case.id for case in read} == {read[0].id}
    assert {tuple((chunk.id, chunk.text) for chunk in case.evidence) for case in read} == {
        (("chunk_1", "So it is written."), ("chunk_2", "Thus."))
    }


def test_every_problem_of_a_row_is_reported_and_other_rows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [
        ROW,
        {"question": {"text": 1}, "contexts": [5], "answer": ["a", 3]},
        {**ROW, "question": "How?"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = list(read_any(path, import_profiles()["hf-rag"]))
    assert [row.case is not None for row in found] == [True, False, True]
    assert [problem.field for problem in found[1].problems] == ["query", "answer", "evidence[0]"]
    assert "rows.jsonl, line 2, query: is an object of 'text', must be text." in str(
        found[1].problems[0]
    )


def test_unmapped_keys_are_preserved(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({**ROW, "score": 0.5, "tags": {"field": "law"}}))
    (case,) = cases(list(read_any(path)))
    assert case.metadata["source_row"]["score"] == 0.5
    assert case.metadata["source_row"]["tags"] == {"field": "law"}
    assert case.metadata["reference_answer"] == "So."


def test_a_file_that_fits_two_profiles_asks_for_one(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([{**ROW, "user_input": "Why?", "retrieved_contexts": ["So."]}]))
    with pytest.raises(InputError, match=r"fits hf-rag and ragas\. Choose one: --as hf-rag"):
        list(read_any(path))


def test_a_custom_profile_reads_any_key_names(tmp_path: Path) -> None:
    own, rows = tmp_path / "own.toml", tmp_path / "rows.jsonl"
    own.write_text(
        'query = "frage"\nanswer = "antwort.text"\nevidence = "quellen[].inhalt"\nid = "nr"\n'
        'citations = "belege[].{start: von, end: bis, evidence_id: quelle}"\n'
    )
    row = {"nr": 7, "frage": "Warum?", "antwort": {"text": "So."}, "quellen": [{"inhalt": "So."}]}
    cited = {"von": 0, "bis": 2, "quelle": "chunk_1"}
    rows.write_text(
        json.dumps({**row, "belege": [cited]}) + "\n" + json.dumps({**row, "belege": [{"von": 0}]})
    )
    read = list(read_any(rows, load_profile(own)))
    (case,) = cases(read[:1])
    assert (case.id, case.query, case.answer, case.evidence[0].text) == (
        "7",
        "Warum?",
        "So.",
        "So.",
    )
    assert [
        (citation.start, citation.end, citation.evidence_id) for citation in case.given_citations
    ] == [(0, 2, "chunk_1")]
    assert "citations[0]: needs start, end and evidence_id" in str(read[1].problems[0])


def test_a_custom_path_that_never_matches_is_an_error(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('query = "frage"\nanswer = "antwrt"\nevidence = "quellen"\n')
    rows = list(
        read_any([{"frage": "Warum?", "antwort": "So.", "quellen": ["So."]}], load_profile(own))
    )
    assert [str(problem) for problem in rows[-1].problems] == [
        (
            "stdin, map: no row has 'antwrt'. Check the name: masis import FILE --suggest shows the"
            " keys of the first row."
        )
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("query = [", "isn't valid TOML", id="no TOML"),
        pytest.param('qeury = "a"', "qeury: isn't part of a profile", id="unknown key"),
        pytest.param('query = "a[?"', "query: isn't a valid path", id="no path"),
    ],
)
def test_an_invalid_profile_is_rejected_with_its_field(
    text: str, said: str, tmp_path: Path
) -> None:
    own = tmp_path / "own.toml"
    own.write_text(text)
    with pytest.raises(InputError, match=r"own\.toml") as raised:
        load_profile(own)
    assert said in str(raised.value)


def read(tmp_path: Path, row: dict[str, Any], choice: ColumnChoice) -> Case:
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([row]))
    (found,) = read_any(file, profile_of(choice, columns_of(row)))
    assert found.case is not None, found.problems
    return found.case


def test_nested_columns_are_offered_with_a_sample() -> None:
    columns = columns_of(
        {"in": {"the question": "Why?\n" * 40}, "docs": [{"nr": 7, "body": "So."}], "empty": None}
    )
    assert [(column.shown, column.items) for column in columns] == [
        ("in.the question", ()),
        ("docs", ("nr", "body")),
    ]
    assert columns[0].sample.startswith("Why? Why?")
    assert len(columns[0].sample) == 60


def test_a_column_can_have_any_name(tmp_path: Path) -> None:
    names = ('fra"ge', "back\\slash", "[].*", "naïve 😀", "a.b")
    row = {name: f"Text of {number}." for number, name in enumerate(names)}
    choice = ColumnChoice(query=names[0], answer=names[1], evidence=names[2:4], reference=names[4])
    case = read(tmp_path, row, choice)
    assert (case.query, case.answer) == ("Text of 0.", "Text of 1.")
    assert [chunk.text for chunk in case.evidence] == ["Text of 2.", "Text of 3."]
    assert case.metadata["reference_answer"] == "Text of 4."


def test_evidence_columns_are_read_in_order_without_empty_ones(
    tmp_path: Path,
) -> None:
    row = {"q": "Why?", "c2": "Two.", "c1": '["One.", "One and a half."]', "c3": "", "c4": None}
    case = read(tmp_path, row, ColumnChoice(query="q", evidence=("c1", "c2", "c3", "c4")))
    assert [chunk.text for chunk in case.evidence] == ["One.", "One and a half.", "Two."]


def test_chunk_text_and_id_are_read_from_the_chosen_keys(tmp_path: Path) -> None:
    row = {"q": "Why?", "docs": [{"nr": 7, "inhalt": "So."}, {"nr": 8, "inhalt": "Or so."}]}
    choice = ColumnChoice(query="q", evidence=("docs",), chunk_text="inhalt", chunk_id="nr")
    assert [(chunk.id, chunk.text) for chunk in read(tmp_path, row, choice).evidence] == [
        ("7", "So."),
        ("8", "Or so."),
    ]


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ({"frage": "Why?", "antwort": "So.", "quellen": ["So."], "system": "birch"}, "system"),
        (
            {"frage": "Why?", "antwort": "So.", "quellen": ["So."], "System Name": "v 2"},
            "System Name",
        ),
        ({"frage": "Why?", "antwort": "So.", "quellen": ["So."], "system": "You are kind."}, ""),
        ({"frage": "Why?", "antwort": "So.", "quellen": ["So."], "filesystem": "ext4"}, ""),
    ],
)
def test_a_column_with_the_names_of_systems_is_proposed(row: dict[str, Any], column: str) -> None:
    assert likely_choice(columns_of(row)).system == column
    proposed = suggest([row, row])
    assert proposed.profile is not None
    assert (json.dumps(column) in proposed.profile.system) == bool(column)


@pytest.mark.parametrize(
    ("question", "answer", "evidence"),
    [
        ("question", "answer", "contexts"),  # the format hf-rag
        ("user_input", "response", "retrieved_contexts"),  # Ragas
        ("frage", "antwort", "quellen"),  # columns, as proposed
    ],
)
def test_two_systems_may_answer_the_same_ids_in_any_table(
    question: str, answer: str, evidence: str
) -> None:
    row = {"id": "q1", question: "Why?", answer: "So.", evidence: ["So."], "system": "birch"}
    profile = import_profiles().get(suggest([row]).format) or suggest([row]).profile
    prompted = {**row, "system": "You are a kind assistant."}
    (named, other, prompt) = cases(
        list(read_any([row, {**row, "system": "alder"}, prompted], profile))
    )
    assert (named.id, named.question, named.system) == ("q1:birch", "q1", "birch")
    assert (other.id, other.question, other.system) == ("q1:alder", "q1", "alder")
    assert (prompt.id, prompt.system) == ("q1", "unnamed")


def test_a_system_column_that_isnt_chosen_names_no_system(tmp_path: Path) -> None:
    row = {"id": "q1", "q": "Why?", "docs": ["So."], "system": "birch", "team": "north"}
    choice = ColumnChoice(query="q", evidence=("docs",), id="id")
    case = read(tmp_path, row, choice)
    assert (case.id, case.system) == ("q1", "unnamed")
    assert choice.unused_columns(columns_of(row)) == ["system", "team"]
    case = read(tmp_path, row, choice.model_copy(update={"system": "team"}))
    assert (case.id, case.question, case.system) == ("q1:north", "q1", "north")


def test_a_first_row_without_evidence_is_reported_and_doesnt_decide_the_format() -> None:
    rows = [{"question": "Why?", "answer": "So.", "contexts": held} for held in ([], ["So."])]
    with pytest.raises(InputError, match=r"line 1, evidence: is empty: 'contexts' has no content"):
        read_cases(rows)
    assert suggest(rows).format == "hf-rag"
    rows = [
        {"frage": "Why is it so?", "antwort": "So.", "quellen": row["contexts"]} for row in rows
    ]
    names = {"query": "frage", "answer": "antwort", "evidence": "quellen"}
    with pytest.raises(InputError, match=re.escape(json.dumps(names))):
        Case(**rows[0])
    assert suggest(rows).names == names


@pytest.mark.parametrize("key", ["chunk_id", "doc_id", "id", "document_id", "source_id"])
def test_chunk_ids_are_preserved(key: str) -> None:
    chunks = [{key: "kb-12", "text": "So it is."}, {key: "kb-13", "text": "Or not."}]
    for row in (
        {"question": "Why?", "contexts": chunks, "answer": "So."},
        {"frage": "Why?", "beleg": chunks},
    ):
        (case,) = read_cases([row], map=suggest([row]).names)
        assert [chunk.id for chunk in case.evidence] == ["kb-12", "kb-13"]


@pytest.mark.parametrize(
    ("cell", "ids"),
    [
        ("[1] So it is.\n[2] Or not,\nperhaps.", ["1", "2"]),
        ("['So it is.', 'Or not.']", ["chunk_1", "chunk_2"]),
        ("[1] So it is.", ["chunk_1"]),
        ("[2] So it is.\n[1] Or not.", ["chunk_1"]),
        ("So it is.\n[1] Or not.\n[2] Or so.", ["chunk_1"]),
    ],
)
def test_a_cell_with_several_chunks_is_split_in_a_frame_as_in_a_file(
    cell: str, ids: list[str], tmp_path: Path
) -> None:
    frame = pd.DataFrame({"frage": ["Why?"], "beleg": [cell]})
    frame.to_csv(tmp_path / "f.csv", index=False)
    for source in (frame, tmp_path / "f.csv"):
        (case,) = read_cases(source, map={"query": "frage", "evidence": "beleg"})
        assert [chunk.id for chunk in case.evidence] == ids


def test_column_names_of_other_tools_are_guessed() -> None:
    row = {
        "qid": "1",
        "user_input": "Why?",
        "completion": "So.",
        "passages": [{"passage": "So.", "id": "p"}],
    }
    choice = likely_choice(columns_of(row))
    assert (choice.id, choice.query, choice.answer, choice.evidence) == (
        "qid",
        "user_input",
        "completion",
        ("passages",),
    )
    assert (choice.chunk_text, choice.chunk_id) == ("passage", "id")


def test_column_order_doesnt_matter_for_a_saved_choice() -> None:
    assert (
        columns_key({"a": 1, "b": 2}) == columns_key({"b": 3, "a": None}) != columns_key({"a": 1})
    )


def test_missing_columns_are_dropped_from_the_choice() -> None:
    choice = ColumnChoice(query="q", answer="gone", evidence=("c", "gone"), chunk_text="gone")
    assert drop_missing_columns(
        choice, columns_of({"q": "Why?", "c": [{"text": "So."}]})
    ) == ColumnChoice(query="q", evidence=("c",))


@pytest.mark.parametrize(
    ("content", "formats"),
    [
        ('{"id": "1", "query": "Why?", "evidence": []}', ("cases",)),
        ('{"question": "Why?", "contexts": ["So."], "answer": "So."}', ("hf-rag",)),
        ('{"question": "Why?", "passages": ["So."]}', ()),
        ('[{"query": "Why?", "evidence": ["So."]}]', ("cases",)),
    ],
)
def test_formats_are_recognized_by_the_first_row(
    content: str, formats: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "rows.json"
    file.write_text(content)
    assert formats_of(file).formats == formats


def test_a_file_without_a_row_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("question,contexts\n")
    with pytest.raises(InputError, match="has no readable row"):
        formats_of(file)


@pytest.mark.parametrize(
    ("row", "names"),
    [
        (
            {"q_text": "Why is it so?", "docs": ["So it is."], "out": "It is so, as [1] says."},
            ["q_text", "docs", "out"],
        ),
        (
            {
                "frage": "Wie lang ist sie?",
                "belege": [{"nr": 1, "inhalt": "120 Meter."}],
                "x": "Sie ist 120 m lang.",
            },
            ["frage", "belege", "x"],
        ),
        (
            {
                "in": {"ask": "How long is it?"},
                "ctx": "It is long. " * 30,
                "gpt": "It is 120 metres long.",
            },
            ["in.ask", "ctx", "gpt"],
        ),
        (
            {
                "prompt": "Name the length",
                "response": "120 m",
                "context": "It is 120 m.",
                "gold": "120",
            },
            ["prompt", "context", "response"],
        ),
        *(
            (
                dict(
                    zip(
                        names,
                        ("Wie hoch ist er heute?", "Er ist 120 m hoch [1].", evidence),
                        strict=True,
                    )
                ),
                names,
            )
            for names in (
                ["frage", "antwort", "quellen"],
                ["question", "réponse", "sources"],
                ["Pregunta", "Respuesta", "Fuentes"],
                ["domanda", "risposta", "fonti"],
                ["a", "b", "c"],
            )
            for evidence in (
                (
                    "Der Turm der alten Kirche misst 120 m und wurde 1931 am Fluss in der Stadt"
                    " gebaut."
                ),
                "[1] Der Turm misst 120 m.\n[2] Er steht am Fluss.",
                "['Der Turm misst 120 m.', 'Er steht am Fluss.']",
            )
        ),
    ],
)
def test_a_map_is_suggested_from_names_types_and_values(
    row: dict[str, Any], names: list[str]
) -> None:
    found = suggest([row])
    assert [found.names.get(field) for field in ("query", "evidence", "answer")] in (
        names,
        [*names[::2], names[1]],
    )
    with pytest.raises(InputError, match="may hold it") as error:
        Case(**row)
    whole = re.search(r"map=(\{.*?\})", error.value.hint)
    assert json.loads(whole[1]) == found.names
    (case,) = read_cases([row], map=found.names)
    assert case.answer
    assert parse_profile(profile_text(found.profile).encode()).query == found.profile.query


def test_rows_of_a_known_format_need_no_map_and_unknown_rows_may_have_none() -> None:
    assert suggest([{"question": "Why?", "contexts": ["So."], "answer": "So."}]).format == "hf-rag"
    assert suggest([{"a": 1}]).profile is None


def test_several_answers_in_a_row_become_separate_cases() -> None:
    row = {
        "id": "q",
        "query": "Why?",
        "evidence": ["So."],
        "responses": ["So.", {"model": "m", "response": "Thus."}],
    }
    cases = read_cases([row])
    assert [(case.id, case.answer) for case in cases] == [("q-1", "So."), ("q-2", "Thus.")]
    assert cases[1].metadata == {"answer_of": {"model": "m"}}


def test_rows_that_share_an_id_become_separate_cases(tmp_path: Path) -> None:
    row = {"id": "x", "question": "Why?", "contexts": ["So."], "answer": "So."}
    first, second = read_cases([row, row | {"answer": "Thus."}, row])
    assert first.id == "x"
    assert second.id.startswith("x#")


def test_an_object_of_rows_by_id_is_read_row_by_row(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    row = {"query": "Why?", "evidence": ["So."], "answer": "So."}
    file.write_text(json.dumps({"a": row, "b": row | {"answer": "Thus."}}, indent=1))
    assert [case.id for case in read_cases(file)] == ["a", "b"]


_NAMES = sorted(
    {
        name
        for profile in import_profiles().values()
        for name in re.findall(r"[a-z_]{3,}", profile.model_dump_json())
    }
)
_VALUES = st.recursive(
    st.sampled_from(
        ["", "Why?", "x" * 70, 0, -1.5, None, True, "[1]", '{"a": 1}', "passage 1: x", "a|b"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.sampled_from(list(import_profiles().values())),
    st.dictionaries(st.sampled_from(_NAMES), _VALUES, max_size=6),
)
def test_no_row_crashes_a_profile(profile: Profile, row: dict[str, Any]) -> None:
    for chosen in (None, profile):
        with contextlib.suppress(InputError):
            list(read_any([row], chosen))
    with contextlib.suppress(InputError):
        suggest([row])
