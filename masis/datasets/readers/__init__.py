"""Strict readers of lines, JSON, tables and documents, and of pasted evidence.

Their errors name the place and a hint.
"""
