"""The types of the texts and places that a browser posts in a form; each is checked when read."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import BeforeValidator, Field, Strict

from masis.services.drafts import sanitize_text

LONGEST_NOTE = 4_000
LONGEST_ANSWER = 150_000
"""The longest text, in characters. A text area gets slow past 200,000."""

LONGEST_ID = 2_000


def _checked_text(value: object, longest: int) -> str:
    if not isinstance(value, str):
        raise ValueError("it isn't text")
    return sanitize_text(value, longest)


Name = Annotated[str, BeforeValidator(partial(_checked_text, longest=64))]
OwnWords = Annotated[str, BeforeValidator(partial(_checked_text, longest=300))]
Note = Annotated[str, BeforeValidator(partial(_checked_text, longest=LONGEST_NOTE))]
Answer = Annotated[str, BeforeValidator(partial(_checked_text, longest=LONGEST_ANSWER))]
ChunkId = Annotated[
    str, BeforeValidator(partial(_checked_text, longest=LONGEST_ID)), Field(min_length=1)
]
Place = Annotated[int, Strict(), Field(ge=0, le=100_000_000)]
