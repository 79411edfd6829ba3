"""Base classes of all records, which are frozen and either reject or keep unknown keys."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, ValidationError
from pydantic_core import core_schema

from masis.errors import InputError, StepError
from masis.schema.explain import explain

Row = TypeVar("Row")
Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
"""A number from 0 to 1."""


def utc_now() -> str:
    """Return the current time in the format of records: ISO 8601, UTC, milliseconds."""
    return _format_time(datetime.now(UTC))


def add_time(at: str, wait: timedelta) -> str:
    """Return the time after a wait; both times are in the format of records."""
    return _format_time(datetime.fromisoformat(at) + wait)


def _format_time(time: datetime) -> str:
    # "Z" instead of "+00:00", and always three digits, so that times sort as text in SQLite.
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_COLLECTIONS = frozenset({"list", "tuple", "set", "frozenset"})
"""The types of core schemas whose validation can stop at an item (``fail_fast``)."""


def _stop_at_first_items(schema: Any) -> None:
    """Let every collection in a core schema stop at its first invalid item."""
    if isinstance(schema, dict):
        kind = schema.get("type")  # not text where this level maps field names to schemas
        if isinstance(kind, str) and kind in _COLLECTIONS:
            schema["fail_fast"] = True
        for part in schema.values():
            _stop_at_first_items(part)
    elif isinstance(schema, list | tuple):
        for part in schema:
            _stop_at_first_items(part)


class CheckedModel(BaseModel):
    """A model whose lists are validated up to their first invalid item.

    Each problem that pydantic reports takes 1.4 to 4 KB of memory, so a 2 MB message with a
    million numbers in place of records would take gigabytes.
    """

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        schema = handler(source)
        _stop_at_first_items(schema)
        return schema


class Record(CheckedModel):
    """A frozen record that rejects unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Page(Record, Generic[Row]):
    """One page of a list, with the total number of rows.

    If ``more`` is set, counting stopped at ``total`` and there are more rows.
    """

    rows: tuple[Row, ...]
    total: int
    more: bool = False


class OpenRecord(CheckedModel):
    """A frozen record that keeps unknown keys, so that nothing of the input is lost."""

    model_config = ConfigDict(frozen=True, extra="allow")


class InvalidRecord(InputError, ValueError):
    """A record was created in Python with invalid values.

    It is also a ValueError, as pydantic's own error is.
    """

    @classmethod
    def from_error(cls, error: InputError) -> InvalidRecord:
        """Return the same error as an instance of this class."""
        return cls(
            error.problem, hint=error.hint, file=error.file, line=error.line, field=error.field
        )


class InputRecord(OpenRecord):
    """An open record that people create in Python; invalid values raise InputError with a hint.

    ``model_validate`` bypasses this constructor unless a subclass overrides it, as ``Case`` does.
    """

    if not TYPE_CHECKING:  # type checkers know the fields from the class

        def __init__(self, /, **data: Any) -> None:
            try:
                data = type(self)._normalize_fields(data)
                super().__init__(**data)
                self._verify()
            # "from None": pydantic's own error repeats the same problem in its own words.
            except ValidationError as error:
                raise InvalidRecord.from_error(explain(error)) from None
            except InputError as error:
                raise InvalidRecord.from_error(error) from None

        # pydantic's own __init__ has this attribute: with it, model_validate doesn't call __init__.
        __init__.__pydantic_base_init__ = True

    @classmethod
    def _normalize_fields(cls, data: dict[str, Any]) -> Mapping[str, Any]:
        """Return the fields with other forms converted to the record's own.

        Raises:
            InputError: The fields can't be converted.

        """
        return data

    def _verify(self) -> None:
        """Raise InputError if fields that are valid separately don't fit together."""


class Unscored(Record):
    """Why there is no score.

    A step failed, was refused, was cut off, replied in the wrong format, or had nothing to judge.

    Attributes:
        code: The CRITIC-ERR code of a failure; None if there was nothing to judge.
        raw: The unchanged reply, for a person to read. It never becomes a number.

    """

    reason: str
    code: str | None = None
    raw: str | None = None

    @classmethod
    def of(cls, error: StepError) -> Unscored:
        """Return the record of a failed step."""
        return cls(reason=str(error), code=error.code, raw=error.raw)
