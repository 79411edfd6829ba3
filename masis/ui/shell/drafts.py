"""What a person has put into the decision form of a case, kept in the store as they type."""

from __future__ import annotations

from typing import NamedTuple

from masis.services import Workbench
from masis.services.drafts import case_subject
from masis.ui.review.decision_form import FormFields, read_fields
from masis.ui.shell.reviewer import actor


class KeptForm(NamedTuple):
    """The fields as they were last kept, and when; None where nothing was."""

    fields: FormFields
    saved_at: str | None


def kept_form(workbench: Workbench, case_id: str) -> KeptForm:
    """The form as this session's person left it."""
    draft = workbench.drafts.get(actor(), case_subject(case_id))
    return KeptForm(read_fields(draft.values), draft.saved_at)


def keep_form(workbench: Workbench, case_id: str, fields: FormFields) -> None:
    """Keep the form as it stands; an empty one is let go."""
    if fields.empty:
        drop_form(workbench, case_id)
    else:
        workbench.drafts.save(actor(), case_subject(case_id), fields.model_dump(mode="json"))


def drop_form(workbench: Workbench, case_id: str) -> None:
    """Let the form go."""
    workbench.drafts.clear(actor(), case_subject(case_id))
