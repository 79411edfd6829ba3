"""Scores, metrics and their catalogue."""
