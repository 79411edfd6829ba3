"""Rounds of retrieval and grading: queries, rulings, overrides, memory and drift."""
