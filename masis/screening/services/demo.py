"""Fills the demo's database with screenings."""

from __future__ import annotations

from masis.schema.actor import Actor
from masis.screening.demo import CORPUS, demo_questions
from masis.screening.services import corpus_service, screening_service
from masis.services.demo_database import DEMO, recorded_settings
from masis.services.workbench import Workbench

SCREENED = {"pad": "offline", "ery": "", "del": "recorded"}
"""Questions to screen on the demo abstracts, with the auditor of the case made from the kept
abstracts.

``offline`` are the offline checks, "" is none (nothing is kept), and ``recorded`` are the recorded
replies, which have no replies for the case, so that its audit fails.
"""


def add_demo_screenings(workbench: Workbench, actor: Actor) -> None:
    """Add the demo's abstracts, screen questions, and turn what was kept into audited cases.

    Only what is missing is added.
    """
    corpus_service(workbench).add_demo(actor)
    screened = {screening.id for screening in screening_service(workbench).newest(1_000)}
    for question in demo_questions():
        if question.id not in SCREENED or f"demo-{question.id}" in screened:
            continue
        settings = workbench.settings.model_copy(update={"screening_retrieve": question.retrieve})
        screening = screening_service(workbench).screen(
            actor,
            question.question,
            (f"corpus:{CORPUS}",),
            settings=settings,
            screening_id=f"demo-{question.id}",
        )
        if screening.kept and (auditor_name := SCREENED[question.id]):
            case = screening_service(workbench).hand_over(DEMO, screening.id)
            settings = workbench.settings
            if auditor_name == "recorded":
                settings = recorded_settings(settings)
            workbench.audits.audit(actor, case, settings=settings)
