"""Rounds of retrieval and grading: queries, the ruling of each round, overrides, memory
and drift.
"""
