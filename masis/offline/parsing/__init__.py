"""Parsers for the checkable facts of a text: numbers, units, dates and times."""
