"""Separates a system's reply into its answer, the model's thoughts, and the reason for no answer.

Thoughts (``<think>``, parts of a message, the channels of gpt-oss) aren't part of the answer and
aren't audited. A reply may also have no answer, because the system refused or its call failed. The
tables here recognise both, in the same way for files, HTTP, MCP and Python.
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
"""Maximum number of characters to keep of a system's message that replaces an answer."""

NoAnswerCode = Literal["refused", "failed"]
"""Why there is no answer.

``refused``: the system or a filter declined the question. ``failed``: the call failed or was cut
off.
"""

# Thoughts inside a text

_NAMES = "think|thinking|thought|thoughts|reasoning|seed:think"
_TAG = re.compile(
    rf"<(?P<close>/?)(?P<name>{_NAMES})>|\[(?P<close2>/?)THINK\]|◁(?P<close3>/?)think▷",
    re.IGNORECASE,
)
"""Tags around thoughts.

``<think>`` is used by Qwen, DeepSeek and others, ``[THINK]`` by Magistral, ``◁think▷`` by Kimi.
"""
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*+`", re.DOTALL)
"""Fenced and inline code, in which a tag is just text.

The quantifier is possessive because a backtick can't match inside the code, so backtracking into it
would only cost time.
"""
_BEFORE_A_BLOCK = re.compile(r"(?:\A|\n|[.!?:>\]])[ \t]*\Z")
"""Text before a tag that opens a block: the start of a text or line, or the end of a sentence.

In "the <think> tag", the tag is part of the sentence and opens no block.
"""
# <|start|>assistant<|channel|>analysis<|message|>..., with <|constrain|>json before the message of
# a tool call (github.com/openai/harmony).
_CHANNEL = re.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>\s*(?P<name>\w{1,20})[^<]{0,100}"
    r"(?:<\|constrain\|>\w{1,20})?<\|message\|>"
)
"""The head of a message in the harmony format of gpt-oss."""
_CHANNEL_END = re.compile(r"<\|(?:end|return|call)\|>")
_BARE_CHANNELS = re.compile(r"\Aanalysis(?P<thought>.+?)assistantfinal", re.DOTALL)
"""The same format after a server has dropped the special tokens."""


class Separated(NamedTuple):
    """An answer without its thoughts, the thoughts, and the spans removed from the text."""

    answer: str
    thoughts: str
    removed: tuple[tuple[int, int], ...] = ()

    def move(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the place of a span of the text in the answer, or None if it was removed."""
        at = tuple(
            place - sum(max(0, min(place, to) - since) for since, to in self.removed)
            for place in (start, end)
        )
        # A span of no characters marks a position and may become empty; any other is gone if
        # nothing of it is left.
        inside = any(since <= start < to and end <= to for since, to in self.removed)
        return None if inside or (at[0] == at[1] and start != end) else (at[0], at[1])


class _ThoughtSpan(NamedTuple):
    """A span to remove, and the words inside its tags."""

    start: int
    end: int
    words: str


def may_hold_thoughts(text: str) -> bool:
    """Return whether a text contains any sign of thoughts.

    Most texts have none, so this cheap test saves the full search.
    """
    return _TAG.search(text) is not None or "<|channel|>" in text or text.startswith("analysis")


def separate_thoughts(text: str) -> Separated:
    """Return a text without the thoughts that tags mark unambiguously.

    Tags in code or in the middle of a sentence are part of the answer. If a text starts with a tag
    that is never closed, the reply was cut off while thinking, so all of it is thought.
    """
    spans = list(
        _channel_thoughts(text)
        if "<|channel|>" in text or text.startswith("analysis")
        else _tagged_thoughts(text)
    )
    if not spans:
        return Separated(text, "")
    # The spans are also returned, because citations attached to the reply have offsets in it.
    removed, at = list[tuple[int, int]](), 0
    for thought in spans:
        start, end = max(thought.start, at), thought.end
        # No text of the answer precedes this span, so drop the blanks around it too.
        if not text[at:start].strip() and (not removed or removed[-1][1] == at):
            start = at
            end += len(text) - end - len(text[end:].lstrip())
        removed.append((start, end))
        at = end
    pieces, since = [], 0
    for start, end in removed:
        pieces.append(text[since:start])
        since = end
    answer = "".join([*pieces, text[since:]])
    return Separated(
        answer, "\n\n".join(filter(None, (span.words.strip() for span in spans))), tuple(removed)
    )


def _tagged_thoughts(text: str) -> Iterator[_ThoughtSpan]:
    tags = _tags_outside_code(text)
    # Sorted, so that the next closing tag is found by bisection: a reply of nothing but opening
    # tags would take quadratic time otherwise.
    closings = [number for number, tag in enumerate(tags) if _is_closing_tag(tag)]
    at, end = 0, 0  # index of the next tag, offset where the last block ended
    blank, looked = True, 0  # whether only blocks and blanks precede the offset `looked`
    while at < len(tags):
        tag = tags[at]
        at += 1
        blank, looked = blank and not text[looked : tag.start()].strip(), tag.start()
        if _is_closing_tag(tag):
            # Only the first tag of a text may close a block that the prompt opened.
            if at == 1 and _ends_a_block(text, tag):
                end = looked = tag.end()
                blank = True
                yield _ThoughtSpan(0, end, text[: tag.start()])
            continue
        # 40 characters are enough for the blanks of an indented line.
        if not (blank or _BEFORE_A_BLOCK.search(text[max(end, tag.start() - 40) : tag.start()])):
            continue
        following = bisect_left(closings, at)
        if following < len(closings):
            closing = tags[closings[following]]
            at, end, looked = closings[following] + 1, closing.end(), closing.end()
            yield _ThoughtSpan(tag.start(), end, text[tag.end() : closing.start()])
        elif blank:
            # Never closed at the start of the text: the model was cut off while thinking.
            yield _ThoughtSpan(tag.start(), len(text), text[tag.end() :])
            return


def _tags_outside_code(text: str) -> list[re.Match[str]]:
    code = [match.span() for match in _CODE.finditer(text)] if "`" in text else []
    # Bisection, because a text can have thousands of code spans and tags.
    starts = [start for start, _ in code]

    def in_code(place: int) -> bool:
        before = bisect_right(starts, place) - 1
        return before >= 0 and place < code[before][1]

    return [tag for tag in _TAG.finditer(text) if not in_code(tag.start())]


def _ends_a_block(text: str, tag: re.Match[str]) -> bool:
    """Return whether a closing tag without an opening one ends a thought.

    The opening tag is then in the prompt: some chat templates put it there.
    """
    before = _BEFORE_A_BLOCK.search(text[max(0, tag.start() - 40) : tag.start()])
    # A tag alone on its line ends a block. One inside a sentence is quoted by the answer.
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
        # Only "final" is for the user. "analysis" and "commentary" are thoughts and tool calls.
        if head["name"] == "final":
            yield _ThoughtSpan(head.start(), head.end(), "")
            yield _ThoughtSpan(end, until, "")
        else:
            yield _ThoughtSpan(head.start(), until, text[head.end() : end])


# Thoughts as parts of a message, or beside its content

_THOUGHT_PARTS = frozenset(
    ("thinking", "redacted_thinking", "reasoning", "reasoning_content", "thought")
)
"""Types of parts that hold thoughts: Anthropic, Mistral, OpenAI and compatible APIs."""
THOUGHT_KEYS = ("reasoning_content", "reasoning", "thinking")
"""Keys beside a message's content that hold thoughts.

DeepSeek and vLLM use the first, OpenRouter the second, Ollama the third.
"""


def is_thought(part: Any) -> bool:
    """Return whether a part of a message is a thought; Gemini marks it with ``thought: true``."""
    return isinstance(part, Mapping) and (
        part.get("type") in _THOUGHT_PARTS or part.get("thought") is True
    )


def thoughts_in(message: Any) -> str:
    """Return the thoughts of a message, from the parts of its content and the keys beside it."""
    if not isinstance(message, Mapping):
        return ""
    # A gateway may repeat the same thoughts under several keys, so only the first one counts.
    beside = [_content_text(message.get(key)) for key in THOUGHT_KEYS]
    content = message.get("content", message.get("parts"))
    parts = (
        [part for part in content if is_thought(part)] if isinstance(content, list | tuple) else []
    )
    thoughts = [next(filter(None, beside), ""), *map(thought_of, parts)]
    return "\n\n".join(filter(None, thoughts))


def thought_of(part: Mapping[str, Any]) -> str:
    """Return the words of a part that is a thought; "" if they are encrypted."""
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
"""Why a reply ended, in the lower-case words of providers and evaluation tools."""
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
"""The keys that say how the text ended, and not how the call did."""
_STATUS_KEYS = ("status", "status_code", "statusCode")
_FLAGS: dict[str, NoAnswerCode] = {
    "isRefusal": "refused",
    "is_refusal": "refused",
    "timed_out": "failed",
}
"""Keys that are true if there is no answer, as promptfoo and others name them."""
_FAILED_SPAN_STATUS = (2, "2", "ERROR", "STATUS_CODE_ERROR")
"""The OpenTelemetry status codes of a failed span."""
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
"""Keys under which a row keeps the reply, or the error that replaces it."""
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
"""Wording of an error that reports a filter's refusal (Azure, OpenAI)."""
_MOST_LOOKED_AT = 200
"""Maximum number of objects and lists to search for signs; a record may come from anywhere."""
_MOST_DEPTH = 6
_FAILED_CALL = re.compile(
    r"""\A\s{0,20}(?:
        # SDKs of OpenAI and Anthropic: Error code: 429 - {'error': ...}
        Error\ code:\ [45]\d\d\ -\ [{\['"]
        # requests: 404 Client Error: Not Found for url: ...
      | [45]\d\d\ (?:Client|Server)\ Error:\ .{1,200}\ for\ url:
        # httpx: Client error '404 Not Found' for url ...
      | (?:Client|Server)\ error\ '[45]\d\d\ .{1,60}'\ for\ url
      | Traceback\ \(most\ recent\ call\ last\):
        # APIConnectionError: Connection error.
      | (?:\w{1,40}\.){0,4}
        (?:API\w{0,30}|RateLimit|Timeout|Connect\w{0,20}|Authentication|InternalServer|BadRequest)
        (?:Error|Exception)(?::\ |\(|\s{0,20}\Z)
        # urllib: HTTP Error 404: Not Found
      | (?:HTTP\ )?Error\ [45]\d\d:\ [A-Z]
        # a raw status line: HTTP/1.1 502 Bad Gateway
      | HTTP/[12](?:\.\d)?\ [45]\d\d\b
    )""",
    re.VERBOSE,
)
"""The texts of failed calls, as client libraries print them, in place of an answer."""
_ERROR_PAGE = re.compile(
    r"\s{0,20}(?:<!doctype"
    r" html[^>]{0,200}>\s{0,20})?<html\b.{0,500}?<title>\s{0,20}([45]\d\d\b[^<]{0,200})",
    re.IGNORECASE | re.DOTALL,
)
"""The error page of a proxy or server in place of an answer, with its title."""
_LONGEST_FAILURE = 4_000


def no_answer_in(record: Mapping[str, Any], answer: Any = None) -> dict[str, str] | None:
    """Return why a record has no answer, as ``{"code", "message"}``.

    Args:
        record: A row that contains the reply.
        answer: The value read as its answer: a text, an error in its place, or None.

    Returns:
        None if the record has an answer or doesn't say why it has none.

    """
    if isinstance(answer, str) and answer.strip():
        return _failed_call(answer)
    if isinstance(answer, Mapping) and any(
        _content_text(answer.get(key)) for key in ("text", "content", "output")
    ):
        return None
    other_key = name_elsewhere("answer", map(str, record))
    if (
        other_key is not None
        and isinstance(record.get(other_key), str)
        and record[other_key].strip()
    ):
        # The record has an answer under another name. A person must map it first.
        return None
    # Of a conversation, only the last turn is the reply; earlier ones may have failed and been
    # repeated.
    turns = record.get("messages")
    last = {"message": turns[-1]} if isinstance(turns, list | tuple) and turns else {}
    signs = list(_no_answer_signs({**last, **record, "answer": answer}))
    codes: tuple[NoAnswerCode, ...] = ("refused", "failed")
    for code in codes:  # "refused" first, since a filter's refusal is reported as an error too
        messages = [message for sign, message in signs if sign == code]
        if messages:
            return {
                "code": code,
                "message": shorten(next(filter(None, messages), ""), LONGEST_MESSAGE),
            }
    return None


def cut_off_reason(record: Mapping[str, Any]) -> str | None:
    """Return why a reply ended before its answer was complete, such as ``finish_reason: length``.

    Returns None if the reply wasn't cut off.
    """
    reasons = (
        message
        for _, message in _no_answer_signs(record)
        if message.partition(": ")[0] in _FINISH_REASON_KEYS
    )
    return next(reasons, None)


def _failed_call(text: str) -> dict[str, str] | None:
    """Return the reason if the text in place of an answer is the error of a failed call."""
    if len(text) > _LONGEST_FAILURE:
        return None  # a long text that quotes an error is an answer about it
    message, value = None, parse_value(text) if text.lstrip()[:1] == "{" else None
    if _FAILED_CALL.match(text):
        message = text
    elif page := _ERROR_PAGE.match(text):
        message = page[1]
    elif isinstance(value, dict) and not any(
        key in value for key in ("answer", "output", "text", "choices")
    ):
        message = next(
            (words for key in _ERROR_KEYS if (words := _error_words(value.get(key)))), None
        )
    return (
        None
        if message is None
        else {"code": "failed", "message": shorten(message.strip(), LONGEST_MESSAGE)}
    )


def _no_answer_signs(record: Mapping[str, Any]) -> Iterator[tuple[NoAnswerCode, str]]:
    """Yield each sign that a reply was refused or failed, with its message, from the outside in."""
    # Breadth first, so that the message of the outermost error is preferred.
    queue: deque[tuple[Any, int]] = deque([(record, 0)])
    visited = 0
    while queue and visited < _MOST_LOOKED_AT:
        value, depth = queue.popleft()
        visited += 1
        if isinstance(value, Mapping):
            yield from _signs_in_object(value)
            if depth < _MOST_DEPTH:
                queue.extend(
                    (value[key], depth + 1) for key in (*_REPLY_KEYS, *_NESTED_KEYS) if key in value
                )
        elif isinstance(value, list | tuple):
            queue.extend((item, depth) for item in value[:_MOST_LOOKED_AT])


def _signs_in_object(value: Mapping[str, Any]) -> Iterator[tuple[NoAnswerCode, str]]:
    if isinstance(refusal := value.get("refusal"), str) and refusal.strip():
        yield "refused", refusal.strip()
    for key in _ERROR_KEYS:
        if message := _error_words(value.get(key)):
            yield "refused" if _FILTERED.search(message) else "failed", message
    yield from ((code, "") for key, code in _FLAGS.items() if value.get(key) is True)
    if value.get("level") == "ERROR":  # Langfuse
        yield "failed", _content_text(value.get("statusMessage", value.get("status_message")))
    for key in _REASON_KEYS:
        reason = value.get(key)
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
    """Return the message of an error; "" if there is no error."""
    if isinstance(error, str):
        # CSV files and data frames write a missing error as one of these words.
        return (
            "" if error.strip().lower() in ("", "none", "null", "false", "nan") else error.strip()
        )
    if isinstance(error, Mapping):
        messages = (
            _error_words(error.get(key)) for key in ("message", "detail", "msg", "error", "type")
        )
        words = next(filter(None, messages), "" if not error else "an error without a message")
        code = error.get("code")
        return f"{code}: {words}" if isinstance(code, str | int) and code and words else words
    if isinstance(error, list) and error:
        return _error_words(error[0])
    return "an error without a message" if error is True else ""
