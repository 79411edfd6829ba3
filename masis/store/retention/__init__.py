"""Removes old content and redacted texts, and records each removal."""
