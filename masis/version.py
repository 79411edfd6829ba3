"""What is recorded with every result: the application's version and the version of its rules and constants."""

APP = "0.2.0"
RUBRIC = "2"
"""Raised whenever a rule, a default constant or a mapping of the specs' rules changes."""
