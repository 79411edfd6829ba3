"""How a line of the log is written: for people, or as one JSON object for programs.

What is logged carries its figures beside its words, as ``extra={"fields": {...}}``; a JSON line has them under their
names: those of the specs' "Telemetry Emitted" among them.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Literal

LogFormat = Literal["text", "json"]


class JsonLine(logging.Formatter):
    """``{"at", "level", "logger", "message", ...}``: time in UTC, then the fields of what is logged."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of JSON."""
        told = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False, default=str)


def formatter(form: LogFormat) -> logging.Formatter:
    """What writes a line in this form."""
    if form == "json":
        return JsonLine()
    return logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")
