"""The values that the use cases return. Pages and commands import them from here."""

from masis.screening.store.corpora import CorpusImport, CorpusSummary
from masis.screening.store.screenings import ScreeningProgress, ScreeningSummary
