"""Files in publicly used shapes: most are read without an option, the others with the suggested
command.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from masis.datasets.loading import read_cases, suggest
from masis.datasets.mapping.reader import read_any
from masis.errors import InputError

Q, A, T, T2 = (
    "How long is it?",
    "It is 120 metres long [1].",
    "The bridge is 120 metres long.",
    "It opened in 1931.",
)
TURNS = [{"role": "user", "content": Q}, {"role": "assistant", "content": A}]

SHAPES: dict[str, Any] = {
    "ragas 0.1": {"question": Q, "answer": A, "contexts": [T, T2], "ground_truth": "120 m"},
    "ragas 0.1 in columns": {"question": [Q], "answer": [A], "contexts": [[T, T2]], "ground_truth": ["120 m"]},
    "a frame of pandas": {"question": {"0": Q}, "answer": {"0": A}, "contexts": {"0": [T]}},
    "ragas 0.2": {"user_input": Q, "response": A, "retrieved_contexts": [T], "reference": "120 m"},
    "ragas with scores": {"user_input": Q, "response": A, "retrieved_contexts": [T], "faithfulness": 1.0},
    "a list of samples": [{"user_input": Q, "response": A, "retrieved_contexts": [T]}],
    "deepeval": {"input": Q, "actual_output": A, "retrieval_context": [T], "expected_output": "120 m"},
    "deepeval golden": {"input": Q, "actual_output": A, "context": [T], "retrieval_context": None, "name": "x"},
    "deepeval by bars": {"input": Q, "actual_output": A, "retrieval_context": f"{T}|{T2}"},
    "langchain": {"query": Q, "result": A, "source_documents": [{"page_content": T, "metadata": {"source": "a"}}]},
    "langchain chain": {"input": Q, "context": [{"page_content": T, "metadata": {}}], "answer": A},
    "langchain dumped": {"query": Q, "result": A, "source_documents": [{"kwargs": {"page_content": T}}]},
    "llamaindex": {"query": Q, "response": A, "source_nodes": [{"node": {"id_": "n", "text": T}, "score": 0.5}]},
    "crag": {"interaction_id": "1", "query_time": 1, "query": Q, "answer": A, "search_results": [{"page_result": T}]},
    "processed ragtruth": {"id": "1", "query": Q, "context": T, "output": A, "hallucination_labels": "[]"},
    "attribution": {"question": Q, "claim": A, "response": A, "references": [T], "attribution_label": "attributable"},
    "wice": {"claim": A, "evidence": [T], "label": "supported", "meta": {"claim_title": Q, "id": "1"}},
    "hagrid": {"query_id": 1, "query": Q, "quotes": [{"idx": 1, "text": T}], "answers": [{"answer": A}]},
    "expertqa": {"question": Q, "answers": {"gpt4": {"answer_string": A, "attribution": [f"[1] {T}"]}}},
    "faithbench": {"sample_id": 1, "source": T, "summary": A},
    "summedits": {"id": "1", "doc": T, "summary": A, "label": 1},
    "alce": {"question": Q, "output": A, "docs": [{"title": "a", "text": T}]},
    "mlflow evaluation": {"request": Q, "response": A, "retrieved_context": [{"content": T, "doc_uri": "a"}]},
    "trulens": {"record_id": "1", "app_id": "a", "input": Q, "output": A, "contexts": [T]},
    "argilla": [{"id": "1", "fields": {"instruction": Q, "context": T, "response": A}, "responses": {}}],
    "inspect": {
        "eval": {"task": "t"},
        "samples": [
            {"id": 1, "epoch": 1, "input": Q, "target": "x",
             "metadata": {"context": T}, "output": {"choices": [], "completion": A}}
        ],
    },
    "langfuse": [{"id": "1", "input": Q, "output": A, "observations": [
        {"type": "RETRIEVER", "output": [{"page_content": T}]}]}],
    "a conversation": {"messages": TURNS, "evidence": [T]},
    "rows under results": {"model": "m", "results": [{"question": Q, "answer": A, "contexts": [T]}]},
    "rows by id": {context: {"question": Q, "answer": A, "contexts": [context]} for context in (T, T2)},
    "several answers": {"query": Q, "evidence": [T], "responses": [A, "It is 130 metres long."]},
    "helm": {"adapter_spec": {}, "request_states": [
        {"instance": {"id": "id1", "input": {"text": f"Passage: {T}\nQuestion: {Q}"}},
         "result": {"completions": [{"text": A}]}}]},
    "openai evals": {"data": [{"run_id": "r", "datasource_item_id": 1, "datasource_item": {"question": Q, "context": T},
                               "sample": {"output": [{"role": "assistant", "content": A}]}}]},
    "openai evals logged": {"run_id": "r", "sample_id": "s.1", "type": "sampling",
                            "data": {"prompt": [{"role": "user", "content": f"Context: {T}\n\nQuestion: {Q}"}],
                                     "sampled": [A]}},
    "openai file search": {"input": Q, "output": [
        {"type": "file_search_call", "results": [{"file_id": "f", "filename": "a.md", "text": T}]},
        {"type": "message", "content": [{"type": "output_text", "text": A, "annotations": []}]}]},
    "openinference": [
        {"name": name, "span_kind": kind, "parent_id": above, "context": {"trace_id": "t", "span_id": name},
         "attributes": {"input.value": Q, "output.value": A} | more}
        for name, kind, above, more in (
            ("chain", "CHAIN", None, {}),
            ("find", "RETRIEVER", "chain", {"retrieval.documents": [{"document.content": T, "document.id": "1"}]}))],
    "mlflow trace": {"info": {"trace_id": "tr-1"}, "data": {
        "request": json.dumps({"question": Q}), "response": json.dumps({"answer": A}),
        "spans": [{"attributes": {"mlflow.spanType": '"RETRIEVER"',
                                  "mlflow.spanOutputs": json.dumps([{"page_content": T, "metadata": {}}])}}]}},
    # read with the suggested map
    "chunks": {"question": Q, "answer": A, "chunks": [{"text": T, "chunk_id": "c1", "source": "a.docx"}]},
    "an endpoint's test": {"prompt": Q, "actual_response": A, "retrieved_contexts": [T]},
    "a prediction": {"question": Q, "prediction": A, "retrieved_passages": [T], "gold": "120 m"},
    "nested": {"inputs": {"question": Q}, "outputs": {"answer": A}, "retrieval": {"chunks": [{"body": T}]}},
    "a knowledge base": {"ticket": 7, "question": Q, "kb_passage": T, "bot_reply": A},
    "another language": {"frage": Q, "antwort": A, "belege": [{"nr": 1, "inhalt": T}]},
    "a pipeline's result": {"query": Q, "answer": A, "retrieval_context": [f"[doc] {T}"], "tenant_id": "t"},
    "messages and documents": {"messages": TURNS, "documents": [{"id": "1", "text": T}]},
    "generations": {"question": Q, "ctxs": [{"id": "1", "title": "a", "text": T}], "generation": A},
}  # fmt: skip


def _with_no_option(path: Path) -> bool:
    try:
        rows = list(read_any(path))
    except InputError:
        return False
    return all(row.case is not None and row.case.answer and not row.problems for row in rows)


def _with_what_is_suggested(path: Path) -> bool:
    found = suggest(path)
    cases = read_cases(path, found.format or None, map=found.names)
    return bool(cases) and all(case.answer and case.without_text == () for case in cases)


def test_public_file_shapes_are_read_directly_or_with_the_suggested_map(
    tmp_path: Path,
) -> None:
    path = tmp_path / "rows.json"
    whole, by_map = list[str](), list[str]()
    for name, content in SHAPES.items():
        path.write_text(json.dumps(content))
        if _with_no_option(path):
            whole.append(name)
        elif _with_what_is_suggested(path):
            by_map.append(name)
    assert set(SHAPES) - {*whole, *by_map} == set()
    assert len(SHAPES) >= 40
    assert len(whole) >= 0.8 * len(SHAPES), by_map
    page = (Path(__file__).parents[3] / "docs" / "files.md").read_text(encoding="utf-8")
    assert (
        f"Of {len(SHAPES)} files in formats that other tools and public data sets publish,"
        f" {len(whole)} import completely without options, and the other {len(by_map)} with the"
        " `--map`" in page
    )
