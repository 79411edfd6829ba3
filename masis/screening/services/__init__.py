"""The use cases of screening."""

from __future__ import annotations

from masis.screening.services.screenings import CorpusService, ScreeningService
from masis.services.workbench import Workbench


def screening_service(workbench: Workbench) -> ScreeningService:
    """Return the use cases of screenings on a workbench, with its current settings."""
    return ScreeningService(workbench.store, workbench.settings, access=workbench.access)


def corpus_service(workbench: Workbench) -> CorpusService:
    """Return the use cases of corpora on a workbench."""
    return CorpusService(workbench.store, workbench.access)
