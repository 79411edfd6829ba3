"""Stores corpora, screenings and the acceptance memory.

Their tables, and the log of people's corrections, are part of every database: the core creates,
verifies, backs up and empties them, also where this folder is missing.
"""

from __future__ import annotations

from masis.screening.store.acceptance_memory import Acceptances, RememberedGrades
from masis.screening.store.corpora import Corpora
from masis.screening.store.screenings import Screenings
from masis.store import Store


class ScreeningStore:
    """The parts of a store that only screening uses."""

    def __init__(self, store: Store) -> None:
        self.corpora, self.screenings = Corpora(store.database), Screenings(store.database)
        self.acceptances = Acceptances(store.database)
        self.remembered_grades = RememberedGrades(store.database)
