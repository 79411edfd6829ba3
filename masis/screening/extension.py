"""What screening adds to the core (``masis.extensions``)."""

from __future__ import annotations

from masis.extensions import AddedCommand, AddedPage, Extension, ModelList

EXTENSION = Extension(
    public_names={
        "screen_abstracts": "masis.screening.critic",
        "screen_abstracts_async": "masis.screening.critic",
    },
    pages=(
        AddedPage(
            "screening",
            "Screening",
            "biotech",
            "screening/pages/screening.py",
            setting="screening_page",
            keys="masis.screening.ui.keys:PAGE_KEYS",
        ),
    ),
    commands=(
        AddedCommand(
            "Screening",
            "screen",
            "masis.screening.cli:screen",
            "Check whether abstracts are sufficient evidence for a question.",
        ),
        AddedCommand(
            "Screening",
            "screening",
            "masis.screening.cli:screening",
            "Continue screenings, store corpora, show drift, import labels.",
            True,
        ),
    ),
    use_cases=(
        "masis.screening.services.screenings:CorpusService",
        "masis.screening.services.screenings:ScreeningService",
        "masis.screening.services.jobs:ScreeningJobs",
    ),
    job_kinds={"screening": "masis.screening.services.jobs:SCREENINGS"},
    model_lists=(ModelList("screening_graders", "grader", "masis.screening.critic:grader_names"),),
    notebook_views={"Screening": "masis.screening.views.notebook:screening_html"},
    demo_data=("masis.screening.services.demo:add_demo_screenings",),
    health_checks=("masis.screening.services.health:check_evidence_critic",),
    database_checks=("masis.screening.store.corpus_search:problems",),
)
