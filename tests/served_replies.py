"""Replies of a scripted model server: a plausible reply to each prompt, and faulty replies.

Every reply is derived from the request: the schema says which reply is needed, and the fences
contain the texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
SCHEMA_IN_PROMPT = re.compile(r"JSON schema, named (\w+):\n(\{.*\})\s*\Z", re.DOTALL)
FENCE = re.compile(r"^<<<([A-Z_]+) (\w+)>>>\n(.*?)\n<<<END \1 \2>>>$", re.DOTALL | re.MULTILINE)
MARKERS = re.compile(r"\s*\[[^\]\n]{1,80}\]")
SENTENCE = re.compile(r"[^\n.!?]*[^\s.!?][^\n.!?]*[.!?]?(?:\s*\[[^\]\n]{1,80}\])*[.!?]?")


@dataclass(frozen=True)
class Request:
    """A received request, in either wire format."""

    wire: Literal["openai", "anthropic"]
    headers: dict[str, str]
    body: Json
    number: int = 0
    in_progress: int = 1

    @property
    def model(self) -> str:
        return str(self.body.get("model"))

    @property
    def mode(self) -> str:
        """``json_schema``, ``json_object_schema``, ``json_object`` (or a forced tool) or
        ``prompt``.
        """
        if self.wire == "anthropic":
            typed = "format" in self.body.get("output_config", {})
            return "json_schema" if typed else "json_object" if "tools" in self.body else "prompt"
        asked = self.body.get("response_format", {})
        return "json_object_schema" if "schema" in asked else str(asked.get("type", "prompt"))

    @property
    def messages(self) -> list[str]:
        """The texts of the request, in the order in which a model reads them."""
        contents = [self.body["system"]] if "system" in self.body else []
        contents += [message["content"] for message in self.body.get("messages", ())]
        return [
            text
            for content in contents
            for text in ([content] if isinstance(content, str) else _texts(content))
        ]

    @property
    def text(self) -> str:
        return "\n\n".join(self.messages)

    @property
    def schema_name(self) -> str:
        """The name of the reply's schema, such as ``critique_reply``.

        In Anthropic's wire format the schema itself has no name.
        """
        if self.wire == "openai" and self.mode == "json_schema":
            return str(self.body["response_format"]["json_schema"]["name"])
        if self.mode == "json_object" and "tools" in self.body:
            return str(self.body["tools"][0]["name"])
        if found := SCHEMA_IN_PROMPT.search(self.text):
            return found.group(1)
        return next(
            (name for name, fields in TELLING.items() if fields <= set(self.schema["properties"])),
            "",
        )

    @property
    def schema(self) -> Json:
        if self.mode == "json_schema" and self.wire == "openai":
            return dict(self.body["response_format"]["json_schema"]["schema"])
        if self.mode == "json_schema":
            return dict(self.body["output_config"]["format"]["schema"])
        if "tools" in self.body:
            return dict(self.body["tools"][0]["input_schema"])
        found = SCHEMA_IN_PROMPT.search(self.text)
        return dict(json.loads(found.group(2))) if found else {"type": "object", "properties": {}}

    def fences(self, name: str) -> list[str]:
        """Return the texts in the fences of this name."""
        return [text for kind, _, text in FENCE.findall(self.text) if kind == name]


def _texts(parts: list[Json]) -> list[str]:
    return [part["text"] for part in parts]


TELLING = {
    "common_reply": {"critic", "evaluator"},
    "critique_reply": {"critique_reasoning"},
    "evaluation_reply": {"faithfulness"},
    "checked_claims_reply": {"claims", "missing"},
    "claims_reply": {"claims"},
    "verdicts_reply": {"verdicts"},
    "completeness_reply": {"missing"},
    "revision_reply": {"revised_answer"},
    "draft_reply": {"answer", "reasoning_steps"},
}


@dataclass(frozen=True)
class Behaviour:
    """The server's response to one request; if ``text`` is None, the model's reply is plausible."""

    text: str | None = None
    finish: Literal["stop", "length", "content_filter", "refusal"] = "stop"
    refusal: str | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    error: Json | None = None
    body: bytes | None = None
    hang_s: float = 0.0
    reset: Literal["before", "middle"] | None = None
    drip_s: float = 0.0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


Script = Callable[[Request], Behaviour | None]


def reply_with(value: Any) -> Behaviour:
    """Return a reply with this text, or with this value as JSON."""
    return Behaviour(
        text=value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    )


def status(
    code: int, message: str = "scripted", *, code_name: str = "scripted", **headers: str
) -> Behaviour:
    """Return an API error; ``retry_after="2"`` sets the header."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Behaviour(
        status=code, headers=named, error={"message": message, "code": code_name, "type": code_name}
    )


COMMON = {
    "claims": "checked_claims_reply",
    "claims_verify": "verdicts_reply",
    "completeness": "completeness_reply",
    "critic": "critique_reply",
    "evaluator": "evaluation_reply",
    "reviser": "revision_reply",
}
"""The fields of the common reply form that all calls of a run share, and the reply in each."""


def sensible(
    request: Request,
    issues: Literal["some", "none", "always"] = "some",
    schema_name: str | None = None,
) -> Json:
    """Return a reply in the requested form, made from the texts in the fences."""
    chunks = [_chunk(text) for text in request.fences("EVIDENCE")]
    answer = "".join(request.fences("ANSWER")[:1])
    match schema_name or request.schema_name:
        case "common_reply":
            (field,) = re.findall(r"Fill '(\w+)'; all others are null\.", request.text)
            made = (
                {"missing": []}
                if field == "completeness"
                else sensible(request, issues, COMMON[field])
            )
            return dict.fromkeys(COMMON) | {field: made}
        case "critique_reply" | "house_critique_reply":
            return _critique(answer, chunks, issues)
        case "evaluation_reply":
            return _evaluation(answer, chunks)
        case "claims_reply":
            return {"claims": _claims(answer)}
        case "checked_claims_reply":
            rows = {row["sentence"]: row for row in map(json.loads, answer.splitlines())}
            claims = [
                claim | _verdict(rows[claim["sentence"]], chunks) for claim in _claims(answer)
            ]
            return {"claims": claims, "missing": []}
        case "verdicts_reply":
            rows = [json.loads(line) for line in "".join(request.fences("CLAIMS")).splitlines()]
            return {"verdicts": [{"number": row["number"]} | _verdict(row, chunks) for row in rows]}
        case "revision_reply":
            return _revision(answer, chunks, "\n".join(request.fences("ISSUES")))
        case "draft_reply":
            id_, text = chunks[0] if chunks else ("1", "Nothing is known.")
            said = _sentences(text)[0].rstrip(".")
            return {"reasoning_steps": [f"Chunk {id_} says it."], "answer": f"{said} [{id_}]."}
    made = fill_schema(request.schema, request.schema)
    assert isinstance(made, dict)
    return made


def fill_schema(schema: Json, root: Json) -> Any:
    """Return a simple value that matches a schema."""
    if "$ref" in schema:
        return fill_schema(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root)
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return fill_schema(schema["anyOf"][0], root)
    match schema.get("type"):
        case "object":
            return {name: fill_schema(inner, root) for name, inner in schema["properties"].items()}
        case "array":
            return []
        case "number":
            return 0.8
        case "integer":
            return 1
        case "boolean":
            return True
        case "null":
            return None
    return "as it says"


def _chunk(text: str) -> tuple[str, str]:
    head, _, body = text.partition("\n")
    return str(json.loads(head)["id"]), body


def _claims(rows: str) -> list[Json]:
    """Return one claim for each sentence that asserts something."""
    numbers = [
        row["sentence"] for row in map(json.loads, rows.splitlines()) if row.get("asserts", True)
    ]
    return [{"sentence": number, "words": "", "meaning": ""} for number in numbers[:12]]


def _sentences(text: str) -> list[str]:
    return [
        found.group().strip()
        for found in SENTENCE.finditer(text)
        if re.search(r"\w", found.group())
    ] or [text]


def _borne(answer: str, chunks: list[tuple[str, str]]) -> bool:
    """Return whether a chunk contains the answer's first sentence verbatim."""
    first = MARKERS.sub("", _sentences(answer)[0]).strip().rstrip(".")
    return any(first in text for _, text in chunks)


def _critique(answer: str, chunks: list[tuple[str, str]], issues: str) -> Json:
    faulty = (
        bool(chunks) and issues != "none" and (issues == "always" or not _borne(answer, chunks))
    )
    issue = {
        "type": "unsupported",
        "severity": "high",
        "description": "The first sentence goes further than the evidence.",
        "reasoning": "The chunk says it in other words.",
        "location": _sentences(answer)[0],
        "suggestion": "Say what the chunk says.",
        "evidence_ids": [chunks[0][0]] if chunks else [],
    }
    return {
        "critique_reasoning": "Each sentence was looked for in the evidence.",
        "issues": [issue] if faulty else [],
        "conflicting_evidence": [],
        "confidence": 0.6 if faulty else 0.9,
        "overall_quality_score": 0.6 if faulty else 0.9,
        "critique_confidence": 0.8,
    }


def _evaluation(answer: str, chunks: list[tuple[str, str]]) -> Json:
    score = 0.9 if _borne(answer, chunks) else 0.7
    names = ("faithfulness", "relevance", "completeness", "reasoning_quality")
    scores = {
        key: value
        for name in names
        for key, value in ((f"{name}_reason", "As it reads."), (name, score))
    }
    return scores | {"improvement_suggestions": []}


def _verdict(row: Json, chunks: list[tuple[str, str]]) -> Json:
    cited = [id_ for id_ in row.get("cites", ()) if id_ in dict(chunks)] or [
        id_ for id_, _ in chunks[:1]
    ]
    texts = dict(chunks)
    bearing = [
        {"evidence_id": id_, "stance": "supports", "quote": _sentences(texts[id_])[0]}
        for id_ in cited
    ]
    return {
        "evidence": [passage | {"claim_words": ""} for passage in bearing],
        "calculation": "",
        "reasoning": "" if bearing else "Nothing supports it.",
        "verdict": "supported" if bearing else "unsupported",
        "confidence": 0.9,
    }


def _revision(answer: str, chunks: list[tuple[str, str]], issues: str) -> Json:
    first = _sentences(answer)[0]
    id_, text = chunks[0] if chunks else ("1", first)
    better = f"{_sentences(text)[0].rstrip('.')} [{id_}]."
    ids = [id_ for line in issues.splitlines() if line for id_ in json.loads(line)["ids"]]
    change = {
        "issue_ids": ids,
        "kind": "rewritten",
        "before": first,
        "after": better,
        "why": "The chunk says this.",
    }
    return {
        "rejected": [],
        "changes": [change],
        "revised_answer": answer.replace(first, better, 1),
        "updated_confidence": 0.9,
    }


def faulty(name: str, request: Request, made: Json | None = None) -> Behaviour:
    """Return the response of a server with this fault; ``FAULTS`` lists all faults."""
    if name in WIRE_FAULTS:
        return WIRE_FAULTS[name]
    made = sensible(request) if made is None else made
    text = json.dumps(made)
    first = next(iter(made))
    match name:
        case "code fence":
            return reply_with(f"Here it is:\n```json\n{text}\n```\nI hope this helps.")
        case "missing field":
            return reply_with({key: value for key, value in made.items() if key != first})
        case "extra field":
            return reply_with(made | {"remark": "one more"})
        case "wrong type":
            return reply_with(
                {key: {"value": value} if key == first else value for key, value in made.items()}
            )
        case "confidence 85" | "confidence -1" | "confidence high" | "confidence NaN":
            given = {"85": 85, "-1": -1, "high": "high", "NaN": float("nan")}[
                name.removeprefix("confidence ")
            ]
            return reply_with(_with_numbers(made, request.schema, request.schema, given))
        case "a verdict too few" | "a verdict too many":
            return reply_with(_miscount_verdicts(made, more=name.endswith("many")))
        case "2 MB":
            return reply_with({"padding": "x" * 2_000_000} | made)
    raise KeyError(name)


def _with_numbers(value: Any, schema: Json, root: Json, given: Any) -> Any:
    """Return the value with every score in it replaced."""
    if "$ref" in schema:
        return _with_numbers(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, given)
    if schema.get("type") == "number":
        return given
    if isinstance(value, dict):
        return {
            key: _with_numbers(item, schema["properties"][key], root, given)
            for key, item in value.items()
        }
    if isinstance(value, list) and "items" in schema:
        return [_with_numbers(item, schema["items"], root, given) for item in value]
    return value


def _miscount_verdicts(made: Json, more: bool) -> Json:
    """Return a reply with one verdict too many or too few."""
    for rows, number in (("verdicts", "number"), ("claims", "sentence")):
        if given := made.get(rows):
            changed = [*given, given[-1] | {number: given[-1][number] + 90}] if more else given[:-1]
            return made | {rows: changed}
    return made


WIRE_FAULTS: dict[str, Behaviour] = {
    "401": status(401, "Incorrect API key provided: sk-loop***3456.", code_name="invalid_api_key"),
    "404": status(
        404,
        "The model does not exist or you do not have access to it.",
        code_name="model_not_found",
    ),
    "429": status(429, "Rate limit reached for requests", code_name="rate_limit_exceeded"),
    "429 with Retry-After": status(
        429, "Rate limit reached for requests", code_name="rate_limit", retry_after="0.05"
    ),
    "500": status(500, "The server had an error", code_name="server_error"),
    "503": status(503, "The engine is currently overloaded", code_name="overloaded"),
    "hang": Behaviour(hang_s=3600.0),
    "reset in the middle": Behaviour(reset="middle"),
    "reset at once": Behaviour(reset="before"),
    "cut-off": Behaviour(finish="length"),
    "refusal": Behaviour(refusal="I can't help with that.", finish="refusal"),
    "content filter": Behaviour(text="", finish="content_filter"),
    "empty": Behaviour(text=""),
    "prose": Behaviour(text="The answer looks fine to me. I would give it an 8 of 10."),
}

REPLY_FAULTS = (
    "code fence",
    "missing field",
    "extra field",
    "wrong type",
    "confidence 85",
    "confidence -1",
    "confidence high",
    "confidence NaN",
    "a verdict too few",
    "a verdict too many",
    "2 MB",
)
FAULTS: tuple[str, ...] = (*WIRE_FAULTS, *REPLY_FAULTS)
