"""Optimisers without their noise."""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import threading
from typing import Any

import tqdm  # type: ignore[import-untyped]


class _Silent(tqdm.tqdm):
    """A bar that is not shown."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **(options | {"disable": True}))


class _Quiet:
    """Without the bars and banners that optimisers print: stdout is for data, and progress is told in our own words.

    They print to what the whole process shares, so that of several sessions at once the last to end brings all back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions = 0
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            self._sessions += 1
            if self._sessions == 1:
                self._hush()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._sessions -= 1
            if not self._sessions:
                self._undo.close()

    def _hush(self) -> None:
        gepa_engine: Any = importlib.import_module("gepa.core.engine")
        log, bar = logging.getLogger("dspy"), tqdm.tqdm
        self._undo.callback(log.setLevel, log.level)
        log.setLevel(logging.CRITICAL)
        for module in (tqdm, gepa_engine):
            self._undo.callback(setattr, module, "tqdm", bar)
            module.tqdm = _Silent
        self._undo.enter_context(contextlib.redirect_stdout(io.StringIO()))


QUIET = _Quiet()
"""Entered while an optimiser works."""
