"""Corpora, screenings, the screening log and the acceptance memory."""
