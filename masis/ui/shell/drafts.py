"""What a person has put into the decision form of a case, kept in the store as they type."""

from __future__ import annotations

from typing import NamedTuple

from masis.services import Workbench
from masis.services.reviews import case_subject
from masis.store.reviews.drafts import NOBODY_YET
from masis.ui.review.decision_form import FormFields, read_fields
from masis.ui.shell.reviewer import reviewer


class KeptForm(NamedTuple):
    """The fields as they were last kept, and when; None where nothing was."""

    fields: FormFields
    saved_at: str | None


def drafter() -> str:
    """The name drafts of this session are kept under."""
    return reviewer() or NOBODY_YET


def kept_form(workbench: Workbench, case_id: str) -> KeptForm:
    """The form as this session's person left it."""
    draft = workbench.store.drafts.get(drafter(), case_subject(case_id))
    return KeptForm(read_fields(draft.values), draft.saved_at)


def keep_form(workbench: Workbench, case_id: str, fields: FormFields) -> None:
    """Keep the form as it stands; an empty one is let go."""
    if fields.empty:
        drop_form(workbench, case_id)
    else:
        workbench.store.drafts.save_all(drafter(), case_subject(case_id), fields.model_dump(mode="json"))


def drop_form(workbench: Workbench, case_id: str) -> None:
    """Let the form go."""
    workbench.store.drafts.clear(drafter(), case_subject(case_id))
