"""Classifies the errors of servers and connections.

Servers of the same API refuse in different ways: by status, by code, by naming the parameter, or
only in prose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from masis.llm.client.retry import retry_after
from masis.llm.providers.base import FailureKind, TryFailed

LONGEST_MESSAGE = 300
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
"""Control characters and invisible ones, with which a server's message could reverse or hide parts
of a line in a terminal or page.
"""
LARGER_CONTEXT = (
    "Start the server with a larger context (llama-server -c 32768, OLLAMA_CONTEXT_LENGTH=32768,"
    " Context Length in LM Studio), or choose a model that has one."
)
# "sk-...", "gsk_...", "hf_...", "AIza...": the beginnings of vendors' keys.
_KEY = re.compile(r"\b(?:sk|key|pk|gsk|xai|hf|AIza)[-_][\w*.\-]{6,400}", re.IGNORECASE)
# The reply format by name: "response_format", "structured output", "guided_json", "grammar".
_FORMAT = re.compile(
    r"response[_ ]?format|json[_ ]?(?:schema|object|mode)|output[_ ](?:config|format)"
    r"|structured[_ ]output|guided[_ ](?:json|decoding)|grammar|tool_choice"
    r"|\btools?\b.{0,40}support",
    re.IGNORECASE,
)
_NAMES_FORMAT = re.compile(r"response[_ ]?format|json[_ ]?schema", re.IGNORECASE)
"""The words for an unsupported reply format in an error with status 500 (llama-cpp-python)."""
_NO_KEY_STORE = re.compile(r"no connected db|no_db_connection", re.IGNORECASE)
"""The error of LiteLLM's proxy for a wrong key if it has no database of keys."""
# "maximum context length is 8192 tokens", "prompt is too long", "exceeds the available context"
_TOO_LONG = re.compile(
    r"context[_ ](?:length|window|size)|maximum context|prompt is too long"
    r"|too many (?:input )?tokens|exceeds? the (?:available )?context",
    re.IGNORECASE,
)
# "max_tokens is not supported", "Extra inputs are not permitted", "is deprecated for this model"
_UNSUPPORTED = re.compile(
    r"unsupported|not support|n't support|unrecognized|unknown|unexpected|not permitted"
    r"|not allowed|deprecated|extra inputs|unavailable|only the default",
    re.IGNORECASE,
)
# "The model `gpt-9` does not exist", "no such model", "not_found_error ... model: claude-9"
_NO_MODEL = re.compile(
    r"\bmodel\b.{0,200}?(?:not (?:found|exist|available)|n't (?:found|exist)|unknown)"
    r"|(?:no such|unknown|invalid) model|model_not_found|not_found_error.{0,20}model",
    re.IGNORECASE | re.DOTALL,
)
# "System role not supported", "role 'system' isn't supported"
_SYSTEM = re.compile(
    r"system.{0,20}(?:role|message|prompt).{0,40}support"
    r"|(?:role|message).{0,10}.system.{0,40}support",
    re.IGNORECASE,
)
_WRONG_KEY = re.compile(r"invalid.{0,10}api.?key|incorrect api key", re.IGNORECASE)
PARAMETERS = (
    "effort",
    "max_completion_tokens",
    "max_tokens",
    "temperature",
    "prompt_cache_key",
    "cache_control",
    "system",
)
"""The parameters that are left out or renamed if a server refuses them.

An API declares which of them it sends (``ProviderApi.parameters``). ``system`` is the system
message.
"""


class ServerRefusal(NamedTuple):
    """The content of a server's error body.

    ``parameter`` is the parameter that the body has in a field of its own, and ``sent`` are the
    parameters that may have been refused, because the API sends them.
    """

    message: str
    code: str
    parameter: str
    sent: Collection[str] = PARAMETERS


ClassifyError = Callable[[int, ServerRefusal], FailureKind | None]
"""Returns the kind of a failure by its status and content, or None to use the common rules."""


def from_status(
    status: int,
    headers: Mapping[str, str],
    body: Any,
    *,
    key_name: str,
    model: str,
    key: str = "",
    provider: str = "NAME",
    parameters: Collection[str] = PARAMETERS,
    error_field: str = "",
    classify: ClassifyError | None = None,
    address_end: str = "",
) -> TryFailed:
    """Return the failure for a status of 300 or more, with a message that says what to do.

    Args:
        status: The response's status.
        headers: The response's headers.
        body: The response's body, parsed or not (see ``refusal``).
        key_name: The variable with the key; empty if there is none.
        model: The model that was called.
        key: The key, which is removed from the server's message.
        provider: The name of the provider's table in the configuration.
        parameters: The parameters that the API sends, of those in ``PARAMETERS``.
        error_field: The field of the body that holds the message, if it isn't a usual one.
        classify: The API's own rules for the kind of a failure, which come before the common ones.
        address_end: The end that addresses of this API have, such as ``/v1``.

    """
    server_refusal = refusal(body, error_field)._replace(sent=parameters)
    text = f"{server_refusal.code} {server_refusal.parameter} {server_refusal.message}"
    common_kind: FailureKind = next(
        (kind for kind, fits in _RULES if fits(status, server_refusal, text)), "request"
    )
    kind = (classify(status, server_refusal) if classify else None) or common_kind
    if kind == "key" and key_name:
        message = f"the key was not accepted ({status}). Check {key_name}."
    elif kind == "key":
        table = f"[providers.{provider}] of masis.toml"
        message = (
            f"a key is needed ({status}). Name the variable that holds it: key_env in {table}."
        )
    else:
        quoted = scrub_error(server_refusal.message, key)
        message = _MESSAGES.get(kind, "refused as asked ({status}){quoted}").format(
            status=status,
            quoted=f": {quoted}" if quoted else "",
            model=model,
            address_end=f", up to the {address_end}" if address_end else "",
        )
    return TryFailed(
        kind,
        message,
        retry_after_s=retry_after(headers),
        parameter=_parameter(server_refusal) if kind == "parameter" else None,
    )


_STATUS_OF: dict[str, int] = {
    **dict.fromkeys(("rate_limit_error", "rate_limit_exceeded", "too_many_requests"), 429),
    **dict.fromkeys(("insufficient_quota", "billing_error"), 402),
    **dict.fromkeys(("authentication_error", "invalid_api_key"), 401),
    "permission_error": 403,
    "not_found_error": 404,
    **dict.fromkeys(("invalid_request_error", "content_filter"), 400),
    "request_too_large": 413,
}
"""The status of an error's code or type, for servers that send errors with status 200."""


def status_within(body: Any) -> int:
    """Return the status that an error body names by number or code; 500 if it doesn't name one."""
    error = body.get("error") if isinstance(body, Mapping) else None
    for fields in (part for part in (error, body) if isinstance(part, Mapping)):
        for name in ("code", "status", "status_code", "type"):
            value = fields.get(name)
            if isinstance(value, str):
                # OpenRouter and vLLM send the status as a number, others as a text of digits.
                is_status = value.isdecimal() and len(value) == 3
                value = int(value) if is_status else _STATUS_OF.get(value)
            if isinstance(value, int) and 400 <= value < 600:
                return value
    return 500


def from_connection(error: BaseException, address: str) -> TryFailed:
    """Return the failure for a connection's error, judged by the error and its causes."""
    names: list[str] = []
    cause = ""
    current: BaseException | None = error
    # The SDKs wrap the HTTP library's errors, and that wraps the socket's. The innermost message
    # says most.
    while current is not None and len(names) < 10:
        names.append(type(current).__name__)
        cause = str(current) or cause
        current = current.__cause__ or current.__context__
    # Before the other timeouts, since nothing was sent yet.
    if "ConnectTimeout" in names:
        return TryFailed("unreachable", f"{address} does not accept connections in time")
    if any("Timeout" in name for name in names):
        return TryFailed("timeout", "no answer in the time given")
    if "ConnectError" in names or "gaierror" in names or "UnsupportedProtocol" in names:
        return TryFailed(
            "unreachable",
            f"{address} can't be reached ({scrub_error(cause)}). Is the server running?",
        )
    return TryFailed("reset", "the connection ended before the reply did")


def refusal(body: Any, error_field: str = "") -> ServerRefusal:
    """Return the message, code and parameter of an error body in any of the known forms.

    The forms are plain text, ``{"error": "..."}``, and ``message``, ``detail`` or ``msg`` in the
    body or in its ``error``, with ``code``, ``type`` and ``param`` beside it. ``error_field`` names
    another field for the message. Other values are ignored, because they may repeat the request.
    """
    if isinstance(body, str | bytes):
        try:
            body = json.loads(body)
        except (ValueError, RecursionError):
            text = body if isinstance(body, str) else body.decode("utf-8", "replace")
            return ServerRefusal("" if text.lstrip()[:1] == "<" else text[:2000], "", "")
    error = (body.get("error") or body) if isinstance(body, dict) else {}
    # Ollama and text-generation-inference send the message as a text.
    if isinstance(error, str):
        return ServerRefusal(error[:2000], "", "")
    if not isinstance(error, dict):
        return ServerRefusal("", "", "")
    fields = (error_field, "message", "detail", "msg")
    message = next((error[name] for name in fields if error.get(name)), "")
    if isinstance(message, list):  # FastAPI has an entry for each error, with the faulty input
        message = "; ".join(
            f"{'.'.join(map(str, entry.get('loc', ())))}: {entry.get('msg', '')}"
            for entry in message
            if isinstance(entry, dict)
        )
    codes = (error.get("code"), error.get("type"))
    return ServerRefusal(
        str(message)[:2000],
        " ".join(str(code)[:100] for code in codes if isinstance(code, str | int)),
        str(error.get("param") or "")[:100],
    )


def scrub_error(text: str, key: str = "") -> str:
    """Return a server's message on one line, shortened, without the key or anything like a key."""
    if key:
        # Some servers repeat the key in their message. The pattern below only knows common forms of
        # keys.
        text = text.replace(key, "[key]")
    text = _UNPRINTABLE.sub("\ufffd", " ".join(_KEY.sub("[key]", text).split()))
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"


# "refusal" is the server's message and codes, "text" is all of it in one string.
_RULES: tuple[tuple[FailureKind, Callable[[int, ServerRefusal, str], object]], ...] = (
    # Groq's code for a reply that doesn't follow the schema.
    ("malformed", lambda status, refusal, text: "json_validate_failed" in text),
    (
        "refused",
        lambda status, refusal, text: (
            "content_filter" in refusal.code or "content management policy" in text
        ),
    ),
    (
        "quota",
        lambda status, refusal, text: (
            # OpenAI reports an empty account with 429 too, which no wait changes.
            status == 429 and re.search("insufficient_quota|credit balance", text)
        ),
    ),
    ("rate", lambda status, refusal, text: status == 429),
    ("key", lambda status, refusal, text: _NO_KEY_STORE.search(text)),
    (
        "format",
        lambda status, refusal, text: (
            # llama-cpp-python raises on an unknown format, and its server reports that as an
            # internal error.
            status >= 500 and _NAMES_FORMAT.search(f"{refusal.parameter} {refusal.message}")
        ),
    ),
    ("too_long", lambda status, refusal, text: status >= 500 and _TOO_LONG.search(refusal.message)),
    (
        "server",
        # 408 is a timeout and 409 a lock on the server; the SDKs of OpenAI and Anthropic retry
        # both.
        lambda status, refusal, text: status in (408, 409) or (status >= 500 and status != 501),
    ),
    ("key", lambda status, refusal, text: status == 401),
    ("quota", lambda status, refusal, text: status == 402),
    ("forbidden", lambda status, refusal, text: status == 403),
    # Redirects aren't followed (``base.http_client``).
    ("address", lambda status, refusal, text: 300 <= status < 400),
    # The rest tells apart the causes of a 400, 404, 413, 415, 422 or 501.
    ("too_long", lambda status, refusal, text: status == 413 or _TOO_LONG.search(text)),
    ("quota", lambda status, refusal, text: "credit balance" in text),
    (
        "parameter",
        lambda status, refusal, text: (
            "effort" in refusal.sent and "effort" in text and _UNSUPPORTED.search(text)
        ),
    ),
    (
        "format",
        lambda status, refusal, text: _FORMAT.search(refusal.parameter if status == 404 else text),
    ),
    ("parameter", lambda status, refusal, text: _parameter(refusal) and _UNSUPPORTED.search(text)),
    ("parameter", lambda status, refusal, text: _parameter(refusal) == "system"),
    ("model", lambda status, refusal, text: _NO_MODEL.search(text) or refusal.parameter == "model"),
    ("format", lambda status, refusal, text: status in (404, 405) and _FORMAT.search(text)),
    ("address", lambda status, refusal, text: status in (404, 405)),
    ("key", lambda status, refusal, text: _WRONG_KEY.search(text)),
    # Unsupported media type and not implemented.
    ("format", lambda status, refusal, text: status in (415, 501)),
)
"""Rules from the most to the least certain, of which the first match counts; without a match, the
failure is ``request``.
"""


def _parameter(refusal: ServerRefusal) -> str | None:
    sent = [name for name in PARAMETERS if name in refusal.sent]
    if refusal.parameter in sent:
        return refusal.parameter
    for name in sent:
        # "max_tokens", and "effort" in "reasoning_effort", but not in "efforts"
        pattern = _SYSTEM.pattern if name == "system" else rf"(?<![a-z]){name}(?![a-z])"
        if re.search(pattern, refusal.message, re.IGNORECASE):
            return name
    return None


_MESSAGES: dict[FailureKind, str] = {
    "forbidden": "the key may not do this ({status}){quoted}",
    "model": "there is no model {model!r} there, or the key may not use it ({status}){quoted}",
    "address": (
        "the address answers, but not as this API does ({status}). Check it{address_end}{quoted}"
    ),
    "format": "this form of structured output is not supported ({status}){quoted}",
    "too_long": (
        "question and evidence do not fit the model's context ({status}){quoted}. " + LARGER_CONTEXT
    ),
    "quota": "the account is out of credit or over its quota ({status}){quoted}",
    "rate": "too many calls at the moment ({status}){quoted}",
    "server": "the server failed or is overloaded ({status}){quoted}",
    "refused": "a content filter refused the question ({status})",
}
"""The message for each failure. ``key`` isn't here, since a server's own words may show a part of
the key.
"""
