"""Formats log lines, either for people or as one JSON object per line for programs.

Log calls pass their figures as ``extra={"fields": {...}}``. A JSON line has them under their names,
among them those of the specs' "Telemetry Emitted".
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

place: list[Callable[[], dict[str, str]]] = []
"""Functions that return the trace and span of a JSON line, while telemetry is on."""

LogFormat = Literal["text", "json"]


class JsonLine(logging.Formatter):
    """Formats a record as ``{"at", "level", "logger", "message", ...}``, with the time in UTC.

    The fields of the record follow, then its trace and span.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        for trace_fields in place:
            line |= trace_fields()
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def formatter(log_format: LogFormat) -> logging.Formatter:
    """Return a formatter for this log format."""
    if log_format == "json":
        return JsonLine()
    return logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")
