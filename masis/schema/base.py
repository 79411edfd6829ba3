"""What all records share: frozen, and either closed to unknown keys or keeping them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from masis.errors import InputError, StepError
from masis.schema.explain import explain

Row = TypeVar("Row")
Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
"""A number from 0 to 1."""


def utc_now() -> str:
    """The time as kept in records: ISO 8601, UTC, milliseconds."""
    return _format_time(datetime.now(UTC))


def add_time(at: str, wait: timedelta) -> str:
    """The time so long after another one, both as kept in records."""
    return _format_time(datetime.fromisoformat(at) + wait)


def _format_time(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Record(BaseModel):
    """A frozen record that knows all its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Page(Record, Generic[Row]):
    """One page of a list, and how many rows there are in all; where there are ``more``, that was
    counted.
    """

    rows: tuple[Row, ...]
    total: int
    more: bool = False


class OpenRecord(BaseModel):
    """A frozen record that keeps keys it does not know: what people bring is never dropped."""

    model_config = ConfigDict(frozen=True, extra="allow")


class InvalidRecord(InputError, ValueError):
    """A record was made in Python of values that are wrong; a ValueError too, as pydantic's own
    error is.
    """

    @classmethod
    def of(cls, error: InputError) -> InvalidRecord:
        """Return the same error as one of this class."""
        return cls(
            error.problem, hint=error.hint, file=error.file, line=error.line, field=error.field
        )


class InputRecord(OpenRecord):
    """An open record that people make in Python: what is wrong with it is an InputError, with field
    and hint.

    ``model_validate`` doesn't come through here, unless a record says so as ``Case`` does.
    """

    if not TYPE_CHECKING:  # type checkers know the fields from the class

        def __init__(self, /, **data: Any) -> None:
            try:
                data = type(self)._normalize_fields(data)
                super().__init__(**data)
                self._verify()
            except ValidationError as error:
                raise InvalidRecord.of(explain(error)) from None
            except InputError as error:
                raise InvalidRecord.of(error) from None

        # What pydantic's own __init__ carries: with it, validation doesn't call this one.
        __init__.__pydantic_base_init__ = True

    @classmethod
    def _normalize_fields(cls, data: dict[str, Any]) -> Mapping[str, Any]:
        """Return the fields as given, other forms of them brought into the record's own. Raises
        InputError.
        """
        return data

    def _verify(self) -> None:
        """Raise InputError where fields that are right each for itself don't go together."""


class Unscored(Record):
    """Why there is no score: a step failed, refused, was cut off, answered out of form, or had
    nothing to judge.

    ``code`` is the CRITIC-ERR code of a failure, None where nothing failed and there was nothing to
    judge. ``raw`` is the unchanged reply, for a person to read; it never becomes a number.
    """

    reason: str
    code: str | None = None
    raw: str | None = None

    @classmethod
    def of(cls, error: StepError) -> Unscored:
        """Return what a step that failed leaves."""
        return cls(reason=str(error), code=error.code, raw=error.raw)
