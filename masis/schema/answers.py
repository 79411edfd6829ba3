"""What a system gave back in the place of an answer, taken apart.

A reply holds more than its answer: what the model thought before it (``<think>``, parts of a
message, the channels of gpt-oss), which is no part of it and not audited; or no answer at all,
since the system refused or its call failed. Each is known by a table here, the same for files,
HTTP, MCP and Python.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from masis.schema.explain import name_elsewhere
from masis.schema.literals import parse_value
from masis.schema.wording import shorten

LONGEST_MESSAGE = 500
"""Characters that are kept of what a system said instead of an answer."""

NoAnswerCode = Literal["refused", "failed"]
"""Why there is no answer: the system declined the question (or a filter did), or its call failed or
was cut off.
"""

# Thoughts inside of a text

_NAMES = "think|thinking|thought|thoughts|reasoning|seed:think"
_TAG = re.compile(
    rf"<(?P<close>/?)(?P<name>{_NAMES})>|\[(?P<close2>/?)THINK\]|◁(?P<close3>/?)think▷",
    re.IGNORECASE,
)
"""Qwen, DeepSeek and others; Magistral; Kimi."""
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*+`", re.DOTALL)
_BEFORE_A_BLOCK = re.compile(r"(?:\A|\n|[.!?:>\]])[ \t]*\Z")
"""A block opens a text or a line, or follows a sentence: the words *the <think> tag* name one."""
_CHANNEL = re.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>\s*(?P<name>\w{1,20})[^<]{0,100}(?:<\|constrain\|>\w{1,20})?<\|message\|>"
)
"""The head of a message in the format of gpt-oss (harmony)."""
_CHANNEL_END = re.compile(r"<\|(?:end|return|call)\|>")
_BARE_CHANNELS = re.compile(r"\Aanalysis(?P<thought>.+?)assistantfinal", re.DOTALL)
"""The same where a server has left out the special tokens."""


class Separated(NamedTuple):
    """An answer without the thoughts, these, and the stretches of the text that were taken out."""

    answer: str
    thoughts: str
    removed: tuple[tuple[int, int], ...] = ()

    def move(self, start: int, end: int) -> tuple[int, int] | None:
        """Return where a stretch of the text stands in the answer; None where it lies in what was
        taken out.
        """
        at = tuple(
            place - sum(max(0, min(place, to) - since) for since, to in self.removed)
            for place in (start, end)
        )
        inside = any(since <= start < to and end <= to for since, to in self.removed)
        return None if inside or (at[0] == at[1] and start != end) else (at[0], at[1])


class _ThoughtSpan(NamedTuple):
    """A stretch to take out, and the words within its marks."""

    start: int
    end: int
    words: str


def may_hold_thoughts(text: str) -> bool:
    """Return whether a text has a mark of thoughts anywhere; most have none, and are spared a
    closer look.
    """
    return _TAG.search(text) is not None or "<|channel|>" in text or text.startswith("analysis")


def separate_thoughts(text: str) -> Separated:
    """Return a text without what a model thought in it, where marks say for certain that it is
    that.

    Marks in code and in the middle of a sentence are words of the answer. A text that opens with a
    mark which nothing closes is all thought: the reply was cut off in it.
    """
    found = list(
        _channel_thoughts(text)
        if "<|channel|>" in text or text.startswith("analysis")
        else _tagged_thoughts(text)
    )
    if not found:
        return Separated(text, "")
    removed, at = list[tuple[int, int]](), 0
    for thought in found:
        start, end = max(thought.start, at), thought.end
        # nothing of the answer is before it
        if not text[at:start].strip() and (not removed or removed[-1][1] == at):
            start = at
            end += len(text) - end - len(text[end:].lstrip())
        removed.append((start, end))
        at = end
    kept, since = [], 0
    for start, end in removed:
        kept.append(text[since:start])
        since = end
    answer = "".join([*kept, text[since:]])
    return Separated(
        answer, "\n\n".join(filter(None, (each.words.strip() for each in found))), tuple(removed)
    )


def _tagged_thoughts(text: str) -> Iterator[_ThoughtSpan]:
    tags = _tags_outside_code(text)
    closings = [number for number, tag in enumerate(tags) if _is_closing_tag(tag)]
    at, end = 0, 0  # the next tag, and where the last block ended
    blank, looked = True, 0  # whether nothing but blocks and blanks stands before that place
    while at < len(tags):
        tag = tags[at]
        at += 1
        blank, looked = blank and not text[looked : tag.start()].strip(), tag.start()
        if _is_closing_tag(tag):
            if at == 1 and _ends_a_block(text, tag):
                end = looked = tag.end()
                blank = True
                yield _ThoughtSpan(0, end, text[: tag.start()])
            continue
        if not (blank or _BEFORE_A_BLOCK.search(text[max(end, tag.start() - 40) : tag.start()])):
            continue
        following = bisect_left(closings, at)
        if following < len(closings):
            closing = tags[closings[following]]
            at, end, looked = closings[following] + 1, closing.end(), closing.end()
            yield _ThoughtSpan(tag.start(), end, text[tag.end() : closing.start()])
        elif blank:
            yield _ThoughtSpan(tag.start(), len(text), text[tag.end() :])
            return


def _tags_outside_code(text: str) -> list[re.Match[str]]:
    code = [found.span() for found in _CODE.finditer(text)] if "`" in text else []
    starts = [start for start, _ in code]

    def in_code(place: int) -> bool:
        before = bisect_right(starts, place) - 1
        return before >= 0 and place < code[before][1]

    return [tag for tag in _TAG.finditer(text) if not in_code(tag.start())]


def _ends_a_block(text: str, tag: re.Match[str]) -> bool:
    """Return whether a closing mark without an opening one ends a thought: the opening one stands
    in the prompt.
    """
    before = _BEFORE_A_BLOCK.search(text[max(0, tag.start() - 40) : tag.start()])
    return before is not None or text[tag.end() : tag.end() + 1] in ("", "\n")


def _is_closing_tag(tag: re.Match[str]) -> bool:
    return bool(tag["close"] or tag["close2"] or tag["close3"])


def _channel_thoughts(text: str) -> Iterator[_ThoughtSpan]:
    heads = list(_CHANNEL.finditer(text))
    if not heads and (bare := _BARE_CHANNELS.match(text)):
        yield _ThoughtSpan(0, bare.end(), bare["thought"])
    for number, head in enumerate(heads):
        until = heads[number + 1].start() if number + 1 < len(heads) else len(text)
        ended = _CHANNEL_END.search(text, head.end(), until)
        end = ended.start() if ended else until
        if head["name"] == "final":
            yield _ThoughtSpan(head.start(), head.end(), "")
            yield _ThoughtSpan(end, until, "")
        else:
            yield _ThoughtSpan(head.start(), until, text[head.end() : end])


# Thoughts as parts of a message, or beside its content

_THOUGHT_PARTS = frozenset(
    ("thinking", "redacted_thinking", "reasoning", "reasoning_content", "thought")
)
"""Types of parts that hold what a model thought: Anthropic, Mistral, OpenAI and who speaks their
APIs.
"""
THOUGHT_KEYS = ("reasoning_content", "reasoning", "thinking")
"""Keys beside a message's content that hold it: DeepSeek, vLLM; OpenRouter, Ollama."""


def is_thought(part: Any) -> bool:
    """Return whether a part of a message is what the model thought, apart from its answer; Gemini
    marks it.
    """
    return isinstance(part, Mapping) and (
        part.get("type") in _THOUGHT_PARTS or part.get("thought") is True
    )


def thoughts_in(message: Any) -> str:
    """Return what a model thought by its message: in the parts of its content and in keys beside
    it.
    """
    if not isinstance(message, Mapping):
        return ""
    beside = [_content_text(message.get(key)) for key in THOUGHT_KEYS]
    content = message.get("content", message.get("parts"))
    parts = (
        [part for part in content if is_thought(part)] if isinstance(content, list | tuple) else []
    )
    said = [next(filter(None, beside), ""), *map(thought_of, parts)]
    return "\n\n".join(filter(None, said))


def thought_of(part: Mapping[str, Any]) -> str:
    """Return the words of a part that is a thought; "" where they are encrypted."""
    keys = ("thinking", "text", "reasoning", "content", "summary")
    return next(filter(None, (_content_text(part.get(key)) for key in keys)), "")


def _content_text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping):
        return _content_text(value.get("text"))
    if isinstance(value, list | tuple):
        return "\n".join(filter(None, map(_content_text, value)))
    return ""


# No answer: refused or failed

_REASONS: dict[str, NoAnswerCode] = {
    **dict.fromkeys(
        ("refusal", "refused", "content_filter", "content_filtered", "guardrail_intervened"),
        "refused",
    ),
    **dict.fromkeys(
        ("safety", "recitation", "blocklist", "prohibited_content", "spii", "error_toxic"),
        "refused",
    ),
    **dict.fromkeys(("image_safety", "language", "intervened", "blocked"), "refused"),
    **dict.fromkeys(
        ("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"), "failed"
    ),
    **dict.fromkeys(
        ("malformed_function_call", "error", "error_limit", "failed", "failure", "cancelled"),
        "failed",
    ),
    **dict.fromkeys(("timeout", "timed_out", "incomplete", "expired", "other"), "failed"),
}
"""Why a reply ended, by the words of providers and of evaluation tools, in small letters."""
_REASON_KEYS = (
    *(
        "finish_reason",
        "finishReason",
        "stop_reason",
        "stopReason",
        "blockReason",
        "block_reason",
        "guardrailAction",
    ),
    *("reason", "status", "state", "status_code", "statusCode", "level"),
)
_FINISH_REASON_KEYS = ("finish_reason", "finishReason", "stop_reason", "stopReason", "reason")
"""Those that say how the text ended, and not what became of the call."""
_STATUS_KEYS = ("status", "status_code", "statusCode")
_FLAGS: dict[str, NoAnswerCode] = {
    "isRefusal": "refused",
    "is_refusal": "refused",
    "timed_out": "failed",
}
"""Keys that are true where there is no answer: promptfoo's, and what others call it."""
_FAILED_SPAN_STATUS = (2, "2", "ERROR", "STATUS_CODE_ERROR")
"""OpenTelemetry's status of what failed."""
_REPLY_KEYS = (
    "response",
    "output",
    "outputs",
    "result",
    "body",
    "raw_response",
    "completion",
    "answer",
)
"""Keys under which a row keeps the reply, or the error in its place."""
_NESTED_KEYS = (
    *(
        "observations",
        "spans",
        "message",
        "promptFeedback",
        "prompt_feedback",
        "incomplete_details",
    ),
    *("choices", "candidates", "content"),
)
_ERROR_KEYS = (
    "statusMessage",
    "status_message",
    "error",
    "errors",
    "exception",
    "error_message",
    "errorMessage",
    "last_error",
)
_FILTERED = re.compile(r"content.?filter|content management policy|safety system", re.IGNORECASE)
"""What an error says where it is the refusal of a filter (Azure, OpenAI)."""
_MOST_LOOKED_AT, _DEEPEST = 200, 6
_FAILED_CALL = re.compile(
    r"""\A\s{0,20}(?:
        Error\ code:\ [45]\d\d\ -\ [{\['"]                      # str() of an error of OpenAI's and Anthropic's SDKs
      | [45]\d\d\ (?:Client|Server)\ Error:\ .{1,200}\ for\ url:  # of requests
      | (?:Client|Server)\ error\ '[45]\d\d\ .{1,60}'\ for\ url   # of httpx
      | Traceback\ \(most\ recent\ call\ last\):
      | (?:\w{1,40}\.){0,4}(?:API\w{0,30}|RateLimit|Timeout|Connect\w{0,20}|Authentication|InternalServer|BadRequest)
        (?:Error|Exception)(?::\ |\(|\s{0,20}\Z)                # APIConnectionError: Connection error.
      | (?:HTTP\ )?Error\ [45]\d\d:\ [A-Z]                      # of urllib
      | HTTP/[12](?:\.\d)?\ [45]\d\d\b
    )""",
    re.VERBOSE,
)
"""Texts that are the failure of a call, as libraries word it, in the place of an answer."""
_ERROR_PAGE = re.compile(
    r"\s{0,20}(?:<!doctype"
    r" html[^>]{0,200}>\s{0,20})?<html\b.{0,500}?<title>\s{0,20}([45]\d\d\b[^<]{0,200})",
    re.IGNORECASE | re.DOTALL,
)
"""The page of a proxy or a server in the place of an answer."""
_LONGEST_FAILURE = 4_000


def no_answer_in(record: Mapping[str, Any], answer: Any = None) -> dict[str, str] | None:
    """Return why a record has no answer, as ``{"code", "message"}``; None where it has one, or
    doesn't say why not.

    Args:
        record: A row with the reply in it.
        answer: What was read as its answer: a text, an error in its place, or nothing.

    """
    if isinstance(answer, str) and answer.strip():
        return _failed_call(answer)
    if isinstance(answer, Mapping) and any(
        _content_text(answer.get(key)) for key in ("text", "content", "output")
    ):
        return None
    named = name_elsewhere("answer", map(str, record))
    if named is not None and isinstance(record.get(named), str) and record[named].strip():
        # an answer that was not read: a person says what it is, whatever else the record says
        return None
    turns = record.get("messages")
    last = {"message": turns[-1]} if isinstance(turns, list | tuple) and turns else {}
    found = list(_no_answer_signs({**last, **record, "answer": answer}))
    codes: tuple[NoAnswerCode, ...] = ("refused", "failed")
    for code in codes:  # a filter's refusal comes as an error too
        said = [message for sign, message in found if sign == code]
        if said:
            return {
                "code": code,
                "message": shorten(next(filter(None, said), ""), LONGEST_MESSAGE),
            }
    return None


def cut_off_reason(record: Mapping[str, Any]) -> str | None:
    """Return why a reply ended before its answer did, as ``finish_reason: length``; None where it
    did not.
    """
    said = (
        message
        for _, message in _no_answer_signs(record)
        if message.partition(": ")[0] in _FINISH_REASON_KEYS
    )
    return next(said, None)


def _failed_call(text: str) -> dict[str, str] | None:
    """Return that a text in the place of an answer is the error of a failed call."""
    if len(text) > _LONGEST_FAILURE:
        return None
    message, held = None, parse_value(text) if text.lstrip()[:1] == "{" else None
    if _FAILED_CALL.match(text):
        message = text
    elif found := _ERROR_PAGE.match(text):
        message = found[1]
    elif isinstance(held, dict) and not any(
        key in held for key in ("answer", "output", "text", "choices")
    ):
        message = next((said for key in _ERROR_KEYS if (said := _error_words(held.get(key)))), None)
    return (
        None
        if message is None
        else {"code": "failed", "message": shorten(message.strip(), LONGEST_MESSAGE)}
    )


def _no_answer_signs(record: Mapping[str, Any]) -> Iterator[tuple[NoAnswerCode, str]]:
    """Yield each sign that a reply was refused or failed, with what it says, from the
    outside in.
    """
    left: deque[tuple[Any, int]] = deque([(record, 0)])
    looked_at = 0
    while left and looked_at < _MOST_LOOKED_AT:
        held, depth = left.popleft()
        looked_at += 1
        if isinstance(held, Mapping):
            yield from _signs_in_object(held)
            if depth < _DEEPEST:
                left.extend(
                    (held[key], depth + 1) for key in (*_REPLY_KEYS, *_NESTED_KEYS) if key in held
                )
        elif isinstance(held, list | tuple):
            left.extend((item, depth) for item in held[:_MOST_LOOKED_AT])


def _signs_in_object(held: Mapping[str, Any]) -> Iterator[tuple[NoAnswerCode, str]]:
    if isinstance(refusal := held.get("refusal"), str) and refusal.strip():
        yield "refused", refusal.strip()
    for key in _ERROR_KEYS:
        if message := _error_words(held.get(key)):
            yield "refused" if _FILTERED.search(message) else "failed", message
    yield from ((code, "") for key, code in _FLAGS.items() if held.get(key) is True)
    if held.get("level") == "ERROR":  # Langfuse
        yield "failed", _content_text(held.get("statusMessage", held.get("status_message")))
    for key in _REASON_KEYS:
        reason = held.get(key)
        if isinstance(reason, Mapping) and reason.get("code") in _FAILED_SPAN_STATUS:
            yield (
                "failed",
                _content_text(reason.get("message")) or "the span has the status of an error",
            )
        if isinstance(reason, str) and (code := _REASONS.get(reason.lower())):
            yield code, f"{key}: {reason}"
        elif key in _STATUS_KEYS and type(reason) is int and 400 <= reason < 600:
            yield "failed", f"HTTP {reason}"


def _error_words(error: Any) -> str:
    """Return what an error says; "" where it is none."""
    if isinstance(error, str):
        return (
            "" if error.strip().lower() in ("", "none", "null", "false", "nan") else error.strip()
        )
    if isinstance(error, Mapping):
        said = (
            _error_words(error.get(key)) for key in ("message", "detail", "msg", "error", "type")
        )
        words = next(filter(None, said), "" if not error else "an error without a message")
        code = error.get("code")
        return f"{code}: {words}" if isinstance(code, str | int) and code and words else words
    if isinstance(error, list) and error:
        return _error_words(error[0])
    return "an error without a message" if error is True else ""
