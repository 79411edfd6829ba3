"""Use a session of the workbench without a browser, with the protocol of a browser's page.

A browser needs more CPU time than the server, so a measurement with twenty of them on two cores
would measure the browsers. This module sends the same messages over the same WebSocket and reads
the responses to their end, but doesn't render anything.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

from masis.ui.shell.frame import FAILED

PATIENCE_S = 60.0


class Answer(NamedTuple):
    """The response to one action: wall time to the script's end in seconds, bytes, and contents."""

    seconds: float
    size: int
    texts: tuple[str, ...]
    failed: bool


class Session:
    """One open page. Create it with ``await Session.open(base)``."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._page = self._hash = self._query = ""
        self._components: dict[str, str] = {}
        self._buttons: dict[str, str] = {}
        self._kept: dict[str, ForwardMsg] = {}

    @classmethod
    async def open(cls, base: str) -> Session:
        """Connect, without sending a request yet."""
        address = f"ws://{urlsplit(base).netloc}/_stcore/stream"
        return cls(
            await connect(
                address,
                subprotocols=["streamlit"],  # type: ignore[list-item]
                max_size=None,
                compression=None,
            )
        )

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def go(self, page: str, /, **parameters: str) -> Answer:
        """Open a page of the workbench in this session, as an internal link does."""
        message = BackMsg()
        self._query = urlencode(parameters)
        message.rerun_script.query_string = self._query
        message.rerun_script.page_name = page
        if page == self._page:
            message.rerun_script.page_script_hash = self._hash
        self._page = page
        self._components.clear()
        self._buttons.clear()
        return await self._ask(message)

    async def post(self, component: str, name: str, value: Any) -> Answer:
        """Set a value of a component, found by part of its key. This reruns its fragment or page."""
        component_id = next(
            (component_key for component_key in self._components if component in component_key),
            None,
        )
        if component_id is None:
            raise LookupError(
                f"no component {component!r} on the page, only {sorted(self._components)}"
            )
        message = BackMsg()
        request = message.rerun_script
        request.query_string, request.page_script_hash, request.page_name = (
            self._query,
            self._hash,
            self._page,
        )
        request.fragment_id = self._components[component_id]
        state = request.widget_states.widgets.add()
        state.id, state.json_value = component_id, json.dumps({name: value})
        return await self._ask(message)

    async def press(self, label: str) -> Answer:
        """Press a button by its label."""
        if label not in self._buttons:
            raise LookupError(f"no button {label!r} on the page, only {sorted(self._buttons)}")
        message = BackMsg()
        request = message.rerun_script
        request.query_string, request.page_script_hash, request.page_name = (
            self._query,
            self._hash,
            self._page,
        )
        state = request.widget_states.widgets.add()
        state.id, state.trigger_value = self._buttons[label], True
        return await self._ask(message)

    async def _ask(self, message: BackMsg) -> Answer:
        began = time.perf_counter()
        # as a page does, say what is here already: large messages that have not changed are then
        # only named
        message.rerun_script.cached_message_hashes.extend(self._kept)
        await self._connection.send(message.SerializeToString())
        size, texts, failed = 0, list[str](), False
        while True:
            raw = await self._receive(began)
            size += len(raw)
            got = self._whole(ForwardMsg.FromString(raw))
            kind = got.WhichOneof("type")
            if kind == "navigation":
                self._hash = got.navigation.page_script_hash
            elif kind == "delta":
                failed |= self._note(got, texts)
            elif kind == "page_info_changed":
                self._query = got.page_info_changed.query_string
            elif (
                kind == "script_finished"
                and got.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
            ):
                return Answer(time.perf_counter() - began, size, tuple(texts), failed)

    def _whole(self, got: ForwardMsg) -> ForwardMsg:
        if got.WhichOneof("type") == "ref_hash":
            complete = ForwardMsg()
            complete.CopyFrom(self._kept[got.ref_hash])
            complete.metadata.CopyFrom(got.metadata)
            return complete
        if got.metadata.cacheable:
            self._kept[got.hash] = got
        return got

    async def _receive(self, began: float) -> bytes:
        remaining_s = PATIENCE_S - (time.perf_counter() - began)
        raw = await asyncio.wait_for(self._connection.recv(), timeout=max(remaining_s, 0.1))
        return raw if isinstance(raw, bytes) else raw.encode()

    def _note(self, got: ForwardMsg, texts: list[str]) -> bool:
        element = got.delta.new_element
        kind = element.WhichOneof("type")
        if kind == "bidi_component":
            self._components[element.bidi_component.id] = got.delta.fragment_id
        elif kind == "button":
            self._buttons[element.button.label] = element.button.id
        elif kind in ("heading", "markdown", "text"):
            texts.append(getattr(element, kind).body)
        return kind == "exception" or (kind == "heading" and element.heading.body == FAILED)
