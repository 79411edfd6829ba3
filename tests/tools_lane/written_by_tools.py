"""Write files with other tools' libraries: ``python tests/tools_lane/written_by_tools.py FOLDER``.

Runs in an environment with the libraries (created by ``make test-tools``) and imports none of our
code. Files are named by profile, library and version; those in ``tests/datasets/mapping/files``
with ``sdk`` or ``core`` in their name were written by this script.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anthropic.types
import datasets
import openai.types.chat
import openai.types.responses
from langchain_core.documents import Document
from llama_index.core.base.response.schema import Response
from llama_index.core.schema import NodeWithScore, TextNode

QUESTION = "How long is the Marle bridge?"
TEXTS = ("The Marle bridge is 120 metres long.", "It was opened in 1931.")
ANSWER = "The Marle bridge is 120 metres long [1]."


def langchain() -> dict[str, Any]:
    """Return the output of a retrieval chain, with its documents dumped."""
    found = [Document(text, metadata={"source": f"{n}.txt"}) for n, text in enumerate(TEXTS, 1)]
    return {
        "input": QUESTION,
        "context": [document.model_dump(mode="json") for document in found],
        "answer": ANSWER,
    }


def llamaindex() -> dict[str, Any]:
    """Return a response with its source nodes."""
    nodes = [
        TextNode(id_=f"n{n}", text=text, metadata={"file_name": f"{n}.txt"})
        for n, text in enumerate(TEXTS, 1)
    ]
    answer = Response(
        response=ANSWER, source_nodes=[NodeWithScore(node=node, score=0.9) for node in nodes]
    )
    found = [node.model_dump(mode="json") for node in answer.source_nodes]
    return {"query": QUESTION, "response": answer.response, "source_nodes": found}


def openai_responses() -> dict[str, Any]:
    """Return a response with a file search and citations of its files."""
    results = [
        {"file_id": f"file-{n}", "filename": f"{n}.txt", "score": 0.9, "text": text}
        for n, text in _number_texts()
    ]
    places = {1: len(TEXTS[0]), 2: len(" ".join(TEXTS))}
    cited = [
        {"type": "file_citation", "index": at, "file_id": f"file-{n}", "filename": f"{n}.txt"}
        for n, at in places.items()
    ]
    text = {"type": "output_text", "text": " ".join(TEXTS), "annotations": cited, "logprobs": []}
    search = {
        "type": "file_search_call",
        "id": "fs",
        "status": "completed",
        "queries": ["bridge"],
        "results": results,
    }
    message = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    about = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "parallel_tool_calls": True,
    }
    whole = about | {"tool_choice": "auto", "tools": [], "output": [search, message]}
    reply = openai.types.responses.Response.model_validate(whole)
    return {"request": {"model": "m", "input": QUESTION}, "response": reply.model_dump(mode="json")}


def openai_chat() -> dict[str, Any]:
    """Return a completion with an annotation."""
    cited = {
        "start_index": 0,
        "end_index": len(TEXTS[0]),
        "title": "Marle",
        "url": "https://example.org/marle",
    }
    message = {
        "role": "assistant",
        "content": TEXTS[0],
        "annotations": [{"type": "url_citation", "url_citation": cited}],
    }
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    whole = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
    }
    reply = openai.types.chat.ChatCompletion.model_validate(whole)
    read = {"id": "https://example.org/marle", "text": TEXTS[0]}  # the reply contains only the url
    request = {"messages": [_user_message(QUESTION)]}
    return {"request": request, "response": reply.model_dump(mode="json"), "documents": [read]}


def anthropic_message() -> dict[str, Any]:
    """Return a message that cites a document by characters and a search result by blocks."""
    document = {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": " ".join(TEXTS)},
        "title": "Bridges",
        "citations": {"enabled": True},
    }
    result = {
        "type": "search_result",
        "source": "https://example.org/h",
        "title": "History",
        "content": [{"type": "text", "text": TEXTS[1]}],
        "citations": {"enabled": True},
    }
    by_characters = {
        "type": "char_location",
        "cited_text": TEXTS[0],
        "document_index": 0,
        "document_title": "Bridges",
    }
    by_characters |= {"start_char_index": 0, "end_char_index": len(TEXTS[0])}
    by_blocks = {"type": "search_result_location", "cited_text": TEXTS[1], "search_result_index": 0}
    by_blocks |= {
        "source": result["source"],
        "title": "History",
        "start_block_index": 0,
        "end_block_index": 1,
    }
    content = [
        {"type": "text", "text": TEXTS[0], "citations": [by_characters]},
        {"type": "text", "text": f" {TEXTS[1]}", "citations": [by_blocks]},
    ]
    about = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "stop_reason": "end_turn",
    }
    whole = about | {"content": content, "usage": {"input_tokens": 1, "output_tokens": 1}}
    reply = anthropic.types.Message.model_validate(whole)
    asked = [document, result, {"type": "text", "text": QUESTION}]
    return {
        "request": {"messages": [_user_message(asked)]},
        "response": reply.model_dump(mode="json"),
    }


def _user_message(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


def _number_texts() -> Iterator[tuple[int, str]]:
    return enumerate(TEXTS, 1)


def main() -> None:
    """Write all files into the given folder."""
    folder = Path(sys.argv[1])
    named = {
        f"langchain-core-{version('langchain-core')}": langchain(),
        f"llamaindex-core-{version('llama-index-core')}": llamaindex(),
        f"openai-responses-sdk-{version('openai')}": openai_responses(),
        f"openai-chat-sdk-{version('openai')}": openai_chat(),
        f"anthropic-message-sdk-{version('anthropic')}": anthropic_message(),
    }
    for name, row in named.items():
        (folder / f"{name}.json").write_text(json.dumps([row], indent=1) + "\n", encoding="utf-8")
    rows = {
        "question": [QUESTION],
        "contexts": [list(TEXTS)],
        "answer": [ANSWER],
        "ground_truth": ["120 metres"],
    }
    table = datasets.Dataset.from_dict(rows)
    table.to_json(folder / f"hf-rag-datasets-sdk-{version('datasets')}.jsonl")
    table.to_parquet(folder / f"hf-rag-datasets-sdk-{version('datasets')}.parquet")


if __name__ == "__main__":
    main()
