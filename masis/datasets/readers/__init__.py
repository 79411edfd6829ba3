"""Readers: lines and JSON, read strictly, with errors that name the place and the hint; evidence as
people paste it.
"""
