"""The decision form of a case, stored as a person fills it in."""

from __future__ import annotations

from typing import NamedTuple

from masis.services import Workbench
from masis.services.drafts import case_subject
from masis.ui.review.decision_form import FormFields, read_fields
from masis.ui.shell.reviewer import actor


class StoredForm(NamedTuple):
    """The fields as they were last stored, and when; None where nothing was."""

    fields: FormFields
    saved_at: str | None


def stored_form(workbench: Workbench, case_id: str) -> StoredForm:
    """Return the form as the person of this session left it."""
    draft = workbench.drafts.get(actor(), case_subject(case_id))
    return StoredForm(read_fields(draft.values), draft.saved_at)


def store_form(workbench: Workbench, case_id: str, fields: FormFields) -> None:
    """Store the form; an empty one is removed."""
    if fields.empty:
        clear_form(workbench, case_id)
    else:
        workbench.drafts.save(actor(), case_subject(case_id), fields.model_dump(mode="json"))


def clear_form(workbench: Workbench, case_id: str) -> None:
    """Remove the stored form."""
    workbench.drafts.clear(actor(), case_subject(case_id))
