"""What people say about screenings: an append-only log whose entries form a hash chain, as decisions do."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from masis.schema.base import Record
from masis.schema.screening import Override

ScreeningEntryKind = Literal["override", "handed_over", "memory_reset", "redaction"]
"""``override``: a person's word on a field of a grade, or the taking back of one; ``handed_over``: the kept set became
the evidence of a case; ``memory_reset``: what was accepted before no longer moves thresholds."""


class ScreeningDecision(Record):
    """What someone decided about a screening or about the acceptance memory, as given in.

    ``machine_shown`` names what of the machine's grade was visible to the person; ``token`` makes a repeated submit
    harmless.
    """

    kind: ScreeningEntryKind = "override"
    reviewer: str = Field(min_length=1, max_length=200)
    screening_id: str | None
    override: Override | None = None
    reason: str = ""
    machine_shown: tuple[str, ...] = ()
    token: str | None = None
    versions: dict[str, str] = Field(default_factory=dict)
    extra: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _complete(self) -> ScreeningDecision:
        if (self.kind == "override") != (self.override is not None):
            raise ValueError("an override says what is overridden, and nothing else does")
        if self.override is not None and self.override.reviewer != self.reviewer:
            raise ValueError("the override is by another reviewer than the entry")
        if self.kind in ("override", "handed_over") and self.screening_id is None:
            raise ValueError(f"{self.kind!r} names its screening")
        if self.kind == "memory_reset" and not self.reason.strip():
            raise ValueError("a reset of the memory needs a reason")
        return self


class ScreeningEntry(Record):
    """One entry of the screening log. ``decision`` is None where it was redacted; digests as in the decision log."""

    seq: int
    id: str
    at: str
    payload_digest: str
    previous: str
    digest: str
    decision: ScreeningDecision | None
