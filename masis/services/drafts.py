"""Drafts: a person's unsubmitted input, stored while they type so that it survives a reload."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from masis.schema.actor import Actor
from masis.services.access import Service, requires
from masis.services.records import ReviewDraft

Form = TypeVar("Form", bound=BaseModel)
# SQLite text can't hold a null byte safely, and half of a surrogate pair can't be encoded as UTF-8.
_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


def clean(value: object, longest: int) -> str:
    """Return text without null bytes and unpaired surrogates, cut to ``longest`` characters.

    A value that isn't text becomes "".
    """
    return _NOT_STORABLE.sub("", value)[:longest] if isinstance(value, str) else ""


def read_form(form: type[Form], posted: object) -> Form:
    """Parse a form that a browser posted or a draft stored; invalid fields get their defaults."""
    fields = (
        {name: posted[name] for name in form.model_fields if name in posted}
        if isinstance(posted, Mapping)
        else {}
    )
    try:
        return form.model_validate(fields)
    except ValidationError as error:
        invalid = {problem["loc"][0] for problem in error.errors() if problem["loc"]}
        return form.model_validate(
            {name: value for name, value in fields.items() if name not in invalid}
        )


def read_if_valid(form: type[Form], posted: object) -> Form | None:
    """Parse a part of a form, or return None if its fields contradict each other."""
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
    """Return the subject of a draft of rubric scores."""
    return f"rubric:{case_id}"


def comment_subject(case_id: str) -> str:
    """Return the subject of a draft of a comment."""
    return f"comment:{case_id}"


def evidence_subject(case_id: str) -> str:
    """Return the subject of a draft of pasted texts for missing evidence."""
    return f"evidence:{case_id}"


def subjects_of_case(case_id: str) -> tuple[str, ...]:
    """Return the subjects of all possible drafts about a case."""
    return (
        case_subject(case_id),
        adjudication_subject(case_id),
        rubric_subject(case_id),
        comment_subject(case_id),
        evidence_subject(case_id),
    )


class DraftService(Service):
    """The use cases of drafts.

    A draft belongs to an actor and a subject, such as ``case:1`` or ``new-audit``. The drafts of a
    person without a name belong to their browser, so that nobody else ever sees them.
    """

    @requires("read")
    def get(self, actor: Actor, subject: str) -> ReviewDraft:
        """Return the actor's draft; it has no values if there is none."""
        return self._store.drafts.get(actor.draft_owner, subject)

    @requires("read")
    def with_drafts(
        self, actor: Actor, case_ids: Iterable[str], subject: Callable[[str], str] = case_subject
    ) -> frozenset[str]:
        """Return the cases on which the actor has a draft, by default of a decision.

        ``subject`` returns the draft's subject for the id of a case.
        """
        subjects = {subject(case_id): case_id for case_id in case_ids}
        return frozenset(
            subjects[name]
            for name in self._store.drafts.subjects_with_drafts(actor.draft_owner, subjects)
        )

    @requires("decide", "save drafts of decisions")
    def save(self, actor: Actor, subject: str, values: Mapping[str, JsonValue]) -> None:
        """Store these fields of a draft; its other fields aren't changed.

        Raises:
            StoreError: The draft can't be stored.
            NotAllowed: The actor's role doesn't allow decisions.

        """
        self._store.drafts.save(actor.draft_owner, subject, values)

    @requires("decide", "save drafts of decisions")
    def save_form(
        self, actor: Actor, subject: str, values: Mapping[str, JsonValue], token: str = ""
    ) -> ReviewDraft:
        """Replace a draft with the entries of a form, and return it; no entries remove it.

        A draft that arrives after the decision of its form, which has the same token, is ignored.
        Else it would come back.
        """
        with self._store.transaction():
            if not self._store.decisions.has_token(token):
                self._store.drafts.clear(actor.draft_owner, subject)
                if values:
                    self._store.drafts.save(actor.draft_owner, subject, values)
        return self._store.drafts.get(actor.draft_owner, subject)

    @requires("decide", "save drafts of decisions")
    def clear(self, actor: Actor, subject: str, *fields: str) -> None:
        """Remove these fields of a draft, or the whole draft if no field is named."""
        self._store.drafts.clear(actor.draft_owner, subject, *fields)

    @requires("decide", "save drafts of decisions")
    def adopt(self, actor: Actor) -> None:
        """Give the actor the drafts that were typed in their browser before a name was known."""
        self._store.drafts.hand_over(actor.unnamed_owner, actor.draft_owner)
