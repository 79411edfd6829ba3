"""Grading of abstracts: relevance, design, methodology, sample size, and the rules on top."""
