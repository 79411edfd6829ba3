"""Ctrl-C that loses nothing: the first asks to stop after what is under way, the second stops at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

from masis.cli.output import say


class Interruption:
    """While entered, the first SIGINT or SIGTERM sets ``asked``; a second raises KeyboardInterrupt."""

    def __init__(self, notice: str) -> None:
        self.asked = False
        self._notice = notice
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # signals reach no other thread
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        say(self._notice)
