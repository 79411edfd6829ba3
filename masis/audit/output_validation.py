"""Output validation: a revision must pass a validator before it is used (REQ-CRITIC-028).

The setting ``output_validator`` names it: ``pydantic``, the default, is below; ``baml`` and others
are found among the installed packages by the entry point group ``masis.output_validators``, so that
this module needn't know them. A revision that doesn't pass is invalid (CRITIC-ERR-006): the answer
before it is kept and the loop ends (REQ-CRITIC-031).

The validator compares a revision with the answer before it. Defects that the answer already had are
left to the audit.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol

from pydantic import BaseModel, ValidationError

from masis.audit.context import AuditContext
from masis.audit.markers import count_empty_markers, count_unclosed_markers
from masis.errors import InvalidRevision, StepError
from masis.schema.audit import Revision
from masis.schema.registry import added_entry_point

GROUP = "masis.output_validators"
PYDANTIC = "pydantic"
LONGEST_ANSWER = 100_000
"""Maximum number of characters per revision; the limit is twice the answer before it if that is
more.
"""

# Control characters except tab and line ends, halves of surrogate pairs, and noncharacters, which
# break storage or display.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
# A JSON object with the field revised_answer, possibly in a code block: the model repeated the form
# of its reply inside the answer.
_FORM = re.compile(
    r"\s{0,1000}(?:```\w{0,20}\s{1,50})?\{\s{0,200}[\"']?revised_answer[\"']?\s{0,50}:"
)


class RepairedRecord(NamedTuple):
    """A record read from a reply that strict parsing refused, and its repairs."""

    value: dict[str, Any]
    repairs: tuple[str, ...]


class OutputValidator(Protocol):
    """Accepts or refuses a revision; some validators can also repair malformed replies."""

    @property
    def name(self) -> str:
        """The name in the setting ``output_validator``."""

    def validate(self, revision: Revision, context: AuditContext) -> Revision:
        """Return the revision, possibly with its form repaired.

        Raises:
            InvalidRevision: It doesn't pass.

        """

    def repair(self, text: str, shape: type[BaseModel]) -> RepairedRecord | None:
        """Return the record of a malformed reply, or None if it can't be read with certainty."""


@dataclass(frozen=True)
class PydanticValidator:
    """The default validator: a well-formed revision whose answer can be stored, shown and audited.

    ``answer`` is a team's own model for answers in JSON, which a revision must then match. A team
    registers such a validator in its own package, under the entry point group
    ``masis.output_validators``.
    """

    answer: type[BaseModel] | None = None
    name: str = PYDANTIC

    def validate(self, revision: Revision, context: AuditContext) -> Revision:
        """Return the revision unchanged.

        Raises:
            InvalidRevision: It doesn't pass; the error names the first defect.

        """
        parsed = _parse_revision(revision)
        if defect := next(faults(parsed.revised_answer, context), None):
            raise InvalidRevision(
                f"The revised answer is invalid: {defect}.", raw=parsed.revised_answer
            )
        if self.answer is not None and parsed.revised_answer != context.answer:
            _check_answer_form(parsed.revised_answer, self.answer)
        return parsed

    def repair(self, text: str, shape: type[BaseModel]) -> RepairedRecord | None:
        """Return None: a malformed reply isn't repaired."""
        return None


@cache
def validator_named(name: str) -> OutputValidator:
    """Return the validator of this name.

    Raises:
        SettingsError: There is none; the error lists the known ones.
        MissingExtra: The validator's own package lacks something. It is raised before an audit
            starts, not in the middle of it.

    """
    if name == PYDANTIC:
        return PydanticValidator()
    loaded = added_entry_point(GROUP, name, setting="output_validator", own=(PYDANTIC,)).load()
    validator: OutputValidator = loaded() if callable(loaded) else loaded
    return validator


def validate_revision(
    validator: OutputValidator, revision: Revision, context: AuditContext
) -> Revision:
    """Return the validated revision.

    Raises:
        InvalidRevision: It doesn't pass, or a team's own validator breaks.

    """
    try:
        return validator.validate(revision, context)
    except StepError:
        raise
    except Exception as error:
        raise InvalidRevision(
            f"The output validator {validator.name!r} failed ({type(error).__name__}): {error}"
        ) from error


def faults(answer: str, context: AuditContext) -> Iterator[str]:
    """Yield the defects in a revision's form, in words for people and without quotes from it."""
    previous_answer = context.answer
    if not answer.strip():
        yield "it is empty"
    limit = max(LONGEST_ANSWER, 2 * len(previous_answer))
    if len(answer) > limit:
        yield f"it has {len(answer):,} characters, more than the limit of {limit:,}"
    if Counter(_UNPRINTABLE.findall(answer)) - Counter(_UNPRINTABLE.findall(previous_answer)):
        yield "it adds control characters to the answer before it"
    if _FORM.match(answer) and not _FORM.match(previous_answer):
        yield "it is a JSON form of a reply instead of an answer"
    if count_empty_markers(answer) > count_empty_markers(previous_answer):
        yield "it has an empty citation"
    names = {chunk.id for chunk in context.evidence}
    if count_unclosed_markers(answer, names) > count_unclosed_markers(previous_answer, names):
        yield "it has a citation without a closing bracket"


def _parse_revision(revision: Any) -> Revision:
    try:
        return Revision.model_validate(
            revision.model_dump() if isinstance(revision, Revision) else revision
        )
    except ValidationError as error:
        raise InvalidRevision(
            f"The revision is malformed: {_error_fields(error, 'revision')}."
        ) from None


def _check_answer_form(answer: str, form: type[BaseModel]) -> None:
    try:
        form.model_validate(json.loads(answer))
        return
    except RecursionError:
        reason = "nested too deeply"
    except ValidationError as error:
        reason = f"wrong in {_error_fields(error, 'answer')}"
    except ValueError:
        reason = "it is not JSON"
    raise InvalidRevision(
        f"The revised answer is not a valid {form.__name__}: {reason}.", raw=answer
    )


def _error_fields(error: ValidationError, record_name: str) -> str:
    return ", ".join(
        ".".join(map(str, error_item["loc"])) or record_name for error_item in error.errors()[:3]
    )
