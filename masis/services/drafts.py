"""Drafts: what a person has typed and not yet submitted, stored as they type so that nothing typed
is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from masis.schema.actor import ANONYMOUS, Actor
from masis.services.access import Service
from masis.services.records import ReviewDraft

Form = TypeVar("Form", bound=BaseModel)
_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


def clean(value: object, longest: int) -> str:
    """Return text as it can be stored: no null byte, no half of a surrogate pair, not longer than
    allowed.
    """
    return _NOT_STORABLE.sub("", value)[:longest] if isinstance(value, str) else ""


def read_form(form: type[Form], posted: object) -> Form:
    """Return a form as a browser posted it or a draft held it: a field that makes no sense is left
    at its default.
    """
    kept = (
        {name: posted[name] for name in form.model_fields if name in posted}
        if isinstance(posted, Mapping)
        else {}
    )
    try:
        return form.model_validate(kept)
    except ValidationError as error:
        wrong = {each["loc"][0] for each in error.errors() if each["loc"]}
        return form.model_validate(
            {name: value for name, value in kept.items() if name not in wrong}
        )


def read_if_valid(form: type[Form], posted: object) -> Form | None:
    """Return the same of a part of a form, which may be read already; None where its fields
    together make no sense.
    """
    if isinstance(posted, form):
        return posted
    try:
        return read_form(form, posted) if isinstance(posted, Mapping) else None
    except ValidationError:
        return None


def case_subject(case_id: str) -> str:
    """Return the subject of a draft of a decision on a case."""
    return f"case:{case_id}"


def adjudication_subject(case_id: str) -> str:
    """Return the subject of a draft of the final verdict on a case."""
    return f"adjudication:{case_id}"


def rubric_subject(case_id: str) -> str:
    """Return the subject of the draft that holds scores of the rubric."""
    return f"rubric:{case_id}"


def comment_subject(case_id: str) -> str:
    """Return the subject of the draft that holds a comment not added yet."""
    return f"comment:{case_id}"


def evidence_subject(case_id: str) -> str:
    """Return the subject of the draft that holds pasted texts of missing evidence until they are
    used.
    """
    return f"evidence:{case_id}"


def subjects_of_case(case_id: str) -> tuple[str, ...]:
    """Return the subjects of every draft that can be about a case."""
    return (
        case_subject(case_id),
        adjudication_subject(case_id),
        rubric_subject(case_id),
        comment_subject(case_id),
        evidence_subject(case_id),
    )


class DraftService(Service):
    """The use cases of drafts. A draft belongs to an actor's name and a subject: ``case:1``,
    ``new-audit``.
    """

    def get(self, actor: Actor, subject: str) -> ReviewDraft:
        """Return the actor's draft; without values where there is none."""
        return self._store.drafts.get(actor.name, subject)

    def with_drafts(
        self, actor: Actor, case_ids: Iterable[str], subject: Callable[[str], str] = case_subject
    ) -> frozenset[str]:
        """Return on which of these cases the actor has a draft: of a decision, or of what else
        ``subject`` names.
        """
        subjects = {subject(each): each for each in case_ids}
        return frozenset(subjects[each] for each in self._store.drafts.among(actor.name, subjects))

    def save(self, actor: Actor, subject: str, values: Mapping[str, JsonValue]) -> None:
        """Store these fields of a draft in place of what they held. Raises StoreError and
        NotAllowed.
        """
        self._access.require(actor, "decide")
        self._store.drafts.save(actor.name, subject, values)

    def clear(self, actor: Actor, subject: str, *fields: str) -> None:
        """Remove these fields of a draft, or all of it where none is named."""
        self._access.require(actor, "decide")
        self._store.drafts.clear(actor.name, subject, *fields)

    def adopt(self, actor: Actor) -> None:
        """Give the actor the drafts that were typed before a name was known."""
        self._access.require(actor, "decide")
        self._store.drafts.hand_over(ANONYMOUS.name, actor.name)
