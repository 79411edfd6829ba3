"""The last gate of the loop: an improved answer passes an output validator before it leaves
(REQ-CRITIC-028).

``output_validator`` names it: ``pydantic``, the default, is below; ``baml`` and any other are found
among the installed packages by the entry point group ``masis.output_validators``, so that nothing
here knows who they are. What does not pass is an invalid revision (CRITIC-ERR-006): the answer
before is kept and the loop ends (REQ-CRITIC-031).

What a revision may not bring in is judged against the answer before it. What that answer had
already is the audit's to find, not the gate's.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, NamedTuple, Protocol

from pydantic import BaseModel, ValidationError

from masis.audit.context import AuditContext
from masis.audit.markers import count_empty_markers, unclosed_markers
from masis.errors import InvalidRevision, SettingsError, StepError
from masis.schema.audit import Revision

GROUP = "masis.output_validators"
PYDANTIC = "pydantic"
LONGEST_ANSWER = 100_000
"""Characters; a revision of a longer answer may be twice as long as that."""

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_FORM = re.compile(
    r"\s{0,1000}(?:```\w{0,20}\s{1,50})?\{\s{0,200}[\"']?revised_answer[\"']?\s{0,50}:"
)


class RepairedRecord(NamedTuple):
    """A record read from a reply that strict reading refused, and what had to be repaired."""

    value: dict[str, Any]
    repairs: tuple[str, ...]


class OutputValidator(Protocol):
    """Lets an improved answer pass or refuses it; one that can, repairs replies that are out of
    form as well.
    """

    @property
    def name(self) -> str:
        """What ``output_validator`` calls it."""

    def validate(self, revision: Revision, context: AuditContext) -> Revision:
        """The revision, perhaps with its form repaired. Raises InvalidRevision."""

    def repair(self, text: str, shape: type[BaseModel]) -> RepairedRecord | None:
        """The record in a reply that could not be read strictly; None where it can't be read for
        certain.
        """


@dataclass(frozen=True)
class PydanticValidator:
    """The default: the record of a revision, and an answer that can be stored, shown and audited.

    ``answer`` is a team's own model for answers that are JSON: an improved answer has to be one. A
    team names its validator in its own package, under the entry point group
    ``masis.output_validators``.
    """

    answer: type[BaseModel] | None = None
    name: str = PYDANTIC

    def validate(self, revision: Revision, context: AuditContext) -> Revision:
        """The revision as it is. Raises InvalidRevision naming the first thing that is wrong."""
        checked = _as_revision(revision)
        if wrong := next(faults(checked.revised_answer, context), None):
            raise InvalidRevision(
                f"The revised answer does not pass: {wrong}.", raw=checked.revised_answer
            )
        if self.answer is not None and checked.revised_answer != context.answer:
            _in_form(checked.revised_answer, self.answer)
        return checked

    def repair(self, text: str, shape: type[BaseModel]) -> RepairedRecord | None:
        """Nothing: what strict reading refuses stays unread."""
        return None


@cache
def validator_named(name: str) -> OutputValidator:
    """The validator of this name.

    Raises SettingsError naming those there are, and whatever the validator's own package raises
    where it lacks something (MissingExtra): before an audit begins, not in the middle of it.
    """
    if name == PYDANTIC:
        return PydanticValidator()
    offered = {each.name: each for each in entry_points(group=GROUP)}
    if name not in offered:
        known = [PYDANTIC, *sorted(offered)]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise SettingsError(
            f"output_validator: there is no {name!r}.{hint} There are: {', '.join(known)}."
        )
    found = offered[name].load()
    made: OutputValidator = found() if callable(found) else found
    return made


def validate_revision(
    validator: OutputValidator, revision: Revision, context: AuditContext
) -> Revision:
    """What the validator makes of a revision. Raises InvalidRevision, also where a team's own
    validator breaks.
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
    """What is wrong with an improved answer's form, in words for people; nothing of it
    is quoted.
    """
    before = context.answer
    if not answer.strip():
        yield "it is empty"
    longest = max(LONGEST_ANSWER, 2 * len(before))
    if len(answer) > longest:
        yield f"it has {len(answer):,} characters, and at most {longest:,} are taken"
    if Counter(_UNPRINTABLE.findall(answer)) - Counter(_UNPRINTABLE.findall(before)):
        yield "it holds control characters that the answer before did not"
    if _FORM.match(answer) and not _FORM.match(before):
        yield "it is the form of a reply, not an answer"
    if count_empty_markers(answer) > count_empty_markers(before):
        yield "it holds a citation that names nothing"
    names = {chunk.id for chunk in context.evidence}
    if unclosed_markers(answer, names) > unclosed_markers(before, names):
        yield "it holds a citation that is not closed"


def _as_revision(revision: Any) -> Revision:
    try:
        return Revision.model_validate(
            revision.model_dump() if isinstance(revision, Revision) else revision
        )
    except ValidationError as error:
        raise InvalidRevision(
            f"The revision is out of form: {_error_fields(error, 'revision')}."
        ) from None


def _in_form(answer: str, form: type[BaseModel]) -> None:
    try:
        form.model_validate(json.loads(answer))
        return
    except RecursionError:
        why = "nested too deep"
    except ValidationError as error:
        why = f"wrong in {_error_fields(error, 'answer')}"
    except ValueError:
        why = "it is no JSON"
    raise InvalidRevision(f"The revised answer is no {form.__name__}: {why}.", raw=answer)


def _error_fields(error: ValidationError, whole: str) -> str:
    return ", ".join(".".join(map(str, each["loc"])) or whole for each in error.errors()[:3])
