"""Observation of audits from outside: events for observers, and structured log records."""
