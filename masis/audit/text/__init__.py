"""Analyses of text before it is judged: assertions, quotes, instructions and language."""
