"""What all records share: frozen, and either closed to unknown keys or keeping them."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
"""A number from 0 to 1."""


def utc_now() -> str:
    """The time as kept in records: ISO 8601, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def notebook_view(record: object) -> str:
    """Return what a notebook shows of a record: the one place where the schema reaches for a view, when it is asked."""
    found: str = importlib.import_module("masis.api.notebook").html(record)
    return found


class Record(BaseModel):
    """A frozen record that knows all its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class OpenRecord(BaseModel):
    """A frozen record that keeps keys it does not know: what people bring is never dropped."""

    model_config = ConfigDict(frozen=True, extra="allow")


class Unscored(Record):
    """Why there is no score: a step failed, refused, was cut off, answered out of form, or had nothing to judge.

    ``code`` is the CRITIC-ERR code of a failure, None where nothing failed and there was nothing to judge. ``raw`` is
    the unchanged reply, for a person to read; it never becomes a number.
    """

    reason: str
    code: str | None = None
    raw: str | None = None
