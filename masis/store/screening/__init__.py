"""Stores corpora, screenings, the screening log and the acceptance memory."""
