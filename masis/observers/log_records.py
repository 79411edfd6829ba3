"""How a line of the log is written: for people, or as one JSON object for programs.

What is logged carries its figures beside its words, as ``extra={"fields": {...}}``; a JSON line has
them under their names: those of the specs' "Telemetry Emitted" among them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

place: list[Callable[[], dict[str, str]]] = []
"""What says where in a trace a line of JSON was logged, while telemetry is on."""

LogFormat = Literal["text", "json"]


class JsonLine(logging.Formatter):
    """``{"at", "level", "logger", "message", ...}``: time in UTC, then the fields of what is
    logged, then its place.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of JSON."""
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        for here in place:
            line |= here()
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def formatter(form: LogFormat) -> logging.Formatter:
    """What writes a line in this form."""
    if form == "json":
        return JsonLine()
    return logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")
