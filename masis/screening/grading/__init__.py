"""Grading an abstract: relevance, study design, methodology, sample size, and the rules that
combine them.
"""
