"""What is recorded with every result: the application's version and the version of its rules and constants."""

APP = "0.1.0"
RUBRIC = "1"
"""Raised whenever a rule, a default constant or a mapping of the specs' rules changes."""
