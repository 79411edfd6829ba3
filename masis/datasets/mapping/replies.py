"""Reads replies of the citation APIs: the joined answer, its evidence, and citations with offsets.

If the row keeps the request beside the reply, its documents, search results and question are read
too. Otherwise the evidence is the text that the citations quote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from masis.datasets.mapping.offsets import LabelSpan, to_character_spans
from masis.datasets.mapping.profile import Converter
from masis.datasets.paths import text_of, value_at
from masis.schema.answers import is_thought, thought_of, thoughts_in
from masis.schema.literals import parse_value


class ReadReply(NamedTuple):
    """The content of a reply, ready for a case."""

    answer: str
    evidence: list[dict[str, Any]]
    citations: list[dict[str, Any]]
    quoted_only: bool = False
    """Whether the evidence is only the quoted text, since the documents aren't in the row."""
    reasoning: str = ""
    """The model's thoughts before it answered."""


def read_reply(kind: Converter, reply: Any, row: Any) -> ReadReply | None:
    """Return the content of a provider's reply, or None if it has another shape."""
    if not isinstance(reply, dict):
        return None
    request = row.get("request", row) if isinstance(row, dict) else {}
    return _REPLY_READERS[kind](reply, request if isinstance(request, dict) else {})


class _Sources:
    """Collects evidence, each chunk once and in order of appearance, and the citations of it."""

    def __init__(self, provider: str) -> None:
        self.by_id: dict[str, dict[str, Any]] = {}
        self._provider, self._citations, self._quoted_only = provider, list[dict[str, Any]](), False

    def add(self, id_: str, text: str = "", source: Any = None) -> str:
        chunk = self.by_id.setdefault(id_, {"id": id_, "text": ""})
        if text and not chunk["text"]:
            chunk["text"] = text
        if isinstance(source, str) and source:
            chunk.setdefault("source", source)
        return id_

    def quote(self, id_: str, quote: str) -> None:
        """Add a quote to the text of a document that isn't in the row."""
        self._quoted_only = True
        text = self.by_id[id_]["text"]
        if quote not in text:
            self.by_id[id_]["text"] = f"{text}\n{quote}" if text else quote

    def cite(self, start: int, end: int, evidence_id: str, **more: Any) -> None:
        details = {key: value for key, value in more.items() if value is not None and value != ""}
        place = {"start": start, "end": end, "evidence_id": evidence_id}
        self._citations.append({**place, **details, "provider": self._provider})

    def reply(self, answer: str, thoughts: Iterable[str] = ()) -> ReadReply:
        reasoning = "\n\n".join(filter(None, thoughts))
        return ReadReply(
            answer, list(self.by_id.values()), self._citations, self._quoted_only, reasoning
        )


def _dict_items(value: Any) -> Iterator[dict[str, Any]]:
    return (
        (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())
    )


def _value_at_paths(value: Any, *paths: str) -> Any:
    return value_at(value, paths)


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _whole_number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


# Anthropic: char, page, content-block, search-result and web-search-result locations


def _read_anthropic(reply: dict[str, Any], request: dict[str, Any]) -> ReadReply | None:
    if not isinstance(reply.get("content"), list):
        return None
    sources = _Sources("anthropic")
    _add_anthropic_documents(request, sources)
    # Of these the whole text is known, so that quotations needn't be collected.
    known = frozenset(id_ for id_, chunk in sources.by_id.items() if chunk["text"])
    # Anthropic's guide says to discard the partial output of a refusal.
    if reply.get("stop_reason") == "refusal":
        return sources.reply("")
    answer = ""
    for block in _dict_items(reply.get("content")):
        if block.get("type") != "text":
            continue
        text = _text_or_empty(block.get("text"))
        for citation in _dict_items(block.get("citations")):
            document = _whole_number(citation.get("document_index"))
            result = _whole_number(citation.get("search_result_index"))
            if document is not None:
                id_ = sources.add(f"doc_{document}", source=citation.get("document_title"))
            elif result is not None:
                id_ = sources.add(f"result_{result}", source=citation.get("source"))
            else:
                address = (
                    _text_or_empty(citation.get("url"))
                    or _text_or_empty(citation.get("source"))
                    or "unnamed source"
                )
                id_ = sources.add(address, source=address)
            quote = _text_or_empty(citation.get("cited_text"))
            if quote and id_ not in known:
                sources.quote(id_, quote)
            # Offsets are only of use in the whole text. Other locations count pages or blocks.
            chars = citation.get("type") == "char_location" and id_ in known
            sources.cite(
                len(answer),
                len(answer) + len(text),
                id_,
                quote=quote,
                evidence_start=_whole_number(citation.get("start_char_index")) if chars else None,
                evidence_end=_whole_number(citation.get("end_char_index")) if chars else None,
                location=citation.get("type"),
                page=_whole_number(citation.get("start_page_number")),
            )
        answer += text
    return sources.reply(answer, [thoughts_in(reply)])


def _add_anthropic_documents(request: dict[str, Any], sources: _Sources) -> None:
    documents, results = list[tuple[str, Any]](), list[tuple[str, Any]]()
    for message in _dict_items(request.get("messages")):
        parts = list(_dict_items(message.get("content")))
        for part in parts:
            parts += _dict_items(part.get("content")) if part.get("type") == "tool_result" else ()
        for part in parts:
            if part.get("type") == "document":
                plain = _value_at_paths(part, "source.type") == "text"
                text = (
                    _text_or_empty(_value_at_paths(part, "source.data"))
                    if plain
                    else text_of(_value_at_paths(part, "source.content"))
                )
                documents.append((text or "", part.get("title")))
            elif part.get("type") == "search_result":
                results.append((text_of(part.get("content")) or "", part.get("source")))
    for name, sources_found in (("doc", documents), ("result", results)):
        for number, (text, source) in enumerate(sources_found):
            sources.add(f"{name}_{number}", text, source)


# OpenAI: Responses and Chat Completions


def _read_openai_responses(reply: dict[str, Any], request: dict[str, Any]) -> ReadReply | None:
    if not isinstance(reply.get("output"), list):
        return None
    answer, sources, thoughts = "", _Sources("openai"), list[str]()
    for item in _dict_items(reply["output"]):
        if item.get("type") == "file_search_call":
            for number, result in enumerate(_dict_items(item.get("results")), 1):
                file_id = _text_or_empty(result.get("file_id")) or f"result_{number}"
                # A file can have several results, one for each of its passages.
                name = file_id if file_id not in sources.by_id else f"{file_id}#{number}"
                sources.add(name, _text_or_empty(result.get("text")), result.get("filename"))
        if is_thought(item):
            thoughts.append(thought_of(item))
        for part in _dict_items(item.get("content")) if item.get("type") == "message" else ():
            text = _text_or_empty(part.get("text"))
            _add_annotations(list(_dict_items(part.get("annotations"))), text, len(answer), sources)
            answer += text
    return sources.reply(answer, thoughts)


def _read_openai_chat(reply: dict[str, Any], request: dict[str, Any]) -> ReadReply | None:
    choice = next(_dict_items(reply.get("choices")), None)
    message = _value_at_paths(choice, "message")
    if not isinstance(message, dict):
        return None
    answer, sources = text_of(message.get("content")) or "", _Sources("openai")
    notes = [
        {**note, **note["url_citation"]} if isinstance(note.get("url_citation"), dict) else note
        for note in _dict_items(message.get("annotations"))
    ]
    _add_annotations(notes, answer, 0, sources)
    return sources.reply(answer, [thoughts_in(message)])


def _add_annotations(
    notes: list[dict[str, Any]], text: str, offset: int, sources: _Sources
) -> None:
    """Add the annotations of a text that starts at ``offset`` of the answer.

    Some tools count UTF-16 units in it.
    """
    spans = {
        number: LabelSpan(
            start, end, (_text_or_empty(note.get("url")), _text_or_empty(note.get("title")))
        )
        for number, note in enumerate(notes)
        if (start := _whole_number(note.get("start_index"))) is not None
        and (end := _whole_number(note.get("end_index"))) is not None
    }
    converted = dict(zip(spans, to_character_spans(text, list(spans.values())), strict=True))
    for number, note in enumerate(notes):
        span = converted.get(number)
        counted = {} if span is None else {"start_index": span.start, "end_index": span.end}
        _add_annotation({**note, **counted}, offset, len(text), sources)


def _add_annotation(note: dict[str, Any], offset: int, length: int, sources: _Sources) -> None:
    kind = note.get("type")
    if kind == "url_citation":
        address = _text_or_empty(note.get("url")) or "unnamed source"
        start, end = _whole_number(note.get("start_index")), _whole_number(note.get("end_index"))
        sources.add(address, source=address)
        if start is not None and end is not None:
            sources.cite(offset + start, offset + end, address, title=note.get("title"))
    elif kind in ("file_citation", "container_file_citation", "file_path"):
        file_id = _text_or_empty(note.get("file_id")) or "unnamed file"
        sources.add(file_id, source=note.get("filename"))
        index = _whole_number(note.get("index"))
        start = index if index is not None else _whole_number(note.get("start_index"))
        if start is not None:
            end = _whole_number(note.get("end_index"))
            place = offset + min(start, length)
            sources.cite(
                place, place if end is None else offset + end, file_id, quote=note.get("quote")
            )


# Gemini: grounding supports, whose offsets count bytes of UTF-8


def _read_gemini(reply: dict[str, Any], request: dict[str, Any]) -> ReadReply | None:
    candidate = next(_dict_items(reply.get("candidates")), None)
    if candidate is None:
        return None
    held_parts = list(_dict_items(_value_at_paths(candidate, "content.parts")))
    # Supports count all parts, including thoughts, which have no length in the answer.
    parts = ["" if is_thought(part) else _text_or_empty(part.get("text")) for part in held_parts]
    answer = "".join(parts)
    grounding = _value_at_paths(candidate, "groundingMetadata", "grounding_metadata")
    sources, ids = _Sources("gemini"), list[str]()
    for number, chunk in enumerate(
        _dict_items(_value_at_paths(grounding, "groundingChunks", "grounding_chunks")), 1
    ):
        context = _value_at_paths(chunk, "retrievedContext", "retrieved_context", "web")
        ids.append(
            sources.add(
                f"{number}",
                _text_or_empty(_value_at_paths(context, "text")),
                _value_at_paths(context, "uri", "title"),
            )
        )
    for support in _dict_items(
        _value_at_paths(grounding, "groundingSupports", "grounding_supports")
    ):
        segment = support.get("segment")
        part = _whole_number(_value_at_paths(segment, "partIndex", "part_index")) or 0
        if not isinstance(segment, dict) or not 0 <= part < len(parts):
            continue
        offset, content = sum(map(len, parts[:part])), parts[part].encode()
        start = _whole_number(_value_at_paths(segment, "startIndex", "start_index")) or 0
        end = _whole_number(_value_at_paths(segment, "endIndex", "end_index")) or len(content)
        first, last = (
            # errors="ignore" drops the beginning of a character that an offset splits.
            offset + len(content[: max(at, 0)].decode(errors="ignore"))
            for at in (start, end)
        )
        words = _text_or_empty(segment.get("text"))
        # The offsets may include the thoughts, so look for the words instead.
        if words and answer[first:last] != words and answer.count(words) == 1:
            first = answer.index(words)
            last = first + len(words)
        elif is_thought(held_parts[part]):
            continue
        for index in (
            _value_at_paths(support, "groundingChunkIndices", "grounding_chunk_indices") or ()
        ):
            if isinstance(index, int) and 0 <= index < len(ids):
                sources.cite(first, last, ids[index])
    return sources.reply(answer, [thoughts_in(_value_at_paths(candidate, "content"))])


# Cohere: v2 messages with sources, v1 replies with document ids


def _read_cohere(reply: dict[str, Any], request: dict[str, Any]) -> ReadReply | None:
    body = reply["message"] if isinstance(reply.get("message"), dict) else reply
    answer = text_of(body.get("content")) if "content" in body else body.get("text")
    if not isinstance(answer, str):
        return None
    sources = _Sources("cohere")
    for number, document in enumerate(
        _dict_items(reply.get("documents") or request.get("documents"))
    ):
        content = parse_value(document.get("data", document))
        sources.add(
            _text_or_empty(document.get("id")) or f"doc_{number}",
            _cohere_text(content),
            _value_at_paths(content, "title"),
        )
    citations = list(_dict_items(body.get("citations")))
    spans = {
        number: LabelSpan(start, end, (_text_or_empty(citation.get("text")),))
        for number, citation in enumerate(citations)
        if (start := _whole_number(citation.get("start"))) is not None
        and (end := _whole_number(citation.get("end"))) is not None
    }
    converted = dict(zip(spans, to_character_spans(answer, list(spans.values())), strict=True))
    for number, citation in enumerate(citations):
        span = converted.get(number)
        ids = [id_ for id_ in citation.get("document_ids") or () if isinstance(id_, str)]
        for source in _dict_items(citation.get("sources")):
            id_ = (
                _text_or_empty(_value_at_paths(source, "document.id"))
                or _text_or_empty(source.get("id"))
                or "unnamed source"
            )
            content = source.get("document", source.get("tool_output"))
            ids.append(sources.add(id_, _cohere_text(content), _value_at_paths(content, "title")))
        if span is not None:
            for id_ in ids:
                sources.cite(span.start, span.end, id_)
    return sources.reply(answer, [thoughts_in(body)])


def _cohere_text(content: Any) -> str:
    return (
        _text_or_empty(content)
        or text_of(_value_at_paths(content, "text", "snippet", "content", "data"))
        or ""
    )


# Amazon Bedrock: RetrieveAndGenerate


def _read_bedrock(reply: dict[str, Any], request: dict[str, Any]) -> ReadReply | None:
    answer = _value_at_paths(reply, "output.text")
    if not isinstance(answer, str):
        return None
    sources, by_text = _Sources("bedrock"), dict[str, str]()
    for citation in _dict_items(reply.get("citations")):
        part = _value_at_paths(citation, "generatedResponsePart.textResponsePart")
        text, start = (
            _text_or_empty(_value_at_paths(part, "text")),
            _whole_number(_value_at_paths(part, "span.start")),
        )
        # The span may be missing or count other units than characters, so look for the text.
        if start is None or not answer.startswith(text, start):
            start = max(answer.find(text), 0)
        for reference in _dict_items(citation.get("retrievedReferences")):
            text_cited = _text_or_empty(_value_at_paths(reference, "content.text"))
            id_ = by_text.setdefault(text_cited, f"{len(by_text) + 1}")
            sources.add(
                id_,
                text_cited,
                _value_at_paths(
                    reference, "location.*.[uri, url][] | [?type(@) == 'string'] | [0]"
                ),
            )
            sources.cite(start, start + len(text), id_)
    return sources.reply(answer)


_REPLY_READERS = {
    "anthropic": _read_anthropic,
    "openai-responses": _read_openai_responses,
    "openai-chat": _read_openai_chat,
    "gemini": _read_gemini,
    "cohere": _read_cohere,
    "bedrock": _read_bedrock,
}
