"""A scripted HTTP server for OpenAI's Chat Completions and Anthropic's Messages, without a model.

with ModelServer(script) as server:        # in a test; server.address, server.requests, server.most_at_once
python -m tests.serving_models --latency-ms 300 --port 0      # for benchmarks: prints its address
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import hashlib
import json
import random
import re
import socket
import struct
import sys
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Literal

from tests.served_replies import (
    FAULTS,
    Behaviour,
    Json,
    Request,
    Script,
    faulty,
    reply_with,
    sensible,
    status,
)
from tests.waiting import PATIENCE_S

BLOCK = 512
"""Characters of a prompt that are cached as one block: 128 tokens."""
STRICT_KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "$ref", "$defs", "description",
}  # fmt: skip


def _tokens(request: Request, behaviour: Behaviour, text: str) -> tuple[int, int]:
    """Return the tokens of prompt and reply; a reply that is cut off has the maximum number."""
    completion = len(text) // 4
    if behaviour.finish == "length":
        completion = (
            request.body.get("max_tokens")
            or request.body.get("max_completion_tokens")
            or completion
        )
    return (
        len(request.text) // 4 if behaviour.prompt_tokens is None else behaviour.prompt_tokens,
        completion if behaviour.completion_tokens is None else behaviour.completion_tokens,
    )


class ModelServer:
    """The server, which runs in its own thread while the ``with`` block runs.

    ``script`` returns the behavior for a request (None for a plausible reply), or is a list of
    behaviors to use in order. ``refuses`` names the features that are rejected with 400:
    ``json_schema``, ``json_object`` (also with a schema), ``temperature``, ``max_tokens``,
    ``max_completion_tokens``, ``system``, ``cache_control``, ``effort``. More than ``at_most``
    concurrent calls are rejected with 429. ``thinks`` is the number of thinking tokens before each
    reply.
    """

    def __init__(
        self,
        script: Script | Iterable[Behaviour] = lambda request: None,
        *,
        latency_ms: float = 0.0,
        refuses: Collection[str] = (),
        keys: Collection[str] | None = None,
        models: Collection[str] | None = None,
        at_most: int | None = None,
        issues: Literal["some", "none", "always"] = "some",
        thinks: int = 0,
        keep: bool = True,
        port: int = 0,
    ) -> None:
        self._script: Script
        if callable(script):
            self._script = script
        else:
            behaviours = iter(script)
            self._script = lambda request: next(behaviours, None)
        self.latency_s, self.refuses, self.keys, self.models = (
            latency_ms / 1000,
            set(refuses),
            keys,
            models,
        )
        self.at_most, self.issues, self.thinks, self.keep, self.port = (
            at_most,
            issues,
            thinks,
            keep,
            port,
        )
        self.requests: list[Request] = []
        self.counts: Counter[str] = Counter()
        self.in_progress = self.most_at_once = self.connections = 0
        self._cached: set[bytes] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        """The base address of OpenAI's API; Anthropic's SDK needs it without the ``/v1``."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> ModelServer:
        started = threading.Event()
        self._thread = threading.Thread(
            target=self._serve, args=(started,), name="scripted models", daemon=True
        )
        self._thread.start()
        if not started.wait(PATIENCE_S):
            raise RuntimeError(f"nothing is served at port {self.port}: is it taken?")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(PATIENCE_S)

    def _serve(self, started: threading.Event) -> None:
        async def serve() -> None:
            self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
            server = await asyncio.start_server(
                self._on_connect, "127.0.0.1", self.port, limit=2**24, backlog=512
            )
            self.port = server.sockets[0].getsockname()[1]
            started.set()
            await self._ended.wait()
            server.close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

        asyncio.run(serve())

    async def _on_connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            with contextlib.suppress(Exception):
                writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Handle one request and return whether to keep the connection."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split(" ")[1]
        headers = {
            name.lower(): value
            for name, _, value in (line.partition(": ") for line in head[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if path.endswith("/stats"):
            return await self._send(writer, 200, {}, json.dumps(self.stats()).encode())
        wire: Literal["openai", "anthropic"] | None = (
            "openai"
            if path.endswith("/v1/chat/completions")
            else "anthropic"
            if path.endswith("/v1/messages")
            else None
        )
        if wire is None:
            return await self._send(writer, 404, {}, b'{"detail": "Not Found"}')
        self.in_progress += 1
        self.most_at_once = max(self.most_at_once, self.in_progress)
        try:
            request = Request(
                wire, headers, json.loads(body), self.counts["requests"], self.in_progress
            )
            self.counts["requests"] += 1
            if self.keep:
                self.requests.append(request)
            behaviour = self._find_error(request) or self._script(request) or Behaviour()
            await asyncio.sleep(self.latency_s + behaviour.hang_s)
            reply = (
                behaviour.body
                if behaviour.body is not None
                else json.dumps(self._reply(request, behaviour)).encode()
            )
        finally:
            self.in_progress -= 1
        return await self._answer(writer, behaviour, reply)

    async def _answer(
        self, writer: asyncio.StreamWriter, behaviour: Behaviour, reply: bytes
    ) -> bool:
        if behaviour.reset:
            if behaviour.reset == "middle":
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s"
                    % (len(reply), reply[: len(reply) // 2])
                )
                await writer.drain()
            # Closing with a linger time of zero sends a reset instead of a normal close.
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if behaviour.drip_s:
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            while True:
                writer.write(b"1\r\n \r\n")
                await writer.drain()
                await asyncio.sleep(behaviour.drip_s)
        return await self._send(writer, behaviour.status, behaviour.headers, reply)

    async def _send(
        self, writer: asyncio.StreamWriter, code: int, headers: dict[str, str], body: bytes
    ) -> bool:
        more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = (
            f"HTTP/1.1 {code} Scripted\r\ncontent-type: application/json\r\ncontent-length:"
            f" {len(body)}\r\n{more}\r\n"
        )
        writer.write(head.encode() + body)
        await writer.drain()
        return True

    def stats(self) -> Json:
        """Return the number of requests by reply, the tokens, and the most concurrent calls."""
        return dict(self.counts) | {"most_at_once": self.most_at_once}

    def _find_error(self, request: Request) -> Behaviour | None:
        """Return the error that the real API gives to such a request, or None if it accepts it."""
        body, wire = request.body, request.wire
        key = request.headers.get("x-api-key") or request.headers.get(
            "authorization", ""
        ).removeprefix("Bearer ")
        if self.keys is not None and key not in self.keys:
            return status(
                401,
                f"Incorrect API key provided: {key[:6]}***{key[-4:]}.",
                code_name="invalid_api_key",
            )
        if self.models is not None and request.model not in self.models:
            return status(
                404, f"model: {request.model}", code_name="not_found_error model_not_found"
            )
        if self.at_most is not None and request.in_progress > self.at_most:
            return status(
                429, "Rate limit reached", code_name="rate_limit_exceeded", retry_after="0.05"
            )
        json_mode = "json_object" if request.mode == "json_object_schema" else request.mode
        if request.mode in self.refuses or json_mode in self.refuses:
            named = "response_format" if wire == "openai" else "output_config.format"
            return status(
                400,
                f"'{named}' of type '{request.mode}' is not supported with this model.",
                code_name="x",
            )
        for name in ("temperature", "max_tokens", "max_completion_tokens"):
            if name in self.refuses and name in body:
                return status(
                    400,
                    f"Unsupported parameter: '{name}' is not supported with this model.",
                    code_name="x",
                )
        if wire == "anthropic" and "temperature" in body:
            return status(
                400,
                "`temperature` is deprecated for this model.",
                code_name="invalid_request_error",
            )
        if "effort" in self.refuses and (
            "reasoning_effort" in body or "effort" in body.get("output_config", {})
        ):
            return status(400, "This model does not support the effort parameter.", code_name="x")
        if "system" in self.refuses and any(
            message["role"] == "system" for message in body["messages"]
        ):
            return status(400, "System role not supported", code_name="x")
        if "cache_control" in self.refuses and "cache_control" in json.dumps(body["messages"]):
            return status(400, "cache_control: Extra inputs are not permitted", code_name="x")
        if json_mode == "json_object" and wire == "openai" and "json" not in request.text.lower():
            return status(
                400, "'messages' must contain the word 'json' in some form", code_name="x"
            )
        if request.mode == "json_schema" and (wrong := broken_rules(request)):
            return status(
                400,
                f"Invalid schema for response_format: {wrong[0]}",
                code_name="invalid_json_schema",
            )
        return None

    def _reply(self, request: Request, behaviour: Behaviour) -> Json:
        if behaviour.status >= 300:
            return {"type": "error", "error": behaviour.error or {"message": "scripted"}}
        text = behaviour.text
        if text is None:
            text = json.dumps(sensible(request, self.issues), ensure_ascii=False)
            if behaviour.finish == "length":
                text = text[: len(text) // 2]
        limit = request.body.get("max_tokens") or request.body.get("max_completion_tokens") or 10**9
        if self.thinks and limit < self.thinks + len(text) // 4:
            text, behaviour = "", dataclasses.replace(behaviour, finish="length")
        self.counts[request.schema_name] += 1
        return (
            self._openai(request, behaviour, text)
            if request.wire == "openai"
            else self._anthropic(request, behaviour, text)
        )

    def _openai(self, request: Request, behaviour: Behaviour, text: str) -> Json:
        prompt, completion = _tokens(request, behaviour, text)
        # The schema comes before the system message and is part of the cached prefix.
        schema = json.dumps(request.body.get("response_format"))
        cached = self._cached_blocks(f"{request.model}\0{schema}", request.text) * BLOCK // 4
        self._count(prompt, cached if cached >= 1024 else 0, completion)
        message: Json = {"role": "assistant", "content": text, "refusal": None}
        if behaviour.refusal is not None:
            message |= {"content": None, "refusal": behaviour.refusal}
        finish = behaviour.finish if behaviour.finish != "refusal" else "stop"
        return {
            "id": f"chatcmpl-{request.number}",
            "object": "chat.completion",
            "created": 0,
            "model": f"{request.model}-2024-08-06",
            "choices": [
                {"index": 0, "finish_reason": finish, "message": message, "logprobs": None}
            ],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": completion + self.thinks,
                "completion_tokens_details": {"reasoning_tokens": self.thinks},
                "total_tokens": prompt + completion,
                "prompt_tokens_details": {"cached_tokens": cached if cached >= 1024 else 0},
            },
        }

    def _anthropic(self, request: Request, behaviour: Behaviour, text: str) -> Json:
        read = written = 0
        start = json.dumps(
            [request.model, request.body.get("tools"), request.body.get("output_config")]
        )
        before = ""
        for part in (*request.body.get("system", ()), *request.body["messages"][0]["content"]):
            before += part["text"]
            if "cache_control" in part:
                digest = hashlib.sha256(f"{start}{before}".encode()).digest()
                size = len(before) // 4
                read, written = (size, 0) if digest in self._cached else (read, size - read)
                self._cached.add(digest)
        prompt, completion = _tokens(request, behaviour, text)
        self._count(prompt, read, completion)
        content: list[Json] = [{"type": "text", "text": text}] if text else []
        if request.mode == "json_object" and text:
            with contextlib.suppress(ValueError):
                content = [
                    {
                        "type": "tool_use",
                        "id": "t1",
                        "name": request.schema_name,
                        "input": json.loads(text),
                    }
                ]
        stop = {
            "stop": "end_turn",
            "length": "max_tokens",
            "refusal": "refusal",
            "content_filter": "refusal",
        }
        return {
            "id": f"msg_{request.number}",
            "type": "message",
            "role": "assistant",
            "model": f"{request.model}-20250929",
            "content": (
                [{"type": "text", "text": behaviour.refusal}]
                if behaviour.refusal is not None
                else content
            ),
            "stop_reason": stop[behaviour.finish],
            "stop_sequence": None,
            "usage": {
                "input_tokens": prompt - read - written,
                "cache_read_input_tokens": read,
                "cache_creation_input_tokens": written,
                "output_tokens": completion + self.thinks,
                "output_tokens_details": {"thinking_tokens": self.thinks},
            },
        }

    def _cached_blocks(self, key: str, text: str) -> int:
        """Return how many leading blocks were sent before, and remember all of this prompt's."""
        digest, found, unbroken = hashlib.blake2b(key.encode(), digest_size=16), 0, True
        for start in range(0, len(text) - BLOCK, BLOCK):
            digest.update(text[start : start + BLOCK].encode())
            mark = digest.copy().digest()
            unbroken = unbroken and mark in self._cached
            found += unbroken
            self._cached.add(mark)
        return found

    def _count(self, prompt: int, cached: int, completion: int) -> None:
        self.counts.update(prompt_tokens=prompt, cached_tokens=cached, completion_tokens=completion)


def broken_rules(request: Request) -> list[str]:
    """Return the places where a schema breaks the rules of strict mode."""
    wrong = list(_broken(request.schema, "root", 0))
    if request.schema.get("type") != "object":
        wrong.append("root: must be an object")
    if request.wire == "openai":
        given = request.body["response_format"]["json_schema"]
        if not given.get("strict"):
            wrong.append("strict is not set")
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", given["name"]):
            wrong.append(f"name {given['name']!r}")
    return wrong


def _broken(schema: Json, where: str, depth: int) -> Iterator[str]:
    if depth > 10:
        yield f"{where}: nested too deep"
        return
    if unknown := schema.keys() - STRICT_KEYWORDS:
        yield f"{where}: {sorted(unknown)} is not permitted"
    if "$ref" in schema and len(schema) > 1:
        yield f"{where}: $ref cannot have other keywords"
    if not schema.keys() & {"type", "$ref", "anyOf", "enum"}:
        yield f"{where}: must have a 'type' key"
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            yield f"{where}: 'additionalProperties' must be false"
        if sorted(schema.get("required", ())) != sorted(schema.get("properties", ())):
            yield f"{where}: 'required' must hold every key of properties"
    if schema.get("type") == "array" and "items" not in schema:
        yield f"{where}: array without items"
    for name, part in (schema.get("properties", {}) | schema.get("$defs", {})).items():
        yield from _broken(part, f"{where}.{name}", depth + 1)
    for part in (*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])):
        yield from _broken(part, where, depth + 1)


def random_faults(share: float, seed: int, names: Collection[str] = FAULTS) -> Script:
    """Return a script in which a share of requests fails, reproducible by seed and order."""
    chosen = [name for name in names if name != "hang"]

    def script(request: Request) -> Behaviour | None:
        draw = random.Random(f"{seed}:{request.number}")
        return faulty(draw.choice(chosen), request) if draw.random() < share else None

    return script


def main() -> None:
    """Serve until interrupted."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--latency-ms", type=float, default=0.0)
    options.add_argument("--fault-share", type=float, default=0.0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--issues", choices=("some", "none", "always"), default="some")
    given = options.parse_args()
    server = ModelServer(
        random_faults(given.fault_share, given.seed),
        latency_ms=given.latency_ms,
        issues=given.issues,
        keep=False,
        port=given.port,
    )
    with server, contextlib.suppress(KeyboardInterrupt):
        sys.stdout.write(f"{server.address}\n")
        sys.stdout.flush()
        threading.Event().wait()


__all__ = [
    "FAULTS",
    "Behaviour",
    "ModelServer",
    "Request",
    "broken_rules",
    "faulty",
    "random_faults",
    "reply_with",
    "status",
]

if __name__ == "__main__":
    main()
